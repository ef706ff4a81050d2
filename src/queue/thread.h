/* thread.h - the library's own threads. */
#ifndef DUE__THREAD_H
#define DUE__THREAD_H

#include <pthread.h>
#include <stdbool.h>

struct due_queue;

struct due__thread {
    pthread_t id;                      /* I  set by start */
    struct due_queue *queue;           /* I */
    void (*run)(void *arg);            /* I */
    void *arg;                         /* I */
    void (*proxy)(struct due_queue *); /* I  of the queue's own threads */
    char name[16]; /* I  "due:<queue>:<duty>", the queue's name shortened to fit */
    bool started;  /* I  set by start */
};

/* Start @proxy(@queue) in a thread with all signals blocked.  DUE_ESYS. */
int due__thread_start(struct due__thread *t, struct due_queue *queue, char duty,
                      void (*proxy)(struct due_queue *));
/* The same with @run(@arg).  @duty: up to 8 bytes. */
int due__thread_start_named(struct due__thread *t, struct due_queue *queue, const char *duty,
                            void (*run)(void *arg), void *arg);
void due__thread_join(struct due__thread *t); /* does nothing if it was never started */

#endif
