/* share_bell.c - rings of a shared queue, for tests of its scripts by themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/redis/share_lab.h"

static void fail(const char *what)
{
    fprintf(stderr, "share_bell: %s\n", what);
    abort();
}

void share_listen(struct share *s)
{
    s->bell = redisConnectUnix(s->socket);
    if (s->bell == NULL || s->bell->err != 0)
        fail("no connection");
    redisReply *r = redisCommand(s->bell, "SUBSCRIBE %s%s", s->prefix, s->writer);
    if (r == NULL || r->type != REDIS_REPLY_ARRAY)
        fail("subscribe");
    freeReplyObject(r);
}

/* Is it a ring?  Else it says when to come. */
static int is_ring(struct share *s, const char *text)
{
    long long stamp = 0;
    long long alarm = 0;
    long long now = 0;
    int n = sscanf(text, "%lld %lld %lld", &stamp, &alarm, &now);

    if (n < 2)
        return 1;
    if (n < 3)
        fail("a message does not say when it was sent");
    s->told.now_us = now;
    if (s->told.times++ == 0 || alarm < s->told.alarm_us)
        s->told.alarm_us = alarm;
    if (stamp > s->told.stamp)
        s->told.stamp = stamp;
    return 0;
}

int share_rung(struct share *s)
{
    int rings = 0;

    s->told = (struct share_told){ 0 };
    redisAppendCommand(s->bell, "PING");
    for (;;) {
        void *got = NULL;
        if (redisGetReply(s->bell, &got) != REDIS_OK)
            fail("the bell's connection is lost");
        redisReply *r = got;
        int message = r->type == REDIS_REPLY_ARRAY && strcmp(r->element[0]->str, "message") == 0;
        if (message)
            rings += is_ring(s, r->element[2]->str);
        freeReplyObject(r);
        if (!message)
            return rings;
    }
}
