/* keys.h - which keys there are, which topics were met, and what a change does to them. */
#ifndef DUE__REDIS_KEYS_H
#define DUE__REDIS_KEYS_H

#include "redis/session/session.h"

/* A topic that was met. */
struct due__redis_topic {
    struct due__redis_topic *next; /* in its bucket */
    struct due__redis_topic *also; /* in the batch */
    uint64_t batch;                /* the batch that `also` and what follows are of */
    size_t adds, drops;            /* changes of it in the batch */
    size_t add, drop;              /* the first, + 1 */
    bool entered;                  /* stands in the `topics` hash */

    struct due__redis_topic *after[2]; /* in the chains of due__redis.enter */

    uint64_t read;  /* the pass of the load that has read it to its end, */
    uint64_t noted; /* and that is to read it besides what is listed */

    size_t key_len;
    size_t name_at; /* of the name, in key */
    char key[];     /* of its zset */
};

/* ---- names.c */
void due__redis_name_keys(struct due__redis *s);

/* ---- topic.c */
/* NULL: no memory. */
struct due__redis_topic *due__redis_topic(struct due__redis *s, const char *name, size_t len);
/* The zset of the dead as one more; NULL: no memory. */
struct due__redis_topic *due__redis_dead(struct due__redis *s);
void due__redis_topics_forget(struct due__redis *s);
void due__redis_topics_free(struct due__redis *s);

/* ---- change.c */
int64_t due__redis_score(int64_t ns);
/* Whether a job of the batch @number can be in the store from before it. */
bool due__redis_may_be_stored(const struct due__redis *s, due_id id, uint64_t number);
/* The job's sequence, if this opening made its id; else 0. */
uint64_t due__redis_sequence(const struct due__redis *s, due_id id);
/* Out of which zset the change takes the job, or may have to; and into which it puts it. */
bool due__change_leaves_topic(const struct due__redis *s, const due_change *c, uint64_t number);
bool due__change_enters_topic(const due_change *c);
/* It stands there already, at that time. */
bool due__change_stays(const struct due__redis *s, const due_change *c);
bool due__change_leaves_dead(const struct due__redis *s, const due_change *c, uint64_t number);
bool due__change_enters_dead(const due_change *c);
bool due__change_has_entry(const due_change *c);
/* A plain job that may have been stored with an entry before. */
bool due__change_is_stale(const struct due__redis *s, const due_change *c, uint64_t number);
bool due__change_frees_key(const due_change *c); /* it is taken no more */
bool due__change_takes_key(const due_change *c); /* by a live job, or it is kept */
bool due__change_keeps_key(const due_change *c); /* after its job is gone */
bool due__change_unkeeps_key(const struct due__redis *s, const due_change *c); /* not, or no more */
/* Of the changes of a batch those that one command is about. */
typedef bool due__redis_choice(const struct due__redis *s, const due_change *c, uint64_t number);
due__redis_choice due__choose_drops, due__choose_entries, due__choose_frees, due__choose_unkeeps;

#endif
