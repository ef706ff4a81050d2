/* crew.c - threads that call a queue, and the frame of the programs that are made of them. */
#define _GNU_SOURCE
#include "lab/crew.h"
#include "lab/take.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

const char *const crew_mode_names[3] = { "adaptive", "always", "never" };

/* ---- The program ---- */

static char watched[128];
static _Atomic(unsigned) patience; /* seconds; 0: nothing is watched */
static _Atomic(const char *) doing = "starting";

static void write_text(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));

    (void)ignored;
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
    write_text(watched);
    write_text(": hangs; it was ");
    write_text(atomic_load(&doing));
    write_text("\n");
    _exit(1);
}

void crew_watchdog(const char *program, unsigned seconds)
{
    struct sigaction action = { .sa_handler = on_alarm };

    snprintf(watched, sizeof watched, "%s", program);
    sigaction(SIGALRM, &action, NULL);
    atomic_store(&patience, seconds);
    alarm(seconds);
}

void crew_doing(const char *what)
{
    atomic_store(&doing, what);
    alarm(atomic_load(&patience));
}

struct crew_options crew_options(int argc, char **argv, double seconds)
{
    struct crew_options o = { .seed = 1 };

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--seed") == 0)
            o.seed = strtoull(argv[i + 1], NULL, 10);
    }
    o.ns = (int64_t)(seconds * 1e9);
    crew_watchdog(argv[0], (unsigned)(seconds * 8) + 60);
    return o;
}

void crew_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s:%d: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (while %s)\n", atomic_load(&doing));
    fflush(stdout);
    _exit(1);
}

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t crew_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t crew_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void crew_sleep(int64_t ns)
{
    struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = (long)(ns % 1000000000) };

    while (nanosleep(&t, &t) != 0)
        ;
}

uint64_t crew_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 32) * UINT64_C(0xd6e8feb86659fd93);
    z = (z ^ z >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return z ^ z >> 32;
}

uint64_t crew_below(uint64_t *state, uint64_t n)
{
    return crew_random(state) % n;
}

due_queue *crew_open(const due_options *options)
{
    due_error error;
    due_queue *q;
    int rc = due_open(&q, options, &error);

    CREW_CHECK(rc == 0, ": %s: %s", due_error_name(rc), error.text);
    return q;
}

void crew_close(due_queue *q, enum due_close_mode mode)
{
    struct due_stats s;
    int rc = due_close(q, mode, DUE_FOREVER);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_stats_read(q, &s);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    CREW_CHECK(s.enqueued == s.dequeued + s.cancelled + s.discarded + s.acked,
               ": enqueued %llu dequeued %llu cancelled %llu discarded %llu acked %llu",
               (unsigned long long)s.enqueued, (unsigned long long)s.dequeued,
               (unsigned long long)s.cancelled, (unsigned long long)s.discarded,
               (unsigned long long)s.acked);
    CREW_CHECK(s.waiting == 0, ": %llu", (unsigned long long)s.waiting);
    CREW_CHECK(s.lent == 0, ": %llu", (unsigned long long)s.lent);
    CREW_CHECK(s.mended == 0, ": %llu", (unsigned long long)s.mended);
    rc = due_free(q);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
}

/* ---- What the kernel says of a thread ---- */

/* Its state ('R', 'S', ...) and how often it went to sleep; 0 when there is no such thread. */
static char look_at(int tid, uint64_t *switches)
{
    char path[64];
    char line[160];
    char state = 0;
    unsigned long long count = 0;

    snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return 0;
    while (fgets(line, sizeof line, f) != NULL) {
        sscanf(line, "State: %c", &state);
        sscanf(line, "voluntary_ctxt_switches: %llu", &count);
    }
    fclose(f);
    *switches = count;
    return state;
}

/* Calls of look_at() for all threads: their number, the sum of their switches, and how many are not
 * asleep. */
static unsigned look_at_all(uint64_t *switches, unsigned *awake)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    unsigned threads = 0;

    *switches = 0;
    *awake = 0;
    if (tasks == NULL)
        return 0;
    while ((task = readdir(tasks)) != NULL) {
        uint64_t own = 0;
        char state = task->d_name[0] != '.' ? look_at(atoi(task->d_name), &own) : 0;

        if (state != 0) {
            threads++;
            *switches += own;
            *awake += state != 'S';
        }
    }
    closedir(tasks);
    return threads;
}

uint64_t crew_switches(void)
{
    uint64_t switches;
    unsigned awake;

    look_at_all(&switches, &awake);
    return switches;
}

unsigned crew_threads(void)
{
    uint64_t switches;
    unsigned awake;

    return look_at_all(&switches, &awake);
}

/* ---- A thread ---- */

static void *run_thread(void *arg)
{
    struct crew_thread *t = arg;

    atomic_store(&t->tid, (int)syscall(SYS_gettid));
    t->rc = t->run(t->arg);
    atomic_store(&t->back, true);
    return NULL;
}

void crew_go(struct crew_thread *t, int (*run)(void *arg), void *arg)
{
    atomic_init(&t->tid, 0);
    atomic_init(&t->back, false);
    t->run = run;
    t->arg = arg;
    if (pthread_create(&t->id, NULL, run_thread, t) != 0)
        crew_fail(__FILE__, __LINE__, "no thread to be had");
}

int crew_join(struct crew_thread *t)
{
    pthread_join(t->id, NULL);
    return t->rc;
}

/* A thread that has been seen asleep this often without having been awake between is parked, not
 * just held up by a lock.  Who waits for the owner of a lock's bias wakes 20,000 times a second to
 * look; whoever has been seen asleep so much more often in all waits for one who does not move. */
#define SEEN_ASLEEP     20
#define SEEN_ASLEEP_ALL 2000

void crew_until_asleep(struct crew_thread *t)
{
    uint64_t last = 0;
    unsigned seen = 0;
    unsigned all = 0;

    while (seen < SEEN_ASLEEP && all < SEEN_ASLEEP_ALL && !atomic_load(&t->back)) {
        int tid = atomic_load(&t->tid);
        uint64_t switches = 0;
        bool asleep = tid != 0 && look_at(tid, &switches) == 'S';

        seen = asleep && switches == last ? seen + 1 : 0;
        all += asleep;
        last = switches;
        sched_yield();
    }
}

void crew_until_all_asleep(struct crew_thread *const *t, unsigned n)
{
    uint64_t last[16] = { 0 };
    unsigned all = 0;

    for (unsigned seen = 0; seen < SEEN_ASLEEP && all < SEEN_ASLEEP_ALL; seen++) {
        unsigned asleep = 0;

        for (unsigned i = 0; i < n; i++) {
            int tid = atomic_load(&t[i]->tid);
            uint64_t switches = last[i];
            bool is = atomic_load(&t[i]->back) || (tid != 0 && look_at(tid, &switches) == 'S');

            if (!is || switches != last[i])
                seen = 0;
            asleep += is;
            last[i] = switches;
        }
        all += asleep == n;
        sched_yield();
    }
}

void crew_until_others_asleep(void)
{
    uint64_t last = 0;
    unsigned all = 0;

    for (unsigned seen = 0; seen < SEEN_ASLEEP && all < SEEN_ASLEEP_ALL; seen++) {
        uint64_t switches;
        unsigned awake;

        look_at_all(&switches, &awake);
        if (awake > 1 || switches != last) /* we are awake */
            seen = 0;
        all += awake <= 1;
        last = switches;
        sched_yield();
    }
}

/* ---- A thread that makes one call ---- */

static int run_dequeue(void *arg)
{
    struct crew_call *c = arg;

    return due_dequeue(c->q, &c->job, c->timeout_ns);
}

static int run_dequeue_from(void *arg)
{
    struct crew_call *c = arg;

    return take_from(c->q, c->topics, c->n, &c->job, c->timeout_ns);
}

static int run_dequeue_batch(void *arg)
{
    struct crew_call *c = arg;

    return take_some(c->q, NULL, 0, &c->job, 1, c->timeout_ns);
}

static int run_reserve(void *arg)
{
    struct crew_call *c = arg;

    if (c->topics == NULL)
        return take_leased(c->q, &c->job, c->lease_ns, c->timeout_ns);
    return take_leased_from(c->q, c->topics, c->n, &c->job, c->lease_ns, c->timeout_ns);
}

static int run_reserve_batch(void *arg)
{
    struct crew_call *c = arg;

    return take_leased_some(c->q, c->topics, c->n, &c->job, 1, c->lease_ns, c->timeout_ns);
}

static int run_enqueue(void *arg)
{
    struct crew_call *c = arg;

    return due_enqueue(c->q, &c->spec, c->timeout_ns, NULL);
}

static int run_enqueue_batch(void *arg)
{
    struct crew_call *c = arg;

    return due_enqueue_batch(c->q, &c->spec, 1, c->timeout_ns, NULL);
}

static int run_close(void *arg)
{
    struct crew_call *c = arg;

    return due_close(c->q, c->mode, c->timeout_ns);
}

static int run_stop(void *arg)
{
    struct crew_call *c = arg;

    return due_workers_stop(c->pool, c->timeout_ns);
}

static void call(struct crew_call *c, due_queue *q, int64_t timeout_ns, int (*run)(void *))
{
    c->q = q;
    c->timeout_ns = timeout_ns;
    c->job.queue = NULL; /* nothing to be done with until a job is there */
    crew_go(&c->thread, run, c);
}

void crew_call_dequeue(struct crew_call *c, due_queue *q, int64_t timeout_ns)
{
    call(c, q, timeout_ns, run_dequeue);
}

void crew_call_dequeue_from(struct crew_call *c, due_queue *q, const int *topics, size_t n,
                            int64_t timeout_ns)
{
    c->topics = topics;
    c->n = n;
    call(c, q, timeout_ns, run_dequeue_from);
}

void crew_call_dequeue_batch(struct crew_call *c, due_queue *q, int64_t timeout_ns)
{
    call(c, q, timeout_ns, run_dequeue_batch);
}

static void call_reserve(struct crew_call *c, due_queue *q, const int *topics, size_t n,
                         int64_t lease_ns, int64_t timeout_ns, int (*run)(void *))
{
    c->topics = topics;
    c->n = n;
    c->lease_ns = lease_ns;
    call(c, q, timeout_ns, run);
}

void crew_call_reserve(struct crew_call *c, due_queue *q, const int *topics, size_t n,
                       int64_t lease_ns, int64_t timeout_ns)
{
    call_reserve(c, q, topics, n, lease_ns, timeout_ns, run_reserve);
}

void crew_call_reserve_batch(struct crew_call *c, due_queue *q, const int *topics, size_t n,
                             int64_t lease_ns, int64_t timeout_ns)
{
    call_reserve(c, q, topics, n, lease_ns, timeout_ns, run_reserve_batch);
}

static void call_copy(struct crew_call *c, const due_spec *spec)
{
    c->spec = *spec;
    if (spec->more == NULL)
        return;
    c->more = *spec->more;
    c->spec.more = &c->more;
}

void crew_call_enqueue(struct crew_call *c, due_queue *q, due_spec spec, int64_t timeout_ns)
{
    call_copy(c, &spec);
    call(c, q, timeout_ns, run_enqueue);
}

void crew_call_enqueue_batch(struct crew_call *c, due_queue *q, due_spec spec, int64_t timeout_ns)
{
    call_copy(c, &spec);
    call(c, q, timeout_ns, run_enqueue_batch);
}

void crew_call_close(struct crew_call *c, due_queue *q, enum due_close_mode mode,
                     int64_t timeout_ns)
{
    c->mode = mode;
    call(c, q, timeout_ns, run_close);
}

void crew_call_stop(struct crew_call *c, due_workers *pool, int64_t timeout_ns)
{
    c->pool = pool;
    call(c, NULL, timeout_ns, run_stop);
}

void crew_call_asleep(struct crew_call *c)
{
    crew_until_asleep(&c->thread);
}

int crew_call_answer(struct crew_call *c)
{
    return crew_join(&c->thread);
}
