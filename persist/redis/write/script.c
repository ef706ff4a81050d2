/* script.c - removals from a full server, and pauses and limits of topics, which it would refuse.
 *
 * Over its maxmemory a server refuses whatever stands in a MULTI, removals and renewals too.  A
 * script is not refused, and may write anything once it has removed something.  So a queue on a
 * full server can be drained, held back, and taken over (claim_script.c); an owner uses scripts for
 * nothing else.  This one looks at the fence itself, and at the number too: it may come late.
 */
#include <string.h>

#include "redis/write/write.h"

/* ARGV: fence, writer, number, how many members; for each the number of its zset in KEYS, and its
 * id; then keys: the key, whose, and until when it is kept, or nothing. */
static const char remove_script[] = "if redis.call('GET',KEYS[1])~=ARGV[1] or "
                                    "tonumber(redis.call('HGET',KEYS[2],ARGV[2]) or 0)>="
                                    "tonumber(ARGV[3]) then return 0 end "
                                    "local keys=5+2*ARGV[4] "
                                    "for i=5,keys-1,2 do "
                                    "redis.call('ZREM',KEYS[tonumber(ARGV[i])],ARGV[i+1]) "
                                    "redis.call('HDEL',KEYS[3],ARGV[i+1]) "
                                    "redis.call('HDEL',KEYS[4],ARGV[i+1]) "
                                    "end "
                                    "for i=keys,#ARGV,3 do "
                                    "redis.call('HDEL',KEYS[5],ARGV[i]) "
                                    "redis.call('ZREM',KEYS[6],ARGV[i]) "
                                    "if ARGV[i+2]~='' then "
                                    "redis.call('HSET',KEYS[5],ARGV[i],ARGV[i+1]) "
                                    "redis.call('ZADD',KEYS[6],ARGV[i+2],ARGV[i]) "
                                    "end "
                                    "end "
                                    "redis.call('HSET',KEYS[2],ARGV[2],ARGV[3]) "
                                    "return 1";

/* What the arguments of a batch are. */
struct script {
    size_t topics, members, keys;
};

static struct script measure(const struct due__redis *s, const due_change *changes, size_t n,
                             uint64_t number)
{
    struct script m = { 0 };

    for (struct due__redis_topic *t = s->first; t != NULL; t = t->also) {
        m.topics++;
        m.members += t->drops;
    }
    for (size_t i = 0; i < n; i++) {
        m.members += due__change_leaves_dead(s, &changes[i], number);
        m.keys += due__change_frees_key(&changes[i]) || due__change_keeps_key(&changes[i]);
    }
    return m;
}

static void put_members(struct due__redis *s, const due_change *changes, size_t n, uint64_t number)
{
    int64_t key = 8;

    for (size_t i = 0; i < n; i++) {
        if (due__change_leaves_dead(s, &changes[i], number)) {
            due__link_number(s->link, 7);
            due__link_bytes(s->link, changes[i].record.id.byte, DUE_STORE_ID_BYTES);
        }
    }
    for (struct due__redis_topic *t = s->first; t != NULL; t = t->also, key++) {
        for (size_t i = t->drop; i != 0; i = s->order[i - 1]) {
            due__link_number(s->link, key);
            due__link_bytes(s->link, changes[i - 1].record.id.byte, DUE_STORE_ID_BYTES);
        }
    }
}

static void put_keys(struct due__redis *s, const due_change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const due_change *c = &changes[i];

        if (!due__change_frees_key(c) && !due__change_keeps_key(c))
            continue;
        due__link_bytes(s->link, c->record.key, c->record.key_len);
        due__link_bytes(s->link, c->record.id.byte, DUE_STORE_ID_BYTES);
        if (due__change_keeps_key(c))
            due__link_number(s->link, due__redis_score(c->key_kept_ns));
        else
            due__link_text(s->link, "");
    }
}

void due__script_remove(struct due__redis *s, const due_change *changes, size_t n, uint64_t number)
{
    struct script m = measure(s, changes, n, number);

    due__link_command(s->link, 3 + 7 + m.topics + 4 + 2 * m.members + 3 * m.keys);
    due__link_text(s->link, "EVAL");
    due__link_text(s->link, remove_script);
    due__link_number(s->link, (int64_t)(7 + m.topics));
    due__link_text(s->link, s->keys.fence);
    due__link_text(s->link, s->keys.writers);
    due__link_text(s->link, s->keys.jobs);
    due__link_text(s->link, s->keys.again);
    due__link_text(s->link, s->keys.unique);
    due__link_text(s->link, s->keys.kept);
    due__link_text(s->link, s->keys.dead);
    for (struct due__redis_topic *t = s->first; t != NULL; t = t->also)
        due__link_bytes(s->link, t->key, t->key_len);
    due__link_text(s->link, s->fence);
    due__link_number(s->link, (int64_t)s->writer);
    due__link_number(s->link, (int64_t)number);
    due__link_number(s->link, (int64_t)m.members);
    put_members(s, changes, n, number);
    put_keys(s, changes, n);
    due__redis_guard(s);
}
