/* Taking from a queue with a store: who waits for nothing, and who runs out of time. */
#include "store/sender.h"
#include "queue/queue.h"
#include "lab/shop.h"
#include "lab/take.h"

#include <poll.h>
#include <time.h>

/* What on_discard was shown. */
struct shown {
    atomic_int n;
    due_id id;
};

static void on_discard(void *ctx, const due_job *job)
{
    struct shown *shown = ctx;

    shown->id = job->id;
    atomic_fetch_add(&shown->n, 1);
}

/* From the next commit on. */
static void doubt(struct shop *s, enum memory_fault_kind kind)
{
    memory_store_fault(s->store, (struct memory_fault){
                                     .verb = MEMORY_COMMIT, .times = MEMORY_ALWAYS, .kind = kind });
}

enum way { DEQUEUE, DEQUEUE_FROM, DEQUEUE_BATCH, RESERVE, WAYS };

static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 };

static int take(struct shop *s, enum way way, due_job *job, int64_t timeout_ns)
{
    int topic = 0;

    switch (way) {
    case DEQUEUE:
        return due_dequeue(s->lab.q, job, timeout_ns);
    case DEQUEUE_FROM:
        return take_from(s->lab.q, &topic, 1, job, timeout_ns);
    case DEQUEUE_BATCH:
        return take_some(s->lab.q, NULL, 0, job, 1, timeout_ns);
    default:
        return take_leased(s->lab.q, job, 100, timeout_ns);
    }
}

/* The removal, or the attempt, was sent, and time is up: the store may have done it. */
Test(stored_taken, what_may_have_left_is_in_doubt_and_named, .timeout = 60)
{
    for (enum way way = 0; way < WAYS; way++) {
        for (int landed = 0; landed < 2; landed++) {
            struct shop s = shop_make(.start_ns = 5, .with.store_timeout_ns = DUE_MS(20));
            due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = EXTRA(.retry = &twice));
            due_job job = { .len = 1 };

            doubt(&s, landed ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT);
            int rc = take(&s, way, &job, 1);
            cr_expect_eq(rc, DUE_EINDOUBT, "%d: %s", way, due_error_name(rc));
            cr_expect(due_id_equal(job.id, id), "%d: another id", way);
            cr_expect(job.queue == NULL && job.len == 0, "%d: and more than that", way);
            memory_store_forgive(s.store);
            rc = take(&s, way, &job, 1); /* it is seen through */
            cr_expect_geq(rc, 0, "%d: %s", way, due_error_name(rc));
            cr_expect(due_id_equal(job.id, id));
            due_job_done(&job);
            shop_close(&s);
        }
    }
}

/* The first @had have left in time, the next ones are on their way. */
static void expect_names(int had, bool landed)
{
    struct shop s =
        shop_new(&(struct memory_disk_options){ .batch_changes = 1 },
                 (struct lab_options){ .start_ns = 5, .with.store_timeout_ns = DUE_MS(20) });
    uint64_t call = memory_store_calls(s.store, MEMORY_COMMIT) + 4 + (uint64_t)had;
    due_id ids[3];
    due_job jobs[6];
    due_job job;

    for (int i = 0; i < 3; i++)
        ids[i] = lab_enqueue(&s.lab, "tea", .at_ns = 1 + i);
    memory_store_fault(
        s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                        .call = call,
                                        .times = MEMORY_ALWAYS,
                                        .kind = landed ? MEMORY_DOUBT_LANDED : MEMORY_DOUBT_NOT });
    memset(jobs, 0xa5, sizeof jobs);
    cr_assert_eq(take_some(s.lab.q, NULL, 0, jobs, 6, 1), had > 0 ? had : DUE_EINDOUBT);
    for (int i = 0; i < had; i++)
        cr_expect(due_id_equal(jobs[i].id, ids[i]));
    cr_expect(due_id_equal(jobs[had].id, ids[had]), "%d: the one in doubt is not named", had);
    cr_expect(jobs[had].queue == NULL && jobs[had].len == 0);
    int end = had + 1; /* what was to go with the next batch may be named too */
    while (end < 3 && due_id_equal(jobs[end].id, ids[end]))
        end++;
    cr_expect(due_id_equal(jobs[end].id, (due_id){ { 0 } }), "%d: names of nobody", had);
    for (int i = 0; i < had; i++)
        due_job_done(&jobs[i]);
    memory_store_forgive(s.store);
    for (int i = had; i < 3; i++) {
        cr_expect_eq(take(&s, DEQUEUE, &job, DUE_S(20)), 0);
        due_job_done(&job);
    }
    cr_expect_eq(memory_disk_jobs(s.disk), 0u);
    shop_close(&s);
}

/* Whoever has some is told of these, and so is who has none. */
Test(stored_taken, a_batch_names_what_may_have_left_behind_what_it_got, .timeout = 60)
{
    for (int had = 0; had < 2; had++)
        for (int landed = 0; landed < 2; landed++)
            expect_names(had, landed != 0);
}

/* Another program has the jobs before the store has told whether one has left. */
Test(stored_taken, what_may_have_left_when_another_owns_the_jobs_is_shown, .timeout = 60)
{
    for (enum way way = 0; way < RESERVE; way++) {
        struct shown shown = { 0 };
        struct shop s = shop_make(.start_ns = 5, .with.store_timeout_ns = DUE_MS(20),
                                  .with.on_discard = on_discard, .with.ctx = &shown);
        due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 5);
        due_job job;

        doubt(&s, MEMORY_DOUBT_LANDED);
        cr_expect_eq(take(&s, way, &job, 1), DUE_EINDOUBT);
        cr_expect_eq(memory_disk_jobs(s.disk), 0u, "nobody has it");
        memory_disk_fence(s.disk);
        for (int i = 0; i < 5000 && atomic_load(&shown.n) == 0; i++)
            crew_sleep(DUE_MS(1));
        cr_expect_eq(atomic_load(&shown.n), 1);
        cr_expect(due_id_equal(shown.id, id));
        cr_expect_eq(take(&s, way, &job, 1), DUE_EFENCED);
        shop_close(&s);
        cr_expect_eq(atomic_load(&shown.n), 1, "it was shown twice");
    }
}

/* The removal goes on without the call, and the descriptor says when there is something to have. */
Test(stored_taken, a_poll_begins_and_the_next_one_gets_it, .timeout = 60)
{
    for (enum way way = 0; way < WAYS; way++) {
        struct shop s = shop_make(.start_ns = 5, .with.store_timeout_ns = DUE_S(20));
        struct memory_limiter *limiter = memory_limiter_new(s.disk);
        struct pollfd p = { .fd = due_fd(s.lab.q), .events = POLLIN };
        due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = EXTRA(.retry = &twice));
        due_job job;

        lab_enqueue(&s.lab, "egg", .at_ns = 5, .more = EXTRA(.retry = &twice));
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = MEMORY_BLOCK_AFTER,
                                                           .limiter = limiter });
        int64_t before = crew_now_ns();
        for (int i = 0; i < 10; i++)
            cr_expect_eq(take(&s, way, &job, 0), DUE_EAGAIN);
        cr_expect_lt(crew_now_ns() - before, DUE_S(10), "it waits");
        cr_expect_eq(poll(&p, 1, 0), 0, "a loop would spin");
        if (way != RESERVE)
            cr_expect_eq(memory_disk_jobs(s.disk), 1u, "more was taken than was asked for");
        memory_limiter_open(limiter);
        cr_expect_eq(poll(&p, 1, 5000), 1, "nobody is told");
        int rc = take(&s, way, &job, 0);
        cr_expect_geq(rc, 0, "%d: %s", way, due_error_name(rc));
        cr_expect(due_id_equal(job.id, id));
        due_job_done(&job);
        shop_close(&s);
        memory_limiter_free(limiter);
    }
}

/* How many bytes the job has, or why there is none. */
static int dequeue_one(void *arg)
{
    due_job job = { 0 };
    int rc = due_dequeue(arg, &job, DUE_FOREVER);

    if (rc == 0) {
        rc = (int)job.len;
        due_job_done(&job);
    }
    return rc;
}

/* What a poll has begun is there for whoever waits. */
Test(stored_taken, what_a_poll_has_begun_is_anybodys, .timeout = 60)
{
    for (int again = 0; again < 20; again++) {
        struct shop s = shop_make(.start_ns = 5, .with.store_timeout_ns = DUE_S(20));
        struct memory_limiter *limiter = memory_limiter_new(s.disk);
        struct crew_thread consumer;
        due_job job;

        lab_enqueue(&s.lab, "tea", .at_ns = 5);
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = MEMORY_BLOCK_AFTER,
                                                           .limiter = limiter });
        if (again % 2 == 0)
            cr_expect_eq(due_dequeue(s.lab.q, &job, 0), DUE_EAGAIN);
        crew_go(&consumer, dequeue_one, s.lab.q);
        if (again % 2 != 0)
            cr_expect_eq(due_dequeue(s.lab.q, &job, 0), DUE_EAGAIN);
        memory_limiter_open(limiter);
        cr_expect_eq(crew_join(&consumer), 3, "it has the tea");
        cr_expect_eq(memory_disk_jobs(s.disk), 0u);
        shop_close(&s);
        memory_limiter_free(limiter);
    }
}

/* Most times the poll is quicker than he who is woken. */
Test(stored_taken, what_a_poll_has_begun_goes_to_who_waited_before, .timeout = 60)
{
    for (int again = 0; again < 20; again++) {
        struct shop s = shop_make(.start_ns = 5, .with.store_timeout_ns = DUE_S(20));
        struct memory_limiter *limiter = memory_limiter_new(s.disk);
        struct crew_thread consumer;
        due_job job;

        lab_enqueue(&s.lab, "tea", .at_ns = 10);
        crew_go(&consumer, dequeue_one, s.lab.q);
        crew_until_asleep(&consumer);
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = MEMORY_BLOCK_AFTER,
                                                           .limiter = limiter });
        lab_turn_to(&s.lab, 10);
        cr_expect_eq(due_dequeue(s.lab.q, &job, 0), DUE_EAGAIN);
        crew_until_asleep(&consumer);
        memory_limiter_open(limiter);
        cr_expect_eq(crew_join(&consumer), 3, "it has the tea");
        cr_expect_eq(memory_disk_jobs(s.disk), 0u);
        shop_close(&s);
        memory_limiter_free(limiter);
    }
}

/* And it goes into the store again when the queue closes. */
Test(stored_taken, what_nobody_comes_back_for_stays_in_the_store, .timeout = 60)
{
    for (int reserve = 0; reserve < 2; reserve++) {
        struct shop s = shop_make(.start_ns = 5);
        struct memory_limiter *limiter = memory_limiter_new(s.disk);
        due_job job;

        lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = EXTRA(.retry = &twice));
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = MEMORY_BLOCK_AFTER,
                                                           .limiter = limiter });
        cr_expect_eq(take(&s, reserve ? RESERVE : DEQUEUE, &job, 0), DUE_EAGAIN);
        memory_limiter_open(limiter);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
        if (reserve) { /* who dequeues then has it too */
            cr_expect_eq(take(&s, DEQUEUE, &job, DUE_S(20)), 0);
            cr_expect_eq(job.attempts, 0u);
            due_job_done(&job);
        }
        cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
        cr_expect_eq(memory_disk_jobs(s.disk), reserve ? 0u : 1u);
        shop_close(&s);
        memory_limiter_free(limiter);
    }
}

/* ---- Who owns the jobs ---- */

static atomic_bool owns;     /* does a renewal say so? */
static atomic_uint renewals; /* so far */
static atomic_bool fenced;
static atomic_bool fenced;    /* it is another's */
static atomic_bool can_renew; /* else it does not come to that */
static const struct due_store_verbs *memory_verbs;

static int open_and_own(due_store *s, const struct due_store_open *how, struct due_store_info *info,
                        due_error *error)
{
    int rc = memory_verbs->open(s, how, info, error);

    info->renew_ns = DUE_MS(1);
    return rc;
}

static int renew_if_owner(due_store *s, int64_t *held_ns, int64_t until_ns)
{
    (void)s, (void)until_ns;
    if (atomic_load(&fenced))
        return DUE_EFENCED;
    if (!atomic_load(&can_renew))
        return DUE_EAGAIN;
    *held_ns = atomic_load(&owns) ? DUE_FOREVER : 1;
    atomic_fetch_add(&renewals, 1);
    return 0;
}

static struct shop shop_owned(bool renews)
{
    struct shop s = { .disk = memory_disk_new(NULL) };
    due_store *plain = memory_store_new(s.disk);
    static struct due_store_verbs verbs;

    atomic_store(&owns, true);
    atomic_store(&can_renew, renews);
    memory_verbs = plain->verbs;
    verbs = *memory_verbs;
    verbs.open = open_and_own;
    verbs.renew = renew_if_owner;
    memory_verbs->free(plain);
    shop_begin(&s, (struct lab_options){ .start_ns = 5 }, &verbs);
    return s;
}

/* From here on the queue knows that. */
static void own(bool yes)
{
    atomic_store(&owns, yes);
    for (unsigned seen = atomic_load(&renewals); atomic_load(&renewals) < seen + 2;)
        crew_sleep(DUE_MS(1));
}

/* Who opens a queue owns the jobs from then on: nothing has to be renewed first. */
Test(stored_taken, a_poll_right_after_the_opening_reserves, .timeout = 60)
{
    struct shop s = shop_owned(false);
    due_job job;

    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    cr_expect_eq(take_leased(s.lab.q, &job, 100, 0), 0);
    cr_expect_eq(due_ack(&job), 0);
    shop_close(&s);
}

/* It does not wait until the lease was renewed either, and the store is not away. */
Test(stored_taken, a_poll_does_not_wait_to_own_the_jobs, .timeout = 60)
{
    struct shop s = shop_owned(true);
    due_job job;

    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    own(false);
    cr_expect_eq(take_leased(s.lab.q, &job, 100, 0), DUE_EAGAIN);
    own(true);
    cr_expect_eq(take_leased(s.lab.q, &job, 100, 0), 0);
    cr_expect_eq(due_ack(&job), 0);
    shop_close(&s);
}

/* An attempt that was counted for a poll some time ago: who comes for it does not get it if another
 * program may own the jobs by then, and the attempt is none. */
Test(stored_taken, what_a_poll_has_begun_is_not_reserved_once_another_may_own_it, .timeout = 60)
{
    struct shop s = shop_owned(true);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    due_job job;

    lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = EXTRA(.retry = &twice));
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_BLOCK_AFTER,
                                                       .limiter = limiter });
    cr_expect_eq(take_leased(s.lab.q, &job, 100, 0), DUE_EAGAIN);
    memory_limiter_open(limiter);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    own(false);
    cr_expect_eq(take_leased(s.lab.q, &job, 100, 0), DUE_EAGAIN);
    cr_expect_eq(lab_stats(&s.lab).waiting, 1u);
    own(true);
    cr_expect_eq(take_leased(s.lab.q, &job, 100, DUE_S(20)), 0);
    cr_expect_eq(job.attempts, 1u);
    cr_expect_eq(due_ack(&job), 0);
    shop_close(&s);
    memory_limiter_free(limiter);
}

static int reserve_one(void *arg)
{
    due_job job;

    return take_leased(arg, &job, 100, DUE_S(30));
}

static bool somebody_waits(struct due__commits *c)
{
    due__lock_acquire(&c->calls);
    bool some = c->first != NULL;
    due__lock_release(&c->calls);
    return some;
}

/* Another program may own the jobs, and then it does. */
Test(stored_taken, who_waits_to_own_the_jobs_hears_that_they_are_anothers, .timeout = 60)
{
    struct shop s = shop_owned(true);
    struct crew_thread thread;

    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    own(false);
    crew_go(&thread, reserve_one, s.lab.q);
    while (!somebody_waits(s.lab.q->commits))
        crew_sleep(DUE_MS(1));
    int64_t before = crew_now_ns();
    atomic_store(&fenced, true);
    cr_expect_eq(crew_join(&thread), DUE_EFENCED);
    cr_expect_lt(crew_now_ns() - before, DUE_S(15), "it waits for its own time");
    atomic_store(&fenced, false);
    shop_close(&s);
}

/* No other job is due that would say the same. */
Test(stored_taken, the_descriptor_tells_of_a_single_one_that_a_poll_has_begun, .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5, .with.store_timeout_ns = DUE_S(20));
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    struct pollfd p = { .fd = due_fd(s.lab.q), .events = POLLIN };
    due_job job;

    lab_enqueue(&s.lab, "tea", .at_ns = 5);
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_BLOCK_AFTER,
                                                       .limiter = limiter });
    cr_expect_eq(due_dequeue(s.lab.q, &job, 0), DUE_EAGAIN);
    cr_expect_eq(poll(&p, 1, 0), 0, "a loop would spin");
    memory_limiter_open(limiter);
    cr_expect_eq(poll(&p, 1, 5000), 1, "nobody is told");
    cr_expect_eq(due_dequeue(s.lab.q, &job, 0), 0);
    due_job_done(&job);
    shop_close(&s);
    memory_limiter_free(limiter);
}

/* The queue closes before anybody has come for the round that a poll has begun. */
Test(stored_taken, a_round_that_nobody_came_for_is_shown_by_a_close, .timeout = 60)
{
    struct shown shown = { 0 };
    struct shop s = shop_make(.start_ns = 5, .with.on_discard = on_discard, .with.ctx = &shown);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = EXTRA(.every_ns = 100));
    due_job job;

    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_BLOCK_AFTER,
                                                       .limiter = limiter });
    cr_expect_eq(due_dequeue(s.lab.q, &job, 0), DUE_EAGAIN);
    memory_limiter_open(limiter);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(20)), 0);
    cr_expect_eq(due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_FOREVER), 0);
    cr_expect_eq(atomic_load(&shown.n), 1);
    cr_expect(due_id_equal(shown.id, id));
    cr_expect_eq(memory_disk_jobs(s.disk), 1u, "the next round is another's");
    shop_close(&s);
    memory_limiter_free(limiter);
}

static int dequeue_for_long(void *arg)
{
    struct due_job *job = arg;

    return due_dequeue(job->queue, job, DUE_S(30));
}

/* The same to who waits: the answer that is over for good comes before his time is. */
Test(stored_taken, what_may_have_left_is_named_to_who_waits_when_another_owns_the_jobs,
     .timeout = 60)
{
    struct shop s = shop_make(.start_ns = 5, .with.store_timeout_ns = DUE_S(30));
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 5);
    due_job job = { .queue = s.lab.q };
    struct crew_thread thread;

    doubt(&s, MEMORY_DOUBT_LANDED);
    crew_go(&thread, dequeue_for_long, &job);
    while (memory_disk_jobs(s.disk) > 0)
        crew_sleep(DUE_MS(1));
    memory_disk_fence(s.disk);
    int rc = crew_join(&thread);
    cr_expect_eq(rc, DUE_EINDOUBT, "%s", due_error_name(rc));
    cr_expect(due_id_equal(job.id, id));
    shop_close(&s);
}

/* ---- Who waits for long ---- */

struct waiting {
    struct shop *s;
    due_job job;
    atomic_llong spent_ns; /* on a processor, while it waited */
};

static int64_t spent_ns(void)
{
    struct timespec spent;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return DUE_S(spent.tv_sec) + spent.tv_nsec;
}

static int dequeue_measured(void *arg)
{
    struct waiting *w = arg;
    int64_t before = spent_ns();
    int rc = due_dequeue(w->s->lab.q, &w->job, DUE_FOREVER);

    atomic_store(&w->spent_ns, spent_ns() - before);
    return rc;
}

/* The store has the removal for longer than a call gives it: the call waits on, and asleep. */
Test(stored_taken, a_wait_for_the_store_without_end_costs_no_processor, .timeout = 60)
{
    struct shop s = shop_new(NULL, (struct lab_options){ .kernel = true,
                                                         .with.confirm = DUE_CONFIRM_ASYNC,
                                                         .with.store_timeout_ns = DUE_MS(50) });
    struct memory_limiter *before = memory_limiter_new(s.disk);
    struct memory_limiter *limiter = memory_limiter_new(s.disk);
    struct crew_thread thread = { 0 };
    struct waiting w = { .s = &s };

    lab_enqueue(&s.lab, "tea", .delay_ns = 0);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = before });
    lab_enqueue(&s.lab, "later", .delay_ns = DUE_S(3600)); /* so that it is not the caller's own */
    memory_limiter_reached(before, 1);
    memory_store_fault(
        s.store,
        (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = limiter });
    crew_go(&thread, dequeue_measured, &w);
    crew_until_asleep(&thread);
    memory_limiter_open(before);
    memory_limiter_reached(limiter, 1);
    crew_sleep(DUE_MS(200));
    cr_expect_not(atomic_load(&thread.back));
    memory_limiter_open(limiter);
    cr_assert_eq(crew_join(&thread), 0);
    due_job_done(&w.job);
    cr_expect_lt(atomic_load(&w.spent_ns), DUE_MS(10), "%lld us", atomic_load(&w.spent_ns) / 1000);
    shop_close(&s);
    memory_limiter_free(before);
    memory_limiter_free(limiter);
}

/* What it has waited for a job it has not left for the store.  Tried again: the machine may be
 * busy. */
Test(stored_taken, a_job_that_comes_late_leaves_the_store_no_more_than_the_rest, .timeout = 60)
{
    int64_t least = INT64_MAX;

    for (int i = 0; i < 5 && least > DUE_MS(450); i++) {
        struct shop s = shop_new(
            NULL, (struct lab_options){ .kernel = true, .with.store_timeout_ns = DUE_S(20) });
        due_job job;

        lab_enqueue(&s.lab, "tea", .delay_ns = DUE_MS(280));
        memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                           .times = MEMORY_ALWAYS,
                                                           .kind = MEMORY_BLOCK });
        int64_t before = crew_now_ns();
        cr_expect_lt(due_dequeue(s.lab.q, &job, DUE_MS(300)), 0);
        int64_t took = crew_now_ns() - before;
        cr_expect_geq(took, DUE_MS(300));
        least = took < least ? took : least;
        memory_store_forgive(s.store);
        shop_close(&s);
    }
    cr_expect_leq(least, DUE_MS(450));
}
