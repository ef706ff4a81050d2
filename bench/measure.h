/* measure.h - what the benchmarks of this folder share: a seeded stream, their options, memory that
 * is counted. */
#ifndef DUE_BENCH_MEASURE_H
#define DUE_BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include <due/due.h>

/* The next number of a seeded stream; *@state is not 0. */
uint64_t measure_random(uint64_t *state);

/* Is @name among the arguments? */
bool measure_option(int argc, char **argv, const char *name);

/* An allocator that counts in *@bytes, from one thread, what is out. */
due_allocator measure_memory(size_t *bytes);

#endif
