/* held_back.c - which topics of a queue on a server are paused or limited, as is stored there.
 * docs/redis-layout.md has the keys.
 */
#include "inspect/server.h"

#include <stdlib.h>

struct scan {
    ctl_held_back_visit *visit;
    void *ctx;
};

/* "0", or "PAUSED LIMIT".  What is neither holds nothing back, as in the scripts. */
static bool read_value(const redisReply *value, bool *paused, uint64_t *limit)
{
    char *space, *end;

    if (!due__reply_is_text(value))
        return false;
    *paused = strtoull(value->str, &space, 10) == 1;
    *limit = strtoull(space, &end, 10);
    return *space == ' ' && *end == '\0' && (*paused || *limit > 0);
}

/* Name and value, in turn. */
static bool add_page(void *ctx, const redisReply *page)
{
    struct scan *scan = ctx;
    bool paused;
    uint64_t limit;

    for (size_t i = 0; i + 1 < page->elements; i += 2)
        if (read_value(page->element[i + 1], &paused, &limit) &&
            due__reply_is_text(page->element[i]) &&
            !scan->visit(scan->ctx, page->element[i]->str, paused, limit))
            return false;
    return true;
}

int ctl_server_held_back(const struct ctl_look *look, ctl_held_back_visit *visit, void *ctx)
{
    struct scan scan = { .visit = visit, .ctx = ctx };
    struct ctl_server server;
    struct ctl_keys keys;
    int status = ctl_server_open(&server, look->url);

    if (status != 0)
        return status;
    ctl_keys_make(&keys, look->queue);
    if (!ctl_scan(&server, "HSCAN", keys.topics, NULL, add_page, &scan))
        status = ctl_server_status(&server);
    ctl_server_close(&server);
    return status;
}
