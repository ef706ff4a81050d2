/* apply.h - a change of a job takes effect: the only place where that is so. */
#ifndef DUE__APPLY_H
#define DUE__APPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/journal.h"

struct due__draft; /* draft.h */

/* A change that has landed, of a job of the caller's own, or his for whom he applies it. */
struct due__change {
    int64_t at_ns;            /* O  when the job is to be handed out, if it is to wait */
    struct due__draft *draft; /* O  of an UPDATE */
    uint32_t number;          /* O */
    uint8_t purpose;          /* O  enum due__purpose */
    bool waited;              /* O  somebody waits for it, and does what is left to him to do */
};

/* Does it need the lock? */
bool due__change_locks(enum due__purpose purpose);

/* In this order: without the lock; with it, if it needs that; and after the release. */
void due__change_tell(struct due_queue *q, const struct due__change *c);
void due__change_apply(struct due_queue *q, struct due__change *c);
void due__change_end(struct due_queue *q, const struct due__change *c);

#endif
