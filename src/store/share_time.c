/* share_time.c - the time of a shared queue.
 *
 * Time is the store's.  Each answer says what it is there, and took effect between two moments of
 * ours: so the store's clock is known up to a round trip.  What is to be late rather than early, a
 * delay, is counted from the latest that it may be; a hold ends for us as if it had begun when the
 * claim was sent.
 *
 * Guards     K  the key (sender.c)      A  atomic, see Edges
 */
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/share.h"

#define ANEW_NS DUE_S(10) /* a measured difference of clocks is good for so long */

int64_t due__sharing_clock(const struct due_queue *q)
{
    return q->clock.manual != NULL ? due__clock_now(&q->clock) : due__boottime_now();
}

int64_t due__sharing_now(const struct due_queue *q)
{
    const struct due__sharing *sh = q->commits->share;

    if (q->clock.manual != NULL)
        return due__clock_now(&q->clock);
    return due__time_add(due__boottime_now(),
                         due__load_relaxed(&sh->ahead_ns)); /* no edge: one word, and a guess */
}

int64_t due__sharing_mid(const struct due_queue *q)
{
    const struct due__sharing *sh = q->commits->share;

    if (q->clock.manual != NULL)
        return due__clock_now(&q->clock);
    int64_t ahead = due__load_relaxed(&sh->ahead_ns); /* no edge: ours, with the key */
    return due__boottime_now() + ahead - (ahead - sh->behind_ns) / 2;
}

int64_t due__sharing_late(const struct due_queue *q, uint32_t number)
{
    int64_t late = due__sharing_now(q) - due__hold_at(q, number)->due_ns;

    return late > 0 ? late : 0;
}

void due__sharing_measure(struct due__sharing *sh, int64_t from_ns, int64_t to_ns, int64_t now_ns)
{
    int64_t most = now_ns - from_ns;
    int64_t least = now_ns - to_ns;
    int64_t ahead = due__load_relaxed(&sh->ahead_ns); /* no edge: ours, with the key */
    bool old = sh->measured_ns == 0 || to_ns - sh->measured_ns > ANEW_NS;
    bool stepped = least > ahead || most < sh->behind_ns;

    if (!old && !stepped && most - least > ahead - sh->behind_ns)
        return;
    due__store_relaxed(&sh->ahead_ns, most); /* no edge: one word */
    sh->behind_ns = least;
    sh->measured_ns = to_ns;
}

/* A message that lay there for a while says less, and nothing wrong. */
void due__sharing_at_least(struct due__sharing *sh, int64_t least_ns)
{
    if (least_ns <= sh->behind_ns)
        return;
    sh->behind_ns = least_ns;
    if (least_ns <= due__load_relaxed(&sh->ahead_ns)) /* no edge: ours, with the key */
        return;
    due__store_relaxed(&sh->ahead_ns, least_ns); /* no edge: one word */
    sh->measured_ns = 0; /* by how much more is for the next answer to say */
}
