/* suite_pipeline.c - batches that are prepared and sent while others are under way. */
#include "store/suite_frame.h"

/* A batch of its own: the frame's is for the next one then. */
struct half {
    due_change *changes;
    size_t *changed;
    size_t n;
};

static struct half take(struct suite *t)
{
    struct half h = { .changes = t->changes, .changed = t->changed, .n = t->n_changes };

    t->changes = NULL;
    t->changed = NULL;
    t->n_changes = t->changes_room = 0;
    return h;
}

static void put_away(struct half *h)
{
    free(h->changes);
    free(h->changed);
    *h = (struct half){ 0 };
}

/* It has landed. */
static void noted(struct suite *t, struct half *h)
{
    struct half own = take(t);

    t->changes = h->changes;
    t->changed = h->changed;
    t->n_changes = h->n;
    suite_noted(t, 0);
    put_away(h);
    t->changes = own.changes;
    t->changed = own.changed;
    t->n_changes = t->changes_room = own.n;
}

static const struct due_store_verbs *verbs(const struct suite *t)
{
    return t->stores[0]->verbs;
}

static int prepare(struct suite *t, const struct half *h, uint64_t ahead)
{
    return verbs(t)->prepare(t->stores[0], h->changes, h->n, t->number[0] + 1 + ahead);
}

static int send(struct suite *t)
{
    return verbs(t)->send(t->stores[0], t->number[0] + 1, suite_soon());
}

/* Until its end is known. */
static int commit(struct suite *t, const struct half *h)
{
    int64_t end_ns = suite_soon();
    int rc;

    do {
        rc = verbs(t)->commit(t->stores[0], h->changes, h->n, t->number[0] + 1, end_ns);
        if (rc == DUE_EAGAIN && suite_ready(t, 0) != 0)
            break;
    } while ((rc == DUE_EAGAIN || rc == DUE_EINDOUBT) && suite_now_ns() < end_ns);
    return rc;
}

static bool opened(struct suite *t)
{
    if (!suite_answers(t, suite_open(t, 0), 0, __FILE__, __LINE__, "open"))
        return false;
    if (verbs(t)->prepare != NULL && verbs(t)->send != NULL)
        return suite_answers(t, suite_ready(t, 0), 0, __FILE__, __LINE__, "ready");
    suite_skip(t, "no send");
    return false;
}

/* Batch k puts job k, into a topic of its own, moves job k - 2, buries job k - 4 and drops job
 * k - 6: the batch before it has none of them. */
static struct half batch(struct suite *t, int k)
{
    char topic[16];

    snprintf(topic, sizeof topic, "topic %d", k);
    suite_put(t, suite_job(t, topic, DUE_S(k), &k, sizeof k));
    if (t->n_jobs > 2)
        suite_move(t, t->n_jobs - 3, DUE_S(100 + k));
    if (t->n_jobs > 4)
        suite_bury(t, t->n_jobs - 5, DUE_CAUSE_ATTEMPTS, DUE_S(k), "ahead");
    if (t->n_jobs > 6)
        suite_drop(t, t->n_jobs - 7);
    return take(t);
}

static bool sent(struct suite *t, const struct half *h)
{
    return suite_answers(t, prepare(t, h, 0), 0, __FILE__, __LINE__, "prepare") &&
           suite_answers(t, send(t), 0, __FILE__, __LINE__, "send");
}

static bool landed(struct suite *t, struct half *h)
{
    bool yes = suite_answers(t, commit(t, h), 0, __FILE__, __LINE__, "commit");

    if (yes)
        noted(t, h);
    else
        put_away(h);
    return yes;
}

static void sends_each_batch_when_the_last_one_has_landed(struct suite *t)
{
    if (!opened(t))
        return;
    struct half now = batch(t, 0);
    CHECK(t, sent(t, &now), "");
    for (int k = 1; k < 40; k++) {
        struct half next = batch(t, k);

        CHECK(t, prepare(t, &next, 1) == 0, "batch %d", k);
        CHECK(t, landed(t, &now), "batch %d", k);
        CHECK(t, send(t) == 0, "batch %d", k);
        now = next;
    }
    CHECK(t, landed(t, &now), "");
    CHECK(t, suite_same(t, 0), "");
    suite_close(t, 0);
    ANSWERS(t, suite_open(t, 0), 0);
    CHECK(t, suite_same(t, 0), "");
}

static void forgets_what_was_prepared_for_another_batch(struct suite *t)
{
    if (!opened(t))
        return;
    for (int k = 0; k < 10; k++) {
        suite_put(t, suite_job(t, "never", DUE_S(k), "x", 1));
        struct half not = take(t);
        size_t never = t->n_jobs - 1;
        suite_put(t, suite_job(t, "other", DUE_S(k), "y", 1));
        struct half other = take(t);

        CHECK(t, prepare(t, &not, 0) == 0, "");
        if (k % 2 == 0)
            CHECK(t, prepare(t, &other, 0) == 0 && send(t) == 0, "");
        put_away(&not );
        CHECK(t, landed(t, &other), "batch %d", k);
        ANSWERS(t, suite_find(t, 0, t->jobs[never].record.id), DUE_ENOENT);
    }
    CHECK(t, suite_same(t, 0), "");
}

static void allows_other_calls_at_any_point(struct suite *t)
{
    int64_t held;

    if (!opened(t))
        return;
    struct half now = batch(t, 0);
    CHECK(t, sent(t, &now), "");
    for (int k = 1; k < 20; k++) {
        struct half next = batch(t, k);

        if (k % 3 == 1)
            ANSWERS(t, suite_find(t, 0, suite_id(9, 9, 9)), DUE_ENOENT);
        (void)prepare(t, &next, 1);
        if (k % 3 == 0)
            ANSWERS(t, verbs(t)->renew(t->stores[0], &held, suite_soon()), 0);
        CHECK(t, landed(t, &now), "batch %d", k);
        if (k % 2 == 0)
            ANSWERS(t, suite_ready(t, 0), 0);
        if (k % 5 == 0)
            CHECK(t, suite_same(t, 0), "batch %d", k);
        int rc = send(t);
        CHECK(t, rc == 0 || rc == DUE_EAGAIN, "batch %d: %s", k, due_error_name(rc));
        now = next;
    }
    CHECK(t, landed(t, &now), "");
    CHECK(t, suite_same(t, 0), "");
}

static void sees_through_what_was_sent_and_cut_off(struct suite *t)
{
    if (!suite_has(t, t->maker->cut != NULL, "no hook cut") || !opened(t))
        return;
    struct half now = batch(t, 0);
    CHECK(t, sent(t, &now), "");
    for (int k = 1; k < 12; k++) {
        struct half next = batch(t, k);

        if (k % 3 == 0)
            t->maker->cut(t->maker->ctx);
        (void)prepare(t, &next, 1);
        if (k % 3 == 1)
            t->maker->cut(t->maker->ctx);
        CHECK(t, landed(t, &now), "batch %d", k);
        if (k % 3 == 2)
            t->maker->cut(t->maker->ctx);
        int rc = send(t);
        CHECK(t, rc == 0 || rc == DUE_EAGAIN, "batch %d: %s", k, due_error_name(rc));
        now = next;
    }
    CHECK(t, landed(t, &now), "");
    CHECK(t, suite_same(t, 0), "");
}

static void makes_a_batch_once_that_was_sent_unheard(struct suite *t)
{
    if (!suite_has(t, t->maker->doubt != NULL, "no hook doubt") || !opened(t))
        return;
    for (int k = 0; k < 20; k++) {
        struct half now = batch(t, k);

        CHECK(t, prepare(t, &now, 0) == 0, "");
        t->maker->doubt(t->maker->ctx, k % 2 == 0);
        (void)send(t);
        CHECK(t, landed(t, &now), "batch %d", k);
        CHECK(t, suite_same(t, 0), "batch %d", k);
        ANSWERS(t, suite_ready(t, 0), 0);
    }
}

/* After a loss has been told the number is free for other changes, though it was sent; unless it is
 * heard first that the batch had landed. */
static void forgets_with_a_loss_what_was_sent(struct suite *t)
{
    if (!suite_has(t, t->maker->lose != NULL, "no hook lose") || !opened(t))
        return;
    struct half first = batch(t, 0);
    CHECK(t, sent(t, &first) && landed(t, &first), "");
    suite_put(t, suite_job(t, "lost", DUE_S(1), "x", 1));
    struct half lost = take(t);
    CHECK(t, sent(t, &lost), "");
    t->maker->lose(t->maker->ctx);
    int64_t end_ns = suite_soon();
    int rc = suite_ready(t, 0);
    bool heard = false;
    while (rc == 0 && suite_now_ns() < end_ns) { /* it may come through from a buffer somewhere */
        if (!heard && verbs(t)->commit(t->stores[0], lost.changes, lost.n, t->number[0] + 1,
                                       suite_soon()) == 0)
            heard = true;
        rc = suite_ready(t, 0);
    }
    t->number[0] += heard;
    put_away(&lost);
    ANSWERS(t, rc, DUE_ELOST);
    t->jobs[0].stored = false;
    suite_put(t, 0);
    struct half again = take(t);
    ANSWERS(t, suite_ready(t, 0), 0);
    CHECK(t, landed(t, &again), "");
    CHECK(t, suite_same(t, 0), "");
}

const struct suite_test suite_pipeline_tests[] = {
    { "ahead sends each batch when the last one has landed",
      sends_each_batch_when_the_last_one_has_landed },
    { "ahead forgets what was prepared for another batch",
      forgets_what_was_prepared_for_another_batch },
    { "ahead allows other calls at any point", allows_other_calls_at_any_point },
    { "ahead sees through what was sent and cut off", sees_through_what_was_sent_and_cut_off },
    { "ahead makes a batch once that was sent unheard", makes_a_batch_once_that_was_sent_unheard },
    { "ahead forgets with a loss what was sent", forgets_with_a_loss_what_was_sent },
    { NULL, NULL },
};
