/* What a handler may call: every verb, on the queue of its own pool too, but what would wait for
 * itself.  Each call has one right answer there, and none hangs. */
#include "due/metrics.h"
#include "lab/shop.h"
#include "lab/workers_lab.h"
#include "lab/take.h"

#define LONG  DUE_S(1000) /* nobody comes to the end of it */
#define CALLS 192

struct answered {
    const char *call;
    int rc;
    int wanted;
};

/* The handler writes, and the test reads when it has ended. */
struct caller {
    due_queue *q;
    due_clock *clock; /* NULL: one of the kernel */
    due_workers *pool;
    const due_job *own;
    int topic;        /* that nobody else takes of */
    due_queue *other; /* queue */
    int64_t take_ns;  /* a timeout that waits for no job; a store is waited for */
    struct answered said[CALLS];
    unsigned calls;
    unsigned flushed_badly;
    sem_t ended;
};

/* Kept, and compared by the test: what Criterion expects it expects of its own thread.  With a
 * store each call comes after what the one before it has changed, also if nobody waits for that. */
static void note(struct caller *c, const char *call, int rc, int wanted)
{
    if (c->calls < CALLS)
        c->said[c->calls] = (struct answered){ call, rc, wanted };
    c->calls++;
    if (due_flush(c->q, LONG) != 0)
        c->flushed_badly++;
}

#define CALL(wanted, call) note(c, #call, (call), (wanted))
#define CALL_SOME(call)    note(c, #call, (int)((call) >= 0), 1) /* 0 or more, whatever it is */

/* A job that only the caller will take. */
static due_id put(struct caller *c, due_spec spec)
{
    due_id id = { { 0 } };

    spec.size = sizeof(due_spec);
    spec.topic = c->topic;
    spec.data = "x";
    spec.len = 1;
    CALL(0, due_enqueue(c->q, &spec, 0, &id));
    return id;
}

static due_job take(struct caller *c)
{
    due_job job = { 0 };

    CALL(0, take_leased_from(c->q, &c->topic, 1, &job, LONG, c->take_ns));
    return job;
}

/* ---- Itself, and the job it was given -------------------------------------------------------- */

static void call_for_itself(struct caller *c)
{
    CALL(DUE_EDEADLK, due_close(c->q, DUE_CLOSE_DRAIN, DUE_FOREVER));
    CALL(DUE_EDEADLK, due_close(c->q, DUE_CLOSE_DRAIN, 0));
    CALL(DUE_EDEADLK, due_close(c->q, DUE_CLOSE_DISCARD, DUE_FOREVER));
    CALL(DUE_EDEADLK, due_close(c->q, DUE_CLOSE_DISCARD, 0));
    CALL(DUE_EBUSY, due_free(c->q));
    CALL(DUE_EDEADLK, due_workers_stop(c->pool, DUE_FOREVER));
    CALL(DUE_EDEADLK, due_workers_stop(c->pool, 1));
    CALL(DUE_EBUSY, due_workers_free(c->pool));
    if (c->clock != NULL)
        CALL(DUE_EBUSY, due_clock_free(c->clock));
}

static void call_for_its_job(struct caller *c)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 1 };
    struct due_workers_stats stats;
    due_id id = c->own->id;
    due_job copy = *c->own;
    due_id found;
    due_info info;
    int64_t ns;

    CALL(0, due_job_stopping(c->own));
    CALL(0, due_extend(&copy, LONG));
    CALL(0, due_extend(&copy, 2 * LONG));
    CALL(DUE_EBUSY, due_find(c->q, id, &info));
    CALL(DUE_EBUSY, due_remaining(c->q, id, &ns));
    CALL(DUE_EBUSY, due_reschedule(c->q, id, 1));
    CALL(DUE_EBUSY, due_promote(c->q, id));
    CALL(DUE_EBUSY, due_update(c->q, id, "y", 1));
    CALL(DUE_EBUSY, due_amend(c->q, id, &spec, DUE_SET_TIME));
    CALL(DUE_ENOENT, due_kick(c->q, id));
    CALL(0, due_id_of_key(c->q, "own", 3, &found));
    CALL(1, due_id_equal(id, found));
    CALL(0, due_workers_stats_read(c->pool, &stats));
    CALL(1, (int)stats.running);
    CALL(0, due_job_stopping(c->own));
}

/* It is not tried again from here on; its ack counts. */
static void call_off_its_job(struct caller *c)
{
    due_id id = c->own->id;
    int result;

    CALL(DUE_EBUSY, due_cancel_key(c->q, "own", 3, NULL));
    CALL(DUE_EBUSY, due_cancel(c->q, id, NULL));
    CALL(0, due_cancel_batch(c->q, &id, 1, &result));
    CALL(DUE_EBUSY, result);
    CALL(1, due_job_stopping(c->own));
}

/* ---- Other jobs ------------------------------------------------------------------------------ */

static void answer_for_others(struct caller *c)
{
    due_job job = { 0 };
    due_job some[3] = { 0 };
    int results[2];

    due_id id = put(c, (due_spec){ .priority = 9 });
    job = take(c);
    CALL(1, due_id_equal(id, job.id));
    CALL(0, due_extend(&job, LONG));
    CALL(0, due_nack(&job, 0));
    job = take(c);
    CALL(0, due_nack(&job, DUE_DELAY_POLICY));
    job = take(c);
    CALL(3, (int)job.attempts);
    CALL(0, due_ack(&job));

    due_spec spec = { DUE_SPEC_INIT, .topic = c->topic };
    const due_spec specs[] = { spec, spec, spec };
    CALL(3, due_enqueue_batch(c->q, specs, 3, 0, NULL));
    CALL(3, take_leased_some(c->q, &c->topic, 1, some, 3, LONG, c->take_ns));
    CALL(2, due_ack_batch(some, 2, results));
    CALL(0, due_nack(&some[2], LONG));
    CALL(DUE_EAGAIN, take_leased(c->q, &job, LONG, 0));
    CALL(DUE_EAGAIN, due_dequeue(c->q, &job, 0));
    CALL(0, due_clear(c->q, c->topic, NULL));
}

static void bury_and_kick(struct caller *c)
{
    uint64_t cursor = 0;
    due_dead dead;

    due_id id = put(c, (due_spec){ .priority = 3 });
    due_job job = take(c);
    CALL(0, due_bury(&job, "why"));
    CALL(1, due_list_dead(c->q, &cursor, &dead, 1));
    CALL(1, due_id_equal(id, dead.id));
    CALL(0, due_update(c->q, id, "mended", 6));
    CALL(0, due_kick(c->q, id));
    job = take(c);
    CALL(6, (int)job.len);
    CALL(0, due_bury(&job, NULL));
    CALL(0, due_kick_all(c->q, c->topic, NULL));
    job = take(c);
    CALL(0, due_bury(&job, NULL));
    CALL(0, due_clear_dead(c->q, c->topic, NULL));
    CALL(DUE_ENOENT, due_kick(c->q, id));
}

static void change_waiting_ones(struct caller *c)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "other", .len = 5 };
    due_id ids[2];
    due_info info;
    due_job job = { 0 };
    int64_t ns;

    due_id id = put(c, (due_spec){ .delay_ns = LONG });
    CALL(0, due_find(c->q, id, &info));
    CALL(0, due_remaining(c->q, id, &ns));
    CALL(0, due_reschedule(c->q, id, due_now(c->q) + 2 * LONG));
    CALL(0, due_update(c->q, id, "new", 3));
    CALL(0, due_amend(c->q, id, &spec, DUE_SET_DATA | DUE_SET_TIME)); /* it is due now */
    CALL(0, take_from(c->q, &c->topic, 1, &job, c->take_ns));
    CALL(5, (int)job.len);
    due_job_done(&job);

    id = put(c, (due_spec){ .delay_ns = LONG });
    CALL(0, due_promote(c->q, id));
    CALL(1, take_some(c->q, &c->topic, 1, &job, 1, c->take_ns));
    due_job_done(&job);

    id = put(c, (due_spec){ .delay_ns = LONG });
    CALL(0, due_cancel(c->q, id, &job));
    due_job_done(&job);
    ids[0] = put(c, (due_spec){ .delay_ns = LONG });
    ids[1] = put(c, (due_spec){ .delay_ns = LONG });
    CALL(2, due_cancel_batch(c->q, ids, 2, NULL));
}

static void put_with_keys(struct caller *c)
{
    due_extra more = { DUE_EXTRA_INIT, .key = "k", .key_len = 1 };
    due_spec spec = { DUE_SPEC_INIT, .topic = c->topic, .more = &more };
    due_id id;
    due_id other;

    spec.delay_ns = LONG;
    CALL(0, due_enqueue(c->q, &spec, 0, &id));
    CALL(DUE_EEXIST, due_enqueue(c->q, &spec, 0, &other));
    CALL(1, due_id_equal(id, other));
    CALL(0, due_id_of_key(c->q, "k", 1, &other));
    for (int policy = DUE_KEY_REPLACE; policy <= DUE_KEY_DEBOUNCE; policy++) {
        more.on_key = (enum due_key_policy)policy;
        CALL(0, due_enqueue(c->q, &spec, 0, &other));
        CALL(1, due_id_equal(id, other));
    }
    CALL(0, due_cancel_key(c->q, "k", 1, NULL));
    CALL(DUE_ENOENT, due_id_of_key(c->q, "k", 1, &other));

    spec.more = EXTRA(.group = "g", .group_len = 1); /* of its jobs one runs at a time */
    spec.delay_ns = 0;
    const due_spec two[] = { spec, spec };
    CALL(2, due_enqueue_batch(c->q, two, 2, 0, NULL));
    due_job job = take(c);
    due_job none;
    CALL(DUE_EAGAIN, take_leased(c->q, &none, LONG, 0)); /* zeroed */
    CALL(DUE_EINVAL, due_ack(&none));
    CALL(0, due_ack(&job));
    job = take(c);
    CALL(0, due_ack(&job));
}

/* ---- The whole queue ------------------------------------------------------------------------- */

static void look_at_the_queue(struct caller *c)
{
    struct due_topic_stats of_topic;
    struct due_metrics metrics;
    struct due_stats stats;
    uint64_t cursor = 0;
    char text[64];
    due_info info;
    int64_t next;

    due_id id = put(c, (due_spec){ .delay_ns = LONG });
    CALL(0, due_peek(c->q, &info));
    CALL(1, due_id_equal(id, info.id));
    CALL(1, due_list(c->q, &cursor, &info, 1));
    CALL(0, due_stats_read(c->q, &stats));
    CALL(0, due_topic_stats_read(c->q, c->topic, &of_topic));
    CALL(0, due_metrics_read(c->q, &metrics));
    CALL_SOME(due_metrics_write(c->q, text, sizeof text));
    CALL_SOME(due_fd(c->q));
    CALL_SOME(due_poll(c->q, &next));
    CALL_SOME(due_next_deadline(c->q));
    CALL_SOME(due_now(c->q));
    CALL(0, due_trim(c->q));
    CALL(0, due_flush(c->q, LONG));
    CALL(0, due_clear(c->q, DUE_ALL_TOPICS, NULL));
    CALL(DUE_EAGAIN, due_peek(c->q, &info));
}

static void steer_the_queue(struct caller *c)
{
    const due_retry retry = { .kind = DUE_RETRY_FIXED, .delay_ns = 1 };
    due_job job = { 0 };

    CALL(1, due_topic_name(c->q, c->topic) != NULL);
    CALL(c->topic, due_topic(c->q, "callers"));
    CALL_SOME(due_topic(c->q, "new"));
    CALL(0, due_topic_retry(c->q, c->topic, &retry));
    CALL(0, due_topic_retry(c->q, c->topic, &(due_retry){ .kind = DUE_RETRY_INHERIT }));
    put(c, (due_spec){ .priority = 1 });
    CALL(0, due_pause(c->q, c->topic));
    CALL(0, due_pause(c->q, DUE_ALL_TOPICS));
    CALL(DUE_EAGAIN, take_from(c->q, &c->topic, 1, &job, 0));
    CALL(0, due_resume(c->q, DUE_ALL_TOPICS));
    CALL(0, due_topic_limit(c->q, c->topic, 1));
    put(c, (due_spec){ .priority = 1 });
    due_job first = take(c);
    CALL(DUE_EAGAIN, take_leased_from(c->q, &c->topic, 1, &job, LONG, 0));
    CALL(0, due_topic_limit(c->q, c->topic, 0));
    job = take(c);
    CALL(0, due_ack(&job));
    CALL(0, due_ack(&first));
    if (c->clock != NULL)
        CALL(0, due_clock_advance(c->clock, 1));
}

/* ---- Other pools and queues ------------------------------------------------------------------ */

static void within(void *ctx, const due_job *job, due_answer *answer)
{
    (void)job;
    sem_post(ctx);
    *answer = due_answer_ack();
}

/* A pool of the same queue, and one of another: begun, at work, and ended. */
static void run_a_pool(struct caller *c, due_queue *q, int topic)
{
    due_spec spec = { DUE_SPEC_INIT, .topic = topic };
    struct due_workers_stats stats;
    due_workers *pool = NULL;
    sem_t done;

    sem_init(&done, 0, 0);
    CALL(0, due_workers_start(&pool, q, &topic, 1, 2, within, &done, NULL));
    CALL(0, due_enqueue(q, &spec, 0, NULL));
    while (sem_wait(&done) != 0)
        continue;
    CALL(0, due_workers_stop(pool, DUE_FOREVER));
    CALL(0, due_workers_stats_read(pool, &stats));
    CALL(1, (int)stats.acked);
    CALL(0, due_workers_free(pool));
    sem_destroy(&done);
}

static void call_everything(void *ctx, const due_job *job, due_answer *answer)
{
    struct caller *c = ctx;

    c->own = job;
    call_for_itself(c);
    call_for_its_job(c);
    answer_for_others(c);
    bury_and_kick(c);
    change_waiting_ones(c);
    put_with_keys(c);
    look_at_the_queue(c);
    steer_the_queue(c);
    run_a_pool(c, c->q, c->topic);
    run_a_pool(c, c->other, 0);
    CALL(0, due_close(c->other, DUE_CLOSE_DRAIN, LONG));
    CALL(0, due_free(c->other));
    call_off_its_job(c);
    CALL(DUE_EAGAIN, due_workers_stop(c->pool, 0)); /* asked, from within */
    sem_post(&c->ended);
    *answer = due_answer_ack();
}

static void call_in(struct lab *lab, int64_t take_ns)
{
    struct caller c = { .q = lab->q, .clock = lab->clock, .take_ns = take_ns };
    int own = lab_topic(lab, "own");

    c.topic = lab_topic(lab, "callers");
    cr_assert_eq(due_open(&c.other, NULL, NULL), 0);
    sem_init(&c.ended, 0, 0);
    cr_assert_eq(due_workers_start(&c.pool, lab->q, &own, 1, 1, call_everything, &c, NULL), 0);
    lab_enqueue(lab, NULL, .topic = own, .more = EXTRA(.key = "own", .key_len = 3));
    while (sem_wait(&c.ended) != 0)
        continue;
    cr_expect_eq(due_workers_stop(c.pool, DUE_FOREVER), 0);
    cr_expect_eq(due_workers_free(c.pool), 0);
    cr_assert_leq(c.calls, (unsigned)CALLS);
    cr_expect_eq(c.flushed_badly, 0u);
    for (unsigned i = 0; i < c.calls; i++)
        cr_expect_eq(c.said[i].rc, c.said[i].wanted, "%s: %d (%s)", c.said[i].call, c.said[i].rc,
                     due_error_name(c.said[i].rc));
    struct due_stats s = lab_stats(lab);
    for (int i = 0; i < 3000 && s.leased > 0; i++) { /* the last ack may still be on its way */
        crew_sleep(DUE_MS(1));
        s = lab_stats(lab);
    }
    cr_expect_eq(s.acked, 9u, "%ju", (uintmax_t)s.acked);
    cr_expect_eq(s.waiting + s.leased + s.lent + s.dead, 0u);
    sem_destroy(&c.ended);
}

LAB_TEST(workers, a_handler_may_call_everything_but_what_would_wait_for_itself)
{
    struct lab lab = lab_open();

    call_in(&lab, 0);
    lab_close(&lab);
}

/* Where its lease is only promised, until it is extended. */
LAB_TEST(workers, a_handler_may_call_everything_on_a_kernel_clock_too)
{
    struct lab lab = lab_open(.kernel = true);

    call_in(&lab, 0);
    lab_close(&lab);
}

/* Where its calls wait for the store, and one of them sends for all. */
Test(workers, a_handler_may_call_everything_where_there_is_a_store_too, .timeout = 60)
{
    static const enum due_confirm confirm[] = { DUE_CONFIRM_SYNC, DUE_CONFIRM_ASYNC };

    for (int i = 0; i < 4; i++) {
        struct shop s =
            shop_make(.with.confirm = confirm[i % 2],
                      .with.proxies = i < 2 ? DUE_PROXIES_ADAPTIVE : DUE_PROXIES_ALWAYS);

        call_in(&s.lab, LONG);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        cr_expect_eq(memory_disk_jobs(s.disk), 0u);
        shop_close(&s);
    }
}
