/* compaction.h - sweeping out what cancelled and moved jobs leave behind.
 *
 * Guards     T  the timeline lock, for every call but due__sweep_sometimes()
 */
#ifndef DUE__COMPACTION_H
#define DUE__COMPACTION_H

#include <stdbool.h>
#include <stddef.h>

struct due_queue;

/* A sweep begins, unless one is under way. */
void due__sweep_begin(struct due_queue *q);
/* The same if it is worth it; and the tenure owes a piece, if it is nobody else's to do. */
void due__sweep_look(struct due_queue *q);
/* So many slots of a sweep that is under way.  True: none is, or no more. */
bool due__sweep_piece(struct due_queue *q, size_t budget);
/* The same of a sweep that is done at home. */
void due__sweep_home(struct due_queue *q, size_t budget);
/* And if the worker proxy does not keep up with those who make dead slots, or is not there. */
void due__sweep_help(struct due_queue *q, size_t budget);

/* Now and then while jobs are cancelled: sweep out what they leave behind, if it is worth it. */
void due__sweep_sometimes(struct due_queue *q);

#endif
