/* processes.c - `duectl ps` and `evict`: who has a queue open, and turning one out. */
#include "verbs/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMON                                                                          \
    "URL is a Redis, or the path of a file; without one it is that of DUE_STORE_URL.\n" \
    "\n"

#define OPTIONS                               \
    "  --store URL    the same as URL\n"      \
    "  --queue NAME   which queue (duectl)\n" \
    "  --help\n"                              \
    "\n"

static const char usage_ps[] =
    "usage: duectl ps [OPTION]... [URL]\n"
    "\n"
    "Lists the processes that have a queue open: number, host and process id, since\n"
    "when, for how long nothing was heard of it, how many jobs it had claimed when it was last "
    "heard\n"
    "of, and whether it waits for jobs.  One that died stays in the list for a day.  Of a queue "
    "that\n"
    "is not shared, as each file, it is the owner, which has no number.\n" COMMON
    "  --json         a line of JSON a process\n"
    "  --control PATH instead of URL: the queues that are asked for there, and whose they "
    "are\n" OPTIONS
    "Exit status: 0 listed, also if there is none; 1 there is no such queue; 2 wrong usage; 3 no\n"
    "connection, or the server refuses, or there is no such file.\n";

static const char usage_evict[] =
    "usage: duectl evict [OPTION]... [URL] NUMBER...\n"
    "\n"
    "Turns processes out of a shared queue, by the numbers that `duectl ps` has: whatever they say "
    "from\n"
    "now on is refused, and nothing more is handed out there.  The jobs that they hold are due "
    "again\n"
    "when their leases end.  It asks before that.\n" COMMON "  --yes          do not ask\n"
    "  --json         what became of each, a line of JSON a process\n" OPTIONS
    "Exit status: 0 all of them; 1 not all, or there is no such queue, or it is not shared, as no "
    "file\n"
    "is; 2 wrong usage; 3 no connection, or the server refuses.\n";

/* ---- ps -------------------------------------------------------------------------------------- */

struct people {
    const struct ctl_look *look;
    struct ctl_paint paint;
    struct due__ctl_buffer line;
    int64_t now_ns;
    uint64_t shown;
    bool failed; /* the output, or the memory */
};

static void add_json(struct due__ctl_buffer *b, const struct ctl_process *p, const char *queue)
{
    char date[CTL_DUMP_DATE];

    due__ctl_buffer_text(b, "{\"queue\":\"%s\"", queue);
    if (p->number != 0)
        due__ctl_buffer_text(b, ",\"number\":%" PRIu64, p->number);
    due__ctl_buffer_text(b, ",\"host\":");
    due__ctl_json_shown(b, p->host, strlen(p->host));
    due__ctl_buffer_text(b, ",\"pid\":%" PRId64, p->pid);
    if (p->number != 0) {
        due__ctl_buffer_text(b, ",\"started\":\"%s\"", ctl_dump_date(date, p->started_ns));
        due__ctl_buffer_text(b, ",\"seen\":\"%s\"", ctl_dump_date(date, p->seen_ns));
        due__ctl_buffer_text(b, ",\"held\":%" PRIu64 ",\"waits\":%s,\"evicted\":%s", p->held,
                             p->waits ? "true" : "false", p->evicted ? "true" : "false");
    }
    due__ctl_buffer_text(b, "}\n");
}

static void add_plain(struct due__ctl_buffer *b, const struct ctl_process *p, int64_t now_ns)
{
    char host[2 * CTL_EXCERPT];
    char since[CTL_DURATION];
    char seen[CTL_DURATION];
    int64_t up_ns = now_ns > p->started_ns ? now_ns - p->started_ns : 0;
    int64_t quiet_ns = now_ns > p->seen_ns ? now_ns - p->seen_ns : 0;

    ctl_text_show(host, sizeof host, p->host, strlen(p->host));
    if (p->number == 0) {
        due__ctl_buffer_text(b, "%-16s %-24s %8" PRId64 "  %-12s %-12s %6s  %s%s\n", "-", host,
                             p->pid, "-", "-", "-", p->queue != NULL ? "has " : "owns it alone",
                             p->queue != NULL ? p->queue : "");
        return;
    }
    due__ctl_buffer_text(b, "%-16" PRIu64 " %-24s %8" PRId64 "  %-12s %-12s %6" PRIu64 "  %s\n",
                         p->number, host, p->pid, ctl_duration(since, up_ns),
                         ctl_duration(seen, quiet_ns), p->held,
                         p->evicted ? "evicted"
                         : p->waits ? "waits"
                                    : "-");
}

static bool show(void *ctx, const struct ctl_process *p)
{
    static const char heading[] =
        "number           host                          pid  up           quiet          held  "
        "state\n";
    struct people *l = ctx;

    if (l->shown++ == 0 && l->paint.terminal && !l->look->json)
        l->failed = !ctl_paint_line(&l->paint, CTL_HEADING, heading, sizeof heading - 1);
    l->line.len = 0;
    if (l->look->json) {
        add_json(&l->line, p, p->queue != NULL ? p->queue : l->look->queue);
        l->failed = l->failed || fwrite(l->line.bytes, 1, l->line.len, stdout) != l->line.len;
    } else {
        add_plain(&l->line, p, l->now_ns);
        l->failed = l->failed || !ctl_paint_line(&l->paint, p->evicted ? CTL_BAD : CTL_PLAIN,
                                                 l->line.bytes, l->line.len);
    }
    l->failed = l->failed || l->line.failed;
    return !l->failed;
}

static int ps_go(struct ctl_look *look)
{
    struct people l = { .look = look };

    l.now_ns = ctl_at_ns(&(struct ctl_entry){ .kind = CTL_DELAY });
    ctl_paint_open(&l.paint);
    int status = ctl_processes(look, show, &l);
    ctl_urls_forget();
    due__ctl_buffer_free(&l.line);
    return fflush(stdout) != 0 || l.failed ? CTL_BROKEN : status;
}

/* ---- evict ----------------------------------------------------------------------------------- */

static void tell_evicted(void *ctx, const char *number, int rc)
{
    struct ctl_answers *a = ctx;

    a->count += rc == 0;
    if (rc != 0) {
        fprintf(stderr, "duectl: %s: no such process: duectl ps says which there are\n", number);
        a->status = CTL_FAULTS;
    }
    if (!a->look->json)
        return;
    due__ctl_buffer_text(&a->line, "{\"number\":%s,\"result\":\"%s\"}\n", number,
                         rc == 0 ? a->done : due_error_name(rc));
    ctl_answer_line(a);
}

static int agree(const struct ctl_look *look)
{
    char what[64];

    snprintf(what, sizeof what, "%zu process%s will be turned out", look->word_count,
             look->word_count == 1 ? "" : "es");
    return ctl_ask_for(look, what);
}

static int evict_go(struct ctl_look *look)
{
    struct ctl_answers answers = { .look = look, .done = "evicted" };

    if (look->word_count == 0) {
        (void)ctl_look_wrong(look, "which process? duectl ps has the numbers", "no number");
        return CTL_USAGE;
    }
    int status = ctl_evict_can(look);
    if (status == 0)
        status = agree(look);
    if (status != 0)
        return status;
    status = ctl_evict_all(look, tell_evicted, &answers);
    ctl_urls_forget();
    return ctl_answers_end(&answers, status);
}

static const struct ctl_look_option of_ps[] = { { "json", false, ctl_take_json, NULL },
                                                { "control", true, ctl_take_control, "FILE" } };
static const struct ctl_look_option of_evict[] = { { "json", false, ctl_take_json, NULL },
                                                   { "yes", false, ctl_take_yes, NULL } };

const struct ctl_command ctl_ps = { "ps", usage_ps, CTL_URL_ONLY, of_ps, 2, ps_go };
const struct ctl_command ctl_evict = { "evict", usage_evict, CTL_NUMBERS, of_evict, 2, evict_go };
