/* redis_workers.c - a pool over a queue with a store: what was acked is gone, what was not comes
 * again, also when a handler takes its whole process with it; and that as often as it may, however
 * its attempts end.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/crew.h"
#include "due/redis.h"
#include "due/workers.h"
#include "lab/redis/redis_server.h"

enum { JOBS = 3000, DEADLY = 7 };

struct world {
    atomic_uint done;
    atomic_uint again; /* handed out for the second time */
    atomic_uchar seen[JOBS];
    bool crashes; /* the handler of the deadly job does */
};

static due_queue *open_with(const struct redis_server *server, const due_retry *retry)
{
    due_options options = { DUE_OPTIONS_INIT, .name = "pool", .retry = *retry };
    due_error error = { "", "" };
    due_queue *q;
    int rc = due_redis_open(&options.store, server->url, NULL, &error);

    CREW_CHECK(rc == 0, ": %s", error.text);
    rc = due_open(&q, &options, &error);
    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return q;
}

static due_queue *open_queue(const struct redis_server *server)
{
    return open_with(server, &(due_retry){ .kind = DUE_RETRY_INHERIT });
}

/* The jobs of these numbers.  @ids, unless NULL, gets theirs. */
static void put(due_queue *q, uint32_t first, uint32_t end, due_id *ids)
{
    for (uint32_t at = first; at < end;) {
        due_spec specs[100];
        uint32_t numbers[100];
        size_t n = 0;

        for (; n < 100 && at + n < end; n++) {
            numbers[n] = at + (uint32_t)n;
            specs[n] = (due_spec){ DUE_SPEC_INIT, .data = &numbers[n], .len = sizeof numbers[n] };
        }
        int rc = due_enqueue_batch(q, specs, n, DUE_FOREVER, ids != NULL ? ids + at : NULL);
        CREW_CHECK(rc > 0, ": %s", due_error_name(rc));
        at += (uint32_t)rc;
    }
}

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    struct world *w = ctx;
    uint32_t number;

    memcpy(&number, job->data, sizeof number);
    if (w->crashes && number == DEADLY)
        raise(SIGKILL);
    if (job->attempts == 1 && number % 50 == 1) {
        *answer = due_answer_nack(DUE_MS(1));
        return;
    }
    atomic_fetch_add(&w->again, job->attempts > 1);
    unsigned before = atomic_fetch_add(&w->seen[number], 1);
    CREW_CHECK(before == 0, ": job %u was done %u times", number, before + 1);
    atomic_fetch_add(&w->done, 1);
    *answer = due_answer_ack();
}

static due_workers *start_with(due_queue *q, size_t threads, due_handler *handler, void *ctx,
                               const due_workers_options *options)
{
    due_workers *pool;
    int rc = due_workers_start(&pool, q, NULL, 0, threads, handler, ctx, options);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return pool;
}

static due_workers *start(due_queue *q, struct world *w, size_t threads)
{
    return start_with(q, threads, handle, w, NULL);
}

static void end(due_queue *q, due_workers *pool, enum due_close_mode mode)
{
    int rc = due_workers_stop(pool, mode == DUE_CLOSE_DRAIN ? 0 : DUE_FOREVER);

    CREW_CHECK(rc == 0 || rc == DUE_EAGAIN, ": %s", due_error_name(rc));
    rc = due_close(q, mode, DUE_S(60));
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_workers_free(pool);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_free(q);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

static uint64_t stored(const struct redis_server *server)
{
    char answer[64];
    long n = redis_server_ask(server, (const char *const[]){ "HLEN", "due:{pool}:j", NULL }, answer,
                              sizeof answer);

    CREW_CHECK(n > 1 && answer[0] == ':', ": %s", answer);
    return strtoull(answer + 1, NULL, 10);
}

/* Every job once; those that are tried again too; and then the store is empty. */
static void all_are_done(const struct redis_server *server)
{
    struct world w = { .crashes = false };
    due_queue *q = open_queue(server);
    due_workers *pool = start(q, &w, 4);

    crew_doing("all are done");
    put(q, 0, JOBS, NULL);
    while (atomic_load(&w.done) < JOBS)
        crew_sleep(100000);
    CREW_CHECK(atomic_load(&w.again) == JOBS / 50, ": %u", atomic_load(&w.again));
    end(q, pool, DUE_CLOSE_DISCARD);
    CREW_CHECK(stored(server) == 0, ": %llu", (unsigned long long)stored(server));
}

/* Stopped in the middle: what was not begun stays in the store, and no attempt of it counts. */
static void what_is_left_stays(const struct redis_server *server)
{
    struct world w = { .crashes = false };
    due_queue *q = open_queue(server);

    crew_doing("what is left stays");
    put(q, 0, JOBS, NULL);
    due_workers *pool = start(q, &w, 4);
    while (atomic_load(&w.done) < 100)
        crew_sleep(10000);
    end(q, pool, DUE_CLOSE_DISCARD);
    unsigned done = atomic_load(&w.done);
    CREW_CHECK(stored(server) == JOBS - done, ": %llu of %u", (unsigned long long)stored(server),
               JOBS - done);
    q = open_queue(server);
    pool = start(q, &w, 4);
    while (atomic_load(&w.done) < JOBS)
        crew_sleep(100000);
    end(q, pool, DUE_CLOSE_DISCARD);
    CREW_CHECK(stored(server) == 0, ": %llu", (unsigned long long)stored(server));
}

/* A child whose handler crashes; the job, and all others, come again. */
static void a_handler_crashes(const struct redis_server *server)
{
    static struct world w;
    int status;

    crew_doing("a handler crashes");
    memset(&w, 0, sizeof w);
    pid_t pid = fork();
    CREW_CHECK(pid >= 0, ": no child");
    if (pid == 0) {
        w.crashes = true;
        due_queue *q = open_queue(server);
        put(q, 0, 20, NULL);
        (void)start(q, &w, 2);
        for (;;)
            pause();
    }
    CREW_CHECK(waitpid(pid, &status, 0) == pid, ": no such child");
    CREW_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, ": %d", status);
    uint64_t left = stored(server);
    CREW_CHECK(left >= 1 && left <= 20, ": %llu", (unsigned long long)left);
    due_queue *q = open_queue(server);
    due_workers *pool = start(q, &w, 2);
    while (atomic_load(&w.done) < left)
        crew_sleep(100000);
    CREW_CHECK(atomic_load(&w.seen[DEADLY]) == 1, ": the deadly job is lost");
    end(q, pool, DUE_CLOSE_DISCARD);
    CREW_CHECK(stored(server) == 0, ": %llu", (unsigned long long)stored(server));
}

/* ---- Three attempts, whatever becomes of them ---- */

enum kind { FAILS, KILLS, OVERRUNS, SLEEPS };
enum { LIMIT = 3, EACH = 6, GROUP = 8, MIXED = GROUP * EACH };

/* Longer than a busy machine holds up who sleeps; it is waited for EACH * LIMIT times. */
#define SHORT_LEASE DUE_MS(150)

static const due_retry limited = { .kind = DUE_RETRY_FIXED,
                                   .attempts_max = LIMIT,
                                   .delay_ns = DUE_MS(1) };

/* Shared by all the processes: how often each handler was begun, and said that it was done. */
struct fates {
    atomic_uint begun[MIXED];
    atomic_uint done[MIXED];
    due_id id[MIXED];
    bool exact; /* one thread that fetches nothing ahead: nobody is hit by the death of another */
};

/* One of each kind in a group of eight, and five more that sleep. */
static enum kind kind_of(uint32_t number)
{
    return number % GROUP < SLEEPS ? (enum kind)(number % GROUP) : SLEEPS;
}

static void meet(void *ctx, const due_job *job, due_answer *answer)
{
    struct fates *f = ctx;
    uint32_t number;

    memcpy(&number, job->data, sizeof number);
    CREW_CHECK(number < MIXED, ": %u", number);
    unsigned begun = atomic_fetch_add(&f->begun[number], 1) + 1;
    CREW_CHECK(begun <= LIMIT, ": job %u was begun %u times", number, begun);
    CREW_CHECK(job->attempts <= LIMIT, ": attempt %u of job %u", job->attempts, number);
    CREW_CHECK(!f->exact || begun == job->attempts, ": job %u was begun %u times, and told %u",
               number, begun, job->attempts);
    switch (kind_of(number)) {
    case KILLS:
        raise(SIGKILL);
        break;
    case OVERRUNS:
        while (!due_job_stopping(job))
            crew_sleep(DUE_MS(1));
        *answer = due_answer_ack(); /* too late */
        return;
    case FAILS:
        *answer = due_answer_nack(DUE_DELAY_POLICY);
        return;
    default:
        break;
    }
    crew_sleep(DUE_MS(2));
    atomic_fetch_add(&f->done[number], 1);
    *answer = due_answer_ack();
}

/* A child: handles jobs until none is left but dead ones, unless it is killed before. */
static void live(const struct redis_server *server, struct fates *f, size_t threads)
{
    due_workers_options o = { DUE_WORKERS_INIT, .lease_ns = SHORT_LEASE,
                              .extend_max_ns = SHORT_LEASE, .in_flight_max = f->exact ? 1 : 0 };
    struct due_stats s;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    crew_watchdog("redis_workers, a child", 60);
    due_queue *q = open_with(server, &limited);
    due_workers *pool = start_with(q, threads, meet, f, &o);
    do {
        crew_sleep(DUE_MS(1));
        CREW_CHECK(due_stats_read(q, &s) == 0, " is not so");
    } while (s.loading || s.dead + s.acked < s.restored);
    end(q, pool, DUE_CLOSE_DISCARD);
    _exit(0);
}

/* False: it was killed. */
static bool lived(const struct redis_server *server, struct fates *f, size_t threads)
{
    int status;
    pid_t pid = fork();

    CREW_CHECK(pid >= 0, ": no child");
    if (pid == 0)
        live(server, f, threads);
    CREW_CHECK(waitpid(pid, &status, 0) == pid, ": no such child");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return false;
    CREW_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, ": %d", status);
    return true;
}

/* Which jobs are dead; each is one of ours, and has used its attempts up. */
static unsigned note_dead(due_queue *q, const struct fates *f, bool dead[MIXED])
{
    due_dead found[MIXED];
    uint64_t cursor = 0;
    unsigned n = 0;
    struct due_stats s;
    int rc;

    do
        CREW_CHECK(due_stats_read(q, &s) == 0, " is not so");
    while (s.loading);
    memset(dead, 0, MIXED * sizeof *dead);
    while ((rc = due_list_dead(q, &cursor, found, MIXED)) > 0) {
        for (int i = 0; i < rc; i++, n++) {
            uint32_t number = 0;

            while (number < MIXED && !due_id_equal(f->id[number], found[i].id))
                number++;
            CREW_CHECK(number < MIXED && !dead[number], ": nobody's, or dead twice");
            CREW_CHECK(found[i].cause == DUE_CAUSE_ATTEMPTS, ": %d", (int)found[i].cause);
            CREW_CHECK(found[i].attempts == LIMIT, ": job %u after %u", number, found[i].attempts);
            dead[number] = true;
        }
    }
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return n;
}

static void check_fates(const struct fates *f, const bool dead[MIXED])
{
    for (uint32_t i = 0; i < MIXED; i++) {
        enum kind kind = kind_of(i);
        unsigned begun = atomic_load(&f->begun[i]);

        CREW_CHECK(begun <= LIMIT, ": job %u was begun %u times", i, begun);
        CREW_CHECK(dead[i] || atomic_load(&f->done[i]) > 0, ": job %u is lost", i);
        CREW_CHECK(dead[i] || kind == SLEEPS, ": job %u of kind %d is not dead", i, (int)kind);
        if (!f->exact)
            continue;
        CREW_CHECK(!dead[i] || kind != SLEEPS, ": job %u is dead", i);
        CREW_CHECK(begun == LIMIT || kind == SLEEPS, ": job %u was begun %u times", i, begun);
    }
}

/* Handlers that sleep, fail, kill their process, or take longer than they may, in processes that
 * are started again until there is nothing left to do. */
static void each_has_its_attempts(const struct redis_server *server, size_t threads)
{
    struct fates *f =
        mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool dead[MIXED];
    unsigned killed = 0;

    crew_doing(threads == 1 ? "each has its attempts" : "each has its attempts, among others");
    CREW_CHECK(f != MAP_FAILED, ": no memory");
    f->exact = threads == 1;
    due_queue *q = open_with(server, &limited);
    put(q, 0, MIXED, f->id);
    CREW_CHECK(due_close(q, DUE_CLOSE_DISCARD, DUE_S(60)) == 0 && due_free(q) == 0, " is not so");
    while (!lived(server, f, threads)) {
        killed++;
        CREW_CHECK(killed <= EACH * LIMIT, ": a job kills too often");
    }
    CREW_CHECK(!f->exact || killed == EACH * LIMIT, ": only %u", killed);
    q = open_with(server, &limited);
    unsigned n = note_dead(q, f, dead);
    check_fates(f, dead);
    CREW_CHECK(stored(server) == n, ": %llu, not %u", (unsigned long long)stored(server), n);
    CREW_CHECK(due_clear_dead(q, DUE_ALL_TOPICS, NULL) == 0, " is not so");
    CREW_CHECK(due_close(q, DUE_CLOSE_DISCARD, DUE_S(60)) == 0 && due_free(q) == 0, " is not so");
    CREW_CHECK(stored(server) == 0, ": %llu", (unsigned long long)stored(server));
    printf("redis_workers: %zu threads: %d jobs, %u of them dead, %u processes killed\n", threads,
           MIXED, n, killed);
    munmap(f, sizeof *f);
}

int main(void)
{
    struct redis_server server;
    int rc = redis_server_start(&server, (const char *const[]){ NULL });

    if (rc == REDIS_SERVER_MISSING)
        return 77;
    if (rc != 0)
        return 1;
    crew_watchdog("redis_workers", 280);
    all_are_done(&server);
    what_is_left_stays(&server);
    a_handler_crashes(&server);
    each_has_its_attempts(&server, 1);
    each_has_its_attempts(&server, 4);
    redis_server_stop(&server);
    printf("redis_workers: all of them\n");
    return 0;
}
