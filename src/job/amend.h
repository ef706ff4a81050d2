/* amend.h - a job that waits, or is dead, is changed, and stays in the queue.
 *
 * Whoever reschedules, kicks or changes a job says which may be meant, and what is to become of the
 * one that was claimed for it; the journal says how that is done.  In memory it is one tenure: who
 * looks on sees the job as it was or as it is to be.  Where a change has to be sent first, or takes
 * too long for the lock, the job is CHANGING until that has ended, and others are told that it is
 * busy.
 */
#ifndef DUE__AMEND_H
#define DUE__AMEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/journal.h"

struct due__key_name; /* key_table.h */

#define DUE__IF_WAITING 1u
#define DUE__IF_DEAD    2u

#define DUE__AMEND_MOST 128u /* in one call */

#define DUE__AGAIN 1 /* of decide(): the job stays as it is, and the caller looks anew */

/* A use of a place. */
struct due__use {
    uint32_t number;     /* O */
    uint32_t generation; /* O */
};

struct due__amendment {
    uint32_t number;                  /* O */
    uint32_t generation;              /* O */
    const struct due__key_name *name; /* O  the key that it must have still; NULL: never mind */
    unsigned of;                      /* O  DUE__IF_*: what it may be */
    bool last;    /* O  it is to stand behind what the caller has put in before */
    bool lengthy; /* O  what is to be done takes too long for the lock, which is not held */
    /* I  Of the caller's own job, whose word was @w if it was had under the lock.  0: @purpose and
     * @want_ns say what is to become of it, which may be NO_CHANGE.  Else it stays as it is. */
    int (*decide)(struct due_queue *q, struct due__amendment *a, uint64_t w, int64_t now_ns);
    enum due__purpose purpose; /* O  decide()'s; NO_CHANGE until it has answered */
    int64_t want_ns;           /* O  decide()'s */
};

/* In one tenure.  DUE_EBUSY, DUE_ENOENT, DUE_ECLOSED, or what decide() answers. */
int due__amend_at_once(struct due_queue *q, struct due__amendment *a);
/* By way of the journal, the job being CHANGING.  What that answers too. */
int due__amend_claimed(struct due_queue *q, struct due__amendment *a, struct due__deadline *by);

/* The same of @n jobs, at most DUE__AMEND_MOST.  *@done: of how many more; what kept the last of
 * the others, unless it was not such a job. */
int due__amend_each(struct due_queue *q, const struct due__amendment *as,
                    const struct due__use *jobs, size_t n, uint64_t *done);
int due__amend_all_claimed(struct due_queue *q, const struct due__amendment *as,
                           const struct due__use *jobs, size_t n, struct due__deadline *by,
                           uint64_t *done);

/* In memory, as long as another call is changing that job (CHANGING).  0, or DUE_ENOMEM. */
int due__amend_wait(struct due_queue *q, uint32_t number, uint32_t generation, bool *inside);

#endif
