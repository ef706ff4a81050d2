/* next.c - scenarios of the next job of a queue with one topic, which is taken in one tenure: from
 * the topic's line, or as the timeline's head; and of a consumer that spins until it is due.
 *
 * The books (lab.h) look whether anything was passed over.
 */
#include "acts.h"
#include "engine.h"

static void open_one_topic(void)
{
    lab_open_bare((due_options){ .proxies = DUE_PROXIES_NEVER });
}

/* Who waits wakes so much early, and spins. */
static void open_spinning(int64_t ns)
{
    lab_open_bare((due_options){ .proxies = DUE_PROXIES_NEVER, .spin_ns = ns });
}

static void peek(void *arg)
{
    due_info info;

    (void)arg;
    int rc = due_peek(lab->q, &info);
    explore_check(rc == 0 || rc == DUE_EAGAIN, "peek answers %s", due_error_name(rc));
}

static void take_something(void *arg)
{
    (void)arg;
    int n = lab_take(0, 0);
    explore_check(n >= 0, "something is due, and the answer is %s", due_error_name(n));
}

static void next_race_setup(void)
{
    open_one_topic();
    lab_put(0, 0, LAB_AT(-5), 0);
    explore_thread("taker", act_take_now, NULL);
    explore_thread("canceller", act_cancel, as_arg(0));
    explore_thread("mover", act_move_later, as_arg(0));
}

static void reserve_and_ack(void *arg)
{
    due_job job;

    (void)arg;
    int rc = due_reserve(lab->q, &job, 0);
    explore_check(rc == 0 || rc == DUE_EAGAIN, "reserve answers %s", due_error_name(rc));
    if (rc != 0)
        return;
    explore_check(lab_gone(0) == 0, "reserved after it has left");
    explore_check(job.token != 0 && job.attempts == 1, "it has no lease");
    lab->job[0].handed_out++;
    rc = due_ack(&job);
    explore_check(rc == 0, "ack answers %s", due_error_name(rc));
}

/* The same on a lease.  Somebody has reserved before, so everything is there that one needs. */
static void next_reserved_setup(void)
{
    due_job job;

    open_one_topic();
    lab_put(1, 0, LAB_AT(-5), 0);
    explore_check(due_reserve(lab->q, &job, 0) == 0 && due_ack(&job) == 0, "reserve and ack");
    lab->job[1].handed_out++;
    lab_put(0, 0, LAB_AT(-5), 0);
    explore_thread("reserver", reserve_and_ack, NULL);
    explore_thread("taker", act_take_now, NULL);
    explore_thread("mover", act_move_later, as_arg(0));
}

/* One's own job stands first, though another holds the lock when it is put. */
static void put_first_and_take(void *arg)
{
    (void)arg;
    lab_put(1, 0, LAB_AT(-5), 0);
    int n = lab_take(0, 0);
    explore_check(n == 1, "job %d was taken before an earlier one", n);
}

static void next_inbox_setup(void)
{
    open_one_topic();
    lab_put(0, 0, LAB_AT(-3), 0);
    lab_put(2, 0, LAB_AT(DUE_MS(2)), 0);
    explore_thread("taker", put_first_and_take, NULL);
    explore_thread("mover", act_move_later, as_arg(2));
}

/* One that is due stands in the line, a later one is due in the timeline; somebody shows them. */
static void next_line_setup(void)
{
    open_one_topic();
    lab_put(2, 0, LAB_AT(DUE_MS(1)), 0);
    lab_put(0, 0, 0, 0);
    explore_instant(LAB_AT(DUE_MS(2)));
    engine_clock_forward(LAB_AT(DUE_MS(2)));
    explore_thread("taker", take_something, NULL);
    explore_thread("looker", peek, NULL);
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

static void next_paused_setup(void)
{
    open_one_topic();
    lab_put(0, 0, LAB_AT(-5), 0);
    explore_thread("pauser", pause_and_take, NULL);
    explore_thread("canceller", act_cancel, as_arg(0));
}

/* A look in vain by the one is noted for the other, who has put one that is due before: it is his,
 * or is had by the one. */
static void put_earlier_and_take(void *topic)
{
    due_info info;

    lab_put(1, (int)(uintptr_t)topic, LAB_AT(DUE_MS(1)), 0);
    engine_clock_forward(LAB_AT(DUE_MS(2)));
    int n = lab_take(0, 0);
    explore_check(n == 1 || due_find(lab->q, lab->job[1].id, &info) != 0,
                  "a job is due, and the answer is %s", due_error_name(n));
}

static void look_twice(void *arg)
{
    (void)arg;
    lab_take(0, 0);
    lab_take(0, 0);
}

static void next_nothing_setup(void)
{
    open_one_topic();
    lab_put(0, 0, LAB_AT(DUE_MS(4)), 0);
    explore_thread("producer", put_earlier_and_take, as_arg(0));
    explore_thread("looker", look_twice, NULL);
}

/* The same where there are other topics. */
static void next_nothing_topics_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 1, LAB_AT(DUE_MS(4)), 0);
    explore_thread("producer", put_earlier_and_take, as_arg(2));
    explore_thread("looker", look_twice, NULL);
}

/* Of two that come due somebody takes one who does not wait: he who waits has the other. */
static void next_waiting_setup(void)
{
    open_one_topic();
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    lab_put(1, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("taker", act_take_now, NULL);
    explore_thread("producer", act_put_now, as_arg(2));
}

static void close_drain(void *arg)
{
    (void)arg;
    lab_close(DUE_CLOSE_DRAIN, DUE_FOREVER);
}

/* The last job is taken by somebody who does not wait. */
static void next_last_setup(void)
{
    open_one_topic();
    lab_put(0, 0, LAB_AT(-5), 0);
    lab_put(1, 0, 0, 0);
    explore_thread("taker", take_something, NULL);
    explore_thread("canceller", act_cancel, as_arg(1));
    explore_thread("closer", close_drain, NULL);
}

static void take_until_closed(void *arg)
{
    (void)arg;
    while (lab_take(0, DUE_FOREVER) >= 0)
        ;
}

static void put_two(void *arg)
{
    due_spec specs[2];
    due_id ids[2];

    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        lab->job[i].now = true;
        lab->job[i].deadline_ns = lab_now();
        specs[i] = (due_spec){ DUE_SPEC_INIT, .ptr = (void *)(uintptr_t)(i + 1) };
    }
    int rc = due_enqueue_batch(lab->q, specs, 2, 0, ids);
    explore_check(rc > 0 || rc == DUE_ECLOSED, "put two answers %s", due_error_name(rc));
    for (unsigned i = 0; i < 2 && (int)i < rc; i++) {
        lab->job[i].id = ids[i];
        lab->job[i].latest_ns = lab_now();
        lab->job[i].accepted = true;
    }
}

/* Two are put in together, while it closes and somebody takes. */
static void next_batch_setup(void)
{
    open_one_topic();
    explore_thread("producer", put_two, NULL);
    explore_thread("taker", take_until_closed, NULL);
    explore_thread("closer", close_drain, NULL);
}

static void put_three_and_take(void *arg)
{
    (void)arg;
    lab_put(2, 0, 0, 0);
    put_two(NULL);
    int n = lab_take(0, 0);
    explore_check(n == 2, "job %d was taken before one that was put earlier", n);
}

/* Two are put in together, while one that the same thread has put is in the inbox yet. */
static void next_batch_inbox_setup(void)
{
    open_one_topic();
    lab_put(3, 0, LAB_AT(DUE_MS(2)), 0);
    explore_thread("producer", put_three_and_take, NULL);
    explore_thread("mover", act_move_later, as_arg(3));
}

/* The last job is shown, and taken by somebody who does not wait. */
static void next_shown_setup(void)
{
    open_one_topic();
    lab_put(0, 0, LAB_AT(-5), 0);
    lab_show();
    explore_thread("taker", take_something, NULL);
    explore_thread("closer", close_drain, NULL);
}

/* ---- A consumer that spins ---- */

static bool *in_time; /* from setup; one thread writes it, and the other looks at last */

static void spin_race_setup(void)
{
    open_spinning(1);
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    lab_put(1, 0, LAB_AT(DUE_MS(2)), 0);
    explore_instant(LAB_AT(DUE_MS(1)) - 1);
    explore_instant(LAB_AT(DUE_MS(1)));
    explore_thread("spinner", act_take_one, NULL);
    explore_thread("canceller", act_cancel, as_arg(0));
    explore_thread("mover", act_move_later, as_arg(0));
}

/* It waits for job 1, and job 0 comes before that. */
static void spin_earlier_setup(void)
{
    open_spinning(1);
    lab_put(1, 0, LAB_AT(DUE_MS(2)), 0);
    explore_instant(LAB_AT(DUE_MS(2)) - 1);
    explore_instant(LAB_AT(DUE_MS(2)));
    explore_thread("spinner", act_take_one, NULL);
    explore_thread("producer", act_put_later, as_arg(0));
    explore_thread("mover", act_move_later, as_arg(1));
}

/* Job 1 is due in a nanosecond, and may be in hand, when an earlier one is put.  If that is done
 * before job 1 is due, it must be had first. */
static void put_before(void *arg)
{
    (void)arg;
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    *in_time = due_now(lab->q) < LAB_AT(DUE_MS(2)); /* a step */
}

/* Time passes, though nobody who matters looks at the clock. */
static void look_at_clock(void *arg)
{
    (void)arg;
    due_now(lab->q);
}

static void take_unless(void *why)
{
    int n = lab_take(0, DUE_FOREVER);
    explore_check((n == 0 && !lab->paused) || !*in_time, "job %d was had, but %s", n, (char *)why);
}

static void spin_overtaken_setup(void)
{
    open_spinning(1);
    in_time = explore_new(sizeof *in_time);
    lab_put(1, 0, LAB_AT(DUE_MS(2)), 0);
    explore_instant(LAB_AT(DUE_MS(2)) - 1);
    explore_instant(LAB_AT(DUE_MS(2)));
    explore_thread("spinner", take_unless, "an earlier one was there");
    explore_thread("producer", put_before, NULL);
    explore_thread("clock", look_at_clock, NULL);
}

/* Something comes while the job is in hand, which goes back some time before it is due.  Another
 * waits, too, and has the timer then. */
static void spin_given_back_setup(void)
{
    open_spinning(3);
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_instant(LAB_AT(DUE_MS(1)) - 3);
    explore_instant(LAB_AT(DUE_MS(1)));
    explore_thread("spinner", act_take_one, NULL);
    explore_thread("consumer", act_take_within, as_arg(3));
    explore_thread("producer", act_put_later, as_arg(4));
}

/* Others take what comes due with it, or wait for it. */
static void spin_beside_setup(void)
{
    open_spinning(1);
    lab_put(2, 0, LAB_AT(DUE_MS(2)), 0);
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    lab_put(1, 0, LAB_AT(DUE_MS(1)), 0);
    explore_instant(LAB_AT(DUE_MS(1)) - 1);
    explore_instant(LAB_AT(DUE_MS(1)));
    explore_thread("spinner", act_take_one, NULL);
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("taker", act_take_now, NULL);
}

/* If the pause has begun before the job is due, it is not had until that ends. */
static void pause_in_time(void *arg)
{
    (void)arg;
    lab->paused = true;
    explore_check(due_pause(lab->q, 0) == 0, "pause");
    *in_time = due_now(lab->q) < LAB_AT(DUE_MS(1));
    int n = lab_take(0, 0);
    explore_check(n < 0, "job %d of a paused topic is taken", n);
    *in_time = false;
    explore_check(due_resume(lab->q, 0) == 0, "resume");
    lab->paused = false;
}

static void spin_paused_setup(void)
{
    open_spinning(1);
    in_time = explore_new(sizeof *in_time);
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_instant(LAB_AT(DUE_MS(1)) - 1);
    explore_instant(LAB_AT(DUE_MS(1)));
    explore_thread("spinner", take_unless, "it is paused");
    explore_thread("pauser", pause_in_time, NULL);
}

static void spin_close_setup(void)
{
    open_spinning(1);
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_instant(LAB_AT(DUE_MS(1)) - 1);
    explore_instant(LAB_AT(DUE_MS(1)));
    explore_thread("spinner", act_take_one, NULL);
    explore_thread("closer", close_drain, NULL);
}

const struct explore_scenario explore_scenarios_next[] = {
    LAB("spin_race", "N: who spins for a job, beside cancel and move", spin_race_setup,
        (1, 0, 2, 0), (3, 1, 3, 0), 10),
    LAB("spin_earlier", "N: who spins for a job, and an earlier one comes", spin_earlier_setup,
        (1, 0, 2, 0), (3, 1, 3, 0), 10),
    LAB("spin_overtaken", "N: who has a job in hand, and one comes that is before it",
        spin_overtaken_setup, (1, 0, 2, 0), (2, 1, 2, 0), 10),
    LAB("spin_given_back", "N: who has a job in hand, and something comes", spin_given_back_setup,
        (1, 0, 1, 0), (2, 0, 2, 0), 10),
    LAB("spin_beside", "N: who spins for a job, beside others who take", spin_beside_setup,
        (1, 0, 1, 0), (3, 1, 3, 0), 10),
    LAB("spin_paused", "N: who spins for a job of a topic that is paused", spin_paused_setup,
        (1, 1, 2, 0), (4, 1, 3, 0), 10),
    LAB("spin_close", "N: who spins for the last job of a drain", spin_close_setup, (1, 0, 2, 0),
        (4, 1, 3, 0), 10),
    LAB("next_race", "N: the next job is taken, cancelled and moved", next_race_setup, (2, 1, 0, 0),
        (4, 2, 0, 0), 20),
    LAB("next_reserved", "N: the next job is reserved, taken and moved", next_reserved_setup,
        (1, 1, 0, 0), (4, 2, 0, 0), 20),
    LAB("next_inbox", "N: one's own job is next, while another holds the lock", next_inbox_setup,
        (2, 1, 0, 0), (4, 2, 0, 0), 20),
    LAB("next_line", "N: the next job stands in the line, and is shown", next_line_setup,
        (3, 1, 0, 0), (5, 2, 0, 0), 20),
    LAB("next_paused", "N: the next job is of a topic that is paused", next_paused_setup,
        (2, 1, 0, 0), (4, 2, 0, 0), 20),
    LAB("next_nothing", "N: a look in vain, beside one who puts and takes", next_nothing_setup,
        (3, 1, 0, 0), (4, 2, 0, 0), 20),
    LAB("next_nothing_topics", "N: the same, with several topics", next_nothing_topics_setup,
        (2, 1, 0, 0), (4, 2, 0, 0), 20),
    LAB("next_waiting", "N: the next job is taken beside one who waits", next_waiting_setup,
        (1, 0, 1, 0), (3, 1, 1, 0), 20),
    LAB("next_batch", "N: two are put in together, while it closes", next_batch_setup, (2, 0, 0, 0),
        (4, 1, 0, 0), 20),
    LAB("next_batch_inbox", "N: two are put in together, behind one in the inbox",
        next_batch_inbox_setup, (2, 1, 0, 0), (4, 1, 0, 0), 20),
    LAB("next_shown", "N: drain, the last job is shown and taken", next_shown_setup, (2, 0, 0, 0),
        (4, 1, 1, 0), 20),
    LAB("next_last", "N: drain, the last job is taken at once", next_last_setup, (1, 0, 0, 0),
        (4, 1, 1, 0), 20),
    { .name = NULL },
};
