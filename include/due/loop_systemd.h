/* loop_systemd.h - a queue's jobs in the thread of an sd-event loop: see due/loop.h. */
#ifndef DUE_LOOP_SYSTEMD_H
#define DUE_LOOP_SYSTEMD_H

#include <systemd/sd-event.h>
#include <time.h>

#include "due/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

struct due_sd {
    struct due_loop loop;
    sd_event_source *io;
    sd_event_source *timer;
};

/* Watch the queue no more.  May be called twice, and in the function. */
static inline void due_sd_stop(struct due_sd *w)
{
    if (!due_loop_stop(&w->loop))
        return;
    sd_event_source_set_enabled(w->io, SD_EVENT_OFF);
    sd_event_source_set_enabled(w->timer, SD_EVENT_OFF);
    sd_event_source_unref(w->io);
    sd_event_source_unref(w->timer);
    due_loop_done(&w->loop);
}

static inline int due_sd_readable(sd_event_source *io, int fd, uint32_t events, void *ctx)
{
    struct due_sd *w = (struct due_sd *)ctx;
    int rc = due_loop_turn(&w->loop);

    (void)fd;
    (void)events;
    if (rc > 0) {
        uint64_t now = 0;

        sd_event_now(sd_event_source_get_event(io), CLOCK_MONOTONIC, &now);
        sd_event_source_set_enabled(io, SD_EVENT_OFF);
        sd_event_source_set_time(w->timer, now + (uint64_t)rc * 1000);
        sd_event_source_set_enabled(w->timer, SD_EVENT_ONESHOT);
    } else if (rc < 0 && w->loop.running) {
        due_sd_stop(w);
        due_loop_tell(&w->loop, rc);
    }
    return 0;
}

static inline int due_sd_look_again(sd_event_source *timer, uint64_t when, void *ctx)
{
    struct due_sd *w = (struct due_sd *)ctx;

    (void)timer;
    (void)when;
    sd_event_source_set_enabled(w->io, SD_EVENT_ON);
    return 0;
}

/**
 * Watch @q in @event: @fn is called with @ctx for each due job.  @options may be NULL.
 *
 * Threads:  that of the loop
 * Errors:   those of due_fd(); DUE_ESYS, DUE_ENOMEM
 */
static inline int due_sd_start(struct due_sd *w, sd_event *event, due_queue *q, due_loop_fn *fn,
                               void *ctx, const due_loop_options *options)
{
    const uint32_t readable = 1; /* EPOLLIN */
    int rc = due_loop_init(&w->loop, q, fn, ctx, options);

    if (rc != 0)
        return rc;
    w->io = w->timer = NULL;
    rc = sd_event_add_io(event, &w->io, w->loop.fd, readable, due_sd_readable, w);
    if (rc >= 0)
        rc = sd_event_add_time(event, &w->timer, CLOCK_MONOTONIC, 0, 1000, due_sd_look_again, w);
    if (rc >= 0)
        rc = sd_event_source_set_enabled(w->timer, SD_EVENT_OFF);
    if (rc >= 0)
        return 0;
    w->io = sd_event_source_unref(w->io);
    w->timer = sd_event_source_unref(w->timer);
    due_loop_stop(&w->loop);
    due_loop_done(&w->loop);
    return rc == DUE_ENOMEM ? DUE_ENOMEM : DUE_ESYS;
}

#ifdef __cplusplus
}
#endif

#endif
