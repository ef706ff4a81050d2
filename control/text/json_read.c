/* json_read.c - what stands in a line of JSON, piece by piece.
 *
 * A string is decoded where it stands: what it says is never longer than how it is said.
 */
#include "text/text.h"

#include <string.h>

bool due__ctl_json_fault(struct due__ctl_json *j, const char *fault)
{
    if (j->fault == NULL)
        j->fault = fault;
    return false;
}

static void skip_blanks(struct due__ctl_json *j)
{
    while (j->at < j->len && strchr(" \t\r", j->line[j->at]) != NULL && j->line[j->at] != '\0')
        j->at++;
}

bool due__ctl_json_is(struct due__ctl_json *j, char sign)
{
    skip_blanks(j);
    if (j->at == j->len || j->line[j->at] != sign)
        return false;
    j->at++;
    return true;
}

bool due__ctl_json_end(struct due__ctl_json *j)
{
    skip_blanks(j);
    return j->at == j->len;
}

bool due__ctl_json_sign(struct due__ctl_json *j, char sign)
{
    static const char *const texts[] = { "expected {", "expected }", "expected :",
                                         "expected [", "expected ]", "expected a string" };
    const char *at = strchr("{}:[]\"", sign);

    return due__ctl_json_is(j, sign) ||
           due__ctl_json_fault(j, texts[at != NULL ? (size_t)(at - "{}:[]\"") % 6 : 5]);
}

/* ---- Strings --------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits behind \u. */
static bool read_unit(struct due__ctl_json *j, uint32_t *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = j->at < j->len ? hex_digit(j->line[j->at]) : -1;

        if (digit < 0)
            return due__ctl_json_fault(j, "expected four hexadecimal digits");
        *unit = *unit << 4 | (uint32_t)digit;
        j->at++;
    }
    return true;
}

/* A character above U+FFFF stands as two units. */
static bool read_character(struct due__ctl_json *j, uint32_t *code)
{
    uint32_t low;

    if (!read_unit(j, code))
        return false;
    if (*code < 0xd800 || *code > 0xdfff)
        return true;
    if (*code > 0xdbff || j->len - j->at < 2 || j->line[j->at] != '\\' || j->line[j->at + 1] != 'u')
        return due__ctl_json_fault(
            j, "half a character: bytes that are no text go into {\"base64\":}");
    j->at += 2;
    if (!read_unit(j, &low))
        return false;
    if (low < 0xdc00 || low > 0xdfff)
        return due__ctl_json_fault(
            j, "half a character: bytes that are no text go into {\"base64\":}");
    *code = 0x10000 + ((*code & 0x3ff) << 10) + (low & 0x3ff);
    return true;
}

static size_t put_character(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (size_t i = n; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)((0xf00u >> n & 0xff) | code);
    return n;
}

/* Behind a backslash: what it stands for, at @to. */
static bool read_escape(struct due__ctl_json *j, char *to, size_t *n)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    char letter = j->at < j->len ? j->line[j->at] : '\0';
    const char *known = letter == '\0' ? NULL : strchr(letters, letter);
    uint32_t code;

    *n = 1;
    if (known != NULL) {
        *to = meant[known - letters];
        j->at++;
        return true;
    }
    if (letter != 'u')
        return due__ctl_json_fault(j, "no such escape");
    j->at++;
    if (!read_character(j, &code))
        return false;
    *n = put_character(to, code);
    return true;
}

bool due__ctl_json_string(struct due__ctl_json *j, char **text, size_t *len)
{
    if (!due__ctl_json_sign(j, '"'))
        return false;
    char *to = j->line + j->at;

    *text = to;
    while (j->at < j->len && j->line[j->at] != '"') {
        unsigned char byte = (unsigned char)j->line[j->at];
        size_t n = 1;

        if (byte < ' ')
            return due__ctl_json_fault(j, "a control character in a string");
        j->at++;
        if (byte != '\\')
            *to = (char)byte;
        else if (!read_escape(j, to, &n))
            return false;
        to += n;
    }
    if (j->at == j->len)
        return due__ctl_json_fault(j, "the string does not end");
    j->at++;
    *len = (size_t)(to - *text);
    return true;
}

/* ---- Numbers, bytes -------------------------------------------------------------------------- */

bool due__ctl_json_number(struct due__ctl_json *j, int64_t most, int64_t *value)
{
    size_t from;

    skip_blanks(j);
    from = j->at;
    *value = 0;
    for (; j->at < j->len && j->line[j->at] >= '0' && j->line[j->at] <= '9'; j->at++) {
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, j->line[j->at] - '0', value) || *value > most) {
            j->at = from;
            return due__ctl_json_fault(j, "the number is too large");
        }
    }
    if (j->at == from || (j->at > from + 1 && j->line[from] == '0'))
        return due__ctl_json_fault(j, "expected a whole number that is not negative");
    if (j->at < j->len && strchr(".eE", j->line[j->at]) != NULL && j->line[j->at] != '\0')
        return due__ctl_json_fault(j, "expected a whole number");
    return true;
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* In place.  There is one way to say bytes: whole groups, filled up, with no bit left over. */
static bool base64_decode(char *text, size_t *len)
{
    size_t n = *len;
    size_t fill = 0;
    char *to = text;

    if (n % 4 != 0)
        return false;
    for (; fill < 2 && n > 0 && text[n - 1] == '='; fill++)
        n--;
    uint32_t word = 0;
    for (size_t i = 0; i < n; i++) {
        int digit = base64_digit(text[i]);

        if (digit < 0)
            return false;
        word = word << 6 | (uint32_t)digit;
        if (i % 4 == 0)
            continue;
        size_t left = 6 - 2 * (i % 4);

        *to++ = (char)(word >> left);
        word &= (1u << left) - 1;
    }
    if (word != 0)
        return false;
    *len = (size_t)(to - text);
    return true;
}

bool due__ctl_json_bytes(struct due__ctl_json *j, char **bytes, size_t *len)
{
    char *name;
    size_t name_len;

    if (!due__ctl_json_is(j, '{'))
        return due__ctl_json_string(j, bytes, len);
    if (!due__ctl_json_string(j, &name, &name_len))
        return false;
    if (name_len != 6 || memcmp(name, "base64", 6) != 0)
        return due__ctl_json_fault(j, "expected {\"base64\":");
    if (!due__ctl_json_sign(j, ':') || !due__ctl_json_string(j, bytes, len))
        return false;
    if (!base64_decode(*bytes, len))
        return due__ctl_json_fault(j, "this is no base64");
    return due__ctl_json_sign(j, '}');
}
