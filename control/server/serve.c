/* serve.c - the thread of a control socket.
 *
 * It reads from all who are connected as it comes, each for a time that grows with what it has to
 * say; a request that is complete is carried out, one at a time, and its answer is written as it is
 * read.  So who is slow, or silent, holds up nobody; while a request is carried out everybody else
 * waits, and that time is not counted against them.  DUE__CTL_CLIENTS_MAX are connected at a time;
 * others wait in the line of the kernel.
 *
 * Whatever comes through it is of bounded length: memory for payloads is had as they come, not as
 * they are announced, and for all who are connected there is as much as for one payload.  What is
 * not a request is answered with what is wrong.
 *
 * Guards  T  that thread alone
 */
#define _GNU_SOURCE
#include "os/atomic.h"
#include "server/server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NAME      "due:control"
#define BYTE_NS   16                /* for a byte of a payload to come: 60 MB a second at least */
#define CHUNK     ((size_t)1 << 16) /* is read at once */
#define ANSWER_NS DUE_S(60)         /* for an answer to be read, by one who goes on reading */
#define PAUSE_NS  DUE_MS(100)       /* until what the system refused is asked for again */

enum stage { READS_LINE, READS_BODY, ANSWERED };

/* One who is connected. */
struct due__ctl_client {
    int fd;                          /* T */
    enum stage stage;                /* T */
    int64_t until_ns;                /* T  then it is given up; */
    int64_t most_ns;                 /* T  at the latest then, also if it reads its answer */
    struct due__ctl_buffer line;     /* T  the request, */
    struct due__ctl_buffer body;     /* T  and the payloads behind it; then its memory goes */
    struct due__ctl_request request; /* T  points into the line */
    struct due__ctl_buffer answer;   /* T */
    size_t written;                  /* T  of the answer */
};

/* ---- An answer ------------------------------------------------------------------------------- */

static int64_t mono_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

/* Who reads is given more time, but not for ever. */
static void hear_from(struct due__ctl_client *k)
{
    int64_t until_ns = mono_ns() + DUE__CTL_REQUEST_NS;

    k->until_ns = until_ns < k->most_ns ? until_ns : k->most_ns;
}

/* The answer is complete. */
static void answered(struct due__ctl_client *k)
{
    due__ctl_buffer_free(&k->body);
    k->stage = ANSWERED;
    k->most_ns = mono_ns() + ANSWER_NS;
    hear_from(k);
}

static void refuse(struct due__ctl_client *k, const char *fault, int rc)
{
    k->answer.len = 0;
    due__ctl_carry_fault(&k->answer, fault);
    due__ctl_carry_end(&k->answer, rc);
    answered(k);
}

/* False: the connection is over. */
static bool write_some(struct due__ctl_client *k)
{
    ssize_t n = send(k->fd, k->answer.bytes + k->written, k->answer.len - k->written,
                     MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    k->written += (size_t)n;
    hear_from(k);
    return k->written < k->answer.len;
}

/* ---- A request ------------------------------------------------------------------------------- */

static size_t body_held(const struct due_control *c)
{
    size_t held = 0;

    for (size_t i = 0; i < c->n; i++)
        held += c->clients[i]->body.len;
    return held;
}

/* Nobody is heard while a request is carried out: that is not the fault of the others. */
static void give_time(struct due_control *c, const struct due__ctl_client *but, int64_t ns)
{
    for (size_t i = 0; i < c->n; i++) {
        struct due__ctl_client *k = c->clients[i];

        if (k == but)
            continue;
        k->until_ns += ns;
        k->most_ns += ns;
    }
}

/* All that it needs has come, or not yet. */
static void go_on(struct due_control *c, struct due__ctl_client *k)
{
    struct due__ctl_carrier carrier = {
        .served = &c->served, .request = &k->request, .body = k->body.bytes, .answer = &k->answer
    };

    if (k->body.len < due__ctl_request_body(&k->request))
        return;
    int64_t from_ns = mono_ns();
    due__ctl_carry(&carrier);
    answered(k);
    give_time(c, k, mono_ns() - from_ns);
}

/* The line has come, of @len bytes; what stands behind it belongs to the payloads, if there are
 * any. */
static void line_has_come(struct due_control *c, struct due__ctl_client *k, size_t len)
{
    struct due__ctl_json j = { .line = k->line.bytes, .len = len };
    size_t behind = k->line.len - len - 1;

    if (!due__ctl_request_read(&k->request, &j)) {
        due__ctl_buffer_text(&k->answer, "{\"fault\":");
        due__ctl_json_put(&k->answer, j.fault, strlen(j.fault));
        due__ctl_buffer_text(&k->answer, ",\"byte\":%zu}\n", j.at + 1);
        due__ctl_carry_end(&k->answer, DUE_EINVAL);
        answered(k);
        return;
    }
    size_t body = due__ctl_request_body(&k->request);
    due__ctl_buffer_add(&k->body, k->line.bytes + len + 1, behind < body ? behind : body);
    if (k->body.failed) {
        refuse(k, "no memory", DUE_ENOMEM);
        return;
    }
    k->stage = READS_BODY;
    k->until_ns += (int64_t)body * BYTE_NS;
    go_on(c, k);
}

/* False: the connection is over. */
static bool read_line(struct due_control *c, struct due__ctl_client *k)
{
    if (!due__ctl_buffer_grow(&k->line, DUE__CTL_REQUEST_MAX + 1 - k->line.len))
        return false;
    ssize_t n = recv(k->fd, k->line.bytes + k->line.len, DUE__CTL_REQUEST_MAX + 1 - k->line.len,
                     MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        return false;
    if (n < 0)
        return true;
    const char *end = memchr(k->line.bytes + k->line.len, '\n', (size_t)n);
    k->line.len += (size_t)n;
    if (end != NULL)
        line_has_come(c, k, (size_t)(end - k->line.bytes));
    else if (k->line.len > DUE__CTL_REQUEST_MAX)
        refuse(k, "the request is too long", DUE_ELIMIT);
    return true;
}

static bool read_body(struct due_control *c, struct due__ctl_client *k)
{
    size_t left = due__ctl_request_body(&k->request) - k->body.len;
    size_t most = left < CHUNK ? left : CHUNK;

    if (body_held(c) + most > c->body_most) { /* others have it, and not for long */
        refuse(k, "no memory for such payloads now", DUE_EAGAIN);
        return true;
    }
    if (!due__ctl_buffer_grow(&k->body, most)) {
        refuse(k, "no memory for such payloads", DUE_ENOMEM);
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
static bool client_step(struct due_control *c, struct due__ctl_client *k, bool ready,
                        int64_t now_ns)
{
    bool fine = true;

    if (now_ns >= k->most_ns && k->stage == ANSWERED)
        fine = false;
    else if (ready)
        fine = k->stage == READS_LINE   ? read_line(c, k)
               : k->stage == READS_BODY ? read_body(c, k)
                                        : write_some(k);
    else if (now_ns >= k->until_ns && k->stage == ANSWERED)
        fine = false;
    else if (now_ns >= k->until_ns)
        refuse(k, "the request did not come in time", DUE_EINVAL);
    return fine;
}

/* Its end is heard also where a child of fork() has a copy of the descriptor. */
static void client_free(struct due__ctl_client *k)
{
    (void)shutdown(k->fd, SHUT_RDWR);
    close(k->fd);
    due__ctl_buffer_free(&k->line);
    due__ctl_buffer_free(&k->body);
    due__ctl_buffer_free(&k->answer);
    free(k);
}

/* False: nothing can be accepted for a while. */
static bool client_accept(struct due_control *c)
{
    int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0) /* it has gone again; whatever else it is lasts */
        return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    struct due__ctl_client *k = calloc(1, sizeof *k);
    if (k == NULL) {
        close(fd);
        return false;
    }
    k->fd = fd;
    k->until_ns = mono_ns() + DUE__CTL_REQUEST_NS;
    c->clients[c->n++] = k;
    return true;
}

enum { LISTENS, STOPS, CLIENTS, FDS = CLIENTS + DUE__CTL_CLIENTS_MAX };

/* The system refuses to wait: it is asked again, and no sooner than this. */
static void pause_a_while(void)
{
    const struct timespec pause = { .tv_nsec = PAUSE_NS };

    (void)nanosleep(&pause, NULL);
}

/* Wait until there is something to do, or the time of one is over. */
static void wait_for_any(struct due_control *c, struct pollfd ready[FDS], bool accepts)
{
    int64_t until_ns = accepts ? DUE_FOREVER : mono_ns() + PAUSE_NS;

    ready[LISTENS] =
        (struct pollfd){ .fd = c->n < DUE__CTL_CLIENTS_MAX && accepts ? c->listen_fd : -1,
                         .events = POLLIN };
    ready[STOPS] = (struct pollfd){ .fd = c->stop_fd, .events = POLLIN };
    for (size_t i = 0; i < c->n; i++) {
        const struct due__ctl_client *k = c->clients[i];

        ready[CLIENTS + i] =
            (struct pollfd){ .fd = k->fd, .events = k->stage == ANSWERED ? POLLOUT : POLLIN };
        until_ns = k->until_ns < until_ns ? k->until_ns : until_ns;
    }
    int64_t left_ns = until_ns == DUE_FOREVER ? -1 : until_ns - mono_ns();
    int ms = until_ns == DUE_FOREVER ? -1 : left_ns <= 0 ? 0 : (int)(left_ns / 1000000) + 1;
    int n = poll(ready, (nfds_t)(CLIENTS + c->n), ms);

    for (size_t i = 0; n < 0 && i < CLIENTS + c->n; i++)
        ready[i].revents = 0;
    if (n < 0 && errno != EINTR)
        pause_a_while();
}

static bool stops(const struct due_control *c)
{
    return due__load_seq(&c->served.stopping); /* E1 */
}

/* The last one takes the place of one that goes, and has had its turn: they are gone through from
 * the end. */
static void clients_step(struct due_control *c, const struct pollfd ready[FDS])
{
    int64_t now_ns = mono_ns();

    for (size_t i = c->n; i-- > 0 && !stops(c);) {
        if (client_step(c, c->clients[i], ready[CLIENTS + i].revents != 0, now_ns))
            continue;
        client_free(c->clients[i]);
        c->clients[i] = c->clients[--c->n];
    }
}

void *due__ctl_serve(void *arg)
{
    struct due_control *c = arg;
    struct pollfd ready[FDS];
    bool accepts = true;

    pthread_setname_np(pthread_self(), NAME);
    if (c->on_thread_start != NULL)
        c->on_thread_start(c->served.ctx, NAME);
    while (!stops(c)) {
        wait_for_any(c, ready, accepts);
        clients_step(c, ready);
        accepts = ready[LISTENS].revents == 0 || client_accept(c);
    }
    while (c->n > 0) {
        struct due__ctl_client *k = c->clients[--c->n];

        if (k->stage == ANSWERED) /* what was done is said, as far as it can be at once */
            (void)write_some(k);
        client_free(k);
    }
    return NULL;
}
