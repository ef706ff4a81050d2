/* file_restart.c - a program dies in the middle of its work, and is started again.
 *
 * The queue is kept in a file of SQLite, so a job is on the disk before due_enqueue() answers.  A
 * reserved job leaves the file when it is acked, not before: whatever kills the program, the next
 * one has every job that was not acked.
 *
 *     file_restart [FILE]        jobs.db unless another is named
 */
#include <due/due.h>
#include <due/sqlite.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS 6

static due_queue *open_queue(const char *path)
{
    due_options options = { DUE_OPTIONS_INIT };
    due_queue *q = NULL;
    due_error error;

    if (due_sqlite_open(&options.store, path, NULL, &error) == 0 &&
        due_open(&q, &options, &error) == 0)
        return q;
    fprintf(stderr, "%s %s\n", error.text, error.hint);
    due_sqlite_free(options.store);
    exit(1);
}

static void put(due_queue *q, int number)
{
    char text[32];
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_MS(20) * number, .data = text };

    spec.len = (size_t)snprintf(text, sizeof text, "job %d", number);
    if (due_enqueue(q, &spec, DUE_S(5), NULL) != 0) /* 0: it is on the disk */
        exit(1);
}

/* Do one job: the ack comes after the work. */
static void work(due_queue *q, const char *life)
{
    due_job job;

    if (due_reserve(q, &job, DUE_S(5)) != 0)
        exit(1);
    printf("%s life: %.*s\n", life, (int)job.len, (const char *)job.data);
    fflush(stdout);
    if (due_ack(&job) != 0)
        exit(1);
}

static void first_life(const char *path)
{
    due_queue *q = open_queue(path);
    due_job job;

    for (int i = 1; i <= JOBS; i++)
        put(q, i);
    work(q, "first");
    work(q, "first");
    if (due_reserve(q, &job, DUE_S(5)) != 0)
        exit(1);
    printf("first life: dies with %.*s in its hands\n", (int)job.len, (const char *)job.data);
    fflush(stdout);
    _exit(0); /* no close, no ack: as if it had been killed */
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "jobs.db";
    due_queue *q;

    fflush(stdout);
    pid_t child = fork(); /* before any queue is opened */
    if (child == 0)
        first_life(path);
    if (child < 0 || waitpid(child, NULL, 0) != child)
        return 1;

    q = open_queue(path);
    for (int i = 3; i <= JOBS; i++)
        work(q, "second");
    return due_close(q, DUE_CLOSE_DRAIN, DUE_S(5)) || due_free(q);
}
