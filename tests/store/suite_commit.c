/* suite_commit.c - what a batch does to the jobs of a store. */
#include "store/suite_frame.h"

/* Find each job, and load them all: both show what was committed. */
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

/* Close, open again, and compare: what stays is not what a store remembers in memory. */
static bool reopened(struct suite *t)
{
    suite_close(t, 0);
    return opened(t) && found_and_loaded(t);
}

static void keeps_every_field_of_a_put(struct suite *t)
{
    CHECK(t, opened(t), "");
    size_t job = suite_job(t, "mail", DUE_S(5) + 1, "bytes", 5);
    due_record *r = &t->jobs[job].record;
    r->deadline_ns = DUE_S(4) + 999999999;
    r->attempts = 3;
    r->failures = 2;
    suite_put(t, job);
    CHECK(t, committed(t), "");
    CHECK(t, reopened(t), "");
}

static void replaces_a_job_by_a_put(struct suite *t)
{
    CHECK(t, opened(t), "");
    size_t job = suite_job(t, "", DUE_S(5), "old bytes", 9);
    t->jobs[job].record.attempts = 7;
    suite_put(t, job);
    CHECK(t, committed(t), "");
    for (int i = 0; i < 4; i++) {
        struct suite_job *j = &t->jobs[job];
        due_record next = j->record;

        next.until_ns = DUE_S(i % 2 == 0 ? 9 : 1);
        next.deadline_ns = DUE_S(i);
        next.attempts = (uint32_t)i / 2;
        next.failures = (uint32_t)i;
        next.len = (size_t)(8 - 4 * (i % 3));
        next.data = next.len > 0 ? j->bytes : NULL;
        suite_change(t, DUE_CHANGE_PUT, job, &next);
        if (next.len == 0) {
            free(j->bytes);
            j->bytes = NULL;
        }
        CHECK(t, committed(t), "replaced %d times", i + 1);
        if (next.len == 0)
            break;
    }
    CHECK(t, reopened(t), "");
}

static void moves_times_and_counts_but_not_bytes(struct suite *t)
{
    static const int64_t times[] = { 0,           1, 999, 1000, 1001, DUE_S(3), DUE_FOREVER - 1,
                                     DUE_FOREVER, 5 };

    CHECK(t, opened(t), "");
    size_t job = suite_job(t, "here", DUE_S(5), "stays", 5);
    suite_job(t, "here", DUE_S(4), "neighbour", 9);
    CHECK(t, suite_put_all(t, 0), "");
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        due_record next = t->jobs[job].record;

        next.until_ns = times[i];
        next.deadline_ns = i % 2 == 0 ? times[i] : DUE_S(8);
        next.attempts = i % 3 == 0 ? UINT32_MAX : (uint32_t)i;
        next.failures = i % 3 == 1 ? UINT32_MAX : 0;
        suite_change(t, DUE_CHANGE_MOVE, job, &next);
        CHECK(t, committed(t), "move %zu", i);
    }
    CHECK(t, reopened(t), "");
}

static void drops_jobs(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (int i = 0; i < 20; i++)
        suite_job(t, i % 3 == 0 ? "a" : "b", DUE_S(i % 4), "x", 1);
    CHECK(t, suite_put_all(t, 0), "");
    for (size_t i = 0; i < 20; i += 2)
        suite_drop(t, i);
    CHECK(t, committed(t), "every second");
    suite_put(t, 4);
    CHECK(t, committed(t), "one put again");
    CHECK(t, suite_drop_all(t, 0), "");
    CHECK(t, found_and_loaded(t), "none left");
    CHECK(t, reopened(t), "");
}

/* A job that was moved, dropped and put again under its id has nothing of its old life. */
static void forgets_a_dropped_job_wholly(struct suite *t)
{
    CHECK(t, opened(t), "");
    size_t job = suite_job(t, "", DUE_S(5), "life", 4);
    due_record plain = t->jobs[job].record;
    suite_put(t, job);
    CHECK(t, committed(t), "");
    due_record moved = plain;
    moved.until_ns = DUE_S(7);
    moved.attempts = 9;
    moved.failures = 8;
    suite_change(t, DUE_CHANGE_MOVE, job, &moved);
    CHECK(t, committed(t), "moved");
    suite_drop(t, job);
    CHECK(t, committed(t), "dropped");
    suite_change(t, DUE_CHANGE_PUT, job, &plain);
    CHECK(t, committed(t), "put again");
    suite_change(t, DUE_CHANGE_MOVE, job, &moved);
    CHECK(t, committed(t), "moved again");
    suite_change(t, DUE_CHANGE_PUT, job, &plain);
    CHECK(t, committed(t), "replaced by a plain one");
}

static void makes_changes_of_all_kinds_in_one_batch(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (int i = 0; i < 30; i++)
        suite_job(t, i % 2 == 0 ? "a" : "b", DUE_S(i), "x", (size_t)i % 2);
    for (size_t i = 0; i < 20; i++)
        suite_put(t, i);
    CHECK(t, committed(t), "");
    for (size_t i = 0; i < 30; i++)
        if (i >= 20)
            suite_put(t, i);
        else if (i % 3 == 0)
            suite_drop(t, i);
        else if (i % 3 == 1)
            suite_move(t, i, DUE_S(29 - (int)i));
        else
            suite_put(t, i);
    CHECK(t, committed(t), "");
    CHECK(t, reopened(t), "");
}

static void takes_batches_of_the_size_it_says(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (size_t i = 0; i < t->info[0].batch_changes; i++)
        suite_job(t, "", DUE_MS((int)(i % 10)), &i, sizeof i);
    for (size_t i = 0; i < t->n_jobs; i++)
        suite_put(t, i);
    CHECK(t, committed(t), "put");
    for (size_t i = 0; i < t->n_jobs; i++)
        suite_move(t, i, DUE_S(1));
    CHECK(t, committed(t), "moved");
    for (size_t i = 0; i < t->n_jobs; i++)
        suite_drop(t, i);
    CHECK(t, committed(t), "dropped");
}

static void takes_one_job_of_any_size(struct suite *t)
{
    CHECK(t, opened(t), "");
    size_t len = t->info[0].batch_bytes + 1;
    if (len > (size_t)64 << 20) {
        suite_skip(t, "its batches are too large");
        return;
    }
    char *bytes = malloc(len);
    CHECK(t, bytes != NULL, "");
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 31 + i / 256);
    size_t job = suite_job(t, "", 0, bytes, len);
    free(bytes);
    suite_put(t, job);
    CHECK(t, committed(t), "");
    CHECK(t, suite_drop_all(t, 0), "");
}

static void keeps_payloads_byte_by_byte(struct suite *t)
{
    static const char *const texts[] = { "\r\n",
                                         "$3\r\nabc\r\n",
                                         "*1\r\n$8\r\nFLUSHALL\r\n",
                                         "+OK\r\n",
                                         "-ERR no\r\n",
                                         "*-1\r\n",
                                         "$-1\r\n",
                                         "\n" };
    char *large = malloc((size_t)1 << 20);

    CHECK(t, large != NULL && opened(t), "");
    for (size_t i = 0; i < (size_t)1 << 20; i++)
        large[i] = (char)(i ^ (i >> 8) ^ (i >> 16));
    suite_job(t, "", 0, NULL, 0);
    suite_job(t, "", 0, "\0", 1);
    suite_job(t, "", 0, "\0\0\0\0", 4);
    suite_job(t, "", 0, "a\0b", 3);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        suite_job(t, "", 0, texts[i], strlen(texts[i]));
    for (int c = 0; c < 256; c++)
        suite_job(t, "", 0, large + c, 1);
    suite_job(t, "", 0, large, 256);
    for (size_t len = 1; len <= (size_t)1 << 20; len *= 2) {
        suite_job(t, "", 0, large, len - 1);
        suite_job(t, "", 0, large, len);
    }
    free(large);
    CHECK(t, suite_put_all(t, 0), "");
    CHECK(t, found_and_loaded(t), "");
    CHECK(t, reopened(t), "");
}

static void keeps_topics_of_any_bytes(struct suite *t)
{
    char longest[DUE_TOPIC_LENGTH + 1];
    char all[256];
    static const char *const names[] = {
        "",     " ",   "two words", " front", "back ",        "\r\n",     "a\r\nb", "{a}", "}{",
        "{",    "a:b", "*",         "%s%n",   "\xc3\xa4",     "\xff\xfe", "\t",     "\\",  "\"'",
        "\x01", "j",   "topics",    "t:",     "\xe2\x82\xac", "A",        "a",      "$1",  "0",
    };

    CHECK(t, opened(t), "");
    memset(longest, 'x', sizeof longest - 1);
    longest[DUE_TOPIC_LENGTH] = '\0';
    suite_job(t, longest, DUE_S(1), "1", 1);
    longest[DUE_TOPIC_LENGTH - 1] = 'y';
    suite_job(t, longest, DUE_S(1), "2", 1);
    for (int c = 1; c < 256; c++)
        all[c - 1] = (char)c;
    all[255] = '\0';
    suite_job(t, all, DUE_S(1), "3", 1);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int k = 0; k < 2; k++)
            suite_job(t, names[i], DUE_S(k), names[i], strlen(names[i]));
    CHECK(t, suite_put_all(t, 0), "");
    CHECK(t, found_and_loaded(t), "");
    for (size_t i = 0; i < t->n_jobs; i++)
        suite_move(t, i, DUE_S(3));
    CHECK(t, committed(t), "");
    CHECK(t, reopened(t), "");
    CHECK(t, suite_drop_all(t, 0), "");
    CHECK(t, found_and_loaded(t), "");
}

static void keeps_a_thousand_topics_apart(struct suite *t)
{
    char name[24];

    CHECK(t, opened(t), "");
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "topic %d", i % 1000);
        suite_job(t, name, DUE_S(i % 5), &i, sizeof i);
    }
    CHECK(t, suite_put_all(t, 0), "");
    CHECK(t, suite_same(t, 0), "");
    for (size_t i = 0; i < 3000; i += 3) {
        if (t->n_changes == t->info[0].batch_changes)
            ANSWERS(t, suite_commit(t, 0), 0);
        suite_drop(t, i);
    }
    ANSWERS(t, suite_commit(t, 0), 0);
    suite_close(t, 0);
    CHECK(t, opened(t), "");
    CHECK(t, suite_same(t, 0), "");
}

static void keeps_the_extremes(struct suite *t)
{
    static const int priorities[] = { 0, 1, 127, 128, 254, 255 };
    static const uint64_t sequences[] = {
        0, 1, 255, 256, UINT64_C(0x80000000000000), UINT64_C(0xffffffffffffff)
    };
    static const int64_t times[] = { 0,        1,          DUE_FOREVER - 1, DUE_FOREVER - DUE_S(1),
                                     DUE_S(1), DUE_FOREVER };

    CHECK(t, opened(t), "");
    uint64_t writers[] = { 0, t->info[0].writer };
    for (size_t p = 0; p < 6; p++)
        for (size_t q = 0; q < 6; q++)
            for (size_t w = 0; w < 2; w++) {
                size_t job = suite_job(t, "", times[(p + q + w) % 6], "x", 1);
                due_record *r = &t->jobs[job].record;

                r->priority = priorities[p];
                r->id = suite_id(priorities[p], writers[w], sequences[q]);
                r->attempts = r->failures = UINT32_MAX;
                r->deadline_ns = times[(p + q + w + 1) % 6];
            }
    t->ordered = true;
    CHECK(t, suite_put_all(t, 0), "");
    CHECK(t, found_and_loaded(t), "");
    CHECK(t, reopened(t), "");
    CHECK(t, suite_drop_all(t, 0), "");
    CHECK(t, found_and_loaded(t), "");
}

static void numbers_batches_from_1_in_each_opening(struct suite *t)
{
    for (int opening = 0; opening < 3; opening++) {
        CHECK(t, opened(t), "");
        for (int i = 0; i < 50; i++) {
            size_t job = suite_job(t, "", DUE_S(i), &i, sizeof i);

            suite_put(t, job);
            if (t->n_jobs % 3 == 0)
                suite_drop(t, job - 1);
            ANSWERS(t, suite_commit(t, 0), 0);
        }
        CHECK(t, suite_same(t, 0), "opening %d", opening);
        suite_close(t, 0);
    }
}

static void makes_a_batch_once_that_is_given_twice(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (int i = 0; i < 10; i++) {
        size_t job = suite_job(t, "", DUE_S(i), &i, sizeof i);
        suite_put(t, job);
        if (job > 0)
            suite_drop(t, job - 1);
        ANSWERS(t, suite_ready(t, 0), 0);
        ANSWERS(t, suite_commit_on(t, 0, suite_soon()), 0);
        ANSWERS(t, suite_commit_on(t, 0, suite_soon()), 0);
        suite_noted(t, 0);
        CHECK(t, suite_same(t, 0), "batch %d", i + 1);
    }
}

/* Batches in doubt, one after another, are settled: by the store itself if there is time for it, or
 * by asking again with the same number. */
static void settles_a_batch_in_doubt(struct suite *t)
{
    if (!suite_has(t, t->maker->doubt != NULL, "no hook doubt"))
        return;
    CHECK(t, opened(t), "");
    for (int i = 0; i < 20; i++) {
        size_t job = suite_job(t, "", DUE_S(i), &i, sizeof i);

        suite_put(t, job);
        if (job > 1)
            suite_drop(t, job - 1);
        ANSWERS(t, suite_ready(t, 0), 0);
        t->maker->doubt(t->maker->ctx, i % 2 == 0);
        int rc = suite_commit_on(t, 0, suite_soon());
        CHECK(t, rc == DUE_EINDOUBT || rc == 0, "%s", due_error_name(rc));
        for (int k = 0; k < 1000 && rc == DUE_EINDOUBT; k++)
            rc = suite_commit_on(t, 0, suite_soon());
        ANSWERS(t, rc, 0);
        suite_noted(t, 0);
        CHECK(t, suite_same(t, 0), "batch %d", i + 1);
    }
}

const struct suite_test suite_commit_tests[] = {
    { "commit keeps every field of a put", keeps_every_field_of_a_put },
    { "commit replaces a job by a put", replaces_a_job_by_a_put },
    { "commit moves times and counts but not bytes", moves_times_and_counts_but_not_bytes },
    { "commit drops jobs", drops_jobs },
    { "commit forgets a dropped job wholly", forgets_a_dropped_job_wholly },
    { "commit makes changes of all kinds in one batch", makes_changes_of_all_kinds_in_one_batch },
    { "commit takes batches of the size it says", takes_batches_of_the_size_it_says },
    { "commit takes one job of any size", takes_one_job_of_any_size },
    { "commit keeps payloads byte by byte", keeps_payloads_byte_by_byte },
    { "commit keeps topics of any bytes", keeps_topics_of_any_bytes },
    { "commit keeps a thousand topics apart", keeps_a_thousand_topics_apart },
    { "commit keeps the extremes of ids, times and counts", keeps_the_extremes },
    { "commit numbers batches from 1 in each opening", numbers_batches_from_1_in_each_opening },
    { "commit makes a batch once that is given twice", makes_a_batch_once_that_is_given_twice },
    { "commit settles a batch in doubt", settles_a_batch_in_doubt },
    { NULL, NULL },
};
