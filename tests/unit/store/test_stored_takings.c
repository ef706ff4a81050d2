/* Many jobs that a poll has begun to take at once, of two topics, some of which come again: whoever
 * wants some of them next, for good or on a lease, at once or in his turn, each is had once. */
#include <stdio.h>

#include "lab/shop.h"
#include "lab/take.h"

#define JOBS   80 /* at most; most times there are few */
#define EVERY  1000
#define ROUNDS 60

static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 };

static atomic_uint discards; /* jobs and rounds that were shown */

static void on_discard(void *ctx, const due_job *job)
{
    (void)ctx, (void)job;
    atomic_fetch_add(&discards, 1);
}

struct world {
    struct shop s;
    struct memory_limiter *limiter;
    size_t n; /* jobs */
    due_id id[JOBS];
    unsigned had[JOBS];
    int topic[2];
    uint64_t seed;
};

static unsigned chance(struct world *w, unsigned n)
{
    w->seed = w->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(w->seed >> 33) % n;
}

/* Of a job: what it is is in its number. */
static bool comes_again(size_t i)
{
    return i % 2 == 0;
}

static int topic_of(const struct world *w, size_t i)
{
    return w->topic[i / 2 % 2];
}

static struct world world_make(uint64_t seed, bool limited, bool async)
{
    struct world w = { .seed = seed };

    w.n = seed % 8 == 0 ? 33 + chance(&w, JOBS - 33) : 1 + chance(&w, 12);
    w.s =
        shop_make(.start_ns = 5, .with.store_timeout_ns = DUE_S(50), .with.on_discard = on_discard,
                  .with.confirm = async ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC);
    w.limiter = memory_limiter_new(w.s.disk);
    w.topic[0] = lab_topic(&w.s.lab, "a");
    w.topic[1] = lab_topic(&w.s.lab, "b");
    for (size_t i = 0; i < w.n; i++)
        w.id[i] = lab_enqueue(&w.s.lab, "tea", .at_ns = 5, .topic = topic_of(&w, i),
                              .more = EXTRA(.every_ns = comes_again(i) ? EVERY : 0,
                                            .retry = limited ? &twice : NULL));
    cr_assert_eq(due_flush(w.s.lab.q, DUE_S(50)), 0);
    return w;
}

static size_t number_of(const struct world *w, due_id id)
{
    size_t i = 0;

    while (i < w->n && !due_id_equal(w->id[i], id))
        i++;
    cr_assert_lt(i, w->n, "a job of nobody's");
    return i;
}

/* Some are had: they are of a topic that was wanted, and on a lease no rounds that were taken. */
static void have(struct world *w, due_job *jobs, int n, const int *topic, bool leased)
{
    for (int k = 0; k < n; k++) {
        size_t i = number_of(w, jobs[k].id);

        cr_expect(topic == NULL || topic_of(w, i) == *topic, "of another topic");
        w->had[i]++;
        if (!leased)
            due_job_done(&jobs[k]);
        else
            cr_expect_eq(due_ack(&jobs[k]), 0);
    }
}

/* Is there any left for him?  Rounds that were taken for good are not had on a lease. */
static bool any_left(const struct world *w, const int *topic, bool leased)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->had[i] == 0 && (topic == NULL || topic_of(w, i) == *topic) &&
            !(leased && comes_again(i)))
            return true;
    return false;
}

/* One who wants some: of one topic or of both, one or many; and if he @may he waits. */
static int want(struct world *w, bool leased, bool may)
{
    due_job jobs[JOBS];
    const int *topic = chance(w, 3) < 2 ? &w->topic[chance(w, 2)] : NULL;
    size_t max = 1 + chance(w, chance(w, 2) == 0 ? 2 : JOBS);
    size_t n = topic != NULL;
    int64_t timeout_ns = may && any_left(w, topic, leased) ? 1 : 0;

    lab_turn_to(&w->s.lab, 5);
    int rc = leased ? take_leased_some(w->s.lab.q, topic, n, jobs, max, 100, timeout_ns)
                    : take_some(w->s.lab.q, topic, n, jobs, max, timeout_ns);
    if (rc > 0)
        have(w, jobs, rc, topic, leased);
    return rc;
}

static size_t had_of_all(const struct world *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        cr_expect_leq(w->had[i], 1u, "job %zu, seed %llu", i, (unsigned long long)w->seed);
        n += w->had[i] > 0;
    }
    return n;
}

/* Whatever is left, for good. */
static void have_rest(struct world *w)
{
    for (int tries = 0; tries < 2000 && had_of_all(w) < w->n; tries++) {
        due_job jobs[JOBS];
        int rc = take_some(w->s.lab.q, NULL, 0, jobs, JOBS, 0);

        if (rc > 0)
            have(w, jobs, rc, NULL, false);
        else
            crew_sleep(DUE_MS(1));
    }
}

static void finish(struct world *w)
{
    cr_expect_eq(due_flush(w->s.lab.q, DUE_S(50)), 0);
    for (size_t i = 0; i < w->n; i++)
        cr_expect_eq(w->had[i], 1u, "job %zu, seed %llu", i, (unsigned long long)w->seed);
    cr_expect_eq(memory_disk_jobs(w->s.disk), (w->n + 1) / 2, "the next rounds");
    cr_expect_eq(lab_stats(&w->s.lab).waiting, (w->n + 1) / 2);
    cr_expect_eq(atomic_load(&discards), 0u);
    shop_close(&w->s);
    memory_limiter_free(w->limiter);
}

static void hold(struct world *w)
{
    memory_store_fault(w->s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                          .times = MEMORY_ALWAYS,
                                                          .kind = MEMORY_BLOCK_AFTER,
                                                          .limiter = w->limiter });
}

/* @leases: some want them on a lease.  A poll has begun with all, or with those of a topic. */
static void play(uint64_t seed, bool leases)
{
    struct world w = world_make(seed, leases, seed % 2 != 0);
    due_job jobs[JOBS];

    hold(&w);
    for (unsigned polls = 1 + chance(&w, 2); polls > 0; polls--)
        cr_expect_eq(take_some(w.s.lab.q, NULL, 0, jobs, polls == 1 ? JOBS : 1, 0), DUE_EAGAIN);
    bool landed = chance(&w, 2) != 0;
    if (!landed) {
        for (unsigned i = chance(&w, 4); i > 0; i--)
            cr_expect_eq(want(&w, false, false), DUE_EAGAIN, "nothing has landed");
    }
    memory_limiter_open(w.limiter);
    if (landed)
        cr_expect_eq(due_flush(w.s.lab.q, DUE_S(50)), 0);
    for (unsigned i = 2 + chance(&w, 8); i > 0; i--)
        want(&w, leases && chance(&w, 3) == 0, chance(&w, 2) == 0);
    have_rest(&w);
    finish(&w);
}

/* The queue closes, and nobody came for the rest: that stays in the store, but for rounds, which
 * are shown. */
static void close_on(uint64_t seed)
{
    struct world w = world_make(seed, false, seed % 2 != 0);
    due_job jobs[JOBS];
    size_t stay = 0;
    unsigned shown = 0;

    atomic_store(&discards, 0);
    hold(&w);
    cr_expect_eq(take_some(w.s.lab.q, NULL, 0, jobs, JOBS, 0), DUE_EAGAIN);
    memory_limiter_open(w.limiter);
    if (seed % 3 != 0)
        cr_expect_eq(due_flush(w.s.lab.q, DUE_S(50)), 0);
    for (unsigned i = chance(&w, 3); i > 0; i--)
        want(&w, false, false);
    cr_expect_eq(due_close(w.s.lab.q, DUE_CLOSE_DISCARD, DUE_S(50)), 0);
    for (size_t i = 0; i < w.n; i++) {
        stay += comes_again(i) || w.had[i] == 0;
        shown += comes_again(i) && w.had[i] == 0;
    }
    cr_expect_eq(memory_disk_jobs(w.s.disk), stay, "seed %llu", (unsigned long long)seed);
    cr_expect_eq(atomic_load(&discards), shown, "seed %llu", (unsigned long long)seed);
    shop_close(&w.s);
    memory_limiter_free(w.limiter);
}

Test(stored_takings, that_nobody_came_for_stay_in_the_store, .timeout = 60)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        close_on(seed);
}

Test(stored_takings, are_had_once_each_by_whoever_wants_them, .timeout = 60)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        play(seed, false);
}

Test(stored_takings, are_had_once_each_though_some_want_a_lease, .timeout = 60)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        play(seed, true);
}
