/* The proxy that breaks connections, between a scripted client and a scripted server. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lab/fault_bytes.h"
#include "lab/fault_proxy.h"

#define PATIENCE_MS 20000

/* ---- A server that answers each command with its name and its number: "+PING 1" ---- */

struct server {
    char dir[32];
    char path[64];
    char proxy_path[64];
    int listener;
    pthread_t thread;
    atomic_bool stop;
    atomic_uint done;      /* commands, of all connections */
    atomic_uint connected; /* connections that are open */
    struct fault_proxy *proxy;
};

static void answer_all(struct server *s, int fd, struct fault_bytes *in)
{
    char name[24];
    char reply[64];
    long n;

    while ((n = fault_command_length(in)) > 0) {
        fault_command_name(in, name, sizeof name);
        fault_bytes_skip(in, (size_t)n);
        int len =
            snprintf(reply, sizeof reply, "+%s %u\r\n", name, atomic_fetch_add(&s->done, 1) + 1);
        if (send(fd, reply, (size_t)len, MSG_NOSIGNAL) != len)
            return;
    }
}

#define SERVED 16 /* connections at a time */

static void accept_one(struct server *s, struct pollfd *fds)
{
    for (int i = 1; i <= SERVED; i++)
        if (fds[i].fd < 0) {
            fds[i] = (struct pollfd){ .fd = accept(s->listener, NULL, NULL), .events = POLLIN };
            atomic_fetch_add(&s->connected, 1);
            return;
        }
}

static void *serve(void *arg)
{
    struct server *s = arg;
    struct pollfd fds[1 + SERVED] = { { .fd = s->listener, .events = POLLIN } };
    struct fault_bytes in[1 + SERVED] = { { 0 } };
    char bytes[4096];

    for (int i = 1; i <= SERVED; i++)
        fds[i].fd = -1;
    while (!atomic_load(&s->stop)) {
        poll(fds, 1 + SERVED, 20);
        for (int i = 1; i <= SERVED; i++) {
            if (fds[i].fd < 0 || fds[i].revents == 0)
                continue;
            ssize_t got = recv(fds[i].fd, bytes, sizeof bytes, MSG_DONTWAIT);
            if (got > 0) {
                fault_bytes_add(&in[i], bytes, (size_t)got);
                answer_all(s, fds[i].fd, &in[i]);
            } else if (got == 0 || errno != EAGAIN) {
                close(fds[i].fd);
                fds[i].fd = -1;
                fault_bytes_free(&in[i]);
                atomic_fetch_sub(&s->connected, 1);
            }
        }
        if (fds[0].revents != 0)
            accept_one(s, fds);
    }
    for (int i = 1; i <= SERVED; i++) {
        if (fds[i].fd >= 0)
            close(fds[i].fd);
        fault_bytes_free(&in[i]);
    }
    return NULL;
}

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    strcpy(address.sun_path, path);
    return address;
}

static void server_start(struct server *s, const struct fault_cell *cell)
{
    *s = (struct server){ .dir = "/tmp/fault-XXXXXX" };
    cr_assert_not_null(mkdtemp(s->dir));
    snprintf(s->path, sizeof s->path, "%s/server", s->dir);
    snprintf(s->proxy_path, sizeof s->proxy_path, "%s/proxy", s->dir);
    struct sockaddr_un address = address_of(s->path);
    s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(s->listener, (struct sockaddr *)&address, sizeof address), 0);
    cr_assert_eq(listen(s->listener, 8), 0);
    cr_assert_eq(pthread_create(&s->thread, NULL, serve, s), 0);
    s->proxy = fault_proxy_start(s->proxy_path, s->path);
    cr_assert_not_null(s->proxy);
    fault_proxy_plan(s->proxy, cell, cell != NULL);
}

static void server_stop(struct server *s)
{
    fault_proxy_stop(s->proxy);
    atomic_store(&s->stop, true);
    pthread_join(s->thread, NULL);
    close(s->listener);
    unlink(s->path);
    cr_expect_eq(rmdir(s->dir), 0, "the proxy leaves nothing behind");
}

/* ---- A client ---- */

static int client(const struct server *s)
{
    struct sockaddr_un address = address_of(s->proxy_path);
    struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static void say(int fd, const char *text)
{
    size_t len = strlen(text);

    cr_assert_eq(send(fd, text, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Exactly this comes next. */
static bool hears(int fd, const char *text)
{
    char got[256] = "";
    size_t n = 0;

    while (n < strlen(text)) {
        ssize_t more = recv(fd, got + n, strlen(text) - n, 0);

        if (more <= 0)
            break;
        n += (size_t)more;
    }
    if (strcmp(got, text) == 0)
        return true;
    cr_log_error("heard \"%s\", not \"%s\"", got, text);
    return false;
}

static bool hears_the_end(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, 0);

    return n == 0 || (n < 0 && errno == ECONNRESET);
}

/* Nothing comes for a moment. */
static bool hears_nothing(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, 100) == 0;
}

#define PING "*1\r\n$4\r\nPING\r\n"
#define ECHO "*2\r\n$4\r\necho\r\n$6\r\na\r\n\r\nb\r\n"

/* ---- Where things end ---- */

static long length_of(const char *text, bool reply)
{
    struct fault_bytes b = { 0 };

    fault_bytes_add(&b, text, strlen(text));
    long n = reply ? fault_reply_length(&b) : fault_command_length(&b);
    fault_bytes_free(&b);
    return n;
}

Test(fault_bytes, sees_where_a_command_or_a_reply_ends)
{
    static const char *const replies[] = {
        "+OK\r\n", "-ERR no\r\n", ":12\r\n",
        "$-1\r\n", "$0\r\n\r\n",  "$4\r\n\r\n\r\n\r\n",
        "*-1\r\n", "*0\r\n",      "*2\r\n$1\r\na\r\n*2\r\n:1\r\n*1\r\n$-1\r\n"
    };

    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        char text[64];
        size_t len = strlen(replies[i]);

        cr_expect_eq(length_of(replies[i], true), (long)len, "%zu", i);
        snprintf(text, sizeof text, "%s+more\r\n", replies[i]);
        cr_expect_eq(length_of(text, true), (long)len, "%zu", i);
        for (size_t cut = 0; cut < len; cut++) {
            snprintf(text, sizeof text, "%.*s", (int)cut, replies[i]);
            cr_expect_eq(length_of(text, true), 0, "%zu cut at %zu", i, cut);
        }
    }
    cr_expect_eq(length_of(ECHO PING, false), (long)strlen(ECHO));
    cr_expect_eq(length_of("PING\r\nPING\r\n", false), 6);
    cr_expect_eq(length_of("?what\r\n", true), -1);
    cr_expect_eq(length_of("$x\r\n", true), -1);
}

/* ---- Nothing planned ---- */

Test(fault_proxy, passes_everything_on_and_counts, .timeout = 60)
{
    struct server s;
    char name[24];

    server_start(&s, NULL);
    int fd = client(&s);
    say(fd, PING ECHO "time\r\n");
    cr_expect(hears(fd, "+PING 1\r\n+ECHO 2\r\n+TIME 3\r\n"));
    for (const char *byte = ECHO; *byte != '\0'; byte++)
        cr_assert_eq(send(fd, byte, 1, MSG_NOSIGNAL), 1);
    cr_expect(hears(fd, "+ECHO 4\r\n"));
    cr_expect_eq(fault_proxy_commands(s.proxy), 4u);
    cr_expect_eq(fault_proxy_connections(s.proxy), 1u);
    cr_expect_str_eq(fault_proxy_name(s.proxy, 2, name), "ECHO");
    cr_expect_str_eq(fault_proxy_name(s.proxy, 9, name), "");
    close(fd);
    server_stop(&s);
}

Test(fault_proxy, closes_the_server_s_side_when_the_client_leaves, .timeout = 60)
{
    struct server s;

    server_start(&s, NULL);
    for (unsigned i = 1; i <= 100; i++) {
        char text[32];
        int fd = client(&s);

        say(fd, PING);
        snprintf(text, sizeof text, "+PING %u\r\n", i);
        cr_expect(hears(fd, text));
        close(fd);
    }
    for (int i = 0; i < PATIENCE_MS && atomic_load(&s.connected) > 0; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    cr_expect_eq(atomic_load(&s.connected), 0u);
    server_stop(&s);
}

/* ---- One fault at the second of three commands that were sent at once ---- */

struct world {
    struct server s;
    int fd;
};

#define DELAY_MS 150
#define SLOW_MS  10 /* of what trickles */

static struct world *strike(enum fault_where where, enum fault_what what, const char *text)
{
    static struct world w;
    struct fault_cell cell = { .command = 2,
                               .where = where,
                               .what = what,
                               .text = text,
                               .delay_ms = what == FAULT_TRICKLE ? SLOW_MS : DELAY_MS };

    server_start(&w.s, &cell);
    w.fd = client(&w.s);
    say(w.fd, PING ECHO PING);
    cr_expect(hears(w.fd, "+PING 1\r\n"), "what is ahead of the fault is answered");
    cr_expect(fault_proxy_wait(w.s.proxy, 1, PATIENCE_MS), "the fault strikes");
    return &w;
}

/* A new connection finds everything as it should be. */
static void leave(struct world *w, unsigned done)
{
    char text[64];
    int fd = client(&w->s);

    say(fd, PING);
    snprintf(text, sizeof text, "+PING %u\r\n", done + 1);
    cr_expect(hears(fd, text), "the server had done %u", done);
    cr_expect_eq(fault_proxy_struck(w->s.proxy), 1u);
    close(fd);
    close(w->fd);
    server_stop(&w->s);
}

static void ends(enum fault_what what)
{
    static const struct {
        enum fault_where where;
        const char *heard;
        unsigned done;
    } cells[] = { { FAULT_BEFORE, "", 1 },
                  { FAULT_MID_COMMAND, "", 1 },
                  { FAULT_SENT, "", 2 },
                  { FAULT_MID_REPLY, "+ECH", 2 } };

    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        struct world *w = strike(cells[i].where, what, NULL);

        cr_expect(hears(w->fd, cells[i].heard), "cell %zu", i);
        cr_expect(hears_the_end(w->fd), "cell %zu", i);
        leave(w, cells[i].done);
    }
}

Test(fault_proxy, resets, .timeout = 60)
{
    ends(FAULT_RESET);
}

Test(fault_proxy, closes, .timeout = 60)
{
    ends(FAULT_CLOSE);
}

Test(fault_proxy, closes_half, .timeout = 60)
{
    for (int where = FAULT_BEFORE; where <= FAULT_MID_REPLY; where++) {
        struct world *w = strike((enum fault_where)where, FAULT_HALF, NULL);

        cr_expect(hears(w->fd, where == FAULT_MID_REPLY ? "+ECH" : ""));
        cr_expect(hears_the_end(w->fd));
        say(w->fd, PING);
        for (int i = 0; i < PATIENCE_MS && atomic_load(&w->s.done) < 4; i++)
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        leave(w, 4);
    }
}

static void stalls_at(enum fault_where where, const char *first, const char *rest)
{
    struct world *w = strike(where, FAULT_STALL, NULL);

    cr_expect(hears(w->fd, first));
    cr_expect(hears_nothing(w->fd));
    fault_proxy_go_on(w->s.proxy);
    cr_expect(hears(w->fd, rest));
    leave(w, 3);
}

Test(fault_proxy, stalls_until_told, .timeout = 60)
{
    stalls_at(FAULT_BEFORE, "", "+ECHO 2\r\n+PING 3\r\n");
    stalls_at(FAULT_MID_COMMAND, "", "+ECHO 2\r\n+PING 3\r\n");
    stalls_at(FAULT_SENT, "", "+ECHO 2\r\n+PING 3\r\n");
    stalls_at(FAULT_MID_REPLY, "+ECH", "O 2\r\n+PING 3\r\n");
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

Test(fault_proxy, delays, .timeout = 60)
{
    for (int where = FAULT_BEFORE; where <= FAULT_MID_REPLY; where++) {
        int64_t begun_ms = now_ms();
        struct world *w = strike((enum fault_where)where, FAULT_DELAY, NULL);

        cr_expect(hears(w->fd, "+ECHO 2\r\n+PING 3\r\n"));
        cr_expect_geq(now_ms() - begun_ms, DELAY_MS - 1);
        leave(w, 3);
    }
}

Test(fault_proxy, trickles, .timeout = 60)
{
    for (int where = FAULT_BEFORE; where <= FAULT_MID_REPLY; where++) {
        int64_t begun_ms = now_ms();
        struct world *w = strike((enum fault_where)where, FAULT_TRICKLE, NULL);

        cr_expect(hears(w->fd, "+ECHO 2\r\n+PING 3\r\n"));
        cr_expect_geq(now_ms() - begun_ms, 4 * SLOW_MS - 1, "five bytes at least");
        leave(w, 3);
    }
}

Test(fault_proxy, replaces_a_reply, .timeout = 60)
{
    struct world *w = strike(FAULT_BEFORE, FAULT_REPLACE, "-OOM full");

    cr_expect(hears(w->fd, "-OOM full\r\n+PING 2\r\n"), "the server never has it");
    leave(w, 2);
    w = strike(FAULT_SENT, FAULT_REPLACE, "-LOADING not yet");
    cr_expect(hears(w->fd, "-LOADING not yet\r\n+PING 3\r\n"), "the server has done it");
    leave(w, 3);
}

/* ---- Plans ---- */

Test(fault_proxy, strikes_at_commands_of_a_name, .timeout = 60)
{
    struct server s;
    struct fault_cell cells[] = {
        { .command = 2, .name = "ECHO", .where = FAULT_SENT, .what = FAULT_REPLACE, .text = "-A" },
        { .command = 1, .name = "PING", .where = FAULT_SENT, .what = FAULT_REPLACE, .text = "-B" },
    };

    server_start(&s, NULL);
    fault_proxy_plan(s.proxy, cells, 2);
    int fd = client(&s);
    say(fd, ECHO PING ECHO ECHO PING);
    cr_expect(hears(fd, "+ECHO 1\r\n-B\r\n-A\r\n+ECHO 4\r\n+PING 5\r\n"));
    fault_proxy_plan(s.proxy, cells, 2);
    say(fd, ECHO ECHO);
    cr_expect(hears(fd, "+ECHO 6\r\n-A\r\n"), "a plan counts anew");
    close(fd);
    server_stop(&s);
}

Test(fault_proxy, strikes_when_a_connection_is_made, .timeout = 60)
{
    struct server s;
    struct fault_cell cell = { .command = 2, .where = FAULT_ACCEPT, .what = FAULT_CLOSE };

    server_start(&s, &cell);
    for (int i = 1; i <= 3; i++) {
        int fd = client(&s);

        if (i == 2) {
            cr_expect(hears_the_end(fd));
        } else {
            say(fd, PING);
            cr_expect(hears(fd, i == 1 ? "+PING 1\r\n" : "+PING 2\r\n"));
        }
        close(fd);
    }
    server_stop(&s);
}

Test(fault_proxy, cuts_what_is_open, .timeout = 60)
{
    struct server s;

    server_start(&s, NULL);
    int fd = client(&s);
    say(fd, PING);
    cr_expect(hears(fd, "+PING 1\r\n"));
    fault_proxy_cut(s.proxy);
    cr_expect(hears_the_end(fd));
    close(fd);
    fd = client(&s);
    say(fd, PING);
    cr_expect(hears(fd, "+PING 2\r\n"));
    close(fd);
    server_stop(&s);
}

/* The cost of a connection that stalls, or whose client has left, is nothing. */
Test(fault_proxy, sleeps_while_nothing_happens, .timeout = 60)
{
    struct world *w = strike(FAULT_BEFORE, FAULT_STALL, NULL);
    struct timespec before;
    struct timespec after;
    int idle = client(&w->s);

    shutdown(w->fd, SHUT_RDWR);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    nanosleep(&(struct timespec){ .tv_nsec = 400000000 }, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    int64_t spent = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
    cr_expect_lt(spent, 100000000, "%lld ns", (long long)spent);
    close(idle);
    fault_proxy_go_on(w->s.proxy);
    for (int i = 0; i < PATIENCE_MS && atomic_load(&w->s.done) < 3; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    leave(w, 3);
}
