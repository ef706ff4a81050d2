/* share_convert_lab.h - what tests share whose queue in Redis is owned and shared by turns: jobs of
 * all kinds, and what is stored as text.
 *
 * What is stored is written down as an owner is shown it, a line for each job and each kept key.
 */
#ifndef SHARE_CONVERT_LAB_H
#define SHARE_CONVERT_LAB_H

#include "lab/redis/share_store_lab.h"

#define LINE   320
#define MOST   12000
#define KINDS  10
#define FAR_NS (INT64_C(4000000000) * 1000000000)

/* ---- What is stored -------------------------------------------------------------------------- */

struct shelf {
    size_t n;
    char (*line)[LINE];
};

static inline uint64_t hash_of(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t hash = len;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

static inline char *new_line(struct shelf *shelf)
{
    if (shelf->line == NULL)
        shelf->line = calloc(MOST, sizeof *shelf->line);
    cr_assert_lt(shelf->n, (size_t)MOST);
    return shelf->line[shelf->n++];
}

static inline int write_job(void *ctx, const due_record *r)
{
    snprintf(new_line(ctx), LINE,
             "%04d p%d at%lld until%lld %s n%zu %llx h%llx a%u f%u ttl%lld ex%lld k%.*s %lld "
             "e%lld %d r%d c%d d%lld %s g%.*s",
             (int)sequence_of(r->id), r->priority, (long long)r->deadline_ns,
             (long long)r->until_ns, r->topic, r->len, (unsigned long long)hash_of(r->data, r->len),
             (unsigned long long)hash_of(r->headers, r->headers_len), r->attempts, r->failures,
             (long long)r->ttl_ns, (long long)r->expires_ns, (int)r->key_len,
             r->key_len > 0 ? (const char *)r->key : "", (long long)r->keep_key_ns,
             (long long)r->every_ns, (int)r->repeat, r->retry != NULL ? (int)r->retry->kind : 0,
             (int)r->cause, (long long)r->died_ns, r->reason != NULL ? r->reason : "",
             (int)r->group_len, r->group_len > 0 ? (const char *)r->group : "");
    return 0;
}

static inline int write_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    snprintf(new_line(ctx), LINE, "key %.*s of %d until %lld", (int)len, (const char *)key,
             (int)sequence_of(id), (long long)until_ns);
    return 0;
}

static inline int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static inline struct shelf shelf_of(due_store *store)
{
    struct shelf shelf = { .n = 0 };
    int rc = store->verbs->load(store, 1, 0, write_job, &shelf, soon(LONG_NS));

    while (rc == 1)
        rc = store->verbs->load(store, 0, 0, write_job, &shelf, soon(LONG_NS));
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    rc = store->verbs->keys(store, 1, 0, write_key, &shelf, soon(LONG_NS));
    while (rc == 1)
        rc = store->verbs->keys(store, 0, 0, write_key, &shelf, soon(LONG_NS));
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    (void)new_line(&shelf); /* it has one at least */
    shelf.n--;
    qsort(shelf.line, shelf.n, sizeof *shelf.line, by_text);
    return shelf;
}

static inline void same(struct shelf *now, const struct shelf *was, const char *when)
{
    cr_expect_eq(now->n, was->n, "%s: %zu instead of %zu", when, now->n, was->n);
    for (size_t i = 0; i < now->n && i < was->n; i++) {
        cr_expect_str_eq(now->line[i], was->line[i], "%s:\n  %s\n  %s", when, now->line[i],
                         was->line[i]);
        if (strcmp(now->line[i], was->line[i]) != 0)
            break;
    }
    free(now->line);
    now->line = NULL;
}

/* Of a shared queue no key is left. */
static inline void nothing_else(const char *when)
{
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:jk", "due:{q}:b", "due:{q}:c", "due:{q}:p", "due:{q}:w",
                         "due:{q}:h", "due:{q}:l:", "due:{q}:l:mail", "due:{q}:jg", "due:{q}:gh",
                         "due:{q}:g", "due:{q}:g:", "due:{q}:g:mail",
                         "due:{q}:o:", "due:{q}:o:mail"),
                     ":0\r\n", "%s", when);
    cr_expect_null(strstr(ASK("HKEYS", "due:{q}:writers"), ":w"), "%s", when);
    cr_expect_str_eq(ASK("HMGET", "due:{q}:meta", "mode", "format", "least_reader"),
                     "*3\r\n$5\r\nowner\r\n$1\r\n1\r\n$1\r\n1\r\n", "%s", when);
}

/* ---- Jobs of all kinds ----------------------------------------------------------------------- */

static char large[20000];

static inline due_change job_of_kind(uint64_t n)
{
    static char keys[MOST][8];
    static const due_retry retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 7 };
    due_change c = put(n, (int64_t)n * 1000);
    due_record *r = &c.record;

    r->topic = n % 3 == 0 ? "mail" : "";
    memset(large, 'x', sizeof large);
    switch (n % KINDS) {
    case 0:
        r->deadline_ns = r->until_ns = FAR_NS + (int64_t)n;
        break;
    case 1:
        r->until_ns = FAR_NS + (int64_t)n; /* waits to be tried again */
        r->attempts = r->failures = 2;
        break;
    case 2:
        r->cause = DUE_CAUSE_BURIED;
        r->died_ns = (int64_t)n * 5000;
        r->reason = "broken";
        break;
    case 3:
        snprintf(keys[n], sizeof keys[n], "k%d", (int)n);
        r->key = keys[n];
        r->key_len = strlen(keys[n]);
        r->keep_key_ns = DUE_S(60);
        break;
    case 4:
        r->every_ns = DUE_S(5);
        break;
    case 5:
        r->id.byte[0] = (unsigned char)(255 - n % 200);
        r->priority = (int)(n % 200);
        break;
    case 6:
        r->ttl_ns = DUE_S(7);
        r->expires_ns = FAR_NS;
        r->retry = &retry;
        break;
    case 7:
        r->data = large;
        r->len = n % 100 == 7 ? sizeof large : 100;
        r->headers = "h:1";
        r->headers_len = 3;
        break;
    case 8:
        r->group = keys[n];
        r->group_len = (size_t)snprintf(keys[n], sizeof keys[n], "g%d", (int)n);
        break;
    default:
        break;
    }
    return c;
}

/* What an owner leaves: @n jobs of all kinds, and a kept key. */
static inline struct shelf fill_all(uint64_t n)
{
    due_store *store = opened((due_redis_options){ 0 });
    due_change some[256];
    uint64_t number = 1;

    for (uint64_t i = 1; i <= n;) {
        size_t k = 0;
        for (; k < 256 && i <= n; k++, i++)
            some[k] = job_of_kind(i);
        cr_assert_eq(commit(store, some, k, number++), 0);
    }
    due_change kept = { .kind = DUE_CHANGE_KEEP,
                        .key_kept_ns = FAR_NS,
                        .record = {
                            .id = id_of(0, 99999), .topic = "", .key = "gone", .key_len = 4 } };
    cr_assert_eq(commit(store, &kept, 1, number), 0);
    struct shelf shelf = shelf_of(store);
    cr_assert_eq(shelf.n, n + 1);
    finish(store);
    return shelf;
}

#endif
