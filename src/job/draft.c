/* draft.c - what a job is to become takes the place of what it is.
 *
 * Guards     T  the timeline lock, for due__draft_apply()
 *
 * Edges      described elsewhere: J1 slab.h, R1 lease.c
 */
#include "job/draft.h"

#include <pthread.h>

#include "job/dead_letter.h"
#include "job/key_table.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/extras.h"
#include "queue/job_records.h"
#include "queue/queue.h"

void due__draft_exchange(struct due__job *j, struct due__job *made)
{
    struct due__job old = { .word = 0 };
    struct due__facts was = due__facts_load(j);
    struct due__facts is = due__facts_load(made);

    old.payload = j->payload;
    j->payload = made->payload;
    made->payload = old.payload;
    if ((is.payload & DUE__EXTRAS) && (was.payload & DUE__EXTRAS)) {
        due__extras_inherit(due__extras_at(j), due__extras_at(made));
        is.payload |= was.payload & DUE__GROUPED; /* it has the group, and what it was has not */
        was.payload &= (uint8_t)~DUE__GROUPED;
    }
    due__facts_store(j, is);
    due__facts_store(made, was);
}

void due__draft_numbers(const struct due__draft *d, struct due__extras *extras)
{
    if (d->what & DUE_SET_RETRY)
        extras->retry = d->retry;
    if (d->what & DUE_SET_LIMIT) {
        extras->ttl_ns = d->ttl_ns;
        extras->expires_ns = d->expires_ns;
    }
}

/* The job's content, whoever looks at it. */
static void draft_fill(struct due__job *j, struct due__draft *d)
{
    struct due__facts f = due__facts_load(j);

    if (d->whole) {
        due__draft_exchange(j, &d->made);
        return;
    }
    if (f.payload & DUE__EXTRAS)
        due__draft_numbers(d, due__extras_at(j));
    if (d->what & DUE_SET_PRIORITY)
        f.priority = d->priority;
    due__facts_store(j, f);
}

/* A job of the caller's own with a key, which has its new content, waits until another time. */
static void draft_anew(struct due_queue *q, uint32_t number, uint64_t w, const struct due__draft *d)
{
    struct due__lease *l = (w & DUE__HELD) ? due__lease_at(q, number) : NULL;

    due__extras_at(due__job_at(&q->slab, number))->key->term_ns = d->keep_key_ns;
    if (l != NULL) {
        due__store_relaxed(&l->deadline_ns, d->at_ns); /* R1 */
        due__store_relaxed(&l->attempts, 0);           /* R1 */
        due__store_relaxed(&l->failures, 0);           /* R1 */
    }
    if (l != NULL && due__is_dying(q, number)) {
        due__note_kicked(q, number, w);
        due__revive_locked(q, number, d->at_ns);
    } else {
        due__wait_again(q, number, due__limiter_left(q, number, w), d->at_ns);
    }
}

void due__draft_apply(struct due_queue *q, uint32_t number, struct due__draft *d)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word);        /* J1: the caller's own */
    int64_t at = due__load_relaxed(&j->deadline_ns); /* J1 */
    bool dead = (w & DUE__HELD) && due__is_dying(q, number);
    bool unseen = due__word_state(w) == DUE__MOVING;

    draft_fill(j, d);
    if (unseen && (w & DUE__LINKED)) /* no slot bears its stamp: who looks sees that it changed */
        w = due__word_stamped(w, due__word_stamp(w) + 1);
    if (d->what & DUE__SET_ANEW) {
        draft_anew(q, number, w, d);
    } else if (unseen && (dead || !(d->what & (DUE_SET_TIME | DUE_SET_PRIORITY)))) {
        due__word_set(&j->word, due__word_as(w, dead ? DUE__DEAD : DUE__WAITING)); /* J1 */
    } else if (dead) {
        due__bury_locked(q, number);
    } else {
        if (d->what & DUE_SET_TIME) {
            at = d->at_ns;
            if (w & DUE__HELD)
                due__store_relaxed(&due__lease_at(q, number)->deadline_ns, at); /* R1 */
            w = due__limiter_left(q, number, w);
        }
        due__wait_again(q, number, w, at);
    }
}

void due__draft_show(struct due_queue *q, const struct due__draft *d)
{
    due_job job = { .id = d->id, .ptr = due__job_pointer(&d->made, due__facts_load(&d->made)) };
    int cancel;

    if (!(d->what & DUE__SET_ANEW) || job.ptr == NULL || q->hooks.on_discard == NULL)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    q->hooks.on_discard(q->hooks.discard_ctx, &job);
    pthread_setcancelstate(cancel, NULL);
}

void due__draft_free(struct due_queue *q, struct due__draft *d)
{
    due__job_release(&q->slab, &d->made);
    due__alloc_free(&q->alloc, d, sizeof *d);
}
