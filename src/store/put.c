/* put.c - jobs on their way into the store: named, left in the commit inbox, and waited for.
 *
 * If time is up the call takes back what was not sent yet, all at once: while it has the calls'
 * lock no batch is filled or ends.  So of its jobs those that land are the first ones, and behind
 * them stand those in doubt (N4 of sender.c).
 *
 * Edges      described elsewhere: G1 G2 sender.c, J1 slab.h, S2 id_index.c
 */
#include "job/fresh.h"
#include "job/handover.h"
#include "job/key_policy.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/queue.h"
#include "store/sender.h"
#include "store/share.h"

static void unname(struct due_queue *q, const struct due__fresh *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        due__index_remove(&q->commits->index, jobs[i].number);
}

/* A name for the job @it, known to the index. */
static int name(struct due_queue *q, const struct due__fresh *it)
{
    struct due__commits *c = q->commits;

    if (!due__records_make(&c->stored, &q->alloc, it->number))
        return DUE_ENOMEM;
    struct due__stored *s = due__stored_at(c, it->number);
    uint64_t sequence = due__add_relaxed(&c->sequence, 1); /* no edge: a counter */

    due__stored_name(s, due__id_stored(it->f.priority, c->info.writer, sequence));
    if (s->stored != DUE__NOT_STORED) /* it was kept; else who mirrors may read it */
        s->stored = DUE__NOT_STORED;
    return due__index_add(&c->index, it->number, true);
}

static int name_all(struct due_queue *q, const struct due__fresh *jobs, size_t n, due_id *ids)
{
    /* Places are given back with a node in the inbox only after that. */
    if (due__load_seq(&q->commits->stopping)) /* G2 */
        return DUE_ECLOSED;

    for (size_t i = 0; i < n; i++) {
        int rc = name(q, &jobs[i]);

        if (rc != 0) {
            unname(q, jobs, i);
            return rc;
        }
        ids[i] = due__stored_id(due__stored_at(q->commits, jobs[i].number));
    }
    return 0;
}

/* @n jobs were refused before there was room for them. */
static int drop_all(struct due_queue *q, const struct due__fresh *jobs, size_t n, int rc)
{
    for (size_t i = 0; i < n; i++) {
        due__job_release_fresh(q, &jobs[i]);
        due__slab_untake(&q->slab, jobs[i].number);
    }
    due__left(q, n);
    return rc;
}

/* What @n jobs take on the way to the store. */
static uint64_t bytes_of(const struct due__fresh *jobs, size_t n)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        bytes += due__unsettled_bytes(jobs[i].job, jobs[i].f);
    return bytes;
}

/* And these were refused after it, before they were left. */
static int refuse_all(struct due_queue *q, const struct due__fresh *jobs, size_t n, int rc)
{
    uint64_t bytes = bytes_of(jobs, n);

    drop_all(q, jobs, n, rc);
    due__unsettled_give(q->commits, bytes);
    return rc;
}

/* It can be sent from here on: its node, which is about to be put. */
static inline struct cds_wfcq_node *begin(struct due_queue *q, const struct due__fresh *it,
                                          struct due__submission *a)
{
    struct due__stored *s = due__stored_at(q->commits, it->number);

    /* Who had the place before may still look, for itself: that is not us. */
    if (a != NULL)
        due__store_relaxed(&s->put_submission, a); /* G1: read once the node was taken */
    due__facts_store(it->job, it->f);
    due__store_relaxed(&it->job->deadline_ns, it->deadline_ns);                    /* J1 */
    due__word_begin(&it->job->word, it->generation, 0, DUE__WAITING, DUE__LINKED); /* J1 */
    return &s->node;
}

void due__submit_fresh(struct due_queue *q, const struct due__fresh *it, struct due__submission *a)
{
    due__add_relaxed(&q->commits->submitted, 1); /* no edge: a flush counts what its thread left */
    due__inbox_put(&q->commits->inbox, begin(q, it, a)); /* G1 */
}

static bool has_key(const struct due__fresh *it)
{
    return (it->f.payload & DUE__EXTRAS) && due__extras_at(it->job)->key != NULL;
}

/* Does it have a key that is looked for here?  In a shared queue the store does that. */
static bool keyed(const struct due_queue *q, const struct due__fresh *it)
{
    return !q->shared && has_key(it);
}

/* Some of them have keys: how many were left, up to the first one that cannot have its key. */
static size_t leave_keyed(struct due_queue *q, const struct due__fresh *jobs, size_t n,
                          struct due__submission *a)
{
    for (size_t i = 0; i < n; i++) {
        if (!keyed(q, &jobs[i]))
            due__submit_fresh(q, &jobs[i], a);
        else if (!due__key_submit(q, &jobs[i], a))
            return i;
    }
    return n;
}

static size_t leave_plain(struct due_queue *q, const struct due__fresh *jobs, size_t n,
                          struct due__submission *a)
{
    due__add_relaxed(&q->commits->submitted, n); /* no edge: a flush counts what its thread left */
    struct due__string all = { NULL, NULL };

    for (size_t i = 0; i < n; i++)
        due__string_add(&all, begin(q, &jobs[i], a));
    due__inbox_put_all(&q->commits->inbox, &all); /* G1 */
    return n;
}

/* @n named jobs cannot be left, since the first of them cannot have its key. */
static void give_back(struct due_queue *q, const struct due__fresh *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        due__facts_store(jobs[i].job, jobs[i].f);
        due__step(q, jobs[i].number, DUE__S_BACK, 0);
    }
    unname(q, jobs, n);
    refuse_all(q, jobs, n, 0);
}

/* Leave jobs that are named: how many; the others are given back. */
static size_t leave_jobs(struct due_queue *q, const struct due__fresh *jobs, size_t n,
                         struct due__submission *a)
{
    bool plain = true;

    if (q->events != NULL)
        due__events_enter(q, jobs, n, false); /* told when they have landed */
    for (size_t i = 0; plain && i < n; i++)
        plain = !keyed(q, &jobs[i]);
    size_t left = plain ? leave_plain(q, jobs, n, a) : leave_keyed(q, jobs, n, a);
    if (left < n)
        give_back(q, jobs + left, n - left);
    return left;
}

/* Under the calls' lock: a job that is still in the inbox is the caller's own again.  False: it was
 * sent; or somebody else has claimed it before that (*@gone). */
static bool withdraw(const struct due__fresh *it, bool *gone)
{
    uint64_t w = due__word(it->generation, 0, (uint64_t)DUE__WAITING | DUE__LINKED);
    bool back = due__word_claim(&it->job->word, &w, DUE__CLAIMED); /* J1 */

    *gone = !back && due__word_generation(w) == it->generation && (w & DUE__LINKED);
    return back;
}

/* No job is waited for any more, and what can be withdrawn is: how many, now the first of @jobs.
 * The others whose end is not told are on their way still, or have been: @put. */
static size_t withdraw_all(struct due__commits *c, struct due__fresh *jobs, size_t n,
                           struct due__submission *a, struct due__put *put)
{
    size_t backs = 0;
    size_t gone_before = 0; /* the next that was sent */

    due__lock_acquire(&c->calls);
    bool refused = a != NULL && a->rc != 0; /* so is what was sent behind that */
    for (size_t i = 0; i < n; i++) {
        struct due__stored *s = due__stored_at(c, jobs[i].number);
        bool gone;

        if (due__load_relaxed(&s->put_submission) != a) /* no edge: written by us, or D */
            continue;
        bool back = withdraw(&jobs[i], &gone);
        due__submission_detach(a, &s->put_submission);
        put->room += gone || (!back && !refused);
        gone_before += gone;
        if (!back && !gone && !refused) {
            put->named += 1 + gone_before;
            gone_before = 0;
        }
        if (back)
            jobs[backs++] = jobs[i];
    }
    due__lock_release(&c->calls);
    return backs;
}

/* The caller does not wait any longer: what was not sent yet is taken back, and is as if it had
 * never been.  In @put is counted what was. */
static void take_back(struct due_queue *q, struct due__fresh *jobs, size_t n,
                      struct due__submission *a, struct due__put *put)
{
    uint64_t bytes = 0;
    size_t backs = withdraw_all(q->commits, jobs, n, a, put);

    for (size_t i = 0; i < backs; i++) {
        bytes += due__unsettled_of(q, jobs[i].number);
        due__key_undo(q, due__extras_of(jobs[i].job));
        due__job_release(&q->slab, jobs[i].job);
        due__refused(q, jobs[i].number);
    }
    if (backs > 0) /* their keys are free */
        due__commit_given_up(q, bytes);
    due__submission_settle(q->commits, a);
}

/* Nobody waits for them; but if the queue stops, those that were not sent are taken back. */
static int put_only(struct due_queue *q, struct due__fresh *jobs, size_t n, due_id *ids,
                    struct due__put *put)
{
    int rc = name_all(q, jobs, n, ids);

    if (rc != 0)
        return refuse_all(q, jobs, n, rc);
    size_t in = leave_jobs(q, jobs, n, NULL);
    if (in == 0)
        return 0;
    due__commit_go(q, NULL, 0);
    if (due__load_seq(&q->commits->stopping)) /* G2: after the jobs were left */
        take_back(q, jobs, in, NULL, put);
    else
        put->room = put->named = in;
    return put->named > 0 ? (int)put->named : DUE_ECLOSED;
}

/* Name and leave those behind the first @left, which were, a piece at a time: the store works on
 * one while the next is made ready.  *@rc: why not all of them.  Answers how many were left. */
static size_t put_pieces(struct due_queue *q, const struct due__fresh *jobs, size_t left, size_t n,
                         int64_t until_ns, struct due__submission *a, due_id *ids, int *rc)
{
    size_t piece = due__commit_piece(q->commits);

    while (left < n) {
        size_t end = n - left < piece ? n : left + piece;

        due__commit_push(q, until_ns);
        *rc = name_all(q, jobs + left, end - left, ids + left);
        if (*rc != 0)
            break;
        left += leave_jobs(q, jobs + left, end - left, a);
        if (left < end) {
            refuse_all(q, jobs + end, n - end, 0);
            return left;
        }
    }
    refuse_all(q, jobs + left, n - left, *rc);
    return left;
}

static int put_and_wait(struct due_queue *q, struct due__fresh *jobs, size_t n, int64_t until_ns,
                        due_id *ids, struct due__put *put)
{
    size_t piece = due__commit_piece(q->commits);
    size_t first = n < piece ? n : piece;
    struct due__submission a;
    int rc = name_all(q, jobs, first, ids);

    if (rc != 0)
        return refuse_all(q, jobs, n, rc);
    if (!due__submission_begin(q, &a, (uint32_t)n)) {
        unname(q, jobs, first);
        return refuse_all(q, jobs, n, DUE_ENOMEM);
    }
    size_t left = leave_jobs(q, jobs, first, &a);
    if (left == first)
        left = put_pieces(q, jobs, left, n, until_ns, &a, ids, &rc);
    else
        refuse_all(q, jobs + first, n - first, 0);
    if (left < n)
        due__submission_fewer(q->commits, &a, (uint32_t)(n - left));
    if (left > 0) {
        due__commit_go(q, &a, until_ns);
        due__submission_wait(q->commits, &a, until_ns);
    }
    if (!due__submission_over(q->commits, &a))
        take_back(q, jobs, left, &a, put);
    if (a.rc != 0)
        rc = a.rc;
    due__submission_end(q, &a);
    put->room += a.landed + a.gone;
    put->named += a.landed + a.doubt;
    if (left == 0)
        return 0;
    if (put->named > a.landed)
        rc = DUE_EINDOUBT;
    else if (a.landed < left && rc == 0)
        rc = due__commit_excuse(q);
    /* One that was shown to on_discard behind a refused one is not to be put again. */
    put->over = rc == DUE_EINDOUBT || rc == DUE_ETIMEDOUT || a.gone > 0 ||
                (rc == DUE_EAGAIN && a.landed > 0); /* there was no room for the others */
    return a.landed > 0 ? (int)a.landed : rc;
}

/* Does its caller wait for the answer, whatever the queue confirms?  That a key or room was to be
 * had is one. */
static bool answered(const struct due_queue *q, const struct due__fresh *it)
{
    if (!q->shared || has_key(it))
        return q->shared;
    return due__load_relaxed(&q->commits->share->capacity) > 0; /* no edge: a guess */
}

int due__commit_put(struct due_queue *q, struct due__fresh *jobs, size_t n,
                    struct due__deadline *by, due_id *ids, struct due__put *put)
{
    struct due__commits *c = q->commits;
    uint64_t bytes = bytes_of(jobs, n);
    bool crowded = due__unsettled_crowded(c);
    bool full = crowded || !due__unsettled_try(c, bytes);
    bool async = c->async && !answered(q, jobs);
    int64_t until = !async || full ? due__deadline_at(q, by) : 0;

    *put = (struct due__put){ .room = 0 };
    int rc = crowded ? due__unsettled_wait(q, until) : 0;
    if (rc == 0 && full)
        rc = due__unsettled_take(q, bytes, until);
    if (rc != 0)
        return drop_all(q, jobs, n, rc);
    if (async)
        return put_only(q, jobs, n, ids, put);
    return put_and_wait(q, jobs, n, until, ids, put);
}
