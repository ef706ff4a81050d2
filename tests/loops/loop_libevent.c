/* loop_libevent.c - libevent for loop_checks.c. */
#include <due/loop_libevent.h>

#include "loops/loop_glue.h"

static struct event_base *base;
static struct due_event_base watcher;

int glue_open(void)
{
    base = event_base_new();
    return base == NULL;
}

int glue_start(due_queue *q, due_loop_fn *fn, void *ctx, const due_loop_options *options)
{
    return due_event_start(&watcher, base, q, fn, ctx, options);
}

void glue_stop(void)
{
    due_event_stop(&watcher);
}

void glue_step(void)
{
    event_base_loop(base, EVLOOP_ONCE);
}

void glue_close(void)
{
    event_base_free(base);
}
