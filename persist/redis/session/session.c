/* session.c - the counters that stats() shows. */
#include "redis/session/session.h"

/* Guards S. */
void due__redis_count(struct due__redis *s, uint64_t batches, uint64_t resent, uint64_t aside)
{
    pthread_mutex_lock(&s->lock);
    s->shown.batches += batches;
    s->shown.resent += resent;
    s->shown.quarantined += aside;
    pthread_mutex_unlock(&s->lock);
}
