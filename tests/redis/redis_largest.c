/* redis_largest.c - the largest job that a Redis takes goes there and comes back, byte for byte.
 *
 * Answers 77 where there is not the memory for it: some four gibibytes in all.  It takes as long
 * as the machine takes to find them, page by page: eight seconds on a quiet one, minutes on a busy
 * one.  So nothing here is in a hurry: only the watchdog ends it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/crew.h"
#include "due/redis.h"
#include "lab/redis/redis_server.h"
#include "lab/take.h"

#define LARGEST    (((size_t)512 << 20) - 2048) /* a string of a server is at most 512 MiB */
#define NEED_KB    (6l << 20)
#define PATIENCE_S 850 /* less than CTest's for this test */

static long available_kb(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    long kb = 0;

    while (file != NULL && kb == 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "MemAvailable:", 13) == 0)
            kb = strtol(line + 13, NULL, 10);
    if (file != NULL)
        fclose(file);
    return kb;
}

static due_queue *open_it(const struct redis_server *server)
{
    due_options options = { DUE_OPTIONS_INIT, .name = "largest",
                            .store_timeout_ns = DUE_S(PATIENCE_S) };
    due_error error = { .text = "" };
    due_queue *q;
    int rc = due_redis_open(&options.store, server->url, NULL, &error);

    CREW_CHECK(rc == 0, ": %s", error.text);
    rc = due_open(&q, &options, &error);
    CREW_CHECK(rc == 0, ": %s", error.text);
    return q;
}

static void leave(due_queue *q)
{
    CREW_CHECK(due_close(q, DUE_CLOSE_DISCARD, DUE_FOREVER) == 0, "");
    CREW_CHECK(due_free(q) == 0, "");
}

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static void put(const struct redis_server *server)
{
    unsigned char *bytes = malloc((size_t)512 << 20);
    due_queue *q = open_it(server);

    CREW_CHECK(bytes != NULL, "");
    for (size_t i = 0; i < LARGEST; i++)
        bytes[i] = byte_at(i);
    due_spec spec = { DUE_SPEC_INIT, .data = bytes, .len = LARGEST };
    int rc = due_enqueue(q, &spec, 0, NULL);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    spec.len = (size_t)512 << 20;
    rc = due_enqueue(q, &spec, 0, NULL);
    CREW_CHECK(rc == DUE_ELIMIT, ": one that no server takes: %s", due_error_name(rc));
    free(bytes);
    leave(q);
}

static void take(const struct redis_server *server)
{
    due_queue *q = open_it(server);
    due_job job;
    int rc = take_leased(q, &job, DUE_S(600), DUE_FOREVER);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    CREW_CHECK(job.len == LARGEST, ": %zu bytes", job.len);
    for (size_t i = 0; i < LARGEST; i++)
        CREW_CHECK(((const unsigned char *)job.data)[i] == byte_at(i), ": byte %zu", i);
    rc = due_ack(&job);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    leave(q);
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 77; /* a thousand million checked bytes take minutes */
#endif
    static struct redis_server server;

    if (available_kb() < NEED_KB) {
        printf("redis_largest: not enough memory to try\n");
        return 77;
    }
    int rc = redis_server_start(&server, NULL);
    if (rc == REDIS_SERVER_MISSING)
        return 77;
    CREW_CHECK(rc == 0, ": the server does not start");
    crew_watchdog("redis_largest", PATIENCE_S);
    put(&server);
    take(&server);
    redis_server_stop(&server);
    printf("redis_largest: %zu bytes\n", LARGEST);
    return 0;
}
