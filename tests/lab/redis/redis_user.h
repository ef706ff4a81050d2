/* redis_user.h - the user of docs/redis-layout.md, who may do what the library needs and no more;
 * and what else is said to a server.  `redis_user.sh` compares with the page and with the code.
 */
#ifndef REDIS_USER_H
#define REDIS_USER_H

/* clang-format off */
#define REDIS_USER_MAY \
    "+select", "+client|setname", "+ping", "+info", "+time", "+multi", "+exec", "+watch", \
    "+unwatch", "+wait", "+get", "+set", "+del", "+pexpire", "+pttl", "+hset", "+hsetnx", "+hget", \
    "+hmget", "+hdel", "+hlen", "+hkeys", "+zadd", "+zrem", "+zrange", "+zcount", "+zscan", \
    "+hscan", "+zscore", "+eval"

/* What a shared queue needs besides, and its channels. */
#define REDIS_SHARED_MAY \
    "+evalsha", "+script|load", "+publish", "+subscribe", "+zmscore", "+zrangebyscore", "+zcard", \
    "+zremrangebyrank", "+exists", "+hexists"

/* What needs no permission, what may be refused, and what only the command duectl says. */
#define REDIS_USER_BESIDES "auth", "config|get", "hgetall", "scan", "zcard"

/* The commands with options, and these; of AUTH, with a user, it is an argument's name. */
#define REDIS_USER_OPTIONS \
    "auth username", "hscan COUNT", "scan COUNT", "scan MATCH", "set PX", "zrange WITHSCORES", \
    "zscan COUNT"
/* clang-format on */

#endif
