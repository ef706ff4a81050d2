/* loop_glib.h - a queue's jobs in the thread of a GLib main loop: see due/loop.h. */
#ifndef DUE_LOOP_GLIB_H
#define DUE_LOOP_GLIB_H

#include <glib.h>

#include "due/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

struct due_glib {
    struct due_loop loop;
    GSource *source;
    gpointer tag;
};

/* What GLib keeps: its own, so that it may outlive the struct for a while. */
struct due_glib_source {
    GSource source;
    struct due_glib *w;
};

/* Watch the queue no more.  May be called twice, and in the function. */
static inline void due_glib_stop(struct due_glib *w)
{
    if (!due_loop_stop(&w->loop))
        return;
    g_source_destroy(w->source);
    g_source_unref(w->source);
    due_loop_done(&w->loop);
}

static inline gboolean due_glib_dispatch(GSource *source, GSourceFunc fn, gpointer data)
{
    struct due_glib *w = ((struct due_glib_source *)(void *)source)->w;
    int rc;

    (void)fn;
    (void)data;
    if (g_source_get_ready_time(source) >= 0) { /* a pause has ended */
        g_source_set_ready_time(source, -1);
        g_source_modify_unix_fd(source, w->tag, G_IO_IN);
        return G_SOURCE_CONTINUE;
    }
    rc = due_loop_turn(&w->loop);
    if (!w->loop.running)
        return G_SOURCE_REMOVE;
    if (rc > 0) {
        g_source_modify_unix_fd(source, w->tag, (GIOCondition)0);
        g_source_set_ready_time(source, g_get_monotonic_time() + (gint64)rc * 1000);
    } else if (rc < 0) {
        due_glib_stop(w);
        due_loop_tell(&w->loop, rc);
        return G_SOURCE_REMOVE;
    }
    return G_SOURCE_CONTINUE;
}

/**
 * Watch @q in @context (NULL: the default one): @fn is called with @ctx for each due job.  @options
 * may be NULL.
 *
 * Threads:  that of the loop
 * Errors:   those of due_fd(); DUE_ESYS
 */
static inline int due_glib_start(struct due_glib *w, GMainContext *context, due_queue *q,
                                 due_loop_fn *fn, void *ctx, const due_loop_options *options)
{
    static GSourceFuncs calls = { NULL, NULL, due_glib_dispatch, NULL, NULL, NULL };
    int rc = due_loop_init(&w->loop, q, fn, ctx, options);

    if (rc != 0)
        return rc;
    w->source = g_source_new(&calls, sizeof(struct due_glib_source));
    ((struct due_glib_source *)(void *)w->source)->w = w;
    w->tag = g_source_add_unix_fd(w->source, w->loop.fd, G_IO_IN);
    g_source_attach(w->source, context);
    return 0;
}

#ifdef __cplusplus
}
#endif

#endif
