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

/* The names and numbers of an object, a line each. */
static bool say_fields(struct due__ctl_buffer *b, struct due__ctl_json *j)
{
    if (!due__ctl_json_sign(j, '{'))
        return false;
    do {
        char shown[64];
        char *name, *text;
        size_t len, text_len;
        int64_t number;

        if (!due__ctl_json_string(j, &name, &len) || !due__ctl_json_sign(j, ':'))
            return false;
        ctl_text_show(shown, sizeof shown, name, len);
        due__ctl_buffer_text(b, "%-10s ", shown);
        if (j->at < j->len && j->line[j->at] == '"') {
            if (!due__ctl_json_string(j, &text, &text_len))
                return false;
            due__ctl_buffer_text(b, "%s\n", ctl_text_show(shown, sizeof shown, text, text_len));
        } else if (due__ctl_json_number(j, DUE_FOREVER, &number)) {
            due__ctl_buffer_text(b, "%lld\n", (long long)number);
        } else {
            return false;
        }
    } while (due__ctl_json_is(j, ','));
    return due__ctl_json_sign(j, '}') && due__ctl_json_end(j);
}

static bool take_stats(void *ctx, char *line, size_t len)
{
    struct ctl_answers *a = ctx;
    struct due__ctl_json j = { .line = line, .len = len };

    if (!a->look->json)
        return say_fields(&a->line, &j);
    due__ctl_buffer_add(&a->line, line, len);
    due__ctl_buffer_add(&a->line, "\n", 1);
    return true;
}

static bool take_metrics(void *ctx, char *line, size_t len)
{
    struct ctl_answers *a = ctx;
    struct due__ctl_json j = { .line = line, .len = len };
    char *text;
    size_t n;

    if (!due__ctl_json_sign(&j, '{') || !due__ctl_json_string(&j, &text, &n) || n != 7 ||
        memcmp(text, "metrics", 7) != 0 || !due__ctl_json_sign(&j, ':') ||
        !due__ctl_json_bytes(&j, &text, &n) || !due__ctl_json_sign(&j, '}'))
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
