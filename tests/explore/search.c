/* search.c - which executions are tried.
 *
 * Depth first: an execution is the list of its choices; the next one is the same up to the last
 * place where there is a way not yet tried, and the plainest from there on.  It is run from the
 * beginning each time.  The bounds (explore.h) keep the list of ways short: first none may stray,
 * then by one switch, and so on, so a failure is found with as few switches as it needs.
 *
 * Random: a few places where the execution strays are drawn beforehand, evenly over the length of
 * the one before; everything else is plain.  The seed is printed.
 *
 * Replay: the way of a failure is the list of everything in it that was not GO, each with the
 * number of the point where it was chosen.
 */
#define _POSIX_C_SOURCE 200809L
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH_MAX   32768u
#define STRAYS_MAX  24u
#define HISTORY_MAX (4 * STEPS_MAX)

enum mode { DEPTH_FIRST, RANDOM, REPLAY };

struct choice {
    uint8_t n;
    uint8_t at;
    uint8_t way[WAYS_MAX];
};

struct step {
    uint32_t point;
    uint8_t way;
};

static struct {
    enum mode mode;
    struct explore_bounds bounds;
    struct choice stack[DEPTH_MAX];
    uint32_t depth; /* choices so far in this execution */
    uint32_t known; /* of these, how many are laid down */
    struct step history[HISTORY_MAX];
    uint32_t steps;
    struct step script[HISTORY_MAX];
    uint32_t script_steps;
    uint32_t script_at;
    uint64_t random;
    uint32_t chances; /* choices where a random execution might have strayed */
    uint32_t chances_before;
    uint32_t stray[STRAYS_MAX];
    uint32_t strays;
} search;

bool search_may_switch(void)
{
    return search.mode != DEPTH_FIRST || engine.used.switches < search.bounds.switches;
}

bool search_may_hold(void)
{
    return search.mode != DEPTH_FIRST || engine.used.holds < search.bounds.holds;
}

bool search_may_tick(void)
{
    return search.mode != DEPTH_FIRST || engine.used.times < search.bounds.times;
}

bool search_may_be_spurious(void)
{
    return search.mode != DEPTH_FIRST ? search.bounds.spurious > 0
                                      : engine.used.spurious < search.bounds.spurious;
}

bool search_skips(void)
{
    return search.mode == DEPTH_FIRST;
}

void search_plainly(void)
{
    search.mode = REPLAY;
    search.script_steps = search.steps = 0;
}

/* ---- One choice ---- */

static uint32_t random_below(uint32_t n)
{
    search.random ^= search.random << 13;
    search.random ^= search.random >> 7;
    search.random ^= search.random << 17;
    return (uint32_t)((search.random >> 32) * n >> 32);
}

static uint8_t choose_depth_first(const struct ways *w)
{
    if (w->n == 1)
        return w->way[0];
    if (search.depth == DEPTH_MAX) {
        fprintf(stderr, "explore: too many choices in one execution\n");
        exit(2);
    }
    struct choice *c = &search.stack[search.depth++];
    if (search.depth > search.known) {
        c->n = (uint8_t)w->n;
        c->at = 0;
        memcpy(c->way, w->way, sizeof c->way);
        search.known = search.depth;
    } else if (c->n != w->n || c->way[c->at] != w->way[c->at]) {
        fprintf(stderr, "explore: %s: the same choices led elsewhere\n", engine.scenario->name);
        exit(2);
    }
    return c->way[c->at];
}

static uint8_t choose_random(const struct ways *w, bool free)
{
    if (w->n == 1)
        return w->way[0];
    if (free)
        return w->way[random_below(w->n)];

    uint32_t chance = search.chances++;
    for (uint32_t i = 0; i < search.strays; i++) {
        if (search.stray[i] == chance)
            return w->way[1 + random_below(w->n - 1)];
    }
    return w->way[0];
}

static uint8_t choose_script(const struct ways *w)
{
    while (search.script_at < search.script_steps &&
           search.script[search.script_at].point < engine.point)
        search.script_at++;
    if (search.script_at < search.script_steps &&
        search.script[search.script_at].point == engine.point)
        return search.script[search.script_at++].way;
    return w->way[0];
}

uint8_t search_choose(const struct ways *w, bool free)
{
    uint8_t way;

    engine.point++;
    if (search.mode == DEPTH_FIRST)
        way = choose_depth_first(w);
    else if (search.mode == RANDOM)
        way = choose_random(w, free);
    else
        way = choose_script(w);
    if (way != GO && search.steps < HISTORY_MAX)
        search.history[search.steps++] = (struct step){ engine.point, way };
    return way;
}

/* ---- Ways as text ---- */

static void print_step(struct step s)
{
    printf("%u:", s.point);
    if (s.way & WRITE)
        printf("w%u.%u", s.way >> 4 & 7, s.way & 0xf);
    else if (s.way == HOLD)
        printf("h");
    else if (s.way == TICK)
        printf("c");
    else
        printf("%c%u", s.way >> 4 == 1 ? 't' : s.way >> 4 == 2 ? 's' : 'u', s.way & 0xf);
}

static bool read_step(const char **text, struct step *s)
{
    char *end;
    char kind;
    unsigned long n = 0;

    s->point = (uint32_t)strtoul(*text, &end, 10);
    if (end == *text || *end != ':')
        return false;
    kind = *++end;
    if (kind == '\0' || strchr("thscuw", kind) == NULL)
        return false;
    end++;
    if (kind != 'h' && kind != 'c')
        n = strtoul(end, &end, 10);
    if (kind == 'w') {
        if (*end++ != '.')
            return false;
        n = WRITE + n * 16 + strtoul(end, &end, 10);
    } else {
        n = kind == 'h'   ? HOLD
            : kind == 'c' ? TICK
                          : n + (kind == 't'   ? 0x10
                                 : kind == 's' ? 0x20
                                               : 0x30);
    }
    s->way = (uint8_t)n;
    *text = *end == ',' ? end + 1 : end;
    return *end == ',' || *end == '\0';
}

/* ---- Executions ---- */

static enum ending execute(void)
{
    search.depth = 0;
    search.steps = 0;
    search.script_at = 0;
    return engine_execute();
}

static enum ending execute_script(void)
{
    search.mode = REPLAY;
    engine.trace = true;
    printf("%6s  %-11s %-13s %-48s %s\n", "point", "thread", "operation", "", "where");
    enum ending ending = execute();
    engine.trace = false;
    if (ending == FAILED)
        printf("        %s\n", engine.failure);
    return ending;
}

/* The last execution failed: run it again, step by step. */
static void show_failure(void)
{
    printf("FAILED  %s: %s\n", engine.scenario->name, engine.failure);
    memcpy(search.script, search.history, search.steps * sizeof search.script[0]);
    search.script_steps = search.steps;
    execute_script();
    printf("again:  explore --scenario %s --replay ", engine.scenario->name);
    for (uint32_t i = 0; i < search.script_steps; i++) {
        if (i > 0)
            printf(",");
        print_step(search.script[i]);
    }
    printf("\n");
}

bool search_replay(const char *way)
{
    memory_share_all();
    search.script_steps = 0;
    while (*way != '\0') {
        if (search.script_steps == HISTORY_MAX ||
            !read_step(&way, &search.script[search.script_steps++])) {
            fprintf(stderr, "explore: not a way: %s\n", way);
            exit(2);
        }
    }
    return execute_script() != FAILED;
}

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* On to the next execution: false if there is none. */
static bool backtrack(void)
{
    search.known = search.depth;
    while (search.known > 0) {
        struct choice *c = &search.stack[search.known - 1];

        if (++c->at < c->n)
            return true;
        search.known--;
    }
    return false;
}

/* Everything within the bounds; again whenever another shared place was seen. */
static bool search_bounds(uint64_t limit, struct search_result *r)
{
    do {
        memory_learn();
        search.known = 0;
        r->executions = r->redundant = 0;
        do {
            enum ending ending = execute();

            if (ending == FAILED) {
                show_failure();
                return false;
            }
            r->executions += ending == COMPLETE;
            r->redundant += ending == REDUNDANT;
            r->cut = r->executions + r->redundant >= limit;
        } while (!memory_learned() && !r->cut && backtrack());
    } while (memory_learned());
    return true;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

bool search_all(const struct explore_bounds *bounds, uint64_t limit, struct search_result *r)
{
    double begin = seconds_now();
    bool passed = true;

    *r = (struct search_result){ 0 };
    search.mode = DEPTH_FIRST;
    for (unsigned n = 0; n < bounds->switches && passed && !r->cut; n++) {
        search.bounds = (struct explore_bounds){ .switches = n,
                                                 .holds = least(n, bounds->holds),
                                                 .times = least(n, bounds->times),
                                                 .spurious = least(n, bounds->spurious) };
        passed = search_bounds(limit, r);
    }
    search.bounds = *bounds;
    if (passed && !r->cut)
        passed = search_bounds(limit, r);
    r->seconds = seconds_now() - begin;
    return passed;
}

bool search_walk(uint64_t walks, uint64_t seed, struct search_result *r)
{
    double begin = seconds_now();
    bool passed = true;

    search.mode = RANDOM;
    search.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    search.chances_before = 64;
    for (uint64_t i = 0; i < walks && passed; i++) {
        if (memory_learned())
            memory_learn();
        search.strays = 1 + random_below(STRAYS_MAX >> random_below(5));
        for (uint32_t k = 0; k < search.strays; k++)
            search.stray[k] = random_below(search.chances_before);
        search.chances = 0;
        if (execute() == FAILED) {
            show_failure();
            passed = false;
        }
        search.chances_before = search.chances > 8 ? search.chances : 8;
        r->walks++;
    }
    r->seconds += seconds_now() - begin;
    return passed;
}
