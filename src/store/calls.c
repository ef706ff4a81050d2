/* calls.c - calls that wait for the store, and the one way in which they do.
 *
 * Each call waits on the bell of a waiter of its own: until its changes have ended, or until what
 * it asks for is so (due__reached).  Who changes anything that calls may wait for rings those that
 * have got it, under the calls' lock, or rings them all to look again.
 *
 * Guards     D  the calls' lock      A  atomic, see Edges      O  its owner's alone
 *
 * Edges      G2, G3 of sender.c  described elsewhere: C1 inside.c
 */
#include <assert.h>

#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "store/sender.h"
#include "store/share.h"

#define HEAR_NS DUE_MS(100) /* who sends has an answer, and is about to tell it */

/* ---- The list of them ---- */

static void submission_link(struct due__commits *c, struct due__submission *a)
{
    a->prev = NULL;
    a->next = c->first;
    if (c->first != NULL)
        c->first->prev = a;
    c->first = a;
}

static void submission_unlink(struct due__commits *c, struct due__submission *a)
{
    if (a->prev != NULL)
        a->prev->next = a->next;
    else
        c->first = a->next;
    if (a->next != NULL)
        a->next->prev = a->prev;
}

/* It is known, and has a waiter.  False: no memory. */
static bool asked_enter(struct due_queue *q, struct due__submission *a)
{
    struct due__commits *c = q->commits;

    due__inside_enter(q); /* C1 of inside.c */
    due__lock_acquire(&c->calls);
    a->waiter = c->spare;
    if (a->waiter != NULL) {
        c->spare = a->waiter->after[0];
        a->waiter->after[0] = NULL;
    } else {
        due__lock_release(&c->calls);
        a->waiter = due__waiter_get(q);
        if (a->waiter == NULL) {
            due__inside_leave(q);
            return false;
        }
        due__lock_acquire(&c->calls);
    }
    submission_link(c, a);
    due__lock_release(&c->calls);
    return true;
}

bool due__submission_begin(struct due_queue *q, struct due__submission *a, uint32_t changes)
{
    *a = (struct due__submission){ .over = changes == 0, .left = changes };
    return asked_enter(q, a);
}

bool due__submission_begin_until(struct due_queue *q, struct due__submission *a,
                                 due__reached *reached, uint64_t goal)
{
    *a = (struct due__submission){ .reached = reached, .goal = goal };
    return asked_enter(q, a);
}

void due__submission_end(struct due_queue *q, struct due__submission *a)
{
    struct due__commits *c = q->commits;
    struct due__waiter *w = a->waiter;

    due__lock_acquire(&c->calls);
    submission_unlink(c, a);
    struct due__waiter *after[2] = { w->after[0], w->after[1] };
    w->after[0] = c->spare;
    w->after[1] = NULL;
    c->spare = w;
    due__lock_release(&c->calls);
    due__ring_waiters(q, after, 2);
    due__inside_leave(q);
}

/* ---- What it waits for ---- */

bool due__submission_over(struct due__commits *c, const struct due__submission *a)
{
    if (a->reached == NULL)
        return due__load_acquire(&a->over); /* G3 */
    due__lock_acquire(&c->calls);
    bool yes = a->reached(c, a);
    due__lock_release(&c->calls);
    return yes;
}

bool due__submission_less(struct due__submission *a)
{
    assert(a->left > 0);
    if (--a->left > 0)
        return false;
    due__store_release(&a->over, 1); /* G3 */
    return true;
}

void due__submission_fewer(struct due__commits *c, struct due__submission *a, uint32_t changes)
{
    due__lock_acquire(&c->calls);
    a->left -= changes;
    if (a->left == 0)
        due__store_release(&a->over, 1); /* G3 */
    due__lock_release(&c->calls);
}

void due__submission_detach(struct due__submission *a, struct due__submission **of)
{
    *of = NULL;
    if (a != NULL)
        due__submission_less(a);
}

void due__submission_each(struct due__submission *a, const uint32_t *numbers, size_t n,
                          int *results)
{
    a->numbers = numbers;
    a->results = results;
    a->count = (uint32_t)n;
}

/* ---- Ringing ---- */

void due__ring_waiters(struct due_queue *q, struct due__waiter *const *waiters, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (waiters[i] != NULL && due__bell_ring(&waiters[i]->bell))
            due__add_relaxed(&q->rings, 1); /* no edge: a counter */
    }
}

void due__submission_ring(struct due__commits *c)
{
    due__lock_acquire(&c->calls);
    for (struct due__submission *a = c->first; a != NULL; a = a->next)
        due__bell_ring(&a->waiter->bell);
    due__lock_release(&c->calls);
}

void due__submission_ring_reached(struct due__commits *c)
{
    for (struct due__submission *a = c->first; a != NULL; a = a->next) {
        if (a->reached != NULL && a->reached(c, a))
            due__bell_ring(&a->waiter->bell);
    }
}

/* ---- Waiting ---- */

int64_t due__deadline_at(const struct due_queue *q, struct due__deadline *by)
{
    int64_t limit = q->commits->timeout_ns;

    if (by->timeout_ns > 0 && by->timeout_ns < limit)
        limit = by->timeout_ns;
    if (by->at_ns == 0)
        by->at_ns = due__time_add(due__monotonic_now(), limit);
    return by->at_ns;
}

/* The one place where a call waits.  One that is to be @settled does so whatever happens: its end
 * is near. */
static bool asked_await(struct due__commits *c, struct due__submission *a, bool settled,
                        int64_t until_ns)
{
    while (!due__submission_over(c, a)) {
        if (!settled && (due__load_seq(&c->stopping) || due__load_seq(&c->fenced) || /* G2 */
                         due__monotonic_now() >= until_ns))
            return false;
        due__bell_wait(&a->waiter->bell, until_ns, false);
    }
    return true;
}

bool due__submission_wait(struct due__commits *c, struct due__submission *a, int64_t until_ns)
{
    return asked_await(c, a, false, until_ns);
}

void due__submission_hear(struct due__commits *c, struct due__submission *a, int64_t until_ns)
{
    int64_t soon = due__time_add(due__monotonic_now(), HEAR_NS);

    while (!due__submission_over(c, a) &&
           due__monotonic_now() < (soon < until_ns ? soon : until_ns))
        due__bell_wait(&a->waiter->bell, soon < until_ns ? soon : until_ns, false);
}

void due__submission_settle(struct due__commits *c, struct due__submission *a)
{
    if (a != NULL)
        asked_await(c, a, true, DUE_FOREVER);
}

int due__commit_excuse(struct due_queue *q)
{
    const struct due__commits *c = q->commits;

    if (due__load_seq(&c->fenced)) /* G2 */
        return DUE_EFENCED;
    return due__load_seq(&c->stopping) ? DUE_ECLOSED : DUE_ETIMEDOUT; /* G2 */
}

int due__refusal(struct due_queue *q, const struct due__submission *a)
{
    if (a == NULL || a->rc != DUE_EINDOUBT)
        return a != NULL ? a->rc : 0;
    return due__commit_excuse(q); /* this one was not sent */
}

/* ---- Those who are to look ---- */

void due__proxy_call(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    due__bell_ring(&q->enqueue_bell);
    if (c->share != NULL)
        c->share->verbs->wake(c->store); /* X3 of share_claim.c */
}

void due__commit_fence(struct due_queue *q, const char *why)
{
    struct due__commits *c = q->commits;

    if (due__load_seq(&c->fenced)) /* G2 */
        return;
    due__store_seq(&c->fenced, 1); /* G2 */
    due__log(q, DUE_LOG_ERROR, "%s: %s", q->name, why);
    due__submission_ring(c);
    due__wake_consumers(q);
}
