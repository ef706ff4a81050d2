/* The line of calls that wait for room on the way to the store, by hand: who is let in, when, and
 * how many bytes are taken then. (N2 of backpressure.c) */
#include "lab/shop.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

enum { ROOM = 100, CHANGES = 7 };

static struct shop crowded_shop(void)
{
    return shop_make(.with.unsettled_bytes_max = ROOM, .with.unsettled_max = CHANGES);
}

static struct due__commits *commits_of(struct shop *s)
{
    return s->lab.q->commits;
}

static uint64_t on_the_way(struct shop *s)
{
    const struct due__commits *c = commits_of(s);

    return due__load_relaxed(&c->submitted_bytes) - due__load_relaxed(&c->settled_bytes);
}

static void begin(struct shop *s, struct due__submission *a)
{
    cr_assert(due__submission_begin(s->lab.q, a, 1));
    (void)due__bell_take(&a->waiter->bell);
}

/* It has its bytes by now, and was rung for them. */
static void expect_in(struct shop *s, struct due__submission *a, bool in)
{
    cr_expect_eq(due__submission_over(commits_of(s), a), in);
    cr_expect_eq(due__bell_take(&a->waiter->bell), in);
}

static void expect_line(struct shop *s, struct due__submission *const *calls, size_t n)
{
    const struct due__submission *a = due__load_relaxed(&commits_of(s)->line);

    for (size_t i = 0; i < n; i++, a = a->behind) {
        cr_assert_not_null(a, "%zu of %zu", i, n);
        cr_expect_eq(a, calls[i], "%zu of %zu", i, n);
    }
    cr_expect_null(a);
}

Test(backpressure, of_changes_begins_behind_the_most_that_there_may_be, .timeout = 10)
{
    struct shop s = crowded_shop();
    struct due__commits *c = commits_of(&s);

    for (uint64_t n = 0; n <= 2 * CHANGES; n++) {
        cr_expect_eq(due__unsettled_crowded(c), n > CHANGES, "%ju", (uintmax_t)n);
        due__add_relaxed(&c->submitted, 1);
    }
    due__sub_seq(&c->submitted, 2 * CHANGES + 1);
    shop_close(&s);
}

Test(backpressure, of_bytes_is_exact_but_for_one_that_is_alone, .timeout = 10)
{
    struct shop s = crowded_shop();
    struct due__commits *c = commits_of(&s);

    for (uint64_t used = 0; used <= ROOM + 2; used++) {
        for (uint64_t more = 0; more <= ROOM + 2; more++) {
            bool fits = more == 0 || used == 0 || used + more <= ROOM;

            cr_assert(due__unsettled_try(c, used), "nothing else is under way");
            cr_expect_eq(due__unsettled_try(c, more), fits, "%ju and %ju", (uintmax_t)used,
                         (uintmax_t)more);
            cr_expect_eq(on_the_way(&s), used + (fits ? more : 0));
            due__unsettled_give(c, on_the_way(&s));
        }
    }
    shop_close(&s);
}

Test(backpressure, lets_in_who_stands_first_and_nobody_before_him, .timeout = 10)
{
    struct shop s = crowded_shop();
    struct due__commits *c = commits_of(&s);
    struct due__submission a, b, d;

    cr_assert(due__unsettled_try(c, ROOM));
    begin(&s, &a);
    begin(&s, &b);
    begin(&s, &d);
    due__unsettled_stand(c, &a, 50);
    due__unsettled_stand(c, &b, 10);
    due__unsettled_stand(c, &d, 40);
    expect_line(&s, (struct due__submission *const[]){ &a, &b, &d }, 3);
    due__unsettled_give(c, 0);
    due__unsettled_give(c, 49);
    expect_in(&s, &a, false);
    expect_in(&s, &b, false);
    cr_expect_not(due__unsettled_try(c, 1), "not before those in line");
    cr_expect(due__unsettled_try(c, 0));
    due__unsettled_give(c, 1);
    expect_in(&s, &a, true);
    expect_in(&s, &b, false);
    cr_expect_eq(on_the_way(&s), ROOM);
    expect_line(&s, (struct due__submission *const[]){ &b, &d }, 2);
    due__unsettled_give(c, 50);
    expect_in(&s, &b, true);
    expect_in(&s, &d, true);
    expect_line(&s, NULL, 0);
    cr_expect_eq(on_the_way(&s), ROOM);
    cr_expect(due__unsettled_leave(c, &a));
    cr_expect(due__unsettled_leave(c, &b));
    cr_expect(due__unsettled_leave(c, &d));
    due__submission_end(s.lab.q, &a);
    due__submission_end(s.lab.q, &b);
    due__submission_end(s.lab.q, &d);
    due__unsettled_give(c, ROOM);
    shop_close(&s);
}

/* Whoever leaves may have been in the way of those behind him. */
Test(backpressure, lets_in_who_stood_behind_one_that_leaves, .timeout = 10)
{
    for (int who = 0; who < 3; who++) {
        struct shop s = crowded_shop();
        struct due__commits *c = commits_of(&s);
        struct due__submission a[3];
        static const uint64_t bytes[] = { 50, 10, 40 };

        cr_assert(due__unsettled_try(c, ROOM));
        for (int i = 0; i < 3; i++) {
            begin(&s, &a[i]);
            due__unsettled_stand(c, &a[i], bytes[i]);
        }
        due__unsettled_give(c, 15);
        cr_expect_not(due__unsettled_leave(c, &a[who]));
        expect_in(&s, &a[who], false);
        if (who == 0) { /* then there is room for the second, and not for the third */
            expect_in(&s, &a[1], true);
            expect_line(&s, (struct due__submission *const[]){ &a[2] }, 1);
            cr_expect_eq(on_the_way(&s), ROOM - 5);
            cr_expect(due__unsettled_leave(c, &a[1]));
            cr_expect_not(due__unsettled_leave(c, &a[2]));
        } else {
            int left = who == 1 ? 2 : 1;

            expect_line(&s, (struct due__submission *const[]){ &a[0], &a[left] }, 2);
            cr_expect_eq(on_the_way(&s), ROOM - 15);
            cr_expect_not(due__unsettled_leave(c, &a[left]));
            expect_line(&s, (struct due__submission *const[]){ &a[0] }, 1);
            cr_expect_not(due__unsettled_leave(c, &a[0]));
        }
        expect_line(&s, NULL, 0);
        for (int i = 0; i < 3; i++)
            due__submission_end(s.lab.q, &a[i]);
        due__unsettled_give(c, on_the_way(&s));
        shop_close(&s);
    }
}

/* Room that came while nobody looked is seen by who comes next. */
Test(backpressure, is_looked_at_by_whoever_stands_in_line_and_by_who_cannot, .timeout = 10)
{
    for (int stands = 0; stands < 2; stands++) {
        struct shop s = crowded_shop();
        struct due__commits *c = commits_of(&s);
        struct due__submission a, b;

        cr_assert(due__unsettled_try(c, ROOM));
        begin(&s, &a);
        begin(&s, &b);
        due__unsettled_stand(c, &a, 50);
        due__add_relaxed(&c->settled_bytes, 50);
        due__unsettled_stand(c, stands ? &b : NULL, 10);
        expect_in(&s, &a, true);
        expect_in(&s, &b, false);
        expect_line(&s, (struct due__submission *const[]){ &b }, stands ? 1 : 0);
        if (stands)
            cr_expect_not(due__unsettled_leave(c, &b));
        due__submission_end(s.lab.q, &a);
        due__submission_end(s.lab.q, &b);
        due__unsettled_give(c, on_the_way(&s));
        shop_close(&s);
    }
}
