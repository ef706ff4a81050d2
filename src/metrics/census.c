/* census.c - how much a queue holds, and who has it open.
 *
 * Of a shared queue the store is asked, as it is for a job that is not here.  Any other is counted
 * where it lies, once all of it is there.
 *
 * Edges      described elsewhere: J1 slab.h
 */
#define _GNU_SOURCE
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "due/metrics.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/stored.h"

/* ---- Asking, and waiting ---- */

/* Until the store has answered; or, of a queue that is not shared, has been read: 0, or an error.
 * With no time at all nothing can be waited for. */
static int ask(struct due_queue *q, struct due__ask *ask, int64_t timeout_ns)
{
    struct due__deadline by = { .timeout_ns = timeout_ns };

    if (timeout_ns == 0)
        return q->shared || due__loading(q) ? DUE_EAGAIN : 0;
    if (q->shared)
        return q->journal->ask(q, ask, &by);
    return q->stored ? q->journal->loaded(q, &by) : 0;
}

/* ---- Counting here ---- */

/* Those of some topics, by their numbers, from @first on. */
struct some {
    struct due_queue_census *each;
    size_t first, n;
};

/* A job that the word tells of at one moment. */
static void count_job(struct due_queue *q, uint32_t number, const struct some *s)
{
    const struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word);        /* J1 */
    int64_t ns = due__load_relaxed(&j->deadline_ns); /* J1 */
    size_t topic = (size_t)due__facts_load(j).topic - s->first;
    enum due__state state = due__word_state(w);

    if ((state != DUE__WAITING && state != DUE__LEASED) || topic >= s->n ||
        due__load_acquire(&j->word) != w) /* J1: it belongs together */
        return;
    struct due_queue_census *c = &s->each[topic];
    if (state == DUE__LEASED) {
        c->leased++;
    } else if (w & DUE__READY) {
        c->ready++;
        c->oldest_ns = ns < c->oldest_ns ? ns : c->oldest_ns;
    } else {
        c->delayed++;
    }
}

static int count_here(struct due_queue *q, struct due_queue_census *all, const struct some *some)
{
    struct due__deadline by = { 0 };
    struct due_stats s;

    due__lapse_all(q, &by);
    due_poll(q, NULL); /* what is due is ready */
    int64_t head_ns = due_next_deadline(q);
    int rc = due_stats_read(q, &s);
    if (rc != 0)
        return rc;
    *all = (struct due_queue_census){ .delayed = s.waiting - s.ready,
                                      .ready = s.ready,
                                      .leased = s.leased,
                                      .dead = s.dead,
                                      .oldest_ns = due__oldest_of_all(q),
                                      .head_ns = head_ns,
                                      .processes = 1 };
    for (size_t i = 0; i < some->n; i++)
        some->each[i] = (struct due_queue_census){ .oldest_ns = DUE_FOREVER };
    for (uint32_t at = 0; some->n > 0 && at < due__slab_end(&q->slab); at++)
        count_job(q, at, some);
    all->now_ns = due__jobs_now(q);
    return 0;
}

/* ---- The census ---- */

int due__census_each(struct due_queue *q, struct due_queue_census *all,
                     struct due_queue_census *each, size_t first, size_t n, int64_t timeout_ns)
{
    struct due__ask it = {
        .kind = DUE__ASK_CENSUS, .census = all, .each = each, .from = first, .max = n
    };
    struct some some = { each, first, n };
    int rc = ask(q, &it, timeout_ns);

    return rc == 0 && !q->shared ? count_here(q, all, &some) : rc;
}

/* What is of one topic is that of @one. */
static int count(struct due_queue *q, int topic, struct due_queue_census *census,
                 int64_t timeout_ns)
{
    bool any = topic == DUE_ALL_TOPICS;
    struct due_queue_census all;
    struct due_queue_census one;
    int rc = due__census_each(q, &all, &one, any ? 0 : (size_t)topic, !any, timeout_ns);

    if (rc != 0)
        return rc;
    if (!any) {
        all.delayed = one.delayed;
        all.ready = one.ready;
        all.leased = one.leased;
        all.oldest_ns = one.oldest_ns;
    }
    *census = all;
    return 0;
}

int due_census(due_queue *q, int topic, struct due_queue_census *census, int64_t timeout_ns)
{
    if (due__forked(q))
        return DUE_EFORK;
    if (timeout_ns < 0 || (topic != DUE_ALL_TOPICS && due_topic_name(q, topic) == NULL))
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    int rc = count(q, topic, census, timeout_ns);
    due__inside_end(q, inside);
    return rc;
}

/* ---- Processes ---- */

/* The only one that there is. */
static int show_self(struct due_queue *q, due_process *p)
{
    struct due__tenure t;
    struct due_stats s;
    int rc = due_stats_read(q, &s);

    if (rc != 0)
        return rc;
    *p = (due_process){ .pid = getpid(), .held = s.lent, .self = 1 };
    if (gethostname(p->host, sizeof p->host) != 0)
        p->host[0] = '\0';
    p->host[sizeof p->host - 1] = '\0';
    p->seen_ns = due__jobs_now(q);
    due__enter(q, &t);
    p->waits = q->all != NULL;
    due__tenure_end(q, &t);
    return 0;
}

static int list(struct due_queue *q, uint64_t *cursor, due_process *processes, size_t max,
                int64_t timeout_ns)
{
    struct due__ask it = {
        .kind = DUE__ASK_PROCESSES, .processes = processes, .from = (size_t)*cursor, .max = max
    };

    if (!q->shared) {
        int rc = *cursor == 0 ? show_self(q, processes) : 0;

        it.got = rc == 0 && *cursor == 0;
        *cursor += it.got;
        return rc != 0 ? rc : (int)it.got;
    }
    int rc = ask(q, &it, timeout_ns);
    if (rc != 0)
        return rc;
    if (it.got > 0)
        *cursor = processes[it.got - 1].number;
    return (int)it.got;
}

int due_processes(due_queue *q, uint64_t *cursor, due_process *processes, size_t max,
                  int64_t timeout_ns)
{
    if (due__forked(q))
        return DUE_EFORK;
    if (max == 0 || max > INT_MAX || timeout_ns < 0)
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    int rc = list(q, cursor, processes, max, timeout_ns);
    due__inside_end(q, inside);
    return rc;
}
