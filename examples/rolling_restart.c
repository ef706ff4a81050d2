/* rolling_restart.c - consumers are replaced one by one, while jobs come in and come due.
 *
 * They share one queue, so each new version may run beside the old ones.  Who is told to stop ends
 * with the job that it has, and gives back what it had claimed ahead: nothing waits for a lease to
 * end, and nothing is done twice.
 *
 *     rolling_restart [URL]       such as unix:///run/redis/redis.sock, or $DUE_STORE_URL
 */
#include <due/due.h>
#include <due/redis.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONSUMERS 3
#define VERSIONS  3
#define JOBS      600

/* What a consumer says of a job that it has done. */
struct done {
    int order;
    int version;
};

static due_queue *open_queue(const char *url)
{
    due_options options = { DUE_OPTIONS_INIT, .name = "rolling", .share = DUE_SHARED };
    due_queue *q = NULL;
    due_error error;

    if (due_redis_open(&options.store, url, NULL, &error) == 0 &&
        due_open(&q, &options, &error) == 0)
        return q;
    fprintf(stderr, "%s %s\n", error.text, error.hint);
    due_redis_free(options.store);
    exit(1);
}

static void close_queue(due_queue *q)
{
    exit(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)) || due_free(q));
}

/* A job every millisecond or so, due a little later. */
static void produce(const char *url)
{
    due_queue *q = open_queue(url);

    for (int order = 0; order < JOBS; order++) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_MS(order % 7), .data = &order };

        spec.len = sizeof order;
        if (due_enqueue(q, &spec, DUE_S(5), NULL) != 0)
            exit(1);
        usleep(1000);
    }
    close_queue(q);
}

static volatile sig_atomic_t stopping;

static void on_term(int number)
{
    (void)number;
    stopping = 1;
}

static void consume(const char *url, int to, int version)
{
    due_queue *q = open_queue(url);
    due_job job;

    while (!stopping) {
        struct done done = { .version = version };
        int rc = due_reserve(q, &job, DUE_MS(50));

        if (rc == DUE_ETIMEDOUT)
            continue;
        if (rc != 0 || job.len != sizeof done.order)
            exit(1);
        memcpy(&done.order, job.data, sizeof done.order);
        if (due_ack(&job) != 0 || write(to, &done, sizeof done) != (ssize_t)sizeof done)
            exit(1);
    }
    close_queue(q);
}

static pid_t start(const char *url, int to, int version)
{
    pid_t pid = fork();

    if (pid == 0)
        consume(url, to, version);
    return pid;
}

/* Until so many jobs are done, or all; each once. */
static bool follow(int from, size_t upto, bool seen[JOBS], bool by[VERSIONS])
{
    static size_t got;
    struct done done;

    for (; got < upto; got++) {
        if (read(from, &done, sizeof done) != (ssize_t)sizeof done || seen[done.order])
            return false;
        seen[done.order] = true;
        by[done.version] = true;
    }
    return true;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : getenv("DUE_STORE_URL");
    bool seen[JOBS] = { false };
    bool by[VERSIONS] = { false };
    pid_t consumer[CONSUMERS];
    int ends[2];
    int status;
    int rc = 0;

    if (url == NULL)
        return 77;
    if (pipe(ends) != 0)
        return 1;
    signal(SIGTERM, on_term);
    for (int i = 0; i < CONSUMERS; i++) /* before this process opens any queue */
        consumer[i] = start(url, ends[1], 0);
    if (fork() == 0)
        produce(url);
    for (int version = 1; version < VERSIONS; version++) {
        for (int i = 0; i < CONSUMERS; i++) {
            pid_t old = consumer[i];

            if (!follow(ends[0], (size_t)(CONSUMERS * (version - 1) + i + 1) * 50, seen, by))
                return 1;
            consumer[i] = start(url, ends[1], version); /* beside the one that it replaces */
            kill(old, SIGTERM);
            rc = rc || waitpid(old, &status, 0) != old || status != 0;
        }
    }
    printf("%d consumers were replaced %d times, while jobs came in\n", CONSUMERS, VERSIONS - 1);
    if (!follow(ends[0], JOBS, seen, by) || !by[0] || !by[VERSIONS - 1])
        return 1;
    printf("%d jobs were done, each once\n", JOBS);
    for (int i = 0; i < CONSUMERS; i++)
        kill(consumer[i], SIGTERM);
    while (wait(&status) > 0)
        rc = rc || status != 0;
    return rc;
}
