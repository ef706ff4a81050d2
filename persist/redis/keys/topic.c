/* topic.c - the topics that were met: the names of their zsets, and what a batch has of
 * them. */
#include <stdlib.h>
#include <string.h>

#include "redis/keys/keys.h"

static size_t hash_of(const char *name, size_t len)
{
    uint64_t sum = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < len; i++)
        sum = (sum ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
    return (size_t)(sum ^ (sum >> 32));
}

static bool grow(struct due__redis_topics *t)
{
    size_t buckets = t->buckets == 0 ? 64 : t->buckets * 4;
    struct due__redis_topic **fresh = calloc(buckets, sizeof(struct due__redis_topic *));

    if (fresh == NULL)
        return false;
    for (size_t i = 0; i < t->buckets; i++) {
        struct due__redis_topic *topic = t->bucket[i];
        while (topic != NULL) {
            struct due__redis_topic *next = topic->next;
            size_t to = hash_of(topic->key + topic->name_at, topic->key_len - topic->name_at);
            topic->next = fresh[to & (buckets - 1)];
            fresh[to & (buckets - 1)] = topic;
            topic = next;
        }
    }
    free(t->bucket);
    t->bucket = fresh;
    t->buckets = buckets;
    return true;
}

struct due__redis_topic *due__redis_topic(struct due__redis *s, const char *name, size_t len)
{
    struct due__redis_topics *t = &s->topics;
    size_t prefix = s->keys.topic_len;
    size_t hash = hash_of(name, len);
    struct due__redis_topic *topic;

    if (t->count >= t->buckets && !grow(t) && t->buckets == 0)
        return NULL;
    struct due__redis_topic **at = &t->bucket[hash & (t->buckets - 1)];
    for (topic = *at; topic != NULL; topic = topic->next)
        if (topic->key_len == prefix + len && memcmp(topic->key + prefix, name, len) == 0)
            return topic;
    topic = calloc(1, sizeof *topic + prefix + len + 1);
    if (topic == NULL)
        return NULL;
    memcpy(topic->key, s->keys.topic, prefix);
    memcpy(topic->key + prefix, name, len);
    topic->key_len = prefix + len;
    topic->name_at = prefix;
    topic->next = *at;
    *at = topic;
    t->count++;
    return topic;
}

struct due__redis_topic *due__redis_dead(struct due__redis *s)
{
    size_t len = strlen(s->keys.dead);

    if (s->dead != NULL)
        return s->dead;
    s->dead = calloc(1, sizeof *s->dead + len + 1);
    if (s->dead == NULL)
        return NULL;
    memcpy(s->dead->key, s->keys.dead, len);
    s->dead->key_len = s->dead->name_at = len;
    s->dead->entered = true;
    return s->dead;
}

/* The server has lost the list of them.  What batches would have entered is forgotten when they are
 * formatted anew: none of them is under way any more. */
void due__redis_topics_forget(struct due__redis *s)
{
    for (size_t i = 0; i < s->topics.buckets; i++)
        for (struct due__redis_topic *t = s->topics.bucket[i]; t != NULL; t = t->next)
            t->entered = false;
}

void due__redis_topics_free(struct due__redis *s)
{
    for (size_t i = 0; i < s->topics.buckets; i++) {
        struct due__redis_topic *topic = s->topics.bucket[i];
        while (topic != NULL) {
            struct due__redis_topic *next = topic->next;
            free(topic);
            topic = next;
        }
    }
    free(s->dead);
    s->dead = NULL;
    free(s->topics.bucket);
    s->topics = (struct due__redis_topics){ 0 };
}
