/* log.c - what a store tells the queue's log. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void due__store_log(const struct due_store_open *how, enum due_log_level level, const char *format,
                    ...)
{
    char text[256];
    va_list args;

    if (how->log == NULL)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    how->log(how->queue, level, text);
}
