/* journal.c - the journal of a queue with a store: changes are sent, and applied when they have
 * landed.
 *
 * Edges      described elsewhere: G2 sender.c, J1 slab.h, Q7 takings.c
 */
#include "queue/journal.h"

#include "job/amend.h"
#include "job/apply.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"
#include "store/share.h"

static int stored_unsettled(struct due_queue *q, uint32_t number, uint32_t generation,
                            uint64_t news, struct due__deadline *by, bool *inside)
{
    (void)number;
    (void)generation;
    (void)inside;
    return due__commit_await(q, news + 1, by);
}

static void stored_leave(struct due_queue *q, uint32_t number, enum due__purpose purpose)
{
    due__commit_submit(q, number, purpose, 0, NULL);
    due__commit_go(q, NULL, 0);
}

static void stored_end_unsent(struct due_queue *q, uint32_t number, enum due__purpose purpose)
{
    struct due__change c = { .number = number,
                             .purpose = (uint8_t)purpose,
                             .waited = purpose == DUE__LEND };
    uint64_t bytes = due__unsettled_of(q, number);

    due__change_end(q, &c);
    due__commit_given_up(q, bytes);
}

static void stored_given_up(struct due_queue *q)
{
    due__commit_given_up(q, 0);
}

static void stored_forget(struct due_queue *q, uint32_t number)
{
    due__index_remove(&q->commits->index, number);
}

static void stored_prefetch_end(struct due_queue *q, uint32_t number)
{
    due__index_prefetch(&q->commits->index, number);
}

static void stored_prefetch_id(struct due_queue *q, uint32_t number)
{
    __builtin_prefetch(due__stored_at(q->commits, number));
}

static due_id stored_id(const struct due_queue *q, uint32_t number)
{
    return due__stored_id(due__stored_at(q->commits, number));
}

static int stored_find(struct due_queue *q, due_id id, struct due__deadline *by, uint32_t *number,
                       uint32_t *generation)
{
    if (by != NULL)
        return due__commit_find(q, id, by, number, generation);
    return due__index_find(&q->commits->index, id, number, generation) ? 0 : DUE_ENOENT;
}

static int stored_state(const struct due_queue *q)
{
    return due__load_seq(&q->commits->fenced) ? DUE_EFENCED : 0; /* G2 */
}

static bool stored_loading(const struct due_queue *q)
{
    return due__reader_loads(q->commits);
}

static uint32_t stored_left(const struct due_queue *q, bool *coming)
{
    uint32_t ready = due__load_seq(&q->commits->takings_ready); /* Q7 */

    *coming = due__load_seq(&q->commits->takings_under_way) > 0; /* Q7 */
    return ready;
}

static uint64_t stored_landed(const struct due_queue *q)
{
    return due__load_seq(&q->commits->landed); /* Q7 */
}

static uint64_t stored_news(const struct due_queue *q)
{
    return due__commit_news(q->commits);
}

static void stored_interrupt(struct due_queue *q)
{
    q->commits->store->verbs->interrupt(q->commits->store);
    if (q->shared)
        q->commits->share->verbs->wake(q->commits->store); /* X3 of share_claim.c */
}

static bool stored_store_stats(struct due_queue *q, struct due_store_stats *s)
{
    q->commits->store->verbs->stats(q->commits->store, s);
    return true;
}

static bool stored_has(const struct due_queue *q, uint32_t number)
{
    return due__stored_at(q->commits, number)->stored != DUE__NOT_STORED;
}

static bool stored_closed(const struct due_queue *q)
{
    return due__load_seq(&q->commits->stopped) != 0; /* G2 */
}

/* Has it left the store for nobody, and could not be put in again?  Only once nothing is sent any
 * more that stays so. */
static bool stored_lacks(const struct due_queue *q, uint32_t number)
{
    return stored_closed(q) && due__stored_at(q->commits, number)->stored >= DUE__TO_STORE;
}

static int64_t stored_now(const struct due_queue *q)
{
    return q->shared ? due__sharing_now(q) : due__clock_now(&q->clock);
}

static int stored_hold_back(struct due_queue *q, int topic, int64_t paused, int64_t held_max)
{
    if (q->journal->closed(q))
        return DUE_ECLOSED;
    return q->shared ? due__sharing_hold_back(q, topic, paused, held_max)
                     : due__settings_hold_back(q, topic, paused, held_max);
}

const struct due__journal due__stored_journal = {
    .unsent = DUE__LINKED,
    .no_round = DUE__LEAVE,
    .left_text = "left in the store",
    .proxy = due__commit_proxy,
    .keeps_jobs = true,
    .takes_time = true,
    .fixed_priority = true,
    .keeps_keys = true,
    .change = due__commit_one,
    .change_all = due__commit_all,
    .amend = due__amend_claimed,
    .amend_all = due__amend_all_claimed,
    .unsettled = stored_unsettled,
    .leave = stored_leave,
    .end_unsent = stored_end_unsent,
    .given_up = stored_given_up,
    .stop = due__commits_stop,
    .close = due__commits_close,
    .refuse = due__commit_refuse,
    .free = due__commits_free,
    .undo = due__commits_undo,
    .stats = due__commits_stats,
    .store_stats = stored_store_stats,
    .flush = due__commit_flush,
    .loaded = due__commit_loaded,
    .whole = due__commit_whole,
    .forget = stored_forget,
    .prefetch_end = stored_prefetch_end,
    .prefetch_id = stored_prefetch_id,
    .id = stored_id,
    .find = stored_find,
    .put = due__submit_fresh,
    .state = stored_state,
    .loading = stored_loading,
    .left = stored_left,
    .asked = due__sharing_is_asked,
    .landed = stored_landed,
    .news = stored_news,
    .held = due__commit_held,
    .interrupt = stored_interrupt,
    .has = stored_has,
    .wanted = due__proxy_call,
    .lapse = due__sharing_lapse,
    .extending = due__sharing_extending,
    .follows = due__commit_follows,
    .ask = due__sharing_ask,
    .hold_back = stored_hold_back,
    .extend_mark = due__sharing_extend_mark,
    .extend_undo = due__sharing_extend_undo,
    .now = stored_now,
    .late = due__sharing_late,
    .closed = stored_closed,
    .lacks = stored_lacks,
};
