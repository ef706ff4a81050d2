/* changes.c - scenarios of jobs that are changed in place, and of jobs that come again.
 *
 * Whoever gets or sees a job that is changed sees all of one version, and a change that was made is
 * what everybody sees after it.  No round of a repeating job is lost; after a cancel none comes.
 */
#include "acts.h"
#include "os/atomic.h"
#include "engine.h"
#include "lab/take.h"

#include <string.h>

#define LONG    DUE_S(1)
#define EVERY   DUE_MS(1)
#define UNKNOWN 1 /* in answers: not asked */
#define TAKERS  2u

/* The old version and the new one. */
static const char old_text[] = "tea";
static const char new_text[] = "a text that does not fit into the place of a job, in no way";

struct shelf {
    due_queue *q;
    due_id id;
    bool timed;   /* the change is one of the time, too */
    due_job held; /* as it was reserved in setup */
    due_job taken[TAKERS];
    int took[TAKERS];
    int update;
    int cancel;
    int ack;
    int close;
};

static struct shelf *shelf;

/* ---- What must hold ---- */

#define LATER        LAB_AT_MS(1)
#define LAB_AT_MS(n) (EXPLORE_START_NS + DUE_MS(n))

/* 0: the old version, 1: the new one. */
static unsigned version_of(size_t len, const void *data, int64_t deadline_ns)
{
    bool new = len == sizeof new_text;

    explore_check(new || len == sizeof old_text, "%zu bytes", len);
    explore_check(data == NULL || memcmp(data, new ? new_text : old_text, len) == 0, "torn");
    explore_check(!shelf->timed || (deadline_ns == LATER) == new, "a half of another version");
    return new;
}

static void check_taken(unsigned which)
{
    due_job *job = &shelf->taken[which];

    explore_check(shelf->took[which] == 0 || shelf->took[which] == DUE_EAGAIN ||
                      shelf->took[which] == UNKNOWN,
                  "take: %d", shelf->took[which]);
    if (shelf->took[which] != 0 || !due_id_equal(job->id, shelf->id))
        return;
    explore_check(version_of(job->len, job->data, job->deadline_ns) == (shelf->update == 0),
                  "taken as it was %s the change: %d",
                  job->len == sizeof new_text ? "after" : "before", shelf->update);
}

/* Done with what was taken; then what is left can be had, and each job is in one place. */
static void check_places(uint64_t jobs)
{
    struct due_stats s;
    due_job job;

    for (unsigned i = 0; i < TAKERS; i++)
        due_job_done(&shelf->taken[i]);
    world->now_ns += DUE_S(1000);
    while (due_dequeue(shelf->q, &job, 0) == 0)
        due_job_done(&job);
    explore_check(due_stats_read(shelf->q, &s) == 0, "stats");
    explore_check(s.waiting == 0, "%llu are due, and cannot be had", (unsigned long long)s.waiting);
    explore_check(s.lent == 0, "%llu lent", (unsigned long long)s.lent);
    explore_check(s.dequeued + s.cancelled == jobs, "%llu dequeued, %llu cancelled",
                  (unsigned long long)s.dequeued, (unsigned long long)s.cancelled);
}

static void check_update(void)
{
    struct due_stats s;

    explore_check(shelf->update == 0 || shelf->update == DUE_EBUSY || shelf->update == DUE_ENOENT,
                  "update: %d", shelf->update);
    for (unsigned i = 0; i < TAKERS; i++)
        check_taken(i);
    explore_check(shelf->cancel == UNKNOWN || shelf->cancel == 0 || shelf->cancel == DUE_EBUSY,
                  "cancel: %d", shelf->cancel);
    check_places(shelf->took[1] == UNKNOWN ? 1 : 2);
    explore_check(due_stats_read(shelf->q, &s) == 0, "stats");
    explore_check(shelf->update != 0 || s.kept_bytes > 0, "the block of the new text is nobody's");
}

static void check_seen(void)
{
    explore_check(shelf->update == 0, "update: %d", shelf->update);
    check_places(2);
}

/* A repeating job of which a round was done and which was cancelled meanwhile. */
static void check_ended(void)
{
    due_job job;

    explore_check(shelf->cancel == 0 || shelf->cancel == DUE_EBUSY, "cancel: %d", shelf->cancel);
    explore_check(shelf->ack == UNKNOWN || shelf->ack == 0, "ack: %d", shelf->ack);
    explore_check(shelf->took[0] == UNKNOWN || shelf->took[0] == 0 ||
                      (shelf->took[0] == DUE_EAGAIN && shelf->cancel == 0),
                  "take: %d, cancel: %d", shelf->took[0], shelf->cancel);
    explore_check(shelf->took[0] != 0 || memcmp(shelf->taken[0].data, old_text, 3) == 0, "torn");
    due_job_done(&shelf->taken[0]);
    world->now_ns += DUE_S(1000);
    explore_check(due_dequeue(shelf->q, &job, 0) == DUE_EAGAIN, "it comes again");
    struct due_stats s;
    explore_check(due_stats_read(shelf->q, &s) == 0, "stats");
    explore_check(s.waiting + s.leased + s.lent == 0, "it is somewhere still");
    explore_check(s.acked + s.cancelled + s.dequeued == 1, "it has left %llu times",
                  (unsigned long long)(s.acked + s.cancelled + s.dequeued));
}

/* A job whose time is over, which a taker found while it was cancelled: it is gone, also if it was
 * about to be among the dead. */
static void check_off(void)
{
    struct due_stats s;

    explore_check(shelf->took[0] == DUE_EAGAIN, "take: %d", shelf->took[0]);
    explore_check(shelf->cancel == 0 || shelf->cancel == DUE_EBUSY, "cancel: %d", shelf->cancel);
    explore_check(due_kick(shelf->q, shelf->id) == DUE_ENOENT, "it comes again");
    explore_check(due_stats_read(shelf->q, &s) == 0, "stats");
    explore_check(s.waiting + s.leased + s.lent + s.dead == 0, "it is somewhere still");
    explore_check(s.cancelled == 1, "cancelled %llu times", (unsigned long long)s.cancelled);
}

/* A draining close and the end of a round: one more at most, and the close comes to its end. */
static void check_drained(void)
{
    due_job job;

    explore_check(shelf->ack == UNKNOWN || shelf->ack == 0, "ack: %d", shelf->ack);
    due_job_done(&shelf->taken[0]);
    world->now_ns += DUE_S(1000);
    if (shelf->close == DUE_ETIMEDOUT && due_dequeue(shelf->q, &job, 0) == 0)
        due_job_done(&job);
    explore_check(due_close(shelf->q, DUE_CLOSE_DRAIN, 0) == 0, "it does not end");
}

static void at_rest(void)
{
    explore_check(shelf->q->lock.word == 0, "everybody rests, and the lock is held");
    explore_check(shelf->q->dying == 0, "everybody rests, and a job is to be seen to");
}

/* ---- Threads ---- */

static void update(void *arg)
{
    due_spec spec = { DUE_SPEC_INIT, .data = new_text, .len = sizeof new_text, .at_ns = LATER };

    (void)arg;
    if (shelf->timed)
        shelf->update = due_amend(shelf->q, shelf->id, &spec, DUE_SET_DATA | DUE_SET_TIME);
    else
        shelf->update = due_update(shelf->q, shelf->id, new_text, sizeof new_text);
}

static void take(void *arg)
{
    unsigned which = (unsigned)(uintptr_t)arg;

    shelf->took[which] = due_dequeue(shelf->q, &shelf->taken[which], 0);
}

static void cancel(void *arg)
{
    (void)arg;
    shelf->cancel = due_cancel(shelf->q, shelf->id, NULL);
}

static void look(void *arg)
{
    due_info info;

    (void)arg;
    if (due_find(shelf->q, shelf->id, &info) == 0)
        version_of(info.len, NULL, info.deadline_ns);
}

static void ack(void *arg)
{
    due_job job = shelf->held;

    (void)arg;
    shelf->ack = due_ack(&job);
}

static void drain(void *arg)
{
    (void)arg;
    shelf->close = due_close(shelf->q, DUE_CLOSE_DRAIN, 0);
}

/* Puts it, perhaps into the inbox, and changes it at once. */
static void put_and_update(void *arg)
{
    due_spec spec = { DUE_SPEC_INIT, .data = old_text, .len = sizeof old_text,
                      .at_ns = LAB_AT_MS(2) };

    explore_check(due_enqueue(shelf->q, &spec, 0, &shelf->id) == 0, "enqueue");
    update(arg);
}

static void put_other(void *arg)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = LAB_AT_MS(3) };
    due_id id;

    (void)arg;
    explore_check(due_enqueue(shelf->q, &spec, 0, &id) == 0, "enqueue");
    explore_check(due_cancel(shelf->q, id, NULL) == 0, "cancel");
}

/* ---- Setup ---- */

static void open_shelf(due_spec spec, bool others)
{
    due_options o = { DUE_OPTIONS_INIT, .allocator = &explore_allocator,
                      .proxies = DUE_PROXIES_NEVER, .reserve = 1 };

    shelf = explore_new(sizeof *shelf);
    shelf->update = shelf->cancel = shelf->ack = shelf->close = UNKNOWN;
    shelf->took[0] = shelf->took[1] = UNKNOWN;
    explore_check(due_open(&shelf->q, &o, NULL) == 0, "open");
    spec.data = old_text;
    spec.len = sizeof old_text;
    if (spec.size != 0)
        explore_check(due_enqueue(shelf->q, &spec, 0, &shelf->id) == 0, "enqueue");
    if (others)
        explore_check(due_enqueue(shelf->q, &spec, 0, NULL) == 0, "enqueue");
}

static void show(void)
{
    due_info info;

    explore_check(due_peek(shelf->q, &info) == 0, "nothing to show");
}

static void update_setup(bool timed, bool others)
{
    open_shelf((due_spec){ DUE_SPEC_INIT, .delay_ns = 0 }, others);
    shelf->timed = timed;
    show();
    explore_thread("updater", update, NULL);
    explore_thread("taker", take, as_arg(0));
}

static void update_take_setup(void)
{
    update_setup(false, false);
}

static void update_two_takers_setup(void)
{
    update_setup(false, true);
    explore_thread("other taker", take, as_arg(1));
}

static void amend_take_setup(void)
{
    update_setup(true, false);
}

static void update_cancel_setup(void)
{
    update_setup(false, false);
    explore_thread("canceller", cancel, NULL);
}

static void amend_look_setup(void)
{
    open_shelf((due_spec){ .size = 0 }, false);
    shelf->timed = true;
    explore_thread("producer", put_and_update, NULL);
    explore_thread("holder", put_other, NULL);
    explore_thread("looker", look, NULL);
}

static void open_repeating(bool reserved)
{
    open_shelf((due_spec){ DUE_SPEC_INIT, .delay_ns = 0, .more = EXTRA(.every_ns = EVERY) }, false);
    if (reserved)
        explore_check(take_leased(shelf->q, &shelf->held, LONG, 0) == 0, "reserve");
    else
        show();
}

static void ack_cancel_setup(void)
{
    open_repeating(true);
    explore_thread("holder", ack, NULL);
    explore_thread("canceller", cancel, NULL);
}

static void take_cancel_setup(void)
{
    open_repeating(false);
    explore_thread("taker", take, as_arg(0));
    explore_thread("canceller", cancel, NULL);
}

static void off_setup(int64_t ttl_ns, int64_t expires_ns)
{
    open_shelf((due_spec){ DUE_SPEC_INIT, .delay_ns = 0,
                           .more = EXTRA(.ttl_ns = ttl_ns, .expires_ns = expires_ns) },
               false);
    world->now_ns += LONG;
    explore_thread("taker", take, as_arg(0));
    explore_thread("canceller", cancel, NULL);
}

static void ttl_cancel_setup(void)
{
    off_setup(EVERY, 0);
}

static void expires_cancel_setup(void)
{
    off_setup(0, LATER);
}

static void ack_drain_setup(void)
{
    open_repeating(true);
    explore_thread("holder", ack, NULL);
    explore_thread("closer", drain, NULL);
}

static void take_drain_setup(void)
{
    open_repeating(false);
    explore_thread("taker", take, as_arg(0));
    explore_thread("closer", drain, NULL);
}

#define CHANGES(name_, about_, setup_, check_, quick_, deep_)                                      \
    {                                                                                              \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = at_rest, .check = (check_), \
        .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, .walks = 10,                 \
    }

const struct explore_scenario explore_scenarios_changes[] = {
    CHANGES("update_take", "a job is updated and taken", update_take_setup, check_update,
            (3, 1, 0, 0), (4, 2, 0, 0)),
    CHANGES("update_two_takers", "one of two jobs is updated, both are taken",
            update_two_takers_setup, check_update, (2, 0, 0, 0), (4, 1, 0, 0)),
    CHANGES("update_cancel", "a job is updated, taken and cancelled", update_cancel_setup,
            check_update, (2, 0, 0, 0), (4, 1, 0, 0)),
    CHANGES("amend_take", "content and time are changed, and it is taken", amend_take_setup,
            check_update, (3, 1, 0, 0), (4, 2, 0, 0)),
    CHANGES("amend_look", "both are changed, perhaps in the inbox, and looked at", amend_look_setup,
            check_seen, (2, 0, 0, 0), (3, 1, 0, 0)),
    CHANGES("repeat_ack_cancel", "a round is acked, and the job cancelled", ack_cancel_setup,
            check_ended, (3, 1, 0, 0), (4, 2, 0, 0)),
    CHANGES("repeat_take_cancel", "a round is taken for good, and the job cancelled",
            take_cancel_setup, check_ended, (3, 1, 0, 0), (4, 2, 0, 0)),
    CHANGES("ttl_take_cancel", "a job that is too old is come to, and cancelled", ttl_cancel_setup,
            check_off, (3, 1, 0, 0), (4, 2, 0, 0)),
    CHANGES("expires_take_cancel", "the same of one that has expired", expires_cancel_setup,
            check_off, (3, 1, 0, 0), (4, 2, 0, 0)),
    CHANGES("repeat_ack_drain", "a round is acked, and the queue drains", ack_drain_setup,
            check_drained, (2, 0, 0, 0), (4, 1, 0, 0)),
    CHANGES("repeat_take_drain", "a round is taken for good, and the queue drains",
            take_drain_setup, check_drained, (2, 0, 0, 0), (4, 1, 0, 0)),
    { .name = NULL },
};
