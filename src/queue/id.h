/* id.h - the names of jobs: which queue, which place, which use of the place.  Included by queue.h.
 */
#ifndef DUE__ID_H
#define DUE__ID_H

#include <string.h>

#include "queue/queue.h"

struct due__id_parts {
    uint64_t tag; /* O */
    uint64_t use; /* O  generation 32 | number 32 */
};

_Static_assert(sizeof(struct due__id_parts) == sizeof(due_id), "an id is its parts");

/* In a queue without a store; @use as in due__id_parts. */
static inline due_id due__id_of(const struct due_queue *q, uint64_t use)
{
    struct due__id_parts p = { .tag = q->tag, .use = use };
    due_id id;

    memcpy(&id, &p, sizeof id);
    return id;
}

static inline due_id due__id_made(const struct due_queue *q, uint32_t number, uint32_t generation)
{
    return due__id_of(q, (uint64_t)generation << 32 | number);
}

static inline due_id due__id(const struct due_queue *q, uint32_t number, uint32_t generation)
{
    return q->stored ? q->journal->id(q, number) : due__id_made(q, number, generation);
}

/* False: not an id of this queue, which has no store. */
static inline bool due__id_read_made(const struct due_queue *q, due_id id, uint32_t *number,
                                     uint32_t *generation)
{
    struct due__id_parts p;

    memcpy(&p, &id, sizeof p);
    *number = (uint32_t)p.use;
    *generation = (uint32_t)(p.use >> 32);
    return p.tag == q->tag && due__slab_has(&q->slab, *number);
}

/* False: not an id of this queue.  The place may hold another job by now. */
static inline bool due__id_read(struct due_queue *q, due_id id, uint32_t *number,
                                uint32_t *generation)
{
    if (q->stored)
        return q->journal->find(q, id, NULL, number, generation) == 0;
    return due__id_read_made(q, id, number, generation);
}

/* The same for who names a job: it may have to be looked for in the store.  DUE_ENOENT, or why that
 * cannot be told. */
static inline int due__id_find(struct due_queue *q, due_id id, struct due__deadline *by,
                               uint32_t *number, uint32_t *generation)
{
    if (q->stored)
        return q->journal->find(q, id, by, number, generation);
    return due__id_read(q, id, number, generation) ? 0 : DUE_ENOENT;
}

/* The store says that somebody holds the job (@rc): is that this process, which has claimed it
 * since the call looked for it here, for nobody so far?  Then the call is to be made again. */
static inline bool due__came_meanwhile(struct due_queue *q, due_id id, int rc)
{
    uint32_t number;
    uint32_t generation;

    if (rc != DUE_EBUSY || !q->shared || !due__id_read(q, id, &number, &generation))
        return false;
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */
    return due__word_generation(w) == generation && due__word_state(w) == DUE__WAITING;
}

#endif
