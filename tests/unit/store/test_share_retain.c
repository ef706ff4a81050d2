/* One queue for many processes: dead jobs go when they were kept for long enough, or are too many.
 */
#include <stdatomic.h>
#include <time.h>

#include "lab/crew.h"
#include "lab/mall.h"
#include "lab/memory_disk.h"
#include "queue/queue.h"
#include "store/share.h"

#define BEATS_NS DUE_MS(30) /* three times as long as from one beat to the next */

static void note_discard(void *ctx, const due_job *job)
{
    char *text = ctx;

    strncat(text, job->data, job->len);
    cr_expect_null(job->queue);
}

/* A process that keeps all, and one that does not: both beat. */
static struct mall mall_retaining(due_options with, char *text)
{
    const struct memory_disk_options disk = { .lease_ns = BEATS_NS };
    struct mall m = { .disk = memory_disk_new(&disk), .clock = due_clock_manual(100) };
    struct lab_options options = { .with = with };

    if (text != NULL) {
        options.with.on_discard = note_discard;
        options.with.discard_ctx = text;
    }
    mall_join(&m, (struct lab_options){ .kernel = false });
    mall_join(&m, options);
    return m;
}

static due_id put_dead(struct mall *m, const char *text)
{
    due_job job;

    due_id id = lab_enqueue(&m->lab[0], text, .delay_ns = 0);
    cr_assert_eq(mall_reserve(m, 0, &job, 1000000), 0);
    cr_assert(due_id_equal(job.id, id));
    cr_assert_eq(due_bury(&job, "cold"), 0);
    return id;
}

/* The process looks so many times more, from the first to its end. */
static void looks(struct mall *m, size_t i, unsigned n)
{
    memory_store_until(m->store[i], MEMORY_PAGE, memory_store_calls(m->store[i], MEMORY_PAGE) + n);
}

static void are_left(struct mall *m, size_t i, size_t n)
{
    while (memory_disk_jobs(m->disk) > n)
        looks(m, i, 1);
    looks(m, i, 2);
    cr_expect_eq(memory_disk_jobs(m->disk), n);
}

static bool is_there(struct mall *m, due_id id)
{
    due_record r;

    return memory_disk_find(m->disk, id, &r);
}

MALL_TEST(share_retain, the_dead_are_kept_for_as_long_as_was_asked_and_no_longer)
{
    char text[64] = "";
    struct mall m = mall_retaining((due_options){ .dead_keep_ns = 1000 }, text);

    put_dead(&m, "a");
    put_dead(&m, "b");
    mall_turn_to(&m, 101);
    due_id last = put_dead(&m, "c");
    mall_turn_to(&m, 1099);
    looks(&m, 1, 3);
    cr_expect_eq(memory_disk_jobs(m.disk), 3u);
    mall_turn_to(&m, 1100);
    are_left(&m, 1, 1);
    cr_expect(is_there(&m, last));
    mall_turn_to(&m, 1101);
    are_left(&m, 1, 0);
    mall_close(&m);
    cr_expect_str_eq(text, "abc");
}

MALL_TEST(share_retain, the_first_to_have_died_of_more_than_so_many_go)
{
    char text[64] = "";
    struct mall m = mall_retaining((due_options){ .dead_max = 2 }, text);
    static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
    due_id ids[6];

    for (int i = 0; i < 6; i++) {
        mall_turn_to(&m, 200 + i);
        ids[i] = put_dead(&m, names[i]);
    }
    are_left(&m, 1, 2);
    cr_expect(is_there(&m, ids[4]) && is_there(&m, ids[5]));
    mall_close(&m);
    cr_expect_str_eq(text, "abcd");
}

static void bury_many(struct mall *m, int n)
{
    due_job job;

    for (int i = 0; i < n; i++) {
        lab_enqueue(&m->lab[0], "x", .delay_ns = 0);
        cr_assert_eq(mall_reserve(m, 0, &job, 1000000), 0);
        cr_assert_eq(due_bury(&job, "cold"), 0);
    }
}

/* More than a page of those that are shown; and what waits or is held stays. */
MALL_TEST(share_retain, many_go_page_by_page)
{
    static char text[1024];
    struct mall m = mall_retaining((due_options){ .dead_keep_ns = 1000, .dead_max = 1 }, text);
    due_job job;

    text[0] = '\0';
    bury_many(&m, 300);
    lab_enqueue(&m.lab[0], "waits", .at_ns = 5000000);
    lab_enqueue(&m.lab[0], "held", .delay_ns = 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 1000000), 0);
    are_left(&m, 1, 3);
    mall_turn_to(&m, 1100);
    are_left(&m, 1, 2);
    cr_expect_eq(due_ack(&job), 0);
    mall_close(&m);
    cr_expect_eq(strlen(text), 300u);
}

/* And of those that nobody is shown. */
MALL_TEST(share_retain, very_many_go_unseen)
{
    struct mall m = mall_retaining((due_options){ .size = 0 }, NULL);
    due_store *store = memory_store_new(m.disk);
    due_options o = { DUE_OPTIONS_INIT, .store = store, .share = DUE_SHARED, .dead_keep_ns = 1000,
                      .manual = m.clock };
    due_queue *q;

    bury_many(&m, 1200);
    mall_turn_to(&m, 1100);
    uint64_t batches = memory_disk_batches(m.disk);
    cr_assert_eq(due_open(&q, &o, NULL), 0);
    while (memory_disk_jobs(m.disk) > 0)
        memory_store_until(store, MEMORY_PAGE, memory_store_calls(store, MEMORY_PAGE) + 1);
    batches = memory_disk_batches(m.disk) - batches;
    cr_expect(batches >= 9 && batches < 60, "1, 4, 16, 64, 256 and so on, and not %llu",
              (unsigned long long)batches);
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_expect_eq(due_free(q), 0);
    mall_close(&m);
}

/* They are too many in each of the pages. */
MALL_TEST(share_retain, more_than_so_many_go_in_one_turn)
{
    struct mall m = mall_retaining((due_options){ .size = 0 }, NULL);
    due_store *store = memory_store_new(m.disk);
    due_options o = { DUE_OPTIONS_INIT, .store = store, .share = DUE_SHARED, .dead_max = 1,
                      .manual = m.clock };
    due_queue *q;

    bury_many(&m, 100);
    uint64_t batches = memory_disk_batches(m.disk);
    cr_assert_eq(due_open(&q, &o, NULL), 0);
    while (memory_disk_jobs(m.disk) > 1)
        memory_store_until(store, MEMORY_PAGE, memory_store_calls(store, MEMORY_PAGE) + 1);
    batches = memory_disk_batches(m.disk) - batches;
    cr_expect_lt(batches, 20u, "1, 4, 16, 64, 256, and not %llu", (unsigned long long)batches);
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_expect_eq(due_free(q), 0);
    mall_close(&m);
}

/* In a turn that finds nothing to do one dead job is looked at, however many there are. */
MALL_TEST(share_retain, what_is_to_stay_costs_one_page_in_a_turn)
{
    const due_options with[] = { { .dead_keep_ns = 1000 }, { .dead_max = 40 } };

    for (int i = 0; i < 2; i++) {
        char text[64] = "";
        struct mall m = mall_retaining(with[i], text);

        bury_many(&m, 40);
        looks(&m, 1, 2);
        uint64_t beats = memory_store_calls(m.store[1], MEMORY_BEAT);
        uint64_t pages = memory_store_calls(m.store[1], MEMORY_PAGE);
        looks(&m, 1, 9);
        pages = memory_store_calls(m.store[1], MEMORY_PAGE) - pages;
        beats = memory_store_calls(m.store[1], MEMORY_BEAT) - beats;
        cr_expect_leq(pages, beats + 1, "%llu pages in %llu beats", (unsigned long long)pages,
                      (unsigned long long)beats);
        cr_expect_eq(memory_disk_jobs(m.disk), 40u);
        mall_close(&m);
    }
}

/* Between the look at it and its drop it is kicked, and one has died anew by then. */
MALL_TEST(share_retain, what_was_kicked_meanwhile_is_not_dropped)
{
    char text[64] = "";
    struct mall m = mall_retaining((due_options){ .dead_keep_ns = 1000 }, text);
    struct memory_limiter *gate = memory_limiter_new(m.disk);
    due_id ids[3];
    due_job job;

    for (int i = 0; i < 3; i++) {
        mall_turn_to(&m, 100 + i);
        ids[i] = put_dead(&m, i == 0 ? "a" : "b");
    }
    looks(&m, 1, 2);
    memory_store_fault(
        m.store[1], (struct memory_fault){ .verb = MEMORY_PUT,
                                           .call = memory_store_calls(m.store[1], MEMORY_PUT) + 2,
                                           .kind = MEMORY_BLOCK,
                                           .limiter = gate });
    mall_turn_to(&m, 2000);
    memory_limiter_reached(gate, 1); /* the first has gone, and the other two were looked at */
    cr_expect_eq(due_kick(m.lab[0].q, ids[1]), 0);
    cr_assert_eq(mall_reserve(&m, 0, &job, 1000000), 0);
    cr_assert(due_id_equal(job.id, ids[1]));
    cr_assert_eq(due_bury(&job, "colder"), 0);
    cr_expect_eq(due_kick(m.lab[0].q, ids[2]), 0);
    memory_limiter_open(gate);
    looks(&m, 1, 2);
    cr_expect_eq(memory_disk_jobs(m.disk), 2u);
    cr_expect(is_there(&m, ids[1]) && is_there(&m, ids[2]));
    mall_turn_to(&m, 2999);
    looks(&m, 1, 2);
    cr_expect(is_there(&m, ids[1]), "it died at 2000");
    mall_turn_to(&m, 3000);
    are_left(&m, 1, 1);
    memory_limiter_free(gate);
    mall_close(&m);
    cr_expect_str_eq(text, "ab");
}

/* The answer gets lost: they are shown when it is known. */
MALL_TEST(share_retain, a_drop_in_doubt_is_seen_through)
{
    char text[64] = "";
    struct mall m = mall_retaining((due_options){ .dead_keep_ns = 1000 }, text);

    put_dead(&m, "a");
    put_dead(&m, "b");
    memory_store_fault(
        m.store[1],
        (struct memory_fault){ .verb = MEMORY_PUT, .times = 3, .kind = MEMORY_DOUBT_LANDED });
    memory_store_fault(
        m.store[1], (struct memory_fault){ .verb = MEMORY_PAGE, .times = 3, .kind = MEMORY_AWAY });
    mall_turn_to(&m, 1100);
    are_left(&m, 1, 0);
    mall_close(&m);
    cr_expect_str_eq(text, "ab");
}

/* Of an enqueue the end is not known, and one exchange is made at a time. */
MALL_TEST(share_retain, nothing_is_dropped_while_something_else_is_in_doubt)
{
    char text[64] = "";
    struct mall m =
        mall_retaining((due_options){ .dead_keep_ns = 1000, .store_timeout_ns = DUE_MS(50) }, text);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 9000 };
    int rc;

    put_dead(&m, "a");
    looks(&m, 1, 2);
    memory_store_fault(m.store[1], (struct memory_fault){ .verb = MEMORY_PUT,
                                                          .times = MEMORY_ALWAYS,
                                                          .kind = MEMORY_DOUBT_NOT });
    do { /* again, if it was out of time before it was sent */
        rc = due_enqueue(m.lab[1].q, &spec, 0, NULL);
    } while (rc == DUE_ETIMEDOUT);
    cr_expect_eq(rc, DUE_EINDOUBT, "%s", due_error_name(rc));
    mall_turn_to(&m, 1100);
    uint64_t beats = memory_store_calls(m.store[1], MEMORY_BEAT);
    memory_store_until(m.store[1], MEMORY_BEAT, beats + 6);
    cr_expect_eq(memory_disk_jobs(m.disk), 1u);
    memory_store_forgive(m.store[1]);
    cr_expect_eq(due_flush(m.lab[1].q, DUE_S(20)), 0);
    are_left(&m, 1, 1);
    cr_expect_str_eq(text, "a");
    mall_close(&m);
}

/* Nor is its end ever known, as this one is evicted, or closes: they are shown all the same. */
MALL_TEST(share_retain, a_drop_in_doubt_for_good_is_shown)
{
    for (int evicted = 0; evicted < 2; evicted++) {
        char text[64] = "";
        struct mall m = mall_retaining((due_options){ .dead_keep_ns = 1000 }, text);
        uint64_t puts = memory_store_calls(m.store[1], MEMORY_PUT);

        put_dead(&m, "a");
        memory_store_fault(m.store[1], (struct memory_fault){ .verb = MEMORY_PUT,
                                                              .call = puts + 1,
                                                              .times = evicted ? 1 : MEMORY_ALWAYS,
                                                              .kind = MEMORY_DOUBT_LANDED });
        memory_store_fault(m.store[1],
                           (struct memory_fault){ .verb = MEMORY_PUT,
                                                  .call = puts + 2,
                                                  .times = MEMORY_ALWAYS,
                                                  .kind = MEMORY_ANSWER,
                                                  .answer = evicted ? DUE_EFENCED : DUE_EINDOUBT });
        mall_turn_to(&m, 1100);
        memory_store_until(m.store[1], MEMORY_PUT, puts + 2);
        cr_expect_eq(memory_disk_jobs(m.disk), 0u);
        int rc = due_close(m.lab[1].q, DUE_CLOSE_DISCARD, 1);
        cr_expect(rc == 0 || rc == DUE_ETIMEDOUT, "%d", rc);
        cr_expect_str_eq(text, "a", "%d", evicted);
        mall_close(&m);
    }
}

/* Of several who would, one looks at a time; when he has died another does. */
MALL_TEST(share_retain, who_dies_leaves_it_to_another)
{
    char first[64] = "";
    char second[64] = "";
    struct mall m = mall_retaining((due_options){ .dead_keep_ns = 1000 }, first);

    mall_join(&m, (struct lab_options){ .with.dead_keep_ns = 1000,
                                        .with.on_discard = note_discard,
                                        .with.discard_ctx = second });
    put_dead(&m, "a");
    cr_expect_eq(memory_store_calls(m.store[0], MEMORY_PAGE), 0u, "it keeps all");
    mall_die(&m, 1);
    mall_turn_to(&m, 1100);
    are_left(&m, 2, 0);
    mall_close(&m);
    cr_expect_str_empty(first);
    cr_expect_str_eq(second, "a");
}

/* The topic of the first to have died can have no number here. */
MALL_TEST(share_retain, what_cannot_be_read_is_passed_over)
{
    char text[64] = "";
    struct mall m = mall_retaining((due_options){ .dead_keep_ns = 1000, .dead_max = 100 }, text);
    char name[DUE_TOPIC_LENGTH + 2];
    int topic = due_topic(m.lab[0].q, "odd");
    due_id odd[2];
    due_job job;

    for (int i = 0; i < 2; i++) {
        odd[i] = lab_enqueue(&m.lab[0], "odd", .topic = topic, .delay_ns = 0);
        cr_assert_eq(mall_reserve(&m, 0, &job, 1000000), 0);
        cr_assert_eq(due_bury(&job, "cold"), 0);
    }
    mall_turn_to(&m, 101);
    for (int i = 0; i < 9; i++)
        put_dead(&m, "a");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    pthread_mutex_lock(&m.disk->lock);
    for (size_t i = 0; i < m.disk->jobs.n_topics; i++)
        if (strcmp(m.disk->jobs.topics[i], "odd") == 0) {
            free(m.disk->jobs.topics[i]);
            m.disk->jobs.topics[i] = strdup(name);
        }
    pthread_mutex_unlock(&m.disk->lock);
    mall_turn_to(&m, 2000);
    are_left(&m, 1, 2);
    cr_expect(is_there(&m, odd[0]) && is_there(&m, odd[1]));
    mall_close(&m);
    cr_expect_str_eq(text, "aaaaaaaaa");
}

/* Others had their turn, and have it for an hour. */
MALL_TEST(share_retain, who_keeps_them_for_longer_holds_nobody_up)
{
    const struct memory_disk_options disk = { .lease_ns = BEATS_NS };
    const struct due_beat longer = { .turn_ns = 1, .dead_keep_ns = 2000 };
    char text[64] = "";
    struct mall m = { .disk = memory_disk_new(&disk), .clock = due_clock_manual(100) };

    cr_assert(memory_share_turn(m.disk, &longer)); /* nobody else is there yet */
    m.disk->share.turns[0].taken_ns += DUE_S(3600);
    mall_join(&m, (struct lab_options){ .with.dead_keep_ns = 1000,
                                        .with.on_discard = note_discard,
                                        .with.discard_ctx = text });
    put_dead(&m, "a");
    mall_turn_to(&m, 1100);
    are_left(&m, 0, 0);
    mall_close(&m);
    cr_expect_str_eq(text, "a");
}

/* A store as it is, which is listened to: when a look has failed, and which beats want the turn. */
static const struct due_shared_verbs *listened;
static _Atomic int64_t
    failed_ns;            /* the last look, by the clock by which the queue rests; 0: none */
static atomic_uint early; /* beats that wanted the turn again too soon */

static int page_noted(due_store *store, struct due_page *page, size_t max, due_store_visit *visit,
                      void *ctx, int64_t until_ns)
{
    int rc = listened->page(store, page, max, visit, ctx, until_ns);

    atomic_store(&failed_ns, rc < 0 ? due__monotonic_now() : 0);
    return rc;
}

static int beat_noted(due_store *store, struct due_beat *beat, int64_t until_ns)
{
    int64_t since = due__monotonic_now() - atomic_load(&failed_ns);

    if (beat->turn_ns > 0 && atomic_load(&failed_ns) != 0 && since < BEATS_NS / 2)
        atomic_fetch_add(&early, 1);
    return listened->beat(store, beat, until_ns);
}

/* It has the turn always when it may, and cannot look: it leaves that to others until each of them
 * has beaten, which is half as long again as from one beat to the next. */
MALL_TEST(share_retain, who_cannot_look_lets_others)
{
    const struct memory_disk_options disk = { .lease_ns = BEATS_NS };
    struct mall m = { .disk = memory_disk_new(&disk), .clock = due_clock_manual(100) };
    struct lab_options options = { .with = { .dead_keep_ns = 1000 } };

    mall_join(&m, (struct lab_options){ .kernel = false });
    struct due_store_verbs verbs = *m.store[0]->verbs;
    struct due_shared_verbs shared = *verbs.shared;
    listened = verbs.shared;
    shared.page = page_noted;
    shared.beat = beat_noted;
    verbs.shared = &shared;
    atomic_store(&failed_ns, 0);
    atomic_store(&early, 0);
    mall_join_by(&m, options, &verbs);
    memory_store_fault(m.store[1], (struct memory_fault){ .verb = MEMORY_PAGE,
                                                          .times = MEMORY_ALWAYS,
                                                          .kind = MEMORY_ANSWER,
                                                          .answer = DUE_ECORRUPT });
    looks(&m, 1, 6);
    cr_expect_eq(atomic_load(&early), 0u);
    mall_close(&m);
}

static _Atomic int64_t turn_ns; /* as the last beat has asked for it */
static atomic_uint beats;

static int beat_asked(due_store *store, struct due_beat *beat, int64_t until_ns)
{
    atomic_store(&turn_ns, beat->turn_ns);
    atomic_fetch_add(&beats, 1);
    return listened->beat(store, beat, until_ns);
}

/* What a process asks for that beats so often, and would keep the dead for so long. */
static int64_t turn_of(int64_t beat_ns, due_options with)
{
    const struct memory_disk_options disk = { .lease_ns = 3 * beat_ns };
    struct mall m = { .disk = memory_disk_new(&disk), .clock = due_clock_manual(100) };
    due_store *any = memory_store_new(m.disk);
    struct due_store_verbs verbs = *any->verbs;
    struct due_shared_verbs shared = *verbs.shared;

    verbs.free(any);
    listened = verbs.shared;
    shared.beat = beat_asked;
    verbs.shared = &shared;
    atomic_store(&beats, 0);
    mall_join_by(&m, (struct lab_options){ .with = with }, &verbs);
    while (atomic_load(&beats) == 0)
        crew_sleep(DUE_US(100));
    mall_close(&m);
    return atomic_load(&turn_ns);
}

/* Nobody is to have looked at the dead for half a beat, or five seconds, before it does. */
Test(share_retain, the_turn_is_asked_for_by_who_keeps_the_dead_for_a_time_or_so_many, .timeout = 60)
{
    cr_expect_eq(turn_of(DUE_S(60), (due_options){ .dead_keep_ns = 1000 }), DUE_S(5));
    cr_expect_eq(turn_of(DUE_S(60), (due_options){ .dead_max = 1 }), DUE_S(5));
    cr_expect_eq(turn_of(DUE_S(6), (due_options){ .dead_max = 1 }), DUE_S(3));
    cr_expect_eq(turn_of(DUE_S(60), (due_options){ .dead_max = 0 }), 0);
}

static int64_t store_clock(void *clock)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return DUE_S(now.tv_sec + atomic_load((_Atomic int *)clock)) + now.tv_nsec;
}

/* The store's clock was hours before what it is now, when it was measured last. */
Test(share_retain, what_is_over_is_judged_by_the_time_of_the_beat, .timeout = 60)
{
    static _Atomic int ahead = 7200;
    const struct memory_disk_options with = { .now = store_clock,
                                              .clock = (due_clock *)&ahead,
                                              .lease_ns = BEATS_NS };
    struct memory_disk *disk = memory_disk_new(&with);
    due_store *store[] = { memory_store_new(disk), memory_store_new(disk) };
    due_options o = { DUE_OPTIONS_INIT, .store = store[0], .share = DUE_SHARED };
    due_queue *q[2];
    due_job job;

    o.dead_keep_ns = DUE_S(3600);
    cr_assert_eq(due_open(&q[0], &o, NULL), 0);
    atomic_store(&ahead, 0);
    o.store = store[1];
    o.dead_keep_ns = 0;
    cr_assert_eq(due_open(&q[1], &o, NULL), 0);
    due_spec spec = { DUE_SPEC_INIT, .data = "tea", .len = 3 };
    cr_assert_eq(due_enqueue(q[1], &spec, DUE_S(20), NULL), 0);
    cr_assert_eq(take_leased(q[1], &job, DUE_S(600), DUE_S(30)), 0);
    cr_assert_eq(due_bury(&job, "cold"), 0);
    memory_store_until(store[0], MEMORY_PAGE, memory_store_calls(store[0], MEMORY_PAGE) + 3);
    cr_expect_eq(memory_disk_jobs(disk), 1u, "it has died just now");
    atomic_store(&ahead, 3700);
    while (memory_disk_jobs(disk) > 0)
        memory_store_until(store[0], MEMORY_PAGE, memory_store_calls(store[0], MEMORY_PAGE) + 1);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(due_close(q[i], DUE_CLOSE_DISCARD, DUE_S(20)), 0);
        cr_expect_eq(due_free(q[i]), 0);
    }
    memory_disk_free(disk);
}

/* As many share it by now: the others beat in that time, and not as was said at the join. */
MALL_TEST(share_retain, of_a_page_that_failed_is_left_to_all_others_first)
{
    struct mall m = mall_make(1);
    struct due__commits *c = m.lab[0].q->commits;

    due__lock_acquire(&c->key);
    c->share->renew_ns = DUE_S(2000);
    due__sharing_retained(m.lab[0].q, DUE_EAGAIN);
    int64_t rests_ns = c->share->retention.rests_ns;
    due__lock_release(&c->key);
    cr_expect_gt(rests_ns, due__time_add(due__monotonic_now(), DUE_S(2900)));
    mall_close(&m);
}
