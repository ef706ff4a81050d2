/* page.c - a sample as lines for a terminal, as many as it has.
 *
 * What matters most stands first and is shown on the smallest window: rates, jobs, lateness.  Then
 * come the bars of the lateness, the pools of workers and the topics, each where there is room for
 * it; topics take what is left.
 */
#include "top/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 40, NAME_LEAST = 8, OTHERS = 68, BARS = 9, BAR_WIDTH = 40, FEW_TOPICS = 4 };

struct page {
    const struct ctl_paint *paint;
    const struct top_sample *before, *now;
    int left;  /* lines there is room for */
    int width; /* of the names in a table */
    struct due__ctl_buffer line;
};

static void end_line(struct page *p, enum ctl_colour colour)
{
    if (p->left-- > 0 && !p->line.failed) {
        fputs("\033[K", stdout);
        due__ctl_buffer_text(&p->line, "\n");
        (void)ctl_paint_line(p->paint, colour, p->line.bytes, p->line.len);
    }
    p->line.len = 0;
}

static const char *name_shown(char shown[2 * NAME], const char *name)
{
    return ctl_text_show(shown, 2 * NAME, name[0] == '\0' ? "-" : name,
                         name[0] == '\0' ? 1 : strlen(name));
}

static const char *rate_text(char text[32], bool known, double rate)
{
    if (!known)
        return "-";
    snprintf(text, 32, rate < 1e6 ? "%.1f" : "%.3g", rate);
    return text;
}

static const char *duration_text(char text[CTL_DURATION], int64_t ns)
{
    return ns < 0 ? "-" : ns == DUE_FOREVER ? "long" : ctl_duration(text, ns);
}

/* ---- What is always there -------------------------------------------------------------------- */

static void title(struct page *p)
{
    const struct top_sample *s = p->now;
    char date[CTL_DUMP_DATE];
    char shown[2 * NAME];
    char age[CTL_DURATION];

    ctl_dump_date(date, s->taken_ns);
    due__ctl_buffer_text(&p->line, "duectl top  %s", name_shown(shown, s->queue));
    if (!s->of_store)
        due__ctl_buffer_text(&p->line, "  pid %" PRId64, s->pid);
    due__ctl_buffer_text(&p->line, "  %.19sZ", date);
    if (s->silent)
        due__ctl_buffer_text(&p->line, "  SILENT for %s", ctl_duration(age, s->age_ns));
    if (s->store_state != 0)
        due__ctl_buffer_text(&p->line, "  STORE: %s", due_error_name(s->store_state));
    end_line(p, s->silent || s->store_state != 0 ? CTL_BAD : CTL_HEADING);
}

static void rates(struct page *p)
{
    struct top_rates r = top_rates_of(p->before, p->now, &p->before->all, &p->now->all);
    char a[32], b[32], c[32], d[32];

    rate_text(a, r.known, r.enqueued);
    if (p->now->of_store)
        due__ctl_buffer_text(&p->line, "a second   came %s   left %s   failed %s",
                             rate_text(a, r.known, r.enqueued), rate_text(b, r.known, r.dequeued),
                             rate_text(d, r.known, r.failed));
    else
        due__ctl_buffer_text(&p->line,
                             "a second   enqueued %s   dequeued %s   acked %s   failed %s",
                             rate_text(a, r.known, r.enqueued), rate_text(b, r.known, r.dequeued),
                             rate_text(c, r.known, r.acked), rate_text(d, r.known, r.failed));
    end_line(p, CTL_PLAIN);
}

static void jobs(struct page *p)
{
    const struct top_counts *c = &p->now->all;
    char text[CTL_DURATION];

    due__ctl_buffer_text(&p->line,
                         "jobs       waiting %" PRIu64 "   ready %" PRIu64 "   leased %" PRIu64
                         "   dead %" PRIu64 "   overdue %s",
                         c->waiting, c->ready, c->leased, c->dead,
                         duration_text(text, c->overdue_ns));
    if (p->now->next_ns >= 0)
        due__ctl_buffer_text(&p->line, "   next in %s", duration_text(text, p->now->next_ns));
    end_line(p, c->dead > 0 ? CTL_NOTABLE : CTL_PLAIN);
}

static void quantiles(struct page *p, const char *name, const due_histogram *h)
{
    static const struct {
        const char *name;
        double part;
    } shown[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "max", 1 } };
    char text[CTL_DURATION];

    due__ctl_buffer_text(&p->line, "%-10s", name);
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        due__ctl_buffer_text(
            &p->line, " %s %-9s", shown[i].name,
            duration_text(text, h->count == 0 ? -1 : due_histogram_quantile(h, shown[i].part)));
    due__ctl_buffer_text(&p->line, " of %" PRIu64, h->count);
    end_line(p, CTL_PLAIN);
}

static void lateness(struct page *p)
{
    due_histogram between;

    if (p->now->of_store) {
        quantiles(p, "overdue", &p->now->late);
        return;
    }
    top_late_between(&between, p->before, p->now);
    quantiles(p, "late", &p->now->late);
    quantiles(p, "late now", &between);
}

/* ---- Bars ------------------------------------------------------------------------------------ */

static void bars(struct page *p)
{
    static const struct {
        int64_t below_ns;
        const char *name;
    } rows[BARS] = { { DUE_US(10), "10 us" }, { DUE_US(100), "100 us" }, { DUE_MS(1), "1 ms" },
                     { DUE_MS(10), "10 ms" }, { DUE_MS(100), "100 ms" }, { DUE_S(1), "1 s" },
                     { DUE_S(10), "10 s" },   { DUE_S(60), "1 min" },    { DUE_FOREVER, "more" } };
    uint64_t counts[BARS] = { 0 };
    uint64_t most = 0;
    unsigned row = 0;

    for (unsigned b = 0; b < DUE_HISTOGRAM_BUCKETS; b++) {
        while (row < BARS - 1 &&
               due_histogram_bound(b) > rows[row].below_ns + rows[row].below_ns / 8)
            row++;
        counts[row] += p->now->late.bucket[b];
        most = counts[row] > most ? counts[row] : most;
    }
    for (row = 0; row < BARS; row++) {
        unsigned n = most == 0 ? 0 : (unsigned)((double)counts[row] / (double)most * BAR_WIDTH);

        n += n == 0 && counts[row] > 0;
        due__ctl_buffer_text(&p->line, "%8s %-6s %10" PRIu64 " ", row == BARS - 1 ? "" : "up to",
                             rows[row].name, counts[row]);
        while (n-- > 0 && !p->line.failed)
            due__ctl_buffer_add(&p->line, "#", 1);
        end_line(p, row >= BARS - 3 && counts[row] > 0 ? CTL_NOTABLE : CTL_PLAIN);
    }
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* The pool of that name in the sample before. */
static const struct due_workers_stats *pool_before(const struct top_sample *s, const char *name)
{
    for (uint32_t i = 0; i < s->pools_here; i++) {
        if (strcmp(s->pool[i].name, name) == 0)
            return &s->pool[i].stats;
    }
    return NULL;
}

static void pools(struct page *p)
{
    due__ctl_buffer_text(&p->line, "%-*s %8s %8s %8s %8s %10s %8s", p->width, "workers", "threads",
                         "running", "idle", "ahead", "handled/s", "lost");
    end_line(p, CTL_HEADING);
    for (uint32_t i = 0; i < p->now->pools_here; i++) {
        const struct due_workers_stats *is = &p->now->pool[i].stats;
        const struct due_workers_stats *was = pool_before(p->before, p->now->pool[i].name);
        struct top_counts then = { .acked = was != NULL ? was->handled : 0 };
        struct top_counts now = { .acked = is->handled };
        struct top_rates r = top_rates_of(p->before, p->now, &then, &now);
        char shown[2 * NAME];
        char rate[32];

        due__ctl_buffer_text(
            &p->line, "%-*.*s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %10s %8" PRIu64,
            p->width, p->width, name_shown(shown, p->now->pool[i].name), is->threads, is->running,
            is->idle, is->ahead, rate_text(rate, r.known, r.acked), is->lost);
        end_line(p, CTL_PLAIN);
    }
}

static void topic_line(struct page *p, const struct top_topic *t)
{
    const struct top_counts *c = &t->counts;
    struct top_rates r = top_rates_of(p->before, p->now, top_topic_named(p->before, t->name), c);
    double out = r.dequeued + r.acked;
    char shown[2 * NAME];
    char a[32], b[32], d[32];
    char text[CTL_DURATION];
    bool known = r.known && p->now->measured;

    due__ctl_buffer_text(&p->line, "%-*.*s %8s %8s %7s ", p->width, p->width,
                         name_shown(shown, t->name), rate_text(a, known, r.enqueued),
                         rate_text(b, known, out), rate_text(d, known, r.failed));
    if (p->now->measured)
        due__ctl_buffer_text(&p->line, "%8" PRIu64 " %7" PRIu64 " %6" PRIu64 " %6" PRIu64,
                             c->waiting, c->ready, c->leased, c->dead);
    else
        due__ctl_buffer_text(&p->line, "%8s %7s %6s %6s", "-", "-", "-", "-");
    due__ctl_buffer_text(&p->line, "  %s", duration_text(text, c->overdue_ns));
    end_line(p, c->dead > 0 ? CTL_BAD : CTL_PLAIN);
}

static void topics(struct page *p)
{
    const struct top_sample *s = p->now;

    due__ctl_buffer_text(&p->line, "%-*s %8s %8s %7s %8s %7s %6s %6s  %s", p->width, "topic",
                         "in/s", "out/s", "fail/s", "waiting", "ready", "leased", "dead",
                         "overdue");
    end_line(p, CTL_HEADING);
    for (uint32_t i = 0; i < s->topics_here; i++) {
        uint32_t more = s->topics - i;

        if (p->left == 1 && more > 1) {
            due__ctl_buffer_text(&p->line, "and %" PRIu32 " more", more);
            end_line(p, CTL_PLAIN);
            return;
        }
        topic_line(p, &s->topic[i]);
    }
    if (s->topics > s->topics_here) {
        due__ctl_buffer_text(&p->line, "and %" PRIu32 " more", s->topics - s->topics_here);
        end_line(p, CTL_PLAIN);
    }
}

void top_page(const struct ctl_paint *paint, int rows, const struct top_sample *before,
              const struct top_sample *now)
{
    struct page p = { .paint = paint, .before = before, .now = now, .left = rows - 1 };
    int few = now->topics_here == 0           ? 0
              : now->topics_here < FEW_TOPICS ? 1 + (int)now->topics_here
                                              : 1 + FEW_TOPICS;
    int width = paint->columns - OTHERS;
    int pool_lines = now->pools_here == 0 ? 0 : 1 + (int)now->pools_here;

    p.width = paint->columns == 0 || width > NAME ? NAME : width < NAME_LEAST ? NAME_LEAST : width;
    fputs("\033[H", stdout);
    title(&p);
    rates(&p);
    jobs(&p);
    lateness(&p);
    if (p.left >= BARS + few + pool_lines)
        bars(&p);
    if (pool_lines > 0 && p.left >= pool_lines + (few > 0 ? 2 : 0))
        pools(&p);
    if (now->topics_here > 0 && p.left >= 2)
        topics(&p);
    fputs("\033[J", stdout);
    due__ctl_buffer_free(&p.line);
}
