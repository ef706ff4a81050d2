/* thread.h - the library's own threads. */
#ifndef DUE__THREAD_H
#define DUE__THREAD_H

#include <pthread.h>
#include <stdbool.h>

struct due_queue;

struct due__thread {
    pthread_t id;                    /* I  set by start */
    struct due_queue *queue;         /* I */
    void (*run)(struct due_queue *); /* I */
    char name[16];                   /* I  "due:<queue>:<e|w|d>", shortened to fit */
    bool started;                    /* I  set by start */
};

/* Start @run(@queue) in a thread with all signals blocked.  DUE_ESYS. */
int due__thread_start(struct due__thread *t, struct due_queue *queue, char duty,
                      void (*run)(struct due_queue *));
void due__thread_join(struct due__thread *t); /* does nothing if it was never started */

#endif
