/* serve.c - the control socket of a process that owns a queue.
 *
 * A thread reads from all who are connected as it comes, each for a time that grows with what it
 * has to say; a request that is complete is carried out, one at a time, and its answer is written
 * as it is read.  So who is slow, or silent, holds up nobody.  CTL_CLIENTS_MAX are connected at a
 * time; others wait in the line of the kernel.  The socket is its user's alone, from the moment it
 * can be seen.
 *
 * Whatever comes through it is of bounded length: memory for payloads is had as they come, not as
 * they are announced, and for all who are connected there is as much as for one payload.  What is
 * not a request is answered with what is wrong.
 *
 * Guards  I  set before the thread starts, then constant    T  that thread alone
 */
#define _GNU_SOURCE
#include "verbs/control.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BYTE_NS   16                /* for a byte of a payload to come: 60 MB a second at least */
#define BODY_MOST DUE_PAYLOAD_MAX   /* bytes of payloads, of all who are connected */
#define CHUNK     ((size_t)1 << 16) /* is read at once */

enum stage { READS_LINE, READS_BODY, ANSWERED };

/* One who is connected. */
struct client {
    int fd;                     /* T */
    enum stage stage;           /* T */
    int64_t until_ns;           /* T  then it is given up */
    struct ctl_buffer line;     /* T  the request, */
    struct ctl_buffer body;     /* T  and the payloads behind it; then its memory goes */
    struct ctl_request request; /* T  points into the line */
    struct ctl_buffer answer;   /* T */
    size_t written;             /* T  of the answer */
};

struct ctl_control {
    due_queue *queue;                        /* I  */
    const char *name;                        /* I  of the queue */
    bool takes_jobs;                         /* I  */
    struct sockaddr_un address;              /* I  */
    ino_t inode;                             /* I  of what was made there */
    int listen_fd;                           /* I  */
    int stop_fd;                             /* I  */
    pthread_t thread;                        /* I  */
    struct client *clients[CTL_CLIENTS_MAX]; /* T  the first n */
    size_t n;                                /* T  */
};

/* ---- An answer ------------------------------------------------------------------------------- */

static int64_t mono_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

/* The answer is complete. */
static void answered(struct client *k)
{
    ctl_buffer_free(&k->body);
    k->stage = ANSWERED;
    k->until_ns = mono_ns() + CTL_REQUEST_NS;
}

static void refuse(struct client *k, const char *fault, int rc)
{
    k->answer.len = 0;
    ctl_buffer_text(&k->answer, "{\"fault\":\"%s\"}\n", fault);
    ctl_carry_end(&k->answer, rc);
    answered(k);
}

/* False: the connection is over. */
static bool write_some(struct client *k)
{
    ssize_t n = send(k->fd, k->answer.bytes + k->written, k->answer.len - k->written,
                     MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    k->written += (size_t)n;
    return k->written < k->answer.len;
}

/* ---- A request ------------------------------------------------------------------------------- */

static size_t body_held(const struct ctl_control *c)
{
    size_t held = 0;

    for (size_t i = 0; i < c->n; i++)
        held += c->clients[i]->body.len;
    return held;
}

/* All that it needs has come, or not yet. */
static void go_on(struct ctl_control *c, struct client *k)
{
    struct ctl_carrier carrier = { .queue = c->queue,
                                   .name = c->name,
                                   .takes_jobs = c->takes_jobs,
                                   .request = &k->request,
                                   .body = k->body.bytes,
                                   .answer = &k->answer };

    if (k->body.len < ctl_request_body(&k->request))
        return;
    ctl_carry(&carrier);
    answered(k);
}

/* The line has come, of @len bytes; what stands behind it belongs to the payloads, if there are
 * any. */
static void line_has_come(struct ctl_control *c, struct client *k, size_t len)
{
    struct ctl_json j = { .line = k->line.bytes, .len = len };
    size_t behind = k->line.len - len - 1;

    if (!ctl_request_read(&k->request, &j)) {
        ctl_buffer_text(&k->answer, "{\"fault\":\"%s\",\"byte\":%zu}\n", j.fault, j.at + 1);
        ctl_carry_end(&k->answer, DUE_EINVAL);
        answered(k);
        return;
    }
    size_t body = ctl_request_body(&k->request);
    ctl_buffer_add(&k->body, k->line.bytes + len + 1, behind < body ? behind : body);
    if (k->body.failed) {
        refuse(k, "no memory", DUE_ENOMEM);
        return;
    }
    k->stage = READS_BODY;
    k->until_ns += (int64_t)body * BYTE_NS;
    go_on(c, k);
}

/* False: the connection is over. */
static bool read_line(struct ctl_control *c, struct client *k)
{
    if (!ctl_buffer_grow(&k->line, CTL_REQUEST_MAX + 1 - k->line.len))
        return false;
    ssize_t n =
        recv(k->fd, k->line.bytes + k->line.len, CTL_REQUEST_MAX + 1 - k->line.len, MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        return false;
    if (n < 0)
        return true;
    const char *end = memchr(k->line.bytes + k->line.len, '\n', (size_t)n);
    k->line.len += (size_t)n;
    if (end != NULL)
        line_has_come(c, k, (size_t)(end - k->line.bytes));
    else if (k->line.len > CTL_REQUEST_MAX)
        refuse(k, "the request is too long", DUE_ELIMIT);
    return true;
}

static bool read_body(struct ctl_control *c, struct client *k)
{
    size_t left = ctl_request_body(&k->request) - k->body.len;
    size_t most = left < CHUNK ? left : CHUNK;

    if (body_held(c) + most > BODY_MOST || !ctl_buffer_grow(&k->body, most)) {
        refuse(k, "no memory for such payloads now", DUE_EAGAIN);
        return true;
    }
    ssize_t n = recv(k->fd, k->body.bytes + k->body.len, most, MSG_DONTWAIT);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    k->body.len += (size_t)n;
    if (n == 0)
        refuse(k, "the payloads are cut off", DUE_EINVAL);
    else
        go_on(c, k);
    return true;
}

/* ---- Connections ----------------------------------------------------------------------------- */

/* False: it is over. */
static bool client_step(struct ctl_control *c, struct client *k, bool ready, int64_t now_ns)
{
    bool fine = true;

    if (ready)
        fine = k->stage == READS_LINE   ? read_line(c, k)
               : k->stage == READS_BODY ? read_body(c, k)
                                        : write_some(k);
    else if (now_ns >= k->until_ns && k->stage == ANSWERED)
        fine = false;
    else if (now_ns >= k->until_ns)
        refuse(k, "the request did not come in time", DUE_EINVAL);
    return fine;
}

static void client_free(struct client *k)
{
    close(k->fd);
    ctl_buffer_free(&k->line);
    ctl_buffer_free(&k->body);
    ctl_buffer_free(&k->answer);
    free(k);
}

/* False: nothing can be accepted for a while. */
static bool client_accept(struct ctl_control *c)
{
    int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
    struct client *k = calloc(1, sizeof *k);
    if (k == NULL) {
        close(fd);
        return false;
    }
    k->fd = fd;
    k->until_ns = mono_ns() + CTL_REQUEST_NS;
    c->clients[c->n++] = k;
    return true;
}

enum { LISTENS, STOPS, CLIENTS, FDS = CLIENTS + CTL_CLIENTS_MAX };

/* Wait until there is something to do, or the time of one is over. */
static bool wait_for_any(struct ctl_control *c, struct pollfd ready[FDS], bool accepts)
{
    int64_t until_ns = accepts ? DUE_FOREVER : mono_ns() + DUE_MS(100);

    ready[LISTENS] = (struct pollfd){ .fd = c->n < CTL_CLIENTS_MAX && accepts ? c->listen_fd : -1,
                                      .events = POLLIN };
    ready[STOPS] = (struct pollfd){ .fd = c->stop_fd, .events = POLLIN };
    for (size_t i = 0; i < c->n; i++) {
        const struct client *k = c->clients[i];

        ready[CLIENTS + i] =
            (struct pollfd){ .fd = k->fd, .events = k->stage == ANSWERED ? POLLOUT : POLLIN };
        until_ns = k->until_ns < until_ns ? k->until_ns : until_ns;
    }
    int64_t left_ns = until_ns == DUE_FOREVER ? -1 : until_ns - mono_ns();
    int ms = until_ns == DUE_FOREVER ? -1 : left_ns <= 0 ? 0 : (int)(left_ns / 1000000) + 1;
    int n = poll(ready, (nfds_t)(CLIENTS + c->n), ms);

    for (size_t i = 0; n < 0 && i < CLIENTS + c->n; i++)
        ready[i].revents = 0;
    return n >= 0 || errno == EINTR || errno == ENOMEM;
}

/* The last one takes the place of one that goes, and has had its turn: they are gone through from
 * the end. */
static void clients_step(struct ctl_control *c, const struct pollfd ready[FDS])
{
    int64_t now_ns = mono_ns();

    for (size_t i = c->n; i-- > 0;) {
        if (client_step(c, c->clients[i], ready[CLIENTS + i].revents != 0, now_ns))
            continue;
        client_free(c->clients[i]);
        c->clients[i] = c->clients[--c->n];
    }
}

static void *serve_main(void *arg)
{
    struct ctl_control *c = arg;
    struct pollfd ready[FDS];
    bool accepts = true;

    while (wait_for_any(c, ready, accepts) && ready[STOPS].revents == 0) {
        clients_step(c, ready);
        accepts = ready[LISTENS].revents == 0 || client_accept(c);
    }
    while (c->n > 0)
        client_free(c->clients[--c->n]);
    return NULL;
}

/* ---- Opened and closed ----------------------------------------------------------------------- */

static int said(const char *path, const char *why)
{
    fprintf(stderr, "duectl: --control %s: %s\n", path, why);
    return CTL_BROKEN;
}

/* What a process has left behind that is gone goes; anything else stays. */
static bool remove_stale(const struct sockaddr_un *address)
{
    struct stat file;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool gone = fd >= 0 && lstat(address->sun_path, &file) == 0 && S_ISSOCK(file.st_mode) &&
                connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                errno == ECONNREFUSED;

    if (fd >= 0)
        close(fd);
    return gone && unlink(address->sun_path) == 0;
}

/* The mode of the descriptor is that of the file, so nobody else can connect at any moment. */
static int bind_to(struct ctl_control *c)
{
    const struct sockaddr *to = (const struct sockaddr *)&c->address;
    struct stat file;

    if (fchmod(c->listen_fd, 0600) != 0)
        return errno;
    int rc = bind(c->listen_fd, to, sizeof c->address) == 0 ? 0 : errno;
    if (rc == EADDRINUSE && remove_stale(&c->address))
        rc = bind(c->listen_fd, to, sizeof c->address) == 0 ? 0 : errno;
    if (rc != 0)
        return rc;
    if (listen(c->listen_fd, CTL_CLIENTS_MAX) != 0 || stat(c->address.sun_path, &file) != 0)
        return errno;
    c->inode = file.st_ino;
    return 0;
}

static void control_free(struct ctl_control *c)
{
    if (c->listen_fd >= 0)
        close(c->listen_fd);
    if (c->stop_fd >= 0)
        close(c->stop_fd);
    free(c);
}

int ctl_control_open(struct ctl_control **control, const char *path, due_queue *q, const char *name,
                     bool takes_jobs)
{
    struct ctl_control *c;

    if (strlen(path) >= sizeof c->address.sun_path)
        return said(path, "the path of a socket is shorter than 108 bytes");
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return said(path, strerror(ENOMEM));
    c->queue = q;
    c->name = name;
    c->takes_jobs = takes_jobs;
    c->address.sun_family = AF_UNIX;
    memcpy(c->address.sun_path, path, strlen(path) + 1);
    c->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    c->stop_fd = eventfd(0, EFD_CLOEXEC);
    int rc = c->listen_fd < 0 || c->stop_fd < 0 ? errno : bind_to(c);
    if (rc == 0)
        rc = pthread_create(&c->thread, NULL, serve_main, c);
    if (rc == 0) {
        *control = c;
        return 0;
    }
    if (c->inode != 0)
        (void)unlink(path);
    control_free(c);
    return said(path, strerror(rc));
}

void ctl_control_close(struct ctl_control *c)
{
    struct stat file;

    if (c == NULL)
        return;
    eventfd_write(c->stop_fd, 1);
    pthread_join(c->thread, NULL);
    if (lstat(c->address.sun_path, &file) == 0 && file.st_ino == c->inode)
        (void)unlink(c->address.sun_path);
    control_free(c);
}
