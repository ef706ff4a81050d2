/* news.c - waiting until another call has done with a job.
 *
 * Who finds a job on its way to the store, or being changed, waits for the next news: something was
 * settled, or given up.  Then it looks again; it may have been another job's.
 *
 * Guards     D  the calls' lock
 *
 * Always     N1  who gives something up sets the job free, and then counts that; who waits has read
 *                the count before it looked at the job.  So it finds the job free, or is told.
 */
#include "queue/queue.h"
#include "store/sender.h"

uint64_t due__commit_news(struct due__commits *c)
{
    due__lock_acquire(&c->calls); /* N1 */
    uint64_t news = c->settled + c->given_up;
    due__lock_release(&c->calls);
    return news;
}

int due__commit_await(struct due_queue *q, uint64_t goal, struct due__deadline *by)
{
    struct due__commits *c = q->commits;
    struct due__asked a;

    if (!due__asked_begin(q, &a, 0, goal))
        return DUE_ENOMEM;
    due__lock_acquire(&c->calls);
    a.news = true;
    due__lock_release(&c->calls);
    int64_t until = due__deadline_at(q, by);
    due__commit_go(q, &a, until);
    due__asked_wait(q, &a, until);
    bool some = due__asked_over(c, &a);
    due__asked_end(q, &a);
    return some ? 0 : due__commit_excuse(q);
}

void due__commit_given_up(struct due_queue *q, uint64_t bytes)
{
    struct due__commits *c = q->commits;

    due__lock_acquire(&c->calls); /* N1 */
    c->given_up++;
    for (struct due__asked *a = c->first; a != NULL; a = a->next) {
        if (a->news && due__asked_reached(c, a))
            due__bell_ring(&a->waiter->bell);
    }
    due__owed_back(c, bytes);
    due__lock_release(&c->calls);
}
