/* backoff.c - how long to wait before the next connection. */
#include "redis/link/backoff.h"

#define LEAST_NS INT64_C(1000000)
#define MOST_NS  INT64_C(3600000000000)

static int64_t between(int64_t least, int64_t ns, int64_t most)
{
    return ns < least ? least : ns > most ? most : ns;
}

void due__backoff_init(struct due__backoff *b, int64_t min_ns, int64_t max_ns, uint64_t seed)
{
    b->min_ns = between(LEAST_NS, min_ns, MOST_NS);
    b->max_ns = between(b->min_ns, max_ns, MOST_NS);
    b->failures = 0;
    b->random = seed | 1;
}

static uint64_t next_random(struct due__backoff *b)
{
    uint64_t x = b->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    b->random = x;
    return x;
}

int64_t due__backoff_next(struct due__backoff *b)
{
    int64_t pause = b->min_ns;

    if (b->failures < 64)
        b->failures++;
    for (int i = 1; i < b->failures && pause < b->max_ns; i++)
        pause *= 2;
    pause = between(b->min_ns, pause, b->max_ns);
    return pause / 2 + (int64_t)(next_random(b) % (uint64_t)(pause / 2 + 1));
}
