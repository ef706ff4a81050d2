/* payload.c - memory of payloads that do not fit into a job.
 *
 * Producers ask for it and consumers give it back, in other threads: a C library's allocator takes
 * that badly (its locks are fought for, and pages are given back and faulted in again).  So free
 * blocks are kept.  A thread gives to and takes from its shard; of each class that has up to two
 * chains, of which whole ones move to and from the depot at once.
 *
 * Nobody waits: where a lock is held, the allocator is asked instead, or given to.  It is never
 * called under a lock.
 *
 * When the depot is full, chains of other classes have to go, so that no class keeps the room of
 * one that is no longer used.
 *
 * Under AddressSanitizer nothing is kept, and the allocation is exactly as long as the payload: it
 * has to see a payload that is used after it was done with.  It is asked for at run time, because a
 * program that is checked may use a library that was not built for it.  Under ThreadSanitizer the
 * same, which takes memory that was freed for another's.
 *
 * Guards     I  set at open      S  the shard's lock      D  the depot's lock      A  atomic
 * Lock order after all others: 1. shard   2. depot
 *
 * Always     the bytes of a shard and of the depot are those of their blocks, and within their
 * (check)    bounds: due__payloads_check
 */
#include "mem/payload.h"

#include <string.h>

#include "mem/slab.h"
#include "os/atomic.h"
#include "os/tsan.h"

/* There only if AddressSanitizer is. */
extern void __asan_poison_memory_region(const volatile void *memory, size_t size)
    __attribute__((weak));

_Static_assert(sizeof(struct due__block) <= 40, "a free block of any class can be linked");

/* ---- Classes ---- */

static uint32_t class_of(size_t len)
{
    uint32_t last = (uint32_t)len - 1;
    uint32_t doubling = 31u - (uint32_t)__builtin_clz(last);

    return (doubling - 5) * 4 + (last >> (doubling - 2) & 3);
}

static size_t class_bytes(uint32_t class)
{
    return (size_t)(5 + class % 4) << (class / 4 + 3);
}

static uint32_t chain_blocks(uint32_t class)
{
    size_t blocks = DUE__CHAIN_BYTES / class_bytes(class);

    if (blocks > DUE__CHAIN_BLOCKS)
        return DUE__CHAIN_BLOCKS;
    return blocks > 0 ? (uint32_t)blocks : 1;
}

static size_t chain_bytes(const struct due__block *chain)
{
    return chain != NULL ? chain->count * class_bytes(chain->class) : 0;
}

/* Are payloads of this length kept?  Those that fit into a job have no class. */
static bool keeps(const struct due__payloads *p, size_t len)
{
    return p->keeps && len > DUE__INLINE_BYTES && len <= DUE__PAYLOAD_KEPT;
}

static size_t allocated(const struct due__payloads *p, size_t len)
{
    return keeps(p, len) ? class_bytes(class_of(len)) : len;
}

static void link_block(struct due__block **chain, struct due__block *block, uint32_t class)
{
    block->next = *chain;
    block->count = *chain != NULL ? (*chain)->count + 1 : 1;
    block->class = class;
    *chain = block;
}

static void link_chain(struct due__block **chains, struct due__block *chain)
{
    chain->next_chain = *chains;
    *chains = chain;
}

/* Outside all locks. */
static void free_chain(struct due__payloads *p, struct due__block *chain)
{
    while (chain != NULL) {
        struct due__block *next = chain->next;

        due__alloc_free(p->alloc, chain, class_bytes(chain->class));
        chain = next;
    }
}

static void free_chains(struct due__payloads *p, struct due__block *chains)
{
    while (chains != NULL) {
        struct due__block *next = chains->next_chain;

        free_chain(p, chains);
        chains = next;
    }
}

/* ---- The depot ---- */

/* Under its lock. */
static struct due__block *chain_remove(struct due__payloads *p, uint32_t class)
{
    struct due__block *chain = p->chains[class];

    if (chain != NULL) {
        p->chains[class] = chain->next_chain;
        due__store_relaxed(&p->bytes, p->bytes - chain_bytes(chain)); /* no edge: a guess */
    }
    return chain;
}

/* Under its lock: take chains of all classes but @but, which take turns, until no more than @most
 * bytes are left.  They are added to @gone. */
static void depot_evict(struct due__payloads *p, size_t most, uint32_t but,
                        struct due__block **gone)
{
    for (uint32_t empty = 0; p->bytes > most && empty < DUE__PAYLOAD_CLASSES;) {
        p->evicted = (p->evicted + 1) % DUE__PAYLOAD_CLASSES;
        struct due__block *chain = p->evicted != but ? chain_remove(p, p->evicted) : NULL;

        empty = chain != NULL ? 0 : empty + 1;
        if (chain != NULL)
            link_chain(gone, chain);
    }
}

static struct due__block *depot_take(struct due__payloads *p, uint32_t class)
{
    if (!due__lock_try(&p->depot))
        return NULL;
    struct due__block *chain = chain_remove(p, class);
    due__lock_release(&p->depot);
    return chain;
}

/* Outside all locks.  What there is no room for goes back to the allocator, and all of it does if
 * somebody is in the depot. */
static void depot_give(struct due__payloads *p, struct due__block *chain)
{
    size_t bytes = chain_bytes(chain);
    struct due__block *gone = NULL;

    if (!due__lock_try(&p->depot)) {
        free_chain(p, chain);
        return;
    }
    depot_evict(p, DUE__DEPOT_KEEPS - bytes, chain->class, &gone);
    if (p->bytes + bytes <= DUE__DEPOT_KEEPS) {
        link_chain(&p->chains[chain->class], chain);
        due__store_relaxed(&p->bytes, p->bytes + bytes); /* no edge: a guess */
    } else {
        link_chain(&gone, chain);
    }
    due__lock_release(&p->depot);
    free_chains(p, gone);
}

/* ---- The shards ---- */

static struct due__payload_shard *shard_mine(struct due__payloads *p)
{
    return &p->shard[due__thread_shard()];
}

static struct due__block *shard_take(struct due__payloads *p, uint32_t class)
{
    struct due__payload_shard *it = shard_mine(p);

    if (!due__lock_try(&it->lock))
        return NULL;
    if (it->open[class] == NULL) {
        it->open[class] = it->full[class];
        it->full[class] = NULL;
    }
    if (it->open[class] == NULL) {
        it->open[class] = depot_take(p, class);
        it->bytes += chain_bytes(it->open[class]);
    }
    struct due__block *block = it->open[class];
    if (block != NULL) {
        it->open[class] = block->next;
        it->bytes -= class_bytes(class);
    }
    due__lock_release(&it->lock);
    return block;
}

/* One chain too many: it leaves the shard.  NULL: there is room for all. */
static struct due__block *shard_put(struct due__payload_shard *it, struct due__block *block,
                                    uint32_t class)
{
    struct due__block *leaves = NULL;

    link_block(&it->open[class], block, class);
    if (block->count >= chain_blocks(class)) {
        leaves = it->full[class];
        it->full[class] = block;
        it->open[class] = NULL;
    }
    it->bytes += class_bytes(class) - chain_bytes(leaves);
    return leaves;
}

/* The depot is full: a queue drains, or its payloads have changed their length.  The shards keep
 * what they have; blocks freed last are often the last in the C library's heap, and keeping them
 * would keep the heap from shrinking. */
static bool depot_full(const struct due__payloads *p)
{
    return due__payloads_idle(p) > DUE__DEPOT_KEEPS - DUE__PAYLOAD_KEPT;
}

static void shard_give(struct due__payloads *p, struct due__block *block, uint32_t class)
{
    struct due__payload_shard *it = shard_mine(p);
    struct due__block *leaves = NULL;
    bool put = false;

    if (!depot_full(p) && due__lock_try(&it->lock)) {
        put = it->bytes + class_bytes(class) <= DUE__SHARD_KEEPS;
        if (put)
            leaves = shard_put(it, block, class);
        due__lock_release(&it->lock);
    }
    if (!put)
        link_block(&leaves, block, class);
    if (leaves != NULL)
        depot_give(p, leaves);
}

/* ---- Taking and giving ---- */

void *due__payload_new(struct due__payloads *p, size_t len)
{
    void *memory = keeps(p, len) ? shard_take(p, class_of(len)) : NULL;

    if (memory == NULL)
        memory = due__alloc_raw(p->alloc, allocated(p, len));
    if (memory == NULL && due__payloads_bytes(p) > 0) { /* what is kept may be what is missing */
        due__payloads_trim(p, 0, true);
        memory = due__alloc_raw(p->alloc, allocated(p, len));
    }
    return memory;
}

void due__payload_drop(struct due__payloads *p, void *memory, size_t len)
{
    due__alloc_free(p->alloc, memory, allocated(p, len));
}

void due__payload_free(struct due__payloads *p, void *memory, size_t len)
{
    if (keeps(p, len))
        shard_give(p, memory, class_of(len));
    else
        due__payload_drop(p, memory, len);
}

/* ---- Giving back ---- */

/* All that it keeps is added to @gone. */
static void shard_empty(struct due__payload_shard *it, struct due__block **gone)
{
    due__lock_acquire(&it->lock);
    for (size_t k = 0; k < DUE__PAYLOAD_CLASSES; k++) {
        if (it->open[k] != NULL)
            link_chain(gone, it->open[k]);
        if (it->full[k] != NULL)
            link_chain(gone, it->full[k]);
        it->open[k] = NULL;
        it->full[k] = NULL;
    }
    it->bytes = 0;
    due__lock_release(&it->lock);
}

void due__payloads_trim(struct due__payloads *p, size_t keep, bool shards)
{
    struct due__block *gone = NULL;

    for (size_t i = 0; shards && i < DUE__SHARDS; i++)
        shard_empty(&p->shard[i], &gone);
    due__lock_acquire(&p->depot);
    depot_evict(p, keep, DUE__PAYLOAD_CLASSES, &gone);
    due__lock_release(&p->depot);
    free_chains(p, gone);
}

void due__payloads_init(struct due__payloads *p, struct due__alloc *alloc)
{
    memset(p, 0, sizeof *p);
    p->alloc = alloc;
    p->keeps = __asan_poison_memory_region == NULL && !due__tsan_blind();
    due__lock_init(&p->depot);
    for (size_t i = 0; i < DUE__SHARDS; i++)
        due__lock_init(&p->shard[i].lock);
}

/* A lock can be held only in a child after fork, by a thread that is not there: what it guards may
 * be half changed, and is left alone. */
void due__payloads_destroy(struct due__payloads *p)
{
    struct due__block *gone = NULL;

    for (size_t i = 0; i < DUE__SHARDS; i++)
        if (!due__lock_held(&p->shard[i].lock))
            shard_empty(&p->shard[i], &gone);
    free_chains(p, gone);
    if (!due__lock_held(&p->depot))
        due__payloads_trim(p, 0, false);
    for (size_t i = 0; i < DUE__SHARDS; i++)
        due__lock_destroy(&p->shard[i].lock);
    due__lock_destroy(&p->depot);
}

/* ---- Looking ---- */

size_t due__payloads_bytes(struct due__payloads *p)
{
    size_t bytes = due__payloads_idle(p);

    for (size_t i = 0; i < DUE__SHARDS; i++) {
        struct due__payload_shard *it = &p->shard[i];

        due__lock_acquire(&it->lock);
        bytes += it->bytes;
        due__lock_release(&it->lock);
    }
    return bytes;
}

/* Bytes of the blocks in @chain; more than there can be, if its counts are wrong. */
static size_t chain_recount(const struct due__block *chain, uint32_t class)
{
    size_t bytes = 0;

    for (const struct due__block *b = chain; b != NULL; b = b->next) {
        if (b->class != class || b->count != (b->next != NULL ? b->next->count + 1 : 1))
            return SIZE_MAX / 2;
        bytes += class_bytes(class);
    }
    return bytes;
}

/* Of a class a shard has a chain that is not full, and one that is; or either, or none. */
static bool chains_right(const struct due__payload_shard *it, uint32_t class)
{
    uint32_t most = chain_blocks(class);

    return (it->open[class] == NULL || it->open[class]->count < most) &&
           (it->full[class] == NULL || it->full[class]->count == most);
}

bool due__payloads_check(struct due__payloads *p)
{
    size_t depot = 0;
    bool right = true;

    for (size_t i = 0; i < DUE__SHARDS; i++) {
        struct due__payload_shard *it = &p->shard[i];
        size_t bytes = 0;

        due__lock_acquire(&it->lock);
        for (uint32_t k = 0; k < DUE__PAYLOAD_CLASSES; k++) {
            bytes += chain_recount(it->open[k], k) + chain_recount(it->full[k], k);
            right = right && chains_right(it, k);
        }
        right = right && bytes == it->bytes && bytes <= DUE__SHARD_KEEPS + DUE__CHAIN_BYTES;
        due__lock_release(&it->lock);
    }
    due__lock_acquire(&p->depot);
    for (uint32_t k = 0; k < DUE__PAYLOAD_CLASSES; k++) {
        for (struct due__block *c = p->chains[k]; c != NULL; c = c->next_chain)
            depot += chain_recount(c, k);
    }
    right = right && depot == p->bytes && depot <= DUE__DEPOT_KEEPS;
    due__lock_release(&p->depot);
    return right;
}
