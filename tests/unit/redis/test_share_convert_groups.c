/* test_share_convert_groups.c - the Redis store: groups of a queue that is owned and shared by
 * turns.
 *
 * Of each group one job at a time is let through while it is shared; an owner finds all of them
 * where he looks, and what is dead, late or kept back stays whole.
 */
#include "lab/redis/share_convert_lab.h"

#define IN_GROUP 10

static due_change grouped(uint64_t n, uint64_t groups)
{
    static char names[MOST][8];
    due_change c = put(n, (int64_t)(n + 1) * 1000);

    c.record.topic = n % 2 == 0 ? "mail" : "";
    c.record.group = names[n];
    c.record.group_len = (size_t)snprintf(names[n], sizeof names[n], "g%d", (int)(n % groups));
    return c;
}

static void fill_groups(uint64_t n)
{
    due_store *owner = opened((due_redis_options){ 0 });

    for (uint64_t i = 0; i < n; i += 100) {
        due_change some[100];
        size_t k = 0;
        for (; k < 100 && i + k < n; k++)
            some[k] = grouped(i + k, n / IN_GROUP);
        cr_assert_eq(commit(owner, some, k, i / 100 + 1), 0);
    }
    finish(owner);
}

/* Whoever claims it gets the first of each group, and the next when that is done.  @most: until so
 * many came. */
static size_t work_off(struct sharer *s, size_t groups, size_t most)
{
    static uint64_t last[MOST];
    size_t n = 0;

    memset(last, 0, sizeof last);
    for (int idle = 0; idle < 3 && n < most;) {
        static bool out[MOST];
        static due_change done[HELD_MOST];

        memset(out, 0, sizeof out);
        cr_assert_eq(claim(s, 100), 0);
        size_t held = s->n_held;
        for (size_t i = 0; i < held; i++) {
            uint64_t of = (s->sequence[i] % groups) * 2 + (s->topic[i][0] == 'm');

            cr_expect(!out[of], "two of a group");
            cr_expect(last[of] == 0 || s->sequence[i] + 1 > last[of], "%d came after %d",
                      (int)s->sequence[i], (int)last[of]);
            out[of] = true;
            last[of] = s->sequence[i] + 1;
            done[i] = of_held(s, i, DUE_CHANGE_DROP);
        }
        if (held > 0)
            cr_assert_eq(exchange(s, done, held, NULL), 0);
        n += held;
        idle = held > 0 ? 0 : idle + 1;
    }
    return n;
}

static void work_off_by_turns(uint64_t n)
{
    struct sharer s;
    size_t all = 0;

    fill_groups(n);
    for (int turn = 0; turn < 2; turn++) {
        s = joined();
        all += work_off(&s, n / IN_GROUP, n / 4);
        cr_assert_eq(claim(&s, 3), 0); /* they are out when it is killed */
        due_redis_free(s.store);
        ASK("DEL", "due:{q}:owner");
        due_store *owner = opened((due_redis_options){ 0 });
        nothing_else("owned");
        struct shelf now = shelf_of(owner);
        cr_expect_eq(now.n, n - all, "%zu and %zu of %zu", now.n, all, (size_t)n);
        free(now.line);
        finish(owner);
    }
    s = joined();
    all += work_off(&s, n / IN_GROUP, n);
    cr_expect_eq(all, n, "%zu of %zu", all, (size_t)n);
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:jg", "due:{q}:gh", "due:{q}:g",
                         "due:{q}:g:", "due:{q}:g:mail", "due:{q}:t:"),
                     ":0\r\n");
    go(&s);
}

SHARE_TEST(share_convert_groups, forty_jobs_are_let_through_one_by_one)
{
    work_off_by_turns(40);
}

Test(share_convert_groups, ten_thousand_jobs_are_let_through_one_by_one, .init = serve_plainly,
     .fini = stop, .timeout = 100)
{
    work_off_by_turns(10000);
}

/* The first by time of a group is in front, whichever was put first; a dead one never is. */
SHARE_TEST(share_convert_groups, the_first_that_lives_is_in_front)
{
    due_store *owner = opened((due_redis_options){ 0 });
    due_change jobs[] = { grouped(1, 1), grouped(3, 1), grouped(5, 1), grouped(7, 2) };
    struct sharer s;

    jobs[0].record.cause = DUE_CAUSE_BURIED;
    jobs[0].record.died_ns = 1;
    jobs[1].record.deadline_ns = jobs[1].record.until_ns = 900000;
    jobs[3].record.cause = DUE_CAUSE_BURIED;
    jobs[3].record.died_ns = 1;
    cr_assert_eq(commit(owner, jobs, 4, 1), 0);
    finish(owner);
    s = joined();
    cr_expect_str_eq(ASK("HLEN", "due:{q}:jg"), ":4\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{q}:gh"), ":1\r\n");
    cr_expect_eq(claim(&s, 3), 0);
    cr_expect_eq(s.n_held, 1u);
    cr_expect(s.n_held == 1 && s.sequence[0] == 5, "the first in time");
    go(&s);
}
