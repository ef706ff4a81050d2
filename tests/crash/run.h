/* run.h - one worker and one server of the crash loops: started, listened to, killed.
 *
 * What the worker says goes to the ledger, and what the loops themselves want to know of it is kept
 * here.  Between the two stands the fault proxy.
 *
 * Threads  one
 */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "due/due.h"
#include "lab/fault_proxy.h"
#include "ledger.h"
#include "lab/redis/redis_server.h"

#define RUN_LINE     512
#define RUN_KNOWN    90 /* jobs that the next worker is told of */
#define RUN_PATIENCE DUE_S(30)

enum victim { CLIENT, SERVER, BOTH };

struct run {
    const char *worker_path;
    const char *level;
    uint64_t random;
    int only;       /* this victim; -1: any */
    bool rewrite;   /* --kill rewrite */
    unsigned each;  /* --each; 0: at random */
    unsigned step;  /* cycles so far */
    unsigned shift; /* of what that begins with */
    struct redis_server server;
    struct fault_proxy *proxy;
    char proxy_path[112];
    char url[160]; /* what the worker is told: the proxy, or the path of a file */
    char known_path[112];
    struct ledger *ledger;
    /* The worker. */
    pid_t pid;
    int out; /* its lines */
    int in;  /* its orders */
    unsigned life;
    char text[1 << 16];
    size_t have;
    bool open;
    bool loaded; /* it has read all that was stored */
    bool quiet;
    bool rewriting;     /* it puts all jobs again */
    bool rewritten;     /* and has done so */
    bool unanswered;    /* a batch is to be held that has landed and was not answered */
    bool half;          /* the log has half a batch, for the server's next start */
    bool whole;         /* and a worker has written everything again since */
    unsigned half_life; /* who lived when it was torn; 0: nobody */
    uint64_t held;
    FILE *trace;           /* NULL, or where all lines go */
    char opened[RUN_LINE]; /* what it said of its opening */
    char known[RUN_KNOWN][40];
    size_t n_known;
    /* Counts. */
    unsigned kills[3];
    unsigned at_command;
    unsigned mirrors;       /* times that the worker had to put jobs again */
    unsigned at_rewrite[3]; /* while it did, by victim */
    unsigned wrong;
    unsigned tears; /* logs that were cut off */
    bool torn;      /* the log of a server that is gone was */
};

int64_t run_wall_ns(void);

/* A server, and the proxy before it.  As redis_server_start(). */
int run_start(struct run *r);
void run_stop(struct run *r);
void run_restart(struct run *r);
/* The server, which does not run, will come back with nothing. */
void run_empty(const struct run *r);
/* Its log, if it ends with a transaction, will end somewhere within that. */
void run_tear(struct run *r);

void run_spawn(struct run *r, const char *flags);
void run_kill(struct run *r);
/* It goes of its own will, if there is one. */
void run_send_home(struct run *r);
void run_order(const struct run *r, char what);
/* Read for so long; false: the worker's end is closed. */
bool run_listen(struct run *r, int64_t ns);
/* Until *@flag, or it has struck, or the worker is gone. */
void run_until(struct run *r, const bool *flag, bool struck_too, const char *what);

/* How often the server has found that its log was torn.  One up to Redis 8.0 or Valkey 8.1 that was
 * killed while it wrote a transaction into its log cuts off the last command only, and does what is
 * left of the transaction with the next one when it starts once more: half of a batch that nobody
 * had an answer to. */
unsigned run_torn(const struct run *r);
/* Not everything was written again yet that a torn log may take back. */
bool run_is_unsure(const struct run *r);
/* The server holds @jobs jobs, the record of each and no other, and nothing else if there are none:
 * no entries, no keys; but where a record was set aside that half a batch had left, those of its
 * job may be there. */
bool run_holds(const struct run *r, uint64_t jobs);
/* Where the two differ: records, jobs by topic, entries, what was set aside. */
void run_tell(const struct run *r, uint64_t held);

#endif
