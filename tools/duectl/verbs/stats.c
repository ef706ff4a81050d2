/* stats.c - `duectl stats`, and what `metrics` shows: what a stored queue holds, by topic. */
#include "verbs/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: duectl stats [OPTION]... [URL]\n"
    "\n"
    "Says how many jobs of each topic (- is the default topic) wait, are due, are reserved "
    "(handed\n"
    "out more often than given back) and dead; how many bytes they have; for how long the oldest\n"
    "that is due has been so, and when the next will be; of a shared queue also which topics are\n"
    "paused or limited.\n"
    "The queue may be in use: every job is looked at, one after another.  URL is a Redis, or "
    "the\n"
    "path of a file; without one it is that of the environment variable DUE_STORE_URL.\n"
    "\n"
    "  --json         a line of JSON a topic, and one for all\n"
    "  --topic NAME   only this topic\n"
    "  --control PATH instead of URL: what its owner says, as `duectl work --control PATH`\n"
    "  --store URL    the same as URL\n"
    "  --queue NAME   which queue (duectl)\n"
    "  --help\n"
    "\n"
    "Exit status: 0 shown; 1 some cannot be read, or there is no such queue; 2 wrong usage; 3 "
    "no\n"
    "connection, or the server refuses.\n";

/* ---- stats ----------------------------------------------------------------------------------- */

static const char *ago(char text[CTL_DURATION], int64_t from_ns, int64_t to_ns)
{
    return from_ns == DUE_FOREVER || to_ns == DUE_FOREVER ? "-"
                                                          : ctl_duration(text, to_ns - from_ns);
}

static void add_plain(struct due__ctl_buffer *b, const struct ctl_count *c, int64_t now_ns,
                      int width)
{
    char topic[2 * CTL_EXCERPT];
    char overdue[CTL_DURATION];
    char next[CTL_DURATION];
    const char *name = c->topic == NULL ? "(all)" : c->topic[0] == '\0' ? "-" : c->topic;

    ctl_text_show(topic, sizeof topic, name, strlen(name));
    due__ctl_buffer_text(b, "%-*s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %12" PRIu64,
                         width, topic, c->waiting, c->due, c->reserved, c->dead, c->bytes);
    due__ctl_buffer_text(b, "  %-14s %s%s", ago(overdue, c->oldest_ns, now_ns),
                         ago(next, now_ns, c->next_ns), c->paused ? "  paused" : "");
    if (c->limit > 0)
        due__ctl_buffer_text(b, "  limit %" PRIu64, c->limit);
    due__ctl_buffer_add(b, "\n", 1);
}

void ctl_count_dump(struct due__ctl_buffer *b, const struct ctl_count *c, const char *queue)
{
    char date[CTL_DUMP_DATE];

    due__ctl_buffer_text(b, "{\"queue\":\"%s\"", queue);
    if (c->topic != NULL) {
        due__ctl_buffer_text(b, ",\"topic\":");
        due__ctl_json_put(b, c->topic, strlen(c->topic));
    }
    due__ctl_buffer_text(b,
                         ",\"waiting\":%" PRIu64 ",\"due\":%" PRIu64 ",\"reserved\":%" PRIu64
                         ",\"dead\":%" PRIu64 ",\"bytes\":%" PRIu64,
                         c->waiting, c->due, c->reserved, c->dead, c->bytes);
    if (c->oldest_ns != DUE_FOREVER)
        due__ctl_buffer_text(b, ",\"oldest_due\":\"%s\"", ctl_dump_date(date, c->oldest_ns));
    if (c->next_ns != DUE_FOREVER)
        due__ctl_buffer_text(b, ",\"next\":\"%s\"", ctl_dump_date(date, c->next_ns));
    if (c->paused)
        due__ctl_buffer_text(b, ",\"paused\":true");
    if (c->limit > 0)
        due__ctl_buffer_text(b, ",\"limit\":%" PRIu64, c->limit);
    due__ctl_buffer_text(b, "}\n");
}

/* How wide the names of the topics are, as far as that is shown in one column. */
static int name_width(const struct ctl_counted *c)
{
    size_t width = 5;

    for (size_t i = 0; i < c->n; i++) {
        size_t len = strlen(c->topics[i].topic);

        if (len > width)
            width = len < 40 ? len : 40;
    }
    return (int)width;
}

static void add_stats(struct due__ctl_buffer *b, const struct ctl_counted *c,
                      const struct ctl_look *look)
{
    int width = name_width(c);

    if (!look->json)
        due__ctl_buffer_text(b, "%-*s %9s %9s %9s %9s %12s  %-14s %s\n", width, "topic", "waiting",
                             "due", "reserved", "dead", "bytes", "overdue", "next in");
    for (size_t i = 0; i <= c->n; i++) {
        const struct ctl_count *of = i < c->n ? &c->topics[i] : &c->all;

        if (look->json)
            ctl_count_dump(b, of, look->queue);
        else if (i < c->n || c->n != 1)
            add_plain(b, of, c->now_ns, width);
    }
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* In quotes; bytes that are no UTF-8 as the library writes them. */
static void add_label(struct due__ctl_buffer *b, const char *name, const char *text)
{
    due__ctl_buffer_text(b, "%s=\"", name);
    for (; *text != '\0'; text++) {
        size_t n = due__ctl_utf8_length(text, strlen(text));

        if (n == 0)
            due__ctl_buffer_text(b, "\\\\x%02x", (unsigned char)*text);
        else if (*text == '\n')
            due__ctl_buffer_add(b, "\\n", 2);
        else if (*text == '"' || *text == '\\')
            due__ctl_buffer_add(b, (char[]){ '\\', *text }, 2);
        else
            due__ctl_buffer_add(b, text, n);
        text += n == 0 ? 0 : n - 1;
    }
    due__ctl_buffer_add(b, "\"", 1);
}

static void add_head(struct due__ctl_buffer *b, const char *name, const char *help)
{
    due__ctl_buffer_text(b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void add_labels(struct due__ctl_buffer *b, const char *name, const struct ctl_count *c,
                       const char *queue)
{
    due__ctl_buffer_text(b, "%s{queue=\"%s\"", name, queue);
    if (c->topic != NULL) {
        due__ctl_buffer_add(b, ",", 1);
        add_label(b, "topic", c->topic);
    }
}

static void add_jobs(struct due__ctl_buffer *b, const char *name, const struct ctl_count *c,
                     const char *queue)
{
    const struct {
        const char *state;
        uint64_t count;
    } states[] = { { "delayed", c->waiting - c->due },
                   { "ready", c->due },
                   { "leased", c->reserved },
                   { "dead", c->dead } };

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        add_labels(b, name, c, queue);
        due__ctl_buffer_text(b, ",state=\"%s\"} %" PRIu64 "\n", states[i].state, states[i].count);
    }
}

static void add_seconds(struct due__ctl_buffer *b, const char *name, const struct ctl_count *c,
                        const char *queue, int64_t ns)
{
    add_labels(b, name, c, queue);
    if (ns == DUE_FOREVER)
        due__ctl_buffer_text(b, "} +Inf\n");
    else
        due__ctl_buffer_text(b, "} %" PRId64 ".%09d\n", ns / DUE_S(1), (int)(ns % DUE_S(1)));
}

static int64_t age_ns(const struct ctl_counted *all, const struct ctl_count *c)
{
    return c->oldest_ns == DUE_FOREVER ? 0 : all->now_ns - c->oldest_ns;
}

static void add_metrics(struct due__ctl_buffer *b, const struct ctl_counted *c,
                        const struct ctl_look *look)
{
    static const char jobs[] = "due_jobs";
    static const char age[] = "due_oldest_ready_age_seconds";
    static const char next[] = "due_next_deadline_seconds";
    static const char bytes[] = "due_stored_payload_bytes";
    static const char topic_jobs[] = "due_topic_jobs";
    static const char topic_age[] = "due_topic_oldest_ready_age_seconds";
    int64_t next_ns = c->all.next_ns == DUE_FOREVER ? DUE_FOREVER : c->all.next_ns - c->now_ns;

    add_head(b, jobs, "Jobs stored now, by state.");
    add_jobs(b, jobs, &c->all, look->queue);
    add_head(b, age, "How long the oldest job that is ready has been due.");
    add_seconds(b, age, &c->all, look->queue, age_ns(c, &c->all));
    add_head(b, next, "Until the next deadline; 0: one has passed.");
    add_seconds(b, next, &c->all, look->queue, c->all.due > 0 ? 0 : next_ns);
    add_head(b, bytes, "Bytes of the payloads of all jobs stored now.");
    add_labels(b, bytes, &c->all, look->queue);
    due__ctl_buffer_text(b, "} %" PRIu64 "\n", c->all.bytes);
    if (c->n == 0)
        return;
    add_head(b, topic_jobs, "Jobs stored now, by topic and state.");
    for (size_t i = 0; i < c->n; i++)
        add_jobs(b, topic_jobs, &c->topics[i], look->queue);
    add_head(b, topic_age, "How long the oldest job of a topic that is ready has been due.");
    for (size_t i = 0; i < c->n; i++)
        add_seconds(b, topic_age, &c->topics[i], look->queue, age_ns(c, &c->topics[i]));
}

/* ---- The command ----------------------------------------------------------------------------- */

/* On a terminal its lines are cut, the heading stands out, and so do topics with dead jobs. */
static void paint_stats(struct due__ctl_buffer *b, const struct ctl_counted *c)
{
    struct ctl_paint paint;
    size_t from = 0;

    ctl_paint_open(&paint);
    for (size_t line = 0; from < b->len; line++) {
        const char *end = memchr(b->bytes + from, '\n', b->len - from);
        size_t len = (size_t)(end - b->bytes) + 1 - from;
        uint64_t dead = line > 0 && line <= c->n ? c->topics[line - 1].dead : 0;
        enum ctl_colour colour = line == 0 ? CTL_HEADING : dead > 0 ? CTL_BAD : CTL_PLAIN;

        if (!ctl_paint_line(&paint, colour, b->bytes + from, len))
            b->failed = true;
        from += len;
    }
    b->len = 0;
}

static int go(const struct ctl_look *look,
              void (*add)(struct due__ctl_buffer *b, const struct ctl_counted *c,
                          const struct ctl_look *look))
{
    struct ctl_answers out = { .look = look };
    struct ctl_counted counted;

    if (look->control != NULL)
        return ctl_live_show(look, add == add_metrics);
    int status = ctl_count(&counted, look);

    ctl_urls_forget();
    if (status == CTL_FINE || counted.unreadable > 0) {
        add(&out.line, &counted, look);
        if (add == add_stats && !look->json && !out.line.failed)
            paint_stats(&out.line, &counted);
        ctl_answer_line(&out);
    }
    due__ctl_buffer_free(&out.line);
    ctl_count_free(&counted);
    return fflush(stdout) != 0 || out.status != 0 ? CTL_BROKEN : status;
}

static int stats_go(struct ctl_look *look)
{
    return go(look, add_stats);
}

int ctl_metrics_show(const struct ctl_look *look)
{
    return go(look, add_metrics);
}

static const struct ctl_look_option own[] = { { "topic", true, ctl_take_topic, NULL },
                                              { "control", true, ctl_take_control, "FILE" },
                                              { "json", false, ctl_take_json, NULL } };

const struct ctl_command ctl_stats = { "stats", usage, CTL_URL_ONLY, own, 3, stats_go };
