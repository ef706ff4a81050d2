/* suite_dead.c - what only some jobs have: headers, policies, limits, keys, groups; and death. */
#include <pthread.h>
#include <time.h>

#include "store/suite_frame.h"

static bool found_and_loaded(struct suite *t)
{
    for (size_t i = 0; i < t->n_jobs; i++)
        if (!suite_answers(t, suite_find(t, 0, t->jobs[i].record.id),
                           t->jobs[i].stored ? 0 : DUE_ENOENT, __FILE__, __LINE__, "find"))
            return false;
    return suite_same(t, 0);
}

static bool committed(struct suite *t)
{
    return suite_answers(t, suite_commit(t, 0), 0, __FILE__, __LINE__, "commit") &&
           found_and_loaded(t);
}

static bool opened(struct suite *t)
{
    return suite_answers(t, suite_open(t, 0), 0, __FILE__, __LINE__, "open");
}

static bool reopened(struct suite *t)
{
    suite_close(t, 0);
    return opened(t) && found_and_loaded(t);
}

static bool loaded_in_pages(struct suite *t, size_t max)
{
    size_t calls = 0;
    int rc = suite_page(t, 0, true, max);

    while (rc == 1 && calls++ < 2 * t->n_jobs + 100)
        rc = suite_page(t, 0, false, max);
    return suite_answers(t, rc, 0, __FILE__, __LINE__, "load") && suite_all_seen(t);
}

/* ---- What only some jobs have ---------------------------------------------------------------- */

static unsigned char all_bytes[256];
static unsigned char zeros[256];
static const due_retry fixed = { .kind = DUE_RETRY_FIXED, .attempts_max = 3, .delay_ns = DUE_S(1) };
static const due_retry doubling = { .kind = DUE_RETRY_EXPONENTIAL,
                                    .delay_ns = 1,
                                    .cap_ns = DUE_FOREVER };
static due_retry ladder = { .kind = DUE_RETRY_LADDER, .attempts_max = 17, .rungs = DUE_RUNGS_MAX };

/* Number @kind of what a job may have; beyond the last one: everything. */
enum { KINDS = 15 };

static void give(due_record *r, int kind, unsigned char *key)
{
    bool all = kind >= KINDS;

    for (int i = 0; i < 256; i++)
        all_bytes[i] = (unsigned char)i;
    for (int i = 0; i < DUE_RUNGS_MAX; i++)
        ladder.rung_ns[i] = DUE_FOREVER - i;
    if (kind <= 2 || all) {
        r->headers = kind == 2 ? zeros : all_bytes;
        r->headers_len = kind == 0 ? 1 : DUE_HEADERS_MAX;
    }
    if (kind == 3 || kind == 4)
        r->retry = kind == 3 ? &fixed : &doubling;
    if (kind == 5 || all)
        r->retry = &ladder;
    if (kind == 6 || all)
        r->ttl_ns = DUE_FOREVER;
    if (kind == 7)
        r->expires_ns = 1;
    if (kind == 8 || kind == 9 || all) {
        r->key = key;
        r->key_len = kind == 8 ? 1 : DUE_KEY_MAX;
    }
    if (kind == 9 || all)
        r->keep_key_ns = DUE_FOREVER - 1;
    if (kind == 10 || kind == 11 || all) {
        r->group = kind == 10 ? (const unsigned char *)"g" : all_bytes;
        r->group_len = kind == 10 ? 1 : DUE_KEY_MAX;
    }
    if (kind >= 12) {
        r->every_ns = kind == 12 ? 1 : DUE_S(60);
        r->repeat = kind == 12 ? DUE_REPEAT_SKIP : kind == 13 ? DUE_REPEAT_ONCE : DUE_REPEAT_AFTER;
    }
}

static void keeps_what_only_some_jobs_have(struct suite *t)
{
    static unsigned char keys[KINDS + 1][256];

    CHECK(t, opened(t), "");
    for (int kind = 0; kind <= KINDS; kind++) {
        size_t job =
            suite_job(t, kind % 2 == 0 ? "" : "topic", DUE_S(kind), "bytes", kind % 3 == 0 ? 0 : 5);

        keys[kind][kind] = (unsigned char)(kind + 1); /* among NULs */
        keys[kind][0] = (unsigned char)kind;
        give(&t->jobs[job].record, kind, keys[kind]);
        suite_put(t, job);
        CHECK(t, committed(t), "kind %d", kind);
    }
    CHECK(t, reopened(t), "");
    for (size_t i = 0; i < t->n_jobs; i++)
        suite_move(t, i, DUE_S(20 - (int)i));
    CHECK(t, committed(t), "moved");
    for (size_t i = 0; i < t->n_jobs; i++)
        suite_bury(t, i, DUE_CAUSE_EXPIRED, DUE_S(50), NULL);
    CHECK(t, committed(t), "buried");
    CHECK(t, reopened(t), "");
    CHECK(t, suite_drop_all(t, 0) && found_and_loaded(t), "");
}

/* A job that is put again has what it is put with, and nothing of before. */
static void replaces_what_only_some_jobs_have(struct suite *t)
{
    static unsigned char key[256] = "the same one";

    CHECK(t, opened(t), "");
    size_t job = suite_job(t, "", DUE_S(5), "bytes", 5);
    due_record *r = &t->jobs[job].record;
    give(r, KINDS, key);
    suite_put(t, job);
    CHECK(t, committed(t), "");
    due_record plain = { .id = r->id,
                         .topic = r->topic,
                         .data = r->data,
                         .len = r->len,
                         .until_ns = DUE_S(6),
                         .deadline_ns = DUE_S(6),
                         .key = r->key,
                         .key_len = r->key_len };
    suite_change(t, DUE_CHANGE_PUT, job, &plain);
    CHECK(t, committed(t), "plain");
    due_record other = plain;
    give(&other, 0, key);
    give(&other, 3, key);
    other.attempts = 2;
    suite_change(t, DUE_CHANGE_PUT, job, &other);
    CHECK(t, committed(t), "other");
    CHECK(t, reopened(t), "");
}

/* ---- Death ----------------------------------------------------------------------------------- */

static void keeps_why_a_job_is_dead(struct suite *t)
{
    static char longest[DUE_REASON_BYTES];
    static const char *const reasons[] = { NULL, "", "x", "\r\n$-1\r\n \xc3\xa4", longest };
    static const int64_t times[] = { 0, 1, 999, 1000, 1001, DUE_FOREVER - 1, DUE_S(5) };

    memset(longest, 'r', sizeof longest - 1);
    CHECK(t, opened(t), "");
    for (size_t i = 0; i < 7; i++) {
        size_t job = suite_job(t, i % 2 == 0 ? "" : "b", DUE_S(5), "bytes", i);

        t->jobs[job].record.attempts = (uint32_t)i;
        suite_put(t, job);
        CHECK(t, committed(t), "");
        t->jobs[job].record.failures = UINT32_MAX;
        suite_bury(t, job, (enum due_cause)(1 + i % 3), times[i], reasons[i % 5]);
        CHECK(t, committed(t), "death %zu", i);
    }
    CHECK(t, reopened(t), "");
}

static void shows_the_dead_at_the_end_in_the_order_of_death(struct suite *t)
{
    static const size_t pages[] = { 1, 2, 7, 64, 1000 };

    CHECK(t, opened(t), "");
    for (int i = 0; i < 150; i++)
        suite_job(t, i % 3 == 0 ? "a" : "b", DUE_MS((int64_t)suite_below(t, 50)), &i, sizeof i);
    CHECK(t, suite_put_all(t, 0), "");
    for (size_t i = 0; i < 150; i += 2)
        suite_bury(t, i, DUE_CAUSE_BURIED, DUE_MS((int64_t)suite_below(t, 20)), "why");
    CHECK(t, committed(t), "");
    t->ordered = true;
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        CHECK(t, loaded_in_pages(t, pages[i]), "pages of %zu", pages[i]);
    suite_close(t, 0);
    CHECK(t, opened(t), "");
    CHECK(t, t->info[0].jobs == 150, "%llu", (unsigned long long)t->info[0].jobs);
    CHECK(t, loaded_in_pages(t, 10), "");
}

static void brings_a_dead_job_back(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (int i = 0; i < 4; i++) {
        size_t job = suite_job(t, "here", DUE_S(5), "bytes", 5);

        t->jobs[job].record.attempts = 3;
        suite_put(t, job);
    }
    CHECK(t, committed(t), "");
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 4; i++)
            suite_bury(t, i, DUE_CAUSE_ATTEMPTS, DUE_S(round), "again");
        CHECK(t, committed(t), "dead, round %d", round);
        for (size_t i = 0; i < 2; i++)
            suite_kick(t, i, DUE_S(7));
        for (size_t i = 2; i < 4; i++) { /* whole, as after a loss, or with another limit */
            due_record next = t->jobs[i].record;

            next.cause = 0;
            next.died_ns = 0;
            next.until_ns = next.deadline_ns = DUE_S(round + 1);
            next.attempts = i == 2 ? 0 : 1;
            suite_change(t, DUE_CHANGE_PUT, i, &next);
        }
        CHECK(t, committed(t), "back, round %d", round);
    }
    CHECK(t, reopened(t), "");
    CHECK(t, suite_drop_all(t, 0) && found_and_loaded(t), "");
}

/* As after a loss: a dead job comes whole, whether or not it was there, and how. */
static void takes_a_dead_job_whole(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (int i = 0; i < 3; i++) {
        suite_job(t, "", DUE_S(5), "bytes", 5);
        if (i > 0)
            suite_put(t, (size_t)i);
    }
    CHECK(t, committed(t), "");
    suite_bury(t, 2, DUE_CAUSE_BURIED, DUE_S(1), "first");
    CHECK(t, committed(t), "");
    for (size_t i = 0; i < 3; i++) {
        due_record next = t->jobs[i].record;

        next.cause = DUE_CAUSE_EXPIRED;
        next.died_ns = DUE_S(3);
        next.reason = NULL;
        suite_change(t, DUE_CHANGE_PUT, i, &next);
    }
    CHECK(t, committed(t), "");
    CHECK(t, reopened(t), "");
}

static void buries_kicks_and_drops_batches_of_the_size_it_says(struct suite *t)
{
    CHECK(t, opened(t), "");
    size_t n = t->info[0].batch_changes;
    for (size_t i = 0; i < n; i++)
        suite_job(t, i % 2 == 0 ? "a" : "b", DUE_MS((int)(i % 10)), &i, sizeof i);
    CHECK(t, suite_put_all(t, 0), "");
    for (size_t i = 0; i < n; i++)
        suite_bury(t, i, DUE_CAUSE_BURIED, DUE_MS((int)(i % 7)), "");
    CHECK(t, committed(t), "buried");
    for (size_t i = 0; i < n; i++)
        if (i % 3 == 0)
            suite_kick(t, i, DUE_S(1));
        else if (i % 3 == 1)
            suite_drop(t, i);
    CHECK(t, committed(t), "some of each");
    for (size_t i = 0; i < n; i++)
        if (i % 3 == 0)
            suite_bury(t, i, DUE_CAUSE_EXPIRED, DUE_S(2), NULL);
        else if (i % 3 == 2)
            suite_drop(t, i);
    CHECK(t, committed(t), "and more");
    CHECK(t, reopened(t), "");
}

static void forgets_a_dead_job_wholly(struct suite *t)
{
    CHECK(t, opened(t), "");
    size_t job = suite_job(t, "", DUE_S(5), "life", 4);
    due_record plain = t->jobs[job].record;
    suite_put(t, job);
    CHECK(t, committed(t), "");
    suite_bury(t, job, DUE_CAUSE_BURIED, DUE_S(6), "why");
    CHECK(t, committed(t), "dead");
    suite_drop(t, job);
    CHECK(t, committed(t), "gone");
    suite_change(t, DUE_CHANGE_PUT, job, &plain);
    CHECK(t, committed(t), "put again");
    CHECK(t, reopened(t), "");
}

static void refuses_to_bury_when_full_but_drops_the_dead(struct suite *t)
{
    if (!suite_has(t, t->maker->full != NULL, "no hook full"))
        return;
    CHECK(t, opened(t), "");
    for (int i = 0; i < 10; i++)
        suite_job(t, "", DUE_S(i), "x", 1);
    CHECK(t, suite_put_all(t, 0), "");
    for (size_t i = 0; i < 4; i++)
        suite_bury(t, i, DUE_CAUSE_BURIED, DUE_S(1), "");
    CHECK(t, committed(t), "");
    t->maker->full(t->maker->ctx, true);
    suite_bury(t, 5, DUE_CAUSE_BURIED, DUE_S(1), "");
    ANSWERS(t, suite_commit(t, 0), DUE_ENOSPC);
    suite_dropped(t);
    CHECK(t, suite_same(t, 0), "nothing of it landed");
    suite_drop(t, 0);
    suite_drop(t, 1);
    suite_drop(t, 6);
    CHECK(t, committed(t), "dead and not, together");
    t->maker->full(t->maker->ctx, false);
    suite_bury(t, 5, DUE_CAUSE_BURIED, DUE_S(1), "");
    CHECK(t, committed(t), "there is room again");
    CHECK(t, reopened(t), "");
}

/* ---- Changes between two pages --------------------------------------------------------------- */

#define IN_A    5
#define IN_B    4
#define IN_DEAD 4 /* of the topics "a" and "b", by turns */
#define ALL     (IN_A + IN_B + IN_DEAD)

enum change { BURY_FIRST, BURY_LAST, KICK_FIRST, KICK_LAST, DROP, PUT_BACK, PUT_DEAD, CHANGES };

static void put_otherwise(struct suite *t, size_t job, bool dead)
{
    due_record next = t->jobs[job].record;

    next.cause = dead ? DUE_CAUSE_EXPIRED : 0;
    next.died_ns = dead ? DUE_S(1) : 0;
    suite_change(t, DUE_CHANGE_PUT, job, &next);
}

/* False: it does not apply. */
static bool gather(struct suite *t, enum change change, size_t job)
{
    bool dead = t->jobs[job].record.cause != 0;

    if (change == DROP) {
        suite_drop(t, job);
        return true;
    }
    if (change == PUT_BACK || change == PUT_DEAD)
        put_otherwise(t, job, change == PUT_DEAD);
    else if (dead == (change == KICK_FIRST || change == KICK_LAST)) {
        if (dead)
            suite_kick(t, job, change == KICK_FIRST ? 0 : DUE_S(99));
        else
            suite_bury(t, job, DUE_CAUSE_BURIED, change == BURY_FIRST ? 0 : DUE_S(99), "");
    } else
        return false;
    return true;
}

static bool laid_out(struct suite *t, bool equal)
{
    if (!suite_drop_all(t, 0))
        return false;
    for (size_t i = 0; i < t->n_jobs; i++)
        free(t->jobs[i].bytes);
    t->n_jobs = 0;
    for (int i = 0; i < ALL; i++) {
        bool a = i < IN_A || (i >= IN_A + IN_B && i % 2 == 0);
        size_t job = suite_job(t, a ? "a" : "b", DUE_MS(equal ? 30 : 10 * i), &i, sizeof i);

        if (i >= IN_A + IN_B) {
            t->jobs[job].record.cause = DUE_CAUSE_BURIED;
            t->jobs[job].record.died_ns = DUE_MS(equal ? 30 : 10 * i);
        }
    }
    return suite_put_all(t, 0);
}

static bool cell(struct suite *t, enum change change, size_t job, int pages, size_t max, bool equal)
{
    int rc = 1;

    if (!laid_out(t, equal))
        return false;
    for (int i = 0; i < pages && rc == 1; i++)
        rc = suite_page(t, 0, i == 0, max);
    if (rc == 1 && gather(t, change, job))
        rc = suite_commit(t, 0) == 0 ? 1 : -1;
    for (int i = 0; i < 100 && rc == 1; i++)
        rc = suite_page(t, 0, false, max);
    return suite_answers(t, rc, 0, __FILE__, __LINE__, "load") && suite_all_seen(t) &&
           suite_same(t, 0);
}

static void is_whole_while_jobs_die_and_come_back(struct suite *t)
{
    static const size_t most[] = { 1, 3 };

    CHECK(t, opened(t), "");
    for (int equal = 0; equal < 2; equal++)
        for (size_t m = 0; m < 2; m++)
            for (int change = 0; change < CHANGES; change++)
                for (size_t job = 0; job < ALL; job += 2)
                    for (int pages = 1; pages <= ALL / (int)most[m]; pages += 2)
                        CHECK(t, cell(t, (enum change)change, job, pages, most[m], equal),
                              "change %d of job %zu after %d pages of %zu", change, job, pages,
                              most[m]);
}

static void change_at_random(struct suite *t, size_t job)
{
    bool dead = t->jobs[job].record.cause != 0;
    int64_t when = DUE_MS((int64_t)suite_below(t, 20));

    switch (suite_below(t, 4)) {
    case 0:
        if (dead)
            suite_kick(t, job, when);
        else
            suite_bury(t, job, DUE_CAUSE_ATTEMPTS, when, "random");
        break;
    case 1:
        put_otherwise(t, job, !dead);
        break;
    case 2:
        if (dead)
            suite_kick(t, job, when);
        else
            suite_move(t, job, when);
        break;
    default:
        suite_drop(t, job);
        break;
    }
}

static void is_whole_under_random_deaths(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (int round = 0; round < 40; round++) {
        int rc = 1;

        CHECK(t, laid_out(t, (round & 1) == 0), "");
        for (int page = 0; page < 200 && rc == 1; page++) {
            rc = suite_page(t, 0, page == 0, 1 + (size_t)suite_below(t, 3));
            size_t job = (size_t)suite_below(t, t->n_jobs);
            if (rc != 1 || suite_below(t, 2) == 0 || page > 30)
                continue;
            if (t->jobs[job].stored)
                change_at_random(t, job);
            else
                suite_put(t, job);
            ANSWERS(t, suite_commit(t, 0), 0);
        }
        CHECK(t, suite_answers(t, rc, 0, __FILE__, __LINE__, "load") && suite_all_seen(t), "");
        CHECK(t, suite_same(t, 0), "round %d", round);
    }
    CHECK(t, reopened(t), "");
}

/* ---- Who waited ------------------------------------------------------------------------------ */

struct waiting {
    struct suite *t;
    int rc;
};

static void *open_the_second(void *arg)
{
    struct waiting *w = arg;

    w->rc = suite_open(w->t, 1);
    return NULL;
}

/* Who has waited for the last owner sees what that one did last. */
static void shows_who_waited_what_was_done_meanwhile(struct suite *t)
{
    struct waiting w = { .t = t };
    struct timespec while_it_looks = { .tv_nsec = 200000000 };

    CHECK(t, opened(t), "");
    for (int i = 0; i < 3; i++)
        suite_put(t, suite_job(t, "", DUE_S(5), "x", 1));
    CHECK(t, committed(t), "");
    CHECK(t, suite_store(t, 1) != NULL, "");
    pthread_t thread;
    CHECK(t, pthread_create(&thread, NULL, open_the_second, &w) == 0, "");
    nanosleep(&while_it_looks, NULL); /* nothing fails if that is too short */
    suite_bury(t, 0, DUE_CAUSE_BURIED, DUE_S(6), "last words");
    suite_move(t, 1, DUE_S(9));
    int rc = suite_commit(t, 0);
    suite_close(t, 0);
    pthread_join(thread, NULL);
    ANSWERS(t, rc, 0);
    ANSWERS(t, w.rc, 0);
    CHECK(t, suite_same(t, 1), "");
}

const struct suite_test suite_dead_tests[] = {
    { "jobs keep what only some of them have", keeps_what_only_some_jobs_have },
    { "jobs are replaced with what only some have", replaces_what_only_some_jobs_have },
    { "dead jobs are kept with why", keeps_why_a_job_is_dead },
    { "dead jobs are shown at the end, in the order of death",
      shows_the_dead_at_the_end_in_the_order_of_death },
    { "dead jobs come back", brings_a_dead_job_back },
    { "dead jobs are taken whole", takes_a_dead_job_whole },
    { "dead jobs come and go in batches", buries_kicks_and_drops_batches_of_the_size_it_says },
    { "dead jobs are forgotten wholly", forgets_a_dead_job_wholly },
    { "dead jobs can be dropped when full", refuses_to_bury_when_full_but_drops_the_dead },
    { "dead jobs: a load is whole while they come and go", is_whole_while_jobs_die_and_come_back },
    { "dead jobs: a load is whole under random changes", is_whole_under_random_deaths },
    { "dead jobs: who waited to open sees the last changes",
      shows_who_waited_what_was_done_meanwhile },
    { NULL, NULL },
};
