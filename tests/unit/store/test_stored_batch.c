/* What due_enqueue_batch() answers when something goes wrong in its middle: how many jobs are in,
 * whatever became of those behind them; which of those are in doubt is seen by their ids. */
#include "lab/shop.h"
#include "lab/take.h"

#define JOBS_MAX   1000
#define TIMEOUT_NS DUE_MS(20)

static const due_id none;
static due_id ids[JOBS_MAX];
static due_spec specs[JOBS_MAX];

static void make(size_t n)
{
    for (size_t i = 0; i < n; i++)
        specs[i] = (due_spec){ DUE_SPEC_INIT, .data = "tea", .len = 3, .at_ns = 10 };
    memset(ids, 0, sizeof ids);
}

static int give(struct shop *s, size_t n)
{
    make(n);
    return due_enqueue_batch(s->lab.q, specs, n, 0, ids);
}

/* Those that are in, and behind them those in doubt, have ids; nobody else has. */
static size_t named(size_t n)
{
    size_t known = 0;

    while (known < n && !due_id_equal(ids[known], none))
        known++;
    for (size_t i = known; i < n; i++)
        cr_expect(due_id_equal(ids[i], none), "%zu: it is not in", i);
    return known;
}

static size_t on_disk(struct shop *s, size_t n)
{
    size_t there = 0;

    for (size_t i = 0; i < n; i++)
        there += memory_disk_find(s->disk, ids[i], NULL);
    return there;
}

/* Whoever goes on behind those that have ids gives each job once. */
static void give_the_rest(struct shop *s, size_t n, size_t known)
{
    for (int tries = 0; known < n && tries < 1000; tries++) {
        int rc = due_enqueue_batch(s->lab.q, specs + known, n - known, 0, ids + known);
        cr_expect(rc > 0 || rc == DUE_ETIMEDOUT || rc == DUE_EINDOUBT, "%s", due_error_name(rc));
        known = named(n);
    }
    cr_expect_eq(due_flush(s->lab.q, DUE_S(30)), 0);
}

/* What goes wrong with the batch number @from of the store, and all behind it. */
struct way {
    enum memory_verb verb;
    enum memory_fault_kind kind;
    int rc; /* what a call is told of which none is in */
};

static const struct way ways[] = {
    { MEMORY_COMMIT, MEMORY_FULL, DUE_ENOSPC },
    { MEMORY_COMMIT, MEMORY_AWAY, DUE_EINDOUBT },
    { MEMORY_COMMIT, MEMORY_DOUBT_NOT, DUE_EINDOUBT },
    { MEMORY_COMMIT, MEMORY_DOUBT_LANDED, DUE_EINDOUBT },
    { MEMORY_READY, MEMORY_AWAY, DUE_ETIMEDOUT },
};

static void expect_the_first_ones(const struct way *w, size_t n, size_t batch, uint64_t from)
{
    struct shop s = shop_new(&(struct memory_disk_options){ .batch_changes = batch },
                             (struct lab_options){ .with.store_timeout_ns = TIMEOUT_NS });
    uint64_t call = memory_store_calls(s.store, w->verb) + from;

    memory_store_fault(
        s.store, (struct memory_fault){
                     .verb = w->verb, .call = call, .times = MEMORY_ALWAYS, .kind = w->kind });
    int rc = give(&s, n);
    size_t in = rc > 0 ? (size_t)rc : 0;
    size_t known = named(n);
    if (w->verb == MEMORY_COMMIT) /* a call's batches are no larger than that, but the last */
        cr_expect(in <= (from - 1) * batch && (in > 0) == (from > 1), "%d: %zu from %d", rc, n,
                  (int)from);
    cr_expect(rc > 0 || rc == w->rc, "%s", due_error_name(rc));
    cr_expect_geq(known, in);
    bool late = getenv("LAB_STORE") != NULL; /* a real store may be, and that is in doubt, too */
    cr_expect(w->rc == DUE_EINDOUBT ? known > in : late || known == in, "%zu of %zu", in, known);
    memory_store_forgive(s.store);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect_eq(memory_disk_jobs(s.disk), known, "what is in doubt is seen through");
    cr_expect_eq(on_disk(&s, known), known);
    give_the_rest(&s, n, known);
    cr_expect_eq(memory_disk_jobs(s.disk), n, "none is there twice");
    shop_close(&s);
}

Test(stored_batch, answers_how_many_are_in_whatever_ends_it, .timeout = 60)
{
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
        for (uint64_t from = 1; from < 4; from++) {
            expect_the_first_ones(&ways[w], 13, 4, from);
            expect_the_first_ones(&ways[w], 300, 64, from);
            expect_the_first_ones(&ways[w], JOBS_MAX, 128, from);
        }
}

/* ---- Bytes of a batch ---- */

#define BATCH_BYTES 100u

/* The most bytes of payloads that one batch of the disk has put from entry *@at on; a batch of one
 * job counts nothing.  *@batches: how many there were. */
static size_t largest(struct shop *s, size_t *at, uint64_t *batches)
{
    struct memory_entry e;
    struct memory_entry last = { .number = 0 };
    size_t bytes = 0;
    size_t most = 0;
    size_t jobs = 0;

    *batches = 0;
    for (; memory_disk_entry(s->disk, *at, &e); ++*at, last = e) {
        bool same = e.number == last.number && e.writer == last.writer;

        *batches += !same;
        jobs = same ? jobs + 1 : 1;
        bytes = e.len + (same ? bytes : 0);
        most = jobs > 1 && bytes > most ? bytes : most;
    }
    return most;
}

static void put_of(struct shop *s, size_t len, unsigned n)
{
    static const char bytes[2 * BATCH_BYTES];
    due_spec some[12];

    for (unsigned i = 0; i < n; i++)
        some[i] = (due_spec){ DUE_SPEC_INIT, .data = bytes, .len = len, .at_ns = 10 };
    cr_assert_eq(due_enqueue_batch(s->lab.q, some, n, DUE_S(10), NULL), (int)n);
    cr_assert_eq(due_flush(s->lab.q, DUE_S(10)), 0);
}

/* The same when everything is put again after a loss. */
Test(stored_batch, has_no_more_bytes_than_the_store_takes_but_for_one_job, .timeout = 60)
{
    for (int async = 0; async < 2; async++) {
        struct shop s = shop_new(
            &(struct memory_disk_options){ .batch_bytes = BATCH_BYTES },
            (struct lab_options){ .with.confirm = async ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC });
        size_t at = 0;
        uint64_t batches;

        put_of(&s, BATCH_BYTES / 2, 12); /* two of them fit */
        cr_expect_eq(largest(&s, &at, &batches), BATCH_BYTES);
        cr_expect_geq(batches, 6u);
        put_of(&s, BATCH_BYTES / 2 + 1, 5); /* and two of these do not */
        cr_expect_eq(largest(&s, &at, &batches), 0u);
        cr_expect_eq(batches, 5u);
        put_of(&s, 2 * BATCH_BYTES, 3); /* each is too large, and goes alone */
        cr_expect_eq(largest(&s, &at, &batches), 0u);
        cr_expect_eq(batches, 3u);
        memory_disk_lose(s.disk, SIZE_MAX);
        for (int i = 0; i < 3000 && memory_disk_jobs(s.disk) < 21; i++) {
            if (i == 0)
                put_of(&s, 0, 1);
            crew_sleep(DUE_MS(1));
        }
        cr_expect_eq(memory_disk_jobs(s.disk), 21u);
        cr_expect_leq(largest(&s, &at, &batches), BATCH_BYTES);
        shop_close(&s);
    }
}

/* Attempts are a few bytes each; but what the store has lost is put whole in their stead.  It is
 * noticed before they are filled into a batch, or when that is to be sent. */
Test(stored_batch, has_no_more_bytes_if_its_jobs_must_be_put_again, .timeout = 60)
{
    for (int filled = 0; filled < 2; filled++) {
        struct shop s = shop_new(
            &(struct memory_disk_options){ .batch_bytes = BATCH_BYTES },
            (struct lab_options){ .start_ns = 10,
                                  .with.retry = { .kind = DUE_RETRY_FIXED, .attempts_max = 9 } });
        due_job jobs[8];
        size_t at = 0;
        uint64_t batches;

        put_of(&s, BATCH_BYTES / 2, 8);
        largest(&s, &at, &batches);
        if (filled) {
            memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                               .kind = MEMORY_LOSE,
                                                               .count = SIZE_MAX });
            shop_fail(&s, MEMORY_COMMIT, 1, MEMORY_AWAY);
        } else {
            memory_disk_lose(s.disk, SIZE_MAX);
        }
        int n = take_leased_some(s.lab.q, NULL, 0, jobs, 8, DUE_S(60), DUE_S(10));
        cr_expect_eq(n, 8, "%d", n);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(10)), 0);
        cr_expect_eq(memory_disk_jobs(s.disk), 8u);
        cr_expect_eq(largest(&s, &at, &batches), BATCH_BYTES);
        for (int i = 0; i < n; i++)
            cr_expect_eq(due_ack(&jobs[i]), 0);
        shop_close(&s);
    }
}

/* ---- The queue closes ---- */

static int give_thirteen(void *arg)
{
    return give(arg, 13);
}

Test(stored_batch, answers_how_many_are_in_when_the_queue_closes, .timeout = 60)
{
    for (uint64_t from = 1; from < 4; from++) {
        struct shop s = shop_new(&(struct memory_disk_options){ .batch_changes = 4 },
                                 (struct lab_options){ .kernel = false });
        struct memory_limiter *limiter = memory_limiter_new(s.disk);
        struct crew_thread giver;

        memory_store_fault(s.store, (struct memory_fault){
                                        .verb = MEMORY_COMMIT,
                                        .call = memory_store_calls(s.store, MEMORY_COMMIT) + from,
                                        .kind = MEMORY_BLOCK_AFTER,
                                        .limiter = limiter });
        crew_go(&giver, give_thirteen, &s);
        memory_limiter_reached(limiter, 1);
        int closed = due_close(s.lab.q, DUE_CLOSE_DISCARD, TIMEOUT_NS);
        cr_expect(closed == 0 || closed == DUE_ETIMEDOUT);
        memory_limiter_open(limiter);
        int rc = crew_join(&giver);
        size_t in = rc > 0 ? (size_t)rc : 0;
        size_t known = named(13);
        cr_expect(rc >= (int)(from - 1) * 4 || (from == 1 && rc < 0), "%d", rc);
        cr_expect_geq(known, in);
        cr_expect_eq(on_disk(&s, known), memory_disk_jobs(s.disk), "all that are there are named");
        shop_close(&s);
        memory_limiter_free(limiter);
    }
}

/* ---- Jobs behind a refused one ---- */

/* A batch of one job stands at a limiter, and meanwhile others leave what is to be sent next. */
struct held {
    struct shop s;
    struct memory_limiter *limiter;
    struct crew_thread first;
    uint64_t call; /* of the store: that batch */
};

static int put_one(void *arg)
{
    struct shop *s = arg;
    due_spec spec = { DUE_SPEC_INIT, .data = "milk", .len = 4, .at_ns = 10 };

    return due_enqueue(s->lab.q, &spec, 0, NULL);
}

static void held_fault(struct held *h, uint64_t behind, struct memory_fault fault)
{
    fault.verb = MEMORY_COMMIT;
    fault.call = h->call + behind;
    memory_store_fault(h->s.store, fault);
}

static void held_begin(struct held *h)
{
    h->limiter = memory_limiter_new(h->s.disk);
    h->call = memory_store_calls(h->s.store, MEMORY_COMMIT) + 1;
    held_fault(h, 0, (struct memory_fault){ .kind = MEMORY_BLOCK, .limiter = h->limiter });
    crew_go(&h->first, put_one, &h->s);
    memory_limiter_reached(h->limiter, 1);
}

/* What comes next: @changes wait then, and the one at the limiter. */
static void held_leave(struct held *h, struct crew_thread *t, int (*run)(void *), uint64_t changes)
{
    crew_go(t, run, &h->s);
    while (lab_stats(&h->s.lab).unsettled < changes + 1)
        crew_sleep(DUE_US(100));
}

static void held_go_on(struct held *h)
{
    memory_limiter_open(h->limiter);
    cr_expect_eq(crew_join(&h->first), 0);
}

static void held_end(struct held *h)
{
    shop_close(&h->s);
    memory_limiter_free(h->limiter);
}

static due_id other;

static int give_six(void *arg)
{
    struct shop *s = arg;

    make(6);
    specs[5].more = EXTRA(.key = "last", .key_len = 4);
    return due_enqueue_batch(s->lab.q, specs, 6, 0, ids);
}

/* They are left when the last of them has its key. */
static void await_six(struct held *h)
{
    due_id id;

    while (due_id_of_key(h->s.lab.q, "last", 4, &id) != 0)
        crew_sleep(DUE_US(100));
}

static int cancel_other(void *arg)
{
    struct shop *s = arg;

    return due_cancel(s->lab.q, other, NULL);
}

static int close_now(void *arg)
{
    struct shop *s = arg;

    return due_close(s->lab.q, DUE_CLOSE_DISCARD, 0);
}

static void expect_closed(struct crew_thread *t)
{
    int rc = crew_join(t);

    cr_expect(rc == 0 || rc == DUE_ETIMEDOUT || rc == DUE_ECLOSED || rc == DUE_EINDOUBT, "%s",
              due_error_name(rc));
}

/* They are in the batch behind the one that was refused, which has something to be sent still, and
 * stands when the call leaves. */
Test(stored_batch, names_none_in_doubt_behind_one_that_was_refused, .timeout = 60)
{
    struct held h = { .s = shop_new(&(struct memory_disk_options){ .batch_changes = 4 },
                                    (struct lab_options){ .with.store_timeout_ns = DUE_S(10) }) };
    struct memory_limiter *next = memory_limiter_new(h.s.disk);
    struct crew_thread giver;
    struct crew_thread canceller;
    struct crew_thread closer;

    other = lab_enqueue(&h.s.lab, "rum", .at_ns = 10);
    held_begin(&h);
    held_leave(&h, &giver, give_six, 6);
    await_six(&h);
    held_leave(&h, &canceller, cancel_other, 7);
    held_fault(&h, 1, (struct memory_fault){ .kind = MEMORY_FULL });
    held_fault(&h, 2, (struct memory_fault){ .kind = MEMORY_BLOCK, .limiter = next });
    held_go_on(&h);
    memory_limiter_reached(next, 1);
    crew_go(&closer, close_now, &h.s);
    int rc = crew_join(&giver);
    cr_expect_eq(rc, DUE_ENOSPC, "%s", due_error_name(rc));
    cr_expect_eq(named(6), 0);
    memory_limiter_open(next);
    expect_closed(&canceller);
    expect_closed(&closer);
    held_end(&h);
    memory_limiter_free(next);
}

static int move_other(void *arg)
{
    struct shop *s = arg;

    return due_reschedule(s->lab.q, other, 20);
}

static int give_two(void *arg)
{
    static const char bytes[15];
    const due_spec two[] = {
        { DUE_SPEC_INIT, .data = bytes, .len = 15, .at_ns = 10 },
        { DUE_SPEC_INIT, .data = bytes, .len = 10, .at_ns = 10 },
    };
    struct shop *s = arg;

    memset(ids, 0, sizeof ids);
    return due_enqueue_batch(s->lab.q, two, 2, 0, ids);
}

/* A batch that is sent in two parts, since what was to be moved is lost and put whole: the first
 * part is refused, with the call's first job in it.  (If the call was quicker than what is moved,
 * with both.) */
Test(stored_batch, has_none_in_behind_one_that_was_refused, .timeout = 60)
{
    static const char eighty[] = "................................................................"
                                 "................";
    struct held h = { .s = shop_new(&(struct memory_disk_options){ .batch_bytes = BATCH_BYTES },
                                    (struct lab_options){ .with.store_timeout_ns = DUE_S(10) }) };
    struct crew_thread mover;
    struct crew_thread giver;

    other = lab_enqueue(&h.s.lab, eighty, .at_ns = 10);
    held_begin(&h);
    held_leave(&h, &mover, move_other, 1);
    held_leave(&h, &giver, give_two, 3);
    shop_fail(&h.s, MEMORY_SEND, MEMORY_ALWAYS, MEMORY_AWAY);
    held_fault(&h, 1, (struct memory_fault){ .kind = MEMORY_LOSE, .count = SIZE_MAX });
    held_fault(&h, 1, (struct memory_fault){ .kind = MEMORY_AWAY });
    held_fault(&h, 2, (struct memory_fault){ .kind = MEMORY_ANSWER, .answer = DUE_ENOMEM });
    held_go_on(&h);
    int rc = crew_join(&giver);
    cr_expect_eq(rc, DUE_ENOMEM, "%s", due_error_name(rc));
    cr_expect_eq(named(2), 0);
    rc = crew_join(&mover);
    cr_expect(rc == DUE_ENOMEM || rc == 0, "%s", due_error_name(rc));
    cr_expect_eq(due_flush(h.s.lab.q, DUE_S(10)), 0);
    while (lab_stats(&h.s.lab).mirrored < 2)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(memory_disk_jobs(h.s.disk), 2u);
    held_end(&h);
}

static int give_three(void *arg)
{
    struct shop *s = arg;

    make(3);
    specs[1].topic = lab_topic(&s->lab, "cleared");
    return due_enqueue_batch(s->lab.q, specs, 3, 0, ids);
}

static void clear_one_of(struct held *h)
{
    uint64_t cleared = 0;

    while (cleared == 0)
        cr_assert_eq(due_clear(h->s.lab.q, lab_topic(&h->s.lab, "cleared"), &cleared), 0);
    cr_assert_eq(cleared, 1u);
}

Test(stored_batch, has_none_in_behind_a_refused_one_though_it_was_cleared, .timeout = 60)
{
    struct held h = { .s = shop_new(&(struct memory_disk_options){ .batch_changes = 1 },
                                    (struct lab_options){ .with.capacity = 4,
                                                          .with.store_timeout_ns = DUE_S(10) }) };
    struct crew_thread giver;

    held_begin(&h);
    held_leave(&h, &giver, give_three, 3);
    clear_one_of(&h);
    held_fault(&h, 1, (struct memory_fault){ .kind = MEMORY_FULL });
    held_go_on(&h);
    int rc = crew_join(&giver);
    cr_expect_eq(rc, DUE_ENOSPC, "%s", due_error_name(rc));
    cr_expect_eq(named(3), 0);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(put_one(&h.s), 0, "there is room for it");
    cr_expect_eq(put_one(&h.s), DUE_EAGAIN);
    held_end(&h);
}

static int give_four(void *arg)
{
    struct shop *s = arg;

    make(4);
    specs[2].topic = lab_topic(&s->lab, "cleared");
    return due_enqueue_batch(s->lab.q, specs, 4, 0, ids);
}

/* Which was shown to on_discard then, and would come as another one. */
Test(stored_batch, puts_none_again_that_was_cleared_behind_a_refused_one, .timeout = 60)
{
    struct held h = { .s = shop_new(&(struct memory_disk_options){ .batch_changes = 1 },
                                    (struct lab_options){ .with.store_timeout_ns = DUE_S(10) }) };
    struct crew_thread giver;

    held_begin(&h);
    held_leave(&h, &giver, give_four, 4);
    clear_one_of(&h);
    held_fault(&h, 2, (struct memory_fault){ .kind = MEMORY_FULL });
    held_go_on(&h);
    cr_expect_eq(crew_join(&giver), 1, "the first");
    cr_expect_eq(named(4), 1);
    cr_expect_eq(memory_disk_jobs(h.s.disk), 2u);
    held_end(&h);
}

/* Not one that was taken back, in place of one that was cleared. */
Test(stored_batch, names_none_in_doubt_that_was_taken_back, .timeout = 60)
{
    struct held h = { .s = shop_new(&(struct memory_disk_options){ .batch_changes = 1 },
                                    (struct lab_options){ .with.store_timeout_ns = DUE_S(10) }) };
    struct crew_thread giver;
    struct crew_thread closer;

    held_begin(&h);
    held_leave(&h, &giver, give_three, 3);
    clear_one_of(&h);
    crew_go(&closer, close_now, &h.s);
    int rc = crew_join(&giver);
    cr_expect_eq(rc, DUE_ECLOSED, "%s", due_error_name(rc));
    cr_expect_eq(named(3), 0);
    memory_limiter_open(h.limiter);
    expect_closed(&h.first);
    expect_closed(&closer);
    held_end(&h);
}

/* ---- No memory ---- */

static void expect_none_behind(struct lab *lab, size_t n, bool fails_on)
{
    struct flaky *memory = &lab->state->memory;
    char large[100] = "";

    for (size_t fail = 0; fail < 40; fail++) {
        for (size_t i = 0; i < n; i++)
            specs[i] = (due_spec){ DUE_SPEC_INIT, .data = large, .len = sizeof large, .at_ns = 10 };
        memset(ids, 0, sizeof ids);
        uint64_t before = lab_stats(lab).waiting;
        flaky_fail_in(memory, fail);
        memory->fail_on = fails_on;
        int rc = due_enqueue_batch(lab->q, specs, n, 0, ids);
        memory->fail_at = FLAKY_NEVER;
        memory->fail_on = false;
        cr_expect(rc > 0 || rc == DUE_ENOMEM, "%s", due_error_name(rc));
        cr_expect_eq(named(n), rc > 0 ? (size_t)rc : 0, "allocation %zu", fail);
        cr_expect_eq(lab_stats(lab).waiting, before + (rc > 0 ? (uint64_t)rc : 0));
    }
}

LAB_TEST(stored_batch, answers_how_many_are_in_when_memory_is_out)
{
    struct lab lab = lab_open();

    expect_none_behind(&lab, 20, true);
    expect_none_behind(&lab, 200, false);
    lab_close(&lab);
    if (lab_proxies == DUE_PROXIES_NEVER)
        return; /* a store has its proxies */
    struct shop s = shop_make();
    expect_none_behind(&s.lab, 20, true);
    expect_none_behind(&s.lab, 200, false);
    shop_close(&s);
}
