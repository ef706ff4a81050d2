/* worker_store.h - where a worker of the crash tests keeps its jobs. */
#ifndef WORKER_STORE_H
#define WORKER_STORE_H

#include <string.h>

#include "due/redis.h"
#ifdef DUE_HAVE_SQLITE
#include "due/sqlite.h"
#endif

#ifdef DUE_HAVE_SQLITE
static inline int file_store(due_store **store, const char *path, const char *flags,
                             due_error *error)
{
    due_sqlite_options options = { DUE_SQLITE_OPTIONS_INIT,
                                   .durability = strchr(flags, 'e') != NULL ? DUE_DURABLE_EVERYSEC
                                                 : strchr(flags, 'n') != NULL
                                                     ? DUE_DURABLE_NONE
                                                     : DUE_DURABLE_ALWAYS };

    return due_sqlite_open(store, path, &options, error);
}
#else
static inline int file_store(due_store **store, const char *path, const char *flags,
                             due_error *error)
{
    (void)store, (void)path, (void)flags, (void)error;
    return DUE_ENOTSUP;
}
#endif

static inline int server_store(due_store **store, const char *url, due_error *error)
{
    due_redis_options options = { DUE_REDIS_OPTIONS_INIT, .answer_ns = DUE_S(2),
                                  .backoff_min_ns = DUE_MS(5), .backoff_max_ns = DUE_MS(50) };

    return due_redis_open(store, url, &options, error);
}

/* At @url, or in the file whose path that is. */
static inline int worker_store(due_store **store, const char *url, const char *flags,
                               due_error *error)
{
    return url[0] == '/' ? file_store(store, url, flags, error) : server_store(store, url, error);
}

#endif
