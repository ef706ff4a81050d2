/* live.c - `duectl pause` and `resume`, and `stats` and `metrics` of a control socket.
 *
 * What a queue of one process hands out only that process decides: it is asked.  Of a shared queue
 * it is stored, and any process can say it.
 */
#include "verbs/verbs.h"

#include <stdio.h>
#include <string.h>

#include "inspect/owner.h"

#define COMMON                                                                                 \
    "\n"                                                                                       \
    "  --control PATH  the control socket of the owner: duectl work --control PATH\n"          \
    "  --topic NAME    only this topic\n"                                                      \
    "  --json          a line of JSON\n"                                                       \
    "  --store URL     the same as URL\n"                                                      \
    "  --queue NAME    which queue (duectl)\n"                                                 \
    "  --help\n"                                                                               \
    "\n"                                                                                       \
    "Exit status: 0 it is done; 1 it was refused, or there is no such queue; 2 wrong usage;\n" \
    "3 no connection, or the queue has an owner that was not asked, or does not answer.\n"

static const char usage_pause[] =
    "usage: duectl pause [OPTION]... [URL]\n"
    "\n"
    "The queue hands out no more jobs, to nobody, until `duectl resume`: that is stored with it.\n"
    "Without --topic all topics are meant that there are, but none that is first used later, nor,\n"
    "of a file, one that has no job just now.\n"
    "While a queue that is not shared has an owner, that is asked on its control socket.\n" COMMON;

static const char usage_resume[] =
    "usage: duectl resume [OPTION]... [URL]\n"
    "\n"
    "The queue hands out jobs again.  While one that is not shared has an owner, that is asked on\n"
    "its control socket.\n" COMMON;

/* ---- pause, resume --------------------------------------------------------------------------- */

static int live_go(struct ctl_look *look, const char *done, bool paused)
{
    struct ctl_answers answers = { .look = look, .done = done };
    struct ctl_access access;
    int status = ctl_access_open(&access, look, true);

    if (status != 0)
        return status;
    int rc = paused ? access.verbs->pause(&access, look->topic)
                    : access.verbs->resume(&access, look->topic);
    ctl_answer_all(&answers, rc == 0, rc);
    return ctl_access_close(&access, ctl_answers_end(&answers, 0));
}

static int pause_go(struct ctl_look *look)
{
    return live_go(look, "paused", true);
}

static int resume_go(struct ctl_look *look)
{
    return live_go(look, "resumed", false);
}

static const struct ctl_look_option own[] = { { "control", true, ctl_take_control, "FILE" },
                                              { "topic", true, ctl_take_topic, NULL },
                                              { "json", false, ctl_take_json, NULL } };

const struct ctl_command ctl_pause = { "pause", usage_pause, CTL_URL_ONLY, own, 3, pause_go };
const struct ctl_command ctl_resume = { "resume", usage_resume, CTL_URL_ONLY, own, 3, resume_go };

/* ---- stats, metrics -------------------------------------------------------------------------- */

/* A name and its number or text, as a line. */
static bool say_field(void *ctx, struct due__ctl_json *j, const char *name, size_t len)
{
    struct due__ctl_buffer *b = ctx;
    bool is_text = j->at < j->len && j->line[j->at] == '"';
    bool is_number = j->at < j->len && j->line[j->at] >= '0' && j->line[j->at] <= '9';
    char shown[64];
    size_t text_len;
    int64_t number;
    char *text;

    if (!is_text && !is_number)
        return ctl_owner_pass(j);
    due__ctl_buffer_text(b, "%-10s ", ctl_text_show(shown, sizeof shown, name, len));
    if (is_number && due__ctl_json_number(j, DUE_FOREVER, &number))
        due__ctl_buffer_text(b, "%lld\n", (long long)number);
    else if (is_text && due__ctl_json_string(j, &text, &text_len))
        due__ctl_buffer_text(b, "%s\n", ctl_text_show(shown, sizeof shown, text, text_len));
    else
        return false;
    return true;
}

static bool take_stats(void *ctx, char *line, size_t len)
{
    struct ctl_answers *a = ctx;

    if (!a->look->json)
        return ctl_owner_line(line, len, say_field, &a->line);
    due__ctl_buffer_add(&a->line, line, len);
    due__ctl_buffer_add(&a->line, "\n", 1);
    return true;
}

static bool take_metrics(void *ctx, char *line, size_t len)
{
    struct ctl_answers *a = ctx;
    char *text;
    size_t n;

    if (!ctl_owner_text(line, len, "metrics", &text, &n))
        return false;
    due__ctl_buffer_add(&a->line, text, n);
    return true;
}

bool ctl_live_fits(const struct ctl_look *look)
{
    return look->control == NULL || look->topic == NULL ||
           ctl_look_wrong(look, "goes without --control", "--topic");
}

int ctl_live_show(const struct ctl_look *look, bool metrics)
{
    struct ctl_answers answers = { .look = look };
    struct due__ctl_request request;

    if (!ctl_live_fits(look))
        return CTL_USAGE;
    ctl_owner_begin(&request, look, metrics ? DUE__CTL_METRICS : DUE__CTL_STATS);
    int rc = ctl_owner_ask(look->control, &request, metrics ? take_metrics : take_stats, &answers);
    if (rc == 0)
        ctl_answer_line(&answers);
    else if (rc != DUE_ESTORE) /* that was said */
        fprintf(stderr, "duectl: %s\n", due_error_text(rc));
    due__ctl_buffer_free(&answers.line);
    return fflush(stdout) != 0 || answers.status != 0 ? CTL_BROKEN : ctl_status_of(rc);
}
