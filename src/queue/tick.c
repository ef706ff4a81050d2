/* tick.c - a manual clock was turned: who waits for a time that has come is rung.
 *
 * Nobody comes here before somebody has asked to hear of turns: who waits, who closes, who has the
 * descriptor, a second topic, and at open a journal.
 *
 * Edges      described elsewhere: I2 inbox.c, T1 topic.c, C5 inside.c, K2 clock.c
 */
#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/queue.h"

/* Ring those whose time a manual clock has passed.  True: all of them. */
static bool ring_late(struct due__tenure *t, struct due__waiter *first, int64_t now_ns, bool all)
{
    for (struct due__waiter *w = first; w != NULL; w = all ? w->all_next : w->line_next) {
        if (w->until_ns > now_ns || w->timed_out)
            continue;
        if (!due__tenure_room(t))
            return false;
        w->timed_out = true;
        due__tenure_ring(t, &w->bell);
    }
    return true;
}

void due__tick(void *queue)
{
    struct due_queue *q = queue;
    struct due__tenure t;
    bool closing, done;

    if (due__forked(q))
        return;
    int64_t now = due__clock_now(&q->clock);
    if (!due__inbox_quiet(&q->inbox)) /* I2 */
        due__drain_all(q);
    do {
        due__enter(q, &t);
        closing = (due__load_seq(&q->state) & DUE__REFUSING) != 0; /* C5: under the lock */
        if (due__load_relaxed(&q->topic_count) > 1)                /* T1 of topic.c */
            q->debts |= DUE__DEBT_TURN;
        done = ring_late(&t, q->all, now, true);
        done = ring_late(&t, q->capacity_line.first, now, false) && done;
        done = ring_late(&t, q->timed_waits.first, now, false) && done;
        due__tenure_end(q, &t); /* and what is due is moved, if anybody waits for it */
    } while (!done);
    if (q->shared)
        q->journal->wanted(q);
    if (closing)
        due__closers_tick(q, now);
}
