/* sound.c - all that a queue counts, compared with what its jobs say, one by one. */
#include "lab/sound.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "job/key_table.h"
#include "job/lease.h"
#include "queue/closing.h"
#include "queue/counts.h"
#include "queue/extras.h"
#include "queue/job_records.h"
#include "queue/queue.h"

#define PATIENCE_S 5   /* so long something may be under way */
#define IN_ORDER   256 /* of so many dead ones at most the order is exact */

static char wrong[200];

/* What the words of all places say. */
struct said {
    uint64_t waits, leased, dead, ready, linked, on_the_way;
    uint64_t slotted; /* a slot stands for it, in the timeline or in a line */
    int64_t first_ns; /* when the first of those in the timeline is due */
};

#define NOT(...) (snprintf(wrong, sizeof wrong, __VA_ARGS__), wrong)
#define SAME(counted, is, what)                                                                 \
    do {                                                                                        \
        if ((uint64_t)(counted) != (uint64_t)(is))                                              \
            return NOT("%s: counted %" PRId64 ", there are %" PRId64, what, (int64_t)(counted), \
                       (int64_t)(is));                                                          \
    } while (0)

/* ---- Jobs ---- */

static const char *job_wrong(const due_queue *q, uint32_t number, uint64_t w, struct said *s)
{
    enum due__state state = due__word_state(w);
    bool waits = state == DUE__WAITING;

    s->waits += waits;
    s->leased += state == DUE__LEASED || state == DUE__DEFERRED;
    s->dead += state == DUE__DEAD;
    s->ready += waits && (w & DUE__READY) != 0;
    s->linked += (w & DUE__LINKED) != 0;
    s->on_the_way += state == DUE__MOVING || state == DUE__SENT || state == DUE__CHANGING;
    if (!waits && state != DUE__LEASED && state != DUE__DEAD)
        return NULL;
    if (!(w & DUE__LINKED)) {
        int64_t at = due__load_relaxed(&due__job_at(&q->slab, number)->deadline_ns);

        s->slotted++;
        if (!(w & DUE__READY) && at < s->first_ns)
            s->first_ns = at;
        if (due__revoked(q, number) && state != DUE__LEASED)
            return NOT("place %" PRIu32 " was cancelled, and waits or is dead", number);
    }
    if (!waits && (due__facts_load(due__job_at(&q->slab, number)).payload & DUE__NOW))
        return NOT("place %" PRIu32 " is said to be without delay", number);
    if (w & DUE__HELD) {
        if (due__load_seq(&due__lease_at(q, number)->holders) == 0)
            return NOT("place %" PRIu32 " is held by nobody, not even by its job", number);
    } else if (state != DUE__WAITING) {
        return NOT("place %" PRIu32 " is leased or dead, and has no lease record", number);
    }
    bool has_letter = (w & DUE__HELD) && due__records_has(&q->dead_letters, number) &&
                      due__dead_letter_at(q, number)->cause != 0;
    if (has_letter != (state == DUE__DEAD))
        return NOT("place %" PRIu32 ": dead %d, letter %d", number, state == DUE__DEAD, has_letter);
    return NULL;
}

static const char *dead_wrong(const due_queue *q, uint64_t dead)
{
    uint32_t before = 0;
    uint64_t n = 0;

    for (uint32_t at = q->dead_first; at != 0 && n <= dead; n++) {
        const struct due__dead_letter *g = due__dead_letter_at(q, at - 1);

        if (due__word_state(due__load_acquire(&due__job_at(&q->slab, at - 1)->word)) != DUE__DEAD)
            return "one in the list of the dead is not";
        if (g->prev != before)
            return "the list of the dead is not the same from behind";
        if (before != 0 && dead <= IN_ORDER &&
            due__dead_letter_at(q, before - 1)->died_ns > g->died_ns)
            return "the dead are not in the order of death";
        before = at;
        at = g->next;
    }
    if (q->dead_last != before)
        return "the last of the dead is another";
    SAME(n, dead, "the list of the dead");
    SAME(q->dead_count, dead, "the dead of the list");
    return NULL;
}

static const char *figures_wrong(due_queue *q, const struct said *s)
{
    struct due__sums all = due__sum_up(q);

    SAME(due__sums_held(&all), s->waits + s->leased, "jobs that wait or are leased");
    SAME(due__sums_dead(&all), s->dead, "dead jobs");
    SAME(all.leased - all.unleased - q->lapsed, s->leased, "leased jobs");
    SAME(q->readied - q->unreadied - all.dequeued - all.unready, s->ready, "ready jobs");
    if (all.done > all.lent + all.dequeued)
        return NOT("%" PRIu64 " jobs are done with, %" PRIu64 " were lent", all.done,
                   all.lent + all.dequeued);
    if (q->capacity == 0)
        SAME(due__load_seq(&q->used), 0, "used room, which has no bound");
    else if (!(q->stored && due__closed(q))) /* then that is given back by nobody */
        SAME(due__load_seq(&q->used), s->waits + s->leased, "used room");
    return NULL;
}

/* ---- Topics ---- */

static const char *topics_wrong(due_queue *q, const struct said *s)
{
    size_t in_lines = 0;
    size_t shown = 0;
    size_t chunks = 0;

    for (uint32_t i = 0; i < due__load_acquire(&q->topic_count); i++) {
        const struct due__topic *t = due__topic_at(q, i);

        in_lines += t->line.count;
        shown += due__window_count(&t->window);
        if (t->number != i)
            return "a topic has another's number";
        if (!t->paused && !t->listed && t->line.count + due__window_count(&t->window) > 0)
            return "a topic has something ready, and no turn";
        if (!due__line_check(&t->line))
            return "a line is not in order";
    }
    if (!due__timeline_check(&q->timeline, &chunks))
        return "the timeline is not in order";
    if (due__timeline_count(&q->timeline) + q->in_lines + shown < s->slotted)
        return NOT("%" PRIu64 " jobs wait or are dead, and there are fewer slots", s->slotted);
    if (s->first_ns < due__slot_deadline(q->gone) ||
        s->first_ns < due__timeline_bound(&q->timeline))
        return NOT("one is due at %" PRId64 ", and was passed by", s->first_ns);
    SAME(q->in_lines, in_lines + q->limiters.slots, "slots in lines and at limiters");
    return NULL;
}

/* Each step of each job is counted by its topic, too. */
static const char *sums_wrong(due_queue *q)
{
    struct due__sums all = due__sum_up(q);
    int64_t f[DUE__FIGURES] = { 0 };

    for (uint32_t i = 0; i < due__load_acquire(&q->topic_count); i++) {
        const struct due__topic *t = due__topic_at(q, i);

        for (size_t k = 0; t->tallies != NULL && k < DUE__SHARDS; k++) {
            for (size_t n = 0; n < DUE__FIGURES; n++)
                f[n] += (int64_t)due__load_relaxed(&t->tallies[k].figure[n]);
        }
    }
    SAME(f[DUE__F_ENQUEUED] + f[DUE__F_RESTORED], all.enqueued - all.refused, "enqueued");
    SAME(f[DUE__F_DEQUEUED], all.dequeued, "dequeued");
    SAME(f[DUE__F_CANCELLED], all.cancelled, "cancelled");
    SAME(f[DUE__F_DISCARDED], all.discarded, "discarded");
    SAME(f[DUE__F_KEPT], all.kept, "kept");
    SAME(f[DUE__F_DIED], due__load_relaxed(&q->buried), "died");
    SAME(f[DUE__F_KICKED], due__load_relaxed(&q->kicked), "kicked");
    SAME(f[DUE__F_NACKED], due__load_relaxed(&q->nacked), "nacked");
    SAME(f[DUE__F_RETRIED], due__load_relaxed(&q->retried), "retried");
    return NULL;
}

static const char *tallies_wrong(const due_queue *q)
{
    for (uint32_t i = 0; i < due__load_acquire(&q->topic_count); i++) {
        int64_t ready = 0;
        int64_t leased = 0;
        int64_t dead = 0;
        const struct due__topic *t = due__topic_at(q, i);

        for (size_t k = 0; t->tallies != NULL && k < DUE__SHARDS; k++) {
            ready -= (int64_t)due__load_relaxed(&t->tallies[k].figure[DUE__F_READY]);
            leased -= (int64_t)due__load_relaxed(&t->tallies[k].figure[DUE__F_LEASED]);
            dead -= (int64_t)due__load_relaxed(&t->tallies[k].figure[DUE__F_DEAD]);
        }
        for (uint32_t at = 0; t->tallies != NULL && at < due__slab_end(&q->slab); at++) {
            const struct due__job *j = due__job_at(&q->slab, at);
            uint64_t w = due__load_acquire(&j->word);

            if (due__facts_load(j).topic != i)
                continue;
            ready += due__word_state(w) == DUE__WAITING && (w & DUE__READY) != 0;
            leased += due__word_state(w) == DUE__LEASED;
            dead += due__word_state(w) == DUE__DEAD;
        }
        if (ready != 0 || leased != 0 || dead != 0)
            return NOT("topic %" PRIu32 ": %" PRId64 " ready, %" PRId64 " leased, %" PRId64
                       " dead more than it counts",
                       i, ready, leased, dead);
    }
    return NULL;
}

/* ---- Keys ---- */

static const char *key_wrong(const due_queue *q, const struct due__key *key)
{
    if (!key->linked)
        return "a key in the table is said to be in none";
    if (key->place == 0)
        return NULL;
    const struct due__job *j = due__job_at(&q->slab, key->place - 1);
    const struct due__extras *extras = due__extras_of(j);
    if (extras == NULL || extras->key != key ||
        due__word_generation(due__load_acquire(&j->word)) != key->generation)
        return "a key is said to be a job's that has it not";
    return NULL;
}

static const char *chains_wrong(const due_queue *q, const struct due__key_shard *it, size_t shard,
                                const struct due__key_chain *chain, uint32_t room, uint32_t from,
                                uint64_t *n, uint64_t *kept)
{
    for (uint32_t i = from; i < room; i++) {
        uint64_t filter = 0;

        for (const struct due__key *key = chain[i].first; key != NULL; key = key->next) {
            const char *text = key_wrong(q, key);

            if (text != NULL)
                return text;
            if (key->hash % DUE__KEY_SHARDS != shard ||
                ((uint32_t)(key->hash / DUE__KEY_SHARDS) & (room - 1)) != i)
                return "a key is in another's chain";
            filter |= UINT64_C(1) << (key->hash >> 58);
            (*n)++;
            *kept += key->place == 0;
        }
        if (chain[i].filter != filter && (it->old == NULL || chain == it->chain))
            return "a chain's filter does not say what is in it";
    }
    return NULL;
}

static const char *keys_wrong(due_queue *q)
{
    struct due__keys *keys = due__load_acquire(&q->keys);
    const char *text = NULL;

    for (size_t i = 0; keys != NULL && text == NULL && i < DUE__KEY_SHARDS; i++) {
        struct due__key_shard *it = &keys->shard[i];
        uint64_t n = 0;
        uint64_t kept = 0;

        due__lock_acquire(&it->lock);
        text = chains_wrong(q, it, i, it->chain, it->room, 0, &n, &kept);
        if (text == NULL && it->old != NULL)
            text = chains_wrong(q, it, i, it->old, it->old_room, it->moved, &n, &kept);
        if (text == NULL && (n != it->count || kept != it->kept))
            text = NOT("%" PRIu64 " keys of which %" PRIu64 " are kept, %" PRIu32 " and %" PRIu32
                       " counted",
                       n, kept, it->count, it->kept);
        if (text == NULL && it->spent != NULL)
            text = "a table that was left is not freed";
        due__lock_release(&it->lock);
    }
    return text;
}

/* ---- All ---- */

static const char *owed_wrong(const due_queue *q, const struct said *s)
{
    if (q->debts & ~(DUE__DEBT_ALWAYS | DUE__DEBT_HOME))
        return NOT("%#x is owed still", (unsigned)q->debts);
    if (q->dying != 0 || (q->events != NULL && q->events->list != 0))
        return "somebody is to be seen to, or to be told of, still";
    if (q->several != (due__load_acquire(&q->topic_count) > 1))
        return "one topic is taken for several, or several for one";
    if (q->all == NULL && ((q->lead != NULL && q->lead != &q->worker) || q->deputy != NULL))
        return "somebody leads, and nobody waits";
    if (due__inbox_quiet((struct due__inbox *)(uintptr_t)&q->inbox) && s->linked > 0)
        return "a job is said to be in the inbox, which is empty";
    return NULL;
}

static const char *look(due_queue *q)
{
    struct due__tenure t;
    struct said s = { .first_ns = INT64_MAX };
    const char *text = NULL;

    due__enter(q, &t);
    for (uint32_t at = 0; text == NULL && at < due__slab_end(&q->slab); at++)
        text = job_wrong(q, at, due__load_acquire(&due__job_at(&q->slab, at)->word), &s);
    if (text == NULL && s.on_the_way > 0)
        text = "a job is on its way still";
    if (text == NULL)
        text = figures_wrong(q, &s);
    if (text == NULL)
        text = dead_wrong(q, s.dead);
    if (text == NULL)
        text = topics_wrong(q, &s);
    if (text == NULL && q->events != NULL && q->events->counts)
        text = tallies_wrong(q);
    if (text == NULL && q->events != NULL && q->events->counts)
        text = sums_wrong(q);
    if (text == NULL)
        text = owed_wrong(q, &s);
    if (text == NULL)
        text = keys_wrong(q);
    due__tenure_end(q, &t);
    if (text == NULL && !due__payloads_check(&q->slab.payloads))
        text = "blocks of payloads are not counted right";
    if (text == NULL && !due__limiters_check(q))
        text = "limiters: passes, lists or counts are wrong";
    return text;
}

const char *sound_settled_wrong(due_queue *q)
{
    struct timespec end;
    struct timespec now;
    const char *text;

    clock_gettime(CLOCK_MONOTONIC, &end);
    do {
        text = look(q);
        if (text != NULL)
            sched_yield();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (text != NULL && now.tv_sec < end.tv_sec + PATIENCE_S);
    return text;
}

const char *sound_wrong(due_queue *q)
{
    return q->stored && !due__closed(q) ? NULL : sound_settled_wrong(q);
}
