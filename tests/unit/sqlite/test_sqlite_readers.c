/* Other programs that have the file open, in the middle of a transaction: nobody waits for them
 * longer than a call may take. */
#include <criterion/criterion.h>

#include "lab/sqlite/sqlite_desk.h"

#define WAIT DUE_MS(60)
#define WIDE DUE_S(3) /* of a machine that is busy */

static struct sqlite_desk desk;
static sqlite3 *other;

static void begin(void)
{
    sqlite_desk_begin(&desk);
    cr_assert_eq(sqlite_desk_open(&desk), 0, "%s", desk.error.text);
    cr_assert_eq(sqlite_desk_put(&desk, 1, DUE_S(5)), 0);
    other = sqlite_desk_other(&desk);
}

static void end(void)
{
    sqlite3_close(other);
    sqlite_desk_end(&desk);
}

TestSuite(sqlite_readers, .init = begin, .fini = end, .timeout = 30);

static int no_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    (void)ctx;
    (void)key;
    (void)len;
    (void)id;
    (void)until_ns;
    return 0;
}

/* Each verb in turn; those that only read are answered.  A store that cannot be written to is not
 * ready: else the queue would name jobs in a batch that nobody can send. */
static void all_verbs_answer(int commit)
{
    const struct due_store_verbs *v = desk.store->verbs;
    int64_t begun_ns = crew_now_ns();
    int64_t held_ns;
    unsigned shown = 0;

    cr_expect_eq(v->ready(desk.store, crew_now_ns() + WAIT), commit);
    cr_expect_eq(sqlite_desk_put(&desk, 2, WAIT), commit);
    cr_expect_eq(v->load(desk.store, 1, 10, sqlite_desk_count, &shown, crew_now_ns() + WAIT), 0);
    cr_expect_eq(v->find(desk.store, sqlite_desk_record(1).id, sqlite_desk_count, &shown,
                         crew_now_ns() + WAIT),
                 0);
    cr_expect_eq(v->keys(desk.store, 1, 10, no_key, NULL, crew_now_ns() + WAIT), 0);
    cr_expect_eq(v->renew(desk.store, &held_ns, crew_now_ns() + WAIT), 0);
    cr_expect_eq(v->close(desk.store, crew_now_ns() + WAIT), 0);
    cr_expect_lt(crew_now_ns() - begun_ns, 7 * WAIT + WIDE);
    due_sqlite_free(desk.store);
    desk.store = NULL;
    begun_ns = crew_now_ns();
    int rc = sqlite_desk_open_as(&desk, "queue", WAIT);
    cr_expect_eq(rc, commit == 0 ? 0 : DUE_EBUSY, "%s", desk.error.text);
    cr_expect_lt(crew_now_ns() - begun_ns, WAIT + WIDE);
}

Test(sqlite_readers, in_the_middle_of_reading_hold_up_no_call)
{
    sqlite_desk_ask(other, "BEGIN");
    sqlite_desk_ask(other, "SELECT count(*) FROM job");
    all_verbs_answer(0);
    sqlite_desk_ask(other, "COMMIT");
}

Test(sqlite_readers, in_the_middle_of_writing_hold_up_no_call_beyond_its_time)
{
    sqlite_desk_ask(other, "BEGIN IMMEDIATE");
    all_verbs_answer(DUE_EAGAIN);
    sqlite_desk_ask(other, "COMMIT");
    cr_expect_eq(sqlite_desk_open(&desk), 0, "%s", desk.error.text);
}

/* As a queue sees it: its calls end when their time is up and have changed nothing, since nothing
 * was sent; and all goes on when the other is done. */
Test(sqlite_readers, in_the_middle_of_writing_hold_up_no_queue_beyond_its_timeout)
{
    due_options o = { DUE_OPTIONS_INIT, .name = "queue", .store_timeout_ns = WAIT };
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3 };
    due_queue *q;
    due_job job;

    sqlite_desk_shut(&desk);
    sqlite_place_unlink(&desk.place, "");
    o.store = sqlite_place_store(&desk.place);
    cr_assert_eq(due_open(&q, &o, NULL), 0);
    cr_assert_eq(due_enqueue(q, &spec, 0, NULL), 0);
    sqlite3 *writer = sqlite_desk_other(&desk);
    sqlite_desk_ask(writer, "BEGIN IMMEDIATE");
    int64_t begun_ns = crew_now_ns();
    int rc = due_enqueue(q, &spec, WAIT, NULL);
    cr_expect_eq(rc, DUE_ETIMEDOUT, "%s", due_error_name(rc));
    rc = due_dequeue(q, &job, WAIT);
    cr_expect(rc == DUE_ETIMEDOUT || rc == DUE_ESTORE, "%s", due_error_name(rc));
    cr_expect_lt(crew_now_ns() - begun_ns, 4 * WAIT + WIDE);
    sqlite_desk_ask(writer, "COMMIT");
    sqlite3_close(writer);
    cr_expect_eq(due_enqueue(q, &spec, DUE_S(10), NULL), 0);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(due_dequeue(q, &job, DUE_S(10)), 0);
        cr_expect_eq(memcmp(job.data, "tea", 3), 0);
        due_job_done(&job);
    }
    cr_expect_eq(due_dequeue(q, &job, 0), DUE_EAGAIN, "what timed out never was");
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)), 0);
    cr_expect_eq(due_free(q), 0);
}
