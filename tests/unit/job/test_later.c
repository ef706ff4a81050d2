/* A job that could not be changed now is looked at again in a second; one that another call is
 * changing is waited for; and a job that was cancelled while somebody had it has no further
 * round. */
#include "lab/lab.h"
#include "lab/take.h"

#include "job/amend.h"
#include "job/claim.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/job_records.h"
#include "queue/queue.h"

#define NOW 50

/* A job of the caller's own, that had a lease before or not. */
static uint32_t own(struct lab *lab, bool held)
{
    uint32_t number;
    uint32_t generation;
    due_job job;
    uint64_t w;
    due_id id = lab_enqueue(lab, "tea", .at_ns = NOW);

    if (held) {
        cr_assert_eq(take_leased(lab->q, &job, 10, 0), 0);
        cr_assert_eq(due_nack(&job, 0), 0);
    }
    cr_assert_eq(due_poll(lab->q, NULL), 1); /* it is in no inbox any more */
    cr_assert_eq(due__id_find(lab->q, id, NULL, &number, &generation), 0);
    cr_assert_eq(due__claim(lab->q, number, generation, NULL, &w), 0);
    return number;
}

/* How the queue is made: with what somebody has asked for, or without. */
static struct lab lab_kind(int kind)
{
    struct lab lab = lab_open(.start_ns = NOW, .with.metrics = kind & 1);

    if (kind & 2)
        lab_topic(&lab, "other");
    return lab;
}

LAB_TEST(later, waits_a_second_and_is_ready_then)
{
    for (int kind = 0; kind < 8; kind++) {
        struct lab lab = lab_kind(kind);

        due__wait_later(lab.q, own(&lab, kind & 4));
        struct due_stats s = lab_stats(&lab);
        cr_expect(s.waiting == 1 && s.ready == 0 && s.leased == 0, "%d", kind);
        lab_turn_to(&lab, NOW + DUE_S(1) - 1);
        cr_expect_null(lab_dequeue(&lab), "%d", kind);
        lab_turn_to(&lab, NOW + DUE_S(1));
        cr_expect_str_eq(lab_dequeue(&lab), "tea", "%d", kind);
        lab_close(&lab);
    }
}

/* As at the end of a lease of a second: it goes then, if it is marked still. */
LAB_TEST(later, is_leased_for_a_second_and_goes_if_it_was_cancelled)
{
    for (int kind = 0; kind < 16; kind++) {
        struct lab lab = lab_kind(kind);
        bool marked = (kind & 8) != 0;
        uint32_t number = own(&lab, kind & 4);
        uint64_t w = due__load_relaxed(&due__job_at(&lab.q->slab, number)->word);

        if (!(kind & 4)) {
            cr_assert(due__records_make(&lab.q->leases, &lab.q->alloc, number));
            due__store_relaxed(&lab.q->reserves, 1);
        }
        if (marked)
            cr_assert_eq(due__lease_cancel(lab.q, number, due__word_generation(w), NULL),
                         DUE_EBUSY);
        due__revoke_later(lab.q, number);
        struct due_stats s = lab_stats(&lab);
        cr_expect(s.leased == 1 && s.waiting == 0 && s.ready == 0, "%d", kind);
        cr_expect_eq(due__load_relaxed(&due__lease_at(lab.q, number)->deadline_ns), NOW, "%d",
                     kind);
        lab_turn_to(&lab, NOW + DUE_S(1) - 1);
        cr_expect_eq(lab_stats(&lab).leased, 1u, "%d", kind);
        lab_turn_to(&lab, NOW + DUE_S(1));
        s = lab_stats(&lab);
        cr_expect_eq(s.leased, 0u, "%d", kind);
        cr_expect_eq(s.lapsed, 1u, "%d", kind);
        cr_expect_eq(s.cancelled, marked, "%d", kind);
        cr_expect_eq(s.waiting, !marked, "%d", kind);
        lab_close(&lab);
    }
}

/* What is not being changed is not waited for. */
LAB_TEST(later, a_call_looks_anew_at_once_if_nobody_changes_the_job)
{
    struct lab lab = lab_open(.start_ns = NOW);
    uint32_t number;
    uint32_t generation;
    due_id id = lab_enqueue(&lab, "tea", .at_ns = NOW);

    cr_assert_eq(due__id_find(lab.q, id, NULL, &number, &generation), 0);
    for (uint32_t of = 0; of < 2; of++) {
        bool inside = false;

        cr_expect_eq(due__amend_wait(lab.q, number, generation + of, &inside), 0);
        cr_expect(inside);
        due__inside_end(lab.q, inside);
    }
    lab_close(&lab);
}

struct waits {
    struct lab *lab;
    uint32_t number;
    uint32_t generation;
};

static int wait_main(void *arg)
{
    const struct waits *it = arg;
    bool inside = false;
    int rc = due__amend_wait(it->lab->q, it->number, it->generation, &inside);

    due__inside_end(it->lab->q, inside);
    return inside ? rc : -1;
}

LAB_TEST(later, a_call_waits_while_another_changes_the_job)
{
    struct lab lab = lab_open(.start_ns = NOW);
    struct waits it = { .lab = &lab };
    struct crew_thread thread;
    due_id id = lab_enqueue(&lab, "tea", .at_ns = NOW);

    cr_assert_eq(due__id_find(lab.q, id, NULL, &it.number, &it.generation), 0);
    cr_assert_eq(due__claim_sent(lab.q, it.number, it.generation, NULL, NULL), 0);
    crew_go(&thread, wait_main, &it);
    crew_until_asleep(&thread);
    due__unclaim(lab.q, it.number, false);
    due__quit_ring(lab.q, &lab.q->changing);
    cr_expect_eq(crew_join(&thread), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
}

/* ---- Rounds of what was cancelled ---- */

/* While it was reserved; then taken for good when the lease has ended, or acked, alone or with
 * others. */
LAB_TEST(later, has_no_round_if_it_was_cancelled_while_somebody_had_it)
{
    for (int way = 0; way < 3; way++) {
        struct lab lab = lab_open(.start_ns = NOW);
        due_job jobs[2];
        due_id id = lab_enqueue(&lab, "tea", .at_ns = NOW, .more = EXTRA(.every_ns = 100));

        cr_assert_eq(take_leased(lab.q, &jobs[0], 10, 0), 0);
        lab_enqueue(&lab, "cup", .at_ns = NOW, .more = EXTRA(.every_ns = 100));
        cr_assert_eq(take_leased(lab.q, &jobs[1], 10, 0), 0);
        cr_expect_eq(due_cancel(lab.q, id, NULL), DUE_EBUSY);
        if (way == 0) {
            lab_turn_to(&lab, NOW + 10);
            due_jobs_done(jobs, 2);
        } else if (way == 1) {
            cr_expect_eq(due_ack(&jobs[0]), 0);
            cr_expect_eq(due_ack(&jobs[1]), 0);
        } else {
            cr_expect_eq(due_ack_batch(jobs, 2, NULL), 2);
        }
        struct due_stats s = lab_stats(&lab);
        cr_expect_eq(s.waiting, 1u, "%d", way);
        cr_expect_eq(s.leased, 0u, "%d", way);
        cr_expect_eq(s.repeated, way > 0, "%d", way);
        cr_expect_eq(s.cancelled, way == 0, "%d", way);
        cr_expect_eq(s.acked, way > 0, "%d", way);
        lab_close(&lab);
    }
}
