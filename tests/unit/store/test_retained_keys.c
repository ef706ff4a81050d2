/* Kept keys that a store has lost, and that there is no memory to tell it again: that is tried
 * after a while, not again and again. */
#include "lab/shop.h"
#include "queue/queue.h"
#include "store/sender.h"

#define KEYS 8

/* Jobs with keys that stay taken, done with; and the store has lost all that. */
static struct shop shop_that_lost(void)
{
    struct shop s = shop_make(.start_ns = 5, .with.store_timeout_ns = DUE_S(30));
    char key[200];

    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = '\0';
    for (int i = 0; i < KEYS; i++) {
        key[0] = (char)('a' + i);
        cr_assert_eq(shop_put(&s, key, "tea", NULL, (due_spec){ KEEPS(1000) }), 0);
        cr_assert_str_eq(lab_dequeue(&s.lab), "tea");
    }
    cr_assert_eq(memory_disk_keys(s.disk), (size_t)KEYS);
    memory_disk_lose(s.disk, SIZE_MAX);
    cr_assert_eq(memory_disk_keys(s.disk), 0u);
    return s;
}

/* It rests meanwhile: what is counted is asked a few times in a second. */
static void expect_rest(uint64_t (*count)(const struct shop *s), const struct shop *s)
{
    int64_t began = due__monotonic_now();
    uint64_t before = count(s);

    crew_sleep(DUE_MS(300));
    uint64_t more = count(s) - before;
    cr_expect_lt(more, 20u + (uint64_t)((due__monotonic_now() - began) / DUE_MS(20)));
}

static uint64_t allocations(const struct shop *s)
{
    return atomic_load(&s->lab.state->memory.calls);
}

static uint64_t commits(const struct shop *s)
{
    return memory_store_calls(s->store, MEMORY_COMMIT);
}

Test(retained_keys, that_find_no_memory_are_tried_again_later, .timeout = 60)
{
    struct shop s = shop_that_lost();
    struct flaky *memory = &s.lab.state->memory;

    flaky_fail_in(memory, 0);
    memory->fail_on = true;
    lab_enqueue(&s.lab, "cake", .at_ns = 100);
    cr_expect_eq(memory_disk_jobs(s.disk), 1u, "a job does not wait for that");
    cr_expect_lt(memory_disk_keys(s.disk), (size_t)KEYS, "this proves nothing");
    expect_rest(allocations, &s);
    memory->fail_on = false;
    memory->fail_at = FLAKY_NEVER;
    cr_expect_eq(due__commit_mended(s.lab.q, due__monotonic_now() + DUE_S(30)), 0);
    cr_expect_eq(memory_disk_keys(s.disk), (size_t)KEYS);
    shop_close(&s);
}

/* The store has no room for them, and has for what waits. */
Test(retained_keys, that_are_refused_are_tried_again_later, .timeout = 60)
{
    struct shop s = shop_that_lost();

    shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_FULL);
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 100 };
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_ENOSPC);
    expect_rest(commits, &s);
    memory_store_forgive(s.store);
    cr_expect_eq(due__commit_mended(s.lab.q, due__monotonic_now() + DUE_S(30)), 0);
    cr_expect_eq(memory_disk_keys(s.disk), (size_t)KEYS);
    shop_close(&s);
}
