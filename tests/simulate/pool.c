/* pool.c - handlers that take their time and answer in every way.
 *
 * A handler does not learn when its job was reserved, nor what becomes of its answer.  So to the
 * ledger it has a lease that is over, and its answer is in doubt; at the end the figures must be
 * right.
 */
#include "pool.h"

#include <inttypes.h>

#include "books.h"
#include "client.h"
#include "history.h"
#include "machine.h"
#include "store.h"

#define LANES          8u
#define ROUNDS_HANDLED 20u /* of a job */

/* Of handlers, in the history. */
static unsigned lane_begin(struct program *p)
{
    unsigned lane = 0;

    while (lane < LANES - 1 && (p->lanes >> lane & 1) != 0)
        lane++;
    p->lanes |= 1u << lane;
    return p->own.thread + 56 + lane;
}

static void lane_end(struct program *p, unsigned lane)
{
    p->lanes &= ~(1u << (lane % HISTORY_LANES - 56));
}

static void told(struct program *p, unsigned lane, const due_job *job)
{
    char id[DUE_ID_TEXT];
    uint64_t number = client_number(job);
    int topic = client_topic(p, job->topic);

    if (number == 0)
        machine_fail("a job is handled whose bytes make no sense");
    p->handled++;
    struct book *b = books_meet(number, job->id);
    books_handled(b, topic, job);
    if (rounds_repeats(b)) {
        history_note(lane, "round! %" PRIu64 " %s", number, due_id_format(job->id, id));
        return;
    }
    history_ask(lane, "reserve? 0");
    history_tell(lane, "reserve! DUE_OK %" PRIu64 " %s %d %d 1", number, due_id_format(job->id, id),
                 job->priority, topic);
}

static due_answer draw_answer(struct program *p, unsigned lane, const due_job *job,
                              char id[DUE_ID_TEXT])
{
    due_id_format(job->id, id);
    int64_t delay = (int64_t)machine_below((uint64_t)p->plan->lease_ns);
    uint64_t dice = machine_below(10);

    if (dice == 0 && plan_has(p->plan, KIND_ATTEMPTS)) {
        history_ask(lane, "nack? %s 0", id);
        history_tell(lane, "nack! %s DUE_EINDOUBT", id);
        return due_answer_nack(DUE_DELAY_POLICY);
    }
    if (dice < 2) {
        history_ask(lane, "nack? %s %" PRId64, id, delay);
        history_tell(lane, "nack! %s DUE_EINDOUBT", id);
        return due_answer_nack(delay);
    }
    if (dice < 3 && plan_has(p->plan, KIND_BURY)) {
        books_find(job->id)->death.buried = true;
        history_ask(lane, "bury? %s", id);
        history_tell(lane, "bury! %s DUE_EINDOUBT", id);
        return due_answer_bury(id);
    }
    history_ask(lane, "ack? %s", id);
    history_tell(lane, "ack! %s DUE_EINDOUBT", id);
    return due_answer_ack();
}

/* Else a pool would never rest. */
static void end_round(struct program *p, unsigned lane, const due_job *job)
{
    struct book *b = books_find(job->id);
    char id[DUE_ID_TEXT];

    if (!rounds_repeats(b) || ++b->round.handled < ROUNDS_HANDLED)
        return;
    b->calls++;
    b->ending = true;
    int rc = due_cancel(p->q, job->id, NULL);
    b->calls--;
    history_note(lane, "cancelled %s %s", due_id_format(job->id, id), due_error_name(rc));
    client_cancelled(b, rc);
}

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    struct program *p = ctx;
    char id[DUE_ID_TEXT];
    unsigned lane = lane_begin(p);

    told(p, lane, job);
    end_round(p, lane, job);
    if (machine_below(2) == 0)
        machine_sleep(1 + (int64_t)machine_below(2 * (uint64_t)p->plan->lease_ns));
    *answer = draw_answer(p, lane, job, id);
    lane_end(p, lane);
}

void pool_start(struct program *p)
{
    /* Long enough for an answer: else a job is handled again every few microseconds, for as many
     * steps as others wait for a store. */
    int64_t least_ns = plan_has(p->plan, KIND_DRIFT) ? DUE_US(100) : DUE_US(1);
    due_workers_options o = { DUE_WORKERS_INIT, .lease_ns = p->plan->lease_ns + least_ns,
                              .extend_max_ns = p->plan->lease_ns * (int64_t)(1 + machine_below(4)),
                              .in_flight_max = 8 };
    int rc;

    if (!plan_has(p->plan, KIND_WORKERS))
        return;
    do
        rc = due_workers_start(&p->pool, p->q, NULL, 0, 1 + machine_below(3), handle, p, &o);
    while (rc == DUE_ENOMEM || rc == DUE_ESYS);
    if (rc != 0)
        machine_fail("due_workers_start: %s", due_error_name(rc));
}

/* Attempts, rounds and deaths have to be stored, and it may be too slow for that. */
static bool store_slow(const struct plan *p)
{
    bool faults = plan_has(p, KIND_LATENCY) || plan_has(p, KIND_AWAY) || plan_has(p, KIND_DOUBT) ||
                  plan_has(p, KIND_FULL) || plan_has(p, KIND_LOSSES);

    return faults &&
           (plan_has(p, KIND_ATTEMPTS) || plan_has(p, KIND_EXPIRY) || plan_has(p, KIND_ROUNDS));
}

/* Some job is begun as long as there is one, if nobody else may own them by now.  How long it takes
 * until there is none is certain only where leases do not end as fast as they begin, and the store
 * is there.  A worker that is held back may not have been on for many rounds. */
void pool_drain(struct program *p)
{
    bool slow = store_slow(p->plan);
    unsigned patience = plan_has(p->plan, KIND_BACK) ? 3000 : 300;
    bool certain = !plan_has(p->plan, KIND_JUMPS) && !plan_has(p->plan, KIND_DRIFT) &&
                   !plan_has(p->plan, KIND_MANUAL) && !plan_has(p->plan, KIND_STORED);
    uint64_t begun = p->handled;
    unsigned still = 0; /* so many rounds none was begun */
    struct due_stats s;

    for (unsigned rounds = 0; p->pool != NULL; rounds++) {
        if (due_stats_read(p->q, &s) != 0)
            machine_fail("due_stats_read fails");
        still = p->handled == begun ? still + 1 : 0;
        begun = p->handled;
        if (s.waiting + s.leased == 0 || (rounds >= 3 && ((still == 0 && !certain) || slow)) ||
            !store_mine())
            return;
        if (still == patience && p->plan->seats > 1) /* its lease of the store may be over */
            return;
        if (still == patience)
            machine_fail("%" PRIu64 " jobs wait and %" PRIu64
                         " are leased, and the pool does not take them",
                         s.waiting, s.leased);
        machine_sleep(p->plan->horizon_ns + p->plan->machine.clock_step_max_ns + DUE_MS(20));
    }
}

void pool_free(struct program *p)
{
    if (p->pool == NULL)
        return;
    int rc = due_workers_free(p->pool);
    if (rc != 0)
        machine_fail("due_workers_free: %s", due_error_name(rc));
    p->pool = NULL;
}

/* Nobody is in a handler, and each that has returned has come to its end. */
static void check_figures(const struct program *p)
{
    struct due_workers_stats s;

    if (due_workers_stats_read(p->pool, &s) != 0)
        machine_fail("due_workers_stats_read fails");
    uint64_t ends = s.acked + s.retried + s.buried + s.lost + s.unanswered;
    if (s.running + s.ahead + s.idle != 0 || s.handled != ends)
        machine_fail("a pool that has stopped: %" PRIu64 " run, %" PRIu64 " ahead, %" PRIu64
                     " idle; %" PRIu64 " handled, and %" PRIu64 " have ended",
                     s.running, s.ahead, s.idle, s.handled, ends);
}

void pool_stop(struct program *p)
{
    int64_t most_ns = p->plan->lease_ns;
    int rc;

    if (p->pool == NULL)
        return;
    do {
        history_note(p->own.thread, "stop?");
        rc = due_workers_stop(p->pool, (int64_t)machine_below((uint64_t)most_ns));
        most_ns += most_ns < DUE_S(10) ? most_ns : 0; /* a handler may wait for the store */
        history_note(p->own.thread, "stop! %s", due_error_name(rc));
    } while (rc == DUE_ETIMEDOUT || rc == DUE_EAGAIN || rc == DUE_ENOMEM);
    if (rc != 0)
        machine_fail("due_workers_stop: %s", due_error_name(rc));
    check_figures(p);
    if (machine_below(2) == 0)
        pool_free(p);
}
