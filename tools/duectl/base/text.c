/* text.c - the bytes of others, made fit for a terminal. */
#include "base/base.h"

#include <string.h>

/* The next character of UTF-8: how many bytes, and which; 0: these are none. */
static size_t character(const unsigned char *at, size_t len, uint32_t *code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = at[0] < 0x80 ? 1 : at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;

    if (n == 0 || n > len || at[0] > 0xf4)
        return 0;
    *code = n == 1 ? at[0] : at[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3f);
    }
    return *code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : n;
}

/* Controls move the cursor, or do worse; those of writing direction make a text look like another
 * one. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
           code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

const char *ctl_text_show(char *shown, size_t room, const void *text, size_t len)
{
    const unsigned char *at = text;
    size_t out = 0;

    while (len > 0) {
        uint32_t code = 0;
        size_t n = character(at, len, &code);
        bool masked = n == 0 || is_control(code);
        size_t used = masked ? 1 : n;

        if (out + used > room - 4) {
            memcpy(shown + out, "...", 3);
            out += 3;
            break;
        }
        if (masked)
            shown[out] = '?';
        else
            memcpy(shown + out, at, n);
        out += used;
        n += n == 0;
        at += n;
        len -= n;
    }
    shown[out] = '\0';
    return shown;
}
