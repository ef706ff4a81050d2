/* world.c - the variables of one queue make way for those of another. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANGES_MAX 64u
#define BYTES_MAX  8192u

struct range {
    void *state;
    size_t size;
};

static struct range ranges[RANGES_MAX];
static unsigned n_ranges;
static size_t bytes; /* of all */
static unsigned char saved[PLAN_QUEUES][BYTES_MAX];
static unsigned now;

void world_keep(void *state, size_t size)
{
    for (unsigned i = 0; i < n_ranges; i++)
        if (ranges[i].state == state)
            return;
    bytes += size;
    if (n_ranges == RANGES_MAX || bytes > BYTES_MAX) {
        fprintf(stderr, "simulate: too much is kept of a queue\n");
        exit(2);
    }
    ranges[n_ranges++] = (struct range){ state, size };
}

void world_enter(unsigned queue)
{
    unsigned char *from = saved[queue];
    unsigned char *to = saved[now];

    for (unsigned i = 0; i < n_ranges && queue != now; i++) {
        memcpy(to, ranges[i].state, ranges[i].size);
        memcpy(ranges[i].state, from, ranges[i].size);
        to += ranges[i].size;
        from += ranges[i].size;
    }
    now = queue;
}

unsigned world_now(void)
{
    return now;
}
