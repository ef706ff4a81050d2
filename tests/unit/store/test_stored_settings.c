/* What holds back topics of a queue that one process owns: it is stored, and whoever has the queue
 * next goes by it, an owner or those who share it.
 */
#include "lab/redis/shared_both.h"

#include "lab/take.h"
#include "queue/queue.h"
#include "store/sender.h"

#define WAIT_NS DUE_S(20)

/* One of the topic's is there, and is got. */
static due_job await_of(struct shop *s, int topic)
{
    due_job job = { 0 };
    int rc = take_leased_from(s->lab.q, &topic, 1, &job, DUE_S(600), WAIT_NS);

    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    return job;
}

/* None of it comes; whoever shares a queue has to ask more than once. */
static void none_of(struct shop *s, int topic, const char *when)
{
    for (int i = 0; i < 20; i++) {
        due_job job;
        int rc = take_leased_from(s->lab.q, &topic, 1, &job, DUE_S(600), 0);

        cr_expect_eq(rc, DUE_EAGAIN, "%s: %s", when, due_error_name(rc));
        crew_sleep(DUE_US(200));
    }
}

static void reopen(struct shop *s, bool shares)
{
    lab_close(&s->lab);
    shop_open(s, as(shares));
}

static void put_some(struct shop *s, const char *topic, size_t n)
{
    int number = lab_topic(&s->lab, topic);

    for (size_t i = 0; i < n; i++)
        lab_enqueue(&s->lab, topic, .at_ns = (int64_t)(1 + i % 100), .topic = number);
}

/* ---- What the next one goes by --------------------------------------------------------------- */

/* The pause is made by an owner or a sharer, and holds for each that comes after. */
static void pause_by_turns(enum where where, bool first_shares, size_t n, bool crash)
{
    struct shop s = shop_new(where, as(first_shares));
    int mail = lab_topic(&s.lab, "mail");

    put_some(&s, "mail", n);
    put_some(&s, "post", 1);
    cr_assert_eq(due_pause(s.lab.q, mail), 0);
    for (int turn = 0; turn < 4; turn++) {
        bool shares = first_shares != (turn % 2 == 0);

        none_of(&s, lab_topic(&s.lab, "mail"), "paused");
        due_job job = await_of(&s, lab_topic(&s.lab, "post"));
        cr_expect_eq(due_snooze(&job, 0), 0, "others go on");
        if (crash)
            shop_crash(&s, as(shares));
        else
            reopen(&s, shares);
    }
    cr_expect_eq(due_resume(s.lab.q, lab_topic(&s.lab, "mail")), 0);
    for (int turn = 0; turn < 3; turn++) {
        due_job job = await_of(&s, lab_topic(&s.lab, "mail"));

        cr_expect_eq(due_snooze(&job, 0), 0);
        reopen(&s, turn % 2 == 0);
    }
    shop_close(&s);
}

BOTH_TEST(stored_settings, a_pause_of_an_owner_holds_for_all_who_come_after)
{
    pause_by_turns(where, false, 10, false);
}

BOTH_TEST(stored_settings, a_pause_of_a_sharer_holds_for_all_who_come_after)
{
    pause_by_turns(where, true, 10, false);
}

BOTH_TEST(stored_settings, a_pause_holds_after_crashes_and_for_ten_thousand_jobs)
{
    pause_by_turns(where, false, 10000, true);
}

/* So many run at a time, whoever has set it. */
static void limit_by_turns(enum where where, bool first_shares)
{
    struct shop s = shop_new(where, as(first_shares));
    due_job jobs[3];

    put_some(&s, "mail", 11);
    cr_assert_eq(due_topic_limit(s.lab.q, lab_topic(&s.lab, "mail"), 2), 0);
    for (int turn = 0; turn < 4; turn++) {
        int mail = lab_topic(&s.lab, "mail");

        jobs[0] = await_of(&s, mail);
        jobs[1] = await_of(&s, mail);
        none_of(&s, mail, "two run");
        cr_expect_eq(due_ack(&jobs[0]), 0);
        jobs[2] = await_of(&s, mail);
        none_of(&s, mail, "two run again");
        cr_expect_eq(due_ack(&jobs[1]), 0);
        cr_expect_eq(due_snooze(&jobs[2], 0), 0);
        reopen(&s, first_shares != (turn % 2 == 0));
    }
    cr_expect_eq(due_topic_limit(s.lab.q, lab_topic(&s.lab, "mail"), 0), 0);
    reopen(&s, !first_shares);
    for (int i = 0; i < 3; i++)
        jobs[i] = await_of(&s, lab_topic(&s.lab, "mail"));
    for (int i = 0; i < 3; i++)
        cr_expect_eq(due_ack(&jobs[i]), 0);
    shop_close(&s);
}

BOTH_TEST(stored_settings, a_limit_of_an_owner_holds_for_all_who_come_after)
{
    limit_by_turns(where, false);
}

BOTH_TEST(stored_settings, a_limit_of_a_sharer_holds_for_all_who_come_after)
{
    limit_by_turns(where, true);
}

/* Of one topic each says its own, and the other stays. */
BOTH_TEST(stored_settings, a_pause_and_a_limit_do_not_forget_each_other)
{
    struct shop s = shop_new(where, as_owner());
    due_job job;

    put_some(&s, "mail", 5);
    cr_expect_eq(due_topic_limit(s.lab.q, lab_topic(&s.lab, "mail"), 1), 0);
    cr_expect_eq(due_pause(s.lab.q, lab_topic(&s.lab, "mail")), 0);
    cr_expect_eq(due_topic_limit(s.lab.q, 0, SIZE_MAX), 0);
    reopen(&s, false);
    none_of(&s, lab_topic(&s.lab, "mail"), "paused");
    cr_expect_eq(due_resume(s.lab.q, lab_topic(&s.lab, "mail")), 0);
    reopen(&s, false);
    job = await_of(&s, lab_topic(&s.lab, "mail"));
    none_of(&s, lab_topic(&s.lab, "mail"), "one runs");
    cr_expect_eq(due_ack(&job), 0);
    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    job = await_of(&s, 0);
    cr_expect_eq(due_ack(&job), 0);
    shop_close(&s);
}

/* Also of topics that nobody has named since the queue was opened; more than a batch has. */
BOTH_TEST(stored_settings, all_topics_are_paused_and_resumed)
{
    struct shop s = shop_new(where, as_owner());
    char name[16];

    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "t%d", i);
        put_some(&s, name, 1);
    }
    reopen(&s, false);
    cr_expect_eq(due_pause(s.lab.q, DUE_ALL_TOPICS), 0);
    for (int turn = 0; turn < 2; turn++) {
        due_job job;

        for (int i = 0; i < 20; i++)
            cr_expect_eq(lab_reserve(&s.lab, &job, LEASE), DUE_EAGAIN);
        reopen(&s, turn == 0);
    }
    cr_expect_eq(due_resume(s.lab.q, DUE_ALL_TOPICS), 0);
    reopen(&s, false);
    for (int i = 0; i < 600; i++) {
        due_job job = reserve(&s);

        cr_expect_eq(due_ack(&job), 0);
    }
    shop_close(&s);
}

/* A server knows its topics, also those that have no job just now. */
BOTH_TEST(stored_settings, all_topics_are_those_without_a_job_too)
{
    struct shop s = shop_new(where, as_owner());

    if (where == IN_REDIS) {
        put_some(&s, "mail", 1);
        due_job job = await_of(&s, lab_topic(&s.lab, "mail"));
        cr_expect_eq(due_ack(&job), 0);
        reopen(&s, false);
        cr_expect_eq(due_pause(s.lab.q, DUE_ALL_TOPICS), 0);
        reopen(&s, false);
        put_some(&s, "mail", 1);
        none_of(&s, lab_topic(&s.lab, "mail"), "paused");
    }
    shop_close(&s);
}

/* On a clock of the kernel, and when calls need not wait for the store. */
static void with_options(enum where where, struct lab_options with)
{
    struct shop s = shop_new(where, with);
    int mail = lab_topic(&s.lab, "mail");

    lab_enqueue(&s.lab, "tea", .topic = mail);
    cr_expect_eq(due_pause(s.lab.q, mail), 0);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    shop_crash(&s, with);
    mail = lab_topic(&s.lab, "mail");
    lab_enqueue(&s.lab, "tea", .topic = mail);
    none_of(&s, mail, "paused");
    cr_expect_eq(due_resume(s.lab.q, mail), 0);
    for (int i = 0; i < 2; i++) {
        due_job job = await_of(&s, mail);

        cr_expect_eq(due_ack(&job), 0);
    }
    cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    shop_close(&s);
}

BOTH_TEST(stored_settings, they_hold_on_a_clock_of_the_kernel)
{
    with_options(where, (struct lab_options){ .kernel = true });
}

BOTH_TEST(stored_settings, they_hold_where_calls_do_not_wait_for_the_store)
{
    with_options(where,
                 (struct lab_options){ .start_ns = THEN, .with.confirm = DUE_CONFIRM_ASYNC });
}

BOTH_TEST(stored_settings, they_hold_by_priority)
{
    with_options(where, (struct lab_options){ .start_ns = THEN, .with.order = DUE_ORDER_PRIORITY });
}

/* ---- When the store does not do as it is told ------------------------------------------------ */

/* A full store takes no jobs; but what fills it has to be held back, and let go. */
BOTH_TEST(stored_settings, a_full_server_takes_them)
{
    struct shop s = shop_new(where, as_owner());
    int mail = lab_topic(&s.lab, "mail");
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 5 };

    if (where == IN_REDIS) {
        put_some(&s, "mail", 3);
        shop_fill(&s, true);
        cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_ENOSPC);
        cr_expect_eq(due_pause(s.lab.q, mail), 0);
        none_of(&s, mail, "paused");
        cr_expect_eq(due_topic_limit(s.lab.q, mail, 1), 0);
        cr_expect_eq(due_resume(s.lab.q, mail), 0);
        cr_expect_eq(due_pause(s.lab.q, DUE_ALL_TOPICS), 0);
        shop_fill(&s, false);
        reopen(&s, true);
        none_of(&s, lab_topic(&s.lab, "mail"), "paused");
    }
    shop_close(&s);
}

/* It has forgotten all: they are told again, with the jobs. */
BOTH_TEST(stored_settings, after_a_loss_they_are_told_again)
{
    struct shop s = shop_new(where, as_owner());
    int mail = lab_topic(&s.lab, "mail");
    int post = lab_topic(&s.lab, "post");

    put_some(&s, "mail", 3);
    put_some(&s, "post", 3);
    cr_expect_eq(due_pause(s.lab.q, mail), 0);
    cr_expect_eq(due_topic_limit(s.lab.q, post, 1), 0);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    shop_lose(&s);
    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    cr_expect_eq(due__commit_mended(s.lab.q, due__monotonic_now() + DUE_S(30)), 0);
    shop_crash(&s, as_owner());
    none_of(&s, lab_topic(&s.lab, "mail"), "paused");
    due_job job = await_of(&s, lab_topic(&s.lab, "post"));
    none_of(&s, lab_topic(&s.lab, "post"), "one runs");
    cr_expect_eq(due_ack(&job), 0);
    job = await_of(&s, 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(shop_stored(&s), 5u);
    shop_close(&s);
}

/* ---- In memory, where it can be made to fail ------------------------------------------------- */

static void fail(struct shop *s, enum memory_verb verb, uint64_t times, enum memory_fault_kind kind,
                 int answer)
{
    memory_store_fault(
        s->store,
        (struct memory_fault){ .verb = verb, .times = times, .kind = kind, .answer = answer });
}

static bool is_paused(struct shop *s, const char *topic)
{
    return memory_disk_setting(s->disk, topic, NULL);
}

/* What is refused has changed nothing, here and there. */
Test(stored_settings, what_is_refused_has_changed_nothing, .timeout = 60)
{
    static const int refusals[] = { DUE_EACCES, DUE_ENOSPC, DUE_EDURABILITY };

    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct shop s = shop_new(IN_MEMORY, as_owner());
        int mail = lab_topic(&s.lab, "mail");

        put_some(&s, "mail", 2);
        fail(&s, MEMORY_COMMIT, 2, MEMORY_ANSWER, refusals[i]);
        cr_expect_eq(due_pause(s.lab.q, mail), refusals[i]);
        cr_expect_eq(due_topic_limit(s.lab.q, mail, 1), refusals[i]);
        due_job one = await_of(&s, mail);
        due_job two = await_of(&s, mail);
        cr_expect(!is_paused(&s, "mail"));
        cr_expect_eq(due_ack(&one), 0);
        cr_expect_eq(due_ack(&two), 0);
        cr_expect_eq(due_pause(s.lab.q, mail), 0);
        fail(&s, MEMORY_COMMIT, 1, MEMORY_ANSWER, refusals[i]);
        cr_expect_eq(due_resume(s.lab.q, mail), refusals[i]);
        cr_expect(is_paused(&s, "mail"));
        put_some(&s, "mail", 1);
        none_of(&s, mail, "still paused");
        shop_close(&s);
    }
}

/* Away: who has no more time takes it back, and nothing comes of it later. */
Test(stored_settings, what_was_not_sent_in_time_is_taken_back, .timeout = 60)
{
    struct lab_options with = as_owner();

    with.with.store_timeout_ns = DUE_MS(50);
    struct shop s = shop_new(IN_MEMORY, with);
    int mail = lab_topic(&s.lab, "mail");

    put_some(&s, "mail", 1);
    fail(&s, MEMORY_READY, MEMORY_ALWAYS, MEMORY_AWAY, 0);
    cr_expect_eq(due_pause(s.lab.q, mail), DUE_ETIMEDOUT);
    cr_expect_eq(due_pause(s.lab.q, DUE_ALL_TOPICS), DUE_ETIMEDOUT);
    memory_store_forgive(s.store);
    due_job job = await_of(&s, mail);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect(!is_paused(&s, "mail"));
    shop_close(&s);
}

/* Sent, and no answer: the caller is told so, and what lands takes effect. */
static void in_doubt(enum memory_fault_kind kind)
{
    struct lab_options with = as_owner();

    with.with.store_timeout_ns = DUE_MS(50);
    struct shop s = shop_new(IN_MEMORY, with);
    int mail = lab_topic(&s.lab, "mail");

    put_some(&s, "mail", 1);
    fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, kind, 0);
    cr_expect_eq(due_pause(s.lab.q, mail), DUE_EINDOUBT);
    memory_store_forgive(s.store);
    while (!is_paused(&s, "mail"))
        crew_sleep(DUE_MS(1));
    lab_enqueue(&s.lab, "tea", .at_ns = 5); /* behind it, so it has taken effect */
    none_of(&s, mail, "paused");
    shop_close(&s);
}

Test(stored_settings, what_was_in_doubt_and_had_landed_takes_effect, .timeout = 60)
{
    in_doubt(MEMORY_DOUBT_LANDED);
}

Test(stored_settings, what_was_in_doubt_and_lands_later_takes_effect, .timeout = 60)
{
    in_doubt(MEMORY_DOUBT_NOT);
}

/* Lost before the answer: it is told once more, and the caller hears of that. */
Test(stored_settings, what_is_lost_on_its_way_is_told_again, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, as_owner());
    int mail = lab_topic(&s.lab, "mail");

    put_some(&s, "mail", 1);
    fail(&s, MEMORY_COMMIT, 1, MEMORY_DOUBT_LANDED, 0);
    memory_store_fault(
        s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                        .call = memory_store_calls(s.store, MEMORY_COMMIT) + 2,
                                        .kind = MEMORY_LOSE,
                                        .count = SIZE_MAX });
    cr_expect_eq(due_pause(s.lab.q, mail), 0);
    cr_expect_eq(due__commit_mended(s.lab.q, due__monotonic_now() + DUE_S(30)), 0);
    cr_expect(is_paused(&s, "mail"));
    none_of(&s, mail, "paused");
    cr_expect_eq(shop_stored(&s), 1u);
    shop_close(&s);
}

Test(stored_settings, who_is_fenced_holds_back_nothing, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, as_owner());
    int mail = lab_topic(&s.lab, "mail");

    memory_disk_fence(s.disk);
    cr_expect_eq(due_pause(s.lab.q, mail), DUE_EFENCED);
    cr_expect_eq(due_topic_limit(s.lab.q, mail, 1), DUE_EFENCED);
    cr_expect(!is_paused(&s, "mail"));
    shop_close(&s);
}

Test(stored_settings, topics_that_are_not_there_are_refused, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, as_owner());
    uint64_t batches = memory_disk_batches(s.disk);

    cr_expect_eq(due_pause(s.lab.q, 7), DUE_EINVAL);
    cr_expect_eq(due_resume(s.lab.q, -5), DUE_EINVAL);
    cr_expect_eq(due_topic_limit(s.lab.q, 7, 1), DUE_EINVAL);
    cr_expect_eq(due_topic_limit(s.lab.q, DUE_ALL_TOPICS, 1), DUE_EINVAL);
    cr_expect_eq(memory_disk_batches(s.disk), batches);
    shop_close(&s);
}

/* It is read before any job is. */
Test(stored_settings, no_job_comes_before_they_are_known, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, as_owner());

    put_some(&s, "mail", 3);
    cr_expect_eq(due_pause(s.lab.q, lab_topic(&s.lab, "mail")), 0);
    lab_close(&s.lab);
    s.store = shop_store(&s);
    fail(&s, MEMORY_TOPICS, 3, MEMORY_AWAY, 0);
    struct lab_options with = as_owner();
    with.with.size = sizeof(due_options);
    with.with.store = s.store;
    s.lab = lab_open_with(&with);
    cr_expect_eq(memory_store_calls(s.store, MEMORY_TOPICS), 4u);
    cr_expect(due__topic_at(s.lab.q, (uint32_t)lab_topic(&s.lab, "mail"))->paused);
    none_of(&s, lab_topic(&s.lab, "mail"), "paused");
    shop_close(&s);
}

/* Topics that are known by their jobs only are known once all have been read. */
Test(stored_settings, all_topics_are_those_that_are_yet_to_be_read_too, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, as_owner());

    put_some(&s, "mail", 3);
    lab_close(&s.lab);
    s.store = shop_store(&s);
    fail(&s, MEMORY_LOAD, 3, MEMORY_AWAY, 0);
    struct lab_options with = as_owner();
    with.with.size = sizeof(due_options);
    with.with.store = s.store;
    s.lab = lab_open_with(&with);
    cr_expect_eq(due_pause(s.lab.q, DUE_ALL_TOPICS), 0);
    cr_expect(is_paused(&s, "mail"));
    none_of(&s, lab_topic(&s.lab, "mail"), "paused");
    shop_close(&s);
}

/* If it cannot be read the queue is not opened, and the store is as it was. */
Test(stored_settings, an_opening_that_cannot_read_them_fails, .timeout = 60)
{
    static const int answers[] = { DUE_EACCES, DUE_ECORRUPT, DUE_EAGAIN, DUE_EFENCED };
    static const int told[] = { DUE_EACCES, DUE_ECORRUPT, DUE_ESTORE, DUE_EBUSY };

    for (size_t i = 0; i < 4; i++) {
        struct shop s = shop_new(IN_MEMORY, as_owner());
        due_error error = { "", "" };
        struct flaky flaky;
        due_queue *q = NULL;

        put_some(&s, "mail", 1);
        lab_close(&s.lab);
        s.store = shop_store(&s);
        flaky_init(&flaky, FLAKY_NEVER);
        fail(&s, MEMORY_TOPICS, MEMORY_ALWAYS, MEMORY_ANSWER, answers[i]);
        due_options o = { DUE_OPTIONS_INIT, .store = s.store, .store_timeout_ns = DUE_MS(20),
                          .allocator = &flaky.hooks };
        cr_expect_eq(due_open(&q, &o, &error), told[i]);
        cr_expect_eq(atomic_load(&flaky.live), 0u, "%zu: it has left memory behind", i);
        cr_expect_eq(atomic_load(&flaky.bad), 0u);
        cr_expect_not_null(strstr(error.text, "pauses"), "%s", error.text);
        s.store->verbs->free(s.store);
        shop_open(&s, as_owner());
        cr_expect_eq(shop_stored(&s), 1u);
        shop_close(&s);
    }
}

/* The store says once that it has lost something: also if that is when they are read. */
Test(stored_settings, a_loss_that_is_told_by_the_first_look_is_heard, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, as_owner());

    put_some(&s, "mail", 3);
    cr_expect_eq(due_pause(s.lab.q, lab_topic(&s.lab, "mail")), 0);
    lab_close(&s.lab);
    s.store = shop_store(&s);
    fail(&s, MEMORY_TOPICS, 1, MEMORY_ANSWER, DUE_ELOST);
    struct lab_options with = as_owner();
    with.with.size = sizeof(due_options);
    with.with.store = s.store;
    s.lab = lab_open_with(&with);
    cr_expect_eq(due__commit_mended(s.lab.q, due__monotonic_now() + DUE_S(30)), 0);
    while (lab_stats(&s.lab).loading)
        crew_sleep(DUE_MS(1));
    none_of(&s, lab_topic(&s.lab, "mail"), "paused");
    cr_expect_eq(shop_stored(&s), 3u);
    shop_close(&s);
}

/* ---- A store that was built against an older header ------------------------------------------ */

Test(stored_settings, on_an_older_store_they_are_kept_in_memory, .timeout = 60)
{
    struct shop s = shop_new(IN_MEMORY, as_owner());

    lab_close(&s.lab);
    for (int life = 0; life < 2; life++) {
        struct lab_options with = as_owner();

        s.store = memory_store_old(s.disk);
        with.with.size = sizeof(due_options);
        with.with.store = s.store;
        s.lab = lab_open_with(&with);
        int mail = lab_topic(&s.lab, "mail");
        uint64_t batches = memory_disk_batches(s.disk);
        cr_expect_eq(due_pause(s.lab.q, mail), 0);
        cr_expect_eq(due_topic_limit(s.lab.q, mail, 1), 0);
        cr_expect_eq(memory_disk_batches(s.disk), batches);
        put_some(&s, "mail", 2);
        none_of(&s, mail, "paused");
        cr_expect_eq(due_resume(s.lab.q, mail), 0);
        due_job job = await_of(&s, mail);
        none_of(&s, mail, "one runs");
        cr_expect_eq(due_ack(&job), 0);
        cr_expect_eq(due_pause(s.lab.q, mail), 0);
        if (life == 0)
            lab_close(&s.lab);
    }
    shop_close(&s);
}

static int opened_with(size_t size, size_t change_size)
{
    struct shop s = shop_new(IN_MEMORY, as_owner());
    due_queue *q = NULL;

    lab_close(&s.lab);
    s.store = shop_store(&s);
    struct due_store_verbs verbs = *s.store->verbs;
    verbs.size = size;
    verbs.change_size = change_size;
    s.store->verbs = &verbs;
    due_options o = { DUE_OPTIONS_INIT, .store = s.store };
    int rc = due_open(&q, &o, NULL);
    if (rc == 0) {
        cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)), 0);
        cr_expect_eq(due_free(q), 0);
    } else {
        s.store->verbs->free(s.store);
    }
    memory_disk_free(s.disk);
    return rc;
}

Test(stored_settings, a_store_that_reads_changes_otherwise_is_refused, .timeout = 60)
{
    size_t whole = sizeof(struct due_store_verbs);
    size_t older = offsetof(struct due_store_verbs, change_size);

    cr_expect_eq(opened_with(whole, sizeof(due_change)), 0);
    cr_expect_eq(opened_with(whole, 0), 0, "it does not say");
    cr_expect_eq(opened_with(whole, sizeof(due_change) - 8), DUE_EINVAL);
    cr_expect_eq(opened_with(whole, sizeof(due_change) + 8), DUE_EINVAL);
    cr_expect_eq(opened_with(whole + 64, sizeof(due_change)), 0, "a newer one has more verbs");
    cr_expect_eq(opened_with(older, 1), 0, "an older one says nothing there");
    cr_expect_eq(opened_with(older - 1, sizeof(due_change)), DUE_EINVAL);
}
