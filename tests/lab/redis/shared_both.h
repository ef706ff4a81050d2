/* shared_both.h - tests of queues that are owned and shared by turns, on the store in memory and on
 * Redis.
 *
 * An owner is on a clock turned by hand, which stands; whoever shares a queue in Redis is on the
 * server's.  So jobs are due long ago, or in a far time.
 */
#ifndef SHARED_BOTH_H
#define SHARED_BOTH_H

#include "lab/redis/stored_both.h"

#define THEN 1000                               /* what an owner's clock shows */
#define FAR  (INT64_C(4000000000) * 1000000000) /* what is due then is not due in any test */

static inline struct lab_options as_owner(void)
{
    return (struct lab_options){ .start_ns = THEN };
}

/* It claims nothing ahead: who is killed in memory could not give that back. */
static inline struct lab_options as_sharer(void)
{
    return (
        struct lab_options){ .start_ns = THEN, .with.share = DUE_SHARED, .with.prefetch_max = 1 };
}

static inline struct lab_options as(bool shares)
{
    return shares ? as_sharer() : as_owner();
}

/* The lease of who has the queue is over, though that one lives on and does not know. */
static inline void shop_hang(struct shop *s)
{
    if (s->where == IN_MEMORY)
        memory_disk_end_lease(s->disk);
#ifdef DUE_HAVE_REDIS
    else
        ASK("DEL", "due:{queue}:owner");
#endif
}

/* What an opening by another process answers. */
static inline int shop_try(struct shop *s, bool shares, int64_t timeout_ns, due_queue **q,
                           due_error *error)
{
    due_options o = { DUE_OPTIONS_INIT, .store = shop_store(s), .open_timeout_ns = timeout_ns,
                      .share = shares ? DUE_SHARED : DUE_OWNED, .manual = s->lab.clock };
    int rc = due_open(q, &o, error);

    if (rc != 0)
        o.store->verbs->free(o.store);
    return rc;
}

#endif
