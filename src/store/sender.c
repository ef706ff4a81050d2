/* sender.c - group commit: what waits is sent as one batch, and then done.
 *
 * A job that is enqueued waits, with its node in the commit inbox (LINKED), and has no slot yet.
 * Until its PUT begins it can be taken back or cancelled; then it is SENT, and the sender's alone,
 * until the PUT has landed and it is sorted in.  Everything else changes a job that its caller has
 * made his own (LENT): its node goes into the same inbox, and what follows the batch is done by
 * whoever sent it, also if the caller has left by then.  So a change has exactly one end, whoever
 * waits for it.
 *
 * Guards     K  the key: one thread at a time sends        D  the calls' lock, short
 *            X  the index's own locks                      I  set at open      A  atomic, see Edges
 * Lock order 1. key   2. timeline lock (queue.h)   3. calls   4. index shards, slab shards
 *
 * Edges      G1  submit links the node, knocks, then looks whether anybody has the key.  Who has it
 *                releases it, then looks for a knock.  All sequentially consistent: either the
 *                submitter finds it free, or its holder sees the knock.
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
 * Always     N1  a job has one change under way at most, and is claimed for it (LENT) or SENT, from
 *                before its node is taken until the end of that change was done here.  So the next
 *                batch, filled before that end, has no job of the batch under way.
 *            N2  a batch names no job twice, and is the same as long as it is in doubt
 *            N3  a node in the inbox stands for the purpose its record has when it is taken
 *            N4  of the jobs of one call those that it is told to have landed are the first ones,
 *                and those in doubt stand behind them.  So once one is refused, none behind it is
 *                sent that the call still waits for.
 *            N5  the sender is in one of these states, and nothing else says how far the batch is:
 *
 *                         fill              send (pipeline.c)
 *                  idle --------> filled -----------------------> sent
 *                   ^               | ^                            |
 *                   |   unanswered, | | anew: the store is full,   | unanswered
 *                   |   or end      | |       or has lost it       |
 *                   |               v |                            v
 *                   '---- end ---- in doubt <----------------------'
 *
 *                A batch that ends in any of them makes room for the next one: then the sender is
 *                idle if that is empty, filled, or (if it was sent meanwhile) sent.
 */
#include "store/sender.h"

#include <assert.h>

#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/queue.h"
#include "store/retained_keys.h"

#define SLICE_NS DUE_S(1)    /* how long the proxy lets the store block at a time */
#define RETRY_NS DUE_MS(200) /* between two attempts while it refuses */
#define DOUBT_NS DUE_MS(20)  /* the same of a batch whose end it does not tell */

/* ---- How far the batch is: N5 ---- */

void due__sender_on(struct due__commits *c, enum due__sender_event event)
{
    enum { NO, IDLE, FILLED, SENT, DOUBT }; /* NO: it cannot happen; else the state plus 1 */
    static const unsigned char after[][DUE__SENDER_STATES] = {
        /* from: idle, filled, sent, doubt */
        [DUE__SENDER_FILL] = { FILLED, NO, NO, NO },
        [DUE__SENDER_SEND] = { NO, SENT, NO, NO },
        [DUE__SENDER_UNANSWERED] = { NO, DOUBT, DOUBT, DOUBT },
        [DUE__SENDER_ANEW] = { IDLE, FILLED, FILLED, FILLED },
        [DUE__SENDER_END] = { IDLE, IDLE, IDLE, IDLE },
        [DUE__SENDER_END_REST] = { NO, FILLED, FILLED, FILLED },
        [DUE__SENDER_END_FOLLOWED] = { NO, SENT, SENT, SENT },
    };
    unsigned next = after[event][c->sender];

    assert(next != NO);
    c->sender = (enum due__sender)(next - 1);
}

/* ---- One batch after another ---- */

static void fence(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    if (due__load_seq(&c->fenced)) /* G2 */
        return;
    due__store_seq(&c->fenced, 1); /* G2 */
    due__log(q, DUE_LOG_ERROR, "%s: another process owns the stored jobs now", q->name);
    due__asked_ring(c);
    due__wake_consumers(q);
}

/* Is the store to be used?  Remembers its answer. */
static int ready(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    bool fenced = due__load_seq(&c->fenced) != 0; /* G2 */
    int rc = fenced ? DUE_EFENCED : c->store->verbs->ready(c->store, until_ns);

    if (rc == DUE_ELOST) {
        due__mirror_begin(q);
        rc = 0;
    }
    if (rc == DUE_EFENCED)
        fence(q);
    due__store_relaxed(&c->state, rc == DUE_EAGAIN ? DUE_ESTORE : rc); /* no edge: for stats */
    return rc;
}

/* The store has told the end of the batch. */
static void ended(struct due_queue *q, int rc, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    due__store_relaxed(&c->unsure_ns, 0); /* no edge: for those who poll */
    if (rc == 0) {
        c->number++;
        due__add_relaxed(&c->batches, 1); /* no edge: a counter */
    }
    if (c->now->drops)
        due__purge_end(q, rc);
    else
        due__batch_end(q, rc, c->now->upto, rc == 0 && due__ahead_follow(q, until_ns));
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
        due__ahead_send(q, until_ns);
        due__ahead_prepare(q);
        bool doubt = due__sender_unsure(c);
        int rc = c->store->verbs->commit(c->store, b->changes, b->send, c->number, until_ns);
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
            fence(q);
        ended(q, rc == DUE_EFENCED && doubt ? DUE_EINDOUBT : rc, until_ns); /* it may have */
        return true;
    }
}

static bool anything(struct due__commits *c)
{
    return c->sender != DUE__SENDER_IDLE || c->carry != 0 || c->mirror_at != DUE__NO_JOB ||
           due__kept_pending(c) || !due__inbox_quiet(&c->inbox);
}

/* The batch under way, if there is one, ends without the store. */
static void end_without(struct due_queue *q, int rc)
{
    struct due__commits *c = q->commits;

    due__store_relaxed(&c->unsure_ns, 0); /* no edge: for those who poll */
    if (c->now->drops)
        due__purge_end(q, rc);
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
        if (c->now->count > 0)
            due__sender_on(c, DUE__SENDER_FILL);
        due__batch_end(q, DUE_ECLOSED, c->now->count, false);
    } while (c->carry != 0 || due__inbox_knocked(&c->inbox)); /* G1 */
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
    due__batch_fill(q, c->now, rc == 0);
    bool kept = due__kept_pending(c);
    if (c->now->count > 0 || (rc == 0 && kept)) {
        due__sender_on(c, DUE__SENDER_FILL);
        return rc;
    }
    due__mirror_over(c); /* cancelled, or behind a gap: its producer will look */
    *more = c->carry != 0 || c->mirror_at != DUE__NO_JOB || due__reader_resyncs(c) || kept;
    return DUE_EAGAIN;
}

/* Are stored jobs being read, or looked through after a loss? */
static bool reading(struct due__commits *c)
{
    return due__load_seq(&c->reader) != DUE__READER_SERVING; /* G2 */
}

/* Is it a page's turn?  There may always be another change to be sent, and what is put meanwhile
 * has to be read too: so reading gets twice the time that batches have. */
static bool page_next(struct due__commits *c, int64_t began_ns)
{
    return reading(c) && due__monotonic_now() - began_ns >= c->page_ns / 2;
}

bool due__commit_work(struct due_queue *q, const struct due__asked *a, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    int64_t began_ns = a == NULL ? due__monotonic_now() : 0;
    bool more;

    while (!due__load_seq(&c->stopping)) { /* G2 */
        if (!anything(c))
            return due__reader_resyncs(c);
        int rc = c->sender == DUE__SENDER_SENT ? 0 : begin(q, until_ns, &more);

        if (rc == DUE_EAGAIN)
            return more;
        if (rc != 0)
            end_without(q, rc);
        else if (!send(q, until_ns))
            return true;
        if (a != NULL && due__asked_over(c, a))
            return anything(c) || due__reader_resyncs(c);
        if (a == NULL && page_next(c, began_ns))
            return true;
    }
    due__commit_refuse(q);
    return false;
}

void due__commit_step(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    bool more;

    if (!due__ahead_can(c) || due__load_seq(&c->stopping) || !anything(c)) /* G2 */
        return;
    if (c->sender == DUE__SENDER_SENT) {
        send(q, until_ns);
        return;
    }
    int rc = begin(q, until_ns, &more);
    if (rc == 0)
        due__ahead_send(q, until_ns);
    else if (rc != 0 && rc != DUE_EAGAIN)
        end_without(q, rc);
}

void due__commit_leave(struct due_queue *q, bool more)
{
    struct due__commits *c = q->commits;

    due__lock_release(&c->key);                     /* G1 */
    while (more || due__inbox_knocked(&c->inbox)) { /* G1 */
        if (!due__load_seq(&c->stopping)) {         /* G2 */
            due__bell_ring(&q->enqueue_bell);
            return;
        }
        if (!due__lock_try(&c->key)) /* G1: who has it will look */
            return;
        due__commit_refuse(q);
        more = false;
        due__lock_release(&c->key); /* G1 */
    }
}

/* ---- The proxy ---- */

static void renew(struct due_queue *q, int64_t now_ns)
{
    struct due__commits *c = q->commits;
    int64_t held;

    if (c->renew_at_ns > now_ns || due__load_seq(&c->fenced)) /* G2 */
        return;
    int rc = c->store->verbs->renew(c->store, &held, due__time_add(now_ns, SLICE_NS));
    c->renew_at_ns = due__time_add(now_ns, RETRY_NS);
    if (rc == 0) {
        due__store_relaxed(&c->held_ns, held); /* no edge: it only grows */
        c->renew_at_ns = due__time_add(now_ns, c->info.renew_ns);
        due__asked_ring(c); /* who waits for it */
    } else if (rc == DUE_ELOST) {
        due__mirror_begin(q);
    } else if (rc == DUE_EFENCED) {
        fence(q);
    }
}

/* What came of a page.  What keeps the load from its end is said once, and whoever waits for that
 * is told; if the store is only away, it goes on. */
static void note_load(struct due_queue *q, int rc)
{
    struct due__commits *c = q->commits;

    if (rc == DUE_EAGAIN || rc == DUE_ESTORE || rc == DUE_EFENCED)
        return;
    due__store_seq(&c->load_error, due__reader_loads(c) ? rc : 0); /* G2 */
    if (rc != 0 && rc != c->load_told) {
        c->load_told = rc;
        due__log(q, DUE_LOG_ERROR,
                 "%s: not all that is stored can be read (%s: %s); it is tried again and again",
                 q->name, due_error_name(rc), due_error_text(rc));
        due__asked_ring(c);
    }
    if (c->load_told != 0 && rc == 0 && !reading(c)) {
        c->load_told = 0;
        due__log(q, DUE_LOG_INFO, "%s: all that is stored has been read after all", q->name);
    }
}

/* One more page of what is stored, if that is being read.  0, or what keeps the store from it. */
static int read_on(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    if (due__load_seq(&c->stopping) || due__load_seq(&c->fenced)) /* G2 */
        return 0;
    if (!reading(c) || (!due__reader_loads(c) && c->later))
        return 0;
    int64_t began_ns = due__monotonic_now();
    int rc = due__restore_page(q, until_ns);
    c->page_ns = due__monotonic_now() - began_ns;
    if (rc == DUE_EFENCED)
        fence(q);
    note_load(q, rc);
    due__store_relaxed(&c->state, rc == DUE_EAGAIN ? DUE_ESTORE : rc); /* no edge: for stats */
    return rc;
}

/* One turn with the key.  True: another one at once. */
static bool turn(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    int64_t now = due__monotonic_now();
    int64_t until = due__time_add(now, SLICE_NS);
    int64_t retry = 0;

    due__lock_acquire(&c->key); /* G1 */
    c->later = false;
    due__commit_finds(q);
    if (!due__load_seq(&c->stopping)) /* G2 */
        renew(q, now);
    bool some = anything(c); /* else the store is not asked whether it is ready */
    bool more = due__commit_work(q, NULL, until);
    bool unsure = c->sender != DUE__SENDER_IDLE;
    int rc = more && some ? due__load_relaxed(&c->state) : 0; /* no edge: ours, we have the key */
    if (rc == 0)
        rc = read_on(q, until);
    if (rc != 0 || c->later)
        retry = RETRY_NS;
    else if (unsure)
        retry = DOUBT_NS;
    if (due__monotonic_now() >= until - SLICE_NS / 2)
        retry = 0; /* it has waited */
    more = more || reading(c) || c->sender != DUE__SENDER_IDLE;
    bool over = due__load_seq(&c->fenced) || due__load_seq(&c->stopping); /* G2 */
    if (due__load_seq(&c->stopping))                                      /* G2 */
        due__commit_leave(q, false);
    else
        due__lock_release(&c->key); /* G1 */
    c->retry_at_ns = retry > 0 && more ? due__time_add(now, retry) : 0;
    bool knocked = due__inbox_knocked(&c->inbox); /* G1 */
    if (over)
        return knocked; /* to be refused */
    if (c->retry_at_ns == 0)
        return more || knocked;
    return knocked && rc == 0 && !unsure; /* only what can wait was refused */
}

/* Until when the proxy sleeps, unless it is called. */
static int64_t next_turn(const struct due__commits *c)
{
    if (due__load_seq(&c->fenced) || due__load_seq(&c->stopping)) /* G2 */
        return DUE_FOREVER;
    bool retry = c->retry_at_ns != 0 && c->retry_at_ns < c->renew_at_ns;
    return retry ? c->retry_at_ns : c->renew_at_ns;
}

void due__commit_proxy(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    for (;;) {
        while (!(due__load_seq(&q->state) & DUE__STOPPED) && turn(q)) /* no edge: rung after it */
            ;
        if (due__load_seq(&q->state) & DUE__STOPPED)
            return;
        due__bell_wait(&q->enqueue_bell, next_turn(c), false);
    }
}
