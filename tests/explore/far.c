/* far.c - scenarios of jobs with a time ahead, which are put in by the shortest way.
 *
 * Another one is there before, so that a place is at hand under the lock.
 */
#include "acts.h"
#include "engine.h"
#include "queue/counts.h"

static void open_with_far(void)
{
    lab_open_bare((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(5, 0, LAB_AT(DUE_MS(5)), 0);
}

static void close_discard(void *arg)
{
    (void)arg;
    lab_close(DUE_CLOSE_DISCARD, DUE_FOREVER);
}

static void close_drain(void *arg)
{
    (void)arg;
    lab_close(DUE_CLOSE_DRAIN, DUE_FOREVER);
}

static void take_until_closed(void *arg)
{
    (void)arg;
    while (lab_take(0, DUE_FOREVER) >= 0)
        ;
}

static void far_submit_setup(void)
{
    open_with_far();
    explore_thread("producer 0", act_put_later, as_arg(0));
    explore_thread("producer 1", act_put_later, as_arg(1));
    explore_thread("producer 2", act_put_later, as_arg(2));
}

static void far_discard_setup(void)
{
    open_with_far();
    explore_thread("producer", act_put_later, as_arg(0));
    explore_thread("closer", close_discard, NULL);
}

/* The last job that waits is the one that is put in. */
static void far_drain_setup(void)
{
    open_with_far();
    explore_thread("producer", act_put_later, as_arg(0));
    explore_thread("consumer", take_until_closed, NULL);
    explore_thread("closer", close_drain, NULL);
}

/* Two of the same time, of which the first may be left in the inbox. */
static void put_alike_and_take(void *arg)
{
    (void)arg;
    lab_put(0, 0, LAB_AT(DUE_MS(2)), 0);
    lab_put(1, 0, LAB_AT(DUE_MS(2)), 0);
    engine_clock_forward(LAB_AT(DUE_MS(3)));
    int n = lab_take(0, 0);
    explore_check(n == 0, "job %d was taken before one that was put earlier", n);
}

static void far_alike_setup(void)
{
    open_with_far();
    explore_thread("producer", put_alike_and_take, NULL);
    explore_thread("mover", act_move_later, as_arg(5));
}

/* The same of two without delay. */
static void put_now_and_take(void *arg)
{
    (void)arg;
    lab_put(0, 0, 0, 0);
    lab_put(1, 0, 0, 0);
    int n = lab_take(0, 0);
    explore_check(n == 0, "job %d was taken before one that was put earlier", n);
}

static void now_alike_setup(void)
{
    open_with_far();
    explore_thread("producer", put_now_and_take, NULL);
    explore_thread("mover", act_move_later, as_arg(5));
}

/* Its time has come, and what was due after it has left the timeline. */
static void put_passed_and_take(void *arg)
{
    (void)arg;
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    int n = lab_take(0, 0);
    explore_check(n == 0, "job %d was taken before an earlier one", n);
}

static void far_passed_setup(void)
{
    open_with_far();
    lab_put(4, 0, LAB_AT(DUE_MS(2)), 0);
    engine_clock_forward(LAB_AT(DUE_MS(3)));
    lab_show();
    explore_thread("producer", put_passed_and_take, NULL);
    explore_thread("mover", act_move_later, as_arg(5));
}

/* It is before what somebody sleeps for. */
static void far_lead_setup(void)
{
    lab_open_bare((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("producer 1", act_put_later, as_arg(1));
    explore_thread("producer 0", act_put_later, as_arg(0));
}

/* ---- The last places ---- */

/* None is at hand, and all but one are taken: that is in the shard that all threads share. */
static void leave_one_place(void)
{
    struct due__slab *slab = &lab->q->slab;
    struct due__shard *it = due__shard_mine(slab);
    uint32_t number = 0;

    while (due__shard_take(slab, it, &number, 1) > 0)
        ;
    due__shard_push(slab, it, number);
    lab->q->place_count = 0;
}

/* Whoever sums has the locks of all shards, and may sleep for one. */
static void act_sum(void *arg)
{
    (void)arg;
    due__sum_up(lab->q);
}

static void far_last_setup(void)
{
    open_with_far();
    leave_one_place();
    explore_thread("producer", act_put_later, as_arg(0));
    explore_thread("summer", act_sum, NULL);
}

static void far_cancel_setup(void)
{
    open_with_far();
    explore_thread("canceller", act_cancel, as_arg(5));
    explore_thread("summer", act_sum, NULL);
}

const struct explore_scenario explore_scenarios_far[] = {
    LAB("far_submit", "N: three producers of jobs with a time ahead", far_submit_setup,
        (2, 1, 0, 0), (4, 2, 0, 0), 20),
    LAB("far_discard", "N: close against one producer of such a job", far_discard_setup,
        (3, 1, 0, 0), (5, 2, 0, 0), 20),
    LAB("far_drain", "N: drain against one producer of such a job", far_drain_setup, (1, 0, 1, 0),
        (3, 1, 1, 0), 20),
    LAB("far_alike", "N: two of the same time, while another holds the lock", far_alike_setup,
        (3, 1, 0, 0), (5, 2, 0, 0), 20),
    LAB("now_alike", "N: two without delay, while another holds the lock", now_alike_setup,
        (3, 1, 0, 0), (5, 2, 0, 0), 20),
    LAB("far_passed", "N: a job is put in whose time has come", far_passed_setup, (3, 1, 0, 0),
        (5, 2, 0, 0), 20),
    LAB("far_lead", "N: one is put in before what the leader sleeps for", far_lead_setup,
        (2, 1, 1, 0), (4, 1, 2, 1), 20),
    LAB("far_last", "N: the last place, while another sums", far_last_setup, (3, 1, 0, 0),
        (5, 2, 0, 0), 20),
    LAB("far_cancel", "N: one is cancelled, while another sums", far_cancel_setup, (3, 1, 0, 0),
        (5, 2, 0, 0), 20),
    { .name = NULL },
};
