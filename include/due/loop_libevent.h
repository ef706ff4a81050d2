/* loop_libevent.h - a queue's jobs in the thread of a libevent base: see due/loop.h. */
#ifndef DUE_LOOP_LIBEVENT_H
#define DUE_LOOP_LIBEVENT_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "due/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

struct due_event_base {
    struct due_loop loop;
    struct event io;
    struct event timer;
};

/* Watch the queue no more.  May be called twice, and in the function. */
static inline void due_event_stop(struct due_event_base *w)
{
    if (!due_loop_stop(&w->loop))
        return;
    event_del(&w->io);
    event_del(&w->timer);
    due_loop_done(&w->loop);
}

static inline void due_event_readable(evutil_socket_t fd, short what, void *ctx)
{
    struct due_event_base *w = (struct due_event_base *)ctx;
    int rc = due_loop_turn(&w->loop);

    (void)fd;
    (void)what;
    if (rc > 0) {
        struct timeval pause = { 0, (suseconds_t)rc * 1000 };

        event_del(&w->io);
        event_add(&w->timer, &pause);
    } else if (rc < 0 && w->loop.running) {
        due_event_stop(w);
        due_loop_tell(&w->loop, rc);
    }
}

static inline void due_event_look_again(evutil_socket_t fd, short what, void *ctx)
{
    struct due_event_base *w = (struct due_event_base *)ctx;

    (void)fd;
    (void)what;
    event_add(&w->io, NULL);
}

/**
 * Watch @q in @base: @fn is called with @ctx for each due job.  @options may be NULL.
 *
 * Threads:  that of the loop
 * Errors:   those of due_fd(); DUE_ESYS
 */
static inline int due_event_start(struct due_event_base *w, struct event_base *base, due_queue *q,
                                  due_loop_fn *fn, void *ctx, const due_loop_options *options)
{
    int rc = due_loop_init(&w->loop, q, fn, ctx, options);

    if (rc != 0)
        return rc;
    if (event_assign(&w->io, base, w->loop.fd, EV_READ | EV_PERSIST, due_event_readable, w) == 0 &&
        event_assign(&w->timer, base, -1, 0, due_event_look_again, w) == 0 &&
        event_add(&w->io, NULL) == 0)
        return 0;
    due_loop_stop(&w->loop);
    due_loop_done(&w->loop);
    return DUE_ESYS;
}

#ifdef __cplusplus
}
#endif

#endif
