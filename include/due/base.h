/* base.h - what every header of libdue begins with: versions, errors, time, and clocks that are
 * turned by hand.
 */
#ifndef DUE_BASE_H
#define DUE_BASE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DUE_API          __attribute__((visibility("default")))
#define DUE_MUST_CHECK   __attribute__((warn_unused_result))
#define DUE_NONNULL(...) __attribute__((nonnull(__VA_ARGS__)))
#else
#define DUE_API
#define DUE_MUST_CHECK
#define DUE_NONNULL(...)
#endif

#define DUE_VERSION_MAJOR 0
#define DUE_VERSION_MINOR 1
#define DUE_VERSION_PATCH 0

/* The version of these headers, as due_version() says that of the library. */
#define DUE_VERSION (DUE_VERSION_MAJOR * 10000 + DUE_VERSION_MINOR * 100 + DUE_VERSION_PATCH)

/**
 * The version of the library that runs: 10,000 times the major number, and 100 times the minor one,
 * and the patch; and as text, such as "0.1.0".
 *
 * Threads:  any
 * Errors:   none
 */
DUE_API int due_version(void);
DUE_API const char *due_version_text(void);

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Every error of the library: name, value, text.  The values are negative errno values. */
#define DUE_ERRORS(X)                                                              \
    X(EINVAL, -EINVAL, "an argument is not allowed")                               \
    X(ENOMEM, -ENOMEM, "out of memory")                                            \
    X(EAGAIN, -EAGAIN, "nothing there, or no room, and not asked to wait")         \
    X(ETIMEDOUT, -ETIMEDOUT, "the timeout has passed")                             \
    X(ECLOSED, -ESHUTDOWN, "the queue is closed")                                  \
    X(ENOENT, -ENOENT, "no such job: unknown, or finished")                        \
    X(EBUSY, -EBUSY, "the job is being handled, or the queue is in use")           \
    X(EEXIST, -EEXIST, "a job has this key already")                               \
    X(EDEADLK, -EDEADLK, "it would wait for the caller itself")                    \
    X(EFORK, -ECHILD, "the queue belongs to the parent process")                   \
    X(ENOTSUP, -EOPNOTSUPP, "not supported here")                                  \
    X(ELIMIT, -EOVERFLOW, "a fixed limit is reached (jobs, topics, payload size)") \
    X(ESYS, -EIO, "the system refused a thread or a descriptor")                   \
    X(ESTALE, -ESTALE, "the lease has ended: somebody else may have the job")      \
    X(EINDOUBT, -EINPROGRESS, "sent to the store, and no answer in time")          \
    X(EFENCED, -EOWNERDEAD, "another process owns the stored jobs now")            \
    X(ESTORE, -ENOTCONN, "the store cannot be reached")                            \
    X(ENOSPC, -ENOSPC, "the store is full")                                        \
    X(EDURABILITY, -ENOLCK, "the store is less durable than required")             \
    X(EACCES, -EACCES, "the store refuses: user, password or permission")          \
    X(EVERSION, -EPROTO, "stored by a newer version")                              \
    X(ELOST, -ENODATA, "the store has lost what it had confirmed")                 \
    X(ECORRUPT, -EBADMSG, "stored or received bytes make no sense")

enum due_errno {
#define DUE_ERROR_ENUM(name, value, text) DUE_##name = (value),
    DUE_ERRORS(DUE_ERROR_ENUM)
#undef DUE_ERROR_ENUM
};

/**
 * The name ("DUE_EINVAL") and the text ("an argument is not allowed") of a DUE_E* code; of 0,
 * "DUE_OK" and "no error"; of anything else, "DUE_EUNKNOWN" and "unknown error".
 *
 * Threads:  any
 * Errors:   none
 */
DUE_API const char *due_error_name(int code);
DUE_API const char *due_error_text(int code);

/* What due_open() says about a failure, for people: never a secret in it. */
typedef struct due_error {
    char text[192]; /* what happened */
    char hint[192]; /* what to do about it, or empty */
} due_error;

/* ---- Time ------------------------------------------------------------------------------------ */

/* A time in nanoseconds.  @n may be a fraction: DUE_S(0.5). */
#define DUE_NS(n)   ((int64_t)(n))
#define DUE_US(n)   ((int64_t)((n)*INT64_C(1000)))
#define DUE_MS(n)   ((int64_t)((n)*INT64_C(1000000)))
#define DUE_S(n)    ((int64_t)((n)*INT64_C(1000000000)))
#define DUE_FOREVER INT64_MAX

enum due_clock_kind {
    DUE_CLOCK_MONOTONIC = 0, /* stands still while the machine is suspended; nobody can set it */
    DUE_CLOCK_BOOTTIME,      /* like it, but goes on during suspend */
    DUE_CLOCK_REALTIME       /* the wall clock, ns since 1970: a step forward fires what it passed,
                                a step back waits on */
};

/* A clock that stands still until it is turned by hand, for tests. */
typedef struct due_clock due_clock;

/**
 * A new manual clock that shows @start_ns (0 or more); NULL without memory or for a negative time.
 *
 * Threads:  any
 * Owner:    the caller, until due_clock_free()
 * Errors:   NULL
 */
DUE_API due_clock *due_clock_manual(int64_t start_ns) DUE_MUST_CHECK;

/**
 * Turn a manual clock forward by @by_ns, or to @to_ns.  In every open queue of this clock, everyone
 * whose time has come, or for whom a job has become due, is woken before the call returns.
 *
 * Threads:  any; not a hook of a queue on it
 * Cost:     as much as becomes due, if anybody waits
 * Errors:   DUE_EINVAL: negative, or back in time.  It stops at DUE_FOREVER - 1.
 */
DUE_API int due_clock_advance(due_clock *clock, int64_t by_ns) DUE_NONNULL(1);
DUE_API int due_clock_turn_to(due_clock *clock, int64_t to_ns) DUE_NONNULL(1);

/**
 * What the clock shows.
 *
 * Threads:  any
 * Errors:   none
 */
DUE_API int64_t due_clock_now(const due_clock *clock) DUE_NONNULL(1);

/**
 * Give the clock back.
 *
 * Threads:  one; no queue of this clock may still be open
 * Errors:   DUE_EBUSY: a queue of this clock has not been freed, or somebody turns it
 */
DUE_API int due_clock_free(due_clock *clock);

#ifdef __cplusplus
}
#endif

#endif
