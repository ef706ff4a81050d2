/* common.h - what the benchmarks of a queue with a store share: callers, jobs, and the table. */
#ifndef BENCH_STORE_COMMON_H
#define BENCH_STORE_COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "due/due.h"
#include "due/store.h"

#define PAYLOAD 64
#define BATCH   256
#define ROUNDS  9
#define SHARES  8
#define HOURS   ((int64_t)1 << 44)

#define must(call)                                                       \
    do {                                                                 \
        int must_rc = (call);                                            \
        if (must_rc < 0) {                                               \
            fprintf(stderr, "%s: %s\n", #call, due_error_name(must_rc)); \
            exit(1);                                                     \
        }                                                                \
    } while (0)

extern size_t jobs;
extern int rounds;

/* Each benchmark has these two: a store for the queue, and to remove all that is stored. */
due_store *bench_store_new(int64_t spin_ns);
void bench_store_empty(void);

double now(void); /* seconds */

due_queue *queue_open(enum due_confirm confirm, int64_t spin_ns);
void loaded(void); /* returns when all was read */
void queue_close(due_queue *q);

/* A job due at a random moment of @within_ns, or of some hours. */
due_spec spec_within(int64_t from_ns, int64_t within_ns);
due_spec spec_at(int64_t from_ns);

/* A figure of this round; @bare: what it is beside, or 0. */
void note(const char *name, const char *unit, double own, double bare);
/* The medians of all rounds. */
void print_rows(void);

/* Jobs per second of so many callers, each waiting for each of its jobs. */
double callers(unsigned n, size_t total, int64_t spin_ns);

/* So many threads do the same, each for its share of the jobs. */
struct share {
    due_queue *q;
    size_t jobs;
    unsigned index;
    int64_t from_ns, within_ns; /* of those who put */
    bool reserve;               /* of those who take */
};

void share(unsigned n, void *(*run)(void *), const struct share *all);
void *put_share(void *arg);
void *take_share(void *arg);
/* Answers how many jobs were put. */
size_t put_batches(due_queue *q, unsigned callers, int64_t from, int64_t within_ns);
/* Jobs that came due one after another while they waited. */
size_t put_to_wait(due_queue *q, unsigned callers);

/* The arguments that all take; answers the part that alone is to be run in *@only. */
bool arguments(int argc, char **argv, const char **only);

struct part {
    const char *name;
    void (*run)(void);
};

/* Run the parts, or @only, as often as there are rounds, and print the table. */
void run_parts(const struct part *parts, size_t n, const char *only);

#endif
