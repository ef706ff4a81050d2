/* answers.c - what became of each job: for people, or as lines of JSON. */
#include "verbs/verbs.h"

#include <inttypes.h>
#include <stdio.h>

/* A job that is not there, or is somebody's, is a fault of the one who names it; a store that does
 * not answer is none. */
int ctl_status_of(int rc)
{
    if (rc == 0)
        return CTL_FINE;
    return due__ctl_is_of_job(rc) ? CTL_FAULTS : CTL_BROKEN;
}

static void note(struct ctl_answers *a, int rc)
{
    int status = ctl_status_of(rc);

    if (status > a->status)
        a->status = status;
}

void ctl_answer_line(struct ctl_answers *a)
{
    if (a->line.failed || fwrite(a->line.bytes, 1, a->line.len, stdout) != a->line.len)
        a->status = CTL_BROKEN;
    a->line.len = 0;
}

void ctl_answer(struct ctl_answers *a, due_id id, int rc)
{
    char text[DUE_ID_TEXT];

    note(a, rc);
    a->count += rc == 0;
    due_id_format(id, text);
    if (rc != 0)
        fprintf(stderr, "duectl: job %s: %s\n", text,
                rc == DUE_EBUSY && a->busy != NULL ? a->busy : due_error_text(rc));
    if (!a->look->json)
        return;
    due__ctl_buffer_text(&a->line, "{\"id\":\"%s\",\"result\":\"%s\"}\n", text,
                         rc == 0 ? a->done : due_error_name(rc));
    ctl_answer_line(a);
}

void ctl_answer_all(struct ctl_answers *a, uint64_t count, int rc)
{
    note(a, rc);
    a->count += count;
    if (rc != 0)
        fprintf(stderr, "duectl: %s\n", due_error_text(rc));
}

int ctl_answers_end(struct ctl_answers *a, int status)
{
    due__ctl_buffer_text(&a->line, a->look->json ? "{\"%s\":%" PRIu64 "}\n" : "%s %" PRIu64 "\n",
                         a->done, a->count);
    ctl_answer_line(a);
    due__ctl_buffer_free(&a->line);
    if (fflush(stdout) != 0)
        return CTL_BROKEN;
    return status > a->status ? status : a->status;
}
