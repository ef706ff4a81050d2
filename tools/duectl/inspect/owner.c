/* owner.c - an owner is asked on its control socket: one request, and its answer. */
#define _GNU_SOURCE
#include "inspect/owner.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MS 60000 /* without a byte, then it is given up */
#define CHUNK     ((size_t)1 << 16)

void ctl_owner_begin(struct due__ctl_request *r, const struct ctl_look *look,
                     enum due__ctl_verb verb)
{
    due__ctl_request_begin(r, verb);
    if (look->top.named)
        memcpy(r->queue, look->queue, strlen(look->queue) + 1);
}

/* ---- A line ---------------------------------------------------------------------------------- */

/* true, null, -1.5e9 */
static bool pass_word(struct due__ctl_json *j)
{
    static const char signs[] = "abcdefghijklmnopqrstuvwxyzE0123456789+-.";
    size_t from = j->at;

    while (j->at < j->len && memchr(signs, j->line[j->at], sizeof signs - 1) != NULL)
        j->at++;
    return j->at > from || due__ctl_json_fault(j, "expected a value");
}

/* Whatever it is: what is inside of it is only told apart from its end. */
bool ctl_owner_pass(struct due__ctl_json *j)
{
    size_t depth = 0;
    char *text;
    size_t len;

    do {
        if (due__ctl_json_is(j, '{') || due__ctl_json_is(j, '[')) {
            depth++;
        } else if (depth > 0 && (due__ctl_json_is(j, '}') || due__ctl_json_is(j, ']'))) {
            depth--;
        } else if (depth > 0 && (due__ctl_json_is(j, ',') || due__ctl_json_is(j, ':'))) {
            continue;
        } else if (j->at < j->len && j->line[j->at] == '"') {
            if (!due__ctl_json_string(j, &text, &len))
                return false;
        } else if (!pass_word(j)) {
            return false;
        }
    } while (depth > 0);
    return true;
}

bool ctl_owner_line(char *line, size_t len, ctl_field_take *take, void *ctx)
{
    struct due__ctl_json j = { .line = line, .len = len };
    char *name;
    size_t n;

    if (!due__ctl_json_sign(&j, '{'))
        return false;
    do {
        if (!due__ctl_json_string(&j, &name, &n) || !due__ctl_json_sign(&j, ':') ||
            !take(ctx, &j, name, n))
            return false;
    } while (due__ctl_json_is(&j, ','));
    return due__ctl_json_sign(&j, '}') && due__ctl_json_end(&j);
}

struct text {
    const char *name;
    char *text;
    size_t len;
};

static bool take_text(void *ctx, struct due__ctl_json *j, const char *name, size_t len)
{
    struct text *t = ctx;

    return due__ctl_is_word(t->name, name, len) ? due__ctl_json_bytes(j, &t->text, &t->len)
                                                : ctl_owner_pass(j);
}

bool ctl_owner_text(char *line, size_t len, const char *name, char **text, size_t *text_len)
{
    struct text t = { .name = name };
    bool fine = ctl_owner_line(line, len, take_text, &t) && t.text != NULL;

    *text = t.text;
    *text_len = t.len;
    return fine;
}

/* ---- One request ----------------------------------------------------------------------------- */

static int said(const char *path, const char *why)
{
    fprintf(stderr, "duectl: %s: %s\n", path, why);
    return DUE_ESTORE;
}

int ctl_owner_senseless(const char *path)
{
    return said(path, "an answer that makes no sense");
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

int ctl_owner_reach(const char *path)
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
static bool send_request(int fd, const struct due__ctl_buffer *line,
                         const struct due__ctl_request *r)
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
        char *name;
        size_t n;

        a->ended = true;
        return ctl_owner_text(line, len, "end", &name, &n) && due__ctl_error_of(name, n, &a->code);
    }
    if (len >= sizeof fault && memcmp(line, fault, sizeof fault - 1) == 0) {
        fprintf(stderr, "duectl: the owner says: %s\n",
                ctl_text_show(shown, sizeof shown, line, len));
        return true;
    }
    return a->take == NULL || a->take(a->ctx, line, len);
}

/* Take the whole lines out of the buffer. */
static bool take_lines(struct answer *a, struct due__ctl_buffer *b)
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
static const char *read_answer(int fd, struct answer *a, struct due__ctl_buffer *b)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };

    while (!a->ended) {
        int n = poll(&ready, 1, ANSWER_MS);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return "no answer";
        if (b->len > DUE__CTL_ANSWER_MAX || !due__ctl_buffer_grow(b, CHUNK))
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

int ctl_owner_ask(const char *path, const struct due__ctl_request *request, ctl_answer_take *take,
                  void *ctx)
{
    struct answer a = { .take = take, .ctx = ctx };
    struct due__ctl_buffer b = { 0 };
    int fd = connect_to(path);

    if (fd < 0)
        return fd;
    due__ctl_request_write(&b, request);
    bool sent = send_request(fd, &b, request);
    b.len = 0;
    const char *wrong = read_answer(fd, &a, &b); /* it may be why not all was taken */
    if (wrong != NULL && !sent)
        wrong = "the request cannot be sent";
    close(fd);
    due__ctl_buffer_free(&b);
    return wrong == NULL ? a.code : said(path, wrong);
}
