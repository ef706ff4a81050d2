/* show.c - `duectl show`: all that is known of a job. */
#include "verbs/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 4096 }; /* bytes of a text that people are shown */

static const char usage[] =
    "usage: duectl show [OPTION]... [URL] ID...\n"
    "\n"
    "Shows all that is known of jobs of a stored queue, which may be in use.  URL is a Redis, or "
    "the\n"
    "path of a file; without one it is that of the environment variable DUE_STORE_URL.  An ID of - "
    "\n"
    "stands for those on standard input: the first word of each line.\n"
    "\n"
    "  --json         a line of JSON a job, as `duectl ls` has it\n"
    "  --data         only the bytes of its payload, as they are\n"
    "  --control PATH instead of URL: what its owner tells of them\n"
    "  --store URL    the same as URL\n"
    "  --queue NAME   which queue (duectl)\n"
    "  --help\n"
    "\n"
    "Exit status: 0 shown; 1 one is not there, or cannot be read, or there is no such queue; 2 "
    "wrong\n"
    "usage; 3 no connection, or the server refuses.\n";

static void say_bytes(struct due__ctl_buffer *b, const char *name, const void *bytes, size_t len)
{
    char text[SHOWN];

    if (len == 0)
        return;
    ctl_text_show(text, sizeof text, bytes, len);
    due__ctl_buffer_text(b, "%-10s ", name);
    due__ctl_buffer_add(b, text, strlen(text));
    due__ctl_buffer_add(b, "\n", 1);
}

static void say_date(struct due__ctl_buffer *b, const char *name, int64_t ns)
{
    char date[CTL_DUMP_DATE];

    due__ctl_buffer_text(b, "%-10s %s\n", name, ctl_dump_date(date, ns));
}

static void say_for(struct due__ctl_buffer *b, const char *name, int64_t ns)
{
    char text[CTL_DURATION];

    if (ns != 0)
        due__ctl_buffer_text(b, "%-10s %s\n", name, ctl_duration(text, ns));
}

static void say_retry(struct due__ctl_buffer *b, const due_retry *r)
{
    char text[CTL_DURATION];

    if (r == NULL || r->kind == DUE_RETRY_INHERIT)
        return;
    due__ctl_buffer_text(b, "%-10s ", "retry");
    if (r->kind == DUE_RETRY_LADDER) {
        for (uint32_t i = 0; i < r->rungs && i < DUE_RUNGS_MAX; i++)
            due__ctl_buffer_text(b, "%s%s", i == 0 ? "" : ", ", ctl_duration(text, r->rung_ns[i]));
    } else {
        due__ctl_buffer_text(b, "%s%s", r->kind == DUE_RETRY_FIXED ? "" : "at random up to ",
                             ctl_duration(text, r->delay_ns));
        if (r->cap_ns != 0)
            due__ctl_buffer_text(b, ", growing to %s", ctl_duration(text, r->cap_ns));
    }
    if (r->attempts_max > 0)
        due__ctl_buffer_text(b, "; %" PRIu32 " attempts in all", r->attempts_max);
    due__ctl_buffer_text(b, "\n");
}

static void say_death(struct due__ctl_buffer *b, const due_record *r)
{
    static const char *const causes[] = { "", "buried", "attempts used up", "expired" };

    if (r->cause == 0)
        return;
    say_date(b, "died", r->died_ns);
    due__ctl_buffer_text(b, "%-10s %s\n", "cause", causes[r->cause]);
    if (r->reason != NULL)
        say_bytes(b, "reason", r->reason, strnlen(r->reason, DUE_REASON_BYTES - 1));
}

/* Of what only some jobs have only that is said. */
static void add_plain(struct due__ctl_buffer *b, const due_record *r)
{
    char id[DUE_ID_TEXT];

    due__ctl_buffer_text(b, "%-10s %s\n%-10s %s\n", "id", due_id_format(r->id, id), "state",
                         ctl_state_of(r));
    say_bytes(b, "topic", r->topic[0] == '\0' ? "-" : r->topic,
              r->topic[0] == '\0' ? 1 : strlen(r->topic));
    say_date(b, "deadline", r->deadline_ns);
    if (r->until_ns != r->deadline_ns)
        say_date(b, "next", r->until_ns);
    due__ctl_buffer_text(b, "%-10s %d\n", "priority", r->priority);
    if (!ctl_tries_unsaid(r))
        due__ctl_buffer_text(b, "%-10s %" PRIu32 "\n%-10s %" PRIu32 "\n", "attempts", r->attempts,
                             "failures", r->failures);
    say_death(b, r);
    say_bytes(b, "key", r->key, r->key_len);
    say_for(b, "key stays", r->keep_key_ns);
    say_bytes(b, "group", r->group, r->group_len);
    say_retry(b, r->retry);
    say_for(b, "time limit", r->ttl_ns);
    if (r->expires_ns != 0)
        say_date(b, "expires", r->expires_ns);
    say_for(b, "every", r->every_ns);
    say_bytes(b, "headers", r->headers, r->headers_len);
    due__ctl_buffer_text(b, "%-10s %zu\n", "bytes", ctl_length_of(r));
    say_bytes(b, "text", r->data, r->len);
}

/* ---- The command ----------------------------------------------------------------------------- */

struct showing {
    struct ctl_look *look;
    struct ctl_answers answers;
};

static bool show_job(void *ctx, due_id id, int rc, const due_record *record)
{
    struct showing *s = ctx;
    struct due__ctl_buffer *b = &s->answers.line;
    char text[DUE_ID_TEXT];

    if (s->look->control == NULL &&
        (id.byte[DUE_STORE_ID_BYTES] != 0 || id.byte[DUE_STORE_ID_BYTES + 1] != 0))
        rc = DUE_ENOENT; /* a stored one has zeroes there, which are not stored */
    if (rc != 0) {
        fprintf(stderr, "duectl: job %s: %s\n", due_id_format(id, text), due_error_text(rc));
        if (s->answers.status < CTL_FAULTS)
            s->answers.status = CTL_FAULTS;
        return true;
    }
    if (s->look->data && ctl_is_cut(record)) {
        fprintf(stderr, "duectl: job %s: only %zu of its %zu bytes are told\n",
                due_id_format(id, text), record->len, ctl_length_of(record));
        s->answers.status = s->answers.status < CTL_FAULTS ? CTL_FAULTS : s->answers.status;
    }
    if (s->look->data) {
        due__ctl_buffer_add(b, record->data, record->len);
    } else if (s->look->json) {
        ctl_dump_listed(b, record);
    } else {
        due__ctl_buffer_add(b, "\n", s->answers.count > 0);
        add_plain(b, record);
    }
    s->answers.count++;
    ctl_answer_line(&s->answers);
    return s->answers.status != CTL_BROKEN;
}

static int show_ids(void *ctx, const due_id *ids, size_t n)
{
    struct showing *s = ctx;
    int status = ctl_jobs_named(s->look, ids, n, show_job, s);

    return status > s->answers.status ? status : s->answers.status;
}

static int show_go(struct ctl_look *look)
{
    struct showing s = { .look = look, .answers = { .look = look } };

    if (look->word_count == 0) {
        (void)ctl_look_wrong(look, "which job? an id has 32 hexadecimal digits", "no id");
        return CTL_USAGE;
    }
    int status = ctl_ids(look, show_ids, &s);
    ctl_urls_forget();
    due__ctl_buffer_free(&s.answers.line);
    return fflush(stdout) != 0 ? CTL_BROKEN : status;
}

static bool take_data(struct ctl_look *look, const char *value)
{
    (void)value;
    look->data = true;
    return true;
}

static const struct ctl_look_option own[] = { { "json", false, ctl_take_json, NULL },
                                              { "data", false, take_data, NULL },
                                              { "control", true, ctl_take_control, "FILE" } };

const struct ctl_command ctl_show = { "show", usage, CTL_IDS, own, 3, show_go };
