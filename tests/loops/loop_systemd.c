/* loop_systemd.c - sd-event for loop_checks.c. */
#include <due/loop_systemd.h>

#include "loops/loop_glue.h"

static sd_event *event;
static struct due_sd watcher;

int glue_open(void)
{
    return sd_event_new(&event);
}

int glue_start(due_queue *q, due_loop_fn *fn, void *ctx, const due_loop_options *options)
{
    return due_sd_start(&watcher, event, q, fn, ctx, options);
}

void glue_stop(void)
{
    due_sd_stop(&watcher);
}

void glue_step(void)
{
    sd_event_run(event, UINT64_MAX);
}

void glue_close(void)
{
    sd_event_unref(event);
}
