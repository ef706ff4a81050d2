/* Memory of payloads that do not fit into a job: classes, what is kept, and what is not. */
#include "lab/lab.h"

#include "mem/slab.h"
#include "mem/payload.h"

/* The room alone, on memory that is counted. */
struct shelf {
    struct flaky memory;
    struct due__alloc alloc;
    struct due__payloads payloads;
};

/* NULL: a checker of memory is at work, and nothing is kept. */
static struct shelf *shelf_open(void)
{
    struct shelf *s = NULL;

    cr_assert_eq(posix_memalign((void **)&s, 128, sizeof *s), 0);
    flaky_init(&s->memory, FLAKY_NEVER);
    due__alloc_init(&s->alloc, &s->memory.hooks);
    due__payloads_init(&s->payloads, &s->alloc);
    if (s->payloads.keeps)
        return s;
    free(s);
    return NULL;
}

static void shelf_close(struct shelf *s)
{
    cr_expect(due__payloads_check(&s->payloads));
    due__payloads_destroy(&s->payloads);
    cr_expect_eq(atomic_load(&s->memory.live), 0u);
    cr_expect_eq(atomic_load(&s->memory.bad), 0u);
    free(s);
}

static void *filled(struct shelf *s, size_t len)
{
    void *memory = due__payload_new(&s->payloads, len);

    cr_assert_not_null(memory);
    memset(memory, 0x11, len);
    return memory;
}

/* @n payloads of @len bytes, all at a time, and then none. */
static void rise_and_fall(struct shelf *s, size_t n, size_t len)
{
    void **all = calloc(n, sizeof *all);

    cr_assert_not_null(all);
    for (size_t i = 0; i < n; i++)
        all[i] = filled(s, len);
    for (size_t i = 0; i < n; i++)
        due__payload_free(&s->payloads, all[i], len);
    free(all);
}

Test(payload, of_any_length_lies_in_a_block_at_most_a_quarter_larger)
{
    struct shelf *s = shelf_open();

    for (size_t len = 33; s != NULL && len <= DUE__PAYLOAD_KEPT + 2; len++) {
        void *memory = filled(s, len);
        size_t size = atomic_load(&s->memory.bytes);

        cr_assert_geq(size, len);
        cr_assert_leq(size * 4, len * 5, "%zu bytes for %zu", size, len);
        cr_assert(len <= DUE__PAYLOAD_KEPT || size == len);
        due__payload_free(&s->payloads, memory, len);
        due__payloads_trim(&s->payloads, 0, true);
        cr_assert_eq(atomic_load(&s->memory.live), 0u, "length %zu", len);
    }
    if (s != NULL)
        shelf_close(s);
}

Test(payload, of_each_class_uses_the_block_of_the_one_before_it)
{
    struct shelf *s = shelf_open();
    size_t classes = 0;

    for (size_t size = 32; s != NULL && size < DUE__PAYLOAD_KEPT; size *= 2) {
        for (size_t quarter = 1; quarter <= 4; quarter++, classes++) {
            size_t len = size + size / 4 * quarter;
            void *first = filled(s, len);
            size_t calls = atomic_load(&s->memory.calls);

            due__payload_free(&s->payloads, first, len);
            cr_assert_eq(filled(s, len - size / 4 + 1), first, "the shortest of class %zu", len);
            cr_assert_eq(atomic_load(&s->memory.calls), calls);
            due__payload_free(&s->payloads, first, len);
            void *other = filled(s, len + 1);
            cr_assert_neq(other, first, "one longer than class %zu", len);
            due__payload_free(&s->payloads, other, len + 1);
            due__payloads_trim(&s->payloads, 0, true);
        }
    }
    cr_expect(s == NULL || classes == DUE__PAYLOAD_CLASSES);
    if (s != NULL)
        shelf_close(s);
}

Test(payload, longer_than_64_KiB_is_never_kept)
{
    struct shelf *s = shelf_open();

    if (s == NULL)
        return;
    rise_and_fall(s, 3, DUE__PAYLOAD_KEPT + 1);
    cr_expect_eq(atomic_load(&s->memory.live), 0u);
    shelf_close(s);
}

Test(payload, memory_that_is_kept_is_bounded_and_trim_gives_it_back)
{
    static const size_t len[] = { 40, 100, 4096, 65536, 5000, 41 };
    struct shelf *s = shelf_open();

    for (size_t i = 0; s != NULL && i < sizeof len / sizeof len[0]; i++) {
        rise_and_fall(s, 3 * DUE__PAYLOADS_KEEP / len[i], len[i]);
        cr_expect(due__payloads_check(&s->payloads), "length %zu", len[i]);
        size_t bytes = atomic_load(&s->memory.bytes);
        cr_expect_eq(bytes, due__payloads_bytes(&s->payloads));
        cr_expect_leq(bytes, DUE__PAYLOADS_KEEP);
        cr_expect_gt(bytes, DUE__DEPOT_KEEPS / 2, "hardly anything is kept");
    }
    if (s == NULL)
        return;
    due__payloads_trim(&s->payloads, DUE__DEPOT_KEEPS / 2, false);
    cr_expect_leq(due__payloads_idle(&s->payloads), DUE__DEPOT_KEEPS / 2);
    cr_expect_gt(due__payloads_bytes(&s->payloads), 0u);
    due__payloads_trim(&s->payloads, 0, true);
    cr_expect_eq(atomic_load(&s->memory.live), 0u);
    shelf_close(s);
}

/* Else a queue whose payloads change their length would keep nothing that is of use. */
Test(payload, of_a_new_length_drives_out_what_is_kept_of_others)
{
    enum { N = 300 };
    struct shelf *s = shelf_open();

    if (s == NULL)
        return;
    rise_and_fall(s, 2 * DUE__PAYLOADS_KEEP / 100, 100);
    rise_and_fall(s, N, 4096);
    size_t calls = atomic_load(&s->memory.calls);
    rise_and_fall(s, N, 4096);
    cr_expect_eq(atomic_load(&s->memory.calls), calls);
    shelf_close(s);
}

struct errand {
    struct shelf *s;
    void *block[128];
};

static int give_back(void *arg)
{
    struct errand *e = arg;

    for (size_t i = 0; i < sizeof e->block / sizeof e->block[0]; i++)
        due__payload_free(&e->s->payloads, e->block[i], 1000);
    return 0;
}

Test(payload, memory_given_back_in_another_thread_is_used_again_in_this_one)
{
    struct errand e = { .s = shelf_open() };
    struct crew_thread thread;

    if (e.s == NULL)
        return;
    for (size_t i = 0; i < 128; i++)
        e.block[i] = filled(e.s, 1000);
    crew_go(&thread, give_back, &e);
    cr_expect_eq(crew_join(&thread), 0);
    cr_expect(due__payloads_check(&e.s->payloads));
    size_t calls = atomic_load(&e.s->memory.calls);
    for (size_t i = 0; i < 64; i++)
        e.block[i] = filled(e.s, 1000);
    cr_expect_eq(atomic_load(&e.s->memory.calls), calls);
    for (size_t i = 0; i < 64; i++)
        due__payload_free(&e.s->payloads, e.block[i], 1000);
    shelf_close(e.s);
}

/* What two threads of one shard do when they meet. */
Test(payload, waits_for_nobody_who_holds_a_lock_of_its_room)
{
    struct shelf *s = shelf_open();

    if (s == NULL)
        return;
    void *first = filled(s, 100);
    struct due__lock *mine = &s->payloads.shard[due__thread_shard()].lock;
    due__lock_acquire(mine);
    due__payload_free(&s->payloads, first, 100); /* to the depot */
    due__payload_free(&s->payloads, filled(s, 100), 100);
    due__lock_release(mine);
    cr_expect_eq(due__payloads_idle(&s->payloads), due__payloads_bytes(&s->payloads));
    due__lock_acquire(&s->payloads.depot);
    first = filled(s, 100);
    due__lock_release(&s->payloads.depot);
    due__payload_free(&s->payloads, first, 100);
    shelf_close(s);
}

Test(payload, that_finds_no_memory_gets_what_is_kept_for_others)
{
    struct shelf *s = shelf_open();

    if (s == NULL)
        return;
    rise_and_fall(s, 10, 4096);
    flaky_fail_in(&s->memory, 0);
    void *memory = filled(s, 50);
    cr_expect_eq(due__payloads_bytes(&s->payloads), 0u);
    flaky_fail_in(&s->memory, 0);
    cr_expect_null(due__payload_new(&s->payloads, 4096), "nothing is kept that could help");
    due__payload_free(&s->payloads, memory, 50);
    shelf_close(s);
}

Test(payload, memory_that_may_be_kept_is_kept_to_the_last_byte)
{
    struct shelf *s = shelf_open();

    if (s == NULL)
        return;
    for (size_t n = 200; due__payloads_idle(&s->payloads) == 0 && n < 20000; n *= 2)
        rise_and_fall(s, n, 4096);
    size_t idle = due__payloads_idle(&s->payloads);
    cr_assert_gt(idle, 0u);
    due__payloads_trim(&s->payloads, idle, false);
    cr_expect_eq(due__payloads_idle(&s->payloads), idle);
    due__payloads_trim(&s->payloads, idle - 1, false);
    cr_expect_lt(due__payloads_idle(&s->payloads), idle);
    shelf_close(s);
}

/* As where a checker of memory is at work: what is given back goes back. */
Test(payload, that_is_not_kept_leaves_nothing_to_trim)
{
    struct shelf *s = NULL;

    cr_assert_eq(posix_memalign((void **)&s, 128, sizeof *s), 0);
    flaky_init(&s->memory, FLAKY_NEVER);
    due__alloc_init(&s->alloc, &s->memory.hooks);
    due__payloads_init(&s->payloads, &s->alloc);
    s->payloads.keeps = false;
    void *memory = filled(s, 100);
    cr_expect_eq(atomic_load(&s->memory.bytes), 100u);
    due__payload_free(&s->payloads, memory, 100);
    cr_expect_eq(atomic_load(&s->memory.live), 0u);
    cr_expect_eq(due__payloads_bytes(&s->payloads), 0u);
    due__payloads_trim(&s->payloads, 0, true);
    shelf_close(s);
}

/* ---- The same, seen from outside ---- */

static unsigned char bytes[DUE__PAYLOAD_KEPT + 2];

static void put(struct lab *lab, size_t len, int64_t delay_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .data = bytes, .len = len, .delay_ns = delay_ns };

    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)(len + i);
    cr_assert_eq(due_enqueue(lab->q, &spec, 0, NULL), 0);
}

static void take(struct lab *lab)
{
    due_job job;

    cr_assert_eq(due_dequeue(lab->q, &job, DUE_S(20)), 0);
    for (size_t i = 0; i < job.len; i++)
        cr_assert_eq(((const unsigned char *)job.data)[i], (unsigned char)(job.len + i));
    due_job_done(&job);
}

LAB_TEST(payload, at_each_edge_of_a_class_comes_out_as_it_went_in)
{
    struct lab lab = lab_open();

    for (int round = 0; round < 3; round++) {
        for (size_t size = 32; size <= DUE__PAYLOAD_KEPT; size += size / 4) {
            for (size_t len = size - 1; len <= size + 1; len++)
                put(&lab, len, 0);
            take(&lab);
            take(&lab);
            take(&lab);
        }
    }
    lab_close(&lab);
}

LAB_TEST(payload, memory_of_a_queue_that_was_full_once_is_given_back)
{
    enum { JOBS = 6000 };
    struct lab lab = lab_open(.with.reserve = 2 * JOBS);
    size_t before = atomic_load(&lab.state->memory.bytes);

    for (int i = 0; i < JOBS; i++)
        put(&lab, 4096, 0);
    cr_expect_geq(atomic_load(&lab.state->memory.bytes), before + JOBS * (size_t)4096);
    for (int i = 0; i < JOBS; i++)
        take(&lab);
    size_t after = atomic_load(&lab.state->memory.bytes);
    cr_expect_leq(after, before + DUE__PAYLOADS_KEEP + 65536);
    cr_expect_leq(lab_stats(&lab).kept_bytes, DUE__PAYLOADS_KEEP);
    cr_expect_eq(due_trim(lab.q), 0);
    cr_expect_eq(lab_stats(&lab).kept_bytes, 0u);
    cr_expect_leq(atomic_load(&lab.state->memory.bytes), before + 65536);
    lab_close(&lab);
}

LAB_TEST(payload, that_still_waits_when_the_queue_closes_is_given_back)
{
    struct lab lab = lab_open();

    for (size_t i = 0; i < 500; i++) {
        put(&lab, 33 + i * 131, 0);
        if (i % 3 == 0)
            take(&lab);
        put(&lab, 33 + i * 131, 5);
    }
    lab_close(&lab);
}

/* ---- Bounds, to the byte ---- */

/* As if the shard and the depot kept so much of others already, a block of 1,024 bytes comes back:
 * by how much either has more then. */
static void give_beside(struct shelf *s, size_t shard, size_t depot, size_t *to_shard,
                        size_t *to_depot)
{
    struct due__payloads *p = &s->payloads;
    struct due__payload_shard *mine = &p->shard[due__thread_shard()];
    void *memory = filled(s, 1000);

    cr_assert_eq(mine->bytes, 0u);
    mine->bytes = shard;
    due__store_relaxed(&p->bytes, depot);
    due__payload_free(p, memory, 1000);
    *to_shard = mine->bytes - shard;
    *to_depot = due__payloads_idle(p) - depot;
    mine->bytes = *to_shard;
    due__store_relaxed(&p->bytes, *to_depot);
    cr_expect(due__payloads_check(p));
    cr_expect_eq(atomic_load(&s->memory.bytes), *to_shard + *to_depot);
    due__payloads_trim(p, 0, true);
    cr_expect_eq(atomic_load(&s->memory.live), 0u);
}

Test(payload, that_comes_back_is_kept_up_to_the_last_byte_of_each_bound)
{
    enum { BLOCK = 1024, FULL = DUE__DEPOT_KEEPS - DUE__PAYLOAD_KEPT };
    static const struct {
        size_t shard, depot;
        size_t to_shard, to_depot;
    } rows[] = { { 0, 0, BLOCK, 0 },
                 { 0, FULL, BLOCK, 0 },
                 { 0, FULL + 1, 0, BLOCK },
                 { DUE__SHARD_KEEPS - BLOCK, 0, BLOCK, 0 },
                 { DUE__SHARD_KEEPS - BLOCK + 1, 0, 0, BLOCK },
                 { 0, DUE__DEPOT_KEEPS - BLOCK, 0, BLOCK },
                 { 0, DUE__DEPOT_KEEPS - BLOCK + 1, 0, 0 } };
    struct shelf *s = shelf_open();

    for (size_t i = 0; s != NULL && i < sizeof rows / sizeof *rows; i++) {
        size_t to_shard, to_depot;

        give_beside(s, rows[i].shard, rows[i].depot, &to_shard, &to_depot);
        cr_expect_eq(to_shard, rows[i].to_shard, "row %zu: %zu bytes", i, to_shard);
        cr_expect_eq(to_depot, rows[i].to_depot, "row %zu: %zu bytes", i, to_depot);
    }
    if (s != NULL)
        shelf_close(s);
}
