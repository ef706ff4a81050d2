/* test_redis_figures.c - what stats() shows of a store: it is right, and changed under its lock
 * only.
 *
 * This program stands between the library and pthread_mutex_lock(): while nobody has the lock, the
 * figures must stay as they were when it was given back.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "lab/redis/redis_proxy_lab.h"

#define SHOWN __attribute__((visibility("default")))

static struct {
    struct due__redis *of; /* whose lock; NULL: nobody's */
    struct due_store_stats figures;
    unsigned taken;
    bool held;
    const char *wrong;
} watch;

static bool figures_are_as_they_were(void)
{
    return memcmp(&watch.figures, &watch.of->shown, sizeof watch.figures) == 0;
}

SHOWN int pthread_mutex_lock(pthread_mutex_t *m)
{
    static int (*lock)(pthread_mutex_t * m);

    if (lock == NULL)
        *(void **)&lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    if (watch.of == NULL || m != &watch.of->lock)
        return lock(m);
    if (watch.held)
        watch.wrong = "it is taken twice";
    else if (!figures_are_as_they_were())
        watch.wrong = "somebody has changed a figure without it";
    watch.held = true;
    watch.taken++;
    return 0;
}

SHOWN int pthread_mutex_unlock(pthread_mutex_t *m)
{
    static int (*unlock)(pthread_mutex_t * m);

    if (unlock == NULL)
        *(void **)&unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    if (watch.of == NULL || m != &watch.of->lock)
        return unlock(m);
    if (!watch.held)
        watch.wrong = "who has not taken it gives it back";
    watch.held = false;
    watch.figures = watch.of->shown;
    return 0;
}

static void watch_begin(due_store *store)
{
    memset(&watch, 0, sizeof watch);
    watch.figures = inside(store)->shown;
    watch.of = inside(store);
}

/* Of one call. */
static void watch_end(const char *call)
{
    cr_expect_null(watch.wrong, "%s: %s", call, watch.wrong);
    cr_expect_not(watch.held, "%s: the lock is not given back", call);
    cr_expect(figures_are_as_they_were(), "%s: a figure is changed without the lock", call);
    cr_expect_gt(watch.taken, 0u, "%s: the lock is not taken", call);
    watch.of = NULL;
}

static int no_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    (void)ctx, (void)key, (void)len, (void)id, (void)until_ns;
    return 0;
}

REDIS_TEST(redis_figures, are_changed_under_their_lock_by_every_verb)
{
    due_store *store = make((due_redis_options){ 0 }, NULL);
    struct due_store_stats stats;
    struct seen seen = { 0 };
    due_change prepared = put(2, 5);
    int64_t held;

    watch_begin(store);
    cr_assert_eq(take(store, LONG_NS, &info, &error), 0, "%s", error.text);
    watch_end("open");
    watch_begin(store);
    cr_expect_eq(commit_one(store, put(1, 5), 1), 0);
    watch_end("commit");
    cr_assert_eq(store->verbs->prepare(store, &prepared, 1, 2), 0);
    watch_begin(store);
    cr_expect_eq(store->verbs->send(store, 2, soon(LONG_NS)), 0);
    watch_end("send");
    cr_expect_eq(commit_one(store, prepared, 2), 0);
    watch_begin(store);
    cr_expect_eq(store->verbs->ready(store, soon(LONG_NS)), 0);
    watch_end("ready");
    watch_begin(store);
    cr_expect_eq(store->verbs->renew(store, &held, soon(LONG_NS)), 0);
    watch_end("renew");
    watch_begin(store);
    cr_expect_eq(store->verbs->find(store, id_of(0, 1), see, &seen, soon(LONG_NS)), 0);
    watch_end("find");
    watch_begin(store);
    cr_expect_eq(load_all(store, 0, &seen), 0);
    watch_end("load");
    watch_begin(store);
    cr_expect_eq(store->verbs->keys(store, 1, 9, no_key, NULL, soon(LONG_NS)), 0);
    watch_end("keys");
    watch_begin(store);
    store->verbs->stats(store, &stats);
    watch_end("stats");
    watch_begin(store);
    cr_expect_eq(store->verbs->close(store, soon(LONG_NS)), 0);
    watch_end("close");
    free(seen.data);
    due_redis_free(store);
}

REDIS_TEST(redis_figures, say_what_is_and_what_was)
{
    ASK("CONFIG", "SET", "appendonly", "yes");
    due_store *store = make((due_redis_options){ 0 }, NULL);

    cr_expect_not(stats_of(store).connected);
    cr_assert_eq(take(store, LONG_NS, &info, &error), 0, "%s", error.text);
    struct due_store_stats first = stats_of(store);
    cr_expect(first.connected);
    cr_expect_eq(first.connects, 1u);
    cr_expect_eq(first.durability, DUE_DURABLE_EVERYSEC);
    cr_expect_gt(first.bytes_in, 0u);
    cr_expect_gt(first.bytes_out, 0u);
    cr_expect_eq(first.round_trip_ns, 0);
    int64_t before = due__mono_ns();
    cr_assert_eq(commit_one(store, put(1, 5), 1), 0);
    struct due_store_stats second = stats_of(store);
    cr_expect_gt(second.round_trip_ns, 0);
    cr_expect_leq(second.round_trip_ns, due__mono_ns() - before);
    cr_expect_eq(second.batches, 1u);
    cr_expect_gt(second.bytes_in, first.bytes_in);
    cr_expect_gt(second.bytes_out, first.bytes_out);
    redis_server_kill(&server);
    cr_expect_neq(commit_one(store, put(2, 5), 2), 0);
    cr_expect_not(stats_of(store).connected);
    cr_expect_eq(stats_of(store).round_trip_ns, second.round_trip_ns, "nothing was committed");
    due_redis_free(store);
}
