/* What closing says in the log of the jobs that were left. */
#include <stdio.h>

#include "lab/shop.h"
#include "lab/take.h"

static struct {
    unsigned left, discarded, unconfirmed;
    char line[256];
} said;

static void listen(void *ctx, enum due_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    said.left += strstr(text, "left in the store") != NULL;
    said.discarded += strstr(text, "discarded") != NULL;
    said.unconfirmed += strstr(text, "before the store had confirmed") != NULL;
    snprintf(said.line, sizeof said.line, "%s", text);
}

static void no_discard(void *ctx, const due_job *job)
{
    (void)job;
    ++*(unsigned *)ctx;
}

static void expect_line(const char *end, unsigned left, unsigned discarded)
{
    cr_expect_eq(said.left, left);
    cr_expect_eq(said.discarded, discarded);
    cr_expect_not_null(strstr(said.line, end), "%s", said.line);
}

/* Two jobs wait, one is due, one is reserved: that stays too, but it is its holder's. */
Test(close_log, of_a_stored_queue_says_that_its_jobs_are_left_in_the_store, .timeout = 60)
{
    unsigned discards = 0;
    struct shop s =
        shop_make(.with.on_log = listen, .with.on_discard = no_discard, .with.ctx = &discards);
    due_job job;

    lab_enqueue(&s.lab, "reserved", .at_ns = 0);
    cr_assert_eq(take_leased(s.lab.q, &job, DUE_S(5), DUE_S(20)), 0);
    lab_enqueue(&s.lab, "due", .at_ns = 0);
    lab_enqueue(&s.lab, "a", .delay_ns = 50);
    lab_enqueue(&s.lab, "b", .delay_ns = 60);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    memset(&said, 0, sizeof said);
    cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    expect_line("closed with 3 jobs left in the store", 1, 0);
    cr_expect_eq(said.unconfirmed, 0u);
    cr_expect_eq(discards, 0u);
    due_job_done(&job);
    cr_expect_eq(memory_disk_jobs(s.disk), 4u);
    shop_close(&s);
}

Test(close_log, of_a_queue_in_memory_says_that_its_jobs_are_discarded, .timeout = 60)
{
    unsigned discards = 0;
    struct lab lab =
        lab_open(.with.on_log = listen, .with.on_discard = no_discard, .with.ctx = &discards);

    lab_enqueue(&lab, "due", .at_ns = 0);
    lab_enqueue(&lab, "a", .delay_ns = 50);
    memset(&said, 0, sizeof said);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    expect_line("closed with 2 jobs discarded", 0, 1);
    cr_expect_eq(discards, 2u);
    lab_close(&lab);
}

Test(close_log, of_an_empty_queue_says_nothing, .timeout = 60)
{
    unsigned discards = 0;
    struct lab lab =
        lab_open(.with.on_log = listen, .with.on_discard = no_discard, .with.ctx = &discards);

    memset(&said, 0, sizeof said);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    expect_line("", 0, 0);
    lab_close(&lab);
}

/* Nor of one whose jobs nobody could read. */
Test(close_log, of_a_stored_queue_whose_store_is_away_says_nothing_of_jobs, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    unsigned discards = 0;

    s.store = memory_store_new(s.disk);
    shop_fail(&s, MEMORY_LOAD, MEMORY_ALWAYS, MEMORY_AWAY);
    s.lab = lab_open(.with.store = s.store, .with.store_timeout_ns = DUE_MS(20),
                     .with.on_log = listen, .with.on_discard = no_discard, .with.ctx = &discards);
    cr_assert(lab_stats(&s.lab).loading, "this proves nothing");
    memset(&said, 0, sizeof said);
    cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    expect_line("", 0, 0);
    shop_close(&s);
}

/* The dead are among them; and where there is nothing, nothing is said. */
Test(close_log, counts_the_dead_too, .timeout = 60)
{
    for (unsigned waiting = 0; waiting < 3; waiting++) {
        for (unsigned dead = 0; dead < 3; dead++) {
            unsigned discards = 0;
            struct lab lab = lab_open(.start_ns = 5, .with.on_log = listen,
                                      .with.on_discard = no_discard, .with.ctx = &discards);
            char text[64];
            due_job job;

            for (unsigned i = 0; i < dead; i++) {
                lab_enqueue(&lab, "dead", .at_ns = 5);
                cr_assert_eq(take_leased(lab.q, &job, 50, 0), 0);
                cr_assert_eq(due_bury(&job, "so"), 0);
            }
            for (unsigned i = 0; i < waiting; i++)
                lab_enqueue(&lab, "waits", .delay_ns = 50);
            memset(&said, 0, sizeof said);
            cr_expect_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
            snprintf(text, sizeof text, "closed with %u jobs discarded", waiting + dead);
            if (waiting + dead > 0)
                expect_line(text, 0, 1);
            else
                cr_expect_eq(said.left + said.discarded + said.unconfirmed, 0u);
            cr_expect_eq(discards, waiting + dead);
            lab_close(&lab);
        }
    }
}
