/* liveness_close.c - close is heard at every step of going to sleep.  (B7)
 *
 * One caller of each blocking verb begins; close comes a random while later.  All must return
 * DUE_ECLOSED, or what they had got before, and close must return.  So must a due_workers_stop()
 * that waits for a handler, which ends when it hears of the close.
 */
#include <sched.h>
#include <stdio.h>

#include "lab/crew.h"
#include "lab/take.h"

static void dawdle(uint64_t *seed)
{
    for (uint64_t n = crew_below(seed, UINT64_C(1) << crew_below(seed, 17)); n > 0; n--)
        __asm__ volatile("" ::: "memory");
}

static void until_closed(void *ctx, const due_job *job, due_answer *answer)
{
    int nothing = *(const int *)ctx;
    due_job other;

    while (take_from(job->queue, &nothing, 1, &other, 0) != DUE_ECLOSED)
        sched_yield();
    *answer = due_answer_ack();
}

static void until_handled(due_workers *pool)
{
    struct due_workers_stats s = { .running = 0 };

    while (s.running == 0) {
        int rc = due_workers_stats_read(pool, &s);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        sched_yield();
    }
}

/* A caller of each verb. */
enum { TAKE, TAKE_FROM, PUT, TAKE_BATCH, CLOSE, RESERVE, RESERVE_FROM, RESERVE_BATCH, STOP, VERBS };

static void begin(struct crew_call *c, due_queue *q, due_workers *pool, due_spec spec,
                  const int *nothing, enum due_close_mode mode)
{
    crew_call_dequeue(&c[TAKE], q, DUE_FOREVER);
    crew_call_dequeue_from(&c[TAKE_FROM], q, nothing, 1, DUE_FOREVER);
    crew_call_enqueue(&c[PUT], q, spec, DUE_FOREVER);
    crew_call_dequeue_batch(&c[TAKE_BATCH], q, DUE_S(1000));
    crew_call_reserve(&c[RESERVE], q, NULL, 0, DUE_S(1000), DUE_FOREVER);
    crew_call_reserve(&c[RESERVE_FROM], q, nothing, 1, DUE_S(1000), DUE_FOREVER);
    crew_call_reserve_batch(&c[RESERVE_BATCH], q, NULL, 0, DUE_S(1000), DUE_S(1000));
    crew_call_stop(&c[STOP], pool, DUE_FOREVER);
    crew_call_close(&c[CLOSE], q, mode, DUE_FOREVER);
}

static void round_of(enum due_proxies proxies, enum due_clock_kind clock, uint64_t *seed)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .capacity = 2, .clock = clock };
    due_queue *q = crew_open(&options);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(1000) };
    int topic = due_topic(q, "nothing");
    int work = due_topic(q, "work");
    due_spec job = { DUE_SPEC_INIT, .topic = work };
    bool drain = crew_below(seed, 4) == 0;
    struct crew_call c[VERBS];
    due_workers *pool;
    due_id id;

    int rc = due_workers_start(&pool, q, &work, 1, 2, until_closed, &topic, NULL);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_enqueue(q, &spec, 0, &id);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_enqueue(q, &job, 0, NULL);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    crew_doing("waiting for the handler");
    until_handled(pool);
    begin(c, q, pool, spec, &topic, drain ? DUE_CLOSE_DRAIN : DUE_CLOSE_DISCARD);
    dawdle(seed);
    if (drain) {
        rc = due_cancel(q, id, NULL);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        rc = due_clear(q, DUE_ALL_TOPICS, NULL); /* what the blocked enqueue may have put in */
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    crew_doing("closing");
    rc = due_close(q, DUE_CLOSE_DISCARD, DUE_S(20));
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < VERBS; i++) {
        crew_doing("waiting for a blocked caller");
        rc = crew_call_answer(&c[i]);
        CREW_CHECK(rc == DUE_ECLOSED || (rc == 0 && (i == PUT || i == CLOSE || i == STOP)),
                   ": caller %d: %s", i, due_error_name(rc));
    }
    rc = due_workers_free(pool);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    crew_close(q, DUE_CLOSE_DISCARD);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 1);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t seed = o.seed;
    unsigned rounds = 0;

    for (; crew_now_ns() < end || rounds < 60; rounds++)
        round_of((enum due_proxies)(rounds % 3), (enum due_clock_kind)(rounds / 3 % 3), &seed);
    printf("liveness_close: heard by everybody, %u times\n", rounds);
    return 0;
}
