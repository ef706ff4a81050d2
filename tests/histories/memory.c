/* memory.c - what the server says: its time, its keys, and what it answered and nobody heard. */
#include <hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "histories/histories.h"

#define WRITERS      "due:{" HISTORY_QUEUE "}:writers"
#define LAST_ANSWERS "due:{" HISTORY_QUEUE "}:c"

static redisContext *dial(const char *socket)
{
    redisContext *link = redisConnectUnixWithTimeout(socket, (struct timeval){ .tv_sec = 60 });

    if (link != NULL && link->err == 0 &&
        redisSetTimeout(link, (struct timeval){ .tv_sec = 60 }) == REDIS_OK)
        return link;
    if (link != NULL)
        redisFree(link);
    return NULL;
}

static redisReply *ask(const char *socket, int n, const char **words)
{
    redisContext *link = dial(socket);
    redisReply *reply = NULL;

    if (link == NULL)
        return NULL;
    reply = redisCommandArgv(link, n, words, NULL);
    redisFree(link);
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}

/* As docs/redis-layout.md has it: what the exchange answered that was sent last in that lane, which
 * is what it would answer if it were sent once more, with all that it has claimed. */
static const char recall[] =
    "local w = redis.call('HGET', KEYS[1], ARGV[1]) "
    "local n, s, t, more = string.match(w or '', '^(%d+) (%d+) (%d+) ?(.*)$') "
    "if not n or n == '0' then return {'0', '0', '0', ''} end "
    "local kept = more ~= '' and more or redis.call('HGET', KEYS[2], ARGV[1]) "
    "kept = kept and cmsgpack.unpack(kept) "
    "if not kept or kept[1] ~= tonumber(n) then return {n, s, t, ''} end "
    "local out = {n, s, t, kept[2]} "
    "for _, group in ipairs(kept[4] or {}) do "
    "for i = 1, #group[2] / 14 do "
    "out[#out + 1] = string.sub(group[2], 14 * i - 13, 14 * i) "
    "out[#out + 1] = group[3] == '' and '' or group[3][i] end end "
    "return out";

static void write_down(const redisReply *r, int log)
{
    char text[16384];
    const char *status = r->element[3]->str;
    size_t n = (size_t)snprintf(text, sizeof text, "mem %s %s000 %s\n", r->element[1]->str,
                                r->element[2]->str, *status != '\0' ? status : "-");

    for (size_t i = 4; i + 1 < r->elements; i += 2) {
        const redisReply *id = r->element[i];
        const char *over = r->element[i + 1]->str;

        n += (size_t)snprintf(text + n, sizeof text - n, "m ");
        for (size_t k = 0; k < id->len; k++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%02x", (unsigned char)id->str[k]);
        n += (size_t)snprintf(text + n, sizeof text - n, " %s\n", *over != '\0' ? over : "0");
    }
    replay_log_line(log, "%send\n", text);
}

bool history_remember(const char *socket, uint64_t writer, bool work, uint64_t older, uint64_t only,
                      int log)
{
    char lane[32];

    snprintf(lane, sizeof lane, "%" PRIu64 ":%c", writer, work ? 'w' : 'p');
    const char *words[] = { "EVAL", recall, "2", WRITERS, LAST_ANSWERS, lane };
    redisReply *r = ask(socket, 6, words);
    if (r == NULL || r->type != REDIS_REPLY_ARRAY || r->elements < 4) {
        if (r != NULL)
            freeReplyObject(r);
        return false;
    }
    uint64_t stamp = strtoull(r->element[1]->str, NULL, 10);
    bool served = strcmp(r->element[0]->str, "0") != 0;
    if (served && (only != 0 ? stamp == only : stamp > older))
        write_down(r, log);
    freeReplyObject(r);
    return true;
}

int64_t history_number(const char *socket, const char *const *words)
{
    const char *all[24];
    int n = 0;

    for (; words[n] != NULL; n++)
        all[n] = words[n];
    redisReply *r = ask(socket, n, all);
    int64_t number = -1;
    if (r != NULL && r->type == REDIS_REPLY_INTEGER)
        number = r->integer;
    else if (r != NULL && r->type == REDIS_REPLY_STATUS)
        number = 0;
    else if (r != NULL && r->type == REDIS_REPLY_STRING)
        number = strtoll(r->str, NULL, 10);
    if (r != NULL)
        freeReplyObject(r);
    return number;
}

int64_t history_time(const char *socket)
{
    return HISTORY_NUMBER(socket, "EVAL",
                          "local t = redis.call('TIME') return t[1] .. string.sub('00000' .. "
                          "t[2], -6)",
                          "0");
}

uint64_t history_stamp(const char *socket)
{
    int64_t stamp = HISTORY_NUMBER(socket, "HGET", WRITERS, "stamp");

    return stamp > 0 ? (uint64_t)stamp : 0;
}

void history_busy(const char *socket, unsigned ms)
{
    char seconds[16];

    snprintf(seconds, sizeof seconds, "%u.%03u", ms / 1000, ms % 1000);
    (void)HISTORY_NUMBER(socket, "EVAL",
                         "local e = os.clock() + tonumber(ARGV[1]) "
                         "while os.clock() < e do end return 1",
                         "0", seconds);
}
