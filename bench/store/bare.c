/* bare.c - the same bytes as the store's, over a plain blocking socket. */
#include "bare.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ID     14
#define HEAD   12
#define RECORD (HEAD + 4096)

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct bare bare_open(const char *socket_path)
{
    struct bare b = { .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .seed = 1 };
    struct sockaddr_un to = { .sun_family = AF_UNIX };

    snprintf(to.sun_path, sizeof to.sun_path, "%s", socket_path);
    if (b.fd < 0 || connect(b.fd, (const struct sockaddr *)&to, sizeof to) != 0)
        die("connect");
    b.room = 1 << 20;
    b.out = malloc(b.room);
    if (b.out == NULL)
        die("malloc");
    return b;
}

void bare_close(struct bare *b)
{
    close(b->fd);
    free(b->out);
}

/* ---- Bytes ---- */

static void raw(struct bare *b, const void *bytes, size_t n)
{
    if (b->len + n > b->room) {
        b->room = 2 * (b->len + n);
        b->out = realloc(b->out, b->room);
        if (b->out == NULL)
            die("realloc");
    }
    memcpy(b->out + b->len, bytes, n);
    b->len += n;
}

static void text(struct bare *b, const char *format, ...)
{
    char line[256];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    raw(b, line, (size_t)n);
}

static void word(struct bare *b, const void *bytes, size_t n)
{
    text(b, "$%zu\r\n", n);
    raw(b, bytes, n);
    raw(b, "\r\n", 2);
}

static void words(struct bare *b, size_t n, const char *name, const char *key)
{
    text(b, "*%zu\r\n", n);
    word(b, name, strlen(name));
    word(b, key, strlen(key));
}

static void send_all(struct bare *b)
{
    size_t sent = 0;

    while (sent < b->len) {
        ssize_t n = send(b->fd, b->out + sent, b->len - sent, MSG_NOSIGNAL);
        if (n <= 0)
            die("send");
        sent += (size_t)n;
    }
    b->len = 0;
}

static void skip(struct bare *b, size_t bytes)
{
    char in[65536];

    while (bytes > 0) {
        ssize_t n = recv(b->fd, in, bytes < sizeof in ? bytes : sizeof in, 0);
        if (n <= 0)
            die("recv");
        bytes -= (size_t)n;
    }
}

static void id_of(uint64_t sequence, unsigned char id[ID])
{
    memset(id, 0, ID);
    id[0] = 255;
    for (int i = 0; i < 8; i++)
        id[ID - 1 - i] = (unsigned char)(sequence >> (8 * i));
}

static uint64_t random_score(struct bare *b)
{
    b->seed = b->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return UINT64_C(1790000000000000) + (b->seed >> 30);
}

/* ---- Writing ---- */

/* MULTI, HSET, ZADD, EXEC; answers the bytes of the reply.  @numbered: also the batch's number, as
 * the store writes it. */
static size_t put_batch(struct bare *b, size_t n, size_t payload, int numbered)
{
    static unsigned char record[RECORD];
    unsigned char id[ID];
    char reply[128];

    text(b, "*1\r\n$5\r\nMULTI\r\n");
    words(b, 2 + 2 * n, "HSET", "due:{bare}:j");
    for (size_t i = 0; i < n; i++) {
        id_of(b->sequence + i, id);
        word(b, id, ID);
        word(b, record, HEAD + payload);
    }
    words(b, 2 + 2 * n, "ZADD", "due:{bare}:t:");
    for (size_t i = 0; i < n; i++) {
        char score[32];
        int len = snprintf(score, sizeof score, "%llu", (unsigned long long)random_score(b));

        word(b, score, (size_t)len);
        id_of(b->sequence + i, id);
        word(b, id, ID);
    }
    if (numbered) {
        char number[24];
        int len = snprintf(number, sizeof number, "%llu", (unsigned long long)b->sequence);

        words(b, 4, "HSET", "due:{bare}:writers");
        word(b, "1790000000000", 13);
        word(b, number, (size_t)len);
    }
    text(b, "*1\r\n$4\r\nEXEC\r\n");
    b->sequence += n;
    int first = numbered && b->sequence == n;
    int len =
        snprintf(reply, sizeof reply, "+OK\r\n+QUEUED\r\n+QUEUED\r\n%s*%d\r\n:%zu\r\n:%zu\r\n%s",
                 numbered ? "+QUEUED\r\n" : "", numbered ? 3 : 2, n, n,
                 !numbered ? ""
                 : first   ? ":1\r\n"
                           : ":0\r\n");
    return (size_t)len;
}

double bare_put(struct bare *b, size_t jobs, size_t batch, size_t payload)
{
    double begin = now();
    size_t behind = 0;

    for (size_t at = 0; at < jobs; at += batch) {
        size_t reply = put_batch(b, batch, payload, 0);

        send_all(b);
        skip(b, behind);
        behind = reply;
    }
    skip(b, behind);
    return now() - begin;
}

double bare_drop(struct bare *b, size_t jobs, size_t batch)
{
    double begin = now();
    uint64_t sequence = 0;
    size_t behind = 0;
    unsigned char id[ID];
    char reply[128];

    for (size_t at = 0; at < jobs; at += batch) {
        text(b, "*1\r\n$5\r\nMULTI\r\n");
        for (int both = 0; both < 2; both++) {
            words(b, 2 + batch, both ? "HDEL" : "ZREM", both ? "due:{bare}:j" : "due:{bare}:t:");
            for (size_t i = 0; i < batch; i++) {
                id_of(sequence + i, id);
                word(b, id, ID);
            }
        }
        text(b, "*1\r\n$4\r\nEXEC\r\n");
        sequence += batch;
        send_all(b);
        skip(b, behind);
        behind =
            (size_t)snprintf(reply, sizeof reply,
                             "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:%zu\r\n:%zu\r\n", batch, batch);
    }
    skip(b, behind);
    return now() - begin;
}

double bare_round_trip(struct bare *b, size_t jobs, size_t payload)
{
    static const char tail[] = "*2\r\n$5\r\nWATCH\r\n$16\r\ndue:{bare}:fence\r\n"
                               "*2\r\n$3\r\nGET\r\n$16\r\ndue:{bare}:fence\r\n";
    static const char tail_reply[] = "+OK\r\n$-1\r\n";
    double begin = now();

    for (size_t i = 0; i < jobs; i++) {
        size_t reply = put_batch(b, 1, payload, 1);

        raw(b, tail, sizeof tail - 1);
        send_all(b);
        skip(b, reply + sizeof tail_reply - 1);
    }
    return now() - begin;
}

/* ---- Reading ---- */

/* One line of a reply, without its end. */
struct reader {
    int fd;
    char in[1 << 17];
    size_t at;
    size_t end;
};

static char next_byte(struct reader *r)
{
    if (r->at == r->end) {
        ssize_t n = recv(r->fd, r->in, sizeof r->in, 0);
        if (n <= 0)
            die("recv");
        r->at = 0;
        r->end = (size_t)n;
    }
    return r->in[r->at++];
}

static long head(struct reader *r)
{
    char line[64];
    size_t n = 0;
    char c;

    next_byte(r);
    while ((c = next_byte(r)) != '\n') {
        if (n < sizeof line - 1)
            line[n++] = c;
    }
    line[n] = '\0';
    return strtol(line, NULL, 10);
}

/* A bulk string, into @into if it has that length. */
static void bulk(struct reader *r, unsigned char *into, size_t want)
{
    long n = head(r);

    for (long i = 0; i < n; i++) {
        char c = next_byte(r);
        if (into != NULL && (size_t)n == want)
            into[i] = (unsigned char)c;
    }
    if (n >= 0) {
        next_byte(r);
        next_byte(r);
    }
}

static void ask_page(struct bare *b, const char *key, size_t from, size_t page)
{
    char first[32];
    char last[32];

    snprintf(first, sizeof first, "%zu", from);
    snprintf(last, sizeof last, "%zu", from + page - 1);
    words(b, 5, "ZRANGE", key);
    word(b, first, strlen(first));
    word(b, last, strlen(last));
    word(b, "WITHSCORES", 10);
}

double bare_read(struct bare *b, const char *queue, size_t jobs, size_t page)
{
    struct reader *r = calloc(1, sizeof *r);
    unsigned char(*id)[ID] = calloc(page, sizeof *id);
    char topic[128];
    char hash[128];
    double begin = now();

    if (r == NULL || id == NULL)
        die("calloc");
    r->fd = b->fd;
    snprintf(topic, sizeof topic, "due:{%s}:t:", queue);
    snprintf(hash, sizeof hash, "due:{%s}:j", queue);
    ask_page(b, topic, 0, page);
    send_all(b);
    for (size_t at = 0; at < jobs; at += page) {
        size_t n = (size_t)head(r) / 2;

        for (size_t i = 0; i < n; i++) {
            bulk(r, id[i], ID);
            bulk(r, NULL, 0);
        }
        words(b, 2 + n, "HMGET", hash);
        for (size_t i = 0; i < n; i++)
            word(b, id[i], ID);
        if (at + page < jobs)
            ask_page(b, topic, at + page, page);
        send_all(b);
        for (long records = head(r); records > 0; records--)
            bulk(r, NULL, 0);
    }
    free(id);
    free(r);
    return now() - begin;
}
