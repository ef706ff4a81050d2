/* share_size.c - none and many, short and long, and a store that is full. */
#include "store/share_frame.h"

/* So many jobs that have been due for long, of two topics. */
static bool put_many(struct sharing *t, int s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sharing_put(t, suite_job(&t->base, i % 3 ? "a" : "b", DUE_S(1600000000) + (int64_t)i * 1000,
                                 &i, sizeof i));
        if (t->base.n_changes == t->base.info[s].batch_changes && !sharing_sent(t, s))
            return false;
    }
    return t->base.n_changes == 0 || sharing_sent(t, s);
}

/* What was claimed last is done, at most so many in an exchange. */
static bool end_all(struct sharing *t, int s)
{
    size_t n = t->n_held;
    struct sharing_held *held = calloc(n + 1, sizeof *held);
    bool fine = held != NULL;

    if (fine && n > 0)
        memcpy(held, t->held, n * sizeof *held);
    for (size_t i = 0; fine && i < n; i++) {
        sharing_done(t, held[i]);
        if (t->base.n_changes == t->base.info[s].batch_changes)
            fine = sharing_sent(t, s);
    }
    if (fine && t->base.n_changes > 0)
        fine = sharing_sent(t, s);
    free(held);
    return fine;
}

static void takes_any_number(struct sharing *t)
{
    static const size_t sizes[] = { 1, 2, 255, 256, 257, 1000 };
    size_t total = 0;

    if (!sharing_all_join(t, 2))
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        SHARE_CHECK(t, put_many(t, 0, sizes[i]), "put %zu", sizes[i]);
        size_t got = 0;
        for (int calls = 0; got < sizes[i] && calls < 100; calls++) {
            sharing_claim(t, sizes[i], 0, SHARE_LONG_NS);
            SHARE_CHECK(t, sharing_sent(t, 1), "claim %zu", sizes[i]);
            SHARE_CHECK(t, t->n_held > 0, "of %zu only %zu came", sizes[i], got);
            got += t->n_held;
            SHARE_CHECK(t, end_all(t, 1), "done");
        }
        SHARE_CHECK(t, got == sizes[i], "%zu instead of %zu", got, sizes[i]);
        total += got;
    }
    for (size_t i = 0; i < total; i++)
        SHARE_CHECK(t, t->base.jobs[i].seen == 1, "job %zu", i);
    SHARE_CHECK(t, sharing_drain(t, 0, 0), "nothing is left");
}

static void keeps_order_among_thousands(struct sharing *t)
{
    size_t n = t->maker->store.jobs != 0 ? t->maker->store.jobs : 10000;
    int64_t last_ns[2] = { 0, 0 };
    size_t got = 0;

    if (!sharing_all_join(t, 3) || !put_many(t, 0, n))
        return;
    for (int i = 0; got < n; i++) {
        int s = i % 3;

        sharing_claim(t, 50, 50, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, s), "claim %d", i);
        SHARE_CHECK(t, t->n_held > 0, "%zu of %zu", got, n);
        for (size_t k = 0; k < t->n_held; k++) {
            const struct suite_job *job = &t->base.jobs[t->held[k].job];
            int64_t *last = &last_ns[job->topic];

            SHARE_CHECK(t, job->record.until_ns > *last, "out of order");
            *last = job->record.until_ns;
        }
        got += t->n_held;
        SHARE_CHECK(t, end_all(t, s), "done");
    }
    SHARE_CHECK(t, got == n, "%zu of %zu", got, n);
    for (size_t i = 0; i < n; i++)
        SHARE_CHECK(t, t->base.jobs[i].seen == 1, "job %zu", i);
}

static void keeps_short_and_long_payloads(struct sharing *t)
{
    static const size_t sizes[] = { 0, 1, 64, 16383, 16384, 16385, 100000, 1 << 20 };
    size_t n = sizeof sizes / sizeof sizes[0];
    unsigned char *bytes = malloc(1 << 20);

    SHARE_CHECK(t, bytes != NULL, "memory");
    for (size_t i = 0; i < 1 << 20; i++)
        bytes[i] = (unsigned char)(suite_below(&t->base, 256));
    if (sharing_all_join(t, 2)) {
        int64_t base_ns = sharing_now(t) - DUE_S(1);

        for (size_t i = 0; i < n; i++)
            sharing_put(t, suite_job(&t->base, "a", base_ns + (int64_t)i * 1000, bytes, sizes[i]));
        if (sharing_sent(t, 0)) {
            sharing_claim(t, n, 0, SHARE_SHORT_NS);
            (void)suite_check(&t->base, sharing_sent(t, 1) && t->n_held == n, __FILE__, __LINE__,
                              "%zu", t->n_held);
        }
        sharing_pass(t, SHARE_PASS_NS);
        if (!t->base.failed && sharing_drain(t, 0, n))
            (void)suite_answers(&t->base, sharing_find(t, 1, n - 1), 0, __FILE__, __LINE__, "find");
    }
    free(bytes);
}

/* Each may be given back, and come again. */
static void keeps_long_ones_that_are_given_back(struct sharing *t)
{
    static char bytes[40000];
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, sharing_job_of(t, "a", -DUE_MS(5), bytes, sizeof bytes), SHARE_LONG_NS,
                      &h))
        return;
    sharing_back(t, h, sharing_now(t) - DUE_MS(1));
    SHARE_CHECK(t, sharing_sent(t, 0), "given back");
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &h.job, 1), "all of it");
    sharing_bury(t, t->held[0], "too long");
    SHARE_CHECK(t, sharing_sent(t, 1), "buried");
    SHARE_ANSWERS(t, sharing_find(t, 0, h.job), 0);
    sharing_strike(t, h.job);
    SHARE_CHECK(t, sharing_sent(t, 0), "struck off");
    SHARE_ANSWERS(t, sharing_find(t, 0, h.job), DUE_ENOENT);
}

static void takes_any_topic(struct sharing *t)
{
    char longest[DUE_TOPIC_LENGTH + 1];
    const char *const names[] = { "", "a b", "{x}", "\xff\n\"'\\", "*[?]", longest };

    memset(longest, 'n', DUE_TOPIC_LENGTH);
    longest[DUE_TOPIC_LENGTH] = '\0';
    if (!sharing_all_join(t, 2))
        return;
    for (int i = 0; i < 6; i++) {
        size_t job = sharing_job(t, names[i], -DUE_MS(5));

        sharing_put(t, job);
        SHARE_CHECK(t, sharing_sent(t, 0), "put %d", i);
        sharing_claim(t, 1, 0, SHARE_LONG_NS);
        sharing_of(t, &names[i], 1);
        SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &job, 1), "topic %d", i);
        sharing_release(t, t->held[0]);
        SHARE_CHECK(t, sharing_sent(t, 1), "released");
    }
    SHARE_CHECK(t, sharing_drain(t, 0, 6), "all of them, without their names");
}

/* It can be worked off, and that makes room; whoever follows in a group is let through for that. */
static void is_worked_off_when_full(struct sharing *t)
{
    struct sharing_held h;
    size_t jobs[2];
    size_t grouped[3];

    if (!suite_has(&t->base, t->maker->store.full != NULL, "no hook full") ||
        !sharing_all_join(t, 1))
        return;
    for (int i = 0; i < 2; i++) {
        jobs[i] = sharing_job(t, "a", i == 0 ? -DUE_MS(5) : SHARE_LATER_NS);
        sharing_put(t, jobs[i]);
    }
    for (int i = 0; i < 3; i++) {
        grouped[i] = sharing_grouped(t, "b", -DUE_MS(30) + i * DUE_MS(1), "g");
        sharing_put(t, grouped[i]);
    }
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    size_t more = sharing_job(t, "a", -DUE_MS(4));
    t->maker->store.full(t->maker->store.ctx, true);
    sharing_put(t, more);
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    SHARE_CHECK(t, t->results[0] == DUE_ENOSPC, "%s", due_error_name(t->results[0]));
    static const char *const topics[] = { "b", "a" };
    for (int i = 0; i < 2; i++) {
        sharing_claim(t, 2, 0, SHARE_LONG_NS);
        sharing_of(t, topics, 1);
        SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &grouped[i], 1), "one of a group");
        sharing_done(t, t->held[0]);
        SHARE_CHECK(t, sharing_sent(t, 0), "is done, and the next follows");
    }
    sharing_cancel(t, grouped[2]);
    SHARE_CHECK(t, sharing_sent(t, 0), "and is cancelled");
    sharing_claim(t, 2, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, jobs, 1), "claimed");
    h = t->held[0];
    sharing_extend(t, h, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0), "extended");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0), "done");
    sharing_cancel(t, jobs[1]);
    SHARE_CHECK(t, sharing_sent(t, 0), "cancelled");
    t->maker->store.full(t->maker->store.ctx, false);
    sharing_put(t, more);
    SHARE_CHECK(t, sharing_sent(t, 0), "there is room again");
    SHARE_CHECK(t, sharing_drain(t, 0, 1), "and it is there");
}

const struct suite_test_shared share_size_tests[] = {
    { "size: any number of jobs", takes_any_number },
    { "size: order among thousands", keeps_order_among_thousands },
    { "size: short and long payloads", keeps_short_and_long_payloads },
    { "size: long ones that are given back", keeps_long_ones_that_are_given_back },
    { "size: any topic", takes_any_topic },
    { "size: is worked off when full", is_worked_off_when_full },
    { NULL, NULL },
};
