/* memory.c - the journal of a queue without a store: what is handed to it has landed, and is
 * applied by the caller, at once.
 *
 * Edges      described elsewhere: C1 inside.c, E3 tenure.c, J1 slab.h
 */
#include "job/memory.h"

#include "job/amend.h"
#include "job/apply.h"
#include "job/discard.h"
#include "job/draft.h"
#include "job/enqueue_delegated.h"
#include "job/repeat.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/queue.h"

/* Under the lock.  There may be many that die at a time: who sees to them sees to no others
 * besides. */
static void memory_apply(struct due_queue *q, struct due__change *c)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, c->number)->word); /* J1: the caller's */
    struct due__tenure t;

    due__enter(q, &t);
    if (c->purpose == DUE__BURY)
        t.rounds = DUE__ROUNDS_MAX;
    else if (c->purpose == DUE__UPDATE || c->purpose == DUE__REPEAT)
        due__catch_up(q, DUE__FOREIGN_MAX);
    due__change_apply(q, c);
    due__tenure_end(q, &t);
    due__change_end(q, c);
    due__keep_if_closed(q, c->number, due__word_generation(w));
}

static void memory_land(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                        int64_t want_ns, bool waited)
{
    struct due__change c = {
        .at_ns = want_ns, .number = number, .purpose = (uint8_t)purpose, .waited = waited
    };

    c.draft = due__draft_wanted(purpose, want_ns);
    if (purpose == DUE__REPEAT)
        c.at_ns = due__repeat_at(q, number);
    due__change_tell(q, &c);
    if (due__change_locks(purpose))
        memory_apply(q, &c);
    else
        due__change_end(q, &c);
}

static int memory_change(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                         int64_t want_ns, struct due__deadline *by)
{
    (void)by;
    memory_land(q, number, purpose, want_ns, true);
    return 0;
}

/* What is to stand last stands behind what its caller has put in before. */
static void before_last(struct due_queue *q, const struct due__amendment *a)
{
    if (a->last)
        due__drain_all(q);
}

/* Who waits for the end of a lengthy one looks again: he has seen the job CHANGING under the lock,
 * and under the lock that ends before this. */
static int memory_amend(struct due_queue *q, struct due__amendment *a, struct due__deadline *by)
{
    before_last(q, a);
    if (!a->lengthy)
        return due__amend_at_once(q, a);
    due__inside_enter(q); /* C1 of inside.c */
    int rc = due__amend_claimed(q, a, by);
    due__quit_ring(q, &q->changing);
    due__inside_leave(q);
    return rc;
}

static int memory_amend_all(struct due_queue *q, const struct due__amendment *as,
                            const struct due__use *jobs, size_t n, struct due__deadline *by,
                            uint64_t *done)
{
    (void)by;
    before_last(q, as);
    return due__amend_each(q, as, jobs, n, done);
}

static int memory_unsettled(struct due_queue *q, uint32_t number, uint32_t generation,
                            uint64_t news, struct due__deadline *by, bool *inside)
{
    (void)news;
    (void)by;
    return due__amend_wait(q, number, generation, inside);
}

static void memory_change_all(struct due_queue *q, const uint32_t *numbers, size_t n,
                              enum due__purpose purpose, int64_t want_ns, struct due__deadline *by,
                              int *results)
{
    struct due__change c = { .at_ns = want_ns, .purpose = (uint8_t)purpose };
    bool quick = q->events == NULL && !due__change_locks(purpose); /* nothing but its end */

    (void)by;
    for (size_t i = 0; i < n; i++) {
        c.number = numbers[i];
        if (quick)
            due__change_end(q, &c);
        else
            memory_land(q, numbers[i], purpose, want_ns, false);
        results[i] = 0;
    }
}

static void memory_leave(struct due_queue *q, uint32_t number, enum due__purpose purpose)
{
    memory_land(q, number, purpose, 0, false);
}

static void memory_nothing(struct due_queue *q)
{
    (void)q;
}

static void memory_stop(struct due_queue *q, int64_t until_ns)
{
    (void)q;
    (void)until_ns;
}

static void memory_stats(struct due_queue *q, struct due_stats *s)
{
    (void)q;
    (void)s;
}

static bool memory_store_stats(struct due_queue *q, struct due_store_stats *s)
{
    (void)q;
    (void)s;
    return false;
}

static int memory_flush(struct due_queue *q, struct due__deadline *by)
{
    (void)q;
    (void)by;
    return 0;
}

static bool memory_closed(const struct due_queue *q)
{
    return (due__load_seq(&q->state) & DUE__CLOSING) != 0; /* E3 of tenure.c */
}

static void memory_put(struct due_queue *q, const struct due__fresh *it, struct due__submission *a)
{
    (void)a;
    due__put_fresh(q, it);
}

static uint64_t memory_landed(const struct due_queue *q)
{
    (void)q;
    return 0;
}

static bool memory_lacks(const struct due_queue *q, uint32_t number)
{
    (void)q;
    (void)number;
    return true;
}

const struct due__journal due__memory_journal = {
    .unsent = 0,
    .no_round = DUE__ACK,
    .left_text = "discarded",
    .proxy = due__enqueue_proxy,
    .keeps_jobs = false,
    .takes_time = false,
    .fixed_priority = false,
    .keeps_keys = false,
    .change = memory_change,
    .change_all = memory_change_all,
    .amend = memory_amend,
    .amend_all = memory_amend_all,
    .unsettled = memory_unsettled,
    .leave = memory_leave,
    .given_up = memory_nothing,
    .stop = memory_stop,
    .close = memory_nothing,
    .refuse = memory_nothing,
    .free = memory_nothing,
    .undo = memory_nothing,
    .stats = memory_stats,
    .store_stats = memory_store_stats,
    .flush = memory_flush,
    .loaded = memory_flush,
    .whole = memory_flush,
    .put = memory_put,
    .landed = memory_landed,
    .news = memory_landed,
    .interrupt = memory_nothing,
    .closed = memory_closed,
    .lacks = memory_lacks,
};
