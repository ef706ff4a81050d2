/* discard.c - jobs that leave otherwise than by hand-over: shown to on_discard, or left to the
 * store.
 *
 * Edges      described elsewhere: E3 tenure.c, C2 closing.c, G2 sender.c, J1 slab.h
 */
#include "job/discard.h"

#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/handover.h"
#include "job/key_table.h"
#include "job/release.h"
#include "os/atomic.h"
#include "queue/capacity.h"
#include "queue/closing.h"

void due__discard(struct due_queue *q, uint32_t number, uint64_t w)
{
    struct due__job *j = due__job_at(&q->slab, number);

    due__key_end(q, number, false);
    if ((w & DUE__HELD) && due__is_dying(q, number))
        due__dead_letter_close(q, number);
    due__step(q, number, DUE__S_DISCARDED, w);
    if (q->hooks.on_discard != NULL) {
        int64_t deadline = due__load_relaxed(&j->deadline_ns); /* J1: the caller's own */
        due_job job;
        int cancel;

        due__job_fill(q, number, deadline, 0, &job);
        job.queue = NULL; /* done with when the hook returns */
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        q->hooks.on_discard(q->hooks.discard_ctx, &job);
        pthread_setcancelstate(cancel, NULL);
    }
    bool last = due__job_unhold(q, number, w);

    struct due__shard *it = due__shard_enter(&q->slab);
    it->discarded++; /* C2 of closing.c */
    it->unready += (w & DUE__READY) != 0;
    if (last)
        due__place_done(q, it, number);
    due__shard_leave(it);
    if (q->capacity > 0)
        due__capacity_give(q, 1);
    due__left(q, 1);
}

/* Its room, in a queue with a capacity, is nobody's any more: the queue closes or drains, or
 * another process owns the jobs, so nobody is let in.  What the store lacks is shown, or it would
 * vanish in silence. */
void due__keep_stored(struct due_queue *q, uint32_t number)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */

    if (q->journal->lacks(q, number)) {
        due__discard(q, number, w);
        return;
    }
    due__key_end(q, number, false);
    if ((w & DUE__HELD) && due__is_dying(q, number))
        due__dead_letter_close(q, number);
    due__step(q, number, DUE__S_KEPT, w);
    bool last = due__job_unhold(q, number, w);
    struct due__shard *it = due__shard_enter(&q->slab);

    it->kept++; /* C2 of closing.c */
    it->unready += (w & DUE__READY) != 0;
    if (last)
        due__place_done(q, it, number);
    due__shard_leave(it);
    due__left(q, 1);
}

/* G2 of sender.c: who makes a job wait does so, then looks whether the queue stops; who closes says
 * that it stops, then looks at every job.  So one of them sees it. */
void due__keep_if_closed(struct due_queue *q, uint32_t number, uint32_t generation)
{
    uint64_t w;

    if (!due__closed(q)) /* E3, G2 of sender.c */
        return;
    if (due__claim(q, number, generation, NULL, &w) != 0)
        return;
    due__keep_stored(q, number);
}

void due__leases_discard(struct due_queue *q)
{
    for (uint32_t at = 0; at < due__slab_end(&q->slab); at++) {
        struct due__job *j = due__job_at(&q->slab, at);
        uint64_t w = due__load_acquire(&j->word); /* J1: nobody else is there any more */

        if (due__word_state(w) != DUE__LEASED && due__word_state(w) != DUE__DEAD &&
            due__word_state(w) != DUE__WAITING)
            continue;
        due__word_keep(&j->word, due__word_as(w, DUE__CLAIMED)); /* J1 */
        due__keep_stored(q, at);
    }
}
