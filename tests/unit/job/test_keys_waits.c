/* Keyed enqueues that wait until another call has done with the job that has the key: also if that
 * gives up what it was about. */
#include "lab/shop.h"

/* A call that puts a job with the key, or finds that there is one. */
struct putter {
    struct crew_thread thread;
    struct shop *s;
    enum due_key_policy policy;
    int64_t at_ns;
    due_id id;
};

static int put_it(void *arg)
{
    struct putter *p = arg;

    return shop_put_as(p->s, p->policy, "jam", &p->id, .at_ns = p->at_ns);
}

static void store_away(struct shop *s)
{
    memory_store_fault(
        s->store,
        (struct memory_fault){ .verb = MEMORY_READY, .kind = MEMORY_AWAY, .times = MEMORY_ALWAYS });
}

/* What is cancelled was never sent, and the store stays away: so nothing is settled. */
static void expect_goes_on(int (*cancel)(struct shop *s, due_id id))
{
    struct shop s =
        shop_make(.with.confirm = DUE_CONFIRM_ASYNC, .with.store_timeout_ns = DUE_S(40));
    struct putter second = { .s = &s, .policy = DUE_KEY_REPLACE, .at_ns = 50 };
    due_id first;

    store_away(&s);
    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", &first, .at_ns = 50,
                             .topic = due_topic(s.lab.q, "hot")),
                 0);
    crew_go(&second.thread, put_it, &second);
    crew_until_asleep(&second.thread);
    cr_expect_eq(cancel(&s, first), 1);
    cr_expect_eq(crew_join(&second.thread), 0);
    cr_expect_not(due_id_equal(first, second.id));
    memory_store_forgive(s.store);
    cr_expect_eq(due_flush(s.lab.q, DUE_S(30)), 0);
    cr_expect(memory_disk_key(s.disk, "k", 1, &first, NULL));
    cr_expect(due_id_equal(first, second.id), "it is on the disk");
    shop_close(&s);
}

static int cancel_one(struct shop *s, due_id id)
{
    return due_cancel(s->lab.q, id, NULL) == 0;
}

static int cancel_batch(struct shop *s, due_id id)
{
    return due_cancel_batch(s->lab.q, &id, 1, NULL);
}

static int clear_topic(struct shop *s, due_id id)
{
    uint64_t cleared = 0;

    (void)id;
    return due_clear(s->lab.q, due_topic(s->lab.q, "hot"), &cleared) == 0 ? (int)cleared : -1;
}

Test(keys_waits, who_waits_for_a_job_that_is_cancelled_before_it_was_sent_goes_on, .timeout = 60)
{
    expect_goes_on(cancel_one);
    expect_goes_on(cancel_batch);
    expect_goes_on(clear_topic);
}

struct changer {
    struct crew_thread thread;
    struct shop *s;
    due_id id;
};

static int update_it(void *arg)
{
    struct changer *c = arg;

    return due_update(c->s->lab.q, c->id, "ham", 3);
}

static int move_it(void *arg)
{
    struct changer *c = arg;

    return due_reschedule(c->s->lab.q, c->id, 70);
}

static int put_earlier(void *arg)
{
    struct changer *c = arg;

    return shop_put_as(c->s, DUE_KEY_REPLACE, "ham", NULL, .at_ns = 30);
}

/* A change whose time is up before it was sent.  Who waits for it, and began half of that time
 * later, finds then that there is nothing to be changed. */
Test(keys_waits, who_waits_for_a_change_that_is_given_up_goes_on, .timeout = 60)
{
    int (*const changes[])(void *) = { update_it, move_it, put_earlier };

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct shop s = shop_make(.with.store_timeout_ns = DUE_S(1));
        struct putter second = { .s = &s, .policy = DUE_KEY_EARLIEST, .at_ns = 90 };
        struct changer first = { .s = &s };

        cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", &first.id, .at_ns = 50), 0);
        store_away(&s);
        crew_go(&first.thread, changes[i], &first);
        crew_until_asleep(&first.thread);
        crew_sleep(DUE_MS(500));
        crew_go(&second.thread, put_it, &second);
        cr_expect_eq(crew_join(&first.thread), DUE_ETIMEDOUT, "%zu", i);
        cr_expect_eq(crew_join(&second.thread), 0, "%zu", i);
        cr_expect(due_id_equal(first.id, second.id));
        memory_store_forgive(s.store);
        shop_close(&s);
    }
}
