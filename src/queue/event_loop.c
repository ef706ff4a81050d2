/* event_loop.c - for event loops and programs without threads: a descriptor, and one's own turn.
 *
 * The descriptor is a timerfd on the queue's clock, set to the time of the next job, and into the
 * past when one is ready.  A take that finds nothing sets it to the next deadline again.  Of a
 * shared queue it is that take that asks for what is due: while none has asked, it is readable.
 *
 * Edges      P1  the holder of the timeline lock writes the time wanted, then whoever is second in
 *                the descriptor's own lock reads it and sets the timer: the last setting is always
 *                the last time wanted.
 *            described elsewhere: K2 clock.c
 *
 * Not here   On a manual clock there is no timer: turning the clock sets it into the past.
 */
#include <limits.h>
#include <pthread.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "os/atomic.h"
#include "queue/queue.h"
#include "queue/stored.h"

static int64_t wanted(struct due_queue *q)
{
    int64_t bound = due__timeline_bound(&q->timeline);

    if (due__state_of(q) != 0) /* G2 of sender.c: a take says so */
        return 0;
    if (!(due__load_seq(&q->state) & DUE__CLOSING)) { /* E3 of tenure.c */
        bool coming;

        if (due__left_over(q, &coming) > 0)
            return 0;
        if (coming) /* first that */
            return DUE_FOREVER;
    }
    if ((due__load_seq(&q->state) & DUE__CLOSING) || due__topics_ready(q)) /* E3 of tenure.c */
        return 0;
    if (q->shared && !q->journal->asked(q)) /* else nobody would say when there is something */
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

/* Another was quicker. */
static void not_needed(int fd)
{
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* a close is a point of it */
    close(fd);
    pthread_setcancelstate(cancel, NULL);
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
    due__listener_hear(&q->turns); /* K2: before the tenure's end looks at the clock */
    due__enter(q, &t);
    int other = due__load_relaxed(&q->fd); /* P1 */
    if (other < 0) {
        due__store_release(&q->fd_want, DUE_FOREVER); /* P1 */
        due__store_release(&q->fd, fd);               /* P1 */
        q->debts |= DUE__DEBT_FD;
    }
    due__tenure_end(q, &t);
    if (other >= 0)
        not_needed(fd);
    return other >= 0 ? other : fd;
}
