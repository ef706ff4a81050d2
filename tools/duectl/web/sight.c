/* sight.c - a look: what the queue holds now, and what its owner has counted.
 *
 * A store counts nothing of what comes and goes.  So a look remembers which ids it has seen, as
 * hashes, and the next one compares: who came and went between two looks is not known.  An owner
 * that is asked knows.
 *
 *     {"sample":{"at_ms":...,"took_ms":...,"all":{...},"came":3,"went":1,"over_ms":...,"owner":
 *      {...},"overdue_s":"0.5","late":[["0.001",7],...]}}
 *     {"topic":{...}}             each, as `duectl stats --json` has it
 *     {"oldest":{...}}            the oldest that are due, as `duectl ls --json` has them, cut
 *     {"metrics":"..."}           without a store: the owner's, for the topics
 *     (a zero byte, and the hashes)
 */
#define _GNU_SOURCE
#include "web/web.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OLDEST = 10, SEEN_MAX = 4 << 20 };

struct sight {
    struct ctl_counted counted;
    struct due__ctl_buffer seen;
    size_t jobs;
    struct oldest {
        int64_t until_ns;
        struct due__ctl_buffer line;
    } oldest[OLDEST];
    size_t oldest_count;
};

/* ---- The store ------------------------------------------------------------------------------- */

/* Keep it, if it is among the oldest; they are in order. */
static void note_oldest(struct sight *s, const due_record *r)
{
    size_t at = s->oldest_count;

    if (r->cause != 0 || r->attempts > r->failures || r->until_ns > s->counted.now_ns)
        return;
    if (at == OLDEST && r->until_ns >= s->oldest[OLDEST - 1].until_ns)
        return;
    if (at == OLDEST)
        due__ctl_buffer_free(&s->oldest[--at].line);
    else
        s->oldest_count++;
    for (; at > 0 && s->oldest[at - 1].until_ns > r->until_ns; at--)
        s->oldest[at] = s->oldest[at - 1];
    s->oldest[at] = (struct oldest){ .until_ns = r->until_ns };
    ctl_job_show(&s->oldest[at].line, "oldest", r, CTL_EXCERPT_BYTES);
}

static bool visit_job(void *ctx, due_id id, int rc, const due_record *record)
{
    struct sight *s = ctx;
    uint64_t hash = ctl_hash(id.byte, DUE_STORE_ID_BYTES);

    if (rc != 0) {
        s->counted.unreadable++;
        return true;
    }
    if (s->jobs++ < SEEN_MAX)
        due__ctl_buffer_add(&s->seen, &hash, sizeof hash);
    note_oldest(s, record);
    return ctl_count_job(&s->counted, record);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* How many of the first list are not in the second; both are in order. */
static uint64_t missing(const uint64_t *a, size_t n, const uint64_t *b, size_t m)
{
    uint64_t count = 0;
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        while (at < m && b[at] < a[i])
            at++;
        count += at == m || b[at] != a[i];
    }
    return count;
}

static void add_rates(struct due__ctl_buffer *out, struct sight *s, const struct ctl_seen *last,
                      int64_t now_ns)
{
    uint64_t *seen = (void *)s->seen.bytes;
    size_t n = s->seen.len / sizeof *seen;

    if (n > 0)
        qsort(seen, n, sizeof *seen, by_value);
    if (last->at_ns == 0 || (last->hashes == NULL && last->n > 0))
        return;
    due__ctl_buffer_text(out, ",\"came\":%" PRIu64 ",\"went\":%" PRIu64 ",\"over_ms\":%" PRId64,
                         missing(seen, n, last->hashes, last->n),
                         missing(last->hashes, last->n, seen, n), (now_ns - last->at_ns) / 1000000);
}

static void add_all(struct due__ctl_buffer *out, const struct ctl_counted *c, const char *queue)
{
    due__ctl_buffer_text(out, ",\"unreadable\":%" PRIu64 ",\"all\":", c->unreadable);
    ctl_count_dump(out, &c->all, queue);
    out->len -= out->len > 0; /* its line feed */
}

/* ---- The owner ------------------------------------------------------------------------------- */

static bool take_line(void *ctx, char *line, size_t len)
{
    due__ctl_buffer_add(ctx, line, len);
    return true;
}

static bool begins(const char *line, size_t len, const char *with)
{
    return len >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

/* A number, as Prometheus writes it. */
static void add_number(struct due__ctl_buffer *out, const char *at, size_t len)
{
    static const char known[] = "0123456789.e+-Inf";
    size_t n = 0;

    while (n < len && strchr(known, at[n]) != NULL && at[n] != '\0')
        n++;
    due__ctl_buffer_add(out, at, n);
}

/* name_bucket{queue="q",le="0.001"} 7, of which the label and the value are wanted. */
static void add_bucket(struct due__ctl_buffer *out, const char *line, size_t len, bool *any)
{
    const char *le = memmem(line, len, "le=\"", 4);
    const char *value = memrchr(line, ' ', len);

    if (le == NULL || value == NULL || value < le)
        return;
    due__ctl_buffer_text(out, *any ? ",[\"" : ",\"late\":[[\"");
    add_number(out, le + 4, (size_t)(line + len - le) - 4);
    due__ctl_buffer_text(out, "\",\"");
    add_number(out, value + 1, (size_t)(line + len - value) - 1);
    due__ctl_buffer_text(out, "\"]");
    *any = true;
}

static void add_figures(struct due__ctl_buffer *out, const char *text, size_t len)
{
    const char *end = text + len;
    bool any = false;

    while (text < end) {
        const char *next = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((next == NULL ? end : next) - text);
        const char *value = memrchr(text, ' ', n);

        if (begins(text, n, "due_lateness_seconds_bucket{")) {
            add_bucket(out, text, n, &any);
        } else if (begins(text, n, "due_oldest_ready_age_seconds{") && value != NULL && !any) {
            due__ctl_buffer_text(out, ",\"overdue_s\":\"");
            add_number(out, value + 1, (size_t)(text + n - value) - 1);
            due__ctl_buffer_text(out, "\"");
        }
        text += n + 1;
    }
    due__ctl_buffer_text(out, any ? "]" : "");
}

/* 0, or an exit status: said what went wrong.  @metrics is the line of them. */
static int add_owner(struct due__ctl_buffer *out, const struct ctl_look *look,
                     struct due__ctl_buffer *metrics)
{
    struct due__ctl_buffer line = { 0 };
    struct due__ctl_request request;
    char *text;
    size_t len;

    ctl_owner_begin(&request, look, DUE__CTL_STATS);
    int rc = ctl_owner_ask(look->control, &request, take_line, &line);

    if (rc == 0) {
        due__ctl_buffer_text(out, ",\"owner\":");
        due__ctl_buffer_add(out, line.bytes, line.len);
        line.len = 0;
        request.verb = DUE__CTL_METRICS;
        rc = ctl_owner_ask(look->control, &request, take_line, &line);
        due__ctl_buffer_add(metrics, line.bytes, line.len);
    }
    if (rc == 0 && ctl_owner_text(line.bytes, line.len, "metrics", &text, &len))
        add_figures(out, text, len);
    due__ctl_buffer_free(&line);
    return rc == 0 ? CTL_FINE : CTL_BROKEN;
}

/* ---- The look -------------------------------------------------------------------------------- */

static void add_rest(struct due__ctl_buffer *out, const struct sight *s, const char *queue)
{
    for (size_t i = 0; i < s->counted.n; i++) {
        due__ctl_buffer_text(out, "{\"topic\":");
        ctl_count_dump(out, &s->counted.topics[i], queue);
        out->len -= out->len > 0;
        due__ctl_buffer_text(out, "}\n");
    }
    for (size_t i = 0; i < s->oldest_count; i++)
        due__ctl_buffer_add(out, s->oldest[i].line.bytes, s->oldest[i].line.len);
}

static int64_t wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * (int64_t)1000 + now.tv_nsec / 1000000;
}

/* It ends with its process, which gives the memory back. */
int ctl_sight(const struct ctl_look *look, const void *ctx, struct due__ctl_buffer *out)
{
    static struct sight s;
    struct due__ctl_buffer metrics = { 0 };
    int64_t began_ns = ctl_web_now();
    int status = CTL_FINE;
    int owner = CTL_FINE;

    ctl_count_open(&s.counted);
    if (look->url != NULL)
        status = ctl_jobs(look, visit_job, &s);
    if (status > CTL_FINE || s.counted.failed)
        return s.counted.failed ? CTL_BROKEN : status;
    ctl_count_sort(&s.counted);
    due__ctl_buffer_text(out, "{\"sample\":{\"at_ms\":%" PRId64, wall_ms());
    if (look->url != NULL) {
        add_all(out, &s.counted, look->queue);
        add_rates(out, &s, ctx, ctl_web_now());
    }
    if (look->control != NULL)
        owner = add_owner(out, look, &metrics);
    if (look->url == NULL && owner != CTL_FINE)
        return owner;
    due__ctl_buffer_text(out, ",\"took_ms\":%" PRId64 "}}\n", (ctl_web_now() - began_ns) / 1000000);
    add_rest(out, &s, look->queue);
    if (look->url == NULL && metrics.len > 0) {
        due__ctl_buffer_add(out, metrics.bytes, metrics.len);
        due__ctl_buffer_add(out, "\n", 1);
    }
    due__ctl_buffer_add(out, "", 1);
    if (s.jobs <= SEEN_MAX && s.seen.len > 0)
        due__ctl_buffer_add(out, s.seen.bytes, s.seen.len);
    return owner;
}
