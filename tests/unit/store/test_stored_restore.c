/* What an opening says while it reads what was stored. */
#include "lab/shop.h"

#define JOBS 1300u /* more than are shown between two batches */

struct progress {
    atomic_uint calls;
    atomic_ullong restored; /* as said last */
    atomic_uint finished;   /* times that it was said */
    atomic_bool wrong;      /* it fell, or something was said behind the end */
};

static struct progress progress;

static void note(void *ctx, uint64_t restored, int finished)
{
    (void)ctx;
    if (restored < atomic_load(&progress.restored) || atomic_load(&progress.finished) > 0)
        atomic_store(&progress.wrong, true);
    atomic_store(&progress.restored, restored);
    atomic_fetch_add(&progress.calls, 1);
    atomic_fetch_add(&progress.finished, finished != 0);
}

Test(stored_restore, its_progress_is_told_and_once_that_it_has_finished, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5, .with.confirm = DUE_CONFIRM_ASYNC);

    for (unsigned i = 0; i < JOBS; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 1000 + (int64_t)i);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    memset(&progress, 0, sizeof progress);
    shop_crash(&s, (struct lab_options){ .start_ns = 5, .with.on_restore = note });
    while (atomic_load(&progress.finished) == 0)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(lab_stats(&s.lab).restored, (uint64_t)JOBS);
    cr_expect_eq(atomic_load(&progress.restored), (uint64_t)JOBS);
    cr_expect_geq(atomic_load(&progress.calls), 3u, "it was told at the end only");
    shop_close(&s);
    cr_expect_eq(atomic_load(&progress.finished), 1u);
    cr_expect_not(atomic_load(&progress.wrong));
}

Test(stored_restore, of_nothing_is_finished_too, .timeout = 60)
{
    memset(&progress, 0, sizeof progress);
    struct shop s = shop_make(.start_ns = 5, .with.on_restore = note);

    while (atomic_load(&progress.finished) == 0)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(atomic_load(&progress.restored), 0u);
    shop_close(&s);
    cr_expect_eq(atomic_load(&progress.finished), 1u);
}

/* When everything has been read and is written again to be sure, a batch may still be in doubt.  It
 * keeps its number and its changes: the store has not lost it. */
Test(stored_restore, what_is_written_again_leaves_a_batch_in_doubt_as_it_is, .timeout = 60)
{
    struct shop s = shop_new(&(struct memory_disk_options){ .put_again = true },
                             (struct lab_options){ .start_ns = 5 });
    due_spec spec = { DUE_SPEC_INIT, .data = "new", .len = 3, .at_ns = 20 };

    for (int i = 0; i < 3; i++)
        lab_enqueue(&s.lab, "old", .at_ns = 10);
    memory_store_crash(s.store);
    lab_close(&s.lab);
    s.store = memory_store_new(s.disk);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_LOAD, .call = 1, .times = 3, .kind = MEMORY_AWAY });
    memory_store_fault(
        s.store, (struct memory_fault){
                     .verb = MEMORY_COMMIT, .call = 1, .times = 60, .kind = MEMORY_DOUBT_LANDED });
    s.lab = lab_open(.start_ns = 5, .with.store = s.store, .with.store_timeout_ns = DUE_MS(50));
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_EINDOUBT);
    shop_wait_loaded(&s);
    cr_expect_lt(memory_store_calls(s.store, MEMORY_COMMIT), 60u, "the doubt was over before");
    while (lab_stats(&s.lab).mirrored < 3)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_null(memory_disk_wrong(s.disk), "%s", memory_disk_wrong(s.disk));
    shop_crash(&s, (struct lab_options){ .start_ns = 20 });
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "old old old new");
    shop_close(&s);
}

/* ---- Jobs that come into the store by themselves ---- */

static const struct due_store_verbs *memory_verbs;
static atomic_uint rewinds;

struct shown_late {
    due_store_visit *visit;
    void *ctx;
};

/* Half a batch, "late", is carried out after the jobs were read for the first time. */
static int show_late(void *ctx, const due_record *record)
{
    const struct shown_late *to = ctx;
    bool late = record->len == 4 && memcmp(record->data, "late", 4) == 0;

    return late && atomic_load(&rewinds) < 2 ? 0 : to->visit(to->ctx, record);
}

static int load_late(due_store *store, int rewind, size_t max, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    struct shown_late to = { .visit = visit, .ctx = ctx };

    atomic_fetch_add(&rewinds, rewind != 0);
    return memory_verbs->load(store, rewind, max, show_late, &to, until_ns);
}

/* Once everything was written again to be sure, all jobs are read again, and what is not known is
 * dropped. */
Test(stored_restore, what_came_into_the_store_before_it_was_written_again_is_dropped, .timeout = 60)
{
    struct shop s = shop_new(&(struct memory_disk_options){ .put_again = true },
                             (struct lab_options){ .start_ns = 5 });
    struct due_store_verbs verbs = *s.store->verbs;

    memory_verbs = s.store->verbs;
    verbs.load = load_late;
    lab_enqueue(&s.lab, "late", .at_ns = 10);
    lab_enqueue(&s.lab, "tea", .at_ns = 10);
    shop_die(&s);
    atomic_store(&rewinds, 0);
    shop_begin(&s, (struct lab_options){ .start_ns = 20 }, &verbs);
    shop_wait_loaded(&s);
    for (int i = 0; i < 5000 && memory_disk_jobs(s.disk) > 1; i++)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(memory_disk_jobs(s.disk), 1u);
    cr_expect_eq(atomic_load(&rewinds), 2u, "jobs were read from their beginning %u times",
                 atomic_load(&rewinds));
    cr_expect_str_eq(lab_dequeue_all(&s.lab), "tea");
    shop_close(&s);
}

/* ---- Jobs that are shown more than once ---- */

struct shown {
    due_store_visit *visit;
    void *ctx;
};

static int show_twice(void *ctx, const due_record *record)
{
    const struct shown *to = ctx;
    int rc = to->visit(to->ctx, record);

    return rc != 0 ? rc : to->visit(to->ctx, record);
}

static int load_twice(due_store *store, int rewind, size_t max, due_store_visit *visit, void *ctx,
                      int64_t until_ns)
{
    struct shown to = { .visit = visit, .ctx = ctx };

    return memory_verbs->load(store, rewind, max, show_twice, &to, until_ns);
}

#define KINDS 4 /* plain; with a key; in a group, and failed; dead */

/* In a page, and in the next one too. */
Test(stored_restore, a_job_that_is_shown_again_is_there_once, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5, .with.confirm = DUE_CONFIRM_ASYNC);
    struct due_store_verbs verbs = *s.store->verbs;
    unsigned seen[JOBS] = { 0 };
    unsigned last = 0;
    due_job job;

    memory_verbs = s.store->verbs;
    verbs.load = load_twice;
    for (unsigned i = 0; i < JOBS; i++) {
        due_extra more = { DUE_EXTRA_INIT };
        due_spec spec = { DUE_SPEC_INIT, .data = &i, .len = sizeof i, .at_ns = 10 + (int64_t)i,
                          .more = &more };
        if (i % KINDS == 1)
            more.key = &i, more.key_len = sizeof i;
        if (i % KINDS == 2)
            more.group = &i, more.group_len = sizeof i;
        cr_assert_eq(due_enqueue(s.lab.q, &spec, DUE_S(10), NULL), 0);
    }
    lab_turn_to(&s.lab, 13);
    for (unsigned i = 0; i < KINDS; i++) {
        cr_assert_eq(lab_reserve(&s.lab, &job, 10000), 0);
        memcpy(&last, job.data, sizeof last);
        cr_expect_eq(last % KINDS == 3 ? due_bury(&job, "why") : due_nack(&job, (int64_t)i), 0);
    }
    cr_assert_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    shop_die(&s);
    shop_begin(&s, (struct lab_options){ .start_ns = 10 + JOBS, .with.capacity = JOBS }, &verbs);
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_LOAD,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_REPEAT,
                                                       .count = 3 });
    shop_wait_loaded(&s);
    struct due_stats is = lab_stats(&s.lab);
    cr_expect_eq(is.restored, (uint64_t)JOBS, "%ju", (uintmax_t)is.restored);
    cr_expect_eq(is.waiting, JOBS - 1u);
    cr_expect_eq(is.dead, 1u);
    lab_enqueue(&s.lab, "one more", .at_ns = 9000);
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 9000 };
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_EAGAIN, "there is room for one more");
    for (unsigned i = 0; i < JOBS - 1; i++) {
        cr_assert_eq(lab_take(&s.lab, &job), 0, "%u are lost", JOBS - i);
        memcpy(&last, job.data, sizeof last);
        cr_assert_lt(last, JOBS);
        cr_expect_eq(seen[last]++, 0u, "%u comes twice", last);
        due_job_done(&job);
    }
    cr_expect_eq(lab_stats(&s.lab).waiting, 1u);
    shop_close(&s);
}

struct keys_shown {
    due_store_visit_key *visit;
    void *ctx;
};

static int show_key_twice(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    const struct keys_shown *to = ctx;
    int rc = to->visit(to->ctx, key, len, id, until_ns);

    return rc != 0 ? rc : to->visit(to->ctx, key, len, id, until_ns);
}

static int keys_twice(due_store *store, int rewind, size_t max, due_store_visit_key *visit,
                      void *ctx, int64_t until_ns)
{
    struct keys_shown to = { .visit = visit, .ctx = ctx };

    return memory_verbs->keys(store, rewind, max, show_key_twice, &to, until_ns);
}

/* A store that shows everything twice, jobs and kept keys. */
static struct shop shop_twice(struct due_store_verbs *verbs)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    due_store *plain = memory_store_new(s.disk);

    memory_verbs = plain->verbs;
    *verbs = *plain->verbs;
    verbs->load = load_twice;
    verbs->keys = keys_twice;
    plain->verbs->free(plain);
    shop_begin(&s, (struct lab_options){ .start_ns = 5 }, verbs);
    shop_wait_loaded(&s);
    return s;
}

/* Somebody comes, so that the loss is noticed. */
static void come_and_go(struct shop *s)
{
    due_id id = lab_enqueue(&s->lab, "jam", .at_ns = 99);

    cr_expect_eq(due_cancel(s->lab.q, id, NULL), 0);
    crew_sleep(DUE_MS(1));
}

/* Jobs that were gone are there again after a loss, and are to go again: once each. */
Test(stored_restore, a_job_that_is_shown_again_is_dropped_once_after_a_loss, .timeout = 60)
{
    struct due_store_verbs verbs;
    struct shop s = shop_twice(&verbs);

    for (unsigned i = 0; i < 300; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 10);
    cr_assert_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, NULL), 0);
    cr_assert_eq(memory_disk_jobs(s.disk), 0u);
    while (memory_disk_jobs(s.disk) < 300)
        memory_disk_lose(s.disk, 1);
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_LOAD,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_REPEAT,
                                                       .count = 3 });
    for (int i = 0; i < 1000 && memory_disk_jobs(s.disk) > 0; i++)
        come_and_go(&s);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

/* The same of keys that were kept long enough. */
Test(stored_restore, a_kept_key_that_is_shown_again_is_forgotten_once_after_a_loss, .timeout = 60)
{
    struct due_store_verbs verbs;
    struct shop s = shop_twice(&verbs);

    for (int i = 0; i < 2; i++) {
        cr_assert_eq(shop_put(&s, i == 0 ? "k" : "l", "tea", NULL, (due_spec){ KEEPS(10) }), 0);
        cr_expect_str_eq(lab_dequeue(&s.lab), "tea");
    }
    cr_assert_eq(memory_disk_keys(s.disk), 2u);
    lab_turn_to(&s.lab, 20);
    while (memory_disk_keys(s.disk) > 0) /* one batch in so many looks at its shard */
        come_and_go(&s);
    while (memory_disk_keys(s.disk) < 2)
        memory_disk_lose(s.disk, 1);
    for (int i = 0; i < 1000 && memory_disk_keys(s.disk) > 0; i++)
        come_and_go(&s);
    cr_expect_eq(memory_disk_keys(s.disk), 0u);
    shop_close(&s);
}

/* The room of a bounded queue is what live jobs have left of it; dead ones take none, whatever they
 * died of. */
Test(stored_restore, what_lives_takes_room_and_what_is_dead_takes_none, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5);
    due_retry once = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 50 };
    due_job job;

    for (int i = 0; i < 3; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 50);
    for (int i = 0; i < 2; i++) {
        lab_enqueue(&s.lab, "bury", .at_ns = 5);
        cr_assert_eq(lab_reserve(&s.lab, &job, 100), 0);
        cr_assert_eq(due_bury(&job, "no"), 0);
        lab_enqueue(&s.lab, "fail", .at_ns = 5, .more = EXTRA(.retry = &once));
        cr_assert_eq(lab_reserve(&s.lab, &job, 100), 0);
        cr_assert_eq(due_nack(&job, 0), 0);
    }
    for (int i = 0; i < 2; i++)
        lab_enqueue(&s.lab, "late", .at_ns = 5, .more = EXTRA(.ttl_ns = 3));
    lab_turn_to(&s.lab, 20);
    cr_expect_null(lab_dequeue(&s.lab));
    cr_assert_eq(lab_stats(&s.lab).dead, 6u);
    for (size_t room = 1; room < 3; room++) {
        shop_crash(&s, (struct lab_options){ .start_ns = 20, .with.capacity = 4 + room });
        cr_expect_eq(lab_stats(&s.lab).dead, 6u);
        for (size_t i = 0; i < 1 + (room == 1); i++)
            cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), 0, "%zu: %zu", room, i);
        cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_EAGAIN, "%zu", room);
    }
    shop_close(&s);
}
