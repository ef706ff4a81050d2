/* dead_letter.h - dead jobs: how a job dies, comes back, or goes for good. */
#ifndef DUE__DEAD_LETTER_H
#define DUE__DEAD_LETTER_H

#include "os/atomic.h"
#include "queue/queue.h"

struct due__key_name; /* key_table.h */

/* Before the lock is taken: it may be dead, and just be changed. */
static inline bool due__may_be_dead(uint64_t w)
{
    return due__word_state(w) == DUE__DEAD || due__word_state(w) == DUE__MOVING;
}

/* What a job needs to die.  False: there is no memory. */
bool due__dead_letter_make(struct due_queue *q, uint32_t number);
/* Is the caller's own job dead, or about to be? */
bool due__is_dying(const struct due_queue *q, uint32_t number);
/* Why and when it dies. */
void due__dead_letter_open(struct due_queue *q, uint32_t number, int64_t now_ns,
                           enum due_cause cause, const char *reason);
/* Under the lock: a job dies, and is counted among the dead before anybody can revive it. */
void due__dead_letter_count(struct due_queue *q);
/* A job of the caller's own that was dead goes, or waits again: counted. */
void due__dead_letter_close(struct due_queue *q, uint32_t number);
/* A job of the caller's own dies, with a store there first.  Otherwise as due__commit_one(). */
int due__bury(struct due_queue *q, uint32_t number, int64_t deadline_ns, enum due_cause cause,
              const char *reason, struct due__deadline *by);
/* Under the lock: the same, once everything is ready. */
void due__bury_locked(struct due_queue *q, uint32_t number);
/* After it, without the lock: its room is free, and who waits for the last job is told. */
void due__buried(struct due_queue *q);
/* A job of the caller's own that was dead is dead still, for a second at least. */
void due__bury_again(struct due_queue *q, uint32_t number);
/* A job of the caller's own is the queue's again, waiting or dead. */
void due__give_up(struct due_queue *q, uint32_t number);
/* Under the lock: a dead job becomes the caller's own: CLAIMED, if it goes, or CHANGING.  *w is
 * its word before, and after a failure its word now. */
bool due__dead_claim(struct due_queue *q, uint32_t number, uint64_t *w, enum due__state as);
/* What a word is instead of a dead job's: DUE_EBUSY, as long as another call is changing it, or
 * DUE_ENOENT. */
int due__not_dead(uint64_t w, uint32_t generation);
/* The same without it, and with a name only if it has that key still.  DUE_ENOENT: it is not dead,
 * or has not; DUE_EBUSY: another call is changing it. */
int due__dead_claim_one(struct due_queue *q, uint32_t number, uint32_t generation,
                        const struct due__key_name *name, enum due__state as);
/* Under the lock: a job of the caller's own that was dead waits, until @at_ns; by a kick without
 * the limit of its time. */
void due__revive_locked(struct due_queue *q, uint32_t number, int64_t at_ns);
void due__kick_locked(struct due_queue *q, uint32_t number, int64_t at_ns);
/* Under the lock: a job of the caller's own is to be seen to after the release. */
void due__dying_enlist(struct due_queue *q, uint32_t number);
/* Under the lock: the time of a leased or dead job has come.  False: it is to be handed out again,
 * or its word is not @w any more. */
bool due__dying_due(struct due_queue *q, uint32_t number, uint64_t w);
/* Under the lock: a job that waits comes out of the inbox.  True: it was cancelled while another
 * call was changing it there, and is to be seen to. */
bool due__dying_unlinked(struct due_queue *q, uint32_t number, uint64_t w);
/* After the release: those that are. */
void due__dying_bury(struct due_queue *q, uint32_t first);

/* Has a job of the caller's own no past, and nothing beside its payload? */
static inline bool due__is_plain_of(const struct due__job *j)
{
    return !(due__load_relaxed(&j->word) & DUE__HELD) && /* J1: the caller's own */
           !(due__facts_load(j).payload & DUE__EXTRAS);
}

static inline bool due__is_plain(const struct due_queue *q, uint32_t number)
{
    return due__is_plain_of(due__job_at(&q->slab, number));
}

/* Of taken jobs those that may not be handed out die; the others to the front.  How many; *rc: the
 * error, if there was one, and then those that it was about wait again. */
size_t due__attempts_check_all(struct due_queue *q, struct due__slot *slots, size_t n,
                               struct due__deadline *by, int *rc);

/* The same.  Plain jobs need not be looked at. */
static inline size_t due__attempts_check(struct due_queue *q, struct due__slot *slots, size_t n,
                                         struct due__deadline *by, int *rc)
{
    bool plain = true;

    for (size_t i = 0; i < n; i++)
        plain &= due__is_plain(q, due__slot_job(slots[i]));
    return plain ? n : due__attempts_check_all(q, slots, n, by, rc);
}

#endif
