/* A batch that fails in its midst has changed nothing; one that says wrongly what is there is made
 * all the same. */
#include <criterion/criterion.h>

#include "lab/sqlite/sqlite_desk.h"

#define KEPT_NS 50

static struct sqlite_desk desk;
static sqlite3 *beside;

static void begin(void)
{
    sqlite_desk_begin(&desk);
    cr_assert_eq(sqlite_desk_open(&desk), 0, "%s", desk.error.text);
    beside = sqlite_desk_other(&desk);
}

static void end(void)
{
    sqlite3_close(beside);
    sqlite_desk_end(&desk);
}

TestSuite(sqlite_batch, .init = begin, .fini = end, .timeout = 20);

/* One change, of a job whose key is its number. */
static due_change batch_change(enum due_change_kind kind, unsigned char number)
{
    static const char digits[] = "0123456789";
    due_change c = { .kind = kind, .record = sqlite_desk_record(number), .was_ns = number };

    c.record.key = &digits[number];
    c.record.key_len = 1;
    return c;
}

static int batch_commit(const due_change *changes, size_t n)
{
    int rc = desk.store->verbs->commit(desk.store, changes, n, desk.number + 1,
                                       crew_now_ns() + DUE_S(5));

    desk.number += rc == 0;
    return rc;
}

/* All that is in the file, as one text. */
static const char *batch_content(void)
{
    return sqlite_desk_ask(
        beside, "SELECT (SELECT group_concat(hex(id) || slice || '.' || until || '.' ||"
                " coalesce(died, '')) FROM job) || '; ' ||"
                " coalesce((SELECT group_concat(key || coalesce(kept, '')) FROM key), '') ||"
                " '; ' || (SELECT group_concat(CAST(name AS TEXT)) FROM topic) ||"
                " '; ' || (SELECT jobs || '.' || batch FROM owner)");
}

static void batch_fill(void)
{
    for (unsigned char i = 1; i <= 3; i++) {
        due_change c = batch_change(DUE_CHANGE_PUT, i);

        c.is_new = 1;
        cr_assert_eq(batch_commit(&c, 1), 0);
    }
    due_change keep = batch_change(DUE_CHANGE_KEEP, 7);
    keep.key_kept_ns = KEPT_NS;
    cr_assert_eq(batch_commit(&keep, 1), 0);
}

/* Each kind of change, of a batch that SQLite refuses just there. */
Test(sqlite_batch, that_is_refused_in_its_midst_has_changed_nothing)
{
    const struct {
        const char *where; /* it is refused */
        due_change change;
    } cases[] = {
        { "INSERT ON topic", batch_change(DUE_CHANGE_PUT, 4) },
        { "INSERT ON job", batch_change(DUE_CHANGE_PUT, 4) },
        { "INSERT ON key", batch_change(DUE_CHANGE_PUT, 4) },
        { "DELETE ON job", batch_change(DUE_CHANGE_PUT, 1) },
        { "UPDATE ON job", batch_change(DUE_CHANGE_MOVE, 1) },
        { "UPDATE ON job", batch_change(DUE_CHANGE_BURY, 1) },
        { "DELETE ON job", batch_change(DUE_CHANGE_DROP, 1) },
        { "DELETE ON key", batch_change(DUE_CHANGE_DROP, 1) },
        { "UPDATE ON key", batch_change(DUE_CHANGE_KEEP, 1) },
        { "DELETE ON key", batch_change(DUE_CHANGE_FORGET, 7) },
        { "UPDATE ON owner", batch_change(DUE_CHANGE_DROP, 1) },
    };
    char before[256];

    batch_fill();
    snprintf(before, sizeof before, "%s", batch_content());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        due_change changes[3] = { batch_change(DUE_CHANGE_MOVE, 3), cases[i].change,
                                  batch_change(DUE_CHANGE_DROP, 2) };
        char trigger[128];

        changes[0].record.until_ns = DUE_S(10000);
        changes[1].record.topic = "new";
        changes[1].record.until_ns = 77;
        changes[1].record.cause =
            cases[i].change.kind == DUE_CHANGE_BURY ? DUE_CAUSE_EXPIRED : (enum due_cause)0;
        changes[1].key_kept_ns = cases[i].change.kind == DUE_CHANGE_KEEP ? KEPT_NS : 0;
        if (strstr(cases[i].where, "job") != NULL && cases[i].change.kind != DUE_CHANGE_PUT)
            snprintf(trigger, sizeof trigger, "CREATE TRIGGER no BEFORE %s WHEN OLD.until = 1 ",
                     cases[i].where);
        else
            snprintf(trigger, sizeof trigger, "CREATE TRIGGER no BEFORE %s ", cases[i].where);
        strcat(trigger, "BEGIN SELECT RAISE(ABORT, 'no'); END");
        sqlite_desk_ask(beside, trigger);
        cr_expect_lt(batch_commit(changes, 3), 0, "%s", cases[i].where);
        cr_expect_str_eq(batch_content(), before, "%s", cases[i].where);
        sqlite_desk_ask(beside, "DROP TRIGGER no");
        cr_expect_eq(sqlite_desk_jobs(&desk), 3, "%s", cases[i].where);
    }
}

/* What is put as if it were there, what is new twice, what is removed that is not there: how many
 * jobs there are is known when the file is opened again. */
Test(sqlite_batch, that_is_wrong_about_what_is_there_is_counted_right)
{
    due_change changes[6];
    size_t n = 0;

    for (unsigned char i = 1; i <= 4; i++)
        changes[n++] = batch_change(DUE_CHANGE_PUT, i);
    changes[n++] = batch_change(DUE_CHANGE_DROP, 9);
    changes[n++] = batch_change(DUE_CHANGE_DROP, 4);
    cr_assert_eq(batch_commit(changes, n), 0);
    cr_expect_str_eq(sqlite_desk_ask(beside, "SELECT jobs FROM owner"), "3");
    changes[0] = batch_change(DUE_CHANGE_DROP, 8);
    cr_assert_eq(batch_commit(changes, 1), 0);
    sqlite_desk_shut(&desk);
    cr_assert_eq(sqlite_desk_open(&desk), 0);
    cr_expect_eq(desk.info.jobs, 3u);
    cr_expect_eq(sqlite_desk_jobs(&desk), 3);
}
