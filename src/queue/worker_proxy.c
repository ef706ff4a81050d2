/* worker_proxy.c - the thread that owns the timer when no caller can, and tidies up.
 *
 * With DUE_PROXIES_ALWAYS it leads all the time.  Otherwise consumers lead, and this thread sleeps:
 * it is called for sweeps, and keeps one heartbeat of ten seconds while somebody waits or memory is
 * idle.  A heartbeat looks at everything, mends what it finds undone, and counts that as a bug.
 * It also shows the figures of a queue that is to (board.h), now and then and when it is closed.
 */
#include "os/atomic.h"
#include "queue/board.h"
#include "queue/compaction.h"
#include "queue/queue.h"

#define BEAT_NS     DUE_S(10)
#define OVERDUE_NS  DUE_S(1) /* a due job with a consumer waiting is never this old */
#define TRIM_CHUNKS 64u      /* looked at in one tenure of a heartbeat */

/* What the last heartbeat saw: whether somebody had knocked, and how much had come in by then. */
struct memory {
    bool knocked;
    uint64_t delegated;
};

/* A knock that stood at the last heartbeat already was not heard. */
static bool unheard(struct due_queue *q, struct memory *before)
{
    struct memory now = { due__inbox_knocked(&q->inbox), q->delegated };
    bool same = now.knocked && before->knocked && now.delegated == before->delegated;

    *before = now;
    return same;
}

/* Is somebody parked who takes a topic with a job shown, and nobody under way for it? */
static bool uncalled(struct due_queue *q)
{
    struct due__topic *t = q->ring;

    if (t == NULL || q->proxies == DUE_PROXIES_ALWAYS || q->fresh != NULL)
        return false; /* fresh: a holder that had no more bells comes back */
    do {
        if (!due__called_for(q, t)) {
            due__topic_fresh(q, t);
            return true;
        }
        t = t->next;
    } while (t != q->ring);
    return false;
}

/* Under the lock.  False: nothing to keep a heartbeat for. */
static bool beat(struct due_queue *q, struct memory *before)
{
    int64_t now = due__clock_now(&q->clock);
    int64_t bound = due__timeline_bound(&q->timeline);

    q->beats++;
    q->beat_ns = now;
    q->mended += unheard(q, before);
    q->mended += q->all != NULL && q->clock.manual == NULL && bound < now - OVERDUE_NS;
    q->mended += uncalled(q);
    due__catch_up(q, DUE__PROXY_BATCH);
    due__sweep_look(q);
    bool cold = due__pool_trim(&q->pool, TRIM_CHUNKS);
    bool idle = due__load_relaxed(&q->slab.idle) > 0 || /* no edge: a guess */
                due__payloads_idle(&q->slab.payloads) > 0;
    return q->all != NULL || !cold || idle;
}

/* One tenure of whatever there is to do.  True: more. */
static bool work(struct due_queue *q, bool beats, struct memory *before, int64_t *armed,
                 bool *alarm)
{
    struct due__tenure t;
    void *cold = NULL;
    bool more;

    due__enter(q, &t);
    q->warming = due__pool_warm_claim(&q->pool, &cold); /* until the next look, after it is done */
    more = cold != NULL;
    if (q->lead == &q->worker)
        due__unpark_job(q, &q->worker);
    if (beats)
        q->beating = beat(q, before) || q->sweeping;
    more = !due__sweep_piece(q, DUE__SWEEP_PIECE) || more;
    more = !due__timeline_work(&q->timeline, DUE__SWEEP_PIECE) || more;
    if (q->proxies == DUE_PROXIES_ALWAYS && q->clock.manual == NULL) {
        more = !due__catch_up(q, DUE__PROXY_BATCH) || more;
        due__arm_worker(q);
    }
    bool lead = q->lead == &q->worker;
    *armed = lead ? q->armed : DUE_FOREVER;
    *alarm = lead && q->worker.on_alarm;
    due__tenure_end(q, &t);
    if (cold != NULL)
        due__pool_warm(cold);
    return more;
}

static int64_t next_beat(struct due_queue *q, int64_t beat_ns, struct due__board **board)
{
    struct due__tenure t;

    due__enter(q, &t);
    bool beating = q->beating;
    *board = q->board;
    due__tenure_end(q, &t);
    if (!beating)
        return DUE_FOREVER;
    return beat_ns != DUE_FOREVER ? beat_ns : due__monotonic_now() + BEAT_NS;
}

/* Show the figures, if it is time; when it is again. */
static int64_t show(struct due_queue *q, struct due__board *board)
{
    if (board == NULL)
        return DUE_FOREVER;
    if (due__monotonic_now() >= board->next_ns)
        board->next_ns = board->write(q, board, false);
    return board->next_ns;
}

/* What was mended is said once. */
static void tell(struct due_queue *q, uint64_t *told)
{
    struct due__tenure t;

    due__enter(q, &t);
    uint64_t mended = q->mended;
    due__tenure_end(q, &t);
    if (mended > *told)
        due__log(q, DUE_LOG_ERROR, "%s: the heartbeat mended %llu things that were left undone",
                 q->name, (unsigned long long)(mended - *told));
    *told = mended;
}

void due__worker_proxy(struct due_queue *q)
{
    struct memory before = { false, 0 };
    struct due__board *board = NULL;
    int64_t beat_ns = DUE_FOREVER;
    uint64_t told = 0;
    int64_t armed;
    bool alarm;

    while (!(due__load_seq(&q->state) & DUE__STOPPED)) { /* no edge: rung after it was set */
        bool beats = DUE_HEARTBEAT && beat_ns != DUE_FOREVER && due__monotonic_now() >= beat_ns;

        bool first = beats;
        while (work(q, first, &before, &armed, &alarm))
            first = false;
        if (beats) {
            tell(q, &told);
            uint32_t idle = due__load_relaxed(&q->slab.idle); /* no edge: a guess */
            q->life->tidy_up(q);
            due__slab_trim(&q->slab, idle / 2, false);
            due__payloads_trim(&q->slab.payloads, due__payloads_idle(&q->slab.payloads) / 2, false);
            beat_ns = DUE_FOREVER;
        }
        beat_ns = next_beat(q, beat_ns, &board);
        int64_t show_ns = show(q, board);
        int64_t wakes_ns = beat_ns < show_ns ? beat_ns : show_ns;
        if (alarm)
            due__alarm_wait(&q->alarm, armed, wakes_ns);
        else
            due__bell_wait(&q->worker.bell, armed < wakes_ns ? armed : wakes_ns, true);
    }
    (void)next_beat(q, beat_ns, &board);
    if (board != NULL && board->next_ns != DUE_FOREVER)
        (void)board->write(q, board, true);
}
