/* put.c - jobs on their way into the store: named, left in the commit inbox, and waited for.
 *
 * If time is up the call takes back what was not sent yet, last first, so that of its jobs those
 * that land are the first ones (N4 of commit.c).
 *
 * Edges      described elsewhere: G1 G2 commit.c, J1 job.h, S2 stored.c
 */
#include "commit.h"

#include "atomic.h"
#include "core.h"
#include "front.h"

void due__refused(struct due_queue *q, uint32_t number)
{
    struct due__shard *it = due__shard_enter(&q->slab);

    it->refused++;
    due__step(q, number, DUE__S_BACK, 0);
    due__place_done(q, it, number);
    due__shard_leave(it);
}

/* Names for @n places, known to the index. */
static int name_all(struct due_queue *q, const struct due__fresh *jobs, size_t n)
{
    struct due__commits *c = q->commits;

    /* Places are given back with a node in the inbox only after that. */
    if (due__load_seq(&c->stopping)) /* G2 */
        return DUE_ECLOSED;

    for (size_t i = 0; i < n; i++) {
        uint32_t number = jobs[i].number;

        int rc = due__side_make(&c->stored, &q->alloc, number) ? 0 : DUE_ENOMEM;
        if (rc == 0) {
            struct due__stored *s = due__stored_at(c, number);
            uint64_t sequence = due__add_relaxed(&c->sequence, 1); /* no edge: a counter */

            due__stored_name(s, due__id_stored(jobs[i].f.priority, c->info.writer, sequence));
            if (s->stored != DUE__NOT_STORED) /* it was kept; else who mirrors may read it */
                s->stored = DUE__NOT_STORED;
            rc = due__index_add(&c->index, number, true);
        }
        while (rc != 0 && i-- > 0)
            due__index_remove(&c->index, jobs[i].number);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* It can be sent from here on. */
static void leave_job(struct due_queue *q, const struct due__fresh *it)
{
    struct due__commits *c = q->commits;

    due__facts_store(it->job, it->f);
    due__store_relaxed(&it->job->deadline_ns, it->deadline_ns); /* J1 */
    due__store_release(&it->job->word,                          /* J1 */
                       due__word(it->generation, 0, (uint64_t)DUE__WAITING | DUE__LINKED));
    due__inbox_put(&c->inbox, &due__stored_at(c, it->number)->node); /* G1 */
}

void due__leave_fresh(struct due_queue *q, const struct due__fresh *it, struct due__asked *a)
{
    struct due__commits *c = q->commits;

    due__add_relaxed(&c->submitted, 1); /* no edge: a flush counts what its own thread left */
    due__lock_acquire(&c->calls);       /* who had the place before may still look */
    if (a != NULL)
        due__stored_at(c, it->number)->put_asked = a;
    due__lock_release(&c->calls);
    leave_job(q, it);
}

static bool keyed(const struct due__fresh *it)
{
    return (it->f.payload & DUE__FRONT) && due__front_at(it->job)->key != NULL;
}

/* Some of them have keys: how many were left, up to the first one that cannot have its key. */
static size_t leave_keyed(struct due_queue *q, const struct due__fresh *jobs, size_t n,
                          struct due__asked *a)
{
    size_t left = 0;

    for (; left < n; left++) {
        if (!keyed(&jobs[left]))
            due__leave_fresh(q, &jobs[left], a);
        else if (!due__keyed_leave(q, &jobs[left], a))
            break;
    }
    if (a != NULL && left < n) {
        due__lock_acquire(&q->commits->calls);
        a->left -= (uint32_t)(n - left);
        due__lock_release(&q->commits->calls);
    }
    return left;
}

static void leave_plain(struct due_queue *q, const struct due__fresh *jobs, size_t n,
                        struct due__asked *a)
{
    struct due__commits *c = q->commits;

    due__add_relaxed(&c->submitted, n); /* no edge: a flush counts what its own thread left */
    due__lock_acquire(&c->calls);       /* who had the place before may still look */
    for (size_t i = 0; a != NULL && i < n; i++)
        due__stored_at(c, jobs[i].number)->put_asked = a;
    due__lock_release(&c->calls);
    for (size_t i = 0; i < n; i++)
        leave_job(q, &jobs[i]);
}

static size_t leave_jobs(struct due_queue *q, const struct due__fresh *jobs, size_t n,
                         struct due__asked *a)
{
    for (size_t i = 0; i < n; i++) {
        if (keyed(&jobs[i]))
            return leave_keyed(q, jobs, n, a);
    }
    leave_plain(q, jobs, n, a);
    return n;
}

/* Take back the jobs that were not sent yet, last first.  Answers how many are on their way still,
 * or have been: the first ones. */
static uint32_t take_back(struct due_queue *q, const struct due__fresh *jobs, size_t n,
                          struct due__asked *a)
{
    struct due__commits *c = q->commits;
    uint32_t doubt = 0;

    for (size_t i = n; i-- > 0;) {
        struct due__stored *s = due__stored_at(c, jobs[i].number);
        uint64_t w = due__word(jobs[i].generation, 0, (uint64_t)DUE__WAITING | DUE__LINKED);
        uint64_t mine = (w & ~DUE__STATE_MASK) | DUE__LENT;

        due__lock_acquire(&c->calls);
        bool asked = s->put_asked == a;
        bool back = asked && due__cas_acq_rel(&jobs[i].job->word, &w, mine); /* J1 */
        if (asked)
            due__asked_detach(a, &s->put_asked);
        due__lock_release(&c->calls);
        doubt += asked && !back;
        if (back) {
            due__key_undo(q, due__front_of(jobs[i].job));
            due__job_release(&q->slab, jobs[i].job);
            due__refused(q, jobs[i].number);
        }
    }
    due__asked_settle(c, a);
    return doubt;
}

/* All of @n were refused before anything was left. */
static int refuse_all(struct due_queue *q, const struct due__fresh *jobs, size_t n, int rc,
                      bool named)
{
    for (size_t i = 0; i < n; i++) {
        due__job_release_fresh(q, &jobs[i]);
        if (named)
            due__index_remove(&q->commits->index, jobs[i].number);
        due__slab_untake(&q->slab, jobs[i].number);
    }
    return rc;
}

/* Nobody waits for them; but if the queue stops, those that were not sent are taken back. */
static int put_only(struct due_queue *q, const struct due__fresh *jobs, size_t n, size_t *in)
{
    due__commit_go(q, NULL, 0);
    *in = n;
    if (!due__load_seq(&q->commits->stopping)) /* G2: after the jobs were left */
        return (int)n;
    *in = take_back(q, jobs, n, NULL);
    return *in > 0 ? (int)*in : DUE_ECLOSED;
}

static int put_and_wait(struct due_queue *q, const struct due__fresh *jobs, size_t n,
                        int64_t until_ns, struct due__asked *a, size_t *in)
{
    due__commit_go(q, a, until_ns);
    due__asked_wait(q, a, until_ns);
    uint32_t doubt = take_back(q, jobs, n, a);
    uint32_t landed = a->landed;
    int rc = a->rc;
    due__asked_end(q, a);
    *in = landed + doubt;
    if (doubt > 0 || rc == DUE_EINDOUBT)
        return DUE_EINDOUBT;
    if (landed > 0)
        return (int)landed;
    return rc != 0 ? rc : due__commit_excuse(q);
}

/* Are so many changes on their way that also a call waits that need not?  A bound, not a count. */
static bool crowded(struct due__commits *c)
{
    uint64_t settled = due__load_relaxed(&c->settled); /* no edge: before what is never less */

    return due__load_relaxed(&c->submitted) - settled > c->unsettled_max; /* no edge: likewise */
}

/* Wait until there is room on the way to the store.  A job that was taken back, or cancelled before
 * it was sent, keeps its place there until the store is reached again: so this is also the bound of
 * those.  0, or why nothing was left. */
static int wait_for_room(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__asked a;
    bool over = true;

    while (over && crowded(c)) {
        uint64_t goal = due__load_relaxed(&c->submitted) - c->unsettled_max; /* no edge: a bound */

        if (!due__asked_begin(q, &a, 0, goal))
            return DUE_ENOMEM;
        due__commit_go(q, &a, until_ns);
        due__asked_wait(q, &a, until_ns);
        over = due__asked_over(c, &a);
        due__asked_end(q, &a);
    }
    return over ? 0 : due__commit_excuse(q);
}

int due__commit_put(struct due_queue *q, const struct due__fresh *jobs, size_t n,
                    int64_t timeout_ns, due_id *ids, size_t *in)
{
    struct due__commits *c = q->commits;
    struct due__asked a;
    bool waits = !c->async;
    int64_t limit = timeout_ns > 0 && timeout_ns < c->timeout_ns ? timeout_ns : c->timeout_ns;
    bool full = crowded(c);
    int64_t until = waits || full ? due__time_add(due__monotonic_now(), limit) : 0;

    *in = 0;
    int rc = full ? wait_for_room(q, until) : 0;
    if (rc == 0)
        rc = name_all(q, jobs, n);
    if (rc != 0)
        return refuse_all(q, jobs, n, rc, false);
    if (waits && !due__asked_begin(q, &a, (uint32_t)n, 0))
        return refuse_all(q, jobs, n, DUE_ENOMEM, true);
    if (q->watch != NULL)
        due__watch_enter(q, jobs, n, false); /* told when they have landed */
    for (size_t i = 0; ids != NULL && i < n; i++)
        ids[i] = due__stored_id(due__stored_at(c, jobs[i].number));
    size_t left = leave_jobs(q, jobs, n, waits ? &a : NULL);
    for (size_t i = left; i < n; i++) {
        due__facts_store(jobs[i].job, jobs[i].f);
        due__step(q, jobs[i].number, DUE__S_BACK, 0);
    }
    refuse_all(q, jobs + left, n - left, 0, true);
    if (left == 0 && waits)
        due__asked_end(q, &a);
    if (left == 0)
        return 0;
    n = left;
    if (!waits)
        return put_only(q, jobs, n, in);
    return put_and_wait(q, jobs, n, until, &a, in);
}
