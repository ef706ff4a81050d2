/* standby.c - one process owns the stored queue; another takes over when it is killed.
 *
 * The standby waits in due_open(), and looks again whenever the owner's lease should have ended.
 * Every job that the owner had accepted, and not acked, is the standby's then.
 *
 *     standby [URL]        such as unix:///run/redis/redis.sock, or $DUE_STORE_URL
 */
#include <due/due.h>
#include <due/redis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static due_queue *open_queue(const char *url, int standby)
{
    due_redis_options redis = { DUE_REDIS_OPTIONS_INIT, .standby = standby };
    due_options options = { DUE_OPTIONS_INIT, .name = "standby" };
    due_queue *q = NULL;
    due_error error;

    redis.lease_ns = DUE_S(1); /* renewed while its owner lives */
    options.open_timeout_ns = DUE_FOREVER;
    if (due_redis_open(&options.store, url, &redis, &error) == 0 &&
        due_open(&q, &options, &error) == 0)
        return q;
    fprintf(stderr, "%s %s\n", error.text, error.hint);
    due_redis_free(options.store);
    exit(1);
}

/* Accepts two jobs, tells so, and is killed while the other one waits. */
static void own(const char *url, int ready)
{
    static const char *const texts[] = { "the tea", "the egg" };
    due_queue *q = open_queue(url, 0);

    for (size_t i = 0; i < 2; i++) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(1), .data = texts[i] };

        spec.len = strlen(texts[i]);
        if (due_enqueue(q, &spec, DUE_S(5), NULL) != 0)
            exit(1);
    }
    printf("the owner has accepted two jobs\n");
    fflush(stdout);
    if (write(ready, "", 1) != 1)
        exit(1);
    usleep(300000);
    printf("the owner is killed\n");
    fflush(stdout);
    raise(SIGKILL);
}

/* Waits for the owner to go, then does its work. */
static int stand_by(const char *url)
{
    due_queue *q = open_queue(url, 1);
    due_job job;

    printf("the standby has taken over\n");
    for (int i = 0; i < 2; i++) {
        if (due_reserve(q, &job, DUE_S(10)) != 0)
            return 1;
        printf("the standby: %.*s is ready\n", (int)job.len, (const char *)job.data);
        if (due_ack(&job) != 0)
            return 1;
    }
    return due_close(q, DUE_CLOSE_DRAIN, DUE_S(5)) || due_free(q);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : getenv("DUE_STORE_URL");
    int ready[2];
    char byte;

    if (url == NULL)
        return 77;
    if (pipe(ready) != 0)
        return 1;
    pid_t owner = fork(); /* before any queue is opened */
    if (owner == 0)
        own(url, ready[1]);
    close(ready[1]);
    if (owner < 0 || read(ready[0], &byte, 1) != 1)
        return 1;
    int rc = stand_by(url);
    waitpid(owner, NULL, 0);
    return rc;
}
