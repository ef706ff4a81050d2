/* compaction.c - dead slots: when to sweep them out, and who does it.
 *
 * A job that was cancelled or moved leaves its slot behind, in the timeline, a line or at a
 * limiter. When there are more than twice as many slots as waiting jobs, a sweep begins.  The
 * worker proxy does it, a piece a tenure; if dead slots come faster than it can follow, everybody
 * who holds the lock does a little, and without proxies they do all of it.
 *
 * But a small sweep is done at home, by a thread that has the lock to itself, since to have the
 * worker proxy do it costs more than the sweep: the lock's bias, and each line that it looks at. A
 * piece follows each few hundred cancels, and whenever there is a chunk's worth of slots more than
 * after the last one, which is four slots for each new one; the tenures between owe nothing.  If
 * another one comes meanwhile, the worker proxy goes on with it.
 *
 * A piece is done at the end of a tenure, since whoever inserts a slot, or moves it to its line,
 * may be on his way through what is swept.
 *
 * Guards     T  the timeline lock
 *
 * Edges      described elsewhere: E1 E2 tenure.c, T1 topic.c
 *
 * Not here   How a sweep walks: timeline_sweep.c for the timeline, ready_line.c for a line.
 */
#include "queue/compaction.h"

#include "os/atomic.h"
#include "queue/counts.h"
#include "queue/queue.h"

#define LOOK_AHEAD 16u     /* slots of a sweep whose jobs are on their way into the cache */
#define AT_HOME    262144u /* slots; a sweep of more is for another core, and another cache */
#define A_TOPIC    8u      /* a line that is empty costs as much as so many slots */

size_t due__keep_live(const struct due_queue *q, struct due__slot *slot, size_t n, bool line)
{
    const struct due__job *job[LOOK_AHEAD];
    size_t kept = 0;
    uint64_t w;

    for (size_t i = 0; i < n && i < LOOK_AHEAD; i++) {
        job[i] = due__job_at(&q->slab, due__slot_job(slot[i]));
        __builtin_prefetch(job[i]);
    }
    for (size_t i = 0; i < n; i++) {
        const struct due__job *j = job[i % LOOK_AHEAD];
        struct due__slot s = slot[i];

        if (i + LOOK_AHEAD < n) {
            job[i % LOOK_AHEAD] = due__job_at(&q->slab, due__slot_job(slot[i + LOOK_AHEAD]));
            __builtin_prefetch(job[i % LOOK_AHEAD]);
        }
        due__slot_store(&slot[kept], s);
        kept += due__slot_alive_of(j, line ? due__slot_plain(q, s) : s, &w);
    }
    return kept;
}

static size_t keep_live_in_line(const void *ctx, struct due__slot *slot, size_t n)
{
    return due__keep_live(ctx, slot, n, true);
}

/* The worker proxy is to do it. */
static void send_out(struct due_queue *q, size_t worth)
{
    q->debts |= DUE__DEBT_SWEEP | DUE__DEBT_WORKER;
    q->help_at = q->proxies == DUE_PROXIES_NEVER ? 0 : worth + worth / 2;
    q->beating = DUE_HEARTBEAT; /* until the idle pages are given back */
}

/* May who holds the lock sweep so many slots himself?  What he leaves off somebody has to end: the
 * next heartbeat, if there is any in this build, or where there are no proxies he himself. */
static bool at_home(const struct due_queue *q, size_t slots)
{
    bool ended = q->beating || !DUE_HEARTBEAT || q->proxies == DUE_PROXIES_NEVER;

    return slots <= AT_HOME && ended && due__lock_is_biased(&q->lock);
}

/* A sweep begins, or goes on, if it is worth it. */
static void look(struct due_queue *q)
{
    if (q->debts & DUE__DEBT_SWEEP)
        return;
    size_t slots = due__timeline_count(&q->timeline) + q->in_lines;
    bool home = at_home(q, slots);
    if (!q->sweeping || !home) {
        size_t waiting = (size_t)due__waiting(q) + q->dead_count;
        size_t worth = 2 * waiting + DUE__SWEEP_PIECE;
        size_t later = slots + DUE__SWEEP_PIECE / 4;

        q->sweep_at = worth > later ? worth : later;
        if (!q->sweeping && slots <= worth)
            return;
        due__sweep_begin(q);
        if (!home)
            send_out(q, worth);
    }
}

void due__sweep_begin(struct due_queue *q)
{
    if (q->sweeping)
        return;
    q->sweeping = true;
    q->sweep_topic = 0;
    due__limiters_sweep_begin(q);
}

void due__sweep_look(struct due_queue *q)
{
    look(q);
    if (q->sweeping && !(q->debts & DUE__DEBT_SWEEP))
        q->debts |= DUE__DEBT_HOME;
}

void due__sweep_help(struct due_queue *q, size_t budget)
{
    if (due__timeline_count(&q->timeline) + q->in_lines >= q->help_at)
        due__sweep_piece(q, budget);
}

bool due__sweep_piece(struct due_queue *q, size_t budget)
{
    size_t dropped = 0;

    if (!q->sweeping)
        return true;
    if (q->sweep_topic == 0) {
        if (due__timeline_sweep(&q->timeline, budget, &dropped))
            q->sweep_topic = 1;
        return false;
    }
    while (q->sweep_topic <= due__load_acquire(&q->topic_count)) { /* T1 of topic.c */
        struct due__topic *t = due__topic_at(q, q->sweep_topic - 1);
        size_t before = t->line.count;
        bool done = due__line_sweep(&t->line, &q->nodes, keep_live_in_line, q, budget);

        q->in_lines -= before - t->line.count;
        if (!done)
            return false;
        q->sweep_topic++;
        if (budget <= before + A_TOPIC)
            return false;
        budget -= before + A_TOPIC;
    }
    if (!due__limiters_sweep(q, keep_live_in_line, budget))
        return false;
    q->sweeping = false;
    q->debts &= ~DUE__DEBT_SWEEP;
    q->sweep_at = due__timeline_count(&q->timeline) + q->in_lines + DUE__SWEEP_PIECE / 4;
    return true;
}

void due__sweep_home(struct due_queue *q, size_t budget)
{
    if (!due__sweep_piece(q, budget)) /* another one then, however few slots are left */
        q->sweep_at = due__timeline_count(&q->timeline) + q->in_lines + DUE__CHUNK_SLOTS;
}

void due__make_room(struct due_queue *q)
{
    due__sweep_begin(q);
    while (!due__sweep_piece(q, DUE__SWEEP_PIECE))
        ;
}

/* Who cannot have the lock leaves word: whoever has it will look, as if something had been put into
 * the inbox. */
static bool enter_or_ask(struct due_queue *q, struct due__tenure *t)
{
    if (due__try_enter(q, t))
        return true;
    due__store_relaxed(&q->unswept, 1); /* E1: before the knock */
    due__inbox_knock(&q->inbox);        /* E1 */
    if (q->proxies == DUE_PROXIES_ALWAYS) {
        due__bell_ring(&q->enqueue_bell);
        return false;
    }
    return !(due__load_seq(&q->state) & DUE__ACTIVE) && due__try_enter(q, t); /* E2, E1 */
}

void due__sweep_sometimes(struct due_queue *q)
{
    struct due__tenure t;

    if (!enter_or_ask(q, &t))
        return;
    look(q);
    if (q->debts & DUE__DEBT_SWEEP)
        due__sweep_help(q, DUE__SWEEP_PIECE);
    else
        due__sweep_home(q, DUE__SWEEP_PIECE);
    due__tenure_end(q, &t);
}
