/* turn.c - two lanes on one connection: one call at a time, and the lanes in turn.
 *
 * Whoever comes again at once would keep the other lane out, so it lets a call of that go first.
 */
#include <errno.h>
#include <time.h>

#include "redis/share/share.h"

bool due__share_turn_begin(struct due__share *h)
{
    pthread_condattr_t how;

    if (pthread_condattr_init(&how) != 0)
        return false;
    (void)pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    bool made = pthread_mutex_init(&h->lock, NULL) == 0;
    if (made && pthread_cond_init(&h->free, &how) != 0) {
        pthread_mutex_destroy(&h->lock);
        made = false;
    }
    pthread_condattr_destroy(&how);
    return made;
}

void due__share_turn_end(struct due__share *h)
{
    pthread_cond_destroy(&h->free);
    pthread_mutex_destroy(&h->lock);
}

static bool may_go(const struct due__share *h, int lane)
{
    return !h->busy && (h->last_lane != lane || h->waiting[!lane] == 0);
}

bool due__share_enter(struct due__share *h, int lane, int64_t until_ns)
{
    struct timespec until = { .tv_sec = (time_t)(until_ns / DUE_S(1)),
                              .tv_nsec = (long)(until_ns % DUE_S(1)) };
    int late = until_ns < 0 ? ETIMEDOUT : 0;

    pthread_mutex_lock(&h->lock);
    h->waiting[lane]++;
    while (!may_go(h, lane) && late != ETIMEDOUT)
        late = pthread_cond_timedwait(&h->free, &h->lock, &until);
    h->waiting[lane]--;
    bool entered = may_go(h, lane);
    if (entered) {
        h->busy = true;
        h->last_lane = lane;
    } else {
        pthread_cond_broadcast(&h->free); /* the other lane need not wait for us */
    }
    pthread_mutex_unlock(&h->lock);
    return entered;
}

void due__share_exit(struct due__share *h)
{
    pthread_mutex_lock(&h->lock);
    h->busy = false;
    if (h->waiting[0] + h->waiting[1] > 0)
        pthread_cond_broadcast(&h->free);
    pthread_mutex_unlock(&h->lock);
}
