/* compaction.c - dead slots: when to sweep them out, and who does it.
 *
 * A job that was cancelled or moved leaves its slot behind, in the timeline, a line or at a
 * limiter. When there are more than twice as many slots as waiting jobs, a sweep begins.  The
 * worker proxy does it, a piece a tenure; if dead slots come faster than it can follow, everybody
 * who holds the lock does a little, and without proxies they do all of it.
 *
 * But a small sweep is done at home, by a thread that has the lock to itself, since to have the
 * worker proxy do it costs more than the sweep: the lock's bias, and each line that it looks at. A
 * piece follows each few hundred cancels, and each chunk that is begun, which is as often as dead
 * slots come; so no tenure between owes anything.  If another one comes meanwhile, the worker proxy
 * goes on with it.
 *
 * Guards     T  the timeline lock
 *
 * Not here   How a sweep walks: timeline_sweep.c for the timeline, ready_line.c for a line.
 */
#include "queue/compaction.h"

#include "os/atomic.h"
#include "queue/counts.h"
#include "queue/queue.h"

#define LOOK_AHEAD 16u     /* slots of a sweep whose jobs are on their way into the cache */
#define AT_HOME    262144u /* slots; a sweep of more is for another core, and another cache */

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

/* A sweep begins, or goes on, if it is worth it. */
static void look(struct due_queue *q)
{
    size_t slots = due__timeline_count(&q->timeline) + q->in_lines;
    size_t waiting = (size_t)due__waiting(q) + q->dead_count;
    size_t worth = 2 * waiting + DUE__SWEEP_PIECE;
    bool watched = q->beating || !DUE_HEARTBEAT || q->proxies == DUE_PROXIES_NEVER;
    bool at_home = slots <= AT_HOME && watched && due__lock_is_biased(&q->lock);

    if (!q->sweeping) {
        q->sweep_at = worth > slots + DUE__SWEEP_PIECE / 4 ? worth : slots + DUE__SWEEP_PIECE / 4;
        if (slots <= worth)
            return;
        due__sweep_begin(q);
        if (at_home)
            q->sweep_at = 0; /* a piece follows each chunk that is begun */
        else
            send_out(q, worth);
    } else if (!(q->debts & DUE__DEBT_SWEEP) && !at_home) {
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

/* A piece of a sweep that is done at home, or help with another. */
static void go_on(struct due_queue *q, size_t at_home, size_t help)
{
    if (q->debts & DUE__DEBT_SWEEP)
        due__sweep_help(q, help);
    else
        due__sweep_piece(q, at_home);
}

void due__sweep_look(struct due_queue *q)
{
    look(q);
    go_on(q, DUE__SWEEP_PIECE / 4, 0);
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
    if (q->sweep_topic <= due__load_acquire(&q->topic_count)) { /* T1 of topic.c */
        struct due__topic *t = due__topic_at(q, q->sweep_topic - 1);
        size_t before = t->line.count;

        if (due__line_sweep(&t->line, &q->nodes, keep_live_in_line, q, budget))
            q->sweep_topic++;
        q->in_lines -= before - t->line.count;
        return false;
    }
    if (!due__limiters_sweep(q, keep_live_in_line, budget))
        return false;
    q->sweeping = false;
    q->debts &= ~DUE__DEBT_SWEEP;
    q->sweep_at = due__timeline_count(&q->timeline) + q->in_lines + DUE__SWEEP_PIECE / 4;
    return true;
}

void due__make_room(struct due_queue *q)
{
    due__sweep_begin(q);
    while (!due__sweep_piece(q, DUE__SWEEP_PIECE))
        ;
}

/* The slots that cancelled jobs leave behind are swept out when there are more than twice as many
 * slots as waiting jobs: by the worker proxy, and if it does not keep up or there is none, also by
 * whoever cancels. */
void due__sweep_sometimes(struct due_queue *q)
{
    struct due__tenure t;

    if (!due__try_enter(q, &t)) {
        due__store_relaxed(&q->unswept, 1); /* no edge: a hint, for who sorts in; or the next one */
        return;
    }
    look(q);
    go_on(q, DUE__SWEEP_PIECE, DUE__SWEEP_PIECE);
    due__tenure_end(q, &t);
}
