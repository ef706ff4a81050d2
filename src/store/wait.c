/* wait.c - waiting for the store as such: that it is ours, was read, has it all, that something is
 * settled.
 *
 * Who waits here waits for no change of his own.  Who finds a job on its way to the store, or being
 * changed, waits for the next news: something was settled, or given up.  Then it looks again; it
 * may have been another job's.
 *
 * Guards     D  the calls' lock      A  atomic, see Edges
 *
 * Edges      described elsewhere: G1 G2 sender.c
 *
 * Always     N1  who gives something up sets the job free, and then counts that; who waits has read
 *                the count before it looked at the job.  So it finds the job free, or is told.
 */
#include "os/atomic.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "store/sender.h"

/* ---- What is waited for: under the calls' lock ---- */

static bool is_settled(const struct due__commits *c, const struct due__submission *a)
{
    return c->settled >= a->goal;
}

static bool is_news(const struct due__commits *c, const struct due__submission *a)
{
    return c->settled + c->given_up >= a->goal;
}

static bool has_room(const struct due__commits *c, const struct due__submission *a)
{
    (void)a;
    return !due__unsettled_crowded(c);
}

static bool is_held(const struct due__commits *c, const struct due__submission *a)
{
    (void)a;
    return due__boottime_now() < due__load_relaxed(&c->held_ns); /* no edge: it only grows */
}

static bool is_mended(const struct due__commits *c, const struct due__submission *a)
{
    (void)a;
    return !due__load_seq(&c->lacking); /* G2 */
}

static bool none_follows(const struct due__commits *c, const struct due__submission *a)
{
    (void)a;
    return c->following == 0;
}

/* Or cannot be. */
static bool is_loaded(const struct due__commits *c, const struct due__submission *a)
{
    (void)a;
    return !due__reader_loads(c) || due__load_seq(&c->load_error); /* G2 */
}

/* ---- Until it is so ---- */

/* The caller sends what waits meanwhile, if nobody else does; or (@proxy) the proxy is to see to
 * it.  0: it is so; or why not. */
static int wait_until(struct due_queue *q, due__reached *reached, uint64_t goal, bool proxy,
                      int64_t until_ns)
{
    struct due__submission a;

    if (!due__submission_begin_until(q, &a, reached, goal))
        return DUE_ENOMEM;
    if (proxy)
        due__proxy_call(q);
    else
        due__commit_go(q, &a, until_ns);
    int rc = due__submission_wait(q->commits, &a, until_ns) ? 0 : due__commit_excuse(q);
    due__submission_end(q, &a);
    return rc;
}

int due__commit_held(struct due_queue *q, struct due__deadline *by)
{
    struct due__commits *c = q->commits;
    int rc = 0;

    if (!is_held(c, NULL))
        rc = wait_until(q, is_held, 0, true, due__deadline_at(q, by));
    bool away = due__load_relaxed(&c->state) == DUE_ESTORE; /* no edge: a guess */
    if (rc == DUE_ETIMEDOUT && by->polls && !away)
        return DUE_EAGAIN;
    return rc != 0 ? rc : due__state_of(q);
}

int due__commit_load_error(struct due_queue *q)
{
    return due__load_seq(&q->commits->load_error); /* G2 */
}

int due__commit_why(struct due_queue *q, int rc)
{
    int blocked = rc == DUE_ETIMEDOUT ? due__commit_load_error(q) : 0;

    return blocked != 0 ? blocked : rc;
}

int due__commit_mended(struct due_queue *q, int64_t until_ns)
{
    return is_mended(q->commits, NULL) ? 0 : wait_until(q, is_mended, 0, true, until_ns);
}

int due__commit_loaded(struct due_queue *q, struct due__deadline *by)
{
    int rc = 0;

    if (!is_loaded(q->commits, NULL))
        rc = wait_until(q, is_loaded, 0, true, due__deadline_at(q, by));
    int blocked = due__reader_loads(q->commits) ? due__commit_load_error(q) : 0;
    return blocked != 0 ? blocked : rc;
}

int due__commit_whole(struct due_queue *q, struct due__deadline *by)
{
    if (due__load_seq(&q->commits->stopping)) /* G2 */
        return 0;
    int rc = due__commit_loaded(q, by);
    return rc == 0 ? due__commit_held(q, by) : rc;
}

/* A job that was taken back, or cancelled before it was sent, keeps its place on the way until the
 * store is reached again: so this is also the bound of those. */
int due__unsettled_wait(struct due_queue *q, int64_t until_ns)
{
    return due__unsettled_crowded(q->commits) ? wait_until(q, has_room, 0, false, until_ns) : 0;
}

int due__unsettled_take(struct due_queue *q, uint64_t bytes, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__submission a;

    if (due__unsettled_try(c, bytes))
        return 0;
    if (!due__submission_begin(q, &a, 1)) {
        due__unsettled_stand(c, NULL, 0);
        return DUE_ENOMEM;
    }
    due__unsettled_stand(c, &a, bytes);
    if (!due__submission_over(c, &a)) {
        due__commit_go(q, &a, until_ns);
        due__submission_wait(c, &a, until_ns);
    }
    int rc = due__unsettled_leave(c, &a) ? 0 : due__commit_excuse(q);
    due__submission_end(q, &a);
    return rc;
}

/* ---- Until something is settled ---- */

int due_flush(due_queue *q, int64_t timeout_ns)
{
    struct due__commits *c = q->commits;

    if (due__forked(q))
        return DUE_EFORK;
    if (timeout_ns < 0)
        return DUE_EINVAL;
    uint64_t goal = c != NULL ? due__load_relaxed(&c->submitted) : 0; /* no edge: ours at least */
    if (goal == 0)
        return c != NULL ? due__state_of(q) : 0;
    int rc =
        wait_until(q, is_settled, goal, false, due__time_add(due__monotonic_now(), timeout_ns));
    return rc != 0 ? rc : due__state_of(q);
}

int due__commit_flush(struct due_queue *q, struct due__deadline *by)
{
    int64_t left = due__deadline_at(q, by) - due__monotonic_now();

    return due_flush(q, left > 0 ? left : 0);
}

uint64_t due__commit_news(struct due__commits *c)
{
    due__lock_acquire(&c->calls); /* N1 */
    uint64_t news = c->settled + c->given_up;
    due__lock_release(&c->calls);
    return news;
}

int due__commit_await(struct due_queue *q, uint64_t goal, struct due__deadline *by)
{
    return wait_until(q, is_news, goal, false, due__deadline_at(q, by));
}

void due__commit_follows(struct due_queue *q, int by)
{
    struct due__commits *c = q->commits;

    due__lock_acquire(&c->calls);
    c->following += (uint32_t)by;
    if (c->following == 0)
        due__submission_ring_reached(c);
    due__lock_release(&c->calls);
}

int due__commit_followed(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    due__lock_acquire(&c->calls);
    bool none = none_follows(c, NULL);
    due__lock_release(&c->calls);
    return none ? 0 : wait_until(q, none_follows, 0, false, until_ns);
}

void due__commit_given_up(struct due_queue *q, uint64_t bytes)
{
    struct due__commits *c = q->commits;

    due__lock_acquire(&c->calls); /* N1 */
    c->given_up++;
    due__submission_ring_reached(c);
    due__unsettled_back(c, bytes);
    due__lock_release(&c->calls);
}
