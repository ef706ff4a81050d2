/* peek.c - what would be handed out next, and what is dead; and due_trim().
 *
 * Edges      described elsewhere: J1 slab.h
 */
#include <limits.h>
#include <string.h>

#include "api/pages.h"
#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/key_table.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/compaction.h"
#include "queue/inside.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "queue/tenure.h"

enum found { NOTHING, SOMETHING, AGAIN, BEHIND /* what stands there until a lease ends */ };

/* The first live job of a topic's line; its window is taken back for the look. */
static enum found peek_topic(struct due_queue *q, struct due__topic *t, due_info *info)
{
    struct due__slot s;
    uint64_t w;

    if (!due__topic_recall(q, t))
        return AGAIN;
    for (uint32_t looked = 0; due__line_first(&t->line, &s); looked++) {
        struct due__slot plain = due__slot_plain(q, s);

        if (due__slot_alive(&q->slab, plain, &w)) {
            uint32_t generation = due__word_generation(w);

            if (due__info(q, due__slot_job(s), &generation, NULL, info) == 0)
                return SOMETHING;
        }
        if (looked == DUE__MOVES_MAX)
            return AGAIN;
        due__line_pop(&t->line, &q->nodes);
        q->in_lines--;
    }
    return NOTHING;
}

static enum found peek_ready(struct due_queue *q, due_info *info)
{
    struct due__topic *t = q->ring;

    while (t != NULL) {
        enum found found = peek_topic(q, t, info);

        due__topic_refill(q, t);
        if (found != NOTHING)
            return found;
        t = t->next != q->ring ? t->next : NULL;
    }
    return NOTHING;
}

static enum found peek_timeline(struct due_queue *q, due_info *info)
{
    struct due__timeline *tl = &q->timeline;
    struct due__slot s;
    uint64_t w;

    for (uint32_t looked = 0; looked < DUE__MOVES_MAX; looked++) {
        if (!due__head_ready(q))
            return AGAIN;
        if (!due__timeline_head(tl, &s))
            return NOTHING;
        if (due__slot_alive(&q->slab, s, &w)) {
            uint32_t generation = due__word_generation(w);

            if (due__word_state(w) != DUE__WAITING)
                return BEHIND;
            if (due__info(q, due__slot_job(s), &generation, NULL, info) == 0)
                return SOMETHING;
        }
        due__timeline_pop(tl);
    }
    return AGAIN;
}

/* The next of all that become due after @due_ns, looked for one by one: without the lock. */
static enum found peek_all(struct due_queue *q, int64_t due_ns, due_info *info)
{
    enum found found = NOTHING;
    due_info it;

    for (uint32_t at = 0; at < due__slab_end(&q->slab); at++) {
        if (due__info(q, at, NULL, NULL, &it) != 0 || it.deadline_ns <= due_ns)
            continue; /* what was due is kept back: by a pause, or at a limiter */
        if (found == NOTHING || it.deadline_ns < info->deadline_ns ||
            (it.deadline_ns == info->deadline_ns && it.priority > info->priority))
            *info = it;
        found = SOMETHING;
    }
    return found;
}

int due_peek(due_queue *q, due_info *info)
{
    struct due__tenure t;
    enum found found;
    due_info first;

    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    due__drain_all(q);
    do {
        found = AGAIN;
        due__enter(q, &t);
        if (due__catch_up(q, DUE__PROXY_BATCH) && !due__more_to_come(q)) {
            found = peek_ready(q, &first);
            if (found == NOTHING)
                found = peek_timeline(q, &first);
        }
        int64_t due = due__due_ns(q);
        due__tenure_end(q, &t);
        if (found == BEHIND)
            found = peek_all(q, due, &first);
    } while (found == AGAIN);
    if (found == NOTHING && due__in_store(q)) {
        int rc = due__pages_peek(q, info);

        due__inside_end(q, inside);
        return rc;
    }
    int64_t now = due__jobs_now(q);
    due__inside_end(q, inside);
    if (found == NOTHING)
        return DUE_EAGAIN;
    first.ready = first.deadline_ns <= now;
    *info = first;
    return 0;
}

/* To the end of the pass under way, or of a new one. */
static void sweep_all(struct due_queue *q)
{
    struct due__tenure t;
    bool done;

    due__enter(q, &t);
    due__sweep_begin(q);
    due__tenure_end(q, &t);
    do {
        due__enter(q, &t);
        done = due__sweep_piece(q, DUE__SWEEP_PIECE);
        due__tenure_end(q, &t);
    } while (!done);
}

/* The places at hand go back to a shard. */
static void places_give(struct due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    struct due__shard *it = due__shard_enter(&q->slab);
    while (q->place_count > 0)
        due__shard_push(&q->slab, it, q->place[--q->place_count]);
    due__shard_leave(it);
    due__tenure_end(q, &t);
}

int due_trim(due_queue *q)
{
    struct due__tenure t;
    bool done;

    if (due__forked(q))
        return DUE_EFORK;
    sweep_all(q); /* a pass under way may have begun before the last cancel */
    sweep_all(q);
    due__keys_sweep(q);
    places_give(q);
    due__slab_trim(&q->slab, 0, true);
    due__payloads_trim(&q->slab.payloads, 0, true);
    do {
        due__enter(q, &t);
        done = due__pool_trim(&q->pool, DUE__MOVES_MAX);
        due__tenure_end(q, &t);
    } while (!done);
    return 0;
}

/* Under the lock: what is known of a dead job.  False: the job there is not dead. */
static bool describe_dead(struct due_queue *q, uint32_t number, due_dead *dead)
{
    const struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    if (due__word_state(w) != DUE__DEAD)
        return false;
    const struct due__dead_letter *g = due__dead_letter_at(q, number);
    const struct due__lease *l = due__lease_at(q, number);
    struct due__facts f = due__facts_load(j);

    *dead = (due_dead){ .id = due__id(q, number, due__word_generation(w)),
                        .deadline_ns = due__load_relaxed(&l->deadline_ns), /* R1 */
                        .died_ns = g->died_ns,
                        .len = f.len,
                        .topic = f.topic,
                        .priority = f.priority,
                        .attempts = due__load_relaxed(&l->attempts), /* R1 */
                        .failures = due__load_relaxed(&l->failures), /* R1 */
                        .cause = (enum due_cause)g->cause };
    memcpy(dead->reason, g->reason, sizeof dead->reason);
    return true;
}

/* Those of a shared queue are in the store. */
static int list_shared(struct due_queue *q, uint64_t *cursor, due_dead *dead, size_t max)
{
    struct due__ask ask = {
        .kind = DUE__ASK_DEAD, .dead = dead, .from = (size_t)*cursor, .max = max
    };
    struct due__deadline by = { 0 };
    bool inside = due__inside_stored(q);
    int rc = q->journal->ask(q, &ask, &by);

    due__inside_end(q, inside);
    if (rc != 0)
        return rc;
    *cursor += ask.got;
    return (int)ask.got;
}

int due_list_dead(due_queue *q, uint64_t *cursor, due_dead *dead, size_t max)
{
    struct due__tenure t;
    struct due__deadline by = { 0 };
    size_t got = 0;

    if (due__forked(q))
        return DUE_EFORK;
    if (max == 0 || max > INT_MAX)
        return DUE_EINVAL;
    if (q->shared)
        return list_shared(q, cursor, dead, max);
    bool inside = due__inside_stored(q);
    uint64_t at = *cursor;
    if (at == 0)
        due__lapse_all(q, &by);
    for (; got < max && at < due__slab_end(&q->slab); at++) {
        uint64_t w = due__load_acquire(&due__job_at(&q->slab, (uint32_t)at)->word); /* J1 */

        if (!due__may_be_dead(w))
            continue;
        due__enter(q, &t);
        got += describe_dead(q, (uint32_t)at, &dead[got]);
        due__tenure_end(q, &t);
    }
    due__inside_end(q, inside);
    *cursor = at;
    return (int)got;
}
