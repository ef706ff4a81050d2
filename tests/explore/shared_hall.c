/* shared_hall.c - a shared queue for scenarios: what their threads do, and what must hold of it. */
#include "shared_hall.h"

#include <string.h>

#include "acts.h"
#include "lab/take.h"
#include "os/atomic.h"
#include "shared_books.h"
#include "store/share.h"
#include "workers/pool.h"

struct hall *hall;

/* ---- Threads ---- */

bool hall_late(int rc)
{
    return rc == DUE_ETIMEDOUT || rc == DUE_EINDOUBT || rc == DUE_EAGAIN || rc == DUE_ESTORE;
}

/* A lease is handed out once. */
void hall_hand(uint64_t lease)
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
void hall_dequeue(void *arg)
{
    due_job job;
    int64_t begun = explore_now();
    int rc = due_dequeue(hall->q, &job, DUE_S(1));

    explore_check(arg == NULL || explore_now() < begun + DUE_S(1), "nobody comes for the job");
    explore_note("dequeue: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ECLOSED || hall_late(rc), "dequeue answers %s",
                  due_error_name(rc));
    if (rc != 0)
        return;
    const struct shared_job *in_store = had(&job);
    explore_check(in_store->state == SHARED_DONE && in_store->by != NULL,
                  "it was dequeued, and is in the store");
    hall_hand(in_store->held);
    due_job_done(&job);
}

void hall_sleep(int64_t ns)
{
    due__bell_wait(&hall->sleeper, explore_now() + ns, false);
}

/* When what lies untaken is looked at. */
void hall_dequeue_then(void *arg)
{
    hall_sleep(LEASE / 4);
    hall_dequeue(arg);
}

/* It does not wait, and leaves a wish. */
void hall_look(void *arg)
{
    due_job job;
    (void)arg;
    int rc = due_dequeue(hall->q, &job, 0);
    explore_check(rc == 0 || rc == DUE_EAGAIN || rc == DUE_ECLOSED, "dequeue answers %s",
                  due_error_name(rc));
    if (rc != 0)
        return;
    hall_hand(had(&job)->held);
    due_job_done(&job);
}

/* @token: the lease by which it was had, here until @until_ns. */
static void answered(int rc, due_id id, uint64_t token, int64_t until_ns)
{
    const struct shared_job *in_store = shared_get(&hall->shelf, id);
    bool ours = in_store->state == SHARED_HELD && in_store->held == token;

    explore_note("ack: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ESTALE || hall_late(rc) || rc == DUE_ECLOSED,
                  "ack answers %s", due_error_name(rc));
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
    hall_hand(job->token);
    return until;
}

void hall_reserve_and_ack(void *arg)
{
    due_job job;
    int rc = take_leased(hall->q, &job, LEASE, DUE_S(1));

    (void)arg;
    explore_note("reserve: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ECLOSED || hall_late(rc), "reserve answers %s",
                  due_error_name(rc));
    if (rc != 0)
        return;
    due_job copy = job;
    int64_t until = leased(&job);
    rc = due_ack(&job);
    answered(rc, copy.id, copy.token, until);
}

/* Due at once, by the store's clock. */
void hall_enqueue(void *arg)
{
    due_spec spec = { DUE_SPEC_INIT };

    (void)arg;
    hall->put = due_enqueue(hall->q, &spec, 0, &hall->id);
    explore_note("enqueue: %s", due_error_name(hall->put));
    explore_check(hall->put == 0 || hall->put == DUE_ECLOSED || hall_late(hall->put),
                  "enqueue answers %s", due_error_name(hall->put));
}

void hall_put_elsewhere(void *arg)
{
    (void)arg;
    shared_put(&hall->shelf, 0, explore_now());
}

/* What was claimed for nobody is there again long before its lease is over. */
void hall_see_it_back(void *arg)
{
    (void)arg;
    hall_sleep(LEASE / 4 + 1);
    hall_sleep(1); /* for the proxy, which wakes then */
    explore_check(hall->shelf.job[0].state != SHARED_HELD || hall->hands > 0,
                  "it lies there still, and nobody has come for it");
}

void hall_put_later_elsewhere(void *arg)
{
    (void)arg;
    shared_put(&hall->shelf, 1, explore_now() + DUE_MS(3));
}

void hall_claim_elsewhere(void *arg)
{
    (void)arg;
    shared_claim_elsewhere(&hall->shelf, FOREIGN);
}

void hall_reserve_it(void *arg)
{
    int rc = take_leased(hall->q, &hall->job, LEASE, DUE_S(1));

    explore_check(rc == 0 || hall_late(rc), "reserve answers %s", due_error_name(rc));
    due_job copy = hall->job;
    int64_t until = rc == 0 ? leased(&copy) : 0;
    due__bell_ring(&hall->reserved);
    due__bell_ring(&hall->had);
    if (arg != NULL) /* when it is being extended */
        due__bell_wait(&hall->begun, DUE_FOREVER, false);
    if (rc != 0)
        return;
    rc = due_ack(&hall->job);
    answered(rc, copy.id, copy.token, until);
}

/* The store's clock has run ahead of ours: it says that the lease is over. */
void hall_steal(void *arg)
{
    (void)arg;
    due__bell_wait(&hall->had, DUE_FOREVER, false);
    hall->shelf.job[0].until_ns = explore_now();
    shared_claim_elsewhere(&hall->shelf, FOREIGN);
}

/* It fails, and waits again. */
void hall_reserve_and_nack(void *arg)
{
    due_job job;
    int rc = take_leased(hall->q, &job, LEASE, DUE_S(1));

    (void)arg;
    explore_check(rc == 0 || hall_late(rc), "reserve answers %s", due_error_name(rc));
    if (rc != 0)
        return;
    due_job copy = job;
    (void)leased(&job);
    rc = due_nack(&job, DUE_MS(1));
    explore_note("nack: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ESTALE || hall_late(rc), "nack answers %s",
                  due_error_name(rc));
    const struct shared_job *in_store = had(&copy);
    explore_check(rc != 0 || in_store->held != copy.token || in_store->state == SHARED_WAITS,
                  "it was given back, and does not wait");
}

/* By a copy, of which the thread that acks knows nothing. */
void hall_extend_it(void *arg)
{
    due__bell_wait(&hall->reserved, DUE_FOREVER, false);
    due_job copy = hall->job;
    if (arg != NULL)
        due__bell_ring(&hall->begun);
    if (copy.queue == NULL)
        return; /* it was acked before it could be copied */
    int rc = due_extend(&copy, 2 * LEASE);
    explore_note("extend: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ESTALE || hall_late(rc), "extend answers %s",
                  due_error_name(rc));
    if (!hall->skewed)
        shared_held(hall->q, &hall->shelf);
}

/* Of a job that nobody has: the store is asked, whatever is in doubt there. */
void hall_cancel_there(void *arg)
{
    int64_t begun = explore_now();

    (void)arg;
    int rc = due_cancel(hall->q, hall->shelf.job[0].id, NULL);
    explore_note("cancel: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT || rc == DUE_ECLOSED ||
                      hall_late(rc),
                  "cancel answers %s", due_error_name(rc));
    explore_check(rc != DUE_ETIMEDOUT || explore_now() >= begun + PATIENCE,
                  "it is said to be hall_late, and is not");
    const struct shared_job *job = &hall->shelf.job[0];
    if (rc == 0 || rc == DUE_ENOENT)
        explore_check(job->state == SHARED_DONE, "it is said not to be there, and is");
    if (rc == DUE_EBUSY)
        explore_check(job->state == SHARED_DONE || job->revoked, "it would come again");
}

/* ---- A pool ---- */

void hall_handle(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx;
    hall_hand(job->token);
    hall->handled++;
    *answer = due_answer_ack();
}

void hall_not_in_handler(void)
{
    static const struct due_workers none;

    due__handling_begin(&none);
}

void hall_stop_pool(void *arg)
{
    int rc;

    (void)arg;
    do {
        hall_not_in_handler();
        rc = due_workers_stop(hall->pool, DUE_FOREVER);
    } while (rc == DUE_EDEADLK);
    explore_check(rc == 0, "stop answers %s", due_error_name(rc));
}

void hall_close_now(void *arg)
{
    int64_t begun = explore_now();
    bool drain = arg != NULL;

    hall->closing = true;
    int rc = due_close(hall->q, drain ? DUE_CLOSE_DRAIN : DUE_CLOSE_DISCARD, DUE_FOREVER);
    explore_check(rc == 0, "close answers %s", due_error_name(rc));
    hall->closed = true;
    hall->refused |= explore_now() - begun >= DUE_S(1); /* it waits no longer for a claim */
}

/* The store does not answer in time. */
void hall_close_soon(void *arg)
{
    (void)arg;
    hall->closing = true;
    int rc = due_close(hall->q, DUE_CLOSE_DISCARD, DUE_MS(3));
    explore_note("close: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ETIMEDOUT, "close answers %s", due_error_name(rc));
}

/* ---- What must hold ---- */

/* Claimed by us, and in nobody's hand: such a job waits here for whoever comes. */
static bool held_in_vain(const struct shared_job *job)
{
    bool handed = false;

    for (unsigned i = 0; i < hall->hands; i++)
        handed |= hall->handed[i] == job->held;
    return job->state == SHARED_HELD && job->by != NULL && !handed;
}

void hall_idle(void)
{
    const struct due_queue *q = hall->q;
    const struct due__commits *c = q->commits;

    shared_rest(q, &hall->shelf, hall->skewed);
    if (hall->closing || c->retry_at_ns != 0 || q->all == NULL)
        return;
    explore_check(q->in_lines == 0, "a job lies here, and somebody waits");
    explore_check(!shared_due(&hall->shelf) || shared_looks_again(q),
                  "a job is due in the store, and somebody waits");
    for (unsigned i = 0; !c->share->claiming && i < SHARED_JOBS; i++)
        explore_check(!held_in_vain(&hall->shelf.job[i]), "job %u was claimed, and is not here", i);
}

void hall_check(void)
{
    shared_sums(hall->q);
    const struct shared_job *put = shared_get(&hall->shelf, hall->id);
    explore_check(hall->put != 0 || put != NULL, "what was enqueued is not in the store");
    explore_check(hall->put == 1 || hall->put == 0 || hall->put == DUE_EINDOUBT ||
                      !shared_has_put(&hall->shelf),
                  "it was refused, and is in the store");
    explore_check(hall->handled == 0 || hall->shelf.job[0].state == SHARED_DONE,
                  "a handler has had it, and it is in the store");
    for (unsigned i = 0; hall->closed && !hall->refused && i < SHARED_JOBS; i++)
        explore_check(!held_in_vain(&hall->shelf.job[i]),
                      "job %u is held by a queue that was closed, and nobody has it", i);
}

void hall_open_for(int64_t lease_ns)
{
    hall = explore_new(sizeof *hall);
    hall->put = 1;
    explore_check(due__bell_init(&hall->reserved) == 0, "a bell");
    explore_check(due__bell_init(&hall->had) == 0 && due__bell_init(&hall->begun) == 0 &&
                      due__bell_init(&hall->sleeper) == 0,
                  "bells");
    shared_make(&hall->shelf, NULL);
    due_options o = { DUE_OPTIONS_INIT,
                      .allocator = &explore_allocator,
                      .store = &hall->shelf.head,
                      .share = DUE_SHARED,
                      .lease_ns = lease_ns,
                      .store_timeout_ns = PATIENCE,
                      .reserve = 1 };
    int rc = due_open(&hall->q, &o, NULL);
    explore_check(rc == 0, "open: %s", due_error_text(rc));
    hall->wall_ns = due__clock_now(&hall->q->clock) - explore_now();
}

void hall_open(void)
{
    hall_open_for(0);
}

void hall_open_with_a_job(void)
{
    hall_open();
    shared_put(&hall->shelf, 0, explore_now());
}
