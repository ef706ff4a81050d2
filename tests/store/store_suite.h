/* store_suite.h - what every store must do, as tests: run it on yours.
 *
 *     static due_store *make(void *ctx) { return my_store_new(ctx); }
 *     ...
 *     struct store_maker maker = { .name = "mine", .make = make, .ctx = &place };
 *     return store_suite_run(&maker, NULL);
 *
 * Each test opens a queue of a name of its own, so that a place which keeps queues apart by name
 * needs no cleaning.  What a store cannot be brought to do without help stands behind hooks; where
 * one is missing, its tests are left out, and that is said.
 */
#ifndef STORE_SUITE_H
#define STORE_SUITE_H

#include <stdbool.h>

#include "due/store.h"

struct store_maker {
    const char *name;
    /* A store that has not been opened, always of the same place. */
    due_store *(*make)(void *ctx);
    void *ctx;
    int64_t lease_ns; /* after so long a silent owner is replaced; 1 s or more is best; 0: never */
    int64_t grain_ns; /* jobs of one such span may be shown in the order of their ids; 0: exact */
    size_t jobs;      /* of the largest test; 0 means 100,000 */

    /* All of these may be NULL. */
    void (*fresh)(void *ctx);     /* a place that ignores names: empty it */
    void (*end_lease)(void *ctx); /* as if the owner had been silent for a lease */
    void (*cut)(void *ctx);       /* break the connections, now */
    void (*lose)(void *ctx);      /* the place forgets everything, and breaks the connections */
    void (*full)(void *ctx, bool full);
    /* The next commit's answer does not come; the batch has landed, or not. */
    void (*doubt)(void *ctx, bool lands);
};

/* Runs the tests whose names begin with @only (NULL: all).  Prints a line for each.  Answers 0, or
 * 1 if any has failed. */
int store_suite_run(const struct store_maker *maker, const char *only);

#endif
