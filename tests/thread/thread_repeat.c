/* thread_repeat.c - jobs that come again under many threads: each round is had once, by one at a
 * time, in order; after a cancel there is none.
 */
#include <stdio.h>
#include <string.h>

#include "lab/crew.h"
#include "lab/take.h"

#define JOBS 32

struct fate {
    atomic_uint holders;  /* who has a round of it on a lease */
    _Atomic int64_t last; /* the deadline of the last round that was had */
    atomic_uint revoked;  /* a cancel has said 0 or DUE_EBUSY */
    atomic_uint ended;    /* a cancel has said 0 */
};

struct world {
    due_queue *q;
    due_id id[JOBS];
    struct fate fate[JOBS];
    int64_t end_ns;
    uint64_t seed;
    atomic_uint salt;
    atomic_ullong rounds;
};

static uint64_t own_seed(struct world *w)
{
    return w->seed * 1000003 + atomic_fetch_add(&w->salt, 1);
}

static uint32_t number_of(const struct world *w, const due_job *job)
{
    uint32_t n;

    CREW_CHECK(job->len == 40, ": %zu bytes", job->len);
    memcpy(&n, job->data, sizeof n);
    CREW_CHECK(n < JOBS && due_id_equal(job->id, w->id[n]), ": job %u", n);
    return n;
}

/* A round is later than the last one of the same job. */
static uint32_t had(struct world *w, const due_job *job)
{
    uint32_t n = number_of(w, job);
    int64_t before = atomic_exchange(&w->fate[n].last, job->deadline_ns);

    CREW_CHECK(before < job->deadline_ns, ": job %u: %lld, and before it %lld", n,
               (long long)job->deadline_ns, (long long)before);
    CREW_CHECK(job->attempts <= 1, ": %u attempts", job->attempts);
    atomic_fetch_add(&w->rounds, 1);
    return n;
}

/* On a lease that does not end: the job is nobody else's until the ack. */
static int answer(void *arg)
{
    struct world *w = arg;
    due_job job;

    while (crew_now_ns() < w->end_ns) {
        if (take_leased(w->q, &job, DUE_S(1000), DUE_MS(1)) != 0)
            continue;
        uint32_t n = had(w, &job);
        CREW_CHECK(atomic_fetch_add(&w->fate[n].holders, 1) == 0, ": job %u has two holders", n);
        CREW_CHECK(atomic_load(&w->fate[n].ended) == 0, ": job %u was cancelled", n);
        bool revoked = atomic_load(&w->fate[n].revoked) != 0;
        atomic_fetch_sub(&w->fate[n].holders, 1);
        int rc = due_ack(&job);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        due_info info;
        CREW_CHECK(!revoked || due_find(w->q, w->id[n], &info) == DUE_ENOENT,
                   ": job %u comes again", n);
    }
    return 0;
}

/* Taken for good: its bytes are valid while others have its next rounds. */
static int keep(void *arg)
{
    struct world *w = arg;
    uint64_t seed = own_seed(w);
    due_job kept[8] = { 0 };
    uint32_t of[8] = { 0 };

    while (crew_now_ns() < w->end_ns) {
        size_t i = (size_t)crew_below(&seed, 8);

        CREW_CHECK(kept[i].queue == NULL || number_of(w, &kept[i]) == of[i], ": torn");
        due_job_done(&kept[i]);
        if (due_dequeue(w->q, &kept[i], DUE_MS(1)) != 0)
            continue;
        of[i] = number_of(w, &kept[i]);
        CREW_CHECK(kept[i].token == 0, "");
        atomic_fetch_add(&w->rounds, 1);
    }
    for (size_t i = 0; i < 8; i++)
        due_job_done(&kept[i]);
    return 0;
}

static int cancel(void *arg)
{
    struct world *w = arg;

    for (uint32_t n = 0; n < JOBS && crew_now_ns() < w->end_ns; n += 2) {
        int rc;

        crew_sleep(DUE_US(500));
        rc = due_cancel(w->q, w->id[n], NULL);
        CREW_CHECK(rc == 0 || rc == DUE_EBUSY, ": %s", due_error_name(rc));
        if (rc == 0)
            atomic_store(&w->fate[n].ended, 1);
        atomic_store(&w->fate[n].revoked, 1);
    }
    return 0;
}

static uint64_t round_of(int mode, bool good, int64_t ns, uint64_t seed)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = (enum due_proxies)mode };
    struct world w = { .q = crew_open(&options), .seed = seed };
    int (*const work[])(void *) = { answer, good ? keep : answer, good ? keep : answer, cancel };
    enum { THREADS = sizeof work / sizeof work[0] };
    struct crew_thread threads[THREADS] = { 0 };
    unsigned char bytes[40] = { 0 };
    struct due_stats stats;

    w.end_ns = crew_now_ns() + ns;
    for (uint32_t n = 0; n < JOBS; n++) {
        due_extra more = { DUE_EXTRA_INIT, .every_ns = 1 + n * 1000,
                           .repeat = n % 3 ? DUE_REPEAT_SKIP : DUE_REPEAT_ONCE };
        due_spec spec = { DUE_SPEC_INIT, .data = bytes, .len = sizeof bytes, .more = &more };

        memcpy(bytes, &n, sizeof n);
        CREW_CHECK(due_enqueue(w.q, &spec, 0, &w.id[n]) == 0, "");
    }
    for (int i = 0; i < THREADS; i++)
        crew_go(&threads[i], work[i], &w);
    for (int i = 0; i < THREADS; i++)
        CREW_CHECK(crew_join(&threads[i]) == 0, "");
    CREW_CHECK(due_stats_read(w.q, &stats) == 0, "");
    CREW_CHECK(stats.waiting >= JOBS / 2, ": %llu are left", (unsigned long long)stats.waiting);
    CREW_CHECK(stats.lent == 0 && stats.leased == 0, "");
    CREW_CHECK(due_close(w.q, DUE_CLOSE_DISCARD, DUE_FOREVER) == 0, "");
    CREW_CHECK(due_free(w.q) == 0, "");
    return atomic_load(&w.rounds);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 3);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t rounds = 0;
    uint64_t had = 0;

    do {
        int mode = (int)(rounds % 3);

        crew_doing(crew_mode_names[mode]);
        had += round_of(mode, rounds % 2, DUE_MS(40), o.seed + rounds);
        rounds++;
    } while (crew_now_ns() < end);
    printf("thread_repeat: %llu rounds of jobs\n", (unsigned long long)had);
    return 0;
}
