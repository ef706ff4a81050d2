/* submit.c - changes that are left in the commit inbox.
 *
 * Guards     D  the calls' lock
 *
 * Edges      described elsewhere: G1 sender.c
 */
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

/* Changes of jobs that the caller owns.  If the node of a change that was given up is still in the
 * inbox, it now stands for this one. */
void due__submit_all(struct due_queue *q, const uint32_t *numbers, size_t n,
                     enum due__purpose purpose, int64_t want_ns, struct due__submission *a)
{
    struct due__commits *c = q->commits;
    struct due__string all = { NULL, NULL };
    uint64_t count = 0;

    due__lock_acquire(&c->calls);
    for (size_t i = 0; i < n; i++) {
        struct due__stored *s = due__stored_at(c, numbers[i]);
        bool queued = (s->purpose & DUE__QUEUED) != 0;

        s->purpose = (uint8_t)((unsigned)purpose | DUE__QUEUED);
        s->want_ns = want_ns;
        s->submission = a;
        if (queued)
            continue;
        due__string_add(&all, &s->node);
        count++;
    }
    due__lock_release(&c->calls);
    due__add_relaxed(&c->submitted, count); /* no edge: a flush counts what its own thread left */
    due__inbox_put_all(&c->inbox, &all);    /* G1 */
}

void due__commit_submit(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                        int64_t want_ns, struct due__submission *a)
{
    due__submit_all(q, &number, 1, purpose, want_ns, a);
}
