/* One queue for many processes: jobs that come again, and are cancelled, or left by their takers,
 * while the end of a round is on its way to the store.
 */
#include "lab/crew.h"
#include "lab/mall.h"
#include "queue/extras.h"

#define LEASE 1000

static due_id put_round(struct mall *m, const char *text, int64_t at_ns)
{
    return lab_enqueue(&m->lab[0], text, .at_ns = at_ns, .more = EXTRA(.every_ns = 10));
}

struct one {
    due_queue *q;
    due_id id;
    due_job job;
};

static int cancel_one(void *arg)
{
    struct one *c = arg;

    return due_cancel(c->q, c->id, NULL);
}

static int ack_one(void *arg)
{
    struct one *c = arg;

    return due_ack(&c->job);
}

static int take_one(void *arg)
{
    struct one *c = arg;

    return due_dequeue(c->q, &c->job, DUE_FOREVER);
}

static int put_one(void *arg)
{
    struct one *c = arg;
    due_spec spec = { DUE_SPEC_INIT, .data = "cake", .len = 4, .at_ns = 1000 };

    return due_enqueue(c->q, &spec, DUE_FOREVER, NULL);
}

/* It is reserved, or lies in the line to be taken. */
static void have_one(struct mall *m, struct one *c, bool taken)
{
    c->id = put_round(m, "tea", 5);
    mall_turn_to(m, 5);
    if (taken)
        cr_assert_eq(due_dequeue(c->q, &c->job, 0), DUE_EAGAIN); /* it is claimed for the next */
    else
        cr_assert_eq(mall_reserve(m, 1, &c->job, LEASE), 0);
    while (taken && lab_stats(&m->lab[1]).ready == 0)
        crew_sleep(DUE_MS(1));
}

static void until_taken(struct mall *m, const struct one *c)
{
    due_info info;

    while (due_find(m->lab[1].q, c->id, &info) == 0)
        crew_sleep(DUE_US(100));
}

/* Its round is over, or was taken, and the store is being told, or has been: there it would wait
 * for the next one, which nobody is to have. */
static void cancel_on_the_way(bool taken, enum memory_fault_kind kind)
{
    struct mall m = mall_make(2);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct one c = { .q = m.lab[1].q };
    struct crew_thread ends;
    struct crew_thread cancels;

    have_one(&m, &c, taken);
    memory_store_fault(m.store[1],
                       (struct memory_fault){ .verb = MEMORY_WORK, .kind = kind, .limiter = gate });
    crew_go(&ends, taken ? take_one : ack_one, &c);
    memory_limiter_reached(gate, 1);
    until_taken(&m, &c);
    crew_go(&cancels, cancel_one, &c);
    crew_until_asleep(&cancels);
    memory_limiter_open(gate);
    cr_expect_eq(crew_join(&ends), 0);
    int rc = crew_join(&cancels);
    cr_expect(rc == 0 || rc == DUE_EBUSY, "%d: the next round is taken back, or there is none", rc);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    if (taken)
        cr_expect_str_eq(lab_text(&m.lab[1], &c.job), "tea", "its last round");
    memory_limiter_free(gate);
    mall_close(&m);
}

MALL_TEST(share_rounds_left, a_cancel_while_the_store_is_told_takes_the_next_round_back)
{
    cancel_on_the_way(false, MEMORY_BLOCK);
    cancel_on_the_way(false, MEMORY_BLOCK_AFTER);
    cancel_on_the_way(true, MEMORY_BLOCK);
    cancel_on_the_way(true, MEMORY_BLOCK_AFTER);
}

/* The same of one whose end waits behind another exchange: there is no next round. */
MALL_TEST(share_rounds_left, a_cancel_before_the_store_is_told_ends_it)
{
    for (int taken = 0; taken < 2; taken++) {
        struct mall m = mall_make(2);
        struct memory_limiter *gate = memory_limiter_new(m.disk);
        struct one c = { .q = m.lab[1].q };
        struct crew_thread thread[3];

        have_one(&m, &c, taken);
        memory_store_fault(
            m.store[1],
            (struct memory_fault){ .verb = MEMORY_PUT, .kind = MEMORY_BLOCK, .limiter = gate });
        crew_go(&thread[0], put_one, &c);
        memory_limiter_reached(gate, 1);
        crew_go(&thread[1], taken ? take_one : ack_one, &c);
        crew_until_asleep(&thread[1]);
        until_taken(&m, &c);
        crew_go(&thread[2], cancel_one, &c);
        crew_until_asleep(&thread[2]);
        memory_limiter_open(gate);
        cr_expect_eq(crew_join(&thread[0]), 0);
        cr_expect_eq(crew_join(&thread[1]), 0);
        int rc = crew_join(&thread[2]);
        cr_expect(rc == 0 || rc == DUE_EBUSY, "%d: who ends it was told in time, or not", rc);
        cr_expect_eq(memory_disk_jobs(m.disk), 1u);
        if (taken)
            cr_expect_str_eq(lab_text(&m.lab[1], &c.job), "tea", "its last round");
        memory_limiter_free(gate);
        mall_close(&m);
    }
}

/* The same of a round whose taker has left: whoever takes a job here next has it. */
MALL_TEST(share_rounds_left, a_cancel_of_a_round_that_was_left_loses_nothing)
{
    struct mall m = mall_make(2);
    struct one c = { .q = m.lab[1].q };
    struct crew_thread cancels;
    int rc;

    have_one(&m, &c, true);
    memory_store_fault(m.store[1], (struct memory_fault){ .verb = MEMORY_WORK,
                                                          .times = MEMORY_ALWAYS,
                                                          .kind = MEMORY_DOUBT_LANDED });
    cr_assert_eq(due_dequeue(c.q, &c.job, 0), DUE_EAGAIN);
    crew_go(&cancels, cancel_one, &c);
    crew_until_asleep(&cancels);
    memory_store_forgive(m.store[1]);
    rc = crew_join(&cancels);
    cr_expect(rc == 0 || rc == DUE_EBUSY, "%d", rc);
    cr_expect_eq(memory_disk_jobs(m.disk), 0u);
    cr_assert_eq(due_dequeue(c.q, &c.job, 0), 0);
    cr_expect_str_eq(lab_text(&m.lab[1], &c.job), "tea");
    cr_expect_eq(lab_stats(&m.lab[1]).ready, 0u);
    mall_close(&m);
}

/* Taken together with a plain one, which goes back: nobody may come here any more. */
Test(share_rounds_left, only_the_round_stays_of_what_its_taker_has_left, .timeout = 60)
{
    if (getenv("LAB_SHARED") != NULL)
        cr_skip_test("the first may have lain too long, and gone back, when the second comes");
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    due_options o = { DUE_OPTIONS_INIT, .store = store, .share = DUE_SHARED, .prefetch_max = 2 };
    due_extra hourly = { DUE_EXTRA_INIT, .every_ns = DUE_S(3600) };
    due_spec specs[2] = { { DUE_SPEC_INIT, .data = "tea", .len = 3, .more = &hourly },
                          { DUE_SPEC_INIT, .data = "cake", .len = 4 } };
    struct due_stats s = { .ready = 0 };
    due_job jobs[2];
    due_id ids[2];
    due_queue *q;
    int rc;

    cr_assert_eq(due_open(&q, &o, NULL), 0);
    specs[1].topic = due_topic(q, "sweet");
    for (int i = 0; i < 2; i++)
        cr_assert_eq(due_enqueue(q, &specs[i], DUE_S(20), &ids[i]), 0);
    for (int i = 0; i < 2; i++) { /* each is claimed for the next */
        cr_assert_eq(take_from(q, &specs[i].topic, 1, jobs, 0), DUE_EAGAIN);
        while (s.ready <= (uint64_t)i)
            cr_assert_eq(due_stats_read(q, &s), 0);
    }
    memory_store_fault(store, (struct memory_fault){ .verb = MEMORY_WORK,
                                                     .times = MEMORY_ALWAYS,
                                                     .kind = MEMORY_DOUBT_LANDED });
    do
        rc = due_take(q, NULL, jobs, 2, DUE_MS(100));
    while (rc == DUE_ETIMEDOUT); /* a slow machine: it was not sent in that time */
    cr_expect_eq(rc, DUE_EINDOUBT);
    memory_store_forgive(store);
    while (memory_disk_jobs(disk) < 2)
        crew_sleep(DUE_MS(1));
    cr_assert_eq(due_dequeue(q, &jobs[0], DUE_S(20)), 0);
    cr_expect(due_id_equal(jobs[0].id, ids[0]), "the round");
    cr_assert_eq(due_dequeue(q, &jobs[1], DUE_S(20)), 0);
    cr_expect(due_id_equal(jobs[1].id, ids[1]));
    for (int i = 0; i < 2; i++)
        due_job_done(&jobs[i]);
    cr_expect_eq(memory_disk_jobs(disk), 1u, "the next round");
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_expect_eq(due_free(q), 0);
    memory_disk_free(disk);
}
