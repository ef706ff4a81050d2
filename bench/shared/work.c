/* work.c - what is measured of a queue that is one server's.
 *
 * put    P threads put in jobs that are due in an hour or two, by batches or one by one, and wait
 *        for each answer.
 * work   Jobs that are due lie in the queue; C consumers in R processes take and ack them.
 * late   A consumer waits; jobs are put in one after another, each for a second later.
 *
 * Server time is that of its main thread, a job: for putting in, for the rest, and for both.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cell.h"
#include "shared_cell.h"

#define HOUR_NS (3600 * SHARED_S)
#define SEED    42

/* ---- Jobs ---- */

void shared_payload(const struct shared_options *o, uint64_t number, unsigned char *bytes)
{
    for (size_t i = 0; i < o->payload; i++)
        bytes[i] = (unsigned char)(number >> (8 * (i % 8)));
}

struct shared_job shared_read(const struct shared_options *o, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    struct shared_job job = { .intact = len == o->payload };

    if (!job.intact)
        return job;
    for (int i = 0; i < 8; i++)
        job.number |= (uint64_t)at[i] << (8 * i);
    for (size_t i = 8; i < len; i++)
        job.intact &= at[i] == at[i % 8];
    return job;
}

/* Of all numbers below this: what must have come out. */
static uint64_t hash_below(uint64_t count)
{
    uint64_t hash = 0;

    for (uint64_t i = 0; i < count; i++)
        hash += cell_mix(i);
    return hash;
}

/* ---- Putting in ---- */

struct producer {
    const struct shared_subject *s;
    const struct shared_options *o;
    void *client;
    bool far;
    unsigned number;
    pthread_barrier_t *start;
    pthread_t thread;
};

static void *put_share(void *arg)
{
    const struct producer *p = arg;
    const struct shared_options *o = p->o;
    size_t batch = o->batch > 0 ? o->batch : 1;
    struct shared_job jobs[SHARED_BATCH];

    pthread_barrier_wait(p->start);
    for (uint64_t at = p->number; at < o->jobs;) {
        size_t n = 0;

        for (; n < batch && at < o->jobs; n++, at += o->producers) {
            uint64_t r = cell_mix(SEED + at * CELL_GOLDEN);
            int64_t within_ns = (int64_t)((double)(r >> 11) * 0x1p-53 * (double)HOUR_NS);

            jobs[n] = (struct shared_job){ .number = at };
            jobs[n].delay_ns = p->far ? HOUR_NS + within_ns : 0;
        }
        p->s->put(p->client, p->number, jobs, n);
    }
    return NULL;
}

/* The seconds it took. */
static double put_all(const struct shared_subject *s, const struct shared_options *o, void *client,
                      bool far)
{
    struct producer p[SHARED_CREW];
    pthread_barrier_t start;

    pthread_barrier_init(&start, NULL, o->producers + 1);
    for (unsigned i = 0; i < o->producers; i++) {
        p[i] = (struct producer){ .s = s, .o = o, .client = client, .far = far };
        p[i].number = i;
        p[i].start = &start;
        pthread_create(&p[i].thread, NULL, put_share, &p[i]);
    }
    int64_t before = shared_now();
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < o->producers; i++)
        pthread_join(p[i].thread, NULL);
    pthread_barrier_destroy(&start);
    return (double)(shared_now() - before) / 1e9;
}

static void say(struct shared_line *line, const char *name, double value)
{
    line->more_name[line->more_count] = name;
    line->more[line->more_count++] = value;
}

/* What the server has used since, a job, where that is known. */
static double say_server(struct shared_line *line, const char *name, pid_t server, double before,
                         uint64_t jobs)
{
    double after = shared_server_s(server);

    if (before >= 0 && after >= 0)
        say(line, name, (after - before) / (double)jobs * 1e6);
    return after;
}

static void run_put(const struct shared_subject *s, const struct shared_options *o,
                    struct shared_line *line)
{
    struct rusage before, after;

    s->start();
    void *client = s->open(o, o->producers, true);
    double server = shared_server_s(s->server());
    getrusage(RUSAGE_SELF, &before);
    line->wall_s = put_all(s, o, client, true);
    getrusage(RUSAGE_SELF, &after);
    (void)say_server(line, "server_us", s->server(), server, o->jobs);
    struct shared_count count = s->count(client);
    s->close(client);
    s->stop();
    if (count.other > 0)
        shared_die(SHARED_WRONG, "%llu jobs are due at once", (unsigned long long)count.other);
    line->count = count.later;
    line->cpu_s = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                  (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                  (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6 +
                  (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
    line->voluntary = after.ru_nvcsw - before.ru_nvcsw;
    line->involuntary = after.ru_nivcsw - before.ru_nivcsw;
    line->value = (double)o->jobs / line->wall_s;
    line->hash = hash_below(line->count);
}

/* ---- Taking and acking ---- */

static void take_over(struct shared_line *line, const struct shared_taken *all)
{
    if (all->garbled > 0)
        shared_die(SHARED_WRONG, "%llu jobs were not as they went in",
                   (unsigned long long)all->garbled);
    line->count = all->count;
    line->hash = all->hash;
    line->cpu_s = all->cpu_s;
    line->voluntary = all->voluntary;
    line->involuntary = all->involuntary;
    line->wall_s = (double)(all->last_ns - all->first_ns) / 1e9;
}

/* Who does not ack is fast. */
static void none_left(const struct shared_subject *s, const struct shared_options *o)
{
    void *client = s->open(o, 1, true);
    struct shared_count count = s->count(client);

    s->close(client);
    if (count.later + count.other > 0)
        shared_die(SHARED_WRONG, "%llu jobs are left",
                   (unsigned long long)(count.later + count.other));
}

static void run_work(const struct shared_subject *s, const struct shared_options *o,
                     struct shared_line *line)
{
    struct shared_options in = *o;

    in.batch = SHARED_BATCH;
    s->start();
    shared_crew_start(s, o, NULL);
    double server = shared_server_s(s->server());
    void *client = s->open(&in, in.producers, true);
    (void)put_all(s, &in, client, false);
    s->close(client);
    double between = say_server(line, "put_server_us", s->server(), server, o->jobs);
    shared_crew_ready();
    shared_crew_begin();
    struct shared_taken all = shared_crew_end(o->jobs);
    none_left(s, &in);
    (void)say_server(line, "work_server_us", s->server(), between, o->jobs);
    (void)say_server(line, "life_server_us", s->server(), server, o->jobs);
    s->stop();
    take_over(line, &all);
    line->value = (double)o->jobs / line->wall_s;
}

/* ---- How late ---- */

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void run_late(const struct shared_subject *s, const struct shared_options *o,
                     struct shared_line *line)
{
    int64_t *had = shared_crew_room(o->jobs * sizeof *had);
    int64_t *due = calloc(o->jobs, sizeof *due);
    double *late = calloc(o->jobs, sizeof *late);

    if (due == NULL || late == NULL)
        shared_die(SHARED_WRONG, "no memory");
    s->start();
    shared_crew_start(s, o, had);
    void *client = s->open(o, 1, true);
    shared_crew_ready();
    shared_crew_begin();
    int64_t start_ns = shared_now() + SHARED_S / 10;
    for (uint64_t i = 0; i < o->jobs; i++) {
        struct shared_job job = { .number = i, .delay_ns = SHARED_S };

        shared_nap(start_ns + (int64_t)i * o->gap_ns - shared_now());
        due[i] = shared_now() + SHARED_S;
        s->put(client, 0, &job, 1);
    }
    struct shared_taken all = shared_crew_end(o->jobs);
    s->close(client);
    none_left(s, o);
    s->stop();
    take_over(line, &all);
    for (uint64_t i = 0; i < o->jobs; i++) {
        late[i] = (double)(had[i] - due[i]) / 1e3;
        if (late[i] < 0)
            shared_die(SHARED_WRONG, "a job is early by %g us", -late[i]);
    }
    qsort(late, o->jobs, sizeof *late, by_size);
    line->value = late[(o->jobs - 1) / 2];
    say(line, "p99_us", late[(o->jobs - 1) * 99 / 100]);
    say(line, "most_us", late[o->jobs - 1]);
    free(due);
    free(late);
}

const struct shared_workload shared_workloads[] = {
    { "shared-put", "putting in jobs far away", "jobs/s", 100000, run_put },
    { "shared-work", "taking and acking jobs that are due", "jobs/s", 100000, run_work },
    { "shared-late", "how late a job is taken by one who waits", "us", 200, run_late },
    { NULL, NULL, NULL, 0, NULL }
};
