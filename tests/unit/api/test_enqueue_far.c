/* test_enqueue_far.c - of the shortest ways of a put or a move what no answer of a call shows.
 *
 * These tests look inside: that chunks run out, and what becomes of slots that are dead.
 */
#include "lab/lab.h"

#include "mem/chunks.h"
#include "os/atomic.h"
#include "queue/queue.h"

static char old_job, new_job;

/* ---- Chunks that are used up ---- */

enum { OLD = 3000, GONE = 2900, NEW = 2000 };

/* All but what inserts leave to splits. */
static void use_up_chunks(struct lab *lab)
{
    struct due__pool *pool = &lab->q->pool;

    due__lock_acquire(&lab->q->lock);
    while (pool->free_count > DUE__TIMELINE_RESERVE)
        cr_assert_not_null(due__pool_take(pool));
    due__lock_release(&lab->q->lock);
}

/* Most of what is there was cancelled, so there is room as soon as somebody sweeps. */
static struct lab open_without_chunks(void)
{
    static due_id id[OLD];
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);

    for (int i = 0; i < OLD; i++)
        cr_assert_eq(due_enqueue_at(lab.q, 1000 + DUE_MS(i), &old_job, &id[i]), 0);
    for (int i = 0; i < GONE; i++)
        cr_assert_eq(due_cancel(lab.q, id[i], NULL), 0);
    use_up_chunks(&lab);
    cr_assert_eq(lab.q->timeline.refused.hi, 0u);
    return lab;
}

/* Nothing is lost, and all come in the order of their deadlines. */
static void take_all_and_close(struct lab *lab)
{
    int old_jobs = 0;
    int new_jobs = 0;
    int64_t last = 0;
    due_job job;

    cr_assert_neq(lab->q->timeline.refused.hi, 0u, "no slot was refused: this cannot fail");
    lab_turn_to(lab, INT64_C(1) << 60);
    while (due_dequeue(lab->q, &job, 0) == 0) {
        cr_assert_geq(job.deadline_ns, last);
        last = job.deadline_ns;
        *(job.ptr == &old_job ? &old_jobs : &new_jobs) += 1;
        due_job_done(&job);
    }
    cr_expect_eq(old_jobs, OLD - GONE, "%d", old_jobs);
    cr_expect_eq(new_jobs, NEW, "%d of those that were put without chunks", new_jobs);
    lab_close(lab);
}

Test(enqueue_far, loses_no_job_whose_slot_was_refused, .timeout = 60)
{
    struct lab lab = open_without_chunks();

    for (int i = 0; i < NEW; i++)
        cr_assert_eq(due_enqueue_at(lab.q, DUE_S(1000) + i, &new_job, NULL), 0);
    take_all_and_close(&lab);
}

/* A job that brings bytes goes another way. */
Test(enqueue, loses_no_job_whose_slot_was_refused, .timeout = 60)
{
    struct lab lab = open_without_chunks();

    for (int i = 0; i < NEW; i++)
        lab_enqueue(&lab, "new", .at_ns = DUE_S(1000) + i);
    take_all_and_close(&lab);
}

/* ---- Dead slots, which nobody's cancels count ---- */

enum { LIVE = 2000, MOVES = 150000 };

Test(reschedule, keeps_few_dead_slots, .timeout = 60)
{
    static due_id id[LIVE];
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    uint64_t seed = 1;
    size_t most = 0;

    for (int i = 0; i < LIVE; i++)
        cr_assert_eq(due_enqueue_at(lab.q, 1 + DUE_MS(i), &old_job, &id[i]), 0);
    for (int k = 0; k < MOVES; k++) {
        size_t i = (size_t)crew_below(&seed, LIVE);
        int64_t at = 1 + (int64_t)(crew_below(&seed, 1u << 20) << crew_below(&seed, 30));

        cr_assert_eq(due_reschedule(lab.q, id[i], at), 0);
        size_t slots = due__timeline_count(&lab.q->timeline) + lab.q->in_lines;
        most = slots > most ? slots : most;
    }
    cr_expect_lt(most, 3u * LIVE + 2u * DUE__SWEEP_PIECE, "%zu slots of %d jobs", most, LIVE);
    lab_close(&lab);
}

/* ---- Places ---- */

/* All places are taken but one, which is cancelled and taken again and again. */
Test(enqueue_far, takes_the_last_place_again_and_again, .timeout = 60)
{
    enum { ROUNDS = 20000 };
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    size_t bytes = lab.state->memory.bytes;
    size_t before = 0;
    due_id id;
    int n = 0;

    for (int grown = 0; grown < 2; n++) { /* to the first job of the second growth */
        cr_assert_eq(due_enqueue_at(lab.q, DUE_S(1 + n), &old_job, &id), 0);
        grown += lab.state->memory.bytes > bytes;
        bytes = lab.state->memory.bytes;
    }
    uint32_t places = due__slab_end(&lab.q->slab);
    for (; n < (int)places; n++)
        cr_assert_eq(due_enqueue_at(lab.q, DUE_S(1 + n), &old_job, &id), 0);
    for (int i = 0; i < ROUNDS; i++) {
        cr_assert_eq(due_cancel(lab.q, id, NULL), 0);
        cr_assert_eq(due_enqueue_at(lab.q, DUE_S(1 + n), &new_job, &id), 0);
        if (i == 100)
            before = lab.state->memory.bytes;
    }
    cr_expect_leq(due__slab_end(&lab.q->slab), places, "%u of %u", due__slab_end(&lab.q->slab),
                  places);
    cr_expect_leq(lab.state->memory.bytes, before, "%zu, then %zu", before,
                  (size_t)lab.state->memory.bytes);
    cr_expect_eq(lab_stats(&lab).waiting, (uint64_t)places);
    lab_close(&lab);
}

/* ---- Facts ---- */

static struct due__facts facts_of(struct lab *lab, due_id id)
{
    uint32_t number;
    uint32_t generation;

    cr_assert(due__id_read(lab->q, id, &number, &generation));
    return due__facts_load(due__job_at(&lab->q->slab, number));
}

/* That it has no delay, so that it is due at a moment of its call. */
LAB_TEST(enqueue_far, says_in_the_facts_of_a_job_that_it_has_no_delay)
{
    struct lab lab = lab_open(.start_ns = 100);
    due_id id;

    for (int i = 0; i < 3; i++) { /* the first one fetches places */
        cr_assert_eq(due_enqueue_after(lab.q, 0, &new_job, &id), 0);
        due__drain_all(lab.q);
        cr_expect_eq(facts_of(&lab, id).payload, DUE__POINTER | DUE__NOW, "%d", i);
        cr_assert_eq(due_enqueue_after(lab.q, 5, &new_job, &id), 0);
        due__drain_all(lab.q);
        cr_expect_eq(facts_of(&lab, id).payload, DUE__POINTER, "%d", i);
    }
    lab_close(&lab);
}

/* ---- What is late ---- */

/* As long as it is not answered takers go by the lock, and one without delay is put for them. */
Test(enqueue_far, without_delay_has_what_was_late_answered, .timeout = 60)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);

    for (int i = 0; i < 3; i++) { /* the first one fetches places */
        cr_assert_eq(due_enqueue_after(lab.q, 0, &new_job, NULL), 0);
        due__inbox_say_late(&lab.q->inbox);
        cr_assert(due__inbox_quiet(&lab.q->inbox), "%d", i);
        cr_assert_eq(due_enqueue_after(lab.q, 0, &new_job, NULL), 0);
        cr_expect_not(due__inbox_late(&lab.q->inbox), "%d", i);
    }
    lab_close(&lab);
}
