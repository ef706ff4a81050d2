/* fuzz_import.c - any bytes as the lines that `duectl import` reads: refused where something is
 * wrong with one, or a job or key that is written as a line which says the same. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "move/move.h"

/* What a line says, as `duectl export` writes it. */
static void write_line(struct due__ctl_buffer *text, const struct ctl_dump *d)
{
    switch (d->kind) {
    case CTL_DUMP_HEAD:
        assert(d->version >= 0);
        ctl_dump_head(text);
        break;
    case CTL_DUMP_JOB:
        ctl_dump_job(text, &d->record);
        break;
    case CTL_DUMP_KEY:
        ctl_dump_key(text, d->record.key, d->record.key_len, d->record.id, d->kept_until_ns);
        break;
    case CTL_DUMP_END:
        ctl_dump_end(text, (uint64_t)d->jobs, (uint64_t)d->keys);
        break;
    }
    assert(!text->failed && text->len > 0 && text->bytes[text->len - 1] == '\n');
}

/* What no store could keep. */
static void check_job(const struct ctl_dump *d)
{
    const due_record *r = &d->record;

    assert(r->topic == d->topic && strlen(r->topic) <= DUE_TOPIC_LENGTH);
    assert(r->deadline_ns >= 0 && r->until_ns >= 0 && r->expires_ns >= 0 && r->ttl_ns >= 0);
    assert(r->priority == 255 - r->id.byte[0]);
    assert(r->headers_len <= DUE_HEADERS_MAX && r->key_len <= DUE_KEY_MAX);
    assert(r->group_len <= DUE_KEY_MAX && (r->len > 0) == (r->data != NULL));
    assert(r->cause == 0 || (r->died_ns >= 0 && strlen(r->reason) < DUE_REASON_BYTES));
    assert(r->retry == NULL || r->retry->rungs <= DUE_RUNGS_MAX);
}

/* The line @size bytes at @data, in memory of its own: what lies behind it may not be read. */
static void take_line(const uint8_t *data, size_t size)
{
    char *line = malloc(size > 0 ? size : 1);
    struct due__ctl_buffer once = { 0 };
    struct due__ctl_buffer twice = { 0 };
    struct ctl_dump d;

    if (line == NULL)
        return;
    if (size > 0)
        memcpy(line, data, size);
    struct due__ctl_json j = { .line = line, .len = size };
    bool fine = ctl_dump_read(&d, &j);
    assert(fine == (j.fault == NULL) && j.at <= size);
    if (fine) {
        if (d.kind == CTL_DUMP_JOB)
            check_job(&d);
        write_line(&once, &d);
        struct due__ctl_json again = { .line = once.bytes, .len = once.len - 1 };
        struct ctl_dump e;
        char *first = malloc(once.len);
        if (first != NULL) {
            memcpy(first, once.bytes, once.len);
            fine = ctl_dump_read(&e, &again);
            assert(fine && e.kind == d.kind);
            write_line(&twice, &e);
            assert(twice.len == once.len && memcmp(twice.bytes, first, twice.len) == 0);
        }
        free(first);
    }
    due__ctl_buffer_free(&once);
    due__ctl_buffer_free(&twice);
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
