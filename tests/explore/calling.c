/* calling.c - scenarios of the calls that pass from one parked consumer to the next: of several
 * jobs that come at once one is called for, and whoever was called calls the next.
 *
 * Here consumers wait with timeouts so long that an execution in which a call was lost comes to
 * rest before them, with a job due and somebody waiting: lab_idle() sees that.
 */
#include <stdlib.h>

#include "acts.h"

static void open_never(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
}

static void two_patient(void)
{
    explore_thread("consumer 1", act_take_within, as_arg(20));
    explore_thread("consumer 2", act_take_within, as_arg(20));
}

/* Three jobs become due at once.  The leader has the first, and calls for the others. */
static void at_once_setup(void)
{
    open_never();
    for (unsigned n = 0; n < 3; n++)
        lab_put(n, 0, LAB_AT(DUE_MS(1)), 0);
    two_patient();
    explore_thread("consumer 3", act_take_within, as_arg(20));
}

/* The one who is called may run out of time before he wakes. */
static void timeout_setup(void)
{
    open_never();
    explore_instant(LAB_AT(DUE_MS(1)));
    explore_thread("impatient", act_take_within, as_arg(1));
    explore_thread("patient", act_take_within, as_arg(20));
    explore_thread("producer", act_put_two, as_arg(0));
}

/* The job that somebody is called for is cancelled before he has it. */
static void put_two_and_cancel(void *arg)
{
    (void)arg;
    lab_put(0, 0, 0, 0);
    lab_cancel(0);
    lab_put(1, 0, 0, 0);
}

static void cancelled_setup(void)
{
    open_never();
    two_patient();
    explore_thread("producer", put_two_and_cancel, NULL);
}

/* The queue is closed while a call is on its way. */
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

static void discarded_setup(void)
{
    open_never();
    explore_thread("consumer 1", act_take_one, NULL);
    explore_thread("consumer 2", act_take_one, NULL);
    explore_thread("producer", act_put_two, as_arg(0));
    explore_thread("closer", close_discard, NULL);
}

static void drained_setup(void)
{
    open_never();
    explore_thread("consumer 1", act_take_one, NULL);
    explore_thread("consumer 2", act_take_one, NULL);
    explore_thread("producer", act_put_two, as_arg(0));
    explore_thread("closer", close_drain, NULL);
}

/* Calls for two topics go their own ways; one who takes both may be called for either. */
static void put_two_topics(void *arg)
{
    (void)arg;
    lab_put(0, 1, 0, 0);
    lab_put(1, 2, 0, 0);
    lab_put(2, 1, 0, 0);
}

static void topics_setup(void)
{
    open_never();
    explore_thread("of any", act_take_within, as_arg(20));
    explore_thread("of one", act_take_of_within, as_arg(1));
    explore_thread("of two", act_take_of_within, as_arg(2));
    explore_thread("producer", put_two_topics, NULL);
}

/* By priority nothing is taken without the lock. */
static void priority_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER, .order = DUE_ORDER_PRIORITY });
    two_patient();
    explore_thread("producer", act_put_two, as_arg(0));
}

/* One who is called takes several at once; another one comes by and takes what he finds. */
static void take_batch(void *arg)
{
    (void)arg;
    lab_take_batch(2, DUE_MS(20));
}

static void batch_setup(void)
{
    open_never();
    explore_thread("of two jobs", take_batch, NULL);
    explore_thread("of one job", act_take_within, as_arg(20));
    explore_thread("producer", act_put_two, as_arg(0));
    explore_thread("producer 2", act_put_now, as_arg(2));
}

static void passer_by_setup(void)
{
    open_never();
    two_patient();
    explore_thread("awake", act_take_now, NULL);
    explore_thread("producer", act_put_two, as_arg(0));
}

/* What the called one looked for is held back, and comes again. */
static void put_and_pause(void *arg)
{
    act_put_two(arg);
    lab->paused = true;
    explore_check(due_pause(lab->q, 0) == 0, "pause");
    explore_check(due_resume(lab->q, 0) == 0, "resume");
    lab->paused = false;
}

static void paused_setup(void)
{
    open_never();
    two_patient();
    explore_thread("producer", put_and_pause, as_arg(0));
}

/* Whoever has had a job comes back, while the next ones are still called. */
static void again_setup(void)
{
    open_never();
    explore_thread("consumer 1", act_take_two, NULL);
    explore_thread("consumer 2", act_take_one, NULL);
    explore_thread("producer", act_put_two, as_arg(0));
    explore_thread("producer 2", act_put_now, as_arg(2));
}

/* A clock turned by hand: nobody wakes by himself. */
static void turn(void *arg)
{
    (void)arg;
    explore_check(due_clock_advance(lab->clock, DUE_MS(1)) == 0, "advance");
}

static void turned_setup(void)
{
    due_clock *clock = due_clock_manual(EXPLORE_START_NS);

    if (clock == NULL)
        abort();
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER, .manual = clock });
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    lab_put(1, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("consumer 1", act_take_one, NULL);
    explore_thread("consumer 2", act_take_one, NULL);
    explore_thread("hand", turn, NULL);
}

const struct explore_scenario explore_scenarios_calling[] = {
    LAB("at_once", "N: three wait, three jobs become due at once", at_once_setup, (1, 0, 0, 0),
        (3, 1, 0, 0), 50),
    LAB("called_timeout", "N: two jobs, and who is called for the first has a timeout",
        timeout_setup, (1, 0, 1, 0), (3, 1, 1, 1), 50),
    LAB("called_cancelled", "N: the job that was called for is cancelled", cancelled_setup,
        (1, 1, 0, 0), (3, 1, 0, 1), 20),
    LAB("called_discarded", "N: closed at once while two are called", discarded_setup, (1, 0, 0, 0),
        (2, 1, 0, 0), 2),
    LAB("called_drained", "N: drained while two are called", drained_setup, (1, 0, 0, 0),
        (2, 1, 0, 0), 50),
    LAB("called_topics", "N: calls for two topics", topics_setup, (1, 0, 0, 0), (2, 1, 0, 0), 50),
    LAB("called_by_priority", "N: calls where all take under the lock", priority_setup,
        (1, 1, 0, 0), (3, 1, 0, 1), 20),
    LAB("called_batch", "N: one who is called takes several", batch_setup, (1, 0, 0, 0),
        (2, 1, 0, 0), 50),
    LAB("called_overtaken", "N: two wait, one comes by, two jobs", passer_by_setup, (1, 0, 0, 0),
        (2, 1, 0, 0), 50),
    LAB("called_paused", "N: the topic is paused while two are called", paused_setup, (1, 0, 0, 0),
        (3, 1, 0, 0), 50),
    LAB("called_again", "N: who was called comes back for more", again_setup, (1, 0, 0, 0),
        (2, 1, 0, 0), 50),
    LAB("called_turned", "N: a clock turned by hand makes two jobs due", turned_setup, (1, 0, 0, 0),
        (3, 1, 0, 1), 20),
    { .name = NULL },
};
