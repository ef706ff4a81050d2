/* batch.c - one batch of a stored queue: what goes into it, and what follows when it has ended.
 *
 * Guards     K  the key      D  the calls' lock      A  atomic, see Edges
 *
 * Edges      described elsewhere: G1 G2 commit.c, J1 job.h, R1 lease.c
 */
#include "commit.h"

#include <string.h>

#include "atomic.h"
#include "core.h"
#include "front.h"
#include "kept.h"
#include "repeat.h"
#include "update.h"

#define PLACES 64u /* jobs sorted in in one tenure */

/* ---- Filling a batch: with the key ---- */

/* Under the calls' lock: how the change of job @number ended, for a call that asks it of each.
 * They end in the order in which they were left, or nearly so. */
static void note_result(struct due__asked *a, uint32_t number, int rc)
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
static void answer(struct due__commits *c, struct due__asked *a, uint32_t number, int rc,
                   uint32_t *rings)
{
    if (a == NULL)
        return;
    note_result(a, number, rc);
    a->landed += rc == 0;
    if (rc != 0 && a->rc == 0)
        a->rc = rc;
    if (due__asked_less(a))
        c->rings[(*rings)++] = a->waiter;
}

/* Under the calls' lock, when something was settled: those who wait for nothing else. */
static void ring_flushes(struct due__commits *c)
{
    for (struct due__asked *a = c->first; a != NULL; a = a->next) {
        if (a->goal != 0 && c->settled >= a->goal)
            due__bell_ring(&a->waiter->bell);
    }
}

static bool removes(enum due__purpose purpose)
{
    return purpose >= DUE__TAKE && purpose <= DUE__CLEAR;
}

static bool in_batch(const struct due__batch *b, uint32_t entries, uint32_t number)
{
    for (uint32_t i = entries; i-- > 0;) {
        if (b->entries[i].number == number)
            return true;
    }
    return false;
}

/* A waiting job whose node is in the inbox: its PUT begins.  False: it was claimed before. */
static bool begin_put(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    while (due__word_state(w) == DUE__WAITING && (w & DUE__LINKED)) {
        uint64_t sent = (w & ~(DUE__STATE_MASK | DUE__LINKED)) | DUE__SENT;

        if (due__cas_acq_rel(&j->word, &w, sent)) /* J1 */
            return true;
    }
    return false;
}

/* What a change is to say of the job: as it is or, with a draft, is to be. */
static const struct due__job *content_of(const struct due_queue *q, uint32_t number,
                                         const struct due__draft *draft)
{
    return draft != NULL ? &draft->made : due__job_at(&q->slab, number);
}

static bool fits(const struct due_queue *q, struct due__batch *b, uint32_t number,
                 const struct due__draft *draft)
{
    size_t len = due__facts_load(content_of(q, number, draft)).len;

    if (b->count > 0 && b->filled_bytes + len > q->commits->info.batch_bytes)
        return false;
    b->filled_bytes += len;
    return true;
}

/* A PUT was taken from the inbox.  False: it does not fit into the batch. */
static bool add_put(struct due_queue *q, struct due__batch *b, uint32_t number, uint32_t *rings)
{
    struct due__commits *c = q->commits;
    struct due__stored *s = due__stored_at(c, number);
    const struct due__asked *a = s->put_asked;
    int refused = a != NULL ? a->rc : 0; /* jobs of the same call before it: N4 */

    if (refused == 0 && !fits(q, b, number, NULL))
        return false;
    if (!begin_put(q, number)) { /* it was cancelled: as if it had never been */
        b->aside++;
        answer(c, s->put_asked, number, 0, rings);
        s->put_asked = NULL;
        due__unlink_cancelled(q, number);
        return true;
    }
    b->entries[b->count++] = (struct due__entry){
        .number = number, .purpose = DUE__PUT, .sent = refused == 0, .rc = (int16_t)refused
    };
    b->refused |= refused != 0;
    return true;
}

/* The same of any other change. */
static bool add_change(struct due_queue *q, struct due__batch *b, uint32_t number)
{
    struct due__stored *s = due__stored_at(q->commits, number);
    enum due__purpose purpose = (enum due__purpose)(s->purpose & ~DUE__QUEUED);
    struct due__draft *draft = purpose == DUE__UPDATE ? due__draft_of(s) : NULL;
    bool whole = !removes(purpose) && (s->stored != DUE__IS_STORED || draft != NULL);

    if (purpose != DUE__NO_CHANGE && whole && !fits(q, b, number, draft))
        return false;
    s->purpose = DUE__NO_CHANGE;
    if (purpose == DUE__NO_CHANGE) { /* its caller has left */
        b->aside++;
        return true;
    }
    b->entries[b->count++] = (struct due__entry){
        .number = number, .purpose = (uint8_t)purpose, .sent = true, .draft = draft
    };
    return true;
}

/* The node of @number was taken, under the calls' lock.  False: it does not fit. */
static bool add(struct due_queue *q, struct due__batch *b, uint32_t number, uint32_t *rings)
{
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */

    return (w & DUE__LINKED) ? add_put(q, b, number, rings) : add_change(q, b, number);
}

/* Under the calls' lock: of those who are to be rung, each rings two others when it leaves, so that
 * who sends need not wake them all.  Answers how many are left to be rung by the caller. */
static uint32_t chain(struct due__commits *c, uint32_t rings)
{
    for (uint32_t i = 2; i < rings; i++)
        c->rings[i / 2 - 1]->after[i % 2] = c->rings[i];
    return rings < 2 ? rings : 2;
}

static bool full(const struct due__commits *c, const struct due__batch *b)
{
    return c->carry != 0 || b->count >= c->info.batch_changes;
}

/* Jobs that are to be put again, behind everything else. */
static void add_mirrored(struct due_queue *q, struct due__batch *b)
{
    struct due__commits *c = q->commits;
    uint32_t changes = b->count;

    while (c->mirror_at != DUE__NO_JOB && !full(c, b)) {
        uint32_t number = due__mirror_next(q);

        if (number == DUE__NO_JOB)
            return;
        if (in_batch(b, changes, number))
            continue; /* it is put whole, or removed */
        if (!fits(q, b, number, NULL)) {
            c->mirror_at = number;
            return;
        }
        b->entries[b->count++] =
            (struct due__entry){ .number = number, .purpose = DUE__NO_CHANGE, .sent = true };
    }
}

/* Under the calls' lock: with the batch is settled what was taken with it and needs not be sent, or
 * a flush would count that for what stands before it. */
static void settle(struct due__commits *c, uint32_t changes)
{
    due__add_relaxed(&c->settled, changes + c->now->aside); /* no edge: read as a bound only */
    c->now->aside = 0;
    ring_flushes(c);
}

/* Under the calls' lock: what waits in the inbox. */
static void take_nodes(struct due_queue *q, struct due__batch *b, uint32_t *rings)
{
    struct due__commits *c = q->commits;
    enum due__inbox_found found = DUE__INBOX_NODE;
    struct cds_wfcq_node *node;

    due__inbox_answer(&c->inbox); /* G1 */
    while (!full(c, b) && *rings < c->info.batch_changes) {
        found = due__inbox_take(&c->inbox, &node);
        if (found != DUE__INBOX_NODE)
            break;
        const struct due__stored *s = caa_container_of(node, struct due__stored, node);
        uint32_t number = due__side_number(&c->stored, s);
        if (!add(q, b, number, rings))
            c->carry = number + 1;
    }
    due__inbox_answered(&c->inbox, found); /* G1 */
}

void due__batch_fill(struct due_queue *q, struct due__batch *b, bool mirror)
{
    struct due__commits *c = q->commits;
    uint32_t rings = 0;

    due__lock_acquire(&c->calls);
    if (c->carry != 0 && b->count == 0) {
        add(q, b, c->carry - 1, &rings);
        c->carry = 0;
    }
    if (!full(c, b))
        take_nodes(q, b, &rings);
    if (b->count == 0 && b == c->now) {
        settle(c, 0);
    } else if (b->count == 0) { /* behind the batch under way: with that */
        c->now->aside += b->aside;
        b->aside = 0;
    }
    due__lock_release(&c->calls);
    if (mirror && !c->later)
        add_mirrored(q, b);
    due__ring_waiters(q, c->rings, rings);
}

/* ---- Sending it ---- */

/* What only some jobs have. */
static void describe_front(struct due_queue *q, const struct due__job *j, due_record *r)
{
    const struct due__front *front = due__front_of(j);

    if (front == NULL)
        return;
    r->headers = front->headers_len > 0 ? front->bytes : NULL;
    r->headers_len = front->headers_len;
    r->retry = due__retry_named(q, front->retry);
    r->ttl_ns = front->ttl_ns;
    r->expires_ns = front->expires_ns;
    if (front->gate != NULL) {
        r->group = front->gate->name;
        r->group_len = front->gate->len;
    }
    r->every_ns = front->every_ns;
    r->repeat = (enum due_repeat)front->repeat;
}

/* Why it is dead.  A job that is comes into the store so also after a loss. */
static void describe_grave(const struct due_queue *q, uint32_t number, due_record *r)
{
    const struct due__grave *g = due__grave_at(q, number);

    r->cause = (enum due_cause)g->cause;
    r->died_ns = g->died_ns;
    r->reason = g->reason;
}

static void describe_put(struct due_queue *q, uint32_t number, const struct due__job *content,
                         due_record *r)
{
    struct due__facts f = due__facts_load(content);
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */

    r->data = due__job_bytes(content, f);
    r->len = f.len;
    r->priority = f.priority;
    r->topic = due_topic_name(q, f.topic);
    describe_front(q, content, r);
    if (w & DUE__HELD) {
        const struct due__lease *l = due__lease_at(q, number);

        r->deadline_ns = due__load_relaxed(&l->deadline_ns); /* R1 of lease.c: nearly so */
        r->attempts = due__load_relaxed(&l->attempts);       /* R1 */
        r->failures = due__load_relaxed(&l->failures);       /* R1 */
    } else {
        r->deadline_ns = r->until_ns;
    }
}

/* The same of a job that is another. */
static void describe_update(const struct due_queue *q, const struct due__entry *e, due_record *r)
{
    if (e->draft->what & DUE_SET_TIME)
        r->deadline_ns = r->until_ns = e->draft->at_ns;
    if (e->draft->what & DUE__SET_ANEW)
        r->attempts = r->failures = 0;
    else if (due__grave_is(q, e->number))
        describe_grave(q, e->number, r);
}

/* What becomes of the job by the change. */
static void describe_end(const struct due_queue *q, const struct due__entry *e, due_record *r)
{
    switch (e->purpose) {
    case DUE__UPDATE:
        describe_update(q, e, r);
        break;
    case DUE__REPEAT:
    case DUE__ROUND:
        r->deadline_ns = r->until_ns = due__repeat_at(q, e->number);
        r->attempts = r->failures = 0;
        break;
    case DUE__MOVE:
        r->deadline_ns = r->until_ns;
        break;
    case DUE__GIVE_BACK:
        r->failures++;
        break;
    case DUE__ATTEMPT:
        r->attempts++;
        break;
    case DUE__BURY:
        describe_grave(q, e->number, r);
        break;
    case DUE__KICK: /* as if it had never been handed out */
        r->attempts = r->failures = 0;
        r->ttl_ns = r->expires_ns = 0;
        break;
    default:
        break;
    }
}

/* Does it change only what a MOVE can? */
static bool moves(const struct due_queue *q, const struct due__entry *e)
{
    const struct due__front *front = due__front_of(due__job_at(&q->slab, e->number));

    switch (e->purpose) {
    case DUE__MOVE:
    case DUE__GIVE_BACK:
    case DUE__ATTEMPT:
    case DUE__REPEAT:
    case DUE__ROUND:
        return true;
    case DUE__KICK: /* the limit of its time is part of the record */
        return front == NULL || (front->ttl_ns == 0 && front->expires_ns == 0);
    default:
        return false;
    }
}

static enum due_change_kind kind_of(const struct due_queue *q, const struct due__entry *e)
{
    if (removes((enum due__purpose)e->purpose))
        return DUE_CHANGE_DROP;
    if (due__stored_at(q->commits, e->number)->stored != DUE__IS_STORED)
        return DUE_CHANGE_PUT;
    if (e->purpose == DUE__BURY)
        return DUE_CHANGE_BURY;
    return moves(q, e) ? DUE_CHANGE_MOVE : DUE_CHANGE_PUT;
}

/* Its key, if it is the job's still; and what becomes of that by its removal. */
static void describe_key(struct due_queue *q, const struct due__entry *e, due_change *ch)
{
    const struct due__front *front = due__front_of(due__job_at(&q->slab, e->number));
    const struct due__key *key = front != NULL ? front->key : NULL;

    if (key == NULL)
        return;
    struct due__key_told told = due__key_tell(q, key);
    bool done = e->purpose == DUE__ACK || e->purpose == DUE__TAKE;
    if (!(ch->kind == DUE_CHANGE_DROP ? told.has_here : told.has))
        return;
    ch->record.key = key->bytes;
    ch->record.key_len = key->len;
    ch->record.keep_key_ns = key->term_ns;
    ch->was_kept = ch->kind == DUE_CHANGE_PUT && told.was_kept;
    if (done && told.has && key->term_ns > 0)
        ch->key_kept_ns = due__time_add(due__clock_now(&q->clock), key->term_ns);
}

/* What the store is to be told of entry @e. */
static due_change describe(struct due_queue *q, const struct due__entry *e)
{
    struct due__stored *s = due__stored_at(q->commits, e->number);
    const struct due__job *j = due__job_at(&q->slab, e->number);
    due_change ch = { .kind = kind_of(q, e),
                      .was_ns = s->was_ns,
                      .was_dead = e->purpose != DUE__PUT && s->was_ns == DUE__DEAD_THERE,
                      .record = { .id = due__stored_id(s) } };

    if (ch.was_dead)
        ch.was_ns = due__grave_at(q, e->number)->died_ns; /* N2 of grave.c: it has it still */
    describe_key(q, e, &ch);
    ch.record.until_ns = s->was_ns;
    if (e->purpose == DUE__PUT)
        ch.record.until_ns = due__load_relaxed(&j->deadline_ns); /* J1: it has no slot yet */
    if (e->purpose == DUE__MOVE || e->purpose == DUE__GIVE_BACK || e->purpose == DUE__KICK ||
        e->purpose == DUE__RETURN)
        ch.record.until_ns = s->want_ns;
    describe_put(q, e->number, content_of(q, e->number, e->draft), &ch.record);
    if (ch.record.until_ns == DUE__DEAD_THERE)
        ch.record.until_ns = ch.record.deadline_ns; /* of no meaning for the dead */
    if (e->purpose == DUE__NO_CHANGE && ch.was_dead)
        describe_grave(q, e->number, &ch.record); /* as it was there, whatever is on its way */
    describe_end(q, e, &ch.record);
    return ch;
}

/* The payload bytes of a change. */
static size_t bytes_of(const due_change *ch)
{
    return ch->kind == DUE_CHANGE_PUT ? ch->record.len : 0;
}

/* Of all entries, or of removals only.  After a loss more jobs are put whole than when it was
 * filled, so the last entries may have to be sent after the others. */
void due__batch_write(struct due_queue *q, struct due__batch *b)
{
    struct due__commits *c = q->commits;

    if (b->complete)
        return;
    if (!b->written) {
        due__kept_end(q, b, DUE_EAGAIN);
        b->send = b->upto = 0;
        b->send_bytes = 0;
    }
    for (; b->upto < b->count; b->upto++) {
        struct due__entry *e = &b->entries[b->upto];
        uint8_t stored = due__stored_at(c, e->number)->stored;

        if (removes((enum due__purpose)e->purpose) &&
            (stored == DUE__NOT_STORED || stored == DUE__TO_STORE))
            e->sent = false;
        if (!e->sent)
            continue;
        due_change ch = describe(q, e);
        if (b->send > 0 && b->send_bytes + bytes_of(&ch) > c->info.batch_bytes)
            break;
        b->send_bytes += bytes_of(&ch);
        b->changes[b->send++] = ch;
    }
    b->written = true;
}

void due__batch_complete(struct due_queue *q, struct due__batch *b)
{
    uint32_t before = b->send;

    if (b->complete)
        return;
    due__kept_write(q, b);
    b->complete = true;
    if (b->send > before)
        b->prepared = false;
}

void due__batch_unwrite(struct due__batch *b)
{
    b->written = b->complete = b->prepared = false;
}

bool due__batch_shrink(struct due__batch *b)
{
    bool some = false;
    bool rest = false;

    for (uint32_t i = 0; i < b->count; i++) {
        struct due__entry *e = &b->entries[i];

        if (e->sent && !removes((enum due__purpose)e->purpose)) {
            e->sent = false;
            e->rc = DUE_ENOSPC;
            some = true;
        }
        rest |= e->sent;
    }
    due__batch_unwrite(b);
    b->refused = true;
    return some && rest;
}

/* ---- After it ---- */

/* Under the timeline lock: what becomes of a job whose change has ended. */
static void apply_locked(struct due_queue *q, struct due__entry *e)
{
    struct due__stored *s = due__stored_at(q->commits, e->number);
    struct due__job *j = due__job_at(&q->slab, e->number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: claimed for the change */

    switch (e->purpose) {
    case DUE__PUT:
        if (e->rc == 0) {
            due__key_settled(q, e->number);
            due__sort_sent(q, e->number);
        } else {
            due__store_release(&j->word, (w & ~DUE__STATE_MASK) | DUE__LENT); /* J1 */
        }
        break;
    case DUE__MOVE:
        if (e->rc == 0 && (w & DUE__HELD))
            due__store_relaxed(&due__lease_at(q, e->number)->deadline_ns, s->want_ns); /* R1 */
        if (e->rc == 0)
            due__wait_again(q, e->number, due__gate_left(q, e->number, w), s->want_ns);
        break;
    case DUE__GIVE_BACK:
        if (e->rc == 0)
            due__given_back(q, e->number, w, s->want_ns);
        break;
    case DUE__BURY:
        if (e->rc == 0)
            due__bury_locked(q, e->number);
        break;
    case DUE__KICK:
        if (e->rc == 0)
            due__kick_locked(q, e->number, s->want_ns);
        break;
    case DUE__UPDATE:
        if (e->rc == 0)
            due__draft_apply(q, e->number, e->draft);
        break;
    case DUE__REPEAT:
        if (e->rc == 0)
            due__lease_answered(q);
        /* fall through */
    case DUE__ROUND:
        if (e->rc == 0 && (e->purpose == DUE__REPEAT || e->asked != NULL) &&
            !due__repeat_locked(q, e->number, s->was_ns))
            e->purpose = DUE__LEAVE;
        break;
    default:
        break;
    }
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
        due__leave(q, &t);
    }
}

/* What the store has after the batch. */
static void note(struct due__commits *c)
{
    const struct due__batch *b = c->now;
    uint32_t at = 0;

    for (uint32_t i = 0; i < b->count; i++) {
        const struct due__entry *e = &b->entries[i];
        struct due__stored *s = due__stored_at(c, e->number);

        if (e->rc != 0 && s->stored >= DUE__WAS_STORED)
            due__mirror_later(c, e->number);
        if (!e->sent && e->rc == 0) /* it was to be removed, and was not there */
            s->stored = DUE__NOT_STORED;
        if (!e->sent || e->rc != 0)
            continue;
        if (e->purpose == DUE__NO_CHANGE)
            due__add_relaxed(&c->mirrored, 1); /* no edge: a counter */
        const due_change *ch = &b->changes[at++];
        s->stored = ch->kind == DUE_CHANGE_DROP ? DUE__NOT_STORED : DUE__IS_STORED;
        s->was_ns = ch->record.cause != 0 ? DUE__DEAD_THERE : ch->record.until_ns;
    }
}

/* From here on a caller that leaves waits for the end, which is near. */
static void catch_asked(struct due__commits *c)
{
    struct due__batch *b = c->now;

    due__lock_acquire(&c->calls);
    for (uint32_t i = 0; i < b->count; i++) {
        struct due__entry *e = &b->entries[i];
        struct due__stored *s = due__stored_at(c, e->number);

        if (e->purpose == DUE__PUT) {
            e->asked = s->put_asked;
            s->put_asked = NULL;
        } else if (e->purpose != DUE__NO_CHANGE) {
            e->asked = s->asked;
            s->asked = NULL;
            s->rc = e->rc;
        }
    }
    due__lock_release(&c->calls);
}

/* Those who waited are told, to be rung after that. */
static uint32_t tell(struct due__commits *c)
{
    const struct due__batch *b = c->now;
    uint32_t rings = 0;
    uint32_t changes = 0;

    due__lock_acquire(&c->calls);
    for (uint32_t i = 0; i < b->count; i++) {
        const struct due__entry *e = &b->entries[i];

        if (e->purpose == DUE__NO_CHANGE)
            continue;
        changes++;
        answer(c, e->asked, e->number, e->rc, &rings);
    }
    settle(c, changes);
    rings = chain(c, rings);
    due__lock_release(&c->calls);
    return rings;
}

/* A job that was to be enqueued was refused, and is ours: as if it had never been.  If nobody waits
 * for the answer, it is discarded. */
static void end_refused(struct due_queue *q, const struct due__entry *e)
{
    struct due__job *j = due__job_at(&q->slab, e->number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */

    if (e->rc != DUE_EINDOUBT)
        due__key_undo(q, due__front_of(j));
    if (e->rc == DUE_EINDOUBT) {
        due__keep_stored(q, e->number);
    } else if (e->asked == NULL) {
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

/* A job that its caller had claimed before he left is to wait, or be leased, again. */
static void restore_claim(struct due_queue *q, const struct due__entry *e)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, e->number)->word); /* J1: ours */

    if (e->purpose == DUE__RETURN && e->rc != 0) {
        due__stored_at(q->commits, e->number)->stored = DUE__TO_STORE;
        due__mirror_later(q->commits, e->number);
    }
    if (e->purpose == DUE__UPDATE)
        due__draft_free(q, e->draft);
    bool dead = (w & DUE__HELD) && due__grave_is(q, e->number);
    if (e->purpose == DUE__BURY) {
        due__grave_at(q, e->number)->cause = 0;
        due__wait_later(q, e->number);
    } else if (dead) {
        due__bury_again(q, e->number);
    } else if (e->purpose == DUE__ACK || e->purpose == DUE__GIVE_BACK || e->purpose == DUE__REPEAT)
        due__lease_resume(q, e->number);
    else if (e->purpose == DUE__RETURN && e->rc != 0 &&
             due__load_seq(&q->commits->stopping)) /* G2 */
        due__discard(q, e->number, w);             /* nobody has it any more */
    else if (e->purpose == DUE__CANCEL && due__revoked(q, e->number))
        due__revoke_later(q, e->number);
    else
        due__unclaim(q, e->number, taken(e) || e->purpose == DUE__RETURN);
}

/* What follows a change that has landed, besides what was done under the lock. */
static void end_landed(struct due_queue *q, const struct due__entry *e)
{
    struct due__job *j = due__job_at(&q->slab, e->number);
    const struct due__stored *s = due__stored_at(q->commits, e->number);

    switch (e->purpose) {
    case DUE__TAKE: /* it has left the store for nobody: back to where it was */
        if (e->asked == NULL)
            due__commit_submit(q, e->number, DUE__RETURN, s->was_ns, NULL);
        break;
    case DUE__ROUND: /* likewise; the store has its next time already */
        if (e->asked == NULL)
            due__commit_submit(q, e->number, DUE__RETURN, due__load_relaxed(&j->deadline_ns),
                               NULL); /* J1: claimed */
        break;
    case DUE__LEAVE:
        due__keep_stored(q, e->number);
        if (due__load_seq(&q->state) & DUE__DRAINING) /* C2 of close.c */
            due__drained(q);
        break;
    case DUE__UPDATE:
        due__draft_free(q, e->draft);
        break;
    case DUE__ATTEMPT: /* likewise */
        if (e->asked == NULL)
            restore_claim(q, e);
        break;
    case DUE__RETURN:
        restore_claim(q, e);
        break;
    case DUE__BURY:
        due__buried(q);
        break;
    case DUE__LEND:
        if (e->asked == NULL)
            due__cancel_end(q, e->number);
        break;
    case DUE__CANCEL:
        due__cancel_end(q, e->number);
        break;
    case DUE__ACK:
        due__ack_end(q, e->number);
        break;
    case DUE__GIVE_BACK:
        due__lease_answered(q);
        break;
    case DUE__CLEAR: /* who waits discards it */
        if (e->asked == NULL)
            due__discard(q, e->number, due__load_relaxed(&j->word)); /* J1: claimed for it */
        break;
    default:
        break;
    }
}

/* What follows a change. */
static void follow(struct due_queue *q, const struct due__entry *e)
{
    if (e->purpose == DUE__NO_CHANGE)
        return;
    due_id id = due__stored_id(due__stored_at(q->commits, e->number));
    if (e->rc == 0)
        end_landed(q, e);
    else if (e->purpose == DUE__PUT)
        end_refused(q, e);
    else if (e->asked == NULL || (e->rc == DUE_EINDOUBT && !taken(e)))
        restore_claim(q, e);
    if (e->asked == NULL && e->purpose != DUE__RETURN && q->commits->on_settled != NULL)
        q->commits->on_settled(q->hooks.ctx, id, e->rc);
}

/* N4: the next batch was filled before it was known that jobs of the same calls were refused. */
static void refuse_next(struct due__commits *c)
{
    struct due__batch *b = c->next;

    due__lock_acquire(&c->calls);
    for (uint32_t i = 0; i < b->count; i++) {
        struct due__entry *e = &b->entries[i];
        const struct due__asked *a =
            e->purpose == DUE__PUT ? due__stored_at(c, e->number)->put_asked : NULL;

        if (a != NULL && a->rc != 0) {
            e->sent = false;
            e->rc = (int16_t)a->rc;
            b->refused = true;
        }
    }
    due__lock_release(&c->calls);
    due__batch_unwrite(b);
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
    c->pending = c->now->count > 0;
    c->flying = c->doubt = sent;
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
    due__kept_end(q, b, rc);
    b->count = n;
    note(c);
    catch_asked(c);
    due__landed(q);
    apply_all(q);
    for (uint32_t i = 0; i < n; i++)
        follow(q, &b->entries[i]);
    uint32_t rings = tell(c);
    due__ring_waiters(q, c->rings, rings);
    if ((rc != 0 || b->refused) && c->next->count > 0)
        refuse_next(c);
    memmove(b->entries, b->entries + n, left * sizeof *b->entries);
    b->count = left;
    if (left > 0) {
        due__batch_unwrite(b);
        due__batch_unwrite(c->next);
        c->pending = true;
        c->flying = c->doubt = false;
    } else {
        move_up(c, sent);
    }
    due__mirror_over(c);
}
