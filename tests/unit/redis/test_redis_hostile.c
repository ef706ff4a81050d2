/* Servers that break off, stall, lie, or want our memory. */
#include "lab/redis/redis_link_lab.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a server says after a friendly greeting, to any command. */
struct script {
    const char *says;
    size_t times;     /* so often; 0: once */
    bool by_bytes;    /* one at a time */
    bool then_closes; /* else it says no more */
    bool then_half;   /* it shuts down its side only */
};

static void serve_script(struct fake *fake, int fd, int nth)
{
    const struct script *script = fake->ctx;
    char text[FAKE_TEXT];
    size_t times = script->times > 0 ? script->times : 1;

    (void)nth;
    if (!fake_greet(fake, fd, 2) || !fake_hear(fake, fd, text))
        return;
    for (const char *c = script->says; script->by_bytes && *c != '\0'; c++) {
        usleep(500);
        if (!fake_say_bytes(fd, c, 1))
            return;
    }
    for (size_t i = 0; i < times && !script->by_bytes; i++) {
        if (!fake_say(fd, script->says))
            return;
    }
    if (script->then_half)
        shutdown(fd, SHUT_WR);
    if (!script->then_closes)
        fake_ignore(fd);
}

/* Ask a server of this script one thing: what becomes of it. */
static int ask(struct script script, struct due__link_limits limits, const char *trouble)
{
    struct fake fake;

    fake_start(&fake, serve_script, &script);
    struct due__link *l = link_of(fake.url, limits);
    link_is_up(l);
    cr_assert_eq(link_asks(l, "GET"), 0);
    int rc = link_fails(l, in_ns(DUE_S(20)));
    cr_expect_eq(due__link_is_up(l), rc == 0, "%s", script.says);
    if (rc != 0 && trouble != NULL)
        cr_expect_str_eq(due__link_trouble(l), trouble, "%.20s", script.says);
    due__link_free(l);
    fake_stop(&fake);
    return rc;
}

static long kib_at_most(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

#define CLOSED   "the server closed the connection"
#define NONSENSE "the server's reply makes no sense, or is too large"

Test(hostile, a_reply_may_come_one_byte_at_a_time, .timeout = 60)
{
    struct script script = { .says = "*2\r\n$5\r\nhello\r\n*1\r\n:12\r\n", .by_bytes = true };

    cr_expect_eq(ask(script, link_limits(), NULL), 0);
}

Test(hostile, a_connection_that_ends_is_down, .timeout = 60)
{
    static const char *const said[] = { "", "$5\r\nhel", "$5", "*2\r\n+OK\r\n", "+OK" };

    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        struct script closes = { .says = said[i], .then_closes = true };
        struct script half = { .says = said[i], .then_half = true };

        cr_expect_eq(ask(closes, link_limits(), CLOSED), DUE_ESTORE);
        cr_expect_eq(ask(half, link_limits(), CLOSED), DUE_ESTORE);
    }
}

Test(hostile, a_whole_reply_before_the_end_is_heard, .timeout = 60)
{
    struct script script = { .says = "+OK\r\n", .then_closes = true };

    cr_expect_eq(ask(script, link_limits(), NULL), 0);
}

Test(hostile, a_reply_that_is_not_whole_in_time_takes_the_link_down, .timeout = 60)
{
    static const char *const said[] = { "", "$5\r\nhel", "*2\r\n+OK\r\n" };

    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        struct due__link_limits limits = link_limits();
        struct script script = { .says = said[i] };

        limits.answer_ns = DUE_MS(100);
        cr_expect_eq(ask(script, limits, "no answer in time"), DUE_ESTORE);
    }
}

Test(hostile, garbage_takes_the_link_down, .timeout = 60)
{
    static const char *const said[] = {
        "HTTP/1.1 400 Bad Request\r\n",
        "OK\r\n",
        "\r\n",
        "+OK\n",
        "+O\rK\r\n",
        "$3\r\nabcd\r\n",
        "$-2\r\n",
        "$03\r\nabc\r\n",
        "$\r\n",
        "*-2\r\n",
        "*x\r\n",
        ":12x\r\n",
        ":\r\n",
        ":99999999999999999999\r\n",
        "%1\r\n+a\r\n+b\r\n",
        "_\r\n",
        ">1\r\n+a\r\n",
        "$18446744073709551615\r\n",
    };

    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        struct script script = { .says = said[i] };

        cr_expect_eq(ask(script, link_limits(), NONSENSE), DUE_ESTORE, "%s", said[i]);
    }
}

/* Thirteen bytes must not cost 16 GiB, nor anything else. */
Test(hostile, announced_sizes_are_not_believed, .timeout = 60)
{
    static const struct script scripts[] = {
        { .says = "*2147483647\r\n" },
        { .says = "$2147483647\r\n" },
        { .says = "*1001\r\n" },
        { .says = "$4194304\r\n" },
        { .says = "$9223372036854775807\r\n" },
        { .says = "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n" },
        { .says = "*1\r\n", .times = 100000 },
        { .says = "*1000\r\n", .times = 100000 },
        { .says = "+xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", .times = 100000 },
        { .says = ":1111111111", .times = 100000 },
        { .says = "$1000000", .times = 100000 },
    };
    long before = kib_at_most();

    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        cr_expect_eq(ask(scripts[i], link_limits(), NONSENSE), DUE_ESTORE, "%zu", i);
    cr_expect_lt(kib_at_most() - before, 64 * 1024);
}

/* An array of what is allowed, of strings that together are not. */
Test(hostile, many_small_things_are_counted_too, .timeout = 60)
{
    struct due__link_limits limits = link_limits();
    struct script fine = { .says = "*2\r\n$5\r\nhello\r\n$5\r\nhello\r\n" };

    limits.reply_bytes = 300;
    cr_expect_eq(ask(fine, limits, NULL), 0);
    limits.reply_bytes = 200;
    cr_expect_eq(ask(fine, limits, NONSENSE), DUE_ESTORE);
}

/* A bulk of this many KiB, 32 of them every few milliseconds. */
static void serve_at_a_walk(struct fake *fake, int fd, int nth)
{
    const int *kib = fake->ctx;
    char text[FAKE_TEXT];
    static char bytes[32 << 10];

    (void)nth;
    if (!fake_greet(fake, fd, 2) || !fake_hear(fake, fd, text))
        return;
    snprintf(text, sizeof text, "$%d\r\n", *kib << 10);
    bool heard = fake_say(fd, text);
    for (int sent = 0; heard && sent < *kib; sent += 32) {
        usleep(20000);
        heard = fake_say_bytes(fd, bytes, sizeof bytes);
    }
    if (heard && fake_say(fd, "\r\n"))
        fake_ignore(fd);
}

/* Not one that takes longer in all than any part of it may: a large job would never be read. */
Test(hostile, a_large_reply_has_its_time_as_long_as_it_comes, .timeout = 60)
{
    struct fake fake;
    struct due__link_limits limits = link_limits();
    int kib = 3 << 10;
    int64_t began = due__mono_ns();

    limits.answer_ns = DUE_MS(1500);
    fake_start(&fake, serve_at_a_walk, &kib);
    struct due__link *l = link_of(fake.url, limits);
    link_is_up(l);
    cr_assert_eq(link_asks(l, "GET"), 0);
    cr_expect_eq(link_fails(l, in_ns(DUE_S(20))), 0, "%s", due__link_trouble(l));
    cr_expect_gt(due__mono_ns() - began, limits.answer_ns, "it was no longer than a part may be");
    due__link_free(l);
    fake_stop(&fake);
}

/* But who only trickles does not keep a connection for longer. */
Test(hostile, a_reply_that_trickles_is_not_waited_for, .timeout = 60)
{
    struct due__link_limits limits = link_limits();
    char slow[8 << 10];
    struct script script = { .says = slow, .by_bytes = true };
    int64_t began = due__mono_ns();

    snprintf(slow, sizeof slow, "$8000\r\n%08000d", 0);
    limits.answer_ns = DUE_MS(200);
    cr_expect_eq(ask(script, limits, "no answer in time"), DUE_ESTORE);
    cr_expect_lt(due__mono_ns() - began, DUE_S(4));
}

/* ---- Replies and what they answer ------------------------------------------------------------ */

static atomic_bool given_up;

/* The first client's answer comes when it has given up, the second's at once. */
static void serve_late(struct fake *fake, int fd, int nth)
{
    char text[FAKE_TEXT];

    if (!fake_greet(fake, fd, 2) || !fake_hear(fake, fd, text))
        return;
    if (nth == 0) {
        while (!atomic_load(&given_up))
            usleep(1000);
        (void)fake_say(fd, "+first\r\n");
        return;
    }
    (void)fake_say(fd, "+second\r\n");
    fake_ignore(fd);
}

Test(hostile, a_late_reply_is_not_read_as_the_next, .timeout = 60)
{
    struct fake fake;
    struct due__link_limits limits = link_limits();

    limits.answer_ns = DUE_S(1);
    fake_start(&fake, serve_late, NULL);
    struct due__link *l = link_of(fake.url, limits);
    link_is_up(l);
    cr_assert_eq(link_asks(l, "FIRST"), 0);
    cr_expect_eq(link_fails(l, in_ns(DUE_MS(10))), DUE_EAGAIN);
    cr_expect(due__link_is_up(l));
    cr_expect_eq(link_fails(l, in_ns(DUE_S(20))), DUE_ESTORE);
    cr_expect_not(due__link_is_up(l));
    atomic_store(&given_up, true);
    link_is_up(l);
    cr_assert_eq(link_asks(l, "SECOND"), 0);
    cr_expect_str_eq(link_hears(l), "second");
    due__link_free(l);
    fake_stop(&fake);
}

Test(hostile, a_reply_that_nobody_asked_for_is_not_read, .timeout = 60)
{
    struct fake fake;
    struct script script = { .says = "+mine\r\n+whose?\r\n" };

    fake_start(&fake, serve_script, &script);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    cr_assert_eq(link_asks(l, "GET"), 0);
    cr_expect_str_eq(link_hears(l), "mine");
    cr_expect_eq(link_asks(l, "GET"), DUE_EAGAIN);
    cr_expect_not(due__link_is_up(l));
    due__link_free(l);
    fake_stop(&fake);
}

Test(hostile, what_was_formatted_is_not_sent_to_another_connection, .timeout = 60)
{
    struct fake fake;
    struct script script = { .says = "+OK\r\n" };

    fake_start(&fake, serve_script, &script);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    due__link_words(l, 1, (const char *const[]){ "OLD" });
    due__link_down(l);
    cr_expect_eq(due__link_formatted(l), 0u);
    link_is_up(l);
    cr_expect_eq(link_asks(l, "NEW"), 0);
    cr_expect_str_eq(link_hears(l), "OK");
    due__link_free(l);
    fake_stop(&fake);
    cr_expect_null(strstr(fake.heard, "OLD"));
}

/* Of what was sent the server has nothing it could do, so that nothing is in doubt. */
static void serve_deaf(struct fake *fake, int fd, int nth)
{
    (void)nth;
    if (!fake_greet(fake, fd, 2))
        return;
    while (!atomic_load(&given_up))
        usleep(1000);
}

Test(hostile, what_a_server_has_not_begun_to_read_was_not_sent, .timeout = 60)
{
    static char big[4 << 20];
    struct fake fake;

    fake_start(&fake, serve_deaf, NULL);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    due__link_command(l, 1);
    due__link_bytes(l, big, sizeof big);
    cr_assert_eq(due__link_send(l, in_ns(DUE_MS(10))), 0, "the rest goes when there is room");
    due__link_words(l, 1, (const char *const[]){ "NEXT" });
    cr_expect_eq(due__link_send(l, in_ns(DUE_MS(10))), DUE_EAGAIN);
    cr_expect_not(due__link_is_up(l));
    cr_expect_str_eq(due__link_trouble(l), "the server does not read");
    due__link_free(l);
    atomic_store(&given_up, true);
    fake_stop(&fake);
}

/* A send is not ended by an interrupt, which the next call that waits hears; nor by what another
 * file of the program says, the first of all. */
Test(hostile, a_send_that_waits_for_room_hears_nobody, .timeout = 60)
{
    static char big[4 << 20];
    struct fake fake;
    int rung = eventfd(1, EFD_NONBLOCK);

    cr_assert_eq(dup2(rung, STDIN_FILENO), STDIN_FILENO);
    fake_start(&fake, serve_deaf, NULL);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    due__link_interrupt(l);
    due__link_command(l, 1);
    due__link_bytes(l, big, sizeof big);
    int64_t began = due__mono_ns();
    cr_expect_eq(due__link_send(l, in_ns(DUE_MS(30))), 0);
    cr_expect_geq(due__mono_ns() - began, DUE_MS(30));
    cr_expect_eq(due__link_pause(l, in_ns(DUE_S(20))), DUE_EAGAIN);
    due__link_free(l);
    atomic_store(&given_up, true);
    fake_stop(&fake);
    close(rung);
}

/* What has not left goes on leaving while the answer is waited for, for no longer than that may
 * take, in however many calls. */
Test(hostile, a_server_that_does_not_read_is_given_up, .timeout = 60)
{
    static char big[4 << 20];
    struct due__link_limits limits = link_limits();
    struct fake fake;
    int rc = DUE_EAGAIN;

    limits.answer_ns = DUE_MS(100);
    fake_start(&fake, serve_deaf, NULL);
    struct due__link *l = link_of(fake.url, limits);
    link_is_up(l);
    due__link_command(l, 1);
    due__link_bytes(l, big, sizeof big);
    cr_assert_eq(due__link_send(l, in_ns(DUE_MS(1))), 0);
    for (int i = 0; i < 400 && rc == DUE_EAGAIN; i++)
        rc = link_fails(l, in_ns(DUE_MS(2)));
    cr_expect_eq(rc, DUE_ESTORE);
    cr_expect_str_eq(due__link_trouble(l), "the server does not read");
    due__link_free(l);
    atomic_store(&given_up, true);
    fake_stop(&fake);
}

/* ---- Error replies --------------------------------------------------------------------------- */

static const struct {
    const char *text;
    enum due__reply_class class;
} errors[] = {
    { "OOM command not allowed when used memory > 'maxmemory'.", DUE__REPLY_FULL },
    { "MISCONF Redis is configured to save RDB snapshots, but", DUE__REPLY_DISK },
    { "READONLY You can't write against a read only replica.", DUE__REPLY_READONLY },
    { "MOVED 3999 127.0.0.1:6381", DUE__REPLY_ELSEWHERE },
    { "ASK 3999 127.0.0.1:6381", DUE__REPLY_ELSEWHERE },
    { "LOADING Redis is loading the dataset in memory", DUE__REPLY_AGAIN },
    { "BUSY Redis is busy running a script.", DUE__REPLY_AGAIN },
    { "UNKILLABLE The busy script was sent by a master instance", DUE__REPLY_AGAIN },
    { "TRYAGAIN Multiple keys request during rehashing of slot", DUE__REPLY_AGAIN },
    { "CLUSTERDOWN The cluster is down", DUE__REPLY_AGAIN },
    { "MASTERDOWN Link with MASTER is down", DUE__REPLY_AGAIN },
    { "NOREPLICAS Not enough good replicas to write.", DUE__REPLY_AGAIN },
    { "ERR max number of clients reached", DUE__REPLY_AGAIN },
    { "NOAUTH Authentication required.", DUE__REPLY_DENIED },
    { "WRONGPASS invalid username-password pair", DUE__REPLY_DENIED },
    { "NOPERM this user has no permissions", DUE__REPLY_DENIED },
    { "DENIED Redis is running in protected mode", DUE__REPLY_DENIED },
    { "ERR AUTH <password> called without any password", DUE__REPLY_DENIED },
    { "NOSCRIPT No matching script. Please use EVAL.", DUE__REPLY_NOSCRIPT },
    { "EXECABORT Transaction discarded because of previous errors.", DUE__REPLY_ABORTED },
    { "WRONGTYPE Operation against a key holding the wrong kind", DUE__REPLY_WRONG },
    { "ERR unknown command", DUE__REPLY_DENIED },
    { "BUSYGROUP Consumer Group name already exists", DUE__REPLY_WRONG },
    { "BUSYKEY Target key name already exists.", DUE__REPLY_WRONG },
    { "OO", DUE__REPLY_WRONG },
    { "", DUE__REPLY_WRONG },
    { "OOM", DUE__REPLY_FULL },
};

/* And none of them takes the link down, or is taken for anything else. */
Test(hostile, each_error_has_its_meaning, .timeout = 60)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct fake fake;
        char says[256];
        struct script script = { .says = says };
        redisReply *reply;

        snprintf(says, sizeof says, "-%s\r\n", errors[i].text);
        fake_start(&fake, serve_script, &script);
        struct due__link *l = link_to(fake.url);
        link_is_up(l);
        cr_assert_eq(link_asks(l, "SET"), 0);
        cr_assert_eq(due__link_reply(l, &reply, in_ns(DUE_S(20))), 0);
        cr_expect_eq(due__reply_classify(reply), errors[i].class, "%s", errors[i].text);
        freeReplyObject(reply);
        due__link_free(l);
        fake_stop(&fake);
    }
}

Test(hostile, what_is_no_error_is_fine, .timeout = 60)
{
    redisReply reply = { .type = REDIS_REPLY_STRING, .str = (char[]){ "OOM" }, .len = 3 };

    cr_expect_eq(due__reply_classify(&reply), DUE__REPLY_FINE);
}
