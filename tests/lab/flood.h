/* flood.h - threads that put jobs in without an end, far from due, so that there is always a change
 * that waits to be sent. */
#ifndef FLOOD_H
#define FLOOD_H

#include "lab/lab.h"

#include <pthread.h>
#include <stdatomic.h>

#define FLOOD_THREADS 3

struct flood {
    due_queue *q;
    pthread_t threads[FLOOD_THREADS];
    atomic_bool over;
};

static inline void *flood_run(void *arg)
{
    struct flood *f = arg;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = DUE_S(1000) };

    while (!atomic_load(&f->over))
        (void)!due_enqueue(f->q, &spec, DUE_MS(100), NULL);
    return NULL;
}

static inline void flood_begin(struct flood *f, due_queue *q)
{
    f->q = q;
    atomic_init(&f->over, false);
    for (int i = 0; i < FLOOD_THREADS; i++)
        cr_assert_eq(pthread_create(&f->threads[i], NULL, flood_run, f), 0);
}

static inline void flood_end(struct flood *f)
{
    atomic_store(&f->over, true);
    for (int i = 0; i < FLOOD_THREADS; i++)
        pthread_join(f->threads[i], NULL);
}

/* They do not wait for the store, but so much is on its way at most: some batches. */
#define FLOODED .confirm = DUE_CONFIRM_ASYNC, .unsettled_max = 2000

#endif
