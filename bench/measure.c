/* measure.c - see measure.h. */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t measure_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

void measure_sort(int64_t *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
}

int64_t measure_percentile(const int64_t *sorted, size_t n, double percent)
{
    size_t at = (size_t)(percent / 100 * (double)n);

    return sorted[at < n ? at : n - 1];
}

int64_t measure_resident(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%*d %ld", &pages) != 1)
        abort();
    fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

uint64_t measure_random(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

bool measure_option(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return false;
}
