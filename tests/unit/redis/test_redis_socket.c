/* Connections by name: what the name stands for is looked up each time, and nothing of it stays. */
#include "lab/redis/redis_link_lab.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "redis/link/link_inside.h"
#include "redis/link/socket.h"

/* The port is somebody's, so that nobody else listens there. */
static int port_of_nobody(char url[64])
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_eq(bind(taken, (struct sockaddr *)&at, len), 0);
    cr_assert_eq(getsockname(taken, (struct sockaddr *)&at, &len), 0);
    snprintf(url, 64, "redis://localhost:%d", ntohs(at.sin_port));
    return taken;
}

static size_t allocated(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

Test(socket, keeps_no_addresses_of_a_name, .timeout = 60)
{
    struct due__link_limits limits = link_limits();
    char url[64];
    bool fresh;

    limits.backoff_max_ns = DUE_MS(1);
    int taken = port_of_nobody(url);
    struct due__link *l = link_of(url, limits);
    cr_expect_eq(due__link_up(l, &fresh, in_ns(DUE_MS(20))), DUE_EAGAIN);
    size_t before = allocated();
    for (int i = 0; i < 10; i++)
        cr_expect_eq(due__link_up(l, &fresh, in_ns(DUE_MS(20))), DUE_EAGAIN);
    cr_expect_leq(allocated(), before + 256, "%zu bytes more", allocated() - before);
    due__link_free(l);
    close(taken);
}

/* In a program that has closed its input the first number is free.  Nobody accepts, since whoever
 * waits to do so has a number too. */
Test(socket, of_the_number_0_is_one, .timeout = 60)
{
    int some = open("/dev/null", O_RDONLY | O_CLOEXEC); /* it may be that number */
    char url[64];
    bool fresh;

    cr_assert_eq(dup2(some, STDIN_FILENO), STDIN_FILENO);
    int listener = port_of_nobody(url);
    cr_assert_eq(listen(listener, 4), 0);
    for (int way = 0; way < 3; way++) {
        if (way == 0)
            close(STDIN_FILENO);
        else
            cr_assert_eq(dup2(some, STDIN_FILENO), STDIN_FILENO);
        struct due__link *l = link_to(url);
        if (way > 0)
            close(STDIN_FILENO);
        cr_expect_eq(due__link_up(l, &fresh, in_ns(DUE_MS(5))), DUE_EAGAIN);
        cr_assert_eq(way == 0 ? l->bell : l->fd, 0);
        if (way == 2)
            due__link_down(l);
        else
            due__link_free(l);
        cr_expect_lt(fcntl(STDIN_FILENO, F_GETFD), 0, "way %d: it is still open", way);
        if (way == 2)
            due__link_free(l);
    }
    close(listener);
}

enum { WAITING = 8 }; /* more than a listener takes that wants none */

/* Nobody accepts there, and no more may wait to be: so a connection is neither made nor refused. */
static void listen_to_nobody(char url[64], int fds[WAITING])
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;

    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fds[0], (struct sockaddr *)&at, len), 0);
    cr_assert_eq(getsockname(fds[0], (struct sockaddr *)&at, &len), 0);
    cr_assert_eq(listen(fds[0], 0), 0);
    snprintf(url, 64, "redis://localhost:%d", ntohs(at.sin_port));
    for (int i = 1; i < WAITING; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(fds[i], (struct sockaddr *)&at, len);
    }
}

Test(socket, keeps_no_addresses_of_a_link_that_was_freed_while_it_connects, .timeout = 60)
{
    char url[64];
    int fds[WAITING];
    size_t before = 0;

    listen_to_nobody(url, fds);
    for (int i = 0; i < 30; i++) {
        bool fresh;
        struct due__link *l = link_to(url);

        cr_expect_eq(due__link_up(l, &fresh, in_ns(DUE_MS(2))), DUE_EAGAIN);
        if (l->state != DUE__LINK_CONNECTING)
            cr_skip_test("the system refuses whoever may not wait");
        due__link_free(l);
        if (i == 9)
            before = allocated();
    }
    cr_expect_leq(allocated(), before + 256, "%zu bytes more", allocated() - before);
    for (int i = 0; i < WAITING; i++)
        close(fds[i]);
}

/* As the kernel may do by itself, where the port that it picks for us is the one that we want. */
Test(socket, that_is_connected_to_itself_is_refused, .timeout = 60)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    const char *trouble = "";
    int ends[2];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_eq(bind(fd, (struct sockaddr *)&at, len), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&at, len), 0);
    cr_expect_not(due__socket_connected(fd, &trouble));
    cr_expect_str_eq(trouble, "the connection was refused");
    close(fd);

    trouble = "";
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); /* neither end has a name */
    cr_expect(due__socket_connected(ends[0], &trouble));
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_port = 0;
    cr_assert_eq(bind(listener, (struct sockaddr *)&at, len), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    cr_assert_eq(listen(listener, 1), 0);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&at, len), 0);
    cr_expect(due__socket_connected(fd, &trouble));
    cr_expect_str_empty(trouble);
    close(fd);
    close(listener);
    close(ends[0]);
    close(ends[1]);
}
