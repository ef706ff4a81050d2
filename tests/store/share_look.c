/* share_look.c - what is counted and shown to whoever looks. */
#include <unistd.h>

#include "store/share_frame.h"

static void counts_each_state(struct sharing *t)
{
    struct due_census_all all;
    struct sharing_held h;

    if (!sharing_all_join(t, 2))
        return;
    if (!sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(9)), SHARE_LONG_NS, &h))
        return;
    sharing_bury(t, h, "no good");
    if (!sharing_sent(t, 0) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(8)), SHARE_LONG_NS, &h))
        return;
    for (int i = 0; i < 2; i++)
        sharing_put(t, sharing_job(t, "a", -DUE_MS(5 - i)));
    for (int i = 0; i < 3; i++)
        sharing_put(t, sharing_job(t, i < 2 ? "a" : "b", SHARE_LATER_NS));
    SHARE_CHECK(t, sharing_sent(t, 1), "put");
    SHARE_ANSWERS(t, sharing_census(t, 1, &all), 0);
    SHARE_CHECK(t, all.jobs == 7 && all.dead == 1 && all.processes == 2, "%llu %llu %llu",
                (unsigned long long)all.jobs, (unsigned long long)all.dead,
                (unsigned long long)all.processes);
    SHARE_CHECK(t, all.head_ns <= t->base.jobs[2].record.until_ns + 1000, "the head");
    struct due_census_topic a = sharing_counted("a");
    SHARE_CHECK(t, a.ready == 2 && a.leased == 1 && a.delayed == 2, "%llu %llu %llu",
                (unsigned long long)a.ready, (unsigned long long)a.leased,
                (unsigned long long)a.delayed);
    SHARE_CHECK(t, llabs(a.oldest_ns - t->base.jobs[2].record.until_ns) <= DUE_US(2), "oldest");
    struct due_census_topic b = sharing_counted("b");
    SHARE_CHECK(t, b.ready == 0 && b.leased == 0 && b.delayed == 1, "the other topic");
    SHARE_CHECK(t, b.oldest_ns == DUE_FOREVER, "nothing of it is due");
}

static void counts_what_has_lapsed_as_ready(struct sharing *t)
{
    struct due_census_all all;
    struct sharing_held h;

    if (!sharing_all_join(t, 1) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(9)), SHARE_SHORT_NS, &h))
        return;
    sharing_pass(t, SHARE_PASS_NS);
    SHARE_ANSWERS(t, sharing_census(t, 0, &all), 0);
    struct due_census_topic a = sharing_counted("a");
    SHARE_CHECK(t, a.ready == 1 && a.leased == 0 && a.delayed == 0, "ready");
    SHARE_CHECK(t, a.oldest_ns <= all.now_ns, "and due for a while");
}

static void counts_nothing_when_new(struct sharing *t)
{
    struct due_census_all all;

    if (!sharing_all_join(t, 1))
        return;
    SHARE_ANSWERS(t, sharing_census(t, 0, &all), 0);
    SHARE_CHECK(t, all.jobs == 0 && all.dead == 0 && all.processes == 1, "nothing");
    SHARE_CHECK(t, all.head_ns == DUE_FOREVER && all.now_ns > 0, "nothing is ahead");
}

static void shows_the_dead_in_pages(struct sharing *t)
{
    size_t shown[8];

    if (!sharing_all_join(t, 2))
        return;
    for (int i = 0; i < 5; i++) {
        struct sharing_held h;

        if (!sharing_have(t, 0, sharing_job(t, i % 2 ? "a" : "b", -DUE_MS(9)), SHARE_LONG_NS, &h))
            return;
        sharing_bury(t, h, i == 3 ? NULL : "no good");
        SHARE_CHECK(t, sharing_sent(t, 0), "buried");
        sharing_pass(t, DUE_MS(2));
    }
    SHARE_CHECK(t, sharing_dead(t, 1, 0, 2, shown) == 2 && shown[0] == 0 && shown[1] == 1, "two");
    SHARE_CHECK(t, sharing_dead(t, 1, 2, 8, shown) == 3 && shown[0] == 2 && shown[2] == 4, "rest");
    SHARE_CHECK(t, sharing_dead(t, 1, 5, 8, shown) == 0, "no more");
}

/* What pages of @max show of a topic (NULL: the dead), in order. */
static size_t all_pages(struct sharing *t, const char *topic, size_t max, size_t *jobs)
{
    struct due_page at = { .topic = topic, .from_ns = INT64_MIN };
    bool more = true;
    size_t n = 0;

    for (int i = 0; more && i < 100 && !t->base.failed; i++)
        n += sharing_page(t, 1, &at, max, jobs + n, &more);
    (void)suite_check(&t->base, !more, __FILE__, __LINE__, "the pages have no end");
    return n;
}

static bool same_jobs(const size_t *shown, const size_t *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (shown[i] != jobs[i])
            return false;
    return true;
}

/* Of one topic, those that nobody holds, by time and then by id, in pages of any size. */
static void shows_what_waits_in_pages(struct sharing *t)
{
    size_t jobs[20];
    size_t shown[20];
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, sharing_job(t, "a", -DUE_MS(9)), SHARE_LONG_NS, &h))
        return;
    int64_t now_ns = sharing_now(t) / 1000 * 1000;
    for (size_t i = 0; i < 12; i++) /* twice three, and six at one time; the last first */
        jobs[11 - i] = suite_job(
            &t->base, "a", now_ns + (i < 6 ? DUE_S(90) - (int64_t)(i / 3) * 1000 : 5000), "x", 1);
    for (size_t i = 0; i < 12; i++)
        sharing_put(t, jobs[i]);
    sharing_put(t, sharing_job(t, "b", -DUE_MS(5)));
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    for (size_t i = 0; i < 6; i++) { /* by id, of one time */
        size_t last = jobs[i];
        size_t k = i;
        for (; k > 0 && jobs[k - 1] > last; k--)
            jobs[k] = jobs[k - 1];
        jobs[k] = last;
    }
    for (size_t i = 6; i < 12; i++) {
        size_t last = jobs[i];
        size_t k = i;
        for (; k > (i < 9 ? 6u : 9u) && jobs[k - 1] > last; k--)
            jobs[k] = jobs[k - 1];
        jobs[k] = last;
    }
    for (size_t max = 1; max < 15; max++) {
        size_t n = all_pages(t, "a", max, shown);
        SHARE_CHECK(t, n == 12, "%zu instead of 12, in pages of %zu", n, max);
        SHARE_CHECK(t, same_jobs(shown, jobs, n), "another order, in pages of %zu", max);
    }
    SHARE_CHECK(t, all_pages(t, "nobody's", 5, shown) == 0, "a topic that there is not");
}

/* Those before it go, and so does the one that the page ended with; others come. */
static void loses_no_place_between_pages(struct sharing *t)
{
    size_t jobs[8];
    size_t shown[8];
    struct due_page at = { .topic = "a", .from_ns = INT64_MIN };
    bool more;

    if (!sharing_all_join(t, 2))
        return;
    int64_t at_ns = (sharing_now(t) + SHARE_LATER_NS) / 1000 * 1000;
    for (size_t i = 0; i < 8; i++)
        sharing_put(t, jobs[i] = suite_job(&t->base, "a", at_ns + (i > 5 ? 1000 : 0), "x", 1));
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    SHARE_CHECK(t, sharing_page(t, 1, &at, 3, shown, &more) == 3 && more, "the first three");
    sharing_cancel(t, jobs[0]);
    sharing_cancel(t, jobs[2]);
    sharing_put(t, suite_job(&t->base, "a", at_ns - DUE_MS(1), "x", 1));
    SHARE_CHECK(t, sharing_sent(t, 0), "some go, one comes");
    SHARE_CHECK(t, sharing_page(t, 1, &at, 4, shown, &more) == 4 && more, "the next four");
    SHARE_CHECK(t, same_jobs(shown, jobs + 3, 4), "none twice, none left out");
    SHARE_CHECK(t, sharing_page(t, 1, &at, 4, shown, &more) == 1 && !more && shown[0] == jobs[7],
                "the last one");
}

static void shows_the_dead_by_place(struct sharing *t)
{
    size_t jobs[3];
    size_t shown[8];
    struct due_page at = { .from_ns = INT64_MIN };
    bool more;

    if (!sharing_all_join(t, 2))
        return;
    for (size_t i = 0; i < 3; i++) {
        struct sharing_held h;

        jobs[i] = sharing_job(t, i == 1 ? "a" : "b", -DUE_MS(9));
        if (!sharing_have(t, 0, jobs[i], SHARE_LONG_NS, &h))
            return;
        sharing_bury(t, h, "no good");
        SHARE_CHECK(t, sharing_sent(t, 0), "buried");
        sharing_pass(t, DUE_MS(2));
    }
    SHARE_CHECK(t, sharing_page(t, 1, &at, 1, shown, &more) == 1 && more && shown[0] == jobs[0],
                "the first");
    sharing_strike(t, jobs[0]);
    SHARE_CHECK(t, sharing_sent(t, 0), "struck off");
    SHARE_CHECK(t, sharing_page(t, 1, &at, 5, shown, &more) == 2 && !more, "the others");
    SHARE_CHECK(t, same_jobs(shown, jobs + 1, 2), "in their order");
}

/* Times that a score has as an even number only, and the end of time. */
static void shows_what_comes_at_the_end_of_time(struct sharing *t)
{
    const int64_t ends[] = { INT64_C(9007199254740993) * 1000, DUE_FOREVER - 5000, DUE_FOREVER };
    size_t jobs[6];
    size_t shown[8];

    if (!sharing_all_join(t, 2))
        return;
    for (size_t i = 0; i < 6; i++)
        sharing_put(t, jobs[i] = suite_job(&t->base, "a", ends[i / 2], "x", 1));
    SHARE_CHECK(t, sharing_sent(t, 0), "put");
    for (size_t max = 1; max < 4; max++)
        SHARE_CHECK(t, all_pages(t, "a", max, shown) == 6 && same_jobs(shown, jobs, 6),
                    "in pages of %zu", max);
}

struct people {
    struct sharing *t;
    unsigned seen[SUITE_STORES];
    unsigned others;
};

static int see_process(void *ctx, const struct due_process_seen *p)
{
    struct people *people = ctx;
    bool known = false;

    for (int s = 0; s < SUITE_STORES; s++)
        if (people->t->base.open[s] && people->t->base.info[s].writer == p->writer) {
            people->seen[s]++;
            known = true;
            (void)suite_check(&people->t->base, p->pid == getpid() && p->host != NULL, __FILE__,
                              __LINE__, "who it is");
            (void)suite_check(&people->t->base, p->started_ns > 0 && p->seen_ns >= p->started_ns,
                              __FILE__, __LINE__, "since when");
        }
    people->others += !known;
    return 0;
}

static int see_all(struct sharing *t, struct people *people)
{
    int64_t end_ns = suite_soon();
    int rc;

    do {
        *people = (struct people){ .t = t };
        rc = sharing_verbs(t, 0)->processes(t->base.stores[0], see_process, people, end_ns);
    } while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    return rc;
}

static void shows_who_has_joined(struct sharing *t)
{
    struct people people;

    if (!sharing_all_join(t, 3))
        return;
    SHARE_ANSWERS(t, see_all(t, &people), 0);
    SHARE_CHECK(t, people.seen[0] == 1 && people.seen[1] == 1 && people.seen[2] == 1, "all");
    SHARE_CHECK(t, people.others == 0, "nobody else");
    sharing_leave(t, 1);
    SHARE_ANSWERS(t, see_all(t, &people), 0);
    SHARE_CHECK(t, people.seen[0] == 1 && people.others == 0, "who left has gone");
    sharing_vanish(t, 2);
    SHARE_ANSWERS(t, see_all(t, &people), 0);
    SHARE_CHECK(t, people.others == 1, "who was killed is still there");
}

/* Of one process, as it was told last. */
struct one {
    uint64_t writer, held;
    int64_t waits;
};

static int see_one(void *ctx, const struct due_process_seen *p)
{
    struct one *one = ctx;

    if (p->writer == one->writer) {
        one->held = p->held;
        one->waits = p->waits;
    }
    return 0;
}

static bool tells(struct sharing *t, int s, uint64_t held, int64_t waits)
{
    struct one one = { .writer = t->base.info[s].writer, .held = UINT64_MAX, .waits = -1 };
    const struct due_shared_verbs *verbs = sharing_verbs(t, s);
    int64_t end_ns = suite_soon();
    int rc;

    do
        rc = verbs->beat(t->base.stores[s], &(struct due_beat){ 0 }, end_ns);
    while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    do
        rc = rc < 0 ? rc : verbs->processes(t->base.stores[0], see_one, &one, end_ns);
    while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    return suite_check(&t->base, rc == 0 && one.held == held && one.waits == waits, __FILE__,
                       __LINE__, "answered %d, %llu held, waits %d", rc,
                       (unsigned long long)one.held, (int)one.waits);
}

static void shows_who_has_how_many_and_who_waits(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) || !tells(t, 1, 0, 0) ||
        !sharing_have(t, 1, sharing_job(t, "a", -DUE_MS(9)), SHARE_LONG_NS, &h) ||
        !tells(t, 1, 1, 0) || !tells(t, 0, 0, 0))
        return;
    sharing_done(t, h);
    if (!sharing_sent(t, 1) || !tells(t, 1, 0, 0))
        return;
    sharing_wait(t, 1, SHARE_LONG_NS);
    if (!sharing_sent(t, 1) || !tells(t, 1, 0, 1))
        return;
    sharing_wait(t, 1, SHARE_LONG_NS);
    sharing_of(t, (const char *const[]){ "a" }, 1);
    SHARE_CHECK(t, sharing_sent(t, 0), "the other waits for a topic");
    (void)tells(t, 0, 0, 1);
}

static void finds_nothing_unknown(struct sharing *t)
{
    if (!sharing_all_join(t, 1))
        return;
    size_t job = sharing_job(t, "a", 0);
    SHARE_ANSWERS(t, sharing_find(t, 0, job), DUE_ENOENT);
}

const struct suite_test_shared share_look_tests[] = {
    { "look: counts nothing when new", counts_nothing_when_new },
    { "look: counts each state", counts_each_state },
    { "look: counts what has lapsed as ready", counts_what_has_lapsed_as_ready },
    { "look: shows the dead in pages", shows_the_dead_in_pages },
    { "look: shows what waits in pages", shows_what_waits_in_pages },
    { "look: loses no place between pages", loses_no_place_between_pages },
    { "look: shows the dead by place", shows_the_dead_by_place },
    { "look: shows what comes at the end of time", shows_what_comes_at_the_end_of_time },
    { "look: shows who has joined", shows_who_has_joined },
    { "look: shows who has how many, and who waits", shows_who_has_how_many_and_who_waits },
    { "look: finds nothing unknown", finds_nothing_unknown },
    { NULL, NULL },
};
