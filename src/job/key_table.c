/* key_table.c - the table of unique keys: sharded, and made when the first one is used.
 *
 * A shard's lock is held from the look for a key until the job that gets it has been left in its
 * inbox.  So of all calls that give the same key one is the first, and whoever finds a key finds a
 * job that waits, or is past that: never one that is still being filled.
 *
 * Keys come from outside, so their hash is SipHash-1-3 with a seed that nobody is shown: whoever
 * chooses the keys cannot choose what they collide with.
 *
 * A table grows in pieces: the new one is had before the lock, and each link and unlink moves some
 * chains.  Keys that were kept long enough are passed over where they are found, swept out by
 * those that come to be kept, a few chains each, and by due_trim() and the heartbeat.
 *
 * Guards     X  the shard's lock      I  set before it is seen      O  whoever owns the job
 *            A  atomic, see Edges
 * Lock order the timeline's lock, and the key of sender.c, then a shard of keys, then the calls'
 *            lock of sender.c.  Nothing is allocated, freed or called under it.
 *
 * Edges      K1  the table is made, then its pointer is set -> whoever reads that sees the table
 *            described elsewhere: J1 slab.h
 *
 * Always     N1  of the nodes in the table no two have the same bytes
 *            N2  a node in the table with a place is the node of that job, and that use of the
 *                place has not ended: due__key_end() comes before
 *            N3  a node belongs to its job, or, when it is kept, to the table
 *
 * Not here   What an enqueue does with what it finds: enqueue_keyed.c.
 */
#define _GNU_SOURCE
#include "job/key_table.h"

#include <string.h>

#include "os/atomic.h"
#include "os/siphash.h"
#include "queue/queue.h"

#define ROOM_AT_FIRST 16u
#define MOVES         4u /* chains moved by each link and unlink while a table is left */
#define SWEEPS        4u /* chains looked at by each key that comes to be kept */
#define SWEEP_PIECE   256u

/* ---- Memory: outside the locks ---- */

static struct due__keys *keys_make(struct due_queue *q)
{
    struct due__keys *keys = due__alloc_region(&q->alloc, sizeof *keys);
    struct due__keys *none = NULL;

    if (keys == NULL)
        return NULL;
    due__siphash_seed(keys->seed);
    for (size_t i = 0; i < DUE__KEY_SHARDS; i++)
        due__lock_init(&keys->shard[i].lock);
    if (due__cas_acq_rel(&q->keys, &none, keys)) /* K1 */
        return keys;
    due__alloc_region_free(&q->alloc, keys, sizeof *keys);
    return none; /* somebody else was quicker */
}

static size_t key_bytes(const struct due__key *key)
{
    return offsetof(struct due__key, bytes) + key->len;
}

void due__key_drop(struct due_queue *q, struct due__key *first)
{
    while (first != NULL) {
        struct due__key *key = first;

        first = key->next;
        due__payload_free(&q->slab.payloads, key, key_bytes(key));
    }
}

static inline struct due__key_shard *shard_of(struct due__keys *keys, uint64_t hash)
{
    return &keys->shard[hash % DUE__KEY_SHARDS];
}

static inline uint32_t chain_of(uint64_t hash, uint32_t room)
{
    return (uint32_t)(hash / DUE__KEY_SHARDS) & (room - 1);
}

/* Another table for the shard, if it has none that is still being left.  False: no memory. */
static bool resize(struct due_queue *q, struct due__key_shard *it, uint32_t room)
{
    struct due__key_chain *chain = due__alloc_new(&q->alloc, room * sizeof *chain);

    if (chain == NULL)
        return false;
    due__lock_acquire(&it->lock);
    bool wanted = it->old == NULL && room != it->room && it->count <= room;
    if (wanted) {
        it->old = it->chain;
        it->old_room = it->room;
        it->moved = 0;
        it->hand = 0;
        due__store_relaxed(&it->chain, chain); /* no edge: others only fetch by it */
        due__store_relaxed(&it->room, room);   /* no edge: others read it as a bound */
    }
    due__lock_release(&it->lock);
    if (!wanted)
        due__alloc_free(&q->alloc, chain, room * sizeof *chain);
    return true;
}

/* Is there a chain for one more, and a larger table on its way where they get long? */
static bool room_for(struct due_queue *q, struct due__key_shard *it)
{
    uint32_t room = due__load_relaxed(&it->room); /* no edge: a bound */

    if (due__load_relaxed(&it->count) < room) /* no edge: a bound */
        return true;
    return resize(q, it, room > 0 ? 2 * room : ROOM_AT_FIRST) || room > 0;
}

/* The chain will be looked at: into the cache, if it is not another by now. */
static inline void fetch_chain(const struct due__key_shard *it, uint64_t hash)
{
    const struct due__key_chain *chain = due__load_relaxed(&it->chain); /* no edge: a hint */
    uint32_t room = due__load_relaxed(&it->room);                       /* no edge: a hint */

    if (chain != NULL && room > 0)
        __builtin_prefetch((const void *)((uintptr_t)chain + chain_of(hash, room) * sizeof *chain),
                           1);
}

struct due__key *due__key_new(struct due_queue *q, const due_extra *x)
{
    struct due__keys *keys = due__load_acquire(&q->keys); /* K1 */

    if (keys == NULL)
        keys = keys_make(q);
    if (keys == NULL)
        return NULL;
    uint64_t hash = due__siphash(keys->seed, x->key, x->key_len);
    if (!room_for(q, shard_of(keys, hash)))
        return NULL;
    fetch_chain(shard_of(keys, hash), hash);
    struct due__key *key =
        due__payload_new(&q->slab.payloads, offsetof(struct due__key, bytes) + x->key_len);
    if (key == NULL)
        return NULL;
    memset(key, 0, offsetof(struct due__key, bytes));
    key->hash = hash;
    key->term_ns = x->keep_key_ns;
    key->len = (uint8_t)x->key_len;
    key->on_key = (uint8_t)x->on_key;
    if (key->on_key == DUE__KEY_TAKE_OVER)
        key->of.id = ((const struct due__key_taking *)(const void *)x)->from;
    memcpy(key->bytes, x->key, x->key_len);
    return key;
}

/* ---- Within a shard ---- */

struct due__key_shard *due__key_enter(struct due__keys *keys, uint64_t hash)
{
    struct due__key_shard *it = shard_of(keys, hash);

    due__lock_acquire(&it->lock);
    return it;
}

void due__key_leave(struct due_queue *q, struct due__key_shard *it)
{
    struct due__key_chain *spent = it->spent;
    uint32_t room = it->spent_room;

    it->spent = NULL;
    due__lock_release(&it->lock);
    if (spent != NULL)
        due__alloc_free(&q->alloc, spent, room * sizeof *spent);
}

struct due__key_shard *due__key_enter_of(struct due_queue *q, const struct due__key_name *name,
                                         uint32_t number, uint32_t generation)
{
    struct due__key_shard *it =
        due__key_enter(due__load_acquire(&q->keys), name->hash); /* K1: it was found there */
    const struct due__key *key = due__key_find(it, name->bytes, name->len, name->hash);

    if (key != NULL && key->place == number + 1 && key->generation == generation)
        return it;
    due__lock_release(&it->lock);
    return NULL;
}

/* The chain that nodes of this hash are in. */
static inline struct due__key_chain *chain_at(struct due__key_shard *it, uint64_t hash)
{
    if (it->old != NULL) {
        uint32_t at = chain_of(hash, it->old_room);

        if (at >= it->moved)
            return &it->old[at];
    }
    return &it->chain[chain_of(hash, it->room)];
}

/* A node's bit in its chain's filter: of bits that do not choose the chain. */
static inline uint64_t bit_of(uint64_t hash)
{
    return UINT64_C(1) << (hash >> 58);
}

static inline void push(struct due__key_chain *c, struct due__key *key)
{
    key->next = c->first;
    c->first = key;
    c->filter |= bit_of(key->hash);
}

static void refilter(struct due__key_chain *c)
{
    c->filter = 0;
    for (const struct due__key *key = c->first; key != NULL; key = key->next)
        c->filter |= bit_of(key->hash);
}

/* Some chains more of the table that is being left. */
static void move_on(struct due__key_shard *it)
{
    for (uint32_t i = 0; i < MOVES && it->old != NULL; i++) {
        struct due__key *key = NULL;

        if (it->moved < it->old_room) {
            key = it->old[it->moved].first;
            it->old[it->moved++].first = NULL;
        }
        while (key != NULL) {
            struct due__key *next = key->next;

            push(&it->chain[chain_of(key->hash, it->room)], key);
            key = next;
        }
        if (it->moved >= it->old_room) {
            it->spent = it->old;
            it->spent_room = it->old_room;
            it->old = NULL;
        }
    }
}

struct due__key *due__key_find(struct due__key_shard *it, const void *bytes, size_t len,
                               uint64_t hash)
{
    if (it->room == 0)
        return NULL;
    const struct due__key_chain *chain = chain_at(it, hash);
    struct due__key *key = (chain->filter & bit_of(hash)) ? chain->first : NULL;

    while (key != NULL &&
           (key->hash != hash || key->len != len || memcmp(key->bytes, bytes, len) != 0))
        key = key->next;
    return key;
}

static void count(struct due__key_shard *it, uint32_t by)
{
    due__store_relaxed(&it->count, it->count + by); /* no edge: others read it as a bound */
}

void due__key_count_retained(struct due__key_shard *it, uint32_t by)
{
    due__store_relaxed(&it->kept, it->kept + by); /* no edge: others read it as a bound */
}

void due__key_unlink(struct due__key_shard *it, struct due__key *key)
{
    struct due__key_chain *chain = chain_at(it, key->hash);
    struct due__key **at = &chain->first;

    while (*at != key)
        at = &(*at)->next;
    *at = key->next;
    key->next = NULL;
    refilter(chain);
    key->linked = false;
    due__key_count_retained(it, key->place == 0 ? UINT32_MAX : 0);
    count(it, UINT32_MAX);
    move_on(it);
}

void due__key_link(struct due__key_shard *it, struct due__key *key, struct due__key *was)
{
    if (was != NULL)
        due__key_unlink(it, was);
    push(chain_at(it, key->hash), key);
    key->linked = true;
    due__key_count_retained(it, key->place == 0);
    count(it, 1);
    move_on(it);
}

uint32_t due__key_sweep(struct due__key_shard *it, uint32_t chains, uint32_t max, int64_t now_ns,
                        struct due__key **gone)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < chains && i < it->room && it->kept > 0 && n < max; i++) {
        struct due__key_chain *chain = &it->chain[it->hand];
        struct due__key **at = &chain->first;

        while (*at != NULL && n < max) {
            struct due__key *key = *at;

            if (key->place != 0 || key->term_ns > now_ns) {
                at = &key->next;
                continue;
            }
            *at = key->next;
            key->linked = false;
            due__key_count_retained(it, UINT32_MAX);
            count(it, UINT32_MAX);
            key->next = *gone;
            *gone = key;
            n++;
        }
        refilter(chain);
        if (*at == NULL)
            it->hand = (it->hand + 1) & (it->room - 1);
    }
    return n;
}

uint32_t due__keys_take_expired(struct due_queue *q, uint32_t shard, uint32_t chains, uint32_t max,
                                struct due__key **gone)
{
    struct due__keys *keys = due__load_acquire(&q->keys); /* K1 */

    if (keys == NULL || due__load_relaxed(&keys->shard[shard].kept) == 0) /* no edge: a bound */
        return 0;
    int64_t now = due__clock_now(&q->clock);
    struct due__key_shard *it = due__key_enter(keys, shard);
    uint32_t n = due__key_sweep(it, chains, max, now, gone);
    due__key_leave(q, it);
    return n;
}

/* Everything into one table. */
static void move_all(struct due_queue *q, struct due__key_shard *it)
{
    bool left = false;

    while (!left) {
        due__lock_acquire(&it->lock);
        for (uint32_t i = 0; i < SWEEP_PIECE / MOVES; i++)
            move_on(it);
        left = it->old == NULL;
        due__key_leave(q, it);
    }
}

/* The least hash of the chain's kept keys that is not below @from.  False: there is none. */
static bool least_kept(const struct due_queue *q, const struct due__key_chain *chain, uint64_t from,
                       uint64_t *hash)
{
    bool any = false;

    for (const struct due__key *key = chain->first; key != NULL; key = key->next) {
        if (key->hash < from || (any && key->hash >= *hash) || !due__key_is_retained(q, key))
            continue;
        *hash = key->hash;
        any = true;
    }
    return any;
}

static void copy_one(struct due_queue *q, const struct due__key *key,
                     struct due__retained_key *kept)
{
    bool leaves = key->place != 0;

    kept->id = leaves ? due__id(q, key->place - 1, key->generation) : key->of.id;
    kept->until_ns = leaves ? key->kept_ns : key->term_ns;
    if (kept->until_ns == 0) /* for the store that is none */
        kept->until_ns = 1;
    kept->len = key->len;
    memcpy(kept->bytes, key->bytes, key->len);
}

/* Those with that hash, if there are at most @max: how many there are. */
static uint32_t copy_alike(struct due_queue *q, const struct due__key_chain *chain, uint64_t hash,
                           struct due__retained_key *kept, uint32_t max)
{
    uint32_t n = 0;

    for (const struct due__key *key = chain->first; key != NULL; key = key->next) {
        if (key->hash != hash || !due__key_is_retained(q, key))
            continue;
        if (n < max)
            copy_one(q, key, &kept[n]);
        n++;
    }
    return n;
}

/* Of one chain, as far as there is room for them: how many. */
static uint32_t copy_chain(struct due_queue *q, const struct due__key_chain *chain,
                           struct due__keys_at *at, struct due__retained_key *kept, uint32_t max,
                           bool *all)
{
    uint32_t n = 0;
    uint64_t hash = 0;

    *all = false;
    while (least_kept(q, chain, at->hash, &hash)) {
        uint32_t more = copy_alike(q, chain, hash, kept + n, max - n);

        if (more > max - n)
            return n;
        n += more;
        at->hash = hash + 1;
        if (at->hash == 0) /* there is none behind it */
            break;
    }
    *all = true;
    return n;
}

uint32_t due__keys_copy_retained(struct due_queue *q, uint32_t shard, struct due__keys_at *at,
                                 struct due__retained_key *kept, uint32_t max, bool *all)
{
    struct due__keys *keys = due__load_acquire(&q->keys); /* K1 */
    uint32_t n = 0;

    *all = true;
    if (keys == NULL)
        return 0;
    move_all(q, &keys->shard[shard]);
    struct due__key_shard *it = due__key_enter(keys, shard);
    if (at->room != it->room || it->old != NULL) /* another table: once more */
        *at = (struct due__keys_at){ .room = it->room };
    while (*all && at->chain < it->room) {
        n += copy_chain(q, &it->chain[at->chain], at, kept + n, max - n, all);
        if (*all)
            *at = (struct due__keys_at){ .chain = at->chain + 1, .room = it->room };
    }
    if (it->old != NULL) {
        *at = (struct due__keys_at){ 0 };
        *all = false;
    }
    due__key_leave(q, it);
    return n;
}

/* ---- All of them ---- */

/* A piece of a shard is looked at.  Has all of it been? */
static bool sweep_piece(struct due_queue *q, struct due__key_shard *it, uint32_t *looked)
{
    int64_t now = due__clock_now(&q->clock);

    due__lock_acquire(&it->lock);
    for (uint32_t i = 0; i < SWEEP_PIECE / MOVES && it->old != NULL; i++)
        move_on(it);
    struct due__key *gone = NULL;
    if (it->old == NULL) {
        due__key_sweep(it, SWEEP_PIECE, UINT32_MAX, now, &gone);
        *looked += SWEEP_PIECE;
    }
    bool over = it->kept == 0 || *looked >= it->room;
    due__key_leave(q, it);
    due__key_drop(q, gone);
    return over;
}

/* A table that has become far too large.  Without memory for another it stays as it is. */
static void shrink(struct due_queue *q, struct due__key_shard *it)
{
    uint32_t room = due__load_relaxed(&it->room);   /* no edge: a bound */
    uint32_t count = due__load_relaxed(&it->count); /* no edge: a bound */

    if (room > ROOM_AT_FIRST && count < room / 8 && resize(q, it, room / 4))
        move_all(q, it);
}

void due__keys_sweep(struct due_queue *q)
{
    struct due__keys *keys = due__load_acquire(&q->keys); /* K1 */

    for (size_t i = 0; keys != NULL && !q->journal->keeps_keys && i < DUE__KEY_SHARDS; i++) {
        struct due__key_shard *it = &keys->shard[i];
        uint32_t looked = 0;

        while (!sweep_piece(q, it, &looked))
            ;
        shrink(q, it);
    }
}

static void chains_free(struct due_queue *q, struct due__key_chain *chain, uint32_t room,
                        bool forked)
{
    for (uint32_t i = 0; chain != NULL && i < room; i++) {
        while (chain[i].first != NULL) {
            struct due__key *key = chain[i].first;

            chain[i].first = key->next;
            if (key->place == 0 && forked)
                due__payload_drop(&q->slab.payloads, key, key_bytes(key));
            else if (key->place == 0)
                due__payload_free(&q->slab.payloads, key, key_bytes(key));
        }
    }
    if (chain != NULL)
        due__alloc_free(&q->alloc, chain, room * sizeof *chain);
}

void due__keys_free(struct due_queue *q, bool forked)
{
    struct due__keys *keys = due__load_acquire(&q->keys); /* K1 */

    if (keys == NULL)
        return;
    for (size_t i = 0; i < DUE__KEY_SHARDS; i++) {
        struct due__key_shard *it = &keys->shard[i];

        if (it->old != NULL)
            chains_free(q, it->old, it->old_room, forked);
        chains_free(q, it->chain, it->room, forked);
        if (!forked)
            due__lock_destroy(&it->lock);
    }
    due__alloc_region_free(&q->alloc, keys, sizeof *keys);
}

void due__key_drop_forked(struct due_queue *q, struct due__key *key)
{
    due__payload_drop(&q->slab.payloads, key, key_bytes(key));
}
