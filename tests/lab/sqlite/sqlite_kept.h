/* sqlite_kept.h - what the kept files of tests/store/kept hold, job by job.
 *
 * What this says never changes: a file that was written once must be read for ever.  A new format
 * gets a file of its own, written by store_kept --write.
 */
#ifndef SQLITE_KEPT_H
#define SQLITE_KEPT_H

#include "lab/sqlite/sqlite_desk.h"

#define KEPT_JOBS 150

/* Numbers, for what must differ from job to job and be the same for ever. */
static inline uint64_t kept_number(unsigned job, unsigned what)
{
    uint64_t random = job * UINT64_C(1000) + what + 1;

    return crew_random(&random);
}

struct kept_bytes {
    unsigned char data[9000];
    char topic[16], headers[32], key[32], group[32], reason[32];
    due_retry retry;
};

/* What only some of them have. */
static inline void kept_more(unsigned job, struct kept_bytes *b, due_record *r)
{
    if (job % 3 == 1) {
        r->headers = b->headers;
        r->headers_len = (size_t)snprintf(b->headers, sizeof b->headers, "trace%c%u", 0, job) + 0u;
    }
    if (job % 5 == 1) {
        r->key = b->key;
        r->key_len = (size_t)snprintf(b->key, sizeof b->key, "key %u", job);
        r->keep_key_ns = job % 2 == 0 ? 0 : DUE_S(3600);
    }
    if (job % 7 == 1) {
        b->retry = (due_retry){ .kind = DUE_RETRY_FIXED, .attempts_max = 9, .delay_ns = DUE_S(3) };
        r->retry = &b->retry;
        r->expires_ns = INT64_C(1900000000000000000) + job;
    }
    if (job % 11 == 1) {
        r->group = b->group;
        r->group_len = (size_t)snprintf(b->group, sizeof b->group, "group %u", job % 3);
    }
    if (job % 13 == 1) {
        r->every_ns = DUE_S(60);
        r->repeat = DUE_REPEAT_AFTER;
    }
    if (job % 17 == 1) {
        snprintf(b->reason, sizeof b->reason, "reason %u", job);
        r->reason = b->reason;
        r->cause = job % 2 == 0 ? DUE_CAUSE_BURIED : DUE_CAUSE_ATTEMPTS;
        r->died_ns = INT64_C(1790000000000000000) + (int64_t)(kept_number(job, 3) >> 24);
    }
}

static inline due_record kept_record(unsigned job, struct kept_bytes *b)
{
    due_record r = { .id = { { (unsigned char)(255 - job % 3), 0, 0, 0, 0, 0, 1 } },
                     .priority = (int)(job % 3),
                     .data = b->data,
                     .len = job == 77 ? sizeof b->data : kept_number(job, 1) % 100,
                     .topic = b->topic,
                     .deadline_ns =
                         INT64_C(1800000000000000000) + (int64_t)(kept_number(job, 2) >> 20) };

    r.id.byte[13] = (unsigned char)job;
    r.until_ns = r.deadline_ns;
    if (job % 4 == 1) {
        r.attempts = job;
        r.failures = job / 2;
        r.until_ns += DUE_S(job);
    }
    if (job % 31 == 1)
        r.until_ns = r.deadline_ns = DUE_FOREVER;
    for (size_t i = 0; i < r.len; i++)
        b->data[i] = (unsigned char)(kept_number(job, 4) >> (i % 7 * 8));
    if (r.len == 0)
        r.data = NULL;
    b->topic[0] = '\0';
    if (job % 2 != 0)
        snprintf(b->topic, sizeof b->topic, "topic %u", job % 4);
    kept_more(job, b, &r);
    return r;
}

/* Some of those that were put are gone again. */
static inline bool kept_is_there(unsigned job)
{
    return job < 100 || job % 10 != 1;
}

static inline bool kept_bytes_same(const void *a, size_t a_len, const void *b, size_t b_len)
{
    return a_len == b_len && (a_len == 0 || memcmp(a, b, a_len) == 0);
}

/* Is it one of them, and what it was put with? */
static inline bool kept_is_whole(const due_record *r)
{
    static struct kept_bytes bytes;
    unsigned job = r->id.byte[13];
    due_record want = kept_record(job, &bytes);

    return job < KEPT_JOBS && memcmp(&want.id, &r->id, sizeof r->id) == 0 &&
           kept_bytes_same(want.data, want.len, r->data, r->len) &&
           kept_bytes_same(want.headers, want.headers_len, r->headers, r->headers_len) &&
           kept_bytes_same(want.group, want.group_len, r->group, r->group_len) &&
           want.every_ns == r->every_ns && want.expires_ns == r->expires_ns &&
           (want.retry == NULL) == (r->retry == NULL) && strcmp(want.topic, r->topic) == 0;
}

/* Is it as it was when the file was written? */
static inline bool kept_is_same(const due_record *r)
{
    static struct kept_bytes bytes;
    due_record want = kept_record(r->id.byte[13], &bytes);

    return kept_is_whole(r) && kept_is_there(r->id.byte[13]) && want.until_ns == r->until_ns &&
           want.deadline_ns == r->deadline_ns && want.attempts == r->attempts &&
           want.failures == r->failures && want.cause == r->cause &&
           kept_bytes_same(want.key, want.key_len, r->key, r->key_len) &&
           (want.cause == 0 || (want.died_ns == r->died_ns && strcmp(want.reason, r->reason) == 0));
}

/* Put all of them, and take some out. */
static inline void kept_write(struct sqlite_desk *d)
{
    static struct kept_bytes bytes;

    for (unsigned job = 0; job < KEPT_JOBS; job++) {
        due_change c = { .kind = DUE_CHANGE_PUT, .record = kept_record(job, &bytes), .is_new = 1 };

        CREW_CHECK(sqlite_desk_commit(d, &c, DUE_S(5)) == 0, ": %s", d->log);
    }
    for (unsigned job = 0; job < KEPT_JOBS; job++) {
        due_change c = { .kind = DUE_CHANGE_DROP, .record = kept_record(job, &bytes) };

        if (kept_is_there(job))
            continue;
        c.was_dead = c.record.cause != 0;
        c.was_ns = c.was_dead ? c.record.died_ns : c.record.until_ns;
        c.key_kept_ns = c.record.keep_key_ns == 0 ? 0 : DUE_FOREVER;
        CREW_CHECK(sqlite_desk_commit(d, &c, DUE_S(5)) == 0, ": %s", d->log);
    }
}

#endif
