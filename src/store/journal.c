/* journal.c - the journal of a queue with a store: changes are sent, and applied when they have
 * landed.
 *
 * Edges      described elsewhere: G2 sender.c, J1 slab.h
 */
#include "queue/journal.h"

#include "job/apply.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

static void stored_leave(struct due_queue *q, uint32_t number, enum due__purpose purpose)
{
    due__commit_submit(q, number, purpose, 0, NULL);
    due__commit_go(q, NULL, 0);
}

static bool stored_end_unsent(struct due_queue *q, uint32_t number, uint64_t w,
                              enum due__purpose purpose)
{
    struct due__change c = { .number = number,
                             .purpose = (uint8_t)purpose,
                             .waited = purpose == DUE__LEND };

    if (!(w & DUE__LINKED))
        return false;
    uint64_t bytes = due__owed_of(q, number);
    due__change_end(q, &c);
    due__commit_given_up(q, bytes);
    return true;
}

static void stored_given_up(struct due_queue *q)
{
    due__commit_given_up(q, 0);
}

static bool stored_closed(const struct due_queue *q)
{
    return due__load_seq(&q->commits->stopped) != 0; /* G2 */
}

/* Has it left the store for nobody, and could not be put in again?  Only once nothing is sent any
 * more that stays so. */
static bool stored_lacks(const struct due_queue *q, uint32_t number)
{
    return stored_closed(q) && due__stored_at(q->commits, number)->stored >= DUE__TO_STORE;
}

const struct due__journal due__stored_journal = {
    .unsent = DUE__LINKED,
    .change = due__commit_one,
    .leave = stored_leave,
    .end_unsent = stored_end_unsent,
    .given_up = stored_given_up,
    .flush = due__commit_flush,
    .closed = stored_closed,
    .lacks = stored_lacks,
};
