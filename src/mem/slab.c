/* slab.c - the slab of jobs.
 *
 * Places are numbered from 0 and lie in segments that double in size, so a look-up is one load from
 * a small table and no segment ever moves: a stale id or slot can always be looked at.  A place
 * comes with room for its slot, wherever that may be kept (chunks.h), so nothing can run out of
 * memory once a place is had.  Payloads that do not fit into a place are the business of payload.c.
 *
 * Free places lie in magazines of the shards (threads are spread over 16), then in the depot, in
 * chains by span.  A span that is wholly free becomes idle, and idle spans give their pages back; a
 * span remembers the highest generation it reached and starts above it.
 *
 * Guards     I  set at open      S  the shard's lock      D  the depot's lock      A  atomic
 *            O  whoever owns the job
 * Lock order 1. timeline lock (queue.h)   2. shard   3. depot
 *
 * Edges      J1  the owner writes deadline, facts and payload, then the word -> whoever reads the
 *                word sees them.  A reader of a word it does not own trusts what it read only if
 *                the word is unchanged when it swaps it (or looks again).
 *            J2  grow writes the segment's pointers, then their count -> whoever got a number from
 *                them sees the pointers
 *
 * Always     N1  a place is in exactly one of: a magazine, its span's chain, fresh, in use, retired
 * (check)    N2  a retired place (generation used up) is never free again
 */
#include "mem/slab.h"

#include <string.h>

#include "due/due.h"
#include "os/atomic.h"

enum { LIST_FRESH, LIST_PARTIAL, LIST_IDLE, LIST_NONE };

#define NO_SPAN UINT32_MAX

static uint32_t threads_seen; /* A  counter, no edge: only spreads threads over shards */
_Thread_local uint32_t due__thread_number;
_Thread_local uint32_t due__thread_offset;

void due__thread_be(uint32_t number)
{
    due__thread_number = number;
    due__thread_offset =
        number > 0 ? number % DUE__SHARDS * (uint32_t)sizeof(struct due__shard) + 1 : 0;
}

void due__thread_count(void)
{
    due__thread_be(due__add_relaxed(&threads_seen, 1) + 1); /* no edge: see threads_seen */
}

/* The span that place @number is in, and one by its number. */
static inline struct due__span *span_of(const struct due__slab *s, uint32_t number)
{
    return s->spans[due__segment_of(number)] + (number >> DUE__SPAN_SHIFT);
}

static struct due__span *span_at(const struct due__slab *s, uint32_t span)
{
    return span_of(s, span << DUE__SPAN_SHIFT);
}

/* Of a segment of @places.  More than there are addresses, of 32 bits: SIZE_MAX, which no allocator
 * gives. */
static size_t segment_bytes(uint32_t places)
{
    uint64_t bytes = (uint64_t)places * sizeof(struct due__job) +
                     places / DUE__SPAN_JOBS * sizeof(struct due__span);

    return bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

/* ---- Lists of spans, under the depot's lock ---- */

static void list_remove(struct due__slab *s, uint32_t span)
{
    struct due__span *it = span_at(s, span);

    if (it->list == LIST_NONE)
        return;
    if (it->prev == NO_SPAN)
        s->lists[it->list] = it->next;
    else
        span_at(s, it->prev)->next = it->next;
    if (it->next != NO_SPAN)
        span_at(s, it->next)->prev = it->prev;
    if (it->list == LIST_IDLE)
        due__store_relaxed(&s->idle, s->idle - 1); /* no edge: others only guess by it */
    it->list = LIST_NONE;
}

static void list_add(struct due__slab *s, uint32_t span, uint32_t list)
{
    struct due__span *it = span_at(s, span);

    list_remove(s, span);
    it->list = list;
    it->prev = NO_SPAN;
    it->next = s->lists[list];
    if (it->next != NO_SPAN)
        span_at(s, it->next)->prev = span;
    s->lists[list] = span;
    due__store_relaxed(&s->bare, 0); /* no edge: others only guess by it */
    if (list == LIST_IDLE)
        due__store_relaxed(&s->idle, s->idle + 1); /* no edge: others only guess by it */
}

void due__slab_init(struct due__slab *s, struct due__alloc *alloc)
{
    memset(s, 0, sizeof *s);
    s->alloc = alloc;
    due__lock_init(&s->depot);
    for (size_t i = 0; i < DUE__SHARDS; i++) {
        due__lock_init_biased(&s->shard[i].lock);
        s->shard[i].spare = DUE__SPARE_ALL;
    }
    due__payloads_init(&s->payloads, alloc);
    for (size_t i = 0; i < sizeof s->lists / sizeof s->lists[0]; i++)
        s->lists[i] = NO_SPAN;
}

void due__slab_destroy(struct due__slab *s)
{
    due__payloads_destroy(&s->payloads);
    for (uint32_t k = 0; k < s->segments; k++)
        due__alloc_region_free(s->alloc, s->region[k], segment_bytes(due__segment_places(k)));
    for (size_t i = 0; i < DUE__SHARDS; i++)
        due__lock_destroy(&s->shard[i].lock);
    due__lock_destroy(&s->depot);
}

uint32_t due__slab_next_places(const struct due__slab *s)
{
    uint32_t k = due__load_acquire(&s->segments); /* J2 */

    return k < DUE__SEGMENTS ? due__segment_places(k) : 0;
}

void *due__slab_segment(struct due__slab *s, uint32_t places)
{
    return due__alloc_region(s->alloc, segment_bytes(places));
}

void due__slab_segment_free(struct due__slab *s, uint32_t places, void *region)
{
    due__alloc_region_free(s->alloc, region, segment_bytes(places));
}

void due__slab_add(struct due__slab *s, uint32_t places, void *memory)
{
    unsigned char *region = memory;

    due__lock_acquire(&s->depot);
    uint32_t k = s->segments;
    if (k >= DUE__SEGMENTS || due__segment_places(k) != places) { /* somebody else has added it */
        due__lock_release(&s->depot);
        due__slab_segment_free(s, places, region);
        return;
    }
    uint32_t first = due__segment_first(k);
    uint32_t first_span = first >> DUE__SPAN_SHIFT;
    struct due__job *jobs = (struct due__job *)(void *)region;
    struct due__span *spans = (struct due__span *)(void *)(region + places * sizeof *jobs);

    s->region[k] = region;
    s->spans[k] = spans - first_span;
    due__store_release(&s->segment[k], jobs - first); /* J2 */
    for (uint32_t i = places / DUE__SPAN_JOBS; i-- > 0;) {
        spans[i] = (struct due__span){ .free_head = DUE__NO_JOB, .list = LIST_NONE };
        list_add(s, first_span + i, LIST_FRESH);
    }
    due__store_release(&s->segments, k + 1);     /* J2 */
    due__store_release(&s->end, first + places); /* J2 */
    due__lock_release(&s->depot);
}

/* Of @spans spans of one segment, the memory. */
static void spans_touch(struct due__slab *s, uint32_t span, uint32_t spans)
{
    uint32_t first = span << DUE__SPAN_SHIFT;
    uint32_t places = spans << DUE__SPAN_SHIFT;

    due__alloc_touch_large(s->alloc, due__job_at(s, first), places * sizeof(struct due__job));
    for (uint32_t i = 0; i < places; i++) /* if the kernel could not */
        due__word_touch(&due__job_at(s, first + i)->word);
}

void due__slab_touch(struct due__slab *s, size_t n)
{
    size_t touched = 0;
    uint32_t next;

    due__lock_acquire(&s->depot);
    for (uint32_t span = s->lists[LIST_FRESH]; span != NO_SPAN && touched < n; span = next) {
        uint32_t segment = due__segment_of(span << DUE__SPAN_SHIFT);
        uint32_t spans = 0;

        do {
            next = span_at(s, span + spans++)->next;
            touched += DUE__SPAN_JOBS;
        } while (next == span + spans && touched < n &&
                 due__segment_of(next << DUE__SPAN_SHIFT) == segment);
        spans_touch(s, span, spans);
    }
    due__lock_release(&s->depot);
}

/* ---- Taking ---- */

/* Places out of a span that has some, at most @n; under the depot's lock.  (What changes is held
 * here meanwhile: each store to a job would have it read again.) */
static size_t span_take(struct due__slab *s, uint32_t span, uint32_t *number, size_t n)
{
    struct due__span *it = span_at(s, span);
    uint32_t first = span << DUE__SPAN_SHIFT;
    struct due__job *jobs = due__job_at(s, first);
    uint32_t head = it->free_head;
    uint32_t fresh = it->fresh;
    uint32_t generation = it->floor + 1;
    size_t chained = n < it->free_count ? n : it->free_count;
    size_t got = 0;

    while (got < chained) {
        struct due__job *j = &jobs[head - first];

        number[got++] = head;
        __builtin_prefetch(j, 1); /* it was read, and is to be written */
        head = j->link.next_free;
    }
    uint32_t end =
        fresh + (n - got < DUE__SPAN_JOBS - fresh ? (uint32_t)(n - got) : DUE__SPAN_JOBS - fresh);
    for (uint32_t *to = number + got; fresh < end; fresh++) {
        *to++ = first + fresh;
        due__word_fresh(&jobs[fresh].word, generation);
    }
    got += end - it->fresh;
    it->free_head = head;
    it->free_count -= (uint32_t)chained;
    it->fresh = fresh;
    return got;
}

static bool span_empty(const struct due__span *it)
{
    return it->free_count == 0 && it->fresh == DUE__SPAN_JOBS;
}

/* Partly used spans first, then idle ones whose pages are warm, then fresh ones. */
static uint32_t span_choose(const struct due__slab *s)
{
    if (s->lists[LIST_PARTIAL] != NO_SPAN)
        return s->lists[LIST_PARTIAL];
    if (s->lists[LIST_IDLE] != NO_SPAN)
        return s->lists[LIST_IDLE];
    return s->lists[LIST_FRESH];
}

static size_t depot_take(struct due__slab *s, uint32_t *number, size_t n)
{
    size_t got = 0;

    due__lock_acquire(&s->depot);
    while (got < n) {
        uint32_t span = span_choose(s);

        if (span == NO_SPAN)
            break;
        if (span_at(s, span)->list != LIST_PARTIAL)
            list_add(s, span, LIST_PARTIAL);
        got += span_take(s, span, number + got, n - got);
        if (span_empty(span_at(s, span)))
            list_remove(s, span);
    }
    due__store_relaxed(&s->bare, span_choose(s) == NO_SPAN); /* no edge: others guess by it */
    due__lock_release(&s->depot);
    return got;
}

/* The lock is held for a few instructions, but its holder may have lost the processor, and a
 * producer must not wait for that. */
struct due__shard *due__shard_other(struct due__slab *s, struct due__shard *mine)
{
    size_t at = (size_t)(mine - s->shard);

    for (size_t i = 1; i < DUE__SHARDS; i++) {
        struct due__shard *it = &s->shard[(at + i) % DUE__SHARDS];

        if (due__lock_try_untold(&it->lock))
            return it;
    }
    due__lock_acquire(&mine->lock);
    return mine;
}

void due__shard_tried(struct due__shard *it, enum due__tried how)
{
    if (how != DUE__TRIED_BUSY && due__lock_try_rest(&it->lock, how))
        due__shard_leave(it);
}

void due__shard_refill(struct due__slab *s, struct due__shard *it)
{
    it->count += (uint32_t)depot_take(s, it->magazine + it->count, DUE__SUPPLY);
}

/* ---- Giving back ---- */

/* Put @n places into the chains of their spans; under the depot's lock. */
static void depot_give(struct due__slab *s, const uint32_t *number, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t place = number[i];
        struct due__span *it = span_of(s, place);
        struct due__job *j = due__job_at(s, place);
        uint32_t generation = due__word_generation(due__load_relaxed(&j->word)); /* no edge: ours */

        if (generation > it->floor)
            it->floor = generation;
        j->link.next_free = it->free_head;
        it->free_head = place;
        it->free_count++;
        if (it->free_count == it->fresh)
            list_add(s, place >> DUE__SPAN_SHIFT, LIST_IDLE);
        else if (it->list != LIST_PARTIAL)
            list_add(s, place >> DUE__SPAN_SHIFT, LIST_PARTIAL);
    }
}

void due__shard_spill(struct due__slab *s, struct due__shard *it)
{
    it->count -= DUE__SUPPLY;
    due__lock_acquire(&s->depot);
    depot_give(s, it->magazine + it->count, DUE__SUPPLY);
    due__lock_release(&s->depot);
}

void due__slab_untake(struct due__slab *s, uint32_t number)
{
    struct due__shard *it = due__shard_enter(s);

    it->refused++;
    due__shard_push(s, it, number);
    due__shard_leave(it);
}

void due__slab_give(struct due__slab *s, uint32_t number)
{
    struct due__shard *it = due__shard_enter(s);

    due__slab_give_in(s, it, number);
    due__shard_leave(it);
}

/* ---- Giving pages back ---- */

/* Let the pages of idle span @span go.  It is in no list meanwhile, so nobody else touches it. */
static void span_empty_out(struct due__slab *s, uint32_t span)
{
    struct due__span *it = span_at(s, span);

    if (!due__alloc_give_back(s->alloc, due__job_at(s, span << DUE__SPAN_SHIFT),
                              DUE__SPAN_JOBS * sizeof(struct due__job)))
        return;
    it->free_head = DUE__NO_JOB;
    it->free_count = 0;
    it->fresh = 0;
}

void due__slab_trim(struct due__slab *s, uint32_t keep, bool shards)
{
    for (size_t i = 0; shards && i < DUE__SHARDS; i++) {
        struct due__shard *it = &s->shard[i];

        due__lock_acquire(&it->lock);
        due__lock_acquire(&s->depot);
        depot_give(s, it->magazine, it->count);
        it->count = 0;
        due__lock_release(&s->depot);
        due__lock_release(&it->lock);
    }
    for (;;) {
        due__lock_acquire(&s->depot);
        uint32_t span = s->idle > keep ? s->lists[LIST_IDLE] : NO_SPAN;
        if (span != NO_SPAN)
            list_remove(s, span);
        due__lock_release(&s->depot);
        if (span == NO_SPAN)
            return;

        span_empty_out(s, span);
        due__lock_acquire(&s->depot);
        bool emptied = span_at(s, span)->fresh == 0;
        list_add(s, span, emptied ? LIST_FRESH : LIST_PARTIAL);
        due__lock_release(&s->depot);
    }
}

/* ---- Looking ---- */

uint32_t due__job_number(const struct due__slab *s, const struct due__job *j)
{
    uint32_t k = due__load_acquire(&s->segments); /* J2 */

    while (k-- > 0) { /* the last segments hold most of the jobs */
        uint32_t first = due__segment_first(k);
        const struct due__job *base = due__job_at(s, first);

        if (j >= base && j < base + due__segment_places(k))
            return first + (uint32_t)(j - base);
    }
    return DUE__NO_JOB;
}

uint64_t due__slab_bytes(const struct due__slab *s)
{
    uint32_t segments = due__load_acquire(&s->segments); /* J2 */
    uint64_t bytes = 0;

    for (uint32_t k = 0; k < segments; k++)
        bytes += segment_bytes(due__segment_places(k));
    return bytes;
}
