/* A lease that has ended by the clock, though nobody has come to the lock since: for every call the
 * job waits again, or is dead if that was its last attempt.  On every clock, in every mode, with
 * and without a store, alone and behind more jobs than one tenure moves. */
#include "lab/shop.h"
#include "lab/take.h"

#include "queue/queue.h"

#define LEASE_NS DUE_US(200)

static const enum due_clock_kind kernel_clocks[] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_BOOTTIME,
                                                     DUE_CLOCK_REALTIME };

struct lapsed {
    struct shop s; /* its lab, with or without the rest */
    bool stored;
    due_id id;
};

static const char key[] = "key";

/* Until the clock has passed @ns: a manual one is turned, and nobody looks. */
static void let_pass(struct lab *lab, int64_t ns)
{
    int64_t until = due_now(lab->q) + ns;

    if (lab->clock != NULL)
        lab_advance(lab, ns);
    while (due_now(lab->q) < until)
        ;
}

static void begin_on(struct lapsed *it, bool stored, struct lab_options with, unsigned others,
                     uint32_t attempts)
{
    due_retry limited = { .kind = DUE_RETRY_FIXED, .attempts_max = attempts };
    due_job job;

    it->stored = stored;
    if (stored)
        it->s = shop_new(NULL, with);
    else
        it->s.lab = lab_open_with(&with);
    struct lab *lab = &it->s.lab;
    int rest = others > 0 ? lab_topic(lab, "others") : 0;
    it->id = lab_enqueue(
        lab, "tea", .delay_ns = 0,
        .more = EXTRA(.retry = attempts > 0 ? &limited : NULL, .key = key, .key_len = sizeof key));
    cr_assert_eq(take_leased(lab->q, &job, LEASE_NS, DUE_S(10)), 0);
    for (unsigned i = 0; i < others; i++) /* due before the lease ends, and not looked at either */
        lab_enqueue(lab, "other", .delay_ns = LEASE_NS / 2, .topic = rest);
    let_pass(lab, 2 * LEASE_NS);
    cr_assert_eq(due_ack(&job), DUE_ESTALE);
    /* The worker proxy looks, and with several topics whoever turns the clock: then it may be about
     * to die. */
    if (attempts > 0 && (others > 0 || lab_proxies == DUE_PROXIES_ALWAYS)) {
        while (lab_stats(lab).dead == 0)
            crew_sleep(DUE_US(50));
    }
}

static void end(struct lapsed *it)
{
    if (it->stored)
        shop_close(&it->s);
    else
        lab_close(&it->s.lab);
}

/* On each clock there is, with each store there is. */
static void each(void (*check)(struct lapsed *it), uint32_t attempts)
{
    for (unsigned others = 0; others <= 200; others += 200) {
        struct lapsed it;

        for (int stored = 0; stored < 2; stored++) {
            begin_on(&it, stored != 0, (struct lab_options){ .with.size = sizeof(due_options) },
                     others, attempts);
            check(&it);
            end(&it);
        }
        for (size_t i = 0; i < sizeof kernel_clocks / sizeof kernel_clocks[0]; i++) {
            begin_on(&it, false,
                     (struct lab_options){ .with.size = sizeof(due_options),
                                           .with.clock = kernel_clocks[i],
                                           .kernel = true },
                     others, attempts);
            check(&it);
            end(&it);
        }
        begin_on(&it, true,
                 (struct lab_options){ .with.size = sizeof(due_options), .kernel = true }, others,
                 attempts);
        check(&it);
        end(&it);
    }
}

/* LAB_TEST of one that takes what each() gives it. */
#define LAPSED_TEST(name, attempts)             \
    static void name##_of(struct lapsed *it);   \
    LAB_TEST(lapsed, name)                      \
    {                                           \
        if (lab_proxies == DUE_PROXIES_NEVER)   \
            without_store(name##_of, attempts); \
        else                                    \
            each(name##_of, attempts);          \
    }                                           \
    static void name##_of(struct lapsed *it)

/* A stored queue has its proxies. */
static void without_store(void (*check)(struct lapsed *it), uint32_t attempts)
{
    struct lapsed it;

    for (size_t i = 0; i <= sizeof kernel_clocks / sizeof kernel_clocks[0]; i++) {
        struct lab_options with = { .with.size = sizeof(due_options), .kernel = i > 0 };

        if (i > 0)
            with.with.clock = kernel_clocks[i - 1];
        begin_on(&it, false, with, i % 2 == 0 ? 200 : 0, attempts);
        check(&it);
        end(&it);
    }
}

/* It is had once more, and then no more. */
static void expect_had(struct lapsed *it, const char *text)
{
    struct lab *lab = &it->s.lab;
    due_job job;

    int rc = take_from(lab->q, &(int){ 0 }, 1, &job, DUE_S(10));
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    cr_expect_str_eq(lab_text(lab, &job), text);
    cr_expect_null(lab_dequeue_from(lab, 0));
}

/* Nobody gets it, and nobody is shown it. */
static void expect_gone(struct lapsed *it)
{
    cr_expect_null(lab_dequeue_from(&it->s.lab, 0));
    cr_expect_eq(due_cancel(it->s.lab.q, it->id, NULL), DUE_ENOENT);
}

static unsigned listed(struct lab *lab, due_id id)
{
    uint64_t cursor = 0;
    unsigned n = 0;
    due_info info;

    while (due_list(lab->q, &cursor, &info, 1) == 1)
        n += due_id_equal(info.id, id) != 0;
    return n;
}

LAPSED_TEST(is_found_and_listed_as_due, 0)
{
    struct lab *lab = &it->s.lab;
    int64_t left;
    due_info info;
    due_id id;

    cr_expect_eq(listed(lab, it->id), 1u);
    cr_assert_eq(due_find(lab->q, it->id, &info), 0);
    cr_expect_eq(info.ready, 1);
    cr_assert_eq(due_remaining(lab->q, it->id, &left), 0);
    cr_expect_leq(left, 0);
    cr_assert_eq(due_id_of_key(lab->q, key, sizeof key, &id), 0);
    cr_expect(due_id_equal(id, it->id));
    expect_had(it, "tea");
}

LAPSED_TEST(has_time_left_of_none_at_the_first_look, 0)
{
    int64_t left = 1;

    cr_assert_eq(due_remaining(it->s.lab.q, it->id, &left), 0);
    cr_expect_leq(left, 0);
    expect_had(it, "tea");
}

LAPSED_TEST(is_found_at_the_first_look, 0)
{
    cr_expect_eq(lab_find(&it->s.lab, it->id).ready, 1);
    expect_had(it, "tea");
}

LAPSED_TEST(is_seen_by_a_peek, 0)
{
    due_info info;

    cr_assert_eq(due_peek(it->s.lab.q, &info), 0);
    cr_expect_eq(info.ready, 1);
    expect_had(it, "tea");
}

LAPSED_TEST(is_counted_as_waiting, 0)
{
    struct due_stats s = lab_stats(&it->s.lab);

    cr_expect_eq(s.leased, 0u);
    cr_expect_eq(s.lapsed, 1u);
    cr_expect_geq(s.waiting, 1u);
    cr_expect_eq(s.retried, 1u);
    expect_had(it, "tea");
}

LAPSED_TEST(can_be_cancelled, 0)
{
    cr_expect_eq(due_cancel(it->s.lab.q, it->id, NULL), 0);
    cr_expect_eq(atomic_load(&it->s.lab.state->discarded), 0u);
    expect_gone(it);
}

LAPSED_TEST(comes_back_from_a_cancel, 0)
{
    due_job job;

    cr_assert_eq(due_cancel(it->s.lab.q, it->id, &job), 0);
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(job.failures, 1u);
    cr_expect_str_eq(lab_text(&it->s.lab, &job), "tea");
    expect_gone(it);
}

LAPSED_TEST(can_be_cancelled_with_others, 0)
{
    due_id ids[2] = { it->id, it->id };
    int results[2];

    cr_expect_eq(due_cancel_batch(it->s.lab.q, ids, 2, results), 1);
    cr_expect_eq(results[0], 0);
    cr_expect_eq(results[1], DUE_ENOENT);
    expect_gone(it);
}

LAPSED_TEST(can_be_cancelled_by_its_key, 0)
{
    cr_expect_eq(due_cancel_key(it->s.lab.q, key, sizeof key, NULL), 0);
    expect_gone(it);
}

LAPSED_TEST(can_be_rescheduled, 0)
{
    cr_expect_eq(due_reschedule(it->s.lab.q, it->id, due_now(it->s.lab.q) + DUE_S(1000)), 0);
    cr_expect_null(lab_dequeue_from(&it->s.lab, 0));
    cr_expect_eq(due_promote(it->s.lab.q, it->id), 0);
    expect_had(it, "tea");
}

LAPSED_TEST(can_be_promoted, 0)
{
    cr_expect_eq(due_promote(it->s.lab.q, it->id), 0);
    expect_had(it, "tea");
}

LAPSED_TEST(can_be_updated, 0)
{
    cr_expect_eq(due_update(it->s.lab.q, it->id, "coffee", 6), 0);
    expect_had(it, "coffee");
}

LAPSED_TEST(can_be_amended, 0)
{
    due_spec spec = { DUE_SPEC_INIT, .more = EXTRA(.headers = "milk", .headers_len = 4) };

    cr_expect_eq(due_amend(it->s.lab.q, it->id, &spec, DUE_SET_HEADERS), 0);
    expect_had(it, "tea");
}

LAPSED_TEST(is_cleared, 0)
{
    uint64_t cleared;

    cr_expect_eq(due_clear(it->s.lab.q, 0, &cleared), 0);
    cr_expect_eq(cleared, 1u);
    cr_expect_eq(atomic_load(&it->s.lab.state->discarded), 1u);
    expect_gone(it);
}

/* What is enqueued with its key meets a job that waits. */
static due_id again(struct lapsed *it, enum due_key_policy policy, int64_t delay_ns, int wanted)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "new", .len = 3, .delay_ns = delay_ns,
                      .more = EXTRA(.key = key, .key_len = sizeof key, .on_key = policy) };
    due_id id = { { 0 } };

    int rc = due_enqueue(it->s.lab.q, &spec, 0, &id);
    cr_expect_eq(rc, wanted, "%s", due_error_name(rc));
    return id;
}

LAPSED_TEST(has_its_key, 0)
{
    cr_expect(due_id_equal(again(it, DUE_KEY_REFUSE, 0, DUE_EEXIST), it->id));
    expect_had(it, "tea");
}

LAPSED_TEST(is_replaced_by_its_key, 0)
{
    cr_expect(due_id_equal(again(it, DUE_KEY_REPLACE, 0, 0), it->id));
    expect_had(it, "new");
}

LAPSED_TEST(stays_the_earliest_of_its_key, 0)
{
    cr_expect(due_id_equal(again(it, DUE_KEY_EARLIEST, DUE_S(1000), 0), it->id));
    expect_had(it, "tea");
}

LAPSED_TEST(is_put_off_by_its_key, 0)
{
    cr_expect(due_id_equal(again(it, DUE_KEY_DEBOUNCE, DUE_S(1000), 0), it->id));
    cr_expect_null(lab_dequeue_from(&it->s.lab, 0));
    cr_expect_eq(due_promote(it->s.lab.q, it->id), 0);
    expect_had(it, "new");
}

/* ---- Its last attempt ---- */

LAPSED_TEST(for_the_last_time_can_be_kicked, 1)
{
    cr_expect_eq(due_kick(it->s.lab.q, it->id), 0);
    expect_had(it, "tea");
}

LAPSED_TEST(for_the_last_time_is_kicked_with_all, 1)
{
    uint64_t kicked;

    cr_expect_eq(due_kick_all(it->s.lab.q, DUE_ALL_TOPICS, &kicked), 0);
    cr_expect_eq(kicked, 1u);
    expect_had(it, "tea");
}

LAPSED_TEST(for_the_last_time_is_listed_as_dead, 1)
{
    uint64_t cursor = 0;
    due_dead dead;

    cr_assert_eq(due_list_dead(it->s.lab.q, &cursor, &dead, 1), 1);
    cr_expect(due_id_equal(dead.id, it->id));
    cr_expect_eq(dead.cause, DUE_CAUSE_ATTEMPTS);
    cr_expect_eq(listed(&it->s.lab, it->id), 0u);
}

LAPSED_TEST(for_the_last_time_is_cleared_with_the_dead, 1)
{
    uint64_t cleared;

    cr_expect_eq(due_clear_dead(it->s.lab.q, DUE_ALL_TOPICS, &cleared), 0);
    cr_expect_eq(cleared, 1u);
    expect_gone(it);
}

LAPSED_TEST(for_the_last_time_can_be_cancelled, 1)
{
    cr_expect_eq(due_cancel(it->s.lab.q, it->id, NULL), 0);
    expect_gone(it);
}

/* ---- After a close ---- */

/* Reserved when the queue closes; then the lease ends. */
static void close_reserved(bool stored, struct lab_options with, bool look)
{
    struct lapsed it = { .stored = stored };
    struct lab *lab = &it.s.lab;
    due_job job;

    if (stored)
        it.s = shop_new(NULL, with);
    else
        it.s.lab = lab_open_with(&with);
    lab_enqueue(lab, "tea", .delay_ns = 0);
    cr_assert_eq(take_leased(lab->q, &job, LEASE_NS, DUE_S(10)), 0);
    cr_assert_eq(due_close(lab->q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    let_pass(lab, 2 * LEASE_NS);
    if (look) {
        due_job other;

        cr_expect_eq(due_dequeue(lab->q, &other, 0), DUE_ECLOSED);
        cr_expect_eq(take_leased(lab->q, &other, LEASE_NS, DUE_S(1)), DUE_ECLOSED);
        cr_expect_eq(due_dequeue(lab->q, &other, 0), DUE_ECLOSED);
        struct due_stats s = lab_stats(lab);
        cr_expect_eq(s.leased, 0u);
        cr_expect_eq(s.waiting, 0u);
        cr_expect_eq(stored ? s.kept : s.discarded, 1u);
        cr_expect_eq(atomic_load(&lab->state->discarded), stored ? 0u : 1u);
    }
    cr_expect_eq(due_ack(&job), DUE_ESTALE);
    if (stored)
        cr_expect_eq(memory_disk_jobs(it.s.disk), 1u);
    end(&it);
}

LAB_TEST(lapsed, after_a_close_is_handed_to_nobody)
{
    for (int look = 0; look < 2; look++) {
        close_reserved(false, (struct lab_options){ .with.size = sizeof(due_options) }, look);
        for (size_t i = 0; i < sizeof kernel_clocks / sizeof kernel_clocks[0]; i++)
            close_reserved(false,
                           (struct lab_options){ .with.size = sizeof(due_options),
                                                 .with.clock = kernel_clocks[i],
                                                 .kernel = true },
                           look);
        if (lab_proxies == DUE_PROXIES_NEVER)
            continue;
        close_reserved(true, (struct lab_options){ .with.size = sizeof(due_options) }, look);
        close_reserved(
            true, (struct lab_options){ .with.size = sizeof(due_options), .kernel = true }, look);
    }
}

/* ---- Whether the store is waited for ---- */

static unsigned flushes;

static int count_flush(struct due_queue *q, struct due__deadline *by)
{
    (void)q;
    (void)by;
    flushes++;
    return 0;
}

static void call_find(struct lab *lab, due_id id)
{
    due_info info;

    (void)!due_find(lab->q, id, &info);
}

static void call_read(struct lab *lab, due_id id)
{
    (void)!due_read(lab->q, id, NULL, 0, NULL);
}

static void call_cancel(struct lab *lab, due_id id)
{
    due_cancel(lab->q, id, NULL);
}

static void call_kick(struct lab *lab, due_id id)
{
    due_kick(lab->q, id);
}

static void call_reschedule(struct lab *lab, due_id id)
{
    due_reschedule(lab->q, id, DUE_FOREVER);
}

static void call_update(struct lab *lab, due_id id)
{
    due_update(lab->q, id, "cup", 3);
}

static void call_list(struct lab *lab, due_id id)
{
    uint64_t cursor = 0;
    due_info info;

    (void)id;
    (void)!due_list(lab->q, &cursor, &info, 1);
}

static void call_list_dead(struct lab *lab, due_id id)
{
    uint64_t cursor = 0;
    due_dead dead;

    (void)id;
    (void)!due_list_dead(lab->q, &cursor, &dead, 1);
}

static void call_clear(struct lab *lab, due_id id)
{
    (void)id;
    due_clear(lab->q, DUE_ALL_TOPICS, NULL);
}

static void call_kick_all(struct lab *lab, due_id id)
{
    (void)id;
    due_kick_all(lab->q, DUE_ALL_TOPICS, NULL);
}

/* Where nobody has died there is nothing that the store need know before the call goes on. */
Test(lapsed, is_waited_for_in_the_store_if_somebody_has_died, .timeout = 60)
{
    void (*const calls[])(struct lab *, due_id) = { call_find,    call_read,       call_cancel,
                                                    call_kick,    call_reschedule, call_update,
                                                    call_list,    call_list_dead,  call_clear,
                                                    call_kick_all };

    for (size_t i = 0; i < 2 * sizeof calls / sizeof calls[0]; i++) {
        struct lab lab = lab_open(.kernel = true, .with.proxies = DUE_PROXIES_NEVER);
        const struct due__journal *real = lab.q->journal;
        struct due__journal counts = *real;
        due_retry limited = { .kind = DUE_RETRY_FIXED, .attempts_max = i % 2 };
        due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0, .more = EXTRA(.retry = &limited));
        due_job job;

        counts.flush = count_flush;
        cr_assert_eq(take_leased(lab.q, &job, LEASE_NS, DUE_S(10)), 0);
        let_pass(&lab, 2 * LEASE_NS);
        lab.q->journal = &counts;
        flushes = 0;
        calls[i / 2](&lab, id);
        cr_expect_eq(flushes > 0, i % 2, "call %zu: %u", i / 2, flushes);
        lab.q->journal = real;
        due_job_done(&job);
        lab_close(&lab);
    }
}
