/* liveness_ping_pong.c - one job goes to and fro between threads that sleep for it.  (B4)
 *
 * Every hand-over depends on one wake-up; a producer that looks for sleepers before its job can be
 * seen, or a consumer that looks for jobs before it can be seen to sleep, stops the game.
 * Producers that meet at the lock put theirs into the inbox.
 */
#include <stdio.h>

#include "lab/crew.h"
#include "lab/take.h"

#define PLAYERS 3

struct world {
    due_queue *q;
    int topics[PLAYERS];
    int64_t end_ns;
    atomic_uint number;
    atomic_ullong passes;
};

/* Takes the ball from its topic and gives it to the next; the ball's priority is who holds it. */
static int play(void *arg)
{
    struct world *w = arg;
    unsigned self = atomic_fetch_add(&w->number, 1);
    int next = w->topics[(self + 1) % PLAYERS];

    for (;;) {
        due_job ball;
        int rc = take_from(w->q, &w->topics[self], 1, &ball, DUE_S(5));

        if (rc == DUE_ECLOSED)
            return 0;
        CREW_CHECK(rc == 0, ": %s: the ball is lost", due_error_name(rc));
        due_job_done(&ball);
        if (crew_now_ns() > w->end_ns)
            continue; /* nobody has it: the queue is closed below */
        due_spec spec = { DUE_SPEC_INIT, .topic = next };
        spec.delay_ns = atomic_fetch_add(&w->passes, 1) % 4 == 0 ? 20000 : 0;
        rc = due_enqueue(w->q, &spec, 0, NULL);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
}

static uint64_t round_of(enum due_proxies proxies, int balls, int64_t ns)
{
    struct world w = { .end_ns = crew_now_ns() + ns };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies };
    static const char *const names[PLAYERS] = { "a", "b", "c" };
    struct crew_thread players[PLAYERS];

    w.q = crew_open(&options);
    for (int i = 0; i < PLAYERS; i++)
        w.topics[i] = due_topic(w.q, names[i]);
    for (int i = 0; i < PLAYERS; i++)
        crew_go(&players[i], play, &w);
    for (int i = 0; i < balls; i++) {
        due_spec spec = { DUE_SPEC_INIT, .topic = w.topics[i % PLAYERS] };
        int rc = due_enqueue(w.q, &spec, 0, NULL);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    crew_sleep(ns);
    int rc = due_close(w.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < PLAYERS; i++)
        crew_join(&players[i]);
    crew_close(w.q, DUE_CLOSE_DRAIN);
    return atomic_load(&w.passes);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 1);
    uint64_t passes = 0;

    for (int mode = 0; mode < 3; mode++)
        for (int balls = 1; balls <= 3; balls++) {
            crew_doing(crew_mode_names[mode]);
            passes += round_of((enum due_proxies)mode, balls, o.ns / 9);
        }
    printf("liveness_ping_pong: %llu passes\n", (unsigned long long)passes);
    return 0;
}
