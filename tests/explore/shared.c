/* shared.c - scenarios of a queue whose jobs other processes have too: claims, rings, leases.
 *
 * Whatever a call was told must be so in the store: a job that was dequeued is done there, by the
 * lease under which it was handed out, and no lease is handed out twice.  When everybody rests
 * nobody waits for a job that is due, whether it lies here or in the store.
 */
#include <string.h>

#include "acts.h"
#include "due/workers.h"
#include "lab/take.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "shared_shelf.h"
#include "store/share.h"
#include "workers/pool.h"

#define LEASE    DUE_MS(10)
#define PATIENCE DUE_MS(5) /* with the store */
#define HANDED   8u
#define FOREIGN  DUE_S(500) /* the lease of another process: it outlasts every scenario */

struct hall {
    due_queue *q;
    struct shared_shelf shelf;
    uint64_t handed[HANDED]; /* leases that were handed out */
    unsigned hands;
    int put; /* what an enqueue answered, 1: there was none; and its job */
    due_id id;
    due_workers *pool;
    unsigned handled; /* by the pool */
    bool closing, closed;
    bool refused; /* what who closes gives back may not reach the store */
    due_job job;  /* that was reserved */
    struct due__bell reserved;
    int64_t wall_ns; /* what the queue's clock is ahead of the store's */
};

static struct hall *hall;

/* ---- Threads ---- */

static bool late(int rc)
{
    return rc == DUE_ETIMEDOUT || rc == DUE_EINDOUBT || rc == DUE_EAGAIN || rc == DUE_ESTORE;
}

/* A lease is handed out once. */
static void hand(uint64_t lease)
{
    for (unsigned i = 0; i < hall->hands; i++)
        explore_check(hall->handed[i] != lease, "lease %llu is handed out twice",
                      (unsigned long long)lease);
    explore_check(hall->hands < HANDED, "too many hand-overs");
    hall->handed[hall->hands++] = lease;
}

static const struct shared_job *had(const due_job *job)
{
    const struct shared_job *in_store = shared_get(&hall->shelf, job->id);

    explore_check(in_store != NULL, "a job that the store does not know");
    return in_store;
}

/* @arg not NULL: there is a job before its time is up. */
static void dequeue(void *arg)
{
    due_job job;
    int64_t begun = explore_now();
    int rc = due_dequeue(hall->q, &job, DUE_S(1));

    explore_check(arg == NULL || explore_now() < begun + DUE_S(1), "nobody comes for the job");
    explore_note("dequeue: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ECLOSED || late(rc), "dequeue answers %s",
                  due_error_name(rc));
    if (rc != 0)
        return;
    const struct shared_job *in_store = had(&job);
    explore_check(in_store->state == SHARED_DONE && !in_store->elsewhere,
                  "it was dequeued, and is in the store");
    hand(in_store->held);
    due_job_done(&job);
}

/* It does not wait, and leaves a wish. */
static void look(void *arg)
{
    due_job job;
    (void)arg;
    int rc = due_dequeue(hall->q, &job, 0);
    explore_check(rc == 0 || rc == DUE_EAGAIN || rc == DUE_ECLOSED, "dequeue answers %s",
                  due_error_name(rc));
    if (rc != 0)
        return;
    hand(had(&job)->held);
    due_job_done(&job);
}

/* @token: the lease by which it was had, here until @until_ns. */
static void answered(int rc, due_id id, uint64_t token, int64_t until_ns)
{
    const struct shared_job *in_store = shared_get(&hall->shelf, id);
    bool ours = in_store->state == SHARED_HELD && in_store->held == token;

    explore_note("ack: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ESTALE || late(rc) || rc == DUE_ECLOSED, "ack answers %s",
                  due_error_name(rc));
    if (rc == 0)
        explore_check(in_store->state == SHARED_DONE && in_store->held == token,
                      "it was acked, and is in the store");
    if (rc == DUE_ESTALE)
        explore_check(!ours || explore_now() >= until_ns,
                      "it is said to be another's, and nobody else has had it");
}

/* A lease ends here no later than in the store.  Answers when. */
static int64_t leased(const due_job *job)
{
    const struct due__job *j = due__job_at(&hall->q->slab, (uint32_t)job->place - 1);
    const struct shared_job *in_store = had(job);
    int64_t until = j->deadline_ns - hall->wall_ns;

    if (in_store->held == job->token)
        explore_check(until <= in_store->until_ns || until <= explore_now() + 1,
                      "its lease ends first in the store");
    hand(job->token);
    return until;
}

static void reserve_and_ack(void *arg)
{
    due_job job;
    int rc = take_leased(hall->q, &job, LEASE, DUE_S(1));

    (void)arg;
    explore_note("reserve: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ECLOSED || late(rc), "reserve answers %s",
                  due_error_name(rc));
    if (rc != 0)
        return;
    due_job copy = job;
    int64_t until = leased(&job);
    rc = due_ack(&job);
    answered(rc, copy.id, copy.token, until);
}

/* Due at once, by the store's clock. */
static void enqueue(void *arg)
{
    due_spec spec = { DUE_SPEC_INIT };

    (void)arg;
    hall->put = due_enqueue(hall->q, &spec, 0, &hall->id);
    explore_note("enqueue: %s", due_error_name(hall->put));
    explore_check(hall->put == 0 || hall->put == DUE_ECLOSED || late(hall->put),
                  "enqueue answers %s", due_error_name(hall->put));
}

static void put_elsewhere(void *arg)
{
    (void)arg;
    shared_put(&hall->shelf, 0, explore_now());
}

static void put_later_elsewhere(void *arg)
{
    (void)arg;
    shared_put(&hall->shelf, 1, explore_now() + DUE_MS(3));
}

static void claim_elsewhere(void *arg)
{
    (void)arg;
    shared_claim_elsewhere(&hall->shelf, FOREIGN);
}

static void reserve_it(void *arg)
{
    (void)arg;
    int rc = take_leased(hall->q, &hall->job, LEASE, DUE_S(1));

    explore_check(rc == 0 || late(rc), "reserve answers %s", due_error_name(rc));
    due_job copy = hall->job;
    int64_t until = rc == 0 ? leased(&copy) : 0;
    due__bell_ring(&hall->reserved);
    if (rc != 0)
        return;
    rc = due_ack(&hall->job);
    answered(rc, copy.id, copy.token, until);
}

/* The store's clock has run ahead of ours: it says that the lease is over. */
static void steal(void *arg)
{
    (void)arg;
    due__bell_wait(&hall->reserved, DUE_FOREVER, false);
    hall->shelf.job[0].until_ns = explore_now();
    shared_claim_elsewhere(&hall->shelf, FOREIGN);
}

/* It fails, and waits again. */
static void reserve_and_nack(void *arg)
{
    due_job job;
    int rc = take_leased(hall->q, &job, LEASE, DUE_S(1));

    (void)arg;
    explore_check(rc == 0 || late(rc), "reserve answers %s", due_error_name(rc));
    if (rc != 0)
        return;
    due_job copy = job;
    (void)leased(&job);
    rc = due_nack(&job, DUE_MS(1));
    explore_note("nack: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ESTALE || late(rc), "nack answers %s", due_error_name(rc));
    const struct shared_job *in_store = had(&copy);
    explore_check(rc != 0 || in_store->held != copy.token || in_store->state == SHARED_WAITS,
                  "it was given back, and does not wait");
}

/* By a copy, of which the thread that acks knows nothing. */
static void extend_it(void *arg)
{
    (void)arg;
    due__bell_wait(&hall->reserved, DUE_FOREVER, false);
    due_job copy = hall->job;
    if (copy.queue == NULL)
        return; /* it was acked before it could be copied */
    int rc = due_extend(&copy, 2 * LEASE);
    explore_note("extend: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ESTALE || late(rc), "extend answers %s", due_error_name(rc));
}

/* Of a job that nobody has: the store is asked, whatever is in doubt there. */
static void cancel_there(void *arg)
{
    int64_t begun = explore_now();

    (void)arg;
    int rc = due_cancel(hall->q, hall->shelf.job[0].id, NULL);
    explore_note("cancel: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT || rc == DUE_ECLOSED || late(rc),
                  "cancel answers %s", due_error_name(rc));
    explore_check(rc != DUE_ETIMEDOUT || explore_now() >= begun + PATIENCE,
                  "it is said to be late, and is not");
    if (rc == 0)
        explore_check(hall->shelf.job[0].state == SHARED_DONE, "cancelled, and there");
}

/* ---- A pool ---- */

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx;
    hand(job->token);
    hall->handled++;
    *answer = due_answer_ack();
}

/* All threads here are one of the system, so they share what a worker says of itself. */
static void stop_pool(void *arg)
{
    static const struct due_workers none;
    int rc;

    (void)arg;
    do {
        due__handling_begin(&none);
        rc = due_workers_stop(hall->pool, DUE_FOREVER);
    } while (rc == DUE_EDEADLK);
    explore_check(rc == 0, "stop answers %s", due_error_name(rc));
}

static void close_now(void *arg)
{
    int64_t begun = explore_now();
    bool drain = arg != NULL;

    hall->closing = true;
    int rc = due_close(hall->q, drain ? DUE_CLOSE_DRAIN : DUE_CLOSE_DISCARD, DUE_FOREVER);
    explore_check(rc == 0, "close answers %s", due_error_name(rc));
    hall->closed = true;
    hall->refused |= explore_now() - begun >= DUE_S(1); /* it waits no longer for a claim */
}

/* ---- What must hold ---- */

/* Claimed by us, and in nobody's hand: such a job waits here for whoever comes. */
static bool held_in_vain(const struct shared_job *job)
{
    bool handed = false;

    for (unsigned i = 0; i < hall->hands; i++)
        handed |= hall->handed[i] == job->held;
    return job->state == SHARED_HELD && !job->elsewhere && !handed;
}

static void shared_idle(void)
{
    const struct due_queue *q = hall->q;
    const struct due__commits *c = q->commits;

    explore_check(c->key.word == 0 && c->calls.word == 0 && q->lock.word == 0,
                  "everybody rests, and a lock is held");
    if (hall->closing || c->retry_at_ns != 0 || q->all == NULL)
        return;
    explore_check(q->in_lines == 0, "a job lies here, and somebody waits");
    explore_check(!shared_due(&hall->shelf), "a job is due in the store, and somebody waits");
    for (unsigned i = 0; !c->share->claiming && i < SHARED_JOBS; i++)
        explore_check(!held_in_vain(&hall->shelf.job[i]), "job %u was claimed, and is not here", i);
}

static void shared_check(void)
{
    struct due_stats s;

    explore_check(due_stats_read(hall->q, &s) == 0, "stats");
    explore_check(s.enqueued == s.waiting + s.leased + s.dead + s.dequeued + s.acked + s.cancelled +
                                    s.discarded + s.kept,
                  "the stats do not add up");
    const struct shared_job *put = shared_get(&hall->shelf, hall->id);
    explore_check(hall->put != 0 || put != NULL, "what was enqueued is not in the store");
    explore_check(hall->put == 1 || hall->put == 0 || hall->put == DUE_EINDOUBT || put == NULL,
                  "it was refused, and is in the store");
    for (unsigned i = 0; hall->closed && !hall->refused && i < SHARED_JOBS; i++)
        explore_check(!held_in_vain(&hall->shelf.job[i]),
                      "job %u is held by a queue that was closed, and nobody has it", i);
}

/* ---- Scenarios ---- */

static void open_hall_for(int64_t lease_ns)
{
    hall = explore_new(sizeof *hall);
    hall->put = 1;
    explore_check(due__bell_init(&hall->reserved) == 0, "a bell");
    shared_make(&hall->shelf);
    due_options o = { DUE_OPTIONS_INIT,
                      .allocator = &explore_allocator,
                      .store = &hall->shelf.head,
                      .share = DUE_SHARED,
                      .lease_ns = lease_ns,
                      .store_timeout_ns = PATIENCE,
                      .reserve = 1 };
    int rc = due_open(&hall->q, &o, NULL);
    explore_check(rc == 0, "open: %s", due_error_text(rc));
    hall->wall_ns = due_now(hall->q) - explore_now();
}

static void open_hall(void)
{
    open_hall_for(0);
}

static void open_with_a_job(void)
{
    open_hall();
    shared_put(&hall->shelf, 0, explore_now());
}

static void claim_setup(void)
{
    open_with_a_job();
    explore_thread("consumer", dequeue, NULL);
    explore_thread("another", reserve_and_ack, NULL);
}

/* The ring comes while the consumer goes to sleep, or before it, or after. */
static void ring_setup(void)
{
    open_hall();
    explore_thread("consumer", dequeue, NULL);
    explore_thread("another process", put_elsewhere, NULL);
}

/* It sleeps until it is rung, and is told when to come. */
static void told_setup(void)
{
    open_hall();
    explore_thread("consumer", dequeue, as_arg(1));
    explore_thread("another process", put_later_elsewhere, NULL);
}

/* It sleeps until an alarm, when an earlier one comes. */
static void alarm_setup(void)
{
    open_hall();
    shared_put(&hall->shelf, 2, explore_now() + DUE_MS(5));
    explore_thread("consumer", dequeue, NULL);
    explore_thread("another process", put_later_elsewhere, NULL);
}

/* Another process claims what was claimed here, when its lease is over. */
static void lapse_setup(void)
{
    open_with_a_job();
    explore_instant(explore_now() + LEASE);
    explore_thread("consumer", reserve_and_ack, NULL);
    explore_thread("another process", claim_elsewhere, NULL);
}

/* One thread has it and acks, another extends its lease, which may end before either. */
static void extend_setup(void)
{
    open_with_a_job();
    explore_thread("holder", reserve_it, NULL);
    explore_thread("who extends", extend_it, NULL);
}

static void stale_setup(void)
{
    open_with_a_job();
    explore_thread("holder", reserve_it, NULL);
    explore_thread("another process", steal, NULL);
}

static void extend_lapse_setup(void)
{
    extend_setup();
    explore_instant(explore_now() + LEASE);
    explore_thread("another process", claim_elsewhere, NULL);
}

/* What was claimed for a call that did not wait goes back, or is taken after all. */
static void release_setup(void)
{
    open_with_a_job();
    explore_thread("who looks", look, NULL);
    explore_thread("consumer", dequeue, NULL);
}

static void doubt_setup(void)
{
    claim_setup();
    hall->shelf.doubt = 1;
}

static void put_setup(void)
{
    open_hall();
    explore_thread("producer", enqueue, NULL);
    explore_thread("consumer", dequeue, NULL);
}

static void put_doubt_setup(void)
{
    put_setup();
    hall->shelf.unsure = 1;
}

static void put_close_setup(void)
{
    open_hall();
    explore_thread("producer", enqueue, NULL);
    explore_thread("closer", close_now, NULL);
}

static void nack_setup(void)
{
    open_with_a_job();
    explore_instant(explore_now() + LEASE);
    explore_thread("who fails", reserve_and_nack, NULL);
    explore_thread("consumer", dequeue, NULL);
}

/* One that may lie here, or be in the store, or with the consumer. */
static void cancel_setup(void)
{
    open_with_a_job();
    explore_thread("consumer", reserve_and_ack, NULL);
    explore_thread("canceller", cancel_there, NULL);
}

static void drain_setup(void)
{
    open_with_a_job();
    shared_put(&hall->shelf, 1, explore_now());
    explore_thread("consumer", dequeue, NULL);
    explore_thread("closer", close_now, as_arg(1));
}

static void open_pool(void)
{
    open_hall();
    int rc = due_workers_start(&hall->pool, hall->q, NULL, 0, 1, handle, NULL, NULL);
    explore_check(rc == 0, "start: %s", due_error_name(rc));
}

/* A pool has one thread: what is put elsewhere is its own to find. */
static void pool_setup(void)
{
    open_pool();
    explore_thread("another process", put_elsewhere, NULL);
}

static void pool_stop_setup(void)
{
    open_pool();
    shared_put(&hall->shelf, 0, explore_now());
    explore_thread("stopper", stop_pool, NULL);
    explore_thread("consumer", dequeue, NULL);
}

/* What lies untaken is looked at while a call has the job, which then gives it up. */
static void give_up_setup(void)
{
    open_hall_for(PATIENCE);
    shared_put(&hall->shelf, 0, explore_now());
    explore_thread("consumer", dequeue, NULL);
    explore_thread("closer", close_now, as_arg(1));
    hall->shelf.unsent = 2;
    hall->refused = true;
}

/* What a call does is in doubt when another asks for a job that nobody has. */
static void ask_setup(void)
{
    open_hall();
    shared_put(&hall->shelf, 0, explore_now() + DUE_S(100));
    shared_put(&hall->shelf, 1, explore_now());
    explore_thread("consumer", dequeue, NULL);
    explore_thread("canceller", cancel_there, NULL);
    hall->shelf.unsure = 1;
}

/* And the queue is closed beside both. */
static void ask_close_setup(void)
{
    ask_setup();
    explore_thread("closer", close_now, NULL);
    hall->shelf.unsure = 2;
    hall->refused = true;
}

static void away_setup(void)
{
    ring_setup();
    hall->shelf.away = 1;
}

/* Nobody takes what is claimed. */
static void close_setup(void)
{
    open_with_a_job();
    explore_thread("who looks", look, NULL);
    explore_thread("closer", close_now, NULL);
}

#define SHARED(name_, about_, setup_, quick_, deep_, walks_)                                 \
    {                                                                                        \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = shared_idle,          \
        .check = shared_check, .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, \
        .walks = (walks_),                                                                   \
    }

const struct explore_scenario explore_scenarios_shared[] = {
    SHARED("shared_claim", "two want the job that is due", claim_setup, (1, 0, 0, 0), (2, 1, 1, 0),
           1),
    SHARED("shared_ring", "a job comes while somebody goes to sleep", ring_setup, (2, 0, 0, 0),
           (3, 1, 0, 0), 1),
    SHARED("shared_alarm", "an earlier job comes than the one that is waited for", alarm_setup,
           (1, 0, 1, 0), (2, 1, 1, 0), 1),
    SHARED("shared_told", "a job is put for later while nobody has an alarm", told_setup,
           (1, 0, 0, 0), (1, 1, 0, 0), 0),
    SHARED("shared_lapse", "a lease ends, and another process has the job", lapse_setup,
           (0, 0, 2, 0), (2, 1, 1, 0), 1),
    SHARED("shared_stale", "another has the job by the store's clock, not by ours", stale_setup,
           (1, 0, 0, 0), (2, 1, 0, 0), 1),
    SHARED("shared_extend", "one acks, another extends", extend_setup, (2, 0, 0, 0), (2, 1, 1, 0),
           10),
    SHARED("shared_extend_lapse", "and another process waits for the lease to end",
           extend_lapse_setup, (0, 0, 1, 0), (1, 0, 2, 0), 1),
    SHARED("shared_release", "what lay untaken goes back, and somebody takes it", release_setup,
           (0, 0, 1, 0), (1, 1, 1, 0), 1),
    SHARED("shared_doubt", "a claim in doubt", doubt_setup, (1, 0, 0, 0), (2, 1, 1, 0), 1),
    SHARED("shared_ask", "what nobody holds is cancelled beside a batch in doubt", ask_setup,
           (1, 0, 0, 0), (2, 1, 1, 0), 1),
    SHARED("shared_ask_close", "the same, and the queue is closed", ask_close_setup, (0, 0, 0, 0),
           (1, 0, 0, 0), 10),
    SHARED("shared_put", "what is put here is claimed here", put_setup, (1, 0, 0, 0), (2, 1, 1, 0),
           1),
    SHARED("shared_put_doubt", "and it is not known whether it was put", put_doubt_setup,
           (1, 0, 0, 0), (2, 1, 1, 0), 1),
    SHARED("shared_put_close", "put while the queue closes", put_close_setup, (1, 0, 0, 0),
           (2, 1, 1, 0), 1),
    SHARED("shared_nack", "given back, and had again", nack_setup, (1, 0, 0, 0), (2, 1, 1, 0), 1),
    SHARED("shared_cancel", "cancelled wherever it is", cancel_setup, (1, 0, 0, 0), (2, 1, 1, 0),
           1),
    SHARED("shared_drain", "a queue that drains hands out what it has", drain_setup, (1, 0, 0, 0),
           (2, 1, 1, 0), 40),
    SHARED("shared_give_up", "a call gives up its job, and the queue drains", give_up_setup,
           (1, 0, 0, 0), (2, 1, 1, 0), 1),
    SHARED("shared_pool", "a pool is rung", pool_setup, (2, 0, 0, 0), (3, 1, 1, 0), 0),
    SHARED("shared_pool_stop", "a pool stops, and somebody waits", pool_stop_setup, (1, 0, 0, 0),
           (2, 1, 1, 0), 1),
    SHARED("shared_away", "a claim that was not sent", away_setup, (1, 0, 0, 0), (2, 1, 1, 0), 1),
    SHARED("shared_close", "close and a claim", close_setup, (1, 0, 0, 0), (2, 1, 1, 0), 10),
    { .name = NULL },
};
