/* test_share_cluster_store.c - the Redis store on a node in cluster mode that has all slots, as a
 * user who may do what docs/redis-layout.md says: a queue that is owned and shared by turns, with
 * jobs of all kinds.
 */
#include "lab/redis/redis_cluster.h"
#include "lab/redis/redis_user.h"
#include "lab/redis/share_convert_lab.h"

static void serve_a_node(void)
{
    const char *const user[] = { "ACL",          "SETUSER",        "due",        "reset",
                                 "on",           ">canary",        "~due:{q}:*", "&due:{q}:*",
                                 REDIS_USER_MAY, REDIS_SHARED_MAY, NULL };
    int rc = redis_cluster_start(&server, NULL);

    if (rc == REDIS_SERVER_MISSING)
        cr_skip_test("redis-server is not installed");
    cr_assert_eq(rc, 0);
    cr_assert_str_eq(ask(user), "+OK\r\n");
    snprintf(server.url, sizeof server.url, "unix://due:canary@%s", server.socket);
}

static int claimed_all(struct sharer *s)
{
    int n = 0;

    for (int rounds = 0; rounds < 40; rounds++) {
        cr_assert_eq(claim(s, 100), 0);
        struct sharer had = *s;
        n += (int)had.n_held;
        for (size_t i = 0; i < had.n_held; i++)
            cr_expect_eq(
                say(s, of_held(&had, i, i % 2 == 0 ? DUE_CHANGE_RELEASE : DUE_CHANGE_EXTEND)), 0);
    }
    return n;
}

/* Owned, shared, owned, and so on; what is held by those who go is there again. */
static void by_turns(void)
{
    struct shelf was = fill_all(300);

    for (int round = 0; round < 3; round++) {
        struct sharer s = joined();
        struct due_census_all all = { 0 };
        struct due_beat beat = { .turn_ns = 1, .waits_room = 1 };

        cr_expect_eq(s.verbs->beat(s.store, &beat, soon(LONG_NS)) & ~DUE_BEAT_RANG, DUE_BEAT_TURN);
        cr_expect_eq(s.verbs->census(s.store, &all, NULL, NULL, soon(LONG_NS)), 0);
        cr_expect_eq(all.jobs, 300u);
        cr_expect_gt(claimed_all(&s), 10);
        go(&s);
        due_store *store = opened((due_redis_options){ 0 });
        struct shelf now = shelf_of(store);
        same(&now, &was, by_priority ? "by priority" : "by deadline");
        nothing_else("owned");
        finish(store);
    }
    free(was.line);
}

Test(share_cluster, node_has_a_queue_that_is_owned_and_shared_by_turns, .init = serve_a_node,
     .fini = stop, .timeout = 200)
{
    by_turns();
    ASK("FLUSHALL");
    by_priority = true;
    by_turns();
}
