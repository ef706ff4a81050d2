/* request.c - a request on a control socket, written and read.
 *
 *     {"verb":"cancel","ids":["ff00...0000","ff00...0000"]}
 *     {"verb":"reschedule","ids":["ff00...0000"],"at_ns":1764576000000000000}
 *     {"verb":"clear","topic":"mail"}
 *     {"verb":"put","topic":"mail","jobs":[{"at_ns":1764576000000000000,"len":5,"key":"k"}]}
 */
#include "verbs/control.h"

#include <inttypes.h>
#include <string.h>

const char *const ctl_request_words[CTL_ASK_VERBS] = { "cancel",     "kick",     "drop",
                                                       "reschedule", "kick_all", "drop_all",
                                                       "clear",      "pause",    "resume",
                                                       "stats",      "metrics",  "put" };

static const char *const policies[] = { "refuse", "replace", "earliest", "debounce" };

static void add_named(struct ctl_buffer *b, const char *name, const void *bytes, size_t len)
{
    if (len == 0)
        return;
    ctl_buffer_text(b, ",\"%s\":", name);
    ctl_dump_bytes(b, bytes, len);
}

static void add_job(struct ctl_buffer *b, const due_spec *spec)
{
    const due_extra *more = spec->more;

    ctl_buffer_text(b, "{\"at_ns\":%" PRId64 ",\"len\":%zu", spec->at_ns, spec->len);
    if (spec->priority != 0)
        ctl_buffer_text(b, ",\"priority\":%d", spec->priority);
    if (more != NULL) {
        add_named(b, "key", more->key, more->key_len);
        if (more->on_key != DUE_KEY_REFUSE)
            ctl_buffer_text(b, ",\"on_key\":\"%s\"", policies[more->on_key]);
        add_named(b, "group", more->group, more->group_len);
        add_named(b, "headers", more->headers, more->headers_len);
        if (more->ttl_ns != 0)
            ctl_buffer_text(b, ",\"ttl_ns\":%" PRId64, more->ttl_ns);
    }
    ctl_buffer_text(b, "}");
}

void ctl_request_write(struct ctl_buffer *b, const struct ctl_request *r)
{
    char id[DUE_ID_TEXT];

    ctl_buffer_text(b, "{\"verb\":\"%s\"", ctl_request_words[r->verb]);
    if (r->has_topic) {
        ctl_buffer_text(b, ",\"topic\":");
        ctl_dump_bytes(b, r->topic, strlen(r->topic));
    }
    if (r->at_ns >= 0)
        ctl_buffer_text(b, ",\"at_ns\":%" PRId64, r->at_ns);
    for (size_t i = 0; i < r->n; i++)
        ctl_buffer_text(b, "%s\"%s\"", i == 0 ? ",\"ids\":[" : ",", due_id_format(r->ids[i], id));
    for (size_t i = 0; i < r->jobs; i++) {
        ctl_buffer_text(b, i == 0 ? ",\"jobs\":[" : ",");
        add_job(b, &r->specs[i]);
    }
    ctl_buffer_text(b, "%s}\n", r->n + r->jobs > 0 ? "]" : "");
}

/* ---- Read ------------------------------------------------------------------------------------ */

static bool is_word(const char *word, const char *text, size_t len)
{
    return strlen(word) == len && memcmp(word, text, len) == 0;
}

static bool read_verb(struct ctl_request *r, struct ctl_json *j)
{
    char *text;
    size_t len;

    if (!ctl_json_string(j, &text, &len))
        return false;
    for (size_t i = 0; i < CTL_ASK_VERBS; i++) {
        r->verb = (enum ctl_request_verb)i;
        if (is_word(ctl_request_words[i], text, len))
            return true;
    }
    return ctl_json_fault(j, "no such verb");
}

static bool read_topic(struct ctl_request *r, struct ctl_json *j)
{
    char *text;
    size_t len;

    if (!ctl_json_bytes(j, &text, &len))
        return false;
    if (len > DUE_TOPIC_LENGTH || memchr(text, '\0', len) != NULL)
        return ctl_json_fault(j, "a topic has at most 255 bytes, and none is zero");
    memcpy(r->topic, text, len);
    r->topic[len] = '\0';
    r->has_topic = true;
    return true;
}

static bool read_id(struct ctl_request *r, struct ctl_json *j)
{
    char text[DUE_ID_TEXT] = "";
    char *at;
    size_t len;

    if (!ctl_json_string(j, &at, &len))
        return false;
    if (r->n == CTL_NAMED)
        return ctl_json_fault(j, "more than 256 ids");
    if (len == sizeof text - 1)
        memcpy(text, at, len);
    if (due_id_parse(text, &r->ids[r->n]) != 0)
        return ctl_json_fault(j, "an id has 32 hexadecimal digits");
    r->n++;
    return true;
}

static bool read_ids(struct ctl_request *r, struct ctl_json *j)
{
    if (!ctl_json_sign(j, '['))
        return false;
    if (ctl_json_is(j, ']'))
        return true;
    do {
        if (!read_id(r, j))
            return false;
    } while (ctl_json_is(j, ','));
    return ctl_json_sign(j, ']');
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static bool read_some(struct ctl_json *j, size_t most, const void **bytes, size_t *len)
{
    char *at;

    if (!ctl_json_bytes(j, &at, len))
        return false;
    *bytes = at;
    return (*len > 0 && *len <= most) ||
           ctl_json_fault(j, "it is empty: leave it out; or it is too long");
}

static bool read_policy(struct ctl_json *j, due_extra *more)
{
    char *text;
    size_t len;

    if (!ctl_json_string(j, &text, &len))
        return false;
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        more->on_key = (enum due_key_policy)i;
        if (is_word(policies[i], text, len))
            return true;
    }
    return ctl_json_fault(j, "no such policy");
}

enum { AT_NS, LEN, PRIORITY, KEY, ON_KEY, GROUP, HEADERS, TTL_NS };

static const char *const job_fields[] = { "at_ns",  "len",   "priority", "key",
                                          "on_key", "group", "headers",  "ttl_ns" };

static bool read_job_value(due_spec *spec, due_extra *more, struct ctl_json *j, unsigned field)
{
    int64_t number = 0;

    switch (field) {
    case AT_NS:
        return ctl_json_number(j, DUE_FOREVER, &spec->at_ns);
    case LEN:
        if (!ctl_json_number(j, DUE_PAYLOAD_MAX, &number))
            return false;
        spec->len = (size_t)number;
        return true;
    case PRIORITY:
        if (!ctl_json_number(j, 255, &number))
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
        return ctl_json_number(j, INT64_MAX, &more->ttl_ns);
    }
}

/* The name of a field, of which each stands at most once, and its colon. */
static bool read_name(struct ctl_json *j, const char *const *names, unsigned n, unsigned *field,
                      unsigned *seen)
{
    char *text;
    size_t len;

    if (!ctl_json_string(j, &text, &len))
        return false;
    *field = 0;
    while (*field < n && !is_word(names[*field], text, len))
        ++*field;
    if (*field == n || (*seen & 1u << *field) != 0)
        return ctl_json_fault(j, "no such field, or twice");
    *seen |= 1u << *field;
    return ctl_json_sign(j, ':');
}

static bool read_job(struct ctl_request *r, struct ctl_json *j)
{
    unsigned seen = 0;
    unsigned field;

    if (r->jobs == CTL_ASKED)
        return ctl_json_fault(j, "more than 32 jobs");
    due_spec *spec = &r->specs[r->jobs];
    due_extra *more = &r->extras[r->jobs++];
    *more = (due_extra){ DUE_EXTRA_INIT };
    *spec = (due_spec){ DUE_SPEC_INIT, .flags = DUE_SPEC_AT, .more = more };
    if (!ctl_json_sign(j, '{'))
        return false;
    do {
        if (!read_name(j, job_fields, sizeof job_fields / sizeof job_fields[0], &field, &seen) ||
            !read_job_value(spec, more, j, field))
            return false;
    } while (ctl_json_is(j, ','));
    if (!ctl_json_sign(j, '}'))
        return false;
    if ((seen & 3) != 3)
        return ctl_json_fault(j, "a job has at_ns and len");
    return ctl_request_body(r) <= DUE_PAYLOAD_MAX ||
           ctl_json_fault(j, "the payloads are longer than 1 GiB together");
}

static bool read_jobs(struct ctl_request *r, struct ctl_json *j)
{
    if (!ctl_json_sign(j, '['))
        return false;
    do {
        if (!read_job(r, j))
            return false;
    } while (ctl_json_is(j, ','));
    return ctl_json_sign(j, ']');
}

size_t ctl_request_body(const struct ctl_request *r)
{
    size_t sum = 0;

    for (size_t i = 0; i < r->jobs; i++)
        sum += r->specs[i].len;
    return sum;
}

/* ---- A request ------------------------------------------------------------------------------- */

static bool read_field(struct ctl_request *r, struct ctl_json *j, unsigned *seen)
{
    static const char *const names[] = { "verb", "topic", "ids", "at_ns", "jobs" };
    unsigned field;

    if (!read_name(j, names, sizeof names / sizeof names[0], &field, seen))
        return false;
    switch (field) {
    case 0:
        return read_verb(r, j);
    case 1:
        return read_topic(r, j);
    case 2:
        return read_ids(r, j);
    case 4:
        return read_jobs(r, j);
    default:
        return ctl_json_number(j, DUE_FOREVER, &r->at_ns);
    }
}

bool ctl_request_read(struct ctl_request *r, struct ctl_json *j)
{
    unsigned seen = 0;

    r->has_topic = false;
    r->at_ns = -1;
    r->n = 0;
    r->jobs = 0;
    r->topic[0] = '\0';
    if (!ctl_json_sign(j, '{'))
        return false;
    do {
        if (!read_field(r, j, &seen))
            return false;
    } while (ctl_json_is(j, ','));
    if (!ctl_json_sign(j, '}') || !ctl_json_end(j))
        return false;
    if ((seen & 1) == 0)
        return ctl_json_fault(j, "no verb");
    if ((r->verb == CTL_ASK_RESCHEDULE) != (r->at_ns >= 0))
        return ctl_json_fault(j, "reschedule, and nothing else, has at_ns");
    if ((r->verb == CTL_ASK_PUT) != (r->jobs > 0))
        return ctl_json_fault(j, "put, and nothing else, has jobs");
    return (r->verb <= CTL_ASK_RESCHEDULE) == ((seen & 4) != 0) ||
           ctl_json_fault(j, "this verb needs ids, or has none");
}

bool ctl_error_of(const char *name, size_t len, int *code)
{
    static const int codes[] = { 0,
#define CTL_ERROR_CODE(name, value, text) DUE_##name,
                                 DUE_ERRORS(CTL_ERROR_CODE)
#undef CTL_ERROR_CODE
    };

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        *code = codes[i];
        if (is_word(due_error_name(codes[i]), name, len))
            return true;
    }
    return false;
}
