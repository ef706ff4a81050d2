/* Kept keys that a store has lost, and that there is no memory to tell it again: that is tried
 * after a while, not again and again.  And those that are shown while it is to forget others. */
#include <string.h>

#include "lab/shop.h"
#include "queue/queue.h"
#include "store/retained_keys.h"
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

/* ---- While others are being forgotten ---- */

static const struct due_store_verbs *own_verbs;
static due_queue *reader;     /* its kept keys are read while a batch is to forget some; or NULL */
static due_id whose;          /* of all that are shown then */
static const char *shown[16]; /* their bytes; NULL: the end */

static int show(due_store *s, int rewind, size_t max, due_store_visit_key *visit, void *ctx,
                int64_t until_ns)
{
    if (reader == NULL)
        return own_verbs->keys(s, rewind, max, visit, ctx, until_ns);
    for (size_t i = 0; shown[i] != NULL; i++)
        cr_assert_eq(visit(ctx, shown[i], strlen(shown[i]), whose, INT64_MAX - 1), 0);
    return 0;
}

static int read_while_forgetting(due_store *s, const due_change *changes, size_t n, uint64_t number,
                                 int64_t until_ns)
{
    for (size_t i = 0; reader != NULL && i < n; i++) {
        if (changes[i].kind == DUE_CHANGE_FORGET) {
            cr_assert_eq(due__retained_load(reader, until_ns), 0);
            reader = NULL;
        }
    }
    return own_verbs->commit(s, changes, n, number, until_ns);
}

/* The store is to forget "over", and shows these meanwhile, as keys of the same job. */
static struct shop shop_that_shows(struct due_store_verbs *verbs)
{
    struct shop s = { .disk = memory_disk_new(NULL) };

    s.store = memory_store_new(s.disk);
    own_verbs = s.store->verbs;
    *verbs = *own_verbs;
    verbs->keys = show;
    verbs->commit = read_while_forgetting;
    s.store->verbs = verbs;
    s.lab = lab_open(.start_ns = 5, .with.store = s.store);
    shop_wait_loaded(&s);
    cr_assert_eq(shop_put(&s, "over", "tea", &whose, (due_spec){ KEEPS(10) }), 0);
    cr_assert_str_eq(lab_dequeue(&s.lab), "tea");
    lab_advance(&s.lab, 10);
    reader = s.lab.q;
    for (int i = 0; i < 1000 && reader != NULL; i++)
        lab_enqueue(&s.lab, "jam", .at_ns = 100);
    cr_assert_null(reader, "this proves nothing");
    return s;
}

/* One job may have had several.  Which of them is over its bytes say, all of them. */
Test(retained_keys, that_are_being_forgotten_are_told_from_others_of_the_same_job, .timeout = 60)
{
    static const char *const others[] = { "aver", "ovar", "oven", "ove", "overt", "o" };
    enum { OTHERS = sizeof others / sizeof others[0] };
    struct due_store_verbs verbs;

    shown[0] = "over";
    for (size_t i = 0; i < OTHERS; i++)
        shown[1 + i] = others[i];
    struct shop s = shop_that_shows(&verbs);
    for (size_t i = 0; i < OTHERS; i++)
        cr_expect_eq(shop_put(&s, others[i], "jam", NULL, (due_spec){ .at_ns = 100 }), DUE_EEXIST,
                     "%s", others[i]);
    cr_expect_eq(shop_put(&s, "over", "jam", NULL, (due_spec){ .at_ns = 100 }), 0);
    shop_close(&s);
}
