/* share_lab.h - writers of a shared queue, for tests of its scripts by themselves.
 *
 *     struct share s;
 *     share_begin(&s, server.socket, "q", 0);
 *     share_join(&s);
 *     share_topics(&s, "mail", NULL);
 *     share_put(&s, &(struct share_job){ .id = "...", .score = now }, 1);
 *     share_work(&s, NULL, 0, (struct share_claim){ .need = 1, .lease_us = 1000000, .wait = "a" });
 *     ... s.answer ...
 *     share_end(&s);
 *
 * Nothing here decides: each call is one EVALSHA, whose answer lies in s.answer.
 */
#ifndef SHARE_LAB_H
#define SHARE_LAB_H

#include <hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/share/scripts.h"

#define SHARE_ID      14
#define SHARE_MOST    256
#define SHARE_TOPICS  8
#define SHARE_SCRIPTS 17

/* A job as it is put, and as a claim tells it. */
struct share_job {
    char id[SHARE_ID + 1];
    int topic;          /* 1 is the first of those named */
    int64_t score;      /* put: when, in us */
    int64_t over;       /* claimed: the end of the lease that another let pass; 0: none */
    const char *record; /* NULL put: "record"; claimed: missing */
    const char *entry;  /* NULL or "": none */
    int is_long;        /* put: enter it in `b` */
    const char *key;    /* put: NULL: none */
    const char *from;   /* put: takes it over from that job; NULL: from none */
    const char *group;  /* put: NULL: none */
    int keeps;          /* put: it has had its room before */
};

/* What becomes of a job that was claimed: see work.lua. */
struct share_outcome {
    char kind;
    int topic;
    const char *id;
    int64_t lease;     /* the end with which it was claimed */
    int64_t score;     /* n o O b r: its score; e: how long; K O: its key is kept until then */
    const char *entry; /* n o O b t */
};

struct share_change {
    char kind;
    int topic;
    const char *id;
    int64_t believed; /* its score; -1: whichever */
    const char *was;  /* its attempts and failures, as in an entry; NULL or "": none */
    int64_t score;
    const char *entry; /* of c and x: a key */
};

struct share_claim {
    int need, extra;
    int64_t lease_us;
    const char *wait;
};

struct share_answer {
    char code;       /* D done; F fenced, L lost, P passed; J joined, others of join; E an error */
    char error[160]; /* */
    int64_t stamp, now;
    char status[SHARE_MOST + 1];
    int64_t lease, alarm, more, rang;
    int count;
    struct share_job job[SHARE_MOST];
    int heads;                   /* of work, what follows the jobs */
    char name[SHARE_TOPICS][64]; /* */
    int64_t head[SHARE_TOPICS];  /* */
    int64_t left, late, turn;    /* leave: writers; beat: overdue, and whether it took the turn, */
    int64_t room, capacity;      /* for how many there is room, of so many */
};

struct share {
    redisContext *link;
    redisContext *bell; /* NULL: does not listen */
    char socket[96];
    char queue[64];  /* what the keys begin with: due:{NAME}: */
    char prefix[80]; /* of channels */
    char sha[SHARE_SCRIPTS][41];
    char fence[80];
    char writer[24];
    char lane[2][32];  /* p, w */
    int64_t number[2]; /* of the last exchange */
    int64_t stamp;     /* highest seen */
    char topic[SHARE_TOPICS][64];
    int topics;
    char capacity[24]; /* join: from now on; "": as it is */
    int waits_room;    /* beat: it does */
    int shut;          /* put: there was no room for an earlier one */
    int by_rank;       /* join: the order is to be by priority; then: it is */
    struct share_answer answer;
    redisReply *reply;    /* the answer's bytes */
    struct share_told {   /* since share_rung() was called last */
        int times;        /* so often it was told: 0: not at all */
        int64_t stamp;    /* the highest */
        int64_t now_us;   /* when it was said last, as the server has it */
        int64_t alarm_us; /* the earliest */
    } told;
};

/* Jobs with keys or groups were put in, or a claim has met some: the plain scripts are not for
 * them.  Whoever makes the queue anew may clear it. */
extern int share_tied;

/* A fault in the scripts: up to two texts, as they stand there without comments and indentation,
 * become others in every script that has them. */
struct share_fault {
    const char *name;
    struct {
        const char *is, *becomes;
    } text[2];
};
extern const struct share_fault *share_fault; /* in all that is loaded from now on; NULL: none */
extern int share_faults_placed;               /* so many texts have been exchanged */

/* Connects and loads the scripts.  @clock: they read the time from a list of that name instead of
 * the server's clock (share_turn). */
void share_begin(struct share *s, const char *socket, const char *queue, const char *clock);
/* From now on put, work, edit and aside end with an error at the command of that number, from 1,
 * which is not done; 0: they do not any more.  @clock as above. */
void share_tear(struct share *s, const char *clock, int command);
void share_end(struct share *s);
void share_turn(struct share *s, const char *clock, int64_t us);
void share_topics(struct share *s, ...); /* those that the next calls name, ended by NULL */

void share_join(struct share *s); /* and takes what it is told: fence, writer; numbers begin anew */
void share_put(struct share *s, const struct share_job *jobs, int n);
void share_work(struct share *s, const struct share_outcome *done, int n, struct share_claim claim);
void share_edit(struct share *s, const struct share_change *changes, int n);
/* One of u v w: the record that it is believed to have, and the one that it gets. */
void share_amend(struct share *s, struct share_change change, const char *was, const char *record,
                 int is_long);
void share_beat_for(struct share *s, int64_t turn); /* which was nobody's for so long, in us */
static inline void share_beat(struct share *s)
{
    share_beat_for(s, 0);
}
void share_leave(struct share *s);
redisReply *share_census(struct share *s); /* the caller's */
/* At most @max of the first topic, behind this place (-1: the beginning); the caller's. */
redisReply *share_page(struct share *s, int max, int64_t score, const char *id);
void share_aside(struct share *s, const char *id); /* of the first topic */
/* The next exchange of this lane repeats its number. */
static inline void share_again(struct share *s, int lane)
{
    s->number[lane]--;
}

void share_listen(struct share *s);
/* How many rings came since it was last asked.  In s->told the earliest time at which it was told
 * to come, and the stamp of that, if there was any. */
int share_rung(struct share *s);

/* The script's text, the caller's, with another clock (NULL: not); it ends with an error at the
 * command of number @torn (0: not). */
char *share_text(const struct due__script *script, const char *clock, int torn, size_t *len);

/* One command of words, for looking and for spoiling.  The caller's reply. */
redisReply *share_ask(struct share *s, const char *format, ...);

#endif
