/* json_write.c - bytes as a string of JSON, or, where they are no text, as {"base64":...}. */
#include "text/text.h"

size_t due__ctl_utf8_length(const void *bytes, size_t left)
{
    const unsigned char *at = bytes;
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    uint32_t code = at[0] & (0xffu >> (n + 1));

    if (n <= 1)
        return n;
    if (n > left || at[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

static bool is_control(unsigned char byte)
{
    return (byte < ' ' && byte != '\n' && byte != '\t' && byte != '\r') || byte == 0x7f;
}

static bool is_text(const unsigned char *at, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = due__ctl_utf8_length(at + i, len - i);

        if (n == 0 || is_control(at[i]))
            return false;
        i += n;
    }
    return true;
}

/* The letter behind the backslash; 0: it stands as it is. */
static char escape_of(unsigned char byte)
{
    switch (byte) {
    case '\n':
        return 'n';
    case '\t':
        return 't';
    case '\r':
        return 'r';
    case '"':
    case '\\':
        return (char)byte;
    default:
        return 0;
    }
}

static void add_string(struct due__ctl_buffer *b, const unsigned char *at, size_t len)
{
    size_t from = 0;

    due__ctl_buffer_add(b, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        char letter = escape_of(at[i]);

        if (letter == 0)
            continue;
        due__ctl_buffer_add(b, at + from, i - from);
        due__ctl_buffer_add(b, (char[]){ '\\', letter }, 2);
        from = i + 1;
    }
    if (len > from)
        due__ctl_buffer_add(b, at + from, len - from);
    due__ctl_buffer_add(b, "\"", 1);
}

static void add_base64(struct due__ctl_buffer *b, const unsigned char *at, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    due__ctl_buffer_text(b, "{\"base64\":\"");
    for (size_t i = 0; i < len; i += 3) {
        uint32_t word = (uint32_t)at[i] << 16 | (i + 1 < len ? (uint32_t)at[i + 1] << 8 : 0) |
                        (i + 2 < len ? at[i + 2] : 0);
        char four[] = { digits[word >> 18], digits[word >> 12 & 63],
                        i + 1 < len ? digits[word >> 6 & 63] : '=',
                        i + 2 < len ? digits[word & 63] : '=' };

        due__ctl_buffer_add(b, four, sizeof four);
    }
    due__ctl_buffer_text(b, "\"}");
}

void due__ctl_json_put(struct due__ctl_buffer *b, const void *bytes, size_t len)
{
    if (is_text(bytes, len))
        add_string(b, bytes, len);
    else
        add_base64(b, bytes, len);
}

void due__ctl_json_shown(struct due__ctl_buffer *b, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;

    due__ctl_buffer_add(b, "\"", 1);
    for (size_t i = 0; i < len;) {
        size_t n = due__ctl_utf8_length(at + i, len - i);
        char letter = escape_of(at[i]);

        if (n == 0 || is_control(at[i]))
            due__ctl_buffer_add(b, "?", 1);
        else if (letter != 0)
            due__ctl_buffer_add(b, (char[]){ '\\', letter }, 2);
        else
            due__ctl_buffer_add(b, at + i, n);
        i += n == 0 ? 1 : n;
    }
    due__ctl_buffer_add(b, "\"", 1);
}
