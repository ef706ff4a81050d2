/* timeline.h - all jobs with a deadline ahead, in exact order of their slots.
 *
 * Guard: the timeline lock, for every call.  No call allocates, reads a clock or waits, and none
 * but the renumbering looks at more than about DUE__TIMELINE_PIECE slots: longer work is done in
 * pieces, and `due__timeline_ready` says when the head is exact.
 */
#ifndef DUE__TIMELINE_H
#define DUE__TIMELINE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/alloc.h"
#include "mem/chunks.h"
#include "timeline/heap.h"
#include "timeline/rung.h"

#define DUE__TIMELINE_PIECE   4096u
#define DUE__TIMELINE_HEAP    2048u /* slots the heap has room for */
#define DUE__TIMELINE_RUNGS   40u
#define DUE__TIMELINE_FEW     4u   /* rungs among which an insert finds its own by half a key */
#define DUE__TIMELINE_RESERVE 128u /* chunks that inserts leave to splits */

/* The slot of a live job gets another arrival number (the counter is about to wrap). */
typedef void due__renumber_fn(void *ctx, struct due__slot old, struct due__slot renumbered);

/* Where a sweep stands. */
struct due__sweep {
    struct due__rung *rung; /* T */
    struct due__bag *bag;   /* T  NULL: between two bags */
    struct due__chunk *at;  /* T  last chunk swept; NULL: none in this bag */
    uint32_t bucket;        /* T */
    bool on;                /* T  a pass has begun */
};

/* First what each insert and each take looks at: a line and a half. */
struct due__timeline {
    struct due__slot *run;                       /* T  slots before the edge, in order, as loaded */
    uint32_t run_at;                             /* T  first that is left */
    uint32_t run_end;                            /* T */
    struct due__heap heap;                       /* T  every other slot before the edge */
    due__key edge;                               /* T */
    uint32_t rungs;                              /* T */
    uint32_t unsettled;                          /* T  rungs with a source still to be sorted */
    uint64_t closer_ns;                          /* T  up to here an insert looks closer */
    size_t count;                                /* T  slots held, dead ones included */
    struct due__rung *rung[DUE__TIMELINE_RUNGS]; /* T  farthest in time first; 0 has no end */
    due__key end[DUE__TIMELINE_RUNGS];           /* T  of each of them but 0; of others, 0 */
    uint32_t spares;                             /* T */
    struct due__rung *spare[DUE__TIMELINE_RUNGS]; /* T  rungs not in use */
    size_t owed;                                  /* T  chunks that splits under way may take */
    size_t looked;                                /* T  slots moved or looked at in pieces so far */
    struct due__slot refused;                     /* T  the last that was not inserted */
    struct due__sweep sweep;                      /* T */
    struct due__pool *pool;                       /* I */
    due__keep_fn *keep;                           /* I */
    const void *ctx;                              /* I */
    struct due__alloc *alloc;                     /* I */
    struct due__timeline_memory *memory;          /* I  the heap's array, the run, the rungs */
};

/* 0 or DUE_ENOMEM.  The pool must hold at least DUE__CHUNKS_AT_OPEN chunks. */
int due__timeline_init(struct due__timeline *tl, struct due__alloc *alloc, struct due__pool *pool,
                       due__keep_fn *keep, const void *ctx);
void due__timeline_destroy(struct due__timeline *tl);

/* What has become of a slot that was to be inserted. */
enum due__inserted {
    DUE__NOT_INSERTED,      /* the pool is used up: nothing was inserted, it is what was refused */
    DUE__INSERTED,          /* in front, or into a chunk that was begun; nothing else was done */
    DUE__INSERTED_OTHERWISE /* in any other way: there may be more chunks, or fewer */
};

enum due__inserted due__timeline_insert(struct due__timeline *tl, struct due__slot s);

/* At most one piece of what must be done before the head is exact.  True: the head is exact (or
 * the timeline is empty), until the next call but insert. */
bool due__timeline_ready(struct due__timeline *tl);

/* A slot that will be at the head in about @pops pops, if that can be told.  False: it cannot. */
static inline bool due__timeline_ahead(const struct due__timeline *tl, uint32_t pops,
                                       struct due__slot *out)
{
    if (tl->run_end - tl->run_at <= pops)
        return false;
    *out = tl->run[tl->run_at + pops];
    return true;
}

/* The slot that comes after the head, if both are in front.  False: it cannot be told. */
bool due__timeline_second(const struct due__timeline *tl, struct due__slot *out);

/* Slots held, dead ones included. */
static inline size_t due__timeline_count(const struct due__timeline *tl)
{
    return tl->count;
}

/* Slots before the edge. */
static inline size_t due__timeline_front(const struct due__timeline *tl)
{
    return tl->heap.count + tl->run_end - tl->run_at;
}

/* Is the head the first of the run, or the top of the heap?  Only with something in front. */
static inline bool due__timeline_in_run(const struct due__timeline *tl)
{
    return tl->run_at != tl->run_end &&
           (tl->heap.count == 0 || due__slot_before(tl->run[tl->run_at], tl->heap.slot[0]));
}

/* The head, which may be dead, until the next call that changes anything.  NULL: nothing is in
 * front. */
static inline const struct due__slot *due__timeline_first(const struct due__timeline *tl)
{
    const struct due__slot *first = tl->run + tl->run_at;

    if (tl->heap.count == 0)
        return tl->run_at != tl->run_end ? first : NULL;
    return due__timeline_in_run(tl) ? first : tl->heap.slot;
}

/* Only when ready.  The head may be dead.  False: the timeline is empty. */
static inline bool due__timeline_head(const struct due__timeline *tl, struct due__slot *out)
{
    const struct due__slot *first = due__timeline_first(tl);

    assert(first != NULL || tl->count == 0);
    if (first == NULL)
        return false;
    *out = *first;
    return true;
}

/* Takes the head out; only when ready, and not when empty. */
struct due__slot due__timeline_pop_working(struct due__timeline *tl);

/* The same of @first, which due__timeline_first() has just answered. */
static inline void due__timeline_pop_first(struct due__timeline *tl, const struct due__slot *first)
{
    if (tl->unsettled > 0 || first == tl->heap.slot) {
        due__timeline_pop_working(tl);
        return;
    }
    tl->count--;
    tl->run_at++;
}

static inline struct due__slot due__timeline_pop(struct due__timeline *tl)
{
    const struct due__slot *first = due__timeline_first(tl);
    struct due__slot head = *first;

    due__timeline_pop_first(tl, first);
    return head;
}

/* A deadline not later than the head's, also when not ready; INT64_MAX when empty.  The former:
 * with nothing in front. */
int64_t due__timeline_bound_behind(const struct due__timeline *tl);

static inline int64_t due__timeline_bound(const struct due__timeline *tl)
{
    const struct due__slot *first;

    if (tl->count == 0)
        return INT64_MAX;
    first = due__timeline_first(tl);
    return first != NULL ? due__slot_deadline(*first) : due__timeline_bound_behind(tl);
}

/* Ahead of need: sort about @budget slots.  True: nothing is pending. */
bool due__timeline_work(struct due__timeline *tl, size_t budget);

/* Drop dead slots, looking at about @budget (the front, up to DUE__TIMELINE_HEAP and a load, in
 * one step).  Adds to @dropped.  True: a whole pass is complete; what was dead when it began is
 * gone, but for what a full heap put back behind the pass.  Call ready afterwards. */
bool due__timeline_sweep(struct due__timeline *tl, size_t budget, size_t *dropped);

/* Give the live slots arrival numbers from @first on, in order; drops the dead ones.  Returns the
 * next free number.  Takes some 100 to 200 ns for each slot in one go, and no memory. */
uint32_t due__timeline_renumber(struct due__timeline *tl, uint32_t first, due__renumber_fn *fn,
                                void *ctx, size_t *dropped);

/* Between timeline.c and timeline_check.c: up to where an insert looks closer. */
uint64_t due__timeline_closer(const struct due__timeline *tl);

/* Between timeline.c and timeline_sweep.c: sort at most @budget slots of a split under way, how
 * many it were. */
size_t due__timeline_settle(struct due__timeline *tl, struct due__rung *r, size_t budget);

/* The slow way, for tests.  @chunks: how many the timeline holds. */
bool due__timeline_check(struct due__timeline *tl, size_t *chunks);

#endif
