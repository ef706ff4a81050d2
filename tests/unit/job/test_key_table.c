/* The table of keys: what it counts, and what it keeps of memory. */
#include <stdio.h>

#include "job/key_table.h"
#include "lab/lab.h"
#include "os/siphash.h"
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

/* ---- One shard ---- */

enum { FIRST_ROOM = 16, KEYS = 80 };

/* The number of the next key that is in the first shard. */
static int next_in_shard(struct lab *lab, int after)
{
    char key[16];
    int len;

    do
        len = snprintf(key, sizeof key, "%d", ++after);
    while (due__siphash(lab->q->keys->seed, key, (size_t)len) % DUE__KEY_SHARDS != 0);
    return after;
}

static due_id put_number(struct lab *lab, int number)
{
    char key[16];
    due_id id;

    snprintf(key, sizeof key, "%d", number);
    cr_assert_eq(lab_put_key(lab, key, DUE_KEY_REFUSE, "x", &id, (due_spec){ .delay_ns = 1 }), 0);
    return id;
}

static bool is_there(struct lab *lab, int number)
{
    char key[16];
    due_id id;
    int len = snprintf(key, sizeof key, "%d", number);

    return due_id_of_key(lab->q, key, (size_t)len, &id) == 0;
}

/* Some key of another shard, so that there is a table. */
static struct lab lab_with_table(void)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);

    cr_assert_eq(lab_put_as(&lab, DUE_KEY_REFUSE, "x", NULL, .delay_ns = 1), 0);
    cr_assert_eq(due_cancel_key(lab.q, "k", 1, NULL), 0);
    return lab;
}

/* A table grows when it has as many keys as chains, and shrinks to a quarter when it has fewer than
 * an eighth. */
Test(key_table, grows_and_shrinks_with_its_keys)
{
    struct lab lab = lab_with_table();
    struct due__key_shard *it = &lab.q->keys->shard[0];
    due_id id[KEYS];
    uint32_t room = it->room;

    for (int i = 0, number = 0; i < KEYS; i++) {
        number = next_in_shard(&lab, number);
        room = room == 0 ? FIRST_ROOM : (uint32_t)i >= room ? 2 * room : room;
        id[i] = put_number(&lab, number);
        cr_expect_eq(it->room, room, "%d: %u", i, it->room);
    }
    for (uint32_t left = KEYS; left-- > 0;) {
        cr_assert_eq(due_cancel(lab.q, id[left], NULL), 0);
        cr_assert_eq(due_trim(lab.q), 0);
        cr_assert_eq(it->count, left);
        room = room > FIRST_ROOM && left < room / 8 ? room / 4 : room;
        cr_expect_eq(it->room, room, "%u left: %u", left, it->room);
    }
    lab_close(&lab);
}

struct other {
    struct lab *lab;
    int number; /* its key */
    bool done;
};

/* Another puts a key into the shard while one has memory for a larger table. */
static void grow_too(void *ctx, size_t size)
{
    struct other *other = ctx;

    if (!other->done && size == 2 * FIRST_ROOM * sizeof(struct due__key_chain)) {
        other->done = true;
        put_number(other->lab, other->number);
    }
}

Test(key_table, is_made_larger_by_one_of_two_who_would)
{
    struct lab lab = lab_with_table();
    struct other other = { .lab = &lab };
    int number[FIRST_ROOM + 2] = { 0 };

    for (int i = 0; i < FIRST_ROOM + 2; i++)
        number[i] = next_in_shard(&lab, i > 0 ? number[i - 1] : 0);
    for (int i = 0; i < FIRST_ROOM; i++)
        put_number(&lab, number[i]);
    other.number = number[FIRST_ROOM + 1];
    lab.state->memory.on_alloc_ctx = &other;
    lab.state->memory.on_alloc = grow_too;
    put_number(&lab, number[FIRST_ROOM]);
    cr_expect(other.done);
    for (int i = 0; i < FIRST_ROOM + 2; i++)
        cr_expect(is_there(&lab, number[i]), "%d", i);
    cr_expect_eq(lab.q->keys->shard[0].room, 2u * FIRST_ROOM);
    lab_close(&lab);
}
