/* owner.c - whose a key is: what becomes of it with its job, and what a store is told of it.
 *
 * A key can be taken over from a job that takes it over itself: C from B, which was cancelled
 * before it was sent and is about to end, and B from A.  These stand in a row, C first and in the
 * table, each pointing to the one under it.  Whichever ends first is taken out of the row, so that
 * what C gives back, should the store refuse it, is what it was before all of them.  In a queue of
 * memory nobody is refused after that, so there are no rows: what was taken over is gone for good.
 *
 * Guards     X  the lock of the key's shard      O  whoever owns the job
 *
 * Edges      described elsewhere: J1 job.h, K1 keys.c
 *
 * Always     N1  a node under another one has the same bytes, is not in the table, and its job has
 *                not ended
 *            N2  of the jobs of a row only the first can be on its way to the store still; all
 *                others but the last are about to end, without having been there
 */
#include <string.h>

#include "atomic.h"
#include "core.h"
#include "front.h"
#include "keys.h"

#define SWEEPS 4u /* chains looked at by each key that comes to be kept */

/* What stands under @key, if it is another job's. */
static struct due__key *under(const struct due__key *key)
{
    return key->place != 0 && !key->over_kept ? key->of.under : NULL;
}

/* Of the row that ends with @key, which is not in the table, the node right above; or NULL: the key
 * was taken over for good.  @first: the one in the table. */
static struct due__key *heir_of(struct due__key *first, const struct due__key *key)
{
    while (first != NULL && under(first) != key)
        first = under(first);
    return first;
}

/* The key is not the job's any more: it is whose it was before, if the store has not heard of the
 * job.  What is to go. */
static struct due__key *give_back(struct due__key_shard *it, struct due__key *key)
{
    if (!key->linked) {
        struct due__key *heir = heir_of(due__key_find(it, key->bytes, key->len, key->hash), key);

        if (heir != NULL) { /* it takes over from whom this one did */
            heir->of = key->of;
            heir->over_kept = key->over_kept;
        }
    } else if (key->over_kept) {
        key->term_ns = 0; /* so that the store is told to forget it */
        key->over_kept = false;
        key->place = 0;
        due__key_count_kept(it, 1);
        return NULL;
    } else if (key->of.under != NULL) {
        due__key_link(it, key->of.under, key);
    } else {
        due__key_unlink(it, key);
    }
    return key;
}

/* The node becomes the table's own. */
static void keep(struct due__key_shard *it, struct due__key *key, due_id id, int64_t now_ns)
{
    key->term_ns = due__time_add(now_ns, key->term_ns);
    key->of.id = id;
    key->place = 0;
    due__key_count_kept(it, 1);
}

static void end(struct due_queue *q, struct due__key *key, bool done)
{
    bool keeps = done && key->term_ns > 0;
    int64_t now = keeps ? due__clock_now(&q->clock) : 0;
    struct due__key *gone = NULL;
    due_id id = { { 0 } };

    if (keeps)
        id = due__id(q, key->place - 1, key->generation);
    struct due__key_shard *it =
        due__key_enter(due__load_acquire(&q->keys), key->hash); /* K1 of keys.c */
    if (keeps && key->linked) {
        keep(it, key, id, now);
        if (q->commits == NULL) /* else what is not kept any more must leave the store, too */
            due__key_sweep(it, SWEEPS, UINT32_MAX, now, &gone);
    } else {
        gone = give_back(it, key);
    }
    due__key_leave(q, it);
    due__key_drop(q, gone);
}

static void end_of(struct due_queue *q, struct due__front *front, bool done)
{
    struct due__key *key = front != NULL ? front->key : NULL;

    if (key == NULL)
        return;
    front->key = NULL;
    end(q, key, done);
}

void due__key_end(struct due_queue *q, uint32_t number, bool done)
{
    end_of(q, due__front_of(due__job_at(&q->slab, number)), done);
}

void due__key_undo(struct due_queue *q, struct due__front *front)
{
    end_of(q, front, false);
}

void due__key_settled(struct due_queue *q, uint32_t number)
{
    const struct due__front *front = due__front_of(due__job_at(&q->slab, number));
    struct due__key *key = front != NULL ? front->key : NULL;

    if (key == NULL)
        return;
    struct due__key_shard *it =
        due__key_enter(due__load_acquire(&q->keys), key->hash); /* K1 of keys.c */
    key->of.under = NULL;
    key->over_kept = false;
    due__key_leave(q, it);
}

bool due__key_lost(const struct due_queue *q, const struct due__key *key)
{
    struct due__key_shard *it =
        due__key_enter(due__load_acquire(&q->keys), key->hash); /* K1 of keys.c */
    bool lost = !key->linked;

    due__lock_release(&it->lock);
    return lost;
}

struct due__key_told due__key_tell(struct due_queue *q, const struct due__key *key)
{
    struct due__key_shard *it =
        due__key_enter(due__load_acquire(&q->keys), key->hash); /* K1 of keys.c */
    struct due__key_told told = { .has = key->linked,
                                  .has_here = key->linked,
                                  .was_kept = key->over_kept };

    if (!key->linked) {
        struct due__key *first = due__key_find(it, key->bytes, key->len, key->hash);

        if (heir_of(first, key) != NULL) { /* N2: none but the first can be on its way */
            uint64_t w = due__load_acquire(&due__job_at(&q->slab, first->place - 1)->word); /* J1 */
            told.has_here = due__word_state(w) != DUE__SENT;
        }
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
        due__key_enter(due__load_acquire(&q->keys), key->hash); /* K1 of keys.c */
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

bool due__key_relink(struct due_queue *q, struct due__key *key)
{
    struct due__key_shard *it =
        due__key_enter(due__load_acquire(&q->keys), key->hash); /* K1 of keys.c */
    bool none = due__key_find(it, key->bytes, key->len, key->hash) == NULL;

    if (none)
        due__key_link(it, key, NULL);
    due__key_leave(q, it);
    return none;
}
