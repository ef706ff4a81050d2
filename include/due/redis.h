/* redis.h - the Redis store: a queue's jobs in a Redis (6.2 or later) or Valkey (7.2 or later).
 *
 * One queue owns its jobs there; its keys begin with "PREFIX:{NAME}:".  docs/redis-layout.md says
 * what lies where, docs/guarantees.md what is promised at each level of durability.
 *
 * A server takes payloads of up to 512 MiB, or its proto-max-bulk-len, less
 * 2 KiB for what goes with them: DUE_ELIMIT.  Where CONFIG is forbidden 512 MiB are assumed.
 *
 * What is stored is as safe as the server keeps it.  A server in Debian's own configuration loses
 * everything when it is killed: see due_redis_options.require.
 */
#ifndef DUE_REDIS_H
#define DUE_REDIS_H

#include "due/due.h"
#include "due/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How to reach and use the server.  Zero means default. */
typedef struct due_redis_options {
    size_t size;                 /* DUE_REDIS_OPTIONS_INIT */
    const char *prefix;          /* of every key, 1 to 32 of [A-Za-z0-9._-]; default "due" */
    const char *client_name;     /* shown by CLIENT LIST; default "due" */
    int64_t connect_ns;          /* for a connection and its greeting; 5 s */
    int64_t answer_ns;           /* for an answer, or for each 64 KiB of a long one, before the
                                    connection is given up; 5 s */
    int64_t spin_ns;             /* wait for the answer to 1 KiB or less so long without sleeping;
                                    costs CPU time; 0 */
    int64_t backoff_min_ns;      /* pause after a failed connection; 50 ms, then doubled */
    int64_t backoff_max_ns;      /* 5 s */
    int64_t lease_ns;            /* for how long an owner that went silent stays it; 10 s */
    enum due_durability require; /* refuse less: DUE_EDURABILITY; default: anything */
    enum due_durability assume;  /* what to take it for if the server does not say */
    int wait_replicas;           /* confirm only what so many replicas have; 0 */
    int64_t wait_replicas_ns;    /* for so long, then DUE_EINDOUBT; 1 s */
    int standby;                 /* 1: wait without end for the owner to go */
    int allow_eviction;          /* 1: open although the server may evict keys */
    size_t batch_changes;        /* most changes of one batch; 256, or 1,024 if each is synced */
    size_t batch_bytes;          /* 16 MiB */
    uint32_t reserved[16];       /* zero */
} due_redis_options;

#define DUE_REDIS_OPTIONS_INIT .size = sizeof(due_redis_options)

/**
 * A store on the server at @url, for due_options.store.  Nothing is connected yet.
 *
 *     redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]
 *     unix://[[USER]:PASSWORD@]/PATH/TO/SOCKET[?db=DB]
 *
 * There is no TLS: rediss:// is refused, not taken for redis://.  A tunnel on this machine, such as
 * stunnel, has it; then the URL is that of the tunnel's own end, best a socket and unix://.
 *
 * Parts of a URL that hold other than letters, digits and "-._~" are percent-encoded.
 *
 * Threads:  any
 * Owner:    the caller, until a due_open() that succeeds: from then on the queue
 * Errors:   DUE_EINVAL, DUE_ENOTSUP (rediss, redis-sentinel, redis-cluster, or an
 *           option of a newer version), DUE_ENOMEM; *@store is
 *           NULL then, and @error, unless NULL, says what is wrong, never with the password
 */
DUE_API int due_redis_open(due_store **store, const char *url, const due_redis_options *options,
                           due_error *error) DUE_NONNULL(1, 2) DUE_MUST_CHECK;

/**
 * Free a store that no queue took over.  NULL is allowed.
 *
 * Threads:  one
 * Errors:   none
 */
DUE_API void due_redis_free(due_store *store);

#ifdef __cplusplus
}
#endif

#endif
