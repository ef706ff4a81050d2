/* timeline.c - a heap in front, unsorted buckets behind.
 *
 * Slots before the edge are in front: those that were loaded together lie sorted in the run, those
 * inserted since are in the heap.  All others lie unsorted in rungs, stretches of time cut into
 * buckets.  When the front is empty, the next buckets are loaded and the edge moves on.  A bucket
 * too large to load is split: it becomes a rung of its own, nearer in time, over its own smallest
 * and largest slot.  So the width of buckets follows what is there, down to a single bit of the
 * key: a million equal deadlines are split by priority and arrival.  The farthest rung has one
 * bucket and no end; it is split like any other.
 *
 * A split is done in pieces (rung.h).  A large bucket is split ahead of need, when what lies in
 * front of it is less than an eighth of it; every insert and pop then sorts a few slots, and is
 * through with it before the front is.  If it is not, ready says false.
 *
 * When slots keep coming before the edge and the heap is full, all but its first go back to the
 * nearest bucket.
 *
 * Memory: inserts leave alone the chunks that splits under way may still take (owed) and a
 * reserve, so a split never runs out of them.  A split divides the range of keys by eight at
 * least, by 128 when many rungs are in use, so 20 + 9 levels would do for keys of 127 bits.  If
 * a split is refused all the same (no chunks), the first slots of the bucket are selected in one
 * long pass.
 *
 * Guards     I  set at init, then constant      T  timeline lock
 *
 * Always     every slot in front is before the edge, every other is not; a slot is in the
 *            farthest rung but those that end before it: due__timeline_check
 *
 * Not here   How a rung is laid out: rung.c.  Dropping the dead, but for those of a chunk that is
 *            full: timeline_sweep.c.  Whether all of this is so: timeline_check.c.
 */
#include "timeline/timeline.h"

#include <assert.h>
#include <string.h>

#include "timeline/sort.h"

enum {
    LOAD_MAX = 256,     /* a bucket up to this goes into the heap as it is */
    LOAD_MIN = 32,      /* and further ones with it, up to this */
    BUCKET_SLOTS = 64,  /* wished for in a bucket when splitting */
    SMALL = 1024,       /* up to this many, so few chunks matter less than sorting */
    SMALL_SLOTS = 16,   /* wished for in a bucket then */
    BUCKETS_MIN = 16,   /* in a rung */
    BUCKETS_DEEP = 256, /* the same when many rungs are in use */
    RUNGS_DEEP = 20,    /* many */
    AHEAD_MIN = 2048,   /* larger buckets are split ahead of need */
    AHEAD_SHARE = 8,    /* when this times what is in front of them is less than they */
    PACE = 16,          /* slots that an insert or a pop sorts */
    KEEP = 256,         /* slots that a full heap keeps */
    PROBES = 4,         /* slots of a full chunk that tell whether many of it are dead */
};

struct due__timeline_memory {
    _Alignas(64) struct due__slot heap[DUE__TIMELINE_HEAP + 1]; /* T */
    struct due__slot run[LOAD_MAX];                             /* T */
    struct due__slot spare[LOAD_MAX];           /* T  to sort with, and for a spill */
    struct due__rung rung[DUE__TIMELINE_RUNGS]; /* T */
};

int due__timeline_init(struct due__timeline *tl, struct due__alloc *alloc, struct due__pool *pool,
                       due__keep_fn *keep, const void *ctx)
{
    struct due__timeline_memory *memory = due__alloc_region_raw(alloc, sizeof *memory);

    if (memory == NULL)
        return DUE_ENOMEM;
    *tl = (struct due__timeline){
        .pool = pool, .keep = keep, .ctx = ctx, .alloc = alloc, .memory = memory
    };
    tl->run = memory->run;
    due__heap_init(&tl->heap, memory->heap, DUE__TIMELINE_HEAP);
    for (uint32_t i = DUE__TIMELINE_RUNGS; i-- > 0;)
        tl->spare[tl->spares++] = &memory->rung[i];

    if (!due__rung_open(tl->spare[--tl->spares], pool)) {
        due__timeline_destroy(tl);
        return DUE_ENOMEM;
    }
    tl->rung[tl->rungs++] = tl->spare[tl->spares];
    return 0;
}

void due__timeline_destroy(struct due__timeline *tl)
{
    due__alloc_region_free(tl->alloc, tl->memory, sizeof *tl->memory);
    tl->memory = NULL;
}

/* Chunks that may be taken without touching those of splits under way. */
static size_t chunks_left(const struct due__timeline *tl, size_t reserve)
{
    size_t kept = tl->owed + reserve;

    return tl->pool->free_count > kept ? tl->pool->free_count - kept : 0;
}

/* ---- Splits ---------------------------------------------------------------------------------- */

/* Up to where an insert looks closer: to the edge, to the end of the first rung whose buckets are
 * no whole nanoseconds wide or that is one too many, or anywhere while a split is under way. */
uint64_t due__timeline_closer(const struct due__timeline *tl)
{
    uint32_t i = 1;

    while (i < tl->rungs && i < DUE__TIMELINE_FEW && due__rung_coarse(tl->rung[i]))
        i++;
    due__key closer =
        i < tl->rungs && due__key_before(tl->edge, tl->end[i]) ? tl->end[i] : tl->edge;
    return tl->unsettled > 0 ? UINT64_MAX : due__key_high(closer);
}

/* A split has begun or ended, a rung has gone, or the edge has moved. */
static void look_closer(struct due__timeline *tl)
{
    tl->closer_ns = due__timeline_closer(tl);
}

/* Makes bucket @n of rung[@i] a rung of its own.  False: it has to stay as it is. */
static bool split(struct due__timeline *tl, uint32_t i, uint32_t n)
{
    struct due__rung *parent = tl->rung[i];
    struct due__bag *bag = due__rung_bucket(parent, n);
    uint32_t wish = bag->count / (bag->count <= SMALL ? SMALL_SLOTS : BUCKET_SLOTS);
    uint32_t least = tl->rungs < RUNGS_DEEP ? BUCKETS_MIN : BUCKETS_DEEP;
    struct due__rung *child;

    wish = wish < least ? least : wish > DUE__RUNG_BUCKETS ? DUE__RUNG_BUCKETS : wish;
    while (wish > 1 && due__rung_need(wish) > chunks_left(tl, 0))
        wish /= 2;
    if (wish < 2 || tl->spares == 0 || due__slot_same(bag->min, bag->max))
        return false;

    child = tl->spare[tl->spares - 1];
    if (!due__rung_split(child, tl->pool, bag, wish, due__rung_bucket_end(parent, n)))
        return false;
    child->unswept = parent->unswept > n || tl->sweep.bag == bag ? child->buckets : 0;
    if (tl->sweep.bag == bag)
        tl->sweep.bag = NULL;
    due__rung_clear(parent, n);
    due__rung_pass(parent, n);
    parent->count -= child->count;

    tl->spares--;
    memmove(tl->rung + i + 2, tl->rung + i + 1, (tl->rungs - i - 1) * sizeof *tl->rung);
    tl->rung[i + 1] = child;
    memmove(tl->end + i + 2, tl->end + i + 1, (tl->rungs - i - 1) * sizeof *tl->end);
    tl->end[i + 1] = child->end;
    tl->rungs++;
    tl->unsettled++;
    tl->owed += child->buckets;
    look_closer(tl);
    return true;
}

/* The nearest rung, which is empty, goes. */
static void rung_drop(struct due__timeline *tl)
{
    struct due__rung *r = tl->rung[--tl->rungs];

    tl->end[tl->rungs] = due__key_of(0, 0);
    tl->spare[tl->spares++] = r;
    due__rung_close(r, tl->pool);
    look_closer(tl);
}

size_t due__timeline_settle(struct due__timeline *tl, struct due__rung *r, size_t budget)
{
    size_t done = due__rung_settle(r, tl->pool, budget);

    tl->looked += done;
    if (r->source.count == 0) {
        tl->unsettled--;
        tl->owed -= r->buckets;
        look_closer(tl);
    }
    return done;
}

/* The same for the nearest one. */
static void settle_nearest(struct due__timeline *tl, size_t budget)
{
    for (uint32_t i = tl->rungs; tl->unsettled > 0 && i-- > 0;)
        if (tl->rung[i]->source.count > 0) {
            due__timeline_settle(tl, tl->rung[i], budget);
            return;
        }
}

/* Begins the splits that will be needed soon. */
static void plan(struct due__timeline *tl)
{
    size_t ahead = due__timeline_front(tl);

    for (uint32_t i = tl->rungs; i-- > 0;) {
        struct due__rung *r = tl->rung[i];
        size_t behind = r->count;

        if (r->source.count == 0 && r->count > AHEAD_MIN) {
            uint32_t n = due__rung_first(r);
            size_t count = due__rung_bucket(r, n)->count;

            if (count > AHEAD_MIN && ahead < count / AHEAD_SHARE && tl->rungs < RUNGS_DEEP)
                split(tl, i, n);
        }
        ahead += behind;
    }
}

/* ---- The heap's supply ----------------------------------------------------------------------- */

/* Bucket @n of @r, which is the nearest, into the run: all of it is behind what is there. */
static void load(struct due__timeline *tl, struct due__rung *r, uint32_t n)
{
    struct due__bag *bag = due__rung_bucket(r, n);
    uint32_t before = tl->run_end;

    r->count -= bag->count;
    tl->looked += bag->count;
    while (bag->chunk != NULL) {
        memcpy(tl->run + tl->run_end, bag->chunk->slot, bag->fill * sizeof *tl->run);
        tl->run_end += bag->fill;
        due__bag_drop_chunk(bag, tl->pool);
    }
    due__sort(tl->run + before, tl->run_end - before, tl->memory->spare);
    bag->count = 0;
    due__rung_clear(r, n);
    if (tl->sweep.bag == bag)
        tl->sweep.bag = NULL;

    due__rung_pass(r, n + 1 < r->buckets ? n + 1 : n);
    tl->edge =
        r == tl->rung[0] ? due__key_next(due__slot_key(bag->max)) : due__rung_bucket_end(r, n);
    look_closer(tl);
}

static struct due__slot mirrored(struct due__slot s)
{
    return (struct due__slot){ .hi = ~s.hi, .lo = ~s.lo };
}

/* Where a bucket can be neither loaded nor split: its first LOAD_MAX slots go into the heap, which
 * serves as a heap of the largest meanwhile.  The only call that looks at a whole bucket. */
static void select_first(struct due__timeline *tl, struct due__rung *r, uint32_t n)
{
    struct due__bag *bag = due__rung_bucket(r, n);
    struct due__heap *heap = &tl->heap;

    if (tl->sweep.bag == bag) { /* what stays in it is still to be swept */
        tl->sweep.bag = NULL;
        r->unswept = n + 1;
    }
    tl->looked += bag->count;
    while (heap->count < LOAD_MAX && bag->count > 0) {
        due__heap_push(heap, mirrored(bag->chunk->slot[--bag->fill]));
        bag->count--;
        r->count--;
        if (bag->fill == 0)
            due__bag_drop_chunk(bag, tl->pool);
    }
    for (struct due__chunk *c = bag->chunk; c != NULL; c = c->next)
        for (uint32_t i = 0; i < (c == bag->chunk ? bag->fill : c->count); i++)
            if (due__slot_before(c->slot[i], mirrored(due__heap_top(heap)))) {
                struct due__slot s = c->slot[i];

                c->slot[i] = mirrored(due__heap_pop(heap));
                due__heap_push(heap, mirrored(s));
            }

    due__rung_pass(r, n);
    tl->edge = due__key_next(due__slot_key(mirrored(due__heap_top(heap))));
    look_closer(tl);
    for (size_t i = 0; i < heap->count; i++)
        heap->slot[i] = mirrored(heap->slot[i]);
    due__heap_build(heap);
    if (bag->count == 0)
        due__rung_clear(r, n);
}

/* The slots that will be loaded next, into the cache. */
static void prefetch_next(struct due__rung *r)
{
    uint32_t n = due__rung_first(r);

    if (n == DUE__RUNG_NONE)
        return;
    const struct due__bag *bag = due__rung_bucket(r, n);
    const struct due__slot *slot = bag->chunk->slot;
    for (uint32_t i = 0; i < bag->fill; i += 64 / sizeof *slot)
        __builtin_prefetch(slot + i);
}

/* Fills the empty front from the nearest rungs.  False: there is more to do than one piece. */
static bool supply(struct due__timeline *tl)
{
    size_t limit = tl->looked + DUE__TIMELINE_PIECE;

    tl->run_at = tl->run_end = 0;
    while (due__timeline_front(tl) < LOAD_MIN && due__timeline_front(tl) < tl->count) {
        struct due__rung *r = tl->rung[tl->rungs - 1];
        uint32_t n;

        if (r->count == 0) {
            rung_drop(tl);
            continue;
        }
        if (r->source.count > 0) {
            if (due__timeline_front(tl) > 0)
                break;
            if (tl->looked < limit)
                due__timeline_settle(tl, r, limit - tl->looked);
            if (r->source.count > 0)
                return false;
        }
        n = due__rung_first(r);
        if (tl->run_end + due__rung_bucket(r, n)->count <= LOAD_MAX) {
            load(tl, r, n);
        } else if (due__timeline_front(tl) > 0) {
            break;
        } else if (!split(tl, tl->rungs - 1, n)) {
            select_first(tl, r, n);
            break;
        }
    }
    prefetch_next(tl->rung[tl->rungs - 1]);
    plan(tl);
    return true;
}

/* A slot from before the edge goes back to the nearest bucket; the chunks were counted. */
static void put_back(struct due__timeline *tl, struct due__slot s)
{
    struct due__rung *r = tl->rung[tl->rungs - 1];
    bool put = due__rung_put(r, tl->pool, s);

    assert(put);
    (void)put;
    r->count++;
}

/* The heap is full: all but its first slots go back, and what is after those.  False: no chunks. */
static bool spill(struct due__timeline *tl)
{
    struct due__heap *heap = &tl->heap;
    struct due__slot *first = tl->memory->spare;
    _Static_assert(KEEP <= LOAD_MAX, "there is room");

    if (chunks_left(tl, DUE__TIMELINE_RESERVE) < due__timeline_front(tl) / DUE__CHUNK_SLOTS + 2)
        return false;

    tl->looked += due__timeline_front(tl);
    for (size_t i = 0; i < KEEP; i++)
        first[i] = due__heap_pop(heap);
    for (size_t i = 0; i < heap->count; i++)
        put_back(tl, heap->slot[i]);
    heap->count = 0;
    due__heap_append_run(heap, first, KEEP); /* in order, so it is a heap */
    tl->edge = due__key_next(due__slot_key(first[KEEP - 1]));
    look_closer(tl);
    while (tl->run_at < tl->run_end &&
           !due__key_before(due__slot_key(tl->run[tl->run_end - 1]), tl->edge))
        put_back(tl, tl->run[--tl->run_end]);
    plan(tl);
    return true;
}

/* ---- The calls ------------------------------------------------------------------------------- */

/* The newest chunk is full: what died in it since is dropped, if that seems to be half of it or
 * more.  So deadlines that seldom come, as those of leases and timeouts, lie in the chunks that are
 * in the cache, and their dead need no sweep.  True: there is room now. */
static bool thin(struct due__timeline *tl, struct due__rung *r, struct due__bag *bag)
{
    struct due__slot *slot = bag->chunk->slot;
    struct due__slot probe[PROBES];

    for (uint32_t i = 0; i < PROBES; i++)
        probe[i] = slot[(i + 1) * (DUE__CHUNK_SLOTS / (PROBES + 1))];
    if (tl->keep(tl->ctx, probe, PROBES) > PROBES / 2)
        return false;
    uint32_t kept = (uint32_t)tl->keep(tl->ctx, slot, bag->fill);
    uint32_t dropped = bag->fill - kept;
    tl->looked += bag->fill;
    bag->fill = kept;
    bag->count -= dropped;
    r->count -= dropped;
    tl->count -= dropped;
    assert(dropped > 0); /* half of the probes */
    return true;
}

/* The pool is used up. */
static enum due__inserted refuse(struct due__timeline *tl, due__key key)
{
    tl->refused = due__slot_of(key);
    return DUE__NOT_INSERTED;
}

/* Into bucket @n, which is full, or empty. */
static __attribute__((noinline)) enum due__inserted insert_into_full(struct due__timeline *tl,
                                                                     struct due__rung *r,
                                                                     uint32_t n, due__key key)
{
    struct due__bag *bag = due__rung_bucket(r, n);
    bool full = bag->chunk == NULL || !thin(tl, r, bag);

    if (full && chunks_left(tl, DUE__TIMELINE_RESERVE) == 0)
        return refuse(tl, key);
    due__bag_put(bag, tl->pool, due__slot_of(key));
    due__rung_mark(r, n);
    r->count++;
    tl->count++;
    if (full && bag->count > AHEAD_MIN)
        plan(tl);
    return DUE__INSERTED_OTHERWISE;
}

static inline __attribute__((always_inline)) enum due__inserted insert_into(
    struct due__timeline *tl, struct due__rung *r, uint32_t n, due__key key)
{
    struct due__bag *bag = due__rung_bucket(r, n);

    if (due__bag_full(bag))
        return insert_into_full(tl, r, n, key);
    due__bag_append(bag, due__slot_of(key));
    r->count++;
    tl->count++;
    return DUE__INSERTED;
}

static enum due__inserted insert_behind(struct due__timeline *tl, due__key key)
{
    uint32_t i = 0;

    for (uint32_t k = 1; k < tl->rungs; k++)
        i += due__key_before(key, tl->end[k]);
    struct due__rung *r = tl->rung[i];
    return insert_into(tl, r, due__rung_index(r, key), key);
}

/* Before the edge, which comes nearer if the heap is full. */
static enum due__inserted insert_in_front(struct due__timeline *tl, due__key key)
{
    while (tl->heap.count == tl->heap.room) {
        if (!spill(tl))
            return refuse(tl, key);
        if (!due__key_before(key, tl->edge))
            return insert_behind(tl, key);
    }
    due__heap_push(&tl->heap, due__slot_of(key));
    tl->count++;
    return DUE__INSERTED;
}

/* Any slot.  With splits under way, each insert sorts a few. */
static __attribute__((noinline)) enum due__inserted insert_closer(struct due__timeline *tl,
                                                                  due__key key)
{
    size_t before = tl->looked; /* a spill looks at what it moves */
    enum due__inserted inserted =
        due__key_before(key, tl->edge) ? insert_in_front(tl, key) : insert_behind(tl, key);

    settle_nearest(tl, PACE);
    return inserted == DUE__INSERTED && tl->looked > before ? DUE__INSERTED_OTHERWISE : inserted;
}

/* Nearly always it is behind the edge, in one of few rungs whose buckets are whole nanoseconds
 * wide, and half of a key says all.  What is rare is a call at the end, for which nothing need be
 * saved. */
enum due__inserted due__timeline_insert(struct due__timeline *tl, struct due__slot s)
{
    if (s.hi <= tl->closer_ns)
        return insert_closer(tl, due__slot_key(s));
    uint32_t i = 0;

#pragma GCC unroll 8
    for (uint32_t k = 1; k < DUE__TIMELINE_FEW; k++) /* which it is, nobody can predict */
        i += s.hi < due__key_high(tl->end[k]);
    struct due__rung *r = tl->rung[i];
    return insert_into(tl, r, due__rung_index_coarse(r, s.hi), due__slot_key(s));
}

bool due__timeline_ready(struct due__timeline *tl)
{
    return due__timeline_front(tl) > 0 || tl->count == 0 || supply(tl);
}

bool due__timeline_second(const struct due__timeline *tl, struct due__slot *out)
{
    const struct due__heap *h = &tl->heap;
    bool run = due__timeline_front(tl) > 1 && due__timeline_in_run(tl);
    uint32_t at = tl->run_at + run; /* what is left when the head is gone */
    size_t top = run || h->count == 0 ? 0 : 1;
    size_t end = top == 0 ? 1 : 3; /* the top, or its children */

    if (due__timeline_front(tl) < 2)
        return false;
    *out = at < tl->run_end ? tl->run[at] : h->slot[top];
    for (size_t i = top; i < end && i < h->count; i++) {
        if (due__slot_before(h->slot[i], *out))
            *out = h->slot[i];
    }
    return true;
}

/* Takes the head out. */
static inline struct due__slot take(struct due__timeline *tl)
{
    tl->count--;
    return due__timeline_in_run(tl) ? tl->run[tl->run_at++] : due__heap_pop(&tl->heap);
}

struct due__slot due__timeline_pop_working(struct due__timeline *tl)
{
    struct due__slot s = take(tl);

    if (tl->unsettled > 0)
        settle_nearest(tl, PACE);
    return s;
}

int64_t due__timeline_bound_behind(const struct due__timeline *tl)
{
    if (tl->count == 0)
        return INT64_MAX;
    for (uint32_t i = tl->rungs; i-- > 0;) {
        struct due__rung *r = tl->rung[i];

        if (r->source.count > 0)
            break;
        if (r->count > 0)
            return due__slot_deadline(due__rung_bucket(r, due__rung_first(r))->min);
    }
    uint64_t edge = due__key_high(tl->edge);

    return edge > INT64_MAX ? INT64_MAX : (int64_t)edge;
}

bool due__timeline_work(struct due__timeline *tl, size_t budget)
{
    plan(tl);
    settle_nearest(tl, budget);
    return tl->unsettled == 0;
}

/* ---- Renumbering ----------------------------------------------------------------------------- */

/* Takes everything out in order and leaves the live slots in @sorted. */
static void drain(struct due__timeline *tl, struct due__bag *sorted, size_t *dropped)
{
    while (tl->count > 0) {
        struct due__slot s;
        bool put = true;

        if (!due__timeline_ready(tl))
            continue;
        s = take(tl);
        if (tl->keep(tl->ctx, &s, 1) == 1)
            put = due__bag_put(sorted, tl->pool, s);
        else
            ++*dropped;
        assert(put); /* the slots gave their chunks back before */
        (void)put;
    }
    while (tl->rungs > 1)
        rung_drop(tl);
    tl->sweep.on = false;
    tl->edge = due__key_of(0, 0);
    look_closer(tl);
}

/* Nobody is told of a new number before the last dead slot is gone: it might bear that number. */
uint32_t due__timeline_renumber(struct due__timeline *tl, uint32_t first, due__renumber_fn *fn,
                                void *ctx, size_t *dropped)
{
    struct due__bag sorted;
    uint32_t arrival;

    due__bag_init(&sorted);
    drain(tl, &sorted, dropped);
    if (sorted.count == 0)
        return first;

    arrival = first + sorted.count;
    for (struct due__chunk *c = sorted.chunk; c != NULL; c = c->next)
        for (uint32_t i = c == sorted.chunk ? sorted.fill : c->count; i-- > 0;) {
            struct due__slot old = c->slot[i];

            c->slot[i] = due__slot_make(due__slot_deadline(old), 255u - (unsigned)(old.lo >> 56),
                                        --arrival, due__slot_job(old));
            fn(ctx, old, c->slot[i]);
            sorted.min = c->slot[i]; /* the last one that is met is the first in order */
        }
    sorted.max = sorted.chunk->slot[sorted.fill - 1];
    *due__rung_bucket(tl->rung[0], 0) = sorted;
    due__rung_mark(tl->rung[0], 0);
    tl->rung[0]->count = tl->count = sorted.count;
    return first + sorted.count;
}
