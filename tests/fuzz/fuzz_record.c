/* fuzz_record.c - any bytes as a record or an entry: refused, or read within their bounds and
 * written again as they were. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/record.h"

static const due_id id = { { 1, 2, 3 } };

static int read_record(uint8_t *bytes, size_t size)
{
    due_record record = { .id = id };
    struct due__record_room room;
    int rc = due__record_read(&record, &room, bytes, size);

    if (rc != 0) {
        assert(rc == DUE_ECORRUPT || rc == DUE_EVERSION);
        return rc;
    }
    unsigned char front[DUE__RECORD_FRONT];
    size_t len = due__record_front(&record, front);
    assert(len + record.len == size && memcmp(front, bytes, len) == 0);
    assert(record.len == 0 || memcmp(record.data, bytes + len, record.len) == 0);
    return 0;
}

static int read_entry(uint8_t *bytes, size_t size)
{
    due_record record = { .id = id };
    struct due__record_room room;
    int rc = due__entry_read(&record, &room, bytes, size);

    if (rc != 0) {
        assert(rc == DUE_ECORRUPT || rc == DUE_EVERSION);
        return rc;
    }
    unsigned char entry[DUE__ENTRY_MOST];
    size_t len = due__entry_write(&record, entry);
    assert(len == size && memcmp(entry, bytes, size) == 0);
    return 0;
}

/* The same without a check before it: flags, then what they say.  What is taken is written as it
 * was. */
static void read_more(const uint8_t *bytes, size_t size)
{
    static unsigned char again[DUE__RECORD_FRONT];
    struct due__rest rest = { bytes + 1, size - 1 };
    unsigned flags = bytes[0] & DUE__RECORD_MORE;
    due_record record = { .priority = 0 };
    struct due__record_room room;
    int rc = due__more_read(&record, &room, flags, &rest);

    assert(rc == 0 || rc == DUE_ECORRUPT || rc == DUE_EVERSION);
    assert(rest.at >= bytes + 1 && rest.at + rest.len == bytes + size);
    if (rc != 0)
        return;
    assert(due__more_flags(&record) == flags);
    size_t len = due__more_write(&record, again);
    assert(len + rest.len == size - 1 && memcmp(again, bytes + 1, len) == 0);
}

/* What stands behind the check is hardly ever reached by chance. */
static void make_fit(uint8_t *bytes, size_t size)
{
    uint64_t value = due__record_check(id, bytes, size);

    bytes[2] = (uint8_t)value;
    bytes[3] = (uint8_t)(value >> 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size + 1);

    if (bytes == NULL)
        return 0;
    if (size > 0)
        memcpy(bytes, data, size);
    (void)read_record(bytes, size);
    (void)read_entry(bytes, size);
    if (size > 0)
        read_more(bytes, size);
    if (size >= DUE__RECORD_HEAD) {
        make_fit(bytes, size);
        (void)read_record(bytes, size);
        (void)read_entry(bytes, size);
    }
    free(bytes);
    return 0;
}
