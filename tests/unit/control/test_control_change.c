/* test_control_change.c - what is changed by way of a control socket: each verb, in memory and
 * stored.
 */
#include "queue/queue.h"
#include "unit/control/control_desk.h"

/* ---- put ---- */

DESK_TEST(control_put, puts_jobs_with_their_payloads_and_all_that_is_said_of_them)
{
    desk_ask_with(d,
                  "{\"verb\":\"put\",\"topic\":\"mail\",\"jobs\":[{\"delay_ns\":500,\"len\":3,"
                  "\"priority\":7,\"key\":\"k\"},{\"delay_ns\":0,\"len\":0}]}",
                  "tea", 3);
    cr_expect_eq(desk_count(d, "\"result\":\"DUE_OK\""), 2u, "%s", d->answer);
    desk_ends(d, "DUE_OK");
    due_info info = lab_find(desk_lab(d), desk_id(d));
    cr_expect_eq(info.deadline_ns, 1500);
    cr_expect_eq(info.priority, 7);
    cr_expect_str_eq(due_topic_name(desk_queue(d), info.topic), "mail");
    due_id id;
    cr_expect_eq(due_id_of_key(desk_queue(d), "k", 1, &id), 0);
    cr_expect(due_id_equal(id, info.id));
    cr_expect_str_eq(lab_dequeue(desk_lab(d)), "");
    lab_turn_to(desk_lab(d), 1499);
    cr_expect_null(lab_dequeue(desk_lab(d)));
    lab_turn_to(desk_lab(d), 1500);
    cr_expect_str_eq(lab_dequeue(desk_lab(d)), "tea");
}

DESK_TEST(control_put, says_who_has_a_key)
{
    due_id id;

    desk_ask(d, "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":5,\"len\":0,\"key\":\"k\"}]}");
    id = desk_id(d);
    desk_ask(d, "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":5,\"len\":0,\"key\":\"k\"},"
                "{\"delay_ns\":6,\"len\":0}]}");
    desk_says(d, "\"result\":\"DUE_EEXIST\"");
    cr_expect(due_id_equal(id, desk_id(d)));
    cr_expect_eq(desk_count(d, "DUE_OK"), 2u, "%s", d->answer); /* the other one, and the end */
    cr_expect_eq(lab_stats(desk_lab(d)).waiting, 2u);
}

/* One that is wrong is refused alone, wherever it stands. */
DESK_TEST(control_put, refuses_a_bad_job_and_takes_the_others)
{
    char line[256];

    desk_queue(d)->payload_max = 50; /* as a store may have it */
    for (unsigned i = 0; i < 3; i++) {
        static const char bytes[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                    "aaaa";

        snprintf(line, sizeof line,
                 "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":5,\"len\":%d},"
                 "{\"delay_ns\":5,\"len\":%d},{\"delay_ns\":5,\"len\":%d}]}",
                 i == 0 ? 60 : 1, i == 1 ? 60 : 1, i == 2 ? 60 : 1);
        desk_ask_with(d, line, bytes, 62);
        cr_expect_eq(desk_count(d, "\"result\":\"DUE_OK\""), 2u, "%s", d->answer);
        cr_expect_eq(desk_count(d, "\"result\":\"DUE_ELIMIT\""), 1u, "%s", d->answer);
        cr_expect_eq(desk_count(d, "\"id\":"), 3u, "%s", d->answer);
        desk_ends(d, "DUE_OK");
        cr_expect_eq(lab_stats(desk_lab(d)).waiting, 2 * (i + 1));
    }
}

/* A date is so far from now as it is on the wall clock, whatever the queue's clock shows. */
DESK_TEST(control_put, takes_a_date_as_far_ahead_as_it_is)
{
    struct timespec now;
    char line[256];

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(line, sizeof line, "{\"verb\":\"put\",\"jobs\":[{\"at_ns\":%lld,\"len\":0}]}",
             (long long)(DUE_S(now.tv_sec) + now.tv_nsec + DUE_S(3600)));
    desk_ask(d, line);
    due_info info = lab_find(desk_lab(d), desk_id(d));
    cr_expect(info.deadline_ns <= 1000 + DUE_S(3600) && info.deadline_ns > DUE_S(3600 - 300),
              "%lld", (long long)info.deadline_ns);
    desk_ask(d, "{\"verb\":\"put\",\"jobs\":[{\"at_ns\":1,\"len\":0}]}");
    cr_expect_eq(lab_find(desk_lab(d), desk_id(d)).deadline_ns, 0);
    desk_ask(d, "{\"verb\":\"put\",\"jobs\":[{\"at_ns\":9223372036854775807,\"len\":0}]}");
    cr_expect_eq(lab_find(desk_lab(d), desk_id(d)).deadline_ns, DUE_FOREVER);
}

/* On the wall clock nothing is converted: not one nanosecond. */
Test(control_put, takes_a_date_as_it_is_on_the_wall_clock)
{
    struct desk d =
        desk_with(false, (struct lab_options){ .kernel = true, .with.clock = DUE_CLOCK_REALTIME });

    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    desk_ask(&d, "{\"verb\":\"put\",\"jobs\":[{\"at_ns\":4000000000123456789,\"len\":0}]}");
    cr_expect_eq(lab_find(desk_lab(&d), desk_id(&d)).deadline_ns, 4000000000123456789);
    desk_ask(&d, "{\"verb\":\"list\"}");
    desk_says(&d, "\"at_ns\":4000000000123456789,");
    desk_close(&d);
}

/* Nobody waits for room: who asked comes again. */
Test(control_put, says_what_is_in_and_that_there_is_no_room)
{
    struct desk d = desk_with(false, (struct lab_options){ .with.capacity = 2 });

    desk_serve(&d, 0, (due_control_options){ .path = NULL });
    desk_ask(&d, "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":1,\"len\":0},"
                 "{\"delay_ns\":1,\"len\":0},{\"delay_ns\":1,\"len\":0}]}");
    cr_expect_eq(desk_count(&d, "\"result\":\"DUE_OK\""), 2u, "%s", d.answer);
    desk_ends(&d, "DUE_EAGAIN");
    desk_close(&d);
}

/* ---- Jobs that are named ---- */

DESK_TEST(control_named, cancels_and_says_what_is_not_there)
{
    due_id id = lab_enqueue(desk_lab(d), "tea", .delay_ns = 5);

    desk_name(d, "cancel", id, "");
    desk_says(d, "\"result\":\"DUE_OK\"");
    desk_ends(d, "DUE_OK");
    cr_expect_eq(lab_stats(desk_lab(d)).waiting, 0u);
    desk_name(d, "cancel", id, "");
    desk_says(d, "\"result\":\"DUE_ENOENT\"");
    desk_ends(d, "DUE_OK");
}

DESK_TEST(control_named, reschedules_by_a_delay_and_promotes)
{
    due_id id = lab_enqueue(desk_lab(d), "tea", .delay_ns = 5);

    desk_name(d, "reschedule", id, ",\"delay_ns\":700");
    desk_says(d, "\"result\":\"DUE_OK\"");
    cr_expect_eq(lab_find(desk_lab(d), id).deadline_ns, 1700);
    desk_name(d, "reschedule", id, ",\"delay_ns\":9223372036854775807");
    cr_expect_eq(lab_find(desk_lab(d), id).deadline_ns, DUE_FOREVER);
    desk_name(d, "promote", id, "");
    desk_says(d, "\"result\":\"DUE_OK\"");
    cr_expect_str_eq(lab_dequeue(desk_lab(d)), "tea");
}

/* It is dead, for the reason "hot". */
static due_id buried(struct desk *d, const char *text)
{
    due_id id = lab_enqueue(desk_lab(d), text, .delay_ns = 0);
    due_job job;

    cr_assert_eq(lab_reserve(desk_lab(d), &job, DUE_S(1)), 0);
    cr_assert_eq(due_bury(&job, "hot"), 0);
    return id;
}

DESK_TEST(control_named, kicks_and_drops_the_dead_alone)
{
    due_id first = buried(d, "tea"), second = buried(d, "egg");
    due_id alive = lab_enqueue(desk_lab(d), "bread", .delay_ns = 5);

    desk_name(d, "drop", alive, "");
    desk_says(d, "\"result\":\"DUE_ENOENT\"");
    cr_expect_eq(lab_stats(desk_lab(d)).waiting, 1u);
    desk_name(d, "kick", first, "");
    desk_says(d, "\"result\":\"DUE_OK\"");
    cr_expect_str_eq(lab_dequeue(desk_lab(d)), "tea");
    desk_name(d, "drop", second, "");
    desk_says(d, "\"result\":\"DUE_OK\"");
    desk_name(d, "kick", second, "");
    desk_says(d, "\"result\":\"DUE_ENOENT\"");
    cr_expect_eq(lab_stats(desk_lab(d)).dead, 0u);
}

/* ---- All ---- */

DESK_TEST(control_all, kicks_and_drops_all_the_dead_of_a_topic_or_all)
{
    (void)buried(d, "tea");
    (void)buried(d, "egg");
    desk_ask(d, "{\"verb\":\"drop_all\",\"topic\":\"none\"}");
    desk_says(d, "{\"count\":0}\n");
    desk_ask(d, "{\"verb\":\"kick_all\",\"topic\":\"\"}");
    desk_says(d, "{\"count\":2}\n");
    cr_expect_eq(lab_stats(desk_lab(d)).waiting, 2u);
    (void)lab_dequeue_all(desk_lab(d));
    (void)buried(d, "tea");
    desk_ask(d, "{\"verb\":\"drop_all\"}");
    desk_says(d, "{\"count\":1}\n");
    cr_expect_eq(lab_stats(desk_lab(d)).dead, 0u);
}

DESK_TEST(control_all, clears_one_topic_and_then_all)
{
    int mail = lab_topic(desk_lab(d), "mail");

    (void)lab_enqueue(desk_lab(d), "a", .delay_ns = 5, .topic = mail);
    (void)lab_enqueue(desk_lab(d), "b", .delay_ns = 5);
    (void)lab_enqueue(desk_lab(d), "c", .delay_ns = 5);
    desk_ask(d, "{\"verb\":\"clear\",\"topic\":\"mail\"}");
    desk_says(d, "{\"count\":1}\n");
    cr_expect_eq(lab_stats(desk_lab(d)).waiting, 2u);
    desk_ask(d, "{\"verb\":\"clear\"}");
    desk_says(d, "{\"count\":2}\n");
    cr_expect_eq(lab_stats(desk_lab(d)).waiting, 0u);
}

DESK_TEST(control_all, pauses_and_resumes)
{
    (void)lab_enqueue(desk_lab(d), "tea", .delay_ns = 0);
    desk_ask(d, "{\"verb\":\"pause\",\"topic\":\"\"}");
    desk_ends(d, "DUE_OK");
    cr_expect_null(lab_dequeue(desk_lab(d)));
    desk_ask(d, "{\"verb\":\"resume\"}");
    desk_ends(d, "DUE_OK");
    cr_expect_str_eq(lab_dequeue(desk_lab(d)), "tea");
}

/* ---- Who may ---- */

static void refuses_changes(unsigned flags, bool all)
{
    struct desk d = desk_with(false, (struct lab_options){ .kernel = false });
    static const char *const changes[] = { "kick_all", "drop_all", "clear", "pause", "resume" };
    static const char *const named[] = { "cancel", "kick", "drop", "promote" };
    due_id id = lab_enqueue(desk_lab(&d), "tea", .delay_ns = 5);
    char line[64];

    desk_serve(&d, flags, (due_control_options){ .path = NULL });
    desk_ask(&d, "{\"verb\":\"put\",\"jobs\":[{\"delay_ns\":0,\"len\":0}]}");
    cr_expect_str_eq(d.answer, "{\"end\":\"DUE_ENOTSUP\"}\n");
    desk_ask(&d, "{\"verb\":\"queues\"}");
    desk_says(&d, all ? "\"changes\":false,\"put\":false" : "\"changes\":true,\"put\":false");
    for (size_t i = 0; all && i < sizeof changes / sizeof changes[0]; i++) {
        snprintf(line, sizeof line, "{\"verb\":\"%s\"}", changes[i]);
        desk_ask(&d, line);
        cr_expect_str_eq(d.answer, "{\"end\":\"DUE_ENOTSUP\"}\n", "%s", line);
    }
    for (size_t i = 0; all && i < sizeof named / sizeof named[0]; i++) {
        desk_name(&d, named[i], id, "");
        cr_expect_str_eq(d.answer, "{\"end\":\"DUE_ENOTSUP\"}\n", "%s", named[i]);
    }
    if (all)
        desk_name(&d, "reschedule", id, ",\"delay_ns\":1");
    if (all)
        cr_expect_str_eq(d.answer, "{\"end\":\"DUE_ENOTSUP\"}\n");
    cr_expect_eq(lab_find(desk_lab(&d), id).deadline_ns, 1005);
    desk_ask(&d, "{\"verb\":\"list\"}");
    desk_ends(&d, "DUE_OK");
    desk_close(&d);
}

Test(control_flags, take_no_jobs)
{
    refuses_changes(DUE_CONTROL_NO_PUT, false);
}

Test(control_flags, take_no_changes)
{
    refuses_changes(DUE_CONTROL_READ_ONLY, true);
}

/* ---- Pointers ---- */

struct shown {
    due_queue *q;
    const void *ptr;
    unsigned n;
};

static void note_cancelled(void *ctx, due_queue *q, const due_job *job)
{
    struct shown *s = ctx;

    s->q = q;
    s->ptr = job->ptr;
    s->n++;
}

LAB_TEST(control_pointers, of_a_cancelled_job_are_the_hooks)
{
    struct desk d = desk_with(false, (struct lab_options){ .kernel = false });
    struct shown shown = { 0 };
    int kettle;
    due_id id;

    desk_serve(&d, 0, (due_control_options){ .on_cancel = note_cancelled, .ctx = &shown });
    cr_assert_eq(due_enqueue_after(desk_queue(&d), 5, &kettle, &id), 0);
    desk_name(&d, "cancel", id, "");
    desk_says(&d, "\"result\":\"DUE_OK\"");
    cr_expect_eq(shown.ptr, &kettle);
    cr_expect_eq(shown.q, desk_queue(&d));
    desk_name(&d, "cancel", id, "");
    desk_says(&d, "DUE_ENOENT");
    cr_expect_eq(shown.n, 1u);
    id = buried(&d, "tea");
    desk_name(&d, "drop", id, "");
    cr_expect_eq(shown.n, 2u);
    cr_expect_eq(lab_stats(desk_lab(&d)).lent, 0u);
    desk_close(&d);
}
