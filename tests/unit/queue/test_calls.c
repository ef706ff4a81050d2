/* Who is called for jobs that come at once: one, and whoever was called calls the next.
 *
 * These tests look inside: consumers that nobody can see asleep are parked by hand, and come when
 * the test says so.  Who stands in line has not been called. (W4)
 */
#include "lab/lab.h"

#include "os/atomic.h"
#include "queue/queue.h"

enum { CONSUMERS = 4, BURST = 100 };

/* Consumers of @topic, or of any (NULL), that sleep. */
struct crowd {
    struct due_queue *q;
    struct due__waiter *w[CONSUMERS];
};

static void crowd_park(struct crowd *c, struct lab *lab, const int *topic)
{
    struct due__tenure t;

    c->q = lab->q;
    for (size_t i = 0; i < CONSUMERS; i++) {
        struct due__waiter *w = c->w[i] = due__waiter_get(c->q);

        cr_assert_not_null(w);
        w->topics = topic;
        w->topic_count = topic != NULL;
        w->until_ns = DUE_FOREVER;
        due__enter(c->q, &t);
        due__park_job(c->q, &t, w);
        due__tenure_end(c->q, &t);
    }
}

/* How many were not called. */
static unsigned crowd_asleep(const struct crowd *c)
{
    unsigned n = 0;

    for (size_t i = 0; i < CONSUMERS; i++)
        n += c->w[i]->linked;
    return n;
}

/* The @i-th comes to the lock, called or not, and leaves. */
static void crowd_come(struct crowd *c, size_t i)
{
    struct due__tenure t;

    due__enter(c->q, &t);
    due__unpark_job(c->q, c->w[i]);
    due__tenure_end(c->q, &t);
}

static void crowd_go(struct crowd *c)
{
    for (size_t i = 0; i < CONSUMERS; i++) {
        crowd_come(c, i);
        due__waiter_put(c->q, c->w[i]);
    }
}

static void put_burst(struct lab *lab, int topic)
{
    static char tag;

    for (int i = 0; i < BURST; i++)
        lab_enqueue(lab, NULL, .ptr = &tag, .topic = topic);
}

static void take_all(struct lab *lab)
{
    due_job job;

    while (due_dequeue(lab->q, &job, 0) == 0)
        due_job_done(&job);
}

static uint32_t under_way(struct lab *lab, int topic)
{
    return due__load_acquire(&due__topic_at(lab->q, (uint32_t)topic)->under_way);
}

Test(calls, go_to_one_of_four_for_a_hundred_jobs_and_from_each_to_the_next, .timeout = 10)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct crowd crowd;

    crowd_park(&crowd, &lab, NULL);
    put_burst(&lab, 0);
    for (size_t i = 0; i < CONSUMERS; i++) {
        cr_expect_eq(crowd_asleep(&crowd), CONSUMERS - 1 - i);
        cr_expect_not(crowd.w[i]->linked, "first parked, first called");
        crowd_come(&crowd, i);
    }
    cr_expect_eq(under_way(&lab, 0), DUE__NOBODY);
    crowd_go(&crowd);
    lab_close(&lab);
}

Test(calls, end_when_nothing_is_left, .timeout = 10)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct crowd crowd;

    crowd_park(&crowd, &lab, NULL);
    put_burst(&lab, 0);
    take_all(&lab);
    cr_expect_eq(crowd_asleep(&crowd), CONSUMERS - 1);
    crowd_come(&crowd, 0);
    cr_expect_eq(crowd_asleep(&crowd), CONSUMERS - 1);
    cr_expect_eq(under_way(&lab, 0), DUE__NOBODY);
    put_burst(&lab, 0);
    cr_expect_eq(crowd_asleep(&crowd), CONSUMERS - 2, "the next burst finds the next one");
    take_all(&lab);
    crowd_go(&crowd);
    lab_close(&lab);
}

Test(calls, of_a_single_job_are_not_passed_on_and_end_without_the_lock, .timeout = 10)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct crowd crowd;

    crowd_park(&crowd, &lab, NULL);
    lab_enqueue(&lab, "tea", .delay_ns = 0);
    cr_expect_eq(under_way(&lab, 0), DUE__UNDER_WAY);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    due__lock_acquire(&lab.q->lock);
    due__arrive(lab.q, crowd.w[0]); /* it would wait for ever */
    due__lock_release(&lab.q->lock);
    cr_expect_eq(under_way(&lab, 0), DUE__NOBODY);
    cr_expect_eq(crowd_asleep(&crowd), CONSUMERS - 1);
    crowd_go(&crowd);
    lab_close(&lab);
}

Test(calls, are_passed_on_after_a_job_had_without_the_lock, .timeout = 10)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    struct crowd crowd;

    crowd_park(&crowd, &lab, NULL);
    lab_enqueue(&lab, "tea", .delay_ns = 0);
    lab_enqueue(&lab, "milk", .delay_ns = 0);
    cr_expect_eq(under_way(&lab, 0), DUE__AWAITED);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    due__arrive(lab.q, crowd.w[0]);
    cr_expect_eq(crowd_asleep(&crowd), CONSUMERS - 2);
    cr_expect_eq(under_way(&lab, 0), DUE__UNDER_WAY);
    take_all(&lab);
    crowd_go(&crowd);
    lab_close(&lab);
}

Test(calls, of_two_topics_do_not_wait_for_each_other, .timeout = 10)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    int one = lab_topic(&lab, "one");
    int two = lab_topic(&lab, "two");
    struct crowd crowd;

    crowd_park(&crowd, &lab, NULL);
    put_burst(&lab, one);
    put_burst(&lab, two);
    cr_expect_eq(crowd_asleep(&crowd), CONSUMERS - 2);
    take_all(&lab);
    crowd_go(&crowd);
    lab_close(&lab);
}

Test(calls, go_to_nobody_for_a_topic_that_is_paused, .timeout = 10)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    int one = lab_topic(&lab, "one");
    struct crowd crowd;

    crowd_park(&crowd, &lab, &one);
    cr_expect_eq(due_pause(lab.q, one), 0);
    put_burst(&lab, one);
    cr_expect_eq(crowd_asleep(&crowd), CONSUMERS);
    cr_expect_eq(due_resume(lab.q, one), 0);
    cr_expect_eq(crowd_asleep(&crowd), CONSUMERS - 1);
    cr_expect_eq(due_pause(lab.q, one), 0);
    crowd_come(&crowd, 0);
    cr_expect_eq(crowd_asleep(&crowd), CONSUMERS - 1, "held back again meanwhile");
    cr_expect_eq(due_resume(lab.q, one), 0);
    cr_expect_eq(crowd_asleep(&crowd), CONSUMERS - 2);
    take_all(&lab);
    crowd_go(&crowd);
    lab_close(&lab);
}

/* What the heartbeat looks for.  By hand: a topic that was paused is not, and nobody was called. */
static void expect_lost(struct lab *lab, unsigned jobs)
{
    struct due__topic *t = due__topic_at(lab->q, 0);
    struct crowd c;

    cr_assert_eq(due_pause(lab->q, 0), 0);
    for (unsigned i = 0; i < jobs; i++)
        lab_enqueue(lab, "job", .delay_ns = 0);
    due_poll(lab->q, NULL);
    due__lock_acquire(&lab->q->lock);
    cr_expect(due__called_for(lab->q, t), "it is paused");
    t->paused = false;
    cr_expect(due__called_for(lab->q, t), "nobody waits");
    t->paused = true;
    due__lock_release(&lab->q->lock);
    crowd_park(&c, lab, NULL);
    due__lock_acquire(&lab->q->lock);
    cr_expect(due__called_for(lab->q, t), "it is paused, though somebody waits");
    t->paused = false;
    cr_expect_eq(due__called_for(lab->q, t), jobs == 0, "nobody is under way for %u", jobs);
    due__store_relaxed(&t->under_way, DUE__UNDER_WAY);
    cr_expect_eq(due__called_for(lab->q, t), jobs < 2, "one is under way for %u", jobs);
    due__store_relaxed(&t->under_way, DUE__AWAITED);
    cr_expect(due__called_for(lab->q, t), "whoever is under way calls the next");
    due__store_relaxed(&t->under_way, DUE__NOBODY);
    t->paused = true;
    due__lock_release(&lab->q->lock);
    crowd_go(&c);
    cr_assert_eq(due_resume(lab->q, 0), 0);
    for (unsigned i = 0; i < jobs; i++)
        cr_expect_str_eq(lab_dequeue(lab), "job");
}

LAB_TEST(calls, that_were_lost_are_known)
{
    for (unsigned jobs = 0; jobs < 3; jobs++) {
        struct lab lab = lab_open();

        expect_lost(&lab, jobs);
        lab_close(&lab);
    }
}
