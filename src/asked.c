/* asked.c - calls that change stored jobs, and wait until the store has confirmed it.
 *
 * A call leaves its changes in the commit inbox and waits on the bell of a waiter of its own.  If
 * time is up it takes back what was not sent yet; what was sent is seen through without it.
 *
 * Guards     D  the calls' lock      A  atomic, see Edges      O  its owner's alone
 *
 * Edges      G1, G2 of commit.c      described elsewhere: J1 job.h, E3 core.c, C1 close.c
 */
#include "commit.h"

#include <pthread.h>

#include "atomic.h"
#include "core.h"

/* ---- Calls that wait ---- */

static void asked_link(struct due__commits *c, struct due__asked *a)
{
    a->prev = NULL;
    a->next = c->first;
    if (c->first != NULL)
        c->first->prev = a;
    c->first = a;
}

static void asked_unlink(struct due__commits *c, struct due__asked *a)
{
    if (a->prev != NULL)
        a->prev->next = a->next;
    else
        c->first = a->next;
    if (a->next != NULL)
        a->next->prev = a->prev;
}

/* Under the calls' lock. */
static bool over(const struct due__commits *c, const struct due__asked *a)
{
    return a->goal != 0 ? c->settled >= a->goal : a->left == 0;
}

bool due__asked_over(struct due__commits *c, const struct due__asked *a)
{
    due__lock_acquire(&c->calls);
    bool yes = over(c, a);
    due__lock_release(&c->calls);
    return yes;
}

/* Begin to wait.  False: no memory. */
static bool ask(struct due_queue *q, struct due__asked *a, uint32_t changes, uint64_t goal)
{
    struct due__commits *c = q->commits;

    *a = (struct due__asked){ .waiter = due__waiter_get(q), .left = changes, .goal = goal };
    if (a->waiter == NULL)
        return false;
    due__inside_enter(q); /* C1 of close.c */
    due__lock_acquire(&c->calls);
    asked_link(c, a);
    due__lock_release(&c->calls);
    return true;
}

static void answered(struct due_queue *q, struct due__asked *a)
{
    struct due__commits *c = q->commits;

    due__lock_acquire(&c->calls);
    asked_unlink(c, a);
    due__lock_release(&c->calls);
    due__waiter_put(q, a->waiter);
    due__inside_leave(q);
}

/* Everyone who waits looks again. */
void due__asked_ring(struct due__commits *c)
{
    due__lock_acquire(&c->calls);
    for (struct due__asked *a = c->first; a != NULL; a = a->next)
        due__bell_ring(&a->waiter->bell);
    due__lock_release(&c->calls);
}

/* ---- Submitting ---- */

/* Somebody is to commit: who has the key will look, or the proxy. */
static void call_proxy(struct due_queue *q)
{
    due__bell_ring(&q->enqueue_bell);
}

/* A change of a job that the caller owns.  If the node of a change that was given up is still in
 * the inbox, it now stands for this one. */
void due__commit_submit(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                        int64_t want_ns, struct due__asked *a)
{
    struct due__commits *c = q->commits;
    struct due__stored *s = due__stored_at(c, number);

    due__lock_acquire(&c->calls);
    bool queued = (s->purpose & DUE__QUEUED) != 0;
    s->purpose = (uint8_t)((unsigned)purpose | DUE__QUEUED);
    s->want_ns = want_ns;
    s->asked = a;
    due__lock_release(&c->calls);
    if (queued)
        return;
    due__add_relaxed(&c->submitted, 1);  /* no edge: a flush counts what its own thread left */
    due__inbox_put(&c->inbox, &s->node); /* G1 */
}

/* What was submitted is to be sent: by the caller, if it waits and nobody else sends. */
static void go(struct due_queue *q, const struct due__asked *a, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    bool self = a != NULL && q->proxies != DUE_PROXIES_ALWAYS;
    if (!self && !due__load_seq(&c->stopping)) { /* G2 */
        if (!due__lock_held(&c->key))            /* G1: its holder will look */
            call_proxy(q);
        return;
    }
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* the store's calls may be points */
    if (due__lock_try(&c->key))                              /* G1: else its holder will look */
        due__commit_leave(q, due__commit_work(q, a, until_ns));
    pthread_setcancelstate(cancel, NULL);
}

/* Until the call is over, or @until_ns, or nobody is to wait any more. */
static void wait(struct due_queue *q, struct due__asked *a, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    while (!due__asked_over(c, a)) {
        if (due__load_seq(&c->stopping) || due__load_seq(&c->fenced)) /* G2 */
            return;
        if (due__monotonic_now() >= until_ns)
            return;
        due__bell_wait(&a->waiter->bell, until_ns, false);
    }
}

/* ---- Leaving ---- */

/* What is to be told to a caller for whom nothing has changed. */
static int excuse(struct due_queue *q)
{
    const struct due__commits *c = q->commits;

    if (due__load_seq(&c->fenced)) /* G2 */
        return DUE_EFENCED;
    return due__load_seq(&c->stopping) ? DUE_ECLOSED : DUE_ETIMEDOUT; /* G2 */
}

/* Under the calls' lock: the caller is no longer concerned with a change. */
static void detach(struct due__asked *a, struct due__asked **asked)
{
    *asked = NULL;
    if (a != NULL)
        a->left--;
}

/* What is left is at its end: nothing of it waits for the store. */
static void wait_end(struct due__commits *c, struct due__asked *a)
{
    while (a != NULL && !due__asked_over(c, a))
        due__bell_wait(&a->waiter->bell, DUE_FOREVER, false);
}

/* ---- Putting in ---- */

void due__refused(struct due_queue *q, uint32_t number)
{
    struct due__shard *it = due__shard_enter(&q->slab);

    it->refused++;
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
            rc = due__index_add(&c->index, number);
        }
        while (rc != 0 && i-- > 0)
            due__index_remove(&c->index, jobs[i].number);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void leave_jobs(struct due_queue *q, const struct due__fresh *jobs, size_t n,
                       struct due__asked *a)
{
    struct due__commits *c = q->commits;

    due__add_relaxed(&c->submitted, n); /* no edge: a flush counts what its own thread left */
    due__lock_acquire(&c->calls);       /* who had the place before may still look */
    for (size_t i = 0; a != NULL && i < n; i++)
        due__stored_at(c, jobs[i].number)->put_asked = a;
    due__lock_release(&c->calls);
    for (size_t i = 0; i < n; i++) {
        const struct due__fresh *it = &jobs[i];
        struct due__stored *s = due__stored_at(c, it->number);

        due__facts_store(it->job, it->f);
        due__store_relaxed(&it->job->deadline_ns, it->deadline_ns); /* J1 */
        due__store_release(&it->job->word,                          /* J1 */
                           due__word(it->generation, 0, (uint64_t)DUE__WAITING | DUE__LINKED));
        due__inbox_put(&c->inbox, &s->node); /* G1 */
    }
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
            detach(a, &s->put_asked);
        due__lock_release(&c->calls);
        doubt += asked && !back;
        if (back) {
            due__job_release(&q->slab, jobs[i].job);
            due__refused(q, jobs[i].number);
        }
    }
    wait_end(c, a);
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
    leave_jobs(q, jobs, n, NULL);
    go(q, NULL, 0);
    *in = n;
    if (!due__load_seq(&q->commits->stopping)) /* G2: after the jobs were left */
        return (int)n;
    *in = take_back(q, jobs, n, NULL);
    return *in > 0 ? (int)*in : DUE_ECLOSED;
}

static int put_and_wait(struct due_queue *q, const struct due__fresh *jobs, size_t n,
                        int64_t until_ns, struct due__asked *a, size_t *in)
{
    leave_jobs(q, jobs, n, a);
    go(q, a, until_ns);
    wait(q, a, until_ns);
    uint32_t doubt = take_back(q, jobs, n, a);
    uint32_t landed = a->landed;
    int rc = a->rc;
    answered(q, a);
    *in = landed + doubt;
    if (doubt > 0 || rc == DUE_EINDOUBT)
        return DUE_EINDOUBT;
    if (landed > 0)
        return (int)landed;
    return rc != 0 ? rc : excuse(q);
}

/* Are so many changes on their way that also a call waits that need not?  A bound, not a count. */
static bool crowded(struct due__commits *c)
{
    uint64_t settled = due__load_relaxed(&c->settled); /* no edge: before what is never less */

    return due__load_relaxed(&c->submitted) - settled > c->unsettled_max; /* no edge: likewise */
}

int due__commit_put(struct due_queue *q, const struct due__fresh *jobs, size_t n,
                    int64_t timeout_ns, due_id *ids, size_t *in)
{
    struct due__commits *c = q->commits;
    struct due__asked a;
    bool waits = !c->async || crowded(c);
    int64_t limit = timeout_ns > 0 && timeout_ns < c->timeout_ns ? timeout_ns : c->timeout_ns;

    *in = 0;
    int rc = name_all(q, jobs, n);
    if (rc != 0)
        return refuse_all(q, jobs, n, rc, false);
    if (waits && !ask(q, &a, (uint32_t)n, 0))
        return refuse_all(q, jobs, n, DUE_ENOMEM, true);
    for (size_t i = 0; ids != NULL && i < n; i++)
        ids[i] = due__stored_id(due__stored_at(c, jobs[i].number));
    if (!waits)
        return put_only(q, jobs, n, in);
    return put_and_wait(q, jobs, n, due__time_add(due__monotonic_now(), limit), &a, in);
}

/* ---- Everything else ---- */

/* Give up a change that was not settled.  True: it had not been sent. */
static bool give_up(struct due__commits *c, uint32_t number, struct due__asked *a, bool *doubt)
{
    struct due__stored *s = due__stored_at(c, number);
    bool back = false;

    due__lock_acquire(&c->calls);
    *doubt = false;
    if (s->asked == a) {
        back = (s->purpose & DUE__QUEUED) != 0;
        *doubt = !back;
        if (back)
            s->purpose = DUE__QUEUED | DUE__NO_CHANGE; /* N3 of commit.c */
        detach(a, &s->asked);
    }
    due__lock_release(&c->calls);
    return back;
}

/* A change that nobody waits for. */
static int submit_only(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                       int64_t want_ns)
{
    if (due__load_seq(
            &q->commits->stopping)) /* G2: who comes a little too early is refused later */
        return DUE_ECLOSED;
    if (due__commit_state(q) != 0)
        return DUE_EFENCED;
    due__commit_submit(q, number, purpose, want_ns, NULL);
    go(q, NULL, 0);
    return 0;
}

int due__commit_one(struct due_queue *q, uint32_t number, enum due__purpose purpose,
                    int64_t want_ns)
{
    struct due__commits *c = q->commits;
    struct due__asked a;
    bool doubt;

    if (c->async && purpose != DUE__LEND)
        return submit_only(q, number, purpose, want_ns);
    if (!ask(q, &a, 1, 0))
        return DUE_ENOMEM;
    int64_t until = due__time_add(due__monotonic_now(), c->timeout_ns);
    due__commit_submit(q, number, purpose, want_ns, &a);
    go(q, &a, until);
    wait(q, &a, until);
    bool back = give_up(c, number, &a, &doubt);
    wait_end(c, &a);
    int rc = back ? excuse(q) : doubt ? DUE_EINDOUBT : a.rc;
    answered(q, &a);
    return rc;
}

/* The taken jobs whose removal has landed, to the front; the others wait again. */
static size_t sort_out(struct due_queue *q, struct due__slot *slots, size_t n, struct due__asked *a)
{
    struct due__commits *c = q->commits;
    size_t settled = 0;
    size_t kept = 0;
    bool doubt;

    for (size_t i = 0; i < n; i++) {
        uint32_t number = due__slot_job(slots[i]);

        if (give_up(c, number, a, &doubt))
            due__unclaim(q, number, true);
        else if (!doubt) /* else it is seen to by who sends */
            slots[settled++] = slots[i];
    }
    wait_end(c, a);
    for (size_t i = 0; i < settled; i++) {
        uint32_t number = due__slot_job(slots[i]);

        if (due__stored_at(c, number)->rc == 0)
            slots[kept++] = slots[i];
        else
            due__unclaim(q, number, true);
    }
    return kept;
}

int due__commit_take(struct due_queue *q, struct due__slot *slots, size_t n)
{
    struct due__commits *c = q->commits;
    struct due__asked a;

    if (!ask(q, &a, (uint32_t)n, 0)) {
        due__put_back(q, slots, n);
        return DUE_ENOMEM;
    }
    int64_t until = due__time_add(due__monotonic_now(), c->timeout_ns);
    for (size_t i = 0; i < n; i++)
        due__commit_submit(q, due__slot_job(slots[i]), DUE__TAKE, 0, &a);
    go(q, &a, until);
    wait(q, &a, until);
    size_t kept = sort_out(q, slots, n, &a);
    int rc = a.rc;
    answered(q, &a);
    if (kept > 0)
        return (int)kept;
    return rc != 0 ? rc : excuse(q);
}

int due__commit_state(const struct due_queue *q)
{
    return due__load_seq(&q->commits->fenced) ? DUE_EFENCED : 0; /* G2 */
}

/* ---- Waiting for the store as such ---- */

int due__commit_held(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    int64_t until_ns = due__time_add(due__monotonic_now(), c->timeout_ns);
    struct due__asked a;
    int rc = DUE_ETIMEDOUT;

    if (due__boottime_now() < due__load_relaxed(&c->held_ns)) /* no edge: it only grows */
        return due__commit_state(q);
    if (!ask(q, &a, 0, UINT64_MAX)) /* never over: rung when it is renewed */
        return DUE_ENOMEM;
    call_proxy(q);
    while (rc == DUE_ETIMEDOUT) {
        if (due__load_seq(&c->fenced) || due__load_seq(&c->stopping)) /* G2 */
            rc = excuse(q);
        else if (due__boottime_now() < due__load_relaxed(&c->held_ns)) /* no edge: it only grows */
            rc = 0;
        else if (due__monotonic_now() >= until_ns)
            break;
        else
            due__bell_wait(&a.waiter->bell, until_ns, false);
    }
    answered(q, &a);
    return rc;
}

bool due__commit_loading(const struct due_queue *q)
{
    return due__load_seq(&q->commits->loading) != 0; /* G2 */
}

/* The job @id is known to the index; is it sorted in, or was it?  A page that is under way has not
 * given its jobs a state yet. */
static bool known(struct due_queue *q, due_id id, uint32_t *number, uint32_t *generation)
{
    if (!due__index_find(&q->commits->index, id, number, generation))
        return false;
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, *number)->word); /* J1 */
    return due__word_state(w) != DUE__FREE;
}

/* While the store is read: who has the key finishes his page, then we look for @id alone. */
static int look_for(struct due_queue *q, due_id id)
{
    struct due__commits *c = q->commits;
    uint32_t number;
    uint32_t generation;
    int cancel;
    int rc = 0;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);      /* as in go() */
    due__lock_acquire(&c->key);                                   /* G1 */
    if (due__load_seq(&c->stopping) || due__load_seq(&c->fenced)) /* G2 */
        rc = excuse(q);
    else if (due__load_seq(&c->loading) && !known(q, id, &number, &generation)) /* G2 */
        rc = due__restore_one(q, id, due__time_add(due__monotonic_now(), c->timeout_ns));
    due__commit_leave(q, false);
    pthread_setcancelstate(cancel, NULL);
    return rc == DUE_EAGAIN ? DUE_ETIMEDOUT : rc;
}

int due__commit_find(struct due_queue *q, due_id id, uint32_t *number, uint32_t *generation)
{
    struct due__commits *c = q->commits;

    if (known(q, id, number, generation))
        return 0;
    if (due__load_seq(&c->loading)) { /* G2 */
        int rc = look_for(q, id);

        if (rc != 0)
            return rc;
    }
    return due__index_find(&c->index, id, number, generation) ? 0 : DUE_ENOENT;
}

int due__commit_mended(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__asked a;
    int rc = 0;

    if (!due__load_seq(&c->lacking)) /* G2 */
        return 0;
    if (!ask(q, &a, 0, UINT64_MAX)) /* never over: rung when it is mended */
        return DUE_ENOMEM;
    call_proxy(q);
    while (rc == 0 && due__load_seq(&c->lacking)) {                     /* G2 */
        if (due__load_seq(&c->fenced) || due__load_seq(&c->stopping) || /* G2 */
            due__monotonic_now() >= until_ns)
            rc = excuse(q);
        else
            due__bell_wait(&a.waiter->bell, until_ns, false);
    }
    answered(q, &a);
    return rc;
}

int due_flush(due_queue *q, int64_t timeout_ns)
{
    struct due__commits *c = q->commits;
    struct due__asked a;

    if (due__forked(q))
        return DUE_EFORK;
    if (timeout_ns < 0)
        return DUE_EINVAL;
    if (c == NULL)
        return 0;
    uint64_t goal = due__load_relaxed(&c->submitted); /* no edge: at least what we left ourselves */
    if (!ask(q, &a, 0, goal > 0 ? goal : 1))
        return DUE_ENOMEM;
    int64_t until = due__time_add(due__monotonic_now(), timeout_ns);
    if (goal > 0) {
        go(q, &a, until);
        wait(q, &a, until);
    }
    bool all = goal == 0 || due__asked_over(c, &a);
    answered(q, &a);
    return all ? 0 : excuse(q);
}
