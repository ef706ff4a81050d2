/* histories.h - the inside of histories.c: one round, its processes, and what is done to them.
 *
 * A round has a folder.  In it are `round`, which says what the check has to know, `control`, which
 * all its processes share as memory, and a log for each life of each process.
 */
#ifndef HISTORIES_H
#define HISTORIES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lab/fault_proxy.h"
#include "lab/redis/redis_server.h"
#include "store/share_frame.h"
#include "store/share_log.h"

#define HISTORY_PROCESSES 4
#define HISTORY_QUEUE     "histories"
#define HISTORY_AHEAD     (2 * sizeof(int64_t))

/* Shared by the processes of a round. */
struct history_control {
    uint64_t seed;
    uint64_t capacity; /* 0: none */
    int by_rank;
    char server[96];             /* its socket, past the proxies */
    volatile int stop;           /* end in order */
    volatile int64_t skew_ns[8]; /* each one's CLOCK_REALTIME is so much ahead */
    volatile uint64_t steps[8];
    volatile uint64_t lost[8];   /* times that one had to join anew */
    volatile uint64_t writer[8]; /* which it is */
};

struct history_control *history_control_map(const char *folder, bool create);

#define HISTORY_FENCED 4 /* how a process ends that was turned out */

/* ---- process.c: one of the processes.  What main() returns. */
int history_process(const char *folder, int index, unsigned life);
/* ---- caller.c: one that calls a queue.  Likewise. */
int history_caller(const char *folder, int index, unsigned life);
/* A frame whose steps are written down, of a process that has joined; no server but this one. */
bool history_join(struct sharing *t, struct replay *log, const char *url,
                  struct history_control *shared);
/* The next calls of clock_gettime(CLOCK_REALTIME) in this process are so much ahead. */
void history_skew(volatile int64_t *skew_ns);

/* ---- memory.c: what the server itself says */
/* Writes into the log what the lane's last answer was, if that has a higher stamp than @older (with
 * @only, if it has just that one).  False: it was not written. */
bool history_remember(const char *socket, uint64_t writer, bool work, uint64_t older, uint64_t only,
                      int log);
/* A number that a command of words answers; -1: it does not. */
int64_t history_number(const char *socket, const char *const *words);
#define HISTORY_NUMBER(socket, ...) \
    history_number(socket, (const char *const[]){ __VA_ARGS__, NULL })
/* The server's time in us, and the highest stamp that it has given. */
int64_t history_time(const char *socket);
uint64_t history_stamp(const char *socket);
/* Lets the server be busy for so long. */
void history_busy(const char *socket, unsigned ms);

/* ---- round.c */
struct history_round {
    char folder[160];
    uint64_t seed;
    uint64_t random;
    int64_t ns;      /* how long */
    bool keep;       /* the folder, also if nothing was wrong */
    bool calls;      /* its processes call a queue (caller.c) */
    unsigned faults; /* 1 << each that may happen */
    unsigned done[32];
    struct history_control *control;
    struct redis_server server;
    struct fault_proxy *proxy[HISTORY_PROCESSES];
    pid_t pid[HISTORY_PROCESSES];
    unsigned life[HISTORY_PROCESSES];
    int log;                 /* what happened to the server */
    volatile int64_t *ahead; /* so much its clock is: seconds, and nanoseconds behind them */
    int64_t most_ahead_ns;   /* and was once */
    int64_t base_ns;         /* so much it was ahead of CLOCK_MONOTONIC */
    bool torn;               /* its log ended in the middle of a script: nothing can be said */
};

enum history_said { HISTORY_RIGHT, HISTORY_WRONG, HISTORY_MISSING };

/* All of it; the folder stays if anything was wrong. */
enum history_said history_run(struct history_round *r, size_t *exchanges);
/* What the logs in a folder say, with a fault planted in them (NULL: none).  NULL: it is right. */
#define HISTORY_NOT_PLANTED "nothing can be planted"
const char *history_check(const char *folder, const char *plant, uint64_t seed, size_t *exchanges);

void history_clear(const char *folder); /* it goes, with what is in it */

void history_spawn(struct history_round *r, int i);
/* A process that was killed: what nobody heard is asked of the server, and another one comes. */
void history_replace(struct history_round *r, int i);
void history_restart(struct history_round *r); /* the server, which does not run */
/* It has ended by itself, since it was turned out: of an exchange that it had begun nobody knows
 * more than the file @told of its lane has (memory.c), which was written before that.  False: that
 * does not tell. */
bool history_replace_fenced(struct history_round *r, int i, const char *const told[2], bool sure);
void history_forget(struct history_round *r); /* and will come back with nothing */
uint64_t history_below(struct history_round *r, uint64_t n);

/* ---- faults.c */
const char *history_fault_name(unsigned i); /* NULL: behind the last one */
/* One of them, drawn. */
void history_strike(struct history_round *r);
/* Is what was confirmed lost with one of them? */
bool history_fault_loses(unsigned faults);
unsigned history_fault(const char *name, size_t len); /* 0: there is no such one */

/* ---- others.c: what others do */
void history_evict(struct history_round *r); /* one process turns another one out */
void history_turn(struct history_round *r);  /* the server's clock is set */
void history_turn_by(struct history_round *r, int64_t by_ns);

#endif
