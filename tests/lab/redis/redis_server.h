/* redis_server.h - a private redis-server for a test.
 *
 * It listens on a UNIX socket in a folder of its own, keeps nothing on disk unless it is asked to,
 * and is killed when the test ends, however it ends.  Nothing here needs a client library.
 *
 *     struct redis_server server;
 *     int rc = redis_server_start(&server, (const char *const[]){ "--maxmemory", "8mb", NULL });
 *     if (rc == REDIS_SERVER_MISSING)
 *         skip, or exit with 77
 *     ... due_redis_open(&store, server.url, NULL, NULL) ...
 *     redis_server_stop(&server);
 *
 * Threads  one; a server must be started by a thread that outlives it
 */
#ifndef REDIS_SERVER_H
#define REDIS_SERVER_H

#include <stddef.h>
#include <sys/types.h>

#define REDIS_SERVER_MISSING 77 /* redis-server is not installed */
#define REDIS_SERVER_OPTIONS 24 /* most words of options */

struct redis_server {
    char dir[64];     /* fresh; removed by redis_server_stop() */
    char socket[96];  /* DIR/redis.sock */
    char url[128];    /* unix://DIR/redis.sock */
    pid_t pid;        /* 0: does not run */
    size_t n_options; /* */
    char options[REDIS_SERVER_OPTIONS][160];
};

/* Start it, and wait until it answers.  @options: words for its command line, ended by NULL; they
 * are kept for redis_server_run().  0, REDIS_SERVER_MISSING, or -1 (a line on standard error). */
int redis_server_start(struct redis_server *s, const char *const *options);

/* Start it once more in the same folder, with the same options, after a kill or a halt. */
int redis_server_run(struct redis_server *s);

void redis_server_kill(struct redis_server *s); /* kill -9: what is not on disk is gone */
void redis_server_halt(struct redis_server *s); /* SIGTERM: it saves first, if it saves at all */
void redis_server_freeze(struct redis_server *s);
void redis_server_thaw(struct redis_server *s);
void redis_server_stop(struct redis_server *s); /* killed, and its folder removed */

/* Send one command of the words that end with NULL, on a connection of its own, and put the bytes
 * of the answer (of RESP, as many as there is room for) into @answer with a NUL behind them.
 * Answers their number, or -1. */
long redis_server_ask(const struct redis_server *s, const char *const *words, char *answer,
                      size_t room);

#endif
