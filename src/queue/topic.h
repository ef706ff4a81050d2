/* topic.h - the topics of a queue, and which of them have jobs.  T1 is described in topic.c. */
#ifndef DUE__TOPIC_H
#define DUE__TOPIC_H

#include "os/atomic.h"
#include "queue/queue.h"

#define DUE__NO_TOPIC UINT32_MAX /* as the only topic with jobs: none has any */

int due__topics_init(struct due_queue *q);
void due__topics_destroy(struct due_queue *q);

/* The topic @number, which exists. */
static inline struct due__topic *due__topic_at(const struct due_queue *q, uint32_t number)
{
    struct due__topic **page = due__load_acquire(&q->topics[number / DUE__TOPIC_PAGE]); /* T1 */

    return due__load_acquire(&page[number % DUE__TOPIC_PAGE]); /* T1 */
}

/* As due_topic(), but also in a queue that drains: its store shows jobs of topics that nobody has
 * named yet. */
int due__topic_named(struct due_queue *q, const char *name);

/* Are these topics of the queue, or any (NULL, 0)? */
bool due__topics_there(const struct due_queue *q, const int *topics, size_t n);
/* Is there anybody to be called for new jobs: one who waits, or the proxy that hands out? */
static inline bool due__anybody_to_call(const struct due_queue *q)
{
    return q->all != NULL || q->proxies == DUE_PROXIES_ALWAYS;
}

/* Nothing of it is shown, or what is ready is.  Not under the lock. */
void due__topic_pause(struct due_queue *q, uint32_t number, bool paused);

/* Jobs of @t may wait for which nobody is under way: the end of the tenure will see to it. */
void due__topic_fresh(struct due_queue *q, struct due__topic *t);
void due__topic_refill(struct due_queue *q, struct due__topic *t);
void due__topic_list(struct due_queue *q, struct due__topic *t);
void due__topic_unlist(struct due_queue *q, struct due__topic *t);
void due__topic_last(struct due_queue *q, struct due__topic *t); /* it has had its turn */
/* Jobs of several topics may be in the timeline, and its head has gone, or come: the only topic
 * with anything ready has all turns until it is due. */
void due__sole_until(struct due_queue *q);
/* Somebody has found nothing to take: unless he has something to pay for others, those who look
 * after him need not come to the lock until there is. */
void due__sole_none(struct due_queue *q);
bool due__topic_recall(struct due_queue *q, struct due__topic *t);
/* Is anything shown, or about to be?  Topics found empty leave the ring; after a number of them it
 * may be, for all we know. */
bool due__topics_ready(struct due_queue *q);

/* A due job into the line of its topic.  False: no chunks. */
static inline bool due__topic_push(struct due_queue *q, struct due__topic *t, struct due__slot s)
{
    if (q->order == DUE_ORDER_PRIORITY)
        s = due__slot_by_priority(s);
    if (due__slot_before(s, t->shown) && !due__topic_recall(q, t))
        return false;
    if (!due__line_push(&t->line, &q->nodes, s))
        return false;
    q->in_lines++;
    if (!t->listed)
        due__topic_list(q, t);
    if (due__anybody_to_call(q))
        due__topic_fresh(q, t);
    return true;
}

/* Turn a slot of a line into the timeline's form. */
static inline struct due__slot due__slot_plain(const struct due_queue *q, struct due__slot s)
{
    return q->order == DUE_ORDER_PRIORITY ? due__slot_by_deadline(s) : s;
}

#endif
