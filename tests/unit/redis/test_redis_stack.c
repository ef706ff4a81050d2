/* Each public function runs on the smallest stack that a thread can have with a store in Redis too,
 * whose code the callers and the library's threads go through. */
#define _GNU_SOURCE
#include "lab/stack_script.h"

#include "due/redis.h"
#include "lab/redis/redis_server.h"

#ifndef STACK_SANITIZED
Test(redis_stack, of_16_kib_is_enough_for_every_call, .timeout = 60)
{
    struct redis_server server;
    due_store *store = NULL;
    int rc = redis_server_start(&server, NULL);

    if (rc == REDIS_SERVER_MISSING)
        cr_skip_test("there is no redis-server");
    cr_assert_eq(rc, 0);
    threads_are_small();
    cr_assert_eq(due_redis_open(&store, server.url, NULL, NULL), 0);
    on_a_small_stack(DUE_PROXIES_ADAPTIVE, store);
    redis_server_stop(&server);
}
#endif
