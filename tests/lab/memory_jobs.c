/* memory_jobs.c - a treap in the order of a load, and a table of chains by id. */
#include "lab/memory_jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *memory_need(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "memory store: no memory\n");
        abort();
    }
    return memory;
}

int memory_place_compare(const struct memory_place *a, const struct memory_place *b)
{
    if (a->topic != b->topic)
        return a->topic < b->topic ? -1 : 1;
    if (a->until_ns != b->until_ns)
        return a->until_ns < b->until_ns ? -1 : 1;
    return memcmp(a->id.byte, b->id.byte, sizeof a->id.byte);
}

/* ---- Topics ---- */

size_t memory_jobs_topic(struct memory_jobs *jobs, const char *name)
{
    if (jobs->last_topic < jobs->n_topics && strcmp(jobs->topics[jobs->last_topic], name) == 0)
        return jobs->last_topic;
    for (size_t i = 0; i < jobs->n_topics; i++)
        if (strcmp(jobs->topics[i], name) == 0)
            return jobs->last_topic = i;
    jobs->topics = memory_need(realloc(jobs->topics, (jobs->n_topics + 1) * sizeof *jobs->topics));
    jobs->topics[jobs->n_topics] = memory_need(strdup(name));
    return jobs->last_topic = jobs->n_topics++;
}

/* ---- By id ---- */

static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static size_t slot_of(const struct memory_jobs *jobs, const due_id *id)
{
    uint64_t high;
    uint64_t low;

    memcpy(&high, id->byte, sizeof high);
    memcpy(&low, id->byte + 8, sizeof low);
    return (size_t)mixed(high + mixed(low)) & (jobs->slots - 1);
}

static void grow(struct memory_jobs *jobs)
{
    struct memory_job **old = jobs->table;
    size_t n = jobs->slots;

    jobs->slots = n == 0 ? 64 : 2 * n;
    jobs->table = memory_need(calloc(jobs->slots, sizeof(struct memory_job *)));
    for (size_t i = 0; i < n; i++)
        while (old[i] != NULL) {
            struct memory_job *job = old[i];
            struct memory_job **slot = &jobs->table[slot_of(jobs, &job->place.id)];

            old[i] = job->next;
            job->next = *slot;
            *slot = job;
        }
    free(old);
}

struct memory_job *memory_jobs_find(const struct memory_jobs *jobs, due_id id)
{
    if (jobs->slots == 0)
        return NULL;
    for (struct memory_job *job = jobs->table[slot_of(jobs, &id)]; job != NULL; job = job->next)
        if (memcmp(job->place.id.byte, id.byte, sizeof id.byte) == 0)
            return job;
    return NULL;
}

/* ---- In order ---- */

/* Everything up to @place to the left, the rest to the right. */
static void split(struct memory_job *tree, const struct memory_place *place,
                  struct memory_job **left, struct memory_job **right)
{
    while (tree != NULL)
        if (memory_place_compare(&tree->place, place) <= 0) {
            *left = tree;
            left = &tree->right;
            tree = tree->right;
        } else {
            *right = tree;
            right = &tree->left;
            tree = tree->left;
        }
    *left = NULL;
    *right = NULL;
}

static struct memory_job *joined(struct memory_job *left, struct memory_job *right)
{
    struct memory_job *root = NULL;
    struct memory_job **end = &root;

    while (left != NULL && right != NULL)
        if (left->weight > right->weight) {
            *end = left;
            end = &left->right;
            left = left->right;
        } else {
            *end = right;
            end = &right->left;
            right = right->left;
        }
    *end = left != NULL ? left : right;
    return root;
}

void memory_jobs_add(struct memory_jobs *jobs, struct memory_job *job)
{
    struct memory_job **at = &jobs->root;

    if (jobs->count >= jobs->slots)
        grow(jobs);
    struct memory_job **slot = &jobs->table[slot_of(jobs, &job->place.id)];
    job->next = *slot;
    *slot = job;
    jobs->count++;
    job->weight = (uint32_t)mixed(++jobs->random);
    while (*at != NULL && (*at)->weight >= job->weight)
        at = memory_place_compare(&job->place, &(*at)->place) < 0 ? &(*at)->left : &(*at)->right;
    split(*at, &job->place, &job->left, &job->right);
    *at = job;
}

void memory_jobs_take(struct memory_jobs *jobs, struct memory_job *job)
{
    struct memory_job **at = &jobs->root;
    struct memory_job **chain = &jobs->table[slot_of(jobs, &job->place.id)];

    while (*chain != job)
        chain = &(*chain)->next;
    *chain = job->next;
    jobs->count--;
    while (*at != job)
        at = memory_place_compare(&job->place, &(*at)->place) < 0 ? &(*at)->left : &(*at)->right;
    *at = joined(job->left, job->right);
    job->left = job->right = job->next = NULL;
}

struct memory_job *memory_jobs_behind(const struct memory_jobs *jobs,
                                      const struct memory_place *place)
{
    struct memory_job *found = NULL;

    for (struct memory_job *job = jobs->root; job != NULL;)
        if (memory_place_compare(&job->place, place) > 0) {
            found = job;
            job = job->left;
        } else {
            job = job->right;
        }
    return found;
}

struct memory_job *memory_jobs_first(const struct memory_jobs *jobs)
{
    struct memory_job *job = jobs->root;

    while (job != NULL && job->left != NULL)
        job = job->left;
    return job;
}

/* ---- One job ---- */

/* Behind what is there already; NULL: nothing. */
static const void *kept(struct memory_job *job, size_t *at, const void *bytes, size_t len)
{
    unsigned char *to = (unsigned char *)job->bytes + *at;

    if (len == 0)
        return NULL;
    memcpy(to, bytes, len);
    *at += len;
    return to;
}

void memory_job_change(struct memory_job *job, const due_record *record)
{
    due_record *r = &job->record;

    r->deadline_ns = record->deadline_ns;
    r->until_ns = record->until_ns;
    r->attempts = record->attempts;
    r->failures = record->failures;
    r->cause = record->cause;
    r->died_ns = record->cause != 0 ? record->died_ns : 0;
    memset(job->reason, 0, sizeof job->reason);
    if (record->cause != 0 && record->reason != NULL)
        memcpy(job->reason, record->reason, strnlen(record->reason, sizeof job->reason - 1));
    r->reason = r->cause != 0 ? job->reason : NULL;
    job->place.topic = r->cause != 0 ? MEMORY_DEAD : job->topic;
    job->place.until_ns = r->cause != 0 ? r->died_ns : r->until_ns;
}

struct memory_job *memory_job_new(struct memory_jobs *jobs, const due_record *record)
{
    struct memory_job *job = memory_need(calloc(1, sizeof *job));
    due_record *r = &job->record;
    size_t at = 0;

    *r = *record;
    r->topic = NULL;
    job->topic = memory_jobs_topic(jobs, record->topic);
    job->bytes = memory_need(malloc(r->len + r->headers_len + r->key_len + r->group_len + 1));
    r->data = kept(job, &at, record->data, r->len);
    r->headers = kept(job, &at, record->headers, r->headers_len);
    r->key = kept(job, &at, record->key, r->key_len);
    r->group = kept(job, &at, record->group, r->group_len);
    if (record->retry != NULL)
        job->retry = *record->retry;
    r->retry = record->retry != NULL ? &job->retry : NULL;
    r->mark = NULL;
    r->mark_len = 0;
    job->content = ++jobs->contents;
    job->place.id = record->id;
    memory_job_change(job, record);
    return job;
}

struct memory_job *memory_job_copy(struct memory_jobs *jobs, const struct memory_job *job)
{
    due_record record = memory_job_record(jobs, job);
    struct memory_job *copy = memory_job_new(jobs, &record);

    copy->content = job->content;
    copy->shown = job->shown;
    copy->held = job->held;
    copy->passed = job->passed;
    copy->revoked = job->revoked;
    copy->place = job->place;
    return copy;
}

due_record memory_job_record(const struct memory_jobs *jobs, const struct memory_job *job)
{
    due_record record = job->record;

    record.topic = jobs->topics[job->topic];
    record.mark = &job->content;
    record.mark_len = sizeof job->content;
    return record;
}

void memory_job_free(struct memory_job *job)
{
    if (job == NULL)
        return;
    free(job->bytes);
    free(job);
}

void memory_jobs_clear(struct memory_jobs *jobs)
{
    for (size_t i = 0; i < jobs->slots; i++)
        while (jobs->table[i] != NULL) {
            struct memory_job *job = jobs->table[i];

            jobs->table[i] = job->next;
            memory_job_free(job);
        }
    jobs->root = NULL;
    jobs->count = 0;
}

void memory_jobs_free(struct memory_jobs *jobs)
{
    memory_jobs_clear(jobs);
    for (size_t i = 0; i < jobs->n_topics; i++)
        free(jobs->topics[i]);
    free(jobs->topics);
    free(jobs->table);
    *jobs = (struct memory_jobs){ 0 };
}
