/* What a queue answers while its stored jobs are read, and that stands still after the first page:
 * the store is away for the next one, or says nothing to it, until it is told to go on. */
#include "lab/flood.h"
#include "lab/shop.h"
#include "lab/take.h"

#include <due/metrics.h>

#include <stdatomic.h>

#define JOBS    600u /* more than two pages */
#define UNREAD  (JOBS - 1)
#define AT_ONCE 64u

/* Jobs 0, 1, ... are stored, due in this order, and all of them due; and a program has started that
 * is given the first page.  With @limiter the call for the second one stands there, else the store
 * is away for it. */
static struct shop filled(due_id *ids, struct memory_limiter **limiter, struct lab_options with)
{
    struct shop s = shop_make(.start_ns = 5, .with.confirm = DUE_CONFIRM_ASYNC);
    due_extra keyed = { DUE_EXTRA_INIT, .key = "k", .key_len = 1 };

    for (uint32_t i = 0; i < JOBS; i++) {
        due_spec spec = { DUE_SPEC_INIT, .at_ns = 10 + (int64_t)i, .data = &i, .len = sizeof i };
        spec.more = i == JOBS - 1 ? &keyed : NULL;
        cr_assert_eq(due_enqueue(s.lab.q, &spec, 0, &ids[i]), 0);
    }
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    shop_die(&s);
    s.store = memory_store_new(s.disk);
    struct memory_fault fault = {
        .verb = MEMORY_LOAD, .call = 2, .times = MEMORY_ALWAYS, .kind = MEMORY_AWAY
    };
    if (limiter != NULL) {
        fault.times = 1;
        fault.kind = MEMORY_BLOCK;
        fault.limiter = *limiter = memory_limiter_new(s.disk);
    }
    memory_store_fault(s.store, fault);
    with.start_ns = 10 + (int64_t)JOBS;
    with.with.size = sizeof(due_options);
    with.with.store = s.store;
    s.lab = lab_open_with(&with);
    memory_store_until(s.store, MEMORY_LOAD, 2);
    cr_assert_eq(lab_stats(&s.lab).loading, 1);
    cr_assert_gt(lab_stats(&s.lab).restored, 0u);
    cr_assert_lt(lab_stats(&s.lab).restored, (uint64_t)JOBS);
    return s;
}

static struct shop half_read(due_id *ids)
{
    return filled(ids, NULL, (struct lab_options){ .kernel = false });
}

static uint32_t number_of(const due_job *job)
{
    uint32_t number;

    cr_assert_eq(job->len, sizeof number);
    memcpy(&number, job->data, sizeof number);
    return number;
}

static uint32_t take(struct shop *s)
{
    due_job job;

    cr_assert_eq(due_dequeue(s->lab.q, &job, DUE_S(30)), 0);
    uint32_t number = number_of(&job);
    due_job_done(&job);
    return number;
}

/* The jobs from @next on come in this order, up to @end, but the one that @gone has.  Many at a
 * time: each take waits for the store. */
static void take_up_to(struct shop *s, uint32_t next, uint32_t end, uint32_t gone)
{
    due_job jobs[AT_ONCE];
    uint32_t left = end - next - (gone >= next && gone < end);

    while (left > 0) {
        int n = take_some(s->lab.q, NULL, 0, jobs, left < AT_ONCE ? left : AT_ONCE, DUE_S(30));

        cr_assert_gt(n, 0);
        for (int i = 0; i < n; i++) {
            next += next == gone;
            cr_assert_eq(number_of(&jobs[i]), next++);
        }
        left -= (uint32_t)n;
        due_jobs_done(jobs, (size_t)n);
    }
}

/* It reads on: what is left comes once each, from @next on, but the one that @gone has. */
static void finish(struct shop *s, uint32_t next, uint32_t gone)
{
    cr_expect_eq(lab_stats(&s->lab).loading, 1, "it did not stand still");
    memory_store_forgive(s->store);
    shop_wait_loaded(s);
    take_up_to(s, next, JOBS, gone);
    cr_expect_eq(lab_stats(&s->lab).waiting, 0u);
    cr_expect_eq(memory_disk_jobs(s->disk), 0u);
    shop_close(s);
}

Test(stored_loading, what_has_been_read_is_handed_out, .timeout = 60)
{
    due_id ids[JOBS];
    struct shop s = half_read(ids);
    due_job job;

    cr_expect_eq(take(&s), 0u);
    cr_expect_not(memory_disk_find(s.disk, ids[0], NULL), "it left the store first");
    cr_assert_eq(take_leased(s.lab.q, &job, DUE_S(1), DUE_S(30)), 0);
    cr_expect_eq(number_of(&job), 1u);
    cr_expect(memory_disk_find(s.disk, ids[1], NULL), "it stays until its ack");
    cr_expect_eq(due_ack(&job), 0);
    due_job_done(&job);
    cr_expect_not(memory_disk_find(s.disk, ids[1], NULL));
    finish(&s, 2, JOBS);
}

Test(stored_loading, new_jobs_are_taken_and_handed_out, .timeout = 60)
{
    due_id ids[JOBS];
    struct shop s = half_read(ids);
    uint32_t first = JOBS;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 1, .data = &first, .len = sizeof first };
    due_id id;

    cr_assert_eq(due_enqueue(s.lab.q, &spec, 0, &id), 0);
    cr_expect(memory_disk_find(s.disk, id, NULL), "it was confirmed, and is not there");
    cr_expect_eq(take(&s), first, "it is due before all others");
    cr_expect_not(memory_disk_find(s.disk, id, NULL));
    finish(&s, 0, JOBS);
}

Test(stored_loading, one_that_was_not_read_yet_is_found_and_cancelled_by_its_id, .timeout = 60)
{
    due_id ids[JOBS];
    struct shop s = half_read(ids);
    uint64_t restored = lab_stats(&s.lab).restored;
    due_info info;
    due_job job;

    cr_assert_eq(due_find(s.lab.q, ids[UNREAD], &info), 0);
    cr_expect_eq(info.deadline_ns, 10 + (int64_t)UNREAD);
    cr_expect_eq(lab_stats(&s.lab).restored, restored + 1, "that one alone");
    cr_assert_eq(due_cancel(s.lab.q, ids[UNREAD - 1], &job), 0);
    cr_expect_eq(number_of(&job), UNREAD - 1);
    due_job_done(&job);
    cr_expect_not(memory_disk_find(s.disk, ids[UNREAD - 1], NULL));
    cr_expect_eq(due_cancel(s.lab.q, ids[UNREAD - 1], NULL), DUE_ENOENT);
    finish(&s, 0, UNREAD - 1);
}

/* Whose a key is cannot be known before. */
Test(stored_loading, a_batch_with_a_key_waits_until_all_is_read, .timeout = 60)
{
    due_id ids[JOBS];
    struct shop s = half_read(ids);
    due_extra keyed = { DUE_EXTRA_INIT, .key = "k", .key_len = 1 };
    due_spec specs[] = { { DUE_SPEC_INIT, .at_ns = 1, .more = &keyed },
                         { DUE_SPEC_INIT, .at_ns = 1 } };
    due_id id;

    int rc = due_enqueue(s.lab.q, &specs[0], 0, &id);
    cr_assert_lt(rc, 0);
    cr_expect_eq(due_enqueue_batch(s.lab.q, specs, 2, 0, NULL), rc);
    memory_store_forgive(s.store);
    cr_expect_eq(due_enqueue_batch(s.lab.q, specs, 2, 0, &id), DUE_EEXIST);
    cr_expect(due_id_equal(id, ids[JOBS - 1]));
    take_up_to(&s, 0, JOBS, JOBS);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

/* It is handed out as soon as it is known, and comes no second time when the reading has come to
 * it. */
Test(stored_loading, one_that_was_not_read_yet_is_moved_and_changed_by_its_id, .timeout = 60)
{
    due_id ids[JOBS];
    struct shop s = half_read(ids);
    uint32_t other = JOBS + 1;

    cr_assert_eq(due_update(s.lab.q, ids[UNREAD], &other, sizeof other), 0);
    cr_assert_eq(due_reschedule(s.lab.q, ids[UNREAD], 1), 0);
    cr_expect_eq(take(&s), other);
    cr_expect_not(memory_disk_find(s.disk, ids[UNREAD], NULL));
    finish(&s, 0, UNREAD);
}

Test(stored_loading, who_was_not_read_and_is_not_stored_is_unknown, .timeout = 60)
{
    due_id ids[JOBS];
    struct shop s = half_read(ids);
    due_info info;

    cr_expect_eq(take(&s), 0u);
    cr_expect_eq(due_find(s.lab.q, ids[0], &info), DUE_ENOENT);
    cr_expect_eq(due_cancel(s.lab.q, ids[0], NULL), DUE_ENOENT);
    finish(&s, 1, JOBS);
}

/* Nobody knows yet whether there is more that is due. */
Test(stored_loading, a_dequeue_without_time_says_that_there_is_nothing_yet, .timeout = 60)
{
    due_id ids[JOBS];
    struct shop s = half_read(ids);
    uint32_t restored = (uint32_t)lab_stats(&s.lab).restored;
    due_job job;

    take_up_to(&s, 0, restored, JOBS);
    cr_expect_eq(due_dequeue(s.lab.q, &job, 0), DUE_EAGAIN);
    cr_expect_eq(take_leased(s.lab.q, &job, DUE_S(1), 0), DUE_EAGAIN);
    finish(&s, restored, JOBS);
}

/* Whoever has to wait for the store waits for the page; what needs no answer of it goes on. */
Test(stored_loading, a_page_without_an_answer_holds_up_what_must_be_confirmed, .timeout = 60)
{
    due_id ids[JOBS];
    struct memory_limiter *limiter;
    struct shop s =
        filled(ids, &limiter, (struct lab_options){ .with.store_timeout_ns = DUE_MS(30) });
    uint32_t late = JOBS;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 1, .data = &late, .len = sizeof late };
    due_info info;
    due_job job;

    memory_limiter_reached(limiter, 1);
    cr_assert_eq(take_leased(s.lab.q, &job, DUE_S(1), 0), 0);
    cr_expect_eq(number_of(&job), 0u);
    cr_expect_eq(due_find(s.lab.q, ids[1], &info), 0, "it has been read");
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_ETIMEDOUT, "and nothing has changed");
    memory_limiter_open(limiter);
    shop_wait_loaded(&s);
    cr_expect_eq(due_ack(&job), 0);
    due_job_done(&job);
    take_up_to(&s, 1, JOBS, JOBS);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    memory_limiter_free(limiter);
    shop_close(&s);
}

/* ---- While others never stop: see test_stored_flood.c too ---- */

static const struct lab_options flooded = { .with = { FLOODED } };

/* There is always a change that waits to be sent. */
Test(stored_loading, gets_on_however_much_is_enqueued, .timeout = 60)
{
    due_id ids[JOBS];
    struct shop s = filled(ids, NULL, flooded);
    struct flood flood;

    flood_begin(&flood, s.lab.q);
    memory_store_forgive(s.store);
    shop_wait_loaded(&s);
    flood_end(&flood);
    cr_expect_eq(lab_stats(&s.lab).restored, (uint64_t)JOBS);
    shop_close(&s);
}

/* Pages are refused while one batch is under way behind the other, which never ends: the store is
 * asked for a page again all the same, and is said to be there, since it takes the batches. */
Test(stored_loading, gets_on_after_a_refused_page_however_much_is_enqueued, .timeout = 60)
{
    due_id ids[JOBS];
    struct shop s = filled(ids, NULL, flooded);
    struct flood flood;

    shop_slow(&s, MEMORY_COMMIT, 1000);
    flood_begin(&flood, s.lab.q);
    memory_store_until(s.store, MEMORY_LOAD, 5);
    memory_store_forgive(s.store);
    shop_wait_loaded(&s);
    flood_end(&flood);
    cr_expect_eq(lab_stats(&s.lab).store_state, 0);
    cr_expect_eq(lab_stats(&s.lab).restored, (uint64_t)JOBS);
    shop_close(&s);
}

/* In the time of a page more could be put than it shows. */
Test(stored_loading, gets_on_where_reading_is_slower_than_writing, .timeout = 60)
{
    due_id ids[JOBS];
    struct shop s = filled(ids, NULL, flooded);
    struct flood flood;

    flood_begin(&flood, s.lab.q);
    while (lab_stats(&s.lab).settled < 20000)
        crew_sleep(DUE_MS(1));
    memory_store_forgive(s.store);
    shop_slow(&s, MEMORY_LOAD, 200000);
    shop_wait_loaded(&s);
    flood_end(&flood);
    cr_expect_eq(lab_stats(&s.lab).restored, (uint64_t)JOBS);
    shop_close(&s);
}

struct acts {
    due_queue *q;
    atomic_int begun;
    uint64_t cleared;
};

static int clear_all(void *arg)
{
    struct acts *acts = arg;

    atomic_store(&acts->begun, 1);
    return due_clear(acts->q, DUE_ALL_TOPICS, &acts->cleared);
}

/* Also those that were not read yet when it began: none was. */
Test(stored_loading, a_clear_takes_all_jobs, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    struct crew_thread thread;

    for (int i = 0; i < 30; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 1000);
    shop_die(&s);
    s.store = memory_store_new(s.disk);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_LOAD, .kind = MEMORY_BLOCK, .limiter = limiter });
    s.lab = lab_open(.start_ns = 5, .with.store = s.store);
    memory_limiter_reached(limiter, 1);
    struct acts acts = { .q = s.lab.q };
    crew_go(&thread, clear_all, &acts);
    while (!atomic_load(&acts.begun))
        crew_sleep(DUE_US(100));
    crew_sleep(DUE_MS(10)); /* it may have looked */
    memory_limiter_open(limiter);
    cr_expect_eq(crew_join(&thread), 0);
    cr_expect_eq(acts.cleared, 30u, "%llu", (unsigned long long)acts.cleared);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
    memory_limiter_free(limiter);
}

/* If they cannot all be read in time the call says so, and has done nothing by halves. */
Test(stored_loading, what_is_about_all_jobs_says_if_it_cannot_be, .timeout = 60)
{
    due_id ids[JOBS];
    struct shop s = filled(ids, NULL, (struct lab_options){ .with.store_timeout_ns = DUE_MS(20) });
    uint64_t n = 7;

    cr_expect_eq(due_clear(s.lab.q, DUE_ALL_TOPICS, &n), DUE_ETIMEDOUT);
    cr_expect_eq(due_kick_all(s.lab.q, DUE_ALL_TOPICS, &n), DUE_ETIMEDOUT);
    cr_expect_eq(due_clear_dead(s.lab.q, DUE_ALL_TOPICS, &n), DUE_ETIMEDOUT);
    cr_expect_eq(n, 7u); /* none is gone */
    cr_expect_eq(memory_disk_jobs(s.disk), JOBS);
    memory_store_forgive(s.store);
    shop_close(&s);
}

/* Begun when nothing waits, or when something does that is handed out then: what was not read yet
 * is to be delivered too. */
Test(stored_loading, a_drain_waits_for_what_was_not_read_yet, .timeout = 60)
{
    for (int empty = 0; empty < 2; empty++) {
        due_id ids[JOBS];
        struct crew_call closer;
        struct shop s = half_read(ids);
        uint32_t read = (uint32_t)lab_stats(&s.lab).restored;
        uint32_t next = read - !empty;

        take_up_to(&s, 0, next, JOBS);
        cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
        crew_call_close(&closer, s.lab.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
        crew_call_asleep(&closer);
        take_up_to(&s, next, read, JOBS);
        crew_call_asleep(&closer);
        cr_assert_not(atomic_load(&closer.thread.back), "%u of %u jobs were read", read, JOBS);
        memory_store_forgive(s.store);
        take_up_to(&s, read, JOBS, JOBS);
        cr_expect_eq(crew_call_answer(&closer), 0);
        cr_expect_eq(memory_disk_jobs(s.disk), 0u);
        shop_close(&s);
    }
}

/* The first job of a page is known, and who has read it goes on when the queue closes. */
struct meanwhile {
    due_queue *_Atomic q;
    atomic_uint told;
    atomic_uint errors; /* that were logged */
};

static void wait_for_close(void *ctx, const due_event *event)
{
    struct meanwhile *m = ctx;

    if (event->kind != DUE_EVENT_RESTORED || atomic_fetch_add(&m->told, 1) > 0)
        return;
    while (atomic_load(&m->q) == NULL || due_topic(atomic_load(&m->q), "") != DUE_ECLOSED)
        crew_sleep(DUE_US(100));
}

static void count_error(void *ctx, enum due_log_level level, const char *text)
{
    struct meanwhile *m = ctx;

    (void)text;
    atomic_fetch_add(&m->errors, level == DUE_LOG_ERROR);
}

static void ignore_discarded(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

/* Behind it the page has a job of a topic that is new to the queue: no reason to say that something
 * is wrong with what is stored. */
Test(stored_loading, a_close_meanwhile_is_no_error_of_the_store, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5);
    struct meanwhile m = { .q = NULL };
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 10 };

    for (int i = 0; i < 100; i++)
        cr_assert_eq(due_enqueue(s.lab.q, &spec, 0, NULL), 0);
    spec.topic = lab_topic(&s.lab, "mail");
    cr_assert_eq(due_enqueue(s.lab.q, &spec, 0, NULL), 0);
    shop_die(&s);
    s.store = memory_store_new(s.disk);
    s.lab = lab_open(.start_ns = 20, .with.store = s.store, .with.on_log = count_error,
                     .with.on_event = wait_for_close, .with.on_discard = ignore_discarded,
                     .with.ctx = &m);
    atomic_store(&m.q, s.lab.q);
    while (atomic_load(&m.told) == 0)
        crew_sleep(DUE_US(100));
    cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    cr_expect_eq(atomic_load(&m.told), 101u, "the page was shown to its end");
    shop_close(&s);
    cr_expect_eq(atomic_load(&m.errors), 0u);
}

/* Who is first in a group is not known before all was read; how many jobs of a topic run is. */
Test(stored_loading, a_limit_lets_jobs_of_its_topic_through_meanwhile, .timeout = 60)
{
    due_id ids[JOBS];
    struct shop s = half_read(ids);
    int mail = lab_topic(&s.lab, "mail");
    due_job first;
    due_job second;

    cr_assert_eq(due_topic_limit(s.lab.q, mail, 1), 0);
    lab_enqueue(&s.lab, "first", .delay_ns = 0, .topic = mail);
    lab_enqueue(&s.lab, "second", .delay_ns = 0, .topic = mail);
    cr_assert_eq(take_leased_from(s.lab.q, &mail, 1, &first, DUE_S(9), DUE_S(30)), 0);
    cr_expect_neq(take_leased_from(s.lab.q, &mail, 1, &second, DUE_S(9), 0), 0);
    cr_expect_eq(due_ack(&first), 0);
    cr_assert_eq(take_leased_from(s.lab.q, &mail, 1, &second, DUE_S(9), DUE_S(30)), 0);
    cr_expect_eq(due_ack(&second), 0);
    finish(&s, 0, JOBS);
}

/* Who reads hears it before anybody has written. */
Test(stored_loading, by_who_is_no_owner_any_more_ends_all_calls, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    struct lab_options with = { .with.size = sizeof(due_options) };
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 5 };

    s.store = memory_store_new(s.disk);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_LOAD, .kind = MEMORY_ANSWER, .answer = DUE_EFENCED });
    with.with.store = s.store;
    s.lab = lab_open_with(&with);
    while (memory_store_calls(s.store, MEMORY_LOAD) == 0 || lab_stats(&s.lab).store_state == 0)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_EFENCED);
    shop_close(&s);
}

/* Whoever waits for a job hears why there may be none; and not any more once all has been read. */
Test(stored_loading, that_does_not_get_on_is_why_nobody_gets_a_job, .timeout = 60)
{
    for (int mode = 0; mode < 2; mode++) {
        struct shop s = { .disk = memory_disk_new(NULL) };
        struct lab_options with = { .kernel = true, .with = { .size = sizeof(due_options) } };
        int rc = DUE_ETIMEDOUT;
        due_job job;

        s.store = memory_store_new(s.disk);
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_LOAD,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = MEMORY_ANSWER,
                                                           .answer = DUE_ECORRUPT });
        with.with.store = s.store;
        with.with.proxies = (enum due_proxies)mode;
        s.lab = lab_open_with(&with);
        for (int i = 0; i < 100 && rc == DUE_ETIMEDOUT; i++)
            rc = due_dequeue(s.lab.q, &job, DUE_MS(50));
        cr_expect_eq(rc, DUE_ECORRUPT, "%s", due_error_name(rc));
        memory_store_forgive(s.store);
        shop_wait_loaded(&s);
        for (int i = 0; i < 100 && rc == DUE_ECORRUPT; i++)
            rc = due_dequeue(s.lab.q, &job, DUE_MS(50));
        cr_expect_eq(rc, DUE_ETIMEDOUT, "%s", due_error_name(rc));
        shop_close(&s);
    }
}
