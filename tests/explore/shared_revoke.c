/* shared_revoke.c - scenarios of a shared queue in which another process cancels what is here.
 *
 * It does not come again, whatever is said of it here at that moment; and who has it is told by the
 * next answer of the store about it.
 */
#include "acts.h"
#include "lab/take.h"
#include "queue/queue.h"
#include "shared_books.h"
#include "shared_shelf.h"
#include "store/share.h"

#define LEASE    DUE_MS(10)
#define PATIENCE DUE_MS(5) /* with the store */

struct booth {
    due_queue *q;
    struct shared_shelf shelf;
    bool busy;  /* who cancelled it was told that somebody has it */
    bool done;  /* or that it is gone */
    bool told;  /* nothing is in doubt */
    bool waits; /* somebody is to take it for good, and every answer of the store comes */
};

static struct booth *booth;

static bool late(int rc)
{
    return rc == DUE_ETIMEDOUT || rc == DUE_EINDOUBT || rc == DUE_EAGAIN || rc == DUE_ESTORE;
}

/* ---- Threads ---- */

static void revoke(void *arg)
{
    (void)arg;
    int rc = shared_revoke(&booth->shelf, 0);

    explore_note("revoke: %s", due_error_name(rc));
    booth->busy = rc == DUE_EBUSY;
    booth->done = rc == 0;
}

/* It is extended once, so he hears of what was so before that. */
static void hold(due_job *job)
{
    bool revoked = booth->shelf.job[0].revoked;
    int rc = due_extend(job, LEASE);

    explore_note("extend: %s", due_error_name(rc));
    if (rc != 0)
        booth->told = false;
    else
        explore_check(!revoked || due_job_stopping(job), "he was told nothing");
}

static void reserve(void *arg)
{
    due_job job;
    bool extends = arg != NULL;
    int rc = take_leased(booth->q, &job, LEASE, DUE_MS(3));

    explore_note("reserve: %s", due_error_name(rc));
    explore_check(rc == 0 || late(rc), "reserve answers %s", due_error_name(rc));
    if (rc != 0) { /* it may lie here until it goes back */
        booth->told = false;
        return;
    }
    if (extends)
        hold(&job);
    rc = due_nack(&job, DUE_S(1));
    explore_note("nack: %s", due_error_name(rc));
    if (rc != 0)
        booth->told = false;
    if (job.queue != NULL)
        due_job_done(&job);
}

static void dequeue(void *arg)
{
    due_job job;

    (void)arg;
    int rc = due_dequeue(booth->q, &job, DUE_MS(3));
    explore_note("dequeue: %s", due_error_name(rc));
    explore_check(rc == 0 || late(rc), "dequeue answers %s", due_error_name(rc));
    booth->waits = false;
    if (rc == 0)
        due_job_done(&job);
    else
        booth->told = false;
}

/* ---- What must hold ---- */

static void revoke_idle(void)
{
    shared_rest(booth->q, &booth->shelf, false);
    explore_check(!booth->waits || !booth->busy || booth->shelf.job[0].state != SHARED_DONE,
                  "it has gone to nobody, and somebody waits for it");
}

static void revoke_check(void)
{
    const struct shared_job *job = &booth->shelf.job[0];
    struct due_stats s;

    explore_check(!booth->done || job->state == SHARED_DONE, "it was cancelled, and is there");
    explore_check(!booth->busy || job->state != SHARED_WAITS, "it would come again");
    explore_check(!booth->busy || !booth->told || job->state == SHARED_DONE,
                  "its holder has ended it, and it is there");
    explore_check(due_stats_read(booth->q, &s) == 0, "stats");
    explore_check(s.leased == 0 || !booth->told, "%llu are leased", (unsigned long long)s.leased);
    shared_sums(booth->q);
}

/* ---- Scenarios ---- */

static void open_booth(void)
{
    booth = explore_new(sizeof *booth);
    shared_make(&booth->shelf, NULL);
    due_options o = {
        DUE_OPTIONS_INIT,    .allocator = &explore_allocator, .store = &booth->shelf.head,
        .share = DUE_SHARED, .store_timeout_ns = PATIENCE,    .reserve = 1
    };
    int rc = due_open(&booth->q, &o, NULL);
    explore_check(rc == 0, "open: %s", due_error_text(rc));
    booth->told = true;
    shared_put(&booth->shelf, 0, explore_now());
    explore_thread("another process", revoke, NULL);
}

static void nacked_setup(void)
{
    open_booth();
    explore_thread("consumer", reserve, NULL);
}

static void extended_setup(void)
{
    open_booth();
    explore_thread("consumer", reserve, booth);
}

static void doubt_setup(void)
{
    extended_setup();
    booth->shelf.unsure = 1;
}

static void taken_setup(void)
{
    open_booth();
    booth->waits = true;
    explore_thread("consumer", dequeue, NULL);
}

/* An answer comes when he has left, or never does. */
static void left_setup(void)
{
    taken_setup();
    booth->waits = false;
    booth->shelf.unsure = 1;
}

#define REVOKE(name_, about_, setup_, quick_, deep_, walks_)                                 \
    {                                                                                        \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = revoke_idle,          \
        .check = revoke_check, .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, \
        .walks = (walks_),                                                                   \
    }

const struct explore_scenario explore_scenarios_shared_revoke[] = {
    REVOKE("shared_revoke", "another process cancels a job that is given back", nacked_setup,
           (2, 0, 0, 0), (3, 1, 1, 0), 1),
    REVOKE("shared_revoke_extend", "and extended before that", extended_setup, (1, 0, 0, 0),
           (2, 1, 1, 0), 1),
    REVOKE("shared_revoke_doubt", "and an answer does not come", doubt_setup, (1, 0, 0, 0),
           (2, 1, 0, 0), 1),
    REVOKE("shared_revoke_taken", "and taken for good", taken_setup, (1, 0, 0, 0), (2, 1, 0, 0), 1),
    REVOKE("shared_revoke_left", "and taken for somebody who has left", left_setup, (1, 0, 1, 0),
           (2, 1, 1, 0), 1),
    { .name = NULL },
};
