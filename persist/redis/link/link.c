/* link.c - one connection to a Redis server.
 *
 * The socket is ours and never blocks: every wait is in one place, wait_for(), on the socket and on
 * the bell that due__link_interrupt() rings.  A link is down, connecting, greeting or up; what is
 * begun goes on in the next call of due__link_up(), however short the callers' times are.
 *
 * A connection is given up at the first thing that is wrong with it.  What was formatted for it is
 * forgotten then: it may only make sense on the connection it was made for.
 *
 * Not here   URLs: address.c.  The first commands: greeting.c.  Replies out of bytes:
 *            reader.c; what errors mean: reply.c.  Names and kinds of sockets:
 *            socket.c.  Waiting: os/wait.c.  Writing commands: command.c.  How long
 *            to pause: backoff.c.
 */
#define _GNU_SOURCE
#include "redis/link/link.h"

#include <assert.h>
#include <errno.h>
#include <hiredis.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "redis/link/link_inside.h"
#include "base/time.h"
#include "base/wait.h"

#define INPUT_ROOM ((size_t)64 << 10) /* what one read takes; kept */
#define INPUT_MAX  ((size_t)64 << 20) /* what may come in while we send */
#define SMALL      ((size_t)1024)     /* commands whose answer is near, if the server is */
#define STRETCH    ((size_t)64 << 10) /* of an answer that comes: this much wins it more time */

/* What came of reading or writing what goes without waiting. */
enum moved { MOVED_SOME, MOVED_NONE, MOVED_CLOSED };

/* ---- Waiting ------------------------------------------------------------------------------- */

/* For @events on the socket, if there is one, and for the bell if @hear.  A ring ends the next wait
 * if the socket is ready now: what has come is taken first.  So calls that are interrupted however
 * often get on, and a server that never stops talking holds no interrupt up. */
static enum due__wait wait_for(struct due__link *l, short events, int64_t until_ns, bool hear)
{
    hear = hear && !l->deaf;
    struct due__ears ears = { .fd = l->fd, .events = events, .bell = hear ? l->bell : -1 };

    if (hear && l->interrupted) {
        l->interrupted = false;
        return DUE__WAIT_BELL;
    }
    enum due__wait wait = due__wait(&ears, events == POLLIN ? l->awake_ns : 0, until_ns);
    if (wait != DUE__WAIT_BOTH)
        return wait;
    l->interrupted = true;
    return DUE__WAIT_READY;
}

/* ---- Down ------------------------------------------------------------------------------------ */

static void forget_input(struct due__link *l)
{
    due__bytes_clear(&l->input, INPUT_ROOM);
    l->taken = 0;
    due__reader_clear(l->reader);
}

static void go_down(struct due__link *l, const char *trouble)
{
    if (l->state == DUE__LINK_DOWN)
        return;
    due__link_plan_retry(l);
    if (l->state == DUE__LINK_UP)
        due__link_forget(l);
    due__bytes_free(&l->rest);
    if (l->fd >= 0) {
        (void)shutdown(l->fd, SHUT_RDWR); /* a forked child may hold it too */
        close(l->fd);
    }
    l->fd = -1;
    l->state = DUE__LINK_DOWN;
    l->pending = 0;
    l->looked = false;
    l->trouble = trouble;
    due__targets_free(&l->targets);
    forget_input(l);
}

void due__link_down(struct due__link *l)
{
    go_down(l, "closed by us");
}

void due__link_refused(struct due__link *l, const char *trouble)
{
    l->owes = true;
    go_down(l, trouble);
}

/* ---- Bytes in and out ------------------------------------------------------------------------ */

static void count(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED); /* no order: only shown */
}

/* Room for more input.  While we only read, everything has been taken and there is room. */
static bool input_room(struct due__link *l)
{
    struct due__bytes *in = &l->input;

    if (l->taken == in->len) {
        due__bytes_clear(in, INPUT_ROOM);
        l->taken = 0;
    }
    if (in->room == 0)
        return due__bytes_reserve(in, INPUT_ROOM);
    return in->len < in->room || (in->len < INPUT_MAX && due__bytes_reserve(in, in->len));
}

static enum moved receive(struct due__link *l)
{
    struct due__bytes *in = &l->input;
    ssize_t n;

    if (!input_room(l)) {
        in->failed = false;
        return MOVED_NONE;
    }
    do
        n = recv(l->fd, in->at + in->len, in->room - in->len, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        in->len += (size_t)n;
        count(&l->counts.bytes_in, (uint64_t)n);
        return MOVED_SOME;
    }
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? MOVED_NONE : MOVED_CLOSED;
}

static enum moved transmit(struct due__link *l, const struct due__bytes *bytes, size_t *sent)
{
    ssize_t n;

    do
        n = send(l->fd, bytes->at + *sent, bytes->len - *sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n >= 0) {
        *sent += (size_t)n;
        count(&l->counts.bytes_out, (uint64_t)n);
        return MOVED_SOME;
    }
    return errno == EAGAIN || errno == EWOULDBLOCK ? MOVED_NONE : MOVED_CLOSED;
}

/* A reply out of what has been received.  1, 0: more is needed; or an error. */
static int take_reply(struct due__link *l, struct redisReply **reply)
{
    int rc = 0;

    while (rc == 0 && l->taken < l->input.len) {
        size_t used = 0;

        rc = due__reader_take(l->reader, l->input.at + l->taken, l->input.len - l->taken, &used,
                              reply);
        l->taken += used;
    }
    return rc;
}

/* Some of an answer has come, since @before bytes had come in all.  However long it is, it has its
 * time as long as it comes; what only trickles wins none. */
static void stretch(struct due__link *l, uint64_t before)
{
    l->came += (size_t)(l->counts.bytes_in - before); /* only we write it */
    if (l->came < STRETCH)
        return;
    l->came = 0;
    l->answer_ns = due__ns_after(due__mono_ns(), l->limits.answer_ns);
}

/* The next reply by @until_ns.  0; DUE_EAGAIN: time is up, or interrupted; DUE_ESTORE: down. */
static int await_reply(struct due__link *l, struct redisReply **reply, int64_t until_ns,
                       const int64_t *answer_ns)
{
    for (;;) {
        int rc = take_reply(l, reply);
        enum due__wait wait;

        if (rc > 0)
            return 0;
        if (rc < 0) {
            go_down(l, rc == DUE_ENOMEM ? "no memory for a reply"
                                        : "the server's reply makes no sense, or is too large");
            return DUE_ESTORE;
        }
        /* Looked at before the time is: what is here is not late. */
        wait = wait_for(l, POLLIN, due__ns_first(until_ns, *answer_ns), true);
        if (wait == DUE__WAIT_BELL)
            return DUE_EAGAIN;
        if (wait == DUE__WAIT_TIME && due__mono_ns() < *answer_ns)
            return DUE_EAGAIN;
        if (wait == DUE__WAIT_TIME) {
            go_down(l, "no answer in time");
            return DUE_ESTORE;
        }
        uint64_t before = l->counts.bytes_in; /* only we write it */
        if (receive(l) == MOVED_CLOSED) {
            go_down(l, "the server closed the connection");
            return DUE_ESTORE;
        }
        stretch(l, before);
    }
}

/* Nothing may come from a server that owes us nothing: it would be taken for the next answer. */
static bool is_quiet(struct due__link *l)
{
    if (l->pending > 0)
        return true;
    if (l->taken == l->input.len) {
        enum moved moved = receive(l);

        if (moved == MOVED_CLOSED)
            go_down(l, "the server closed the connection");
        if (moved != MOVED_SOME)
            return moved == MOVED_NONE;
    }
    go_down(l, "the server says more than it was asked");
    return false;
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* Begin with the next target that lets us. */
static void try_next_target(struct due__link *l, const char *trouble)
{
    int64_t now = due__mono_ns();
    size_t left;

    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    while ((left = due__targets_left(&l->targets)) > 0) {
        l->fd = due__targets_begin(&l->targets, &trouble);
        if (l->fd < 0)
            continue;
        /* Each its share of the time, so that one that swallows packets leaves some. */
        l->target_until_ns = due__ns_after(now, (l->greeted_until_ns - now) / (int64_t)left);
        return;
    }
    go_down(l, trouble);
}

static int step_down(struct due__link *l, int64_t until_ns)
{
    if (due__mono_ns() < l->retry_ns) {
        int64_t wake_ns = due__ns_first(l->retry_ns, until_ns);

        if (wait_for(l, 0, wake_ns, true) == DUE__WAIT_BELL || due__mono_ns() < l->retry_ns)
            return DUE_EAGAIN;
    }
    l->state = DUE__LINK_CONNECTING;
    l->greeted_until_ns = due__ns_after(due__mono_ns(), l->limits.connect_ns);
    l->greeting_sent = 0;
    l->greeted = 0;
    if (!due__targets_find(&l->targets, &l->address)) {
        go_down(l, "the server's name cannot be looked up");
        return 0;
    }
    try_next_target(l, "there is no address to connect to");
    return 0;
}

static int step_connecting(struct due__link *l, int64_t until_ns)
{
    const char *trouble = "no connection in time";
    enum due__wait wait = wait_for(l, POLLOUT, due__ns_first(until_ns, l->target_until_ns), true);

    if (wait == DUE__WAIT_BELL)
        return DUE_EAGAIN;
    if (wait == DUE__WAIT_TIME && due__mono_ns() < l->target_until_ns)
        return DUE_EAGAIN;
    if (wait == DUE__WAIT_TIME || !due__socket_connected(l->fd, &trouble)) {
        try_next_target(l, trouble);
        return 0;
    }
    due__targets_free(&l->targets);
    l->state = DUE__LINK_GREETING;
    if (!l->owes) /* else it is known better what is wrong */
        l->trouble = "no answer yet";
    return 0;
}

/* ---- Greeting -------------------------------------------------------------------------------- */

static int hear_greeting(struct due__link *l, int64_t until_ns)
{
    struct redisReply *reply;
    const char *trouble;
    int rc = await_reply(l, &reply, until_ns, &l->greeted_until_ns);

    if (rc != 0)
        return rc == DUE_ESTORE ? 0 : rc;
    rc = due__greeting_judge(&l->greeting, l->greeted, reply, &trouble);
    freeReplyObject(reply);
    if (rc == 0)
        l->greeted++;
    else
        go_down(l, trouble);
    return rc == DUE_EACCES ? rc : 0;
}

static void go_up(struct due__link *l)
{
    l->state = DUE__LINK_UP;
    l->up_ns = due__mono_ns();
    l->answers = 0;
    l->pending = 0;
    count(&l->counts.connects, 1);
}

static int step_greeting(struct due__link *l, int64_t until_ns)
{
    if (l->greeting_sent == l->greeting.bytes.len) {
        if (l->greeted < l->greeting.n)
            return hear_greeting(l, until_ns);
        if (l->taken < l->input.len)
            go_down(l, "the server says more than it was asked");
        else
            go_up(l);
        return 0;
    }
    enum moved moved = transmit(l, &l->greeting.bytes, &l->greeting_sent);

    if (moved == MOVED_CLOSED)
        go_down(l, "the server closed the connection");
    if (moved != MOVED_NONE)
        return 0;
    enum due__wait wait = wait_for(l, POLLOUT, due__ns_first(until_ns, l->greeted_until_ns), true);

    if (wait == DUE__WAIT_READY)
        return 0;
    if (wait == DUE__WAIT_BELL || due__mono_ns() < l->greeted_until_ns)
        return DUE_EAGAIN;
    go_down(l, "no answer in time");
    return 0;
}

int due__link_up(struct due__link *l, bool *fresh, int64_t until_ns)
{
    int rc = 0;

    *fresh = false;
    while (rc == 0 && l->state != DUE__LINK_UP) {
        *fresh = true;
        if (l->state == DUE__LINK_DOWN)
            rc = step_down(l, until_ns);
        else if (l->state == DUE__LINK_CONNECTING)
            rc = step_connecting(l, until_ns);
        else
            rc = step_greeting(l, until_ns);
    }
    if (rc != 0)
        *fresh = false;
    return rc;
}

bool due__link_is_up(const struct due__link *l)
{
    return l->state == DUE__LINK_UP;
}

int due__link_pause(struct due__link *l, int64_t until_ns)
{
    for (;;) {
        /* With answers to come, bytes are no surprise and are left where they are. */
        bool watch = l->state == DUE__LINK_UP && l->pending == 0;
        int fd = l->fd;

        l->fd = watch ? fd : -1;
        enum due__wait wait = wait_for(l, POLLIN, until_ns, true);
        l->fd = fd;
        if (wait != DUE__WAIT_READY)
            return wait == DUE__WAIT_BELL ? DUE_EAGAIN : 0;
        (void)is_quiet(l);
    }
}

void due__link_look(struct due__link *l)
{
    l->looked = l->state == DUE__LINK_UP && is_quiet(l) && l->pending == 0;
}

/* ---- Sending ------------------------------------------------------------------------------- */

/* Wait until more can be sent, and read meanwhile.  As push(). */
static int await_room(struct due__link *l, int64_t until_ns, bool hear)
{
    bool reads = input_room(l);
    short events = (short)(POLLOUT | (reads ? POLLIN : 0));

    l->input.failed = false;
    enum due__wait wait = wait_for(l, events, due__ns_first(until_ns, l->answer_ns), hear);
    if (wait == DUE__WAIT_BELL || (wait == DUE__WAIT_TIME && due__mono_ns() < l->answer_ns))
        return DUE_EAGAIN;
    if (wait == DUE__WAIT_TIME) {
        go_down(l, "the server does not read");
        return DUE_ESTORE;
    }
    if (reads && receive(l) == MOVED_CLOSED) {
        go_down(l, "the server closed the connection");
        return DUE_ESTORE;
    }
    return 0;
}

/* Send what @bytes has behind *@sent.  0: all of it; DUE_EAGAIN: time is up, or interrupted;
 * DUE_ESTORE: the link is down. */
static int push(struct due__link *l, const struct due__bytes *bytes, size_t *sent, int64_t until_ns,
                bool hear)
{
    int rc = 0;

    while (rc == 0 && *sent < bytes->len) {
        size_t before = *sent;
        enum moved moved = transmit(l, bytes, sent);

        if (*sent > before)
            l->answer_ns = due__ns_after(due__mono_ns(), l->limits.answer_ns);
        if (moved == MOVED_CLOSED) {
            go_down(l, "the server closed the connection");
            rc = DUE_ESTORE;
        } else if (moved == MOVED_NONE) {
            rc = await_room(l, until_ns, hear);
        }
    }
    return rc;
}

/* What did not leave in time goes on leaving while the answer is waited for: else what takes longer
 * to send than a call may would never arrive. */
static void keep_rest(struct due__link *l, size_t sent)
{
    l->rest = l->output;
    l->rest_sent = sent;
    l->output = (struct due__bytes){ 0 };
}

static int push_rest(struct due__link *l, int64_t until_ns, bool hear)
{
    int rc = l->rest.len > 0 ? push(l, &l->rest, &l->rest_sent, until_ns, hear) : 0;

    if (rc == 0)
        due__bytes_free(&l->rest);
    return rc;
}

int due__link_send(struct due__link *l, int64_t until_ns)
{
    size_t sent = 0;
    bool failed = l->output.failed;

    assert(l->arguments == 0);
    if (failed || l->state != DUE__LINK_UP) {
        due__link_forget(l);
        return failed ? DUE_ENOMEM : DUE_EAGAIN;
    }
    if (l->output.len == 0)
        return 0;
    if (!l->looked && !is_quiet(l))
        return DUE_EAGAIN;
    l->looked = false;
    int64_t now = due__mono_ns();
    l->answer_ns = due__ns_after(now, l->limits.answer_ns);
    l->awake_ns = l->output.len <= SMALL ? due__ns_after(now, l->limits.spin_ns) : 0;
    int rc = push_rest(l, until_ns, false);
    if (rc == 0)
        rc = push(l, &l->output, &sent, until_ns, false);
    if (rc != 0 && sent == 0)
        go_down(l, "the server does not read");
    if (l->state != DUE__LINK_UP)
        return sent > 0 ? DUE_EINDOUBT : DUE_EAGAIN;
    l->pending += l->formatted;
    l->came = 0;
    if (rc != 0)
        keep_rest(l, sent);
    due__link_forget(l);
    return 0;
}

int due__link_reply(struct due__link *l, struct redisReply **reply, int64_t until_ns)
{
    int rc;

    *reply = NULL;
    if (l->state != DUE__LINK_UP)
        return DUE_ESTORE;
    assert(l->pending > 0);
    rc = push_rest(l, until_ns, true);
    if (rc == 0)
        rc = await_reply(l, reply, until_ns, &l->answer_ns);
    if (rc != 0)
        return rc;
    l->pending--;
    l->answers++;
    l->came = 0;
    l->answer_ns = due__ns_after(due__mono_ns(), l->limits.answer_ns);
    return 0;
}

size_t due__link_pending(const struct due__link *l)
{
    return l->pending;
}

/* ---- The link -------------------------------------------------------------------------------- */

void due__link_interrupt(struct due__link *l)
{
    int kept = errno;
    uint64_t one = 1;

    (void)!write(l->bell, &one, sizeof one);
    errno = kept;
}

void due__link_deafen(struct due__link *l, bool deaf)
{
    l->deaf = deaf;
}

const char *due__link_trouble(const struct due__link *l)
{
    return l->trouble;
}

struct due__link_counts due__link_count(const struct due__link *l)
{
    return (struct due__link_counts){
        .connects = __atomic_load_n(&l->counts.connects, __ATOMIC_RELAXED),
        .bytes_out = __atomic_load_n(&l->counts.bytes_out, __ATOMIC_RELAXED),
        .bytes_in = __atomic_load_n(&l->counts.bytes_in, __ATOMIC_RELAXED),
    };
}

struct due__link *due__link_new(struct due__address *address, const struct due__link_limits *limits,
                                const char *client_name)
{
    struct due__link *l = calloc(1, sizeof *l);

    if (l == NULL) {
        due__address_wipe(address);
        return NULL;
    }
    l->address = *address;
    *address = (struct due__address){ 0 };
    l->limits = *limits;
    l->fd = -1;
    l->trouble = "not connected yet";
    due__backoff_init(&l->backoff, limits->backoff_min_ns, limits->backoff_max_ns,
                      (uint64_t)due__mono_ns() ^ (uint64_t)getpid() << 32);
    l->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->reader = due__reader_new(limits->reply_elements, limits->reply_bytes);
    if (l->bell < 0 || l->reader == NULL ||
        !due__greeting_write(&l->greeting, &l->address, client_name) ||
        !due__bytes_reserve(&l->input, INPUT_ROOM)) {
        due__link_free(l);
        return NULL;
    }
    return l;
}

void due__link_free(struct due__link *l)
{
    if (l == NULL)
        return;
    if (l->fd >= 0)
        close(l->fd);
    if (l->bell >= 0)
        close(l->bell);
    due__targets_free(&l->targets);
    due__greeting_free(&l->greeting);
    due__bytes_free(&l->output);
    due__bytes_free(&l->rest);
    due__bytes_free(&l->input);
    due__reader_free(l->reader);
    due__address_wipe(&l->address);
    free(l);
}
