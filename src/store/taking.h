/* taking.h - jobs on their way out of the store, for whoever takes them. */
#ifndef DUE__TAKING_H
#define DUE__TAKING_H

#include "job/request.h"
#include "store/sender.h"

/* The taken jobs leave the store (TAKE), or have one more attempt there (ATTEMPT), for the request.
 * How many of them it has, filled in, in its jobs; DUE_EAGAIN: under way still, and it was not to
 * wait; DUE_EINDOUBT: the same, though it has waited, or nobody will know, and the ids are in its
 * jobs; else why it has none: they wait again. */
int due__take_stored(struct due_queue *q, struct due__request *r, const struct due__slot *slots,
                     size_t n, enum due__purpose purpose, struct due__deadline *by);

/* Of what others have left under way, what the request wants.  As above; 0: there is nothing. */
int due__take_left(struct due_queue *q, struct due__request *r, struct due__deadline *by);

/* Taken jobs are leased to the request, or wait again.  0, or an error. */
int due__lease_for(struct due_queue *q, const struct due__request *r, struct due__slot *slots,
                   size_t n);

/* Does the request wait for nothing, not even for the store? */
static inline bool due__polls(const struct due__request *r)
{
    return r->timeout_ns == 0 && r->quit == NULL;
}

#endif
