/* script.c - calls of scripts: the words with which all begin, and what all may answer. */
#include <string.h>

#include "redis/share/share.h"

void due__share_key(struct due__redis *s, const char *name, const char *more)
{
    const struct due__share *h = s->share;
    char key[DUE__REDIS_KEY];
    size_t name_len = strlen(name);
    size_t more_len = strlen(more);

    /* base is 112 at most, a name 7, a topic 255. */
    memcpy(key, h->base, h->base_len);
    memcpy(key + h->base_len, name, name_len);
    memcpy(key + h->base_len + name_len, more, more_len);
    due__link_bytes(s->link, key, h->base_len + name_len + more_len);
}

void due__share_call(struct due__redis *s, const struct due__script *script, size_t keys,
                     size_t args)
{
    due__link_command(s->link, 3 + keys + args);
    due__link_text(s->link, "EVALSHA");
    due__link_bytes(s->link, script->sha, sizeof script->sha - 1);
    due__link_number(s->link, (int64_t)keys);
}

/* Of one of those that are there in two kinds the one for this queue's order. */
static const struct due__script *kind_for(const struct due__share *h,
                                          const struct due__script *by_time)
{
    static const struct due__script *const kinds[][2] = {
        { &due__script_put_plain, &due__script_put_plain_by_rank },
        { &due__script_put, &due__script_put_by_rank },
        { &due__script_work_plain, &due__script_work_plain_by_rank },
        { &due__script_work, &due__script_work_by_rank },
        { &due__script_edit, &due__script_edit_by_rank },
        { &due__script_aside, &due__script_aside_by_rank },
    };

    for (size_t i = 0; h->by_rank && i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i][0] == by_time)
            return kinds[i][1];
    return by_time;
}

void due__pack_small(struct due__pack *pack, uint64_t number, size_t bytes)
{
    due__bytes_put(pack->bytes + pack->len, number, bytes);
    pack->len += bytes;
}

void due__pack_double(struct due__pack *pack, int64_t number)
{
    double value = (double)number;
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    due__pack_small(pack, bits, sizeof bits);
}

/* What all have, and @more. */
static void put_pack(struct due__redis *s, uint64_t number, size_t n_topics,
                     const struct due__pack *more)
{
    struct due__pack all;

    all.len = 0;
    due__pack_double(&all, (int64_t)number);
    due__pack_double(&all, (int64_t)s->share->stamp);
    due__pack_small(&all, n_topics, 1);
    if (more != NULL) {
        memcpy(all.bytes + all.len, more->bytes, more->len);
        all.len += more->len;
    }
    due__link_bytes(s->link, all.bytes, all.len);
}

static bool is_each(const char *key)
{
    return key[strlen(key) - 1] == ':';
}

static void put_each(struct due__redis *s, const char *key, const char *const *topics,
                     size_t n_topics)
{
    for (size_t i = 0; i < n_topics; i++)
        due__share_key(s, key, topics[i]);
}

void due__share_call_as(struct due__redis *s, const struct due__script *script,
                        const struct due__share_lane *lane, uint64_t number,
                        const char *const *topics, size_t n_topics, const struct due__pack *more,
                        size_t args)
{
    static const char *const fixed[DUE__SHARE_FIXED] = { "fence", "writers", "c", "h",
                                                         "w",     "j",       "a", "dead",
                                                         "b",     "topics",  "wr" };
    size_t keys = DUE__SHARE_FIXED + 3 * n_topics;

    script = kind_for(s->share, script);
    for (const char *const *key = script->behind; *key != NULL; key++)
        keys += is_each(*key) ? n_topics : 1;
    due__share_call(s, script, keys, 3 + n_topics + args);
    for (size_t i = 0; i < DUE__SHARE_FIXED; i++)
        due__share_key(s, fixed[i], "");
    put_each(s, "w:", topics, n_topics);
    put_each(s, "t:", topics, n_topics);
    put_each(s, "l:", topics, n_topics);
    for (const char *const *key = script->behind; *key != NULL; key++) {
        if (is_each(*key))
            put_each(s, *key, topics, n_topics);
        else
            due__share_key(s, *key, "");
    }
    due__link_text(s->link, s->fence);
    due__link_text(s->link, lane->name);
    put_pack(s, number, n_topics, more);
    for (size_t i = 0; i < n_topics; i++)
        due__link_text(s->link, topics[i]);
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* Redis 6.2 puts the error of a command in a script behind words of its own, and both say of a
 * command that the user must not run something of theirs.  Before Redis 7 a server may be told to
 * replicate scripts as they are, instead of what they do (lua-replicate-commands no); then none may
 * write that has read the clock.  There is no asking for that without CONFIG GET, which users need
 * not be allowed; so it is known by the error of the first such script, which has done nothing. */
enum due__reply_class due__share_classify(struct due__redis *s, const redisReply *r)
{
    static const char *const known[] = { "-OOM ", "-READONLY ", "-MISCONF ", "-NOREPLICAS ",
                                         "-NOPERM " };
    enum due__reply_class class = due__redis_classify(s, r);

    if (class != DUE__REPLY_WRONG)
        return class;
    if (strstr(r->str, "after non deterministic commands") != NULL)
        return DUE__REPLY_UNABLE;
    if (strstr(r->str, "The user executing the script can't") != NULL) {
        s->denied[0] = '\0';
        s->unknown = false;
        return DUE__REPLY_DENIED;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *at = strstr(r->str, known[i]);
        if (at == NULL)
            continue;
        redisReply inner = *r;
        inner.str = (char *)at + 1;
        inner.len = r->len - (size_t)(inner.str - r->str);
        return due__redis_classify(s, &inner);
    }
    return class;
}

int due__share_verdict(struct due__redis *s, const redisReply *r)
{
    if (r->type != REDIS_REPLY_ARRAY || r->elements == 0 || !due__reply_is_text(r->element[0]) ||
        r->element[0]->len != 1)
        return 0;
    switch (r->element[0]->str[0]) {
    case 'F':
        s->fenced = true;
        return DUE_EFENCED;
    case 'L':
    case 'P':
        return DUE_ELOST;
    default:
        return 0;
    }
}

bool due__share_number(const redisReply *r, int64_t least, int64_t *number)
{
    uint64_t digits;

    if (r->type == REDIS_REPLY_INTEGER)
        *number = r->integer;
    else if (due__reply_is_text(r) && due__reply_digits(r->str, (size_t)r->len, &digits) &&
             digits <= INT64_MAX)
        *number = (int64_t)digits;
    else
        return false;
    return *number >= least && *number <= INT64_MAX / 1000;
}

bool due__share_stamp(struct due__redis *s, const redisReply *r, size_t least)
{
    int64_t stamp;
    int64_t now_us;

    if (r->type != REDIS_REPLY_ARRAY || r->elements < least || least < 2 ||
        !due__share_number(r->element[0], 0, &stamp) ||
        !due__share_number(r->element[1], 0, &now_us))
        return false;
    if ((uint64_t)stamp > s->share->stamp)
        s->share->stamp = (uint64_t)stamp;
    s->share->now_us = now_us;
    return true;
}
