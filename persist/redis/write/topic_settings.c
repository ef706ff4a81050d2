/* topic_settings.c - what holds back topics, written down; and on a full server, by a script.
 *
 * A server over its maxmemory refuses them as anything else.  But a topic that is paused has to be
 * resumed if its jobs are what fills the server, and paused if they are what must not run.  So they
 * are tried as a script then, as removals are (script.c): its first write is one that makes no
 * difference, behind which it may write anything.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "redis/write/write.h"

/* KEYS: fence, writers, topics.  ARGV: fence, writer, number; then topics and what is said of
 * each. */
static const char settings_script[] = "if redis.call('GET',KEYS[1])~=ARGV[1] or "
                                      "tonumber(redis.call('HGET',KEYS[2],ARGV[2]) or 0)>="
                                      "tonumber(ARGV[3]) then return 0 end "
                                      "redis.call('HDEL',KEYS[2],'') "
                                      "for i=4,#ARGV,2 do "
                                      "redis.call('HSET',KEYS[3],ARGV[i],ARGV[i+1]) "
                                      "end "
                                      "redis.call('HSET',KEYS[2],ARGV[2],ARGV[3]) "
                                      "return 1";

static size_t count_of(const due_change *changes, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += changes[i].kind == DUE_CHANGE_TOPIC;
    return count;
}

static void put_each(struct due__redis *s, const due_change *changes, size_t n)
{
    char value[32];

    for (size_t i = 0; i < n; i++) {
        const due_change *c = &changes[i];

        if (c->kind != DUE_CHANGE_TOPIC)
            continue;
        if (c->paused > 0 || c->held_max > 0)
            snprintf(value, sizeof value, "%d %" PRId64, c->paused > 0,
                     c->held_max > 0 ? c->held_max : 0);
        else
            snprintf(value, sizeof value, "0");
        due__link_text(s->link, c->record.topic);
        due__link_text(s->link, value);
    }
}

bool due__settings_only(const due_change *changes, size_t n)
{
    return n > 0 && count_of(changes, n) == n;
}

void due__settings_write(struct due__redis *s, const due_change *changes, size_t n)
{
    size_t count = count_of(changes, n);

    if (count == 0)
        return;
    due__redis_word(s, s->keys.topics, 2 * count, "HSET");
    s->statuses++;
    put_each(s, changes, n);
}

void due__script_settings(struct due__redis *s, const due_change *changes, size_t n,
                          uint64_t number)
{
    due__link_command(s->link, 3 + 3 + 3 + 2 * n);
    due__link_text(s->link, "EVAL");
    due__link_text(s->link, settings_script);
    due__link_number(s->link, 3);
    due__link_text(s->link, s->keys.fence);
    due__link_text(s->link, s->keys.writers);
    due__link_text(s->link, s->keys.topics);
    due__link_text(s->link, s->fence);
    due__link_number(s->link, (int64_t)s->writer);
    due__link_number(s->link, (int64_t)number);
    put_each(s, changes, n);
    due__redis_guard(s);
}
