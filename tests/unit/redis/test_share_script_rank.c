/* test_share_script_rank.c - the scripts of a shared queue in the order of priority by themselves:
 * beside a model that sorts, torn, with less than they left behind, and how much they do.
 */
#include "lab/redis/share_case.h"

TestSuite(ranks, .init = serve_by_rank, .fini = stop, .timeout = 120);

/* ---- Beside a model -------------------------------------------------------------------------- */

enum { MADE = 250, STEPS = 4000, LOOKED_AT = 64 }; /* so many leases that are over */

struct known {
    char id[SHARE_ID + 1]; /* the first byte is 255 less the priority, as far as it is text */
    enum { NOT_YET, GONE, WAITS, HELD, DEAD } state;
    int64_t at;  /* when it is due, or its lease ends */
    bool passed; /* its lease is over, and the claim does not come to it */
};

static struct known known[MADE];
static int64_t now;
static int limit; /* 0: none */
static int paused;
static uint64_t drawn;

static int below(int n)
{
    drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((drawn >> 33) % (uint64_t)n);
}

static int in_state(int state)
{
    int n = 0;

    for (int i = 0; i < MADE; i++)
        n += (int)known[i].state == state;
    return n;
}

/* One of them; -1: there is none. */
static int some(int state)
{
    int n = in_state(state);
    int left = n > 0 ? below(n) : 0;

    for (int i = 0; i < MADE && n > 0; i++)
        if ((int)known[i].state == state && left-- == 0)
            return i;
    return -1;
}

/* Those whose leases are over, but the first of them: a claim does not look at them. */
static void pass_over(void)
{
    for (int i = 0; i < MADE; i++) {
        struct known *k = &known[i];
        int before = 0;

        for (int j = 0; j < MADE; j++)
            before +=
                known[j].state == HELD &&
                (known[j].at < k->at || (known[j].at == k->at && strcmp(known[j].id, k->id) < 0));
        k->passed = k->state == HELD && before >= LOOKED_AT;
    }
}

/* What is claimed next. */
static struct known *next(void)
{
    struct known *best = NULL;

    for (int i = 0; i < MADE; i++) {
        struct known *k = &known[i];

        if ((k->state != WAITS && k->state != HELD) || k->at > now || paused || k->passed ||
            (k->state == WAITS && limit > 0 && in_state(HELD) >= limit))
            continue;
        if (best == NULL || k->id[0] < best->id[0] ||
            (k->id[0] == best->id[0] &&
             (k->at < best->at || (k->at == best->at && strcmp(k->id, best->id) < 0))))
            best = k;
    }
    return best;
}

static int64_t sometime(void)
{
    return now - 300 + below(600);
}

static void put_some(void)
{
    struct share_job jobs[5];
    int n = 0;

    for (int i = 1 + below(5); i > 0; i--, n++) {
        int made = MADE - in_state(NOT_YET);

        if (made == MADE)
            break;
        struct known *k = &known[made];
        k->state = WAITS;
        k->at = sometime();
        jobs[n] = (struct share_job){ .score = k->at };
        snprintf(jobs[n].id, sizeof jobs[n].id, "%s", k->id);
    }
    if (n == 0)
        return;
    share_put(&one, jobs, n);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
}

static void claim_some(int step)
{
    int need = 1 + below(8);

    share_work(&two, NULL, 0, (struct share_claim){ .need = need, .lease_us = 50 + below(200) });
    cr_assert_eq(two.answer.code, 'D', "%s", two.answer.error);
    pass_over();
    for (int i = 0; i < two.answer.count; i++) {
        struct known *k = next();

        cr_assert_not_null(k, "step %d: nothing is due", step);
        cr_assert_str_eq(two.answer.job[i].id, k->id, "step %d, %d", step, i);
        cr_assert_eq(two.answer.job[i].over, k->state == HELD ? k->at : 0, "step %d", step);
        k->state = HELD;
        k->at = two.answer.lease;
    }
    cr_assert(two.answer.count == need || next() == NULL, "step %d: %d of %d came", step,
              two.answer.count, need);
}

static void end_some(void)
{
    static const char kinds[] = "aKnobre";
    int i = some(HELD);
    char kind = kinds[below(7)];

    if (i < 0)
        return;
    struct known *k = &known[i];
    int64_t score = kind == 'e' ? 50 + below(200) : sometime();
    cr_assert_str_empty(finish(
        &two, (struct share_outcome){
                  .kind = kind, .id = k->id, .lease = k->at, .score = score, .entry = "e" }));
    k->state = kind == 'e' ? HELD : kind == 'b' ? DEAD : strchr("aK", kind) != NULL ? GONE : WAITS;
    k->at = kind == 'e' ? now + score : score;
}

static void edit_some(void)
{
    static const char kinds[] = "mmck";
    char kind = kinds[below(4)];
    int i = some(kind == 'k' ? DEAD : WAITS);

    if (i < 0)
        return;
    int64_t score = sometime();
    share_edit(&one, &(struct share_change){ kind, 1, known[i].id, -1, NULL, score, "" }, 1);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    cr_assert_str_empty(one.answer.status);
    known[i].state = kind == 'c' ? GONE : WAITS;
    known[i].at = score;
}

static void hold_back(void)
{
    char most[8];

    paused = below(4) == 0;
    limit = below(2) * (1 + below(9));
    snprintf(most, sizeof most, "%d", limit);
    share_edit(&one, &(struct share_change){ 's', 1, id(0), -1, NULL, paused, most }, 1);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
}

Test(ranks, are_those_of_a_model_that_sorts)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        freeReplyObject(share_ask(&one, "DEL due:{q}:j due:{q}:t:a due:{q}:l:a due:{q}:o:a "
                                        "due:{q}:a due:{q}:dead due:{q}:h due:{q}:topics"));
        drawn = seed;
        turn(now = T0 + (int64_t)seed * 1000000);
        limit = paused = 0;
        for (int i = 0; i < MADE; i++) {
            known[i] = (struct known){ .state = NOT_YET };
            snprintf(known[i].id, sizeof known[i].id, "%c%013d", "ACDFX"[below(5)],
                     (i * 77) % MADE);
        }
        for (int step = 0; step < STEPS; step++) {
            int what = below(20);

            if (what < 5)
                turn(now += below(150));
            else if (what < 8)
                put_some();
            else if (what < 14)
                claim_some(step);
            else if (what < 17)
                end_some();
            else if (what < 19)
                edit_some();
            else if (below(4) == 0)
                hold_back();
            if (step % 16 == 0)
                check_ranks("a step");
        }
        check_ranks("the end");
        cr_expect_lt(in_state(NOT_YET), MADE / 2, "so many were never put");
    }
}

/* ---- What is left there ---------------------------------------------------------------------- */

static struct share_job of_rank(char rank, int n, int64_t score)
{
    struct share_job j = { .score = score };

    snprintf(j.id, sizeof j.id, "%c%013d", rank, n);
    return j;
}

static void put_rank(char rank, int n, int64_t score)
{
    struct share_job j = of_rank(rank, n, score);

    share_put(&one, &j, 1);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
}

static void expect_rank(int i, char rank, int n)
{
    struct share_job j = of_rank(rank, n, 0);

    cr_assert_lt(i, two.answer.count);
    cr_expect_str_eq(two.answer.job[i].id, j.id);
}

/* More than a claim removes: whoever is due comes all the same. */
Test(ranks, pass_over_what_half_of_a_script_left)
{
    put_rank('C', 1, T0 - 5);
    put_rank('B', 2, T0 - 4);
    put_rank('C', 3, T0 - 9);
    freeReplyObject(share_ask(&one, "EVAL %s 0",
                              "for i = 1, 40 do redis.call('ZADD', 'due:{q}:o:a', 0, "
                              "string.format('A%016d%013d', i, i)) end "
                              "redis.call('ZADD', 'due:{q}:o:a', 0, 'B1700000000000000"
                              "0000000000002')")); /* another time of one that waits */
    int came = 0;
    for (int i = 0; i < 30 && came < 3; i++)
        came += claim(&two, 1)->count;
    cr_expect_eq(came, 3);
    put_rank('B', 4, T0 - 1);
    put_rank('A', 5, T0 - 1);
    put_rank('A', 6, T0 + 1);
    for (int i = 0; i < 10; i++)
        claim(&two, 0);
    claim(&two, 9);
    cr_expect_eq(two.answer.count, 2);
    expect_rank(0, 'A', 5);
    expect_rank(1, 'B', 4);
    turn(T0 + 2);
    for (int i = 0; i < 10; i++) {
        put_rank('C', 10 + i, T0 + 1);
        cr_expect_eq(claim(&two, 2)->count, i == 0 ? 2 : 1);
    }
    check_ranks("all of it was removed");
}

/* The key was deleted: what is due comes, by time; and what is named comes before that. */
Test(ranks, lose_no_job_with_their_key)
{
    put_rank('C', 1, T0 - 5);
    put_rank('B', 2, T0 - 4);
    put_rank('A', 3, T0 + 9);
    freeReplyObject(share_ask(&one, "DEL due:{q}:o:a"));
    put_rank('D', 4, T0 - 1);
    claim(&two, 9);
    cr_assert_eq(two.answer.count, 3);
    expect_rank(0, 'D', 4);
    expect_rank(1, 'C', 1);
    expect_rank(2, 'B', 2);
    cr_expect_eq(claim(&two, 9)->count, 0);
    turn(T0 + 9);
    cr_expect_eq(claim(&two, 9)->count, 1);
}

/* What else may stand there, since somebody wrote it, and other texts of the times of those that
 * wait: it holds nobody up, and no job comes twice. */
Test(ranks, are_no_trap_whatever_stands_among_them)
{
    put_rank('C', 1, T0);
    put_rank('A', 2, T0 - 4);
    freeReplyObject(share_ask(
        &one, "EVAL %s 0",
        "for _, m in ipairs({'', 'A', 'A ', 'A-', 'Axyz', 'B\\0\\1', 'A!nan', 'B  inf', '\\255', "
        "'C000000000000000', 'A1799999999999996xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', "
        "'A 0x6651728987ffc0000000000002', 'A0x06651728987ffc0000000000002', "
        "'C0000000000018e140000000000001'}) do redis.call('ZADD', 'due:{q}:o:a', 0, m) end"));
    int came = 0;
    for (int i = 0; i < 9; i++) {
        claim(&two, 9);
        cr_assert_eq(two.answer.code, 'D', "%s", two.answer.error);
        for (int k = 0; k < two.answer.count; k++)
            came += two.answer.job[k].id[0] == 'A' ? 1 : 10;
    }
    cr_expect_eq(came, 11, "each of the two once: %d", came);
    for (int i = 0; i < 9; i++) {
        put_rank('D', 10 + i, T0 - 1);
        cr_expect_eq(claim(&two, 1)->count, 1);
    }
    put_rank('C', 3, T0 - 50);
    put_rank('B', 4, T0 - 1);
    put_rank('A', 5, T0 - 1);
    claim(&two, 9);
    cr_assert_eq(two.answer.count, 3);
    expect_rank(0, 'A', 5);
    expect_rank(1, 'B', 4);
    expect_rank(2, 'C', 3);
}

/* As with any other key a script ends with an error, and goes on when that key is right again. */
Test(ranks, lose_no_job_while_their_key_is_something_else)
{
    struct share_job j = of_rank('A', 2, T0 - 1);

    put_rank('C', 1, T0 - 5);
    freeReplyObject(share_ask(&one, "RENAME due:{q}:o:a due:{q}:saved"));
    freeReplyObject(share_ask(&one, "RPUSH due:{q}:o:a x"));
    share_put(&one, &j, 1);
    cr_expect_eq(one.answer.code, 'E');
    share_work(&two, NULL, 0, (struct share_claim){ .need = 9, .lease_us = LEASE });
    cr_expect_eq(two.answer.code, 'E');
    share_beat(&two);
    cr_expect_eq(two.answer.code, 'D');
    freeReplyObject(share_ask(&one, "RENAME due:{q}:saved due:{q}:o:a"));
    share_again(&one, 0);
    share_put(&one, &j, 1);
    cr_expect_eq(one.answer.code, 'D', "%s", one.answer.error);
    share_again(&two, 1);
    cr_assert_eq(claim(&two, 9)->count, 2);
    expect_rank(0, 'A', 2);
    expect_rank(1, 'C', 1);
    check_ranks("right again");
}

/* ---- Torn ------------------------------------------------------------------------------------ */

/* What is done of two jobs that are due, of which the first comes first, and may be held. */
static void do_torn(char kind)
{
    struct share_job j = of_rank('A', 1, 0);
    struct share_job more[2] = { of_rank('B', 3, T0 - 9), of_rank('A', 4, T0 - 3) };

    if (kind == 'p')
        share_put(&one, more, 2);
    else if (kind == '*')
        share_work(&two, NULL, 0, (struct share_claim){ .need = 9, .lease_us = LEASE });
    else if (kind == 's')
        share_aside(&two, j.id);
    else if (strchr("cm", kind) != NULL)
        share_edit(&one, &(struct share_change){ kind, 1, j.id, -1, NULL, T0 - 1, "" }, 1);
    else
        share_work(&two, &(struct share_outcome){ kind, 1, j.id, T0 + LEASE, T0 - 1, "e" }, 1,
                   (struct share_claim){ 0 });
}

/* False: it was not torn any more. */
static bool tear(char kind, int step)
{
    bool held = strchr("anobr", kind) != NULL;
    bool by_two = held || kind == '*' || kind == 's';

    freeReplyObject(share_ask(&one, "DEL due:{q}:j due:{q}:t:a due:{q}:l:a due:{q}:o:a due:{q}:a "
                                    "due:{q}:dead due:{q}:h"));
    turn(T0);
    put_rank('A', 1, T0 - 5);
    if (held)
        cr_assert_eq(claim(&two, 1)->count, 1);
    put_rank('B', 2, T0 - 50);
    share_tear(&one, "clock", step);
    share_tear(&two, "clock", step);
    do_torn(kind);
    bool torn = (by_two ? &two : &one)->answer.code == 'E';
    share_tear(&one, "clock", 0);
    share_tear(&two, "clock", 0);
    if (torn && kind != 's')
        share_again(by_two ? &two : &one, by_two);
    turn(T0 + 2 * LEASE);
    unsigned came = 0;
    char last = 'A';
    while (claim(&two, 1)->count > 0) {
        const struct share_job *j = &two.answer.job[0];
        cr_expect_geq(j->id[0], last, "%c, step %d: %s", kind, step, j->id);
        last = j->id[0];
        came |= 1u << atoi(j->id + 1);
    }
    cr_expect_neq(came & 1u << 2, 0u, "%c: lost, step %d", kind, step);
    cr_expect(strchr("acsb", kind) != NULL || (came & 1u << 1) != 0, "%c, step %d", kind, step);
    cr_expect(torn || kind != 'p' || (came & 0x18) == 0x18, "both");
    return torn;
}

Test(ranks, are_right_whichever_command_a_script_is_torn_at)
{
    static const char kinds[] = "p*cmsanobr";

    for (const char *kind = kinds; *kind != '\0'; kind++) {
        int step = 1;

        while (step < 200 && tear(*kind, step))
            step++;
        cr_expect(step > 5 && step < 200, "%c: %d steps", *kind, step);
    }
}

/* ---- How much is done ------------------------------------------------------------------------ */

static long long commands(void)
{
    redisReply *r = share_ask(&one, "INFO commandstats");
    long long n = 0;

    for (const char *at = r->str; (at = strstr(at, "calls=")) != NULL; at++)
        n += strtoll(at + 6, NULL, 10);
    freeReplyObject(r);
    return n;
}

/* A claim looks at each priority in use once, and at no more of them than have something due. */
Test(ranks, cost_a_look_at_each_priority_in_use)
{
    for (int i = 1; i < 256; i++) {
        struct share_job j = of_rank('A', i, T0 + 1000);

        j.id[0] = (char)i;
        share_put(&one, &j, 1);
        cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    }
    long long was = commands();
    cr_expect_eq(claim(&two, 9)->count, 0);
    long long idle = commands() - was;
    cr_expect_lt(idle, 40, "%lld, with nothing due", idle);
    put_rank('\xff', 900, T0 - 1);
    was = commands();
    cr_expect_eq(claim(&two, 9)->count, 1);
    cr_expect_lt(commands() - was, 255 + 50, "%lld, with the last one due", commands() - was);
    put_rank('\x01', 901, T0 - 1);
    was = commands();
    cr_expect_eq(claim(&two, 9)->count, 1);
    cr_expect_lt(commands() - was, 45, "%lld, with the first one due", commands() - was);
}

/* Three commands a priority with something due, as the layout says; for one job two do.  A long
 * answer is kept by one more. */
Test(ranks, cost_three_commands_each_of_what_is_due)
{
    for (int i = 1; i <= 250; i++)
        put_rank((char)i, i, T0 - 1);
    long long was = commands();
    cr_expect_eq(claim(&two, 1)->count, 1);
    long long single = commands() - was;
    was = commands();
    cr_expect_eq(claim(&two, 2)->count, 2);
    cr_expect_eq(commands() - was - single, 2 + 1, "it is %lld", commands() - was - single);
    was = commands();
    cr_expect_eq(claim(&two, 100)->count, 100);
    cr_expect_leq(commands() - was - single, 3 * 99 + 2, "it is %lld", commands() - was - single);
}

/* One more shows who stands behind the first of a priority, and nobody asks if one is enough. */
Test(ranks, cost_a_command_less_where_one_job_is_wanted)
{
    for (int i = 1; i <= 6; i++)
        put_rank('A', i, T0 - 1);
    cr_expect_eq(claim(&two, 1)->count, 1);
    long long was = commands();
    cr_expect_eq(claim(&two, 2)->count, 2);
    long long both = commands() - was;
    was = commands();
    cr_expect_eq(claim(&two, 1)->count, 1);
    long long single = commands() - was;
    cr_expect_eq(single, both - 1, "it is %lld, and %lld for two", single, both);
}

/* So many leases are over, of five priorities, and ended in that order; each claim is for one. */
Test(ranks, cost_the_same_however_many_leases_are_over)
{
    enum { OVER = 1000 };
    static bool came[OVER];
    long long most = 0;

    freeReplyObject(share_ask(
        &one, "EVAL %s 0",
        "for i = 0, 999 do local id = string.format('%s%013d', string.sub('ACDFX', 1 + i * 7 % 5, "
        "1 + i * 7 % 5), i) redis.call('ZADD', 'due:{q}:l:a', 1799999999990000 + i, id) "
        "redis.call('HSET', 'due:{q}:j', id, 'x') end"));
    put_rank('D', 2000, T0 - 10000);
    bool waited = true;
    for (int n = 0; n < OVER + 1; n++) {
        int best = -1;
        int looked = 0;

        for (int i = 0; i < OVER && looked < LOOKED_AT; i++) {
            if (came[i])
                continue;
            looked++;
            if (best < 0 || "ACDFX"[i * 7 % 5] < "ACDFX"[best * 7 % 5])
                best = i;
        }
        long long was = commands();
        share_work(&two, NULL, 0, (struct share_claim){ .need = 1, .lease_us = 1000 * LEASE });
        long long now_done = commands() - was;
        most = now_done > most ? now_done : most;
        cr_assert_eq(two.answer.count, 1, "%d", n);
        if (waited && (best < 0 || "ACDFX"[best * 7 % 5] >= 'D')) {
            expect_rank(0, 'D', 2000);
            cr_expect_eq(two.answer.job[0].over, 0);
            waited = false;
        } else {
            expect_rank(0, "ACDFX"[best * 7 % 5], best);
            cr_expect_eq(two.answer.job[0].over, INT64_C(1799999999990000) + best);
            came[best] = true;
        }
    }
    cr_expect_lt(most, 40, "%lld commands for one", most);
    cr_expect_not(waited);
}
