/* verbs.h - changes of a queue, as one who is asked for them makes them: in a topic that is called
 * by its name, of many jobs at a time, with an answer for each.
 *
 * Threads  any
 */
#ifndef DUE__CTL_VERBS_H
#define DUE__CTL_VERBS_H

#include <stdbool.h>

#include "due/due.h"

/* Put @n jobs into a topic; the specs have none.  Each has its id and result; *@done, which the
 * caller sets to 0, is how many have them.  0: all do; or why not, and the call may be made again
 * with what it has left there.  @wait_ns is for room. */
int due__ctl_put(due_queue *q, const char *topic, due_spec *specs, size_t n, int64_t wait_ns,
                 due_id *ids, int *results, size_t *done);

/* Is this one dead?  0: it is.  @shared: it is enough that it does not wait. */
int due__ctl_is_dead(due_queue *q, due_id id, bool shared);

/* @call for a topic, which is made if it is new, or for all: @topic NULL. */
int due__ctl_of_topic(due_queue *q, const char *topic, int (*call)(due_queue *q, int topic));
int due__ctl_count_of_topic(due_queue *q, const char *topic, uint64_t *count,
                            int (*call)(due_queue *q, int topic, uint64_t *count));

#endif
