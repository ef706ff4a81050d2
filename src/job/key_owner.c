/* key_owner.c - whose a key is: what becomes of it with its job, and what a store is told of it.
 *
 * A key can be taken over from a job that takes it over itself: C from B, which was cancelled
 * before it was sent and is about to end, and B from A.  These stand in a row, C first and in the
 * table, each pointing to the one under it.  Whichever ends first is taken out of the row, so that
 * what C gives back, should the store refuse it, is what it was before all of them.  In a queue of
 * memory only a close refuses C after that; once B has ended otherwise, what it took over is gone
 * for good.
 *
 * Guards     X  the lock of the key's shard      O  whoever owns the job
 *
 * Edges      described elsewhere: J1 slab.h, K1 key_table.c
 *
 * Always     N1  a node under another one has the same bytes, is not in the table, and its job has
 *                not ended
 *            N2  with a store only the first of the jobs of a row can be on its way there still;
 *                all others but the last are about to end, without having been there
 */
#include <string.h>

#include "job/key_table.h"
#include "os/atomic.h"
#include "os/siphash.h"
#include "queue/extras.h"
#include "queue/queue.h"

#define SWEEPS 4u /* chains looked at by each key that comes to be kept */

/* What stands under @key, if it is another job's. */
static struct due__key *under(const struct due__key *key)
{
    return key->place != 0 && !key->over_kept ? key->of.under : NULL;
}

/* Of the row that ends with @key, which is not in the table, the node right above; or NULL: the key
 * was taken over for good.  @first: the one in the table. */
static struct due__key *successor_of(struct due__key *first, const struct due__key *key)
{
    while (first != NULL && under(first) != key)
        first = under(first);
    return first;
}

/* The key is not the job's any more: it is whose it was before, if the job has been refused.  What
 * is to go. */
static struct due__key *give_back(struct due__key_shard *it, struct due__key *key)
{
    if (!key->linked) {
        struct due__key *successor =
            successor_of(due__key_find(it, key->bytes, key->len, key->hash), key);

        if (successor != NULL) { /* it takes over from whom this one did */
            successor->of = key->of;
            successor->over_kept = key->over_kept;
            successor->kept_ns = key->kept_ns;
        }
    } else if (key->over_kept) {
        key->term_ns = key->kept_ns; /* when that is over the store is told to forget it */
        key->over_kept = false;
        key->place = 0;
        due__key_count_retained(it, 1);
        return NULL;
    } else if (key->of.under != NULL) {
        due__key_link(it, key->of.under, key);
    } else {
        due__key_unlink(it, key);
    }
    return key;
}

/* With a store: it is kept if the store keeps it, whatever has become of the job here. */
static struct due__key *end_stored(struct due_queue *q, struct due__key_shard *it,
                                   struct due__key *key, bool done)
{
    if (!key->over_kept && key->kept_ns > 0) {
        key->over_kept = true;
        key->of.id = due__id(q, key->place - 1, key->generation);
        if (!done) /* it is to be forgotten there */
            key->kept_ns = 0;
    }
    return give_back(it, key);
}

/* Without: the node becomes the table's own. */
static struct due__key *keep(struct due__key_shard *it, struct due__key *key, int64_t now_ns)
{
    struct due__key *gone = NULL;

    key->term_ns = due__time_add(now_ns, key->term_ns);
    key->place = 0;
    due__key_count_retained(it, 1);
    due__key_sweep(it, SWEEPS, UINT32_MAX, now_ns, &gone);
    return gone;
}

/* @refused: the job has never been in the queue, as far as anybody was told. */
static void end(struct due_queue *q, struct due__key *key, bool done, bool refused)
{
    bool keeps = !q->journal->keeps_keys && done && key->term_ns > 0;
    int64_t now = keeps ? due__clock_now(&q->clock) : 0;
    struct due__key *gone;
    due_id id = { { 0 } };

    if (keeps)
        id = due__id(q, key->place - 1, key->generation);
    struct due__key_shard *it =
        due__key_enter(due__load_acquire(&q->keys), key->hash); /* K1 of key_table.c */
    if (!q->journal->keeps_keys && !refused)
        key->of.under = NULL;
    if (q->journal->keeps_keys) {
        gone = end_stored(q, it, key, done);
    } else if (keeps && key->linked) {
        key->of.id = id;
        gone = keep(it, key, now);
    } else {
        gone = give_back(it, key);
    }
    due__key_leave(q, it);
    due__key_drop(q, gone);
}

static void end_of(struct due_queue *q, struct due__extras *extras, bool done, bool refused)
{
    struct due__key *key = extras != NULL ? extras->key : NULL;

    if (key == NULL)
        return;
    extras->key = NULL;
    end(q, key, done, refused);
}

void due__key_end(struct due_queue *q, uint32_t number, bool done)
{
    end_of(q, due__extras_of(due__job_at(&q->slab, number)), done, false);
}

void due__key_undo(struct due_queue *q, struct due__extras *extras)
{
    end_of(q, extras, false, true);
}

/* The shard of a job's key, entered; NULL: it has none.  The job is the caller's. */
static struct due__key_shard *enter_of(struct due_queue *q, uint32_t number, struct due__key **key)
{
    const struct due__extras *extras = due__extras_of(due__job_at(&q->slab, number));

    *key = extras != NULL ? extras->key : NULL;
    if (*key == NULL)
        return NULL;
    return due__key_enter(due__load_acquire(&q->keys), (*key)->hash); /* K1 of key_table.c */
}

void due__key_settled(struct due_queue *q, uint32_t number)
{
    struct due__key *key;
    struct due__key_shard *it = enter_of(q, number, &key);

    if (it == NULL)
        return;
    key->of.under = NULL;
    key->over_kept = false;
    key->kept_ns = 0;
    due__key_leave(q, it);
}

void due__key_gone(struct due_queue *q, uint32_t number, bool done)
{
    struct due__key *key;
    struct due__key_shard *it = enter_of(q, number, &key);

    if (it == NULL)
        return;
    key->gone = true;
    key->gone_kept = done && key->term_ns > 0;
    due__key_leave(q, it);
}

void due__key_stays(struct due_queue *q, uint32_t number)
{
    struct due__key *key;
    struct due__key_shard *it = enter_of(q, number, &key);

    if (it == NULL)
        return;
    key->gone = key->gone_kept = false;
    due__key_leave(q, it);
}

void due__key_retained(struct due_queue *q, uint32_t number, int64_t until_ns)
{
    struct due__key *key;
    struct due__key_shard *it = enter_of(q, number, &key);

    if (it == NULL)
        return;
    key->kept_ns = until_ns;
    key->returns = false;
    due__key_leave(q, it);
}

bool due__key_is_retained(const struct due_queue *q, const struct due__key *key)
{
    if (key->place == 0)
        return true;
    return !key->over_kept && key->kept_ns > 0 && !key->returns &&
           !q->journal->has(q, key->place - 1);
}

void due__key_returns(struct due_queue *q, uint32_t number)
{
    struct due__key *key;
    struct due__key_shard *it = enter_of(q, number, &key);

    if (it == NULL)
        return;
    key->returns = true;
    due__key_leave(q, it);
}

bool due__key_lost(const struct due_queue *q, const struct due__key *key)
{
    if (q->shared)
        return false; /* as far as is known here */
    struct due__key_shard *it =
        due__key_enter(due__load_acquire(&q->keys), key->hash); /* K1 of key_table.c */
    bool lost = !key->linked;

    due__lock_release(&it->lock);
    return lost;
}

/* May the store keep it, for a job that @key or one under it has taken it over from?  A removal
 * that is on its way there may just come to that. */
static bool may_be_kept(const struct due__key *key)
{
    bool kept = key->kept_ns > 0;

    for (; key != NULL; key = under(key)) {
        const struct due__key *from = under(key);

        kept |= key->over_kept || (from != NULL && from->term_ns > 0);
    }
    return kept;
}

bool due__key_may_be_retained(struct due_queue *q, const void *bytes, size_t len)
{
    struct due__keys *keys = due__load_acquire(&q->keys); /* K1 of key_table.c */

    if (keys == NULL)
        return false;
    uint64_t hash = due__siphash(keys->seed, bytes, len);
    struct due__key_shard *it = due__key_enter(keys, hash);
    const struct due__key *first = due__key_find(it, bytes, len, hash);
    bool kept = first != NULL && (first->place == 0 || may_be_kept(first));
    due__key_leave(q, it);
    return kept;
}

struct due__key_told due__key_tell(struct due_queue *q, const struct due__key *key)
{
    struct due__key_shard *it =
        due__key_enter(due__load_acquire(&q->keys), key->hash); /* K1 of key_table.c */
    struct due__key_told told = { .has = key->linked, .was_kept = may_be_kept(key) };

    if (!key->linked) {
        struct due__key *first = due__key_find(it, key->bytes, key->len, key->hash);

        if (successor_of(first, key) != NULL) /* N2: none but the first can be on its way */
            told.by = first->place;
        told.free = first == NULL;
    }
    due__key_leave(q, it);
    return told;
}

/* Was the job @a enqueued later than @b?  The first byte of a stored id is its priority. */
static bool later(due_id a, due_id b)
{
    return memcmp(a.byte + 1, b.byte + 1, sizeof a.byte - 1) > 0;
}

void due__key_restore(struct due_queue *q, struct due__key *key, due_id id)
{
    struct due__key_shard *it =
        due__key_enter(due__load_acquire(&q->keys), key->hash); /* K1 of key_table.c */
    struct due__key *was = due__key_find(it, key->bytes, key->len, key->hash);
    struct due__key *gone = key->place == 0 ? key : NULL;
    due_id had = { { 0 } };

    if (was != NULL)
        had = was->place != 0 ? due__id(q, was->place - 1, was->generation) : was->of.id;
    if (was == NULL || later(id, had)) {
        due__key_link(it, key, was);
        gone = was != NULL && was->place == 0 ? was : NULL;
    }
    due__key_leave(q, it);
    due__key_drop(q, gone);
}

/* Who has the key got it when it was nobody's, and is not in the store yet: so it stands over what
 * the store keeps. */
static void put_under(struct due__key *first, const struct due__key *kept)
{
    while (under(first) != NULL)
        first = under(first);
    if (first->place == 0 || first->over_kept)
        return;
    first->over_kept = true;
    first->of.id = kept->of.id;
    first->kept_ns = kept->term_ns;
}

bool due__key_relink(struct due_queue *q, struct due__key *key)
{
    struct due__key_shard *it =
        due__key_enter(due__load_acquire(&q->keys), key->hash); /* K1 of key_table.c */
    struct due__key *first = due__key_find(it, key->bytes, key->len, key->hash);

    if (first == NULL)
        due__key_link(it, key, NULL);
    else
        put_under(first, key);
    due__key_leave(q, it);
    return first == NULL;
}
