/* takings.c - whose takings are, and how long somebody waits for them.
 *
 * The jobs that one call has taken are its own (CLAIMED), and it waits until the store has
 * confirmed that they have left it, or that one more attempt is counted there.  All that is a
 * taking.  When the call's time is up, what was not sent yet waits again.  What was sent cannot be
 * undone: it stays as it is, in the queue's list of takings, and whoever wants such jobs next takes
 * that over, before he takes any others.  So a call that may not wait at all gets its jobs too,
 * when it is made again, and only as many are under way as calls have asked for.
 *
 * A taking is its caller's, or in the list.  There it is under way, and who finds it may wait for
 * it in his turn; or it has landed.  If it lands there and was left by a call that was not to wait,
 * it stays for the next one, and everybody who waits for a job looks.  Otherwise its jobs are put
 * into the store again, since nobody may come back for them: but not its rounds, which stay.
 *
 * A call whose time is up first takes what has landed, then names what else may be leaving the
 * store.  What lands in between goes back there, and until it is there it is in memory alone: so
 * it is named too.  It is told by who sends under the calls' lock, under which the call looks.
 *
 * Guards     D  the calls' lock (sender.c)      O  whose the taking is, who is nobody in the list
 *            A  atomic, see Edges
 *
 * Edges      Q7  a taking in the list lands: landed counts up, then all are called, under the
 *                timeline lock -> who takes reads the count, looks into the list, and under that
 *                lock reads it again before it parks
 *            described elsewhere: G2 G3 sender.c, J1 slab.h, C1 inside.c
 *
 * Always     N1  what stands in the list was sent, or the store did not say that it is away
 */
#include "job/claim.h"
#include "job/handover.h"
#include "job/lease.h"
#include "job/repeat.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "store/share.h"
#include "store/taking_inside.h"

#define PASSED_AT_ONCE 32u         /* jobs */
#define SILENT_NS      DUE_MS(100) /* what is not answered for so long is not answered soon */

/* The descriptor says what there is to do. */
static void note(struct due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    due__tenure_end(q, &t);
}

/* Is there a round among what has landed?  That cannot be put into the store again. */
static bool any_round(struct due__commits *c, const struct due__taking *t)
{
    bool any = false;

    for (size_t i = 0; !any && t->rounds > 0 && i < t->n; i++)
        any = due__taking_is_round(t, i) && due__taking_landed(c, t, i);
    return any;
}

/* Under the calls' lock: all of it has landed, and only its rounds are to be kept. */
static bool keeps_rounds(const struct due__taking *t)
{
    return t->submission.keeps && t->submission.left == 0;
}

/* The taking is left as it is, for whoever comes.  False: it is over, and nobody will. */
static bool leave(struct due_queue *q, struct due__taking *t)
{
    struct due__commits *c = q->commits;

    /* Of a shared queue no round can: another process may have the next one by then. */
    bool keeps = any_round(c, t) || (q->shared && t->rounds > 0);
    due__lock_acquire(&c->calls);
    t->submission.keeps = keeps && !t->submission.polls;
    if (keeps_rounds(t)) {
        due__lock_release(&c->calls);
        if (due__taking_give_plain(q, t))
            due__commit_go(q, NULL, 0);
        due__lock_acquire(&c->calls);
    }
    bool done = t->submission.left == 0;
    bool may = !c->takings_ended && (!done || t->submission.polls) && !due__taking_empty(t);
    if (may)
        due__takings_add(c, t);
    due__lock_release(&c->calls);
    if (!may) {
        due__submission_settle(c, &t->submission);
        return false;
    }
    if (done)
        due__takings_call(q); /* they may want what its last taker left */
    else
        note(q);
    due__inside_leave(q); /* C1 of inside.c */
    return true;
}

/* Under the calls' lock: is there anything in it that the request wants, or to be sorted out? */
static bool concerns(const struct due_queue *q, const struct due__request *r,
                     const struct due__taking *t)
{
    bool fits = t->purpose == due__taking_purpose(r);

    for (size_t i = 0; i < t->n; i++) {
        int rc = t->results[i];

        if (rc < 0 || rc == DUE__LEFT)
            return true;
        if ((rc == 0 && !fits && due__taking_is_round(t, i)) || (rc == DUE__PENDING && !fits) ||
            rc == DUE__GONE)
            continue;
        if (due__taking_wanted(q, r, t, i))
            return true;
    }
    return false;
}

/* ---- One taking ---- */

/* Is the store away, or does it not answer any more? */
static bool silent(const struct due__commits *c)
{
    int64_t unsure = due__load_relaxed(&c->unsure_ns); /* no edge: a guess */

    return due__load_relaxed(&c->state) == DUE_ESTORE || /* no edge: likewise */
           (unsure != 0 && due__monotonic_now() - unsure > SILENT_NS);
}

/* Until it is over, or the caller's time is: whether anything is left under way. */
static bool await_end(struct due_queue *q, struct due__taking *t, const struct due__request *r,
                      struct due__deadline *by)
{
    struct due__commits *c = q->commits;

    while (!due__submission_over(c, &t->submission)) {
        due__submission_wait(c, &t->submission, due__deadline_at(q, by));
        if (due__submission_over(c, &t->submission))
            break;
        if (!due__polls(r) || silent(c))
            due__taking_take_back(q, t);
        bool goes_on = r->timeout_ns == DUE_FOREVER && !due__load_seq(&c->stopping) && /* G2 */
                       !due__load_seq(&c->fenced) &&                                   /* G2 */
                       (r->quit == NULL || !due__load_seq(r->quit));                   /* E3 */
        if (!goes_on)
            break;
        *by = (struct due__deadline){ 0 };
    }
    return !due__submission_over(c, &t->submission);
}

/* The ids of @n jobs, instead of jobs. */
static void show(struct due__request *r, const due_id *ids, size_t n)
{
    for (size_t i = 0; i < n && i < r->max; i++)
        r->jobs[i] = (due_job){ .id = ids[i] };
}

/* Under the calls' lock: may job @i be leaving the store, and the call has not got it?  It is under
 * way, or its end is in doubt, or it has landed, since the taking was sorted out. */
static bool is_leaving(const struct due_queue *q, const struct due__taking *t,
                       const struct due__request *r, size_t i)
{
    bool landed = t->results[i] == 0 && t->purpose == due__taking_purpose(r) &&
                  due__taking_wanted(q, r, t, i); /* else it was looked at, and left */

    return landed || t->results[i] == DUE__PENDING || t->results[i] == DUE_EINDOUBT;
}

/* Their ids, instead of jobs: how many. */
static size_t show_leaving(struct due_queue *q, const struct due__taking *t, struct due__request *r)
{
    struct due__commits *c = q->commits;
    size_t n = 0;

    due__lock_acquire(&c->calls);
    for (size_t i = 0; i < t->n && n < r->max; i++) {
        if (is_leaving(q, t, r, i))
            show(&(struct due__request){ .jobs = r->jobs + n++, .max = 1 }, &t->ids[i], 1);
    }
    due__lock_release(&c->calls);
    return n;
}

/* Behind @n jobs that the call has: the ids of those that may be leaving the store, up to one of
 * zero.  How many. */
static size_t name_rest(struct due_queue *q, const struct due__taking *t,
                        const struct due__request *r, size_t n, size_t unknown)
{
    struct due__request rest = *r;

    rest.jobs += n;
    rest.max -= n;
    size_t named = show_leaving(q, t, &rest);
    rest.jobs += named;
    rest.max -= named;
    show(&rest, t->ids, unknown);
    if (unknown < rest.max)
        rest.jobs[unknown] = (due_job){ .queue = NULL };
    return named + unknown;
}

/* Of a taking that is no longer waited for: 0, or the error if the request got nothing. */
static int answer(struct due_queue *q, struct due__taking *t, struct due__request *r, bool left,
                  size_t unknown)
{
    if (left && due__polls(r))
        return DUE_EAGAIN;
    if (name_rest(q, t, r, 0, unknown) > 0)
        return DUE_EINDOUBT;
    bool told =
        t->submission.rc != 0 && t->submission.rc != DUE_EINDOUBT; /* that named its jobs before */
    return told ? t->submission.rc : due__commit_excuse(q);
}

/* ---- Who has it ---- */

int due__lease_for(struct due_queue *q, const struct due__request *r, struct due__slot *slots,
                   size_t n)
{
    int64_t now = r->now_ns;
    int64_t lease = r->lease_ns;
    int rc = DUE_ESTALE; /* the claim is over */

    if (q->shared) { /* it begins before what is left of the claim is looked at */
        now = due__clock_now(&q->clock);
        lease = due__sharing_lease(q, slots, n, lease);
    }
    if (!q->shared || lease > 0)
        rc = due__lease_begin(q, slots, n, lease, now, r->jobs);
    if (rc != 0)
        due__put_back(q, slots, n);
    else if (q->shared)
        due__sharing_tokens(q, slots, n, r->jobs);
    return rc;
}

/* Was job @i marked as cancelled, and perhaps while nobody had the taking?  Who cancelled it was
 * told that it is not handed out again. */
static bool cancelled(const struct due_queue *q, const struct due__taking *t, size_t i)
{
    return t->was_left && due__revoked(q, t->numbers[i]);
}

/* Was a job cancelled since its round was taken, which is held still?  Of a shared queue who
 * cancels is told what became of the job in the store: this round was taken before. */
static bool ended(const struct due_queue *q, const struct due__taking *t, size_t i)
{
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, t->numbers[i])->word); /* J1 */
    bool kept = (due__load_seq(&q->state) & DUE__REFUSING) != 0; /* E3: it may have been */

    return !q->shared && (cancelled(q, t, i) || (due__word_state(w) == DUE__DONE && !kept));
}

/* Jobs that had an attempt counted: that may be long ago, and somebody else may own them now. */
static int lease(struct due_queue *q, struct due__request *r, struct due__slot *some, size_t n,
                 struct due__deadline *by)
{
    int rc = due__commit_held(q, by);

    if (rc == 0)
        return due__lease_for(q, r, some, n);
    for (size_t i = 0; i < n; i++)
        due__lease_uncount(q, due__slot_job(some[i]));
    due__put_back(q, some, n);
    return rc;
}

/* Jobs that have left the store, or had an attempt counted, go to the request.  0, or an error. */
static int pass(struct due_queue *q, const struct due__taking *t, struct due__request *r,
                struct due__slot *some, size_t n, struct due__deadline *by)
{
    if (n == 0)
        return 0;
    if (t->purpose == DUE__ATTEMPT)
        return lease(q, r, some, n, by);
    due__hand_over(q, some, n, 0, r->jobs);
    return 0;
}

/* What a request gets of a taking. */
struct handed {
    size_t n;                              /* O  jobs that it has */
    size_t rounds;                         /* O  so many of them are rounds */
    size_t behind;                         /* O  jobs that come next */
    struct due__slot some[PASSED_AT_ONCE]; /* O  these */
};

/* What comes next goes to the request, behind what it has.  0, or an error. */
static int hand_behind(struct due_queue *q, const struct due__taking *t,
                       const struct due__request *r, struct handed *h, struct due__deadline *by)
{
    struct due__request rest = *r;
    size_t n = h->behind;

    rest.jobs += h->n;
    h->behind = 0;
    int rc = pass(q, t, &rest, h->some, n, by);
    if (rc == 0)
        h->n += n;
    return rc;
}

/* Job @i, which has landed and is wanted: it is the request's, if it wants such jobs so, for good
 * or on a lease.  0, or an error. */
static int hand_one(struct due_queue *q, struct due__taking *t, struct due__request *r, size_t i,
                    struct handed *h, struct due__deadline *by)
{
    bool round = due__taking_is_round(t, i);

    due__taking_had(q->commits, t, i);
    if (!round && cancelled(q, t, i)) {
        due__taking_revoke(q, t, i);
    } else if (t->purpose != due__taking_purpose(r)) {
        due__taking_give_back(q, t, i);
        due__commit_go(q, NULL, 0);
    } else if (!round) {
        h->some[h->behind++] = t->slots[i];
        return h->behind == PASSED_AT_ONCE ? hand_behind(q, t, r, h, by) : 0;
    } else if (ended(q, t, i)) {
        due__rounds_end(q, 1); /* it has left what is ready, and nobody has it */
        due_job_done(&t->jobs[i]);
    } else {
        (void)hand_behind(q, t, r, h, by); /* where a round is, all are for good: no error */
        r->jobs[h->n] = t->jobs[i];
        due__late(q, &r->jobs[h->n], 1);
        h->n++;
        h->rounds++;
    }
    return 0;
}

/* What has landed and is wanted goes to the request, in order: how many, or an error.  If it wants
 * such jobs otherwise, for good or on a lease, they are to be had again: but not a round, which is
 * in the store no more.  Who does not wait comes again for what is behind a job that is under way.
 */
static int taking_hand(struct due_queue *q, struct due__taking *t, struct due__request *r,
                       struct due__deadline *by)
{
    struct handed h;
    bool fits = t->purpose == due__taking_purpose(r);
    int rc = 0;

    h.n = h.rounds = h.behind = 0;
    for (size_t i = 0; rc == 0 && i < t->n && h.n + h.behind < r->max; i++) {
        int result = due__taking_result(q->commits, t, i);

        if ((result != 0 && result != DUE__PENDING) || !due__taking_wanted(q, r, t, i))
            continue;
        if (result == DUE__PENDING && fits && due__polls(r))
            break;
        if (result == 0 && (fits || !due__taking_is_round(t, i)))
            rc = hand_one(q, t, r, i, &h, by);
    }
    due__rounds_end(q, h.rounds);
    if (rc == 0)
        rc = hand_behind(q, t, r, &h, by);
    return h.n > 0 ? (int)h.n : rc;
}

/* ---- Taking ---- */

/* The caller's taking, as far as he waits for it. */
static int conclude(struct due_queue *q, struct due__taking *t, struct due__request *r,
                    struct due__deadline *by)
{
    t->submission.polls = due__polls(r);
    due__commit_go(q, &t->submission, due__deadline_at(q, by));
    bool left = await_end(q, t, r, by);
    size_t unknown = due__taking_sort_out(q, t);
    int rc = taking_hand(q, t, r, by);

    if (rc == 0)
        rc = answer(q, t, r, left, unknown);
    else if (rc > 0 && r->lease_ns == 0)
        name_rest(q, t, r, (size_t)rc, unknown);
    if (!due__taking_over(q->commits, t) && leave(q, t))
        return rc;
    if (due__taking_return(q, t))
        due__commit_go(q, NULL, 0);
    return rc;
}

int due__take_stored(struct due_queue *q, struct due__request *r, const struct due__slot *slots,
                     size_t n, enum due__purpose purpose, struct due__deadline *by)
{
    struct due__taking *t = due__taking_begin(q, slots, n, purpose);
    int64_t until = due__deadline_at(q, by);

    if (t == NULL)
        return DUE_ENOMEM;
    due__commit_leave_each(q, t->numbers, t->purposes, n, &t->submission, until);
    return conclude(q, t, r, by);
}

int due__take_left(struct due_queue *q, struct due__request *r, struct due__deadline *by)
{
    struct due__commits *c = q->commits;
    struct due__taking *t = NULL;

    r->landed = due__load_seq(&c->landed); /* Q7: before the look into the list */
    if (due__load_seq(&c->takings_ready) == 0 && due__load_seq(&c->takings_under_way) == 0) /* Q7 */
        return 0;
    due__lock_acquire(&c->calls);
    for (struct due__taking **at = &c->takings; *at != NULL && t == NULL;) {
        if (concerns(q, r, *at))
            t = due__takings_take(c, at);
        else
            at = &(*at)->next;
    }
    due__lock_release(&c->calls);
    if (t == NULL)
        return 0;
    due__inside_enter(q); /* C1 of inside.c */
    int rc = conclude(q, t, r, by);
    return rc == DUE_ETIMEDOUT && !silent(c) ? 0 : rc;
}

/* ---- What nobody comes back for ---- */
