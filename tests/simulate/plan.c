/* plan.c - what one seed draws. */
#include "plan.h"

#include <string.h>

const char *const plan_names[KINDS] = {
#define PLAN_NAME(kind, name, every, about) [KIND_##kind] = (name),
    PLAN_KINDS(PLAN_NAME)
#undef PLAN_NAME
};

static const unsigned every[KINDS] = {
#define PLAN_EVERY(kind, name, one_in, about) [KIND_##kind] = (one_in),
    PLAN_KINDS(PLAN_EVERY)
#undef PLAN_EVERY
};

bool plan_has(const struct plan *p, enum plan_kind kind)
{
    return (p->on >> kind & 1) != 0;
}

bool plan_kind_by_name(const char *name, enum plan_kind *kind)
{
    for (unsigned k = 0; k < KINDS; k++) {
        *kind = (enum plan_kind)k;
        if (strcmp(plan_names[k], name) == 0)
            return true;
    }
    return false;
}

uint64_t plan_stream(const struct plan *p, unsigned life, unsigned thread, unsigned verb)
{
    uint64_t state = p->seed * 1000003 + life;

    state = model_random(&state) + thread;
    state = model_random(&state) + verb;
    return model_random(&state);
}

/* ---- Which kinds ---- */

#define BIT(kind) (UINT64_C(1) << KIND_##kind)

/* Kinds whose faults need each other: some of these are favoured over all else.  What goes on
 * around the calls: */
static const uint64_t grounds[] = {
    BIT(DISCARD) | BIT(FREES) | BIT(WAITS),
    BIT(MANUAL) | BIT(DISCARD) | BIT(FREES),
    BIT(WORKERS) | BIT(DISCARD) | BIT(FREES),
    BIT(ALWAYS) | BIT(DISCARD) | BIT(WAITS),
    BIT(ALWAYS) | BIT(WAITS) | BIT(BUFFERS),
    BIT(STORED) | BIT(DISCARD) | BIT(LATENCY) | BIT(REPEATS),
    BIT(STORED) | BIT(DISCARD) | BIT(POLLS) | BIT(AWAY) | BIT(DOUBT),
    BIT(STORED) | BIT(LATENCY) | BIT(REPEATS) | BIT(LOSSES),
    BIT(STORED) | BIT(LOSSES) | BIT(DOUBT) | BIT(AWAY) | BIT(LATENCY) | BIT(REPEATS),
    BIT(STORED) | BIT(KILLS) | BIT(FULL) | BIT(LATENCY) | BIT(LOSSES),
    BIT(STORED) | BIT(ASYNC) | BIT(AWAY) | BIT(LOSSES) | BIT(FLUSHES),
    BIT(STORED) | BIT(STANDBY) | BIT(STOPS) | BIT(LATENCY) | BIT(POLLS),
    BIT(REALTIME) | BIT(STEPS) | BIT(DRIFT) | BIT(JUMPS),
    BIT(MEMORY) | BIT(SYSTEM),
};
/* And what is called: */
static const uint64_t calls[] = {
    BIT(KEYS) | BIT(POLICIES) | BIT(RETAIN),
    BIT(KEYS) | BIT(POLICIES) | BIT(CANCEL) | BIT(UPDATE),
    BIT(LIMITS) | BIT(GROUPS) | BIT(RELIMITS) | BIT(TOPICS),
    BIT(PAUSES) | BIT(LIMITS) | BIT(RELIMITS) | BIT(TOPICS),
    BIT(BURY) | BIT(ATTEMPTS) | BIT(EXPIRY) | BIT(KICKS) | BIT(CROWDS),
    BIT(BURY) | BIT(CANCEL) | BIT(UPDATE) | BIT(AMEND) | BIT(LOOKS),
    BIT(CANCEL) | BIT(MOVE) | BIT(UPDATE) | BIT(AMEND),
    BIT(BATCHES) | BIT(CLEARS) | BIT(KICKS) | BIT(TOPICS),
    BIT(CAPACITY) | BIT(WAITS) | BIT(BATCHES),
    BIT(ROUNDS) | BIT(SNOOZE) | BIT(CANCEL),
    BIT(METRICS) | BIT(TOPICS) | BIT(CANCEL),
    BIT(LOOKS) | BIT(METRICS) | BIT(SHORT),
};
#define GROUNDS (sizeof grounds / sizeof grounds[0])
#define CALLS   (sizeof calls / sizeof calls[0])

/* One of each, and in half of the seeds one more of either; in one large seed of three none. */
static uint64_t draw_themes(uint64_t *random, bool small)
{
    uint64_t more = model_below(random, 2 * (GROUNDS + CALLS));
    uint64_t themes = grounds[model_below(random, GROUNDS)];

    themes |= calls[model_below(random, CALLS)];
    if (!small && model_below(random, 3) == 0)
        return 0;
    if (more < GROUNDS)
        themes |= grounds[more];
    else if (more < GROUNDS + CALLS)
        themes |= calls[more - GROUNDS];
    return themes;
}

/* How threads take turns. */
static const uint64_t turns =
    BIT(JUMPS) | BIT(DRIFT) | BIT(SPURIOUS) | BIT(BUFFERS) | BIT(RANKS) | BIT(BACK);

/* Of so many seeds of six * every[] that are of this size: those that have the kind. */
static uint64_t of_six(enum plan_kind k, uint64_t favoured, bool small)
{
    if (favoured == 0)
        return 6;
    if (favoured >> k & 1)
        return (small ? 5 : 4) * (uint64_t)every[k];
    if (small)
        return turns >> k & 1 ? 7 : 2;
    return 3;
}

static uint64_t draw_kinds(uint64_t *random, bool small)
{
    uint64_t favoured = draw_themes(random, small);
    uint64_t on = 0;

    for (unsigned k = 0; k < KINDS; k++)
        if (model_below(random, 6 * (uint64_t)every[k]) <
                of_six((enum plan_kind)k, favoured, small) ||
            every[k] == 1)
            on |= UINT64_C(1) << k;
    if (model_below(random, 6) == 0) /* then the library takes shorter ways */
        on &= ~BIT(RESERVE);
    return on;
}

static uint64_t pick(uint64_t *random, const uint64_t *of, size_t n)
{
    return of[model_below(random, n)];
}

#define PICK(random, ...)                             \
    pick((random), (const uint64_t[]){ __VA_ARGS__ }, \
         sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static uint32_t rate(const struct plan *p, enum plan_kind kind, uint64_t drawn)
{
    return plan_has(p, kind) ? (uint32_t)drawn : 0;
}

/* About so long a pool has a job until it is answered for.  Where time jumps more often (it likes
 * to jump to where somebody wakes, so to the end of a lease) leases end before nearly every answer:
 * a job is handled a hundred thousand times, and meanwhile others wait for its room. */
#define HANDLED_STEPS 200u

static void draw_machine(struct plan *p, uint64_t *random)
{
    struct machine_options *m = &p->machine;

    m->steps_max = 200000000;
    m->switch_every = (uint32_t)PICK(random, 2, 5, 10, 30, 100, 1000);
    m->by_rank = plan_has(p, KIND_RANKS);
    m->back_every = rate(p, KIND_BACK, PICK(random, 1, 4, 20));
    m->back_fiber = (uint32_t)model_below(random, 2 * BACK_FIBERS);
    m->back_after = model_below(random, 2) == 0;
    m->back_kinds = (uint32_t)PICK(random, 2, 4, 16, 64);
    m->back_kind = model_random(random);
    m->back_steps = PICK(random, 100, 1000, 10000, 10000);
    m->stir_every = rate(p, KIND_SPURIOUS, PICK(random, 2, 10, 100));
    m->leap_every = rate(p, KIND_JUMPS, PICK(random, 2, 10, 100));
    if ((p->drawn >> KIND_WORKERS & 1) != 0)
        m->leap_every = 0;
    m->jump_every = rate(p, KIND_JUMPS, PICK(random, 10, 100, 1000));
    if ((p->drawn >> KIND_WORKERS & 1) != 0 && m->jump_every > 0 &&
        m->jump_every * m->switch_every < HANDLED_STEPS)
        m->jump_every = HANDLED_STEPS / m->switch_every;
    m->jump_max_ns = (int64_t)PICK(random, 1, 1000, 1000000, 100000000);
    m->drift_every = rate(p, KIND_DRIFT, PICK(random, 1, 3, 20));
    m->spurious_every = rate(p, KIND_SPURIOUS, PICK(random, 3, 20, 100));
    m->interrupt_every = rate(p, KIND_INTERRUPTS, PICK(random, 2, 10));
    m->hold_every = rate(p, KIND_BUFFERS, PICK(random, 2, 5, 30));
    m->linger_every = (uint32_t)PICK(random, 3, 20, 200);
    m->no_memory_every = rate(p, KIND_MEMORY, PICK(random, 3, 10, 50));
    m->no_thread_every = rate(p, KIND_SYSTEM, 4);
    m->no_descriptor_every = rate(p, KIND_SYSTEM, 4);
    m->clock_step_every = rate(p, KIND_STEPS, PICK(random, 20, 300));
    m->clock_step_max_ns = (int64_t)PICK(random, 1, 1000000, 10000000000);
    if (p->clock != DUE_CLOCK_REALTIME || m->clock_step_every == 0)
        m->clock_step_every = 0, m->clock_step_max_ns = 0;
}

static void leave_out(struct plan *p, enum plan_kind kind)
{
    p->on &= ~(UINT64_C(1) << kind);
}

/* Kinds that do not go together: with a paused topic a queue does not drain; a store has the wall
 * clock or one that is turned, and its own threads; and its queue is closed when all have ended, or
 * killed. */
static void exclude(struct plan *p)
{
    static const enum plan_kind not_stored[] = { KIND_BOOTTIME, KIND_NEVER, KIND_DRAIN,
                                                 KIND_CAPACITY };
    static const enum plan_kind only_stored[] = {
        KIND_KILLS, KIND_ASYNC, KIND_LATENCY, KIND_AWAY,
        KIND_DOUBT, KIND_FULL,  KIND_LOSSES,  KIND_REPEATS
    };

    if (!plan_has(p, KIND_LIMITS))
        leave_out(p, KIND_RELIMITS);
    if (!plan_has(p, KIND_STORED))
        leave_out(p, KIND_STANDBY);
    if (!plan_has(p, KIND_STANDBY))
        leave_out(p, KIND_STOPS);
    for (size_t i = 0; i < sizeof not_stored / sizeof not_stored[0]; i++)
        if (plan_has(p, KIND_STORED))
            leave_out(p, not_stored[i]);
    for (size_t i = 0; i < sizeof only_stored / sizeof only_stored[0]; i++)
        if (!plan_has(p, KIND_STORED))
            leave_out(p, only_stored[i]);
    if (plan_has(p, KIND_STANDBY)) { /* what was told to whom of these is not kept apart */
        leave_out(p, KIND_ATTEMPTS);
        leave_out(p, KIND_EXPIRY);
        leave_out(p, KIND_ROUNDS);
        if (plan_has(p, KIND_MANUAL)) /* each has a clock of its own */
            leave_out(p, KIND_RETAIN);
    }
    if (plan_has(p, KIND_READABLE)) /* who sleeps for that is not in the queue */
        leave_out(p, KIND_FREES);
    if (plan_has(p, KIND_STORED) || plan_has(p, KIND_MANUAL))
        leave_out(p, KIND_READABLE); /* a poll may leave what it has begun; and time is another */
    if (plan_has(p, KIND_FULL))   /* what it refuses although that was confirmed is had again, or */
        leave_out(p, KIND_ASYNC); /* shown to on_discard, before on_settled says so */
    if (plan_has(p, KIND_KILLS))  /* who is crowded out leaves the store first, and is shown then */
        leave_out(p, KIND_CROWDS);
    if (plan_has(p, KIND_FULL))   /* what a poll has taken, and nobody came for, it does not take */
        leave_out(p, KIND_POLLS); /* back: whoever reserves it then has a job that is not stored */
    if (plan_has(p, KIND_WORKERS))
        leave_out(p, KIND_KEYS); /* of a job that it has not begun the key is taken over, unseen */
    if (plan_has(p, KIND_DRAIN) && !plan_has(p, KIND_DISCARD))
        leave_out(p, KIND_PAUSES);
}

static void draw_queue(struct plan *p, uint64_t *random)
{
    static const int64_t horizons[] = { DUE_NS(0),   DUE_NS(50), DUE_US(30),  DUE_MS(2),
                                        DUE_MS(300), DUE_S(10),  DUE_S(36000) };
    size_t n = model_below(random, sizeof horizons / sizeof horizons[0]);

    p->clock = plan_has(p, KIND_REALTIME) || plan_has(p, KIND_STORED) ? DUE_CLOCK_REALTIME
               : plan_has(p, KIND_BOOTTIME)                           ? DUE_CLOCK_BOOTTIME
                                                                      : DUE_CLOCK_MONOTONIC;
    if (plan_has(p, KIND_MANUAL))
        p->clock = DUE_CLOCK_MONOTONIC;
    p->proxies = plan_has(p, KIND_ALWAYS)  ? DUE_PROXIES_ALWAYS
                 : plan_has(p, KIND_NEVER) ? DUE_PROXIES_NEVER
                                           : DUE_PROXIES_ADAPTIVE;
    p->order = plan_has(p, KIND_PRIORITIES) && model_below(random, 2) == 0 ? DUE_ORDER_PRIORITY
                                                                           : DUE_ORDER_DEADLINE;
    p->horizon_ns = horizons[n];
    p->grain_ns = 1 + (model_below(random, 2) == 0 ? p->horizon_ns / 4 : 0);
    p->lease_ns = 1 + p->horizon_ns / (int64_t)PICK(random, 1, 2, 10) + DUE_US(1);
    p->limit = 1 + (unsigned)model_below(random, 3);
    if (!plan_has(p, KIND_LIMITS))
        p->limit = 0;
    p->open_ns = (int64_t)model_below(random, (uint64_t)p->horizon_ns * 4 + 1000);
    p->capacity = 1 + (size_t)PICK(random, 0, 1, 2, 7, 30);
    if (!plan_has(p, KIND_CAPACITY))
        p->capacity = 0;
    p->close = plan_has(p, KIND_DISCARD) ? CLOSE_DISCARD
               : plan_has(p, KIND_DRAIN) ? CLOSE_DRAIN
                                         : CLOSE_QUIET;
}

static void draw_retry(const struct plan *p, uint64_t *random, due_retry *r)
{
    r->kind = (enum due_retry_kind)(DUE_RETRY_FIXED + model_below(random, 3));
    r->attempts_max = (uint32_t)PICK(random, 0, 1, 2, 3);
    if (r->kind != DUE_RETRY_LADDER) {
        r->delay_ns = (int64_t)model_below(random, (uint64_t)p->lease_ns);
        if (model_below(random, 2) == 0 || r->attempts_max == 0) /* else it grows without end */
            r->cap_ns = 2 * p->lease_ns;
        return;
    }
    r->rungs = 1 + (uint32_t)model_below(random, 4);
    for (unsigned i = 0; i < r->rungs; i++)
        r->rung_ns[i] = (int64_t)model_below(random, (uint64_t)p->lease_ns);
}

/* How what has failed is tried again. */
static void draw_retries(struct plan *p, uint64_t *random)
{
    for (unsigned i = 1; i < PLAN_RETRIES; i++)
        draw_retry(p, random, &p->retry[i]);
    p->queue_retry = (unsigned)model_below(random, PLAN_RETRIES);
    for (unsigned i = 0; i < PLAN_TOPICS; i++)
        p->topic_retry[i] = (unsigned)model_below(random, PLAN_RETRIES);
    p->attempts_lazy = model_below(random, 3) == 0;
    p->dead_max = (size_t)PICK(random, 0, 1, 3);
    p->dead_keep_ns = (int64_t)PICK(random, 0, 1, 1000, 1000000) * (p->horizon_ns / 1000 + 1);
    if (!plan_has(p, KIND_CROWDS))
        p->dead_max = 0, p->dead_keep_ns = 0;
    if (plan_has(p, KIND_ATTEMPTS))
        return;
    p->queue_retry = 0;
    memset(p->topic_retry, 0, sizeof p->topic_retry);
}

static unsigned per_mille(const struct plan *p, enum plan_kind kind, uint64_t drawn)
{
    return plan_has(p, kind) ? (unsigned)drawn : 0;
}

/* Half of the stores do. */
static bool keeps_settings(const struct plan *p, uint64_t *random)
{
    bool any = plan_has(p, KIND_PAUSES) || plan_has(p, KIND_LIMITS);

    return model_below(random, 2) == 0 && any && plan_has(p, KIND_STORED);
}

static void draw_store(struct plan *p, uint64_t *random)
{
    unsigned *faults = p->store_faults;

    p->lives = 1 + (unsigned)model_below(random, p->small ? 2 : 4);
    p->kill_within = PICK(random, 300, 3000, 20000, 100000);
    p->latency_ns = (int64_t)PICK(random, 1, 1000, 1000000, 50000000);
    p->store_timeout_ns = (int64_t)PICK(random, 1000000, 20000000, 5000000000);
    p->unsettled_max = PICK(random, 1, 5, 100000);
    p->batch_changes = PICK(random, 1, 2, 5, 256);
    p->page_max = plan_has(p, KIND_REPEATS) ? PICK(random, 1, 2, 10, SIZE_MAX) : SIZE_MAX;
    p->confirm = plan_has(p, KIND_ASYNC) ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC;
    faults[MEMORY_AWAY] = per_mille(p, KIND_AWAY, PICK(random, 5, 50, 300));
    faults[MEMORY_DOUBT_NOT] = per_mille(p, KIND_DOUBT, PICK(random, 5, 50, 300));
    faults[MEMORY_DOUBT_LANDED] = per_mille(p, KIND_DOUBT, PICK(random, 5, 50, 300));
    faults[MEMORY_FULL] = per_mille(p, KIND_FULL, PICK(random, 20, 200));
    faults[MEMORY_LOSE] = per_mille(p, KIND_LOSSES, PICK(random, 2, 20));
    faults[MEMORY_REPEAT] = per_mille(p, KIND_REPEATS, PICK(random, 50, 300));
    p->lives += p->lives == 1 && plan_has(p, KIND_DISCARD); /* all is taken out in the last one */
    p->put_again = plan_has(p, KIND_REPEATS) && model_below(random, 2) == 0;
    p->settings = keeps_settings(p, random);
    if (!plan_has(p, KIND_STORED))
        p->lives = 1;
    if (!plan_has(p, KIND_LATENCY))
        p->latency_ns = 0;
}

/* Programs that want one queue: each has some lives, and in the last one of all everything is taken
 * out. */
static void draw_owners(struct plan *p, uint64_t *random)
{
    /* Not much shorter than anybody sleeps, since it is renewed three times meanwhile. */
    int64_t lease_ns = DUE_MS(20) + p->machine.clock_step_max_ns / 4;

    lease_ns += p->store_timeout_ns / (int64_t)PICK(random, 1, 4, 20);
    lease_ns += p->horizon_ns / (int64_t)PICK(random, 1, 2, 8);

    p->machine.stop_every = rate(p, KIND_STOPS, PICK(random, 500, 5000, 50000));
    p->machine.stop_max_ns = 3 * lease_ns;
    p->seats = 1;
    if (!plan_has(p, KIND_STANDBY))
        return;
    p->seats = PLAN_SEATS;
    p->lives = PLAN_SEATS * (1 + (unsigned)model_below(random, p->small ? 1 : 3)) + 1;
    p->owner_lease_ns = lease_ns;
}

/* Seven of eight seeds are small: thousands of them fit in a second, and what is there meets. */
static void draw_size(struct plan *p, uint64_t *random)
{
    p->threads = p->small ? 2 + (unsigned)model_below(random, 3)
                          : 1 + (unsigned)model_below(random, PLAN_THREADS_MAX);
    p->verbs = p->small ? (unsigned)PICK(random, 2, 3, 4, 6, 8, 12)
                        : (unsigned)PICK(random, 3, 6, 10, 15, 20, 40, 60, PLAN_VERBS_MAX);
    if (plan_has(p, KIND_STANDBY) &&
        p->verbs > 40) /* it takes long enough until it owns the jobs */
        p->verbs = 40;
    p->answer = (unsigned)PICK(random, 20, 20, 20, 1, 12, 14, 15, 19);
    p->keys = (unsigned)PICK(random, 1, 2, PLAN_KEYS);
    p->groups = (unsigned)PICK(random, 1, PLAN_GROUPS);
    p->favoured = model_random(random) & model_random(random);
    p->favoured &= p->small ? UINT64_MAX : model_random(random);
    p->favoured &= model_below(random, 3) == 0 ? 0 : UINT64_MAX;
}

/* What happens at the same time. */
static void draw_meetings(struct plan *p, uint64_t *random)
{
    unsigned verbs = p->threads * p->verbs;

    p->meet_every = (unsigned)PICK(random, 0, 0, 1, 2);
    p->close_verbs = model_below(random, 3) != 0 ? 1 + (unsigned)model_below(random, verbs) : 0;
    p->kill_verbs = model_below(random, 3) != 0 ? 1 + (unsigned)model_below(random, verbs) : 0;
    p->meet_steps = PICK(random, 30, 300, 1000);
}

void plan_draw(struct plan *p, uint64_t seed, const struct plan_wishes *w)
{
    uint64_t random = seed ^ UINT64_C(0x5851f42d4c957f2d);

    memset(p, 0, sizeof *p);
    p->seed = seed;
    p->small = model_below(&random, 8) != 0;
    p->on = draw_kinds(&random, p->small);
    exclude(p);
    p->drawn = p->on;
    draw_size(p, &random);
    p->on &= ~w->without;
    exclude(p);
    draw_meetings(p, &random);
    draw_queue(p, &random);
    draw_machine(p, &random);
    draw_store(p, &random);
    draw_owners(p, &random);
    draw_retries(p, &random);
    p->machine.seed = model_random(&random) + w->schedule;
    if (w->threads != 0 && w->threads < p->threads)
        p->threads = w->threads;
    if (w->verbs != 0 && w->verbs < p->verbs)
        p->verbs = w->verbs;
    p->machine.plant = w->plant;
    p->skip = w->skip;
}

/* It has other jobs, and perhaps no store; but the same clocks, and time passes as fast. */
void plan_draw_second(struct plan *second, const struct plan *p)
{
    uint64_t random = p->seed ^ UINT64_C(0x2545f4914f6cdd1d);

    *second = *p;
    second->seed = model_random(&random);
    if (!plan_has(p, KIND_STANDBY) && model_below(&random, 2) == 0)
        leave_out(second, KIND_STORED);
    exclude(second);
    draw_queue(second, &random);
    second->horizon_ns = p->horizon_ns;
    second->grain_ns = p->grain_ns;
    second->lease_ns = p->lease_ns;
    second->open_ns = p->open_ns;
    second->threads = 1 + (unsigned)model_below(&random, p->threads);
    if (!plan_has(second, KIND_STORED))
        second->lives = 1;
    second->settings = keeps_settings(second, &random);
    if (second->clock != DUE_CLOCK_REALTIME) /* that is set does not concern it */
        second->machine.clock_step_max_ns = 0;
}
