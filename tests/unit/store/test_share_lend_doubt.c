/* One queue for many processes: who cancels a job for its bytes is in doubt, or in the way. */
#include "lab/mall.h"
#include "store/share.h"

#define TEXT "a job with more bytes than its own place"
#define AGES DUE_S(1000) /* longer than a test may take */

static void expect_lent(due_job *job, due_id id)
{
    cr_expect(due_id_equal(job->id, id));
    cr_assert_eq(job->len, strlen(TEXT));
    cr_expect_arr_eq(job->data, TEXT, job->len);
    due_job_done(job);
}

/* One more process, that waits so long for its store. */
static struct lab *join(struct mall *m, int64_t store_timeout_ns)
{
    size_t i = mall_join(m, (struct lab_options){ .with.store_timeout_ns = store_timeout_ns });

    return &m->lab[i];
}

/* Are the bytes of a change kept?  Once its end is known. */
static bool keeps_bytes(struct lab *lab)
{
    struct due__commits *c = lab->q->commits;
    bool asking = true;
    bool keeps = false;

    while (asking) {
        due__lock_acquire(&c->key);
        asking = c->share->asking;
        keeps = c->share->edit_bytes != NULL;
        due__lock_release(&c->key);
        if (asking)
            crew_sleep(DUE_US(100));
    }
    return keeps;
}

/* ---- Answers that get lost ---- */

/* The store was away for a moment: the job is gone, and who has cancelled it has its bytes. */
MALL_TEST(share_lend_doubt, a_drop_in_doubt_is_seen_through_by_its_caller_who_has_time)
{
    struct mall m = mall_make(1);
    struct lab *lab = join(&m, AGES);
    due_job job;

    for (uint64_t times = 1; times <= 3; times++)
        for (int lands = 0; lands < 2; lands++) {
            due_id id = lab_enqueue(&m.lab[0], TEXT, .at_ns = 50);

            memory_store_fault(
                m.store[1],
                (struct memory_fault){ .verb = MEMORY_PUT,
                                       .times = times,
                                       .kind = lands ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT });
            cr_assert_eq(due_cancel(lab->q, id, &job), 0);
            expect_lent(&job, id);
            cr_expect_eq(memory_disk_jobs(m.disk), 0u);
            cr_expect_not(keeps_bytes(lab));
        }
    mall_close(&m);
}

/* Between two attempts it rests, and does not ask the store without end. */
MALL_TEST(share_lend_doubt, a_store_that_never_tells_is_not_asked_without_end)
{
    struct mall m = mall_make(1);
    struct lab *lab = join(&m, DUE_MS(200));
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], TEXT, .at_ns = 50);
    uint64_t before = memory_store_calls(m.store[1], MEMORY_PUT);
    memory_store_fault(m.store[1], (struct memory_fault){ .verb = MEMORY_PUT,
                                                          .times = MEMORY_ALWAYS,
                                                          .kind = MEMORY_DOUBT_LANDED });
    cr_expect_eq(due_cancel(lab->q, id, &job), DUE_EINDOUBT);
    cr_expect_lt(memory_store_calls(m.store[1], MEMORY_PUT) - before, 100u);
    memory_store_forgive(m.store[1]);
    cr_expect_not(keeps_bytes(lab));
    cr_expect_eq(due_cancel(lab->q, id, &job), DUE_ENOENT);
    id = lab_enqueue(&m.lab[0], TEXT, .at_ns = 50);
    cr_assert_eq(due_cancel(lab->q, id, &job), 0);
    expect_lent(&job, id);
    mall_close(&m);
}

/* The drop may have landed before somebody else had the queue. */
MALL_TEST(share_lend_doubt, who_is_fenced_while_in_doubt_does_not_know)
{
    struct mall m = mall_make(1);
    struct lab *lab = join(&m, AGES);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], TEXT, .at_ns = 50);
    uint64_t next = memory_store_calls(m.store[1], MEMORY_PUT) + 1;
    memory_store_fault(
        m.store[1],
        (struct memory_fault){ .verb = MEMORY_PUT, .call = next, .kind = MEMORY_DOUBT_LANDED });
    memory_store_fault(m.store[1], (struct memory_fault){ .verb = MEMORY_PUT,
                                                          .call = next + 1,
                                                          .times = MEMORY_ALWAYS,
                                                          .kind = MEMORY_ANSWER,
                                                          .answer = DUE_EFENCED });
    cr_expect_eq(due_cancel(lab->q, id, &job), DUE_EINDOUBT);
    cr_expect_null(job.queue);
    cr_expect_eq(due_cancel(lab->q, id, &job), DUE_EFENCED);
    mall_close(&m);
}

/* ---- Who closes ---- */

struct call {
    struct lab *lab;
    due_id id;
    int what;
    due_job job;
};

static int call_main(void *arg)
{
    struct call *c = arg;

    switch (c->what) {
    case 0:
        return due_cancel(c->lab->q, c->id, &c->job);
    case 1:
        return due_update(c->lab->q, c->id, "x", 1);
    default:
        return due_reschedule(c->lab->q, c->id, 77);
    }
}

/* The call stands in the store, which is away; the queue is closed: what the call answers. */
static int close_while(struct mall *m, struct call *c, enum memory_verb verb,
                       enum memory_fault_kind kind)
{
    struct crew_thread thread;

    c->id = lab_enqueue(&m->lab[0], TEXT, .at_ns = 50);
    c->lab = join(m, AGES);
    due_store *store = m->store[m->n - 1];
    uint64_t before = memory_store_calls(store, verb);
    memory_store_fault(store,
                       (struct memory_fault){ .verb = verb, .times = MEMORY_ALWAYS, .kind = kind });
    crew_go(&thread, call_main, c);
    memory_store_until(store, verb, before + 1);
    cr_expect_eq(due_close(c->lab->q, DUE_CLOSE_DISCARD, DUE_MS(10)), 0);
    return crew_join(&thread);
}

MALL_TEST(share_lend_doubt, a_close_does_not_wait_for_who_looks)
{
    for (int what = 0; what < 3; what++) {
        struct mall m = mall_make(1);
        struct call c = { .what = what };

        cr_expect_eq(close_while(&m, &c, MEMORY_FIND, MEMORY_BLOCK), DUE_ECLOSED, "%d", what);
        cr_expect_eq(memory_disk_jobs(m.disk), 1u);
        mall_close(&m);
    }
}

MALL_TEST(share_lend_doubt, a_close_does_not_wait_for_who_sees_a_drop_through)
{
    struct mall m = mall_make(1);
    struct call c = { .what = 0 };

    cr_expect_eq(close_while(&m, &c, MEMORY_PUT, MEMORY_DOUBT_NOT), DUE_EINDOUBT);
    cr_expect_null(c.job.queue);
    mall_close(&m);
}

/* ---- Memory ---- */

/* The allocation, so many further on, at which somebody begins to close. */
struct drain {
    struct lab *lab;
    atomic_uint left;
    struct crew_call call;
};

static void drain_then(void *ctx, size_t size)
{
    struct drain *d = ctx;

    (void)size;
    if (atomic_fetch_sub(&d->left, 1) != 0)
        return;
    crew_call_close(&d->call, d->lab->q, DUE_CLOSE_DRAIN, AGES);
    crew_call_asleep(&d->call);
}

/* Whatever it is for which there is none, while the queue drains: its place was the last. */
MALL_TEST(share_lend_doubt, a_drain_does_not_wait_for_a_place_that_went_back)
{
    unsigned n = 0;
    int rc = DUE_ENOMEM;

    for (; rc != 0 && n < 100; n++) {
        struct mall m = mall_make(1);
        struct lab *lab = join(&m, DUE_MS(500));
        struct flaky *memory = &lab->state->memory;
        struct drain d = { .lab = lab, .left = n };
        due_job job;

        due_id id = lab_enqueue(&m.lab[0], TEXT, .at_ns = 50);
        memory->on_alloc_ctx = &d;
        memory->on_alloc = drain_then;
        flaky_fail_in(memory, n);
        rc = due_cancel(lab->q, id, &job);
        bool begun = atomic_load(&d.left) > n;
        memory->fail_at = FLAKY_NEVER;
        memory->on_alloc = NULL;
        cr_expect(rc == 0 || rc == DUE_ENOMEM || rc == DUE_ECLOSED || rc == DUE_ETIMEDOUT, "%s",
                  due_error_name(rc));
        if (begun)
            cr_expect_eq(crew_call_answer(&d.call), 0);
        cr_expect_eq(memory_disk_jobs(m.disk), rc == 0 ? 0u : 1u);
        if (rc == 0)
            expect_lent(&job, id);
        mall_close(&m);
    }
    cr_expect_gt(n, 3u);
}

/* The record with which the store compares may be large. */
MALL_TEST(share_lend_doubt, no_bytes_of_a_change_are_kept_once_it_is_made)
{
    struct mall m = mall_make(1);
    struct lab *hasty = join(&m, DUE_MS(5));
    due_job job;
    due_id id;

    for (int what = 0; what < 4; what++) {
        cr_assert_eq(lab_put_as(&m.lab[0], DUE_KEY_REFUSE, TEXT, &id, .at_ns = 50), 0);
        if (what == 0)
            cr_expect_eq(due_update(hasty->q, id, "cake", 4), 0);
        if (what == 1)
            cr_expect_geq(lab_put_as(hasty, DUE_KEY_REPLACE, "cake", &id, .at_ns = 60), 0);
        if (what == 2)
            memory_store_fault(
                m.store[1],
                (struct memory_fault){ .verb = MEMORY_PUT, .times = 3, .kind = MEMORY_DOUBT_NOT });
        if (what == 2)
            cr_expect_eq(due_update(hasty->q, id, "cake", 4), DUE_EINDOUBT);
        cr_expect_not(keeps_bytes(hasty), "%d", what);
        int rc = due_cancel_key(hasty->q, "k", 1, what == 3 ? NULL : &job);
        cr_expect_eq(rc, 0, "%s", due_error_name(rc));
        if (what < 3)
            due_job_done(&job);
        cr_expect_not(keeps_bytes(hasty), "%d", what);
    }
    mall_close(&m);
}

/* ---- Stores that do otherwise ---- */

static const struct due_store_verbs *its_verbs;
static const struct due_shared_verbs *its_shared;
static struct due_store_verbs verbs;
static struct due_shared_verbs shared;

static void copy_verbs(const struct mall *m)
{
    its_verbs = m->store[0]->verbs;
    its_shared = its_verbs->shared;
    verbs = *its_verbs;
    shared = *its_shared;
    verbs.shared = &shared;
}

static atomic_bool doubted;

/* In doubt it is not reached, and says that. */
static int exchange_away(due_store *s, const due_change *changes, size_t n, uint64_t number,
                         int *results, const struct due_claim *claim,
                         due_store_visit_claimed *visit, void *ctx, struct due_exchange *answer,
                         int64_t until_ns)
{
    if (atomic_exchange(&doubted, false))
        return DUE_EAGAIN;
    int rc =
        its_shared->exchange(s, changes, n, number, results, claim, visit, ctx, answer, until_ns);
    atomic_store(&doubted, rc == DUE_EINDOUBT);
    return rc;
}

/* That it is not reached is no answer of an exchange that may have landed. */
MALL_TEST(share_lend_doubt, a_store_that_is_away_leaves_a_drop_in_doubt)
{
    struct mall m = mall_make(1);
    due_job job;

    copy_verbs(&m);
    shared.exchange = exchange_away;
    size_t i = mall_join_by(&m, (struct lab_options){ .kernel = false }, &verbs);
    due_id id = lab_enqueue(&m.lab[0], TEXT, .at_ns = 50);
    memory_store_fault(m.store[i],
                       (struct memory_fault){ .verb = MEMORY_PUT, .kind = MEMORY_DOUBT_LANDED });
    cr_assert_eq(due_cancel(m.lab[i].q, id, &job), 0);
    expect_lent(&job, id);
    cr_expect_not(atomic_load(&doubted));
    mall_close(&m);
}

struct bare {
    due_store_visit *visit;
    void *ctx;
};

static int show_bare(void *ctx, const due_record *r)
{
    struct bare *b = ctx;
    due_record bare = *r;

    bare.mark = NULL;
    bare.mark_len = 0;
    return b->visit(b->ctx, &bare);
}

static int find_bare(due_store *s, due_id id, due_store_visit *visit, void *ctx, int64_t until_ns)
{
    struct bare b = { visit, ctx };

    return its_verbs->find(s, id, show_bare, &b, until_ns);
}

MALL_TEST(share_lend_doubt, of_a_store_that_shows_no_mark_nothing_is_lent)
{
    struct mall m = mall_make(1);
    due_job job;

    copy_verbs(&m);
    verbs.find = find_bare;
    size_t i = mall_join_by(&m, (struct lab_options){ .kernel = false }, &verbs);
    due_id id = lab_enqueue(&m.lab[0], TEXT, .at_ns = 50);
    cr_expect_eq(due_cancel(m.lab[i].q, id, &job), DUE_ENOTSUP);
    cr_expect_null(job.queue);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    cr_expect_eq(due_cancel(m.lab[i].q, id, NULL), 0);
    mall_close(&m);
}

/* ---- How often it is looked at --------------------------------------------------------------- */

MALL_TEST(share_lend_doubt, a_job_that_is_nowhere_is_looked_for_once)
{
    struct mall m = mall_make(2);
    due_job job;

    due_id id = lab_enqueue(&m.lab[0], TEXT, .at_ns = 50);
    cr_assert_eq(due_cancel(m.lab[0].q, id, NULL), 0);
    uint64_t before = memory_store_calls(m.store[1], MEMORY_FIND);
    cr_expect_eq(due_cancel(m.lab[1].q, id, &job), DUE_ENOENT);
    cr_expect_eq(memory_store_calls(m.store[1], MEMORY_FIND), before + 1);
    mall_close(&m);
}

static atomic_uint looks;

static int show_other(void *ctx, const due_record *r)
{
    struct bare *b = ctx;
    due_record other = *r;

    atomic_fetch_add(&looks, 1);
    other.mark = "something that it was before";
    other.mark_len = strlen(other.mark);
    return b->visit(b->ctx, &other);
}

/* Whenever it is looked at it is something else by the time that it is to be dropped. */
static int find_other(due_store *s, due_id id, due_store_visit *visit, void *ctx, int64_t until_ns)
{
    struct bare b = { visit, ctx };

    return its_verbs->find(s, id, show_other, &b, until_ns);
}

/* Eight times, and then it is left alone for a while. */
MALL_TEST(share_lend_doubt, a_job_that_changes_each_time_is_not_looked_at_without_end)
{
    for (int lends = 0; lends < 2; lends++) {
        struct mall m = mall_make(1);
        due_job job;

        copy_verbs(&m);
        verbs.find = find_other;
        atomic_store(&looks, 0);
        size_t i =
            mall_join_by(&m, (struct lab_options){ .with.store_timeout_ns = DUE_MS(300) }, &verbs);
        due_id id = lab_enqueue(&m.lab[0], TEXT, .at_ns = 50);
        int rc = lends ? due_cancel(m.lab[i].q, id, &job) : due_update(m.lab[i].q, id, "x", 1);
        cr_expect_eq(rc, DUE_ETIMEDOUT, "%s", due_error_name(rc));
        cr_expect_eq(atomic_load(&looks) % 8, 0u, "%u looks", atomic_load(&looks));
        cr_expect_leq(atomic_load(&looks), 80u);
        cr_expect_eq(memory_disk_jobs(m.disk), 1u);
        mall_close(&m);
    }
}

static int find_ghost(due_store *s, due_id id, due_store_visit *visit, void *ctx, int64_t until_ns)
{
    due_record ghost = { .id = id, .topic = "", .until_ns = 50, .deadline_ns = 50 };

    (void)s;
    (void)until_ns;
    atomic_fetch_add(&looks, 1);
    return visit(ctx, &ghost);
}

/* A store whose looks and whose drops do not agree does not keep anybody there. */
MALL_TEST(share_lend_doubt, a_job_that_is_shown_and_is_not_there_is_given_up)
{
    struct mall m = mall_make(1);

    copy_verbs(&m);
    verbs.find = find_ghost;
    atomic_store(&looks, 0);
    size_t i = mall_join_by(&m, (struct lab_options){ .kernel = false }, &verbs);
    due_id id = lab_enqueue(&m.lab[0], TEXT, .at_ns = 50);
    cr_assert_eq(due_cancel(m.lab[0].q, id, NULL), 0);
    cr_expect_eq(due_cancel(m.lab[i].q, id, NULL), DUE_ENOENT);
    cr_expect_eq(atomic_load(&looks), 8u);
    mall_close(&m);
}
