/* share_suite.h - what every store must do whose jobs many processes share, as tests.
 *
 * As store_suite.h: several stores of one place are several processes.  A test lets the store's
 * time pass by the hook, or by waiting; none needs more than a second of it.
 */
#ifndef SHARE_SUITE_H
#define SHARE_SUITE_H

#include "due/store_shared.h"
#include "store/store_suite.h"

struct share_maker {
    /* Of these the name, make, ctx, grain_ns, fresh and full are used; jobs: of the largest test, 0
     * means 10,000. */
    struct store_maker store;

    bool one_time;     /* an exchange has one time for all of it, which it answers: histories can be
                      replayed */
    bool by_rank;      /* every queue is in the order of priority */
    bool knows_deaths; /* who was killed is not rung, from the next exchange on */

    /* All of these may be NULL. */
    int64_t (*now)(void *ctx);           /* the clock of the queues; NULL: CLOCK_REALTIME */
    void (*pass)(void *ctx, int64_t ns); /* the store's time goes on by so much */
    void (*evict)(void *ctx, due_store *store);
    void (*swallow)(void *ctx, due_store *store); /* rings to it are lost, and nobody sees that */
    void (*lose)(void *ctx);                      /* the place forgets everything */
    void (*lose_last)(void *ctx);                 /* the place forgets the last exchange */
    /* The next exchange of this lane has no answer; it has taken effect, or not. */
    void (*doubt)(void *ctx, due_store *store, bool work, bool lands);
};

int share_suite_run(const struct share_maker *maker, const char *only);

#endif
