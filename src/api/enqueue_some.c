/* enqueue_some.c - jobs into a queue that has room for them: each has a place, is filled in, and is
 * submitted, to the queue or to its store.
 *
 * Edges      described elsewhere: E1, E2, E3 tenure.c
 */
#include "api/enqueue.h"

#include <string.h>

#include "job/enqueue_delegated.h"
#include "job/fresh.h"
#include "os/atomic.h"
#include "queue/at_hand.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/place.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "queue/tenure.h"
#include "store/sender.h"

#define ON_STACK 16u /* jobs for a store; for more memory is asked for */

static inline bool any_due(const struct due__fresh *jobs, size_t n, int64_t now_ns)
{
    bool any = false;

    for (size_t i = 0; i < n; i++)
        any |= jobs[i].deadline_ns <= now_ns;
    return any;
}

/* With the lock: sort the jobs in, unless others' stand before them that cannot be sorted in now.
 * Then they queue up behind those, and the look at the inbox when leaving takes it from there.
 * @now_ns: 0 unless one of them was given a delay. */
static inline __attribute__((always_inline)) void submit_locked(struct due_queue *q,
                                                                const struct due__fresh *jobs,
                                                                size_t n, int64_t now_ns)
{
    uint32_t max = q->proxies == DUE_PROXIES_NEVER ? UINT32_MAX : DUE__FOREIGN_MAX;
    bool empty = due__drain(q, max);

    if (empty && now_ns != 0 && any_due(jobs, n, now_ns))
        due__move_due(q, now_ns); /* so that a job without delay goes straight to its topic */
    if (!empty)
        due__put_all(q, jobs, n);
    for (size_t i = 0; empty && i < n; i++)
        due__place(q, &jobs[i]);
}

/* Hand @n filled places to the queue.  Answers how many it accepted: all of them, unless it
 * closes; those it did not are gone. */
static inline __attribute__((always_inline)) size_t submit(struct due_queue *q,
                                                           const struct due__fresh *jobs, size_t n,
                                                           int64_t now_ns)
{
    struct due__tenure t;
    uint32_t state = due__load_seq(&q->state); /* E2, E3 */

    if (!(state & DUE__ACTIVE) && due__try_enter(q, &t)) { /* E1 */
        state = due__load_seq(&q->state);                  /* E3 */
        if (!(state & DUE__REFUSING))
            submit_locked(q, jobs, n, now_ns);
        due__tenure_end(q, &t);
        if (!(state & DUE__REFUSING))
            return n;
    }
    if (state & DUE__REFUSING) {
        for (size_t i = 0; i < n; i++)
            due__refuse(q, &jobs[i], 0);
        return 0;
    }
    return due__submit_delegated(q, jobs, n);
}

/* Up to DUE__STORED_AT_ONCE jobs, and of large ones fewer, for they wait together for room on the
 * way there, into the store and then into the queue.  As enqueue_some(); those in doubt have their
 * ids too.  @jobs, @named: room for so many. */
static int enqueue_bulk(struct due_queue *q, const due_spec *specs, size_t n,
                        struct due__deadline *by, due_id *ids, struct due__put *put,
                        struct due__fresh *jobs, due_id *named)
{
    int64_t now = due__jobs_now(q);
    size_t filled = 0;
    uint64_t bytes = 0;
    int rc = 0;

    *put = (struct due__put){ .room = 0 };
    while (filled < n) {
        const due_spec *s = &specs[filled];
        uint32_t number;

        bytes += s->len;
        if (s->more != NULL)
            bytes += s->more->headers_len + s->more->key_len;
        if (filled > 0 && bytes > q->commits->unsettled_bytes_max)
            break;
        rc = due__place_take(q, &number);
        if (rc != 0)
            break;
        rc = due__fill_watched(q, number, s, now, &jobs[filled]);
        if (rc != 0) {
            due__slab_untake(&q->slab, number);
            due__left(q, 1);
            break;
        }
        jobs[filled].f.payload &= (uint8_t)~DUE__NOW; /* due as the store has it */
        filled++;
    }
    if (filled > 0)
        rc = due__commit_put(q, jobs, filled, by, named, put);
    if (ids != NULL)
        memcpy(ids, named, put->named * sizeof *ids);
    return rc;
}

/* The same; without memory for so many, some at a time. */
static int enqueue_stored(struct due_queue *q, const due_spec *specs, size_t n,
                          struct due__deadline *by, due_id *ids, struct due__put *put)
{
    size_t bytes = n * (sizeof(struct due__fresh) + sizeof(due_id));
    struct due__fresh few[ON_STACK];
    due_id few_named[ON_STACK];
    struct due__fresh *many = n > ON_STACK ? due__alloc_raw(&q->alloc, bytes) : NULL;

    if (many == NULL)
        return enqueue_bulk(q, specs, n < ON_STACK ? n : ON_STACK, by, ids, put, few, few_named);
    due_id *named = (due_id *)(void *)(many + n);
    int rc = enqueue_bulk(q, specs, n, by, ids, put, many, named);
    due__alloc_free(&q->alloc, many, bytes);
    return rc;
}

__attribute__((noinline)) int due__enqueue_one(struct due_queue *q, const due_spec *spec,
                                               due_id *id)
{
    struct due__fresh job;
    uint32_t number;
    size_t got;
    int64_t now = due__timed(spec) ? 0 : due__clock_now(&q->clock);
    int rc = due__places_take(q, &number, 1, &got);

    if (rc != 0)
        return rc;
    rc = due__fill_watched(q, number, spec, now, &job);
    if (rc != 0) {
        due__slab_untake(&q->slab, number);
        return rc;
    }
    if (q->events != NULL)
        due__events_enter(q, &job, 1, true);
    if (submit(q, &job, 1, now) == 0)
        return DUE_ECLOSED;
    if (id != NULL)
        *id = due__id(q, job.number, job.generation);
    return 1;
}

/* Up to DUE__AT_ONCE jobs.  Answers how many were accepted (0: the first one's key is not to be had
 * now), or an error. */
static int enqueue_some(struct due_queue *q, const due_spec *specs, size_t n, due_id *ids)
{
    struct due__fresh jobs[DUE__AT_ONCE];
    uint32_t number[DUE__AT_ONCE];
    size_t got;
    size_t filled = 0;
    bool keyed = false;
    int64_t now = 0;
    int rc = due__places_take(q, number, n, &got);

    if (rc != 0)
        return rc;
    while (filled < got) {
        if (!due__timed(&specs[filled]) && now == 0)
            now = due__clock_now(&q->clock);
        rc = due__fill_watched(q, number[filled], &specs[filled], now, &jobs[filled]);
        if (rc != 0)
            break;
        keyed |= due__spec_key(&specs[filled]) != NULL;
        filled++;
    }
    for (size_t i = filled; i < got; i++)
        due__slab_untake(&q->slab, number[i]);
    if (filled < got)
        due__left(q, got - filled);
    if (filled == 0)
        return rc;
    if (q->events != NULL)
        due__events_enter(q, jobs, filled, true);
    size_t accepted = keyed ? due__submit_keyed(q, jobs, filled) : submit(q, jobs, filled, now);
    for (size_t i = 0; ids != NULL && i < accepted; i++)
        ids[i] = due__id(q, jobs[i].number, jobs[i].generation);
    if (accepted == 0 && keyed && !(due__load_seq(&q->state) & DUE__REFUSING)) /* E3 */
        return 0;
    return accepted > 0 ? (int)accepted : DUE_ECLOSED;
}

__attribute__((noinline)) int due__enqueue_any(struct due_queue *q, const due_spec *specs, size_t n,
                                               struct due__deadline *by, due_id *ids,
                                               struct due__put *put)
{
    if (q->commits != NULL)
        return enqueue_stored(q, specs, n < DUE__STORED_AT_ONCE ? n : DUE__STORED_AT_ONCE, by, ids,
                              put);
    int rc = enqueue_some(q, specs, n < DUE__AT_ONCE ? n : DUE__AT_ONCE, ids);
    *put = (struct due__put){ .room = rc > 0 ? (size_t)rc : 0 };
    return rc;
}
