/* redis_batches.h - three batches and a load, for tests that do something to each command of them.
 *
 * Batch k puts job k.  The second drops the first job, whose key stays, the third buries the second
 * job.
 */
#ifndef REDIS_BATCHES_H
#define REDIS_BATCHES_H

#include <string.h>

#include "lab/redis/redis_place.h"

#define BATCHES 3
#define SOON    (crew_now_ns() + DUE_S(20))

static inline due_id id_of(uint64_t writer, unsigned char n)
{
    due_id id = { .byte = { [0] = 255, [13] = n } };

    for (int i = 0; i < 6; i++)
        id.byte[1 + i] = (unsigned char)(writer >> (40 - 8 * i));
    return id;
}

/* What was shown: jobs by number, of them the dead, and kept keys. */
struct seen {
    unsigned jobs[16], dead[16], keys[16];
};

static inline int count(void *ctx, const due_record *record)
{
    struct seen *seen = ctx;

    seen->jobs[record->id.byte[13] % 16]++;
    seen->dead[record->id.byte[13] % 16] += record->cause != 0;
    return 0;
}

static inline int count_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct seen *seen = ctx;
    unsigned char n = id.byte[13];

    seen->keys[n % 16] += len == 1 && *(const unsigned char *)key == n && until_ns == DUE_S(n);
    return 0;
}

static inline due_change change(enum due_change_kind kind, uint64_t writer, unsigned char n)
{
    static const unsigned char keys[] = { 0, 1, 2, 3, 4, 5 };

    return (due_change){ .kind = kind,
                         .was_ns = n,
                         .record = { .id = id_of(writer, n),
                                     .topic = "t",
                                     .data = "payload",
                                     .len = 7,
                                     .key = &keys[n],
                                     .key_len = 1,
                                     .until_ns = n,
                                     .deadline_ns = n } };
}

/* The changes of batch @k; how many. */
static inline size_t batch(due_change c[2], uint64_t writer, unsigned char k)
{
    unsigned char before = (unsigned char)(k - 1);

    c[0] = change(DUE_CHANGE_PUT, writer, k);
    c[1] = change(k == 2 ? DUE_CHANGE_DROP : DUE_CHANGE_BURY, writer, before);
    if (k == 2)
        c[1].key_kept_ns = DUE_S(1);
    c[1].record.cause = k == 3 ? DUE_CAUSE_BURIED : 0;
    return k > 1 ? 2 : 1;
}

/* Everything has landed, and was shown. */
static inline bool all_right(const struct seen *seen)
{
    return seen->jobs[3] > 0 && seen->dead[3] == 0 && seen->jobs[2] == seen->dead[2] &&
           seen->dead[2] > 0 && seen->jobs[1] == 0 && seen->keys[1] > 0 && seen->keys[2] == 0;
}

static inline void show_seen(const struct seen *seen, int rc)
{
    for (int k = 0; k <= BATCHES; k++)
        printf("  answered %s; job %d: shown %u times, dead %u, its key %u\n", due_error_name(rc),
               k, seen->jobs[k], seen->dead[k], seen->keys[k]);
}

#endif
