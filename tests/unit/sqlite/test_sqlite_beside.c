/* What lies beside a file: the lock of who owns it, and nothing where there is no queue. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "lab/sqlite/sqlite_desk.h"
#include "sqlite/file_lock.h"

static struct sqlite_desk desk;

static void begin(void)
{
    sqlite_desk_begin(&desk);
}

static void end(void)
{
    sqlite_desk_end(&desk);
}

TestSuite(sqlite_beside, .init = begin, .fini = end, .timeout = 60);

static bool is_there(const char *ending)
{
    char path[128];

    snprintf(path, sizeof path, "%s%s", desk.place.path, ending);
    return access(path, F_OK) == 0;
}

static void write_file(const char *ending, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s%s", desk.place.path, ending);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void expect_nothing_beside(void)
{
    static const char *const endings[] = { "-owner", "-wal", "-shm", "-journal" };

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        cr_expect(!is_there(endings[i]), "%s", endings[i]);
}

Test(sqlite_beside, is_nothing_after_a_file_was_refused)
{
    struct stat file;

    write_file("", "dear diary");
    cr_expect_eq(sqlite_desk_open(&desk), DUE_ENOTSUP);
    expect_nothing_beside();
    cr_assert_eq(stat(desk.place.path, &file), 0);
    cr_expect_eq(file.st_size, 10);
}

Test(sqlite_beside, is_nothing_where_no_file_is_made)
{
    desk.place.options.must_exist = 1;
    cr_expect_eq(sqlite_desk_open(&desk), DUE_ESTORE);
    expect_nothing_beside();
    cr_expect(!is_there(""));
}

Test(sqlite_beside, is_nothing_of_an_empty_file_that_is_to_hold_a_queue)
{
    struct stat file;

    write_file("", "");
    desk.place.options.must_exist = 1;
    cr_expect_eq(sqlite_desk_open(&desk), DUE_ENOTSUP);
    cr_expect_not_null(strstr(desk.error.text, "is empty: it holds no queue"), "%s",
                       desk.error.text);
    expect_nothing_beside();
    cr_assert_eq(stat(desk.place.path, &file), 0);
    cr_expect_eq(file.st_size, 0);

    desk.place.options.must_exist = 0;
    cr_expect_eq(sqlite_desk_open(&desk), 0, "it may be made one");
}

Test(sqlite_beside, stays_if_it_was_there_before)
{
    write_file("-owner", "pid 1 on elsewhere\n");
    write_file("", "dear diary");
    cr_expect_eq(sqlite_desk_open(&desk), DUE_ENOTSUP);
    cr_expect(is_there("-owner"));
    unlink(desk.place.path);
    cr_expect_eq(sqlite_desk_open(&desk), 0);
    sqlite_desk_shut(&desk);
    cr_expect(is_there("-owner"), "of a queue it stays");
}

/* Processes that take the lock and undo it, over and over, and are held up anywhere meanwhile: who
 * finds himself with another has locked a file that was removed. */
enum { RIVALS = 3, SECONDS = 1 };

struct arena {
    atomic_int inside;
    atomic_int crowds;
};

static void hold_up(int signal)
{
    (void)signal;
    nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

static void compete(struct arena *arena, const char *path)
{
    const struct sigaction held_up = { .sa_handler = hold_up, .sa_flags = SA_RESTART };
    const struct itimerval often = { { 0, 1300 }, { 0, 1300 } };
    char holder[DUE__HOLDER];

    if (sigaction(SIGALRM, &held_up, NULL) != 0 || setitimer(ITIMER_REAL, &often, NULL) != 0)
        _exit(1);
    for (time_t end = time(NULL) + SECONDS; time(NULL) <= end;) {
        struct due__file_lock *lock;
        int rc = due__file_lock_take(&lock, path, holder);

        if (rc == DUE_EBUSY) {
            sched_yield();
            continue;
        }
        if (rc != 0)
            _exit(1);
        if (atomic_fetch_add(&arena->inside, 1) > 0)
            atomic_fetch_add(&arena->crowds, 1);
        sched_yield();
        atomic_fetch_sub(&arena->inside, 1);
        due__file_lock_undo(lock, path);
    }
    _exit(0);
}

Test(sqlite_beside, is_locked_by_one_although_others_remove_it)
{
    struct arena *arena =
        mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char path[128];
    pid_t rival[RIVALS];

    cr_assert(arena != MAP_FAILED);
    snprintf(path, sizeof path, "%s-owner", desk.place.path);
    for (int i = 0; i < RIVALS; i++) {
        rival[i] = fork();
        if (rival[i] == 0)
            compete(arena, path);
    }
    for (int i = 0; i < RIVALS; i++) {
        int status;

        cr_assert_eq(waitpid(rival[i], &status, 0), rival[i]);
        cr_expect_eq(status, 0);
    }
    cr_expect_eq(atomic_load(&arena->crowds), 0);
    cr_expect(!is_there("-owner"));
    munmap(arena, sizeof *arena);
}
