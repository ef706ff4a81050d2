/* Of two who tell of one job the other waits until the first is through, so that its steps are told
 * in order. (Z1 of events.c) */
#include <stdatomic.h>

#include "due/metrics.h"
#include "lab/lab.h"
#include "lab/take.h"

#include "queue/queue.h"

#define LEASE 100

struct looks {
    due_queue *q;
    atomic_uint held; /* calls of the hook in which nobody else could have told of the job */
    atomic_uint open;
};

static void look_at_teller(void *ctx, const due_event *event)
{
    struct looks *looks = ctx;
    uint32_t number;
    uint32_t generation;

    cr_assert(due__id_read(looks->q, event->id, &number, &generation));
    struct due__untold *u = due__records_at(&looks->q->events->untold, number);
    bool open = due__lock_try(&u->teller);
    if (open)
        due__lock_release(&u->teller);
    atomic_fetch_add(open ? &looks->open : &looks->held, 1);
}

static void no_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

LAB_TEST(teller, of_a_job_is_one_at_a_time_whatever_is_told)
{
    struct looks looks = { .q = NULL };
    struct lab lab = lab_open(.start_ns = 10, .with.on_event = look_at_teller,
                              .with.on_discard = no_discard, .with.ctx = &looks);
    due_job job = { 0 };

    looks.q = lab.q;
    lab_enqueue(&lab, "tea", .delay_ns = 0);
    lab_enqueue(&lab, "jam", .delay_ns = 5);
    lab_turn_to(&lab, 20);
    cr_assert_eq(take_leased(lab.q, &job, LEASE, DUE_S(20)), 0);
    cr_assert_eq(due_nack(&job, 5), 0);
    cr_assert_eq(take_leased(lab.q, &job, LEASE, DUE_S(20)), 0);
    cr_assert_eq(due_ack(&job), 0);
    lab_turn_to(&lab, 30);
    cr_expect_not_null(lab_dequeue(&lab));
    lab_close(&lab);
    cr_expect_eq(atomic_load(&looks.open), 0u);
    cr_expect_geq(atomic_load(&looks.held), 9u); /* of each: produced, ready, delivered; and more */
}
