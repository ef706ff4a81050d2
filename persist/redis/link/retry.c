/* retry.c - when a link that went down is connected again.
 *
 * A connection that was of use is made again soon; one that lasted, at once.  But a server may take
 * connections and answer questions, and yet refuse every write: a replica, a full disk, something
 * in between that cuts off what is long.  Each time it would be sent a whole batch for nothing.  So
 * once a write is under way, or was refused, only one that was done makes the pauses short again.
 */
#include "redis/link/link_inside.h"
#include "base/time.h"

void due__link_plan_retry(struct due__link *l)
{
    int64_t now = due__mono_ns();
    bool of_use = l->state == DUE__LINK_UP && !l->owes;

    if (of_use && l->answers > 0)
        l->backoff.failures = 0;
    if (of_use && now - l->up_ns > l->backoff.max_ns)
        l->retry_ns = now;
    else
        l->retry_ns = due__ns_after(now, due__backoff_next(&l->backoff));
}

void due__link_owes(struct due__link *l)
{
    l->owes = true;
}

void due__link_wrote(struct due__link *l)
{
    l->owes = false;
    l->backoff.failures = 0;
}

bool due__link_is_owing(const struct due__link *l)
{
    return l->owes;
}
