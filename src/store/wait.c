/* wait.c - waiting for the store as such: that it is ours, that it was read, that it has it all.
 *
 * Who waits here waits for no change of his own; he is rung when something was settled, or when
 * everybody is to look again.
 *
 * Guards     D  the calls' lock      A  atomic, see Edges
 *
 * Edges      described elsewhere: G1 G2 sender.c, J1 slab.h
 */
#include <pthread.h>

#include "os/atomic.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "store/sender.h"

int64_t due__deadline_at(const struct due_queue *q, struct due__deadline *by)
{
    int64_t limit = q->commits->timeout_ns;

    if (by->timeout_ns > 0 && by->timeout_ns < limit)
        limit = by->timeout_ns;
    if (by->at_ns == 0)
        by->at_ns = due__time_add(due__monotonic_now(), limit);
    return by->at_ns;
}

int due__commit_held(struct due_queue *q, struct due__deadline *by)
{
    struct due__commits *c = q->commits;
    struct due__asked a;
    int rc = DUE_ETIMEDOUT;

    if (due__boottime_now() < due__load_relaxed(&c->held_ns)) /* no edge: it only grows */
        return due__commit_state(q);
    if (!due__asked_begin(q, &a, 0, UINT64_MAX)) /* never over: rung when it is renewed */
        return DUE_ENOMEM;
    int64_t until_ns = due__deadline_at(q, by);
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
    bool away = due__load_relaxed(&c->state) == DUE_ESTORE; /* no edge: a guess */
    return rc == DUE_ETIMEDOUT && by->polls && !away ? DUE_EAGAIN : rc;
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

/* With the key, while the store is read: the job @id alone.  DUE_EAGAIN: not in time. */
static int look_for(struct due_queue *q, due_id id, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    uint32_t number;
    uint32_t generation;

    if (due__load_seq(&c->stopping) || due__load_seq(&c->fenced)) /* G2 */
        return due__commit_excuse(q);
    if (!due__reader_loads(c) || known(q, id, &number, &generation)) /* G2 */
        return 0;
    return due__restore_one(q, id, until_ns);
}

/* Under the calls' lock: the next call that looks for a job; NULL: none does. */
static struct due__asked *next_find(const struct due__commits *c)
{
    struct due__asked *a = c->first;

    while (a != NULL && a->find == NULL)
        a = a->next;
    return a;
}

/* A call whose job is being looked for waits for that: it may be looked for a while longer than it
 * has time, if somebody else waits longer. */
void due__commit_finds(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    for (;;) {
        due__lock_acquire(&c->calls);
        struct due__asked *a = next_find(c);
        if (a == NULL)
            break;
        due_id id = *a->find;
        int64_t until = a->until_ns;
        a->find = NULL;
        due__lock_release(&c->calls);
        int rc = look_for(q, id, until);
        due__lock_acquire(&c->calls);
        a->rc = rc;
        due__asked_less(a);
        due__bell_ring(&a->waiter->bell);
        due__lock_release(&c->calls);
    }
    due__lock_release(&c->calls);
}

/* Who has the key may be about something else that takes long: then the proxy looks, as soon as it
 * has it, and the call waits for that no longer than it would for the store. */
static int ask_for(struct due_queue *q, due_id id, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__asked a;

    if (!due__asked_begin(q, &a, 1, 0))
        return DUE_ENOMEM;
    due__lock_acquire(&c->calls);
    a.find = &id;
    a.until_ns = until_ns;
    due__lock_release(&c->calls);
    due__bell_ring(&q->enqueue_bell);
    due__asked_wait(q, &a, until_ns);
    due__lock_acquire(&c->calls);
    bool looked = a.find == NULL;
    a.find = NULL;
    due__lock_release(&c->calls);
    if (looked)
        due__asked_settle(c, &a);
    int rc = looked ? a.rc : due__commit_excuse(q);
    due__asked_end(q, &a);
    return rc;
}

static int find_stored(struct due_queue *q, due_id id, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    int cancel;
    int rc;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* as in due__commit_go() */
    if (due__lock_try(&c->key)) {                            /* G1 */
        rc = look_for(q, id, until_ns);
        due__commit_leave(q, false);
    } else {
        rc = ask_for(q, id, until_ns);
    }
    pthread_setcancelstate(cancel, NULL);
    return rc == DUE_EAGAIN ? DUE_ETIMEDOUT : rc;
}

int due__commit_find(struct due_queue *q, due_id id, struct due__deadline *by, uint32_t *number,
                     uint32_t *generation)
{
    struct due__commits *c = q->commits;

    if (known(q, id, number, generation))
        return 0;
    if (due__reader_loads(c)) {
        int rc = find_stored(q, id, due__deadline_at(q, by));

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

static bool lacks(const struct due__commits *c)
{
    return due__load_seq(&c->lacking) != 0; /* G2 */
}

/* Until the proxy has seen to it that @holds does not hold any more, and rung. */
static int wait_not(struct due_queue *q, bool (*holds)(const struct due__commits *c),
                    int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__asked a;
    int rc = 0;

    if (!holds(c))
        return 0;
    if (!due__asked_begin(q, &a, 0, UINT64_MAX)) /* never over: rung when it is so */
        return DUE_ENOMEM;
    due__bell_ring(&q->enqueue_bell); /* the proxy will look */
    while (rc == 0 && holds(c)) {
        if (holds == due__reader_loads)
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
    return wait_not(q, lacks, until_ns);
}

int due__commit_loaded(struct due_queue *q, struct due__deadline *by)
{
    if (!due__commit_loading(q))
        return 0;
    return wait_not(q, due__reader_loads, due__deadline_at(q, by));
}

int due__commit_whole(struct due_queue *q, struct due__deadline *by)
{
    bool all = q->commits == NULL || due__load_seq(&q->commits->stopping); /* G2 */

    return all ? 0 : due__commit_loaded(q, by);
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

int due__commit_flush(struct due_queue *q, struct due__deadline *by)
{
    int64_t left = due__deadline_at(q, by) - due__monotonic_now();

    return due_flush(q, left > 0 ? left : 0);
}
