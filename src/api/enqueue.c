/* enqueue.c - putting jobs in: what is asked for is checked, and goes one of the ways.
 *
 * A place is had before the lock is tried, and with it room for the job's slot, so from there on
 * nothing can fail but the queue's being closed.  One job whose bytes fit into its place takes it
 * under the lock, from those at hand there: so it need not enter a shard.
 *
 * Edges      described elsewhere: E1, E2, E3 tenure.c, J1 slab.h
 */
#include "api/enqueue.h"

#include "api/enqueue_far.h"

#include <limits.h>
#include <string.h>

#include "job/enqueue_delegated.h"
#include "job/fresh.h"
#include "os/atomic.h"
#include "os/sized.h"
#include "queue/at_hand.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/inside.h"
#include "queue/place.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "queue/tenure.h"
#include "store/sender.h"

#define OTHER_SIZE 1 /* of a check: the struct is from another header */

static __attribute__((noinline)) int more_check(const due_extra *x)
{
    if (x->size != sizeof *x)
        return OTHER_SIZE;
    return due__extras_wrong(x) != NULL ? DUE_EINVAL : 0;
}

/* 0, an error or OTHER_SIZE. */
static inline int spec_check(const struct due_queue *q, const due_spec *s)
{
    if (!due__time_ok(s))
        return DUE_EINVAL;
    if (s->priority < 0 || s->priority > 255)
        return DUE_EINVAL;
    if (s->topic < 0 || (uint32_t)s->topic >= due__load_acquire(&q->topic_count)) /* T1 */
        return DUE_EINVAL;
    if (s->data != NULL ? s->ptr != NULL : s->len != 0)
        return DUE_EINVAL;
    if (s->ptr != NULL && q->commits != NULL)
        return DUE_EINVAL; /* it would mean nothing in the next process */
    if (s->len > q->payload_max)
        return DUE_ELIMIT;
    return s->more != NULL ? more_check(s->more) : 0;
}

/* Others' jobs are sorted in, as far as that can be now.  True: nothing is left there. */
static __attribute__((noinline)) bool drain_others(struct due_queue *q)
{
    return due__drain(q, q->proxies == DUE_PROXIES_NEVER ? UINT32_MAX : DUE__FOREIGN_MAX);
}

/* As submit_locked() of enqueue_some.c, of one job. */
static inline __attribute__((always_inline)) void place_one(struct due_queue *q,
                                                            const struct due__fresh *job,
                                                            int64_t now_ns)
{
    bool nothing = due__inbox_quiet(&q->inbox) && !due__inbox_late(&q->inbox); /* I2, I3 */

    if (!nothing && !drain_others(q)) {
        struct due__fresh left = *job; /* so that the other may be in registers */

        q->aside++;
        due__put_all(q, &left, 1);
        return;
    }
    if (now_ns != 0 && job->deadline_ns <= now_ns)
        due__move_due(q, now_ns); /* so that a job without delay goes straight to its topic */
    due__place_now(q, job, 0);
}

/* Nothing is done in the tenure that the caller has begun.  False. */
static __attribute__((noinline)) bool end_undone(struct due_queue *q)
{
    due__short_end(q);
    return false;
}

/* As enqueue_plain(), in the tenure that the caller has begun. */
static inline __attribute__((always_inline)) bool plain_locked(struct due_queue *q,
                                                               const due_spec *s, int64_t now_ns,
                                                               due_id *id)
{
    struct due__fresh job;

    if ((due__load_seq(&q->state) & DUE__REFUSING) || /* E3 */
        (q->place_count == 0 && !due__places_fetch(q)))
        return end_undone(q);
    uint32_t number = due__place_next(q);

    due__fill_plain(q, number, s, now_ns, &job);
    if (id != NULL) /* here, since what is not needed any more need not be kept */
        *id = due__id_made(q, number, job.generation);
    due__placed_count(q); /* C2 of closing.c: before anybody sees it */
    place_one(q, &job, now_ns);
    due__short_end(q);
    return true;
}

bool due__enqueue_locked(struct due_queue *q, const due_spec *s, due_id *id)
{
    return plain_locked(q, s, 0, id);
}

/* The plain way of one job, which its caller has checked: it brings a pointer or a few bytes, the
 * lock is free, a place is at hand there, and nobody has to be asked, told or waited for.
 * False: it is not so, or the queue closes; nothing was done. */
static inline __attribute__((always_inline)) bool enqueue_plain(struct due_queue *q,
                                                                const due_spec *s, due_id *id)
{
    if (!q->short_puts || due__forked(q))
        return false;
    int64_t now = due__timed(s) ? 0 : due__clock_now(&q->clock);
    if ((due__load_seq(&q->state) & DUE__ACTIVE) || /* E2 */
        !due__short_try(q))                         /* E1 */
        return false;
    return plain_locked(q, s, now, id);
}

/* With the lock: place plain jobs one after another, as long as there are places at hand.  How
 * many.  @now_ns: 0 unless one of them was given a delay. */
static size_t place_simple(struct due_queue *q, const due_spec *specs, size_t n, int64_t now_ns,
                           due_id *ids)
{
    struct due__fresh job;
    bool moved = now_ns == 0;
    size_t i;

    for (i = 0; i < n && (q->place_count > 0 || due__places_fetch(q)); i++) {
        uint32_t number = due__place_next(q);

        due__fill_plain(q, number, &specs[i], now_ns, &job);
        if (ids != NULL)
            ids[i] = due__id_made(q, number, job.generation);
        due__placed_count(q); /* C2 of closing.c: before anybody sees it */
        if (!moved && job.deadline_ns <= now_ns) {
            moved = true;
            due__move_due(q, now_ns); /* so that those without delay go straight to their topic */
        }
        due__place_now(q, &job, 0);
    }
    return i;
}

/* Up to DUE__AT_ONCE plain jobs in one tenure, as enqueue_plain().  How many; 0: it cannot be done
 * so now.  @timed: all of them have a time. */
static __attribute__((noinline)) size_t enqueue_simple(struct due_queue *q, const due_spec *specs,
                                                       size_t n, bool timed, due_id *ids)
{
    int64_t now = timed ? 0 : due__clock_now(&q->clock);
    if ((due__load_seq(&q->state) & DUE__ACTIVE) || /* E2 */
        !due__short_try(q))                         /* E1 */
        return 0;
    bool quiet = due__inbox_quiet(&q->inbox) && !due__inbox_late(&q->inbox); /* I2, I3 */
    size_t placed = 0;
    if (!(due__load_seq(&q->state) & DUE__REFUSING) && (quiet || drain_others(q))) /* E3 */
        placed = place_simple(q, specs, n < DUE__AT_ONCE ? n : DUE__AT_ONCE, now, ids);
    due__short_end(q);
    return placed;
}

/* Jobs were refused, or had no room. */
static int refused(struct due_queue *q, int rc)
{
    due__left(q, DUE__SOME);
    return rc;
}

/* As spec_check(), of all but the first @known. */
static inline __attribute__((always_inline)) int check(struct due_queue *q, const due_spec *specs,
                                                       size_t n, size_t known, int64_t timeout_ns)
{
    if (due__forked(q))
        return DUE_EFORK;
    if (timeout_ns < 0 || n == 0 || n > INT_MAX)
        return DUE_EINVAL;
    for (size_t i = known; i < n; i++) {
        int rc = specs[i].size == sizeof specs[i] ? spec_check(q, &specs[i]) : DUE_EINVAL;

        if (rc != 0)
            return rc;
    }
    if (due__load_seq(&q->state) & DUE__REFUSING) /* E3: looked at again after the job is in */
        return DUE_ECLOSED;
    return due__state_of(q);
}

/* Jobs described by structs of another size than ours, the specs all of the same: from another
 * header. */
static __attribute__((noinline)) int enqueue_resized(due_queue *q, const due_spec *specs, size_t n,
                                                     int64_t timeout_ns, due_id *ids)
{
    const unsigned char *at = (const unsigned char *)specs;
    size_t step = specs->size;
    int rc = 0;

    if (due__forked(q))
        return DUE_EFORK;
    if (n > INT_MAX)
        return DUE_EINVAL;
    size_t bytes = n * (sizeof(due_spec) + sizeof(due_extra));
    due_spec *same = due__alloc_raw(&q->alloc, bytes);
    if (same == NULL)
        return DUE_ENOMEM;
    due_extra *more = (due_extra *)(void *)(same + n);
    for (size_t i = 0; i < n && rc == 0; i++, at += step)
        rc = memcmp(at, &step, sizeof step) == 0 ? due__spec_read(&same[i], &more[i], at)
                                                 : DUE_EINVAL;
    if (rc == 0)
        rc = due_enqueue_batch(q, same, n, timeout_ns, ids);
    due__alloc_free(&q->alloc, same, bytes);
    return rc;
}

/* How long the call waits for the store.  Timeouts on a clock that is turned by hand are none for
 * that. */
static struct due__deadline deadline_of(const struct due_queue *q, int64_t timeout_ns)
{
    return (struct due__deadline){ .timeout_ns = q->clock.manual == NULL ? timeout_ns : 0 };
}

__attribute__((noinline)) int due__enqueue_checked(struct due_queue *q, const due_spec *spec,
                                                   int64_t timeout_ns, due_id *id)
{
    struct due__deadline by = deadline_of(q, timeout_ns);

    int rc = spec->size == sizeof *spec ? check(q, spec, 1, 0, timeout_ns) : OTHER_SIZE;
    if (rc == OTHER_SIZE) {
        rc = enqueue_resized(q, spec, 1, timeout_ns, id);
        return rc > 0 ? 0 : rc;
    }
    if (rc != 0)
        return rc;
    bool inside = due__inside_stored(q);
    if (due__spec_key(spec) != NULL)
        rc = due__enqueue_keyed(q, spec, timeout_ns, &by, id, &inside);
    else if (q->capacity > 0 || q->commits != NULL)
        rc = due__enqueue_new(q, spec, timeout_ns, &by, id, &inside);
    else
        rc = due__enqueue_one(q, spec, id);
    rc = rc > 0 ? 0 : refused(q, rc);
    due__inside_end(q, inside);
    return rc;
}

/* Is it a job for the plain way?  One that is wrong is not. */
static inline bool is_plain(const struct due_queue *q, const due_spec *s, int64_t timeout_ns)
{
    bool timed = due__timed(s);

    return s->size == sizeof *s && s->more == NULL && (s->delay_ns | s->at_ns | timeout_ns) >= 0 &&
           !(timed && s->delay_ns != 0) && s->flags <= DUE_SPEC_AT &&
           (unsigned)s->priority <= 255 &&
           (s->data != NULL ? s->ptr == NULL && s->len <= DUE__INLINE_BYTES : s->len == 0) &&
           (uint32_t)s->topic < due__load_acquire(&q->topic_count); /* T1 */
}

/* One that may. */
static __attribute__((noinline)) int enqueue_plainly(due_queue *q, const due_spec *spec,
                                                     int64_t timeout_ns, due_id *id)
{
    return enqueue_plain(q, spec, id) ? 0 : due__enqueue_checked(q, spec, timeout_ns, id);
}

int due_enqueue(due_queue *q, const due_spec *spec, int64_t timeout_ns, due_id *id)
{
    if (!is_plain(q, spec, timeout_ns))
        return due__enqueue_checked(q, spec, timeout_ns, id);
    if (spec->data != NULL || !due__quickly(q))
        return enqueue_plainly(q, spec, timeout_ns, id);
    uint64_t facts = due__pointer_facts((unsigned)spec->topic, (unsigned)spec->priority, spec->ptr);
    return due__timed(spec) ? due__enqueue_far(q, spec->at_ns, spec->ptr, id, facts)
                            : due__enqueue_delayed(q, spec->delay_ns, spec->ptr, id, facts);
}

/* How many of the jobs may go the plain way, up to the first that may not.  @timed: all of these
 * have a time. */
static inline size_t simple_ones(const struct due_queue *q, const due_spec *specs, size_t n,
                                 bool *timed)
{
    size_t i = 0;

    *timed = true;
    for (; q->short_puts && i < n && is_plain(q, &specs[i], 0); i++)
        *timed &= due__timed(&specs[i]);
    return i;
}

/* How many of the jobs have no key, up to the first that has. */
static size_t plain(const due_spec *specs, size_t n)
{
    size_t i = 0;

    while (i < n && due__spec_key(&specs[i]) == NULL)
        i++;
    return i;
}

int due_enqueue_batch(due_queue *q, const due_spec *specs, size_t n, int64_t timeout_ns,
                      due_id *ids)
{
    struct due__deadline by = deadline_of(q, timeout_ns);
    bool timed;
    size_t simple = simple_ones(q, specs, n, &timed);

    int rc = n == 0 || specs->size == sizeof *specs ? check(q, specs, n, simple, timeout_ns)
                                                    : OTHER_SIZE;
    bool alone =
        q->capacity > 0 || q->events != NULL || q->shared || due__loading(q); /* keys: apart */
    bool taken = alone; /* so is the next one */
    struct due__put put = { .over = false };
    size_t done = 0;

    if (rc == OTHER_SIZE)
        return enqueue_resized(q, specs, n, timeout_ns, ids);
    if (rc != 0)
        return rc;
    bool inside = due__inside_stored(q);
    while (rc >= 0 && !put.over && done < n) {
        const due_spec *next = specs + done;
        due_id *some_ids = ids != NULL ? ids + done : NULL;
        size_t placed = done < simple ? enqueue_simple(q, next, simple - done, timed, some_ids) : 0;

        if (placed > 0) {
            done += placed;
            continue;
        }
        size_t some = alone ? plain(next, n - done) : n - done;
        bool roomy = q->capacity == 0 && !q->shared;
        int64_t wait_ns = roomy || done == 0 ? timeout_ns : 0;

        if (taken && due__spec_key(next) != NULL)
            rc = due__enqueue_keyed(q, next, wait_ns, &by, some_ids, &inside);
        else if (roomy)
            rc = due__enqueue_any(q, next, some, &by, some_ids, &put);
        else
            rc = due__enqueue_room(q, next, some, wait_ns, &by, some_ids, &put, &inside);
        taken = rc == 0 || alone;
        done += rc > 0 ? (size_t)rc : 0;
    }
    if (rc < 0 || put.over)
        refused(q, rc);
    due__inside_end(q, inside);
    return done > 0 ? (int)done : rc;
}
