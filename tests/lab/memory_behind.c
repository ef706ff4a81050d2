/* memory_behind.c - the real store behind a memory disk. */
#include "lab/memory_behind.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/memory_disk.h"

#define BEHIND_BATCH 256

/* A simulated program has neither a crew nor such a store, but this code. */
#define BEHIND_CHECK(condition, ...)                                      \
    do {                                                                  \
        if (!(condition)) {                                               \
            fprintf(stderr, "%s:%d: %s", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                 \
            fputc('\n', stderr);                                          \
            abort();                                                      \
        }                                                                 \
    } while (0)

static const struct memory_behind_maker *makers;

struct memory_behind {
    const struct memory_behind_maker *maker;
    void *place;
    char queue[64];   /* another one after each loss */
    due_store *store; /* NULL: not open */
    size_t most;      /* changes of a batch */
    uint64_t number;  /* of the last batch */
    bool lost;        /* something, ever */
};

static int64_t behind_now(void *clock)
{
    (void)clock;
    return 0;
}

static void behind_log(void *queue, enum due_log_level level, const char *text)
{
    (void)queue;
    (void)text;
    BEHIND_CHECK(level < DUE_LOG_ERROR, ": %s", text);
}

/* ---- Opening --------------------------------------------------------------------------------- */

void memory_behind_offer(struct memory_behind_maker *maker)
{
    maker->next = makers;
    makers = maker;
}

/* Of all programs that may have the same place, and all disks of this one. */
static void behind_name(struct memory_behind *b)
{
    static atomic_uint disks;

    snprintf(b->queue, sizeof b->queue, "behind-%d-%u", (int)getpid(), atomic_fetch_add(&disks, 1));
}

static void behind_open(struct memory_behind *b)
{
    struct due_store_open how = {
        .name = b->queue, .until_ns = DUE_FOREVER, .now = behind_now, .log = behind_log
    };
    struct due_store_info info;
    due_error error = { .text = "" };

    b->store = b->maker->make(b->place);
    int rc = b->store->verbs->open(b->store, &how, &info, &error);
    BEHIND_CHECK(rc == 0, ": %s", error.text);
    b->most = info.batch_changes < BEHIND_BATCH ? info.batch_changes : BEHIND_BATCH;
    b->number = 0;
}

static void behind_close(struct memory_behind *b)
{
    if (b->store == NULL)
        return;
    (void)b->store->verbs->close(b->store, DUE_FOREVER);
    (b->store->verbs->free)(b->store);
    b->store = NULL;
}

struct memory_behind *memory_behind_new(void)
{
    const struct memory_behind_maker *maker = makers;
    const char *wanted = getenv("LAB_STORE");

    if (maker == NULL || wanted == NULL)
        return NULL;
    while (maker != NULL && strcmp(maker->name, wanted) != 0)
        maker = maker->next;
    BEHIND_CHECK(maker != NULL, ": no store is called %s", wanted);
    struct memory_behind *b = memory_need(calloc(1, sizeof *b));
    b->maker = maker;
    b->place = maker->place();
    behind_name(b);
    behind_open(b);
    return b;
}

void memory_behind_free(struct memory_behind *b)
{
    if (b == NULL)
        return;
    behind_close(b);
    b->maker->remove(b->place);
    free(b);
}

/* ---- Writing --------------------------------------------------------------------------------- */

void memory_behind_land(struct memory_behind *b, const due_change *changes, size_t n)
{
    for (size_t at = 0; b != NULL && at < n; at += b->most) {
        size_t some = n - at < b->most ? n - at : b->most;
        int rc = b->store->verbs->commit(b->store, changes + at, some, ++b->number, DUE_FOREVER);

        BEHIND_CHECK(rc == 0, ": the store behind answers %s", due_error_name(rc));
    }
}

static int behind_put(void *ctx, const due_record *record)
{
    due_change change = { .kind = DUE_CHANGE_PUT, .is_new = 1, .record = *record };

    memory_behind_land(ctx, &change, 1);
    return 0;
}

static void behind_put_keys(struct memory_behind *b, const struct memory_disk *disk)
{
    const struct memory_key *key;

    for (uint64_t number = 0; (key = memory_keys_behind(&disk->keys, number)) != NULL;) {
        due_change change = {
            .kind = DUE_CHANGE_KEEP,
            .key_kept_ns = key->until_ns,
            .record = { .id = key->id, .topic = "", .key = key->bytes, .key_len = key->len }
        };

        memory_behind_land(b, &change, 1);
        number = key->number;
    }
}

void memory_behind_lose(struct memory_behind *b, struct memory_disk *disk)
{
    const struct memory_job *job;

    if (b == NULL)
        return;
    b->lost = true;
    behind_close(b);
    if (b->maker->fresh != NULL)
        b->maker->fresh(b->place);
    behind_name(b);
    behind_open(b);
    for (job = memory_jobs_first(&disk->jobs); job != NULL;
         job = memory_jobs_behind(&disk->jobs, &job->place)) {
        due_record record = memory_disk_shown(disk, job);

        (void)behind_put(b, &record);
    }
    behind_put_keys(b, disk);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static bool behind_bytes(const void *a, size_t a_len, const void *b, size_t b_len)
{
    return a_len == b_len && (a_len == 0 || memcmp(a, b, a_len) == 0);
}

static bool behind_retry(const due_retry *a, const due_retry *b)
{
    return (a == NULL) == (b == NULL) &&
           (a == NULL || (a->kind == b->kind && a->attempts_max == b->attempts_max));
}

static bool behind_death(const due_record *a, const due_record *b)
{
    const char *reason = a->reason != NULL ? a->reason : "";

    return a->cause == b->cause &&
           (a->cause == 0 ||
            (a->died_ns == b->died_ns && strcmp(reason, b->reason != NULL ? b->reason : "") == 0));
}

static int behind_compare(void *ctx, const due_record *b)
{
    const due_record *a = ctx;

    BEHIND_CHECK(a->until_ns == b->until_ns && a->deadline_ns == b->deadline_ns, ": other times");
    BEHIND_CHECK(a->attempts == b->attempts && a->failures == b->failures, ": other counts");
    BEHIND_CHECK(a->priority == b->priority && strcmp(a->topic, b->topic) == 0, ": another topic");
    BEHIND_CHECK(behind_bytes(a->data, a->len, b->data, b->len), ": another payload");
    BEHIND_CHECK(behind_bytes(a->headers, a->headers_len, b->headers, b->headers_len),
                 ": other headers");
    BEHIND_CHECK(behind_bytes(a->key, a->key_len, b->key, b->key_len), ": another key");
    BEHIND_CHECK(behind_bytes(a->group, a->group_len, b->group, b->group_len), ": another group");
    BEHIND_CHECK(a->ttl_ns == b->ttl_ns && a->expires_ns == b->expires_ns, ": other limits");
    BEHIND_CHECK(a->keep_key_ns == b->keep_key_ns && a->every_ns == b->every_ns &&
                     a->repeat == b->repeat,
                 ": it comes again otherwise");
    BEHIND_CHECK(behind_retry(a->retry, b->retry), ": another policy");
    BEHIND_CHECK(behind_death(a, b), ": dead otherwise");
    return 0;
}

struct behind_find {
    const struct memory_disk *disk;
    due_record want;
    bool lost;
};

/* A key that is kept for a job is one of a job that is gone.  If a loss has brought that back, it
 * may be shown with it or not until it is dropped again.  And a removal whose job a loss has taken
 * away may find its key with a job that had it before: this has it still, or not any more. */
static int behind_found(void *ctx, const due_record *record)
{
    struct behind_find *f = ctx;
    due_record shown = *record;

    if (f->lost && f->want.key_len == 0 && shown.key_len > 0) {
        const struct memory_key *key = memory_keys_find(&f->disk->keys, shown.key, shown.key_len);

        if (key == NULL || (key->until_ns != 0 && due_id_equal(key->id, shown.id))) {
            shown.key = NULL;
            shown.key_len = 0;
            shown.keep_key_ns = 0;
        }
    }
    return behind_compare(&f->want, &shown);
}

void memory_behind_check(struct memory_behind *b, const struct memory_disk *disk,
                         const due_record *record)
{
    if (b == NULL)
        return;
    struct behind_find f = { .disk = disk, .want = *record, .lost = b->lost };
    int rc = b->store->verbs->find(b->store, record->id, behind_found, &f, DUE_FOREVER);
    BEHIND_CHECK(rc == 0, ": the store behind answers %s", due_error_name(rc));
}

struct behind_load {
    struct memory_disk *disk;
    size_t shown;
    bool lost;
};

static int behind_shown(void *ctx, const due_record *record)
{
    struct behind_load *l = ctx;
    const struct memory_job *job = memory_jobs_find(&l->disk->jobs, record->id);

    BEHIND_CHECK(job != NULL, ": the store behind shows a job that is not there");
    struct behind_find f = { .disk = l->disk,
                             .want = memory_disk_shown(l->disk, job),
                             .lost = l->lost };
    l->shown++;
    return behind_found(&f, record);
}

static int behind_kept(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct behind_load *l = ctx;
    const struct memory_key *want = memory_keys_find(&l->disk->keys, key, len);

    if (l->lost) /* see behind_found() */
        return 0;
    BEHIND_CHECK(want != NULL && memcmp(&want->id, &id, sizeof id) == 0 &&
                     want->until_ns <= until_ns && until_ns - want->until_ns < DUE_US(1),
                 ": the store behind keeps another key");
    l->shown++;
    return 0;
}

void memory_behind_reopen(struct memory_behind *b, struct memory_disk *disk)
{
    struct behind_load l = { .disk = disk };
    int rc = 1;

    if (b == NULL)
        return;
    l.lost = b->lost;
    behind_close(b);
    behind_open(b);
    for (int rewind = 1; rc == 1; rewind = 0)
        rc = b->store->verbs->load(b->store, rewind, 100, behind_shown, &l, DUE_FOREVER);
    BEHIND_CHECK(rc == 0 && l.shown == disk->jobs.count,
                 ": the store behind shows %zu jobs, not %zu", l.shown, disk->jobs.count);
    rc = 1;
    l.shown = 0;
    for (int rewind = 1; rc == 1; rewind = 0)
        rc = b->store->verbs->keys(b->store, rewind, 100, behind_kept, &l, DUE_FOREVER);
    BEHIND_CHECK(rc == 0 && (l.lost || l.shown == disk->keys.kept),
                 ": the store behind keeps %zu keys, not %zu", l.shown, disk->keys.kept);
}
