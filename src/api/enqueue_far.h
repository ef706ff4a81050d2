/* enqueue_far.h - a job that brings a pointer and whose time is ahead, in the shortest way. */
#ifndef DUE__ENQUEUE_FAR_H
#define DUE__ENQUEUE_FAR_H

#include "mem/slab.h"
#include "queue/queue.h"

/* May a job be put in by the quickest ways: in a queue of memory without events or capacity, on
 * a clock that is not set back, whose callers sort in themselves, and neither in a child, nor in a
 * program that ThreadSanitizer checks, which would have to be told?  Hooks do not matter: on
 * these ways none is called. */
static inline bool due__quickly(const struct due_queue *q)
{
    return *q->quick != 0;
}

/* The facts of a job that brings @ptr. */
static inline uint64_t due__pointer_facts(unsigned topic, unsigned priority, const void *ptr)
{
    return due__facts_word(
        (struct due__facts){ .topic = (uint16_t)topic,
                             .priority = (uint8_t)priority,
                             .payload = ptr != NULL ? DUE__POINTER : DUE__BYTES_INLINE });
}

/* 0, or an error, as due_enqueue() of a job due at @at_ns, not below 0, or after @delay_ns,
 * likewise, with these facts, which are right; in a queue where that can be done quickly. */
int due__enqueue_far(struct due_queue *q, int64_t at_ns, void *ptr, due_id *id, uint64_t facts);
int due__enqueue_delayed(struct due_queue *q, int64_t delay_ns, void *ptr, due_id *id,
                         uint64_t facts);

#endif
