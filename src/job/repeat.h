/* repeat.h - jobs that come again after they were done. */
#ifndef DUE__REPEAT_H
#define DUE__REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/due.h"
#include "mem/slot.h"

struct due__extras;

/* The deadline after @deadline_ns of a job that repeats, if that round was done at @now_ns. */
int64_t due__repeat_next(const struct due__extras *extras, int64_t deadline_ns, int64_t now_ns);

/* Of a job of the caller's own: does it come again; and when, if its round is done now and it was
 * handed out (HELD)? */
bool due__repeats(const struct due_queue *q, uint32_t number);
int64_t due__repeat_at(const struct due_queue *q, uint32_t number);

/* Under the lock: a job of the caller's own, whose next round is written down, waits for it, or
 * goes if it was cancelled.  False: the queue closes, or drains.  @acked: which is told of. */
bool due__repeat_locked(struct due_queue *q, uint32_t number, int64_t at_ns, bool acked);

/* Of taken jobs, filled in, those that repeat wait again, and their bytes are lent besides: how
 * many.  The others are as they were. */
size_t due__repeat_taken(struct due_queue *q, const struct due__slot *slots, size_t n,
                         due_job *jobs);

/* With a store: a taken job that repeats is filled in and its bytes are lent, since it waits again
 * before its taker has it.  False: it does not repeat. */
bool due__round_begin(struct due_queue *q, struct due__slot s, int64_t now_ns, due_job *job);
/* It is not handed out after all. */
void due__round_drop(struct due_queue *q, due_job *job, uint32_t number);
/* Jobs that were taken for good and wait again: counted. */
void due__rounds_end(struct due_queue *q, size_t n);

#endif
