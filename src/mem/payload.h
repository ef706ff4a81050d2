/* payload.h - memory of payloads that do not fit into a job: kept by size, and used again.
 *
 * Up to 64 KiB a payload lies in a block of the smallest class that holds it; there are four
 * classes for each doubling, so a block is at most a quarter larger.  A block that is free again
 * is kept for the next payload of its class, within bounds:
 *
 *   DUE__SHARD_KEEPS + DUE__CHAIN_BYTES   in each of the 16 shards
 *   DUE__DEPOT_KEEPS                      in the depot
 *
 * which makes 6 MiB for a queue.  Larger payloads, and whatever is beyond the bounds, come from the
 * allocator and go back to it.
 */
#ifndef DUE__PAYLOAD_H
#define DUE__PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "mem/alloc.h"
#include "mem/slot.h"
#include "os/lock.h"

#define DUE__SHARDS          16u /* threads are spread over so many; also those of the slab */
#define DUE__PAYLOAD_CLASSES 44u /* four for each doubling from 32 bytes on */
#define DUE__PAYLOAD_KEPT    ((size_t)64 << 10) /* larger ones are not kept */
#define DUE__CHAIN_BYTES     ((size_t)32 << 10) /* about what moves to and from the depot at once */
#define DUE__CHAIN_BLOCKS    32u                /* but not more blocks than that */
#define DUE__SHARD_KEEPS     ((size_t)96 << 10)
#define DUE__DEPOT_KEEPS     ((size_t)4 << 20)

/* All of them, at most. */
#define DUE__PAYLOADS_KEEP (DUE__DEPOT_KEEPS + DUE__SHARDS * (DUE__SHARD_KEEPS + DUE__CHAIN_BYTES))

/* A free block: its first bytes. */
struct due__block {
    struct due__block *next;       /* S/D  in its chain */
    struct due__block *next_chain; /* D    of the first in a chain: the next chain */
    uint32_t count;                /* S/D  of this one and those behind it */
    uint32_t class;                /* S/D */
};

/* What a group of threads keeps for itself, by class. */
struct due__payload_shard {
    struct due__lock lock;                         /* S */
    size_t bytes;                                  /* S  in all its blocks */
    struct due__block *open[DUE__PAYLOAD_CLASSES]; /* S  a chain, taken from and given to */
    struct due__block *full[DUE__PAYLOAD_CLASSES]; /* S  a whole chain, or NULL */
} __attribute__((aligned(128)));

struct due__payloads {
    struct due__alloc *alloc;                        /* I */
    bool keeps;                                      /* I  false: a checker of memory is at work */
    struct due__lock depot;                          /* D */
    size_t bytes;                                    /* A  in the depot; written under D */
    uint32_t evicted;                                /* D  the class that had to go last */
    struct due__block *chains[DUE__PAYLOAD_CLASSES]; /* D */
    struct due__payload_shard shard[DUE__SHARDS];    /* S  each its own */
};

void due__payloads_init(struct due__payloads *p, struct due__alloc *alloc);
void due__payloads_destroy(struct due__payloads *p);

/* Memory for @len bytes, more than none; NULL: there is none.  Waits for nobody unless there is
 * none. */
void *due__payload_new(struct due__payloads *p, size_t len);
void due__payload_free(struct due__payloads *p, void *memory, size_t len);

/* The same without a lock and without keeping it: for a child after fork. */
void due__payload_drop(struct due__payloads *p, void *memory, size_t len);

/* Give back what the depot keeps beyond @keep bytes; with @shards also all that they keep. */
void due__payloads_trim(struct due__payloads *p, size_t keep, bool shards);

/* Bytes in free blocks: in the depot at some moment, and in all. */
static inline size_t due__payloads_idle(const struct due__payloads *p)
{
    return due__load_relaxed(&p->bytes); /* no edge: a guess */
}

size_t due__payloads_bytes(struct due__payloads *p);

/* The slow way, for tests: are all counts right and the bounds kept? */
bool due__payloads_check(struct due__payloads *p);

#endif
