/* enqueue.c - putting jobs in: check, fill a place, submit.
 *
 * A place is had before the lock is tried, and with it room for the job's slot, so from there on
 * nothing can fail but the queue's being closed.
 *
 * Edges      described elsewhere: E1, E2, E3 core.c, J1 job.h
 */
#include "core.h"

#include <limits.h>
#include <string.h>

#include "atomic.h"

#define AT_ONCE 64u /* jobs submitted in one tenure */

static int spec_check(const struct due_queue *q, const due_spec *s)
{
    if (s->size != sizeof *s)
        return DUE_EINVAL;
    if (s->delay_ns < 0 || s->at_ns < 0 || (s->delay_ns != 0 && s->at_ns != 0))
        return DUE_EINVAL;
    if (s->priority < 0 || s->priority > 255)
        return DUE_EINVAL;
    if (s->topic < 0 || (uint32_t)s->topic >= due__load_acquire(&q->topic_count)) /* T1 */
        return DUE_EINVAL;
    if (s->data != NULL ? s->ptr != NULL : s->len != 0)
        return DUE_EINVAL;
    if (s->len > DUE_PAYLOAD_MAX)
        return DUE_ELIMIT;
    return 0;
}

/* Jobs that were cancelled in the inbox keep their places until they are taken out of it: before
 * the slab grows, see to that.  True: some were there. */
static bool help(struct due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    uint64_t before = q->delegated;
    due__drain(q, DUE__PROXY_BATCH, NULL);
    bool some = q->delegated != before;
    due__leave(q, &t);
    return some;
}

/* A free place that the caller owns: growing the slab until there is one. */
static int places_take(struct due_queue *q, uint32_t *number, size_t n, size_t *got)
{
    for (;;) {
        *got = due__slab_take(&q->slab, number, n);
        if (*got > 0)
            return 0;
        if (help(q))
            continue;
        int rc = due__grow(q);
        if (rc != 0)
            return rc;
    }
}

/* Fill the place @number.  It stays private to the caller until it is submitted. */
static int fill(struct due_queue *q, uint32_t number, const due_spec *s, int64_t now_ns)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */
    unsigned payload = DUE__BYTES_INLINE;

    if (s->data == NULL && s->ptr != NULL) {
        payload = DUE__POINTER;
        j->payload.ptr = s->ptr;
    } else if (s->len > DUE__INLINE_BYTES) {
        payload = DUE__BYTES_APART;
        j->payload.ptr = due__alloc_raw(&q->alloc, s->len);
        if (j->payload.ptr == NULL)
            return DUE_ENOMEM;
        memcpy(j->payload.ptr, s->data, s->len);
    } else if (s->len > 0) {
        memcpy(j->payload.bytes, s->data, s->len);
    }
    if (s->at_ns == 0 && s->delay_ns == 0)
        payload |= DUE__NOW;
    due__facts_store(j, (struct due__facts){ .len = (uint32_t)s->len,
                                             .topic = (uint16_t)s->topic,
                                             .priority = (uint8_t)s->priority,
                                             .payload = (uint8_t)payload });
    int64_t deadline = s->at_ns != 0 ? s->at_ns : due__time_add(now_ns, s->delay_ns);
    due__store_relaxed(&j->deadline_ns, deadline);                                    /* J1 */
    due__store_release(&j->word, due__word(due__word_generation(w), 0, DUE__FILLED)); /* J1 */
    return 0;
}

/* A place of the caller's whose job the queue did not accept: as if it had never been. */
static void refuse(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);

    due__job_release(&q->slab, j);
    due__slab_uncount(&q->slab, 1);
    due__place_done(q, number);
}

/* Leave a job in the inbox.  From here on it waits, and anybody may cancel it. */
static void put(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */

    w = (w & ~DUE__STATE_MASK) | DUE__WAITING | DUE__LINKED;
    due__store_release(&j->word, w);          /* J1 */
    due__inbox_put(&q->inbox, &j->link.node); /* E1 */
}

/* The queue closed after @n jobs were left in the inbox: take back what nobody has had yet, last
 * first.  What stands before one that was had is accepted; if no close will find it any more, it
 * is discarded here.  Answers how many were accepted. */
static size_t withdraw(struct due_queue *q, const uint32_t *number, const uint32_t *generation,
                       size_t n)
{
    struct due__tenure t;
    size_t accepted = n;
    uint64_t w;

    while (accepted > 0 && due__claim(q, number[accepted - 1], generation[accepted - 1], &w) == 0)
        refuse(q, number[--accepted]);
    /* E3: while draining they are still delivered. */
    bool closing = (due__load_seq(&q->state) & DUE__CLOSING) != 0;
    for (size_t i = 0; closing && i + 1 < accepted; i++) {
        if (due__claim(q, number[i], generation[i], &w) == 0)
            due__discard(q, number[i]);
    }
    due__enter(q, &t);
    due__drain(q, DUE__PROXY_BATCH, NULL);
    due__leave(q, &t);
    return accepted;
}

/* With the lock: sort the jobs in, unless others' stand before them that cannot be sorted in now.
 * Then they queue up behind those, and the look at the inbox when leaving takes it from there. */
static void submit_locked(struct due_queue *q, const uint32_t *number, size_t n, int64_t now_ns)
{
    uint32_t max = q->proxies == DUE_PROXIES_NEVER ? UINT32_MAX : DUE__FOREIGN_MAX;
    bool half;
    bool empty = due__drain(q, max, &half) && !half;

    if (empty)
        due__move_due(q, now_ns); /* so that a job without delay goes straight to its topic */
    for (size_t i = 0; i < n; i++) {
        if (empty)
            due__place(q, number[i]);
        else
            put(q, number[i]);
    }
}

/* Hand @n filled places to the queue.  Answers how many it accepted: all of them, unless it
 * closes; those it did not are gone. */
static size_t submit(struct due_queue *q, const uint32_t *number, const uint32_t *generation,
                     size_t n, int64_t now_ns)
{
    struct due__tenure t;
    uint32_t state = due__load_seq(&q->state); /* E2, E3 */

    if (!(state & DUE__ACTIVE) && due__try_enter(q, &t)) { /* E1 */
        state = due__load_seq(&q->state);                  /* E3 */
        if (!(state & DUE__REFUSING))
            submit_locked(q, number, n, now_ns);
        due__leave(q, &t);
        if (!(state & DUE__REFUSING))
            return n;
    }
    if (state & DUE__REFUSING) {
        for (size_t i = 0; i < n; i++)
            refuse(q, number[i]);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        put(q, number[i]); /* E1, E2, E3 */
    state = due__load_seq(&q->state);
    if (state & DUE__REFUSING) /* E3 */
        return withdraw(q, number, generation, n);
    if (q->proxies == DUE_PROXIES_ALWAYS) {
        due__bell_ring(&q->enqueue_bell);
    } else if (!(state & DUE__ACTIVE) && due__try_enter(q, &t)) { /* E1, E2 */
        due__drain(q, DUE__FOREIGN_MAX, NULL);
        due__leave(q, &t);
    }
    return n;
}

/* Up to AT_ONCE jobs for which there is room.  Answers how many were accepted, or an error. */
static int enqueue_some(struct due_queue *q, const due_spec *specs, size_t n, due_id *ids)
{
    uint32_t number[AT_ONCE];
    uint32_t generation[AT_ONCE];
    size_t got;
    size_t filled = 0;
    int64_t now = 0;
    int rc = places_take(q, number, n, &got);

    if (rc != 0)
        return rc;
    while (filled < got) {
        if (specs[filled].at_ns == 0 && now == 0)
            now = due__clock_now(&q->clock);
        rc = fill(q, number[filled], &specs[filled], now);
        if (rc != 0)
            break;
        struct due__job *j = due__job_at(&q->slab, number[filled]);
        generation[filled++] = due__word_generation(due__load_relaxed(&j->word)); /* J1: own */
    }
    for (size_t i = filled; i < got; i++)
        due__slab_untake(&q->slab, number[i]);
    if (filled == 0)
        return rc;
    size_t accepted = submit(q, number, generation, filled, now);
    for (size_t i = 0; ids != NULL && i < accepted; i++)
        ids[i] = due__id(q, number[i], generation[i]);
    return accepted > 0 ? (int)accepted : DUE_ECLOSED;
}

static int check(struct due_queue *q, const due_spec *specs, size_t n, int64_t timeout_ns)
{
    if (due__forked(q))
        return DUE_EFORK;
    if (timeout_ns < 0 || n == 0 || n > INT_MAX)
        return DUE_EINVAL;
    for (size_t i = 0; i < n; i++) {
        int rc = spec_check(q, &specs[i]);

        if (rc != 0)
            return rc;
    }
    if (due__load_seq(&q->state) & DUE__REFUSING) /* E3: looked at again after the job is in */
        return DUE_ECLOSED;
    return 0;
}

int due_enqueue_batch(due_queue *q, const due_spec *specs, size_t n, int64_t timeout_ns,
                      due_id *ids)
{
    int rc = check(q, specs, n, timeout_ns);
    size_t done = 0;

    while (rc == 0 && done < n) {
        size_t want = n - done < AT_ONCE ? n - done : AT_ONCE;

        if (q->capacity > 0) {
            rc = due__space_take(q, want, done == 0 ? timeout_ns : 0);
            if (rc < 0)
                break;
            want = (size_t)rc;
        }
        rc = enqueue_some(q, specs + done, want, ids != NULL ? ids + done : NULL);
        size_t accepted = rc > 0 ? (size_t)rc : 0;
        if (q->capacity > 0 && accepted < want)
            due__space_give(q, want - accepted);
        done += accepted;
        rc = rc > 0 ? 0 : rc;
    }
    if (done < n && (due__load_seq(&q->state) & DUE__DRAINING)) /* C2 of close.c */
        due__drained(q);
    return done > 0 ? (int)done : rc;
}

int due_enqueue(due_queue *q, const due_spec *spec, int64_t timeout_ns, due_id *id)
{
    int rc = due_enqueue_batch(q, spec, 1, timeout_ns, id);

    return rc < 0 ? rc : 0;
}
