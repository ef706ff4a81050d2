/* stored.c - scenarios of the commit protocol: a stored queue on a store of a few words.
 *
 * What a call answered must agree with what landed, whoever sent it; and when everybody rests,
 * nothing is left to be sent.
 */
#include <string.h>

#include "acts.h"
#include "os/atomic.h"
#include "shelf.h"
#include "store/sender.h"

#define PUTS 3u

struct shop {
    due_queue *q;
    due_clock *clock;
    struct shelf shelf;
    due_id id[PUTS];
    int put[PUTS];  /* what its enqueue answered */
    int gone[PUTS]; /* what its cancel answered; 1: not asked */
    int held[2];    /* what resuming, and pausing, its topic answered; 1: not asked */
    bool stored;    /* it could be stored when the pause came back */
    bool closed;
    bool async; /* a call does not wait until it is confirmed */
    int taken;  /* what a dequeue answered */
};

static struct shop *shop;
static uint64_t taken_late[3]; /* executions in which a taker has the job, is in doubt, has not */

/* ---- Threads ---- */

/* The clock may go faster than any caller. */
static bool late(int rc)
{
    return rc == DUE_ETIMEDOUT || rc == DUE_EINDOUBT;
}

static void put(void *arg)
{
    unsigned n = (unsigned)(uintptr_t)arg;
    due_spec spec = { DUE_SPEC_INIT, .data = "x", .len = 1, .at_ns = DUE_S(5000) };

    shop->put[n] = due_enqueue(shop->q, &spec, 0, &shop->id[n]);
    explore_note("put %u: %s", n, due_error_name(shop->put[n]));
    bool fenced = shop->shelf.fenced && shop->put[n] == DUE_EFENCED;
    explore_check(shop->put[n] == 0 || late(shop->put[n]) || shop->put[n] == DUE_ECLOSED || fenced,
                  "put answers %s", due_error_name(shop->put[n]));
}

/* The first two in one call, of which the first ones are in. */
static void put_two(void *arg)
{
    due_spec spec[2];
    due_id none = shop->id[0];

    (void)arg;
    for (unsigned i = 0; i < 2; i++)
        spec[i] = (due_spec){ DUE_SPEC_INIT, .data = "x", .len = 1, .at_ns = DUE_S(5000) };
    int rc = due_enqueue_batch(shop->q, spec, 2, 0, shop->id);
    explore_note("put two: %d", rc);
    explore_check(rc > 0 || late(rc), "put answers %s", due_error_name(rc));
    for (int i = 0; i < 2; i++)
        shop->put[i] = i < rc ? 0 : due_id_equal(shop->id[i], none) ? DUE_ETIMEDOUT : DUE_EINDOUBT;
}

static void cancel(void *arg)
{
    unsigned n = (unsigned)(uintptr_t)arg;

    shop->gone[n] = due_cancel(shop->q, shop->id[n], NULL);
    explore_note("cancel %u: %s", n, due_error_name(shop->gone[n]));
    explore_check(shop->gone[n] == 0 || late(shop->gone[n]), "cancel answers %s",
                  due_error_name(shop->gone[n]));
}

static void flush(void *arg)
{
    (void)arg;
    int rc = due_flush(shop->q, DUE_S(1));
    explore_check(rc == 0 || rc == DUE_ETIMEDOUT || rc == DUE_ECLOSED, "flush answers %s",
                  due_error_name(rc));
}

/* The topic is paused (1), or resumed. */
static void hold(void *arg)
{
    bool pauses = (uintptr_t)arg == 1;
    int rc = pauses ? due_pause(shop->q, 0) : due_resume(shop->q, 0);

    explore_note("%s: %s", pauses ? "pause" : "resume", due_error_name(rc));
    explore_check(rc == 0 || late(rc) || rc == DUE_ECLOSED, "it answers %s", due_error_name(rc));
    shop->held[pauses] = rc;
    shop->stored = shop->q->commits->stopped == 0; /* no step */
}

static void close_now(void *arg)
{
    (void)arg;
    explore_note("close");
    int rc = due_close(shop->q, DUE_CLOSE_DISCARD, DUE_FOREVER);
    explore_check(rc == 0, "close answers %s", due_error_name(rc));
    shop->closed = true;
}

/* A job that is due, for good, in so many ms, or (0) however long it takes. */
static void take(void *arg)
{
    int64_t ms = (int64_t)(uintptr_t)arg;
    due_job job = { .queue = NULL };

    shop->taken = due_dequeue(shop->q, &job, ms > 0 ? DUE_MS(ms) : DUE_FOREVER);
    explore_note("take: %s", due_error_name(shop->taken));
    if (shop->taken == 0)
        due_job_done(&job);
    explore_check(shop->taken != DUE_EINDOUBT || due_id_equal(job.id, shop->id[0]),
                  "another job is in doubt");
}

/* Another program owns the jobs from now on, and this one hears of it. */
static void take_over(void *arg)
{
    (void)arg;
    shop->shelf.fenced = true;
    int rc = due_flush(shop->q, DUE_S(1));
    explore_note("flush: %s", due_error_name(rc));
}

/* ---- What must hold ---- */

static void stored_idle(void)
{
    shelf_at_rest(shop->q);
}

/* The queue and the store agree, and both do as the calls were told. */
static void check_held(void)
{
    bool paused = due__topic_at(shop->q, 0)->paused;
    bool there = shop->shelf.paused;
    int rc = shop->held[true];

    if (!shop->closed)
        explore_check(paused == there, "paused: %d, and there %d", paused, there);
    if (rc == 0 && shop->held[false] == 1 && shop->stored)
        explore_check(there, "a pause that was confirmed is lost");
    if (rc == DUE_ETIMEDOUT || rc == DUE_ECLOSED)
        explore_check(!there, "a pause that was refused has been stored");
}

static void stored_check(void)
{
    struct due_stats s;

    if (!shop->closed) {
        shelf_mend(&shop->shelf);
        explore_check(due_flush(shop->q, DUE_S(1)) == 0, "it cannot be flushed");
        due__commit_work(shop->q, NULL, DUE_FOREVER); /* what nobody waits for any more */
    }
    check_held();
    explore_check(due_stats_read(shop->q, &s) == 0, "stats");
    uint64_t waiting = 0;
    for (unsigned i = 0; i < PUTS; i++) {
        bool there = shelf_get(&shop->shelf, shop->id[i]) != NULL;
        bool removed = shop->gone[i] == 0 || shop->gone[i] == DUE_EINDOUBT;

        if (shop->put[i] == 0 && !removed)
            explore_check(there || (s.discarded > 0 && shop->closed && shop->async),
                          "job %u is lost", i);
        if (shop->put[i] == 0 && removed && !shop->closed)
            explore_check(!there, "job %u was cancelled, and is there", i);
        if (shop->put[i] == DUE_ETIMEDOUT || shop->put[i] == DUE_ECLOSED)
            explore_check(!there, "job %u was refused, and is there", i);
        waiting += there;
    }
    explore_check(shelf_count(&shop->shelf) == waiting, "a job is there whose enqueue was refused");
    explore_check(s.unsettled_bytes == 0, "%llu bytes are on no way",
                  (unsigned long long)s.unsettled_bytes);
    explore_check(s.waiting == (shop->closed ? 0 : waiting), "%llu wait, not %llu",
                  (unsigned long long)s.waiting, (unsigned long long)waiting);
    explore_check(s.enqueued == s.waiting + s.cancelled + s.discarded + s.kept,
                  "the stats do not add up");
}

/* Of those that were left in time nothing is there, and nothing waits. */
static void fenced_check(void)
{
    struct due_stats s;

    explore_check(due_stats_read(shop->q, &s) == 0, "stats");
    explore_check(s.waiting == 0 && s.unsettled == 0 && s.unsettled_bytes == 0,
                  "%llu wait, and nobody will have them", (unsigned long long)s.waiting);
    for (unsigned i = 0; i < SHELF_JOBS; i++)
        explore_check(!shop->shelf.job[i].there, "job %u is there", i);
}

/* What has left the store came to the caller, or he was told which it may be. */
static void taken_check(void)
{
    bool there = shelf_get(&shop->shelf, shop->id[0]) != NULL;
    int rc = shop->taken;

    explore_check(rc == 0 || rc == DUE_EINDOUBT || rc == DUE_EFENCED, "it answers %s",
                  due_error_name(rc));
    explore_check(there || rc != DUE_EFENCED, "it has left, and nobody was told");
    explore_check(!there || rc != 0, "it was handed out, and is there");
}

/* The same of one whose time may be up: any other answer says that it has stayed there. */
static void taken_late_check(void)
{
    int rc = shop->taken;

    explore_check(rc == 0 || rc == DUE_EINDOUBT || rc == DUE_ESTORE, "it answers %s",
                  due_error_name(rc));
    explore_check(shop->shelf.dropped == 0 || rc != DUE_ESTORE, "it has left, and nobody was told");
    taken_late[rc == 0 ? 0 : rc == DUE_EINDOUBT ? 1 : 2]++;
}

static const char *taken_late_missed(void)
{
    return taken_late[0] == 0   ? "the job is never handed out"
           : taken_late[1] == 0 ? "it is never in doubt"
           : taken_late[2] == 0 ? "time is never up before it was sent"
                                : NULL;
}

/* ---- Scenarios ---- */

static void open_shop(enum due_confirm confirm)
{
    shop = explore_new(sizeof *shop);
    shop->async = confirm == DUE_CONFIRM_ASYNC;
    shelf_make(&shop->shelf, 2);
    shop->clock = due_clock_manual(DUE_S(1));
    due_options o = { DUE_OPTIONS_INIT,      .allocator = &explore_allocator,
                      .manual = shop->clock, .store = &shop->shelf.head,
                      .confirm = confirm,    .store_timeout_ns = DUE_MS(1),
                      .reserve = 1 };
    int rc = due_open(&shop->q, &o, NULL);
    explore_check(rc == 0, "open: %s", due_error_text(rc));
    for (unsigned i = 0; i < PUTS; i++) {
        shop->put[i] = DUE_EINVAL;
        shop->gone[i] = 1;
    }
    shop->held[false] = shop->held[true] = 1;
    shelf_loaded(shop->q);
}

/* There is room for the bytes of one job at a time. */
static void open_narrow_shop(enum due_confirm confirm)
{
    open_shop(confirm);
    shop->q->commits->unsettled_bytes_max = shop->shelf.room = 1;
}

static void submit_setup(void)
{
    open_shop(DUE_CONFIRM_SYNC);
    explore_thread("caller 0", put, as_arg(0));
    explore_thread("caller 1", put, as_arg(1));
}

static void async_setup(void)
{
    open_shop(DUE_CONFIRM_ASYNC);
    explore_thread("caller 0", put, as_arg(0));
    explore_thread("flusher", flush, NULL);
}

static void late_setup(void)
{
    open_shop(DUE_CONFIRM_SYNC);
    shop->shelf.away = 2;
    explore_thread("caller 0", put, as_arg(0));
    explore_thread("caller 1", put, as_arg(1));
}

static void late_batch_setup(void)
{
    open_shop(DUE_CONFIRM_SYNC);
    shop->shelf.away = 2;
    explore_thread("caller of two", put_two, NULL);
    explore_thread("caller 2", put, as_arg(2));
}

static void doubt_setup(void)
{
    open_shop(DUE_CONFIRM_SYNC);
    shop->shelf.doubt = 1;
    explore_thread("caller 0", put, as_arg(0));
    explore_thread("caller 1", put, as_arg(1));
}

static void close_setup(void)
{
    open_shop(DUE_CONFIRM_SYNC);
    explore_thread("caller 0", put, as_arg(0));
    explore_thread("closer", close_now, NULL);
}

static void close_async_setup(void)
{
    open_shop(DUE_CONFIRM_ASYNC);
    explore_thread("caller 0", put, as_arg(0));
    explore_thread("closer", close_now, NULL);
}

static void fenced_setup(void)
{
    open_shop(DUE_CONFIRM_ASYNC);
    shop->shelf.fenced = true;
    explore_thread("caller 0", put, as_arg(0));
    explore_thread("caller 1", put, as_arg(1));
}

/* A job is due, and confirmed. */
static void open_due_shop(void)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = DUE_S(1) };

    open_shop(DUE_CONFIRM_SYNC);
    shop->put[0] = due_enqueue(shop->q, &spec, 0, &shop->id[0]);
    explore_check(shop->put[0] == 0, "put: %s", due_error_name(shop->put[0]));
}

/* The removal is in doubt when another program comes to own the jobs. */
static void fenced_taken_setup(void)
{
    open_due_shop();
    shop->shelf.doubt = 1;
    explore_thread("taker", take, as_arg(0));
    explore_thread("intruder", take_over, NULL);
}

/* Time may be up when the removal, which another caller has sent, lands. */
static void taken_late_setup(void)
{
    open_due_shop();
    memset(taken_late, 0, sizeof taken_late);
    explore_thread("taker", take, as_arg(1));
    explore_thread("caller 1", put, as_arg(1));
}

/* The PUT of the job waits in the inbox when it begins. */
static void cancel_setup(void)
{
    open_shop(DUE_CONFIRM_ASYNC);
    put(as_arg(0));
    explore_thread("canceller", cancel, as_arg(0));
    explore_thread("flusher", flush, NULL);
}

/* The same of one that was confirmed: its DROP may be under way when time is up. */
static void cancel_late_setup(void)
{
    open_shop(DUE_CONFIRM_SYNC);
    put(as_arg(0));
    shop->shelf.doubt = 1;
    explore_thread("canceller", cancel, as_arg(0));
    explore_thread("caller 1", put, as_arg(1));
}

static void room_setup(void)
{
    open_narrow_shop(DUE_CONFIRM_ASYNC);
    explore_thread("caller 0", put, as_arg(0));
    explore_thread("caller 1", put, as_arg(1));
}

/* The store is away at first: who waits gives up, or the other does. */
static void room_late_setup(void)
{
    open_narrow_shop(DUE_CONFIRM_SYNC);
    shop->shelf.away = 2;
    explore_thread("caller 0", put, as_arg(0));
    explore_thread("caller 1", put, as_arg(1));
}

/* The room that is had by what waits in the inbox, and is cancelled. */
static void room_cancel_setup(void)
{
    open_narrow_shop(DUE_CONFIRM_ASYNC);
    shop->shelf.away = 2;
    put(as_arg(0));
    explore_thread("canceller", cancel, as_arg(0));
    explore_thread("caller 1", put, as_arg(1));
}

static void room_close_setup(void)
{
    open_narrow_shop(DUE_CONFIRM_ASYNC);
    shop->shelf.away = 2;
    put(as_arg(0));
    explore_thread("caller 1", put, as_arg(1));
    explore_thread("closer", close_now, NULL);
}

/* Two callers, and what each does while the other's batch is with the store. */
static void ahead_setup(void)
{
    submit_setup();
    shop->shelf.ahead = true;
}

static void ahead_doubt_setup(void)
{
    doubt_setup();
    shop->shelf.ahead = true;
}

static void ahead_async_setup(void)
{
    open_shop(DUE_CONFIRM_ASYNC);
    shop->shelf.ahead = true;
    explore_thread("caller 0", put, as_arg(0));
    explore_thread("caller 1", put, as_arg(1));
    explore_thread("flusher", flush, NULL);
}

static void ahead_cancel_setup(void)
{
    open_shop(DUE_CONFIRM_SYNC);
    put(as_arg(0));
    shop->shelf.ahead = true;
    explore_thread("canceller", cancel, as_arg(0));
    explore_thread("caller 1", put, as_arg(1));
}

/* The answer to what was sent is not heard before the queue closes. */
static void ahead_close_setup(void)
{
    close_setup();
    shop->shelf.ahead = true;
    shop->shelf.deaf = 2;
}

/* What holds back a topic stands in another line than the jobs. */
static void pause_setup(void)
{
    open_shop(DUE_CONFIRM_SYNC);
    explore_thread("caller 0", put, as_arg(0));
    explore_thread("pauser", hold, as_arg(1));
}

static void pause_two_setup(void)
{
    open_shop(DUE_CONFIRM_SYNC);
    explore_thread("pauser", hold, as_arg(1));
    explore_thread("resumer", hold, as_arg(0));
}

static void pause_ahead_setup(void)
{
    pause_setup();
    shop->shelf.ahead = true;
}

static void pause_doubt_setup(void)
{
    pause_setup();
    shop->shelf.doubt = 1;
}

static void pause_late_setup(void)
{
    pause_two_setup();
    shop->shelf.away = 2;
}

static void pause_close_setup(void)
{
    open_shop(DUE_CONFIRM_SYNC);
    explore_thread("pauser", hold, as_arg(1));
    explore_thread("closer", close_now, NULL);
}

#define STORED(name_, about_, setup_, quick_, deep_, walks_)                                 \
    {                                                                                        \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = stored_idle,          \
        .check = stored_check, .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, \
        .walks = (walks_),                                                                   \
    }

const struct explore_scenario explore_scenarios_stored[] = {
    STORED("stored_submit", "two callers send for themselves", submit_setup, (2, 0, 0, 0),
           (3, 1, 0, 0), 10),
    STORED("stored_async", "nobody waits but a flush", async_setup, (2, 0, 0, 0), (3, 1, 0, 0), 10),
    STORED("stored_late", "time is up while the store is away", late_setup, (1, 0, 1, 0),
           (2, 1, 1, 0), 10),
    STORED("stored_late_batch", "the same of a call of two jobs", late_batch_setup, (1, 0, 1, 0),
           (2, 1, 1, 0), 10),
    STORED("stored_doubt", "a batch in doubt", doubt_setup, (1, 0, 1, 0), (2, 1, 1, 0), 10),
    STORED("stored_close", "close and a caller who waits", close_setup, (1, 0, 0, 0), (2, 1, 1, 0),
           10),
    STORED("stored_close_async", "close and one who does not wait", close_async_setup, (1, 0, 0, 0),
           (2, 1, 0, 0), 10),
    { .name = "stored_fenced",
      .about = "nobody waits, and somebody else owns the jobs",
      .setup = fenced_setup,
      .idle = stored_idle,
      .check = fenced_check,
      .quick = EXPLORE_BOUNDS(2, 0, 0, 0),
      .deep = EXPLORE_BOUNDS(3, 1, 0, 0),
      .walks = 10 },
    { .name = "stored_fenced_taken",
      .about = "and a removal was in doubt, for which somebody waits",
      .setup = fenced_taken_setup,
      .check = taken_check,
      .quick = EXPLORE_BOUNDS(2, 0, 0, 0),
      .deep = EXPLORE_BOUNDS(3, 1, 0, 0),
      .walks = 10 },
    { .name = "stored_taken_late",
      .about = "a removal lands while its taker's time is up",
      .setup = taken_late_setup,
      .idle = stored_idle,
      .check = taken_late_check,
      .quick = EXPLORE_BOUNDS(2, 0, 1, 0),
      .deep = EXPLORE_BOUNDS(3, 1, 1, 0),
      .walks = 10,
      .missed = taken_late_missed },
    STORED("stored_cancel", "cancel and the PUT of its job", cancel_setup, (3, 0, 0, 0),
           (3, 1, 1, 0), 10),
    STORED("stored_cancel_late", "cancel, in doubt when time is up", cancel_late_setup,
           (1, 0, 1, 0), (2, 1, 1, 0), 10),
    STORED("stored_room", "room on the way for one job at a time", room_setup, (2, 0, 0, 0),
           (3, 1, 0, 0), 10),
    STORED("stored_room_late", "the same while the store is away", room_late_setup, (1, 0, 1, 0),
           (2, 1, 1, 0), 10),
    STORED("stored_room_cancel", "the room of a cancelled job", room_cancel_setup, (2, 0, 0, 0),
           (3, 1, 1, 0), 10),
    STORED("stored_room_close", "close, and a caller who waits for room", room_close_setup,
           (1, 0, 0, 0), (2, 1, 0, 0), 10),
    STORED("stored_pause", "a pause beside a caller who sends", pause_setup, (2, 0, 0, 0),
           (3, 1, 0, 0), 10),
    STORED("stored_pause_two", "a pause and a resume", pause_two_setup, (2, 0, 0, 0), (3, 1, 0, 0),
           10),
    STORED("stored_pause_ahead", "a pause, and batches sent ahead", pause_ahead_setup, (2, 0, 0, 0),
           (3, 1, 0, 0), 10),
    STORED("stored_pause_doubt", "a pause and a PUT, one of them in doubt", pause_doubt_setup,
           (1, 0, 1, 0), (2, 1, 1, 0), 10),
    STORED("stored_pause_late", "time is up while the store is away", pause_late_setup,
           (1, 0, 1, 0), (2, 1, 1, 0), 10),
    STORED("stored_pause_close", "close and a call that pauses", pause_close_setup, (1, 0, 0, 0),
           (2, 1, 1, 0), 10),
    STORED("stored_pipeline", "two callers, batches sent ahead", ahead_setup, (2, 0, 0, 0),
           (3, 1, 0, 0), 10),
    STORED("stored_pipeline_doubt", "one of them in doubt", ahead_doubt_setup, (1, 0, 1, 0),
           (2, 1, 1, 0), 10),
    STORED("stored_pipeline_async", "nobody waits but a flush", ahead_async_setup, (1, 0, 0, 0),
           (2, 1, 0, 0), 10),
    STORED("stored_pipeline_cancel", "a PUT and a DROP, one behind the other", ahead_cancel_setup,
           (2, 0, 0, 0), (2, 1, 1, 0), 10),
    STORED("stored_pipeline_close", "close while the answer is out", ahead_close_setup,
           (1, 0, 0, 0), (2, 1, 1, 0), 10),
    { .name = NULL },
};
