/* cancel.c - due_cancel(), due_cancel_batch(), due_clear().
 *
 * Edges      described elsewhere: J1 slab.h, C2 closing.c
 */
#include "job/cancel.h"

#include <limits.h>

#include "api/dequeue.h"
#include "job/bulk.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/inside.h"
#include "queue/queue.h"

/* The usual case, a job that was sorted in and is not wanted back, in one step from waiting to
 * free.  The way to it is kept short, so that the processor can fetch the jobs of several cancels
 * at a time.  False: nothing was done. */
static inline __attribute__((always_inline)) bool cancel_plain(struct due_queue *q, due_id id)
{
    uint32_t number;
    uint32_t generation;

    if (!due__id_read_made(q, id, &number, &generation))
        return false;
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    if (due__word_generation(w) != generation || generation == UINT32_MAX ||
        (w & (DUE__STATE_MASK | DUE__LINKED | DUE__HELD | DUE__PASSED)) != DUE__WAITING ||
        (due__facts_load(j).payload & DUE__EXTRAS)) /* so it may have a key */
        return false;
    uint64_t ready = w & DUE__READY;
    if (!due__word_cancel(&j->word, &w)) /* J1 */
        return false;
    due__job_release(&q->slab, j); /* still the caller's: it is in no magazine yet */

    struct due__shard *it = due__shard_enter(&q->slab);
    uint64_t count = ++it->cancelled; /* C2 of closing.c */
    it->unready += ready != 0;
    due__shard_push(&q->slab, it, number);
    due__shard_leave(it);
    due__cancelled(q, count);
    return true;
}

/* Any other. */
static __attribute__((noinline)) int cancel_any(due_queue *q, due_id id, due_job *job)
{
    struct due__deadline by = { 0 };

    if (due__forked(q))
        return due__one_or_none(job, DUE_EFORK);
    bool inside = due__inside_stored(q);
    int rc = due__named(q, due__cancel(q, id, job, &by));
    due__inside_end(q, inside);
    return due__one_or_none(job, rc);
}

int due_cancel(due_queue *q, due_id id, due_job *job)
{
    if (job == NULL && q->short_ways && !due__forked(q) && cancel_plain(q, id))
        return 0;
    return cancel_any(q, id, job);
}

#define LOOK_AHEAD 8u /* ids of a batch whose jobs are on their way into the cache */

static void prefetch(struct due_queue *q, due_id id)
{
    uint32_t number;
    uint32_t generation;

    if (due__id_read(q, id, &number, &generation))
        due__job_prefetch(&q->slab, number);
}

int due_cancel_batch(due_queue *q, const due_id *ids, size_t n, int *results)
{
    int cancelled = 0;

    if (due__forked(q))
        return DUE_EFORK;
    if (n > INT_MAX)
        return DUE_EINVAL;
    if (!q->short_ways) {
        bool inside = due__inside_stored(q);

        cancelled = due__cancel_all(q, ids, n, results);
        due__inside_end(q, inside);
        return cancelled;
    }
    for (size_t i = 0; i < n && i < LOOK_AHEAD; i++)
        prefetch(q, ids[i]);
    for (size_t i = 0; i < n; i++) {
        if (i + LOOK_AHEAD < n)
            prefetch(q, ids[i + LOOK_AHEAD]);
        int rc = cancel_plain(q, ids[i]) ? 0 : cancel_any(q, ids[i], NULL);

        cancelled += rc == 0;
        if (results != NULL)
            results[i] = rc;
    }
    return cancelled;
}

int due_clear(due_queue *q, int topic, uint64_t *cleared)
{
    uint64_t n = 0;

    if (due__forked(q))
        return DUE_EFORK;
    if (topic != DUE_ALL_TOPICS && due_topic_name(q, topic) == NULL)
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    int rc = due__clear_all(q, topic, &n);
    due__inside_end(q, inside);
    if (cleared != NULL && (rc == 0 || n > 0))
        *cleared = n;
    return rc;
}
