/* topic_settings.h - pauses and limits of topics, in the store.
 *
 * What holds back a topic belongs to no job.  It is read before the first job is, told by batches
 * of its own, and takes effect when such a batch has landed.  Of a queue that many processes share
 * share_ask.c sees to it.
 *
 * Guards     K  the key (sender.c)      D  the calls' lock      I  set at open
 *            A  atomic: see sender.c
 */
#ifndef DUE__TOPIC_SETTINGS_H
#define DUE__TOPIC_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/limit.h"

#define DUE__NO_TOPIC UINT32_MAX

struct due_queue;
struct due__commits;
struct due__submission;

/* What a call wants of a topic, or of several in a row. */
struct due__setting {
    struct due__setting *next;     /* D  in line */
    struct due__submission *a;     /* D  who waits for it; NULL: nobody does any more */
    uint32_t topic;                /* I  the first */
    uint32_t count;                /* I  and how many */
    int64_t paused;                /* I  as in due_change; -1: as it is */
    int64_t held_max;              /* I  likewise */
    struct due__limit_parts parts; /* K  of its first limit */
};

struct due__settings {
    bool kept;                  /* I  the store keeps them */
    struct due__setting *first; /* D  calls in line; the first is told first */
    struct due__setting *last;  /* D */
    bool begun;                 /* D  some of the first is in a batch, or has landed */
    uint32_t left;              /* A  G1: how many are in line; written under D */
    uint32_t landed;            /* K  topics of the first that have */
    uint32_t told;              /* K  topics in the batch under way */
    bool tells_again;           /* K  that is one of those: */
    bool read_again;            /* K  all are to be told again, once the store has shown its own */
    uint32_t again_at;          /* K  the next one of them, or DUE__NO_TOPIC */
    bool later;                 /* K  that was refused: the proxy tries again, later */
};

void due__settings_init(struct due__commits *c);
/* Before anybody else has the queue: read what is stored.  *@lost: the store says that it has lost
 * something, which is said once.  0, or an error. */
int due__settings_load(struct due_queue *q, struct due__commits *c, int64_t until_ns, bool *lost);
/* As the journal's. */
int due__settings_hold_back(struct due_queue *q, int topic, int64_t paused, int64_t held_max);

/* With the key, as all that follows: is anything to be told? */
bool due__settings_any(const struct due__commits *c);
/* Fill the batch now, which is empty; @rc: what the store has answered to whether it is ready.
 * False: there is nothing to be told. */
bool due__settings_fill(struct due_queue *q, int rc, int64_t until_ns);
/* That batch has ended; or it has not landed, as the store has lost it, and is to be made anew. */
void due__settings_end(struct due_queue *q, int rc);
void due__settings_back(struct due_queue *q);
/* One that is not in line. */
void due__setting_free(struct due_queue *q, struct due__setting *s);
/* Calls in line are told this. */
void due__settings_refuse(struct due_queue *q, int rc);
/* With the queue; in a forked child calls of its parent may stand there. */
void due__settings_free(struct due_queue *q);
/* The store has lost something: all are told again.  And: have they been? */
void due__settings_again(struct due__commits *c);
bool due__settings_mended(const struct due__commits *c);

#endif
