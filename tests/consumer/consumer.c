/* consumer.c - a program of somebody else's, built against the installed library. */
#include <due/due.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    due_queue *q = NULL;
    due_job job;
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_MS(1), .data = "tea", .len = 4 };

    if (due_open(&q, NULL, NULL) != 0 || due_enqueue(q, &spec, 0, NULL) != 0)
        return 1;
    if (due_dequeue(q, &job, DUE_S(10)) != 0 || strcmp(job.data, "tea") != 0)
        return 1;
    due_job_done(&job);
    if (due_close(q, DUE_CLOSE_DRAIN, DUE_S(10)) != 0 || due_free(q) != 0)
        return 1;
    puts("consumer: ok");
    return 0;
}
