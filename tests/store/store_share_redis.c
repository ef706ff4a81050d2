/* store_share_redis.c - the suite of shared stores on the Redis store, with a server of its own
 * behind the fault proxy, as a user who may do what docs/redis-layout.md says, and nothing else;
 * and once more (STORE_SUITE_CLUSTER) on a node in cluster mode that has all slots.
 */
#include <stdio.h>
#include <stdlib.h>

#ifdef DUE_HAVE_REDIS

#include "lab/redis/redis_cluster.h"
#include "lab/redis/redis_place.h"
#include "lab/redis/redis_user.h"
#include "redis/share/share.h"
#include "store/share_suite.h"

static const char *ask(struct place *p, const char *const *words)
{
    static char answer[256];
    long n = redis_server_ask(&p->server, words, answer, sizeof answer);

    CREW_CHECK(n > 0 && answer[0] != '-', ": %s", n > 0 ? answer : words[0]);
    return answer;
}

#define ASK(...) ask(ctx, (const char *const[]){ __VA_ARGS__, NULL })

static void full(void *ctx, bool is_full)
{
    ASK("CONFIG", "SET", "maxmemory", is_full ? "1" : "0");
}

static void evict(void *ctx, due_store *store)
{
    const struct due__redis *s = (const struct due__redis *)store;
    char key[128];

    snprintf(key, sizeof key, "%swriters", s->share->base);
    ASK("HSET", key, s->share->lane[0].name, "X", s->share->lane[1].name, "X");
}

static void lose(void *ctx)
{
    ASK("FLUSHALL");
}

static void doubt(void *ctx, due_store *store, bool work, bool lands)
{
    struct fault_cell cell = { .command = 1,
                               .name = "EVALSHA",
                               .where = lands ? FAULT_SENT : FAULT_BEFORE,
                               .what = FAULT_RESET };

    (void)store;
    (void)work;
    fault_proxy_plan(((struct place *)ctx)->proxy, &cell, 1);
}

static void be_the_user(struct place *p)
{
    const char *const user[] = { "ACL",          "SETUSER",        "due",         "reset",
                                 "on",           ">canary",        "~due:{*}:*",  "&due:{*}:*",
                                 REDIS_USER_MAY, REDIS_SHARED_MAY, "+config|get", NULL };
    void *ctx = p;

    (void)ctx;
    (void)ask(p, user);
    snprintf(p->url, sizeof p->url, "unix://due:canary@%s", p->proxy_path);
}

static bool open_place(struct place *p)
{
    if (getenv("STORE_SUITE_CLUSTER") == NULL)
        return place_open(p);
    int rc = redis_cluster_start(&p->server, NULL);
    if (rc == REDIS_SERVER_MISSING)
        return false;
    CREW_CHECK(rc == 0, ": the node does not start");
    place_begin(p);
    return true;
}

int main(void)
{
    static struct place place;

    if (!open_place(&place))
        return 77;
    crew_watchdog("store_share_redis", 280);
    be_the_user(&place);
    struct share_maker maker = { .store = { .name = "redis store",
                                            .make = place_store,
                                            .ctx = &place,
                                            .grain_ns = 1000,
                                            .full = full },
                                 .evict = evict,
                                 .lose = lose,
                                 .doubt = doubt };
    maker.by_rank = getenv("STORE_SUITE_BY_RANK") != NULL;
    int failed = share_suite_run(&maker, getenv("STORE_SUITE_ONLY"));
    place_close(&place);
    return failed;
}

#else

int main(void)
{
    printf("store_share_redis: built without the Redis store\n");
    return 77;
}

#endif
