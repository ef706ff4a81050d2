/* loop.h - what the headers for event loops share: loop_libuv.h, loop_libevent.h, loop_libev.h,
 * loop_glib.h, loop_systemd.h.
 *
 *     static void greet(void *ctx, due_job *job)
 *     {
 *         printf("%.*s\n", (int)job->len, (const char *)job->data);
 *     }
 *
 *     struct due_uv w;
 *     int rc = due_uv_start(&w, uv_default_loop(), q, greet, NULL, NULL);
 *     uv_run(uv_default_loop(), UV_RUN_DEFAULT);
 *
 *   Jobs     Each due job is taken in the loop's thread and shown to the function, which may do all
 *            with it: ack it, or take it over by setting it to zero.  What is left of it is done
 *            with afterwards; a reserved one that has no answer then waits for its lease to end.
 *   Turns    A turn of the loop takes no more than batch_max jobs, then everything else in the loop
 *            has its turn.  Jobs may be enqueued by any thread.
 *   Sleep    The loop sleeps until the next deadline, in the kernel.  Where the descriptor stays
 *            readable with nothing to take, while the queue drains or its store is away, it is
 *            looked at every 1 to 100 ms instead.
 *   End      A queue that has closed, or whose jobs are somebody else's, is watched no more, and
 *            on_end says so.  The loop has then nothing to wait for from here.
 *   Free     Stop it, or hear on_end, before due_free().
 *   Memory   The struct that was started must stay until it was stopped or has ended; in the
 *            function, until that has returned.  It is used by the loop's thread only.
 *
 * These are inline functions: the program links the loop's library itself.
 */
#ifndef DUE_LOOP_H
#define DUE_LOOP_H

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "due/due.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called in the loop's thread for each due job. */
typedef void due_loop_fn(void *ctx, due_job *job);

/* Zero means default. */
typedef struct due_loop_options {
    int reserve;                       /* 1: jobs are taken on a lease, by due_reserve() */
    unsigned batch_max;                /* most jobs of a turn; default 64 */
    void (*on_end)(void *ctx, int rc); /* DUE_ECLOSED, DUE_EFENCED or DUE_EFORK */
} due_loop_options;

/* What each adapter has one of. */
struct due_loop {
    due_queue *q;
    due_loop_fn *fn;
    void *ctx;
    due_loop_options options;
    int running; /* 0: stopped, or never started */
    int fd;      /* a copy: a loop may know each only once; -1: closed */
};

/* Begin: 0, or an error of due_fd(), or DUE_ESYS. */
static inline int due_loop_init(struct due_loop *l, due_queue *q, due_loop_fn *fn, void *ctx,
                                const due_loop_options *options)
{
    int fd = due_fd(q);

    memset(l, 0, sizeof *l);
    l->q = q;
    l->fn = fn;
    l->ctx = ctx;
    if (options != NULL)
        l->options = *options;
    if (l->options.batch_max == 0)
        l->options.batch_max = 64;
    l->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    l->running = l->fd >= 0;
    if (fd < 0)
        return fd;
    return l->fd < 0 ? DUE_ESYS : 0;
}

/* 1: it was running, and is so no more; close its descriptor when the loop does not use it. */
static inline int due_loop_stop(struct due_loop *l)
{
    int was = l->running;

    l->running = 0;
    return was;
}

static inline void due_loop_done(struct due_loop *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

/* Is @rc the last that will be heard of the queue? */
static inline int due_loop_is_end(int rc)
{
    return rc == DUE_ECLOSED || rc == DUE_EFENCED || rc == DUE_EFORK || rc == DUE_EINVAL;
}

/* So many milliseconds until it is worth to look again, though the descriptor is readable. */
static inline int due_loop_pause_ms(struct due_loop *l)
{
    int64_t next = due_next_deadline(l->q), now = due_now(l->q);

    if (next <= now)
        return 10;
    return next - now > DUE_MS(99) ? 100 : (int)((next - now) / DUE_MS(1)) + 1;
}

/* A turn, when the descriptor is readable.  0: watch it; more: look again in so many milliseconds,
 * and do not watch it until then; DUE_EAGAIN: the function has stopped it; else: it has ended. */
static inline int due_loop_turn(struct due_loop *l)
{
    unsigned taken = 0;
    int futile = 0;

    for (;;) {
        due_job job;
        int rc = l->options.reserve ? due_reserve(l->q, &job, 0) : due_dequeue(l->q, &job, 0);
        struct pollfd look = { l->fd, POLLIN, 0 };

        if (rc == 0) {
            l->fn(l->ctx, &job);
            due_job_done(&job);
            if (!l->running)
                return DUE_EAGAIN;
            if (++taken >= l->options.batch_max)
                return 0;
        } else if (due_loop_is_end(rc)) {
            return rc;
        } else if (rc == DUE_EAGAIN && poll(&look, 1, 0) == 0) {
            return 0;
        } else if (futile++ > 0) { /* not only a job that has just become due */
            return due_loop_pause_ms(l);
        }
    }
}

/* It has ended, and has been stopped. */
static inline void due_loop_tell(struct due_loop *l, int rc)
{
    if (l->options.on_end != NULL)
        l->options.on_end(l->ctx, rc);
}

#ifdef __cplusplus
}
#endif

#endif
