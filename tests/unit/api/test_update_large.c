/* A waiting job that is too large to be changed under the lock: what others find meanwhile.  The
 * allocator is asked for its new block just then, and lets them in. */
#include "lab/lab.h"

#define LARGE ((size_t)100 << 10)

static unsigned char payload[LARGE];

/* What is done by another thread while the job is being changed. */
struct between {
    due_queue *q;
    due_id id;
    int (*act)(void *between);
    int rc;
    due_id got; /* by an enqueue */
    bool armed;
    bool begun;
    atomic_bool over;
    struct crew_thread thread;
};

static int acting(void *arg)
{
    struct between *b = arg;

    b->rc = b->act(b);
    atomic_store(&b->over, true);
    return 0;
}

/* It gets as far as it can. */
static void *alloc(void *ctx, size_t size)
{
    struct between *b = ctx;

    if (b->armed && size > LARGE) {
        b->armed = false;
        b->begun = true;
        crew_go(&b->thread, acting, b);
        for (int i = 0; i < 100 && !atomic_load(&b->over); i++)
            crew_sleep(DUE_MS(1));
    }
    return malloc(size);
}

static void give_back(void *ctx, void *memory, size_t size)
{
    (void)ctx, (void)size;
    free(memory);
}

static void between_open(struct between *b, int (*act)(void *))
{
    due_options o = { DUE_OPTIONS_INIT, .proxies = DUE_PROXIES_NEVER };

    o.allocator = &(due_allocator){ .alloc = alloc, .free = give_back, .ctx = b };
    b->act = act;
    cr_assert_eq(due_open(&b->q, &o, NULL), 0);
}

static void between_close(struct between *b)
{
    cr_expect(b->begun, "nobody came in between");
    cr_expect_eq(due_close(b->q, DUE_CLOSE_DISCARD, DUE_S(30)), 0);
    cr_expect_eq(due_free(b->q), 0);
}

static void put(struct between *b, due_spec spec)
{
    spec.size = sizeof(due_spec);
    spec.data = payload;
    spec.len = LARGE;
    cr_assert_eq(due_enqueue(b->q, &spec, 0, &b->id), 0);
}

/* It gets headers; meanwhile the other one comes. */
static int give_headers(struct between *b)
{
    due_spec spec = { DUE_SPEC_INIT, .more = EXTRA(.headers = "h", .headers_len = 1) };

    b->armed = true;
    int rc = due_amend(b->q, b->id, &spec, DUE_SET_HEADERS);
    if (b->begun)
        crew_join(&b->thread);
    return rc;
}

static struct due_stats stats(struct between *b)
{
    struct due_stats s;

    cr_assert_eq(due_stats_read(b->q, &s), 0);
    return s;
}

static int cancel(void *arg)
{
    struct between *b = arg;

    return due_cancel(b->q, b->id, NULL);
}

static int enqueue_with_key(void *arg)
{
    struct between *b = arg;
    due_spec spec = { DUE_SPEC_INIT, .data = "new", .len = 3,
                      .more = EXTRA(.key = "k", .key_len = 1, .on_key = DUE_KEY_REPLACE) };

    return due_enqueue(b->q, &spec, 0, &b->got);
}

static int kick(void *arg)
{
    struct between *b = arg;

    return due_kick(b->q, b->id);
}

static int update(void *arg)
{
    struct between *b = arg;

    return due_update(b->q, b->id, "new", 3);
}

/* ---- Tests ---- */

Test(update_large, cancelled_meanwhile_it_is_not_handed_out, .timeout = 60)
{
    struct between b = { .rc = 1 };
    due_job job;

    between_open(&b, cancel);
    put(&b, (due_spec){ .delay_ns = 0 });
    cr_expect_eq(give_headers(&b), 0);
    cr_expect_eq(b.rc, DUE_EBUSY);
    cr_expect_eq(due_dequeue(b.q, &job, 0), DUE_EAGAIN);
    cr_expect_eq(stats(&b).cancelled, 1u);
    between_close(&b);
}

Test(update_large, its_key_is_not_taken_over_meanwhile, .timeout = 60)
{
    struct between b = { .rc = 1 };
    due_job job;

    between_open(&b, enqueue_with_key);
    put(&b, (due_spec){ .more = EXTRA(.key = "k", .key_len = 1) });
    cr_expect_eq(give_headers(&b), 0);
    cr_expect_eq(b.rc, 0);
    cr_expect(due_id_equal(b.got, b.id), "it is the same job, changed");
    cr_expect_eq(stats(&b).waiting, 1u);
    cr_assert_eq(due_dequeue(b.q, &job, 0), 0);
    cr_expect_eq(job.len, 3u);
    due_job_done(&job);
    between_close(&b);
}

Test(update_large, another_change_is_told_that_it_is_busy, .timeout = 60)
{
    struct between b = { .rc = 1 };
    due_job job;

    between_open(&b, update);
    put(&b, (due_spec){ .delay_ns = 0 });
    cr_expect_eq(give_headers(&b), 0);
    cr_expect_eq(b.rc, DUE_EBUSY);
    cr_assert_eq(due_dequeue(b.q, &job, 0), 0);
    cr_expect_eq(job.len, LARGE);
    cr_expect_eq(job.headers_len, 1u);
    due_job_done(&job);
    between_close(&b);
}

/* It died of its age, so nobody ever reserved anything. */
static void put_dead(struct between *b, due_extra more)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 1, .more = &more };
    due_job job;

    more.ttl_ns = 1;
    put(b, spec);
    cr_assert_eq(due_dequeue(b->q, &job, 0), DUE_EAGAIN);
    cr_assert_eq(stats(b).dead, 1u);
}

Test(update_large, a_dead_one_cancelled_meanwhile_cannot_be_kicked, .timeout = 60)
{
    struct between b = { .rc = 1 };
    due_job job;

    between_open(&b, cancel);
    put_dead(&b, (due_extra){ DUE_EXTRA_INIT });
    cr_expect_eq(give_headers(&b), 0);
    cr_expect_eq(b.rc, DUE_EBUSY);
    int rc = due_kick(b.q, b.id);
    cr_expect(rc == 0 || rc == DUE_ENOENT);
    cr_expect_eq(due_dequeue(b.q, &job, 0), DUE_EAGAIN);
    cr_expect_eq(stats(&b).cancelled, 1u);
    cr_expect_eq(stats(&b).dead, 0u);
    between_close(&b);
}

Test(update_large, a_dead_one_is_not_kicked_meanwhile_and_not_said_to_be_alive, .timeout = 60)
{
    struct between b = { .rc = 1 };

    between_open(&b, kick);
    put_dead(&b, (due_extra){ DUE_EXTRA_INIT });
    cr_expect_eq(give_headers(&b), 0);
    cr_expect_eq(b.rc, DUE_EBUSY);
    cr_expect_eq(stats(&b).dead, 1u);
    cr_expect_eq(due_kick(b.q, b.id), 0);
    cr_expect_eq(due_kick(b.q, b.id), DUE_ENOENT);
    between_close(&b);
}

Test(update_large, the_key_of_a_dead_one_is_not_taken_over_meanwhile, .timeout = 60)
{
    struct between b = { .rc = 1 };

    between_open(&b, enqueue_with_key);
    put_dead(&b, (due_extra){ DUE_EXTRA_INIT, .key = "k", .key_len = 1 });
    cr_expect_eq(give_headers(&b), 0);
    cr_expect_eq(b.rc, 0);
    cr_expect(due_id_equal(b.got, b.id), "it is the same job, and waits again");
    cr_expect_eq(stats(&b).waiting, 1u);
    cr_expect_eq(stats(&b).dead, 0u);
    between_close(&b);
}

/* It stands behind its equals, also those that its caller has left for somebody else to sort in. */
LAB_TEST(update_large, puts_the_job_last_among_equals_that_have_just_come)
{
    enum { JOBS = 300 };
    static due_spec specs[JOBS];
    static due_id ids[JOBS];

    for (int round = 0; round < 10; round++) {
        struct lab lab = lab_open();
        due_spec change = { DUE_SPEC_INIT, .at_ns = 10,
                            .more = EXTRA(.headers = "h", .headers_len = 1) };
        due_id last = { { 0 } };
        due_job job;

        for (int i = 0; i < JOBS; i++)
            specs[i] = (due_spec){ DUE_SPEC_INIT, .at_ns = 10 };
        specs[0].data = payload;
        specs[0].len = LARGE;
        cr_assert_eq(due_enqueue_batch(lab.q, specs, JOBS, 0, ids), JOBS);
        cr_assert_eq(due_amend(lab.q, ids[0], &change, DUE_SET_HEADERS | DUE_SET_TIME), 0);
        lab_turn_to(&lab, 10);
        while (due_dequeue(lab.q, &job, 0) == 0) {
            last = job.id;
            due_job_done(&job);
        }
        cr_assert(due_id_equal(last, ids[0]), "round %d: not the last", round);
        lab_close(&lab);
    }
}
