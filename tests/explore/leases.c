/* leases.c - scenarios of jobs that are answered for: one job, several who have to do with it.
 *
 * Of all who answer for one lease one is right, and the others are told that they are late; what
 * was cancelled is never handed out again; what dies is dead once.
 */
#include <stdlib.h>

#include "acts.h"
#include "os/atomic.h"
#include "api/ack.h"
#include "queue/job_records.h"
#include "lab/take.h"

#define LEASE   DUE_MS(1)
#define LONG    DUE_S(1)
#define UNKNOWN 1 /* in answers: not asked */

/* One job, and what was answered. */
struct desk {
    due_queue *q;
    due_id id;
    due_job held; /* as it was reserved in setup */
    int ack;
    int nack;
    int extend;
    int cancel;
    int kick;
    int find;
    int other;     /* of another reserve or dequeue */
    due_job taken; /* what it got */
    unsigned discards;
};

static struct desk *desk;

/* ---- Threads ---- */

static void ack(void *arg)
{
    due_job job = desk->held;

    (void)arg;
    desk->ack = due_ack(&job);
}

static void ack_both(void *arg)
{
    due_job jobs[] = { desk->held, desk->taken };

    (void)arg;
    desk->ack = due_ack_batch(jobs, 2, NULL);
}

static void drain(void *arg)
{
    (void)arg;
    desk->other = due_close(desk->q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    explore_check(desk->other == 0, "close: %d", desk->other);
    if (due_free(desk->q) == 0) /* else a job is with its holder */
        desk->q = NULL;
}

static void nack(void *arg)
{
    due_job job = desk->held;

    (void)arg;
    desk->nack = due_nack(&job, 0);
}

static void extend(void *arg)
{
    (void)arg;
    desk->extend = due_extend(&desk->held, LONG);
}

static void cancel(void *arg)
{
    (void)arg;
    desk->cancel = due_cancel(desk->q, desk->id, NULL);
}

static void kick(void *arg)
{
    (void)arg;
    desk->kick = due_kick(desk->q, desk->id);
}

static void bury_and_cancel(void *arg)
{
    due_job job = desk->held;

    explore_check(due_bury(&job, "why") == 0, "bury");
    cancel(arg);
}

static void release(void *arg)
{
    due_job job = desk->held;

    (void)arg;
    desk->nack = due__lease_release(&job);
}

/* Its lease has ended. */
static void find(void *arg)
{
    due_info info;

    (void)arg;
    desk->find = due_find(desk->q, desk->id, &info);
    explore_check(desk->find != 0 || info.deadline_ns == EXPLORE_START_NS + LEASE, "deadline");
}

static void find_too(void *arg)
{
    due_info info;

    (void)arg;
    desk->other = due_find(desk->q, desk->id, &info);
}

static void poll(void *arg)
{
    (void)arg;
    desk->other = due_poll(desk->q, NULL) == 1 ? 0 : UNKNOWN;
}

static void reserve_within(void *arg)
{
    (void)arg;
    desk->other = take_leased(desk->q, &desk->taken, LONG, DUE_MS(5));
}

static void reserve_now(void *arg)
{
    (void)arg;
    desk->other = take_leased(desk->q, &desk->taken, LONG, 0);
}

static void reserve_and_give_back(void *arg)
{
    reserve_now(arg);
    if (desk->other == 0)
        desk->nack = due_nack(&desk->taken, 0);
}

/* ---- Setup ---- */

static void on_discard(void *ctx, const due_job *job)
{
    (void)ctx, (void)job;
    desk->discards++;
}

static void open_desk_by(due_clock *clock, uint32_t attempts_max)
{
    desk = explore_new(sizeof *desk);
    due_options o = { DUE_OPTIONS_INIT,
                      .allocator = &explore_allocator,
                      .manual = clock,
                      .proxies = DUE_PROXIES_NEVER,
                      .on_discard = on_discard,
                      .retry = { .kind = DUE_RETRY_FIXED, .attempts_max = attempts_max },
                      .reserve = 1 };
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3 };

    explore_check(due_open(&desk->q, &o, NULL) == 0, "open");
    explore_check(due_enqueue(desk->q, &spec, 0, &desk->id) == 0, "enqueue");
    desk->ack = desk->nack = desk->extend = desk->cancel = desk->kick = desk->other = UNKNOWN;
}

static void open_desk(uint32_t attempts_max)
{
    open_desk_by(NULL, attempts_max);
}

/* The lease has ended, and nobody has come to it. */
static void open_ended(void)
{
    due_clock *clock = due_clock_manual(EXPLORE_START_NS);

    if (clock == NULL)
        abort();
    open_desk_by(clock, 0);
    explore_check(take_leased(desk->q, &desk->held, LEASE, 0) == 0, "reserve");
    explore_check(due_clock_advance(clock, LEASE) == 0, "advance");
}

static void open_reserved(uint32_t attempts_max, int64_t lease_ns)
{
    open_desk(attempts_max);
    explore_check(take_leased(desk->q, &desk->held, lease_ns, 0) == 0, "reserve");
}

static void open_dead(void)
{
    open_reserved(0, LONG);
    explore_check(due_bury(&desk->held, "why") == 0, "bury");
}

/* ---- What must hold ---- */

static bool one_of(int rc, int a, int b)
{
    return rc == a || rc == b;
}

/* Who has it, or has it gone?  Whoever looks, and whenever, counts the job in one place. */
static void check_counted(void *arg)
{
    struct due_stats s;

    (void)arg;
    explore_check(due_stats_read(desk->q, &s) == 0, "stats");
    uint64_t gone = s.acked + s.cancelled + s.discarded + s.dequeued;
    explore_check(s.waiting + s.leased + s.dead + gone == 1 && s.dead <= 1,
                  "%llu waiting, %llu leased, %llu dead, %llu gone", (unsigned long long)s.waiting,
                  (unsigned long long)s.leased, (unsigned long long)s.dead,
                  (unsigned long long)gone);
}

/* At the end. */
static void check_place(void)
{
    struct due_stats s;

    check_counted(NULL);
    explore_check(due_stats_read(desk->q, &s) == 0, "stats");
    explore_check(s.enqueued == 1, "%llu enqueued", (unsigned long long)s.enqueued);
    explore_check(s.dead == desk->q->dead_count, "dead ones");
}

static void at_rest(void)
{
    if (desk->q == NULL)
        return;
    explore_check(desk->q->lock.word == 0, "everybody rests, and the lock is held");
    explore_check(desk->q->dying == 0, "everybody rests, and a job is to be seen to");
}

/* An ack and somebody else who reserves when the lease ends: one of them has it. */
static void check_ack_or_other(void)
{
    explore_check(one_of(desk->ack, 0, DUE_ESTALE), "ack: %d", desk->ack);
    explore_check(one_of(desk->other, 0, DUE_ETIMEDOUT), "reserve: %d", desk->other);
    explore_check((desk->ack == 0) == (desk->other != 0), "ack %d, and the other %d", desk->ack,
                  desk->other);
    if (desk->other == 0) {
        explore_check(desk->taken.attempts == 2 && desk->taken.failures == 1, "counts");
        int rc = due_ack(&desk->taken);
        explore_check(rc == 0, "who has it answers for it: %d", rc);
    }
    check_place();
}

static void check_extend_or_other(void)
{
    explore_check(one_of(desk->extend, 0, DUE_ESTALE), "extend: %d", desk->extend);
    explore_check((desk->extend == 0) == (desk->other != 0), "extend %d, and the other %d",
                  desk->extend, desk->other);
    check_place();
}

/* Whoever waits for the last job comes back, and each job was counted once as done with. */
static void check_both(void)
{
    struct due_stats s;

    explore_check(desk->ack == 2, "ack: %d", desk->ack);
    if (desk->q == NULL)
        return;
    explore_check(due_stats_read(desk->q, &s) == 0, "stats");
    explore_check(s.acked == 2 && s.leased == 0 && s.lent == 0, "%llu acked, %llu leased, %llu out",
                  (unsigned long long)s.acked, (unsigned long long)s.leased,
                  (unsigned long long)s.lent);
}

/* Nobody else has it: an ack is never late because of an extend. */
static void check_ack_and_extend(void)
{
    explore_check(desk->ack == 0, "ack: %d", desk->ack);
    explore_check(one_of(desk->extend, 0, DUE_ESTALE), "extend: %d", desk->extend);
    check_place();
}

static void check_ack_or_nack(void)
{
    explore_check((desk->ack == 0) + (desk->nack == 0) == 1, "ack %d, nack %d", desk->ack,
                  desk->nack);
    explore_check(desk->ack == 0 || desk->ack == DUE_ESTALE, "ack: %d", desk->ack);
    explore_check(desk->nack == 0 || desk->nack == DUE_ESTALE, "nack: %d", desk->nack);
    check_place();
}

/* A cancel says whether somebody had it; if so, it does not come back. */
static void check_cancel_or_reserve(void)
{
    due_job job;

    explore_check(one_of(desk->cancel, 0, DUE_EBUSY), "cancel: %d", desk->cancel);
    explore_check(take_leased(desk->q, &job, LONG, 0) == DUE_EAGAIN, "it came again");
    check_place();
}

/* One of both has marked it: the nack, or the end of the lease, removes it. */
static void check_revoked(void)
{
    due_job job;

    explore_check(one_of(desk->cancel, 0, DUE_EBUSY), "cancel: %d", desk->cancel);
    explore_check(desk->nack == 0, "nack: %d", desk->nack);
    explore_check(take_leased(desk->q, &job, LONG, 0) == DUE_EAGAIN, "it came again");
    check_place();
}

/* The last attempt fails by the nack, or because the lease ends: dead, once. */
static void check_dead_once(void)
{
    struct due_stats s;

    explore_check(one_of(desk->nack, 0, DUE_ESTALE), "nack: %d", desk->nack);
    explore_check(desk->other == DUE_ETIMEDOUT, "handed out after its last attempt");
    check_place();
    explore_check(due_stats_read(desk->q, &s) == 0 && s.dead == 1 && s.buried == 1,
                  "dead %llu times", (unsigned long long)s.buried);
}

static void check_kick_or_cancel(void)
{
    due_job job;

    explore_check(desk->cancel == 0, "cancel: %d", desk->cancel);
    explore_check(one_of(desk->kick, 0, DUE_ENOENT), "kick: %d", desk->kick);
    explore_check(take_leased(desk->q, &job, LONG, 0) == DUE_EAGAIN, "it came again");
    check_place();
}

/* Kicked before it was cancelled, or not; it is gone. */
static void check_buried_and_cancelled(void)
{
    explore_check(desk->cancel == 0, "cancel: %d", desk->cancel);
    explore_check(one_of(desk->kick, 0, DUE_ENOENT), "kick: %d", desk->kick);
    check_place();
}

/* Given back uncounted, or its lease has ended: somebody else has it. */
static void check_release_or_end(void)
{
    explore_check(one_of(desk->nack, 0, DUE_ESTALE), "release: %d", desk->nack);
    explore_check(desk->other == 0 || (desk->other == DUE_ETIMEDOUT && desk->nack == 0),
                  "reserve: %d",
                  desk->other); /* the pool may have lost the processor for so long */
    explore_check(desk->other != 0 || desk->taken.attempts == (desk->nack == 0 ? 1u : 2u),
                  "attempts %u", desk->taken.attempts);
    check_place();
}

/* Nobody has it, whoever was the first to see that. */
static void check_found(void)
{
    explore_check(desk->find == 0 && desk->other == 0, "find %d, and the other %d", desk->find,
                  desk->other);
    check_place();
}

/* A job may be copied, and one copy is done with: two who answer both hold it. */
static void lend_again(void)
{
    uint32_t number;
    uint32_t generation;

    due__handle_read(desk->held.place, &number, &generation);
    due__add_seq(&due__lease_at(desk->q, number)->holders, 1);
}

/* ---- Scenarios ---- */

static void end_ack_setup(void)
{
    open_reserved(0, LEASE);
    explore_thread("holder", ack, NULL);
    explore_thread("other", reserve_within, NULL);
}

/* The jobs that a close waits for are acked together. */
static void drain_acked_setup(void)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "cake", .len = 4 };

    open_reserved(0, LONG);
    explore_check(due_enqueue(desk->q, &spec, 0, NULL) == 0, "enqueue");
    explore_check(take_leased(desk->q, &desk->taken, LONG, 0) == 0, "reserve");
    explore_thread("holder", ack_both, NULL);
    explore_thread("closer", drain, NULL);
}

static void end_extend_setup(void)
{
    open_reserved(0, LEASE);
    explore_thread("holder", extend, NULL);
    explore_thread("other", reserve_within, NULL);
}

static void ack_extend_setup(void)
{
    open_reserved(0, LONG);
    explore_thread("holder", ack, NULL);
    explore_thread("keeper", extend, NULL);
}

static void ack_nack_setup(void)
{
    open_reserved(0, LONG);
    lend_again();
    explore_thread("holder", ack, NULL);
    explore_thread("other holder", nack, NULL);
}

static void cancel_reserve_setup(void)
{
    open_desk(0);
    explore_thread("canceller", cancel, NULL);
    explore_thread("taker", reserve_and_give_back, NULL);
}

static void cancel_nack_setup(void)
{
    open_reserved(0, LONG);
    explore_thread("canceller", cancel, NULL);
    explore_thread("holder", nack, NULL);
}

static void last_setup(void)
{
    open_reserved(1, LEASE);
    explore_thread("holder", nack, NULL);
    explore_thread("other", reserve_within, NULL);
}

static void kick_cancel_setup(void)
{
    open_dead();
    explore_thread("canceller", cancel, NULL);
    explore_thread("kicker", kick, NULL);
}

static void kick_and_count(void *arg)
{
    kick(arg);
    check_counted(arg);
}

static void counted_setup(void)
{
    open_reserved(0, LONG);
    explore_thread("holder", bury_and_cancel, NULL);
    explore_thread("kicker", kick_and_count, NULL);
}

static void find_poll_setup(void)
{
    open_ended();
    explore_thread("finder", find, NULL);
    explore_thread("poller", poll, NULL);
}

static void find_both_setup(void)
{
    open_ended();
    explore_thread("finder", find, NULL);
    explore_thread("other", find_too, NULL);
}

static void release_setup(void)
{
    open_reserved(0, LEASE);
    explore_thread("pool", release, NULL);
    explore_thread("other", reserve_within, NULL);
}

#define LEASES(name_, about_, setup_, check_, quick_, deep_, walks_)                               \
    {                                                                                              \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = at_rest, .check = (check_), \
        .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, .walks = (walks_),           \
    }

const struct explore_scenario explore_scenarios_leases[] = {
    LEASES("lease_end_ack", "the end of a lease and its ack", end_ack_setup, check_ack_or_other,
           (2, 0, 1, 0), (3, 1, 1, 0), 10),
    LEASES("lease_end_extend", "the end of a lease and its extension", end_extend_setup,
           check_extend_or_other, (2, 0, 1, 0), (3, 1, 1, 0), 10),
    LEASES("lease_ack_extend", "an ack and an extension of one lease", ack_extend_setup,
           check_ack_and_extend, (3, 1, 0, 0), (4, 1, 0, 0), 10),
    LEASES("lease_ack_nack", "two answers for one lease", ack_nack_setup, check_ack_or_nack,
           (3, 1, 0, 0), (4, 1, 0, 0), 10),
    LEASES("drain_acked", "a drain, and an ack of all that it waits for", drain_acked_setup,
           check_both, (2, 0, 0, 0), (2, 1, 0, 0), 10),
    LEASES("lease_cancel_reserve", "cancel, and who reserves and gives back", cancel_reserve_setup,
           check_cancel_or_reserve, (3, 0, 0, 0), (4, 1, 0, 0), 10),
    LEASES("lease_cancel_nack", "cancel of what is reserved, and its nack", cancel_nack_setup,
           check_revoked, (3, 1, 0, 0), (4, 1, 0, 0), 10),
    LEASES("lease_last", "the last attempt fails twice", last_setup, check_dead_once, (2, 0, 1, 0),
           (3, 1, 1, 0), 10),
    LEASES("dead_kick_cancel", "a dead job is kicked and cancelled", kick_cancel_setup,
           check_kick_or_cancel, (3, 1, 0, 0), (4, 1, 0, 0), 10),
    LEASES("dead_counted", "a job dies and goes, and is kicked and counted", counted_setup,
           check_buried_and_cancelled, (2, 0, 0, 0), (3, 1, 0, 0), 10),
    LEASES("lease_release", "a pool gives back, and the lease ends", release_setup,
           check_release_or_end, (2, 0, 1, 0), (3, 1, 1, 0), 10),
    LEASES("lease_ended_poll", "who finds a job whose lease has ended, and a poll", find_poll_setup,
           check_found, (3, 0, 0, 0), (4, 1, 0, 0), 10),
    LEASES("lease_ended_both", "two find a job whose lease has ended", find_both_setup, check_found,
           (3, 0, 0, 0), (4, 1, 0, 0), 10),
    { .name = NULL },
};
