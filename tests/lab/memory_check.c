/* memory_check.c - whether a queue keeps its side of store.h, batch by batch. */
#include <stdlib.h>
#include <string.h>

#include "lab/memory_disk.h"

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *byte = bytes;
    uint64_t eight;

    if (bytes == NULL) /* it is wrong, and not read */
        return hash;
    for (; n >= sizeof eight; n -= sizeof eight, byte += sizeof eight) {
        memcpy(&eight, byte, sizeof eight);
        hash = (hash ^ eight) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32; /* else what is high stays there */
    }
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* What a change of this kind says of the job. */
static uint64_t hash_record(uint64_t hash, const due_record *r, bool whole)
{
    const int64_t numbers[] = { r->deadline_ns, r->until_ns, r->attempts,
                                r->failures,    r->cause,    r->cause != 0 ? r->died_ns : 0 };
    const int64_t more[] = { r->ttl_ns, r->expires_ns, r->keep_key_ns, r->every_ns, r->repeat };

    hash = hash_bytes(hash, numbers, sizeof numbers);
    if (!whole)
        return hash;
    hash = hash_bytes(hash, more, sizeof more);
    hash = hash_bytes(hash, r->data, r->len);
    hash = hash_bytes(hash, r->headers, r->headers_len);
    return hash_bytes(hash, r->group, r->group_len);
}

uint64_t memory_hash(const due_change *changes, size_t n)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < n; i++) {
        const due_record *r = &changes[i].record;

        hash = hash_bytes(hash, &changes[i].kind, sizeof changes[i].kind);
        hash = hash_bytes(hash, &changes[i].key_kept_ns, sizeof changes[i].key_kept_ns);
        hash = hash_bytes(hash, r->id.byte, sizeof r->id.byte);
        hash = hash_bytes(hash, r->key, r->key_len);
        if (changes[i].kind == DUE_CHANGE_TOPIC) {
            const int64_t holds[] = { changes[i].paused, changes[i].held_max };

            hash = hash_bytes(hash, holds, sizeof holds);
            hash = hash_bytes(hash, r->topic, r->topic != NULL ? strlen(r->topic) : 0);
        }
        bool whole = changes[i].kind == DUE_CHANGE_PUT || changes[i].kind == DUE_CHANGE_AMEND;
        if (whole || changes[i].kind <= DUE_CHANGE_BURY)
            hash = hash_record(hash, r, whole);
        hash = hash_bytes(hash, r->mark, r->mark_len);
    }
    return hash;
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(due_id));
}

bool memory_any_id_twice(const due_change *changes, size_t n)
{
    due_id *ids = memory_need(calloc(n + 1, sizeof *ids));
    bool twice = false;

    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        if (changes[i].kind != DUE_CHANGE_TOPIC) /* it is of no job */
            ids[count++] = changes[i].record.id;
    qsort(ids, count, sizeof *ids, compare_ids);
    for (size_t i = 1; i < count; i++)
        twice |= compare_ids(&ids[i - 1], &ids[i]) == 0;
    free(ids);
    return twice;
}

static bool pair_wrong(const void *bytes, size_t len, size_t most)
{
    return (bytes == NULL) != (len == 0) || len > most;
}

/* The same of an id. */
static const char *id_wrong(const struct memory_store *s, const due_record *r)
{
    uint64_t writer = 0;

    for (int i = 1; i <= 6; i++)
        writer = writer << 8 | r->id.byte[i];
    if (r->id.byte[14] != 0 || r->id.byte[15] != 0)
        return "an id is longer than 14 bytes";
    return writer > s->disk->writer ? "an id is of a writer that is yet to come" : NULL;
}

/* The same of a job that is to stay. */
static const char *live_wrong(const due_change *change)
{
    const due_record *r = &change->record;

    if (r->until_ns < 0 || r->deadline_ns < 0)
        return "a time that is none";
    if (change->kind == DUE_CHANGE_BURY && r->cause == 0)
        return "a BURY without a cause";
    if (change->kind == DUE_CHANGE_MOVE && r->cause != 0)
        return "a MOVE with a cause";
    if (r->cause != 0 && (r->cause > DUE_CAUSE_EXPIRED || r->died_ns < 0))
        return "a death that is none";
    return r->reason != NULL && strlen(r->reason) >= DUE_REASON_BYTES ? "a reason is too long"
                                                                      : NULL;
}

/* What is wrong with a record whatever the disk holds, or NULL. */
const char *memory_record_wrong(const struct memory_store *s, const due_change *change)
{
    const due_record *r = &change->record;

    if (change->kind < DUE_CHANGE_PUT || change->kind > DUE_CHANGE_TOPIC)
        return "a change of no known kind";
    bool shown = change->kind == DUE_CHANGE_DROP && s->joined && change->held == 0;
    if (r->mark_len > 0 ? change->kind != DUE_CHANGE_AMEND && !shown
                        : change->kind == DUE_CHANGE_AMEND)
        return "a mark, or none";
    if (r->mark_len > 0 && change->dead_max > 0)
        return "a mark of one that is too many";
    if (pair_wrong(r->key, r->key_len, DUE_KEY_MAX))
        return "key and key_len do not agree";
    if (change->kind == DUE_CHANGE_KEEP || change->kind == DUE_CHANGE_FORGET)
        return r->key == NULL ? "a KEEP or FORGET of no key" : id_wrong(s, r);
    if (r->topic == NULL && s->joined && change->kind != DUE_CHANGE_PUT)
        return id_wrong(s, r); /* by whoever knows its id only */
    if (r->priority != 255 - r->id.byte[0])
        return "a priority is not that of the id";
    if (r->topic == NULL || strlen(r->topic) > DUE_TOPIC_LENGTH)
        return "a topic is missing or too long";
    bool whole = change->kind == DUE_CHANGE_PUT || change->kind == DUE_CHANGE_AMEND;
    if (whole && ((r->data == NULL) != (r->len == 0) ||
                  pair_wrong(r->headers, r->headers_len, DUE_HEADERS_MAX) ||
                  pair_wrong(r->group, r->group_len, DUE_KEY_MAX)))
        return "bytes and their length do not agree";
    const char *wrong =
        !whole && (change->kind == DUE_CHANGE_DROP || change->kind > DUE_CHANGE_FORGET)
            ? NULL
            : live_wrong(change);
    return wrong != NULL ? wrong : id_wrong(s, r);
}

/* Does a change before this one free the key? */
static bool freed(const due_change *changes, size_t n, const due_record *r)
{
    for (size_t i = 0; i < n; i++) {
        const due_change *c = &changes[i];
        bool frees =
            c->kind == DUE_CHANGE_FORGET || (c->kind == DUE_CHANGE_DROP && c->key_kept_ns == 0);

        if (frees && c->record.key_len == r->key_len &&
            memcmp(c->record.key, r->key, r->key_len) == 0)
            return true;
    }
    return false;
}

/* What is wrong with the key of the change number @i, or NULL. */
static const char *key_wrong(const struct memory_store *s, const due_change *changes, size_t i)
{
    const due_record *r = &changes[i].record;
    const struct memory_key *key = NULL;

    if (r->key == NULL || s->told)
        return NULL;
    key = memory_keys_find(&s->disk->keys, r->key, r->key_len);
    bool same = key != NULL && memcmp(&key->id, &r->id, sizeof r->id) == 0;
    switch (changes[i].kind) {
    case DUE_CHANGE_PUT:
        return key != NULL && !same && key->until_ns != 0 && !changes[i].was_kept &&
                       !freed(changes, i, r)
                   ? "a PUT with a key that is kept"
                   : NULL;
    case DUE_CHANGE_DROP:
        return !same || key->until_ns != 0 ? "a DROP with a key that is not the job's" : NULL;
    case DUE_CHANGE_FORGET:
        return !same || key->until_ns == 0 ? "a FORGET of a key that is not kept" : NULL;
    default:
        return NULL;
    }
}

/* What is wrong with a change beside what the disk holds, or NULL. */
static const char *target_wrong(const struct memory_store *s, const due_change *change)
{
    const struct memory_disk *disk = s->disk;

    if (change->kind >= DUE_CHANGE_KEEP || (change->kind == DUE_CHANGE_DROP && s->told))
        return NULL;
    const struct memory_job *job = memory_jobs_find(&disk->jobs, change->record.id);
    if (change->kind == DUE_CHANGE_PUT)
        return change->is_new && job != NULL ? "a PUT of a new job that is there" : NULL;
    if (job == NULL)
        return "a change of a job that is not there";
    if (job->place.until_ns != change->was_ns)
        return "was_ns is not what is stored";
    if ((job->record.cause != 0) != (change->was_dead != 0))
        return "was_dead is not what is stored";
    if (change->kind == DUE_CHANGE_BURY && change->was_dead)
        return "a BURY of a dead job";
    if (strcmp(disk->jobs.topics[job->topic], change->record.topic) != 0)
        return "a change with another topic";
    return NULL;
}

/* A number that was refused may be used again, or be passed over. */
static const char *number_wrong(const struct memory_store *s, uint64_t number, uint64_t hash)
{
    if (s->doubt != 0)
        return number == s->doubt && hash == s->given_hash ? NULL
                                                           : "another batch, while one is in doubt";
    if (number == s->given + 1 || (number == s->given && number > s->acked))
        return NULL;
    if (number != 0 && number == s->given)
        return hash == s->given_hash ? NULL : "the number of a batch that landed, for another one";
    return "a gap in the batch numbers";
}

/* Of a queue that is owned both are said; that is, all of it. */
static const char *topic_wrong(const due_change *changes, size_t i)
{
    const due_change *change = &changes[i];
    const char *topic = change->record.topic;

    if (topic == NULL || strlen(topic) > DUE_TOPIC_LENGTH)
        return "a TOPIC of none";
    if ((change->paused != 0 && change->paused != 1) || change->held_max < 0)
        return "a TOPIC that does not say all";
    for (size_t k = 0; k < i; k++)
        if (changes[k].kind == DUE_CHANGE_TOPIC && strcmp(changes[k].record.topic, topic) == 0)
            return "two changes of one topic";
    return NULL;
}

bool memory_check_batch(struct memory_store *s, const due_change *changes, size_t n,
                        uint64_t number)
{
    struct memory_disk *disk = s->disk;
    uint64_t hash = memory_hash(changes, n);
    const char *wrong = number_wrong(s, number, hash);
    size_t bytes = 0;

    if (wrong == NULL && (n == 0 || n > disk->options.batch_changes))
        wrong = "a batch of none, or of too many changes";
    if (wrong == NULL && memory_any_id_twice(changes, n))
        wrong = "two changes of one job";
    for (size_t i = 0; i < n && wrong == NULL; i++) {
        if (changes[i].kind == DUE_CHANGE_TOPIC) {
            wrong = topic_wrong(changes, i);
            continue;
        }
        wrong = changes[i].kind >= DUE_CHANGE_BEGIN || changes[i].held != 0
                    ? "a lease, of a queue that is not shared"
                    : memory_record_wrong(s, &changes[i]);
        if (wrong == NULL && !s->lost && !s->fenced && !s->crashed && disk->landed < number)
            wrong = target_wrong(s, &changes[i]);
        if (wrong == NULL && !s->lost && !s->fenced && !s->crashed && disk->landed < number)
            wrong = key_wrong(s, changes, i);
        bytes += changes[i].kind == DUE_CHANGE_PUT ? changes[i].record.len : 0;
    }
    if (wrong == NULL && n > 1 && bytes > disk->options.batch_bytes)
        wrong = "a batch of too many bytes";
    if (wrong != NULL)
        memory_wrong(disk, "%s (writer %llu, batch %llu of %zu changes)", wrong,
                     (unsigned long long)s->writer, (unsigned long long)number, n);
    else
        s->given = number;
    s->given_hash = hash;
    return wrong == NULL;
}
