/* takings.c - whose takings are, and how long somebody waits for them.
 *
 * The jobs that one call has taken are its own (LENT), and it waits until the store has confirmed
 * that they have left it, or that one more attempt is counted there.  All that is a taking.  When
 * the call's time is up, what was not sent yet waits again.  What was sent cannot be undone: it
 * stays as it is, in the queue's list of takings, and whoever wants such jobs next takes that over,
 * before he takes any others.  So a call that may not wait at all gets its jobs too, when it is
 * made again, and only as many are under way as calls have asked for.
 *
 * A taking is its caller's, or in the list.  There it is under way, and who finds it may wait for
 * it in his turn; or it has landed.  If it lands there and was left by a call that was not to wait,
 * it stays for the next one, and everybody who waits for a job looks.  Otherwise its jobs are put
 * into the store again, since nobody may come back for them.
 *
 * Guards     D  the calls' lock (sender.c)      O  whose the taking is, who is nobody in the list
 *            A  atomic, see Edges
 *
 * Edges      Q7  a taking in the list lands: landed counts up, then all are called, under the
 *                timeline lock -> who takes reads the count, looks into the list, and under that
 *                lock reads it again before it parks
 *            described elsewhere: G2 G3 sender.c, J1 slab.h, C1 inside.c
 *
 * Always     N1  what stands in the list was sent, or the store did not say that it is away
 */
#include <pthread.h>

#include "job/repeat.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "store/taking_inside.h"

#define SILENT_NS DUE_MS(100) /* what is not answered for so long is not answered soon */

/* ---- The list ---- */

/* Under the calls' lock. */
static void list_add(struct due__commits *c, struct due__taking *t)
{
    bool done = t->asked.left == 0;

    t->asked.in_list = true;
    t->next = c->takings;
    c->takings = t;
    due__store_seq(&c->takings_ready, c->takings_ready + done);          /* Q7 */
    due__store_seq(&c->takings_under_way, c->takings_under_way + !done); /* Q7 */
}

/* Under the calls' lock: the taking @at points to is the caller's. */
static struct due__taking *list_take(struct due__commits *c, struct due__taking **at)
{
    struct due__taking *t = *at;
    bool done = t->asked.left == 0;

    *at = t->next;
    t->next = NULL;
    t->asked.in_list = false;
    due__store_seq(&c->takings_ready, c->takings_ready - done);          /* Q7 */
    due__store_seq(&c->takings_under_way, c->takings_under_way - !done); /* Q7 */
    return t;
}

void due__taking_told(struct due__commits *c)
{
    due__store_seq(&c->takings_ready, c->takings_ready + 1);         /* Q7 */
    due__store_seq(&c->takings_under_way, c->takings_under_way - 1); /* Q7 */
    c->told = true;
}

static void call_all(struct due_queue *q)
{
    due__add_seq(&q->commits->landed, 1); /* Q7 */
    due__wake_consumers(q);
}

/* The descriptor says what there is to do. */
static void note(struct due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    due__leave(q, &t);
}

/* Is there a round among what has landed?  That cannot be put into the store again. */
static bool any_round(struct due__commits *c, const struct due__taking *t)
{
    bool any = false;

    for (size_t i = 0; !any && i < t->rounds; i++)
        any = due__taking_landed(c, t, i);
    return any;
}

/* The taking is left as it is, for whoever comes.  False: it is over, and nobody will. */
static bool leave(struct due_queue *q, struct due__taking *t)
{
    struct due__commits *c = q->commits;

    if (any_round(c, t))
        t->asked.polls = true;
    due__lock_acquire(&c->calls);
    bool done = t->asked.left == 0;
    bool may = !c->takings_ended && (!done || t->asked.polls);
    if (may)
        list_add(c, t);
    due__lock_release(&c->calls);
    if (!may) {
        due__asked_settle(c, &t->asked);
        return false;
    }
    if (done)
        call_all(q); /* they may want what its last taker left */
    else
        note(q);
    due__inside_leave(q); /* C1 of inside.c */
    return true;
}

/* Under the calls' lock: is there anything in it that the request wants, or to be sorted out? */
static bool concerns(const struct due_queue *q, const struct due__request *r,
                     const struct due__taking *t)
{
    bool fits = t->purpose == due__taking_purpose(r);

    for (size_t i = 0; i < t->n; i++) {
        int rc = t->results[i];

        if (rc < 0 || rc == DUE__LEFT)
            return true;
        if ((rc == 0 && !fits && i < t->rounds) || (rc == DUE__PENDING && !fits) || rc == DUE__GONE)
            continue;
        if (due__taking_wanted(q, r, t, i))
            return true;
    }
    return false;
}

/* ---- One taking ---- */

/* Is the store away, or does it not answer any more? */
static bool silent(const struct due__commits *c)
{
    int64_t unsure = due__load_relaxed(&c->unsure_ns); /* no edge: a guess */

    return due__load_relaxed(&c->state) == DUE_ESTORE || /* no edge: likewise */
           (unsure != 0 && due__monotonic_now() - unsure > SILENT_NS);
}

/* Until it is over, or the caller's time is: whether anything is left under way. */
static bool await_end(struct due_queue *q, struct due__taking *t, const struct due__request *r,
                      struct due__deadline *by)
{
    struct due__commits *c = q->commits;

    while (!due__asked_over(c, &t->asked)) {
        due__asked_wait(c, &t->asked, due__deadline_at(q, by));
        if (due__asked_over(c, &t->asked))
            break;
        if (!due__polls(r) || silent(c))
            due__taking_take_back(q, t);
        bool goes_on = r->timeout_ns == DUE_FOREVER && !due__load_seq(&c->stopping) && /* G2 */
                       !due__load_seq(&c->fenced) &&                                   /* G2 */
                       (r->quit == NULL || !due__load_seq(r->quit));                   /* E3 */
        if (!goes_on)
            break;
        *by = (struct due__deadline){ 0 };
    }
    return !due__asked_over(c, &t->asked);
}

/* The ids of @n jobs, instead of jobs. */
static void show(struct due__request *r, const due_id *ids, size_t n)
{
    for (size_t i = 0; i < n && i < r->max; i++)
        r->jobs[i] = (due_job){ .id = ids[i] };
}

/* The same of those under way: how many. */
static size_t show_pending(struct due_queue *q, const struct due__taking *t, struct due__request *r)
{
    struct due__commits *c = q->commits;
    size_t n = 0;

    due__lock_acquire(&c->calls);
    for (size_t i = 0; i < t->n && n < r->max; i++) {
        if (t->results[i] == DUE__PENDING)
            show(&(struct due__request){ .jobs = r->jobs + n++, .max = 1 }, &t->ids[i], 1);
    }
    due__lock_release(&c->calls);
    return n;
}

/* Behind @n jobs that the call has: the ids of those that may be leaving the store, up to one of
 * zero.  How many. */
static size_t name_rest(struct due_queue *q, const struct due__taking *t,
                        const struct due__request *r, size_t n, size_t unknown)
{
    struct due__request rest = { .jobs = r->jobs + n, .max = r->max - n };
    size_t named = show_pending(q, t, &rest);

    rest.jobs += named;
    rest.max -= named;
    show(&rest, t->ids, unknown);
    if (unknown < rest.max)
        rest.jobs[unknown] = (due_job){ .queue = NULL };
    return named + unknown;
}

/* A round that nobody has had. */
static void discard_round(struct due_queue *q, struct due__taking *t, size_t i)
{
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (q->hooks.on_discard != NULL)
        q->hooks.on_discard(q->hooks.ctx, &t->jobs[i]);
    pthread_setcancelstate(cancel, NULL);
    due__rounds_end(q, 1);
    due_job_done(&t->jobs[i]);
}

/* It is over, and what is left of it was for nobody. */
static void return_rest(struct due_queue *q, struct due__taking *t)
{
    (void)due__taking_sort_out(q, t);
    for (size_t i = 0; i < t->n; i++) {
        if (!due__taking_landed(q->commits, t, i))
            continue;
        due__taking_had(q->commits, t, i);
        if (i < t->rounds)
            discard_round(q, t, i);
        else
            due__taking_give_back(q, t, i);
    }
    due__taking_end(q, t);
}

/* Of a taking that is no longer waited for: 0, or the error if the request got nothing. */
static int answer(struct due_queue *q, struct due__taking *t, struct due__request *r, bool left,
                  size_t unknown)
{
    if (left && due__polls(r))
        return DUE_EAGAIN;
    if (name_rest(q, t, r, 0, unknown) > 0)
        return DUE_EINDOUBT;
    bool told = t->asked.rc != 0 && t->asked.rc != DUE_EINDOUBT; /* that named its jobs before */
    return told ? t->asked.rc : due__commit_excuse(q);
}

/* The caller's taking, as far as he waits for it. */
static int conclude(struct due_queue *q, struct due__taking *t, struct due__request *r,
                    struct due__deadline *by)
{
    t->asked.polls = due__polls(r);
    due__commit_go(q, &t->asked, due__deadline_at(q, by));
    bool left = await_end(q, t, r, by);
    size_t unknown = due__taking_sort_out(q, t);
    int rc = due__taking_hand(q, t, r, by);

    if (rc == 0)
        rc = answer(q, t, r, left, unknown);
    else if (rc > 0 && r->lease_ns == 0)
        name_rest(q, t, r, (size_t)rc, unknown);
    if (!due__taking_over(q->commits, t) && leave(q, t))
        return rc;
    return_rest(q, t);
    return rc;
}

int due__take_stored(struct due_queue *q, struct due__request *r, const struct due__slot *slots,
                     size_t n, enum due__purpose purpose, struct due__deadline *by)
{
    struct due__taking *t = due__taking_begin(q, slots, n, purpose, due__deadline_at(q, by));

    return t != NULL ? conclude(q, t, r, by) : DUE_ENOMEM;
}

int due__take_left(struct due_queue *q, struct due__request *r, struct due__deadline *by)
{
    struct due__commits *c = q->commits;
    struct due__taking *t = NULL;

    r->landed = due__load_seq(&c->landed); /* Q7: before the look into the list */
    if (due__load_seq(&c->takings_ready) == 0 && due__load_seq(&c->takings_under_way) == 0) /* Q7 */
        return 0;
    due__lock_acquire(&c->calls);
    for (struct due__taking **at = &c->takings; *at != NULL && t == NULL;) {
        if (concerns(q, r, *at))
            t = list_take(c, at);
        else
            at = &(*at)->next;
    }
    due__lock_release(&c->calls);
    if (t == NULL)
        return 0;
    due__inside_enter(q); /* C1 of inside.c */
    int rc = conclude(q, t, r, by);
    return rc == DUE_ETIMEDOUT && !silent(c) ? 0 : rc;
}

/* ---- What nobody comes back for ---- */

/* One that has landed: any, or one that nobody comes back for. */
static struct due__taking *list_landed(struct due__commits *c, bool any)
{
    struct due__taking **at = &c->takings;
    struct due__taking *t = NULL;

    due__lock_acquire(&c->calls);
    while (*at != NULL && ((*at)->asked.left > 0 || ((*at)->asked.polls && !any)))
        at = &(*at)->next;
    if (*at != NULL)
        t = list_take(c, at);
    due__lock_release(&c->calls);
    return t;
}

static void return_one(struct due_queue *q, struct due__taking *t)
{
    due__inside_enter(q); /* C1 of inside.c */
    return_rest(q, t);
}

void due__takings_landed(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    struct due__taking *t;

    if (!c->told)
        return;
    c->told = false;
    while ((t = list_landed(c, false)) != NULL)
        return_one(q, t);
    call_all(q);
}

bool due__takings_return(struct due_queue *q)
{
    struct due__taking *t;
    bool any = false;

    while ((t = list_landed(q->commits, true)) != NULL) {
        return_one(q, t);
        any = true;
    }
    return any;
}

/* One that is under way. */
static struct due__taking *list_first(struct due__commits *c)
{
    struct due__taking *t = NULL;

    due__lock_acquire(&c->calls);
    c->takings_ended = true;
    if (c->takings != NULL)
        t = list_take(c, &c->takings);
    due__lock_release(&c->calls);
    return t;
}

void due__takings_end(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    struct due__taking *t;

    while ((t = list_first(c)) != NULL) {
        due__asked_settle(c, &t->asked);
        return_one(q, t);
    }
}

void due__takings_free(struct due_queue *q)
{
    due__taking_drop_all(q, q->commits->takings);
    due__taking_drop_all(q, q->commits->spare_taking);
}
