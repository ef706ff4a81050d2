/* Who of those who wait sleeps until the next job is due, who until the one behind it, and who is
 * disturbed when that changes.
 *
 * These tests look inside, as those of calls do: consumers are parked by hand on a clock of the
 * kernel, and nobody is asleep. (N2, N3 of waiter.c)
 */
#include "lab/lab.h"

#include "os/atomic.h"
#include "queue/queue.h"

enum { PARKED = 4 };

#define FIRST  DUE_S(1000) /* from the opening on: when jobs are due */
#define SECOND DUE_S(2000)
#define THIRD  DUE_S(3000)

struct sleepers {
    struct lab lab;
    due_queue *q;
    int64_t began_ns; /* on the queue's clock, */
    int64_t until_ns; /* and on that of timeouts */
    struct due__waiter *w[PARKED];
    size_t n;
    struct due__tenure t;
};

static struct sleepers sleepers_at(enum due_clock_kind clock)
{
    struct sleepers s = { .lab = lab_open(.kernel = true, .with.clock = clock,
                                          .with.proxies = DUE_PROXIES_NEVER) };

    s.q = s.lab.q;
    s.began_ns = due__clock_now(&s.q->clock);
    s.until_ns = clock == DUE_CLOCK_MONOTONIC ? s.began_ns : due__timeout_now(s.q);
    return s;
}

static struct sleepers sleepers_begin(void)
{
    return sleepers_at(DUE_CLOCK_MONOTONIC);
}

static due_id put(struct sleepers *s, int64_t at_ns)
{
    return lab_enqueue(&s->lab, "tea", .at_ns = s->began_ns + at_ns);
}

static struct due__waiter *park(struct sleepers *s, int64_t until_ns)
{
    struct due__waiter *w = due__waiter_get(s->q);

    cr_assert_not_null(w);
    s->w[s->n++] = w;
    w->topics = NULL;
    w->topic_count = 0;
    w->until_ns = until_ns == DUE_FOREVER ? DUE_FOREVER : s->until_ns + until_ns;
    due__enter(s->q, &s->t);
    due__park_job(s->q, &s->t, w);
    due__tenure_end(s->q, &s->t);
    return w;
}

/* When it wakes by itself, from the opening on. */
static int64_t wakes(const struct sleepers *s, const struct due__waiter *w)
{
    return w->wakes_ns == DUE_FOREVER ? DUE_FOREVER : w->wakes_ns - s->until_ns;
}

static int64_t armed(const struct sleepers *s)
{
    return s->q->armed == DUE__AWAKE || s->q->armed == DUE_FOREVER ? s->q->armed
                                                                   : s->q->armed - s->began_ns;
}

/* Under the lock, in a tenure that is not ended as long as the test looks at it. */
static void hold(struct sleepers *s)
{
    due__enter(s->q, &s->t);
}

static bool is_rung(const struct sleepers *s, const struct due__bell *bell)
{
    for (uint32_t i = 0; i < s->t.rings; i++)
        if (s->t.ring[i] == bell)
            return true;
    return false;
}

/* The leader comes, and goes with the lead passed on. */
static void lead_leaves(struct sleepers *s)
{
    struct due__waiter *w = s->q->lead;

    due__unpark_job(s->q, w);
    cr_expect_eq(s->q->armed, DUE__AWAKE);
    cr_expect_eq(s->q->lead, w, "until it has passed the lead on");
    due__pass_lead(s->q, &s->t);
}

static void sleepers_end(struct sleepers *s)
{
    for (size_t i = 0; i < s->n; i++) {
        due__enter(s->q, &s->t);
        due__unpark_job(s->q, s->w[i]);
        if (s->q->lead == s->w[i])
            due__pass_lead(s->q, &s->t);
        due__tenure_end(s->q, &s->t);
        due__waiter_put(s->q, s->w[i]);
    }
    cr_expect_null(s->q->lead);
    cr_expect_null(s->q->deputy);
    cr_expect_null(s->q->all);
    cr_expect_null(s->q->all_last);
    cr_expect_null(s->q->waiters.first);
    cr_expect_null(s->q->waiters.last);
    lab_close(&s->lab);
}

/* ---- Who sleeps until when ---- */

Test(waiter, that_came_first_sleeps_until_the_head_and_the_second_until_the_job_behind_it,
     .timeout = 10)
{
    struct sleepers s = sleepers_begin();

    put(&s, FIRST);
    put(&s, SECOND);
    put(&s, THIRD);
    struct due__waiter *lead = park(&s, DUE_FOREVER);
    struct due__waiter *deputy = park(&s, DUE_FOREVER);
    struct due__waiter *third = park(&s, DUE_S(500));
    struct due__waiter *fourth = park(&s, DUE_FOREVER);

    cr_expect_eq(s.q->lead, lead);
    cr_expect_eq(armed(&s), FIRST);
    cr_expect_eq(wakes(&s, lead), FIRST);
    cr_expect_eq(s.q->deputy, deputy);
    cr_expect_eq(wakes(&s, deputy), SECOND);
    cr_expect_eq(wakes(&s, third), DUE_S(500));
    cr_expect_eq(wakes(&s, fourth), DUE_FOREVER);
    sleepers_end(&s);
}

Test(waiter, sleeps_no_longer_than_it_is_to_wait, .timeout = 10)
{
    struct sleepers s = sleepers_begin();

    put(&s, FIRST);
    put(&s, SECOND);
    struct due__waiter *lead = park(&s, FIRST - 1);
    struct due__waiter *brief = park(&s, SECOND);
    struct due__waiter *deputy = park(&s, SECOND + 1);

    cr_expect_eq(armed(&s), FIRST, "the head is that all the same");
    cr_expect_eq(wakes(&s, lead), FIRST - 1);
    cr_expect_eq(wakes(&s, brief), SECOND);
    cr_expect_eq(s.q->deputy, deputy, "who wakes by then in any case is none");
    cr_expect_eq(wakes(&s, deputy), SECOND);
    sleepers_end(&s);
}

Test(waiter, of_an_empty_queue_sleeps_for_ever_and_nobody_is_second, .timeout = 10)
{
    struct sleepers s = sleepers_begin();
    struct due__waiter *lead = park(&s, DUE_FOREVER);
    struct due__waiter *other = park(&s, DUE_FOREVER);

    cr_expect_eq(s.q->lead, lead);
    cr_expect_eq(armed(&s), DUE_FOREVER);
    cr_expect_eq(wakes(&s, lead), DUE_FOREVER);
    cr_expect_null(s.q->deputy);
    cr_expect_eq(wakes(&s, other), DUE_FOREVER);
    sleepers_end(&s);
}

Test(waiter, sleeps_for_no_job_that_was_cancelled, .timeout = 10)
{
    struct sleepers s = sleepers_begin();
    due_id first = put(&s, FIRST);

    put(&s, SECOND);
    due_id third = put(&s, THIRD);
    put(&s, THIRD + 1);
    due_poll(s.q, NULL);
    cr_assert_eq(due_cancel(s.q, first, NULL), 0);
    cr_assert_eq(due_cancel(s.q, third, NULL), 0);
    park(&s, DUE_FOREVER);
    cr_expect_eq(armed(&s), SECOND);
    struct due__waiter *other = park(&s, DUE_FOREVER);
    cr_expect_null(s.q->deputy, "a guess, which is not made of a dead one");
    cr_expect_eq(wakes(&s, other), DUE_FOREVER);
    sleepers_end(&s);
}

/* No more dead heads than a number are dropped in one tenure; the head may be too early then. */
Test(waiter, looks_behind_64_jobs_that_were_cancelled, .timeout = 10)
{
    enum { DEAD = DUE__MOVES_MAX + 6 };
    struct sleepers s = sleepers_begin();
    due_id ids[DEAD];

    for (int i = 0; i < DEAD; i++)
        ids[i] = put(&s, FIRST + i);
    put(&s, SECOND);
    due_poll(s.q, NULL);
    for (int i = 0; i < DEAD; i++)
        cr_assert_eq(due_cancel(s.q, ids[i], NULL), 0);
    park(&s, DUE_FOREVER);
    cr_expect_eq(armed(&s), FIRST + DUE__MOVES_MAX);
    cr_expect_eq(due__timeline_count(&s.q->timeline), DEAD + 1 - DUE__MOVES_MAX);
    sleepers_end(&s);
}

/* On a clock that may jump one sleeps on the queue's alarm, for all. */
Test(waiter, that_leads_on_a_clock_that_jumps_sleeps_on_the_alarm, .timeout = 10)
{
    static const enum due_clock_kind kinds[] = { DUE_CLOCK_BOOTTIME, DUE_CLOCK_REALTIME };

    for (size_t i = 0; i < 2; i++) {
        struct sleepers s = sleepers_at(kinds[i]);

        put(&s, FIRST);
        put(&s, SECOND);
        struct due__waiter *lead = park(&s, DUE_FOREVER);
        struct due__waiter *other = park(&s, DUE_FOREVER);

        cr_expect_eq(armed(&s), FIRST);
        cr_expect(lead->on_alarm);
        cr_expect_eq(due__lead_bell(s.q), &s.q->alarm);
        cr_expect_not(other->on_alarm);
        cr_expect_null(s.q->deputy, "there is one alarm");
        cr_expect_eq(wakes(&s, other), DUE_FOREVER);
        hold(&s);
        lead_leaves(&s);
        cr_expect_not(lead->on_alarm);
        cr_expect_eq(s.q->lead, other);
        cr_expect_eq(s.q->armed, DUE__AWAKE);
        cr_expect(is_rung(&s, &other->bell), "it does not know of the head");
        cr_expect_eq(due__lead_bell(s.q), &other->bell);
        due__tenure_end(s.q, &s.t);
        sleepers_end(&s);
    }
}

static void expect_nobody_leads(struct sleepers *s)
{
    put(s, FIRST);
    put(s, SECOND);
    struct due__waiter *one = park(s, DUE_FOREVER);
    struct due__waiter *two = park(s, DUE_S(1));

    cr_expect_null(s->q->lead);
    cr_expect_null(s->q->deputy);
    cr_expect_eq(one->wakes_ns, DUE_FOREVER);
    cr_expect_eq(two->wakes_ns, s->until_ns + DUE_S(1));
    sleepers_end(s);
}

/* Whoever turns that clock rings. */
Test(waiter, leads_on_no_clock_that_is_turned_by_hand, .timeout = 10)
{
    struct sleepers s = { .lab = lab_open(.start_ns = 7, .with.proxies = DUE_PROXIES_NEVER) };

    s.q = s.lab.q;
    s.began_ns = s.until_ns = 7;
    expect_nobody_leads(&s);
}

/* ---- Who is disturbed ---- */

Test(waiter, that_leads_rings_nobody_who_sleeps_until_the_job_behind_the_one_that_left,
     .timeout = 10)
{
    struct sleepers s = sleepers_begin();
    due_id head = put(&s, FIRST);

    put(&s, SECOND);
    park(&s, DUE_FOREVER);
    struct due__waiter *deputy = park(&s, DUE_FOREVER);
    struct due__waiter *third = park(&s, DUE_FOREVER);
    cr_assert_eq(s.q->deputy, deputy);
    cr_assert_eq(due_cancel(s.q, head, NULL), 0);
    hold(&s);
    lead_leaves(&s);
    cr_expect_eq(s.q->lead, deputy);
    cr_expect_eq(armed(&s), SECOND);
    cr_expect_null(s.q->deputy);
    cr_expect_eq(s.t.rings, 0u);
    lead_leaves(&s);
    cr_expect_eq(s.q->lead, third, "who is first in line");
    cr_expect_eq(s.q->armed, DUE__AWAKE);
    cr_expect_eq(s.t.rings, 1u);
    cr_expect(is_rung(&s, &third->bell), "it sleeps for ever");
    due__tenure_end(s.q, &s.t);
    sleepers_end(&s);
}

Test(waiter, that_leads_rings_who_would_come_too_late, .timeout = 10)
{
    for (int with_deputy = 0; with_deputy < 2; with_deputy++) {
        struct sleepers s = sleepers_begin();

        put(&s, FIRST);
        if (with_deputy)
            put(&s, SECOND);
        park(&s, DUE_FOREVER);
        struct due__waiter *other = park(&s, FIRST + 1);
        struct due__waiter *next = park(&s, DUE_FOREVER);
        if (!with_deputy)
            next = other;
        cr_assert_eq(s.q->deputy, with_deputy ? next : NULL);
        hold(&s);
        lead_leaves(&s);
        cr_expect_eq(s.q->lead, next);
        cr_expect_eq(s.q->armed, DUE__AWAKE, "it is on its way");
        cr_expect_eq(s.t.rings, 1u);
        cr_expect(is_rung(&s, &next->bell));
        due__tenure_end(s.q, &s.t);
        sleepers_end(&s);
    }
}

Test(waiter, that_leads_rings_nobody_who_gives_up_before_the_head_is_due, .timeout = 10)
{
    for (int64_t late = -1; late <= 1; late++) {
        struct sleepers s = sleepers_begin();

        put(&s, FIRST);
        park(&s, DUE_FOREVER);
        struct due__waiter *next = park(&s, FIRST + late);
        hold(&s);
        lead_leaves(&s);
        cr_expect_eq(s.q->lead, next);
        cr_expect_eq(s.t.rings, late > 0, "%jd", (intmax_t)late);
        cr_expect_eq(s.q->armed, late > 0 ? DUE__AWAKE : next->until_ns);
        due__tenure_end(s.q, &s.t);
        sleepers_end(&s);
    }
}

Test(waiter, that_is_the_last_leaves_the_lead_to_nobody, .timeout = 10)
{
    struct sleepers s = sleepers_begin();

    put(&s, FIRST);
    park(&s, DUE_FOREVER);
    hold(&s);
    lead_leaves(&s);
    cr_expect_null(s.q->lead);
    cr_expect_eq(s.q->armed, DUE__AWAKE);
    cr_expect_eq(s.t.rings, 0u);
    due__tenure_end(s.q, &s.t);
    sleepers_end(&s);
}

/* Who is second and gives up leaves that place to nobody until somebody parks. */
Test(waiter, that_comes_next_is_second_when_who_was_has_left, .timeout = 10)
{
    struct sleepers s = sleepers_begin();

    put(&s, FIRST);
    put(&s, SECOND);
    park(&s, DUE_FOREVER);
    struct due__waiter *deputy = park(&s, DUE_FOREVER);
    struct due__waiter *third = park(&s, DUE_FOREVER);
    hold(&s);
    due__unpark_job(s.q, third);
    cr_expect_eq(s.q->deputy, deputy, "another has left");
    due__unpark_job(s.q, deputy);
    cr_expect_null(s.q->deputy);
    due__tenure_end(s.q, &s.t);
    struct due__waiter *next = park(&s, DUE_FOREVER);
    cr_expect_eq(s.q->deputy, next);
    cr_expect_eq(wakes(&s, next), SECOND);
    sleepers_end(&s);
}

/* ---- Called for a job ---- */

/* The leader is called for a job of the first topic. */
static uint32_t called_leader(struct sleepers *s)
{
    struct due__waiter *lead = s->q->lead;

    lab_enqueue(&s->lab, "jam", .delay_ns = 0);
    cr_expect_not(lead->linked);
    return due__load_acquire(&lead->called);
}

Test(waiter, that_is_called_leaves_the_lead_to_nobody_if_it_is_alone, .timeout = 10)
{
    struct sleepers s = sleepers_begin();

    put(&s, FIRST);
    park(&s, DUE_FOREVER);
    cr_expect_eq(called_leader(&s), 1u, "topic 0, and no more");
    cr_expect_null(s.q->lead);
    cr_expect_eq(s.q->armed, DUE__AWAKE);
    sleepers_end(&s);
}

Test(waiter, that_is_called_leaves_the_lead_to_who_need_not_be_rung, .timeout = 10)
{
    struct sleepers s = sleepers_begin();

    put(&s, FIRST);
    park(&s, DUE_FOREVER);
    struct due__waiter *next = park(&s, DUE_S(500));
    cr_expect_eq(called_leader(&s), 1u);
    cr_expect_eq(s.q->lead, next);
    cr_expect_eq(s.q->armed, next->until_ns);
    cr_expect_not(due__bell_take(&next->bell));
    sleepers_end(&s);
}

Test(waiter, that_is_called_passes_the_lead_on_if_the_next_would_come_too_late, .timeout = 10)
{
    struct sleepers s = sleepers_begin();

    put(&s, FIRST);
    put(&s, SECOND);
    struct due__waiter *lead = park(&s, DUE_FOREVER);
    struct due__waiter *next = park(&s, DUE_FOREVER);
    cr_expect_eq(called_leader(&s), 1u | DUE__CALLED_LEAD);
    cr_expect_eq(s.q->lead, lead);
    cr_expect_eq(s.q->armed, DUE__AWAKE);
    cr_expect_eq(s.q->deputy, next);
    cr_expect(due__bell_take(&lead->bell));
    cr_expect_not(due__bell_take(&next->bell));
    sleepers_end(&s);
}

/* As on the alarm in any case: it is set to the head. */
Test(waiter, that_is_called_from_the_alarm_passes_the_lead_on, .timeout = 10)
{
    struct sleepers s = sleepers_at(DUE_CLOCK_BOOTTIME);

    put(&s, FIRST);
    struct due__waiter *lead = park(&s, DUE_FOREVER);
    cr_expect_eq(called_leader(&s), 1u | DUE__CALLED_LEAD);
    cr_expect_eq(s.q->lead, lead);
    cr_expect_eq(s.q->armed, DUE__AWAKE);
    cr_expect(due__bell_take(&s.q->alarm));
    cr_expect_not(due__bell_take(&lead->bell));
    sleepers_end(&s);
}

/* ---- How it sleeps ---- */

/* The clock as it was read at last, or 0: of a sleep that is to end so soon, or when it is rung. */
static int64_t slept(struct sleepers *s, int64_t for_ns, bool timed, bool rung)
{
    struct due__waiter *w = due__waiter_get(s->q);
    int64_t at = due__monotonic_now() + for_ns;

    cr_assert_not_null(w);
    (void)due__bell_take(&w->bell);
    if (rung)
        due__bell_ring(&w->bell);
    int64_t now = due__sleep(s->q, w, true, at, timed ? at + DUE_S(100) : at);
    cr_expect(now == 0 || now >= at, "it comes too early");
    due__waiter_put(s->q, w);
    return now;
}

Test(waiter, spins_if_that_was_said_until_a_job_is_due_or_it_is_rung, .timeout = 10)
{
    for (int spins = 0; spins < 2; spins++) {
        struct sleepers s = { .lab = lab_open(.kernel = true, .with.proxies = DUE_PROXIES_NEVER,
                                              .with.spin_ns = spins ? DUE_S(1000) : 0) };

        s.q = s.lab.q;
        cr_expect_eq(slept(&s, DUE_MS(2), true, false) != 0, spins);
        cr_expect_eq(slept(&s, DUE_MS(2), false, false), 0, "no job is due by then");
        cr_expect_eq(slept(&s, DUE_S(600), true, true), 0, "it was rung");
        lab_close(&s.lab);
    }
}

/* ---- Who takes what ---- */

Test(waiter, of_a_topic_is_the_first_that_came_of_those_who_take_it, .timeout = 10)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    const int one = lab_topic(&lab, "one");
    const int two = lab_topic(&lab, "two");
    const int both[] = { one, two };
    const int none = lab_topic(&lab, "none");
    const struct {
        const int *topics;
        size_t n;
    } wants[] = { { &none, 1 }, { both, 2 }, { &two, 1 }, { NULL, 0 }, { &one, 1 } };
    enum { WANTS = sizeof wants / sizeof wants[0] };
    struct due__waiter *w[WANTS];
    struct due__tenure t;

    for (size_t i = 0; i < WANTS; i++)
        cr_assert_not_null(w[i] = due__waiter_get(lab.q));
    due__enter(lab.q, &t);
    for (size_t i = 0; i < WANTS; i++) {
        w[i]->topics = wants[i].topics;
        w[i]->topic_count = wants[i].n;
        w[i]->until_ns = DUE_FOREVER;
        due__park_job(lab.q, &t, w[i]);
    }
    static const size_t order[] = { 1, 2, 3, 4, 0 };
    static const int first_of[WANTS][4] = { /* nothing, one, two, none */
                                            { 3, 1, 1, 0 },
                                            { 3, 3, 2, 0 },
                                            { 3, 3, 3, 0 },
                                            { -1, 4, -1, 0 },
                                            { -1, -1, -1, 0 }
    };
    for (size_t i = 0; i < WANTS; i++) {
        for (int topic = 0; topic < 4; topic++) {
            int which = first_of[i][topic];

            cr_expect_eq(due__waiter_for(lab.q, due__topic_at(lab.q, (uint32_t)topic)),
                         which < 0 ? NULL : w[which], "%zu have left, topic %d", i, topic);
        }
        due__unpark_job(lab.q, w[order[i]]);
    }
    due__tenure_end(lab.q, &t);
    for (size_t i = 0; i < WANTS; i++)
        due__waiter_put(lab.q, w[i]);
    lab_close(&lab);
}

/* What lies in lines for those who are parked: what one comes for is not for others. */
Test(waiter, finds_all_that_lies_but_what_others_come_for_and_what_is_paused, .timeout = 10)
{
    struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    const int one = lab_topic(&lab, "one");
    struct due__topic *t0 = due__topic_at(lab.q, 0);
    struct due__topic *t1 = due__topic_at(lab.q, (uint32_t)one);
    struct due__waiter *w = due__waiter_get(lab.q);
    struct due__tenure t;

    cr_assert_not_null(w);
    for (int i = 0; i < 3; i++)
        lab_enqueue(&lab, "tea", .delay_ns = 0);
    lab_enqueue(&lab, "jam", .delay_ns = 0, .topic = one);
    cr_assert_eq(due_poll(lab.q, NULL), 4);
    due__enter(lab.q, &t);
    cr_expect_eq(due__lies_for_parked(lab.q), 0u, "nobody waits");
    w->topics = NULL;
    w->topic_count = 0;
    w->until_ns = DUE_FOREVER;
    due__park_job(lab.q, &t, w);
    cr_expect_eq(due__lies_for_parked(lab.q), 4u);
    due__store_relaxed(&t0->under_way, DUE__UNDER_WAY);
    cr_expect_eq(due__lies_for_parked(lab.q), 3u);
    due__store_relaxed(&t1->under_way, DUE__AWAITED);
    cr_expect_eq(due__lies_for_parked(lab.q), 2u);
    t0->paused = true;
    cr_expect_eq(due__lies_for_parked(lab.q), 0u);
    t0->paused = false;
    due__store_relaxed(&t0->under_way, DUE__NOBODY);
    due__store_relaxed(&t1->under_way, DUE__NOBODY);
    due__unpark_job(lab.q, w);
    w->topics = &one;
    w->topic_count = 1;
    due__park_job(lab.q, &t, w);
    cr_expect_eq(due__lies_for_parked(lab.q), 1u, "of the other topic nobody waits");
    due__tenure_end(lab.q, &t);
    cr_expect_str_eq(lab_dequeue_from(&lab, one), "jam");
    due__enter(lab.q, &t);
    due__topic_list(lab.q, t1);
    due__store_relaxed(&t1->under_way, DUE__UNDER_WAY);
    cr_expect_eq(due__lies_for_parked(lab.q), 0u, "somebody else has taken what he comes for");
    due__store_relaxed(&t1->under_way, DUE__NOBODY);
    if (w->linked)
        due__unpark_job(lab.q, w);
    due__tenure_end(lab.q, &t);
    due__waiter_put(lab.q, w);
    lab_close(&lab);
}
