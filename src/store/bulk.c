/* bulk.c - many jobs of a stored queue cancelled or cleared: one change for all, not one each.
 *
 * The jobs are claimed one by one, up to DUE__TOGETHER of them, and then leave the store as one
 * call's changes.  Who waits for that has them back when it has landed, and does what is left to
 * do.
 *
 * Edges      described elsewhere: J1 slab.h, G2 sender.c
 */
#include "store/bulk.h"

#include <string.h>

#include "job/cancel.h"
#include "job/claim.h"
#include "job/discard.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "store/sender.h"

/* ---- Cancel ---- */

/* What can be claimed at once leaves the store as one change.  What cannot, because somebody has
 * it, or because its PUT is under way, is seen to by itself; so is an id that is there twice, when
 * the first one has its answer. */
static void cancel_bulk(struct due_queue *q, const due_id *ids, size_t n, struct due__deadline *by,
                        int *results)
{
    uint32_t number[DUE__TOGETHER];
    uint16_t which[DUE__TOGETHER];
    int rc[DUE__TOGETHER];
    size_t claimed = 0;
    uint64_t bytes = 0;
    bool unsent = false;

    for (size_t i = 0; i < n; i++) {
        uint32_t generation;
        uint64_t w;

        results[i] = due__id_find(q, ids[i], by, &number[claimed], &generation);
        if (results[i] == 0)
            results[i] = due__claim(q, number[claimed], generation, by, &w);
        if (results[i] == 0 && !(w & DUE__LINKED)) {
            which[claimed++] = (uint16_t)i;
        } else if (results[i] == 0) { /* it was not sent yet */
            bytes += due__unsettled_of(q, number[claimed]);
            due__cancel_end(q, number[claimed]);
            unsent = true;
        }
    }
    if (unsent)
        due__commit_given_up(q, bytes);
    if (claimed > 0)
        due__commit_all(q, number, claimed, DUE__CANCEL, 0, by, rc);
    for (size_t k = 0; k < claimed; k++) {
        results[which[k]] = rc[k];
        if (rc[k] != 0 && rc[k] != DUE_EINDOUBT)
            due__give_up(q, number[k]);
    }
    for (size_t i = 0; i < n; i++) {
        if (results[i] == DUE_EAGAIN || results[i] == DUE_EBUSY || results[i] == DUE_ENOENT)
            results[i] = due__cancel(q, ids[i], NULL, by);
    }
}

int due__cancel_all(struct due_queue *q, const due_id *ids, size_t n, int *results)
{
    int some_results[DUE__TOGETHER];
    struct due__deadline by = { 0 };
    int cancelled = 0;

    due__inside_enter(q); /* C1 of inside.c */
    for (size_t at = 0; at < n; at += DUE__TOGETHER) {
        size_t some = n - at < DUE__TOGETHER ? n - at : DUE__TOGETHER;

        cancel_bulk(q, ids + at, some, &by, some_results);
        for (size_t i = 0; i < some; i++)
            cancelled += some_results[i] == 0;
        if (results != NULL)
            memcpy(results + at, some_results, some * sizeof *results);
    }
    due__inside_leave(q);
    return cancelled;
}

/* ---- Clear ---- */

/* The claimed jobs leave the store.  What keeps one of them from it. */
static int clear_claimed(struct due_queue *q, const uint32_t *numbers, size_t n,
                         struct due__deadline *by, uint64_t *cleared)
{
    int results[DUE__TOGETHER];
    int rc = 0;

    due__commit_all(q, numbers, n, DUE__CLEAR, 0, by, results);
    for (size_t i = 0; i < n; i++) {
        struct due__job *j = due__job_at(&q->slab, numbers[i]);

        *cleared += results[i] == 0;
        if (results[i] == 0 && !q->commits->async)
            due__discard(q, numbers[i], due__load_relaxed(&j->word)); /* J1: the caller's own */
        else if (results[i] != 0 && results[i] != DUE_EINDOUBT)
            due__unclaim(q, numbers[i], false);
        if (rc == 0 || results[i] == DUE_EINDOUBT)
            rc = results[i] != 0 ? results[i] : rc;
    }
    return rc;
}

/* A closed queue's that was not sent: who sends refuses it, and tells its caller so. */
static bool refused_later(const struct due_queue *q, uint64_t w)
{
    return (w & DUE__LINKED) && due__closed(q);
}

/* A claimed job that needs not be removed from the store. */
static bool clear_alone(struct due_queue *q, uint32_t number, uint64_t w)
{
    if (w & DUE__LINKED) { /* it was not sent yet */
        uint64_t bytes = due__unsettled_of(q, number);

        due__discard(q, number, w);
        due__commit_given_up(q, bytes);
    } else if (due__closed(q)) { /* it stays there */
        due__keep_stored(q, number);
    } else {
        return false;
    }
    return true;
}

int due__clear_stored(struct due_queue *q, int topic, uint64_t *cleared)
{
    uint32_t claimed[DUE__TOGETHER];
    struct due__deadline by = { 0 };
    size_t n = 0;

    int rc = due__commit_whole(q, &by);
    if (rc == 0)
        due__lapse_all(q, &by);
    for (uint32_t at = 0; rc == 0 && at < due__slab_end(&q->slab); at++) {
        uint64_t w;

        if (!due__clearable(q, at, topic, &w) || refused_later(q, w))
            continue;
        rc = due__claim_settled(q, at, due__word_generation(w), NULL, &by, &w);
        if (rc == DUE_ENOENT || rc == DUE_EBUSY || rc == DUE_ECLOSED) {
            rc = 0; /* closed: the PUT of that one is refused by who sends, who sees to it */
            continue;
        }
        if (rc == 0 && clear_alone(q, at, w))
            ++*cleared;
        else if (rc == 0)
            claimed[n++] = at;
        if (n == DUE__TOGETHER) {
            rc = clear_claimed(q, claimed, n, &by, cleared);
            n = 0;
            due__sweep_sometimes(q);
        }
    }
    int last = n > 0 ? clear_claimed(q, claimed, n, &by, cleared) : 0;
    return rc != 0 ? rc : last;
}
