/* What is said of a file that cannot be used, once, and when it can be used again. */
#include <criterion/criterion.h>

#include "lab/sqlite/disk_vfs.h"
#include "lab/sqlite/sqlite_desk.h"

static struct sqlite_desk desk;

static void begin(void)
{
    sqlite_desk_begin(&desk);
    disk_begin(desk.place.path);
    cr_assert_eq(sqlite_desk_open(&desk), 0, "%s", desk.error.text);
}

static void end(void)
{
    sqlite_desk_end(&desk);
    disk_end();
}

TestSuite(sqlite_told, .init = begin, .fini = end, .timeout = 20);

/* Two commits fail so, and the next ones do not: what is said of each, if anything is. */
static void fails(enum disk_kind kind, int code, int rc, const char *said)
{
    disk.code = code;
    for (int again = 0; again < 2; again++) {
        disk.next[kind] = true;
        desk.log[0] = '\0';
        cr_assert_eq(sqlite_desk_put(&desk, 1, DUE_MS(100)), rc);
        if (said == NULL || again > 0)
            cr_expect_str_empty(desk.log);
        else
            cr_expect(strstr(desk.log, said) != NULL, "%s", desk.log);
        if (rc == DUE_EINDOUBT) /* it is seen through by its number */
            break;
    }
    desk.log[0] = '\0';
    cr_assert_eq(sqlite_desk_put(&desk, 1, DUE_S(5)), 0);
    cr_expect_eq(strstr(desk.log, "can be used again") != NULL, said != NULL, "%s", desk.log);
    desk.log[0] = '\0';
    cr_assert_eq(sqlite_desk_put(&desk, 2, DUE_S(5)), 0);
    cr_expect_str_empty(desk.log);
}

Test(sqlite_told, that_it_cannot_be_written_to)
{
    fails(DISK_WRITE, SQLITE_PERM, DUE_EACCES, "cannot be written to");
    fails(DISK_WRITE, SQLITE_READONLY, DUE_EACCES, "cannot be written to");
}

Test(sqlite_told, that_it_is_not_known_whether_a_batch_is_on_the_disk)
{
    fails(DISK_SYNC, SQLITE_IOERR_FSYNC, DUE_EINDOUBT, "the store cannot be used");
}

/* The caller is told, who may do something about it. */
Test(sqlite_told, nothing_of_a_disk_that_is_full)
{
    fails(DISK_WRITE, SQLITE_FULL, DUE_ENOSPC, NULL);
}
