/* redis_proxy_lab.h - what the tests of the Redis store share whose server stands behind the fault
 * proxy.
 */
#ifndef REDIS_PROXY_LAB_H
#define REDIS_PROXY_LAB_H

#include "lab/fault_proxy.h"
#include "lab/redis/redis_store_lab.h"

static struct fault_proxy *proxy; /* the test's own */

static inline void serve_by_proxy(void)
{
    char path[112];

    serve_plainly();
    snprintf(path, sizeof path, "%s/proxy", server.dir);
    proxy = fault_proxy_start(path, server.socket);
    cr_assert_not_null(proxy);
}

static inline void stop_both(void)
{
    fault_proxy_stop(proxy);
    stop();
}

static inline due_store *opened_by_proxy(due_redis_options o)
{
    char url[128];

    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    due_store *store = make(o, url);
    cr_assert_eq(take(store, LONG_NS, &info, &error), 0, "%s", error.text);
    return store;
}

#define REDIS_PROXY_TEST(name, promise) \
    Test(name, promise, .init = serve_by_proxy, .fini = stop_both, .timeout = 200)

#endif
