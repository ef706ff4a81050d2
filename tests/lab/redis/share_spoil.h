/* share_spoil.h - keys of a shared queue, and what they may be instead of what they are. */
#ifndef SHARE_SPOIL_H
#define SHARE_SPOIL_H

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    char type; /* h, z, s */
} spoil_keys[] = {
    { "fence", 's' }, { "writers", 'h' }, { "c", 'h' },    { "h", 'z' },     { "w", 'z' },
    { "j", 'h' },     { "a", 'h' },       { "dead", 'z' }, { "b", 'h' },     { "topics", 'h' },
    { "wr", 'z' },    { "w:a", 'z' },     { "t:a", 'z' },  { "l:a", 'z' },   { "g:a", 'z' },
    { "jg", 'h' },    { "gh", 'h' },      { "g", 'z' },    { "k", 'h' },     { "kx", 'z' },
    { "jk", 'h' },    { "x", 'h' },       { "p", 'h' },    { "owner", 's' }, { "meta", 'h' },
    { "q", 'h' },     { "o:a", 'z' },     { "t:b", 'z' },  { "w:b", 'z' },
};

/* What becomes of a key: a script, of which KEY is the key. */
static const struct spoil {
    const char *name;
    const char *types; /* of keys of these */
    const char *script;
} spoils[] = {
    { "missing", "hzs", "" },
    { "a string", "hz", "redis.call('SET', KEY, 'x')" },
    { "a list", "hzs", "redis.call('RPUSH', KEY, 'x')" },
    { "a set", "hzs", "redis.call('SADD', KEY, 'x')" },
    { "a hash", "zs", "redis.call('HSET', KEY, 'x', 'y')" },
    { "a zset", "hs", "redis.call('ZADD', KEY, 1, 'x')" },
    { "a stream", "hzs", "redis.call('XADD', KEY, '*', 'x', 'y')" },
    { "empty values", "h", "EACH redis.call('HSET', KEY, was[i], '') end" },
    { "odd values", "h", "EACH redis.call('HSET', KEY, was[i], '?! \\255\\0 -1 ') end" },
    { "large numbers", "h", "EACH redis.call('HSET', KEY, was[i], '99999999999999999999') end" },
    { "an empty field besides", "h", "SAME redis.call('HSET', KEY, '', '')" },
    { "an empty text", "s", "redis.call('SET', KEY, '')" },
    { "an odd text", "s", "redis.call('SET', KEY, '?! \\255\\0')" },
    { "an empty member in front", "z", "SAME redis.call('ZADD', KEY, 0, '')" },
    { "an odd member in front", "z", "SAME redis.call('ZADD', KEY, 1, '?! \\255\\0')" },
    { "a long member", "z", "SAME redis.call('ZADD', KEY, 2, string.rep('x', 300))" },
    { "scores of minus infinity", "z", "EACH redis.call('ZADD', KEY, '-inf', was[i]) end" },
    { "scores of infinity", "z", "EACH redis.call('ZADD', KEY, '+inf', was[i]) end" },
    { "scores that are no whole numbers", "z",
      "EACH redis.call('ZADD', KEY, was[i + 1] / 3 + 0.3, was[i]) end" },
};

enum { SPOILS = sizeof spoils / sizeof spoils[0] };

enum { SPOIL_KEYS = sizeof spoil_keys / sizeof spoil_keys[0], SPOIL_TEXT = 1024 };

static inline void spoil_replace(char *text, size_t room, const char *what, const char *with)
{
    for (char *at = text; (at = strstr(at, what)) != NULL; at += strlen(with)) {
        memmove(at + strlen(with), at + strlen(what), strlen(at + strlen(what)) + 1);
        memcpy(at, with, strlen(with));
        cr_assert_lt(strlen(text), room);
    }
}

/* A script that does it to the key that is its only word. */
static inline void spoil_text(const struct spoil *s, char text[SPOIL_TEXT])
{
    char body[600];

    snprintf(body, sizeof body, "%s", s->script);
    spoil_replace(body, sizeof body, "SAME",
                  "for i = 1, #was, 2 do if type == 'hash' then "
                  "redis.call('HSET', KEY, was[i], was[i + 1]) else "
                  "redis.call('ZADD', KEY, was[i + 1], was[i]) end end");
    spoil_replace(body, sizeof body, "EACH", "for i = 1, #was, 2 do");
    spoil_replace(body, sizeof body, "KEY", "ARGV[1]");
    snprintf(text, SPOIL_TEXT,
             "local type = redis.call('TYPE', ARGV[1]).ok "
             "local was = type == 'hash' and redis.call('HGETALL', ARGV[1]) or "
             "type == 'zset' and redis.call('ZRANGE', ARGV[1], 0, -1, 'WITHSCORES') or {} "
             "redis.call('DEL', ARGV[1]) %s",
             body);
}

#endif
