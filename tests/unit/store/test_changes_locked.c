/* Each step of a change, of what holds back topics, and of looking for a job is made under the
 * calls' lock: not a moment before and not a moment after; and who is woken finds it done. */
#include "lab/calls_desk.h"

static void plain(struct desk *d)
{
    desk_make(d);
    d->before = d->c->settled;
}

/* ---- Changes ---- */

static void call_enqueue(void *arg)
{
    struct desk *d = arg;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 1000, .flags = DUE_SPEC_AT, .data = "x", .len = 1 };

    cr_expect_eq(due_enqueue(d->q, &spec, 0, &d->id), 0);
}

static enum knock_far is_counted(void *arg)
{
    const struct desk *d = arg;

    if (d->c->settled == d->before && d->c->settled_bytes == 0)
        return KNOCK_NOTHING;
    return d->c->settled == d->before + 1 && d->c->settled_bytes == 1 ? KNOCK_ALL : KNOCK_PART;
}

static enum knock_far is_filled_in(void *arg)
{
    const struct desk *d = arg;

    return d->c->now->count == 1 && d->c->now->entries[0].purpose == DUE__PUT ? KNOCK_ALL
                                                                              : KNOCK_NOTHING;
}

static enum knock_far is_caught(void *arg)
{
    const struct desk *d = arg;
    bool filled = d->c->now->count == 1;

    return filled && d->c->now->entries[0].submission != NULL ? KNOCK_ALL : KNOCK_NOTHING;
}

static enum knock_far waits_no_more(void *arg)
{
    const struct desk *d = arg;

    return d->c->settled == d->before + 1 && d->c->first == NULL && d->c->spare != NULL
               ? KNOCK_ALL
               : KNOCK_NOTHING;
}

Test(changes_locked, each_step_of_a_change_is_made_under_the_lock, .timeout = 60)
{
    struct desk d;

    once_under(&d, plain, call_enqueue, is_filled_in, "filled in");
    once_under(&d, plain, call_enqueue, is_caught, "caught");
    once_under(&d, plain, call_enqueue, is_counted, "counted");
    once_under(&d, plain, call_enqueue, waits_no_more, "over");
}

static void with_job(struct desk *d)
{
    desk_make(d);
    call_enqueue(d);
    cr_assert(due__index_find(&d->c->index, d->id, &d->number, &(uint32_t){ 0 }));
    d->before = d->c->settled;
}

static void call_cancel(void *arg)
{
    struct desk *d = arg;

    cr_expect_eq(due_cancel(d->q, d->id, NULL), 0);
}

static enum knock_far is_left(void *arg)
{
    const struct desk *d = arg;
    const struct due__stored *s = due__stored_at(d->c, d->number);

    if (s->purpose == (DUE__QUEUED | DUE__CANCEL) && s->submission == d->c->first)
        return KNOCK_ALL;
    return s->purpose == DUE__NO_CHANGE && s->submission == NULL ? KNOCK_NOTHING : KNOCK_PART;
}

Test(changes_locked, a_change_is_left_under_the_lock, .timeout = 60)
{
    struct desk d;

    once_under(&d, with_job, call_cancel, is_left, "left");
}

static void is_asleep(struct due__bell *bell)
{
    while (due__load_seq(&bell->word) != 2)
        crew_sleep(DUE_US(100));
}

static enum knock_far is_in_inbox(void *arg)
{
    const struct desk *d = arg;

    return d->c->submitted == d->before + 1 && !due__inbox_quiet(&d->c->inbox) ? KNOCK_ALL
                                                                               : KNOCK_NOTHING;
}

/* Who sends what nobody waits for would find nothing, and sleep again. */
Test(changes_locked, the_proxy_is_called_once_there_is_something_to_be_sent, .timeout = 30)
{
    struct desk d;

    desk_open(&d, (struct lab_options){ .with.confirm = DUE_CONFIRM_ASYNC });
    if (KNOCKS) {
        is_asleep(&d.q->enqueue_bell);
        d.before = d.c->submitted;
        KNOCK_IS(knock_bell(&d.q->enqueue_bell, call_enqueue, is_in_inbox, &d), KNOCK_UNDER);
        cr_assert_eq(due_flush(d.q, DUE_S(20)), 0);
        is_asleep(&d.q->enqueue_bell);
        d.before = d.c->submitted;
        KNOCK_IS(knock_bell(&d.q->enqueue_bell, call_cancel, is_in_inbox, &d), KNOCK_UNDER);
    }
    shop_close(&d.s);
}

/* ---- What holds back topics ---- */

static void call_pause(void *arg)
{
    struct desk *d = arg;

    cr_expect_eq(due_pause(d->q, 0), 0);
}

static enum knock_far stands_in_line(void *arg)
{
    const struct due__settings *g = &((const struct desk *)arg)->c->settings;

    if (g->left == 1 && g->first != NULL && g->last == g->first)
        return KNOCK_ALL;
    return g->left == 0 && g->first == NULL ? KNOCK_NOTHING : KNOCK_PART;
}

/* It stood there, and is over. */
static enum knock_far left_line(void *arg)
{
    struct desk *d = arg;
    const struct due__settings *g = &d->c->settings;

    if (g->first != NULL) {
        d->looks++;
        return g->left == 1 ? KNOCK_NOTHING : KNOCK_PART;
    }
    if (d->looks == 0)
        return KNOCK_NOTHING;
    return g->left == 0 && g->last == NULL && d->c->first->over ? KNOCK_ALL : KNOCK_PART;
}

static enum knock_far is_begun(void *arg)
{
    const struct due__settings *g = &((const struct desk *)arg)->c->settings;

    return g->begun ? KNOCK_ALL : KNOCK_NOTHING;
}

static enum knock_far first_is_over(void *arg)
{
    const struct desk *d = arg;

    return d->c->first != NULL && d->c->first->over ? KNOCK_ALL : KNOCK_NOTHING;
}

Test(changes_locked, who_holds_back_a_topic_enters_and_leaves_the_line_under_the_lock,
     .timeout = 60)
{
    struct desk d;

    once_under(&d, plain, call_pause, is_begun, "begun");

    once_under(&d, plain, call_pause, stands_in_line, "in line");
    once_under(&d, plain, call_pause, left_line, "out of it");
}

Test(changes_locked, who_holds_back_a_topic_is_woken_once_it_is_over, .timeout = 30)
{
    struct desk d;

    desk_make(&d);
    begin(&d, &d.a);
    due__submission_end(d.q, &d.a);
    cr_assert_eq(d.c->spare, d.a.waiter, "it is the next call's");
    knock_asleep(&d.a.waiter->bell);
    KNOCK_IS(knock_bell(&d.a.waiter->bell, call_pause, first_is_over, &d), KNOCK_UNDER);
    shop_close(&d.s);
}

static void call_refuse(void *arg)
{
    struct desk *d = arg;

    due__settings_refuse(d->q, DUE_ECLOSED);
}

/* While it is waited for somebody comes, who is to be refused too. */
static enum knock_far one_comes(void *arg)
{
    struct desk *d = arg;
    struct due__settings *g = &d->c->settings;

    if (d->looks++ == 0) {
        g->first = g->last = due__alloc_new(&d->q->alloc, sizeof *g->first);
        cr_assert_not_null(g->first);
        g->first->a = &d->a;
        due__store_seq(&g->left, 1);
    }
    return KNOCK_NOTHING;
}

Test(changes_locked, whoever_holds_back_a_topic_is_refused_as_the_line_is_under_the_lock,
     .timeout = 30)
{
    struct desk d;

    desk_make(&d);
    begin(&d, &d.a);
    if (KNOCKS) {
        (void)knock(&d.c->calls, call_refuse, one_comes, &d);
        cr_expect(d.a.over, "it looked before it had the lock");
        cr_expect_eq(d.a.rc, DUE_ECLOSED);
        cr_expect_eq(d.c->settings.left, 0u);
        call_refuse(&d);
    }
    due__submission_end(d.q, &d.a);
    shop_close(&d.s);
}

/* ---- A job that is looked for ---- */

static void call_finds(void *arg)
{
    struct desk *d = arg;

    due__commit_finds(d->q);
}

static enum knock_far is_found(void *arg)
{
    const struct desk *d = arg;

    if (d->a.over && d->a.rc != 1)
        return KNOCK_ALL;
    return !d->a.over && d->a.rc == 1 ? KNOCK_NOTHING : KNOCK_PART;
}

static enum knock_far is_looked_for(void *arg)
{
    const struct desk *d = arg;

    return d->a.find == NULL ? KNOCK_ALL : KNOCK_NOTHING;
}

static void asks(struct desk *d)
{
    due__lock_acquire(&d->c->calls);
    d->a.find = &d->id;
    d->a.until_ns = DUE_FOREVER;
    d->a.rc = 1;
    due__lock_release(&d->c->calls);
}

Test(changes_locked, who_has_a_job_looked_for_is_told_under_the_lock_and_then_woken, .timeout = 30)
{
    struct desk d;

    desk_make(&d);
    begin(&d, &d.a);
    asks(&d);
    KNOCK_IS(knock_nth(&d.c->calls, 1, call_finds, is_looked_for, &d), KNOCK_UNDER);
    due__submission_end(d.q, &d.a);
    begin(&d, &d.a);
    asks(&d);
    KNOCK_IS(knock_nth(&d.c->calls, 2, call_finds, is_found, &d), KNOCK_UNDER);
    due__submission_end(d.q, &d.a);
    begin(&d, &d.a);
    asks(&d);
    knock_asleep(&d.a.waiter->bell);
    KNOCK_IS(knock_bell(&d.a.waiter->bell, call_finds, is_found, &d), KNOCK_UNDER);
    due__submission_end(d.q, &d.a);
    shop_close(&d.s);
}

static void call_ask(void *arg)
{
    struct desk *d = arg;
    struct due__deadline by = { .at_ns = due__monotonic_now() + DUE_MS(1) };
    uint32_t number, generation;

    cr_expect_eq(due__commit_find(d->q, d->id, &by, &number, &generation), DUE_ETIMEDOUT);
}

/* A call that comes while what is stored is being read, and somebody else has the key. */
static void reading(struct desk *d)
{
    desk_make(d);
    due__lock_acquire(&d->c->key);
    due__store_seq(&d->c->reader, DUE__READER_JOBS);
}

static void end_reading(struct desk *d)
{
    due__store_seq(&d->c->reader, DUE__READER_SERVING);
    due__commit_leave(d->q, false);
    shop_close(&d->s);
}

static enum knock_far does_ask(void *arg)
{
    const struct due__submission *a = ((const struct desk *)arg)->c->first;

    if (a != NULL && a->find != NULL && a->until_ns != 0)
        return KNOCK_ALL;
    return a == NULL || (a->find == NULL && a->until_ns == 0) ? KNOCK_NOTHING : KNOCK_PART;
}

static enum knock_far asks_no_more(void *arg)
{
    const struct due__submission *a = ((const struct desk *)arg)->c->first;

    return a != NULL && a->find == NULL && a->until_ns != 0 ? KNOCK_ALL : KNOCK_NOTHING;
}

Test(changes_locked, a_call_asks_for_a_job_and_asks_no_more_under_the_lock, .timeout = 60)
{
    struct desk d;
    unsigned under[2] = { 0, 0 };

    for (unsigned n = 1; n <= 4; n++) {
        for (int more = 0; more < 2; more++) {
            reading(&d);
            under[more] += knock_nth(&d.c->calls, n, call_ask, more ? asks_no_more : does_ask,
                                     &d) == KNOCK_UNDER;
            end_reading(&d);
        }
    }
    if (KNOCKS) {
        cr_expect_eq(under[0], 1u);
        cr_expect_eq(under[1], 1u);
    }
}

/* ---- The key ---- */

Test(changes_locked, what_can_wait_is_noted_with_the_key, .timeout = 30)
{
    struct desk d;

    desk_make(&d);
    if (KNOCKS) {
        due__lock_acquire(&d.c->key);
        d.c->later = d.c->settings.later = true;
        due__bell_ring(&d.q->enqueue_bell);
        while (!knock_sleeps(&d.c->key))
            crew_sleep(DUE_US(100));
        cr_expect(d.c->later && d.c->settings.later, "the proxy does not have it yet");
        due__lock_release(&d.c->key);
        is_asleep(&d.q->enqueue_bell);
        cr_expect_not(d.c->later || d.c->settings.later);
    }
    shop_close(&d.s);
}

static unsigned interrupts; /* of the store */
static void (*real_interrupt)(due_store *store);

static void count_interrupt(due_store *store)
{
    interrupts++;
    real_interrupt(store);
}

static void call_stop(void *arg)
{
    struct desk *d = arg;

    due__commits_stop(d->q, 0);
}

static enum knock_far is_interrupted(void *arg)
{
    (void)arg;
    return interrupts > 0 ? KNOCK_ALL : KNOCK_NOTHING;
}

/* Else a store that blocks keeps the key, and the close waits for it. */
Test(changes_locked, who_closes_interrupts_the_store_before_he_waits_for_the_key, .timeout = 30)
{
    struct due_store_verbs verbs;
    struct desk d;

    desk_make(&d);
    verbs = *d.s.store->verbs;
    real_interrupt = verbs.interrupt;
    verbs.interrupt = count_interrupt;
    d.s.store->verbs = &verbs;
    KNOCK_IS(knock(&d.c->key, call_stop, is_interrupted, &d), KNOCK_EARLY);
    cr_expect_eq(d.c->stopped, 1u);
    shop_close(&d.s);
}
