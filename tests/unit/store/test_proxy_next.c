/* When the proxy of a stored queue has its next turn, and how long it lets a store take: read where
 * it keeps that, so that no test waits for it.  Whenever it is looked, it is no later than so long
 * from then on, and no earlier than so long from before. */
#include "lab/shop.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

#define RETRY_NS DUE_MS(200)
#define DOUBT_NS DUE_MS(20)
#define SLICE_NS DUE_S(1)
#define RENEW_NS DUE_S(1000)

static const struct due_store_verbs *real;
static _Atomic int64_t held_ns;            /* what a renewal says */
static struct memory_fault from_the_first; /* what goes wrong then */
static atomic_int renewal;                 /* what it answers */
static atomic_uint renewals;               /* so far */
static _Atomic int64_t longest;            /* that the proxy has given a call */
static atomic_uint asked;                  /* such calls */
static _Thread_local bool is_own;          /* this thread is the test's */

static void note(int64_t until_ns)
{
    int64_t left = until_ns - due__monotonic_now();

    if (is_own)
        return;
    atomic_fetch_add(&asked, 1);
    if (left > atomic_load(&longest))
        atomic_store(&longest, left);
}

static int note_open(due_store *s, const struct due_store_open *how, struct due_store_info *info,
                     due_error *error)
{
    int rc = real->open(s, how, info, error);

    if (from_the_first.times > 0)
        memory_store_fault(s, from_the_first);
    info->renew_ns = RENEW_NS;
    return rc;
}

static int note_renew(due_store *s, int64_t *held, int64_t until_ns)
{
    (void)s;
    note(until_ns);
    *held = atomic_load(&held_ns);
    atomic_fetch_add(&renewals, 1);
    return atomic_load(&renewal);
}

static int note_ready(due_store *s, int64_t until_ns)
{
    note(until_ns);
    return real->ready(s, until_ns);
}

static int note_commit(due_store *s, const due_change *changes, size_t n, uint64_t number,
                       int64_t until_ns)
{
    note(until_ns);
    return real->commit(s, changes, n, number, until_ns);
}

static int note_load(due_store *s, int rewind, size_t max, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    note(until_ns);
    return real->load(s, rewind, max, visit, ctx, until_ns);
}

static int note_keys(due_store *s, int rewind, size_t max, due_store_visit_key *visit, void *ctx,
                     int64_t until_ns)
{
    note(until_ns);
    return real->keys(s, rewind, max, visit, ctx, until_ns);
}

static int note_topics(due_store *s, due_store_visit_topic *visit, void *ctx, int64_t until_ns)
{
    note(until_ns);
    return real->topics(s, visit, ctx, until_ns);
}

/* The proxy sleeps, and so nothing of it changes. */
static bool rests(struct shop *s)
{
    due_queue *q = s->lab.q;

    return due__load_seq(&q->enqueue_bell.word) == 2 && !due__lock_held(&q->commits->key);
}

static void until_it_rests(struct shop *s)
{
    while (!rests(s))
        crew_sleep(DUE_MS(1));
}

static void begin(struct shop *s, struct lab_options with, int rc)
{
    static struct due_store_verbs verbs;
    due_store *any = memory_store_new(s->disk);

    is_own = true;
    real = any->verbs;
    verbs = *real;
    any->verbs->free(any);
    verbs.open = note_open;
    verbs.renew = note_renew;
    verbs.ready = note_ready;
    verbs.commit = note_commit;
    verbs.load = note_load;
    verbs.keys = note_keys;
    verbs.topics = note_topics;
    atomic_store(&held_ns, DUE_FOREVER);
    atomic_store(&renewal, rc);
    with.start_ns = 5;
    shop_begin(s, with, &verbs);
}

static struct shop shop_noted(struct lab_options with)
{
    struct shop s = { .disk = memory_disk_new(NULL) };

    begin(&s, with, 0);
    shop_wait_loaded(&s);
    until_it_rests(&s);
    return s;
}

/* It tries again so long after it has tried, whenever that was since @before_ns. */
static void expect_retry(struct shop *s, int64_t before_ns, int64_t pause_ns, const char *what)
{
    struct due__commits *c = s->lab.q->commits;

    for (int looks = 0; looks < 3; looks++) {
        do
            until_it_rests(s);
        while (c->retry_at_ns == 0);
        int64_t at_ns = c->retry_at_ns;
        cr_expect_geq(at_ns, before_ns + pause_ns, "%s", what);
        cr_expect_leq(at_ns, due__monotonic_now() + pause_ns, "%s", what);
        crew_sleep(DUE_MS(7));
    }
}

/* If a caller has done what was left, the proxy finds that at its next turn. */
static void until_no_retry(struct shop *s)
{
    do
        until_it_rests(s);
    while (s->lab.q->commits->retry_at_ns != 0);
}

/* ---- Again ---- */

static void tries_again(enum memory_verb verb, struct memory_fault fault, int64_t pause_ns)
{
    static const enum due_proxies modes[] = { DUE_PROXIES_ADAPTIVE, DUE_PROXIES_ALWAYS };

    for (size_t mode = 0; mode < 2; mode++) {
        struct shop s = shop_noted(
            (struct lab_options){ .with.proxies = modes[mode], .with.confirm = DUE_CONFIRM_ASYNC });
        int64_t before_ns = due__monotonic_now();

        cr_expect_eq(s.lab.q->commits->retry_at_ns, 0, "nothing is to be done");
        fault.verb = verb;
        fault.times = MEMORY_ALWAYS;
        memory_store_fault(s.store, fault);
        lab_enqueue(&s.lab, "tea", .at_ns = 10);
        expect_retry(&s, before_ns, pause_ns, mode == 0 ? "adaptive" : "always");
        cr_expect_eq(lab_stats(&s.lab).unsettled, 1u);
        memory_store_forgive(s.store);
        cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
        until_no_retry(&s);
        shop_close(&s);
    }
}

Test(proxy, a_store_that_is_away_is_asked_again_after_a_while, .timeout = 60)
{
    tries_again(MEMORY_READY, (struct memory_fault){ .kind = MEMORY_AWAY }, RETRY_NS);
}

Test(proxy, a_batch_that_was_not_sent_is_tried_again_soon, .timeout = 60)
{
    tries_again(MEMORY_COMMIT, (struct memory_fault){ .kind = MEMORY_AWAY }, DOUBT_NS);
}

Test(proxy, a_batch_in_doubt_is_seen_to_soon, .timeout = 60)
{
    tries_again(MEMORY_COMMIT,
                (struct memory_fault){ .kind = MEMORY_ANSWER, .answer = DUE_EINDOUBT }, DOUBT_NS);
}

/* What is stored cannot be read, or what was lost not be put again: as if the store were away. */
Test(proxy, what_cannot_be_read_is_read_again_after_a_while, .timeout = 60)
{
    static const enum memory_verb verbs[] = { MEMORY_LOAD, MEMORY_KEYS };
    static const int answers[] = { DUE_EAGAIN, DUE_ECORRUPT, DUE_ENOMEM };

    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 3; k++) {
            struct shop s = shop_noted((struct lab_options){ .with.store_timeout_ns = DUE_S(30) });

            lab_enqueue(&s.lab, "tea", .at_ns = 10);
            shop_die(&s);
            int64_t before_ns = due__monotonic_now();
            from_the_first = (struct memory_fault){ .verb = verbs[i],
                                                    .times = MEMORY_ALWAYS,
                                                    .kind = MEMORY_ANSWER,
                                                    .answer = answers[k] };
            begin(&s, (struct lab_options){ .with.store_timeout_ns = DUE_S(30) }, 0);
            from_the_first.times = 0;
            memory_store_until(s.store, verbs[i], 2);
            expect_retry(&s, before_ns, RETRY_NS, due_error_name(answers[k]));
            cr_expect_eq(lab_stats(&s.lab).store_state,
                         answers[k] == DUE_EAGAIN ? DUE_ESTORE : answers[k]);
            memory_store_forgive(s.store);
            shop_wait_loaded(&s);
            until_no_retry(&s);
            cr_expect_eq(lab_stats(&s.lab).store_state, 0);
            shop_close(&s);
        }
    }
}

Test(proxy, what_cannot_be_put_again_is_put_again_after_a_while, .timeout = 60)
{
    if (getenv("LAB_STORE") != NULL)
        cr_skip_test("a real store answers later, and is looked at for that before");
    struct shop s = shop_noted((struct lab_options){ .with.confirm = DUE_CONFIRM_ASYNC });

    lab_enqueue(&s.lab, "milk", .at_ns = 10);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    until_it_rests(&s); /* a turn that goes on began before */
    int64_t before_ns = due__monotonic_now();
    memory_store_fault(
        s.store, (struct memory_fault){ .verb = MEMORY_READY, .kind = MEMORY_LOSE, .count = 1 });
    memory_store_fault(s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                       .times = MEMORY_ALWAYS,
                                                       .kind = MEMORY_FULL });
    lab_enqueue(&s.lab, "tea", .at_ns = 10);
    expect_retry(&s, before_ns, RETRY_NS, "a full store");
    cr_expect(due__load_seq(&s.lab.q->commits->lacking));
    memory_store_forgive(s.store);
    while (due__load_seq(&s.lab.q->commits->lacking))
        crew_sleep(DUE_MS(1));
    until_no_retry(&s);
    cr_expect_eq(memory_disk_jobs(s.disk), 1u);
    shop_close(&s);
}

/* ---- The ownership ---- */

static void expect_renewal(struct shop *s, int64_t before_ns, int64_t in_ns)
{
    until_it_rests(s);
    int64_t at_ns = s->lab.q->commits->renew_at_ns;

    cr_expect_geq(at_ns, before_ns + in_ns);
    cr_expect_leq(at_ns, due__monotonic_now() + in_ns);
}

Test(proxy, the_ownership_is_renewed_as_often_as_the_store_says, .timeout = 60)
{
    static const int errors[] = { DUE_EAGAIN, DUE_ESTORE, DUE_EACCES, DUE_EDURABILITY };

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        int64_t before_ns = due__monotonic_now();
        struct shop s = shop_noted((struct lab_options){ 0 });

        cr_expect_eq(atomic_load(&renewals), 1u, "at once, and then no more");
        expect_renewal(&s, before_ns, RENEW_NS);
        cr_expect_eq(s.lab.q->commits->held_ns, DUE_FOREVER);
        shop_die(&s);
        atomic_store(&renewals, 0);
        before_ns = due__monotonic_now();
        begin(&s, (struct lab_options){ 0 }, errors[i]);
        shop_wait_loaded(&s);
        while (atomic_load(&renewals) < 2)
            crew_sleep(DUE_MS(1));
        expect_renewal(&s, before_ns, RETRY_NS);
        cr_expect_eq(lab_stats(&s.lab).store_state, 0, "of what is read and written");
        atomic_store(&renewal, 0);
        int64_t until_ns = due__boottime_now() + DUE_S(500);
        atomic_store(&held_ns, until_ns);
        while (due__load_relaxed(&s.lab.q->commits->held_ns) != until_ns)
            crew_sleep(DUE_MS(1));
        expect_renewal(&s, before_ns, RENEW_NS);
        shop_close(&s);
        atomic_store(&renewals, 0);
    }
}

Test(proxy, a_loss_that_a_renewal_tells_is_mended, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(NULL) };

    begin(&s, (struct lab_options){ 0 }, DUE_EAGAIN);
    shop_wait_loaded(&s);
    lab_enqueue(&s.lab, "tea", .at_ns = 10);
    memory_disk_lose(s.disk, 1);
    atomic_store(&renewal, DUE_ELOST);
    while (lab_stats(&s.lab).mirrored == 0)
        crew_sleep(DUE_MS(1));
    cr_expect_eq(memory_disk_jobs(s.disk), 1u);
    atomic_store(&renewal, 0);
    shop_close(&s);
}

Test(proxy, who_hears_from_a_renewal_that_another_owns_the_jobs_says_so, .timeout = 60)
{
    struct shop s = { .disk = memory_disk_new(NULL) };

    begin(&s, (struct lab_options){ 0 }, DUE_EFENCED);
    while (due_flush(s.lab.q, 0) != DUE_EFENCED)
        crew_sleep(DUE_MS(1));
    until_it_rests(&s);
    cr_expect_eq(atomic_load(&renewals), 1u, "it is not asked again");
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3 };
    cr_expect_eq(due_enqueue(s.lab.q, &spec, 0, NULL), DUE_EFENCED);
    lab_close(&s.lab);
    memory_disk_free(s.disk);
}

/* ---- How long ---- */

Test(proxy, a_call_of_the_stores_may_take_a_second, .timeout = 60)
{
    struct shop s = shop_noted((struct lab_options){ .with.proxies = DUE_PROXIES_ALWAYS,
                                                     .with.confirm = DUE_CONFIRM_ASYNC });

    atomic_store(&longest, 0);
    atomic_store(&asked, 0);
    lab_enqueue(&s.lab, "tea", .at_ns = 10);
    cr_assert_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    memory_store_fault(
        s.store, (struct memory_fault){ .verb = MEMORY_READY, .kind = MEMORY_LOSE, .count = 1 });
    lab_enqueue(&s.lab, "tea", .at_ns = 10);
    while (lab_stats(&s.lab).mirrored == 0 || due__load_seq(&s.lab.q->commits->lacking))
        crew_sleep(DUE_MS(1));
    cr_expect_geq(atomic_load(&asked), 7u, "ready, commit, ready, topics, commit, load, keys");
    cr_expect_leq(atomic_load(&longest), SLICE_NS);
    cr_expect_gt(atomic_load(&longest), 0);
    shop_close(&s);
}
