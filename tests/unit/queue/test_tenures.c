/* How often a call has the timeline's lock, and that of its shard.  What it costs shows in no
 * answer; but a lock counts how often it was had in a row.  Nobody else has these: there are no
 * proxies, and the queue is the test's alone. */
#include "lab/lab.h"
#include "lab/take.h"

#include "os/atomic.h"
#include "queue/queue.h"

#ifndef DUE_BELL_COND /* there a lock counts nothing */

#define LARGE 100 /* bytes: more than lie in a job's place */

static unsigned tenures(const struct lab *lab)
{
    return lab->q->lock.row;
}

static unsigned entries(const struct lab *lab)
{
    unsigned n = 0;

    for (size_t i = 0; i < DUE__SHARDS; i++)
        n += lab->q->slab.shard[i].lock.row;
    return n;
}

/* Locks of it have no bias, in which they would not count, and places are at hand. */
static struct lab open_counting(bool kernel)
{
    struct lab lab = lab_open(.kernel = kernel, .with.proxies = DUE_PROXIES_NEVER);
    due_job job;

    lab.q->lock.after = 0;
    for (size_t i = 0; i < DUE__SHARDS; i++)
        lab.q->slab.shard[i].lock.after = 0;
    for (int i = 0; i < 2; i++) {
        lab_enqueue(&lab, "first", .delay_ns = 0);
        cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
        due_job_done(&job);
    }
    return lab;
}

/* This costs so many tenures, and so many entries into shards. */
#define COSTS(t, e, call)                                                                     \
    do {                                                                                      \
        unsigned tenures_ = tenures(&lab);                                                    \
        unsigned entries_ = entries(&lab);                                                    \
        call;                                                                                 \
        tenures_ = tenures(&lab) - tenures_;                                                  \
        entries_ = entries(&lab) - entries_;                                                  \
        cr_expect(tenures_ == (t) && entries_ == (e), "%s, %s clock: %u tenures, %u entries", \
                  #call, kernel ? "kernel's" : "manual", tenures_, entries_);                 \
    } while (0)
#define IS(answer, call) cr_expect_eq(call, answer)

/* On the two kinds of clocks: with short ways, and without. */
#define ON(kernels, manual) (kernel ? (kernels) : (manual))

static void puts_of(bool kernel)
{
    static due_spec many[300];
    struct lab lab = open_counting(kernel);
    char large[LARGE] = "";
    due_spec now = { DUE_SPEC_INIT };
    due_spec later = { DUE_SPEC_INIT, .delay_ns = DUE_S(100), .data = "text", .len = 4 };
    due_spec apart = { DUE_SPEC_INIT, .delay_ns = DUE_S(100), .data = large, .len = LARGE };

    for (size_t i = 0; i < 300; i++)
        many[i] = later;
    COSTS(1, 0, IS(0, due_enqueue(lab.q, &now, 0, NULL)));
    COSTS(1, 0, IS(0, due_enqueue(lab.q, &later, 0, NULL)));
    COSTS(1, 1, IS(0, due_enqueue(lab.q, &apart, 0, NULL)));
    COSTS(1, 0, IS(0, due_enqueue_at(lab.q, due_now(lab.q) + DUE_S(100), NULL, NULL)));
    COSTS(1, 0, IS(0, due_enqueue_after(lab.q, 0, NULL, NULL)));
    COSTS(1, 0, IS(1, due_enqueue_batch(lab.q, many, 1, 0, NULL)));
    COSTS(1, 0, IS(10, due_enqueue_batch(lab.q, many, 10, 0, NULL)));
    COSTS(5, 9, IS(300, due_enqueue_batch(lab.q, many, 300, 0, NULL)));
    lab_close(&lab);
}

static void takes_of(bool kernel)
{
    struct lab lab = open_counting(kernel);
    due_job job[8];

    COSTS(1, 0, IS(DUE_EAGAIN, due_dequeue(lab.q, job, 0)));
    COSTS(0, 0, IS(DUE_EAGAIN, due_dequeue(lab.q, job, 0)));
    COSTS(0, 0, IS(DUE_EAGAIN, due_reserve(lab.q, job, 0)));
    COSTS(0, 0, IS(DUE_EAGAIN, due_take(lab.q, NULL, job, 8, 0)));
    lab_enqueue(&lab, "later", .delay_ns = DUE_S(100));
    COSTS(1, 0, IS(DUE_EAGAIN, due_dequeue(lab.q, job, 0)));
    COSTS(0, 0, IS(DUE_EAGAIN, due_dequeue(lab.q, job, 0)));
    for (int i = 0; i < 8; i++)
        lab_enqueue(&lab, "now", .delay_ns = 0);
    COSTS(1, 0, IS(0, due_dequeue(lab.q, job, 0))); /* and shows others */
    COSTS(0, 1, due_job_done(job));
    for (int i = 0; i < 3; i++) {
        COSTS(0, 1, IS(0, due_dequeue(lab.q, job, 0)));
        COSTS(0, 1, due_job_done(job));
    }
    COSTS(1, 1, IS(4, due_take(lab.q, NULL, job, 8, 0)));
    COSTS(0, 1, due_jobs_done(job, 4));
    COSTS(0, 0, IS(DUE_EAGAIN, due_dequeue(lab.q, job, 0)));
    lab_close(&lab);
}

static void leases_of(bool kernel)
{
    const due_take_options leased = { DUE_TAKE_INIT, .lease_ns = DUE_S(100) };
    struct lab lab = open_counting(kernel);
    due_job job[8];

    for (int i = 0; i < 16; i++)
        lab_enqueue(&lab, "now", .delay_ns = 0);
    IS(0, due_reserve(lab.q, job, 0)); /* makes room for leases */
    IS(0, due_ack(job));
    COSTS(1, 0, IS(0, due_reserve(lab.q, job, 0)));
    COSTS(0, 1, IS(0, due_ack(job)));
    COSTS(1, 0, IS(0, due_reserve(lab.q, job, 0)));
    COSTS(1, 0, IS(0, due_extend(job, DUE_S(200))));
    COSTS(1, 2, IS(0, due_nack(job, 0)));
    COSTS(1, 0, IS(0, due_reserve(lab.q, job, 0)));
    COSTS(1, 2, IS(0, due_snooze(job, DUE_S(100))));
    COSTS(1, 0, IS(0, due_reserve(lab.q, job, 0)));
    COSTS(1, 3, IS(0, due_bury(job, "why")));
    COSTS(1, 0, IS(8, due_take(lab.q, &leased, job, 8, 0)));
    COSTS(0, 1, IS(8, due_ack_batch(job, 8, NULL)));
    COSTS(4, 1, IS(0, due_kick_all(lab.q, DUE_ALL_TOPICS, NULL)));
    COSTS(2, 0, IS(0, due_kick_all(lab.q, DUE_ALL_TOPICS, NULL)));
    lab_close(&lab);
}

static void changes_of(bool kernel)
{
    struct lab lab = open_counting(kernel);
    char large[LARGE] = "";
    char buffer[LARGE];
    size_t len;
    int64_t ns;
    due_info info;
    due_id id[4];

    for (int i = 0; i < 4; i++)
        id[i] = lab_enqueue(&lab, "later", .delay_ns = DUE_S(100 + i));
    due_poll(lab.q, NULL);
    COSTS(0, 0, IS(0, due_find(lab.q, id[0], &info)));
    COSTS(0, 0, IS(0, due_remaining(lab.q, id[0], &ns)));
    COSTS(1, 0, IS(0, due_read(lab.q, id[0], buffer, sizeof buffer, &len)));
    COSTS(2, 0, IS(0, due_peek(lab.q, &info)));
    COSTS(1, 0, IS(0, due_reschedule(lab.q, id[0], due_now(lab.q) + DUE_S(200))));
    COSTS(1, 0, IS(0, due_update(lab.q, id[0], "other", 5)));
    COSTS(1, 0, IS(0, due_update(lab.q, id[0], large, LARGE)));
    COSTS(0, 1, IS(0, due_cancel(lab.q, id[0], NULL)));
    COSTS(0, 0, IS(DUE_ENOENT, due_cancel(lab.q, id[0], NULL)));
    COSTS(0, 1, IS(2, due_cancel_batch(lab.q, id + 1, 2, NULL)));
    COSTS(1, 0, IS(0, due_promote(lab.q, id[3])));
    COSTS(0, 1, IS(0, due_cancel(lab.q, id[3], NULL)));
    lab_close(&lab);
}

static void topics_of(bool kernel)
{
    struct lab lab = open_counting(kernel);
    int topic[2] = { lab_topic(&lab, "one"), lab_topic(&lab, "two") };
    due_job job;

    COSTS(1, 0, IS(DUE_EAGAIN, take_from(lab.q, topic, 1, &job, 0)));
    COSTS(0, 0, IS(DUE_EAGAIN, take_from(lab.q, topic, 1, &job, 0)));
    COSTS(0, 0, IS(DUE_EAGAIN, take_from(lab.q, topic, 2, &job, 0)));
    lab_enqueue(&lab, "one", .topic = topic[0]);
    lab_enqueue(&lab, "one", .topic = topic[0]);
    for (int i = 0; i < 3; i++)
        COSTS(1, 0, IS(DUE_EAGAIN, take_from(lab.q, topic + 1, 1, &job, 0)));
    COSTS(1, 0, IS(0, take_from(lab.q, topic, 1, &job, 0)));
    due_job_done(&job);
    COSTS(1, 0, IS(0, take_from(lab.q, topic, 2, &job, 0)));
    due_job_done(&job);
    COSTS(1, 0, IS(0, due_pause(lab.q, topic[0])));
    COSTS(1, 0, IS(0, due_pause(lab.q, topic[0])));
    COSTS(1, 0, IS(0, due_resume(lab.q, topic[0])));
    COSTS(2, 0, IS(0, due_topic_limit(lab.q, topic[0], 2)));
    COSTS(1, 0, IS(0, due_topic_limit(lab.q, topic[0], 0)));
    lab_close(&lab);
}

static void clears_of(bool kernel)
{
    struct lab lab = open_counting(kernel);

    COSTS(0, 0, IS(0, due_clear(lab.q, DUE_ALL_TOPICS, NULL)));
    for (int i = 0; i < 300; i++)
        lab_enqueue(&lab, "later", .delay_ns = DUE_S(100));
    COSTS(1, 301, IS(0, due_clear(lab.q, DUE_ALL_TOPICS, NULL)));
    COSTS(0, 0, IS(0, due_clear(lab.q, DUE_ALL_TOPICS, NULL)));
    lab_close(&lab);
}

/* So many at once that it is done in pieces, none of which keeps others waiting for long. */
#define MANY 3000

static due_spec specs[MANY];
static due_id ids[MANY];
static due_job jobs[MANY];

static void put_many(struct lab *lab, due_spec spec)
{
    for (size_t i = 0; i < MANY; i++)
        specs[i] = spec;
    cr_assert_eq(due_enqueue_batch(lab->q, specs, MANY, 0, ids), MANY);
}

static void many_of(bool kernel)
{
    struct lab lab = open_counting(kernel);
    due_spec later = { DUE_SPEC_INIT, .delay_ns = DUE_S(100) };

    put_many(&lab, later);
    COSTS(5, 158, IS(MANY, due_cancel_batch(lab.q, ids, MANY, NULL)));
    COSTS(47, 126, put_many(&lab, later));
    COSTS(11, 3128, IS(0, due_clear(lab.q, DUE_ALL_TOPICS, NULL)));
    put_many(&lab, later);
    for (size_t i = 0; i < MANY; i += 2)
        IS(0, due_cancel(lab.q, ids[i], NULL));
    COSTS(12, 17, IS(0, due_trim(lab.q)));
    COSTS(5, 1580, IS(0, due_clear(lab.q, DUE_ALL_TOPICS, NULL)));
    lab_close(&lab);
}

static void many_due_of(bool kernel)
{
    const due_take_options leased = { DUE_TAKE_INIT, .lease_ns = DUE_S(1000) };
    struct lab lab = open_counting(kernel);
    due_spec now = { DUE_SPEC_INIT };

    put_many(&lab, now);
    COSTS(ON(2, 4), 4, IS(100, due_take(lab.q, NULL, jobs, 100, 0)));
    due_jobs_done(jobs, 100);
    COSTS(ON(31, 92), 91, IS(MANY - 100, due_take(lab.q, NULL, jobs, MANY, 0)));
    COSTS(0, 91, due_jobs_done(jobs, MANY - 100));
    put_many(&lab, now);
    IS(MANY, due_take(lab.q, &leased, jobs, MANY, 0)); /* makes room for leases */
    IS(MANY, due_ack_batch(jobs, MANY, NULL));
    put_many(&lab, now);
    COSTS(94, 0, IS(MANY, due_take(lab.q, &leased, jobs, MANY, 0)));
    COSTS(0, 94, IS(MANY, due_ack_batch(jobs, MANY, NULL)));
    put_many(&lab, now);
    for (size_t i = 0; i < 300; i++) {
        IS(0, due_reserve(lab.q, jobs, 0));
        IS(0, due_bury(jobs, "why"));
    }
    COSTS(305, 316, IS(0, due_kick_all(lab.q, DUE_ALL_TOPICS, NULL)));
    COSTS(12, 3128, IS(0, due_clear(lab.q, DUE_ALL_TOPICS, NULL)));
    lab_close(&lab);
}

/* Jobs that have become due meanwhile. */
static void time_of(bool kernel)
{
    struct lab lab = open_counting(false);
    due_spec later = { DUE_SPEC_INIT, .delay_ns = DUE_S(100) };
    due_info info;

    put_many(&lab, later);
    COSTS(0, 0, lab_turn_to(&lab, DUE_S(99)));
    COSTS(0, 0, lab_turn_to(&lab, DUE_S(100)));
    COSTS(ON(0, 48), ON(0, 16), cr_expect_gt(due_poll(lab.q, NULL), 0));
    COSTS(ON(0, 2), 0, IS(0, due_peek(lab.q, &info)));
    COSTS(ON(0, 1), ON(0, 4), IS(100, due_take(lab.q, NULL, jobs, 100, 0)));
    due_jobs_done(jobs, 100);
    COSTS(ON(0, 11), ON(0, 3028), IS(0, due_clear(lab.q, DUE_ALL_TOPICS, NULL)));
    lab_close(&lab);
}

static void groups_of(bool kernel)
{
    struct lab lab = open_counting(kernel);
    due_extra more = { DUE_EXTRA_INIT, .group = "g", .group_len = 1 };
    due_spec grouped = { DUE_SPEC_INIT, .more = &more };
    due_job job;

    COSTS(3, 1, IS(0, due_enqueue(lab.q, &grouped, 0, NULL)));
    for (int i = 0; i < 4; i++)
        COSTS(2, 1, IS(0, due_enqueue(lab.q, &grouped, 0, NULL)));
    COSTS(ON(1, 2), 1, IS(0, due_dequeue(lab.q, &job, 0)));
    COSTS(1, 1, due_job_done(&job));
    COSTS(2, 1, IS(0, due_reserve(lab.q, &job, 0)));
    COSTS(1, 0, IS(DUE_EAGAIN, due_dequeue(lab.q, jobs, 0)));
    COSTS(0, 0, IS(DUE_EAGAIN, due_dequeue(lab.q, jobs, 0)));
    COSTS(1, 2, IS(0, due_ack(&job)));
    COSTS(1, 1, IS(0, due_dequeue(lab.q, &job, 0)));
    due_job_done(&job);
    COSTS(3, 2, IS(0, due_clear(lab.q, DUE_ALL_TOPICS, NULL)));
    lab_close(&lab);
}

static void limits_of(bool kernel)
{
    struct lab lab = open_counting(kernel);
    int topic = lab_topic(&lab, "one");
    due_spec spec = { DUE_SPEC_INIT, .topic = topic };
    due_job job;

    IS(0, due_topic_limit(lab.q, topic, 1));
    put_many(&lab, spec);
    COSTS(ON(2, 48), 1, IS(0, due_reserve(lab.q, &job, 0)));
    COSTS(1, 0, IS(DUE_EAGAIN, due_dequeue(lab.q, jobs, 0)));
    COSTS(0, 0, IS(DUE_EAGAIN, due_dequeue(lab.q, jobs, 0)));
    COSTS(47, 0, IS(0, due_topic_limit(lab.q, topic, 0)));
    COSTS(2, 4, IS(100, due_take(lab.q, NULL, jobs, 100, 0)));
    due_jobs_done(jobs, 100);
    COSTS(1, 0, IS(0, due_pause(lab.q, topic)));
    COSTS(0, 0, IS(DUE_EAGAIN, due_dequeue(lab.q, jobs, 0)));
    COSTS(0, 0, IS(DUE_EAGAIN, due_dequeue(lab.q, jobs, 0)));
    COSTS(1, 0, IS(0, due_resume(lab.q, topic)));
    COSTS(1, 2, IS(0, due_ack(&job)));
    COSTS(2911, 3075, IS(0, due_clear(lab.q, topic, NULL)));
    lab_close(&lab);
}

static void keys_of(bool kernel)
{
    struct lab lab = open_counting(kernel);
    due_job job;
    due_id id;

    COSTS(1, 1, IS(0, lab_put_as(&lab, DUE_KEY_REFUSE, "a", NULL, .delay_ns = 5)));
    COSTS(0, 2, IS(DUE_EEXIST, lab_put_as(&lab, DUE_KEY_REFUSE, "a", NULL, .delay_ns = 5)));
    COSTS(2, 2, IS(0, lab_put_as(&lab, DUE_KEY_REPLACE, "b", NULL, .delay_ns = 0)));
    COSTS(0, 0, IS(0, due_id_of_key(lab.q, "k", 1, &id)));
    COSTS(1, 1, IS(0, due_dequeue(lab.q, &job, 0)));
    COSTS(0, 1, due_job_done(&job));
    COSTS(0, 0, IS(DUE_ENOENT, due_cancel_key(lab.q, "k", 1, NULL)));
    IS(0, lab_put_as(&lab, DUE_KEY_REFUSE, "a", NULL, .delay_ns = DUE_S(5)));
    COSTS(0, 1, IS(0, due_cancel_key(lab.q, "k", 1, NULL)));
    lab_close(&lab);
}

#define BOTH(what, name)  \
    Test(what, name)      \
    {                     \
        what##_of(false); \
        what##_of(true);  \
    }

BOTH(puts, cost_one_tenure)
BOTH(takes, cost_one_tenure_or_none_where_nothing_has_come)
BOTH(leases, cost_one_tenure_and_an_ack_none)
BOTH(changes, cost_one_tenure_and_looks_none)
BOTH(topics, cost_one_tenure_or_none_where_nothing_has_come)
BOTH(clears, cost_few_tenures)
BOTH(many, are_changed_some_at_a_time)
BOTH(many_due, are_taken_some_at_a_time)
BOTH(groups, cost_one_tenure_each)
BOTH(limits, that_are_lifted_let_some_through_at_a_time)
BOTH(keys, cost_one_tenure_each)

Test(time, moves_some_at_a_time)
{
    time_of(false);
}

#endif
