/* redis_workers.c - a pool over a queue with a store: what was acked is gone, what was not comes
 * again, also when a handler takes its whole process with it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crew.h"
#include "due/redis.h"
#include "due/workers.h"
#include "redis_server.h"

enum { JOBS = 3000, DEADLY = 7 };

struct world {
    atomic_uint done;
    atomic_uint again; /* handed out for the second time */
    atomic_uchar seen[JOBS];
    bool crashes; /* the handler of the deadly job does */
};

static due_queue *open_queue(const struct redis_server *server)
{
    due_options options = { DUE_OPTIONS_INIT, .name = "pool" };
    due_error error = { "", "" };
    due_queue *q;
    int rc = due_redis_open(&options.store, server->url, NULL, &error);

    CREW_CHECK(rc == 0, ": %s", error.text);
    rc = due_open(&q, &options, &error);
    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return q;
}

static void put(due_queue *q, uint32_t first, uint32_t end)
{
    for (uint32_t at = first; at < end;) {
        due_spec specs[100];
        uint32_t numbers[100];
        size_t n = 0;

        for (; n < 100 && at + n < end; n++) {
            numbers[n] = at + (uint32_t)n;
            specs[n] = (due_spec){ DUE_SPEC_INIT, .data = &numbers[n], .len = sizeof numbers[n] };
        }
        int rc = due_enqueue_batch(q, specs, n, DUE_FOREVER, NULL);
        CREW_CHECK(rc > 0, ": %s", due_error_name(rc));
        at += (uint32_t)rc;
    }
}

static due_answer handle(void *ctx, const due_job *job)
{
    struct world *w = ctx;
    uint32_t number;

    memcpy(&number, job->data, sizeof number);
    if (w->crashes && number == DEADLY)
        raise(SIGKILL);
    if (job->attempts == 1 && number % 50 == 1)
        return due_try_again_in(DUE_MS(1));
    atomic_fetch_add(&w->again, job->attempts > 1);
    unsigned before = atomic_fetch_add(&w->seen[number], 1);
    CREW_CHECK(before == 0, ": job %u was done %u times", number, before + 1);
    atomic_fetch_add(&w->done, 1);
    return due_done();
}

static due_workers *start(due_queue *q, struct world *w, size_t threads)
{
    due_workers *pool;
    int rc = due_workers_start(&pool, q, NULL, 0, threads, handle, w, NULL);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return pool;
}

static void end(due_queue *q, due_workers *pool, enum due_close_mode mode)
{
    int rc = due_workers_stop(pool, mode == DUE_CLOSE_DRAIN ? 0 : DUE_FOREVER);

    CREW_CHECK(rc == 0 || rc == DUE_EAGAIN, ": %s", due_error_name(rc));
    rc = due_close(q, mode, DUE_S(60));
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_workers_free(pool);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_free(q);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

static uint64_t stored(const struct redis_server *server)
{
    char answer[64];
    long n = redis_server_ask(server, (const char *const[]){ "HLEN", "due:{pool}:j", NULL }, answer,
                              sizeof answer);

    CREW_CHECK(n > 1 && answer[0] == ':', ": %s", answer);
    return strtoull(answer + 1, NULL, 10);
}

/* Every job once; those that are tried again too; and then the store is empty. */
static void all_are_done(const struct redis_server *server)
{
    struct world w = { .crashes = false };
    due_queue *q = open_queue(server);
    due_workers *pool = start(q, &w, 4);

    crew_doing("all are done");
    put(q, 0, JOBS);
    while (atomic_load(&w.done) < JOBS)
        crew_sleep(100000);
    CREW_CHECK(atomic_load(&w.again) == JOBS / 50, ": %u", atomic_load(&w.again));
    end(q, pool, DUE_CLOSE_DISCARD);
    CREW_CHECK(stored(server) == 0, ": %llu", (unsigned long long)stored(server));
}

/* Stopped in the middle: what was not begun stays in the store, and no attempt of it counts. */
static void what_is_left_stays(const struct redis_server *server)
{
    struct world w = { .crashes = false };
    due_queue *q = open_queue(server);

    crew_doing("what is left stays");
    put(q, 0, JOBS);
    due_workers *pool = start(q, &w, 4);
    while (atomic_load(&w.done) < 100)
        crew_sleep(10000);
    end(q, pool, DUE_CLOSE_DISCARD);
    unsigned done = atomic_load(&w.done);
    CREW_CHECK(stored(server) == JOBS - done, ": %llu of %u", (unsigned long long)stored(server),
               JOBS - done);
    q = open_queue(server);
    pool = start(q, &w, 4);
    while (atomic_load(&w.done) < JOBS)
        crew_sleep(100000);
    end(q, pool, DUE_CLOSE_DISCARD);
    CREW_CHECK(stored(server) == 0, ": %llu", (unsigned long long)stored(server));
}

/* A child whose handler crashes; the job, and all others, come again. */
static void a_handler_crashes(const struct redis_server *server)
{
    static struct world w;
    int status;

    crew_doing("a handler crashes");
    memset(&w, 0, sizeof w);
    pid_t pid = fork();
    CREW_CHECK(pid >= 0, ": no child");
    if (pid == 0) {
        w.crashes = true;
        due_queue *q = open_queue(server);
        put(q, 0, 20);
        (void)start(q, &w, 2);
        for (;;)
            pause();
    }
    CREW_CHECK(waitpid(pid, &status, 0) == pid, ": no such child");
    CREW_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, ": %d", status);
    uint64_t left = stored(server);
    CREW_CHECK(left >= 1 && left <= 20, ": %llu", (unsigned long long)left);
    due_queue *q = open_queue(server);
    due_workers *pool = start(q, &w, 2);
    while (atomic_load(&w.done) < left)
        crew_sleep(100000);
    CREW_CHECK(atomic_load(&w.seen[DEADLY]) == 1, ": the deadly job is lost");
    end(q, pool, DUE_CLOSE_DISCARD);
    CREW_CHECK(stored(server) == 0, ": %llu", (unsigned long long)stored(server));
}

int main(void)
{
    struct redis_server server;
    int rc = redis_server_start(&server, (const char *const[]){ NULL });

    if (rc == REDIS_SERVER_MISSING)
        return 77;
    if (rc != 0)
        return 1;
    crew_watchdog("redis_workers", 280);
    all_are_done(&server);
    what_is_left_stays(&server);
    a_handler_crashes(&server);
    redis_server_stop(&server);
    printf("redis_workers: all of them\n");
    return 0;
}
