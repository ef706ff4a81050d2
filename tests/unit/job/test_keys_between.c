/* Keys that go to another job between the look of a call and its change: the job that was found has
 * been reserved, has lost its key to another, and was given back meanwhile, so it waits as it did.
 * What the call changes is the job that has the key then. */
#include <pthread.h>

#include "lab/shop.h"
#include "lab/take.h"

#define LEASE 100
#define LARGE 70000 /* never from memory that is kept: each time it is asked for */

static char large[LARGE];

static int put(struct lab *lab, enum due_key_policy policy, const char *data, size_t len,
               due_id *id)
{
    due_spec spec = { DUE_SPEC_INIT, .data = data, .len = len, .at_ns = 5,
                      .more = EXTRA(.key = "k", .key_len = 1, .on_key = policy) };

    return due_enqueue(lab->q, &spec, 0, id);
}

/* What happens when the call asks for the memory of its change. */
struct meanwhile {
    struct lab *lab;
    bool lapses; /* the lease ends; else the job is given back */
    int calls;   /* of that size so far; the first is of the try to put it as a new job */
    due_id second;
};

static void *take_over(void *arg)
{
    struct meanwhile *m = arg;
    due_job job;

    cr_assert_eq(take_leased(m->lab->q, &job, LEASE, 0), 0);
    cr_assert_eq(put(m->lab, DUE_KEY_REPLACE, "jam", 3, &m->second), 0);
    if (m->lapses)
        lab_advance(m->lab, LEASE);
    else
        cr_assert_eq(due_nack(&job, 0), 0);
    due_job_done(&job);
    return NULL;
}

static void on_alloc(void *ctx, size_t size)
{
    struct meanwhile *m = ctx;
    pthread_t other;

    if (size < LARGE || ++m->calls != 2)
        return;
    cr_assert_eq(pthread_create(&other, NULL, take_over, m), 0);
    pthread_join(other, NULL);
}

static int put_large(struct lab *lab, enum due_key_policy policy, bool batch, due_id *id)
{
    due_spec spec = { DUE_SPEC_INIT, .data = large, .len = LARGE, .at_ns = 900,
                      .more = EXTRA(.key = "k", .key_len = 1, .on_key = policy) };

    if (!batch)
        return due_enqueue(lab->q, &spec, 0, id);
    return due_enqueue_batch(lab->q, &spec, 1, 0, id) == 1 ? 0 : -1;
}

static void expect_second_is_changed(struct lab *lab, enum due_key_policy policy, bool lapses,
                                     bool batch)
{
    struct meanwhile m = { .lab = lab, .lapses = lapses };
    due_id first;
    due_id id;

    cr_assert_eq(put(lab, DUE_KEY_REFUSE, "tea", 3, &first), 0);
    cr_assert_eq(due_flush(lab->q, DUE_S(30)), 0);
    lab_turn_to(lab, 5);
    lab->state->memory.on_alloc_ctx = &m;
    lab->state->memory.on_alloc = on_alloc;
    cr_expect_eq(put_large(lab, policy, batch, &id), 0);
    lab->state->memory.on_alloc = NULL;
    cr_expect_geq(m.calls, 2, "this proves nothing");
    cr_expect(due_id_equal(id, m.second), "what has the key is changed");
    cr_expect_eq(due_flush(lab->q, DUE_S(30)), 0);
    cr_expect_eq(lab_find(lab, first).len, 3u, "and nothing else");
    cr_expect_eq(lab_find(lab, m.second).len, (size_t)LARGE);
    cr_expect_eq(due_id_of_key(lab->q, "k", 1, &id), 0);
    cr_expect(due_id_equal(id, m.second));
    lab_turn_to(lab, 5 + LEASE);
    cr_expect_str_eq(lab_dequeue_from(lab, 0), "tea");
}

static const enum due_key_policy policies[] = { DUE_KEY_REPLACE, DUE_KEY_DEBOUNCE };

LAB_TEST(keys_between, who_lost_the_key_meanwhile_is_not_changed)
{
    for (unsigned i = 0; i < 8; i++) {
        struct lab lab = lab_open(.start_ns = 1);

        expect_second_is_changed(&lab, policies[i & 1], i & 2, i & 4);
        lab_close(&lab);
    }
}

static void expect_with_a_store(enum due_confirm confirm)
{
    for (unsigned i = 0; i < 8; i++) {
        struct shop s = shop_make(.start_ns = 1, .with.confirm = confirm);

        expect_second_is_changed(&s.lab, policies[i & 1], i & 2, i & 4);
        shop_close(&s);
    }
}

LAB_TEST(keys_between, nor_with_a_store)
{
    if (lab_proxies != DUE_PROXIES_NEVER) { /* a store has its proxies */
        expect_with_a_store(DUE_CONFIRM_SYNC);
        expect_with_a_store(DUE_CONFIRM_ASYNC);
    }
}

/* ---- Time ---- */

/* The job with the key is reserved, the queue gets full, and the caller's time passes. */
static void *fill_up(void *arg)
{
    struct meanwhile *m = arg;
    due_job job;

    cr_assert_eq(take_leased(m->lab->q, &job, 10 * LEASE, 0), 0);
    lab_enqueue(m->lab, "other", .at_ns = 10000);
    lab_advance(m->lab, LEASE);
    due_job_done(&job);
    return NULL;
}

static void on_first_alloc(void *ctx, size_t size)
{
    struct meanwhile *m = ctx;
    pthread_t other;

    if (size < LARGE || ++m->calls != 1)
        return;
    cr_assert_eq(pthread_create(&other, NULL, fill_up, m), 0);
    pthread_join(other, NULL);
}

/* It looks again, finds that it needs room, and has no time left to wait for it. */
LAB_TEST(keys_between, who_was_to_wait_for_room_and_has_no_time_left_is_told_so)
{
    for (int batch = 0; batch < 2; batch++) {
        struct lab lab = lab_open(.start_ns = 1, .with.capacity = 2);
        struct meanwhile m = { .lab = &lab };
        due_spec spec = { DUE_SPEC_INIT, .data = large, .len = LARGE, .at_ns = 900,
                          .more = EXTRA(.key = "k", .key_len = 1, .on_key = DUE_KEY_REPLACE) };

        cr_assert_eq(put(&lab, DUE_KEY_REFUSE, "tea", 3, &m.second), 0);
        lab_turn_to(&lab, 5);
        lab.state->memory.on_alloc_ctx = &m;
        lab.state->memory.on_alloc = on_first_alloc;
        int rc = batch ? due_enqueue_batch(lab.q, &spec, 1, LEASE, NULL)
                       : due_enqueue(lab.q, &spec, LEASE, NULL);
        lab.state->memory.on_alloc = NULL;
        cr_expect_eq(rc, DUE_ETIMEDOUT, "%s", due_error_name(rc));
        cr_expect_eq(lab_stats(&lab).waiting, 1u);
        cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), DUE_EAGAIN, "not asked to wait");
        lab_close(&lab);
    }
}

/* ---- Room ---- */

/* Another call has the key first. */
static void *be_first(void *arg)
{
    struct meanwhile *m = arg;

    cr_assert_eq(put(m->lab, DUE_KEY_REFUSE, "jam", 3, &m->second), 0);
    return NULL;
}

static void on_large_alloc(void *ctx, size_t size)
{
    struct meanwhile *m = ctx;
    pthread_t other;

    if (size < LARGE || ++m->calls != 1)
        return;
    cr_assert_eq(pthread_create(&other, NULL, be_first, m), 0);
    pthread_join(other, NULL);
}

/* It had room already, for a new job. */
static void expect_room_is_kept(struct lab *lab, enum due_key_policy policy, bool batch)
{
    struct meanwhile m = { .lab = lab };
    due_spec spec = { DUE_SPEC_INIT, .data = "", .at_ns = 900 };
    due_id id;

    lab->state->memory.on_alloc_ctx = &m;
    lab->state->memory.on_alloc = on_large_alloc;
    int rc = put_large(lab, policy, batch, &id);
    lab->state->memory.on_alloc = NULL;
    cr_expect_geq(m.calls, 1, "this proves nothing");
    cr_expect_eq(rc == 0, policy != DUE_KEY_REFUSE, "%d", rc);
    cr_expect(due_id_equal(id, m.second), "who came first has the key");
    cr_expect_eq(lab_stats(lab).waiting, 1u);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(due_enqueue(lab->q, &spec, 0, NULL), 0, "room for %d of 2 is lost", 2 - i);
    cr_expect_eq(due_enqueue(lab->q, &spec, 0, NULL), DUE_EAGAIN, "there is room for two more");
}

static const enum due_key_policy all_policies[] = { DUE_KEY_REFUSE, DUE_KEY_REPLACE,
                                                    DUE_KEY_DEBOUNCE };

LAB_TEST(keys_between, who_finds_the_key_taken_meanwhile_gives_its_room_back)
{
    for (unsigned i = 0; i < 6; i++) {
        struct lab lab = lab_open(.start_ns = 1, .with.capacity = 3);

        expect_room_is_kept(&lab, all_policies[i / 2], i & 1);
        lab_close(&lab);
    }
}

LAB_TEST(keys_between, nor_is_room_lost_with_a_store)
{
    for (unsigned i = 0; lab_proxies != DUE_PROXIES_NEVER && i < 12; i++) {
        struct shop s = shop_make(.start_ns = 1, .with.capacity = 3,
                                  .with.confirm = i < 6 ? DUE_CONFIRM_SYNC : DUE_CONFIRM_ASYNC);

        expect_room_is_kept(&s.lab, all_policies[i / 2 % 3], i & 1);
        shop_close(&s);
    }
}

/* ---- Closed meanwhile ---- */

static void *begin_to_close(void *arg)
{
    struct meanwhile *m = arg;

    cr_expect_eq(due_close(m->lab->q, DUE_CLOSE_DRAIN, 0), DUE_ETIMEDOUT, "a job is reserved");
    return NULL;
}

static void on_alloc_close(void *ctx, size_t size)
{
    struct meanwhile *m = ctx;
    pthread_t other;

    if (size < LARGE || ++m->calls != 1)
        return;
    cr_assert_eq(pthread_create(&other, NULL, begin_to_close, m), 0);
    pthread_join(other, NULL);
}

/* Jobs of one key that are reserved, one after another; then another one, which is refused. */
static void expect_key_is_kept(struct lab *lab, unsigned reserved, bool batch)
{
    struct meanwhile m = { .lab = lab };
    due_job job[2];
    due_id has;
    due_id id;

    lab_turn_to(lab, 5);
    for (unsigned i = 0; i < reserved; i++) {
        cr_assert_eq(put(lab, DUE_KEY_REPLACE, "tea", 3, &has), 0);
        cr_assert_eq(lab_reserve(lab, &job[i], 10 * LEASE), 0);
    }
    lab->state->memory.on_alloc_ctx = &m;
    lab->state->memory.on_alloc = on_alloc_close;
    cr_expect_neq(put_large(lab, DUE_KEY_REPLACE, batch, &id), 0);
    lab->state->memory.on_alloc = NULL;
    cr_expect_eq(m.calls, 1, "this proves nothing");
    cr_expect_eq(due_id_of_key(lab->q, "k", 1, &id), 0, "%u: nobody has the key", reserved);
    cr_expect(due_id_equal(id, has));
    for (unsigned i = reserved; i-- > 0;) { /* the last one first */
        cr_expect_eq(due_ack(&job[i]), 0);
        cr_expect_eq(due_id_of_key(lab->q, "k", 1, &id), DUE_ENOENT, "%u: it is free", i);
    }
}

LAB_TEST(keys_between, who_is_refused_by_a_close_leaves_the_key_whose_it_was)
{
    for (unsigned i = 0; i < 4; i++) {
        struct lab lab = lab_open(.start_ns = 1);

        expect_key_is_kept(&lab, 1 + i / 2, i & 1);
        lab_close(&lab);
    }
}
