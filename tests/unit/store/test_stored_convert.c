/* A queue that is owned by one process and shared by many, by turns: what it holds stays the same,
 * and who had it the other way says and gets nothing any more.
 */
#include "lab/redis/shared_both.h"

#include <stdio.h>
#include <unistd.h>

#include "lab/take.h"

/* ---- Jobs in all states ---------------------------------------------------------------------- */

enum state {
    DELAYED,
    DUE,
    RETRIED, /* failed twice, waits to be tried again */
    BURIED,
    KEYED,
    KEPT, /* done; its key is kept */
    REPEATS,
    RUSHED, /* of a high priority */
    MORTAL, /* with a time limit */
    LARGE,  /* with headers */
    STATES
};

#define PUT_MOST 12000

struct put {
    due_id id;
    enum state state;
    uint32_t attempts, failures; /* as it was given back last */
    unsigned seen;
};

struct world {
    struct shop shop;
    struct put *put;
    size_t n;
};

static size_t number_of(const due_job *job)
{
    return strtoul(job->data, NULL, 10);
}

static const void *bytes_of(size_t i, enum state state, size_t *len)
{
    static char bytes[30000];

    memset(bytes, 'a' + (int)(i % 26), sizeof bytes);
    *len = (size_t)snprintf(bytes, sizeof bytes, "%zu", i) + 1;
    if (state == LARGE)
        *len = i % 100 < 10 ? sizeof bytes : 300;
    return bytes;
}

static void put_one(struct world *w, size_t i, enum state state)
{
    static const due_retry often = { .kind = DUE_RETRY_FIXED, .attempts_max = 9, .delay_ns = 1 };
    struct put *p = &w->put[i];
    char key[24];
    due_extra more = { DUE_EXTRA_INIT };
    due_spec spec = { DUE_SPEC_INIT, .at_ns = (int64_t)(1 + i % 500), .more = &more };

    snprintf(key, sizeof key, "k%zu", i);
    spec.topic = i % 2 == 0 ? 0 : lab_topic(&w->shop.lab, i % 4 == 1 ? "mail" : "post");
    spec.data = bytes_of(i, state, &spec.len);
    if (state == DELAYED || state == REPEATS)
        spec.at_ns = FAR + (int64_t)i;
    if (state == REPEATS)
        more.every_ns = DUE_S(5);
    if (state == RUSHED)
        spec.priority = 200;
    if (state == MORTAL)
        more.expires_ns = FAR;
    if (state == LARGE) {
        more.headers = "h:1";
        more.headers_len = 3;
    }
    if (state == RETRIED)
        more.retry = &often;
    if (state == KEYED || state == KEPT) {
        more.key = key;
        more.key_len = strlen(key);
        more.keep_key_ns = state == KEPT ? FAR : 0;
    }
    *p = (struct put){ .state = state };
    cr_assert_eq(due_enqueue(w->shop.lab.q, &spec, 0, &p->id), 0);
}

/* One that is there: whoever shares a queue has to ask for it. */
static due_job await_job(struct shop *s)
{
    due_job job = { 0 };
    int rc = take_leased(s->lab.q, &job, DUE_S(600), DUE_FOREVER);

    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    return job;
}

/* What is due and of these states is reserved, and given back, buried or acked. */
static void settle(struct world *w)
{
    static due_job jobs[PUT_MOST];
    size_t n = 0;

    while (lab_reserve(&w->shop.lab, &jobs[n], DUE_S(600)) == 0)
        n++;
    for (size_t i = 0; i < n; i++) {
        struct put *p = &w->put[number_of(&jobs[i])];
        int rc = p->state == RETRIED  ? due_nack(&jobs[i], FAR)
                 : p->state == BURIED ? due_bury(&jobs[i], "broken")
                 : p->state == KEPT   ? due_ack(&jobs[i])
                                      : due_snooze(&jobs[i], 0);
        cr_assert_eq(rc, 0, "%s", due_error_name(rc));
        if (p->state == RETRIED || p->state == BURIED)
            p->attempts = 1;
        p->failures = p->state == RETRIED;
    }
}

static struct world world_new(enum where where, size_t n)
{
    struct world w = { .shop = shop_new(where, as_owner()), .n = n };

    w.put = calloc(n, sizeof *w.put);
    for (size_t i = 0; i < n; i++)
        put_one(&w, i, (enum state)(i % STATES));
    settle(&w);
    return w;
}

static void world_end(struct world *w)
{
    shop_close(&w->shop);
    free(w->put);
}

/* Closed in order, and opened again. */
static void reopen(struct world *w, bool shares)
{
    lab_close(&w->shop.lab);
    shop_open(&w->shop, as(shares));
}

/* ---- What is to be seen ---------------------------------------------------------------------- */

static void see_job(struct world *w, const due_job *job)
{
    size_t i = number_of(job);
    size_t len;

    cr_assert_lt(i, w->n);
    struct put *p = &w->put[i];
    const void *bytes = bytes_of(i, p->state, &len);
    p->seen++;
    cr_expect(due_id_equal(job->id, p->id), "job %zu has another id", i);
    cr_expect(job->len == len && memcmp(job->data, bytes, len) == 0, "bytes of %zu", i);
    cr_expect_eq(job->priority, p->state == RUSHED ? 200 : 0, "job %zu", i);
    cr_expect_eq(job->deadline_ns, (int64_t)(1 + i % 500), "job %zu", i);
    cr_expect_eq(job->attempts, p->attempts + 1, "job %zu: %u, not %u", i, job->attempts,
                 p->attempts + 1);
    cr_expect_eq(job->headers_len, p->state == LARGE ? 3u : 0u, "job %zu", i);
}

static bool is_due(enum state state)
{
    return state == DUE || state == KEYED || state == RUSHED || state == MORTAL || state == LARGE;
}

/* All that is due can be reserved, once each, and is given back as if it had not been. */
static void due_jobs_are_whole(struct world *w, const char *when)
{
    static due_job jobs[PUT_MOST];
    size_t all = 0;
    size_t n = 0;
    due_job none;

    for (size_t i = 0; i < w->n; i++) {
        w->put[i].seen = 0;
        all += is_due(w->put[i].state);
    }
    for (; n < all; n++) {
        jobs[n] = await_job(&w->shop);
        see_job(w, &jobs[n]);
    }
    for (int i = 0; i < 5; i++)
        cr_expect_eq(lab_reserve(&w->shop.lab, &none, DUE_S(600)), DUE_EAGAIN, "%s: more", when);
    for (size_t i = 0; i < w->n; i++)
        cr_expect_eq(w->put[i].seen, is_due(w->put[i].state) ? 1u : 0u,
                     "%s: job %zu of state %d "
                     "came %u times",
                     when, i, (int)w->put[i].state, w->put[i].seen);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(due_snooze(&jobs[i], 0), 0);
}

static void dead_jobs_are_whole(struct world *w, const char *when)
{
    static due_dead dead[PUT_MOST];
    uint64_t cursor = 0;
    size_t n = 0;
    int more;

    do {
        more = due_list_dead(w->shop.lab.q, &cursor, dead + n, 256);
        cr_assert_geq(more, 0);
        n += (size_t)more;
    } while (more > 0);
    cr_expect_eq(n, w->n / STATES, "%s: %zu", when, n);
    for (size_t i = 0; i < n; i++)
        cr_expect(dead[i].cause == DUE_CAUSE_BURIED && strcmp(dead[i].reason, "broken") == 0 &&
                      dead[i].attempts == 1,
                  "%s", when);
}

static void keys_are_whole(struct world *w, const char *when)
{
    for (size_t i = 0; i<w->n; i += w->n> 100 ? 7 : 1) {
        char key[24];
        due_id id;

        snprintf(key, sizeof key, "k%zu", i);
        int rc = due_id_of_key(w->shop.lab.q, key, strlen(key), &id);
        if (w->put[i].state == KEYED)
            cr_expect(rc == 0 && due_id_equal(id, w->put[i].id), "%s: %s", when, key);
        else if (w->put[i].state != KEPT)
            cr_expect_eq(rc, DUE_ENOENT, "%s: %s", when, key);
        if (w->put[i].state == KEPT || w->put[i].state == KEYED) {
            due_extra more = { DUE_EXTRA_INIT, .key = key, .key_len = strlen(key) };
            due_spec spec = { DUE_SPEC_INIT, .at_ns = 1, .more = &more };
            rc = due_enqueue(w->shop.lab.q, &spec, 0, &id);
            cr_expect_eq(rc, DUE_EEXIST, "%s: %s: %s", when, key, due_error_name(rc));
        }
    }
}

static void waiting_jobs_are_whole(struct world *w, const char *when)
{
    for (size_t i = 0; i<w->n; i += w->n> 100 ? 7 : 1) {
        enum state state = w->put[i].state;
        due_info info;

        if (state != DELAYED && state != REPEATS)
            continue;
        int rc = due_find(w->shop.lab.q, w->put[i].id, &info);
        cr_expect(rc == 0 && info.deadline_ns == FAR + (int64_t)i, "%s: %zu: %s", when, i,
                  due_error_name(rc));
    }
}

static void all_is_whole(struct world *w, const char *when)
{
    due_jobs_are_whole(w, when);
    dead_jobs_are_whole(w, when);
    keys_are_whole(w, when);
    waiting_jobs_are_whole(w, when);
    cr_expect_eq(shop_stored(&w->shop), w->n - w->n / STATES, "%s", when);
}

/* ---- By turns -------------------------------------------------------------------------------- */

static void by_turns(enum where where, size_t n)
{
    struct world w = world_new(where, n);

    all_is_whole(&w, "before");
    for (int turn = 0; turn < 4; turn++) {
        reopen(&w, turn % 2 == 0);
        all_is_whole(&w, turn % 2 == 0 ? "shared" : "owned");
    }
    world_end(&w);
}

BOTH_TEST(stored_convert, ten_jobs_in_every_state_stay_as_they_are)
{
    by_turns(where, 10);
}

BOTH_TEST(stored_convert, ten_thousand_jobs_in_every_state_stay_as_they_are)
{
    by_turns(where, 10000);
}

/* It dies, with jobs reserved, and the next is of the other mode. */
static void killed_by_turns(enum where where, size_t n)
{
    struct world w = world_new(where, n);

    for (int turn = 0; turn < 4; turn++) {
        for (size_t i = 0; i < n / 5; i++) {
            due_job job = await_job(&w.shop);

            see_job(&w, &job); /* no attempt of it is stored: nothing limits them */
            due_job_done(&job);
        }
        shop_crash(&w.shop, as(turn % 2 == 0));
        if (turn % 2 != 0)
            all_is_whole(&w, "owned");
    }
    world_end(&w);
}

BOTH_TEST(stored_convert, ten_jobs_stay_when_those_who_have_some_are_killed)
{
    killed_by_turns(where, 10);
}

BOTH_TEST(stored_convert, ten_thousand_jobs_stay_when_those_who_have_some_are_killed)
{
    killed_by_turns(where, 10000);
}

/* ---- Attempts -------------------------------------------------------------------------------- */

static const due_retry twice = { .kind = DUE_RETRY_FIXED, .attempts_max = 2, .delay_ns = 1 };

/* An attempt that a killed process had begun counts, as it does of an owner that is killed. */
BOTH_TEST(stored_convert, an_attempt_that_had_begun_counts_for_the_owner)
{
    struct shop s = shop_new(where, as_sharer());
    due_extra more = { DUE_EXTRA_INIT, .retry = &twice };

    lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = &more);
    due_job job = await_job(&s);
    cr_expect_eq(job.attempts, 1u);
    due_id id = job.id;
    due_job_done(&job);
    shop_crash(&s, as_owner());
    job = await_job(&s);
    cr_expect(due_id_equal(job.id, id));
    cr_expect_eq(job.attempts, 2u);
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    cr_expect_eq(only_dead(&s).cause, DUE_CAUSE_ATTEMPTS);
    shop_close(&s);
}

BOTH_TEST(stored_convert, what_an_owner_had_tried_counts_for_those_who_share_it)
{
    struct shop s = shop_new(where, as_owner());
    due_extra more = { DUE_EXTRA_INIT, .retry = &twice };

    lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = &more);
    due_job job = await_job(&s);
    cr_expect_eq(due_nack(&job, 0), 0);
    shop_crash(&s, as_sharer());
    job = await_job(&s);
    cr_expect_eq(job.attempts, 2u);
    cr_expect_eq(job.failures, 1u);
    cr_expect_eq(due_bury(&job, NULL), 0);
    shop_close(&s);
}

/* ---- Who lives on ---------------------------------------------------------------------------- */

BOTH_TEST(stored_convert, who_shared_it_and_hung_is_fenced)
{
    struct shop s = shop_new(where, as_sharer());
    struct lab old = s.lab;
    due_job job;

    due_id other = lab_enqueue(&s.lab, "tea", .at_ns = FAR);
    for (int i = 0; i < 4; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 5);
    job = await_job(&s);
    shop_hang(&s);
    shop_open(&s, as_owner());
    cr_expect_eq(due_ack(&job), DUE_EFENCED);
    due_job_done(&job);
    for (int i = 0; i < 3; i++) {
        due_spec spec = { DUE_SPEC_INIT, .at_ns = 5 };
        due_job none;

        cr_expect_eq(due_enqueue(old.q, &spec, 0, NULL), DUE_EFENCED);
        cr_expect_eq(lab_reserve(&old, &none, LEASE), DUE_EFENCED);
        cr_expect_eq(due_dequeue(old.q, &none, DUE_S(5)), DUE_EFENCED);
        int rc = due_cancel(old.q, other, NULL);
        cr_expect_eq(rc, DUE_EFENCED, "%s", due_error_name(rc));
    }
    for (int i = 0; i < 4; i++) {
        job = await_job(&s);
        cr_expect_eq(job.attempts, 1u);
        cr_expect_eq(due_ack(&job), 0);
    }
    cr_expect_eq(shop_stored(&s), 1u);
    lab_close(&old);
    shop_close(&s);
}

BOTH_TEST(stored_convert, who_owned_it_and_hung_is_fenced)
{
    struct shop s = shop_new(where, as_owner());
    struct lab old = s.lab;
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 5 };
    due_job job;

    for (int i = 0; i < 5; i++)
        lab_enqueue(&s.lab, "tea", .at_ns = 5);
    shop_hang(&s);
    shop_open(&s, as_sharer());
    int rc = due_enqueue(old.q, &spec, DUE_S(5), NULL);
    cr_expect(rc == DUE_EFENCED || rc == DUE_EINDOUBT, "%s", due_error_name(rc));
    cr_expect_eq(due_enqueue(old.q, &spec, DUE_S(5), NULL), DUE_EFENCED);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(lab_reserve(&old, &job, LEASE), DUE_EFENCED);
    for (int i = 0; i < 5; i++) {
        job = await_job(&s);
        cr_expect_eq(due_ack(&job), 0);
    }
    cr_expect_eq(shop_stored(&s), 0u);
    lab_close(&old);
    shop_close(&s);
}

/* ---- Who lives, and is not to be disturbed --------------------------------------------------- */

BOTH_TEST(stored_convert, who_has_it_is_said_to_whoever_wants_it_otherwise)
{
    for (int shares = 0; shares < 2; shares++) {
        struct shop s = shop_new(where, as(shares != 0));
        due_error error = { "", "" };
        char us[32];
        due_queue *q;

        snprintf(us, sizeof us, "process %ld", (long)getpid());
        lab_enqueue(&s.lab, "tea", .at_ns = 5);
        cr_expect_eq(shop_try(&s, shares == 0, DUE_MS(500), &q, &error), DUE_EBUSY);
        cr_expect_not_null(strstr(error.text, us), "%s", error.text);
        due_job job = await_job(&s);
        cr_expect_eq(due_ack(&job), 0, "it goes on");
        shop_close(&s);
#ifdef DUE_HAVE_REDIS
        if (where == IN_REDIS)
            ASK("FLUSHALL");
#endif
    }
}

BOTH_TEST(stored_convert, of_a_group_one_at_a_time_goes_on)
{
    struct shop s = shop_new(where, as_owner());
    due_extra more = { DUE_EXTRA_INIT, .group = "g", .group_len = 1 };

    for (int i = 0; i < 4; i++)
        lab_enqueue(&s.lab, "pot", .at_ns = 6 + i, .more = &more);
    for (int turn = 0; turn < 4; turn++) {
        lab_close(&s.lab);
        shop_open(&s, as(turn % 2 == 0));
        due_job job = await_job(&s);
        due_job none;

        cr_expect_eq(job.deadline_ns, 6 + turn);
        for (int i = 0; i < 3; i++)
            cr_expect_eq(lab_reserve(&s.lab, &none, LEASE), DUE_EAGAIN, "turn %d", turn);
        cr_expect_eq(due_ack(&job), 0);
    }
    cr_expect_eq(shop_stored(&s), 0u);
    shop_close(&s);
}

/* ---- Killed while it opens ------------------------------------------------------------------- */

/* In memory an opening is one step: it has happened, or not.  Of Redis: test_share_convert. */
Test(stored_convert, an_opening_that_was_killed_is_done_or_not, .timeout = 100)
{
    static const enum memory_fault_kind kills[] = { MEMORY_CRASH, MEMORY_CRASH_AFTER };

    for (int shares = 0; shares < 2; shares++)
        for (int kind = 0; kind < 2; kind++)
            for (int then = 0; then < 2; then++) {
                struct world w = world_new(IN_MEMORY, 10);
                due_queue *q = NULL;

                reopen(&w, shares == 0);
                shop_die(&w.shop);
                due_store *store = memory_store_new(w.shop.disk);
                memory_store_fault(
                    store, (struct memory_fault){ .verb = shares ? MEMORY_JOIN : MEMORY_OPEN,
                                                  .kind = kills[kind] });
                due_options o = { DUE_OPTIONS_INIT, .store = store, .open_timeout_ns = DUE_MS(1),
                                  .share = shares ? DUE_SHARED : DUE_OWNED,
                                  .manual = w.shop.lab.clock };
                if (due_open(&q, &o, NULL) == 0) {
                    int rc = due_close(q, DUE_CLOSE_DISCARD, 0);
                    cr_expect(rc == 0 || rc == DUE_ETIMEDOUT, "%s", due_error_name(rc));
                    due_free(q);
                } else {
                    store->verbs->free(store);
                }
                struct lab old = w.shop.lab;
                shop_open(&w.shop, as(then != 0));
                all_is_whole(&w, "after a kill");
                lab_close(&old);
                world_end(&w);
            }
}
