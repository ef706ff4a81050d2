/* word.h - the word of a job: what it says, and the only operations that change it.
 *
 *   generation 32 | stamp 24 | flags 4 | state 4
 *
 * Who may change a word, and into what, is a table (due__word_may(), in word.c), which is looked up
 * at each change where asserts are compiled.  There are two ways to change one: whoever wants a job
 * that may be anybody's swaps the whole word, and exactly one swap wins; who has claimed the job
 * stores, since nobody else changes the word of a job that is CLAIMED, CHANGING, DEFERRED, MOVING
 * or its enqueuer's alone.
 *
 * Edges      described elsewhere: J1 slab.c
 */
#ifndef DUE__WORD_H
#define DUE__WORD_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/atomic.h"

enum due__state {
    DUE__FREE = 0,      /* in no use, or filled by an enqueuer whose alone it still is */
    DUE__WAITING = 1,   /* delayed or ready: anybody may take, cancel or reschedule it */
    DUE__MOVING = 2,    /* its deadline is being changed, under the timeline lock */
    DUE__LEASED = 3,    /* reserved: it stands in the timeline until the lease ends */
    DUE__CLAIMED = 4,   /* handed out or cancelled: its bytes are with a caller */
    DUE__DEAD = 5,      /* it stands in the timeline until it is to be discarded */
    DUE__DONE = 6,      /* done with, but the inbox still holds its node */
    DUE__SENT = 8,      /* enqueued, on its way to the store: nobody can have it before that ends */
    DUE__DEFERRED = 10, /* as CLAIMED, to a pool: its lease is only promised (deferred_lease.c) */
    DUE__CHANGING = 12  /* as CLAIMED, but for a change, after which it waits, or is dead, again */
};

#define DUE__SLOTTED UINT64_C(1) /* the bit of the states in which a slot stands for the job */

#define DUE__STATES     16u
#define DUE__STATE_MASK UINT64_C(0x0f)
#define DUE__LINKED     UINT64_C(0x10) /* the job's node is in the inbox */
#define DUE__READY      UINT64_C(0x20) /* its slot is in a topic's line */
#define DUE__HELD       UINT64_C(0x40) /* it was reserved: see its lease (records.h) */
#define DUE__PASSED     UINT64_C(0x80) /* it has a pass of a limiter: see limit.h */
#define DUE__FLAGS      UINT64_C(0xf0)
#define DUE__STAMP_BITS 24
#define DUE__STAMP_MASK ((UINT64_C(1) << DUE__STAMP_BITS) - 1)

static inline uint64_t due__word(uint32_t generation, uint32_t stamp, uint64_t flags_and_state)
{
    return (uint64_t)generation << 32 | (stamp & DUE__STAMP_MASK) << 8 | flags_and_state;
}

static inline uint32_t due__word_generation(uint64_t w)
{
    return (uint32_t)(w >> 32);
}

static inline uint32_t due__word_stamp(uint64_t w)
{
    return (uint32_t)(w >> 8 & DUE__STAMP_MASK);
}

static inline enum due__state due__word_state(uint64_t w)
{
    return (enum due__state)(w & DUE__STATE_MASK);
}

/* The word @w in another state; with another stamp. */
static inline uint64_t due__word_as(uint64_t w, enum due__state state)
{
    return (w & ~DUE__STATE_MASK) | state;
}

static inline uint64_t due__word_stamped(uint64_t w, uint32_t stamp)
{
    return due__word(due__word_generation(w), stamp, w & (DUE__STATE_MASK | DUE__FLAGS));
}

/* ---- What may become of it ---- */

/* Of a change from one state to another: that it exists, and what else of the word it may change.
 * A flag that may be set stands at its own place, one that may be cleared four bits higher. */
#define DUE__MAY        0x1u                               /* it exists */
#define DUE__RESTAMPS   0x2u                               /* the stamp may become another */
#define DUE__RENEWS     0x4u                               /* the generation grows by one */
#define DUE__SETS(f)    ((unsigned)(f))                    /* these flags may be set */
#define DUE__CLEARS(f)  ((unsigned)(f) << DUE__STATE_BITS) /* these may be cleared */
#define DUE__STATE_BITS 4

extern const uint16_t due__word_allowed[DUE__STATES][DUE__STATES];

/* What a change from @from to @to changes, in the terms of the table. */
static inline unsigned due__word_change(uint64_t from, uint64_t to)
{
    unsigned change = DUE__MAY;

    change |= due__word_generation(from) != due__word_generation(to) ? DUE__RENEWS : 0;
    change |= due__word_stamp(from) != due__word_stamp(to) ? DUE__RESTAMPS : 0;
    return change | DUE__SETS(to & ~from & DUE__FLAGS) | DUE__CLEARS(from & ~to & DUE__FLAGS);
}

/* May a job's word become @to when it is @from? */
bool due__word_may(uint64_t from, uint64_t to);

#ifdef DUE__EXPLORE
/* The explorer looks at each change, and which of the allowed ones there were. */
void due__word_moves(uint64_t from, uint64_t to);
uint64_t due__word_peek(const uint64_t *word); /* without a step */
#else
static inline void due__word_moves(uint64_t from, uint64_t to)
{
    (void)from;
    (void)to;
    assert(due__word_may(from, to));
}

static inline uint64_t due__word_peek(const uint64_t *word)
{
    return due__load_relaxed(word); /* J1: the caller's own */
}
#endif

/* ---- Swaps, of a word that may be anybody's ----
 *
 * True: it was *@w, which stays as it is.  False: *@w is what it is now. */

static inline bool due__word_swap(uint64_t *word, uint64_t *w, uint64_t to)
{
    bool done = due__cas_acq_rel(word, w, to); /* J1 */

    if (done)
        due__word_moves(*w, to);
    return done;
}

/* The job becomes the caller's: CLAIMED, CHANGING, or MOVING; whatever it stood in, it stands
 * in. */
static inline bool due__word_claim(uint64_t *word, uint64_t *w, enum due__state as)
{
    return due__word_swap(word, w, due__word_as(*w, as));
}

/* As a claim, of one that was taken out of its line. */
static inline bool due__word_take(uint64_t *word, uint64_t *w)
{
    return due__word_swap(word, w, due__word_as(*w & ~DUE__READY, DUE__CLAIMED));
}

/* The sender has taken its node out of the inbox. */
static inline bool due__word_send(uint64_t *word, uint64_t *w)
{
    return due__word_swap(word, w, due__word_as(*w & ~DUE__LINKED, DUE__SENT));
}

/* The word of a place whose last use was @generation.  False: it has no more. */
static inline bool due__word_next(uint32_t generation, uint64_t *word)
{
    return !__builtin_add_overflow((uint64_t)generation << 32, UINT64_C(1) << 32, word);
}

/* It waits, and its place is free at once: @next, as it says. */
static inline bool due__word_cancel(uint64_t *word, uint64_t *w, uint64_t next)
{
    return due__word_swap(word, w, next);
}

/* Its node has left the inbox; its slot has left a line. */
static inline bool due__word_unlink(uint64_t *word, uint64_t *w)
{
    return due__word_swap(word, w, *w & ~DUE__LINKED);
}

static inline bool due__word_unready(uint64_t *word, uint64_t *w)
{
    return due__word_swap(word, w, *w & ~DUE__READY);
}

/* Another slot stands for it. */
static inline bool due__word_restamp(uint64_t *word, uint64_t *w, uint32_t stamp)
{
    return due__word_swap(word, w, due__word_stamped(*w, stamp));
}

/* Is it *@w still?  So was what was read of the job before.  (A swap, or that might be read
 * later.) */
static inline bool due__word_unchanged(uint64_t *word, uint64_t *w)
{
    return due__cas_acq_rel(word, w, *w); /* J1 */
}

/* ---- Stores, by whose alone the job is ---- */

/* What was written to the job before is seen by who reads this word. */
static inline void due__word_set(uint64_t *word, uint64_t to)
{
#if defined DUE__EXPLORE || !defined NDEBUG
    due__word_moves(due__word_peek(word), to);
#endif
    due__store_release(word, to); /* J1 */
}

/* Nothing was written that somebody else is to see. */
static inline void due__word_keep(uint64_t *word, uint64_t to)
{
#if defined DUE__EXPLORE || !defined NDEBUG
    due__word_moves(due__word_peek(word), to);
#endif
    due__store_relaxed(word, to); /* J1: the caller's own, who will swap or set it */
}

/* The word of a place that was just taken: its generation, and nothing else. */
static inline uint64_t due__word_of_free(const uint64_t *word)
{
    uint64_t w = due__load_relaxed(word); /* J1: the caller's own */

    assert((w & UINT32_MAX) == 0);
    return w;
}

/* Of such a place the word of a job that waits: of @arrival the low part, since in 32 bits the
 * shift drops what is above a stamp. */
static inline uint64_t due__word_waiting(uint64_t free, uint32_t arrival)
{
    return free | arrival << (32 - DUE__STAMP_BITS) | DUE__WAITING;
}

/* A place that was just taken: the job begins. */
static inline void due__word_begin(uint64_t *word, uint32_t generation, uint32_t stamp,
                                   enum due__state state, uint64_t flags)
{
    due__word_set(word, due__word(generation, stamp, flags | state));
}

/* Its own life is over; its node is in the inbox, where no slot bears its stamp. */
static inline bool due__word_end_linked(uint64_t *word, uint64_t *w)
{
    return due__word_swap(word, w, due__word(due__word_generation(*w), 0, DUE__LINKED | DUE__DONE));
}

/* Its own life is over; those who hold its lease record still read it. */
static inline void due__word_end(uint64_t *word, uint64_t w)
{
    due__word_set(word, due__word(due__word_generation(w), 0, DUE__HELD | DUE__DONE));
}

/* Its place is given back, for another use.  False: it has no more. */
static inline bool due__word_free(uint64_t *word)
{
    uint32_t generation = due__word_generation(due__load_relaxed(word)); /* J1: the caller's own */

    if (generation == UINT32_MAX) {
        due__word_set(word, due__word(generation, 0, DUE__DONE));
        return false;
    }
    due__word_set(word, due__word(generation + 1, 0, DUE__FREE));
    return true;
}

/* A place that nobody has seen yet: its first use is to be @generation.  Its page is touched. */
static inline void due__word_fresh(uint64_t *word, uint32_t generation)
{
    due__store_relaxed(word, due__word(generation, 0, DUE__FREE)); /* no edge: unseen yet */
}

static inline void due__word_touch(uint64_t *word)
{
    due__store_relaxed(word, 0); /* no edge: not shared yet */
}

#endif
