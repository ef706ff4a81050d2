/* watch.h - what a lock guards is changed by who has the lock, and by nobody else.
 *
 * In a build with DUE_WATCH_LOCKS whoever leaves a lock of a watched queue notes what it guards,
 * and whoever gets it next compares.  So a test of one thread sees what would be a race of two: a
 * figure that is counted when the lock has been left, or a list that is changed before it is had.
 * A program that has changed it then ends with a line that says what.
 *
 * Threads  any
 */
#ifndef WATCH_H
#define WATCH_H

#include "due/due.h"

/* From here on; and no more, before it is freed, or when a test is about to change something
 * itself.  In other builds nothing happens. */
void watch_begin(due_queue *q);
void watch_end(due_queue *q);

/* Memory is asked for. */
void watch_memory(void);

#endif
