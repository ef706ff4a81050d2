/* share_model.h - a shared store as plain as can be: an array of jobs, and all rules about them.
 *
 * What nobody can know from outside, the answer tells: a job that was cancelled while it was held,
 * and whose lease is over, is gone once a claim has come to it, and no other word is said of that.
 */
#ifndef SHARE_MODEL_H
#define SHARE_MODEL_H

#include "due/store_shared.h"

#include <stdbool.h>

enum state { GONE, WAITS, HELD, DEAD };

struct model_job {
    due_id id;
    const char *topic;
    enum state state;
    int64_t at;    /* WAITS: due then; HELD: the lease ends; DEAD: since; in grains */
    int64_t until; /* HELD: what it would be if it waited */
    uint64_t held;
    uint32_t attempts;
    uint32_t failures;
    uint64_t content;
    const void *group;
    size_t group_len; /* 0: none */
    bool passed;      /* it has the group's pass */
    bool revoked;     /* HELD: it was cancelled meanwhile; once its lease is over it may be gone: a
                         claim that came to it has ended it */
    bool was_over;    /* revoked: its lease may have been over, before the clock was set back */
};

/* What holds back a topic. */
struct model_topic {
    const char *name;
    bool paused;
    int64_t held_max;
};

#define MODEL_TOPICS 16

struct model_key {
    const void *bytes;
    size_t len;
    due_id id;     /* whose it is */
    int64_t until; /* in grains, that job is gone, and it is kept; 0: it lives */
    bool was_over; /* kept: it may have been over, before the clock was set back */
};

#define MODEL_KEYS 32

struct model {
    struct model_job *jobs;
    size_t n;
    struct model_topic topics[MODEL_TOPICS];
    size_t n_topics;
    struct model_key keys[MODEL_KEYS]; /* those that are had */
    size_t n_keys;
    int64_t grain_ns;
    uint64_t capacity;
    bool by_rank;
    bool more; /* a queue uses it: content is more than is known here, and may have changed unseen;
                  and a topic that is not said is looked up before */
    bool shut; /* an earlier put of the exchange had no room */
};

struct model_job *model_find(struct model *m, due_id id);
struct model_topic *model_topic(struct model *m, const char *name);
int64_t model_grains(const struct model *m, int64_t ns); /* rounded up */
int64_t model_now(const struct model *m, int64_t now_ns);
/* What one change answers; @rc: what was answered, which counts where nobody knows. */
int model_change(struct model *m, const due_change *c, int64_t now_ns, int rc);
bool model_is_due(const struct model *m, const struct model_job *j, int64_t now_ns);
/* The clock, which may have shown that, is set back. */
void model_set_back(struct model *m, int64_t peak_ns);
/* May a claim have ended it? */
bool model_maybe(const struct model *m, const struct model_job *j, int64_t now_ns);
void model_end(struct model *m, struct model_job *j, int64_t kept_ns);
/* Which job of a topic is claimed next, if all are there that may be gone; and may it be that? */
struct model_job *model_first_due(struct model *m, const char *topic, int64_t now_ns);
bool model_is_next(struct model *m, const struct model_job *j, int64_t now_ns);

#endif
