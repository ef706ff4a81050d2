/* A queue that drains has shared out how many may leave before anybody need sum again: whoever
 * leaves, whichever way, pays for one. */
#include <stdio.h>

#include "lab/lab.h"
#include "lab/take.h"

#include "queue/queue.h"

enum { JOBS = 1000, FEW = 3, KEYED = 50 };

struct ways {
    struct lab lab;
    due_id id[JOBS];
    size_t named; /* of the ids, those that were used */
    int topic;
};

static uint64_t spare(struct lab *lab)
{
    uint64_t all = 0;

    for (size_t i = 0; i < DUE__SHARDS; i++)
        all += lab->q->slab.shard[i].spare;
    return all;
}

/* ---- Ways out: how many have left ---- */

static int dequeued(struct ways *w)
{
    due_job job;

    cr_assert_eq(due_dequeue(w->lab.q, &job, 0), 0);
    due_job_done(&job);
    return 1;
}

static int taken(struct ways *w)
{
    due_job job[FEW];

    cr_assert_eq(due_take(w->lab.q, NULL, job, FEW, 0), FEW);
    due_jobs_done(job, FEW);
    return FEW;
}

static int of_a_topic(struct ways *w)
{
    due_job job;

    cr_assert_eq(take_from(w->lab.q, &w->topic, 1, &job, 0), 0);
    due_job_done(&job);
    return 1;
}

static int acked(struct ways *w)
{
    due_job job;

    cr_assert_eq(due_reserve(w->lab.q, &job, 0), 0);
    cr_assert_eq(due_ack(&job), 0);
    return 1;
}

/* One that has a key leaves by another way. */
static int acked_with_a_key(struct ways *w)
{
    int topic = w->topic + 2;
    due_job job;

    cr_assert_eq(take_leased_from(w->lab.q, &topic, 1, &job, DUE_S(1), 0), 0);
    cr_assert_eq(due_ack(&job), 0);
    return 1;
}

static int dequeued_with_a_key(struct ways *w)
{
    int topic = w->topic + 2;
    due_job job;

    cr_assert_eq(take_from(w->lab.q, &topic, 1, &job, 0), 0);
    due_job_done(&job);
    return 1;
}

static int acked_together(struct ways *w)
{
    due_job job[FEW];

    cr_assert_eq(take_leased_some(w->lab.q, NULL, 0, job, FEW, DUE_S(1), 0), FEW);
    cr_assert_eq(due_ack_batch(job, FEW, NULL), FEW);
    return FEW;
}

static int cancelled(struct ways *w)
{
    cr_assert_eq(due_cancel(w->lab.q, w->id[w->named++], NULL), 0);
    return 1;
}

static int cancelled_and_read(struct ways *w)
{
    due_job job;

    cr_assert_eq(due_cancel(w->lab.q, w->id[w->named++], &job), 0);
    due_job_done(&job);
    return 1;
}

static int cancelled_together(struct ways *w)
{
    cr_assert_eq(due_cancel_batch(w->lab.q, w->id + w->named, FEW, NULL), FEW);
    w->named += FEW;
    return FEW;
}

static int buried(struct ways *w)
{
    due_job job;

    cr_assert_eq(due_reserve(w->lab.q, &job, 0), 0);
    cr_assert_eq(due_bury(&job, "why"), 0);
    return 1;
}

/* The one that was buried had left before, and pays once more: so it is summed a little sooner. */
static int cleared_dead(struct ways *w)
{
    cr_assert_eq(due_clear_dead(w->lab.q, DUE_ALL_TOPICS, NULL), 0);
    return 1;
}

static int put_off(struct ways *w)
{
    due_job job;

    cr_assert_eq(due_reserve(w->lab.q, &job, 0), 0);
    cr_assert_eq(due_nack(&job, DUE_S(1000)), 0);
    cr_assert_eq(due_reserve(w->lab.q, &job, 0), 0);
    cr_assert_eq(due_snooze(&job, DUE_S(1000)), 0);
    return 0;
}

static int lapsed(struct ways *w)
{
    due_job job;

    cr_assert_eq(take_leased(w->lab.q, &job, 1, 0), 0);
    lab_advance(&w->lab, 2);
    due_job_done(&job);
    return 0;
}

static int cleared(struct ways *w)
{
    uint64_t n = 0;

    cr_assert_eq(due_clear(w->lab.q, w->topic + 1, &n), 0);
    cr_assert_eq(n, (uint64_t)FEW);
    return (int)n;
}

static int (*const ways_out[])(struct ways *) = {
    dequeued,
    taken,
    of_a_topic,
    acked,
    acked_with_a_key,
    dequeued_with_a_key,
    acked_together,
    cancelled,
    cancelled_and_read,
    cancelled_together,
    buried,
    cleared_dead,
    put_off,
    lapsed,
};

/* In whichever order, and once more. */
static void expect_paid(struct ways *w, int (*way)(struct ways *), size_t which)
{
    uint64_t before = spare(&w->lab);
    int n = way(w);

    cr_expect_eq(before - spare(&w->lab), (uint64_t)n, "way %zu: %ju paid, %d left", which,
                 (uintmax_t)(before - spare(&w->lab)), n);
}

static void put_with_keys(struct lab *lab, int topic)
{
    char key[8];

    cr_assert_eq(lab_topic(lab, "three"), topic);
    for (int i = 0; i < KEYED; i++) {
        snprintf(key, sizeof key, "%d", i);
        cr_assert_eq(lab_put_key(lab, key, DUE_KEY_REFUSE, "x", NULL, (due_spec){ .topic = topic }),
                     0);
    }
}

static void drain(size_t capacity)
{
    static struct ways w;
    size_t n = sizeof ways_out / sizeof ways_out[0];

    w = (struct ways){ .lab =
                           lab_open(.with.proxies = DUE_PROXIES_NEVER, .with.capacity = capacity) };
    w.topic = lab_topic(&w.lab, "one");
    cr_assert_eq(lab_topic(&w.lab, "two"), w.topic + 1);
    for (size_t i = 0; i < JOBS; i++)
        w.id[i] =
            lab_enqueue(&w.lab, "job", .delay_ns = DUE_S(100), .topic = i < FEW ? w.topic + 1 : 0);
    w.named = FEW;
    for (size_t i = 0; i < 100; i++)
        lab_enqueue(&w.lab, "now", .delay_ns = 0);
    for (size_t i = 0; i < 50; i++)
        lab_enqueue(&w.lab, "of a topic", .topic = w.topic);
    put_with_keys(&w.lab, w.topic + 2);
    for (size_t i = 0; i < DUE__SHARDS; i++)
        cr_expect_eq(w.lab.q->slab.shard[i].spare, DUE__SPARE_ALL);
    cr_expect_eq(due_close(w.lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    uint64_t most = JOBS + 100 + 50 + KEYED - 1;
    uint64_t all = spare(&w.lab);
    cr_expect(all <= most && all > most - DUE__SHARDS, "all but one: %ju", (uintmax_t)all);
    for (size_t i = 0; i < 2 * n; i++)
        expect_paid(&w, ways_out[i % n], i % n);
    expect_paid(&w, cleared, n);
    lab_close(&w.lab);
}

Test(spare, of_a_queue_that_drains_is_paid_by_each_who_leaves, .timeout = 60)
{
    drain(0);
    drain(2 * JOBS);
}
