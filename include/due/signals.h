/* signals.h - to be told of SIGTERM where one can wait for it, instead of in a signal handler.
 *
 *     due_signals *s;
 *     int rc = due_signals_open(&s, (const int[]){ SIGTERM, SIGINT }, 2);
 *     ... due_open(), due_workers_start() ...
 *     due_signals_wait(s, DUE_FOREVER);
 *     due_close(q, DUE_CLOSE_DRAIN, DUE_S(30));
 *
 * Nothing here is done unless it is asked for.  What it changes is said at due_signals_open().
 */
#ifndef DUE_SIGNALS_H
#define DUE_SIGNALS_H

#include "due/due.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct due_signals due_signals;

/**
 * From now on the @n @signals arrive here: they are blocked in the calling thread, and in every
 * thread that it starts after that.  So call it first, before any thread is there: a signal goes to
 * any thread that does not block it.  No disposition is changed; threads of the library block all
 * signals anyway.
 *
 * Threads:  any; mind what is said above
 * Owner:    the caller, until due_signals_close()
 * Cost:     a descriptor
 * Errors:   DUE_EINVAL (none, no such signal, or one that cannot be blocked), DUE_ENOMEM, DUE_ESYS
 *           (no descriptor to be had); *@signals is NULL then
 */
DUE_API int due_signals_open(due_signals **signals, const int *numbers, size_t n)
    DUE_NONNULL(1, 2) DUE_MUST_CHECK;

/**
 * Wait for one of them.  The answer is its number; a second one of the same kind that comes before
 * the first was taken is not counted.
 *
 * Threads:  any
 * Errors:   DUE_EINVAL, DUE_EAGAIN (timeout 0), DUE_ETIMEDOUT, DUE_ESYS
 */
DUE_API int due_signals_wait(due_signals *signals, int64_t timeout_ns) DUE_NONNULL(1);

/**
 * The descriptor, for poll, epoll or select: readable when due_signals_wait() need not wait.
 *
 * Threads:  any
 * Errors:   none
 */
DUE_API int due_signals_fd(const due_signals *signals) DUE_NONNULL(1) DUE_MUST_CHECK;

/**
 * Give it back.  Those signals that due_signals_open() blocked are unblocked in the calling thread,
 * so call it from the same; what has arrived and was not taken then does what it does by default.
 * NULL is allowed.
 *
 * Threads:  one, after every other call on it has returned
 * Errors:   none
 */
DUE_API void due_signals_close(due_signals *signals);

#ifdef __cplusplus
}
#endif

#endif
