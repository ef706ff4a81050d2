/* Where rooms meet: keys and limiters, deaths and those who wait. */
#include <pthread.h>

#include "job/key_table.h"
#include "queue/queue.h"
#include "lab/limiter_lab.h"
#include "os/siphash.h"
#include "lab/take.h"
#include "lab/watch.h"

#define KEYED(name, policy) .key = (name), .key_len = sizeof(name) - 1, .on_key = (policy)

/* ---- Keys and limiters ---- */

LAB_TEST(seams, a_job_put_off_by_its_key_does_not_hold_its_group)
{
    static const enum due_key_policy policies[] = { DUE_KEY_REPLACE, DUE_KEY_DEBOUNCE };

    for (size_t i = 0; i < 2; i++) {
        struct lab lab = lab_open(.start_ns = 10);

        lab_enqueue(&lab, "first", .at_ns = 1, .more = EXTRA(OF("g"), KEYED("k", DUE_KEY_REFUSE)));
        lab_enqueue(&lab, "second", .at_ns = 2, .more = EXTRA(OF("g")));
        cr_expect_eq(due_poll(lab.q, NULL), 1);
        limiter_right(&lab);
        lab_enqueue(&lab, "later", .at_ns = 1000, .more = EXTRA(OF("g"), KEYED("k", policies[i])));
        limiter_right(&lab);
        cr_expect_eq(lab_stats(&lab).passed, 1u);
        cr_expect_str_eq(lab_dequeue_all(&lab), "second", "a job that is not due holds the group");
        lab_turn_to(&lab, 1000);
        cr_expect_str_eq(lab_dequeue_all(&lab), "later");
        limiter_close(&lab);
    }
}

/* What was half made is given up, whichever allocation fails. */
LAB_TEST(seams, a_group_goes_with_a_job_whose_key_found_no_memory)
{
    struct lab lab = lab_open();
    struct flaky *memory = &lab.state->memory;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 5,
                      .more = EXTRA(OF("g"), KEYED("k", DUE_KEY_REFUSE)) };
    int rc = DUE_ENOMEM;

    for (size_t n = 0; rc == DUE_ENOMEM; n++) {
        flaky_fail_in(memory, n);
        rc = due_enqueue(lab.q, &spec, 0, NULL);
        memory->fail_at = FLAKY_NEVER;
        cr_expect_eq(lab.q->limiters.groups, rc == 0 ? 1u : 0u, "allocation %zu", n);
    }
    cr_assert_eq(rc, 0);
    limiter_close(&lab);
}

/* ---- Jobs that are not handed out ---- */

Test(seams, who_waits_goes_on_when_what_was_due_had_expired, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true);
    due_job job;

    for (unsigned i = 0; i < 2; i++) {
        lab_enqueue(&lab, "expired", .at_ns = 1, .more = EXTRA(.ttl_ns = 1));
        int rc = i == 0 ? take_from(lab.q, &(int){ 0 }, 1, &job, DUE_MS(20))
                        : take_leased(lab.q, &job, LEASE, DUE_MS(20));
        cr_expect_eq(rc, DUE_ETIMEDOUT, "%s", due_error_name(rc));
        cr_expect_eq(lab_stats(&lab).dead, i + 1);
    }
    lab_close(&lab);
}

/* ---- A limit that comes while a job is handed out ---- */

struct policy_now {
    due_queue *q;
    int rc;
};

static void *set_policy(void *arg)
{
    const due_retry once = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };
    struct policy_now *p = arg;

    p->rc = due_topic_retry(p->q, 0, &once);
    return NULL;
}

/* It has been taken, and its lease not yet begun: somebody else gives its topic a policy. */
static void when_delivered(void *ctx, const due_event *event)
{
    struct policy_now *p = ctx;
    pthread_t other;

    if (event->kind != DUE_EVENT_DELIVERED || p->q == NULL)
        return;
    cr_assert_eq(pthread_create(&other, NULL, set_policy, p), 0);
    pthread_join(other, NULL);
    p->q = NULL;
}

static void no_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

Test(seams, a_limit_that_comes_while_a_job_is_handed_out_is_kept_to, .timeout = 60)
{
    struct policy_now p = { .rc = -1 };
    struct lab lab =
        lab_open(.with.on_event = when_delivered, .with.ctx = &p, .with.on_discard = no_discard);

    lab_enqueue(&lab, "tea", .delay_ns = 0);
    p.q = lab.q;
    due_job job = limiter_reserve(&lab);
    cr_assert_eq(p.rc, 0);
    due_job_done(&job);
    lab_advance(&lab, LEASE);
    limiter_nothing(&lab);
    cr_expect_eq(lab_stats(&lab).dead, 1u, "it was its last attempt");
    lab_close(&lab);
}

/* ---- Taken back while the queue closes ---- */

struct batch {
    struct crew_thread thread;
    due_queue *q;
    int rc;
};

static int enqueue_two(void *arg)
{
    struct batch *b = arg;
    const due_spec specs[2] = { { DUE_SPEC_INIT, .at_ns = 1, .data = "round", .len = 5,
                                  .more = EXTRA(.every_ns = DUE_S(1000)) },
                                { DUE_SPEC_INIT, .at_ns = 1,
                                  .more = EXTRA(KEYED("b", DUE_KEY_REFUSE)) } };

    b->rc = due_enqueue_batch(b->q, specs, 2, 0, NULL);
    return 0;
}

/* The producer stands between its two jobs, as the second one's key is being looked at. */
Test(seams, a_job_that_somebody_holds_is_not_taken_back_by_its_producer, .timeout = 60)
{
    struct lab lab = lab_open(.kernel = true);
    struct batch b = { .q = lab.q };
    due_id id = lab_enqueue(&lab, "x", .at_ns = 1, .more = EXTRA(KEYED("b", DUE_KEY_REFUSE)));
    due_job job;
    int rc = DUE_EAGAIN;

    watch_end(lab.q); /* it is the test that has the lock of a shard of keys */
    cr_assert_eq(due_cancel(lab.q, id, NULL), 0);
    struct due__keys *keys = lab.q->keys;
    struct due__key_shard *shard = due__key_enter(keys, due__siphash(keys->seed, "b", 1));
    crew_go(&b.thread, enqueue_two, &b);
    while (rc == DUE_EAGAIN) {
        crew_sleep(DUE_MS(1));
        rc = due_dequeue(lab.q, &job, 0);
    }
    cr_assert_eq(rc, 0);
    cr_expect_eq(due_close(lab.q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT);
    due__key_leave(lab.q, shard);
    crew_join(&b.thread);
    cr_expect_eq(b.rc, 1, "%d", b.rc);
    cr_expect_eq(lab_stats(&lab).waiting, 1u);
    cr_expect_eq(memcmp(job.data, "round", 5), 0);
    due_job_done(&job);
    lab_close(&lab);
}
