/* shared_again.c - scenarios of a shared queue in which something comes a second time: a claim or a
 * wish whose answer was lost, a job whose lease had ended, the keeper of a pool to extend a lease.
 */
#include "acts.h"
#include "api/ack.h"
#include "lab/take.h"
#include "shared_hall.h"
#include "store/share.h"

/* ---- Threads ---- */

/* As soon as the first lease of the job is over. */
static void claim_when_over(void *arg)
{
    hall_sleep(LEASE);
    hall_claim_elsewhere(arg);
}

/* The lease is over in the middle of it, but for the keeper; and then the keeper looks again. */
static void handle_long(void *ctx, const due_job *job, due_answer *answer)
{
    hall_sleep(LEASE);
    hall_handle(ctx, job, answer);
}

/* The handler extends its lease when the keeper does: the job is his all the time, and so long.
 * Here a lease ends by the queue's clock, which due_now(), the store's time, is far behind. */
static void handle_extending(void *ctx, const due_job *job, due_answer *answer)
{
    due_job copy = *job;
    int64_t end = 0;

    hall_sleep(LEASE / 2);
    explore_check(due_job_stopping(job) == 0, "a handler is to stop, and has the job");
    int64_t until = due__clock_now(&hall->q->clock) + 2 * LEASE;
    int rc = due_extend(&copy, 2 * LEASE);
    explore_check(rc == 0, "a handler's extend answers %s", due_error_name(rc));
    rc = due__lease_end(job, &end);
    explore_check(rc == 0 || rc == DUE_EBUSY, "its lease: %s", due_error_name(rc));
    explore_check(end >= until, "its lease ends too soon");
    explore_check(due_job_stopping(job) == 0, "a handler is to stop, and has extended its lease");
    hall_sleep(3 * LEASE);
    hall_handle(ctx, job, answer);
}

/* It is asked for when the lease would have been over, and is the handler's still, or done. */
static void claim_in_vain(void *arg)
{
    hall_not_in_handler();
    claim_when_over(arg);
    explore_check(hall->shelf.job[0].by != NULL, "a lease has ended that the keeper extends");
}

/* The same of one that is extended twice. */
static void claim_at_last(void *arg)
{
    hall_not_in_handler();
    hall_sleep(3 * LEASE);
    hall_claim_elsewhere(arg);
    explore_check(hall->shelf.job[0].by != NULL, "a lease has ended that the keeper extends");
}

/* One that is not due. */
static void put_then(void *arg)
{
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(100) };
    due_id id;

    (void)arg;
    hall_not_in_handler();
    hall_sleep(LEASE);
    int rc = due_enqueue(hall->q, &spec, 0, &id);
    explore_check(rc == 0 || hall_late(rc), "enqueue answers %s", due_error_name(rc));
}

/* Whoever has it extends its lease, and acks. */
static void extend_own(void *arg)
{
    int64_t end = 0;

    (void)arg;
    int rc = take_leased(hall->q, &hall->job, LEASE, DUE_S(1));
    explore_check(rc == 0, "reserve answers %s", due_error_name(rc));
    due_job own = hall->job;
    hall_hand(own.token);
    due__bell_ring(&hall->reserved);
    due__bell_wait(&hall->begun, DUE_FOREVER, false);
    explore_check(due_job_stopping(&own) == 0, "who has it is to stop");
    int64_t until = due__clock_now(&hall->q->clock) + 2 * LEASE;
    rc = due_extend(&own, 2 * LEASE);
    explore_check(rc == 0, "extend answers %s", due_error_name(rc));
    rc = due__lease_end(&own, &end);
    explore_check(rc == 0 || rc == DUE_EBUSY, "its lease: %s", due_error_name(rc));
    explore_check(end >= until, "its lease ends too soon");
    explore_check(due_job_stopping(&own) == 0, "who has extended its lease is to stop");
    rc = due_ack(&own);
    explore_check(rc == 0, "ack answers %s", due_error_name(rc));
}

/* As the keeper of a pool does, and never for less than there is. */
static void extend_beside(void *arg)
{
    (void)arg;
    due__bell_wait(&hall->reserved, DUE_FOREVER, false);
    due_job copy = hall->job;
    due__bell_ring(&hall->begun);
    int rc = due__lease_extend(&copy, LEASE);
    explore_note("beside: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_EBUSY || rc == DUE_ESTALE, "the other answers %s",
                  due_error_name(rc));
}

/* Whoever has it acks while its lease is being extended, and somebody closes. */
static void ack_behind(void *arg)
{
    (void)arg;
    int rc = take_leased(hall->q, &hall->job, LEASE, DUE_S(1));
    explore_check(rc == 0 || hall_late(rc), "reserve answers %s", due_error_name(rc));
    if (rc == 0) {
        hall_hand(hall->job.token);
        due_job copy = hall->job;
        hall->shelf.away = 2;                  /* now, and when the ack looks */
        (void)due__lease_extend(&copy, LEASE); /* unless it is over by then */
    }
    due__bell_ring(&hall->begun);
    if (rc != 0)
        return;
    rc = due_ack(&hall->job);
    explore_note("ack: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ECLOSED || rc == DUE_ESTALE || hall_late(rc),
                  "ack answers %s", due_error_name(rc));
    explore_check(rc != DUE_ECLOSED || !hall->followed, "who acked before a close is refused");
}

static void close_behind(void *arg)
{
    due__bell_wait(&hall->begun, DUE_FOREVER, false);
    hall->followed = hall->q->commits->following > 0;
    hall_close_now(arg);
}

/* ---- What must hold ---- */

static void again_check(void)
{
    const struct due__commits *c = hall->q->commits;

    hall_check();
    explore_check(!c->share->asking || c->retry_at_ns != 0,
                  "a wish is in doubt, and nobody asks the store once more");
}

/* ---- Scenarios ---- */

/* Its lease is over when the claim comes once more, and another process may have the job. */
static void replay_lapse_setup(void)
{
    hall_open_with_a_job();
    explore_instant(explore_now() + LEASE);
    explore_thread("consumer", hall_reserve_and_ack, NULL);
    explore_thread("another process", claim_when_over, NULL);
    hall->shelf.doubt = 1;
}

/* Whose lease is over may have the job still when this process claims it again. */
static void twice_setup(void)
{
    hall_open_with_a_job();
    explore_instant(explore_now() + LEASE);
    explore_thread("one", hall_reserve_and_ack, NULL);
    explore_thread("two", hall_reserve_and_ack, NULL);
}

/* The wish may be in doubt for longer than its caller waits, and somebody else wants something. */
static void wish_gone_setup(void)
{
    hall_open();
    shared_put(&hall->shelf, 0, explore_now() + DUE_S(100));
    shared_put(&hall->shelf, 1, explore_now());
    explore_thread("canceller", hall_cancel_there, NULL);
    explore_thread("consumer", hall_dequeue, NULL);
    hall->shelf.unsure = 2;
}

static void open_pool_of(due_handler *handler)
{
    due_workers_options o = { DUE_WORKERS_INIT, .lease_ns = LEASE };

    hall_open();
    shared_put(&hall->shelf, 0, explore_now());
    int rc = due_workers_start(&hall->pool, hall->q, NULL, 0, 1, handler, NULL, &o);
    explore_check(rc == 0, "start: %s", due_error_name(rc));
}

static void open_pool(void)
{
    open_pool_of(handle_long);
}

static void keeper_setup(void)
{
    open_pool();
    explore_thread("another process", claim_in_vain, NULL);
}

/* The extension may be on its way when the handler answers, if somebody else sends. */
static void keeper_ack_setup(void)
{
    open_pool();
    explore_thread("producer", put_then, NULL);
}

/* Both go on: another process asks in vain when what either has said would be over. */
static void keeper_extend_setup(void)
{
    open_pool_of(handle_extending);
    explore_thread("another process", claim_at_last, NULL);
}

/* The same, without the pool. */
static void extend_twice_setup(void)
{
    hall_open_with_a_job();
    explore_thread("who has it", extend_own, NULL);
    explore_thread("keeper", extend_beside, NULL);
}

/* The ack waits for the extension, and who closes for both. */
static void extend_close_setup(void)
{
    hall_open_with_a_job();
    hall->refused = true; /* a lease that is over by then is not looked at */
    explore_thread("who has it", ack_behind, NULL);
    explore_thread("closer", close_behind, NULL);
}

#define AGAIN(name_, about_, setup_, quick_, deep_, walks_)                                 \
    {                                                                                       \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = hall_idle,           \
        .check = again_check, .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, \
        .walks = (walks_),                                                                  \
    }

const struct explore_scenario explore_scenarios_shared_again[] = {
    AGAIN("shared_replay_lapse", "a claim in doubt, whose leases have ended meanwhile",
          replay_lapse_setup, (0, 0, 1, 0), (1, 0, 1, 0), 1),
    AGAIN("shared_twice", "what somebody has here is claimed here again", twice_setup, (0, 0, 1, 0),
          (1, 0, 1, 0), 1),
    AGAIN("shared_wish_gone", "a wish in doubt, whose caller has gone", wish_gone_setup,
          (1, 0, 0, 0), (2, 1, 0, 0), 1),
    AGAIN("shared_keeper", "the keeper of a pool extends a lease when its handler answers",
          keeper_setup, (1, 0, 0, 0), (2, 1, 0, 0), 0),
    AGAIN("shared_keeper_ack", "and somebody else sends", keeper_ack_setup, (1, 0, 0, 0),
          (2, 1, 0, 0), 0),
    AGAIN("shared_keeper_extend", "its handler extends it at the same time", keeper_extend_setup,
          (1, 0, 0, 0), (2, 0, 0, 0), 0),
    AGAIN("shared_extend_twice", "who has a job and a keeper extend its lease", extend_twice_setup,
          (2, 0, 0, 0), (2, 1, 0, 0), 0),
    AGAIN("shared_extend_close", "its lease is being extended when it is acked, and one closes",
          extend_close_setup, (0, 0, 0, 0), (1, 0, 0, 0), 2),
    { .name = NULL },
};
