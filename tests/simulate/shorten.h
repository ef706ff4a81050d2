/* shorten.h - a failing run, with as little in it as still fails. */
#ifndef SIMULATE_SHORTEN_H
#define SIMULATE_SHORTEN_H

#include "run.h"

#define SHORTEN_VERBS ((size_t)PLAN_THREADS_MAX * PLAN_VERBS_MAX)

/* Leaves out of @w what is not needed for the failure of @seed: kinds, threads, verbs.  With other
 * verbs the steps fall otherwise, so each try is made with several orders of them. */
void shorten(uint64_t seed, struct plan_wishes *w, const char *failure);

/* What plays it again. */
void shorten_print_command(uint64_t seed, const struct plan_wishes *w);

#endif
