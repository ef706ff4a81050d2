/* redis_poke.h - what another program, or an accident, has left in the keys of a queue. */
#ifndef REDIS_POKE_H
#define REDIS_POKE_H

#include <criterion/criterion.h>
#include <hiredis.h>
#include <string.h>

#include "record/record.h"

/* One command whose last @n words are any bytes; its answer is the caller's. */
static inline redisReply *poke(const char *socket, int n, const char **words, const size_t *lens)
{
    redisContext *c = redisConnectUnix(socket);

    cr_assert(c != NULL && c->err == 0);
    redisReply *reply = redisCommandArgv(c, n, words, lens);
    cr_assert_not_null(reply);
    cr_assert_neq(reply->type, REDIS_REPLY_ERROR, "%s", reply->str);
    redisFree(c);
    return reply;
}

/* The bytes of the job's record in the hash @key; answers how many, 0: it is not there. */
static inline size_t poke_get(const char *socket, const char *key, due_id id, unsigned char *bytes,
                              size_t room)
{
    const char *words[] = { "HGET", key, (const char *)id.byte };
    const size_t lens[] = { 4, strlen(key), DUE_STORE_ID_BYTES };
    redisReply *reply = poke(socket, 3, words, lens);
    size_t len = reply->type == REDIS_REPLY_STRING ? (size_t)reply->len : 0;

    cr_assert_leq(len, room);
    memcpy(bytes, len > 0 ? reply->str : "", len);
    freeReplyObject(reply);
    return len;
}

static inline void poke_set(const char *socket, const char *key, due_id id,
                            const unsigned char *bytes, size_t len)
{
    const char *words[] = { "HSET", key, (const char *)id.byte, (const char *)bytes };
    const size_t lens[] = { 4, strlen(key), DUE_STORE_ID_BYTES, len };

    freeReplyObject(poke(socket, 4, words, lens));
}

/* Write the record anew with a check that fits. */
static inline void poke_check(const char *socket, const char *key, due_id id, unsigned char *bytes,
                              size_t len)
{
    due__bytes_put(bytes + 2, due__record_check(id, bytes, len), 2);
    poke_set(socket, key, id, bytes, len);
}

/* As a newer version would have it. */
static inline void poke_newer(const char *socket, const char *key, due_id id)
{
    unsigned char bytes[1024];
    size_t len = poke_get(socket, key, id, bytes, sizeof bytes);

    cr_assert_gt(len, 0u);
    bytes[0] = DUE__RECORD_VERSION + 1;
    poke_check(socket, key, id, bytes, len);
}

/* With a deadline that is no time. */
static inline void poke_nonsense(const char *socket, const char *key, due_id id)
{
    unsigned char bytes[1024];
    size_t len = poke_get(socket, key, id, bytes, sizeof bytes);

    cr_assert_gt(len, 0u);
    due__bytes_put(bytes + 4, (uint64_t)INT64_MIN, 8);
    poke_check(socket, key, id, bytes, len);
}

#endif
