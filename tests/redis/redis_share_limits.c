/* redis_share_limits.c - limits of topics of a queue that five processes share on a real server, of
 * which three are killed with jobs in their hands: never more jobs of a topic are out than may, and
 * what those held is run again by others.
 *
 * Who is killed counts until another one has his job: it is held until its lease is over.
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

enum { WORKERS = 5, KILLED = 3, JOBS = 1200, TOPICS = 4 };

#define LEASE DUE_S(6)

static const char *const names[TOPICS] = { "one", "two", "three", "any" };
static const int limits[TOPICS] = { 1, 2, 3, 0 };

/* Shared by all the processes. */
struct ledger {
    atomic_int out[TOPICS];     /* jobs of it that are run */
    atomic_int most[TOPICS];    /* so many were at a time */
    atomic_int holder[JOBS];    /* who runs it, from 1; 0: nobody */
    atomic_bool holds[WORKERS]; /* he is a victim, and has one */
    atomic_int victim; /* who is to hold his next job until he is killed, from 1; 0: nobody */
    atomic_bool killed[WORKERS]; /* */
    atomic_uint acked[JOBS];
    atomic_uint done, again; /* jobs; those that another had when he was killed */
    atomic_bool stop;
};

static struct ledger *l;
static struct redis_server server;

static due_queue *share(void)
{
    due_options options = { DUE_OPTIONS_INIT, .name = "limits", .share = DUE_SHARED,
                            .open_timeout_ns = DUE_S(60) };
    due_error error = { "", "" };
    due_queue *q;
    int rc = due_redis_open(&options.store, server.url, NULL, &error);

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

static uint32_t topic_of(uint32_t n)
{
    return n % TOPICS;
}

/* From now on the job is run by @self; in place of one who was killed, or besides all others. */
static void begin(uint32_t n, int self)
{
    uint32_t topic = topic_of(n);
    int before = atomic_exchange(&l->holder[n], self + 1);

    CREW_CHECK(before == 0 || atomic_load(&l->killed[before - 1]), ": %d has job %u of %d",
               self + 1, n, before);
    if (before != 0) {
        atomic_fetch_add(&l->again, 1);
    } else {
        int out = atomic_fetch_add(&l->out[topic], 1) + 1;
        int most = atomic_load(&l->most[topic]);

        CREW_CHECK(limits[topic] == 0 || out <= limits[topic], ": %d of topic %s are out", out,
                   names[topic]);
        while (out > most && !atomic_compare_exchange_weak(&l->most[topic], &most, out))
            continue;
    }
}

static void end(uint32_t n)
{
    atomic_store(&l->holder[n], 0);
    atomic_fetch_sub(&l->out[topic_of(n)], 1);
}

static void run(due_job *job, int self, uint64_t *seed)
{
    uint32_t n;

    memcpy(&n, job->data, sizeof n);
    CREW_CHECK(n < JOBS && job->topic >= 0, ": %u", n);
    begin(n, self);
    while (atomic_load(&l->victim) == self + 1) {
        atomic_store(&l->holds[self], true);
        crew_sleep(DUE_MS(1));
    }
    if (crew_below(seed, 3) == 0)
        crew_sleep(DUE_US(400));
    end(n);
    bool nacks = crew_below(seed, 12) == 0;
    int rc = nacks ? due_nack(job, DUE_MS(1)) : due_ack(job);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    if (nacks)
        return;
    CREW_CHECK(atomic_fetch_add(&l->acked[n], 1) == 0, ": job %u was acked twice", n);
    atomic_fetch_add(&l->done, 1);
}

static void live(int self)
{
    due_queue *q = share();
    uint64_t seed = (uint64_t)self + 1;
    due_job job;

    while (!atomic_load(&l->stop)) {
        int victim = atomic_load(&l->victim);
        if (victim != 0 && victim != self + 1) { /* else there may be no job left for him */
            crew_sleep(DUE_MS(1));
            continue;
        }
        int rc = take_leased(q, &job, LEASE, DUE_MS(50));

        CREW_CHECK(rc == 0 || rc == DUE_ETIMEDOUT, ": %s", due_error_name(rc));
        if (rc == 0)
            run(&job, self, &seed);
    }
    leave(q);
    exit(0);
}

static void put_all(due_queue *q)
{
    int topic[TOPICS];

    for (int t = 0; t < TOPICS; t++) {
        topic[t] = due_topic(q, names[t]);
        CREW_CHECK(topic[t] >= 0, "");
        if (limits[t] > 0)
            CREW_CHECK(due_topic_limit(q, topic[t], (size_t)limits[t]) == 0, "");
    }
    for (uint32_t n = 0; n < JOBS; n++) {
        due_spec spec = { DUE_SPEC_INIT, .data = &n, .len = sizeof n, .topic = topic[topic_of(n)],
                          .delay_ns = DUE_US(n % 70 * 100) };
        int rc = due_enqueue(q, &spec, DUE_S(30), NULL);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
}

static uint64_t left(due_queue *q)
{
    struct due_queue_census c;
    int rc = due_census(q, DUE_ALL_TOPICS, &c, DUE_S(30));

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return c.delayed + c.ready + c.leased + c.dead;
}

/* While he runs a job. */
static void kill_one(pid_t pid, int self, int64_t end_ns)
{
    atomic_store(&l->victim, self + 1);
    while (!atomic_load(&l->holds[self])) {
        CREW_CHECK(crew_now_ns() < end_ns, ": %d gets no job", self + 1);
        crew_sleep(DUE_MS(1));
    }
    atomic_store(&l->killed[self], true);
    kill(pid, SIGKILL);
    atomic_store(&l->victim, 0);
}

static void wait_until(unsigned done, int64_t end_ns)
{
    while (atomic_load(&l->done) < done) {
        CREW_CHECK(crew_now_ns() < end_ns, ": %u are done", atomic_load(&l->done));
        crew_sleep(DUE_MS(1));
    }
}

static void of_all(void)
{
    pid_t worker[WORKERS];
    int64_t end_ns = crew_now_ns() + DUE_S(200);

    for (int i = 0; i < WORKERS; i++) {
        worker[i] = fork(); /* before there are threads here */
        CREW_CHECK(worker[i] >= 0, ": fork");
        if (worker[i] == 0)
            live(i);
    }
    due_queue *q = share();
    put_all(q);
    for (int i = 0; i < KILLED; i++) {
        wait_until((unsigned)(i + 1) * JOBS / 12, end_ns);
        kill_one(worker[i], i, end_ns);
    }
    while (left(q) > 0) {
        CREW_CHECK(crew_now_ns() < end_ns, ": %u are done, %llu left", atomic_load(&l->done),
                   (unsigned long long)left(q));
        crew_sleep(DUE_MS(20));
    }
    atomic_store(&l->stop, true);
    for (int i = 0; i < WORKERS; i++) {
        int status;

        waitpid(worker[i], &status, 0);
        CREW_CHECK(i < KILLED || status == 0, ": worker %d: %d", i, status);
    }
    leave(q);
}

int main(void)
{
    l = mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc = redis_server_start(&server, NULL);

    if (rc == REDIS_SERVER_MISSING) {
        printf("redis_share_limits: redis-server is not installed\n");
        return 77;
    }
    CREW_CHECK(rc == 0 && l != MAP_FAILED, ": no server");
    crew_watchdog("redis_share_limits", 250);
    crew_doing("of all");
    of_all();
    redis_server_stop(&server);
    CREW_CHECK(atomic_load(&l->done) == JOBS, ": %u are done", atomic_load(&l->done));
    CREW_CHECK(atomic_load(&l->again) >= KILLED, ": only %u were run again",
               atomic_load(&l->again));
    printf("redis_share_limits: %u jobs, %u of them again; at most %d, %d and %d of those that are "
           "limited, %d of the other\n",
           atomic_load(&l->done), atomic_load(&l->again), atomic_load(&l->most[0]),
           atomic_load(&l->most[1]), atomic_load(&l->most[2]), atomic_load(&l->most[3]));
    return 0;
}
