/* A store that a queue has opened is closed by it, once: when the queue is closed, not when it is
 * freed, or when the opening fails behind that. */
#include "lab/flaky.h"
#include "lab/shop.h"

static uint64_t closed(due_store *store, bool shares)
{
    return memory_store_calls(store, shares ? MEMORY_LEAVE : MEMORY_CLOSE);
}

static due_options options_for(due_store *store, bool shares)
{
    return (due_options){ DUE_OPTIONS_INIT, .store = store,
                          .share = shares ? DUE_SHARED : DUE_OWNED, .open_timeout_ns = DUE_S(30) };
}

static void close_it(bool shares)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    due_store *next = memory_store_new(disk);
    due_options o = options_for(store, shares);
    due_queue *q;
    due_queue *other;

    cr_assert_eq(due_open(&q, &o, NULL), 0);
    cr_expect_eq(closed(store, shares), 0u);
    cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    cr_expect_eq(closed(store, shares), 1u);
    cr_assert_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    cr_expect_eq(closed(store, shares), 1u, "once");
    o = options_for(next, shares);
    cr_assert_eq(due_open(&other, &o, NULL), 0, "the jobs are whoever comes'");
    cr_assert_eq(due_close(other, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    cr_expect_eq(due_free(other), 0);
    cr_expect_eq(due_free(q), 0);
    cr_expect_null(memory_disk_wrong(disk));
    memory_disk_free(disk);
}

Test(stored_handed_back, when_its_owner_closes, .timeout = 60)
{
    close_it(false);
}

Test(stored_handed_back, when_who_shares_it_closes, .timeout = 60)
{
    close_it(true);
}

/* The allocation @n is refused.  True: so that the queue is not opened. */
static bool fail_at(size_t n, bool shares)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    due_options o = options_for(store, shares);
    struct flaky memory;
    due_queue *q = NULL;

    flaky_init(&memory, n);
    o.allocator = &memory.hooks;
    int rc = due_open(&q, &o, NULL);
    uint64_t opened = memory_store_calls(store, shares ? MEMORY_JOIN : MEMORY_OPEN);
    cr_expect_eq(closed(store, shares), rc == 0 ? 0u : opened, "%zu", n);
    if (rc == 0) {
        cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
        cr_expect_eq(closed(store, shares), 1u);
        cr_expect_eq(due_free(q), 0);
    } else {
        store->verbs->free(store);
    }
    memory_disk_free(disk);
    return rc != 0;
}

Test(stored_handed_back, when_there_is_no_memory_to_open_it, .timeout = 60)
{
    for (int shares = 0; shares < 2; shares++) {
        size_t n = 0;

        while (fail_at(n, shares != 0))
            n++;
        cr_expect_gt(n, 3u, "this proves nothing");
    }
}

static const struct due_store_verbs *own_verbs;

static int open_for_nothing(due_store *store, const struct due_store_open *how,
                            struct due_store_info *info, due_error *error)
{
    int rc = own_verbs->open(store, how, info, error);

    info->batch_bytes = 0;
    return rc;
}

Test(stored_handed_back, when_it_says_that_it_has_no_room_at_all, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    due_options o = options_for(store, false);
    struct due_store_verbs verbs = *store->verbs;
    due_queue *q = NULL;

    own_verbs = store->verbs;
    verbs.open = open_for_nothing;
    store->verbs = &verbs;
    cr_expect_eq(due_open(&q, &o, NULL), DUE_EINVAL);
    cr_expect_eq(closed(store, false), 1u);
    store->verbs->free(store);
    memory_disk_free(disk);
}
