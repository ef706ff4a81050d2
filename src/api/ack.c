/* ack.c - what the holder of a lease says: ack, nack, snooze, bury.
 *
 * Whoever answers claims the job first (CLAIMED): one swap decides between him, the end of his
 * lease and everybody else.  With a store the claim lasts until that has confirmed the answer.
 *
 * Guards     T  the timeline lock      A  atomic, see Edges      O  its owner's alone
 *
 * Edges      described elsewhere: J1 slab.h, R1 R2 R3 lease.c, E3 tenure.c, C2 closing.c
 */
#include "api/ack.h"

#include <limits.h>
#include <string.h>

#include "api/held.h"
#include "job/cancel.h"
#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/deferred_lease.h"
#include "job/discard.h"
#include "job/handover.h"
#include "job/lease.h"
#include "job/release.h"
#include "job/repeat.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "queue/take.h"

#define ACKS_AT_ONCE 256u /* handed to the journal together */

/* A copy of a job is let go of; *job is zeroed. */
static void let_go(struct due_queue *q, due_job *job, uint32_t number)
{
    bool last = due__lease_let_go(q, number);
    struct due__shard *it = due__shard_enter(&q->slab);

    it->done++;
    if (last)
        due__place_done(q, it, number);
    due__shard_leave(it);
    memset(job, 0, sizeof *job);
}

/* Has the lease that is over at @until_ns ended?  @latest_ns: a time that was not passed when the
 * call began; DUE_FOREVER: none is known. */
static inline bool lease_over(const struct due_queue *q, int64_t until_ns, int64_t latest_ns)
{
    return until_ns <= latest_ns && due__clock_passed(&q->clock, until_ns);
}

/* The leased job becomes the caller's own (CLAIMED); *w gets its word from before.  DUE_ESTALE: it
 * is not the caller's any more, or time is up. */
static inline int claim_once(struct due_queue *q, struct due__job *j, uint32_t number,
                             uint32_t token, int64_t latest_ns, uint64_t *w)
{
    const struct due__lease *l = due__lease_at(q, number);

    *w = due__load_acquire(&j->word); /* J1, R1 */
    do {
        while (due__word_state(*w) == DUE__MOVING) {
            due__wait_moved(q);
            *w = due__load_acquire(&j->word); /* J1, R1 */
        }
        if (due__word_state(*w) != DUE__LEASED || due__load_relaxed(&l->token) != token || /* R1 */
            lease_over(q, due__load_relaxed(&j->deadline_ns), latest_ns))                  /* J1 */
            return DUE_ESTALE;
    } while (!due__word_claim(&j->word, w, DUE__CLAIMED)); /* J1, R1 */
    due__count(q, number, DUE__F_LEASED, -1);
    if (due__load_relaxed(&l->token) == token) { /* R1 */
        due__answered(q, number);
        return 0;
    }
    due__lease_resume(q, number); /* the same word, of a later lease: stamps come again */
    return DUE_ESTALE;
}

/* The lease of the job that could not be claimed is being extended: wait for that.  0: look anew;
 * DUE_ESTALE: it is not; or an error: how that ended is not known in time.  *@follows: the call is
 * known to follow an extension. */
static int extended(struct due_queue *q, uint32_t number, uint64_t w, bool *follows)
{
    const struct due__job *j = due__job_at(&q->slab, number);
    struct due__deadline by = { 0 };

    if (!q->shared || due__word_state(w) != DUE__CLAIMED)
        return DUE_ESTALE;
    if (!*follows)
        q->journal->follows(q, 1);
    *follows = true;
    uint64_t news = q->journal->news(q);
    if (!q->journal->extending(q, number))                        /* X1 of share.c */
        return due__load_acquire(&j->word) != w ? 0 : DUE_ESTALE; /* J1 */
    return q->journal->unsettled(q, number, 0, news, &by, NULL);
}

/* Its change is left for the store, or there will be none. */
static void followed(struct due_queue *q, bool follows)
{
    if (follows)
        q->journal->follows(q, -1);
}

/* As claim_once() again and again; @j: that job.  *@follows as in extended(), and then followed()
 * is to be called. */
static inline __attribute__((always_inline)) int claim_of(struct due_queue *q, struct due__job *j,
                                                          uint32_t number, uint64_t token,
                                                          int64_t latest_ns, uint64_t *w,
                                                          bool *follows)
{
    int rc;

    while ((rc = claim_once(q, j, number, due__token_of(token), latest_ns, w)) == DUE_ESTALE) {
        rc = extended(q, number, *w, follows);
        if (rc != 0)
            break;
    }
    return rc;
}

static __attribute__((noinline)) int claim(struct due_queue *q, uint32_t number, uint64_t token,
                                           uint64_t *w, bool *follows)
{
    return claim_of(q, due__job_at(&q->slab, number), number, token, DUE_FOREVER, w, follows);
}

/* What an ack is for the journal. */
static enum due__purpose ends_by(const struct due_queue *q, uint32_t number)
{
    return due__repeats(q, number) && !due__revoked(q, number) ? DUE__REPEAT : DUE__ACK;
}

/* A claimed job is acked. */
static int ack_claimed(struct due_queue *q, uint32_t number)
{
    struct due__deadline by = { 0 };
    int rc = q->journal->change(q, number, ends_by(q, number), 0, &by);

    if (!due__answers(rc))
        due__lease_resume(q, number);
    return rc;
}

/* A claimed job whose ack concerns nobody else: it has no key, no group, no further rounds. */
static inline bool plain(const struct due_queue *q, const struct due__job *j, uint64_t w)
{
    return q->short_ways && !(w & DUE__PASSED) && !(due__facts_load(j).payload & DUE__EXTRAS);
}

/* A job that was claimed, or could not be: @rc. */
static __attribute__((noinline)) int ack_in_full(due_job *job, uint32_t number, int rc,
                                                 bool follows)
{
    struct due_queue *q = job->queue;

    if (rc == 0)
        rc = ack_claimed(q, number);
    followed(q, follows);
    if (due__answers(rc))
        let_go(q, job, number);
    return rc;
}

/* The reserved job, claimed and plain.  NULL: it is nothing of the kind, and the call is over with
 * *@rc.  @latest_ns as in lease_over(). */
static inline __attribute__((always_inline)) struct due__job *claim_plain(due_job *job,
                                                                          int64_t latest_ns,
                                                                          uint32_t *number, int *rc)
{
    struct due_queue *q = job->queue;
    bool follows = false;
    uint64_t w;

    *rc = due__held(job, number);
    if (*rc != 0)
        return NULL;
    struct due__job *j = due__job_at(&q->slab, *number);
    *rc = claim_of(q, j, *number, job->token, latest_ns, &w, &follows);
    if (*rc == 0 && plain(q, j, w))
        return j;
    *rc = ack_in_full(job, *number, *rc, follows);
    return NULL;
}

static int ack(due_job *job)
{
    uint32_t number;
    int rc;
    struct due__job *j = claim_plain(job, DUE_FOREVER, &number, &rc);

    if (j != NULL)
        due__ack_at_once(job, j, number);
    return rc;
}

int due_ack(due_job *job)
{
    return ack(job);
}

/* Jobs of one queue that are acked as one change. */
struct acks {
    uint32_t number[ACKS_AT_ONCE];  /* O  their places */
    uint32_t claimed[ACKS_AT_ONCE]; /* O  of those that can be acked */
    uint8_t purpose[ACKS_AT_ONCE];  /* O  of each claimed one: enum due__purpose */
    int sent[ACKS_AT_ONCE];         /* O  what became of it */
    uint32_t chosen[ACKS_AT_ONCE];  /* O  those of one purpose */
    int rc[ACKS_AT_ONCE];           /* O  what became of them */
    int results[ACKS_AT_ONCE];      /* O  the answers */
};

/* @n claimed jobs are acked: those that leave, and after them those that come again. */
static void send_acks(struct due_queue *q, struct acks *a, size_t n, struct due__deadline *by)
{
    for (size_t i = 0; i < n; i++)
        a->purpose[i] = (uint8_t)ends_by(q, a->claimed[i]);
    for (int round = 0; round < 2; round++) {
        enum due__purpose which = round == 0 ? DUE__ACK : DUE__REPEAT;
        size_t count = 0;

        for (size_t i = 0; i < n; i++) {
            if (a->purpose[i] == which)
                a->chosen[count++] = a->claimed[i];
        }
        if (count > 0)
            q->journal->change_all(q, a->chosen, count, which, 0, by, a->rc);
        count = 0;
        for (size_t i = 0; i < n; i++) {
            if (a->purpose[i] == which)
                a->sent[i] = a->rc[count++];
        }
    }
}

/* What can be acked is claimed and sent together. */
static void ack_bulk(struct due_queue *q, struct acks *a, due_job *jobs, size_t n,
                     struct due__deadline *by)
{
    bool follows = false;
    size_t count = 0;
    uint64_t w;

    for (size_t i = 0; i < n; i++) {
        a->results[i] = due__held(&jobs[i], &a->number[i]);
        if (a->results[i] != 0)
            continue;
        a->results[i] = claim(q, a->number[i], jobs[i].token, &w, &follows);
        due__prefetch_end(q, &jobs[i], a->number[i]);
        if (a->results[i] == 0)
            a->claimed[count++] = a->number[i];
        else
            let_go(q, &jobs[i], a->number[i]);
    }
    if (count > 0)
        send_acks(q, a, count, by);
    followed(q, follows);
    count = 0;
    for (size_t i = 0; i < n; i++) {
        if (a->results[i] != 0)
            continue;
        a->results[i] = a->sent[count++];
        if (due__answers(a->results[i]))
            let_go(q, &jobs[i], a->number[i]);
        else
            due__lease_resume(q, a->number[i]);
    }
}

/* One of several of a queue with short ways. */
static inline __attribute__((always_inline)) int ack_beside(struct due_queue *q, due_job *job,
                                                            int64_t latest_ns, struct due__acks *a)
{
    uint32_t number;
    int rc;
    struct due__job *j = claim_plain(job, latest_ns, &number, &rc);

    if (j == NULL)
        return rc;
    due__acks_add(q, a, j, number);
    due__job_clear(job);
    return 0;
}

/* Jobs of a queue with short ways, DUE__ACKS_MOST at most: how many were acked. */
static int ack_few(struct due_queue *q, due_job *jobs, size_t n, int *results)
{
    int64_t latest = due__clock_latest(&q->clock);
    struct due__acks a;
    int acked = 0;

    a.n = a.n_last = 0;
    for (size_t i = 0; i < n; i++) {
        int rc = ack_beside(q, &jobs[i], latest, &a);

        acked += rc == 0;
        if (results != NULL)
            results[i] = rc;
    }
    due__acks_end(q, &a);
    return acked;
}

/* The same of any number. */
static int ack_short(struct due_queue *q, due_job *jobs, size_t n, int *results)
{
    int acked = 0;

    for (size_t at = 0; at < n; at += DUE__ACKS_MOST)
        acked += ack_few(q, jobs + at, n - at < DUE__ACKS_MOST ? n - at : DUE__ACKS_MOST,
                         results != NULL ? results + at : NULL);
    return acked;
}

/* How many of the jobs, ACKS_AT_ONCE at most, are of the first one's queue. */
static size_t of_one_queue(const due_job *jobs, size_t n)
{
    size_t same = 1;

    while (same < n && same < ACKS_AT_ONCE && jobs[same].queue == jobs[0].queue)
        same++;
    return same;
}

/* Jobs of one queue, ACKS_AT_ONCE at most: how many were acked.  One by one if that is nobody's, or
 * without memory for more. */
static int ack_some(struct due_queue *q, due_job *jobs, size_t n, struct due__deadline *by,
                    int *results)
{
    bool bulk = n > 1 && q != NULL && !due__forked(q);
    int acked = 0;

    if (bulk && q->short_ways)
        return ack_short(q, jobs, n, results);
    bool inside = bulk && due__inside_stored(q);
    struct due__alloc alloc; /* a copy: with the last one answered for the queue may be freed */
    struct acks *a = NULL;
    if (bulk) {
        alloc = q->alloc;
        a = due__alloc_raw(&alloc, sizeof *a);
    }
    if (a != NULL)
        ack_bulk(q, a, jobs, n, by);
    for (size_t i = 0; i < n; i++) {
        int rc = a != NULL ? a->results[i] : ack(&jobs[i]);

        acked += rc == 0;
        if (results != NULL)
            results[i] = rc;
    }
    if (a != NULL)
        due__alloc_free(&alloc, a, sizeof *a);
    due__inside_end(q, inside);
    return acked;
}

int due_ack_batch(due_job *jobs, size_t n, int *results)
{
    struct due__deadline by = { 0 };
    int acked = 0;

    if (n > INT_MAX)
        return DUE_EINVAL;
    for (size_t at = 0; at < n;) {
        size_t some = of_one_queue(jobs + at, n - at);

        acked +=
            ack_some(jobs[at].queue, jobs + at, some, &by, results != NULL ? results + at : NULL);
        at += some;
    }
    return acked;
}

/* A claimed job waits again, for @delay_ns: it has failed, or its attempt does not count. */
static int give_back(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                     int64_t delay_ns)
{
    struct due__deadline by = { 0 };

    return q->journal->change(q, number, purpose, due__time_add(due__jobs_now(q), delay_ns), &by);
}

/* A claimed job dies. */
static int bury(struct due_queue *q, uint32_t number, enum due_cause cause, const char *reason)
{
    int64_t deadline = due__load_relaxed(&due__lease_at(q, number)->deadline_ns); /* R1 */
    struct due__deadline by = { 0 };
    uint32_t *failures = &due__lease_at(q, number)->failures;
    uint32_t failed = cause == DUE_CAUSE_ATTEMPTS;

    due__add_relaxed(failures, failed); /* no edge: a counter; the job is ours */
    int rc = due__bury(q, number, deadline, cause, reason, &by);
    if (due__answers(rc))
        due__lease_answered(q);
    else
        due__add_relaxed(failures, 0 - failed); /* no edge: likewise */
    return rc;
}

/* A claimed job has failed: it waits again, or that was its last attempt. */
static int fail(struct due_queue *q, uint32_t number, int64_t delay_ns)
{
    const struct due__lease *l = due__lease_at(q, number);
    const due_retry *r = due__retry_of(q, due__job_at(&q->slab, number));
    uint32_t limit = due__retry_limit(r);

    if (limit > 0 && due__load_relaxed(&l->attempts) >= limit) { /* R1 */
        int rc = bury(q, number, DUE_CAUSE_ATTEMPTS, NULL);

        if (due__answers(rc)) /* who buries it does not know why */
            due__nacked(q, number);
        return rc;
    }
    if (delay_ns == DUE_DELAY_POLICY)
        delay_ns = due__retry_delay(q, r, due__load_relaxed(&l->failures) + 1); /* R1 */
    return give_back(q, number, DUE__GIVE_BACK, delay_ns);
}

/* A claimed job that was cancelled meanwhile leaves. */
static int end_revoked(struct due_queue *q, uint32_t number)
{
    struct due__deadline by = { 0 };
    int rc = q->journal->change(q, number, DUE__CANCEL, 0, &by);

    if (due__answers(rc))
        due__lease_answered(q);
    return rc;
}

/* What else may come of a claimed job that is not acked: it was cancelled meanwhile, or the queue
 * closes.  True: that was it, with the answer *@rc. */
static bool gone(struct due_queue *q, uint32_t number, int *rc)
{
    if (due__revoked(q, number)) {
        *rc = end_revoked(q, number);
        return true;
    }
    if (!due__closed(q)) /* else nobody will take it, nor write it down */
        return false;
    due__lease_answered(q);
    due__keep_stored(q, number);
    return true;
}

/* What a claimed job is answered with; @reason: of a bury. */
static int answer_claimed(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                          int64_t delay_ns, const char *reason)
{
    switch (purpose) {
    case DUE__BURY:
        return bury(q, number, DUE_CAUSE_BURIED, reason);
    case DUE__SNOOZE:
        return give_back(q, number, DUE__SNOOZE, delay_ns);
    default:
        return fail(q, number, delay_ns);
    }
}

/* The job is answered for otherwise than by an ack. */
static int answer(due_job *job, enum due__purpose purpose, int64_t delay_ns, const char *reason)
{
    struct due_queue *q = job->queue;
    bool follows = false;
    uint32_t number;
    uint64_t w;
    int rc = due__held(job, &number);

    if (rc != 0)
        return rc;
    rc = claim(q, number, job->token, &w, &follows);
    if (rc == 0) {
        if (!gone(q, number, &rc))
            rc = answer_claimed(q, number, purpose, delay_ns, reason);
        else if (purpose == DUE__GIVE_BACK && due__answers(rc))
            due__nacked(q, number);
        if (!due__answers(rc))
            due__lease_resume(q, number);
    }
    followed(q, follows);
    if (due__answers(rc))
        let_go(q, job, number);
    return rc;
}

int due_nack(due_job *job, int64_t delay_ns)
{
    return delay_ns >= DUE_DELAY_POLICY ? answer(job, DUE__GIVE_BACK, delay_ns, NULL) : DUE_EINVAL;
}

int due_snooze(due_job *job, int64_t delay_ns)
{
    return delay_ns >= 0 ? answer(job, DUE__SNOOZE, delay_ns, NULL) : DUE_EINVAL;
}

int due_bury(due_job *job, const char *reason)
{
    return answer(job, DUE__BURY, 0, reason);
}

int due__lease_release(due_job *job)
{
    struct due_queue *q = job->queue;
    struct due__tenure t;
    bool follows = false;
    uint32_t number;
    uint64_t w;
    int rc = due__held(job, &number);

    if (rc != 0)
        return rc;
    rc = claim(q, number, job->token, &w, &follows);
    if (rc == 0 && !gone(q, number, &rc)) {
        struct due__lease *l = due__lease_at(q, number);
        uint32_t attempts = due__load_relaxed(&l->attempts) - 1; /* R1 */

        due__store_relaxed(&l->attempts, attempts); /* R1 */
        due__enter(q, &t);
        due__wait_again(q, number, w, due__load_relaxed(&l->deadline_ns)); /* R1 */
        due__tenure_end(q, &t);
        due__lease_answered(q);
        due__keep_if_closed(q, number, due__word_generation(w));
    }
    followed(q, follows);
    if (!due__answers(rc))
        due__lease_resume(q, number);
    else
        let_go(q, job, number);
    return rc;
}
