/* stored_proxy_lab.h - what the tests of queues stored in Redis share whose server stands behind
 * the fault proxy.
 */
#ifndef STORED_PROXY_LAB_H
#define STORED_PROXY_LAB_H

#include "lab/fault_proxy.h"
#include "lab/redis/stored_redis_lab.h"

static struct fault_proxy *proxy; /* the test's own */
static char url[160];             /* where it listens */

static inline void serve_by_proxy(void)
{
    char path[112];

    serve_plainly();
    snprintf(path, sizeof path, "%s/proxy", server.dir);
    snprintf(url, sizeof url, "unix://%s", path);
    proxy = fault_proxy_start(path, server.socket);
    cr_assert_not_null(proxy);
}

static inline void stop_both(void)
{
    fault_proxy_stop(proxy);
    stop();
}

#endif
