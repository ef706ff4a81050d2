/* share.h - the shared face of the Redis store: many processes, one queue.
 *
 * An exchange is planned as parts: each is one call of a script, with at most eight topics.  A part
 * has a number in its lane, by which the server knows it again, so a part in doubt is sent once
 * more under the same number.  docs/redis-layout.md says what lies where; the heads of the scripts
 * say what each takes and answers.
 *
 * Guards     I  set at join, then constant     C  only the call under way, one at a time
 *            B  the bell's lock                L  only listen(), one at a time
 */
#ifndef DUE__SHARE_H
#define DUE__SHARE_H

#include "due/store_shared.h"
#include "redis/share/scripts.h"
#include "redis/write/write.h"

#define DUE__SHARE_TOPICS  8
#define DUE__SHARE_CHANGES 256                /* most of one exchange */
#define DUE__SHARE_PARTS   100                /* 3 for each 8 topics, and a claim */
#define DUE__SHARE_CLAIM   1024               /* most jobs of one claim */
#define DUE__SHARE_LONG    ((size_t)16 << 10) /* a record over this is read by itself */
#define DUE__SHARE_FIXED   11                 /* keys of most scripts before the topics' */
#define DUE__SHARE_NAME    (DUE_TOPIC_LENGTH + 1)

enum due__share_kind { DUE__SHARE_EDIT, DUE__SHARE_PUT, DUE__SHARE_WORK };

/* Which jobs of a put may have room, as in put.lua. */
enum due__share_shut {
    DUE__SHUT_NONE = 0,    /* the first ones, as far as there is room */
    DUE__SHUT_ALL = 1,     /* none: an earlier one had none */
    DUE__SHUT_IF_FULL = 2, /* none, if there is a capacity */
    DUE__SHUT_NEVER = 3    /* all: others of them are in */
};

/* Changes of one part that stand together in its words: of one topic and one kind. */
struct due__share_group {
    size_t part;
    char letter;      /* as in work.lua and edit.lua; p: a put */
    size_t topic;     /* of the part's, from 1 */
    int64_t lease_us; /* of an extension */
    size_t first;     /* in due__share_plan.order */
    size_t n;
};

/* What an exchange consists of: a function of its arguments, made anew in each call of it. */
struct due__share_plan {
    const due_change *changes; /* */
    size_t n;                  /* */
    const struct due_claim *claim;
    size_t parts, groups;
    size_t put_from; /* puts stand in no part before this one */
    struct due__share_group group[DUE__SHARE_CHANGES];
    uint16_t order[DUE__SHARE_CHANGES]; /* changes by group */
    uint16_t in[DUE__SHARE_CHANGES];    /* the group of each change */
};

/* One call of a script. */
struct due__share_part {
    enum due__share_kind kind;
    bool claims;                          /* the claim is in it */
    bool plain;                           /* it was sent to a script that knows no groups, */
    bool whole;                           /* which has said that it is for the other one */
    size_t topics;                        /* */
    const char *topic[DUE__SHARE_TOPICS]; /* valid during the call */
    size_t changes;                       /* */

    /* What has become of it, from call to call. */
    uint64_t number;
    bool in_air;        /* sent, and no answer yet */
    bool doubt;         /* it may have been done, or may be done yet */
    bool voids;         /* its number is to be used up by nothing */
    bool over;          /* */
    int rc;             /* over: 0, or why it was refused */
    redisReply *answer; /* over and 0, or not looked at yet */
};

/* A job that is held: the token that the queue knows, and the end of its lease on the server. */
struct due__share_hold {
    due_id id;
    uint64_t held; /* 0: nothing stands here */
    int64_t end_us;
    int64_t until_us; /* when it was due, as it was claimed: released, it is again */
    bool tied;        /* it has a key or a group */
};

struct due__share_holds {
    struct due__share_hold *at;
    size_t room; /* a power of two, or 0 */
    size_t n;
};

/* Where rings are heard. */
struct due__share_bell {
    struct due__link *link; /* I */
    pthread_mutex_t lock;   /* I: from join on */
    char channel[192];      /* B */
    unsigned turn;          /* B: rises when the channel is another one */
    unsigned turn_asked;    /* L: the turn whose channel was asked for */
    bool begun;             /* L: and that has not been answered yet */
    unsigned heard;         /* L: the turn that is subscribed to; 0: none */
    int64_t heard_ns;       /* L: when something was heard last, monotonic */
    bool asked;             /* L: whether it lives */
    int64_t every_ns;       /* B: so long it may be quiet before it is asked */
};

enum due__share_state {
    DUE__SHARE_IDLE,
    DUE__SHARE_DOUBT, /* of the exchange @number something is in doubt, or done and not told */
    DUE__SHARE_DONE   /* it was told */
};

/* One of the two lanes. */
struct due__share_lane {
    char name[32];               /* C */
    uint64_t last;               /* C: number that the server has served */
    enum due__share_state state; /* C */
    uint64_t number;             /* C: of the exchange that was planned last */
    bool in_turn;                /* C: no put of a part comes before one of an earlier part */
    bool any;                    /* C: its claim is for any topic */
    size_t n_any;                /* C: and these were chosen */
    char any_topic[DUE__SHARE_TOPICS][DUE__SHARE_NAME];
    size_t n_found; /* C: topics of changes that did not say theirs, in turn */
    char *found[DUE__SHARE_CHANGES];
    struct due__share_plan plan; /* C */
    struct due__share_part part[DUE__SHARE_PARTS];
};

struct due__share {
    bool joined;          /* I: from join on */
    bool lost;            /* C: the server has lost us; to join anew */
    bool loaded;          /* C: the scripts, on this connection, */
    bool loaded_ranks;    /* C: and those of a queue in the order of priority */
    pthread_mutex_t lock; /* of what follows, and whose turn it is */
    pthread_cond_t free;  /* I */
    bool busy;            /* a call is under way */
    int last_lane;        /* of the last call */
    unsigned waiting[2];  /* calls of each lane that wait for their turn */

    char base[112];   /* I: what the keys begin with */
    size_t base_len;  /* I */
    char writer[24];  /* C: our name */
    uint64_t stamp;   /* C: highest seen */
    int64_t now_us;   /* C: the server's time in the last answer */
    int64_t renew_ns; /* C: between two beats, as many as shared the queue at the last one */

    uint64_t capacity; /* C: of the queue, as last heard; 0: none that is known */
    bool by_rank;      /* C: its order is by priority, as joining has told, or a conversion */
    bool grouped;      /* C: some of its jobs have groups, or had */

    struct due__share_lane lane[2]; /* C: put, work */
    struct due__share_part *air;    /* C: the part in the air, or NULL */
    size_t stale;                   /* C: answers to come before its, which nobody wants */

    size_t n_recent; /* C: topics in which something was due last */
    char recent[DUE__SHARE_TOPICS][DUE__SHARE_NAME];
    size_t n_waits; /* C: topics for which we may stand as waiting by name */
    char waits[DUE__SHARE_TOPICS][DUE__SHARE_NAME];

    struct due__share_holds holds; /* C */
    struct due__share_bell bell;
};

/* ---- holds.c */
/* NULL: it is not known. */
struct due__share_hold *due__hold_find(const struct due__share_holds *h, due_id id);
/* False: no memory.  Those whose lease ended before @old_us may be forgotten. */
bool due__hold_add(struct due__share_holds *h, struct due__share_hold hold, int64_t old_us);
void due__hold_remove(struct due__share_holds *h, due_id id);
/* How many of them had not ended when the server was last heard of. */
size_t due__holds_live(const struct due__share *h);

/* ---- plan.c */
/* Is it an exchange of lane work? */
bool due__share_is_work(const due_change *changes, size_t n, const struct due_claim *claim);
/* 0; DUE_EINVAL, DUE_ENOTSUP: no changes of a shared queue. */
int due__share_check(const due_change *changes, size_t n, const struct due_claim *claim);
void due__share_make_plan(struct due__share_lane *lane, const due_change *changes, size_t n,
                          const struct due_claim *claim);
/* The changes of a part of puts, in the order of the exchange: the first from @from on; n: none. */
size_t due__share_next_put(const struct due__share_plan *plan, size_t part, size_t from);
/* The groups of a part: the first from @from on; the number of groups: none. */
size_t due__share_next_group(const struct due__share_plan *plan, size_t part, size_t from);

/* ---- script.c */
void due__share_key(struct due__redis *s, const char *name, const char *more);
/* Numbers in one word, as struct.unpack() reads them: of one or two bytes, and doubles of eight.
 * In front are 34 bytes at most, then six of each group of changes, and two of each run in it. */
#define DUE__PACK_MOST (64 + 8 * DUE__SHARE_CHANGES)
struct due__pack {
    size_t len;
    unsigned char bytes[DUE__PACK_MOST];
};
void due__pack_small(struct due__pack *pack, uint64_t number, size_t bytes);
void due__pack_double(struct due__pack *pack, int64_t number);
/* The beginning of a call: @keys keys and @args other words follow. */
void due__share_call(struct due__redis *s, const struct due__script *script, size_t keys,
                     size_t args);
/* The same with the keys and words that most scripts have, and of put, work, edit and aside the
 * kind that this queue's order needs; @args more follow.  @more: numbers behind those that all
 * have; NULL: none. */
void due__share_call_as(struct due__redis *s, const struct due__script *script,
                        const struct due__share_lane *lane, uint64_t number,
                        const char *const *topics, size_t n_topics, const struct due__pack *more,
                        size_t args);
/* What an error of a script means. */
enum due__reply_class due__share_classify(struct due__redis *s, const redisReply *r);
/* The answer of a script that was refused: DUE_EFENCED, DUE_ELOST, or 0: it was not. */
int due__share_verdict(struct due__redis *s, const redisReply *r);
/* A whole number of an answer, at least @least.  False: it is none. */
bool due__share_number(const redisReply *r, int64_t least, int64_t *number);
/* Stamp and time begin each answer.  False: it makes no sense. */
bool due__share_stamp(struct due__redis *s, const redisReply *r, size_t least);

/* ---- talk.c */
/* Connected, with the scripts loaded, and one of the queue's writers; answers that were still to
 * come have come.  0; DUE_EAGAIN, also if something is in the air; or as exchange(). */
int due__share_up(struct due__redis *s, int64_t until_ns);
/* Let what is in the air come in.  0; DUE_EAGAIN; DUE_ESTORE: the link is down. */
int due__share_settle(struct due__redis *s, int64_t until_ns);
/* Send what was formatted, which has @n answers, and have them.  0: they are the caller's;
 * DUE_EAGAIN: time is up; DUE_ESTORE: the link is down; DUE_ENOMEM. */
int due__share_talk(struct due__redis *s, size_t n, redisReply **got, int64_t until_ns);
/* The link went down: what was in the air is in doubt. */
void due__share_cut(struct due__redis *s);
int due__share_load_scripts(struct due__redis *s, int64_t until_ns);
void due__share_forget(redisReply **got, size_t n);

/* ---- join.c */
#define DUE__SHARE_OWNED 1
/* 0; DUE__SHARE_OWNED: it is not shared, but has an owner, or had one; or an error. */
int due__share_join(struct due__redis *s, int64_t until_ns);
/* Which topics something is due in next. */
int due__share_read_heads(struct due__redis *s, int64_t until_ns);
int due__share_beat(struct due__redis *s, struct due_beat *beat, int64_t until_ns);
int due__share_leave(struct due__redis *s, int64_t until_ns);

/* ---- convert.c */
/* A queue that was taken over, and was not owned before, becomes so, whatever it was.  It may take
 * longer than until @until_ns, as long as the server answers. */
int due__share_fold(struct due__redis *s, int64_t until_ns);
/* It ended with @rc: hand the queue over, if it still is ours; what is to be said stays. */
void due__share_give_up(struct due__redis *s, int rc, int64_t until_ns);
/* Write that it is under way. */
int due__share_begin(struct due__redis *s, enum due__redis_mode mode, int64_t until_ns);
/* Must all of it be done once more, after what has ended with @rc?  @connects: how many connections
 * there had been. */
bool due__share_is_other(struct due__redis *s, uint64_t connects, int rc);
#define DUE__SHARE_ANEW   2  /* a step is not of the mode that the queue has: all begins anew, */
#define DUE__SHARE_ROUNDS 16 /* so often at most */
typedef int due__share_step(struct due__redis *s, void *ctx, int64_t until_ns);
/* One step of a conversion, made again if the connection was lost meanwhile. */
int due__share_insist(struct due__redis *s, due__share_step *step, void *ctx, int64_t until_ns);
/* The same of one that reads ahead: what is in the air stays there. */
int due__share_insist_ahead(struct due__redis *s, due__share_step *step, void *ctx,
                            int64_t until_ns);
/* The beginning of a script of a conversion, and its @keys; @args more words than these follow. */
void due__share_ours(struct due__redis *s, const struct due__script *script,
                     const char *const *keys, size_t n_keys, const char *const *topics,
                     size_t n_topics, size_t args);
/* Its end: sent, and answered, with the answer kept in the flight; or DUE__SHARE_ANEW. */
int due__share_done(struct due__redis *s, int64_t until_ns);

/* ---- index.c */
/* A queue that nobody owns any more, and nobody shares, becomes one that many share: the other way.
 * DUE_EBUSY: somebody owns it; 0, also if others share it by now: it is to be joined. */
int due__share_convert(struct due__redis *s, int64_t until_ns);

/* ---- format.c */
/* Write a part that is to be sent. */
int due__share_format(struct due__redis *s, struct due__share_lane *lane, size_t part);

/* ---- answer.c */
/* Is the answer that of the empty cancel by which a part was voided? */
bool due__share_is_void(const struct due__share_part *part);
/* Which jobs of a part of puts may have room. */
enum due__share_shut due__share_shut(const struct due__share_lane *lane, size_t part);
/* Does the answer of a part make sense? */
bool due__share_sane(struct due__redis *s, const struct due__share_part *part);
/* Tell what the parts have answered. */
int due__share_tell(struct due__redis *s, struct due__share_lane *lane, int *results,
                    due_store_visit_claimed *visit, void *ctx, struct due_exchange *answer,
                    int64_t until_ns);

/* ---- claimed.c */
/* The jobs that a part has claimed. */
int due__share_show(struct due__redis *s, const struct due__share_part *part,
                    due_store_visit_claimed *visit, void *ctx, struct due_exchange *answer,
                    int64_t until_ns);
/* Keep what a claim says of the topics in which something is due next. */
void due__share_note_heads(struct due__share *h, redisReply *const *at, size_t n);
void due__share_note_topic(struct due__share *h, const char *name, size_t len);

/* ---- exchange.c */
int due__share_exchange(struct due__redis *s, const due_change *changes, size_t n, uint64_t number,
                        int *results, const struct due_claim *claim, due_store_visit_claimed *visit,
                        void *ctx, struct due_exchange *answer, int64_t until_ns);

/* ---- look.c */
int due__share_find(struct due__redis *s, due_id id, due_store_visit *visit, void *ctx,
                    int64_t until_ns);
int due__share_holder(struct due__redis *s, const void *key, size_t len, due_id *id,
                      int64_t until_ns);
int due__share_dead(struct due__redis *s, size_t from, size_t max, due_store_visit *visit,
                    void *ctx, int64_t until_ns);
int due__share_page(struct due__redis *s, struct due_page *at, size_t max, due_store_visit *visit,
                    void *ctx, int64_t until_ns);
int due__share_census(struct due__redis *s, struct due_census_all *all,
                      int (*visit)(void *ctx, const struct due_census_topic *topic), void *ctx,
                      int64_t until_ns);
int due__share_processes(struct due__redis *s,
                         int (*visit)(void *ctx, const struct due_process_seen *process), void *ctx,
                         int64_t until_ns);

/* ---- people.c */
/* Say in the error of the opening who shares it. */
void due__share_say_who(struct due__redis *s, int64_t until_ns);
/* What `p` says of a process, and the end of that: when it was seen last. */
bool due__share_read_process(const redisReply *writer, const redisReply *text,
                             struct due_process_seen *seen, char host[256]);
/* The fields of a hash and their values.  As a talk; both are the caller's. */
int due__share_hash(struct due__redis *s, const char *name, redisReply **fields,
                    redisReply **values, int64_t until_ns);

/* ---- bell.c */
int due__bell_begin(struct due__redis *s);
void due__bell_rename(struct due__redis *s);
/* How often its connection is asked whether it lives, when nothing comes. */
void due__bell_every(struct due__redis *s, int64_t ns);
/* Subscribed: from then on no ring is missed unseen.  0; DUE_EAGAIN; DUE_EACCES. */
int due__bell_open(struct due__redis *s, int64_t until_ns);
int due__bell_listen(struct due__redis *s, struct due_heard *heard, int64_t until_ns);

/* ---- turn.c */
/* One call at a time, and the lanes in turn.  False: not by @until_ns. */
bool due__share_enter(struct due__share *h, int lane, int64_t until_ns);
void due__share_exit(struct due__share *h);
bool due__share_turn_begin(struct due__share *h);
void due__share_turn_end(struct due__share *h);

/* ---- verbs.c */
extern const struct due_shared_verbs due__share_verbs;
/* What the names of its keys begin with. */
void due__share_name(struct due__redis *s);
int due__share_verb_find(struct due__redis *s, due_id id, due_store_visit *visit, void *ctx,
                         int64_t until_ns);
void due__share_free(struct due__redis *s);

#endif
