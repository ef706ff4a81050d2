/* waiter.h - those who wait in a queue, and its timer. */
#ifndef DUE__WAITER_H
#define DUE__WAITER_H

#include "queue/queue.h"

struct due__waiter *due__waiter_get(struct due_queue *q); /* outside the lock; NULL: no memory */
void due__waiter_put(struct due_queue *q, struct due__waiter *w); /* outside the lock */
/* Under the lock: @w is out of line, and nobody's. */
static inline void due__waiter_free(struct due_queue *q, struct due__waiter *w)
{
    w->line_next = q->free;
    q->free = w;
}

void due__waiters_add(struct due__waiters *list, struct due__waiter *w);
void due__waiters_add_first(struct due__waiters *list, struct due__waiter *w);
void due__waiters_remove(struct due__waiters *list, struct due__waiter *w);
void due__park_job(struct due_queue *q, struct due__tenure *t, struct due__waiter *w);
void due__unpark_job(struct due_queue *q, struct due__waiter *w);
void due__arrive(struct due_queue *q, struct due__waiter *w); /* outside the lock, with a job */
/* @topic: what it is called for; NULL: not for a job that is shown. */
void due__call(struct due_queue *q, struct due__tenure *t, struct due__waiter *w,
               struct due__topic *topic);
/* Call somebody for @topic if need be.  False: no more bells can be rung in this tenure. */
bool due__call_for(struct due_queue *q, struct due__tenure *t, struct due__topic *topic);
bool due__called_for(const struct due_queue *q, const struct due__topic *t); /* N4 of waiter.c */
struct due__waiter *due__waiter_for(const struct due_queue *q, const struct due__topic *t);
size_t due__lies_for_parked(const struct due_queue *q); /* slots */
void due__pass_lead(struct due_queue *q, struct due__tenure *t);
int64_t due__sleep(struct due_queue *q, struct due__waiter *w, bool lead, int64_t at_ns,
                   int64_t until_ns);
void due__arm_worker(struct due_queue *q);
struct due__bell *due__lead_bell(struct due_queue *q);

#endif
