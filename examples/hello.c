#include <due/due.h>
#include <stdio.h>

int main(void)
{
    due_queue *q;
    due_job job;

    if (due_open(&q, NULL, NULL) || due_enqueue_after(q, DUE_MS(300), "the tea", NULL) ||
        due_enqueue_after(q, DUE_MS(150), "the egg", NULL))
        return 1;
    for (int i = 0; i < 2 && due_dequeue(q, &job, DUE_S(5)) == 0; i++) {
        printf("%s is ready\n", (char *)job.ptr);
        due_job_done(&job);
    }
    return due_close(q, DUE_CLOSE_DISCARD, DUE_S(1)) || due_free(q);
}
