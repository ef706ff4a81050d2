/* Each call waits for the store until one deadline, whatever it waits for: all verbs, all that may
 * be wrong with a store. */
#include "shop.h"

#define STORE_NS DUE_MS(10) /* store_timeout_ns */
#define SHORT_NS DUE_MS(3)  /* timeouts of calls */
#define LONG_NS  DUE_MS(50)
#define BOUND_NS (10 * LONG_NS + DUE_S(1)) /* this machine may be busy */
#define JOBS     600                       /* more than is sent together */

enum state { LOADING, SILENT, AWAY, FULL, REFUSING, STATES };

static const char *const state_name[STATES] = { "loading", "silent", "away", "full", "refusing" };

struct stand {
    struct shop shop;
    due_queue *q;
    due_id id[JOBS]; /* the first half are due */
    due_id dead;
    due_job held[3]; /* reserved */
};

typedef int verb(struct stand *s, int64_t timeout_ns);

static int do_enqueue(struct stand *s, int64_t timeout_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "x", .len = 1 };
    return due_enqueue(s->q, &spec, timeout_ns, NULL);
}

static int do_enqueue_batch(struct stand *s, int64_t timeout_ns)
{
    due_spec spec[JOBS];
    for (int i = 0; i < JOBS; i++)
        spec[i] = (due_spec){ DUE_SPEC_INIT, .data = "x", .len = 1 };
    return due_enqueue_batch(s->q, spec, JOBS, timeout_ns, NULL);
}

static int do_enqueue_keyed(struct stand *s, int64_t timeout_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .key = "key", .key_len = 3, .on_key = DUE_KEY_REPLACE };
    return due_enqueue(s->q, &spec, timeout_ns, NULL);
}

static int do_dequeue(struct stand *s, int64_t timeout_ns)
{
    due_job job = { 0 };
    int rc = due_dequeue(s->q, &job, timeout_ns);
    if (rc == 0)
        due_job_done(&job);
    return rc;
}

static int do_dequeue_batch(struct stand *s, int64_t timeout_ns)
{
    due_job job[JOBS];
    int rc = due_dequeue_batch(s->q, NULL, 0, job, JOBS, timeout_ns);
    for (int i = 0; i < rc; i++)
        due_job_done(&job[i]);
    return rc;
}

static int do_reserve(struct stand *s, int64_t timeout_ns)
{
    due_job job = { 0 };
    int rc = due_reserve(s->q, &job, DUE_S(1), timeout_ns);
    if (rc == 0)
        due_job_done(&job);
    return rc;
}

static int do_ack(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return s->held[0].queue != NULL ? due_ack(&s->held[0]) : 0;
}

static int do_ack_batch(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_ack_batch(s->held, 3, NULL);
}

static int do_nack(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return s->held[1].queue != NULL ? due_nack(&s->held[1], 0) : 0;
}

static int do_bury(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return s->held[2].queue != NULL ? due_bury(&s->held[2], NULL) : 0;
}

static int do_extend(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return s->held[0].queue != NULL ? due_extend(&s->held[0], DUE_S(100)) : 0;
}

static int do_cancel(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_cancel(s->q, s->id[JOBS - 1], NULL);
}

static int do_cancel_batch(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_cancel_batch(s->q, s->id, JOBS, NULL);
}

static int do_cancel_key(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_cancel_key(s->q, "key", 3, NULL);
}

static int do_find(struct stand *s, int64_t timeout_ns)
{
    due_info info;
    (void)timeout_ns;
    return due_find(s->q, s->id[JOBS - 2], &info);
}

static int do_remaining(struct stand *s, int64_t timeout_ns)
{
    int64_t ns;
    (void)timeout_ns;
    return due_remaining(s->q, s->id[JOBS - 2], &ns);
}

static int do_find_key(struct stand *s, int64_t timeout_ns)
{
    due_id id;
    (void)timeout_ns;
    return due_find_key(s->q, "key", 3, &id);
}

static int do_reschedule(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_reschedule(s->q, s->id[JOBS - 3], due_now(s->q) + DUE_S(1800));
}

static int do_promote(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_promote(s->q, s->id[JOBS - 4]);
}

static int do_update(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_update(s->q, s->id[JOBS - 5], "new", 3);
}

static int do_amend(struct stand *s, int64_t timeout_ns)
{
    due_spec spec = { DUE_SPEC_INIT, .headers = "h", .headers_len = 1 };
    (void)timeout_ns;
    return due_amend(s->q, s->id[JOBS - 6], &spec, DUE_SET_HEADERS);
}

static int do_kick(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_kick(s->q, s->dead);
}

static int do_kick_all(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_kick_all(s->q, DUE_ALL_TOPICS, NULL);
}

static int do_clear(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_clear(s->q, DUE_ALL_TOPICS, NULL);
}

static int do_clear_dead(struct stand *s, int64_t timeout_ns)
{
    (void)timeout_ns;
    return due_clear_dead(s->q, DUE_ALL_TOPICS, NULL);
}

/* Those that never ask the store. */
static int do_looks(struct stand *s, int64_t timeout_ns)
{
    uint64_t cursor = 0;
    due_info info[8];
    due_dead dead[8];
    struct due_stats stats;

    (void)timeout_ns;
    int rc = due_peek(s->q, info);
    rc |= due_list(s->q, &cursor, info, 8);
    cursor = 0;
    rc |= due_list_dead(s->q, &cursor, dead, 8);
    rc |= due_topic(s->q, "tea");
    rc |= due_pause(s->q, 0);
    rc |= due_resume(s->q, 0);
    rc |= due_stats(s->q, &stats);
    rc |= due_poll(s->q, NULL);
    return rc < 0 ? rc : 0;
}

static int do_flush(struct stand *s, int64_t timeout_ns)
{
    return due_flush(s->q, timeout_ns);
}

static const struct {
    const char *name;
    verb *run;
    bool polls; /* with timeout 0 it waits for nothing */
} verbs[] = {
    { "enqueue", do_enqueue, false },
    { "enqueue_batch", do_enqueue_batch, false },
    { "enqueue, with a key", do_enqueue_keyed, false },
    { "dequeue", do_dequeue, true },
    { "dequeue_batch", do_dequeue_batch, true },
    { "reserve", do_reserve, true },
    { "ack", do_ack, false },
    { "nack", do_nack, false },
    { "bury", do_bury, false },
    { "extend", do_extend, false },
    { "ack_batch", do_ack_batch, false },
    { "cancel", do_cancel, false },
    { "cancel_batch", do_cancel_batch, false },
    { "cancel_key", do_cancel_key, false },
    { "find", do_find, false },
    { "remaining", do_remaining, false },
    { "find_key", do_find_key, false },
    { "reschedule", do_reschedule, false },
    { "promote", do_promote, false },
    { "update", do_update, false },
    { "amend", do_amend, false },
    { "kick", do_kick, false },
    { "kick_all", do_kick_all, false },
    { "clear", do_clear, false },
    { "clear_dead", do_clear_dead, false },
    { "looks", do_looks, true },
    { "flush", do_flush, true },
};

static void put_jobs(struct stand *s)
{
    due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2 };

    s->q = s->shop.lab.q;
    due_id dead = lab_enqueue(&s->shop.lab, "dead", .delay_ns = 0);
    due_job job;
    cr_assert_eq(lab_reserve(&s->shop.lab, &job, DUE_S(100)), 0);
    cr_assert_eq(due_bury(&job, NULL), 0);
    s->dead = dead;
    lab_enqueue(&s->shop.lab, "key", .delay_ns = DUE_S(3600), .key = "key", .key_len = 3);
    for (int i = 0; i < JOBS; i++)
        s->id[i] = lab_enqueue(&s->shop.lab, "tea", .delay_ns = i < JOBS / 2 ? 0 : DUE_S(3600),
                               .retry = i % 2 == 0 ? &twice : NULL);
}

static void fault(struct stand *s, enum memory_verb what, enum memory_fault_kind kind, int answer)
{
    memory_store_fault(s->shop.store,
                       (struct memory_fault){
                           .verb = what, .times = MEMORY_ALWAYS, .kind = kind, .answer = answer });
}

static void go_wrong(struct stand *s, enum state state)
{
    switch (state) {
    case LOADING:
    case SILENT:
        for (enum memory_verb v = MEMORY_READY; v < MEMORY_CLOSE; v++)
            fault(s, v, MEMORY_BLOCK, 0);
        break;
    case AWAY:
        for (enum memory_verb v = MEMORY_READY; v < MEMORY_CLOSE; v++)
            fault(s, v, MEMORY_AWAY, 0);
        break;
    case FULL:
        fault(s, MEMORY_COMMIT, MEMORY_FULL, 0);
        break;
    default:
        fault(s, MEMORY_COMMIT, MEMORY_ANSWER, DUE_EACCES);
        break;
    }
}

static struct stand stand_in(enum state state)
{
    struct stand s = { .shop = shop_new(NULL, (struct lab_options){ .kernel = true }) };

    put_jobs(&s);
    if (state == LOADING) {
        shop_die(&s.shop);
        s.shop.store = memory_store_new(s.shop.disk);
        go_wrong(&s, state);
        s.shop.lab = lab_open_with(&(struct lab_options){
            .kernel = true,
            .with = { DUE_OPTIONS_INIT, .store = s.shop.store, .store_timeout_ns = STORE_NS } });
        s.q = s.shop.lab.q;
        return s;
    }
    shop_crash(&s.shop, (struct lab_options){ .kernel = true, .with.store_timeout_ns = STORE_NS });
    s.q = s.shop.lab.q;
    for (int i = 0; i < 3; i++)
        cr_assert_eq(lab_reserve(&s.shop.lab, &s.held[i], DUE_S(100)), 0);
    go_wrong(&s, state);
    return s;
}

static void try_all(enum state state, int64_t timeout_ns)
{
    struct stand s = stand_in(state);

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        int64_t before = crew_now_ns();
        int rc = verbs[i].run(&s, timeout_ns);
        int64_t took = crew_now_ns() - before;

        if (timeout_ns == 0 && verbs[i].polls)
            cr_expect_lt(took, DUE_S(1), "%s waits with timeout 0", verbs[i].name);
        cr_expect_lt(took, BOUND_NS, "%s, %s, timeout %lld: %lld ms (%s)", state_name[state],
                     verbs[i].name, (long long)timeout_ns, (long long)(took / DUE_MS(1)),
                     due_error_name(rc));
    }
    for (int i = 0; i < 3; i++)
        due_job_done(&s.held[i]);
    int64_t before = crew_now_ns();
    int rc = due_close(s.q, DUE_CLOSE_DISCARD, timeout_ns); /* the store is told, for a second */
    int64_t took = crew_now_ns() - before;

    cr_expect_eq(rc, 0, "%s, timeout %lld: %s", state_name[state], (long long)timeout_ns,
                 due_error_name(rc));
    cr_expect_lt(took, BOUND_NS + DUE_S(1), "%s, close, timeout %lld: %lld ms", state_name[state],
                 (long long)timeout_ns, (long long)(took / DUE_MS(1)));
    memory_store_forgive(s.shop.store);
    shop_die(&s.shop);
    cr_expect_null(memory_disk_wrong(s.shop.disk));
    memory_disk_free(s.shop.disk);
}

static void try_timeouts(enum state state)
{
    try_all(state, 0);
    try_all(state, SHORT_NS);
    try_all(state, LONG_NS);
}

Test(stored_deadline, ends_every_call_in_time_while_the_jobs_are_read, .timeout = 60)
{
    try_timeouts(LOADING);
}

Test(stored_deadline, ends_every_call_in_time_while_nothing_is_answered, .timeout = 60)
{
    try_timeouts(SILENT);
}

Test(stored_deadline, ends_every_call_in_time_while_the_store_is_away, .timeout = 60)
{
    try_timeouts(AWAY);
}

Test(stored_deadline, ends_every_call_in_time_while_the_store_is_full, .timeout = 60)
{
    try_timeouts(FULL);
}

Test(stored_deadline, ends_every_call_in_time_while_the_store_refuses, .timeout = 60)
{
    try_timeouts(REFUSING);
}
