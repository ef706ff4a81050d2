/* run.c - what a run consists of: opened, started, ended. */
#include "duectl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- The two queues -------------------------------------------------------------------------- */

static void count_left(struct ctl_run *run, enum ctl_clock clock, const due_job *due)
{
    struct ctl_job *job = due->ptr;

    ctl_tally_left(&run->tally, clock, due->deadline_ns, job);
    free(job);
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
static bool open_queues(struct ctl_run *run)
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

static void free_queue(struct ctl_run *run, due_queue *q)
{
    int rc;

    if (q == NULL || !close_queue(run, q, DUE_CLOSE_DISCARD, CTL_CLOSE_NS))
        return;
    rc = due_free(q);
    if (rc != 0)
        ctl_say(&run->screen, "duectl: a queue is not free: %s\n", due_error_text(rc));
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

void ctl_run_stop(struct ctl_run *run)
{
    eventfd_write(run->stop_fd, 1);
    if (run->options->store != NULL) {
        ctl_stored_stop(run);
        return;
    }
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

/* Those who take come before those who give. */
static int start_threads(struct ctl_run *run)
{
    bool stored = run->options->store != NULL;
    bool exec = run->options->exec != NULL;
    int workers = exec ? run->options->workers : 1;
    void (*printer)(struct ctl_run *, int) = stored ? ctl_print_stored : ctl_print;
    void (*worker)(struct ctl_run *, int) = stored ? ctl_exec_stored : ctl_exec;
    int rc = 0;

    for (int i = 0; i < workers && rc == 0; i++)
        rc = ctl_run_start(run, exec ? worker : printer, i);
    if (rc == 0 && run->wall != NULL)
        rc = ctl_run_start(run, ctl_pass, 0);
    if (rc == 0)
        rc = ctl_run_start(run, ctl_read, 0);
    return rc;
}

/* ---- A run ----------------------------------------------------------------------------------- */

static bool open_descriptors(struct ctl_run *run)
{
    run->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    run->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (run->stop_fd < 0 || run->event_fd < 0) {
        fprintf(stderr, "duectl: %s\n", strerror(errno));
        return false;
    }
    return true;
}

static void close_run(struct ctl_run *run)
{
    free_queue(run, run->wall);
    free_queue(run, run->queue);
    ctl_stored_close(run);
    if (run->stop_fd >= 0)
        close(run->stop_fd);
    if (run->event_fd >= 0)
        close(run->event_fd);
    ctl_input_close(&run->in);
}

int ctl_run_status(struct ctl_run *run, int signal)
{
    struct ctl_counts counts = ctl_tally_counts(&run->tally);

    if (signal != 0)
        return 128 + signal;
    if (atomic_load(&run->broken) != 0)
        return CTL_BROKEN;
    return counts.faults + counts.failed > 0 ? CTL_FAULTS : CTL_FINE;
}

/* Start, watch, and wait for all: the exit status. */
static int carry_out(struct ctl_run *run, int signal_fd)
{
    int rc = start_threads(run);
    int signal;

    if (rc != 0) {
        ctl_say(&run->screen, "duectl: a thread cannot be started: %s\n", strerror(rc));
        ctl_run_broken(run, CTL_SAID);
    }
    signal = ctl_watch(run, signal_fd);
    for (int i = 0; i < run->thread_count; i++)
        pthread_join(run->threads[i].id, NULL);
    ctl_report(run, signal);
    return ctl_run_status(run, signal);
}

/* A queue that is stored has its owner's lines besides those of the input, which may be none. */
static const char *input_of(const struct ctl_options *options)
{
    if (options->store != NULL && options->file == NULL && isatty(STDIN_FILENO))
        return "/dev/null";
    return options->file;
}

/* Opened, started and ended. */
static int go(struct ctl_run *run)
{
    bool stored = run->options->store != NULL;
    int signal_fd = ctl_watch_open();
    int status = CTL_BROKEN;

    if (signal_fd < 0)
        return status;
    if (stored)
        status = ctl_stored_open(run, signal_fd);
    else if (open_queues(run))
        status = CTL_FINE;
    if (status == CTL_FINE) {
        run->start_ns = due_now(run->queue);
        status = carry_out(run, signal_fd);
    }
    close(signal_fd);
    return status;
}

int ctl_run(const struct ctl_options *options)
{
    static struct ctl_run run;
    int status = CTL_BROKEN;

    run.options = options;
    run.stop_fd = -1;
    run.event_fd = -1;
    run.stored.loaded_fd = -1;
    ctl_tally_open(&run.tally);
    ctl_screen_open(&run.screen, true, options->exec != NULL);
    pthread_mutex_init(&run.crew.lock, NULL);
    if (!ctl_input_open(&run.in, input_of(options)))
        return CTL_USAGE;
    if (open_descriptors(&run))
        status = go(&run);
    close_run(&run);
    return status;
}
