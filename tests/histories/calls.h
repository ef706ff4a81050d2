/* calls.h - what the processes of a history called, and heard: the public calls of a queue.
 *
 * Beside the log of its exchanges (share_log.h) such a process has one of its calls, a line each
 * when one begins and when it ends:
 *
 *     c NUMBER TIME VERB CONTENT ID TOKEN    it begins; what is not there is 0
 *     h NUMBER TIME ID TOKEN CONTENT DEADLINE   it hands out a job
 *     a NUMBER TIME RESULT ID TOKEN          it ends
 *
 * Times are CLOCK_MONOTONIC, CONTENT a name for the bytes of a job: each enqueue has others.
 */
#ifndef CALLS_H
#define CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/job.h"
#include "store/share_plant.h"

enum call_verb {
    CALL_ENQUEUE,  /* with no key, or one that refuses */
    CALL_REPLACE,  /* a job with its key gets other bytes */
    CALL_EARLIEST, /* and may stay as it is */
    CALL_UPDATE,   /* the same of one that is named: these four have bytes */
    CALL_RESERVE,
    CALL_DEQUEUE,
    CALL_ACK,
    CALL_NACK,
    CALL_SNOOZE,
    CALL_BURY,
    CALL_EXTEND,
    CALL_CANCEL,
    CALL_MOVE,  /* a reschedule, a promote, a kick */
    CALL_HANDED /* a job, by a reserve or a dequeue */
};

struct call {
    const char *file; /* that of the exchanges of its process */
    unsigned number;
    unsigned line;
    enum call_verb verb;
    bool for_good;       /* HANDED: by a dequeue */
    int64_t asked_ns;    /* HANDED: of the call that did */
    int64_t answered_ns; /* 0: nobody has heard the answer */
    int rc;
    due_id id;
    uint64_t token;
    uint64_t content;
    int64_t deadline_ns;
};

struct calls {
    struct call *call;
    size_t n;
    size_t room;
};

/* The calls in a file, whose process has written its exchanges into @file.  False: a line says why
 * not. */
bool calls_read(struct calls *all, const char *path, const char *file);
void calls_free(struct calls *all);
/* Do callers have heard what the exchanges say?  These are sorted, and right (replay_check()).
 * NULL, or what is wrong. */
const char *calls_check(struct calls *all, const struct replay *exchanges);

extern const struct replay_planted call_plants[];
/* One of these somewhere.  False: there is no such fault, or no place for it. */
bool calls_plant(struct calls *all, const char *name, uint64_t seed);

#endif
