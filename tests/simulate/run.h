/* run.h - one run: what a plan makes of a machine, from the first opening to the last balance. */
#ifndef SIMULATE_RUN_H
#define SIMULATE_RUN_H

#include "plan.h"

struct run_result {
    bool failed;
    char failure[400];
    uint64_t steps;
    uint64_t hash;
};

/* @print: the history, as it comes. */
void run(const struct plan *p, bool print, struct run_result *result);

#endif
