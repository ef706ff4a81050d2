/* engine.c - simulated threads and their scheduler.
 *
 * One real thread, one stack for each simulated one.  A thread runs until it comes to a step that
 * others can notice (memory.c); there the search may let another one go first.  A thread that
 * sleeps or ends always hands over.
 *
 * To stand back before a step is only worth something if another thread then touches the place of
 * that step: otherwise the same comes out if it stands back after the step, at no higher price.  So
 * a thread that stood back is asleep until its place is touched, and an execution in which only
 * such threads are left is given up as redundant.
 *
 * Time stands still while anybody can go on, but where the search says otherwise; when nobody can,
 * it moves to the next instant at which somebody wakes by himself.  If there is none, and threads
 * of the scenario have not ended, that is a deadlock.
 */
#define _GNU_SOURCE
#include "engine.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

struct engine engine;
unsigned explore_budget;
unsigned explore_bias;

static enum ending ending;
static void *stacks[FIBERS_MAX]; /* of threads that begin anew in each execution */

/* ---- Beginning and ending ---- */

/* Comes back only to a thread that sleeps at the end of the prelude. */
static void go_home(enum ending how)
{
    struct fiber *me = engine.me;

    ending = how;
    engine.me = NULL;
    engine.running = false;
    stack_change(&me->stack, &engine.home);
}

static _Noreturn void end(enum ending how)
{
    go_home(how);
    abort();
}

/* The first failure of an execution ends it. */
static void fail(const char *prefix, const char *format, va_list args)
{
    if (!engine.failed) {
        int n = snprintf(engine.failure, sizeof engine.failure, "%s", prefix);

        vsnprintf(engine.failure + n, sizeof engine.failure - (size_t)n, format, args);
    }
    engine.failed = true;
    if (engine.me != NULL)
        end(FAILED);
}

void explore_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail("", format, args);
    va_end(args);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

void explore_unmet(const struct explore_site *at, const char *format, ...)
{
    char prefix[256];
    va_list args;

    snprintf(prefix, sizeof prefix, "%s:%d: not so: %.150s: ", base_name(at->file), at->line,
             at->place);
    va_start(args, format);
    fail(prefix, format, args);
    va_end(args);
}

/* The library's assertions are checks. */
void __assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
    explore_fail("%s:%u: %s: assertion failed: %s", file, line, function, what);
    fprintf(stderr, "explore: %s\n", engine.failure);
    exit(2);
}

static void block(void);

static void fiber_main(void)
{
    struct fiber *me = engine.me;

    me->run(me->arg);
    memory_empty();
    me->state = ENDED;
    if (engine.trace)
        engine_print("ends", "", NULL);
    engine_touched(me, true);
    block();
}

struct fiber *engine_start(const char *name, void (*run)(void *), void *arg, bool daemon)
{
    if (engine.fibers == FIBERS_MAX) {
        fprintf(stderr, "explore: too many threads\n");
        exit(2);
    }
    struct fiber *f = &engine.fiber[engine.fibers++];
    struct stack stack = f->stack;

    *f = (struct fiber){ .stack = stack, .run = run, .arg = arg, .name = name, .daemon = daemon };
    f->timer = -1;
    return f;
}

void explore_thread(const char *name, void (*run)(void *), void *arg)
{
    engine_start(name, run, arg, false);
}

static void begin(struct fiber *f)
{
    if (f->begun)
        return;
    f->begun = true;
    if (f->stack.memory == NULL)
        f->stack.memory = stacks[f - engine.fiber];
    stack_prepare(&f->stack, fiber_main);
    if (!engine.prelude)
        stacks[f - engine.fiber] = f->stack.memory;
}

static void enter(struct fiber *f)
{
    engine.me = f;
    engine.running = true;
    begin(f);
    stack_change(&engine.home, &f->stack);
}

/* The library's own threads begin and run until they sleep: every execution finds them there. */
static void run_prelude(void)
{
    engine.prelude = true;
    for (unsigned i = 0; i < engine.fibers; i++) {
        if (engine.fiber[i].daemon)
            engine.fiber[i].stack.memory = arena_new(STACK_BYTES);
    }
    for (unsigned i = 0; i < engine.fibers; i++) {
        if (engine.fiber[i].daemon && !engine.fiber[i].begun)
            enter(&engine.fiber[i]);
    }
    engine.prelude = false;
}

void engine_setup(const struct explore_scenario *s)
{
    memset(engine.fiber, 0, sizeof engine.fiber);
    engine.scenario = s;
    engine.fibers = 0;
    engine.failed = false;
    explore_budget = 0;
    explore_bias = 0;
    memory_forget();
    arena_open();
    system_open();
    s->setup();
    search_plainly();
    run_prelude();
    if (engine.failed) {
        fprintf(stderr, "explore: %s: setup: %s\n", s->name, engine.failure);
        exit(2);
    }
    engine.fibers_kept = engine.fibers;
    memcpy(engine.kept, engine.fiber, sizeof engine.kept);
    arena_keep();
}

enum ending engine_execute(void)
{
    struct ways w = { 0 };

    arena_reset();
    engine.fibers = engine.fibers_kept;
    memcpy(engine.fiber, engine.kept, engine.fibers * sizeof engine.fiber[0]);
    engine.held = engine.asleep = 0;
    engine.steps = engine.point = 0;
    engine.used = (struct explore_bounds){ 0 };
    engine.failed = false;
    for (unsigned i = 0; i < engine.fibers; i++) {
        if (!engine.fiber[i].begun)
            ways_add(&w, SWITCH + i);
    }
    struct fiber *first = &engine.fiber[search_choose(&w, true) & 0xf];
    enter(first);
    if (ending == COMPLETE && engine.scenario->check != NULL)
        engine.scenario->check();
    return engine.failed ? FAILED : ending;
}

/* ---- Who can go on ---- */

static int64_t wakes_at(const struct fiber *f)
{
    int64_t at = f->until_ns;

    if (f->timer >= 0 && system_timer_over(f->timer) < at)
        at = system_timer_over(f->timer);
    return at;
}

static bool can_go(const struct fiber *f)
{
    if (engine.prelude && !f->daemon)
        return false;
    switch (f->state) {
    case RUNNABLE:
        return true;
    case PARKED:
        return f->woken || wakes_at(f) <= world->now_ns;
    case JOINING:
        return f->joined->state == ENDED;
    case ENDED:
        break;
    }
    return false;
}

/* It sleeps, and wakes by itself when time passes. */
static bool can_time_out(const struct fiber *f)
{
    return f->state == PARKED && !can_go(f) && wakes_at(f) != DUE_FOREVER;
}

/* The first instant, after now, at which somebody wakes by himself. */
int64_t explore_next_wake(void)
{
    int64_t next = DUE_FOREVER;

    for (unsigned i = 0; i < engine.fibers; i++) {
        if (can_time_out(&engine.fiber[i]) && wakes_at(&engine.fiber[i]) < next)
            next = wakes_at(&engine.fiber[i]);
    }
    return next;
}

void engine_offer_tick(void)
{
    struct ways w = { .n = 1, .way = { GO } };
    int64_t next = explore_next_wake();

    for (int i = 0; i < world->instants; i++) {
        if (world->instant[i] > world->now_ns && world->instant[i] < next)
            next = world->instant[i];
    }
    if (next != DUE_FOREVER && search_may_tick())
        ways_add(&w, TICK);
    if (search_choose(&w, false) == GO)
        return;
    engine.used.times++;
    engine_clock_forward(next);
}

void engine_clock_forward(int64_t to_ns)
{
    char text[64];

    if (to_ns <= world->now_ns)
        return;
    world->now_ns = to_ns;
    engine_touched(world, true);
    if (engine.trace) {
        snprintf(text, sizeof text, "%+.9f s", (double)(to_ns - EXPLORE_START_NS) / 1e9);
        engine_print("time is", text, NULL);
    }
}

void engine_rouse(struct fiber *f)
{
    engine.asleep -= f->asleep;
    f->asleep = false;
}

static void change_to(struct fiber *f)
{
    struct fiber *me = engine.me;

    engine_rouse(f);
    if (can_time_out(f))
        engine_clock_forward(wakes_at(f));
    if (f == me)
        return;
    engine.me = f;
    begin(f);
    stack_change(&me->stack, &f->stack);
}

/* It lets others go on, and looks again. */
static bool spins(const struct fiber *f)
{
    return f->state == PARKED && f->word == NULL && f->timer < 0;
}

/* Nobody can go on.  Those who wake first by themselves are added to @w. */
static void let_time_pass(struct ways *w)
{
    bool over = true;
    bool rest = true;

    for (unsigned i = 0; i < engine.fibers; i++) {
        over = over && (engine.fiber[i].daemon || engine.fiber[i].state == ENDED);
        rest = rest && !spins(&engine.fiber[i]);
    }
    if (rest && engine.scenario->idle != NULL) {
        engine.running = false;
        engine.scenario->idle();
        engine.running = true;
    }
    if (over)
        end(COMPLETE);

    int64_t next = explore_next_wake();
    for (unsigned i = 0; i < engine.fibers; i++) {
        if (can_time_out(&engine.fiber[i]) && wakes_at(&engine.fiber[i]) == next)
            ways_add(w, SWITCH + i);
    }
    if (w->n == 0)
        explore_fail("deadlock: %s and whoever else is left sleep for ever",
                     engine.me->state == ENDED ? "others" : engine.me->name);
}

/* The running thread cannot go on: another one does, or time passes. */
static void block(void)
{
    struct ways w = { 0 };
    bool anybody = false;

    for (unsigned i = 0; i < engine.fibers; i++) {
        struct fiber *f = &engine.fiber[i];

        if (!can_go(f))
            continue;
        anybody = true;
        if (!f->asleep)
            ways_add(&w, SWITCH + i);
    }
    if (!anybody && engine.prelude) {
        go_home(COMPLETE);
        return;
    }
    if (!anybody)
        let_time_pass(&w);
    else
        for (unsigned i = 0; i < engine.fibers && search_may_tick(); i++) {
            if (can_time_out(&engine.fiber[i]))
                ways_add(&w, SWITCH + i);
        }
    if (w.n == 0)
        end(REDUNDANT);

    struct fiber *f = &engine.fiber[search_choose(&w, true) - SWITCH];
    engine.used.times += anybody && can_time_out(f);
    change_to(f);
}

void engine_offer_switch(const volatile void *p, bool write)
{
    struct fiber *me = engine.me;
    struct ways w = { .n = 1, .way = { GO } };

    for (unsigned i = 0; i < engine.fibers && search_may_switch(); i++) {
        struct fiber *f = &engine.fiber[i];

        if (f == me)
            continue;
        if (can_go(f)) {
            if (!f->asleep)
                ways_add(&w, SWITCH + i);
        } else {
            if (can_time_out(f) && search_may_tick())
                ways_add(&w, SWITCH + i);
            if (f->state == PARKED && f->word != NULL && search_may_be_spurious())
                ways_add(&w, SPURIOUS + i);
        }
    }
    uint8_t way = search_choose(&w, false);
    if (way == GO)
        return;

    struct fiber *f = &engine.fiber[way & 0xf];
    engine.used.switches++;
    if ((way & 0xf0) == SPURIOUS) {
        engine.used.spurious++;
        f->woken = true;
    }
    engine.used.times += can_time_out(f);
    me->asleep = search_skips();
    engine.asleep += me->asleep;
    me->asleep_at = p;
    me->asleep_write = write;
    change_to(f);
}

void engine_touched(const volatile void *p, bool write)
{
    for (unsigned i = 0; i < engine.fibers && engine.asleep > 0; i++) {
        struct fiber *f = &engine.fiber[i];

        if (f->asleep && f->asleep_at == p && (write || f->asleep_write))
            engine_rouse(f);
    }
}

/* ---- Sleeping ---- */

void engine_park(const void *word, int64_t until_ns, int timer)
{
    struct fiber *me = engine.me;

    me->state = PARKED;
    me->word = word;
    me->until_ns = until_ns;
    me->timer = timer;
    me->woken = false;
    if (engine.trace)
        engine_print("sleeps", until_ns == DUE_FOREVER ? "" : "with a limit", NULL);
    block();
    if (engine.trace)
        engine_print("awake", me->woken ? "" : "time is up", NULL);
    me->state = RUNNABLE;
    me->word = NULL;
    me->timer = -1;
}

void engine_unpark(const void *word)
{
    struct ways w = { 0 };

    for (unsigned i = 0; i < engine.fibers; i++) {
        struct fiber *f = &engine.fiber[i];

        if (f->state == PARKED && f->word == word && !f->woken)
            ways_add(&w, WAKE + i);
    }
    if (w.n > 0)
        engine.fiber[search_choose(&w, true) & 0xf].woken = true;
}

void engine_join(struct fiber *f)
{
    memory_step(f, false);
    if (f->state == ENDED)
        return;
    engine.me->state = JOINING;
    engine.me->joined = f;
    block();
    engine.me->state = RUNNABLE;
}

/* ---- Traces ---- */

void engine_print(const char *op, const char *text, const struct explore_site *at)
{
    const char *name = engine.me != NULL ? engine.me->name : "explorer";

    printf("%6u  %-11s %-13s %-48s", engine.point, name, op, text);
    if (at != NULL)
        printf(" %s:%d", base_name(at->file), at->line);
    printf("\n");
}

void explore_note(const char *format, ...)
{
    char text[200];
    va_list args;

    if (!engine.trace)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    engine_print("--", text, NULL);
}
