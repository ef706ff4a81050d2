/* record_more.c - what only some jobs have, in the bytes of a record.
 *
 * In the order of their flags, each only where its flag is:
 *
 *     HEADERS   length (2), headers
 *     RETRY     kind (1), attempts_max (4); then by kind: fixed: delay (8); exponential: delay (8),
 *               cap (8); ladder: how many (1), delays (8 each)
 *     NUMBERS   mask (1), then of each that it names (8): ttl, expires, keep_key, every; two bits
 *               say how it comes again
 *     KEY       length (1), key
 *     GROUP     length (1), group
 */
#include "record/record.h"

#include <endian.h>
#include <string.h>

#define HAS_TTL      0x01u
#define HAS_EXPIRES  0x02u
#define HAS_KEEP     0x04u
#define HAS_EVERY    0x08u
#define HAS_ALL      0x0fu
#define REPEAT_SHIFT 4
#define REPEAT_MASK  0x30u

void due__bytes_put(unsigned char *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

uint64_t due__bytes_get(const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;

    if (bytes == sizeof value) {
        memcpy(&value, at, sizeof value);
        return le64toh(value);
    }
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Where the next bytes go. */
struct pen {
    unsigned char *at;
};

static void number(struct pen *p, uint64_t value, size_t bytes)
{
    due__bytes_put(p->at, value, bytes);
    p->at += bytes;
}

static void piece(struct pen *p, const void *bytes, size_t len, size_t len_bytes)
{
    number(p, len, len_bytes);
    memcpy(p->at, bytes, len);
    p->at += len;
}

static unsigned mask_of(const due_record *r)
{
    return (r->ttl_ns != 0 ? HAS_TTL : 0) | (r->expires_ns != 0 ? HAS_EXPIRES : 0) |
           (r->keep_key_ns != 0 ? HAS_KEEP : 0) | (r->every_ns != 0 ? HAS_EVERY : 0) |
           ((unsigned)r->repeat << REPEAT_SHIFT & REPEAT_MASK);
}

static bool has_retry(const due_record *r)
{
    return r->retry != NULL && r->retry->kind != DUE_RETRY_INHERIT;
}

unsigned due__more_flags(const due_record *r)
{
    return (r->headers_len > 0 ? DUE__RECORD_HEADERS : 0) | (has_retry(r) ? DUE__RECORD_RETRY : 0) |
           (mask_of(r) != 0 ? DUE__RECORD_NUMBERS : 0) | (r->key_len > 0 ? DUE__RECORD_KEY : 0) |
           (r->group_len > 0 ? DUE__RECORD_GROUP : 0);
}

static void write_retry(struct pen *p, const due_retry *r)
{
    number(p, r->kind, 1);
    number(p, r->attempts_max, 4);
    if (r->kind == DUE_RETRY_LADDER) {
        number(p, r->rungs, 1);
        for (uint32_t i = 0; i < r->rungs && i < DUE_RUNGS_MAX; i++)
            number(p, (uint64_t)r->rung_ns[i], 8);
        return;
    }
    number(p, (uint64_t)r->delay_ns, 8);
    if (r->kind == DUE_RETRY_EXPONENTIAL)
        number(p, (uint64_t)r->cap_ns, 8);
}

static void write_numbers(struct pen *p, const due_record *r)
{
    const int64_t values[] = { r->ttl_ns, r->expires_ns, r->keep_key_ns, r->every_ns };

    number(p, mask_of(r), 1);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (values[i] != 0)
            number(p, (uint64_t)values[i], 8);
    }
}

size_t due__more_write(const due_record *r, unsigned char *at)
{
    unsigned flags = due__more_flags(r);
    struct pen p = { .at = at };

    if (flags & DUE__RECORD_HEADERS)
        piece(&p, r->headers, r->headers_len, 2);
    if (flags & DUE__RECORD_RETRY)
        write_retry(&p, r->retry);
    if (flags & DUE__RECORD_NUMBERS)
        write_numbers(&p, r);
    if (flags & DUE__RECORD_KEY)
        piece(&p, r->key, r->key_len, 1);
    if (flags & DUE__RECORD_GROUP)
        piece(&p, r->group, r->group_len, 1);
    return (size_t)(p.at - at);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool take(struct due__rest *rest, size_t bytes, uint64_t *value)
{
    if (rest->len < bytes)
        return false;
    *value = due__bytes_get(rest->at, bytes);
    rest->at += bytes;
    rest->len -= bytes;
    return true;
}

/* A time that is not negative. */
static bool take_time(struct due__rest *rest, int64_t *ns)
{
    uint64_t value;

    if (!take(rest, 8, &value) || value > INT64_MAX)
        return false;
    *ns = (int64_t)value;
    return true;
}

static int read_piece(struct due__rest *rest, size_t len_bytes, size_t most, const void **bytes,
                      size_t *len)
{
    uint64_t n;

    if (!take(rest, len_bytes, &n) || n == 0 || n > most || n > rest->len)
        return DUE_ECORRUPT;
    *bytes = rest->at;
    *len = (size_t)n;
    rest->at += n;
    rest->len -= (size_t)n;
    return 0;
}

static int read_ladder(due_retry *r, struct due__rest *rest)
{
    uint64_t rungs;

    if (!take(rest, 1, &rungs) || rungs == 0 || rungs > DUE_RUNGS_MAX)
        return DUE_ECORRUPT;
    r->rungs = (uint32_t)rungs;
    for (uint32_t i = 0; i < r->rungs; i++) {
        if (!take_time(rest, &r->rung_ns[i]))
            return DUE_ECORRUPT;
    }
    return 0;
}

static int read_retry(due_retry *r, struct due__rest *rest)
{
    uint64_t kind;
    uint64_t attempts;

    memset(r, 0, sizeof *r);
    if (!take(rest, 1, &kind) || kind == DUE_RETRY_INHERIT)
        return DUE_ECORRUPT;
    if (kind > DUE_RETRY_LADDER)
        return DUE_EVERSION;
    if (!take(rest, 4, &attempts))
        return DUE_ECORRUPT;
    r->kind = (enum due_retry_kind)kind;
    r->attempts_max = (uint32_t)attempts;
    if (kind == DUE_RETRY_LADDER)
        return read_ladder(r, rest);
    if (!take_time(rest, &r->delay_ns) ||
        (kind == DUE_RETRY_EXPONENTIAL && !take_time(rest, &r->cap_ns)))
        return DUE_ECORRUPT;
    return 0;
}

static int read_numbers(due_record *r, struct due__rest *rest)
{
    int64_t *const values[] = { &r->ttl_ns, &r->expires_ns, &r->keep_key_ns, &r->every_ns };
    uint64_t mask;

    if (!take(rest, 1, &mask) || mask == 0)
        return DUE_ECORRUPT;
    uint64_t repeat = (mask & REPEAT_MASK) >> REPEAT_SHIFT;
    if ((mask & ~(uint64_t)(HAS_ALL | REPEAT_MASK)) != 0 || repeat > DUE_REPEAT_AFTER)
        return DUE_EVERSION;
    r->repeat = (enum due_repeat)repeat;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if ((mask & (UINT64_C(1) << i)) != 0 && (!take_time(rest, values[i]) || *values[i] == 0))
            return DUE_ECORRUPT;
    }
    return 0;
}

int due__more_read(due_record *record, struct due__record_room *room, unsigned flags,
                   struct due__rest *rest)
{
    due_record *r = record;
    int rc = 0;

    if (flags & DUE__RECORD_HEADERS)
        rc = read_piece(rest, 2, DUE_HEADERS_MAX, &r->headers, &r->headers_len);
    if (rc == 0 && (flags & DUE__RECORD_RETRY)) {
        rc = read_retry(&room->retry, rest);
        r->retry = &room->retry;
    }
    if (rc == 0 && (flags & DUE__RECORD_NUMBERS))
        rc = read_numbers(r, rest);
    if (rc == 0 && (flags & DUE__RECORD_KEY))
        rc = read_piece(rest, 1, DUE_KEY_MAX, &r->key, &r->key_len);
    if (rc == 0 && (flags & DUE__RECORD_GROUP))
        rc = read_piece(rest, 1, DUE_KEY_MAX, &r->group, &r->group_len);
    return rc;
}
