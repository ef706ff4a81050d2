/* protobuf.c - messages of Protocol Buffers, field by field.
 *
 * A field is a number and a type in one varint, and then its value.  What the bytes say of lengths
 * is believed only as far as there are bytes.  Groups, which nobody has written for ages, are not
 * read.
 */
#include "foreign/foreign.h"

#define NUMBER_MAX ((UINT64_C(1) << 29) - 1)

static bool broken(struct ctl_protobuf *p)
{
    p->broken = true;
    p->left = 0;
    return false;
}

/* Seven bits a byte, the lowest first, at most ten bytes. */
static bool read_varint(struct ctl_protobuf *p, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && p->left > 0; shift += 7) {
        unsigned char byte = *p->at++;

        p->left--;
        if (shift == 63 && byte > 1)
            return broken(p);
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return broken(p);
}

static bool skip(struct ctl_protobuf *p, uint64_t len)
{
    if (len > p->left)
        return broken(p);
    p->at += len;
    p->left -= (size_t)len;
    return true;
}

bool ctl_protobuf_next(struct ctl_protobuf *p, struct ctl_protobuf_field *field)
{
    uint64_t tag;
    uint64_t len;

    if (p->left == 0 || !read_varint(p, &tag))
        return false;
    *field = (struct ctl_protobuf_field){ .type = (int)(tag & 7) };
    if (tag >> 3 == 0 || tag >> 3 > NUMBER_MAX)
        return broken(p);
    field->number = (uint32_t)(tag >> 3);
    switch (field->type) {
    case CTL_PROTOBUF_VARINT:
        return read_varint(p, &field->value);
    case CTL_PROTOBUF_64:
        return skip(p, 8);
    case CTL_PROTOBUF_32:
        return skip(p, 4);
    case CTL_PROTOBUF_BYTES:
        if (!read_varint(p, &len))
            return false;
        field->bytes = p->at;
        field->len = (size_t)len;
        return skip(p, len);
    default:
        return broken(p);
    }
}
