/* shared.h - what the benchmarks of shared queues have in common: a server, and processes that talk
 * to it by the shared verbs of the store, without a queue above them. */
#ifndef BENCH_STORE_SHARED_H
#define BENCH_STORE_SHARED_H

#include "common.h"
#include "due/store_shared.h"
#include "lab/redis/redis_server.h"

extern struct redis_server server;

/* One process: a writer of the shared queue. */
struct one {
    due_store *store;
    const struct due_shared_verbs *verbs;
    struct due_store_info info;
    uint64_t number[2]; /* of the last exchange of each lane */
    uint64_t sequence;  /* of the last job */
    due_change ends[BATCH];
    size_t n; /* jobs that it holds, and which are done with its next exchange */
    struct due_exchange answer;
};

int64_t soon(int64_t ns);
void join(struct one *p);
void leave(struct one *p);
void put(struct one *p, size_t n, int64_t when_ns);
/* What was claimed before is done, and so many more are claimed.  Answers how many. */
size_t work(struct one *p, size_t need, int waits);
/* The server's time. */
int64_t server_now(struct one *p);
/* The number behind @name in that section of INFO; 0: it is not there. */
double info_of(const char *section, const char *name);
/* So many processes begin at once; the seconds until all have ended, which have done so many jobs
 * in all. */
double in_processes(int n, size_t (*run)(void), size_t expected);
/* The middle of @n figures, or the one that @percent of them do not exceed. */
double percentile(double *figures, size_t n, double percent);

/* Cells of their own files. */
void run_late(void);
void run_idle(void);
void run_kill(void);
void run_burst(void);

#endif
