/* subject_mutex_heap.c - what is written in an afternoon, by somebody who knows how: a mutex, a
 * condition variable, and a binary heap.
 *
 * The heap's slots hold the deadline, so that sifting compares without looking at the jobs; each
 * job knows where it stands in the heap, so that it can be cancelled.  Jobs that are free are kept;
 * where there are none, malloc() gives one.  Bytes over INLINE_BYTES are copied before the lock is
 * taken.  Who waits, waits until the head's deadline; a new head wakes one waiter, and so does who
 * takes a job and leaves others.
 */
#include "subject_mutex_heap.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOWHERE      SIZE_MAX
#define INLINE_BYTES 64

struct job {
    size_t index; /* in the heap, or NOWHERE */
    uint64_t number;
    uint32_t len;
    uint32_t topic;
    unsigned char bytes[]; /* the payload, or a pointer to it */
};

struct slot {
    int64_t at_ns;
    struct job *job;
};

/* The job that a consumer looks at, on a cache line of its own. */
struct lent {
    struct job *job;
    char pad[120];
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned waiting; /* threads in a wait */
    bool draining;    /* no more will be put in */
    struct slot *slot;
    size_t count;
    size_t room;
    struct job **free;
    size_t free_count;
    unsigned char *pool; /* the jobs that are kept, side by side */
    size_t pool_bytes;
    size_t job_bytes;
    struct lent *lent;
    unsigned consumers;
};

static void *must(void *memory)
{
    if (memory == NULL) {
        fputs("mutex-heap: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* ---- The heap -------------------------------------------------------------------------------- */

static inline void place(struct queue *q, size_t i, struct slot s)
{
    q->slot[i] = s;
    s.job->index = i;
}

static void sift_up(struct queue *q, size_t i, struct slot s)
{
    while (i > 0 && s.at_ns < q->slot[(i - 1) / 2].at_ns) {
        place(q, i, q->slot[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place(q, i, s);
}

static void sift_down(struct queue *q, size_t i, struct slot s)
{
    for (size_t child = 2 * i + 1; child < q->count; child = 2 * i + 1) {
        if (child + 1 < q->count && q->slot[child + 1].at_ns < q->slot[child].at_ns)
            child++;
        if (q->slot[child].at_ns >= s.at_ns)
            break;
        place(q, i, q->slot[child]);
        i = child;
    }
    place(q, i, s);
}

static void heap_add(struct queue *q, struct slot s)
{
    if (q->count == q->room) {
        q->room = q->room > 0 ? 2 * q->room : 64;
        q->slot = must(realloc(q->slot, q->room * sizeof *q->slot));
    }
    sift_up(q, q->count++, s);
}

static void heap_remove(struct queue *q, size_t i)
{
    struct slot last = q->slot[--q->count];

    q->slot[i].job->index = NOWHERE;
    if (i == q->count)
        return;
    if (i > 0 && last.at_ns < q->slot[(i - 1) / 2].at_ns)
        sift_up(q, i, last);
    else
        sift_down(q, i, last);
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static struct job *job_take(struct queue *q)
{
    if (q->free_count > 0)
        return q->free[--q->free_count];
    return must(malloc(q->job_bytes));
}

static void job_give(struct queue *q, struct job *job)
{
    unsigned char *at = (unsigned char *)job;

    if (q->pool != NULL && at >= q->pool && at < q->pool + q->pool_bytes)
        q->free[q->free_count++] = job;
    else
        free(job);
}

static void *apart(const struct job *job)
{
    void *bytes = NULL;

    if (job->len > INLINE_BYTES)
        memcpy(&bytes, job->bytes, sizeof bytes);
    return bytes;
}

/* ---- The operations -------------------------------------------------------------------------- */

static void reserve(struct queue *q, size_t jobs)
{
    q->room = jobs;
    q->slot = must(malloc(jobs * sizeof *q->slot));
    memset(q->slot, 1, jobs * sizeof *q->slot);
    q->free = must(malloc(jobs * sizeof *q->free));
    q->pool_bytes = jobs * q->job_bytes;
    q->pool = must(malloc(q->pool_bytes));
    memset(q->pool, 1, q->pool_bytes);
    for (size_t i = jobs; i > 0; i--)
        q->free[q->free_count++] = (struct job *)(void *)(q->pool + (i - 1) * q->job_bytes);
}

void *mutex_heap_open(const struct bench_setup *setup)
{
    struct queue *q = calloc(1, sizeof *q);
    pthread_condattr_t attr;
    size_t payload = setup->payload <= INLINE_BYTES ? setup->payload : sizeof(void *);

    if (q == NULL)
        return NULL;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->changed, &attr);
    pthread_condattr_destroy(&attr);
    q->consumers = setup->consumers;
    q->lent = must(calloc(setup->consumers, sizeof *q->lent));
    q->job_bytes = sizeof(struct job) + (payload + 7) / 8 * 8;
    if (!setup->lean)
        reserve(q, setup->jobs);
    return q;
}

void mutex_heap_close(void *queue)
{
    struct queue *q = queue;

    while (q->count > 0) {
        struct job *job = q->slot[0].job;

        heap_remove(q, 0);
        free(apart(job));
        job_give(q, job);
    }
    for (unsigned i = 0; i < q->consumers; i++) {
        if (q->lent[i].job != NULL)
            job_give(q, q->lent[i].job);
    }
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q->slot);
    free(q->free);
    free(q->pool);
    free(q->lent);
    free(q);
}

/* The handle: the job, and its number, for the place may serve another later. */
struct name {
    struct job *job;
    uint64_t number;
};

void mutex_heap_enqueue(void *queue, unsigned thread, const struct bench_job *in,
                        union bench_handle *handle)
{
    struct queue *q = queue;
    int64_t at = in->at_ns != 0 ? in->at_ns : bench_now();
    void *copy = NULL;

    (void)thread;
    if (in->len > INLINE_BYTES) {
        copy = must(malloc(in->len));
        memcpy(copy, in->data, in->len);
    }
    pthread_mutex_lock(&q->lock);
    struct job *job = job_take(q);
    job->number = in->number;
    job->topic = in->topic;
    job->len = in->len;
    if (copy != NULL)
        memcpy(job->bytes, &copy, sizeof copy);
    else if (in->len > 0)
        memcpy(job->bytes, in->data, in->len);
    if (handle != NULL)
        memcpy(handle->byte, &(struct name){ job, in->number }, sizeof(struct name));
    heap_add(q, (struct slot){ at, job });
    bool wake = job->index == 0 && q->waiting > 0;
    pthread_mutex_unlock(&q->lock);
    if (wake)
        pthread_cond_signal(&q->changed);
}

/* Wait for the head's deadline, or for a head. */
static void wait_for_head(struct queue *q)
{
    q->waiting++;
    if (q->count > 0) {
        int64_t at = q->slot[0].at_ns;
        struct timespec t = { .tv_sec = at / 1000000000, .tv_nsec = at % 1000000000 };

        pthread_cond_timedwait(&q->changed, &q->lock, &t);
    } else {
        pthread_cond_wait(&q->changed, &q->lock);
    }
    q->waiting--;
}

/* With the lock: true, the head is due. */
static bool head_is_due(struct queue *q, bool wait, int64_t now)
{
    for (;;) {
        if (q->count > 0 && (q->slot[0].at_ns <= now || q->slot[0].at_ns <= bench_now()))
            return true;
        if (!wait || (q->draining && q->count == 0))
            return false;
        wait_for_head(q);
    }
}

bool mutex_heap_dequeue(void *queue, unsigned thread, struct bench_job *out, bool wait)
{
    struct queue *q = queue;
    struct job **lent = &q->lent[thread].job;
    int64_t now = bench_now(); /* while nobody waits for the lock */

    pthread_mutex_lock(&q->lock);
    if (*lent != NULL)
        job_give(q, *lent);
    *lent = NULL;
    if (!head_is_due(q, wait, now)) {
        pthread_mutex_unlock(&q->lock);
        return false;
    }
    struct job *job = q->slot[0].job;
    out->at_ns = q->slot[0].at_ns;
    out->number = job->number;
    out->topic = job->topic;
    out->len = job->len;
    out->data = NULL;
    heap_remove(q, 0);
    if (job->len == 0)
        job_give(q, job);
    else
        *lent = job;
    bool wake = q->count > 0 && q->waiting > 0;
    bool over = q->draining && q->count == 0;
    pthread_mutex_unlock(&q->lock);
    if (over)
        pthread_cond_broadcast(&q->changed);
    else if (wake)
        pthread_cond_signal(&q->changed);
    if (out->len > 0)
        out->data = out->len > INLINE_BYTES ? apart(job) : job->bytes;
    return true;
}

/* The job itself is given back with the next take's lock. */
void mutex_heap_done(void *queue, unsigned thread, struct bench_job *jobs, size_t n)
{
    const struct queue *q = queue;

    for (size_t i = 0; i < n && q->lent[thread].job != NULL; i++)
        free(apart(q->lent[thread].job));
    (void)jobs;
}

bool mutex_heap_cancel(void *queue, unsigned thread, union bench_handle handle)
{
    struct queue *q = queue;
    struct name name;
    void *copy = NULL;

    (void)thread;
    memcpy(&name, handle.byte, sizeof name);
    pthread_mutex_lock(&q->lock);
    bool found = name.job->index != NOWHERE && name.job->number == name.number;
    if (found) {
        heap_remove(q, name.job->index);
        copy = apart(name.job);
        job_give(q, name.job);
    }
    pthread_mutex_unlock(&q->lock);
    free(copy);
    return found;
}

bool mutex_heap_reschedule(void *queue, unsigned thread, union bench_handle handle, int64_t at_ns)
{
    struct queue *q = queue;
    struct name name;

    (void)thread;
    memcpy(&name, handle.byte, sizeof name);
    pthread_mutex_lock(&q->lock);
    size_t i = name.job->index;
    bool found = i != NOWHERE && name.job->number == name.number;
    if (found && i > 0 && at_ns < q->slot[(i - 1) / 2].at_ns)
        sift_up(q, i, (struct slot){ at_ns, name.job });
    else if (found)
        sift_down(q, i, (struct slot){ at_ns, name.job });
    bool wake = found && name.job->index == 0 && q->waiting > 0;
    pthread_mutex_unlock(&q->lock);
    if (wake)
        pthread_cond_signal(&q->changed);
    return found;
}

void mutex_heap_drain(void *queue)
{
    struct queue *q = queue;

    pthread_mutex_lock(&q->lock);
    q->draining = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

const struct bench_subject bench_mutex_heap = {
    .name = "mutex-heap",
    .about = "a mutex, a condition variable and a binary heap, by hand",
    .can = BENCH_CANCEL | BENCH_VIRTUAL | BENCH_PAYLOAD,
    .open = mutex_heap_open,
    .close = mutex_heap_close,
    .enqueue = mutex_heap_enqueue,
    .dequeue = mutex_heap_dequeue,
    .done = mutex_heap_done,
    .cancel = mutex_heap_cancel,
    .drain = mutex_heap_drain,
    .reschedule = mutex_heap_reschedule,
};
