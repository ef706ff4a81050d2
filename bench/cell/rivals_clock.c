/* rivals_clock.c - see rivals_clock.h; and the calls of clock.h, for bench_loops. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "rivals_clock.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"

#define S_NS INT64_C(1000000000)

typedef int ask_clock(clockid_t id, struct timespec *t);

static bool stands;
static int64_t shown_ns;
static uint64_t asked;

/* That of libc.  A library may ask for the time before main() begins. */
static int ask_libc(clockid_t id, struct timespec *t)
{
    static ask_clock *libc;

    if (libc == NULL) {
        void *found = dlsym(RTLD_NEXT, "clock_gettime");

        if (found == NULL) {
            fputs("bench_loops: there is no clock_gettime()\n", stderr);
            exit(1);
        }
        memcpy(&libc, &found, sizeof libc);
    }
    return libc(id, t);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    bool monotonic = id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE ||
                     id == CLOCK_MONOTONIC_RAW || id == CLOCK_BOOTTIME;

    if (!stands || !monotonic)
        return ask_libc(id, t);
    asked++;
    t->tv_sec = shown_ns / S_NS;
    t->tv_nsec = shown_ns % S_NS;
    return 0;
}

uint64_t rivals_clock_asked(void)
{
    return asked;
}

int64_t bench_clock_real(void)
{
    struct timespec t;

    ask_libc(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * S_NS + t.tv_nsec;
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
