/* rates.c - what two samples say of the time between them. */
#include "top/top.h"

#include <string.h>

bool top_follows(const struct top_sample *before, const struct top_sample *now)
{
    return before->number != 0 && before->of_store == now->of_store && before->pid == now->pid &&
           before->opened_ns == now->opened_ns && before->number != now->number &&
           before->monotonic_ns < now->monotonic_ns && strcmp(before->queue, now->queue) == 0;
}

static double rate(uint64_t was, uint64_t is, double seconds)
{
    return is > was ? (double)(is - was) / seconds : 0;
}

struct top_rates top_rates_of(const struct top_sample *before, const struct top_sample *now,
                              const struct top_counts *was, const struct top_counts *is)
{
    static const struct top_counts none;
    struct top_rates r = { 0 };

    if (!top_follows(before, now) || now->silent)
        return r;
    double seconds = ((double)now->monotonic_ns - (double)before->monotonic_ns) / 1e9;
    was = was != NULL ? was : &none;
    r.known = true;
    r.enqueued = rate(was->enqueued, is->enqueued, seconds);
    r.dequeued = rate(was->dequeued, is->dequeued, seconds);
    r.acked = rate(was->acked, is->acked, seconds);
    r.failed = rate(was->failed, is->failed, seconds);
    return r;
}

const struct top_counts *top_topic_named(const struct top_sample *s, const char *name)
{
    for (uint32_t i = 0; i < s->topics_here; i++) {
        if (strcmp(s->topic[i].name, name) == 0)
            return &s->topic[i].counts;
    }
    return NULL;
}

void top_late_between(due_histogram *late, const struct top_sample *before,
                      const struct top_sample *now)
{
    memset(late, 0, sizeof *late);
    if (now->of_store || !top_follows(before, now))
        return;
    for (unsigned b = 0; b < DUE_HISTOGRAM_BUCKETS; b++) {
        uint64_t was = before->late.bucket[b];

        late->bucket[b] = now->late.bucket[b] > was ? now->late.bucket[b] - was : 0;
        late->count += late->bucket[b];
    }
}
