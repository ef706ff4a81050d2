/* ledger.h - the checker of the crash tests: what callers were told against what came back.
 *
 * It knows nothing of the library but the names of its errors.  A worker writes a line before and
 * after each call; the ledger reads them in the order in which they were written:
 *
 *     THREAD TIME enqueue? N AT PRIORITY TOPIC KEY POLICY [KEEP]
 *                                                         THREAD TIME enqueue! N ANSWER ID
 *     THREAD TIME dequeue?                                    THREAD TIME dequeue! ANSWER [WHAT]
 *     THREAD TIME reserve? LEASE                              THREAD TIME reserve! ANSWER [WHAT]
 *     THREAD TIME ack? ID                                     THREAD TIME ack! ID ANSWER
 *     THREAD TIME nack? ID DELAY                              THREAD TIME nack! ID ANSWER
 *     THREAD TIME bury? ID                                    THREAD TIME bury! ID ANSWER
 *     THREAD TIME kick? ID                                    THREAD TIME kick! ID ANSWER
 *     THREAD TIME cancel? ID                                  THREAD TIME cancel! ID ANSWER
 *     THREAD TIME move? ID AT                                 THREAD TIME move! ID ANSWER
 *     THREAD TIME update? ID N                                THREAD TIME update! ID ANSWER
 *     THREAD TIME find? KEY                                   THREAD TIME find! KEY ANSWER ID
 *     THREAD TIME list?                                       THREAD TIME list! ANSWER
 *     THREAD TIME clear?                                  THREAD TIME clear! ANSWER
 *     THREAD TIME revive?                                 THREAD TIME revive!
 *     THREAD TIME flush?                                      THREAD TIME flush! ANSWER
 *     THREAD TIME dead ID                between list? and list!, for each that is listed
 *     0 TIME settled ID ANSWER           a change nobody waited for was refused
 *     0 TIME close! DUE_OK               all other changes that it was told of are confirmed
 *     THREAD TIME mortal N               the job that was enqueued with N may die by itself
 *     THREAD TIME ranked N               it may have any priority from now on
 *     0 TIME shown ID            a queue that closes knows no more whether it has left
 *     0 TIME discarded ID N              it has left some time ago, carrying N, and nobody had it
 *
 * N is the number that a job carries, and its bytes follow from it; an update gives it another.
 * KEEP is for how long the key stays taken when the job is done, the same for all jobs of the key.
 * KEY is the number of a unique key, 0: none; POLICY is "refuse", "replace",
 * "earliest" (the job that has the key keeps what it carries) or "debounce".  Of an enqueue and a
 * find, ID is that of the job which has the key, and "-" if there is none.  Times are ns of the
 * wall clock, leases and delays ns.  WHAT was handed out is N ID PRIORITY TOPIC SOUND, where SOUND
 * is 1 if the payload is that of N, byte for byte.
 */
#ifndef LEDGER_H
#define LEDGER_H

#include <stdbool.h>
#include <stdint.h>

struct ledger;

struct ledger_verdict {
    uint64_t told;     /* enqueues that were confirmed */
    uint64_t handed;   /* hand-overs */
    uint64_t lost;     /* confirmed, never removed, and did not come back */
    uint64_t doubled;  /* came again after they were gone, or while they were leased */
    uint64_t early;    /* */
    uint64_t disorder; /* while nothing else happened */
    uint64_t phantom;  /* never given in, or refused, or with other bytes */
    uint64_t stale;    /* carried what an update or an enqueue had replaced */
    uint64_t risen;    /* dead and handed out, or listed among the dead and not dead */
    uint64_t keys;     /* two of one key at a time, or refused for one that was gone */
    uint64_t excused;  /* left the store for a dequeue that a kill cut short */
    uint64_t missing;  /* of those that a kill of the server and the client put at risk */
    uint64_t returned; /* likewise: had been removed, and came back */
};

struct ledger *ledger_new(void);
void ledger_free(struct ledger *l);
void ledger_hush(struct ledger *l); /* it counts what is wrong, and prints none of it */

/* A life of the worker begins.  @async: an answer is not yet a confirmation.  @alone: one thread
 * takes everything out, in order. */
void ledger_life(struct ledger *l, bool async, bool alone);
void ledger_line(struct ledger *l, const char *line);
/* It ends, at @time_ns. */
void ledger_death(struct ledger *l, int64_t time_ns);
/* Of several workers that want one queue another one owns it, from @time_ns on: as a life, but who
 * owned it may be answered still what he has asked before. */
void ledger_takeover(struct ledger *l, bool async, int64_t time_ns);
/* A worker that has these @n threads, from @first, was killed: they get no answers. */
void ledger_cut(struct ledger *l, unsigned first, unsigned n, int64_t time_ns);
/* Server and client were killed, and the level does not promise to keep what was confirmed. */
void ledger_risk(struct ledger *l);
/* Half a batch of a worker that is gone has landed: jobs may have lost their keys by it.  @whole:
 * only those of which nobody knows that they are there, as all others were written again since. */
void ledger_half(struct ledger *l, bool whole);
/* Everything has been taken out, the dead too: what has not come is not there. */
void ledger_balance(struct ledger *l);
/* The server makes way for an empty one: none of the jobs can be met again. */
void ledger_forget(struct ledger *l);

struct ledger_verdict ledger_verdict(const struct ledger *l);

#endif
