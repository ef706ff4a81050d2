/* shared.c - the shared verbs of the Redis store, beside the same scripts called by hand.
 *
 * bench_shared [--jobs N] [--rounds N] [--tiny] [--only PART]: on a private redis-server without
 * a log; medians.  "of bare" is the ratio to the scripts alone in the same round.  Parts: put,
 * caller, work, ack, life, timed; of whole queues late, idle, kill; burst.  With a million jobs the
 * burst is one of a million, too.
 */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bare_shared.h"
#include "due/redis.h"
#include "shared.h"

#define CONSUMERS 8
#define PROCESSES 4
#define WAITING   100

struct redis_server server;

due_store *bench_store_new(int64_t spin_ns)
{
    due_redis_options redis = { DUE_REDIS_OPTIONS_INIT, .spin_ns = spin_ns };
    due_error error;
    due_store *store;

    must(due_redis_open(&store, server.url, &redis, &error));
    return store;
}

double info_of(const char *section, const char *name)
{
    static char answer[16384];
    const char *const words[] = { "INFO", section, NULL };

    if (redis_server_ask(&server, words, answer, sizeof answer) < 0)
        exit(1);
    const char *at = strstr(answer, name);
    return at != NULL ? strtod(at + strlen(name), NULL) : 0;
}

static double server_cpu(void)
{
    return info_of("cpu", "used_cpu_sys:") + info_of("cpu", "used_cpu_user:");
}

void bench_store_empty(void)
{
    char answer[64];

    (void)redis_server_ask(&server, (const char *const[]){ "FLUSHALL", NULL }, answer,
                           sizeof answer);
}

/* ---- One process ---- */

int64_t soon(int64_t ns)
{
    return (int64_t)(now() * 1e9) + ns;
}

void join(struct one *p)
{
    struct due_store_open how = { .name = "bench", .until_ns = soon(DUE_S(10)) };
    due_error error;

    *p = (struct one){ .store = bench_store_new(0) };
    p->verbs = p->store->verbs->shared;
    must(p->verbs->join(p->store, &how, &p->info, &error));
}

void leave(struct one *p)
{
    must(p->verbs->leave(p->store, soon(DUE_S(10))));
    due_redis_free(p->store);
}

static int keep(void *ctx, const due_claimed *job)
{
    struct one *p = ctx;
    due_change *c = &p->ends[p->n++];

    *c = (due_change){ .kind = DUE_CHANGE_DROP, .held = job->held };
    c->record.id = job->record.id;
    c->record.topic = "";
    return 0;
}

void put(struct one *p, size_t n, int64_t when_ns)
{
    static char payload[PAYLOAD];
    static due_change changes[BATCH];
    static int results[BATCH];

    for (size_t i = 0; i < n; i++) {
        due_record *r = &changes[i].record;
        uint64_t sequence = ++p->sequence;

        changes[i] = (due_change){ .kind = DUE_CHANGE_PUT, .is_new = 1 };
        *r = (due_record){ .deadline_ns = when_ns, .until_ns = when_ns, .topic = "" };
        r->data = payload;
        r->len = sizeof payload;
        r->id.byte[0] = 255;
        for (int b = 0; b < 6; b++)
            r->id.byte[6 - b] = (unsigned char)(p->info.writer >> (8 * b));
        for (int b = 0; b < 7; b++)
            r->id.byte[13 - b] = (unsigned char)(sequence >> (8 * b));
    }
    must(p->verbs->exchange(p->store, changes, n, ++p->number[0], results, NULL, keep, p,
                            &p->answer, soon(DUE_S(30))));
}

size_t work(struct one *p, size_t need, int waits)
{
    static _Thread_local due_change ends[BATCH];
    static _Thread_local int results[BATCH];
    struct due_claim claim = { .need = need, .lease_ns = DUE_S(60), .waits = waits };
    size_t n = p->n;

    memcpy(ends, p->ends, n * sizeof *ends);
    p->n = 0;
    must(p->verbs->exchange(p->store, ends, n, ++p->number[1], results, &claim, keep, p, &p->answer,
                            soon(DUE_S(30))));
    return p->n;
}

int64_t server_now(struct one *p)
{
    struct due_census_all count;

    must(p->verbs->census(p->store, &count, NULL, NULL, soon(DUE_S(5))));
    return count.now_ns;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

double percentile(double *figures, size_t n, double percent)
{
    qsort(figures, n, sizeof *figures, by_size);
    return figures[(size_t)((double)(n - 1) * percent / 100 + 0.5)];
}

static double put_all(size_t total, size_t batch)
{
    struct one p;

    join(&p);
    double begin = now();
    for (size_t at = 0; at < total; at += batch)
        put(&p, batch, (int64_t)(1 + at) * 1000);
    double took = now() - begin;
    leave(&p);
    return took;
}

static size_t work_all(size_t at_once)
{
    struct one p;
    size_t done = 0;

    join(&p);
    while (work(&p, at_once, 0) > 0)
        done += p.n;
    leave(&p);
    return done;
}

/* ---- Many ---- */

static void *consume(void *arg)
{
    *(size_t *)arg = work_all(100);
    return NULL;
}

static size_t two_consumers(void)
{
    size_t done[CONSUMERS / PROCESSES];
    pthread_t thread;

    pthread_create(&thread, NULL, consume, &done[0]);
    consume(&done[1]);
    pthread_join(thread, NULL);
    return done[0] + done[1];
}

static size_t bare_consumer(void)
{
    return bare_shared_work(server.socket, 100);
}

/* So many processes begin at once; the seconds until all have found nothing more. */
double in_processes(int n, size_t (*run)(void), size_t expected)
{
    int start[2];
    int end[2];
    pid_t child[CONSUMERS];
    size_t done = 0;
    char byte;

    if (pipe(start) != 0 || pipe(end) != 0)
        exit(1);
    for (int i = 0; i < n; i++) {
        child[i] = fork();
        if (child[i] != 0)
            continue;
        close(start[1]);
        (void)!read(start[0], &byte, 1);
        size_t mine = run();
        (void)!write(end[1], &mine, sizeof mine);
        _exit(0);
    }
    double begin = now();
    close(start[1]);
    for (int i = 0; i < n; i++) {
        size_t mine = 0;
        (void)!read(end[0], &mine, sizeof mine);
        done += mine;
    }
    double took = now() - begin;
    for (int i = 0; i < n; i++)
        waitpid(child[i], NULL, 0);
    close(start[0]);
    close(end[0]);
    close(end[1]);
    if (done != expected) {
        fprintf(stderr, "%zu jobs were done, not %zu\n", done, expected);
        exit(1);
    }
    return took;
}

/* ---- Rows ---- */

static size_t whole(size_t total)
{
    return total / BATCH * BATCH;
}

static void run_put(void)
{
    double n = (double)whole(jobs);
    double bare = n / bare_shared_put(server.socket, whole(jobs), BATCH, PAYLOAD);

    bench_store_empty();
    note("put by 256", "jobs/s", n / put_all(whole(jobs), BATCH), bare);
    bench_store_empty();
}

static void run_caller(void)
{
    size_t few = jobs / 20;
    double bare = bare_shared_put(server.socket, few, 1, PAYLOAD) / (double)few;

    bench_store_empty();
    note("put one, wait for it", "us", put_all(few, 1) / (double)few * 1e6, bare * 1e6);
    bench_store_empty();
}

static void run_work(void)
{
    size_t n = whole(jobs);

    (void)bare_shared_put(server.socket, n, BATCH, PAYLOAD);
    double bare = (double)n / in_processes(CONSUMERS, bare_consumer, n);
    bench_store_empty();
    (void)put_all(n, BATCH);
    note("claim and ack by 100, 8 consumers in 4 processes", "jobs/s",
         (double)n / in_processes(PROCESSES, two_consumers, n), bare);
    bench_store_empty();
}

static void run_ack(void)
{
    size_t few = whole(jobs / 10);

    few = few > 0 ? few : BATCH;
    (void)bare_shared_put(server.socket, few, BATCH, PAYLOAD);
    double begin = now();
    (void)bare_shared_work(server.socket, 1);
    double bare = (double)few / (now() - begin);
    bench_store_empty();
    (void)put_all(few, BATCH);
    begin = now();
    double before = server_cpu();
    (void)work_all(1);
    note("claim one and ack it with the next, one consumer", "jobs/s",
         (double)few / (now() - begin), bare);
    note("  processor time of the server", "us a job", (server_cpu() - before) / (double)few * 1e6,
         0);
    bench_store_empty();
}

/* Put by 256, claimed and done by 100, while others wait for later. */
static void run_life(void)
{
    size_t n = whole(jobs);
    struct one p;

    join(&p);
    for (size_t at = 0; at < n; at += BATCH)
        put(&p, BATCH, INT64_C(4000000000) * DUE_S(1));
    leave(&p);
    double before = server_cpu();
    (void)put_all(n, BATCH);
    (void)work_all(100);
    note("whole life of a job, as many others waiting: server", "us a job",
         (server_cpu() - before) / (double)n * 1e6, 0);
    bench_store_empty();
}

/* All wait; a job comes due; whoever is to look does, one is handed it. */
static void run_timed(void)
{
    static struct one all[WAITING];
    int rounds_of = jobs > 10000 ? 20 : 2;
    double commands = 0;

    for (int i = 0; i < WAITING; i++) {
        join(&all[i]);
        (void)work(&all[i], 1, 1);
    }
    for (int r = 0; r < rounds_of; r++) {
        int64_t alarm[WAITING] = { 0 };
        size_t claimed = 0;
        int64_t due_ns = server_now(&all[0]) + DUE_MS(60);
        double before = info_of("commandstats", "cmdstat_evalsha:calls=");
        put(&all[0], 1, due_ns);
        for (int64_t end = soon(DUE_MS(120));
             soon(0) < end || (claimed == 0 && soon(0) < end + DUE_S(5));) {
            int64_t server_ns = due_ns - DUE_MS(60) + (soon(0) - (end - DUE_MS(120)));
            for (int i = 0; i < WAITING; i++) {
                struct due_heard heard;
                bool said = all[i].verbs->listen(all[i].store, &heard, 0) == 1;
                bool rung = said && heard.alarm_ns == 0;
                if (said && !rung && heard.stamp >= all[i].answer.stamp)
                    alarm[i] = heard.alarm_ns;
                bool due = alarm[i] > 0 && alarm[i] <= server_ns;
                if (!rung && !due)
                    continue;
                alarm[i] = 0;
                claimed += work(&all[i], 1, 1);
                while (all[i].n > 0)
                    (void)work(&all[i], 1, 1);
                alarm[i] = all[i].answer.alarm_ns;
            }
        }
        commands += info_of("commandstats", "cmdstat_evalsha:calls=") - before;
        if (claimed != 1) {
            fprintf(stderr, "%zu jobs were claimed\n", claimed);
            exit(1);
        }
    }
    note("calls for a timed job, 100 processes waiting", "calls", commands / rounds_of, 0);
    for (int i = 0; i < WAITING; i++)
        leave(&all[i]);
    bench_store_empty();
}

int main(int argc, char **argv)
{
    static const struct part parts[] = { { "put", run_put },   { "caller", run_caller },
                                         { "work", run_work }, { "ack", run_ack },
                                         { "life", run_life }, { "timed", run_timed },
                                         { "late", run_late }, { "idle", run_idle },
                                         { "kill", run_kill }, { "burst", run_burst } };
    const char *only = NULL;

    if (!arguments(argc, argv, &only))
        return 2;
    int rc = redis_server_start(&server, NULL);
    if (rc != 0)
        return rc == REDIS_SERVER_MISSING ? 77 : 1;
    run_parts(parts, sizeof parts / sizeof *parts, only);
    print_rows();
    redis_server_stop(&server);
    return 0;
}
