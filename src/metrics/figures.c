/* figures.c - a queue's figures in a file that others look into.
 *
 * The worker proxy gathers and writes them, when it is time: no call of the queue does anything for
 * it.  It waits for the timeline's lock as whoever asks for figures does, and never for a store.
 * What it takes it takes seldom: after a set it rests for twenty times as long as that took.
 *
 * Guards     I  set when it is made, then constant      W  its one writer's: who opens, then the
 *            worker proxy, then who frees      T  the timeline lock
 *
 * Not here   The file, and how a reader knows what is whole: figures_file.c.
 */
#include "metrics/figures_file.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "metrics/read.h"
#include "os/atomic.h"
#include "queue/board.h"
#include "queue/events.h"
#include "queue/queue.h"

#define REST      20        /* of so much time, all but one part is left to others */
#define MOVING_NS DUE_MS(5) /* how long what is due is moved for, each time */

struct shown {
    struct due__board board;                         /* W */
    struct due__figures_file file;                   /* W */
    struct due_figures set;                          /* W  what is about to be written */
    struct due_topic_stats each[DUE_FIGURES_TOPICS]; /* W */
};

/* What is due is ready, as far as that can be done in a short time. */
static void move_due(struct due_queue *q, int64_t began_ns)
{
    struct due__tenure t;
    bool done;

    do {
        due__enter(q, &t);
        done = due__catch_up(q, DUE__PROXY_BATCH);
        due__tenure_end(q, &t);
    } while (!done && due__monotonic_now() - began_ns < MOVING_NS);
}

static void gather_topics(struct due_queue *q, struct shown *s)
{
    struct due_figures *f = &s->set;

    f->topics = due__load_acquire(&q->topic_count); /* T1 of topic.c */
    f->topics_here = f->topics < DUE_FIGURES_TOPICS ? f->topics : DUE_FIGURES_TOPICS;
    f->oldest_ns = DUE_FOREVER;
    if (due__topics_figures(q, f->topics_here, s->each) != 0)
        f->topics_here = 0;
    for (uint32_t i = 0; i < f->topics_here; i++) {
        struct due_figures_topic *to = &f->topic[i];

        strncpy(to->name, due__topic_at(q, i)->name, sizeof to->name - 1);
        to->stats = s->each[i];
        if (to->stats.oldest_ns < f->oldest_ns)
            f->oldest_ns = to->stats.oldest_ns;
    }
    if (f->topics > f->topics_here)
        f->oldest_ns = due__oldest_of_all(q);
}

static void gather_pools(struct due_queue *q, struct due_figures *f)
{
    const struct due__row *row;

    f->pools_here = 0;
    due__lock_acquire(&q->pool_stats.lock);
    due__pool_stats_sum(&q->pool_stats);
    for (row = q->pool_stats.rows; row != NULL && f->pools_here < DUE_FIGURES_POOLS;
         row = row->next) {
        struct due_figures_pool *to = &f->pool[f->pools_here++];

        memcpy(to->name, row->name, sizeof row->name);
        to->stats = row->sum;
    }
    due__lock_release(&q->pool_stats.lock);
}

static void gather(struct due_queue *q, struct shown *s, bool last)
{
    struct due_figures *f = &s->set;
    int64_t began_ns = due__monotonic_now();

    move_due(q, began_ns);
    due__stats_fill(q, &f->stats);
    gather_topics(q, s);
    gather_pools(q, f);
    due__measured_sum(q, &f->late, &f->held);
    f->closed = last;
    f->now_ns = due__clock_now(&q->clock);
    f->written_ns = due__kernel_now(CLOCK_REALTIME);
    f->monotonic_ns = due__monotonic_now();
    int64_t rest_ns = (f->monotonic_ns - began_ns) * REST;
    f->next_ns =
        f->monotonic_ns + (rest_ns > DUE_FIGURES_EVERY_NS ? rest_ns : DUE_FIGURES_EVERY_NS);
}

static int64_t figures_write(struct due_queue *q, struct due__board *board, bool last)
{
    struct shown *s = (struct shown *)board;

    gather(q, s, last);
    if (due__figures_file_put(&s->file, &s->set))
        return s->set.next_ns;
    due__log(q, DUE_LOG_WARNING,
             "%s: somebody has made the file of its figures shorter: no more "
             "are written",
             q->name);
    return DUE_FOREVER;
}

static void figures_free(struct due_queue *q, struct due__board *board, bool forked)
{
    struct shown *s = (struct shown *)board;

    due__figures_file_close(&s->file, !forked);
    due__alloc_free(&q->alloc, s, sizeof *s);
}

/* Made, and a first set written. */
static int shown_new(struct due_queue *q, const char *path, struct shown **made)
{
    struct shown *s = due__alloc_new(&q->alloc, sizeof *s);

    if (s == NULL)
        return DUE_ENOMEM;
    int rc = due__figures_file_open(&s->file, path);
    if (rc != 0) {
        due__alloc_free(&q->alloc, s, sizeof *s);
        return rc;
    }
    s->board.write = figures_write;
    s->board.free = figures_free;
    s->set.pid = getpid();
    s->set.opened_ns = due__kernel_now(CLOCK_REALTIME);
    s->set.measured = q->events != NULL && q->events->counts;
    s->set.stored = q->stored;
    memcpy(s->set.queue, q->name, sizeof q->name);
    s->board.next_ns = figures_write(q, &s->board, false);
    *made = s;
    return 0;
}

int due_figures_open(due_queue *q, const char *path)
{
    struct due__tenure t;
    struct shown *s;
    int cancel;

    if (due__forked(q))
        return DUE_EFORK;
    if (q->proxies == DUE_PROXIES_NEVER)
        return DUE_ENOTSUP;
    due__enter(q, &t);
    bool has = q->board != NULL;
    due__tenure_end(q, &t);
    if (has)
        return DUE_EEXIST;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int rc = shown_new(q, path, &s);
    if (rc == 0) {
        due__enter(q, &t);
        has = q->board != NULL; /* somebody was quicker */
        if (!has) {
            q->board = &s->board;
            q->debts |= DUE__DEBT_WORKER;
        }
        due__tenure_end(q, &t);
        if (has) {
            figures_free(q, &s->board, false);
            rc = DUE_EEXIST;
        }
    }
    pthread_setcancelstate(cancel, NULL);
    return rc;
}
