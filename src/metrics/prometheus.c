/* prometheus.c - the figures of a queue as text, in the format 0.0.4 of Prometheus.
 *
 * Every line of a family stands together, under its HELP and TYPE.  What is written is figures,
 * the queue's name and topics' names; nothing of jobs, and nothing of how the store is reached.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "due/metrics.h"
#include "metrics/text.h"
#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/queue.h"

/* ---- Lines ---- */

struct page {
    struct due__text text;                /* O */
    due_queue *q;                         /* O */
    const struct due_metrics *m;          /* O */
    const struct due_topic_stats *topics; /* O  of the first ones */
    int topic_count;                      /* O */
    due_histogram *own;                   /* O  room for one topic's */
};

static void put_head(struct page *p, const char *name, const char *type, const char *help)
{
    due__text_add(&p->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Up to the value; @more: a label besides the queue's, or NULL. */
static void put_name(struct page *p, const char *name, const char *suffix, const char *more)
{
    due__text_add(&p->text, "%s%s{queue=\"%s\"%s%s} ", name, suffix, p->q->name,
                  more != NULL ? "," : "", more != NULL ? more : "");
}

/* The same of a topic. */
static void put_topic_name(struct page *p, const char *name, const char *suffix, int topic,
                           const char *more)
{
    due__text_add(&p->text, "%s%s{queue=\"%s\",topic=\"", name, suffix, p->q->name);
    due__text_label(&p->text, due_topic_name(p->q, topic));
    due__text_add(&p->text, "\"%s%s} ", more != NULL ? "," : "", more != NULL ? more : "");
}

static void put_count(struct page *p, uint64_t n)
{
    due__text_add(&p->text, "%" PRIu64 "\n", n);
}

static void put_seconds(struct page *p, int64_t ns)
{
    if (ns == DUE_FOREVER)
        due__text_add(&p->text, "+Inf\n");
    else
        due__text_add(&p->text, "%" PRId64 ".%09" PRId64 "\n", ns / DUE_S(1), ns % DUE_S(1));
}

/* ---- The queue ---- */

/* A figure: where it is, and what stands before it.  Those of one name stand together. */
struct figure {
    const char *name;  /* O */
    const char *type;  /* O */
    const char *help;  /* O */
    const char *label; /* O  or NULL */
    size_t at;         /* O  in struct due_stats, due_store_stats or due_metrics */
};

#define STAT(name, type, help, label, field)                       \
    {                                                              \
        name, type, help, label, offsetof(struct due_stats, field) \
    }

static const struct figure of_queue[] = {
    STAT("due_jobs_enqueued_total", "counter", "Jobs that were put in.", NULL, enqueued),
    STAT("due_jobs_restored_total", "counter", "Jobs that were read from the store.", NULL,
         restored),
    STAT("due_jobs_dequeued_total", "counter", "Jobs handed out for good.", NULL, dequeued),
    STAT("due_jobs_acked_total", "counter", "Jobs that left by an ack.", NULL, acked),
    STAT("due_jobs_nacked_total", "counter", "Times a job was given back.", NULL, nacked),
    STAT("due_jobs_retried_total", "counter", "Times a job waits again after a failure.", NULL,
         retried),
    STAT("due_leases_lapsed_total", "counter", "Leases that ended by themselves.", NULL, lapsed),
    STAT("due_jobs_died_total", "counter", "Times a job died.", NULL, buried),
    STAT("due_jobs_kicked_total", "counter", "Times a dead job came back.", NULL, kicked),
    STAT("due_jobs_repeated_total", "counter", "Rounds of jobs that another one follows.", NULL,
         repeated),
    STAT("due_jobs_cancelled_total", "counter", "Jobs that were cancelled.", NULL, cancelled),
    STAT("due_jobs_discarded_total", "counter", "Jobs discarded by a clear or a close.", NULL,
         discarded),
    STAT("due_enqueues_total", "counter", "Jobs sorted in by their producer, or left to others.",
         "path=\"direct\"", direct),
    STAT("due_enqueues_total", "counter", NULL, "path=\"delegated\"", delegated),
    STAT("due_proxy_calls_total", "counter", "Times the enqueue proxy was called in.", NULL,
         proxy_calls),
    STAT("due_wakeups_total", "counter", "Sleeping threads woken.", NULL, rings),
    STAT("due_heartbeats_total", "counter", "Looks of the worker proxy at everything.", NULL,
         heartbeats),
    STAT("due_heartbeat_finds_total", "counter",
         "What a heartbeat found undone: each is a bug of the library.", NULL, mended),
    STAT("due_lent_jobs", "gauge", "Jobs handed out whose memory is not yet given back.", NULL,
         lent),
    STAT("due_passed_jobs", "gauge", "Jobs that a limit or a group has let through, not ended.",
         NULL, passed),
    STAT("due_kept_back_jobs", "gauge", "Due jobs that a limit or a group keeps back.", NULL,
         kept_back),
    STAT("due_slots", "gauge", "Slots in the timeline and the ready lines, dead ones too.", NULL,
         slots),
    STAT("due_memory_bytes", "gauge", "Address space taken for jobs and slots.", NULL,
         memory_bytes),
    STAT("due_memory_kept_bytes", "gauge", "Memory of payloads kept for the next ones.", NULL,
         kept_bytes),
};

static void put_figures(struct page *p, const struct figure *f, size_t n, const void *from)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value;

        memcpy(&value, (const char *)from + f[i].at, sizeof value);
        if (f[i].help != NULL)
            put_head(p, f[i].name, f[i].type, f[i].help);
        put_name(p, f[i].name, "", f[i].label);
        put_count(p, value);
    }
}

#define METRIC(name, help, field)                                        \
    {                                                                    \
        name, "counter", help, NULL, offsetof(struct due_metrics, field) \
    }

/* Of all topics; where jobs are counted by topic. */
static const struct figure of_all[] = {
    METRIC("due_jobs_delivered_total", "Times a job was handed out, for good or on a lease.",
           delivered),
    METRIC("due_jobs_expired_total", "Times a job died because of its age.", expired),
};

static void put_states(struct page *p)
{
    const struct due_stats *s = &p->m->stats;

    put_head(p, "due_jobs", "gauge", "Jobs held now.");
    put_name(p, "due_jobs", "", "state=\"delayed\"");
    put_count(p, s->waiting > s->ready ? s->waiting - s->ready : 0);
    put_name(p, "due_jobs", "", "state=\"ready\"");
    put_count(p, s->ready);
    put_name(p, "due_jobs", "", "state=\"leased\"");
    put_count(p, s->leased);
    put_name(p, "due_jobs", "", "state=\"dead\"");
    put_count(p, s->dead);
}

/* How long ago, at least 0; if it never was, @never. */
static int64_t age(const struct page *p, int64_t ns, int64_t never, int64_t none)
{
    if (ns == none)
        return never;
    return p->m->now_ns > ns ? p->m->now_ns - ns : 0;
}

static void put_times(struct page *p)
{
    const struct due_metrics *m = p->m;
    int64_t next = m->next_ns > m->now_ns ? m->next_ns - m->now_ns : 0;

    put_head(p, "due_oldest_ready_age_seconds", "gauge",
             "How long the oldest job that is ready has been due; 0 if none is.");
    put_name(p, "due_oldest_ready_age_seconds", "", NULL);
    put_seconds(p, age(p, m->oldest_ns, 0, DUE_FOREVER));
    put_head(p, "due_next_deadline_seconds", "gauge",
             "Until the next deadline; 0 if one has passed, +Inf if there is none.");
    put_name(p, "due_next_deadline_seconds", "", NULL);
    put_seconds(p, m->next_ns == DUE_FOREVER ? DUE_FOREVER : next);
    put_head(p, "due_heartbeat_age_seconds", "gauge",
             "Since the last heartbeat; +Inf if there was none.");
    put_name(p, "due_heartbeat_age_seconds", "", NULL);
    put_seconds(p, age(p, m->heartbeat_ns, DUE_FOREVER, -1));
}

/* ---- Durations ---- */

#define ALL   (-1)
#define EVERY 16u /* of the histogram's buckets one line: a bound for each factor of 4 */

/* Up to the value, of topic @topic, or of the queue (ALL). */
static void put_name_of(struct page *p, const char *name, const char *suffix, int topic,
                        const char *more)
{
    if (topic == ALL)
        put_name(p, name, suffix, more);
    else
        put_topic_name(p, name, suffix, topic, more);
}

static void put_durations(struct page *p, const char *name, int topic, const due_histogram *h)
{
    uint64_t below = 0;
    char le[64];

    for (unsigned b = 0; b < DUE_HISTOGRAM_BUCKETS - 1; b++) {
        int64_t last = due_histogram_bound(b) - 1; /* that belongs to it: le is inclusive */

        below += h->bucket[b];
        if (b % EVERY != EVERY / 2 - 1)
            continue;
        snprintf(le, sizeof le, "le=\"%" PRId64 ".%09" PRId64 "\"", last / DUE_S(1),
                 last % DUE_S(1));
        put_name_of(p, name, "_bucket", topic, le);
        put_count(p, below);
    }
    put_name_of(p, name, "_bucket", topic, "le=\"+Inf\"");
    put_count(p, h->count);
    put_name_of(p, name, "_sum", topic, NULL);
    due__text_add(&p->text, "%" PRIu64 ".%09" PRIu64 "\n", h->sum_ns / (uint64_t)DUE_S(1),
                  h->sum_ns % (uint64_t)DUE_S(1));
    put_name_of(p, name, "_count", topic, NULL);
    put_count(p, h->count);
}

static void put_histogram(struct page *p, const char *name, const char *help,
                          const due_histogram *h)
{
    put_head(p, name, "histogram", help);
    put_durations(p, name, ALL, h);
}

/* Of the first topics that have their own. */
static void put_topic_histogram(struct page *p, const char *name, const char *help, bool held)
{
    uint32_t topics = due__load_acquire(&p->q->topic_count); /* T1 */
    uint32_t shown = 0;

    for (uint32_t i = 0; i < topics && shown < DUE_METRICS_TOPICS; i++) {
        if (!due__topic_measured(due__topic_at(p->q, i), held, p->own))
            continue;
        if (shown++ == 0)
            put_head(p, name, "histogram", help);
        put_durations(p, name, (int)i, p->own);
    }
}

/* ---- The store ---- */

#define STORE(name, help, field)                                             \
    {                                                                        \
        name, "counter", help, NULL, offsetof(struct due_store_stats, field) \
    }

static const struct figure of_store[] = {
    STORE("due_store_batches_total", "Batches that have landed.", batches),
    STORE("due_store_batches_resent_total", "Batches sent again because they had not landed.",
          resent),
    STORE("due_store_connects_total", "Times the store was connected to.", connects),
    STORE("due_store_sent_bytes_total", "Bytes sent to the store.", bytes_out),
    STORE("due_store_received_bytes_total", "Bytes received from the store.", bytes_in),
    STORE("due_store_quarantined_total", "Damaged records set aside.", quarantined),
};

static const struct figure of_changes[] = {
    STAT("due_store_changes_settled_total", "counter",
         "Changes that the store has confirmed or refused.", NULL, settled),
    STAT("due_store_jobs_kept_total", "counter", "Jobs that the close left to the store.", NULL,
         kept),
    STAT("due_store_jobs_mirrored_total", "counter",
         "Jobs put into the store again because it had lost them.", NULL, mirrored),
    STAT("due_store_changes_unsettled", "gauge", "Changes on their way to the store.", NULL,
         unsettled),
    STAT("due_store_unsettled_bytes", "gauge", "Bytes of jobs and updates among those.", NULL,
         unsettled_bytes),
};

static void put_flag(struct page *p, const char *name, const char *help, bool on)
{
    put_head(p, name, "gauge", help);
    put_name(p, name, "", NULL);
    put_count(p, on);
}

static void put_store(struct page *p)
{
    static const char *const levels[] = { "level=\"unknown\"", "level=\"none\"",
                                          "level=\"everysec\"", "level=\"always\"" };
    const struct due_metrics *m = p->m;

    put_flag(p, "due_store_connected", "1: the last call found the store connected.",
             m->store.connected != 0);
    put_flag(p, "due_store_answers", "1: its last answer was no error.", m->stats.store_state == 0);
    put_flag(p, "due_store_loading", "1: stored jobs are still being read.", m->stats.loading != 0);
    put_head(p, "due_store_durability", "gauge", "1: what is confirmed is this durable.");
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        put_name(p, "due_store_durability", "", levels[i]);
        put_count(p, (size_t)m->store.durability == i);
    }
    put_head(p, "due_store_round_trip_seconds", "gauge", "Of the last batch.");
    put_name(p, "due_store_round_trip_seconds", "", NULL);
    put_seconds(p, m->store.round_trip_ns);
    put_figures(p, of_store, sizeof of_store / sizeof of_store[0], &m->store);
    put_figures(p, of_changes, sizeof of_changes / sizeof of_changes[0], &m->stats);
}

/* ---- Topics ---- */

#define OF_TOPIC(name, type, help, label, field)                         \
    {                                                                    \
        name, type, help, label, offsetof(struct due_topic_stats, field) \
    }

static const struct figure of_topic[] = {
    OF_TOPIC("due_topic_jobs", "gauge", "Jobs of the topic held now.", "state=\"delayed\"",
             delayed),
    OF_TOPIC("due_topic_jobs", "gauge", NULL, "state=\"ready\"", ready),
    OF_TOPIC("due_topic_jobs", "gauge", NULL, "state=\"leased\"", leased),
    OF_TOPIC("due_topic_jobs", "gauge", NULL, "state=\"dead\"", dead),
    OF_TOPIC("due_topic_jobs_enqueued_total", "counter", "Jobs that were put in.", NULL, enqueued),
    OF_TOPIC("due_topic_jobs_restored_total", "counter", "Jobs that were read from the store.",
             NULL, restored),
    OF_TOPIC("due_topic_jobs_delivered_total", "counter",
             "Times a job was handed out, for good or on a lease.", NULL, delivered),
    OF_TOPIC("due_topic_jobs_dequeued_total", "counter", "Jobs handed out for good.", NULL,
             dequeued),
    OF_TOPIC("due_topic_jobs_acked_total", "counter", "Jobs that left by an ack.", NULL, acked),
    OF_TOPIC("due_topic_jobs_nacked_total", "counter", "Times a job was given back.", NULL, nacked),
    OF_TOPIC("due_topic_jobs_retried_total", "counter", "Times a job waits again after a failure.",
             NULL, retried),
    OF_TOPIC("due_topic_jobs_died_total", "counter", "Times a job died.", NULL, died),
    OF_TOPIC("due_topic_jobs_expired_total", "counter", "Times a job died because of its age.",
             NULL, expired),
    OF_TOPIC("due_topic_jobs_kicked_total", "counter", "Times a dead job came back.", NULL, kicked),
    OF_TOPIC("due_topic_jobs_cancelled_total", "counter", "Jobs that were cancelled.", NULL,
             cancelled),
    OF_TOPIC("due_topic_jobs_discarded_total", "counter", "Jobs discarded by a clear or a close.",
             NULL, discarded),
    OF_TOPIC("due_topic_jobs_kept_total", "counter", "Jobs that the close left to the store.", NULL,
             kept),
};

/* A topic's value of every figure of one name, then the next topic's. */
static size_t put_topic_family(struct page *p, const struct figure *f, size_t n)
{
    size_t same = 1;

    while (same < n && f[same].help == NULL)
        same++;
    put_head(p, f->name, f->type, f->help);
    for (int i = 0; i < p->topic_count; i++) {
        for (size_t k = 0; k < same; k++) {
            uint64_t value;

            memcpy(&value, (const char *)&p->topics[i] + f[k].at, sizeof value);
            put_topic_name(p, f->name, "", i, f[k].label);
            put_count(p, value);
        }
    }
    return same;
}

static void put_topics(struct page *p)
{
    const size_t n = sizeof of_topic / sizeof of_topic[0];

    for (size_t at = 0; at < n;)
        at += put_topic_family(p, of_topic + at, n - at);
    put_head(p, "due_topic_oldest_ready_age_seconds", "gauge",
             "How long the oldest job of the topic that is ready has been due; 0 if none is.");
    for (int i = 0; i < p->topic_count; i++) {
        put_topic_name(p, "due_topic_oldest_ready_age_seconds", "", i, NULL);
        put_seconds(p, age(p, p->topics[i].oldest_ns, 0, DUE_FOREVER));
    }
    put_topic_histogram(p, "due_topic_lateness_seconds",
                        "From the deadline to the hand-over, of the topic.", false);
    put_topic_histogram(p, "due_topic_handling_seconds",
                        "From a reserve to its answer, of the topic.", true);
}

/* ---- Pools of workers ---- */

#define OF_POOL(name, type, help, label, field)                            \
    {                                                                      \
        name, type, help, label, offsetof(struct due_workers_stats, field) \
    }

static const struct figure of_pool[] = {
    OF_POOL("due_workers_threads", "gauge", "Threads of the pool that have not ended.", NULL,
            threads),
    OF_POOL("due_workers_idle_threads", "gauge", "Of those, the ones that wait for a job.", NULL,
            idle),
    OF_POOL("due_workers_jobs", "gauge", "Jobs that the pool has reserved.", "state=\"running\"",
            running),
    OF_POOL("due_workers_jobs", "gauge", NULL, "state=\"ahead\"", ahead),
    OF_POOL("due_workers_handled_total", "counter", "Handlers that have returned.",
            "result=\"acked\"", acked),
    OF_POOL("due_workers_handled_total", "counter", NULL, "result=\"retried\"", retried),
    OF_POOL("due_workers_handled_total", "counter", NULL, "result=\"buried\"", buried),
    OF_POOL("due_workers_handled_total", "counter", NULL, "result=\"lost\"", lost),
    OF_POOL("due_workers_handled_total", "counter", NULL, "result=\"unanswered\"", unanswered),
    OF_POOL("due_workers_leases_extended_total", "counter", "Times a lease was extended.", NULL,
            extended),
    OF_POOL("due_workers_given_back_total", "counter", "Jobs that were reserved and not begun.",
            NULL, given_back),
};

static void put_pool_value(struct page *p, const struct figure *f, const struct due__row *row)
{
    uint64_t value;

    memcpy(&value, (const char *)&row->sum + f->at, sizeof value);
    due__text_add(&p->text, "%s{queue=\"%s\",pool=\"%s\"", f->name, p->q->name, row->name);
    due__text_add(&p->text, "%s%s} ", f->label != NULL ? "," : "",
                  f->label != NULL ? f->label : "");
    put_count(p, value);
}

/* One after the other, as figures of topics are. */
static void put_pools(struct page *p)
{
    const struct figure *end = of_pool + sizeof of_pool / sizeof of_pool[0];
    struct due__pool_stats *r = &p->q->pool_stats;

    due__lock_acquire(&r->lock);
    due__pool_stats_sum(r);
    for (const struct figure *next, *f = of_pool; r->rows != NULL && f < end; f = next) {
        for (next = f + 1; next < end && next->help == NULL;)
            next++;
        put_head(p, f->name, f->type, f->help);
        for (const struct due__row *row = r->rows; row != NULL; row = row->next) {
            for (const struct figure *of = f; of < next; of++)
                put_pool_value(p, of, row);
        }
    }
    due__lock_release(&r->lock);
}

/* ---- All of it ---- */

static void put_page(struct page *p, uint32_t topics)
{
    put_states(p);
    put_figures(p, of_queue, sizeof of_queue / sizeof of_queue[0], &p->m->stats);
    put_times(p);
    put_head(p, "due_topics", "gauge", "Topics there are.");
    put_name(p, "due_topics", "", NULL);
    put_count(p, topics);
    if (p->topics != NULL) {
        put_figures(p, of_all, sizeof of_all / sizeof of_all[0], p->m);
        put_histogram(p, "due_lateness_seconds", "From the deadline to the hand-over.",
                      &p->m->late);
        put_histogram(p, "due_handling_seconds", "From a reserve to its answer.", &p->m->held);
        put_topics(p);
    }
    put_pools(p);
    if (p->m->stored)
        put_store(p);
    if (p->text.size > 0)
        p->text.at[p->text.len < p->text.size ? p->text.len : p->text.size - 1] = '\0';
}

/* What is too large for the stack of a small thread. */
struct gathered {
    struct due_metrics m;          /* O */
    due_histogram own;             /* O */
    struct due_topic_stats each[]; /* O  of the first topics */
};

static int gather(struct page *p, struct gathered *g, uint32_t shown)
{
    int rc = due_metrics_read(p->q, &g->m);

    if (rc != 0 || p->q->events == NULL || !p->q->events->counts)
        return rc;
    p->topics = g->each;
    p->topic_count = (int)shown;
    return due__topics_figures(p->q, shown, g->each);
}

int due_metrics_write(due_queue *q, char *buffer, size_t size)
{
    if (due__forked(q))
        return DUE_EFORK;
    uint32_t topics = due__load_acquire(&q->topic_count); /* T1 */
    uint32_t shown = topics < DUE_METRICS_TOPICS ? topics : DUE_METRICS_TOPICS;
    size_t bytes = sizeof(struct gathered) + shown * sizeof(struct due_topic_stats);
    struct gathered *g = due__alloc_new(&q->alloc, bytes);

    if (g == NULL)
        return DUE_ENOMEM;
    struct page p = { .text = { .at = buffer, .size = size }, .q = q, .m = &g->m, .own = &g->own };
    bool inside = due__inside_stored(q);
    int rc = gather(&p, g, shown);
    if (rc == 0)
        put_page(&p, topics);
    due__alloc_free(&q->alloc, g, bytes);
    due__inside_end(q, inside);
    if (rc != 0)
        return rc;
    return p.text.len < INT_MAX ? (int)p.text.len : INT_MAX;
}
