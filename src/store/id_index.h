/* id_index.h - what a queue knows of each stored job, and how one is found by its stored id.
 *
 * In a queue of memory an id is a place and its use.  A stored id must be good in the next process
 * too, so it is the store's, and an index leads from it to the place.
 */
#ifndef DUE__ID_INDEX_H
#define DUE__ID_INDEX_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "due/due.h"
#include "mem/inbox.h"
#include "mem/records.h"
#include "mem/slab.h"
#include "os/lock.h"
#include "queue/journal.h"

struct due__submission; /* sender.h: a call that waits for the store */

struct due__stored {
    struct cds_wfcq_node node;  /* A  the commit inbox's, while a change waits there */
    _Alignas(8) uint64_t id[2]; /* A  S2: the bytes of its id */
    struct due__submission
        *put_submission; /* D  who waits for the PUT; A  relaxed, set before its node is */
    struct due__submission *submission; /* D  who waits for the change after it */
    int64_t was_ns;  /* K  when it is to be handed out, as the store has it; or */
    int64_t want_ns; /* D  the same, as it is to be */
    uint32_t next;   /* X  in its chain of the index: place plus 1 */
    uint8_t purpose; /* D  and DUE__QUEUED: its node is in the inbox for that */
    uint8_t stored;  /* K  enum due__retained */
};

#define DUE__QUEUED     0x80u
#define DUE__DEAD_THERE (-1) /* in was_ns: the store has it as dead */

/* What is known of a job in the store. */
enum due__retained {
    DUE__NOT_STORED = 0,
    DUE__IS_STORED,
    DUE__WAS_STORED, /* the store has lost something: it may be there or not */
    DUE__TO_STORE,   /* it is not there, and is to be */
    DUE__ROUND_LATE  /* its next round is there, and this one is to be */
};

/* ---- The index ---- */

#define DUE__INDEX_SHARDS 16u

struct due__index_shard {
    struct due__lock lock; /* X */
    uint32_t count;        /* X */
    uint32_t room;         /* X  a power of two, or 0; A  relaxed, for prefetches */
    uint32_t *chain;       /* X  place plus 1 of the first job; A  likewise */
} __attribute__((aligned(DUE__LINE)));

struct due__index {
    struct due__alloc *alloc;                         /* I */
    struct due__slab *slab;                           /* I */
    struct due__records *stored;                      /* I  struct due__stored */
    struct due__index_shard shard[DUE__INDEX_SHARDS]; /* X  each its own */
};

void due__index_init(struct due__index *x, struct due__slab *slab, struct due__records *stored);
void due__index_destroy(struct due__index *x);
/* Room for @n jobs at least.  False: no memory. */
bool due__index_reserve(struct due__index *x, size_t n);

/* Enter the job at @number under the id in its record.  DUE_EBUSY: there is one already; not looked
 * for if the id is @fresh, made for this job.  DUE_ENOMEM. */
int due__index_add(struct due__index *x, uint32_t number, bool fresh);
void due__index_remove(struct due__index *x, uint32_t number);
/* It will be removed soon. */
void due__index_prefetch(const struct due__index *x, uint32_t number);

/* The place of the job @id, and its use of it.  False: unknown. */
bool due__index_find(struct due__index *x, due_id id, uint32_t *number, uint32_t *generation);

static inline due_id due__stored_id(const struct due__stored *s)
{
    uint64_t words[2] = { due__load_relaxed(&s->id[0]), due__load_relaxed(&s->id[1]) }; /* S2 */
    due_id id;

    memcpy(&id, words, sizeof id);
    return id;
}

static inline void due__stored_name(struct due__stored *s, due_id id)
{
    uint64_t words[2];

    memcpy(words, &id, sizeof id);
    due__store_relaxed(&s->id[0], words[0]); /* S2 */
    due__store_relaxed(&s->id[1], words[1]); /* S2 */
}

/* An id from its parts, and back. */
due_id due__id_stored(int priority, uint64_t writer, uint64_t sequence);

#endif
