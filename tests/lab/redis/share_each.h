/* share_each.h - a shared queue that has some of everything, made anew by one command: on it every
 * call of share_calls.h is tried, on servers, and with keys, that are not as they should be.
 *
 * Of the jobs those named id() are what the calls are about.  Those named by() are bystanders, none
 * of which is due before FAR_US: no call changes anything of them.
 */
#ifndef SHARE_EACH_H
#define SHARE_EACH_H

#include "lab/redis/share_group_case.h"

#define MOVED_ENTRY "01234567890123456789attempts" /* what stands there is compared */
#define EACH_CLOCK  "clock{q}"                     /* in the queue's slot */
#define EACH_SAVED  "saved{q}"
#define EACH_SHOWN  "shown{q}"
#define FAR_US      (T0 + INT64_C(50000000))
#define OVER_US     (T0 + INT64_C(1000000000)) /* all is due, all leases are over */

static struct share three; /* it waits, and hears */
static struct share each_base[3];
static int64_t each_lease; /* of what `two` holds */

static struct share *const each_writers[] = { &one, &two, &three };

static inline const char *by(int n)
{
    static char ids[100][SHARE_ID + 1];

    snprintf(ids[n], sizeof ids[n], "by%012d", n);
    return ids[n];
}

/* ---- The queue ------------------------------------------------------------------------------- */

static inline void each_writer(struct share *s)
{
    share_begin(s, server.socket, "q", EACH_CLOCK);
    if (s == &one)
        share_turn(s, EACH_CLOCK, T0);
    s->by_rank = by_rank;
    if (s == &one)
        snprintf(s->capacity, sizeof s->capacity, "1000");
    share_join(s);
    cr_assert_eq(s->answer.code, 'J', "%s", s->answer.error);
    share_topics(s, "a", "b", "c", NULL);
}

/* A put names the topics that it has jobs for, all else here names three. */
static inline void each_send(struct share_job j)
{
    static const char *const names[] = { "a", "a", "b", "c" };

    share_topics(&one, names[j.topic], NULL);
    j.topic = 1;
    share_put(&one, &j, 1);
    share_topics(&one, "a", "b", "c", NULL);
}

static inline void each_put(struct share_job j)
{
    each_send(j);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    cr_assert_str_empty(one.answer.status);
}

static inline struct share_job each_by(int n, int topic)
{
    struct share_job j = { .topic = topic, .score = FAR_US + n };

    memcpy(j.id, by(n), SHARE_ID);
    return j;
}

static inline void each_put_held(void)
{
    struct share_job key = job(10, T0 - 90);
    struct share_job front = grouped(11, T0 - 80, "i");
    struct share_job behind = grouped(12, T0 - 70, "i");

    each_put(job(9, T0 - 100));
    key.key = "k10";
    each_put(key);
    each_put(front);
    each_put(behind);
    each_put(job(16, T0 - 60));
    share_work(&two, NULL, 0, (struct share_claim){ .need = 4, .lease_us = 100000000 });
    cr_assert_eq(two.answer.count, 4, "%s", two.answer.error);
    each_lease = two.answer.lease;
    struct share_job held = { .topic = 1, .score = T0 - 50 };
    memcpy(held.id, by(17), SHARE_ID);
    each_put(held);
    share_work(&one, NULL, 0, (struct share_claim){ .need = 1, .lease_us = 200000000 });
    cr_assert_eq(one.answer.count, 1);
    struct share_change revoke = { 'c', 1, id(16), -1, NULL, 1, NULL };
    share_edit(&one, &revoke, 1);
    cr_assert_str_eq(one.answer.status, "o");
}

static inline void each_put_dead(void)
{
    each_put(job(13, T0 - 40));
    share_work(&two, NULL, 0, (struct share_claim){ .need = 1, .lease_us = LEASE });
    finish(&two, (struct share_outcome){ 'b', 1, id(13), two.answer.lease, T0 - 30, "dead" });
    struct share_job j = { .topic = 1, .score = T0 - 40 };
    memcpy(j.id, by(14), SHARE_ID);
    each_put(j);
    share_work(&two, NULL, 0, (struct share_claim){ .need = 1, .lease_us = LEASE });
    finish(&two, (struct share_outcome){ 'b', 1, by(14), two.answer.lease, T0 - 20, "dead" });
}

static inline void each_put_waiting(void)
{
    struct share_job key = job(2, T0 - 9);
    struct share_job by_key = each_by(6, 1);
    struct share_job by_front = each_by(7, 1);
    struct share_job by_behind = each_by(8, 1);
    struct share_job by_long = each_by(15, 1);
    struct share_job by_entry = each_by(5, 1);
    struct share_job other = job(20, T0 - 5);

    key.key = "k2";
    by_key.key = "y0000k6";
    by_front.group = by_behind.group = "h";
    by_long.is_long = 1;
    by_long.record = "long";
    by_entry.entry = MOVED_ENTRY;
    other.topic = 2;
    each_put(job(1, T0 - 10));
    each_put(key);
    each_put(grouped(3, T0 - 8, "g"));
    each_put(grouped(4, T0 - 7, "g"));
    each_put(other);
    each_put(by_entry);
    each_put(by_key);
    each_put(by_front);
    each_put(by_behind);
    each_put(by_long);
    each_put(each_by(21, 2));
    each_put(each_by(22, 3));
}

/* What no script of these has left: kept keys, bytes set aside, who waits. */
static inline void each_put_besides(void)
{
    DO("HSET due:{q}:k old %s gone %s", id(90), id(91));
    DO("ZADD due:{q}:kx %lld old %lld gone", (long long)OVER_US, (long long)T0 - 1);
    DO("HSET due:{q}:q %s bytes", id(92));
    DO("HSET due:{q}:topics a 0 b %s c %s", "0 5", "1 0");
    DO("ZADD due:{q}:w %lld %s", (long long)6000000000000000 + T0, three.writer);
    DO("ZADD due:{q}:w:a %lld %s", (long long)6000000000000000 + T0, three.writer);
    DO("ZADD due:{q}:wr %lld %s", (long long)6000000000000000 + T0, three.writer);
    DO("ZREM due:{q}:h c");
    struct share_change unknown = { 'c', 1, id(99), -1, NULL, 0, NULL };
    share_edit(&one, &unknown, 1); /* in `c` */
    cr_assert_str_eq(one.answer.status, "u");
}

/* What is kept of bystanders in each key, as text: the lines in which one is named.  Answers that a
 * lane has had are nothing of theirs. */
#define EACH_SHOW                                                                       \
    "local function show(key) local type, lines = redis.call('TYPE', key).ok, {} "      \
    "  if key == 'due:{q}:c' or key == 'due:{q}:writers' then return '' end "           \
    "  local all = type == 'hash' and redis.call('HGETALL', key) or "                   \
    "    type == 'zset' and redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') or {} "      \
    "  for i = 1, #all, 2 do local line = all[i] .. ' ' .. all[i + 1] "                 \
    "    if string.find(line, 'y0000', 1, true) then lines[#lines + 1] = line end end " \
    "  table.sort(lines) return table.concat(lines, '\\n') end "

static inline void each_save(void)
{
    DO("EVAL %s 0",
       EACH_SHOW "for _, key in ipairs(redis.call('KEYS', 'due:{q}:*')) do "
                 "  redis.call('HSET', '" EACH_SAVED "', key, redis.call('DUMP', key)) "
                 "  redis.call('HSET', '" EACH_SHOWN "', key, show(key)) end");
    for (int i = 0; i < 3; i++)
        each_base[i] = *each_writers[i];
}

static inline void each_begin(void)
{
    for (int i = 0; i < 3; i++)
        each_writer(each_writers[i]);
    share_listen(&three);
    each_put_dead();
    each_put_held();
    each_put_waiting();
    each_put_besides();
    each_save();
}

static inline void each_end(void)
{
    for (int i = 0; i < 3; i++)
        if (each_writers[i]->link != NULL)
            share_end(each_writers[i]);
    redis_server_stop(&server);
}

/* All is as it was at the beginning. */
static inline void each_restore(void)
{
    DO("EVAL %s 0", "for _, key in ipairs(redis.call('KEYS', 'due:{q}:*')) do "
                    "  redis.call('DEL', key) end "
                    "local saved = redis.call('HGETALL', '" EACH_SAVED "') "
                    "for i = 1, #saved, 2 do redis.call('RESTORE', saved[i], 0, saved[i + 1]) end "
                    "redis.call('PEXPIRE', 'due:{q}:owner', 60000)");
    for (int i = 0; i < 3; i++) {
        redisReply *reply = each_writers[i]->reply;
        redisContext *bell = each_writers[i]->bell;
        *each_writers[i] = each_base[i];
        each_writers[i]->reply = reply;
        each_writers[i]->bell = bell;
    }
    share_turn(&one, EACH_CLOCK, T0);
    (void)share_rung(&three);
}

/* This key is. */
static inline void each_put_right(const char *key)
{
    DO("EVAL %s 0 due:{q}:%s",
       "redis.call('DEL', ARGV[1]) local was = redis.call('HGET', '" EACH_SAVED "', ARGV[1]) "
       "if was then redis.call('RESTORE', ARGV[1], 0, was) end",
       key);
}

/* The keys in which something of a bystander is another, but that one and those in @may. */
static inline redisReply *each_changed(const char *key, const char *may)
{
    return share_ask(&one, "EVAL %s 0 due:{q}:%s %s",
                     EACH_SHOW
                     "local all, changed = redis.call('HGETALL', '" EACH_SHOWN "'), '' "
                     "local was = {} for i = 1, #all, 2 do was[all[i]] = all[i + 1] end "
                     "for _, key in ipairs(redis.call('KEYS', 'due:{q}:*')) do "
                     "  was[key] = was[key] or '' end "
                     "for key, shown in pairs(was) do local now = show(key) "
                     "  if now ~= shown and key ~= ARGV[1] and not string.find(ARGV[2], "
                     "    ' ' .. string.sub(key, 9) .. ' ', 1, true) then "
                     "    changed = changed .. key .. ' was:\\n' .. shown .. '\\nis:\\n' .. now "
                     "  end end return changed",
                     key, may);
}

#endif
