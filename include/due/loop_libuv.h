/* loop_libuv.h - a queue's jobs in the thread of a libuv loop: see due/loop.h. */
#ifndef DUE_LOOP_LIBUV_H
#define DUE_LOOP_LIBUV_H

#include <uv.h>

#include "due/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Its handles are libuv's until they are closed: the struct must stay until on_closed. */
struct due_uv {
    struct due_loop loop;
    uv_poll_t poll;
    uv_timer_t timer;
    int open;                            /* handles that are not closed yet */
    void (*on_closed)(struct due_uv *w); /* set it after the start; NULL: nobody is told */
};

static inline void due_uv_closed(uv_handle_t *handle)
{
    struct due_uv *w = (struct due_uv *)handle->data;

    if (--w->open > 0)
        return;
    due_loop_done(&w->loop);
    if (w->on_closed != NULL)
        w->on_closed(w);
}

/* Watch the queue no more.  May be called twice, and in the function. */
static inline void due_uv_stop(struct due_uv *w)
{
    if (!due_loop_stop(&w->loop))
        return;
    uv_close((uv_handle_t *)&w->poll, due_uv_closed);
    uv_close((uv_handle_t *)&w->timer, due_uv_closed);
}

static inline void due_uv_look_again(uv_timer_t *timer);

static inline void due_uv_readable(uv_poll_t *poll, int status, int events)
{
    struct due_uv *w = (struct due_uv *)poll->data;
    int rc = due_loop_turn(&w->loop);

    (void)status;
    (void)events;
    if (rc > 0) {
        uv_poll_stop(&w->poll);
        uv_timer_start(&w->timer, due_uv_look_again, (uint64_t)rc, 0);
    } else if (rc < 0 && w->loop.running) {
        due_uv_stop(w);
        due_loop_tell(&w->loop, rc);
    }
}

static inline void due_uv_look_again(uv_timer_t *timer)
{
    struct due_uv *w = (struct due_uv *)timer->data;

    uv_poll_start(&w->poll, UV_READABLE, due_uv_readable);
}

/**
 * Watch @q in @uv: @fn is called with @ctx for each due job.  @options may be NULL.
 *
 * Threads:  that of the loop
 * Errors:   those of due_fd(); DUE_ESYS, DUE_ENOMEM
 */
static inline int due_uv_start(struct due_uv *w, uv_loop_t *uv, due_queue *q, due_loop_fn *fn,
                               void *ctx, const due_loop_options *options)
{
    int rc = due_loop_init(&w->loop, q, fn, ctx, options);

    if (rc != 0)
        return rc;
    w->on_closed = NULL;
    rc = uv_poll_init(uv, &w->poll, w->loop.fd);
    if (rc != 0) {
        due_loop_stop(&w->loop);
        due_loop_done(&w->loop);
        return rc == UV_ENOMEM ? DUE_ENOMEM : DUE_ESYS;
    }
    uv_timer_init(uv, &w->timer); /* these two always succeed */
    uv_poll_start(&w->poll, UV_READABLE, due_uv_readable);
    w->poll.data = w->timer.data = w;
    w->open = 2;
    return 0;
}

#ifdef __cplusplus
}
#endif

#endif
