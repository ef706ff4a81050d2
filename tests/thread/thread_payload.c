/* thread_payload.c - payloads of all lengths, put in and done with in different threads, are used
 * again and again; each must come out as it went in, and none may be lost.
 *
 * The allocator counts, and fills what comes back, so that a block that is in two hands is seen.
 */
#include <stdio.h>

#include "lab/crew.h"
#include "lab/flaky.h"

#define LONGEST 70000u

struct world {
    due_queue *q;
    int64_t end_ns;
    uint64_t seed;
    atomic_ullong jobs;
    atomic_uint number; /* of the next thread */
};

/* Mostly short; now and then more than is kept. */
static size_t length(uint64_t *seed)
{
    size_t most = (size_t)64 << crew_below(seed, 8);

    if (crew_below(seed, 200) == 0)
        most = LONGEST;
    return 8 + (size_t)crew_below(seed, most);
}

static void fill(unsigned char *bytes, size_t len, uint64_t mark)
{
    memset(bytes, (int)(mark & 0xff), len);
    memcpy(bytes, &mark, sizeof mark);
}

static void check(const due_job *job)
{
    const unsigned char *bytes = job->data;
    uint64_t mark;

    memcpy(&mark, bytes, sizeof mark);
    for (size_t i = sizeof mark; i < job->len; i++)
        CREW_CHECK(bytes[i] == (mark & 0xff), ": byte %zu of %zu", i, job->len);
}

static int produce(void *arg)
{
    struct world *w = arg;
    uint64_t seed = w->seed + atomic_fetch_add(&w->number, 1) + 1;
    unsigned char *bytes = malloc(LONGEST + 8);
    uint64_t n = 0;

    CREW_CHECK(bytes != NULL, "");
    while (crew_now_ns() < w->end_ns) {
        due_spec spec = { DUE_SPEC_INIT, .data = bytes, .len = length(&seed),
                          .delay_ns = (int64_t)crew_below(&seed, 3000) };
        due_id id;

        fill(bytes, spec.len, crew_random(&seed));
        int rc = due_enqueue(w->q, &spec, 0, &id);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        if (crew_below(&seed, 4) == 0) {
            rc = due_cancel(w->q, id, NULL);
            CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
        }
        if (crew_below(&seed, 2000) == 0)
            CREW_CHECK(due_trim(w->q) == 0, "");
        n++;
    }
    free(bytes);
    atomic_fetch_add(&w->jobs, n);
    return 0;
}

static int consume(void *arg)
{
    struct world *w = arg;
    due_job job;
    int rc;

    while ((rc = due_dequeue(w->q, &job, DUE_MS(20))) != DUE_ECLOSED) {
        if (rc == DUE_ETIMEDOUT)
            continue;
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        check(&job);
        due_job_done(&job);
    }
    return 0;
}

static uint64_t round_of(enum due_proxies proxies, int64_t ns, uint64_t seed)
{
    struct world w = { .seed = seed, .end_ns = crew_now_ns() + ns };
    struct flaky memory;
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .allocator = &memory.hooks };
    struct crew_thread producers[2];
    struct crew_thread consumers[2];

    flaky_init(&memory, FLAKY_NEVER);
    w.q = crew_open(&options);
    for (int i = 0; i < 2; i++) {
        crew_go(&producers[i], produce, &w);
        crew_go(&consumers[i], consume, &w);
    }
    for (int i = 0; i < 2; i++)
        crew_join(&producers[i]);
    int rc = due_close(w.q, DUE_CLOSE_DRAIN, DUE_FOREVER);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    for (int i = 0; i < 2; i++)
        crew_join(&consumers[i]);
    crew_close(w.q, DUE_CLOSE_DRAIN);
    CREW_CHECK(atomic_load(&memory.live) == 0 && atomic_load(&memory.bad) == 0,
               ": %zu blocks are out", atomic_load(&memory.live));
    return atomic_load(&w.jobs);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    uint64_t jobs = 0;

    for (int mode = 0; mode < 3; mode++) {
        crew_doing(crew_mode_names[mode]);
        jobs += round_of((enum due_proxies)mode, o.ns / 3, o.seed);
    }
    printf("thread_payload: %llu payloads, each as it went in\n", (unsigned long long)jobs);
    return 0;
}
