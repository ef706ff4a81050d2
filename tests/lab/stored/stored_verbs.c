/* stored_verbs.c - unit tests of verbs on a queue with a store, shared or owned.
 *
 * Linked into them in place of a few calls (the linker's --wrap).  With LAB_STORED=shared in the
 * environment whoever opens a queue without a store shares one in memory, with =owned he owns it;
 * without, nothing differs.  A test that stored_known.h lists is skipped on a shared queue, one
 * that owned_known.h lists on an owned one.
 *
 * A take that does not wait only asks the store: whether the job may leave it, and of a shared
 * queue whether there is one.  It gets the job when it is made again.  So it is made again here,
 * each time that all has been answered, until that brings nothing more to pass: then there is
 * nothing for it, and it is answered so.  A job that is early is seen as ever.  Of a claim there
 * is one job for each who asks, so a take of several is made again, too, until it has them.
 *
 * Threads  any
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "due/metrics.h"
#include "lab/memory_store.h"
#include "lab/stored/owned_known.h"
#include "lab/stored/stored_known.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

#define MOST        16       /* queues that are open at a time */
#define TRIES       1000     /* after so many there will never be an end */
#define PATIENCE_NS DUE_S(5) /* for the store in memory, in which nothing takes long */

static struct {
    pthread_mutex_t lock;
    _Atomic pid_t pid; /* who opened one: in his child somebody who is not there may have a lock */
    struct {
        due_queue *q;
        struct memory_disk *disk;
    } open[MOST];
} given = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Where journal_faults.c is there, too. */
void lab_journal_opened(due_queue *q) __attribute__((weak));

int __real_due_open(due_queue **q, const due_options *options, due_error *error);
int __real_due_free(due_queue *q);
int __real_due_stats_read(due_queue *q, struct due_stats *stats);
int __real_due_dequeue(due_queue *q, due_job *job, int64_t timeout_ns);
int __real_due_reserve(due_queue *q, due_job *job, int64_t timeout_ns);
int __real_due_take(due_queue *q, const due_take_options *options, due_job *jobs, size_t max,
                    int64_t timeout_ns);
int __wrap_due_open(due_queue **q, const due_options *options, due_error *error);
int __wrap_due_free(due_queue *q);
int __wrap_due_stats_read(due_queue *q, struct due_stats *stats);
int __wrap_due_dequeue(due_queue *q, due_job *job, int64_t timeout_ns);
int __wrap_due_reserve(due_queue *q, due_job *job, int64_t timeout_ns);
int __wrap_due_take(due_queue *q, const due_take_options *options, due_job *jobs, size_t max,
                    int64_t timeout_ns);

/* ---- What is left out ---- */

static bool names(const struct stored_known *known, const char *test)
{
    const char *at = strstr(known->tests, test);

    return at != NULL && (at == known->tests || at[-1] == ' ');
}

/* Why the test is not made; NULL: it is.  With LAB_STORED_ALL all are. */
static const char *left_out(bool shared)
{
    const struct stored_known *known = shared ? stored_known : owned_known;
    size_t n = shared ? sizeof stored_known / sizeof *stored_known
                      : sizeof owned_known / sizeof *owned_known;
    char test[200];

    if (getenv("LAB_STORED_ALL") != NULL)
        return NULL;
    snprintf(test, sizeof test, "%s.%s ", criterion_current_suite->name,
             criterion_current_test->name);
    if (getenv("LAB_STORED_MANY") == NULL && names(&stored_many, test))
        return stored_many.why;
    for (size_t i = 0; i < n; i++)
        if (names(&known[i], test))
            return known[i].why;
    return NULL;
}

/* ---- Opening ---- */

/* The disk is the queue's from here on; NULL, and it is no longer. */
static struct memory_disk *keep(due_queue *q, due_queue *then, struct memory_disk *disk)
{
    pthread_mutex_lock(&given.lock);
    for (size_t i = 0; i < MOST; i++) {
        if (given.open[i].q != q)
            continue;
        struct memory_disk *was = given.open[i].disk;
        given.open[i].q = then;
        given.open[i].disk = disk;
        pthread_mutex_unlock(&given.lock);
        return was;
    }
    pthread_mutex_unlock(&given.lock);
    return NULL;
}

static int open_stored(due_queue **q, const due_options *options, due_error *error, bool shared)
{
    const struct memory_disk_options how = { .put_again = false };
    due_options with = options != NULL ? *options : (due_options){ DUE_OPTIONS_INIT };
    struct memory_disk *disk = memory_disk_new(&how);
    due_store *store = memory_store_new(disk);
    struct due_stats s;

    with.store = store;
    if (shared) {
        with.share = DUE_SHARED;
        with.prefetch_max = with.prefetch_max == 0 ? 1 : with.prefetch_max;
    }
    int rc = __real_due_open(q, &with, error);
    if (rc != 0) {
        store->verbs->free(store);
        memory_disk_free(disk);
        return rc;
    }
    given.pid = getpid();
    (void)keep(NULL, *q, disk);
    while (!shared && __real_due_stats_read(*q, &s) == 0 && s.loading)
        sched_yield();
    return 0;
}

int __wrap_due_open(due_queue **q, const due_options *options, due_error *error)
{
    const char *kind = getenv("LAB_STORED");
    bool ours = kind != NULL &&
                (options == NULL || (options->size == sizeof *options && options->store == NULL));
    bool shared = ours && strcmp(kind, "shared") == 0;
    const char *why = ours ? left_out(shared) : NULL;

    if (why != NULL)
        cr_skip("%s", why);
    int rc = ours ? open_stored(q, options, error, shared) : DUE_EINVAL;
    if (rc == DUE_EINVAL) /* also of what no store has: such proxies, or such a clock */
        rc = __real_due_open(q, options, error);
    if (rc == 0 && lab_journal_opened != NULL)
        lab_journal_opened(*q);
    return rc;
}

int __wrap_due_free(due_queue *q)
{
    int rc = __real_due_free(q);
    bool looks = rc == 0 && q != NULL && getpid() == given.pid;
    struct memory_disk *disk = looks ? keep(q, NULL, NULL) : NULL;

    if (disk == NULL)
        return rc;
    const char *wrong = memory_disk_wrong(disk);
    cr_expect_null(wrong, "%s", wrong);
    memory_disk_free(disk);
    return rc;
}

/* ---- Taking ---- */

static bool is_ours(due_queue *q)
{
    bool is = false;

    pthread_mutex_lock(&given.lock);
    for (size_t i = 0; i < MOST; i++)
        is |= given.open[i].q == q;
    pthread_mutex_unlock(&given.lock);
    return is;
}

static bool ends(const due_queue *q)
{
    return due__load_seq(&q->commits->stopping) || due__load_seq(&q->commits->fenced) ||
           (due__load_seq(&q->state) & (q->shared ? DUE__REFUSING : DUE__CLOSING));
}

/* What the queue holds now, of which statistics tell this process's part if it is shared; if it is
 * owned, once what ends by itself is in the store. */
int __wrap_due_stats_read(due_queue *q, struct due_stats *stats)
{
    if (is_ours(q) && !q->shared && !ends(q))
        (void)!due_flush(q, PATIENCE_NS); /* else it is told as it is */
    int rc = __real_due_stats_read(q, stats);
    struct due_queue_census all;

    if (rc != 0 || !is_ours(q) || !q->shared || ends(q) ||
        due_census(q, DUE_ALL_TOPICS, &all, PATIENCE_NS) != 0)
        return rc;
    stats->waiting += all.delayed + all.ready; /* to what was claimed, and lies here */
    stats->ready += all.ready;
    stats->dead = all.dead;
    return 0;
}

/* What was asked of the store is answered; and the process has looked at everything there is. */
static void look(due_queue *q)
{
    due_store *store = q->commits->store;
    int64_t until = due__monotonic_now() + PATIENCE_NS;

    if (due_flush(q, PATIENCE_NS) != 0 || !q->shared)
        return;
    for (int n = 0; n < 2; n++) { /* the first time it may be in the midst of it */
        uint64_t before = memory_store_calls(store, MEMORY_LISTEN);

        due__proxy_call(q);
        while (memory_store_calls(store, MEMORY_LISTEN) == before && !ends(q) &&
               due__monotonic_now() < until)
            sched_yield();
    }
}

/* What a take that did not wait has brought to pass so far. */
struct asked {
    uint64_t made; /* exchanges */
    unsigned times;
};

/* It did not bring anything: is it to be made again? */
static bool again(due_queue *q, int rc, struct asked *a)
{
    uint64_t made = a->made;

    if (rc != DUE_EAGAIN || ends(q) || a->times == TRIES)
        return false;
    look(q);
    a->made = memory_store_calls(q->commits->store, MEMORY_WORK);
    return a->times++ == 0 || a->made != made;
}

int __wrap_due_dequeue(due_queue *q, due_job *job, int64_t timeout_ns)
{
    struct asked a = { .times = 0 };
    int rc;

    if (timeout_ns != 0 || !is_ours(q))
        return __real_due_dequeue(q, job, timeout_ns);
    do
        rc = __real_due_dequeue(q, job, 0);
    while (again(q, rc, &a));
    return rc;
}

int __wrap_due_reserve(due_queue *q, due_job *job, int64_t timeout_ns)
{
    struct asked a = { .times = 0 };
    int rc;

    if (timeout_ns != 0 || !is_ours(q))
        return __real_due_reserve(q, job, timeout_ns);
    do
        rc = __real_due_reserve(q, job, 0);
    while (again(q, rc, &a));
    return rc;
}

int __wrap_due_take(due_queue *q, const due_take_options *options, due_job *jobs, size_t max,
                    int64_t timeout_ns)
{
    struct asked a = { .times = 0 };
    size_t n = 0;
    int rc;

    if (!is_ours(q))
        return __real_due_take(q, options, jobs, max, timeout_ns);
    do {
        rc = __real_due_take(q, options, jobs + n, max - n, timeout_ns);
        if (rc > 0) {
            n += (size_t)rc;
            a.times = 0;
            timeout_ns = 0; /* the rest is what is due now */
        }
    } while (n < max && (rc > 0 || (timeout_ns == 0 && again(q, rc, &a))));
    return n > 0 ? (int)n : rc;
}
