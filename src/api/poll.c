/* poll.c - due_poll(), due_next_deadline(): one's own turn, for programs without threads.
 *
 * Edges      described elsewhere: I2 I3 inbox.c, Q7 takings.c, V1 ready_line.c
 */
#include "api/poll.h"

#include <limits.h>

#include "job/lease.h"
#include "job/request.h"
#include "os/atomic.h"
#include "queue/compaction.h"
#include "queue/counts.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "queue/tenure.h"

/* Jobs in the lines of topics that are not paused; cancelled ones may be among them. */
static uint64_t takeable(const struct due_queue *q)
{
    const struct due__topic *t = q->ring;
    uint64_t n = 0;

    while (t != NULL) {
        n += due__window_count(&t->window) + t->line.count;
        t = t->next != q->ring ? t->next : NULL;
    }
    return n;
}

/* What has landed for somebody who did not wait is there for the next one. */
static uint32_t left_ready(const struct due_queue *q)
{
    bool coming;

    return due__left_over(q, &coming);
}

int due_poll(due_queue *q, int64_t *next_ns)
{
    struct due__tenure t;
    uint64_t shown;
    bool done;

    if (due__forked(q))
        return DUE_EFORK;
    if (due__nothing_yet(q)) {
        int64_t next = due_next_deadline(q); /* in a tenure, which pays what is owed */

        if (next_ns != NULL)
            *next_ns = next;
        return 0;
    }
    bool inside = due__inside_stored(q);
    due__drain_all(q);
    do {
        due__enter(q, &t);
        done = due__catch_up(q, DUE__PROXY_BATCH) && !due__more_to_come(q);
        shown = takeable(q);
        if (q->sweeping)
            due__sweep_look(q);
        due__tenure_end(q, &t);
    } while (!done);
    if (next_ns != NULL)
        *next_ns = due_next_deadline(q);
    uint64_t ready = due__ready_count(q); /* without the cancelled ones, but with paused topics' */
    ready = (shown < ready ? shown : ready) + left_ready(q);
    due__inside_end(q, inside);
    return ready < INT_MAX ? (int)ready : INT_MAX;
}

void due__lapse_now(struct due_queue *q)
{
    if (q->clock.manual != NULL)
        due_poll(q, NULL);
    else
        due__lapse_all(q, NULL);
}

/* The deadline of the first that is ready, in the topic whose turn it is, if it is alive: what is
 * shown need not be taken back for that.  Nobody publishes meanwhile, so what is read of the window
 * is a slot; a taker may be quicker, and then its job is not ready any more. */
static bool next_of_ready(const struct due_queue *q, int64_t *deadline_ns)
{
    const struct due__topic *t = q->ring;
    struct due__slot s;
    uint64_t w;

    uint64_t ends = due__load_acquire(&t->window.ends); /* V1 */
    if ((uint32_t)ends != (uint32_t)(ends >> 32))
        s = due__window_slot(&t->window, (uint32_t)ends); /* V1 */
    else if (!due__line_first(&t->line, &s))
        return false;
    s = due__slot_plain(q, s);
    *deadline_ns = due__slot_deadline(s);
    return due__slot_alive(&q->slab, s, &w) && (w & DUE__READY);
}

/* The deadline of the first that is ready at @now_ns, or else of the timeline's head, if it is
 * alive: the usual case.  False: look at everything.  *@deadline_ns stays if nothing is held. */
static bool next_of_all(struct due_queue *q, int64_t now_ns, int64_t *deadline_ns)
{
    uint64_t w;

    const struct due__slot *first = due__timeline_first(&q->timeline);
    bool ahead = first != NULL && due__slot_deadline(*first) > now_ns;

    if (ahead)
        due__all_moved(q, now_ns);
    else if (!due__move_due(q, now_ns))
        return false;
    if (due__more_to_come(q))
        return false;
    if (q->ring != NULL && due__topics_ready(q))
        return next_of_ready(q, deadline_ns);
    if (!ahead)
        first = due__timeline_first(&q->timeline);
    if (first == NULL) {
        if (due__timeline_count(&q->timeline) > 0 && !due__head_load(q))
            return false;
        first = due__timeline_first(&q->timeline);
        if (first == NULL)
            return true;
    }
    *deadline_ns = due__slot_deadline(*first);
    return due__slot_alive(&q->slab, *first, &w);
}

/* By a look at everything. */
static __attribute__((noinline)) int64_t next_by_peek(due_queue *q)
{
    due_info info;

    return due_peek(q, &info) == 0 ? info.deadline_ns : DUE_FOREVER;
}

int64_t due__next_here(struct due_queue *q)
{
    int64_t deadline = DUE_FOREVER;

    if (due__forked(q))
        return DUE_FOREVER;
    if (left_ready(q) > 0)
        return due__clock_now(&q->clock);
    due__short_enter(q);
    int64_t now = due__clock_now(&q->clock);                                    /* I3 */
    bool found = due__inbox_quiet(&q->inbox) && next_of_all(q, now, &deadline); /* I2 */
    if (q->sweeping)
        due__sweep_look(q); /* it may be nobody else's */
    due__short_end(q);
    return found ? deadline : next_by_peek(q);
}

int64_t due_next_deadline(due_queue *q)
{
    int64_t next = due__next_here(q);

    if (!q->shared || next == DUE_FOREVER)
        return next;
    int64_t left = next - due__clock_now(&q->clock); /* before the other one: so late, not early */
    return due__time_add(due__jobs_now(q), left);
}
