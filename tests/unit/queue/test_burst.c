/* Many jobs that are due at once: whose turn it is, what stands first, what is peeked.  On every
 * clock, in each of the proxies' modes, with and without a store. */
#include <stdio.h>
#include <stdlib.h>

#include "due/workers.h"
#include "lab/shop.h"
#include "lab/take.h"

enum { CLOCKS = 4, KINDS = CLOCKS + 2, AT_ONCE = 250 };

/* One queue of each kind; their jobs are due at DUE, long ago on any clock but those of the
 * kernel that have just begun. */
#define DUE 1000

struct kind {
    struct shop shop;
    due_queue *q;
    char name[40];
    int64_t none_ns; /* a timeout that waits for no job; a store is waited for */
};

/* Kind @n of those that there are in this mode: KINDS, or CLOCKS of them without a store. */
static int kinds(void)
{
    return lab_proxies == DUE_PROXIES_NEVER ? CLOCKS : KINDS;
}

static struct kind kind_open(int n, enum due_order order)
{
    static const enum due_clock_kind clocks[CLOCKS] = { DUE_CLOCK_MONOTONIC, DUE_CLOCK_MONOTONIC,
                                                        DUE_CLOCK_REALTIME, DUE_CLOCK_BOOTTIME };
    static const char *const names[CLOCKS] = { "by hand", "monotonic", "realtime", "boottime" };
    int at = n == CLOCKS ? 0 : n > CLOCKS ? 2 : n; /* a store has the wall clock */
    bool stored = n >= CLOCKS;
    struct kind k = { .none_ns = stored ? DUE_S(30) : 0 };
    struct lab_options with = { .kernel = at > 0,
                                .start_ns = DUE_S(1),
                                .with = { DUE_OPTIONS_INIT, .clock = clocks[at], .order = order,
                                          .confirm = DUE_CONFIRM_ASYNC } };

    snprintf(k.name, sizeof k.name, "%s, %s, %s", names[at], stored ? "stored" : "no store",
             lab_proxies >= 0 ? crew_mode_names[lab_proxies] : "as it is");
    if (!stored)
        with.with.confirm = DUE_CONFIRM_SYNC;
    if (stored)
        k.shop = shop_new(NULL, with);
    else
        k.shop.lab = lab_open_with(&with);
    k.q = k.shop.lab.q;
    return k;
}

static void kind_close(struct kind *k)
{
    if (k->shop.disk != NULL)
        shop_close(&k->shop);
    else
        lab_close(&k->shop.lab);
}

/* @n jobs like @like, or one after another with priorities from 0 to @priorities - 1. */
static void kind_fill(struct kind *k, int n, due_spec like, int priorities)
{
    due_spec specs[AT_ONCE];

    for (int i = 0; i < n;) {
        int some = n - i < AT_ONCE ? n - i : AT_ONCE;

        for (int j = 0; j < some; j++) {
            specs[j] = like;
            if (priorities > 0) { /* the later ones are as likely the higher */
                specs[j].priority = (i + j) * 73 % priorities;
                specs[j].at_ns += i + j;
            }
        }
        int rc = due_enqueue_batch(k->q, specs, (size_t)some, DUE_S(10), NULL);
        cr_assert_gt(rc, 0, "%s: %s", k->name, due_error_name(rc));
        i += rc;
    }
    if (k->shop.disk != NULL)
        cr_assert_eq(due_flush(k->q, DUE_S(30)), 0);
}

#define SPEC(...) ((due_spec){ DUE_SPEC_INIT, __VA_ARGS__ })

/* ---- Ways to take ---- */

enum way { DEQUEUE, DEQUEUE_WAITING, DEQUEUE_FROM, DEQUEUE_BATCH, RESERVE, RESERVE_BATCH, WAYS };

#define TAKEN_MAX 4

/* One or more jobs of the two topics, done with: of which topic each was; how many. */
static int take(struct kind *k, enum way way, const int topics[2], int of[TAKEN_MAX])
{
    due_job jobs[TAKEN_MAX];
    int rc = 0;

    switch (way) {
    case DEQUEUE:
        rc = due_dequeue(k->q, jobs, k->none_ns);
        break;
    case DEQUEUE_WAITING:
        rc = due_dequeue(k->q, jobs, DUE_S(30));
        break;
    case DEQUEUE_FROM:
        rc = take_from(k->q, topics, 2, jobs, k->none_ns);
        break;
    case DEQUEUE_BATCH:
        rc = take_some(k->q, NULL, 0, jobs, TAKEN_MAX, k->none_ns);
        break;
    case RESERVE:
        rc = take_leased(k->q, jobs, DUE_S(60), k->none_ns);
        break;
    default:
        rc = take_leased_some(k->q, NULL, 0, jobs, TAKEN_MAX, DUE_S(60), k->none_ns);
    }
    cr_assert_geq(rc, 0, "%s: way %d: %s", k->name, way, due_error_name(rc));
    int n = rc == 0 ? 1 : rc;
    for (int i = 0; i < n; i++) {
        of[i] = jobs[i].topic;
        cr_assert_leq(jobs[i].deadline_ns, due_now(k->q));
        if (way == RESERVE || way == RESERVE_BATCH)
            cr_assert_eq(due_ack(&jobs[i]), 0);
        else
            due_job_done(&jobs[i]);
    }
    return n;
}

/* ---- Topics ---- */

/* Among the first few that come is the quiet topic's job. */
static void quiet_comes(struct kind *k, enum way way, const int topics[2], int jobs)
{
    int of[TAKEN_MAX];
    int at = 0;

    for (bool seen = false; !seen; at++) {
        int n = take(k, way, topics, of);

        for (int i = 0; i < n; i++)
            seen = seen || of[i] == topics[1];
        cr_assert(seen || at < 1, "%s, way %d: of %d a job of another topic is not among the first",
                  k->name, way, jobs);
    }
}

LAB_TEST(burst, of_one_topic_leaves_another_its_turn)
{
    static const int sizes[] = { 10, 1024, 10000 };

    for (int i = 0; i < kinds() * 3; i++) {
        if (sizes[i % 3] == 10000 && i / 3 >= CLOCKS)
            continue;
        for (int way = 0; way < WAYS; way++) {
            struct kind k = kind_open(i / 3, DUE_ORDER_DEADLINE);
            int topics[] = { lab_topic(&k.shop.lab, "flooded"), lab_topic(&k.shop.lab, "quiet") };

            kind_fill(&k, sizes[i % 3], SPEC(.at_ns = DUE, .topic = topics[0]), 0);
            kind_fill(&k, 1, SPEC(.at_ns = DUE + 1, .topic = topics[1]), 0);
            quiet_comes(&k, (enum way)way, topics, sizes[i % 3]);
            kind_close(&k);
        }
    }
}

/* What comes due while a burst is worked off has its turn then, though many of the burst are ready
 * to be taken. */
LAB_TEST(burst, leaves_their_turn_to_those_who_come_later)
{
    for (int i = 0; i < kinds(); i++) {
        struct kind k = kind_open(i, DUE_ORDER_DEADLINE);
        int topics[] = { lab_topic(&k.shop.lab, "flooded"), lab_topic(&k.shop.lab, "quiet") };
        int of[TAKEN_MAX];

        kind_fill(&k, 1024, SPEC(.at_ns = DUE, .topic = topics[0]), 0);
        take(&k, DEQUEUE, topics, of);
        take(&k, DEQUEUE, topics, of);
        for (int later = 0; later < 3; later++) {
            int64_t at = due_now(k.q) + DUE_MS(2);

            kind_fill(&k, 1, SPEC(.at_ns = at, .topic = topics[1]), 0);
            if (k.shop.lab.clock != NULL)
                lab_turn_to(&k.shop.lab, at);
            while (due_now(k.q) < at)
                crew_sleep(at - due_now(k.q));
            quiet_comes(&k, DEQUEUE, topics, 1024);
        }
        kind_close(&k);
    }
}

LAB_TEST(burst, of_several_topics_is_taken_by_turns)
{
    enum { TOPICS = 5, EACH = 200 };

    for (int i = 0; i < kinds(); i++) {
        struct kind k = kind_open(i, DUE_ORDER_DEADLINE);
        int topics[TOPICS];
        int taken[TOPICS + 1] = { 0 };
        int of[TAKEN_MAX];

        for (int t = 0; t < TOPICS; t++) {
            topics[t] = lab_topic(&k.shop.lab, (char[]){ (char)('a' + t), '\0' });
            kind_fill(&k, EACH, SPEC(.at_ns = DUE + t, .topic = topics[t]), 0);
        }
        for (int n = 0; n < TOPICS * EACH; n++) {
            take(&k, i % 2 ? DEQUEUE_WAITING : DEQUEUE, topics, of);
            taken[of[0]]++;
            for (int t = 0; t < TOPICS; t++)
                cr_assert_leq(abs(taken[topics[t]] - (n + 1) / TOPICS), 1,
                              "%s: after %d topic %d had %d", k.name, n + 1, t, taken[topics[t]]);
        }
        kind_close(&k);
    }
}

/* ---- Order ---- */

LAB_TEST(burst, by_priority_leaves_from_the_highest_on)
{
    static const int sizes[] = { 10, 1024, 10000 };

    for (int i = 0; i < kinds() * 3; i++) {
        int size = sizes[i % 3];
        struct kind k = kind_open(i / 3, DUE_ORDER_PRIORITY);
        int before = 255;
        bool looks = true; /* before the take */
        due_info info;
        due_job job;

        if (size < 10000 || i / 3 < CLOCKS)
            kind_fill(&k, size, SPEC(.at_ns = DUE), 256);
        else
            size = 0;
        for (int n = 0; n < size && n < 300; n++) {
            looks = n >= size / 2 || n >= 250;
            if (looks)
                cr_assert_eq(due_peek(k.q, &info), 0);
            cr_assert_eq(due_dequeue(k.q, &job, n % 2 ? DUE_S(30) : k.none_ns), 0);
            cr_assert_leq(job.priority, before, "%s: %d of %d", k.name, n, size);
            cr_assert(!looks || due_id_equal(info.id, job.id), "%s: peeked otherwise", k.name);
            before = job.priority;
            due_job_done(&job);
        }
        kind_close(&k);
    }
}

/* A job that comes in with the deadline of some that are being handed out stands among them by its
 * priority, however many have left. */
LAB_TEST(burst, of_equal_deadlines_lets_a_higher_priority_pass)
{
    static const int after[] = { 0, 1, 2, 63, 64, 65, 200 };

    for (int i = 0; i < kinds(); i++) {
        struct kind k = kind_open(i, DUE_ORDER_DEADLINE);
        int taken = 0;
        due_job job;

        kind_fill(&k, 1024, SPEC(.at_ns = DUE, .priority = 3), 0);
        kind_fill(&k, 1, SPEC(.delay_ns = 0), 0); /* some of the others become ready with it */
        for (size_t at = 0; at < sizeof after / sizeof after[0]; at++) {
            for (; taken < after[at]; taken++) {
                cr_assert_eq(due_dequeue(k.q, &job, k.none_ns), 0);
                cr_assert_eq(job.priority, 3, "%s: %d", k.name, taken);
                due_job_done(&job);
            }
            kind_fill(&k, 1, SPEC(.at_ns = DUE, .priority = 2), 0);
            kind_fill(&k, 1, SPEC(.at_ns = DUE, .priority = 9), 0);
            cr_assert_eq(due_dequeue(k.q, &job, k.none_ns), 0);
            cr_expect_eq(job.priority, 9, "%s: after %d of equal deadlines", k.name, taken);
            due_job_done(&job);
        }
        kind_close(&k);
    }
}

/* One waits for a burst that is due in @lead_ns, the highest priority last.  False: on this machine
 * some were due before all were in, and the answer says nothing. */
static bool gets_the_highest(int n, int64_t lead_ns)
{
    struct kind k = kind_open(n, DUE_ORDER_PRIORITY);
    int64_t at = due_now(k.q) + lead_ns;
    struct crew_call call;

    crew_call_dequeue(&call, k.q, DUE_S(30));
    crew_call_asleep(&call);
    kind_fill(&k, 1023, SPEC(.at_ns = at, .priority = 1), 0);
    kind_fill(&k, 1, SPEC(.at_ns = at + 1, .priority = 9), 0);
    bool in_time = due_now(k.q) < at;
    if (k.shop.lab.clock != NULL)
        lab_turn_to(&k.shop.lab, at + 1);
    cr_assert_eq(crew_call_answer(&call), 0);
    if (in_time)
        cr_expect_eq(call.job.priority, 9, "%s", k.name);
    due_job_done(&call.job);
    kind_close(&k);
    return in_time;
}

/* Who waited for the burst gets what stands first in all of it. */
LAB_TEST(burst, by_priority_gives_who_waited_the_highest)
{
    for (int i = 0; i < kinds(); i++) {
        int64_t lead = DUE_MS(30);

        while (!gets_the_highest(i, lead))
            lead *= 2;
    }
    for (int i = 0; i < 20; i++) /* a clock is turned while more or less is left in the inbox */
        gets_the_highest(0, 1);
}

struct batch {
    due_queue *q;
    due_job jobs[TAKEN_MAX];
};

static int take_batch(void *arg)
{
    struct batch *b = arg;

    return take_some(b->q, NULL, 0, b->jobs, TAKEN_MAX, DUE_S(30));
}

LAB_TEST(burst, of_two_topics_is_had_of_both_by_who_waited)
{
    for (int i = 0; i < kinds(); i++) {
        struct kind k = kind_open(i, DUE_ORDER_DEADLINE);
        int topics[] = { lab_topic(&k.shop.lab, "a"), lab_topic(&k.shop.lab, "b") };
        struct batch b = { .q = k.q };
        int of[2] = { 0, 0 };
        due_spec specs[16];
        struct crew_thread thread;

        for (int n = 0; n < 16; n++)
            specs[n] = SPEC(.topic = topics[n / 8]);
        crew_go(&thread, take_batch, &b);
        crew_until_asleep(&thread);
        cr_assert_eq(due_enqueue_batch(k.q, specs, 16, DUE_S(10), NULL), 16);
        int n = crew_join(&thread);
        cr_assert_geq(n, 1);
        for (int j = 0; j < n; j++) {
            of[b.jobs[j].topic == topics[1]]++;
            due_job_done(&b.jobs[j]);
        }
        cr_expect_leq(abs(of[0] - of[1]), 1, "%s: %d and %d", k.name, of[0], of[1]);
        kind_close(&k);
    }
}

/* ---- Pools ---- */

struct order {
    atomic_int begun;
    atomic_int quiet_at; /* how many had begun before the quiet topic's; -1: not yet */
    int quiet;
};

static void slowly(void *ctx, const due_job *job, due_answer *answer)
{
    struct order *o = ctx;
    int at = atomic_fetch_add(&o->begun, 1);

    if (job->topic == o->quiet)
        atomic_store(&o->quiet_at, at);
    else
        crew_sleep(DUE_MS(1));
    *answer = due_answer_ack();
}

LAB_TEST(burst, leaves_another_topic_its_turn_with_slow_handlers)
{
    for (int i = 0; i < 2 * kinds(); i++) {
        struct kind k = kind_open(i / 2, DUE_ORDER_DEADLINE);
        size_t threads = i % 2 ? 1 : 3;
        struct order o = { .quiet = lab_topic(&k.shop.lab, "quiet"), .quiet_at = -1 };
        due_workers *pool;

        kind_fill(&k, 1024, SPEC(.at_ns = DUE), 0);
        kind_fill(&k, 1, SPEC(.at_ns = DUE + 1, .topic = o.quiet), 0);
        int rc = due_workers_start(&pool, k.q, NULL, 0, threads, slowly, &o, NULL);
        cr_assert_eq(rc, 0, "%s", due_error_name(rc));
        while (atomic_load(&o.quiet_at) < 0)
            crew_sleep(DUE_US(100));
        cr_expect_leq(atomic_load(&o.quiet_at), 6, "%s: after %d", k.name,
                      atomic_load(&o.quiet_at));
        cr_assert_eq(due_workers_stop(pool, DUE_FOREVER), 0);
        cr_assert_eq(due_workers_free(pool), 0);
        kind_close(&k);
    }
}
