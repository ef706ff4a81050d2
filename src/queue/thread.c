/* thread.c - starting and ending the threads that serve a queue. */
#define _GNU_SOURCE
#include "queue/thread.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "queue/queue.h"

static void *begin(void *arg)
{
    struct due__thread *t = arg;
    struct due_queue *q = t->queue;

    pthread_setname_np(pthread_self(), t->name);
    if (q->hooks.on_thread_start != NULL)
        q->hooks.on_thread_start(q->hooks.thread_ctx, t->name);
    t->run(t->arg);
    return NULL;
}

static void run_proxy(void *arg)
{
    struct due__thread *t = arg;

    t->proxy(t->queue);
}

int due__thread_start(struct due__thread *t, struct due_queue *queue, char duty,
                      void (*proxy)(struct due_queue *))
{
    const char name[] = { duty, '\0' };

    t->proxy = proxy;
    return due__thread_start_named(t, queue, name, run_proxy, t);
}

int due__thread_start_named(struct due__thread *t, struct due_queue *queue, const char *duty,
                            void (*run)(void *arg), void *arg)
{
    int room = (int)(sizeof t->name - sizeof "due::" - strlen(duty));
    sigset_t all;
    sigset_t before;

    t->queue = queue;
    t->run = run;
    t->arg = arg;
    snprintf(t->name, sizeof t->name, "due:%.*s:%s", room, queue->name, duty);

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&t->id, NULL, begin, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    t->started = failed == 0;
    return failed ? DUE_ESYS : 0;
}

void due__thread_join(struct due__thread *t)
{
    if (t->started)
        pthread_join(t->id, NULL);
    t->started = false;
}
