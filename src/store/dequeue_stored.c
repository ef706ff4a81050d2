/* dequeue_stored.c - taking jobs out of a queue with a store.
 *
 * A job that is taken for good has left the store before its taker has it; one that is reserved has
 * its attempts counted there, where they are limited.
 *
 * Edges      described elsewhere: E3 tenure.c, J1 slab.h
 */
#include <string.h>

#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/share.h"
#include "store/taking.h"

#define SELDOM_NS DUE_MS(100) /* who looks so seldom that it missed what came waits up to that */
#define ON_STACK  32u         /* jobs; without memory for more, so many at a time */

/* As due__take_some(), but as many as go to the store together. */
static size_t take_many(struct due_queue *q, struct due__request *r, struct due__slot *slots,
                        size_t want, int *rc)
{
    struct due__request part = *r;
    size_t got = 0;

    while (got < want) {
        part.max = want - got;
        size_t some = due__take_some(q, &part, slots + got, rc);
        if (some == 0)
            break;
        got += some;
        part.timeout_ns = 0; /* the rest is what is due now */
    }
    r->until_ns = part.until_ns;
    r->inside = part.inside;
    return got;
}

/* Is the number of attempts of any of them limited? */
static bool any_limited(struct due_queue *q, const struct due__slot *slots, size_t n)
{
    bool any = false;

    for (size_t i = 0; !any && !q->attempts_lazy && i < n; i++)
        any = due__lease_limited(q, due__job_at(&q->slab, due__slot_job(slots[i])));
    return any;
}

/* If no attempts need be counted before, they are leased at once. */
static int lease(struct due_queue *q, struct due__request *r, struct due__slot *slots, size_t n,
                 struct due__deadline *by)
{
    bool limited = any_limited(q, slots, n);
    int rc = due__commit_held(q, by);

    if (rc == 0 && limited)
        rc = due__lease_records(q, slots, n); /* the attempts are counted there */
    if (rc != 0) {
        due__put_back(q, slots, n);
        return rc;
    }
    if (limited)
        return due__take_stored(q, r, slots, n, DUE__ATTEMPT, by);
    rc = due__lease_for(q, r, slots, n);
    return rc == 0 ? (int)n : rc;
}

/* The taken jobs go to the caller.  Answers how many of them he has (0: they were not to be handed
 * out), or an error. */
static int hand_out(struct due_queue *q, struct due__request *r, struct due__slot *slots, size_t n,
                    struct due__deadline *by)
{
    int rc = 0;

    if (q->shared)
        n = due__sharing_fit(q, r, slots, n, by, &rc);
    if (n > 0)
        n = due__attempts_check(q, slots, n, by, &rc);
    if (n == 0)
        return rc;
    return r->lease_ns != 0 ? lease(q, r, slots, n, by)
                            : due__take_stored(q, r, slots, n, DUE__TAKE, by);
}

/* Timeouts on a clock that is turned by hand are none for a store. */
static bool timed(const struct due_queue *q, const struct due__request *r)
{
    return q->clock.manual == NULL && r->timeout_ns > 0 && r->timeout_ns != DUE_FOREVER;
}

/* How long the call waits for the store from here on: no longer than it may wait at all.
 * @asked_ns: until then, though it polls; 0: not. */
static struct due__deadline deadline_of(const struct due_queue *q, const struct due__request *r,
                                        int64_t asked_ns)
{
    struct due__deadline by = { 0 };

    by.polls = due__polls(r);
    if (by.polls)
        by.at_ns = asked_ns != 0 ? asked_ns : due__monotonic_now();
    if (timed(q, r)) {
        int64_t left = r->until_ns - due__monotonic_now();

        by.timeout_ns = left > 0 ? left : 1;
    }
    return by;
}

/* A poll of a shared queue has found nothing.  Does what came for the last one lie in the store
 * again?  Then it is asked for at once, until *@asked_ns: true; but only once. */
static bool ask_now(struct due_queue *q, const struct due__request *r, int64_t *asked_ns)
{
    struct due__ask ask = { .kind = DUE__ASK_CLAIM };

    if (!due__sharing_polled(q, r, *asked_ns != 0))
        return false;
    *asked_ns = due__time_add(due__monotonic_now(), SELDOM_NS);
    struct due__deadline by = { .at_ns = *asked_ns };
    (void)due__sharing_ask(q, &ask, &by);
    return true;
}

/* By @slots, of which there are @max. */
static int dequeue(struct due_queue *q, struct due__request *r, struct due__slot *slots, size_t max)
{
    int64_t asked = 0;

    for (;;) {
        struct due__deadline by = deadline_of(q, r, asked);
        if (q->shared)
            due__sharing_asked(q, r);
        int rc = due__take_left(q, r, &by);

        if (rc == 0) {
            size_t got = take_many(q, r, slots, max, &rc);

            if (got == 0 && rc == DUE__LANDED)
                continue;
            if (got == 0 && rc == DUE_EAGAIN && q->shared && r->quit == NULL && /* he waits next */
                ask_now(q, r, &asked))
                continue;
            if (got == 0) /* a worker just goes on */
                return r->quit == NULL ? due__commit_why(q, rc) : rc;
            by = deadline_of(q, r, asked);
            rc = hand_out(q, r, slots, got, &by);
        }
        if (rc == DUE_ESTALE) /* another has it by now */
            continue;
        if (rc == DUE_ETIMEDOUT && r->quit != NULL && due__load_seq(r->quit)) /* E3 */
            return rc;
        if (rc == DUE_ETIMEDOUT && r->timeout_ns != DUE_FOREVER)
            return DUE_ESTORE;
        if (rc != 0 && rc != DUE_ETIMEDOUT) /* else the store is away: the caller waits for it */
            return rc;
    }
}

int due__dequeue_stored(struct due_queue *q, struct due__request *r)
{
    size_t want = r->max < DUE__TAKEN_AT_ONCE ? r->max : DUE__TAKEN_AT_ONCE;
    size_t bytes = want * sizeof(struct due__slot);
    struct due__slot few[ON_STACK];
    struct due__slot *many = want > ON_STACK ? due__alloc_raw(&q->alloc, bytes) : NULL;

    if (timed(q, r))
        r->until_ns = due__time_add(due__monotonic_now(), r->timeout_ns);
    int rc =
        dequeue(q, r, many != NULL ? many : few, many != NULL || want < ON_STACK ? want : ON_STACK);
    due__alloc_free(&q->alloc, many, bytes);
    return rc;
}
