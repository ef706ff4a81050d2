/* session.c - the log, and the counters that stats() shows. */
#include "redis/session/session.h"

#include <stdarg.h>
#include <stdio.h>

void due__redis_log(struct due__redis *s, enum due_log_level level, const char *format, ...)
{
    char text[256];
    va_list args;

    if (s->how.log == NULL)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->how.log(s->how.queue, level, text);
}

/* Guards S. */
void due__redis_count(struct due__redis *s, uint64_t batches, uint64_t resent, uint64_t aside)
{
    pthread_mutex_lock(&s->lock);
    s->shown.batches += batches;
    s->shown.resent += resent;
    s->shown.quarantined += aside;
    pthread_mutex_unlock(&s->lock);
}
