/* stopping.c - scenarios of a pool of workers that is stopped while jobs come and are handed out.
 *
 * The pool is the library's own, with its threads.  Whoever stops it comes back, and no handler
 * runs after that; each job was handled to its end, or is in the queue as if it had never been
 * taken; and while somebody else waits for one, none lies idle with the pool.  When it is freed,
 * nobody who rings its threads touches it any more.
 */
#include "acts.h"
#include "os/atomic.h"
#include "due/workers.h"
#include "workers/pool.h"
#include "lab/take.h"

#define JOBS   3u
#define WITHIN DUE_MS(5)
#define LEASE  DUE_S(30) /* of the pool's jobs */

struct shift {
    due_queue *q;
    due_clock *clock; /* turned by hand, or NULL */
    due_workers *pool;
    due_id id[JOBS];
    unsigned put;
    unsigned begun, done; /* handlers */
    int stop;             /* 1: has not answered */
    int freed;            /* likewise */
    int cancel;
    int other; /* of a reserve that is not the pool's; 1: there is none */
    due_job got;
    int64_t opened_ns;
    int64_t last_ns; /* when the last job was put, or the pool had stopped */
};

static struct shift *shift;

/* ---- Threads ---- */

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx, (void)job;
    explore_check(shift->stop == 1, "a handler is called when the pool has stopped");
    shift->begun++;
    shift->done++;
    *answer = due_answer_ack();
}

/* All at once; what is put in setup, the pool handles before anything else begins. */
static void put_some(int n)
{
    due_spec specs[JOBS];

    for (int i = 0; i < n; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .data = "tea", .len = 3 };
    explore_check(due_enqueue_batch(shift->q, specs, (size_t)n, 0, shift->id) == n, "enqueue");
    shift->put = (unsigned)n;
    shift->last_ns = explore_now();
}

static void put_one(void *arg)
{
    (void)arg;
    put_some(1);
}

static void put_all(void *arg)
{
    (void)arg;
    put_some(JOBS);
}

static void put_and_cancel(void *arg)
{
    put_one(arg);
    shift->cancel = due_cancel(shift->q, shift->id[0], NULL);
}

/* All threads here are one of the system, so they share what a worker says of itself. */
static void stop(void *arg)
{
    static const struct due_workers none;
    int rc;

    (void)arg;
    do {
        due__handling_begin(&none);
        rc = due_workers_stop(shift->pool, DUE_FOREVER);
    } while (rc == DUE_EDEADLK);
    shift->stop = rc;
    shift->last_ns = explore_now();
}

static void stop_and_free(void *arg)
{
    size_t bytes = shift->pool->bytes;

    stop(arg);
    shift->freed = due_workers_free(shift->pool);
    explore_gone(shift->pool, bytes);
}

/* The keeper of a lease is rung. */
static void turn(void *arg)
{
    (void)arg;
    explore_check(due_clock_advance(shift->clock, LEASE) == 0, "advance");
}

static void reserve_within(void *arg)
{
    (void)arg;
    shift->other = take_leased(shift->q, &shift->got, DUE_FOREVER, WITHIN);
}

/* ---- Setup ---- */

static void open_by(size_t threads, due_clock *clock)
{
    shift = explore_new(sizeof *shift);
    due_options o = { DUE_OPTIONS_INIT, .allocator = &explore_allocator, .manual = clock,
                      .proxies = DUE_PROXIES_NEVER, .reserve = 1 };

    explore_check(due_open(&shift->q, &o, NULL) == 0, "open");
    shift->clock = clock;
    shift->stop = shift->freed = shift->cancel = shift->other = 1;
    shift->opened_ns = explore_now();
    explore_check(due_workers_start(&shift->pool, shift->q, NULL, 0, threads, handle, NULL, NULL) ==
                      0,
                  "start");
}

static void open_shift(size_t threads)
{
    open_by(threads, NULL);
}

/* ---- What must hold ---- */

static void at_rest(void)
{
    explore_check(shift->q->lock.word == 0, "everybody rests, and the lock is held");
}

/* Each job is in one place, and none is with the pool. */
static void check_stopped(void)
{
    struct due_stats s;
    struct due_workers_stats w;

    explore_check(shift->stop == 0, "stop: %d", shift->stop);
    explore_check(due_stats_read(shift->q, &s) == 0 && due_workers_stats_read(shift->pool, &w) == 0,
                  "stats");
    explore_check(w.running == 0 && w.ahead == 0, "%llu run, %llu ahead",
                  (unsigned long long)w.running, (unsigned long long)w.ahead);
    explore_check(shift->begun == shift->done && w.handled == shift->done,
                  "%u begun, %u done, %llu counted", shift->begun, shift->done,
                  (unsigned long long)w.handled);
    /* A worker, and the keeper of its lease, may stand still for as long as that is. */
    explore_check(w.lost == 0 || explore_now() >= shift->opened_ns + LEASE, "%llu lost",
                  (unsigned long long)w.lost);
    explore_check(s.leased == (shift->other == 0), "%llu leased", (unsigned long long)s.leased);
    explore_check(s.waiting + s.acked + s.cancelled + s.leased == shift->put,
                  "%llu waiting, %llu acked, %llu cancelled", (unsigned long long)s.waiting,
                  (unsigned long long)s.acked, (unsigned long long)s.cancelled);
    if (shift->other == 0)
        explore_check(shift->got.attempts == 1, "what was not begun counts as an attempt");
}

/* What is left can be had at once, and never was reserved before. */
static void check_left(void)
{
    struct due_stats s;
    due_job job;

    check_stopped();
    explore_check(due_stats_read(shift->q, &s) == 0, "stats");
    for (uint64_t i = 0; i < s.waiting; i++) {
        explore_check(take_leased(shift->q, &job, DUE_FOREVER, 0) == 0, "it cannot be had");
        explore_check(job.attempts == 1, "%u attempts", job.attempts);
    }
    explore_check(take_leased(shift->q, &job, DUE_FOREVER, 0) == DUE_EAGAIN, "one more");
}

static void check_freed(void)
{
    explore_check(shift->stop == 0 && shift->freed == 0, "stop: %d, free: %d", shift->stop,
                  shift->freed);
    explore_check(shift->done == 1, "%u done", shift->done);
}

/* Whoever else waits has what the pool does not take any more. */
static void check_other(void)
{
    struct due_stats s;

    check_stopped();
    explore_check(shift->other == 0 || shift->other == DUE_ETIMEDOUT, "reserve: %d", shift->other);
    explore_check(due_stats_read(shift->q, &s) == 0, "stats");
    if (shift->last_ns < EXPLORE_START_NS + WITHIN)
        explore_check(s.waiting == 0, "it waits, and so did somebody");
}

static void check_cancelled(void)
{
    due_job job;

    check_stopped();
    explore_check(shift->cancel == 0 || shift->cancel == DUE_EBUSY || shift->cancel == DUE_ENOENT,
                  "cancel: %d", shift->cancel);
    explore_check((shift->cancel == 0) == (shift->done == 0), "cancel %d, done %u", shift->cancel,
                  shift->done);
    explore_check(take_leased(shift->q, &job, DUE_FOREVER, 0) == DUE_EAGAIN, "it came again");
}

/* ---- Scenarios ---- */

static void put_setup(void)
{
    open_shift(1);
    explore_thread("producer", put_one, NULL);
    explore_thread("stopper", stop, NULL);
}

static void ahead_setup(void)
{
    open_shift(1);
    explore_thread("producer", put_all, NULL);
    explore_thread("stopper", stop, NULL);
}

static void two_setup(void)
{
    open_shift(2);
    explore_thread("producer", put_all, NULL);
    explore_thread("stopper", stop, NULL);
}

static void other_setup(void)
{
    open_shift(1);
    explore_thread("other", reserve_within, NULL);
    explore_thread("producer", put_one, NULL);
    explore_thread("stopper", stop, NULL);
}

static void cancel_setup(void)
{
    open_shift(1);
    explore_thread("canceller", put_and_cancel, NULL);
    explore_thread("stopper", stop, NULL);
}

/* The keeper looks after the lease of a job for a while. */
static void free_setup(void)
{
    due_clock *clock = due_clock_manual(EXPLORE_START_NS);

    explore_check(clock != NULL, "no clock");
    open_by(1, clock);
    put_some(1);
    explore_thread("turner", turn, NULL);
    explore_thread("stopper", stop_and_free, NULL);
}

#define STOPPING(name_, about_, setup_, check_, quick_, deep_, walks_)                             \
    {                                                                                              \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = at_rest, .check = (check_), \
        .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, .walks = (walks_),           \
    }

const struct explore_scenario explore_scenarios_stopping[] = {
    STOPPING("stop_put", "a pool is stopped, and a job comes", put_setup, check_left, (2, 0, 0, 0),
             (3, 1, 0, 0), 10),
    STOPPING("stop_ahead", "a pool is stopped that fetches ahead", ahead_setup, check_left,
             (2, 0, 0, 0), (3, 1, 0, 0), 10),
    STOPPING("stop_two", "a pool of two is stopped, and jobs come", two_setup, check_left,
             (1, 0, 0, 0), (2, 1, 0, 0), 10),
    STOPPING("stop_other", "a pool is stopped, and somebody else waits for the job", other_setup,
             check_other, (1, 0, 0, 0), (2, 1, 1, 0), 10),
    STOPPING("stop_cancel", "a pool is stopped, and its job is cancelled", cancel_setup,
             check_cancelled, (2, 0, 0, 0), (3, 1, 0, 0), 10),
    STOPPING("stop_free", "a pool is freed, and its keeper was being rung", free_setup, check_freed,
             (2, 0, 0, 0), (3, 1, 0, 0), 10),
    { .name = NULL },
};
