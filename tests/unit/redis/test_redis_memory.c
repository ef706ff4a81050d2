/* test_redis_memory.c - every allocation of the second library fails in turn, in every verb of a
 * store.
 *
 * Not those of hiredis: redis_no_memory makes them fail, in a link.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "lab/redis/redis_store_lab.h"
#include "lab/redis/refusing_malloc.h"

#if !REFUSING_MALLOC

Test(redis_memory, is_not_ours_to_refuse_here)
{
    cr_skip_test("the allocator is the sanitizer's");
}

#else

#define JOBS 90 /* those that the store is to read, in topics of this many: */
#define EACH 30
#define LOST 60

/* Only calls of the library itself: others are not ours to test. */
static bool is_of_others(const void *by)
{
    Dl_info of;

    return dladdr(by, &of) == 0 || strstr(of.dli_fname, "hiredis") != NULL ||
           strstr(of.dli_fname, "libc.so") != NULL;
}

/* Counts, and takes no memory. */
static unsigned times[256];
static unsigned keys;

static int note(void *ctx, const due_record *record)
{
    (void)ctx;
    times[sequence_of(record->id) % 256]++;
    return 0;
}

static int note_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    (void)ctx, (void)key, (void)len, (void)id, (void)until_ns;
    keys++;
    return 0;
}

static due_change of(due_change c, const char *topic)
{
    c.record.topic = topic;
    return c;
}

static due_change with_key(due_change c, const char *key)
{
    c.record.key = key;
    c.record.key_len = strlen(key);
    return c;
}

/* Three topics, one of which is not listed; a dead job, one with a key, one with an entry; a record
 * that stands nowhere, one that cannot be read, and a key that is kept. */
static void prepare_server(void)
{
    static const char *const name[] = { "a", "b", "c" };
    due_store *store = opened((due_redis_options){ 0 });
    due_change changes[JOBS];
    due_change gone = with_key(drop(101, 9000), "kept");

    for (uint64_t i = 0; i < JOBS; i++)
        changes[i] = of(put(i + 1, 5000 + (int64_t)i * 1000), name[i / EACH]);
    changes[3] = of(dead(4, 7000), "a");
    changes[4] = with_key(changes[4], "key");
    changes[5].record.attempts = 1;
    cr_assert_eq(commit(store, changes, JOBS, 1), 0);
    cr_assert_eq(commit_one(store, with_key(put(101, 9000), "kept"), 2), 0);
    gone.key_kept_ns = DUE_S(1);
    cr_assert_eq(commit_one(store, gone, 3), 0);
    finish(store);
    ASK("HDEL", "due:{q}:topics", "c");
    ASK("ZADD", "due:{q}:t:a", "5", "fourteen bytes");
    ASK("ZPOPMAX", "due:{q}:t:b"); /* the job LOST */
}

/* There was no memory: now there is. */
static bool once_more(int rc)
{
    refusing.counting = refusing.counting && rc != DUE_ENOMEM;
    return rc == DUE_ENOMEM;
}

#define TRY(rc, call)      \
    do {                   \
        (rc) = (call);     \
        if (once_more(rc)) \
            (rc) = (call); \
    } while (0)

static int load_on(due_store *store, bool rewind)
{
    int rc;

    TRY(rc, store->verbs->load(store, rewind, 7, note, NULL, soon(LONG_NS)));
    return rc;
}

static int commit_again(due_store *store, due_change *changes, size_t n, uint64_t number)
{
    int rc;

    TRY(rc, commit(store, changes, n, number));
    return rc;
}

/* Batches come while all is read: one moves a job to where it was read already. */
static int use(due_store *store)
{
    due_change old[] = { of(drop(1, 5000), "a"), of(move(30, 34000, 5), "a"),
                         of(move(31, 35000, 90000), "b"), of(move(4, 5000, 8000), "a") };
    due_id some = id_of(0, 50);
    int rc;

    old[3].was_dead = 1;
    old[3].was_ns = 7000;
    TRY(rc, take(store, LONG_NS, &info, &error)); /* from here on jobs are this one's */
    due_change first[] = { of(put(201, 5000), "new"), with_key(of(put(202, 6000), "b"), "other"),
                           old[0] };
    if (rc == 0)
        rc = load_on(store, true);
    if (rc >= 0)
        rc = commit_again(store, first, 3, 1);
    if (rc == 0)
        rc = load_on(store, false);
    if (rc >= 0)
        rc = commit_again(store, old + 1, 3, 2);
    for (int call = 0; (call == 0 && rc == 0) || rc == 1; call++)
        rc = load_on(store, false);
    for (int call = 0; rc == 0 && call < 2; call++) { /* broken off between its two questions */
        (void)store->verbs->keys(store, call == 0, 7, note_key, NULL, soon(0));
        nap(DUE_MS(1));
    }
    keys = 0;
    for (int call = 0; (call == 0 && rc == 0) || rc == 1; call++)
        TRY(rc, store->verbs->keys(store, call == 0, 7, note_key, NULL, soon(LONG_NS)));
    if (rc == 0)
        TRY(rc, store->verbs->find(store, some, note, NULL, soon(LONG_NS)));
    return rc;
}

static void expect(long n, const char *const *words, const char *answer)
{
    const char *got = ask(words);

    cr_expect_str_eq(got, answer, "allocation %ld: %s %s: %s", n, words[0], words[1], got);
}

/* With the @n-th allocation refused, or @all from there on until a verb says so.  False: there were
 * fewer. */
static bool attempt(long n, bool all)
{
    due_redis_options o = { DUE_REDIS_OPTIONS_INIT, .backoff_min_ns = DUE_MS(1) };
    due_store *store = NULL;
    int rc;

    prepare_server();
    memset(times, 0, sizeof times);
    keys = 0;
    refusing.left = n;
    refusing.all = all;
    refusing.live = refusing.refused = 0;
    refusing.spares = is_of_others;
    refusing.watching = refusing.counting = true;
    TRY(rc, due_redis_open(&store, server.url, &o, &error));
    if (rc == 0) {
        rc = use(store);
        store->verbs->close(store, soon(LONG_NS));
        due_redis_free(store);
    }
    refusing.watching = refusing.counting = false;
    cr_assert_eq(rc, 0, "allocation %ld: %s: %s", n, due_error_name(rc), error.text);
    cr_expect_eq(refusing.live, 0, "allocation %ld: %ld blocks are still out", n, refusing.live);
    for (int i = 2; i <= JOBS; i++)
        cr_expect(times[i] > 0 || i == LOST, "allocation %ld: job %d was not shown", n, i);
    cr_expect_eq(keys, 1u, "allocation %ld", n);
    expect(n, (const char *const[]){ "HLEN", "due:{q}:j", NULL }, ":90\r\n");
    expect(n, (const char *const[]){ "HLEN", "due:{q}:q", NULL }, ":2\r\n");
    expect(n, (const char *const[]){ "HLEN", "due:{q}:topics", NULL }, ":5\r\n");
    expect(n, (const char *const[]){ "EXISTS", "due:{q}:dead", NULL }, ":0\r\n");
    ASK("FLUSHALL");
    return refusing.refused > 0;
}

REDIS_TEST(redis_memory, may_be_short_for_a_moment_in_any_verb)
{
    for (int all = 0; all < 2; all++) {
        long n = 0;

        while (attempt(n, all) && n < 1000)
            n++;
        cr_expect(n > 15 && n < 1000, "%ld allocations", n);
    }
}

#endif
