/* restore.c - jobs back from the store, and back into it when it has lost them, or may.
 *
 * Loading goes page by page under the key, between batches, while the queue serves already.  A job
 * that is known is passed over: a store may show one twice.
 *
 * The store may lose what it had confirmed (killed without a log, an old backup, a failover) while
 * the queue lives.  Then everything that the queue holds is put again, behind the changes that wait
 * or, where these fill every batch, in turns with them (batch.c); and then the store is read once
 * more, jobs and kept keys: what the queue does not know was removed before, and is dropped.
 *
 * A store may also say when it is opened that what it shows is right, but may not be after its next
 * start (put_again of due_store_info).  Then the same is done as soon as all has been read, though
 * nothing is lost.
 *
 * Guards     K  the key (sender.c)      O  its owner's alone      A  atomic, see Edges
 *
 * Edges      described elsewhere: G2 sender.c
 */
#include <string.h>

#include "job/dead_letter.h"
#include "job/fresh.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/capacity.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "store/retained_keys.h"
#include "store/sender.h"
#include "store/share.h"

#define PLACES 64u /* sorted in in one tenure */

/* ---- Loading ---- */

/* Jobs of a page that are filled and not yet sorted in. */
struct load_page {
    struct due_queue *q;             /* O */
    struct due__fresh fresh[PLACES]; /* O */
    bool held[PLACES];               /* O  it was reserved before */
    bool failed[PLACES];             /* O  it was nacked, and is to be tried again */
    bool dead[PLACES];               /* O */
    size_t n;                        /* O */
    size_t dropped;                  /* O  jobs that are not known any more */
};

/* A job that is dead, with a dead letter that is filled in. */
static void place_dead(struct due_queue *q, const struct due__fresh *it)
{
    due__dead_letter_count(q);
    due__facts_store(it->job, it->f);
    due__word_begin(&it->job->word, it->generation, 0, DUE__CLAIMED,
                    DUE__HELD); /* J1: unseen yet */
    due__count(q, it->number, DUE__F_DEAD, 1);
    due__bury_locked(q, it->number);
}

static void sort_in_page(struct load_page *p)
{
    struct due_queue *q = p->q;
    struct due__tenure t;

    if (p->n == 0)
        return;
    for (size_t i = 0; q->events != NULL && i < p->n; i++)
        due__events_restored(q, &p->fresh[i], p->held[i]);
    due__enter(q, &t);
    due__move_due(q, due__clock_now(&q->clock));
    int64_t due_ns = due__due_ns(q) > 0 ? due__due_ns(q) : 0; /* nothing may have left it yet */
    for (size_t i = 0; i < p->n; i++) {
        if (q->shared && p->fresh[i].deadline_ns > due_ns) /* due, says the store */
            p->fresh[i].deadline_ns = due_ns;
        if (p->dead[i])
            place_dead(q, &p->fresh[i]);
        else
            due__place_held(q, &p->fresh[i], p->held[i], p->failed[i]);
    }
    due__tenure_end(q, &t);
    due__add_relaxed(&q->commits->restored, p->n); /* no edge: a counter */
    p->n = 0;
}

/* A lease record for a job with a past, and room for the dead letter of a dead one. */
static int give_past(struct due_queue *q, uint32_t number, const due_record *r)
{
    if (!due__records_make(&q->leases, &q->alloc, number) ||
        (r->cause != 0 && !due__dead_letter_make(q, number)))
        return DUE_ENOMEM;
    struct due__lease *l = due__lease_at(q, number);
    due__past_begin(q, number, r->deadline_ns);    /* R1 of lease.c: the place is ours */
    due__store_relaxed(&l->attempts, r->attempts); /* R1 */
    due__store_relaxed(&l->failures, r->failures); /* R1 */
    return 0;
}

/* What to enqueue to have the job again; @more: what is rare of it. */
static due_spec spec_of(const due_record *r, int topic, const due_extra *more)
{
    return (due_spec){ DUE_SPEC_INIT,           .at_ns = r->until_ns, .flags = DUE_SPEC_AT,
                       .data = r->data,         .len = r->len,        .topic = topic,
                       .priority = r->priority, .more = more };
}

static due_extra extra_of(const due_record *r)
{
    return (
        due_extra){ DUE_EXTRA_INIT,     .headers = r->headers,     .headers_len = r->headers_len,
                    .retry = r->retry,  .ttl_ns = r->ttl_ns,       .expires_ns = r->expires_ns,
                    .key = r->key,      .key_len = r->key_len,     .keep_key_ns = r->keep_key_ns,
                    .group = r->group,  .group_len = r->group_len, .every_ns = r->every_ns,
                    .repeat = r->repeat };
}

/* A key is the job's, unless a later one has it. */
static void restore_key(struct due_queue *q, const struct due__fresh *it, due_id id)
{
    struct due__extras *extras = (it->f.payload & DUE__EXTRAS) ? due__extras_at(it->job) : NULL;

    if (extras == NULL || extras->key == NULL || q->shared)
        return;
    extras->key->place = it->number + 1;
    extras->key->generation = it->generation;
    due__key_restore(q, extras->key, id);
}

/* Fill the place @number from the record, and make it known. */
static int fill_place(struct load_page *p, uint32_t number, const due_record *r)
{
    struct due_queue *q = p->q;
    struct due__commits *c = q->commits;
    bool past = q->shared || r->attempts > 0 || r->failures > 0 || r->until_ns != r->deadline_ns ||
                r->cause != 0;
    int topic = due__topic_named(q, r->topic);
    due_extra more = extra_of(r);
    due_spec spec = spec_of(r, topic, &more);

    if (topic < 0)
        return topic;
    if (!due__records_make(&c->stored, &q->alloc, number))
        return DUE_ENOMEM;
    int rc = past ? give_past(q, number, r) : 0;
    if (rc == 0)
        rc = due__fill(q, number, &spec, &p->fresh[p->n]);
    if (rc != 0)
        return rc;
    struct due__stored *s = due__stored_at(c, number);
    due__stored_name(s, r->id);
    rc = due__index_add(&c->index, number, false);
    if (rc != 0) {
        due__job_release_fresh(q, &p->fresh[p->n]);
        return rc;
    }
    /* From here on nothing fails: a place that is given back must not be taken for a stored job, or
     * for a dead one. */
    s->stored = DUE__IS_STORED;
    s->was_ns = r->cause != 0 ? DUE__DEAD_THERE : r->until_ns;
    if (r->cause != 0)
        due__dead_letter_open(q, number, r->died_ns, r->cause, r->reason);
    restore_key(q, &p->fresh[p->n], r->id);
    p->held[p->n] = past;
    p->failed[p->n] =
        r->failures > 0 && r->until_ns != r->deadline_ns; /* else it was moved since */
    p->dead[p->n++] = r->cause != 0;
    return 0;
}

static bool sane(const due_record *r)
{
    due_extra more = extra_of(r);

    return r->until_ns >= 0 && r->deadline_ns >= 0 && r->priority >= 0 && r->priority <= 255 &&
           r->len <= DUE_PAYLOAD_MAX && (r->data != NULL || r->len == 0) && r->topic != NULL &&
           strlen(r->topic) <= DUE_TOPIC_LENGTH && r->cause <= DUE_CAUSE_EXPIRED &&
           r->died_ns >= 0 && due__extras_wrong(&more) == NULL;
}

/* The store shows a job. */
static int restore(void *ctx, const due_record *r)
{
    struct load_page *p = ctx;
    struct due_queue *q = p->q;
    uint32_t number;
    uint32_t generation;

    if (!sane(r))
        return DUE_ECORRUPT;
    if (due__index_find(&q->commits->index, r->id, &number, &generation))
        return 0;
    int rc = due__place_take(q, &number);
    if (rc != 0)
        return rc;
    rc = fill_place(p, number, r);
    if (rc != 0) {
        due__slab_untake(&q->slab, number);
        return rc == DUE_EBUSY ? 0 : rc;
    }
    if (q->capacity > 0 && r->cause == 0)
        due__capacity_force(q, 1);
    if (p->n == PLACES)
        sort_in_page(p);
    return 0;
}

/* ---- Claiming ---- */

/* Another place of ours had the job by an earlier claim: it has it no more. */
static void forget_hold(struct due_queue *q, due_id id)
{
    uint32_t number;
    uint32_t generation;

    if (!due__index_find(&q->commits->index, id, &number, &generation))
        return;
    if (due__records_has(&q->commits->share->holds, number))
        due__store_relaxed(&due__hold_at(q, number)->held, 0); /* X2 of share.c */
    due__index_remove(&q->commits->index, number);
}

/* Fill the place @number with what was claimed; a lease that nobody had answered for was a failure,
 * if it is known to have begun an attempt. */
static int fill_claimed(struct load_page *p, uint32_t number, const due_claimed *job)
{
    struct due_queue *q = p->q;
    struct due__sharing *sh = q->commits->share;
    due_record r = job->record;

    if (!due__records_make(&sh->holds, &q->alloc, number))
        return DUE_ENOMEM;
    if (job->lapsed_ns != 0 && r.attempts > r.failures)
        r.failures++;
    forget_hold(q, r.id);
    struct due__hold *h = due__hold_at(q, number);
    due__store_relaxed(&h->held, job->held); /* X2 of share.c */
    due__store_relaxed(&h->until_ns, due__time_add(sh->began_ns, sh->claim.lease_ns)); /* X2 */
    due__store_relaxed(&h->extending, 0); /* X1 of share.c: nobody has it yet */
    h->since_ns = due__sharing_clock(q);
    h->due_ns = job->lapsed_ns > r.until_ns ? job->lapsed_ns : r.until_ns;
    h->returns = h->robbed = false;
    h->polled = sh->claims_poll;
    return fill_place(p, number, &r);
}

/* Without memory for it, it comes again when its lease is over. */
int due__restore_claimed(void *queue, const due_claimed *job)
{
    struct due_queue *q = queue;
    struct load_page p = { .q = q };
    uint32_t number;

    if (!sane(&job->record) || job->record.cause != 0 || due__place_take(q, &number) != 0)
        return 0;
    if (fill_claimed(&p, number, job) != 0) {
        due__slab_untake(&q->slab, number);
        due__left(q, 1);
        return 0;
    }
    sort_in_page(&p);
    q->commits->share->placed++;
    return 0;
}

/* ---- Putting again, and deleting what is not known ---- */

/* Of one page, so that the batch of them is not in the way of others for long. */
static size_t drops_max(const struct due__commits *c)
{
    size_t most = c->info.batch_changes;

    return (most < DUE__PAGE_JOBS ? most : DUE__PAGE_JOBS) / 2 + 1;
}

/* The key of a job that is stored, if another one has taken it over and it is nobody's by now. */
static const struct due__key *given_up(struct due_queue *q, uint32_t number)
{
    const struct due__extras *extras = due__extras_of(due__job_at(&q->slab, number));
    const struct due__key *key = extras != NULL ? extras->key : NULL;

    if (key == NULL || due__stored_at(q->commits, number)->stored != DUE__IS_STORED)
        return NULL;
    struct due__key_told told = due__key_tell(q, key);
    return !told.has && told.free ? key : NULL;
}

/* The store shows a job of the queue's after a loss: what was lost may have been that its key was
 * taken over, and was free after that. */
static int purge_key(struct load_page *p, due_id id, uint32_t number)
{
    struct due__commits *c = p->q->commits;
    const struct due__key *key = c->lost ? given_up(p->q, number) : NULL;

    if (key == NULL)
        return 0;
    if (p->dropped == drops_max(c))
        return DUE_EAGAIN; /* it is shown again */
    key = due__retained_copy(p->q, c->now, key->bytes, key->len);
    if (key == NULL)
        return DUE_ENOMEM;
    c->now->changes[p->dropped++] =
        (due_change){ .kind = DUE_CHANGE_FORGET,
                      .record = { .id = id, .topic = "", .key = key->bytes, .key_len = key->len } };
    return 0;
}

/* The store shows a job after everything was put again: unknown ones are not the queue's.  A key
 * that leads to one is free with it. */
static int purge(void *ctx, const due_record *r)
{
    struct load_page *p = ctx;
    struct due__commits *c = p->q->commits;
    const struct due__key *key = NULL;
    uint32_t number;
    uint32_t generation;

    if (due__batch_names(c->now, p->dropped, r->id)) /* it was shown before: N2 of sender.c */
        return 0;
    if (due__index_find(&c->index, r->id, &number, &generation) &&
        due__stored_at(c, number)->stored != DUE__NOT_STORED)
        return purge_key(p, r->id, number); /* else somebody has the bytes of a removed one still */
    if (r->every_ns > 0 && (due__load_seq(&p->q->state) & DUE__DRAINING)) /* C2 of closing.c */
        return 0; /* it may have left the queue for its next round */
    if (p->dropped == drops_max(c))
        return DUE_EAGAIN; /* as above */
    const char *topic = due_topic_name(p->q, due__topic_named(p->q, r->topic));
    if (topic == NULL ||
        (r->key_len > 0 && (key = due__retained_copy(p->q, c->now, r->key, r->key_len)) == NULL))
        return DUE_ENOMEM;
    due_change *ch = &c->now->changes[p->dropped++];
    *ch = (due_change){ .kind = DUE_CHANGE_DROP,
                        .was_ns = r->cause != 0 ? r->died_ns : r->until_ns,
                        .was_dead = r->cause != 0,
                        .record = { .id = r->id, .topic = topic, .priority = r->priority } };
    if (key != NULL) {
        ch->record.key = key->bytes;
        ch->record.key_len = key->len;
    }
    return 0;
}

static void progress(struct due_queue *q, bool finished)
{
    struct due__commits *c = q->commits;

    if (c->on_restore != NULL)
        c->on_restore(c->restore_ctx, due__load_relaxed(&c->restored),
                      finished); /* no edge: ours */
}

/* Everything that the queue holds is to be put again.  A batch under way ends as it would, and what
 * it was about is put again after it. */
static void put_again(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    for (uint32_t i = 0; i < due__slab_end(&q->slab); i++) {
        if (!due__records_has(&c->stored, i))
            continue;
        struct due__stored *s = due__stored_at(c, i);
        if (s->stored == DUE__IS_STORED)
            s->stored = DUE__WAS_STORED;
    }
    due__store_seq(&c->lacking, 1); /* G2 */
    c->mirror_at = 0;
    due__retained_again(c);
    due__settings_again(c);
    due__reader_on(c, DUE__READER_AGAIN);
    c->purged = 0;
}

static void loaded(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    due__limiters_open(q);
    if (c->info.put_again) /* whoever sees that all is loaded sees that it is to be written again */
        due__store_seq(&c->lacking, 1); /* G2 */
    due__reader_on(c, DUE__READER_SHOWN);
    progress(q, true);
    due__submission_ring(c);
    due__left(q, DUE__SOME);
    if (!c->info.put_again)
        return;
    put_again(q);
    due__log(q, DUE_LOG_INFO, "%s: all jobs are written to the store again, to be sure", q->name);
}

/* What the store has answered to a page: it has begun, and what did not fit into the call goes on.
 */
static int page_shown(struct due__commits *c, int rc)
{
    if (rc >= 0 || rc == DUE_EAGAIN)
        c->rewind = false;
    return rc;
}

/* The store has shown all that is looked through, and nothing is left of what the queue does not
 * know. */
static void purged(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    due__reader_on(c, DUE__READER_SHOWN);
    if (due__reader_resyncs(c)) /* the kept keys are next */
        return;
    due__mirror_over(c);
    due__log(q, DUE_LOG_WARNING, "%s: the store has everything again; %llu old jobs dropped",
             q->name, (unsigned long long)c->purged);
}

/* More than was put meanwhile, which is shown too. */
static size_t page_size(const struct due__commits *c)
{
    size_t since = due__load_relaxed(&c->since_page); /* no edge: with the key */
    size_t most = (size_t)DUE__PAGE_AFTER + c->info.batch_changes;

    return DUE__PAGE_JOBS + 2 * (since < most ? since : most);
}

/* After a loss: one page more of what is to be dropped, which becomes the next batch. */
static int purge_page(struct due_queue *q, struct load_page *p, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    if (c->mirror_at != DUE__NO_JOB || c->sender != DUE__SENDER_IDLE)
        return 0;                                           /* first everything is put */
    if (due__load_seq(&c->reader) == DUE__READER_REWRITING) /* G2: ours */
        due__reader_on(c, DUE__READER_REWRITTEN);
    bool keys = due__load_seq(&c->reader) == DUE__READER_DELETING_KEYS; /* G2: ours */
    int rc = page_shown(
        c, keys ? due__retained_purge(q, drops_max(c), until_ns, &p->dropped)
                : c->store->verbs->load(c->store, c->rewind, page_size(c), purge, p, until_ns));
    if (rc == DUE_ELOST) {
        due__mirror_begin(q);
        return 0;
    }
    if (p->dropped > 0) {
        c->now->send = (uint32_t)p->dropped;
        c->now->count = c->now->upto = 0;
        c->now->last = rc == 0;
        c->now->drops = c->now->written = c->now->complete = true;
        due__sender_on(c, DUE__SENDER_FILL);
        return rc < 0 && rc != DUE_EAGAIN ? rc : 0;
    }
    if (rc == 0)
        purged(q);
    return rc < 0 ? rc : 0;
}

void due__purge_end(struct due_queue *q, int rc)
{
    struct due__commits *c = q->commits;

    c->now->drops = false;
    due__sender_on(c, DUE__SENDER_END);
    due__batch_unwrite(c->now);
    due__key_drop(q, c->now->keeping);
    c->now->keeping = NULL;
    c->rewind |= rc != 0; /* once more, when it can be had */
    c->later |= rc != 0;
    for (uint32_t i = 0; rc == 0 && i < c->now->send; i++)
        c->purged += c->now->changes[i].kind == DUE_CHANGE_DROP;
    if (rc == 0 && c->now->last)
        purged(q);
}

int due__restore_page(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct load_page p = { .q = q };

    if (!due__reader_loads(c))
        return purge_page(q, &p, until_ns);
    bool keys = due__load_seq(&c->reader) == DUE__READER_KEYS; /* G2: ours */
    int rc = page_shown(
        c, keys ? due__retained_load(q, until_ns)
                : c->store->verbs->load(c->store, c->rewind, page_size(c), restore, &p, until_ns));
    sort_in_page(&p);
    if (rc == DUE_ELOST) {
        due__mirror_begin(q);
        return 0;
    }
    progress(q, false);
    if (rc == 0 && keys)
        loaded(q);
    else if (rc == 0)
        due__reader_on(c, DUE__READER_SHOWN);
    return rc < 0 ? rc : 0;
}

int due__restore_one(struct due_queue *q, due_id id, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct load_page p = { .q = q };

    int rc = c->store->verbs->find(c->store, id, restore, &p, until_ns);
    sort_in_page(&p);
    if (rc == DUE_ELOST) {
        due__mirror_begin(q);
        rc = DUE_EAGAIN;
    }
    return rc;
}

void due__mirror_begin(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    c->lost = true;
    put_again(q);
    if (c->now->drops)
        due__purge_end(q, DUE_ELOST);
    due__settings_back(q);
    due__sender_on(c, DUE__SENDER_ANEW); /* what was in doubt has not landed */
    due__batch_unwrite(c->now);
    due__batch_unwrite(c->next);
    due__log(q, DUE_LOG_WARNING, "%s: the store has lost jobs; they are put again from memory",
             q->name);
}

void due__mirror_later(struct due__commits *c, uint32_t number)
{
    c->mirror_at = number < c->mirror_at ? number : c->mirror_at;
    c->later = true;
    due__store_seq(&c->lacking, 1); /* G2 */
}

void due__mirror_over(struct due__commits *c)
{
    if (!due__load_seq(&c->lacking) || c->mirror_at != DUE__NO_JOB ||
        due__reader_resyncs(c) || /* G2 */
        c->keep_shard < DUE__KEY_SHARDS || !due__settings_mended(c))
        return;
    due__store_seq(&c->lacking, 0); /* G2 */
    due__submission_ring(c);
}

uint32_t due__mirror_next(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    for (; c->mirror_at < due__slab_end(&q->slab); c->mirror_at++) {
        uint32_t number = c->mirror_at;

        if (!due__records_has(&c->stored, number) ||
            due__stored_at(c, number)->stored < DUE__WAS_STORED)
            continue;
        c->mirror_at++;
        return number;
    }
    c->mirror_at = DUE__NO_JOB;
    return DUE__NO_JOB;
}
