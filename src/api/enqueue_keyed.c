/* enqueue_keyed.c - enqueues with a unique key, and calls that name a job by its key.
 *
 * First the job is filled as any other.  Then, with the key's shard, the key is looked for and, if
 * it can be had, linked, and the job left in its inbox; so there is one step in which a job comes
 * in and has its key.  If the key is not to be had, the job is given up again, and what is to be
 * done depends on who has it:
 *
 *   who has the key                 DUE_KEY_REFUSE   the others
 *   kept, its job is done           DUE_EEXIST       DUE_EEXIST
 *   gone, and the store does not    as if it were    as if it were gone: new, or DUE_EEXIST
 *     know yet (DUE_CONFIRM_ASYNC)
 *   waits (delayed or ready)        DUE_EEXIST       that job is changed in place
 *   dead                            DUE_EEXIST       that job is changed, and waits again
 *   reserved, or on its way out     DUE_EEXIST       the new job takes the key over
 *   on its way to the store         DUE_EEXIST       wait for the store, and look again
 *   being changed by another call   DUE_EEXIST       wait for that, and look again
 *
 * A job whose bytes are still lent to somebody whose lease has ended cannot have others: it counts
 * as reserved then.
 *
 * A job is changed, or cancelled by its key, only if it has the key in the step that makes it the
 * caller's: between the look and that step it may have been reserved, lost its key to another job,
 * and been given back.
 *
 * Each step looks anew at what it finds, so whoever loses a race just looks again; every look finds
 * something later.
 *
 * Edges      described elsewhere: E3 tenure.c, G2 sender.c, J1 slab.h, K1 key_table.c, and of
 *            lease.c R1 R2
 */
#include "api/dequeue.h"
#include "api/enqueue.h"
#include "job/amend.h"
#include "job/cancel.h"
#include "job/dead_letter.h"
#include "job/draft.h"
#include "job/key_policy.h"
#include "job/key_table.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "os/siphash.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/inside.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "queue/stored.h"

/* Who has a key. */
struct holder {
    struct due__key_name name;
    due_id id;           /* */
    uint32_t number;     /* of a live job */
    uint32_t generation; /* */
    uint64_t news;       /* so many before the look: wait.c */
    bool live;           /* */
};

/* ---- With a shard of keys ---- */

static void describe(struct due_queue *q, const struct due__key *was, struct holder *h)
{
    h->live = was->place != 0 && !was->gone;
    if (was->place == 0) {
        h->id = was->of.id;
        return;
    }
    h->number = was->place - 1;
    h->generation = was->generation;
    h->id = due__id(q, h->number, h->generation);
}

/* Who has the key now, if anybody has. */
static enum due__finding look(struct due_queue *q, const void *bytes, size_t len, uint8_t on_key,
                              struct holder *h)
{
    struct due__keys *keys = due__load_acquire(&q->keys); /* K1 of key_table.c */

    *h = (struct holder){ .live = false };
    h->news = q->journal->news(q);
    if (keys == NULL)
        return DUE__KEY_TO_BE_HAD;
    uint64_t hash = due__siphash(keys->seed, bytes, len);
    h->name = (struct due__key_name){ bytes, len, hash };
    struct due__key_shard *shard = due__key_enter(keys, hash);
    struct due__key *was = due__key_find(shard, bytes, len, hash);
    enum due__finding found = due__key_judge(q, was, on_key);
    if (was != NULL)
        describe(q, was, h);
    due__key_leave(q, shard);
    return found;
}

/* ---- Changing the job that has the key ---- */

struct rekeyed {
    struct due__amendment a; /* first: it is what the journal knows of */
    const due_spec *s;
    struct due__draft *draft; /* its new content; NULL: that stays */
    struct due__deadline *by;
};

/* What the job is to become, as far as it does not depend on what it is.  DUE_ENOMEM. */
static int rekeyed_draft(struct due_queue *q, const struct holder *h, struct rekeyed *r)
{
    due_extra more = *r->s->more;
    due_spec content = *r->s;
    struct due__extras *extras;
    struct due__facts f = { .len = (uint32_t)content.len, .priority = (uint8_t)content.priority };

    more.group = NULL; /* the job's own stays */
    more.group_len = 0;
    content.more = &more;
    int rc = due__extras_new(q, &content, &extras);
    if (rc != 0)
        return rc;
    r->draft = due__alloc_new(&q->alloc, sizeof *r->draft);
    if (r->draft == NULL) {
        due__extras_drop(q, extras, content.len);
        return DUE_ENOMEM;
    }
    f.payload = (uint8_t)(DUE__EXTRAS | (content.ptr != NULL ? DUE__POINTER : DUE__BYTES_APART));
    r->draft->made.payload.ptr = extras;
    due__facts_store(&r->draft->made, f);
    r->draft->what = (unsigned)DUE_SET_TIME | DUE__SET_ANEW;
    r->draft->whole = true;
    r->draft->id = h->id;
    r->draft->keep_key_ns = more.keep_key_ns;
    return 0;
}

/* The draft has what stays. */
static void rekeyed_complete(const struct due_queue *q, const struct due__job *j,
                             struct due__draft *d)
{
    struct due__facts is = due__facts_load(j);
    struct due__facts f = due__facts_load(&d->made);

    f.topic = is.topic;
    if (q->journal->fixed_priority)
        f.priority = is.priority;
    due__facts_store(&d->made, f);
    due__extras_inherit(due__extras_at(&d->made), due__extras_at(j));
}

/* DUE__AGAIN: it counts as reserved.  One that stays as it is can only be confirmed by who may own
 * it still. */
static int rekeyed_decide(struct due_queue *q, struct due__amendment *a, uint64_t w, int64_t now_ns)
{
    struct rekeyed *r = (struct rekeyed *)(void *)a;
    const due_spec *s = r->s;
    const struct due__job *j = due__job_at(&q->slab, a->number);
    int64_t was = due__load_relaxed(&j->deadline_ns); /* J1: the caller's own */
    bool dead = (w & DUE__HELD) && due__is_dying(q, a->number);
    int64_t at = due__timed(s) ? s->at_ns : due__time_add(now_ns, s->delay_ns);

    if (r->draft != NULL && due__key_held_by_lease(q, a->number, w))
        return DUE__AGAIN;
    due__extras_at(j)->key->changed = true;
    if (!dead && s->more->on_key == DUE_KEY_EARLIEST && at >= was)
        return due__held_until(q, r->by);
    if (!dead && s->more->on_key == DUE_KEY_DEBOUNCE && at < was)
        at = was;
    a->purpose = dead ? DUE__REVIVE : DUE__MOVE;
    a->want_ns = at;
    if (r->draft == NULL)
        return 0;
    rekeyed_complete(q, j, r->draft);
    r->draft->at_ns = at;
    a->purpose = DUE__UPDATE;
    a->want_ns = (int64_t)(intptr_t)r->draft;
    return 0;
}

/* DUE__AGAIN: it is not as it was, or the key is another's. */
static int change(struct due_queue *q, const due_spec *s, const struct holder *h,
                  struct due__deadline *by)
{
    struct rekeyed r = { .a = { .number = h->number,
                                .generation = h->generation,
                                .name = &h->name,
                                .of = DUE__IF_WAITING | DUE__IF_DEAD,
                                .last = true,
                                .decide = rekeyed_decide },
                         .s = s,
                         .by = by };
    int rc = s->more->on_key != DUE_KEY_EARLIEST ? rekeyed_draft(q, h, &r) : 0;

    if (rc != 0)
        return rc;
    rc = q->journal->amend(q, &r.a, by);
    if (r.draft != NULL && rc != 0 && rc != DUE_EINDOUBT)
        due__draft_free(q, r.draft);
    return rc == DUE_ENOENT || rc == DUE_EBUSY ? DUE__AGAIN : rc;
}

/* ---- Enqueue ---- */

/* The job is put in as one that is new, in what is left of the call's time: as due__enqueue_new().
 * A call that may wait, and whose time has passed, still takes room that is there. */
static int put_new(struct due_queue *q, const due_spec *s, int64_t timeout_ns, int64_t until_ns,
                   struct due__deadline *by, due_id *id, bool *inside)
{
    if (timeout_ns == 0 || timeout_ns == DUE_FOREVER)
        return due__enqueue_new(q, s, timeout_ns, by, id, inside);
    int64_t now = due__timeout_now(q);
    if (until_ns > now)
        return due__enqueue_new(q, s, until_ns - now, by, id, inside);
    if (q->journal->takes_time)
        return DUE_ETIMEDOUT;
    int rc = due__enqueue_new(q, s, 0, by, id, inside);
    return rc == DUE_EAGAIN ? DUE_ETIMEDOUT : rc;
}

int due__enqueue_keyed(struct due_queue *q, const due_spec *s, int64_t timeout_ns,
                       struct due__deadline *by, due_id *id, bool *inside)
{
    const due_extra *x = s->more;
    int64_t until = 0;
    struct holder h;
    if (q->shared)
        return due__enqueue_shared_key(q, s, timeout_ns, by, id, inside);
    int rc = q->journal->loaded(q, by);

    if (rc == 0 && q->capacity == 0 && q->events == NULL) /* most keys are new */
        rc = due__enqueue_new(q, s, timeout_ns, by, id, inside);
    if (rc != 0)
        return rc;
    if (timeout_ns != 0)
        until = due__time_add(due__timeout_now(q), timeout_ns);
    for (;;) {
        switch (look(q, x->key, x->key_len, (uint8_t)x->on_key, &h)) {
        case DUE__KEY_TO_BE_HAD:
            rc = put_new(q, s, timeout_ns, until, by, id, inside);
            if (rc != 0)
                return rc;
            break;
        case DUE__KEY_TAKEN:
            if (id != NULL)
                *id = h.id;
            return DUE_EEXIST;
        case DUE__KEY_TO_CHANGE:
            rc = change(q, s, &h, by);
            if ((rc == 0 || rc == DUE_EINDOUBT) && id != NULL)
                *id = h.id;
            if (rc != DUE__AGAIN)
                return rc == 0 ? 1 : rc;
            break;
        case DUE__KEY_UNSETTLED:
            rc = q->journal->unsettled(q, h.number, h.generation, h.news, by, inside);
            if (rc != 0)
                return rc;
            break;
        case DUE__KEY_LAPSED:
            due__lapse(q, h.number, by);
            break;
        }
    }
}

/* ---- By key ---- */

static int find(struct due_queue *q, const void *key, size_t len, struct due__deadline *by,
                struct holder *h)
{
    if (len == 0 || len > DUE_KEY_MAX)
        return DUE_EINVAL;
    int rc = q->journal->loaded(q, by);
    if (rc != 0)
        return rc;
    if (look(q, key, len, DUE_KEY_REFUSE, h) != DUE__KEY_TAKEN || !h->live)
        return DUE_ENOENT;
    return 0;
}

int due_id_of_key(due_queue *q, const void *key, size_t len, due_id *id)
{
    struct due__deadline by = { 0 };
    struct holder h;

    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    if (due__in_store(q)) {
        int found = due__named(q, due__shared_id_of_key(q, key, len, &by, id));

        due__inside_end(q, inside);
        return found;
    }
    int rc = due__named(q, find(q, key, len, &by, &h));
    due__inside_end(q, inside);
    if (rc == 0)
        *id = h.id;
    return rc;
}

int due_cancel_key(due_queue *q, const void *key, size_t len, due_job *job)
{
    struct due__deadline by = { 0 };
    struct holder h;

    if (due__forked(q))
        return due__one_or_none(job, DUE_EFORK);
    bool inside = due__inside_stored(q);
    bool shared = due__in_store(q);
    int rc = shared ? due__shared_cancel_key(q, key, len, job, &by) : find(q, key, len, &by, &h);
    while (rc == 0 && !shared) {
        rc = due__cancel_any(q, h.number, h.generation, &h.name, job, &by);
        if (rc == 0)
            break;
        if (rc == DUE_ENOENT) /* it went meanwhile, or lost the key: is there another? */
            rc = find(q, key, len, &by, &h);
    }
    rc = due__named(q, rc);
    due__inside_end(q, inside);
    return due__one_or_none(job, rc);
}
