/* slab.h - the slab of jobs: one cache line each, found by number, recycled by generation.
 *
 * A job's word (word.h) decides everything that can happen to it.  Its generation counts the uses
 * of the place; it is part of the job's id, so an id that outlived its job is told from the job now
 * in its place.  Its stamp is the low part of the arrival number of the one slot that stands for
 * the job now; a slot with another stamp or another deadline is dead.  Taking, cancelling,
 * rescheduling and freeing are each one change of the whole word.
 */
#ifndef DUE__SLAB_H
#define DUE__SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mem/alloc.h"
#include "mem/inbox.h"
#include "mem/payload.h"
#include "mem/slot.h"
#include "mem/word.h"
#include "os/lock.h"

/* What a handed-out copy of a job keeps of it: place plus 1 and use.  0: nothing. */
static inline uint64_t due__handle(uint32_t number, uint32_t generation)
{
    return (uint64_t)generation << 32 | (number + 1);
}

static inline bool due__handle_read(uint64_t handle, uint32_t *number, uint32_t *generation)
{
    *number = (uint32_t)handle - 1;
    *generation = (uint32_t)(handle >> 32);
    return handle != 0;
}

#define DUE__INLINE_BYTES 32u

enum due__payload {
    DUE__BYTES_INLINE, /* in the job */
    DUE__BYTES_APART,  /* in a block of their own: payload.h */
    DUE__POINTER       /* carried */
};

_Static_assert((DUE__POINTER & DUE__BYTES_APART) == 0, "one bit says that they are apart");

/* Everything that never changes between enqueue and free, as one word, because a look at a stale
 * id may race with a new owner of the place. */
struct due__facts {
    uint32_t len;
    uint16_t topic;
    uint8_t priority;
    uint8_t payload; /* enum due__payload, DUE__NOW, DUE__EXTRAS, DUE__GROUPED */
};

#define DUE__PAYLOAD_MASK 0x0fu
#define DUE__NOW          0x10u /* no delay: due at a moment of its call */
#define DUE__EXTRAS       0x20u /* its block, wherever its payload is, begins as extras.h says */
#define DUE__GROUPED      0x80u /* and its front has a group */

struct due__job {
    _Alignas(8) uint64_t word; /* A  J1 */
    _Alignas(8) int64_t
        deadline_ns;            /* A  J1: written by the owner before the word, or while MOVING */
    _Alignas(8) uint64_t facts; /* A  J1: written by the owner before the word */
    union {
        struct cds_wfcq_node node; /* A  while LINKED: the inbox's */
        uint32_t next_free;        /* D  while free in the depot */
    } link;                        /* A  one of the two, by state */
    union {
        _Alignas(8) unsigned char bytes[DUE__INLINE_BYTES]; /* O  enqueuer's, then taker's */
        void *ptr;                                          /* O */
    } payload;                                              /* O */
};

_Static_assert(sizeof(struct due__job) == 64, "a job is one cache line");

/* ---- The slab ---- */

#ifndef DUE__SPAN_SHIFT /* the explorer sets it lower: who looks at all places is sooner done */
#define DUE__SPAN_SHIFT 12
#endif
#ifndef DUE__MAGAZINE /* the simulation sets both lower still */
#define DUE__MAGAZINE 128u
#endif
#define DUE__SPAN_JOBS (1u << DUE__SPAN_SHIFT)
#define DUE__SEGMENTS  (DUE__JOB_BITS - DUE__SPAN_SHIFT + 1)
#define DUE__SUPPLY    (DUE__MAGAZINE / 2) /* places that a shard has from the depot, or gives */
#define DUE__NO_JOB    UINT32_MAX

/* 4,096 places, and what the depot knows of them. */
struct due__span {
    uint32_t free_head;  /* D  first of a chain through link.next_free */
    uint32_t free_count; /* D  length of the chain */
    uint32_t fresh;      /* D  places from here on were never used since their pages were new */
    uint32_t floor;      /* D  no generation up to this one may be used again */
    uint32_t next;       /* D  in the list it is in */
    uint32_t prev;       /* D */
    uint32_t list;       /* D  enum of slab.c */
};

#define DUE__SPARE_ALL UINT64_MAX /* of a shard: nobody has shared out yet */

/* What a group of threads keeps for itself: first what is written most, in one line. */
struct due__shard {
    struct due__lock lock; /* S */
    uint32_t count;        /* S  places in the magazine */
    uint64_t enqueued;     /* S  places taken for jobs */
    uint64_t cancelled;    /* S */
    uint64_t unready;      /* S  left a line, but not by being dequeued */
    uint64_t done;         /* S  done with by a caller */
    uint64_t dequeued;     /* S */
    uint64_t lent;         /* S  handed to a caller, but not by being dequeued */
    uint64_t acked;        /* S  left by an ack */
    uint64_t leased;       /* S  leases begun */
    uint64_t unleased;     /* S  leases ended by their holder */
    uint64_t refused;      /* S  of those taken, jobs that did not come in after all */
    uint64_t discarded;    /* S */
    uint64_t kept;         /* S  left to the store by due_close */
    uint64_t died;         /* S  dead from then on */
    uint64_t revived;      /* S  dead no more: they wait again, or go */
    void *spare_waiter;    /* A  W1 of waiter.c */
    uint32_t magazine[DUE__MAGAZINE] __attribute__((aligned(DUE__LINE))); /* S */
    uint64_t spare; /* S  C2 of closing.c: so many may leave before anybody need sum */
};

struct due__slab {
    struct due__alloc *alloc;                /* I */
    struct due__job *segment[DUE__SEGMENTS]; /* A  J2: base minus its first number; set once */
    struct due__span *spans[DUE__SEGMENTS];  /* A  J2: likewise, by span */
    void *region[DUE__SEGMENTS];             /* D  what was mapped, for the end */
    struct due__lock depot;                  /* D  guards spans, lists and counts below */
    uint32_t segments;                       /* A  J2: how many are there */
    uint32_t end;                            /* A  J2: one past the highest place there is */
    uint32_t lists[4];                       /* D  heads: fresh, partial, idle, none */
    uint32_t idle;                           /* A  spans in the idle list; written under D */
    uint32_t bare;                           /* A  the depot has no places; written under D */
    struct due__shard shard[DUE__SHARDS] __attribute__((aligned(128))); /* S  each its own */
    struct due__payloads payloads;                                      /* A  its own guards */
};

void due__slab_init(struct due__slab *s, struct due__alloc *alloc);
void due__slab_destroy(struct due__slab *s);

/* The segment that place @number lies in, its places, and the number of its first. */
static inline uint32_t due__segment_of(uint32_t number)
{
    uint32_t top = 31u ^ (uint32_t)__builtin_clz(number | DUE__SPAN_JOBS / 2); /* its highest bit */

    return top - (DUE__SPAN_SHIFT - 1);
}

static inline uint32_t due__segment_places(uint32_t k)
{
    return k == 0 ? DUE__SPAN_JOBS : DUE__SPAN_JOBS << (k - 1);
}

static inline uint32_t due__segment_first(uint32_t k)
{
    return k == 0 ? 0 : due__segment_places(k);
}

static inline struct due__job *due__job_at(const struct due__slab *s, uint32_t number)
{
    return due__load_acquire(&s->segment[due__segment_of(number)]) + number; /* J2 */
}

/* Places that were never used come from the depot in order, DUE__SUPPLY at a time, and their words
 * are written there.  So who fills one in has the line fetched of the one that far behind it: it
 * is on its way while all of these are filled in, where the depot would wait for each.  (Of a place
 * that was used before it is some other's line; to ask would cost more than that.) */
static inline void due__job_ahead(const struct due__job *j)
{
    __builtin_prefetch((const void *)((uintptr_t)j + DUE__SUPPLY * sizeof *j), 1);
}

/* It will be looked at, and swapped, soon. */
static inline void due__job_prefetch(const struct due__slab *s, uint32_t number)
{
    __builtin_prefetch(due__job_at(s, number), 1);
}

/* Is there such a place? */
static inline bool due__slab_has(const struct due__slab *s, uint32_t number)
{
    return number < due__load_acquire(&s->end); /* J2 */
}

/* The calling thread's number: threads are spread over the shards by it.  0: it has none yet. */
extern _Thread_local uint32_t due__thread_number __attribute__((tls_model("initial-exec")));
/* How many bytes behind the first shard its own is, plus 1; 0: it has no number yet. */
extern _Thread_local uint32_t due__thread_offset __attribute__((tls_model("initial-exec")));
void due__thread_count(void);
void due__thread_be(uint32_t number);

/* Which shard is the calling thread's. */
static inline uint32_t due__thread_shard(void)
{
    if (due__thread_number == 0)
        due__thread_count();
    return due__thread_number % DUE__SHARDS;
}

static inline struct due__shard *due__shard_at(struct due__slab *s, uint32_t offset)
{
    return (struct due__shard *)(void *)((unsigned char *)s->shard + offset - 1);
}

static inline struct due__shard *due__shard_mine(struct due__slab *s)
{
    if (due__thread_offset == 0)
        due__thread_count();
    return due__shard_at(s, due__thread_offset);
}

/* The same with its lock; if somebody is in it, another one that nobody is in. */
struct due__shard *due__shard_other(struct due__slab *s, struct due__shard *mine);

static inline struct due__shard *due__shard_enter(struct due__slab *s)
{
    struct due__shard *mine = due__shard_mine(s);

    return due__lock_try_untold(&mine->lock) ? mine : due__shard_other(s, mine);
}

static inline void due__shard_leave(struct due__shard *it)
{
    enum due__released rest = due__lock_release_last(&it->lock); /* S */

    if (rest != DUE__RELEASED)
        due__lock_release_rest(&it->lock, rest);
}

/* Who tried a shard's lock and has not just got it leaves it: nothing is begun. */
void due__shard_tried(struct due__shard *it, enum due__tried how);

/* Fill a shard's magazine up from the depot. */
void due__shard_refill(struct due__slab *s, struct due__shard *it);

/* Within a shard: take up to @n places for new jobs, DUE__SUPPLY at most; each is FREE with
 * the generation to use.  0: none is left, grow first. */
static inline size_t due__shard_take(struct due__slab *s, struct due__shard *it, uint32_t *number,
                                     size_t n)
{
    if (it->count < n && (it->count == 0 || !due__load_relaxed(&s->bare))) /* no edge: a guess */
        due__shard_refill(s, it); /* else some are better than none */
    size_t got = n < it->count ? n : it->count;
    it->count -= (uint32_t)got;
    const uint32_t *from = it->magazine + it->count;
    if (__builtin_constant_p(n) && got == n)
        memcpy(number, from, n * sizeof *number); /* without a loop */
    else
        for (size_t i = 0; i < got; i++)
            number[i] = from[i];
    return got;
}

/* The same, and count them as enqueued. */
static inline size_t due__slab_take(struct due__slab *s, uint32_t *number, size_t n)
{
    struct due__shard *it = due__shard_enter(s);
    size_t got = due__shard_take(s, it, number, n);

    it->enqueued += got;
    due__shard_leave(it);
    return got;
}

/* A free place into a shard's magazine; when that is full, half of it goes to the depot. */
void due__shard_spill(struct due__slab *s, struct due__shard *it);

static inline void due__shard_push(struct due__slab *s, struct due__shard *it, uint32_t number)
{
    if (it->count == DUE__MAGAZINE)
        due__shard_spill(s, it);
    it->magazine[it->count++] = number;
}

/* A place that was taken and not used after all. */
void due__slab_untake(struct due__slab *s, uint32_t number);

/* The next segment: how many places it will have (0: the limit is reached), memory for so many
 * (NULL: there is none), and adding it.  If somebody else has added one meanwhile, the memory may
 * go back instead. */
uint32_t due__slab_next_places(const struct due__slab *s);
void *due__slab_segment(struct due__slab *s, uint32_t places);
void due__slab_segment_free(struct due__slab *s, uint32_t places, void *region);
void due__slab_add(struct due__slab *s, uint32_t places, void *memory);

/* Give a place back: its generation ends.  The caller owns it (CLAIMED or DONE, not LINKED).
 * Within a shard, or entering one. */
static inline void due__slab_give_of(struct due__slab *s, struct due__shard *it, struct due__job *j,
                                     uint32_t number)
{
    if (due__word_free(&j->word)) /* J1 */
        due__shard_push(s, it, number);
}

static inline void due__slab_give_in(struct due__slab *s, struct due__shard *it, uint32_t number)
{
    due__slab_give_of(s, it, due__job_at(s, number), number);
}

void due__slab_give(struct due__slab *s, uint32_t number);

/* Touch the memory of @n places that will be taken first, if so many are free. */
void due__slab_touch(struct due__slab *s, size_t n);

/* Give the pages of wholly free spans back, all but @keep of them; with @shards also what the
 * magazines hold.  Takes the slab's own locks one after another. */
void due__slab_trim(struct due__slab *s, uint32_t keep, bool shards);

/* The number of a job. */
uint32_t due__job_number(const struct due__slab *s, const struct due__job *j);

/* One past the highest place there is, and the bytes of all segments. */
static inline uint32_t due__slab_end(const struct due__slab *s)
{
    return due__load_acquire(&s->end); /* J2 */
}

uint64_t due__slab_bytes(const struct due__slab *s);

static inline struct due__facts due__facts_read(uint64_t all)
{
    return (struct due__facts){ .len = (uint32_t)all,
                                .topic = (uint16_t)(all >> 32),
                                .priority = (uint8_t)(all >> 48),
                                .payload = (uint8_t)(all >> 56) };
}

static inline uint64_t due__facts_word(struct due__facts f)
{
    return f.len | (uint64_t)f.topic << 32 | (uint64_t)f.priority << 48 | (uint64_t)f.payload << 56;
}

static inline uint64_t due__now_fact(void)
{
    return due__facts_word((struct due__facts){ .payload = DUE__NOW });
}

static inline struct due__facts due__facts_load(const struct due__job *j)
{
    return due__facts_read(due__load_relaxed(&j->facts)); /* J1 */
}

static inline void due__facts_store(struct due__job *j, struct due__facts f)
{
    due__store_relaxed(&j->facts, due__facts_word(f)); /* J1 */
}

/* Does this slot still stand for its job, which is @j?  @word gets the word that says so.  No slot
 * stands for a job whose node is in an inbox: its stamp is 0, which may also be a dead slot's
 * arrival. */
static inline bool due__slot_alive_of(const struct due__job *j, struct due__slot s, uint64_t *word)
{
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    *word = w;
    return (w & (DUE__SLOTTED | DUE__LINKED)) == DUE__SLOTTED &&
           due__word_stamp(w) == (due__slot_arrival(s) & DUE__STAMP_MASK) &&
           due__load_relaxed(&j->deadline_ns) == due__slot_deadline(s); /* J1 */
}

static inline bool due__slot_alive(const struct due__slab *slab, struct due__slot s, uint64_t *word)
{
    return due__slot_alive_of(due__job_at(slab, due__slot_job(s)), s, word);
}

#endif
