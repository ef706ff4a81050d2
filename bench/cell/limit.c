/* limit.c - the subject "limit": for each workload the least that any queue would have to do.
 *
 *   enqueue, hold   a raw binary heap of 16-byte slots, without a lock
 *   through         a mutex and a ring, in the order put in
 *   handoff         a bare futex
 *   cancel          one compare-and-swap, of a word in 8 bytes or in a line of 64
 *   lateness        an absolute sleep: see work_lateness.c
 *
 * Each is a subject of one workload, so that it bears the same cost of the cell as any other.
 */
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cell.h"
#include "heap.h"

static void limit_close(void *q)
{
    (void)q; /* the process ends with the cell */
}

static void without_options(const struct cell *c, const char *name)
{
    if (c->o.payload > 0 || c->o.topics > 1 || c->o.spin_ns > 0)
        cell_die(CELL_CANNOT, "the limit of %s knows neither payload nor topics nor spinning",
                 name);
}

/* ---- A raw heap ------------------------------------------------------------------------------ */

static void *raw_open(const struct bench_setup *setup)
{
    struct heap *h = cell_alloc(1, sizeof *h);

    h->slot = cell_alloc(setup->jobs, sizeof *h->slot);
    return h;
}

static void raw_enqueue(void *q, unsigned thread, const struct bench_job *job,
                        union bench_handle *handle)
{
    (void)thread;
    (void)handle;
    heap_push(q, (struct heap_slot){ job->at_ns, job->number });
}

static bool raw_dequeue(void *q, unsigned thread, struct bench_job *job, bool wait)
{
    struct heap *h = q;

    (void)thread;
    (void)wait;
    if (h->count == 0)
        return false;
    struct heap_slot s = heap_pop(h);
    *job = (struct bench_job){ .number = s.number, .at_ns = s.at_ns };
    return true;
}

static const struct bench_subject raw = { .name = "limit",
                                          .can = BENCH_ONE_THREAD | BENCH_NO_TIME,
                                          .open = raw_open,
                                          .close = limit_close,
                                          .enqueue = raw_enqueue,
                                          .dequeue = raw_dequeue };

void limit_enqueue(struct cell *c)
{
    without_options(c, "enqueue");
    if (c->o.producers > 1)
        cell_die(CELL_CANNOT, "the limit of enqueue is that of one thread");
    c->s = &raw;
    work_enqueue(c);
}

void limit_hold(struct cell *c)
{
    without_options(c, "hold");
    c->s = &raw;
    work_hold(c);
}

/* ---- A mutex and a ring ---------------------------------------------------------------------- */

struct ring {
    pthread_mutex_t lock;
    pthread_cond_t more;
    size_t waiting;
    size_t put;
    size_t taken;
    uint64_t *number; /* room for all: nobody waits for room */
    size_t room;
};

static void *ring_open(const struct bench_setup *setup)
{
    struct ring *r = cell_alloc(1, sizeof *r);

    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->more, NULL);
    r->room = setup->jobs;
    r->number = cell_alloc(r->room, sizeof *r->number);
    return r;
}

static void ring_enqueue_batch(void *q, unsigned thread, const struct bench_job *jobs, size_t n,
                               union bench_handle *handles)
{
    struct ring *r = q;

    (void)thread;
    (void)handles;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < n; i++) {
        r->number[r->put] = jobs[i].number;
        r->put = r->put + 1 < r->room ? r->put + 1 : 0;
    }
    bool wake = r->waiting > 0;
    pthread_mutex_unlock(&r->lock);
    if (wake)
        pthread_cond_signal(&r->more);
}

static void ring_enqueue(void *q, unsigned thread, const struct bench_job *job,
                         union bench_handle *handle)
{
    ring_enqueue_batch(q, thread, job, 1, handle);
}

static size_t ring_dequeue_batch(void *q, unsigned thread, struct bench_job *jobs, size_t max,
                                 bool wait)
{
    struct ring *r = q;
    size_t n = 0;

    (void)thread;
    pthread_mutex_lock(&r->lock);
    while (wait && r->put == r->taken) {
        r->waiting++;
        pthread_cond_wait(&r->more, &r->lock);
        r->waiting--;
    }
    for (; n < max && r->taken != r->put; n++) {
        jobs[n] = (struct bench_job){ .number = r->number[r->taken] };
        r->taken = r->taken + 1 < r->room ? r->taken + 1 : 0;
    }
    bool wake = r->put != r->taken && r->waiting > 0;
    pthread_mutex_unlock(&r->lock);
    if (wake)
        pthread_cond_signal(&r->more);
    return n;
}

static bool ring_dequeue(void *q, unsigned thread, struct bench_job *job, bool wait)
{
    return ring_dequeue_batch(q, thread, job, 1, wait) == 1;
}

void limit_through(struct cell *c)
{
    static const struct bench_subject ring = { .name = "limit",
                                               .can = BENCH_NO_TIME,
                                               .open = ring_open,
                                               .close = limit_close,
                                               .enqueue = ring_enqueue,
                                               .enqueue_batch = ring_enqueue_batch,
                                               .dequeue = ring_dequeue,
                                               .dequeue_batch = ring_dequeue_batch };

    without_options(c, "through");
    if (c->o.spread_ns > 0)
        cell_die(CELL_CANNOT, "the limit of through knows no time");
    c->s = &ring;
    work_through(c);
}

/* ---- A bare futex ---------------------------------------------------------------------------- */

struct word {
    atomic_uint full;
    uint64_t number;
};

static void *word_open(const struct bench_setup *setup)
{
    (void)setup;
    return cell_alloc(1, sizeof(struct word));
}

static void word_enqueue(void *q, unsigned thread, const struct bench_job *job,
                         union bench_handle *handle)
{
    struct word *w = q;

    (void)thread;
    (void)handle;
    w->number = job->number;
    atomic_store_explicit(&w->full, 1, memory_order_release);
    syscall(SYS_futex, &w->full, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static bool word_dequeue(void *q, unsigned thread, struct bench_job *job, bool wait)
{
    struct word *w = q;

    (void)thread;
    while (atomic_load_explicit(&w->full, memory_order_acquire) == 0) {
        if (!wait)
            return false;
        syscall(SYS_futex, &w->full, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    }
    *job = (struct bench_job){ .number = w->number };
    atomic_store_explicit(&w->full, 0, memory_order_relaxed);
    return true;
}

void limit_handoff(struct cell *c)
{
    static const struct bench_subject word = { .name = "limit",
                                               .open = word_open,
                                               .close = limit_close,
                                               .enqueue = word_enqueue,
                                               .dequeue = word_dequeue };

    without_options(c, "handoff");
    c->s = &word;
    work_handoff(c);
}

/* ---- A compare-and-swap ---------------------------------------------------------------------- */

/* In lines of their own, as jobs are, or as dense as can be. */
struct swap_words {
    atomic_ullong *word;
    size_t step;
};

static void *swap_open(const struct bench_setup *setup)
{
    struct swap_words *w = cell_alloc(1, sizeof *w);

    w->step = setup->line / sizeof *w->word;
    w->word = cell_alloc(setup->jobs * w->step, sizeof *w->word);
    return w;
}

static void swap_enqueue(void *q, unsigned thread, const struct bench_job *job,
                         union bench_handle *handle)
{
    struct swap_words *w = q;

    (void)thread;
    atomic_store_explicit(&w->word[job->number * w->step], 1, memory_order_relaxed);
    handle->number = job->number;
}

static bool swap_dequeue(void *q, unsigned thread, struct bench_job *job, bool wait)
{
    (void)q;
    (void)thread;
    (void)job;
    (void)wait;
    return false;
}

static bool swap_cancel(void *q, unsigned thread, union bench_handle handle)
{
    struct swap_words *w = q;
    unsigned long long waiting = 1;

    (void)thread;
    return atomic_compare_exchange_strong(&w->word[handle.number * w->step], &waiting, 0);
}

void limit_cancel(struct cell *c)
{
    static const struct bench_subject swap = { .name = "limit",
                                               .can = BENCH_CANCEL,
                                               .open = swap_open,
                                               .close = limit_close,
                                               .enqueue = swap_enqueue,
                                               .dequeue = swap_dequeue,
                                               .cancel = swap_cancel };

    without_options(c, "cancel");
    c->s = &swap;
    work_cancel(c);
}
