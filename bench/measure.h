/* measure.h - what the benchmarks share: time, percentiles, memory, a seeded stream. */
#ifndef DUE_BENCH_MEASURE_H
#define DUE_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int64_t measure_now_ns(void); /* monotonic */

/* Sort @values; the value that @percent of them do not exceed. */
void measure_sort(int64_t *values, size_t n);
int64_t measure_percentile(const int64_t *sorted, size_t n, double percent);

/* Bytes of this process's memory that are really there. */
int64_t measure_resident(void);

/* The next number of a seeded stream; *@state is not 0. */
uint64_t measure_random(uint64_t *state);

/* Is @name among the arguments? */
bool measure_option(int argc, char **argv, const char *name);

#endif
