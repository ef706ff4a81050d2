/* work.c - the jobs of a stored queue are handed to commands, until a signal stops it.
 *
 * The library's own pool of workers does it: it reserves the jobs, keeps their leases while the
 * commands run, and answers as their exit statuses say.  Each attempt is stored before its command
 * starts, so one that takes duectl down with it counts.  When a signal comes nothing new is begun;
 * what runs has the grace to end, then it is sent SIGTERM and a second later SIGKILL, and its job
 * stays in the store.
 */
#include "run/run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs/verbs.h"
#include "due/workers.h"

enum { LOOK_MS = 1000 };                      /* after an error */
static const int64_t LOOK_NS = DUE_MS(20);    /* while it ends */
static const int64_t KILL_NS = DUE_MS(300);   /* for what was killed to end */
static const int64_t QUIET_NS = DUE_MS(1500); /* until it is said what is waited for */

enum how_ended { ENDED, TIME_IS_UP, SIGNALLED };

struct work {
    struct ctl_run run;
    int signal_fd;
    due_workers *pool;
    bool place[CTL_WORKERS_MAX]; /* L  of the commands that run */
    pthread_mutex_t lock;
    int topics[CTL_TOPICS_MAX];
    struct due_control *control; /* NULL: none */
};

/* ---- Handlers -------------------------------------------------------------------------------- */

/* A number for a command, that no other one has meanwhile. */
static int place_take(struct work *w)
{
    int at = 0;

    pthread_mutex_lock(&w->lock);
    while (w->place[at])
        at++;
    w->place[at] = true;
    pthread_mutex_unlock(&w->lock);
    return at;
}

static void place_give(struct work *w, int at)
{
    pthread_mutex_lock(&w->lock);
    w->place[at] = false;
    pthread_mutex_unlock(&w->lock);
}

/* The answer that lets it go, once the next one is stored if its line comes again. */
static due_answer ended(struct work *w, const due_job *due, due_answer answer)
{
    int rc = ctl_round_follow(due);

    if (rc == 0)
        return answer;
    ctl_say(&w->run.screen, "duectl: the next round is not stored: %s\n", due_error_text(rc));
    return due_answer_nack(DUE_DELAY_POLICY);
}

static due_answer answer_of(struct work *w, const due_job *due, enum ctl_outcome outcome)
{
    if (outcome == CTL_DONE)
        return ended(w, due, due_answer_ack());
    if (ctl_was_stopped(&w->run.crew))
        return due_answer_nack(0);
    if (ctl_retries(&w->run, due, outcome))
        return due_answer_nack(DUE_DELAY_POLICY);
    return ended(w, due, due_answer_bury("its command failed in the last attempt"));
}

/* Run its command, and say what becomes of the job. */
static due_answer attempt(struct work *w, const due_job *due)
{
    struct ctl_job *job = ctl_job_copy(due);

    if (job == NULL)
        return due_answer_nack(DUE_DELAY_POLICY);
    int place = place_take(w);
    enum ctl_outcome outcome = ctl_exec_job(&w->run, place, job);
    place_give(w, place);
    free(job);
    return answer_of(w, due, outcome);
}

static void handle(void *ctx, const due_job *due, due_answer *answer)
{
    struct work *w = ctx;
    struct ctl_run *run = &w->run;

    if (ctl_round_is_over(due))
        *answer = ended(w, due, due_answer_ack());
    else if (ctl_is_fatal(run, due))
        *answer = ended(w, due, due_answer_bury(CTL_FATAL));
    else
        *answer = attempt(w, due);
    if (answer->kind == DUE_ANSWER_ACK || answer->kind == DUE_ANSWER_BURY)
        ctl_tally_add(&run->tally, &run->tally.counts.delivered, 1);
    if (answer->kind == DUE_ANSWER_BURY)
        ctl_tally_add(&run->tally, &run->tally.counts.failed, 1);
}

/* ---- The end --------------------------------------------------------------------------------- */

static bool runs_any(struct work *w)
{
    bool any = false;

    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < CTL_WORKERS_MAX; i++)
        any = any || w->place[i];
    pthread_mutex_unlock(&w->lock);
    return any;
}

/* Nothing new is begun; wait until all commands have ended and been answered for.  When none runs
 * any more, it is the server that is waited for. */
static enum how_ended wait_for_end(struct work *w, int64_t within_ns)
{
    int64_t left = within_ns;
    int64_t quiet = 0;

    for (;;) {
        int64_t now = left < LOOK_NS ? left : LOOK_NS;
        int rc = due_workers_stop(w->pool, now);

        if (rc == 0)
            return ENDED;
        left -= now;
        quiet = runs_any(w) ? 0 : quiet + now;
        if (quiet >= QUIET_NS)
            ctl_say_closing(&w->run);
        if (ctl_signal_next(w->signal_fd) > 0)
            return SIGNALLED;
        if (left <= 0)
            return TIME_IS_UP;
    }
}

/* Commands have the grace, then they are sent SIGTERM, then SIGKILL; the second signal does not
 * wait for that.  False: something hangs even so, such as an answer that the server does not
 * take. */
static bool end(struct work *w)
{
    enum how_ended how = wait_for_end(w, w->run.options->grace_ns);

    if (how == TIME_IS_UP) {
        ctl_crew_signal(&w->run.crew, SIGTERM);
        how = wait_for_end(w, DUE_S(1));
    }
    if (how == ENDED)
        return true;
    ctl_crew_signal(&w->run.crew, SIGKILL);
    return wait_for_end(w, how == SIGNALLED ? KILL_NS : CTL_CLOSE_NS) == ENDED;
}

/* False: as ctl_queue_close(). */
static bool close_queue(struct work *w)
{
    struct ctl_run *run = &w->run;
    int rc;

    if (!ctl_queue_close(run, w->signal_fd))
        return false;
    rc = due_workers_free(w->pool);
    if (rc == 0)
        rc = due_free(run->queue);
    if (rc != 0)
        ctl_say(&run->screen, "duectl: the queue is not free: %s\n", due_error_text(rc));
    return true;
}

/* ---- The beginning --------------------------------------------------------------------------- */

static void log_text(void *ctx, enum due_log_level level, const char *text)
{
    struct work *w = ctx;

    ctl_run_log(&w->run, level, text);
    if (level == DUE_LOG_ERROR)
        eventfd_write(w->run.event_fd, 1);
}

static int open_queue(struct work *w)
{
    struct ctl_run *run = &w->run;
    const struct ctl_options *o = run->options;
    due_options options = { DUE_OPTIONS_INIT, .name = o->queue };
    int status;

    options.store = ctl_store_new(o);
    ctl_urls_forget();
    if (options.store == NULL)
        return CTL_USAGE;
    options.retry = ctl_retry_stored(o);
    options.share = o->shared ? DUE_SHARED : DUE_OWNED;
    options.prefetch_max = 1; /* a command is slow: others take what is due meanwhile */
    options.open_timeout_ns = o->standby ? DUE_FOREVER : 0;
    options.metrics = o->control != NULL;
    options.on_log = log_text;
    options.ctx = w;
    status = ctl_queue_open(run, &options, w->signal_fd);
    if (run->queue == NULL)
        ctl_store_free(options.store);
    return status;
}

/* 0 or a DUE_E* code. */
static int start(struct work *w)
{
    const struct ctl_options *o = w->run.options;
    due_workers_options options = { DUE_WORKERS_INIT, .extend_max_ns = DUE_FOREVER };

    options.in_flight_max = (size_t)o->workers; /* a command is slow: nothing is fetched ahead */
    for (size_t i = 0; i < o->topic_count; i++) {
        w->topics[i] = due_topic(w->run.queue, o->topics[i]);
        if (w->topics[i] < 0)
            return w->topics[i];
    }
    return due_workers_start(&w->pool, w->run.queue, o->topic_count > 0 ? w->topics : NULL,
                             o->topic_count, (size_t)o->workers, handle, w, &options);
}

static bool works(struct work *w)
{
    struct due_workers_stats s;

    return due_workers_stats_read(w->pool, &s) == 0 && s.threads > 0;
}

/* Until a signal comes, or all workers have ended because the store has another owner.  That is
 * looked for once an error has been logged.  The exit status. */
static int serve(struct work *w)
{
    struct pollfd ready[] = {
        { .fd = w->signal_fd, .events = POLLIN },
        { .fd = w->run.event_fd, .events = POLLIN },
    };
    int signal = 0;

    while (signal == 0 && works(w)) {
        if (poll(ready, 2, ready[1].fd < 0 ? LOOK_MS : -1) < 0 && errno != EINTR)
            break;
        if (ready[1].revents != 0)
            ready[1].fd = -1;
        signal = ctl_signal_next(w->signal_fd);
    }
    return signal > 0 ? 128 + signal : CTL_BROKEN;
}

static void report(struct work *w)
{
    struct ctl_counts counts = ctl_tally_counts(&w->run.tally);

    if (w->run.options->stats)
        ctl_say(&w->run.screen, "commands   %llu jobs, %llu given up\n",
                (unsigned long long)counts.delivered, (unsigned long long)counts.failed);
}

static int open_control(struct work *w)
{
    const struct ctl_options *o = w->run.options;

    return o->control == NULL
               ? 0
               : ctl_control_open(&w->control, o->control, w->run.queue, o->queue, true);
}

static int work(struct work *w)
{
    struct ctl_run *run = &w->run;
    int status = open_queue(w);
    bool ended;
    int rc;

    if (status != CTL_FINE)
        return status;
    status = open_control(w);
    if (status != CTL_FINE) {
        close_queue(w);
        return status;
    }
    rc = start(w);
    if (rc != 0) {
        ctl_control_close(w->control);
        ctl_say(&run->screen, "duectl: %s\n", due_error_text(rc));
        close_queue(w);
        return CTL_BROKEN;
    }
    status = serve(w);
    ended = end(w);
    report(w);
    ctl_control_close(w->control);
    if (!ended || !close_queue(w)) {
        ctl_say(&run->screen, "duectl: left behind: the server does not answer\n");
        _exit(status);
    }
    return status;
}

int ctl_work(const struct ctl_options *options)
{
    static struct work w;
    int status;

    w.signal_fd = ctl_signals_open();
    if (w.signal_fd < 0)
        return CTL_BROKEN;
    w.run.options = options;
    ctl_tally_open(&w.run.tally);
    ctl_screen_open(&w.run.screen, false, true);
    pthread_mutex_init(&w.run.crew.lock, NULL);
    pthread_mutex_init(&w.lock, NULL);
    w.run.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w.run.event_fd < 0) {
        fprintf(stderr, "duectl: %s\n", strerror(errno));
        status = CTL_BROKEN;
    } else {
        status = work(&w);
        close(w.run.event_fd);
    }
    close(w.signal_fd);
    return status;
}
