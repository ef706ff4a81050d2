/* reply.c - what a reply is: its shape, and what an error means. */
#include "redis/resp/reply.h"

#include <string.h>

/* ---- Shapes ---------------------------------------------------------------------------------- */

bool due__reply_is_text(const redisReply *r)
{
    return r != NULL && r->type == REDIS_REPLY_STRING;
}

bool due__reply_is_array(const redisReply *r, size_t elements)
{
    return r != NULL && r->type == REDIS_REPLY_ARRAY && r->elements == elements;
}

bool due__reply_is_texts(const redisReply *r)
{
    if (r == NULL || r->type != REDIS_REPLY_ARRAY)
        return false;
    for (size_t i = 0; i < r->elements; i++)
        if (!due__reply_is_text(r->element[i]))
            return false;
    return true;
}

bool due__reply_is_fields(const redisReply *r, size_t elements)
{
    if (!due__reply_is_array(r, elements))
        return false;
    for (size_t i = 0; i < elements; i++)
        if (!due__reply_is_text(r->element[i]) && r->element[i]->type != REDIS_REPLY_NIL)
            return false;
    return true;
}

bool due__reply_digits(const char *text, size_t len, uint64_t *number)
{
    uint64_t n = 0;

    if (len == 0 || len > 19)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    *number = n;
    return true;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Beginnings of error replies.  The first that fits counts. */
static const struct {
    const char *begin;
    enum due__reply_class class;
} meanings[] = {
    { "LOADING", DUE__REPLY_AGAIN },
    { "BUSY", DUE__REPLY_AGAIN },
    { "UNKILLABLE", DUE__REPLY_AGAIN },
    { "TRYAGAIN", DUE__REPLY_AGAIN },
    { "CLUSTERDOWN", DUE__REPLY_AGAIN },
    { "MASTERDOWN", DUE__REPLY_AGAIN },
    { "NOREPLICAS", DUE__REPLY_AGAIN },
    { "ERR max number of clients", DUE__REPLY_AGAIN },
    { "READONLY", DUE__REPLY_READONLY },
    { "UNBLOCKED", DUE__REPLY_READONLY },
    { "MOVED", DUE__REPLY_ELSEWHERE },
    { "ASK", DUE__REPLY_ELSEWHERE },
    { "OOM", DUE__REPLY_FULL },
    { "MISCONF", DUE__REPLY_DISK },
    { "NOAUTH", DUE__REPLY_DENIED },
    { "WRONGPASS", DUE__REPLY_DENIED },
    { "NOPERM", DUE__REPLY_DENIED },
    { "DENIED", DUE__REPLY_DENIED },
    { "ERR unknown command", DUE__REPLY_DENIED },
    { "ERR invalid password", DUE__REPLY_DENIED },
    { "ERR Client sent AUTH", DUE__REPLY_DENIED },
    { "ERR AUTH", DUE__REPLY_DENIED },
    { "NOSCRIPT", DUE__REPLY_NOSCRIPT },
    { "EXECABORT", DUE__REPLY_ABORTED },
};

/* A whole word: BUSY is not BUSYKEY. */
static bool begins(const redisReply *reply, const char *word)
{
    size_t len = strlen(word);

    return reply->len >= len && memcmp(reply->str, word, len) == 0 &&
           (reply->len == len || reply->str[len] == ' ');
}

enum due__reply_class due__reply_classify(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ERROR)
        return DUE__REPLY_FINE;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (begins(reply, meanings[i].begin))
            return meanings[i].class;
    }
    return DUE__REPLY_WRONG;
}

bool due__reply_is_unknown(const redisReply *reply)
{
    static const char begin[] = "ERR unknown command";

    return reply->type == REDIS_REPLY_ERROR && (size_t)reply->len >= sizeof begin - 1 &&
           memcmp(reply->str, begin, sizeof begin - 1) == 0;
}

bool due__reply_is_other_type(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && begins(reply, "WRONGTYPE");
}

void due__reply_command(const redisReply *reply, char name[DUE__REPLY_COMMAND])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz|";
    const char *at = reply->type == REDIS_REPLY_ERROR ? strpbrk(reply->str, "'`") : NULL;
    size_t n = at != NULL ? strspn(at + 1, letters) : 0;

    if (n >= DUE__REPLY_COMMAND || (n > 0 && at[1 + n] != *at))
        n = 0;
    memcpy(name, n > 0 ? at + 1 : "", n);
    name[n] = '\0';
}
