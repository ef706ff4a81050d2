/* digest.c - whether two sets of lines are the same, in memory that does not grow with them. */
#include "move/move.h"

#include <stdlib.h>

#define FILTER_BITS (UINT64_C(1) << 27)
#define PROBES      4

/* FNV-1a, and then every bit of it into every other. */
uint64_t ctl_hash(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}

void ctl_digest_add(struct ctl_digest *d, const struct due__ctl_buffer *line)
{
    uint64_t hash = ctl_hash(line->bytes, line->len);

    d->lines++;
    d->sum += hash;
    d->mixed += (hash | 1) * (hash >> 7);
}

bool ctl_digest_same(const struct ctl_digest *a, const struct ctl_digest *b)
{
    return a->lines == b->lines && a->sum == b->sum && a->mixed == b->mixed;
}

void ctl_filter_open(struct ctl_filter *f)
{
    f->bits = calloc(FILTER_BITS / 64, sizeof *f->bits);
}

bool ctl_filter_add(struct ctl_filter *f, uint64_t hash)
{
    bool all = true;

    for (uint64_t i = 0; f->bits != NULL && i < PROBES; i++) {
        uint64_t bit = (hash + i * (hash >> 32 | 1)) % FILTER_BITS;
        uint64_t mask = UINT64_C(1) << bit % 64;

        all = all && (f->bits[bit / 64] & mask) != 0;
        f->bits[bit / 64] |= mask;
    }
    return all;
}

void ctl_filter_close(struct ctl_filter *f)
{
    free(f->bits);
    f->bits = NULL;
}
