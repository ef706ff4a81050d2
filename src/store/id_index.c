/* id_index.c - the index of stored jobs: chains of places, spread over shards.
 *
 * Guards     X  the shard's lock      K, D  of sender.c      I  set at open
 *
 * Edges      S2  an id is written before the index has the place, and read under the shard's lock
 *                or by whoever looks at the job's word before and after (J1 of slab.c)
 *
 * Always     N1  a place is in the index from before its job can be named until its use of the
 *                place ends, so a generation that is read under the lock is the job's
 */
#include "store/id_index.h"

#include "os/atomic.h"

#define ROOM_AT_FIRST 256u
#define LINE_CHAINS   (DUE__LINE / sizeof(uint32_t))

due_id due__id_stored(int priority, uint64_t writer, uint64_t sequence)
{
    due_id id = { { 0 } };

    id.byte[0] = (unsigned char)(255 - priority);
    for (int i = 0; i < 6; i++)
        id.byte[1 + i] = (unsigned char)(writer >> (40 - 8 * i));
    for (int i = 0; i < 7; i++)
        id.byte[7 + i] = (unsigned char)(sequence >> (48 - 8 * i));
    return id;
}

/* Ids that were made one after another have chains side by side, a cache line of them in the same
 * shard: what priority and writer come to only shifts them. */
static uint64_t mix(due_id id)
{
    uint64_t from = 0;
    uint64_t sequence = 0;

    for (size_t i = 0; i < 7; i++) {
        from = from << 8 | id.byte[i];
        sequence = sequence << 8 | id.byte[7 + i];
    }
    from = (from ^ from >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return (from ^ from >> 29) + sequence;
}

static struct due__index_shard *shard_of(struct due__index *x, uint64_t h)
{
    return &x->shard[h / LINE_CHAINS % DUE__INDEX_SHARDS];
}

static uint32_t *chain_of(uint32_t *chain, uint32_t room, uint64_t h)
{
    uint64_t line = h / LINE_CHAINS / DUE__INDEX_SHARDS;

    return &chain[(line * LINE_CHAINS + h % LINE_CHAINS) & (room - 1)];
}

static struct due__stored *record(const struct due__index *x, uint32_t place)
{
    return due__records_at(x->stored, place - 1);
}

void due__index_init(struct due__index *x, struct due__slab *slab, struct due__records *stored)
{
    memset(x, 0, sizeof *x);
    x->alloc = slab->alloc;
    x->slab = slab;
    x->stored = stored;
    for (uint32_t i = 0; i < DUE__INDEX_SHARDS; i++)
        due__lock_init(&x->shard[i].lock);
}

void due__index_destroy(struct due__index *x)
{
    for (uint32_t i = 0; i < DUE__INDEX_SHARDS; i++) {
        struct due__index_shard *it = &x->shard[i];

        if (it->chain != NULL)
            due__alloc_free(x->alloc, it->chain, it->room * sizeof *it->chain);
        due__lock_destroy(&it->lock);
    }
}

/* So many chains, more than there are. */
static bool grow(struct due__index *x, struct due__index_shard *it, uint32_t room)
{
    uint32_t *chain = due__alloc_new(x->alloc, room * sizeof *chain);

    if (chain == NULL)
        return false;
    for (uint32_t i = 0; i < it->room; i++) {
        uint32_t place = it->chain[i];

        while (place != 0) {
            struct due__stored *s = record(x, place);
            uint32_t next = s->next;
            uint32_t *head = chain_of(chain, room, mix(due__stored_id(s)));

            s->next = *head;
            *head = place;
            place = next;
        }
    }
    if (it->chain != NULL)
        due__alloc_free(x->alloc, it->chain, it->room * sizeof *it->chain);
    due__store_relaxed(&it->chain, chain); /* no edge: for prefetches */
    due__store_relaxed(&it->room, room);   /* no edge: likewise */
    return true;
}

bool due__index_reserve(struct due__index *x, size_t n)
{
    uint32_t room = ROOM_AT_FIRST;

    while ((size_t)room * DUE__INDEX_SHARDS < n)
        room *= 2;
    for (uint32_t i = 0; i < DUE__INDEX_SHARDS; i++) {
        struct due__index_shard *it = &x->shard[i];

        due__lock_acquire(&it->lock);
        bool enough = it->room >= room || grow(x, it, room);
        due__lock_release(&it->lock);
        if (!enough)
            return false;
    }
    return true;
}

/* Twice as many chains, or the first ones.  Without memory longer chains will do. */
static bool grow_if_full(struct due__index *x, struct due__index_shard *it)
{
    if (it->count < it->room)
        return true;
    return grow(x, it, it->room > 0 ? 2 * it->room : ROOM_AT_FIRST) || it->room > 0;
}

/* Where the chain points to the job @id, or the 0 at its end. */
static uint32_t *seek(struct due__index *x, struct due__index_shard *it, due_id id, uint64_t h)
{
    uint32_t *at = chain_of(it->chain, it->room, h);

    while (*at != 0 && !due_id_equal(due__stored_id(record(x, *at)), id))
        at = &record(x, *at)->next;
    return at;
}

int due__index_add(struct due__index *x, uint32_t number, bool fresh)
{
    struct due__stored *s = record(x, number + 1);
    due_id id = due__stored_id(s);
    uint64_t h = mix(id);
    struct due__index_shard *it = shard_of(x, h);
    int rc = 0;

    due__lock_acquire(&it->lock);
    if (!grow_if_full(x, it))
        rc = DUE_ENOMEM;
    else if (!fresh && *seek(x, it, id, h) != 0)
        rc = DUE_EBUSY;
    if (rc == 0) {
        uint32_t *head = chain_of(it->chain, it->room, h);

        s->next = *head;
        *head = number + 1;
        it->count++;
    }
    due__lock_release(&it->lock);
    return rc;
}

void due__index_remove(struct due__index *x, uint32_t number)
{
    struct due__stored *s = record(x, number + 1);
    due_id id = due__stored_id(s);
    uint64_t h = mix(id);
    struct due__index_shard *it = shard_of(x, h);

    due__lock_acquire(&it->lock);
    uint32_t *at = it->room > 0 ? chain_of(it->chain, it->room, h) : NULL;
    while (at != NULL && *at != 0 && *at != number + 1)
        at = &record(x, *at)->next;
    if (at != NULL && *at != 0) {
        *at = s->next;
        it->count--;
    }
    due__lock_release(&it->lock);
}

void due__index_prefetch(const struct due__index *x, uint32_t number)
{
    uint64_t h = mix(due__stored_id(record(x, number + 1)));
    const struct due__index_shard *it = &x->shard[h / LINE_CHAINS % DUE__INDEX_SHARDS];
    uint32_t room = due__load_relaxed(&it->room); /* no edge: a wrong place does no harm */

    if (room > 0)
        __builtin_prefetch(chain_of(due__load_relaxed(&it->chain), room, h), 1); /* no edge */
}

bool due__index_find(struct due__index *x, due_id id, uint32_t *number, uint32_t *generation)
{
    uint64_t h = mix(id);
    struct due__index_shard *it = shard_of(x, h);
    bool found = false;

    due__lock_acquire(&it->lock);
    if (it->room > 0) {
        uint32_t place = *seek(x, it, id, h);

        if (place != 0) {
            struct due__job *j = due__job_at(x->slab, place - 1);

            *number = place - 1;
            *generation = due__word_generation(due__load_acquire(&j->word)); /* J1, N1 */
            found = true;
        }
    }
    due__lock_release(&it->lock);
    return found;
}
