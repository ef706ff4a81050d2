/* shared.c - scenarios of a queue whose jobs other processes have too: claims, rings, leases. */
#include "acts.h"
#include "shared_hall.h"

static void claim_setup(void)
{
    hall_open_with_a_job();
    explore_thread("consumer", hall_dequeue, NULL);
    explore_thread("another", hall_reserve_and_ack, NULL);
}

/* The ring comes while the consumer goes to sleep, or before it, or after. */
static void ring_setup(void)
{
    hall_open();
    explore_thread("consumer", hall_dequeue, NULL);
    explore_thread("another process", hall_put_elsewhere, NULL);
}

/* It sleeps until it is rung, and is told when to come. */
static void told_setup(void)
{
    hall_open();
    explore_thread("consumer", hall_dequeue, as_arg(1));
    explore_thread("another process", hall_put_later_elsewhere, NULL);
}

/* It sleeps until an alarm, when an earlier one comes. */
static void alarm_setup(void)
{
    hall_open();
    shared_put(&hall->shelf, 2, explore_now() + DUE_MS(5));
    explore_thread("consumer", hall_dequeue, NULL);
    explore_thread("another process", hall_put_later_elsewhere, NULL);
}

/* Another process claims what was claimed here, when its lease is over. */
static void lapse_setup(void)
{
    hall_open_with_a_job();
    explore_instant(explore_now() + LEASE);
    explore_thread("consumer", hall_reserve_and_ack, NULL);
    explore_thread("another process", hall_claim_elsewhere, NULL);
}

/* One thread has it and acks, another extends its lease, which may end before either. */
static void extend_setup(void)
{
    hall_open_with_a_job();
    explore_thread("holder", hall_reserve_it, NULL);
    explore_thread("who extends", hall_extend_it, NULL);
}

static void stale_setup(void)
{
    hall_open_with_a_job();
    hall->skewed = true;
    explore_thread("holder", hall_reserve_it, NULL);
    explore_thread("another process", hall_steal, NULL);
}

static void extend_at_once_setup(void)
{
    hall_open_with_a_job();
    explore_thread("holder", hall_reserve_it, hall);
    explore_thread("who extends", hall_extend_it, hall);
}

static void extend_lapse_setup(void)
{
    extend_at_once_setup();
    explore_instant(explore_now() + LEASE);
    explore_thread("another process", hall_claim_elsewhere, NULL);
}

static void extend_stale_setup(void)
{
    extend_at_once_setup();
    hall->skewed = true;
    explore_thread("another process", hall_steal, NULL);
}

/* What was claimed for a call that did not wait goes back just when somebody takes it; or nobody
 * does. */
static void release_setup(void)
{
    hall_open_for(LEASE);
    shared_put(&hall->shelf, 0, explore_now());
    explore_thread("who looks", hall_look, NULL);
    explore_thread("consumer", hall_dequeue_then, NULL);
}

static void release_all_setup(void)
{
    hall_open_for(LEASE);
    shared_put(&hall->shelf, 0, explore_now());
    explore_thread("who looks", hall_look, NULL);
    explore_thread("another process", hall_see_it_back, NULL);
}

static void doubt_setup(void)
{
    claim_setup();
    hall->shelf.doubt = 1;
}

static void put_setup(void)
{
    hall_open();
    explore_thread("producer", hall_enqueue, NULL);
    explore_thread("consumer", hall_dequeue, NULL);
}

static void put_doubt_setup(void)
{
    put_setup();
    hall->shelf.unsure = 1;
}

static void put_close_setup(void)
{
    hall_open();
    explore_thread("producer", hall_enqueue, NULL);
    explore_thread("closer", hall_close_soon, NULL);
    hall->shelf.unsure = 9;
}

static void nack_setup(void)
{
    hall_open_with_a_job();
    explore_instant(explore_now() + LEASE);
    explore_thread("who fails", hall_reserve_and_nack, NULL);
    explore_thread("consumer", hall_dequeue, NULL);
}

/* One that may lie here, or be in the store, or with the consumer. */
static void cancel_setup(void)
{
    hall_open_with_a_job();
    explore_thread("consumer", hall_reserve_and_ack, NULL);
    explore_thread("canceller", hall_cancel_there, NULL);
}

static void drain_setup(void)
{
    hall_open_with_a_job();
    shared_put(&hall->shelf, 1, explore_now());
    explore_thread("consumer", hall_dequeue, NULL);
    explore_thread("closer", hall_close_now, as_arg(1));
}

static void open_pool(void)
{
    hall_open();
    int rc = due_workers_start(&hall->pool, hall->q, NULL, 0, 1, hall_handle, NULL, NULL);
    explore_check(rc == 0, "start: %s", due_error_name(rc));
}

/* A pool has one thread: what is put elsewhere is its own to find. */
static void pool_setup(void)
{
    open_pool();
    explore_thread("another process", hall_put_elsewhere, NULL);
}

static void pool_stop_setup(void)
{
    open_pool();
    shared_put(&hall->shelf, 0, explore_now());
    explore_thread("stopper", hall_stop_pool, NULL);
    explore_thread("consumer", hall_dequeue, NULL);
}

/* What lies untaken is looked at while a call has the job, which then gives it up. */
static void give_up_setup(void)
{
    hall_open_for(4 * PATIENCE);
    shared_put(&hall->shelf, 0, explore_now());
    explore_thread("consumer", hall_dequeue, NULL);
    explore_thread("closer", hall_close_now, as_arg(1));
    hall->shelf.unsent = 2;
    hall->refused = true;
}

/* What a call does is in doubt when another asks for a job that nobody has. */
static void ask_setup(void)
{
    hall_open();
    shared_put(&hall->shelf, 0, explore_now() + DUE_S(100));
    shared_put(&hall->shelf, 1, explore_now());
    explore_thread("consumer", hall_dequeue, NULL);
    explore_thread("canceller", hall_cancel_there, NULL);
    hall->shelf.unsure = 1;
}

/* And the queue is closed beside both. */
static void ask_close_setup(void)
{
    ask_setup();
    explore_thread("closer", hall_close_now, NULL);
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
    hall_open_with_a_job();
    explore_thread("who looks", hall_look, NULL);
    explore_thread("closer", hall_close_now, NULL);
}

#define SHARED(name_, about_, setup_, quick_, deep_, walks_)                               \
    {                                                                                      \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = hall_idle,          \
        .check = hall_check, .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, \
        .walks = (walks_),                                                                 \
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
           extend_lapse_setup, (0, 0, 1, 0), (1, 0, 2, 0), 4),
    SHARED("shared_extend_stale", "and another has the job by the store's clock, not by ours",
           extend_stale_setup, (0, 0, 0, 0), (1, 0, 0, 0), 1),
    SHARED("shared_release", "what lay untaken goes back, and somebody takes it", release_setup,
           (1, 0, 0, 0), (2, 1, 1, 0), 1),
    SHARED("shared_release_all", "and nobody does", release_all_setup, (1, 0, 0, 0), (2, 1, 0, 0),
           0),
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
