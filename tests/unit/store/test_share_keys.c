/* One queue for many processes: of the jobs with a unique key one at a time is there. */
#include "lab/mall_keys.h"

MALL_TEST(share_keys, a_key_is_one_jobs_for_all_processes)
{
    struct mall m = mall_make(2);
    due_id first;
    due_id other = { { 0 } };

    cr_assert_eq(put_at(&m.lab[0], 50, "tea", KEY(), &first), 0);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(put_at(&m.lab[i], 0, "cake", KEY(), &other), DUE_EEXIST);
        cr_expect(due_id_equal(first, other));
        cr_expect_eq(due_id_of_key(m.lab[i].q, "k", 1, &other), 0);
        cr_expect(due_id_equal(first, other));
        cr_expect_eq(put_at(&m.lab[i], 0, "cake", KEY(), NULL), DUE_EEXIST);
    }
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    cr_expect_eq(due_id_of_key(m.lab[1].q, "l", 1, &other), DUE_ENOENT);
    cr_expect_eq(due_id_of_key(m.lab[1].q, "", 0, &other), DUE_EINVAL);
    mall_close(&m);
}

/* Its job has not come in, and the other one stays what it is. */
MALL_TEST(share_keys, who_does_not_hear_in_time_whose_a_key_is_says_so)
{
    struct mall m = mall_make(1);
    size_t i = mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(50) });
    due_id first;
    due_id id;

    cr_assert_eq(put_at(&m.lab[0], 50, "tea", KEY(), &first), 0);
    memory_store_fault(
        m.store[i],
        (struct memory_fault){ .verb = MEMORY_FIND, .times = MEMORY_ALWAYS, .kind = MEMORY_AWAY });
    cr_expect_eq(put_at(&m.lab[i], 0, "cake", KEY(), NULL), DUE_ETIMEDOUT);
    cr_expect_eq(due_id_of_key(m.lab[i].q, "k", 1, &id), DUE_ETIMEDOUT);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    memory_store_forgive(m.store[i]);
    cr_assert_eq(due_id_of_key(m.lab[0].q, "k", 1, &id), 0);
    cr_expect(due_id_equal(id, first));
    mall_close(&m);
}

/* The key is free by each of them. */
MALL_TEST(share_keys, whatever_ends_a_job_frees_its_key)
{
    struct mall m = mall_make(2);
    due_queue *q = m.lab[0].q;
    due_job job;
    due_id id;

    m.lab[1].state->own_discard = true; /* of what was cleared in the store */
    for (int way = 0; way < 9; way++) {
        cr_assert_eq(put_at(&m.lab[1], 0, "tea", KEY(), &id), 0, "%d", way);
        if (way > 1 && way < 7)
            cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        cr_expect_not(is_free(&m.lab[1]));
        switch (way) {
        case 0:
            cr_assert_eq(mall_take(&m, 0, &job), 0);
            break;
        case 1:
            cr_expect_eq(due_cancel(q, id, NULL), 0);
            break;
        case 2:
            cr_expect_eq(due_ack(&job), 0);
            break;
        case 3: /* given back, and cancelled */
            cr_expect_eq(due_nack(&job, 5), 0);
            cr_expect_not(is_free(&m.lab[1]));
            cr_expect_eq(due_cancel_key(q, "k", 1, NULL), 0);
            break;
        case 4:
            cr_expect_eq(due_bury(&job, "no"), 0);
            cr_expect_not(is_free(&m.lab[1]), "a dead job has its key");
            cr_expect_eq(due_cancel_key(m.lab[1].q, "k", 1, NULL), 0);
            break;
        case 5:
            cr_expect_eq(due_bury(&job, "no"), 0);
            cr_expect_eq(due_clear_dead(m.lab[1].q, DUE_ALL_TOPICS, NULL), 0);
            break;
        case 6:
            cr_expect_eq(due_bury(&job, "no"), 0);
            cr_expect_eq(due_kick(m.lab[1].q, id), 0);
            cr_expect_not(is_free(&m.lab[1]));
            cr_expect_eq(due_cancel(m.lab[1].q, id, NULL), 0);
            break;
        case 7:
            cr_expect_eq(due_clear(m.lab[1].q, DUE_ALL_TOPICS, NULL), 0);
            break;
        default:
            cr_expect_eq(due_cancel_key(m.lab[1].q, "k", 1, NULL), 0);
        }
        cr_expect(is_free(&m.lab[1]), "way %d", way);
        cr_expect_eq(due_cancel_key(q, "k", 1, NULL), DUE_ENOENT);
        if (way == 0)
            due_job_done(&job);
    }
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

MALL_TEST(share_keys, a_key_is_kept_after_an_ack_and_a_take_and_nothing_else)
{
    struct mall m = mall_make(2);
    due_job job;
    due_id id;
    due_id other;

    for (int way = 0; way < 4; way++) {
        cr_assert_eq(put_at(&m.lab[1], 0, "tea", KEY(.keep_key_ns = 100), &id), 0, "%d", way);
        if (way == 0) {
            cr_assert_eq(mall_take(&m, 0, &job), 0);
        } else if (way == 1) {
            cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
            cr_expect_eq(due_ack(&job), 0);
        } else if (way == 2) {
            cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), 0);
        } else { /* of one that was claimed here */
            cr_expect_eq(due_dequeue(m.lab[0].q, &job, 0), DUE_EAGAIN);
            while (lab_stats(&m.lab[0]).ready == 0)
                crew_sleep(DUE_US(100));
            cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), 0);
        }
        cr_expect(is_free(&m.lab[1]), "no live job has it");
        if (way == 0)
            due_job_done(&job);
        if (way > 1)
            continue;
        cr_expect_eq(due_cancel_key(m.lab[1].q, "k", 1, NULL), DUE_ENOENT);
        cr_expect_eq(put_at(&m.lab[1], 0, "cake", KEY(), &other), DUE_EEXIST);
        cr_expect(due_id_equal(id, other));
        mall_turn_to(&m, due_now(m.lab[0].q) + 99);
        cr_expect_eq(put_at(&m.lab[0], 0, "cake", KEY(), NULL), DUE_EEXIST);
        mall_turn_to(&m, due_now(m.lab[0].q) + 1);
    }
    cr_expect_eq(put_at(&m.lab[1], 0, "cake", KEY(), NULL), 0);
    mall_close(&m);
}

MALL_TEST(share_keys, a_batch_ends_where_a_key_is_taken)
{
    struct mall m = mall_make(2);
    due_extra key = KEY();
    due_extra another = { DUE_EXTRA_INIT, .key = "another", .key_len = 7 };
    due_spec specs[4] = { { DUE_SPEC_INIT },
                          { DUE_SPEC_INIT, .more = &another },
                          { DUE_SPEC_INIT, .more = &key },
                          { DUE_SPEC_INIT } };
    due_id ids[4];
    due_id id;

    cr_assert_eq(put_at(&m.lab[1], 50, "tea", KEY(), &id), 0);
    cr_expect_eq(due_enqueue_batch(m.lab[0].q, specs, 4, 0, ids), 2);
    cr_expect(due_id_equal(ids[2], id));
    cr_expect_eq(memory_disk_jobs(m.disk), 3u);
    cr_expect_eq(due_enqueue_batch(m.lab[0].q, specs + 2, 2, 0, NULL), DUE_EEXIST);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), 0);
    cr_expect_eq(due_enqueue_batch(m.lab[0].q, specs + 2, 2, 0, ids), 2);
    mall_close(&m);
}

MALL_TEST(share_keys, other_content_leaves_a_job_its_key)
{
    struct mall m = mall_make(2);
    due_job job;
    due_id id;
    due_id other;

    cr_assert_eq(put_at(&m.lab[0], 50, "tea", KEY(.keep_key_ns = 100), &id), 0);
    cr_expect_eq(due_update(m.lab[1].q, id, "green tea", 9), 0);
    cr_expect_eq(put_at(&m.lab[1], 0, "cake", KEY(), &other), DUE_EEXIST);
    cr_expect(due_id_equal(id, other));
    mall_turn_to(&m, 50);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect_eq(due_update(m.lab[1].q, id, "x", 1), DUE_EBUSY);
    cr_expect_eq(due_cancel_key(m.lab[1].q, "k", 1, NULL), DUE_EBUSY);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(put_at(&m.lab[1], 0, "cake", KEY(), NULL), DUE_EEXIST, "it is kept");
    mall_close(&m);
}

MALL_TEST(share_keys, what_is_asynchronous_waits_for_its_key)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *stores[2] = { memory_store_new(disk), memory_store_new(disk) };
    due_queue *q[2];

    for (int i = 0; i < 2; i++) {
        due_options o = { DUE_OPTIONS_INIT, .store = stores[i], .share = DUE_SHARED,
                          .confirm = DUE_CONFIRM_ASYNC };
        cr_assert_eq(due_open(&q[i], &o, NULL), 0);
    }
    due_extra more = KEY();
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(100), .more = &more };
    cr_expect_eq(due_enqueue(q[0], &spec, DUE_S(10), NULL), 0);
    cr_expect_eq(memory_disk_jobs(disk), 1u);
    cr_expect_eq(due_enqueue(q[1], &spec, DUE_S(10), NULL), DUE_EEXIST);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(due_close(q[i], DUE_CLOSE_DISCARD, DUE_S(10)), 0);
        cr_expect_eq(due_free(q[i]), 0);
    }
    memory_disk_free(disk);
}

/* It was taken, and the answer comes when whoever took it has gone: it is put in again.  Meanwhile
 * another has its key, or not. */
static bool comes_back(bool robbed)
{
    struct mall m = mall_make(1);
    size_t takes = mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(100) });
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct crew_call taking;
    due_id other;
    due_id first;
    due_id who;
    due_job job;

    cr_assert_eq(put_at(&m.lab[0], 0, "tea", KEY(.keep_key_ns = robbed ? 0 : 500), &first), 0);
    cr_expect_eq(due_dequeue(m.lab[takes].q, &job, 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[takes]).ready == 0) /* it is claimed, and what follows is the take */
        crew_sleep(DUE_US(100));
    memory_store_fault(m.store[takes], (struct memory_fault){ .verb = MEMORY_WORK,
                                                              .times = MEMORY_ALWAYS,
                                                              .kind = MEMORY_BLOCK_AFTER,
                                                              .limiter = gate });
    crew_call_dequeue(&taking, m.lab[takes].q, 10);
    memory_limiter_reached(gate, 1);
    bool took = memory_disk_jobs(m.disk) == 0; /* else it was a claim that came before */
    if (took && robbed)
        cr_assert_eq(put_at(&m.lab[0], 1000, "cake", KEY(), &other), 0, "it is free");
    if (!took)
        memory_limiter_open(gate);
    mall_turn_to(&m, 10);
    int rc = crew_call_answer(&taking); /* when its time is up */
    if (rc == 0)
        due_job_done(&taking.job);
    if (took)
        memory_limiter_open(gate);
    took = took && rc != 0;
    while (took && memory_disk_jobs(m.disk) < 1u + robbed)
        crew_sleep(DUE_US(100));
    if (took) {
        cr_expect_eq(due_id_of_key(m.lab[0].q, "k", 1, &who), 0);
        cr_expect(due_id_equal(who, robbed ? other : first));
    }
    memory_limiter_free(gate);
    mall_close(&m);
    return took;
}

Test(share_keys, a_job_that_was_taken_for_nobody_comes_back_with_its_key_or_without, .timeout = 60)
{
    for (lab_proxies = 0; lab_proxies < 2; lab_proxies++) {
        for (int robbed = 0; robbed < 2; robbed++) {
            int tries = 0;

            while (!comes_back(robbed != 0) && tries < 100)
                tries++;
            cr_expect_lt(tries, 100, "it was never taken");
        }
    }
    lab_proxies = -1;
}

/* Whoever closes waits until it is back, on the clock of the machine too. */
static bool comes_back_before_the_end(void)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    struct memory_limiter *gate = memory_limiter_new(disk);
    due_store *stores[2] = { memory_store_new(disk), memory_store_new(disk) };
    due_extra more = KEY();
    due_spec spec = { DUE_SPEC_INIT, .more = &more };
    struct crew_call taking;
    due_queue *q[2];
    struct due_stats stats = { .ready = 0 };
    due_job job;

    for (int i = 0; i < 2; i++) {
        due_options o = { DUE_OPTIONS_INIT, .store = stores[i], .share = DUE_SHARED };
        cr_assert_eq(due_open(&q[i], &o, NULL), 0);
    }
    cr_assert_eq(due_enqueue(q[0], &spec, DUE_S(10), NULL), 0);
    cr_expect_eq(due_dequeue(q[1], &job, 0), DUE_EAGAIN);
    while (due_stats_read(q[1], &stats) == 0 && stats.ready == 0)
        crew_sleep(DUE_US(100));
    memory_store_fault(stores[1], (struct memory_fault){ .verb = MEMORY_WORK,
                                                         .times = MEMORY_ALWAYS,
                                                         .kind = MEMORY_BLOCK_AFTER,
                                                         .limiter = gate });
    crew_call_dequeue(&taking, q[1], DUE_MS(50));
    memory_limiter_reached(gate, 1);
    bool took = memory_disk_jobs(disk) == 0; /* else it was a claim that came before */
    if (took)
        cr_assert_eq(due_enqueue(q[0], &spec, DUE_S(10), NULL), 0, "the key is free");
    else
        memory_limiter_open(gate);
    int rc = crew_call_answer(&taking);
    if (rc == 0)
        due_job_done(&taking.job);
    if (took)
        memory_limiter_open(gate);
    took = took && rc != 0;
    cr_expect_eq(due_close(q[1], DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    if (took)
        cr_expect_eq(memory_disk_jobs(disk), 2u);
    cr_expect_eq(due_close(q[0], DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(due_free(q[i]), 0);
    memory_limiter_free(gate);
    memory_disk_free(disk);
    return took;
}

Test(share_keys, a_job_that_was_robbed_of_its_key_is_back_before_the_end, .timeout = 60)
{
    int tries = 0;

    while (!comes_back_before_the_end() && tries < 100)
        tries++;
    cr_expect_lt(tries, 100, "it was never taken");
}

/* ---- The other policies ---- */

/* What another process has put in at @was is to be as @policy says by an enqueue at @at. */
static void expect_changed(struct mall *m, enum due_key_policy policy, int64_t was, int64_t at,
                           int64_t until, const char *text)
{
    due_record r = { .len = 0 };
    due_id first;
    due_id id;

    cr_assert_eq(put_at(&m->lab[0], was, "tea", KEY(.headers = "h", .headers_len = 1), &first), 0);
    cr_assert_eq(put_at(&m->lab[1], at, "cake", KEY(.on_key = policy), &id), 0);
    cr_expect(due_id_equal(first, id), "it stays that job");
    cr_assert(memory_disk_find(m->disk, id, &r));
    cr_expect_eq(r.until_ns, until, "%d: %lld", policy, (long long)r.until_ns);
    cr_expect_eq(r.deadline_ns, until);
    cr_expect_eq(r.len, strlen(text), "policy %d", policy);
    cr_expect_eq(r.headers_len, policy == DUE_KEY_EARLIEST ? 1u : 0u);
    cr_expect_eq(memory_disk_jobs(m->disk), 1u);
    cr_expect_eq(due_cancel_key(m->lab[0].q, "k", 1, NULL), 0);
}

MALL_TEST(share_keys, a_job_that_waits_is_changed_by_the_policy)
{
    struct mall m = mall_make(2);

    expect_changed(&m, DUE_KEY_REPLACE, 50, 70, 70, "cake");
    expect_changed(&m, DUE_KEY_REPLACE, 50, 30, 30, "cake");
    expect_changed(&m, DUE_KEY_EARLIEST, 50, 70, 50, "tea");
    expect_changed(&m, DUE_KEY_EARLIEST, 50, 30, 30, "tea");
    expect_changed(&m, DUE_KEY_DEBOUNCE, 50, 70, 70, "cake");
    expect_changed(&m, DUE_KEY_DEBOUNCE, 50, 30, 50, "cake");
    mall_close(&m);
}

MALL_TEST(share_keys, a_job_that_failed_begins_anew_with_other_content)
{
    struct mall m = mall_make(2);
    due_job job;
    due_id first;
    due_id id;

    for (int i = 0; i < 3; i++) {
        cr_assert_eq(put_at(&m.lab[0], 0, "tea", KEY(), &first), 0);
        cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        cr_assert_eq(due_nack(&job, 1000), 0);
        cr_assert_eq(put_at(&m.lab[1], 0, "cake", KEY(.on_key = others[i]), &id), 0);
        cr_expect(due_id_equal(first, id));
        if (others[i] == DUE_KEY_DEBOUNCE)
            cr_assert_eq(due_promote(m.lab[1].q, id), 0);
        cr_assert_eq(mall_reserve(&m, 1, &job, 100), 0);
        cr_expect_eq(job.attempts, others[i] == DUE_KEY_EARLIEST ? 2u : 1u);
        cr_expect_eq(job.failures, others[i] == DUE_KEY_EARLIEST ? 1u : 0u);
        cr_expect_eq(job.len, others[i] == DUE_KEY_EARLIEST ? 3u : 4u);
        cr_assert_eq(due_ack(&job), 0);
    }
    mall_close(&m);
}

MALL_TEST(share_keys, a_dead_job_waits_again)
{
    struct mall m = mall_make(2);
    due_job job;
    due_id first;
    due_id id;

    for (int i = 0; i < 3; i++) {
        cr_assert_eq(put_at(&m.lab[0], 0, "tea", KEY(.ttl_ns = 1000), &first), 0);
        cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        cr_assert_eq(due_bury(&job, "no"), 0);
        cr_assert_eq(put_at(&m.lab[1], 60, "cake", KEY(.on_key = others[i]), &id), 0);
        cr_expect(due_id_equal(first, id));
        due_record r = { .len = 0 };
        cr_assert(memory_disk_find(m.disk, id, &r));
        cr_expect_eq(r.cause, 0);
        cr_expect_eq(r.until_ns, 60);
        cr_expect_eq(r.attempts, 0u);
        cr_expect_eq(r.ttl_ns, 0);
        cr_expect_eq(r.len, others[i] == DUE_KEY_EARLIEST ? 3u : 4u);
        cr_assert_eq(due_cancel_key(m.lab[0].q, "k", 1, NULL), 0);
    }
    mall_close(&m);
}

/* Both are handled; the key is the new one's. */
MALL_TEST(share_keys, from_a_job_that_is_reserved_the_key_is_taken_over)
{
    struct mall m = mall_make(2);
    due_job job;
    due_job next;
    due_id id;
    due_id other;

    for (int i = 0; i < 6; i++) { /* reserved by another process, or by the same */
        cr_assert_eq(put_at(&m.lab[0], 0, "tea", KEY(.keep_key_ns = 1000), NULL), 0);
        cr_assert_eq(mall_reserve(&m, (size_t)(i / 3), &job, 100), 0);
        cr_assert_eq(put_at(&m.lab[1], 0, "cake", KEY(.on_key = others[i % 3]), &id), 0);
        cr_expect_not(due_id_equal(job.id, id));
        cr_expect_eq(put_at(&m.lab[0], 0, "pie", KEY(), &other), DUE_EEXIST);
        cr_expect(due_id_equal(id, other));
        cr_expect_eq(due_ack(&job), 0);
        cr_expect_eq(due_id_of_key(m.lab[0].q, "k", 1, &other), 0);
        cr_expect(due_id_equal(id, other), "an end of the other does not touch it");
        cr_assert_eq(mall_reserve(&m, 0, &next, 100), 0);
        cr_expect(due_id_equal(next.id, id));
        cr_expect_eq(due_ack(&next), 0);
        cr_expect(is_free(&m.lab[0]));
    }
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

/* It was claimed for somebody who did not wait: nobody has been given it. */
MALL_TEST(share_keys, a_job_that_was_claimed_ahead_here_is_changed_in_the_store)
{
    struct mall m = mall_make(2);
    due_job job;
    due_id first;
    due_id id;

    cr_assert_eq(put_at(&m.lab[0], 0, "tea", KEY(), &first), 0);
    cr_expect_eq(due_dequeue(m.lab[1].q, &job, 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[1]).ready == 0)
        crew_sleep(DUE_US(100));
    cr_assert_eq(put_at(&m.lab[1], 50, "cake", KEY(.on_key = DUE_KEY_REPLACE), &id), 0);
    cr_expect(due_id_equal(first, id));
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    mall_turn_to(&m, 50);
    cr_assert_eq(mall_take(&m, 0, &job), 0);
    cr_expect_str_eq(lab_text(&m.lab[0], &job), "cake");
    mall_close(&m);
}

/* What was taken is a round; the next one is in the store by then, and has the key. */
MALL_TEST(share_keys, a_job_one_of_whose_rounds_was_taken_here_is_changed_in_the_store)
{
    struct mall m = mall_make(2);
    due_job job;
    due_id id;

    cr_assert_eq(put_at(&m.lab[0], 0, "tea", KEY(.every_ns = 1000), NULL), 0);
    cr_assert_eq(mall_take(&m, 1, &job), 0);
    cr_expect_eq(put_at(&m.lab[1], 50, "cake", KEY(.on_key = DUE_KEY_REPLACE), &id), 0);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    due_job_done(&job);
    mall_close(&m);
}

MALL_TEST(share_keys, a_kept_key_is_refused_by_every_policy)
{
    struct mall m = mall_make(2);
    due_job job;
    due_id first;
    due_id id;

    cr_assert_eq(put_at(&m.lab[0], 0, "tea", KEY(.keep_key_ns = 50), &first), 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_assert_eq(due_ack(&job), 0);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(put_at(&m.lab[1], 0, "cake", KEY(.on_key = others[i]), &id), DUE_EEXIST);
        cr_expect(due_id_equal(id, first));
    }
    mall_turn_to(&m, 50);
    cr_expect_eq(put_at(&m.lab[1], 0, "cake", KEY(.on_key = DUE_KEY_DEBOUNCE), &id), 0);
    cr_expect_not(due_id_equal(id, first));
    mall_close(&m);
}

/* How long the key is kept is the new content's. */
MALL_TEST(share_keys, who_replaces_a_job_says_how_long_its_key_is_kept)
{
    struct mall m = mall_make(2);
    due_job job;

    cr_assert_eq(put_at(&m.lab[0], 5, "tea", KEY(), NULL), 0);
    cr_assert_eq(
        put_at(&m.lab[1], 0, "cake", KEY(.keep_key_ns = 50, .on_key = DUE_KEY_REPLACE), NULL), 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_assert_eq(due_ack(&job), 0);
    cr_expect_eq(put_at(&m.lab[1], 0, "pie", KEY(), NULL), DUE_EEXIST);
    mall_close(&m);
}
