/* close.c - closing a queue: refuse, deliver or discard, let everybody go.
 *
 * Edges      C2  whoever takes a job out of the queue counts it in a shard, then looks at the
 *                state; close sets DRAINING, then sums the counts, each under its shard's lock.
 *                Whoever is later in a shard sees what the other wrote before: so of all who take
 *                and sum, the last one sees that nothing is left.  Jobs in places at hand are
 *                counted before their word is written; whoever takes one reads the word, then
 *                counts it as gone in a shard; what has come is summed after that.
 *            described elsewhere: E3 tenure.c, C1 inside.c, G2 sender.c, J1 slab.h
 *
 * Not here   Who is inside, and waiting for the last of them: inside.c.
 */
#include "queue/queue.h"

#include "os/atomic.h"

void due__discard(struct due_queue *q, uint32_t number, uint64_t w)
{
    struct due__job *j = due__job_at(&q->slab, number);

    due__key_end(q, number, false);
    if ((w & DUE__HELD) && due__grave_is(q, number))
        due__grave_close(q, number);
    due__step(q, number, DUE__S_DISCARDED, w);
    if (q->hooks.on_discard != NULL) {
        int64_t deadline = due__load_relaxed(&j->deadline_ns); /* J1: the caller's own */
        due_job job;
        int cancel;

        due__job_fill(q, number, deadline, deadline, &job);
        job.queue = NULL; /* done with when the hook returns */
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        q->hooks.on_discard(q->hooks.ctx, &job);
        pthread_setcancelstate(cancel, NULL);
    }
    bool last = due__job_unhold(q, number, w);

    struct due__shard *it = due__shard_enter(&q->slab);
    it->discarded++; /* C2 */
    it->unready += (w & DUE__READY) != 0;
    if (last)
        due__place_done(q, it, number);
    due__shard_leave(it);
    if (q->capacity > 0)
        due__space_give(q, 1);
    if (due__load_seq(&q->state) & DUE__DRAINING) /* C2 */
        due__drained(q);
}

/* Everyone who waits for room is called and, with @consumers, everyone who waits for a job or naps;
 * those who come later see the state. */
static void wake_all(struct due_queue *q, bool consumers)
{
    struct due__tenure t;
    bool more;

    do {
        due__enter(q, &t);
        while (consumers && q->all != NULL && due__tenure_room(&t))
            due__call(q, &t, q->all, NULL);
        while (q->space.first != NULL && due__tenure_room(&t)) {
            struct due__waiter *w = q->space.first;

            due__waiters_remove(&q->space, w);
            w->linked = false;
            due__tenure_ring(&t, &w->bell);
        }
        more = (consumers && q->all != NULL) || q->space.first != NULL;
        if (consumers && !due__nap_ring(q, &t, NULL))
            more = true;
        due__leave(q, &t);
    } while (more);
    due__closers_ring(q);
}

void due__wake_consumers(struct due_queue *q)
{
    wake_all(q, true);
}

void due__quit_ring(struct due_queue *q, const uint32_t *quit)
{
    struct due__tenure t;
    bool all;

    do {
        due__enter(q, &t);
        all = due__nap_ring(q, &t, quit);
        for (struct due__waiter *next, *w = q->all; all && w != NULL; w = next) {
            next = w->all_next;
            if (w->quit != quit)
                continue;
            all = due__tenure_room(&t);
            if (all)
                due__call(q, &t, w, NULL);
        }
        due__leave(q, &t);
    } while (!all);
}

/* Has the store not got the job, since it had left for nobody and could not be put in again?  Only
 * once nothing is sent any more that stays so. */
static bool lacks(const struct due_queue *q, uint32_t number)
{
    return due__load_seq(&q->commits->stopped) && /* G2 of sender.c */
           due__stored_at(q->commits, number)->stored >= DUE__TO_STORE;
}

/* Its room, in a queue with a capacity, is nobody's any more: the queue closes or drains, or
 * another process owns the jobs, so nobody is let in.  What the store lacks is shown, or it would
 * vanish in silence. */
void due__keep_stored(struct due_queue *q, uint32_t number)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */

    if (lacks(q, number)) {
        due__discard(q, number, w);
        return;
    }
    due__key_end(q, number, false);
    if ((w & DUE__HELD) && due__grave_is(q, number))
        due__grave_close(q, number);
    due__step(q, number, DUE__S_KEPT, w);
    bool last = due__job_unhold(q, number, w);
    struct due__shard *it = due__shard_enter(&q->slab);

    it->kept++; /* C2 */
    it->unready += (w & DUE__READY) != 0;
    if (last)
        due__place_done(q, it, number);
    due__shard_leave(it);
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
    if (q->commits != NULL)
        due__keep_stored(q, number);
    else
        due__discard(q, number, w);
}

void due__leases_discard(struct due_queue *q)
{
    for (uint32_t at = 0; at < due__slab_end(&q->slab); at++) {
        struct due__job *j = due__job_at(&q->slab, at);
        uint64_t w = due__load_acquire(&j->word); /* J1: nobody else is there any more */

        bool lapsed = q->commits == NULL && due__word_state(w) == DUE__WAITING;
        if (due__word_state(w) != DUE__LEASED && due__word_state(w) != DUE__DEAD && !lapsed)
            continue;
        due__store_relaxed(&j->word, (w & ~DUE__STATE_MASK) | DUE__LENT); /* J1 */
        if (q->commits != NULL)
            due__keep_stored(q, at);
        else
            due__discard(q, at, w);
    }
}

void due__drained(struct due_queue *q)
{
    if ((due__load_seq(&q->state) & DUE__CLOSING) || due__waiting(q) > 0) /* C2 */
        return;
    if (q->commits != NULL && due__commit_loading(q)) /* what is stored is to be delivered too */
        return;
    if (!(due__or_seq(&q->state, DUE__CLOSING) & DUE__CLOSING)) /* C1 of inside.c, E3 */
        wake_all(q, true);
}

void due__stop_proxies(struct due_queue *q)
{
    int cancel;

    if (due__or_seq(&q->state, DUE__STOPPED) & DUE__STOPPED) /* no edge: once */
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* a join is a point of it */
    due__bell_ring(&q->enqueue_bell);
    if (q->commits != NULL)
        q->commits->store->verbs->interrupt(q->commits->store);
    due__bell_ring(&q->worker.bell);
    if (q->alarm.fd >= 0)
        due__bell_ring(&q->alarm);
    due__bell_ring(&q->dequeue_bell);
    for (size_t i = 0; i < sizeof q->threads / sizeof q->threads[0]; i++)
        due__thread_join(&q->threads[i]);
    pthread_setcancelstate(cancel, NULL);
}

int due_close(due_queue *q, enum due_close_mode mode, int64_t timeout_ns)
{
    uint64_t discarded = 0;
    uint64_t dead = 0;
    enum due__ending ending;

    if (due__forked(q))
        return DUE_EFORK;
    if (due__handling(q))
        return DUE_EDEADLK;
    if (timeout_ns < 0 || (mode != DUE_CLOSE_DRAIN && mode != DUE_CLOSE_DISCARD))
        return DUE_EINVAL;
    int64_t until = due__time_add(due__timeout_now(q), timeout_ns);
    struct due__waiter *w = due__closer_enter(q);
    if (w == NULL)
        return DUE_ENOMEM;
    if (mode == DUE_CLOSE_DRAIN) {
        due__or_seq(&q->state, DUE__DRAINING); /* E3, C2 */
        due__drain_all(q);                     /* as far as it can be reached */
        wake_all(q, false);
        due__drained(q);
    } else {
        due__or_seq(&q->state, DUE__CLOSING); /* E3, C1 of inside.c */
        if (q->commits != NULL)
            due__commits_stop(q, due__time_add(due__monotonic_now(), timeout_ns));
        due__drain_all(q);
        due_clear(q, DUE_ALL_TOPICS, &discarded);
        if (q->commits == NULL && due_clear_dead(q, DUE_ALL_TOPICS, &dead) == 0)
            discarded += dead;
        if (discarded > 0)
            due__log(q, DUE_LOG_INFO, "%s: closed with %llu jobs %s", q->name,
                     (unsigned long long)discarded,
                     q->commits != NULL ? "left in the store" : "discarded");
        wake_all(q, true);
    }
    int rc = due__closer_wait(q, w, until, &ending);
    if (ending == DUE__ENDING) {
        due__stop_proxies(q);
        if (q->commits != NULL)
            due__commits_close(q);
    }
    due__closer_leave(q, w, ending == DUE__ENDING);
    return rc;
}
