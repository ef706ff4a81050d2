/* store_redis.c - the suite on the Redis store, with a server of its own behind the fault proxy, as
 * a user who may do what docs/redis-layout.md says, and nothing else.
 */
#include <stdio.h>
#include <stdlib.h>

#ifdef DUE_HAVE_REDIS

#include "lab/redis/redis_place.h"
#include "lab/redis/redis_user.h"
#include "store/store_suite.h"

static void ask(struct place *p, const char *one, const char *two, const char *three,
                const char *four)
{
    const char *const words[] = { one, two, three, four, NULL };
    char answer[128];
    long n = redis_server_ask(&p->server, words, answer, sizeof answer);

    CREW_CHECK(n > 0 && answer[0] != '-', ": %s", n > 0 ? answer : one);
}

static void cut(void *ctx)
{
    struct place *p = ctx;

    fault_proxy_cut(p->proxy);
}

static void lose(void *ctx)
{
    struct place *p = ctx;

    ask(p, "FLUSHALL", NULL, NULL, NULL);
    fault_proxy_cut(p->proxy);
}

static void full(void *ctx, bool is_full)
{
    struct place *p = ctx;

    ask(p, "CONFIG", "SET", "maxmemory", is_full ? "1" : "0");
}

static void doubt(void *ctx, bool lands)
{
    struct place *p = ctx;
    struct fault_cell cell = { .command = 1,
                               .name = "EXEC",
                               .where = lands ? FAULT_SENT : FAULT_BEFORE,
                               .what = FAULT_RESET };

    fault_proxy_plan(p->proxy, &cell, 1);
}

static void be_the_user(struct place *p)
{
    static const char *const user[] = { "ACL",         "SETUSER", "due",        "reset",
                                        "on",          ">canary", "~due:{*}:*", REDIS_USER_MAY,
                                        "+config|get", NULL };
    char answer[128];
    long n = redis_server_ask(&p->server, user, answer, sizeof answer);

    CREW_CHECK(n > 0 && answer[0] == '+', ": %s", n > 0 ? answer : "no answer");
    snprintf(p->url, sizeof p->url, "unix://due:canary@%s", p->proxy_path);
}

int main(void)
{
    static struct place place;

    if (!place_open(&place))
        return 77;
    crew_watchdog("store_redis", 280);
    place.options.lease_ns = DUE_S(1);
    be_the_user(&place);
    struct store_maker maker = { .name = "redis store",
                                 .make = place_store,
                                 .ctx = &place,
                                 .lease_ns = DUE_S(1),
                                 .grain_ns = 1000,
                                 .cut = cut,
                                 .lose = lose,
                                 .full = full,
                                 .doubt = doubt };
    int failed = store_suite_run(&maker, getenv("STORE_SUITE_ONLY"));
    place_close(&place);
    return failed;
}

#else

int main(void)
{
    printf("store_redis: built without the Redis store\n");
    return 77;
}

#endif
