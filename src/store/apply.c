/* apply.c - what follows a batch that has ended: for each job, and for who waits.
 *
 * Guards     K  the key      D  the calls' lock      A  atomic, see Edges
 *
 * Edges      described elsewhere: G1 G2 sender.c, J1 slab.h, R1 lease.c
 */
#include <string.h>

#include "job/apply.h"
#include "job/cancel.h"
#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/discard.h"
#include "job/draft.h"
#include "job/handover.h"
#include "job/lease.h"
#include "job/release.h"
#include "job/repeat.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "store/retained_keys.h"
#include "store/sender.h"
#include "store/share.h"

#define PLACES 64u /* jobs sorted in in one tenure */

/* Under the calls' lock: how the change of job @number ended, for a call that asks it of each.
 * They end in the order in which they were left, or nearly so. */
static void note_result(struct due__submission *a, uint32_t number, int rc)
{
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t at = (a->at + i) % a->count;

        if (a->numbers[at] != number)
            continue;
        a->results[at] = rc;
        a->at = at + 1;
        return;
    }
}

/* Under the calls' lock: who waits for the change of job @number is told its end. */
static void answer(struct due__commits *c, struct due__submission *a, uint32_t number, int rc,
                   uint32_t *rings)
{
    if (a == NULL)
        return;
    note_result(a, number, rc);
    a->landed += rc == 0;
    a->doubt += rc == DUE_EINDOUBT;
    if (rc != 0 && a->rc == 0)
        a->rc = rc;
    if (!due__submission_less(a))
        return;
    if (a->in_list)
        due__taking_told(c);
    else
        c->rings[(*rings)++] = a->waiter;
}

/* Under the calls' lock: of those who are to be rung, each rings two others when it leaves, so that
 * who sends need not wake them all.  Answers how many are left to be rung by the caller. */
static uint32_t chain(struct due__commits *c, uint32_t rings)
{
    for (uint32_t i = 2; i < rings; i++)
        c->rings[i / 2 - 1]->after[i % 2] = c->rings[i];
    return rings < 2 ? rings : 2;
}

/* What has landed and was applied: its job may be another's already, so its times are not read. */
static struct due__change change_applied(const struct due__entry *e)
{
    return (struct due__change){ .draft = e->draft,
                                 .number = e->number,
                                 .purpose = e->purpose,
                                 .waited = e->submission != NULL };
}

/* What has landed, to be applied. */
static struct due__change change_of(const struct due_queue *q, const struct due__entry *e)
{
    const struct due__stored *s = due__stored_at(q->commits, e->number);
    bool round = e->purpose == DUE__REPEAT || e->purpose == DUE__ROUND;
    struct due__change c = change_applied(e);

    c.at_ns = round ? s->was_ns : s->want_ns;
    return c;
}

/* Under the timeline lock. */
static void apply_landed(struct due_queue *q, struct due__entry *e)
{
    struct due__change c = change_of(q, e);

    if (q->shared &&
        (due__sharing_leaves((enum due__purpose)e->purpose) || e->purpose == DUE__EXTEND ||
         e->purpose == DUE__HOLD || e->purpose == DUE__TAKE)) {
        due__sharing_apply(q, e);
        return;
    }
    due__change_apply(q, &c);
    e->purpose = c.purpose;
}

/* Who is told of what happens to jobs hears of those that have landed. */
static void tell_landed(struct due_queue *q)
{
    const struct due__batch *b = q->commits->now;

    for (uint32_t i = 0; q->events != NULL && i < b->count; i++) {
        struct due__change c = change_of(q, &b->entries[i]);

        if (b->entries[i].rc == 0)
            due__change_tell(q, &c);
    }
}

/* Under the timeline lock: what becomes of a job whose change has ended. */
static void apply_locked(struct due_queue *q, struct due__entry *e)
{
    struct due__job *j = due__job_at(&q->slab, e->number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: claimed for the change */

    if (e->rc == 0)
        apply_landed(q, e);
    else if (e->purpose == DUE__PUT)
        due__word_set(&j->word, due__word_as(w, DUE__CLAIMED)); /* J1 */
}

static void apply_all(struct due_queue *q)
{
    struct due__batch *b = q->commits->now;
    struct due__tenure t;
    uint32_t i = 0;

    while (i < b->count) {
        due__enter(q, &t);
        due__move_due(q, due__clock_now(&q->clock));
        for (uint32_t end = i + PLACES; i < b->count && i < end; i++)
            apply_locked(q, &b->entries[i]);
        due__tenure_end(q, &t);
    }
}

/* What the store has after the batch. */
static void note(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    const struct due__batch *b = c->now;
    uint32_t at = 0;

    for (uint32_t i = 0; i < b->count; i++) {
        const struct due__entry *e = &b->entries[i];
        struct due__stored *s = due__stored_at(c, e->number);

        if (e->rc != 0 && s->stored >= DUE__WAS_STORED)
            due__mirror_later(c, e->number);
        if (!e->sent && e->rc == 0) /* it was to be removed, and was not there */
            s->stored = DUE__NOT_STORED;
        if (!e->sent)
            continue;
        const due_change *ch = &b->changes[at++];
        if (e->rc != 0)
            continue;
        if (e->purpose == DUE__NO_CHANGE)
            due__add_relaxed(&c->mirrored, 1); /* no edge: a counter */
        s->stored = ch->kind == DUE_CHANGE_DROP ? DUE__NOT_STORED : DUE__IS_STORED;
        if (ch->key_kept_ns > 0 && !q->shared)
            due__key_retained(q, e->number, ch->key_kept_ns);
        else if (ch->kind == DUE_CHANGE_PUT && ch->record.key != NULL)
            due__key_settled(q, e->number); /* whatever it was put for */
        s->was_ns = ch->record.cause != 0 ? DUE__DEAD_THERE : ch->record.until_ns;
    }
}

/* Under the calls' lock: the taking that the change belongs to was left by all who waited for it.
 * So it ends for nobody. */
static struct due__submission *nobodys(struct due__commits *c, struct due__submission *a,
                                       const struct due__entry *e)
{
    if (a == NULL || !a->in_list || a->polls || (a->keeps && e->purpose == DUE__ROUND))
        return a;
    note_result(a, e->number, DUE__LEFT);
    if (due__submission_less(a))
        due__taking_told(c);
    return NULL;
}

/* N4, under the calls' lock: entries of @b, from @at to @end, were filled in before it was known
 * that jobs of the same calls are refused. */
static void refuse_rest(struct due_queue *q, struct due__batch *b, uint32_t at, uint32_t end)
{
    for (; at < end; at++) {
        struct due__entry *e = &b->entries[at];
        const struct due__submission *a = due__stored_at(q->commits, e->number)->put_submission;
        int rc = e->purpose == DUE__PUT ? due__refusal(q, a) : 0;

        if (rc == 0)
            continue;
        e->sent = false;
        e->known = true;
        e->rc = (int16_t)rc;
        b->refused = true;
    }
}

/* Who waits for a job that is put hears of a refusal now, before he may leave. */
static void catch_put(struct due_queue *q, struct due__entry *e, struct due__stored *s)
{
    struct due__submission *a = s->put_submission;

    e->submission = a;
    s->put_submission = NULL;
    if (a == NULL)
        return;
    if (e->purpose == DUE__UNSENT) {
        e->rc = (int16_t)due__refusal(q, a);
        a->gone += e->rc != 0;
    }
    if (a->rc == 0)
        a->rc = e->rc;
}

/* From here on a caller that leaves waits for the end, which is near.  @left: entries behind those
 * that have ended. */
static void catch_submission(struct due_queue *q, uint32_t left)
{
    struct due__commits *c = q->commits;
    struct due__batch *b = c->now;
    bool refused = false;

    due__lock_acquire(&c->calls);
    for (uint32_t i = 0; i < b->count; i++) {
        struct due__entry *e = &b->entries[i];
        struct due__stored *s = due__stored_at(c, e->number);

        if (e->purpose == DUE__PUT || e->purpose == DUE__UNSENT) {
            catch_put(q, e, s);
            refused |= e->rc != 0;
        } else if (e->purpose != DUE__NO_CHANGE) {
            e->submission = nobodys(c, s->submission, e);
            s->submission = NULL;
        }
    }
    if (refused) {
        refuse_rest(q, b, b->count, b->count + left);
        refuse_rest(q, c->next, 0, c->next->count);
    }
    due__lock_release(&c->calls);
}

/* Those who waited are told, to be rung after that. */
static uint32_t tell(struct due__commits *c)
{
    const struct due__batch *b = c->now;
    uint32_t rings = 0;
    uint32_t changes = 0;
    uint64_t bytes = 0;

    due__lock_acquire(&c->calls);
    for (uint32_t i = 0; i < b->count; i++) {
        const struct due__entry *e = &b->entries[i];

        if (e->purpose == DUE__NO_CHANGE)
            continue;
        changes++;
        bytes += e->bytes;
        answer(c, e->submission, e->number, e->rc, &rings);
    }
    due__settle(c, changes, bytes);
    rings = chain(c, rings);
    due__lock_release(&c->calls);
    return rings;
}

/* Nobody has heard, or will hear, the end of a change from the call that made it. */
static bool nobodys_change(const struct due__entry *e)
{
    return e->submission == NULL && !e->known;
}

void due__refused(struct due_queue *q, uint32_t number)
{
    struct due__shard *it = due__shard_enter(&q->slab);

    it->refused++;
    due__step(q, number, DUE__S_BACK, 0);
    due__place_done(q, it, number);
    due__shard_leave(it);
    due__left(q, 1);
}

/* A job that was to be enqueued was refused, and is ours: as if it had never been.  If nobody waits
 * for the answer, it is discarded. */
static void end_refused(struct due_queue *q, const struct due__entry *e)
{
    struct due__job *j = due__job_at(&q->slab, e->number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */

    if (e->rc != DUE_EINDOUBT)
        due__key_undo(q, due__extras_of(j));
    if (e->rc == DUE_EINDOUBT) {
        due__keep_stored(q, e->number);
    } else if (nobodys_change(e)) {
        due__discard(q, e->number, w);
    } else {
        due__job_release(&q->slab, j);
        due__refused(q, e->number);
    }
}

/* Is it about taken jobs, which go back by who took them, if he still waits? */
static bool taken(const struct due__entry *e)
{
    return e->purpose == DUE__TAKE || e->purpose == DUE__ATTEMPT || e->purpose == DUE__ROUND;
}

/* Nothing is changed in the store any more by a queue that closes, or was replaced. */
static bool over(const struct due__commits *c)
{
    return due__load_seq(&c->stopping) || due__load_seq(&c->fenced); /* G2 */
}

/* A job of a shared queue that left the store for nobody is in memory alone, and is put in again:
 * at once without its key, if another has that by now, else later. */
static bool returns_again(struct due_queue *q, const struct due__entry *e)
{
    const struct due__commits *c = q->commits;

    if (!q->shared || e->purpose != DUE__RETURN || over(c))
        return false;
    if (e->rc == DUE_EEXIST) {
        due__hold_at(q, e->number)->robbed = true;
        due__commit_submit(q, e->number, DUE__RETURN, due__stored_at(c, e->number)->want_ns, NULL);
    } else {
        due__sharing_return(q, e->number);
    }
    return true;
}

/* A change nobody waits for has come to its end. */
static void settled(struct due_queue *q, due_id id, int rc)
{
    if (q->commits->on_settled != NULL)
        q->commits->on_settled(q->commits->settled_ctx, id, rc);
}

/* A job that was cancelled while somebody had it is to go, and was not removed: it stays in the
 * store if it is there.  It is not tried again, which would end as this did, and so on for ever. */
static void keep_revoked(struct due_queue *q, const struct due__entry *e, uint64_t w)
{
    if (due__stored_at(q->commits, e->number)->stored >= DUE__TO_STORE)
        due__discard(q, e->number, w);
    else
        due__keep_stored(q, e->number);
}

/* A queue that closes, or was replaced, cannot put a job back that had left the store for nobody.
 * It is shown, or it might vanish in silence; with DUE_EINDOUBT the store may have it all the same.
 */
static void lose(struct due_queue *q, const struct due__entry *e, uint64_t w)
{
    settled(q, due__stored_id(due__stored_at(q->commits, e->number)), e->rc);
    due__discard(q, e->number, w | DUE__READY); /* it was taken from what is ready */
}

/* A job that its caller had claimed before he left is to wait, or be leased, again. */
static void restore_claim(struct due_queue *q, const struct due__entry *e)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, e->number)->word); /* J1: ours */

    due__key_stays(q, e->number);
    if (returns_again(q, e))
        return;
    if (e->purpose == DUE__RETURN && e->rc != 0 && !q->shared) {
        struct due__stored *s = due__stored_at(q->commits, e->number);

        if (s->stored == DUE__NOT_STORED) {
            s->stored = DUE__TO_STORE;
            s->was_ns = s->want_ns;
        } else {
            s->stored = DUE__ROUND_LATE; /* was_ns is that of the next one, which a removal names */
        }
        due__mirror_later(q->commits, e->number);
    }
    if (e->purpose == DUE__UPDATE)
        due__draft_free(q, e->draft);
    if (e->purpose == DUE__EXTEND) {
        due__sharing_extend_undo(q, e->number);
        return;
    }
    bool dead = (w & DUE__HELD) && due__is_dying(q, e->number);
    if (e->purpose == DUE__BURY) {
        due__dead_letter_at(q, e->number)->cause = 0;
        due__wait_later(q, e->number);
    } else if (dead) {
        due__bury_again(q, e->number);
    } else if (e->purpose == DUE__ACK || e->purpose == DUE__GIVE_BACK ||
               e->purpose == DUE__SNOOZE || e->purpose == DUE__REPEAT)
        due__lease_resume(q, e->number);
    else if (e->purpose == DUE__RETURN && e->rc != 0 && over(q->commits))
        lose(q, e, w);
    else if (e->purpose == DUE__CANCEL && due__revoked(q, e->number) && over(q->commits))
        keep_revoked(q, e, w);
    else if (e->purpose == DUE__CANCEL && due__revoked(q, e->number))
        due__revoke_later(q, e->number);
    else
        due__unclaim(q, e->number,
                     taken(e) || e->purpose == DUE__RETURN || e->purpose == DUE__HOLD);
}

/* What follows a change that has landed, besides what was done under the lock. */
static void end_landed(struct due_queue *q, const struct due__entry *e)
{
    const struct due__job *j = due__job_at(&q->slab, e->number);
    struct due__change c = change_applied(e);

    if (q->shared && due__sharing_leaves((enum due__purpose)e->purpose)) {
        due__sharing_left(q, e);
    } else if (e->purpose == DUE__HOLD && e->submission == NULL) {
        due__unclaim(q, e->number, true);
    } else if (e->purpose == DUE__TAKE &&
               e->submission == NULL) { /* it left for nobody: back to where it was */
        if (due__sharing_dropped(q, e->number))
            return;
        due__key_returns(q, e->number);
        due__commit_submit(q, e->number, DUE__RETURN, due__stored_at(q->commits, e->number)->was_ns,
                           NULL);
    } else if (e->purpose == DUE__ROUND &&
               e->submission == NULL) { /* and has its next time already */
        due__commit_submit(q, e->number, DUE__RETURN, due__load_relaxed(&j->deadline_ns),
                           NULL); /* J1: claimed */
    } else if (e->purpose == DUE__RETURN || (e->purpose == DUE__ATTEMPT && e->submission == NULL)) {
        restore_claim(q, e);
    } else {
        if (e->purpose == DUE__LEAVE) /* it is put again by nobody, if the store loses it */
            due__stored_at(q->commits, e->number)->stored = DUE__NOT_STORED;
        due__change_end(q, &c);
    }
}

/* Nobody will know whether the store has it, and its caller does not keep it: it is shown, or it
 * might vanish in silence. */
static bool may_be_gone(const struct due__entry *e)
{
    return e->purpose == DUE__TAKE || e->purpose == DUE__ROUND || e->purpose == DUE__CLEAR;
}

static void give_up(struct due_queue *q, const struct due__entry *e)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, e->number)->word); /* J1: ours */

    due__discard(q, e->number, taken(e) ? w | DUE__READY : w);
}

/* What follows a change. */
static void follow(struct due_queue *q, const struct due__entry *e)
{
    if (e->purpose == DUE__UNSENT)
        due__unlink_cancelled(q, e->number);
    if (e->purpose == DUE__UNSENT || e->purpose == DUE__NO_CHANGE)
        return;
    due_id id = due__stored_id(due__stored_at(q->commits, e->number));
    if (e->rc == 0)
        end_landed(q, e);
    else if (e->rc == DUE_ESTALE)
        due__sharing_stale(q, e);
    else if (e->purpose == DUE__PUT)
        end_refused(q, e);
    else if (e->rc == DUE_EINDOUBT && may_be_gone(e))
        give_up(q, e);
    else if (e->submission == NULL || (e->rc == DUE_EINDOUBT && !taken(e)))
        restore_claim(q, e);
    if (nobodys_change(e) && e->purpose != DUE__RETURN)
        settled(q, id, e->rc);
}

/* The batch has ended, and the next one takes its place. */
static void move_up(struct due__commits *c, bool sent)
{
    struct due__batch *b = c->now;

    due__batch_unwrite(b);
    b->filled_bytes = 0;
    b->refused = false;
    c->now = c->next;
    c->next = b;
    due__sender_on(c, sent                ? DUE__SENDER_END_FOLLOWED
                      : c->now->count > 0 ? DUE__SENDER_END_REST
                                          : DUE__SENDER_END);
}

void due__batch_end(struct due_queue *q, int rc, uint32_t n, bool sent)
{
    struct due__commits *c = q->commits;
    struct due__batch *b = c->now;
    uint32_t left = b->count - n;

    for (uint32_t i = 0; rc != 0 && i < n; i++) {
        if (b->entries[i].sent)
            b->entries[i].rc = (int16_t)rc;
    }
    due__retained_end(q, b, rc);
    b->count = n;
    note(q);
    catch_submission(q, left);
    tell_landed(q);
    apply_all(q);
    for (uint32_t i = 0; i < n; i++)
        follow(q, &b->entries[i]);
    uint32_t rings = tell(c);
    due__ring_waiters(q, c->rings, rings);
    due__takings_landed(q);
    if (rc != 0 || b->refused)
        due__batch_unwrite(c->next);
    memmove(b->entries, b->entries + n, left * sizeof *b->entries);
    b->count = left;
    if (left > 0) {
        due__batch_unwrite(b);
        due__batch_unwrite(c->next);
        due__sender_on(c, DUE__SENDER_END_REST);
    } else {
        move_up(c, sent);
    }
    due__mirror_over(c);
}
