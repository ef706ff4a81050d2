/* mall.h - one queue, several processes: queues of one program that share a disk and a clock.  The
 * jobs lie in memory, or with LAB_SHARED=redis in Redis: memory_real.h.
 *
 *     struct mall m = mall_make(2);
 *     lab_enqueue(&m.lab[0], "tea", .delay_ns = 5);
 *     mall_turn_to(&m, 5);
 *     cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
 *     ...
 *     mall_close(&m);
 */
#ifndef MALL_H
#define MALL_H

#include "due/store_shared.h"
#include "lab/lab.h"
#include "lab/mall_known.h"
#include "lab/memory_store.h"
#include "lab/take.h"

#define MALL_MOST 4

struct mall {
    struct memory_disk *disk;
    due_clock *clock;
    size_t n;
    due_store *store[MALL_MOST];
    struct lab lab[MALL_MOST];
};

/* One more process; its number.  @verbs: others than the store's own, or NULL. */
static inline size_t mall_join_by(struct mall *m, struct lab_options with,
                                  const struct due_store_verbs *verbs)
{
    size_t i = m->n++;

    cr_assert_lt(i, MALL_MOST);
    m->store[i] = memory_store_new(m->disk);
    if (verbs != NULL)
        m->store[i]->verbs = verbs;
    with.with.size = sizeof(due_options);
    with.with.store = m->store[i];
    with.with.share = DUE_SHARED;
    if (with.with.prefetch_max == 0)
        with.with.prefetch_max = 1;
    with.clock = m->clock;
    m->lab[i] = lab_open_with(&with);
    return i;
}

static inline size_t mall_join(struct mall *m, struct lab_options with)
{
    return mall_join_by(m, with, NULL);
}

static inline int64_t mall_now(void *clock)
{
    return due_clock_now(clock);
}

/* @stores: the clock of the disk, if that is another one. */
static inline struct mall mall_on(size_t n, due_clock *stores)
{
    const struct memory_disk_options disk = { .now = stores != NULL ? mall_now : NULL,
                                              .clock = stores,
                                              .real = true };
    struct mall m = { .disk = memory_disk_new(&disk), .clock = due_clock_manual(0) };

    while (m.n < n)
        mall_join(&m, (struct lab_options){ .kernel = false });
    return m;
}

static inline struct mall mall_make(size_t n)
{
    return mall_on(n, NULL);
}

static inline void mall_turn_to(struct mall *m, int64_t to_ns)
{
    cr_assert_eq(due_clock_turn_to(m->clock, to_ns), 0);
}

/* A job that is there, or comes at once: its caller waits for it, on the manual clock for ever. */
static inline int mall_take(struct mall *m, size_t i, due_job *job)
{
    return due_dequeue(m->lab[i].q, job, DUE_FOREVER);
}

static inline int mall_reserve(struct mall *m, size_t i, due_job *job, int64_t lease_ns)
{
    return take_leased(m->lab[i].q, job, lease_ns, DUE_FOREVER);
}

/* The process dies: nothing that it does from here on is seen by others. */
static inline void mall_die(struct mall *m, size_t i)
{
    memory_store_crash(m->store[i]);
}

static inline void mall_close(struct mall *m)
{
    for (size_t i = 0; i < m->n; i++)
        lab_close(&m->lab[i]);
    const char *wrong = memory_disk_wrong(m->disk);
    cr_expect_null(wrong, "%s", wrong);
    memory_disk_free(m->disk);
    cr_expect_eq(due_clock_free(m->clock), 0);
}

/* A test that runs in each of the proxies' modes that a queue with a store has; and with
 * LAB_SHARED=redis in Redis, unless mall_known.h says why not. */
#define MALL_TEST(suite, name)                                \
    static void suite##_##name##_in_mode(void);               \
    Test(suite, name, .timeout = 60)                          \
    {                                                         \
        const char *why = mall_left_out(#suite, #name);       \
        if (why != NULL)                                      \
            cr_skip("%s", why);                               \
        for (lab_proxies = 0; lab_proxies < 2; lab_proxies++) \
            suite##_##name##_in_mode();                       \
        lab_proxies = -1;                                     \
    }                                                         \
    static void suite##_##name##_in_mode(void)

#endif
