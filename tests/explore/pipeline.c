/* ahead.c - scenarios of what is shown against what stands before it: in the inbox, in the
 * timeline, behind a pause; and of a place that is free one step after its cancel.
 *
 * When a producer's put has come back its job is in the queue: whoever takes after that must not
 * get a later one.  The books (lab.h) look at that whenever anybody takes.
 */
#include "acts.h"
#include "os/atomic.h"
#include "engine.h"
#include "queue/closing.h"

static void open_without_proxies(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
}

static void peek(void *arg)
{
    due_info info;

    (void)arg;
    int rc = due_peek(lab->q, &info);
    explore_check(rc == 0 || rc == DUE_EAGAIN, "peek answers %s", due_error_name(rc));
}

/* Two jobs come into the inbox, as if somebody else held the lock all the while. */
static void put_into_inbox(unsigned n, int64_t at_ns, unsigned m, int64_t then_ns)
{
    due__lock_acquire(&lab->q->lock);
    lab_put(n, 0, at_ns, 0);
    lab_put(m, 0, then_ns, 0);
    due__lock_release(&lab->q->lock);
}

/* ---- What is in the inbox and may stand before what is shown: I3 ---- */

/* A job with its deadline ahead comes while another becomes due. */
static void put_soon_and_take(void *arg)
{
    (void)arg;
    lab_put(1, 0, LAB_AT(DUE_MS(1)), 0);
    lab_take(0, 0);
}

static void take_two_now(void *arg)
{
    (void)arg;
    lab_take_batch(2, 0);
}

/* Time passes, wherever the others stand: the search's own ticks come at looks at the clock. */
static void pass_time(void *arg)
{
    (void)arg;
    memory_step(world, true);
    engine_clock_forward(LAB_AT(DUE_MS(3)));
}

static void soon_first_setup(void)
{
    open_without_proxies();
    explore_thread("time", pass_time, NULL);
    lab_put(0, 0, LAB_AT(DUE_MS(2)), 0);
    explore_thread("looker", peek, NULL);
    explore_thread("producer", put_soon_and_take, NULL);
}

/* The same by one who takes: what is behind what he takes is shown. */
static void soon_first_taker_setup(void)
{
    open_without_proxies();
    explore_thread("time", pass_time, NULL);
    lab_put(0, 0, LAB_AT(DUE_MS(2)), 0);
    lab_put(2, 0, LAB_AT(DUE_MS(2)), 0);
    lab_put(3, 0, LAB_AT(DUE_MS(2)), 0);
    explore_thread("taker", take_two_now, NULL);
    explore_thread("producer", put_soon_and_take, NULL);
}

/* A tenure sorts in one of two, and calls one who waits for what became due meanwhile. */
static bool *second_is_in; /* job 1 was put before job 2 left the timeline */

static bool is_delayed(unsigned n)
{
    uint32_t number;
    uint32_t generation;

    explore_check(due__id_read(lab->q, lab->job[n].id, &number, &generation), "no id");
    uint64_t w = due__job_at(&lab->q->slab, number)->word; /* no step */
    return w >> 32 == generation && (w & (DUE__STATE_MASK | DUE__READY)) == DUE__WAITING;
}

/* As who kicks a job or answers for one that comes again. */
static void catch_up_once(void)
{
    struct due__tenure t;

    due__enter(lab->q, &t);
    due__catch_up(lab->q, explore_budget);
    due__tenure_end(lab->q, &t);
}

static void put_two_and_look(void *arg)
{
    (void)arg;
    put_into_inbox(0, LAB_AT(DUE_MS(15)), 1, LAB_AT(DUE_MS(1)));
    *second_is_in = is_delayed(2);
    engine_clock_forward(LAB_AT(DUE_MS(3)));
    catch_up_once();
}

static void take_the_second(void *arg)
{
    (void)arg;
    int n = lab_take(0, DUE_MS(20));
    explore_check(n != 2 || !*second_is_in || lab_gone(1) > 0, "job 1 was passed over");
}

static void left_behind_setup(void)
{
    explore_budget = 1;
    open_without_proxies();
    second_is_in = explore_new(sizeof *second_is_in);
    lab_put(2, 0, LAB_AT(DUE_MS(2)), 0);
    explore_thread("leader", act_take_of_within, as_arg(1));
    explore_thread("consumer", take_the_second, NULL);
    explore_thread("producer", put_two_and_look, NULL);
}

/* One's own job is the last of five in the inbox, a tenure sorts in one, and a call sorts in a few
 * on its way to the look that finds something. */
static void put_behind_and_take(void *arg)
{
    (void)arg;
    due__lock_acquire(&lab->q->lock);
    for (unsigned n = 2; n < LAB_JOBS; n++)
        lab_put(n, 0, LAB_AT(DUE_MS(5)), 0);
    lab_put(1, 0, LAB_AT(-5), 0);
    due__lock_release(&lab->q->lock);
    lab_take(0, 0);
}

static void left_own_setup(void)
{
    explore_budget = 1;
    open_without_proxies();
    lab_put(0, 0, 0, 0);
    explore_thread("producer", put_behind_and_take, NULL);
    explore_thread("looker", peek, NULL);
}

/* A job that was said to be late is cancelled before it is sorted in. */
static void put_late_and_cancel(void *arg)
{
    (void)arg;
    lab_put(1, 0, LAB_AT(-5), 0);
    lab_cancel(1);
    lab_take(0, 0);
}

static void late_cancelled_setup(void)
{
    open_without_proxies();
    lab_put(0, 0, 0, 0);
    lab_show();
    explore_thread("looker", peek, NULL);
    explore_thread("producer", put_late_and_cancel, NULL);
}

/* ---- A job without delay is due at a moment of its put ---- */

/* It may lie in the inbox while another becomes due, which is shown before it is put, or after. */
static void put_now_and_take(void *arg)
{
    (void)arg;
    lab_put(1, 0, 0, 0);
    lab_take(0, 0);
    lab_take(0, 0);
}

static void submitted_setup(void)
{
    open_without_proxies();
    explore_thread("time", pass_time, NULL);
    put_into_inbox(0, LAB_AT(DUE_MS(2)), 2, LAB_AT(DUE_MS(4)));
    due__drain_all(lab->q);
    explore_thread("looker", peek, NULL);
    explore_thread("producer", put_now_and_take, NULL);
}

/* The same beside a topic with a limit: what is due does not leave the timeline before the inbox is
 * drained. */
static void submitted_limit_setup(void)
{
    open_without_proxies();
    explore_thread("time", pass_time, NULL);
    explore_check(due_topic_limit(lab->q, 2, 1) == 0, "limit");
    lab_put(0, 0, LAB_AT(DUE_MS(2)), 0);
    explore_thread("looker", peek, NULL);
    explore_thread("producer", put_now_and_take, NULL);
}

/* Two without delay, and a tenure sorts in one. */
static void put_two_now(void *arg)
{
    (void)arg; /* as if somebody else held the lock meanwhile */
    due__lock_acquire(&lab->q->lock);
    act_put_two(as_arg(1));
    due__lock_release(&lab->q->lock);
    peek(NULL);
}

static void submitted_left_setup(void)
{
    explore_budget = 1;
    open_without_proxies();
    explore_thread("producer", put_two_now, NULL);
    lab_put(0, 0, LAB_AT(DUE_MS(2)), 0);
    explore_thread("time", pass_time, NULL);
    explore_thread("looker", peek, NULL);
}

/* ---- The head of the timeline is taken as it stands ---- */

static void race_head_setup(void)
{
    open_without_proxies();
    lab->named = true; /* else it may be another topic's turn, and all that is due is moved */
    lab_put(0, 0, LAB_AT(-5), 0);
    explore_thread("taker", act_take_now, NULL);
    explore_thread("canceller", act_cancel, as_arg(0));
    explore_thread("mover", act_move_later, as_arg(0));
}

/* By who has room for more: by the usual way. */
static void race_head_roomy_setup(void)
{
    race_head_setup();
    lab->roomy = true;
}

static void pause_and_take(void *arg)
{
    (void)arg;
    lab->paused = true;
    explore_check(due_pause(lab->q, 0) == 0, "pause");
    int n = lab_take(0, 0);
    explore_check(n < 0, "job %d of a paused topic is taken", n);
    explore_check(due_resume(lab->q, 0) == 0, "resume");
    lab->paused = false;
}

static void take_topic_one_now(void *arg)
{
    (void)arg;
    int n = lab_take(1, 0);
    explore_check(n < 0, "job %d of another topic is taken", n);
}

static void pause_head_setup(void)
{
    open_without_proxies();
    lab->named = true; /* else it may be another topic's turn, and all that is due is moved */
    lab_put(0, 0, LAB_AT(-5), 0);
    explore_thread("taker", take_topic_one_now, NULL);
    explore_thread("pauser", pause_and_take, NULL);
    explore_thread("canceller", act_cancel, as_arg(0));
}

static void pause_head_roomy_setup(void)
{
    pause_head_setup();
    lab->roomy = true;
}

/* A line has something earlier than the head. */
static void put_ahead_and_take(void *arg)
{
    (void)arg;
    lab_put(1, 0, LAB_AT(-3), 0);
    lab_take(1, 0);
    lab_take(0, 0);
    lab_take(0, 0);
}

static void head_behind_line_setup(void)
{
    open_without_proxies();
    lab->named = true; /* else it may be another topic's turn, and all that is due is moved */
    lab_put(0, 0, LAB_AT(-5), 0);
    lab_show();
    lab_put(2, 0, LAB_AT(DUE_MS(1)), 0);
    explore_instant(LAB_AT(DUE_MS(2)));
    explore_thread("taker", put_ahead_and_take, NULL);
    explore_thread("looker", peek, NULL);
}

/* Somebody waits for another topic, so who takes goes the usual way (request.c). */
static void wait_for_two(void *arg)
{
    (void)arg;
    lab_take(2, DUE_MS(20));
}

static void head_behind_line_waited_setup(void)
{
    head_behind_line_setup();
    explore_thread("waiter", wait_for_two, NULL);
}

/* ---- Turns: W3 ---- */

/* One topic has all that is shown when a job of another comes due: it has a turn among the next,
 * whoever looks meanwhile. */
static void take_by_turns(void *arg)
{
    (void)arg;
    engine_clock_forward(LAB_AT(DUE_MS(3)));
    for (int i = 0; i < 2; i++)
        lab_take(0, 0);
    explore_check(lab_gone(4) > 0, "the other topic had no turn");
}

static void turn_of_another_setup(void)
{
    open_without_proxies();
    for (unsigned n = 0; n < 4; n++)
        lab_put(n, 1, LAB_AT(-5), 0);
    lab_show();
    lab_take(0, 0);
    lab_put(4, 2, LAB_AT(DUE_MS(1)), 0);
    explore_thread("taker", take_by_turns, NULL);
    explore_thread("looker", peek, NULL);
}

/* ---- Waiting to free in one step ---- */

static void race_shown_setup(void)
{
    open_without_proxies();
    lab_put(0, 0, 0, 0);
    lab_show();
    explore_thread("taker", act_take_now, NULL);
    explore_thread("canceller", act_cancel, as_arg(0));
    explore_thread("mover", act_move_later, as_arg(0));
}

/* Two cancel the same job, and use its place again. */
static void cancel_and_put_now(void *arg)
{
    lab_cancel(0);
    act_put_now(arg);
}

static void cancel_two_setup(void)
{
    open_without_proxies();
    lab_put(0, 0, 0, 0);
    lab_show();
    explore_thread("canceller 1", cancel_and_put_now, as_arg(1));
    explore_thread("canceller 2", cancel_and_put_now, as_arg(2));
}

/* The place of a job that is being moved is used again while the mover holds the lock. */
static void cancel_and_put_later(void *arg)
{
    (void)arg;
    lab_cancel(0);
    act_put_later(as_arg(1));
}

static void reuse_moved_setup(void)
{
    open_without_proxies();
    lab_put(0, 0, LAB_AT(DUE_MS(4)), 0);
    explore_thread("mover", act_move_sooner, as_arg(0));
    explore_thread("canceller", cancel_and_put_later, NULL);
}

/* ---- A clock turned by hand moves nothing until somebody waits ---- */

static void turn_twice(void *arg)
{
    (void)arg;
    explore_check(due_clock_advance(lab->clock, DUE_MS(1)) == 0, "advance");
    explore_check(due_clock_advance(lab->clock, DUE_MS(2)) == 0, "advance");
}

static void lazy_setup(void)
{
    due_clock *clock = due_clock_manual(EXPLORE_START_NS);

    explore_check(clock != NULL, "no clock");
    lab_open_bare((due_options){ .proxies = DUE_PROXIES_NEVER, .manual = clock });
    lab_put(1, 0, LAB_AT(DUE_MS(3)), 0);
    explore_thread("turner", turn_twice, NULL);
    explore_thread("consumer", act_take_two, NULL);
    explore_thread("producer", act_put_later, as_arg(0));
}

/* ---- What has gone is summed before what has come: C2 of close.c ---- */

/* A place is taken and not used after all, as by a producer who finds the queue closed. */
static void take_place_and_leave(void *arg)
{
    uint32_t place = DUE__NO_JOB;

    (void)arg;
    explore_check(due__slab_take(&lab->q->slab, &place, 1) == 1, "no place");
    due__slab_untake(&lab->q->slab, place);
    due__left(lab->q, 1);
}

static void close_drain(void *arg)
{
    (void)arg;
    lab_close(DUE_CLOSE_DRAIN, DUE_FOREVER);
}

static void drain_refused_setup(void)
{
    open_without_proxies();
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("refused", take_place_and_leave, NULL);
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("closer", close_drain, NULL);
}

const struct explore_scenario explore_scenarios_ahead[] = {
    LAB("soon_first", "N: a job that is not due comes while another becomes due", soon_first_setup,
        (3, 0, 0, 0), (4, 1, 0, 0), 20),
    LAB("soon_first_taker", "N: the same by one who takes", soon_first_taker_setup, (3, 0, 0, 0),
        (4, 1, 0, 0), 20),
    LAB("left_behind", "N: a tenure leaves a job in the inbox, and calls", left_behind_setup,
        (1, 0, 0, 0), (3, 1, 0, 0), 20),
    LAB("left_own", "N: a tenure leaves one's own job in the inbox", left_own_setup, (2, 0, 0, 0),
        (4, 1, 0, 0), 20),
    LAB("late_cancelled", "N: a job that is late is cancelled in the inbox", late_cancelled_setup,
        (3, 0, 0, 0), (5, 1, 0, 0), 20),
    LAB("submitted", "N: a job without delay comes while another becomes due", submitted_setup,
        (3, 0, 0, 0), (4, 1, 0, 0), 20),
    LAB("submitted_limit", "N: the same beside a topic with a limit", submitted_limit_setup,
        (3, 0, 0, 0), (4, 1, 0, 0), 20),
    LAB("submitted_left", "N: a tenure leaves a job without delay in the inbox",
        submitted_left_setup, (2, 0, 0, 0), (3, 1, 0, 0), 20),
    LAB("race_head", "N: take, cancel and reschedule of the timeline's head", race_head_setup,
        (3, 1, 0, 0), (5, 2, 0, 0), 20),
    LAB("pause_head", "N: take of the timeline's head, cancel and pause", pause_head_setup,
        (2, 0, 0, 0), (3, 1, 0, 0), 20),
    LAB("head_behind_line", "N: the timeline's head is due, and so is a line's",
        head_behind_line_setup, (2, 0, 1, 0), (3, 1, 1, 0), 20),
    LAB("race_head_roomy", "N: the same by who has room for more", race_head_roomy_setup,
        (2, 1, 0, 0), (5, 2, 0, 0), 20),
    LAB("pause_head_roomy", "N: take of the head by who has room for more, cancel and pause",
        pause_head_roomy_setup, (2, 0, 0, 0), (3, 1, 0, 0), 20),
    LAB("head_behind_line_waited", "N: head and line are due, and somebody waits",
        head_behind_line_waited_setup, (1, 0, 1, 0), (3, 1, 1, 0), 20),
    LAB("turn_of_another", "N: a job comes due beside what one topic shows", turn_of_another_setup,
        (2, 0, 0, 0), (3, 1, 0, 0), 20),
    LAB("race_shown", "N: take, cancel and reschedule of one job that is shown", race_shown_setup,
        (3, 1, 0, 0), (5, 2, 0, 0), 20),
    LAB("cancel_two", "N: two cancel one job and use its place", cancel_two_setup, (3, 1, 0, 0),
        (5, 2, 0, 0), 20),
    LAB("reuse_moved", "N: a place is used again while its job is moved", reuse_moved_setup,
        (2, 1, 0, 0), (4, 2, 0, 0), 20),
    LAB("lazy", "N, a clock turned by hand before anybody waits", lazy_setup, (1, 0, 0, 0),
        (3, 1, 0, 0), 20),
    LAB("drain_refused", "N: drain against a producer who is refused", drain_refused_setup,
        (2, 0, 0, 0), (3, 1, 1, 0), 20),
    { .name = NULL },
};
