/* A waiting job gets other content, or another time, in place. */
#include <pthread.h>

#include "lab/lab.h"
#include "lab/take.h"

#define LEASE 100

static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2, .delay_ns = 50 };

static int update(struct lab *lab, due_id id, const char *text)
{
    return due_update(lab->q, id, text, strlen(text));
}

#define amend(lab, id, what, ...) \
    due_amend((lab)->q, (id), &(due_spec){ DUE_SPEC_INIT, __VA_ARGS__ }, (what))

static due_job reserve(struct lab *lab)
{
    due_job job = { 0 };

    cr_assert_eq(take_leased(lab->q, &job, LEASE, 0), 0);
    return job;
}

static const char *long_text(void)
{
    static char text[LAB_TEXT];

    memset(text, 'y', sizeof text - 1);
    return text;
}

/* ---- Content ---- */

LAB_TEST(update, a_waiting_job_has_the_new_content)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10);

    cr_expect_eq(update(&lab, id, "coffee"), 0);
    cr_expect_eq(lab_find(&lab, id).len, 6u);
    cr_expect_eq(lab_find(&lab, id).deadline_ns, 10);
    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue(&lab), "coffee");
    cr_expect_null(lab_dequeue(&lab));
    lab_close(&lab);
}

/* From any length to any other, with and without a front: in the place, in a block, in a block with
 * headers. */
LAB_TEST(update, of_any_length_to_any_length)
{
    const char *texts[] = { "", "tea", long_text() };
    struct lab lab = lab_open();

    for (size_t from = 0; from < 3; from++) {
        for (size_t to = 0; to < 3; to++) {
            for (size_t headers = 0; headers < 2; headers++) {
                due_id id = lab_enqueue(
                    &lab, texts[from], .delay_ns = 0,
                    .more = EXTRA(.headers = headers ? "h" : NULL, .headers_len = headers));
                due_job job;

                cr_expect_eq(update(&lab, id, texts[to]), 0);
                cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
                cr_expect(due_id_equal(job.id, id));
                cr_expect_eq(job.headers_len, headers, "the headers stay");
                cr_expect(headers == 0 || memcmp(job.headers, "h", 1) == 0);
                cr_expect_str_eq(lab_text(&lab, &job), texts[to]);
            }
        }
    }
    lab_close(&lab);
}

LAB_TEST(update, keeps_its_place_among_equals)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "a", .at_ns = 10);
    due_id b = lab_enqueue(&lab, "b", .at_ns = 10);
    lab_enqueue(&lab, "c", .at_ns = 10);
    cr_expect_eq(update(&lab, b, "B"), 0);
    lab_turn_to(&lab, 10);
    due_poll(lab.q, NULL);
    cr_expect_eq(update(&lab, b, long_text()), 0, "also of one that is ready");
    cr_expect_str_eq(lab_dequeue(&lab), "a");
    cr_expect_str_eq(lab_dequeue(&lab), long_text());
    cr_expect_str_eq(lab_dequeue(&lab), "c");
    lab_close(&lab);
}

/* What has been shown to takers is changed, and taken, all the same. */
LAB_TEST(update, of_every_ready_job)
{
    struct lab lab = lab_open();
    due_id ids[100];

    for (int i = 0; i < 100; i++)
        ids[i] = lab_enqueue(&lab, "old", .delay_ns = 0);
    due_poll(lab.q, NULL);
    for (int i = 0; i < 100; i++)
        cr_expect_eq(update(&lab, ids[i], "new"), 0);
    for (int i = 0; i < 100; i++)
        cr_expect_str_eq(lab_dequeue(&lab), "new");
    cr_expect_null(lab_dequeue(&lab));
    lab_close(&lab);
}

LAB_TEST(update, who_has_the_job_keeps_it)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);

    cr_expect_eq(update(&lab, id, "milk"), DUE_EBUSY, "it is reserved");
    cr_expect_eq(memcmp(job.data, "tea", 3), 0);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(update(&lab, id, "milk"), 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(memcmp(job.data, "milk", 4), 0);
    cr_expect_eq(update(&lab, id, "wine"), DUE_EBUSY, "it was taken");
    cr_expect_eq(memcmp(job.data, "milk", 4), 0);
    due_job_done(&job);
    cr_expect_eq(update(&lab, id, "wine"), DUE_ENOENT);
    lab_close(&lab);
}

/* After the end of a lease its holder reads valid bytes still. */
LAB_TEST(update, bytes_that_are_still_lent_stay)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, long_text(), .delay_ns = 0);
    due_job late = reserve(&lab);

    lab_advance(&lab, LEASE);
    cr_expect_eq(update(&lab, id, "milk"), DUE_EBUSY);
    cr_expect_eq(memcmp(late.data, long_text(), late.len), 0);
    cr_expect_eq(amend(&lab, id, DUE_SET_TIME, .at_ns = 1000), 0, "its time is nobody's");
    cr_expect_eq(due_ack(&late), DUE_ESTALE);
    cr_expect_eq(update(&lab, id, "milk"), 0);
    lab_turn_to(&lab, 1000);
    cr_expect_str_eq(lab_dequeue(&lab), "milk");
    lab_close(&lab);
}

LAB_TEST(update, a_carried_pointer_is_not_lost)
{
    struct lab lab = lab_open();
    int thing = 1;
    due_spec spec = { DUE_SPEC_INIT, .ptr = &thing };
    due_id id;
    due_job job;

    cr_assert_eq(due_enqueue(lab.q, &spec, 0, &id), 0);
    cr_expect_eq(update(&lab, id, "tea"), DUE_EINVAL);
    cr_expect_eq(amend(&lab, id, DUE_SET_DATA, .ptr = &spec), DUE_EINVAL);
    cr_expect_eq(amend(&lab, id, DUE_SET_HEADERS, .more = EXTRA(.headers = "h", .headers_len = 1)),
                 0);
    cr_expect_eq(amend(&lab, id, DUE_SET_HEADERS | DUE_SET_LIMIT, .more = EXTRA(.ttl_ns = 5)), 0);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(job.ptr, &thing);
    cr_expect_eq(job.headers_len, 0u);
    due_job_done(&job);
    lab_close(&lab);
}

LAB_TEST(update, a_dead_job_is_mended_and_kicked)
{
    struct lab lab = lab_open();
    due_id first = lab_enqueue(&lab, "first", .delay_ns = 0);
    due_id id = lab_enqueue(&lab, "{bad", .delay_ns = 0);
    due_dead dead[3];
    uint64_t cursor = 0;

    for (int i = 0; i < 2; i++) {
        due_job job = reserve(&lab);
        cr_expect_eq(due_bury(&job, "cannot be read"), 0);
    }
    cr_expect_eq(update(&lab, id, "{good}"), 0);
    cr_expect_eq(amend(&lab, id, DUE_SET_TIME, .at_ns = 7), DUE_ENOENT);
    cr_expect_eq(amend(&lab, id, DUE_SET_DATA | DUE_SET_LIMIT, .more = EXTRA(.ttl_ns = 7)),
                 DUE_ENOENT);
    cr_expect_eq(due_list_dead(lab.q, &cursor, dead, 3), 2);
    const due_dead *mended = &dead[due_id_equal(dead[1].id, id)];
    cr_expect_eq(mended->len, 6u);
    cr_expect_str_eq(mended->reason, "cannot be read");
    cr_expect_eq(due_kick(lab.q, id), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "{good}");
    cr_expect_eq(due_cancel(lab.q, first, NULL), 0);
    lab_close(&lab);
}

LAB_TEST(update, arguments_are_checked)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10);
    const due_spec none = { DUE_SPEC_INIT, .at_ns = 0 };
    char headers[DUE_HEADERS_MAX + 1] = { 0 };
    due_retry bad = { .kind = DUE_RETRY_LADDER };

    cr_expect_eq(due_update(lab.q, id, NULL, 1), DUE_EINVAL);
    cr_expect_eq(due_update(lab.q, id, "x", (size_t)DUE_PAYLOAD_MAX + 1), DUE_ELIMIT);
    cr_expect_eq(amend(&lab, id, 0, .at_ns = 1), DUE_EINVAL);
    cr_expect_eq(amend(&lab, id, 64, .at_ns = 1), DUE_EINVAL);
    cr_expect_eq(amend(&lab, id, DUE_SET_TIME, .at_ns = 1, .delay_ns = 1), DUE_EINVAL);
    cr_expect_eq(amend(&lab, id, DUE_SET_TIME, .at_ns = -1), DUE_EINVAL);
    cr_expect_eq(amend(&lab, id, DUE_SET_PRIORITY, .priority = 256), DUE_EINVAL);
    cr_expect_eq(amend(&lab, id, DUE_SET_HEADERS,
                       .more = EXTRA(.headers = headers, .headers_len = sizeof headers)),
                 DUE_EINVAL);
    cr_expect_eq(amend(&lab, id, DUE_SET_LIMIT, .more = EXTRA(.ttl_ns = 1, .expires_ns = 1)),
                 DUE_EINVAL);
    cr_expect_eq(amend(&lab, id, DUE_SET_RETRY, .more = EXTRA(.retry = &bad)), DUE_EINVAL);
    cr_expect_eq(due_amend(lab.q, id, &(due_spec){ .size = sizeof(size_t) / 2 }, DUE_SET_TIME),
                 DUE_EINVAL);
    cr_expect_eq(due_amend(lab.q, (due_id){ { 1 } }, &none, DUE_SET_TIME), DUE_ENOENT);
    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue(&lab), "tea", "what was refused has changed nothing");
    lab_close(&lab);
}

LAB_TEST(update, of_a_closed_queue_is_refused)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10);

    cr_assert_eq(due_close(lab.q, DUE_CLOSE_DISCARD, 0), 0);
    int rc = update(&lab, id, "milk");
    cr_expect(rc == DUE_ECLOSED || rc == DUE_ENOENT, "%s", due_error_name(rc));
    cr_expect_str_eq(lab.state->discarded_text, "tea");
    lab_close(&lab);
}

/* ---- Several at once ---- */

LAB_TEST(amend, content_and_time_in_one_step)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10);

    cr_expect_eq(
        amend(&lab, id, DUE_SET_DATA | DUE_SET_TIME, .data = "milk", .len = 4, .delay_ns = 30), 0);
    lab_turn_to(&lab, 29);
    cr_expect_null(lab_dequeue(&lab));
    lab_turn_to(&lab, 30);
    cr_expect_str_eq(lab_dequeue(&lab), "milk");
    lab_close(&lab);
}

LAB_TEST(amend, a_ready_job_is_put_off)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);

    due_poll(lab.q, NULL);
    cr_expect_eq(
        amend(&lab, id, DUE_SET_DATA | DUE_SET_TIME, .data = "milk", .len = 4, .at_ns = 30), 0);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(lab_stats(&lab).ready, 0u);
    lab_turn_to(&lab, 30);
    cr_expect_str_eq(lab_dequeue(&lab), "milk");
    lab_close(&lab);
}

LAB_TEST(amend, the_priority_counts_from_then_on)
{
    struct lab lab = lab_open();

    lab_enqueue(&lab, "a", .at_ns = 10, .priority = 5);
    due_id b = lab_enqueue(&lab, "b", .at_ns = 10, .priority = 1);
    cr_expect_eq(amend(&lab, b, DUE_SET_PRIORITY, .priority = 9), 0);
    cr_expect_eq(lab_find(&lab, b).priority, 9);
    lab_turn_to(&lab, 10);
    cr_expect_str_eq(lab_dequeue_all(&lab), "b a");
    lab_close(&lab);
}

LAB_TEST(amend, a_limit_is_given_and_taken_away)
{
    struct lab lab = lab_open();
    due_id a = lab_enqueue(&lab, "a", .at_ns = 10);
    due_id b = lab_enqueue(&lab, "b", .at_ns = 10, .more = EXTRA(.ttl_ns = 5));
    due_id c = lab_enqueue(&lab, "c", .at_ns = 10, .more = EXTRA(.expires_ns = 5));

    cr_expect_eq(amend(&lab, a, DUE_SET_LIMIT, .more = EXTRA(.ttl_ns = 5)), 0);
    cr_expect_eq(amend(&lab, b, DUE_SET_LIMIT, .more = EXTRA(.ttl_ns = 0)), 0);
    cr_expect_eq(amend(&lab, c, DUE_SET_LIMIT, .more = EXTRA(.expires_ns = 16)), 0);
    lab_turn_to(&lab, 15);
    cr_expect_str_eq(lab_dequeue_all(&lab), "b c");
    cr_expect_eq(lab_stats(&lab).dead, 1u);
    lab_close(&lab);
}

/* Each of what a job need not have, alone, to one that has none of it. */
LAB_TEST(amend, a_plain_job_is_given_a_limit_headers_or_a_policy)
{
    struct lab lab = lab_open();
    due_id id[5];
    due_job job;

    for (int i = 0; i < 5; i++)
        id[i] = lab_enqueue(&lab, "tea", .at_ns = 10 + i);
    cr_expect_eq(amend(&lab, id[0], DUE_SET_LIMIT, .more = EXTRA(.ttl_ns = 3)), 0);
    cr_expect_eq(amend(&lab, id[1], DUE_SET_LIMIT, .more = EXTRA(.expires_ns = 13)), 0);
    cr_expect_eq(amend(&lab, id[2], DUE_SET_RETRY, .more = EXTRA(.retry = &twice)), 0);
    cr_expect_eq(
        amend(&lab, id[3], DUE_SET_HEADERS, .more = EXTRA(.headers = "h", .headers_len = 1)), 0);
    lab_turn_to(&lab, 14);
    job = reserve(&lab);
    cr_expect_eq(lab_stats(&lab).dead, 2u, "those with a limit");
    cr_expect(due_id_equal(job.id, id[2]));
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    cr_expect_eq(due_next_deadline(lab.q), 13);
    job = reserve(&lab);
    cr_expect_eq(job.headers_len, 1u);
    cr_expect_str_eq(lab_text(&lab, &job), "tea");
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    cr_expect_eq(due_next_deadline(lab.q), 64, "as its policy says");
    lab_close(&lab);
}

LAB_TEST(amend, a_retry_policy_is_given_and_taken_away)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);

    cr_expect_eq(amend(&lab, id, DUE_SET_RETRY, .more = EXTRA(.retry = &twice)), 0);
    due_job job = reserve(&lab);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    lab_advance(&lab, 49);
    cr_expect_eq(take_leased(lab.q, &job, LEASE, 0), DUE_EAGAIN);
    lab_advance(&lab, 1);
    cr_expect_eq(amend(&lab, id, DUE_SET_RETRY, .more = EXTRA(.retry = NULL)), 0);
    for (int i = 0; i < 5; i++) {
        job = reserve(&lab);
        cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    }
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
}

/* What is not named stays, whatever else the spec says. */
LAB_TEST(amend, only_what_is_named_changes)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 10,
                            .more = EXTRA(.headers = "old", .headers_len = 3, .ttl_ns = 100),
                            .priority = 3);
    due_job job;

    cr_expect_eq(amend(&lab, id, DUE_SET_HEADERS,
                       .more = EXTRA(.headers = "newer", .headers_len = 5, .ttl_ns = -1),
                       .at_ns = 99, .data = "x", .len = 1, .priority = 900),
                 0);
    lab_turn_to(&lab, 10);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(job.headers_len, 5u);
    cr_expect_eq(memcmp(job.headers, "newer", 5), 0);
    cr_expect_eq(job.priority, 3);
    cr_expect_str_eq(lab_text(&lab, &job), "tea");
    lab_close(&lab);
}

/* More than is copied under the lock: the job is claimed for it. */
LAB_TEST(amend, headers_for_a_large_payload)
{
    static unsigned char large[200000];
    struct lab lab = lab_open();
    due_spec spec = { DUE_SPEC_INIT, .data = large, .len = sizeof large, .at_ns = 10 };
    due_id id;
    due_job job;

    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (unsigned char)(i * 7 + i / 256);
    cr_assert_eq(due_enqueue(lab.q, &spec, 0, &id), 0);
    cr_expect_eq(amend(&lab, id, DUE_SET_HEADERS | DUE_SET_TIME,
                       .more = EXTRA(.headers = "h", .headers_len = 1), .at_ns = 20),
                 0);
    lab_turn_to(&lab, 19);
    cr_expect_null(lab_dequeue(&lab));
    cr_expect_eq(amend(&lab, id, DUE_SET_HEADERS, .more = EXTRA(.headers = "hh", .headers_len = 2)),
                 0);
    cr_expect_eq(lab_find(&lab, id).deadline_ns, 20);
    lab_turn_to(&lab, 20);
    cr_assert_eq(due_dequeue(lab.q, &job, 0), 0);
    cr_expect_eq(job.headers_len, 2u);
    cr_expect_eq(job.len, sizeof large);
    cr_expect_eq(memcmp(job.data, large, sizeof large), 0);
    due_job_done(&job);
    lab_close(&lab);
}

LAB_TEST(amend, a_retry_that_waits_gets_a_new_deadline)
{
    struct lab lab = lab_open();
    due_id id = lab_enqueue(&lab, "tea", .delay_ns = 0);
    due_job job = reserve(&lab);

    cr_expect_eq(due_nack(&job, 500), 0);
    cr_expect_eq(amend(&lab, id, DUE_SET_DATA | DUE_SET_TIME, .data = "milk", .len = 4, .at_ns = 7),
                 0);
    lab_turn_to(&lab, 7);
    job = reserve(&lab);
    cr_expect_eq(job.deadline_ns, 7);
    cr_expect_eq(job.attempts, 2u, "its past stays");
    cr_expect_eq(due_ack(&job), 0);
    lab_close(&lab);
}

LAB_TEST(amend, without_memory_nothing_has_changed)
{
    unsigned failed = 0;

    for (size_t n = 0; n < 12; n++) {
        struct lab lab = lab_open();
        due_id id = lab_enqueue(&lab, "tea", .at_ns = 10);
        due_id dead = lab_enqueue(&lab, "dead", .delay_ns = 0);
        due_job job = reserve(&lab);

        cr_assert_eq(due_bury(&job, NULL), 0);
        flaky_fail_in(&lab.state->memory, n);
        int rc =
            amend(&lab, id, DUE_SET_DATA | DUE_SET_HEADERS | DUE_SET_TIME | DUE_SET_RETRY,
                  .data = long_text(), .len = LAB_TEXT - 1,
                  .more = EXTRA(.headers = "h", .headers_len = 1, .retry = &twice), .at_ns = 20);
        int rc_dead = update(&lab, dead, long_text());
        lab.state->memory.fail_at = FLAKY_NEVER;
        cr_expect(rc == 0 || rc == DUE_ENOMEM, "%s", due_error_name(rc));
        failed += rc != 0;
        failed += rc_dead != 0;
        due_info info = lab_find(&lab, id);
        cr_expect_eq(info.deadline_ns, rc == 0 ? 20 : 10);
        cr_expect_eq(info.len, rc == 0 ? LAB_TEXT - 1 : 3u);
        lab_turn_to(&lab, 20);
        cr_expect_str_eq(lab_dequeue(&lab), rc == 0 ? long_text() : "tea");
        cr_expect_eq(due_kick(lab.q, dead), 0);
        cr_expect_str_eq(lab_dequeue(&lab), rc_dead == 0 ? long_text() : "dead");
        lab_close(&lab);
    }
    cr_expect_gt(failed, 1u, "no allocation failed");
}

/* ---- In a group ---- */

/* Changed while it waits, while it is let through and once more: the others wait for it all the
 * same, and go on when it has gone. */
LAB_TEST(amend, a_job_stays_in_its_group)
{
    struct lab lab = lab_open();
    due_id a = lab_enqueue(&lab, "a", .at_ns = 10, .more = EXTRA(.group = "g", .group_len = 1));

    lab_enqueue(&lab, "b", .at_ns = 10, .more = EXTRA(.group = "g", .group_len = 1));
    cr_expect_eq(update(&lab, a, "a2"), 0);
    lab_turn_to(&lab, 10);
    due_poll(lab.q, NULL);
    cr_expect_eq(amend(&lab, a, DUE_SET_DATA | DUE_SET_HEADERS, .data = long_text(), .len = 9,
                       .more = EXTRA(.headers = "h", .headers_len = 1)),
                 0);
    due_job job = reserve(&lab);
    cr_expect_eq(job.len, 9u);
    cr_expect_null(lab_dequeue(&lab), "two of one group");
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "b");
    cr_expect_eq(lab_stats(&lab).passed, 0u);
    lab_close(&lab);
}

LAB_TEST(amend, put_off_it_lets_its_group_go_on)
{
    struct lab lab = lab_open();
    due_id a = lab_enqueue(&lab, "a", .at_ns = 10, .more = EXTRA(.group = "g", .group_len = 1));

    lab_enqueue(&lab, "b", .at_ns = 10, .more = EXTRA(.group = "g", .group_len = 1));
    lab_turn_to(&lab, 10);
    due_poll(lab.q, NULL);
    cr_expect_eq(amend(&lab, a, DUE_SET_DATA | DUE_SET_TIME, .data = "A", .len = 1, .at_ns = 20),
                 0);
    cr_expect_str_eq(lab_dequeue(&lab), "b");
    lab_turn_to(&lab, 20);
    cr_expect_str_eq(lab_dequeue(&lab), "A");
    cr_expect_eq(lab_stats(&lab).passed, 0u);
    lab_close(&lab);
}

/* ---- Another change comes first ---- */

static const due_retry rarely = { .kind = DUE_RETRY_FIXED, .attempts_max = 7, .delay_ns = 70 };

struct first {
    struct lab *lab;
    due_id id;
    unsigned what; /* 0: nothing, so far */
};

static int amend_part(struct lab *lab, due_id id, unsigned what)
{
    due_spec spec = { DUE_SPEC_INIT, .priority = 9, .data = "a text that has a block of its own",
                      .len = 34,
                      .more = EXTRA(.headers = "head", .headers_len = 4, .retry = &rarely) };

    return due_amend(lab->q, id, &spec, what);
}

static void *amend_first(void *arg)
{
    const struct first *it = arg;

    cr_expect_eq(amend_part(it->lab, it->id, it->what), 0);
    return NULL;
}

/* The second call has looked at the job, and asks for memory. */
static void come_first(void *ctx, size_t size)
{
    struct first *it = ctx;
    pthread_t other;

    (void)size;
    it->lab->state->memory.on_alloc = NULL;
    cr_assert_eq(pthread_create(&other, NULL, amend_first, it), 0);
    pthread_join(other, NULL);
}

static void expect_both(unsigned first, unsigned second, size_t len)
{
    static const char old_text[100] = "as it was";
    struct lab lab = lab_open();
    struct first it = { .lab = &lab, .what = first };
    due_spec spec = { DUE_SPEC_INIT, .data = old_text, .len = len };
    due_job job;

    cr_assert_eq(due_enqueue(lab.q, &spec, 0, &it.id), 0);
    cr_assert_eq(amend_part(&lab, it.id, DUE_SET_RETRY), 0); /* the policy is known from here on */
    cr_assert_eq(due_cancel(lab.q, it.id, NULL), 0);
    cr_assert_eq(due_enqueue(lab.q, &spec, 0, &it.id), 0);
    due_poll(lab.q, NULL);
    lab.state->memory.on_alloc_ctx = &it;
    lab.state->memory.on_alloc = come_first;
    cr_expect_eq(amend_part(&lab, it.id, second), 0, "%x, then %x", first, second);
    cr_expect_null(lab.state->memory.on_alloc, "this proves nothing");
    unsigned what = first | second;
    cr_assert_eq(lab_reserve(&lab, &job, 100), 0);
    cr_expect_eq(job.priority, what & DUE_SET_PRIORITY ? 9 : 0, "%x, then %x", first, second);
    cr_expect_eq(job.headers_len, what & DUE_SET_HEADERS ? 4u : 0u, "%x, then %x", first, second);
    cr_expect_eq(job.len, what & DUE_SET_DATA ? 34u : len, "%x, then %x", first, second);
    cr_expect_eq(memcmp(job.data, what & DUE_SET_DATA ? "a text" : "as it ", 6), 0);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    cr_expect_eq(lab_find(&lab, it.id).deadline_ns == 70, (what & DUE_SET_RETRY) != 0,
                 "%x, then %x", first, second);
    cr_expect_eq(atomic_load(&lab.state->memory.bad), 0u);
    lab_close(&lab);
}

LAB_TEST(update, keeps_what_another_call_has_changed_meanwhile)
{
    static const unsigned parts[] = { DUE_SET_DATA, DUE_SET_HEADERS, DUE_SET_PRIORITY,
                                      DUE_SET_RETRY };

    for (unsigned i = 0; i < 16; i++) {
        expect_both(parts[i / 4], parts[i % 4], 10);
        expect_both(parts[i / 4], parts[i % 4], 100);
    }
}
