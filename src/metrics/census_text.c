/* census_text.c - what a whole queue holds, and what this process has of it, as text.
 *
 * It stands beside the figures of the process (prometheus.c), since a store is asked for it: who
 * reads those must not have to wait for that.
 *
 * Edges      described elsewhere: T1 topic.c
 */
#include <inttypes.h>
#include <limits.h>

#include "due/metrics.h"
#include "metrics/text.h"
#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/queue.h"

#define PAGE 16u /* processes that are looked at together */

struct census_page {
    struct due__text text;               /* O */
    due_queue *q;                        /* O */
    struct due_queue_census all;         /* O */
    const struct due_queue_census *each; /* O  of the first topics */
    uint32_t topics;                     /* O */
    struct due_stats stats;              /* O */
    due_process self;                    /* O */
};

static void put_head(struct census_page *p, const char *name, const char *type, const char *help)
{
    due__text_add(&p->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Up to the value.  @topic: of that one, or (ALL) of none; @state: or NULL. */
#define ALL UINT32_MAX
static void put_name(struct census_page *p, const char *name, uint32_t topic, const char *state)
{
    due__text_add(&p->text, "%s{queue=\"%s\"", name, p->q->name);
    if (topic != ALL) {
        due__text_add(&p->text, ",topic=\"");
        due__text_label(&p->text, due_topic_name(p->q, (int)topic));
        due__text_add(&p->text, "\"");
    }
    if (state != NULL)
        due__text_add(&p->text, ",state=\"%s\"", state);
    due__text_add(&p->text, "} ");
}

static void put_count(struct census_page *p, const char *name, uint32_t topic, const char *state,
                      uint64_t n)
{
    put_name(p, name, topic, state);
    due__text_add(&p->text, "%" PRIu64 "\n", n);
}

/* From one time to another; at least 0. */
static void put_seconds(struct census_page *p, const char *name, uint32_t topic, int64_t from_ns,
                        int64_t to_ns)
{
    int64_t ns = to_ns > from_ns ? to_ns - from_ns : 0;

    put_name(p, name, topic, NULL);
    if (to_ns == DUE_FOREVER)
        due__text_add(&p->text, "+Inf\n");
    else
        due__text_add(&p->text, "%" PRId64 ".%09" PRId64 "\n", ns / DUE_S(1), ns % DUE_S(1));
}

/* ---- The queue ---- */

static void put_jobs(struct census_page *p, const char *name, uint32_t topic,
                     const struct due_queue_census *c)
{
    put_count(p, name, topic, "delayed", c->delayed);
    put_count(p, name, topic, "ready", c->ready);
    put_count(p, name, topic, "leased", c->leased);
}

static void put_queue(struct census_page *p)
{
    const struct due_queue_census *all = &p->all;

    put_head(p, "due_queue_jobs", "gauge", "Jobs of the whole queue now, whoever shares it.");
    put_jobs(p, "due_queue_jobs", ALL, all);
    put_count(p, "due_queue_jobs", ALL, "dead", all->dead);
    put_head(p, "due_queue_oldest_ready_age_seconds", "gauge",
             "How long the oldest job that is ready has been due; 0 if none is.");
    put_seconds(p, "due_queue_oldest_ready_age_seconds", ALL, all->oldest_ns, all->now_ns);
    put_head(p, "due_queue_next_deadline_seconds", "gauge",
             "Until the next deadline, or sooner; 0 if one has passed, +Inf if there is none.");
    put_seconds(p, "due_queue_next_deadline_seconds", ALL, all->now_ns, all->head_ns);
    put_head(p, "due_queue_processes", "gauge",
             "Processes that have the queue open, or died so within a day.");
    put_count(p, "due_queue_processes", ALL, NULL, all->processes);
    put_head(p, "due_queue_topic_jobs", "gauge", "Jobs of the topic, of the whole queue, now.");
    for (uint32_t i = 0; i < p->topics; i++)
        put_jobs(p, "due_queue_topic_jobs", i, &p->each[i]);
    put_head(p, "due_queue_topic_oldest_ready_age_seconds", "gauge",
             "How long the oldest job of the topic that is ready has been due; 0 if none is.");
    for (uint32_t i = 0; i < p->topics; i++)
        put_seconds(p, "due_queue_topic_oldest_ready_age_seconds", i, p->each[i].oldest_ns,
                    all->now_ns);
}

/* ---- This process ---- */

static void put_process(struct census_page *p)
{
    put_head(p, "due_process_jobs", "gauge",
             "Jobs that this process has: waiting here, claimed or not, and on a lease.");
    put_count(p, "due_process_jobs", ALL, "waiting", p->stats.waiting);
    put_count(p, "due_process_jobs", ALL, "leased", p->stats.leased);
    put_head(p, "due_process_waits", "gauge", "1: it waits for jobs, or to be told of some.");
    put_count(p, "due_process_waits", ALL, NULL, p->self.waits != 0);
    put_head(p, "due_process_seen_age_seconds", "gauge",
             "Since this process was last heard of by those it shares the queue with.");
    put_seconds(p, "due_process_seen_age_seconds", ALL, p->self.seen_ns, p->all.now_ns);
    put_head(p, "due_process_changes_unsettled", "gauge", "Changes on their way to the store.");
    put_count(p, "due_process_changes_unsettled", ALL, NULL, p->stats.unsettled);
}

/* ---- All of it ---- */

/* This process, among all of them; one that was struck off meanwhile stays zero. */
static int find_self(struct census_page *p, due_process *some, int64_t timeout_ns)
{
    uint64_t cursor = 0;
    int n;

    while ((n = due_processes(p->q, &cursor, some, PAGE, timeout_ns)) > 0) {
        for (int i = 0; i < n; i++) {
            if (some[i].self) {
                p->self = some[i];
                return 0;
            }
        }
    }
    return n;
}

/* What is too large for the stack of a small thread. */
struct census_gathered {
    struct census_page page;        /* O */
    due_process some[PAGE];         /* O */
    struct due_queue_census each[]; /* O */
};

/* Topics that nobody had named before the census come with the next one. */
static int gather(struct census_gathered *g, int64_t timeout_ns)
{
    struct census_page *p = &g->page;
    int rc = due__census_each(p->q, &p->all, g->each, 0, p->topics, timeout_ns);

    if (rc == 0)
        rc = find_self(p, g->some, timeout_ns);
    return rc == 0 ? due_stats_read(p->q, &p->stats) : rc;
}

int due_census_write(due_queue *q, char *buffer, size_t size, int64_t timeout_ns)
{
    if (due__forked(q))
        return DUE_EFORK;
    if (timeout_ns < 0)
        return DUE_EINVAL;
    uint32_t topics = due__load_acquire(&q->topic_count); /* T1 */
    topics = topics < DUE_METRICS_TOPICS ? topics : DUE_METRICS_TOPICS;
    size_t bytes = sizeof(struct census_gathered) + topics * sizeof(struct due_queue_census);
    struct census_gathered *g = due__alloc_new(&q->alloc, bytes);

    if (g == NULL)
        return DUE_ENOMEM;
    g->page = (struct census_page){
        .text = { .at = buffer, .size = size }, .q = q, .each = g->each, .topics = topics
    };
    bool inside = due__inside_stored(q);
    int rc = gather(g, timeout_ns);
    if (rc == 0) {
        put_queue(&g->page);
        put_process(&g->page);
        rc = g->page.text.len < INT_MAX ? (int)g->page.text.len : INT_MAX;
        if (size > 0)
            buffer[g->page.text.len < size ? g->page.text.len : size - 1] = '\0';
    }
    due__alloc_free(&q->alloc, g, bytes);
    due__inside_end(q, inside);
    return rc;
}
