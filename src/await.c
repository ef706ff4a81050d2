/* await.c - waiting for the store as such: that it is ours, that it was read, that it has it all.
 *
 * Who waits here waits for no change of his own; he is rung when something was settled, or when
 * everybody is to look again.
 *
 * Guards     D  the calls' lock      A  atomic, see Edges
 *
 * Edges      described elsewhere: G1 G2 commit.c, J1 job.h
 */
#include "commit.h"

#include <pthread.h>

#include "atomic.h"
#include "core.h"

int due__commit_held(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    int64_t until_ns = due__time_add(due__monotonic_now(), c->timeout_ns);
    struct due__asked a;
    int rc = DUE_ETIMEDOUT;

    if (due__boottime_now() < due__load_relaxed(&c->held_ns)) /* no edge: it only grows */
        return due__commit_state(q);
    if (!due__asked_begin(q, &a, 0, UINT64_MAX)) /* never over: rung when it is renewed */
        return DUE_ENOMEM;
    due__bell_ring(&q->enqueue_bell); /* the proxy will look */
    while (rc == DUE_ETIMEDOUT) {
        if (due__load_seq(&c->fenced) || due__load_seq(&c->stopping)) /* G2 */
            rc = due__commit_excuse(q);
        else if (due__boottime_now() < due__load_relaxed(&c->held_ns)) /* no edge: it only grows */
            rc = 0;
        else if (due__monotonic_now() >= until_ns)
            break;
        else
            due__bell_wait(&a.waiter->bell, until_ns, false);
    }
    due__asked_end(q, &a);
    return rc;
}

bool due__commit_loading(const struct due_queue *q)
{
    return due__load_seq(&q->commits->loading) != 0; /* G2 */
}

/* The job @id is known to the index; is it sorted in, or was it?  A page that is under way has not
 * given its jobs a state yet. */
static bool known(struct due_queue *q, due_id id, uint32_t *number, uint32_t *generation)
{
    if (!due__index_find(&q->commits->index, id, number, generation))
        return false;
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, *number)->word); /* J1 */
    return due__word_state(w) != DUE__FREE;
}

/* While the store is read: who has the key finishes his page, then we look for @id alone. */
static int look_for(struct due_queue *q, due_id id)
{
    struct due__commits *c = q->commits;
    uint32_t number;
    uint32_t generation;
    int cancel;
    int rc = 0;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);      /* as in due__commit_go() */
    due__lock_acquire(&c->key);                                   /* G1 */
    if (due__load_seq(&c->stopping) || due__load_seq(&c->fenced)) /* G2 */
        rc = due__commit_excuse(q);
    else if (due__load_seq(&c->loading) && !known(q, id, &number, &generation)) /* G2 */
        rc = due__restore_one(q, id, due__time_add(due__monotonic_now(), c->timeout_ns));
    due__commit_leave(q, false);
    pthread_setcancelstate(cancel, NULL);
    return rc == DUE_EAGAIN ? DUE_ETIMEDOUT : rc;
}

int due__commit_find(struct due_queue *q, due_id id, uint32_t *number, uint32_t *generation)
{
    struct due__commits *c = q->commits;

    if (known(q, id, number, generation))
        return 0;
    if (due__load_seq(&c->loading)) { /* G2 */
        int rc = look_for(q, id);

        if (rc != 0)
            return rc;
    }
    return due__index_find(&c->index, id, number, generation) ? 0 : DUE_ENOENT;
}

int due__commit_load_error(struct due_queue *q)
{
    return due__load_seq(&q->commits->load_error); /* G2 */
}

int due__commit_why(struct due_queue *q, int rc)
{
    int blocked = rc == DUE_ETIMEDOUT ? due__commit_load_error(q) : 0;

    return blocked != 0 ? blocked : rc;
}

/* Until the proxy has cleared @flag, and rung. */
static int wait_cleared(struct due_queue *q, const uint32_t *flag, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__asked a;
    int rc = 0;

    if (!due__load_seq(flag)) /* G2 */
        return 0;
    if (!due__asked_begin(q, &a, 0, UINT64_MAX)) /* never over: rung when it is cleared */
        return DUE_ENOMEM;
    due__bell_ring(&q->enqueue_bell);        /* the proxy will look */
    while (rc == 0 && due__load_seq(flag)) { /* G2 */
        if (flag == &c->loading)
            rc = due__commit_load_error(q);
        if (rc != 0)
            break;
        if (due__load_seq(&c->fenced) || due__load_seq(&c->stopping) || /* G2 */
            due__monotonic_now() >= until_ns)
            rc = due__commit_excuse(q);
        else
            due__bell_wait(&a.waiter->bell, until_ns, false);
    }
    due__asked_end(q, &a);
    return rc;
}

int due__commit_mended(struct due_queue *q, int64_t until_ns)
{
    return wait_cleared(q, &q->commits->lacking, until_ns);
}

int due__commit_loaded(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    return wait_cleared(q, &c->loading, due__time_add(due__monotonic_now(), c->timeout_ns));
}

int due_flush(due_queue *q, int64_t timeout_ns)
{
    struct due__commits *c = q->commits;
    struct due__asked a;

    if (due__forked(q))
        return DUE_EFORK;
    if (timeout_ns < 0)
        return DUE_EINVAL;
    uint64_t goal = c != NULL ? due__load_relaxed(&c->submitted) : 0; /* no edge: ours at least */
    if (goal == 0)
        return c != NULL ? due__commit_state(q) : 0;
    if (!due__asked_begin(q, &a, 0, goal))
        return DUE_ENOMEM;
    int64_t until = due__time_add(due__monotonic_now(), timeout_ns);
    due__commit_go(q, &a, until);
    due__asked_wait(q, &a, until);
    int rc = due__asked_over(c, &a) ? due__commit_state(q) : due__commit_excuse(q);
    due__asked_end(q, &a);
    return rc;
}
