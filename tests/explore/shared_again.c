/* shared_again.c - scenarios of a shared queue in which something comes a second time: a claim or a
 * wish whose answer was lost, a job whose lease had ended, the keeper of a pool to extend a lease.
 */
#include "acts.h"
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

/* It is asked for when the lease would have been over, and is the handler's still, or done. */
static void claim_in_vain(void *arg)
{
    hall_not_in_handler();
    claim_when_over(arg);
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

static void open_pool(void)
{
    due_workers_options o = { DUE_WORKERS_INIT, .lease_ns = LEASE };

    hall_open();
    shared_put(&hall->shelf, 0, explore_now());
    int rc = due_workers_start(&hall->pool, hall->q, NULL, 0, 1, handle_long, NULL, &o);
    explore_check(rc == 0, "start: %s", due_error_name(rc));
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
    { .name = NULL },
};
