/* idle_cpu.c - what a queue costs while nothing happens: one job some seconds ahead, four blocked
 * consumers.  Prints processor time and wake-ups of all threads before the job itself, and fails if
 * they are more than a rival's rounding error.
 */
#include <stdio.h>
#include <string.h>

#include "crew.h"

#define CONSUMERS 4

struct cost {
    int64_t cpu_ns;
    uint64_t wakeups;
    int64_t late_ns;
};

/* The cost of waiting for @ns, up to a little before the job is due. */
static struct cost measure(enum due_proxies proxies, int64_t ns)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies };
    due_queue *q = crew_open(&options);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = ns };
    struct crew_call calls[CONSUMERS];
    struct cost cost = { .cpu_ns = 0 };

    for (int i = 0; i < CONSUMERS; i++) {
        crew_call_dequeue(&calls[i], q, DUE_FOREVER);
        crew_call_asleep(&calls[i]);
    }
    int rc = due_enqueue(q, &spec, 0, NULL);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    crew_sleep(DUE_MS(50)); /* whoever was rung for the new head sleeps again */

    uint64_t own = crew_switches();
    own = crew_switches() - own; /* reading costs switches, too */
    uint64_t switches = crew_switches();
    int64_t cpu = crew_cpu_ns();
    crew_sleep(ns - DUE_MS(100));
    cost.cpu_ns = crew_cpu_ns() - cpu;
    cost.wakeups = crew_switches() - switches - own;
    cost.wakeups -= cost.wakeups > 0; /* this thread's own sleep */

    rc = due_close(q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
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

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    bool right = true;

    for (int mode = 0; mode < 3; mode += 2) {
        crew_doing(crew_mode_names[mode]);
        struct cost cost = measure((enum due_proxies)mode, o.ns);

        printf("idle %-8s %.1f s, %d blocked consumers: %lld us of processor time, %llu wake-ups, "
               "job %lld us late\n",
               crew_mode_names[mode], (double)o.ns / 1e9, CONSUMERS, (long long)cost.cpu_ns / 1000,
               (unsigned long long)cost.wakeups, (long long)cost.late_ns / 1000);
        right = right && cost.cpu_ns < DUE_MS(20) && cost.wakeups <= 20;
    }
    return right ? 0 : 1;
}
