/* thread_order.c - jobs of one producer keep their order, and jobs are taken in the queue's order.
 *
 * One consumer at a time takes (a mutex of the test says what "taken before" means); several
 * producers put in jobs of equal and of different deadlines.
 */
#include <stdio.h>

#include "lab/crew.h"

#define PRODUCERS 3
#define EACH      3000u

struct world {
    due_queue *q;
    int64_t at_ns; /* all jobs of one deadline; or 0: without delay */
    atomic_uint ready;
};

struct producer {
    struct world *w;
    uint32_t number;
};

static void *name_of(uint32_t producer, uint32_t n)
{
    return (void *)(uintptr_t)((uintptr_t)producer * EACH + n + 1);
}

static int produce(void *arg)
{
    struct producer *p = arg;

    atomic_fetch_add(&p->w->ready, 1);
    while (atomic_load(&p->w->ready) < PRODUCERS)
        ;
    for (uint32_t n = 0; n < EACH; n++) {
        due_spec spec = { DUE_SPEC_INIT, .at_ns = p->w->at_ns, .ptr = name_of(p->number, n) };
        int rc = due_enqueue(p->w->q, &spec, 0, NULL);

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    return 0;
}

static void check_order(uint32_t *next, const due_job *job)
{
    uint32_t number = (uint32_t)((uintptr_t)job->ptr - 1);

    uint32_t producer = number / EACH;
    uint32_t n = number - producer * EACH;

    CREW_CHECK(n == next[producer], ": producer %u gave %u, not %u", producer, n, next[producer]);
    next[producer]++;
}

/* Equal deadlines, or none: each producer's jobs come in the order in which it gave them. */
static void per_producer(enum due_proxies proxies, bool delayed)
{
    struct world w = { .at_ns = delayed ? crew_now_ns() + DUE_MS(5) : 0 };
    struct producer producers[PRODUCERS];
    struct crew_thread threads[PRODUCERS];
    uint32_t next[PRODUCERS] = { 0 };
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies };
    int64_t last = 0;
    due_job job;

    w.q = crew_open(&options);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){ .w = &w, .number = i };
        crew_go(&threads[i], produce, &producers[i]);
    }
    for (uint32_t n = 0; n < PRODUCERS * EACH; n++) {
        int rc = due_dequeue(w.q, &job, DUE_S(60));

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        check_order(next, &job);
        if (delayed)
            CREW_CHECK(job.deadline_ns >= last, ": %lld", (long long)job.deadline_ns);
        last = job.deadline_ns;
        due_job_done(&job);
    }
    for (int i = 0; i < PRODUCERS; i++)
        crew_join(&threads[i]);
    crew_close(w.q, DUE_CLOSE_DRAIN);
}

/* ---- Without delay and at a time, by turns ---- */

struct turns {
    due_queue *q;
    atomic_uint ready;
    int64_t from_ns[PRODUCERS * EACH]; /* when the call that put it began */
    int64_t to_ns[PRODUCERS * EACH];   /* and returned */
    int64_t due_ns[PRODUCERS * EACH];
};
static struct turns turns;

/* Every other one has no delay, the next one the time that it is by then.  A third, which is in no
 * order, becomes due meanwhile. */
static int produce_by_turns(void *arg)
{
    uint32_t number = *(const uint32_t *)arg;
    uint64_t seed = number + 1;

    atomic_fetch_add(&turns.ready, 1);
    while (atomic_load(&turns.ready) < PRODUCERS)
        ;
    for (uint32_t n = 0; n < EACH; n++) {
        due_spec other = { DUE_SPEC_INIT, .delay_ns = 1 + (int64_t)crew_below(&seed, 20000) };
        due_spec spec = { DUE_SPEC_INIT, .ptr = name_of(number, n) };
        int64_t *from = &turns.from_ns[number * EACH + n];

        if (n % 8 == 0)
            CREW_CHECK(due_enqueue(turns.q, &other, 0, NULL) == 0, "");
        *from = due_now(turns.q);
        spec.at_ns = n % 2 == 1 ? *from : 0;
        CREW_CHECK(due_enqueue(turns.q, &spec, 0, NULL) == 0, "");
        turns.to_ns[number * EACH + n] = n % 2 == 1 ? *from : due_now(turns.q);
    }
    return 0;
}

/* Each producer's come in the order in which it gave them, and are due when it did. */
static void by_turns(enum due_proxies proxies, enum due_clock_kind clock)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies, .clock = clock };
    uint32_t numbers[PRODUCERS];
    struct crew_thread threads[PRODUCERS];
    uint32_t next[PRODUCERS] = { 0 };
    due_job job;

    turns.q = crew_open(&options);
    atomic_store(&turns.ready, 0);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        numbers[i] = i;
        crew_go(&threads[i], produce_by_turns, &numbers[i]);
    }
    for (uint32_t n = 0; n < PRODUCERS * (EACH + EACH / 8); n++) {
        int rc = due_dequeue(turns.q, &job, DUE_S(60));

        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        if (job.ptr != NULL) {
            check_order(next, &job);
            turns.due_ns[(uintptr_t)job.ptr - 1] = job.deadline_ns;
        }
        due_job_done(&job);
    }
    for (int i = 0; i < PRODUCERS; i++)
        crew_join(&threads[i]);
    for (uint32_t i = 0; i < PRODUCERS * EACH; i++)
        CREW_CHECK(turns.due_ns[i] >= turns.from_ns[i] && turns.due_ns[i] <= turns.to_ns[i],
                   ": %u is due %lld ns after its call", i,
                   (long long)(turns.due_ns[i] - turns.to_ns[i]));
    crew_close(turns.q, DUE_CLOSE_DRAIN);
}

/* ---- Two consumers that take turns under a mutex ---- */

struct takers {
    due_queue *q;
    pthread_mutex_t mutex;
    int64_t last;
    uint32_t left;
};

static int take(void *arg)
{
    struct takers *t = arg;
    bool more = true;

    while (more) {
        due_job job;

        pthread_mutex_lock(&t->mutex);
        more = t->left > 0;
        if (more) {
            int rc = due_dequeue(t->q, &job, DUE_S(60));

            CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
            CREW_CHECK(job.deadline_ns >= t->last, ": %lld ns before the one before",
                       (long long)(t->last - job.deadline_ns));
            t->last = job.deadline_ns;
            t->left--;
            due_job_done(&job);
        }
        pthread_mutex_unlock(&t->mutex);
    }
    return 0;
}

static void deadlines_rise(enum due_proxies proxies, uint64_t seed)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = proxies };
    struct takers t = { .q = crew_open(&options), .left = 3000 };
    struct crew_thread threads[2];
    int64_t now = due_now(t.q);

    pthread_mutex_init(&t.mutex, NULL);
    for (uint32_t i = 0; i < t.left; i++) {
        int64_t at = now + (int64_t)crew_below(&seed, 30000000) + DUE_MS(20);
        due_spec spec = { DUE_SPEC_INIT, .at_ns = at };
        int rc = due_enqueue(t.q, &spec, 0, NULL);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    crew_go(&threads[0], take, &t);
    crew_go(&threads[1], take, &t);
    crew_join(&threads[0]);
    crew_join(&threads[1]);
    crew_close(t.q, DUE_CLOSE_DRAIN);
    pthread_mutex_destroy(&t.mutex);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t rounds = 0;

    do {
        for (int mode = 0; mode < 3; mode++) {
            crew_doing(crew_mode_names[mode]);
            per_producer((enum due_proxies)mode, false);
            per_producer((enum due_proxies)mode, true);
            by_turns((enum due_proxies)mode, DUE_CLOCK_MONOTONIC);
            by_turns((enum due_proxies)mode, DUE_CLOCK_BOOTTIME);
            deadlines_rise((enum due_proxies)mode, o.seed + rounds);
        }
        rounds++;
    } while (crew_now_ns() < end);
    printf("thread_order: %llu rounds in order\n", (unsigned long long)rounds);
    return 0;
}
