/* due.h - an in-process priority delay queue.
 *
 * A queue holds jobs until their deadline, then hands each to exactly one caller.
 *
 *   Order    Per topic the earliest deadline leaves first; among equals the higher priority, then
 *            the earlier arrival (of one producer).  DUE_ORDER_PRIORITY: among jobs that are due,
 *            the higher priority first.
 *   Time     int64_t nanoseconds, on the queue's clock.  A job is never handed out before its
 *            deadline.  Times too far ahead saturate at DUE_FOREVER, which never comes.
 *            Timeouts are counted on the monotonic clock, whatever the queue's clock (on a manual
 *            clock: on that clock).  0 does not wait; DUE_FOREVER waits without end.
 *   Errors   A call that can fail returns 0 (or a number) or a negative DUE_E* code, and then has
 *            changed nothing, nor what its arguments point to, but where it says so; only a handle
 *            (*queue, a single *job) is then NULL or zero, so that giving it back does nothing.
 *   Store    With a store, a call that changes something waits for it, for up to its own timeout or
 *            store_timeout_ns in all (on a manual clock: the latter), and may also answer
 *            DUE_ETIMEDOUT, DUE_ENOSPC, DUE_EACCES, DUE_EDURABILITY, DUE_EFENCED: nothing has
 *            changed; or DUE_EINDOUBT, the one exception: it was sent, the answer did not come, and
 *            the queue sees it through.  Who names a job of a queue that closes gets DUE_ECLOSED
 *            once it was left to the store.
 *   Structs  What you fill in begins with its size (DUE_SPEC_INIT and its kin): a library that is
 *            newer than your headers takes what they lack as zero, an older one answers DUE_ENOTSUP
 *            if a field is set that it does not know.  What the library fills in has room for more
 *            fields, which read as zero.
 *
 * Before you start
 *   1. Not across fork(): in a child every call that may answer an error returns DUE_EFORK, and
 *      due_free() only gives the memory back.
 *   2. A job that was handed out stays the queue's memory until due_job_done(): call it for each.
 *   3. Close before you free: due_free() of an open queue answers DUE_EBUSY.
 *   4. The hooks (log, thread start, discard, event, settled, restore) must not call their queue,
 *      nor turn its manual clock.  Any other queue they may open, use, close and free.
 *
 * Threads: may these two run at the same time on one queue?
 *              enqueue  dequeue  cancel  close  free
 *     enqueue    yes      yes     yes     yes    NO    an enqueue during close gets DUE_ECLOSED
 *     dequeue             yes     yes     yes    NO    a dequeue that waits gets DUE_ECLOSED
 *     cancel                      yes     yes    NO    dequeue or cancel wins, never both
 *     close                               yes    NO
 * "cancel" stands for every call that names a job, a topic or the whole queue.
 */
#ifndef DUE_DUE_H
#define DUE_DUE_H

#include "due/base.h"
#include "due/job.h"
#include "due/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Opening --------------------------------------------------------------------------------- */

/**
 * Open a queue.  @options may be NULL, @error may be NULL.
 *
 * Threads:  any
 * Owner:    the caller, until due_close() and due_free()
 * Cost:     two threads (three with DUE_PROXIES_ALWAYS, none with DUE_PROXIES_NEVER); a descriptor
 *           on the realtime and boottime clocks
 * Errors:   DUE_EINVAL, DUE_ENOMEM, DUE_ESYS (thread or descriptor refused), DUE_ENOTSUP (clock;
 *           of DUE_SHARED an option or a store that cannot be shared);
 *           with a store those of its open(), see due/store.h: DUE_EBUSY, DUE_ESTORE, DUE_EACCES,
 *           DUE_EVERSION, DUE_EDURABILITY, DUE_ECORRUPT, DUE_ELIMIT, DUE_ENOSPC
 */
DUE_API int due_open(due_queue **queue, const due_options *options, due_error *error)
    DUE_NONNULL(1) DUE_MUST_CHECK;

enum due_close_mode {
    DUE_CLOSE_DRAIN = 0, /* deliver what is held, each job at its deadline, before closing */
    DUE_CLOSE_DISCARD    /* hand everything held to on_discard now; with a store, leave it there */
};

/**
 * Close a queue: enqueues are refused from now on.  DRAIN goes on delivering until no job is left;
 * DISCARD gives every job that still waits to on_discard; with a store what is on its way there is
 * sent first, for up to @timeout_ns, and the jobs stay there.  Then everyone who waits gets
 * DUE_ECLOSED, and after 0 touches the queue no more.  Jobs handed out earlier may still be done
 * with.  May be called again after DUE_ETIMEDOUT, also with another mode; once closed it answers 0.
 *
 * Threads:  any
 * Errors:   DUE_EINVAL, DUE_EFORK, DUE_ETIMEDOUT: jobs left, or callers or handlers have not left
 *           yet; DUE_EDEADLK: in a handler; DUE_ENOMEM: only while another thread closes too
 */
DUE_API int due_close(due_queue *q, enum due_close_mode mode, int64_t timeout_ns)
    DUE_NONNULL(1) DUE_MUST_CHECK;

/**
 * Give back a closed queue.  NULL is allowed.
 *
 * Threads:  one, after every other call has returned, but for those that waited when it was closed;
 *           waits for who turns its manual clock just then
 * Errors:   DUE_EBUSY: not closed, one who waited or another due_close() still inside, a lent job
 *           not yet done with, or a pool of workers not yet freed.
 *           In a child after fork: 0, and the child's copy of the memory is given back.
 */
DUE_API int due_free(due_queue *q);

/**
 * The number of the topic called @name (at most DUE_TOPIC_LENGTH bytes), made if it is new; "" is
 * topic 0.  due_topic_name: its name, valid until due_free(), or NULL for a number never given.
 *
 * Threads:  any
 * Errors:   DUE_EINVAL, DUE_ENOMEM, DUE_ELIMIT (DUE_TOPIC_MAX), DUE_ECLOSED, DUE_EFORK
 */
DUE_API int due_topic(due_queue *q, const char *name) DUE_NONNULL(1, 2) DUE_MUST_CHECK;
DUE_API const char *due_topic_name(due_queue *q, int topic) DUE_NONNULL(1);

/**
 * What the queue's clock shows, also in a child after fork; if it is shared the store's, as far as
 * that is known: at most a round trip ahead.
 *
 * Threads:  any
 * Errors:   none
 */
DUE_API int64_t due_now(const due_queue *q) DUE_NONNULL(1);

/* ---- Putting in ------------------------------------------------------------------------------ */

/**
 * Give @q the job described by @spec; without a time in that it is due at a moment of this call.
 * @id may be NULL.  @timeout_ns is how long to wait for room in a queue with a capacity.
 *
 * Threads:  any; waits for a consumer only if the queue is full; with a group or a key it takes a
 *           lock for a moment
 * Owner:    spec->data is copied; spec->ptr is the queue's on success, the caller's on any error;
 *           one that is replaced, because of its key, is shown to on_discard
 * Sees:     what was written before the enqueue, the dequeuer sees after the dequeue
 * Cost:     O(1); at most one allocation if there are more than 32 bytes
 * Errors:   DUE_EINVAL, DUE_ENOTSUP (a field of a newer version), DUE_ENOMEM, DUE_ELIMIT,
 *           DUE_EAGAIN (full, timeout 0), DUE_ETIMEDOUT (full for all of @timeout_ns), DUE_EEXIST
 *           (its key is taken; @id has that job's),
 *           DUE_ECLOSED, DUE_EFORK; with a store as said above (DUE_EINDOUBT: @id has the job's)
 */
DUE_API int due_enqueue(due_queue *q, const due_spec *spec, int64_t timeout_ns, due_id *id)
    DUE_NONNULL(1, 2) DUE_MUST_CHECK;

/**
 * A timer: give @q the pointer @ptr, to be handed out at @at_ns on the queue's clock, or @delay_ns
 * from now.  As due_enqueue() with timeout 0 of a job that has nothing else: in topic 0, with
 * priority 0; at once if the time has passed, also at 0.  @ptr and @id may be NULL.
 *
 * Threads:  any
 * Owner:    @ptr is the queue's on success, the caller's on any error
 * Cost:     O(1); the shortest way in
 * Errors:   DUE_EINVAL (a negative time; with a store, a pointer), DUE_EAGAIN (full), and those of
 *           due_enqueue()
 */
DUE_API int due_enqueue_at(due_queue *q, int64_t at_ns, void *ptr, due_id *id)
    DUE_NONNULL(1) DUE_MUST_CHECK;
DUE_API int due_enqueue_after(due_queue *q, int64_t delay_ns, void *ptr, due_id *id)
    DUE_NONNULL(1) DUE_MUST_CHECK;

/**
 * Give @n jobs at once.  @ids may be NULL, or has room for @n.  Waits for room as above; jobs are
 * taken in order, and the call answers how many were (1 to @n), or an error if none was.  One whose
 * key is taken ends it; its place in @ids then has the id of who has the key.  With a store so do
 * jobs in doubt (DUE_EINDOUBT), of which each has its id in @ids, behind those of the jobs taken.
 *
 * Threads:  any
 * Owner:    as due_enqueue(), for the jobs taken
 * Cost:     less than @n single calls
 * Errors:   as due_enqueue(); DUE_EINVAL (any of @specs, or @n is 0)
 */
DUE_API int due_enqueue_batch(due_queue *q, const due_spec *specs, size_t n, int64_t timeout_ns,
                              due_id *ids) DUE_NONNULL(1, 2) DUE_MUST_CHECK;

/**
 * Why an enqueue of @spec answers DUE_EINVAL, DUE_ENOTSUP, or DUE_ELIMIT for its length: what is
 * wrong with it, in words that name the field.  NULL: nothing is.
 *
 * Threads:  any
 * Owner:    the text is the library's, and constant
 * Errors:   none
 */
DUE_API const char *due_spec_error(const due_queue *q, const due_spec *spec) DUE_NONNULL(1, 2);

/* ---- Taking out ------------------------------------------------------------------------------ */

/**
 * Take a due job for good (at most once: a crash now loses it).  Topics with something due take
 * turns.
 *
 * Threads:  any
 * Owner:    the job's bytes are lent until due_job_done(); a carried pointer is the caller's
 * Errors:   DUE_EAGAIN (timeout 0), DUE_ETIMEDOUT, DUE_ECLOSED, DUE_EINVAL, DUE_ENOMEM (to wait
 *           takes a waiter's place), DUE_EFORK; with a store also DUE_ESTORE (a job is due, but the
 *           store is away), DUE_EFENCED, what it refused, for DUE_ETIMEDOUT why it cannot be read,
 *           and DUE_EINDOUBT (job->id is leaving it).  Timeout 0 waits for none: DUE_EAGAIN; if
 *           shared, who comes more seldom than every two seconds may wait for up to 100 ms
 */
DUE_API int due_dequeue(due_queue *q, due_job *job, int64_t timeout_ns)
    DUE_NONNULL(1, 2) DUE_MUST_CHECK;

/**
 * Take a due job on a lease of due_options.lease_ns: it leaves the queue with due_ack().  If the
 * lease ends before that, or due_nack() gives it back, it is handed out again, to anybody; what the
 * first holder then says is answered with DUE_ESTALE and changes nothing.  With a store this is at
 * least once: the stored job stays until the ack.
 *
 * Threads:  any
 * Owner:    the job's bytes are lent until due_ack(), due_nack() or due_job_done()
 * Errors:   as due_dequeue()
 */
DUE_API int due_reserve(due_queue *q, due_job *job, int64_t timeout_ns)
    DUE_NONNULL(1, 2) DUE_MUST_CHECK;

#define DUE_LEASE_DEFAULT (-1) /* as long as due_options.lease_ns says */

/* What to take, and how.  Zero means default. */
typedef struct due_take_options {
    size_t size;        /* DUE_TAKE_INIT */
    const int *topics;  /* only of these; NULL: of any */
    size_t topic_count; /* */
    int64_t lease_ns;   /* on a lease so long, or DUE_LEASE_DEFAULT; 0: for good */
} due_take_options;

#define DUE_TAKE_INIT .size = sizeof(due_take_options)

/**
 * Take up to @max jobs at once, those due now; waits only for the first.  @options NULL: for good,
 * of any topic.  The answer is how many (1 to @max); with a store the ids behind them, up to one of
 * zero, are in doubt.
 *
 * Threads:  any
 * Owner:    as due_dequeue(), or as due_reserve(), for each
 * Errors:   as due_dequeue(), of the first job; DUE_ENOTSUP (an option of a newer version)
 */
DUE_API int due_take(due_queue *q, const due_take_options *options, due_job *jobs, size_t max,
                     int64_t timeout_ns) DUE_NONNULL(1, 3) DUE_MUST_CHECK;

/**
 * Say that a job which was handed out is done with: its bytes go back to the queue, and @job is
 * zeroed.  On a zeroed job it does nothing.  Call it once for each job, on any one copy of it.
 *
 * Threads:  any
 * Errors:   none
 */
DUE_API void due_job_done(due_job *job) DUE_NONNULL(1);

/**
 * The same of @n jobs, of whatever queues: cheaper than one by one.
 *
 * Threads:  any
 * Errors:   none
 */
DUE_API void due_jobs_done(due_job *jobs, size_t n) DUE_NONNULL(1);

/* ---- Answering for reserved jobs ------------------------------------------------------------- */

/**
 * The reserved job is done: it leaves the queue.  Its bytes go back and @job is zeroed, also with
 * DUE_ESTALE and DUE_EINDOUBT; with any other error nothing has changed.  On a zeroed job it
 * answers DUE_EINVAL.  due_job_done() of a reserved job lets go of it without an answer.
 *
 * Threads:  any
 * Errors:   DUE_ESTALE (the lease has ended), DUE_EINVAL (not reserved), DUE_EFORK; with a store
 *           also DUE_EINDOUBT, DUE_ETIMEDOUT, DUE_EFENCED, DUE_ECLOSED (the queue closes, or has,
 *           and the store does not hear it any more), and what the store refused it with
 */
DUE_API int due_ack(due_job *job) DUE_NONNULL(1) DUE_MUST_CHECK;

/**
 * Acks @n jobs, as due_ack() each; with a store those of one queue that stand together are one
 * change.  @results, unless NULL, gets each one's answer.  The answer is how many were acked.
 *
 * Threads:  any
 * Errors:   DUE_EINVAL (@n over INT_MAX)
 */
DUE_API int due_ack_batch(due_job *jobs, size_t n, int *results) DUE_NONNULL(1);

#define DUE_DELAY_POLICY (-1)

/**
 * Give the reserved job back, to be handed out again no earlier than in @delay_ns (0: at once;
 * DUE_DELAY_POLICY: as its retry policy says).  If it was its last attempt, it is dead.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   as due_ack(); DUE_ENOMEM: it should be dead, and nothing has changed
 */
DUE_API int due_nack(due_job *job, int64_t delay_ns) DUE_NONNULL(1) DUE_MUST_CHECK;

/**
 * Give the reserved job back for @delay_ns as if it had not been handed out: it has not failed, and
 * this attempt does not count.  For who cannot do it now, because a limit of somebody else's is
 * reached.  It keeps what a limit or a group has let it through with.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   as due_ack()
 */
DUE_API int due_snooze(due_job *job, int64_t delay_ns) DUE_NONNULL(1) DUE_MUST_CHECK;

/**
 * The reserved job is dead, for the @reason given (NULL: none): kept, not handed out until kicked.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   as due_ack(); DUE_ENOMEM: nothing has changed
 */
DUE_API int due_bury(due_job *job, const char *reason) DUE_NONNULL(1) DUE_MUST_CHECK;

/**
 * The lease now ends @lease_ns from now; that of the job of a pool's handler no sooner than it did.
 * @job stays as it is, whatever the answer.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_ESTALE, DUE_EINVAL, DUE_EFORK; with a store also DUE_EFENCED, and DUE_ETIMEDOUT (it
 *           is away for so long that somebody else may own the jobs); if shared as due_ack()
 */
DUE_API int due_extend(due_job *job, int64_t lease_ns) DUE_NONNULL(1) DUE_MUST_CHECK;

/**
 * How jobs of @topic that have no policy of their own are tried again; it is asked when they fail.
 *
 * Threads:  any
 * Errors:   DUE_EINVAL, DUE_ENOMEM, DUE_ELIMIT (65,535 different policies), DUE_EFORK
 */
DUE_API int due_topic_retry(due_queue *q, int topic, const due_retry *retry) DUE_NONNULL(1, 3);

/* ---- Dead jobs ------------------------------------------------------------------------------- */

/**
 * Hand a dead job out again, at once, as if it never had been: no attempts, no failures, and of its
 * time limit only what it was given anew.  due_kick_all: all of @topic (or DUE_ALL_TOPICS), and
 * *@kicked, unless NULL, gets their number, also if a store fails when some are back, but not if it
 * fails when none is.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_ENOENT (not dead), DUE_EBUSY (being changed), DUE_EINVAL, DUE_ECLOSED, DUE_EFORK
 */
DUE_API int due_kick(due_queue *q, due_id id) DUE_NONNULL(1);
DUE_API int due_kick_all(due_queue *q, int topic, uint64_t *kicked) DUE_NONNULL(1);

/**
 * List dead jobs, as due_list() those that wait.  due_clear_dead: discard them, as due_clear().
 *
 * Threads:  any
 * Errors:   DUE_EINVAL, DUE_EFORK; with a store as said above
 */
DUE_API int due_list_dead(due_queue *q, uint64_t *cursor, due_dead *dead, size_t max)
    DUE_NONNULL(1, 2, 3) DUE_MUST_CHECK;
DUE_API int due_clear_dead(due_queue *q, int topic, uint64_t *cleared) DUE_NONNULL(1);

/* ---- Naming a job ---------------------------------------------------------------------------- */

/**
 * Take a job back that has not been handed out, or is dead.  The answer is final: after 0 nobody
 * will get it; after DUE_EBUSY somebody has it, and has not yet called due_job_done().  That error
 * alone has changed something: a reserved job will not be handed out again, also if its lease ends
 * or it is given back, a repeating one does not come again, and due_job_stopping() tells who has
 * it.  With @job the cancelled job is lent to the caller as by a dequeue; without
 * (NULL) its bytes are released and a carried pointer is the caller's.
 *
 * Threads:  any
 * Cost:     O(1); without a lock if nobody has the job
 * Errors:   DUE_EBUSY, DUE_ENOENT (unknown, finished, or of another queue), DUE_ENOMEM (nobody was
 *           told), DUE_EFORK; with a store as said above
 */
DUE_API int due_cancel(due_queue *q, due_id id, due_job *job) DUE_NONNULL(1);

/**
 * Cancel @n jobs, as due_cancel() without taking them back; with a store up to 256 at a time are
 * one change.  @results, unless NULL, gets each answer.  The answer is how many were cancelled.
 *
 * Threads:  any
 * Errors:   DUE_EINVAL (@n over INT_MAX), DUE_EFORK
 */
DUE_API int due_cancel_batch(due_queue *q, const due_id *ids, size_t n, int *results)
    DUE_NONNULL(1, 2);

/**
 * The id of the live job (delayed, ready, reserved or dead) that has the unique key @key of @len
 * bytes; and take it back, as due_cancel() by its id.  A key that is only kept is no job's.
 *
 * Threads:  any; with a store also waits until the stored jobs were read; if it is shared, asks it
 * Errors:   as due_cancel(); DUE_ENOENT (no live job has it), DUE_EINVAL (@len)
 */
DUE_API int due_id_of_key(due_queue *q, const void *key, size_t len, due_id *id)
    DUE_NONNULL(1, 2, 4) DUE_MUST_CHECK;
DUE_API int due_cancel_key(due_queue *q, const void *key, size_t len, due_job *job)
    DUE_NONNULL(1, 2);

/**
 * Give a waiting job another deadline (@at_ns on the queue's clock, 0 or more), or run it now.
 * Its id, topic and priority stay; among equals it stands last.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_EBUSY, DUE_ENOENT, DUE_EINVAL, DUE_ECLOSED (discarded), DUE_ENOMEM, DUE_EFORK
 */
DUE_API int due_reschedule(due_queue *q, due_id id, int64_t at_ns) DUE_NONNULL(1);
DUE_API int due_promote(due_queue *q, due_id id) DUE_NONNULL(1);

/* What due_amend() changes; the fields of due_spec and due_extra that say how. */
enum due_set {
    DUE_SET_DATA = 1,     /* data, len */
    DUE_SET_HEADERS = 2,  /* more: headers, headers_len */
    DUE_SET_TIME = 4,     /* delay_ns or at_ns, as due_reschedule() */
    DUE_SET_PRIORITY = 8, /* priority: among equals it stands last; not with a store */
    DUE_SET_RETRY = 16,   /* more: retry */
    DUE_SET_LIMIT = 32    /* more: ttl_ns or expires_ns; both 0: none */
};

/**
 * Give a waiting job other content, or change what @what names (DUE_SET_*, one or several) to what
 * @spec says, in one step: who takes or looks sees all of it or nothing.  Its id stays, and its
 * place among equals too unless its time or priority changes (with a store: it stands last until
 * the next opening).  A dead job can be changed but for its time and limit, and then be kicked.
 * A job that carries a pointer keeps it.
 *
 * Threads:  any; waits for the timeline's lock
 * Owner:    what @spec points to is copied
 * Cost:     a copy; headers, a retry policy or a limit copy the payload too, if the job had none
 * Errors:   DUE_EBUSY (somebody has the job, or its bytes still, after a lease that has ended),
 *           DUE_ENOENT, DUE_EINVAL (also: new data or a pointer for a job that carries one),
 *           DUE_ELIMIT, DUE_ENOMEM, DUE_ECLOSED, DUE_ENOTSUP (DUE_SET_PRIORITY, with a store),
 *           DUE_EFORK
 */
DUE_API int due_update(due_queue *q, due_id id, const void *data, size_t len) DUE_NONNULL(1);
DUE_API int due_amend(due_queue *q, due_id id, const due_spec *spec, unsigned what)
    DUE_NONNULL(1, 3);

/**
 * What is known of a waiting job; how long until its deadline (0 or less: it is due).
 *
 * Threads:  any
 * Cost:     O(1), without a lock unless a lease has just ended
 * Errors:   DUE_EBUSY, DUE_ENOENT, DUE_EFORK
 */
DUE_API int due_find(due_queue *q, due_id id, due_info *info) DUE_NONNULL(1, 3) DUE_MUST_CHECK;
DUE_API int due_remaining(due_queue *q, due_id id, int64_t *ns) DUE_NONNULL(1, 3) DUE_MUST_CHECK;

/**
 * Copy the payload of a waiting or dead job, at most @size bytes from its beginning, to @buffer
 * (NULL if @size is 0).  *@len, unless NULL, gets the length of the whole.  A job that carries a
 * pointer has none: 0.  The job stays as it is, but if more than 4,096 bytes are copied it stands
 * last among equals, and whoever wants it meanwhile gets DUE_EBUSY.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_EBUSY (somebody has it), DUE_ENOENT, DUE_EINVAL (no buffer), DUE_EFORK; with a
 *           store as said above
 */
DUE_API int due_read(due_queue *q, due_id id, void *buffer, size_t size, size_t *len)
    DUE_NONNULL(1) DUE_MUST_CHECK;

/* ---- The whole queue ------------------------------------------------------------------------- */

/**
 * What would be handed out next of what is due, in topics that are not paused; if nothing is, the
 * next job to become due, of any topic.  Of a shared queue that is what lies in the store, and what
 * a pause, a limit or a group keeps back, too.
 *
 * Threads:  any; waits for the timeline's lock
 * Cost:     O(1); if nothing is due, and a lease ends before the next job is, a look at every job
 * Errors:   DUE_EAGAIN (nothing held), DUE_EFORK
 */
DUE_API int due_peek(due_queue *q, due_info *info) DUE_NONNULL(1, 2) DUE_MUST_CHECK;

/**
 * List waiting jobs, in no order.  *@cursor starts at 0 and is moved; the answer is how many were
 * written (0: the end).  A job that waits during the whole listing is listed exactly once; jobs
 * that come or go meanwhile may or may not be.
 *
 * Threads:  any; without a lock but for leases that just ended: a store is told of what dies then
 * Errors:   DUE_EINVAL (also, of a shared queue, a cursor that was left for long), DUE_EFORK
 */
DUE_API int due_list(due_queue *q, uint64_t *cursor, due_info *infos, size_t max)
    DUE_NONNULL(1, 2, 3) DUE_MUST_CHECK;

#define DUE_ALL_TOPICS (-1)

/**
 * Cancel every waiting job of @topic (or DUE_ALL_TOPICS), each shown to on_discard.  *@cleared,
 * unless NULL, gets their number, also if a store fails when some are gone, but not if it fails
 * when none is.  Jobs that come meanwhile may or may not be among them.  With a store all are read
 * first, as for dead ones.
 *
 * Threads:  any; without a lock
 * Errors:   DUE_EINVAL, DUE_EFORK; with a store as said above
 */
DUE_API int due_clear(due_queue *q, int topic, uint64_t *cleared) DUE_NONNULL(1);

/**
 * Stop and resume handing out the jobs of @topic (or DUE_ALL_TOPICS: of those that exist).  Jobs
 * become due meanwhile, and keep their order.  A consumer that is already taking may still get one.
 * If a store fails, some of all topics may have changed.
 *
 * Threads:  any; waits for the timeline's lock, and for a store, which keeps it for who comes next
 * Errors:   DUE_EINVAL (no such topic), DUE_EFORK; with a store as said above
 */
DUE_API int due_pause(due_queue *q, int topic) DUE_NONNULL(1);
DUE_API int due_resume(due_queue *q, int topic) DUE_NONNULL(1);

/**
 * Let at most @max_running jobs of @topic run at a time; 0: any number.  A job runs from when it is
 * let through to be taken until it ends: by due_ack(), due_job_done() of one that was dequeued, a
 * cancel, or its death; so also while it waits to be tried again.  A new deadline ends that too.
 * The others are kept back in their order; one that was let through stands before any that comes
 * later, also of higher priority.  The limit may change at any time: a lower one waits for jobs to
 * end.  Jobs that were handed out before the topic had its first limit do not count.  Of a shared
 * queue it counts the jobs that any process holds on a lease, and no others.
 *
 * Threads:  any; waits for the timeline's lock, and for a store, which keeps it for who comes next
 * Errors:   DUE_EINVAL (no such topic), DUE_ENOMEM, DUE_EFORK; with a store as said above
 */
DUE_API int due_topic_limit(due_queue *q, int topic, size_t max_running) DUE_NONNULL(1);

/**
 * Give back the memory of cancelled jobs, and idle pages, now; by itself it happens in pieces.
 *
 * Threads:  any; takes the timeline's lock in pieces
 * Errors:   DUE_EFORK
 */
DUE_API int due_trim(due_queue *q) DUE_NONNULL(1);

/**
 * Wait until everything that was changed before this call has been confirmed by the store, or
 * refused.  Without a store it answers 0; once the jobs are somebody else's, DUE_EFENCED.
 *
 * Threads:  any
 * Errors:   DUE_ETIMEDOUT, DUE_EFENCED, DUE_ECLOSED, DUE_EINVAL, DUE_ENOMEM, DUE_EFORK
 */
DUE_API int due_flush(due_queue *q, int64_t timeout_ns) DUE_NONNULL(1) DUE_MUST_CHECK;

/* What a queue has done and holds.  Jobs are all counted at one moment during the call; one that is
 * just being taken counts as waiting until its taker has it. */
struct due_stats {
    uint64_t enqueued;    /* since open */
    uint64_t dequeued;    /* handed out */
    uint64_t cancelled;   /* by due_cancel and due_cancel_batch */
    uint64_t discarded;   /* by due_clear and due_close */
    uint64_t waiting;     /* now: delayed and ready */
    uint64_t ready;       /* now: moved to their topics, not yet taken */
    uint64_t lent;        /* now: handed out, not yet done with */
    uint64_t direct;      /* enqueues that were sorted in by their caller */
    uint64_t delegated;   /* enqueues that were left for somebody else to sort in */
    uint64_t proxy_calls; /* times the enqueue proxy was called in */
    uint64_t rings;       /* times a sleeping thread was woken */
    uint64_t heartbeats;  /* looks of the worker proxy at everything */
    uint64_t mended;      /* what a heartbeat found undone: each is a bug of the library */
    uint64_t slots; /* 16-byte slots in the timeline and the ready lines, dead ones included */
    uint64_t memory_bytes;    /* address space taken for jobs and slots */
    uint64_t tenure_max_ns;   /* longest hold of the timeline's lock, in processor time; 0 unless
                               built to measure it (DUE_MEASURE_TENURE) */
    uint64_t kept_bytes;      /* memory of payloads that are gone, kept for the next ones */
    uint64_t leased;          /* now: reserved, not yet answered, and the lease has not ended */
    uint64_t restored;        /* jobs read from the store */
    uint64_t unsettled;       /* changes on their way to the store */
    uint64_t settled;         /* changes that the store has confirmed or refused */
    uint64_t batches;         /* in which they were sent */
    uint64_t mirrored;        /* jobs put into the store again because it had lost them */
    uint64_t kept;            /* jobs that due_close() left to the store */
    uint64_t acked;           /* jobs that left by due_ack() */
    uint64_t nacked;          /* times a job was given back by due_nack() */
    uint64_t retried;         /* times a job waits again after a nack, a snooze, or a lease */
    uint64_t lapsed;          /* leases that ended by themselves */
    uint64_t buried;          /* times a job died */
    uint64_t kicked;          /* times a dead job came back */
    uint64_t dead;            /* now */
    uint64_t passed;          /* now: jobs that a limit or a group has let through, not ended */
    uint64_t kept_back;       /* now: due jobs that one keeps back, cancelled ones perhaps too */
    int32_t loading;          /* 1: stored jobs are still being read */
    int32_t store_state;      /* the last answer of the store: 0, or a DUE_E* code */
    uint64_t repeated;        /* rounds of repeating jobs that are followed by another */
    uint64_t unsettled_bytes; /* of the jobs and updates among those */
    uint64_t counter;         /* 1: between two looks at the kernel's clock the processor's counter
                                 may tell how late a job is; what is due, the clock alone */
    uint64_t reserved[4];
};

/**
 * Fill in @stats.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   DUE_EFORK
 */
DUE_API int due_stats_read(due_queue *q, struct due_stats *stats) DUE_NONNULL(1, 2);

/* ---- Event loops and programs without threads ------------------------------------------------ */

/**
 * A descriptor for poll, epoll or select that is readable when a job may be due.  Level-triggered:
 * take with timeout 0 until DUE_EAGAIN, which makes it unreadable until the next job is due.  It
 * may be readable with nothing to take; it is never unreadable with something to take.
 *
 * Threads:  any
 * Owner:    the queue: closed by due_free()
 * Errors:   DUE_ESYS (no descriptor to be had), DUE_ECLOSED, DUE_EFORK
 */
DUE_API int due_fd(due_queue *q) DUE_NONNULL(1) DUE_MUST_CHECK;

/**
 * Do the proxies' work in the calling thread: sort in what was submitted, move what is due.  The
 * answer is the number of jobs ready to be taken, at most INT_MAX (while a limit or a group keeps
 * others back, cancelled ones may be counted).  *@next_ns, unless NULL, gets due_next_deadline().
 *
 * Threads:  any; needed only with DUE_PROXIES_NEVER, allowed always
 * Errors:   DUE_EFORK
 */
DUE_API int due_poll(due_queue *q, int64_t *next_ns) DUE_NONNULL(1);

/**
 * When the next job is due, on the queue's clock: not later than due_now() if one already is,
 * DUE_FOREVER if none is held, as in a child after fork.
 *
 * Threads:  any; waits for the timeline's lock
 * Errors:   none
 */
DUE_API int64_t due_next_deadline(due_queue *q) DUE_NONNULL(1);

#ifdef __cplusplus
}
#endif

#endif
