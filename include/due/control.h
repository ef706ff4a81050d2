/* control.h - a socket by which others look into the queues of this program, and change them:
 * libdue-control, which is linked besides libdue.
 *
 * Who is the program's user, and nobody else, connects to the socket and asks, as
 *
 *     duectl ls --control PATH
 *
 * does: for what waits and what is dead, for the figures; or for a change: a job is put in,
 * cancelled, given another time, a topic is paused.  docs/control.md says what can be asked for,
 * and in which words.  A request is carried out by a thread of the socket, with the calls of
 * due/due.h, so that it is a caller of the queue like any other: with a store an answer comes when
 * the change is stored, also with DUE_CONFIRM_ASYNC.  It never waits for room.
 *
 * Before you start
 *   1. Close the socket before due_free() of its queues; due_close() may come before or after.
 *   2. A job that a request cancels is seen by on_cancel alone, and what goes with a whole topic by
 *      the queue's on_discard.  A queue whose jobs carry pointers needs both, or
 *      DUE_CONTROL_READ_ONLY: a pointer that nobody gets is lost.
 *   3. A job that is put in by a request has bytes, never a pointer.  Where whoever takes jobs
 *      cannot do with that, the queue needs DUE_CONTROL_NO_PUT.  So it does with DUE_CONFIRM_ASYNC
 *      if nothing may be lost unseen: what the store refuses, such as a key that is taken, is told
 *      to on_settled alone, and the request is answered with DUE_OK.
 *   4. What one who waits for a store is allowed (store_timeout_ns) counts for requests too: on a
 *      manual clock that time passes only when the clock is turned.
 *   5. Nobody else is served while a request is carried out, or a hook runs.
 */
#ifndef DUE_CONTROL_H
#define DUE_CONTROL_H

#include "due/due.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DUE_CONTROL_QUEUES_MAX 256 /* queues behind one socket */

/* What is refused, with DUE_ENOTSUP. */
enum due_control_flag {
    DUE_CONTROL_NO_PUT = 1,   /* jobs are not put in */
    DUE_CONTROL_READ_ONLY = 2 /* nothing is changed: of a payload 4,096 bytes are shown, for to read
                                 more moves the job behind its equals */
};

/* A queue that can be asked for. */
typedef struct due_control_queue {
    due_queue *queue;     /* */
    const char *name;     /* copied: 1 to 64 of [A-Za-z0-9._-]; no two queues have the same */
    unsigned flags;       /* DUE_CONTROL_* */
    uint32_t reserved[5]; /* zero */
} due_control_queue;

/* What is opened.  Zero means default. */
typedef struct due_control_options {
    size_t size;                     /* DUE_CONTROL_OPTIONS_INIT */
    const char *path;                /* of the socket: shorter than 108 bytes; a relative one is
                                        from where the program is at open */
    const due_control_queue *queues; /* copied */
    size_t queue_count;              /* 1 to DUE_CONTROL_QUEUES_MAX */
    void (*on_cancel)(void *ctx, due_queue *queue, const due_job *job); /* a request has taken this
                                        job out for good; its bytes are lent for the call, and its
                                        pointer is the hook's.  What goes with its whole topic is
                                        shown to the queue's on_discard instead.  It may call the
                                        queue, but not close this socket, nor free the queue; while
                                        it runs the socket serves nobody */
    void (*on_thread_start)(void *ctx, const char *name); /* in the thread of the socket */
    void *ctx;                                            /* of both hooks */
    uint32_t reserved[8];                                 /* zero */
} due_control_options;

#define DUE_CONTROL_OPTIONS_INIT .size = sizeof(due_control_options)

/* An open socket. */
typedef struct due_control due_control;

/**
 * Open the socket: a file of mode 0600 from the moment it can be seen.  A socket that a process has
 * left there which is gone is taken over; any other file stays.  Of several processes that open it
 * at once one has it: its folder is locked (flock) for that, and must be readable; where a folder
 * cannot be locked nothing is taken over.  @error may be NULL.
 *
 * Threads:  any
 * Owner:    the caller, until due_control_close()
 * Cost:     a thread, which sleeps while nobody asks, and three descriptors; one more for each who
 *           is connected: 16 at a time.  Up to 2 seconds where another process keeps the folder
 *           locked
 * Errors:   DUE_EINVAL, DUE_ENOTSUP (an option or a flag of a newer version), DUE_ELIMIT (a path
 *           too long), DUE_EBUSY (the path is somebody's, or its folder is locked for 2 seconds),
 *           DUE_EACCES, DUE_ENOENT (no such folder),
 *           DUE_ENOMEM, DUE_ESYS (thread or descriptor refused); *@control is NULL then
 */
DUE_API int due_control_open(due_control **control, const due_control_options *options,
                             due_error *error) DUE_NONNULL(1, 2) DUE_MUST_CHECK;

/**
 * Close it, and take its file away.  Of the request that is being carried out the job at hand comes
 * to its end first, and no other is begun; who asked is told, as far as his socket takes the answer
 * at once.  Then all who are connected are hung up on, also where a child of fork() has copies of
 * the descriptors.  After 0 its queues are touched no more.  NULL is
 * allowed.
 *
 * Threads:  one; waits as long as the call of the queue does which is under way, and up to 5
 *           seconds until what it has changed is stored
 * Errors:   DUE_EDEADLK: in a hook that a request has led to.
 *           In a child after fork: 0, and the child's copy of the memory and of the listening
 *           descriptor is given back; the socket stays the parent's.  A child that calls neither
 *           this nor exec() keeps its copy: if the parent dies without closing, its path is not
 *           taken over while that child lives.
 */
DUE_API int due_control_close(due_control *control);

#ifdef __cplusplus
}
#endif

#endif
