/* record.c - a job's bytes in a store, version 1. */
#include "record.h"

#include <string.h>

#define VERSION_AT 0
#define FLAGS_AT   1
#define CHECK_AT   2
#define TIME_AT    4
#define UNTIL_AT   12
#define COUNTS_AT  20

static void put(unsigned char *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

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
        stir(s, get(at, 8));
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
    size_t len = DUE__RECORD_HEAD;

    front[VERSION_AT] = DUE__RECORD_VERSION;
    front[FLAGS_AT] = topic > 0 ? DUE__RECORD_TOPIC : 0;
    put(front + TIME_AT, (uint64_t)record->deadline_ns, 8);
    if (topic > 0) {
        front[len++] = (unsigned char)topic;
        memcpy(front + len, record->topic, topic);
        len += topic;
    }
    put(front + CHECK_AT, check(record->id, front, len, record->data, record->len), 2);
    return len;
}

int due__record_has_entry(const due_record *record)
{
    return record->until_ns != record->deadline_ns || record->attempts != 0 ||
           record->failures != 0;
}

void due__entry_write(const due_record *record, unsigned char entry[DUE__ENTRY_BYTES])
{
    entry[VERSION_AT] = DUE__RECORD_VERSION;
    entry[FLAGS_AT] = 0;
    put(entry + TIME_AT, (uint64_t)record->deadline_ns, 8);
    put(entry + UNTIL_AT, (uint64_t)record->until_ns, 8);
    put(entry + COUNTS_AT, record->attempts, 4);
    put(entry + COUNTS_AT + 4, record->failures, 4);
    put(entry + CHECK_AT, check(record->id, entry, DUE__ENTRY_BYTES, NULL, 0), 2);
}

/* The first bytes, once the check holds. */
static int head_read(const unsigned char *at, unsigned known_flags)
{
    if (at[VERSION_AT] == 0)
        return DUE_ECORRUPT;
    if (at[VERSION_AT] > DUE__RECORD_VERSION || (at[FLAGS_AT] & ~known_flags) != 0)
        return DUE_EVERSION;
    return 0;
}

/* Reads the topic; answers how many bytes stand before the payload, or 0 if they make no sense. */
static size_t topic_read(char topic[DUE_TOPIC_LENGTH + 1], const unsigned char *at, size_t len)
{
    size_t front = DUE__RECORD_HEAD;
    size_t name = 0;

    if ((at[FLAGS_AT] & DUE__RECORD_TOPIC) != 0) {
        if (len == front)
            return 0;
        name = at[front++];
        if (name == 0 || name > len - front || memchr(at + front, '\0', name) != NULL)
            return 0;
        memcpy(topic, at + front, name);
    }
    topic[name] = '\0';
    return front + name;
}

int due__record_read(due_record *record, char topic[DUE_TOPIC_LENGTH + 1], const void *bytes,
                     size_t len)
{
    const unsigned char *at = bytes;

    if (len < DUE__RECORD_HEAD)
        return DUE_ECORRUPT;
    if (get(at + CHECK_AT, 2) != due__record_check(record->id, at, len))
        return DUE_ECORRUPT;
    int rc = head_read(at, DUE__RECORD_TOPIC);
    if (rc != 0)
        return rc;
    size_t front = topic_read(topic, at, len);
    if (front == 0)
        return DUE_ECORRUPT;

    record->deadline_ns = (int64_t)get(at + TIME_AT, 8);
    record->until_ns = record->deadline_ns;
    record->topic = topic;
    record->data = len > front ? at + front : NULL;
    record->len = len - front;
    record->attempts = 0;
    record->failures = 0;
    record->priority = 255 - record->id.byte[0];
    return 0;
}

int due__entry_read(due_record *record, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;

    if (len < DUE__RECORD_HEAD)
        return DUE_ECORRUPT;
    if (get(at + CHECK_AT, 2) != due__record_check(record->id, at, len))
        return DUE_ECORRUPT;
    int rc = head_read(at, 0);
    if (rc != 0)
        return rc;
    if (len != DUE__ENTRY_BYTES)
        return DUE_ECORRUPT;
    record->deadline_ns = (int64_t)get(at + TIME_AT, 8);
    record->until_ns = (int64_t)get(at + UNTIL_AT, 8);
    record->attempts = (uint32_t)get(at + COUNTS_AT, 4);
    record->failures = (uint32_t)get(at + COUNTS_AT + 4, 4);
    return 0;
}
