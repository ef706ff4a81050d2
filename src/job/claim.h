/* claim.h - a waiting job becomes the caller's, who looks at it, changes it or takes it away. */
#ifndef DUE__CLAIM_H
#define DUE__CLAIM_H

#include "queue/queue.h"

struct due__key_name; /* key_table.h */

/* What keeps the caller from having a job with word @w: 0 if nothing does. */
static inline int due__obstacle(uint64_t w, uint32_t generation)
{
    if (due__word_generation(w) != generation)
        return DUE_ENOENT;
    switch (due__word_state(w)) {
    case DUE__WAITING:
    case DUE__MOVING:
    case DUE__SENT:
        return 0;
    case DUE__CLAIMED:
    case DUE__DEFERRED:
    case DUE__CHANGING:
    case DUE__LEASED:
        return DUE_EBUSY;
    default:
        return DUE_ENOENT;
    }
}

/* A waiting job becomes the caller's; @w gets its word before.  DUE_EBUSY, DUE_ENOENT; DUE_EAGAIN:
 * it is on its way to the store.  @by: as in due__lapse(). */
int due__claim(struct due_queue *q, uint32_t number, uint32_t generation, struct due__deadline *by,
               uint64_t *w);

/* As due__claim() once its PUT has ended, if that is on its way; with a name, if it has that key
 * still, or DUE_ENOENT. */
int due__claim_settled(struct due_queue *q, uint32_t number, uint32_t generation,
                       const struct due__key_name *name, struct due__deadline *by, uint64_t *w);

/* A waiting job becomes the caller's for a change, after which it waits again (CHANGING), once its
 * put has landed; with a name, if it has that key still, or DUE_ENOENT. */
int due__claim_sent(struct due_queue *q, uint32_t number, uint32_t generation,
                    const struct due__key_name *name, struct due__deadline *by);

/* Facts of place @number, consistent; of any job there, or only of @generation.  @by: as in
 * due__lapse(). */
int due__info(struct due_queue *q, uint32_t number, const uint32_t *generation,
              struct due__deadline *by, due_info *info);

/* A job with word *@w is there, waits, and is of the topic, or any is meant.  A guess. */
bool due__clearable(struct due_queue *q, uint32_t number, int topic, uint64_t *w);

/* A job of the caller's own (CLAIMED) waits again, or if a stored queue has closed meanwhile stays
 * in the store; @taken: it was taken from what was ready. */
void due__unclaim(struct due_queue *q, uint32_t number, bool taken);

/* Jobs of the caller's own (CLAIMED), with their slots, wait again. */
void due__put_back(struct due_queue *q, const struct due__slot *slots, size_t n);

#endif
