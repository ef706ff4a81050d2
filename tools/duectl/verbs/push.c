/* push.c - `duectl push`: the lines of a schedule, or one payload, into a stored queue.
 *
 * Lines that have come are stored together, at most CTL_PUT of them: one journey to the store.  An
 * id is printed once its job is stored.
 */
#include "verbs/verbs.h"
#include "due/cron.h"
#include "inspect/owner.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHUNK ((size_t)1 << 16)

static const char usage[] =
    "usage: duectl push [OPTION]... [URL] [FILE]\n"
    "\n"
    "Puts the lines of a schedule into a stored queue, or with --at all of FILE as one job, and\n"
    "prints the id of each once it is stored.  Without FILE it reads standard input.  URL is a "
    "Redis,\n"
    "or the path of a file, which is made; without one it is that of --store, or of the "
    "environment\n"
    "variable DUE_STORE_URL.  The queue must not be in use, unless it is one that many processes\n"
    "share, or its owner does it.\n"
    "\n"
    "  --at TIME        FILE is one payload, whatever its bytes, to be handed out at this time: "
    "from\n"
    "                   now, such as 1h30m or 0s, or a date, such as @2026-12-01T08:00:00Z\n"
    "  --topic NAME     their topic (the default topic, which has no name)\n"
    "  --priority N     0 to 255, higher first among equal times (0)\n"
    "  --key KEY        a unique key: no second job has it\n"
    "  --on-key POLICY  of a job whose key is taken: refuse it; or change the other one: replace,\n"
    "                   earliest, debounce (refuse)\n"
    "  --group NAME     of a group's jobs one runs at a time\n"
    "  --ttl TIME       a job that was not handed out so long after its time is dead\n"
    "                   (what a line says of itself goes before all these)\n"
    "  --zone NAME      the time zone of cron lines that name none (that of TZ)\n"
    "  --json           a line of JSON a job: line, id, deadline\n"
    "  --ack-lines      say \"ack N\" on standard error when line N is stored\n"
    "  --shared         the queue is one that many processes share: so it is made, if there is "
    "none\n"
    "  --control PATH   instead of URL: its owner does it, as `duectl work --control PATH`\n"
    "  --store URL      the same as URL\n"
    "  --queue NAME     which queue (duectl)\n"
    "  --help\n"
    "\n"
    "Exit status: 0 all is stored; 1 a line could not be read, or was refused; 2 wrong usage, or "
    "no\n"
    "such input; 3 no connection, or the queue is somebody else's, or it is full.\n";

/* A line that waits to be stored: its text stands in the bytes. */
struct waiting {
    uint64_t line;
    size_t at, len;
    int64_t at_ns;
    struct ctl_more *more; /* NULL: what the options say */
};

struct push {
    struct ctl_look *look;
    struct ctl_access access;
    struct ctl_input in;
    struct ctl_answers answers;
    due_extra more;
    const char *zone;
    int64_t now_ns; /* when the lines at hand have come */
    struct due__ctl_buffer bytes;
    size_t n;
    struct waiting waiting[CTL_PUT];
    due_spec specs[CTL_PUT];
    due_id ids[CTL_PUT];
    int results[CTL_PUT];
};

/* ---- Stored ---------------------------------------------------------------------------------- */

static void fault(struct push *p, uint64_t line, size_t column, const char *reason)
{
    fprintf(stderr, "%s:%" PRIu64 ":%zu: %s\n", p->in.name, line, column, reason);
    if (p->answers.status < CTL_FAULTS)
        p->answers.status = CTL_FAULTS;
}

static void tell_stored(struct push *p, size_t i)
{
    struct due__ctl_buffer *b = &p->answers.line;
    char id[DUE_ID_TEXT];
    char date[CTL_DUMP_DATE];

    due_id_format(p->ids[i], id);
    if (p->look->json)
        due__ctl_buffer_text(b, "{\"line\":%" PRIu64 ",\"id\":\"%s\",\"deadline\":\"%s\"}\n",
                             p->waiting[i].line, id, ctl_dump_date(date, p->waiting[i].at_ns));
    else
        due__ctl_buffer_text(b, "%s\n", id);
    ctl_answer_line(&p->answers);
    if (p->look->ack_lines && p->answers.status != CTL_BROKEN)
        fprintf(stderr, "ack %" PRIu64 "\n", p->waiting[i].line);
}

/* One whose key is taken names who has it; and one in doubt has an id, by which it can be looked
 * for. */
static void tell_refused(struct push *p, size_t i)
{
    char id[DUE_ID_TEXT];
    char reason[160];
    int rc = p->results[i];

    bool named = rc == DUE_EEXIST || rc == DUE_EINDOUBT;

    snprintf(reason, sizeof reason, "%s%s%s%s",
             rc == DUE_EINDOUBT ? "" : "not stored: ", due_error_text(rc), named ? ": " : "",
             named ? due_id_format(p->ids[i], id) : "");
    fault(p, p->waiting[i].line, 1, reason);
}

/* The spec of what waits. */
static due_spec spec_of(const struct push *p, const struct waiting *w)
{
    const struct ctl_more *m = w->more;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = w->at_ns, .flags = DUE_SPEC_AT, .len = w->len };

    spec.priority = m != NULL && m->has_priority ? m->priority : p->look->push.priority;
    spec.more = m != NULL ? &m->extra : &p->more;
    spec.data = w->len > 0 ? p->bytes.bytes + w->at : NULL;
    return spec;
}

static const char *topic_of(const struct push *p, size_t i)
{
    const struct ctl_more *m = p->waiting[i].more;
    const char *topic = m != NULL && m->topic != NULL ? m->topic : p->look->topic;

    return topic == NULL ? "" : topic;
}

/* Store what waits, as many at a time as are of one topic: 0, or why nothing more can be. */
static int put_all(struct push *p)
{
    size_t end;
    int rc = 0;

    for (size_t i = 0; i < p->n && rc == 0; i = end) {
        const char *topic = topic_of(p, i);

        for (end = i + 1; end < p->n && strcmp(topic_of(p, end), topic) == 0; end++)
            continue;
        rc = p->access.verbs->put(&p->access, topic, p->specs + i, end - i, p->ids + i,
                                  p->results + i);
    }
    return rc;
}

/* Is it there?  A line that comes again may have been put in before. */
static bool is_stored(const struct push *p, size_t i)
{
    const struct ctl_more *m = p->waiting[i].more;

    return p->results[i] == 0 || (p->results[i] == DUE_EEXIST && m != NULL && m->again);
}

static void forget_waiting(struct push *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->waiting[i].more);
    p->n = 0;
    p->bytes.len = 0;
}

/* What waits is stored.  False: nothing more can be. */
static bool flush(struct push *p)
{
    uint64_t first = p->n == 0 ? 0 : p->waiting[0].line;

    for (size_t i = 0; i < p->n; i++) {
        p->specs[i] = spec_of(p, &p->waiting[i]);
        p->results[i] = DUE_ECLOSED;
    }
    memset(p->ids, 0, sizeof p->ids);
    int rc = put_all(p);
    for (size_t i = 0; i < p->n; i++) {
        if (is_stored(p, i))
            tell_stored(p, i);
        else if (p->results[i] != DUE_ECLOSED)
            tell_refused(p, i);
    }
    forget_waiting(p);
    if (rc == DUE_ETIMEDOUT) {
        fprintf(stderr, "duectl: the queue is full: what has no id is not stored\n");
        p->answers.status = CTL_BROKEN;
    } else if (rc != 0) {
        fprintf(stderr, "duectl: from line %" PRIu64 " on it is not sure what is stored: %s\n",
                first, due_error_text(rc));
        p->answers.status = CTL_BROKEN;
    }
    if (fflush(stdout) != 0)
        p->answers.status = CTL_BROKEN;
    return p->answers.status != CTL_BROKEN;
}

static bool put(struct push *p, uint64_t line, const char *text, size_t len, int64_t at_ns,
                struct ctl_more *more)
{
    p->waiting[p->n++] = (struct waiting){
        .line = line, .at = p->bytes.len, .len = len, .at_ns = at_ns, .more = more
    };
    due__ctl_buffer_add(&p->bytes, text, len);
    if (p->bytes.failed) {
        fprintf(stderr, "duectl: %s\n", due_error_text(DUE_ENOMEM));
        p->answers.status = CTL_BROKEN;
        return false;
    }
    return (p->n < CTL_PUT && p->bytes.len < CTL_PUT_BYTES) || flush(p);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static void arrived(void *ctx)
{
    struct push *p = ctx;

    p->now_ns = ctl_at_ns(&(struct ctl_entry){ .kind = CTL_DELAY });
}

static bool paused(void *ctx)
{
    return flush(ctx);
}

/* What the options say of all jobs is said of this one, unless its line does. */
static void add_options(const struct ctl_push *o, struct ctl_fields *f)
{
    const struct {
        const char *text;
        struct ctl_value *value;
    } both[] = { { o->key, &f->key }, { o->group, &f->group } };

    for (size_t i = 0; i < 2; i++) {
        if (both[i].text == NULL || both[i].value->given)
            continue;
        both[i].value->given = true;
        both[i].value->len = strlen(both[i].text);
        memcpy(both[i].value->bytes, both[i].text, both[i].value->len);
    }
    if (f->ttl_ns == 0)
        f->ttl_ns = o->ttl_ns;
}

/* When a line is due for the first time: 0 or an error. */
static int first_time(struct push *p, const struct ctl_entry *entry, int64_t *at_ns)
{
    if (entry->kind == CTL_CRON)
        return due_cron_next(entry->cron,
                             entry->fields.zone.given ? entry->fields.zone.bytes : p->zone,
                             p->now_ns, at_ns);
    if (entry->kind == CTL_DATE)
        *at_ns = ctl_at_ns(entry);
    else if (__builtin_add_overflow(p->now_ns, entry->ns, at_ns))
        *at_ns = DUE_FOREVER;
    return 0;
}

static bool put_line(struct push *p, const struct ctl_line *line, struct ctl_entry *entry)
{
    const char *text = line->bytes + entry->text;
    size_t len = line->len - entry->text;
    struct ctl_more *more = NULL;
    const char *why = NULL;
    int64_t at_ns = 0;
    int rc = first_time(p, entry, &at_ns);

    if (rc == 0 && (entry->fields.any || ctl_comes_again(entry))) {
        add_options(&p->look->push, &entry->fields);
        if (!ctl_more_new(&more, entry, p->zone, text, len, &why)) {
            fault(p, line->number, 1, why);
            return true;
        }
        more->extra.on_key = more->again ? DUE_KEY_REFUSE : p->look->push.on_key;
    }
    if (rc != 0) {
        fault(p, line->number, 1, due_error_text(rc));
        return true;
    }
    return put(p, line->number, text, len, at_ns, more);
}

static bool line_has_come(void *ctx, const struct ctl_line *line)
{
    struct push *p = ctx;
    bool marked =
        line->number == 1 && line->len >= 3 && memcmp(line->bytes, "\xef\xbb\xbf", 3) == 0;
    size_t mark = marked ? 3 : 0;
    struct ctl_entry entry;

    if (line->too_long) {
        fault(p, line->number, CTL_LINE_MAX + 1, "the line is longer than 1048576 bytes");
        return true;
    }
    ctl_entry_read(&entry, line->bytes + mark, line->len - mark);
    if (entry.kind == CTL_NOTHING)
        return true;
    if (entry.kind == CTL_FAULT) {
        fault(p, line->number, mark + entry.column, entry.reason);
        return true;
    }
    entry.text += mark;
    return put_line(p, line, &entry);
}

static void push_lines(struct push *p, int signal_fd)
{
    struct ctl_sink sink = { arrived, line_has_come, paused, p };
    int rc = ctl_lines_read(&p->in, signal_fd, &sink);

    if (rc < 0)
        fault(p, 1, 1, strerror(-rc));
}

/* ---- One payload ----------------------------------------------------------------------------- */

/* All of the input: 0; 1: a signal has come; or -errno. */
static int read_all(struct push *p, int signal_fd)
{
    struct pollfd ready[] = { { .fd = p->in.fd, .events = POLLIN },
                              { .fd = signal_fd, .events = POLLIN } };
    struct due__ctl_buffer *b = &p->bytes;

    for (;;) {
        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            return -errno;
        if (ready[1].revents != 0)
            return 1;
        if (!due__ctl_buffer_grow(b, CHUNK))
            return -ENOMEM;
        ssize_t n = read(p->in.fd, b->bytes + b->len, CHUNK);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        if (n == 0)
            return 0;
        b->len += n > 0 ? (size_t)n : 0;
        if (b->len > DUE_PAYLOAD_MAX)
            return -EFBIG;
    }
}

static void push_whole(struct push *p, int signal_fd, const struct ctl_entry *at)
{
    int rc = read_all(p, signal_fd);

    if (rc < 0)
        fault(p, 1, 1, strerror(-rc));
    if (rc != 0)
        return;
    p->waiting[0] = (struct waiting){ .line = 1, .len = p->bytes.len, .at_ns = ctl_at_ns(at) };
    p->n = 1;
    (void)flush(p);
}

/* ---- The command line ------------------------------------------------------------------------ */

static bool take_at(struct ctl_look *look, const char *value)
{
    look->time = value;
    return true;
}

static bool take_priority(struct ctl_look *look, const char *value)
{
    struct ctl_cursor c = { .text = value, .len = strlen(value) };
    int64_t number = 0;

    if (ctl_digits_read(&c, 9, &number) == 0 || c.at < c.len || number > 255)
        return ctl_look_wrong(look, "--priority takes a number from 0 to 255", value);
    look->push.priority = (int)number;
    return true;
}

static bool take_key(struct ctl_look *look, const char *value)
{
    look->push.key = value;
    return (value[0] != '\0' && strlen(value) <= DUE_KEY_MAX) ||
           ctl_look_wrong(look, "--key takes 1 to 255 bytes", value);
}

static bool take_group(struct ctl_look *look, const char *value)
{
    look->push.group = value;
    return (value[0] != '\0' && strlen(value) <= DUE_KEY_MAX) ||
           ctl_look_wrong(look, "--group takes 1 to 255 bytes", value);
}

static bool take_on_key(struct ctl_look *look, const char *value)
{
    static const char *const names[] = { "refuse", "replace", "earliest", "debounce" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        look->push.on_key = (enum due_key_policy)i;
        if (strcmp(value, names[i]) == 0)
            return true;
    }
    return ctl_look_wrong(look, "--on-key takes refuse, replace, earliest or debounce", value);
}

static bool take_ttl(struct ctl_look *look, const char *value)
{
    struct ctl_cursor c = { .text = value, .len = strlen(value) };

    if (c.len == 0 || !ctl_delay_read(&c, &look->push.ttl_ns) || c.at < c.len ||
        look->push.ttl_ns == 0)
        return ctl_look_wrong(look, "--ttl takes a time such as 1h", value);
    return true;
}

static bool take_zone(struct ctl_look *look, const char *value)
{
    look->push.zone = value;
    return true;
}

static void extra_fill(due_extra *more, const struct ctl_push *push)
{
    *more = (due_extra){ DUE_EXTRA_INIT, .ttl_ns = push->ttl_ns, .on_key = push->on_key };
    more->key = push->key;
    more->key_len = push->key == NULL ? 0 : strlen(push->key);
    more->group = push->group;
    more->group_len = push->group == NULL ? 0 : strlen(push->group);
}

/* With the input open.  A signal that comes while the queue is opened is heard after that. */
static int push_all(struct push *p, int signal_fd, const struct ctl_entry *at)
{
    const char *control = p->look->control;
    int status = control == NULL ? 0 : ctl_owner_reach(control);

    if (status == 0)
        status = ctl_access_open(&p->access, p->look, false);
    if (status != 0)
        return status;
    p->access.stop_fd = signal_fd;
    if (p->look->time != NULL)
        push_whole(p, signal_fd, at);
    else
        push_lines(p, signal_fd);
    int signal = ctl_signal_next(signal_fd);
    return ctl_access_close(&p->access, signal > 0 ? 128 + signal : p->answers.status);
}

static int push_go(struct ctl_look *look)
{
    static struct push p;
    struct ctl_entry at;

    if (look->time != NULL && !ctl_time_read(&at, look->time)) {
        (void)ctl_look_wrong(look, at.reason, look->time);
        return CTL_USAGE;
    }
    if (look->control != NULL && look->shared) {
        (void)ctl_look_wrong(look, "goes without --control", "--shared");
        return CTL_USAGE;
    }
    p.zone = ctl_zone_of(look->push.zone);
    if (p.zone == NULL) {
        (void)ctl_look_wrong(look, "--zone takes the name of a time zone", look->push.zone);
        return CTL_USAGE;
    }
    p.look = look;
    p.answers.look = look;
    extra_fill(&p.more, &look->push);
    if (!ctl_input_open(&p.in, look->push.file))
        return CTL_USAGE;
    int signal_fd = ctl_signals_open();
    int status = signal_fd < 0 ? CTL_BROKEN : push_all(&p, signal_fd, &at);
    if (signal_fd >= 0)
        close(signal_fd);
    ctl_input_close(&p.in);
    forget_waiting(&p);
    due__ctl_buffer_free(&p.bytes);
    due__ctl_buffer_free(&p.answers.line);
    return status;
}

static bool take_ack_lines(struct ctl_look *look, const char *value)
{
    (void)value;
    look->ack_lines = true;
    return true;
}

static bool take_shared(struct ctl_look *look, const char *value)
{
    (void)value;
    look->shared = true;
    return true;
}

static const struct ctl_look_option own[] = {
    { "at", true, take_at, NULL },
    { "topic", true, ctl_take_topic, NULL },
    { "priority", true, take_priority, NULL },
    { "key", true, take_key, NULL },
    { "on-key", true, take_on_key, "refuse replace earliest debounce" },
    { "group", true, take_group, NULL },
    { "ttl", true, take_ttl, NULL },
    { "zone", true, take_zone, NULL },
    { "json", false, ctl_take_json, NULL },
    { "ack-lines", false, take_ack_lines, NULL },
    { "shared", false, take_shared, NULL },
    { "control", true, ctl_take_control, "FILE" },
};

const struct ctl_command ctl_push = { "push", usage, CTL_INPUT, own, sizeof own / sizeof own[0],
                                      push_go };
