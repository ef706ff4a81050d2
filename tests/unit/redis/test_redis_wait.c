/* test_redis_wait.c - what all stores have: waiting for a socket and for a bell, a line that is
 * told, names. */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/name.h"
#include "base/time.h"
#include "base/wait.h"
#include "due/due.h"
#include "lab/crew.h"

static int ends[2]; /* of a pipe */
static int bell;

static void begin(void)
{
    cr_assert_eq(pipe(ends), 0);
    bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    cr_assert_geq(bell, 0);
}

static void end(void)
{
    close(ends[0]);
    close(ends[1]);
    close(bell);
}

TestSuite(wait, .init = begin, .fini = end, .timeout = 60);

static void say(void)
{
    cr_assert_eq(write(ends[1], "x", 1), 1);
}

static void ring(void)
{
    cr_assert_eq(write(bell, &(uint64_t){ 1 }, sizeof(uint64_t)), (ssize_t)sizeof(uint64_t));
}

/* Awake or asleep. */
static enum due__wait wait_for(bool awake, int64_t ns)
{
    struct due__ears ears = { ends[0], POLLIN, bell };

    return due__wait(&ears, awake ? INT64_MAX : 0, due__ns_after(due__mono_ns(), ns));
}

Test(wait, ends_when_its_time_is_up_and_not_before)
{
    for (int awake = 0; awake < 2; awake++) {
        int64_t began = due__mono_ns();

        cr_expect_eq(wait_for(awake != 0, DUE_MS(30)), DUE__WAIT_TIME);
        cr_expect_geq(due__mono_ns() - began, DUE_MS(30));
    }
}

/* Each of these would take a second if it were waited for. */
Test(wait, does_not_begin_when_its_time_is_over)
{
    int64_t began = due__mono_ns();

    for (int i = 0; i < 20; i++) {
        cr_expect_eq(wait_for(false, -i), DUE__WAIT_TIME);
        cr_expect_eq(wait_for(true, -i), DUE__WAIT_TIME);
    }
    cr_expect_lt(due__mono_ns() - began, DUE_S(15));
}

/* Who has rung is heard whatever comes on the socket, and once. */
Test(wait, hears_the_bell_and_the_socket_and_tells_them_apart)
{
    for (int i = 0; i < 4; i++) {
        bool awake = i % 2 == 1;
        int64_t ns = i < 2 ? DUE_S(40) : 0;

        ring();
        cr_expect_eq(wait_for(awake, ns), DUE__WAIT_BELL);
        cr_expect_eq(wait_for(awake, 0), DUE__WAIT_TIME, "it is quiet again");
        ring();
        ring();
        say();
        cr_expect_eq(wait_for(awake, ns), DUE__WAIT_BOTH);
        cr_expect_eq(wait_for(awake, ns), DUE__WAIT_READY);
        cr_assert_eq(read(ends[0], (char[2]){ 0 }, 2), 1);
        cr_expect_eq(wait_for(awake, 0), DUE__WAIT_TIME);
    }
}

Test(wait, is_for_one_of_them_where_the_other_is_none)
{
    struct due__ears deaf = { ends[0], POLLIN, -1 };
    struct due__ears alone = { -1, 0, bell };

    cr_expect_eq(due__wait(&deaf, 0, due__mono_ns()), DUE__WAIT_TIME);
    cr_expect_eq(due__wait(&alone, 0, due__mono_ns()), DUE__WAIT_TIME);
    say();
    ring();
    cr_expect_eq(due__wait(&deaf, 0, due__mono_ns() + DUE_S(40)), DUE__WAIT_READY);
    cr_expect_eq(due__wait(&alone, 0, due__mono_ns() + DUE_S(40)), DUE__WAIT_BELL);
}

static int say_soon(void *arg)
{
    crew_sleep(DUE_MS(30));
    say();
    return arg != NULL;
}

/* Who is awake looks on until something comes. */
Test(wait, goes_on_until_something_comes)
{
    for (int awake = 0; awake < 2; awake++) {
        struct crew_thread thread;

        crew_go(&thread, say_soon, NULL);
        cr_expect_eq(wait_for(awake != 0, DUE_S(40)), DUE__WAIT_READY);
        cr_expect_eq(crew_join(&thread), 0);
        cr_assert_eq(read(ends[0], (char[2]){ 0 }, 2), 1);
    }
}

/* A peer that is gone is something that is heard, too. */
/* Whoever else listens to it was faster: there is a byte, and no ring. */
Test(wait, goes_on_where_the_bell_has_nothing_to_say)
{
    int quiet[2];

    cr_assert_eq(pipe(quiet), 0);
    struct due__ears e = { .bell = ends[0], .fd = quiet[0], .events = POLLIN };
    say();
    int64_t until_ns = due__ns_after(due__mono_ns(), DUE_MS(20));
    cr_expect_eq(due__wait(&e, 0, until_ns), DUE__WAIT_TIME);
    cr_expect_geq(due__mono_ns(), until_ns);
    close(quiet[0]);
    close(quiet[1]);
}

Test(wait, hears_that_the_other_end_is_closed)
{
    close(ends[1]);
    cr_expect_eq(wait_for(false, DUE_S(40)), DUE__WAIT_READY);
    ends[1] = -1;
}

/* ---- A line that is told --------------------------------------------------------------------- */

static char told[1024];
static enum due_log_level told_level;

static void tell(void *queue, enum due_log_level level, const char *text)
{
    cr_expect_eq(queue, told);
    told_level = level;
    snprintf(told, sizeof told, "%s", text);
}

Test(line, is_told_to_whoever_listens_and_cut_where_it_is_too_long)
{
    struct due_store_open how = { .queue = told };
    char text[300];

    due__store_log(&how, DUE_LOG_ERROR, "nobody listens");
    cr_expect_str_empty(told);
    how.log = tell;
    due__store_log(&how, DUE_LOG_ERROR, "%d of %s", 5, "seven");
    cr_expect_str_eq(told, "5 of seven");
    cr_expect_eq(told_level, DUE_LOG_ERROR);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    due__store_log(&how, DUE_LOG_INFO, "%s", text);
    cr_expect_eq(strlen(told), 255u);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static bool is_name(const char *text, size_t most)
{
    char name[DUE__NAME_MAX + 2] = "";

    snprintf(name, sizeof name, "%s", text);
    return due__is_name(name, most);
}

Test(name, is_one_to_64_letters_that_need_no_quoting)
{
    char text[66];

    cr_expect_not(is_name("", DUE__NAME_MAX));
    cr_expect(is_name("Az_9.-", DUE__NAME_MAX));
    cr_expect_not(is_name("a b", DUE__NAME_MAX));
    cr_expect_not(is_name("a:", DUE__NAME_MAX));
    cr_expect_not(is_name("abc", 2));
    memset(text, 'n', sizeof text);
    text[65] = '\0';
    cr_expect_not(is_name(text, DUE__NAME_MAX));
    text[64] = '\0';
    cr_expect(is_name(text, DUE__NAME_MAX));
}
