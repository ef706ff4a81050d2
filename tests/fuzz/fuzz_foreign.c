/* fuzz_foreign.c - any bytes as a message of Protocol Buffers, and as an object of JSON that
 * somebody else has written: what is shown of either lies within it, and in its order. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/foreign.h"

static void read_message(const uint8_t *bytes, size_t size)
{
    struct ctl_protobuf p = { .at = bytes, .left = size };
    struct ctl_protobuf_field field;
    const unsigned char *before = bytes;

    while (ctl_protobuf_next(&p, &field)) {
        assert(field.number > 0 && !p.broken && p.left < size);
        assert(p.at > before && p.at + p.left == bytes + size);
        if (field.type == CTL_PROTOBUF_BYTES)
            assert(field.bytes > before && field.bytes + field.len == p.at);
        else
            assert(field.bytes == NULL && field.len == 0);
        before = p.at;
    }
    assert(p.left == 0);
}

struct seen {
    const char *at, *end;
    int depth;
};

static void see(void *ctx, const struct ctl_loose *field)
{
    struct seen *s = ctx;
    double number = ctl_loose_number(field, 1000);

    assert(field->name > s->at && field->name + field->name_len < field->text);
    assert(field->len > 0 && field->text + field->len < s->end && field->first == field->text[0]);
    assert(number >= 0 && number <= 1000);
    if (field->first == '{' && s->depth == 0) {
        struct seen inner = { field->text, field->text + field->len, 1 };

        (void)ctl_loose_object(field->text, field->len, see, &inner);
    }
    s->at = field->text + field->len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* In memory of its own: what lies behind it may not be read. */
    char *copy = malloc(size > 0 ? size : 1);

    if (copy == NULL)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    struct seen whole = { copy, copy + size, 0 };
    read_message((const uint8_t *)copy, size);
    (void)ctl_loose_object(copy, size, see, &whole);
    free(copy);
    return 0;
}
