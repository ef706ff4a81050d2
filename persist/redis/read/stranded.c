/* stranded.c - jobs that stand where only a shared queue has any: they wait again.
 *
 * A conversion empties the zsets of what is out and of what is kept back, topic by topic
 * (share/convert.c).  One of which it did not know, since `topics` was lost, is met by the sweep:
 * its jobs stand in none of the zsets of an owner (orphans.c).  They are nobody's damage, so they
 * are put where their records and entries say, and read.
 */
#include <string.h>

#include "redis/read/read.h"

/* The zset of the topic's jobs that are out (l), or kept back (g). */
static void put_key_of(struct due__redis *s, const struct due__redis_topic *t, char of)
{
    char key[DUE__REDIS_KEY + DUE_TOPIC_LENGTH];

    memcpy(key, t->key, t->key_len);
    key[t->name_at - 2] = of;
    due__link_bytes(s->link, key, t->key_len);
}

void due__redis_ask_stranded(struct due__redis *s, const struct due__redis_topic *t,
                             const redisReply *id)
{
    static const char of[] = { 'l', 'g' };

    for (size_t i = 0; i < sizeof of; i++) {
        due__link_command(s->link, 3);
        due__link_text(s->link, "ZSCORE");
        put_key_of(s, t, of[i]);
        due__link_bytes(s->link, id->str, (size_t)id->len);
    }
    due__redis_word(s, s->keys.again, 1, "HGET");
    due__link_bytes(s->link, id->str, (size_t)id->len);
}

bool due__redis_is_stranded(redisReply *const *answers)
{
    return answers[0]->type != REDIS_REPLY_NIL || answers[1]->type != REDIS_REPLY_NIL;
}

/* The commands for one. */
static int put_back(struct due__redis *s, const struct due__redis_stranded *job)
{
    struct due__record_room room;
    due_record record;
    struct due__redis_topic *to;
    static const char of[] = { 'l', 'g' };

    int rc = due__redis_read_job(s, NULL, &record, &room, job->id, job->record, job->entry);
    if (rc != 0)
        return rc;
    struct due__redis_topic *t = due__redis_topic(s, record.topic, strlen(record.topic));
    to = record.cause != 0 ? due__redis_dead(s) : t;
    if (t == NULL || to == NULL)
        return DUE_ENOMEM;
    due__link_command(s->link, 4);
    due__link_text(s->link, "ZADD");
    due__link_bytes(s->link, to->key, to->key_len);
    due__link_number(s->link,
                     due__redis_score(record.cause != 0 ? record.died_ns : record.until_ns));
    due__link_bytes(s->link, job->id->str, (size_t)job->id->len);
    for (size_t i = 0; i < sizeof of; i++) {
        due__link_command(s->link, 3);
        due__link_text(s->link, "ZREM");
        put_key_of(s, t, of[i]);
        due__link_bytes(s->link, job->id->str, (size_t)job->id->len);
    }
    if (to->read == s->pass) /* without them: once more */
        to->read = to->noted = 0;
    return due__redis_unread(s, to);
}

int due__redis_put_back(struct due__redis *s, const struct due__redis_stranded *jobs, size_t n,
                        int64_t until_ns)
{
    int rc = n > 0 ? due__flight_ready(s, DUE__FLIGHT_NONE, 0, until_ns) : 0;
    size_t put = 0;

    if (rc != 0 || n == 0 || !s->armed) /* not armed: they stay */
        return rc;
    due__redis_bare(s, "MULTI");
    for (size_t i = 0; i < n && rc != DUE_ENOMEM; i++) {
        rc = put_back(s, &jobs[i]);
        put += rc == 0; /* what cannot be read stays */
    }
    if (rc == DUE_ENOMEM) {
        due__link_forget(s->link);
        return rc;
    }
    rc = due__redis_transact(s, DUE__FLIGHT_ASIDE, 3 * put, 0, until_ns);
    if (rc != 0)
        return rc;
    s->writes++;
    due__flight_end(s);
    return 0;
}
