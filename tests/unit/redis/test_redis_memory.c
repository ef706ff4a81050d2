/* test_redis_memory.c - every allocation of the second library fails in turn, in every verb of a
 * store.
 *
 * Not those of hiredis: redis_no_memory makes them fail, in a link.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>

#include "lab/redis/redis_proxy_lab.h"
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

static int note_topic(void *ctx, const char *topic, int paused, int64_t held_max)
{
    (void)ctx, (void)topic, (void)paused, (void)held_max;
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
 * that stands nowhere, one that is stranded, one that cannot be read, and a key that is kept. */
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
    ASK("EVAL",
        "local id = redis.call('ZPOPMIN', KEYS[1])[1] return redis.call('ZADD', KEYS[2], 5, id)",
        "2", "due:{q}:t:c", "due:{q}:l:c"); /* it is stranded */
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
    if (rc == 0)
        TRY(rc, store->verbs->topics(store, note_topic, NULL, soon(LONG_NS)));
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

/* ---- What has no memory does without, or is given back --------------------------------------- */

static void watch_begin(void)
{
    refusing.live = 0;
    refusing.watching = true;
}

/* A call has ended with one of its answers there and another still to come. */
REDIS_PROXY_TEST(redis_memory, of_answers_that_nobody_has_looked_at_is_given_back)
{
    struct fault_cell second = { .command = 2, .where = FAULT_BEFORE, .what = FAULT_STALL };
    struct seen seen = { 0 };

    watch_begin();
    due_store *store = opened_by_proxy((due_redis_options){ 0 });
    cr_assert_eq(commit_one(store, put(1, 5000), 1), 0);
    fault_proxy_plan(proxy, &second, 1);
    cr_expect_eq(store->verbs->find(store, id_of(0, 1), see, &seen, soon(DUE_MS(300))), DUE_EAGAIN);
    cr_assert_gt(inside(store)->air.got, 0u, "there is no answer yet");
    due_redis_free(store);
    refusing.watching = false;
    cr_expect_eq(refusing.live, 0, "%ld blocks are still out", refusing.live);
}

static bool no_mutex;

REFUSING_SHOWN int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *how)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    (void)how;
    *m = fresh;
    return no_mutex ? ENOMEM : 0;
}

static int descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

Test(redis_memory, is_given_back_where_there_is_no_lock_to_be_had)
{
    due_store *store = NULL;
    int before = descriptors();

    no_mutex = true;
    watch_begin();
    cr_expect_eq(due_redis_open(&store, "unix:///nowhere/s", NULL, &error), DUE_ENOMEM);
    refusing.watching = false;
    no_mutex = false;
    cr_expect_null(store);
    cr_expect_str_eq(error.text, "no memory, or no descriptor");
    cr_expect_eq(refusing.live, 0, "%ld blocks are still out", refusing.live);
    cr_expect_eq(descriptors(), before);
}

/* A link has taken its address over, whatever comes of it: above all the password. */
Test(redis_memory, for_a_link_may_be_short_and_its_address_is_gone_all_the_same)
{
    const struct due__link_limits limits = { .reply_elements = 10, .reply_bytes = 1000 };
    long refused = 1;

    for (long n = 0; refused > 0; n++) {
        struct due__address address;

        cr_assert_eq(due__address_parse(&address, "unix://u:secret@/nobody?db=0", NULL), 0);
        refusing.left = n;
        refusing.refused = 0;
        refusing.spares = is_of_others;
        refusing.counting = true;
        struct due__link *l = due__link_new(&address, &limits, "t");
        refusing.counting = false;
        refused = refusing.refused;
        cr_expect_eq(l == NULL, refused > 0, "%ld", n);
        cr_expect_null(address.password, "%ld", n);
        cr_expect_null(address.path, "%ld", n);
        due__link_free(l);
    }
}

/* Then topics are found more slowly, and found. */
Test(redis_memory, is_not_needed_for_a_larger_table_of_topics)
{
    enum { FIRST = 64 }; /* so many that the table is to grow */
    due_store *store = make((due_redis_options){ 0 }, "unix:///nowhere/s");
    struct due__redis *s = inside(store);
    struct due__redis_topic *met[FIRST + 1];
    char name[16];

    due__redis_name_keys(s);
    for (int i = 0; i <= FIRST; i++) {
        refusing.left = refusing.refused = 0;
        refusing.counting = i == FIRST;
        int len = snprintf(name, sizeof name, "topic%d", i);
        met[i] = due__redis_topic(s, name, (size_t)len);
        refusing.counting = false;
        cr_assert_not_null(met[i], "%d", i);
    }
    cr_expect_eq(refusing.refused, 1, "it was not to grow");
    for (int i = 0; i <= FIRST; i++) {
        int len = snprintf(name, sizeof name, "topic%d", i);
        cr_expect_eq(due__redis_topic(s, name, (size_t)len), met[i], "%d", i);
    }
    due_redis_free(store);
}

#endif
