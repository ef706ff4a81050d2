/* How the file is used: with which settings, how many descriptors, how many free pages. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <unistd.h>

#include "lab/sqlite/sqlite_desk.h"
#include "sqlite/session.h"

static struct sqlite_desk desk;

static void begin(void)
{
    sqlite_desk_begin(&desk);
}

static void end(void)
{
    sqlite_desk_end(&desk);
}

TestSuite(sqlite_file, .init = begin, .fini = end, .timeout = 20);

/* What the store's own connection answers. */
static int file_setting(const char *pragma)
{
    const struct due__sqlite *inside = (const struct due__sqlite *)(void *)desk.store;

    return atoi(sqlite_desk_ask(inside->db, pragma));
}

Test(sqlite_file, has_the_settings_that_the_options_ask_for)
{
    static const struct {
        enum due_durability level;
        int synchronous;
    } levels[] = { { DUE_DURABLE_NONE, 0 },
                   { DUE_DURABLE_EVERYSEC, 1 },
                   { DUE_DURABLE_ALWAYS, 2 } };

    for (size_t i = 0; i < 3; i++) {
        desk.place.options.durability = levels[i].level;
        desk.place.options.cache_bytes = (size_t)1 << 20;
        cr_assert_eq(sqlite_desk_open(&desk), 0);
        cr_expect_eq(file_setting("PRAGMA synchronous"), levels[i].synchronous);
        cr_expect_eq(file_setting("PRAGMA cache_size"), -1025, "KiB");
        cr_expect_eq(file_setting("PRAGMA wal_autocheckpoint"), 4096);
        cr_expect_eq(file_setting("PRAGMA journal_size_limit"), 64 << 20);
        cr_expect_eq(file_setting("PRAGMA temp_store"), 2, "in memory");
        cr_expect_eq(file_setting("PRAGMA cell_size_check"), 1);
        cr_expect_eq(file_setting("PRAGMA auto_vacuum"), 2, "when it is asked for");
        const struct due__sqlite *inside = (const struct due__sqlite *)(void *)desk.store;
        cr_expect_eq(inside->page_bytes, file_setting("PRAGMA page_size"));
        sqlite_desk_shut(&desk);
    }
}

/* Else a disk that is full would hold up what only removes. */
Test(sqlite_file, has_room_for_what_the_log_holds)
{
    due_change c = { .kind = DUE_CHANGE_PUT, .record = sqlite_desk_record(1), .is_new = 1 };
    static char payload[1 << 20];
    struct stat file;

    cr_assert_eq(sqlite_desk_open(&desk), 0);
    c.record.data = payload;
    c.record.len = sizeof payload;
    cr_assert_eq(sqlite_desk_commit(&desk, &c, DUE_S(5)), 0);
    cr_assert_eq(stat(desk.place.path, &file), 0);
    cr_expect_geq(file.st_size, (off_t)sizeof payload);
    cr_expect_geq(file.st_size,
                  (off_t)file_setting("PRAGMA page_count") * file_setting("PRAGMA page_size"));
    cr_expect_eq(file.st_size % 65536, 0, "it grows by pieces");
}

static void file_put(unsigned char number, void *payload, size_t len)
{
    due_change c = { .kind = DUE_CHANGE_PUT, .record = sqlite_desk_record(number), .is_new = 1 };

    c.record.data = payload;
    c.record.len = (uint32_t)len;
    cr_assert_eq(sqlite_desk_commit(&desk, &c, DUE_S(10)), 0);
}

/* A large job leaves free pages, beside @stays more large ones.  Such pages go back when the store
 * is renewed, but for some that are kept to be used again: at least @kept, and less than @most. */
static void file_frees(unsigned char stays, int most)
{
    enum { LEN = 16 << 20 };
    due_change drop = { .kind = DUE_CHANGE_DROP, .record = sqlite_desk_record(0), .was_ns = 0 };
    void *payload = calloc(1, LEN);
    int64_t held_ns;
    int after;

    cr_assert_not_null(payload);
    desk.place.options.durability = DUE_DURABLE_NONE;
    cr_assert_eq(sqlite_desk_open(&desk), 0);
    for (unsigned char i = 0; i <= stays; i++)
        file_put(i, payload, LEN);
    free(payload);
    cr_assert_eq(sqlite_desk_commit(&desk, &drop, DUE_S(10)), 0);
    cr_assert_gt(file_setting("PRAGMA freelist_count"), 3000);
    for (int i = 0; i < 1000 && file_setting("PRAGMA freelist_count") >= most; i++)
        cr_assert_eq(desk.store->verbs->renew(desk.store, &held_ns, crew_now_ns() + DUE_S(10)), 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(desk.store->verbs->renew(desk.store, &held_ns, crew_now_ns() + DUE_S(10)), 0);
    after = file_setting("PRAGMA freelist_count");
    cr_expect(after < most && after >= most - 256, "%d of %d", after, most);
}

Test(sqlite_file, gives_back_what_a_large_job_took)
{
    file_frees(0, 1024 + 256);
}

/* An eighth of all, where that is more. */
Test(sqlite_file, keeps_more_free_pages_if_it_is_large)
{
    enum { PAGES = 4 * 4096 }; /* of the jobs that stay */

    file_frees(4, PAGES / 7 + 64);
}

static int file_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    cr_assert_not_null(folder);
    while (readdir(folder) != NULL)
        n++;
    closedir(folder);
    return n;
}

/* Removed with its lock, too. */
Test(sqlite_file, that_is_made_again_and_again_costs_no_descriptor)
{
    cr_assert_eq(sqlite_desk_open(&desk), 0);
    int before = file_descriptors();
    for (int i = 0; i < 5; i++) {
        sqlite_place_unlink(&desk.place, NULL);
        cr_expect_eq(desk.store->verbs->ready(desk.store, crew_now_ns() + DUE_S(5)), DUE_ELOST);
    }
    cr_expect_eq(file_descriptors(), before);
}

/* As in a service that has closed its standard input. */
Test(sqlite_file, may_have_the_first_descriptor_there_is)
{
    cr_assert_eq(close(STDIN_FILENO), 0);
    cr_assert_eq(sqlite_desk_open(&desk), 0, "%s", desk.error.text);
    due_change c = { .kind = DUE_CHANGE_PUT, .record = sqlite_desk_record(1), .is_new = 1 };
    cr_expect_eq(sqlite_desk_commit(&desk, &c, DUE_S(5)), 0);
}

Test(sqlite_file, whose_path_is_too_long_costs_no_descriptor)
{
    char path[2000];
    due_store *store;

    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    int before = file_descriptors();
    for (int i = 0; i < 5; i++)
        cr_expect_eq(due_sqlite_open(&store, path, NULL, NULL), DUE_ELIMIT);
    cr_expect_eq(file_descriptors(), before);
}
