/* load.c - jobs of one deadline, dequeued as fast as they are loaded, by three lives of a program.
 *
 *     crash_load [--full]      1,000,000 jobs instead of 100,000
 *
 * Each life takes a third of them, while it still reads the rest, and then dies.  Each job must
 * have come exactly once, and each life must have handed out some before it had read all.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/crew.h"
#include "due/redis.h"
#include "lab/redis/redis_server.h"
#include "lab/take.h"

#define THREADS 2
#define BATCH   100
#define LIVES   3

struct board {
    atomic_uint taken;   /* in all */
    atomic_uint loading; /* batches that came while jobs were still read */
    atomic_uchar times[];
};

static struct redis_server server;
static struct board *board;
static uint32_t jobs = 100000;
static uint32_t enough; /* this life ends when so many were taken in all */

static due_queue *open_it(void)
{
    due_redis_options redis = { DUE_REDIS_OPTIONS_INIT };
    due_options options = { DUE_OPTIONS_INIT, .name = "load" };
    due_queue *q = NULL;
    due_error error;

    CREW_CHECK(due_redis_open(&options.store, server.url, &redis, &error) == 0, "");
    int rc = due_open(&q, &options, &error);
    CREW_CHECK(rc == 0, ": %s", error.text);
    return q;
}

static void close_it(due_queue *q)
{
    CREW_CHECK(due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)) == 0, "");
    CREW_CHECK(due_free(q) == 0, "");
}

static void fill(void)
{
    due_queue *q = open_it();
    uint32_t numbers[BATCH];
    due_spec specs[BATCH];
    int64_t at = due_now(q) - 1;

    for (uint32_t n = 0; n < jobs; n += BATCH) {
        for (uint32_t i = 0; i < BATCH; i++) {
            numbers[i] = n + i;
            specs[i] = (due_spec){ DUE_SPEC_INIT, .at_ns = at, .data = &numbers[i],
                                   .len = sizeof numbers[i] };
        }
        CREW_CHECK(due_enqueue_batch(q, specs, BATCH, 0, NULL) == BATCH, "");
    }
    close_it(q);
}

static int take(void *arg)
{
    due_queue *q = arg;
    due_job got[BATCH];
    struct due_stats stats;

    while (atomic_load(&board->taken) < enough) {
        int n = take_some(q, NULL, 0, got, BATCH, DUE_MS(20));

        for (int i = 0; i < n; i++) {
            uint32_t number;

            CREW_CHECK(got[i].len == sizeof number, "");
            memcpy(&number, got[i].data, sizeof number);
            CREW_CHECK(number < jobs, "");
            atomic_fetch_add(&board->times[number], 1);
            due_job_done(&got[i]);
        }
        if (n > 0)
            atomic_fetch_add(&board->taken, (unsigned)n);
        CREW_CHECK(due_stats_read(q, &stats) == 0, "");
        atomic_fetch_add(&board->loading, stats.loading && n > 0);
        if (n <= 0 && !stats.loading && stats.waiting == 0)
            break;
    }
    return 0;
}

/* What a call that ran out of time has begun to take goes back. */
static void settle(due_queue *q)
{
    struct due_stats stats;

    do {
        CREW_CHECK(due_flush(q, DUE_S(20)) == 0, "");
        CREW_CHECK(due_stats_read(q, &stats) == 0, "");
    } while (stats.unsettled > 0);
}

/* It ends in a kill, when no call is under way, nor what one has begun. */
static void live(bool last)
{
    due_queue *q = open_it();
    struct crew_thread threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        crew_go(&threads[i], take, q);
    for (int i = 0; i < THREADS; i++)
        crew_join(&threads[i]);
    settle(q);
    if (!last)
        kill(getpid(), SIGKILL);
    close_it(q);
}

/* Were jobs handed out before all had been read? */
static bool run_life(int life)
{
    int status;
    uint32_t before = atomic_load(&board->taken);
    int64_t from_ns = crew_now_ns();

    atomic_store(&board->loading, 0);
    enough = life + 1 < LIVES ? jobs / LIVES * (uint32_t)(life + 1) : UINT32_MAX;
    fflush(stdout);
    pid_t pid = fork();
    CREW_CHECK(pid >= 0, "");
    if (pid == 0) {
        live(life + 1 == LIVES);
        _exit(0);
    }
    CREW_CHECK(waitpid(pid, &status, 0) == pid, "");
    CREW_CHECK(life + 1 < LIVES ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                : WIFEXITED(status) && WEXITSTATUS(status) == 0,
               "");
    printf("life %d: %u jobs in %.2f s, %u batches while it still loaded\n", life + 1,
           atomic_load(&board->taken) - before, (double)(crew_now_ns() - from_ns) / 1e9,
           atomic_load(&board->loading));
    return atomic_load(&board->loading) > 0;
}

static unsigned count_wrong(void)
{
    unsigned wrong = 0;

    for (uint32_t i = 0; i < jobs; i++) {
        unsigned times = atomic_load(&board->times[i]);

        if (times != 1 && wrong++ < 10)
            printf("  job %u came %u times\n", i, times);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--full") == 0)
        jobs = 1000000;
    int rc = redis_server_start(&server, NULL);
    if (rc == REDIS_SERVER_MISSING)
        return 77;
    CREW_CHECK(rc == 0, ": the server does not start");
    crew_watchdog("crash_load", 280);
    size_t bytes = sizeof *board + jobs;
    board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CREW_CHECK(board != MAP_FAILED, "");
    pid_t pid = fork(); /* so that this process has no threads */
    if (pid == 0) {
        fill();
        _exit(0);
    }
    CREW_CHECK(waitpid(pid, &rc, 0) == pid && rc == 0, "");
    int overlapped = 0;
    for (int life = 0; life < LIVES; life++)
        overlapped += run_life(life);
    unsigned wrong = count_wrong();
    printf("load: %u jobs, %u not exactly once; %d of %d lives dequeued while they loaded\n", jobs,
           wrong, overlapped, LIVES);
    munmap(board, bytes);
    redis_server_stop(&server);
    return wrong > 0 || overlapped < LIVES;
}
