/* Who of those who wait is rung, and nobody else: of more than one tenure can ring.
 *
 * They are parked by hand: nobody is asleep, and each bell tells whether it was rung. */
#include "lab/lab.h"
#include "lab/watch.h"

#include "os/atomic.h"
#include "queue/capacity.h"
#include "queue/closing.h"
#include "queue/queue.h"
#include "queue/timed_wait.h"

enum { MANY = 2 * DUE__RINGS + 5 };

static const uint32_t stops[2]; /* of two pools: their address is the quit of who waits */

static struct lab quiet_lab(void)
{
    struct lab lab =
        lab_open(.start_ns = 1, .with.proxies = DUE_PROXIES_NEVER, .with.capacity = 1000);

    watch_end(lab.q); /* what a lock guards is changed here */
    return lab;
}

static struct due__waiter *waiter(struct lab *lab, int64_t until_ns)
{
    struct due__waiter *w = due__waiter_get(lab->q);

    cr_assert_not_null(w);
    (void)due__bell_take(&w->bell);
    w->topics = NULL;
    w->topic_count = 0;
    w->until_ns = until_ns;
    return w;
}

static void want_job(struct lab *lab, struct due__waiter *w)
{
    struct due__tenure t;

    due__enter(lab->q, &t);
    due__park_job(lab->q, &t, w);
    due__tenure_end(lab->q, &t);
}

static void want_room(struct lab *lab, struct due__waiter *w)
{
    w->timed_out = false;
    w->linked = true;
    due__waiters_add(&lab->q->capacity_line, w);
}

static void want_time(struct lab *lab, struct due__waiter *w, const uint32_t *quit)
{
    w->quit = quit;
    due__timed_wait_link(lab->q, w, w->until_ns);
}

/* What waits for a job, for room, for a time; the test knows who does. */
enum want { JOB, ROOM, TIME, WANTS };

struct crowd {
    struct lab lab;
    struct due__waiter *w[WANTS][MANY];
};

/* @until: of the i-th, in whatever line; @quit likewise. */
static struct crowd crowd_of(int64_t (*until)(int i), const uint32_t *(*quit)(int i))
{
    struct crowd c = { .lab = quiet_lab() };

    for (int i = 0; i < MANY; i++) {
        for (int k = 0; k < WANTS; k++)
            c.w[k][i] = waiter(&c.lab, until(i));
        c.w[JOB][i]->quit = quit(i);
        want_job(&c.lab, c.w[JOB][i]);
        want_room(&c.lab, c.w[ROOM][i]);
        want_time(&c.lab, c.w[TIME][i], quit(i));
    }
    return c;
}

static void crowd_go(struct crowd *c)
{
    struct due__tenure t;

    for (int i = 0; i < MANY; i++) {
        due__enter(c->lab.q, &t);
        due__unpark_job(c->lab.q, c->w[JOB][i]);
        if (c->w[ROOM][i]->linked)
            due__waiters_remove(&c->lab.q->capacity_line, c->w[ROOM][i]);
        c->w[ROOM][i]->linked = false;
        due__timed_wait_unlink(c->lab.q, c->w[TIME][i]);
        due__tenure_end(c->lab.q, &t);
        for (int k = 0; k < WANTS; k++)
            due__waiter_put(c->lab.q, c->w[k][i]);
    }
    cr_expect_null(c->lab.q->all);
    cr_expect_null(c->lab.q->capacity_line.first);
    cr_expect_null(c->lab.q->capacity_line.last);
    cr_expect_null(c->lab.q->timed_waits.first);
    cr_expect_null(c->lab.q->timed_waits.last);
    lab_close(&c->lab);
}

static void expect_rung(struct crowd *c, enum want want, int i, bool rung)
{
    cr_expect_eq(due__bell_take(&c->w[want][i]->bell), rung, "%d of %d", i, (int)want);
}

static int64_t for_ever(int i)
{
    (void)i;
    return DUE_FOREVER;
}

static const uint32_t *no_quit(int i)
{
    (void)i;
    return NULL;
}

/* Of every three: one pool's, the other's, nobody's. */
static const uint32_t *some_quit(int i)
{
    return i % 3 == 2 ? NULL : &stops[i % 3];
}

/* ---- All at once ---- */

Test(closing, rings_all_who_wait_for_room_and_nobody_else, .timeout = 10)
{
    struct crowd c = crowd_of(for_ever, some_quit);

    due__wake_all(c.lab.q, false);
    for (int i = 0; i < MANY; i++) {
        expect_rung(&c, ROOM, i, true);
        cr_expect_not(c.w[ROOM][i]->linked);
        expect_rung(&c, JOB, i, false);
        cr_expect(c.w[JOB][i]->linked);
        expect_rung(&c, TIME, i, false);
        cr_expect(c.w[TIME][i]->linked);
    }
    cr_expect_null(c.lab.q->capacity_line.first);
    crowd_go(&c);
}

Test(closing, rings_everyone_but_who_waits_for_a_time_that_it_does_not_concern, .timeout = 10)
{
    struct crowd c = crowd_of(for_ever, some_quit);

    due__wake_consumers(c.lab.q);
    for (int i = 0; i < MANY; i++) {
        expect_rung(&c, ROOM, i, true);
        cr_expect_not(c.w[ROOM][i]->linked);
        expect_rung(&c, JOB, i, true);
        cr_expect_not(c.w[JOB][i]->linked);
        cr_expect_eq(due__load_acquire(&c.w[JOB][i]->called), DUE__CALLED_LEAD);
        expect_rung(&c, TIME, i, some_quit(i) != NULL);
        cr_expect_eq(c.w[TIME][i]->timed_out, some_quit(i) != NULL, "it is awake");
        cr_expect(c.w[TIME][i]->linked, "it comes, and leaves by itself");
    }
    cr_expect_null(c.lab.q->all);
    crowd_go(&c);
}

/* One after another, also where others are between them. */
Test(timed_wait, of_a_pool_that_ends_is_over_and_no_other_is, .timeout = 10)
{
    for (int pool = 0; pool < 2; pool++) {
        struct crowd c = crowd_of(for_ever, some_quit);

        due__quit_ring(c.lab.q, &stops[pool]);
        for (int i = 0; i < MANY; i++) {
            bool its = some_quit(i) == &stops[pool];

            expect_rung(&c, JOB, i, its);
            cr_expect_eq(c.w[JOB][i]->linked, !its);
            expect_rung(&c, TIME, i, its);
            cr_expect_eq(c.w[TIME][i]->timed_out, its);
            expect_rung(&c, ROOM, i, false);
            cr_expect(c.w[ROOM][i]->linked);
        }
        crowd_go(&c);
    }
}

/* It sleeps on its bell, unless its time has come already. */
static bool sleeps(struct lab *lab, int64_t until_ns)
{
    struct due__waiter *w = waiter(lab, until_ns);

    due__bell_ring(&w->bell);
    due__timed_wait(lab->q, w, until_ns);
    bool slept = !due__bell_take(&w->bell);
    cr_expect_not(w->linked);
    cr_expect_null(lab->q->timed_waits.first);
    due__waiter_put(lab->q, w);
    return slept;
}

Test(timed_wait, is_over_at_once_if_its_time_has_come, .timeout = 10)
{
    struct lab lab = quiet_lab();

    lab_turn_to(&lab, 100);
    cr_expect_not(sleeps(&lab, 0));
    cr_expect_not(sleeps(&lab, 99));
    cr_expect_not(sleeps(&lab, 100));
    cr_expect(sleeps(&lab, 101));
    cr_expect(sleeps(&lab, DUE_FOREVER - 1));
    cr_expect(sleeps(&lab, DUE_FOREVER));
    lab_close(&lab);
}

/* ---- A clock that is turned ---- */

/* Of every four: before the turn, by it, one later, never. */
static int64_t in_turn(int i)
{
    static const int64_t until[] = { 10, 20, 21, DUE_FOREVER };

    return until[i % 4];
}

static void expect_late(struct crowd *c, int64_t from_ns, int64_t to_ns)
{
    for (int k = 0; k < WANTS; k++) {
        for (int i = 0; i < MANY; i++) {
            int64_t until = in_turn(i);

            expect_rung(c, (enum want)k, i, until > from_ns && until <= to_ns);
            cr_expect_eq(c->w[k][i]->timed_out, until <= to_ns, "%d of %d", i, k);
            cr_expect(c->w[k][i]->linked);
        }
    }
}

Test(tick, rings_all_whose_time_has_come_once, .timeout = 10)
{
    struct crowd c = crowd_of(in_turn, no_quit);

    lab_turn_to(&c.lab, 9);
    expect_late(&c, 0, 9);
    lab_turn_to(&c.lab, 20);
    expect_late(&c, 9, 20);
    lab_turn_to(&c.lab, 20);
    expect_late(&c, 20, 20);
    lab_turn_to(&c.lab, 21);
    expect_late(&c, 20, 21);
    lab_turn_to(&c.lab, 1000);
    expect_late(&c, 21, 1000);
    crowd_go(&c);
}

/* ---- Room ---- */

static uint64_t used(struct lab *lab)
{
    return due__load_seq(&lab->q->used);
}

/* As many as the room that was given back lets in, the first of them first. */
Test(capacity, that_is_given_back_rings_as_many_as_find_some, .timeout = 10)
{
    enum { WAIT = 8 };

    for (size_t given = 1; given < WAIT + 2; given++) {
        struct lab lab = quiet_lab();
        struct due__waiter *w[WAIT];

        due__capacity_force(lab.q, 20);
        for (int i = 0; i < WAIT; i++) {
            w[i] = waiter(&lab, DUE_FOREVER);
            want_room(&lab, w[i]);
            due__store_relaxed(&w[i]->called, 0);
        }
        due__capacity_give(lab.q, given);
        cr_expect_eq(used(&lab), 20 - given);
        cr_expect_eq(lab.q->capacity_line.first, w[0], "nobody says that he waits");
        due__add_seq(&lab.q->capacity_waiting, WAIT);
        due__capacity_give(lab.q, given);
        cr_expect_eq(used(&lab), 20 - 2 * given);
        for (size_t i = 0; i < WAIT; i++) {
            cr_expect_eq(due__bell_take(&w[i]->bell), i < given, "%zu of %zu", i, given);
            cr_expect_eq(w[i]->linked, i >= given);
            cr_expect_eq(due__load_acquire(&w[i]->called) != 0, i < given);
            if (w[i]->linked)
                due__waiters_remove(&lab.q->capacity_line, w[i]);
            w[i]->linked = false;
        }
        cr_expect_null(lab.q->capacity_line.first);
        due__sub_seq(&lab.q->capacity_waiting, WAIT);
        due__capacity_give(lab.q, (size_t)used(&lab));
        for (int i = 0; i < WAIT; i++)
            due__waiter_put(lab.q, w[i]);
        lab_close(&lab);
    }
}

/* A try gets what there is, as far as it is wanted. */
Test(capacity, is_taken_as_far_as_there_is_any, .timeout = 10)
{
    enum { CAPACITY = 10 };

    for (size_t taken = 0; taken <= CAPACITY + 1; taken++) {
        struct lab lab = lab_open(.with.proxies = DUE_PROXIES_NEVER, .with.capacity = CAPACITY);

        for (size_t want = 1; want < CAPACITY + 2; want++) {
            size_t room = taken < CAPACITY ? CAPACITY - taken : 0;
            size_t most = want < room ? want : room;
            bool inside = false;

            due__capacity_force(lab.q, taken);
            int got = due__capacity_take(lab.q, want, 0, &inside);
            cr_expect_eq(got, room > 0 ? (int)most : DUE_EAGAIN, "%zu, %zu: %d", taken, want, got);
            cr_expect_eq(used(&lab), taken + most);
            cr_expect_not(inside);
            due__capacity_give(lab.q, taken + most);
            cr_expect_eq(used(&lab), 0u);
        }
        lab_close(&lab);
    }
}
