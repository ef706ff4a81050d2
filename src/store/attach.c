/* attach.c - a stored queue's way to its store: opening it, and giving it up. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"
#include "store/share.h"

#define STORE_TIMEOUT_NS    DUE_S(5)
#define OPEN_TIMEOUT_NS     DUE_S(15)
#define CLOSE_NS            DUE_MS(250) /* for telling the store that we are gone */
#define SETTLE_NS           DUE_S(1)    /* for a claim in doubt to be seen through */
#define UNSETTLED_MAX       100000u
#define UNSETTLED_BYTES_MAX ((uint64_t)256 << 20)
#define CHANGES_MAX         65536u /* of one batch, whatever the store says */

static int64_t queue_now(void *clock)
{
    return due__clock_now(clock);
}

static void queue_log(void *queue, enum due_log_level level, const char *text)
{
    struct due_queue *q = queue;

    due__log(q, level, "%s: %s", q->name, text);
}

static void settings(struct due__commits *c, const due_options *o)
{
    c->store = o->store;
    c->async = o->confirm == DUE_CONFIRM_ASYNC;
    c->timeout_ns = o->store_timeout_ns > 0 ? o->store_timeout_ns : STORE_TIMEOUT_NS;
    c->unsettled_max = o->unsettled_max > 0 ? o->unsettled_max : UNSETTLED_MAX;
    c->unsettled_bytes_max =
        o->unsettled_bytes_max > 0 ? o->unsettled_bytes_max : UNSETTLED_BYTES_MAX;
    c->on_settled = o->on_settled;
    c->on_restore = o->on_restore;
    c->settled_ctx = o->settled_ctx;
    c->restore_ctx = o->restore_ctx;
    c->mirror_at = DUE__NO_JOB;
    c->keep_shard = DUE__KEY_SHARDS;
    c->now = &c->batch[0];
    c->next = &c->batch[1];
    c->number = 1;
    c->rewind = true;
    due__inbox_init(&c->inbox);
    due__lock_init(&c->key);
    due__lock_init(&c->calls);
}

static void arrays_free(struct due_queue *q, struct due__commits *c)
{
    size_t n = c->info.batch_changes;

    for (size_t i = 0; i < 2; i++) {
        due__alloc_free(&q->alloc, c->batch[i].entries, n * sizeof *c->batch[i].entries);
        due__alloc_free(&q->alloc, c->batch[i].changes, n * sizeof *c->batch[i].changes);
    }
    due__alloc_free(&q->alloc, c->rings, n * sizeof(struct due__waiter *));
}

static int arrays_make(struct due_queue *q, struct due__commits *c)
{
    size_t n = c->info.batch_changes;
    bool all = true;

    for (size_t i = 0; i < 2; i++) {
        struct due__batch *b = &c->batch[i];

        b->entries = due__alloc_new(&q->alloc, n * sizeof *b->entries);
        b->changes = due__alloc_new(&q->alloc, n * sizeof *b->changes);
        all = all && b->entries != NULL && b->changes != NULL;
    }
    c->rings = due__alloc_new(&q->alloc, n * sizeof(struct due__waiter *));
    if (c->share != NULL)
        all = due__sharing_room(q, c) && all;
    if (all && c->rings != NULL)
        return 0;
    arrays_free(q, c);
    return DUE_ENOMEM;
}

/* The store is its opener's again. */
static void store_close(struct due__commits *c)
{
    int64_t until = due__time_add(due__monotonic_now(), CLOSE_NS);

    if (c->share != NULL)
        due__sharing_leave(c, until);
    else
        c->store->verbs->close(c->store, until);
}

/* Does the store have all that is needed, and read a change as it is written? */
static bool is_known(const struct due_store_verbs *verbs, due_error *error)
{
    bool told = verbs->size >= offsetof(struct due_store_verbs, topics);
    size_t size = told ? verbs->change_size : 0;
    bool older = verbs->size < offsetof(struct due_store_verbs, change_size);
    bool known = !older && (size == 0 || size == sizeof(due_change));

    if (!known)
        snprintf(error->text, sizeof error->text, "the store was built for %s version",
                 older ? "an older" : "another");
    return known;
}

static int store_open(struct due_queue *q, struct due__commits *c, const due_options *o,
                      due_error *error)
{
    due_error own = { "", "" };
    int64_t timeout = o->open_timeout_ns > 0 ? o->open_timeout_ns : OPEN_TIMEOUT_NS;
    struct due_store_open how = { .name = q->name,
                                  .until_ns = due__time_add(due__monotonic_now(), timeout),
                                  .now = queue_now,
                                  .clock = &q->clock,
                                  .log = queue_log,
                                  .queue = q };

    if (error == NULL)
        error = &own;
    if (!is_known(c->store->verbs, error))
        return DUE_EINVAL;
    int rc = o->share == DUE_SHARED ? due__sharing_join(q, c, o, &how, error)
                                    : c->store->verbs->open(c->store, &how, &c->info, error);
    if (rc == 0 && (c->info.batch_changes == 0 || c->info.batch_bytes == 0)) {
        store_close(c);
        rc = DUE_EINVAL;
    }
    if (c->info.batch_changes > CHANGES_MAX)
        c->info.batch_changes = CHANGES_MAX;
    if (c->info.payload_max != 0 && c->info.payload_max < q->payload_max)
        q->payload_max = c->info.payload_max;
    return rc;
}

/* Memory for @n jobs. */
static int reserve(struct due_queue *q, struct due__commits *c, size_t n)
{
    bool all = due__records_reserve(&c->stored, &q->alloc, (uint32_t)n);

    return all && due__index_reserve(&c->index, n) ? 0 : DUE_ENOMEM;
}

/* What holds back topics, before there is a job.  The opening may have used up its own time.  To
 * who was replaced by then the jobs are another's, as if that one had been first. */
static int settings_read(struct due_queue *q, struct due__commits *c, bool *lost, due_error *error)
{
    int64_t until = due__time_add(due__monotonic_now(), c->timeout_ns);

    due__settings_init(c);
    int rc = due__settings_load(q, c, until, lost);
    if (rc == 0)
        return 0;
    if (rc == DUE_EFENCED)
        rc = DUE_EBUSY;
    if (error != NULL)
        snprintf(error->text, sizeof error->text, "pauses and limits cannot be read: %s",
                 due_error_text(rc));
    arrays_free(q, c);
    return rc;
}

int due__commits_open(struct due_queue *q, const due_options *o, due_error *error)
{
    struct due__commits *c = due__alloc_region(&q->alloc, sizeof *c);
    bool lost = false;

    if (c == NULL)
        return DUE_ENOMEM;
    settings(c, o);
    due__records_init(&c->stored, sizeof(struct due__stored));
    due__index_init(&c->index, &q->slab, &c->stored);
    int rc = o->reserve > 0 ? reserve(q, c, o->reserve) : 0;
    if (rc == 0)
        rc = store_open(q, c, o, error);
    if (rc == 0) {
        rc = arrays_make(q, c);
        if (rc == 0)
            rc = settings_read(q, c, &lost, error);
        if (rc != 0)
            store_close(c);
    }
    if (rc != 0) {
        due__sharing_free(q, c);
        due__index_destroy(&c->index);
        due__records_destroy(&c->stored, &q->alloc);
        due__alloc_region_free(&q->alloc, c, sizeof *c);
        return rc;
    }
    c->held_ns = c->info.held_ns;
    q->commits = c;
    q->journal = &due__stored_journal;
    q->stored = true;
    q->shared = c->share != NULL;
    q->settings = q->shared || c->settings.kept;
    if (q->shared)
        q->debts |= DUE__DEBT_WANTS;
    else
        due__limiters_hold(q);
    if (lost)
        due__mirror_begin(q);
    return 0;
}

/* Send what waits, and what follows from that, as long as there is time: also answers of who waits
 * for an extension of his lease, since he has called in time. */
static int send_all(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    int rc;

    do {
        rc = due__commit_followed(q, until_ns);
        int64_t now = due__monotonic_now();
        if (rc == 0)
            rc = due_flush(q, until_ns > now ? until_ns - now : 0);
    } while (rc == 0 && due__load_relaxed(&c->settled) != due__load_relaxed(&c->submitted) &&
             due__monotonic_now() < until_ns); /* no edge: asked again if it is not so yet */
    if (rc == 0 && due__takings_return(q)) {
        int64_t now = due__monotonic_now();

        rc = due_flush(q, until_ns > now ? until_ns - now : 0);
    }
    int64_t mended = due__time_add(due__monotonic_now(), c->timeout_ns);
    return rc == 0 ? due__commit_mended(q, mended < until_ns ? mended : until_ns) : rc;
}

/* Nothing is sent from here on, and what waits is refused.  Whoever closes besides does the same,
 * so that both find everything settled. */
static bool stop(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    bool first = !due__xchg_seq(&c->stopping, 1); /* G2 */

    due__submission_ring(c);
    q->journal->interrupt(q);
    due__lock_acquire(&c->key); /* G1, G2: whoever has it leaves soon */
    if (q->shared)
        due__sharing_return_all(q); /* to be refused for good */
    due__commit_refuse(q);
    if (q->shared)
        due__sharing_discard_stop(q);
    due__store_seq(&c->stopped, 1); /* G2 */
    due__commit_leave(q, false);
    if (due__takings_end(q))
        due__commit_go(q, NULL, 0); /* to be refused */
    return first;
}

/* What was claimed and not taken goes back.  No claim begins any more (due__sharing_want()), but
 * one that is under way may bring jobs still: that is waited for, for a while. */
static void give_back(struct due_queue *q, int64_t until_ns)
{
    int64_t patience = due__time_add(due__monotonic_now(), SETTLE_NS);

    due__sharing_quiesce(q, until_ns < patience ? until_ns : patience);
    due__drain_all(q); /* what it has brought may not be sorted in yet */
    due__sharing_release_all(q);
    if (!due__lock_try(&q->commits->key)) /* G1: who has it may wait for the store; see stop() */
        return;
    due__sharing_return_all(q);
    due__commit_leave(q, false);
}

void due__commits_stop(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* hooks and the store may be points */
    bool first = !due__load_seq(&c->stopping);               /* G2 */
    int rc = 0;
    for (int times = 0; first && rc == 0 && times < 1 + q->shared; times++) {
        if (q->shared) /* and once more what came with the last batch */
            give_back(q, until_ns);
        rc = send_all(q, until_ns);
    }
    if (stop(q) && rc != 0)
        due__log(q, DUE_LOG_WARNING, "%s: closed before the store had confirmed everything",
                 q->name);
    pthread_setcancelstate(cancel, NULL);
}

void due__commits_close(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    int cancel;

    due__commits_stop(q, 0);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* as above */
    due__lock_acquire(&c->key);                              /* G1 */
    if (!c->closed)
        store_close(c);
    c->closed = true;
    due__commit_leave(q, false);
    pthread_setcancelstate(cancel, NULL);
}

static void commits_free(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    for (size_t i = 0; i < 2; i++) {
        due__key_drop(q, c->batch[i].forgot);
        due__key_drop(q, c->batch[i].keeping);
    }
    due__index_destroy(&c->index);
    due__records_destroy(&c->stored, &q->alloc);
    arrays_free(q, c);
    due__takings_free(q);
    due__settings_free(q);
    due__sharing_free(q, c);
    due__lock_destroy(&c->calls);
    due__lock_destroy(&c->key);
    due__alloc_region_free(&q->alloc, c, sizeof *c);
}

void due__commits_undo(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    store_close(c);
    commits_free(q);
}

void due__commits_free(struct due_queue *q)
{
    q->commits->store->verbs->free(q->commits->store);
    commits_free(q);
}

void due__commits_stats(struct due_queue *q, struct due_stats *s)
{
    struct due__commits *c = q->commits;

    s->settled = due__load_relaxed(&c->settled);           /* no edge: a counter */
    uint64_t submitted = due__load_relaxed(&c->submitted); /* no edge: a counter */
    s->unsettled = submitted > s->settled ? submitted - s->settled : 0;
    uint64_t given = due__load_relaxed(&c->settled_bytes);   /* no edge: a counter */
    uint64_t taken = due__load_relaxed(&c->submitted_bytes); /* no edge: a counter */
    s->unsettled_bytes = taken > given ? taken - given : 0;
    s->restored = due__load_relaxed(&c->restored); /* no edge: a counter */
    s->mirrored = due__load_relaxed(&c->mirrored); /* no edge: a counter */
    s->batches = due__load_relaxed(&c->batches);   /* no edge: a counter */
    s->loading = due__reader_loads(c);
    s->store_state = due__load_relaxed(&c->state); /* no edge: a counter */
}
