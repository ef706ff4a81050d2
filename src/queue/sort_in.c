/* sort_in.c - jobs into the timeline and the lines, and what is due from the one to the others.
 *
 * Whoever holds the lock sorts in its own job and takes along what others left in the inbox.  What
 * is due goes from the timeline to the line of its topic, through its limiters if it has any; never
 * more in one tenure than a number, so that no tenure is long.
 *
 * Edges      described elsewhere: E1 E3 tenure.c, I2 I3 inbox.c, J1 slab.h, T1 W3 topic.c
 *
 * Always     N1  every job that waits and is not LINKED has exactly one live slot
 * (check)    N2  everything before gone that waits is in a topic's line
 */
#include "queue/compaction.h"
#include "queue/place.h"

#include "os/atomic.h"
#include "os/tsan.h"
#include "queue/queue.h"
#include "queue/tenure.h"

/* ---- Sorting in ---- */

static bool move_within(struct due_queue *q, int64_t now_ns, uint32_t *moves);

/* Into its line when the chunks are used up. */
static __attribute__((noinline)) void push_making_room(struct due_queue *q, struct due__topic *t,
                                                       struct due__slot s)
{
    do
        due__make_room(q);
    while (!due__topic_push(q, t, s));
}

/* (Whether a sweep is worth it need not be asked as long as a slot finds room in a chunk that was
 * begun.) */
void due__kept_otherwise(struct due_queue *q, enum due__inserted inserted)
{
    struct due__slot s = q->timeline.refused;

    while (inserted == DUE__NOT_INSERTED) {
        due__make_room(q);
        inserted = due__timeline_insert(&q->timeline, s);
    }
    due__sweep_if_many(q);
}

void due__keep_ready(struct due_queue *q, struct due__slot s, unsigned topic, unsigned payload)
{
    struct due__topic *t = due__topic_at(q, topic);

    due__note_ready(q, s);
    due__count_in(q, topic, DUE__F_READY, 1);
    if (due__gated(t, (struct due__facts){ .payload = (uint8_t)payload }))
        due__limiter_arrive(q, s);
    else if (!due__topic_push(q, t, s))
        push_making_room(q, t, s);
    due__sweep_if_many(q);
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
        struct due__facts f = due__facts_load(j);

        if (due__word_unready(&j->word, &w)) { /* J1: so the facts are its own */
            q->unreadied++;
            due__count_in(q, f.topic, DUE__F_READY, -1);
            due__keep_waiting(q, s);
            return;
        }
    }
}

/* The arrival numbers are used up: give small ones to everything that waits, in order.  Happens
 * once in 2^28 arrivals during which the queue was never empty, and takes as long as it takes. */
void due__renumber(struct due_queue *q)
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
    q->gone = (struct due__slot){ 0, 0 };
    q->arrival = due__timeline_renumber(&q->timeline, 0, renumbered, q, &dropped);
}

/* Sort in the job @number whose word was @w: it waits, or is leased until its deadline, which is
 * not before gone.  @moves: it comes from the inbox, and so many jobs may move before it: one
 * without delay goes to the end of its line then.  False: it was cancelled meanwhile. */
static bool sort_in(struct due_queue *q, uint32_t number, struct due__job *j, uint64_t w,
                    uint32_t *moves)
{
    struct due__facts f = due__facts_load(j);
    int64_t given = due__load_relaxed(&j->deadline_ns); /* J1 */
    int64_t deadline = due__submitted(q, f, given, q->inbox.after_ns);

    if (deadline != given)
        due__store_relaxed(&j->deadline_ns, deadline); /* J1: linked, so the place stays its own */
    if (moves != NULL && (f.payload & DUE__NOW)) {     /* what is behind it was put after that */
        q->inbox.after_ns = deadline;
        if (*moves > 0 && !q->clock.steps && !q->limiters.any && !move_within(q, deadline, moves))
            *moves = 0;
    }
    struct due__slot s = due__slot_make(deadline, f.priority, due__next_arrival(q), number);
    bool ready = due__word_state(w) == DUE__WAITING && due__moved(q, s);

    uint64_t sorted =
        due__word(due__word_generation(w), due__slot_arrival(s),
                  (w & (DUE__STATE_MASK | DUE__HELD | DUE__PASSED)) | (ready ? DUE__READY : 0));
    if (!(ready ? due__become_ready(q, number, &w, sorted)
                : due__word_swap(&j->word, &w, sorted))) /* J1 */
        return false;
    if (ready)
        due__keep_ready(q, s, f.topic, f.payload);
    else
        due__keep_waiting(q, s);
    return true;
}

void due__place(struct due_queue *q, const struct due__fresh *it)
{
    q->direct++;
    due__place_now(q, it, 0);
}

void due__place_held(struct due_queue *q, const struct due__fresh *it, bool held, bool failed)
{
    uint64_t pass = failed ? due__limiter_resume(q, it->job, it->f) : 0;

    q->direct++;
    due__place_now(q, it, (held ? DUE__HELD : 0) | pass);
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
    due__tsan_release(j);       /* its last holder's */
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
    if (q->revoked_linked && q->life->unlinked(q, number, w))
        return;
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
    due__inbox_answered(&q->inbox, found);                             /* E1 */
    if (due__load_relaxed(&q->unswept) && found == DUE__INBOX_EMPTY) { /* E1: after the answer */
        due__store_relaxed(&q->unswept, 0);                            /* likewise */
        due__sweep_look(q);
    }
    return found == DUE__INBOX_EMPTY;
}

void due__drain_all(struct due_queue *q)
{
    /* No more nodes were there at the beginning than there are places. */
    uint32_t rounds = due__slab_end(&q->slab) / DUE__PROXY_BATCH + 1;
    struct due__tenure t;

    do { /* once in any case: E3 */
        due__enter(q, &t);
        due__help_sort(q, DUE__PROXY_BATCH);
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

/* A job whose lease has ended, with the word *@w, becomes @ready.  That is counted before anybody
 * can see it, since he may take the job out, and its place be another's.  False: *@w is another by
 * now. */
static bool lease_over(struct due_queue *q, uint32_t number, uint64_t *w, uint64_t ready)
{
    struct due__job *j = due__job_at(&q->slab, number);

    if (!due__word_claim(&j->word, w, DUE__MOVING)) /* J1 */
        return false;
    q->life->lease_ended(q, number);
    due__note(q, number, *w);
    due__word_set(&j->word, ready); /* J1 */
    return true;
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
        if (due__word_state(w) == DUE__DEAD)
            continue;
        if (due__word_state(w) == DUE__LEASED ? lease_over(q, number, &w, ready)
                                              : due__become_ready(q, number, &w, ready)) {
            due__keep_ready(q, s, f.topic, f.payload);
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
            if (due__slot_deadline(s) > due__due_ns(q))
                q->gone = s;
            return false;
        }
        --*moves;
        due__timeline_pop(tl);
        due__prefetch_ahead(q);
        make_ready(q, s);
    }
    due__all_moved(q, now_ns);
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

void due__help_sort(struct due_queue *q, uint32_t max)
{
    due__move_due(q, drain_until(q, max, false));
}
