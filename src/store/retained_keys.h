/* retained_keys.h - keys that are kept after their job is done, in the store.
 *
 * Keys come into the store with their job, and are kept there by its removal.  What is no longer
 * kept leaves it with whatever is sent next; and after a loss all kept keys are told again.
 */
#ifndef DUE__RETAINED_KEYS_H
#define DUE__RETAINED_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct due_queue;
struct due__batch;
struct due__commits;
struct due__key;

/* Behind the changes that are written down for the batch @b, as many as there is room for.  With
 * the key, as all of this. */
void due__retained_write(struct due_queue *q, struct due__batch *b);
/* The batch has ended (or is written anew: any error). */
void due__retained_end(struct due_queue *q, struct due__batch *b, int rc);
/* Is there something to be told that does not wait for a batch? */
bool due__retained_pending(const struct due__commits *c);
/* The store has lost something. */
void due__retained_again(struct due__commits *c);

/* Read the next kept keys from the store, as load() of store.h. */
int due__retained_load(struct due_queue *q, int64_t until_ns);
/* The same after a loss: what the queue does not know of is to be forgotten by the batch of drops,
 * *@forgotten changes. */
int due__retained_purge(struct due_queue *q, size_t max, int64_t until_ns, size_t *forgotten);

/* A copy of a key, until the batch @b has ended.  NULL: no memory. */
const struct due__key *due__retained_copy(struct due_queue *q, struct due__batch *b,
                                          const void *key, size_t len);

#endif
