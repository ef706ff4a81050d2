/* loop_libuv.c - libuv for loop_checks.c. */
#include <assert.h>

#include <due/loop_libuv.h>

#include "loops/loop_glue.h"

static uv_loop_t loop;
static struct due_uv watcher;
static int closed;

static void on_closed(struct due_uv *w)
{
    closed += w == &watcher;
}

int glue_open(void)
{
    return uv_loop_init(&loop);
}

int glue_start(due_queue *q, due_loop_fn *fn, void *ctx, const due_loop_options *options)
{
    int rc = due_uv_start(&watcher, &loop, q, fn, ctx, options);

    closed = rc != 0;
    watcher.on_closed = on_closed;
    return rc;
}

void glue_stop(void)
{
    due_uv_stop(&watcher);
    while (closed == 0)
        uv_run(&loop, UV_RUN_NOWAIT);
    assert(closed == 1);
}

void glue_step(void)
{
    uv_run(&loop, UV_RUN_ONCE);
}

void glue_close(void)
{
    int rc = uv_loop_close(&loop);

    assert(rc == 0);
}
