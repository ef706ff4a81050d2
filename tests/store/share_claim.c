/* share_claim.c - what a claim gets, and in which order. */
#include "store/share_frame.h"

static size_t put_one(struct sharing *t, const char *topic, int64_t in_ns)
{
    size_t job = sharing_job(t, topic, in_ns);

    sharing_put(t, job);
    (void)sharing_sent(t, 0);
    return job;
}

static void gets_nothing_of_nothing(struct sharing *t)
{
    if (!sharing_all_join(t, 1))
        return;
    sharing_claim(t, 5, 5, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, NULL, 0), "an empty queue");
    SHARE_CHECK(t, t->answer.more == 0 && t->answer.alarm_ns == -1, "it does not wait");
}

static void gets_nothing_early(struct sharing *t)
{
    if (!sharing_all_join(t, 1))
        return;
    size_t job = sharing_job(t, "a", DUE_US(400500));
    sharing_put(t, job);
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    for (int i = 0; i < 20; i++) {
        sharing_claim(t, 1, 0, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, 0), "claim");
        bool due = t->answer.now_ns >= t->base.jobs[job].record.until_ns;
        SHARE_CHECK(t, t->n_held == 0 || due, "it is early");
        SHARE_CHECK(t, t->n_held == 1 || !due, "it is not there when it is due");
        if (due)
            return;
        sharing_pass(t, DUE_MS(50));
    }
    SHARE_CHECK(t, false, "the time has not come");
}

static void gets_no_more_than_it_needs(struct sharing *t)
{
    size_t jobs[5];

    if (!sharing_all_join(t, 1))
        return;
    for (int i = 0; i < 5; i++)
        jobs[i] = put_one(t, "a", -DUE_MS(50 - i));
    sharing_claim(t, 2, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, jobs, 2), "two");
    sharing_claim(t, 1, 1, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, jobs + 2, 2), "one, and one more");
    sharing_claim(t, 7, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, jobs + 4, 1), "what is left");
}

static void gets_jobs_in_order(struct sharing *t)
{
    size_t order[6];
    int64_t base_ns;

    t->by_rank = false;
    if (!sharing_all_join(t, 1))
        return;
    base_ns = sharing_now(t) / 1000 * 1000 - DUE_MS(100);
    /* By deadline, then priority, then arrival; put the other way round. */
    static const int64_t late_us[] = { 0, 5, 5, 5, 5, 9 };
    static const int priority[] = { 0, 255, 7, 7, 0, 200 };
    static const int arrival[] = { 9, 8, 3, 4, 1, 0 };
    for (int i = 5; i >= 0; i--) {
        order[i] = suite_job(&t->base, "a", base_ns + DUE_US(late_us[i]), "x", 1);
        due_record *r = &t->base.jobs[order[i]].record;

        r->priority = priority[i];
        r->id = suite_id(priority[i], t->base.info[0].writer, (uint64_t)(1000 + arrival[i]));
        sharing_put(t, order[i]);
    }
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    sharing_claim(t, 6, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, order, 6), "in order");
}

static void gets_the_named_topics_only(struct sharing *t)
{
    static const char *const two[] = { "a", "c" };
    static const char *const unknown[] = { "nobody", "b" };

    if (!sharing_all_join(t, 1))
        return;
    (void)put_one(t, "a", -DUE_MS(5));
    size_t b = put_one(t, "b", -DUE_MS(9));
    size_t c = put_one(t, "c", -DUE_MS(5));
    sharing_claim(t, 5, 0, SHARE_LONG_NS);
    sharing_of(t, two + 1, 1);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &c, 1), "one topic");
    sharing_claim(t, 5, 0, SHARE_LONG_NS);
    sharing_of(t, two, 2);
    SHARE_CHECK(t, sharing_sent(t, 0) && t->n_held == 1, "the other of the two");
    sharing_claim(t, 5, 0, SHARE_LONG_NS);
    sharing_of(t, unknown, 2);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &b, 1), "a topic that nobody knows");
}

/* A server is told the names of a few topics only in each exchange. */
static void gets_jobs_of_many_topics(struct sharing *t)
{
    char name[16];

    if (!sharing_all_join(t, 2))
        return;
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "topic %d", i);
        (void)put_one(t, name, i % 3 == 2 ? SHARE_LATER_NS : -DUE_MS(i));
    }
    SHARE_CHECK(t, sharing_drain(t, 1, 20), "of all topics");
}

static void names_eight_topics(struct sharing *t)
{
    static const char *const names[] = { "1", "2", "3", "4", "5", "6", "7", "8" };

    if (!sharing_all_join(t, 1))
        return;
    for (int i = 0; i < 8; i++)
        (void)put_one(t, names[i], -DUE_MS(5));
    (void)put_one(t, "9", -DUE_MS(5));
    sharing_claim(t, 20, 0, SHARE_LONG_NS);
    sharing_of(t, names, DUE_CLAIM_TOPICS);
    SHARE_CHECK(t, sharing_sent(t, 0) && t->n_held == 8, "%zu jobs", t->n_held);
    SHARE_CHECK(t, sharing_drain(t, 0, 1), "the ninth");
}

static void gets_each_job_once(struct sharing *t)
{
    if (!sharing_all_join(t, 3))
        return;
    for (int i = 0; i < 100; i++)
        sharing_put(t, suite_job(&t->base, i % 2 ? "a" : "b", DUE_S(1600000000) + i, "x", 1));
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    for (int i = 0; i < 60; i++) {
        sharing_claim(t, 1 + (size_t)i % 3, 0, SHARE_LONG_NS);
        int s = i % 3;
        SHARE_CHECK(t, sharing_sent(t, s), "claim %d", i);
        for (size_t k = 0; k < t->n_held; k++)
            SHARE_CHECK(t, t->base.jobs[t->held[k].job].seen == 1, "job %zu came twice",
                        t->held[k].job);
    }
    for (size_t i = 0; i < 100; i++)
        SHARE_CHECK(t, t->base.jobs[i].seen == 1, "job %zu did not come", i);
}

static void gets_again_what_a_lease_let_go(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)), SHARE_SHORT_NS, &h))
        return;
    for (int i = 0; i < 3; i++) {
        int64_t over_ns = t->answer.now_ns + SHARE_SHORT_NS;

        sharing_claim(t, 1, 0, SHARE_SHORT_NS);
        SHARE_CHECK(t, sharing_sent(t, 1), "claim");
        SHARE_CHECK(t, t->n_held == 0 || t->answer.now_ns >= over_ns, "held");
        if (t->n_held == 0) {
            sharing_pass(t, SHARE_PASS_NS);
            sharing_claim(t, 1, 0, SHARE_SHORT_NS);
            int s = i == 1;
            SHARE_CHECK(t, sharing_sent(t, s) && sharing_got(t, &h.job, 1), "due again");
        }
        SHARE_CHECK(t, llabs(t->held[0].lapsed_ns - over_ns) <= DUE_US(2), "%lld ns off",
                    (long long)(t->held[0].lapsed_ns - over_ns));
        SHARE_CHECK(t, t->held[0].held != h.held, "by another lease");
        h = t->held[0];
    }
}

/* Some of a process's leases are over, and something new is due besides. */
static void gets_what_lapsed_and_what_is_new(struct sharing *t)
{
    struct sharing_held h[3];
    bool lapsed = false;

    if (!sharing_all_join(t, 2))
        return;
    for (int i = 0; i < 3; i++)
        if (!sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(5)),
                          i == 1 ? SHARE_LONG_NS : SHARE_SHORT_NS, &h[i]))
            return;
    sharing_pass(t, SHARE_PASS_NS);
    size_t fresh = put_one(t, "a", -DUE_MS(1));
    sharing_claim(t, 10, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && t->n_held == 3, "%zu jobs", t->n_held);
    for (size_t i = 0; i < 3; i++) {
        SHARE_CHECK(t, t->held[i].job != h[1].job, "what is held stays so");
        SHARE_CHECK(t, (t->held[i].lapsed_ns > 0) == (t->held[i].job != fresh), "told which");
        lapsed |= t->held[i].lapsed_ns > 0;
    }
    SHARE_CHECK(t, lapsed, "those of the ended leases");
}

/* The fencing token of what is claimed. */
static void stamps_rise_in_all_processes(struct sharing *t)
{
    uint64_t last = 0;

    if (!sharing_all_join(t, 3))
        return;
    for (int i = 0; i < 12; i++) {
        int s = i % 3;

        if (i % 4 == 3)
            sharing_put(t, sharing_job(t, "a", -DUE_MS(1)));
        else
            sharing_claim(t, 1, 0, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, s), "exchange %d", i);
        SHARE_CHECK(t, t->answer.stamp > last, "stamp %d", i);
        last = t->answer.stamp;
    }
}

const struct suite_test_shared share_claim_tests[] = {
    { "claim: gets nothing of nothing", gets_nothing_of_nothing },
    { "claim: gets nothing early", gets_nothing_early },
    { "claim: gets no more than it needs", gets_no_more_than_it_needs },
    { "claim: by deadline, priority, arrival", gets_jobs_in_order },
    { "claim: of the named topics only", gets_the_named_topics_only },
    { "claim: of eight named topics", names_eight_topics },
    { "claim: of many topics", gets_jobs_of_many_topics },
    { "claim: each job once", gets_each_job_once },
    { "claim: again what a lease let go", gets_again_what_a_lease_let_go },
    { "claim: what lapsed, and what is new", gets_what_lapsed_and_what_is_new },
    { "claim: stamps rise in all processes", stamps_rise_in_all_processes },
    { NULL, NULL },
};
