/* cell.h - what the workloads share: the options, the stream of jobs, threads, and the outcome.
 *
 * A cell runs in the main thread.  It opens its queue, lets its threads do the measured part
 * (cell_threads(), or cell_begin() and cell_end() around what the main thread does alone), takes
 * out the rest, and checks.  Threads count in structures of their own, on their own cache lines.
 */
#ifndef BENCH_CELL_H
#define BENCH_CELL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "subject.h"

enum cell_shape {
    SHAPE_UNIFORM,
    SHAPE_EXPONENTIAL,
    SHAPE_CLUSTERED,
    SHAPE_HEAVY,
    SHAPE_SAWTOOTH,
    SHAPE_EQUAL,
    SHAPE_DECADES
};

enum cell_where { WHERE_ASLEEP, WHERE_SAME, WHERE_AWAKE };

#define CELL_DEFAULT (-1)                /* of an option: the workload's own */
#define CELL_POISON  UINT64_MAX          /* the number of a job that ends a consumer */
#define CELL_S       INT64_C(1000000000) /* a second */
#define CELL_START   (1000 * CELL_S)     /* what the virtual clock shows at first */
#define CELL_SLACK   64                  /* jobs on top of those that count, for poisons */
#define CELL_FAR     (3600 * CELL_S)     /* far away */
#define CELL_GOLDEN  UINT64_C(0x9e3779b97f4a7c15)

enum cell_status { CELL_OK = 0, CELL_WRONG = 1, CELL_USAGE = 2, CELL_CANNOT = 3 };

struct cell_options {
    int64_t jobs;
    unsigned producers;
    unsigned consumers;
    size_t batch;
    enum cell_shape shape;
    int64_t spread_ns;
    size_t payload;
    unsigned topics;
    uint64_t seed;
    bool pin;
    int64_t live;
    int64_t gap_ns;
    enum cell_where where;
    unsigned percent;
    int64_t think_ns;
    int64_t spin_ns;
    bool spec;
    bool real;   /* hold: the clock is the machine's, not turned */
    size_t line; /* bytes between the words of the limit of cancel */
};

/* What came out, at one thread. */
struct cell_tally {
    uint64_t count;
    uint64_t hash;
    uint64_t early;
    uint64_t garbled; /* payload or length is not what went in */
};

struct cell;

struct cell_thread {
    struct cell *cell;
    unsigned index;         /* of all threads of the measured part */
    unsigned producer;      /* what the subject calls it when it puts in or cancels */
    unsigned consumer;      /* and when it takes */
    int64_t latest_ns;      /* latest deadline of what it has put in; or of what it took last, */
    uint64_t latest_number; /* and the number of that job */
    struct cell_tally tally;
    int64_t start_ns;
    int64_t end_ns;
    struct bench_job *jobs; /* as many as a batch has */
    unsigned char *bytes;   /* the payloads of a batch */
    void *own;              /* of the workload */
    pthread_t thread;
} __attribute__((aligned(128)));

struct cell_more {
    const char *name;
    double value;
};

struct cell {
    struct cell_options o;
    const struct bench_subject *s;
    void *q;
    size_t count;     /* jobs of the stream that take part */
    int64_t base_ns;  /* a job's deadline is this plus its delay */
    int64_t grain_ns; /* rounded up to a multiple of this; 0: not */
    int64_t *delays;  /* by number, where they are costly to make; or NULL */
    bool lean;        /* open it without reserving */
    bool empty;       /* the subject does nothing: the cell's own cost is measured */
    struct cell_thread *threads;
    unsigned thread_count;
    pthread_barrier_t barrier;
    atomic_uint finished; /* producers that have */
    void *own;            /* of the workload */

    /* The result. */
    double value;
    double wall_s;
    double cpu_s;
    long voluntary;
    long involuntary;
    struct cell_tally out;
    struct cell_more more[8];
    size_t more_count;
};

struct cell_workload {
    const char *name;
    const char *about;
    const char *unit;
    int64_t jobs;      /* default */
    int64_t spread_ns; /* default; CELL_DEFAULT: the workload computes it */
    unsigned needs;    /* of enum bench_can: what the subject must have */
    unsigned refuses;  /* what it must not */
    void (*run)(struct cell *c);
    void (*limit)(struct cell *c); /* NULL: there is none */
};

extern const struct cell_workload cell_workloads[]; /* ends with a NULL name */

/* ---- The end, one way or another (main.c) ---------------------------------------------------- */

void cell_die(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
void *cell_alloc(size_t n, size_t size); /* touched, zeroed, aligned to 128; never NULL */

/* ---- The stream of jobs (stream.c) ----------------------------------------------------------- */

static inline uint64_t cell_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t cell_random(const struct cell *c, uint64_t number)
{
    return cell_mix(c->o.seed + number * CELL_GOLDEN);
}

int64_t cell_shape_delay(const struct cell *c, uint64_t number);

static inline int64_t cell_delay(const struct cell *c, uint64_t number)
{
    if (c->delays != NULL)
        return c->delays[number];
    if (c->o.shape == SHAPE_UNIFORM)
        return (int64_t)((double)(cell_random(c, number) >> 11) * 0x1p-53 * (double)c->o.spread_ns);
    return cell_shape_delay(c, number);
}

/* On a virtual clock: rounded up to the subject's unit of time. */
static inline int64_t cell_grain(const struct cell *c, int64_t at_ns)
{
    int64_t grain = c->grain_ns;

    return grain > 1 ? (at_ns + grain - 1) / grain * grain : at_ns;
}

void cell_stream(struct cell *c, size_t count);  /* there will be so many jobs: prepare them */
int64_t cell_mean_spread(enum cell_shape shape); /* the spread with a mean delay of about 1 s */
void cell_shuffle(struct cell *c, uint32_t *order, size_t n);

/* Job @number as it goes in; its payload is written to @bytes. */
void cell_payload(const struct cell *c, struct bench_job *job, unsigned char *bytes);

static inline void cell_job(const struct cell *c, struct bench_job *job, uint64_t number,
                            int64_t at_ns, unsigned char *bytes)
{
    *job = (struct bench_job){ .number = number, .at_ns = at_ns };
    if (c->o.topics > 1)
        job->topic = (uint32_t)(number % c->o.topics);
    if (c->o.payload > 0)
        cell_payload(c, job, bytes);
}

/* The job at its deadline base_ns plus delay. */
static inline void cell_job_far(const struct cell *c, struct bench_job *job, uint64_t number,
                                unsigned char *bytes)
{
    cell_job(c, job, number, cell_grain(c, c->base_ns + cell_delay(c, number)), bytes);
}

/* ---- Putting in and taking (queue.c) --------------------------------------------------------- */

/* Open a queue for @held jobs at a time, of the threads prepared.  @turned: on a virtual clock, if
 * the subject can.  Jobs that are far away are so from now. */
void cell_open(struct cell *c, size_t held, unsigned consumers, bool turned);
void cell_close(struct cell *c);
void cell_turn(struct cell *c, int64_t now_ns);

/* In: @n jobs (at most a batch) of t->jobs. */
static inline void cell_put(struct cell_thread *t, size_t n, union bench_handle *handles)
{
    const struct bench_subject *s = t->cell->s;

    if (n > 1 && s->enqueue_batch != NULL) {
        s->enqueue_batch(t->cell->q, t->producer, t->jobs, n, handles);
        return;
    }
    for (size_t i = 0; i < n; i++)
        s->enqueue(t->cell->q, t->producer, &t->jobs[i], handles != NULL ? &handles[i] : NULL);
}

/* Out: up to a batch to t->jobs. */
static inline size_t cell_take(struct cell_thread *t, bool wait)
{
    const struct bench_subject *s = t->cell->s;

    if (t->cell->o.batch > 0 && s->dequeue_batch != NULL)
        return s->dequeue_batch(t->cell->q, t->consumer, t->jobs, t->cell->o.batch, wait);
    return s->dequeue(t->cell->q, t->consumer, t->jobs, wait);
}

/* What was taken has been looked at. */
static inline void cell_done(struct cell_thread *t, size_t n)
{
    if (t->cell->s->done != NULL)
        t->cell->s->done(t->cell->q, t->consumer, t->jobs, n);
}

bool cell_intact(const struct cell *c, const struct bench_job *job); /* its payload */

static inline void cell_tally(struct cell_thread *t, const struct bench_job *job)
{
    t->tally.count++;
    t->tally.hash += cell_mix(job->number);
    if (t->cell->o.payload > 0)
        t->tally.garbled += !cell_intact(t->cell, job);
}

/* Put in the jobs @from, @from + @step, ... before @end, far away; handles in the order put in. */
void cell_fill(struct cell_thread *t, size_t from, size_t step, size_t end,
               union bench_handle *handles);

/* Take, in one thread, all that is due on a clock that was turned: in order, none early.
 * @dated: their deadlines must be those of jobs far away.  @gone: flags of jobs, by number, that
 * must not come; or NULL. */
void cell_drain(struct cell_thread *t, bool dated, const bool *gone);

/* Take once, waiting.  True: the thread has got its end, or nothing is left to drain.  @now_ns: the
 * time just after, unless it is NULL; then what is early is counted. */
bool cell_consume(struct cell_thread *t, int64_t *now_ns);

/* A producer has put in all of its jobs.  The last puts in an end for each consumer. */
void cell_finished(struct cell_thread *t, unsigned producers, unsigned consumers);
void cell_put_ends(struct cell_thread *t, unsigned n, int64_t at_ns);

/* ---- Threads and measuring (threads.c) ------------------------------------------------------- */

void cell_prepare(struct cell *c, unsigned threads); /* before cell_open(): their structures */

/* Let each thread do @body at the same time, and measure from the first start to the last end.
 * One thread alone is the calling one. */
void cell_threads(struct cell *c, void (*body)(struct cell_thread *t));

void cell_begin(struct cell *c); /* measuring in the calling thread; may be done several times */
void cell_end(struct cell *c);
void cell_collect(struct cell *c); /* add up what the threads have tallied */

void cell_idle_thread(void);                    /* one that does nothing, until the process ends */
bool cell_pin(const unsigned *cores, size_t n); /* the calling thread */
unsigned cell_cores(unsigned *cores, unsigned max); /* those allowed: how many were written */
void cell_nap(int64_t ns);
int64_t cell_resident(void);

/* ---- The outcome (outcome.c) ----------------------------------------------------------------- */

/* All of the numbers 0 to @count - 1 came out, once each, intact and not early, or it dies. */
void cell_check(struct cell *c, uint64_t count);
void cell_say(struct cell *c, const char *name, double value); /* one more figure */
void cell_sort(int64_t *values, size_t n);
double cell_percentile_us(const int64_t *sorted, size_t n, double percent);
void cell_print(const struct cell *c, const struct cell_workload *w, const char *subject);

/* ---- The workloads, and their limits --------------------------------------------------------- */

void work_enqueue(struct cell *c);
void work_cancel(struct cell *c);
void work_timeout(struct cell *c);
void work_hold(struct cell *c);
void work_reschedule(struct cell *c);
void work_nothing(struct cell *c);
void work_mixed(struct cell *c);
void work_memory(struct cell *c);
void work_through(struct cell *c);
void work_slow(struct cell *c);
void work_drain(struct cell *c);
void work_burst(struct cell *c);
void work_lateness(struct cell *c);
void work_handoff(struct cell *c);

void limit_enqueue(struct cell *c);
void limit_hold(struct cell *c);
void limit_through(struct cell *c);
void limit_lateness(struct cell *c);
void limit_handoff(struct cell *c);
void limit_cancel(struct cell *c);

void work_empty(struct cell *c, const struct cell_workload *w); /* what the cell costs (empty.c) */

#endif
