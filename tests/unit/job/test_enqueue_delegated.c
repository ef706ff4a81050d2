/* Jobs that are left in the inbox since somebody has the lock: the test has it, so they stay there
 * until it lets go.  What a call has put in comes before whatever stands behind it all the same. */
#include "lab/lab.h"
#include "lab/watch.h"
#include "lab/take.h"

#include "queue/queue.h"

static struct due__tenure held;

static void hold(struct lab *lab)
{
    watch_end(lab->q); /* it is the caller himself */
    due__enter(lab->q, &held);
}

static void let_go(struct lab *lab)
{
    due__tenure_end(lab->q, &held);
}

/* "shown" has been due since @ago_ns ago, and may be taken without the lock. */
static struct lab open_showing(bool kernel, int64_t ago_ns)
{
    struct lab lab = lab_open(.kernel = kernel, .start_ns = 10);
    int64_t at_ns = due_now(lab.q) - ago_ns;

    lab_enqueue(&lab, "first", .at_ns = at_ns);
    lab_enqueue(&lab, "shown", .at_ns = at_ns);
    cr_assert_eq(due_poll(lab.q, NULL), 2);
    cr_expect_str_eq(lab_dequeue(&lab), "first");
    return lab;
}

/* What a taker gets that comes while the lock is held. */
static void expect_first(struct lab *lab, const char *text)
{
    struct crew_call call;

    crew_call_dequeue(&call, lab->q, 0);
    crew_call_asleep(&call);
    let_go(lab);
    cr_assert_eq(crew_call_answer(&call), 0);
    cr_expect_str_eq(lab_text(lab, &call.job), text);
}

static void check_earlier(bool kernel)
{
    struct lab lab = open_showing(kernel, 2);

    hold(&lab);
    lab_enqueue(&lab, "earlier", .at_ns = due_now(lab.q) - (kernel ? DUE_S(1) : 3));
    expect_first(&lab, "earlier");
    cr_expect_str_eq(lab_dequeue_all(&lab), "shown");
    lab_close(&lab);
}

LAB_TEST(enqueue_delegated, a_job_that_was_due_before_comes_first)
{
    check_earlier(false);
    check_earlier(true);
}

LAB_TEST(enqueue_delegated, a_job_of_higher_priority_and_the_same_deadline_comes_first)
{
    struct lab lab = open_showing(false, 0);

    hold(&lab);
    lab_enqueue(&lab, "higher", .at_ns = 10, .priority = 1);
    expect_first(&lab, "higher");
    hold(&lab);
    lab_enqueue(&lab, "highest", .delay_ns = 0, .priority = 2);
    expect_first(&lab, "highest");
    cr_expect_str_eq(lab_dequeue_all(&lab), "shown");
    lab_close(&lab);
}

LAB_TEST(enqueue_delegated, one_of_many_that_was_due_before_comes_first)
{
    struct lab lab = open_showing(false, 2);
    const due_spec specs[] = {
        { DUE_SPEC_INIT, .at_ns = 9, .data = "later", .len = 5 },
        { DUE_SPEC_INIT, .at_ns = 7, .data = "earlier", .len = 7 },
        { DUE_SPEC_INIT, .at_ns = DUE_FOREVER, .data = "never", .len = 5 },
    };

    hold(&lab);
    cr_expect_eq(due_enqueue_batch(lab.q, specs, 3, 0, NULL), 3);
    expect_first(&lab, "earlier");
    cr_expect_str_eq(lab_dequeue_all(&lab), "shown later");
    lab_close(&lab);
}

LAB_TEST(enqueue_delegated, one_with_a_key_that_was_due_before_comes_first)
{
    struct lab lab = open_showing(false, 2);

    hold(&lab);
    lab_enqueue(&lab, "earlier", .at_ns = 7, .more = EXTRA(.key = "k", .key_len = 1));
    expect_first(&lab, "earlier");
    cr_expect_str_eq(lab_dequeue_all(&lab), "shown");
    lab_close(&lab);
}

/* Those behind what is shown do not keep takers from it: these need not wait for the lock. */
Test(enqueue_delegated, jobs_that_come_later_are_not_waited_for, .timeout = 60)
{
    struct lab lab = open_showing(false, 2);
    struct crew_call call;

    hold(&lab);
    lab_enqueue(&lab, "later", .at_ns = 11);
    lab_enqueue(&lab, "now", .delay_ns = 0);
    lab_enqueue(&lab, "with a key", .at_ns = 11, .more = EXTRA(.key = "k", .key_len = 1));
    crew_call_dequeue(&call, lab.q, 0);
    crew_call_asleep(&call);
    cr_expect(atomic_load(&call.thread.back), "it waits for the lock");
    let_go(&lab);
    cr_expect_eq(crew_call_answer(&call), 0);
    cr_expect_str_eq(lab_text(&lab, &call.job), "shown");
    lab_turn_to(&lab, 11);
    cr_expect_str_eq(lab_dequeue_all(&lab), "now later with a key");
    lab_close(&lab);
}

/* More than a caller takes along in one tenure: it puts its own behind them. */
LAB_TEST(enqueue_delegated, a_job_behind_many_others_is_counted_once_and_comes_last)
{
    enum { OTHERS = 5 * DUE__FOREIGN_MAX };
    struct lab lab = lab_open(.start_ns = 10, .with.reserve = OTHERS);

    watch_end(lab.q);
    due__lock_acquire(&lab.q->lock);
    for (unsigned i = 0; i < OTHERS; i++)
        lab_enqueue(&lab, "other", .at_ns = 10);
    due__lock_release(&lab.q->lock);
    lab_enqueue(&lab, "own", .at_ns = 10);
    for (unsigned i = 0; i < OTHERS; i++)
        cr_assert_str_eq(lab_dequeue(&lab), "other", "%u", i);
    cr_expect_str_eq(lab_dequeue(&lab), "own");
    struct due_stats s = lab_stats(&lab);
    cr_expect_eq(s.direct + s.delegated, OTHERS + 1u, "%ju and %ju", (uintmax_t)s.direct,
                 (uintmax_t)s.delegated);
    lab_close(&lab);
}

/* It has exchanged the end of the inbox, and not linked what stood there: by hand. */
LAB_TEST(enqueue_delegated, a_producer_that_stands_still_holds_up_nobody)
{
    static struct due__job half;
    struct lab lab = lab_open(.start_ns = 10, .with.reserve = 64);
    struct cds_wfcq_tail *tail = &lab.q->inbox.tail;
    struct crew_call call;

    watch_end(lab.q);
    due__lock_acquire(&lab.q->lock);
    lab_enqueue(&lab, "first", .at_ns = 5);
    lab_enqueue(&lab, "second", .at_ns = 5);
    half.word = due__word(1, 0, DUE__WAITING | DUE__LINKED);
    struct cds_wfcq_node *before = due__load_acquire(&tail->p);
    due__store_release(&tail->p, &half.link.node);
    due__inbox_knock(&lab.q->inbox);
    due__lock_release(&lab.q->lock);
    for (int i = 0; i < 2; i++) { /* with and without a job */
        crew_call_dequeue(&call, lab.q, 0);
        int rc = crew_call_answer(&call);
        cr_expect_eq(rc, i == 0 ? 0 : DUE_EAGAIN, "%s", due_error_name(rc));
        if (rc == 0)
            cr_expect_str_eq(lab_text(&lab, &call.job), "first");
        due_poll(lab.q, NULL);
    }
    due__store_release(&tail->p, before); /* as if it had never come */
    due__inbox_knock(&lab.q->inbox);
    cr_expect_str_eq(lab_dequeue_all(&lab), "second");
    lab_close(&lab);
}

/* A proxy sorts in 256 at a time, and another one hands out meanwhile. */
LAB_TEST(dequeue_proxy, hands_out_the_last_of_thousands_first_if_it_was_due_first)
{
    enum { JOBS = 10 * DUE__PROXY_BATCH };
    static due_spec specs[JOBS];

    for (int i = 0; i < JOBS; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .at_ns = 9, .data = "later", .len = 5 };
    specs[JOBS - 1] = (due_spec){ DUE_SPEC_INIT, .at_ns = 1, .data = "first", .len = 5 };
    struct lab lab = lab_open(.start_ns = 10);
    cr_expect_eq(due_enqueue_batch(lab.q, specs, JOBS, 0, NULL), JOBS); /* it has grown by then */
    cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    for (int round = 0; round < 10; round++) {
        struct crew_call call;

        crew_call_dequeue(&call, lab.q, DUE_FOREVER);
        crew_call_asleep(&call);
        hold(&lab);
        cr_expect_eq(due_enqueue_batch(lab.q, specs, JOBS, 0, NULL), JOBS);
        due__bell_ring(&lab.q->dequeue_bell);
        let_go(&lab);
        cr_assert_eq(crew_call_answer(&call), 0);
        cr_expect_str_eq(lab_text(&lab, &call.job), "first");
        cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
    }
    lab_close(&lab);
}
