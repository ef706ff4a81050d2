/* redis_heirs.c - eight processes want one stored queue at once, and each that gets it is killed:
 * every job is handed out once, what a dead one had reserved comes again, and soon: within a lease
 * and a second.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/crew.h"
#include "due/redis.h"
#include "lab/redis/redis_server.h"
#include "lab/take.h"

enum { HEIRS = 8, EACH = 100, JOBS = (HEIRS + 1) * EACH, NONE = JOBS };

#define LEASE DUE_S(1)
#define OWED  (LEASE + DUE_S(1)) /* the median */
#define LATE  (LEASE + DUE_S(6)) /* the worst: a busy machine can hold up one of them */

/* Shared by all the processes; only the owner of the queue writes. */
struct estate {
    atomic_uint taken[JOBS];
    uint32_t reserved;   /* by the one that was killed last; NONE at first */
    int64_t killed_ns;   /* when that was */
    int64_t took[HEIRS]; /* from each kill until that job came again */
    unsigned kills;
};

static due_queue *inherit(const struct redis_server *server)
{
    due_redis_options redis = { DUE_REDIS_OPTIONS_INIT, .lease_ns = LEASE };
    due_options options = { DUE_OPTIONS_INIT, .name = "estate", .open_timeout_ns = DUE_S(200) };
    due_error error = { "", "" };
    due_queue *q;
    int rc = due_redis_open(&options.store, server->url, &redis, &error);

    CREW_CHECK(rc == 0, ": %s", error.text);
    rc = due_open(&q, &options, &error);
    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return q;
}

static uint32_t number_of(const due_job *job)
{
    uint32_t number;

    memcpy(&number, job->data, sizeof number);
    CREW_CHECK(number < JOBS, ": %u", number);
    return number;
}

static uint32_t take(due_queue *q, struct estate *e)
{
    due_job job;
    int rc = due_dequeue(q, &job, DUE_S(30));

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    uint32_t number = number_of(&job);
    atomic_fetch_add(&e->taken[number], 1);
    due_job_done(&job);
    return number;
}

/* What the last one had is first. */
static void take_again(due_queue *q, struct estate *e)
{
    uint32_t number = take(q, e);
    int64_t ns = crew_now_ns() - e->killed_ns;

    CREW_CHECK(number == e->reserved, ": %u, not %u", number, e->reserved);
    CREW_CHECK(ns < LATE, ": it came again after %lld ms", (long long)(ns / 1000000));
    e->took[e->kills - 1] = ns;
}

/* What was reserved is the earliest of all. */
static void live_and_die(const struct redis_server *server, struct estate *e)
{
    due_queue *q = inherit(server);
    due_job job;

    if (e->reserved == NONE)
        (void)take(q, e);
    else
        take_again(q, e);
    for (unsigned i = 1; i < EACH; i++)
        (void)take(q, e);
    int rc = take_leased(q, &job, DUE_S(3600), DUE_S(30));
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    e->reserved = number_of(&job);
    e->kills++;
    e->killed_ns = crew_now_ns();
    raise(SIGKILL);
}

static void put_all(due_queue *q)
{
    for (uint32_t i = 0; i < JOBS; i++) {
        due_spec spec = { DUE_SPEC_INIT, .at_ns = i + 1, .data = &i, .len = sizeof i };
        int rc = due_enqueue(q, &spec, 0, NULL);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
}

static void leave(due_queue *q)
{
    int rc = due_close(q, DUE_CLOSE_DISCARD, DUE_S(30));

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_free(q);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x > *y) - (*x < *y);
}

static void check_delays(struct estate *e)
{
    CREW_CHECK(e->kills == HEIRS, ": %u", e->kills);
    qsort(e->took, HEIRS, sizeof e->took[0], by_time);
    int64_t median = e->took[HEIRS / 2];

    printf("redis_heirs: of %d kills, what was reserved came again after %lld ms in the median, "
           "%lld at worst, with a lease of %lld\n",
           HEIRS, (long long)median / 1000000, (long long)e->took[HEIRS - 1] / 1000000,
           (long long)LEASE / 1000000);
    CREW_CHECK(median < OWED, ": the median is %lld ms", (long long)(median / 1000000));
}

int main(void)
{
    struct redis_server server;
    int rc = redis_server_start(&server, (const char *const[]){ NULL });
    pid_t heirs[HEIRS];

    if (rc == REDIS_SERVER_MISSING)
        return 77;
    if (rc != 0)
        return 1;
    crew_watchdog("redis_heirs", 280);
    struct estate *e =
        mmap(NULL, sizeof *e, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CREW_CHECK(e != MAP_FAILED, ": no memory");
    e->reserved = NONE;
    due_queue *q = inherit(&server);
    put_all(q);
    leave(q);

    for (unsigned i = 0; i < HEIRS; i++) {
        heirs[i] = fork();
        CREW_CHECK(heirs[i] >= 0, ": no child");
        if (heirs[i] == 0)
            live_and_die(&server, e);
    }
    for (unsigned i = 0; i < HEIRS; i++) {
        int status;
        CREW_CHECK(waitpid(heirs[i], &status, 0) == heirs[i], ": no such child");
        CREW_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, ": %d", status);
    }
    q = inherit(&server);
    take_again(q, e);
    for (uint32_t i = 1; i < JOBS - HEIRS * EACH; i++)
        (void)take(q, e);
    leave(q);
    for (uint32_t i = 0; i < JOBS; i++)
        CREW_CHECK(atomic_load(&e->taken[i]) == 1, ": job %u %u times", i,
                   atomic_load(&e->taken[i]));
    check_delays(e);
    redis_server_stop(&server);
    return 0;
}
