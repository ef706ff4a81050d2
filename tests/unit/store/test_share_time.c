/* The time of a shared queue is its store's, as far as that is known. */
#include <time.h>

#include "lab/mall.h"
#include "os/atomic.h"
#include "store/share.h"

static void expect(const struct due__sharing *sh, int64_t behind_ns, int64_t ahead_ns)
{
    cr_expect_eq(sh->behind_ns, behind_ns, "%lld", (long long)sh->behind_ns);
    cr_expect_eq(sh->ahead_ns, ahead_ns, "%lld", (long long)sh->ahead_ns);
}

Test(share_time, is_known_up_to_the_shortest_round_trip)
{
    struct due__sharing sh = { .ahead_ns = 7, .behind_ns = 7 };

    due__sharing_measure(&sh, 100, 200, 1000);
    expect(&sh, 800, 900); /* the first one counts, whatever was guessed */
    due__sharing_measure(&sh, 300, 500, 1250);
    expect(&sh, 800, 900); /* 750 to 950 says less */
    due__sharing_measure(&sh, 600, 640, 1450);
    expect(&sh, 810, 850);
    due__sharing_measure(&sh, 700, 740, 1548);
    expect(&sh, 808, 848); /* as much, and newer */
}

Test(share_time, is_measured_anew_when_a_clock_was_set_or_may_have_drifted)
{
    struct due__sharing sh = { .ahead_ns = 0 };

    due__sharing_measure(&sh, 100, 110, 1000);
    expect(&sh, 890, 900);
    due__sharing_measure(&sh, 200, 300, 1201);
    expect(&sh, 901, 1001); /* forward */
    due__sharing_measure(&sh, 400, 600, 1300);
    expect(&sh, 700, 900); /* back */
    due__sharing_measure(&sh, 700, 900, 1600);
    expect(&sh, 700, 900); /* the ends meet: neither */
    due__sharing_measure(&sh, 1000, 1300, 1900);
    expect(&sh, 700, 900);
    int64_t later = 900 + DUE_S(10);
    due__sharing_measure(&sh, later - 300, later, later + 650);
    expect(&sh, 700, 900); /* not old yet */
    due__sharing_measure(&sh, later - 299, later + 1, later + 650);
    expect(&sh, 649, 949);
}

/* What another process's message says: the store's clock is not behind that. */
Test(share_time, is_at_least_what_was_heard)
{
    struct due__sharing sh = { .ahead_ns = 0 };

    due__sharing_measure(&sh, 100, 200, 1000);
    due__sharing_at_least(&sh, 700);
    expect(&sh, 800, 900); /* it came late */
    due__sharing_at_least(&sh, 850);
    expect(&sh, 850, 900);
    due__sharing_at_least(&sh, 5000);
    expect(&sh, 5000, 5000); /* set forward */
    due__sharing_measure(&sh, 300, 400, 5350);
    expect(&sh, 4950, 5050); /* the next answer says how far */
}

/* What was guessed says that the clocks are alike; how much they may differ is not known yet. */
Test(share_time, is_measured_the_first_time_though_the_guess_was_right)
{
    struct due__sharing sh = { .ahead_ns = 850, .behind_ns = 850 };

    due__sharing_measure(&sh, 100, 200, 1000);
    expect(&sh, 800, 900);
    cr_expect_eq(sh.measured_ns, 200);
}

Test(share_time, is_not_measured_anew_where_the_ends_meet)
{
    struct due__sharing sh = { .ahead_ns = 0 };

    due__sharing_measure(&sh, 100, 110, 1000);
    expect(&sh, 890, 900);
    due__sharing_measure(&sh, 200, 300, 1200);
    expect(&sh, 890, 900); /* 900 to 1000 */
    due__sharing_measure(&sh, 400, 500, 1290);
    expect(&sh, 890, 900); /* 790 to 890 */
}

/* A process on the kernel's clock, whose store has another time, and puts before it takes.  @there:
 * another process has put a job of a topic before it. */
static void deliver(int64_t stores_ns, bool there)
{
    due_clock *stores = due_clock_manual(stores_ns);
    struct mall m = mall_on(0, stores);
    due_job job;

    if (there) {
        mall_join(&m, (struct lab_options){ .kernel = true });
        lab_enqueue(&m.lab[0], "cake", .delay_ns = DUE_S(3600));
    }
    size_t i = mall_join(&m, (struct lab_options){ .kernel = true });
    lab_enqueue(&m.lab[i], "tea", .delay_ns = 1);
    cr_assert_eq(due_clock_turn_to(stores, stores_ns + DUE_S(100)), 0);
    cr_assert_eq(mall_reserve(&m, i, &job, DUE_S(600)), 0);
    cr_expect(job.deadline_ns > stores_ns && job.deadline_ns < stores_ns + DUE_S(100));
    cr_expect_eq(due_ack(&job), 0);
    int64_t now_ns = due_now(m.lab[i].q); /* it goes on as that of the machine does */
    cr_expect(now_ns >= stores_ns + DUE_S(100) && now_ns < stores_ns + DUE_S(200), "%lld",
              (long long)now_ns);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
}

Test(share_time, of_a_delay_is_the_stores, .timeout = 60)
{
    for (int there = 0; there < 2; there++) {
        deliver(DUE_S(1000), there); /* long ago */
        deliver(DUE_S(86400) * 36525, there);
    }
}

#define LATE_S 100 /* so late are the jobs below, and by no other clock */

enum { DEQUEUED, RESERVED, LIMITED, REPEATING, LAPSED, WAYS };

/* The store's clock is turned, and its answer to a put says so. */
static void turn_stores(struct mall *m, due_clock *stores, int64_t *now_ns, int64_t by_ns)
{
    cr_assert_eq(due_clock_turn_to(stores, *now_ns += by_ns), 0);
    for (size_t i = 0; i < m->n; i++)
        lab_enqueue(&m->lab[i], "later", .delay_ns = DUE_S(86400) * 300);
}

/* @n jobs, which come together. */
static void have_late(struct mall *m, size_t process, int n, int64_t lease_ns, int way)
{
    due_job jobs[16];

    for (int had = 0; had < n;) {
        int rc = take_leased_some(m->lab[process].q, NULL, 0, jobs, 16, lease_ns, DUE_FOREVER);

        cr_assert_gt(rc, 0, "%s", due_error_name(rc));
        for (int i = 0; i < rc; i++)
            cr_expect(jobs[i].lateness_ns >= DUE_S(LATE_S) &&
                          jobs[i].lateness_ns < DUE_S(2 * LATE_S),
                      "%d: %lld", way, (long long)jobs[i].lateness_ns);
        if (lease_ns > 0 && process == 0)
            cr_assert_eq(due_ack_batch(jobs, (size_t)rc, NULL), rc);
        else
            due_jobs_done(jobs, (size_t)rc);
        had += rc;
    }
}

/* In every way that a job can be had, on the kernel's clock. */
static void take_late(int64_t stores_ns, int n)
{
    static const due_retry thrice = { .kind = DUE_RETRY_FIXED, .attempts_max = 3 };
    const due_extra limited = { DUE_EXTRA_INIT, .retry = &thrice };
    const due_extra repeating = { DUE_EXTRA_INIT, .every_ns = DUE_S(86400) };
    due_clock *stores = due_clock_manual(stores_ns);
    struct mall m = mall_on(0, stores);
    int64_t now_ns = stores_ns;
    struct due_metrics figures;

    for (int i = 0; i < 2; i++)
        mall_join(
            &m, (struct lab_options){ .kernel = true, .with.metrics = 1, .with.prefetch_max = 16 });
    for (int way = 0; way < WAYS; way++) {
        const due_extra *more = way == LIMITED ? &limited : way == REPEATING ? &repeating : NULL;
        bool good = way == DEQUEUED || way == REPEATING;

        for (int i = 0; i < n; i++)
            lab_enqueue(&m.lab[0], "tea", .delay_ns = DUE_S(1), .more = more);
        turn_stores(&m, stores, &now_ns, DUE_S(LATE_S + 2));
        if (way == LAPSED) {
            have_late(&m, 1, n, DUE_S(LATE_S), way);
            mall_die(&m, 1);
            m.n--;
            turn_stores(&m, stores, &now_ns, DUE_S(2 * LATE_S + 2));
            m.n++;
        }
        have_late(&m, 0, n, good ? 0 : DUE_S(LATE_S), way);
    }
    cr_assert_eq(due_metrics_read(m.lab[0].q, &figures), 0);
    cr_expect_eq(figures.late.count, (uint64_t)n * WAYS, "%ju", (uintmax_t)figures.late.count);
    uint64_t each_ns = figures.late.sum_ns / ((uint64_t)n * WAYS);
    cr_expect(each_ns >= (uint64_t)DUE_S(LATE_S) && each_ns < (uint64_t)DUE_S(2 * LATE_S), "%ju",
              (uintmax_t)each_ns);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
}

/* By the store's clock, whatever the machine's is. */
Test(share_time, says_how_late_a_job_is, .timeout = 60)
{
    for (int n = 1; n <= 16; n += 15) {
        take_late(DUE_S(1000), n); /* long ago */
        take_late(DUE_S(86400) * 36525, n);
    }
}

/* As due_now() is, so that the time between them is how long to sleep. */
Test(share_time, of_the_next_deadline_is_the_stores, .timeout = 60)
{
    for (int64_t stores_ns = DUE_S(1000); stores_ns < DUE_FOREVER / 2;
         stores_ns += DUE_S(86400) * 36525) {
        due_clock *stores = due_clock_manual(stores_ns);
        struct mall m = mall_on(0, stores);
        due_job job;

        size_t i = mall_join(&m, (struct lab_options){ .kernel = true });
        due_queue *q = m.lab[i].q;
        cr_expect_eq(due_next_deadline(q), DUE_FOREVER);
        lab_enqueue(&m.lab[i], "tea", .delay_ns = 0);
        lab_enqueue(&m.lab[i], "cake", .delay_ns = 0);
        cr_assert_eq(due_clock_turn_to(stores, stores_ns + DUE_S(100)), 0);
        cr_assert_eq(mall_reserve(&m, i, &job, DUE_S(600)), 0);
        int64_t left_ns = due_next_deadline(q) - due_now(q); /* the end of the lease */
        cr_expect(left_ns > DUE_S(400) && left_ns <= DUE_S(601), "%lld", (long long)left_ns);
        cr_expect_eq(due_ack(&job), 0);
        mall_close(&m);
        cr_expect_eq(due_clock_free(stores), 0);
    }
}

Test(share_time, is_taken_for_that_of_the_wall_until_the_store_has_been_heard, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);
    due_store *store = memory_store_new(disk);
    due_options o = { DUE_OPTIONS_INIT, .store = store, .share = DUE_SHARED };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(3600) };
    struct timespec wall;
    due_record r;
    due_queue *q;
    due_id id;

    memory_store_fault(store, (struct memory_fault){ .verb = MEMORY_CENSUS,
                                                     .kind = MEMORY_ANSWER,
                                                     .answer = DUE_ESTORE });
    cr_assert_eq(due_open(&q, &o, NULL), 0);
    cr_assert_eq(due_enqueue(q, &spec, 0, &id), 0);
    cr_assert(memory_disk_find(disk, id, &r));
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t delay_s = r.until_ns / DUE_S(1) - wall.tv_sec;
    cr_expect(delay_s > 1800 && delay_s <= 3600, "%lld", (long long)delay_s);
    cr_expect_eq(due_close(q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_expect_eq(due_free(q), 0);
    memory_disk_free(disk);
}

static const struct due_shared_verbs *its_shared;
static atomic_int listened;

/* The first ring says that it was two hours later there. */
static int listen_ahead(due_store *s, struct due_heard *heard, int64_t until_ns)
{
    struct timespec wall;

    if (atomic_fetch_add(&listened, 1) != 0)
        return its_shared->listen(s, heard, until_ns);
    clock_gettime(CLOCK_REALTIME, &wall);
    heard->now_ns = DUE_S(wall.tv_sec + 7200) + wall.tv_nsec;
    return 1;
}

Test(share_time, that_a_ring_says_is_heard, .timeout = 60)
{
    struct timespec wall;
    int64_t ahead_ns = 0;

    clock_gettime(CLOCK_REALTIME, &wall);
    due_clock *stores = due_clock_manual(DUE_S(wall.tv_sec));
    struct mall m = mall_on(0, stores);
    due_store *any = memory_store_new(m.disk);
    struct due_store_verbs verbs = *any->verbs;
    struct due_shared_verbs shared = *verbs.shared;

    any->verbs->free(any);
    its_shared = verbs.shared;
    shared.listen = listen_ahead;
    verbs.shared = &shared;
    atomic_store(&listened, 0);
    size_t i = mall_join_by(&m, (struct lab_options){ .kernel = true }, &verbs);
    for (int n = 0; n < 20000 && ahead_ns < DUE_S(7000); n++) {
        due__proxy_call(m.lab[i].q);
        crew_sleep(DUE_MS(1));
        clock_gettime(CLOCK_REALTIME, &wall);
        ahead_ns = due__sharing_now(m.lab[i].q) - DUE_S(wall.tv_sec);
    }
    cr_expect(ahead_ns >= DUE_S(7000) && ahead_ns < DUE_S(7400), "%lld", (long long)ahead_ns);
    mall_close(&m);
    cr_expect_eq(due_clock_free(stores), 0);
}
