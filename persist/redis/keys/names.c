/* names.c - the names of the queue's keys. */
#include <stdio.h>
#include <string.h>

#include "redis/keys/keys.h"

void due__redis_name_keys(struct due__redis *s)
{
    struct due__redis_keys *k = &s->keys;
    struct {
        char *key;
        const char *end;
    } all[] = { { k->meta, "meta" },       { k->fence, "fence" }, { k->owner, "owner" },
                { k->writers, "writers" }, { k->jobs, "j" },      { k->again, "a" },
                { k->topics, "topics" },   { k->aside, "q" },     { k->dead, "dead" },
                { k->unique, "k" },        { k->kept, "kx" },     { k->topic, "t:" } };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        snprintf(all[i].key, DUE__REDIS_KEY, "%s:{%s}:%s", s->prefix, s->name, all[i].end);
    k->topic_len = strlen(k->topic);
}
