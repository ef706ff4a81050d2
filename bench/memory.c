/* memory.c - bytes of resident memory for a pending job, and how much of them comes back.
 *
 *   memory [--tiny]      1 million jobs of 32 bytes, random deadlines (tiny: 100,000)
 *
 * After all are cancelled in random order, due_trim() gives the memory back.
 */
#include <due/due.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

static void shuffle(due_id *ids, size_t n, uint64_t *state)
{
    for (size_t i = n - 1; i > 0; i--) {
        size_t k = (size_t)(measure_random(state) % (i + 1));
        due_id swap = ids[i];

        ids[i] = ids[k];
        ids[k] = swap;
    }
}

static void fill(due_queue *q, due_id *ids, size_t n, uint64_t *state)
{
    unsigned char bytes[32];

    for (size_t i = 0; i < n; i++) {
        memset(bytes, (int)(i & 0xff), sizeof bytes);
        due_spec s = { DUE_SPEC_INIT, .data = bytes, .len = sizeof bytes };
        s.at_ns = DUE_S(1000000) + (int64_t)(measure_random(state) >> 20);
        if (due_enqueue(q, &s, 0, &ids[i]) != 0)
            exit(1);
    }
}

int main(int argc, char **argv)
{
    size_t n = measure_option(argc, argv, "--tiny") ? 100000 : 1000000;
    uint64_t state = 42;
    due_id *ids = malloc(n * sizeof *ids);
    due_queue *q;
    struct due_stats stats;

    if (ids == NULL || due_open(&q, NULL, NULL) != 0)
        return 1;
    memset(ids, 1, n * sizeof *ids);
    int64_t before = measure_resident();
    fill(q, ids, n, &state);
    int64_t full = measure_resident();
    shuffle(ids, n, &state);
    if (due_cancel_batch(q, ids, n, NULL) != (int)n || due_trim(q) != 0 ||
        due_stats(q, &stats) != 0 || stats.waiting != 0)
        return 1;
    int64_t after = measure_resident();
    double grown = (double)(full - before);

    printf("memory   n=%zu  %.1f bytes a pending job of 32 bytes (owed: 88, at most 96)\n", n,
           grown / (double)n);
    printf("memory   %.1f %% given back after all were cancelled and swept (owed: 90 %%)\n",
           100.0 * (double)(full - after) / grown);
    free(ids);
    return due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)) != 0 || due_free(q) != 0;
}
