/* What pools of workers do, in the text of their queue. */
#include <math.h>
#include <stdio.h>

#include "due/metrics.h"
#include "lab/exposition.h"
#include "lab/workers_lab.h"

/* The value of @name, with the labels @more, of the pool @pool; NAN if it is not there. */
static double value(struct lab *lab, const char *name, const char *pool, const char *more)
{
    char line[256];
    char *text = exposition_text(lab->q);

    cr_assert_not_null(text);
    const char *bad = exposition_check(text);
    cr_expect_null(bad, "%s", bad);
    snprintf(line, sizeof line, "%s{queue=\"queue\",pool=\"%s\"%s%s}", name, pool,
             more != NULL ? "," : "", more != NULL ? more : "");
    double v = exposition_value(text, line);
    free(text);
    return v;
}

static void handle_one(struct lab *lab, struct desk *desk, due_answer answer)
{
    uint64_t before = desk_stats(desk).handled;

    lab_enqueue(lab, "tea", .delay_ns = 0);
    desk_until_begun(desk);
    desk_let_go(desk, answer);
    WAIT_UNTIL(desk_stats(desk).handled == before + 1);
}

LAB_TEST(workers_figures, say_what_runs_and_how_it_ended)
{
    struct lab lab = lab_open();

    cr_expect(isnan(value(&lab, "due_workers_threads", "workers", NULL)), "there is no pool");
    struct desk desk = desk_open(&lab, 2);
    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    WAIT_UNTIL(desk_stats(&desk).idle == 1);
    cr_expect_eq(value(&lab, "due_workers_threads", "workers", NULL), 2);
    cr_expect_eq(value(&lab, "due_workers_idle_threads", "workers", NULL), 1);
    cr_expect_eq(value(&lab, "due_workers_jobs", "workers", "state=\"running\""), 1);
    cr_expect_eq(value(&lab, "due_workers_jobs", "workers", "state=\"ahead\""), 0);
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).running == 0);
    handle_one(&lab, &desk, due_answer_bury("no"));
    handle_one(&lab, &desk, due_answer_nack(DUE_S(1000)));
    handle_one(&lab, &desk, due_answer_nack(DUE_S(1000)));
    cr_expect_eq(value(&lab, "due_workers_handled_total", "workers", "result=\"acked\""), 1);
    cr_expect_eq(value(&lab, "due_workers_handled_total", "workers", "result=\"buried\""), 1);
    cr_expect_eq(value(&lab, "due_workers_handled_total", "workers", "result=\"retried\""), 2);
    cr_expect_eq(value(&lab, "due_workers_handled_total", "workers", "result=\"lost\""), 0);
    cr_expect_eq(value(&lab, "due_workers_leases_extended_total", "workers", NULL), 0);
    cr_expect_eq(value(&lab, "due_workers_given_back_total", "workers", NULL), 0);
    desk_close(&desk);
    lab_close(&lab);
}

Test(workers_figures, are_added_up_by_name_and_outlast_the_pool, .timeout = 60)
{
    struct lab lab = lab_open();
    int mail = lab_topic(&lab, "mail");
    due_workers_options named = { DUE_WORKERS_INIT, .name = "mails" };
    struct desk other = desk_open_on(&lab, 3, &mail, 1, NULL);
    const int any = 0;

    for (int i = 1; i <= 2; i++) {
        struct desk desk = desk_open_on(&lab, 1, &any, 1, &named);
        struct desk twin = desk_open_on(&lab, 4, &mail, 1, &named);

        cr_expect_eq(value(&lab, "due_workers_threads", "mails", NULL), 5);
        handle_one(&lab, &desk, due_answer_ack());
        cr_expect_eq(value(&lab, "due_workers_handled_total", "mails", "result=\"acked\""), i);
        desk_close(&desk);
        cr_expect_eq(value(&lab, "due_workers_threads", "mails", NULL), 4);
        cr_expect_eq(value(&lab, "due_workers_handled_total", "mails", "result=\"acked\""), i);
        desk_close(&twin);
        cr_expect_eq(value(&lab, "due_workers_threads", "mails", NULL), 0);
    }
    cr_expect_eq(value(&lab, "due_workers_handled_total", "mails", "result=\"acked\""), 2);
    cr_expect_eq(value(&lab, "due_workers_threads", "workers", NULL), 3);
    cr_expect_eq(value(&lab, "due_workers_handled_total", "workers", "result=\"acked\""), 0);
    desk_close(&other);
    lab_close(&lab);
}

/* "lost": its lease had ended, and the job was somebody else's. */
LAB_TEST(workers_figures, say_what_came_too_late)
{
    struct lab lab = lab_open();
    struct desk desk = desk_open_with(&lab, 1, .lease_ns = 100, .extend_max_ns = 100);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    desk_until_begun(&desk);
    lab_advance(&lab, 200);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    desk_let_go(&desk, due_answer_ack());
    WAIT_UNTIL(desk_stats(&desk).handled == 1);
    cr_expect_eq(value(&lab, "due_workers_handled_total", "workers", "result=\"lost\""), 1);
    cr_expect_eq(value(&lab, "due_workers_handled_total", "workers", "result=\"acked\""), 0);
    desk_close(&desk);
    lab_close(&lab);
}

Test(workers_figures, of_a_pool_that_could_not_be_started_are_not_there)
{
    struct lab lab = lab_open();
    due_workers_options o = { DUE_WORKERS_INIT, .name = "no blanks" };
    due_workers *w = NULL;

    cr_expect_eq(due_workers_start(&w, lab.q, NULL, 0, 1, desk_handle, NULL, &o), DUE_EINVAL);
    o.name = "";
    cr_expect_eq(due_workers_start(&w, lab.q, NULL, 0, 1, desk_handle, NULL, &o), DUE_EINVAL);
    o.name = "mails";
    for (size_t n = 0; n < 2; n++) {
        flaky_fail_in(&lab.state->memory, n);
        cr_expect_eq(due_workers_start(&w, lab.q, NULL, 0, 1, desk_handle, NULL, &o), DUE_ENOMEM);
    }
    cr_expect(isnan(value(&lab, "due_workers_threads", "mails", NULL)));
    lab_close(&lab);
}
