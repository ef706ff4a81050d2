/* scripts.h - what the test of the ledger is made of: a life and what is taken out after it. */
#ifndef SCRIPTS_H
#define SCRIPTS_H

#include <stddef.h>

#include "ledger.h"

/* What is not as usual in a script: */
#define ASYNC      1  /* the first life is */
#define RISK       2  /* the server dies with it, at a level that may lose what was confirmed */
#define HALF       4  /* half a batch of it lands with the next start of the server */
#define WHOLE      16 /* everything was written again before that */
#define TAKEN      8  /* another worker owns the queue from 1000 on, thread 2 is of the first one */
#define ASYNC_THEN 32 /* the second life is */

struct script {
    const char *name;
    const char *first;  /* lines of a life that is killed at 1000 */
    const char *second; /* of the life that takes everything out */
    unsigned how;
    struct ledger_verdict want;
};

/* Thread 1 enqueues the job N, whose id is idN, without a key or with key 7. */
#define BARE(n, at)                "1 1 enqueue? " n " " at " 0 0 0 refuse\n"
#define ASK(n, at, policy)         "1 1 enqueue? " n " " at " 0 0 7 " policy "\n"
#define PUT(n, at)                 BARE(n, at) "1 2 enqueue! " n " DUE_OK id" n "\n"
#define ADD(n, at, policy, answer) ASK(n, at, policy) "1 2 enqueue! " n " " answer "\n"
#define KEYED(n, at)               ADD(n, at, "refuse", "DUE_OK id" n)
/* The same of a key that is kept for long after its job. */
#define KEEPS(n, at, policy, id) \
    "1 8 enqueue? " n " " at " 0 0 7 " policy " 5000\n1 8 enqueue! " n " DUE_OK " id "\n"
/* Thread 2 asks and is told, of job id1 unless it is said. */
#define SAYS(verb, answer) "2 6 " verb "? id1\n2 7 " verb "! id1 " answer "\n"
#define UPDATE(n, answer)  "2 6 update? id1 " n "\n2 7 update! id1 " answer "\n"
#define HAS(n, id)         "2 6 reserve? 90\n2 7 reserve! DUE_OK " n " " id " 0 0 1\n"
#define HELD               "2 6 reserve? 5000\n2 7 reserve! DUE_OK 1 id1 0 0 1\n"
#define FLUSH              "3 8 flush?\n3 9 flush! DUE_OK\n"
#define MOVE(at)           "2 6 move? id1 " at "\n2 7 move! id1 DUE_OK\n"
#define REFUSED            "0 1700 settled id1 DUE_ECLOSED\n"
#define CLOSED             "0 1800 close! DUE_OK\n"
#define CLEAR              "2 6 clear? -1\n2 7 clear! DUE_OK\n"
#define FIND(answer)       "1 8 find? 7\n1 9 find! 7 " answer "\n"
#define OUT(n, id, t)      "1 1500 dequeue?\n1 " t " dequeue! DUE_OK " n " " id " 0 0 1\n"
#define OUT_1(t)           OUT("1", "id1", t)
#define LIST(ids)          "1 1600 list?\n" ids "1 1600 list! DUE_OK\n"
#define DEAD_1             "1 1600 dead id1\n"
#define KICK_1             "1 1700 kick? id1\n1 1700 kick! id1 DUE_OK\n"
#define BURIED             PUT("1", "5") HAS("1", "id1") SAYS("bury", "DUE_OK")

/* scripts_keys.c: of jobs with unique keys. */
extern const struct script key_scripts[];
extern const size_t key_scripts_n;

#endif
