/* metrics.c - the figures of a topic and of a queue.
 *
 * Guards     T  the timeline lock
 *
 * Edges      described elsewhere: J1 slab.h, T1 topic.c
 */
#include "metrics/read.h"

#include "api/poll.h"
#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/queue.h"

#define TOPICS_AT_ONCE 64u /* looked at in one tenure */

/* ---- The oldest job that is ready ---- */

/* Under the lock: the deadline of the first live slot that is shown. */
static bool oldest_shown(const struct due_queue *q, const struct due__topic *t, int64_t *ns)
{
    uint64_t ends = due__load_acquire(&t->window.ends); /* V1 of ready_line.c */
    uint64_t w;

    for (uint32_t at = (uint32_t)ends; at != (uint32_t)(ends >> 32); at++) {
        struct due__slot s = due__window_slot(&t->window, at);

        if (due__slot_alive(&q->slab, s, &w)) {
            *ns = due__slot_deadline(s);
            return true;
        }
    }
    return false;
}

/* The same of the line behind it.  Dead slots at its front go; if those are too many for one
 * tenure, the deadline is that of the first, which is earlier. */
static bool oldest_in_line(struct due_queue *q, struct due__topic *t, int64_t *ns)
{
    struct due__slot s;
    uint64_t w;

    for (uint32_t looked = 0; due__line_first(&t->line, &s); looked++) {
        *ns = due__slot_deadline(s);
        if (looked == DUE__DEAD_MAX || due__slot_alive(&q->slab, s, &w))
            return true;
        due__line_pop(&t->line, &q->nodes);
        q->in_lines--;
    }
    return false;
}

static int64_t oldest_of(struct due_queue *q, struct due__topic *t)
{
    int64_t ns;

    return oldest_shown(q, t, &ns) || oldest_in_line(q, t, &ns) ? ns : DUE_FOREVER;
}

/* A look at every job: where lines are in order of priority, or jobs are kept back.  Of each
 * topic from @first on, @n in all. */
static void oldest_by_look(struct due_queue *q, uint32_t first, size_t n, int64_t *oldest)
{
    for (uint32_t at = 0; at < due__slab_end(&q->slab); at++) {
        const struct due__job *j = due__job_at(&q->slab, at);
        uint64_t w = due__load_acquire(&j->word);        /* J1 */
        int64_t ns = due__load_relaxed(&j->deadline_ns); /* J1 */
        size_t topic = (size_t)due__facts_load(j).topic - first;

        if (due__word_state(w) == DUE__WAITING && (w & DUE__READY) && topic < n &&
            ns < oldest[topic] && due__load_acquire(&j->word) == w) /* J1: it belongs together */
            oldest[topic] = ns;
    }
}

/* The deadline of the oldest job of each topic from @first on. */
static void oldest_each(struct due_queue *q, uint32_t first, size_t n, int64_t *oldest)
{
    struct due__tenure t;
    bool look = q->order == DUE_ORDER_PRIORITY;

    for (size_t i = 0; i < n; i++)
        oldest[i] = DUE_FOREVER;
    for (size_t i = 0; i < n && !look;) {
        due__enter(q, &t);
        look = q->limiters.slots > 0;
        for (size_t stop = i + TOPICS_AT_ONCE; i < n && i < stop; i++)
            oldest[i] = oldest_of(q, due__topic_at(q, first + (uint32_t)i));
        due__tenure_end(q, &t);
    }
    if (look)
        oldest_by_look(q, first, n, oldest);
}

int64_t due__oldest_of_all(struct due_queue *q)
{
    uint32_t topics = due__load_acquire(&q->topic_count); /* T1 */
    int64_t first = DUE_FOREVER;

    for (uint32_t at = 0; at < topics; at += DUE__TOPIC_PAGE) {
        uint32_t n = topics - at < DUE__TOPIC_PAGE ? topics - at : DUE__TOPIC_PAGE;
        int64_t oldest[DUE__TOPIC_PAGE];

        oldest_each(q, at, n, oldest);
        for (uint32_t i = 0; i < n; i++)
            first = oldest[i] < first ? oldest[i] : first;
    }
    return first;
}

/* ---- Figures ---- */

static void topic_figures(struct due_queue *q, int topic, struct due_topic_stats *s)
{
    uint64_t f[DUE__FIGURES];

    due__tallies_sum(due__topic_at(q, (uint32_t)topic), f);
    uint64_t came = f[DUE__F_ENQUEUED] + f[DUE__F_RESTORED];
    uint64_t apart = f[DUE__F_DEQUEUED] + f[DUE__F_ACKED] + f[DUE__F_CANCELLED] +
                     f[DUE__F_DISCARDED] + f[DUE__F_KEPT] + f[DUE__F_READY] + f[DUE__F_LEASED] +
                     f[DUE__F_DEAD];
    *s = (struct due_topic_stats){
        .enqueued = f[DUE__F_ENQUEUED],
        .restored = f[DUE__F_RESTORED],
        .delivered = f[DUE__F_DEQUEUED] + f[DUE__F_RESERVED],
        .dequeued = f[DUE__F_DEQUEUED],
        .acked = f[DUE__F_ACKED],
        .nacked = f[DUE__F_NACKED],
        .retried = f[DUE__F_RETRIED],
        .died = f[DUE__F_DIED],
        .expired = f[DUE__F_EXPIRED],
        .kicked = f[DUE__F_KICKED],
        .cancelled = f[DUE__F_CANCELLED],
        .discarded = f[DUE__F_DISCARDED],
        .kept = f[DUE__F_KEPT],
        .delayed = came > apart ? came - apart : 0,
        .ready = f[DUE__F_READY],
        .leased = f[DUE__F_LEASED],
        .dead = f[DUE__F_DEAD],
    };
}

int due__topics_figures(struct due_queue *q, uint32_t n, struct due_topic_stats *each)
{
    int64_t *ns = due__alloc_new(&q->alloc, n * sizeof *ns);

    if (ns == NULL)
        return DUE_ENOMEM;
    oldest_each(q, 0, n, ns);
    for (uint32_t i = 0; i < n; i++) {
        topic_figures(q, (int)i, &each[i]);
        each[i].oldest_ns = ns[i];
    }
    due__alloc_free(&q->alloc, ns, n * sizeof *ns);
    return 0;
}

int due_topic_stats_read(due_queue *q, int topic, struct due_topic_stats *stats)
{
    if (due__forked(q))
        return DUE_EFORK;
    if (due_topic_name(q, topic) == NULL)
        return DUE_EINVAL;
    due_poll(q, NULL); /* what is due is ready */
    topic_figures(q, topic, stats);
    oldest_each(q, (uint32_t)topic, 1, &stats->oldest_ns);
    return 0;
}

int due_topic_measure(due_queue *q, int topic)
{
    if (due__forked(q))
        return DUE_EFORK;
    if (due_topic_name(q, topic) == NULL)
        return DUE_EINVAL;
    if (q->events == NULL || !q->events->counts)
        return DUE_ENOTSUP;
    return due__topic_measure(q, due__topic_at(q, (uint32_t)topic));
}

int due_topic_durations(due_queue *q, int topic, due_histogram *late, due_histogram *held)
{
    if (due__forked(q))
        return DUE_EFORK;
    if (due_topic_name(q, topic) == NULL)
        return DUE_EINVAL;
    due__topic_measured(due__topic_at(q, (uint32_t)topic), false, late);
    due__topic_measured(due__topic_at(q, (uint32_t)topic), true, held);
    return 0;
}

/* What is counted by topic only. */
static void sum_topics(struct due_queue *q, struct due_metrics *m)
{
    uint32_t topics = due__load_acquire(&q->topic_count); /* T1 */
    uint64_t f[DUE__FIGURES];

    if (q->events == NULL || !q->events->counts)
        return;
    for (uint32_t i = 0; i < topics; i++) {
        due__tallies_sum(due__topic_at(q, i), f);
        m->delivered += f[DUE__F_DEQUEUED] + f[DUE__F_RESERVED];
        m->expired += f[DUE__F_EXPIRED];
    }
}

int due_metrics_read(due_queue *q, struct due_metrics *m)
{
    struct due__tenure t;

    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    due_poll(q, NULL); /* what is due is ready */
    memset(m, 0, sizeof *m);
    m->next_ns = due__next_here(q);
    int rc = due_stats_read(q, &m->stats);
    m->oldest_ns = due__oldest_of_all(q);
    sum_topics(q, m);
    due__measured_sum(q, &m->late, &m->held);
    m->stored = q->journal->store_stats(q, &m->store);
    due__enter(q, &t);
    m->heartbeat_ns = q->beat_ns;
    due__tenure_end(q, &t);
    m->now_ns = due__clock_now(&q->clock);
    due__inside_end(q, inside);
    return rc;
}
