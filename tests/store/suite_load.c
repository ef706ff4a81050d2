/* suite_load.c - how a store shows its jobs, also while they change. */
#include "store/suite_frame.h"

static bool opened(struct suite *t)
{
    return suite_answers(t, suite_open(t, 0), 0, __FILE__, __LINE__, "open");
}

/* Everything gone from the store and from the notes; the numbers of jobs begin at 0 again. */
static bool cleared(struct suite *t)
{
    if (!suite_drop_all(t, 0))
        return false;
    for (size_t i = 0; i < t->n_jobs; i++)
        free(t->jobs[i].bytes);
    t->n_jobs = 0;
    return true;
}

static bool loaded_in_pages(struct suite *t, size_t max)
{
    size_t calls = 0;
    int rc = suite_page(t, 0, true, max);

    while (rc == 1 && calls++ < 2 * t->n_jobs + 100)
        rc = suite_page(t, 0, false, max);
    return suite_answers(t, rc, 0, __FILE__, __LINE__, "load") && suite_all_seen(t);
}

static void shows_the_earliest_first(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (int i = 0; i < 500; i++)
        suite_job(t, i % 3 == 0 ? "a" : "b", DUE_MS((int64_t)suite_below(t, 200)), &i, sizeof i);
    CHECK(t, suite_put_all(t, 0), "");
    t->ordered = true;
    CHECK(t, loaded_in_pages(t, 100), "");
}

static void shows_equal_times_in_the_order_of_ids(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (int i = 0; i < 300; i++) {
        size_t job = suite_job(t, "", DUE_S(7), &i, sizeof i);
        due_record *r = &t->jobs[job].record;

        r->priority = (int)suite_below(t, 256);
        r->id = suite_id(r->priority, t->info[0].writer, job);
    }
    CHECK(t, suite_put_all(t, 0), "");
    t->ordered = true;
    CHECK(t, loaded_in_pages(t, 7), "");
}

static void shows_everything_in_pages_of_any_size(struct suite *t)
{
    static const size_t pages[] = { 1, 2, 3, 7, 63, 64, 65, 256, 100000 };

    CHECK(t, opened(t), "");
    for (int i = 0; i < 257; i++)
        suite_job(t, i % 5 == 0 ? "a" : "b", DUE_MS(i / 20), &i, sizeof i);
    CHECK(t, suite_put_all(t, 0), "");
    t->ordered = true;
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        CHECK(t, loaded_in_pages(t, pages[i]), "pages of %zu", pages[i]);
}

static void shows_any_number_of_jobs(struct suite *t)
{
    static const int numbers[] = { 0, 1, 255, 256, 257 };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        CHECK(t, opened(t), "");
        for (int k = 0; k < numbers[i]; k++)
            suite_job(t, "", DUE_MS(k), &k, sizeof k);
        CHECK(t, suite_put_all(t, 0), "");
        suite_close(t, 0);
        CHECK(t, opened(t), "");
        CHECK(t, loaded_in_pages(t, 256), "%d jobs", numbers[i]);
        CHECK(t, t->shown >= (size_t)numbers[i], "%d jobs", numbers[i]);
        CHECK(t, cleared(t), "");
        suite_close(t, 0);
    }
}

static void begins_again_when_rewound(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (int i = 0; i < 50; i++)
        suite_job(t, "", DUE_MS(i % 9), &i, sizeof i);
    CHECK(t, suite_put_all(t, 0), "");
    t->ordered = true;
    for (int pages = 0; pages < 12; pages++) {
        int rc = suite_page(t, 0, true, 5);

        for (int i = 1; i < pages && rc == 1; i++)
            rc = suite_page(t, 0, false, 5);
        CHECK(t, rc >= 0, "after %d pages", pages);
        CHECK(t, loaded_in_pages(t, 5), "after %d pages", pages);
    }
}

/* Else what takes longer to read than one call may would be begun again and again. */
static void goes_on_after_a_rewind_without_time(struct suite *t)
{
    due_store *s;
    int rc;

    CHECK(t, opened(t), "");
    for (int i = 0; i < 300; i++)
        suite_job(t, "", DUE_MS(i % 9), &i, sizeof i);
    CHECK(t, suite_put_all(t, 0), "");
    CHECK(t, loaded_in_pages(t, 7), "");
    s = t->stores[0];
    for (int how = 0; how < 4; how++) {
        if (how % 2 == 1 && t->maker->cut != NULL)
            t->maker->cut(t->maker->ctx);
        suite_begin_load(t);
        rc = s->verbs->load(s, 1, 7, suite_visit, t, how < 2 ? 1 : suite_soon());
        CHECK(t, rc == 1 || rc == DUE_EAGAIN, "%s", due_error_name(rc));
        for (int i = 0; (rc == 1 || rc == DUE_EAGAIN) && i < 1000; i++)
            rc = s->verbs->load(s, 0, 7, suite_visit, t, suite_soon());
        ANSWERS(t, rc, 0);
        CHECK(t, suite_all_seen(t), "%d", how);
    }
}

static void ends_with_what_the_visit_answers(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (int i = 0; i < 20; i++)
        suite_job(t, "", DUE_MS(i), &i, sizeof i);
    CHECK(t, suite_put_all(t, 0), "");
    for (size_t after = 0; after < 20; after += 3) {
        suite_begin_load(t);
        t->after = after;
        t->refuse = DUE_ENOMEM;
        int rc = 1;
        for (int i = 0; rc >= 0 && i < 100; i++) {
            rc = t->stores[0]->verbs->load(t->stores[0], i == 0, 4, suite_visit, t, suite_soon());
            if (rc == 0)
                break;
        }
        ANSWERS(t, rc, DUE_ENOMEM);
        CHECK(t, t->shown == after, "the visit is not called again");
        t->refuse = 0;
        CHECK(t, loaded_in_pages(t, 4), "");
    }
    t->refuse = DUE_ELIMIT;
    t->after = 0;
    ANSWERS(t, suite_find(t, 0, t->jobs[3].record.id), DUE_ELIMIT);
}

/* ---- Changes between two pages ---- */

#define IN_A 6 /* jobs of the topic "a" */
#define IN_B 3

enum change {
    NONE,
    DROP,
    MOVE_FIRST,
    MOVE_LAST,
    MOVE_TO_MIDDLE,
    COUNT_UP,
    REPLACE,
    REPLACE_LAST,
    DROP_AND_PUT_FIRST,
    PUT_AT,
    PUT_BEFORE,
    PUT_BEHIND,
    REPLACE_FIRST,
    CHANGES
};

static const char *const change_names[CHANGES] = {
    [NONE] = "nothing",
    [DROP] = "drop",
    [MOVE_FIRST] = "move to the front",
    [MOVE_LAST] = "move to the end",
    [MOVE_TO_MIDDLE] = "move to the middle",
    [COUNT_UP] = "move without moving",
    [REPLACE] = "put in its place",
    [REPLACE_FIRST] = "put in its place, at the front",
    [REPLACE_LAST] = "put in its place, at the end",
    [DROP_AND_PUT_FIRST] = "drop, and put of another at the front",
    [PUT_AT] = "put of another beside it",
    [PUT_BEFORE] = "put of another before it",
    [PUT_BEHIND] = "put of another behind it",
};

static void replace(struct suite *t, size_t job, int64_t until_ns)
{
    due_record next = t->jobs[job].record;

    next.until_ns = next.deadline_ns = until_ns;
    suite_change(t, DUE_CHANGE_PUT, job, &next);
}

static void put_new(struct suite *t, size_t beside, int64_t until_ns)
{
    size_t job = suite_job(t, t->jobs[beside].record.topic, until_ns, "new", 3);

    suite_put(t, job);
}

static void gather(struct suite *t, enum change change, size_t job)
{
    const int64_t first_ns = 0;
    const int64_t last_ns = DUE_S(99);
    int64_t here_ns = t->jobs[job].record.until_ns;

    switch (change) {
    case DROP_AND_PUT_FIRST:
        suite_drop(t, job);
        put_new(t, job, first_ns);
        break;
    case DROP:
        suite_drop(t, job);
        break;
    case MOVE_FIRST:
    case MOVE_LAST:
    case MOVE_TO_MIDDLE:
    case COUNT_UP:
        suite_move(t, job,
                   change == MOVE_FIRST       ? first_ns
                   : change == MOVE_LAST      ? last_ns
                   : change == MOVE_TO_MIDDLE ? DUE_MS(35)
                                              : here_ns);
        t->changes[t->n_changes - 1].record.attempts++;
        break;
    case REPLACE:
    case REPLACE_FIRST:
    case REPLACE_LAST:
        replace(t, job, change == REPLACE ? here_ns : change == REPLACE_FIRST ? first_ns : last_ns);
        break;
    case PUT_AT:
    case PUT_BEFORE:
    case PUT_BEHIND:
        put_new(t, job,
                change == PUT_AT ? here_ns : here_ns + (change == PUT_BEFORE ? -1000 : 1000));
        break;
    default:
        break;
    }
}

static bool cell(struct suite *t, enum change change, size_t job, int pages, size_t max, bool equal)
{
    int rc = 1;

    if (!cleared(t))
        return false;
    for (int i = 0; i < IN_A + IN_B; i++)
        suite_job(t, i < IN_A ? "a" : "b", DUE_MS(equal ? 30 : 10 * (i % IN_A + 1)), &i, sizeof i);
    if (!suite_put_all(t, 0))
        return false;
    t->ordered = change == DROP || change == NONE;
    for (int i = 0; i < pages && rc == 1; i++)
        rc = suite_page(t, 0, i == 0, max);
    if (rc == 1 && change != NONE) {
        gather(t, change, job);
        rc = suite_commit(t, 0) == 0 ? 1 : -1;
    }
    for (int i = 0; i < 100 && rc == 1; i++)
        rc = suite_page(t, 0, false, max);
    bool good = suite_answers(t, rc, 0, __FILE__, __LINE__, "load") && suite_all_seen(t);
    t->ordered = false;
    return good && suite_same(t, 0);
}

static void matrix(struct suite *t, enum change first, enum change last, bool equal)
{
    static const size_t most[] = { 1, 2, 4 };

    CHECK(t, opened(t), "");
    for (size_t m = 0; m < 3; m++)
        for (int change = (int)first; change <= (int)last; change++)
            for (size_t job = 0; job < IN_A + IN_B; job += job < IN_A ? 1 : 2)
                for (int pages = 1; pages <= 9 / (int)most[m]; pages++)
                    CHECK(t, cell(t, (enum change)change, job, pages, most[m], equal),
                          "%s of job %zu after %d pages of %zu", change_names[change], job, pages,
                          most[m]);
}

static void is_whole_under_changes_of_different_times(struct suite *t)
{
    matrix(t, NONE, PUT_BEHIND, false);
}

static void is_whole_under_changes_of_equal_times(struct suite *t)
{
    matrix(t, NONE, PUT_BEHIND, true);
}

/* It was stored all the time, though elsewhere: it is to be shown. */
static void shows_what_was_put_again_in_front(struct suite *t)
{
    matrix(t, REPLACE_FIRST, REPLACE_FIRST, false);
    if (t->failed)
        return;
    suite_close(t, 0);
    matrix(t, REPLACE_FIRST, REPLACE_FIRST, true);
}

/* Each job at most once in a batch. */
static bool change_at_random(struct suite *t)
{
    size_t first = (size_t)suite_below(t, 20);
    size_t stride = 20 + (size_t)suite_below(t, 50);

    for (size_t i = first; i < t->n_jobs && t->n_changes < 8; i += stride) {
        static const enum change kinds[] = { DROP,     MOVE_FIRST, MOVE_LAST,   MOVE_TO_MIDDLE,
                                             COUNT_UP, REPLACE,    REPLACE_LAST };

        if (t->jobs[i].stored)
            gather(t, kinds[suite_below(t, 7)], i);
        else
            suite_put(t, i);
    }
    for (size_t i = (size_t)suite_below(t, 3); i > 0; i--)
        put_new(t, (size_t)suite_below(t, t->n_jobs), DUE_MS(10 * (int64_t)suite_below(t, 10)));
    return suite_answers(t, suite_commit(t, 0), 0, __FILE__, __LINE__, "commit");
}

static void is_whole_under_random_changes(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (int round = 0; round < 40; round++) {
        size_t most = 1 + (size_t)suite_below(t, 12);

        CHECK(t, cleared(t), "");
        for (int i = 0; i < 120; i++)
            suite_job(t,
                      i % 3 == 0   ? "a"
                      : i % 3 == 1 ? "b"
                                   : "",
                      DUE_MS(10 * (int64_t)suite_below(t, round % 2 == 0 ? 2 : 50)), &i, sizeof i);
        CHECK(t, suite_put_all(t, 0), "");
        int rc = suite_page(t, 0, true, most);
        for (int i = 0; i < 5000 && rc == 1; i++) {
            if (i < 60)
                CHECK(t, change_at_random(t), "");
            rc = suite_page(t, 0, false, most);
        }
        ANSWERS(t, rc, 0);
        CHECK(t, suite_all_seen(t), "round %d, pages of %zu", round, most);
        CHECK(t, suite_same(t, 0), "round %d", round);
    }
}

/* What a queue does that is emptied while it loads: every page is removed before the next. */
static void is_whole_while_everything_shown_is_dropped(struct suite *t)
{
    for (int equal = 0; equal < 2; equal++) {
        CHECK(t, opened(t), "");
        CHECK(t, cleared(t), "");
        for (int i = 0; i < 600; i++)
            suite_job(t, i % 2 == 0 ? "a" : "b", equal ? DUE_S(1) : DUE_MS(i), &i, sizeof i);
        CHECK(t, suite_put_all(t, 0), "");
        int rc = suite_page(t, 0, true, 16);
        for (int calls = 0; calls < 1000; calls++) {
            for (size_t i = 0; i < t->n_jobs && t->n_changes < t->info[0].batch_changes; i++)
                if (t->jobs[i].seen > 0 && t->jobs[i].stored)
                    suite_drop(t, i);
            if (t->n_changes > 0)
                ANSWERS(t, suite_commit(t, 0), 0);
            if (rc != 1)
                break;
            rc = suite_page(t, 0, false, 16);
        }
        ANSWERS(t, rc, 0);
        CHECK(t, suite_all_seen(t), "");
        for (size_t i = 0; i < t->n_jobs; i++)
            CHECK(t, t->jobs[i].seen == 1, "job %zu is shown once", i);
        CHECK(t, suite_same(t, 0), "nothing is left");
        suite_close(t, 0);
    }
}

static void finds_only_what_is_stored(struct suite *t)
{
    CHECK(t, opened(t), "");
    ANSWERS(t, suite_find(t, 0, suite_id(0, 0, 0)), DUE_ENOENT);
    for (int i = 0; i < 20; i++)
        suite_job(t, i % 2 == 0 ? "a" : "b", DUE_S(i), &i, sizeof i);
    CHECK(t, suite_put_all(t, 0), "");
    for (size_t i = 0; i < 20; i++)
        ANSWERS(t, suite_find(t, 0, t->jobs[i].record.id), 0);
    ANSWERS(t, suite_find(t, 0, suite_id(1, t->info[0].writer, 3)), DUE_ENOENT);
    ANSWERS(t, suite_find(t, 0, suite_id(0, t->info[0].writer, 20)), DUE_ENOENT);
    suite_drop(t, 5);
    ANSWERS(t, suite_commit(t, 0), 0);
    ANSWERS(t, suite_find(t, 0, t->jobs[5].record.id), DUE_ENOENT);
}

/* Finding something does not disturb a load under way. */
static void finds_jobs_while_loading(struct suite *t)
{
    CHECK(t, opened(t), "");
    for (int i = 0; i < 100; i++)
        suite_job(t, "", DUE_MS(i / 10), &i, sizeof i);
    CHECK(t, suite_put_all(t, 0), "");
    int rc = suite_page(t, 0, true, 9);
    for (size_t i = 0; rc == 1 && i < 1000; i++) {
        unsigned seen = t->jobs[i % 100].seen;

        ANSWERS(t, suite_find(t, 0, t->jobs[i % 100].record.id), 0);
        t->jobs[i % 100].seen = seen;
        rc = suite_page(t, 0, false, 9);
    }
    ANSWERS(t, rc, 0);
    CHECK(t, suite_all_seen(t), "");
}

static void holds_many_jobs(struct suite *t)
{
    size_t n = t->maker->jobs == 0 ? 100000 : t->maker->jobs;

    CHECK(t, opened(t), "");
    for (size_t i = 0; i < n; i++)
        suite_job(t, i % 4 == 0 ? "few" : "many", i % 2 == 0 ? DUE_S(5) : DUE_MS((int64_t)i), &i,
                  sizeof i);
    CHECK(t, suite_put_all(t, 0), "");
    suite_close(t, 0);
    CHECK(t, opened(t), "");
    t->ordered = true;
    CHECK(t, t->info[0].jobs > n / 2 && t->info[0].jobs < 2 * n, "about how many are stored");
    CHECK(t, loaded_in_pages(t, 1000), "");
    for (size_t i = 0; i < n; i += 2) {
        if (t->n_changes == t->info[0].batch_changes)
            ANSWERS(t, suite_commit(t, 0), 0);
        suite_drop(t, i);
    }
    ANSWERS(t, suite_commit(t, 0), 0);
    CHECK(t, loaded_in_pages(t, 1000), "");
    CHECK(t, suite_drop_all(t, 0), "");
    CHECK(t, suite_same(t, 0), "");
}

const struct suite_test suite_load_tests[] = {
    { "load shows the earliest first", shows_the_earliest_first },
    { "load shows equal times in the order of ids", shows_equal_times_in_the_order_of_ids },
    { "load shows everything in pages of any size", shows_everything_in_pages_of_any_size },
    { "load shows any number of jobs", shows_any_number_of_jobs },
    { "load begins again when rewound", begins_again_when_rewound },
    { "load goes on after a rewind without time", goes_on_after_a_rewind_without_time },
    { "load ends with what the visit answers", ends_with_what_the_visit_answers },
    { "load is whole under changes, different times", is_whole_under_changes_of_different_times },
    { "load is whole under changes, equal times", is_whole_under_changes_of_equal_times },
    { "load shows what was put again in front", shows_what_was_put_again_in_front },
    { "load is whole under random changes", is_whole_under_random_changes },
    { "load is whole while everything shown is dropped",
      is_whole_while_everything_shown_is_dropped },
    { "find finds only what is stored", finds_only_what_is_stored },
    { "find finds jobs while loading", finds_jobs_while_loading },
    { "load holds many jobs", holds_many_jobs },
    { NULL, NULL },
};
