/* share_store_lab.h - what the tests of the shared face of the Redis store share: processes of one
 * queue, and exchanges.
 *
 * The changes of redis_store_lab.h are what is put and said; whatever the store answers is left in
 * the sharer.
 */
#ifndef SHARE_STORE_LAB_H
#define SHARE_STORE_LAB_H

#include "lab/redis/redis_proxy_lab.h"
#include "redis/share/share.h"

#define HELD_MOST 300

struct sharer {
    due_store *store;
    const struct due_shared_verbs *verbs;
    uint64_t number[2];
    int results[HELD_MOST];
    struct due_exchange answer;
    due_claimed held[HELD_MOST];
    uint64_t sequence[HELD_MOST];
    char topic[HELD_MOST][16];
    size_t len[HELD_MOST];
    size_t n_held;
    int refuse; /* what the visitor answers */
};

static inline int see_claimed(void *ctx, const due_claimed *job)
{
    struct sharer *s = ctx;

    if (s->refuse != 0)
        return s->refuse;
    cr_assert_lt(s->n_held, (size_t)HELD_MOST);
    s->held[s->n_held] = *job;
    s->sequence[s->n_held] = sequence_of(job->record.id);
    s->len[s->n_held] = job->record.len;
    snprintf(s->topic[s->n_held], sizeof s->topic[0], "%s", job->record.topic);
    s->n_held++;
    return 0;
}

static bool by_priority; /* whoever joins asks for that order */

static inline int join_as(struct sharer *s, due_store *store, int64_t wait_ns)
{
    struct due_store_open how = {
        .name = "q", .until_ns = soon(wait_ns), .log = keep_log, .by_priority = by_priority
    };

    s->store = store;
    s->verbs = store->verbs->shared;
    s->number[0] = s->number[1] = 0;
    memset(&error, 0, sizeof error);
    return s->verbs->join(store, &how, &info, &error);
}

static inline struct sharer joined_at(const char *url, due_redis_options o)
{
    struct sharer s = { .n_held = 0 };

    cr_assert_eq(join_as(&s, make(o, url), LONG_NS), 0, "%s", error.text);
    return s;
}

static inline struct sharer joined(void)
{
    return joined_at(NULL, (due_redis_options){ 0 });
}

static inline struct sharer joined_by_proxy(void)
{
    char url[128];

    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    return joined_at(url, (due_redis_options){ .answer_ns = DUE_MS(300) });
}

static inline void go(struct sharer *s)
{
    s->verbs->leave(s->store, soon(LONG_NS));
    due_redis_free(s->store);
}

/* One call of an exchange; its number is used up by 0. */
static inline int call_once(struct sharer *s, const due_change *changes, size_t n,
                            const struct due_claim *claim, int64_t wait_ns)
{
    bool work = due__share_is_work(changes, n, claim);

    s->n_held = 0;
    int rc = s->verbs->exchange(s->store, changes, n, s->number[work] + 1, s->results, claim,
                                see_claimed, s, &s->answer, soon(wait_ns));
    if (rc == 0)
        s->number[work]++;
    return rc;
}

/* Called again until it is known. */
static inline int exchange(struct sharer *s, const due_change *changes, size_t n,
                           const struct due_claim *claim)
{
    int64_t end = soon(LONG_NS);
    int rc;

    do
        rc = call_once(s, changes, n, claim, LONG_NS);
    while ((rc == DUE_EAGAIN || rc == DUE_EINDOUBT) && due__mono_ns() < end);
    return rc;
}

static inline int say(struct sharer *s, due_change change)
{
    int rc = exchange(s, &change, 1, NULL);

    return rc != 0 ? rc : s->results[0];
}

static inline int claim(struct sharer *s, size_t need)
{
    struct due_claim c = { .need = need, .lease_ns = DUE_S(600) };

    return exchange(s, NULL, 0, &c);
}

static inline int await(struct sharer *s, size_t need)
{
    struct due_claim c = { .need = need, .lease_ns = DUE_S(600), .waits = 1 };

    return exchange(s, NULL, 0, &c);
}

/* What a holder says of a job of the last claim. */
static inline due_change of_held(const struct sharer *s, size_t at, enum due_change_kind kind)
{
    due_change c = { .kind = kind, .held = s->held[at].held };

    c.record.id = s->held[at].record.id;
    c.record.topic = s->topic[at];
    c.record.deadline_ns = c.record.until_ns = 5;
    return c;
}

#define SHARE_TEST(name, promise) \
    Test(name, promise, .init = serve_plainly, .fini = stop, .timeout = 200)

/* Three jobs are put; two are claimed, one of them done and one given back, and what is left is
 * worked off.  Nothing may be done twice, and nothing is lost. */
static inline void one_life(struct sharer *s)
{
    due_change puts[3];
    due_change ends[2];
    unsigned seen[4] = { 0 };
    struct due_claim one = { .need = 2, .lease_ns = DUE_S(600) };

    for (uint64_t i = 0; i < 3; i++)
        puts[i] = put(i + 1, 5);
    cr_assert_eq(exchange(s, puts, 3, NULL), 0);
    cr_expect(s->results[0] == 0 && s->results[1] == 0 && s->results[2] == 0);
    cr_assert_eq(exchange(s, NULL, 0, &one), 0);
    cr_assert_eq(s->n_held, 2u);
    for (size_t i = 0; i < 2; i++)
        seen[s->sequence[i]]++;
    ends[0] = of_held(s, 0, DUE_CHANGE_DROP);
    ends[1] = of_held(s, 1, DUE_CHANGE_MOVE);
    uint64_t back = s->sequence[1];
    uint64_t first = s->answer.stamp;
    cr_assert_eq(exchange(s, ends, 2, &one), 0);
    cr_expect(s->results[0] == 0 && s->results[1] == 0);
    cr_expect_gt(s->answer.stamp, first);
    cr_assert_eq(s->n_held, 2u);
    for (size_t i = 0; i < 2; i++)
        seen[s->sequence[i]]++;
    for (uint64_t i = 1; i <= 3; i++)
        cr_expect_eq(seen[i], i == back ? 2u : 1u, "job %d: %u", (int)i, seen[i]);
    ends[0] = of_held(s, 0, DUE_CHANGE_DROP);
    ends[1] = of_held(s, 1, DUE_CHANGE_DROP);
    cr_assert_eq(exchange(s, ends, 2, NULL), 0);
    cr_expect(s->results[0] == 0 && s->results[1] == 0);
    due_change cancel = drop(9, 0);
    cr_expect_eq(say(s, cancel), DUE_ENOENT);
}

#endif
