/* liveness_close.c - close is heard at every step of going to sleep.  (B7)
 *
 * One caller of each blocking verb begins; close comes a random while later.  All must return
 * DUE_ECLOSED, or what they had got before, and close must return.
 */
#include <stdio.h>

#include "crew.h"

static void dawdle(uint64_t *seed)
{
    for (uint64_t n = crew_below(seed, UINT64_C(1) << crew_below(seed, 17)); n > 0; n--)
        __asm__ volatile("" ::: "memory");
}

static void round_of(enum due_proxies proxies, enum due_clock_kind clock, uint64_t *seed)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .capacity = 1, .clock = clock };
    due_queue *q = crew_open(&options);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(1000) };
    int topic = due_topic(q, "nothing");
    bool drain = crew_below(seed, 4) == 0;
    struct crew_call c[5];
    due_id id;

    int rc = due_enqueue(q, &spec, 0, &id);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    crew_call_dequeue(&c[0], q, DUE_FOREVER);
    crew_call_dequeue_from(&c[1], q, &topic, 1, DUE_FOREVER);
    crew_call_enqueue(&c[2], q, spec, DUE_FOREVER);
    crew_call_dequeue_batch(&c[3], q, DUE_S(1000));
    crew_call_close(&c[4], q, drain ? DUE_CLOSE_DRAIN : DUE_CLOSE_DISCARD, DUE_FOREVER);
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
    for (int i = 0; i < 5; i++) {
        crew_doing("waiting for a blocked caller");
        rc = crew_call_answer(&c[i]);
        CREW_CHECK(rc == DUE_ECLOSED || (rc == 0 && (i == 2 || i == 4)), ": caller %d: %s", i,
                   due_error_name(rc));
    }
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
