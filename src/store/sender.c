/* sender.c - group commit: what waits is sent as one batch, and then done.
 *
 * A job that is enqueued waits, with its node in the commit inbox (LINKED), and has no slot yet.
 * Until its PUT begins it can be taken back or cancelled; then it is SENT, and the sender's alone,
 * until the PUT has landed and it is sorted in.  Everything else changes a job that its caller has
 * made his own (CLAIMED): its node goes into the same inbox, and what follows the batch is done by
 * whoever sent it, also if the caller has left by then.  So a change has exactly one end, whoever
 * waits for it.
 *
 * Guards     K  the key: one thread at a time sends        D  the calls' lock, short
 *            X  the index's own locks                      I  set at open      A  atomic, see Edges
 * Lock order 1. key   2. timeline lock (queue.h)   3. calls   4. index shards, slab shards
 *
 * Edges      G1  submit links the node, knocks, then looks whether anybody has the key.  Who has it
 *                releases it, then looks for a knock.  All sequentially consistent: either the
 *                submitter finds it free, or its holder sees the knock.  What holds back topics
 *                stands in a line of its own (topic_settings.c), and is counted before the knock:
 *                who answers a knock looks at the count after it.
 *            G2  fenced, stopping, reader and load_error are set, then everyone who waits is rung.
 *                Close sets stopping, then has the key once; who leaves something looks at stopping
 *                after it, and who has the key before it sends: nothing is sent any more, and
 *                nothing stays.  With the key it sets stopped: only from then on jobs that nobody
 *                has may leave the queue without it, since until then a batch that writes again
 *                what was lost may name them.
 *            G3  who sends counts what a call waits for, then says that it is over -> the call
 *                reads the counts.  It takes the calls' lock before it returns, and so does not
 *                return before who sends has let go of it.
 *            described elsewhere: J1 slab.h, E3 tenure.c, C1 C2 closing.c
 *
 * Always     N1  a job has one change under way at most, and is claimed for it (CLAIMED) or SENT,
 *                from before its node is taken until the end of that change was done here.  So the
 *                next batch, filled before that end, has no job of the batch under way.
 *            N2  a batch names no job twice, and is the same as long as it is in doubt
 *            N3  a node in the inbox stands for the purpose its record has when it is taken
 *            N4  of the jobs of one call those that it is told to have landed are the first ones,
 *                and those in doubt stand behind them.  So once one is refused, none behind it is
 *                sent that the call still waits for.
 */
#include "store/sender.h"

#include <pthread.h>

#include "os/atomic.h"
#include "os/probe.h"
#include "queue/closing.h"
#include "queue/queue.h"
#include "store/retained_keys.h"
#include "store/share.h"

#define PIECES    2u  /* of a full batch, where a call has many changes */
#define PIECE_MIN 64u /* changes */

/* ---- One batch after another ---- */

/* Is the store to be used?  Remembers its answer. */
static int ready(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    bool fenced = due__load_seq(&c->fenced) != 0; /* G2 */
    int rc = fenced ? DUE_EFENCED : 0;

    if (rc == 0 && c->share != NULL)
        rc = due__sharing_settle(q, until_ns) ? 0 : DUE_EAGAIN;
    else if (rc == 0)
        rc = c->store->verbs->ready(c->store, until_ns);

    if (rc == DUE_ELOST) {
        due__mirror_begin(q);
        rc = 0;
    }
    if (rc == DUE_EFENCED)
        due__commit_fence(q, DUE__OWNED_BY_ANOTHER);
    due__store_relaxed(&c->state, rc == DUE_EAGAIN ? DUE_ESTORE : rc); /* no edge: for stats */
    return rc;
}

/* The store has told the end of the batch. */
static void ended(struct due_queue *q, int rc, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    due__store_relaxed(&c->unsure_ns, 0); /* no edge: for those who poll */
    if (rc == 0) {
        due__store_relaxed(&c->state,
                           0); /* no edge: as in ready(), which a SENT one does not ask */
        c->number++;
        due__add_relaxed(&c->batches, 1); /* no edge: a counter */
    }
    if (c->now->drops)
        due__purge_end(q, rc);
    else if (c->now->settings)
        due__settings_end(q, rc);
    else
        due__batch_end(q, rc, c->now->upto, rc == 0 && due__pipeline_follow(q, until_ns));
}

static int commit(struct due_queue *q, struct due__batch *b, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    DUE__PROBE3(commit, q, c->number, b->send);
    int rc = c->share != NULL
                 ? due__sharing_send(q, b, until_ns)
                 : c->store->verbs->commit(c->store, b->changes, b->send, c->number, until_ns);
    DUE__PROBE3(committed, q, c->number, rc);
    return rc;
}

/* Send the batch under way, and see it through.  False: its end is not known yet. */
static bool send(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__batch *b = c->now;

    for (;;) {
        if (c->sender == DUE__SENDER_FILLED) {
            due__batch_write(q, b);
            due__batch_complete(q, b);
        }
        if (b->send == 0) {
            due__batch_end(q, 0, b->count, false);
            return true;
        }
        due__pipeline_send(q, until_ns);
        due__pipeline_prepare(q);
        bool doubt = due__sender_unsure(c);
        int rc = commit(q, b, until_ns);
        if (rc == DUE_EINDOUBT || (rc == DUE_EAGAIN && doubt))
            due__sender_on(c, DUE__SENDER_UNANSWERED);
        if (rc == DUE_EAGAIN || rc == DUE_EINDOUBT) {
            if (due__load_relaxed(&c->unsure_ns) == 0)                   /* no edge: ours */
                due__store_relaxed(&c->unsure_ns, due__monotonic_now()); /* no edge */
            return false;
        }
        if (rc == DUE_ENOSPC && due__batch_shrink(b)) {
            due__sender_on(c, DUE__SENDER_ANEW);
            continue;
        }
        if (rc == DUE_EFENCED)
            due__commit_fence(q, DUE__OWNED_BY_ANOTHER);     /* if that was not said before */
        uint32_t since = due__load_relaxed(&c->since_page);  /* no edge: ours, with the key */
        due__store_relaxed(&c->since_page, since + b->send); /* no edge: a guess */
        ended(q, rc == DUE_EFENCED && doubt ? DUE_EINDOUBT : rc, until_ns); /* it may have */
        return true;
    }
}

bool due__commit_any(struct due__commits *c)
{
    return c->sender != DUE__SENDER_IDLE || c->carry != 0 || c->mirror_at != DUE__NO_JOB ||
           due__retained_pending(c) || due__settings_any(c) || !due__settings_mended(c) ||
           !due__inbox_quiet(&c->inbox);
}

/* The batch under way, if there is one, ends without the store. */
static void end_without(struct due_queue *q, int rc)
{
    struct due__commits *c = q->commits;

    due__store_relaxed(&c->unsure_ns, 0); /* no edge: for those who poll */
    if (c->now->drops)
        due__purge_end(q, rc);
    else if (c->now->settings)
        due__settings_end(q, due__sender_unsure(c) ? DUE_EINDOUBT : rc);
    else
        due__batch_end(q, due__sender_unsure(c) ? DUE_EINDOUBT : rc, c->now->count, false);
}

void due__commit_refuse(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    while (c->sender != DUE__SENDER_IDLE)
        end_without(q, DUE_ECLOSED);
    c->mirror_at = DUE__NO_JOB;
    do {
        due__batch_fill(q, c->now, false);
        due__settings_refuse(q, due__commit_excuse(q)); /* G1: after the knock was answered */
        if (c->now->count > 0)
            due__sender_on(c, DUE__SENDER_FILL);
        due__batch_end(q, DUE_ECLOSED, c->now->count, false);
    } while (c->carry != 0 || due__inbox_knocked(&c->inbox)); /* G1 */
}

/* What holds back topics goes first.  Filling answers the knock of who has left such a thing
 * meanwhile (G1), so that it is looked for again before the batch is found empty. */
static bool fill(struct due_queue *q, int rc, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    if (due__settings_any(c) && due__settings_fill(q, rc, until_ns))
        return true;
    due__batch_fill(q, c->now, rc == 0);
    if (c->now->count > 0 || (rc == 0 && due__retained_pending(c)))
        return true;
    return due__settings_any(c) && due__settings_fill(q, rc, until_ns);
}

/* See that there is a batch to be sent.  0: there is; DUE_EAGAIN: there is not, and *@more says
 * whether something is left to do; or what it is to be refused with. */
static int begin(struct due_queue *q, int64_t until_ns, bool *more)
{
    struct due__commits *c = q->commits;
    int rc = ready(q, until_ns);

    *more = true;
    if (rc == DUE_EAGAIN || (rc != 0 && rc != DUE_EFENCED && due__sender_unsure(c)))
        return DUE_EAGAIN;
    if (c->sender != DUE__SENDER_IDLE)
        return rc;
    if (fill(q, rc, until_ns)) {
        due__sender_on(c, DUE__SENDER_FILL);
        return rc;
    }
    due__mirror_over(c); /* cancelled, or behind a gap: its producer will look */
    *more = c->carry != 0 || c->mirror_at != DUE__NO_JOB || due__reader_resyncs(c) ||
            due__retained_pending(c) || !due__settings_mended(c);
    return DUE_EAGAIN;
}

/* Is it a page's turn?  There may always be another change to be sent, and what is put meanwhile
 * has to be read too: so a page shows twice as much as was sent since the last one, and reading
 * gets twice the time that batches have. */
static bool page_next(struct due__commits *c, int64_t began_ns)
{
    return due__reader_reads(c) &&
           (due__load_relaxed(&c->since_page) >= DUE__PAGE_AFTER || /* no edge: with the key */
            due__monotonic_now() - began_ns >= c->page_ns / 2);
}

/* Do callers who would send leave the key to the proxy, which is to read first?  Else they could
 * have it among themselves, and put more than is read. */
static bool page_owed(const struct due_queue *q, const struct due__commits *c)
{
    return due__load_relaxed(&c->since_page) >= DUE__PAGE_JOBS / 2 && /* no edge: a guess */
           q->proxies != DUE_PROXIES_NEVER && due__reader_reads(c);
}

bool due__commit_work(struct due_queue *q, const struct due__submission *a, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    int64_t began_ns = a == NULL ? due__monotonic_now() : 0;
    bool more;

    while (!due__load_seq(&c->stopping)) { /* G2 */
        if (!due__commit_any(c))
            return due__reader_resyncs(c);
        int rc = c->sender == DUE__SENDER_SENT ? 0 : begin(q, until_ns, &more);

        if (rc == DUE_EAGAIN)
            return more;
        if (rc != 0)
            end_without(q, rc);
        else if (!send(q, until_ns))
            return true;
        if (a != NULL && due__submission_over(c, a))
            return due__commit_any(c) || due__reader_resyncs(c);
        if (a == NULL ? page_next(c, began_ns) : !a->polls && page_owed(q, c))
            return true;
    }
    due__commit_refuse(q);
    return false;
}

void due__commit_step(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    bool more;

    if (!due__pipeline_can(c) || due__load_seq(&c->stopping) || !due__commit_any(c)) /* G2 */
        return;
    if (c->sender == DUE__SENDER_SENT) {
        send(q, until_ns);
        return;
    }
    int rc = begin(q, until_ns, &more);
    if (rc == 0)
        due__pipeline_send(q, until_ns);
    else if (rc != 0 && rc != DUE_EAGAIN)
        end_without(q, rc);
}

void due__commit_leave(struct due_queue *q, bool more)
{
    struct due__commits *c = q->commits;

    due__lock_release(&c->key);                     /* G1 */
    while (more || due__inbox_knocked(&c->inbox)) { /* G1 */
        if (!due__load_seq(&c->stopping)) {         /* G2 */
            due__proxy_call(q);
            return;
        }
        if (!due__lock_try(&c->key)) /* G1: who has it will look */
            return;
        due__commit_refuse(q);
        more = false;
        due__lock_release(&c->key); /* G1 */
    }
}

/* ---- Callers that send ---- */

void due__commit_go(struct due_queue *q, const struct due__submission *a, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    bool self = a != NULL && (a->polls || (q->proxies != DUE_PROXIES_ALWAYS && !page_owed(q, c)));
    if (!self && !due__load_seq(&c->stopping)) { /* G2 */
        if (!due__lock_held(&c->key))            /* G1: its holder will look */
            due__proxy_call(q);
        return;
    }
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* the store's calls may be points */
    if (due__lock_try(&c->key))                              /* G1: else its holder will look */
        due__commit_leave(q, due__commit_work(q, a, until_ns));
    pthread_setcancelstate(cancel, NULL);
}

/* What can be sent without waiting. */
void due__commit_try(struct due_queue *q)
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

    if (q->proxies == DUE_PROXIES_ALWAYS || page_owed(q, c))
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* as above */
    if (due__lock_try(&c->key)) {                            /* G1: as above */
        due__commit_step(q, until_ns);
        due__commit_leave(q, false);
    }
    pthread_setcancelstate(cancel, NULL);
}
