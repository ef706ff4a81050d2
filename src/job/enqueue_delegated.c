/* enqueue_delegated.c - jobs left in the inbox, for somebody else to sort in; and those that are
 * not accepted.
 *
 * Edges      described elsewhere: E1 E2 E3 tenure.c, I1 I3 inbox.c, J1 slab.h
 */
#include "job/enqueue_delegated.h"

#include "job/claim.h"
#include "job/discard.h"
#include "job/fresh.h"
#include "job/key_policy.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/queue.h"

static struct due__key *key_of(const struct due__fresh *it)
{
    return (it->f.payload & DUE__EXTRAS) ? due__extras_at(it->job)->key : NULL;
}

/* The job waits from here on, and anybody may cancel it: its node is about to be put. */
static inline void begin(const struct due__fresh *it)
{
    due__facts_store(it->job, it->f);
    due__store_relaxed(&it->job->deadline_ns, it->deadline_ns);                    /* J1 */
    due__word_begin(&it->job->word, it->generation, 0, DUE__WAITING, DUE__LINKED); /* J1 */
}

/* Leave a job in the inbox. */
static void put(struct due_queue *q, const struct due__fresh *it)
{
    begin(it);
    due__inbox_put(&q->inbox, &it->job->link.node); /* E1 */
}

/* Jobs were left in the inbox: may one of them stand before one that is shown?  If not, takers need
 * not wait for their being sorted in.  One without delay cannot, unless it has a priority and is
 * given the same deadline. */
static bool late(struct due_queue *q, const struct due__fresh *jobs, size_t n)
{
    int64_t first = DUE_FOREVER;
    bool higher = false;

    for (size_t i = 0; i < n; i++) {
        if (jobs[i].f.payload & DUE__NOW)
            higher |= jobs[i].f.priority > 0;
        else if (jobs[i].deadline_ns < first)
            first = jobs[i].deadline_ns;
    }
    return higher || q->clock.steps ||
           (first != DUE_FOREVER && due__clock_passed(&q->clock, first)); /* I3: after the put */
}

void due__put_all(struct due_queue *q, const struct due__fresh *jobs, size_t n)
{
    struct due__string all = { NULL, NULL };

    for (size_t i = 0; i < n; i++) {
        begin(&jobs[i]);
        due__string_add(&all, &jobs[i].job->link.node);
    }
    due__inbox_put_all(&q->inbox, &all); /* E1, E2, E3 */
    if (q->shows && late(q, jobs, n))
        due__inbox_say_late(&q->inbox); /* I3 */
}

/* Has another call had to do with the caller's own job, whose word was @w?  It was handed out, and
 * somebody may read it still; or it was changed, for somebody who was told that it is in. */
static bool shared(const struct due__fresh *it, uint64_t w)
{
    const struct due__extras *extras = due__extras_of(it->job);

    if (w & DUE__HELD)
        return true;
    return extras != NULL && extras->key != NULL && extras->key->changed;
}

/* The queue closed after @n jobs were left in the inbox: take back what nobody has had yet, last
 * first.  What stands before one that was had is accepted; if no close will find it any more, it
 * is discarded here.  Answers how many were accepted. */
static size_t withdraw(struct due_queue *q, const struct due__fresh *jobs, size_t n)
{
    struct due__tenure t;
    size_t accepted = n;
    bool shared_last = false;
    uint64_t w;

    for (; accepted > 0; accepted--) {
        const struct due__fresh *last = &jobs[accepted - 1];

        if (due__claim(q, last->number, last->generation, NULL, &w) != 0)
            break;
        if (shared(last, w)) {
            due__unclaim(q, last->number, false);
            shared_last = true;
            break;
        }
        due__refuse(q, last, w);
    }
    /* E3: while draining they are still delivered. */
    bool closing = (due__load_seq(&q->state) & DUE__CLOSING) != 0;
    size_t lost = shared_last || accepted == 0 ? accepted : accepted - 1;
    for (size_t i = 0; closing && i < lost; i++) {
        if (due__claim(q, jobs[i].number, jobs[i].generation, NULL, &w) == 0)
            due__discard(q, jobs[i].number, w);
    }
    due__enter(q, &t);
    due__drain(q, DUE__PROXY_BATCH);
    due__tenure_end(q, &t);
    return accepted;
}

/* The jobs were left in the inbox: see that somebody sorts them in.  As submit(). */
static size_t see_to(struct due_queue *q, const struct due__fresh *jobs, size_t n)
{
    struct due__tenure t;

    uint32_t state = due__load_seq(&q->state); /* E2, E3: after the put */
    if (state & DUE__REFUSING)                 /* E3 */
        return withdraw(q, jobs, n);
    if (q->proxies == DUE_PROXIES_ALWAYS) {
        due__bell_ring(&q->enqueue_bell);
    } else if (!(state & DUE__ACTIVE) && due__try_enter(q, &t)) { /* E1, E2 */
        due__catch_up(q, DUE__FOREIGN_MAX);
        due__tenure_end(q, &t);
    }
    return n;
}

/* The lock was busy: leave the jobs in the inbox. */
size_t due__submit_delegated(struct due_queue *q, const struct due__fresh *jobs, size_t n)
{
    due__put_all(q, jobs, n);
    return see_to(q, jobs, n);
}

void due__put_fresh(struct due_queue *q, const struct due__fresh *it)
{
    put(q, it);
}

/* The same of jobs of which some have keys: each goes into the inbox while its key is looked at,
 * and the first that cannot have its key ends it.  Those from there on are given up. */
size_t due__submit_keyed(struct due_queue *q, const struct due__fresh *jobs, size_t n)
{
    size_t left = 0;

    for (; left < n; left++) {
        if (key_of(&jobs[left]) == NULL)
            put(q, &jobs[left]);
        else if (!due__key_submit(q, &jobs[left], NULL))
            break;
    }
    if (left > 0 && q->shows && late(q, jobs, left))
        due__inbox_say_late(&q->inbox); /* I3 */
    for (size_t i = left; i < n; i++) {
        if (q->events != NULL)
            due__tell_refused(q, &jobs[i], 0);
        due__job_release_fresh(q, &jobs[i]);
        due__slab_untake(&q->slab, jobs[i].number);
    }
    if (left < n)
        due__left(q, n - left);
    return left > 0 ? see_to(q, jobs, left) : 0;
}
