/* histogram.c - histograms of durations: eight buckets for each doubling.
 */
#include "due/metrics.h"

#define UNIT_SHIFT     7u /* the lowest buckets are 128 ns wide */
#define PER_DOUBLING   8u
#define DOUBLING_SHIFT 3u

unsigned due_histogram_bucket(int64_t ns)
{
    uint64_t units = ns > 0 ? (uint64_t)ns >> UNIT_SHIFT : 0;

    if (units < PER_DOUBLING)
        return (unsigned)units;
    unsigned shift = 63u - (unsigned)__builtin_clzll(units) - DOUBLING_SHIFT;
    unsigned bucket = shift * PER_DOUBLING + (unsigned)(units >> shift);
    return bucket < DUE_HISTOGRAM_BUCKETS ? bucket : DUE_HISTOGRAM_BUCKETS - 1;
}

int64_t due_histogram_bound(unsigned bucket)
{
    if (bucket >= DUE_HISTOGRAM_BUCKETS - 1)
        return DUE_FOREVER;
    unsigned shift = bucket < PER_DOUBLING ? 0 : bucket / PER_DOUBLING - 1;
    uint64_t units = bucket - shift * PER_DOUBLING + 1;

    return (int64_t)(units << shift << UNIT_SHIFT);
}

int64_t due_histogram_quantile(const due_histogram *h, double part)
{
    double rank = part * (double)h->count;
    uint64_t wanted = rank >= (double)h->count ? h->count : rank > 0 ? (uint64_t)rank : 0;
    uint64_t below = 0;

    wanted += (double)wanted < rank && wanted < h->count; /* as many, or one more */
    wanted += wanted == 0;

    for (unsigned b = 0; h->count > 0 && b < DUE_HISTOGRAM_BUCKETS; b++) {
        below += h->bucket[b];
        if (below >= wanted)
            return due_histogram_bound(b);
    }
    return 0;
}

void due_histogram_add(due_histogram *to, const due_histogram *from)
{
    to->count += from->count;
    to->sum_ns += from->sum_ns;
    for (unsigned b = 0; b < DUE_HISTOGRAM_BUCKETS; b++)
        to->bucket[b] += from->bucket[b];
}
