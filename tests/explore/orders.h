/* orders.h - one job and several who have to do with it: what each does, and what came of it. */
#ifndef DUE__EXPLORE_ORDERS_H
#define DUE__EXPLORE_ORDERS_H

#include "explore.h"
#include "shelf.h"

#define LARGE     66000u /* more than is copied under the lock */
#define VERBS_MAX 4u
#define NONE      9u /* of jobs: none of them */
#define ANY       8u /* or whichever */

/* Each text has its own length.  Jobs are numbered: X is there when they begin. */
enum text { TEXT_X = 3, TEXT_PUT = 60, TEXT_UPDATED = 80, TEXT_CHANGED = 90 };
enum { X, BY_FIRST, BY_SECOND, JOBS };

#define ORDERS_KEY "key"

enum verb {
    PUT_FIRST,
    PUT_SECOND,
    TAKE,
    RESERVE,
    GIVE_BACK, /* what RESERVE got, by the same thread */
    ACK,
    NACK,
    CANCEL,
    CANCEL_KEY,
    KICK,
    CHANGE,
    UPDATE
};

enum place { NOWHERE, WAITS, TAKEN, RESERVED, DEAD };

/* How it begins, and who does what. */
struct plan {
    enum place x;
    bool plain;    /* X has no key */
    bool keep;     /* X's key is kept when it is done */
    bool large;    /* so is X */
    bool early;    /* the first PUT's deadline is before that of X */
    bool two;      /* threads: the second does all verbs but the first, one after the other */
    unsigned what; /* of CHANGE: DUE_SET_* */
    enum due_key_policy policy[2];
    unsigned verbs;
    enum verb verb[VERBS_MAX];
    bool stored;
    bool async; /* what is answered 0 may be refused later */
};

/* A job as somebody got it, or as it is. */
struct item {
    enum place place;
    size_t len;
    size_t headers_len;
    int64_t at_ns;
};

/* What came of it. */
struct outcome {
    int rc[VERBS_MAX];
    unsigned named[2]; /* the job that a put names */
    struct item got;   /* by TAKE or RESERVE */
    struct item job[JOBS];
    unsigned owner; /* of the key */
    bool kept;      /* it is nobody's, and not to be had */
    bool returns;   /* X was in hand for a verb that failed, and comes back */
    bool revoked;   /* X was cancelled while it was reserved */
};

struct ledger {
    struct plan plan;
    due_queue *q;
    due_clock *clock; /* turned by hand; NULL: the explorer's */
    struct shelf shelf;
    due_id x;
    due_job held;
    due_job taken;
    struct item got; /* the same, as it was handed out */
    due_id id[2];
    int rc[VERBS_MAX];
};
extern struct ledger *ledger;

/* In setup: a queue, then X and the threads. */
void orders_open(struct plan plan, due_options o);
void orders_begin(void);

/* What came of it must be explained, and all that is left can be had. */
void orders_check(void);

/* The deadline that a PUT or CHANGE gives. */
int64_t order_at(const struct plan *p, enum verb verb);

/* Is @is what comes of @plan's verbs one after the other, in some order? */
bool orders_explain(const struct plan *plan, const struct outcome *is);

#endif
