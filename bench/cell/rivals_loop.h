/* rivals_loop.h - what the subjects that are event loops have in common.
 *
 * Their user embeds the timer in a structure of his own, the job, and starts it; its callback gets
 * the job back.  Here the callback puts it into a ring, and a take runs the loop until there is
 * something in the ring; one pass of the loop may fire many.  Jobs are taken from an array that was
 * reserved and touched, or by malloc() where memory is measured.
 *
 * As in every program with a loop, who cancels knows that the job has not been taken yet.
 */
#ifndef BENCH_RIVALS_LOOP_H
#define BENCH_RIVALS_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rivals_clock.h"
#include "subject.h"

static inline void loop_die(const char *why)
{
    fprintf(stderr, "bench_loops: %s\n", why);
    exit(1);
}

static inline void *loop_must(void *memory)
{
    if (memory == NULL)
        loop_die("out of memory");
    return memory;
}

/* A library that asked the kernel itself would go by the wrong time: refuse to measure it.
 * @asked: rivals_clock_asked() before the library was made to look at the time. */
static inline void loop_check_clock(const struct bench_setup *setup, uint64_t asked)
{
    if (setup->virtual_clock && rivals_clock_asked() == asked)
        loop_die("this library does not ask the virtual clock for the time");
}

/* ---- What a job keeps, besides its timer ----------------------------------------------------- */

/* The last field of a job; the payload comes after it. */
struct loop_job {
    int64_t at_ns;
    uint64_t number;
    uint32_t len;
};

static inline void loop_job_in(struct loop_job *job, const struct bench_job *in)
{
    job->at_ns = in->at_ns != 0 ? in->at_ns : bench_now();
    job->number = in->number;
    job->len = in->len;
    if (in->len > 0)
        memcpy(job + 1, in->data, in->len);
}

static inline void loop_job_out(const struct loop_job *job, struct bench_job *out)
{
    out->at_ns = job->at_ns;
    out->number = job->number;
    out->len = job->len;
    out->topic = 0;
    out->data = job->len > 0 ? job + 1 : NULL;
}

/* ---- Where jobs come from -------------------------------------------------------------------- */

struct loop_pool {
    size_t job_bytes;
    unsigned char *jobs; /* side by side, or NULL */
    size_t count;
    void **free;
    size_t free_count;
};

static inline void *loop_pool_job(const struct loop_pool *pool, size_t i)
{
    return pool->jobs + i * pool->job_bytes;
}

/* @job_size: of a job without its payload. */
static inline void loop_pool_open(struct loop_pool *pool, const struct bench_setup *setup,
                                  size_t job_size)
{
    size_t job_bytes = job_size + (setup->payload + 7) / 8 * 8;

    *pool = (struct loop_pool){ .job_bytes = job_bytes };
    if (setup->lean)
        return;
    pool->count = setup->jobs;
    pool->jobs = loop_must(malloc(pool->count * job_bytes));
    memset(pool->jobs, 1, pool->count * job_bytes);
    pool->free = loop_must(malloc(pool->count * sizeof *pool->free));
    for (size_t i = pool->count; i > 0; i--)
        pool->free[pool->free_count++] = loop_pool_job(pool, i - 1);
}

static inline void loop_pool_close(struct loop_pool *pool)
{
    free(pool->free);
    free(pool->jobs);
}

/* Is it one of the array? */
static inline bool loop_pool_has(const struct loop_pool *pool, const void *job)
{
    const unsigned char *at = job;

    return pool->jobs != NULL && at >= pool->jobs &&
           at < pool->jobs + pool->count * pool->job_bytes;
}

static inline void *loop_pool_take(struct loop_pool *pool)
{
    if (pool->free_count > 0)
        return pool->free[--pool->free_count];
    return loop_must(malloc(pool->job_bytes));
}

static inline void loop_pool_give(struct loop_pool *pool, void *job)
{
    if (loop_pool_has(pool, job))
        pool->free[pool->free_count++] = job;
    else
        free(job);
}

/* ---- What has fired -------------------------------------------------------------------------- */

struct loop_ring {
    void **slot;
    size_t room; /* a power of 2 */
    size_t in;   /* counts of jobs put in and taken out */
    size_t out;
};

static inline void loop_ring_open(struct loop_ring *ring, const struct bench_setup *setup)
{
    size_t jobs = setup->lean ? 0 : setup->jobs;

    *ring = (struct loop_ring){ .room = 64 };
    while (ring->room < jobs)
        ring->room *= 2;
    ring->slot = loop_must(malloc(ring->room * sizeof *ring->slot));
    memset(ring->slot, 1, ring->room * sizeof *ring->slot);
}

static inline void loop_ring_grow(struct loop_ring *ring)
{
    void **wider = loop_must(malloc(2 * ring->room * sizeof *wider));

    for (size_t i = ring->out; i != ring->in; i++)
        wider[i & (2 * ring->room - 1)] = ring->slot[i & (ring->room - 1)];
    free(ring->slot);
    ring->slot = wider;
    ring->room *= 2;
}

static inline void loop_ring_put(struct loop_ring *ring, void *job)
{
    if (ring->in - ring->out == ring->room)
        loop_ring_grow(ring);
    ring->slot[ring->in++ & (ring->room - 1)] = job;
}

/* NULL: there is none. */
static inline void *loop_ring_take(struct loop_ring *ring)
{
    return ring->out != ring->in ? ring->slot[ring->out++ & (ring->room - 1)] : NULL;
}

/* ---- Both, as the first field of a queue ----------------------------------------------------- */

struct loop_jobs {
    struct loop_pool pool;
    struct loop_ring fired;
    void *lent; /* was taken, and is being looked at */
};

static inline void loop_jobs_open(struct loop_jobs *jobs, const struct bench_setup *setup,
                                  size_t job_size)
{
    loop_pool_open(&jobs->pool, setup, job_size);
    loop_ring_open(&jobs->fired, setup);
}

static inline void loop_jobs_close(struct loop_jobs *jobs)
{
    loop_pool_close(&jobs->pool);
    free(jobs->fired.slot);
}

/* The taken @job goes to the caller, who is done with it at the next loop_jobs_done(). */
static inline void loop_jobs_lend(struct loop_jobs *jobs, void *job, const struct loop_job *kept,
                                  struct bench_job *out)
{
    jobs->lent = job;
    loop_job_out(kept, out);
}

/* As bench_subject.done, for a queue that begins with its jobs. */
static inline void loop_jobs_done(void *queue, unsigned thread, struct bench_job *taken, size_t n)
{
    struct loop_jobs *jobs = queue;

    (void)thread;
    (void)taken;
    (void)n;
    loop_pool_give(&jobs->pool, jobs->lent);
}

#endif
