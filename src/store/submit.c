/* submit.c - calls that change stored jobs, and wait until the store has confirmed it.
 *
 * A call leaves its changes in the commit inbox and waits (calls.c).  If time is up it takes back
 * what was not sent yet; what was sent is seen through without it.
 *
 * Guards     D  the calls' lock      A  atomic, see Edges      O  its owner's alone
 *
 * Edges      G1, G2 of sender.c  described elsewhere: J1 slab.h, E3 tenure.c
 */
#include <pthread.h>

#include "job/draft.h"
#include "job/key_table.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "store/sender.h"

#define PIECES    2u  /* of a full batch, where a call has many changes */
#define PIECE_MIN 64u /* changes */

/* ---- Submitting ---- */

/* Somebody is to commit: who has the key will look, or the proxy. */
static void call_proxy(struct due_queue *q)
{
    due__bell_ring(&q->enqueue_bell);
}

/* Changes of jobs that the caller owns.  If the node of a change that was given up is still in the
 * inbox, it now stands for this one. */
static void submit_all(struct due_queue *q, const uint32_t *numbers, size_t n,
                       enum due__purpose purpose, int64_t want_ns, struct due__asked *a)
{
    struct due__commits *c = q->commits;
    struct due__string all = { NULL, NULL };
    uint64_t count = 0;

    due__lock_acquire(&c->calls);
    for (size_t i = 0; i < n; i++) {
        struct due__stored *s = due__stored_at(c, numbers[i]);
        bool queued = (s->purpose & DUE__QUEUED) != 0;

        s->purpose = (uint8_t)((unsigned)purpose | DUE__QUEUED);
        s->want_ns = want_ns;
        s->asked = a;
        if (queued)
            continue;
        due__string_add(&all, &s->node);
        count++;
    }
    due__lock_release(&c->calls);
    due__add_relaxed(&c->submitted, count); /* no edge: a flush counts what its own thread left */
    due__inbox_put_all(&c->inbox, &all);    /* G1 */
}

void due__commit_submit(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                        int64_t want_ns, struct due__asked *a)
{
    submit_all(q, &number, 1, purpose, want_ns, a);
}

void due__commit_go(struct due_queue *q, const struct due__asked *a, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    bool self = a != NULL && (q->proxies != DUE_PROXIES_ALWAYS || a->polls);
    if (!self && !due__load_seq(&c->stopping)) { /* G2 */
        if (!due__lock_held(&c->key))            /* G1: its holder will look */
            call_proxy(q);
        return;
    }
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* the store's calls may be points */
    if (due__lock_try(&c->key))                              /* G1: else its holder will look */
        due__commit_leave(q, due__commit_work(q, a, until_ns));
    pthread_setcancelstate(cancel, NULL);
}

/* What can be sent without waiting. */
static void commit_try(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* as above */
    if (due__lock_try(&c->key))                              /* G1: as above */
        due__commit_leave(q, due__commit_work(q, NULL, due__monotonic_now()));
    pthread_setcancelstate(cancel, NULL);
}

size_t due__commit_piece(const struct due__commits *c)
{
    size_t part = c->info.batch_changes / PIECES;

    return part > PIECE_MIN ? part : PIECE_MIN;
}

void due__commit_push(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    int cancel;

    if (q->proxies == DUE_PROXIES_ALWAYS)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* as above */
    if (due__lock_try(&c->key)) {                            /* G1: as above */
        due__commit_step(q, until_ns);
        due__commit_leave(q, false);
    }
    pthread_setcancelstate(cancel, NULL);
}

/* ---- Everything else ---- */

/* Give up a change that was not settled.  True: it had not been sent. */
static bool give_up(struct due__commits *c, uint32_t number, struct due__asked *a, bool *doubt)
{
    struct due__stored *s = due__stored_at(c, number);
    bool back = false;

    *doubt = false;
    if (due__asked_over(c, a))
        return false;
    due__lock_acquire(&c->calls);
    if (s->asked == a) {
        back = (s->purpose & DUE__QUEUED) != 0;
        *doubt = !back;
        if (back)
            s->purpose = DUE__QUEUED | DUE__NO_CHANGE; /* N3 of sender.c */
        due__asked_detach(a, &s->asked);
    }
    due__lock_release(&c->calls);
    return back;
}

/* A change that nobody waits for. */
static int submit_only(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                       int64_t want_ns)
{
    if (due__load_seq(&q->commits->stopping)) /* G2: who comes too early is refused later */
        return DUE_ECLOSED;
    if (due__state_of(q) != 0)
        return DUE_EFENCED;
    if (due__removes(purpose))
        due__key_gone(q, number, purpose == DUE__ACK);
    due__commit_submit(q, number, purpose, want_ns, NULL);
    due__commit_go(q, NULL, 0);
    return 0;
}

/* One that is waited for, until @until_ns.  *@back: it was not sent. */
static int submit_and_wait(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                           int64_t want_ns, int64_t until_ns, bool *back)
{
    struct due__commits *c = q->commits;
    struct due__asked a;
    bool doubt;

    *back = true;
    if (!due__asked_begin(q, &a, 1))
        return DUE_ENOMEM;
    due__commit_submit(q, number, purpose, want_ns, &a);
    due__commit_go(q, &a, until_ns);
    due__asked_wait(c, &a, until_ns);
    *back = give_up(c, number, &a, &doubt);
    due__asked_settle(c, &a);
    int rc = *back ? due__commit_excuse(q) : doubt ? DUE_EINDOUBT : a.rc;
    due__asked_end(q, &a);
    return rc;
}

int due__commit_one(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                    int64_t want_ns, struct due__deadline *by)
{
    struct due__commits *c = q->commits;
    bool waits = (!c->async && !by->polls) || purpose == DUE__LEND;
    uint64_t bytes = 0;
    int64_t until = 0;
    bool back;

    if (waits || purpose == DUE__UPDATE)
        until = due__deadline_at(q, by);
    if (purpose == DUE__UPDATE) {
        bytes = due__draft_bytes((struct due__draft *)(intptr_t)want_ns);
        int rc = due__owed_take(q, bytes, until);

        if (rc != 0)
            return rc;
    }
    int rc = waits ? submit_and_wait(q, number, purpose, want_ns, until, &back)
                   : submit_only(q, number, purpose, want_ns);
    if (waits ? back : rc != 0)
        due__owed_give(c, bytes);
    if (rc == 0 && by->polls)
        commit_try(q);
    return rc;
}

/* A piece at a time: the store works on one while the next is left. */
void due__commit_leave_all(struct due_queue *q, const uint32_t *numbers, size_t n,
                           enum due__purpose purpose, int64_t want_ns, struct due__asked *a,
                           int64_t until_ns)
{
    size_t piece = due__commit_piece(q->commits);

    for (size_t i = 0; i < n; i += piece) {
        if (i > 0)
            due__commit_push(q, until_ns);
        submit_all(q, numbers + i, n - i < piece ? n - i : piece, purpose, want_ns, a);
    }
}

void due__commit_all(struct due_queue *q, const uint32_t *numbers, size_t n,
                     enum due__purpose purpose, int64_t want_ns, struct due__deadline *by,
                     int *results)
{
    struct due__commits *c = q->commits;
    struct due__asked a;
    bool waits = !c->async;
    bool doubt = false;

    for (size_t i = 0; !waits && i < n; i++)
        results[i] = submit_only(q, numbers[i], purpose, want_ns);
    for (size_t i = 0; waits && i < n; i++)
        results[i] = DUE_ENOMEM;
    if (!waits || !due__asked_begin(q, &a, (uint32_t)n))
        return;
    due__asked_each(&a, numbers, n, results);
    int64_t until = due__deadline_at(q, by);
    due__commit_leave_all(q, numbers, n, purpose, want_ns, &a, until);
    due__commit_go(q, &a, until);
    due__asked_wait(c, &a, until);
    for (size_t i = 0; i < n; i++) {
        bool back = give_up(c, numbers[i], &a, &doubt);

        if (back || doubt) /* else who sends says, or has said, how it ended */
            results[i] = back ? due__commit_excuse(q) : DUE_EINDOUBT;
    }
    due__asked_settle(c, &a);
    due__asked_end(q, &a);
}
