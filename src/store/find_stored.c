/* find_stored.c - a job of a stored queue by its id; while the store is being read, in the store.
 *
 * Edges      described elsewhere: G1 G2 sender.c, J1 slab.h
 */
#include <pthread.h>

#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"
#include "store/share.h"

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
static struct due__submission *next_find(const struct due__commits *c)
{
    struct due__submission *a = c->first;

    while (a != NULL && a->find == NULL && a->ask == NULL)
        a = a->next;
    return a;
}

/* Under the calls' lock: what a call asks cannot be answered as things are, and it has time left:
 * it asks still, at the next turn.  If the queue stops meanwhile there is one: who closes wakes
 * the proxy after that (stop() of attach.c), and the call may wait for an end that only a turn
 * brings. */
static bool asks_still(struct due__submission *a, struct due__ask *ask, int rc)
{
    if (ask == NULL || rc != DUE_EAGAIN || due__monotonic_now() >= a->until_ns)
        return false;
    a->ask = ask;
    return true;
}

/* A call whose job is being looked for waits for that: it may be looked for a while longer than it
 * has time, if somebody else waits longer.  Of a shared queue none is served behind one that asks
 * still: what keeps it waiting, an exchange whose end is not known, keeps the others too. */
void due__commit_finds(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    bool again = false;

    while (!again) {
        due__lock_acquire(&c->calls);
        struct due__submission *a = next_find(c);
        if (a == NULL) {
            due__lock_release(&c->calls);
            return;
        }
        const due_id *id = a->find;
        struct due__ask *ask = a->ask;
        due_id copy = id != NULL ? *id : (due_id){ { 0 } };
        int64_t until = a->until_ns;
        a->find = NULL;
        a->ask = NULL;
        due__lock_release(&c->calls);
        int rc = ask != NULL ? due__sharing_answer(q, ask, until) : look_for(q, copy, until);
        due__lock_acquire(&c->calls);
        again = asks_still(a, ask, rc);
        if (!again) {
            a->rc = rc;
            due__submission_less(a);
            due__bell_ring(&a->waiter->bell);
        }
        due__lock_release(&c->calls);
    }
}

/* Who has the key may be about something else that takes long: then the proxy looks, as soon as it
 * has it, and the call waits for that no longer than it would for the store. */
static int ask_for(struct due_queue *q, due_id id, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__submission a;

    if (!due__submission_begin(q, &a, 1))
        return DUE_ENOMEM;
    due__lock_acquire(&c->calls);
    a.find = &id;
    a.until_ns = until_ns;
    due__lock_release(&c->calls);
    due__proxy_call(q);
    due__submission_wait(c, &a, until_ns);
    due__lock_acquire(&c->calls);
    bool looked = a.find == NULL;
    a.find = NULL;
    due__lock_release(&c->calls);
    if (looked)
        due__submission_settle(c, &a);
    int rc = looked ? a.rc : due__commit_excuse(q);
    due__submission_end(q, &a);
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
