/* memory_disk.c - what survives: the jobs, who owns them, what landed, and how to take it back. */
#define _GNU_SOURCE
#include "lab/memory_disk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define UNDO_MOST 2048 /* batches that can be taken back one by one */

int64_t memory_boottime_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return DUE_S(t.tv_sec) + t.tv_nsec;
}

void memory_wrong(struct memory_disk *disk, const char *format, ...)
{
    char text[sizeof disk->wrong];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "memory store: %s\n", text);
    if (disk->wrong[0] == '\0')
        memcpy(disk->wrong, text, sizeof text);
}

/* ---- Owners ---- */

void memory_wake_all(struct memory_disk *disk)
{
    for (struct memory_store *s = disk->stores; s != NULL; s = s->next)
        pthread_cond_broadcast(&s->wake);
    pthread_cond_broadcast(&disk->test);
}

/* @by NULL: a program that does not show, and leaves at once. */
void memory_take_over(struct memory_disk *disk, struct memory_store *by)
{
    if (disk->owner != NULL)
        disk->owner->fenced = true;
    for (struct memory_process *p = disk->share.processes; p != NULL; p = p->next)
        if (p->store != NULL)
            p->store->fenced = true;
    memory_share_fold(disk);
    disk->owner = by;
    disk->writer++;
    disk->landed = 0;
    if (by != NULL) {
        memory_behind_reopen(disk->behind, disk);
        by->writer = disk->writer;
        disk->owned_until_ns = memory_boottime_ns() + disk->options.lease_ns;
    }
    memory_wake_all(disk);
}

void memory_crash(struct memory_store *s)
{
    s->crashed = true;
    for (struct memory_process *p = s->disk->share.processes; p != NULL; p = p->next)
        if (p->store == s)
            p->store = NULL;
    if (s->disk->owner == s)
        s->disk->owner = NULL;
    memory_real_interrupt(s);
    memory_real_wake(s);
    memory_real_gone(s);
    memory_wake_all(s->disk);
}

/* ---- Taking back ---- */

static void undo_free(struct memory_undo *undo)
{
    for (size_t i = 0; i < undo->n; i++) {
        memory_job_free(undo->was[i]);
        free(undo->key[i]);
    }
    free(undo->settings);
    free(undo->key);
    free(undo->was);
    free(undo->ids);
}

static struct memory_undo *undo_new(struct memory_disk *disk, size_t n)
{
    if (disk->n_undo == UNDO_MOST) {
        for (size_t i = 0; i < UNDO_MOST / 2; i++)
            undo_free(&disk->undo[i]);
        disk->n_undo -= UNDO_MOST / 2;
        memmove(disk->undo, disk->undo + UNDO_MOST / 2, disk->n_undo * sizeof *disk->undo);
        disk->undo_short = true;
    }
    if (disk->undo == NULL)
        disk->undo = memory_need(calloc(UNDO_MOST, sizeof *disk->undo));
    struct memory_undo *undo = &disk->undo[disk->n_undo++];
    *undo = (struct memory_undo){ .n = n };
    undo->ids = memory_need(calloc(n, sizeof *undo->ids));
    undo->was = memory_need(calloc(n, sizeof(struct memory_job *)));
    undo->key = memory_need(calloc(n, sizeof(struct memory_key *)));
    return undo;
}

/* Whether the owner had been told that it landed. */
static bool take_back(struct memory_disk *disk, struct memory_undo *undo)
{
    struct memory_store *owner = disk->owner;
    bool told = owner != NULL && (undo->writer != owner->writer || undo->number <= owner->acked);

    for (size_t i = undo->n; i-- > 0;) {
        struct memory_job *job = memory_jobs_find(&disk->jobs, undo->ids[i]);

        if (job != NULL) {
            memory_jobs_take(&disk->jobs, job);
            memory_job_free(job);
        }
        if (undo->was[i] != NULL)
            memory_jobs_add(&disk->jobs, undo->was[i]);
        undo->was[i] = NULL;
        if (undo->key[i] != NULL)
            memory_keys_restore(&disk->keys, undo->key[i]);
        if (undo->key[i] != NULL && owner != NULL && undo->writer != owner->writer)
            memory_keys_mark(&disk->keys, undo->key[i], true); /* it was another's to know */
    }
    if (undo->settings != NULL)
        memory_settings_back(disk, undo->settings, undo->n_settings);
    undo->settings = NULL;
    if (owner != NULL && undo->writer == owner->writer)
        disk->landed = undo->number - 1;
    undo_free(undo);
    return told;
}

void memory_lose(struct memory_disk *disk, size_t batches)
{
    bool told = false;

    for (size_t i = 0; i < batches && disk->n_undo > 0; i++)
        told |= take_back(disk, &disk->undo[--disk->n_undo]);
    if (batches == SIZE_MAX && (disk->undo_short || disk->jobs.count > 0 || disk->keys.count > 0)) {
        memory_jobs_clear(&disk->jobs);
        memory_keys_clear(&disk->keys);
        disk->landed = 0;
        told = true;
    }
    memory_share_lose(disk, batches);
    memory_behind_lose(disk->behind, disk);
    if (told && disk->owner != NULL)
        disk->owner->lost = true;
}

void memory_join(struct memory_disk *disk, struct memory_store *s, uint64_t writer_min)
{
    if (disk->owner != NULL || disk->writer == 0)
        memory_take_over(disk, NULL); /* its lease is over */
    if (writer_min > 0 && disk->writer < writer_min - 1)
        disk->writer = writer_min - 1;
    while (disk->n_undo > 0)
        undo_free(&disk->undo[--disk->n_undo]);
    s->writer = ++disk->writer;
    s->opened = s->joined = true;
    for (int lane = 0; lane < MEMORY_LANES; lane++)
        s->lanes[lane].given = s->lanes[lane].acked = s->lanes[lane].doubt = 0;
    disk->owned_until_ns = memory_boottime_ns() + disk->options.lease_ns;
}

/* ---- A batch ---- */

void memory_write_down(struct memory_store *s, const due_change *change, uint64_t number)
{
    struct memory_disk *disk = s->disk;
    const due_record *r = &change->record;
    int64_t until_ns = r->until_ns;

    if (disk->n_log == disk->log_room) {
        disk->log_room = disk->log_room == 0 ? 256 : 2 * disk->log_room;
        disk->log = memory_need(realloc(disk->log, disk->log_room * sizeof *disk->log));
    }
    if (change->kind == DUE_CHANGE_DROP)
        until_ns = change->was_ns;
    if (change->kind == DUE_CHANGE_KEEP)
        until_ns = change->key_kept_ns;
    disk->log[disk->n_log++] = (struct memory_entry){
        .writer = s->writer,
        .number = number,
        .kind = change->kind,
        .id = r->id,
        .until_ns = until_ns,
        .len = change->kind == DUE_CHANGE_PUT ? r->len : 0,
        .dead = r->cause != 0 || change->was_dead != 0,
    };
}

/* A load that has passed a job's new place, but has not shown the job, goes back to it. */
static void load_again_from(struct memory_store *s, const struct memory_job *job)
{
    if (s->load == 0 || job->shown == s->load || memory_place_compare(&job->place, &s->at) > 0)
        return;
    s->at = job->place;
    for (size_t i = sizeof s->at.id.byte; i-- > 0;)
        if (s->at.id.byte[i]-- != 0)
            return;
    s->at.until_ns--;
}

/* What the job becomes; NULL: nothing.  A copy, because the old one is kept to be taken back. */
static struct memory_job *changed(struct memory_disk *disk, const due_change *change,
                                  const struct memory_job *was)
{
    struct memory_job *job;

    if (change->kind == DUE_CHANGE_PUT) {
        job = memory_job_new(&disk->jobs, &change->record);
        job->shown = was != NULL ? was->shown : 0;
        return job;
    }
    if (change->kind == DUE_CHANGE_DROP || was == NULL)
        return NULL;
    due_record record = change->record;
    if (change->kind == DUE_CHANGE_MOVE)
        record.cause = 0;
    job = memory_job_copy(&disk->jobs, was);
    memory_job_change(job, &record);
    return job;
}

/* What becomes of its key.  After a loss a removal may be of a key that is somebody else's. */
static void land_key(struct memory_disk *disk, const due_change *change, struct memory_key **was)
{
    const due_record *r = &change->record;

    if (r->key == NULL || change->kind == DUE_CHANGE_MOVE || change->kind == DUE_CHANGE_BURY)
        return;
    *was = memory_keys_note(&disk->keys, r->key, r->key_len);
    if (change->kind == DUE_CHANGE_PUT)
        memory_keys_set(&disk->keys, r->key, r->key_len, r->id, 0);
    else if (change->kind == DUE_CHANGE_FORGET || change->key_kept_ns == 0)
        memory_keys_drop(&disk->keys, r->key, r->key_len);
    else
        memory_keys_set(&disk->keys, r->key, r->key_len, r->id, change->key_kept_ns);
}

static void land_job(struct memory_store *s, const due_change *change, struct memory_job **undo)
{
    struct memory_disk *disk = s->disk;
    struct memory_job *was = memory_jobs_find(&disk->jobs, change->record.id);
    struct memory_job *job = changed(disk, change, was);

    *undo = was;
    if (was != NULL)
        memory_jobs_take(&disk->jobs, was);
    if (job != NULL) {
        memory_jobs_add(&disk->jobs, job);
        if (was != NULL)
            load_again_from(s, job);
    }
}

void memory_land(struct memory_store *s, const due_change *changes, size_t n, uint64_t number)
{
    struct memory_disk *disk = s->disk;
    struct memory_undo *undo = undo_new(disk, n);

    undo->writer = s->writer;
    undo->number = number;
    for (size_t i = 0; i < n; i++) {
        if (changes[i].kind == DUE_CHANGE_TOPIC && undo->settings == NULL)
            undo->settings = memory_settings_copy(disk, &undo->n_settings);
        if (changes[i].kind == DUE_CHANGE_TOPIC) {
            memory_settings_change(disk, &changes[i]);
            continue;
        }
        if (changes[i].kind < DUE_CHANGE_KEEP) { /* the others are about a key alone */
            undo->ids[i] = changes[i].record.id;
            land_job(s, &changes[i], &undo->was[i]);
        }
        land_key(disk, &changes[i], &undo->key[i]);
        memory_write_down(s, &changes[i], number);
    }
    memory_behind_land(disk->behind, changes, n);
    disk->landed = number;
    disk->batches++;
}

/* Is the key that the record names the job's still? */
static bool has_key(const struct memory_disk *disk, const due_record *r)
{
    const struct memory_key *key = memory_keys_find(&disk->keys, r->key, r->key_len);

    return key != NULL && key->until_ns == 0 && memcmp(&key->id, &r->id, sizeof r->id) == 0;
}

due_record memory_disk_shown(const struct memory_disk *disk, const struct memory_job *job)
{
    due_record record = memory_job_record(&disk->jobs, job);

    if (record.key_len > 0 && !has_key(disk, &record)) {
        record.key = NULL;
        record.key_len = 0;
        record.keep_key_ns = 0;
    }
    return record;
}

/* ---- For tests: the disk ---- */

struct memory_disk *memory_disk_new(const struct memory_disk_options *options)
{
    struct memory_disk *disk = memory_need(calloc(1, sizeof *disk));

    if (options != NULL)
        disk->options = *options;
    if (disk->options.batch_changes == 0)
        disk->options.batch_changes = 256;
    if (disk->options.batch_bytes == 0)
        disk->options.batch_bytes = (size_t)16 << 20;
    disk->writer = disk->options.writer;
    disk->behind = memory_behind_new();
    disk->real = memory_real_new(disk->options.real);
    pthread_mutex_init(&disk->lock, NULL);
    pthread_cond_init(&disk->test, NULL);
    return disk;
}

void memory_disk_free(struct memory_disk *disk)
{
    if (disk == NULL)
        return;
    if (disk->stores != NULL)
        memory_wrong(disk, "the disk is freed before its stores");
    for (size_t i = 0; i < disk->n_undo; i++)
        undo_free(&disk->undo[i]);
    memory_behind_free(disk->behind);
    memory_real_free(disk->real);
    memory_share_free(disk);
    free(disk->undo);
    free(disk->log);
    memory_jobs_free(&disk->jobs);
    memory_keys_free(&disk->keys);
    pthread_cond_destroy(&disk->test);
    pthread_mutex_destroy(&disk->lock);
    free(disk);
}

const char *memory_disk_wrong(struct memory_disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    const char *wrong = disk->wrong[0] != '\0' ? disk->wrong : NULL;
    pthread_mutex_unlock(&disk->lock);
    return wrong;
}

void memory_disk_lose(struct memory_disk *disk, size_t batches)
{
    pthread_mutex_lock(&disk->lock);
    memory_lose(disk, batches);
    pthread_mutex_unlock(&disk->lock);
}

void memory_disk_end_lease(struct memory_disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    disk->owned_until_ns = INT64_MIN;
    memory_wake_all(disk);
    pthread_mutex_unlock(&disk->lock);
}

void memory_disk_fence(struct memory_disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    memory_take_over(disk, NULL);
    pthread_mutex_unlock(&disk->lock);
}

size_t memory_disk_jobs(struct memory_disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    size_t n = disk->jobs.count + disk->share.leased.count;
    if (disk->real != NULL)
        n = memory_real_jobs(disk->real);
    pthread_mutex_unlock(&disk->lock);
    return n;
}

struct disk_finding {
    due_id id;
    due_record *record;
};

/* 1: it is that one. */
static int disk_found(void *ctx, const due_record *shown)
{
    const struct disk_finding *f = ctx;

    if (!due_id_equal(shown->id, f->id))
        return 0;
    if (f->record != NULL) {
        *f->record = *shown;
        f->record->data = f->record->headers = f->record->key = f->record->group = NULL;
        f->record->retry = NULL;
        f->record->reason = NULL;
    }
    return 1;
}

bool memory_disk_find(struct memory_disk *disk, due_id id, due_record *record)
{
    struct disk_finding f = { .id = id, .record = record };
    bool found = false;

    pthread_mutex_lock(&disk->lock);
    const struct memory_job *job = memory_disk_job(disk, id);
    if (disk->real != NULL) {
        found = memory_real_each(disk->real, disk_found, &f) == 1;
    } else if (job != NULL) {
        due_record shown = memory_job_record(&disk->jobs, job);

        found = disk_found(&f, &shown) == 1;
    }
    pthread_mutex_unlock(&disk->lock);
    return found;
}

bool memory_disk_key(struct memory_disk *disk, const void *key, size_t len, due_id *id,
                     int64_t *until_ns)
{
    pthread_mutex_lock(&disk->lock);
    const struct memory_key *found = memory_keys_find(&disk->keys, key, len);
    if (found != NULL && id != NULL)
        *id = found->id;
    if (found != NULL && until_ns != NULL)
        *until_ns = found->until_ns;
    pthread_mutex_unlock(&disk->lock);
    return found != NULL;
}

size_t memory_disk_keys(struct memory_disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    size_t n = disk->keys.count;
    pthread_mutex_unlock(&disk->lock);
    return n;
}

int memory_disk_each(struct memory_disk *disk, due_store_visit *visit, void *ctx)
{
    int rc = 0;

    pthread_mutex_lock(&disk->lock);
    if (disk->real != NULL)
        rc = memory_real_each(disk->real, visit, ctx);
    for (struct memory_job *job = memory_jobs_first(&disk->jobs); job != NULL && rc == 0;
         job = memory_jobs_behind(&disk->jobs, &job->place)) {
        due_record record = memory_job_record(&disk->jobs, job);

        rc = visit(ctx, &record);
    }
    pthread_mutex_unlock(&disk->lock);
    return rc;
}

uint64_t memory_disk_batches(struct memory_disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    uint64_t n = disk->batches;
    pthread_mutex_unlock(&disk->lock);
    return n;
}

bool memory_disk_entry(struct memory_disk *disk, size_t i, struct memory_entry *entry)
{
    pthread_mutex_lock(&disk->lock);
    bool there = i < disk->n_log;
    if (there)
        *entry = disk->log[i];
    pthread_mutex_unlock(&disk->lock);
    return there;
}

/* ---- For tests: a store ---- */

void memory_store_fault(due_store *store, struct memory_fault fault)
{
    struct memory_store *s = memory_store_lock(store);

    s->faults = memory_need(realloc(s->faults, (s->n_faults + 1) * sizeof *s->faults));
    if (fault.call == 0)
        fault.call = s->calls[fault.verb] + 1;
    if (fault.times == 0)
        fault.times = 1;
    s->faults[s->n_faults++] = fault;
    pthread_mutex_unlock(&s->disk->lock);
}

void memory_store_forgive(due_store *store)
{
    struct memory_store *s = memory_store_lock(store);

    s->n_faults = 0;
    pthread_mutex_unlock(&s->disk->lock);
}

void memory_store_dice(due_store *store, const struct memory_dice *dice)
{
    struct memory_store *s = memory_store_lock(store);

    s->dice = *dice;
    pthread_mutex_unlock(&s->disk->lock);
}

void memory_store_crash(due_store *store)
{
    struct memory_store *s = memory_store_lock(store);

    memory_crash(s);
    pthread_mutex_unlock(&s->disk->lock);
}

void memory_store_evict(due_store *store)
{
    struct memory_store *s = memory_store_lock(store);

    s->fenced = true;
    pthread_mutex_unlock(&s->disk->lock);
}

void memory_store_swallow(due_store *store, bool swallows)
{
    struct memory_store *s = memory_store_lock(store);

    s->swallows = swallows;
    pthread_mutex_unlock(&s->disk->lock);
}

uint64_t memory_store_rings(due_store *store)
{
    struct memory_store *s = memory_store_lock(store);
    uint64_t rings = s->rings;

    pthread_mutex_unlock(&s->disk->lock);
    return rings;
}

uint64_t memory_store_calls(due_store *store, enum memory_verb verb)
{
    struct memory_store *s = memory_store_lock(store);
    uint64_t calls = s->calls[verb];

    pthread_mutex_unlock(&s->disk->lock);
    return calls;
}

void memory_store_until(due_store *store, enum memory_verb verb, uint64_t calls)
{
    struct memory_store *s = memory_store_lock(store);

    while (s->calls[verb] < calls)
        pthread_cond_wait(&s->disk->test, &s->disk->lock);
    pthread_mutex_unlock(&s->disk->lock);
}

struct memory_limiter *memory_limiter_new(struct memory_disk *disk)
{
    struct memory_limiter *limiter = memory_need(calloc(1, sizeof *limiter));

    limiter->disk = disk;
    return limiter;
}

void memory_limiter_open(struct memory_limiter *limiter)
{
    pthread_mutex_lock(&limiter->disk->lock);
    limiter->open = true;
    memory_wake_all(limiter->disk);
    pthread_mutex_unlock(&limiter->disk->lock);
}

void memory_limiter_reached(struct memory_limiter *limiter, unsigned calls)
{
    pthread_mutex_lock(&limiter->disk->lock);
    while (limiter->reached < calls)
        pthread_cond_wait(&limiter->disk->test, &limiter->disk->lock);
    pthread_mutex_unlock(&limiter->disk->lock);
}

void memory_limiter_free(struct memory_limiter *limiter)
{
    free(limiter);
}
