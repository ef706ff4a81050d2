/* clock.c - see clock.h: for subjects that go by bench_now(). */
#include "clock.h"

#include <stdbool.h>
#include <time.h>

static bool stands;
static int64_t shown_ns;

int64_t bench_clock_real(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t bench_now(void)
{
    return stands ? shown_ns : bench_clock_real();
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
