/* record.c - a job's bytes in a store, version 1. */
#include "record/record.h"

#include <string.h>

#define VERSION_AT 0
#define FLAGS_AT   1
#define CHECK_AT   2
#define TIME_AT    4
#define UNTIL_AT   12
#define COUNTS_AT  20
#define CAUSE_AT   28
#define DIED_AT    29
#define REASON_AT  37

/* A sum over a stream of bytes, in words of eight. */
struct sum {
    uint64_t sum;
    uint64_t part;  /* bytes that do not fill a word yet */
    unsigned fill;  /* how many */
    uint64_t total; /* */
};

static void stir(struct sum *s, uint64_t word)
{
    s->sum = (s->sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    s->sum ^= s->sum >> 29;
}

static void add_byte(struct sum *s, unsigned char byte)
{
    s->part |= (uint64_t)byte << (8 * s->fill);
    if (++s->fill == 8) {
        stir(s, s->part);
        s->part = 0;
        s->fill = 0;
    }
}

static void add(struct sum *s, const unsigned char *at, size_t len)
{
    s->total += len;
    for (; s->fill != 0 && len > 0; at++, len--)
        add_byte(s, *at);
    for (; len >= 8; at += 8, len -= 8)
        stir(s, due__bytes_get(at, 8));
    for (; len > 0; at++, len--)
        add_byte(s, *at);
}

/* Over the id and the bytes in two pieces, but for the check's own. */
static uint64_t check(due_id id, const unsigned char *front, size_t front_len, const void *data,
                      size_t len)
{
    struct sum s = { 0 };

    add(&s, front, CHECK_AT);
    add(&s, id.byte, DUE_STORE_ID_BYTES);
    add(&s, front + TIME_AT, front_len - TIME_AT);
    if (len > 0)
        add(&s, data, len);
    stir(&s, s.part);
    stir(&s, s.total);
    return (s.sum ^ (s.sum >> 16) ^ (s.sum >> 32) ^ (s.sum >> 48)) & 0xffff;
}

uint64_t due__record_check(due_id id, const void *bytes, size_t len)
{
    return check(id, bytes, len, NULL, 0);
}

size_t due__record_front(const due_record *record, unsigned char front[DUE__RECORD_FRONT])
{
    size_t topic = strnlen(record->topic, DUE_TOPIC_LENGTH);
    unsigned flags = due__more_flags(record) | (topic > 0 ? DUE__RECORD_TOPIC : 0);
    size_t len = DUE__RECORD_HEAD;

    front[VERSION_AT] = DUE__RECORD_VERSION;
    front[FLAGS_AT] = (unsigned char)flags;
    due__bytes_put(front + TIME_AT, (uint64_t)record->deadline_ns, 8);
    if (topic > 0) {
        front[len++] = (unsigned char)topic;
        memcpy(front + len, record->topic, topic);
        len += topic;
    }
    if ((flags & DUE__RECORD_MORE) != 0)
        len += due__more_write(record, front + len);
    due__bytes_put(front + CHECK_AT, check(record->id, front, len, record->data, record->len), 2);
    return len;
}

bool due__record_has_entry(const due_record *record)
{
    return record->until_ns != record->deadline_ns || record->attempts != 0 ||
           record->failures != 0 || record->cause != 0;
}

size_t due__entry_write(const due_record *record, unsigned char entry[DUE__ENTRY_MOST])
{
    size_t len = DUE__ENTRY_BYTES;

    entry[VERSION_AT] = DUE__RECORD_VERSION;
    entry[FLAGS_AT] = record->cause != 0 ? DUE__ENTRY_DEAD : 0;
    due__bytes_put(entry + TIME_AT, (uint64_t)record->deadline_ns, 8);
    due__bytes_put(entry + UNTIL_AT, (uint64_t)record->until_ns, 8);
    due__bytes_put(entry + COUNTS_AT, record->attempts, 4);
    due__bytes_put(entry + COUNTS_AT + 4, record->failures, 4);
    if (record->cause != 0) {
        const char *reason = record->reason != NULL ? record->reason : "";
        size_t n = strnlen(reason, DUE_REASON_BYTES - 1);

        entry[CAUSE_AT] = (unsigned char)record->cause;
        due__bytes_put(entry + DIED_AT, (uint64_t)record->died_ns, 8);
        entry[REASON_AT] = (unsigned char)n;
        memcpy(entry + REASON_AT + 1, reason, n);
        len = REASON_AT + 1 + n;
    }
    due__bytes_put(entry + CHECK_AT, check(record->id, entry, len, NULL, 0), 2);
    return len;
}

/* The first bytes: whole, of this job, and of a version and with flags that are known. */
static int head_read(due_id id, const unsigned char *at, size_t len, unsigned known_flags)
{
    if (len < DUE__RECORD_HEAD || due__bytes_get(at + CHECK_AT, 2) != check(id, at, len, NULL, 0))
        return DUE_ECORRUPT;
    if (at[VERSION_AT] == 0)
        return DUE_ECORRUPT;
    if (at[VERSION_AT] > DUE__RECORD_VERSION || (at[FLAGS_AT] & ~known_flags) != 0)
        return DUE_EVERSION;
    return 0;
}

static int topic_read(char topic[DUE_TOPIC_LENGTH + 1], struct due__rest *rest)
{
    if (rest->len == 0)
        return DUE_ECORRUPT;
    size_t name = *rest->at++;
    rest->len--;
    if (name == 0 || name > rest->len || memchr(rest->at, '\0', name) != NULL)
        return DUE_ECORRUPT;
    memcpy(topic, rest->at, name);
    topic[name] = '\0';
    rest->at += name;
    rest->len -= name;
    return 0;
}

int due__record_read(due_record *record, struct due__record_room *room, const void *bytes,
                     size_t len)
{
    const unsigned char *at = bytes;
    int rc = head_read(record->id, at, len, DUE__RECORD_TOPIC | DUE__RECORD_MORE);

    if (rc != 0)
        return rc;
    struct due__rest rest = { at + DUE__RECORD_HEAD, len - DUE__RECORD_HEAD };
    *record = (due_record){ .id = record->id,
                            .deadline_ns = (int64_t)due__bytes_get(at + TIME_AT, 8),
                            .topic = room->topic,
                            .priority = 255 - record->id.byte[0] };
    record->until_ns = record->deadline_ns;
    room->topic[0] = '\0';
    if ((at[FLAGS_AT] & DUE__RECORD_TOPIC) != 0)
        rc = topic_read(room->topic, &rest);
    if (rc == 0 && (at[FLAGS_AT] & DUE__RECORD_MORE) != 0)
        rc = due__more_read(record, room, at[FLAGS_AT], &rest);
    record->data = rest.len > 0 ? rest.at : NULL;
    record->len = rest.len;
    return rc;
}

bool due__record_key(const void *bytes, size_t len, const void **key, size_t *key_len)
{
    const unsigned char *at = bytes;
    struct due__record_room room;
    due_record record = { .key = NULL };

    if (len < DUE__RECORD_HEAD || at[VERSION_AT] != DUE__RECORD_VERSION ||
        (at[FLAGS_AT] & DUE__RECORD_KEY) == 0)
        return false;
    struct due__rest rest = { at + DUE__RECORD_HEAD, len - DUE__RECORD_HEAD };
    if ((at[FLAGS_AT] & DUE__RECORD_TOPIC) != 0 && topic_read(room.topic, &rest) != 0)
        return false;
    if (due__more_read(&record, &room, at[FLAGS_AT], &rest) != 0)
        return false;
    *key = record.key;
    *key_len = record.key_len;
    return true;
}

/* How and why it died: what stands behind the counts. */
static int death_read(due_record *record, char reason[DUE_REASON_BYTES], const unsigned char *at,
                      size_t len)
{
    if (len <= REASON_AT)
        return DUE_ECORRUPT;
    size_t n = at[REASON_AT];
    uint64_t died = due__bytes_get(at + DIED_AT, 8);
    if (n >= DUE_REASON_BYTES || len != REASON_AT + 1 + n || at[CAUSE_AT] == 0 ||
        died > INT64_MAX || memchr(at + REASON_AT + 1, '\0', n) != NULL)
        return DUE_ECORRUPT;
    if (at[CAUSE_AT] > DUE_CAUSE_EXPIRED)
        return DUE_EVERSION;
    memcpy(reason, at + REASON_AT + 1, n);
    reason[n] = '\0';
    record->cause = (enum due_cause)at[CAUSE_AT];
    record->died_ns = (int64_t)died;
    record->reason = reason;
    return 0;
}

int due__entry_read(due_record *record, struct due__record_room *room, const void *bytes,
                    size_t len)
{
    const unsigned char *at = bytes;
    int rc = head_read(record->id, at, len, DUE__ENTRY_DEAD);

    if (rc != 0)
        return rc;
    if (at[FLAGS_AT] & DUE__ENTRY_DEAD)
        rc = death_read(record, room->reason, at, len);
    else if (len != DUE__ENTRY_BYTES)
        rc = DUE_ECORRUPT;
    if (rc != 0)
        return rc;
    record->deadline_ns = (int64_t)due__bytes_get(at + TIME_AT, 8);
    record->until_ns = (int64_t)due__bytes_get(at + UNTIL_AT, 8);
    record->attempts = (uint32_t)due__bytes_get(at + COUNTS_AT, 4);
    record->failures = (uint32_t)due__bytes_get(at + COUNTS_AT + 4, 4);
    return 0;
}
