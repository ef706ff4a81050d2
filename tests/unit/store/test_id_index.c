/* The index of stored jobs by itself: what an id is made of, and who is found by it. */
#include "lab/lab.h"

#include "lab/knock.h"
#include "mem/slab.h"
#include "store/id_index.h"

#define PLACES (4u * DUE__SPAN_JOBS)
#define LINE   (DUE__LINE / sizeof(uint32_t)) /* chains */

struct shelf {
    struct flaky memory;
    struct due__alloc alloc;
    struct due__slab slab;
    struct due__records stored;
    struct due__index index;
};

static struct shelf *shelf_open(void)
{
    struct shelf *s = NULL;

    cr_assert_eq(posix_memalign((void **)&s, 128, sizeof *s), 0);
    flaky_init(&s->memory, FLAKY_NEVER);
    due__alloc_init(&s->alloc, &s->memory.hooks);
    due__slab_init(&s->slab, &s->alloc);
    due__records_init(&s->stored, sizeof(struct due__stored));
    due__index_init(&s->index, &s->slab, &s->stored);
    while (due__slab_end(&s->slab) < PLACES) {
        uint32_t places = due__slab_next_places(&s->slab);
        void *segment = due__slab_segment(&s->slab, places);

        cr_assert_not_null(segment);
        due__slab_add(&s->slab, places, segment);
    }
    cr_assert(due__records_reserve(&s->stored, &s->alloc, PLACES));
    return s;
}

static void shelf_close(struct shelf *s)
{
    due__index_destroy(&s->index);
    due__records_destroy(&s->stored, &s->alloc);
    due__slab_destroy(&s->slab);
    cr_expect_eq(atomic_load(&s->memory.live), 0u);
    cr_expect_eq(atomic_load(&s->memory.bad), 0u);
    free(s);
}

static uint32_t use_of(uint32_t number)
{
    return 7 + number % 5;
}

static int add_as(struct shelf *s, uint32_t number, due_id id, bool fresh)
{
    struct due__stored *it = due__records_at(&s->stored, number);

    due__stored_name(it, id);
    due__store_release(&due__job_at(&s->slab, number)->word,
                       due__word(use_of(number), 0, DUE__CLAIMED));
    return due__index_add(&s->index, number, fresh);
}

/* Of three writers, in two priorities. */
static due_id id_of(uint32_t number)
{
    return due__id_stored(number % 2 ? 0 : 200, 1 + number % 3, 1000 + number);
}

static int add(struct shelf *s, uint32_t number)
{
    return add_as(s, number, id_of(number), true);
}

static bool has(struct shelf *s, uint32_t number)
{
    uint32_t found = UINT32_MAX;
    uint32_t use = 0;

    if (!due__index_find(&s->index, id_of(number), &found, &use))
        return false;
    cr_expect_eq(found, number);
    cr_expect_eq(use, use_of(number));
    return true;
}

static uint32_t count(const struct shelf *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < DUE__INDEX_SHARDS; i++)
        n += s->index.shard[i].count;
    return n;
}

/* ---- Ids ---- */

Test(id_index, an_id_says_priority_writer_and_sequence)
{
    static const unsigned char bytes[16] = { 250, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0, 0 };
    due_id id = due__id_stored(5, UINT64_C(0x010203040506), UINT64_C(0x0708090a0b0c0d));

    cr_expect_arr_eq(id.byte, bytes, sizeof bytes);
}

/* The higher priority first, then who has come before. */
Test(id_index, ids_stand_in_the_order_of_the_jobs)
{
    static const struct {
        int priority;
        uint64_t writer;
        uint64_t sequence;
    } jobs[] = { { 255, 9, 9 },    { 6, 9, 9 },       { 5, 1, 1 }, { 5, 1, 2 },
                 { 5, 1, 0xff },   { 5, 1, 256 },     { 5, 2, 0 }, { 5, 2, 255 },
                 { 5, 0xff00, 0 }, { 5, 1 << 20, 0 }, { 0, 1, 1 }, { 0, 1, 1 << 30 } };

    for (size_t i = 1; i < sizeof jobs / sizeof jobs[0]; i++) {
        due_id one = due__id_stored(jobs[i - 1].priority, jobs[i - 1].writer, jobs[i - 1].sequence);
        due_id next = due__id_stored(jobs[i].priority, jobs[i].writer, jobs[i].sequence);

        cr_expect_lt(memcmp(&one, &next, sizeof one), 0, "%zu", i);
    }
}

/* ---- Finding ---- */

Test(id_index, each_is_found_until_it_is_removed)
{
    struct shelf *s = shelf_open();

    cr_expect_not(has(s, 0), "there is nothing");
    for (uint32_t i = 0; i < PLACES; i++)
        cr_assert_eq(add(s, i), 0);
    cr_expect_eq(count(s), PLACES);
    for (uint32_t i = 0; i < PLACES; i++)
        cr_assert(has(s, i), "%u", i);
    for (uint32_t i = 0; i < PLACES; i += 3)
        due__index_remove(&s->index, i);
    for (uint32_t i = 0; i < PLACES; i++)
        cr_assert_eq(has(s, i), i % 3 != 0, "%u", i);
    uint32_t left = PLACES - (PLACES + 2) / 3;
    cr_expect_eq(count(s), left);
    due__index_remove(&s->index, 0);
    cr_expect_eq(count(s), left, "it was removed before");
    for (uint32_t i = 0; i < PLACES; i += 3)
        cr_assert_eq(add(s, i), 0);
    for (uint32_t i = 0; i < PLACES; i++)
        cr_assert(has(s, i), "%u", i);
    for (uint32_t i = 0; i < PLACES; i++)
        due__index_remove(&s->index, i);
    cr_expect_eq(count(s), 0u);
    shelf_close(s);
}

/* Also one that differs in any one bit. */
Test(id_index, no_other_is_found)
{
    struct shelf *s = shelf_open();
    uint32_t number;
    uint32_t use;

    due__index_remove(&s->index, 5); /* where there is nothing at all */
    for (uint32_t i = 0; i < 1000; i++)
        cr_assert_eq(add_as(s, i, due__id_stored(3, 1, i << 12 | 0xabc), true), 0);
    for (uint32_t i = 0; i < 1000; i += 7) {
        for (unsigned bit = 0; bit < 128; bit++) {
            due_id id = due__id_stored(3, 1, i << 12 | 0xabc);

            if (bit / 8 == 13 || bit / 8 == 12)
                continue; /* may be that of another */
            id.byte[bit / 8] = (unsigned char)(id.byte[bit / 8] ^ 1u << bit % 8);
            bool same = due__index_find(&s->index, id, &number, &use);
            cr_assert(!same || number != i, "%u, bit %u", i, bit);
        }
    }
    shelf_close(s);
}

Test(id_index, one_that_is_there_is_not_entered_again)
{
    struct shelf *s = shelf_open();

    cr_expect_eq(add_as(s, 1, id_of(1), false), 0);
    cr_expect_eq(add_as(s, 2, id_of(2), false), 0);
    cr_expect_eq(add_as(s, 3, id_of(1), false), DUE_EBUSY);
    cr_expect_eq(count(s), 2u);
    cr_expect(has(s, 1));
    due__index_remove(&s->index, 1);
    cr_expect_eq(add_as(s, 3, id_of(1), false), 0);
    cr_expect_eq(count(s), 2u);
    shelf_close(s);
}

/* ---- Chains ---- */

static uint32_t chain_length(const struct shelf *s, const struct due__index_shard *it, uint32_t at)
{
    uint32_t n = 0;

    for (uint32_t place = it->chain[at]; place != 0; n++) {
        const struct due__stored *next = due__records_at(&s->stored, place - 1);

        place = next->next;
    }
    return n;
}

/* As many chains as jobs, or up to twice as many: a power of two. */
static void expect_room(const struct shelf *s)
{
    for (uint32_t i = 0; i < DUE__INDEX_SHARDS; i++) {
        const struct due__index_shard *it = &s->index.shard[i];

        cr_assert_eq(it->room & (it->room - 1), 0u);
        cr_assert_geq(it->room, it->count);
        cr_assert(it->room <= 256 || it->room <= 2 * it->count, "%u for %u", it->room, it->count);
    }
}

Test(id_index, ids_made_one_after_another_have_chains_of_their_own_side_by_side)
{
    struct shelf *s = shelf_open();

    for (uint32_t i = 0; i < PLACES; i++) {
        cr_assert_eq(add_as(s, i, due__id_stored(1, 1, i), true), 0);
        if (i == LINE - 1) {
            uint32_t shards = 0;

            for (uint32_t k = 0; k < DUE__INDEX_SHARDS; k++)
                shards += s->index.shard[k].count > 0;
            cr_expect_leq(shards, 2u, "a cache line of them is in one shard");
        }
        if (i % 1000 == 0)
            expect_room(s);
    }
    expect_room(s);
    for (uint32_t i = 0; i < DUE__INDEX_SHARDS; i++) {
        const struct due__index_shard *it = &s->index.shard[i];

        cr_expect_geq(it->count, PLACES / DUE__INDEX_SHARDS - LINE);
        cr_expect_leq(it->count, PLACES / DUE__INDEX_SHARDS + LINE);
        for (uint32_t at = 0; at < it->room; at++)
            cr_assert_leq(chain_length(s, it, at), 1u);
    }
    shelf_close(s);
}

/* ---- Memory ---- */

Test(id_index, what_was_reserved_asks_for_no_memory_later)
{
    static const uint32_t sizes[] = { 1, 4096, 4097, 8192, PLACES };

    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        struct shelf *s = shelf_open();
        uint32_t most = sizes[k] <= 4096 ? 256 : sizes[k] <= 8192 ? 512 : 1024;

        cr_assert(due__index_reserve(&s->index, sizes[k]));
        for (uint32_t i = 0; i < DUE__INDEX_SHARDS; i++)
            cr_expect_eq(s->index.shard[i].room, most);
        size_t before = atomic_load(&s->memory.calls);
        for (uint32_t i = 0; i < sizes[k]; i++)
            cr_assert_eq(add_as(s, i, due__id_stored(1, 1, 64 * LINE + i), true), 0);
        cr_expect_eq(atomic_load(&s->memory.calls), before, "%u", sizes[k]);
        cr_expect(due__index_reserve(&s->index, 1), "that is there already");
        cr_expect_eq(atomic_load(&s->memory.calls), before);
        shelf_close(s);
    }
}

/* Whichever shard has no memory. */
Test(id_index, a_reserve_without_memory_is_told)
{
    for (size_t n = 0; n <= DUE__INDEX_SHARDS; n++) {
        struct shelf *s = shelf_open();

        flaky_fail_in(&s->memory, n);
        cr_expect_eq(due__index_reserve(&s->index, 5000), n == DUE__INDEX_SHARDS);
        shelf_close(s);
    }
}

Test(id_index, without_memory_the_first_is_refused_and_later_ones_have_longer_chains)
{
    struct shelf *s = shelf_open();

    s->memory.fail_on = true;
    flaky_fail_in(&s->memory, 0);
    cr_expect_eq(add(s, 0), DUE_ENOMEM);
    cr_expect_not(has(s, 0));
    cr_expect_eq(count(s), 0u);
    due__index_remove(&s->index, 0); /* it is not there */
    s->memory.fail_at = FLAKY_NEVER;
    s->memory.fail_on = false;
    cr_assert(due__index_reserve(&s->index, 1));
    s->memory.fail_on = true;
    flaky_fail_in(&s->memory, 0);
    for (uint32_t i = 0; i < PLACES / 2; i++)
        cr_assert_eq(add(s, i), 0);
    for (uint32_t i = 0; i < PLACES / 2; i++)
        cr_assert(has(s, i));
    for (uint32_t i = 0; i < DUE__INDEX_SHARDS; i++)
        cr_expect_eq(s->index.shard[i].room, 256u);
    s->memory.fail_at = FLAKY_NEVER;
    s->memory.fail_on = false;
    for (uint32_t i = PLACES / 2; i < PLACES; i++)
        cr_assert_eq(add(s, i), 0);
    expect_room(s);
    for (uint32_t i = 0; i < PLACES; i++)
        cr_assert(has(s, i));
    shelf_close(s);
}

/* ---- Under the lock of its shard ---- */

struct errand {
    struct shelf *s;
    struct due__index_shard *shard;
    uint32_t before;
    bool found;
};

static void call_add(void *arg)
{
    struct errand *e = arg;

    cr_expect_eq(due__index_add(&e->s->index, 0, true), 0);
}

static void call_remove(void *arg)
{
    struct errand *e = arg;

    due__index_remove(&e->s->index, 0);
}

static enum knock_far has_changed(void *arg)
{
    const struct errand *e = arg;

    return e->shard->count == e->before ? KNOCK_NOTHING : KNOCK_ALL;
}

static void call_find(void *arg)
{
    struct errand *e = arg;
    uint32_t number, generation;

    e->found = due__index_find(&e->s->index, due__stored_id(due__records_at(&e->s->stored, 0)),
                               &number, &generation);
}

/* While it is waited for, it is gone. */
static enum knock_far goes(void *arg)
{
    struct errand *e = arg;

    if (e->shard->count > 0)
        memset(e->shard->chain, 0, e->shard->room * sizeof *e->shard->chain);
    return KNOCK_NOTHING;
}

Test(id_index, is_changed_and_looked_at_under_the_lock_of_a_shard, .timeout = 30)
{
    struct errand e = { .s = shelf_open() };

    cr_assert_eq(add(e.s, 0), 0);
    for (size_t i = 0; i < DUE__INDEX_SHARDS; i++)
        if (e.s->index.shard[i].count > 0)
            e.shard = &e.s->index.shard[i];
    cr_assert_not_null(e.shard);
    e.before = 1;
    KNOCK_IS(knock(&e.shard->lock, call_remove, has_changed, &e), KNOCK_UNDER);
    e.before = 0;
    KNOCK_IS(knock(&e.shard->lock, call_add, has_changed, &e), KNOCK_UNDER);
    (void)knock(&e.shard->lock, call_find, goes, &e);
    if (KNOCKS)
        cr_expect_not(e.found, "it looked before it had the lock");
    shelf_close(e.s);
}
