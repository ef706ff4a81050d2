/* subjects.h - what a program can measure, besides the table of subject.h. */
#ifndef BENCH_SUBJECTS_H
#define BENCH_SUBJECTS_H

#include <stdbool.h>

#include "subject.h"

extern const bool bench_has_limits; /* the subject "limit" is one of this program */

/* Subjects that do each one thing wrong, to try the checks; not listed. */
extern const struct bench_subject *const bench_broken[]; /* ends with NULL */

#endif
