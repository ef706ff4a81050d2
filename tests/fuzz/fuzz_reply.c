/* fuzz_reply.c - any bytes as a server's replies, in pieces of any size: replies within the limits,
 * or a refusal.  The first byte is the size of the pieces, the second chooses the limits.
 */
#include <assert.h>
#include <hiredis.h>
#include <stdint.h>
#include <stdlib.h>

#include "redis/resp/reply.h"
#include "redis/resp/reader.h"

#define ELEMENTS 100

/* What a reply has cost at least. */
static size_t cost_of(const redisReply *reply, int depth)
{
    size_t cost = 4;

    assert(depth <= 8);
    if (reply->type == REDIS_REPLY_STRING)
        cost += reply->len;
    if (reply->type != REDIS_REPLY_ARRAY)
        return cost;
    assert(reply->elements <= ELEMENTS);
    for (size_t i = 0; i < reply->elements; i++)
        cost += DUE__READER_ELEMENT + cost_of(reply->element[i], depth + 1);
    return cost;
}

static void check_reply(redisReply *reply, size_t most)
{
    assert(cost_of(reply, 0) <= most);
    (void)due__reply_classify(reply);
    freeReplyObject(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t piece = (size_t)data[0] + 1;
    size_t most = (size_t)1 << (4 + data[1] % 16);
    const char *bytes = (const char *)data + 2;
    size_t left = size - 2;
    struct due__reader *reader = due__reader_new(ELEMENTS, most);

    while (reader != NULL && left > 0) {
        redisReply *reply;
        size_t used = 0;
        size_t now = left < piece ? left : piece;
        int rc = due__reader_take(reader, bytes, now, &used, &reply);

        if (rc < 0) {
            /* It stays broken, and begins anew only on another connection. */
            assert(due__reader_take(reader, bytes, now, &used, &reply) < 0 && reply == NULL);
            due__reader_clear(reader);
            used = now;
        }
        assert(used > 0 && used <= now && (rc == 1) == (reply != NULL));
        if (rc == 1)
            check_reply(reply, most);
        bytes += used;
        left -= used;
    }
    due__reader_free(reader);
    return 0;
}
