/* share_ask.c - single commands beside the scripts of a shared queue: to look, to spoil, and to
 * turn the clock that they read. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/redis/share_lab.h"

redisReply *share_ask(struct share *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    redisReply *r = redisvCommand(s->link, format, args);
    va_end(args);
    if (r == NULL) {
        fprintf(stderr, "share_ask: connection lost\n");
        abort();
    }
    return r;
}

void share_turn(struct share *s, const char *clock, int64_t us)
{
    freeReplyObject(share_ask(s, "DEL %s", clock));
    freeReplyObject(
        share_ask(s, "RPUSH %s %" PRId64 " %" PRId64, clock, us / 1000000, us % 1000000));
}
