/* dump_read.c - a line of JSON as a job, or a kept key.
 *
 * Whatever a store could not keep as it is said here, or a queue could not use, is a fault: a field
 * that is not known, one that stands twice, one too long, a time that no job can have.
 */
#include "move/move.h"

#include <string.h>

/* What stands in a line; each once. */
enum field {
    VERSION,
    ID,
    TOPIC,
    DEADLINE,
    UNTIL,
    PRIORITY,
    ATTEMPTS,
    FAILURES,
    HEADERS,
    KEY,
    KEEP_KEY,
    GROUP,
    RETRY,
    TTL,
    EXPIRES,
    EVERY,
    REPEAT,
    DEAD,
    DATA,
    KEPT_FOR,
    JOBS,
    KEPT_KEYS,
    FIELDS
};

static const char *const names[FIELDS] = {
    "due_export", "id",   "topic",       "deadline", "until", "priority",  "attempts", "failures",
    "headers",    "key",  "keep_key_ns", "group",    "retry", "ttl_ns",    "expires",  "every_ns",
    "repeat",     "dead", "data",        "kept_for", "jobs",  "kept_keys",
};

#define BIT(field) (1u << (field))

/* The words that a string may be, from @first on. */
static bool read_word(struct due__ctl_json *j, const char *const *words, int first, int n,
                      int *word)
{
    char *text;
    size_t len;
    size_t from = j->at;

    if (!due__ctl_json_string(j, &text, &len))
        return false;
    for (*word = first; *word < n; ++*word) {
        if (strlen(words[*word]) == len && memcmp(text, words[*word], len) == 0)
            return true;
    }
    j->at = from;
    return due__ctl_json_fault(j, "no such word is known here");
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* "2026-12-01T08:00:00.25Z", or "never". */
static bool read_date(struct due__ctl_json *j, int64_t *ns)
{
    char *text;
    size_t len;
    size_t from = j->at;

    if (!due__ctl_json_string(j, &text, &len))
        return false;
    struct ctl_cursor c = { .text = text, .len = len };
    *ns = DUE_FOREVER;
    if (len == 5 && memcmp(text, "never", 5) == 0)
        return true;
    if (len >= 20 && len <= 30 && text[len - 1] == 'Z' && ctl_date_read(&c, ns) && c.at == len &&
        *ns >= 0)
        return true;
    j->at = from;
    return due__ctl_json_fault(j,
                               "expected a time such as \"2026-12-01T08:00:00.25Z\", from 1970 on");
}

static bool read_id(struct due__ctl_json *j, due_id *id)
{
    char text[DUE_ID_TEXT];
    char *at;
    size_t len;
    size_t from = j->at;
    bool fine = due__ctl_json_string(j, &at, &len);

    if (fine && len == DUE_ID_TEXT - 1) {
        memcpy(text, at, len);
        text[len] = '\0';
        if (due_id_parse(text, id) == 0 && id->byte[14] == 0 && id->byte[15] == 0 &&
            (id->byte[1] & 0x80) == 0)
            return true;
    }
    if (fine)
        j->at = from;
    return due__ctl_json_fault(j, "expected the id of a stored job: 32 hexadecimal digits");
}

/* Bytes that are pointed to; @least to @most. */
static bool read_bytes(struct due__ctl_json *j, size_t least, size_t most, const void **bytes,
                       size_t *len)
{
    size_t from = j->at;
    char *at;

    if (!due__ctl_json_bytes(j, &at, len))
        return false;
    if (*len < least || *len > most) {
        j->at = from;
        return due__ctl_json_fault(j,
                                   *len < least ? "it is empty: leave it out" : "it is too long");
    }
    *bytes = *len > 0 ? at : NULL;
    return true;
}

/* Bytes that are copied, as a text: @room with its NUL. */
static bool read_text(struct due__ctl_json *j, char *text, size_t room)
{
    const void *bytes = NULL;
    size_t len = 0;
    size_t from = j->at;

    if (!read_bytes(j, 0, room - 1, &bytes, &len))
        return false;
    if (len > 0 && memchr(bytes, '\0', len) != NULL) {
        j->at = from;
        return due__ctl_json_fault(j, "a zero byte cannot stand here");
    }
    if (len > 0)
        memcpy(text, bytes, len);
    text[len] = '\0';
    return true;
}

static bool read_count(struct due__ctl_json *j, uint32_t *count)
{
    int64_t value;

    if (!due__ctl_json_number(j, UINT32_MAX, &value))
        return false;
    *count = (uint32_t)value;
    return true;
}

/* ---- Objects in a line ----------------------------------------------------------------------- */

/* Each field's name is one of @known; none stands twice.  @read reads its value. */
typedef bool read_field(struct ctl_dump *d, struct due__ctl_json *j, int field);

static bool read_object(struct ctl_dump *d, struct due__ctl_json *j, const char *const *known,
                        int n, read_field *read, unsigned *had)
{
    *had = 0;
    if (!due__ctl_json_sign(j, '{'))
        return false;
    do {
        size_t from = j->at;
        int field;

        if (!read_word(j, known, 0, n, &field) || !due__ctl_json_sign(j, ':'))
            return false;
        if (*had & BIT(field)) {
            j->at = from;
            return due__ctl_json_fault(j, "it stands twice");
        }
        *had |= BIT(field);
        if (!read(d, j, field))
            return false;
    } while (due__ctl_json_is(j, ','));
    return due__ctl_json_sign(j, '}');
}

enum { RETRY_KIND, RETRY_ATTEMPTS, RETRY_DELAY, RETRY_CAP, RETRY_RUNGS, RETRY_FIELDS };

static bool read_rungs(struct due__ctl_json *j, due_retry *r)
{
    if (!due__ctl_json_sign(j, '['))
        return false;
    do {
        if (r->rungs == DUE_RUNGS_MAX)
            return due__ctl_json_fault(j, "a ladder has 1 to 16 delays");
        if (!due__ctl_json_number(j, INT64_MAX, &r->rung_ns[r->rungs]))
            return false;
        r->rungs++;
    } while (due__ctl_json_is(j, ','));
    return due__ctl_json_sign(j, ']');
}

static bool read_retry_field(struct ctl_dump *d, struct due__ctl_json *j, int field)
{
    static const char *const kinds[] = { "", "fixed", "exponential", "ladder" };
    int kind;

    switch (field) {
    case RETRY_KIND:
        if (!read_word(j, kinds, DUE_RETRY_FIXED, DUE_RETRY_LADDER + 1, &kind))
            return false;
        d->retry.kind = (enum due_retry_kind)kind;
        return true;
    case RETRY_ATTEMPTS:
        return read_count(j, &d->retry.attempts_max);
    case RETRY_DELAY:
        return due__ctl_json_number(j, INT64_MAX, &d->retry.delay_ns);
    case RETRY_CAP:
        return due__ctl_json_number(j, INT64_MAX, &d->retry.cap_ns);
    default:
        return read_rungs(j, &d->retry);
    }
}

static bool read_retry(struct ctl_dump *d, struct due__ctl_json *j)
{
    static const char *const known[] = { "kind", "attempts_max", "delay_ns", "cap_ns", "rungs_ns" };
    static const unsigned may[] = { 0, BIT(RETRY_KIND) | BIT(RETRY_ATTEMPTS) | BIT(RETRY_DELAY),
                                    BIT(RETRY_KIND) | BIT(RETRY_ATTEMPTS) | BIT(RETRY_DELAY) |
                                        BIT(RETRY_CAP),
                                    BIT(RETRY_KIND) | BIT(RETRY_ATTEMPTS) | BIT(RETRY_RUNGS) };
    unsigned had;

    if (!read_object(d, j, known, RETRY_FIELDS, read_retry_field, &had))
        return false;
    if (d->retry.kind == DUE_RETRY_INHERIT || (had & ~may[d->retry.kind]) != 0 ||
        (d->retry.kind == DUE_RETRY_LADDER && d->retry.rungs == 0))
        return due__ctl_json_fault(j, "a policy needs its kind, and nothing of another");
    d->record.retry = &d->retry;
    return true;
}

enum { DEAD_CAUSE, DEAD_AT, DEAD_REASON, DEAD_FIELDS };

static bool read_death_field(struct ctl_dump *d, struct due__ctl_json *j, int field)
{
    static const char *const causes[] = { "", "buried", "attempts", "expired" };
    int cause;

    switch (field) {
    case DEAD_CAUSE:
        if (!read_word(j, causes, DUE_CAUSE_BURIED, DUE_CAUSE_EXPIRED + 1, &cause))
            return false;
        d->record.cause = (enum due_cause)cause;
        return true;
    case DEAD_AT:
        return read_date(j, &d->record.died_ns);
    default:
        return read_text(j, d->reason, sizeof d->reason);
    }
}

static bool read_death(struct ctl_dump *d, struct due__ctl_json *j)
{
    static const char *const known[] = { "cause", "at", "reason" };
    unsigned had;

    if (!read_object(d, j, known, DEAD_FIELDS, read_death_field, &had))
        return false;
    if (!(had & BIT(DEAD_CAUSE)) || !(had & BIT(DEAD_AT)))
        return due__ctl_json_fault(j, "a dead job needs its cause, and when it died");
    d->record.reason = d->reason;
    return true;
}

/* ---- A line ---------------------------------------------------------------------------------- */

static bool read_rare_field(struct ctl_dump *d, struct due__ctl_json *j, int field)
{
    static const char *const repeats[] = { "skip", "once", "after" };
    due_record *r = &d->record;
    int repeat;

    switch (field) {
    case HEADERS:
        return read_bytes(j, 1, DUE_HEADERS_MAX, &r->headers, &r->headers_len);
    case KEY:
        return read_bytes(j, 1, DUE_KEY_MAX, &r->key, &r->key_len);
    case KEEP_KEY:
        return due__ctl_json_number(j, INT64_MAX, &r->keep_key_ns);
    case GROUP:
        return read_bytes(j, 1, DUE_KEY_MAX, &r->group, &r->group_len);
    case RETRY:
        return read_retry(d, j);
    case TTL:
        return due__ctl_json_number(j, INT64_MAX, &r->ttl_ns);
    case EXPIRES:
        return read_date(j, &r->expires_ns);
    case EVERY:
        return due__ctl_json_number(j, INT64_MAX, &r->every_ns);
    case REPEAT:
        if (!read_word(j, repeats, 0, DUE_REPEAT_AFTER + 1, &repeat))
            return false;
        r->repeat = (enum due_repeat)repeat;
        return true;
    default:
        return read_death(d, j);
    }
}

static bool read_job_field(struct ctl_dump *d, struct due__ctl_json *j, int field)
{
    due_record *r = &d->record;
    int64_t value;

    switch (field) {
    case VERSION:
        return due__ctl_json_number(j, INT64_MAX, &d->version);
    case ID:
    case KEPT_FOR:
        return read_id(j, &r->id);
    case TOPIC:
        return read_text(j, d->topic, sizeof d->topic);
    case DEADLINE:
        return read_date(j, &r->deadline_ns);
    case UNTIL:
        return read_date(j, &r->until_ns);
    case PRIORITY:
        if (!due__ctl_json_number(j, 255, &value))
            return false;
        r->priority = (int)value;
        return true;
    case ATTEMPTS:
        return read_count(j, &r->attempts);
    case FAILURES:
        return read_count(j, &r->failures);
    case DATA:
        return read_bytes(j, 0, DUE_PAYLOAD_MAX, &r->data, &r->len);
    case JOBS:
        return due__ctl_json_number(j, INT64_MAX, &d->jobs);
    case KEPT_KEYS:
        return due__ctl_json_number(j, INT64_MAX, &d->keys);
    default:
        return read_rare_field(d, j, field);
    }
}

/* Does what was read of a job fit together? */
static bool job_fits(struct ctl_dump *d, struct due__ctl_json *j, unsigned had)
{
    due_record *r = &d->record;

    if (!(had & BIT(UNTIL)))
        r->until_ns = r->deadline_ns;
    if (r->priority != 255 - r->id.byte[0])
        return due__ctl_json_fault(j, "the priority is not that of the id");
    if (r->ttl_ns != 0 && r->expires_ns != 0)
        return due__ctl_json_fault(j, "ttl_ns and expires are not both possible");
    if (r->repeat != DUE_REPEAT_SKIP && r->every_ns == 0)
        return due__ctl_json_fault(j, "repeat without every_ns");
    r->topic = d->topic;
    d->kind = CTL_DUMP_JOB;
    return true;
}

/* Which kind of line has these fields? */
static bool judge(struct ctl_dump *d, struct due__ctl_json *j, unsigned had)
{
    static const unsigned of_job = BIT(ID) | BIT(TOPIC) | BIT(DEADLINE) | BIT(DATA);
    static const unsigned of_key = BIT(KEPT_FOR) | BIT(UNTIL) | BIT(KEY);
    static const unsigned of_others = BIT(VERSION) | BIT(KEPT_FOR) | BIT(JOBS) | BIT(KEPT_KEYS);

    d->kind = CTL_DUMP_HEAD;
    if (had == BIT(VERSION))
        return true;
    d->kind = CTL_DUMP_END;
    if (had == (BIT(JOBS) | BIT(KEPT_KEYS)))
        return true;
    d->kind = CTL_DUMP_KEY;
    d->kept_until_ns = d->record.until_ns;
    if (had == of_key)
        return d->kept_until_ns == ctl_dump_kept(d->kept_until_ns) ||
               due__ctl_json_fault(j, "keys are kept until a whole microsecond");
    if ((had & of_job) == of_job && (had & of_others) == 0)
        return job_fits(d, j, had);
    return due__ctl_json_fault(j, had & of_others ? "these fields do not belong together"
                                                  : "a job needs id, topic, deadline and data");
}

bool ctl_dump_read(struct ctl_dump *d, struct due__ctl_json *j)
{
    unsigned had;

    memset(d, 0, sizeof *d);
    if (!read_object(d, j, names, FIELDS, read_job_field, &had))
        return false;
    if (!due__ctl_json_end(j))
        return due__ctl_json_fault(j, "something stands behind the line's end");
    return judge(d, j, had);
}
