/* test_share_group_torn.c - the scripts of a shared queue by themselves: each is torn at each of
 * its commands while it does something to one of a group, and no job is lost for that, nor are two
 * of the group out at once.
 */
#include "lab/redis/share_case.h"

TestSuite(group_torn, .init = serve, .fini = stop, .timeout = 120);
TestSuite(group_torn_by_rank, .init = serve_by_rank, .fini = stop, .timeout = 120);

enum { CHAIN = 3, STEPS = 400 };

static struct share_job grouped(int n, int64_t score)
{
    struct share_job j = job(n, score);

    j.group = "g";
    return j;
}

static void put_one(int n, int64_t score)
{
    struct share_job j = grouped(n, score);

    share_put(&one, &j, 1);
}

static void edit_one(char kind, int n, int64_t score)
{
    struct share_change c = { kind, 1, id(n), -1, NULL, score, kind == 'c' ? "" : "e" };

    share_edit(&one, &c, 1);
}

static void end_first(char kind, int64_t score)
{
    struct share_outcome done = { kind, 1, id(1), T0 + LEASE, score, "e" };

    share_work(&two, &done, 1, (struct share_claim){ 0 });
}

/* What is done of jobs 1 to 3, of which the first is in front, or held: the letter of a change. */
struct way {
    const char *name;
    char kind;
    int job;       /* 0: that which is held */
    int64_t score; /* where it goes */
};

static const struct way ways[] = {
    { "the one in front is cancelled", 'c', 1, 0 },
    { "one behind is cancelled", 'c', 2, 0 },
    { "the one in front is moved behind", 'm', 1, T0 - 1 },
    { "one behind is moved to the front", 'm', 3, T0 - 900 },
    { "one behind is moved", 'm', 2, T0 - 1 },
    { "one comes before all", 'p', 4, T0 - 900 },
    { "one comes behind all", 'p', 4, T0 - 1 },
    { "the one in front comes again", 'p', 1, T0 - 100 },
    { "one is done", 'a', 0, 0 },
    { "one is tried again", 'n', 0, T0 - 100 },
    { "one has its next round", 'o', 0, T0 - 1 },
    { "one dies", 'b', 0, T0 },
    { "one was not begun", 'r', 0, T0 - 100 },
    { "one cannot be read", 's', 0, 0 },
};

static void go_way(const struct way *w)
{
    if (w->kind == 'p')
        put_one(w->job, w->score);
    else if (w->kind == 's')
        share_aside(&two, id(1));
    else if (w->job == 0)
        end_first(w->kind, w->score);
    else
        edit_one(w->kind, w->job, w->score);
}

/* Whoever comes is of the group, and alone.  Answers which have come, a bit for each. */
static unsigned drain(const char *name, int step)
{
    unsigned came = 0;

    for (int turns = 0; turns < 12; turns++) {
        struct share_outcome done = { 'a', 1, NULL, 0, 0, NULL };
        char who[SHARE_ID + 1];

        claim(&two, 9);
        if (two.answer.count == 0)
            return came;
        cr_assert_eq(two.answer.count, 1, "%s: %d at once, step %d", name, two.answer.count, step);
        snprintf(who, sizeof who, "%s", two.answer.job[0].id);
        done.id = who;
        done.lease = two.answer.lease;
        came |= 1u << atoi(who + 2);
        claim(&two, 9);
        cr_assert_eq(two.answer.count, 0, "%s: two are out, step %d", name, step);
        cr_assert_str_empty(finish(&two, done));
    }
    cr_assert_fail("%s: no end, step %d", name, step);
    return 0;
}

/* False: it was not torn any more. */
static bool tear(const struct way *w, int step)
{
    freeReplyObject(share_ask(&one, "DEL due:{q}:j due:{q}:t:a due:{q}:l:a due:{q}:g:a due:{q}:g "
                                    "due:{q}:gh due:{q}:jg due:{q}:a due:{q}:dead due:{q}:h "
                                    "due:{q}:o:a"));
    turn(T0);
    for (int n = 1; n <= CHAIN; n++) {
        put_one(n, T0 - 101 + n);
        cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    }
    if (w->job == 0)
        cr_assert_eq(claim(&two, 9)->count, 1);
    share_tear(&one, "clock", step);
    share_tear(&two, "clock", step);
    go_way(w);
    const struct share *by = w->job == 0 ? &two : &one;
    bool torn = by->answer.code == 'E';
    cr_assert(!torn || strstr(by->answer.error, "torn") != NULL, "%s: %s", w->name,
              by->answer.error);
    share_tear(&one, "clock", 0);
    share_tear(&two, "clock", 0);
    if (torn && w->kind != 's')
        share_again(w->job == 0 ? &two : &one, w->job == 0);
    turn(T0 + 2 * LEASE);
    unsigned came = drain(w->name, step);
    unsigned others = w->job == 0 ? 0xc : 0xe & ~(1u << w->job);
    cr_expect_eq(came & others, others, "%s: %x came, step %d", w->name, came, step);
    cr_expect(torn || w->kind == 'c' || w->job == 0 || (came & 1u << w->job) != 0, "%s", w->name);
    put_one(5, T0);
    cr_assert_eq(one.answer.code, 'D');
    cr_expect_eq(drain(w->name, step) & 1u << 5, 1u << 5, "%s: stuck, step %d", w->name, step);
    return torn;
}

static void tear_all(void)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        int step = 1;

        while (step < STEPS && tear(&ways[i], step))
            step++;
        cr_expect(step > 5 && step < STEPS, "%s: %d steps", ways[i].name, step);
    }
}

Test(group_torn, has_one_out_at_a_time_and_loses_none)
{
    tear_all();
}

Test(group_torn_by_rank, has_one_out_at_a_time_and_loses_none)
{
    tear_all();
    check_ranks("in the end");
}
