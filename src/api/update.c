/* update.c - a waiting job is changed in place: its id stays.
 *
 * In memory the new block is made first.  How large it has to be depends on what the job has
 * already (headers, a limit of its own), and that may be looked at only by who owns the job.  So a
 * first look, under the lock, may find that another block is needed; then it is made, and the lock
 * is taken again.  In that tenure the job is MOVING: whoever wants it waits for the lock, so nobody
 * sees a half, and unless its time or priority changes the slot that stands for it stays.
 *
 * If more is to be kept than may be copied under the lock, and with a store, the job is claimed for
 * the change instead (CHANGING), and others are told that it is busy.  Who cancels it then marks it
 * (R3 of lease.c), and it leaves after the change; who enqueues with its key waits for that.
 *
 * Bytes that are lent to somebody whose lease has ended must stay as they are: DUE_EBUSY.
 *
 * Edges      described elsewhere: E3 tenure.c, J1 slab.h, R1 R2 lease.c
 */
#include "api/update.h"

#include <string.h>

#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/discard.h"
#include "job/draft.h"
#include "job/lease.h"
#include "job/reschedule.h"
#include "os/atomic.h"
#include "os/sized.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/inside.h"
#include "queue/job_records.h"
#include "queue/queue.h"

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
    uint16_t retry;           /* the number of more.retry */
    struct due__deadline *by; /* with a store */
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

static void set_numbers(struct due__extras *extras, const struct wish *wish)
{
    if (wish->what & DUE_SET_RETRY)
        extras->retry = wish->retry;
    if (wish->what & DUE_SET_LIMIT) {
        extras->ttl_ns = wish->more.ttl_ns;
        extras->expires_ns = wish->more.expires_ns;
    }
}

/* The rest: what the job, the caller's own, has and keeps. */
static void complete(const struct due__job *j, const struct wish *wish, const struct plan *p,
                     struct due__job *made)
{
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
        set_numbers(extras, wish);
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

/* ---- Under the lock ---- */

/* What keeps a job with word @w from being changed. */
static int obstacle(uint64_t w, uint32_t generation, const struct wish *wish)
{
    if (due__word_generation(w) != generation)
        return DUE_ENOENT;
    switch (due__word_state(w)) {
    case DUE__WAITING:
        return 0;
    case DUE__DEAD: /* when it would be handed out is not asked any more */
        return wish->what & (DUE_SET_TIME | DUE_SET_LIMIT) ? DUE_ENOENT : 0;
    case DUE__CLAIMED:
    case DUE__DEFERRED:
    case DUE__CHANGING:
    case DUE__LEASED:
        return DUE_EBUSY;
    default:
        return DUE_ENOENT;
    }
}

/* What keeps the content of the caller's own job from being exchanged. */
static int unfit(const struct due_queue *q, uint32_t number, uint64_t w, const struct wish *wish,
                 const struct plan *p)
{
    if ((wish->what & DUE_SET_DATA) && carries(due__job_at(&q->slab, number)))
        return DUE_EINVAL; /* what it carries would be lost */
    bool lent = (w & DUE__HELD) && due__load_seq(&due__lease_at(q, number)->holders) > 1; /* R2 */
    return p->anew && lent ? DUE_EBUSY : 0;
}

/* The job is MOVING, and everything fits: it becomes what it is to be. */
static void change(struct due_queue *q, uint32_t number, uint64_t w, const struct wish *wish,
                   const struct plan *p, struct due__job *made)
{
    struct due__job *j = due__job_at(&q->slab, number);
    struct due__facts f = due__facts_load(j);
    int64_t at = due__load_relaxed(&j->deadline_ns); /* J1 */

    if (p->anew) {
        complete(j, wish, p, made);
        due__draft_exchange(j, made);
    } else if (f.payload & DUE__EXTRAS) {
        set_numbers(due__extras_at(j), wish);
    }
    if (!p->anew && (wish->what & DUE_SET_PRIORITY)) {
        f.priority = (uint8_t)wish->s.priority;
        due__facts_store(j, f);
    }
    if (w & DUE__LINKED) /* no slot bears its stamp: who looks sees that something has changed */
        w = due__word_stamped(w, due__word_stamp(w) + 1);
    if (due__word_state(w) == DUE__DEAD || !(wish->what & (DUE_SET_TIME | DUE_SET_PRIORITY))) {
        due__word_set(&j->word, w); /* J1: its slot stays */
        return;
    }
    if (wish->what & DUE_SET_TIME) {
        at = wish->at_ns;
        if (w & DUE__HELD)
            due__store_relaxed(&due__lease_at(q, number)->deadline_ns, at); /* R1 */
        w = due__limiter_left(q, number, w);
    }
    due__replace(q, number, w, DUE__WAITING, at);
}

/* DUE_EAGAIN: not as planned; *p says how it is. */
static int rewrite_locked(struct due_queue *q, uint32_t number, uint32_t generation,
                          const struct wish *wish, struct plan *p, struct due__job *made)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */
    int rc;

    do {
        rc = obstacle(w, generation, wish);
        if (rc != 0)
            return rc;
    } while (!due__word_claim(&j->word, &w, DUE__MOVING)); /* J1 */
    struct plan now = plan_of(j, wish);
    rc = unfit(q, number, w, wish, &now);
    if (rc == 0 && !same(p, &now))
        rc = DUE_EAGAIN;
    if (rc == 0)
        change(q, number, w, wish, p, made);
    else
        due__word_set(&j->word, w); /* J1: nothing has changed */
    *p = now;
    return rc;
}

/* A tenure of its own. */
static int try_once(struct due_queue *q, uint32_t number, uint32_t generation,
                    const struct wish *wish, struct plan *p, struct due__job *made)
{
    struct due__tenure t;
    int rc = DUE_ECLOSED;

    due__enter(q, &t);
    if (!(due__load_seq(&q->state) & DUE__CLOSING)) { /* E3: whoever closes takes the lock after */
        int64_t now_ns = due__clock_now(&q->clock);

        due__drain_or_say(q, DUE__FOREIGN_MAX);
        due__move_due(q, now_ns);
        rc = rewrite_locked(q, number, generation, wish, p, made);
        due__move_due(q, now_ns);
    }
    due__tenure_end(q, &t);
    return rc;
}

/* ---- Claimed for it ---- */

/* Of a job of the caller's own.  DUE_ENOMEM, or what keeps it from being changed. */
static int draft_new(struct due_queue *q, uint32_t number, const struct wish *wish,
                     struct due__draft **draft)
{
    const struct due__job *j = due__job_at(&q->slab, number);
    struct plan p = plan_of(j, wish);

    p.anew = true;
    int rc = unfit(q, number, due__load_relaxed(&j->word), wish, &p); /* J1: the caller's own */
    if (rc != 0)
        return rc;
    struct due__draft *d = due__alloc_raw(&q->alloc, sizeof *d);
    if (d == NULL)
        return DUE_ENOMEM;
    *d = (struct due__draft){ .at_ns = wish->at_ns, .what = wish->what };
    if (!prepare(q, wish, &p, &d->made)) {
        due__alloc_free(&q->alloc, d, sizeof *d);
        return DUE_ENOMEM;
    }
    complete(j, wish, &p, &d->made);
    *draft = d;
    return 0;
}

/* If another is between the two looks, it is looked at anew. */
int due__own(struct due_queue *q, uint32_t number, uint32_t generation, bool lives,
             struct due__deadline *by)
{
    const struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w;
    int rc;
    do {
        w = due__load_acquire(&j->word); /* J1 */
        rc = due__claim_sent(q, number, generation, NULL, by);
        if (rc == DUE_ENOENT && !lives)
            rc = due__dead_claim_one(q, number, generation, NULL, DUE__CHANGING);
    } while (rc == DUE_ENOENT && due__word_generation(w) == generation &&
             due__load_acquire(&j->word) != w); /* J1 */
    return rc;
}

void due__disown(struct due_queue *q, uint32_t number)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */

    if ((w & DUE__HELD) && due__is_dying(q, number))
        due__bury_again(q, number);
    else
        due__unclaim(q, number, false);
}

static int rewrite_claimed(struct due_queue *q, uint32_t number, uint32_t generation,
                           const struct wish *wish)
{
    struct due__draft *d = NULL;
    bool lives = (wish->what & (DUE_SET_TIME | DUE_SET_LIMIT)) != 0;
    int rc = due__own(q, number, generation, lives, wish->by);

    if (rc != 0)
        return rc;
    if (due__load_seq(&q->state) & DUE__CLOSING) /* E3: the one who closes will find it again */
        rc = DUE_ECLOSED;
    if (rc == 0)
        rc = draft_new(q, number, wish, &d);
    if (rc == 0)
        rc = q->journal->change(q, number, DUE__UPDATE, (int64_t)(intptr_t)d, wish->by);
    if (rc == 0 || rc == DUE_EINDOUBT)
        return rc; /* whoever applies it has seen, or sees, to the rest */
    if (d != NULL)
        due__draft_free(q, d);
    due__disown(q, number);
    return rc;
}

/* ---- The verbs ---- */

/* What is asked for, by itself.  DUE_EINVAL, DUE_ELIMIT, DUE_ENOMEM. */
static int wish_make(struct due_queue *q, const due_spec *s, unsigned what, int64_t at_ns,
                     struct due__deadline *by, struct wish *wish)
{
    const due_extra none = { DUE_EXTRA_INIT };
    const due_extra *x = s->more != NULL ? s->more : &none;

    *wish = (struct wish){ .what = what, .at_ns = at_ns, .by = by };
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
    }
    int rc = due__extras_check(&wish->more);
    if (rc == 0 && wish->more.retry != NULL)
        rc = due__retry_number(q, wish->more.retry, &wish->retry);
    return rc;
}

/* In memory.  Who waits for its end looks again: he has seen it CHANGING under the lock, and under
 * the lock that ends before this. */
static int rewrite_large(struct due_queue *q, uint32_t number, uint32_t generation,
                         const struct wish *wish)
{
    due__inside_enter(q); /* C1 of inside.c */
    int rc = rewrite_claimed(q, number, generation, wish);
    due__quit_ring(q, &q->changing);
    due__inside_leave(q);
    return rc;
}

/* In memory, under the lock, unless too much is to be copied there. */
static int rewrite_in_place(struct due_queue *q, uint32_t number, uint32_t generation,
                            const struct wish *wish)
{
    struct plan p = guess(due__job_at(&q->slab, number), wish);
    struct due__job made;
    int rc;

    if (wish->what & (DUE_SET_TIME | DUE_SET_PRIORITY))
        due__drain_all(q); /* what the caller put in before stands before it */
    do {
        if (p.anew && !(wish->what & DUE_SET_DATA) && p.len > KEPT_UNDER_LOCK)
            return rewrite_large(q, number, generation, wish);
        if (!prepare(q, wish, &p, &made))
            return DUE_ENOMEM;
        rc = try_once(q, number, generation, wish, &p, &made);
        due__job_release(&q->slab, &made); /* what the job was, or what it was not to be */
    } while (rc == DUE_EAGAIN);
    return rc;
}

int due__rewrite(struct due_queue *q, uint32_t number, uint32_t generation, const due_spec *s,
                 unsigned what, int64_t at_ns, struct due__deadline *by)
{
    struct wish wish;

    if (what == 0 || (what & ~SET_ALL) != 0 || at_ns < 0)
        return DUE_EINVAL;
    int rc = wish_make(q, s, what, at_ns, by, &wish);
    if (rc != 0)
        return rc;
    due__lapse(q, number, by);
    if (q->commits == NULL)
        return rewrite_in_place(q, number, generation, &wish);
    if (what & DUE_SET_PRIORITY)
        return DUE_ENOTSUP; /* it is part of a stored job's id */
    if (what == DUE_SET_TIME)
        return due__reschedule_stored(q, number, generation, at_ns, by);
    return rewrite_claimed(q, number, generation, &wish);
}

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
    rc = due__id_find(q, id, &by, &number, &generation);
    int64_t at = s->at_ns;
    if (!due__timed(s) && (what & DUE_SET_TIME))
        at = due__time_add(due__clock_now(&q->clock), s->delay_ns);
    if (rc == 0)
        rc = due__rewrite(q, number, generation, s, what, at, &by);
    rc = due__named(q, rc);
    due__inside_end(q, inside);
    return rc;
}

int due_update(due_queue *q, due_id id, const void *data, size_t len)
{
    due_spec spec = { DUE_SPEC_INIT, .data = data, .len = len };

    return due_amend(q, id, &spec, DUE_SET_DATA);
}
