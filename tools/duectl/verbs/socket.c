/* socket.c - the control socket of a process that owns a queue: that of libdue-control. */
#include "verbs/verbs.h"

#include <stdio.h>

#include "due/control.h"

int ctl_control_open(struct due_control **control, const char *path, due_queue *q, const char *name,
                     bool takes_jobs)
{
    due_control_queue queue = { .queue = q, .name = name };
    due_control_options options = { DUE_CONTROL_OPTIONS_INIT, .path = path, .queues = &queue,
                                    .queue_count = 1 };
    due_error error = { "", "" };

    queue.flags = takes_jobs ? 0 : DUE_CONTROL_NO_PUT;
    if (due_control_open(control, &options, &error) == 0)
        return 0;
    fprintf(stderr, "duectl: --control %s%s%s\n", error.text, error.hint[0] == '\0' ? "" : "; ",
            error.hint);
    return CTL_BROKEN;
}

/* No hook of duectl calls it. */
void ctl_control_close(struct due_control *control)
{
    (void)due_control_close(control);
}
