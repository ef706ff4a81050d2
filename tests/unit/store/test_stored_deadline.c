/* Each call waits for the store until one deadline, whatever it waits for: all verbs, all that may
 * be wrong with a store. */
#include "lab/deadline_verbs.h"
#include "lab/shop.h"

#define STORE_NS DUE_MS(10) /* store_timeout_ns */
#define SLOW_US  2000       /* for each of its calls */

enum state { LOADING, SILENT, SLOW, AWAY, FULL, REFUSING, LAPSED, LAPSED_SLOW, STATES };

static const char *const state_name[STATES] = { "loading",
                                                "silent",
                                                "slow",
                                                "away",
                                                "full",
                                                "refusing",
                                                "silent, with lapsed leases",
                                                "slow, with lapsed leases" };

static void fault(struct shop *shop, enum memory_verb what, struct memory_fault f)
{
    f.verb = what;
    f.times = MEMORY_ALWAYS;
    memory_store_fault(shop->store, f);
}

static void go_wrong(struct shop *shop, enum state state)
{
    struct memory_fault f = { .kind = MEMORY_BLOCK };

    switch (state) {
    case FULL:
        fault(shop, MEMORY_COMMIT, (struct memory_fault){ .kind = MEMORY_FULL });
        return;
    case REFUSING:
        fault(shop, MEMORY_COMMIT,
              (struct memory_fault){ .kind = MEMORY_ANSWER, .answer = DUE_EACCES });
        return;
    case AWAY:
        f.kind = MEMORY_AWAY;
        break;
    case SLOW:
    case LAPSED_SLOW:
        f = (struct memory_fault){ .kind = MEMORY_SLOW, .count = SLOW_US };
        break;
    default:
        break;
    }
    for (enum memory_verb v = MEMORY_READY; v < MEMORY_CLOSE; v++)
        fault(shop, v, f);
}

static void begin(struct shop *shop, struct deadline_stand *s, enum state state)
{
    bool lapsed = state >= LAPSED;

    *shop = shop_new(NULL, (struct lab_options){ .kernel = true,
                                                 .with.store_timeout_ns = lapsed ? STORE_NS : 0 });
    *s = (struct deadline_stand){ .state = state_name[state] };
    deadline_fill(s, &shop->lab, lapsed);
    if (state == LOADING) {
        shop_die(shop);
        shop->store = memory_store_new(shop->disk);
        go_wrong(shop, state);
        shop->lab = lab_open_with(&(struct lab_options){
            .kernel = true,
            .with = { DUE_OPTIONS_INIT, .store = shop->store, .store_timeout_ns = STORE_NS } });
    } else if (!lapsed) {
        shop_crash(shop, (struct lab_options){ .kernel = true, .with.store_timeout_ns = STORE_NS });
        deadline_hold(s, &shop->lab);
    }
    s->q = shop->lab.q;
    if (state != LOADING)
        go_wrong(shop, state);
}

static void end(struct shop *shop)
{
    memory_store_forgive(shop->store);
    shop_die(shop);
    cr_expect_null(memory_disk_wrong(shop->disk));
    memory_disk_free(shop->disk);
}

static void try_all(enum state state, int64_t timeout_ns, bool all)
{
    struct shop shop;
    struct deadline_stand s;

    begin(&shop, &s, state);
    deadline_try(&s, timeout_ns, all);
    deadline_close(&s, timeout_ns);
    end(&shop);
}

static void try_timeouts(enum state state)
{
    try_all(state, 0, true);
    try_all(state, DEADLINE_SHORT, false);
    try_all(state, DEADLINE_LONG, false);
}

Test(stored_deadline, ends_every_call_in_time_while_the_jobs_are_read, .timeout = 60)
{
    try_timeouts(LOADING);
}

Test(stored_deadline, ends_every_call_in_time_while_nothing_is_answered, .timeout = 60)
{
    try_timeouts(SILENT);
}

Test(stored_deadline, ends_every_call_in_time_while_everything_is_answered_late, .timeout = 60)
{
    try_timeouts(SLOW);
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

/* Each of the leases that have ended makes a job dead, which the store is told. */
static void try_lapsed(enum state state)
{
    bool more = true;

    for (size_t verb = 0; more; verb++) {
        struct shop shop;
        struct deadline_stand s;

        begin(&shop, &s, state);
        more = deadline_try_one(&s, verb, DEADLINE_SHORT);
        memory_store_forgive(shop.store);
        deadline_close(&s, 0);
        end(&shop);
    }
}

Test(stored_deadline, ends_every_call_in_time_that_finds_many_lapsed_leases, .timeout = 60)
{
    try_lapsed(LAPSED);
    try_lapsed(LAPSED_SLOW);
}

/* ---- On a clock that is turned by hand ---- */

/* Ways to put a job in. */
enum way { ONE, BATCH, KEYED, WAYS };

/* The store is slow to take it, and the clock is turned past the call's timeout. */
static void put_slowly(struct shop *s, enum memory_verb verb, enum way way)
{
    struct memory_limiter *gate = memory_limiter_new(s->disk);
    due_extra key = { DUE_EXTRA_INIT, .key = "k", .key_len = 1 };
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(9), .more = way == KEYED ? &key : NULL };
    struct crew_call c;

    memory_store_fault(
        s->store,
        (struct memory_fault){ .verb = verb, .times = 1, .kind = MEMORY_BLOCK, .limiter = gate });
    if (way == BATCH)
        crew_call_enqueue_batch(&c, s->lab.q, spec, 10);
    else
        crew_call_enqueue(&c, s->lab.q, spec, 10);
    memory_limiter_reached(gate, 1);
    crew_call_asleep(&c);
    lab_turn_to(&s->lab, 10);
    crew_call_asleep(&c);
    memory_limiter_open(gate);
    cr_assert_eq(crew_call_answer(&c), way == BATCH, "way %d", way);
    cr_expect_eq(memory_disk_jobs(s->disk), 1u);
    memory_limiter_free(gate);
}

Test(stored_deadline, of_an_enqueue_is_the_stores_alone_on_a_manual_clock, .timeout = 60)
{
    for (int run = 0; run < 2 * 2 * 2 * WAYS; run++) {
        bool shared = run & 1;

        lab_proxies = run >> 1 & 1;
        struct shop s =
            shop_make(.with.capacity = run >> 2 & 1, .with.share = shared ? DUE_SHARED : DUE_OWNED,
                      .with.store_timeout_ns = DUE_S(60));
        put_slowly(&s, shared ? MEMORY_PUT : MEMORY_COMMIT, (enum way)(run >> 3));
        shop_close(&s);
    }
    lab_proxies = -1;
}

/* And that it has. */
Test(stored_deadline, of_an_enqueue_ends_it_on_a_manual_clock, .timeout = 60)
{
    for (lab_proxies = 0; lab_proxies < 2; lab_proxies++) {
        struct shop s = shop_make(.with.store_timeout_ns = DUE_MS(10));
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(9) };

        for (enum memory_verb v = MEMORY_READY; v < MEMORY_CLOSE; v++)
            fault(&s, v, (struct memory_fault){ .kind = MEMORY_AWAY });
        cr_expect_eq(due_enqueue(s.lab.q, &spec, DUE_FOREVER, NULL), DUE_ETIMEDOUT);
        cr_expect_eq(due_enqueue_batch(s.lab.q, &spec, 1, 1, NULL), DUE_ETIMEDOUT);
        memory_store_forgive(s.store);
        cr_expect_eq(memory_disk_jobs(s.disk), 0u);
        shop_close(&s);
    }
    lab_proxies = -1;
}

/* On a kernel's clock its own does. */
Test(stored_deadline, of_an_enqueue_is_its_own_on_another_clock, .timeout = 60)
{
    for (lab_proxies = 0; lab_proxies < 2; lab_proxies++) {
        struct shop s = shop_new(
            NULL, (struct lab_options){ .kernel = true, .with.store_timeout_ns = DUE_S(600) });
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = DUE_S(900) };

        shop_fail(&s, MEMORY_READY, MEMORY_ALWAYS, MEMORY_AWAY);
        cr_expect_eq(due_enqueue(s.lab.q, &spec, DUE_MS(1), NULL), DUE_ETIMEDOUT);
        cr_expect_eq(due_enqueue_batch(s.lab.q, &spec, 1, DUE_MS(1), NULL), DUE_ETIMEDOUT);
        memory_store_forgive(s.store);
        shop_close(&s);
    }
    lab_proxies = -1;
}
