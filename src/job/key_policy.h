/* key_policy.h - what an enqueue finds its key to be, and whether it can have it. */
#ifndef DUE__KEY_POLICY_H
#define DUE__KEY_POLICY_H

#include "job/key_table.h"
#include "os/atomic.h"
#include "queue/job_records.h"
#include "queue/queue.h"

/* What a call finds its key to be. */
enum due__finding {
    DUE__KEY_TO_BE_HAD, /* nobody's, or to be taken over */
    DUE__KEY_TAKEN,     /* somebody's, who keeps it */
    DUE__KEY_TO_CHANGE, /* that of a job which can be changed */
    DUE__KEY_UNSETTLED, /* that of a job which is on its way to the store, or just being changed */
    DUE__KEY_LAPSED     /* that of a job whose lease has ended, and nobody has come to it since */
};

/* Would other content have to wait until somebody whose lease has ended lets go of this one's? */
static inline bool due__key_held_by_lease(struct due_queue *q, uint32_t number, uint64_t w)
{
    return (w & DUE__HELD) && due__load_seq(&due__lease_at(q, number)->holders) > 1; /* R2 */
}

/* What it is, with the shard of its key @was (or NULL). */
enum due__finding due__key_judge(struct due_queue *q, const struct due__key *was, uint8_t on_key);

/* A filled job is left in its inbox (@a: who waits for it, with a store), if it can have its key.
 * False: it is the caller's still. */
bool due__key_submit(struct due_queue *q, const struct due__fresh *it, struct due__submission *a);

#endif
