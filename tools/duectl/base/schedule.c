/* schedule.c - the lines of a schedule.
 *
 *     line   = blanks | blanks "#" anything | blanks (field blanks)* time blanks text
 *     time   = delay | "@" date | "every" blanks delay | cron
 *     cron   = five fields with blanks between them | "@" letters
 *     field  = name "=" value
 *     value  = bytes without a blank | '"' (byte | "\" escape)* '"'
 *     escape = '"' | "\" | "n" | "t" | "x" and two hexadecimal digits
 *
 * No line that was one before there were fields has become another: those begin with a number and
 * its unit, or with "@" and a digit.
 */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#include "due/cron.h"

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool at_end(const struct ctl_cursor *c)
{
    return c->at == c->len || blank(c->text[c->at]);
}

static void skip_blanks(struct ctl_cursor *c)
{
    while (c->at < c->len && blank(c->text[c->at]))
        c->at++;
}

static bool next_is(const struct ctl_cursor *c, const char *word)
{
    size_t len = strlen(word);

    return c->len - c->at >= len && memcmp(c->text + c->at, word, len) == 0;
}

/* ---- Fields ---------------------------------------------------------------------------------- */

static int hex_of(char c)
{
    if (digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What stands behind a backslash; -1: nothing that is known. */
static int escape_read(struct ctl_cursor *c)
{
    char is = c->at < c->len ? c->text[c->at] : '\0';
    int high;
    int low;

    c->at++;
    if (is == '"' || is == '\\')
        return is;
    if (is == 'n' || is == 't')
        return is == 'n' ? '\n' : '\t';
    if (is != 'x' || c->len < c->at + 2)
        return -1;
    high = hex_of(c->text[c->at]);
    low = hex_of(c->text[c->at + 1]);
    c->at += 2;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* One byte of a value; false: it has ended, or there is a fault. */
static bool byte_read(struct ctl_cursor *c, bool quoted, unsigned char *byte)
{
    size_t begin = c->at;

    if (quoted && c->at == c->len)
        return ctl_fault(c, "the quotation has no end");
    if (quoted ? c->text[c->at] == '"' : at_end(c))
        return false;
    *byte = (unsigned char)c->text[c->at++];
    if (!quoted || *byte != '\\')
        return true;
    int value = escape_read(c);
    if (value < 0) {
        c->at = begin;
        return ctl_fault(c, "expected \\\" \\\\ \\n \\t or \\x and two hexadecimal digits");
    }
    *byte = (unsigned char)value;
    return true;
}

/* A value of 1 to @most bytes. */
static bool value_read(struct ctl_cursor *c, struct ctl_value *v, size_t most, const char *reason)
{
    size_t begin = c->at;
    bool quoted = c->at < c->len && c->text[c->at] == '"';
    unsigned char byte = 0;

    v->given = true;
    if (quoted)
        c->at++;
    while (byte_read(c, quoted, &byte)) {
        if (v->len == most) {
            c->at = begin;
            return ctl_fault(c, reason);
        }
        v->bytes[v->len++] = (char)byte;
    }
    if (c->reason != NULL)
        return false;
    if (quoted)
        c->at++;
    if (!at_end(c))
        return ctl_fault(c, "expected a blank behind the quotation");
    if (v->len > 0)
        return true;
    c->at = begin;
    return ctl_fault(c, reason);
}

/* The same, as a string. */
static bool string_read(struct ctl_cursor *c, struct ctl_value *v, size_t most, const char *reason)
{
    size_t begin = c->at;

    if (!value_read(c, v, most, reason))
        return false;
    v->bytes[v->len] = '\0';
    if (strlen(v->bytes) == v->len)
        return true;
    c->at = begin;
    return ctl_fault(c, "no zero byte may stand here");
}

static bool topic_read(struct ctl_cursor *c, struct ctl_fields *f)
{
    return string_read(c, &f->topic, DUE_TOPIC_LENGTH, "a topic has 1 to 255 bytes");
}

static bool key_read(struct ctl_cursor *c, struct ctl_fields *f)
{
    return value_read(c, &f->key, DUE_KEY_MAX, "a key has 1 to 255 bytes");
}

static bool group_read(struct ctl_cursor *c, struct ctl_fields *f)
{
    return value_read(c, &f->group, DUE_KEY_MAX, "a group has 1 to 255 bytes");
}

static bool headers_read(struct ctl_cursor *c, struct ctl_fields *f)
{
    return value_read(c, &f->headers, DUE_HEADERS_MAX, "headers have 1 to 256 bytes");
}

static bool priority_read(struct ctl_cursor *c, struct ctl_fields *f)
{
    size_t begin = c->at;
    int64_t value;

    if (ctl_digits_read(c, 4, &value) > 0 && at_end(c) && value <= 255) {
        f->has_priority = true;
        f->priority = (int)value;
        return true;
    }
    c->at = begin;
    return ctl_fault(c, "a priority is a number from 0 to 255");
}

static bool ttl_read(struct ctl_cursor *c, struct ctl_fields *f)
{
    size_t begin = c->at;

    if (!at_end(c) && !ctl_delay_read(c, &f->ttl_ns))
        return false;
    if (f->ttl_ns > 0)
        return true;
    c->at = begin;
    return ctl_fault(c, "a time limit is a time such as 1h");
}

static bool zone_read(struct ctl_cursor *c, struct ctl_fields *f)
{
    size_t begin = c->at;
    const char *wrong;

    if (!string_read(c, &f->zone, CTL_ZONE_MAX, "a time zone has 1 to 64 bytes"))
        return false;
    wrong = due_cron_error("@hourly", f->zone.bytes, NULL);
    if (wrong == NULL)
        return true;
    c->at = begin;
    return ctl_fault(c, wrong);
}

static const struct field {
    const char *name;
    bool (*read)(struct ctl_cursor *c, struct ctl_fields *f);
} known[] = {
    { "topic=", topic_read }, { "key=", key_read },           { "group=", group_read },
    { "ttl=", ttl_read },     { "priority=", priority_read }, { "headers=", headers_read },
    { "zone=", zone_read },
};
enum { KNOWN = sizeof known / sizeof known[0] };

/* Is there a name and "=" at the cursor? */
static bool has_field(const struct ctl_cursor *c)
{
    size_t at = c->at;

    while (at < c->len && letter(c->text[at]))
        at++;
    return at > c->at && at < c->len && c->text[at] == '=';
}

static bool fields_read(struct ctl_cursor *c, struct ctl_fields *f)
{
    bool given[KNOWN] = { false };

    for (; has_field(c); skip_blanks(c)) {
        size_t i = 0;

        while (i < KNOWN && !next_is(c, known[i].name))
            i++;
        if (i == KNOWN)
            return ctl_fault(c, "no such field: topic, priority, key, group, ttl, headers or zone");
        if (given[i])
            return ctl_fault(c, "this field is given twice");
        given[i] = true;
        f->any = true;
        c->at += strlen(known[i].name);
        if (!known[i].read(c, f))
            return false;
    }
    return true;
}

/* ---- Times that come again ------------------------------------------------------------------- */

bool ctl_comes_again(const struct ctl_entry *entry)
{
    return entry->kind == CTL_EVERY || entry->kind == CTL_CRON;
}

static bool every_read(struct ctl_cursor *c, struct ctl_entry *entry)
{
    size_t begin;

    entry->kind = CTL_EVERY;
    c->at += strlen("every");
    skip_blanks(c);
    begin = c->at;
    if (!ctl_delay_read(c, &entry->ns))
        return false;
    if (entry->ns > 0)
        return true;
    c->at = begin;
    return ctl_fault(c, "it would come again at once");
}

/* Does a cron expression stand here?  Its minutes are no delay, since they have no unit, and what
 * follows them begins as hours do. */
static bool has_cron(const struct ctl_cursor *c)
{
    struct ctl_cursor ahead = *c;

    if (next_is(c, "@"))
        return c->at + 1 < c->len && letter(c->text[c->at + 1]);
    while (!at_end(&ahead) && strchr("0123456789*,-/", ahead.text[ahead.at]) != NULL &&
           ahead.text[ahead.at] != '\0')
        ahead.at++;
    if (ahead.at == c->at || !at_end(&ahead))
        return next_is(c, "*");
    skip_blanks(&ahead);
    return next_is(c, "*") ||
           (ahead.at < c->len && (digit(ahead.text[ahead.at]) || ahead.text[ahead.at] == '*'));
}

/* Five fields, or one word. */
static bool cron_read(struct ctl_cursor *c, struct ctl_entry *entry)
{
    size_t begin = c->at;
    size_t end = begin;
    int fields = next_is(c, "@") ? 1 : 5;
    size_t at;

    entry->kind = CTL_CRON;
    for (int i = 0; i < fields; i++) {
        skip_blanks(c);
        while (!at_end(c) && c->text[c->at] != '\0')
            c->at++;
        end = c->at;
    }
    if (end - begin > CTL_CRON_MAX) {
        c->at = begin;
        return ctl_fault(c, "a cron expression has up to 200 bytes");
    }
    memcpy(entry->cron, c->text + begin, end - begin);
    entry->cron[end - begin] = '\0';
    const char *wrong = due_cron_error(entry->cron, NULL, &at);
    if (wrong == NULL)
        return at_end(c) || ctl_fault(c, "the time does not end here");
    c->at = begin + at;
    return ctl_fault(c, fields == 1 && at == 0
                            ? "expected a date, or @hourly @daily @weekly @monthly @yearly"
                            : wrong);
}

static bool time_read(struct ctl_cursor *c, struct ctl_entry *entry)
{
    struct ctl_cursor behind = *c;

    behind.at += next_is(c, "every") ? strlen("every") : 0;
    if (behind.at > c->at && at_end(&behind))
        return every_read(c, entry);
    return has_cron(c) ? cron_read(c, entry) : ctl_once_read(c, entry);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static bool line_read(struct ctl_cursor *c, struct ctl_entry *entry)
{
    size_t begin = c->at;

    if (!fields_read(c, &entry->fields))
        return false;
    if (c->at == c->len)
        return ctl_fault(c, "no time behind the fields");
    if (!time_read(c, entry))
        return false;
    skip_blanks(c);
    if (c->at == c->len)
        return ctl_fault(c, "no text after the time");
    if (!entry->fields.zone.given || entry->kind == CTL_CRON)
        return true;
    c->at = begin;
    return ctl_fault(c, "a zone goes with a cron expression");
}

void ctl_entry_read(struct ctl_entry *entry, const char *line, size_t len)
{
    struct ctl_cursor c = { .text = line, .len = len };

    memset(entry, 0, sizeof *entry);
    entry->kind = CTL_NOTHING;
    skip_blanks(&c);
    if (c.at == len || line[c.at] == '#')
        return;

    (void)line_read(&c, entry);
    entry->text = c.at;
    if (c.reason != NULL) {
        entry->kind = CTL_FAULT;
        entry->column = c.at + 1;
        entry->reason = c.reason;
    }
}

/* A name of the database stands in TZ as it is, or behind a colon, or as the path of its file. */
static const char *zone_of_environment(void)
{
    static const char database[] = "/usr/share/zoneinfo/";
    const char *tz = getenv("TZ");

    if (tz == NULL)
        tz = "localtime";
    if (tz[0] == ':')
        tz++;
    if (strncmp(tz, database, sizeof database - 1) == 0)
        tz += sizeof database - 1;
    if (strcmp(tz, "/etc/localtime") == 0)
        return "localtime";
    return tz[0] == '\0' ? "UTC" : tz;
}

const char *ctl_zone_of(const char *name)
{
    const char *zone = name != NULL ? name : zone_of_environment();

    if (strlen(zone) <= CTL_ZONE_MAX && due_cron_error("@hourly", zone, NULL) == NULL)
        return zone;
    /* The C library takes UTC for a TZ that it does not know, and so for no /etc/localtime. */
    return name == NULL ? "UTC" : NULL;
}
