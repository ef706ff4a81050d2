/* serve.c - the control socket of a process that owns a queue.
 *
 * A thread serves one connection after another: a request is read, for REQUEST_NS at most, carried
 * out, and answered.  Others wait in the line of the kernel.  The socket is its user's alone, from
 * the moment it can be seen.  Whatever comes through it is of bounded length, and what is not a
 * request is answered with what is wrong.
 *
 * Guards  I  set before the thread starts, then constant
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

#include "due/metrics.h"

#define REQUEST_NS DUE_S(5) /* for a request to come, and for an answer to be read */

struct ctl_control {
    due_queue *queue;           /* I  */
    const char *name;           /* I  of the queue */
    struct sockaddr_un address; /* I  */
    ino_t inode;                /* I  of what was made there */
    int listen_fd;              /* I  */
    int stop_fd;                /* I  */
    pthread_t thread;           /* I  */
    char line[CTL_REQUEST_MAX + 1];
    struct ctl_request request;
    struct ctl_buffer answer;
};

/* ---- The verbs ------------------------------------------------------------------------------- */

static void add_results(struct ctl_control *c, const int *results)
{
    char id[DUE_ID_TEXT];

    for (size_t i = 0; i < c->request.n; i++)
        ctl_buffer_text(&c->answer, "{\"id\":\"%s\",\"result\":\"%s\"}\n",
                        due_id_format(c->request.ids[i], id), due_error_name(results[i]));
}

static int serve_ids(struct ctl_control *c, struct ctl_access *a)
{
    const struct ctl_request *r = &c->request;
    int results[CTL_NAMED];
    int rc;

    switch (r->verb) {
    case CTL_ASK_CANCEL:
        rc = a->verbs->cancel(a, r->ids, r->n, results);
        break;
    case CTL_ASK_KICK:
        rc = a->verbs->kick(a, r->ids, r->n, results);
        break;
    case CTL_ASK_DROP:
        rc = a->verbs->drop(a, r->ids, r->n, results);
        break;
    default:
        rc = a->verbs->move(a, r->ids, r->n, r->at_ns, results);
        break;
    }
    if (rc == 0)
        add_results(c, results);
    return rc;
}

static int serve_all(struct ctl_control *c, struct ctl_access *a)
{
    const char *topic = c->request.has_topic ? c->request.topic : NULL;
    uint64_t count = 0;
    int rc;

    switch (c->request.verb) {
    case CTL_ASK_KICK_ALL:
        rc = a->verbs->kick_all(a, topic, &count);
        break;
    case CTL_ASK_DROP_ALL:
        rc = a->verbs->drop_all(a, topic, &count);
        break;
    case CTL_ASK_CLEAR:
        rc = a->verbs->clear(a, topic, &count);
        break;
    case CTL_ASK_PAUSE:
        rc = a->verbs->pause(a, topic);
        break;
    default:
        rc = a->verbs->resume(a, topic);
        break;
    }
    ctl_buffer_text(&c->answer, "{\"count\":%" PRIu64 "}\n", count);
    return rc;
}

static int serve_stats(struct ctl_control *c)
{
    struct due_stats s;
    int rc = due_stats_read(c->queue, &s);

    if (rc != 0)
        return rc;
    const struct {
        const char *name;
        uint64_t value;
    } all[] = { { "waiting", s.waiting },
                { "ready", s.ready },
                { "reserved", s.leased },
                { "dead", s.dead },
                { "kept_back", s.kept_back },
                { "enqueued", s.enqueued },
                { "restored", s.restored },
                { "dequeued", s.dequeued },
                { "acked", s.acked },
                { "nacked", s.nacked },
                { "retried", s.retried },
                { "buried", s.buried },
                { "kicked", s.kicked },
                { "cancelled", s.cancelled },
                { "discarded", s.discarded },
                { "unsettled", s.unsettled },
                { "loading", (uint64_t)s.loading } };

    ctl_buffer_text(&c->answer, "{\"queue\":\"%s\",\"pid\":%d,\"store\":\"%s\"", c->name,
                    (int)getpid(), due_error_name(s.store_state));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        ctl_buffer_text(&c->answer, ",\"%s\":%" PRIu64, all[i].name, all[i].value);
    ctl_buffer_text(&c->answer, "}\n");
    return 0;
}

static int serve_metrics(struct ctl_control *c)
{
    struct ctl_buffer text = { 0 };
    int len = due_metrics_write(c->queue, NULL, 0);

    while (len >= 0 && (size_t)len >= text.room && text.room < CTL_ANSWER_MAX / 4) {
        if (!ctl_buffer_grow(&text, (size_t)len + 4096))
            return DUE_ENOMEM;
        len = due_metrics_write(c->queue, text.bytes, text.room);
    }
    if (len >= 0 && (size_t)len >= text.room)
        len = DUE_ELIMIT;
    if (len >= 0) {
        ctl_buffer_text(&c->answer, "{\"metrics\":");
        ctl_dump_bytes(&c->answer, text.bytes, (size_t)len);
        ctl_buffer_text(&c->answer, "}\n");
    }
    ctl_buffer_free(&text);
    return len < 0 ? len : 0;
}

/* What is answered is stored, also in a queue whose changes nobody waits for. */
static int serve_verb(struct ctl_control *c)
{
    struct ctl_access a;
    int rc;

    ctl_access_of(&a, c->queue);
    if (c->request.verb == CTL_ASK_STATS)
        return serve_stats(c);
    if (c->request.verb == CTL_ASK_METRICS)
        return serve_metrics(c);
    rc = c->request.verb <= CTL_ASK_RESCHEDULE ? serve_ids(c, &a) : serve_all(c, &a);
    return rc == 0 ? due_flush(c->queue, REQUEST_NS) : rc;
}

/* Of a line of @len bytes. */
static void serve_request(struct ctl_control *c, size_t len)
{
    struct ctl_json j = { .line = c->line, .len = len };
    int rc = DUE_EINVAL;

    c->answer.len = 0;
    c->answer.failed = false;
    if (ctl_request_read(&c->request, &j)) {
        rc = serve_verb(c);
    } else {
        ctl_buffer_text(&c->answer, "{\"fault\":\"%s\",\"byte\":%zu}\n", j.fault, j.at + 1);
    }
    ctl_buffer_text(&c->answer, "{\"end\":\"%s\"}\n",
                    due_error_name(c->answer.failed ? DUE_ENOMEM : rc));
}

/* ---- A connection ---------------------------------------------------------------------------- */

static int64_t mono_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

/* Wait until the client can be read or written.  False: time is up, or it is to end. */
static bool wait_for(struct ctl_control *c, int fd, short events, int64_t until_ns)
{
    struct pollfd ready[] = { { .fd = fd, .events = events },
                              { .fd = c->stop_fd, .events = POLLIN } };
    int64_t left_ns = until_ns - mono_ns();

    if (left_ns <= 0)
        return false;
    int n = poll(ready, 2, (int)(left_ns / 1000000) + 1);
    return (n >= 0 || errno == EINTR) && ready[1].revents == 0;
}

/* A line: its length; -1: none came in time; -2: it is too long. */
static int request_read(struct ctl_control *c, int fd)
{
    int64_t until_ns = mono_ns() + REQUEST_NS;
    size_t len = 0;

    while (wait_for(c, fd, POLLIN, until_ns)) {
        ssize_t n = recv(fd, c->line + len, sizeof c->line - len, MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
            return -1;
        const char *end = n < 0 ? NULL : memchr(c->line + len, '\n', (size_t)n);
        if (end != NULL)
            return (int)(end - c->line);
        len += n < 0 ? 0 : (size_t)n;
        if (len == sizeof c->line)
            return -2;
    }
    return -1;
}

static void answer_write(struct ctl_control *c, int fd)
{
    int64_t until_ns = mono_ns() + REQUEST_NS;
    size_t done = 0;

    while (done < c->answer.len && wait_for(c, fd, POLLOUT, until_ns)) {
        ssize_t n =
            send(fd, c->answer.bytes + done, c->answer.len - done, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return;
        done += n < 0 ? 0 : (size_t)n;
    }
}

static void serve_client(struct ctl_control *c, int fd)
{
    int len = request_read(c, fd);

    if (len == -1)
        return;
    if (len >= 0)
        serve_request(c, (size_t)len);
    else {
        c->answer.len = 0;
        ctl_buffer_text(&c->answer, "{\"fault\":\"the request is too long\"}\n{\"end\":\"%s\"}\n",
                        due_error_name(DUE_ELIMIT));
    }
    answer_write(c, fd);
}

static void *serve_main(void *arg)
{
    struct ctl_control *c = arg;
    struct pollfd ready[] = { { .fd = c->listen_fd, .events = POLLIN },
                              { .fd = c->stop_fd, .events = POLLIN } };

    for (;;) {
        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (ready[1].revents != 0)
            return NULL;
        int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            serve_client(c, fd);
            close(fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
            (void)poll(&ready[1], 1, 100); /* until something is closed */
        }
    }
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
    ctl_buffer_free(&c->answer);
    free(c);
}

int ctl_control_open(struct ctl_control **control, const char *path, due_queue *q, const char *name)
{
    struct ctl_control *c;

    if (strlen(path) >= sizeof c->address.sun_path)
        return said(path, "the path of a socket is shorter than 108 bytes");
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return said(path, strerror(ENOMEM));
    c->queue = q;
    c->name = name;
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
