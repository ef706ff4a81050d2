/* owner.h - becoming the owner, staying it, and what the server is. */
#ifndef DUE__REDIS_OWNER_H
#define DUE__REDIS_OWNER_H

#include "redis/keys/keys.h"

/* What a survey found. */
struct due__redis_survey {
    bool fenced;           /* there is a fence, */
    bool ours;             /* and it is ours */
    uint64_t fence_writer; /* */
    char fence[DUE__REDIS_FENCE];
    bool owned; /* there is an owner key */
    char owner[DUE__REDIS_OWNER];
    int64_t owner_ms; /* left of its lease; -1: without end */
    bool meta;
    int64_t format, least_reader, partitions;
    enum due__redis_mode mode;
    bool same; /* the incarnation that we know */
    char incarnation[40];
    char server[48];      /* the start of the server that the last owner met; empty: it closed */
    char late[48];        /* with the next start after that one half a batch may land; or empty */
    uint64_t last_writer; /* the highest anywhere */
    bool numbered;        /* our writer's number is there */
    uint64_t number;
    int64_t server_us;
    size_t writers;
    uint64_t old_writers[DUE__REDIS_WRITERS]; /* the highest, falling */
    size_t stale_writers;
    uint64_t stale_writer[DUE__REDIS_WRITERS]; /* others, to be forgotten */
};

/* ---- begin.c */
/* The queue's names, and ours.  DUE_EINVAL: no name, or it is open. */
int due__redis_begin(struct due__redis *s, const struct due_store_open *how);
/* A nonce and an incarnation that nobody has had. */
void due__redis_draw(struct due__redis *s);
/* Connected to a server that can be used; else an error, and s->trouble says why. */
int due__redis_reach(struct due__redis *s, int64_t until_ns);
/* ---- owner.c */
int due__owner_write(char text[DUE__REDIS_OWNER]);
enum due__owner_life { DUE__OWNER_UNKNOWN, DUE__OWNER_LIVES, DUE__OWNER_DEAD };
enum due__owner_life due__owner_life(const char *text);
/* "process 12 on host a"; for people. */
void due__owner_show(const char *text, char *shown, size_t room);
/* The same apart.  False: it is of an unknown kind. */
bool due__owner_name(const char *text, char *host, size_t room, int64_t *pid);

/* ---- survey.c */
/* 0; DUE_EAGAIN: under way; DUE_ESTORE: the link is down; or what is wrong with the answers. */
int due__redis_survey(struct due__redis *s, bool all, struct due__redis_survey *w,
                      int64_t until_ns);
/* ---- claim.c */
int due__redis_take_over(struct due__redis *s, int64_t until_ns);
/* The server has not what it had: the queue is to put everything again. */
void due__redis_note_loss(struct due__redis *s);

/* Connect, as due__link_up(); if that takes long it is logged. */
int due__redis_connect(struct due__redis *s, bool *fresh, int64_t until_ns);
/* Processes share it, and one of them has lived lately. */
bool due__redis_is_shared(const struct due__redis_survey *w);
/* Sleep until the owner's lease may have ended, or for a while if the queue is shared.  0: look
 * again; DUE_EBUSY: time is up. */
int due__redis_await_owner(struct due__redis *s, const struct due__redis_survey *w,
                           int64_t until_ns);
/* May somebody have taken over unseen, since the lease may have ended? */
bool due__redis_lease_in_doubt(const struct due__redis *s);
/* Reached, the owner, and ready for a batch.  As ready(), but DUE_ELOST is left to s->lost. */
int due__redis_up(struct due__redis *s, int64_t until_ns);
int due__redis_renew(struct due__redis *s, int64_t *held_ns, int64_t until_ns);
int due__redis_hand_over(struct due__redis *s, int64_t until_ns);

/* ---- claim_script.c */
void due__script_claim(struct due__redis *s, const struct due__redis_survey *was,
                       const char *const *meta, size_t n_meta);

/* ---- durability.c */
int due__redis_probe(struct due__redis *s, bool opening, int64_t until_ns);

/* ---- torn_log.c */
/* Before a takeover from whom @was tells of: are we to be unsure? */
void due__redis_suspect(struct due__redis *s, const struct due__redis_survey *was);
/* The server tells which of its starts this is; empty: it does not.  If half a batch of a dead
 * owner may have landed with it, that is a loss, and the guard is gone. */
void due__redis_met(struct due__redis *s, const char *server);
/* What `meta` is to say of the server. */
const char *due__redis_server(const struct due__redis *s);
/* All that is stored was shown.  0, or an error: to be called again. */
int due__redis_all_read(struct due__redis *s, int64_t until_ns);

#endif
