/* share_group_case.h - what the tests of groups by the scripts share: jobs of topic "a" that have
 * one, and what has to be so of all groups.
 */
#ifndef SHARE_GROUP_CASE_H
#define SHARE_GROUP_CASE_H

#include "lab/redis/share_case.h"

static inline struct share_job grouped(int n, int64_t score, const char *group)
{
    struct share_job j = job(n, score);

    j.group = group;
    return j;
}

static inline void put_grouped(int n, int64_t score, const char *group)
{
    struct share_job j = grouped(n, score, group);

    share_put(&one, &j, 1);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
}

/* So many jobs of one group, one after the other from @first on, due since then. */
static inline void put_chain(int first, int n)
{
    for (int i = 0; i < n; i++)
        put_grouped(first + i, T0 - 100 + i, "g");
}

static inline const char *end(struct share *s, char kind, int n, int64_t lease, int64_t score)
{
    return finish(s, (struct share_outcome){
                         .kind = kind, .id = id(n), .lease = lease, .score = score, .entry = "e" });
}

static inline const char *edit_one(char kind, int n, int64_t score)
{
    struct share_change c = { kind, 1, id(n), -1, NULL, score, "" };

    share_edit(&one, &c, 1);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    return one.answer.status;
}

static inline void expect_claims(const int *jobs, int n)
{
    claim(&two, 200);
    cr_assert_eq(two.answer.count, n);
    for (int i = 0; i < n; i++)
        cr_expect_eq(strncmp(two.answer.job[i].id, id(jobs[i]), SHARE_ID), 0, "%s, not %d",
                     two.answer.job[i].id, jobs[i]);
}

#define DO(...) freeReplyObject(share_ask(&one, __VA_ARGS__))
#define CLAIMS(...) \
    expect_claims((const int[]){ __VA_ARGS__ }, (int)(sizeof(int[]){ __VA_ARGS__ } / sizeof(int)))
#define CLAIMS_NONE() cr_expect_eq(claim(&two, 200)->count, 0)
#define LEFT()        COUNT("EXISTS due:{q}:jg due:{q}:gh due:{q}:g due:{q}:g:a")
#define KEPT()        COUNT("ZCARD due:{q}:g:a")

/* Every group has one in front, who is in t or l, and nobody else is there. */
static inline void check_groups(void)
{
    static const char script[] =
        "local function k(n) return 'due:{q}:' .. n end local all = {} "
        "for _, z in ipairs({'t:a', 'l:a', 'g:a'}) do "
        "  for _, id in ipairs(redis.call('ZRANGE', k(z), 0, -1)) do "
        "    local group = redis.call('HGET', k('jg'), id) "
        "    if group then all[group] = all[group] or {front = 0, kept = 0} "
        "      if z == 'g:a' then all[group].kept = all[group].kept + 1 "
        "      else all[group].front = all[group].front + 1 "
        "        local who = redis.call('HGET', k('gh'), group) "
        "        if not who or string.sub(who, 1, 14) ~= id then return 'another is in front' end "
        "      end end end end local n, groups = 0, 0 "
        "for _, c in pairs(all) do n = n + c.kept groups = groups + 1 "
        "  if c.front ~= 1 then return 'in front are ' .. c.front end end "
        "if redis.call('ZCARD', k('g')) ~= n then return 'g has others than g:TOPIC' end "
        "if redis.call('HLEN', k('gh')) ~= groups then return 'gh has others' end return ''";
    redisReply *r = share_ask(&one, "EVAL %s 0", script);

    cr_expect_eq(r->len, 0u, "%s", r->str);
    freeReplyObject(r);
}

#endif
