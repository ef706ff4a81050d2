/* shared_room.c - scenarios of a shared queue that is full: who waits for room, and what rings.
 *
 * What was accepted is in the store, and never more than there is room for.  When everybody rests
 * nobody waits while there is room.
 */
#include "acts.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "shared_books.h"
#include "shared_shelf.h"
#include "store/share.h"

#define PATIENCE DUE_MS(5) /* with the store */
#define BRIEF    DUE_MS(2) /* of a producer that does not wait for long */

struct yard {
    due_queue *q;
    struct shared_shelf shelf;
    unsigned asked, put; /* producers that have been told, and those of them that got in */
    bool closing;
    unsigned between;
};

static struct yard *yard;

/* ---- Threads ---- */

static void produce(void *arg)
{
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(100) };
    due_id id;
    int rc = due_enqueue(yard->q, &spec, arg != NULL ? BRIEF : DUE_S(1), &id);

    explore_note("enqueue: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ETIMEDOUT || rc == DUE_ECLOSED || rc == DUE_EINDOUBT,
                  "enqueue answers %s", due_error_name(rc));
    yard->asked++;
    yard->put += rc == 0;
    if (rc == 0)
        explore_check(shared_get(&yard->shelf, id) != NULL, "it is not in the store");
}

/* Another process has done what it had to do with a job. */
static void end_elsewhere(void *arg)
{
    shared_end_elsewhere(&yard->shelf, arg != NULL ? 1 : 0);
}

static void end_both_elsewhere(void *arg)
{
    (void)arg;
    shared_end_elsewhere(&yard->shelf, 0);
    due__store_seq(&yard->between, 1); /* no edge: others may come between */
    shared_end_elsewhere(&yard->shelf, 1);
}

/* And another one is faster than we are. */
static void put_elsewhere(void *arg)
{
    (void)arg;
    (void)shared_put_if_room(&yard->shelf, 1);
}

static void close_now(void *arg)
{
    (void)arg;
    yard->closing = true;
    int rc = due_close(yard->q, DUE_CLOSE_DISCARD, DUE_FOREVER);
    explore_check(rc == 0, "close answers %s", due_error_name(rc));
}

/* ---- What must hold ---- */

static void room_idle(void)
{
    const struct due_queue *q = yard->q;

    shared_rest(q, &yard->shelf, false);
    explore_check(!(q->state & DUE__REFUSING) || q->capacity_line.first == NULL,
                  "nobody may put, and somebody waits for room");
    explore_check(yard->closing || q->capacity_line.first == NULL || shared_room(&yard->shelf) == 0,
                  "there is room, and somebody waits");
}

static void room_check(void)
{
    unsigned live = 0;

    shared_sums(yard->q);

    for (unsigned i = 0; i < SHARED_JOBS; i++)
        live += yard->shelf.job[i].state == SHARED_WAITS;
    explore_check(live <= yard->shelf.all->capacity, "%u jobs", live);
}

/* ---- Scenarios ---- */

static void open_yard(unsigned capacity)
{
    yard = explore_new(sizeof *yard);
    shared_make(&yard->shelf, NULL);
    yard->shelf.all->capacity = capacity;
    due_options o = {
        DUE_OPTIONS_INIT,    .allocator = &explore_allocator, .store = &yard->shelf.head,
        .share = DUE_SHARED, .store_timeout_ns = PATIENCE,    .reserve = 1
    };
    int rc = due_open(&yard->q, &o, NULL);
    explore_check(rc == 0, "open: %s", due_error_text(rc));
    for (unsigned i = 0; i < capacity; i++)
        shared_put(&yard->shelf, i, explore_now() + DUE_S(100));
}

/* The room comes before the producer stands in line, or before the store knows, or after. */
static void room_setup(void)
{
    open_yard(1);
    explore_thread("producer", produce, NULL);
    explore_thread("another process", end_elsewhere, NULL);
}

static void two_setup(void)
{
    open_yard(2);
    explore_thread("producer", produce, NULL);
    explore_thread("second", produce, NULL);
    explore_thread("another process", end_both_elsewhere, NULL);
}

/* One is called just when its time is up: the other has the room. */
static void brief_setup(void)
{
    open_yard(1);
    explore_instant(explore_now() + BRIEF);
    explore_thread("brief", produce, as_arg(1));
    explore_thread("patient", produce, NULL);
    explore_thread("another process", end_elsewhere, NULL);
}

static void stolen_setup(void)
{
    open_yard(1);
    explore_thread("producer", produce, NULL);
    explore_thread("another process", end_elsewhere, NULL);
    explore_thread("a thief", put_elsewhere, NULL);
    explore_thread("a third", end_elsewhere, as_arg(1));
}

static void close_setup(void)
{
    open_yard(1);
    explore_thread("producer", produce, NULL);
    explore_thread("closer", close_now, NULL);
    explore_thread("another process", end_elsewhere, NULL);
}

#define ROOM(name_, about_, setup_, quick_, deep_, walks_)                                 \
    {                                                                                      \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = room_idle,          \
        .check = room_check, .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, \
        .walks = (walks_),                                                                 \
    }

const struct explore_scenario explore_scenarios_shared_room[] = {
    ROOM("shared_room", "room comes while somebody goes to sleep for it", room_setup, (2, 0, 0, 0),
         (3, 1, 0, 0), 1),
    ROOM("shared_room_two", "two wait, and room comes twice", two_setup, (1, 0, 0, 0), (2, 0, 0, 0),
         1),
    ROOM("shared_room_brief", "the time of one who waits is up as it is called", brief_setup,
         (0, 0, 1, 0), (1, 0, 1, 0), 1),
    ROOM("shared_room_stolen", "another process is faster", stolen_setup, (1, 0, 0, 0),
         (2, 1, 0, 0), 1),
    ROOM("shared_room_close", "the queue closes while somebody waits for room", close_setup,
         (0, 0, 0, 0), (2, 0, 0, 0), 1),
    { .name = NULL },
};
