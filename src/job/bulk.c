/* bulk.c - many jobs cancelled or cleared: one change for all, not one each.
 *
 * The jobs are claimed one by one, up to DUE__TOGETHER of them, and handed to the journal together.
 *
 * Edges      none of its own
 */
#include "job/bulk.h"

#include <string.h>

#include "job/cancel.h"
#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/discard.h"
#include "job/lease.h"
#include "queue/closing.h"
#include "queue/compaction.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/stored.h"

/* ---- Cancel ---- */

/* What can be claimed at once leaves as one change.  What cannot, because somebody has it, or
 * because its PUT is under way, is seen to by itself; so is an id that is there twice, when the
 * first one has its answer. */
static void cancel_bulk(struct due_queue *q, const due_id *ids, size_t n, struct due__deadline *by,
                        int *results)
{
    uint32_t number[DUE__TOGETHER];
    uint16_t which[DUE__TOGETHER];
    int rc[DUE__TOGETHER];
    size_t claimed = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t generation;
        uint64_t w;

        results[i] = due__id_find(q, ids[i], by, &number[claimed], &generation);
        if (results[i] == 0)
            results[i] = due__claim(q, number[claimed], generation, by, &w);
        if (results[i] == 0 && !due__end_unsent(q, number[claimed], w, DUE__CANCEL))
            which[claimed++] = (uint16_t)i;
    }
    if (claimed > 0)
        q->journal->change_all(q, number, claimed, DUE__CANCEL, 0, by, rc);
    for (size_t k = 0; k < claimed; k++) {
        results[which[k]] = rc[k];
        if (rc[k] != 0 && rc[k] != DUE_EINDOUBT && rc[k] != DUE_ESTALE)
            due__give_up(q, number[k]);
    }
    for (size_t i = 0; i < n; i++) {
        if (results[i] == DUE_EAGAIN || results[i] == DUE_EBUSY || results[i] == DUE_ENOENT ||
            results[i] == DUE_ESTALE)
            results[i] = due__named(q, due__cancel(q, ids[i], NULL, by));
    }
}

int due__cancel_all(struct due_queue *q, const due_id *ids, size_t n, int *results)
{
    int some_results[DUE__TOGETHER];
    struct due__deadline by = { 0 };
    int cancelled = 0;

    for (size_t at = 0; at < n; at += DUE__TOGETHER) {
        size_t some = n - at < DUE__TOGETHER ? n - at : DUE__TOGETHER;

        cancel_bulk(q, ids + at, some, &by, some_results);
        for (size_t i = 0; i < some; i++)
            cancelled += some_results[i] == 0;
        if (results != NULL)
            memcpy(results + at, some_results, some * sizeof *results);
    }
    return cancelled;
}

/* ---- Clear ---- */

/* The claimed jobs leave.  What keeps one of them from it. */
static int clear_claimed(struct due_queue *q, const uint32_t *numbers, size_t n,
                         struct due__deadline *by, uint64_t *cleared)
{
    int results[DUE__TOGETHER];
    int rc = 0;

    q->journal->change_all(q, numbers, n, DUE__CLEAR, 0, by, results);
    for (size_t i = 0; i < n; i++) {
        *cleared += results[i] == 0;
        if (results[i] != 0 && results[i] != DUE_EINDOUBT)
            due__unclaim(q, numbers[i], false);
        if (rc == 0 || results[i] == DUE_EINDOUBT)
            rc = results[i] != 0 ? results[i] : rc;
    }
    return rc;
}

/* A closed queue's that was not sent: who sends refuses it, and tells its caller so. */
static bool refused_later(const struct due_queue *q, uint64_t w)
{
    return (w & q->journal->unsent) && due__closed(q);
}

/* A claimed job that needs not be removed from anywhere: it was not sent yet, or stays there. */
static bool clear_alone(struct due_queue *q, uint32_t number, uint64_t w)
{
    if (due__end_unsent(q, number, w, DUE__CLEAR))
        return true;
    if (!due__closed(q))
        return false;
    due__keep_stored(q, number);
    return true;
}

int due__clear_all(struct due_queue *q, int topic, uint64_t *cleared)
{
    uint32_t claimed[DUE__TOGETHER];
    struct due__deadline by = { 0 };
    size_t n = 0;

    int rc = q->journal->whole(q, &by);
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
        if (rc == 0 && clear_alone(q, at, w)) {
            if (++*cleared % DUE__SWEEP_EVERY == 0)
                due__sweep_sometimes(q);
        } else if (rc == 0) {
            claimed[n++] = at;
        }
        if (n == DUE__TOGETHER) {
            rc = clear_claimed(q, claimed, n, &by, cleared);
            n = 0;
            due__sweep_sometimes(q);
        }
    }
    int last = n > 0 ? clear_claimed(q, claimed, n, &by, cleared) : 0;
    return rc != 0 ? rc : last;
}
