/* restore_line.c - a job as `duectl restore --list` shows it, of a file and of a server alike. */
#include "inspect/inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { EXCERPT = 100 }; /* of a text */

const char *ctl_date_show(char text[CTL_WHEN], int64_t us)
{
    time_t at = (time_t)(us / 1000000);
    char date[CTL_WHEN - 8];
    struct tm tm;

    if (us >= INT64_MAX / 1000 - 1) {
        snprintf(text, CTL_WHEN, "never");
    } else if (gmtime_r(&at, &tm) == NULL ||
               strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        snprintf(text, CTL_WHEN, "?");
    } else {
        snprintf(text, CTL_WHEN, "%s.%03dZ", date, (int)(us / 1000 % 1000));
    }
    return text;
}

/* Of one that is dead: "  buried: no such account"; else "". */
static const char *show_why(char *text, size_t room, const due_record *record)
{
    static const char *const causes[] = { "", "buried", "attempts used up", "expired" };
    char reason[EXCERPT];
    bool said = record->cause != 0 && record->reason[0] != '\0';

    text[0] = '\0';
    if (record->cause != 0)
        snprintf(text, room, "  %s%s%s", causes[record->cause], said ? ": " : "",
                 said ? ctl_text_show(reason, sizeof reason, record->reason, strlen(record->reason))
                      : "");
    return text;
}

static void tell_job(int64_t at_us, const due_record *r, const char *text)
{
    static const char *const causes[] = { "", "buried", "attempts", "expired" };
    char id[DUE_ID_TEXT];

    ctl_object_begin();
    ctl_object_text("id", due_id_format(r->id, id));
    ctl_object_time(r->cause != 0 ? "died" : "due", at_us);
    ctl_object_number("priority", (uint64_t)r->priority);
    ctl_object_number("attempts", r->attempts);
    ctl_object_number("failures", r->failures);
    ctl_object_number("bytes", r->len);
    ctl_object_bytes("topic", r->topic, strlen(r->topic));
    ctl_object_text("text", text);
    if (r->cause != 0) {
        ctl_object_text("cause", causes[r->cause]);
        ctl_object_bytes("reason", r->reason, strlen(r->reason));
    }
    ctl_object_end();
}

void ctl_restore_line(int64_t at_us, const due_record *record)
{
    char id[DUE_ID_TEXT];
    char date[CTL_WHEN];
    char name[EXCERPT];
    char text[EXCERPT];
    char why[2 * EXCERPT];
    size_t len = strlen(record->topic);

    ctl_text_show(text, sizeof text, record->data, record->len);
    ctl_report_line(record->cause != 0 ? CTL_BAD : CTL_PLAIN, "%s  %s  %3d  %u  %u  %zu  %s  %s%s",
                    due_id_format(record->id, id), ctl_date_show(date, at_us), record->priority,
                    record->attempts, record->failures, record->len,
                    len == 0 ? "-" : ctl_text_show(name, sizeof name, record->topic, len), text,
                    show_why(why, sizeof why, record));
    tell_job(at_us, record, text);
}

/* ---- Topics ---------------------------------------------------------------------------------- */

void ctl_restore_heading(void)
{
    ctl_report_line(CTL_HEADING, "%-20s %9s  %-24s  %-24s %8s %8s", "topic", "jobs", "first due",
                    "last due", "tried", "most");
}

static void say_sum(const void *name, size_t len, const struct ctl_sum *sum)
{
    char first[CTL_WHEN];
    char last[CTL_WHEN];
    char shown[EXCERPT];
    char leased[48] = "";
    char unreadable[48] = "";

    if (sum->leased > 0)
        snprintf(leased, sizeof leased, "  %" PRIu64 " on a lease", sum->leased);
    if (sum->unreadable > 0)
        snprintf(unreadable, sizeof unreadable, "  %" PRIu64 " cannot be read", sum->unreadable);
    ctl_report_line(name == NULL || sum->unreadable > 0 ? CTL_BAD
                    : sum->leased > 0                   ? CTL_NOTABLE
                                                        : CTL_PLAIN,
                    "%-20s %9" PRIu64 "  %-24s  %-24s %8" PRIu64 " %8" PRIu64 "%s%s",
                    name == NULL ? "(dead)"
                    : len == 0   ? "-"
                                 : ctl_text_show(shown, sizeof shown, name, len),
                    sum->jobs, ctl_date_show(first, sum->first_us),
                    ctl_date_show(last, sum->last_us), sum->tried, sum->most, leased, unreadable);
}

void ctl_restore_sum(const void *name, size_t len, const struct ctl_sum *sum)
{
    say_sum(name, len, sum);
    ctl_object_begin();
    if (name == NULL)
        ctl_object_text("state", "dead");
    else
        ctl_object_bytes("topic", name, len);
    ctl_object_number("jobs", sum->jobs);
    ctl_object_time("first", sum->first_us);
    ctl_object_time("last", sum->last_us);
    ctl_object_number("tried", sum->tried);
    ctl_object_number("most", sum->most);
    ctl_object_number("leased", sum->leased);
    ctl_object_number("unreadable", sum->unreadable);
    ctl_object_end();
}
