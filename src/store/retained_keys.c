/* retained_keys.c - kept keys, to the store and back from it.
 *
 * A key whose time is over is taken out of the table when the batch that tells the store is
 * written.  Jobs that get such a key were left in the inbox before, and then it was theirs and no
 * longer in the table; or after, and then they are sent after it.  If that batch is refused, these
 * stand over a key that the store keeps still, and what was written of them is written anew.
 *
 * Guards     K  the key (sender.c)      O  its owner's alone
 */
#include "store/retained_keys.h"

#include <string.h>

#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

#define SHARDS_AT_ONCE  4u /* looked at for each batch */
#define CHAINS_AT_LEAST 16u
#define COPIES          8u
#define PAGE_KEYS       512u

/* ---- What is over ---- */

static void forget(struct due__batch *b, const struct due__key *key)
{
    b->changes[b->send++] = (due_change){
        .kind = DUE_CHANGE_FORGET,
        .record = { .id = key->of.id, .topic = "", .key = key->bytes, .key_len = key->len }
    };
}

/* It is in the table again, as the store keeps it still.  False: its key is somebody's by now. */
static bool put_back(struct due_queue *q, struct due__key *key)
{
    key->next = NULL;
    bool again = due__key_relink(q, key);
    if (!again)
        due__key_drop(q, key);
    return again;
}

/* May the store have a job again whose key it keeps, as after a loss that no process has seen to
 * its end?  Then the batch may be about that job, and another one forgets its key (N2 of sender.c).
 */
static bool is_named(struct due_queue *q, const struct due__batch *b, due_id id)
{
    uint32_t number;
    uint32_t generation;

    return due__index_find(&q->commits->index, id, &number, &generation) &&
           due__batch_names(b, b->send, id);
}

static void forget_some(struct due_queue *q, struct due__batch *b)
{
    struct due__commits *c = q->commits;
    uint32_t chains = CHAINS_AT_LEAST + 4 * b->send;
    uint32_t room = (uint32_t)c->info.batch_changes;

    for (uint32_t i = 0; i < SHARDS_AT_ONCE && b->send < room; i++) {
        struct due__key *expired = NULL;

        c->forget_at = (c->forget_at + 1) % DUE__KEY_SHARDS;
        due__keys_take_expired(q, c->forget_at, chains, room - b->send, &expired);
        while (expired != NULL) {
            struct due__key *key = expired;

            expired = key->next;
            if (is_named(q, b, key->of.id)) {
                put_back(q, key);
                continue;
            }
            key->next = b->forgot;
            b->forgot = key;
            forget(b, key);
        }
    }
}

/* ---- What was lost ---- */

const struct due__key *due__retained_copy(struct due_queue *q, struct due__batch *b,
                                          const void *key, size_t len)
{
    due_extra its = { DUE_EXTRA_INIT, .key = key, .key_len = len };
    struct due__key *copy = due__key_new(q, &its);

    if (copy != NULL) {
        copy->next = b->keeping;
        b->keeping = copy;
    }
    return copy;
}

static bool keep(struct due_queue *q, struct due__batch *b, const struct due__retained_key *kept)
{
    const struct due__key *copy = due__retained_copy(q, b, kept->bytes, kept->len);

    if (copy == NULL)
        return false;
    b->changes[b->send++] = (due_change){
        .kind = DUE_CHANGE_KEEP,
        .key_kept_ns = kept->until_ns,
        .record = { .id = kept->id, .topic = "", .key = copy->bytes, .key_len = copy->len }
    };
    return true;
}

/* Also those that are over and not forgotten yet: the store may have lost that somebody took such a
 * key over from a job that lives, and then it is that job's again.  Of a shard that grows meanwhile
 * all are looked at once more: what is in the batch already is for the next one (N2 of sender.c).
 */
static void keep_some(struct due_queue *q, struct due__batch *b)
{
    struct due__commits *c = q->commits;
    struct due__retained_key kept[COPIES];
    uint32_t room = (uint32_t)c->info.batch_changes;

    while (c->keep_shard < DUE__KEY_SHARDS && room - b->send > 0) {
        uint32_t max = room - b->send < COPIES ? room - b->send : COPIES;
        struct due__keys_at before = c->keep_at;
        bool all;
        uint32_t n = due__keys_copy_retained(q, c->keep_shard, &c->keep_at, kept, max, &all);

        for (uint32_t i = 0; i < n; i++) {
            bool twice = due__batch_names(b, b->send, kept[i].id);

            if (twice || !keep(q, b, &kept[i])) {
                c->keep_at = before;
                c->later |= !twice;
                return;
            }
        }
        if (n == 0 && !all) /* they do not fit */
            return;
        if (all) {
            c->keep_shard++;
            c->keep_at = (struct due__keys_at){ 0 };
        }
    }
}

void due__retained_write(struct due_queue *q, struct due__batch *b)
{
    struct due__commits *c = q->commits;

    if (due__load_acquire(&q->keys) == NULL) { /* K1 of key_table.c */
        c->keep_shard = DUE__KEY_SHARDS;
        return;
    }
    if (!c->later)
        keep_some(q, b);
    if (b->keeping == NULL) /* one of those may be over by now: two changes of one key */
        forget_some(q, b);
    c->keys_late = b->send >= c->info.batch_changes;
}

void due__retained_end(struct due_queue *q, struct due__batch *b, int rc)
{
    struct due__commits *c = q->commits;
    struct due__key *key = b->forgot;

    b->forgot = NULL;
    while (key != NULL) {
        struct due__key *next = key->next;

        key->next = NULL;
        if (rc == 0)
            due__key_drop(q, key);
        else if (!put_back(q, key) && b == c->now)
            due__batch_unwrite(c->next);
        key = next;
    }
    if (rc != 0 && b->keeping != NULL)
        due__retained_again(c);
    c->later |= rc != 0 && b->keeping != NULL;
    due__key_drop(q, b->keeping);
    b->keeping = NULL;
}

bool due__retained_pending(const struct due__commits *c)
{
    return c->keep_shard < DUE__KEY_SHARDS && !c->later;
}

void due__retained_again(struct due__commits *c)
{
    c->keep_shard = 0;
    c->keep_at = (struct due__keys_at){ 0 };
}

/* ---- Reading ---- */

/* It is in no table: the batch is on its way, and if it is refused the key is put back. */
static bool is_forgotten(const struct due__batch *b, const void *name, size_t len, due_id id)
{
    for (const struct due__key *key = b->forgot; key != NULL; key = key->next)
        if (due_id_equal(key->of.id, id) && key->len == len && memcmp(key->bytes, name, len) == 0)
            return true;
    return false;
}

static int visit(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct due_queue *q = ctx;
    const struct due__commits *c = q->commits;
    due_extra its = { DUE_EXTRA_INIT, .key = key, .key_len = len, .keep_key_ns = until_ns };

    if (len == 0 || len > DUE_KEY_MAX || until_ns < 0)
        return DUE_ECORRUPT;
    if (is_forgotten(c->now, key, len, id) || is_forgotten(c->next, key, len, id))
        return 0;
    struct due__key *kept = due__key_new(q, &its);
    if (kept == NULL)
        return DUE_ENOMEM;
    kept->of.id = id;
    due__key_restore(q, kept, id);
    return 0;
}

int due__retained_load(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    return c->store->verbs->keys(c->store, c->rewind, PAGE_KEYS, visit, q, until_ns);
}

/* ---- What came back ---- */

/* What is to be forgotten of it. */
struct purge {
    struct due_queue *q; /* O */
    size_t n;            /* O */
};

/* The store shows a kept key after everything was put again: one that the queue does not know of
 * was forgotten before. */
static int purge(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct purge *p = ctx;
    struct due__batch *b = p->q->commits->now;

    (void)until_ns;
    if (len == 0 || len > DUE_KEY_MAX || due__key_may_be_retained(p->q, key, len))
        return 0;
    if (due__batch_names(b, p->n, id)) /* as in restore.c */
        return 0;
    if (p->n == p->q->commits->info.batch_changes)
        return DUE_EAGAIN; /* it is shown again */
    const struct due__key *copy = due__retained_copy(p->q, b, key, len);
    if (copy == NULL)
        return DUE_ENOMEM;
    b->changes[p->n++] = (due_change){
        .kind = DUE_CHANGE_FORGET,
        .record = { .id = id, .topic = "", .key = copy->bytes, .key_len = copy->len }
    };
    return 0;
}

int due__retained_purge(struct due_queue *q, size_t max, int64_t until_ns, size_t *forgotten)
{
    struct due__commits *c = q->commits;
    struct purge p = { .q = q };

    int rc = c->store->verbs->keys(c->store, c->rewind, max, purge, &p, until_ns);
    *forgotten = p.n;
    return rc;
}
