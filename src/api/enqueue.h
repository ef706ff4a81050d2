/* enqueue.h - putting a job in, for calls that do more than that. */
#ifndef DUE__ENQUEUE_H
#define DUE__ENQUEUE_H

#include "queue/queue.h"
#include "store/sender.h"

#define DUE__STORED_AT_ONCE 256u /* jobs sent to the store by one call at a time */
#define DUE__AT_ONCE        64u  /* submitted in one tenure */

/* One job in a queue of memory that has room for it.  1, or an error. */
int due__enqueue_one(struct due_queue *q, const due_spec *spec, due_id *id);

/* Some of @n jobs, in any queue that has room for them: how many; 0: the first one's key is not to
 * be had now; or an error. */
int due__enqueue_any(struct due_queue *q, const due_spec *specs, size_t n, struct due__deadline *by,
                     due_id *ids, struct due__put *put);

/* The same where there may be no room: that is waited for up to @timeout_ns. */
int due__enqueue_room(struct due_queue *q, const due_spec *specs, size_t n, int64_t timeout_ns,
                      struct due__deadline *by, due_id *ids, struct due__put *put, bool *inside);

/* Enqueue a job as one that is new.  1; 0: its key is not to be had now; or an error. */
int due__enqueue_new(struct due_queue *q, const due_spec *spec, int64_t timeout_ns,
                     struct due__deadline *by, due_id *id, bool *inside);

/* As due_enqueue() of any job, in any queue. */
int due__enqueue_checked(struct due_queue *q, const due_spec *spec, int64_t timeout_ns, due_id *id);

/* One with a time, which is plain and was checked, in the tenure that its caller has begun, and
 * which ends.  False: that cannot be, and nothing was done. */
bool due__enqueue_locked(struct due_queue *q, const due_spec *s, due_id *id);

/* Enqueue a job with a key: 1, or an error. */
int due__enqueue_keyed(struct due_queue *q, const due_spec *s, int64_t timeout_ns,
                       struct due__deadline *by, due_id *id, bool *inside);

/* The same in a shared queue; and whose a key is there, and to cancel its job. */
int due__enqueue_shared_key(struct due_queue *q, const due_spec *s, int64_t timeout_ns,
                            struct due__deadline *by, due_id *id, bool *inside);
int due__shared_id_of_key(struct due_queue *q, const void *key, size_t len,
                          struct due__deadline *by, due_id *id);
int due__shared_cancel_key(struct due_queue *q, const void *key, size_t len, due_job *job,
                           struct due__deadline *by);

#endif
