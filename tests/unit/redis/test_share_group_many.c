/* test_share_group_many.c - the scripts of a shared queue by themselves: many groups, and a long
 * one, by few commands.
 */
#include "lab/redis/share_group_case.h"

TestSuite(many_groups, .init = serve, .fini = stop, .timeout = 120);

static long long commands(void)
{
    redisReply *r = share_ask(&one, "INFO stats");
    const char *found = strstr(r->str, "total_commands_processed:");
    long long n = found != NULL ? strtoll(found + 25, NULL, 10) : -1;

    freeReplyObject(r);
    return n;
}

/* Who is in front of each group is asked for once for all. */
Test(many_groups, are_put_by_few_commands_however_many_they_are)
{
    static struct share_job jobs[SHARE_MOST];
    static char names[SHARE_MOST][8];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < SHARE_MOST; i++) {
            snprintf(names[i], sizeof names[i], "g%d", i);
            jobs[i] = grouped(0, T0 - 1 + round, names[i]);
            snprintf(jobs[i].id, sizeof jobs[i].id, "k%d%012d", round, i);
        }
        long long before = commands();
        share_put(&one, jobs, SHARE_MOST);
        cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
        cr_expect_leq(commands() - before, 40);
        check_groups();
        if (round == 0) {
            claim(&two, 99); /* those are held, the others wait */
            cr_assert_eq(two.answer.count, 99);
        }
    }
    cr_expect_eq(KEPT(), SHARE_MOST);
}

/* Of these jobs of a long group as many as one exchange changes: by how many commands for each. */
static void change_many(char kind, const struct share_job *jobs, int step)
{
    static struct share_change c[SHARE_MOST];
    long long before = commands();

    for (int i = 0; i < SHARE_MOST; i++)
        c[i] = (struct share_change){ kind,
                                      1,
                                      jobs[i].id,
                                      -1,
                                      NULL,
                                      jobs[i].score + (int64_t)(i + 1) * step,
                                      kind == 'm' ? "e" : "" };
    share_edit(&one, c, SHARE_MOST);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    cr_expect_str_empty(one.answer.status);
    cr_expect_leq(commands() - before, 12 * SHARE_MOST, "%c by %d", kind, step);
}

/* What is kept back is nobody's to look at: not by a claim, nor by a put of another; and as many as
 * an exchange has are cancelled or moved without looking at more than they are. */
Test(many_groups, that_are_long_delay_nobody)
{
    enum { MANY = 100000, CALLS = 200 };
    static struct share_job jobs[SHARE_MOST];

    for (int at = 0; at < MANY; at += SHARE_MOST) {
        for (int i = 0; i < SHARE_MOST; i++) {
            jobs[i] = grouped(0, T0 - MANY + at + i, "g");
            snprintf(jobs[i].id, sizeof jobs[i].id, "kb%012d", at + i);
        }
        share_put(&one, jobs, SHARE_MOST);
        cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    }
    cr_assert_eq(claim(&two, 200)->count, 1, "the first of all");
    int64_t lease = two.answer.lease;
    DO("CONFIG RESETSTAT");
    DO("CONFIG SET slowlog-log-slower-than 2000");
    DO("SLOWLOG RESET");
    for (int i = 0; i < CALLS; i++) {
        put(&one, 1, T0);
        put_grouped(2, T0, "h");
        CLAIMS(1, 2);
        cr_expect_str_empty(end(&two, 'a', 1, two.answer.lease, 0));
        cr_expect_str_empty(end(&two, 'a', 2, T0 + LEASE, 0));
    }
    cr_expect_leq(COUNT("SLOWLOG LEN"), CALLS / 2, "some of %d may have been stopped", 5 * CALLS);
    cr_expect_str_empty(finish(
        &two, (struct share_outcome){ .kind = 'a', .id = "kb000000000000", .lease = lease }));
    for (int i = 0; i < SHARE_MOST; i++) {
        jobs[i].score = T0 - MANY + 1 + i;
        snprintf(jobs[i].id, sizeof jobs[i].id, "kb%012d", 1 + i);
    }
    change_many('m', jobs, 1000); /* each is in front, and goes behind many */
    change_many('m', jobs, 7);    /* to the front again */
    change_many('c', jobs, 0);
    check_groups();
    cr_expect_eq(claim(&two, 200)->count, 1, "the next");
}
