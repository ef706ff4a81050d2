/* What holds back topics, in a file: a table that is made when it is needed. */
#include "lab/lab.h"
#include "lab/sqlite/sqlite_desk.h"
#include "lab/take.h"

static struct sqlite_desk desk;

static void begin(void)
{
    sqlite_desk_begin(&desk);
}

static void end(void)
{
    sqlite_desk_end(&desk);
}

TestSuite(sqlite_settings, .init = begin, .fini = end, .timeout = 60);

static struct lab opened(void)
{
    struct lab_options with = { .start_ns = 1000 };

    with.with.size = sizeof(due_options);
    with.with.store = sqlite_place_store(&desk.place);
    return lab_open_with(&with);
}

/* What a query answers, as a number. */
static int64_t asked(const char *query)
{
    sqlite3 *db = sqlite_desk_other(&desk);
    sqlite3_stmt *row = NULL;
    int64_t value = -1;

    cr_assert_eq(sqlite3_prepare_v2(db, query, -1, &row, NULL), SQLITE_OK, "%s", query);
    if (sqlite3_step(row) == SQLITE_ROW)
        value = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(db);
    return value;
}

#define TABLES "SELECT count(*) FROM sqlite_schema WHERE name = 'held_back'"
#define ROWS   "SELECT count(*) FROM held_back"

Test(sqlite_settings, hold_for_whoever_opens_the_file_next)
{
    struct lab lab = opened();
    int mail = lab_topic(&lab, "mail");
    due_job jobs[2];

    for (int i = 0; i < 3; i++)
        lab_enqueue(&lab, "x", .at_ns = 5, .topic = mail);
    cr_expect_eq(due_resume(lab.q, mail), 0);
    cr_expect_eq(asked(TABLES), 0, "nothing was ever held back");
    cr_expect_eq(due_pause(lab.q, mail), 0);
    cr_expect_eq(due_topic_limit(lab.q, mail, 2), 0);
    for (int life = 0; life < 2; life++) {
        lab_close(&lab);
        lab = opened();
        mail = lab_topic(&lab, "mail");
        cr_expect_eq(take_leased_from(lab.q, &mail, 1, jobs, 100, 0), DUE_EAGAIN);
        while (lab_stats(&lab).loading)
            crew_sleep(DUE_MS(1));
        cr_expect_eq(take_leased_from(lab.q, &mail, 1, jobs, 100, 0), DUE_EAGAIN);
    }
    cr_expect_eq(due_resume(lab.q, mail), 0);
    lab_close(&lab);
    lab = opened();
    mail = lab_topic(&lab, "mail");
    for (int i = 0; i < 2; i++)
        cr_assert_eq(take_leased_from(lab.q, &mail, 1, &jobs[i], 100, DUE_S(20)), 0);
    while (lab_stats(&lab).loading)
        crew_sleep(DUE_MS(1));
    due_job none;
    cr_expect_eq(take_leased_from(lab.q, &mail, 1, &none, 100, 0), DUE_EAGAIN, "two run");
    for (int i = 0; i < 2; i++)
        cr_expect_eq(due_ack(&jobs[i]), 0);
    cr_expect_eq(asked(ROWS), 1);
    cr_expect_eq(due_topic_limit(lab.q, mail, 0), 0);
    cr_expect_eq(asked(ROWS), 0, "what holds back nothing is not kept");
    lab_close(&lab);
}

static int no_topic(void *ctx, const char *topic, int paused, int64_t held_max)
{
    (void)topic;
    (void)paused;
    (void)held_max;
    ++*(unsigned *)ctx;
    return 0;
}

/* A name that no topic can have is not shown. */
Test(sqlite_settings, a_row_that_makes_no_sense_is_refused)
{
    static const char *const names[] = { "x'6d006c'", "x'00'", "zeroblob(300)" };
    char text[128];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsigned shown = 0;

        cr_assert_eq(sqlite_desk_open(&desk), 0, "%s", desk.error.text);
        due_change pause = { .kind = DUE_CHANGE_TOPIC, .paused = 1, .record = { .topic = "a" } };
        cr_assert_eq(sqlite_desk_commit(&desk, &pause, DUE_S(5)), 0);
        sqlite3 *db = sqlite_desk_other(&desk);
        snprintf(text, sizeof text, "UPDATE held_back SET topic = %s", names[i]);
        cr_assert_eq(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
        const struct due_store_verbs *v = desk.store->verbs;
        cr_expect_eq(v->topics(desk.store, no_topic, &shown, crew_now_ns() + DUE_S(5)),
                     DUE_ECORRUPT);
        cr_expect_eq(shown, 0u);
        cr_assert_eq(sqlite3_exec(db, "DELETE FROM held_back", NULL, NULL, NULL), SQLITE_OK);
        cr_expect_eq(v->topics(desk.store, no_topic, &shown, crew_now_ns() + DUE_S(5)), 0);
        sqlite3_close(db);
        sqlite_desk_shut(&desk);
    }
}
