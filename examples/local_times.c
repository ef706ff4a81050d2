/* local_times.c - a job that comes again at a local time, in summer and in winter.
 *
 * A report is due at half past two in the night in Berlin.  Whoever has written it puts the next
 * one in, under a key that has its time in it, and only then acks.  So one that is killed in
 * between writes its report once more, but the next night's is there once: its key is taken.
 *
 * In the night of 29 March 2026 the clocks go from two to three; in that of 25 October from three
 * back to two.
 */
#include <due/cron.h>
#include <due/due.h>
#include <stdio.h>
#include <time.h>

static const char when[] = "30 2 * * *";
static const char where[] = "Europe/Berlin";

/* An instant in UTC. */
static const char *utc(int64_t ns, char text[32])
{
    time_t seconds = ns / DUE_S(1);
    struct tm tm;

    return strftime(text, 32, "%Y-%m-%d %H:%M", gmtime_r(&seconds, &tm)) > 0 ? text : "NOT OK";
}

/* Put the next report in: 0, or a DUE_E* code. */
static int plan(due_queue *q)
{
    char key[32];
    due_extra more = { DUE_EXTRA_INIT, .key = key };
    due_spec spec = { DUE_SPEC_INIT, .data = "report", .len = 6, .more = &more };
    int rc = due_cron_next(when, where, due_now(q), &spec.at_ns);

    if (rc != 0)
        return rc;
    more.key_len = (size_t)snprintf(key, sizeof key, "report %lld", (long long)spec.at_ns);
    rc = due_enqueue(q, &spec, 0, NULL);
    return rc == DUE_EEXIST ? 0 : rc;
}

/* Write one report.  @killed: this process does not come to its ack. */
static int report(due_queue *q, due_clock *clock, int killed)
{
    char text[32];
    due_job job;
    int wrong = due_clock_turn_to(clock, due_next_deadline(q)) != 0;

    if (wrong || due_reserve(q, &job, 0) != 0)
        return 1;
    printf("  %s UTC: %.*s\n", utc(due_now(q), text), (int)job.len, (const char *)job.data);
    wrong += plan(q) != 0;
    return wrong + ((killed ? due_nack(&job, 0) : due_ack(&job)) != 0);
}

/* The reports of the nights from this instant on. */
static int nights(int64_t from_ns, const char *title)
{
    due_clock *clock = due_clock_manual(from_ns);
    due_options options = { DUE_OPTIONS_INIT, .manual = clock };
    due_queue *q;

    if (clock == NULL || due_open(&q, &options, NULL) != 0)
        return 1;
    puts(title);
    int wrong = plan(q) != 0;
    wrong += report(q, clock, 0);
    wrong += report(q, clock, 1);
    wrong += report(q, clock, 0);
    wrong += report(q, clock, 0);
    wrong += due_close(q, DUE_CLOSE_DISCARD, 0) != 0 || due_free(q) != 0;
    return wrong + (due_clock_free(clock) != 0);
}

int main(void)
{
    size_t at;
    const char *why = due_cron_error("30 2 31 JUN *", where, &at);

    printf("30 2 31 JUN *: byte %zu: %s\n", at, why == NULL ? "NOT OK" : why);
    why = due_cron_error(when, where, NULL);
    if (why != NULL) { /* a machine without the database */
        fprintf(stderr, "%s\n", why);
        return 77;
    }
    return nights(DUE_S(1774656000), "into summer") + nights(DUE_S(1792800000), "into winter") > 0;
}
