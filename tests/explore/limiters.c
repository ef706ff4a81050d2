/* limiters.c - scenarios of a group of two jobs, and of a limited topic: the end of one lets the
 * other through.
 *
 * Never are both out at once; who waits gets the one that is let through; and in the end every pass
 * is back, or with a job that is still there.  Nor is a job overtaken that a closed queue leaves to
 * its store, to be tried again.
 */
#include "acts.h"
#include "os/atomic.h"
#include "shelf.h"
#include "lab/take.h"

#define LONG    DUE_FOREVER /* no lease ends here */
#define UNKNOWN 1           /* in answers: not asked */

/* Two jobs of one group: the first was let through, the second is kept back. */
struct door {
    due_queue *q;
    due_clock *clock; /* of a stored queue, and its store */
    struct shelf shelf;
    due_id id[2];
    due_job held; /* the first, if it was reserved in setup */
    int ended;    /* of the ack, nack, or first cancel */
    int cancel;   /* of the second job */
    int taken;    /* of another reserve */
    int limit;
    int closed;
    due_job got; /* what it got */
};

static struct door *door;

/* ---- Threads ---- */

static void ack(void *arg)
{
    due_job job = door->held;

    (void)arg;
    door->ended = due_ack(&job);
}

static void nack(void *arg)
{
    due_job job = door->held;

    (void)arg;
    door->ended = due_nack(&job, 0);
}

static void cancel_first(void *arg)
{
    (void)arg;
    door->ended = due_cancel(door->q, door->id[0], NULL);
}

static void cancel_second(void *arg)
{
    (void)arg;
    door->cancel = due_cancel(door->q, door->id[1], NULL);
}

static void reserve_waiting(void *arg)
{
    (void)arg;
    door->taken = take_leased(door->q, &door->got, LONG, DUE_FOREVER);
}

static void reserve_now(void *arg)
{
    (void)arg;
    door->taken = take_leased(door->q, &door->got, LONG, 0);
}

static void lift_limit(void *arg)
{
    (void)arg;
    door->limit = due_topic_limit(door->q, 0, 0);
}

static void close_now(void *arg)
{
    (void)arg;
    door->closed = due_close(door->q, DUE_CLOSE_DISCARD, DUE_FOREVER);
}

/* ---- Setup ---- */

static void make_door(void)
{
    door = explore_new(sizeof *door);
    door->ended = door->cancel = door->taken = door->limit = door->closed = UNKNOWN;
}

static void fill_door(bool group, bool reserved)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3,
                      .more = group ? EXTRA(.group = "g", .group_len = 1) : NULL };

    if (!group)
        explore_check(due_topic_limit(door->q, 0, 1) == 0, "limit");
    for (int i = 0; i < 2; i++)
        explore_check(due_enqueue(door->q, &spec, 0, &door->id[i]) == 0, "enqueue");
    explore_check(due_poll(door->q, NULL) == 1, "one is let through");
    if (reserved)
        explore_check(take_leased(door->q, &door->held, LONG, 0) == 0, "reserve");
}

static void open_door(bool group, bool reserved)
{
    due_options o = { DUE_OPTIONS_INIT, .allocator = &explore_allocator,
                      .proxies = DUE_PROXIES_NEVER, .reserve = 1 };

    make_door();
    explore_check(due_open(&door->q, &o, NULL) == 0, "open");
    fill_door(group, reserved);
}

static void open_stored_door(void)
{
    make_door();
    shelf_make(&door->shelf, 2);
    door->clock = due_clock_manual(EXPLORE_START_NS);
    due_options o = { DUE_OPTIONS_INIT, .allocator = &explore_allocator, .manual = door->clock,
                      .store = &door->shelf.head, .reserve = 1 };

    explore_check(due_open(&door->q, &o, NULL) == 0, "open");
    shelf_loaded(door->q);
    fill_door(false, true);
}

/* ---- What must hold ---- */

static void at_rest(void)
{
    explore_check(door->q->lock.word == 0, "everybody rests, and the lock is held");
    explore_check(door->q->limiters.first[DUE__LIMITERS_REOPENED] == NULL,
                  "everybody rests, and a limiter is reopened");
}

static void check_passes(void)
{
    explore_check(due__limiters_check(door->q), "passes, lists or counts");
}

/* The holder's job ends, and who waits gets the other. */
static void check_next(void)
{
    explore_check(door->ended == 0, "ack: %d", door->ended);
    explore_check(door->taken == 0, "who waited: %d", door->taken);
    explore_check(due_id_equal(door->got.id, door->id[1]), "the wrong one");
    check_passes();
}

/* It is given back: its group waits for it still. */
static void check_again(void)
{
    explore_check(door->ended == 0, "nack: %d", door->ended);
    explore_check(door->taken == 0, "who waited: %d", door->taken);
    explore_check(due_id_equal(door->got.id, door->id[0]), "it was overtaken");
    check_passes();
}

/* The end of the first lets the second through, or it was cancelled; then nothing is left. */
static void check_end_or_cancel(void)
{
    due_job job;
    struct due_stats s;

    explore_check(door->ended == 0, "ack: %d", door->ended);
    explore_check(door->cancel == 0, "cancel: %d", door->cancel);
    explore_check(take_leased(door->q, &job, LONG, 0) == DUE_EAGAIN, "it came again");
    check_passes();
    explore_check(due_stats_read(door->q, &s) == 0 && s.passed == 0 && s.waiting == 0,
                  "%llu passes", (unsigned long long)s.passed);
    explore_check(door->q->limiters.groups == 0, "a group is left");
}

/* The first is cancelled or taken; then the other is kept back as long as it is out. */
static void check_cancel_or_take(void)
{
    due_job job;

    explore_check(door->ended == 0 || door->ended == DUE_EBUSY, "cancel: %d", door->ended);
    if (door->ended == DUE_EBUSY)
        explore_check(door->taken == 0 && due_id_equal(door->got.id, door->id[0]), "who has it?");
    else if (door->taken == 0)
        explore_check(due_id_equal(door->got.id, door->id[1]), "it was cancelled");
    int rc = take_leased(door->q, &job, LONG, 0);
    explore_check(rc == (door->taken == 0 ? DUE_EAGAIN : 0), "another: %d", rc);
    check_passes();
}

/* Whatever the nack has answered, the holder's job is not done: nobody gets the other one. */
static void check_closed(void)
{
    explore_check(door->closed == 0, "close: %d", door->closed);
    explore_check(door->taken == 0 || door->taken == DUE_ECLOSED, "who waited: %d", door->taken);
    if (door->taken == 0)
        explore_check(due_id_equal(door->got.id, door->id[0]), "it was overtaken");
    for (int i = 0; i < 2; i++)
        explore_check(shelf_get(&door->shelf, door->id[i]) != NULL, "job %d is lost", i);
    check_passes();
}

static void check_lifted(void)
{
    explore_check(door->limit == 0 && door->ended == 0, "limit %d, ack %d", door->limit,
                  door->ended);
    explore_check(door->taken == 0, "who waited: %d", door->taken);
    check_passes();
}

/* ---- Scenarios ---- */

static void next_setup(void)
{
    open_door(true, true);
    explore_thread("holder", ack, NULL);
    explore_thread("other", reserve_waiting, NULL);
}

static void again_setup(void)
{
    open_door(true, true);
    explore_thread("holder", nack, NULL);
    explore_thread("other", reserve_waiting, NULL);
}

static void end_cancel_setup(void)
{
    open_door(true, true);
    explore_thread("holder", ack, NULL);
    explore_thread("canceller", cancel_second, NULL);
}

static void cancel_take_setup(void)
{
    open_door(true, false);
    explore_thread("canceller", cancel_first, NULL);
    explore_thread("taker", reserve_now, NULL);
}

static void lift_setup(void)
{
    open_door(false, true);
    explore_thread("lifter", lift_limit, NULL);
    explore_thread("holder", ack, NULL);
    explore_thread("other", reserve_waiting, NULL);
}

static void close_setup(void)
{
    open_stored_door();
    explore_thread("holder", nack, NULL);
    explore_thread("other", reserve_waiting, NULL);
    explore_thread("closer", close_now, NULL);
}

#define GATES(name_, about_, setup_, check_, quick_, deep_, walks_)                                \
    {                                                                                              \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = at_rest, .check = (check_), \
        .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, .walks = (walks_),           \
    }

const struct explore_scenario explore_scenarios_limiters[] = {
    GATES("limiter_next", "an ack, and who waits for the next of its group", next_setup, check_next,
          (2, 0, 0, 0), (3, 1, 0, 0), 10),
    GATES("limiter_again", "a nack, and who waits: nobody overtakes", again_setup, check_again,
          (2, 0, 0, 0), (3, 1, 0, 0), 10),
    GATES("limiter_end_cancel", "an ack, and a cancel of the next of its group", end_cancel_setup,
          check_end_or_cancel, (3, 1, 0, 0), (4, 1, 0, 0), 10),
    GATES("limiter_cancel_take", "a cancel of what was let through, and its taker",
          cancel_take_setup, check_cancel_or_take, (3, 0, 0, 0), (4, 1, 0, 0), 10),
    GATES("limiter_lift", "a limit is lifted while its job ends", lift_setup, check_lifted,
          (2, 0, 0, 0), (3, 0, 0, 0), 10),
    GATES("limiter_close", "a nack while a stored queue closes: nobody overtakes", close_setup,
          check_closed, (1, 0, 0, 0), (2, 0, 0, 0), 10),
    { .name = NULL },
};
