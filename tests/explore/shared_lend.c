/* shared_lend.c - scenarios of a shared queue in which a job is cancelled by who wants its bytes,
 * while others change it, or have it.
 *
 * Whoever is lent a job has the bytes with which it went, and of all who want it one has it.
 */
#include <string.h>

#include "acts.h"
#include "queue/queue.h"
#include "shared_books.h"
#include "shared_shelf.h"
#include "store/share.h"

#define PATIENCE DUE_MS(5) /* with the store */

struct desk {
    due_queue *q;
    struct shared_shelf shelf;
    unsigned had;   /* times that somebody got the job */
    unsigned doubt; /* calls that do not know */
};

static struct desk *desk;

/* ---- Threads ---- */

static bool late(int rc)
{
    return rc == DUE_ETIMEDOUT || rc == DUE_EINDOUBT || rc == DUE_EAGAIN || rc == DUE_ESTORE;
}

static void expect_bytes(const due_job *job)
{
    const struct shared_job *in_store = &desk->shelf.job[0];

    explore_check(in_store->state == SHARED_DONE, "somebody has it, and it is there");
    explore_check(job->len == sizeof in_store->content &&
                      memcmp(job->data, &in_store->content, job->len) == 0,
                  "its bytes are not those with which it went");
    desk->had++;
}

static void lend(void *arg)
{
    due_job job;

    (void)arg;
    int rc = due_cancel(desk->q, desk->shelf.job[0].id, &job);
    explore_note("cancel: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT || late(rc), "cancel answers %s",
                  due_error_name(rc));
    desk->doubt += late(rc);
    if (rc != 0)
        return;
    expect_bytes(&job);
    due_job_done(&job);
}

static void dequeue(void *arg)
{
    due_job job;

    (void)arg;
    int rc = due_dequeue(desk->q, &job, DUE_MS(20));
    explore_note("dequeue: %s", due_error_name(rc));
    explore_check(rc == 0 || late(rc), "dequeue answers %s", due_error_name(rc));
    desk->doubt += late(rc);
    if (rc != 0)
        return;
    expect_bytes(&job);
    due_job_done(&job);
}

static void amend_elsewhere(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++)
        shared_amend(&desk->shelf, 0);
}

static void end_elsewhere(void *arg)
{
    (void)arg;
    desk->had += shared_end_elsewhere(&desk->shelf, 0);
}

/* ---- What must hold ---- */

static void lend_idle(void)
{
    shared_rest(desk->q, &desk->shelf, false);
}

static void lend_check(void)
{
    bool gone = desk->shelf.job[0].state == SHARED_DONE;
    struct due_stats s;

    explore_check(desk->had <= 1, "%u have it", desk->had);
    explore_check(desk->had == 0 || gone, "somebody had it, and it is there");
    explore_check(desk->had == 1 || desk->doubt > 0, "it was wanted, and nobody had it");
    explore_check(due_stats_read(desk->q, &s) == 0, "stats");
    explore_check(s.lent == 0, "%llu are lent", (unsigned long long)s.lent);
    shared_sums(desk->q);
}

/* ---- Scenarios ---- */

static void open_desk(int64_t due_ns)
{
    desk = explore_new(sizeof *desk);
    shared_make(&desk->shelf, NULL);
    due_options o = {
        DUE_OPTIONS_INIT,    .allocator = &explore_allocator, .store = &desk->shelf.head,
        .share = DUE_SHARED, .store_timeout_ns = PATIENCE,    .reserve = 1
    };
    int rc = due_open(&desk->q, &o, NULL);
    explore_check(rc == 0, "open: %s", due_error_text(rc));
    shared_put(&desk->shelf, 0, due_ns);
}

static void amended_setup(void)
{
    open_desk(explore_now() + DUE_S(100));
    explore_thread("who cancels", lend, NULL);
    explore_thread("another process", amend_elsewhere, NULL);
}

static void two_setup(void)
{
    amended_setup();
    explore_thread("who cancels too", lend, NULL);
}

static void ended_setup(void)
{
    open_desk(explore_now() + DUE_S(100));
    explore_thread("who cancels", lend, NULL);
    explore_thread("another process", end_elsewhere, NULL);
}

/* It may lie here, be on its way, or be in the store. */
static void taken_setup(void)
{
    open_desk(explore_now());
    explore_thread("consumer", dequeue, NULL);
    explore_thread("who cancels", lend, NULL);
}

static void doubt_setup(void)
{
    two_setup();
    desk->shelf.unsure = 1;
}

#define LEND(name_, about_, setup_, quick_, deep_, walks_)                                 \
    {                                                                                      \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = lend_idle,          \
        .check = lend_check, .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, \
        .walks = (walks_),                                                                 \
    }

const struct explore_scenario explore_scenarios_shared_lend[] = {
    LEND("shared_lend", "a job gets other bytes while somebody cancels it for them", amended_setup,
         (2, 0, 0, 0), (3, 1, 0, 0), 1),
    LEND("shared_lend_two", "and two do", two_setup, (1, 0, 0, 0), (2, 1, 0, 0), 1),
    LEND("shared_lend_ended", "another process has it", ended_setup, (1, 0, 0, 0), (2, 1, 0, 0), 1),
    LEND("shared_lend_taken", "somebody here takes it", taken_setup, (1, 0, 0, 0), (2, 1, 1, 0), 1),
    LEND("shared_lend_doubt", "and it is not known whether it went", doubt_setup, (1, 0, 0, 0),
         (2, 1, 0, 0), 1),
    { .name = NULL },
};
