/* run.c - what a run consists of: opened, started, ended. */
#include "run/run.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- Threads --------------------------------------------------------------------------------- */

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
    ctl_queues_free(run);
    ctl_stored_close(run);
    if (run->stop_fd >= 0)
        close(run->stop_fd);
    if (run->event_fd >= 0)
        close(run->event_fd);
    ctl_input_close(&run->in);
}

/* Start, watch, and wait for all: the exit status. */
static int carry_out(struct ctl_run *run, int signal_fd)
{
    const struct ctl_options *o = run->options;
    struct due_control *control = NULL;
    int signal;

    if (o->control != NULL &&
        ctl_control_open(&control, o->control, run->queue, o->queue, false) != 0)
        return CTL_BROKEN;
    int rc = start_threads(run);

    if (rc != 0) {
        ctl_say(&run->screen, "duectl: a thread cannot be started: %s\n", strerror(rc));
        ctl_run_broken(run, CTL_SAID);
    }
    signal = ctl_watch(run, signal_fd);
    for (int i = 0; i < run->thread_count; i++)
        pthread_join(run->threads[i].id, NULL);
    ctl_control_close(control);
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
    int signal_fd = ctl_signals_open();
    int status = CTL_BROKEN;

    if (signal_fd < 0)
        return status;
    if (stored)
        status = ctl_stored_open(run, signal_fd);
    else if (ctl_queues_open(run))
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
    run.stored.ended_fd = -1;
    ctl_tally_open(&run.tally);
    ctl_screen_open(&run.screen, true, options->exec != NULL);
    pthread_mutex_init(&run.crew.lock, NULL);
    pthread_mutex_init(&run.keys_lock, NULL);
    if (!ctl_input_open(&run.in, input_of(options)))
        return CTL_USAGE;
    if (open_descriptors(&run))
        status = go(&run);
    close_run(&run);
    return status;
}
