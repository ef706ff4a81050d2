/* dump_write.c - a job, or a kept key, as a line of JSON.
 *
 * Fields stand in one order, and those that say nothing are left out, so that the same job always
 * is the same bytes.  docs/export.md says what each means.
 */
#include "move/move.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add_bytes(struct due__ctl_buffer *b, const char *name, const void *bytes, size_t len)
{
    due__ctl_buffer_text(b, ",\"%s\":", name);
    due__ctl_json_put(b, bytes, len);
}

static void add_date(struct due__ctl_buffer *b, const char *name, int64_t ns)
{
    char text[CTL_DUMP_DATE];

    due__ctl_buffer_text(b, ",\"%s\":\"%s\"", name, ctl_dump_date(text, ns));
}

static void add_number(struct due__ctl_buffer *b, const char *name, int64_t value)
{
    if (value != 0)
        due__ctl_buffer_text(b, ",\"%s\":%" PRId64, name, value);
}

int64_t ctl_dump_kept(int64_t until_ns)
{
    return until_ns > DUE_FOREVER - 999 ? until_ns : (until_ns + 999) / 1000 * 1000;
}

/* ---- What only some jobs have ---------------------------------------------------------------- */

static void add_retry(struct due__ctl_buffer *b, const due_retry *r)
{
    static const char *const kinds[] = { "", "fixed", "exponential", "ladder" };

    if (r == NULL || r->kind == DUE_RETRY_INHERIT)
        return;
    due__ctl_buffer_text(b, ",\"retry\":{\"kind\":\"%s\"", kinds[r->kind]);
    add_number(b, "attempts_max", r->attempts_max);
    if (r->kind == DUE_RETRY_LADDER) {
        for (uint32_t i = 0; i < r->rungs && i < DUE_RUNGS_MAX; i++)
            due__ctl_buffer_text(b, "%s%" PRId64, i == 0 ? ",\"rungs_ns\":[" : ",", r->rung_ns[i]);
        due__ctl_buffer_text(b, "]");
    } else {
        add_number(b, "delay_ns", r->delay_ns);
        add_number(b, "cap_ns", r->cap_ns);
    }
    due__ctl_buffer_text(b, "}");
}

static void add_death(struct due__ctl_buffer *b, const due_record *r)
{
    static const char *const causes[] = { "", "buried", "attempts", "expired" };
    char text[CTL_DUMP_DATE];

    if (r->cause == 0)
        return;
    due__ctl_buffer_text(b, ",\"dead\":{\"cause\":\"%s\",\"at\":\"%s\"", causes[r->cause],
                         ctl_dump_date(text, r->died_ns));
    if (r->reason != NULL && r->reason[0] != '\0')
        add_bytes(b, "reason", r->reason, strnlen(r->reason, DUE_REASON_BYTES - 1));
    due__ctl_buffer_text(b, "}");
}

static void add_rare(struct due__ctl_buffer *b, const due_record *r)
{
    static const char *const repeats[] = { "skip", "once", "after" };

    if (r->headers_len > 0)
        add_bytes(b, "headers", r->headers, r->headers_len);
    if (r->key_len > 0)
        add_bytes(b, "key", r->key, r->key_len);
    add_number(b, "keep_key_ns", r->keep_key_ns);
    if (r->group_len > 0)
        add_bytes(b, "group", r->group, r->group_len);
    add_retry(b, r->retry);
    add_number(b, "ttl_ns", r->ttl_ns);
    if (r->expires_ns != 0)
        add_date(b, "expires", r->expires_ns);
    add_number(b, "every_ns", r->every_ns);
    if (r->repeat != DUE_REPEAT_SKIP)
        due__ctl_buffer_text(b, ",\"repeat\":\"%s\"", repeats[r->repeat]);
    add_death(b, r);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

void ctl_dump_head(struct due__ctl_buffer *b)
{
    due__ctl_buffer_text(b, "{\"due_export\":%d}\n", CTL_DUMP_VERSION);
}

void ctl_dump_job(struct due__ctl_buffer *b, const due_record *r)
{
    char id[DUE_ID_TEXT];

    due__ctl_buffer_text(b, "{\"id\":\"%s\"", due_id_format(r->id, id));
    add_bytes(b, "topic", r->topic, strlen(r->topic));
    add_date(b, "deadline", r->deadline_ns);
    if (r->until_ns != r->deadline_ns)
        add_date(b, "until", r->until_ns);
    add_number(b, "priority", r->priority);
    add_number(b, "attempts", r->attempts);
    add_number(b, "failures", r->failures);
    add_rare(b, r);
    add_bytes(b, "data", r->len > 0 ? r->data : "", r->len);
    due__ctl_buffer_text(b, "}\n");
}

void ctl_dump_key(struct due__ctl_buffer *b, const void *key, size_t len, due_id id,
                  int64_t until_ns)
{
    char text[DUE_ID_TEXT];

    due__ctl_buffer_text(b, "{\"kept_for\":\"%s\"", due_id_format(id, text));
    add_date(b, "until", ctl_dump_kept(until_ns));
    add_bytes(b, "key", key, len);
    due__ctl_buffer_text(b, "}\n");
}

void ctl_dump_end(struct due__ctl_buffer *b, uint64_t jobs, uint64_t keys)
{
    due__ctl_buffer_text(b, "{\"jobs\":%" PRIu64 ",\"kept_keys\":%" PRIu64 "}\n", jobs, keys);
}
