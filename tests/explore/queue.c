/* queue.c - scenarios over a whole queue: submission, the race for a job, waiting, leading.
 *
 * N is a queue without proxies, A one with adaptive proxies, W one where every operation goes
 * through its proxy.
 */
#include "acts.h"
#include "os/atomic.h"
#include "engine.h"

/* ---- Submission: no job is forgotten in the inbox ---- */

static void submit_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("producer 0", act_put_now, as_arg(0));
    explore_thread("producer 1", act_put_now, as_arg(1));
    explore_thread("producer 2", act_put_now, as_arg(2));
}

static void submit_two_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("producer 0", act_put_two, as_arg(0));
    explore_thread("producer 2", act_put_two, as_arg(2));
}

static void hand_back_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_ADAPTIVE });
    explore_thread("caller", act_call_proxy, NULL);
    explore_thread("producer 0", act_put_now, as_arg(0));
    explore_thread("producer 1", act_put_now, as_arg(1));
}

static void called_in_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_ADAPTIVE });
    explore_thread("producer 0", act_put_two, as_arg(0));
    explore_thread("producer 2", act_put_two, as_arg(2));
    explore_thread("producer 4", act_put_now, as_arg(4));
}

/* ---- One job, several who want it ---- */

static void race_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 0, 0, 0);
    explore_thread("taker", act_take_now, NULL);
    explore_thread("canceller", act_cancel, as_arg(0));
    explore_thread("mover", act_move_later, as_arg(0));
}

static void race_two_takers_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 0, 0, 0);
    lab_put(1, 0, 0, 0);
    lab_show();
    explore_thread("taker 1", act_take_now, NULL);
    explore_thread("taker 2", act_take_now, NULL);
    explore_thread("mover", act_move_later, as_arg(0));
}

/* A job in the inbox or in the timeline is moved while it is cancelled. */
static void put_and_cancel(void *arg)
{
    act_put_later(arg);
    act_cancel(arg);
}

static void put_and_move(void *arg)
{
    act_put_later(arg);
    act_move_sooner(arg);
}

static void move_in_inbox_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("holder", act_put_later, as_arg(2));
    explore_thread("mover", put_and_move, as_arg(0));
    explore_thread("canceller", put_and_cancel, as_arg(1));
}

/* The place of a cancelled job is used again while somebody holds its slot. */
static void cancel_and_put(void *arg)
{
    (void)arg;
    lab_cancel(0);
    lab_take(1, 0);
    lab_put(1, 2, 0, 0);
}

static void take_topic_one_now(void *arg)
{
    (void)arg;
    lab_take(1, 0);
}

static void reuse_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 1, 0, 0);
    lab_show();
    explore_thread("taker", take_topic_one_now, NULL);
    explore_thread("canceller", cancel_and_put, NULL);
}

/* The same for the same topic: only the deadline tells the old slot from the new one. */
static void cancel_and_put_later(void *arg)
{
    (void)arg;
    lab_cancel(0);
    lab_take(0, 0);
    lab_put(1, 0, LAB_AT(DUE_MS(1)), 0);
}

static void reuse_later_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 0, 0, 0);
    lab_show();
    explore_thread("taker", act_take_now, NULL);
    explore_thread("canceller", cancel_and_put_later, NULL);
}

static void pause_two(void *arg)
{
    (void)arg;
    explore_check(due_pause(lab->q, 2) == 0, "pause");
}

/* The same with the same deadline, perhaps still in the inbox: the old slot may stand for it. */
static void cancel_and_put_same(void *arg)
{
    (void)arg;
    lab_cancel(0);
    lab_take(0, 0);
    lab_put(1, 0, LAB_AT(0), 0);
}

static void reuse_same_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 0, 0, 0);
    lab_show();
    explore_thread("taker", act_take_now, NULL);
    explore_thread("canceller", cancel_and_put_same, NULL);
    explore_thread("holder", pause_two, NULL);
}

/* The same while somebody is about to name the old job. */
static void take_and_put(void *arg)
{
    (void)arg;
    lab_take(0, 0);
    lab_put(1, 0, LAB_AT(DUE_MS(1)), 0);
}

static void reuse_named_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 0, 0, 0);
    lab_show();
    explore_thread("taker", take_and_put, NULL);
    explore_thread("canceller", act_cancel, as_arg(0));
    explore_thread("mover", act_move_later, as_arg(0));
}

/* Two slots of one job with the same deadline: one of them is dead when both are due. */
static void move_and_back(void *arg)
{
    (void)arg;
    lab_move(0, LAB_AT(DUE_MS(5)));
    lab_move(0, LAB_AT(DUE_MS(1)));
    engine_clock_forward(LAB_AT(DUE_MS(2)));
    due_info info;
    int rc = due_peek(lab->q, &info);
    explore_check(rc == 0 || rc == DUE_EAGAIN, "peek answers %s", due_error_name(rc));
}

static void move_back_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("mover", move_and_back, NULL);
    explore_thread("taker", act_take_within, as_arg(20));
}

/* What one has put oneself, and stands first, is what one takes, though another holds the lock. */
static void put_earlier_and_take(void *arg)
{
    (void)arg;
    lab_put(1, 0, LAB_AT(-5), 0);
    int n = lab_take(0, 0);
    explore_check(n == 1, "job %d was taken before an earlier one", n);
}

static void own_first_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 0, 0, 0);
    lab_show();
    lab_put(2, 0, LAB_AT(DUE_MS(2)), 0);
    explore_thread("taker", put_earlier_and_take, NULL);
    explore_thread("mover", act_move_later, as_arg(2));
}

/* The same without a delay, but of a higher priority than what is shown of the same moment. */
static void put_urgent_and_take(void *arg)
{
    (void)arg;
    lab_put(1, 0, 0, 0);
    int n = lab_take(0, 0);
    explore_check(n == 1, "job %d was taken before a more urgent one", n);
}

static void own_urgent_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab->job[1].priority = 1;
    lab_put(0, 0, 0, 0);
    lab_show();
    lab_put(2, 0, LAB_AT(DUE_MS(2)), 0);
    explore_thread("taker", put_urgent_and_take, NULL);
    explore_thread("mover", act_move_later, as_arg(2));
}

/* The same through the inbox: the node is still linked when its job is cancelled. */
static void cancel_and_put_again(void *arg)
{
    (void)arg;
    lab_put(1, 0, 0, 0);
    lab_cancel(1);
    lab_put(2, 0, 0, 0);
}

static void reuse_linked_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 0, 0, 0);
    explore_thread("taker", act_take_now, NULL);
    explore_thread("canceller", cancel_and_put_again, NULL);
}

static void pause_and_resume(void *arg)
{
    (void)arg;
    lab->paused = true;
    explore_check(due_pause(lab->q, 0) == 0, "pause");
    explore_check(due_resume(lab->q, 0) == 0, "resume");
    lab->paused = false;
}

static void pause_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 0, 0, 0);
    explore_thread("taker 1", act_take_one, NULL);
    explore_thread("producer", act_put_now, as_arg(1));
    explore_thread("pauser", pause_and_resume, NULL);
    explore_thread("taker 2", act_take_one, NULL);
}

/* ---- Parking: whoever waits is called ---- */

static void park_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("producer", act_put_now, as_arg(0));
}

static void park_two_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("consumer", act_take_two, NULL);
    explore_thread("producer 0", act_put_now, as_arg(0));
    explore_thread("producer 1", act_put_now, as_arg(1));
}

static void park_both_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("consumer 1", act_take_within, as_arg(20));
    explore_thread("consumer 2", act_take_within, as_arg(20));
    explore_thread("producer", act_put_two, as_arg(0));
}

/* The second job becomes due while the one who was called for the first looks for it. */
static void put_later_and_now(void *arg)
{
    (void)arg;
    act_put_later(as_arg(1));
    act_put_now(as_arg(0));
}

static void called_late_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("consumer 1", act_take_within, as_arg(20));
    explore_thread("consumer 2", act_take_within, as_arg(20));
    explore_thread("producer", put_later_and_now, NULL);
}

/* Two wait, one of them not for long: a call he does not use goes to the other. */
static void unused_call_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_instant(LAB_AT(DUE_MS(1)));
    explore_thread("impatient", act_take_within, as_arg(1));
    explore_thread("patient", act_take_within, as_arg(20));
    explore_thread("producer", act_put_now, as_arg(0));
}

static void overtake_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("parked", act_take_one, NULL);
    explore_thread("awake", act_take_now, NULL);
    explore_thread("producer", act_put_two, as_arg(0));
}

static void put_topics(void *arg)
{
    (void)arg;
    lab_put(0, 1, 0, 0);
    lab_put(1, 2, 0, 0);
}

/* Called for topic 1, one takes a job of topic 2 and leaves; the call goes to the other. */
static void call_of_topic_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("of any", act_take_within, as_arg(20));
    explore_thread("of one", act_take_of_within, as_arg(1));
    explore_thread("producer", put_topics, NULL);
}

/* One who takes any topic is called for topic 1, and has a job of topic 2 instead, because topics
 * take turns: by priority all take under the lock.  His call goes to the next who takes topic 1. */
static void put_three_of_topics(void *arg)
{
    (void)arg;
    lab_put(0, 1, 0, 0);
    lab_put(1, 1, 0, 0);
    lab_put(2, 2, 0, 0);
}

static void passed_on_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER, .order = DUE_ORDER_PRIORITY });
    explore_thread("of any", act_take_within, as_arg(20));
    explore_thread("of any too", act_take_within, as_arg(20));
    explore_thread("of one", act_take_of_within, as_arg(1));
    explore_thread("producer", put_three_of_topics, NULL);
}

static void park_topics_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("of any", act_take_within, as_arg(20));
    explore_thread("of one", act_take_of_within, as_arg(1));
    explore_thread("producer", put_topics, NULL);
    explore_thread("producer 2", act_put_now, as_arg(2));
}

/* ---- Leading: the timer has an owner while anybody waits ---- */

static void lead_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("producer 1", act_put_later, as_arg(1));
    explore_thread("producer 0", act_put_later, as_arg(0));
}

static void lead_two_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("consumer 1", act_take_one, NULL);
    explore_thread("consumer 2", act_take_one, NULL);
    explore_thread("producer 1", act_put_later, as_arg(1));
    explore_thread("producer 0", act_put_later, as_arg(0));
}

/* The leader leaves by his timeout, before, at and after the deadline. */
static void lead_timeout_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("impatient", act_take_within, as_arg(1));
    explore_thread("patient", act_take_within, as_arg(20));
    explore_thread("producer", act_put_later, as_arg(2));
}

static void lead_called_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    explore_thread("consumer 1", act_take_one, NULL);
    explore_thread("consumer 2", act_take_one, NULL);
    explore_thread("producer 0", act_put_now, as_arg(0));
    explore_thread("producer 1", act_put_later, as_arg(1));
}

/* One leads, the other sleeps until the job after that.  What is put between them is for him, too,
 * once the leader has left. */
static void deputy_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    lab_put(2, 0, LAB_AT(DUE_MS(3)), 0);
    explore_thread("consumer 1", act_take_one, NULL);
    explore_thread("consumer 2", act_take_one, NULL);
    explore_thread("producer 1", act_put_later, as_arg(1));
}

/* The deputy leaves before the leader, with a job that the leader was not called for because he
 * stood in line anew. */
static void put_sooner_and_now(void *arg)
{
    act_put_later(arg);
    lab_put(3, 0, 0, 0);
}

static void deputy_called_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab->gaps = true;
    lab_put(1, 0, LAB_AT(DUE_MS(2)), 0);
    lab_put(2, 0, LAB_AT(DUE_MS(3)), 0);
    explore_thread("consumer 1", act_take_one, NULL);
    explore_thread("consumer 2", act_take_one, NULL);
    explore_thread("consumer 3", act_take_one, NULL);
    explore_thread("producer", put_sooner_and_now, as_arg(0));
}

static void cancel_head_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    lab_put(1, 0, LAB_AT(DUE_MS(2)), 0);
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("canceller", act_cancel, as_arg(0));
    explore_thread("mover", act_move_sooner, as_arg(1));
}

const struct explore_scenario explore_scenarios_queue[] = {
    LAB("submit", "N: three producers", submit_setup, (2, 1, 0, 0), (4, 2, 0, 0), 20),
    LAB("submit_two", "N: two producers of two jobs", submit_two_setup, (2, 1, 0, 0), (4, 2, 0, 0),
        20),
    LAB("hand_back", "A: the enqueue proxy hands back while two producers push", hand_back_setup,
        (2, 1, 0, 0), (3, 2, 0, 0), 20),
    LAB("called_in", "A: three producers until the enqueue proxy is called in", called_in_setup,
        (1, 0, 0, 0), (2, 1, 0, 0), 50),
    LAB("race", "N: take, cancel and reschedule of one job", race_setup, (3, 1, 0, 0), (5, 2, 0, 0),
        20),
    LAB("race_two_takers", "N: two takers, two jobs, one moved", race_two_takers_setup,
        (3, 1, 0, 0), (4, 2, 0, 0), 20),
    LAB("move_in_inbox", "N: reschedule and cancel of jobs not yet sorted in", move_in_inbox_setup,
        (2, 0, 0, 0), (3, 1, 0, 0), 20),
    LAB("reuse", "N: a place is used again while a taker holds its old slot", reuse_setup,
        (3, 1, 0, 0), (5, 2, 0, 0), 20),
    LAB("reuse_linked", "N: the same while the inbox holds the node", reuse_linked_setup,
        (3, 1, 0, 0), (4, 2, 0, 0), 20),
    LAB("reuse_later", "N: the same for the same topic, later", reuse_later_setup, (3, 1, 0, 0),
        (5, 2, 0, 0), 20),
    LAB("reuse_same", "N: the same with the same deadline", reuse_same_setup, (3, 0, 0, 0),
        (4, 1, 0, 0), 20),
    LAB("reuse_named", "N: the same while others name the old job", reuse_named_setup, (2, 1, 0, 0),
        (4, 2, 0, 0), 20),
    LAB("move_back", "N: a job is moved away and back again", move_back_setup, (2, 1, 1, 0),
        (4, 2, 2, 0), 20),
    LAB("own_first", "N: one's own earlier job, while another holds the lock", own_first_setup,
        (3, 1, 0, 0), (5, 2, 0, 0), 20),
    LAB("own_urgent", "N: one's own job of a higher priority, likewise", own_urgent_setup,
        (2, 1, 0, 0), (5, 2, 0, 0), 20),
    LAB("pause", "N: pause and resume against two takers and a producer", pause_setup, (2, 0, 0, 0),
        (3, 1, 0, 0), 20),
    LAB("park", "N: one waits, one puts", park_setup, (4, 1, 0, 1), (6, 2, 0, 2), 10),
    LAB("park_two", "N: one waits twice, two put", park_two_setup, (1, 1, 0, 0), (4, 1, 0, 1), 20),
    LAB("park_both", "N: two wait, one puts two", park_both_setup, (1, 0, 0, 0), (3, 1, 0, 1), 20),
    LAB("called_late", "N: two wait, a second job becomes due meanwhile", called_late_setup,
        (0, 0, 1, 0), (2, 1, 1, 0), 20),
    LAB("unused_call", "N: two wait, one with a timeout", unused_call_setup, (1, 0, 1, 0),
        (3, 1, 1, 1), 20),
    LAB("overtake", "N: one waits, one comes by, two jobs", overtake_setup, (1, 1, 0, 0),
        (3, 1, 0, 1), 20),
    LAB("park_topics", "N: waiting for any topic and for one", park_topics_setup, (1, 0, 0, 0),
        (3, 1, 0, 0), 50),
    LAB("call_of_topic", "N: a call for one topic, a job of another", call_of_topic_setup,
        (2, 0, 0, 0), (3, 1, 1, 0), 50),
    LAB("passed_on", "N: three wait, one of them takes what he was not called for", passed_on_setup,
        (0, 0, 0, 0), (2, 1, 0, 0), 20),
    LAB("lead", "N: an earlier head comes while the leader sleeps", lead_setup, (2, 1, 1, 0),
        (4, 1, 2, 1), 30),
    LAB("lead_two", "N: the lead is handed on with the first job", lead_two_setup, (1, 0, 1, 0),
        (3, 1, 1, 0), 50),
    LAB("lead_timeout", "N: the leader's timeout", lead_timeout_setup, (1, 0, 1, 0), (3, 1, 2, 1),
        50),
    LAB("lead_called", "N: the leader is called", lead_called_setup, (1, 0, 1, 0), (3, 1, 1, 0),
        50),
    LAB("deputy", "N: a job comes before the one that the next to lead sleeps for", deputy_setup,
        (1, 0, 1, 0), (3, 1, 1, 0), 50),
    LAB("deputy_called", "N: the next to lead leaves first", deputy_called_setup, (1, 0, 0, 0),
        (2, 1, 0, 0), 50),
    LAB("cancel_head", "N: the head is cancelled, the next one moved ahead", cancel_head_setup,
        (2, 1, 1, 0), (4, 1, 1, 0), 30),
    { .name = NULL },
};
