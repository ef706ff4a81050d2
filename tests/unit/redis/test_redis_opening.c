/* test_redis_opening.c - opening a store: what it tries again, what it says, and what it makes of
 * clocks and chance.
 *
 * This program stands between the library and the system: the real clock shows what a test wants,
 * and chance gives what it is told to.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "lab/kernel_time.h"
#include "lab/redis/redis_fake.h"
#include "lab/redis/redis_proxy_lab.h"
#include "redis/link/link_inside.h"

#define SHOWN __attribute__((visibility("default")))
#define DIGIT UINT64_C(0x0123456789abcdef)

static int64_t real_ns; /* what the real clock shows; 0: what it is */
static enum { CHANCE, DIGITS, NOTHING } chance;

SHOWN int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (clock != CLOCK_REALTIME || real_ns == 0)
        return (int)syscall(KERNEL_CLOCK_GETTIME, clock, t);
    t->tv_sec = real_ns / DUE_S(1);
    t->tv_nsec = real_ns % DUE_S(1);
    return 0;
}

SHOWN ssize_t getrandom(void *to, size_t len, unsigned flags)
{
    uint64_t digits = DIGIT;

    if (chance == NOTHING)
        return -1;
    if (chance == CHANCE || len != sizeof digits)
        return (ssize_t)syscall(SYS_getrandom, to, len, flags);
    memcpy(to, &digits, len);
    return (ssize_t)len;
}

/* ---- Clocks ---------------------------------------------------------------------------------- */

static int64_t queue_ns; /* the queue's own clock */
static char warned[256];

static int64_t queue_clock(void *ctx)
{
    (void)ctx;
    return queue_ns;
}

static void note_warning(void *queue, enum due_log_level level, const char *text)
{
    (void)queue;
    if (level == DUE_LOG_WARNING && strstr(text, "clock") != NULL)
        snprintf(warned, sizeof warned, "%s", text);
}

/* What is said of the clocks by an opening whose real clock is so far from the server's, and the
 * queue's so far from that one; "" if nothing is. */
static const char *said_of_clocks(int64_t real_is_ahead_ns, bool has_clock, int64_t queue_is_ahead)
{
    due_store *store = make((due_redis_options){ 0 }, NULL);
    struct due_store_open how = { .name = "q", .until_ns = soon(LONG_NS), .log = note_warning };
    struct timespec t;

    cr_assert_eq(syscall(KERNEL_CLOCK_GETTIME, CLOCK_REALTIME, &t), 0);
    real_ns = t.tv_sec * DUE_S(1) + t.tv_nsec + real_is_ahead_ns;
    queue_ns = real_ns + queue_is_ahead;
    how.now = has_clock ? queue_clock : NULL;
    warned[0] = '\0';
    cr_expect_eq(store->verbs->open(store, &how, &info, &error), 0, "%s", error.text);
    finish(store);
    real_ns = 0;
    return warned;
}

static long ms_in(const char *text)
{
    const char *at = strstr(text, "differ by ");

    return at != NULL ? strtol(at + strlen("differ by "), NULL, 10) : 0;
}

REDIS_TEST(redis_opening, says_by_how_much_the_servers_clock_is_wrong)
{
    long ms = ms_in(said_of_clocks(-DUE_S(60), true, 0));
    cr_expect(ms >= 60000 && ms < 110000, "%ld", ms);
    ms = ms_in(said_of_clocks(DUE_S(120), true, 0));
    cr_expect(ms >= -120000 && ms < -70000, "%ld", ms);
}

/* A queue on a clock of its own has nothing to do with the server's. */
REDIS_TEST(redis_opening, compares_only_what_is_the_real_clock)
{
    const int64_t wrong = -DUE_S(60);

    cr_expect_str_empty(said_of_clocks(wrong, false, 0));
    cr_expect_str_neq(said_of_clocks(wrong, true, DUE_S(1)), "");
    cr_expect_str_empty(said_of_clocks(wrong, true, DUE_S(1) + 1));
    cr_expect_str_neq(said_of_clocks(wrong, true, -DUE_S(1)), "");
    cr_expect_str_empty(said_of_clocks(wrong, true, -DUE_S(1) - 1));
}

/* What is said of a server whose clock shows so many microseconds of a certain second. */
static const char *said_of_us(const char *us)
{
    char reply[64];
    struct fault_cell cell = {
        .command = 1, .name = "TIME", .where = FAULT_SENT, .what = FAULT_REPLACE, .text = reply
    };
    struct due_store_open how = {
        .name = "q", .until_ns = soon(LONG_NS), .log = note_warning, .now = queue_clock
    };
    char url[128];

    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    snprintf(reply, sizeof reply, "*2\r\n$10\r\n1700000000\r\n$6\r\n%s", us);
    due_store *store = make((due_redis_options){ 0 }, url);
    fault_proxy_plan(proxy, &cell, 1);
    warned[0] = '\0';
    cr_expect_eq(store->verbs->open(store, &how, &info, &error), 0, "%s", error.text);
    finish(store);
    return warned;
}

REDIS_PROXY_TEST(redis_opening, says_nothing_of_a_clock_that_is_wrong_by_no_more_than_100_ms)
{
    queue_ns = real_ns = DUE_S(1700000000);
    cr_expect_str_empty(said_of_us("100000"));
    cr_expect_not_null(strstr(said_of_us("100001"), "differ by 100 ms"), "%s", warned);
    queue_ns = real_ns = DUE_S(1700000000) + DUE_MS(500);
    cr_expect_str_empty(said_of_us("400000"));
    cr_expect_not_null(strstr(said_of_us("399999"), "differ by -100 ms"), "%s", warned);
}

/* ---- Chance ---------------------------------------------------------------------------------- */

REDIS_TEST(redis_opening, draws_as_many_digits_as_it_has_room_for)
{
    due_store *store;

    chance = DIGITS;
    store = opened((due_redis_options){ 0 });
    cr_expect_str_eq(inside(store)->nonce, "0123456789abcdef");
    cr_expect_str_eq(inside(store)->incarnation, "0123456789abcdef0123456789abcdef");
    finish(store);
}

/* As in a machine that has just begun: then the time must do. */
REDIS_TEST(redis_opening, does_without_chance_where_there_is_none)
{
    char nonce[2][17];

    chance = NOTHING;
    for (int i = 0; i < 2; i++) {
        real_ns = DUE_S(1700000000) + i;
        due_store *store = opened((due_redis_options){ 0 });
        memcpy(nonce[i], inside(store)->nonce, sizeof nonce[i]);
        cr_expect_eq(strlen(nonce[i]), sizeof nonce[i] - 1);
        cr_expect_neq(strtoull(nonce[i], NULL, 16), 0u);
        finish(store);
    }
    cr_expect_str_neq(nonce[0], nonce[1]);
}

/* ---- What is asked again, and what is said --------------------------------------------------- */

static const struct fault_cell info_lost = {
    .command = 1, .name = "INFO", .where = FAULT_SENT, .what = FAULT_CLOSE
};

REDIS_PROXY_TEST(redis_opening, asks_again_on_another_connection_as_long_as_there_is_time)
{
    fault_proxy_plan(proxy, &info_lost, 1);
    due_store *store = opened_by_proxy((due_redis_options){ 0 });

    cr_expect_eq(fault_proxy_struck(proxy), 1u);
    cr_expect_eq(stats_of(store).connects, 2u);
    cr_expect_str_empty(inside(store)->trouble);
    finish(store);
}

/* What the server of the proxy answers to INFO. */
static void answer_info(const char *text)
{
    static char reply[150];
    struct fault_cell cell = {
        .command = 1, .name = "INFO", .where = FAULT_SENT, .what = FAULT_REPLACE, .text = reply
    };

    snprintf(reply, sizeof reply, "$%zu\r\n%s", strlen(text), text);
    fault_proxy_plan(proxy, &cell, 1);
}

static int taken_from(const char *version)
{
    char url[128];
    char text[64];

    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    snprintf(text, sizeof text, "redis_version:%s\r\nrun_id:abc", version);
    answer_info(text);
    due_store *store = make((due_redis_options){ 0 }, url);
    int rc = take(store, LONG_NS, &info, &error);
    cr_expect(rc != 0 || strcmp(inside(store)->server, "abc") == 0, "%s", inside(store)->server);
    finish(store);
    return rc;
}

REDIS_PROXY_TEST(redis_opening, takes_no_server_that_is_older_than_6_2)
{
    static const char *const old[] = { "6.1.9", "6", "6.0", "5.9.9", "2.8" };
    static const char *const young[] = { "6.2.0", "6.2", "6.10.1", "7.0.0", "10.1.0" };

    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        cr_expect_eq(taken_from(old[i]), DUE_ENOTSUP, "%s", old[i]);
        cr_expect_not_null(strstr(error.text, "older than 6.2"), "%s", error.text);
        cr_expect_not_null(strstr(error.text, old[i]), "%s", error.text);
    }
    for (size_t i = 0; i < sizeof young / sizeof *young; i++)
        cr_expect_eq(taken_from(young[i]), 0, "%s: %s", young[i], error.text);
}

static atomic_bool may_answer;

/* An old server, which answers all of a probe at once, when it is told to. */
static void serve_old(struct fake *fake, int fd, int nth)
{
    static const char answers[] = "$19\r\nredis_version:5.0.0\r\n*0\r\n*0\r\n:0\r\n:0\r\n:0\r\n"
                                  "+OK\r\n*0\r\n";

    (void)nth;
    if (!fake_greet(fake, fd, 2))
        return;
    while (!atomic_load(&may_answer))
        usleep(100);
    if (fake_say(fd, answers))
        fake_ignore(fd);
}

/* What is here is not late: it says what is wrong, and not that there was no time. */
Test(redis_opening, hears_what_is_there_when_its_time_is_up, .timeout = 60)
{
    struct fake fake;
    struct pollfd wait = { .events = POLLIN };
    bool fresh;

    fake_start(&fake, serve_old, NULL);
    due_store *store = make((due_redis_options){ 0 }, fake.url);
    struct due__link *l = inside(store)->link;
    cr_assert_eq(due__link_up(l, &fresh, soon(LONG_NS)), 0);
    due__link_look(l); /* nothing has come yet, and so nothing unasked */
    atomic_store(&may_answer, true);
    wait.fd = l->fd;
    cr_assert_eq(poll(&wait, 1, 10000), 1);
    cr_expect_eq(take(store, 0, &info, &error), DUE_ENOTSUP);
    cr_expect_not_null(strstr(error.text, "older than 6.2"), "%s", error.text);
    due_redis_free(store);
    fake_stop(&fake);
}

REDIS_TEST(redis_opening, takes_a_name_of_64_letters_and_none_longer)
{
    static char name[66];
    struct due_store_open how = { .until_ns = soon(LONG_NS), .name = name + 1, .log = keep_log };
    due_store *store = make((due_redis_options){ 0 }, NULL);

    memset(name, 'n', sizeof name - 1);
    cr_assert_eq(store->verbs->open(store, &how, &info, &error), 0, "%s", error.text);
    cr_expect_str_eq(inside(store)->name, name + 1);
    cr_expect_eq(inside(store)->how.name, (const char *)inside(store)->name, "the caller's goes");
    finish(store);
    store = make((due_redis_options){ 0 }, NULL);
    how.name = name;
    cr_expect_eq(store->verbs->open(store, &how, &info, &error), DUE_EINVAL);
    how.name = "no spaces";
    cr_expect_eq(store->verbs->open(store, &how, &info, NULL), DUE_EINVAL, "and tells nobody");
    cr_expect_eq(store->verbs->close(store, soon(LONG_NS)), 0, "what is not open is closed");
    cr_expect_eq(stats_of(store).connects, 0u);
    due_redis_free(store);
}

REDIS_TEST(redis_opening, is_done_once)
{
    due_store *store = opened((due_redis_options){ 0 });
    char nonce[17];

    memcpy(nonce, inside(store)->nonce, sizeof nonce);
    cr_expect_eq(take(store, LONG_NS, &info, &error), DUE_EINVAL);
    cr_expect_str_eq(inside(store)->nonce, nonce);
    cr_expect_eq(commit_one(store, put(1, 5), 1), 0, "and is as it was");
    finish(store);
}

/* What an earlier one has failed of is not what this one has. */
REDIS_TEST(redis_opening, says_what_is_wrong_this_time)
{
    due_store *store = make((due_redis_options){ 0 }, NULL);

    ASK("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    cr_expect_eq(take(store, LONG_NS, &info, &error), DUE_EDURABILITY);
    cr_expect_not_null(strstr(error.text, "may evict"), "%s", error.text);
    cr_expect_not_null(strstr(error.hint, "noeviction"), "%s", error.hint);
    cr_expect_not(due__link_is_up(inside(store)->link), "nobody is kept busy meanwhile");
    ASK("CONFIG", "SET", "requirepass", "secret");
    cr_expect_eq(take(store, LONG_NS, &info, &error), DUE_EACCES);
    cr_expect_not_null(strstr(error.text, server.socket), "%s", error.text);
    cr_expect_str_eq(error.hint, "check user and password");
    struct due_store_open how = { .name = "no spaces", .until_ns = soon(LONG_NS) };
    cr_expect_eq(store->verbs->open(store, &how, &info, &error), DUE_EINVAL);
    cr_expect_str_empty(error.text);
    cr_expect_str_empty(error.hint);
    due_redis_free(store);
}

REDIS_TEST(redis_opening, says_how_much_may_go_at_once_and_how_often_to_renew)
{
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_S(30) });

    cr_expect_eq(info.batch_changes, 256u);
    cr_expect_eq(info.renew_ns, DUE_S(10));
    finish(store);
    ASK("CONFIG", "SET", "appendonly", "yes");
    ASK("CONFIG", "SET", "appendfsync", "always");
    store = opened((due_redis_options){ 0 });
    cr_expect_eq(info.batch_changes, 1024u, "each takes a sync, so that more go together");
    finish(store);
}

/* ---- Closing --------------------------------------------------------------------------------- */

REDIS_TEST(redis_opening, can_be_ended_later_if_the_server_does_not_answer_now)
{
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_S(3600) });

    redis_server_freeze(&server);
    cr_expect_eq(store->verbs->close(store, soon(DUE_MS(20))), DUE_EAGAIN);
    redis_server_thaw(&server);
    cr_expect_eq(store->verbs->close(store, soon(LONG_NS)), 0);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:owner"), ":0\r\n");
    due_redis_free(store);
}
