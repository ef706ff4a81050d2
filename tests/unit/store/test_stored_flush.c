/* What a flush promises: nothing that was changed before it is still on its way. */
#include "lab/lab.h"
#include "lab/memory_store.h"

struct flusher {
    struct crew_thread thread;
    due_queue *q;
};

static int flush(void *arg)
{
    struct flusher *f = arg;

    return due_flush(f->q, DUE_S(30));
}

static void block_commit(due_store *store, struct memory_limiter *limiter)
{
    memory_store_fault(
        store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
}

/* Changes that need not be sent, because their job was cancelled in time, are at their end before
 * others that were made earlier; they must not be taken for those. */
Test(stored_flush, does_not_count_what_was_cancelled_after_it, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    struct memory_limiter *first = memory_limiter_new(disk);
    struct memory_limiter *second = memory_limiter_new(disk);
    struct lab lab = lab_open(.with.store = store, .with.confirm = DUE_CONFIRM_ASYNC);
    while (lab_stats(&lab).loading)
        crew_sleep(DUE_MS(1));

    block_commit(store, first);
    lab_enqueue(&lab, "under way", .at_ns = 500);
    memory_limiter_reached(first, 1);
    due_id id = lab_enqueue(&lab, "flushed", .at_ns = 500);
    struct flusher f = { .q = lab.q };
    crew_go(&f.thread, flush, &f);
    crew_until_asleep(&f.thread);
    for (int i = 0; i < 5; i++) {
        due_id later = lab_enqueue(&lab, "later", .at_ns = 500);
        cr_assert_eq(due_cancel(lab.q, later, NULL), 0);
    }
    block_commit(store, second);
    memory_limiter_open(first);
    memory_limiter_reached(second, 1);
    crew_until_asleep(&f.thread);
    cr_expect_not(memory_disk_find(disk, id, NULL));
    cr_expect_not(atomic_load(&f.thread.back), "flushed, and not in the store");
    memory_limiter_open(second);
    cr_expect_eq(crew_join(&f.thread), 0);
    cr_expect(memory_disk_find(disk, id, NULL));
    lab_close(&lab);
    memory_limiter_free(first);
    memory_limiter_free(second);
    const char *wrong = memory_disk_wrong(disk);
    cr_expect_null(wrong, "%s", wrong);
    memory_disk_free(disk);
}

/* What was not sent in time keeps its place on the way until the store is there again; so its
 * number has a bound, whoever waits and whoever does not. */
Test(stored_flush, is_not_owed_more_than_unsettled_max_while_the_store_is_away, .timeout = 60)
{
    for (int async = 0; async < 2; async++) {
        struct memory_disk *disk = memory_disk_new(NULL);
        due_store *store = memory_store_new(disk);
        struct lab lab = lab_open(.with.store = store, .with.unsettled_max = 10,
                                  .with.store_timeout_ns = DUE_MS(20),
                                  .with.confirm = async ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC);
        due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 500 };
        due_id id;
        int rc = 0;

        while (lab_stats(&lab).loading)
            crew_sleep(DUE_MS(1));
        memory_store_fault(store, (struct memory_fault){ .verb = MEMORY_READY,
                                                         .times = MEMORY_ALWAYS,
                                                         .kind = MEMORY_AWAY });
        for (int i = 0; i < 40; i++) {
            rc = due_enqueue(lab.q, &spec, DUE_S(1), &id);
            if (rc == 0)
                cr_expect_eq(due_cancel(lab.q, id, NULL), 0);
        }
        cr_expect_eq(rc, DUE_ETIMEDOUT);
        cr_expect_eq(lab_stats(&lab).unsettled, 11u);
        cr_expect_eq(lab_stats(&lab).waiting, 0u);
        memory_store_forgive(store);
        for (int i = 0; i < 2000 && rc != 0; i++)
            rc = due_enqueue(lab.q, &spec, DUE_S(1), &id);
        cr_expect_eq(rc, 0);
        cr_expect_eq(due_flush(lab.q, DUE_S(30)), 0);
        cr_expect_eq(lab_stats(&lab).unsettled, 0u);
        cr_expect_eq(memory_disk_jobs(disk), 1u);
        lab_close(&lab);
        const char *wrong = memory_disk_wrong(disk);
        cr_expect_null(wrong, "%s", wrong);
        memory_disk_free(disk);
    }
}
