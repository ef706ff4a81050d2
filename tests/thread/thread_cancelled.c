/* thread_cancelled.c - threads are cancelled while they wait in the queue.  (D4)
 *
 * No verb is a point of cancellation: a cancelled thread goes on waiting, hears close, returns, and
 * ends only then.  No lock stays behind, nothing hangs, and the queue can be freed.
 */
#include <stdio.h>

#include "lab/crew.h"

#define CONSUMERS 3

static const enum due_clock_kind clocks[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_REALTIME,
                                              DUE_CLOCK_BOOTTIME };

/* One queue with three blocked consumers and, because it is full, a blocked producer. */
static void round_of(enum due_proxies proxies, enum due_clock_kind clock)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .clock = clock, .capacity = 1 };
    due_queue *q = crew_open(&options);
    due_spec later = { DUE_SPEC_INIT, .delay_ns = DUE_S(3600) };
    struct crew_call calls[CONSUMERS + 1];

    int rc = due_enqueue(q, &later, 0, NULL);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < CONSUMERS; i++)
        crew_call_dequeue(&calls[i], q, DUE_FOREVER);
    crew_call_enqueue(&calls[CONSUMERS], q, later, DUE_FOREVER);
    for (int i = 0; i <= CONSUMERS; i++)
        crew_call_asleep(&calls[i]);

    for (int i = 0; i <= CONSUMERS; i++)
        pthread_cancel(calls[i].thread.id);
    for (int i = 0; i <= CONSUMERS; i++)
        crew_call_asleep(&calls[i]);
    rc = due_close(q, DUE_CLOSE_DISCARD, DUE_S(60));
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i <= CONSUMERS; i++)
        pthread_join(calls[i].thread.id, NULL);
    rc = due_free(q);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 1);
    int64_t end = crew_now_ns() + o.ns;
    int rounds = 0;

    do {
        for (int mode = 0; mode < 3; mode++) {
            crew_doing(crew_mode_names[mode]);
            for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++)
                round_of((enum due_proxies)mode, clocks[i]);
        }
        rounds++;
    } while (crew_now_ns() < end);
    printf("thread_cancelled: %d rounds, nobody hung\n", rounds);
    return 0;
}
