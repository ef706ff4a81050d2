/* liveness_mutators.c - every call that can make a job due, against everyone who may sleep.  (B3)
 *
 * Sleepers: alone; behind one who leads; for one topic; for several.  Calls: enqueue, reschedule
 * into the past and into the near future, promote, resume, cancel of the head before a near job,
 * clear before a new one, and the leaving of whoever led.
 */
#include <stdio.h>

#include "crew.h"

#define LATE_NS DUE_S(4)

enum { ENQUEUE, PAST, NEAR, PROMOTE, RESUME, CANCEL, CLEAR, LEAVE, CALLS };
enum { ALONE, BEHIND, ONE_TOPIC, SOME_TOPICS, SLEEPERS };

static const char *const calls[CALLS] = { "enqueue",    "reschedule to the past",
                                          "reschedule", "promote",
                                          "resume",     "cancel",
                                          "clear",      "leave" };

static void must(int rc)
{
    CREW_CHECK(rc >= 0, ": %s", due_error_name(rc));
}

static due_id put(due_queue *q, int topic, int64_t delay_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .topic = topic, .delay_ns = delay_ns };
    due_id id;

    must(due_enqueue(q, &spec, 0, &id));
    return id;
}

static void make_due(due_queue *q, int call, int topic, due_id far)
{
    switch (call) {
    case ENQUEUE:
        put(q, topic, 0);
        break;
    case PAST:
        must(due_reschedule(q, far, 1));
        break;
    case NEAR:
        must(due_reschedule(q, far, due_now(q) + DUE_US(300)));
        break;
    case PROMOTE:
        must(due_promote(q, far));
        break;
    case RESUME:
        must(due_resume(q, DUE_ALL_TOPICS));
        break;
    case CANCEL:
        put(q, topic, DUE_US(300));
        must(due_cancel(q, far, NULL));
        break;
    case CLEAR:
        must(due_clear(q, DUE_ALL_TOPICS, NULL));
        put(q, topic, DUE_US(300));
        break;
    default:
        put(q, topic, DUE_MS(3));
    }
}

static void sleep_as(struct crew_call *c, due_queue *q, int sleeper, const int *topics)
{
    if (sleeper == ONE_TOPIC)
        crew_call_dequeue_from(c, q, topics, 1, DUE_FOREVER);
    else if (sleeper == SOME_TOPICS)
        crew_call_dequeue_from(c, q, topics, 2, DUE_FOREVER);
    else
        crew_call_dequeue(c, q, DUE_FOREVER);
}

static void try(enum due_proxies proxies, enum due_clock_kind clock, int sleeper, int call)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .clock = clock };
    due_queue *q = crew_open(&options);
    int topics[2] = { due_topic(q, "a"), due_topic(q, "b") };
    int other = due_topic(q, "other");
    struct crew_call leader;
    struct crew_call c;

    crew_doing(calls[call]);
    due_id far = put(q, topics[0], DUE_S(1000));
    if (call == RESUME) {
        must(due_pause(q, DUE_ALL_TOPICS));
        put(q, topics[0], 0);
    }
    if (sleeper == BEHIND || call == LEAVE) {
        crew_call_dequeue_from(&leader, q, &other, 1, call == LEAVE ? DUE_MS(1) : DUE_FOREVER);
        crew_call_asleep(&leader);
    }
    sleep_as(&c, q, sleeper, topics);
    if (call != LEAVE)
        crew_call_asleep(&c);
    make_due(q, call, topics[0], far);
    int rc = crew_call_answer(&c);
    int64_t late = call == PAST ? 0 : c.job.lateness_ns;
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    CREW_CHECK(late < LATE_NS, ": %lld ms late", (long long)late / 1000000);
    due_job_done(&c.job);
    must(due_close(q, DUE_CLOSE_DISCARD, DUE_FOREVER));
    if (sleeper == BEHIND || call == LEAVE) {
        rc = crew_call_answer(&leader);
        CREW_CHECK(rc == DUE_ECLOSED || rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
    }
    crew_close(q, DUE_CLOSE_DISCARD);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 1);
    int64_t end = crew_now_ns() + o.ns;
    unsigned tries = 0;

    do {
        int clock = (int)(tries / 3 % 3);
        int mode = (int)(tries % 3);

        for (int sleeper = 0; sleeper < SLEEPERS; sleeper++)
            for (int call = 0; call < CALLS; call++)
                try((enum due_proxies)mode, (enum due_clock_kind)clock, sleeper, call);
        tries++;
    } while (tries < 9 || crew_now_ns() < end);
    printf("liveness_mutators: %u sleepers woken by %d calls\n", tries * SLEEPERS * CALLS, CALLS);
    return 0;
}
