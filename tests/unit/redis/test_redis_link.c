/* One connection: its greeting, its ups and downs, and who may interrupt it. */
#include "lab/redis/redis_link_lab.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "redis/link/link_inside.h"

#define CANARY "canary%%3Asecret" /* for snprintf() */

static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * DUE__NS_PER_S + t.tv_nsec;
}

static int descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    cr_assert_not_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* Friendly: a greeting of ctx commands (2 if NULL), then +OK for each command. */
static void serve_ok(struct fake *fake, int fd, int nth)
{
    const int *greeting = fake->ctx;

    (void)nth;
    if (!fake_greet(fake, fd, greeting != NULL ? *greeting : 2))
        return;
    while (fake_answer(fake, fd, "+OK\r\n"))
        continue;
}

/* ---- Greeting -------------------------------------------------------------------------------- */

Test(link, is_fresh_once, .timeout = 60)
{
    struct fake fake;
    bool fresh;

    fake_start(&fake, serve_ok, NULL);
    struct due__link *l = link_to(fake.url);
    cr_expect_not(due__link_is_up(l));
    cr_assert_eq(due__link_up(l, &fresh, in_ns(DUE_S(20))), 0);
    cr_expect(fresh);
    cr_assert_eq(due__link_up(l, &fresh, 0), 0);
    cr_expect_not(fresh);
    cr_expect(due__link_is_up(l));
    cr_expect_eq(due__link_count(l).connects, 1u);
    due__link_free(l);
    fake_stop(&fake);
    cr_expect_str_eq(fake.heard, "CLIENT SETNAME t\nPING\n");
}

Test(link, says_who_it_is_and_what_it_wants, .timeout = 60)
{
    struct fake fake;
    int greeting = 4;
    char url[256];

    fake_start(&fake, serve_ok, &greeting);
    snprintf(url, sizeof url, "unix://me:" CANARY "@%s?db=3", fake.path);
    struct due__link *l = link_to(url);
    link_is_up(l);
    due__link_free(l);
    fake_stop(&fake);
    cr_expect_str_eq(fake.heard, "AUTH me canary:secret\nSELECT 3\nCLIENT SETNAME t\nPING\n");
}

/* It repeats the password, as no server should. */
static void serve_wrong_password(struct fake *fake, int fd, int nth)
{
    (void)nth;
    if (fake_answer(fake, fd, "-WRONGPASS no user has the password canary:secret\r\n"))
        fake_ignore(fd);
}

Test(link, tells_a_refusal_each_time_after_a_pause, .timeout = 60)
{
    struct fake fake;
    bool fresh;
    char url[256];

    fake_start(&fake, serve_wrong_password, NULL);
    snprintf(url, sizeof url, "unix://:" CANARY "@%s", fake.path);
    struct due__link *l = link_to(url);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(due__link_up(l, &fresh, in_ns(DUE_S(20))), DUE_EACCES);
        cr_expect_not(fresh);
        cr_expect_null(strstr(due__link_trouble(l), "canary"));
    }
    due__link_free(l);
    fake_stop(&fake);
    cr_expect_eq(atomic_load(&fake.accepted), 3);
}

static void serve_loading(struct fake *fake, int fd, int nth)
{
    static const char *const first[] = { "-LOADING not yet\r\n", "-MASTERDOWN not yet\r\n",
                                         "-BUSY a script\r\n" };

    if (nth >= 3)
        serve_ok(fake, fd, nth);
    else if (fake_answer(fake, fd, "+OK\r\n") && fake_answer(fake, fd, first[nth]))
        fake_ignore(fd);
}

Test(link, waits_for_a_server_that_loads, .timeout = 60)
{
    struct fake fake;

    fake_start(&fake, serve_loading, NULL);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    cr_expect_eq(due__link_count(l).connects, 1u);
    due__link_free(l);
    fake_stop(&fake);
    cr_expect_eq(atomic_load(&fake.accepted), 4);
}

static void serve_forbidding(struct fake *fake, int fd, int nth)
{
    (void)nth;
    if (fake_answer(fake, fd, "-NOPERM no client for you\r\n") &&
        fake_answer(fake, fd, "-NOPERM no ping for you\r\n"))
        fake_ignore(fd);
}

Test(link, does_without_a_name_where_it_is_forbidden, .timeout = 60)
{
    struct fake fake;

    fake_start(&fake, serve_forbidding, NULL);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    due__link_free(l);
    fake_stop(&fake);
}

/* A caller with little time each, and a server that takes longer to greet. */
static void serve_slow_greeting(struct fake *fake, int fd, int nth)
{
    usleep(60000);
    serve_ok(fake, fd, nth);
}

Test(link, goes_on_with_a_connection_that_was_begun, .timeout = 60)
{
    struct fake fake;
    bool fresh;
    int rc;

    fake_start(&fake, serve_slow_greeting, NULL);
    struct due__link *l = link_to(fake.url);
    while ((rc = due__link_up(l, &fresh, in_ns(DUE_MS(5)))) == DUE_EAGAIN)
        cr_assert_not(fresh);
    cr_expect_eq(rc, 0);
    cr_expect(fresh);
    cr_expect_eq(atomic_load(&fake.accepted), 1);
    due__link_free(l);
    fake_stop(&fake);
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;

    cr_assert_eq(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

/* The name may stand for an address of IPv6 too, where nobody listens. */
/* Where the machine does not know its own name, a resolver would be asked, for long. */
static bool localhost_is_known(void)
{
    char line[256];
    bool known = false;
    FILE *hosts = fopen("/etc/hosts", "re");

    while (hosts != NULL && fgets(line, sizeof line, hosts) != NULL)
        known = known || strstr(line, "localhost") != NULL;
    if (hosts != NULL)
        fclose(hosts);
    return known;
}

Test(link, finds_a_host_by_its_name, .timeout = 60)
{
    struct fake fake;

    if (!localhost_is_known())
        cr_skip_test("/etc/hosts does not know localhost");
    fake_start_tcp(&fake, serve_ok, NULL);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    cr_assert_eq(link_asks(l, "PING"), 0);
    cr_expect_str_eq(link_hears(l), "OK");
    cr_expect(fcntl(l->fd, F_GETFD) & FD_CLOEXEC);
    cr_expect(fcntl(l->fd, F_GETFL) & O_NONBLOCK);
    cr_expect_eq(option(l->fd, IPPROTO_TCP, TCP_NODELAY), 1);
    cr_expect_eq(option(l->fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    due__link_free(l);
    fake_stop(&fake);
    bool fresh;
    l = link_to(fake.url);
    cr_expect_eq(due__link_up(l, &fresh, in_ns(DUE_MS(50))), DUE_EAGAIN);
    cr_expect_str_eq(due__link_trouble(l), "the connection was refused");
    due__link_free(l);
}

/* No part of a name may be so long, so that nobody needs to be asked. */
Test(link, says_that_a_name_is_not_known, .timeout = 60)
{
    struct due__link *l = link_to(
        "redis://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.b");
    bool fresh;

    cr_expect_eq(due__link_up(l, &fresh, in_ns(DUE_MS(1))), DUE_EAGAIN);
    cr_expect_str_eq(due__link_trouble(l), "the server's name cannot be looked up");
    due__link_free(l);
}

/* ---- Down ------------------------------------------------------------------------------------ */

static void serve_nobody(struct fake *fake, int fd, int nth)
{
    (void)fake, (void)fd, (void)nth;
}

Test(link, does_not_spin_where_it_is_turned_away, .timeout = 60)
{
    struct fake fake;
    struct due__link_limits limits = link_limits();
    bool fresh;

    limits.backoff_min_ns = DUE_MS(20);
    limits.backoff_max_ns = DUE_MS(40);
    fake_start(&fake, serve_nobody, NULL);
    struct due__link *l = link_of(fake.url, limits);
    cr_expect_eq(due__link_up(l, &fresh, in_ns(DUE_MS(400))), DUE_EAGAIN);
    /* half of a pause is chance: at least 10 ms, then 20 ms each */
    cr_expect_leq(atomic_load(&fake.accepted), 22);
    cr_expect_geq(atomic_load(&fake.accepted), 2);
    due__link_free(l);
    fake_stop(&fake);
}

Test(link, says_why_it_cannot_connect, .timeout = 60)
{
    struct due__link *l = link_to("unix:///tmp/due-there-is-no-such-socket");
    bool fresh;

    cr_expect_eq(due__link_up(l, &fresh, in_ns(DUE_MS(20))), DUE_EAGAIN);
    cr_expect_str_eq(due__link_trouble(l), "there is no such socket");
    cr_expect_eq(link_asks(l, "PING"), DUE_EAGAIN);
    cr_expect_eq(due__link_formatted(l), 0u);
    cr_expect_eq(link_fails(l, 0), DUE_ESTORE);
    due__link_free(l);
}

/* With each number of descriptors left, from none on, until there are enough. */
Test(link, goes_on_when_there_are_descriptors_again, .timeout = 60)
{
    struct fake fake;
    struct rlimit few;
    bool fresh;
    int rc = DUE_EAGAIN;

    fake_start(&fake, serve_ok, NULL);
    struct due__link *l = link_to(fake.url);
    int next = dup(0);
    close(next);
    getrlimit(RLIMIT_NOFILE, &few);
    few.rlim_cur = (rlim_t)next;
    setrlimit(RLIMIT_NOFILE, &few);
    cr_expect_eq(due__link_up(l, &fresh, in_ns(DUE_MS(20))), DUE_EAGAIN);
    cr_expect_str_eq(due__link_trouble(l), "there are no descriptors left");
    for (int i = 0; i < 10 && rc != 0; i++) {
        few.rlim_cur++;
        setrlimit(RLIMIT_NOFILE, &few);
        rc = due__link_up(l, &fresh, in_ns(DUE_MS(500)));
    }
    cr_expect_eq(rc, 0);
    due__link_free(l);
    fake_stop(&fake);
}

Test(link, leaks_no_descriptor_in_1000_reconnects, .timeout = 120)
{
    struct fake fake;

    fake_start(&fake, serve_ok, NULL);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    int before = descriptors();
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(link_asks(l, "PING"), 0);
        cr_assert_str_eq(link_hears(l), "OK");
        due__link_down(l);
        link_is_up(l);
    }
    /* the server's end of the one before may still be closing */
    cr_expect_leq(descriptors(), before + 1);
    cr_expect_eq(due__link_count(l).connects, 1001u);
    due__link_free(l);
    fake_stop(&fake);
}

static void serve_then_close(struct fake *fake, int fd, int nth)
{
    (void)nth;
    (void)fake_greet(fake, fd, 2);
}

/* With SIGPIPE as the system has it: this process would be gone. */
Test(link, raises_no_sigpipe, .timeout = 60)
{
    struct fake fake;
    static char big[1 << 20];

    signal(SIGPIPE, SIG_DFL);
    fake_start(&fake, serve_then_close, NULL);
    struct due__link *l = link_to(fake.url);
    for (int i = 0; i < 50; i++) {
        link_is_up(l);
        due__link_command(l, 1);
        due__link_bytes(l, big, i % 2 == 0 ? sizeof big : 1);
        int rc = due__link_send(l, in_ns(DUE_S(20)));
        if (rc == 0)
            cr_assert_eq(link_fails(l, in_ns(DUE_S(20))), DUE_ESTORE);
        else
            cr_assert(rc == DUE_EAGAIN || rc == DUE_EINDOUBT);
        cr_assert_not(due__link_is_up(l));
    }
    due__link_free(l);
    fake_stop(&fake);
}

/* ---- Commands -------------------------------------------------------------------------------- */

Test(link, remembers_that_memory_was_wanting, .timeout = 60)
{
    struct fake fake;

    fake_start(&fake, serve_ok, NULL);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    due__link_command(l, 2);
    due__link_text(l, "ECHO");
    due__link_bytes(l, "", SIZE_MAX / 2);
    cr_expect_eq(due__link_send(l, in_ns(DUE_S(20))), DUE_ENOMEM);
    cr_expect(due__link_is_up(l));
    cr_expect_eq(link_asks(l, "PING"), 0);
    cr_expect_str_eq(link_hears(l), "OK");
    due__link_free(l);
    fake_stop(&fake);
}

/* Hears one command, says a lot before it hears the others. */
static void serve_talkative(struct fake *fake, int fd, int nth)
{
    static char reply[8192 + 2];
    char text[FAKE_TEXT];

    (void)nth;
    memset(reply, 'x', sizeof reply - 2);
    memcpy(reply + sizeof reply - 2, "\r\n", 2);
    if (!fake_greet(fake, fd, 2) || !fake_hear(fake, fd, text))
        return;
    for (int i = 0; i < 1000; i++) {
        if (!fake_say(fd, "$8192\r\n") || !fake_say_bytes(fd, reply, sizeof reply))
            return;
    }
    fake_ignore(fd);
}

Test(link, reads_while_it_sends, .timeout = 60)
{
    struct fake fake;
    static char big[8192];

    fake_start(&fake, serve_talkative, NULL);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    cr_assert_eq(link_asks(l, "PING"), 0);
    for (int i = 0; i < 999; i++) {
        due__link_command(l, 1);
        due__link_bytes(l, big, sizeof big);
    }
    cr_assert_eq(due__link_send(l, in_ns(DUE_S(20))), 0);
    cr_expect_eq(due__link_pending(l), 1000u);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(link_hears(l)[8191 % 255], 'x');
    cr_expect_eq(due__link_pending(l), 0u);
    due__link_free(l);
    fake_stop(&fake);
}

/* ---- Interrupts, signals --------------------------------------------------------------------- */

static void serve_silence(struct fake *fake, int fd, int nth)
{
    (void)fake, (void)nth;
    fake_ignore(fd);
}

static void serve_greeting_only(struct fake *fake, int fd, int nth)
{
    (void)nth;
    if (fake_greet(fake, fd, 2))
        fake_ignore(fd);
}

static void *interrupt_soon(void *link)
{
    usleep(20000);
    due__link_interrupt(link);
    return NULL;
}

/* Interrupted from another thread while it waits: it answers long before its time is up. */
static void is_interrupted(struct due__link *l)
{
    pthread_t thread;
    bool fresh;
    int64_t began = due__mono_ns();

    pthread_create(&thread, NULL, interrupt_soon, l);
    cr_expect_eq(due__link_up(l, &fresh, in_ns(DUE_S(50))), DUE_EAGAIN);
    cr_expect_lt(due__mono_ns() - began, DUE_S(19));
    pthread_join(thread, NULL);
}

Test(link, can_be_interrupted_while_it_greets, .timeout = 60)
{
    struct fake fake;

    fake_start(&fake, serve_silence, NULL);
    struct due__link *l = link_to(fake.url);
    is_interrupted(l);
    is_interrupted(l);
    cr_expect_eq(atomic_load(&fake.accepted), 1);
    due__link_free(l);
    fake_stop(&fake);
}

Test(link, can_be_interrupted_in_its_pause, .timeout = 60)
{
    struct due__link_limits limits = link_limits();

    limits.backoff_min_ns = limits.backoff_max_ns = DUE_S(60);
    struct due__link *l = link_of("unix:///tmp/due-there-is-no-such-socket", limits);
    is_interrupted(l);
    is_interrupted(l);
    due__link_interrupt(l);
    cr_expect_eq(due__link_pause(l, in_ns(DUE_S(50))), DUE_EAGAIN);
    cr_expect_eq(due__link_pause(l, in_ns(DUE_MS(5))), 0);
    due__link_free(l);
}

/* A listener whose queue is full swallows those who come. */
Test(link, can_be_interrupted_while_it_connects, .timeout = 60)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int crowd[8];
    char url[64];

    cr_assert_eq(bind(listener, (struct sockaddr *)&at, len), 0);
    cr_assert_eq(listen(listener, 0), 0);
    getsockname(listener, (struct sockaddr *)&at, &len);
    for (int i = 0; i < 8; i++) {
        crowd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(crowd[i], (struct sockaddr *)&at, len);
    }
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", ntohs(at.sin_port));
    struct due__link *l = link_to(url);
    is_interrupted(l);
    due__link_free(l);
    for (int i = 0; i < 8; i++)
        close(crowd[i]);
    close(listener);
}

Test(link, can_be_interrupted_while_it_waits_for_a_reply, .timeout = 60)
{
    struct fake fake;
    pthread_t thread;

    fake_start(&fake, serve_greeting_only, NULL);
    struct due__link *l = link_to(fake.url);
    link_is_up(l);
    cr_assert_eq(link_asks(l, "PING"), 0);
    pthread_create(&thread, NULL, interrupt_soon, l);
    cr_expect_eq(link_fails(l, in_ns(DUE_S(50))), DUE_EAGAIN);
    pthread_join(thread, NULL);
    cr_expect(due__link_is_up(l));
    /* One that came before, and twice, is heard once. */
    due__link_interrupt(l);
    due__link_interrupt(l);
    cr_expect_eq(link_fails(l, in_ns(DUE_S(50))), DUE_EAGAIN);
    int64_t began = due__mono_ns();
    cr_expect_eq(link_fails(l, in_ns(DUE_MS(20))), DUE_EAGAIN);
    cr_expect_geq(due__mono_ns() - began, DUE_MS(20));
    cr_expect(due__link_is_up(l));
    due__link_free(l);
    fake_stop(&fake);
}

static void serve_slowly(struct fake *fake, int fd, int nth)
{
    (void)nth;
    usleep(20000);
    if (!fake_greet(fake, fd, 2))
        return;
    for (;;) {
        char text[FAKE_TEXT];

        if (!fake_hear(fake, fd, text))
            return;
        for (const char *c = "$5\r\nhello\r\n"; *c != '\0'; c++) {
            usleep(2000);
            if (!fake_say_bytes(fd, c, 1))
                return;
        }
    }
}

static void on_alarm(int signal)
{
    (void)signal;
}

Test(link, goes_on_in_a_storm_of_signals, .timeout = 60)
{
    struct fake fake;
    struct sigaction action = { .sa_handler = on_alarm };
    struct itimerval storm = { { 0, 200 }, { 0, 200 } };

    fake_start(&fake, serve_slowly, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &storm, NULL);
    struct due__link *l = link_to(fake.url);
    for (int i = 0; i < 3; i++) {
        link_is_up(l);
        cr_assert_eq(link_asks(l, "PING"), 0);
        cr_assert_str_eq(link_hears(l), "hello");
        due__link_down(l);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
    cr_expect_eq(due__link_count(l).connects, 3u);
    due__link_free(l);
    fake_stop(&fake);
}

static void costs_little(int64_t spin_ns)
{
    struct fake fake;
    struct due__link_limits limits = link_limits();

    fake_start(&fake, serve_greeting_only, NULL);
    limits.answer_ns = DUE_S(1);
    limits.spin_ns = spin_ns;
    struct due__link *l = link_of(fake.url, limits);
    link_is_up(l);
    cr_assert_eq(link_asks(l, "PING"), 0);
    int64_t began = cpu_ns();
    due__link_interrupt(l);
    cr_expect_eq(link_fails(l, in_ns(DUE_S(20))), DUE_EAGAIN, "not heard");
    cr_expect_eq(link_fails(l, in_ns(DUE_S(20))), DUE_ESTORE);
    cr_expect_lt(cpu_ns() - began, DUE_MS(100) + spin_ns);
    cr_expect_str_eq(due__link_trouble(l), "no answer in time");
    due__link_free(l);
    fake_stop(&fake);
}

Test(link, costs_next_to_nothing_while_a_server_stalls, .timeout = 60)
{
    costs_little(0);
    costs_little(DUE_MS(20));
}
