/* thread_free.c - a queue is closed and freed at once, while everybody who waited in it leaves.
 *
 * Every kind of caller sleeps in the queue.  One thread closes it, and frees it as soon as it is
 * told that it is closed, without waiting for anybody's return.  The queue's memory is the
 * kernel's: whoever touched it after that would end the program.
 */
#include <sched.h>
#include <stdio.h>

#include "lab/crew.h"
#include "lab/take.h"
#include "queue/queue.h"

enum { TAKE, TAKE_WITHIN, TAKE_FROM, TAKE_BATCH, RESERVE, RESERVE_BATCH, PUT, PUT_BATCH, CALLS };

/* A caller who is asleep in the queue's lock has not begun yet, and nobody waits for him.  Whoever
 * has that lets go of it before we have it; then they come one after the other, and not all of them
 * sleep. */
static void until_inside(due_queue *q, struct crew_thread *const *threads, unsigned n)
{
    struct due__tenure t;

    for (int twice = 0; twice < 2; twice++) {
        crew_until_all_asleep(threads, n);
        due__enter(q, &t);
        due__tenure_end(q, &t);
    }
    crew_until_all_asleep(threads, n);
}

static void begin(struct crew_call *c, due_queue *q, const int *nothing)
{
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(1000) };
    struct crew_thread *threads[CALLS];

    crew_call_dequeue(&c[TAKE], q, DUE_FOREVER);
    crew_call_dequeue(&c[TAKE_WITHIN], q, DUE_S(1000));
    crew_call_dequeue_from(&c[TAKE_FROM], q, nothing, 1, DUE_FOREVER);
    crew_call_dequeue_batch(&c[TAKE_BATCH], q, DUE_FOREVER);
    crew_call_reserve(&c[RESERVE], q, NULL, 0, DUE_S(1), DUE_FOREVER);
    crew_call_reserve_batch(&c[RESERVE_BATCH], q, NULL, 0, DUE_S(1), DUE_FOREVER);
    crew_call_enqueue(&c[PUT], q, spec, DUE_FOREVER);
    crew_call_enqueue_batch(&c[PUT_BATCH], q, spec, DUE_FOREVER);
    for (int i = 0; i < CALLS; i++)
        threads[i] = &c[i].thread;
    until_inside(q, threads, CALLS);
}

/* A full queue in which nothing is due. */
static due_queue *open_full(enum due_proxies proxies, enum due_clock_kind kind, due_clock *manual,
                            due_id *id)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .clock = kind, .manual = manual,
                            .capacity = 1 };
    due_spec later = { DUE_SPEC_INIT, .delay_ns = DUE_S(1000) };
    due_queue *q = crew_open(&options);
    int rc = due_enqueue(q, &later, 0, id);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return q;
}

/* Who closes is told that nobody is inside, so it can be freed at once. */
static void discard(enum due_proxies proxies, enum due_clock_kind kind, due_clock *manual)
{
    struct crew_call c[CALLS];
    due_id id;
    due_queue *q = open_full(proxies, kind, manual, &id);
    int nothing = due_topic(q, "nothing");

    begin(c, q, &nothing);
    int rc = due_close(q, DUE_CLOSE_DISCARD, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_free(q);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < CALLS; i++) {
        rc = crew_call_answer(&c[i]);
        CREW_CHECK(rc == DUE_ECLOSED, ": caller %d: %s", i, due_error_name(rc));
    }
}

struct consumer {
    struct crew_thread thread;
    due_queue *q;
};

/* Waits for a job, and is done with it: after that it touches the queue no more. */
static int take_one(void *arg)
{
    const struct consumer *c = arg;
    due_job job;
    int rc = due_dequeue(c->q, &job, DUE_FOREVER);

    if (rc == 0)
        due_job_done(&job);
    return rc;
}

static int reserve_one(void *arg)
{
    const struct consumer *c = arg;
    due_job job;
    int rc = take_leased(c->q, &job, DUE_S(1000), DUE_FOREVER);

    return rc == 0 ? due_ack(&job) : rc;
}

/* Others close too, and somebody gets the last job: who frees is told that they are there still. */
static void drain(enum due_proxies proxies, enum due_clock_kind kind, due_clock *manual)
{
    struct consumer consumers[4];
    struct crew_thread *threads[5];
    struct crew_call closer;
    due_id id;
    due_queue *q = open_full(proxies, kind, manual, &id);
    unsigned taken = 0;

    for (unsigned i = 0; i < 4; i++) {
        consumers[i].q = q;
        crew_go(&consumers[i].thread, i % 2 == 0 ? take_one : reserve_one, &consumers[i]);
        threads[i] = &consumers[i].thread;
    }
    crew_until_all_asleep(threads, 4);
    crew_call_close(&closer, q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    threads[4] = &closer.thread;
    until_inside(q, threads, 5);
    int rc = due_promote(q, id);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_close(q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    while ((rc = due_free(q)) == DUE_EBUSY)
        sched_yield();
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < 4; i++) {
        rc = crew_join(&consumers[i].thread);
        CREW_CHECK(rc == 0 || rc == DUE_ECLOSED, ": %s", due_error_name(rc));
        taken += rc == 0;
    }
    CREW_CHECK(taken == 1, ": %u", taken);
    rc = crew_call_answer(&closer);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    unsigned rounds = 0;

    for (; crew_now_ns() < end || rounds < 24; rounds++) {
        enum due_proxies proxies = (enum due_proxies)(rounds % 3);
        unsigned clock = rounds / 3 % 4; /* the last one is turned by hand */
        due_clock *manual = clock == 3 ? due_clock_manual(1000) : NULL;
        enum due_clock_kind kind = clock == 3 ? DUE_CLOCK_MONOTONIC : (enum due_clock_kind)clock;

        crew_doing(crew_mode_names[proxies]);
        if (rounds / 12 % 2 == 0)
            discard(proxies, kind, manual);
        else
            drain(proxies, kind, manual);
        int rc = due_clock_free(manual);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    printf("thread_free: %u queues freed while everybody left\n", rounds);
    return 0;
}
