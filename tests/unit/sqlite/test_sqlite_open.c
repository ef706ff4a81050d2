/* Opening a file: which are refused and stay as they are, and who has it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lab/sqlite/sqlite_desk.h"

static struct sqlite_desk desk;

static void begin(void)
{
    sqlite_desk_begin(&desk);
}

static void end(void)
{
    sqlite_desk_end(&desk);
}

TestSuite(sqlite_open, .init = begin, .fini = end, .timeout = 20);

static void says(const char *part)
{
    cr_expect(strstr(desk.error.text, part) != NULL, "\"%s\" lacks \"%s\"", desk.error.text, part);
}

static int tried(const char *path, due_sqlite_options options)
{
    due_store *store = NULL;
    int rc = due_sqlite_open(&store, path, &options, &desk.error);

    cr_expect((rc == 0) == (store != NULL));
    due_sqlite_free(store);
    return rc;
}

Test(sqlite_open, refuses_paths_and_options_that_make_no_sense)
{
    due_sqlite_options good = { DUE_SQLITE_OPTIONS_INIT };
    due_sqlite_options odd = good;
    char longest[5000];

    cr_expect_eq(tried("jobs.db", good), 0);
    cr_expect_eq(tried("", good), DUE_EINVAL);
    cr_expect_eq(tried("folder/", good), DUE_EINVAL);
    cr_expect_eq(tried(":memory:", good), DUE_EINVAL);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    cr_expect_eq(tried(longest, good), DUE_ELIMIT);
    odd.reserved[3] = 1;
    cr_expect_eq(tried("jobs.db", odd), DUE_EINVAL);
    odd = good;
    odd.durability = (enum due_durability)9;
    cr_expect_eq(tried("jobs.db", odd), DUE_EINVAL);
    odd = good;
    odd.batch_changes = 16385;
    cr_expect_eq(tried("jobs.db", odd), DUE_EINVAL);
    odd.size = 0;
    cr_expect_eq(tried("jobs.db", odd), DUE_EINVAL);
    due_sqlite_free(NULL);
}

Test(sqlite_open, takes_options_up_to_their_bounds_and_none_at_all)
{
    due_sqlite_options most = { DUE_SQLITE_OPTIONS_INIT };
    due_sqlite_options more;
    char path[1024];
    due_store *store;

    cr_expect_eq(due_sqlite_open(&store, "jobs.db", NULL, NULL), 0);
    due_sqlite_free(store);
    most.batch_changes = 16384;
    most.cache_bytes = (size_t)1 << 40;
    most.durability = DUE_DURABLE_ALWAYS;
    cr_expect_eq(tried("jobs.db", most), 0);
    more = most;
    more.cache_bytes++;
    cr_expect_eq(tried("jobs.db", more), DUE_EINVAL);
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    cr_expect_eq(tried(path, most), 0, "with its end it just fits");
    cr_assert_eq(chdir("/usr"), 0);
    cr_expect_eq(tried(path + strlen("/usr/"), most), 0);
    cr_expect_eq(tried(path + strlen("/usr/") - 1, most), DUE_ELIMIT);
}

/* ---- Files that are none of ours ------------------------------------------------------------- */

static void write_file(const char *text)
{
    FILE *file = fopen(desk.place.path, "w");

    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

Test(sqlite_open, leaves_a_file_alone_that_is_no_database)
{
    char text[64] = "";

    write_file("dear diary, today I wrote a queue, and it kept all my jobs");
    cr_expect_eq(sqlite_desk_open(&desk), DUE_ENOTSUP);
    says("is no SQLite database");
    FILE *file = fopen(desk.place.path, "r");
    cr_expect_str_eq(fgets(text, sizeof text, file),
                     "dear diary, today I wrote a queue, and it kept all my jobs");
    fclose(file);
}

Test(sqlite_open, leaves_the_database_of_another_program_alone)
{
    sqlite3 *db = sqlite_desk_other(&desk);

    sqlite_desk_ask(db, "CREATE TABLE job (a)");
    cr_expect_eq(sqlite_desk_open(&desk), DUE_ENOTSUP);
    says("another program");
    cr_expect_str_eq(sqlite_desk_ask(db, "PRAGMA journal_mode"), "delete");
    cr_expect_str_eq(sqlite_desk_ask(db, "SELECT count(*) FROM sqlite_schema"), "1");
    sqlite3_close(db);
}

Test(sqlite_open, refuses_a_newer_format)
{
    cr_assert_eq(sqlite_desk_open(&desk), 0);
    sqlite_desk_shut(&desk);
    sqlite3 *db = sqlite_desk_other(&desk);
    sqlite_desk_ask(db, "PRAGMA user_version = 2");
    sqlite3_close(db);
    cr_expect_eq(sqlite_desk_open(&desk), DUE_EVERSION);
    says("format 2");
}

Test(sqlite_open, refuses_the_queue_of_another_name)
{
    cr_assert_eq(sqlite_desk_open(&desk), 0);
    sqlite_desk_shut(&desk);
    cr_expect_eq(sqlite_desk_open_as(&desk, "mail", 0), DUE_ENOTSUP);
    says("holds the queue queue, not mail");
    cr_expect_eq(sqlite_desk_open_as(&desk, "no/name", 0), DUE_EINVAL);
    cr_expect_eq(sqlite_desk_open(&desk), 0);
}

Test(sqlite_open, says_why_a_file_cannot_be_made)
{
    char path[96];

    memcpy(path, desk.place.path, sizeof path);
    snprintf(desk.place.path, sizeof desk.place.path, "%.60s/none/jobs.db", desk.place.folder);
    cr_expect_eq(sqlite_desk_open(&desk), DUE_ESTORE);
    says("No such file");
    snprintf(desk.place.path, sizeof desk.place.path, "%s", desk.place.folder);
    cr_expect_eq(sqlite_desk_open(&desk), DUE_ESTORE);
    sqlite_place_unlink(&desk.place, "-owner");
    memcpy(desk.place.path, path, sizeof path);
    desk.place.options.must_exist = 1;
    cr_expect_eq(sqlite_desk_open(&desk), DUE_ESTORE);
    cr_expect_eq(access(desk.place.path, F_OK), -1);
}

/* No text names it as "//". */
Test(sqlite_open, names_a_file_in_the_root_folder_as_it_is_called)
{
    char before[96];

    memcpy(before, desk.place.path, sizeof before);
    snprintf(desk.place.path, sizeof desk.place.path, "/none-%ld.db", (long)getpid());
    desk.place.options.must_exist = 1;
    cr_expect_neq(sqlite_desk_open(&desk), 0);
    cr_expect_eq(strncmp(desk.error.text, "/none-", 6), 0, "%s", desk.error.text);
    sqlite_place_unlink(&desk.place, "-owner");
    memcpy(desk.place.path, before, sizeof before);
}

/* A store that was refused may be opened once more. */
Test(sqlite_open, says_nothing_of_what_was_wrong_before)
{
    struct sqlite_desk second = desk;
    struct due_store_open how = {
        .name = "queue", .now = sqlite_desk_now, .log = sqlite_desk_log, .queue = &second
    };

    cr_assert_eq(sqlite_desk_open(&desk), 0);
    second.store = sqlite_place_store(&second.place);
    const struct due_store_verbs *verbs = second.store->verbs;
    cr_expect_eq(verbs->open(second.store, &how, &second.info, &second.error), DUE_EBUSY);
    cr_expect_neq(second.error.text[0], '\0');
    cr_expect_neq(second.error.hint[0], '\0');
    how.name = "no/name";
    cr_expect_eq(verbs->open(second.store, &how, &second.info, &second.error), DUE_EINVAL);
    cr_expect_str_eq(second.error.text, "");
    cr_expect_str_eq(second.error.hint, "");
    due_sqlite_free(second.store);
}

/* ---- Who has it ------------------------------------------------------------------------------ */

Test(sqlite_open, finds_the_owner_by_every_name_of_the_file)
{
    char link_path[96];
    struct sqlite_desk second = desk;

    cr_assert_eq(sqlite_desk_open(&desk), 0);
    snprintf(link_path, sizeof link_path, "%.60s/link.db", desk.place.folder);
    cr_assert_eq(symlink(desk.place.path, link_path), 0);
    memcpy(second.place.path, link_path, sizeof link_path);
    cr_expect_eq(sqlite_desk_open(&second), DUE_EBUSY);
    cr_expect(strstr(second.error.text, "this process") != NULL, "%s", second.error.text);
    unlink(link_path);
}

Test(sqlite_open, that_is_refused_costs_no_memory)
{
    struct sqlite_desk second = desk;
    int refused = 0;

    cr_assert_eq(sqlite_desk_open(&desk), 0);
    refused += sqlite_desk_open(&second) == DUE_EBUSY;
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 100; i++)
        refused += sqlite_desk_open(&second) == DUE_EBUSY;
    size_t after = mallinfo2().uordblks;
    cr_expect_eq(refused, 101);
    cr_expect_lt(after - before, 1000u, "%zu bytes did not go back", after - before);
}

static bool no_room;

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    if (!no_room)
        return syscall(SYS_pwrite64, fd, bytes, len, at);
    errno = ENOSPC;
    return -1;
}

/* A file beside that says a half of it would name somebody else. */
Test(sqlite_open, names_nobody_where_there_is_no_room_for_it)
{
    char path[128];
    struct stat file;

    snprintf(path, sizeof path, "%s-owner", desk.place.path);
    no_room = true;
    cr_assert_eq(sqlite_desk_open(&desk), 0);
    no_room = false;
    cr_assert_eq(stat(path, &file), 0);
    cr_expect_eq(file.st_size, 0);
    cr_expect_eq(sqlite_desk_put(&desk, 1, DUE_S(5)), 0);
}

/* A process that opens the file and tells so through the pipe; then it does as @then says. */
static pid_t owner_process(void (*then)(void))
{
    int ready[2];
    char byte = 0;

    cr_assert_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (sqlite_desk_open(&desk) != 0 || sqlite_desk_put(&desk, 1, DUE_S(5)) != 0)
            _exit(1);
        then();
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(0);
    }
    close(ready[1]);
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void nothing(void) {}

static pid_t *child_of_owner;

/* It outlives its parent, and has all that its parent had open. */
static void leave_a_child(void)
{
    pid_t child = fork();

    if (child == 0) {
        pause();
        _exit(0);
    }
    *child_of_owner = child;
}

Test(sqlite_open, names_the_process_that_has_it)
{
    char text[32];
    pid_t pid = owner_process(nothing);

    cr_expect_eq(sqlite_desk_open_as(&desk, "queue", DUE_MS(20)), DUE_EBUSY);
    snprintf(text, sizeof text, "pid %ld on ", (long)pid);
    says(text);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    cr_expect_eq(sqlite_desk_open(&desk), 0);
    cr_expect_eq(sqlite_desk_jobs(&desk), 1);
}

Test(sqlite_open, is_free_when_its_owner_was_killed_although_a_child_lives)
{
    child_of_owner = mmap(NULL, sizeof *child_of_owner, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(child_of_owner != MAP_FAILED);
    pid_t pid = owner_process(leave_a_child);
    cr_expect_eq(sqlite_desk_open(&desk), DUE_EBUSY);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    cr_expect_eq(sqlite_desk_open(&desk), 0, "%s", desk.error.text);
    cr_expect_eq(sqlite_desk_jobs(&desk), 1);
    kill(*child_of_owner, SIGKILL);
    munmap(child_of_owner, sizeof *child_of_owner);
}
