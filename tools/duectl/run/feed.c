/* feed.c - lines become jobs.
 *
 * A delay, and what comes again each so often, counts from the reading of its line: the clock is
 * read when the line has come, not when it is looked at.  A date that has passed is due at once.
 *
 * In a log the first timestamp is now, and the others keep their distance from it, divided by the
 * speed.  A line without a timestamp goes with the line before it.  A timestamp earlier than one
 * before it stands in order of time as long as its time has not come yet; else the line is
 * due at once.
 */
#include "run/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "due/cron.h"

struct feed {
    struct ctl_run *run; /* NULL: only look for faults */
    struct ctl_screen *screen;
    struct ctl_tally *tally;
    const char *name;
    int64_t now_ns;    /* when the lines at hand were read */
    bool stamped;      /* the log has shown a timestamp */
    int64_t first_ns;  /* in the log: the first timestamp, */
    int64_t latest_ns; /* the latest of all, */
    int64_t base_ns;   /* when the first was read, */
    int64_t last_ns;   /* and the deadline of the line before */
};

static void fault(struct feed *f, uint64_t line, size_t column, const char *reason)
{
    ctl_tally_add(f->tally, &f->tally->counts.faults, 1);
    if (f->run == NULL)
        ctl_progress_end();
    ctl_say(f->screen, "%s:%llu:%zu: %s\n", f->name, (unsigned long long)line, column, reason);
    if (f->run != NULL)
        return;
    ctl_object_begin();
    ctl_object_number("line", line);
    ctl_object_number("column", column);
    ctl_object_text("text", reason);
    ctl_object_end();
}

/* The job of a line whose text begins at @from; NULL: no memory. */
static struct ctl_job *job_of(const struct ctl_line *line, size_t from)
{
    size_t len = line->len - from;
    struct ctl_job *job = malloc(sizeof *job + len + 1);

    if (job == NULL)
        return NULL;
    *job = (struct ctl_job){ .line = line->number, .len = len };
    if (len > 0)
        memcpy(job->text, line->bytes + from, len);
    job->text[len] = '\n';
    return job;
}

/* A job goes in, or is no more.  False: the run has been stopped. */
static bool put_job(struct feed *f, enum ctl_clock clock, int64_t at_ns, struct ctl_job *job)
{
    struct ctl_tally *t = f->tally;
    int rc = 0;

    if (f->run->options->store != NULL)
        return ctl_stored_put(f->run, job, at_ns);
    if (!ctl_key_take(f->run, job))
        rc = DUE_EEXIST;
    if (rc == 0)
        rc = ctl_job_put(f->run, clock, at_ns, job);
    if (rc == 0) {
        ctl_tally_add(t, &t->counts.jobs, 1);
        return true;
    }
    if (rc == DUE_ECLOSED)
        ctl_tally_left(t, clock, at_ns, job);
    else
        fault(f, job->line, 1, due_error_text(rc));
    ctl_job_free(f->run, job);
    return rc != DUE_ECLOSED;
}

/* Put a text in, with what its line says besides; @entry NULL: it is of a log. */
static bool put(struct feed *f, enum ctl_clock clock, int64_t at_ns, const struct ctl_line *line,
                size_t from, struct ctl_entry *entry)
{
    struct ctl_job *job = job_of(line, from);
    const char *why = job == NULL ? due_error_text(DUE_ENOMEM) : NULL;

    if (job != NULL && entry != NULL)
        (void)ctl_more_new(&job->more, entry, f->run->options->zone, job->text, job->len, &why);
    if (why != NULL) {
        fault(f, line->number, 1, why);
        free(job);
        return true;
    }
    if (job->more != NULL && job->more->again)
        atomic_store(&f->run->again, true);
    return put_job(f, clock, at_ns, job);
}

static void arrived(void *ctx)
{
    struct feed *f = ctx;

    if (f->run != NULL)
        f->now_ns = due_now(f->run->queue);
}

static bool paused(void *ctx)
{
    struct feed *f = ctx;

    return f->run == NULL || f->run->options->store == NULL || ctl_stored_flush(f->run);
}

/* ---- Schedules ------------------------------------------------------------------------------- */

static int64_t later(int64_t ns, int64_t by_ns)
{
    int64_t sum;

    return __builtin_add_overflow(ns, by_ns, &sum) ? DUE_FOREVER : sum;
}

static bool put_cron(struct feed *f, const struct ctl_line *line, struct ctl_entry *entry)
{
    bool stored = f->run->options->store != NULL;
    const char *zone = entry->fields.zone.given ? entry->fields.zone.bytes : f->run->options->zone;
    int64_t now_ns = stored ? f->now_ns : due_now(f->run->wall);
    int64_t at_ns = 0;
    int rc = due_cron_next(entry->cron, zone, now_ns, &at_ns);

    if (rc == 0)
        return put(f, stored ? CTL_MONOTONIC : CTL_WALL, at_ns, line, entry->text, entry);
    fault(f, line->number, 1, due_error_text(rc));
    return true;
}

static bool put_entry(struct feed *f, const struct ctl_line *line, struct ctl_entry *entry)
{
    if (entry->kind == CTL_CRON)
        return put_cron(f, line, entry);
    if (entry->kind != CTL_DATE)
        return put(f, CTL_MONOTONIC, later(f->now_ns, entry->ns), line, entry->text, entry);
    if (f->run->options->store != NULL && entry->ns > f->now_ns)
        return put(f, CTL_MONOTONIC, entry->ns, line, entry->text, entry);
    if (f->run->wall != NULL && entry->ns > due_now(f->run->wall))
        return put(f, CTL_WALL, entry->ns, line, entry->text, entry);
    ctl_tally_add(f->tally, &f->tally->counts.past, 1);
    return put(f, CTL_MONOTONIC, f->now_ns, line, entry->text, entry);
}

/* Some editors put a mark of three bytes before the first line. */
static size_t mark_of_utf8(const struct ctl_line *line)
{
    return line->number == 1 && line->len >= 3 && memcmp(line->bytes, "\xef\xbb\xbf", 3) == 0 ? 3
                                                                                              : 0;
}

static bool schedule_line(void *ctx, const struct ctl_line *line)
{
    struct feed *f = ctx;
    size_t mark = mark_of_utf8(line);
    struct ctl_entry entry;

    ctl_tally_add(f->tally, &f->tally->counts.lines, 1);
    if (f->run == NULL)
        ctl_progress("check: lines", line->number, 0);
    if (line->too_long) {
        fault(f, line->number, CTL_LINE_MAX + 1, "the line is longer than 1048576 bytes");
        return true;
    }
    ctl_entry_read(&entry, line->bytes + mark, line->len - mark);
    entry.text += mark;
    if (entry.kind == CTL_NOTHING)
        return true;
    if (entry.kind == CTL_FAULT) {
        fault(f, line->number, mark + entry.column, entry.reason);
        return true;
    }
    if (f->run != NULL)
        return put_entry(f, line, &entry);
    ctl_tally_add(f->tally, &f->tally->counts.jobs, 1);
    return true;
}

/* ---- Logs ------------------------------------------------------------------------------------ */

/* @distance_ns of the log in time to wait, rounded up. */
static int64_t at_speed(int64_t distance_ns, double speed)
{
    double wait = (double)distance_ns / speed;
    int64_t whole = wait < 0x1p62 ? (int64_t)wait : DUE_FOREVER;

    if (speed == 1)
        return distance_ns;
    return (double)whole < wait && whole != DUE_FOREVER ? whole + 1 : whole;
}

/* When the line with this timestamp is due; before the first of all it is 0. */
static int64_t replay_time(struct feed *f, int64_t stamp_ns)
{
    struct ctl_tally *t = f->tally;
    int64_t distance_ns;

    if (!f->stamped) {
        f->stamped = true;
        f->first_ns = stamp_ns;
        f->latest_ns = stamp_ns;
        f->base_ns = f->now_ns;
    }
    if (stamp_ns < f->latest_ns)
        ctl_tally_add(t, &t->counts.out_of_order, 1);
    else
        f->latest_ns = stamp_ns;

    if (stamp_ns < f->first_ns)
        return 0;
    if (__builtin_sub_overflow(stamp_ns, f->first_ns, &distance_ns))
        return DUE_FOREVER;
    return later(f->base_ns, at_speed(distance_ns, f->run->options->speed));
}

static bool log_line(void *ctx, const struct ctl_line *line)
{
    struct feed *f = ctx;
    struct ctl_tally *t = f->tally;
    int64_t stamp_ns;

    ctl_tally_add(t, &t->counts.lines, 1);
    if (line->too_long) {
        fault(f, line->number, CTL_LINE_MAX + 1, "the line is longer than 1048576 bytes");
        return true;
    }
    if (ctl_stamp_find(line->bytes, line->len, &stamp_ns))
        f->last_ns = replay_time(f, stamp_ns);
    else
        ctl_tally_add(t, &t->counts.unstamped, 1);
    if (f->last_ns < f->now_ns)
        f->last_ns = f->now_ns;
    return put(f, CTL_MONOTONIC, f->last_ns, line, 0, NULL);
}

/* ---- The reader ------------------------------------------------------------------------------ */

static int feed(struct feed *f, const struct ctl_input *in, int stop_fd, bool replay)
{
    struct ctl_sink sink = {
        .arrived = arrived,
        .line = replay ? log_line : schedule_line,
        .paused = paused,
        .ctx = f,
    };
    int rc = ctl_lines_read(in, stop_fd, &sink);

    if (rc < 0) {
        ctl_tally_add(f->tally, &f->tally->counts.faults, 1);
        ctl_say(f->screen, "duectl: %s: cannot be read to its end: %s\n", in->name, strerror(-rc));
    }
    return rc;
}

void ctl_read(struct ctl_run *run, int number)
{
    struct feed f = {
        .run = run,
        .screen = &run->screen,
        .tally = &run->tally,
        .name = run->in.name,
    };
    int rc = feed(&f, &run->in, run->stop_fd, run->options->replay);

    (void)number;
    if (rc != 0)
        atomic_store(&run->unread, true);
    if (rc > 0)
        return;
    if (run->options->store != NULL) {
        if (ctl_stored_loaded(run))
            ctl_stored_finish(run);
    } else if (!atomic_load(&run->again)) {
        /* At the end everything is still delivered at its time.  The passer closes the other
         * queue.  What comes again has no end. */
        ctl_run_drain(run, run->wall != NULL ? run->wall : run->queue);
    }
}

int ctl_check(const struct ctl_options *options)
{
    static struct ctl_screen screen;
    static struct ctl_tally tally;
    struct feed f = { .screen = &screen, .tally = &tally };
    struct ctl_input in;

    if (!ctl_input_open(&in, options->file))
        return CTL_USAGE;
    ctl_report_begin(options->json);
    ctl_screen_open(&screen, false, false);
    ctl_tally_open(&tally);
    f.name = in.name;
    (void)feed(&f, &in, -1, false);
    ctl_input_close(&in);
    ctl_progress_end();
    ctl_say(&screen, "%s: %llu lines, %llu jobs, %llu cannot be read\n", f.name,
            (unsigned long long)tally.counts.lines, (unsigned long long)tally.counts.jobs,
            (unsigned long long)tally.counts.faults);
    ctl_object_begin();
    ctl_object_number("lines", tally.counts.lines);
    ctl_object_number("jobs", tally.counts.jobs);
    ctl_object_number("faults", tally.counts.faults);
    ctl_object_end();
    return ctl_report_end(tally.counts.faults > 0 ? CTL_FAULTS : CTL_FINE);
}
