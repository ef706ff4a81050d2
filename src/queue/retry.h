/* retry.h - when a job that was not acked is tried again, and how often. */
#ifndef DUE__RETRY_H
#define DUE__RETRY_H

#include <stdint.h>

#include "due/due.h"
#include "mem/records.h"
#include "mem/slab.h"

#define DUE__RETRY_CHAINS 256u

struct due__policy {
    due_retry says; /* I */
    uint16_t next;  /* I  in its chain: the number of the one before it, or 0 */
};

struct due__retries {
    struct due__records policies;      /* A  Y1 of retry.c: number n is record n - 1 */
    uint16_t chain[DUE__RETRY_CHAINS]; /* A  Y1: the newest with that hash, or 0 */
    uint32_t count;                    /* A  relaxed; written under the names' lock */
    _Alignas(8) uint64_t random;       /* A  relaxed: where the next random number comes from */
};

/* What is wrong with it, in words; NULL: nothing, else it is DUE_EINVAL. */
const char *due__retry_wrong(const due_retry *r);

/* The number of a policy, kept from now on; 0 for DUE_RETRY_INHERIT.  DUE_ENOMEM, DUE_ELIMIT. */
int due__retry_number(struct due_queue *q, const due_retry *r, uint16_t *number);

/* The policy of a number; NULL for 0. */
const due_retry *due__retry_named(const struct due_queue *q, uint16_t number);

/* The policy that holds for a job of the caller's own; NULL: none. */
const due_retry *due__retry_of(const struct due_queue *q, const struct due__job *j);

/* How often a job may be handed out; 0: without limit. */
uint32_t due__retry_limit(const due_retry *r);

/* How long to wait after the failure number @failures, the first being 1. */
int64_t due__retry_delay(struct due_queue *q, const due_retry *r, uint32_t failures);

void due__retries_init(struct due_queue *q);
void due__retries_destroy(struct due_queue *q);

#endif
