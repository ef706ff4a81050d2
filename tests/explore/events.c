/* events.c - scenarios of a queue whose hook is told of each step of a job.
 *
 * Each step is told once, in the order of the job's life, and nobody else tells of the job
 * meanwhile; and at the end what was told is what the calls answered and the figures say.
 */
#include "acts.h"
#include "os/atomic.h"
#include "lab/take.h"

#define LEASE   DUE_MS(1)
#define LONG    DUE_S(1)
#define UNKNOWN 1  /* in answers: not asked */
#define OTHER   1  /* the topic of a job that is only in the way */
#define TOLD    12 /* events of one execution at most */

/* Where the job is, by what was told. */
enum place { NOWHERE, WAITS, READY, LEASED, GONE };

static const char *const place_names[] = { "nowhere", "waits", "ready", "leased", "gone" };

/* One job, what was told of it, and what was answered. */
struct diary {
    due_queue *q;
    due_id id;
    due_job held;  /* as it was reserved in setup */
    due_job taken; /* what another one got */
    int put;
    int ack;
    int nack;
    int cancel;
    int other;       /* of another reserve or dequeue */
    uint32_t inside; /* who tells of it */
    enum place place;
    unsigned told;
    unsigned kinds[DUE_EVENT_REPEATED + 1];
};

static struct diary *diary;

/* ---- The hook ---- */

/* Where it is after @e; NOWHERE: that cannot come now. */
static enum place after(enum place from, const due_event *e)
{
    switch (e->kind) {
    case DUE_EVENT_PRODUCED:
        return from == NOWHERE ? WAITS : NOWHERE;
    case DUE_EVENT_READY:
        return from == WAITS ? READY : NOWHERE;
    case DUE_EVENT_DELIVERED:
        return from != READY ? NOWHERE : e->leased ? LEASED : GONE;
    case DUE_EVENT_RETRIED:
        return from == LEASED ? WAITS : NOWHERE;
    case DUE_EVENT_ACKED:
        return from == LEASED ? GONE : NOWHERE;
    case DUE_EVENT_CANCELLED:
        return from == WAITS || from == READY || from == LEASED ? GONE : NOWHERE;
    default:
        return NOWHERE;
    }
}

static void on_event(void *ctx, const due_event *e)
{
    (void)ctx;
    if (e->topic == OTHER)
        return;
    /* Steps of the scenario: others can come here, if they may. */
    explore_check(due__add_seq(&diary->inside, 1) == 0, "two tell of one job");
    explore_note("told: %s", due_event_name(e->kind));
    enum place to = after(diary->place, e);
    explore_check(to != NOWHERE, "%s, when it %s", due_event_name(e->kind),
                  place_names[diary->place]);
    explore_check(++diary->told <= TOLD, "so many steps were not made");
    if (e->kind == DUE_EVENT_PRODUCED)
        diary->id = e->id;
    diary->place = to;
    diary->kinds[e->kind]++;
    due__sub_seq(&diary->inside, 1);
}

/* ---- Threads ---- */

static int put(int topic, int64_t at_ns, due_id *id)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .topic = topic, .at_ns = at_ns };

    return due_enqueue(diary->q, &spec, 0, id);
}

static void cancel(void *arg)
{
    (void)arg;
    diary->cancel = due_cancel(diary->q, diary->id, NULL);
}

static void put_and_cancel(void *arg)
{
    diary->put = put(0, 0, &diary->id);
    cancel(arg);
}

static void put_other(void *arg)
{
    (void)arg;
    explore_check(put(OTHER, 0, NULL) == 0, "enqueue");
}

/* Which job was told of is known before its enqueue is back, so it can be gone before that, and its
 * place another's, of another topic. */
static void put_unnamed(void *arg)
{
    (void)arg;
    diary->put = put(0, 0, NULL);
}

static void cancel_and_put_other(void *arg)
{
    cancel(arg);
    put_other(arg);
}

static void take(void *arg)
{
    int topic = 0;

    diary->other = take_from(diary->q, &topic, 1, &diary->taken, DUE_MS((uintptr_t)arg));
}

static void reserve_within(void *arg)
{
    (void)arg;
    diary->other = take_leased(diary->q, &diary->taken, LONG, DUE_MS(5));
}

static void ack(void *arg)
{
    due_job job = diary->held;

    (void)arg;
    diary->ack = due_ack(&job);
}

static void nack(void *arg)
{
    due_job job = diary->held;

    (void)arg;
    diary->nack = due_nack(&job, 0);
}

/* ---- What must hold ---- */

static void at_rest(void)
{
    explore_check(diary->q->lock.word == 0, "everybody rests, and the lock is held");
    explore_check(diary->inside == 0, "everybody rests, and somebody tells");
    explore_check(diary->q->events->list == 0, "everybody rests, and a step is to be told");
}

static void same(const char *what, uint64_t told, uint64_t made)
{
    explore_check(told == made, "%s: told %llu, made %llu", what, (unsigned long long)told,
                  (unsigned long long)made);
}

static void check_diary(void)
{
    const unsigned *told = diary->kinds;
    struct due_topic_stats topic;

    at_rest();
    explore_check(due_topic_stats_read(diary->q, 0, &topic) == 0, "topic");
    same("produced", told[DUE_EVENT_PRODUCED], 1);
    same("delivered", told[DUE_EVENT_DELIVERED],
         (uint64_t)(diary->held.queue != NULL) + (diary->other == 0));
    same("acked", told[DUE_EVENT_ACKED], diary->ack == 0);
    same("retried", told[DUE_EVENT_RETRIED], topic.retried);
    same("cancelled", told[DUE_EVENT_CANCELLED], topic.cancelled);
    same("waits", diary->place == WAITS || diary->place == READY, topic.delayed + topic.ready);
    same("leased", diary->place == LEASED, topic.leased);
    same("gone", diary->place == GONE, topic.acked + topic.cancelled + topic.dequeued);
    explore_check(diary->cancel == UNKNOWN || diary->cancel == 0 || diary->cancel == DUE_EBUSY ||
                      diary->cancel == DUE_ENOENT,
                  "cancel: %d", diary->cancel);
    explore_check(diary->cancel != 0 || told[DUE_EVENT_CANCELLED] == 1, "cancelled, and not told");
}

/* Whose place another has by now is counted in its own topic, and the other in the other. */
static void check_both(void)
{
    struct due_topic_stats other;

    check_diary();
    explore_check(due_topic_stats_read(diary->q, OTHER, &other) == 0, "topic");
    same("ready in the other topic", 1, other.ready);
}

/* ---- Scenarios ---- */

static void open_diary(void)
{
    due_options o = { DUE_OPTIONS_INIT,
                      .allocator = &explore_allocator,
                      .proxies = DUE_PROXIES_NEVER,
                      .on_event = on_event,
                      .metrics = 1,
                      .reserve = 1 };

    diary = explore_new(sizeof *diary);
    diary->put = diary->ack = diary->nack = diary->cancel = diary->other = UNKNOWN;
    explore_check(due_open(&diary->q, &o, NULL) == 0, "open");
    explore_check(due_topic(diary->q, "other") == OTHER, "topic");
}

static void open_with_job(int64_t at_ns)
{
    open_diary();
    explore_check(put(0, at_ns, &diary->id) == 0, "enqueue");
}

static void open_reserved(void)
{
    open_with_job(0);
    explore_check(take_leased(diary->q, &diary->held, LEASE, 0) == 0, "reserve");
}

static void take_cancel_setup(void)
{
    open_with_job(0);
    explore_thread("taker", take, as_arg(0));
    explore_thread("canceller", cancel, NULL);
}

static void put_take_setup(void)
{
    open_diary();
    explore_thread("producer", put_and_cancel, NULL);
    explore_thread("other producer", put_other, NULL);
    explore_thread("taker", take, as_arg(0));
}

static void told_cancel_setup(void)
{
    open_diary();
    explore_thread("producer", put_unnamed, NULL);
    explore_thread("canceller", cancel_and_put_other, NULL);
}

static void ready_cancel_setup(void)
{
    open_with_job(EXPLORE_START_NS + DUE_MS(1));
    explore_thread("taker", take, as_arg(5));
    explore_thread("canceller", cancel, NULL);
}

static void lease_end_setup(void)
{
    open_reserved();
    explore_thread("holder", ack, NULL);
    explore_thread("other", reserve_within, NULL);
}

static void lease_cancel_setup(void)
{
    open_reserved();
    explore_thread("holder", nack, NULL);
    explore_thread("canceller", cancel, NULL);
    explore_thread("other", reserve_within, NULL);
}

/* Its holder has let go of it, and does not answer. */
static void lapse_cancel_setup(void)
{
    open_reserved();
    due_job job = diary->held;
    due_job_done(&job);
    explore_thread("taker", take, as_arg(5));
    explore_thread("canceller", cancel_and_put_other, NULL);
}

#define EVENTS_CHECKED(name_, about_, setup_, check_, quick_, deep_)                               \
    {                                                                                              \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = at_rest, .check = (check_), \
        .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, .walks = 10,                 \
    }

#define EVENTS(name_, about_, setup_, quick_, deep_) \
    EVENTS_CHECKED(name_, about_, setup_, check_diary, quick_, deep_)

const struct explore_scenario explore_scenarios_events[] = {
    EVENTS("event_take_cancel", "who tells of a job that is taken and cancelled", take_cancel_setup,
           (3, 0, 0, 0), (4, 1, 0, 0)),
    EVENTS("event_put_take", "of one that is put, perhaps by another, cancelled and taken",
           put_take_setup, (2, 0, 0, 0), (3, 1, 0, 0)),
    EVENTS_CHECKED("event_told_cancel",
                   "of one that is gone before its enqueue is back, and its place another's",
                   told_cancel_setup, check_both, (2, 0, 0, 0), (3, 1, 0, 0)),
    EVENTS("event_ready_cancel", "of one that becomes due and is cancelled", ready_cancel_setup,
           (3, 0, 1, 0), (4, 1, 1, 0)),
    EVENTS("event_lease_end", "of the end of a lease and its ack", lease_end_setup, (2, 0, 1, 0),
           (3, 1, 1, 0)),
    EVENTS("event_lease_cancel", "of a nack, a cancel and the end of the lease", lease_cancel_setup,
           (1, 0, 1, 0), (2, 1, 1, 0)),
    EVENTS_CHECKED("event_lapse_cancel",
                   "of one that is cancelled when its lease has ended, and its place another's",
                   lapse_cancel_setup, check_both, (2, 0, 1, 0), (3, 1, 1, 0)),
    { .name = NULL },
};
