/* stored_both.h - tests of stored queues that run on the store in memory and on Redis.
 *
 *     BOTH_TEST(stored_dead, a_buried_job_stays_dead)
 *     {
 *         struct shop s = shop_new(where, (struct lab_options){ .start_ns = 5 });
 *         ...
 *         shop_crash(&s, (struct lab_options){ .start_ns = 5 });
 *         ...
 *         shop_close(&s);
 *     }
 *
 * @where is IN_MEMORY or, where libdue-redis is, also IN_REDIS, on a server of the test's own.
 */
#ifndef STORED_BOTH_H
#define STORED_BOTH_H

#include "lab/lab.h"
#include "lab/memory_store.h"

#ifdef DUE_HAVE_REDIS
#include "lab/redis/stored_redis_lab.h"
#endif

enum where { IN_MEMORY, IN_REDIS };

struct shop {
    enum where where;
    struct memory_disk *disk; /* in memory only */
    due_store *store;
    struct lab lab;
};

#ifdef DUE_HAVE_REDIS

#define BOTH_TEST(suite, name)                                                        \
    static void suite##_##name##_on(enum where where);                                \
    Test(suite, name##_in_memory, .timeout = 100)                                     \
    {                                                                                 \
        suite##_##name##_on(IN_MEMORY);                                               \
    }                                                                                 \
    Test(suite, name##_in_redis, .init = serve_plainly, .fini = stop, .timeout = 100) \
    {                                                                                 \
        suite##_##name##_on(IN_REDIS);                                                \
    }                                                                                 \
    static void suite##_##name##_on(enum where where)

static inline due_store *shop_store(struct shop *s)
{
    return s->where == IN_MEMORY ? memory_store_new(s->disk)
                                 : store_at(server.url, (due_redis_options){ .size = 0 });
}

/* As if the program had died: its successor need not wait. */
static inline void shop_die(struct shop *s)
{
    if (s->where == IN_MEMORY)
        memory_store_crash(s->store);
    else
        ASK("DEL", "due:{queue}:owner");
}

static inline void shop_fill(struct shop *s, bool full)
{
    if (s->where == IN_REDIS)
        ASK("CONFIG", "SET", "maxmemory", full ? "1" : "0");
    else if (full)
        memory_store_fault(s->store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                            .times = MEMORY_ALWAYS,
                                                            .kind = MEMORY_FULL });
    else
        memory_store_forgive(s->store);
}

/* The store forgets everything. */
static inline void shop_lose(struct shop *s)
{
    if (s->where == IN_MEMORY)
        memory_disk_lose(s->disk, SIZE_MAX);
    else
        ASK("FLUSHALL");
}

#else

#define BOTH_TEST(suite, name)                         \
    static void suite##_##name##_on(enum where where); \
    Test(suite, name##_in_memory, .timeout = 100)      \
    {                                                  \
        suite##_##name##_on(IN_MEMORY);                \
    }                                                  \
    static void suite##_##name##_on(enum where where)

static inline due_store *shop_store(struct shop *s)
{
    return memory_store_new(s->disk);
}

static inline void shop_die(struct shop *s)
{
    memory_store_crash(s->store);
}

static inline void shop_fill(struct shop *s, bool full)
{
    if (full)
        memory_store_fault(s->store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                            .times = MEMORY_ALWAYS,
                                                            .kind = MEMORY_FULL });
    else
        memory_store_forgive(s->store);
}

static inline void shop_lose(struct shop *s)
{
    memory_disk_lose(s->disk, SIZE_MAX);
}

#endif

static inline void shop_open(struct shop *s, struct lab_options with)
{
    with.with.size = sizeof(due_options);
    s->store = with.with.store = shop_store(s);
    s->lab = lab_open_with(&with);
    while (lab_stats(&s->lab).loading)
        crew_sleep(DUE_MS(1));
}

static inline struct shop shop_new(enum where where, struct lab_options with)
{
    struct shop s = { .where = where };

    if (where == IN_MEMORY)
        s.disk = memory_disk_new(NULL);
    shop_open(&s, with);
    return s;
}

/* The program dies, and starts again. */
static inline void shop_crash(struct shop *s, struct lab_options with)
{
    struct lab old = s->lab;

    shop_die(s);
    if (s->where == IN_MEMORY) {
        lab_close(&old);
        shop_open(s, with);
    } else {
        shop_open(s, with);
        lab_close(&old);
    }
}

static inline void shop_close(struct shop *s)
{
    lab_close(&s->lab);
    if (s->where == IN_REDIS)
        return;
    const char *wrong = memory_disk_wrong(s->disk);
    cr_expect_null(wrong, "%s", wrong);
    memory_disk_free(s->disk);
}

/* How many jobs the next program would find.  Nothing is on its way after that. */
static inline uint64_t shop_stored(struct shop *s)
{
    cr_expect_eq(due_flush(s->lab.q, DUE_S(30)), 0);
#ifdef DUE_HAVE_REDIS
    if (s->where == IN_REDIS)
        return strtoull(ASK("HLEN", "due:{queue}:j") + 1, NULL, 10);
#endif
    return memory_disk_jobs(s->disk);
}

/* ---- Jobs that are reserved, or dead ---- */

#define LEASE 100

#define AT(...) ((struct lab_options){ .start_ns = __VA_ARGS__ })

static inline due_job reserve(struct shop *s)
{
    due_job job = { 0 };
    int rc = lab_reserve(&s->lab, &job, LEASE);

    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    return job;
}

static inline int try_reserve(struct shop *s)
{
    due_job job;

    return lab_reserve(&s->lab, &job, LEASE);
}

/* The only dead job there is. */
static inline due_dead only_dead(struct shop *s)
{
    uint64_t cursor = 0;
    due_dead dead[2] = { 0 };
    int n = due_list_dead(s->lab.q, &cursor, dead, 2);

    cr_assert_eq(n, 1, "%d", n);
    return dead[0];
}

/* What is done without a caller: until there are so many dead jobs. */
static inline void until_dead(struct shop *s, uint64_t n)
{
    for (int i = 0; i < 3000 && lab_stats(&s->lab).dead != n; i++)
        crew_sleep(DUE_MS(5));
    cr_assert_eq(lab_stats(&s->lab).dead, n);
}

static inline void until_stored(struct shop *s, uint64_t n)
{
    for (int i = 0; i < 3000 && shop_stored(s) != n; i++)
        crew_sleep(DUE_MS(5));
    cr_expect_eq(shop_stored(s), n);
}

#endif
