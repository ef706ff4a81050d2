/* queues.c - the queues of a run, and its threads. */
#include "run/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

/* ---- The queues ------------------------------------------------------------------------------ */

static void count_left(struct ctl_run *run, enum ctl_clock clock, const due_job *due)
{
    struct ctl_job *job = due->ptr;

    ctl_tally_left(&run->tally, clock, due->deadline_ns, job);
    ctl_job_free(run, job);
}

static void discard(void *ctx, const due_job *due)
{
    count_left(ctx, CTL_MONOTONIC, due);
}

static void discard_of_wall(void *ctx, const due_job *due)
{
    count_left(ctx, CTL_WALL, due);
}

/* The text begins with the name of the queue, which is that of the command if none was given. */
void ctl_run_log(void *ctx, enum due_log_level level, const char *text)
{
    static const char command[] = "duectl: ";
    struct ctl_run *run = ctx;
    bool named = strncmp(text, command, sizeof command - 1) == 0;

    if (level != DUE_LOG_INFO || atomic_load(&run->opening))
        ctl_say(&run->screen, "%s%s\n", named ? "" : command, text);
}

static due_queue *open_queue(struct ctl_run *run, const due_options *options)
{
    due_queue *q = NULL;
    due_error error;

    if (due_open(&q, options, &error) == 0)
        return q;
    ctl_say(&run->screen, "duectl: %s%s%s\n", error.text, error.hint[0] == '\0' ? "" : "; ",
            error.hint);
    return NULL;
}

/* A log is read only so far ahead; a schedule as it comes, since any line may be the next. */
bool ctl_queues_open(struct ctl_run *run)
{
    due_options queue = { DUE_OPTIONS_INIT, .name = "delays", .lease_ns = DUE_FOREVER,
                          .on_discard = discard };
    due_options wall = { DUE_OPTIONS_INIT, .name = "dates", .lease_ns = DUE_FOREVER,
                         .on_discard = discard_of_wall };

    queue.capacity = run->options->replay ? CTL_AHEAD : 0;
    queue.retry = run->options->retries ? run->options->retry : queue.retry;
    queue.on_log = ctl_run_log;
    queue.ctx = run;
    wall.clock = DUE_CLOCK_REALTIME;
    wall.on_log = ctl_run_log;
    wall.ctx = run;
    run->queue = open_queue(run, &queue);
    if (run->queue == NULL)
        return false;
    if (run->options->replay)
        return true;
    run->wall = open_queue(run, &wall);
    return run->wall != NULL;
}

static bool close_queue(struct ctl_run *run, due_queue *q, enum due_close_mode mode,
                        int64_t timeout_ns)
{
    int rc = due_close(q, mode, timeout_ns);

    if (rc != 0)
        ctl_say(&run->screen, "duectl: a queue does not close: %s\n", due_error_text(rc));
    return rc == 0;
}

void ctl_run_drain(struct ctl_run *run, due_queue *q)
{
    close_queue(run, q, DUE_CLOSE_DRAIN, DUE_FOREVER);
}

void ctl_run_close(struct ctl_run *run)
{
    atomic_store(&run->closing, run->options->store != NULL);
    close_queue(run, run->queue, DUE_CLOSE_DISCARD, CTL_CLOSE_NS);
}

static void free_queue(struct ctl_run *run, due_queue *q)
{
    int rc;

    if (q == NULL || !close_queue(run, q, DUE_CLOSE_DISCARD, CTL_CLOSE_NS))
        return;
    rc = due_free(q);
    if (rc != 0)
        ctl_say(&run->screen, "duectl: a queue is not free: %s\n", due_error_text(rc));
}

void ctl_queues_free(struct ctl_run *run)
{
    free_queue(run, run->wall);
    free_queue(run, run->queue);
}

void ctl_queues_close(struct ctl_run *run)
{
    if (run->wall != NULL)
        close_queue(run, run->wall, DUE_CLOSE_DISCARD, CTL_CLOSE_NS);
    ctl_run_close(run);
}

void ctl_run_broken(struct ctl_run *run, int error)
{
    atomic_store(&run->broken, error);
    eventfd_write(run->event_fd, 1);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void *thread_main(void *arg)
{
    struct ctl_thread *thread = arg;
    struct ctl_run *run = thread->run;

    thread->body(run, thread->number);
    atomic_fetch_sub(&run->busy, 1);
    eventfd_write(run->event_fd, 1);
    return NULL;
}

int ctl_run_start(struct ctl_run *run, void (*body)(struct ctl_run *, int), int number)
{
    struct ctl_thread *thread = &run->threads[run->thread_count];
    int rc;

    thread->run = run;
    thread->body = body;
    thread->number = number;
    atomic_fetch_add(&run->busy, 1);
    rc = pthread_create(&thread->id, NULL, thread_main, thread);
    if (rc == 0)
        run->thread_count++;
    else
        atomic_fetch_sub(&run->busy, 1);
    return rc;
}
