/* rounds.c - what a line of a schedule says of its job besides time and text; and lines that come
 * again.
 *
 * A job of such a line is one of a chain.  Its headers begin with a mark and with the line, as far
 * as it says when and how, so whoever has handed it out can put the next one in:
 *
 *     "\1duectl " [key] [group] [ttl] [zone] time "\n" headers of the line
 *
 * The next is put in before this one is acked, under the same key, which it takes over; one that
 * waits already stays.  So whatever is killed in between, one is to come, and not two.  A line
 * without a key has one that is made of all it says: it is put in once, however often it is read.
 */
#include "move/move.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "due/cron.h"

static const char mark[] = "\001duectl ";
enum { MARK = sizeof mark - 1 };

/* ---- Written --------------------------------------------------------------------------------- */

static void add_quoted(struct due__ctl_buffer *b, const char *name, const struct ctl_value *v)
{
    if (!v->given)
        return;
    due__ctl_buffer_text(b, "%s=\"", name);
    for (size_t i = 0; i < v->len; i++) {
        unsigned char c = (unsigned char)v->bytes[i];

        if (c == '"' || c == '\\')
            due__ctl_buffer_text(b, "\\%c", c);
        else if (c < ' ')
            due__ctl_buffer_text(b, "\\x%02x", c);
        else
            due__ctl_buffer_add(b, &v->bytes[i], 1);
    }
    due__ctl_buffer_text(b, "\" ");
}

/* Its key, unless it has one: of what it says, and not of the zone of others. */
static void make_key(struct ctl_entry *e, const struct due__ctl_buffer *line, const char *text,
                     size_t len)
{
    struct ctl_value *key = &e->fields.key;
    const struct ctl_fields *f = &e->fields;
    uint64_t hash[5] = { ctl_hash(line->bytes, line->len), ctl_hash(text, len),
                         ctl_hash(f->topic.bytes, f->topic.len),
                         ctl_hash(f->headers.bytes, f->headers.len), (uint64_t)f->priority };

    if (key->given)
        return;
    key->given = true;
    key->len = (size_t)snprintf(key->bytes, sizeof key->bytes, "duectl:%016" PRIx64,
                                ctl_hash(hash, sizeof hash));
}

static void add_time(struct due__ctl_buffer *b, const struct ctl_entry *e)
{
    if (e->fields.ttl_ns > 0)
        due__ctl_buffer_text(b, "ttl=%" PRId64 "ns ", e->fields.ttl_ns);
    if (e->kind == CTL_EVERY)
        due__ctl_buffer_text(b, "every %" PRId64 "ns", e->ns);
    else
        due__ctl_buffer_text(b, "%s", e->cron);
}

/* Make the headers of a line that comes again.  False: they are too long, or no memory. */
static bool headers_of(struct due__ctl_buffer *b, struct ctl_entry *e, const char *zone,
                       const char *text, size_t len)
{
    struct ctl_value named = e->fields.zone;
    struct due__ctl_buffer alone = { 0 };

    add_quoted(&alone, "group", &e->fields.group);
    add_quoted(&alone, "zone", &named);
    add_time(&alone, e);
    make_key(e, &alone, text, len);
    bool failed = alone.failed;
    due__ctl_buffer_free(&alone);

    if (e->kind == CTL_CRON && !named.given) {
        named.given = true;
        named.len = (size_t)snprintf(named.bytes, sizeof named.bytes, "%s", zone);
    }
    due__ctl_buffer_add(b, mark, MARK);
    add_quoted(b, "key", &e->fields.key);
    add_quoted(b, "group", &e->fields.group);
    add_quoted(b, "zone", &named);
    add_time(b, e);
    due__ctl_buffer_add(b, "\n", 1);
    due__ctl_buffer_add(b, e->fields.headers.bytes, e->fields.headers.len);
    return !failed && !b->failed && b->len <= DUE_HEADERS_MAX;
}

/* All in one piece of memory: the topic's name, key, group, headers. */
static struct ctl_more *pack(const struct ctl_fields *f, const char *headers, size_t headers_len)
{
    size_t topic = f->topic.given ? f->topic.len + 1 : 0;
    struct ctl_more *m = malloc(sizeof *m + topic + f->key.len + f->group.len + headers_len);

    if (m == NULL)
        return NULL;
    char *at = m->bytes;
    *m = (struct ctl_more){ .extra = { DUE_EXTRA_INIT }, .has_priority = f->has_priority };
    m->priority = f->priority;
    m->topic = f->topic.given ? memcpy(at, f->topic.bytes, topic) : NULL;
    at += topic;
    if (f->key.given) {
        m->extra.key = memcpy(at, f->key.bytes, f->key.len);
        m->extra.key_len = f->key.len;
        at += f->key.len;
    }
    if (f->group.given) {
        m->extra.group = memcpy(at, f->group.bytes, f->group.len);
        m->extra.group_len = f->group.len;
        at += f->group.len;
    }
    if (headers_len > 0) {
        m->extra.headers = memcpy(at, headers, headers_len);
        m->extra.headers_len = headers_len;
    }
    return m;
}

bool ctl_more_new(struct ctl_more **more, struct ctl_entry *e, const char *zone, const char *text,
                  size_t len, const char **why)
{
    struct due__ctl_buffer headers = { 0 };
    bool again = ctl_comes_again(e);
    bool named = e->fields.key.given;

    *more = NULL;
    *why = NULL;
    if (!again && !e->fields.any)
        return true;
    if (!again)
        due__ctl_buffer_add(&headers, e->fields.headers.bytes, e->fields.headers.len);
    else if (!headers_of(&headers, e, zone, text, len))
        *why = headers.failed ? due_error_text(DUE_ENOMEM)
                              : "key, group, zone, time and headers of a line that comes again are "
                                "too long together";
    if (*why == NULL) {
        *more = pack(&e->fields, headers.bytes, headers.len);
        if (*more == NULL)
            *why = due_error_text(DUE_ENOMEM);
        else
            (*more)->ttl_ns = e->fields.ttl_ns;
    }
    if (*more != NULL) {
        (*more)->again = again;
        (*more)->named = named;
        (*more)->extra.ttl_ns = again ? 0 : e->fields.ttl_ns;
    }
    due__ctl_buffer_free(&headers);
    return *why == NULL;
}

/* ---- Read ------------------------------------------------------------------------------------ */

bool ctl_round_read(struct ctl_entry *e, const void *headers, size_t len)
{
    char line[DUE_HEADERS_MAX + 2];
    const char *end;

    if (headers == NULL || len < MARK || len > DUE_HEADERS_MAX || memcmp(headers, mark, MARK) != 0)
        return false;
    end = memchr(headers, '\n', len);
    if (end == NULL)
        return false;
    len = (size_t)(end - (const char *)headers) - MARK;
    memcpy(line, (const char *)headers + MARK, len);
    memcpy(line + len, " x", 2); /* for the text */
    ctl_entry_read(e, line, len + 2);
    return ctl_comes_again(e) && e->fields.key.given;
}

int ctl_round_next(const struct ctl_entry *e, int64_t last_ns, int64_t now_ns, int64_t *next_ns)
{
    const char *zone = e->fields.zone.given ? e->fields.zone.bytes : NULL;
    int64_t past;

    if (now_ns < last_ns)
        now_ns = last_ns;
    if (e->kind == CTL_CRON)
        return due_cron_next(e->cron, zone, now_ns, next_ns);
    past = (now_ns - last_ns) % e->ns; /* those that have passed are left out */
    if (__builtin_add_overflow(now_ns, e->ns - past, next_ns))
        *next_ns = DUE_FOREVER;
    return 0;
}

int ctl_round_follow(const due_job *due)
{
    struct ctl_entry e;
    int64_t next;

    if (!ctl_round_read(&e, due->headers, due->headers_len))
        return 0;
    int rc = ctl_round_next(&e, due->deadline_ns, due_now(due->queue), &next);
    if (rc != 0)
        return rc;
    due_extra more = {
        DUE_EXTRA_INIT,          .key = e.fields.key.bytes,       .key_len = e.fields.key.len,
        .headers = due->headers, .headers_len = due->headers_len, .on_key = DUE_KEY_EARLIEST
    };
    due_spec spec = {
        DUE_SPEC_INIT,   .at_ns = next,       .flags = DUE_SPEC_AT,      .data = due->data,
        .len = due->len, .topic = due->topic, .priority = due->priority, .more = &more
    };
    if (e.fields.group.given) {
        more.group = e.fields.group.bytes;
        more.group_len = e.fields.group.len;
    }
    return due_enqueue(due->queue, &spec, DUE_FOREVER, NULL);
}

bool ctl_round_is_over(const due_job *due)
{
    struct ctl_entry e;

    return due->attempts <= 1 && ctl_round_read(&e, due->headers, due->headers_len) &&
           e.fields.ttl_ns > 0 && due->lateness_ns > e.fields.ttl_ns;
}
