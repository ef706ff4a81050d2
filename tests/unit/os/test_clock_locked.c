/* A manual clock is turned, joined and left under its lock: not a moment before and not a moment
 * after. */
#include "lab/lab.h"

#include "lab/knock.h"
#include "os/bell.h"
#include "os/clock.h"

/* As clock.c has it. */
struct inside {
    _Alignas(8) int64_t now_ns;
    struct due__lock lock;
    struct due__listener *listeners;
    uint32_t turns;
};

struct desk {
    due_clock *clock;
    struct inside *in;
    struct due__listener l;
    struct due__listener other;
    struct due__bell bell;
    int turned; /* as often was the listener called */
};

static void turned(void *arg)
{
    struct desk *d = arg;

    d->turned++;
}

static void desk_open(struct desk *d)
{
    *d = (struct desk){ .clock = due_clock_manual(1000) };
    cr_assert_not_null(d->clock);
    d->in = (struct inside *)(void *)d->clock;
    cr_assert_eq(d->in->now_ns, 1000);
    d->l = d->other = (struct due__listener){ .turned = turned, .arg = d };
    due__bell_init(&d->bell);
    due__clock_join(d->clock, &d->other);
    cr_assert_eq(d->in->listeners, &d->other);
}

static void desk_close(struct desk *d)
{
    due__clock_leave(d->clock, &d->other, &d->bell);
    due__bell_destroy(&d->bell, false);
    cr_expect_eq(due_clock_free(d->clock), 0);
}

static void call_advance(void *arg)
{
    struct desk *d = arg;

    cr_expect_eq(due_clock_advance(d->clock, 500), 0);
}

static void call_turn_to(void *arg)
{
    struct desk *d = arg;

    cr_expect_eq(due_clock_turn_to(d->clock, 1500), 0);
}

static enum knock_far is_turned(void *arg)
{
    const struct desk *d = arg;

    return d->in->now_ns == 1000 ? KNOCK_NOTHING : KNOCK_ALL;
}

static enum knock_far is_to_be_called(void *arg)
{
    const struct desk *d = arg;

    if (d->in->now_ns == 1000 && d->other.calls == 0 && d->in->turns == 0 && d->turned == 0)
        return KNOCK_NOTHING;
    return d->in->now_ns == 1500 && d->other.calls == 1 && d->in->turns == 1 && d->turned == 0
               ? KNOCK_ALL
               : KNOCK_PART;
}

static enum knock_far was_called(void *arg)
{
    const struct desk *d = arg;

    if (d->other.calls == 1 && d->in->turns == 1)
        return KNOCK_NOTHING;
    return d->other.calls == 0 && d->in->turns == 0 && d->turned == 1 ? KNOCK_ALL : KNOCK_PART;
}

Test(clock_locked, a_turn_is_made_and_told_under_the_lock, .timeout = 30)
{
    for (int to = 0; to < 2; to++) {
        for (unsigned hears = 0; hears < 2; hears++) {
            for (unsigned section = 1; section <= 1 + hears; section++) {
                struct desk d;

                desk_open(&d);
                if (hears)
                    due__listener_hear(&d.other);
                KNOCK_IS(knock_nth(&d.in->lock, section, to ? call_turn_to : call_advance,
                                   !hears         ? is_turned
                                   : section == 1 ? is_to_be_called
                                                  : was_called,
                                   &d),
                         KNOCK_UNDER);
                cr_expect_eq(d.turned, (int)hears);
                desk_close(&d);
            }
        }
    }
}

static void call_join(void *arg)
{
    struct desk *d = arg;

    due__clock_join(d->clock, &d->l);
}

static enum knock_far has_joined(void *arg)
{
    const struct desk *d = arg;

    if (d->in->listeners == &d->l && d->l.next == &d->other && d->l.left == NULL)
        return KNOCK_ALL;
    return d->in->listeners == &d->other && d->l.next == NULL && d->l.left != NULL ? KNOCK_NOTHING
                                                                                   : KNOCK_PART;
}

static void call_leave(void *arg)
{
    struct desk *d = arg;

    due__clock_leave(d->clock, &d->l, &d->bell);
}

static enum knock_far has_left(void *arg)
{
    const struct desk *d = arg;

    if (d->in->listeners == &d->other && d->l.left == &d->bell)
        return KNOCK_ALL;
    return d->in->listeners == &d->l && d->l.left == NULL ? KNOCK_NOTHING : KNOCK_PART;
}

Test(clock_locked, a_listener_joins_and_leaves_under_the_lock, .timeout = 30)
{
    struct desk d;

    desk_open(&d);
    d.l.left = &d.bell;
    KNOCK_IS(knock(&d.in->lock, call_join, has_joined, &d), KNOCK_UNDER);
    KNOCK_IS(knock(&d.in->lock, call_leave, has_left, &d), KNOCK_UNDER);
    desk_close(&d);
}

/* Who waits for the calls in his listener is woken by the last of them, once it is over. */
static enum knock_far is_over(void *arg)
{
    const struct desk *d = arg;

    return d->other.calls == 0 ? KNOCK_ALL : KNOCK_NOTHING;
}

static void leaves(void *arg)
{
    struct desk *d = arg;

    d->turned++;
    d->other.left = &d->bell; /* as one who leaves meanwhile has written it */
}

Test(clock_locked, who_leaves_is_woken_once_nobody_is_in_his_listener, .timeout = 30)
{
    struct desk d;

    desk_open(&d);
    d.other.turned = leaves;
    due__listener_hear(&d.other);
    knock_asleep(&d.bell);
    KNOCK_IS(knock_bell(&d.bell, call_advance, is_over, &d), KNOCK_UNDER);
    d.other.left = NULL;
    cr_expect_eq(d.turned, 1);
    desk_close(&d);
}
