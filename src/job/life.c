/* life.c - what the tenure of the queue's lock leaves to the floor of jobs. */
#include "job/life.h"

#include "job/dead_letter.h"
#include "job/key_table.h"
#include "job/lease.h"
#include "queue/queue.h"

static void lease_ended(struct due_queue *q, uint32_t number)
{
    due__lease_ended(q, number, true);
}

const struct due__life due__jobs_life = {
    .time_came = due__dying_due,
    .lease_ended = lease_ended,
    .unlinked = due__dying_unlinked,
    .see_to = due__dying_bury,
    .tidy_up = due__keys_sweep,
};
