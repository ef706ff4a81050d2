/* lease.h - jobs that are answered for, and what becomes of those that are not. */
#ifndef DUE__LEASE_H
#define DUE__LEASE_H

#include "os/atomic.h"
#include "queue/queue.h"

struct due__key_name; /* key_table.h */

/* The taken jobs begin a lease and are filled in for the caller.  DUE_ENOMEM: nothing changed.
 * @now_ns: the clock, if it was just read; else 0. */
int due__lease_begin(struct due_queue *q, const struct due__slot *slots, size_t n, int64_t lease_ns,
                     int64_t now_ns, due_job *jobs);
/* The same if nothing has to be asked, told or made for any of them.  False: nothing was done. */
bool due__lease_plain(struct due_queue *q, const struct due__slot *slots, size_t n,
                      int64_t lease_ns, int64_t now_ns, due_job *jobs);
/* The same in two steps: what may want for memory, and what follows. */
int due__lease_records(struct due_queue *q, const struct due__slot *slots, size_t n);
void due__lease_start(struct due_queue *q, const struct due__slot *slots, size_t n,
                      int64_t lease_ns, int64_t now_ns, due_job *jobs);
/* Under the lock: the store has counted the attempt of a taken job, whose record was made, before
 * its lease begins: whatever the store is told of it meanwhile says so too. */
void due__lease_count(struct due_queue *q, uint32_t number);
/* The same job is not handed out after all. */
void due__lease_uncount(struct due_queue *q, uint32_t number);
/* The same under the lock, if nothing has to be asked, told or made for any of them; they
 * are counted.  False: nothing was done. */
bool due__lease_at_once(struct due_queue *q, const struct due__slot *slots, size_t n,
                        int64_t lease_ns, int64_t now_ns, due_job *jobs);
/* The same of one, which is @j. */
bool due__lease_one_at_once(struct due_queue *q, struct due__slot s, struct due__job *j,
                            int64_t lease_ns, int64_t now_ns, due_job *job);
/* The lease of a job of the caller's own (CLAIMED) goes on; if it has ended, the job waits. */
void due__lease_resume(struct due_queue *q, uint32_t number);
/* A lease was ended by its holder, otherwise than by an ack: counted. */
void due__lease_answered(struct due_queue *q);
/* A job of the caller's own, whose lease was claimed, is gone. */
void due__ack_end(struct due_queue *q, uint32_t number);
/* Has the lease of a job with word @w ended by the clock, and nobody has come to it since? */
static inline bool due__lapsed(const struct due_queue *q, uint32_t number, uint64_t w)
{
    const struct due__job *j = due__job_at(&q->slab, number);

    return due__word_state(w) == DUE__LEASED &&
           due__clock_passed(&q->clock, due__load_relaxed(&j->deadline_ns)); /* J1 */
}
/* If that is so it waits from here on, or is dead, or gone.  True: look at it anew.  With a store
 * the call waits until that knows of one that is dead or gone; @by NULL: it does not. */
bool due__lapse(struct due_queue *q, uint32_t number, struct due__deadline *by);
/* The same of one that was in the way with word @w, which is none if another was quicker to end its
 * lease.  False: it is in the way still. */
bool due__lapse_seen(struct due_queue *q, uint32_t number, uint64_t w, struct due__deadline *by);
/* The same of all that there are. */
void due__lapse_all(struct due_queue *q, struct due__deadline *by);
/* Under the lock: a lease has ended by itself; @waits: the job is handed out again. */
void due__lease_ended(struct due_queue *q, uint32_t number, bool waits);
/* Is a job whose lease ends not to be handed out again? */
bool due__lease_was_last(const struct due_queue *q, uint32_t number);
/* Under the lock: when to look again at a job that the store refused to change, in a second. */
int64_t due__later(const struct due_queue *q);
/* A job of the caller's own (CLAIMED) that cannot be buried now waits a second, to be looked at
 * again when it would be handed out. */
void due__wait_later(struct due_queue *q, uint32_t number);
/* Under the lock: a claimed job has failed and waits again. */
void due__given_back(struct due_queue *q, uint32_t number, uint64_t w, int64_t at_ns);
/* The same of one whose attempt does not count. */
void due__snoozed(struct due_queue *q, uint32_t number, uint64_t w, int64_t at_ns);
/* A due_nack() has done what it was to do, also if its caller was not told: counted. */
void due__nacked(struct due_queue *q, uint32_t number);
/* A job that somebody has is not to be handed out again: DUE_EBUSY, or DUE_ENOMEM; DUE_EAGAIN:
 * nobody has it now.  With a name it must have that key still, or DUE_ENOENT. */
int due__lease_cancel(struct due_queue *q, uint32_t number, uint32_t generation,
                      const struct due__key_name *name);
/* Was it cancelled while somebody had it?  The job is the caller's own, or the lock is. */
bool due__revoked(const struct due_queue *q, uint32_t number);
/* Under the lock: a job of the caller's own, whose word is @w, waits; if it was cancelled
 * meanwhile, it leaves. */
void due__wait_again(struct due_queue *q, uint32_t number, uint64_t w, int64_t at_ns);
/* The store has refused to remove one that was: it is tried again in a second, as at the end of a
 * lease.  Not at once, or a store that refuses, or a queue that closes, would be asked for ever. */
void due__revoke_later(struct due_queue *q, uint32_t number);
/* Is there a limit to the attempts of a job of the caller's own? */
bool due__lease_limited(const struct due_queue *q, const struct due__job *j);
/* A job of the caller's own gets a lease record, as if it had never been reserved. */
void due__past_begin(struct due_queue *q, uint32_t number, int64_t deadline_ns);

#endif
