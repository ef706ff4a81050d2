/* redis_user.h - the user of docs/redis-layout.md, who may do what the library needs and no more.
 * `redis_user.sh` compares.
 */
#ifndef REDIS_USER_H
#define REDIS_USER_H

/* clang-format off */
#define REDIS_USER_MAY \
    "+select", "+client|setname", "+ping", "+info", "+time", "+multi", "+exec", "+watch", \
    "+unwatch", "+wait", "+get", "+set", "+del", "+pexpire", "+pttl", "+hset", "+hsetnx", "+hget", \
    "+hmget", "+hdel", "+hlen", "+hkeys", "+zadd", "+zrem", "+zrange", "+zcount", "+zscan", \
    "+hscan", "+zscore", "+eval"
/* clang-format on */

#endif
