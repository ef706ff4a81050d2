/* lines.c - a sample as plain lines, or as a line of JSON: docs/duectl.md says what stands there.
 */
#include "top/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Plain ----------------------------------------------------------------------------------- */

static void add_rate(struct due__ctl_buffer *b, const char *name, bool known, double rate)
{
    if (known)
        due__ctl_buffer_text(b, "  %s/s %.1f", name, rate);
    else
        due__ctl_buffer_text(b, "  %s/s -", name);
}

static void add_rates(struct due__ctl_buffer *b, const struct top_sample *s,
                      const struct top_rates *r)
{
    bool known = r->known && s->measured;

    add_rate(b, s->of_store ? "came" : "enqueued", known, r->enqueued);
    add_rate(b, s->of_store ? "left" : "dequeued", known, r->dequeued);
    if (!s->of_store)
        add_rate(b, "acked", known, r->acked);
    add_rate(b, "failed", known, r->failed);
}

static void add_counts(struct due__ctl_buffer *b, const struct top_counts *c)
{
    due__ctl_buffer_text(
        b, "  waiting %" PRIu64 "  ready %" PRIu64 "  leased %" PRIu64 "  dead %" PRIu64,
        c->waiting, c->ready, c->leased, c->dead);
}

static void add_duration(struct due__ctl_buffer *b, const char *name, int64_t ns)
{
    char text[CTL_DURATION];

    due__ctl_buffer_text(b, "  %s %s", name,
                         ns < 0              ? "-"
                         : ns == DUE_FOREVER ? "long"
                                             : ctl_duration(text, ns));
}

static void add_name(struct due__ctl_buffer *b, const char *kind, const char *name)
{
    char shown[2 * CTL_EXCERPT];

    ctl_text_show(shown, sizeof shown, name[0] == '\0' ? "-" : name,
                  name[0] == '\0' ? 1 : strlen(name));
    due__ctl_buffer_text(b, "  %s %s", kind, shown);
}

void top_plain(struct due__ctl_buffer *b, const struct top_sample *before,
               const struct top_sample *now)
{
    struct top_rates r = top_rates_of(before, now, &before->all, &now->all);
    struct top_sample all = { .of_store = now->of_store, .measured = true };
    char date[CTL_DUMP_DATE];

    due__ctl_buffer_text(b, "%.19sZ", ctl_dump_date(date, now->taken_ns));
    add_name(b, "queue", now->queue);
    add_rates(b, &all, &r);
    add_counts(b, &now->all);
    add_duration(b, "overdue", now->all.overdue_ns);
    for (unsigned i = 0; i < 2; i++)
        add_duration(
            b, i == 0 ? "p50" : "p99",
            now->late.count == 0 ? -1 : due_histogram_quantile(&now->late, i == 0 ? 0.5 : 0.99));
    if (now->silent)
        add_duration(b, "silent", now->age_ns);
    due__ctl_buffer_text(b, "\n");
    for (uint32_t i = 0; i < now->pools_here; i++) {
        const struct due_workers_stats *s = &now->pool[i].stats;

        add_name(b, "workers", now->pool[i].name);
        due__ctl_buffer_text(b,
                             "  threads %" PRIu64 "  running %" PRIu64 "  idle %" PRIu64
                             "  ahead %" PRIu64 "  handled %" PRIu64 "  lost %" PRIu64 "\n",
                             s->threads, s->running, s->idle, s->ahead, s->handled, s->lost);
    }
    for (uint32_t i = 0; i < now->topics_here; i++) {
        const struct top_topic *t = &now->topic[i];

        add_name(b, "topic", t->name);
        r = top_rates_of(before, now, top_topic_named(before, t->name), &t->counts);
        add_rates(b, now, &r);
        if (now->measured)
            add_counts(b, &t->counts);
        add_duration(b, "overdue", t->counts.overdue_ns);
        due__ctl_buffer_text(b, "\n");
    }
    if (now->topics > now->topics_here)
        due__ctl_buffer_text(b, "  and %" PRIu32 " topics more\n", now->topics - now->topics_here);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_counts(struct due__ctl_buffer *b, const struct top_sample *s,
                        const struct top_counts *c)
{
    due__ctl_buffer_text(b, "\"%s\":%" PRIu64 ",\"%s\":%" PRIu64, s->of_store ? "came" : "enqueued",
                         c->enqueued, s->of_store ? "left" : "dequeued", c->dequeued);
    if (!s->of_store)
        due__ctl_buffer_text(b, ",\"acked\":%" PRIu64, c->acked);
    due__ctl_buffer_text(b,
                         ",\"failed\":%" PRIu64 ",\"waiting\":%" PRIu64 ",\"ready\":%" PRIu64
                         ",\"leased\":%" PRIu64 ",\"dead\":%" PRIu64,
                         c->failed, c->waiting, c->ready, c->leased, c->dead);
}

static void json_overdue(struct due__ctl_buffer *b, const struct top_counts *c)
{
    if (c->overdue_ns >= 0)
        due__ctl_buffer_text(b, ",\"overdue_ns\":%" PRId64, c->overdue_ns);
}

static void json_rates(struct due__ctl_buffer *b, const struct top_sample *s,
                       const struct top_rates *r)
{
    if (!r->known)
        return;
    due__ctl_buffer_text(b, ",\"rates\":{\"%s\":%.3f,\"%s\":%.3f",
                         s->of_store ? "came" : "enqueued", r->enqueued,
                         s->of_store ? "left" : "dequeued", r->dequeued);
    if (!s->of_store)
        due__ctl_buffer_text(b, ",\"acked\":%.3f", r->acked);
    due__ctl_buffer_text(b, ",\"failed\":%.3f}", r->failed);
}

/* Each bucket that has anything: how many, and what they stay below. */
static void json_histogram(struct due__ctl_buffer *b, const char *name, const due_histogram *h)
{
    const char *between = "";

    due__ctl_buffer_text(b, ",\"%s\":{\"count\":%" PRIu64 ",\"buckets\":[", name, h->count);
    for (unsigned i = 0; i < DUE_HISTOGRAM_BUCKETS; i++) {
        if (h->bucket[i] == 0)
            continue;
        if (due_histogram_bound(i) == DUE_FOREVER)
            due__ctl_buffer_text(b, "%s{\"count\":%" PRIu64 "}", between, h->bucket[i]);
        else
            due__ctl_buffer_text(b, "%s{\"below_ns\":%" PRId64 ",\"count\":%" PRIu64 "}", between,
                                 due_histogram_bound(i), h->bucket[i]);
        between = ",";
    }
    due__ctl_buffer_text(b, "]}");
}

static void json_pools(struct due__ctl_buffer *b, const struct top_sample *s)
{
    due__ctl_buffer_text(b, ",\"workers\":[");
    for (uint32_t i = 0; i < s->pools_here; i++) {
        const struct due_workers_stats *w = &s->pool[i].stats;

        due__ctl_buffer_text(b, "%s{\"name\":", i == 0 ? "" : ",");
        due__ctl_json_put(b, s->pool[i].name, strlen(s->pool[i].name));
        due__ctl_buffer_text(b,
                             ",\"threads\":%" PRIu64 ",\"running\":%" PRIu64 ",\"idle\":%" PRIu64
                             ",\"ahead\":%" PRIu64 ",\"handled\":%" PRIu64 ",\"lost\":%" PRIu64 "}",
                             w->threads, w->running, w->idle, w->ahead, w->handled, w->lost);
    }
    due__ctl_buffer_text(b, "]");
}

static void json_topics(struct due__ctl_buffer *b, const struct top_sample *before,
                        const struct top_sample *now)
{
    due__ctl_buffer_text(b, ",\"topics\":[");
    for (uint32_t i = 0; i < now->topics_here; i++) {
        const struct top_topic *t = &now->topic[i];
        struct top_rates r =
            top_rates_of(before, now, top_topic_named(before, t->name), &t->counts);

        due__ctl_buffer_text(b, "%s{\"topic\":", i == 0 ? "" : ",");
        due__ctl_json_put(b, t->name, strlen(t->name));
        if (now->measured) {
            due__ctl_buffer_text(b, ",");
            json_counts(b, now, &t->counts);
            json_rates(b, now, &r);
        }
        json_overdue(b, &t->counts);
        due__ctl_buffer_text(b, "}");
    }
    due__ctl_buffer_text(b, "]");
    if (now->topics > now->topics_here)
        due__ctl_buffer_text(b, ",\"topics_more\":%" PRIu32, now->topics - now->topics_here);
}

void top_json(struct due__ctl_buffer *b, const struct top_sample *before,
              const struct top_sample *now)
{
    struct top_rates r = top_rates_of(before, now, &before->all, &now->all);
    char date[CTL_DUMP_DATE];

    due__ctl_buffer_text(b, "{\"queue\":");
    due__ctl_json_put(b, now->queue, strlen(now->queue));
    due__ctl_buffer_text(b, ",\"at\":\"%s\"", ctl_dump_date(date, now->taken_ns));
    if (!now->of_store)
        due__ctl_buffer_text(b, ",\"pid\":%" PRId64 ",\"age_ns\":%" PRId64 ",\"state\":\"%s\"",
                             now->pid, now->age_ns,
                             now->closed   ? "closed"
                             : now->silent ? "silent"
                                           : "alive");
    if (now->store_state != 0)
        due__ctl_buffer_text(b, ",\"store\":\"%s\"", due_error_name(now->store_state));
    due__ctl_buffer_text(b, ",");
    json_counts(b, now, &now->all);
    json_overdue(b, &now->all);
    if (now->next_ns >= 0)
        due__ctl_buffer_text(b, ",\"next_in_ns\":%" PRId64, now->next_ns);
    json_rates(b, now, &r);
    if (now->of_store || now->measured)
        json_histogram(b, now->of_store ? "overdue" : "late", &now->late);
    if (!now->of_store)
        json_pools(b, now);
    json_topics(b, before, now);
    due__ctl_buffer_text(b, "}\n");
}
