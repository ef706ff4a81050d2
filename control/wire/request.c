/* request.c - a request on a control socket, written and read.
 *
 *     {"verb":"cancel","ids":["ff00...0000","ff00...0000"]}
 *     {"verb":"reschedule","ids":["ff00...0000"],"at_ns":1764576000000000000}
 *     {"verb":"clear","queue":"mail","topic":"newsletter"}
 *     {"verb":"list","cursor":"1f","max":100,"data":60}
 *     {"verb":"put","topic":"mail","jobs":[{"at_ns":1764576000000000000,"len":5,"key":"k"}]}
 */
#include "wire/request.h"

#include <inttypes.h>
#include <string.h>

enum { VERB, QUEUE, TOPIC, IDS, AT_NS, DELAY_NS, JOBS, CURSOR, MAX, DATA, KEY };

static const char *const fields[] = { "verb", "queue",  "topic", "ids",  "at_ns", "delay_ns",
                                      "jobs", "cursor", "max",   "data", "key" };

#define BIT(field) (1u << (field))
#define TIME       (BIT(AT_NS) | BIT(DELAY_NS))
#define PAGE       (BIT(CURSOR) | BIT(MAX) | BIT(DATA))

/* What a verb has besides its queue: of @needs exactly one each, and perhaps @may. */
static const struct {
    const char *word;
    unsigned needs, or_needs; /* one field of each, where there is any */
    unsigned may;
} verbs[DUE__CTL_VERBS] = {
    [DUE__CTL_CANCEL] = { "cancel", BIT(IDS), 0, 0 },
    [DUE__CTL_KICK] = { "kick", BIT(IDS), 0, 0 },
    [DUE__CTL_DROP] = { "drop", BIT(IDS), 0, 0 },
    [DUE__CTL_PROMOTE] = { "promote", BIT(IDS), 0, 0 },
    [DUE__CTL_RESCHEDULE] = { "reschedule", BIT(IDS), TIME, 0 },
    [DUE__CTL_KICK_ALL] = { "kick_all", 0, 0, BIT(TOPIC) },
    [DUE__CTL_DROP_ALL] = { "drop_all", 0, 0, BIT(TOPIC) },
    [DUE__CTL_CLEAR] = { "clear", 0, 0, BIT(TOPIC) },
    [DUE__CTL_PAUSE] = { "pause", 0, 0, BIT(TOPIC) },
    [DUE__CTL_RESUME] = { "resume", 0, 0, BIT(TOPIC) },
    [DUE__CTL_PUT] = { "put", BIT(JOBS), 0, BIT(TOPIC) },
    [DUE__CTL_SHOW] = { "show", BIT(IDS) | BIT(KEY), 0, BIT(DATA) },
    [DUE__CTL_LIST] = { "list", 0, 0, PAGE },
    [DUE__CTL_DEAD] = { "dead", 0, 0, PAGE },
    [DUE__CTL_STATS] = { "stats", 0, 0, 0 },
    [DUE__CTL_METRICS] = { "metrics", 0, 0, 0 },
    [DUE__CTL_QUEUES] = { "queues", 0, 0, 0 },
};

bool due__ctl_changes(enum due__ctl_verb verb)
{
    return verb < DUE__CTL_SHOW;
}

/* ---- Written --------------------------------------------------------------------------------- */

void due__ctl_request_begin(struct due__ctl_request *r, enum due__ctl_verb verb)
{
    r->verb = verb;
    r->has_topic = false;
    r->topic[0] = '\0';
    r->queue[0] = '\0';
    r->at_ns = -1;
    r->delay_ns = -1;
    r->n = 0;
    r->key_len = 0;
    r->cursor = 0;
    r->max = -1;
    r->data = -1;
    r->jobs = 0;
}

void due__ctl_request_of_topic(struct due__ctl_request *r, const char *topic)
{
    size_t len = topic == NULL ? 0 : strnlen(topic, DUE_TOPIC_LENGTH);

    r->has_topic = topic != NULL;
    if (len > 0)
        memcpy(r->topic, topic, len);
    r->topic[len] = '\0';
}

static void add_number(struct due__ctl_buffer *b, const char *name, int64_t value)
{
    if (value >= 0)
        due__ctl_buffer_text(b, ",\"%s\":%" PRId64, name, value);
}

static void add_ids(struct due__ctl_buffer *b, const struct due__ctl_request *r)
{
    char id[DUE_ID_TEXT];

    for (size_t i = 0; i < r->n; i++)
        due__ctl_buffer_text(b, "%s\"%s\"", i == 0 ? ",\"ids\":[" : ",",
                             due_id_format(r->ids[i], id));
    due__ctl_buffer_text(b, r->n > 0 ? "]" : "");
}

void due__ctl_request_write(struct due__ctl_buffer *b, const struct due__ctl_request *r)
{
    due__ctl_buffer_text(b, "{\"verb\":\"%s\"", verbs[r->verb].word);
    if (r->queue[0] != '\0')
        due__ctl_buffer_text(b, ",\"queue\":\"%s\"", r->queue);
    if (r->has_topic) {
        due__ctl_buffer_text(b, ",\"topic\":");
        due__ctl_json_put(b, r->topic, strlen(r->topic));
    }
    if (r->key_len > 0) {
        due__ctl_buffer_text(b, ",\"key\":");
        due__ctl_json_put(b, r->key, r->key_len);
    }
    add_number(b, "at_ns", r->at_ns);
    add_number(b, "delay_ns", r->delay_ns);
    if (r->cursor != 0)
        due__ctl_buffer_text(b, ",\"cursor\":\"%" PRIx64 "\"", r->cursor);
    add_number(b, "max", r->max);
    add_number(b, "data", r->data);
    add_ids(b, r);
    due__ctl_jobs_write(b, r);
    due__ctl_buffer_text(b, "}\n");
}

/* ---- Read ------------------------------------------------------------------------------------ */

bool due__ctl_is_word(const char *word, const char *text, size_t len)
{
    return strlen(word) == len && memcmp(word, text, len) == 0;
}

bool due__ctl_field_read(struct due__ctl_json *j, const char *const *names, unsigned n,
                         unsigned *field, unsigned *seen)
{
    char *text;
    size_t len;

    if (!due__ctl_json_string(j, &text, &len))
        return false;
    *field = 0;
    while (*field < n && !due__ctl_is_word(names[*field], text, len))
        ++*field;
    if (*field == n || (*seen & BIT(*field)) != 0)
        return due__ctl_json_fault(j, "no such field, or twice");
    *seen |= BIT(*field);
    return due__ctl_json_sign(j, ':');
}

static bool read_verb(struct due__ctl_request *r, struct due__ctl_json *j)
{
    char *text;
    size_t len;

    if (!due__ctl_json_string(j, &text, &len))
        return false;
    for (size_t i = 0; i < DUE__CTL_VERBS; i++) {
        r->verb = (enum due__ctl_verb)i;
        if (due__ctl_is_word(verbs[i].word, text, len))
            return true;
    }
    return due__ctl_json_fault(j, "no such verb");
}

static bool read_queue(struct due__ctl_request *r, struct due__ctl_json *j)
{
    char *text;
    size_t len;

    if (!due__ctl_json_string(j, &text, &len))
        return false;
    if (len == 0 || len > DUE__CTL_NAME_MAX || memchr(text, '\0', len) != NULL)
        return due__ctl_json_fault(j, "the name of a queue has 1 to 64 bytes, and none is zero");
    memcpy(r->queue, text, len);
    r->queue[len] = '\0';
    return true;
}

static bool read_topic(struct due__ctl_request *r, struct due__ctl_json *j)
{
    char *text;
    size_t len;

    if (!due__ctl_json_bytes(j, &text, &len))
        return false;
    if (len > DUE_TOPIC_LENGTH || memchr(text, '\0', len) != NULL)
        return due__ctl_json_fault(j, "a topic has at most 255 bytes, and none is zero");
    memcpy(r->topic, text, len);
    r->topic[len] = '\0';
    r->has_topic = true;
    return true;
}

static bool read_key(struct due__ctl_request *r, struct due__ctl_json *j)
{
    char *text;
    size_t len;

    if (!due__ctl_json_bytes(j, &text, &len))
        return false;
    if (len == 0 || len > sizeof r->key)
        return due__ctl_json_fault(j, "a key has 1 to 255 bytes");
    memcpy(r->key, text, len);
    r->key_len = len;
    return true;
}

static bool read_id(struct due__ctl_request *r, struct due__ctl_json *j)
{
    char text[DUE_ID_TEXT] = "";
    char *at;
    size_t len;

    if (!due__ctl_json_string(j, &at, &len))
        return false;
    if (r->n == DUE__CTL_IDS)
        return due__ctl_json_fault(j, "more than 256 ids");
    if (len == sizeof text - 1)
        memcpy(text, at, len);
    if (due_id_parse(text, &r->ids[r->n]) != 0)
        return due__ctl_json_fault(j, "an id has 32 hexadecimal digits");
    r->n++;
    return true;
}

static bool read_ids(struct due__ctl_request *r, struct due__ctl_json *j)
{
    if (!due__ctl_json_sign(j, '['))
        return false;
    if (due__ctl_json_is(j, ']'))
        return true;
    do {
        if (!read_id(r, j))
            return false;
    } while (due__ctl_json_is(j, ','));
    return due__ctl_json_sign(j, ']');
}

/* As it was answered: up to 16 hexadecimal digits. */
static bool read_cursor(struct due__ctl_request *r, struct due__ctl_json *j)
{
    static const char digits[] = "0123456789abcdef";
    char *text;
    size_t len;

    if (!due__ctl_json_string(j, &text, &len))
        return false;
    for (size_t i = 0; i < len; i++) {
        const char *digit = memchr(digits, text[i], sizeof digits - 1);

        if (digit == NULL || len > 16)
            return due__ctl_json_fault(j, "a cursor has up to 16 hexadecimal digits");
        r->cursor = r->cursor << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

static bool read_field(struct due__ctl_request *r, struct due__ctl_json *j, unsigned *seen)
{
    unsigned field;

    if (!due__ctl_field_read(j, fields, sizeof fields / sizeof fields[0], &field, seen))
        return false;
    switch (field) {
    case VERB:
        return read_verb(r, j);
    case QUEUE:
        return read_queue(r, j);
    case TOPIC:
        return read_topic(r, j);
    case IDS:
        return read_ids(r, j);
    case AT_NS:
        return due__ctl_json_number(j, DUE_FOREVER, &r->at_ns);
    case DELAY_NS:
        return due__ctl_json_number(j, DUE_FOREVER, &r->delay_ns);
    case JOBS:
        return due__ctl_jobs_read(r, j);
    case CURSOR:
        return read_cursor(r, j);
    case MAX:
        return due__ctl_json_number(j, DUE__CTL_IDS, &r->max);
    case DATA:
        return due__ctl_json_number(j, DUE__CTL_DATA_MAX, &r->data);
    default:
        return read_key(r, j);
    }
}

/* One of these fields is there, and no second one. */
static bool has_one_of(unsigned seen, unsigned of)
{
    unsigned there = seen & of;

    return there != 0 && (there & (there - 1)) == 0;
}

static bool fits(const struct due__ctl_request *r, struct due__ctl_json *j, unsigned seen)
{
    unsigned needs = verbs[r->verb].needs, or_needs = verbs[r->verb].or_needs;
    unsigned may = BIT(VERB) | BIT(QUEUE) | verbs[r->verb].may;

    if ((seen & BIT(VERB)) == 0)
        return due__ctl_json_fault(j, "no verb");
    if ((needs != 0 && !has_one_of(seen, needs)) || (or_needs != 0 && !has_one_of(seen, or_needs)))
        return due__ctl_json_fault(j, "a field that this verb needs is not there");
    return (seen & ~(needs | or_needs | may)) == 0 ||
           due__ctl_json_fault(j, "a field that this verb does not have");
}

bool due__ctl_request_read(struct due__ctl_request *r, struct due__ctl_json *j)
{
    unsigned seen = 0;

    due__ctl_request_begin(r, DUE__CTL_STATS);
    if (!due__ctl_json_sign(j, '{'))
        return false;
    do {
        if (!read_field(r, j, &seen))
            return false;
    } while (due__ctl_json_is(j, ','));
    if (!due__ctl_json_sign(j, '}'))
        return false;
    if (!due__ctl_json_end(j))
        return due__ctl_json_fault(j, "expected the end of the line");
    return fits(r, j, seen);
}
