/* suite_topics.c - what holds back topics: kept with the jobs, and shown to whoever owns them next.
 */
#include "store/suite_frame.h"

#define TOPICS_MOST 2000

struct topics {
    struct suite *t;
    char names[TOPICS_MOST][16];
    int paused[TOPICS_MOST];
    int64_t held_max[TOPICS_MOST];
    unsigned seen[TOPICS_MOST];
    size_t n;
    int refuse; /* what the visit answers */
};

static bool has_verb(struct suite *t)
{
    const struct due_store_verbs *verbs = suite_store(t, 0)->verbs;
    bool told = verbs->size >= offsetof(struct due_store_verbs, topics) + sizeof verbs->topics;

    return suite_has(t, told && verbs->topics != NULL, "topics");
}

static struct topics *begun(struct suite *t)
{
    struct topics *all = calloc(1, sizeof *all);

    suite_check(t, all != NULL, __FILE__, __LINE__, "no memory");
    all->t = t;
    return all;
}

static size_t number_of(struct topics *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->names[i], name) == 0)
            return i;
    snprintf(all->names[all->n], sizeof all->names[0], "%s", name);
    return all->n++;
}

/* For the next batch. */
static void hold(struct topics *all, const char *name, int paused, int64_t held_max)
{
    size_t i = number_of(all, name);
    due_record none = { .topic = all->names[i] };

    all->paused[i] = paused;
    all->held_max[i] = held_max;
    suite_change(all->t, DUE_CHANGE_TOPIC, 0, &none);
    due_change *change = &all->t->changes[all->t->n_changes - 1];
    change->record.topic = all->names[i];
    change->paused = paused;
    change->held_max = held_max;
}

static int visit(void *ctx, const char *topic, int paused, int64_t held_max)
{
    struct topics *all = ctx;

    if (all->refuse != 0)
        return all->refuse;
    if (paused == 0 && held_max == 0)
        return 0;
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->names[i], topic) != 0)
            continue;
        all->seen[i]++;
        suite_check(all->t, paused == all->paused[i] && held_max == all->held_max[i], __FILE__,
                    __LINE__, "topic %s is shown as %d %lld", topic, paused, (long long)held_max);
        return 0;
    }
    suite_check(all->t, false, __FILE__, __LINE__, "topic %s is shown, which nobody held back",
                topic);
    return 0;
}

static int show(struct topics *all)
{
    due_store *s = suite_called(all->t, 0);
    int64_t end_ns = suite_soon();
    int rc;

    do {
        memset(all->seen, 0, sizeof all->seen);
        rc = s->verbs->topics(s, visit, all, end_ns);
    } while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    return rc;
}

/* Each is shown, and nothing else. */
static bool same(struct topics *all, const char *when)
{
    if (!suite_answers(all->t, show(all), 0, __FILE__, __LINE__, when))
        return false;
    for (size_t i = 0; i < all->n; i++)
        if (all->paused[i] != 0 || all->held_max[i] != 0)
            suite_check(all->t, all->seen[i] > 0, __FILE__, __LINE__, "%s: topic %s is not shown",
                        when, all->names[i]);
    return true;
}

static void topics_are_kept(struct suite *t)
{
    struct topics *all = begun(t);

    ANSWERS(t, suite_open(t, 0), 0);
    if (has_verb(t) && same(all, "nothing")) {
        hold(all, "mail", 1, 0);
        hold(all, "", 0, 3);
        hold(all, "post", 1, INT64_C(1000000000000));
        ANSWERS(t, suite_commit(t, 0), 0);
        same(all, "at once");
        suite_close(t, 0);
        ANSWERS(t, suite_open(t, 0), 0);
        same(all, "opened again");
        hold(all, "mail", 0, 0);
        hold(all, "post", 0, 7);
        ANSWERS(t, suite_commit(t, 0), 0);
        same(all, "changed");
        suite_abandon(t, 0);
        suite_end_lease(t);
        ANSWERS(t, suite_open(t, 0), 0);
        same(all, "after a crash");
    }
    free(all);
}

/* In one batch with jobs of these topics, which stay as they are. */
static void topics_go_with_jobs(struct suite *t)
{
    struct topics *all = begun(t);

    ANSWERS(t, suite_open(t, 0), 0);
    if (has_verb(t)) {
        suite_put(t, suite_job(t, "mail", 5, "x", 1));
        ANSWERS(t, suite_commit(t, 0), 0);
        hold(all, "mail", 1, 2);
        ANSWERS(t, suite_commit(t, 0), 0);
        suite_put(t, suite_job(t, "mail", 7, "y", 1));
        ANSWERS(t, suite_commit(t, 0), 0);
        same(all, "with jobs");
        suite_same(t, 0);
        suite_close(t, 0);
        ANSWERS(t, suite_open(t, 0), 0);
        same(all, "with jobs, opened again");
        suite_same(t, 0);
        suite_drop(t, 0);
        suite_drop(t, 1);
        ANSWERS(t, suite_commit(t, 0), 0);
        same(all, "without a job");
    }
    free(all);
}

static void topics_may_be_many(struct suite *t)
{
    struct topics *all = begun(t);
    char name[16];

    ANSWERS(t, suite_open(t, 0), 0);
    for (int i = 0; has_verb(t) && i < TOPICS_MOST; i++) {
        snprintf(name, sizeof name, "t%d", i);
        hold(all, name, i % 2, i % 3);
        if (t->n_changes == t->info[0].batch_changes || i + 1 == TOPICS_MOST)
            ANSWERS(t, suite_commit(t, 0), 0);
    }
    if (all->n > 0)
        same(all, "many");
    free(all);
}

static void topics_end_with_what_the_visit_answers(struct suite *t)
{
    struct topics *all = begun(t);

    ANSWERS(t, suite_open(t, 0), 0);
    if (has_verb(t)) {
        hold(all, "mail", 1, 0);
        ANSWERS(t, suite_commit(t, 0), 0);
        all->refuse = DUE_ENOMEM;
        ANSWERS(t, show(all), DUE_ENOMEM);
        all->refuse = 0;
        same(all, "after an error");
    }
    free(all);
}

static void topics_come_with_a_batch_that_is_in_doubt(struct suite *t)
{
    for (int lands = 0; lands < 2; lands++) {
        struct topics *all = begun(t);

        if (!suite_has(t, t->maker->doubt != NULL, "doubt")) {
            free(all);
            return;
        }
        ANSWERS(t, suite_open(t, 0), 0);
        if (has_verb(t)) {
            hold(all, "mail", lands, 5);
            t->maker->doubt(t->maker->ctx, lands != 0);
            ANSWERS(t, suite_commit(t, 0), 0);
            same(all, "after doubt");
        }
        suite_close(t, 0);
        free(all);
    }
}

const struct suite_test suite_topic_tests[] = {
    { "topics are kept", topics_are_kept },
    { "topics go with jobs", topics_go_with_jobs },
    { "topics may be many", topics_may_be_many },
    { "topics end with what the visit answers", topics_end_with_what_the_visit_answers },
    { "topics come with a batch that is in doubt", topics_come_with_a_batch_that_is_in_doubt },
    { NULL, NULL },
};
