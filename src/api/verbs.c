/* verbs.c - the calls that name a job: cancel, reschedule, promote, find, remaining.
 *
 * Edges      described elsewhere: J1 slab.h, C2 close.c
 */
#include "queue/queue.h"

#include <limits.h>
#include <string.h>

#include "os/atomic.h"
#include "job/key_table.h"

#define SWEEP_EVERY 512u /* cancels in a shard after which to see whether a sweep is worth it */

/* ---- Claiming ---- */

/* What keeps the caller from having a job with word @w: 0 if nothing does. */
static int obstacle(uint64_t w, uint32_t generation)
{
    if (due__word_generation(w) != generation)
        return DUE_ENOENT;
    switch (due__word_state(w)) {
    case DUE__WAITING:
    case DUE__MOVING:
    case DUE__SENT:
        return 0;
    case DUE__LENT:
    case DUE__PROMISED:
    case DUE__CHANGING:
    case DUE__LEASED:
        return DUE_EBUSY;
    default:
        return DUE_ENOENT;
    }
}

void due__wait_moved(struct due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    due__leave(q, &t);
}

/* The swap of a claim; with a name, if the job has that key still, in the same step: once it is
 * claimed another may take the key over.  DUE_ENOENT: it has not; DUE_EAGAIN: @w has changed. */
static int swap(struct due_queue *q, uint32_t number, uint32_t generation,
                const struct due__key_name *name, enum due__state as, uint64_t *w)
{
    struct due__job *j = due__job_at(&q->slab, number);
    struct due__key_shard *shard = NULL;

    if (name != NULL) {
        shard = due__key_enter_of(q, name, number, generation);
        if (shard == NULL)
            return DUE_ENOENT;
    }
    bool ours = due__cas_acq_rel(&j->word, w, (*w & ~DUE__STATE_MASK) | as); /* J1 */
    if (shard != NULL)
        due__key_leave(q, shard);
    return ours ? 0 : DUE_EAGAIN;
}

static int claim_as(struct due_queue *q, uint32_t number, uint32_t generation,
                    const struct due__key_name *name, enum due__state as, struct due__deadline *by,
                    uint64_t *w)
{
    struct due__job *j = due__job_at(&q->slab, number);

    *w = due__load_acquire(&j->word); /* J1 */
    for (;;) {
        int rc = obstacle(*w, generation);

        if (rc == DUE_EBUSY && due__lapse(q, number, by)) {
            *w = due__load_acquire(&j->word); /* J1 */
            continue;
        }
        if (rc != 0)
            return rc;
        if (due__word_state(*w) == DUE__MOVING) {
            due__wait_moved(q);
            *w = due__load_acquire(&j->word); /* J1 */
            continue;
        }
        if (due__word_state(*w) == DUE__SENT)
            return DUE_EAGAIN;
        rc = swap(q, number, generation, name, as, w);
        if (rc != DUE_EAGAIN)
            return rc;
    }
}

int due__claim(struct due_queue *q, uint32_t number, uint32_t generation, struct due__deadline *by,
               uint64_t *w)
{
    return claim_as(q, number, generation, NULL, DUE__LENT, by, w);
}

int due__claim_change(struct due_queue *q, uint32_t number, uint32_t generation,
                      const struct due__key_name *name)
{
    uint64_t w;

    return claim_as(q, number, generation, name, DUE__CHANGING, NULL, &w);
}

static int claim_settled(struct due_queue *q, uint32_t number, uint32_t generation,
                         const struct due__key_name *name, struct due__deadline *by, uint64_t *w)
{
    int rc = claim_as(q, number, generation, name, DUE__LENT, by, w);

    while (rc == DUE_EAGAIN) {
        rc = due__commit_flush(q, by);
        if (rc == 0)
            rc = claim_as(q, number, generation, name, DUE__LENT, by, w);
    }
    return rc;
}

int due__claim_settled(struct due_queue *q, uint32_t number, uint32_t generation,
                       struct due__deadline *by, uint64_t *w)
{
    return claim_settled(q, number, generation, NULL, by, w);
}

/* ---- Cancel ---- */

/* The slots that cancelled jobs leave behind are swept out when there are more than twice as many
 * slots as waiting jobs: by the worker proxy, and if it does not keep up or there is none, also by
 * whoever cancels. */
void due__sweep_sometimes(struct due_queue *q)
{
    struct due__tenure t;

    if (!due__try_enter(q, &t))
        return;
    due__sweep_begin(q, false);
    due__sweep_help(q, DUE__SWEEP_PIECE);
    due__leave(q, &t);
}

/* What follows a cancel that was counted. */
static inline void cancelled(struct due_queue *q, uint64_t count)
{
    if (q->capacity > 0)
        due__space_give(q, 1);
    if (due__load_seq(&q->state) & DUE__DRAINING) /* C2 of close.c */
        due__drained(q);
    if (count % SWEEP_EVERY == 0)
        due__sweep_sometimes(q);
}

/* A claimed job that may have been dead goes. */
static void leave_grave(struct due_queue *q, uint32_t number, uint64_t w)
{
    if ((w & DUE__HELD) && due__grave_is(q, number))
        due__grave_close(q, number);
}

void due__cancel_end(struct due_queue *q, uint32_t number)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */

    due__key_end(q, number, false);
    leave_grave(q, number, w);
    due__step(q, number, DUE__S_CANCELLED, w);
    bool last = due__job_unhold(q, number, w);
    struct due__shard *it = due__shard_enter(&q->slab);
    uint64_t count = ++it->cancelled; /* C2 of close.c */

    it->unready += (w & DUE__READY) != 0;
    if (last)
        due__place_done(q, it, number);
    due__shard_leave(it);
    cancelled(q, count);
}

/* A claimed job, to be given to who cancelled it. */
static void lend(struct due_queue *q, uint32_t number, uint64_t w, due_job *job)
{
    int64_t deadline = due__load_relaxed(&due__job_at(&q->slab, number)->deadline_ns); /* J1 */

    due__key_end(q, number, false);
    leave_grave(q, number, w);
    due__step(q, number, DUE__S_CANCELLED, w);
    if (w & DUE__PASSED)
        due__gate_leave(q, number);
    due__job_fill(q, number, deadline, deadline, job);
    struct due__shard *it = due__shard_enter(&q->slab);
    uint64_t count = ++it->cancelled; /* C2 of close.c */
    it->unready += (w & DUE__READY) != 0;
    it->lent++;
    due__shard_leave(it);
    cancelled(q, count);
}

/* A job that waits or is dead becomes the caller's own, as by due__claim(); one that somebody has
 * is marked, so that it is not handed out again. */
static int claim_any(struct due_queue *q, uint32_t number, uint32_t generation,
                     const struct due__key_name *name, struct due__deadline *by, uint64_t *w)
{
    for (;;) {
        int rc = claim_settled(q, number, generation, name, by, w);
        bool dead = rc == DUE_ENOENT && due__word_state(*w) == DUE__DEAD &&
                    due__word_generation(*w) == generation;

        if (dead) {
            if (due__exhume_one(q, number, generation, name, DUE__LENT) == 0)
                return 0;
            if (name != NULL)
                return DUE_ENOENT; /* the caller looks whose the key is now */
        } else if (rc == DUE_EBUSY) {
            rc = due__lease_cancel(q, number, generation, name);
            if (rc != DUE_EAGAIN)
                return rc;
        } else {
            return rc;
        }
    }
}

void due__give_up(struct due_queue *q, uint32_t number)
{
    if (due__grave_is(q, number))
        due__bury_again(q, number);
    else
        due__unclaim(q, number, false);
}

/* Any job that waits or is dead, with its bytes lent to the caller or not. */
int due__cancel_any(struct due_queue *q, uint32_t number, uint32_t generation,
                    const struct due__key_name *name, due_job *job, struct due__deadline *by)
{
    uint64_t w;
    int rc = claim_any(q, number, generation, name, by, &w);

    if (rc != 0)
        return rc;
    if (q->commits != NULL && !(w & DUE__LINKED)) { /* LINKED: it was not sent yet */
        rc = due__commit_one(q, number, job != NULL ? DUE__LEND : DUE__CANCEL, 0, by);
        if (rc != 0 && rc != DUE_EINDOUBT)
            due__give_up(q, number);
        if (rc == 0 && job != NULL)
            lend(q, number, w, job);
        return rc;
    }
    uint64_t bytes = q->commits != NULL ? due__owed_of(q, number) : 0;
    if (job != NULL)
        lend(q, number, w, job);
    else
        due__cancel_end(q, number);
    if (q->commits != NULL)
        due__commit_given_up(q, bytes);
    return 0;
}

/* The usual case, a job that was sorted in and is not wanted back, in one step from waiting to
 * free. The way to it is kept short, so that the processor can fetch the jobs of several cancels at
 * a time. */
static inline int cancel(struct due_queue *q, due_id id, due_job *job, struct due__deadline *by)
{
    uint32_t number;
    uint32_t generation;

    int rc = due__id_find(q, id, by, &number, &generation);
    if (rc != 0)
        return rc;
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    if (job != NULL || q->commits != NULL || due__word_generation(w) != generation ||
        generation == UINT32_MAX || q->watch != NULL ||
        (w & (DUE__STATE_MASK | DUE__LINKED | DUE__HELD | DUE__PASSED)) != DUE__WAITING ||
        (due__facts_load(j).payload & DUE__FRONT)) /* so it may have a key */
        return due__cancel_any(q, number, generation, NULL, job, by);
    uint64_t ready = w & DUE__READY;
    if (!due__cas_acq_rel(&j->word, &w, due__word(generation + 1, 0, DUE__FREE))) /* J1 */
        return due__cancel_any(q, number, generation, NULL, job, by);
    due__job_release(&q->slab, j); /* still the caller's: it is in no magazine yet */

    struct due__shard *it = due__shard_enter(&q->slab);
    uint64_t count = ++it->cancelled; /* C2 of close.c */
    it->unready += ready != 0;
    due__shard_push(&q->slab, it, number);
    due__shard_leave(it);
    cancelled(q, count);
    return 0;
}

int due__cancel(struct due_queue *q, due_id id, due_job *job, struct due__deadline *by)
{
    return cancel(q, id, job, by);
}

int due_cancel(due_queue *q, due_id id, due_job *job)
{
    if (due__forked(q))
        return due__one_or_none(job, DUE_EFORK);
    struct due__deadline by = { 0 };
    bool inside = due__inside_stored(q);
    int rc = cancel(q, id, job, &by);
    due__inside_end(q, inside);
    return due__one_or_none(job, rc);
}

#define LOOK_AHEAD 8u /* ids of a batch whose jobs are on their way into the cache */

static void prefetch(struct due_queue *q, due_id id)
{
    uint32_t number;
    uint32_t generation;

    if (due__id_read(q, id, &number, &generation))
        due__job_prefetch(&q->slab, number);
}

int due_cancel_batch(due_queue *q, const due_id *ids, size_t n, int *results)
{
    int cancelled = 0;

    if (due__forked(q))
        return DUE_EFORK;
    if (n > INT_MAX)
        return DUE_EINVAL;
    if (q->commits != NULL)
        return due__cancel_all(q, ids, n, results);
    for (size_t i = 0; i < n && i < LOOK_AHEAD; i++)
        prefetch(q, ids[i]);
    for (size_t i = 0; i < n; i++) {
        if (i + LOOK_AHEAD < n)
            prefetch(q, ids[i + LOOK_AHEAD]);
        int rc = cancel(q, ids[i], NULL, NULL); /* which waits for no store */

        cancelled += rc == 0;
        if (results != NULL)
            results[i] = rc;
    }
    return cancelled;
}

/* ---- Reschedule ---- */

/* Under the lock: nobody else moves jobs, but they may be taken or cancelled until the swap. */
static int move(struct due_queue *q, uint32_t number, uint32_t generation, int64_t at_ns)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */
    int rc;

    do {
        rc = obstacle(w, generation);
        if (rc != 0)
            return rc;
    } while (!due__cas_acq_rel(&j->word, &w, (w & ~DUE__STATE_MASK) | DUE__MOVING)); /* J1 */
    if (w & DUE__HELD)
        due__store_relaxed(&due__lease_at(q, number)->deadline_ns, at_ns); /* R1 of lease.c */
    w = due__gate_left(q, number, w);
    due__replace(q, number, (w & ~DUE__STATE_MASK) | DUE__MOVING, DUE__WAITING, at_ns);
    return 0;
}

int due__claim_sent(struct due_queue *q, uint32_t number, uint32_t generation,
                    const struct due__key_name *name, struct due__deadline *by)
{
    struct due__job *j = due__job_at(&q->slab, number);

    for (;;) {
        uint64_t w = due__load_acquire(&j->word); /* J1 */
        int rc = obstacle(w, generation);

        if (rc != 0)
            return rc;
        if (due__word_state(w) == DUE__MOVING)
            due__wait_moved(q);
        else if ((w & DUE__LINKED) || due__word_state(w) == DUE__SENT)
            rc = due__commit_flush(q, by);
        else if ((rc = swap(q, number, generation, name, DUE__CHANGING, &w)) == 0)
            return 0;
        if (rc != 0 && rc != DUE_EAGAIN)
            return rc;
    }
}

int due__reschedule_stored(struct due_queue *q, uint32_t number, uint32_t generation, int64_t at_ns,
                           struct due__deadline *by)
{
    int rc = due__claim_sent(q, number, generation, NULL, by);

    if (rc != 0)
        return rc;
    if (due__load_seq(&q->state) & DUE__CLOSING) /* E3: the one who closes will find it again */
        rc = DUE_ECLOSED;
    else
        rc = due__commit_one(q, number, DUE__MOVE, at_ns, by);
    if (rc != 0 && rc != DUE_EINDOUBT)
        due__unclaim(q, number, false);
    return rc;
}

static int reschedule(struct due_queue *q, due_id id, int64_t at_ns, bool now)
{
    struct due__deadline by = { 0 };
    struct due__tenure t;
    uint32_t number;
    uint32_t generation;

    if (at_ns < 0)
        return DUE_EINVAL;
    int rc = due__id_find(q, id, &by, &number, &generation);
    if (rc != 0)
        return rc;
    due__lapse(q, number, &by);
    if (q->commits != NULL)
        return due__reschedule_stored(q, number, generation,
                                      now ? due__clock_now(&q->clock) : at_ns, &by);
    due__drain_all(q); /* what the caller put in before stands before it */
    due__enter(q, &t);
    rc = DUE_ECLOSED;
    if (!(due__load_seq(&q->state) & DUE__CLOSING)) { /* E3: whoever closes takes the lock after */
        int64_t now_ns = due__clock_now(&q->clock);

        due__drain_or_say(q, DUE__FOREIGN_MAX);
        due__move_due(q, now_ns);
        rc = move(q, number, generation, now ? now_ns : at_ns);
        due__move_due(q, now_ns);
    }
    due__leave(q, &t);
    return rc;
}

static int reschedule_inside(struct due_queue *q, due_id id, int64_t at_ns, bool now)
{
    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    int rc = reschedule(q, id, at_ns, now);
    due__inside_end(q, inside);
    return rc;
}

int due_reschedule(due_queue *q, due_id id, int64_t at_ns)
{
    return reschedule_inside(q, id, at_ns, false);
}

int due_promote(due_queue *q, due_id id)
{
    return reschedule_inside(q, id, 0, true);
}

/* ---- Looking ---- */

/* Read again if the word has changed meanwhile. */
int due__info(struct due_queue *q, uint32_t number, const uint32_t *generation,
              struct due__deadline *by, due_info *info)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    for (;;) {
        int rc = obstacle(w, generation != NULL ? *generation : due__word_generation(w));

        if (rc == DUE_EBUSY && due__lapse(q, number, by)) {
            w = due__load_acquire(&j->word); /* J1 */
            continue;
        }
        if (rc != 0)
            return rc;
        if (due__word_state(w) == DUE__MOVING) {
            due__wait_moved(q);
            w = due__load_acquire(&j->word); /* J1 */
            continue;
        }
        struct due__facts f = due__facts_load(j);
        *info = (due_info){
            .id = due__id(q, number, due__word_generation(w)),
            .deadline_ns = due__load_relaxed(&j->deadline_ns), /* J1 */
            .len = f.len,
            .topic = f.topic,
            .priority = f.priority,
        };
        uint64_t again = w;
        if (due__cas_acq_rel(&j->word, &again, w)) /* J1: unchanged, and so was what was read */
            return 0;
        w = again;
    }
}

static int find(struct due_queue *q, due_id id, due_info *info)
{
    struct due__deadline by = { 0 };
    uint32_t number;
    uint32_t generation;
    due_info found;

    int rc = due__id_find(q, id, &by, &number, &generation);
    if (rc == 0)
        rc = due__info(q, number, &generation, &by, &found);
    if (rc != 0)
        return rc;
    found.ready = found.deadline_ns <= due__clock_now(&q->clock);
    *info = found;
    return 0;
}

int due_find(due_queue *q, due_id id, due_info *info)
{
    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    int rc = find(q, id, info);
    due__inside_end(q, inside);
    return rc;
}

int due_remaining(due_queue *q, due_id id, int64_t *ns)
{
    due_info info;

    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    int rc = find(q, id, &info);
    if (rc == 0)
        *ns = info.deadline_ns - due__clock_now(&q->clock);
    due__inside_end(q, inside);
    return rc;
}

int due_list(due_queue *q, uint64_t *cursor, due_info *infos, size_t max)
{
    struct due__deadline by = { 0 };
    size_t got = 0;

    if (due__forked(q))
        return DUE_EFORK;
    if (max == 0 || max > INT_MAX)
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    uint64_t at = *cursor;
    if (at == 0)
        due__lapse_all(q, &by);
    int64_t now = due__clock_now(&q->clock);
    for (; got < max && at < due__slab_end(&q->slab); at++) {
        if (due__info(q, (uint32_t)at, NULL, &by, &infos[got]) != 0)
            continue;
        infos[got].ready = infos[got].deadline_ns <= now;
        got++;
    }
    due__inside_end(q, inside);
    *cursor = at;
    return (int)got;
}

bool due__clearable(struct due_queue *q, uint32_t number, int topic, uint64_t *w)
{
    struct due__job *j = due__job_at(&q->slab, number);

    *w = due__load_acquire(&j->word); /* J1 */
    return (obstacle(*w, due__word_generation(*w)) == 0 || due__lapsed(q, number, *w)) &&
           (topic == DUE_ALL_TOPICS || due__facts_load(j).topic == topic);
}

static void clear(struct due_queue *q, int topic, uint64_t *cleared)
{
    for (uint32_t at = 0; at < due__slab_end(&q->slab); at++) {
        uint64_t w;

        if (!due__clearable(q, at, topic, &w) ||
            due__claim(q, at, due__word_generation(w), NULL, &w) != 0)
            continue;
        due__discard(q, at, w);
        if (++*cleared % SWEEP_EVERY == 0)
            due__sweep_sometimes(q);
    }
}

int due_clear(due_queue *q, int topic, uint64_t *cleared)
{
    uint64_t n = 0;
    int rc = 0;

    if (due__forked(q))
        return DUE_EFORK;
    if (topic != DUE_ALL_TOPICS && due_topic_name(q, topic) == NULL)
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    if (q->commits != NULL)
        rc = due__clear_stored(q, topic, &n);
    else
        clear(q, topic, &n);
    due__inside_end(q, inside);
    if (cleared != NULL)
        *cleared = n;
    return rc;
}
