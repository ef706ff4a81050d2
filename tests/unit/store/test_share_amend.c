/* One queue for many processes: a job gets other content. */
#include <pthread.h>

#include "lab/mall.h"

static int amend(struct lab *lab, due_id id, unsigned what, due_spec spec)
{
    spec.size = sizeof spec;
    return due_amend(lab->q, id, &spec, what);
}

/* A reserved job has these bytes, and is acked. */
static void expect_and_ack(due_job *job, const char *text)
{
    cr_expect_eq(job->len, strlen(text));
    cr_expect_arr_eq(job->data, text, job->len);
    cr_expect_eq(due_ack(job), 0);
}

/* Without what it points to. */
static due_record record_of(const struct mall *m, due_id id)
{
    due_record r = { .len = 0 };

    cr_assert(memory_disk_find(m->disk, id, &r));
    return r;
}

MALL_TEST(share_amend, whoever_knows_its_id_updates_a_job)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    cr_assert_eq(due_update(m.lab[1].q, id, "green tea", 9), 0);
    cr_expect_eq(record_of(&m, id).until_ns, 50);
    mall_turn_to(&m, 50);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(due_update(m.lab[1].q, id, "x", 1), DUE_EBUSY);
    expect_and_ack(&job, "green tea");
    cr_expect_eq(due_update(m.lab[1].q, id, "x", 1), DUE_ENOENT);
    mall_close(&m);
}

MALL_TEST(share_amend, each_part_is_changed_and_the_others_stay)
{
    struct mall m = mall_make(2);
    const due_retry twice = { .kind = DUE_RETRY_FIXED, .delay_ns = 7, .attempts_max = 2 };
    due_extra headers = { DUE_EXTRA_INIT, .headers = "hot", .headers_len = 3 };
    due_extra policy = { DUE_EXTRA_INIT, .retry = &twice };
    due_extra limit = { DUE_EXTRA_INIT, .ttl_ns = 30 };
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50, .priority = 4);
    cr_expect_eq(amend(&m.lab[1], id, DUE_SET_HEADERS, (due_spec){ .more = &headers }), 0);
    cr_expect_eq(amend(&m.lab[0], id, DUE_SET_RETRY, (due_spec){ .more = &policy }), 0);
    cr_expect_eq(amend(&m.lab[1], id, DUE_SET_TIME, (due_spec){ .at_ns = 60 }), 0);
    cr_expect_eq(amend(&m.lab[1], id, DUE_SET_LIMIT | DUE_SET_DATA,
                       (due_spec){ .data = "cake", .len = 4, .more = &limit }),
                 0);
    due_record r = record_of(&m, id);
    cr_expect_eq(r.deadline_ns, 60);
    cr_expect_eq(r.until_ns, 60);
    cr_expect_eq(r.ttl_ns, 30);
    cr_expect_eq(r.priority, 4);
    cr_expect_eq(amend(&m.lab[1], id, DUE_SET_TIME | DUE_SET_LIMIT, (due_spec){ .delay_ns = 9 }),
                 0);
    cr_expect_eq(record_of(&m, id).ttl_ns, 0);
    mall_turn_to(&m, 9);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect_eq(job.deadline_ns, 9);
    cr_assert_eq(job.headers_len, 3u);
    cr_expect_arr_eq(job.headers, "hot", 3);
    cr_assert_eq(due_nack(&job, -1), 0);
    cr_expect_eq(record_of(&m, id).until_ns, 9 + 7, "by its policy");
    mall_turn_to(&m, 16);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    expect_and_ack(&job, "cake");
    mall_close(&m);
}

MALL_TEST(share_amend, what_is_wrong_is_told_and_changes_nothing)
{
    struct mall m = mall_make(2);
    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    struct lab *lab = &m.lab[1];

    cr_expect_eq(amend(lab, id, 0, (due_spec){ .len = 0 }), DUE_EINVAL);
    cr_expect_eq(amend(lab, id, 1024, (due_spec){ .len = 0 }), DUE_EINVAL);
    cr_expect_eq(amend(lab, id, DUE_SET_DATA, (due_spec){ .ptr = &m }), DUE_EINVAL);
    cr_expect_eq(amend(lab, id, DUE_SET_DATA, (due_spec){ .len = 5 }), DUE_EINVAL);
    cr_expect_eq(amend(lab, id, DUE_SET_TIME, (due_spec){ .at_ns = -5 }), DUE_EINVAL);
    cr_expect_eq(amend(lab, id, DUE_SET_PRIORITY, (due_spec){ .priority = 5 }), DUE_ENOTSUP);
    cr_expect_eq(record_of(&m, id).len, 3u);
    mall_close(&m);
}

/* It was claimed for somebody who did not wait, and lies in the memory of this process. */
MALL_TEST(share_amend, a_job_that_was_claimed_ahead_is_changed_in_the_store)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    cr_expect_eq(due_dequeue(m.lab[1].q, &job, 0), DUE_EAGAIN);
    while (lab_stats(&m.lab[1]).ready == 0)
        crew_sleep(DUE_US(100));
    cr_expect_eq(due_update(m.lab[0].q, id, "x", 1), DUE_EBUSY);
    cr_expect_eq(due_update(m.lab[1].q, id, "cake", 4), 0);
    cr_assert_eq(mall_take(&m, 0, &job), 0);
    cr_expect_str_eq(lab_text(&m.lab[0], &job), "cake");
    mall_close(&m);
}

/* ---- The dead ---- */

static due_id put_dead(struct mall *m, const char *text, const due_extra *more)
{
    due_job job;

    due_id id = lab_enqueue(&m->lab[0], text, .delay_ns = 0, .more = more);
    cr_assert_eq(mall_reserve(m, 0, &job, 100), 0);
    cr_assert_eq(due_bury(&job, "cold"), 0);
    return id;
}

MALL_TEST(share_amend, a_dead_job_is_changed_but_for_its_times)
{
    struct mall m = mall_make(2);
    due_extra limit = { DUE_EXTRA_INIT, .ttl_ns = 30 };
    due_job job;

    due_id id = put_dead(&m, "tea", NULL);
    cr_expect_eq(due_update(m.lab[1].q, id, "cake", 4), 0);
    due_record r = record_of(&m, id);
    cr_expect_eq(r.cause, DUE_CAUSE_BURIED);
    cr_expect_eq(r.attempts, 1u);
    due_dead dead;
    uint64_t at = 0;
    cr_assert_eq(due_list_dead(m.lab[0].q, &at, &dead, 1), 1);
    cr_expect_str_eq(dead.reason, "cold");
    cr_expect_eq(dead.len, 4u);
    cr_expect_eq(amend(&m.lab[1], id, DUE_SET_TIME, (due_spec){ .at_ns = 9 }), DUE_ENOENT);
    cr_expect_eq(amend(&m.lab[1], id, DUE_SET_TIME | DUE_SET_DATA, (due_spec){ .at_ns = 9 }),
                 DUE_ENOENT);
    cr_expect_eq(amend(&m.lab[1], id, DUE_SET_LIMIT, (due_spec){ .more = &limit }), DUE_ENOENT);
    cr_expect_eq(due_kick(m.lab[1].q, id), 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    expect_and_ack(&job, "cake");
    mall_close(&m);
}

MALL_TEST(share_amend, a_dead_job_whose_time_was_limited_is_kicked_without_the_limit)
{
    struct mall m = mall_make(2);
    due_extra limit = { DUE_EXTRA_INIT, .ttl_ns = 30 };
    due_extra end = { DUE_EXTRA_INIT, .expires_ns = 40 };
    uint64_t n = 0;
    due_id id[5];
    due_job job;

    for (int i = 0; i < 4; i++)
        id[i] = put_dead(&m, "tea", i == 0 || i == 2 ? &limit : i == 1 ? &end : NULL);
    mall_turn_to(&m, 1000);
    id[4] = put_dead(&m, "tea", &limit); /* at this very moment */
    cr_expect_eq(due_kick(m.lab[1].q, id[0]), 0);
    due_record r = record_of(&m, id[0]);
    cr_expect_eq(r.cause, 0);
    cr_expect_eq(r.ttl_ns, 0);
    cr_expect_eq(r.attempts, 0u);
    cr_assert_eq(due_kick_all(m.lab[1].q, DUE_ALL_TOPICS, &n), 0);
    cr_expect_eq(n, 4u);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
        cr_expect_eq(job.attempts, 1u);
        expect_and_ack(&job, "tea");
    }
    mall_close(&m);
}

/* ---- Two at once, and answers that get lost ---- */

struct amending {
    struct lab *lab;
    due_id id;
    int rc;
};

static void *amend_main(void *arg)
{
    struct amending *a = arg;

    a->rc = due_update(a->lab->q, a->id, "cake", 4);
    return NULL;
}

/* It has looked at the job; before it changes it, another does. */
MALL_TEST(share_amend, of_two_at_once_neither_undoes_the_other)
{
    struct mall m = mall_make(2);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    due_extra headers = { DUE_EXTRA_INIT, .headers = "hot", .headers_len = 3 };
    pthread_t thread;

    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    struct amending a = { .lab = &m.lab[1], .id = id };
    memory_store_fault(m.store[1], (struct memory_fault){
                                       .verb = MEMORY_PUT, .kind = MEMORY_BLOCK, .limiter = gate });
    cr_assert_eq(pthread_create(&thread, NULL, amend_main, &a), 0);
    memory_limiter_reached(gate, 1);
    cr_expect_eq(amend(&m.lab[0], id, DUE_SET_HEADERS, (due_spec){ .more = &headers }), 0);
    memory_limiter_open(gate);
    pthread_join(thread, NULL);
    cr_expect_eq(a.rc, 0);
    due_record r = record_of(&m, id);
    cr_expect_eq(r.len, 4u);
    cr_expect_eq(r.headers_len, 3u);
    memory_limiter_free(gate);
    mall_close(&m);
}

/* It dies in between, and can be changed all the same. */
MALL_TEST(share_amend, a_job_that_dies_meanwhile_is_changed)
{
    struct mall m = mall_make(2);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    pthread_t thread;
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], "tea", .delay_ns = 0);
    struct amending a = { .lab = &m.lab[1], .id = id };
    memory_store_fault(m.store[1], (struct memory_fault){
                                       .verb = MEMORY_PUT, .kind = MEMORY_BLOCK, .limiter = gate });
    cr_assert_eq(pthread_create(&thread, NULL, amend_main, &a), 0);
    memory_limiter_reached(gate, 1);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    cr_expect_eq(due_bury(&job, "cold"), 0);
    memory_limiter_open(gate);
    pthread_join(thread, NULL);
    cr_expect_eq(a.rc, 0, "%s", due_error_name(a.rc));
    due_record r = record_of(&m, id);
    cr_expect_eq(r.cause, DUE_CAUSE_BURIED);
    cr_expect_eq(r.len, 4u);
    memory_limiter_free(gate);
    mall_close(&m);
}

MALL_TEST(share_amend, an_update_in_doubt_is_seen_through_when_its_caller_has_gone)
{
    struct mall m = mall_make(1);
    size_t hasty = mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(5) });
    char *text = strdup("cake");

    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    memory_store_fault(
        m.store[hasty],
        (struct memory_fault){ .verb = MEMORY_PUT, .times = 3, .kind = MEMORY_DOUBT_NOT });
    int rc = due_update(m.lab[hasty].q, id, text, 4);
    cr_expect(rc == 0 || rc == DUE_EINDOUBT, "%d", rc);
    memset(text, 'x', 4);
    free(text);
    char bytes[4];
    size_t len = 0;
    while (len != 4) {
        cr_assert_eq(due_read(m.lab[0].q, id, bytes, 4, &len), 0);
        crew_sleep(DUE_US(100));
    }
    cr_expect_arr_eq(bytes, "cake", 4);
    mall_close(&m);
}

/* However little it is, and whatever it is for which there is none. */
MALL_TEST(share_amend, without_memory_a_job_stays_what_it_is)
{
    struct mall m = mall_make(2);
    struct flaky *memory = &m.lab[1].state->memory;
    due_job job;
    int rc;

    due_id id = lab_enqueue(&m.lab[0], "", .at_ns = 50);
    for (unsigned n = 0; n < 100; n++) {
        memory->fail_on = false;
        flaky_fail_in(memory, n);
        rc = due_update(m.lab[1].q, id, "x", 1);
        memory->fail_at = FLAKY_NEVER;
        if (rc == 0)
            break;
        cr_expect_eq(rc, DUE_ENOMEM);
        cr_expect_eq(record_of(&m, id).len, 0u);
    }
    cr_expect_eq(rc, 0);
    mall_turn_to(&m, 50);
    cr_assert_eq(mall_reserve(&m, 0, &job, 100), 0);
    expect_and_ack(&job, "x");
    mall_close(&m);
}

/* Nothing was said of the job. */
MALL_TEST(share_ask, a_cancel_that_does_not_reach_the_store_in_time_says_so)
{
    struct mall m = mall_make(1);
    size_t i = mall_join(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(50) });

    due_id id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    memory_store_fault(
        m.store[i],
        (struct memory_fault){ .verb = MEMORY_PUT, .times = MEMORY_ALWAYS, .kind = MEMORY_AWAY });
    cr_expect_eq(due_cancel(m.lab[i].q, id, NULL), DUE_ETIMEDOUT);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    memory_store_forgive(m.store[i]);
    cr_expect_eq(due_cancel(m.lab[0].q, id, NULL), 0);
    mall_close(&m);
}

/* However short the key is by which it is named. */
MALL_TEST(share_ask, without_memory_a_job_is_not_cancelled_by_its_key)
{
    struct mall m = mall_make(2);
    struct flaky *memory = &m.lab[1].state->memory;
    unsigned refused = 0;
    int rc = 0;

    for (unsigned tries = 0; refused == 0 || rc != 0; tries++) { /* it may be a proxy's */
        cr_assert_lt(tries, 100u);
        if (memory_disk_jobs(m.disk) == 0)
            cr_assert_eq(lab_put_as(&m.lab[0], DUE_KEY_REFUSE, "tea", NULL, .at_ns = 50), 0);
        memory->fail_on = false;
        flaky_fail_in(memory, refused);
        rc = due_cancel_key(m.lab[1].q, "k", 1, NULL);
        memory->fail_at = FLAKY_NEVER;
        cr_expect(rc == 0 || rc == DUE_ENOMEM, "%s", due_error_name(rc));
        cr_expect_eq(memory_disk_jobs(m.disk), rc == 0 ? 0u : 1u);
        refused += rc != 0;
    }
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    mall_close(&m);
}

struct finding {
    due_queue *q;
    due_id id;
    due_info info;
    atomic_bool over;
};

static int find_main(void *arg)
{
    struct finding *f = arg;

    int rc = due_find(f->q, f->id, &f->info);
    atomic_store(&f->over, true);
    return rc;
}

/* A store that answers a find when it may, whatever time it is given. */
static const struct due_store_verbs *memory_verbs;
static atomic_bool find_begun;
static atomic_bool find_may;

static int find_late(due_store *store, due_id id, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    int rc = memory_verbs->find(store, id, visit, ctx, until_ns);

    atomic_store(&find_begun, true);
    while (!atomic_load(&find_may))
        crew_sleep(DUE_US(100));
    return rc;
}

/* Whoever answers, the caller himself or the proxy, has begun with it, and writes to what the call
 * gave him: so it does not return before that. */
MALL_TEST(share_ask, a_call_whose_time_is_over_while_it_is_answered_has_the_answer)
{
    struct mall m = mall_make(1);
    struct due_store_verbs verbs = *m.store[0]->verbs;
    struct finding f = { .info = { .len = 0 } };
    struct crew_thread finds;

    memory_verbs = m.store[0]->verbs;
    verbs.find = find_late;
    atomic_store(&find_begun, false);
    atomic_store(&find_may, false);
    size_t i =
        mall_join_by(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(300) }, &verbs);
    f.q = m.lab[i].q;
    f.id = lab_enqueue(&m.lab[0], "tea", .at_ns = 50);
    while (!atomic_load(&find_begun)) { /* again, if it was out of time before anybody began */
        atomic_store(&f.over, false);
        crew_go(&finds, find_main, &f);
        while (!atomic_load(&find_begun) && !atomic_load(&f.over))
            crew_sleep(DUE_US(100));
        if (!atomic_load(&find_begun))
            cr_expect_eq(crew_join(&finds), DUE_ETIMEDOUT);
    }
    crew_sleep(DUE_MS(350)); /* its time is over */
    cr_expect_not(atomic_load(&f.over));
    atomic_store(&find_may, true);
    cr_expect_eq(crew_join(&finds), 0);
    cr_expect_eq(f.info.len, 3u);
    mall_close(&m);
}
