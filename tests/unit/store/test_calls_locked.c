/* What calls that wait for the store share with who sends is changed under the calls' lock: not a
 * moment before and not a moment after; and who is woken finds done what he was woken for. */
#include "lab/calls_desk.h"

/* ---- That a call waits ---- */

static void call_begin(void *arg)
{
    struct desk *d = arg;

    cr_assert(due__submission_begin(d->q, &d->a, 1));
}

static enum knock_far has_begun(void *arg)
{
    const struct desk *d = arg;

    if (d->a.waiter != NULL && d->c->first == &d->a && d->c->spare == NULL)
        return KNOCK_ALL;
    return d->a.waiter == NULL && d->c->first == NULL ? KNOCK_NOTHING : KNOCK_PART;
}

static void call_end(void *arg)
{
    struct desk *d = arg;

    due__submission_end(d->q, &d->a);
}

static enum knock_far has_ended(void *arg)
{
    const struct desk *d = arg;

    if (d->c->first == NULL && d->c->spare == d->a.waiter)
        return KNOCK_ALL;
    return d->c->first == &d->a && d->c->spare == NULL ? KNOCK_NOTHING : KNOCK_PART;
}

Test(calls_locked, a_call_is_known_from_and_until_a_moment_under_the_lock, .timeout = 30)
{
    struct desk d;

    desk_make(&d);
    begin(&d, &d.a);
    due__submission_end(d.q, &d.a);
    d.a.waiter = NULL;
    KNOCK_IS(knock(&d.c->calls, call_begin, has_begun, &d), KNOCK_UNDER);
    KNOCK_IS(knock(&d.c->calls, call_end, has_ended, &d), KNOCK_UNDER);
    shop_close(&d.s);
}

static bool is_told(const struct due__commits *c, const struct due__submission *a)
{
    (void)c;
    ((struct desk *)(void *)a->ask)->looks++;
    return true;
}

static void call_over(void *arg)
{
    struct desk *d = arg;

    d->over = due__submission_over(d->c, &d->a);
}

static enum knock_far has_looked(void *arg)
{
    const struct desk *d = arg;

    return d->looks == 0 ? KNOCK_NOTHING : KNOCK_ALL;
}

static void call_fewer(void *arg)
{
    struct desk *d = arg;

    due__submission_fewer(d->c, &d->a, 1);
}

static enum knock_far has_fewer(void *arg)
{
    const struct desk *d = arg;

    return d->a.left == 1 && !d->a.over  ? KNOCK_NOTHING
           : d->a.left == 0 && d->a.over ? KNOCK_ALL
                                         : KNOCK_PART;
}

static void call_ring(void *arg)
{
    struct desk *d = arg;

    due__submission_ring(d->c);
}

static enum knock_far has_rung(void *arg)
{
    const struct desk *d = arg;

    return d->a.waiter->bell.word == 0 ? KNOCK_NOTHING : KNOCK_ALL;
}

Test(calls_locked, what_a_call_waits_for_is_looked_at_and_changed_under_the_lock, .timeout = 30)
{
    struct desk d;

    desk_make(&d);
    begin(&d, &d.a);
    KNOCK_IS(knock(&d.c->calls, call_fewer, has_fewer, &d), KNOCK_UNDER);
    KNOCK_IS(knock(&d.c->calls, call_ring, has_rung, &d), KNOCK_UNDER);
    due__submission_end(d.q, &d.a);
    cr_assert(due__submission_begin_until(d.q, &d.a, is_told, 1));
    d.a.ask = (struct due__ask *)(void *)&d; /* nobody else looks at it */
    d.looks = 0;
    KNOCK_IS(knock(&d.c->calls, call_over, has_looked, &d), KNOCK_UNDER);
    cr_expect(d.over);
    d.a.ask = NULL;
    d.a.reached = NULL;
    due__submission_end(d.q, &d.a);
    shop_close(&d.s);
}

/* ---- Bytes ---- */

static void call_give(void *arg)
{
    struct desk *d = arg;

    due__unsettled_give(d->c, d->told);
}

static enum knock_far has_given(void *arg)
{
    const struct desk *d = arg;
    bool given = d->c->settled_bytes == d->before + d->told;

    if (given && d->c->line == NULL && d->a.over)
        return KNOCK_ALL;
    return !given && d->c->line == &d->a && !d->a.over ? KNOCK_NOTHING : KNOCK_PART;
}

static void call_stand(void *arg)
{
    struct desk *d = arg;

    due__unsettled_stand(d->c, &d->b, 10);
}

static enum knock_far does_stand(void *arg)
{
    const struct desk *d = arg;

    if (d->a.behind == &d->b && d->b.bytes == 10)
        return KNOCK_ALL;
    return d->a.behind == NULL && d->b.bytes == 0 ? KNOCK_NOTHING : KNOCK_PART;
}

static void call_leave(void *arg)
{
    struct desk *d = arg;

    d->over = due__unsettled_leave(d->c, &d->b);
}

static enum knock_far has_left(void *arg)
{
    const struct desk *d = arg;

    return d->a.behind == NULL ? KNOCK_ALL : KNOCK_NOTHING;
}

static enum knock_far is_over(void *arg)
{
    const struct desk *d = arg;

    return d->a.over ? KNOCK_ALL : KNOCK_NOTHING;
}

/* Two who stand in line, of whom one leaves, and then the other is let in. */
static void with_line(struct desk *d)
{
    desk_make(d);
    cr_assert(due__unsettled_try(d->c, ROOM));
    begin(d, &d->a);
    begin(d, &d->b);
    due__unsettled_stand(d->c, &d->a, 50);
    d->before = d->c->settled_bytes;
    d->told = 50;
}

static void end_line(struct desk *d)
{
    due__submission_end(d->q, &d->a);
    due__submission_end(d->q, &d->b);
    due__unsettled_give(d->c, ROOM);
    shop_close(&d->s);
}

Test(calls_locked, who_waits_for_room_stands_and_is_let_in_under_the_lock, .timeout = 30)
{
    struct desk d;

    with_line(&d);
    KNOCK_IS(knock(&d.c->calls, call_stand, does_stand, &d), KNOCK_UNDER);
    KNOCK_IS(knock(&d.c->calls, call_leave, has_left, &d), KNOCK_UNDER);
    KNOCK_IS(knock(&d.c->calls, call_give, has_given, &d), KNOCK_UNDER);
    end_line(&d);
}

static void call_stand_alone(void *arg)
{
    struct desk *d = arg;

    due__unsettled_stand(d->c, &d->a, 50);
}

static enum knock_far is_let_in(void *arg)
{
    const struct desk *d = arg;

    if (d->a.over && d->c->line == NULL && d->a.bytes == 50)
        return KNOCK_ALL;
    return !d->a.over && d->a.bytes == 0 ? KNOCK_NOTHING : KNOCK_PART;
}

Test(calls_locked, who_stands_where_there_is_room_is_let_in_at_once, .timeout = 30)
{
    struct desk d;

    desk_make(&d);
    begin(&d, &d.a);
    KNOCK_IS(knock(&d.c->calls, call_stand_alone, is_let_in, &d), KNOCK_UNDER);
    due__submission_end(d.q, &d.a);
    due__unsettled_give(d.c, 50);
    shop_close(&d.s);
}

Test(calls_locked, who_waits_for_room_is_woken_once_he_is_in, .timeout = 30)
{
    struct desk d;

    with_line(&d);
    knock_asleep(&d.a.waiter->bell);
    KNOCK_IS(knock_bell(&d.a.waiter->bell, call_give, is_over, &d), KNOCK_UNDER);
    end_line(&d);
}

/* ---- News ---- */

static void call_given_up(void *arg)
{
    struct desk *d = arg;

    due__commit_given_up(d->q, d->told);
}

static enum knock_far is_given_up(void *arg)
{
    const struct desk *d = arg;

    if (d->c->given_up == d->before && d->c->settled_bytes == 0)
        return KNOCK_NOTHING;
    return d->c->given_up == d->before + 1 && d->c->settled_bytes == d->told ? KNOCK_ALL
                                                                             : KNOCK_PART;
}

static enum knock_far is_counted_given_up(void *arg)
{
    const struct desk *d = arg;

    return d->c->given_up == d->before ? KNOCK_NOTHING : KNOCK_ALL;
}

static void call_news(void *arg)
{
    struct desk *d = arg;

    d->told = due__commit_news(d->c);
}

/* While it is waited for, there are some. */
static enum knock_far more_news(void *arg)
{
    struct desk *d = arg;

    d->c->given_up = 1000;
    return KNOCK_NOTHING;
}

static bool is_news(const struct due__commits *c, const struct due__submission *a)
{
    return c->settled + c->given_up >= a->goal;
}

Test(calls_locked, what_is_given_up_is_counted_under_the_lock_and_then_told, .timeout = 30)
{
    struct desk d;

    desk_make(&d);
    d.before = d.c->given_up;
    d.told = 30;
    cr_assert(due__unsettled_try(d.c, d.told));
    KNOCK_IS(knock(&d.c->calls, call_given_up, is_given_up, &d), KNOCK_UNDER);
    cr_assert(due__submission_begin_until(d.q, &d.a, is_news, due__commit_news(d.c) + 1));
    knock_asleep(&d.a.waiter->bell);
    d.before = d.c->given_up;
    d.told = 0;
    KNOCK_IS(knock_bell(&d.a.waiter->bell, call_given_up, is_counted_given_up, &d), KNOCK_UNDER);
    due__submission_end(d.q, &d.a);
    (void)knock(&d.c->calls, call_news, more_news, &d);
    if (KNOCKS)
        cr_expect_eq(d.told, d.c->settled + 1000, "it looked before it had the lock");
    shop_close(&d.s);
}

/* ---- Takings ---- */

static void call_put(void *arg)
{
    struct desk *d = arg;

    due__taking_end(d->q, d->t);
}

static enum knock_far is_spare(void *arg)
{
    const struct desk *d = arg;

    if (d->c->spare_taking == d->t && d->t->next == d->spare)
        return KNOCK_ALL;
    return d->c->spare_taking == d->spare && d->t->next == NULL ? KNOCK_NOTHING : KNOCK_PART;
}

static struct due__taking *taking_of_none(struct desk *d)
{
    static const struct due__slot none;

    return due__taking_begin(d->q, &none, 0, DUE__ATTEMPT);
}

static void call_get(void *arg)
{
    (void)taking_of_none(arg);
}

static enum knock_far is_taken(void *arg)
{
    const struct desk *d = arg;

    return d->c->spare_taking == d->t ? KNOCK_NOTHING : KNOCK_ALL;
}

static void call_takings_end(void *arg)
{
    struct desk *d = arg;

    (void)due__takings_end(d->q);
}

static enum knock_far have_ended(void *arg)
{
    const struct desk *d = arg;

    return d->c->takings_ended ? KNOCK_ALL : KNOCK_NOTHING;
}

Test(calls_locked, takings_are_kept_and_used_again_under_the_lock, .timeout = 30)
{
    struct desk d;

    desk_make(&d);
    d.spare = taking_of_none(&d);
    d.t = taking_of_none(&d);
    cr_assert(d.spare != NULL && d.t != NULL);
    due__taking_end(d.q, d.spare);
    KNOCK_IS(knock_nth(&d.c->calls, 2, call_put, is_spare, &d), KNOCK_UNDER);
    KNOCK_IS(knock(&d.c->calls, call_get, is_taken, &d), KNOCK_UNDER);
    call_put(&d);
    KNOCK_IS(knock(&d.c->calls, call_takings_end, have_ended, &d), KNOCK_UNDER);
    shop_close(&d.s);
}
