/* tally.c - counts and lateness. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum { SUB_BITS = 5, SUB = 1 << SUB_BITS };

/* ---- Histogram ------------------------------------------------------------------------------- */

/* Below 32 each value has its bucket; above, each doubling has 32. */
static size_t bucket_of(int64_t ns)
{
    uint64_t value = (uint64_t)ns;
    int shift;

    if (value < SUB)
        return (size_t)value;
    shift = 63 - __builtin_clzll(value) - SUB_BITS;
    return ((size_t)shift << SUB_BITS) + (size_t)(value >> shift);
}

/* The largest value of a bucket. */
static int64_t bucket_end(size_t bucket)
{
    size_t shift = bucket < 2 * SUB ? 0 : (bucket >> SUB_BITS) - 1;
    uint64_t above = (uint64_t)(bucket - (shift << SUB_BITS)) + 1;

    return (int64_t)((above << shift) - 1);
}

void ctl_histogram_add(struct ctl_histogram *h, int64_t ns)
{
    if (ns < 0)
        ns = 0;
    h->bucket[bucket_of(ns)]++;
    h->count++;
    if (ns > h->max_ns)
        h->max_ns = ns;
}

int64_t ctl_histogram_percentile(const struct ctl_histogram *h, double percent)
{
    double wanted = percent / 100 * (double)h->count;
    uint64_t seen = 0;

    for (size_t i = 0; i < CTL_BUCKETS; i++) {
        seen += h->bucket[i];
        if (seen > 0 && (double)seen >= wanted) {
            int64_t end = bucket_end(i);

            return end < h->max_ns ? end : h->max_ns;
        }
    }
    return h->max_ns;
}

/* ---- Counts ---------------------------------------------------------------------------------- */

void ctl_tally_open(struct ctl_tally *t)
{
    memset(t, 0, sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
}

void ctl_tally_add(struct ctl_tally *t, uint64_t *count, uint64_t by)
{
    pthread_mutex_lock(&t->lock);
    *count += by;
    pthread_mutex_unlock(&t->lock);
}

void ctl_tally_lateness(struct ctl_tally *t, int64_t ns, bool early)
{
    pthread_mutex_lock(&t->lock);
    ctl_histogram_add(&t->lateness, ns);
    t->counts.early += early;
    pthread_mutex_unlock(&t->lock);
}

struct ctl_counts ctl_tally_counts(struct ctl_tally *t)
{
    struct ctl_counts counts;

    pthread_mutex_lock(&t->lock);
    counts = t->counts;
    pthread_mutex_unlock(&t->lock);
    return counts;
}

static bool comes_before(int64_t deadline_ns, uint64_t line, const struct ctl_left_job *other)
{
    return deadline_ns < other->deadline_ns ||
           (deadline_ns == other->deadline_ns && line < other->line);
}

void ctl_tally_left(struct ctl_tally *t, enum ctl_clock clock, int64_t deadline_ns,
                    const struct ctl_job *job)
{
    struct ctl_left *left = &t->left[clock];
    size_t at;

    pthread_mutex_lock(&t->lock);
    at = left->count < CTL_FIRST_LEFT ? (size_t)left->count : CTL_FIRST_LEFT;
    left->count++;
    while (at > 0 && comes_before(deadline_ns, job->line, &left->first[at - 1]))
        at--;
    if (at < CTL_FIRST_LEFT) {
        struct ctl_left_job *place = &left->first[at];

        memmove(place + 1, place, (CTL_FIRST_LEFT - 1 - at) * sizeof *place);
        place->deadline_ns = deadline_ns;
        place->line = job->line;
        ctl_text_show(place->text, sizeof place->text, job->text, job->len);
    }
    pthread_mutex_unlock(&t->lock);
}

/* ---- Durations ------------------------------------------------------------------------------- */

char *ctl_duration(char text[CTL_DURATION], int64_t ns)
{
    static const struct {
        int64_t ns, below;
        const char *name;
    } units[] = {
        { 1000, INT64_C(1000000), "us" },
        { 1000000, INT64_C(1000000000), "ms" },
        { 1000000000, INT64_C(60000000000), "s" },
    };
    int64_t minutes = ns / INT64_C(60000000000);

    if (ns < 1000) {
        snprintf(text, CTL_DURATION, "%d ns", (int)ns);
        return text;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (ns < units[i].below) {
            snprintf(text, CTL_DURATION, "%.1f %s", (double)(ns / (units[i].ns / 10)) / 10,
                     units[i].name);
            return text;
        }
    }
    if (minutes < 60)
        snprintf(text, CTL_DURATION, "%d min %d s", (int)minutes, (int)(ns / 1000000000 % 60));
    else if (minutes < 48 * 60)
        snprintf(text, CTL_DURATION, "%d h %d min", (int)(minutes / 60), (int)(minutes % 60));
    else
        snprintf(text, CTL_DURATION, "%d days", (int)(minutes / 60 / 24));
    return text;
}
