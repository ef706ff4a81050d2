/* shared_burst.c - very many jobs of a shared queue come due at one instant: how long a script
 * takes then, and how long one waits who only asks the server whether it lives.
 */
#include <hiredis.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shared.h"

#define PROCESSES 4
#define PINGS     1000000

static int64_t burst_ns; /* on the server's clock */
static atomic_int over;
static size_t pings;
static double ping_ms[PINGS];

/* The clock of the machine, which is the server's. */
static int64_t wall(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * DUE_S(1) + t.tv_nsec;
}

static void pass(int64_t ns)
{
    if (ns > 0)
        nanosleep(&(struct timespec){ ns / DUE_S(1), ns % DUE_S(1) }, NULL);
}

/* Once, and every ms until it is over. */
static void *ping(void *arg)
{
    redisContext *c = redisConnectUnix(server.socket);

    (void)arg;
    if (c == NULL || c->err != 0)
        exit(1);
    pass(burst_ns - wall());
    pings = 0;
    do {
        double begin = now();
        redisReply *r = redisCommand(c, "PING");
        if (r == NULL)
            exit(1);
        ping_ms[pings++] = (now() - begin) * 1e3;
        freeReplyObject(r);
        pass(DUE_MS(1));
    } while (!atomic_load(&over) && pings < PINGS);
    redisFree(c);
    return NULL;
}

/* From that instant on, until nothing is left. */
static size_t consume(void)
{
    struct one p;
    size_t done = 0;

    join(&p);
    pass(burst_ns - wall());
    while (work(&p, 100, 0) > 0)
        done += p.n;
    leave(&p);
    return done;
}

/* How long the scripts of the slow log took that lasted longer than a tenth of a millisecond: the
 * longest, and 999 in a thousand. */
static void note_scripts(const char *longest, const char *most_of_them)
{
    redisContext *c = redisConnectUnix(server.socket);
    redisReply *r = c != NULL ? redisCommand(c, "SLOWLOG GET 100000") : NULL;
    size_t n = 0;

    if (r == NULL || r->type != REDIS_REPLY_ARRAY)
        exit(1);
    double *ms = calloc(r->elements + 1, sizeof *ms);
    for (size_t i = 0; ms != NULL && i < r->elements; i++) {
        const redisReply *e = r->element[i];
        if (strcasecmp(e->element[3]->element[0]->str, "EVALSHA") == 0)
            ms[n++] = (double)e->element[2]->integer / 1e3;
    }
    if (n > 0) {
        note(longest, "ms", percentile(ms, n, 100), 0);
        note(most_of_them, "ms", percentile(ms, n, 99.9), 0);
    }
    free(ms);
    freeReplyObject(r);
    redisFree(c);
}

static void ask(const char *const *words)
{
    char answer[64];

    (void)redis_server_ask(&server, words, answer, sizeof answer);
}

static void burst(size_t n, const char *script, const char *scripts, const char *ping_p99,
                  const char *rate)
{
    pthread_t thread;
    struct one p;

    join(&p);
    burst_ns = wall() + DUE_S(1) + (int64_t)n * DUE_US(15);
    for (size_t at = 0; at < n; at += BATCH)
        put(&p, BATCH, burst_ns);
    if (wall() >= burst_ns) {
        fprintf(stderr, "the jobs were due before all were put\n");
        exit(1);
    }
    leave(&p);
    ask((const char *const[]){ "CONFIG", "SET", "slowlog-log-slower-than", "100", NULL });
    ask((const char *const[]){ "CONFIG", "SET", "slowlog-max-len", "100000", NULL });
    ask((const char *const[]){ "SLOWLOG", "RESET", NULL });
    atomic_store(&over, 0);
    pthread_create(&thread, NULL, ping, NULL);
    (void)in_processes(PROCESSES, consume, n);
    double took = (double)(wall() - burst_ns) / 1e9;
    atomic_store(&over, 1);
    pthread_join(thread, NULL);
    note_scripts(script, scripts);
    note(ping_p99, "ms", percentile(ping_ms, pings, 99), 0);
    note(rate, "jobs/s", (double)n / took, 0);
    ask((const char *const[]){ "CONFIG", "SET", "slowlog-log-slower-than", "10000", NULL });
    bench_store_empty();
}

void run_burst(void)
{
    burst(jobs / 10 / BATCH * BATCH, "a tenth of the jobs due at once: longest script",
          "a tenth of the jobs due at once: script, p99.9",
          "a tenth of the jobs due at once: PING, p99", "a tenth of the jobs due at once: done");
    if (jobs >= 1000000)
        burst(jobs / BATCH * BATCH, "all jobs due at once: longest script",
              "all jobs due at once: script, p99.9", "all jobs due at once: PING, p99",
              "all jobs due at once: done");
}
