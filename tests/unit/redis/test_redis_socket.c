/* Connections by name: what the name stands for is looked up each time, and nothing of it stays. */
#include "lab/redis/redis_link_lab.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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
