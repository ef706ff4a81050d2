/* update.c - a waiting job is changed in place: its id stays.
 *
 * The new content is made first, as a draft.  How large it has to be depends on what the job has
 * already (headers, a limit of its own), and that may be looked at only by who owns the job.  So a
 * first look, under the lock, may find that another block is needed; then it is made, and the lock
 * is taken again.  In that tenure the job is MOVING: whoever wants it waits for the lock, so nobody
 * sees a half, and unless its time or priority changes the slot that stands for it stays.
 *
 * If more is to be kept than may be copied under the lock, and where a change has to be sent, the
 * job is claimed for the change instead (CHANGING), and others are told that it is busy.  Who
 * cancels it then marks it (R3 of lease.c), and it leaves after the change; who enqueues with its
 * key waits for that.
 *
 * Bytes that are lent to somebody whose lease has ended must stay as they are: DUE_EBUSY.
 *
 * Edges      described elsewhere: J1 slab.h, R2 lease.c
 */
#include <string.h>

#include "api/reschedule.h"
#include "job/amend.h"
#include "job/draft.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "os/sized.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/inside.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "queue/stored.h"

#define KEPT_UNDER_LOCK ((size_t)64 << 10) /* bytes that are copied from block to block there */

#define SET_ALL                                                                                   \
    ((unsigned)DUE_SET_DATA | DUE_SET_HEADERS | DUE_SET_TIME | DUE_SET_PRIORITY | DUE_SET_RETRY | \
     DUE_SET_LIMIT)

/* What is asked for. */
struct wish {
    due_spec s;     /* only what is named in what */
    due_extra more; /* the same */
    unsigned what;
    int64_t at_ns;
    uint16_t retry; /* the number of more.retry */
};

/* What the job's content will be made of. */
struct plan {
    bool anew; /* a block, or the bytes in the place, are to be exchanged */
    bool extras;
    size_t headers_len;
    size_t len;
    size_t bytes; /* of the block; 0: none */
};

/* ---- Making the new content ---- */

static bool carries(const struct due__job *j)
{
    return (due__facts_load(j).payload & DUE__PAYLOAD_MASK) == DUE__POINTER;
}

/* For a job with the facts @f and the front @old, or without one. */
static struct plan plan_for(struct due__facts f, const struct due__extras *old,
                            const struct wish *wish)
{
    struct plan p = { .len = f.len, .headers_len = old != NULL ? old->headers_len : 0 };

    if (wish->what & DUE_SET_DATA)
        p.len = wish->s.len;
    if (wish->what & DUE_SET_HEADERS)
        p.headers_len = wish->more.headers_len;
    p.extras = old != NULL || p.headers_len > 0 || wish->retry != 0 || wish->more.ttl_ns != 0 ||
               wish->more.expires_ns != 0;
    p.anew = (wish->what & (DUE_SET_DATA | DUE_SET_HEADERS)) || p.extras != (old != NULL);
    if (p.extras)
        p.bytes = DUE__EXTRAS_BYTES + p.headers_len + p.len;
    else if (p.len > DUE__INLINE_BYTES)
        p.bytes = p.len;
    return p;
}

/* The job is the caller's own. */
static struct plan plan_of(const struct due__job *j, const struct wish *wish)
{
    return plan_for(due__facts_load(j), due__extras_of(j), wish);
}

/* Before the job may be looked at: as it probably is.  A front may come and go at any moment. */
static struct plan guess(const struct due__job *j, const struct wish *wish)
{
    struct due__facts f = due__facts_load(j);

    return f.payload & DUE__EXTRAS ? (struct plan){ .anew = false } : plan_for(f, NULL, wish);
}

static bool same(const struct plan *a, const struct plan *b)
{
    return a->anew == b->anew && a->extras == b->extras && a->headers_len == b->headers_len &&
           a->len == b->len && a->bytes == b->bytes;
}

/* Where the payload goes. */
static unsigned char *payload_of(struct due__job *made, const struct plan *p)
{
    if (p->extras)
        return due__extras_at(made)->bytes + p->headers_len;
    return p->bytes > 0 ? made->payload.ptr : made->payload.bytes;
}

/* The new content, with all that need not be looked up in the job.  False: no memory. */
static bool prepare(struct due_queue *q, const struct wish *wish, const struct plan *p,
                    struct due__job *made)
{
    unsigned kind = p->extras || p->bytes > 0 ? DUE__BYTES_APART : DUE__BYTES_INLINE;
    struct due__facts f = { .len = (uint32_t)p->len,
                            .payload = (uint8_t)(kind | (p->extras ? DUE__EXTRAS : 0)) };

    due__job_release(&q->slab, made);
    memset(made, 0, sizeof *made);
    if (!p->anew)
        return true;
    if (p->bytes > 0) {
        made->payload.ptr = due__payload_new(&q->slab.payloads, p->bytes);
        if (made->payload.ptr == NULL)
            return false;
    }
    due__facts_store(made, f);
    if (p->extras) {
        memset(due__extras_at(made), 0, DUE__EXTRAS_BYTES);
        due__extras_at(made)->headers_len = (uint16_t)p->headers_len;
    }
    if ((wish->what & DUE_SET_HEADERS) && p->headers_len > 0)
        memcpy(due__extras_at(made)->bytes, wish->more.headers, p->headers_len);
    if ((wish->what & DUE_SET_DATA) && p->len > 0)
        memcpy(payload_of(made, p), wish->s.data, p->len);
    return true;
}

/* The rest: what the job, the caller's own, has and keeps. */
static void complete(const struct due__job *j, const struct wish *wish, const struct plan *p,
                     struct due__draft *d)
{
    struct due__job *made = &d->made;
    struct due__facts old = due__facts_load(j);
    struct due__facts f = due__facts_load(made);

    if (p->extras) {
        struct due__extras *extras = due__extras_at(made);
        const struct due__extras *was = (old.payload & DUE__EXTRAS) ? due__extras_at(j) : NULL;

        if (was != NULL)
            memcpy(extras, was, DUE__EXTRAS_BYTES);
        extras->ptr = due__job_pointer(j, old);
        extras->headers_len = (uint16_t)p->headers_len;
        if (!(wish->what & DUE_SET_HEADERS) && p->headers_len > 0)
            memcpy(extras->bytes, was->bytes, p->headers_len);
        due__draft_numbers(d, extras);
    } else if (carries(j)) {
        made->payload.ptr = j->payload.ptr;
    }
    if (!(wish->what & DUE_SET_DATA) && p->len > 0)
        memcpy(payload_of(made, p), due__job_bytes(j, old), p->len);
    if (carries(j))
        f.payload = (uint8_t)((f.payload & ~DUE__PAYLOAD_MASK) | DUE__POINTER);
    f.topic = old.topic;
    f.priority = (wish->what & DUE_SET_PRIORITY) ? (uint8_t)wish->s.priority : old.priority;
    f.payload |= old.payload & DUE__NOW;
    due__facts_store(made, f);
}

/* ---- Changing the job ---- */

struct rewriting {
    struct due__amendment a; /* first: it is what the journal knows of */
    const struct wish *wish;
    struct plan p; /* what the draft was made for */
    struct due__draft *draft;
};

/* What keeps the content of the caller's own job from being exchanged. */
static int unfit(const struct due_queue *q, uint32_t number, uint64_t w, const struct wish *wish,
                 const struct plan *p)
{
    if ((wish->what & DUE_SET_DATA) && carries(due__job_at(&q->slab, number)))
        return DUE_EINVAL; /* what it carries would be lost */
    bool lent = (w & DUE__HELD) && due__load_seq(&due__lease_at(q, number)->holders) > 1; /* R2 */
    return p->anew && lent ? DUE_EBUSY : 0;
}

/* DUE__AGAIN: not as planned; the plan says how it is.  Without the lock it is made so at once, and
 * whole, since who writes it down has to know all of it. */
static int rewrite_decide(struct due_queue *q, struct due__amendment *a, uint64_t w, int64_t now_ns)
{
    struct rewriting *r = (struct rewriting *)(void *)a;
    const struct due__job *j = due__job_at(&q->slab, a->number);
    struct plan now = plan_of(j, r->wish);

    (void)now_ns;
    now.anew |= a->lengthy;
    int rc = unfit(q, a->number, w, r->wish, &now);
    if (rc != 0)
        return rc;
    bool planned = same(&r->p, &now);
    r->p = now;
    if (!planned && !a->lengthy)
        return DUE__AGAIN;
    if (!planned && !prepare(q, r->wish, &now, &r->draft->made))
        return DUE_ENOMEM;
    if (now.anew)
        complete(j, r->wish, &now, r->draft);
    r->draft->whole = now.anew;
    a->purpose = DUE__UPDATE;
    a->want_ns = (int64_t)(intptr_t)r->draft;
    return 0;
}

/* More is to be kept than may be copied under the lock: nothing is made ready before. */
static bool lengthy(struct rewriting *r)
{
    if (!r->p.anew || (r->wish->what & DUE_SET_DATA) || r->p.len <= KEPT_UNDER_LOCK)
        return false;
    r->p = (struct plan){ .anew = false };
    return true;
}

static int rewrite(struct due_queue *q, uint32_t number, uint32_t generation,
                   const struct wish *wish, struct due__deadline *by)
{
    bool lives = (wish->what & (DUE_SET_TIME | DUE_SET_LIMIT)) != 0;
    struct rewriting r = { .a = { .number = number,
                                  .generation = generation,
                                  .of = lives ? DUE__IF_WAITING : DUE__IF_WAITING | DUE__IF_DEAD,
                                  .last = (wish->what & (DUE_SET_TIME | DUE_SET_PRIORITY)) != 0,
                                  .decide = rewrite_decide },
                           .wish = wish,
                           .p = guess(due__job_at(&q->slab, number), wish),
                           .draft = due__alloc_new(&q->alloc, sizeof *r.draft) };
    int rc;

    if (r.draft == NULL)
        return DUE_ENOMEM;
    r.draft->what = wish->what;
    r.draft->at_ns = wish->at_ns;
    r.draft->ttl_ns = wish->more.ttl_ns;
    r.draft->expires_ns = wish->more.expires_ns;
    r.draft->retry = wish->retry;
    r.draft->priority = (uint8_t)wish->s.priority;
    due__lapse(q, number, by);
    do {
        r.a.lengthy = lengthy(&r);
        rc = prepare(q, wish, &r.p, &r.draft->made) ? q->journal->amend(q, &r.a, by) : DUE_ENOMEM;
    } while (rc == DUE__AGAIN);
    if (rc != 0 && rc != DUE_EINDOUBT)
        due__draft_free(q, r.draft);
    return rc;
}

/* ---- The verbs ---- */

/* What is asked for, by itself.  DUE_EINVAL, DUE_ELIMIT, DUE_ENOMEM. */
static int wish_make(struct due_queue *q, const due_spec *s, unsigned what, int64_t at_ns,
                     struct wish *wish)
{
    const due_extra none = { DUE_EXTRA_INIT };
    const due_extra *x = s->more != NULL ? s->more : &none;

    *wish = (struct wish){ .what = what, .at_ns = at_ns };
    if (what == 0 || (what & ~SET_ALL) != 0 || at_ns < 0)
        return DUE_EINVAL;
    if (what & DUE_SET_DATA) {
        wish->s.data = s->data;
        wish->s.len = s->len;
        if (s->ptr != NULL || (s->data == NULL && s->len != 0))
            return DUE_EINVAL;
        if (s->len > q->payload_max)
            return DUE_ELIMIT;
    }
    if (what & DUE_SET_HEADERS) {
        wish->more.headers = x->headers;
        wish->more.headers_len = x->headers_len;
    }
    if (what & DUE_SET_PRIORITY) {
        wish->s.priority = s->priority;
        if (s->priority < 0 || s->priority > 255)
            return DUE_EINVAL;
    }
    if (what & DUE_SET_RETRY)
        wish->more.retry = x->retry;
    if (what & DUE_SET_LIMIT) {
        wish->more.ttl_ns = x->ttl_ns;
        wish->more.expires_ns = x->expires_ns;
        due__store_relaxed(&q->reserves, 1); /* R3 of lease.c: who takes it may find it dead */
    }
    int rc = due__extras_wrong(&wish->more) != NULL ? DUE_EINVAL : 0;
    if (rc == 0 && wish->more.retry != NULL)
        rc = due__retry_number(q, wish->more.retry, &wish->retry);
    return rc;
}

static int amend(struct due_queue *q, uint32_t number, uint32_t generation, const due_spec *s,
                 unsigned what, int64_t at_ns, struct due__deadline *by)
{
    struct wish wish;
    int rc = wish_make(q, s, what, at_ns, &wish);

    if (rc != 0)
        return rc;
    if ((what & DUE_SET_PRIORITY) && q->journal->fixed_priority)
        return DUE_ENOTSUP;
    return what == DUE_SET_TIME ? due__reschedule(q, number, generation, at_ns, by)
                                : rewrite(q, number, generation, &wish, by);
}

/* ---- Of a shared queue ---- */

static int release_decide(struct due_queue *q, struct due__amendment *a, uint64_t w, int64_t now_ns)
{
    (void)q;
    (void)w;
    (void)now_ns;
    a->purpose = DUE__RELEASE;
    return 0;
}

int due__release_ahead(struct due_queue *q, uint32_t number, uint32_t generation,
                       struct due__deadline *by)
{
    struct due__amendment a = {
        .number = number, .generation = generation, .of = DUE__IF_WAITING, .decide = release_decide
    };
    int rc = q->journal->amend(q, &a, by);

    return rc == 0 ? DUE_ENOENT : rc;
}

static int amend_in_store(struct due_queue *q, due_id id, const due_spec *s, unsigned what,
                          int64_t at_ns, struct due__deadline *by)
{
    struct due__ask ask = { .kind = what == DUE_SET_TIME ? DUE__ASK_MOVE : DUE__ASK_AMEND,
                            .id = id,
                            .at_ns = at_ns,
                            .spec = s,
                            .what = what };
    struct wish wish;
    int rc = wish_make(q, s, what, at_ns, &wish); /* for what is wrong with it */

    if (rc == 0 && (what & DUE_SET_PRIORITY))
        rc = DUE_ENOTSUP;
    return rc == 0 ? q->journal->ask(q, &ask, by) : rc;
}

/* ---- The calls ---- */

int due_amend(due_queue *q, due_id id, const due_spec *spec, unsigned what)
{
    due_spec given;
    due_extra more;
    const due_spec *s = &given;
    struct due__deadline by = { 0 };
    uint32_t number;
    uint32_t generation;

    if (due__forked(q))
        return DUE_EFORK;
    int rc = due__spec_read(&given, &more, spec);
    if (rc != 0)
        return rc;
    if (!due__time_ok(s))
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    int64_t at = s->at_ns;
    if (!due__timed(s) && (what & DUE_SET_TIME))
        at = due__time_add(due__jobs_now(q), s->delay_ns);
    do {
        rc = due__id_find(q, id, &by, &number, &generation);
        if (rc == 0 && due__in_store(q) && what != DUE_SET_TIME)
            rc = due__release_ahead(q, number, generation, &by);
        if (rc == 0)
            rc = amend(q, number, generation, s, what, at, &by);
        if (!due__is_elsewhere(q, rc))
            break;
        rc = amend_in_store(q, id, s, what, at, &by);
    } while (due__came_meanwhile(q, id, rc));
    rc = due__named(q, rc);
    due__inside_end(q, inside);
    return rc;
}

int due_update(due_queue *q, due_id id, const void *data, size_t len)
{
    due_spec spec = { DUE_SPEC_INIT, .data = data, .len = len };

    return due_amend(q, id, &spec, DUE_SET_DATA);
}
