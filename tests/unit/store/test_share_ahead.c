/* One queue for many processes: a call names a job that its own process claims just then, for
 * nobody so far.  Nobody has it, so no call is told that somebody does. */
#include "lab/mall.h"

enum { RESCHEDULED, PROMOTED, TIMED, UPDATED, REPLACED, CANCELLED, LENT, BY_KEY, BATCH, VERBS };

struct named {
    due_queue *q;
    due_id id;
    int verb;
    due_job job;
};

static int replace(due_queue *q, due_id id)
{
    due_extra more = { DUE_EXTRA_INIT, .key = "k", .key_len = 1, .on_key = DUE_KEY_REPLACE };
    due_spec spec = { DUE_SPEC_INIT, .data = "milk",       .len = 4,
                      .at_ns = 100,  .flags = DUE_SPEC_AT, .more = &more };
    due_id now;
    int rc = due_enqueue(q, &spec, 0, &now);

    cr_expect(due_id_equal(id, now), "it is another job");
    return rc < 0 ? rc : 0;
}

static int name_it(void *arg)
{
    struct named *n = arg;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 100, .flags = DUE_SPEC_AT };
    int result;

    switch (n->verb) {
    case RESCHEDULED:
        return due_reschedule(n->q, n->id, 100);
    case PROMOTED:
        return due_promote(n->q, n->id);
    case TIMED:
        return due_amend(n->q, n->id, &spec, DUE_SET_TIME);
    case UPDATED:
        return due_update(n->q, n->id, "milk", 4);
    case REPLACED:
        return replace(n->q, n->id);
    case CANCELLED:
        return due_cancel(n->q, n->id, NULL);
    case LENT:
        return due_cancel(n->q, n->id, &n->job);
    case BY_KEY:
        return due_cancel_key(n->q, "k", 1, NULL);
    default:
        return due_cancel_batch(n->q, &n->id, 1, &result) == 1 ? 0 : result;
    }
}

/* What has become of it. */
static void look_at(struct mall *m, struct named *n)
{
    due_job job;

    if (n->verb >= CANCELLED) {
        cr_expect_eq(memory_disk_jobs(m->disk), 0u, "verb %d", n->verb);
        if (n->verb == LENT)
            cr_expect_str_eq(lab_text(&m->lab[0], &n->job), "tea");
        return;
    }
    if (n->verb != PROMOTED && n->verb != UPDATED)
        mall_turn_to(m, 100);
    cr_assert_eq(mall_take(m, 0, &job), 0);
    cr_expect(due_id_equal(job.id, n->id));
    cr_expect_str_eq(lab_text(&m->lab[0], &job),
                     n->verb == UPDATED || n->verb == REPLACED ? "milk" : "tea", "verb %d",
                     n->verb);
}

/* The claim is made, and its answer on its way, when the job is looked for and is not there yet. */
static void meet(int verb)
{
    struct mall m = mall_make(1);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    struct named n = { .q = m.lab[0].q, .verb = verb };
    struct crew_thread t;
    due_job job;

    cr_assert_eq(
        lab_put_as(&m.lab[0], DUE_KEY_REFUSE, "tea", &n.id, .at_ns = 50, .flags = DUE_SPEC_AT), 0);
    cr_expect_eq(due_dequeue(n.q, &job, 0), DUE_EAGAIN); /* it wants one */
    memory_store_until(m.store[0], MEMORY_WORK, 1);
    memory_store_fault(
        m.store[0],
        (struct memory_fault){ .verb = MEMORY_WORK, .kind = MEMORY_BLOCK_AFTER, .limiter = gate });
    mall_turn_to(&m, 50);
    memory_limiter_reached(gate, 1);
    crew_go(&t, name_it, &n);
    crew_until_asleep(&t);
    memory_limiter_open(gate);
    int rc = crew_join(&t);
    cr_assert_eq(rc, 0, "verb %d: %s", verb, due_error_name(rc));
    look_at(&m, &n);
    memory_limiter_free(gate);
    mall_close(&m);
}

MALL_TEST(share_ahead, what_is_claimed_meanwhile_is_nobodys)
{
    for (int verb = 0; verb < VERBS; verb++)
        meet(verb);
}
