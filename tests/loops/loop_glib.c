/* loop_glib.c - GLib for loop_checks.c. */
#include <due/loop_glib.h>

#include "loops/loop_glue.h"

static GMainContext *context;
static struct due_glib watcher;

int glue_open(void)
{
    context = g_main_context_new();
    return 0;
}

int glue_start(due_queue *q, due_loop_fn *fn, void *ctx, const due_loop_options *options)
{
    return due_glib_start(&watcher, context, q, fn, ctx, options);
}

void glue_stop(void)
{
    due_glib_stop(&watcher);
}

void glue_step(void)
{
    g_main_context_iteration(context, TRUE);
}

void glue_close(void)
{
    g_main_context_unref(context);
}
