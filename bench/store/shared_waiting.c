/* shared_waiting.c - processes that wait for jobs of a shared queue: how late they have them, what
 * they cost while nothing comes, and when the jobs of one that was killed come again.
 *
 * Each process is one, with a whole queue.  Server and processes share a clock, so a job that comes
 * early is seen.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "due/metrics.h"
#include "shared.h"

#define MANY  100
#define LEASE DUE_MS(300)

/* What a process says of a job that it has. */
struct seen {
    int64_t had_ns; /* by the clock of the machine, which is the server's */
    int64_t due_ns;
    pid_t pid;
};

static int told[2]; /* a pipe of them */
static pid_t child[MANY];
static int children;

static int64_t wall(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * DUE_S(1) + t.tv_nsec;
}

static void pass(int64_t ns)
{
    nanosleep(&(struct timespec){ ns / DUE_S(1), ns % DUE_S(1) }, NULL);
}

static due_queue *open_shared(void)
{
    due_options o = { DUE_OPTIONS_INIT, .name = "bench", .share = DUE_SHARED, .prefetch_max = 1 };
    due_error error;
    due_queue *q;

    o.store = bench_store_new(0);
    if (due_open(&q, &o, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return q;
}

/* It says what it has, and that it is done; or it keeps it. */
static void serve(bool keeps)
{
    due_queue *q = open_shared();
    due_take_options how = { DUE_TAKE_INIT, .lease_ns = LEASE };

    for (;;) {
        due_job job;

        must(due_take(q, &how, &job, 1, DUE_FOREVER));
        struct seen seen = { wall(), job.deadline_ns, getpid() };
        if (write(told[1], &seen, sizeof seen) != sizeof seen)
            exit(1);
        if (keeps)
            pause();
        must(due_ack(&job));
    }
}

static void start(int n, bool keeps)
{
    for (int i = 0; i < n; i++) {
        child[children] = fork();
        if (child[children++] == 0)
            serve(keeps);
    }
}

static void until_all_wait(due_queue *q)
{
    for (int n = -1; n != children;) {
        static due_process p[MANY + 1];
        uint64_t cursor = 0;

        int seen = due_processes(q, &cursor, p, MANY + 1, DUE_S(5));
        must(seen);
        n = 0;
        for (int i = 0; i < seen; i++)
            n += p[i].waits != 0;
        pass(DUE_MS(10));
    }
}

static void begin(void)
{
    children = 0;
    if (pipe(told) != 0)
        exit(1);
}

static void end(void)
{
    for (int i = 0; i < children; i++)
        kill(child[i], SIGKILL);
    for (int i = 0; i < children; i++)
        waitpid(child[i], NULL, 0);
    close(told[0]);
    close(told[1]);
    bench_store_empty();
}

static struct seen next_seen(void)
{
    struct seen seen;

    if (read(told[0], &seen, sizeof seen) != sizeof seen)
        exit(1);
    return seen;
}

static void put_in(due_queue *q, int64_t ns)
{
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = ns };

    must(due_enqueue(q, &spec, DUE_S(5), NULL));
}

/* ---- Late ---- */

/* One job after another, each for a time that is not the last one's. */
static void late_with(int n, const char *p50, const char *p99)
{
    size_t few = jobs >= 100000 ? 200 : 20;
    double *late = malloc(few * sizeof *late);

    begin();
    start(n, false); /* before this process has threads */
    due_queue *q = open_shared();
    until_all_wait(q);
    for (size_t i = 0; i < few; i++) {
        put_in(q, DUE_MS(10) + (int64_t)(i * 7919 % 1000) * DUE_US(10));
        struct seen seen = next_seen();
        late[i] = (double)(seen.had_ns - seen.due_ns) / 1e6;
        if (late[i] < 0) {
            fprintf(stderr, "a job is early by %g ms\n", -late[i]);
            exit(1);
        }
    }
    note(p50, "ms", percentile(late, few, 50), 0);
    note(p99, "ms", percentile(late, few, 99), 0);
    queue_close(q);
    end();
    free(late);
}

void run_late(void)
{
    late_with(1, "late, one process waits: p50", "late, one process waits: p99");
    late_with(MANY, "late, 100 processes wait: p50", "late, 100 processes wait: p99");
}

/* ---- Idle ---- */

/* What they have sent: scripts, and whether a connection lives. */
static double calls(void)
{
    return info_of("commandstats", "cmdstat_evalsha:calls=") +
           info_of("commandstats", "cmdstat_ping:calls=");
}

void run_idle(void)
{
    int64_t ns = jobs >= 100000 ? DUE_S(11) : DUE_MS(500);

    begin();
    start(MANY, false);
    due_queue *q = open_shared();
    until_all_wait(q);
    queue_close(q);
    pass(ns); /* those that came first say that they live when they were alone, once */
    double cpu = info_of("cpu", "used_cpu_sys:") + info_of("cpu", "used_cpu_user:");
    double before = calls();
    pass(ns);
    double commands = calls() - before;
    cpu = info_of("cpu", "used_cpu_sys:") + info_of("cpu", "used_cpu_user:") - cpu;
    note("idle, 100 processes wait", "commands/s", commands / ((double)ns / 1e9), 0);
    note("idle, 100 processes wait: server", "%", cpu / ((double)ns / 1e9) * 100, 0);
    end();
}

/* ---- Killed ---- */

/* One has a job and is killed at once: another has it when the lease is over. */
void run_kill(void)
{
    size_t few = jobs >= 100000 ? 20 : 2;
    double *late = malloc(few * sizeof *late);

    for (size_t i = 0; i < few; i++) {
        begin();
        start(3, true);
        due_queue *q = open_shared();
        until_all_wait(q);
        put_in(q, 0);
        struct seen held = next_seen();
        kill(held.pid, SIGKILL);
        struct seen again = next_seen();
        late[i] = (double)(again.had_ns - held.had_ns - LEASE) / 1e6;
        queue_close(q);
        end();
    }
    note("killed, its job again behind the lease: p50", "ms", percentile(late, few, 50), 0);
    note("killed, its job again behind the lease: p99", "ms", percentile(late, few, 99), 0);
    free(late);
}
