/* update.h - a waiting job, or a dead one, is changed in place. */
#ifndef DUE__UPDATE_H
#define DUE__UPDATE_H

#include "job/draft.h"
#include "queue/queue.h"

/* Change what @what says of a waiting job, or of a dead one, as due_amend() does; @at_ns stands for
 * the time in @s.  Of @s is looked at what @what names. */
int due__rewrite(struct due_queue *q, uint32_t number, uint32_t generation, const due_spec *s,
                 unsigned what, int64_t at_ns, struct due__deadline *by);

/* A waiting job, or (not @lives) a dead one, becomes the caller's own: CHANGING.  DUE_EBUSY,
 * DUE_ENOENT; with a store what keeps its put from landing. */
int due__own(struct due_queue *q, uint32_t number, uint32_t generation, bool lives,
             struct due__deadline *by);
/* And is the queue's again; among equals it stands last. */
void due__disown(struct due_queue *q, uint32_t number);

#endif
