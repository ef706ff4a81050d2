/* shell_and_c.c - jobs come from a shell script, by the command duectl, and are worked off in C.
 *
 * Both share one queue, so neither has to wait until the other has closed it: see shell_and_c.sh.
 *
 *     shell_and_c [URL]           such as unix:///run/redis/redis.sock, or $DUE_STORE_URL
 */
#include <due/due.h>
#include <due/redis.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : getenv("DUE_STORE_URL");
    due_options options = { DUE_OPTIONS_INIT, .name = "kitchen", .share = DUE_SHARED };
    bool open = true;
    due_error error;
    due_queue *q;
    due_job job;

    if (url == NULL)
        return 77;
    if (due_redis_open(&options.store, url, NULL, &error) != 0 ||
        due_open(&q, &options, &error) != 0) {
        fprintf(stderr, "%s %s\n", error.text, error.hint);
        due_redis_free(options.store);
        return 1;
    }
    while (open && due_reserve(q, &job, DUE_S(30)) == 0) {
        printf("served: %.*s\n", (int)job.len, (const char *)job.data);
        open = job.len != 8 || memcmp(job.data, "the bill", 8) != 0;
        if (due_ack(&job) != 0)
            return 1;
    }
    return open || due_close(q, DUE_CLOSE_DISCARD, DUE_S(5)) || due_free(q);
}
