/* How much a queue holds, and who has it open: in memory, owned and shared. */
#include <limits.h>
#include <math.h>
#include <unistd.h>

#include "due/metrics.h"
#include "lab/exposition.h"
#include "lab/mall.h"

#define LONG DUE_S(10) /* more than a store that answers ever takes */

static struct due_queue_census census_of(due_queue *q, int topic)
{
    struct due_queue_census c;

    memset(&c, 0xa5, sizeof c);
    cr_assert_eq(due_census(q, topic, &c, LONG), 0);
    for (size_t i = 0; i < sizeof c.reserved / sizeof c.reserved[0]; i++)
        cr_expect_eq(c.reserved[i], 0u);
    return c;
}

static void expect(struct due_queue_census c, uint64_t delayed, uint64_t ready, uint64_t leased,
                   uint64_t dead, int64_t oldest_ns)
{
    cr_expect(c.delayed == delayed && c.ready == ready && c.leased == leased && c.dead == dead,
              "%llu delayed, %llu ready, %llu leased, %llu dead", (unsigned long long)c.delayed,
              (unsigned long long)c.ready, (unsigned long long)c.leased,
              (unsigned long long)c.dead);
    cr_expect_eq(c.oldest_ns, oldest_ns);
}

/* One dead, one leased, two ready of "a"; one delayed and one ready of "b".  The leased one. */
static due_job fill(struct lab *lab, int a, int b)
{
    due_job job;

    lab_enqueue(lab, "dies", .at_ns = 1, .topic = a);
    lab_enqueue(lab, "held", .at_ns = 2, .topic = a);
    cr_assert_eq(due_reserve(lab->q, &job, LONG), 0);
    cr_assert_eq(due_bury(&job, "no good"), 0);
    cr_assert_eq(due_reserve(lab->q, &job, LONG), 0);
    lab_enqueue(lab, "one", .at_ns = 3, .topic = a);
    lab_enqueue(lab, "two", .at_ns = 4, .topic = a);
    lab_enqueue(lab, "later", .at_ns = 5000, .topic = b);
    lab_enqueue(lab, "due", .at_ns = 6, .topic = b);
    return job;
}

static void expect_filled(due_queue *q, int a, int b, int64_t now_ns)
{
    struct due_queue_census all = census_of(q, DUE_ALL_TOPICS);

    expect(all, 1, 3, 1, 1, 3);
    cr_expect_eq(all.now_ns, now_ns);
    cr_expect_leq(all.head_ns, 3);
    expect(census_of(q, a), 0, 2, 1, 1, 3);
    expect(census_of(q, b), 1, 1, 0, 1, 6);
}

LAB_TEST(census, of_a_queue_in_memory_counts_each_state)
{
    struct lab lab = lab_open(.start_ns = 100, .with.lease_ns = 1000);
    int a = due_topic(lab.q, "a");
    int b = due_topic(lab.q, "b");

    expect(census_of(lab.q, DUE_ALL_TOPICS), 0, 0, 0, 0, DUE_FOREVER);
    cr_expect_eq(census_of(lab.q, a).head_ns, DUE_FOREVER);
    due_job job = fill(&lab, a, b);
    expect_filled(lab.q, a, b, 100);
    cr_expect_eq(census_of(lab.q, a).processes, 1u);
    cr_expect_eq(due_ack(&job), 0);
    expect(census_of(lab.q, a), 0, 2, 0, 1, 3);
    lab_close(&lab);
}

LAB_TEST(census, counts_a_lease_that_has_ended_as_ready)
{
    struct lab lab = lab_open(.start_ns = 100, .with.lease_ns = 1000);
    int a = due_topic(lab.q, "a");
    due_job job;

    lab_enqueue(&lab, "tea", .at_ns = 1, .topic = a);
    cr_assert_eq(due_reserve(lab.q, &job, 0), 0);
    lab_turn_to(&lab, 1100);
    expect(census_of(lab.q, a), 0, 1, 0, 0, 1100);
    expect(census_of(lab.q, DUE_ALL_TOPICS), 0, 1, 0, 0, 1100);
    due_job_done(&job);
    lab_close(&lab);
}

LAB_TEST(census, counts_every_job_of_a_topic)
{
    struct lab lab = lab_open(.start_ns = 100);
    int a = due_topic(lab.q, "a");

    for (int i = 0; i < 1000; i++)
        lab_enqueue(&lab, "tea", .at_ns = 1 + i % 200, .topic = a);
    expect(census_of(lab.q, a), 500, 500, 0, 0, 1);
    lab_close(&lab);
}

LAB_TEST(census, answers_what_is_wrong_and_writes_nothing)
{
    struct lab lab = lab_open(.start_ns = 100);
    struct due_queue_census c = { .delayed = 7 };
    uint64_t cursor = 0;
    due_process p = { .pid = 7 };

    cr_expect_eq(due_census(lab.q, 3, &c, LONG), DUE_EINVAL);
    cr_expect_eq(due_census(lab.q, -2, &c, LONG), DUE_EINVAL);
    cr_expect_eq(due_census(lab.q, 0, &c, -1), DUE_EINVAL);
    cr_expect_eq(due_processes(lab.q, &cursor, &p, 0, LONG), DUE_EINVAL);
    cr_expect_eq(due_processes(lab.q, &cursor, &p, (size_t)INT_MAX + 1, LONG), DUE_EINVAL);
    cr_expect_eq(due_processes(lab.q, &cursor, &p, 1, -1), DUE_EINVAL);
    cr_expect(c.delayed == 7 && p.pid == 7 && cursor == 0);
    cr_expect_eq(due_census(lab.q, DUE_ALL_TOPICS, &c, 0), 0, "nothing is waited for");
    lab_close(&lab);
}

LAB_TEST(processes, of_a_queue_that_is_not_shared_are_this_one)
{
    struct lab lab = lab_open(.start_ns = 100, .with.lease_ns = 1000);
    due_process p[2];
    uint64_t cursor = 0;
    due_job job;

    lab_enqueue(&lab, "tea", .at_ns = 1);
    cr_assert_eq(due_reserve(lab.q, &job, 0), 0);
    cr_assert_eq(due_processes(lab.q, &cursor, p, 2, 0), 1);
    cr_expect(p[0].number == 0 && p[0].pid == getpid() && p[0].self == 1 && p[0].held == 1);
    cr_expect(p[0].waits == 0 && p[0].seen_ns == 100 && p[0].host[0] != '\0');
    cr_expect_eq(due_processes(lab.q, &cursor, p, 2, 0), 0);
    cr_expect_eq(due_ack(&job), 0);
    struct crew_call c;
    crew_call_reserve(&c, lab.q, NULL, 0, 100, DUE_FOREVER);
    crew_call_asleep(&c);
    cursor = 0;
    cr_assert_eq(due_processes(lab.q, &cursor, p, INT_MAX, 0), 1);
    cr_expect(p[0].waits == 1 && p[0].held == 0);
    lab_enqueue(&lab, "tea", .at_ns = 1);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(due_ack(&c.job), 0);
    lab_close(&lab);
}

/* ---- Owned ---- */

Test(census, of_an_owned_queue_counts_each_state_also_after_it_was_read, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);

    for (int life = 0; life < 2; life++) {
        struct lab lab =
            lab_open(.start_ns = 100, .with.store = memory_store_new(disk), .with.lease_ns = 1000);
        int a = due_topic(lab.q, "a");
        int b = due_topic(lab.q, "b");

        if (life == 0) {
            due_job job = fill(&lab, a, b);
            expect_filled(lab.q, a, b, 100);
            due_job_done(&job);
        } else {
            expect(census_of(lab.q, a), 0, 3, 0, 1, 2); /* what was held is there again */
        }
        lab_close(&lab);
    }
    memory_disk_free(disk);
}

Test(census, waits_no_longer_than_it_may_for_a_store_that_is_still_read, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    struct memory_limiter *gate = memory_limiter_new(disk);
    struct due_queue_census c;

    memory_store_fault(store,
                       (struct memory_fault){
                           .verb = MEMORY_LOAD, .call = 1, .kind = MEMORY_BLOCK, .limiter = gate });
    struct lab lab = lab_open(.start_ns = 100, .with.store = store);
    cr_expect_eq(due_census(lab.q, DUE_ALL_TOPICS, &c, 0), DUE_EAGAIN);
    cr_expect_eq(due_census(lab.q, DUE_ALL_TOPICS, &c, DUE_MS(1)), DUE_ETIMEDOUT);
    memory_limiter_open(gate);
    cr_expect_eq(due_census(lab.q, DUE_ALL_TOPICS, &c, LONG), 0);
    lab_close(&lab);
    memory_limiter_free(gate);
    memory_disk_free(disk);
}

/* ---- Shared ---- */

MALL_TEST(census, of_a_shared_queue_is_the_same_for_all)
{
    struct mall m = mall_make(2);
    int a = due_topic(m.lab[0].q, "a");
    int b = due_topic(m.lab[0].q, "b");

    mall_turn_to(&m, 100);
    due_job job = fill(&m.lab[0], a, b);
    expect_filled(m.lab[0].q, a, b, 100);
    struct due_queue_census all = census_of(m.lab[1].q, DUE_ALL_TOPICS);
    expect(all, 1, 3, 1, 1, 3);
    cr_expect_eq(all.processes, 2u);
    const char *first = due_topic_name(m.lab[1].q, 1);
    const char *second = due_topic_name(m.lab[1].q, 2);
    cr_assert(first != NULL && second != NULL, "they have numbers here now");
    bool same = strcmp(first, "a") == 0;
    expect_filled(m.lab[1].q, same ? 1 : 2, same ? 2 : 1, 100);
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
}

MALL_TEST(census, of_a_shared_queue_waits_for_the_store_and_for_nothing_else)
{
    struct mall m = mall_make(1);
    struct due_queue_census c = { .delayed = 7 };
    due_process p = { .pid = 7 };
    uint64_t cursor = 0;

    cr_expect_eq(due_census(m.lab[0].q, DUE_ALL_TOPICS, &c, 0), DUE_EAGAIN);
    cr_expect_eq(due_processes(m.lab[0].q, &cursor, &p, 1, 0), DUE_EAGAIN);
    memory_store_fault(m.store[0], (struct memory_fault){ .verb = MEMORY_CENSUS,
                                                          .times = MEMORY_ALWAYS,
                                                          .kind = MEMORY_AWAY });
    cr_expect_eq(due_census(m.lab[0].q, DUE_ALL_TOPICS, &c, DUE_MS(5)), DUE_ETIMEDOUT);
    cr_expect(c.delayed == 7 && p.pid == 7 && cursor == 0);
    mall_close(&m);
}

MALL_TEST(processes, of_a_shared_queue_are_listed_in_pages)
{
    struct mall m = mall_make(4);
    due_process p[4];
    uint64_t cursor = 0;
    uint64_t last = 0;
    int selves = 0;
    int seen = 0;
    int n;

    while ((n = due_processes(m.lab[2].q, &cursor, p, 3, LONG)) > 0) {
        cr_expect_eq(n, seen == 0 ? 3 : 1);
        for (int i = 0; i < n; i++, seen++) {
            cr_expect_gt(p[i].number, last);
            cr_expect(p[i].pid == getpid() && p[i].host[0] != '\0');
            last = p[i].number;
            selves += p[i].self;
        }
    }
    cr_expect(n == 0 && seen == 4 && selves == 1, "%d: %d, %d", n, seen, selves);
    mall_close(&m);
}

MALL_TEST(processes, of_a_shared_queue_say_who_holds_and_who_waits)
{
    struct mall m = mall_make(2);
    due_process p[4];
    uint64_t cursor = 0;
    struct crew_call c;
    due_job job;

    lab_enqueue(&m.lab[0], "tea", .at_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 1000), 0);
    crew_call_reserve(&c, m.lab[1].q, NULL, 0, 1000, DUE_FOREVER);
    crew_call_asleep(&c);
    do {
        cursor = 0;
        cr_assert_eq(due_processes(m.lab[0].q, &cursor, p, 4, LONG), 2);
    } while (!p[1].waits); /* it is about to say so */
    cr_expect(p[0].self && p[0].held == 1);
    cr_expect(!p[1].self && p[1].held == 0);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_assert_eq(crew_call_answer(&c), 0);
    cr_expect_eq(due_ack(&c.job), 0);
    mall_close(&m);
}

MALL_TEST(census, of_a_shared_queue_that_is_closed_or_fenced_says_so)
{
    struct mall m = mall_make(2);
    struct due_queue_census c;
    uint64_t cursor = 0;
    due_process p;

    cr_assert_eq(due_close(m.lab[0].q, DUE_CLOSE_DISCARD, LONG), 0);
    cr_expect_eq(due_census(m.lab[0].q, DUE_ALL_TOPICS, &c, LONG), DUE_ECLOSED);
    cr_expect_eq(due_processes(m.lab[0].q, &cursor, &p, 1, LONG), DUE_ECLOSED);
    cr_expect_eq(census_of(m.lab[1].q, DUE_ALL_TOPICS).processes, 1u);
    mall_close(&m);
}

/* ---- As text ---- */

static double value(const char *text, const char *name, const char *labels)
{
    char line[160];

    snprintf(line, sizeof line, "%s{queue=\"orders\"%s}", name, labels);
    return exposition_value(text, line);
}

LAB_TEST(census_text, is_what_prometheus_reads)
{
    struct lab lab = lab_open(.start_ns = 100, .with.lease_ns = DUE_S(1), .with.name = "orders");
    int a = due_topic(lab.q, "a \"quote\", a \\, a \n line, \xc3\xa4, \xff");
    int b = due_topic(lab.q, "b");
    due_job job = fill(&lab, a, b);
    char *text = exposition_census(lab.q);

    const char *bad = exposition_check(text);
    cr_expect_null(bad, "%s", bad);
    cr_expect_eq(value(text, "due_queue_jobs", ",state=\"ready\""), 3);
    cr_expect_eq(value(text, "due_queue_jobs", ",state=\"dead\""), 1);
    cr_expect_eq(value(text, "due_queue_topic_jobs", ",topic=\"b\",state=\"delayed\""), 1);
    cr_expect_eq(value(text, "due_queue_topic_jobs",
                       ",topic=\"a \\\"quote\\\", a \\\\, a \\n line, \xc3\xa4, \\\\xff\","
                       "state=\"leased\""),
                 1);
    cr_expect_eq(value(text, "due_queue_oldest_ready_age_seconds", ""), 97e-9);
    cr_expect_eq(value(text, "due_queue_topic_oldest_ready_age_seconds", ",topic=\"b\""), 94e-9);
    cr_expect_eq(value(text, "due_queue_next_deadline_seconds", ""), 0);
    cr_expect_eq(value(text, "due_queue_processes", ""), 1);
    cr_expect_eq(value(text, "due_process_jobs", ",state=\"leased\""), 1);
    cr_expect_eq(value(text, "due_process_waits", ""), 0);
    cr_expect_eq(value(text, "due_process_seen_age_seconds", ""), 0);
    cr_expect_eq(value(text, "due_queue_topic_jobs", ",topic=\"\",state=\"ready\""), 0);
    cr_expect_eq(value(text, "due_queue_topic_oldest_ready_age_seconds", ",topic=\"\""), 0);
    cr_expect_eq(due_ack(&job), 0);
    free(text);
    lab_close(&lab);
}

/* Though nobody has looked since they were due. */
LAB_TEST(census, of_jobs_that_are_due_says_that_they_are_ready)
{
    for (int n = 1; n <= 10000; n *= 100) {
        struct lab lab = lab_open(.start_ns = 1);

        for (int i = 0; i < n; i++)
            lab_enqueue(&lab, "tea", .at_ns = 10 + i);
        cr_assert_eq(due_poll(lab.q, NULL), 0); /* they are sorted in */
        lab_turn_to(&lab, 10 + n);
        expect(census_of(lab.q, DUE_ALL_TOPICS), 0, (uint64_t)n, 0, 0, 10);
        lab_close(&lab);
    }
}

/* All of it: every family with what stands over it, each of its lines, in this order. */
static const char page[] =
    "# HELP due_queue_jobs Jobs of the whole queue now, whoever shares it.\n"
    "# TYPE due_queue_jobs gauge\n"
    "due_queue_jobs{queue=\"orders\",state=\"delayed\"} 1\n"
    "due_queue_jobs{queue=\"orders\",state=\"ready\"} 3\n"
    "due_queue_jobs{queue=\"orders\",state=\"leased\"} 1\n"
    "due_queue_jobs{queue=\"orders\",state=\"dead\"} 1\n"
    "# HELP due_queue_oldest_ready_age_seconds How long the oldest job that is ready has been "
    "due; 0 if none is.\n"
    "# TYPE due_queue_oldest_ready_age_seconds gauge\n"
    "due_queue_oldest_ready_age_seconds{queue=\"orders\"} 0.000000097\n"
    "# HELP due_queue_next_deadline_seconds Until the next deadline, or sooner; 0 if one has "
    "passed, +Inf if there is none.\n"
    "# TYPE due_queue_next_deadline_seconds gauge\n"
    "due_queue_next_deadline_seconds{queue=\"orders\"} 0.000000000\n"
    "# HELP due_queue_processes Processes that have the queue open, or died so within a day.\n"
    "# TYPE due_queue_processes gauge\n"
    "due_queue_processes{queue=\"orders\"} 1\n"
    "# HELP due_queue_topic_jobs Jobs of the topic, of the whole queue, now.\n"
    "# TYPE due_queue_topic_jobs gauge\n"
    "due_queue_topic_jobs{queue=\"orders\",topic=\"\",state=\"delayed\"} 0\n"
    "due_queue_topic_jobs{queue=\"orders\",topic=\"\",state=\"ready\"} 0\n"
    "due_queue_topic_jobs{queue=\"orders\",topic=\"\",state=\"leased\"} 0\n"
    "due_queue_topic_jobs{queue=\"orders\",topic=\"a\",state=\"delayed\"} 0\n"
    "due_queue_topic_jobs{queue=\"orders\",topic=\"a\",state=\"ready\"} 2\n"
    "due_queue_topic_jobs{queue=\"orders\",topic=\"a\",state=\"leased\"} 1\n"
    "due_queue_topic_jobs{queue=\"orders\",topic=\"b\",state=\"delayed\"} 1\n"
    "due_queue_topic_jobs{queue=\"orders\",topic=\"b\",state=\"ready\"} 1\n"
    "due_queue_topic_jobs{queue=\"orders\",topic=\"b\",state=\"leased\"} 0\n"
    "# HELP due_queue_topic_oldest_ready_age_seconds How long the oldest job of the topic that "
    "is ready has been due; 0 if none is.\n"
    "# TYPE due_queue_topic_oldest_ready_age_seconds gauge\n"
    "due_queue_topic_oldest_ready_age_seconds{queue=\"orders\",topic=\"\"} 0.000000000\n"
    "due_queue_topic_oldest_ready_age_seconds{queue=\"orders\",topic=\"a\"} 0.000000097\n"
    "due_queue_topic_oldest_ready_age_seconds{queue=\"orders\",topic=\"b\"} 0.000000094\n"
    "# HELP due_process_jobs Jobs that this process has: waiting here, claimed or not, and on "
    "a lease.\n"
    "# TYPE due_process_jobs gauge\n"
    "due_process_jobs{queue=\"orders\",state=\"waiting\"} 4\n"
    "due_process_jobs{queue=\"orders\",state=\"leased\"} 1\n"
    "# HELP due_process_waits 1: it waits for jobs, or to be told of some.\n"
    "# TYPE due_process_waits gauge\n"
    "due_process_waits{queue=\"orders\"} 0\n"
    "# HELP due_process_seen_age_seconds Since this process was last heard of by those it "
    "shares the queue with.\n"
    "# TYPE due_process_seen_age_seconds gauge\n"
    "due_process_seen_age_seconds{queue=\"orders\"} 0.000000000\n"
    "# HELP due_process_changes_unsettled Changes on their way to the store.\n"
    "# TYPE due_process_changes_unsettled gauge\n"
    "due_process_changes_unsettled{queue=\"orders\"} 0\n";

LAB_TEST(census_text, is_this_to_the_letter)
{
    struct lab lab = lab_open(.start_ns = 100, .with.lease_ns = DUE_S(1), .with.name = "orders");
    int a = due_topic(lab.q, "a");
    due_job job = fill(&lab, a, due_topic(lab.q, "b"));
    char *text = exposition_census(lab.q);

    cr_expect_str_eq(text, page);
    cr_expect_eq(due_ack(&job), 0);
    free(text);
    lab_close(&lab);
}

/* Nothing is written behind the room that there is, and there is a NUL if there is any. */
LAB_TEST(census_text, is_cut_where_it_does_not_fit)
{
    struct lab lab = lab_open(.with.name = "orders");
    char *whole = exposition_census(lab.q);
    size_t n = strlen(whole);
    const size_t sizes[] = { 0, 1, 2, 300, n - 1, n, n + 1, n + 2 };
    char *text = malloc(n + 3);

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t fits = sizes[i] > n ? n : sizes[i] > 0 ? sizes[i] - 1 : 0;

        memset(text, '!', n + 3);
        cr_expect_eq(due_census_write(lab.q, text, sizes[i], LONG), (int)n);
        cr_expect_eq(memcmp(text, whole, fits), 0, "%zu", sizes[i]);
        cr_expect_eq(text[fits], sizes[i] > 0 ? '\0' : '!', "%zu", sizes[i]);
        cr_expect_eq(text[sizes[i]], '!', "%zu: behind it", sizes[i]);
    }
    free(text);
    free(whole);
    lab_close(&lab);
}

LAB_TEST(census_text, has_seconds_and_their_parts)
{
    struct lab lab = lab_open(.start_ns = 100, .with.name = "orders");

    lab_enqueue(&lab, "old", .at_ns = 101);
    lab_turn_to(&lab, DUE_S(2500) + 106);
    char *text = exposition_census(lab.q);
    cr_expect_eq(value(text, "due_queue_oldest_ready_age_seconds", ""), 2500.000000005);
    free(text);
    lab_close(&lab);
}

LAB_TEST(census_text, says_how_far_the_next_deadline_is_or_that_there_is_none)
{
    struct lab lab = lab_open(.start_ns = 100, .with.name = "orders");

    char *text = exposition_census(lab.q);
    cr_expect_eq(value(text, "due_queue_next_deadline_seconds", ""), INFINITY);
    cr_expect_eq(value(text, "due_queue_oldest_ready_age_seconds", ""), 0);
    free(text);
    lab_enqueue(&lab, "far", .at_ns = DUE_S(2500) + 105);
    text = exposition_census(lab.q);
    cr_expect_eq(value(text, "due_queue_next_deadline_seconds", ""), 2500.000000005);
    free(text);
    lab_close(&lab);
}

MALL_TEST(census_text, of_a_shared_queue_has_the_whole_and_the_part_of_the_process)
{
    struct mall m = mall_on(0, NULL);

    for (int i = 0; i < 2; i++)
        mall_join(&m, (struct lab_options){ .with.name = "orders" });
    int a = due_topic(m.lab[0].q, "a");
    int b = due_topic(m.lab[0].q, "b");
    mall_turn_to(&m, 100);
    due_job job = fill(&m.lab[0], a, b);
    for (int i = 0; i < 2; i++) {
        char *text = exposition_census(m.lab[i].q);
        const char *bad = exposition_check(text);

        cr_expect_null(bad, "%s", bad);
        cr_expect_eq(value(text, "due_queue_jobs", ",state=\"leased\""), 1);
        cr_expect_eq(value(text, "due_queue_topic_jobs", ",topic=\"a\",state=\"ready\""), 2);
        cr_expect_eq(value(text, "due_queue_processes", ""), 2);
        cr_expect_eq(value(text, "due_process_jobs", ",state=\"leased\""), i == 0);
        double seen = value(text, "due_process_seen_age_seconds", "");
        cr_expect(seen >= 0 && seen <= 100e-9, "since it joined, at most: %g", seen);
        free(text);
    }
    cr_expect_eq(due_ack(&job), 0);
    char none[8] = "before";
    cr_expect_eq(due_census_write(m.lab[0].q, none, sizeof none, 0), DUE_EAGAIN);
    cr_expect_str_eq(none, "before");
    mall_close(&m);
}
