/* tenure.c - the tenure of the timeline lock: what whoever holds it does for everybody.
 *
 * A producer tries the lock.  Free: it sorts its job in, and takes along what others left in the
 * inbox.  Busy: it leaves the job in the inbox and goes.  So nobody waits for the lock to submit,
 * and the timeline stays in the cache of one core while contention lasts.
 *
 * Edges      E1  put: link the node, knock, then look at the state, then try the lock.  Drain:
 *                answer the knock, then take.  Leave: release the lock, then look for a knock.
 *                All sequentially consistent.  If the try fails, the tenure it met is released
 *                after the knock, so either that release's look sees it, or a later drain has
 *                answered it and seen the node.  A node behind another producer's gap is seen by
 *                nobody until that producer has linked, and then its knock, look and try are
 *                still to come.
 *            E2  the proxy clears ACTIVE, then looks for a knock; put knocks, then looks at the
 *                state.  Either the proxy sees the knock, or the producer sees ACTIVE gone and
 *                tries the lock itself.
 *            E3  close sets DRAINING or CLOSING, then takes the lock and drains; put links, then
 *                looks at the state.  Either the drain sees the node, or the producer sees the
 *                state and withdraws its job.
 *
 * Always     N1  every job that waits and is not LINKED has exactly one live slot
 * (check)    N2  everything with a deadline up to due_ns that waits is in a topic's line
 *            N3  somebody waits who takes a topic with a job shown: then another one was called for
 *                that topic and is under way (N4 of waiter.c)
 *
 * Not here   Waiters and the timer: waiter.c.  Topics: topic.c.
 */
#include "queue/tenure.h"

#include <assert.h>

#include "os/atomic.h"
#include "queue/queue.h"

/* ---- Tenure ---- */

#ifdef DUE_MEASURE_TENURE
void due__measure_begin(struct due_queue *q)
{
    q->tenure_begin_ns = (uint64_t)due__thread_cpu_now();
}

void due__measure_end(struct due_queue *q)
{
    uint64_t ns = (uint64_t)due__thread_cpu_now() - q->tenure_begin_ns;

    if (ns > q->tenure_max_ns)
        q->tenure_max_ns = ns;
}
#endif

void due__look_back(struct due_queue *q)
{
    int64_t now = due__clock_now(&q->clock);

    if (now <= q->due_ns) { /* at due_ns too: moved is of the nanosecond after it */
        q->due_ns = now;
        q->moved = (struct due__slot){ 0, 0 };
    }
}

void due__tenure_ring(struct due__tenure *t, struct due__bell *b)
{
    assert(t->rings < DUE__RINGS);
    t->ring[t->rings++] = b;
}

/* Call a waiter for each of the topics with new jobs, unless one is under way, or the proxy that
 * does.  True: more are to be called than can be rung. */
static bool call_waiters(struct due_queue *q, struct due__tenure *t)
{
    bool proxy = q->proxies == DUE_PROXIES_ALWAYS && q->fresh != NULL;

    if (proxy && !due__tenure_room(t))
        return true;
    if (proxy)
        due__tenure_ring(t, &q->dequeue_bell);
    while (q->fresh != NULL) {
        struct due__topic *topic = q->fresh;

        if (!proxy && !due__call_for(q, t, topic))
            return true;
        q->fresh = topic->fresh_next;
        topic->fresh = false;
    }
    return false;
}

static void wake_worker(struct due_queue *q, struct due__tenure *t)
{
    if (q->proxies != DUE_PROXIES_NEVER)
        due__tenure_ring(t, q->lead == &q->worker ? due__lead_bell(q) : &q->worker.bell);
}

/* What is to be done after the release, besides ringing. */
struct after {
    bool more;       /* another tenure: not everybody could be rung */
    bool fd;         /* arm the descriptor */
    void *cold;      /* touch these chunks */
    uint32_t dying;  /* place plus 1: jobs to be seen to */
    uint32_t untold; /* likewise: to be told of */
};

/* What is owed to others before the lock is released. */
static void settle(struct due_queue *q, struct due__tenure *t, struct after *after)
{
    *after = (struct after){ .cold = NULL };

    /* On a manual clock nobody leads: whoever sorted in something due moves it, if that makes a
     * difference: to those who wait, or to whose turn it is. */
    if (q->debts & DUE__DEBT_TURN)
        after->more = !due__catch_up(q, DUE__FOREIGN_MAX);
    bool reopened = (q->debts & DUE__DEBT_LIMITERS) && !due__limiters_admit(q);
    after->more |= reopened;

    uint32_t debts = q->debts;
    q->debts = (debts & DUE__DEBT_ALWAYS) | (reopened ? DUE__DEBT_LIMITERS : 0);
    if ((debts & DUE__DEBT_CALLS) && call_waiters(q, t)) {
        q->debts |= DUE__DEBT_CALLS;
        after->more = true;
    }
    if ((debts & DUE__DEBT_LEAD) && q->lead != NULL &&
        due__timeline_bound(&q->timeline) < q->armed) {
        q->armed = DUE__AWAKE;
        due__tenure_ring(t, due__lead_bell(q));
    }
    if (debts & DUE__DEBT_WORKER)
        wake_worker(q, t);
    if (debts & DUE__DEBT_SWEEP)
        due__sweep_help(q, DUE__SWEEP_STEP);
    if (debts & DUE__DEBT_DYING) {
        after->dying = q->dying;
        q->dying = 0;
    }
    if (debts & DUE__DEBT_TELL)
        after->untold = due__events_list(q);
    if (q->pool.near && q->proxies == DUE_PROXIES_NEVER) {
        due__pool_warm_claim(&q->pool, &after->cold);
    } else if (q->pool.near && !q->warming) {
        q->warming = true;
        wake_worker(q, t);
    }
    if (debts & DUE__DEBT_FD)
        after->fd = due__fd_note(q);
}

static void help_sort(struct due_queue *q, uint32_t max);

static void call_proxy(struct due_queue *q)
{
    due__or_seq(&q->state, DUE__ACTIVE);  /* E2 */
    due__add_relaxed(&q->proxy_calls, 1); /* no edge: a counter */
    due__bell_ring(&q->enqueue_bell);
}

/* After the release, when somebody had knocked.  True: the lock is ours again, and jobs were sorted
 * in. */
static bool second_look(struct due_queue *q, struct due__tenure *t)
{
    if (due__load_seq(&q->state) & DUE__ACTIVE) /* E2: the proxy will look */
        return false;
    if (t->rounds == DUE__ROUNDS_MAX && q->proxies != DUE_PROXIES_NEVER) {
        call_proxy(q);
        return false;
    }
    if (!due__lock_try(&q->lock)) /* E1: whoever holds it will look */
        return false;
    due__begin(q, t);
    t->rounds++;
    help_sort(q, DUE__FOREIGN_MAX);
    return true;
}

static void leave_once(struct due_queue *q, struct due__tenure *t)
{
    struct after after;

    for (;;) {
        settle(q, t, &after);
        due__measure_end(q);
        due__lock_release(&q->lock); /* E1 */
        for (uint32_t i = 0; i < t->rings; i++) {
            if (due__bell_ring(t->ring[i]))
                due__add_relaxed(&q->rings, 1); /* no edge: a counter */
        }
        if (after.fd)
            due__fd_arm(q);
        if (after.cold != NULL)
            due__pool_warm(after.cold);
        due__events_tell(q, after.untold);
        if (after.dying != 0)
            q->life->see_to(q, after.dying);
        if (!after.more)
            return;
        due__lock_acquire(&q->lock);
        due__begin(q, t);
    }
}

void due__tenure_end_knocked(struct due_queue *q, struct due__tenure *t)
{
    while (due__inbox_knocked(&q->inbox) && second_look(q, t)) /* E1 */
        leave_once(q, t);
}

void due__tenure_end_all(struct due_queue *q, struct due__tenure *t)
{
    leave_once(q, t);
    due__tenure_end_knocked(q, t);
}

/* ---- Sorting in ---- */

static bool move_within(struct due_queue *q, int64_t now_ns, uint32_t *moves);

void due__make_room(struct due_queue *q)
{
    due__sweep_begin(q, true);
    while (!due__sweep_piece(q, DUE__SWEEP_PIECE))
        ;
}

static inline void keep(struct due_queue *q, struct due__slot s, struct due__facts f, bool ready)
{
    if (!ready) {
        while (!due__timeline_insert(&q->timeline, s))
            due__make_room(q);
        if (due__slot_deadline(s) < q->armed)
            q->debts |= DUE__DEBT_LEAD;
        if (due__slot_deadline(s) < due__load_relaxed(&q->sole_until)) /* W3: under the lock */
            due__sole_until(q);
    } else {
        struct due__topic *t = due__topic_at(q, f.topic);

        due__note_ready(q, s);
        due__count(q, due__slot_job(s), DUE__F_READY, 1);
        if (due__gated(t, f)) {
            due__limiter_arrive(q, s);
        } else {
            while (!due__topic_push(q, t, s))
                due__make_room(q);
        }
    }
    if (due__timeline_count(&q->timeline) + q->in_lines >= q->sweep_at)
        due__sweep_begin(q, false);
}

static void renumbered(void *ctx, struct due__slot old, struct due__slot now)
{
    struct due_queue *q = ctx;
    struct due__job *j = due__job_at(&q->slab, due__slot_job(old));
    uint64_t w;

    while (due__slot_alive(&q->slab, old, &w)) {
        if (due__word_restamp(&j->word, &w, due__slot_arrival(now))) /* J1 */
            return;
    }
}

/* Back from a line into the timeline, to be numbered with the rest and moved again. */
static void unready(struct due_queue *q, struct due__slot s)
{
    struct due__job *j = due__job_at(&q->slab, due__slot_job(s));
    uint64_t w;

    while (due__slot_alive(&q->slab, s, &w)) {
        if (due__word_unready(&j->word, &w)) { /* J1 */
            q->unreadied++;
            due__count(q, due__slot_job(s), DUE__F_READY, -1);
            keep(q, s, due__facts_load(j), false);
            return;
        }
    }
}

/* The arrival numbers are used up: give small ones to everything that waits, in order.  Happens
 * once in 2^28 arrivals during which the queue was never empty, and takes as long as it takes. */
static void renumber(struct due_queue *q)
{
    size_t dropped = 0;
    struct due__slot s;

    for (uint32_t i = 0; i < due__load_acquire(&q->topic_count); i++) { /* T1 of topic.c */
        struct due__topic *t = due__topic_at(q, i);

        while (!due__topic_recall(q, t))
            due__make_room(q);
        while (t->line.count > 0) {
            q->in_lines--;
            unready(q, due__slot_plain(q, due__line_pop(&t->line, &q->nodes)));
        }
    }
    while (due__limiters_pop(q, &s))
        unready(q, due__slot_plain(q, s));
    q->due_ns = -1;
    q->moved = (struct due__slot){ 0, 0 };
    q->arrival = due__timeline_renumber(&q->timeline, 0, renumbered, q, &dropped);
}

static inline uint32_t next_arrival(struct due_queue *q)
{
    if (q->arrival >= DUE__ARRIVAL_MAX)
        renumber(q);
    return q->arrival++;
}

/* A job without delay is due when it is submitted, at whatever moment of that call: at @least_ns,
 * if its clock was read before that and the call returned, or will return, after it. */
static inline int64_t submitted(const struct due_queue *q, struct due__facts f, int64_t deadline_ns,
                                int64_t least_ns)
{
    bool early = (f.payload & DUE__NOW) && deadline_ns < least_ns && !q->clock.steps;

    return early ? least_ns : deadline_ns;
}

/* Sort in the job @number whose word was @w: it waits, or is leased until its deadline, which is
 * later than due_ns.  @moves: it comes from the inbox, and so many jobs may move before it: one
 * without delay goes to the end of its line then.  False: it was cancelled meanwhile. */
static bool sort_in(struct due_queue *q, uint32_t number, struct due__job *j, uint64_t w,
                    uint32_t *moves)
{
    struct due__facts f = due__facts_load(j);
    int64_t given = due__load_relaxed(&j->deadline_ns); /* J1 */
    int64_t deadline = submitted(q, f, given, q->inbox.after_ns);

    if (deadline != given)
        due__store_relaxed(&j->deadline_ns, deadline); /* J1: linked, so the place stays its own */
    if (moves != NULL && (f.payload & DUE__NOW)) {     /* what is behind it was put after that */
        q->inbox.after_ns = deadline;
        if (*moves > 0 && !q->clock.steps && !q->limiters.any && !move_within(q, deadline, moves))
            *moves = 0;
    }
    struct due__slot s = due__slot_make(deadline, f.priority, next_arrival(q), number);
    bool ready = due__word_state(w) == DUE__WAITING && due__moved(q, s);

    uint64_t sorted =
        due__word(due__word_generation(w), due__slot_arrival(s),
                  (w & (DUE__STATE_MASK | DUE__HELD | DUE__PASSED)) | (ready ? DUE__READY : 0));
    if (!(ready ? due__become_ready(q, number, &w, sorted)
                : due__word_swap(&j->word, &w, sorted))) /* J1 */
        return false;
    keep(q, s, f, ready);
    return true;
}

static inline __attribute__((always_inline)) void place(struct due_queue *q,
                                                        const struct due__fresh *it, uint64_t flags)
{
    int64_t deadline = submitted(q, it->f, it->deadline_ns, q->published_ns);
    struct due__slot s = due__slot_make(deadline, it->f.priority, next_arrival(q), it->number);
    bool ready = due__moved(q, s);

    q->direct++;
    due__facts_store(it->job, it->f);
    due__store_relaxed(&it->job->deadline_ns, deadline); /* J1 */
    if (ready)
        due__note(q, it->number, due__word(it->generation, 0, 0));
    due__word_begin(&it->job->word, it->generation, due__slot_arrival(s), DUE__WAITING,
                    (ready ? DUE__READY : 0) | flags); /* J1: nobody else had it until here */
    keep(q, s, it->f, ready);
}

void due__place(struct due_queue *q, const struct due__fresh *it)
{
    place(q, it, 0);
}

void due__place_held(struct due_queue *q, const struct due__fresh *it, bool held, bool failed)
{
    uint64_t pass = failed ? due__limiter_resume(q, it->job, it->f) : 0;

    place(q, it, (held ? DUE__HELD : 0) | pass);
}

void due__sort_sent(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */

    q->direct++;
    w = due__word_as(w, DUE__WAITING);
    due__word_set(&j->word, w); /* J1 */
    sort_in(q, number, j, w, NULL);
}

void due__replace(struct due_queue *q, uint32_t number, uint64_t w, enum due__state state,
                  int64_t deadline_ns)
{
    struct due__job *j = due__job_at(&q->slab, number);
    struct due__facts f = due__facts_load(j);

    f.payload &= (uint8_t)~DUE__NOW;
    due__facts_store(j, f);
    due__store_relaxed(&j->deadline_ns, deadline_ns); /* J1 */
    if (w & DUE__READY) {
        q->unreadied++;
        due__count(q, number, DUE__F_READY, -1);
    }

    w = due__word_as(w & ~DUE__READY, state);
    due__word_set(&j->word, w); /* J1 */
    if (!(w & DUE__LINKED))
        sort_in(q, number, j, w, NULL);
}

void due__unlink_cancelled(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    while (!due__word_unlink(&j->word, &w)) /* J1 */
        ;
    if (due__word_state(w) == DUE__DONE)
        due__slab_give(&q->slab, number);
}

/* One node from the inbox. */
static void sort_in_node(struct due_queue *q, struct cds_wfcq_node *node, uint32_t *moves)
{
    struct due__job *j = caa_container_of(node, struct due__job, link.node);
    uint32_t number = due__job_number(&q->slab, j);
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    q->delegated++;
    if (due__word_state(w) != DUE__WAITING || !sort_in(q, number, j, w, moves))
        due__unlink_cancelled(q, number);
}

bool due__drain_some(struct due_queue *q, uint32_t max)
{
    enum due__inbox_found found = DUE__INBOX_NODE;
    uint32_t moves = DUE__MOVES_MAX;
    struct cds_wfcq_node *node;

    due__inbox_note(&q->inbox, q->published_ns);
    due__inbox_answer(&q->inbox); /* E1 */
    for (uint32_t i = 0; i < max; i++) {
        found = due__inbox_take(&q->inbox, &node);
        if (found != DUE__INBOX_NODE)
            break;
        due__inbox_prefetch(&q->inbox);
        sort_in_node(q, node, &moves);
    }
    due__inbox_answered(&q->inbox, found); /* E1 */
    return found == DUE__INBOX_EMPTY;
}

void due__drain_all(struct due_queue *q)
{
    /* No more nodes were there at the beginning than there are places. */
    uint32_t rounds = due__slab_end(&q->slab) / DUE__PROXY_BATCH + 1;
    struct due__tenure t;

    do { /* once in any case: E3 */
        due__enter(q, &t);
        help_sort(q, DUE__PROXY_BATCH);
        due__tenure_end(q, &t);
    } while (due__inbox_knocked(&q->inbox) && rounds-- > 0); /* E1: a gap is not waited for */
}

/* ---- What is due ---- */

bool due__head_load(struct due_queue *q)
{
    bool ready = due__timeline_ready(&q->timeline);
    struct due__slot s;

    for (uint32_t i = 0; i < DUE__PREFETCH_POPS && due__timeline_ahead(&q->timeline, i, &s); i++)
        due__pop_prefetch(q, s);
    return ready;
}

/* A slot that has left the timeline goes to its topic, if it is alive. */
static void make_ready(struct due_queue *q, struct due__slot s)
{
    uint32_t number = due__slot_job(s);
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w;

    while (due__slot_alive(&q->slab, s, &w)) {
        struct due__facts f = due__facts_load(j);
        uint64_t ready = due__word_as(w, DUE__WAITING) | DUE__READY;

        if (due__word_state(w) != DUE__WAITING && q->life->time_came(q, number, w))
            return;
        if (due__word_state(w) != DUE__DEAD && due__become_ready(q, number, &w, ready)) {
            if (due__word_state(w) == DUE__LEASED)
                q->life->lease_ended(q, number);
            keep(q, s, f, true);
            return;
        }
    }
}

static bool move_within(struct due_queue *q, int64_t now_ns, uint32_t *moves)
{
    struct due__timeline *tl = &q->timeline;
    struct due__slot s;

    while (due__timeline_bound(tl) <= now_ns) {
        if (!due__head_ready(q))
            return false;
        if (!due__timeline_head(tl, &s) || due__slot_deadline(s) > now_ns)
            break;
        if (*moves == 0) {
            /* What comes in meanwhile must not stand behind what was moved. */
            if (due__slot_deadline(s) > q->due_ns) {
                q->due_ns = due__slot_deadline(s) - 1;
                q->moved = s;
            }
            return false;
        }
        --*moves;
        due__timeline_pop(tl);
        due__prefetch_ahead(q);
        make_ready(q, s);
    }
    if (now_ns > q->due_ns)
        q->due_ns = now_ns;
    if (due__timeline_count(tl) == 0 && q->in_lines == 0 && q->ring == NULL)
        q->arrival = 0;
    return true;
}

bool due__move_some(struct due_queue *q, int64_t now_ns)
{
    uint32_t moves = DUE__MOVES_MAX;

    return move_within(q, now_ns, &moves);
}

/* Drain.  What is due by the answer is to be moved then: now, or unless @all is asked for before
 * what had to be left in the inbox. */
static int64_t drain_until(struct due_queue *q, uint32_t max, bool all)
{
    int64_t now = due__clock_now(&q->clock); /* I3: before the drain */

    if (due__inbox_quiet(&q->inbox)) /* I2 */
        return now;
    /* On a clock that can be set back this is what lets jobs go straight to their topic.  But who
     * is at a limiter first is let through. */
    if (q->clock.steps && !q->limiters.any)
        due__move_due(q, now);
    due__inbox_mark(&q->inbox, now);
    if (due__drain_or_say(q, max) || all || q->clock.steps || q->inbox.left != DUE__INBOX_NODE ||
        q->inbox.after_ns > now)
        return now;
    return q->inbox.after_ns;
}

bool due__catch_up(struct due_queue *q, uint32_t max)
{
    return due__move_due(q, drain_until(q, max, true));
}

/* The same for others, when somebody will come after us for what is left in the inbox. */
static void help_sort(struct due_queue *q, uint32_t max)
{
    due__move_due(q, drain_until(q, max, false));
}
