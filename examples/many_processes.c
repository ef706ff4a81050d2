/* many_processes.c - two processes put jobs into one queue, and three others take them out.
 *
 * They share the queue: each opens it with DUE_SHARED, on this machine or any other, and none owns
 * it.  One consumer is killed while it has a job; that job comes again when its lease is over, to
 * one of the others.
 *
 *     many_processes [URL]        such as unix:///run/redis/redis.sock, or $DUE_STORE_URL
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

#define PRODUCERS 2
#define CONSUMERS 3
#define EACH      50
#define JOBS      (PRODUCERS * EACH)

static due_queue *open_queue(const char *url)
{
    due_options options = { DUE_OPTIONS_INIT, .name = "orders", .share = DUE_SHARED,
                            .lease_ns = DUE_S(1) };
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
    exit(due_close(q, DUE_CLOSE_DISCARD, DUE_S(5)) || due_free(q));
}

/* Jobs @first to @first + EACH, some of them later than others. */
static void produce(const char *url, int first)
{
    due_queue *q = open_queue(url);

    for (int order = first; order < first + EACH; order++) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_MS(order % 10 * 20), .data = &order };

        spec.len = sizeof order;
        if (due_enqueue(q, &spec, DUE_S(5), NULL) != 0)
            exit(1);
    }
    close_queue(q);
}

static volatile sig_atomic_t stopping;

static void on_term(int number)
{
    (void)number;
    stopping = 1;
}

/* Says which jobs it has done, until it is told to stop.  @dies: it is killed with its first. */
static void consume(const char *url, int done, bool dies)
{
    due_queue *q = open_queue(url);
    due_job job;
    int order;

    while (!stopping) {
        int rc = due_reserve(q, &job, DUE_MS(100));

        if (rc == DUE_ETIMEDOUT)
            continue;
        if (rc != 0 || job.len != sizeof order)
            exit(1);
        if (dies)
            raise(SIGKILL);
        memcpy(&order, job.data, sizeof order);
        if (due_ack(&job) != 0 || write(done, &order, sizeof order) != (ssize_t)sizeof order)
            exit(1);
    }
    close_queue(q);
}

/* Each job is to be done once. */
static int count(int done)
{
    bool seen[JOBS] = { false };
    int order;

    for (int n = 0; n < JOBS; n++) {
        if (read(done, &order, sizeof order) != (ssize_t)sizeof order || seen[order])
            return 1;
        seen[order] = true;
    }
    printf("%d jobs of %d processes were done by %d others, each once\n", JOBS, PRODUCERS,
           CONSUMERS - 1);
    return 0;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : getenv("DUE_STORE_URL");
    pid_t consumer[CONSUMERS];
    int done[2];
    int status;

    if (url == NULL)
        return 77;
    if (pipe(done) != 0)
        return 1;
    signal(SIGTERM, on_term);
    for (int i = 0; i < CONSUMERS; i++) { /* before this process opens any queue */
        consumer[i] = fork();
        if (consumer[i] == 0)
            consume(url, done[1], i == 0);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        if (fork() == 0)
            produce(url, i * EACH);
    }
    close(done[1]);
    int rc = waitpid(consumer[0], &status, 0) != consumer[0] || !WIFSIGNALED(status);
    printf("a consumer was killed while it had a job\n");
    rc = rc != 0 || count(done[0]) != 0;
    for (int i = 1; i < CONSUMERS; i++)
        kill(consumer[i], SIGTERM);
    while (wait(&status) > 0)
        rc = rc != 0 || status != 0;
    printf("the others were told to stop, and have closed the queue\n");
    return rc;
}
