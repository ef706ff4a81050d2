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

/* "buried: no such account" */
static void say_why(const due_record *record)
{
    static const char *const causes[] = { "", "buried", "attempts used up", "expired" };
    char reason[EXCERPT];

    if (record->cause == 0)
        return;
    printf("  %s", causes[record->cause]);
    if (record->reason[0] != '\0')
        printf(": %s",
               ctl_text_show(reason, sizeof reason, record->reason, strlen(record->reason)));
}

void ctl_restore_line(int64_t at_us, const due_record *record)
{
    char id[DUE_ID_TEXT];
    char date[CTL_WHEN];
    char name[EXCERPT];
    char text[EXCERPT];
    size_t len = strlen(record->topic);

    printf("%s  %s  %3d  %u  %u  %zu  %s  %s", due_id_format(record->id, id),
           ctl_date_show(date, at_us), record->priority, record->attempts, record->failures,
           record->len, len == 0 ? "-" : ctl_text_show(name, sizeof name, record->topic, len),
           ctl_text_show(text, sizeof text, record->data, record->len));
    say_why(record);
    putchar('\n');
}
