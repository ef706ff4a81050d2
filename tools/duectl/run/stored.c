/* stored.c - a run whose jobs are stored: lines go in, due jobs come out.
 *
 * In: lines are stored in batches, as many as have come.  A batch is enqueued without waiting for
 * the store, then flushed: so it costs one journey.  Only after that is a line acknowledged.
 *
 * Out: at least once.  A due job is reserved, its text is written, and then it is acked.  Whatever
 * kills this process in between, the next one has the job again.  The lease has no end: it ends
 * with the process, and only one process owns the queue.
 */
#include "run/run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "inspect/inspect.h"

/* ---- Opened and closed ----------------------------------------------------------------------- */

/* A change that nobody waits for has come to its end.  One that was refused while no line is being
 * stored is a removal: then a job that was delivered would stay for ever. */
static void settled(void *ctx, due_id id, int rc)
{
    struct ctl_run *run = ctx;
    struct ctl_stored *s = &run->stored;

    if (rc == 0 || rc == DUE_ECLOSED)
        return;
    if (!atomic_load(&s->putting)) {
        if (rc != DUE_EFENCED) /* that has been logged */
            ctl_say(&run->screen, "duectl: a delivered job stays in the store: %s\n",
                    due_error_text(rc));
        ctl_run_broken(run, CTL_SAID);
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (s->refusals < sizeof s->refused / sizeof s->refused[0])
        s->refused[s->refusals] = (struct ctl_refusal){ .id = id, .rc = rc };
    s->refusals++;
    pthread_mutex_unlock(&s->lock);
}

static void restored(void *ctx, uint64_t count, int finished)
{
    struct ctl_run *run = ctx;

    (void)count;
    if (finished)
        eventfd_write(run->stored.loaded_fd, 1);
}

/* What is stored is as safe as the server keeps it, which many do not know. */
static void warn(struct ctl_run *run)
{
    struct due_store_stats stats;

    if (run->options->require != DUE_DURABLE_UNKNOWN)
        return;
    run->stored.store->verbs->stats(run->stored.store, &stats);
    if (stats.durability == DUE_DURABLE_NONE || stats.durability == DUE_DURABLE_UNKNOWN)
        ctl_say(&run->screen, "duectl: warning: the server %s; see duectl doctor\n",
                stats.durability == DUE_DURABLE_NONE ? "does not keep jobs over its own crash"
                                                     : "does not say whether it keeps jobs");
}

int ctl_stored_open(struct ctl_run *run, int signal_fd)
{
    struct ctl_stored *s = &run->stored;
    due_options options = { DUE_OPTIONS_INIT, .name = run->options->queue, .lease_ns = DUE_FOREVER,
                            .metrics = run->options->control != NULL };
    int status;

    pthread_mutex_init(&s->lock, NULL);
    s->loaded_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->loaded_fd < 0) {
        ctl_say(&run->screen, "duectl: %s\n", strerror(errno));
        return CTL_BROKEN;
    }
    s->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->ended_fd < 0) {
        ctl_say(&run->screen, "duectl: %s\n", strerror(errno));
        return CTL_BROKEN;
    }
    s->store = ctl_store_new(run->options);
    ctl_urls_forget();
    if (s->store == NULL)
        return CTL_USAGE;
    options.capacity = run->options->replay ? CTL_AHEAD : 0;
    if (run->options->retries)
        options.retry = ctl_retry_stored(run->options);
    options.store = s->store;
    options.confirm = DUE_CONFIRM_ASYNC;
    options.store_timeout_ns = DUE_FOREVER;
    options.open_timeout_ns = run->options->standby ? DUE_FOREVER : 0;
    options.on_log = ctl_run_log;
    options.on_settled = settled;
    options.on_restore = restored;
    options.ctx = run;
    status = ctl_queue_open(run, &options, signal_fd);
    if (status == CTL_FINE)
        warn(run);
    else if (run->queue == NULL)
        ctl_store_free(s->store);
    return status;
}

void ctl_stored_close(struct ctl_run *run)
{
    if (run->stored.loaded_fd >= 0)
        close(run->stored.loaded_fd);
    if (run->stored.ended_fd >= 0)
        close(run->stored.ended_fd);
    for (size_t i = 0; i < run->stored.n; i++)
        ctl_job_free(run, run->stored.jobs[i]);
    run->stored.n = 0;
}

bool ctl_stored_loaded(struct ctl_run *run)
{
    struct pollfd ready[] = {
        { .fd = run->stored.loaded_fd, .events = POLLIN },
        { .fd = run->stop_fd, .events = POLLIN },
    };

    while (poll(ready, 2, -1) < 0 && errno == EINTR)
        continue;
    return ready[1].revents == 0;
}

uint64_t ctl_stored_left(struct ctl_run *run)
{
    struct due_stats stats;

    return due_stats_read(run->queue, &stats) == 0 ? stats.waiting + stats.leased + stats.kept : 0;
}

/* ---- In -------------------------------------------------------------------------------------- */

/* Enqueue the batch, without waiting for the store: 0, or why no line can be put any more. */
static int enqueue(struct ctl_run *run)
{
    struct ctl_stored *s = &run->stored;
    size_t done = 0;

    while (done < s->n) {
        int rc =
            due_enqueue_batch(run->queue, s->specs + done, s->n - done, DUE_FOREVER, s->ids + done);

        if (rc == DUE_ECLOSED || rc == DUE_EFENCED)
            return rc;
        for (int i = 0; i < rc; i++)
            s->results[done++] = 0;
        if (rc < 0)
            s->results[done++] = rc;
    }
    return 0;
}

/* Give each refusal to its line; one that is no line's was a removal. */
static bool sort_refusals(struct ctl_run *run)
{
    struct ctl_stored *s = &run->stored;
    size_t room = sizeof s->refused / sizeof s->refused[0];
    bool fine = s->refusals <= room;

    for (size_t i = 0; i < s->refusals && i < room; i++) {
        size_t at = 0;

        while (at < s->n && !due_id_equal(s->ids[at], s->refused[i].id))
            at++;
        if (at < s->n)
            s->results[at] = s->refused[i].rc;
        else
            fine = false;
    }
    return fine;
}

/* A line that comes again was put in by an earlier run. */
static bool is_there(const struct ctl_stored *s, size_t i)
{
    const struct ctl_more *m = s->jobs[i]->more;

    return s->results[i] == DUE_EEXIST && m != NULL && m->again;
}

/* Say which lines are safe and which are not. */
static void tell(struct ctl_run *run)
{
    struct ctl_stored *s = &run->stored;
    char text[2048];
    size_t len = 0;
    uint64_t stored = 0;

    for (size_t i = 0; i < s->n; i++) {
        unsigned long long line = s->jobs[i]->line;

        if (s->results[i] != 0 && !is_there(s, i)) {
            ctl_tally_add(&run->tally, &run->tally.counts.faults, 1);
            ctl_say(&run->screen, "%s:%llu:1: not stored: %s\n", run->in.name, line,
                    due_error_text(s->results[i]));
            continue;
        }
        stored++;
        if (!run->options->ack_lines)
            continue;
        len += (size_t)snprintf(text + len, sizeof text - len, "ack %llu\n", line);
        if (len > sizeof text - 32) {
            ctl_say(&run->screen, "%s", text);
            len = 0;
        }
    }
    if (len > 0)
        ctl_say(&run->screen, "%s", text);
    ctl_tally_add(&run->tally, &run->tally.counts.jobs, stored);
}

/* 0, or why no line can be put any more. */
static int store_batch(struct ctl_run *run)
{
    struct ctl_stored *s = &run->stored;
    int rc;

    pthread_mutex_lock(&s->lock);
    s->refusals = 0;
    pthread_mutex_unlock(&s->lock);
    memset(s->ids, 0, sizeof s->ids);
    atomic_store(&s->putting, true);
    rc = enqueue(run);
    if (rc == 0)
        rc = due_flush(run->queue, DUE_FOREVER);
    atomic_store(&s->putting, false);
    pthread_mutex_lock(&s->lock);
    if (rc == 0 && !sort_refusals(run))
        ctl_run_broken(run, CTL_SAID);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

bool ctl_stored_flush(struct ctl_run *run)
{
    struct ctl_stored *s = &run->stored;
    int rc;

    if (s->n == 0)
        return true;
    rc = store_batch(run);
    if (rc == 0) {
        tell(run);
    } else if (rc != DUE_ECLOSED) {
        ctl_say(&run->screen, "duectl: %s\n", due_error_text(rc));
        ctl_run_broken(run, CTL_SAID);
    }
    for (size_t i = 0; i < s->n; i++)
        ctl_job_free(run, s->jobs[i]);
    s->n = 0;
    s->bytes = 0;
    return rc == 0;
}

/* The topic of a line, which is made; less than 0: why not. */
static int topic_of(struct ctl_run *run, const struct ctl_more *m)
{
    return m == NULL || m->topic == NULL ? 0 : due_topic(run->queue, m->topic);
}

bool ctl_stored_put(struct ctl_run *run, struct ctl_job *job, int64_t at_ns)
{
    struct ctl_stored *s = &run->stored;
    int topic = topic_of(run, job->more);

    if (topic < 0) {
        ctl_tally_add(&run->tally, &run->tally.counts.faults, 1);
        ctl_say(&run->screen, "%s:%llu:1: not stored: %s\n", run->in.name,
                (unsigned long long)job->line, due_error_text(topic));
        ctl_job_free(run, job);
        return true;
    }
    s->jobs[s->n] = job;
    s->specs[s->n] = (due_spec){ DUE_SPEC_INIT, .at_ns = at_ns, .data = job->text };
    s->specs[s->n].len = job->len;
    s->specs[s->n].topic = topic;
    s->specs[s->n].priority = job->more == NULL ? 0 : job->more->priority;
    s->specs[s->n].more = job->more == NULL ? NULL : &job->more->extra;
    s->bytes += job->len;
    s->n++;
    return (s->n < CTL_PUT && s->bytes < CTL_PUT_BYTES) || ctl_stored_flush(run);
}

/* ---- Out ------------------------------------------------------------------------------------- */

/* Why no more jobs come: the queue is closed, or something is wrong. */
static void end_taking(struct ctl_run *run, int rc)
{
    if (rc == DUE_ECLOSED)
        return;
    if (rc != DUE_EFENCED) /* that has been logged */
        ctl_say(&run->screen, "duectl: %s\n", due_error_text(rc));
    ctl_run_broken(run, CTL_SAID);
}

/* Begin with jobs that were reserved.  False: the run is being stopped, and nothing more is to be
 * taken; they are given back, and none of their attempts counts. */
static bool begin(struct ctl_run *run, due_job *due, int n)
{
    struct ctl_stored *s = &run->stored;
    bool stopping;

    pthread_mutex_lock(&s->lock);
    stopping = s->stopping;
    s->handling += !stopping;
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < n && stopping; i++)
        if (due_snooze(&due[i], 0) != 0)
            due_job_done(&due[i]);
    return !stopping;
}

/* They have been answered for.  A job that was done with before the end of the run must not come
 * again, so the queue is closed only after the last of them. */
static void end(struct ctl_run *run)
{
    struct ctl_stored *s = &run->stored;
    bool last;

    pthread_mutex_lock(&s->lock);
    last = --s->handling == 0 && s->stopping;
    pthread_mutex_unlock(&s->lock);
    eventfd_write(s->ended_fd, 1);
    if (last)
        ctl_run_close(run);
}

enum { FINISH_MS = 200 }; /* what an answer changes may land a little later */

/* It is no drain: that would let nothing come again. */
void ctl_stored_finish(struct ctl_run *run)
{
    struct pollfd ready[] = {
        { .fd = run->stored.ended_fd, .events = POLLIN },
        { .fd = run->stop_fd, .events = POLLIN },
    };
    eventfd_t ended;

    while (ctl_stored_left(run) > 0) {
        (void)poll(ready, 2, FINISH_MS);
        if (ready[1].revents != 0)
            return;
        eventfd_read(run->stored.ended_fd, &ended);
    }
    ctl_stored_stop(run);
}

static void close_now(struct ctl_run *run, int number)
{
    (void)number;
    ctl_run_close(run);
}

/* Closing waits for the server: the watch goes on meanwhile. */
void ctl_stored_stop(struct ctl_run *run)
{
    struct ctl_stored *s = &run->stored;
    bool last;

    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    last = s->handling == 0;
    pthread_mutex_unlock(&s->lock);
    if (last && ctl_run_start(run, close_now, 0) != 0)
        ctl_run_close(run);
}

static void count_taken(struct ctl_run *run, const due_job *due)
{
    ctl_tally_lateness(&run->tally, due->lateness_ns, due_now(run->queue) < due->deadline_ns);
}

/* If its line comes again the next one is stored before this one goes.  False: it is not; then this
 * one stays, and is handed out once more by who runs next. */
static bool follow(struct ctl_run *run, due_job *due)
{
    struct ctl_entry e;
    int rc = 0;

    if (ctl_round_read(&e, due->headers, due->headers_len)) {
        rc = ctl_round_follow(due);
        if (rc == 0)
            rc = due_flush(run->queue, DUE_FOREVER);
        if (rc == 0 && atomic_load(&run->broken) != 0) /* it was refused, which has been said */
            rc = DUE_ECLOSED;
    }
    if (rc == 0)
        return true;
    due_job_done(due);
    end_taking(run, rc);
    return false;
}

/* The text is out: it leaves the store.  What cannot be acked comes again. */
static void ack(struct ctl_run *run, due_job *due)
{
    int rc = follow(run, due) ? due_ack(due) : 0;

    if (rc == 0 || rc == DUE_EINDOUBT)
        return;
    due_job_done(due);
    end_taking(run, rc);
}

/* Has the time limit of a line that comes again passed?  Then this is said. */
static bool is_over(struct ctl_run *run, const due_job *due)
{
    char id[DUE_ID_TEXT];

    if (!ctl_round_is_over(due))
        return false;
    ctl_tally_add(&run->tally, &run->tally.counts.failed, 1);
    ctl_say(&run->screen, "duectl: job %s: its time limit had passed\n",
            due_id_format(due->id, id));
    return true;
}

/* Print what is due, and let go of it: 0 or -errno. */
static int print(struct ctl_run *run, due_job *due, int n)
{
    static char feed[] = "\n";
    struct iovec pieces[2 * CTL_BATCH];
    int printed = 0;
    int rc;

    for (int i = 0; i < n; i++) {
        void *text = (void *)(uintptr_t)due[i].data; /* writev() only reads it */

        if (is_over(run, &due[i]))
            continue;
        count_taken(run, &due[i]);
        pieces[2 * printed] = (struct iovec){ .iov_base = text, .iov_len = due[i].len };
        pieces[2 * printed + 1] = (struct iovec){ .iov_base = feed, .iov_len = 1 };
        printed++;
    }
    rc = printed == 0 ? 0 : ctl_screen_write(&run->screen, pieces, 2 * printed);
    if (rc == 0)
        ctl_tally_add(&run->tally, &run->tally.counts.delivered, (uint64_t)printed);
    for (int i = 0; i < n; i++) {
        if (rc == 0)
            ack(run, &due[i]);
        else
            due_job_done(&due[i]);
    }
    return rc;
}

void ctl_print_stored(struct ctl_run *run, int number)
{
    due_job due[CTL_BATCH];
    int rc = 0;

    (void)number;
    while (rc == 0) {
        int n = due_take(run->queue,
                         &(due_take_options){ DUE_TAKE_INIT, .lease_ns = DUE_LEASE_DEFAULT }, due,
                         CTL_BATCH, DUE_FOREVER);

        if (n <= 0) {
            end_taking(run, n);
            return;
        }
        if (!begin(run, due, n))
            return;
        rc = print(run, due, n);
        end(run);
    }
    ctl_run_broken(run, -rc);
}

struct ctl_job *ctl_job_copy(const due_job *due)
{
    struct ctl_job *job = malloc(sizeof *job + due->len + 1);

    if (job == NULL)
        return NULL;
    *job = (struct ctl_job){ .id = due->id, .len = due->len };
    if (due->len > 0)
        memcpy(job->text, due->data, due->len);
    job->text[due->len] = '\n';
    return job;
}

/* Hand one job to a command: 0, or an error. */
static int exec_one(struct ctl_run *run, int number, due_job *due, enum ctl_outcome *outcome)
{
    struct ctl_job *job = ctl_job_copy(due);

    if (job == NULL)
        return DUE_ENOMEM;
    if (due->attempts <= 1)
        count_taken(run, due);
    *outcome = ctl_exec_job(run, number, job);
    free(job);
    return 0;
}

static void count_end(struct ctl_run *run, bool failed)
{
    ctl_tally_add(&run->tally, &run->tally.counts.delivered, 1);
    ctl_tally_add(&run->tally, &run->tally.counts.failed, failed);
}

/* What the queue said to an answer; a job that it did not take back is not ours any more. */
static void answered(struct ctl_run *run, due_job *due, int rc)
{
    if (rc == 0 || rc == DUE_EINDOUBT)
        return;
    due_job_done(due);
    end_taking(run, rc);
}

static void give_up(struct ctl_run *run, due_job *due, const char *reason)
{
    count_end(run, true);
    if (follow(run, due))
        answered(run, due, due_bury(due, reason));
}

/* The command has ended: the job leaves the store, or comes again, or is dead. */
static void answer(struct ctl_run *run, due_job *due, enum ctl_outcome outcome)
{
    if (ctl_retries(run, due, outcome)) {
        answered(run, due, due_nack(due, DUE_DELAY_POLICY));
    } else if (outcome != CTL_DONE && run->options->retries) {
        give_up(run, due, "its command failed in the last attempt");
    } else {
        count_end(run, outcome != CTL_DONE);
        ack(run, due);
    }
}

/* One that is ours is run, and answered for.  0, or what ends this. */
static int attempt(struct ctl_run *run, int number, due_job *due)
{
    enum ctl_outcome outcome = CTL_FAILED;

    if (run->options->retries && ctl_is_fatal(run, due)) {
        give_up(run, due, CTL_FATAL);
        return 0;
    }
    if (is_over(run, due)) {
        ack(run, due);
        return 0;
    }
    int rc = exec_one(run, number, due, &outcome);
    if (rc == 0 && !ctl_was_stopped(&run->crew))
        answer(run, due, outcome);
    else
        due_job_done(due); /* stopped in the middle: it comes again */
    return rc;
}

void ctl_exec_stored(struct ctl_run *run, int number)
{
    due_job due;
    int rc = 0;

    while (rc == 0) {
        rc = due_reserve(run->queue, &due, DUE_FOREVER);
        if (rc != 0)
            break;
        if (!begin(run, &due, 1))
            return;
        rc = attempt(run, number, &due);
        end(run);
    }
    end_taking(run, rc);
}
