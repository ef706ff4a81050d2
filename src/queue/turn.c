/* turn.c - whose turn it is among topics with something due, and what is first in their lines.
 *
 * Guards     T  the timeline lock, for every call
 *
 * Not here   Taking what is shown without the lock, and one job from waiting to lent: dequeue.c.
 */
#include "queue/queue.h"

#include "os/atomic.h"

/* Up to @max live jobs of @t: what is shown, then what stands behind it. */
static size_t take_of(struct due_queue *q, struct due__topic *t, struct due__slot *slots,
                      size_t max)
{
    size_t got = due__take_shown(q, t, slots, max);
    size_t looked = 0;

    while (got < max && t->line.count > 0 && looked < DUE__DEAD_MAX) {
        size_t n = 0;

        for (; got + n < max && t->line.count > 0; n++)
            slots[got + n] = due__line_pop(&t->line, &q->nodes);
        q->in_lines -= n;
        looked += n;
        got += due__take_all(q, t, slots + got, n);
    }
    due__topic_refill(q, t);
    return got;
}

/* The same.  NOTHING: it has none, and has left the ring; AGAIN: many dead ones were passed over,
 * and more are left. */
static enum due__found take_if_any(struct due_queue *q, struct due__topic *t,
                                   struct due__slot *slots, size_t max, size_t *got)
{
    *got = take_of(q, t, slots, max);
    if (*got > 0)
        return DUE__FOUND;
    if (t->line.count > 0 || due__window_count(&t->window) > 0)
        return DUE__AGAIN; /* the rest may have been shown just now */
    due__topic_unlist(q, t);
    return DUE__NOTHING;
}

/* Any topic: the one whose turn it is, and then the next one's.  One job at a time, if there is
 * more than one topic. */
static enum due__found take_any(struct due_queue *q, struct due__slot *slots, size_t max,
                                size_t *got)
{
    while (q->ring != NULL) {
        struct due__topic *t = q->ring;
        enum due__found found = take_if_any(q, t, slots, t->next == t ? max : 1, got);

        if (found == DUE__FOUND)
            due__topic_last(q, t);
        if (found != DUE__NOTHING)
            return found;
    }
    return DUE__NOTHING;
}

/* Of these topics, with something in the ring: the one that had its last turn first. */
static struct due__topic *next_of(const struct due_queue *q, const int *topics, size_t n)
{
    struct due__topic *next = NULL;

    for (size_t i = 0; i < n; i++) {
        struct due__topic *t = due__topic_at(q, (uint32_t)topics[i]);

        if (t->listed && (next == NULL || t->turn < next->turn))
            next = t;
    }
    return next;
}

enum due__found due__take_ready(struct due_queue *q, const int *topics, size_t n,
                                struct due__slot *slots, size_t max, size_t *got)
{
    struct due__topic *t;

    *got = 0;
    if (topics == NULL)
        return take_any(q, slots, max, got);
    while ((t = next_of(q, topics, n)) != NULL) {
        enum due__found found = take_if_any(q, t, slots, n == 1 ? max : 1, got);

        if (found == DUE__FOUND)
            t->turn = ++q->turns_had;
        if (found != DUE__NOTHING)
            return found;
    }
    return DUE__NOTHING;
}
