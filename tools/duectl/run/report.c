/* report.c - what a run says at its end: what was left, and the statistics. */
#include "run/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- What was left --------------------------------------------------------------------------- */

struct moment {
    int64_t wall_ns;
    int64_t monotonic_ns;
};

static struct moment now_of(struct ctl_run *run)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (struct moment){
        .wall_ns = DUE_S(now.tv_sec) + now.tv_nsec,
        .monotonic_ns = due_now(run->queue),
    };
}

/* How far ahead a job is; less than 0: its time has passed. */
static int64_t ahead_ns(const struct moment *now, enum ctl_clock clock, int64_t deadline_ns)
{
    return deadline_ns - (clock == CTL_WALL ? now->wall_ns : now->monotonic_ns);
}

static void say_job(struct ctl_run *run, const struct moment *now, int64_t ahead,
                    const struct ctl_left_job *job)
{
    char date[64] = "";
    char zone[16] = "";
    char duration[CTL_DURATION];
    struct tm tm;
    int64_t at_ns;
    time_t at;

    if (__builtin_add_overflow(now->wall_ns, ahead, &at_ns))
        at_ns = INT64_MAX;
    at = (time_t)(at_ns / DUE_S(1));
    if (localtime_r(&at, &tm) != NULL) {
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
        strftime(zone, sizeof zone, "%z", &tm);
    }
    ctl_say(&run->screen, "duectl: left: %s.%03d%s (%s%s): %s\n", date,
            (int)(at_ns / 1000000 % 1000), zone, ahead < 0 ? "due since " : "in ",
            ctl_duration(duration, ahead < 0 ? -ahead : ahead), job->text);
}

/* The earliest jobs of both clocks, in order of time. */
static uint64_t say_first(struct ctl_run *run, const struct moment *now)
{
    struct ctl_left *left = run->tally.left;
    uint64_t at[2] = { 0, 0 };
    uint64_t said = 0;

    while (said < CTL_FIRST_LEFT && at[0] + at[1] < left[0].count + left[1].count) {
        int64_t ahead[2] = { INT64_MAX, INT64_MAX };
        enum ctl_clock first;

        for (int i = 0; i < 2; i++) {
            if (at[i] < left[i].count)
                ahead[i] = ahead_ns(now, (enum ctl_clock)i, left[i].first[at[i]].deadline_ns);
        }
        first = ahead[0] <= ahead[1] ? CTL_MONOTONIC : CTL_WALL;
        say_job(run, now, ahead[first], &left[first].first[at[first]]);
        at[first]++;
        said++;
    }
    return said;
}

/* What stopped the run. */
static const char *cause(int signal)
{
    switch (signal) {
    case SIGINT:
        return " by SIGINT";
    case SIGTERM:
        return " by SIGTERM";
    case SIGHUP:
        return " by SIGHUP";
    default:
        return "";
    }
}

/* What is stored is not lost: whoever runs next has it. */
static void say_kept(struct ctl_run *run, int signal)
{
    ctl_say(&run->screen, "duectl: stopped%s: %llu jobs stay in the store%s\n", cause(signal),
            (unsigned long long)ctl_stored_left(run),
            atomic_load(&run->unread) ? ", and the rest of the input was not read" : "");
}

static void say_left(struct ctl_run *run, int signal)
{
    struct ctl_left *left = run->tally.left;
    uint64_t count = left[0].count + left[1].count;
    struct moment now = now_of(run);
    uint64_t said;

    ctl_say(&run->screen, "duectl: stopped%s: %llu jobs left%s\n", cause(signal),
            (unsigned long long)count,
            atomic_load(&run->unread) ? ", and the rest of the input was not read" : "");
    said = say_first(run, &now);
    if (count > said)
        ctl_say(&run->screen, "duectl: left: and %llu more\n", (unsigned long long)(count - said));
}

/* ---- Statistics ------------------------------------------------------------------------------ */

static void say_lateness(struct ctl_run *run)
{
    static const struct {
        const char *name;
        double percent;
    } marks[] = { { "p50", 50 }, { "p90", 90 }, { "p99", 99 }, { "max", 100 } };
    const struct ctl_histogram *h = &run->tally.lateness;
    char text[256] = "";
    size_t len = 0;

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        char duration[CTL_DURATION] = "-";

        if (h->count > 0)
            ctl_duration(duration, ctl_histogram_percentile(h, marks[i].percent));
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s %s", i == 0 ? "" : "   ",
                                marks[i].name, duration);
    }
    ctl_say(&run->screen, "lateness   %s\n", text);
}

static void say_stored(struct ctl_run *run)
{
    struct due_stats stats;

    if (due_stats_read(run->queue, &stats) == 0)
        ctl_say(&run->screen, "store      %llu restored, %llu batches, %llu put again\n",
                (unsigned long long)stats.restored, (unsigned long long)stats.batches,
                (unsigned long long)stats.mirrored);
    ctl_say(&run->screen, "left       %llu\n", (unsigned long long)ctl_stored_left(run));
}

static void say_statistics(struct ctl_run *run)
{
    struct ctl_counts n = ctl_tally_counts(&run->tally);
    struct ctl_left *left = run->tally.left;
    char duration[CTL_DURATION];

    ctl_say(&run->screen, "--- duectl: %s\n",
            ctl_duration(duration, due_now(run->queue) - run->start_ns));
    ctl_say(&run->screen, "lines      %llu read, %llu jobs, %llu cannot be read\n",
            (unsigned long long)n.lines, (unsigned long long)n.jobs, (unsigned long long)n.faults);
    if (run->options->replay)
        ctl_say(&run->screen, "log        %llu without a timestamp, %llu out of order\n",
                (unsigned long long)n.unstamped, (unsigned long long)n.out_of_order);
    else
        ctl_say(&run->screen, "past       %llu dates had passed when they were read\n",
                (unsigned long long)n.past);
    if (run->options->exec == NULL)
        ctl_say(&run->screen, "printed    %llu\n", (unsigned long long)n.delivered);
    else
        ctl_say(&run->screen, "commands   %llu, %llu failed\n", (unsigned long long)n.delivered,
                (unsigned long long)n.failed);
    if (run->options->store != NULL)
        say_stored(run);
    else
        ctl_say(&run->screen, "left       %llu\n",
                (unsigned long long)(left[0].count + left[1].count));
    say_lateness(run);
    ctl_say(&run->screen, "early      %llu\n", (unsigned long long)n.early);
}

void ctl_report(struct ctl_run *run, int signal)
{
    int broken = atomic_load(&run->broken);

    /* Whoever reads the output has gone, and knows it. */
    if (broken == EPIPE)
        broken = CTL_SAID;
    if (broken > 0)
        ctl_say(&run->screen, "duectl: standard output: %s\n", strerror(broken));
    if (run->options->store != NULL && (signal != 0 || broken != 0))
        say_kept(run, signal);
    else if (signal != 0 || broken > 0)
        say_left(run, signal);
    if (run->options->stats)
        say_statistics(run);
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
