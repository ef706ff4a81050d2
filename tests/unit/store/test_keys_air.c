/* Keys that are taken over while a change of the job that had it is on its way to the store: what
 * the store has in the end is what the queue has, whichever of both changes it refuses. */
#include "lab/shop.h"
#include "lab/take.h"

static struct shop shop_async(void)
{
    return shop_make(.start_ns = 5, .with.confirm = DUE_CONFIRM_ASYNC);
}

/* Each call waits until the store has answered it. */
static struct shop shop_sync(void)
{
    return shop_make(.start_ns = 5, .with.store_timeout_ns = DUE_S(40));
}

static void flush(struct shop *s)
{
    cr_assert_eq(due_flush(s->lab.q, DUE_S(30)), 0);
}

/* A job with the key, stored, and reserved. */
static due_job put_reserved(struct shop *s, int64_t keep_ns)
{
    due_job job = { 0 };

    cr_assert_eq(shop_put_as(s, DUE_KEY_REFUSE, "first", NULL, KEEPS(keep_ns)), 0);
    flush(s);
    cr_assert_eq(take_leased(s->lab.q, &job, DUE_S(1), 1), 0);
    return job;
}

/* The commit after @more others stops at the limiter. */
static struct memory_limiter *stop(struct shop *s, uint64_t more)
{
    struct memory_limiter *limiter = memory_limiter_new(s->disk);
    uint64_t call = memory_store_calls(s->store, MEMORY_COMMIT) + 1 + more;

    memory_store_fault(s->store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                        .call = call,
                                                        .kind = MEMORY_BLOCK,
                                                        .limiter = limiter });
    return limiter;
}

/* The commit after @more others finds the store full. */
static void fill(struct shop *s, uint64_t more)
{
    uint64_t call = memory_store_calls(s->store, MEMORY_COMMIT) + 1 + more;

    memory_store_fault(s->store, (struct memory_fault){
                                     .verb = MEMORY_COMMIT, .call = call, .kind = MEMORY_FULL });
}

static void go_on(struct shop *s, struct memory_limiter *limiter)
{
    memory_limiter_open(limiter);
    flush(s);
    memory_limiter_free(limiter);
}

/* ---- Calls that meet ---- */

struct calls {
    struct shop *s;
    struct crew_thread other;
    struct crew_thread first;
    struct crew_thread second;
    due_job *job;     /* of the first, reserved; NULL: it is cancelled, not acked */
    due_id first_id;  /* */
    due_id second_id; /* */
};

static int put_other(void *arg)
{
    struct calls *c = arg;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 90 };

    return due_enqueue(c->s->lab.q, &spec, 0, NULL);
}

static int end_first(void *arg)
{
    struct calls *c = arg;

    return c->job != NULL ? due_ack(c->job) : due_cancel(c->s->lab.q, c->first_id, NULL);
}

static int put_second(void *arg)
{
    struct calls *c = arg;

    return shop_put_as(c->s, DUE_KEY_REPLACE, "second", &c->second_id, .at_ns = 90);
}

/* Both wait until the limiter is open: the end of the first is with the store, or (@other) behind
 * another job. */
static void meet(struct calls *c, struct memory_limiter *limiter, bool other)
{
    if (other) {
        crew_go(&c->other, put_other, c);
        memory_limiter_reached(limiter, 1);
    }
    crew_go(&c->first, end_first, c);
    if (other)
        crew_until_asleep(&c->first);
    else
        memory_limiter_reached(limiter, 1);
    crew_go(&c->second, put_second, c);
    crew_until_asleep(&c->second);
}

/* What the second was answered. */
static int part(struct calls *c, struct memory_limiter *limiter, bool other)
{
    memory_limiter_open(limiter);
    if (other)
        cr_expect_eq(crew_join(&c->other), 0);
    cr_expect_eq(crew_join(&c->first), 0);
    int rc = crew_join(&c->second);
    flush(c->s);
    memory_limiter_free(limiter);
    return rc;
}

/* Whose the key is on the disk, and in the queue: @id, or nobody's (NULL). */
static void expect_holder(struct shop *s, const due_id *id)
{
    due_id is;
    int64_t until = -1;
    bool there = memory_disk_key(s->disk, "k", 1, &is, &until);

    cr_expect_eq(there, id != NULL, "on the disk");
    if (there && id != NULL) {
        cr_expect(due_id_equal(is, *id));
        cr_expect_eq(until, 0);
    }
    cr_expect_eq(due_id_of_key(s->lab.q, "k", 1, &is), id != NULL ? 0 : DUE_ENOENT);
    if (id != NULL)
        cr_expect(due_id_equal(is, *id));
}

/* It is this job's, and nobody's when that is cancelled. */
static void goes_with(struct shop *s, due_id id)
{
    expect_holder(s, &id);
    cr_expect_eq(due_cancel(s->lab.q, id, NULL), 0);
    flush(s);
    expect_holder(s, NULL);
}

/* The key is nobody's: free, or kept for the job @id that is done. */
static void expect_left(struct shop *s, bool keeps, due_id id)
{
    due_id is;
    int64_t until = 0;

    cr_expect_eq(memory_disk_key(s->disk, "k", 1, &is, &until), keeps, "on the disk");
    cr_expect(!keeps || (due_id_equal(is, id) && until == 5 + 50), "%d", (int)until);
    cr_expect_eq(due_id_of_key(s->lab.q, "k", 1, &is), DUE_ENOENT);
}

/* Of the first one's removal and the second one's PUT, in one batch, the PUT is refused: the
 * removal must have freed the key, or kept it for the first one, as if there were no other. */
Test(keys_air, refused_in_the_batch_of_the_first_ones_ack_the_key_is_what_that_makes_it,
     .timeout = 60)
{
    for (int keeps = 0; keeps < 2; keeps++) {
        struct shop s = shop_sync();
        due_job job = put_reserved(&s, keeps ? 50 : 0);
        due_id first = job.id;
        struct memory_limiter *limiter = stop(&s, 0);
        struct calls c = { .s = &s, .job = &job };

        fill(&s, 1);
        meet(&c, limiter, true);
        cr_expect_eq(part(&c, limiter, true), DUE_ENOSPC);
        cr_expect_eq(memory_disk_jobs(s.disk), 1u);
        expect_left(&s, keeps, first);
        cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "third", NULL, .at_ns = 90),
                     keeps ? DUE_EEXIST : 0);
        flush(&s);
        shop_close(&s);
    }
}

/* The same, and nothing is refused. */
Test(keys_air, landed_in_the_batch_of_the_first_ones_ack_it_is_the_second_ones, .timeout = 60)
{
    for (int keeps = 0; keeps < 2; keeps++) {
        struct shop s = shop_sync();
        due_job job = put_reserved(&s, keeps ? 50 : 0);
        struct memory_limiter *limiter = stop(&s, 0);
        struct calls c = { .s = &s, .job = &job };

        meet(&c, limiter, true);
        cr_expect_eq(part(&c, limiter, true), 0);
        goes_with(&s, c.second_id);
        shop_close(&s);
    }
}

/* The second comes while the first one's removal, which keeps the key, is with the store. */
Test(keys_air, taken_over_while_it_comes_to_be_kept_it_is_the_second_ones, .timeout = 60)
{
    struct shop s = shop_sync();
    due_job job = put_reserved(&s, 50);
    struct memory_limiter *limiter = stop(&s, 0);
    struct calls c = { .s = &s, .job = &job };

    meet(&c, limiter, false);
    cr_expect_eq(part(&c, limiter, false), 0);
    goes_with(&s, c.second_id);
    shop_close(&s);
}

/* And is refused: it is kept for the first one, in the queue too. */
Test(keys_air, refused_over_one_that_came_to_be_kept_it_is_kept, .timeout = 60)
{
    struct shop s = shop_sync();
    due_job job = put_reserved(&s, 50);
    due_id first = job.id;
    struct memory_limiter *limiter = stop(&s, 0);
    struct calls c = { .s = &s, .job = &job };
    int64_t until = 0;
    due_id id;

    fill(&s, 1);
    meet(&c, limiter, false);
    cr_expect_eq(part(&c, limiter, false), DUE_ENOSPC);
    cr_expect(memory_disk_key(s.disk, "k", 1, &id, &until));
    cr_expect_eq(until, 55);
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REPLACE, "third", &id, .at_ns = 90), DUE_EEXIST);
    cr_expect(due_id_equal(id, first));
    lab_turn_to(&s.lab, 55);
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REPLACE, "fourth", &id, .at_ns = 90), 0);
    flush(&s);
    expect_holder(&s, &id);
    shop_close(&s);
}

/* A key is kept no longer, and the batch that says so is refused after somebody has got it.  One
 * batch in so many looks at its shard. */
Test(keys_air, got_while_the_store_was_to_forget_it_and_did_not, .timeout = 60)
{
    enum { BATCHES = 17 };
    struct shop s = shop_async();
    due_job job = put_reserved(&s, 50);
    due_id id;

    cr_expect_eq(due_ack(&job), 0);
    flush(&s);
    lab_turn_to(&s.lab, 60);
    for (int i = 0; i < BATCHES; i++) {
        struct memory_limiter *limiter = stop(&s, 0);

        fill(&s, 0);
        lab_enqueue(&s.lab, "other", .at_ns = 90);
        memory_limiter_reached(limiter, 1);
        if (i == BATCHES - 1 || due_id_of_key(s.lab.q, "k", 1, &id) == DUE_ENOENT)
            cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "next", &id, .at_ns = 90), 0);
        go_on(&s, limiter);
        expect_holder(&s, &id);
        cr_expect_eq(due_cancel(s.lab.q, id, NULL), 0);
        flush(&s);
        expect_holder(&s, NULL);
        cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "again", NULL, KEEPS(1)), 0);
        flush(&s);
        cr_assert_eq(due_dequeue(s.lab.q, &job, 1), 0);
        due_job_done(&job);
        lab_advance(&s.lab, 1);
        flush(&s);
    }
    shop_close(&s);
}

/* ---- A job that comes back into the store ---- */

/* The next call of @verb stops at a limiter of its own. */
static struct memory_limiter *stop_at(struct shop *s, enum memory_verb verb)
{
    struct memory_limiter *limiter = memory_limiter_new(s->disk);

    memory_store_fault(s->store,
                       (struct memory_fault){ .verb = verb,
                                              .call = memory_store_calls(s->store, verb) + 1,
                                              .kind = MEMORY_BLOCK,
                                              .limiter = limiter });
    return limiter;
}

/* A job has left the store for a taker who has gone, and is put there again.  Before it is written
 * its key is taken over; who takes it comes in the next batch, and is refused. */
Test(keys_air, taken_over_on_the_way_back_and_refused_it_is_the_first_ones, .timeout = 60)
{
    struct shop s = shop_new(&(struct memory_disk_options){ .batch_changes = 1 },
                             (struct lab_options){ .start_ns = 5,
                                                   .with.confirm = DUE_CONFIRM_ASYNC,
                                                   .with.store_timeout_ns = DUE_MS(50) });
    due_id first;
    due_job job;

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "first", &first, .delay_ns = 0), 0);
    flush(&s);
    shop_fail(&s, MEMORY_COMMIT, MEMORY_ALWAYS, MEMORY_AWAY);
    int rc = due_dequeue(s.lab.q, &job, 1);
    cr_assert(rc != 0 && rc != DUE_EAGAIN, "%s", due_error_name(rc));
    struct memory_limiter *before = stop_at(&s, MEMORY_READY);
    memory_limiter_reached(before, 1);
    memory_store_forgive(s.store);
    struct memory_limiter *back = stop_at(&s, MEMORY_READY);
    fill(&s, 2);
    memory_limiter_open(before);
    memory_limiter_reached(back, 1);
    cr_expect_eq(memory_disk_jobs(s.disk), 0u, "this proves nothing");
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REPLACE, "second", NULL, .at_ns = 90), 0);
    go_on(&s, back);
    memory_limiter_free(before);
    cr_expect_eq(memory_disk_jobs(s.disk), 1u);
    expect_holder(&s, &first);
    shop_close(&s);
}

/* ---- All of them ---- */

/* How the first one leaves, whether its key is kept then, when it is taken over, and which of the
 * commits from there on is refused. */
struct way {
    bool cancelled;
    bool keeps;
    bool on_its_way; /* the removal is with the store; else it waits behind another batch */
    int full;        /* -1: none */
};

/* What the queue says is what is there. */
static void expect_same(struct shop *s, const struct way *w)
{
    due_id is;
    due_id id;
    int64_t until = 0;
    bool there = memory_disk_key(s->disk, "k", 1, &is, &until);
    int found = due_id_of_key(s->lab.q, "k", 1, &id);
    int rc = shop_put_as(s, DUE_KEY_REFUSE, "third", &id, .at_ns = 90);

    cr_expect_eq(found == 0, there && until == 0, "%d %d %d %d", w->cancelled, w->keeps,
                 w->on_its_way, w->full);
    cr_expect_eq(rc, there ? DUE_EEXIST : 0, "%d %d %d %d", w->cancelled, w->keeps, w->on_its_way,
                 w->full);
    cr_expect(!there || due_id_equal(is, id));
    flush(s);
    cr_expect(memory_disk_key(s->disk, "k", 1, &is, NULL));
    cr_expect(due_id_equal(is, id), "nobody else has it");
}

static void go(const struct way *w)
{
    struct shop s = shop_sync();
    struct calls c = { .s = &s };
    due_job job = { 0 };

    if (w->cancelled) {
        cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "first", &c.first_id, .at_ns = 80), 0);
    } else {
        job = put_reserved(&s, w->keeps ? 50 : 0);
        c.job = &job;
    }
    struct memory_limiter *limiter = stop(&s, 0);
    if (w->full >= 0)
        fill(&s, (uint64_t)w->full + !w->on_its_way);
    meet(&c, limiter, !w->on_its_way);
    int rc = part(&c, limiter, !w->on_its_way);
    cr_expect(rc == 0 || (rc == DUE_ENOSPC && w->full >= 0), "%s", due_error_name(rc));
    expect_same(&s, w);
    due_job_done(&job);
    shop_close(&s);
}

Test(keys_air, the_store_has_what_the_queue_has_whatever_meets, .timeout = 60)
{
    for (unsigned i = 0; i < 8; i++)
        for (int full = -1; full < 3; full++)
            go(&(struct way){ i & 1, i & 2, i & 4, full });
}
