/* control_socket.c - a program opens a socket by which its user looks into its queue, and changes
 * it, with the command duectl: see control_socket.sh.
 *
 *     control_socket [PATH]       or $KITCHEN_SOCKET
 */
#include <due/control.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the socket's thread: the job will not be served. */
static void tell_cancelled(void *ctx, due_queue *q, const due_job *job)
{
    (void)ctx;
    (void)q;
    printf("cancelled: %.*s\n", (int)job->len, (const char *)job->data);
}

static due_control *open_socket(due_queue *q, const char *path)
{
    due_control_queue queue = { .queue = q, .name = "kitchen" };
    due_control_options options = { DUE_CONTROL_OPTIONS_INIT, .path = path, .queues = &queue,
                                    .queue_count = 1, .on_cancel = tell_cancelled };
    due_control *control;
    due_error error;

    if (due_control_open(&control, &options, &error) == 0)
        return control;
    fprintf(stderr, "%s\n", error.text);
    return NULL;
}

/* In an hour. */
static int order(due_queue *q, const char *text, const char *key)
{
    due_extra more = { DUE_EXTRA_INIT, .key = key, .key_len = strlen(key) };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(3600), .data = text, .len = strlen(text),
                      .more = &more };

    return due_enqueue(q, &spec, 0, NULL);
}

/* Until the bill is asked for. */
static int serve(due_queue *q)
{
    int done = 0;
    due_job job;

    while (!done && due_dequeue(q, &job, DUE_S(30)) == 0) {
        printf("served: %.*s\n", (int)job.len, (const char *)job.data);
        done = job.len == 8 && memcmp(job.data, "the bill", 8) == 0;
        due_job_done(&job);
    }
    return done ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : getenv("KITCHEN_SOCKET");
    due_queue *q;

    if (path == NULL)
        return 77;
    if (due_open(&q, NULL, NULL) != 0 || order(q, "the roast", "roast") != 0 ||
        order(q, "the soup", "soup") != 0)
        return 1;
    due_control *control = open_socket(q, path);
    int rc = control == NULL ? 1 : serve(q);

    return due_control_close(control) || due_close(q, DUE_CLOSE_DISCARD, DUE_S(5)) || due_free(q) ||
           rc;
}
