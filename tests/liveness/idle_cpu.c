/* idle_cpu.c - what a queue costs while nothing happens: one job some seconds ahead, four blocked
 * consumers and, as the queue is full, a producer; without a timeout, and with one that is far off.
 * Prints processor time and wake-ups of all threads before the job itself, and fails if they are
 * more than a rival's rounding error.
 */
#include <stdio.h>
#include <string.h>

#include "lab/crew.h"

#define CONSUMERS 4

struct cost {
    int64_t cpu_ns;
    uint64_t wakeups;
    int64_t late_ns;
    bool overran; /* the job was due before all was read, and whoever took it counts no more */
};

/* The cost of waiting for @ns, up to a little before the job is due. */
static struct cost measure(enum due_proxies proxies, int64_t ns, int64_t timeout_ns)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .capacity = 1 };
    due_queue *q = crew_open(&options);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = ns };
    struct crew_call calls[CONSUMERS];
    struct crew_call producer;
    struct cost cost = { .cpu_ns = 0 };

    for (int i = 0; i < CONSUMERS; i++) {
        crew_call_dequeue(&calls[i], q, timeout_ns);
        crew_call_asleep(&calls[i]);
    }
    int64_t due_ns = crew_now_ns() + ns;
    int rc = due_enqueue(q, &spec, 0, NULL);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    crew_call_enqueue(&producer, q, spec, timeout_ns);
    crew_sleep(DUE_MS(50)); /* whoever was rung for the new head sleeps again, and the producer */

    uint64_t own = crew_switches();
    own = crew_switches() - own; /* reading costs switches, too */
    uint64_t switches = crew_switches();
    int64_t cpu = crew_cpu_ns();
    crew_sleep(ns - DUE_MS(100));
    cost.cpu_ns = crew_cpu_ns() - cpu;
    own += 1; /* this thread's own sleep */
    switches = crew_switches() - switches;
    cost.wakeups = switches > own ? switches - own : 0;
    cost.overran = crew_now_ns() >= due_ns;

    rc = due_close(q, DUE_CLOSE_DRAIN, 0);
    CREW_CHECK(rc == 0 || rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
    rc = crew_call_answer(&producer);
    CREW_CHECK(rc == DUE_ECLOSED || rc == 0, ": %s", due_error_name(rc)); /* 0: it was due */
    for (int i = 0; i < CONSUMERS; i++) {
        rc = crew_call_answer(&calls[i]);
        if (rc == 0) {
            cost.late_ns = calls[i].job.lateness_ns;
            due_job_done(&calls[i].job);
        }
    }
    crew_close(q, DUE_CLOSE_DRAIN);
    return cost;
}

static bool is_little(enum due_proxies proxies, int64_t ns, int64_t timeout_ns)
{
    struct cost cost;

    do
        cost = measure(proxies, ns, timeout_ns);
    while (cost.overran); /* the machine was away */
    printf("idle %-8s %.1f s, %d blocked consumers and a producer, %s: %lld us of processor time, "
           "%llu wake-ups, job %lld us late\n",
           crew_mode_names[proxies], (double)ns / 1e9, CONSUMERS,
           timeout_ns == DUE_FOREVER ? "for ever" : "with time", (long long)cost.cpu_ns / 1000,
           (unsigned long long)cost.wakeups, (long long)cost.late_ns / 1000);
    return cost.cpu_ns < DUE_MS(20) && cost.wakeups <= 20;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    bool right = true;

    for (int mode = 0; mode < 3; mode++) {
        crew_doing(crew_mode_names[mode]);
        right = is_little((enum due_proxies)mode, o.ns / 2, DUE_FOREVER) && right;
        right = is_little((enum due_proxies)mode, o.ns / 2, 20 * o.ns) && right;
    }
    return right ? 0 : 1;
}
