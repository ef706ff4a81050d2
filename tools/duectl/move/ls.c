/* ls.c - `duectl ls`: the jobs of a stored queue, a line each. */
#include "move/move.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: duectl ls [OPTION]... [URL]\n"
    "\n"
    "Lists the jobs of a stored queue, which may be in use: id, state, when each is due next (of "
    "a\n"
    "dead one: when it died), topic (- is the default topic), bytes, and the beginning of its "
    "text.\n"
    "They come by topic and time, the dead at the end.  URL is a Redis, or the path of a file; "
    "without\n"
    "one it is that of the environment variable DUE_STORE_URL.\n"
    "\n"
    "  --topic NAME   only those of this topic\n"
    "  --state STATE  only those that are waiting, reserved or dead\n"
    "  --limit N      no more than N\n"
    "  --key KEY      only the one that has this unique key\n"
    "  --control PATH instead of URL: those that its owner tells of, in no order\n"
    "  --json         a line of JSON each, with all that is known of it, as `duectl export` has "
    "it\n"
    "  --store URL    the same as URL\n"
    "  --queue NAME   which queue (duectl)\n"
    "  --help\n"
    "\n"
    "Exit status: 0 listed; 1 some cannot be read, or there is no such queue; 2 wrong usage; 3 no\n"
    "connection, or the server refuses.\n";

struct listing {
    const struct ctl_look *look;
    const struct ctl_form *form;
    struct ctl_paint paint;
    struct due__ctl_buffer line;
    uint64_t shown;
    uint64_t unreadable;
    bool untold; /* one, by its owner */
    bool failed; /* the output, or the memory */
};

/* A job is out on a lease while the store says so; or, where it does not say, while it was handed
 * out more often than given back. */
static bool is_reserved(const due_record *r)
{
    return ctl_lease_of(r) == CTL_LEASED ||
           (ctl_lease_of(r) == CTL_LEASE_UNSAID && r->attempts > r->failures);
}

const char *ctl_state_of(const due_record *r)
{
    return r->cause != 0 ? "dead" : is_reserved(r) ? "reserved" : "waiting";
}

static bool is_wanted(const struct ctl_look *look, const due_record *r)
{
    return (look->topic == NULL || strcmp(look->topic, r->topic) == 0) &&
           (look->state == NULL || strcmp(look->state, ctl_state_of(r)) == 0) &&
           (look->key == NULL ||
            (r->key_len == strlen(look->key) && memcmp(r->key, look->key, r->key_len) == 0));
}

static void add_plain(struct due__ctl_buffer *b, const due_record *r)
{
    char id[DUE_ID_TEXT];
    char date[CTL_DUMP_DATE];
    char topic[2 * CTL_EXCERPT];
    char text[CTL_EXCERPT];
    size_t len = strlen(r->topic);

    due__ctl_buffer_text(b, "%s  %-8s  %-30s  ", due_id_format(r->id, id), ctl_state_of(r),
                         ctl_dump_date(date, r->cause != 0 ? r->died_ns : r->until_ns));
    due__ctl_buffer_text(b, "%-12s  %8zu  ",
                         len == 0 ? "-" : ctl_text_show(topic, sizeof topic, r->topic, len),
                         ctl_length_of(r));
    due__ctl_buffer_text(b, "%s\n",
                         r->len == 0 ? "" : ctl_text_show(text, sizeof text, r->data, r->len));
}

void ctl_dump_listed(struct due__ctl_buffer *b, const due_record *r)
{
    struct due__ctl_buffer rest = { 0 };

    ctl_dump_job(&rest, r);
    due__ctl_buffer_text(b, "{\"state\":\"%s\",", ctl_state_of(r));
    if (ctl_is_cut(r))
        due__ctl_buffer_text(b, "\"bytes\":%zu,", ctl_length_of(r));
    if (rest.len > 0)
        due__ctl_buffer_add(b, rest.bytes + 1, rest.len - 1);
    b->failed = b->failed || rest.failed;
    due__ctl_buffer_free(&rest);
}

static bool put(const struct due__ctl_buffer *line)
{
    return fwrite(line->bytes, 1, line->len, stdout) == line->len;
}

/* The heading goes before the first line. */
static bool paint(struct listing *l, const due_record *r)
{
    enum ctl_colour colour = r->cause != 0 ? CTL_BAD : is_reserved(r) ? CTL_NOTABLE : CTL_PLAIN;

    if (l->shown == 0 && l->paint.terminal &&
        !ctl_paint_line(&l->paint, CTL_HEADING, l->form->heading, strlen(l->form->heading)))
        return false;
    return ctl_paint_line(&l->paint, colour, l->line.bytes, l->line.len);
}

static bool show(void *ctx, due_id id, int rc, const due_record *record)
{
    struct listing *l = ctx;
    char text[DUE_ID_TEXT];

    if (rc != 0 && l->look->control != NULL) { /* its owner says why: nothing is damaged */
        fprintf(stderr, "duectl: job %s: %s\n", due_id_format(id, text), due_error_text(rc));
        l->untold = true;
        return true;
    }
    if (rc != 0) {
        if (l->unreadable++ == 0)
            fprintf(stderr, "duectl: job %s cannot be read: %s\n", due_id_format(id, text),
                    due_error_text(rc));
        return true;
    }
    if (!is_wanted(l->look, record))
        return true;
    l->line.len = 0;
    if (l->look->json)
        ctl_dump_listed(&l->line, record);
    else
        l->form->add(&l->line, record);
    l->failed = l->line.failed || !(l->look->json ? put(&l->line) : paint(l, record));
    l->shown++;
    return !l->failed && l->shown < l->look->limit;
}

int ctl_list(const struct ctl_look *look, const struct ctl_form *form)
{
    struct ctl_look wanted = *look;
    struct listing l = { .look = &wanted, .form = form };

    ctl_paint_open(&l.paint);
    if (wanted.limit == 0)
        wanted.limit = UINT64_MAX;
    int status = ctl_jobs(look, show, &l);
    ctl_urls_forget();
    due__ctl_buffer_free(&l.line);
    if (l.unreadable > 0)
        fprintf(stderr, "duectl: %" PRIu64 " jobs cannot be read: duectl verify says more\n",
                l.unreadable);
    if (fflush(stdout) != 0 || l.failed)
        return CTL_BROKEN;
    return status == 0 && (l.unreadable > 0 || l.untold) ? CTL_FAULTS : status;
}

/* ---- The command line ------------------------------------------------------------------------ */

static bool take_topic(struct ctl_look *look, const char *value)
{
    look->topic = value;
    return true;
}

static bool take_state(struct ctl_look *look, const char *value)
{
    look->state = value;
    return strcmp(value, "waiting") == 0 || strcmp(value, "reserved") == 0 ||
           strcmp(value, "dead") == 0 ||
           ctl_look_wrong(look, "--state takes waiting, reserved or dead", value);
}

static bool take_limit(struct ctl_look *look, const char *value)
{
    struct ctl_cursor c = { .text = value, .len = strlen(value) };
    int64_t limit = 0;

    if (ctl_digits_read(&c, 18, &limit) == 0 || c.at < c.len || limit < 1)
        return ctl_look_wrong(look, "--limit takes a number from 1 on", value);
    look->limit = (uint64_t)limit;
    return true;
}

static bool take_json(struct ctl_look *look, const char *value)
{
    (void)value;
    look->json = true;
    return true;
}

static bool take_control(struct ctl_look *look, const char *value)
{
    look->control = value;
    return value[0] != '\0' || ctl_look_wrong(look, "--control takes a path", "''");
}

static bool take_key(struct ctl_look *look, const char *value)
{
    look->key = value;
    return (value[0] != '\0' && strlen(value) <= DUE_KEY_MAX) ||
           ctl_look_wrong(look, "--key takes 1 to 255 bytes", value);
}

static int ls_go(struct ctl_look *look)
{
    static const struct ctl_form form = {
        "id                                state     due                             topic         "
        "   bytes  text\n",
        add_plain
    };

    return ctl_list(look, &form);
}

static const struct ctl_look_option own[] = {
    { "topic", true, take_topic, NULL }, { "state", true, take_state, "waiting reserved dead" },
    { "limit", true, take_limit, NULL }, { "json", false, take_json, NULL },
    { "key", true, take_key, NULL },     { "control", true, take_control, "FILE" },
};

const struct ctl_command ctl_ls = { "ls", usage, CTL_URL_ONLY, own, 6, ls_go };
