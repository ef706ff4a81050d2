/* session.c - the figures that stats() shows. */
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

int due__redis_show(struct due__redis *s, int rc)
{
    struct due__link_counts counts = due__link_count(s->link);

    pthread_mutex_lock(&s->lock);
    s->shown.connects = counts.connects;
    s->shown.bytes_in = counts.bytes_in;
    s->shown.bytes_out = counts.bytes_out;
    s->shown.durability = s->durability;
    s->shown.connected = due__link_is_up(s->link);
    pthread_mutex_unlock(&s->lock);
    due__redis_tell(s, rc);
    return rc;
}
