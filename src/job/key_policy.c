/* key_policy.c - what an enqueue finds its key to be, and whether it can have it.
 *
 * Edges      described elsewhere: J1 slab.h, K1 key_table.c, R2 lease.c
 */
#include "job/key_policy.h"

#include "job/lease.h"
#include "os/atomic.h"
#include "queue/extras.h"

static enum due__finding judge_live(struct due_queue *q, uint32_t number, uint8_t on_key)
{
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */

    if (on_key == DUE_KEY_REFUSE)
        return DUE__KEY_TAKEN;
    switch (due__word_state(w)) {
    case DUE__SENT:
    case DUE__CHANGING:
        return DUE__KEY_UNSETTLED;
    case DUE__WAITING:
    case DUE__DEAD:
        if (w & q->journal->unsent)
            return DUE__KEY_UNSETTLED;
        return on_key != DUE_KEY_EARLIEST && due__key_held_by_lease(q, number, w)
                   ? DUE__KEY_TO_BE_HAD
                   : DUE__KEY_TO_CHANGE;
    case DUE__MOVING:
        return DUE__KEY_TO_CHANGE; /* when it has been moved */
    case DUE__LEASED:
        return due__lapsed(q, number, w) ? DUE__KEY_LAPSED : DUE__KEY_TO_BE_HAD;
    default:
        return DUE__KEY_TO_BE_HAD;
    }
}

enum due__finding due__key_judge(struct due_queue *q, const struct due__key *was, uint8_t on_key)
{
    if (was == NULL)
        return DUE__KEY_TO_BE_HAD;
    if (was->place == 0)
        return was->term_ns > due__clock_now(&q->clock) ? DUE__KEY_TAKEN : DUE__KEY_TO_BE_HAD;
    if (was->gone)
        return was->gone_kept ? DUE__KEY_TAKEN : DUE__KEY_TO_BE_HAD;
    return judge_live(q, was->place - 1, on_key);
}

bool due__key_submit(struct due_queue *q, const struct due__fresh *it, struct due__submission *a)
{
    struct due__key *key = due__extras_at(it->job)->key;
    struct due__key_shard *shard =
        due__key_enter(due__load_acquire(&q->keys), key->hash); /* K1 of key_table.c */
    struct due__key *was = due__key_find(shard, key->bytes, key->len, key->hash);
    bool free = due__key_judge(q, was, key->on_key) == DUE__KEY_TO_BE_HAD;
    bool kept = was != NULL && was->place == 0;

    if (free) {
        key->place = it->number + 1;
        key->generation = it->generation;
        key->over_kept = q->journal->keeps_keys && kept;
        if (key->over_kept) {
            key->of.id = was->of.id;
            key->kept_ns = was->term_ns;
        } else if (!kept) {
            key->of.under = was;
        }
        due__key_link(shard, key, was);
        q->journal->put(q, it, a);
    }
    due__key_leave(q, shard);
    if (free && kept)
        due__key_drop(q, was);
    return free;
}
