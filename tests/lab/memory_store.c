/* memory_store.c - the verbs of the store in memory, its faults, and its limiters. */
#define _GNU_SOURCE
#include "lab/memory_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lab/memory_disk.h"

static void unlock(struct memory_store *s)
{
    pthread_mutex_unlock(&s->disk->lock);
}

static struct memory_call begin(struct memory_store *s, enum memory_verb verb, int64_t until_ns)
{
    return memory_call_begin(s, verb, MEMORY_LANE_PUT, until_ns);
}

static int end(struct memory_store *s, int rc)
{
    return memory_call_end(s, MEMORY_LANE_PUT, rc);
}

/* What goes wrong before it is done, of the verbs that may tell of a loss.  Telling it writes the
 * number again. */
static int before_as_ready(struct memory_store *s, struct memory_call *call)
{
    int rc = memory_before(s, call);

    if (rc == 0 && memory_share_lost(s))
        return DUE_ELOST;
    if (rc != 0 || !s->lost)
        return rc;
    s->lost = false;
    s->told = true;
    s->doubt = 0;
    s->disk->landed = s->acked;
    return DUE_ELOST;
}

/* ---- Open and close ---- */

static void say_busy(due_error *error)
{
    char host[64] = "?";

    if (error == NULL)
        return;
    gethostname(host, sizeof host - 1);
    snprintf(error->text, sizeof error->text, "the jobs belong to process %ld on %s",
             (long)getpid(), host);
    snprintf(error->hint, sizeof error->hint, "close that one, or wait for its lease to end");
}

/* Whether somebody owns the jobs, and until when to wait for an end of that (monotonic clock). */
static bool owned(const struct memory_disk *disk, int64_t *wait_ns)
{
    if ((disk->owner == NULL && !memory_share_alive(disk)) || disk->owned_until_ns == INT64_MIN)
        return false;
    if (disk->options.lease_ns == 0)
        return true;
    int64_t left = disk->owned_until_ns - memory_boottime_ns();
    int64_t end_ns = memory_monotonic_ns() + left;
    if (end_ns < *wait_ns)
        *wait_ns = end_ns;
    return left > 0;
}

bool memory_wait_for_owner(struct memory_store *s, int64_t until_ns, bool shares, due_error *error)
{
    for (;;) {
        int64_t wait_ns = until_ns;

        if ((shares && s->disk->owner == NULL) || !owned(s->disk, &wait_ns))
            return true;
        if (!memory_interrupted(s, MEMORY_LANE_PUT) &&
            (memory_sleep_until(s, wait_ns) || wait_ns != until_ns))
            continue;
        if (!owned(s->disk, &wait_ns))
            return true;
        say_busy(error);
        return false;
    }
}

void memory_store_info(struct memory_store *s, struct due_store_info *info)
{
    const struct memory_disk_options *o = &s->disk->options;

    *info = (struct due_store_info){
        .writer = s->writer,
        .batch_changes = o->batch_changes,
        .batch_bytes = o->batch_bytes,
        .renew_ns = o->lease_ns == 0 ? DUE_FOREVER : o->lease_ns / 3,
        .durability = o->durability,
        .put_again = o->put_again && !s->joined,
        .jobs = s->disk->jobs.count + s->disk->share.leased.count,
        .held_ns = o->lease_ns == 0 ? DUE_FOREVER : s->disk->owned_until_ns,
    };
    s->counters.durability = o->durability;
}

static int do_open(due_store *store, const struct due_store_open *how, struct due_store_info *info,
                   due_error *error)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_disk *disk = s->disk;
    struct memory_call call = begin(s, MEMORY_OPEN, how->until_ns);

    if (s->opened)
        memory_wrong(disk, "opened twice");
    int rc = memory_before(s, &call);
    if (rc == 0 && !memory_wait_for_owner(s, how->until_ns, false, error))
        rc = DUE_EBUSY;
    if (rc != 0)
        return end(s, rc == DUE_EAGAIN ? DUE_ESTORE : rc);
    if (how->writer_min > 0 && disk->writer < how->writer_min - 1)
        disk->writer = how->writer_min - 1;
    memory_take_over(disk, s);
    s->opened = true;
    memory_store_info(s, info);
    (void)memory_after(s, &call);
    return end(s, 0);
}

static int do_ready(due_store *store, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = begin(s, MEMORY_READY, until_ns);
    int rc = before_as_ready(s, &call);

    (void)memory_after(s, &call);
    return end(s, rc);
}

static int do_renew(due_store *store, int64_t *held_ns, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = begin(s, MEMORY_RENEW, until_ns);
    int rc = before_as_ready(s, &call);

    if (rc == 0) {
        s->disk->owned_until_ns = memory_boottime_ns() + s->disk->options.lease_ns;
        *held_ns = s->disk->options.lease_ns == 0 ? DUE_FOREVER : s->disk->owned_until_ns;
    }
    (void)memory_after(s, &call);
    return end(s, rc);
}

static int do_close(due_store *store, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = begin(s, MEMORY_CLOSE, until_ns);
    int rc = memory_before(s, &call);

    if (rc == 0 && s->disk->owner == s) {
        s->disk->owner = NULL;
        memory_wake_all(s->disk);
    }
    s->closed = true;
    (void)memory_after(s, &call);
    return end(s, rc);
}

/* ---- Commit ---- */

static bool only_removals(const due_change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (changes[i].kind != DUE_CHANGE_DROP && changes[i].kind != DUE_CHANGE_FORGET)
            return false;
    return true;
}

static int make_batch(struct memory_store *s, struct memory_call *call, const due_change *changes,
                      size_t n, uint64_t number)
{
    int rc = memory_before(s, call);

    if (rc == DUE_EAGAIN && s->doubt != 0)
        return DUE_EINDOUBT;
    if (rc != 0)
        return rc;
    if (s->lost)
        return DUE_EAGAIN;
    if (s->disk->landed < number) {
        if (call->has[MEMORY_FULL] && !only_removals(changes, n))
            return DUE_ENOSPC;
        if (call->has[MEMORY_DOUBT_NOT])
            return DUE_EINDOUBT;
        s->counters.resent += s->doubt != 0 && !s->air;
        memory_land(s, changes, n, number);
        s->counters.batches++;
    }
    if (memory_after(s, call) || call->has[MEMORY_DOUBT_LANDED] || call->has[MEMORY_DOUBT_NOT])
        return DUE_EINDOUBT;
    return 0;
}

static int do_commit(due_store *store, const due_change *changes, size_t n, uint64_t number,
                     int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = begin(s, MEMORY_COMMIT, until_ns);

    if (!memory_check_batch(s, changes, n, number))
        return end(s, DUE_EINVAL);
    int rc = make_batch(s, &call, changes, n, number);
    s->air = false;
    s->doubt = rc == DUE_EINDOUBT ? number : 0;
    if (rc == 0)
        s->acked = number;
    return end(s, rc);
}

/* ---- Ahead ---- */

/* Not a call of its own kind: it does nothing but remember. */
static int do_prepare(due_store *store, const due_change *changes, size_t n, uint64_t number)
{
    struct memory_store *s = memory_store_lock(store);

    if (atomic_exchange(&s->lanes[MEMORY_LANE_PUT].inside, true))
        memory_wrong(s->disk, "two calls at once");
    if (number != s->acked + 1 && number != s->acked + 2)
        memory_wrong(s->disk, "a batch is prepared that is not the next");
    s->prepared = changes;
    s->n_prepared = n;
    s->prepared_number = number;
    s->prepared_hash = memory_hash(changes, n);
    return end(s, 0);
}

static int send_batch(struct memory_store *s, struct memory_call *call, uint64_t number)
{
    const due_change *changes = s->prepared;
    size_t n = s->n_prepared;

    if (memory_before(s, call) != 0 || s->lost || changes == NULL || s->prepared_number != number)
        return DUE_EAGAIN;
    if (s->doubt != 0)
        memory_wrong(s->disk, "a batch is sent while another is in doubt");
    if (memory_hash(changes, n) != s->prepared_hash)
        memory_wrong(s->disk, "a batch is sent that was prepared otherwise");
    if (!memory_check_batch(s, changes, n, number))
        return DUE_EAGAIN;
    s->doubt = number;
    s->air = !call->has[MEMORY_DOUBT_LANDED];
    if (!s->air) {
        memory_land(s, changes, n, number);
        s->counters.batches++;
    }
    (void)memory_after(s, call);
    return 0;
}

static int do_send(due_store *store, uint64_t number, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = begin(s, MEMORY_SEND, until_ns);
    int rc = send_batch(s, &call, number);

    s->prepared = NULL;
    return end(s, rc);
}

/* ---- Load and find ---- */

/* Show a copy, without the lock. */
static int show(struct memory_store *s, const struct memory_job *job, due_store_visit *visit,
                void *ctx)
{
    struct memory_job *copy = memory_job_copy(&s->disk->jobs, job);
    due_record record = memory_disk_shown(s->disk, copy);

    if (!s->joined)
        memory_behind_check(s->disk->behind, s->disk, &record);
    unlock(s);
    int rc = visit(ctx, &record);
    pthread_mutex_lock(&s->disk->lock);
    memory_job_free(copy);
    return rc;
}

static int show_again(struct memory_store *s, size_t count, due_store_visit *visit, void *ctx)
{
    int rc = 0;

    for (size_t i = 0; i < count && i < MEMORY_RECENT && i < s->shown && rc == 0; i++) {
        due_id id = s->recent[(s->shown - 1 - i) % MEMORY_RECENT];
        const struct memory_job *job = memory_jobs_find(&s->disk->jobs, id);

        if (job != NULL)
            rc = show(s, job, visit, ctx);
    }
    return rc;
}

static struct memory_job *next_unseen(struct memory_store *s)
{
    struct memory_job *job = memory_jobs_behind(&s->disk->jobs, &s->at);

    while (job != NULL && job->shown == s->load) {
        s->at = job->place;
        job = memory_jobs_behind(&s->disk->jobs, &s->at);
    }
    return job;
}

/* A page.  A job whose visit failed has not been shown. */
static int show_page(struct memory_store *s, size_t max, due_store_visit *visit, void *ctx)
{
    struct memory_job *job;

    for (size_t i = 0; i < (max == 0 ? 1 : max) && (job = next_unseen(s)) != NULL; i++) {
        due_id id = job->place.id;
        int rc = show(s, job, visit, ctx);

        if (rc != 0 && rc != DUE_ECORRUPT)
            return rc;
        job = memory_jobs_find(&s->disk->jobs, id);
        if (job != NULL) {
            job->shown = s->load;
            s->at = job->place;
        }
        s->recent[s->shown++ % MEMORY_RECENT] = id;
    }
    return next_unseen(s) != NULL;
}

static int do_load(due_store *store, int rewind, size_t max, due_store_visit *visit, void *ctx,
                   int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = begin(s, MEMORY_LOAD, until_ns);
    int rc = before_as_ready(s, &call);

    if (rewind)
        s->load = 0; /* also if this call fails */
    if (rc == 0 && s->load == 0) {
        s->load = ++s->disk->loads;
        s->at = (struct memory_place){ .topic = 0, .until_ns = INT64_MIN };
        s->shown = 0;
    }
    if (rc == 0 && call.has[MEMORY_REPEAT])
        rc = show_again(s, call.repeat, visit, ctx);
    if (rc == 0)
        rc = show_page(s, max, visit, ctx);
    (void)memory_after(s, &call);
    return end(s, rc);
}

static int do_find(due_store *store, due_id id, due_store_visit *visit, void *ctx, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = begin(s, MEMORY_FIND, until_ns);
    int rc = before_as_ready(s, &call);

    if (rc == 0 && s->real != NULL) {
        rc = memory_real_find(s, id, visit, ctx, until_ns);
    } else if (rc == 0) {
        const struct memory_job *job = memory_disk_job(s->disk, id);

        rc = job == NULL ? DUE_ENOENT : show(s, job, visit, ctx);
    }
    (void)memory_after(s, &call);
    return end(s, rc);
}

static int show_key(struct memory_store *s, const struct memory_key *key,
                    due_store_visit_key *visit, void *ctx)
{
    struct memory_key *copy = memory_keys_note(&s->disk->keys, key->bytes, key->len);

    unlock(s);
    int rc = visit(ctx, copy->bytes, copy->len, copy->id, copy->until_ns);
    pthread_mutex_lock(&s->disk->lock);
    if (rc == 0)
        s->keys_at = copy->number;
    free(copy);
    return rc;
}

static int do_keys(due_store *store, int rewind, size_t max, due_store_visit_key *visit, void *ctx,
                   int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = begin(s, MEMORY_KEYS, until_ns);
    int rc = before_as_ready(s, &call);
    const struct memory_key *key = NULL;

    if (rewind)
        s->keys_begun = false;
    if (rc == 0 && !s->keys_begun) {
        s->keys_begun = true;
        s->keys_at = 0;
    }
    for (size_t i = 0; rc == 0 && i < (max == 0 ? 1 : max); i++) {
        key = memory_keys_behind(&s->disk->keys, s->keys_at);
        if (key == NULL)
            break;
        rc = show_key(s, key, visit, ctx);
    }
    if (rc == 0)
        rc = memory_keys_behind(&s->disk->keys, s->keys_at) != NULL;
    (void)memory_after(s, &call);
    return end(s, rc);
}

/* What holds back a topic, without the lock. */
static int show_topic(struct memory_store *s, size_t topic, due_store_visit_topic *visit, void *ctx)
{
    struct memory_setting setting = memory_setting_of(s->disk, topic);
    char *name = memory_need(strdup(s->disk->jobs.topics[topic]));

    unlock(s);
    int rc = visit(ctx, name, setting.paused, setting.held_max);
    pthread_mutex_lock(&s->disk->lock);
    free(name);
    return rc;
}

static int do_topics(due_store *store, due_store_visit_topic *visit, void *ctx, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = begin(s, MEMORY_TOPICS, until_ns);
    int rc = before_as_ready(s, &call);

    for (size_t i = 0; rc == 0 && i < s->disk->share.n_settings; i++)
        rc = show_topic(s, i, visit, ctx);
    (void)memory_after(s, &call);
    return end(s, rc);
}

/* ---- The rest ---- */

/* In a child another thread may have held the lock when it was forked: nothing is touched there. */
static void do_interrupt(due_store *store)
{
    if (memory_store_of(store)->pid != getpid())
        return;
    struct memory_store *s = memory_store_lock(store);
    for (int lane = 0; lane < MEMORY_LANE_LISTEN; lane++)
        s->lanes[lane].interrupted = true;
    pthread_cond_broadcast(&s->wake);
    memory_real_interrupt(s);
    unlock(s);
}

static void do_stats(due_store *store, struct due_store_stats *stats)
{
    struct memory_store *s = memory_store_lock(store);

    *stats = s->counters;
    stats->connected = !s->crashed && s->opened;
    unlock(s);
}

static void do_free(due_store *store)
{
    struct memory_store *s = memory_store_of(store);

    if (s->pid == getpid()) {
        struct memory_store **at = &memory_store_lock(store)->disk->stores;

        for (int lane = 0; lane < MEMORY_LANES; lane++)
            if (atomic_load(&s->lanes[lane].inside))
                memory_wrong(s->disk, "freed during a call");
        if (s->disk->owner == s || s->joined)
            memory_crash(s);
        memory_real_gone(s);
        while (*at != s)
            at = &(*at)->next;
        *at = s->next;
        unlock(s);
        pthread_cond_destroy(&s->wake);
    }
    free(s->faults);
    free(s);
}

/* Verbs of a store that was built when they ended so, and said that of the size of a change. */
#define VERBS(bytes, change_bytes, of_sharers)                                                     \
    {                                                                                              \
        .size = (bytes), .open = do_open, .ready = do_ready, .commit = do_commit,                  \
        .prepare = do_prepare, .send = do_send, .load = do_load, .find = do_find, .keys = do_keys, \
        .renew = do_renew, .close = do_close, .interrupt = do_interrupt, .stats = do_stats,        \
        .free = do_free, .shared = &(of_sharers), .change_size = (change_bytes),                   \
        .topics = do_topics,                                                                       \
    }

static const struct due_store_verbs verbs =
    VERBS(sizeof verbs, sizeof(due_change), memory_shared_verbs);
static const struct due_store_verbs real_verbs =
    VERBS(sizeof verbs, sizeof(due_change), memory_real_verbs);
/* Nobody is to look behind their end. */
static const struct due_store_verbs old_verbs =
    VERBS(offsetof(struct due_store_verbs, change_size), 1, memory_shared_verbs);

static due_store *store_new(struct memory_disk *disk, const struct due_store_verbs *its)
{
    struct memory_store *s = memory_need(calloc(1, sizeof *s));
    pthread_condattr_t monotonic;

    s->head.verbs = its;
    s->disk = disk;
    s->pid = getpid();
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_lock(&disk->lock);
    s->next = disk->stores;
    disk->stores = s;
    unlock(s);
    return &s->head;
}

due_store *memory_store_new(struct memory_disk *disk)
{
    return store_new(disk, disk->real != NULL ? &real_verbs : &verbs);
}

due_store *memory_store_old(struct memory_disk *disk)
{
    return store_new(disk, &old_verbs);
}
