/* fuzz_schedule.c - any bytes as the lines of a schedule: refused with a place and words, or a job
 * with all that its line says; what the headers of one that comes again say is the same line. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "move/move.h"

static void check_value(const struct ctl_value *v, size_t most)
{
    assert(v->len <= most && v->given == (v->len > 0));
}

static void check_fields(const struct ctl_fields *f)
{
    check_value(&f->topic, DUE_TOPIC_LENGTH);
    check_value(&f->key, DUE_KEY_MAX);
    check_value(&f->group, DUE_KEY_MAX);
    check_value(&f->headers, DUE_HEADERS_MAX);
    check_value(&f->zone, CTL_ZONE_MAX);
    assert(f->priority >= 0 && f->priority <= 255 && f->ttl_ns >= 0);
    assert(!f->topic.given || strlen(f->topic.bytes) == f->topic.len);
}

static bool same(const struct ctl_value *a, const struct ctl_value *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* Of a line that comes again: its headers are read as what it was, and it has a next time. */
static void check_again(const struct ctl_entry *e, const struct ctl_more *m)
{
    struct ctl_entry back;
    int64_t next = -1;
    int rc;

    assert(m->extra.headers_len <= DUE_HEADERS_MAX && m->extra.key_len > 0);
    if (!ctl_round_read(&back, m->extra.headers, m->extra.headers_len))
        abort();
    assert(back.kind == e->kind && back.ns == e->ns && strcmp(back.cron, e->cron) == 0);
    assert(same(&back.fields.key, &e->fields.key) && same(&back.fields.group, &e->fields.group));
    assert(back.fields.ttl_ns == e->fields.ttl_ns && back.fields.zone.given == (e->cron[0] != 0));
    rc = ctl_round_next(&back, 1000, 1796112000000000001, &next);
    assert(rc == 0 ? next > 1796112000000000001 : rc == DUE_ELIMIT);
}

static void check_job(struct ctl_entry *e, const char *text, size_t len)
{
    struct ctl_more *m;
    const char *why;

    check_fields(&e->fields);
    if (!ctl_more_new(&m, e, "UTC", text, len, &why)) {
        assert(why != NULL && m == NULL);
        return;
    }
    assert((m == NULL) == (!e->fields.any && !ctl_comes_again(e)));
    if (m != NULL && ctl_comes_again(e))
        check_again(e, m);
    free(m);
}

/* The line @size bytes at @data, in memory of its own: what lies behind it may not be read. */
static void take_line(const uint8_t *data, size_t size)
{
    char *line = malloc(size > 0 ? size : 1);
    struct ctl_entry e;

    if (line == NULL)
        return;
    if (size > 0)
        memcpy(line, data, size);
    ctl_entry_read(&e, line, size);
    if (e.kind == CTL_FAULT)
        assert(e.reason != NULL && e.column >= 1 && e.column <= size + 1);
    else if (e.kind != CTL_NOTHING) {
        assert(e.text < size && e.reason == NULL);
        check_job(&e, line + e.text, size - e.text);
    }
    (void)ctl_round_read(&e, line, size);
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t len = end != NULL ? (size_t)(end - data) - at : size - at;

        take_line(data + at, len);
        at += len + 1;
    }
    return 0;
}
