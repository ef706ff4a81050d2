/* transitions.c - scenarios of what seldom becomes of a job, for the sake of its word: jobs of
 * groups, dead and large ones, the last use of a place, arrivals that are numbered anew, what a
 * store shows and refuses.
 */
#include <string.h>

#include "explore.h"
#include "lab/extra.h"
#include "lab/take.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "shelf.h"
#include "store/sender.h"

#define LONG  DUE_S(1)
#define LARGE (70u << 10) /* more than is copied under the lock */

struct bench {
    due_queue *q;
    due_clock *clock;
    struct shelf shelf;
    due_id id;
    int cancel[2];
};

static struct bench *bench;
static char large[LARGE];

/* ---- What the threads do ---- */

static due_id put(const char *group, size_t len)
{
    due_extra more = { DUE_EXTRA_INIT, .group = group,
                       .group_len = group != NULL ? strlen(group) : 0 };
    due_spec spec = { DUE_SPEC_INIT, .data = large, .len = len, .more = &more };
    due_id id;

    explore_check(due_enqueue(bench->q, &spec, 0, &id) == 0, "enqueue");
    return id;
}

static due_job reserve(void)
{
    due_job job;

    explore_check(take_leased(bench->q, &job, LONG, 0) == 0, "reserve");
    return job;
}

static due_id bury(const char *group, size_t len)
{
    due_id id = put(group, len);
    due_job job = reserve();

    explore_check(due_id_equal(job.id, id) && due_bury(&job, "why") == 0, "bury");
    return id;
}

static void cancel(due_id id)
{
    explore_check(due_cancel(bench->q, id, NULL) == 0, "cancel");
}

/* A round of a repeating job of a group is over. */
static void round_done(void)
{
    due_spec spec = { DUE_SPEC_INIT,
                      .more = EXTRA(.group = "g", .group_len = 1, .every_ns = LONG) };
    due_id id;

    explore_check(due_enqueue(bench->q, &spec, 0, &id) == 0, "enqueue");
    due_job job = reserve();
    explore_check(due_ack(&job) == 0, "ack");
    cancel(id);
}

static void amend(due_id id, unsigned what)
{
    due_spec spec = { DUE_SPEC_INIT, .more = EXTRA(.headers = "h", .headers_len = 1),
                      .delay_ns = LONG };

    if (!(what & DUE_SET_TIME))
        spec.delay_ns = 0;
    explore_check(due_amend(bench->q, id, &spec, what) == 0, "amend");
}

/* Jobs of a group that have their pass: moved, changed, given back, dead. */
static void passes(void *arg)
{
    (void)arg;
    due_id id = put("g", 3);
    explore_check(due_poll(bench->q, NULL) == 1, "it is let through");
    explore_check(due_reschedule(bench->q, id, DUE_S(5000)) == 0, "reschedule");
    cancel(id);
    id = put("g", LARGE);
    explore_check(due_poll(bench->q, NULL) == 1, "it is let through");
    amend(id, DUE_SET_HEADERS | DUE_SET_TIME);
    cancel(id);
    id = put("g", 3);
    due_job job = reserve();
    explore_check(due_nack(&job, LONG) == 0, "nack");
    cancel(id);
    round_done();
    bury("g", 3);
}

/* Dead ones that are changed, in place and as a whole. */
static void dead_ones(void *arg)
{
    (void)arg;
    amend(bury(NULL, 3), DUE_SET_HEADERS);
    amend(bury(NULL, LARGE), DUE_SET_HEADERS);
}

/* The node of one that is changed leaves the inbox meanwhile. */
static void in_the_inbox(void *arg)
{
    (void)arg;
    explore_check(due__lock_try(&bench->q->lock), "the lock is free");
    due_id id = put(NULL, LARGE);
    due__lock_release(&bench->q->lock); /* L1 of lock.c */
    amend(id, DUE_SET_HEADERS);
    cancel(id);
}

/* The places of a span whose next use is their last. */
static void last_use(void *arg)
{
    (void)arg;
    put(NULL, 3);
    due_job job = reserve();
    explore_check(due__word_generation(
                      due__job_at(&bench->q->slab, (uint32_t)job.place - 1)->word) == UINT32_MAX,
                  "another place");
    explore_check(due_ack(&job) == 0, "ack");
}

static void renumbered(void *arg)
{
    (void)arg;
    due_id id = put(NULL, 3);
    explore_check(due_poll(bench->q, NULL) == 1, "it is in its line");
    bench->q->arrival = DUE__ARRIVAL_MAX;
    cancel(put(NULL, 3));
    cancel(id);
}

static void load(void *arg)
{
    (void)arg;
    explore_check(due_flush(bench->q, LONG) == 0, "flush");
    struct due_stats s;
    for (unsigned i = 0; i < 10 && due_stats_read(bench->q, &s) == 0 && s.loading; i++)
        due__commit_work(bench->q, NULL, DUE_FOREVER);
    explore_check(s.waiting == 2 && s.dead == 1, "%llu wait, %llu are dead",
                  (unsigned long long)s.waiting, (unsigned long long)s.dead);
}

static void move_it(void *arg)
{
    (void)arg;
    int rc = due_reschedule(bench->q, bench->id, DUE_S(5000));
    explore_check(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, "reschedule: %d", rc);
}

static void cancel_it(void *arg)
{
    unsigned n = (unsigned)(uintptr_t)arg;

    bench->cancel[n] = due_cancel(bench->q, bench->id, NULL);
}

/* ---- Setup ---- */

/* @shown: what the store has; of no length: nothing. */
static void open_bench(bool stored, const due_record *shown, size_t n)
{
    bench = explore_new(sizeof *bench);
    bench->clock = due_clock_manual(DUE_S(1));
    due_options o = { DUE_OPTIONS_INIT,
                      .allocator = &explore_allocator,
                      .manual = stored ? NULL : bench->clock,
                      .proxies = stored ? DUE_PROXIES_ADAPTIVE : DUE_PROXIES_NEVER,
                      .store_timeout_ns = DUE_MS(1),
                      .reserve = 1 };

    shelf_make(&bench->shelf, 2);
    bench->shelf.shown = shown;
    bench->shelf.n_shown = n;
    o.store = stored ? &bench->shelf.head : NULL;
    int rc = due_open(&bench->q, &o, NULL);
    explore_check(rc == 0, "open: %d", rc);
}

#define ALONE(setup_, what_, stored_)            \
    static void setup_(void)                     \
    {                                            \
        open_bench(stored_, NULL, 0);            \
        explore_thread("caller", (what_), NULL); \
    }
ALONE(passes_setup, passes, false)
ALONE(dead_setup, dead_ones, false)
ALONE(inbox_setup, in_the_inbox, false)
ALONE(renumber_setup, renumbered, false)

static void last_use_setup(void)
{
    open_bench(false, NULL, 0);
    bench->q->slab.spans[0][0].floor = UINT32_MAX - 1;
    explore_thread("caller", last_use, NULL);
}

/* One that was reserved, one of a group that failed, and a dead one. */
static void load_setup(void)
{
    static const due_record records[] = {
        { .until_ns = DUE_S(9), .deadline_ns = DUE_S(9), .topic = "default", .attempts = 1 },
        { .until_ns = DUE_S(9),
          .deadline_ns = DUE_S(8),
          .topic = "default",
          .attempts = 1,
          .failures = 1,
          .group = "g",
          .group_len = 1 },
        { .until_ns = DUE_FOREVER,
          .deadline_ns = DUE_S(8),
          .topic = "default",
          .attempts = 1,
          .cause = DUE_CAUSE_BURIED,
          .died_ns = DUE_S(1) },
    };

    open_bench(true, records, sizeof records / sizeof records[0]);
    explore_thread("caller", load, NULL);
}

static void stored_one(const char *group)
{
    open_bench(true, NULL, 0);
    shelf_loaded(bench->q);
    due__limiters_open(bench->q);
    bench->id = put(group, 3);
    explore_check(due_poll(bench->q, NULL) == 1, "it is ready");
}

static void move_cancel_setup(void)
{
    stored_one("g");
    explore_thread("mover", move_it, NULL);
    explore_thread("canceller", cancel_it, NULL);
}

/* Two who cancel, and a store that refuses it when the first does not wait for it any more. */
static void refused_setup(void)
{
    stored_one(NULL);
    bench->shelf.deaf = 2;
    bench->shelf.refuses = 1;
    explore_thread("canceller", cancel_it, NULL);
    explore_thread("other canceller", cancel_it, (void *)(uintptr_t)1);
}

static due_id put_keyed(void)
{
    due_spec spec = { DUE_SPEC_INIT,
                      .more = EXTRA(.key = "k", .key_len = 1, .on_key = DUE_KEY_REPLACE) };
    due_id id;

    explore_check(due_enqueue(bench->q, &spec, 0, &id) == 0, "enqueue");
    return id;
}

static void put_change_and_cancel(void *arg)
{
    (void)arg;
    put_keyed();
    cancel(put_keyed());
}

static void put_one(void *arg)
{
    (void)arg;
    put(NULL, 3);
}

/* A job is changed by its key, and cancelled, while its node is in the inbox, out of reach behind
 * one that is being put there. */
static void gap_setup(void)
{
    open_bench(false, NULL, 0);
    explore_thread("who is slow", put_one, NULL);
    explore_thread("who changes its own", put_change_and_cancel, NULL);
}

/* Its node is in the inbox, behind one that is being put there if that began before: then nobody
 * can take it out. */
static void put_and_read_large(void *arg)
{
    (void)arg;
    static char bytes[LARGE];
    size_t len = 0;

    bench->id = put(NULL, LARGE);
    due__lock_release(&bench->q->lock); /* L1 of lock.c */
    int rc = due_read(bench->q, bench->id, bytes, sizeof bytes, &len);
    explore_check((rc == 0 && len == LARGE) || rc == DUE_EBUSY || rc == DUE_ENOENT,
                  "read answers %s, %zu", due_error_name(rc), len);
}

static void large_setup(void)
{
    open_bench(false, NULL, 0);
    explore_check(due__lock_try(&bench->q->lock), "the lock is free");
    explore_thread("who is slow", put_one, NULL);
    explore_thread("who reads its own", put_and_read_large, NULL);
}

/* And it is cancelled before it waits again. */
static void large_cancel_setup(void)
{
    large_setup();
    explore_thread("canceller", cancel_it, NULL);
}

/* The sender takes it out of the inbox, without the lock, while it is read. */
static void put_and_read(void *arg)
{
    char bytes[4];
    size_t len = 0;

    (void)arg;
    due_id id = put(NULL, 3);
    int rc = due_read(bench->q, id, bytes, sizeof bytes, &len);
    explore_check(rc == 0 && len == 3, "read answers %s, %zu", due_error_name(rc), len);
}

static void read_setup(void)
{
    open_bench(true, NULL, 0);
    shelf_loaded(bench->q);
    bench->q->commits->async = true; /* else it was sent when its enqueue answers */
    explore_thread("who reads what it has put", put_and_read, NULL);
}

/* ---- What must hold ---- */

static void at_rest(void)
{
    explore_check(bench->q->lock.word == 0, "everybody rests, and the lock is held");
}

static void check(void)
{
    struct due_stats s;

    explore_check(due__limiters_check(bench->q), "passes, lists or counts");
    explore_check(due_stats_read(bench->q, &s) == 0, "stats");
    explore_check(s.enqueued == s.waiting + s.leased + s.dead + s.dequeued + s.acked + s.cancelled +
                                    s.discarded,
                  "the stats do not add up");
}

/* Nothing is left in the inbox for good: each job that waits can be taken. */
static void check_all_taken(void)
{
    struct due_stats s;
    due_job job;

    explore_budget = 0;
    explore_bias = 0;
    while (due_dequeue(bench->q, &job, 0) == 0)
        due_job_done(&job);
    explore_check(due_stats_read(bench->q, &s) == 0 && s.waiting == 0, "%llu jobs wait for ever",
                  (unsigned long long)s.waiting);
    check();
}

#define CHECKED(name_, about_, setup_, check_, quick_, deep_)                                      \
    {                                                                                              \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = at_rest, .check = (check_), \
        .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_                               \
    }
#define WORDS(name_, about_, setup_, quick_, deep_) \
    CHECKED(name_, about_, setup_, check, quick_, deep_)

const struct explore_scenario explore_scenarios_transitions[] = {
    WORDS("word_pass", "jobs with a pass are moved, changed, given back", passes_setup, (0), (0)),
    WORDS("word_dead", "dead jobs are changed", dead_setup, (0), (0)),
    WORDS("word_inbox", "a job is changed and leaves the inbox", inbox_setup, (0), (0)),
    WORDS("word_last_use", "a place has its last use", last_use_setup, (0), (0)),
    WORDS("word_renumber", "arrivals are numbered anew", renumber_setup, (0), (0)),
    WORDS("word_load", "a store shows what it has", load_setup, (0), (0)),
    WORDS("word_move_cancel", "a stored job of a group is moved and cancelled", move_cancel_setup,
          (2, 0, 0, 0), (3, 1, 0, 0)),
    WORDS("word_refused", "two cancel a stored job, and are refused", refused_setup, (1, 0, 1, 0),
          (2, 1, 1, 0)),
    WORDS("word_gap", "a job behind a gap of the inbox is changed, and cancelled", gap_setup,
          (2, 0, 0, 0), (3, 0, 0, 0)),
    CHECKED("word_unlinked", "a large job behind a gap of the inbox is read, and sorted in",
            large_setup, check_all_taken, (2, 0, 0, 0), (3, 1, 0, 0)),
    CHECKED("word_revoked", "a large job behind a gap of the inbox is read, and cancelled",
            large_cancel_setup, check_all_taken, (2, 0, 0, 0), (3, 1, 0, 0)),
    WORDS("word_read", "a stored job that is being sent is read", read_setup, (2, 0, 0, 0),
          (3, 0, 0, 0)),
    { .name = NULL },
};
