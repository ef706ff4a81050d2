/* The table of keys: what it counts, and what it keeps of memory. */
#include <stdio.h>

#include "job/key_table.h"
#include "lab/lab.h"
#include "queue/queue.h"

static size_t bytes_of_kept(struct lab *lab, int round)
{
    char key[16];

    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "%d.%d", round, i);
        cr_assert_eq(lab_put_key(lab, key, DUE_KEY_REFUSE, "x", NULL,
                                 (due_spec){ .more = EXTRA(.keep_key_ns = 10) }),
                     0);
        cr_assert_str_eq(lab_dequeue(lab), "x");
    }
    lab_advance(lab, 10);
    return lab->state->memory.bytes;
}

/* Nobody asks for it. */
LAB_TEST(key_table, kept_keys_whose_time_is_over_make_room_for_others)
{
    struct lab lab = lab_open();
    size_t first = bytes_of_kept(&lab, 0);
    size_t last = first;

    for (int round = 1; round < 8; round++)
        last = bytes_of_kept(&lab, round);
    cr_expect_leq(last, 2 * first, "%zu, then %zu", first, last);
    lab_close(&lab);
}

/* Keys in the table, and of those the kept ones, as it counts them. */
static void expect_counted(struct lab *lab, uint32_t keys, uint32_t kept)
{
    uint32_t n = 0;
    uint32_t of_those = 0;

    for (size_t i = 0; i < DUE__KEY_SHARDS; i++) {
        n += lab->q->keys->shard[i].count;
        of_those += lab->q->keys->shard[i].kept;
    }
    cr_expect_eq(n, keys, "%u, not %u", n, keys);
    cr_expect_eq(of_those, kept, "%u, not %u", of_those, kept);
}

LAB_TEST(key_table, each_is_counted_once_for_as_long_as_it_is_there)
{
    enum { N = 3000 };
    struct lab lab = lab_open();
    char key[16];

    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "%d", i);
        cr_assert_eq(lab_put_key(&lab, key, DUE_KEY_REFUSE, "x", NULL,
                                 (due_spec){ .more = EXTRA(.keep_key_ns = 10) }),
                     0);
    }
    expect_counted(&lab, N, 0);
    for (int i = 0; i < N / 2; i++)
        cr_assert_str_eq(lab_dequeue(&lab), "x");
    expect_counted(&lab, N, N / 2);
    cr_assert_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    expect_counted(&lab, N / 2, N / 2);
    lab_advance(&lab, 10);
    cr_expect_eq(due_trim(lab.q), 0);
    expect_counted(&lab, 0, 0);
    lab_close(&lab);
}

LAB_TEST(key_table, a_table_that_is_empty_gives_its_memory_back)
{
    enum { N = 30000 };
    struct lab lab = lab_open();
    char key[16];
    due_id id;

    cr_assert_eq(lab_put_key(&lab, "one", DUE_KEY_REFUSE, "x", &id, (due_spec){ .delay_ns = 1 }),
                 0);
    cr_expect_eq(due_trim(lab.q), 0);
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "%d", i);
        cr_assert_eq(lab_put_key(&lab, key, DUE_KEY_REFUSE, "x", NULL, (due_spec){ .delay_ns = 1 }),
                     0);
    }
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    for (int i = 0; i < 10; i++)
        cr_expect_eq(due_trim(lab.q), 0);
    for (size_t i = 0; i < DUE__KEY_SHARDS; i++)
        cr_expect_leq(lab.q->keys->shard[i].room, 64u, "%u", lab.q->keys->shard[i].room);
    lab_close(&lab);
}
