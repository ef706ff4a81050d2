/* A call on a stored queue that has waited for the store is inside until it returns: whoever is
 * told that the queue is closed may free it at once. */
#include "queue/queue.h"
#include "lab/shop.h"
#include "lab/take.h"

#define LEASE_NS DUE_S(1)

struct caller {
    struct crew_thread thread;
    struct shop s;
    struct memory_limiter *limiter;
    due_job jobs[2];
};

/* Two jobs are reserved, each for the last time, and the store stands. */
static void begin(struct caller *c)
{
    due_retry once = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };

    c->s = shop_make(.with.proxies = DUE_PROXIES_ADAPTIVE);
    c->limiter = memory_limiter_new(c->s.disk);
    for (int i = 0; i < 2; i++) {
        lab_enqueue(&c->s.lab, "tea", .more = EXTRA(.retry = &once));
        cr_assert_eq(take_leased(c->s.lab.q, &c->jobs[i], LEASE_NS, DUE_S(10)), 0);
    }
    memory_store_fault(c->s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                          .kind = MEMORY_BLOCK,
                                                          .limiter = c->limiter });
}

/* It waits: besides its wait the call itself counts. */
static void expect_inside(struct caller *c, int (*call)(void *arg), int answer)
{
    const unsigned caller = 2;

    crew_go(&c->thread, call, c);
    memory_limiter_reached(c->limiter, 1);
    crew_until_asleep(&c->thread);
    cr_expect_not(atomic_load(&c->thread.back));
    cr_expect_eq(due__load_seq(&c->s.lab.q->inside), 2 * caller);
    memory_limiter_open(c->limiter);
    cr_expect_eq(crew_join(&c->thread), answer);
    cr_expect_eq(due__load_seq(&c->s.lab.q->inside), 0u);
}

static void end(struct caller *c)
{
    for (int i = 0; i < 2; i++)
        due_job_done(&c->jobs[i]);
    memory_limiter_free(c->limiter);
    shop_close(&c->s);
}

static int list(void *arg)
{
    struct caller *c = arg;
    due_info infos[2];
    uint64_t cursor = 0;

    return due_list(c->s.lab.q, &cursor, infos, 2);
}

static int list_dead(void *arg)
{
    struct caller *c = arg;
    due_dead dead[2];
    uint64_t cursor = 0;

    return due_list_dead(c->s.lab.q, &cursor, dead, 2);
}

static int ack_both(void *arg)
{
    struct caller *c = arg;

    return due_ack_batch(c->jobs, 2, NULL);
}

static int pause_it(void *arg)
{
    struct caller *c = arg;

    return due_pause(c->s.lab.q, 0);
}

static int pause_all(void *arg)
{
    struct caller *c = arg;

    return due_pause(c->s.lab.q, DUE_ALL_TOPICS);
}

Test(stored_inside, is_who_lists_until_the_call_returns, .timeout = 60)
{
    struct caller c;

    begin(&c);
    lab_advance(&c.s.lab, 2 * LEASE_NS);
    expect_inside(&c, list, 0);
    end(&c);
}

Test(stored_inside, is_who_lists_the_dead_until_the_call_returns, .timeout = 60)
{
    struct caller c;

    begin(&c);
    lab_advance(&c.s.lab, 2 * LEASE_NS);
    expect_inside(&c, list_dead, 2);
    end(&c);
}

Test(stored_inside, is_who_acks_a_batch_until_the_call_returns, .timeout = 60)
{
    struct caller c;

    begin(&c);
    expect_inside(&c, ack_both, 2);
    end(&c);
}

Test(stored_inside, is_who_holds_back_a_topic_until_the_call_returns, .timeout = 60)
{
    struct caller c;

    begin(&c);
    expect_inside(&c, pause_it, 0);
    end(&c);
}

Test(stored_inside, is_who_holds_back_all_topics_until_the_call_returns, .timeout = 60)
{
    struct caller c;

    begin(&c);
    expect_inside(&c, pause_all, 0);
    end(&c);
}
