/* request.c - a request on a control socket, written and read.
 *
 *     {"verb":"cancel","ids":["ff00...0000","ff00...0000"]}
 *     {"verb":"reschedule","ids":["ff00...0000"],"at_ns":1764576000000000000}
 *     {"verb":"clear","topic":"mail"}
 */
#include "verbs/control.h"

#include <inttypes.h>
#include <string.h>

const char *const ctl_request_words[CTL_ASK_VERBS] = { "cancel",     "kick",     "drop",
                                                       "reschedule", "kick_all", "drop_all",
                                                       "clear",      "pause",    "resume",
                                                       "stats",      "metrics" };

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
    ctl_buffer_text(b, "%s}\n", r->n > 0 ? "]" : "");
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

/* A field, of which each stands at most once. */
static bool read_field(struct ctl_request *r, struct ctl_json *j, unsigned *seen)
{
    static const char *const names[] = { "verb", "topic", "ids", "at_ns" };
    unsigned field = 0;
    char *text;
    size_t len;

    if (!ctl_json_string(j, &text, &len))
        return false;
    while (field < sizeof names / sizeof names[0] && !is_word(names[field], text, len))
        field++;
    if (field == sizeof names / sizeof names[0] || (*seen & 1u << field) != 0)
        return ctl_json_fault(j, "no such field, or twice");
    *seen |= 1u << field;
    if (!ctl_json_sign(j, ':'))
        return false;
    switch (field) {
    case 0:
        return read_verb(r, j);
    case 1:
        return read_topic(r, j);
    case 2:
        return read_ids(r, j);
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
