/* subject_beanstalkd.c - beanstalkd with a log, which it brings to the disk every 50 ms, as it does
 * where it is told nothing else.
 *
 * Each thread has a connection.  A batch is that many requests sent before the first answer is
 * read, which most of its clients cannot do.  Delays are whole seconds there, so ours are rounded
 * up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beanstalkd.h"
#include "beanstalkd_wire.h"
#include "shared_cell.h"

#define SYNC_MS 50

static struct beanstalkd server;
static char folder[240]; /* of its log, on a disk */

struct client {
    const struct shared_options *o;
    unsigned threads;
    struct one {
        struct wire wire;
        unsigned long long id[SHARED_BATCH]; /* taken, and not acked */
        size_t n;
    } one[];
};

static void stop(void)
{
    beanstalkd_stop(&server);
    (void)rmdir(folder);
}

static void start(void)
{
    const char *where = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%.100s/due-bench-XXXXXX", where != NULL ? where : "/var/tmp");
    if (mkdtemp(folder) == NULL)
        shared_die(SHARED_WRONG, "no folder for its log");
    if (!beanstalkd_start(&server, folder, SYNC_MS)) {
        (void)rmdir(folder);
        shared_die(SHARED_CANNOT, "beanstalkd is not installed");
    }
}

static pid_t server_pid(void)
{
    return server.pid;
}

static void *open_client(const struct shared_options *o, unsigned threads, bool puts)
{
    struct client *c = calloc(1, sizeof *c + threads * sizeof *c->one);

    (void)puts;
    if (c == NULL)
        shared_die(SHARED_WRONG, "no memory");
    c->o = o;
    c->threads = threads;
    for (unsigned i = 0; i < threads; i++)
        wire_open(&c->one[i].wire, server.socket, SHARED_BATCH * (o->payload + 64));
    return c;
}

static void close_client(void *client)
{
    struct client *c = client;

    for (unsigned i = 0; i < c->threads; i++)
        wire_close(&c->one[i].wire);
    free(c);
}

/* A request without a body. */
static void ask(struct wire *w, const char *verb, unsigned long long number)
{
    w->out_len += (size_t)sprintf(w->out + w->out_len, "%s %llu\r\n", verb, number);
}

static void put(void *client, unsigned thread, const struct shared_job *jobs, size_t n)
{
    struct client *c = client;
    struct wire *w = &c->one[thread].wire;
    char line[WIRE_LINE];

    for (size_t i = 0; i < n; i++) {
        long long delay_s = (jobs[i].delay_ns + SHARED_S - 1) / SHARED_S;

        w->out_len +=
            (size_t)sprintf(w->out + w->out_len, "put 0 %lld 600 %zu\r\n", delay_s, c->o->payload);
        shared_payload(c->o, jobs[i].number, (unsigned char *)w->out + w->out_len);
        memcpy(w->out + w->out_len + c->o->payload, "\r\n", 2);
        w->out_len += c->o->payload + 2;
    }
    wire_send(w);
    for (size_t i = 0; i < n; i++)
        wire_expect(w, line, "INSERTED");
}

/* The first waits a second, the others not at all. */
static size_t take(void *client, unsigned thread, struct shared_job *jobs)
{
    struct client *c = client;
    struct one *one = &c->one[thread];
    size_t most = c->o->batch > 0 ? c->o->batch : 1;
    char bytes[SHARED_PAYLOAD + 2];
    char line[WIRE_LINE];

    one->n = 0;
    for (size_t i = 0; i < most; i++)
        ask(&one->wire, "reserve-with-timeout", i == 0 ? 1 : 0);
    wire_send(&one->wire);
    for (size_t i = 0; i < most; i++) {
        size_t len = 0;

        wire_line(&one->wire, line);
        if (strcmp(line, "TIMED_OUT") == 0)
            continue;
        if (sscanf(line, "RESERVED %llu %zu", &one->id[one->n], &len) != 2 || len > SHARED_PAYLOAD)
            wire_fail(line);
        wire_bytes(&one->wire, bytes, len + 2);
        jobs[one->n++] = shared_read(c->o, bytes, len);
    }
    return one->n;
}

static void done(void *client, unsigned thread)
{
    struct one *one = &((struct client *)client)->one[thread];
    char line[WIRE_LINE];

    for (size_t i = 0; i < one->n; i++)
        ask(&one->wire, "delete", one->id[i]);
    wire_send(&one->wire);
    for (size_t i = 0; i < one->n; i++)
        wire_expect(&one->wire, line, "DELETED");
}

static uint64_t figure(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    if (at == NULL)
        wire_fail("its figures are not there");
    return strtoull(at + strlen(name), NULL, 10);
}

/* A text of a known length: name: number, line by line. */
static struct shared_count count(void *client)
{
    struct wire *w = &((struct client *)client)->one[0].wire;
    char line[WIRE_LINE];

    w->out_len = (size_t)sprintf(w->out, "stats\r\n");
    wire_send(w);
    wire_expect(w, line, "OK ");
    size_t len = strtoull(line + 3, NULL, 10);
    char *text = calloc(1, len + 3);
    if (text == NULL)
        wire_fail("no memory");
    wire_bytes(w, text, len + 2);
    struct shared_count found = { figure(text, "current-jobs-delayed: "),
                                  figure(text, "current-jobs-ready: ") +
                                      figure(text, "current-jobs-reserved: ") };
    free(text);
    return found;
}

const struct shared_subject shared_beanstalkd = { .name = "beanstalkd",
                                                  .about = "beanstalkd with its log",
                                                  .start = start,
                                                  .stop = stop,
                                                  .server = server_pid,
                                                  .open = open_client,
                                                  .close = close_client,
                                                  .put = put,
                                                  .take = take,
                                                  .done = done,
                                                  .count = count };
