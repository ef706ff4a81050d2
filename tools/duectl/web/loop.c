/* loop.c - one thread waits for connections, signals, errands, and for the next look.
 *
 * Where queues are looked at again and again, that is LOOK_NS after the last look at each, or, if
 * that took long, after REST times what it took: so a store is busy with it for a twentieth of the
 * time, however many jobs it holds.  First looks are made before anything is served, until one
 * queue can be shown; if none can, nothing is served.
 */
#define _GNU_SOURCE
#include "web/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_NS  DUE_S(1)
#define SIGHT_NS DUE_S(120) /* for a look */
#define GRACE_NS DUE_S(12)  /* for a change to end, when a signal has come */

enum { REST = 20 };
enum { SIGNAL, SERVER, FIRST_ERRAND, WATCHED = FIRST_ERRAND + 2 * CTL_ERRANDS };

/* ---- The looks ------------------------------------------------------------------------------- */

/* The errand of a queue has its place. */
static void look_begin(struct ctl_web *w, size_t at)
{
    struct ctl_watched *q = &w->queues[at];

    q->began_ns = ctl_web_now();
    q->look_ns = DUE_FOREVER;
    if (!ctl_errand_start(&w->errands[at], ctl_sight, &q->look, &q->history.last, SIGHT_NS))
        q->look_ns = q->began_ns + LOOK_NS;
}

static void look_end(struct ctl_web *w, size_t at)
{
    struct ctl_watched *q = &w->queues[at];
    int64_t now_ns = ctl_web_now();
    int64_t rest_ns = REST * (now_ns - q->began_ns);

    ctl_history_add(&q->history, &w->errands[at]);
    if (!q->looked && q->history.said.len > 0)
        fwrite(q->history.said.bytes, 1, q->history.said.len, stderr);
    q->looked = true;
    ctl_errand_free(&w->errands[at]);
    q->look_ns = now_ns + (rest_ns > LOOK_NS ? rest_ns : LOOK_NS);
}

/* When the next one begins. */
static int64_t next_look(const struct ctl_web *w)
{
    int64_t next_ns = DUE_FOREVER;

    for (size_t i = 0; i < w->queue_count; i++) {
        if (w->queues[i].look_ns < next_ns)
            next_ns = w->queues[i].look_ns;
    }
    return next_ns;
}

static void looks_begin(struct ctl_web *w)
{
    int64_t now_ns = ctl_web_now();

    for (size_t i = 0; i < w->queue_count; i++) {
        if (w->queues[i].look_ns <= now_ns)
            look_begin(w, i);
    }
}

/* ---- One turn -------------------------------------------------------------------------------- */

static int errand_fds(struct ctl_web *w, struct pollfd *watched)
{
    int n = 0;

    for (size_t i = 0; i < CTL_ERRANDS; i++) {
        struct ctl_errand *e = &w->errands[i];
        bool there = e->pid != 0;

        watched[2 * i] = (struct pollfd){ .fd = there ? e->out_fd : -1, .events = POLLIN };
        watched[2 * i + 1] = (struct pollfd){ .fd = there ? e->said_fd : -1, .events = POLLIN };
        n += there;
    }
    return n;
}

static void errands_read(struct ctl_web *w, const struct pollfd *watched)
{
    for (size_t i = 0; i < CTL_ERRANDS; i++) {
        bool out = watched[2 * i].revents != 0;
        bool said = watched[2 * i + 1].revents != 0;

        if ((!out && !said) || !ctl_errand_read(&w->errands[i], out, said))
            continue;
        if (i < CTL_QUEUES)
            look_end(w, i);
        else
            ctl_http_answer(w, i);
    }
}

/* What takes too long is ended; when the next one will. */
static int64_t errands_sweep(struct ctl_web *w, int64_t now_ns)
{
    int64_t next_ns = DUE_FOREVER;

    for (size_t i = 0; i < CTL_ERRANDS; i++) {
        struct ctl_errand *e = &w->errands[i];

        if (e->pid == 0 || e->cut)
            continue;
        if (e->until_ns <= now_ns)
            ctl_errand_kill(e);
        else if (e->until_ns < next_ns)
            next_ns = e->until_ns;
    }
    return next_ns;
}

/* How long poll() may wait. */
static int wait_ms(struct ctl_web *w)
{
    int64_t now_ns = ctl_web_now();
    int64_t next_ns = errands_sweep(w, now_ns);
    MHD_UNSIGNED_LONG_LONG served_ms;
    int64_t ms = 60000;

    if (w->daemon != NULL) {
        int64_t client_ns = ctl_http_sweep(w, now_ns);

        next_ns = client_ns < next_ns ? client_ns : next_ns;
        if (MHD_get_timeout(w->daemon, &served_ms) == MHD_YES && served_ms < 60000)
            ms = (int64_t)served_ms;
    }
    int64_t look_ns = next_look(w);
    if (look_ns < next_ns)
        next_ns = look_ns;
    if (next_ns <= now_ns)
        return 0;
    if (next_ns != DUE_FOREVER && (next_ns - now_ns) / 1000000 + 1 < ms)
        ms = (next_ns - now_ns) / 1000000 + 1;
    return (int)ms;
}

/* Wait for something, and see to it.  The signal that has come, or 0. */
static int turn(struct ctl_web *w, int signal_fd)
{
    struct pollfd watched[WATCHED] = { 0 };

    watched[SIGNAL] = (struct pollfd){ .fd = signal_fd, .events = POLLIN };
    watched[SERVER] = (struct pollfd){ .fd = -1, .events = POLLIN };
    if (w->daemon != NULL)
        watched[SERVER].fd = MHD_get_daemon_info(w->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    (void)errand_fds(w, watched + FIRST_ERRAND);
    if (poll(watched, WATCHED, wait_ms(w)) < 0)
        return 0;
    errands_read(w, watched + FIRST_ERRAND);
    looks_begin(w);
    if (w->daemon != NULL)
        (void)MHD_run(w->daemon);
    return watched[SIGNAL].revents != 0 ? ctl_signal_next(signal_fd) : 0;
}

/* ---- The socket ------------------------------------------------------------------------------ */

static bool bind_at(int fd, const char *address, uint16_t port)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                               .sin6_port = htons(port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT };

    if (address[0] == '[')
        return bind(fd, (struct sockaddr *)&v6, sizeof v6) == 0;
    return inet_pton(AF_INET, address, &v4.sin_addr) == 1 &&
           bind(fd, (struct sockaddr *)&v4, sizeof v4) == 0;
}

/* -1: it has none. */
static int port_of(int fd)
{
    struct sockaddr_storage at = { 0 };
    socklen_t len = sizeof at;

    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return -1;
    return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                          : ((struct sockaddr_in *)&at)->sin_port);
}

/* @address is as in a URL; IPv6 is in brackets, and is [::1]. */
static int listen_at(const char *address, uint16_t port, int *got)
{
    int one = 1;
    int fd = socket(address[0] == '[' ? AF_INET6 : AF_INET,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind_at(fd, address, port) && listen(fd, CTL_CONNECTIONS_MAX) == 0) {
        *got = port_of(fd);
        if (*got >= 0)
            return fd;
    }
    fprintf(stderr, "duectl: port %u at %s: %s\n", port, address, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* ---- From beginning to end ------------------------------------------------------------------- */

/* Can one be shown?  @waits: not yet, but a look is being made. */
static bool any_is_seen(const struct ctl_web *w, bool *waits)
{
    *waits = false;
    for (size_t i = 0; i < w->queue_count; i++) {
        if (w->queues[i].history.count > 0)
            return true;
        *waits = *waits || w->errands[i].pid != 0;
    }
    return false;
}

/* The exit status, where none can be shown: the worst. */
static int worst_status(const struct ctl_web *w)
{
    int status = CTL_FINE;

    for (size_t i = 0; i < w->queue_count; i++) {
        if (w->queues[i].history.status > status)
            status = w->queues[i].history.status;
    }
    return status == CTL_FINE ? CTL_BROKEN : status;
}

/* 0, or an exit status: said why nothing can be shown. */
static int first_look(struct ctl_web *w, int signal_fd)
{
    bool waits = true;
    int signal = 0;
    bool seen = false;

    for (size_t i = 0; i < w->queue_count; i++)
        look_begin(w, i);
    while (!seen && waits && signal == 0) {
        signal = turn(w, signal_fd);
        seen = any_is_seen(w, &waits);
    }
    if (signal != 0)
        return 128 + signal;
    return seen ? 0 : worst_status(w);
}

static int open_it(struct ctl_web *w)
{
    int fd = listen_at(w->address, w->look->port, &w->port);

    if (fd < 0)
        return CTL_BROKEN;
    if (!ctl_http_open(w, fd)) {
        close(fd);
        return CTL_BROKEN;
    }
    return w->site->opened(w) ? 0 : CTL_BROKEN;
}

/* Looks are ended at once; a change may end by itself, or until another signal comes. */
static void close_it(struct ctl_web *w, int signal_fd)
{
    int64_t until_ns = ctl_web_now() + GRACE_NS;
    struct pollfd watched[2 * CTL_ERRANDS];
    bool hurry = false;

    if (w->daemon != NULL)
        ctl_http_close(w);
    w->daemon = NULL;
    while (errand_fds(w, watched) > 0) {
        for (size_t i = 0; i < CTL_ERRANDS; i++) {
            struct ctl_errand *e = &w->errands[i];

            w->asked[i] = NULL;
            if (e->pid != 0 && !e->cut && (!e->writes || hurry))
                ctl_errand_kill(e);
        }
        if (poll(watched, 2 * CTL_ERRANDS, 100) > 0)
            errands_read(w, watched);
        hurry = ctl_web_now() >= until_ns || ctl_signal_next(signal_fd) != 0;
    }
}

int ctl_site_serve(const struct ctl_site *site, struct ctl_look *look)
{
    static struct ctl_web w;
    int signal_fd = ctl_signals_open();
    int signal = 0;

    if (signal_fd < 0)
        return CTL_BROKEN;
    w.site = site;
    w.look = look;
    w.address = look->address[0] != '\0' ? look->address : "127.0.0.1";
    int status = ctl_watched_open(&w) ? CTL_FINE : CTL_USAGE;
    if (status == 0 && site->looks)
        status = first_look(&w, signal_fd);
    if (status == 0)
        status = open_it(&w);
    while (status == 0 && signal == 0)
        signal = turn(&w, signal_fd);
    close_it(&w, signal_fd);
    ctl_urls_forget();
    for (size_t i = 0; i < w.queue_count; i++)
        ctl_history_free(&w.queues[i].history);
    close(signal_fd);
    return signal != 0 ? 128 + signal : status;
}
