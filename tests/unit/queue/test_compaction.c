/* Slots that cancelled and moved jobs leave behind are swept out: by the worker proxy, by everybody
 * who has the lock, or at home, by a thread that has it to itself.
 */
#include <stdio.h>
#include <unistd.h>

#include "lab/lab.h"
#include "os/futex.h"
#include "queue/queue.h"

enum { LIVE = 5000, PAIRS = 40000, FAR = 10000 };

/* Cancelled jobs leave slots behind.  The last ones were left while it could not be worth it yet to
 * sweep out the first, so a few more than half of all may stay. */
LAB_TEST(compaction, sweeps_out_what_cancelled_jobs_leave_behind)
{
    enum { JOBS = 20000, CANCELLED = 13000 };
    static due_id id[JOBS];
    struct lab lab = lab_open();

    for (int i = 0; i < JOBS; i++)
        id[i] = lab_enqueue(&lab, NULL, .delay_ns = 1 + i * 7919 % JOBS);
    due_poll(lab.q, NULL);
    cr_expect_geq(lab_stats(&lab).slots, (uint64_t)JOBS);
    for (int i = 0; i < CANCELLED; i++)
        cr_assert_eq(due_cancel(lab.q, id[i], NULL), 0);
    for (int i = 0; i < 5000 && lab_stats(&lab).slots > JOBS / 2; i++) {
        if (lab_proxies == DUE_PROXIES_NEVER)
            due_poll(lab.q, NULL);
        else
            usleep(1000);
    }
    cr_expect_leq(lab_stats(&lab).slots, (uint64_t)JOBS / 2);
    cr_expect_geq(lab_stats(&lab).slots, (uint64_t)JOBS - CANCELLED);
    lab_close(&lab);
}

/* What a queue with so many live jobs has at most, with what dies while a sweep is under way. */
static uint64_t bound(uint64_t live)
{
    return 3 * (live + DUE__SWEEP_PIECE) + 2 * 512;
}

static due_queue *fill(struct lab *lab, due_id *id, uint32_t live)
{
    for (uint32_t i = 0; i < live; i++)
        id[i] = lab_enqueue(lab, NULL, .delay_ns = DUE_S(FAR + i * 7919 % live));
    return lab->q;
}

/* Is a sweep under way that nobody was asked to do, and somebody there who ends it in any case? */
static bool at_home(due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    bool is = q->sweeping && !(q->debts & DUE__DEBT_SWEEP);
    bool ended = q->beating || !DUE_HEARTBEAT || lab_proxies == DUE_PROXIES_NEVER;
    due__tenure_end(q, &t);
    cr_expect(!is || ended, "what is idle now has to be given back when nobody comes any more");
    return is;
}

/* The oldest goes, and a new one comes. */
static void pair(struct lab *lab, due_id *id, uint32_t *oldest)
{
    cr_assert_eq(due_cancel(lab->q, id[*oldest], NULL), 0);
    id[*oldest] = lab_enqueue(lab, NULL, .delay_ns = DUE_S(FAR + *oldest % 977));
    *oldest = (*oldest + 1) % LIVE;
}

/* Can this thread have the lock to itself?  It cannot where another one ever had its bias; and
 * where there is always a proxy that sorts in it does not even need the lock. */
static bool can_be_biased(const due_queue *q)
{
#ifdef DUE_BELL_COND
    (void)q;
    return false;
#else
    return lab_proxies != DUE_PROXIES_ALWAYS && due__threads_fence_ready() &&
           (q->lock.owner == DUE__NO_THREAD || q->lock.owner == due__self());
#endif
}

/* So many times at least, and on until sweeps were done at home, since others may have had the lock
 * time and again. */
static bool again(const due_queue *q, unsigned i, unsigned homely)
{
    return i < PAIRS || (can_be_biased(q) && homely < 1000 && i < 100 * PAIRS);
}

/* The lines of topics are swept, too, though there may be nothing in any. */
static void check_pairs(bool kernel, int topics)
{
    static due_id id[LIVE];
    struct lab lab = lab_open(.kernel = kernel);
    due_queue *q = fill(&lab, id, LIVE);
    uint32_t oldest = 0;
    unsigned homely = 0;

    for (int i = 0; i < topics; i++) {
        char name[32];

        snprintf(name, sizeof name, "topic %d", i);
        (void)lab_topic(&lab, name);
    }
    for (unsigned i = 0; again(q, i, homely); i++) {
        pair(&lab, id, &oldest);
        homely += at_home(q);
        if (i % 500 == 0 && lab_proxies != DUE_PROXIES_ALWAYS) /* where others sort in, too */
            cr_assert_leq(lab_stats(&lab).slots, bound(LIVE), "after %u", i);
    }
    cr_expect_eq(lab_stats(&lab).waiting, (uint64_t)LIVE);
    if (can_be_biased(q))
        cr_expect_geq(homely, 1000u);
    lab_close(&lab);
}

LAB_TEST(compaction, is_done_at_home_by_who_has_the_lock_to_himself)
{
    check_pairs(false, 0);
    check_pairs(true, 0);
    check_pairs(true, 1500);
}

/* Nothing is cancelled: each job is moved, and leaves a slot behind each time. */
LAB_TEST(compaction, of_what_jobs_leave_that_are_moved_keeps_up_with_them)
{
    static due_id id[LIVE];
    struct lab lab = lab_open();
    due_queue *q = fill(&lab, id, LIVE);
    unsigned homely = 0;

    for (unsigned i = 0; again(q, i, homely); i++) {
        cr_assert_eq(due_reschedule(q, id[i % LIVE], DUE_S(FAR + i % 977)), 0);
        homely += at_home(q);
        if (i % 500 == 0 && lab_proxies != DUE_PROXIES_ALWAYS)
            cr_assert_leq(lab_stats(&lab).slots, bound(LIVE), "after %u", i);
    }
    if (can_be_biased(q))
        cr_expect_geq(homely, 1000u);
    lab_close(&lab);
}

/* Nothing comes that would look whether there is something to sweep, nor any other call.  (On a
 * clock turned by hand the figures would be asked for by a poll.) */
LAB_TEST(compaction, keeps_up_with_cancels_alone)
{
    static due_id id[4 * LIVE];
    struct lab lab = lab_open(.kernel = true);
    due_queue *q = fill(&lab, id, 4 * LIVE);

    for (uint32_t i = 0; i < 4 * LIVE; i++)
        cr_assert_eq(due_cancel(q, id[i], NULL), 0);
    for (int i = 0; i < 5000 && lab_stats(&lab).slots > 2 * LIVE; i++)
        usleep(1000);
    cr_expect_leq(lab_stats(&lab).slots, 2u * LIVE);
    lab_close(&lab);
}

/* Pairs until a sweep is under way at home, and a part of it is done.  False: none ever is. */
static bool leave_off_within(struct lab *lab, due_id *id)
{
    uint32_t oldest = 0;

    for (unsigned i = 0; again(lab->q, i, 0); i++) {
        pair(lab, id, &oldest);
        if (at_home(lab->q))
            return true;
    }
    return false;
}

static int cancel_some(void *arg)
{
    due_queue *q = arg;

    for (int i = 0; i < 1200; i++) {
        due_id id;

        if (due_enqueue_after(q, DUE_S(FAR), NULL, &id) != 0 || due_cancel(q, id, NULL) != 0)
            return 1;
    }
    return 0;
}

static bool is_under_way(due_queue *q)
{
    struct due__tenure t;

    due__enter(q, &t);
    bool is = q->sweeping;
    due__tenure_end(q, &t);
    return is;
}

/* Others who cancel find it, and have it done. */
LAB_TEST(compaction, that_was_left_off_at_home_is_gone_on_with_when_others_come)
{
    static due_id id[LIVE];
    struct lab lab = lab_open();
    due_queue *q = fill(&lab, id, LIVE);
    struct crew_thread other;

    if (leave_off_within(&lab, id)) {
        crew_go(&other, cancel_some, q);
        cr_expect_eq(crew_join(&other), 0);
        for (int i = 0; i < 5000 && is_under_way(q); i++) {
            if (lab_proxies == DUE_PROXIES_NEVER)
                cr_assert_eq(cancel_some(q), 0);
            else
                usleep(1000);
        }
        cr_expect_not(is_under_way(q));
        cr_expect_leq(lab_stats(&lab).slots, bound(LIVE));
    } else {
        cr_expect_not(can_be_biased(q));
    }
    lab_close(&lab);
}

LAB_TEST(compaction, that_was_left_off_at_home_is_ended_by_a_trim)
{
    static due_id id[LIVE];
    struct lab lab = lab_open();
    due_queue *q = fill(&lab, id, LIVE);

    cr_expect(leave_off_within(&lab, id) || !can_be_biased(q));
    cr_expect_eq(due_trim(q), 0);
    cr_expect_not(is_under_way(q));
    cr_expect_leq(lab_stats(&lab).slots, (uint64_t)LIVE + DUE__SWEEP_PIECE);
    lab_close(&lab);
}

struct cancels {
    due_queue *q;
    const due_id *id;
};

static int cancel_all(void *arg)
{
    const struct cancels *c = arg;

    for (int i = 0; i < LIVE; i++) {
        if (due_cancel(c->q, c->id[i], NULL) != 0)
            return 1;
    }
    return 0;
}

/* They find the lock taken each time, and nothing else comes after them. */
LAB_TEST(compaction, that_who_cancels_cannot_look_for_is_looked_for_by_who_has_the_lock)
{
    static due_id id[LIVE];
    struct lab lab = lab_open(.kernel = true);
    due_queue *q = fill(&lab, id, LIVE);
    struct crew_thread other;
    struct due__tenure t;

    while (lab_stats(&lab).slots < LIVE) /* until all are sorted in */
        usleep(1000);
    due__enter(q, &t);
    crew_go(&other, cancel_all, &(struct cancels){ .q = q, .id = id });
    cr_expect_eq(crew_join(&other), 0);
    due__tenure_end(q, &t);
    for (int i = 0; i < 5000 && lab_stats(&lab).slots > LIVE / 2; i++)
        usleep(1000);
    cr_expect_leq(lab_stats(&lab).slots, (uint64_t)LIVE / 2);
    lab_close(&lab);
}

/* All that is live is shown, or handed out, and all memory comes back. */
LAB_TEST(compaction, that_was_left_off_at_home_is_in_the_way_of_no_close)
{
    for (int drain = 0; drain < 2; drain++) {
        static due_id id[LIVE];
        struct lab lab = lab_open();
        due_queue *q = fill(&lab, id, LIVE);
        due_job job;

        cr_expect(leave_off_within(&lab, id) || !can_be_biased(q));
        if (drain) {
            lab_turn_to(&lab, DUE_S(3 * FAR));
            cr_expect_eq(due_close(q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
            for (int i = 0; i < LIVE; i++) {
                cr_assert_eq(due_dequeue(q, &job, 0), 0, "%d", i);
                due_job_done(&job);
            }
            cr_expect_eq(due_dequeue(q, &job, 0), DUE_ECLOSED);
        }
        lab_close(&lab);
    }
}
