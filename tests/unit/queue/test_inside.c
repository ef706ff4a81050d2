/* Those who close a queue: one of them ends it, when nobody is inside any more, and the others wait
 * for him.  By hand: nobody is asleep, and each bell tells whether it was rung. */
#include "lab/lab.h"
#include "lab/watch.h"

#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/queue.h"

static struct lab quiet_lab(void)
{
    struct lab lab = lab_open(.start_ns = 1, .with.proxies = DUE_PROXIES_NEVER);

    watch_end(lab.q); /* what a lock guards is changed here */
    return lab;
}

/* As if it had not been closed. */
static void lab_end(struct lab *lab)
{
    lab->q->ending = DUE__NOT_ENDED;
    due__and_seq(&lab->q->state, ~DUE__CLOSING);
    lab_close(lab);
}

static struct due__waiter *enter(struct lab *lab)
{
    struct due__waiter *w = due__closer_enter(lab->q);

    cr_assert_not_null(w);
    (void)due__bell_take(&w->bell);
    return w;
}

/* What is seen by one who does not wait. */
static void expect_seen(struct lab *lab, struct due__waiter *w, int rc, enum due__ending ending)
{
    enum due__ending seen = DUE__ENDED;

    cr_expect_eq(due__closer_wait(lab->q, w, 0, &seen), rc);
    cr_expect_eq(seen, ending);
    cr_expect_not(w->linked);
    cr_expect_null(lab->q->closers.first);
}

static void in_line(struct lab *lab, struct due__waiter *w, int64_t until_ns)
{
    w->linked = true;
    w->until_ns = until_ns;
    due__waiters_add(&lab->q->closers, w);
}

Test(inside, one_of_those_who_close_ends_the_queue_and_the_others_see_it, .timeout = 10)
{
    struct lab lab = quiet_lab();
    struct due__waiter *first = enter(&lab);
    struct due__waiter *other = enter(&lab);

    expect_seen(&lab, first, DUE_ETIMEDOUT, DUE__NOT_ENDED);
    due__or_seq(&lab.q->state, DUE__CLOSING);
    due__inside_enter(lab.q);
    due__inside_enter(lab.q);
    expect_seen(&lab, first, DUE_ETIMEDOUT, DUE__NOT_ENDED);
    due__inside_leave(lab.q);
    expect_seen(&lab, first, DUE_ETIMEDOUT, DUE__NOT_ENDED);
    due__inside_leave(lab.q);
    expect_seen(&lab, first, 0, DUE__ENDING);
    expect_seen(&lab, other, DUE_ETIMEDOUT, DUE__NOT_ENDED);
    cr_expect(due__inside_any(lab.q));
    due__closer_leave(lab.q, first, true);
    expect_seen(&lab, other, 0, DUE__ENDED);
    cr_expect(due__inside_any(lab.q), "one is still there");
    due__closer_leave(lab.q, other, false);
    cr_expect_not(due__inside_any(lab.q));
    due__inside_enter(lab.q);
    cr_expect(due__inside_any(lab.q));
    due__inside_leave(lab.q);
    cr_expect_not(due__inside_any(lab.q));
    lab_end(&lab);
}

Test(inside, who_gives_up_closing_leaves_the_end_to_the_next, .timeout = 10)
{
    struct lab lab = quiet_lab();
    struct due__waiter *first = enter(&lab);

    due__or_seq(&lab.q->state, DUE__CLOSING);
    due__inside_enter(lab.q);
    expect_seen(&lab, first, DUE_ETIMEDOUT, DUE__NOT_ENDED);
    due__closer_leave(lab.q, first, false);
    due__inside_leave(lab.q);
    cr_expect(due__inside_any(lab.q), "it was not ended");
    cr_expect_eq(enter(&lab), first, "the queue's own is free again");
    expect_seen(&lab, first, 0, DUE__ENDING);
    due__closer_leave(lab.q, first, true);
    cr_expect_not(due__inside_any(lab.q));
    lab_end(&lab);
}

/* The first needs no memory; one who finds none is not there. */
Test(inside, who_is_to_close_and_finds_no_memory_leaves_nothing_behind, .timeout = 10)
{
    struct lab lab = quiet_lab();
    struct flaky *memory = &lab.state->memory;

    memory->fail_on = true;
    flaky_fail_in(memory, 0);
    struct due__waiter *first = due__closer_enter(lab.q);
    cr_assert_not_null(first);
    cr_expect_eq(lab.q->closing, 1u);
    cr_expect_null(due__closer_enter(lab.q));
    cr_expect_eq(lab.q->closing, 1u);
    memory->fail_on = false;
    memory->fail_at = FLAKY_NEVER;
    struct due__waiter *other = due__closer_enter(lab.q);
    cr_assert_not_null(other);
    cr_expect_eq(lab.q->closing, 2u);
    due__closer_leave(lab.q, first, false);
    due__closer_leave(lab.q, other, false);
    cr_expect_eq(lab.q->closing, 0u);
    lab_end(&lab);
}

Test(inside, the_last_who_leaves_rings_those_who_close, .timeout = 10)
{
    for (int watched = 0; watched < 2; watched++) {
        struct lab lab = quiet_lab();
        struct due__waiter *w[2] = { enter(&lab), enter(&lab) };

        due__or_seq(&lab.q->state, DUE__CLOSING);
        due__inside_enter(lab.q);
        due__inside_enter(lab.q);
        if (watched)
            expect_seen(&lab, w[0], DUE_ETIMEDOUT, DUE__NOT_ENDED);
        in_line(&lab, w[0], DUE_FOREVER);
        in_line(&lab, w[1], DUE_FOREVER);
        due__inside_leave(lab.q);
        for (int i = 0; i < 2; i++)
            cr_expect_not(due__bell_take(&w[i]->bell), "another is inside");
        due__inside_leave(lab.q);
        for (int i = 0; i < 2; i++)
            cr_expect_eq(due__bell_take(&w[i]->bell), watched, "nobody has looked who waits");
        due__closers_ring(lab.q);
        for (int i = 0; i < 2; i++) {
            cr_expect(due__bell_take(&w[i]->bell));
            due__waiters_remove(&lab.q->closers, w[i]);
            w[i]->linked = false;
            due__closer_leave(lab.q, w[i], false);
        }
        lab_end(&lab);
    }
}

Test(inside, who_ends_the_queue_and_a_clock_that_is_turned_ring_those_who_close, .timeout = 10)
{
    static const int64_t until[] = { 19, 20, 21, DUE_FOREVER };
    struct lab lab = quiet_lab();
    struct due__waiter *ender = enter(&lab);
    struct due__waiter *w[4];

    for (int i = 0; i < 4; i++) {
        w[i] = enter(&lab);
        in_line(&lab, w[i], until[i]);
    }
    due__closers_tick(lab.q, 20);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(due__bell_take(&w[i]->bell), until[i] <= 20, "%d", i);
    due__or_seq(&lab.q->state, DUE__CLOSING);
    due__closer_leave(lab.q, ender, true);
    for (int i = 0; i < 4; i++)
        cr_expect(due__bell_take(&w[i]->bell), "%d", i);
    for (int i = 0; i < 4; i++) {
        due__waiters_remove(&lab.q->closers, w[i]);
        w[i]->linked = false;
        due__closer_leave(lab.q, w[i], false);
        for (int k = i + 1; k < 4; k++)
            cr_expect_not(due__bell_take(&w[k]->bell), "who only leaves rings nobody");
    }
    lab_end(&lab);
}

/* Whose handlers a thread runs it knows by itself. */
Test(inside, a_handler_it_is_known_of_which_queue, .timeout = 10)
{
    struct lab one = quiet_lab();
    struct lab two = quiet_lab();

    cr_expect_not(due__handling(one.q));
    due__handling_begun(one.q);
    cr_expect(due__handling(one.q));
    cr_expect_not(due__handling(two.q));
    due__handling_begun(NULL);
    cr_expect_not(due__handling(one.q));
    lab_close(&one);
    lab_close(&two);
}
