/* real_redis.c - shared disks whose jobs lie in Redis, with LAB_SHARED=redis.
 *
 * The program has one server, whose clock is turned by hand.  Criterion starts the program once
 * more for each test: they find the server of the first in the environment, and it ends with that
 * one.
 */
#include <fcntl.h>
#include <hiredis.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "due/redis.h"
#include "lab/crew.h"
#include "lab/memory_real.h"
#include "lab/redis/redis_server.h"
#include "record/record.h"

#define SOCKET "LAB_SHARED_REDIS"
#define CLOCK  "LAB_REDIS_CLOCK"

static struct redis_server server; /* of the first, */
static pid_t first;                /* and not of its children */
static _Atomic int64_t *shown_us;  /* one word, alone */
static char clock_path[] = "/tmp/due_clock_XXXXXX";

static redisContext *reached(void)
{
    redisContext *c = redisConnectUnix(getenv(SOCKET));

    CREW_CHECK(c != NULL && c->err == 0, "");
    return c;
}

static redisReply *asked(redisContext *c, redisReply *reply)
{
    CREW_CHECK(reply != NULL && reply->type != REDIS_REPLY_ERROR, ": %s",
               reply != NULL ? reply->str : c->errstr);
    return reply;
}

static void real_turn(int64_t now_ns)
{
    atomic_store(shown_us, now_ns / 1000);
}

static due_store *real_make(void)
{
    due_redis_options options = { DUE_REDIS_OPTIONS_INIT, .backoff_min_ns = DUE_MS(1),
                                  .backoff_max_ns = DUE_MS(20) };
    char url[160];
    due_store *store = NULL;
    due_error error = { .text = "" };

    snprintf(url, sizeof url, "unix://%s", getenv(SOCKET));
    int rc = due_redis_open(&store, url, &options, &error);
    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return store;
}

static void real_full(bool full)
{
    redisContext *c = reached();

    freeReplyObject(asked(c, redisCommand(c, "CONFIG SET maxmemory %d", full ? 1 : 0)));
    redisFree(c);
}

static size_t real_jobs(const char *queue)
{
    redisContext *c = reached();
    redisReply *n = asked(c, redisCommand(c, "HLEN due:{%s}:j", queue));
    size_t jobs = (size_t)n->integer;

    freeReplyObject(n);
    redisFree(c);
    return jobs;
}

static int show(const redisReply *id, const redisReply *job, const redisReply *entry,
                due_store_visit *visit, void *ctx)
{
    struct due__record_room room;
    due_record record = { .deadline_ns = 0 };

    memcpy(record.id.byte, id->str, DUE_STORE_ID_BYTES);
    CREW_CHECK(due__record_read(&record, &room, job->str, job->len) == 0, "");
    if (entry->type == REDIS_REPLY_STRING)
        CREW_CHECK(due__entry_read(&record, &room, entry->str, entry->len) == 0, "");
    return visit(ctx, &record);
}

static int real_each(const char *queue, due_store_visit *visit, void *ctx)
{
    redisContext *c = reached();
    redisReply *all = asked(c, redisCommand(c, "HGETALL due:{%s}:j", queue));
    int rc = 0;

    for (size_t i = 0; i + 1 < all->elements && rc == 0; i += 2) {
        const redisReply *id = all->element[i];
        redisReply *entry =
            asked(c, redisCommand(c, "HGET due:{%s}:a %b", queue, id->str, id->len));

        rc = show(id, all->element[i + 1], entry, visit, ctx);
        freeReplyObject(entry);
    }
    freeReplyObject(all);
    redisFree(c);
    return rc;
}

/* The keys of one test at a time. */
static void real_remove(const char *queue)
{
    redisContext *c = reached();

    (void)queue;
    freeReplyObject(asked(c, redisCommand(c, "FLUSHALL")));
    redisFree(c);
}

static const struct memory_real_maker real_redis = { .name = "redis",
                                                     .turn = real_turn,
                                                     .make = real_make,
                                                     .full = real_full,
                                                     .jobs = real_jobs,
                                                     .each = real_each,
                                                     .remove = real_remove };

/* ---- The server ---- */

static void real_end(void)
{
    if (getpid() != first)
        return;
    redis_server_stop(&server);
    unlink(clock_path);
}

/* Its clock shows what it is told to show. */
static bool turns(void)
{
    redisContext *c = reached();

    real_turn(DUE_S(1234));
    redisReply *now = asked(c, redisCommand(c, "TIME"));
    bool turned = strcmp(now->element[0]->str, "1234") == 0;
    freeReplyObject(now);
    redisFree(c);
    return turned;
}

static void map_clock(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    CREW_CHECK(fd >= 0, ": %s", path);
    shown_us = mmap(NULL, sizeof *shown_us, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CREW_CHECK(shown_us != MAP_FAILED, "");
    close(fd);
}

static void serve(void)
{
    int fd = mkstemp(clock_path);

    CREW_CHECK(fd >= 0 && ftruncate(fd, sizeof *shown_us) == 0, "");
    close(fd);
    setenv(CLOCK, clock_path, 1);
    map_clock(clock_path);
    setenv("LD_PRELOAD", REDIS_CLOCK, 1);
    int rc = redis_server_start(&server, NULL);
    unsetenv("LD_PRELOAD");
    if (rc == REDIS_SERVER_MISSING) {
        unlink(clock_path);
        _Exit(rc);
    }
    CREW_CHECK(rc == 0, ": the server does not start");
    first = getpid();
    setenv(SOCKET, server.socket, 1);
    atexit(real_end);
    if (!turns()) {
        printf("the clock of redis-server cannot be turned here\n");
        real_end();
        _Exit(REDIS_SERVER_MISSING);
    }
}

__attribute__((constructor)) static void real_begin(void)
{
    const char *wanted = getenv("LAB_SHARED");

    memory_real_offer(&real_redis);
    if (wanted == NULL || strcmp(wanted, "redis") != 0)
        return;
    if (getenv(SOCKET) == NULL)
        serve();
    else
        map_clock(getenv(CLOCK));
}
