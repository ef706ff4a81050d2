/* closing.c - scenarios of close against everybody, and of room in a queue with a capacity.
 *
 * Whoever waits is answered, what was accepted is delivered or discarded, and the call to close
 * comes back: if not, that is a deadlock.  Once it has come back, nobody who waited touches the
 * queue any more.
 */
#include "acts.h"
#include "os/futex.h"
#include "queue/inside.h"

/* ---- Threads ---- */

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

static void close_patiently(void *arg)
{
    (void)arg;
    if (lab_close(DUE_CLOSE_DRAIN, DUE_MS(1)) == DUE_ETIMEDOUT)
        lab_close(DUE_CLOSE_DISCARD, DUE_FOREVER);
}

static void take_until_closed(void *arg)
{
    (void)arg;
    while (lab_take(0, DUE_FOREVER) >= 0)
        ;
}

static void put_waiting(void *arg)
{
    lab_put((unsigned)(uintptr_t)arg, 0, 0, DUE_FOREVER);
}

static void put_within(void *arg)
{
    lab_put((unsigned)(uintptr_t)arg, 0, 0, DUE_MS(1));
}

static void put_within_long(void *arg)
{
    lab_put((unsigned)(uintptr_t)arg, 0, 0, DUE_MS(20));
}

/* ---- Discard ---- */

static void open_without_proxies(size_t capacity)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER, .capacity = capacity });
}

static void discard_push_setup(void)
{
    open_without_proxies(0);
    lab_put(2, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("producer 0", act_put_now, as_arg(0));
    explore_thread("producer 1", act_put_now, as_arg(1));
    explore_thread("closer", close_discard, NULL);
}

static void discard_push_one_setup(void)
{
    open_without_proxies(0);
    explore_thread("producer", act_put_now, as_arg(0));
    explore_thread("closer", close_discard, NULL);
}

static void discard_parked_setup(void)
{
    open_without_proxies(0);
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("consumer 1", take_until_closed, NULL);
    explore_thread("consumer 2", act_take_within, as_arg(20));
    explore_thread("closer", close_discard, NULL);
}

/* Somebody who might have waited did not have to. */
static void come_and_go(void *arg)
{
    (void)arg;
    due__inside_enter(lab->q);
    due__inside_leave(lab->q);
}

static void discard_passing_setup(void)
{
    open_without_proxies(0);
    explore_thread("passing", come_and_go, NULL);
    explore_thread("taker", act_take_now, NULL);
    explore_thread("closer", close_discard, NULL);
}

static void discard_blocked_setup(void)
{
    open_without_proxies(1);
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("producer 1", put_waiting, as_arg(1));
    explore_thread("producer 2", put_waiting, as_arg(2));
    explore_thread("closer", close_discard, NULL);
}

static void discard_verbs_setup(void)
{
    open_without_proxies(0);
    lab_put(0, 0, 0, 0);
    lab_put(1, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("taker", act_take_now, NULL);
    explore_thread("canceller", act_cancel, as_arg(1));
    explore_thread("mover", act_move_later, as_arg(1));
    explore_thread("closer", close_discard, NULL);
}

/* ---- Free at once ---- */

/* Who is to be in the queue when it is closed and, in effect, freed. */
struct guests {
    uint32_t word; /* slept on meanwhile */
    unsigned jobs; /* wait for a job */
    bool room;     /* one waits for room */
    bool closer;   /* one closes, too, and may still be there */
};

static bool all_there(const struct guests *g)
{
    unsigned n = 0;

    for (const struct due__waiter *w = lab->q->all; w != NULL; w = w->all_next)
        n++;
    return n == g->jobs && (lab->q->capacity_line.first != NULL) == g->room &&
           (lab->q->closers.first != NULL) == g->closer;
}

static void close_and_free(void *arg)
{
    const struct guests *g = arg;

    due__futex_wait(&g->word, 0, LAB_AT(DUE_MS(1)), false);
    bool there = all_there(g); /* if time stood still until nobody else could go on */
    if (lab_close(DUE_CLOSE_DISCARD, DUE_FOREVER) != 0 || !there)
        return;
    bool any = due__inside_any(lab->q);
    explore_check(!any || g->closer, "closed, and somebody is inside");
    struct due_stats s = { .lent = 1 };
    if (!any && due_stats_read(lab->q, &s) == 0 && s.lent == 0)
        explore_gone(lab->q, sizeof *lab->q);
}

static void free_when(struct guests guests)
{
    struct guests *g = explore_new(sizeof *g);

    *g = guests;
    explore_thread("closer", close_and_free, g);
}

static void free_parked_setup(void)
{
    open_without_proxies(1);
    lab_put(0, 0, LAB_AT(DUE_S(10000)), 0);
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("producer", put_waiting, as_arg(1));
    free_when((struct guests){ .jobs = 1, .room = true });
}

static void free_parked_two_setup(void)
{
    open_without_proxies(0);
    explore_thread("consumer 1", act_take_one, NULL);
    explore_thread("consumer 2", act_take_one, NULL);
    free_when((struct guests){ .jobs = 2 });
}

/* Another one closes too: if he has not come back yet, it is not freed. */
static void free_closers_setup(void)
{
    open_without_proxies(0);
    lab_put(0, 0, LAB_AT(DUE_S(10000)), 0);
    explore_thread("drainer", close_drain, NULL);
    free_when((struct guests){ .closer = true });
}

/* ---- Drain ---- */

static void drain_push_setup(void)
{
    open_without_proxies(0);
    explore_thread("producer 0", act_put_now, as_arg(0));
    explore_thread("producer 1", act_put_now, as_arg(1));
    explore_thread("consumer", take_until_closed, NULL);
    explore_thread("closer", close_drain, NULL);
}

static void drain_delayed_setup(void)
{
    open_without_proxies(0);
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    lab_put(1, 0, LAB_AT(DUE_MS(2)), 0);
    explore_thread("consumer 1", take_until_closed, NULL);
    explore_thread("consumer 2", take_until_closed, NULL);
    explore_thread("closer", close_drain, NULL);
}

/* One takes what is there while another is about to put in: he was not refused yet. */
static void drain_early_setup(void)
{
    open_without_proxies(0);
    lab_put(0, 0, 0, 0);
    explore_thread("taker", act_take_now, NULL);
    explore_thread("producer", act_put_now, as_arg(1));
    explore_thread("closer", close_patiently, NULL);
}

/* Nobody takes the last job: it is cancelled, or taken by somebody who does not wait. */
static void drain_last_setup(void)
{
    open_without_proxies(0);
    lab_put(0, 0, 0, 0);
    lab_put(1, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("taker", act_take_one, NULL);
    explore_thread("canceller", act_cancel, as_arg(1));
    explore_thread("closer", close_drain, NULL);
}

static void drain_blocked_setup(void)
{
    open_without_proxies(1);
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("producer", put_waiting, as_arg(1));
    explore_thread("consumer", take_until_closed, NULL);
    explore_thread("closer", close_drain, NULL);
}

static void close_two_setup(void)
{
    open_without_proxies(0);
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    explore_thread("consumer", take_until_closed, NULL);
    explore_thread("drainer", close_drain, NULL);
    explore_thread("closer", close_discard, NULL);
}

static void close_again_setup(void)
{
    open_without_proxies(0);
    lab_put(0, 0, LAB_AT(DUE_MS(5)), 0);
    explore_thread("consumer", take_until_closed, NULL);
    explore_thread("producer", act_put_now, as_arg(1));
    explore_thread("closer", close_patiently, NULL);
}

/* The proxies end, whatever they are doing. */
static void close_adaptive_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_ADAPTIVE });
    explore_thread("caller", act_call_proxy, NULL);
    explore_thread("producer", act_put_now, as_arg(0));
    explore_thread("closer", close_discard, NULL);
}

/* ---- Room ---- */

static void room_setup(void)
{
    open_without_proxies(1);
    lab_put(0, 0, 0, 0);
    explore_thread("producer 1", put_waiting, as_arg(1));
    explore_thread("consumer", act_take_two, NULL);
}

static void room_two_setup(void)
{
    open_without_proxies(1);
    lab_put(0, 0, 0, 0);
    explore_thread("producer 1", put_waiting, as_arg(1));
    explore_thread("producer 2", put_waiting, as_arg(2));
    explore_thread("consumer", act_take_two, NULL);
}

/* Whoever is called for room when his time is up leaves it to the next. */
static void room_within_setup(void)
{
    open_without_proxies(1);
    explore_instant(LAB_AT(DUE_MS(1)));
    lab_put(0, 0, LAB_AT(DUE_MS(5)), 0);
    explore_thread("impatient", put_within, as_arg(1));
    explore_thread("patient", put_within_long, as_arg(2));
    explore_thread("canceller", act_cancel, as_arg(0));
}

/* Two places become free at once. */
static void take_both_and_two(void *arg)
{
    lab_take_batch(2, DUE_FOREVER);
    act_take_two(arg);
}

static void room_batch_setup(void)
{
    open_without_proxies(2);
    lab_put(0, 0, 0, 0);
    lab_put(1, 0, 0, 0);
    explore_thread("producer 2", put_waiting, as_arg(2));
    explore_thread("producer 3", put_waiting, as_arg(3));
    explore_thread("consumer", take_both_and_two, NULL);
}

const struct explore_scenario explore_scenarios_closing[] = {
    LAB("discard_push", "N: close against two producers", discard_push_setup, (2, 0, 0, 0),
        (4, 2, 0, 0), 2),
    LAB("discard_push_one", "N: close against one producer", discard_push_one_setup, (2, 1, 0, 0),
        (5, 2, 0, 0), 2),
    LAB("discard_parked", "N: close against two who wait", discard_parked_setup, (1, 0, 0, 0),
        (3, 1, 1, 0), 2),
    LAB("discard_passing", "N: close against one who does not wait", discard_passing_setup,
        (2, 1, 0, 0), (4, 2, 1, 0), 2),
    LAB("discard_blocked", "N: close against two who wait for room", discard_blocked_setup,
        (1, 0, 0, 0), (3, 1, 1, 0), 2),
    LAB("discard_verbs", "N: close against take, cancel, reschedule", discard_verbs_setup,
        (1, 1, 0, 0), (3, 1, 0, 0), 2),
    LAB("free_parked", "N: closed and freed, one waits for a job and one for room",
        free_parked_setup, (2, 0, 0, 0), (4, 1, 0, 0), 10),
    LAB("free_parked_two", "N: closed and freed, two wait for a job", free_parked_two_setup,
        (2, 0, 0, 0), (4, 1, 0, 0), 10),
    LAB("free_closers", "N: two close, and free it", free_closers_setup, (2, 0, 0, 0), (4, 1, 0, 0),
        10),
    LAB("drain_push", "N: drain against two producers and one who waits", drain_push_setup,
        (1, 0, 0, 0), (3, 1, 0, 0), 20),
    LAB("drain_early", "N: drain against one who takes and one who puts in", drain_early_setup,
        (2, 0, 0, 0), (4, 1, 0, 0), 20),
    LAB("drain_delayed", "N: drain of delayed jobs, two wait", drain_delayed_setup, (1, 0, 1, 0),
        (3, 1, 1, 0), 20),
    LAB("drain_last", "N: drain, the last job is cancelled", drain_last_setup, (1, 0, 0, 0),
        (4, 1, 1, 0), 20),
    LAB("drain_blocked", "N: drain against one who waits for room", drain_blocked_setup,
        (1, 0, 1, 0), (3, 1, 1, 0), 20),
    LAB("close_two", "N: two close at once, each in its way", close_two_setup, (1, 0, 0, 0),
        (3, 1, 1, 0), 2),
    LAB("close_again", "N: close once more after its timeout", close_again_setup, (0, 0, 1, 0),
        (3, 1, 1, 0), 2),
    LAB("close_adaptive", "A: close while the enqueue proxy is called in", close_adaptive_setup,
        (1, 0, 0, 0), (3, 1, 0, 0), 5),
    LAB("room", "N: one waits for room", room_setup, (3, 1, 0, 0), (5, 2, 0, 0), 10),
    LAB("room_two", "N: two wait for room", room_two_setup, (1, 0, 0, 0), (3, 1, 0, 0), 20),
    LAB("room_within", "N: two wait for room, one not for long", room_within_setup, (2, 0, 1, 0),
        (3, 1, 1, 0), 20),
    LAB("room_batch", "N: two places become free at once", room_batch_setup, (1, 0, 0, 0),
        (3, 1, 0, 0), 20),
    { .name = NULL },
};
