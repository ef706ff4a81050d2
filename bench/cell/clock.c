/* clock.c - see clock.h. */
#include "clock.h"

#include <time.h>

#ifdef BENCH_LOOPS
#include "rivals_clock.h"
#define ask rivals_clock_libc /* clock_gettime() is the subjects' in that program */
#else
#define ask clock_gettime
#endif

static bool stands;
static int64_t shown_ns;

int64_t bench_clock_real(void)
{
    struct timespec t;

    ask(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t bench_now(void)
{
    return stands ? shown_ns : bench_clock_real();
}

bool bench_clock_stands(void)
{
    return stands;
}

void bench_clock_virtual(int64_t start_ns)
{
    shown_ns = start_ns;
    stands = true;
}

void bench_clock_turn(int64_t to_ns)
{
    shown_ns = to_ns;
}
