/* report.c - what a command finds: lines for people, or objects of JSON.
 *
 * Whoever finds something says it once, in both forms, and need not know which is wanted.  A
 * progress line is taken away first.
 */
#include "base/base.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/text.h"

enum { PEOPLE_MAX = 2048 }; /* bytes of a line for people */

static struct due__ctl_buffer line; /* an object under way */
static struct ctl_paint paint;
static bool json, failed;

void ctl_report_begin(bool as_json)
{
    json = as_json;
    failed = false;
    ctl_paint_open(&paint);
    paint.columns = 0; /* what is found is not cut */
}

bool ctl_report_is_json(void)
{
    return json;
}

void ctl_report_line(enum ctl_colour colour, const char *format, ...)
{
    char text[PEOPLE_MAX];
    va_list args;

    if (json)
        return;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text - 1, format, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text - 1 ? (size_t)n : sizeof text - 2;
    text[len++] = '\n';
    ctl_progress_end();
    failed = !ctl_paint_line(&paint, colour, text, len) || failed;
}

/* ---- Objects --------------------------------------------------------------------------------- */

void ctl_object_begin(void)
{
    line.len = 0;
    if (json)
        due__ctl_buffer_add(&line, "{", 1);
}

/* False: nobody wants it. */
static bool add_name(const char *name)
{
    if (json)
        due__ctl_buffer_text(&line, "%s\"%s\":", line.len > 1 ? "," : "", name);
    return json;
}

void ctl_object_text(const char *name, const char *text)
{
    if (add_name(name))
        due__ctl_json_shown(&line, text, strlen(text));
}

void ctl_object_bytes(const char *name, const void *bytes, size_t len)
{
    if (add_name(name))
        due__ctl_json_put(&line, len > 0 ? bytes : "", len);
}

void ctl_object_number(const char *name, uint64_t value)
{
    if (add_name(name))
        due__ctl_buffer_text(&line, "%" PRIu64, value);
}

void ctl_object_flag(const char *name, bool value)
{
    if (add_name(name))
        due__ctl_buffer_text(&line, "%s", value ? "true" : "false");
}

void ctl_object_time(const char *name, int64_t us)
{
    char text[CTL_DUMP_DATE];

    if (add_name(name))
        due__ctl_buffer_text(
            &line, "\"%s\"",
            ctl_dump_date(text, us > DUE_FOREVER / 1000 - 1 ? DUE_FOREVER : us * 1000));
}

void ctl_object_end(void)
{
    if (!json)
        return;
    due__ctl_buffer_text(&line, "}\n");
    ctl_progress_end();
    failed = line.failed || fwrite(line.bytes, 1, line.len, stdout) != line.len || failed;
}

/* ---- Both ------------------------------------------------------------------------------------ */

void ctl_report_wrong(const char *what, const void *name, size_t len, const char *text)
{
    bool of_job = strcmp(what, "job") == 0;
    char shown[CTL_EXCERPT * 2];

    if (name == NULL)
        ctl_report_line(CTL_BAD, "wrong   %s", text);
    else
        ctl_report_line(CTL_BAD, "wrong   %s%s%s%s%s", of_job ? "" : what, of_job ? "" : " ",
                        len == 0 ? "-" : ctl_text_show(shown, sizeof shown, name, len),
                        strcmp(what, "topic") == 0 ? " " : "  ", text);
    ctl_object_begin();
    ctl_object_text("wrong", what);
    if (name != NULL)
        ctl_object_bytes(of_job ? "id" : "name", name, len);
    ctl_object_text("text", text);
    ctl_object_end();
}

int ctl_report_end(int status)
{
    due__ctl_buffer_free(&line);
    return fflush(stdout) != 0 || failed ? CTL_BROKEN : status;
}
