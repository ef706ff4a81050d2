/* lent.c - a job while it is with a caller: what he sees of it, and giving it back.
 *
 * Edges      described elsewhere: J1 job.h
 */
#include "core.h"

#include <string.h>

#include "atomic.h"

void due__job_fill(struct due_queue *q, uint32_t number, int64_t deadline_ns, int64_t now_ns,
                   due_job *job)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */
    struct due__facts f = due__facts_load(j);

    *job = (due_job){
        .id = due__id(q, number, due__word_generation(w)),
        .data = due__job_bytes(j, f),
        .len = f.len,
        .ptr = (f.payload & DUE__PAYLOAD_MASK) == DUE__POINTER ? j->payload.ptr : NULL,
        .deadline_ns = deadline_ns,
        .lateness_ns = now_ns > deadline_ns ? now_ns - deadline_ns : 0,
        .topic = f.topic,
        .priority = f.priority,
        .queue = q,
    };
}

void due__place_done(struct due_queue *q, struct due__shard *it, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    while (w & DUE__LINKED) {
        if (due__cas_acq_rel(&j->word, &w, (w & ~DUE__STATE_MASK) | DUE__DONE)) /* J1 */
            return;
    }
    due__slab_give_in(&q->slab, it, number);
}

void due_job_done(due_job *job)
{
    due_queue *q = job->queue;
    uint32_t number;
    uint32_t generation;

    if (q != NULL && !due__forked(q) && due__id_read(q, job->id, &number, &generation)) {
        struct due__job *j = due__job_at(&q->slab, number);
        uint64_t w = due__load_acquire(&j->word); /* J1 */

        if (due__word_generation(w) == generation && due__word_state(w) == DUE__LENT) {
            due__job_release(&q->slab, j);

            struct due__shard *it = due__shard_enter(&q->slab);
            it->done++;
            due__place_done(q, it, number);
            due__shard_leave(it);
        }
    }
    memset(job, 0, sizeof *job);
}
