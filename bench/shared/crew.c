/* crew.c - the processes that consume, and what they count.
 *
 * A consumer counts for itself and shows its count after each batch; the main process looks at the
 * counts until all jobs are done, and then says that it is over.
 *
 * Guards     A  atomic; the rest of a consumer's place is written by it alone, and read when its
 *               process has ended
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cell.h"
#include "shared_cell.h"

#define LOOK_NS    (2 * SHARED_S / 1000)
#define PATIENT_NS (20 * SHARED_S) /* without any job */

struct consumer {
    _Atomic uint64_t count; /* A: shown for the main process, which only counts */
    uint64_t hash, garbled;
    int64_t last_ns;
} __attribute__((aligned(128)));

struct process {
    pid_t pid;
    double cpu_s;
    long voluntary, involuntary;
};

static struct crew {
    atomic_uint ready; /* A: processes whose clients are open */
    atomic_bool over;  /* A */
    struct process process[SHARED_CREW];
    struct consumer consumer[SHARED_CREW];
} * crew;

static const struct shared_subject *subject;
static const struct shared_options *options;
static int64_t *had;
static void *client;
static unsigned each; /* consumers of a process */
static unsigned index_of_process;
static int gate[2]; /* closed: all begin */
static int64_t began_ns;

/* ---- Time ---- */

int64_t shared_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SHARED_S + t.tv_nsec;
}

void shared_nap(int64_t ns)
{
    struct timespec t = { ns / SHARED_S, ns % SHARED_S };

    nanosleep(&t, NULL);
}

double shared_server_s(pid_t server)
{
    char path[64];
    unsigned long long ns;

    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)server);
    FILE *file = fopen(path, "r");
    int got = file != NULL ? fscanf(file, "%llu", &ns) : 0;
    if (file != NULL)
        fclose(file);
    return got == 1 ? (double)ns / 1e9 : -1;
}

/* ---- A process that consumes ---- */

static void *consume(void *arg)
{
    unsigned thread = *(unsigned *)arg;
    struct consumer *c = &crew->consumer[index_of_process * each + thread];
    struct shared_job jobs[SHARED_BATCH];

    while (!atomic_load(&crew->over)) {
        size_t n = subject->take(client, thread, jobs);

        if (n == 0)
            continue;
        int64_t now_ns = shared_now();
        for (size_t i = 0; i < n; i++) {
            c->hash += cell_mix(jobs[i].number);
            c->garbled += !jobs[i].intact;
            if (had != NULL && jobs[i].number < options->jobs)
                had[jobs[i].number] = now_ns;
        }
        subject->done(client, thread);
        c->last_ns = shared_now();
        atomic_fetch_add(&c->count, n);
    }
    return NULL;
}

static void serve(unsigned number)
{
    struct process *p = &crew->process[number];
    struct rusage before, after;
    pthread_t threads[SHARED_CREW];
    unsigned name[SHARED_CREW];
    char byte;

    index_of_process = number;
    close(gate[1]);
    client = subject->open(options, each, false);
    atomic_fetch_add(&crew->ready, 1);
    (void)!read(gate[0], &byte, 1);
    getrusage(RUSAGE_SELF, &before);
    for (unsigned i = 0; i < each; i++) {
        name[i] = i;
        pthread_create(&threads[i], NULL, consume, &name[i]);
    }
    for (unsigned i = 0; i < each; i++)
        pthread_join(threads[i], NULL);
    getrusage(RUSAGE_SELF, &after);
    p->cpu_s = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
               (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
               (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6 +
               (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
    p->voluntary = after.ru_nvcsw - before.ru_nvcsw;
    p->involuntary = after.ru_nivcsw - before.ru_nivcsw;
    subject->close(client);
    _exit(0);
}

/* ---- The main process ---- */

void *shared_crew_room(size_t bytes)
{
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (room == MAP_FAILED)
        shared_die(SHARED_WRONG, "no memory that processes share");
    return room;
}

void shared_crew_start(const struct shared_subject *s, const struct shared_options *o,
                       int64_t *late)
{
    pid_t parent = getpid();

    crew = shared_crew_room(sizeof *crew);
    subject = s;
    options = o;
    had = late;
    each = o->consumers / o->processes;
    if (pipe(gate) != 0)
        shared_die(SHARED_WRONG, "no pipe");
    for (unsigned i = 0; i < o->processes; i++) {
        pid_t pid = fork();
        if (pid < 0)
            shared_die(SHARED_WRONG, "no process");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == parent)
                serve(i);
            _exit(1);
        }
        crew->process[i].pid = pid;
    }
    close(gate[0]);
}

static void all_alive(void)
{
    for (unsigned i = 0; i < options->processes; i++)
        if (waitpid(crew->process[i].pid, NULL, WNOHANG) != 0)
            shared_die(SHARED_WRONG, "a process that consumes has ended");
}

void shared_crew_ready(void)
{
    while (atomic_load(&crew->ready) < options->processes) {
        all_alive();
        shared_nap(LOOK_NS);
    }
}

void shared_crew_begin(void)
{
    began_ns = shared_now();
    close(gate[1]);
}

/* Until so many are done, and then a while, for those that come a second time. */
static void wait_for(uint64_t jobs)
{
    uint64_t seen = 0;
    int64_t since_ns = shared_now();

    for (;;) {
        uint64_t count = 0;

        for (unsigned i = 0; i < options->consumers; i++)
            count += atomic_load(&crew->consumer[i].count);
        if (count >= jobs)
            break;
        if (count != seen) {
            seen = count;
            since_ns = shared_now();
        }
        if (shared_now() - since_ns > PATIENT_NS)
            shared_die(SHARED_WRONG, "%llu jobs of %llu were done, and no more",
                       (unsigned long long)count, (unsigned long long)jobs);
        all_alive();
        shared_nap(LOOK_NS);
    }
    shared_nap(SHARED_S / 10);
}

struct shared_taken shared_crew_end(uint64_t jobs)
{
    struct shared_taken all = { .first_ns = began_ns };

    wait_for(jobs);
    atomic_store(&crew->over, true);
    for (unsigned i = 0; i < options->processes; i++) {
        int status = 0;

        waitpid(crew->process[i].pid, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            shared_die(SHARED_WRONG, "a process that consumes did not end well");
        all.cpu_s += crew->process[i].cpu_s;
        all.voluntary += crew->process[i].voluntary;
        all.involuntary += crew->process[i].involuntary;
    }
    for (unsigned i = 0; i < options->consumers; i++) {
        const struct consumer *c = &crew->consumer[i];

        all.count += atomic_load(&c->count);
        all.hash += c->hash;
        all.garbled += c->garbled;
        if (c->last_ns > all.last_ns)
            all.last_ns = c->last_ns;
    }
    return all;
}
