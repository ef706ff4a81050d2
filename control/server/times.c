/* times.c - the queue's clock and the wall clock.
 *
 * Who asks has a wall clock, and no other clock of another process.  A queue may be on the
 * monotonic clock, or on one that is turned by hand: then a date is so far from now as it is on the
 * wall clock.  Which clock a queue has is not asked: if what it shows lies between two looks at the
 * wall clock, it is that one, and nothing is converted.
 */
#include "server/server.h"

#include <time.h>

static int64_t wall_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

struct due__ctl_times due__ctl_times_now(const due_queue *q)
{
    int64_t before_ns = wall_now();
    struct due__ctl_times t = { .now_ns = due_now(q) };
    int64_t after_ns = wall_now();

    t.wall_ns = before_ns <= t.now_ns && t.now_ns <= after_ns ? t.now_ns : before_ns;
    return t;
}

int64_t due__ctl_times_to(struct due__ctl_times t, int64_t wall_ns)
{
    int64_t left_ns = wall_ns - t.wall_ns; /* both are 0 or more */
    int64_t at_ns;

    if (wall_ns == DUE_FOREVER || __builtin_add_overflow(t.now_ns, left_ns, &at_ns))
        return DUE_FOREVER;
    return at_ns < 0 ? 0 : at_ns;
}
