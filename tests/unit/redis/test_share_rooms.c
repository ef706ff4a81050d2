/* test_share_rooms.c - small rooms of the shared face of the Redis store by themselves: what is
 * held, whose turn it is, what is told of a process, in which topics something is due next.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "redis/share/share.h"

static struct due__share share; /* the test's own: each runs in a process of its own */

/* ---- What is held ---------------------------------------------------------------------------- */

#define JOBS 700

static due_id id_of(uint64_t n)
{
    due_id id = { { 0 } };

    for (int i = 0; i < 7; i++)
        id.byte[DUE_STORE_ID_BYTES - 1 - i] = (unsigned char)(n >> (8 * i));
    return id;
}

static struct due__share_hold hold_of(uint64_t n, uint64_t held, int64_t end_us)
{
    return (struct due__share_hold){ id_of(n), held, end_us, (int64_t)n, held % 2 == 0 };
}

/* Each has what it was given last, and those that live are counted. */
static void compare(const struct due__share_hold *model, int64_t now_us, int step)
{
    size_t live = 0;

    share.now_us = now_us;
    for (uint64_t i = 0; i < JOBS; i++) {
        const struct due__share_hold *at = due__hold_find(&share.holds, id_of(i));

        cr_assert_eq(at != NULL, model[i].held != 0, "step %d: job %d", step, (int)i);
        if (at != NULL)
            cr_assert(at->held == model[i].held && at->end_us == model[i].end_us &&
                          at->until_us == model[i].until_us && at->tied == model[i].tied,
                      "step %d: job %d", step, (int)i);
        live += model[i].held != 0 && model[i].end_us > now_us;
    }
    cr_assert_eq(due__holds_live(&share), live, "step %d", step);
}

Test(share_holds, are_those_of_a_model, .timeout = 60)
{
    static struct due__share_hold model[JOBS];

    srand(11);
    for (int step = 1; step <= 40000; step++) {
        uint64_t n = (uint64_t)(rand() % JOBS);

        if (rand() % 2 == 0) {
            model[n] = hold_of(n, (uint64_t)step, rand() % 1000);
            cr_assert(due__hold_add(&share.holds, model[n], INT64_MIN));
        } else {
            model[n].held = 0;
            due__hold_remove(&share.holds, id_of(n));
        }
        if (step % 100 == 0)
            compare(model, rand() % 1000, step);
    }
    free(share.holds.at);
}

/* Whoever claims for a month takes no more memory than what it holds needs. */
Test(share_holds, do_not_grow_with_those_whose_leases_are_long_over, .timeout = 60)
{
    for (uint64_t i = 1; i <= 10000; i++) {
        cr_assert(due__hold_add(&share.holds, hold_of(i, i, (int64_t)i), (int64_t)i - 9));
        for (uint64_t k = i > 9 ? i - 9 : 1; k <= i; k++)
            cr_assert_not_null(due__hold_find(&share.holds, id_of(k)), "%d of %d", (int)k, (int)i);
    }
    cr_expect_leq(share.holds.room, 256u);
    free(share.holds.at);
}

/* The longest row of taken slots, along which whoever looks for a job has to go. */
static size_t longest_row(void)
{
    const struct due__share_holds *h = &share.holds;
    size_t longest = 0;
    size_t row = 0;

    for (size_t i = 0; i < 2 * h->room; i++) { /* twice, for a row that goes over the end */
        row = h->at[i % h->room].held != 0 ? row + 1 : 0;
        longest = row > longest ? row : longest;
    }
    return longest;
}

/* Jobs that were put in one after another, or each so many-th of them. */
Test(share_holds, of_jobs_that_run_do_not_stand_in_one_row, .timeout = 60)
{
    static const uint64_t steps[] = { 1, 2, 8, 100, 256, 1 << 16, 1 << 24 };

    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        share.holds = (struct due__share_holds){ 0 };
        for (uint64_t i = 0; i < 1000; i++)
            cr_assert(due__hold_add(&share.holds, hold_of(i * steps[s], i + 1, 1), INT64_MIN));
        cr_expect_leq(longest_row(), 60u, "step %zu: %zu", s, longest_row());
        free(share.holds.at);
    }
}

/* ---- Whose turn it is ------------------------------------------------------------------------ */

Test(share_turn, is_not_waited_for_when_time_is_over, .timeout = 60)
{
    static const int64_t past[] = { -1, 0, 999999999, DUE_S(1), 1999999999 };

    cr_assert(due__share_turn_begin(&share));
    cr_assert(due__share_enter(&share, 0, due__mono_ns()));
    for (size_t i = 0; i < sizeof past / sizeof past[0]; i++)
        for (int lane = 0; lane < 2; lane++)
            cr_expect_not(due__share_enter(&share, lane, past[i]), "%d", (int)i);
    due__share_exit(&share);
    cr_expect(due__share_enter(&share, 0, due__mono_ns()), "nobody waits any more");
    due__share_exit(&share);
    due__share_turn_end(&share);
}

static void *exit_soon(void *arg)
{
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    due__share_exit(&share);
    return arg;
}

Test(share_turn, is_waited_for_as_long_as_there_is_time, .timeout = 60)
{
    pthread_t thread;

    cr_assert(due__share_turn_begin(&share));
    for (int lane = 0; lane < 2; lane++) {
        cr_assert(due__share_enter(&share, 0, due__mono_ns()));
        cr_assert_eq(pthread_create(&thread, NULL, exit_soon, NULL), 0);
        cr_expect(due__share_enter(&share, lane, due__mono_ns() + DUE_S(30)));
        pthread_join(thread, NULL);
        due__share_exit(&share);
    }
    due__share_turn_end(&share);
}

/* ---- What is told of a process --------------------------------------------------------------- */

static bool read_text(const char *number, const char *text, struct due_process_seen *seen,
                      char host[256])
{
    redisReply writer = { .type = REDIS_REPLY_STRING };
    redisReply told = { .type = REDIS_REPLY_STRING };
    char words[2][400];

    snprintf(words[0], sizeof words[0], "%s", number);
    snprintf(words[1], sizeof words[1], "%s", text);
    writer.str = words[0];
    told.str = words[1];
    writer.len = strlen(number);
    told.len = strlen(text);
    return due__share_read_process(&writer, &told, seen, host);
}

Test(share_people, are_read_as_they_were_written)
{
    struct due_process_seen seen;
    char host[256];

    cr_assert(read_text("17", "my host 7 42 1000 9223372036854775", &seen, host));
    cr_expect_str_eq(seen.host, "my host");
    cr_expect(seen.writer == 17 && seen.held == 7 && seen.pid == 42);
    cr_expect_eq(seen.started_ns, 1000000);
    cr_expect_eq(seen.seen_ns, INT64_C(9223372036854775000), "the last that there is");
    cr_assert(read_text("1", "host 42 1000 2000", &seen, host), "of an older version");
    cr_expect_str_eq(seen.host, "host");
    cr_expect(seen.held == 0 && seen.pid == 42);
}

Test(share_people, that_make_no_sense_are_nobody)
{
    static const char *const texts[] = { "",
                                         "host",
                                         "host 1",
                                         "host 1 2",
                                         "host 7 42 1000 9223372036854776",
                                         "host 7 42 x 2000",
                                         "host 7 42 1000 ",
                                         "host 7 -42 1000 2000" };
    struct due_process_seen seen;
    char host[256];
    char text[400];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        cr_expect_not(read_text("17", texts[i], &seen, host), "%s", texts[i]);
    cr_expect_not(read_text("x", "host 7 42 1000 2000", &seen, host));
    snprintf(text, sizeof text, "%0243d 7 42 1000 2", 1);
    cr_assert_eq(strlen(text), 255u);
    cr_expect(read_text("17", text, &seen, host));
    snprintf(text, sizeof text, "%0244d 7 42 1000 2", 1);
    cr_expect_not(read_text("17", text, &seen, host), "too long");
}

/* ---- In which topics something is due next --------------------------------------------------- */

/* Names and times, as a claim tells them. */
static void note(const char *const *names, size_t n)
{
    redisReply replies[16];
    redisReply *words[16];
    char text[8][400];

    cr_assert_leq(2 * n, 16u);
    for (size_t i = 0; i < 2 * n; i++) {
        snprintf(text[i / 2], sizeof text[0], "%s", names[i / 2]);
        replies[i] = (redisReply){ .type = REDIS_REPLY_STRING, .str = text[i / 2] };
        replies[i].len = strlen(text[i / 2]);
        words[i] = &replies[i];
    }
    due__share_note_heads(&share, words, 2 * n);
}

static void expect_recent(const char *const *names, size_t n)
{
    cr_assert_eq(share.n_recent, n, "%d", (int)share.n_recent);
    for (size_t i = 0; i < n; i++)
        cr_expect_str_eq(share.recent[i], names[i]);
}

/* The topics that were told last come first, in their order; a name that is nobody's takes no
 * other's place. */
Test(share_heads, come_in_the_order_in_which_they_were_told)
{
    static const char *const told[] = { "a", "b", "c", "d", "e" };
    static const char *const then[] = { "d", "x", "a" };
    static const char *const all[] = { "d", "x", "a", "b", "c", "e" };
    static const char *const eight[] = { "1", "2", "3", "4", "5", "6", "7", "8" };
    const char *names[6];
    char longest[301];

    memset(longest, 'l', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    names[0] = longest;
    memcpy(names + 1, told, sizeof told);
    note(names, 6);
    expect_recent(told, 5);
    note(then, 3);
    expect_recent(all, 6);
    note(eight, 8);
    expect_recent(eight, 8);
    due__share_note_topic(&share, "9", 1);
    expect_recent(eight, 8);
    note(then, 1);
    cr_expect_str_eq(share.recent[0], "d");
    cr_expect_str_eq(share.recent[1], "1");
    cr_expect_str_eq(share.recent[7], "7");
}
