/* jobs.c - the jobs of a request that puts them in, written and read.
 *
 *     [{"at_ns":1764576000000000000,"len":5,"key":"k"},{"delay_ns":0,"len":0}]
 */
#include "wire/request.h"

#include <inttypes.h>
#include <string.h>

static const char *const policies[] = { "refuse", "replace", "earliest", "debounce" };

/* ---- Written --------------------------------------------------------------------------------- */

static void add_named(struct due__ctl_buffer *b, const char *name, const void *bytes, size_t len)
{
    if (len == 0)
        return;
    due__ctl_buffer_text(b, ",\"%s\":", name);
    due__ctl_json_put(b, bytes, len);
}

static void add_job(struct due__ctl_buffer *b, const due_spec *spec)
{
    const due_extra *more = spec->more;
    bool dated = (spec->flags & DUE_SPEC_AT) != 0;

    due__ctl_buffer_text(b, "{\"%s\":%" PRId64 ",\"len\":%zu", dated ? "at_ns" : "delay_ns",
                         dated ? spec->at_ns : spec->delay_ns, spec->len);
    if (spec->priority != 0)
        due__ctl_buffer_text(b, ",\"priority\":%d", spec->priority);
    if (more != NULL) {
        add_named(b, "key", more->key, more->key_len);
        if (more->on_key != DUE_KEY_REFUSE)
            due__ctl_buffer_text(b, ",\"on_key\":\"%s\"", policies[more->on_key]);
        add_named(b, "group", more->group, more->group_len);
        add_named(b, "headers", more->headers, more->headers_len);
        if (more->ttl_ns != 0)
            due__ctl_buffer_text(b, ",\"ttl_ns\":%" PRId64, more->ttl_ns);
    }
    due__ctl_buffer_text(b, "}");
}

void due__ctl_jobs_write(struct due__ctl_buffer *b, const struct due__ctl_request *r)
{
    for (size_t i = 0; i < r->jobs; i++) {
        due__ctl_buffer_text(b, i == 0 ? ",\"jobs\":[" : ",");
        add_job(b, &r->specs[i]);
    }
    due__ctl_buffer_text(b, r->jobs > 0 ? "]" : "");
}

/* ---- Read ------------------------------------------------------------------------------------ */

static bool read_some(struct due__ctl_json *j, size_t most, const void **bytes, size_t *len)
{
    char *at;

    if (!due__ctl_json_bytes(j, &at, len))
        return false;
    *bytes = at;
    return (*len > 0 && *len <= most) ||
           due__ctl_json_fault(j, "it is empty: leave it out; or it is too long");
}

static bool read_policy(struct due__ctl_json *j, due_extra *more)
{
    char *text;
    size_t len;

    if (!due__ctl_json_string(j, &text, &len))
        return false;
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        more->on_key = (enum due_key_policy)i;
        if (due__ctl_is_word(policies[i], text, len))
            return true;
    }
    return due__ctl_json_fault(j, "no such policy");
}

enum { AT_NS, DELAY_NS, LEN, PRIORITY, KEY, ON_KEY, GROUP, HEADERS, TTL_NS };

static const char *const fields[] = { "at_ns",  "delay_ns", "len",     "priority", "key",
                                      "on_key", "group",    "headers", "ttl_ns" };

static bool read_value(due_spec *spec, due_extra *more, struct due__ctl_json *j, unsigned field)
{
    int64_t number = 0;

    switch (field) {
    case AT_NS:
        spec->flags = DUE_SPEC_AT;
        return due__ctl_json_number(j, DUE_FOREVER, &spec->at_ns);
    case DELAY_NS:
        return due__ctl_json_number(j, DUE_FOREVER, &spec->delay_ns);
    case LEN:
        if (!due__ctl_json_number(j, DUE_PAYLOAD_MAX, &number))
            return false;
        spec->len = (size_t)number;
        return true;
    case PRIORITY:
        if (!due__ctl_json_number(j, 255, &number))
            return false;
        spec->priority = (int)number;
        return true;
    case KEY:
        return read_some(j, DUE_KEY_MAX, &more->key, &more->key_len);
    case ON_KEY:
        return read_policy(j, more);
    case GROUP:
        return read_some(j, DUE_KEY_MAX, &more->group, &more->group_len);
    case HEADERS:
        return read_some(j, DUE_HEADERS_MAX, &more->headers, &more->headers_len);
    default:
        return due__ctl_json_number(j, INT64_MAX, &more->ttl_ns);
    }
}

static bool read_job(struct due__ctl_request *r, struct due__ctl_json *j)
{
    unsigned seen = 0;
    unsigned field;

    if (r->jobs == DUE__CTL_JOBS)
        return due__ctl_json_fault(j, "more than 32 jobs");
    due_spec *spec = &r->specs[r->jobs];
    due_extra *more = &r->extras[r->jobs++];
    *more = (due_extra){ DUE_EXTRA_INIT };
    *spec = (due_spec){ DUE_SPEC_INIT, .more = more };
    if (!due__ctl_json_sign(j, '{'))
        return false;
    do {
        if (!due__ctl_field_read(j, fields, sizeof fields / sizeof fields[0], &field, &seen) ||
            !read_value(spec, more, j, field))
            return false;
    } while (due__ctl_json_is(j, ','));
    if (!due__ctl_json_sign(j, '}'))
        return false;
    if ((seen & 1u << LEN) == 0 || ((seen >> AT_NS ^ seen >> DELAY_NS) & 1) == 0)
        return due__ctl_json_fault(j, "a job has at_ns or delay_ns, and len");
    return due__ctl_request_body(r) <= DUE_PAYLOAD_MAX ||
           due__ctl_json_fault(j, "the payloads are longer than 1 GiB together");
}

bool due__ctl_jobs_read(struct due__ctl_request *r, struct due__ctl_json *j)
{
    if (!due__ctl_json_sign(j, '['))
        return false;
    do {
        if (!read_job(r, j))
            return false;
    } while (due__ctl_json_is(j, ','));
    return due__ctl_json_sign(j, ']');
}

size_t due__ctl_request_body(const struct due__ctl_request *r)
{
    size_t sum = 0;

    for (size_t i = 0; i < r->jobs; i++)
        sum += r->specs[i].len;
    return sum;
}
