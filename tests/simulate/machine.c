/* machine.c - fibres and their scheduler, and time. */
#define _GNU_SOURCE
#include "machine.h"

#include <link.h>
#include <stdarg.h>

struct machine machine;

static enum ending ending;

/* ---- Chance ---- */

uint64_t machine_below(uint64_t n)
{
    return model_below(&machine.random, n);
}

bool machine_chance(uint32_t every)
{
    return every != 0 && machine_below(every) == 0;
}

void machine_mix(uint64_t value)
{
    machine.hash = (machine.hash ^ value) * UINT64_C(0x100000001b3);
    machine.hash ^= machine.hash >> 29;
}

void machine_plenty(unsigned who, bool on)
{
    uint64_t bit = UINT64_C(1) << who;

    machine.plenty = on ? machine.plenty | bit : machine.plenty & ~bit;
}

/* ---- Thread-local variables ----
 *
 * All fibres run on one thread, so what is thread-local is exchanged with them. */

static void *tls;
static size_t tls_size;

static int find_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size, (void)arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_TLS)
            continue;
        tls = info->dlpi_tls_data;
        tls_size = info->dlpi_phdr[i].p_memsz;
    }
    return 1; /* the program comes first, and is all */
}

static void tls_begin(void)
{
    if (tls == NULL)
        dl_iterate_phdr(find_tls, NULL);
    if (tls_size > TLS_MAX) {
        fprintf(stderr, "simulate: %zu bytes of thread-local variables\n", tls_size);
        exit(2);
    }
}

static void change_stack(struct fiber *from, struct fiber *to)
{
    if (from != NULL)
        memcpy(from->tls, tls, tls_size);
    if (to != NULL)
        memcpy(tls, to->tls, tls_size);
    stack_change(from != NULL ? &from->stack : &machine.home,
                 to != NULL ? &to->stack : &machine.home);
}

/* ---- Beginning and ending ---- */

static void go_home(enum ending how)
{
    struct fiber *me = machine.me;

    ending = how;
    machine.me = NULL;
    machine.running = false;
    change_stack(me, NULL);
}

void machine_fail(const char *format, ...)
{
    va_list args;

    if (!machine.failed) {
        va_start(args, format);
        vsnprintf(machine.failure, sizeof machine.failure, format, args);
        va_end(args);
    }
    machine.failed = true;
    if (machine.me != NULL) {
        go_home(FAILED);
        abort();
    }
}

static void draw_next(void)
{
    uint64_t far = 1 + machine_below(2 * (uint64_t)machine.o.switch_every);

    machine.next = machine.steps + far;
    if (machine.kill_at < machine.next)
        machine.next = machine.kill_at;
    if (machine.stop_at < machine.next)
        machine.next = machine.stop_at;
    if (machine.o.steps_max < machine.next)
        machine.next = machine.o.steps_max;
}

void machine_begin(const struct machine_options *o)
{
    tls_begin();
    machine_catch_signals();
    for (unsigned i = 0; i < FIBERS_MAX; i++) {
        struct stack stack = machine.fiber[i].stack;

        machine.fiber[i] = (struct fiber){ .stack = stack };
    }
    machine.o = *o;
    machine.fibers = 0;
    machine.me = NULL;
    machine.running = false;
    machine.plenty = 0;
    machine.random = o->seed;
    machine.steps = machine.switches = 0;
    machine.kill_at = machine.stop_at = UINT64_MAX;
    memset(machine.stopped_ns, 0, sizeof machine.stopped_ns);
    machine.hash = UINT64_C(0xcbf29ce484222325);
    machine.now_ns = START_NS;
    machine.wall_ns = WALL_NS;
    machine.boot_ns = DUE_S(5);
    machine.held = 0;
    memset(machine.instant, 0, sizeof machine.instant);
    machine.instants = 0;
    machine.process = machine.queue = 0;
    machine.idle = machine.stepped = machine.entered = NULL;
    machine.failed = false;
    machine.failure[0] = '\0';
    memory_begin();
    system_begin();
}

static void block(void);

static void fiber_main(void)
{
    struct fiber *me = machine.me;

    system_thread((uint32_t)(me - machine.fiber) + 1);
    me->run(me->arg);
    memory_empty();
    me->state = ENDED;
    block();
}

struct fiber *machine_start(const char *name, void (*run)(void *), void *arg, bool daemon)
{
    struct fiber *f = machine.fiber;

    while (f < machine.fiber + FIBERS_MAX && f->used)
        f++;
    if (f == machine.fiber + FIBERS_MAX) {
        fprintf(stderr, "simulate: too many threads\n");
        exit(2);
    }
    struct stack stack = f->stack;

    *f = (struct fiber){ .stack = stack, .run = run, .arg = arg, .daemon = daemon, .used = true };
    snprintf(f->name, sizeof f->name, "%s", name);
    f->state = RUNNABLE;
    f->timer = -1;
    f->process = machine.me != NULL ? machine.me->process : machine.process;
    f->queue = machine.queue;
    f->rank = (uint32_t)(1000 + machine_below(1000000));
    if ((unsigned)(f - machine.fiber) >= machine.fibers)
        machine.fibers = (unsigned)(f - machine.fiber) + 1;
    return f;
}

void machine_kill(unsigned process)
{
    for (unsigned i = 0; i < machine.fibers; i++) {
        struct fiber *f = &machine.fiber[i];

        if (!f->used || f->process != process)
            continue;
        machine.held -= f->held_count;
        f->held_count = 0;
        f->state = ENDED;
        f->used = false;
    }
    system_forget_process(process);
}

bool machine_process_ended(unsigned process)
{
    for (unsigned i = 0; i < machine.fibers; i++) {
        const struct fiber *f = &machine.fiber[i];

        if (f->process == process && f->state != ENDED)
            return false;
    }
    return true;
}

/* ---- Who can go on ---- */

static int64_t wakes_at(const struct fiber *f)
{
    int64_t at = f->until_ns;

    if (f->timer >= 0 && system_timer_over(f->timer) < at)
        at = system_timer_over(f->timer);
    return at;
}

bool machine_stopped(unsigned process)
{
    return machine.stopped_ns[process] > machine.now_ns;
}

static bool stopped(const struct fiber *f)
{
    return machine_stopped(f->process);
}

static bool can_go(const struct fiber *f)
{
    if (stopped(f))
        return false;
    switch (f->state) {
    case RUNNABLE:
        return true;
    case PARKED:
        return f->woken || wakes_at(f) <= machine.now_ns;
    case JOINING:
        return f->joined->state == ENDED;
    case ENDED:
        break;
    }
    return false;
}

int64_t machine_next_wake(void)
{
    int64_t next = DUE_FOREVER;

    for (unsigned i = 0; i < machine.fibers; i++) {
        const struct fiber *f = &machine.fiber[i];

        if (f->state != ENDED && stopped(f) && machine.stopped_ns[f->process] < next)
            next = machine.stopped_ns[f->process];
        else if (f->state == PARKED && !stopped(f) && wakes_at(f) < next)
            next = wakes_at(f);
    }
    return next;
}

/* One that can; NULL: nobody.  Of those that are held back only if @back. */
static struct fiber *choose_of(bool back)
{
    struct fiber *can[FIBERS_MAX];
    struct fiber *first = NULL;
    unsigned n = 0;

    for (unsigned i = 0; i < machine.fibers; i++) {
        struct fiber *f = &machine.fiber[i];

        if (f->state == ENDED || (f->back_until > machine.steps && !back) || !can_go(f))
            continue;
        can[n++] = f;
        if (first == NULL || f->rank > first->rank)
            first = f;
    }
    if (n <= 1 || machine.o.by_rank)
        return first;
    return can[machine_below(n)];
}

/* Where time passes although somebody could go on, it may do so rather than that he goes on who is
 * held back; but not where there is plenty, which he may still be in the way of. */
static struct fiber *choose(void)
{
    struct fiber *f;

    while ((f = choose_of(false)) == NULL) {
        int64_t next = machine_next_wake();

        f = choose_of(true);
        bool passes = machine.o.jump_every != 0 && machine.plenty == 0 && next != DUE_FOREVER;
        if (f == NULL || !passes || machine_below(4) != 0)
            break;
        if (next > machine.now_ns)
            machine.now_ns = next;
    }
    return f;
}

void machine_enter(unsigned queue)
{
    if (machine.me != NULL)
        machine.me->queue = queue;
    if (machine.queue == queue)
        return;
    machine.queue = queue;
    if (machine.entered != NULL)
        machine.entered();
}

static void let_go_on(struct fiber *f)
{
    machine.me = f;
    machine_enter(f->queue);
    if (!f->begun) {
        f->begun = true;
        stack_prepare(&f->stack, fiber_main);
    }
}

static void change_to(struct fiber *f)
{
    struct fiber *me = machine.me;

    machine_mix(machine.steps);
    machine_mix((uint64_t)(f - machine.fiber));
    if (f == me)
        return;
    machine.switches++;
    let_go_on(f);
    change_stack(me, f);
}

static bool programs_ended(void)
{
    for (unsigned i = 0; i < machine.fibers; i++) {
        const struct fiber *f = &machine.fiber[i];

        if (f->state != ENDED && !f->daemon)
            return false;
    }
    return true;
}

static const char *who_sleeps(char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < machine.fibers && at + 20 < size; i++) {
        const struct fiber *f = &machine.fiber[i];

        if (f->state != ENDED && !f->daemon)
            at += (size_t)snprintf(text + at, size - at, " %s", f->name);
    }
    return text;
}

/* Nobody can go on. */
static void let_time_pass(void)
{
    char text[200];
    int64_t next = machine_next_wake();

    machine.running = false;
    if (machine.idle != NULL)
        machine.idle();
    machine.running = true;
    if (next == DUE_FOREVER)
        machine_fail("deadlock: nobody wakes those who sleep:%s", who_sleeps(text, sizeof text));
    if (next > machine.now_ns)
        machine.now_ns = next;
}

/* One that goes on, be it after a while; NULL: the run has failed. */
static struct fiber *next_fiber(void)
{
    struct fiber *f;

    while ((f = choose()) == NULL && !machine.failed)
        let_time_pass();
    return f;
}

/* The running fibre cannot go on: another one does, or time passes. */
static void block(void)
{
    if (machine.me->state == ENDED && programs_ended()) {
        go_home(ALL_ENDED);
        return;
    }
    change_to(next_fiber());
}

/* ---- What may happen between two steps ---- */

static void wake_for_no_reason(void)
{
    struct fiber *f = &machine.fiber[machine_below(machine.fibers)];

    if (f->state == PARKED && f->word != NULL)
        f->woken = true;
}

void machine_stir(void)
{
    for (unsigned i = 0; i < machine.fibers; i++) {
        struct fiber *f = &machine.fiber[i];

        if (f->state == PARKED && f->word != NULL)
            f->woken = true;
    }
}

/* The next stop. */
static void draw_stop(void)
{
    machine.stop_at = machine.steps + 1 + machine_below(2 * (uint64_t)machine.o.stop_every);
}

void machine_stops(bool on)
{
    machine.stop_at = UINT64_MAX;
    if (on && machine.o.stop_every > 0)
        draw_stop();
}

void machine_kill_soon(uint64_t steps)
{
    uint64_t at = machine.steps + 1 + machine_below(steps);

    if (machine.kill_at == UINT64_MAX || at > machine.kill_at)
        return;
    machine.kill_at = at;
    if (at < machine.next)
        machine.next = at;
}

/* A process is stopped, as a signal does it: the running one, or that of another fibre. */
static void stop_process(void)
{
    const struct fiber *f = &machine.fiber[machine_below(machine.fibers)];
    unsigned process = machine_below(2) == 0 ? machine.me->process : f->process;

    machine.stopped_ns[process] =
        machine.now_ns + 1 + (int64_t)machine_below((uint64_t)machine.o.stop_max_ns);
    draw_stop();
}

/* The running fibre comes last; now and then somebody comes first, so that all have their turn. */
static void change_ranks(void)
{
    machine.me->rank = (uint32_t)machine_below(1000);
    if (machine_below(32) == 0)
        machine.fiber[machine_below(machine.fibers)].rank = 1000;
}

void machine_give_way(void)
{
    struct fiber *f = choose();

    if (f != NULL)
        change_to(f);
}

void machine_point(void)
{
    if (!machine.running)
        return;
    if (machine.steps >= machine.kill_at) {
        machine.kill_at = UINT64_MAX;
        go_home(KILLED); /* comes back if others are killed */
        return;
    }
    if (machine.steps >= machine.o.steps_max)
        machine_fail("it goes on for ever: %llu steps", (unsigned long long)machine.steps);
    if (machine.steps >= machine.stop_at)
        stop_process();
    draw_next();
    if (machine.plenty == 0 && machine_chance(machine.o.jump_every))
        machine_jump();
    if (machine_chance(machine.o.clock_step_every))
        machine_set_clock();
    if (machine_chance(machine.o.spurious_every))
        wake_for_no_reason();
    if (machine.o.by_rank)
        change_ranks();
    struct fiber *f = choose();
    if (f == NULL && stopped(machine.me))
        f = next_fiber();
    if (f != NULL)
        change_to(f);
}

/* ---- The run ---- */

enum ending machine_run(void)
{
    if (programs_ended())
        return ALL_ENDED;
    machine.running = true;
    struct fiber *f = next_fiber();
    if (f == NULL) {
        machine.running = false;
        return FAILED;
    }
    draw_next();
    machine_mix(machine.steps);
    machine_mix((uint64_t)(f - machine.fiber));
    let_go_on(f);
    change_stack(NULL, f);
    return machine.failed ? FAILED : ending;
}

/* ---- Sleeping ---- */

void machine_park(const void *word, int64_t until_ns, int timer)
{
    struct fiber *me = machine.me;

    me->state = PARKED;
    me->word = word;
    me->until_ns = until_ns;
    me->timer = timer;
    me->woken = false;
    block();
    me->state = RUNNABLE;
    me->word = NULL;
    me->timer = -1;
}

void machine_sleep(int64_t ns)
{
    memory_empty();
    machine_park(NULL, machine.now_ns + ns, -1);
}

void machine_unpark(const void *word)
{
    struct fiber *found[FIBERS_MAX];
    unsigned n = 0;

    for (unsigned i = 0; i < machine.fibers; i++) {
        struct fiber *f = &machine.fiber[i];

        if (f->state == PARKED && f->word == word && !f->woken)
            found[n++] = f;
    }
    if (n == 0 || (machine.o.plant == PLANT_LOST_WAKE_UP && machine_below(300) == 0))
        return;
    struct fiber *f = found[n > 1 ? machine_below(n) : 0];
    f->woken = true;
    if (machine.o.by_rank && f->rank > machine.me->rank)
        machine.next = machine.steps; /* it goes on now */
}

void machine_unpark_all(const void *word)
{
    for (unsigned i = 0; i < machine.fibers; i++) {
        struct fiber *f = &machine.fiber[i];

        if (f->state == PARKED && f->word == word)
            f->woken = true;
    }
}

void machine_join(struct fiber *f)
{
    memory_empty();
    if (f->state != ENDED) {
        machine.me->state = JOINING;
        machine.me->joined = f;
        block();
        machine.me->state = RUNNABLE;
    }
    f->used = false;
}
