/* reschedule.c - a waiting job gets another deadline.
 *
 * Guards     T  the timeline lock, for due__move_to()
 *
 * Edges      described elsewhere: J1 slab.h, E3 tenure.c, R1 lease.c
 */
#include "job/reschedule.h"

#include "job/claim.h"
#include "os/atomic.h"
#include "queue/job_records.h"

int due__move_to(struct due_queue *q, uint32_t number, uint32_t generation, int64_t at_ns)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */
    int rc;

    do {
        rc = due__obstacle(w, generation);
        if (rc != 0)
            return rc;
    } while (!due__word_claim(&j->word, &w, DUE__MOVING)); /* J1 */
    if (w & DUE__HELD)
        due__store_relaxed(&due__lease_at(q, number)->deadline_ns, at_ns); /* R1 of lease.c */
    w = due__limiter_left(q, number, w);
    due__replace(q, number, w, DUE__WAITING, at_ns);
    return 0;
}

int due__reschedule_stored(struct due_queue *q, uint32_t number, uint32_t generation, int64_t at_ns,
                           struct due__deadline *by)
{
    int rc = due__claim_sent(q, number, generation, NULL, by);

    if (rc != 0)
        return rc;
    if (due__load_seq(&q->state) & DUE__CLOSING) /* E3: the one who closes will find it again */
        rc = DUE_ECLOSED;
    else
        rc = q->journal->change(q, number, DUE__MOVE, at_ns, by);
    if (rc != 0 && rc != DUE_EINDOUBT)
        due__unclaim(q, number, false);
    return rc;
}
