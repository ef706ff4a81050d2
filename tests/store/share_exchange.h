/* share_exchange.h - an exchange as a history has it: the inside of share_replay.h. */
#ifndef SHARE_EXCHANGE_H
#define SHARE_EXCHANGE_H

#include "store/share_replay.h"

/* A job that a claim has shown. */
struct replay_shown {
    due_id id;
    uint64_t held;
    int64_t lapsed_ns;
    uint32_t attempts;
    uint32_t failures;
    uint64_t content;
    bool unseen; /* its claimer has not seen it: only id, held and lapsed_ns are known */
};

struct replay_exchange {
    due_change *changes; /* their topics are copies, other bytes are left out: what they believed
                            the content to be is in mark_len, what it is to be in headers_len */
    int *results;
    size_t n;
    struct due_claim claim;
    char **topics; /* of the claim */
    bool claims;
    struct due_exchange answer;
    struct replay_shown *shown;
    size_t n_shown;
    size_t shown_room;
    int64_t asked_ns;    /* monotonic, of all processes; 0: not known */
    int64_t again_ns;    /* when it was sent last */
    int64_t answered_ns; /* 0: nobody has heard the answer, but it is known */
    bool known;          /* it took effect, and was answered so */
    uint64_t writer;     /* who asked; 0: not known */
    bool work;           /* in that lane */
    const char *file;    /* where it was read */
    unsigned line;
};

/* The exchange that begun last, and a new one behind it. */
struct replay_exchange *replay_last(struct replay *r);
struct replay_exchange *replay_new(struct replay *r, size_t n, bool claims);
/* Another job behind those that it has shown. */
struct replay_shown *replay_show(struct replay_exchange *x);
void *replay_need(void *memory);

#endif
