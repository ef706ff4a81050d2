/* exposition.h - a strict reader of the text format 0.0.4 of Prometheus, for tests.
 *
 * It refuses what a server would, and besides: a family that is not in one piece, or without HELP
 * and TYPE, a counter whose name does not end in _total, a name twice with the same labels, a
 * histogram whose buckets fall or whose last one is not its count.
 */
#ifndef EXPOSITION_H
#define EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>

#include "due/due.h"

/* What a queue writes, for free(); NULL if it writes none, or not as long as it says. */
char *exposition_text(due_queue *q);

/* The same of due_census_write(). */
char *exposition_census(due_queue *q);

/* NULL, or what is wrong, with the line in it.  Valid until the next call. */
const char *exposition_check(const char *text);

/* The value of a line: everything before the blank, as it was written.  NAN if there is none. */
double exposition_value(const char *text, const char *name_and_labels);

/* The names of all families, one at a time: false at the end.  *@at begins as the text. */
bool exposition_family(const char **at, char *name, size_t size);

#endif
