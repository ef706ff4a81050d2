/* loop_libev.h - a queue's jobs in the thread of a libev loop: see due/loop.h. */
#ifndef DUE_LOOP_LIBEV_H
#define DUE_LOOP_LIBEV_H

#include <ev.h>

#include "due/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

struct due_ev {
    struct due_loop loop;
    struct ev_loop *ev;
    ev_io io;
    ev_timer timer;
};

/* Watch the queue no more.  May be called twice, and in the function. */
static inline void due_ev_stop(struct due_ev *w)
{
    if (!due_loop_stop(&w->loop))
        return;
    ev_io_stop(w->ev, &w->io);
    ev_timer_stop(w->ev, &w->timer);
    due_loop_done(&w->loop);
}

static inline void due_ev_readable(struct ev_loop *ev, ev_io *io, int what)
{
    struct due_ev *w = (struct due_ev *)io->data;
    int rc = due_loop_turn(&w->loop);

    (void)what;
    if (rc > 0) {
        ev_io_stop(ev, io);
        ev_timer_set(&w->timer, rc / 1000., 0.);
        ev_timer_start(ev, &w->timer);
    } else if (rc < 0 && w->loop.running) {
        due_ev_stop(w);
        due_loop_tell(&w->loop, rc);
    }
}

static inline void due_ev_look_again(struct ev_loop *ev, ev_timer *timer, int what)
{
    struct due_ev *w = (struct due_ev *)timer->data;

    (void)what;
    ev_io_start(ev, &w->io);
}

/**
 * Watch @q in @ev: @fn is called with @ctx for each due job.  @options may be NULL.
 *
 * Threads:  that of the loop
 * Errors:   those of due_fd(); DUE_ESYS
 */
static inline int due_ev_start(struct due_ev *w, struct ev_loop *ev, due_queue *q, due_loop_fn *fn,
                               void *ctx, const due_loop_options *options)
{
    int rc = due_loop_init(&w->loop, q, fn, ctx, options);

    if (rc != 0)
        return rc;
    memset(&w->io, 0, sizeof w->io); /* what ev_init() does, whose casts compilers warn of */
    memset(&w->timer, 0, sizeof w->timer);
    w->ev = ev;
    w->io.cb = due_ev_readable;
    w->timer.cb = due_ev_look_again;
    w->io.data = w->timer.data = w;
    ev_io_set(&w->io, w->loop.fd, EV_READ);
    ev_io_start(ev, &w->io);
    return 0;
}

#ifdef __cplusplus
}
#endif

#endif
