/* test_share_script_work.c - the script that ends and claims jobs, with many at once: what it says
 * of each, in runs of one end and in groups of one topic, and what is no job.
 */
#include "lab/redis/share_case.h"

#include <stdlib.h>

TestSuite(share_script_work, .init = serve, .fini = stop, .timeout = 60);
TestSuite(share_script_rank_work, .init = serve_by_rank, .fini = stop, .timeout = 60);

#define MANY 90

static void put_all(int64_t score)
{
    struct share_job jobs[MANY];

    for (int i = 0; i < MANY; i++)
        jobs[i] = job(i, score);
    share_put(&one, jobs, MANY);
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* Jobs of three claims, mixed at random, a few of which another has meanwhile: each is told what
 * has become of it, and of no other anything is done, whatever becomes of them. */
static void ends_by_runs(char kind, unsigned seed)
{
    struct share_outcome done[MANY];
    char expect[MANY + 1] = "";
    int left = 0;

    srand(seed);
    put_all(T0);
    for (int c = 0; c < 3; c++) {
        turn(T0 + 1 + c);
        cr_assert_eq(claim(&one, MANY / 3)->count, MANY / 3);
        for (int i = 0; i < MANY / 3; i++) {
            const struct share_job *held = &one.answer.job[i];
            struct share_outcome *d = &done[c * MANY / 3 + i];
            *d = (struct share_outcome){ .kind = kind, .topic = 1, .lease = one.answer.lease };
            d->id = id(atoi(held->id + 2));
            d->score = kind == 'e' ? 5 * LEASE : T0 + 100;
            d->entry = "entry";
        }
    }
    for (int i = MANY - 1; i > 0 && seed % 3 != 0; i--) { /* else a run for each claim */
        int j = rand() % (i + 1);
        struct share_outcome other = done[i];
        done[i] = done[j];
        done[j] = other;
    }
    for (int i = 0; i < MANY; i++) {
        bool stale = rand() % 8 == 0;
        done[i].lease -= stale;
        expect[i] = stale ? 's' : 'd';
        left += stale;
    }
    share_work(&one, done, MANY, (struct share_claim){ 0 });
    cr_assert_eq(one.answer.code, 'D', "%s", one.answer.error);
    cr_expect_str_eq(one.answer.status, left > 0 ? expect : "", "%c, seed %u", kind, seed);
    for (int i = 0; i < MANY; i++) {
        long long end = COUNT("ZSCORE due:{q}:l:a %s", done[i].id);
        if (expect[i] == 's' || kind == 't')
            cr_expect_eq(end, done[i].lease + (expect[i] == 's'), "%c %d: %lld", kind, i, end);
        else
            cr_expect_eq(end, kind == 'e' ? T0 + 3 + 5 * LEASE : -1, "%c %d: %lld", kind, i, end);
    }
    cr_expect_eq(COUNT("HLEN due:{q}:j"), kind == 'a' || kind == 'K' ? left : MANY);
    cr_expect_eq(COUNT("ZCARD due:{q}:t:a"), strchr("nor", kind) != NULL ? MANY - left : 0);
    cr_expect_eq(COUNT("ZCARD due:{q}:dead"), kind == 'b' ? MANY - left : 0);
    cr_expect_eq(COUNT("HLEN due:{q}:a"), strchr("nobt", kind) != NULL ? MANY - left : 0);
}

Test(share_script_work, tells_each_whatever_becomes_of_it_and_whoever_claimed_it_with_which_others)
{
    for (const char *kind = "aKnobret"; *kind != '\0'; kind++) {
        for (unsigned seed = 1; seed <= 4; seed++) {
            freeReplyObject(share_ask(&one, "DEL due:{q}:j due:{q}:a due:{q}:t:a due:{q}:l:a "
                                            "due:{q}:dead due:{q}:h"));
            ends_by_runs(*kind, seed);
        }
    }
}

/* ---- Claims ---------------------------------------------------------------------------------- */

/* Of each job there may be a long record, none, an entry, the end of another's lease: in all ways
 * together, and again when the number is sent once more. */
Test(share_script_work, says_of_each_job_what_there_is_of_it)
{
    struct share_job jobs[MANY];

    for (int i = 0; i < MANY; i++) {
        jobs[i] = job(i, T0 + i);
        jobs[i].is_long = i % 3 == 0;
        jobs[i].record = i % 3 == 0 ? "long" : "short";
        jobs[i].entry = i % 5 == 0 ? "entry" : NULL;
    }
    share_put(&one, jobs, MANY);
    turn(T0 + MANY);
    cr_assert_eq(claim(&two, MANY / 2)->count, MANY / 2);
    for (int i = 0; i < MANY; i += 7)
        freeReplyObject(share_ask(&one, "HDEL due:{q}:j %s", id(i)));
    int64_t end = two.answer.lease;
    turn(end);
    for (int again = 0; again < 2; again++) {
        struct share_answer *a = claim(&one, MANY);

        cr_assert_eq(a->count, MANY);
        for (int i = 0; i < MANY; i++) {
            const struct share_job *j = &a->job[i];
            cr_expect_str_eq(j->id, id(i));
            cr_expect_eq(j->topic, 1);
            cr_expect_eq(j->over, i < MANY / 2 ? end : 0, "%d: %lld", i, (long long)j->over);
            cr_expect_str_eq(j->entry, i % 5 == 0 ? "entry" : "", "%d", i);
            if (i % 3 == 0)
                cr_expect_str_eq(j->record, "", "%d", i);
            else if (i % 7 == 0)
                cr_expect_null(j->record, "%d", i);
            else
                cr_expect_str_eq(j->record, "short", "%d", i);
        }
        share_again(&one, 1);
    }
}

/* Names of another length than a job's, wherever they stand: they go, and hold up nobody.  Nor does
 * an end of a lease that no claim has written: it was long ago. */
static void odd_names(void)
{
    static const char *const odd[] = {
        "",   "x", "id0000000001", "id00000000001", "id0000000000001", "id0000000000000000000001",
        "zzz"
    };
    size_t n = sizeof odd / sizeof *odd;
    static const char *const ends[] = { "-5", "-inf", "0", "0.5" };
    int had = 0;

    for (int i = 0; i < MANY; i++)
        put(&one, i, T0 + i % 3);
    for (int i = 0; i < 4; i++) {
        freeReplyObject(share_ask(&one, "ZREM due:{q}:t:a %s", id(i)));
        freeReplyObject(share_ask(&one, "ZADD due:{q}:l:a %s %s", ends[i], id(i)));
    }
    for (size_t i = 0; i < n; i++) {
        freeReplyObject(share_ask(&one, "ZADD due:{q}:t:a %lld %s", T0 + (long long)i % 3, odd[i]));
        freeReplyObject(share_ask(&one, "ZADD due:{q}:l:a %lld %s%s", T0 - 1, odd[i], "odd"));
    }
    turn(T0 + 5);
    for (int calls = 0; had < MANY; calls++) {
        struct share_answer *a = claim(&one, calls % 4 == 0 ? 1 : 20);
        cr_assert(a->count > 0 || a->more == 1, "nobody would come again, with %d had", had);
        for (int i = 0; i < a->count; i++) {
            cr_expect_eq(strncmp(a->job[i].id, "id0000000000", 12), 0, "%s", a->job[i].id);
            cr_expect_eq(a->job[i].over, atoi(a->job[i].id + 2) < 4, "%s", a->job[i].id);
        }
        had += a->count;
        cr_assert_lt(calls, 60);
    }
    cr_expect_eq(had, MANY);
    while (one.answer.more == 1) /* what is odd may be last */
        cr_expect_eq(claim(&one, 20)->count, 0);
    cr_expect_eq(COUNT("ZCARD due:{q}:l:a"), MANY);
    cr_expect_eq(COUNT("ZCARD due:{q}:t:a"), 0);
    cr_expect_eq(COUNT("HLEN due:{q}:j"), MANY);
}

Test(share_script_work, hands_out_what_is_a_job_whatever_stands_beside_it)
{
    odd_names();
}

Test(share_script_rank_work, hands_out_what_is_a_job_whatever_stands_beside_it)
{
    odd_names();
    check_ranks("in the end");
}
