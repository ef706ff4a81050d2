/* siphash.c - SipHash-1-3 (J.-P. Aumasson, D. J. Bernstein): short, and hard to make collide on
 * purpose for whoever does not know the seed.
 */
#include "os/siphash.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "os/clock.h"

void due__siphash_seed(uint64_t seed[2])
{
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    ssize_t got = getrandom(seed, 2 * sizeof seed[0], GRND_NONBLOCK);
    pthread_setcancelstate(cancel, NULL);
    if (got == (ssize_t)(2 * sizeof seed[0]))
        return;
    seed[0] = (uint64_t)due__monotonic_now() * UINT64_C(0x9e3779b97f4a7c15) ^ (uintptr_t)seed;
    seed[1] = (seed[0] ^ (uint64_t)due__boottime_now()) * UINT64_C(0xff51afd7ed558ccd);
}

static inline uint64_t turned(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = turned(v[1], 13) ^ v[0];
    v[3] = turned(v[3], 16) ^ v[2];
    v[0] = turned(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = turned(v[1], 17) ^ v[2];
    v[3] = turned(v[3], 21) ^ v[0];
    v[2] = turned(v[2], 32);
}

uint64_t due__siphash(const uint64_t seed[2], const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t v[4] = { seed[0] ^ UINT64_C(0x736f6d6570736575),
                      seed[1] ^ UINT64_C(0x646f72616e646f6d),
                      seed[0] ^ UINT64_C(0x6c7967656e657261),
                      seed[1] ^ UINT64_C(0x7465646279746573) };
    uint64_t word = 0;

    for (size_t left = len; left >= 8; left -= 8, at += 8) {
        memcpy(&word, at, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = 0;
    memcpy(&word, at, len % 8);
    word |= (uint64_t)len << 56;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
