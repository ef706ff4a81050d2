/* server.h - looking at a server and at the stored queues there, without owning one.
 *
 *   server.c    questions and answers
 *   keys.c      the keys of a queue, and its jobs page by page
 *   sharing.c   whether many processes share a queue, and who they are
 *   heads.c     whether what only a shared queue has is right
 *   repair.c    the only one that writes
 *
 * Threads  one
 */
#ifndef DUECTL_SERVER_H
#define DUECTL_SERVER_H

#include <hiredis.h>

#include "inspect/inspect.h"
#include "record/record.h"
#include "redis/link/link.h"
#include "redis/read/read.h"

/* ---- Questions and answers ------------------------------------------------------------------- */

struct ctl_server {
    struct due__link *link;
    char where[128];
    bool awaited; /* it was said that the server is waited for */
    bool strange; /* what stands under a key is not of the type that it should be */
};

/* 0, or an exit status: said why not. */
int ctl_server_open(struct ctl_server *s, const char *url);
/* The exit status when not everything could be looked at. */
int ctl_server_status(const struct ctl_server *s);
void ctl_server_close(struct ctl_server *s);

/* Send what was formatted on the link, and read @n answers.  False: said that there are none. */
bool ctl_server_go(struct ctl_server *s, size_t n, redisReply **answers);
void ctl_answers_free(size_t n, redisReply **answers);

/* One command of words that end with NULL.  The answer may be an error; NULL: said that there is
 * none. */
redisReply *ctl_server_ask(struct ctl_server *s, const char *const *words);
#define CTL_ASK(s, ...) ctl_server_ask((s), (const char *const[]){ __VA_ARGS__, NULL })

/* Is it of this type, and not an error?  If not, it is said what @what got instead. */
bool ctl_answer_is(const redisReply *answer, int type, const char *what);

/* A text of the server, as far as it can be shown. */
enum { CTL_SHOWN = 100 };
const char *ctl_shown(char shown[CTL_SHOWN], const char *text, size_t len);

/* The value of a line "name:value" of INFO, or an empty text. */
void ctl_info_value(const redisReply *info, const char *name, char *value, size_t room);

/* ---- The keys of a queue --------------------------------------------------------------------- */

struct ctl_keys {
    char base[128]; /* what all begin with */
    char meta[136], fence[136], owner[136], jobs[136], again[136], topics[136], aside[136];
    char dead[136], unique[136], kept[136];
    char writers[136], people[136], waits[136], rings[136], waits_room[136]; /* of a shared queue */
};

void ctl_keys_make(struct ctl_keys *k, const char *queue);

/* 0, or an exit status: said that there is no such queue. */
int ctl_queue_is_there(struct ctl_server *s, const struct ctl_keys *k, const char *queue);

/* Say to people what stands in the queue's own keys, and whether it can be read.  0, or an exit
 * status. */
struct ctl_head {
    uint64_t jobs, again, aside, dead, kept;
    bool owned;
    bool shared;        /* many processes share it, or it is between that and having an owner */
    bool settled;       /* the former */
    bool by_rank;       /* when it is shared, its order is by priority */
    uint64_t processes; /* that were seen within a day, if it is settled */
    char owner[256];    /* for people; "": none */
};
int ctl_head_read(struct ctl_server *s, const struct ctl_keys *k, const char *queue,
                  struct ctl_head *head);

/* The name of a topic; the dead stand as if they were one, without a name (NULL). */
struct ctl_text {
    const char *at;
    size_t len;
};

#define CTL_DEAD ((struct ctl_text){ NULL, 0 })

/* One argument of the command being formatted: the key of a topic. */
void ctl_topic_key(struct ctl_server *s, const struct ctl_keys *k, struct ctl_text topic);
/* The same of a key that is named by a letter: l or w of a topic of a shared queue. */
void ctl_key_of_topic(struct ctl_server *s, const struct ctl_keys *k, char of,
                      struct ctl_text topic);

/* Do many processes share it?  0, or an exit status: said why that cannot be told. */
int ctl_shared_read(struct ctl_server *s, const struct ctl_keys *k, bool *shared);

/* A member of a topic, as the walk found it. */
struct ctl_found {
    const redisReply *id;
    int64_t score;            /* microseconds since 1970 */
    const redisReply *record; /* nil: there is none */
    const redisReply *entry;  /* likewise */
    struct ctl_text topic;
};

/* Show every member of a topic; in a queue in use one may be shown twice, or not.  @visit answers
 * false to end it.  False: ended, or said what went wrong. */
typedef bool ctl_visit(void *ctx, const struct ctl_found *found);
bool ctl_walk(struct ctl_server *s, const struct ctl_keys *k, struct ctl_text topic,
              ctl_visit *visit, void *ctx);
/* The same of those of a shared queue that are out; a score is the end of a lease. */
bool ctl_walk_claimed(struct ctl_server *s, const struct ctl_keys *k, struct ctl_text topic,
                      ctl_visit *visit, void *ctx);
/* And of those that stand behind another of their group. */
bool ctl_walk_kept_back(struct ctl_server *s, const struct ctl_keys *k, struct ctl_text topic,
                        ctl_visit *visit, void *ctx);

/* Every element of a hash or zset, or (@key NULL) every key that matches, as *SCAN shows them; in
 * pages of them.  @add answers false to end it.  False: ended, or said what went wrong. */
typedef bool ctl_page(void *ctx, const redisReply *page);
bool ctl_scan(struct ctl_server *s, const char *command, const char *key, const char *match,
              ctl_page *add, void *ctx);

/* Read record and entry: as due__record_read(), and DUE_ENOENT: there is no record. */
int ctl_record_read(due_record *record, struct due__record_room *room, const redisReply *id,
                    const redisReply *bytes, const redisReply *entry);
/* Where a job of this record stands: in which topic, or among the dead, and how. */
bool ctl_stands_in(const due_record *record, struct ctl_text topic);
int64_t ctl_score_of(const due_record *record);
/* A score as the server says it; -1: none that a job can have. */
int64_t ctl_score_read(const redisReply *score);

/* ---- A shared queue ------------------------------------------------------------------------- */

/* What it has besides the jobs is looked at: heads of topics, places by priority, keys by job,
 * lengths.  What is wrong
 * is told, and counted in *@wrong.  False: said why not all of it was looked at. */
bool ctl_heads_check(struct ctl_server *s, const struct ctl_keys *k, const struct ctl_head *head,
                     uint64_t *wrong);

/* ---- Repair ---------------------------------------------------------------------------------- */

enum ctl_wrong {
    CTL_FINE_JOB,
    CTL_NOWHERE,   /* a sound record in no topic, nor among the dead */
    CTL_NO_RECORD, /* a member without a record */
    CTL_DAMAGED,   /* its bytes cannot be read as those of this job */
    CTL_NEWER,     /* of a later version: not touched */
    CTL_TWICE,     /* in more than one topic, or dead and not */
    CTL_SHIFTED,   /* in another topic than its own, or at another time */
    CTL_LEFTOVER,  /* an entry without a job */
    CTL_WRONGS
};

/* What one atomic look at a job has shown. */
struct ctl_finding {
    enum ctl_wrong wrong;
    due_id id;
    const redisReply *record;     /* nil: there is none */
    struct due__record_room room; /* what it was read into */
    struct ctl_text topic;        /* where it should stand, */
    int64_t score;                /* and how */
    const struct ctl_text *in;    /* topics that it stands in */
    size_t in_count;
    bool out; /* in one of them it is on a lease */
};

struct ctl_repair {
    struct ctl_server *server;
    const struct ctl_keys *keys;
    due_store *store; /* ours while it goes on */
    due_store *again; /* of a shared queue: by this it is so again afterwards; or NULL */
    struct due_store_info info;
    const char *queue;
    int64_t renewed_ns;
    char fence[64];
};

/* Become the owner of the queue, also of one that many processes shared.  False: said why not. */
bool ctl_repair_begin(struct ctl_repair *r, const char *url, const char *queue, bool shared);
/* It is shared again, if it was.  False: said why not. */
bool ctl_repair_end(struct ctl_repair *r);

/* Mend one job, or enter a topic; nothing is done if the queue is not ours any more.  False: said
 * why nothing was done. */
bool ctl_repair_job(struct ctl_repair *r, const struct ctl_finding *found);
bool ctl_repair_topic(struct ctl_repair *r, struct ctl_text topic, bool enter);
/* The key belongs to the job @id and to no other, or (NULL) it is free. */
bool ctl_repair_key(struct ctl_repair *r, struct ctl_text key, const due_id *id);

/* ---- Unique keys ----------------------------------------------------------------------------- */

/* A key, and whose. */
struct ctl_key {
    char *at; /* a copy */
    size_t len;
    due_id id;
};

struct ctl_key_list {
    struct ctl_key *key;
    size_t n, room;
};

struct ctl_unique {
    struct ctl_key_list live; /* of the jobs that are stored, */
    struct ctl_key_list held; /* as the server has whose each is, */
    struct ctl_key_list kept; /* and after their job is gone */
    uint64_t lost;            /* jobs that have lost theirs */
    uint64_t wrong, repaired;
};

/* A stored job was met.  False: no memory. */
bool ctl_unique_met(struct ctl_unique *u, const due_record *record);
/* Once all have been: whether every key is where it should be.  False: said why not all of them
 * could be looked at, or mended. */
bool ctl_unique_check(struct ctl_unique *u, struct ctl_server *s, const struct ctl_keys *k,
                      struct ctl_repair *repair);
void ctl_unique_free(struct ctl_unique *u);

#endif
