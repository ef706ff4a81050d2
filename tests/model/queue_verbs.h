/* queue_verbs.h - the steps of queue_model.c, on the queue and on its reference. */
#ifndef QUEUE_VERBS_H
#define QUEUE_VERBS_H

#include "model/queue_reference.h"

enum verb {
    ENQUEUE,
    BATCH,
    DEQUEUE,
    DEQUEUE_FROM,
    DEQUEUE_BATCH,
    DONE,
    CANCEL,
    CANCEL_LENT,
    CANCEL_GONE,
    RESCHEDULE,
    PROMOTE,
    ADVANCE,
    PEEK,
    FIND,
    LIST,
    CLEAR,
    PAUSE,
    RESUME,
    POLL,
    TRIM,
    STATS,
    VERBS
};

/* One step.  False: the queue did not do what its reference did. */
bool queue_apply(struct world *w, unsigned verb, uint32_t n, uint64_t value);

/* Parts of it that the end of a script needs. */
bool queue_dequeue(struct world *w);
bool queue_done(struct world *w, uint32_t n);
bool queue_pause(struct world *w, uint32_t n, bool paused);
bool queue_stats(struct world *w);

#endif
