/* event_loop.c - for event loops and programs without threads: a descriptor, and one's own turn.
 *
 * The descriptor is a timerfd on the queue's clock, set to the time of the next job, and into the
 * past when one is ready.  A take that finds nothing sets it to the next deadline again.
 *
 * Edges      P1  the holder of the timeline lock writes the time wanted, then whoever is second in
 *                the descriptor's own lock reads it and sets the timer: the last setting is always
 *                the last time wanted.
 *
 * Not here   On a manual clock there is no timer: turning the clock sets it into the past.
 */
#include "queue/queue.h"

#include <limits.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "os/atomic.h"

static int64_t wanted(struct due_queue *q)
{
    int64_t bound = due__timeline_bound(&q->timeline);

    if (q->commits != NULL && !(due__load_seq(&q->state) & DUE__CLOSING)) { /* E3 of tenure.c */
        if (due__load_seq(&q->commits->takings_ready) > 0)                  /* Q7 of takings.c */
            return 0;
        if (due__load_seq(&q->commits->takings_under_way) > 0) /* Q7: first that */
            return DUE_FOREVER;
    }
    if ((due__load_seq(&q->state) & DUE__CLOSING) || due__topics_ready(q)) /* E3 of tenure.c */
        return 0;
    if (q->clock.manual != NULL)
        return bound <= due__clock_now(&q->clock) ? 0 : DUE_FOREVER;
    return bound;
}

bool due__fd_note(struct due_queue *q)
{
    int64_t want = wanted(q);

    if (want == due__load_relaxed(&q->fd_want) && !q->fd_anew) /* P1 */
        return false;
    q->fd_anew = false;
    due__store_release(&q->fd_want, want); /* P1 */
    return true;
}

void due__fd_again(struct due_queue *q)
{
    q->fd_anew = true;
}

void due__fd_arm(struct due_queue *q)
{
    due__lock_acquire(&q->fdlock);
    int64_t want = due__load_acquire(&q->fd_want); /* P1 */

    due__timer_set(due__load_relaxed(&q->fd), want);
    due__lock_release(&q->fdlock);
}

int due_fd(due_queue *q)
{
    struct due__tenure t;

    if (due__forked(q))
        return DUE_EFORK;
    if (due__load_seq(&q->state) & DUE__CLOSING) /* E3 of tenure.c: nothing hangs on it */
        return DUE_ECLOSED;
    int fd = due__load_acquire(&q->fd); /* P1 */
    if (fd >= 0)
        return fd;
    fd = timerfd_create(q->clock.manual != NULL ? CLOCK_MONOTONIC : q->clock.id,
                        TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0)
        return DUE_ESYS;
    due__enter(q, &t);
    int other = due__load_relaxed(&q->fd); /* P1 */
    if (other < 0) {
        due__store_release(&q->fd_want, DUE_FOREVER); /* P1 */
        due__store_release(&q->fd, fd);               /* P1 */
        q->owed |= DUE__OWED_FD;
    }
    due__leave(q, &t);
    if (other >= 0)
        close(fd);
    return other >= 0 ? other : fd;
}

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

/* What has left the store for somebody who did not wait (takings.c) is there for the next one. */
static uint32_t left_ready(const struct due_queue *q)
{
    return q->commits != NULL ? due__load_seq(&q->commits->takings_ready) : 0; /* Q7 */
}

int due_poll(due_queue *q, int64_t *next_ns)
{
    struct due__tenure t;
    uint64_t shown;
    bool done;

    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    due__drain_all(q);
    do {
        due__enter(q, &t);
        done = due__catch_up(q, DUE__PROXY_BATCH) && !due__more_to_come(q);
        shown = takeable(q);
        due__leave(q, &t);
    } while (!done);
    if (next_ns != NULL)
        *next_ns = due_next_deadline(q);
    uint64_t ready = due__ready_count(q); /* without the cancelled ones, but with paused topics' */
    ready = (shown < ready ? shown : ready) + left_ready(q);
    due__inside_end(q, inside);
    return ready < INT_MAX ? (int)ready : INT_MAX;
}

/* The deadline of the timeline's head, if nothing is ready and it is alive: the usual case.  False:
 * look at everything.  *@deadline_ns stays if nothing is held. */
static bool next_of_timeline(struct due_queue *q, int64_t *deadline_ns)
{
    struct due__slot s;
    uint64_t w;

    if (!due__catch_up(q, DUE__PROXY_BATCH) || due__more_to_come(q) || due__topics_ready(q) ||
        !due__head_ready(q))
        return false;
    if (!due__timeline_head(&q->timeline, &s))
        return true;
    *deadline_ns = due__slot_deadline(s);
    return due__slot_alive(&q->slab, s, &w);
}

int64_t due_next_deadline(due_queue *q)
{
    struct due__tenure t;
    int64_t deadline = DUE_FOREVER;
    due_info info;

    if (due__forked(q))
        return DUE_EFORK;
    if (left_ready(q) > 0)
        return due__clock_now(&q->clock);
    due__enter(q, &t);
    bool found = due__inbox_quiet(&q->inbox) && next_of_timeline(q, &deadline); /* I2 */
    due__leave(q, &t);
    if (found)
        return deadline;
    int rc = due_peek(q, &info);
    if (rc == DUE_EAGAIN)
        return DUE_FOREVER;
    return rc < 0 ? rc : info.deadline_ns;
}
