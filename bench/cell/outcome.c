/* outcome.c - what came out of a cell: whether it is right, and the line. */
#include <stdio.h>
#include <stdlib.h>

#include "cell.h"

void cell_check(struct cell *c, uint64_t count)
{
    const struct cell_tally *out = &c->out;
    uint64_t hash = 0;

    for (uint64_t i = 0; i < count; i++)
        hash += cell_mix(i);
    if (out->early > 0)
        cell_die(CELL_WRONG, "%llu jobs were early", (unsigned long long)out->early);
    if (out->garbled > 0)
        cell_die(CELL_WRONG, "%llu jobs were not as they went in",
                 (unsigned long long)out->garbled);
    if (out->count != count)
        cell_die(CELL_WRONG, "%llu jobs came out, not %llu", (unsigned long long)out->count,
                 (unsigned long long)count);
    if (out->hash != hash)
        cell_die(CELL_WRONG, "jobs are lost and others doubled: the hash is %016llx, not %016llx",
                 (unsigned long long)out->hash, (unsigned long long)hash);
}

void cell_say(struct cell *c, const char *name, double value)
{
    if (c->more_count == sizeof c->more / sizeof *c->more)
        abort();
    c->more[c->more_count++] = (struct cell_more){ .name = name, .value = value };
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

void cell_sort(int64_t *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
}

double cell_percentile_us(const int64_t *sorted, size_t n, double percent)
{
    size_t at = (size_t)(percent / 100 * (double)n);

    return (double)sorted[at < n ? at : n - 1] / 1e3;
}

void cell_print(const struct cell *c, const struct cell_workload *w, const char *subject)
{
    printf("{\"workload\":\"%s\",\"subject\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",", w->name,
           subject, c->value, w->unit);
    printf("\"count\":%llu,\"hash\":\"%016llx\",", (unsigned long long)c->out.count,
           (unsigned long long)c->out.hash);
    printf("\"wall_s\":%.6f,\"cpu_s\":%.6f,\"voluntary\":%ld,\"involuntary\":%ld,\"more\":{",
           c->wall_s, c->cpu_s, c->voluntary, c->involuntary);
    for (size_t i = 0; i < c->more_count; i++)
        printf("%s\"%s\":%.6g", i > 0 ? "," : "", c->more[i].name, c->more[i].value);
    puts("}}");
}
