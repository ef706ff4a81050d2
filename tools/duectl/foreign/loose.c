/* loose.c - objects of JSON whose fields are not known: those that somebody else has written.
 *
 * Only the upper level is shown; what is nested is passed over, by its brackets and strings.  No
 * string is decoded: the names and numbers that are looked for are written plainly.
 */
#include "foreign/foreign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 40 };

static void skip_blanks(struct due__ctl_json *j)
{
    while (j->at < j->len && j->line[j->at] != '\0' && strchr(" \t\r\n", j->line[j->at]) != NULL)
        j->at++;
}

/* The string that begins at the present sign. */
static bool skip_string(struct due__ctl_json *j)
{
    for (j->at++; j->at < j->len && j->line[j->at] != '"'; j->at++) {
        if (j->line[j->at] == '\\')
            j->at++;
    }
    if (j->at >= j->len)
        return false;
    j->at++;
    return true;
}

/* A value, up to the comma or bracket behind it. */
static bool skip_value(struct due__ctl_json *j)
{
    int depth = 0;
    size_t from = j->at;

    while (j->at < j->len) {
        char sign = j->line[j->at];

        if (sign == '"') {
            if (!skip_string(j))
                return false;
            continue;
        }
        if (depth == 0 && (sign == ',' || sign == '}' || sign == ']'))
            break;
        if (sign == '{' || sign == '[')
            depth++;
        else if (sign == '}' || sign == ']')
            depth--;
        j->at++;
    }
    return depth == 0 && j->at > from && j->at < j->len;
}

bool ctl_loose_object(const char *text, size_t len, ctl_loose_visit *visit, void *ctx)
{
    /* It is only read, though a line that is decoded would be written to. */
    struct due__ctl_json j = { .line = (char *)(uintptr_t)text, .len = len };

    if (!due__ctl_json_sign(&j, '{'))
        return false;
    if (due__ctl_json_is(&j, '}'))
        return due__ctl_json_end(&j);
    do {
        struct ctl_loose field = { .len = 0 };

        skip_blanks(&j);
        size_t from = j.at;
        if (j.at == j.len || text[j.at] != '"' || !skip_string(&j))
            return false;
        field.name = text + from + 1;
        field.name_len = j.at - from - 2;
        if (!due__ctl_json_sign(&j, ':'))
            return false;
        skip_blanks(&j);
        field.text = text + j.at;
        if (!skip_value(&j))
            return false;
        field.len = (size_t)(text + j.at - field.text);
        field.first = field.text[0];
        visit(ctx, &field);
    } while (due__ctl_json_is(&j, ','));
    return due__ctl_json_sign(&j, '}') && due__ctl_json_end(&j);
}

bool ctl_loose_is(const struct ctl_loose *field, const char *name)
{
    return field->name_len == strlen(name) && memcmp(field->name, name, field->name_len) == 0;
}

double ctl_loose_number(const struct ctl_loose *field, double most)
{
    char digits[DIGITS_MAX];
    size_t len = field->len < sizeof digits - 1 ? field->len : sizeof digits - 1;

    memcpy(digits, field->text, len);
    digits[len] = '\0';
    if (strspn(digits, "0123456789.eE+-") == 0)
        return 0;
    double value = strtod(digits, NULL);
    if (!isfinite(value) || value < 0)
        return 0;
    return value < most ? value : most;
}
