/* dequeue.c - taking jobs out: from what is shown, from under the lock, or by waiting.
 *
 * Edges      described elsewhere: J1 job.h, V1 ready.c, W2 waiter.c, W3 topic.c
 */
#include "core.h"

#include <limits.h>
#include <string.h>

#include "atomic.h"

/* What a call wants. */
struct request {
    const int *topics;
    size_t topic_count;
    due_job *jobs;
    size_t max;
    int64_t timeout_ns;
    int64_t until_ns; /* of the monotonic clock, or the manual one */
    uint32_t rounds;  /* tenures that ended with jobs left in the inbox */
};

#define TAKE_AT_ONCE 32u /* slots taken by one swap */

/* ---- One job from waiting to lent ---- */

/* The job that @s stands for becomes the caller's, unless somebody was quicker.  Being
 * ready and the topic are asked as well: a slot taken long ago may look alive again in a place that
 * was used anew. */
static bool take(struct due_queue *q, const struct due__topic *t, struct due__slot s)
{
    struct due__job *j = due__job_at(&q->slab, due__slot_job(s));
    uint64_t w;

    while (due__slot_alive(&q->slab, s, &w)) {
        uint64_t lent = (w & ~(DUE__STATE_MASK | DUE__READY)) | DUE__LENT;

        if (!(w & DUE__READY) || due__facts_load(j).topic != t->number)
            return false;
        if (due__cas_acq_rel(&j->word, &w, lent)) /* J1 */
            return true;
    }
    return false;
}

void due__job_fill(struct due_queue *q, uint32_t number, int64_t deadline_ns, int64_t now_ns,
                   due_job *job)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */
    struct due__facts f = due__facts_load(j);

    *job = (due_job){
        .id = due__id(q, number, due__word_generation(w)),
        .data = due__job_bytes(j, f),
        .len = f.len,
        .ptr = (f.payload & DUE__PAYLOAD_MASK) == DUE__POINTER ? j->payload.ptr : NULL,
        .deadline_ns = deadline_ns,
        .lateness_ns = now_ns > deadline_ns ? now_ns - deadline_ns : 0,
        .topic = f.topic,
        .priority = f.priority,
        .queue = q,
    };
}

/* ---- Without the lock ---- */

size_t due__take_shown(struct due_queue *q, struct due__topic *t, struct due__slot *slots,
                       size_t max)
{
    size_t got = 0;

    while (got < max) {
        uint32_t want = max - got < TAKE_AT_ONCE ? (uint32_t)(max - got) : TAKE_AT_ONCE;
        uint32_t n = due__window_take(&t->window, slots + got, want);
        size_t kept = got;

        if (n == 0)
            break;
        for (size_t i = got; i < got + n; i++) {
            struct due__slot s = due__slot_plain(q, slots[i]);

            if (take(q, t, s))
                slots[kept++] = s;
        }
        got = kept;
    }
    if (got > 0)
        due__add_relaxed(&due__shard_mine(&q->slab)->unready, got); /* no edge: a counter */
    return got;
}

/* What is shown is next only if nothing that was submitted stands before it: not while the inbox
 * holds anything, and not by priority, where a job that came due meanwhile may. */
static bool shown_is_next(struct due_queue *q)
{
    return q->proxies != DUE_PROXIES_ALWAYS && q->order == DUE_BY_DEADLINE &&
           due__inbox_quiet(&q->inbox); /* I2 of inbox.c */
}

/* ---- Under the lock ---- */

/* One live job of @t.  NOTHING: it has none, and has left the ring; AGAIN: many dead ones were
 * passed over, and more are left.  Every job shown is either counted in fresh or somebody was
 * called for it: a taker that was called for this topic uses its call up, any other takes from the
 * count. */
static enum due__found take_of(struct due_queue *q, struct due__topic *t, struct due__slot *s,
                               uint32_t *called)
{
    for (uint32_t windows = 0; windows < DUE__DEAD_WINDOWS; windows++) {
        due__topic_refill(q, t);
        if (due__take_shown(q, t, s, 1) == 1) {
            if (*called == t->number + 1u)
                *called = 0;
            else if (t->fresh > 0)
                t->fresh--;
            return DUE__FOUND;
        }
        if (t->line.count == 0) {
            due__topic_unlist(q, t);
            t->fresh = 0;
            return DUE__NOTHING;
        }
    }
    return DUE__AGAIN;
}

/* Any topic: the one whose turn it is, and then the next one's. */
static enum due__found take_any(struct due_queue *q, struct due__slot *s, uint32_t *called)
{
    while (q->ring != NULL) {
        struct due__topic *t = q->ring;
        enum due__found found = take_of(q, t, s, called);

        if (found == DUE__FOUND && q->ring == t)
            q->ring = t->next;
        if (found != DUE__NOTHING)
            return found;
    }
    return DUE__NOTHING;
}

enum due__found due__take_ready(struct due_queue *q, const int *topics, size_t n,
                                struct due__slot *s, uint32_t *called)
{
    if (topics == NULL)
        return take_any(q, s, called);
    q->turn++; /* each call begins with another topic, so that they take turns */
    for (size_t i = 0; i < n; i++) {
        struct due__topic *t = due__topic_at(q, (uint32_t)topics[(q->turn + i) % n]);

        if (t->listed) {
            enum due__found found = take_of(q, t, s, called);

            if (found != DUE__NOTHING)
                return found;
        }
    }
    return DUE__NOTHING;
}

/* Sort in, move what is due, take.  *@done: nothing that is due was left behind. */
static size_t look(struct due_queue *q, struct request *r, struct due__slot *slots, bool *done,
                   uint32_t *called)
{
    size_t got = 0;

    *done = false;
    if (!due__drain(q, DUE__PROXY_BATCH, NULL) && r->rounds++ < DUE__PATIENCE)
        return 0; /* what is still in the inbox may come first; but not for ever */
    *done = due__move_due(q, due__clock_now(&q->clock));
    if (q->proxies == DUE_PROXIES_ALWAYS && r->timeout_ns != 0)
        return 0; /* the dequeue proxy takes */
    while (got < r->max && got < TAKE_AT_ONCE) {
        enum due__found found = due__take_ready(q, r->topics, r->topic_count, &slots[got], called);

        if (found != DUE__FOUND) {
            *done = *done && found == DUE__NOTHING;
            break;
        }
        got++;
    }
    return got;
}

/* ---- Waiting ---- */

/* The caller leaves: a call it did not use goes to the next, and so does the lead. */
static void leave_line(struct due_queue *q, struct due__tenure *t, struct due__waiter *w)
{
    uint32_t called = due__load_acquire(&w->called) & ~DUE__CALLED_LEAD; /* W2 */

    if (called != 0)
        due__topic_fresh(q, due__topic_at(q, called - 1), 1);
    due__store_relaxed(&w->called, 0); /* W2: it is out of line, nobody else writes this */
    if (q->lead == w)
        due__pass_lead(q, t);
}

/* What to answer when there is nothing: 0 to go on waiting. */
static int verdict(struct due_queue *q, const struct request *r, bool done)
{
    if (due__load_seq(&q->state) & DUE__CLOSING) /* E3: whoever closes has rung us */
        return DUE_ECLOSED;
    if (!done)
        return 0;
    if (r->timeout_ns == 0)
        return DUE_EAGAIN;
    if (r->until_ns == DUE_FOREVER)
        return 0;
    return due__timeout_now(q) >= r->until_ns ? DUE_ETIMEDOUT : 0;
}

enum step { OVER, AGAIN, NEEDS_WAITER };

/* Under the lock: what the dequeue proxy has put into the waiter's hand, or a look of one's own. */
static int look_or_hand(struct due_queue *q, struct request *r, struct due__waiter *w,
                        struct due__slot *slots, size_t *got, bool *done)
{
    uint32_t called = w != NULL ? due__load_acquire(&w->called) & ~DUE__CALLED_LEAD : 0; /* W2 */

    *done = true;
    *got = 0;
    if (w != NULL && w->hand != DUE__NO_JOB) {
        struct due__job *j = due__job_at(&q->slab, w->hand);

        slots[(*got)++] =
            due__slot_make(due__load_relaxed(&j->deadline_ns), 0, 0, w->hand); /* J1 */
        w->hand = DUE__NO_JOB;
        called = 0;
    } else {
        *got = look(q, r, slots, done, &called);
    }
    if (w != NULL)
        due__store_relaxed(&w->called, called); /* W2: it is out of line */
    int rc = *got > 0 ? 0 : verdict(q, r, *done);
    if (rc == DUE_EAGAIN)
        due__fd_again(q);
    return rc;
}

/* One look under the lock and, if there is nothing, one sleep.  OVER: *@got jobs, or *@rc. */
static enum step look_or_sleep(struct due_queue *q, struct request *r, struct due__waiter *w,
                               struct due__slot *slots, size_t *got, int *rc)
{
    struct due__tenure t;
    bool done;

    due__enter(q, &t);
    if (w != NULL)
        due__unpark_job(q, w);
    *rc = look_or_hand(q, r, w, slots, got, &done);
    bool over = *got > 0 || *rc != 0;
    if (over && w != NULL)
        leave_line(q, &t, w);
    if (over || !done || w == NULL) {
        due__leave(q, &t);
        return over ? OVER : done ? NEEDS_WAITER : AGAIN;
    }
    w->topics = r->topics;
    w->topic_count = r->topic_count;
    w->until_ns = r->until_ns;
    due__park_job(q, &t, w);
    bool lead = q->lead == w;
    int64_t armed = q->armed;
    due__leave(q, &t);
    due__sleep(q, w, lead, armed, r->until_ns);

    /* Called for a topic, and not the leader by then: take what is shown, without the lock. */
    uint32_t called = due__load_acquire(&w->called); /* W2 */
    if (called == 0 || (called & DUE__CALLED_LEAD) || !shown_is_next(q))
        return AGAIN;
    *got = due__take_shown(q, due__topic_at(q, called - 1), slots,
                           r->max < TAKE_AT_ONCE ? r->max : TAKE_AT_ONCE);
    return *got > 0 ? OVER : AGAIN;
}

static size_t take_slow(struct due_queue *q, struct request *r, struct due__slot *slots, int *rc)
{
    struct due__waiter *w = NULL;
    enum step step;
    size_t got;

    if (r->timeout_ns != 0)
        r->until_ns = due__time_add(due__timeout_now(q), r->timeout_ns);
    do {
        step = look_or_sleep(q, r, w, slots, &got, rc);
        if (step == NEEDS_WAITER) {
            w = due__waiter_get(q);
            if (w == NULL) {
                *rc = DUE_ENOMEM;
                step = OVER;
            }
        }
    } while (step != OVER);
    if (w != NULL)
        due__waiter_put(q, w);
    return got;
}

/* ---- The verbs ---- */

static size_t take_fast(struct due_queue *q, const struct request *r, struct due__slot *slots)
{
    uint32_t topic;

    if (!shown_is_next(q))
        return 0;
    if (r->topics == NULL)
        topic = due__load_acquire(&q->sole); /* W3 */
    else
        topic = r->topic_count == 1 ? (uint32_t)r->topics[0] + 1 : 0;
    if (topic == 0)
        return 0;
    return due__take_shown(q, due__topic_at(q, topic - 1), slots,
                           r->max < TAKE_AT_ONCE ? r->max : TAKE_AT_ONCE);
}

static int request_check(struct due_queue *q, const struct request *r)
{
    if (due__forked(q))
        return DUE_EFORK;
    if (r->timeout_ns < 0 || r->max == 0 || (r->topics == NULL) != (r->topic_count == 0))
        return DUE_EINVAL;
    for (size_t i = 0; i < r->topic_count; i++) {
        if (r->topics[i] < 0 ||
            (uint32_t)r->topics[i] >= due__load_acquire(&q->topic_count)) /* T1 */
            return DUE_EINVAL;
    }
    return 0;
}

/* The taken jobs, for the caller. */
static void hand_over(struct due_queue *q, const struct due__slot *slots, size_t n, due_job *jobs)
{
    struct due__shard *mine = due__shard_mine(&q->slab);
    int64_t now = due__clock_now(&q->clock);

    for (size_t i = 0; i < n; i++)
        due__job_fill(q, due__slot_job(slots[i]), due__slot_deadline(slots[i]), now, &jobs[i]);
    due__add_relaxed(&mine->lent, n); /* no edge: a counter */
    due__add_seq(&mine->dequeued, n); /* C2 of close.c */
    if (q->capacity > 0)
        due__space_give(q, n);
    if (due__load_seq(&q->state) & DUE__DRAINING) /* C2 of close.c */
        due__drained(q);
}

static int dequeue(struct due_queue *q, struct request *r)
{
    struct due__slot slots[TAKE_AT_ONCE];
    size_t taken = 0;
    int rc = request_check(q, r);

    if (rc != 0)
        return rc;
    r->max = r->max < INT_MAX ? r->max : INT_MAX;
    while (r->max > 0) {
        size_t got = take_fast(q, r, slots);

        if (got == 0) {
            due__inside_enter(q);
            got = take_slow(q, r, slots, &rc);
            due__inside_leave(q);
        }
        if (got == 0)
            break;
        hand_over(q, slots, got, r->jobs + taken);
        taken += got;
        r->max -= got;
        r->timeout_ns = 0; /* the rest is what is due now */
    }
    return taken > 0 ? (int)taken : rc;
}

int due_dequeue(due_queue *q, due_job *job, int64_t timeout_ns)
{
    struct request r = { .jobs = job, .max = 1, .timeout_ns = timeout_ns };
    int rc = dequeue(q, &r);

    return rc < 0 ? rc : 0;
}

int due_dequeue_from(due_queue *q, const int *topics, size_t n, due_job *job, int64_t timeout_ns)
{
    struct request r = {
        .topics = topics, .topic_count = n, .jobs = job, .max = 1, .timeout_ns = timeout_ns
    };
    int rc = dequeue(q, &r);

    return rc < 0 ? rc : 0;
}

int due_dequeue_batch(due_queue *q, const int *topics, size_t n, due_job *jobs, size_t max,
                      int64_t timeout_ns)
{
    struct request r = {
        .topics = topics, .topic_count = n, .jobs = jobs, .max = max, .timeout_ns = timeout_ns
    };

    return dequeue(q, &r);
}

void due__place_done(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    while (w & DUE__LINKED) {
        if (due__cas_acq_rel(&j->word, &w, (w & ~DUE__STATE_MASK) | DUE__DONE)) /* J1 */
            return;
    }
    due__slab_give(&q->slab, number);
}

void due_job_done(due_job *job)
{
    due_queue *q = job->queue;
    uint32_t number;
    uint32_t generation;

    if (q != NULL && !due__forked(q) && due__id_read(q, job->id, &number, &generation)) {
        struct due__job *j = due__job_at(&q->slab, number);
        uint64_t w = due__load_acquire(&j->word); /* J1 */

        if (due__word_generation(w) == generation && due__word_state(w) == DUE__LENT) {
            due__job_release(&q->slab, j);
            due__place_done(q, number);
            due__add_relaxed(&due__shard_mine(&q->slab)->done, 1); /* no edge: a counter */
        }
    }
    memset(job, 0, sizeof *job);
}
