/* What is done of many jobs at a time, in pieces: the same for each number of them. */
#include "lab/shop.h"
#include "lab/take.h"

#include "job/bulk.h"
#include "job/dead_letter.h"
#include "queue/job_records.h"
#include "queue/queue.h"

#define MOST 70 /* more than twice what is done with in one visit */

static const due_retry never = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };

/* Jobs for good, on leases and rounds, of two queues, some of them twice. */
static size_t take_mixed(struct lab lab[2], due_job jobs[MOST], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct lab *from = &lab[i / 3 % 2];

        lab_enqueue(from, "tea", .at_ns = 1, .more = EXTRA(.every_ns = i % 3 == 2 ? 1000 : 0));
        cr_assert_eq(i % 3 == 1 ? take_leased(from->q, &jobs[i], 100, 0)
                                : due_dequeue(from->q, &jobs[i], 0),
                     0);
    }
    return n;
}

LAB_TEST(many, are_done_with_to_the_last_however_many)
{
    struct lab lab[2] = { lab_open(.start_ns = 1), lab_open(.start_ns = 1) };
    due_job jobs[MOST + 1];
    due_job mark;

    memset(&mark, 0xa5, sizeof mark);
    for (size_t n = 0; n <= MOST; n++) {
        take_mixed(lab, jobs, n);
        jobs[n] = mark;
        due_jobs_done(jobs, n);
        for (size_t i = 0; i < n; i++)
            cr_expect(jobs[i].queue == NULL && jobs[i].place == 0, "%zu of %zu", i, n);
        cr_expect_eq(memcmp(&jobs[n], &mark, sizeof mark), 0, "%zu", n);
        cr_expect_eq(lab_stats(&lab[0]).lent + lab_stats(&lab[1]).lent, 0u, "%zu", n);
        for (int k = 0; k < 2; k++)
            due_clear(lab[k].q, DUE_ALL_TOPICS, NULL);
    }
    lab_close(&lab[0]);
    lab_close(&lab[1]);
}

/* With a store, and without. */
static void with_and_without_store(void (*expect)(struct lab *lab, size_t n), const size_t *ns,
                                   size_t count)
{
    const struct lab_options how = { .start_ns = 1, .with.size = sizeof(due_options) };

    for (int stored = 0; stored < 1 + (lab_proxies != DUE_PROXIES_NEVER); stored++) {
        struct shop s = { .disk = NULL };

        if (stored)
            s = shop_new(NULL, how);
        else
            s.lab = lab_open_with(&how);
        for (size_t i = 0; i < count; i++)
            expect(&s.lab, ns[i]);
        if (stored)
            shop_close(&s);
        else
            lab_close(&s.lab);
    }
}

/* About as many as are handed to the journal together. */
static const size_t about[] = { 1,
                                2,
                                DUE__TOGETHER - 1,
                                DUE__TOGETHER,
                                DUE__TOGETHER + 1,
                                2 * DUE__TOGETHER - 1,
                                2 * DUE__TOGETHER,
                                2 * DUE__TOGETHER + 1 };
#define ABOUT      (sizeof about / sizeof about[0])
#define MOST_ABOUT (2 * DUE__TOGETHER + 1)

/* Each second one stays or, if it is to be busy, is had by somebody. */
static void expect_cancelled(struct lab *lab, size_t n)
{
    static due_id ids[MOST_ABOUT];
    static int results[MOST_ABOUT + 1];
    due_job job;

    lab_enqueue(lab, "busy", .at_ns = 1);
    cr_assert_eq(due_reserve(lab->q, &job, DUE_S(20)), 0);
    for (size_t i = 0; i < n; i++)
        ids[i] = i % 5 == 3 ? job.id : lab_enqueue(lab, "tea", .at_ns = DUE_S(9));
    due_id stays = lab_enqueue(lab, "stays", .at_ns = DUE_S(9));
    memset(results, 0x5a, sizeof results);
    cr_expect_eq(due_cancel_batch(lab->q, ids, n, results), (int)(n - (n + 1) / 5));
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(results[i], i % 5 == 3 ? DUE_EBUSY : 0, "%zu of %zu", i, n);
    cr_expect_eq(results[n], 0x5a5a5a5a, "%zu", n);
    cr_expect_eq(due_cancel_batch(lab->q, ids, n, results), 0);
    cr_expect_eq(due_cancel(lab->q, stays, NULL), 0);
    cr_expect_eq(due_ack(&job), 0);
    cr_expect_eq(lab_stats(lab).waiting + lab_stats(lab).leased, 0u, "%zu", n);
}

LAB_TEST(many, are_cancelled_each_with_its_answer)
{
    with_and_without_store(expect_cancelled, about, ABOUT);
}

/* Ready ones, delayed ones and, between them, dead ones and those of another topic, which stay. */
static void expect_cleared(struct lab *lab, size_t n)
{
    int other = lab_topic(lab, "other");
    unsigned shown = atomic_load(&lab->state->discarded);
    uint64_t cleared = 7;
    due_job job;

    for (size_t i = 0; i < n; i++) {
        lab_enqueue(lab, "tea", .at_ns = i % 2 ? 1 : DUE_S(9));
        if (i % 100 == 0)
            lab_enqueue(lab, "stays", .at_ns = DUE_S(9), .topic = other);
    }
    lab_enqueue(lab, "dead", .at_ns = 1, .topic = other, .more = EXTRA(.retry = &never));
    cr_assert_eq(take_leased_from(lab->q, &other, 1, &job, 100, DUE_S(20)), 0);
    cr_expect_eq(due_nack(&job, 0), 0);
    cr_expect_eq(due_clear(lab->q, 0, &cleared), 0);
    cr_expect_eq(cleared, n);
    cr_expect_eq(atomic_load(&lab->state->discarded) - shown, n);
    cr_expect_eq(due_clear(lab->q, DUE_ALL_TOPICS, &cleared), 0);
    cr_expect_eq(cleared, (n + 99) / 100);
    cr_expect_eq(lab_stats(lab).dead, 1u);
    cr_expect_eq(due_clear_dead(lab->q, DUE_ALL_TOPICS, &cleared), 0);
    cr_expect_eq(cleared, 1u);
    cr_expect_eq(due_clear(lab->q, DUE_ALL_TOPICS, &cleared), 0);
    cr_expect_eq(cleared, 0u);
    cr_expect_eq(lab_stats(lab).waiting, 0u);
}

LAB_TEST(many, are_cleared_and_each_is_shown)
{
    with_and_without_store(expect_cleared, about, ABOUT);
}

/* ---- The dead, in the order of death ---- */

enum { DEAD = 600, LOOKED_AT = 256 };

static uint64_t places[DEAD]; /* they died at 1, 2, 3, and so on */

static void kill_all(struct lab *lab)
{
    due_job job;

    for (int i = 0; i < DEAD; i++) {
        lab_turn_to(lab, i + 1);
        lab_enqueue(lab, "tea", .at_ns = i + 1, .more = EXTRA(.retry = &never));
        cr_assert_eq(take_leased(lab->q, &job, 100, 0), 0);
        places[i] = job.place;
        cr_assert_eq(due_nack(&job, 0), 0);
    }
}

/* As if it was to be changed, or to go, and did not. */
static void bury_anew(struct due_queue *q, uint64_t place)
{
    uint32_t number;
    uint32_t generation;

    cr_assert(due__handle_read(place, &number, &generation));
    cr_assert_eq(due__dead_claim_one(q, number, generation, NULL, DUE__CHANGING), 0);
    due__give_up(q, number);
}

/* Where the one that died at @died_ns stands among the dead, whose others are in order. */
static int place_of(const struct due_queue *q, int64_t died_ns)
{
    int64_t before = 0;
    int place = -1;
    int n = 0;

    for (uint32_t at = q->dead_first; at != 0; at = due__dead_letter_at(q, at - 1)->next, n++) {
        int64_t died = due__dead_letter_at(q, at - 1)->died_ns;

        if (died == died_ns) {
            place = n;
            continue;
        }
        cr_expect_gt(died, before, "%d", n);
        before = died;
    }
    cr_expect_eq(n, DEAD);
    return place;
}

static void expect_place(struct lab *lab, uint64_t died, int place)
{
    for (int again = 0; again < 2; again++) {
        bury_anew(lab->q, places[died]);
        cr_expect_eq(place_of(lab->q, (int64_t)died + 1), place, "%d", (int)died);
    }
}

/* It is looked for from either end, but not through all of them. */
LAB_TEST(many, dead_ones_are_as_old_as_they_were_near_either_end_and_nearly_so_between)
{
    static const int between[] = { LOOKED_AT + 1, DEAD / 2, DEAD - LOOKED_AT - 2 };
    struct lab lab = lab_open();

    kill_all(&lab);
    for (int i = 0; i <= LOOKED_AT; i++) {
        expect_place(&lab, (uint64_t)i, i);
        expect_place(&lab, (uint64_t)(DEAD - 1 - i), DEAD - 1 - i);
    }
    lab_close(&lab);
    for (size_t k = 0; k < sizeof between / sizeof between[0]; k++) {
        lab = lab_open();
        kill_all(&lab);
        expect_place(&lab, (uint64_t)between[k], LOOKED_AT);
        lab_close(&lab);
    }
}
