/* flood.h - threads that put jobs in without an end, far from due, so that there is always a change
 * that waits to be sent. */
#ifndef FLOOD_H
#define FLOOD_H

#include "lab/lab.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define FLOOD_THREADS 3

struct flood {
    due_queue *q;
    bool keyed;       /* each job has a key of its own */
    atomic_uint keys; /* so many have */
    pthread_t threads[FLOOD_THREADS];
    atomic_bool over;
};

static inline void *flood_run(void *arg)
{
    struct flood *f = arg;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = DUE_S(1000) };
    char key[24];

    while (!atomic_load(&f->over)) {
        int len = snprintf(key, sizeof key, "flood %u", atomic_fetch_add(&f->keys, f->keyed));

        spec.more = f->keyed ? EXTRA(.key = key, .key_len = (size_t)len) : NULL;
        (void)!due_enqueue(f->q, &spec, DUE_MS(100), NULL);
    }
    return NULL;
}

static inline void flood_begin(struct flood *f, due_queue *q)
{
    f->q = q;
    atomic_init(&f->keys, 0);
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
