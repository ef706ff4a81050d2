/* loop_libev.c - libev for loop_checks.c. */
#include <due/loop_libev.h>

#include "loops/loop_glue.h"

static struct ev_loop *loop;
static struct due_ev watcher;

int glue_open(void)
{
    loop = ev_loop_new(EVFLAG_AUTO);
    return loop == NULL;
}

int glue_start(due_queue *q, due_loop_fn *fn, void *ctx, const due_loop_options *options)
{
    return due_ev_start(&watcher, loop, q, fn, ctx, options);
}

void glue_stop(void)
{
    due_ev_stop(&watcher);
}

void glue_step(void)
{
    ev_run(loop, EVRUN_ONCE);
}

void glue_close(void)
{
    ev_loop_destroy(loop);
}
