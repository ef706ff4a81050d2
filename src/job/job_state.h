/* job_state.h - what can happen to a job, and who waits meanwhile: the calls between the rooms of
 * the verbs.  Included by queue.h, which says what a queue is made of.
 */
#ifndef DUE__JOB_STATE_H
#define DUE__JOB_STATE_H

#include "os/atomic.h"
#include "queue/queue.h"

struct due__key_name; /* key_table.h */

/* ---- limit.c ---- */

/* Is there anything between a due job and the line of its topic @t?  Under the lock. */
static inline bool due__gated(const struct due__topic *t, struct due__facts f)
{
    return t->gate != NULL || (f.payload & DUE__GROUPED);
}

/* Will what is owed at the end of this tenure make jobs ready: by a death, or at a gate? */
static inline bool due__more_to_come(const struct due_queue *q)
{
    return (q->owed & (DUE__OWED_REAP | DUE__OWED_GATES)) != 0;
}

/* ---- life.c ---- */

extern const struct due__life due__jobs_life;

/* ---- sender.c ---- */

/* What a call gets that needs the store: 0, or DUE_EFENCED. */
static inline int due__commit_state(const struct due_queue *q)
{
    return due__load_seq(&q->commits->fenced) ? DUE_EFENCED : 0; /* G2 of sender.c */
}

/* Is the store still being read? */
static inline bool due__commit_loading(const struct due_queue *q)
{
    return due__load_seq(&q->commits->loading) != 0; /* G2 of sender.c */
}

/* ---- lease.c ---- */

static inline struct due__lease *due__lease_at(const struct due_queue *q, uint32_t number)
{
    return due__side_at(&q->leases, number);
}

/* The taken jobs begin a lease and are filled in for the caller.  DUE_ENOMEM: nothing changed.
 * @now_ns: the clock, if it was just read; else 0. */
int due__lease_begin(struct due_queue *q, const struct due__slot *slots, size_t n, int64_t lease_ns,
                     int64_t now_ns, due_job *jobs);
/* The same in two steps: what may want for memory, and what follows. */
int due__lease_records(struct due_queue *q, const struct due__slot *slots, size_t n);
void due__lease_start(struct due_queue *q, const struct due__slot *slots, size_t n,
                      int64_t lease_ns, int64_t now_ns, due_job *jobs);
/* Under the lock: the store has counted the attempt of a taken job, whose record was made, before
 * its lease begins: whatever the store is told of it meanwhile says so too. */
void due__lease_count(struct due_queue *q, uint32_t number);
/* The same job is not handed out after all. */
void due__lease_uncount(struct due_queue *q, uint32_t number);
/* Has it? */
static inline bool due__lease_counted(const struct due_queue *q, uint32_t number)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */

    return (w & DUE__HELD) &&
           due__load_relaxed(&due__lease_at(q, number)->limit) == DUE__COUNTED; /* R1 */
}
/* The same under the lock, if nothing has to be asked, told or made for any of them; to be counted
 * after the release (due__lease_begun).  False: nothing was done. */
bool due__lease_at_once(struct due_queue *q, const struct due__slot *slots, size_t n,
                        int64_t lease_ns, int64_t now_ns, due_job *jobs);
void due__lease_begun(struct due_queue *q, const due_job *jobs, size_t n);
/* The lease of a job of the caller's own (LENT) goes on; if it has ended, the job waits. */
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
/* The same of all that there are. */
void due__lapse_all(struct due_queue *q, struct due__deadline *by);
/* Under the lock: a lease has ended by itself; @waits: the job is handed out again. */
void due__lease_ended(struct due_queue *q, uint32_t number, bool waits);
/* Is a job whose lease ends not to be handed out again? */
bool due__lease_was_last(const struct due_queue *q, uint32_t number);
/* Under the lock: when to look again at a job that the store refused to change, in a second. */
int64_t due__later(const struct due_queue *q);
/* A job of the caller's own (LENT) that cannot be buried now waits a second, to be looked at again
 * when it would be handed out. */
void due__wait_later(struct due_queue *q, uint32_t number);
/* Under the lock: a claimed job has failed and waits again. */
void due__given_back(struct due_queue *q, uint32_t number, uint64_t w, int64_t at_ns);
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
/* A job of the caller's own whose lease has ended, and that was cancelled meanwhile, is gone. */
void due__lease_revoke(struct due_queue *q, uint32_t number);
/* As due_nack() without delay, but as if the job had never been handed out. */
int due__lease_release(due_job *job);
/* As due_extend(), without waiting for the store. */
int due__lease_extend(due_job *job, int64_t lease_ns);
/* Should its holder stop: the lease has ended, or the job was cancelled? */
bool due__lease_stopping(const due_job *job);
/* Is there a limit to the attempts of a job of the caller's own? */
bool due__lease_limited(const struct due_queue *q, const struct due__job *j);
/* A job of the caller's own gets a lease record, as if it had never been reserved. */
void due__past_begin(struct due_queue *q, uint32_t number, int64_t deadline_ns);
/* One copy of a job that was reserved is let go.  As due__job_unhold(). */
bool due__lease_let_go(struct due_queue *q, uint32_t number);

/* ---- dead_letter.c ---- */

static inline struct due__grave *due__grave_at(const struct due_queue *q, uint32_t number)
{
    return due__side_at(&q->graves, number);
}

/* Before the lock is taken: it may be dead, and just be changed. */
static inline bool due__may_be_dead(uint64_t w)
{
    return due__word_state(w) == DUE__DEAD || due__word_state(w) == DUE__MOVING;
}

/* What a job needs to die.  False: there is no memory. */
bool due__grave_make(struct due_queue *q, uint32_t number);
/* Is the caller's own job dead, or about to be? */
bool due__grave_is(const struct due_queue *q, uint32_t number);
/* Why and when it dies. */
void due__grave_open(struct due_queue *q, uint32_t number, int64_t now_ns, enum due_cause cause,
                     const char *reason);
/* A job of the caller's own that was dead goes, or waits again: counted. */
void due__grave_close(struct due_queue *q, uint32_t number);
/* A job of the caller's own dies, with a store there first.  Otherwise as due__commit_one(). */
int due__bury(struct due_queue *q, uint32_t number, int64_t deadline_ns, enum due_cause cause,
              const char *reason, struct due__deadline *by);
/* Under the lock: the same, once everything is ready. */
void due__bury_locked(struct due_queue *q, uint32_t number);
/* After it, without the lock: counted. */
void due__buried(struct due_queue *q);
/* A job of the caller's own that was dead is dead still, for a second at least. */
void due__bury_again(struct due_queue *q, uint32_t number);
/* Under the lock: a dead job becomes the caller's own: LENT, if it goes; CHANGING, if not; MOVING,
 * if that is decided in this tenure.  *w is its word before, and after a failure its word now. */
bool due__exhume(struct due_queue *q, uint32_t number, uint64_t *w, enum due__state as);
/* What a word is instead of a dead job's: DUE_EBUSY, as long as another call is changing it, or
 * DUE_ENOENT. */
int due__not_dead(uint64_t w, uint32_t generation);
/* The same without it, and with a name only if it has that key still.  DUE_ENOENT: it is not dead,
 * or has not; DUE_EBUSY: another call is changing it. */
int due__exhume_one(struct due_queue *q, uint32_t number, uint32_t generation,
                    const struct due__key_name *name, enum due__state as);
/* Under the lock: a job of the caller's own that was dead waits, until @at_ns; by a kick without
 * the limit of its time. */
void due__revive_locked(struct due_queue *q, uint32_t number, int64_t at_ns);
void due__kick_locked(struct due_queue *q, uint32_t number, int64_t at_ns);
/* Under the lock: a job of the caller's own is to be seen to after the release. */
void due__doom(struct due_queue *q, uint32_t number);
/* Under the lock: the time of a leased or dead job has come.  False: it is to be handed out again,
 * or its word is not @w any more. */
bool due__doom_due(struct due_queue *q, uint32_t number, uint64_t w);
/* After the release: those that are. */
void due__reap(struct due_queue *q, uint32_t first);

/* Has a job of the caller's own no past, and nothing beside its payload? */
static inline bool due__is_plain(const struct due_queue *q, uint32_t number)
{
    const struct due__job *j = due__job_at(&q->slab, number);

    return !(due__load_relaxed(&j->word) & DUE__HELD) && /* J1: the caller's own */
           !(due__facts_load(j).payload & DUE__FRONT);
}

/* Of taken jobs those that may not be handed out die; the others to the front.  How many; *rc: the
 * error, if there was one, and then those that it was about wait again. */
size_t due__vet_all(struct due_queue *q, struct due__slot *slots, size_t n,
                    struct due__deadline *by, int *rc);

/* The same.  Plain jobs need not be looked at. */
static inline size_t due__vet(struct due_queue *q, struct due__slot *slots, size_t n,
                              struct due__deadline *by, int *rc)
{
    bool plain = true;

    for (size_t i = 0; i < n; i++)
        plain &= due__is_plain(q, due__slot_job(slots[i]));
    return plain ? n : due__vet_all(q, slots, n, by, rc);
}

/* ---- deferred_lease.c ---- */

/* Of whose handler a job is (due_job.pool). */
struct due__holder {
    void (*settle)(const due_job *job); /* I  its lease is a real one from here on */
};

/* As due__lease_begin(), but the leases of some need not stand in the timeline yet. */
int due__promise(struct due_queue *q, const struct due__slot *slots, size_t n, int64_t lease_ns,
                 int64_t now_ns, due_job *jobs);
/* Is the lease of this job, which the caller has, only promised? */
bool due__promised(const due_job *job);
/* A promised lease stands in the timeline from here on, and ends at @until_ns; the job is answered
 * for as any. */
void due__promise_keep(const due_job *job, int64_t until_ns);
/* A promised job is done. */
void due__promise_ack(due_job *job);
/* It goes back to where it stood, as if it had not been handed out, and *@job is zeroed. */
void due__promise_return(due_job *job);
/* Was it cancelled?  *@promised: was its lease promised still? */
bool due__promise_stopping(const due_job *job, bool *promised);

/* ---- handover.c ---- */

/* The taken jobs, for good, for the caller.  @now_ns: the clock, if it was just read; else 0. */
void due__hand_over(struct due_queue *q, const struct due__slot *slots, size_t n, int64_t now_ns,
                    due_job *jobs);

/* The life of a job of the caller's own ends; @w is its word.  True: nobody else holds it, its
 * bytes are released, and the place is the caller's to give back.  False: whoever lets go of it
 * last does that. */
bool due__job_unhold(struct due_queue *q, uint32_t number, uint64_t w);

/* Without a store: the claimed job of place @number, a plain one, is acked, and the caller's copy
 * let go of. */
void due__ack_at_once(due_job *job, uint32_t number);

/* The taken job @number, for the caller.  True: it comes again. */
bool due__job_fill(struct due_queue *q, uint32_t number, int64_t deadline_ns, int64_t now_ns,
                   due_job *job);
/* Within a shard: a lent job's place is free, unless the inbox still holds its node. */
void due__place_done(struct due_queue *q, struct due__shard *it, uint32_t number);
/* What its end will need, into the cache. */
void due__prefetch_end(struct due_queue *q, const due_job *job, uint32_t number);
/* ---- topic.c ---- */

/* Are these topics of the queue, or any (NULL, 0)? */
bool due__topics_there(const struct due_queue *q, const int *topics, size_t n);

/* ---- dequeue.c ---- */

/* Of these topics, or of any: up to @max jobs, for good (@lease_ns 0), on a lease, or on one that
 * is promised (less than 0: of so long).  Unless @quit is NULL the caller can be called away: when
 * *@quit is not 0 it does not wait, DUE_ETIMEDOUT; who sets it then calls due__quit_ring(). */
int due__take_out(struct due_queue *q, const int *topics, size_t n, due_job *jobs, size_t max,
                  int64_t lease_ns, int64_t timeout_ns, const uint32_t *quit);
/* What a call for one job answers that got @rc; without the job *@job, unless NULL, is zeroed. */
int due__one_or_none(due_job *job, int rc);
/* The same of one that takes it: in doubt it is named. */
int due__one_or_named(due_job *job, int rc);

/* ---- timed_wait.c ---- */

/* Sleep until rung, or until @until_ns on what timeouts are counted on; or shorter. */
void due__nap(struct due_queue *q, struct due__waiter *w, int64_t until_ns);
/* Under the lock: the same for who has more to look at before it sleeps. */
void due__nap_link(struct due_queue *q, struct due__waiter *w, int64_t until_ns);
void due__nap_unlink(struct due_queue *q, struct due__waiter *w);
/* Under the lock: ring those who nap and have this @quit, or any (NULL).  False: not all. */
bool due__nap_ring(struct due_queue *q, struct due__tenure *t, const uint32_t *quit);

/* ---- pool.c ---- */

/* ---- bulk.c ---- */

#define DUE__TOGETHER 256u /* stored jobs that are claimed and sent at once */

/* As due_cancel_batch() of a stored queue. */
int due__cancel_all(struct due_queue *q, const due_id *ids, size_t n, int *results);
/* As due_clear() of a stored queue; *@cleared is how many were, also if it fails. */
int due__clear_stored(struct due_queue *q, int topic, uint64_t *cleared);

/* ---- enqueue.c ---- */

/* Leave it in the inbox. */
void due__put_fresh(struct due_queue *q, const struct due__fresh *it);
/* Enqueue a job as one that is new.  1; 0: its key is not to be had now; or an error. */
int due__enqueue_new(struct due_queue *q, const due_spec *spec, int64_t timeout_ns,
                     struct due__deadline *by, due_id *id, bool *inside);

/* ---- enqueue_keyed.c ---- */

/* Enqueue a job with a key: 1, or an error. */
int due__enqueue_keyed(struct due_queue *q, const due_spec *s, int64_t timeout_ns,
                       struct due__deadline *by, due_id *id, bool *inside);

/* ---- enqueue_delegated.c ---- */

/* Leave @n filled jobs in the inbox.  From here on they wait, and anybody may cancel them. */
void due__put_all(struct due_queue *q, const struct due__fresh *jobs, size_t n);
/* The same, because the lock was busy, and see that somebody sorts them in.  Answers how many were
 * accepted: all of them, unless the queue closes; those that were not are gone. */
size_t due__submit_delegated(struct due_queue *q, const struct due__fresh *jobs, size_t n);
/* The same of jobs of which some have keys: each goes into the inbox while its key is looked at,
 * and the first that cannot have its key ends it.  Those from there on are given up. */
size_t due__submit_keyed(struct due_queue *q, const struct due__fresh *jobs, size_t n);

/* ---- capacity.c ---- */

/* Room for up to @n jobs, waiting up to @timeout_ns for the first: how many, or an error.  @inside:
 * as due__inside_once(). */
int due__space_take(struct due_queue *q, size_t n, int64_t timeout_ns, bool *inside);
void due__space_give(struct due_queue *q, size_t n);
/* Restored jobs take room also where there is none. */
void due__space_force(struct due_queue *q, size_t n);

/* ---- inside.c ---- */

/* The calling thread runs handlers of this queue from here on.  And: does it? */
void due__handling_begun(const struct due_queue *q);
bool due__handling(const struct due_queue *q);

/* A caller that may sleep comes and goes: close waits for the last one.  After it has left it must
 * not touch the queue any more. */
void due__inside_enter(struct due_queue *q);
void due__inside_leave(struct due_queue *q);

/* The same of a call that waits only sometimes; *@inside: whether it has come. */
static inline void due__inside_once(struct due_queue *q, bool *inside)
{
    if (!*inside)
        due__inside_enter(q);
    *inside = true;
}

/* A call on a stored queue may have to wait for the store at any step. */
static inline bool due__inside_stored(struct due_queue *q)
{
    if (q->commits != NULL)
        due__inside_enter(q);
    return q->commits != NULL;
}

static inline void due__inside_end(struct due_queue *q, bool inside)
{
    if (inside)
        due__inside_leave(q);
}

/* Is anybody inside, or still closing, or was the queue not closed? */
bool due__inside_any(struct due_queue *q);

/* One who closes comes, with what he waits on; NULL: no memory.  He leaves with it; @ended: he has
 * ended the queue.  After that he must not touch it. */
struct due__waiter *due__closer_enter(struct due_queue *q);
void due__closer_leave(struct due_queue *q, struct due__waiter *w, bool ended);
/* Until the queue is closed and everybody out, and it has ended or the caller is to end it
 * (*@ending).  0, or DUE_ETIMEDOUT. */
int due__closer_wait(struct due_queue *q, struct due__waiter *w, int64_t until_ns,
                     enum due__ending *ending);
/* All who close look again; those whose timeout a manual clock has passed. */
void due__closers_ring(struct due_queue *q);
void due__closers_tick(struct due_queue *q, int64_t now_ns);

#endif
