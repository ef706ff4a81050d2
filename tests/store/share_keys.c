/* share_keys.c - unique keys of jobs that many processes share: one job at most has each. */
#include "store/share_frame.h"

static size_t keyed_of(struct sharing *t, const char *topic, int64_t in_ns, const char *key,
                       size_t len)
{
    static const char bytes[20000] = "long";
    size_t job = sharing_job_of(t, topic, in_ns, bytes, len);

    t->base.jobs[job].record.key = key;
    t->base.jobs[job].record.key_len = strlen(key);
    return job;
}

static size_t keyed(struct sharing *t, int64_t in_ns, const char *key)
{
    return keyed_of(t, "a", in_ns, key, 4);
}

/* The result of a put by process @s; the job is known as not stored if it was refused. */
static int put(struct sharing *t, int s, size_t job)
{
    sharing_put(t, job);
    int rc = sharing_send(t, s);

    return rc != 0 ? rc : t->results[0];
}

/* What the verb answers, and whether it names that job. */
static int holder(struct sharing *t, int s, const char *key, size_t job)
{
    int64_t end_ns = suite_soon();
    due_id id = { { 0 } };
    int rc;

    do
        rc = sharing_verbs(t, s)->holder(t->base.stores[s], key, strlen(key), &id, end_ns);
    while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    (void)suite_check(&t->base, rc < 0 || due_id_equal(id, t->base.jobs[job].record.id), __FILE__,
                      __LINE__, "the key %s is that of another job", key);
    return rc;
}

/* The key is free: a job can have it, and is gone again. */
static bool is_free(struct sharing *t, const char *key)
{
    size_t job = keyed(t, SHARE_LATER_NS, key);

    if (!suite_answers(&t->base, holder(t, 1, key, job), DUE_ENOENT, __FILE__, __LINE__, key) ||
        !suite_answers(&t->base, put(t, 1, job), 0, __FILE__, __LINE__, key))
        return false;
    sharing_cancel(t, job);
    return sharing_sent(t, 1);
}

static bool is_taken(struct sharing *t, const char *key, size_t by)
{
    return suite_answers(&t->base, holder(t, 1, key, by), 0, __FILE__, __LINE__, key) &&
           suite_answers(&t->base, put(t, 1, keyed(t, 0, key)), DUE_EEXIST, __FILE__, __LINE__,
                         key);
}

static void one_job_has_a_key(struct sharing *t)
{
    if (!sharing_all_join(t, 2))
        return;
    size_t first = keyed(t, SHARE_LATER_NS, "k");
    SHARE_ANSWERS(t, put(t, 0, first), 0);
    SHARE_CHECK(t, is_taken(t, "k", first), "for another process");
    SHARE_ANSWERS(t, put(t, 0, keyed(t, 0, "k")), DUE_EEXIST);
    SHARE_ANSWERS(t, put(t, 0, keyed(t, SHARE_LATER_NS, "K")), 0);
    SHARE_ANSWERS(t, put(t, 1, keyed(t, SHARE_LATER_NS, "kk")), 0);
    SHARE_ANSWERS(t, sharing_find(t, 1, first), 0);
    SHARE_CHECK(t, sharing_drain(t, 1, 0), "nothing of what was refused is due");
}

static void what_was_refused_leaves_nothing(struct sharing *t)
{
    struct due_census_all all;

    if (!sharing_all_join(t, 2))
        return;
    SHARE_ANSWERS(t, put(t, 0, keyed(t, SHARE_LATER_NS, "k")), 0);
    size_t refused = keyed_of(t, "b", -DUE_MS(5), "k", 20000);
    t->base.jobs[refused].record.attempts = 2;
    SHARE_ANSWERS(t, put(t, 1, refused), DUE_EEXIST);
    SHARE_ANSWERS(t, sharing_find(t, 0, refused), DUE_ENOENT);
    SHARE_ANSWERS(t, sharing_census(t, 0, &all), 0);
    SHARE_CHECK(t, all.jobs == 1, "%llu jobs", (unsigned long long)all.jobs);
    SHARE_CHECK(t, all.head_ns > sharing_now(t), "a head where nothing is due");
    sharing_cancel(t, refused);
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    SHARE_CHECK(t, t->results[0] == DUE_ENOENT, "%s", due_error_name(t->results[0]));
}

/* A topic whose first job was refused is known with the first that is not. */
static void a_topic_is_known_whose_first_job_was_refused(struct sharing *t)
{
    struct due_census_all all;

    if (!sharing_all_join(t, 2))
        return;
    SHARE_ANSWERS(t, put(t, 0, keyed(t, SHARE_LATER_NS, "k")), 0);
    SHARE_ANSWERS(t, put(t, 1, keyed_of(t, "b", SHARE_LATER_NS, "k", 4)), DUE_EEXIST);
    SHARE_ANSWERS(t, put(t, 1, sharing_job_of(t, "b", SHARE_LATER_NS, "tea", 3)), 0);
    SHARE_ANSWERS(t, sharing_census(t, 0, &all), 0);
    struct due_census_topic b = sharing_counted("b");
    SHARE_CHECK(t, b.delayed == 1, "%llu wait", (unsigned long long)b.delayed);
}

/* Of many topics, long and short, with and without what some jobs have: each its own answer. */
static void each_of_many_has_its_own_answer(struct sharing *t)
{
    static const char *const topics[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "l" };
    static char keys[66][4];
    size_t jobs[66];

    if (!sharing_all_join(t, 2))
        return;
    for (size_t i = 0; i < 66; i++)
        snprintf(keys[i], sizeof keys[i], "%zu", i);
    for (size_t i = 0; i < 66; i += 3)
        SHARE_ANSWERS(t, put(t, 0, keyed(t, SHARE_LATER_NS, keys[i])), 0);
    for (size_t i = 0; i < 66; i++) {
        int64_t in_ns = -DUE_US((int64_t)i + 1);
        jobs[i] = keyed_of(t, topics[i % 11], in_ns, keys[i], i % 5 == 0 ? 20000 : 4);
        if (i % 2 == 0) {
            t->base.jobs[jobs[i]].record.key = NULL;
            t->base.jobs[jobs[i]].record.key_len = 0;
        }
        t->base.jobs[jobs[i]].record.attempts = i % 7 == 0;
        sharing_put(t, jobs[i]);
    }
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    size_t due = 0;
    for (size_t i = 0; i < 66; i++) {
        int wanted = i % 2 == 1 && i % 3 == 0 ? DUE_EEXIST : 0;
        SHARE_CHECK(t, t->results[i] == wanted, "job %zu: %s", i, due_error_name(t->results[i]));
        due += wanted == 0;
    }
    for (size_t i = 1; i < 66; i += 2)
        SHARE_ANSWERS(t, put(t, 0, keyed(t, SHARE_LATER_NS, keys[i])), DUE_EEXIST);
    SHARE_CHECK(t, sharing_drain(t, 0, due), "all others are due");
}

static void of_two_in_one_exchange_the_first_has_it(struct sharing *t)
{
    if (!sharing_all_join(t, 1))
        return;
    size_t first = keyed(t, -DUE_MS(5), "k");
    size_t second = keyed(t, -DUE_MS(9), "k");
    sharing_put(t, first);
    sharing_put(t, second);
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    SHARE_CHECK(t, t->results[0] == 0 && t->results[1] == DUE_EEXIST, "%s, %s",
                due_error_name(t->results[0]), due_error_name(t->results[1]));
    SHARE_ANSWERS(t, holder(t, 0, "k", first), 0);
    sharing_claim(t, 2, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &first, 1), "the first");
}

/* ---- What frees it ---- */

static void a_job_that_is_done_has_it_no_more(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, keyed(t, -DUE_MS(5), "k"), SHARE_LONG_NS, &h))
        return;
    SHARE_CHECK(t, is_taken(t, "k", h.job), "while it is held");
    sharing_start(t, h, 1);
    SHARE_CHECK(t, sharing_sent(t, 0) && is_taken(t, "k", h.job), "begun");
    sharing_extend(t, h, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && is_taken(t, "k", h.job), "extended");
    sharing_done(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0) && is_free(t, "k"), "done");
}

static void a_job_that_waits_again_or_is_dead_has_it(struct sharing *t)
{
    struct sharing_held h;
    size_t job = 0;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, job = keyed(t, -DUE_MS(5), "k"), SHARE_LONG_NS, &h))
        return;
    sharing_release(t, h);
    SHARE_CHECK(t, sharing_sent(t, 0) && is_taken(t, "k", job), "released");
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &job, 1), "claimed");
    sharing_back(t, t->held[0], sharing_now(t) - DUE_MS(1));
    SHARE_CHECK(t, sharing_sent(t, 0) && is_taken(t, "k", job), "waits");
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &job, 1), "claimed");
    sharing_bury(t, t->held[0], "no good");
    SHARE_CHECK(t, sharing_sent(t, 0) && is_taken(t, "k", job), "dead");
    sharing_kick(t, job, sharing_now(t) + SHARE_LATER_NS);
    SHARE_CHECK(t, sharing_sent(t, 0) && is_taken(t, "k", job), "kicked");
    sharing_cancel(t, job);
    SHARE_CHECK(t, sharing_sent(t, 1) && is_free(t, "k"), "cancelled");
}

static void a_dead_job_that_is_dropped_has_it_no_more(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, keyed(t, -DUE_MS(5), "k"), SHARE_LONG_NS, &h))
        return;
    sharing_bury(t, h, "no good");
    SHARE_CHECK(t, sharing_sent(t, 0), "buried");
    sharing_strike(t, h.job);
    SHARE_CHECK(t, sharing_sent(t, 1) && is_free(t, "k"), "struck off");
}

/* By whoever knows neither its topic nor its key. */
static void it_is_free_when_the_id_alone_is_named(struct sharing *t)
{
    if (!sharing_all_join(t, 2))
        return;
    size_t job = keyed(t, SHARE_LATER_NS, "k");
    SHARE_ANSWERS(t, put(t, 0, job), 0);
    sharing_cancel(t, job);
    t->base.changes[0].record = (due_record){ .id = t->base.jobs[job].record.id };
    SHARE_CHECK(t, sharing_sent(t, 1) && is_free(t, "k"), "cancelled");
}

static void who_lost_the_lease_does_not_free_it(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, keyed(t, -DUE_MS(5), "k"), SHARE_SHORT_NS, &h))
        return;
    sharing_pass(t, SHARE_PASS_NS);
    sharing_claim(t, 1, 0, SHARE_LONG_NS);
    SHARE_CHECK(t, sharing_sent(t, 1) && sharing_got(t, &h.job, 1), "it lapsed");
    struct sharing_held second = t->held[0];
    sharing_done(t, h);
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    SHARE_CHECK(t, t->results[0] == DUE_ESTALE, "%s", due_error_name(t->results[0]));
    SHARE_CHECK(t, is_taken(t, "k", h.job), "still");
    sharing_done(t, second);
    SHARE_CHECK(t, sharing_sent(t, 1) && is_free(t, "k"), "by its holder");
}

/* ---- A key that is kept ---- */

static bool done_and_kept(struct sharing *t, const char *key, int64_t keep_ns, size_t *job)
{
    struct sharing_held h;

    *job = keyed(t, -DUE_MS(5), key);
    if (!sharing_have(t, 0, *job, SHARE_LONG_NS, &h))
        return false;
    suite_drop_keeping(&t->base, h.job, sharing_now(t) + keep_ns);
    t->base.changes[0].held = h.held;
    t->work = true;
    return sharing_sent(t, 0);
}

static void a_kept_key_is_taken_until_its_time(struct sharing *t)
{
    size_t job;
    size_t other;

    if (!sharing_all_join(t, 2) || !done_and_kept(t, "k", SHARE_SHORT_NS, &job) ||
        !done_and_kept(t, "longer", SHARE_LATER_NS, &other))
        return;
    SHARE_ANSWERS(t, sharing_find(t, 1, job), DUE_ENOENT);
    if (holder(t, 1, "k", job) != DUE_ENOENT) { /* else the machine was slower than the key */
        int rc = put(t, 1, keyed(t, SHARE_LATER_NS, "k"));
        SHARE_CHECK(t, rc == DUE_EEXIST || holder(t, 1, "k", job) != 1, "%s", due_error_name(rc));
    }
    sharing_pass(t, SHARE_PASS_NS);
    sharing_cancel(t, t->base.n_jobs - 1);
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    SHARE_CHECK(t, is_free(t, "k"), "its time is over");
    SHARE_ANSWERS(t, holder(t, 1, "longer", other), 1);
    SHARE_ANSWERS(t, put(t, 0, keyed(t, SHARE_LATER_NS, "longer")), DUE_EEXIST);
}

/* A job that has left for somebody who was gone comes back with its key. */
static void the_job_that_it_is_kept_for_may_have_it(struct sharing *t)
{
    size_t job;

    if (!sharing_all_join(t, 2) || !done_and_kept(t, "k", SHARE_LATER_NS, &job))
        return;
    SHARE_ANSWERS(t, put(t, 0, job), 0);
    SHARE_CHECK(t, is_taken(t, "k", job), "by itself");
    sharing_cancel(t, job);
    SHARE_CHECK(t, sharing_sent(t, 1) && is_free(t, "k"), "and not kept any more");
}

static void a_cancelled_job_keeps_no_key(struct sharing *t)
{
    if (!sharing_all_join(t, 2))
        return;
    size_t job = keyed(t, SHARE_LATER_NS, "k");
    t->base.jobs[job].record.keep_key_ns = SHARE_LATER_NS;
    SHARE_ANSWERS(t, put(t, 0, job), 0);
    sharing_cancel(t, job);
    SHARE_CHECK(t, sharing_sent(t, 1) && is_free(t, "k"), "cancelled");
}

/* ---- Changes that name a key ---- */

static void a_change_with_a_key_is_of_the_job_that_has_it(struct sharing *t)
{
    if (!sharing_all_join(t, 2))
        return;
    size_t job = keyed(t, SHARE_LATER_NS, "k");
    size_t other = keyed(t, SHARE_LATER_NS, "other");
    SHARE_ANSWERS(t, put(t, 0, job), 0);
    SHARE_ANSWERS(t, put(t, 0, other), 0);
    for (int amends = 0; amends < 2; amends++)
        for (int i = 0; i < 2; i++) {
            if (!sharing_look(t, 1, job))
                return;
            if (amends)
                sharing_amend(t, job, sharing_now(t) + SHARE_LATER_NS, "new", 3);
            else
                sharing_cancel(t, job);
            t->base.changes[0].record.key = i == 0 ? "other" : "free";
            t->base.changes[0].record.key_len = i == 0 ? 5 : 4;
            SHARE_ANSWERS(t, sharing_send(t, 1), 0);
            SHARE_CHECK(t, t->results[0] == DUE_EAGAIN, "%s", due_error_name(t->results[0]));
        }
    SHARE_ANSWERS(t, sharing_find(t, 0, job), 0);
    if (!sharing_look(t, 1, job))
        return;
    sharing_amend(t, job, sharing_now(t) + SHARE_LATER_NS, "new", 3);
    SHARE_CHECK(t, sharing_sent(t, 1) && is_taken(t, "k", job), "it has the key still");
    SHARE_ANSWERS(t, sharing_find(t, 0, job), 0);
    sharing_cancel(t, job);
    SHARE_CHECK(t, sharing_sent(t, 1) && is_free(t, "k"), "cancelled by its key");
}

/* Who cancels by a key means the job that has it, also if that is dead. */
static void a_dead_job_that_lost_its_key_is_not_dropped_by_it(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, keyed(t, -DUE_MS(5), "k"), SHARE_LONG_NS, &h))
        return;
    sharing_bury(t, h, "no good");
    SHARE_CHECK(t, sharing_sent(t, 0), "buried");
    size_t heir = keyed(t, SHARE_LATER_NS, "k");
    sharing_put(t, heir);
    t->base.changes[0].from = t->base.jobs[h.job].record.id;
    SHARE_CHECK(t, sharing_sent(t, 0) && is_taken(t, "k", heir), "taken over");
    sharing_strike(t, h.job);
    t->base.changes[0].record.key = "k";
    t->base.changes[0].record.key_len = 1;
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    SHARE_CHECK(t, t->results[0] == DUE_EAGAIN, "%s", due_error_name(t->results[0]));
    t->base.jobs[h.job].record.key = NULL;
    t->base.jobs[h.job].record.key_len = 0;
    SHARE_ANSWERS(t, sharing_find(t, 0, h.job), 0);
    sharing_strike(t, h.job);
    SHARE_CHECK(t, sharing_sent(t, 1) && is_taken(t, "k", heir), "by its id it is");
}

static void a_dead_job_is_dropped_by_its_key(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, keyed(t, -DUE_MS(5), "k"), SHARE_LONG_NS, &h))
        return;
    sharing_bury(t, h, "no good");
    SHARE_CHECK(t, sharing_sent(t, 0), "buried");
    sharing_strike(t, h.job);
    t->base.changes[0].record.key = "k";
    t->base.changes[0].record.key_len = 1;
    SHARE_CHECK(t, sharing_sent(t, 1) && is_free(t, "k"), "struck off");
}

/* ---- A key that is taken over ---- */

static int put_over(struct sharing *t, int s, size_t job, size_t from)
{
    sharing_put(t, job);
    t->base.changes[0].from = t->base.jobs[from].record.id;
    int rc = sharing_send(t, s);

    return rc != 0 ? rc : t->results[0];
}

/* It is known of it that it has its key no more. */
static void has_lost(struct sharing *t, size_t job)
{
    t->base.jobs[job].record.key = NULL;
    t->base.jobs[job].record.key_len = 0;
}

static void it_is_taken_over_from_the_job_that_is_named(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, keyed(t, -DUE_MS(5), "k"), SHARE_LONG_NS, &h))
        return;
    size_t other = sharing_job(t, "a", SHARE_LATER_NS);
    SHARE_ANSWERS(t, put(t, 1, other), 0);
    SHARE_ANSWERS(t, put_over(t, 1, keyed(t, 0, "k"), other), DUE_EEXIST);
    size_t heir = keyed(t, SHARE_LATER_NS, "k");
    SHARE_ANSWERS(t, put_over(t, 1, heir, h.job), 0);
    SHARE_CHECK(t, is_taken(t, "k", heir), "by the one that took it over");
    SHARE_ANSWERS(t, put_over(t, 0, keyed(t, 0, "k"), h.job), DUE_EEXIST);
    has_lost(t, h.job);
    SHARE_ANSWERS(t, sharing_find(t, 1, h.job), 0);
    sharing_back(t, h, sharing_now(t) - DUE_MS(1));
    SHARE_CHECK(t, sharing_sent(t, 0), "it goes on without it");
    sharing_cancel(t, h.job);
    t->base.changes[0].record.key = "k";
    t->base.changes[0].record.key_len = 1;
    SHARE_ANSWERS(t, sharing_send(t, 0), 0);
    SHARE_CHECK(t, t->results[0] == DUE_EAGAIN, "%s", due_error_name(t->results[0]));
    sharing_cancel(t, h.job);
    SHARE_CHECK(t, sharing_sent(t, 0) && is_taken(t, "k", heir), "and takes none with it");
    sharing_cancel(t, heir);
    SHARE_CHECK(t, sharing_sent(t, 0) && is_free(t, "k"), "the end");
}

static void who_lost_it_neither_frees_nor_keeps_it(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, keyed(t, -DUE_MS(5), "k"), SHARE_LONG_NS, &h))
        return;
    size_t heir = keyed(t, SHARE_LATER_NS, "k");
    SHARE_ANSWERS(t, put_over(t, 1, heir, h.job), 0);
    sharing_done(t, h);
    t->base.changes[0].key_kept_ns = sharing_now(t) + SHARE_LATER_NS;
    SHARE_CHECK(t, sharing_sent(t, 0) && is_taken(t, "k", heir), "it is the other's");
    sharing_cancel(t, heir);
    SHARE_CHECK(t, sharing_sent(t, 1) && is_free(t, "k"), "and then free");
}

static void a_kept_key_is_not_taken_over(struct sharing *t)
{
    size_t job;

    if (!sharing_all_join(t, 2) || !done_and_kept(t, "k", SHARE_LATER_NS, &job))
        return;
    SHARE_ANSWERS(t, put_over(t, 1, keyed(t, 0, "k"), job), DUE_EEXIST);
    SHARE_ANSWERS(t, put_over(t, 1, keyed(t, SHARE_LATER_NS, "free"), job), 0);
}

/* What it was handed out before does not count for other content. */
static void other_content_begins_anew(struct sharing *t)
{
    struct sharing_held h;

    if (!sharing_all_join(t, 2) ||
        !sharing_have(t, 0, keyed(t, -DUE_MS(5), "k"), SHARE_LONG_NS, &h))
        return;
    for (int anew = 0; anew < 2; anew++) {
        sharing_start(t, h, 1);
        SHARE_CHECK(t, sharing_sent(t, 0), "begun");
        sharing_back(t, h, sharing_now(t) + SHARE_LATER_NS);
        SHARE_CHECK(t, sharing_sent(t, 0), "failed");
        if (!sharing_look(t, 1, h.job))
            return;
        sharing_amend(t, h.job, sharing_now(t) - DUE_MS(1), "new", 3);
        t->base.changes[0].anew = anew;
        SHARE_CHECK(t, sharing_sent(t, 1), "%d", anew);
        SHARE_ANSWERS(t, sharing_find(t, 0, h.job), 0); /* compares the counts */
        SHARE_CHECK(t, is_taken(t, "k", h.job), "%d", anew);
        sharing_claim(t, 1, 0, SHARE_LONG_NS);
        SHARE_CHECK(t, sharing_sent(t, 0) && sharing_got(t, &h.job, 1), "%d", anew);
        h = t->held[0];
    }
}

/* ---- Once more, and when it is full ---- */

static void a_refusal_is_repeated(struct sharing *t)
{
    if (!sharing_all_join(t, 2))
        return;
    size_t first = keyed(t, SHARE_LATER_NS, "k");
    size_t plain = sharing_job(t, "a", -DUE_MS(5));
    SHARE_ANSWERS(t, put(t, 0, first), 0);
    sharing_put(t, keyed(t, -DUE_MS(5), "k"));
    sharing_put(t, plain);
    SHARE_ANSWERS(t, sharing_send_once(t, 1), 0);
    struct due_change asked[2] = { t->base.changes[0], t->base.changes[1] };
    sharing_forget(t);
    sharing_cancel(t, first);
    SHARE_CHECK(t, sharing_sent(t, 0), "it is free by now");
    sharing_put(t, plain + 1);
    sharing_put(t, plain);
    t->base.changes[0] = asked[0];
    t->base.changes[1] = asked[1];
    SHARE_ANSWERS(t, sharing_send(t, 1), 0);
    SHARE_CHECK(t, t->results[0] == DUE_EEXIST && t->results[1] == 0, "%s, %s",
                due_error_name(t->results[0]), due_error_name(t->results[1]));
    SHARE_CHECK(t, is_free(t, "k") && sharing_drain(t, 0, 1), "and nothing was done twice");
}

/* The answer is lost on the way, and the exchange goes again by itself. */
static void an_answer_that_is_lost_is_the_same(struct sharing *t)
{
    if (!suite_has(&t->base, t->maker->doubt != NULL, "no hook doubt") || !sharing_all_join(t, 2))
        return;
    SHARE_ANSWERS(t, put(t, 0, keyed(t, SHARE_LATER_NS, "k")), 0);
    for (int lands = 0; lands < 2; lands++) {
        size_t refused = keyed(t, -DUE_MS(5), "k");
        size_t job = keyed(t, SHARE_LATER_NS, lands ? "landed" : "lost");

        sharing_put(t, refused);
        sharing_put(t, job);
        t->maker->doubt(t->maker->store.ctx, t->base.stores[1], false, lands);
        SHARE_ANSWERS(t, sharing_send(t, 1), 0);
        SHARE_CHECK(t, t->results[0] == DUE_EEXIST && t->results[1] == 0, "%s, %s",
                    due_error_name(t->results[0]), due_error_name(t->results[1]));
        SHARE_CHECK(t, is_taken(t, lands ? "landed" : "lost", job), "once");
    }
}

static void a_full_store_gives_no_key(struct sharing *t)
{
    size_t job;

    if (!suite_has(&t->base, t->maker->store.full != NULL, "no hook full") ||
        !sharing_all_join(t, 2))
        return;
    SHARE_ANSWERS(t, put(t, 0, keyed(t, SHARE_LATER_NS, "k")), 0);
    t->maker->store.full(t->maker->store.ctx, true);
    SHARE_ANSWERS(t, put(t, 1, job = keyed(t, SHARE_LATER_NS, "new")), DUE_ENOSPC);
    SHARE_ANSWERS(t, holder(t, 1, "new", job), DUE_ENOENT);
    t->maker->store.full(t->maker->store.ctx, false);
    SHARE_CHECK(t, is_free(t, "new"), "when there is room again");
}

const struct suite_test_shared share_key_tests[] = {
    { "keys: one job has a key", one_job_has_a_key },
    { "keys: what was refused leaves nothing", what_was_refused_leaves_nothing },
    { "keys: a topic is known whose first job was refused",
      a_topic_is_known_whose_first_job_was_refused },
    { "keys: each of many has its own answer", each_of_many_has_its_own_answer },
    { "keys: of two in one exchange the first has it", of_two_in_one_exchange_the_first_has_it },
    { "keys: a job that is done has it no more", a_job_that_is_done_has_it_no_more },
    { "keys: a job that waits again, or is dead, has it",
      a_job_that_waits_again_or_is_dead_has_it },
    { "keys: a dead job that is dropped has it no more",
      a_dead_job_that_is_dropped_has_it_no_more },
    { "keys: free when the id alone is named", it_is_free_when_the_id_alone_is_named },
    { "keys: who lost the lease does not free it", who_lost_the_lease_does_not_free_it },
    { "keys: a kept one is taken until its time", a_kept_key_is_taken_until_its_time },
    { "keys: the job that it is kept for may have it", the_job_that_it_is_kept_for_may_have_it },
    { "keys: a cancelled job keeps none", a_cancelled_job_keeps_no_key },
    { "keys: a change with a key is of the job that has it",
      a_change_with_a_key_is_of_the_job_that_has_it },
    { "keys: a dead job that lost its own is not dropped by it",
      a_dead_job_that_lost_its_key_is_not_dropped_by_it },
    { "keys: a dead job is dropped by its own", a_dead_job_is_dropped_by_its_key },
    { "keys: taken over from the job that is named", it_is_taken_over_from_the_job_that_is_named },
    { "keys: who lost it neither frees nor keeps it", who_lost_it_neither_frees_nor_keeps_it },
    { "keys: a kept one is not taken over", a_kept_key_is_not_taken_over },
    { "keys: other content begins anew", other_content_begins_anew },
    { "keys: a refusal is repeated", a_refusal_is_repeated },
    { "keys: an answer that is lost is the same", an_answer_that_is_lost_is_the_same },
    { "keys: a full store gives none", a_full_store_gives_no_key },
    { NULL, NULL },
};
