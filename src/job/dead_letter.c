/* dead_letter.c - dead jobs: how a job dies, how it comes back, how it goes for good.
 *
 * A dead job stands in the timeline like any other, keyed on when it is to be discarded, and in a
 * list in the order of death, so that the oldest can go when there are too many.
 *
 * Whoever holds the lock may find that a job has to die, or to be discarded: a lease has ended that
 * was the last one allowed, or a dead job's time is over.  That needs hooks, and perhaps the store.
 * So the job is made the finder's own (CLAIMED), left in a list, and seen to after the release.
 *
 * Few jobs die, so a dead letter is made when one does.  Who buries a job is told if there is no
 * memory. Where nobody is, because a lease has ended, the job waits for a second, and dies when
 * somebody is about to take it: he is told.
 *
 * Guards     T  the timeline lock      O  whoever owns the job      A  atomic, see Edges
 *
 * Edges      described elsewhere: J1 slab.h, R1 R3 lease.c, C2 closing.c
 *
 * Always     N1  a job is in the list of the dead exactly while its state is DEAD, or MOVING from
 *                that, in the order of death, nearly so if there are very many
 *            N2  a dead letter has a cause exactly while its job is dead, or its owner buries or
 *                ends it
 *
 * Not here   The calls that kick and clear: kick.c.
 */
#include "job/dead_letter.h"

#include <string.h>

#include "job/cancel.h"
#include "job/claim.h"
#include "job/discard.h"
#include "job/key_table.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "os/probe.h"
#include "queue/capacity.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "queue/stored.h"

#define LOOKS 256u /* dead ones that are looked at, from either end, for where one belongs */

/* ---- Dead letters ---- */

bool due__dead_letter_make(struct due_queue *q, uint32_t number)
{
    return due__records_make(&q->leases, &q->alloc, number) &&
           due__records_make(&q->dead_letters, &q->alloc, number);
}

bool due__is_dying(const struct due_queue *q, uint32_t number)
{
    return due__records_has(&q->dead_letters, number) && due__dead_letter_at(q, number)->cause != 0;
}

void due__dead_letter_open(struct due_queue *q, uint32_t number, int64_t now_ns,
                           enum due_cause cause, const char *reason)
{
    struct due__dead_letter *g = due__dead_letter_at(q, number);
    size_t len = reason != NULL ? strnlen(reason, sizeof g->reason - 1) : 0;

    g->died_ns = now_ns;
    g->cause = (uint8_t)cause;
    if (len > 0)
        memcpy(g->reason, reason, len);
    g->reason[len] = '\0';
    DUE__PROBE3(die, q, number, cause);
}

/* ---- The list, under the lock ---- */

/* Of the dead, the first that died after @died_ns; 0: none, as a rule.  But one that was dead
 * already and was changed, or was to go and did not, is as old as it was.  Not to hold the lock for
 * long it is looked for among so many of the last and of the first, and is nearly right. */
static uint32_t first_after(const struct due_queue *q, int64_t died_ns)
{
    uint32_t next = 0;
    uint32_t at = q->dead_last;
    unsigned looks = 0;

    for (; at != 0 && due__dead_letter_at(q, at - 1)->died_ns > died_ns;
         at = due__dead_letter_at(q, at - 1)->prev) {
        if (looks++ == LOOKS)
            break;
        next = at;
    }
    if (looks <= LOOKS)
        return next;
    next = q->dead_first;
    for (looks = 0; looks < LOOKS && due__dead_letter_at(q, next - 1)->died_ns <= died_ns; looks++)
        next =
            due__dead_letter_at(q, next - 1)->next; /* the last is younger: it ends before that */
    return next;
}

static void list_add(struct due_queue *q, uint32_t number)
{
    struct due__dead_letter *g = due__dead_letter_at(q, number);

    g->next = first_after(q, g->died_ns);
    g->prev = g->next != 0 ? due__dead_letter_at(q, g->next - 1)->prev : q->dead_last;
    if (g->prev != 0)
        due__dead_letter_at(q, g->prev - 1)->next = number + 1;
    else
        q->dead_first = number + 1;
    if (g->next != 0)
        due__dead_letter_at(q, g->next - 1)->prev = number + 1;
    else
        q->dead_last = number + 1;
    q->dead_count++;
}

static void list_remove(struct due_queue *q, uint32_t number)
{
    struct due__dead_letter *g = due__dead_letter_at(q, number);

    if (g->prev != 0)
        due__dead_letter_at(q, g->prev - 1)->next = g->next;
    else
        q->dead_first = g->next;
    if (g->next != 0)
        due__dead_letter_at(q, g->next - 1)->prev = g->prev;
    else
        q->dead_last = g->prev;
    q->dead_count--;
}

void due__dying_enlist(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);

    assert(!(due__load_relaxed(&j->word) & DUE__LINKED)); /* J1: its link is the inbox's */
    j->link.next_free = 0;
    if (q->dying != 0)
        due__job_at(&q->slab, q->dying_last - 1)->link.next_free = number + 1;
    else
        q->dying = number + 1;
    q->dying_last = number + 1;
    q->debts |= DUE__DEBT_DYING;
}

bool due__dead_claim(struct due_queue *q, uint32_t number, uint64_t *w, enum due__state as)
{
    struct due__job *j = due__job_at(&q->slab, number);

    assert(as != DUE__MOVING);                                                 /* N1 */
    if (due__word_state(*w) != DUE__DEAD || !due__word_claim(&j->word, w, as)) /* J1 */
        return false;
    list_remove(q, number);
    return true;
}

bool due__dying_due(struct due_queue *q, uint32_t number, uint64_t w)
{
    struct due__job *j = due__job_at(&q->slab, number);

    if (due__word_state(w) == DUE__DEAD) {
        if (!due__dead_claim(q, number, &w, DUE__CLAIMED))
            return false;
    } else {
        if (!due__lease_was_last(q, number) ||
            !due__word_claim(&j->word, &w, DUE__CLAIMED)) /* J1 */
            return false;
        due__lease_ended(q, number, false);
    }
    due__dying_enlist(q, number);
    return true;
}

bool due__dying_unlinked(struct due_queue *q, uint32_t number, uint64_t w)
{
    struct due__job *j = due__job_at(&q->slab, number);

    if (!due__revoked(q, number)) /* R3 */
        return false;
    do {
        if (due__word_state(w) != DUE__WAITING)
            return false;
    } while (!due__word_claim(&j->word, &w, DUE__CLAIMED)); /* J1 */
    due__unlink_cancelled(q, number);
    due__dying_enlist(q, number);
    return true;
}

/* More than may be kept: the oldest goes. */
static void crowd_out(struct due_queue *q)
{
    while (q->dead_max > 0 && q->dead_count > q->dead_max) {
        uint32_t oldest = q->dead_first - 1;
        uint64_t w = due__load_relaxed(&due__job_at(&q->slab, oldest)->word); /* J1: T */

        if (!due__dead_claim(q, oldest, &w, DUE__CLAIMED))
            return;
        due__dying_enlist(q, oldest);
    }
}

/* It stands in the timeline until it is to be discarded: not before @from_ns, then if cancelled. */
static void enter_dead(struct due_queue *q, uint32_t number, int64_t from_ns)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */
    int64_t until = DUE_FOREVER;

    if (q->dead_keep_ns > 0)
        until = due__time_add(due__dead_letter_at(q, number)->died_ns, q->dead_keep_ns);
    if (until < from_ns || due__revoked(q, number)) /* R3: it goes */
        until = from_ns;
    list_add(q, number);
    w = due__limiter_left(q, number, w);
    due__replace(q, number, w, DUE__DEAD, until);
}

void due__dead_letter_count(struct due_queue *q)
{
    struct due__shard *it = due__shard_enter(&q->slab);

    it->died++; /* C2 of closing.c */
    due__shard_leave(it);
}

void due__bury_locked(struct due_queue *q, uint32_t number)
{
    enter_dead(q, number,
               due__time_add(due__due_ns(q), 1)); /* what is due already has left the timeline */
    crowd_out(q);
}

/* ---- Not handing out ---- */

/* When the job's time is over; DUE_FOREVER: never.  @deadline_ns: its own. */
static int64_t expiry(const struct due__extras *extras, int64_t deadline_ns)
{
    if (extras->expires_ns != 0)
        return extras->expires_ns;
    return extras->ttl_ns != 0 ? due__time_add(deadline_ns, extras->ttl_ns) : DUE_FOREVER;
}

/* Why a taken job is not to be handed out; 0: it is.  *@deadline_ns gets its own deadline. */
static enum due_cause verdict(const struct due_queue *q, struct due__slot s, int64_t now_ns,
                              int64_t *deadline_ns)
{
    uint32_t number = due__slot_job(s);
    const struct due__job *j = due__job_at(&q->slab, number);
    const struct due__extras *extras = due__extras_of(j);
    const struct due__lease *l = NULL;

    if (due__load_relaxed(&j->word) & DUE__HELD) /* J1: the caller's own */
        l = due__lease_at(q, number);
    *deadline_ns = l != NULL ? due__load_relaxed(&l->deadline_ns) : due__slot_deadline(s); /* R1 */
    if (extras != NULL && expiry(extras, *deadline_ns) <= now_ns)
        return DUE_CAUSE_EXPIRED;
    if (l == NULL || !due__lease_limited(q, j))
        return 0;
    return due__load_relaxed(&l->attempts) >= due__retry_limit(due__retry_of(q, j)) /* R1 */
               ? DUE_CAUSE_ATTEMPTS
               : 0;
}

size_t due__attempts_check_all(struct due_queue *q, struct due__slot *slots, size_t n,
                               struct due__deadline *by, int *rc)
{
    int64_t now = due__jobs_now(q);
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t deadline;
        enum due_cause cause = verdict(q, slots[i], now, &deadline);

        if (cause == 0) {
            slots[kept++] = slots[i];
            continue;
        }
        due__count(q, due__slot_job(slots[i]), DUE__F_READY, -1);
        int failed = due__bury(q, due__slot_job(slots[i]), deadline, cause, NULL, by);
        if (failed == DUE_ENOSPC) { /* a full store: what is behind it can leave still */
            due__wait_later(q, due__slot_job(slots[i]));
            failed = 0;
        }
        if (failed == 0 || failed == DUE_EINDOUBT || failed == DUE_ESTALE) {
            struct due__shard *it = due__shard_enter(&q->slab);
            it->unready++; /* taken from what is ready, and not handed out */
            due__shard_leave(it);
            continue;
        }
        due__count(q, due__slot_job(slots[i]), DUE__F_READY, 1);
        due__put_back(q, &slots[i], 1);
        *rc = failed;
    }
    return kept;
}

/* ---- Dying ---- */

void due__buried(struct due_queue *q)
{
    due__add_relaxed(&q->buried, 1); /* no edge: a counter */
    if (q->capacity > 0)
        due__capacity_give(q, 1);
    due__left(q, 1);
}

/* Nobody has died: so nobody has to go for it, or a store that refuses to drop one would be asked
 * to drop the next, and so on for ever. */
void due__bury_again(struct due_queue *q, uint32_t number)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */
    struct due__tenure t;

    due__enter(q, &t);
    t.rounds = DUE__ROUNDS_MAX; /* who sees to many jobs does not see to others' besides */
    enter_dead(q, number, due__later(q));
    due__tenure_end(q, &t);
    if (due__word_state(w) == DUE__CHANGING)
        q->journal->given_up(q);
}

void due__give_up(struct due_queue *q, uint32_t number)
{
    if (due__is_dying(q, number))
        due__bury_again(q, number);
    else
        due__unclaim(q, number, false);
}

static int prepare(struct due_queue *q, uint32_t number, int64_t deadline_ns, enum due_cause cause,
                   const char *reason)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */

    if (!due__dead_letter_make(q, number))
        return DUE_ENOMEM;
    if (!(w & DUE__HELD)) {
        due__past_begin(q, number, deadline_ns);
        due__word_keep(&j->word, w | DUE__HELD); /* J1 */
    }
    due__dead_letter_open(q, number, due__jobs_now(q), cause, reason);
    return 0;
}

int due__bury(struct due_queue *q, uint32_t number, int64_t deadline_ns, enum due_cause cause,
              const char *reason, struct due__deadline *by)
{
    int rc = prepare(q, number, deadline_ns, cause, reason);

    if (rc != 0)
        return rc;
    rc = q->journal->change(q, number, DUE__BURY, 0, by);
    if (rc != 0 && rc != DUE_EINDOUBT && rc != DUE_ESTALE)
        due__dead_letter_at(q, number)->cause = 0;
    return rc;
}

/* ---- Going for good ---- */

void due__dead_letter_close(struct due_queue *q, uint32_t number)
{
    struct due__shard *it = due__shard_enter(&q->slab);

    due__dead_letter_at(q, number)->cause = 0;
    it->revived++; /* C2 of closing.c */
    due__shard_leave(it);
    due__count(q, number, DUE__F_DEAD, -1);
    if (q->capacity > 0)
        due__capacity_force(q, 1);
}

/* One of those that were found under the lock. */
static void see_to_one(struct due_queue *q, uint32_t number)
{
    if (due__revoked(q, number)) { /* dead or not */
        q->journal->leave(q, number, DUE__CANCEL);
    } else if (due__closed(q)) { /* nobody will take it any more, nor write it down */
        due__keep_stored(q, number);
    } else if (q->shared) {
        q->journal->lapse(q, number);
    } else if (due__is_dying(q, number)) {
        q->journal->leave(q, number, DUE__CLEAR);
    } else if (!due__dead_letter_make(q, number)) { /* not yet: see the head */
        due__wait_later(q, number);
    } else {
        due__dead_letter_open(q, number, due__clock_now(&q->clock), DUE_CAUSE_ATTEMPTS, NULL);
        q->journal->leave(q, number, DUE__BURY);
    }
}

void due__dying_bury(struct due_queue *q, uint32_t first)
{
    while (first != 0) {
        uint32_t number = first - 1;

        first = due__job_at(&q->slab, number)->link.next_free;
        see_to_one(q, number);
    }
}

/* ---- By name ---- */

int due__not_dead(uint64_t w, uint32_t generation)
{
    bool changing = due__word_state(w) == DUE__CHANGING && due__word_generation(w) == generation;

    return changing ? DUE_EBUSY : DUE_ENOENT;
}

int due__dead_claim_one(struct due_queue *q, uint32_t number, uint32_t generation,
                        const struct due__key_name *name, enum due__state as)
{
    struct due__key_shard *shard = NULL;
    struct due__tenure t;

    due__enter(q, &t);
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */
    if (name != NULL)
        shard = due__key_enter_of(q, name, number, generation);
    bool ours = (name == NULL || shard != NULL) && due__word_generation(w) == generation &&
                due__dead_claim(q, number, &w, as);
    if (shard != NULL)
        due__key_leave(q, shard);
    due__tenure_end(q, &t);
    return ours ? 0 : due__not_dead(w, generation);
}

void due__revive_locked(struct due_queue *q, uint32_t number, int64_t at_ns)
{
    struct due__job *j = due__job_at(&q->slab, number);
    struct due__lease *l = due__lease_at(q, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */

    if (due__word_state(w) == DUE__MOVING)
        list_remove(q, number);          /* N1: else who claimed it has done so */
    due__dead_letter_close(q, number);   /* before anybody can take it: C2 of closing.c */
    due__store_relaxed(&l->attempts, 0); /* R1 */
    due__store_relaxed(&l->failures, 0); /* R1 */
    due__add_relaxed(&q->kicked, 1);     /* no edge: a counter */
    due__wait_again(q, number, w, at_ns);
}

void due__kick_locked(struct due_queue *q, uint32_t number, int64_t at_ns)
{
    struct due__extras *extras = due__extras_of(due__job_at(&q->slab, number));

    if (extras != NULL)
        extras->ttl_ns = extras->expires_ns = 0;
    due__revive_locked(q, number, at_ns);
}
