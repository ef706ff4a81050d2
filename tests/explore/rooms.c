/* rooms.c - scenarios over single rooms: lock, bell, alarm, inbox, window, a manual clock. */
#include <stdlib.h>
#include <time.h>

#include "os/atomic.h"
#include "os/bell.h"
#include "os/clock.h"
#include "explore.h"
#include "mem/inbox.h"
#include "os/lock.h"
#include "queue/ready_line.h"

/* ---- lock: one holder at a time, nobody sleeps for ever ---- */

struct lock_lab {
    struct due__lock lock;
    unsigned holders; /* plain: written by holders only */
    unsigned tenures;
};
static struct lock_lab *lock_lab;

static void lock_hold(void)
{
    explore_check(lock_lab->holders == 0, "somebody else is inside");
    lock_lab->holders++;
    lock_lab->tenures++;
    lock_lab->holders--;
    due__lock_release(&lock_lab->lock);
}

static void lock_twice(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) {
        due__lock_acquire(&lock_lab->lock);
        lock_hold();
    }
}

static void lock_try_once(void *arg)
{
    (void)arg;
    if (due__lock_try(&lock_lab->lock))
        lock_hold();
}

static void lock_setup(void)
{
    lock_lab = explore_new(sizeof *lock_lab);
    due__lock_init(&lock_lab->lock);
    explore_thread("first", lock_twice, NULL);
    explore_thread("second", lock_twice, NULL);
    explore_thread("trying", lock_try_once, NULL);
}

static void lock_check(void)
{
    explore_check(lock_lab->lock.word == 0, "it is still held");
    explore_check(lock_lab->tenures == 4 || lock_lab->tenures == 5, "%u", lock_lab->tenures);
}

/* ---- bell: what is said before a ring is seen after the wait; no ring is lost ---- */

struct bell_lab {
    struct due__bell bell;
    uint32_t said; /* atomic */
    unsigned timeouts;
};
static struct bell_lab *bell_lab;

static void bell_say(void *arg)
{
    (void)arg;
    due__add_relaxed(&bell_lab->said, 1);
    due__bell_ring(&bell_lab->bell);
}

static void bell_hear(void *arg)
{
    (void)arg;
    while (due__load_relaxed(&bell_lab->said) < 2)
        due__bell_wait(&bell_lab->bell, DUE_FOREVER, false);
}

static void bell_setup(void)
{
    bell_lab = explore_new(sizeof *bell_lab);
    explore_check(due__bell_init(&bell_lab->bell) == 0, "init");
    explore_thread("waiter", bell_hear, NULL);
    explore_thread("ringer 1", bell_say, NULL);
    explore_thread("ringer 2", bell_say, NULL);
}

/* A wait that times out leaves the ring it just missed to the next wait. */
static void bell_hear_timed(void *arg)
{
    int64_t until = explore_now() + DUE_MS(1);

    (void)arg;
    if (due__bell_wait(&bell_lab->bell, until, true)) {
        explore_check(due__load_relaxed(&bell_lab->said) == 1, "rung by nobody");
        return;
    }
    explore_check(explore_now() >= until, "too early");
    bell_lab->timeouts++;
    explore_check(due__bell_wait(&bell_lab->bell, DUE_FOREVER, false), "awake without a ring");
}

static void bell_timed_setup(void)
{
    bell_lab = explore_new(sizeof *bell_lab);
    explore_check(due__bell_init(&bell_lab->bell) == 0, "init");
    explore_thread("waiter", bell_hear_timed, NULL);
    explore_thread("ringer", bell_say, NULL);
}

/* ---- alarm: the same with a timer; the waiter's setting of it does not undo a ring ---- */

static void alarm_hear(void *arg)
{
    (void)arg;
    while (due__load_relaxed(&bell_lab->said) < 2)
        due__alarm_wait(&bell_lab->bell, DUE_FOREVER, DUE_FOREVER);
}

static void alarm_setup(void)
{
    bell_lab = explore_new(sizeof *bell_lab);
    explore_check(due__alarm_init(&bell_lab->bell, CLOCK_REALTIME) == 0, "init");
    explore_thread("waiter", alarm_hear, NULL);
    explore_thread("ringer 1", bell_say, NULL);
    explore_thread("ringer 2", bell_say, NULL);
}

/* ---- inbox: what is put is taken once, each producer's in its order ---- */

#define NODES 4

struct inbox_lab {
    struct due__inbox inbox;
    struct due__lock lock;            /* of inbox_knock */
    struct cds_wfcq_node node[NODES]; /* 0 and 1 of the first producer, 2 and 3 of the second */
    bool taken[NODES];
};
static struct inbox_lab *inbox_lab;

static void inbox_put(void *arg)
{
    struct cds_wfcq_node *first = arg;

    due__inbox_put(&inbox_lab->inbox, first);
    due__inbox_put(&inbox_lab->inbox, first + 1);
}

static enum due__inbox_found inbox_take_found(void)
{
    struct cds_wfcq_node *node = NULL;
    enum due__inbox_found found = due__inbox_take(&inbox_lab->inbox, &node);

    if (found != DUE__INBOX_NODE)
        return found;
    size_t n = (size_t)(node - inbox_lab->node);
    explore_check(n < NODES, "no node of ours");
    explore_check(!inbox_lab->taken[n], "node %zu comes twice", n);
    explore_check(n % 2 == 0 || inbox_lab->taken[n - 1], "node %zu overtakes", n);
    inbox_lab->taken[n] = true;
    return found;
}

static bool inbox_take_one(void)
{
    return inbox_take_found() == DUE__INBOX_NODE;
}

static void inbox_take(void *arg)
{
    (void)arg;
    for (int i = 0; i < NODES + 2; i++)
        inbox_take_one();
}

static void inbox_setup(void)
{
    inbox_lab = explore_new(sizeof *inbox_lab);
    due__inbox_init(&inbox_lab->inbox);
    explore_thread("producer 1", inbox_put, &inbox_lab->node[0]);
    explore_thread("producer 2", inbox_put, &inbox_lab->node[2]);
    explore_thread("taker", inbox_take, NULL);
}

static void inbox_check(void)
{
    while (inbox_take_one())
        ;
    for (int i = 0; i < NODES; i++)
        explore_check(inbox_lab->taken[i], "node %d is lost", i);
}

/* The same, and each is said to be late: a producer whose node was not taken finds it so. */
static void inbox_put_late(void *arg)
{
    struct cds_wfcq_node *first = arg;
    size_t n = (size_t)(first - inbox_lab->node);

    for (size_t i = 0; i < 2; i++) {
        due__inbox_put(&inbox_lab->inbox, first + i);
        due__inbox_say_late(&inbox_lab->inbox);
        bool late = due__inbox_late(&inbox_lab->inbox);
        explore_check(late || inbox_lab->taken[n + i], "node %zu is there, and nothing is late",
                      n + i);
    }
}

static void inbox_drain(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        enum due__inbox_found found = DUE__INBOX_NODE;

        due__inbox_answer(&inbox_lab->inbox);
        while (found == DUE__INBOX_NODE)
            found = inbox_take_found();
        due__inbox_answered(&inbox_lab->inbox, found);
    }
}

static void inbox_late_setup(void)
{
    inbox_lab = explore_new(sizeof *inbox_lab);
    due__inbox_init(&inbox_lab->inbox);
    explore_thread("producer 1", inbox_put_late, &inbox_lab->node[0]);
    explore_thread("producer 2", inbox_put_late, &inbox_lab->node[2]);
    explore_thread("taker", inbox_drain, NULL);
}

/* Nothing is forgotten in it: whoever holds the lock drains it, and looks again when he leaves.  At
 * first somebody has knocked for what was taken already. */
static void inbox_hold(void)
{
    do {
        struct cds_wfcq_node *node = NULL;
        enum due__inbox_found found;

        due__inbox_answer(&inbox_lab->inbox);
        while ((found = due__inbox_take(&inbox_lab->inbox, &node)) == DUE__INBOX_NODE)
            inbox_lab->taken[node - inbox_lab->node] = true;
        due__inbox_answered(&inbox_lab->inbox, found);
        due__lock_release(&inbox_lab->lock);
    } while (due__inbox_knocked(&inbox_lab->inbox) && due__lock_try(&inbox_lab->lock));
}

static void inbox_put_and_try(void *arg)
{
    due__inbox_put(&inbox_lab->inbox, arg);
    if (due__lock_try(&inbox_lab->lock))
        inbox_hold();
}

static void inbox_lock_and_hold(void *arg)
{
    (void)arg;
    due__lock_acquire(&inbox_lab->lock);
    inbox_hold();
}

static void inbox_knock_setup(void)
{
    inbox_lab = explore_new(sizeof *inbox_lab);
    due__inbox_init(&inbox_lab->inbox);
    due__lock_init(&inbox_lab->lock);
    due__inbox_put(&inbox_lab->inbox, &inbox_lab->node[0]);
    explore_check(inbox_take_one(), "nothing to take");
    explore_thread("holder", inbox_lock_and_hold, NULL);
    explore_thread("producer 1", inbox_put_and_try, &inbox_lab->node[1]);
    explore_thread("producer 2", inbox_put_and_try, &inbox_lab->node[2]);
}

static void inbox_knock_check(void)
{
    for (int i = 0; i < 3; i++)
        explore_check(inbox_lab->taken[i], "node %d is forgotten", i);
}

/* ---- window: every slot is taken or recalled once, whole, in order ---- */

struct window_lab {
    struct due__window window;
    uint8_t had[2 * DUE__WINDOW_SLOTS]; /* by number: how often taken or recalled */
    uint32_t published;
};
static struct window_lab *window_lab;

static struct due__slot window_slot(uint32_t number)
{
    return due__slot_make((int64_t)number + 1, 0, number, number);
}

static void window_had(struct due__slot s)
{
    uint32_t n = due__slot_job(s);

    explore_check(n < 2 * DUE__WINDOW_SLOTS && due__slot_deadline(s) == (int64_t)n + 1,
                  "two slots mixed");
    explore_check(window_lab->had[n]++ == 0, "slot %u twice", n);
}

static void window_show(uint32_t n)
{
    struct due__slot next[DUE__WINDOW_SLOTS];

    for (uint32_t i = 0; i < n; i++)
        next[i] = window_slot(window_lab->published++);
    due__window_publish(&window_lab->window, next, n);
}

static void window_take(void *arg)
{
    struct due__slot slots[2];

    (void)arg;
    for (int i = 0; i < 2; i++) {
        uint32_t n = due__window_take(&window_lab->window, slots, 2);

        for (uint32_t k = 0; k < n; k++)
            window_had(slots[k]);
        explore_check(n < 2 || due__slot_before(slots[0], slots[1]), "out of order");
    }
}

static void window_holder(void *arg)
{
    struct due__slot back[DUE__WINDOW_SLOTS];

    (void)arg;
    if (due__window_count(&window_lab->window) < DUE__WINDOW_SLOTS - 1)
        window_show(2);
    uint32_t n = due__window_recall(&window_lab->window, back);
    for (uint32_t i = 0; i < n; i++) {
        explore_check(i == 0 || due__slot_before(back[i - 1], back[i]), "recalled out of order");
        window_had(back[i]);
    }
    window_show(1);
}

static void window_open(uint32_t shown)
{
    window_lab = explore_new(sizeof *window_lab);
    window_show(shown);
    explore_thread("taker 1", window_take, NULL);
    explore_thread("taker 2", window_take, NULL);
    explore_thread("holder", window_holder, NULL);
}

static void window_setup(void)
{
    window_open(2);
}

static void window_full_setup(void)
{
    window_open(DUE__WINDOW_SLOTS);
}

static void window_check(void)
{
    struct due__slot left[DUE__WINDOW_SLOTS];
    uint32_t n = due__window_take(&window_lab->window, left, DUE__WINDOW_SLOTS);

    for (uint32_t i = 0; i < n; i++)
        window_had(left[i]);
    for (uint32_t i = 0; i < window_lab->published; i++)
        explore_check(window_lab->had[i] == 1, "slot %u is lost", i);
}

/* ---- A clock turned by hand ---- */

struct listeners {
    due_clock *clock;
    struct due__bell bell;
    struct due__listener leaving; /* by its own thread */
    struct due__listener staying;
    uint32_t gone; /* A  nothing may look at @leaving any more */
    uint32_t told; /* A  calls of @staying */
};
static struct listeners *listeners;

static void leaving_turned(void *arg)
{
    struct listeners *l = arg;

    explore_check(due__load_seq(&l->gone) == 0, "called after it has left");
    due__relax();
    explore_check(due__load_seq(&l->gone) == 0, "it left in the middle of a call");
}

static void staying_turned(void *arg)
{
    struct listeners *l = arg;

    due__add_seq(&l->told, 1);
}

static void listeners_turn(void *arg)
{
    (void)arg;
    explore_check(due_clock_advance(listeners->clock, 1) == 0, "advance");
}

static void listeners_leave(void *arg)
{
    (void)arg;
    due__clock_leave(listeners->clock, &listeners->leaving, &listeners->bell);
    due__xchg_seq(&listeners->gone, 1);
}

static void listeners_setup(void)
{
    listeners = explore_new(sizeof *listeners);
    listeners->clock = due_clock_manual(EXPLORE_START_NS);
    if (listeners->clock == NULL || due__bell_init(&listeners->bell) != 0)
        abort();
    listeners->leaving = (struct due__listener){ .turned = leaving_turned, .arg = listeners };
    listeners->staying = (struct due__listener){ .turned = staying_turned, .arg = listeners };
    due__listener_hear(&listeners->leaving);
    due__listener_hear(&listeners->staying);
    due__clock_join(listeners->clock, &listeners->staying);
    due__clock_join(listeners->clock, &listeners->leaving);
    explore_thread("turner 1", listeners_turn, NULL);
    explore_thread("turner 2", listeners_turn, NULL);
    explore_thread("leaver", listeners_leave, NULL);
}

static void listeners_check(void)
{
    explore_check(listeners->told == 2, "%u calls of who stays", listeners->told);
    explore_check(due_clock_now(listeners->clock) == EXPLORE_START_NS + 2, "a turn is lost");
}

#define ROOM(name_, about_, setup_, check_, quick_, deep_)                        \
    {                                                                             \
        .name = (name_), .about = (about_), .setup = (setup_), .check = (check_), \
        .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_              \
    }

const struct explore_scenario explore_scenarios_rooms[] = {
    ROOM("lock", "two threads take it twice, one tries it", lock_setup, lock_check, (3, 1, 0, 1),
         (5, 2, 0, 2)),
    ROOM("bell", "two ring, one waits", bell_setup, NULL, (3, 1, 0, 1), (5, 2, 0, 2)),
    ROOM("bell_timed", "one rings, one waits with a limit and then without", bell_timed_setup, NULL,
         (4, 1, 1, 1), (6, 2, 2, 2)),
    ROOM("alarm", "two ring, one waits on a timer", alarm_setup, NULL, (3, 1, 0, 0), (5, 2, 0, 0)),
    ROOM("inbox", "two put two nodes each, one takes", inbox_setup, inbox_check, (3, 1, 0, 0),
         (4, 2, 0, 0)),
    ROOM("inbox_late", "the same, and all are late", inbox_late_setup, inbox_check, (2, 1, 0, 0),
         (4, 2, 0, 0)),
    ROOM("inbox_knock", "two put one each, whoever holds the lock takes", inbox_knock_setup,
         inbox_knock_check, (3, 1, 0, 0), (5, 2, 0, 0)),
    ROOM("window", "two take, the lock's holder shows and recalls", window_setup, window_check,
         (3, 1, 0, 0), (4, 2, 0, 0)),
    ROOM("window_full", "the same with every place in use", window_full_setup, window_check,
         (3, 1, 0, 0), (4, 2, 0, 0)),
    ROOM("listeners", "two turn a clock, one leaves it", listeners_setup, listeners_check,
         (3, 1, 0, 1), (5, 2, 0, 2)),
    { .name = NULL },
};
