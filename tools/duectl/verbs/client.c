/* client.c - a queue that is changed by its owner, who is asked on its control socket. */
#define _GNU_SOURCE
#include "verbs/control.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MS 60000 /* without a byte, then it is given up */
#define ROOM_MS   100   /* until an owner that had no room is asked again */
#define CHUNK     ((size_t)1 << 16)

/* ---- One request ----------------------------------------------------------------------------- */

static int said(const char *path, const char *why)
{
    fprintf(stderr, "duectl: %s: %s\n", path, why);
    return DUE_ESTORE;
}

/* A descriptor, or an error: said. */
static int connect_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd;

    if (strlen(path) >= sizeof address.sun_path)
        return said(path, "the path of a socket is shorter than 108 bytes");
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return said(path, strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ .tv_sec = ANSWER_MS / 1000 },
                     sizeof(struct timeval));
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int error = errno;
    close(fd);
    return said(path, error == ECONNREFUSED ? "its owner is gone" : strerror(error));
}

int ctl_control_reach(const char *path)
{
    int fd = connect_to(path);

    if (fd < 0)
        return CTL_BROKEN;
    close(fd);
    return 0;
}

static bool send_all(int fd, const void *bytes, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = send(fd, (const char *)bytes + done, len - done, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR)
            return false;
        done += n < 0 ? 0 : (size_t)n;
    }
    return true;
}

/* The line, and the payloads. */
static bool send_request(int fd, const struct ctl_buffer *line, const struct ctl_request *r)
{
    bool fine = !line->failed && send_all(fd, line->bytes, line->len);

    for (size_t i = 0; i < r->jobs && fine; i++)
        fine = send_all(fd, r->specs[i].data, r->specs[i].len);
    return fine;
}

struct answer {
    ctl_answer_take *take;
    void *ctx;
    int code; /* at its end */
    bool ended;
};

/* What is wrong with a request is for people; the end has a code. */
static bool take_line(struct answer *a, char *line, size_t len)
{
    static const char end[] = "{\"end\":\"";
    static const char fault[] = "{\"fault\":\"";
    char shown[200];

    if (len >= sizeof end + 2 && memcmp(line, end, sizeof end - 1) == 0) {
        a->ended = true;
        return ctl_error_of(line + sizeof end - 1, len - (sizeof end - 1) - 2, &a->code);
    }
    if (len >= sizeof fault && memcmp(line, fault, sizeof fault - 1) == 0) {
        fprintf(stderr, "duectl: the owner says: %s\n",
                ctl_text_show(shown, sizeof shown, line, len));
        return true;
    }
    return a->take == NULL || a->take(a->ctx, line, len);
}

/* Take the whole lines out of the buffer. */
static bool take_lines(struct answer *a, struct ctl_buffer *b)
{
    size_t at = 0;
    char *end;

    while (!a->ended && (end = memchr(b->bytes + at, '\n', b->len - at)) != NULL) {
        if (!take_line(a, b->bytes + at, (size_t)(end - b->bytes) - at))
            return false;
        at = (size_t)(end - b->bytes) + 1;
    }
    b->len -= at;
    memmove(b->bytes, b->bytes + at, b->len);
    return true;
}

/* NULL, or what is wrong. */
static const char *read_answer(int fd, struct answer *a, struct ctl_buffer *b)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };

    while (!a->ended) {
        int n = poll(&ready, 1, ANSWER_MS);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return "no answer";
        if (b->len > CTL_ANSWER_MAX || !ctl_buffer_grow(b, CHUNK))
            return "the answer is too long";
        ssize_t len = recv(fd, b->bytes + b->len, CHUNK, 0);
        if (len == 0 || (len < 0 && errno != EINTR))
            return "the answer was cut off";
        b->len += len < 0 ? 0 : (size_t)len;
        if (!take_lines(a, b))
            return "an answer that makes no sense";
    }
    return NULL;
}

int ctl_control_ask(const char *path, const struct ctl_request *request, ctl_answer_take *take,
                    void *ctx)
{
    struct answer a = { .take = take, .ctx = ctx };
    struct ctl_buffer b = { 0 };
    int fd = connect_to(path);

    if (fd < 0)
        return fd;
    ctl_request_write(&b, request);
    bool sent = send_request(fd, &b, request);
    b.len = 0;
    const char *wrong = read_answer(fd, &a, &b); /* it may be why not all was taken */
    if (wrong != NULL && !sent)
        wrong = "the request cannot be sent";
    close(fd);
    ctl_buffer_free(&b);
    return wrong == NULL ? a.code : said(path, wrong);
}

/* ---- The verbs of a queue that is asked for -------------------------------------------------- */

struct results {
    const struct ctl_request *request;
    int *results;
    size_t n;
};

/* {"id":"ff00...","result":"DUE_OK"}, in the order of the request. */
static bool take_result(void *ctx, char *line, size_t len)
{
    static const char between[] = "\",\"result\":\"";
    struct results *r = ctx;
    size_t head = 7 + DUE_ID_TEXT - 1 + sizeof between - 1;
    char id[DUE_ID_TEXT];

    if (r->n == r->request->n || len < head + 2 || memcmp(line, "{\"id\":\"", 7) != 0)
        return false;
    due_id_format(r->request->ids[r->n], id);
    return memcmp(line + 7, id, DUE_ID_TEXT - 1) == 0 &&
           memcmp(line + 7 + DUE_ID_TEXT - 1, between, sizeof between - 1) == 0 &&
           ctl_error_of(line + head, len - head - 2, &r->results[r->n++]);
}

static int ask_ids(struct ctl_access *a, enum ctl_request_verb verb, const due_id *ids, size_t n,
                   int64_t at_ns, int *results)
{
    struct ctl_request request = { .verb = verb, .at_ns = at_ns, .n = n };
    struct results got = { .request = &request, .results = results };

    memcpy(request.ids, ids, n * sizeof *ids);
    int rc = ctl_control_ask(a->look->control, &request, take_result, &got);
    return rc == 0 && got.n < n ? said(a->look->control, "an answer that makes no sense") : rc;
}

static int asked_cancel(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    return ask_ids(a, CTL_ASK_CANCEL, ids, n, -1, results);
}

static int asked_kick(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    return ask_ids(a, CTL_ASK_KICK, ids, n, -1, results);
}

static int asked_drop(struct ctl_access *a, const due_id *ids, size_t n, int *results)
{
    return ask_ids(a, CTL_ASK_DROP, ids, n, -1, results);
}

static int asked_move(struct ctl_access *a, const due_id *ids, size_t n, int64_t at_ns,
                      int *results)
{
    return ask_ids(a, CTL_ASK_RESCHEDULE, ids, n, at_ns, results);
}

/* {"count":3} */
static bool take_count(void *ctx, char *line, size_t len)
{
    static const char head[] = "{\"count\":";
    struct ctl_json j = { .line = line, .len = len, .at = sizeof head - 1 };
    int64_t value;

    if (len < sizeof head || memcmp(line, head, sizeof head - 1) != 0 ||
        !ctl_json_number(&j, DUE_FOREVER, &value) || !ctl_json_sign(&j, '}'))
        return false;
    *(uint64_t *)ctx = (uint64_t)value;
    return true;
}

static int ask_all(struct ctl_access *a, enum ctl_request_verb verb, const char *topic,
                   uint64_t *count)
{
    struct ctl_request request = { .verb = verb, .at_ns = -1, .has_topic = topic != NULL };

    if (topic != NULL)
        memcpy(request.topic, topic, strlen(topic) + 1);
    return ctl_control_ask(a->look->control, &request, take_count, count);
}

static int asked_kick_all(struct ctl_access *a, const char *topic, uint64_t *count)
{
    return ask_all(a, CTL_ASK_KICK_ALL, topic, count);
}

static int asked_drop_all(struct ctl_access *a, const char *topic, uint64_t *count)
{
    return ask_all(a, CTL_ASK_DROP_ALL, topic, count);
}

static int asked_clear(struct ctl_access *a, const char *topic, uint64_t *count)
{
    return ask_all(a, CTL_ASK_CLEAR, topic, count);
}

static int asked_pause(struct ctl_access *a, const char *topic)
{
    uint64_t count;

    return ask_all(a, CTL_ASK_PAUSE, topic, &count);
}

static int asked_resume(struct ctl_access *a, const char *topic)
{
    uint64_t count;

    return ask_all(a, CTL_ASK_RESUME, topic, &count);
}

/* ---- Jobs that are put in -------------------------------------------------------------------- */

struct put_answers {
    due_id *ids;
    int *results;
    size_t n, most;
};

/* {"id":"ff00...","result":"DUE_OK"}: its own, or of the one that has its key. */
static bool take_put(void *ctx, char *line, size_t len)
{
    struct put_answers *p = ctx;
    struct ctl_json j = { .line = line, .len = len };
    char id[DUE_ID_TEXT] = "";
    char *name, *text;
    size_t n;

    if (p->n == p->most || !ctl_json_sign(&j, '{') || !ctl_json_string(&j, &name, &n) ||
        !ctl_json_sign(&j, ':') || !ctl_json_string(&j, &text, &n) || n != sizeof id - 1)
        return false;
    memcpy(id, text, n);
    if (due_id_parse(id, &p->ids[p->n]) != 0 || !ctl_json_is(&j, ',') ||
        !ctl_json_string(&j, &name, &n) || !ctl_json_sign(&j, ':') ||
        !ctl_json_string(&j, &text, &n) || !ctl_error_of(text, n, &p->results[p->n]))
        return false;
    p->n++;
    return true;
}

/* As many as go into one request: one at least. */
static size_t some_of(const due_spec *specs, size_t n)
{
    size_t bytes = specs[0].len;
    size_t some = 1;

    while (some < n && some < CTL_ASKED && bytes + specs[some].len <= CTL_PUT_BYTES)
        bytes += specs[some++].len;
    return some;
}

/* The answers are counted in @p, also where it fails. */
static int ask_put(struct ctl_access *a, const char *topic, const due_spec *specs, size_t n,
                   struct put_answers *p)
{
    struct ctl_request request = { .verb = CTL_ASK_PUT, .at_ns = -1, .has_topic = true, .jobs = n };

    memcpy(request.topic, topic, strlen(topic) + 1);
    memcpy(request.specs, specs, n * sizeof *specs);
    p->most = p->n + n;
    int rc = ctl_control_ask(a->look->control, &request, take_put, p);
    return rc == 0 && p->n < p->most ? said(a->look->control, "an answer that makes no sense") : rc;
}

/* The owner has no room now.  False: it is to stop. */
static bool wait_for_room(struct ctl_access *a)
{
    struct pollfd stop = { .fd = a->stop_fd > 0 ? a->stop_fd : -1, .events = POLLIN };

    return poll(&stop, 1, ROOM_MS) <= 0;
}

/* Who waits for room is here: the owner is asked again. */
static int asked_put(struct ctl_access *a, const char *topic, due_spec *specs, size_t n,
                     due_id *ids, int *results)
{
    struct put_answers p = { .ids = ids, .results = results };

    while (p.n < n) {
        int rc =
            ask_put(a, topic == NULL ? "" : topic, specs + p.n, some_of(specs + p.n, n - p.n), &p);

        if (rc == DUE_EAGAIN || rc == DUE_ETIMEDOUT) {
            if (!wait_for_room(a))
                return DUE_ETIMEDOUT;
        } else if (rc == DUE_ENOTSUP) {
            while (p.n < n)
                results[p.n++] = rc;
        } else if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int asked_close(struct ctl_access *a)
{
    (void)a;
    return 0;
}

const struct ctl_access_verbs ctl_asked_verbs = {
    .put = asked_put,
    .cancel = asked_cancel,
    .kick = asked_kick,
    .drop = asked_drop,
    .move = asked_move,
    .kick_all = asked_kick_all,
    .drop_all = asked_drop_all,
    .clear = asked_clear,
    .pause = asked_pause,
    .resume = asked_resume,
    .close = asked_close,
};
