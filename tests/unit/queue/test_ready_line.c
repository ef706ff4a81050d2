/* A topic's line and its window by themselves, against a sorted array: most slots come in order,
 * some before, some die, and sweeps stop anywhere. */
#include <criterion/criterion.h>
#include <string.h>

#include "lab/crew.h"
#include "queue/ready_line.h"

enum { STEPS = 4000, MOST = 1500 };

struct script {
    struct due__alloc alloc;
    struct due__pool pool;
    struct due__nodes nodes;
    struct due__line line;
    uint64_t random;
    int64_t now_ns;
    uint32_t jobs;                 /* that came so far */
    bool dead[STEPS + 1];          /* by job */
    struct due__slot alive[STEPS]; /* in order */
    size_t count;                  /* of them */
};

static void script_begin(struct script *s, uint64_t seed)
{
    *s = (struct script){ .random = seed };
    due__alloc_init(&s->alloc, NULL);
    due__pool_init(&s->pool, &s->alloc);
    struct due__region *region = due__region_new(&s->alloc, DUE__CHUNKS_AT_OPEN);
    cr_assert_not_null(region);
    due__pool_adopt(&s->pool, region);
    s->nodes.pool = &s->pool;
}

static void model_add(struct script *s, struct due__slot slot)
{
    size_t at = s->count++;

    for (; at > 0 && due__slot_before(slot, s->alive[at - 1]); at--)
        s->alive[at] = s->alive[at - 1];
    s->alive[at] = slot;
}

static void model_remove(struct script *s, size_t at)
{
    s->count--;
    memmove(&s->alive[at], &s->alive[at + 1], (s->count - at) * sizeof s->alive[0]);
}

static void push(struct script *s)
{
    int64_t back = crew_below(&s->random, 4) == 0 ? (int64_t)crew_below(&s->random, 1000) : 0;
    struct due__slot slot = due__slot_make(2000 + s->now_ns - back,
                                           (unsigned)crew_below(&s->random, 3), s->jobs, s->jobs);

    s->now_ns += (int64_t)crew_below(&s->random, 3);
    bool pushed = crew_below(&s->random, 8) == 0 ? due__line_push_aside(&s->line, &s->nodes, slot)
                                                 : due__line_push(&s->line, &s->nodes, slot);
    if (!pushed)
        return;
    s->jobs++;
    model_add(s, slot);
}

/* The first that lives comes; now and then it goes back. */
static void pop(struct script *s)
{
    struct due__slot first;
    struct due__slot slot;

    while (due__line_first(&s->line, &first)) {
        slot = due__line_pop(&s->line, &s->nodes);
        cr_assert(due__slot_same(first, slot));
        if (s->dead[due__slot_job(slot)])
            continue;
        cr_assert_gt(s->count, 0u);
        cr_assert(due__slot_same(slot, s->alive[0]), "out of order");
        if (crew_below(&s->random, 4) > 0 || !due__line_unpop(&s->line, &s->nodes, slot))
            model_remove(s, 0);
        return;
    }
    cr_assert_eq(s->count, 0u, "it has lost some");
}

static void kill_one(struct script *s)
{
    if (s->count == 0)
        return;
    size_t at = (size_t)crew_below(&s->random, s->count);
    s->dead[due__slot_job(s->alive[at])] = true;
    model_remove(s, at);
}

static size_t keep(const void *ctx, struct due__slot *slot, size_t n)
{
    const struct script *s = ctx;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        slot[kept] = slot[i];
        kept += !s->dead[due__slot_job(slot[i])];
    }
    return kept;
}

static bool sweep(struct script *s, size_t budget)
{
    return due__line_sweep(&s->line, &s->nodes, keep, s, budget);
}

static void step(struct script *s)
{
    switch (crew_below(&s->random, 8)) {
    case 0:
        pop(s);
        break;
    case 1:
    case 2:
        kill_one(s);
        break;
    case 3:
        sweep(s, 1 + (size_t)crew_below(&s->random, 100));
        break;
    default:
        if (s->count < MOST)
            push(s);
        else
            pop(s);
    }
}

static void script_end(struct script *s)
{
    while (!sweep(s, 50)) /* the one that was begun, and one of all */
        ;
    while (!sweep(s, 50))
        ;
    cr_expect(due__line_check(&s->line));
    cr_expect_eq(s->line.count, s->count, "a dead one is left");
    while (s->count > 0)
        pop(s);
    pop(s);
    cr_expect_eq(s->line.count, 0u);
    cr_expect_eq(s->pool.free_count, s->pool.total, "a chunk is left");
    due__pool_destroy(&s->pool);
}

Test(ready_line, is_in_order_whatever_comes_dies_and_is_swept, .timeout = 60)
{
    static struct script s;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        script_begin(&s, seed);
        for (int i = 0; i < STEPS; i++) {
            step(&s);
            if (i % 16 == 0)
                cr_assert(due__line_check(&s.line), "seed %d, step %d", (int)seed, i);
        }
        script_end(&s);
    }
}

/* What a sweep has looked at: slots beside the run, one by one, and chunks of it. */
struct looked {
    size_t aside;
    size_t chunks;
};

static size_t keep_and_count(const void *ctx, struct due__slot *slot, size_t n)
{
    struct looked *looked = *(struct looked *const *)ctx;

    (void)slot;
    looked->aside += n == 1;
    looked->chunks += n > 1;
    return n;
}

/* A step beside the run costs four, a chunk of it as much as it has slots: no more than the budget,
 * but for the last one. */
Test(ready_line, is_swept_as_far_as_the_budget_goes)
{
    enum { ASIDE = 10, CHUNKS = 4, ALL = 4 * ASIDE + CHUNKS * DUE__CHUNK_SLOTS };
    static struct script s;

    for (size_t budget = 1; budget <= ALL + 2; budget++) {
        struct looked looked = { 0 };
        struct looked *at = &looked;

        script_begin(&s, 1);
        for (uint32_t i = 0; i < CHUNKS * DUE__CHUNK_SLOTS; i++)
            cr_assert(due__line_push(&s.line, &s.nodes, due__slot_make(1000 + i, 0, i, i)));
        for (uint32_t i = 0; i < ASIDE; i++)
            cr_assert(due__line_push_aside(&s.line, &s.nodes, due__slot_make(500 + i, 0, i, i)));
        bool all = due__line_sweep(&s.line, &s.nodes, keep_and_count, &at, budget);
        size_t aside = budget < 4 * ASIDE ? (budget + 3) / 4 : ASIDE;
        size_t chunks = budget <= 4 * ASIDE
                            ? 0
                            : (budget - 4 * ASIDE + DUE__CHUNK_SLOTS - 1) / DUE__CHUNK_SLOTS;
        cr_expect_eq(looked.aside, aside, "%zu: %zu", budget, looked.aside);
        cr_expect_eq(looked.chunks, chunks < CHUNKS ? chunks : CHUNKS, "%zu: %zu", budget,
                     looked.chunks);
        cr_expect_eq(all, budget > ALL, "%zu", budget);
        cr_expect(due__line_check(&s.line));
        cr_expect_eq(s.line.count, (size_t)ASIDE + CHUNKS * DUE__CHUNK_SLOTS);
        for (uint32_t i = 0; s.line.count > 0; i++) {
            int64_t due = i < ASIDE ? 500 + i : 1000 + i - ASIDE;

            cr_assert_eq(due__slot_deadline(due__line_pop(&s.line, &s.nodes)), due, "%u", i);
        }
        due__pool_destroy(&s.pool);
    }
}

Test(ready_line, shows_in_its_window_what_was_put_there_in_that_order)
{
    struct due__window w = { .ends = 0 };
    struct due__slot slots[DUE__WINDOW_SLOTS];
    struct due__slot soon = { 0, 0 };
    struct due__slot slot;
    uint32_t in = 0;
    uint32_t out = 0;

    for (int round = 0; round < 100; round++) {
        uint32_t n = 1 + (uint32_t)(round * 7 % 40);

        for (uint32_t i = 0; i < n; i++)
            slots[i] = due__slot_make(in + i, 0, in + i, in + i);
        due__window_publish(&w, slots, n);
        in += n;
        cr_expect_eq(due__window_count(&w), in - out);
        cr_assert(due__window_pop(&w, &slot, 3, &soon));
        cr_expect_eq(due__slot_job(slot), out);
        cr_expect_eq(due__slot_job(soon), n > 3 ? out + 3 : out);
        out++;
        uint32_t took = due__window_take(&w, slots, n / 2);
        cr_expect_eq(took, n / 2 < in - out ? n / 2 : in - out);
        for (uint32_t i = 0; i < took; i++)
            cr_expect_eq(due__slot_job(slots[i]), out + i);
        out += took;
        took = due__window_recall(&w, slots);
        cr_expect_eq(took, in - out);
        for (uint32_t i = 0; i < took; i++)
            cr_expect_eq(due__slot_job(slots[i]), out + i);
        out += took;
        cr_expect_eq(due__window_count(&w), 0u);
        cr_expect_not(due__window_pop(&w, &slot, 3, &soon));
        cr_expect_eq(due__window_take(&w, slots, 5), 0u);
    }
}
