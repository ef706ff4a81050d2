/* ready_line.h - the due jobs of one topic, in the topic's order.
 *
 * A line holds them all under the timeline lock.  In front of it stands a window: up to 64 slots
 * that takers empty by compare-and-swap, without the lock.  The window is always a prefix of the
 * topic's order.
 */
#ifndef DUE__READY_LINE_H
#define DUE__READY_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/chunks.h"
#include "mem/slot.h"
#include "os/atomic.h"
#include "timeline/bag.h"

/* ---- A line: guard T, the timeline lock, for every call ---- */

struct due__node; /* of a leftist heap, kept in chunks */

/* Where the nodes of all lines of a queue come from. */
struct due__nodes {
    struct due__pool *pool;    /* I */
    struct due__chunk *partly; /* T  chunks with free nodes */
};

struct due__line {
    struct due__chunk *head;  /* T  the run: slots that came in order, oldest chunk first */
    struct due__chunk *tail;  /* T */
    struct due__slot last;    /* T  the run's last slot */
    struct due__node *side;   /* T  those that came out of order: a leftist heap */
    struct due__node *swept;  /* T  what a sweep of the side has kept so far: another one */
    struct due__chunk *broom; /* T  the chunk before the next one to sweep; NULL: the first */
    size_t count;             /* T  slots, dead ones included */
};

/* The rare halves of the calls below: into a new chunk, or beside the run; from beside it; and the
 * first chunk of the run is used up. */
bool due__line_push_any(struct due__line *l, struct due__nodes *n, struct due__slot s);
struct due__slot due__line_pop_any(struct due__line *l, struct due__nodes *n);
void due__line_shorten(struct due__line *l, struct due__nodes *n);

/* False: the pool is used up, and nothing has changed. */
static inline bool due__line_push(struct due__line *l, struct due__nodes *n, struct due__slot s)
{
    struct due__chunk *c = l->tail;

    if (c == NULL || c->count == DUE__CHUNK_SLOTS || due__slot_before(s, l->last))
        return due__line_push_any(l, n, s);
    due__slot_store(&c->slot[c->count++], s);
    due__slot_store(&l->last, s);
    l->count++;
    return true;
}

/* The same for a line that may be one of very many: 40 bytes, in a chunk shared with others. */
bool due__line_push_aside(struct due__line *l, struct due__nodes *n, struct due__slot s);
/* @s stands before everything in the line. */
bool due__line_unpop(struct due__line *l, struct due__nodes *n, struct due__slot s);
bool due__line_first(const struct due__line *l, struct due__slot *s);

/* Only of one that is not empty. */
static inline struct due__slot due__line_pop(struct due__line *l, struct due__nodes *n)
{
    if (l->side != NULL || l->swept != NULL)
        return due__line_pop_any(l, n);
    struct due__chunk *c = l->head;
    struct due__slot s = c->slot[c->first++];

    l->count--;
    if (c->first == c->count)
        due__line_shorten(l, n);
    return s;
}

/* Drop dead slots, looking at about @budget.  True: a whole pass is complete. */
bool due__line_sweep(struct due__line *l, struct due__nodes *n, due__keep_fn *keep, const void *ctx,
                     size_t budget);

bool due__line_check(const struct due__line *l);

/* ---- A window ---- */

#define DUE__WINDOW_SLOTS 64u

struct due__window {
    _Alignas(8) uint64_t ends;                /* A  V1: tail 32 | head 32 */
    struct due__slot slot[DUE__WINDOW_SLOTS]; /* A  V1: relaxed halves, trusted after the swap */
};

/* Under the lock: slots published and not taken, and @n more behind them, for which there is room.
 */
static inline uint32_t due__window_count(const struct due__window *w)
{
    uint64_t now = due__load_acquire(&w->ends); /* V1 */

    return (uint32_t)(now >> 32) - (uint32_t)now;
}

void due__window_publish(struct due__window *w, const struct due__slot *slots, uint32_t n);

/* Under the lock: take all back, in order; answers how many. */
uint32_t due__window_recall(struct due__window *w, struct due__slot *slots);

/* Any thread: take up to @max from the front; answers how many. */
uint32_t due__window_take(struct due__window *w, struct due__slot *slots, uint32_t max);

static inline uint64_t due__window_ends(uint32_t head, uint32_t tail)
{
    return (uint64_t)tail << 32 | head;
}

static inline struct due__slot due__window_slot(const struct due__window *w, uint32_t n)
{
    const struct due__slot *at = &w->slot[n % DUE__WINDOW_SLOTS];

    return (struct due__slot){ .hi = due__load_relaxed(&at->hi),   /* V1 */
                               .lo = due__load_relaxed(&at->lo) }; /* V1 */
}

/* Any thread: take one.  @soon is the slot that will be taken after @ahead more, or @out: a guess.
 */
static inline bool due__window_pop(struct due__window *w, struct due__slot *out, uint32_t ahead,
                                   struct due__slot *soon)
{
    uint64_t now = due__load_acquire(&w->ends); /* V1 */
    uint32_t head, left;

    do {
        head = (uint32_t)now;
        left = (uint32_t)(now >> 32) - head;
        if (left == 0)
            return false;
        *out = due__window_slot(w, head);
    } while (!due__cas_acq_rel(&w->ends, &now, due__window_ends(head + 1, head + left))); /* V1 */
    *soon = left > ahead ? due__window_slot(w, head + ahead) : *out;
    return true;
}

#endif
