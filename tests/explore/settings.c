/* settings.c - scenarios of queues with other settings: every operation through its proxy (W), the
 * wall clock, a clock turned by hand, the descriptor.
 */
#include <stdlib.h>

#include "acts.h"
#include "engine.h"

/* ---- Every operation goes through its proxy ---- */

static void open_always(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_ALWAYS });
}

static void always_setup(void)
{
    open_always();
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("producer", act_put_now, as_arg(0));
}

static void always_two_setup(void)
{
    open_always();
    explore_thread("consumer 1", act_take_within, as_arg(1));
    explore_thread("consumer 2", act_take_within, as_arg(20));
    explore_thread("producer 0", act_put_now, as_arg(0));
    explore_thread("producer 1", act_put_later, as_arg(1));
}

static void always_close(void *arg)
{
    (void)arg;
    lab_close(DUE_CLOSE_DRAIN, DUE_FOREVER);
}

static void always_close_setup(void)
{
    open_always();
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("producer", act_put_now, as_arg(0));
    explore_thread("closer", always_close, NULL);
}

/* ---- The wall clock: the leader sleeps on the queue's alarm ---- */

static void open_realtime(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER, .clock = DUE_CLOCK_REALTIME });
}

static void wall_setup(void)
{
    open_realtime();
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("producer 1", act_put_later, as_arg(1));
    explore_thread("producer 0", act_put_now, as_arg(0));
}

static void wall_two_setup(void)
{
    open_realtime();
    explore_thread("consumer 1", act_take_within, as_arg(1));
    explore_thread("consumer 2", act_take_within, as_arg(20));
    explore_thread("producer", act_put_later, as_arg(2));
}

static void set_forward(void *arg)
{
    (void)arg;
    explore_step_clock(DUE_MS(10));
}

static void wall_set_setup(void)
{
    open_realtime();
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("producer", act_put_later, as_arg(1));
    explore_thread("setter", set_forward, NULL);
}

/* ---- A clock turned by hand ---- */

static due_options by_hand(void)
{
    due_clock *clock = due_clock_manual(EXPLORE_START_NS);

    if (clock == NULL)
        abort();
    return (due_options){ .proxies = DUE_PROXIES_NEVER, .manual = clock };
}

static void open_manual(void)
{
    lab_open(by_hand());
}

/* With one topic nobody hears of turns before somebody waits. */
static void open_unheard(void)
{
    lab_open_bare(by_hand());
}

/* Everyone whose time has come is woken before the call returns. */
static void turn_once(void)
{
    explore_check(due_clock_advance(lab->clock, DUE_MS(1)) == 0, "advance");
    for (const struct due__waiter *w = lab->q->all; w != NULL; w = w->all_next)
        explore_check(w->until_ns > lab_now() || w->timed_out, "a sleeper's time has passed");
}

static void turn(void *arg)
{
    (void)arg;
    turn_once();
    turn_once();
}

static void turn_and_put(void *arg)
{
    turn(arg);
    lab_put(0, 0, 0, 0);
}

/* When everybody rests, who closes must not sleep though his time has passed (lab_idle()); then the
 * drain comes to its end. */
static void turn_rest_and_take(void *arg)
{
    (void)arg;
    explore_check(due_clock_advance(lab->clock, DUE_MS(2)) == 0, "advance");
    engine_park(lab, explore_now() + 1, -1); /* as on a futex that nobody wakes */
    lab_take(0, 0);
}

static void close_within(void *arg)
{
    (void)arg;
    lab_close(DUE_CLOSE_DRAIN, DUE_MS(1));
}

static void manual_close_setup(void)
{
    open_manual();
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("closer", close_within, NULL);
    explore_thread("turner", turn_rest_and_take, NULL);
}

static void unheard_close_setup(void)
{
    open_unheard();
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("closer", close_within, NULL);
    explore_thread("turner", turn_rest_and_take, NULL);
}

static void unheard_setup(void)
{
    open_unheard();
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("turner", turn, NULL);
}

static void unheard_timeout_setup(void)
{
    open_unheard();
    explore_thread("impatient", act_take_within, as_arg(1));
    explore_thread("turner", turn_and_put, NULL);
}

/* With a second topic it is known from each turn what was due first, though nobody waits. */
static bool *second_is_there; /* no step */

static void make_second(void *arg)
{
    (void)arg;
    explore_check(due_topic(lab->q, "one") == 1, "topic");
    *second_is_there = true;
}

static void turn_put_and_take(void *arg)
{
    bool several = *second_is_there;

    (void)arg;
    turn_once();
    if (!several)
        return;
    lab_put(1, 1, LAB_AT(-5), 0);
    int n = lab_take(0, 0);
    explore_check(n == 0, "job %d has the turn of one that was due before it came", n);
}

static void unheard_topic_setup(void)
{
    open_unheard();
    second_is_there = explore_new(sizeof *second_is_there);
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("namer", make_second, NULL);
    explore_thread("turner", turn_put_and_take, NULL);
}

static void manual_setup(void)
{
    open_manual();
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("producer", act_put_later, as_arg(1));
    explore_thread("turner", turn, NULL);
}

static void manual_timeout_setup(void)
{
    open_manual();
    explore_thread("impatient", act_take_within, as_arg(1));
    explore_thread("turner", turn_and_put, NULL);
}

static void manual_within_setup(void)
{
    open_manual();
    explore_thread("impatient", act_take_within, as_arg(1));
    explore_thread("patient", act_take_one, NULL);
    explore_thread("producer", act_put_later, as_arg(0));
    explore_thread("producer 1", act_put_now, as_arg(1));
    explore_thread("turner", turn, NULL);
}

/* ---- The descriptor: readable when there is something to take, and in time ---- */

static void take_by_descriptor(void *arg)
{
    int fd = due_fd(lab->q);
    int jobs = (int)(uintptr_t)arg;

    explore_check(fd >= 0, "fd answers %s", due_error_name(fd));
    while (jobs > 0) {
        lab->waiting[0]++;
        explore_wait_readable(fd, DUE_FOREVER);
        lab->waiting[0]--;
        while (jobs > 0 && lab_take(0, 0) >= 0)
            jobs--;
    }
}

static void descriptor_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("loop", take_by_descriptor, as_arg(2));
    explore_thread("producer 1", act_put_later, as_arg(1));
    explore_thread("producer 0", act_put_now, as_arg(0));
}

/* Nobody leads, so the job with a pointer, before the head, goes the shortest way. */
static void descriptor_far_setup(void)
{
    lab_open_bare((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(5, 0, LAB_AT(DUE_MS(5)), 0);
    explore_thread("loop", take_by_descriptor, as_arg(1));
    explore_thread("producer 0", act_put_later, as_arg(0));
}

static void descriptor_unheard_setup(void)
{
    open_unheard();
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("loop", take_by_descriptor, as_arg(1));
    explore_thread("turner", turn, NULL);
}

static void descriptor_shared_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    lab_put(1, 0, LAB_AT(DUE_MS(2)), 0);
    explore_thread("loop", take_by_descriptor, as_arg(1));
    explore_thread("canceller", act_cancel, as_arg(0));
    explore_thread("mover", act_move_later, as_arg(1));
}

const struct explore_scenario explore_scenarios_settings[] = {
    LAB("always", "W: one waits, one puts", always_setup, (1, 0, 0, 0), (3, 1, 0, 0), 20),
    LAB("always_two", "W: two wait, two put", always_two_setup, (0, 0, 0, 0), (2, 1, 1, 0), 20),
    LAB("always_close", "W: close against one who waits and one who puts", always_close_setup,
        (0, 0, 0, 0), (2, 1, 0, 0), 20),
    LAB("wall", "N, wall clock: the leader is called", wall_setup, (1, 0, 1, 0), (3, 1, 1, 0), 20),
    LAB("wall_two", "N, wall clock: the lead is passed on", wall_two_setup, (1, 0, 1, 0),
        (3, 1, 1, 0), 20),
    LAB("wall_set", "N, wall clock: it is set forward", wall_set_setup, (1, 0, 0, 0), (3, 1, 1, 0),
        20),
    LAB("manual", "N, a clock turned by hand: one waits", manual_setup, (2, 0, 0, 0), (3, 1, 0, 0),
        20),
    LAB("manual_timeout", "N, a clock turned by hand: a timeout", manual_timeout_setup,
        (1, 0, 0, 0), (4, 1, 0, 0), 20),
    LAB("manual_within", "N, a clock turned by hand: two wait", manual_within_setup, (0, 0, 0, 0),
        (2, 1, 0, 0), 20),
    LAB("manual_close", "N, a clock turned by hand: a close that waits for a while",
        manual_close_setup, (2, 1, 0, 0), (3, 1, 0, 0), 20),
    LAB("unheard", "N, a clock turned by hand: the first who ever waits", unheard_setup,
        (2, 1, 0, 0), (4, 1, 0, 0), 20),
    LAB("unheard_timeout", "N, a clock turned by hand: his timeout", unheard_timeout_setup,
        (2, 1, 0, 0), (4, 1, 0, 0), 20),
    LAB("unheard_close", "N, a clock turned by hand: the first is who closes", unheard_close_setup,
        (2, 1, 0, 0), (3, 1, 0, 0), 20),
    LAB("unheard_topic", "N, a clock turned by hand: the first makes a second topic",
        unheard_topic_setup, (2, 1, 0, 0), (3, 1, 0, 0), 20),
    LAB("unheard_descriptor", "N, a clock turned by hand: the first has the descriptor",
        descriptor_unheard_setup, (2, 1, 0, 0), (4, 1, 0, 0), 20),
    LAB("descriptor", "N: an event loop, two put", descriptor_setup, (2, 0, 0, 0), (3, 1, 1, 0),
        20),
    LAB("descriptor_far", "N: an event loop, one is put before the head", descriptor_far_setup,
        (3, 1, 1, 0), (5, 2, 2, 0), 20),
    LAB("descriptor_shared", "N: an event loop, jobs are cancelled and moved",
        descriptor_shared_setup, (2, 0, 0, 0), (3, 1, 1, 0), 20),
    { .name = NULL },
};
