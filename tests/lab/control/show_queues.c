/* show_queues.c - a program with two queues behind a control socket, for cli_control_program.sh: it
 * ends with its input, and says what was cancelled and what is left.
 *
 *     show_queues PATH
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "due/control.h"

/* In the socket's thread, while the main one sleeps. */
static void say_cancelled(void *ctx, due_queue *q, const due_job *job)
{
    (void)ctx;
    (void)q;
    printf("cancelled %zu\n", job->len);
}

static int put(due_queue *q, const char *topic, due_spec spec, const char *key)
{
    due_extra more = { DUE_EXTRA_INIT, .key = key, .key_len = key == NULL ? 0 : strlen(key) };

    spec.size = sizeof spec;
    spec.more = &more;
    spec.topic = due_topic(q, topic);
    return spec.topic < 0 ? spec.topic : due_enqueue(q, &spec, 0, NULL);
}

static int bury(due_queue *q)
{
    due_job job;
    int rc = due_reserve(q, &job, DUE_S(10));

    return rc == 0 ? due_bury(&job, "why") : rc;
}

/* One that is held until the end, one that is dead, one in a topic, one that is long. */
static int fill(due_queue *q, due_job *held)
{
    static char bytes[10000];

    memset(bytes, 'a', sizeof bytes);
    return put(q, "", (due_spec){ .data = "held", .len = 4 }, "held") ||
           due_reserve(q, held, DUE_S(3600)) ||
           put(q, "", (due_spec){ .data = "bad", .len = 3 }, NULL) || bury(q) ||
           put(q, "mail",
               (due_spec){ .data = "tea", .len = 3, .delay_ns = DUE_S(3600), .priority = 4 },
               NULL) ||
           put(q, "", (due_spec){ .data = bytes, .len = sizeof bytes, .delay_ns = DUE_S(3600) },
               "long");
}

static int take_rest(due_queue *q)
{
    due_job job;
    int rc;

    while ((rc = due_dequeue(q, &job, 0)) == 0) {
        printf("left %.*s\n", (int)job.len, (const char *)job.data);
        due_job_done(&job);
    }
    return rc == DUE_EAGAIN ? 0 : rc;
}

static int end(due_queue *q)
{
    return due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)) || due_free(q);
}

int main(int argc, char **argv)
{
    due_clock *clock = due_clock_manual(0);
    due_options by_hand = { DUE_OPTIONS_INIT, .manual = clock };
    due_queue *kitchen, *hall;
    due_error error = { "", "" };
    due_control *control;
    due_job held;
    char byte;

    if (argc != 2 || due_open(&kitchen, NULL, NULL) != 0 || due_open(&hall, &by_hand, NULL) != 0)
        return 2;
    due_control_queue queues[] = {
        { .queue = kitchen, .name = "kitchen" },
        { .queue = hall, .name = "hall", .flags = DUE_CONTROL_READ_ONLY }
    };
    due_control_options options = { DUE_CONTROL_OPTIONS_INIT, .path = argv[1], .queues = queues,
                                    .queue_count = 2, .on_cancel = say_cancelled };
    if (fill(kitchen, &held) != 0 ||
        put(hall, "", (due_spec){ .data = "\xff", .len = 1, .delay_ns = 5 }, NULL) != 0)
        return 2;
    if (due_control_open(&control, &options, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    return due_control_close(control) || due_ack(&held) || take_rest(kitchen) || end(kitchen) ||
           end(hall) || due_clock_free(clock);
}
