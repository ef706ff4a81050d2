/* log.c - what the library has to say, if anybody listens. */
#include <stdarg.h>
#include <stdio.h>

#include "queue/queue.h"

void due__log(struct due_queue *q, enum due_log_level level, const char *format, ...)
{
    char text[256];
    va_list args;
    int cancel;

    if (q->hooks.on_log == NULL)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    q->hooks.on_log(q->hooks.log_ctx, level, text);
    pthread_setcancelstate(cancel, NULL);
}
