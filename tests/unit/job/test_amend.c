/* A job that is to be changed: which may be meant, what its decider says, and that it is as it was
 * where nothing comes of it.  At once, claimed for it, and several together. */
#include "lab/shop.h"
#include "lab/take.h"

#include "job/amend.h"
#include "job/claim.h"
#include "job/dead_letter.h"
#include "queue/queue.h"

static const due_retry never = { .kind = DUE_RETRY_FIXED, .attempts_max = 1 };

/* ---- Deciders: what they were asked, and what they say ---- */

struct asked {
    struct due__amendment a; /* first */
    int says;
    enum due__purpose purpose;
    unsigned times;
    bool was_lengthy;
};

static int decide(struct due_queue *q, struct due__amendment *a, uint64_t w, int64_t now_ns)
{
    struct asked *it = (struct asked *)(void *)a;

    (void)w;
    cr_expect_eq(now_ns, due_now(q));
    it->times++;
    it->was_lengthy = a->lengthy;
    a->purpose = it->purpose;
    a->want_ns = 70;
    return it->says;
}

/* Of several, where each is asked with a copy. */
static int says_of_all;
static unsigned asked_of_all;

static int decide_all(struct due_queue *q, struct due__amendment *a, uint64_t w, int64_t now_ns)
{
    (void)q;
    (void)w;
    (void)now_ns;
    a->purpose = DUE__KICK;
    a->want_ns = 70;
    return asked_of_all++ % 2 == 0 ? 0 : says_of_all;
}

/* ---- Jobs ---- */

enum kind { WAITS, READY, LEASED, TAKEN, DEAD, GONE, KINDS };

struct made {
    struct due__use use;
    due_id id;
    due_job job; /* LEASED, TAKEN */
};

static struct made make(struct lab *lab, enum kind kind)
{
    struct made m = { .job = { .queue = NULL } };

    m.id = lab_enqueue(lab, "tea", .at_ns = kind == WAITS ? 60 : 50,
                       .more = kind == DEAD ? EXTRA(.retry = &never) : NULL);
    cr_assert_eq(due__id_find(lab->q, m.id, NULL, &m.use.number, &m.use.generation), 0);
    if (kind == READY)
        cr_assert_geq(due_poll(lab->q, NULL), 1);
    else if (kind == TAKEN)
        cr_assert_eq(due_dequeue(lab->q, &m.job, DUE_S(20)), 0);
    else if (kind == LEASED || kind == DEAD)
        cr_assert_eq(take_leased(lab->q, &m.job, 1000, DUE_S(20)), 0);
    if (kind == DEAD)
        cr_assert_eq(due_nack(&m.job, 0), 0);
    if (kind == GONE)
        cr_assert_eq(due_cancel(lab->q, m.id, NULL), 0);
    return m;
}

static void unmake(struct lab *lab, struct made *m)
{
    if (m->job.queue != NULL && m->job.token != 0)
        cr_expect_eq(due_ack(&m->job), 0);
    else
        due_job_done(&m->job);
    due_clear(lab->q, DUE_ALL_TOPICS, NULL);
    due_clear_dead(lab->q, DUE_ALL_TOPICS, NULL);
    struct due_stats s = lab_stats(lab);
    cr_expect_eq(s.waiting + s.leased + s.dead + s.lent, 0u);
}

/* What a call that means @of finds: 0, or an error. */
static int obstacle(enum kind kind, unsigned of)
{
    switch (kind) {
    case WAITS:
    case READY:
        return of & DUE__IF_WAITING ? 0 : DUE_ENOENT;
    case DEAD:
        return of & DUE__IF_DEAD ? 0 : DUE_ENOENT;
    case LEASED:
    case TAKEN:
        return of & DUE__IF_WAITING ? DUE_EBUSY : DUE_ENOENT;
    default:
        return DUE_ENOENT;
    }
}

static void expect_as_it_was(struct lab *lab, const struct due_stats *was, const char *how)
{
    struct due_stats is = lab_stats(lab);

    cr_expect_eq(is.waiting, was->waiting, "%s", how);
    cr_expect_eq(is.ready, was->ready, "%s", how);
    cr_expect_eq(is.leased, was->leased, "%s", how);
    cr_expect_eq(is.dead, was->dead, "%s", how);
    cr_expect_eq(is.kicked, was->kicked, "%s", how);
}

static int amend(struct lab *lab, struct asked *it, bool claimed)
{
    struct due__deadline by = { 0 };

    return claimed ? due__amend_claimed(lab->q, &it->a, &by) : due__amend_at_once(lab->q, &it->a);
}

static void expect_amended(struct lab *lab, enum kind kind, unsigned of, int says, bool claimed)
{
    struct made m = make(lab, kind);
    struct asked it = {
        .a = { .number = m.use.number, .generation = m.use.generation, .of = of, .decide = decide },
        .says = says,
        .purpose = kind == DEAD ? DUE__REVIVE : DUE__MOVE
    };
    struct due_stats was = lab_stats(lab);
    char how[100];
    due_info info;

    snprintf(how, sizeof how, "kind %d, of %u, says %d, claimed %d", kind, of, says, claimed);
    it.a.generation++;
    cr_expect_eq(amend(lab, &it, claimed), DUE_ENOENT, "%s", how);
    it.a.generation--;
    cr_expect_eq(it.times, 0u, "%s", how);
    int rc = amend(lab, &it, claimed);
    int expected = obstacle(kind, of) != 0 ? obstacle(kind, of) : says;
    cr_expect_eq(rc, expected, "%s: %d", how, rc);
    cr_expect_eq(it.times, obstacle(kind, of) == 0, "%s", how);
    if (obstacle(kind, of) == 0)
        cr_expect_eq(it.was_lengthy, claimed, "%s", how);
    if (rc != 0) {
        expect_as_it_was(lab, &was, how);
    } else {
        cr_expect_eq(due_find(lab->q, m.id, &info), 0, "%s", how);
        cr_expect_eq(info.deadline_ns, 70, "%s", how);
        cr_expect_eq(lab_stats(lab).waiting, 1u, "%s", how);
        cr_expect_eq(lab_stats(lab).dead, 0u, "%s", how);
    }
    unmake(lab, &m);
}

static void expect_nothing_comes_of_it(struct lab *lab, enum kind kind, bool claimed)
{
    struct made m = make(lab, kind);
    struct asked it = { .a = { .number = m.use.number,
                               .generation = m.use.generation,
                               .of = DUE__IF_WAITING | DUE__IF_DEAD,
                               .decide = decide },
                        .purpose = DUE__NO_CHANGE };
    struct due_stats was = lab_stats(lab);

    cr_expect_eq(amend(lab, &it, claimed), 0);
    cr_expect_eq(it.times, 1u);
    expect_as_it_was(lab, &was, "nothing comes of it");
    unmake(lab, &m);
}

static void each_way(struct lab *lab, bool claimed)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        for (unsigned of = 1; of <= 3; of++) {
            expect_amended(lab, kind, of, 0, claimed);
            expect_amended(lab, kind, of, DUE_ENOMEM, claimed);
            expect_amended(lab, kind, of, DUE__AGAIN, claimed);
        }
    }
    expect_nothing_comes_of_it(lab, WAITS, claimed);
    expect_nothing_comes_of_it(lab, READY, claimed);
    expect_nothing_comes_of_it(lab, DEAD, claimed);
}

LAB_TEST(amend, finds_whom_it_means_and_does_what_is_decided)
{
    struct lab lab = lab_open(.start_ns = 50);

    each_way(&lab, false);
    each_way(&lab, true);
    lab_close(&lab);
    lab = lab_open(.start_ns = 50, .with.metrics = 1);
    each_way(&lab, false);
    lab_close(&lab);
    if (lab_proxies == DUE_PROXIES_NEVER)
        return;
    struct shop s = shop_make(.start_ns = 50);
    each_way(&s.lab, true);
    shop_close(&s);
}

/* ---- Several ---- */

/* Dead ones, of which each second one is decided otherwise; among those that are not dead. */
static void expect_each(struct lab *lab, bool claimed, int says)
{
    enum { MADE = 10, KICKED = 3 };
    struct made m[MADE];
    struct due__use uses[MADE];
    const struct due__amendment a = { .of = DUE__IF_DEAD, .decide = decide_all };
    struct due__deadline by = { 0 };
    uint64_t done = 100;

    for (size_t i = 0; i < MADE; i++) {
        m[i] = make(lab, i < 6 ? DEAD : i < 8 ? WAITS : GONE);
        uses[i] = m[i].use;
    }
    says_of_all = says;
    asked_of_all = 0;
    int rc = claimed ? due__amend_all_claimed(lab->q, &a, uses, MADE, &by, &done)
                     : due__amend_each(lab->q, &a, uses, MADE, &done);
    cr_expect_eq(rc, says, "claimed %d: %d", claimed, rc);
    cr_expect_eq(asked_of_all, 6u);
    cr_expect_eq(done, 100u + (says == 0 ? 6 : KICKED), "claimed %d", claimed);
    struct due_stats s = lab_stats(lab);
    cr_expect_eq(s.dead, says == 0 ? 0u : 6u - KICKED, "claimed %d", claimed);
    cr_expect_eq(s.waiting, 2u + (says == 0 ? 6 : KICKED), "claimed %d", claimed);
    for (size_t i = 0; i < MADE; i++)
        due_job_done(&m[i].job);
    unmake(lab, &m[0]);
}

/* None of them: then nothing is handed on. */
static void expect_none(struct lab *lab, bool claimed)
{
    struct made m = make(lab, WAITS);
    const struct due__amendment a = { .of = DUE__IF_DEAD, .decide = decide_all };
    struct due__deadline by = { 0 };
    uint64_t done = 100;

    asked_of_all = 0;
    cr_expect_eq(claimed ? due__amend_all_claimed(lab->q, &a, &m.use, 1, &by, &done)
                         : due__amend_each(lab->q, &a, &m.use, 1, &done),
                 0);
    cr_expect_eq(done, 100u);
    cr_expect_eq(asked_of_all, 0u);
    unmake(lab, &m);
}

LAB_TEST(amend, of_several_does_what_is_decided_of_each)
{
    struct lab lab = lab_open(.start_ns = 50);

    for (int claimed = 0; claimed < 2; claimed++) {
        expect_each(&lab, claimed != 0, 0);
        expect_each(&lab, claimed != 0, DUE_ENOMEM);
        expect_none(&lab, claimed != 0);
    }
    lab_close(&lab);
    if (lab_proxies == DUE_PROXIES_NEVER)
        return;
    struct shop s = shop_make(.start_ns = 50);
    expect_each(&s.lab, true, 0);
    expect_each(&s.lab, true, DUE_ENOMEM);
    expect_none(&s.lab, true);
    shop_close(&s);
}

/* A queue that closes changes nothing more. */
LAB_TEST(amend, of_a_queue_that_is_closed_is_refused)
{
    struct lab lab = lab_open(.start_ns = 50);
    struct made m = make(&lab, LEASED);
    struct asked it = { .a = { .number = m.use.number,
                               .generation = m.use.generation,
                               .of = DUE__IF_WAITING,
                               .decide = decide },
                        .purpose = DUE__MOVE };

    cr_assert_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_S(20)), 0);
    cr_expect_eq(due__amend_at_once(lab.q, &it.a), DUE_ECLOSED);
    cr_expect_eq(it.times, 0u);
    cr_expect_eq(due_ack(&m.job), 0);
    lab_close(&lab);
}

/* ---- Claimed for it ---- */

struct claims {
    struct lab *lab;
    struct due__use use;
};

static int claim_main(void *arg)
{
    const struct claims *it = arg;
    struct due__deadline by = { 0 };

    return due__claim_sent(it->lab->q, it->use.number, it->use.generation, NULL, &by);
}

static int settled_main(void *arg)
{
    const struct claims *it = arg;
    struct due__deadline by = { 0 };
    uint64_t w;

    return due__claim_settled(it->lab->q, it->use.number, it->use.generation, NULL, &by, &w);
}

/* The put is under way, and what claims the job waits for its end; and has it then. */
Test(amend, a_job_on_its_way_is_claimed_when_it_is_in_the_store, .timeout = 60)
{
    for (int kind = 0; kind < 2; kind++) {
        struct shop s = shop_make(.start_ns = 50, .with.confirm = DUE_CONFIRM_ASYNC);
        struct memory_limiter *gate = memory_limiter_new(s.disk);
        struct claims it = { .lab = &s.lab };
        struct crew_thread thread;

        memory_store_fault(
            s.store,
            (struct memory_fault){ .verb = MEMORY_COMMIT, .kind = MEMORY_BLOCK, .limiter = gate });
        due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 60);
        cr_assert_eq(due__id_find(s.lab.q, id, NULL, &it.use.number, &it.use.generation), 0);
        memory_limiter_reached(gate, 1);
        crew_go(&thread, kind ? settled_main : claim_main, &it);
        crew_until_asleep(&thread);
        memory_limiter_open(gate);
        cr_expect_eq(crew_join(&thread), 0);
        uint64_t w = due__load_acquire(&due__job_at(&s.lab.q->slab, it.use.number)->word);
        cr_expect_eq(due__word_state(w), kind ? DUE__CLAIMED : DUE__CHANGING);
        due__give_up(s.lab.q, it.use.number);
        lab_turn_to(&s.lab, 60);
        cr_expect_str_eq(lab_dequeue(&s.lab), "tea");
        memory_limiter_free(gate);
        shop_close(&s);
    }
}
