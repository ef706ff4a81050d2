/* encode.c - what a store is told of a job: one change of a batch.
 *
 * Guards     K  the key
 *
 * Edges      described elsewhere: J1 slab.h, R1 lease.c
 */
#include "job/dead_letter.h"
#include "job/draft.h"
#include "job/repeat.h"
#include "os/atomic.h"
#include "queue/extras.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "store/sender.h"
#include "store/share.h"

/* What a change is to say of the job: as it is or, with a draft, is to be. */
const struct due__job *due__content_of(const struct due_queue *q, uint32_t number,
                                       const struct due__draft *draft)
{
    return draft != NULL ? &draft->made : due__job_at(&q->slab, number);
}

/* What only some jobs have. */
static void describe_extras(struct due_queue *q, const struct due__job *j, due_record *r)
{
    const struct due__extras *extras = due__extras_of(j);

    if (extras == NULL)
        return;
    r->headers = extras->headers_len > 0 ? extras->bytes : NULL;
    r->headers_len = extras->headers_len;
    r->retry = due__retry_named(q, extras->retry);
    r->ttl_ns = extras->ttl_ns;
    r->expires_ns = extras->expires_ns;
    if (extras->limiter != NULL) {
        r->group = extras->limiter->name;
        r->group_len = extras->limiter->len;
    }
    r->every_ns = extras->every_ns;
    r->repeat = (enum due_repeat)extras->repeat;
}

/* Why it is dead.  A job that is comes into the store so also after a loss. */
static void describe_death(const struct due_queue *q, uint32_t number, due_record *r)
{
    const struct due__dead_letter *g = due__dead_letter_at(q, number);

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
    describe_extras(q, content, r);
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
    else if (due__is_dying(q, e->number))
        describe_death(q, e->number, r);
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
    case DUE__SNOOZE:
        r->attempts--;
        break;
    case DUE__ATTEMPT:
        r->attempts++;
        break;
    case DUE__BURY:
        describe_death(q, e->number, r);
        break;
    case DUE__REVIVE:
        r->deadline_ns = r->until_ns;
        /* fall through */
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
    const struct due__extras *extras = due__extras_of(due__job_at(&q->slab, e->number));

    switch (e->purpose) {
    case DUE__MOVE:
    case DUE__GIVE_BACK:
    case DUE__SNOOZE:
    case DUE__ATTEMPT:
    case DUE__REPEAT:
    case DUE__ROUND:
        return true;
    case DUE__KICK:
    case DUE__REVIVE: /* the limit of its time is part of the record */
        return extras == NULL || (extras->ttl_ns == 0 && extras->expires_ns == 0);
    default:
        return false;
    }
}

static enum due_change_kind kind_of(const struct due_queue *q, const struct due__entry *e)
{
    if (due__removes((enum due__purpose)e->purpose))
        return DUE_CHANGE_DROP;
    if (due__stored_at(q->commits, e->number)->stored != DUE__IS_STORED)
        return DUE_CHANGE_PUT;
    if (e->purpose == DUE__BURY)
        return DUE_CHANGE_BURY;
    return moves(q, e) ? DUE_CHANGE_MOVE : DUE_CHANGE_PUT;
}

/* Is the PUT of job @number in this batch, and to be sent? */
static bool will_put(const struct due__batch *b, uint32_t number)
{
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->entries[i].number == number && b->entries[i].purpose == DUE__PUT)
            return b->entries[i].sent;
    }
    return false;
}

/* A removal in @b is of a job whose key another one is taking over.  Does the store have that one
 * before the removal, or with it?  If not, because it comes later or is refused, the removal frees
 * the key.  If it is refused in the batch under way, the next one is written anew. */
static bool taken_by_then(const struct due_queue *q, const struct due__batch *b, uint32_t by)
{
    return will_put(b, by) || (b == q->commits->next && will_put(q->commits->now, by));
}

/* A job that is put whole is being robbed of its key by job @by.  Has it the key in the store until
 * that one comes there?  If not, and that one is refused, it would have it here and not there.  In
 * one batch the later of both has it. */
static bool has_meanwhile(const struct due_queue *q, const struct due__batch *b, uint32_t number,
                          uint32_t by)
{
    for (uint32_t i = 0; i < b->count && b->entries[i].number != number; i++) {
        if (b->entries[i].number == by && b->entries[i].purpose == DUE__PUT && b->entries[i].sent)
            return false;
    }
    return b != q->commits->next || !will_put(q->commits->now, by);
}

/* Its key, if it is the job's still; and what becomes of that by its removal.  One that is being
 * taken over is kept like any other: whoever takes it over may be refused yet.  One that was taken
 * over and is nobody's by now may be the job's again in a store that has lost that. */
static void describe_key(struct due_queue *q, const struct due__batch *b,
                         const struct due__entry *e, due_change *ch)
{
    const struct due__extras *extras = due__extras_of(due__job_at(&q->slab, e->number));
    const struct due__key *key = extras != NULL ? extras->key : NULL;

    if (key == NULL)
        return;
    if (q->shared) {
        due__sharing_describe_key(q, e, key, ch);
        return;
    }
    struct due__key_told told = due__key_tell(q, key);
    bool done = e->purpose == DUE__ACK || e->purpose == DUE__TAKE;
    bool drop = ch->kind == DUE_CHANGE_DROP;
    bool frees = told.by != 0 ? !taken_by_then(q, b, told.by - 1) : told.free && q->commits->lost;
    if (ch->kind == DUE_CHANGE_PUT && told.by != 0)
        told.has = has_meanwhile(q, b, e->number, told.by - 1);
    if (!told.has && !(drop && frees))
        return;
    ch->record.key = key->bytes;
    ch->record.key_len = key->len;
    bool anew = e->draft != NULL && (e->draft->what & DUE__SET_ANEW);
    ch->record.keep_key_ns = anew ? e->draft->keep_key_ns : key->term_ns;
    ch->was_kept = ch->kind == DUE_CHANGE_PUT && told.was_kept;
    if (done && (told.has || told.by != 0) && key->term_ns > 0)
        ch->key_kept_ns = due__time_add(due__clock_now(&q->clock), key->term_ns);
}

/* What the store is to be told of entry @e of @b. */
due_change due__describe(struct due_queue *q, const struct due__batch *b,
                         const struct due__entry *e)
{
    struct due__stored *s = due__stored_at(q->commits, e->number);
    const struct due__job *j = due__job_at(&q->slab, e->number);
    due_change ch = { .kind = kind_of(q, e),
                      .is_new = e->purpose == DUE__PUT,
                      .was_ns = s->was_ns,
                      .was_dead = e->purpose != DUE__PUT && s->was_ns == DUE__DEAD_THERE,
                      .record = { .id = due__stored_id(s) } };

    if (ch.was_dead)
        ch.was_ns =
            due__dead_letter_at(q, e->number)->died_ns; /* N2 of dead_letter.c: it has it still */
    describe_key(q, b, e, &ch);
    ch.record.until_ns = s->was_ns;
    if (e->purpose == DUE__PUT)
        ch.record.until_ns = due__load_relaxed(&j->deadline_ns); /* J1: it has no slot yet */
    if (e->purpose == DUE__MOVE || e->purpose == DUE__GIVE_BACK || e->purpose == DUE__SNOOZE ||
        e->purpose == DUE__KICK || e->purpose == DUE__REVIVE || e->purpose == DUE__RETURN)
        ch.record.until_ns = s->want_ns;
    bool kept = ch.record.until_ns == s->was_ns;
    describe_put(q, e->number, due__content_of(q, e->number, e->draft), &ch.record);
    if (kept && s->stored == DUE__ROUND_LATE) /* and this round was due already */
        ch.record.until_ns = ch.record.deadline_ns;
    if (ch.record.until_ns == DUE__DEAD_THERE)
        ch.record.until_ns = ch.record.deadline_ns; /* of no meaning for the dead */
    if (e->purpose == DUE__NO_CHANGE && ch.was_dead)
        describe_death(q, e->number, &ch.record); /* as it was there, whatever is on its way */
    describe_end(q, e, &ch.record);
    if (q->shared)
        due__sharing_describe(q, e, &ch);
    return ch;
}
