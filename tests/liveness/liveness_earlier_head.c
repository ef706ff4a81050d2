/* liveness_earlier_head.c - an earlier job wakes whoever sleeps for a later one.  (B2)
 *
 * Other systems slept on.  The earlier job is put in at every step of the consumer's going to
 * sleep: the producer waits a random while after the consumer has begun its call.  Late is more
 * than eight seconds, which is less than a heartbeat.
 */
#include <stdio.h>

#include "lab/crew.h"

#define LATE_NS DUE_S(8)

static void dawdle(uint64_t *seed)
{
    for (uint64_t n = crew_below(seed, UINT64_C(1) << crew_below(seed, 15)); n > 0; n--)
        __asm__ volatile("" ::: "memory");
}

static uint64_t round_of(enum due_proxies proxies, enum due_clock_kind clock, int64_t ns,
                         uint64_t seed)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .clock = clock };
    due_queue *q = crew_open(&options);
    due_spec far = { DUE_SPEC_INIT, .delay_ns = DUE_S(1000) };
    int64_t end = crew_now_ns() + ns;
    uint64_t rounds = 0;

    for (; crew_now_ns() < end; rounds++) {
        struct crew_call call;
        due_spec near = { DUE_SPEC_INIT, .delay_ns = (int64_t)crew_below(&seed, 200000) };
        due_id far_id;
        int rc = due_enqueue(q, &far, 0, &far_id);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        crew_call_dequeue(&call, q, DUE_FOREVER);
        if (crew_below(&seed, 8) == 0)
            crew_call_asleep(&call);
        else
            dawdle(&seed);
        rc = due_enqueue(q, &near, 0, NULL);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        rc = crew_call_answer(&call);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        CREW_CHECK(call.job.lateness_ns < LATE_NS, ": %lld ms late",
                   (long long)call.job.lateness_ns / 1000000);
        due_job_done(&call.job);
        rc = due_cancel(q, far_id, NULL);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    crew_close(q, DUE_CLOSE_DRAIN);
    return rounds;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 1);
    uint64_t rounds = 0;

    for (int mode = 0; mode < 3; mode++)
        for (int clock = 0; clock < 3; clock++) {
            crew_doing(crew_mode_names[mode]);
            rounds +=
                round_of((enum due_proxies)mode, (enum due_clock_kind)clock, o.ns / 9, o.seed);
        }
    printf("liveness_earlier_head: %llu sleepers woken\n", (unsigned long long)rounds);
    return 0;
}
