/* threads.c - the threads of a cell, their common start, and what they cost. */
#define _GNU_SOURCE /* sched_setaffinity() */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cell.h"

enum { MOST_THREADS = 1024 };

static void *sleep_for_good(void *arg)
{
    for (;;)
        pause();
    return arg;
}

void cell_idle_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, sleep_for_good, NULL) != 0)
        cell_die(CELL_WRONG, "the system refused a thread");
    pthread_detach(thread);
}

void cell_prepare(struct cell *c, unsigned threads)
{
    size_t batch = c->o.batch > 0 ? c->o.batch : 1;

    if (threads == 0 || threads > MOST_THREADS)
        cell_die(CELL_USAGE, "between 1 and %d threads, not %u", MOST_THREADS, threads);
    c->thread_count = threads;
    c->threads = cell_alloc(threads, sizeof *c->threads);
    for (unsigned i = 0; i < threads; i++) {
        struct cell_thread *t = &c->threads[i];

        t->cell = c;
        t->index = i;
        t->producer = i;
        t->jobs = cell_alloc(batch, sizeof *t->jobs);
        t->bytes = cell_alloc(batch, c->o.payload + 1);
    }
}

/* Processor time and context switches of the process: added when a measured part ends, taken off
 * when it begins. */
static void account(struct cell *c, int sign)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    c->cpu_s += sign * ((double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6 +
                        (double)u.ru_stime.tv_sec + (double)u.ru_stime.tv_usec / 1e6);
    c->voluntary += sign * u.ru_nvcsw;
    c->involuntary += sign * u.ru_nivcsw;
}

void cell_begin(struct cell *c)
{
    account(c, -1);
    c->wall_s -= (double)bench_clock_real() / 1e9;
}

void cell_end(struct cell *c)
{
    c->wall_s += (double)bench_clock_real() / 1e9;
    account(c, 1);
}

struct start {
    struct cell_thread *thread;
    void (*body)(struct cell_thread *t);
};

static void *start(void *arg)
{
    struct start s = *(struct start *)arg;
    struct cell *c = s.thread->cell;

    pthread_barrier_wait(&c->barrier); /* all are there */
    pthread_barrier_wait(&c->barrier); /* the usage before has been taken */
    s.thread->start_ns = bench_clock_real();
    s.body(s.thread);
    if (s.thread->end_ns == 0)
        s.thread->end_ns = bench_clock_real();
    pthread_barrier_wait(&c->barrier); /* the usage after has been taken when all may leave */
    return NULL;
}

/* From the first start to the last end. */
static void measure_span(struct cell *c)
{
    int64_t first = INT64_MAX;
    int64_t last = 0;

    for (unsigned i = 0; i < c->thread_count; i++) {
        struct cell_thread *t = &c->threads[i];

        first = t->start_ns < first ? t->start_ns : first;
        last = t->end_ns > last ? t->end_ns : last;
    }
    c->wall_s = (double)(last - first) / 1e9;
}

void cell_threads(struct cell *c, void (*body)(struct cell_thread *t))
{
    struct start starts[MOST_THREADS];
    unsigned n = c->thread_count;

    if (n == 1) {
        cell_begin(c);
        body(&c->threads[0]);
        cell_end(c);
        return;
    }
    if (pthread_barrier_init(&c->barrier, NULL, n + 1) != 0)
        cell_die(CELL_WRONG, "no barrier");
    for (unsigned i = 0; i < n; i++) {
        starts[i] = (struct start){ .thread = &c->threads[i], .body = body };
        if (pthread_create(&c->threads[i].thread, NULL, start, &starts[i]) != 0)
            cell_die(CELL_WRONG, "the system refused a thread");
    }
    pthread_barrier_wait(&c->barrier);
    account(c, -1);
    pthread_barrier_wait(&c->barrier);
    pthread_barrier_wait(&c->barrier);
    account(c, 1);
    for (unsigned i = 0; i < n; i++)
        pthread_join(c->threads[i].thread, NULL);
    pthread_barrier_destroy(&c->barrier);
    measure_span(c);
}

void cell_collect(struct cell *c)
{
    for (unsigned i = 0; i < c->thread_count; i++) {
        struct cell_tally *t = &c->threads[i].tally;

        c->out.count += t->count;
        c->out.hash += t->hash;
        c->out.early += t->early;
        c->out.garbled += t->garbled;
        *t = (struct cell_tally){ 0 };
    }
}

bool cell_pin(const unsigned *cores, size_t n)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (size_t i = 0; i < n; i++)
        CPU_SET(cores[i], &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

unsigned cell_cores(unsigned *cores, unsigned max)
{
    cpu_set_t set;
    unsigned n = 0;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (unsigned i = 0; i < CPU_SETSIZE && n < max; i++) {
        if (CPU_ISSET(i, &set))
            cores[n++] = i;
    }
    return n;
}

void cell_nap(int64_t ns)
{
    struct timespec t = { .tv_sec = ns / CELL_S, .tv_nsec = ns % CELL_S };

    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

int64_t cell_resident(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%*d %ld", &pages) != 1)
        cell_die(CELL_WRONG, "cannot read /proc/self/statm");
    fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}
