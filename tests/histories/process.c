/* process.c - a process of a history: it does anything, at random, and writes it down. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "due/redis.h"
#include "histories/histories.h"
#include "lab/crew.h"
#include "store/share_replay.h"
#include "store/share_steps.h"

/* ---- A clock that is wrong ------------------------------------------------------------------- */

static volatile int64_t *skew;

void history_skew(volatile int64_t *skew_ns)
{
    skew = skew_ns;
}

/* Stands before that of the C library, for this program and all that is linked into it. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, now);

    if (rc == 0 && clock == CLOCK_REALTIME && skew != NULL) {
        int64_t ns = DUE_S(now->tv_sec) + now->tv_nsec + *skew;
        now->tv_sec = (time_t)(ns / DUE_S(1));
        now->tv_nsec = (long)(ns % DUE_S(1));
    }
    return rc;
}

/* ---- The store ------------------------------------------------------------------------------- */

static char url[160];

static due_store *make(void *ctx)
{
    due_redis_options options = { DUE_REDIS_OPTIONS_INIT, .connect_ns = DUE_MS(500),
                                  .answer_ns = DUE_MS(400), .backoff_min_ns = DUE_MS(1),
                                  .backoff_max_ns = DUE_MS(20) };
    due_store *store = NULL;
    due_error error = { .text = "" };
    int rc = due_redis_open(&store, url, &options, &error);

    (void)ctx;
    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return store;
}

/* Time goes by itself; there is less of it between two steps than a history in memory has. */
static void pass(void *ctx, int64_t ns)
{
    (void)ctx;
    crew_sleep(ns / 3);
}

static const struct share_maker maker = {
    .store = { .name = "redis store", .make = make, .grain_ns = 1000 },
    .one_time = true,
    .pass = pass
};

static struct history_control *control;
static volatile uint64_t *own_writer; /* NULL: nobody asks who it is */

static void heard_late(struct sharing *t)
{
    int64_t end_ns = suite_soon();

    while (!history_remember(control->server, t->base.info[0].writer, true, 0, t->answer.stamp,
                             t->replay->log) &&
           suite_now_ns() < end_ns)
        crew_sleep(DUE_MS(2));
}

static bool be_one(struct sharing *t)
{
    int64_t end_ns = suite_soon();
    int rc;

    do
        rc = sharing_join(t, 0);
    while ((rc == DUE_EAGAIN || rc == DUE_ESTORE) && suite_now_ns() < end_ns);
    if (!suite_answers(&t->base, rc, 0, __FILE__, __LINE__, "join")) {
        printf("  %s\n", t->base.error.text);
        return false;
    }
    replay_log_line(t->replay->log, "join %llu\n", (unsigned long long)t->base.info[0].writer);
    if (own_writer != NULL)
        *own_writer = t->base.info[0].writer;
    return true;
}

/* Rings are heard, sometimes, and it says that it lives. */
static void live(struct sharing *t)
{
    const struct due_shared_verbs *verbs = sharing_verbs(t, 0);
    struct due_beat beat = { .waits_room = (int)suite_below(&t->base, 2) };
    struct due_heard heard;
    int64_t soon_ns = suite_now_ns() + DUE_MS((int64_t)suite_below(&t->base, 4));

    if (suite_below(&t->base, 30) == 0) {
        int rc = verbs->beat(t->base.stores[0], &beat, suite_soon());

        t->lost |= rc == DUE_ELOST;
        t->fenced |= rc == DUE_EFENCED;
    } else if (suite_below(&t->base, 40) == 0)
        t->heard_ns = 0; /* it asks for the time */
    else if (suite_below(&t->base, 12) == 0)
        (void)verbs->listen(t->base.stores[0], &heard, soon_ns);
}

static int run(struct sharing *t, int index)
{
    struct stepping p = { .n = 0 };

    while (!control->stop) {
        if (!t->lost)
            live(t);
        if (!t->lost && !t->fenced && !share_step(t, &p, 1) && !t->lost && !t->fenced)
            return 1;
        if (t->fenced)
            return HISTORY_FENCED;
        if (t->lost) {
            p.n = 0;
            t->mark_len = 0;
            t->lost = false;
            control->lost[index]++;
            if (!be_one(t))
                return 1;
        }
        control->steps[index]++;
    }
    return 0;
}

bool history_join(struct sharing *t, struct replay *log, const char *at,
                  struct history_control *shared)
{
    control = shared;
    snprintf(url, sizeof url, "%s", at);
    sharing_begin(t, &maker, "a process of a history");
    snprintf(t->base.queue, sizeof t->base.queue, HISTORY_QUEUE);
    t->replay = log;
    t->heard_late = heard_late;
    t->own_time = true;
    t->capacity = control->capacity;
    t->by_rank = control->by_rank != 0;
    return be_one(t);
}

int history_process(const char *folder, int index, unsigned life)
{
    static struct sharing t;
    static struct replay log;
    char path[256];
    char at[200];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct history_control *shared = history_control_map(folder, false);
    history_skew(&shared->skew_ns[index]);
    own_writer = &shared->writer[index];
    snprintf(path, sizeof path, "%s/process-%d-%u.log", folder, index, life);
    snprintf(at, sizeof at, "unix://due:canary@%s/proxy-%d", folder, index);
    crew_watchdog("histories", 280);
    log.log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CREW_CHECK(log.log > 0, ": %s", path);
    int rc = history_join(&t, &log, at, shared) ? 0 : 1;
    t.base.random = control->seed + 1000 * (uint64_t)index + life;
    t.may_lose = true;
    t.long_len = 20000;
    rc = rc == 0 ? run(&t, index) : rc;
    t.replay = NULL;
    if (rc == 0 && suite_below(&t.base, 2) == 0)
        sharing_vanish(&t, 0);
    sharing_end(&t);
    replay_free(&log);
    fflush(stdout);
    return rc;
}
