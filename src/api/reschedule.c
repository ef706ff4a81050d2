/* reschedule.c - due_reschedule(), due_promote().
 *
 * Edges      described elsewhere: E3 tenure.c
 */
#include "job/reschedule.h"

#include "job/lease.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/queue.h"

static int reschedule(struct due_queue *q, due_id id, int64_t at_ns, bool now)
{
    struct due__deadline by = { 0 };
    struct due__tenure t;
    uint32_t number;
    uint32_t generation;

    if (at_ns < 0)
        return DUE_EINVAL;
    int rc = due__id_find(q, id, &by, &number, &generation);
    if (rc != 0)
        return rc;
    due__lapse(q, number, &by);
    if (q->commits != NULL)
        return due__reschedule_stored(q, number, generation,
                                      now ? due__clock_now(&q->clock) : at_ns, &by);
    due__drain_all(q); /* what the caller put in before stands before it */
    due__enter(q, &t);
    rc = DUE_ECLOSED;
    if (!(due__load_seq(&q->state) & DUE__CLOSING)) { /* E3: whoever closes takes the lock after */
        int64_t now_ns = due__clock_now(&q->clock);

        due__drain_or_say(q, DUE__FOREIGN_MAX);
        due__move_due(q, now_ns);
        rc = due__move_to(q, number, generation, now ? now_ns : at_ns);
        due__move_due(q, now_ns);
    }
    due__tenure_end(q, &t);
    return rc;
}

static int reschedule_inside(struct due_queue *q, due_id id, int64_t at_ns, bool now)
{
    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    int rc = due__named(q, reschedule(q, id, at_ns, now));
    due__inside_end(q, inside);
    return rc;
}

int due_reschedule(due_queue *q, due_id id, int64_t at_ns)
{
    return reschedule_inside(q, id, at_ns, false);
}

int due_promote(due_queue *q, due_id id)
{
    return reschedule_inside(q, id, 0, true);
}
