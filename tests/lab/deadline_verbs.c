/* deadline_verbs.c - the calls, and how long they take. */
#if __has_include(<criterion/criterion.h>)
#include "lab/deadline_verbs.h"
#include "lab/take.h"

typedef int verb(struct deadline_stand *s, int64_t timeout_ns);

static int do_enqueue(struct deadline_stand *s, int64_t timeout_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "x", .len = 1 };
    return due_enqueue(s->q, &spec, timeout_ns, NULL);
}

static int do_enqueue_batch(struct deadline_stand *s, int64_t timeout_ns)
{
    due_spec spec[DEADLINE_JOBS];
    for (int i = 0; i < DEADLINE_JOBS; i++)
        spec[i] = (due_spec){ DUE_SPEC_INIT, .data = "x", .len = 1 };
    return due_enqueue_batch(s->q, spec, DEADLINE_JOBS, timeout_ns, NULL);
}

static int do_enqueue_keyed(struct deadline_stand *s, int64_t timeout_ns)
{
    due_spec spec = { DUE_SPEC_INIT,
                      .more = EXTRA(.key = "key", .key_len = 3, .on_key = DUE_KEY_REPLACE) };
    return due_enqueue(s->q, &spec, timeout_ns, NULL);
}

static int do_dequeue(struct deadline_stand *s, int64_t timeout_ns)
{
    due_job job = { 0 };
    int rc = due_dequeue(s->q, &job, timeout_ns);
    if (rc == 0)
        due_job_done(&job);
    return rc;
}

static int do_dequeue_batch(struct deadline_stand *s, int64_t timeout_ns)
{
    due_job job[DEADLINE_JOBS];
    int rc = take_some(s->q, NULL, 0, job, DEADLINE_JOBS, timeout_ns);
    for (int i = 0; i < rc; i++)
        due_job_done(&job[i]);
    return rc;
}

static int do_reserve(struct deadline_stand *s, int64_t timeout_ns)
{
    due_job job = { 0 };
    int rc = take_leased(s->q, &job, DUE_S(1), timeout_ns);
    if (rc == 0)
        due_job_done(&job);
    return rc;
}

static int do_ack(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return s->held[0].queue != NULL ? due_ack(&s->held[0]) : 0;
}

static int do_ack_batch(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_ack_batch(s->held, 3, NULL);
}

static int do_nack(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return s->held[1].queue != NULL ? due_nack(&s->held[1], 0) : 0;
}

static int do_bury(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return s->held[2].queue != NULL ? due_bury(&s->held[2], NULL) : 0;
}

static int do_extend(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return s->held[0].queue != NULL ? due_extend(&s->held[0], DUE_S(100)) : 0;
}

static int do_cancel(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_cancel(s->q, s->id[DEADLINE_JOBS - 1], NULL);
}

static int do_cancel_batch(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_cancel_batch(s->q, s->id, DEADLINE_JOBS, NULL);
}

static int do_cancel_key(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_cancel_key(s->q, "key", 3, NULL);
}

static int do_find(struct deadline_stand *s, int64_t timeout_ns)
{
    due_info info;
    (void)timeout_ns;
    return due_find(s->q, s->id[DEADLINE_JOBS - 2], &info);
}

static int do_remaining(struct deadline_stand *s, int64_t timeout_ns)
{
    int64_t ns;
    (void)timeout_ns;
    return due_remaining(s->q, s->id[DEADLINE_JOBS - 2], &ns);
}

static int do_find_key(struct deadline_stand *s, int64_t timeout_ns)
{
    due_id id;
    (void)timeout_ns;
    return due_id_of_key(s->q, "key", 3, &id);
}

static int do_reschedule(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_reschedule(s->q, s->id[DEADLINE_JOBS - 3], due_now(s->q) + DUE_S(1800));
}

static int do_promote(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_promote(s->q, s->id[DEADLINE_JOBS - 4]);
}

static int do_update(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_update(s->q, s->id[DEADLINE_JOBS - 5], "new", 3);
}

static int do_amend(struct deadline_stand *s, int64_t timeout_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .more = EXTRA(.headers = "h", .headers_len = 1) };
    (void)timeout_ns;
    return due_amend(s->q, s->id[DEADLINE_JOBS - 6], &spec, DUE_SET_HEADERS);
}

static int do_kick(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_kick(s->q, s->dead);
}

static int do_kick_all(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_kick_all(s->q, DUE_ALL_TOPICS, NULL);
}

static int do_clear(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_clear(s->q, DUE_ALL_TOPICS, NULL);
}

static int do_clear_dead(struct deadline_stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_clear_dead(s->q, DUE_ALL_TOPICS, NULL);
}

/* Those that never ask the store. */
static int do_looks(struct deadline_stand *s, int64_t timeout_ns)
{
    due_info info;
    struct due_stats stats;

    (void)timeout_ns;
    int rc = due_peek(s->q, &info);
    rc |= due_topic(s->q, "tea");
    rc |= due_pause(s->q, 0);
    rc |= due_resume(s->q, 0);
    rc |= due_stats_read(s->q, &stats);
    rc |= due_poll(s->q, NULL);
    return rc < 0 ? rc : 0;
}

static int do_list(struct deadline_stand *s, int64_t timeout_ns)
{
    uint64_t cursor = 0;
    due_info info[DEADLINE_JOBS];

    (void)timeout_ns;
    return due_list(s->q, &cursor, info, DEADLINE_JOBS);
}

static int do_list_dead(struct deadline_stand *s, int64_t timeout_ns)
{
    uint64_t cursor = 0;
    due_dead dead[DEADLINE_JOBS];

    (void)timeout_ns;
    return due_list_dead(s->q, &cursor, dead, DEADLINE_JOBS);
}

static int do_flush(struct deadline_stand *s, int64_t timeout_ns)
{
    return due_flush(s->q, timeout_ns);
}

static const struct {
    const char *name;
    verb *run;
    bool timed; /* it has a timeout */
    bool polls; /* with timeout 0 it waits for nothing */
} verbs[] = {
    { "enqueue", do_enqueue, true, false },
    { "enqueue_batch", do_enqueue_batch, true, false },
    { "enqueue, with a key", do_enqueue_keyed, true, false },
    { "dequeue", do_dequeue, true, true },
    { "dequeue_batch", do_dequeue_batch, true, true },
    { "reserve", do_reserve, true, true },
    { "ack", do_ack, false, false },
    { "nack", do_nack, false, false },
    { "bury", do_bury, false, false },
    { "extend", do_extend, false, false },
    { "ack_batch", do_ack_batch, false, false },
    { "cancel", do_cancel, false, false },
    { "cancel_batch", do_cancel_batch, false, false },
    { "cancel_key", do_cancel_key, false, false },
    { "find", do_find, false, false },
    { "remaining", do_remaining, false, false },
    { "find_key", do_find_key, false, false },
    { "reschedule", do_reschedule, false, false },
    { "promote", do_promote, false, false },
    { "update", do_update, false, false },
    { "amend", do_amend, false, false },
    { "kick", do_kick, false, false },
    { "kick_all", do_kick_all, false, false },
    { "clear", do_clear, false, false },
    { "clear_dead", do_clear_dead, false, false },
    { "list", do_list, false, false },
    { "list_dead", do_list_dead, false, false },
    { "looks", do_looks, false, true },
    { "flush", do_flush, true, true },
};

void deadline_fill(struct deadline_stand *s, struct lab *lab, bool lapsed)
{
    due_retry retry = { .kind = DUE_RETRY_FIXED, .attempts_max = lapsed ? 1 : 2 };
    due_extra more = { DUE_EXTRA_INIT, .retry = &retry };
    due_spec spec[DEADLINE_JOBS];
    due_job job[DEADLINE_JOBS / 2];

    s->q = lab->q;
    s->dead = lab_enqueue(lab, "dead", .delay_ns = 0);
    cr_assert_eq(lab_reserve(lab, &job[0], DUE_S(100)), 0);
    cr_assert_eq(due_bury(&job[0], NULL), 0);
    lab_enqueue(lab, "key", .delay_ns = DUE_S(3600), .more = EXTRA(.key = "key", .key_len = 3));
    for (int i = 0; i < DEADLINE_JOBS; i++)
        spec[i] = (due_spec){ DUE_SPEC_INIT, .data = "tea", .len = 3,
                              .delay_ns = i < DEADLINE_JOBS / 2 ? 0 : DUE_S(3600),
                              .more = lapsed || i % 2 == 0 ? &more : NULL };
    cr_assert_eq(due_enqueue_batch(s->q, spec, DEADLINE_JOBS, DUE_S(5), s->id), DEADLINE_JOBS);
    if (!lapsed)
        return;
    for (int n = 0; n < DEADLINE_JOBS / 2;) {
        int rc = take_leased_some(lab->q, NULL, 0, job + n, (size_t)(DEADLINE_JOBS / 2 - n),
                                  DUE_MS(20), DUE_S(5));
        cr_assert_gt(rc, 0);
        n += rc;
    }
    crew_sleep(DUE_MS(21));
    for (int i = 0; i < DEADLINE_JOBS / 2; i++)
        due_job_done(&job[i]);
}

void deadline_hold(struct deadline_stand *s, struct lab *lab)
{
    for (int i = 0; i < 3; i++) {
        int rc = DUE_ETIMEDOUT; /* a server may be late even if it is well: then another job */

        for (int tries = 0; (rc == DUE_ETIMEDOUT || rc == DUE_EINDOUBT) && tries < 100; tries++)
            rc = take_leased(lab->q, &s->held[i], DUE_S(100), DUE_S(5));
        cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    }
}

bool deadline_try_one(struct deadline_stand *s, size_t number, int64_t timeout_ns)
{
    if (number == sizeof verbs / sizeof verbs[0])
        return false;
    int64_t before = crew_now_ns();
    int rc = verbs[number].run(s, timeout_ns);
    int64_t took = crew_now_ns() - before;

    if (timeout_ns == 0 && verbs[number].polls)
        cr_expect_lt(took, DUE_S(3), "%s, %s waits with timeout 0", s->state, verbs[number].name);
    cr_expect_lt(took, DEADLINE_BOUND, "%s, %s, timeout %lld: %lld ms (%s)", s->state,
                 verbs[number].name, (long long)timeout_ns, (long long)(took / DUE_MS(1)),
                 due_error_name(rc));
    return true;
}

void deadline_try(struct deadline_stand *s, int64_t timeout_ns, bool all)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (all || verbs[i].timed)
            (void)deadline_try_one(s, i, timeout_ns);
    }
}

void deadline_close(struct deadline_stand *s, int64_t timeout_ns)
{
    for (int i = 0; i < 3; i++)
        due_job_done(&s->held[i]);
    int64_t before = crew_now_ns();
    int rc = due_close(s->q, DUE_CLOSE_DISCARD, timeout_ns); /* the store is told, for a second */
    int64_t took = crew_now_ns() - before;

    cr_expect_eq(rc, 0, "%s, timeout %lld: %s", s->state, (long long)timeout_ns,
                 due_error_name(rc));
    cr_expect_lt(took, DEADLINE_BOUND + DUE_S(1), "%s, close, timeout %lld: %lld ms", s->state,
                 (long long)timeout_ns, (long long)(took / DUE_MS(1)));
}
#else
typedef int due__no_criterion; /* a file has something in it */
#endif
