/* liveness_mutators.c - every call that can make a job due, against everyone who may sleep.  (B3)
 *
 * Sleepers: alone; behind one who leads; for one topic; for several; on a lease.  Calls: enqueue,
 * reschedule into the past and into the near future, promote, resume, cancel of the head before a
 * near job, clear before a new one, the leaving of whoever led; kick of one and of all, nack, a
 * lease that is cut short or ends by itself, an ack that lets the next of a group through, a job
 * that is done with and so makes room under a limit, a higher limit, an enqueue whose key is that
 * of a later job, and a change of the time.
 */
#include <stdio.h>

#include "lab/crew.h"
#include "lab/take.h"

#define LATE_NS DUE_S(8) /* less than a heartbeat */
#define FAR_NS  DUE_S(1000)

enum {
    ENQUEUE,
    PAST,
    NEAR,
    PROMOTE,
    RESUME,
    CANCEL,
    CLEAR,
    LEAVE,
    KICK,
    KICK_ALL,
    NACK,
    EXTEND,
    LEASE,
    ACK,
    DONE,
    LIMIT,
    EARLIEST,
    AMEND,
    CALLS
};
enum { ALONE, BEHIND, ONE_TOPIC, SOME_TOPICS, RESERVES, SLEEPERS };

static const char *const calls[CALLS] = { "enqueue",
                                          "reschedule to the past",
                                          "reschedule",
                                          "promote",
                                          "resume",
                                          "cancel",
                                          "clear",
                                          "leave",
                                          "kick",
                                          "kick all",
                                          "nack",
                                          "a shorter lease",
                                          "the end of a lease",
                                          "ack of a group's job",
                                          "job done under a limit",
                                          "a higher limit",
                                          "enqueue with the earlier time",
                                          "change of the time" };

/* What a call is about: a job that comes late, and one that is out or dead. */
struct scene {
    due_queue *q;
    int topic;
    due_id far;
    due_job out;
};

static void must(int rc)
{
    CREW_CHECK(rc >= 0, ": %s", due_error_name(rc));
}

static due_id put_spec(due_queue *q, due_spec spec)
{
    due_id id;

    spec.size = sizeof(due_spec);
    must(due_enqueue(q, &spec, 0, &id));
    return id;
}

static due_id put(due_queue *q, int topic, int64_t delay_ns)
{
    return put_spec(q, (due_spec){ .topic = topic, .delay_ns = delay_ns });
}

/* A job is out; so another of its group, or beyond the limit, is kept back. */
static void take_one(struct scene *s, due_spec spec, int64_t lease_ns)
{
    spec.topic = s->topic;
    put_spec(s->q, spec);
    must(take_leased(s->q, &s->out, lease_ns, DUE_S(30)));
}

/* Before anybody sleeps: nothing is due that may be taken. */
static void prepare(struct scene *s, int call)
{
    due_spec late = { .topic = s->topic,
                      .delay_ns = FAR_NS,
                      .more = EXTRA(.key = "late", .key_len = 4) };
    due_spec grouped = { .topic = s->topic,
                         .more = EXTRA(.group = "one at a time", .group_len = 13) };

    s->far = put_spec(s->q, late);
    switch (call) {
    case RESUME:
        must(due_pause(s->q, DUE_ALL_TOPICS));
        put(s->q, s->topic, 0);
        break;
    case KICK:
    case KICK_ALL:
        take_one(s, (due_spec){ .delay_ns = 0 }, FAR_NS);
        s->far = s->out.id;
        must(due_bury(&s->out, NULL));
        break;
    case NACK:
    case EXTEND:
        take_one(s, (due_spec){ .delay_ns = 0 }, FAR_NS);
        break;
    case LEASE:
        take_one(s, (due_spec){ .delay_ns = 0 }, DUE_MS(3));
        break;
    case ACK:
        take_one(s, grouped, FAR_NS);
        put_spec(s->q, grouped);
        break;
    case DONE:
    case LIMIT:
        must(due_topic_limit(s->q, s->topic, 1));
        put(s->q, s->topic, 0);
        if (call == DONE)
            must(due_dequeue(s->q, &s->out, DUE_S(30)));
        else
            must(take_leased(s->q, &s->out, FAR_NS, DUE_S(30)));
        put(s->q, s->topic, 0);
        break;
    default:
        break;
    }
}

/* Of a job that waits, or anew. */
static void make_due(struct scene *s, int call)
{
    due_spec early = { DUE_SPEC_INIT, .topic = s->topic, .delay_ns = DUE_US(300) };

    switch (call) {
    case ENQUEUE:
        put(s->q, s->topic, 0);
        break;
    case PAST:
        must(due_reschedule(s->q, s->far, 1));
        break;
    case NEAR:
        must(due_reschedule(s->q, s->far, due_now(s->q) + DUE_US(300)));
        break;
    case PROMOTE:
        must(due_promote(s->q, s->far));
        break;
    case RESUME:
        must(due_resume(s->q, DUE_ALL_TOPICS));
        break;
    case CANCEL:
        put(s->q, s->topic, DUE_US(300));
        must(due_cancel(s->q, s->far, NULL));
        break;
    case CLEAR:
        must(due_clear(s->q, DUE_ALL_TOPICS, NULL));
        put(s->q, s->topic, DUE_US(300));
        break;
    case LEAVE:
        put(s->q, s->topic, DUE_MS(3));
        break;
    case EARLIEST:
        early.more = EXTRA(.key = "late", .key_len = 4, .on_key = DUE_KEY_EARLIEST);
        must(due_enqueue(s->q, &early, 0, NULL));
        break;
    default:
        must(due_amend(s->q, s->far, &early, DUE_SET_TIME));
    }
}

/* Of one that was out, or dead, or kept back by one that is. */
static void make_due_again(struct scene *s, int call)
{
    switch (call) {
    case KICK:
        must(due_kick(s->q, s->far));
        break;
    case KICK_ALL:
        must(due_kick_all(s->q, DUE_ALL_TOPICS, NULL));
        break;
    case NACK:
        must(due_nack(&s->out, 0));
        break;
    case EXTEND:
        must(due_extend(&s->out, DUE_US(300)));
        break;
    case ACK:
        must(due_ack(&s->out));
        break;
    case DONE:
        due_job_done(&s->out);
        break;
    case LIMIT:
        must(due_topic_limit(s->q, s->topic, 2));
        break;
    default: /* it ends by itself */
        break;
    }
}

static void sleep_as(struct crew_call *c, due_queue *q, int sleeper, const int *topics)
{
    if (sleeper == ONE_TOPIC)
        crew_call_dequeue_from(c, q, topics, 1, DUE_FOREVER);
    else if (sleeper == SOME_TOPICS)
        crew_call_dequeue_from(c, q, topics, 2, DUE_FOREVER);
    else if (sleeper == RESERVES)
        crew_call_reserve(c, q, topics, 2, FAR_NS, DUE_FOREVER);
    else
        crew_call_dequeue(c, q, DUE_FOREVER);
}

/* Of any job: reserved, dequeued, one whose lease has ended, or none. */
static void end(due_job *job)
{
    if (due_ack(job) != 0)
        due_job_done(job);
}

static void try(enum due_proxies proxies, enum due_clock_kind clock, int sleeper, int call)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .clock = clock };
    due_queue *q = crew_open(&options);
    int topics[2] = { due_topic(q, "a"), due_topic(q, "b") };
    int other = due_topic(q, "other");
    struct scene s = { .q = q, .topic = topics[0] };
    bool itself = call == LEAVE || call == LEASE; /* it may come before the caller sleeps */
    struct crew_call leader;
    struct crew_call c;

    crew_doing(calls[call]);
    prepare(&s, call);
    if (sleeper == BEHIND || call == LEAVE) {
        crew_call_dequeue_from(&leader, q, &other, 1, call == LEAVE ? DUE_MS(1) : DUE_FOREVER);
        crew_call_asleep(&leader);
    }
    sleep_as(&c, q, sleeper, topics);
    if (!itself)
        crew_call_asleep(&c);
    if (call < KICK || call > LIMIT)
        make_due(&s, call);
    else
        make_due_again(&s, call);
    int rc = crew_call_answer(&c);
    int64_t late = call == PAST ? 0 : c.job.lateness_ns;
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    CREW_CHECK(late < LATE_NS, ": %lld ms late", (long long)late / 1000000);
    end(&c.job);
    end(&s.out);
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
