/* What happens to an open file: others read it, write to it, remove it, replace it, damage it. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "lab/sqlite/sqlite_desk.h"

static struct sqlite_desk desk;

static void begin(void)
{
    sqlite_desk_begin(&desk);
    cr_assert_eq(sqlite_desk_open(&desk), 0, "%s", desk.error.text);
}

static void end(void)
{
    sqlite_desk_end(&desk);
}

TestSuite(sqlite_trouble, .init = begin, .fini = end, .timeout = 20);

static int ready(void)
{
    return desk.store->verbs->ready(desk.store, crew_now_ns() + DUE_S(5));
}

Test(sqlite_trouble, who_reads_holds_up_nobody_and_sees_what_was_then)
{
    cr_assert_eq(sqlite_desk_put(&desk, 1, DUE_S(5)), 0);
    sqlite3 *db = sqlite_desk_other(&desk);
    sqlite_desk_ask(db, "BEGIN");
    cr_expect_str_eq(sqlite_desk_ask(db, "SELECT count(*) FROM jobs"), "1");
    for (unsigned char i = 2; i < 40; i++)
        cr_assert_eq(sqlite_desk_put(&desk, i, DUE_MS(1)), 0);
    cr_expect_str_eq(sqlite_desk_ask(db, "SELECT count(*) FROM jobs"), "1");
    sqlite_desk_ask(db, "COMMIT");
    cr_expect_str_eq(sqlite_desk_ask(db, "SELECT count(*) FROM jobs"), "39");
    sqlite3_close(db);
}

Test(sqlite_trouble, who_writes_is_waited_for_until_the_time_is_up)
{
    sqlite3 *db = sqlite_desk_other(&desk);
    int64_t begun_ns = crew_now_ns();

    sqlite_desk_ask(db, "BEGIN IMMEDIATE");
    cr_expect_eq(sqlite_desk_put(&desk, 1, DUE_MS(30)), DUE_EAGAIN);
    cr_expect_geq(crew_now_ns() - begun_ns, DUE_MS(30));
    cr_expect_lt(crew_now_ns() - begun_ns, DUE_S(5));
    cr_expect(strstr(desk.log, "locked by another program") != NULL, "%s", desk.log);
    sqlite_desk_ask(db, "ROLLBACK");
    cr_expect_eq(sqlite_desk_put(&desk, 1, DUE_S(5)), 0);
    cr_expect(strstr(desk.log, "can be used again") != NULL, "%s", desk.log);
    cr_expect_eq(sqlite_desk_jobs(&desk), 1);
    sqlite3_close(db);
}

/* A file that was removed is told of as such, not by what was wrong before. */
Test(sqlite_trouble, that_has_passed_is_not_told_again)
{
    sqlite3 *db = sqlite_desk_other(&desk);

    sqlite_desk_ask(db, "BEGIN IMMEDIATE");
    cr_expect_eq(sqlite_desk_put(&desk, 1, DUE_MS(5)), DUE_EAGAIN);
    sqlite_desk_ask(db, "ROLLBACK");
    sqlite3_close(db);
    cr_expect_eq(sqlite_desk_put(&desk, 1, DUE_S(5)), 0);
    cr_expect(strstr(desk.log, "can be used again") != NULL, "%s", desk.log);
    sqlite_place_unlink(&desk.place, NULL);
    cr_expect_eq(sqlite_desk_put(&desk, 2, DUE_S(5)), DUE_EAGAIN);
    cr_expect(strstr(desk.log, "was removed") != NULL, "%s", desk.log);
}

static void *interrupt(void *store)
{
    struct timespec pause = { .tv_nsec = 20000000 };
    due_store *s = store;

    nanosleep(&pause, NULL);
    s->verbs->interrupt(s);
    return NULL;
}

Test(sqlite_trouble, an_interrupt_ends_the_wait_for_who_writes)
{
    sqlite3 *db = sqlite_desk_other(&desk);
    pthread_t thread;
    int64_t begun_ns = crew_now_ns();

    sqlite_desk_ask(db, "BEGIN IMMEDIATE");
    cr_assert_eq(pthread_create(&thread, NULL, interrupt, desk.store), 0);
    cr_expect_eq(sqlite_desk_put(&desk, 1, DUE_S(15)), DUE_EAGAIN);
    cr_expect_lt(crew_now_ns() - begun_ns, DUE_S(10));
    pthread_join(thread, NULL);
    sqlite_desk_ask(db, "ROLLBACK");
    sqlite3_close(db);
}

Test(sqlite_trouble, a_removed_file_is_made_again_and_said_to_be_lost_once)
{
    uint64_t writer = desk.info.writer;

    cr_assert_eq(sqlite_desk_put(&desk, 1, DUE_S(5)), 0);
    sqlite_place_unlink(&desk.place, NULL);
    cr_expect_eq(sqlite_desk_put(&desk, 2, DUE_S(5)), DUE_EAGAIN);
    cr_expect_eq(ready(), DUE_ELOST);
    cr_expect_eq(ready(), 0);
    cr_expect_eq(sqlite_desk_put(&desk, 2, DUE_S(5)), 0);
    cr_expect_eq(sqlite_desk_jobs(&desk), 1);
    sqlite_desk_shut(&desk);
    cr_assert_eq(sqlite_desk_open(&desk), 0);
    cr_expect_gt(desk.info.writer, writer);
}

Test(sqlite_trouble, a_removed_file_is_not_made_again_if_it_must_exist)
{
    sqlite_desk_shut(&desk);
    desk.place.options.must_exist = 1;
    cr_assert_eq(sqlite_desk_open(&desk), 0);
    sqlite_place_unlink(&desk.place, NULL);
    cr_expect_eq(ready(), DUE_EAGAIN);
    cr_expect_eq(access(desk.place.path, F_OK), -1);
}

Test(sqlite_trouble, another_file_in_its_place_is_not_touched)
{
    char aside[128];
    struct stat before;
    struct stat after;

    snprintf(aside, sizeof aside, "%s/aside", desk.place.folder);
    cr_assert_eq(rename(desk.place.path, aside), 0);
    sqlite3 *db = sqlite_desk_other(&desk);
    sqlite_desk_ask(db, "CREATE TABLE other (a)");
    sqlite3_close(db);
    cr_assert_eq(stat(desk.place.path, &before), 0);
    cr_expect_eq(sqlite_desk_put(&desk, 1, DUE_S(5)), DUE_EFENCED);
    cr_expect_eq(ready(), DUE_EFENCED);
    cr_expect(strstr(desk.log, "was replaced by another file") != NULL, "%s", desk.log);
    cr_assert_eq(stat(desk.place.path, &after), 0);
    cr_expect_eq(before.st_size, after.st_size);
    cr_expect_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    unlink(aside);
}

Test(sqlite_trouble, the_view_shows_each_job_as_it_is)
{
    static const char text[] =
        "SELECT group_concat(state || ' ' || topic || ' ' || text || ' ' || deadline, '; ') FROM "
        "(SELECT * FROM jobs ORDER BY id)";
    due_change change = { .kind = DUE_CHANGE_PUT, .record = sqlite_desk_record(1) };

    change.record.topic = "mail";
    change.record.headers = "h";
    change.record.headers_len = 1;
    change.record.until_ns = change.record.deadline_ns = DUE_S(86400) + DUE_MS(5);
    cr_assert_eq(sqlite_desk_commit(&desk, &change, DUE_S(5)), 0);
    change.record = sqlite_desk_record(2);
    change.record.attempts = 1;
    change.record.until_ns = DUE_FOREVER;
    cr_assert_eq(sqlite_desk_commit(&desk, &change, DUE_S(5)), 0);
    change.record = sqlite_desk_record(3);
    change.record.cause = DUE_CAUSE_BURIED;
    change.record.died_ns = 5;
    change.record.until_ns = change.record.deadline_ns = 0;
    change.record.reason = "why";
    cr_assert_eq(sqlite_desk_commit(&desk, &change, DUE_S(5)), 0);
    sqlite3 *db = sqlite_desk_other(&desk);
    cr_expect_str_eq(sqlite_desk_ask(db, text),
                     "waiting mail payload 1970-01-02 00:00:00.005; reserved  payload never; "
                     "dead  payload 1970-01-01 00:00:00.000");
    cr_expect_str_eq(sqlite_desk_ask(db, "SELECT reason FROM jobs WHERE state = 'dead'"), "why");
    sqlite3_close(db);
}

/* A byte of each field in turn: what makes sense is shown, all else set aside, and the rest too. */
Test(sqlite_trouble, a_damaged_record_is_set_aside_and_the_others_are_shown)
{
    static const char *const damage[] = {
        "UPDATE job SET record = x'00' WHERE hex(id) LIKE '%05'",
        "UPDATE job SET record = CAST(hex(record) AS BLOB) WHERE hex(id) LIKE '%06'",
        "UPDATE job SET attempts = -1 WHERE hex(id) LIKE '%07'",
        "UPDATE job SET died = 1, cause = 0 WHERE hex(id) LIKE '%08'",
    };
    struct due_store_stats stats;

    for (unsigned char i = 0; i < 20; i++)
        cr_assert_eq(sqlite_desk_put(&desk, i, DUE_S(5)), 0);
    sqlite3 *db = sqlite_desk_other(&desk);
    for (int i = 0; i < 4; i++)
        sqlite_desk_ask(db, damage[i]);
    cr_expect_eq(sqlite_desk_jobs(&desk), 16);
    cr_expect_str_eq(sqlite_desk_ask(db, "SELECT count(*) FROM aside"), "4");
    cr_expect_str_eq(sqlite_desk_ask(db, "SELECT count(*) FROM job"), "16");
    desk.store->verbs->stats(desk.store, &stats);
    cr_expect_eq(stats.quarantined, 4);
    sqlite3_close(db);
    sqlite_desk_shut(&desk);
    cr_assert_eq(sqlite_desk_open(&desk), 0, "%s", desk.error.text);
    cr_expect_eq(desk.info.jobs, 16u);
}

/* The log of the last second is on the disk: its length there says so only in a test of crashes, so
 * here it is enough that renewing is asked for each second, and works. */
Test(sqlite_trouble, a_file_synced_every_second_is_renewed_every_second)
{
    int64_t held_ns = 0;

    cr_expect_gt(desk.info.renew_ns, DUE_S(1));
    sqlite_desk_shut(&desk);
    desk.place.options.durability = DUE_DURABLE_EVERYSEC;
    cr_assert_eq(sqlite_desk_open(&desk), 0);
    cr_expect_eq(desk.info.renew_ns, DUE_S(1));
    cr_expect_eq(desk.info.durability, DUE_DURABLE_EVERYSEC);
    cr_assert_eq(sqlite_desk_put(&desk, 1, DUE_S(5)), 0);
    int rc = desk.store->verbs->renew(desk.store, &held_ns, crew_now_ns() + DUE_S(5));
    cr_expect_eq(rc, 0);
    cr_expect_eq(held_ns, DUE_FOREVER);
}
