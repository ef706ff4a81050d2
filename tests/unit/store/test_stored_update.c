/* Jobs of a queue with a store that are changed in place, come again, or are cancelled together. */
#include "lab/shop.h"
#include "lab/take.h"

static int update(struct shop *s, due_id id, const char *text)
{
    return due_update(s->lab.q, id, text, strlen(text));
}

static due_record on_disk(struct shop *s, due_id id)
{
    due_record r = { .len = 0 };

    cr_assert(memory_disk_find(s->disk, id, &r));
    return r;
}

static const char *long_text(void)
{
    static char text[LAB_TEXT];

    memset(text, 'y', sizeof text - 1);
    return text;
}

/* The store is away, until it is forgiven. */
static void cut_off(struct shop *s)
{
    memory_store_fault(
        s->store,
        (struct memory_fault){ .verb = MEMORY_READY, .kind = MEMORY_AWAY, .times = MEMORY_ALWAYS });
}

static uint64_t commits(struct shop *s)
{
    return memory_store_calls(s->store, MEMORY_COMMIT);
}

/* ---- Update ---- */

Test(stored_update, the_store_has_the_new_content_under_the_same_id, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .priority = 4);

    cr_expect_eq(update(&s, id, "coffee"), 0);
    cr_expect_eq(on_disk(&s, id).len, 6u);
    cr_expect_eq(on_disk(&s, id).deadline_ns, 10);
    cr_expect_eq(lab_find(&s.lab, id).len, 6u);
    shop_crash(&s, (struct lab_options){ .start_ns = 0 });
    cr_expect_eq(lab_find(&s.lab, id).priority, 4);
    lab_turn_to(&s.lab, 10);
    cr_expect_str_eq(lab_dequeue(&s.lab), "coffee");
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

Test(stored_update, content_and_time_are_one_change, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10);
    due_spec spec = { DUE_SPEC_INIT, .data = long_text(), .len = LAB_TEXT - 1, .at_ns = 30 };
    uint64_t before = commits(&s);

    cr_expect_eq(due_amend(s.lab.q, id, &spec, DUE_SET_DATA | DUE_SET_TIME), 0);
    cr_expect_eq(commits(&s), before + 1);
    cr_expect_eq(on_disk(&s, id).until_ns, 30);
    cr_expect_eq(on_disk(&s, id).len, LAB_TEXT - 1u);
    shop_crash(&s, (struct lab_options){ .start_ns = 0 });
    lab_turn_to(&s.lab, 29);
    cr_expect_null(lab_dequeue(&s.lab));
    lab_turn_to(&s.lab, 30);
    cr_expect_str_eq(lab_dequeue(&s.lab), long_text());
    shop_close(&s);
}

Test(stored_update, the_priority_is_part_of_the_id, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10);
    due_spec spec = { DUE_SPEC_INIT, .data = "milk", .len = 4, .priority = 3 };

    cr_expect_eq(due_amend(s.lab.q, id, &spec, DUE_SET_PRIORITY), DUE_ENOTSUP);
    cr_expect_eq(due_amend(s.lab.q, id, &spec, DUE_SET_DATA | DUE_SET_PRIORITY), DUE_ENOTSUP);
    cr_expect_eq(on_disk(&s, id).len, 3u);
    shop_close(&s);
}

/* What the store refuses has changed neither the store nor the queue. */
Test(stored_update, refused_it_changes_nothing, .timeout = 60)
{
    const int answers[] = { DUE_ENOSPC, DUE_ETIMEDOUT };

    for (int i = 0; i < 2; i++) {
        struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(50));
        due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10);
        due_spec spec = { DUE_SPEC_INIT, .data = long_text(), .len = LAB_TEXT - 1, .at_ns = 30 };

        if (i == 0)
            shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_FULL);
        else
            cut_off(&s);
        int rc = due_amend(s.lab.q, id, &spec, DUE_SET_DATA | DUE_SET_TIME);
        cr_expect_eq(rc, answers[i], "%s", due_error_name(rc));
        memory_store_forgive(s.store);
        cr_expect_eq(lab_find(&s.lab, id).len, 3u);
        cr_expect_eq(lab_find(&s.lab, id).deadline_ns, 10);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(on_disk(&s, id).len, 3u);
        lab_turn_to(&s.lab, 10);
        cr_expect_str_eq(lab_dequeue(&s.lab), "tea");
        shop_close(&s);
    }
}

Test(stored_update, in_doubt_it_is_seen_through, .timeout = 60)
{
    for (int landed = 0; landed < 2; landed++) {
        struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(50));
        due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10);

        shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS,
                  landed ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT);
        cr_expect_eq(update(&s, id, long_text()), DUE_EINDOUBT);
        memory_store_forgive(s.store);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(on_disk(&s, id).len, LAB_TEXT - 1u);
        lab_turn_to(&s.lab, 10);
        cr_expect_str_eq(lab_dequeue(&s.lab), long_text());
        shop_close(&s);
    }
}

Test(stored_update, asynchronous_it_is_there_after_a_flush, .timeout = 60)
{
    struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC);
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10);

    cr_expect_eq(update(&s, id, long_text()), 0);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_eq(on_disk(&s, id).len, LAB_TEXT - 1u);
    shop_fail(&s, MEMORY_COMMIT, 1, MEMORY_FULL);
    cr_expect_eq(update(&s, id, "no"), 0);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    lab_turn_to(&s.lab, 10);
    cr_expect_str_eq(lab_dequeue(&s.lab), long_text(), "what was refused has changed nothing");
    shop_close(&s);
}

Test(stored_update, closed_while_it_is_on_its_way_nothing_leaks, .timeout = 60)
{
    struct shop s = shop_make(.with.confirm = DUE_CONFIRM_ASYNC);
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10);

    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cut_off(&s);
    cr_expect_eq(update(&s, id, long_text()), 0);
    cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_MS(20)), 0);
    shop_close(&s);
}

Test(stored_update, without_memory_nothing_has_changed, .timeout = 60)
{
    unsigned failed = 0;

    for (size_t n = 0; n < 8; n++) {
        struct shop s = shop_make();
        due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10);

        flaky_fail_in(&s.lab.state->memory, n);
        int rc = update(&s, id, long_text());
        s.lab.state->memory.fail_at = FLAKY_NEVER;
        cr_expect(rc == 0 || rc == DUE_ENOMEM, "%s", due_error_name(rc));
        failed += rc != 0;
        cr_expect_eq(on_disk(&s, id).len, rc == 0 ? LAB_TEXT - 1u : 3u);
        lab_turn_to(&s.lab, 10);
        cr_expect_str_eq(lab_dequeue(&s.lab), rc == 0 ? long_text() : "tea");
        shop_close(&s);
    }
    cr_expect_gt(failed, 1u, "no allocation failed");
}

/* The store has lost everything: it is put again as it is now. */
Test(stored_update, lost_it_is_put_again_as_it_is, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10);

    memory_disk_lose(s.disk, SIZE_MAX);
    cr_expect_eq(update(&s, id, long_text()), 0);
    lab_enqueue(&s.lab, "other", .at_ns = 20);
    cr_expect_eq(on_disk(&s, id).len, LAB_TEXT - 1u);
    shop_close(&s);
}

Test(stored_update, a_dead_job_is_mended_there_and_kicked, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id = lab_enqueue(&s.lab, "{bad", .delay_ns = 0);
    due_job job;

    cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0);
    cr_expect_eq(due_bury(&job, "why"), 0);
    cr_expect_eq(update(&s, id, "{good}"), 0);
    cr_expect_eq(on_disk(&s, id).cause, DUE_CAUSE_BURIED);
    cr_expect_eq(on_disk(&s, id).len, 6u);
    cr_expect_eq(lab_stats(&s.lab).dead, 1u);
    cr_expect_eq(due_kick(s.lab.q, id), 0);
    cr_expect_str_eq(lab_dequeue(&s.lab), "{good}");
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

struct mended {
    struct shop *s;
    due_id id;
    int rc;
};

static int mend(void *arg)
{
    struct mended *it = arg;

    it->rc = update(it->s, it->id, "{good}");
    return 0;
}

Test(stored_update, a_dead_job_that_is_being_mended_is_not_kicked_meanwhile, .timeout = 60)
{
    struct shop s = shop_make();
    struct mended it = { .s = &s, .id = lab_enqueue(&s.lab, "{bad", .delay_ns = 0), .rc = 1 };
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    struct crew_thread thread;
    due_job job;

    cr_assert_eq(take_leased(s.lab.q, &job, 100, 0), 0);
    cr_expect_eq(due_bury(&job, "why"), 0);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
    crew_go(&thread, mend, &it);
    memory_limiter_reached(limiter, 1);
    cr_expect_eq(due_kick(s.lab.q, it.id), DUE_EBUSY);
    memory_limiter_open(limiter);
    crew_join(&thread);
    cr_expect_eq(it.rc, 0);
    cr_expect_eq(due_kick(s.lab.q, it.id), 0);
    cr_expect_str_eq(lab_dequeue(&s.lab), "{good}");
    memory_limiter_free(limiter);
    shop_close(&s);
}

/* ---- Repeat ---- */

Test(stored_repeat, goes_on_after_a_crash, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));

    lab_turn_to(&s.lab, 10);
    cr_expect_str_eq(lab_dequeue(&s.lab), "tea");
    shop_crash(&s, (struct lab_options){ .start_ns = 0 });
    for (int round = 1; round < 4; round++) {
        lab_turn_to(&s.lab, 10 + 100 * round);
        cr_expect_str_eq(lab_dequeue(&s.lab), "tea");
        cr_expect_eq(on_disk(&s, id).until_ns, 110 + 100 * round);
    }
    shop_close(&s);
}

Test(stored_repeat, an_ack_moves_it_to_its_next_round, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));
    due_job job;

    for (int round = 0; round < 3; round++) {
        lab_turn_to(&s.lab, 10 + 100 * round);
        cr_assert_eq(take_leased(s.lab.q, &job, 50, 0), 0);
        cr_expect_eq(due_nack(&job, 5), 0);
        lab_advance(&s.lab, 5);
        cr_assert_eq(take_leased(s.lab.q, &job, 50, 0), 0);
        cr_expect_eq(job.attempts, 2u);
        cr_expect_eq(due_ack(&job), 0);
        due_record r = on_disk(&s, id);
        cr_expect_eq(r.deadline_ns, 110 + 100 * round);
        cr_expect_eq(r.until_ns, 110 + 100 * round);
        cr_expect_eq(r.attempts, 0u);
        cr_expect_eq(r.failures, 0u);
        cr_expect_eq(lab_find(&s.lab, id).deadline_ns, 110 + 100 * round);
    }
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), 0);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

/* The store has the next round before anybody has this one. */
Test(stored_repeat, taken_for_good_it_is_moved_before_it_is_handed_out, .timeout = 60)
{
    struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(50));
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));
    due_job job;

    lab_turn_to(&s.lab, 10);
    cut_off(&s);
    cr_expect_eq(due_dequeue(s.lab.q, &job, 0), DUE_ESTORE);
    memory_store_forgive(s.store);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_eq(on_disk(&s, id).until_ns, 10);
    cr_assert_eq(lab_take(&s.lab, &job), 0);
    cr_expect_eq(job.deadline_ns, 10);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(on_disk(&s, id).until_ns, 110);
    lab_turn_to(&s.lab, 110);
    cr_expect_str_eq(lab_dequeue(&s.lab), "tea");
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), 0);
    cr_expect_eq(memcmp(job.data, "tea", 3), 0);
    due_job_done(&job);
    shop_close(&s);
}

/* The change was in doubt, and its caller has left: the round waits for the next taker. */
Test(stored_repeat, in_doubt_the_round_is_not_lost, .timeout = 60)
{
    for (int landed = 0; landed < 2; landed++) {
        struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(50));
        due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));
        due_job job;

        lab_turn_to(&s.lab, 10);
        shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS,
                  landed ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT);
        int rc = due_dequeue(s.lab.q, &job, 1);
        cr_expect_eq(rc, DUE_EINDOUBT, "%s", due_error_name(rc));
        cr_expect(due_id_equal(job.id, id));
        memory_store_forgive(s.store);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0); /* and what followed */
        cr_expect_eq(on_disk(&s, id).until_ns, 10);
        cr_assert_eq(lab_take(&s.lab, &job), 0);
        cr_expect_eq(job.deadline_ns, 10);
        due_job_done(&job);
        cr_expect_eq(on_disk(&s, id).until_ns, 110);
        shop_close(&s);
    }
}

/* Likewise, and then the store was full when the round was to be put back. */
Test(stored_repeat, refused_on_its_way_back_the_round_is_put_again, .timeout = 60)
{
    struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(50));
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));
    due_job job;

    lab_turn_to(&s.lab, 10);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    uint64_t before = commits(&s);
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .call = before + 1,
                                                       .kind = MEMORY_BLOCK_AFTER });
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .call = before + 2,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_BLOCK,
                                                       .limiter = limiter });
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .call = before + 2,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_FULL });
    int rc = due_dequeue(s.lab.q, &job, 1);
    cr_expect_eq(rc, DUE_EINDOUBT, "%s", due_error_name(rc));
    uint64_t left = commits(&s);
    memory_limiter_open(limiter); /* nobody hears of it before */
    memory_store_until(s.store, MEMORY_COMMIT, left + 3);
    cr_expect_eq(on_disk(&s, id).until_ns, 110);
    memory_store_forgive(s.store);
    for (int i = 0; i < 3000 && on_disk(&s, id).until_ns != 10; i++)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(on_disk(&s, id).until_ns, 10);
    shop_crash(&s, (struct lab_options){ .start_ns = 10 });
    cr_assert_eq(lab_take(&s.lab, &job), 0);
    cr_expect_eq(job.deadline_ns, 10);
    due_job_done(&job);
    memory_limiter_free(limiter);
    shop_close(&s);
}

/* A round that landed in the moment in which its taker left, and that nobody comes for, is shown by
 * the close; the job has left before that, and is not counted once more. */
static void on_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

/* And it is cancelled before that.  False: the taker was in time, so it was not put back. */
static bool cancelled_on_its_way_back(void)
{
    struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(50), .with.on_discard = on_discard);
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));
    due_job job;

    lab_turn_to(&s.lab, 10);
    uint64_t before = commits(&s);
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .call = before + 1,
                                                       .kind = MEMORY_BLOCK_AFTER });
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .call = before + 2,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_FULL });
    bool late = due_dequeue(s.lab.q, &job, 1) != 0;
    if (late)
        memory_store_until(s.store, MEMORY_COMMIT, before + 2);
    else
        due_job_done(&job);
    int rc = DUE_EBUSY;
    for (int i = 0; i < 3000 && rc == DUE_EBUSY; i++) {
        rc = due_cancel(s.lab.q, id, NULL); /* the store takes removals still */
        crew_sleep(DUE_MS(1));
    }
    cr_expect(rc == 0 || rc == DUE_ENOENT, "%s", due_error_name(rc));
    cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u, "it comes back after a restart");
    shop_close(&s);
    return late;
}

Test(stored_repeat, refused_on_its_way_back_the_round_can_be_removed, .timeout = 60)
{
    for (int i = 0; i < 20 && !cancelled_on_its_way_back(); i++)
        ;
}

Test(stored_repeat, in_a_batch_with_others, .timeout = 60)
{
    struct shop s = shop_make();
    due_job jobs[40];

    for (int i = 0; i < 20; i++) {
        lab_enqueue(&s.lab, "plain", .at_ns = 10);
        lab_enqueue(&s.lab, "again", .at_ns = 10, .more = EXTRA(.every_ns = 10));
    }
    lab_turn_to(&s.lab, 10);
    uint64_t before = commits(&s);
    cr_expect_eq(take_some(s.lab.q, NULL, 0, jobs, 40, DUE_S(20)), 40);
    cr_expect_leq(commits(&s), before + 2, "they are no one change, nor two");
    int again = 0;
    for (int i = 0; i < 40; i++)
        again += strcmp(lab_text(&s.lab, &jobs[i]), "again") == 0;
    cr_expect_eq(again, 20);
    cr_expect_eq(memory_disk_jobs(s.disk), 20u);
    lab_turn_to(&s.lab, 20);
    for (int i = 0; i < 5; i++)
        lab_enqueue(&s.lab, "plain", .delay_ns = 0);
    cr_expect_eq(take_leased_some(s.lab.q, NULL, 0, jobs, 40, 1000, 0), 25);
    before = commits(&s);
    cr_expect_eq(due_ack_batch(jobs, 25, NULL), 25);
    cr_expect_eq(commits(&s), before + 2);
    cr_expect_eq(memory_disk_jobs(s.disk), 20u);
    cr_expect_eq(lab_stats(&s.lab).acked, 5u);
    cr_expect_eq(lab_stats(&s.lab).repeated, 40u);
    cr_expect_eq(lab_stats(&s.lab).waiting, 20u);
    shop_close(&s);
}

Test(stored_repeat, a_refused_ack_leaves_the_lease, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));
    due_job job;

    lab_turn_to(&s.lab, 10);
    cr_assert_eq(take_leased(s.lab.q, &job, 50, 0), 0);
    shop_fail(&s, MEMORY_COMMIT, 1, MEMORY_FULL);
    cr_expect_eq(due_ack(&job), DUE_ENOSPC);
    cr_expect_eq(on_disk(&s, id).until_ns, 10);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(on_disk(&s, id).until_ns, 110);
    shop_close(&s);
}

Test(stored_repeat, cancelled_while_reserved_it_leaves_with_the_ack, .timeout = 60)
{
    struct shop s = shop_make();
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));
    due_job job;

    lab_turn_to(&s.lab, 10);
    cr_assert_eq(take_leased(s.lab.q, &job, 50, 0), 0);
    cr_expect_eq(due_cancel(s.lab.q, id, NULL), DUE_EBUSY);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

Test(stored_repeat, a_draining_close_leaves_it_in_the_store, .timeout = 60)
{
    for (int reserve = 0; reserve < 2; reserve++) {
        struct shop s = shop_make();
        due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10, .more = EXTRA(.every_ns = 100));
        due_job job;

        cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
        lab_turn_to(&s.lab, 10);
        if (reserve)
            cr_assert_eq(take_leased(s.lab.q, &job, 50, 0), 0);
        else
            cr_assert_eq(lab_take(&s.lab, &job), 0);
        if (reserve)
            cr_expect_eq(due_ack(&job), 0);
        cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DRAIN, DUE_S(1)), 0);
        cr_expect_eq(lab_stats(&s.lab).kept, 1u);
        cr_expect_eq(on_disk(&s, id).until_ns, 110);
        due_job_done(&job);
        shop_close(&s);
    }
}

/* ---- Many at once ---- */

Test(stored_cancel, many_are_one_change, .timeout = 60)
{
    struct shop s = shop_make();
    due_id ids[100];
    int results[100];
    due_job job;

    lab_enqueue(&s.lab, "stays", .at_ns = 5);
    for (int i = 0; i < 97; i++)
        ids[i] = lab_enqueue(&s.lab, "tea", .at_ns = 10 + i);
    lab_turn_to(&s.lab, 10);
    cr_expect_str_eq(lab_dequeue(&s.lab), "stays");
    cr_assert_eq(take_leased(s.lab.q, &job, 1000, 0), 0);
    ids[97] = ids[50]; /* twice */
    ids[98] = (due_id){ { 0 } };
    ids[99] = job.id;
    uint64_t before = commits(&s);
    cr_expect_eq(due_cancel_batch(s.lab.q, ids + 1, 99, results + 1), 96);
    cr_expect_eq(commits(&s), before + 1);
    for (int i = 1; i < 97; i++)
        cr_expect_eq(results[i], 0);
    cr_expect_eq(results[97], DUE_ENOENT);
    cr_expect_eq(results[98], DUE_ENOENT);
    cr_expect_eq(results[99], DUE_EBUSY);
    cr_expect_eq(lab_stats(&s.lab).cancelled, 96u);
    cr_expect_eq(memory_disk_jobs(s.disk), 1u);
    cr_expect_eq(due_nack(&job, 0), 0, "and is not handed out again");
    cr_expect_null(lab_dequeue(&s.lab));
    shop_close(&s);
}

Test(stored_cancel, many_refused_wait_again, .timeout = 60)
{
    struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(50));
    due_id ids[300];
    int results[300];

    for (int i = 0; i < 300; i++)
        ids[i] = lab_enqueue(&s.lab, "tea", .at_ns = 10);
    cut_off(&s);
    cr_expect_eq(due_cancel_batch(s.lab.q, ids, 300, results), 0);
    for (int i = 0; i < 300; i++)
        cr_expect_eq(results[i], DUE_ETIMEDOUT);
    memory_store_forgive(s.store);
    cr_expect_eq(lab_stats(&s.lab).waiting, 300u);
    cr_expect_eq(due_cancel_batch(s.lab.q, ids, 300, NULL), 300);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}
