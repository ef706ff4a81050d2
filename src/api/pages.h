/* pages.h - the calls of a shared queue that are about many jobs. */
#ifndef DUE__PAGES_H
#define DUE__PAGES_H

#include "queue/queue.h"

/* What due_list(), due_peek(), due_clear(), due_clear_dead() and due_kick_all() do with what lies
 * in the store.  The count is right also with an error. */
int due__pages_list(struct due_queue *q, uint64_t *cursor, due_info *infos, size_t max);
int due__pages_peek(struct due_queue *q, due_info *info);
int due__pages_clear(struct due_queue *q, int topic, uint64_t *cleared);
int due__pages_clear_dead(struct due_queue *q, int topic, uint64_t *cleared);
int due__pages_kick(struct due_queue *q, int topic, uint64_t *kicked);

#endif
