/* redis_share_groups.c - groups of a queue that four processes share on a real server, of which one
 * is killed in the middle: of a group never two jobs are out at once, and all are done in the end.
 * Then 100,000 jobs of one group are kept back, and others wait for none of them.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "due/metrics.h"
#include "due/redis.h"
#include "lab/crew.h"
#include "lab/redis/redis_server.h"
#include "lab/take.h"

enum { WORKERS = 4, JOBS = 1600, GROUPS = 7, MANY = 100000, BATCH = 250, TRIES = 21 };

#define LEASE DUE_S(8)
#define SOON  DUE_MS(100) /* the median of what a job takes that nobody keeps back */

/* Shared by all the processes. */
struct ledger {
    atomic_int out[GROUPS]; /* who has a job of it, from 1; 0: nobody */
    atomic_int dead;        /* who was killed */
    atomic_uint acked[JOBS];
    atomic_uint done;
    atomic_bool stop;
};

static due_queue *share(const struct redis_server *server, const char *name)
{
    due_options options = { DUE_OPTIONS_INIT, .name = name, .share = DUE_SHARED,
                            .open_timeout_ns = DUE_S(60) };
    due_error error = { "", "" };
    due_queue *q;
    int rc = due_redis_open(&options.store, server->url, NULL, &error);

    CREW_CHECK(rc == 0, ": %s", error.text);
    rc = due_open(&q, &options, &error);
    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return q;
}

static void leave(due_queue *q)
{
    int rc = due_close(q, DUE_CLOSE_DISCARD, DUE_S(60));

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_free(q);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

/* One of nine has no group. */
static uint32_t group_of(uint32_t n)
{
    return n % (GROUPS + 1);
}

static void put(due_queue *q, uint32_t n)
{
    uint32_t group = group_of(n);
    due_extra more = { DUE_EXTRA_INIT, .group = &group, .group_len = sizeof group };
    due_spec spec = { DUE_SPEC_INIT, .data = &n, .len = sizeof n, .delay_ns = DUE_US(n % 90 * 100),
                      .more = group < GROUPS ? &more : NULL };
    int rc = due_enqueue(q, &spec, DUE_S(30), NULL);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

static void work_on(struct ledger *l, due_job *job, int self, uint64_t *seed)
{
    uint32_t n;

    memcpy(&n, job->data, sizeof n);
    CREW_CHECK(n < JOBS, ": %u", n);
    atomic_int *out = group_of(n) < GROUPS ? &l->out[group_of(n)] : NULL;
    int other = out != NULL ? atomic_exchange(out, self) : 0;
    CREW_CHECK(other == 0 || other == atomic_load(&l->dead), ": %d and %d have one of group %u",
               other, self, group_of(n));
    if (crew_below(seed, 4) == 0)
        crew_sleep(DUE_US(300));
    if (out != NULL)
        atomic_store(out, 0);
    bool nacks = crew_below(seed, 15) == 0;
    int rc = nacks ? due_nack(job, DUE_MS(1)) : due_ack(job);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    if (nacks)
        return;
    CREW_CHECK(atomic_fetch_add(&l->acked[n], 1) == 0, ": job %u was acked twice", n);
    atomic_fetch_add(&l->done, 1);
}

static void live(const struct redis_server *server, struct ledger *l, int self)
{
    due_queue *q = share(server, "groups");
    uint64_t seed = (uint64_t)self;
    due_job job;

    while (!atomic_load(&l->stop)) {
        int rc = take_leased(q, &job, LEASE, DUE_MS(50));

        CREW_CHECK(rc == 0 || rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
        if (rc == 0)
            work_on(l, &job, self, &seed);
    }
    leave(q);
    exit(0);
}

static uint64_t left(due_queue *q)
{
    struct due_queue_census c;
    int rc = due_census(q, DUE_ALL_TOPICS, &c, DUE_S(30));

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return c.delayed + c.ready + c.leased + c.dead;
}

/* What the killed one had comes again when its lease is over; what it acked may not be counted. */
static void of_many_processes(const struct redis_server *server, struct ledger *l)
{
    pid_t worker[WORKERS];
    int64_t end = crew_now_ns() + DUE_S(100);

    for (int i = 0; i < WORKERS; i++) {
        worker[i] = fork();
        CREW_CHECK(worker[i] >= 0, ": fork");
        if (worker[i] == 0)
            live(server, l, i + 1);
    }
    due_queue *q = share(server, "groups");
    for (uint32_t n = 0; n < JOBS; n++)
        put(q, n);
    while (atomic_load(&l->done) < JOBS / 3) {
        CREW_CHECK(crew_now_ns() < end, ": %u are done", atomic_load(&l->done));
        crew_sleep(DUE_MS(1));
    }
    kill(worker[0], SIGSTOP); /* so that nobody is between two lines when it is said */
    atomic_store(&l->dead, 1);
    kill(worker[0], SIGKILL);
    while (left(q) > 0) {
        CREW_CHECK(crew_now_ns() < end, ": %u are done, %llu left", atomic_load(&l->done),
                   (unsigned long long)left(q));
        crew_sleep(DUE_MS(20));
    }
    CREW_CHECK(atomic_load(&l->done) >= JOBS - 1, ": %u are done", atomic_load(&l->done));
    atomic_store(&l->stop, true);
    for (int i = 0; i < WORKERS; i++) {
        int status;

        waitpid(worker[i], &status, 0);
        CREW_CHECK(i == 0 || status == 0, ": worker %d: %d", i, status);
    }
    leave(q);
}

/* ---- Kept back ---- */

static void fill(due_queue *q)
{
    due_extra more = { DUE_EXTRA_INIT, .group = "g", .group_len = 1 };
    due_spec specs[BATCH];
    uint32_t n = MANY;

    for (int i = 0; i < BATCH; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .data = &n, .len = sizeof n, .more = &more };
    for (int at = 0; at < MANY; at += BATCH) {
        int rc = due_enqueue_batch(q, specs, BATCH, DUE_S(60), NULL);

        CREW_CHECK(rc == BATCH, ": %d", rc);
    }
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x > *y) - (*x < *y);
}

/* From the enqueue in one process until another one has it. */
static int64_t median(due_queue *from, due_queue *to, const char *group)
{
    due_extra more = { DUE_EXTRA_INIT, .group = group, .group_len = group != NULL };
    int64_t took[TRIES];

    for (uint32_t i = 0; i < TRIES; i++) {
        due_spec spec = { DUE_SPEC_INIT, .data = &i, .len = sizeof i, .more = &more };
        int64_t begun = crew_now_ns();
        due_job job;
        uint32_t n;

        CREW_CHECK(due_enqueue(from, &spec, DUE_S(30), NULL) == 0, ": not accepted");
        int rc = take_leased(to, &job, LEASE, DUE_S(30));
        took[i] = crew_now_ns() - begun;
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        memcpy(&n, job.data, sizeof n);
        CREW_CHECK(n == i, ": %u, not %u", n, i);
        CREW_CHECK(due_ack(&job) == 0, ": not acked");
    }
    qsort(took, TRIES, sizeof took[0], by_time);
    printf("redis_share_groups: one of %s: %lld us\n", group != NULL ? group : "no group",
           (long long)(took[TRIES / 2] / 1000));
    return took[TRIES / 2];
}

/* How long the server took for a script since it was asked last, on average, in us. */
static double server_us(const struct redis_server *server)
{
    char answer[8192];
    unsigned long long calls = 0;
    unsigned long long us = 0;
    long n = redis_server_ask(server, (const char *const[]){ "INFO", "commandstats", NULL }, answer,
                              sizeof answer);
    const char *found = n > 0 ? strstr(answer, "cmdstat_evalsha:") : NULL;

    if (found != NULL)
        (void)sscanf(found, "cmdstat_evalsha:calls=%llu,usec=%llu", &calls, &us);
    (void)redis_server_ask(server, (const char *const[]){ "CONFIG", "RESETSTAT", NULL }, answer,
                           sizeof answer);
    return calls > 0 ? (double)us / (double)calls : 0;
}

/* What a look at 100,000 jobs costs is far more than this, and what a stopped server adds to so
 * many calls is less. */
static void expect_as_before(double before, double after)
{
    printf("redis_share_groups: a script takes %.0f us, before %.0f us\n", after, before);
    CREW_CHECK(before > 0 && after > 0 && after < 10 * before + 1000, ": scripts are slow");
}

static void of_many_jobs(const struct redis_server *server)
{
    due_queue *from = share(server, "many");
    due_queue *to = share(server, "many");
    due_job held;

    (void)server_us(server);
    CREW_CHECK(median(from, to, NULL) < SOON, ": late");
    double before = server_us(server);
    fill(from);
    CREW_CHECK(take_leased(from, &held, DUE_S(600), DUE_S(30)) == 0, ": nobody is in front");
    (void)server_us(server);
    CREW_CHECK(median(from, to, "h") < SOON, ": late");
    expect_as_before(before, server_us(server));
    CREW_CHECK(median(from, to, NULL) < SOON, ": late");
    expect_as_before(before, server_us(server));
    CREW_CHECK(due_ack(&held) == 0, ": not acked");
    CREW_CHECK(take_leased(to, &held, DUE_S(600), DUE_S(30)) == 0, ": nobody follows");
    CREW_CHECK(due_ack(&held) == 0, ": not acked");
    leave(from);
    leave(to);
}

int main(void)
{
    struct redis_server server;
    struct ledger *l =
        mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc = redis_server_start(&server, (const char *const[]){ NULL });

    if (rc == REDIS_SERVER_MISSING) {
        printf("redis_share_groups: redis-server is not installed\n");
        return 77;
    }
    CREW_CHECK(rc == 0 && l != MAP_FAILED, ": no server");
    crew_watchdog("redis_share_groups", 250);
    crew_doing("many processes");
    of_many_processes(&server, l);
    crew_doing("many jobs");
    of_many_jobs(&server);
    redis_server_stop(&server);
    return 0;
}
