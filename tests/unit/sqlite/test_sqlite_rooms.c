/* test_sqlite_rooms.c - rooms of the store on a file by themselves: what each error of SQLite is
 * and how it is told, numbers of topics, what a load remembers. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <sys/resource.h>

#include "lab/sqlite/sqlite_desk.h"
#include "sqlite/session.h"

static struct sqlite_desk desk;

static void begin(void)
{
    sqlite_desk_begin(&desk);
    desk.place.options.durability = DUE_DURABLE_NONE;
    cr_assert_eq(sqlite_desk_open(&desk), 0, "%s", desk.error.text);
}

static void end(void)
{
    sqlite_desk_end(&desk);
}

TestSuite(sqlite_rooms, .init = begin, .fini = end, .timeout = 30);

static struct due__sqlite *inside(void)
{
    return (struct due__sqlite *)(void *)desk.store;
}

Test(sqlite_rooms, tell_each_error_of_sqlite_in_words_of_its_own)
{
    static const struct {
        int code, rc;
        const char *text;
        bool hint;
    } errors[] = { { SQLITE_BUSY, DUE_EAGAIN, "is locked by another program", true },
                   { SQLITE_LOCKED, DUE_EAGAIN, "is locked by another program", true },
                   { SQLITE_INTERRUPT, DUE_EAGAIN, "the time was up", false },
                   { SQLITE_FULL, DUE_ENOSPC, "there is no room for", true },
                   { SQLITE_READONLY, DUE_EACCES, "cannot be written to", true },
                   { SQLITE_IOERR, DUE_EAGAIN, "(no errno)", true },
                   { SQLITE_NOTADB, DUE_ENOTSUP, "is no SQLite database", true } };
    struct due__sqlite *s = inside();

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        s->trouble[0] = s->hint[0] = '\0';
        cr_expect_eq(due__sqlite_error(s, errors[i].code), errors[i].rc, "%d", errors[i].code);
        cr_expect_not_null(strstr(s->trouble, errors[i].text), "%d: %s", errors[i].code,
                           s->trouble);
        cr_expect_eq(s->hint[0] != '\0', errors[i].hint, "%d", errors[i].code);
    }
}

#define TOPICS 2000

/* However many there are, and in whatever order they come. */
Test(sqlite_rooms, number_each_topic_once)
{
    static int64_t known[TOPICS];
    static bool used[TOPICS + 10];
    uint64_t random = 5;
    char name[16];

    inside()->until_ns = crew_now_ns() + DUE_S(20);
    cr_assert_eq(sqlite3_exec(inside()->db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < 10 * TOPICS; i++) {
        uint64_t n = crew_below(&random, TOPICS);
        int64_t number = 0;

        snprintf(name, sizeof name, "t%d", (int)n);
        cr_assert_eq(due__sqlite_topic(inside(), name, &number), 0);
        if (known[n] == 0) {
            cr_assert(number > 0 && number < TOPICS + 10 && !used[number], "%s: %d", name,
                      (int)number);
            used[number] = true;
            known[n] = number;
        }
        cr_assert_eq(number, known[n], "%s: %d", name, (int)number);
    }
    cr_expect_eq(sqlite3_exec(inside()->db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    due__sqlite_topics_forget(inside());
}

/* What came to a place that was gathered already is forgotten with the load. */
Test(sqlite_rooms, give_back_what_a_load_has_noted)
{
    struct due__sqlite *s = inside();
    const due_id id = { { 255 } };
    size_t before = 0;

    for (int i = 0; i < 100; i++) {
        if (i == 10)
            before = mallinfo2().uordblks;
        due__sqlite_cursor_begin(&s->load);
        s->load.at.at_ns = 100;
        for (int64_t k = 0; k < 90; k++)
            due__sqlite_moved(s, false, k, id);
        cr_assert_eq(s->load.n_passed, 90u);
        due__sqlite_cursor_end(&s->load);
    }
    cr_expect_lt((long)(mallinfo2().uordblks - before), 10000);
}

static int count(void *ctx, const due_record *record)
{
    (void)record;
    ++*(int *)ctx;
    return 0;
}

/* Who asks for none gets one at a time. */
Test(sqlite_rooms, load_one_at_least)
{
    int shown = 0;
    int rc = 1;

    for (unsigned char i = 1; i <= 5; i++)
        cr_assert_eq(sqlite_desk_put(&desk, i, DUE_S(5)), 0);
    for (int calls = 0; rc == 1 && calls < 50; calls++)
        rc = desk.store->verbs->load(desk.store, calls == 0, 0, count, &shown,
                                     crew_now_ns() + DUE_S(5));
    cr_expect_eq(rc, 0);
    cr_expect_eq(shown, 5);
}

/* Not without a bell, by which its waits are ended. */
Test(sqlite_rooms, are_not_made_where_there_is_no_descriptor)
{
    struct rlimit was;
    due_store *store = NULL;
    due_error error;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, was.rlim_max }), 0);
    int rc = due_sqlite_open(&store, "/tmp/nothing.db", NULL, &error);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
    cr_expect_lt(rc, 0);
    cr_expect_null(store);
}

static char shown_reason[200];

static int keep_reason(void *ctx, const due_record *record)
{
    (void)ctx;
    snprintf(shown_reason, sizeof shown_reason, "%s", record->reason);
    return 0;
}

/* As much of it as a job has room for. */
Test(sqlite_rooms, cut_a_reason_that_is_too_long)
{
    static const char reason[] =
        "0123456789012345678901234567890123456789012345678901234567890123456789";
    due_change bury = { .kind = DUE_CHANGE_PUT, .is_new = 1, .record = sqlite_desk_record(1) };

    bury.record.cause = DUE_CAUSE_BURIED;
    bury.record.died_ns = 5;
    bury.record.reason = reason;
    cr_assert_eq(sqlite_desk_commit(&desk, &bury, DUE_S(5)), 0);
    cr_expect_eq(desk.store->verbs->find(desk.store, bury.record.id, keep_reason, NULL,
                                         crew_now_ns() + DUE_S(5)),
                 0);
    cr_expect_eq(strlen(shown_reason), (size_t)DUE_REASON_BYTES - 1, "%s", shown_reason);
}

Test(sqlite_rooms, take_a_name_of_64_letters_and_none_longer)
{
    struct sqlite_desk other;
    char name[66];

    sqlite_desk_begin(&other);
    memset(name, 'n', sizeof name);
    name[65] = '\0';
    cr_expect_eq(sqlite_desk_open_as(&other, name, 0), DUE_EINVAL);
    cr_expect_eq(sqlite_desk_open_as(&other, "", 0), DUE_EINVAL);
    cr_expect_eq(sqlite_desk_open_as(&other, "a b", 0), DUE_EINVAL);
    name[64] = '\0';
    cr_expect_eq(sqlite_desk_open_as(&other, name, 0), 0, "%s", other.error.text);
    sqlite_desk_end(&other);
}
