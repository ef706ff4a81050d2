/* take.c - one job from waiting to lent, and what is ready of topics: whose turn it is, and what is
 * first in their lines.
 *
 * Guards     T  the timeline lock, for due__take_ready()
 *
 * Edges      described elsewhere: I1 inbox.c, J1 slab.h, V1 ready_line.c
 *
 * Not here   Who wants what, and waiting for it: request.c.
 */
#include "queue/take.h"

#include "os/atomic.h"

void due__wait_moved(struct due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    due__tenure_end(q, &t);
}

const struct due__job *due__last_in_inbox(const struct due_queue *q)
{
    struct cds_wfcq_node *last = due__load_acquire(&q->inbox.tail.p); /* I1 */

    return last != &q->inbox.head.node ? caa_container_of(last, struct due__job, link.node) : NULL;
}

bool due__was_moving(struct due_queue *q, struct due__slot s, uint64_t w)
{
    if (due__word_state(w) != DUE__MOVING ||
        due__word_stamp(w) != (due__slot_arrival(s) & DUE__STAMP_MASK))
        return false;
    due__wait_moved(q);
    return true;
}

size_t due__take_all(struct due_queue *q, const struct due__topic *t, struct due__slot *slots,
                     size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; n > 1 && i < n; i++)
        due__job_prefetch(&q->slab, due__slot_job(slots[i]));
    for (size_t i = 0; i < n; i++) {
        struct due__slot s = due__slot_plain(q, slots[i]);

        if (due__take_slot(q, t, s))
            slots[kept++] = s;
    }
    return kept;
}

size_t due__take_shown(struct due_queue *q, struct due__topic *t, struct due__slot *slots,
                       size_t max)
{
    size_t got = 0;

    while (got < max) {
        uint32_t want = max - got < DUE__TAKE_MAX ? (uint32_t)(max - got) : DUE__TAKE_MAX;
        uint32_t n = due__window_take(&t->window, slots + got, want);

        if (n == 0)
            break;
        got += due__take_all(q, t, slots + got, n);
    }
    return got;
}

/* The first live job of @t: one that is shown, or the first behind that. */
static size_t take_one_of(struct due_queue *q, struct due__topic *t, struct due__slot *s)
{
    bool got = due__take_one_shown(q, t, s);

    for (size_t looked = 0; !got && t->line.count > 0 && looked < DUE__DEAD_MAX; looked++) {
        *s = due__slot_plain(q, due__line_pop(&t->line, &q->nodes));
        q->in_lines--;
        got = due__take_slot(q, t, *s);
    }
    if (t->line.count > 0)
        due__topic_refill(q, t);
    return got;
}

/* Up to @max live jobs of @t: what is shown, then what stands behind it. */
static size_t take_of(struct due_queue *q, struct due__topic *t, struct due__slot *slots,
                      size_t max)
{
    if (max == 1)
        return take_one_of(q, t, slots);
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

bool due__head_alone(const struct due_queue *q, int64_t now_ns)
{
    const struct due__timeline *tl = &q->timeline;
    struct due__slot second;

    if (due__timeline_second(tl, &second))
        return due__slot_deadline(second) > now_ns;
    return due__timeline_front(tl) == 1 && due__timeline_bound_behind(tl) > now_ns;
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
static struct due__topic *next_of(const struct due_queue *q, const struct due__wanted *wanted)
{
    struct due__topic *next = NULL;

    for (size_t i = 0; i < wanted->count; i++) {
        struct due__topic *t = due__topic_at(q, (uint32_t)wanted->topics[i]);

        if (t->listed && (next == NULL || t->turn < next->turn))
            next = t;
    }
    return next;
}

enum due__found due__take_ready(struct due_queue *q, const struct due__wanted *wanted,
                                struct due__slot *slots, size_t max, size_t *got)
{
    struct due__topic *t;

    *got = 0;
    if (wanted->topics == NULL)
        return take_any(q, slots, max, got);
    while ((t = next_of(q, wanted)) != NULL) {
        enum due__found found = take_if_any(q, t, slots, wanted->count == 1 ? max : 1, got);

        if (found == DUE__FOUND)
            t->turn = ++q->turns_had;
        if (found != DUE__NOTHING)
            return found;
    }
    return DUE__NOTHING;
}
