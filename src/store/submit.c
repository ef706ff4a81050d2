/* submit.c - changes that are left in the commit inbox.
 *
 * Guards     D  the calls' lock      O  its owner's alone
 *
 * Edges      described elsewhere: G1 sender.c
 */
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

/* Nodes that are left in the inbox together. */
struct left {
    struct due__string all; /* O */
    uint64_t count;         /* O  of them */
};

/* Under the calls' lock: the change of a job that the caller owns.  If the node of one that was
 * given up is still in the inbox, it now stands for this one. */
static void leave(struct due__commits *c, uint32_t number, enum due__purpose purpose,
                  int64_t want_ns, struct due__submission *a, struct left *left)
{
    struct due__stored *s = due__stored_at(c, number);
    bool queued = (s->purpose & DUE__QUEUED) != 0;

    s->purpose = (uint8_t)((unsigned)purpose | DUE__QUEUED);
    s->want_ns = want_ns;
    s->submission = a;
    if (queued)
        return;
    due__string_add(&left->all, &s->node);
    left->count++;
}

static void put(struct due__commits *c, struct left *left)
{
    /* no edge: a flush counts what its own thread left */
    due__add_relaxed(&c->submitted, left->count);
    due__inbox_put_all(&c->inbox, &left->all); /* G1 */
}

void due__submit_all(struct due_queue *q, const uint32_t *numbers, size_t n,
                     enum due__purpose purpose, int64_t want_ns, struct due__submission *a)
{
    struct due__commits *c = q->commits;
    struct left left = { .count = 0 };

    due__lock_acquire(&c->calls);
    for (size_t i = 0; i < n; i++)
        leave(c, numbers[i], purpose, want_ns, a, &left);
    due__lock_release(&c->calls);
    put(c, &left);
}

void due__submit_each(struct due_queue *q, const uint32_t *numbers, const uint8_t *purposes,
                      size_t n, struct due__submission *a)
{
    struct due__commits *c = q->commits;
    struct left left = { .count = 0 };

    due__lock_acquire(&c->calls);
    for (size_t i = 0; i < n; i++) {
        if (purposes[i] != DUE__NO_CHANGE)
            leave(c, numbers[i], (enum due__purpose)purposes[i], 0, a, &left);
    }
    due__lock_release(&c->calls);
    put(c, &left);
}

void due__commit_submit(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                        int64_t want_ns, struct due__submission *a)
{
    due__submit_all(q, &number, 1, purpose, want_ns, a);
}
