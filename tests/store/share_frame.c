/* share_frame.c - the frame of the tests of a shared store. */
#define _GNU_SOURCE
#include "store/share_frame.h"

#include <limits.h>
#include <time.h>

#include "store/share_replay.h"

static void *need(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "share suite: no memory\n");
        abort();
    }
    return memory;
}

const struct due_shared_verbs *sharing_verbs(struct sharing *t, int s)
{
    return t->base.stores[s]->verbs->shared;
}

/* ---- Time ---- */

static int64_t wall_clock(void *clock)
{
    struct timespec now;

    (void)clock;
    clock_gettime(CLOCK_REALTIME, &now);
    return DUE_S(now.tv_sec) + now.tv_nsec;
}

static int nothing_of(void *ctx, const struct due_census_topic *topic)
{
    (void)ctx;
    (void)topic;
    return 0;
}

int64_t sharing_now(struct sharing *t)
{
    struct due_census_all all = { .now_ns = 0 };
    int64_t end_ns = suite_soon();
    int rc;

    if (t->own_time && t->heard_ns != 0)
        return t->answer.now_ns + suite_now_ns() - t->heard_ns;
    do
        rc = sharing_verbs(t, 0)->census(t->base.stores[0], &all, nothing_of, NULL, end_ns);
    while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    (void)suite_answers(&t->base, rc, 0, __FILE__, __LINE__, "census");
    return all.now_ns;
}

void sharing_pass(struct sharing *t, int64_t ns)
{
    struct timespec pause = { .tv_sec = (time_t)(ns / DUE_S(1)), .tv_nsec = (long)(ns % DUE_S(1)) };

    if (t->maker->pass != NULL)
        t->maker->pass(t->maker->store.ctx, ns);
    else
        nanosleep(&pause, NULL);
}

/* ---- Processes ---- */

static void log_line(void *queue, enum due_log_level level, const char *text)
{
    (void)queue;
    (void)level;
    (void)text;
}

int sharing_join(struct sharing *t, int s)
{
    due_store *store = suite_store(&t->base, s);
    struct due_store_open how = { .name = t->base.queue,
                                  .until_ns = suite_now_ns() +
                                              (t->soon_ns != 0 ? t->soon_ns : SUITE_SOON_NS),
                                  .now = t->maker->now != NULL ? t->maker->now : wall_clock,
                                  .clock = t->maker->store.ctx,
                                  .log = log_line,
                                  .queue = t,
                                  .writer_min = t->base.writer_min,
                                  .capacity = t->capacity,
                                  .by_priority = t->by_rank };

    memset(&t->base.error, 0, sizeof t->base.error);
    int rc = store->verbs->shared->join(store, &how, &t->base.info[s], &t->base.error);
    t->base.open[s] = rc == 0;
    t->number[s][0] = t->number[s][1] = 0;
    return rc;
}

bool sharing_all_join(struct sharing *t, int n)
{
    for (int s = 0; s < n; s++)
        if (!suite_answers(&t->base, sharing_join(t, s), 0, __FILE__, __LINE__, "join"))
            return false;
    return true;
}

void sharing_leave(struct sharing *t, int s)
{
    if (t->base.open[s])
        (void)sharing_verbs(t, s)->leave(t->base.stores[s], suite_soon());
    suite_abandon(&t->base, s);
}

void sharing_vanish(struct sharing *t, int s)
{
    suite_abandon(&t->base, s);
}

void sharing_begin(struct sharing *t, const struct share_maker *maker, const char *test)
{
    *t = (struct sharing){ .maker = maker, .by_rank = maker->by_rank };
    t->base = (struct suite){ .maker = &maker->store, .test = test, .random = 1 };
}

void sharing_end(struct sharing *t)
{
    struct suite *base = &t->base;

    for (int s = SUITE_STORES; s-- > 0;)
        sharing_leave(t, s);
    for (size_t i = 0; i < base->n_jobs; i++)
        free(base->jobs[i].bytes);
    for (size_t i = 0; i < base->n_topics; i++)
        free(base->topics[i]);
    free(base->jobs);
    free(base->topics);
    free(base->last);
    free(base->changes);
    free(base->changed);
    free(t->results);
    free(t->held);
}

/* ---- Gathering ---- */

size_t sharing_job_of(struct sharing *t, const char *topic, int64_t in_ns, const void *data,
                      size_t len)
{
    return suite_job(&t->base, topic, sharing_now(t) + in_ns, data, len);
}

size_t sharing_job(struct sharing *t, const char *topic, int64_t in_ns)
{
    return sharing_job_of(t, topic, in_ns, "work", 4);
}

size_t sharing_grouped(struct sharing *t, const char *topic, int64_t in_ns, const char *group)
{
    size_t job = sharing_job(t, topic, in_ns);

    t->base.jobs[job].record.group = group;
    t->base.jobs[job].record.group_len = strlen(group);
    return job;
}

static due_change *last(struct sharing *t)
{
    return &t->base.changes[t->base.n_changes - 1];
}

void sharing_put(struct sharing *t, size_t job)
{
    suite_put(&t->base, job);
    last(t)->is_new = 1;
}

void sharing_cancel(struct sharing *t, size_t job)
{
    suite_drop(&t->base, job);
}

void sharing_move(struct sharing *t, size_t job, int64_t until_ns)
{
    due_record record = t->base.jobs[job].record;

    record.deadline_ns = record.until_ns = until_ns;
    suite_change(&t->base, DUE_CHANGE_MOVE, job, &record);
}

void sharing_kick(struct sharing *t, size_t job, int64_t until_ns)
{
    suite_kick(&t->base, job, until_ns);
}

void sharing_strike(struct sharing *t, size_t job)
{
    suite_drop(&t->base, job);
}

static int see_mark(void *ctx, const due_record *record)
{
    struct sharing *t = ctx;

    if (suite_check(&t->base, record->mark_len > 0 && record->mark_len <= sizeof t->mark, __FILE__,
                    __LINE__, "a mark of %zu bytes", record->mark_len)) {
        if (t->replay != NULL)
            replay_seen(t->replay, record);
        memcpy(t->mark, record->mark, record->mark_len);
        t->mark_len = record->mark_len;
    }
    return 0;
}

bool sharing_look(struct sharing *t, int s, size_t job)
{
    int64_t end_ns = suite_soon();
    int rc;

    do
        rc = t->base.stores[s]->verbs->find(t->base.stores[s], t->base.jobs[job].record.id,
                                            see_mark, t, end_ns);
    while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    t->marked = job;
    t->mark_len = rc == 0 ? t->mark_len : 0;
    return rc == 0;
}

void sharing_amend(struct sharing *t, size_t job, int64_t until_ns, const void *data, size_t len)
{
    due_record record = t->base.jobs[job].record;

    if (record.cause == 0)
        record.deadline_ns = record.until_ns = until_ns;
    suite_change(&t->base, DUE_CHANGE_AMEND, job, &record);
    last(t)->was_ns = record.cause != 0 ? record.died_ns : t->base.jobs[job].record.until_ns;
    last(t)->was_dead = record.cause != 0;
    last(t)->record.data = data;
    last(t)->record.len = len;
    last(t)->record.mark = t->mark;
    last(t)->record.mark_len = t->mark_len;
}

void sharing_lend(struct sharing *t, size_t job)
{
    const due_record *r = &t->base.jobs[job].record;

    suite_drop(&t->base, job);
    last(t)->was_ns = r->cause != 0 ? r->died_ns : r->until_ns;
    last(t)->was_dead = r->cause != 0;
    last(t)->record.attempts = r->attempts;
    last(t)->record.failures = r->failures;
    last(t)->record.mark = t->mark;
    last(t)->record.mark_len = t->mark_len;
}

void sharing_hold_back(struct sharing *t, const char *topic, int64_t paused, int64_t held_max)
{
    due_record none = { .topic = topic, .priority = 255 };

    suite_change(&t->base, DUE_CHANGE_TOPIC, 0, &none);
    last(t)->was_ns = 0;
    last(t)->was_dead = 0;
    last(t)->paused = paused;
    last(t)->held_max = held_max;
}

/* The change gathered last is of a job that is held. */
static void held_so(struct sharing *t, struct sharing_held h)
{
    last(t)->held = h.held;
    last(t)->was_dead = 0;
    if (last(t)->kind != DUE_CHANGE_BURY)
        last(t)->record.cause = 0;
    t->work = true;
}

void sharing_done(struct sharing *t, struct sharing_held h)
{
    suite_drop(&t->base, h.job);
    held_so(t, h);
}

void sharing_back(struct sharing *t, struct sharing_held h, int64_t until_ns)
{
    due_record record = t->base.jobs[h.job].record;

    record.until_ns = until_ns;
    record.failures++;
    suite_change(&t->base, DUE_CHANGE_MOVE, h.job, &record);
    held_so(t, h);
    last(t)->keeps_pass = 1;
}

void sharing_round(struct sharing *t, struct sharing_held h, int64_t until_ns)
{
    due_record record = t->base.jobs[h.job].record;

    record.deadline_ns = record.until_ns = until_ns;
    record.attempts = record.failures = 0;
    suite_change(&t->base, DUE_CHANGE_MOVE, h.job, &record);
    held_so(t, h);
}

void sharing_bury(struct sharing *t, struct sharing_held h, const char *reason)
{
    suite_bury(&t->base, h.job, DUE_CAUSE_BURIED, sharing_now(t), reason);
    held_so(t, h);
}

void sharing_start(struct sharing *t, struct sharing_held h, uint32_t attempts)
{
    due_record record = t->base.jobs[h.job].record;

    record.attempts = attempts;
    suite_change(&t->base, DUE_CHANGE_BEGIN, h.job, &record);
    held_so(t, h);
}

void sharing_extend(struct sharing *t, struct sharing_held h, int64_t lease_ns)
{
    suite_change(&t->base, DUE_CHANGE_EXTEND, h.job, &t->base.jobs[h.job].record);
    held_so(t, h);
    last(t)->lease_ns = lease_ns;
}

void sharing_release(struct sharing *t, struct sharing_held h)
{
    suite_change(&t->base, DUE_CHANGE_RELEASE, h.job, &t->base.jobs[h.job].record);
    held_so(t, h);
}

void sharing_claim(struct sharing *t, size_t need, size_t extra, int64_t lease_ns)
{
    t->claim = (struct due_claim){ .need = need, .extra = extra, .lease_ns = lease_ns };
    t->claims = t->work = true;
}

void sharing_wait(struct sharing *t, size_t need, int64_t lease_ns)
{
    sharing_claim(t, need, 0, lease_ns);
    t->claim.waits = 1;
}

void sharing_of(struct sharing *t, const char *const *topics, size_t n)
{
    t->claim.topics = topics;
    t->claim.topic_count = n;
}

/* ---- Sending ---- */

/* Its number, which is in its id, unless the test has given it another. */
size_t sharing_job_named(const struct sharing *t, due_id id)
{
    size_t job = 0;

    for (int i = 7; i < DUE_STORE_ID_BYTES; i++)
        job = job << 8 | id.byte[i];
    if (job < t->base.n_jobs && due_id_equal(t->base.jobs[job].record.id, id))
        return job;
    for (job = 0; job < t->base.n_jobs; job++)
        if (due_id_equal(t->base.jobs[job].record.id, id))
            break;
    return job;
}

/* The name of a group, or a key, that another process has told: few, and short. */
static const void *learn_name(struct sharing *t, const void *name, size_t len)
{
    enum { MOST = sizeof t->learnt / sizeof t->learnt[0] };
    size_t i = 0;

    if (len == 0)
        return NULL;
    while (i < MOST && t->learnt[i][0] != '\0' &&
           (strlen(t->learnt[i]) != len || memcmp(t->learnt[i], name, len) != 0))
        i++;
    if (i == MOST || len >= sizeof t->learnt[0])
        abort();
    return memcpy(t->learnt[i], name, len);
}

/* What another process has put, or changed. */
static void learn(struct sharing *t, const due_record *r)
{
    size_t job = sharing_job_named(t, r->id);

    if (job == t->base.n_jobs)
        (void)suite_job(&t->base, r->topic, r->until_ns, r->data, r->len);
    due_record *known = &t->base.jobs[job].record;
    known->id = r->id;
    known->priority = r->priority;
    known->until_ns = r->until_ns;
    known->deadline_ns = r->deadline_ns;
    known->attempts = r->attempts;
    known->failures = r->failures;
    known->cause = 0;
    known->group = learn_name(t, r->group, r->group_len);
    known->group_len = r->group_len;
    known->key = learn_name(t, r->key, r->key_len);
    known->key_len = r->key_len;
}

static int see_claimed(void *ctx, const due_claimed *shown)
{
    struct sharing *t = ctx;
    struct sharing_held h = { .held = shown->held, .lapsed_ns = shown->lapsed_ns };

    if (t->base.refuse != 0)
        return t->base.refuse;
    if (t->replay != NULL) {
        replay_shown(t->replay, shown); /* the model looks at it */
        learn(t, &shown->record);
    } else {
        (void)suite_visit(&t->base, &shown->record);
    }
    while (h.job < t->base.n_jobs && !due_id_equal(t->base.jobs[h.job].record.id, shown->record.id))
        h.job++;
    (void)suite_check(&t->base, shown->held != 0, __FILE__, __LINE__, "no lease is shown");
    if (t->n_held == t->held_room) {
        t->held_room = t->held_room == 0 ? 64 : 2 * t->held_room;
        t->held = need(realloc(t->held, t->held_room * sizeof *t->held));
    }
    t->held[t->n_held++] = h;
    return 0;
}

int sharing_send_once(struct sharing *t, int s)
{
    size_t n = t->base.n_changes;

    if (n + 1 > t->results_room) {
        t->results_room = 2 * n + 1;
        t->results = need(realloc(t->results, t->results_room * sizeof *t->results));
    }
    for (size_t i = 0; i < n; i++)
        t->results[i] = INT_MAX; /* none */
    t->n_held = 0;
    if (t->replay != NULL)
        replay_again(t->replay);
    t->calls++;
    return sharing_verbs(t, s)->exchange(
        t->base.stores[s], t->base.changes, n, t->number[s][t->work] + 1, t->results,
        t->claims ? &t->claim : NULL, see_claimed, t, &t->answer, suite_soon());
}

void sharing_forget(struct sharing *t)
{
    t->base.n_changes = 0;
    t->claims = t->work = false;
}

/* @rc: its answer. */
static void note_change(struct sharing *t, size_t i, int rc)
{
    const due_change *change = &t->base.changes[i];
    if (change->kind == DUE_CHANGE_TOPIC)
        return;
    struct suite_job *job = &t->base.jobs[t->base.changed[i]];
    due_record *known = &job->record;

    bool stays = change->kind == DUE_CHANGE_BEGIN || change->kind == DUE_CHANGE_EXTEND;
    job->stored = change->kind != DUE_CHANGE_DROP && (rc == 0 || stays);
    if (change->kind == DUE_CHANGE_AMEND) {
        *known = change->record;
        known->mark = NULL;
        known->mark_len = 0;
        if (change->anew)
            known->attempts = known->failures = 0;
    }
    if (change->kind == DUE_CHANGE_BEGIN || change->kind == DUE_CHANGE_MOVE ||
        change->kind == DUE_CHANGE_BURY) {
        const void *data = known->data;
        size_t len = known->len;

        *known = change->record;
        known->data = data;
        known->len = len;
    }
}

void sharing_expect(struct sharing *t)
{
    for (size_t i = 0; i < t->base.n_changes; i++)
        note_change(t, i, 0);
}

int sharing_send(struct sharing *t, int s)
{
    int64_t end_ns = suite_soon();
    int rc;

    t->calls = 0;
    do
        rc = sharing_send_once(t, s);
    while ((rc == DUE_EAGAIN || rc == DUE_EINDOUBT) && suite_now_ns() < end_ns);
    if (rc == 0) {
        t->heard_ns = suite_now_ns();
        t->number[s][t->work]++;
        for (size_t i = 0; i < t->base.n_changes; i++)
            if (t->results[i] == 0 || t->results[i] == DUE_REVOKED)
                note_change(t, i, t->results[i]);
        (void)suite_check(&t->base, !t->claims || t->answer.claimed == t->n_held, __FILE__,
                          __LINE__, "%zu jobs are shown", t->n_held);
    }
    sharing_forget(t);
    return rc;
}

bool sharing_sent(struct sharing *t, int s)
{
    size_t n = t->base.n_changes;

    if (!suite_answers(&t->base, sharing_send(t, s), 0, __FILE__, __LINE__, "exchange"))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!suite_check(&t->base, t->results[i] == 0, __FILE__, __LINE__, "change %zu: %s", i,
                         due_error_name(t->results[i])))
            return false;
    return true;
}

bool sharing_got(struct sharing *t, const size_t *jobs, size_t n)
{
    if (!suite_check(&t->base, t->n_held == n, __FILE__, __LINE__, "%zu claimed, not %zu",
                     t->n_held, n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!suite_check(&t->base, t->held[i].job == jobs[i], __FILE__, __LINE__,
                         "the job claimed as %zu is %zu, not %zu", i, t->held[i].job, jobs[i]))
            return false;
    return !t->base.failed;
}

bool sharing_have(struct sharing *t, int s, size_t job, int64_t lease_ns, struct sharing_held *h)
{
    sharing_put(t, job);
    if (!sharing_sent(t, s))
        return false;
    sharing_claim(t, 1, 0, lease_ns);
    if (!sharing_sent(t, s) || !sharing_got(t, &job, 1))
        return false;
    *h = t->held[0];
    return true;
}

bool sharing_drain(struct sharing *t, int s, size_t n)
{
    size_t got = 0;

    for (int i = 0; i < 1000; i++) {
        sharing_claim(t, 100, 0, SHARE_LONG_NS);
        if (!sharing_sent(t, s))
            return false;
        got += t->n_held;
        if (t->n_held < 100 && !t->answer.more)
            break;
    }
    return suite_check(&t->base, got == n, __FILE__, __LINE__, "%zu were due, not %zu", got, n) &&
           !t->base.failed;
}
