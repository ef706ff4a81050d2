/* sound.h - all that a queue counts, compared with what its jobs say, one by one.
 *
 * Threads  any of the queue's own proxies, and callers that sleep; but no call that does anything
 */
#ifndef SOUND_H
#define SOUND_H

#include "due/due.h"

/* What does not add up, or NULL.  Looked at more than once, as the proxies may be under way.  Only
 * a closed queue is looked at if it has a store. */
const char *sound_wrong(due_queue *q);
/* The same of one with a store, too: nothing is on its way there. */
const char *sound_settled_wrong(due_queue *q);

#endif
