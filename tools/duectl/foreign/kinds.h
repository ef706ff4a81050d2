/* kinds.h - what is known of each library: its lists, and how a job of them reads.
 *
 * Threads  one
 */
#ifndef DUECTL_FOREIGN_KINDS_H
#define DUECTL_FOREIGN_KINDS_H

#include "foreign/foreign.h"
#include "inspect/server.h"

/* What a list says of its jobs. */
enum ctl_foreign_state {
    CTL_FOREIGN_READY,   /* due */
    CTL_FOREIGN_HELD,    /* some worker has it, or had it when it died */
    CTL_FOREIGN_LATER,   /* */
    CTL_FOREIGN_RETRIED, /* it failed, and will be due once more */
    CTL_FOREIGN_DEAD     /* */
};

/* A list, the newest at its head; or a zset, by time. */
struct ctl_foreign_list {
    const char *name; /* the end of its key */
    enum ctl_foreign_state state;
    bool is_zset;
};

/* What is not carried over: counted by one command. */
struct ctl_foreign_rest {
    const char *name;
    const char *command; /* LLEN, ZCARD, SCARD */
    const char *what;    /* "completed tasks" */
    bool matters;        /* somebody has to see to it */
};

/* A key is BEFORE prefix BETWEEN queue BEHIND name. */
struct ctl_foreign_keys {
    const char *before, *between, *behind;
};

/* A job, as its list and its record have it. */
struct ctl_foreign_item {
    enum ctl_foreign_state state;
    const char *id;
    size_t id_len;
    double score;              /* of a zset; NAN: it was a list */
    redisReply *const *answer; /* what was asked for it */
};

enum { CTL_FOREIGN_ANSWERS = 2, CTL_FOREIGN_LOSSES = 8 };

/* The same as a job of ours. */
struct ctl_foreign_job {
    due_record record; /* but id, topic and times */
    due_retry retry;
    int64_t when_ns; /* when it is due, or died; CTL_UNDATED: nobody knows */
    unsigned lost;   /* bits: which of the kind's losses it has suffered */
    bool is_none;    /* it is no job at all, and nobody need be told */
    char reason[DUE_REASON_BYTES];
};

#define CTL_UNDATED (-1)

struct ctl_foreign;
struct ctl_foreign_kind {
    const char *name;   /* "asynq" */
    const char *prefix; /* the usual one */
    const char *job;    /* "task" */
    struct ctl_foreign_keys keys[2];
    size_t keys_count;
    const char *queues; /* a set with the names of all queues; NULL: there is none */
    const struct ctl_foreign_list *lists;
    size_t lists_count;
    const struct ctl_foreign_rest *rests;
    size_t rests_count;
    const char *losses[CTL_FOREIGN_LOSSES];

    size_t answers; /* to what ask() formats */
    void (*ask)(struct ctl_foreign *f, const redisReply *id);
    /* NULL: @job has it; or why it cannot be carried over. */
    const char *(*read)(const struct ctl_foreign_item *item, struct ctl_foreign_job *job);
};

extern const struct ctl_foreign_kind ctl_foreign_delayqueue;
extern const struct ctl_foreign_kind ctl_foreign_asynq;
extern const struct ctl_foreign_kind ctl_foreign_bullmq;

/* One argument of the command being formatted: a key of the present queue, and perhaps an id behind
 * it. */
void ctl_foreign_key(struct ctl_foreign *f, const char *name, const redisReply *id);
/* A command of a key and @n words. */
void ctl_foreign_ask(struct ctl_foreign *f, const char *command, const char *name,
                     const redisReply *id, const struct ctl_text *words, size_t n);
#define CTL_FOREIGN_WORD(text)   \
    {                            \
        (text), sizeof(text) - 1 \
    }

/* Nanoseconds since 1970 of that many units; CTL_UNDATED: that is no time. */
int64_t ctl_foreign_time(double units, int64_t unit_ns);
/* A text that is a whole number from 0 to @most; -1: it is none. */
int64_t ctl_foreign_number(const redisReply *text, int64_t most);

#endif
