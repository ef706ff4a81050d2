/* Each call of a queue stored in Redis waits until one deadline, whatever is wrong with the server,
 * while the jobs are read and after: all verbs.  What the store in memory can be made to do:
 * test_stored_deadline.c.
 */
#ifdef DUE_HAVE_REDIS

#include "lab/deadline_verbs.h"
#include "lab/redis/stored_proxy_lab.h"

#define STORE_NS DUE_MS(4) /* store_timeout_ns */
#define LATE_MS  3         /* each answer of a slow server: some calls have it in time */

enum state { SILENT, SLOW, GONE, STATES };

static const char *const state_name[2][STATES] = {
    { "silent", "slow", "gone" },
    { "silent while loading", "slow while loading", "gone while loading" },
};

static const struct due_store_verbs *verbs; /* of the store that is opened */
static atomic_bool opening;

/* An opening has the store's timeout for them, which a busy machine may need longer for. */
static int topics_in_time(due_store *s, due_store_visit_topic *visit, void *ctx, int64_t until_ns)
{
    return verbs->topics(s, visit, ctx,
                         atomic_load(&opening) ? crew_now_ns() + DUE_S(20) : until_ns);
}

static struct lab open_at(const char *at, int64_t store_timeout_ns)
{
    static struct due_store_verbs patient;
    due_store *store = store_at(at, (due_redis_options){ .size = 0 });

    verbs = store->verbs;
    patient = *verbs;
    patient.topics = topics_in_time;
    store->verbs = &patient;
    atomic_store(&opening, true);
    struct lab lab = lab_open_with(&(struct lab_options){
        .kernel = true,
        .with = { DUE_OPTIONS_INIT, .store = store, .store_timeout_ns = store_timeout_ns } });
    atomic_store(&opening, false);
    return lab;
}

static void go_wrong(enum state state)
{
    if (state == SILENT)
        redis_server_freeze(&server);
    else if (state == SLOW)
        fault_proxy_lag(proxy, LATE_MS);
    else
        redis_server_kill(&server);
}

static void go_well(enum state state)
{
    if (state == SILENT)
        redis_server_thaw(&server);
    else if (state == SLOW)
        fault_proxy_lag(proxy, 0);
    else
        cr_assert_eq(redis_server_run(&server), 0);
}

static void try_all(enum state state, bool loading, int64_t timeout_ns, bool all)
{
    struct fault_cell page = {
        .command = 1, .name = "ZRANGE", .where = FAULT_BEFORE, .what = FAULT_STALL
    };
    struct deadline_stand s = { .state = state_name[loading][state] };
    struct lab lab = open_at(server.url, DUE_S(10));

    deadline_fill(&s, &lab, false);
    lab_close(&lab);
    fault_proxy_plan(proxy, &page, loading);
    lab = open_at(url, STORE_NS);
    s.q = lab.q;
    if (loading) {
        cr_assert(fault_proxy_wait(proxy, 1, 5000));
    } else {
        while (lab_stats(&lab).loading)
            crew_sleep(DUE_US(100));
        deadline_hold(&s, &lab);
    }
    go_wrong(state);
    fault_proxy_go_on(proxy);
    deadline_try(&s, timeout_ns, all);
    go_well(state);
    deadline_close(&s, 0);
    lab_close(&lab);
    ASK("FLUSHALL");
}

static void try_timeouts(enum state state, bool loading)
{
    try_all(state, loading, 0, true);
    try_all(state, loading, DUE_MS(1), false);
    try_all(state, loading, DEADLINE_LONG, false);
}

#define DEADLINE_TEST(suite, name, state, loading)                               \
    Test(suite, name, .init = serve_by_proxy, .fini = stop_both, .timeout = 100) \
    {                                                                            \
        try_timeouts(state, loading);                                            \
    }

DEADLINE_TEST(redis_deadline, ends_every_call_in_time_while_the_server_is_silent, SILENT, false)
DEADLINE_TEST(redis_deadline, ends_every_call_in_time_while_the_server_is_slow, SLOW, false)
DEADLINE_TEST(redis_deadline, ends_every_call_in_time_while_the_server_is_gone, GONE, false)
DEADLINE_TEST(redis_deadline, ends_every_call_in_time_if_the_server_falls_silent_in_loading, SILENT,
              true)
DEADLINE_TEST(redis_deadline, ends_every_call_in_time_if_the_server_is_slow_in_loading, SLOW, true)
DEADLINE_TEST(redis_deadline, ends_every_call_in_time_if_the_server_goes_in_loading, GONE, true)

#else
typedef int due__no_redis; /* a file has something in it */
#endif
