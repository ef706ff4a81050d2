/* two_topics.c - mail and reports in one queue: topics, priorities, pause and resume.
 *
 * A topic is a line of its own: each leaves in its order, each can be held up alone, and a consumer
 * takes from one, from some, or from all.
 */
#include <due/due.h>
#include <stdio.h>
#include <string.h>

static int put(due_queue *q, int topic, int priority, int64_t at_ns, const char *text)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = at_ns, .topic = topic, .priority = priority };

    spec.data = text;
    spec.len = strlen(text);
    return due_enqueue(q, &spec, 0, NULL);
}

static void show(due_queue *q, due_job *job)
{
    printf("  %-8s priority %3d  %.*s\n", due_topic_name(q, job->topic), job->priority,
           (int)job->len, (const char *)job->data);
    due_job_done(job);
}

int main(void)
{
    due_queue *q;
    due_job job;

    if (due_open(&q, NULL, NULL) != 0)
        return 1;
    int mail = due_topic(q, "mail");
    int reports = due_topic(q, "reports");
    if (mail < 0 || reports < 0)
        return 1;

    /* One deadline for all: among equals the higher priority goes first, then the earlier. */
    int64_t at_ns = due_now(q) + DUE_MS(50);
    if (put(q, mail, 0, at_ns, "newsletter") || put(q, mail, 200, at_ns, "password reset") ||
        put(q, mail, 0, at_ns, "birthday greeting") || put(q, reports, 9, at_ns, "turnover") ||
        put(q, reports, 0, at_ns, "visitors"))
        return 1;

    due_take_options of_mail = { DUE_TAKE_INIT, .topics = &mail, .topic_count = 1 };
    printf("only mail, in its order:\n");
    for (int i = 0; i < 2 && due_take(q, &of_mail, &job, 1, DUE_S(5)) == 1; i++)
        show(q, &job);

    printf("mail is paused, so any topic means the reports:\n");
    if (due_pause(q, mail) != 0)
        return 1;
    while (due_dequeue(q, &job, 0) == 0)
        show(q, &job);

    printf("mail is resumed; what waited is still there:\n");
    if (due_resume(q, mail) != 0)
        return 1;
    while (due_dequeue(q, &job, 0) == 0)
        show(q, &job);

    return due_close(q, DUE_CLOSE_DISCARD, DUE_S(1)) || due_free(q);
}
