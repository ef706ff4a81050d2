/* thread_share.c - one queue, three processes, each a queue of this program with threads that put
 * and threads that take, on a store that fails now and then: a job that was accepted is acked once.
 * One of the three dies in the middle, without a word: what it had comes again.  Jobs that come
 * again go round meanwhile, and are cancelled at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "due/metrics.h"
#include "lab/crew.h"
#include "lab/memory_store.h"
#include "lab/take.h"

#define QUEUES 3
#define TAKERS 2 /* of each queue */
#define JOBS   3000u
#define LEASE  DUE_MS(100)
#define STALL  DUE_S(30) /* while nothing ends */
#define ROUNDS 4u        /* jobs that come again */

struct fate {
    atomic_uint put;   /* it was accepted, or may have been */
    atomic_uint sure;  /* it was */
    atomic_uint acked; /* its holder was told so */
    atomic_uint had;   /* times handed out */
};

static struct fate fates[JOBS];

/* A job that comes again, and its rounds that were acked: the first so many. */
struct going {
    due_id id;
    atomic_uint times;
    int64_t deadline_ns[1 << 14];
};

static struct going going[ROUNDS];

struct world {
    struct memory_disk *disk;
    due_store *store[QUEUES];
    due_queue *q[QUEUES];
    atomic_uint next;
    atomic_uint acked;
    atomic_uint puts; /* queues with a producer that is not through: bits */
    atomic_uint dead; /* queues that have died: bits */
    atomic_bool stop;
};

struct task {
    struct world *w;
    size_t queue;
    uint64_t seed;
    struct crew_thread thread;
};

static bool is_dead(struct world *w, size_t queue)
{
    return atomic_load(&w->dead) & (1u << queue);
}

/* Whatever goes on and fails meanwhile, no job is counted twice. */
static void take_census(due_queue *q)
{
    struct due_queue_census c;
    uint64_t cursor = 0;
    due_process p[4];

    if (due_census(q, DUE_ALL_TOPICS, &c, DUE_S(1)) == 0)
        CREW_CHECK(c.delayed + c.ready + c.leased + c.dead <= JOBS + ROUNDS &&
                       c.processes <= QUEUES,
                   ": %llu jobs", (unsigned long long)(c.delayed + c.ready + c.leased));
    int n = due_processes(q, &cursor, p, 4, DUE_S(1));
    CREW_CHECK(n <= QUEUES, ": %d processes", n);
}

static int produce(void *arg)
{
    struct task *t = arg;
    uint32_t n;

    while ((n = atomic_fetch_add(&t->w->next, 1)) < JOBS && !is_dead(t->w, t->queue)) {
        due_spec spec = { DUE_SPEC_INIT, .data = &n, .len = sizeof n,
                          .delay_ns = DUE_US((int64_t)crew_below(&t->seed, 3000)) };

        atomic_store(&fates[n].put, 1);
        if (n % 100 == 0)
            take_census(t->w->q[t->queue]);
        int rc = due_enqueue(t->w->q[t->queue], &spec, DUE_S(20), NULL);
        if (rc == 0 && !is_dead(t->w, t->queue))
            atomic_store(&fates[n].sure, 1);
        else if (rc != 0 && rc != DUE_EINDOUBT)
            CREW_CHECK(is_dead(t->w, t->queue), ": an enqueue answers %d", rc);
    }
    atomic_fetch_and(&t->w->puts, ~(1u << t->queue));
    return 0;
}

static void enter_rounds(struct world *w)
{
    due_extra more = { DUE_EXTRA_INIT, .every_ns = DUE_MS(1) };

    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t n = JOBS + i;
        due_spec spec = { DUE_SPEC_INIT, .data = &n, .len = sizeof n, .more = &more };

        memset(&going[i], 0, sizeof going[i]);
        CREW_CHECK(due_enqueue(w->q[1], &spec, DUE_S(20), &going[i].id) == 0, ": no round");
    }
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Each round was acked once, whoever had it. */
static void check_rounds(void)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct going *it = &going[i];
        size_t n = atomic_load(&it->times);

        CREW_CHECK(n > 0, ": it did not come");
        n = n < sizeof it->deadline_ns / sizeof it->deadline_ns[0]
                ? n
                : sizeof it->deadline_ns / sizeof it->deadline_ns[0];
        qsort(it->deadline_ns, n, sizeof it->deadline_ns[0], by_time);
        for (size_t k = 1; k < n; k++)
            CREW_CHECK(it->deadline_ns[k] > it->deadline_ns[k - 1], ": a round was acked twice");
    }
}

/* It is the canceller's, who wanted its bytes. */
static void had_back(due_job *job, uint32_t i)
{
    uint32_t n;

    CREW_CHECK(due_id_equal(job->id, going[i].id) && job->len == sizeof n, ": another job");
    memcpy(&n, job->data, sizeof n);
    CREW_CHECK(n == JOBS + i, ": the bytes of %u", n);
    due_job_done(job);
}

/* Whoever has one meanwhile ends its round, and then it waits. */
static void cancel_rounds(struct world *w)
{
    int64_t end = crew_now_ns() + DUE_S(40);

    for (uint32_t i = 0; i < ROUNDS; i++) {
        bool wants = i >= ROUNDS / 2;
        due_job job;
        int rc;

        do {
            rc = due_cancel(w->q[1 + i % 2], going[i].id, wants ? &job : NULL);
            CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_EINDOUBT || rc == DUE_ENOENT ||
                           rc == DUE_ETIMEDOUT,
                       ": a cancel: %d", rc);
            CREW_CHECK(crew_now_ns() < end, ": it cannot be cancelled: %d", rc);
        } while (rc != 0 && rc != DUE_ENOENT);
        if (wants && rc == 0)
            had_back(&job, i);
    }
    CREW_CHECK(memory_disk_jobs(w->disk) == 0, ": %zu are left", memory_disk_jobs(w->disk));
}

static void had_round(struct task *t, due_job *job, uint32_t i)
{
    int64_t deadline = job->deadline_ns;
    bool nacks = crew_below(&t->seed, 10) == 0;

    CREW_CHECK(due_id_equal(job->id, going[i].id), ": another id");
    int rc = nacks ? due_nack(job, DUE_US(200)) : due_ack(job);
    if (rc != 0 && job->queue != NULL)
        due_job_done(job);
    if (rc != 0 || nacks || is_dead(t->w, t->queue))
        return;
    unsigned n = atomic_fetch_add(&going[i].times, 1);
    if (n < sizeof going[i].deadline_ns / sizeof going[i].deadline_ns[0])
        going[i].deadline_ns[n] = deadline;
}

static void had(struct task *t, due_job *job)
{
    uint32_t n;

    CREW_CHECK(job->len == sizeof n, ": %zu bytes", job->len);
    memcpy(&n, job->data, sizeof n);
    if (n >= JOBS && n < JOBS + ROUNDS) {
        had_round(t, job, n - JOBS);
        return;
    }
    CREW_CHECK(n < JOBS && atomic_load(&fates[n].put), ": job %u", n);
    atomic_fetch_add(&fates[n].had, 1);
    if (crew_below(&t->seed, 20) == 0) {
        int rc = due_nack(job, DUE_US(500));

        CREW_CHECK(rc == 0 || rc == DUE_ESTALE || is_dead(t->w, t->queue), ": a nack: %d", rc);
        if (rc != 0 && job->queue != NULL)
            due_job_done(job);
        return;
    }
    if (crew_below(&t->seed, 50) == 0)
        (void)!due_extend(job, LEASE);
    int rc = due_ack(job);
    if (rc != 0 && job->queue != NULL)
        due_job_done(job);
    if (rc == 0 && !is_dead(t->w, t->queue)) {
        CREW_CHECK(atomic_fetch_add(&fates[n].acked, 1) == 0, ": job %u was acked twice", n);
        atomic_fetch_add(&t->w->acked, 1);
    } else if (!is_dead(t->w, t->queue)) {
        CREW_CHECK(rc == DUE_ESTALE || rc == DUE_EINDOUBT, ": an ack: %d", rc);
    }
}

static int consume(void *arg)
{
    struct task *t = arg;
    due_job jobs[4];

    while (!atomic_load(&t->w->stop) && !is_dead(t->w, t->queue)) {
        size_t max = 1 + (size_t)crew_below(&t->seed, 4);
        int64_t waits = crew_below(&t->seed, 3) == 0 ? 0 : DUE_MS(20);
        int rc = take_leased_some(t->w->q[t->queue], NULL, 0, jobs, max, LEASE, waits);

        for (int i = 0; i < rc; i++)
            had(t, &jobs[i]);
    }
    return 0;
}

/* Who dies waits for its store no longer than a busy machine needs: its calls end after that. */
static due_queue *open_one(struct world *w, size_t i, enum due_proxies proxies, bool dies)
{
    due_options o = { DUE_OPTIONS_INIT,
                      .store = w->store[i],
                      .share = DUE_SHARED,
                      .proxies = proxies,
                      .lease_ns = LEASE,
                      .prefetch_max = 1u << (3 * i),
                      .store_timeout_ns = dies ? DUE_S(2) : DUE_S(20) };

    return crew_open(&o);
}

/* Whatever came into its memory has left it. */
static void close_one(due_queue *q, bool died)
{
    struct due_stats s;

    CREW_CHECK(due_close(q, DUE_CLOSE_DISCARD, died ? DUE_MS(50) : DUE_S(20)) == 0,
               ": it does not close");
    CREW_CHECK(due_stats_read(q, &s) == 0, ": no statistics");
    CREW_CHECK(s.enqueued == s.acked + s.kept + s.discarded + s.cancelled + s.leased,
               ": in %llu, acked %llu, kept %llu, shown %llu, cancelled %llu, leased %llu",
               (unsigned long long)s.enqueued, (unsigned long long)s.acked,
               (unsigned long long)s.kept, (unsigned long long)s.discarded,
               (unsigned long long)s.cancelled, (unsigned long long)s.leased);
    CREW_CHECK(s.waiting == 0 && s.lent == 0 && s.mended == 0, ": %llu, %llu, %llu",
               (unsigned long long)s.waiting, (unsigned long long)s.lent,
               (unsigned long long)s.mended);
    CREW_CHECK(due_free(q) == 0, ": it is not freed");
}

/* Everything that is there has come, or may not have been accepted. */
static bool all_acked(const struct world *w)
{
    bool all = (atomic_load(&w->puts) & ~atomic_load(&w->dead)) == 0;

    for (uint32_t n = 0; all && n < JOBS; n++)
        all = !atomic_load(&fates[n].sure) || atomic_load(&fates[n].acked);
    return all && memory_disk_jobs(w->disk) == ROUNDS;
}

static void round_of(enum due_proxies proxies, uint64_t seed, bool kills)
{
    struct world w = { .disk = memory_disk_new(NULL), .puts = (1u << QUEUES) - 1 };
    struct task task[QUEUES * (TAKERS + 1)];
    size_t n = 0;

    memset(fates, 0, sizeof fates);
    for (size_t i = 0; i < QUEUES; i++) {
        struct memory_dice dice = { .seed = seed + i };

        dice.per_mille[MEMORY_DOUBT_LANDED] = 20;
        dice.per_mille[MEMORY_DOUBT_NOT] = 20;
        dice.per_mille[MEMORY_AWAY] = 10;
        w.store[i] = memory_store_new(w.disk);
        w.q[i] = open_one(&w, i, proxies, kills && i == 0);
        memory_store_dice(w.store[i], &dice);
    }
    enter_rounds(&w);
    for (size_t i = 0; i < QUEUES * (TAKERS + 1); i++, n++) {
        task[n] = (struct task){ .w = &w, .queue = i % QUEUES, .seed = seed * 31 + i };
        crew_go(&task[n].thread, i < QUEUES ? produce : consume, &task[n]);
    }
    int64_t end = crew_now_ns() + STALL;
    unsigned seen = 0;
    while (!all_acked(&w)) {
        if (atomic_load(&w.acked) != seen) {
            seen = atomic_load(&w.acked);
            end = crew_now_ns() + STALL;
        }
        CREW_CHECK(crew_now_ns() < end, ": %u acked, %zu left", atomic_load(&w.acked),
                   memory_disk_jobs(w.disk));
        if (kills && atomic_load(&w.acked) > JOBS / 3 && !is_dead(&w, 0)) {
            atomic_fetch_or(&w.dead, 1u);
            memory_store_crash(w.store[0]);
        }
        /* What a dead process was told is not counted, but it may have been so. */
        for (uint32_t i = 0; kills && is_dead(&w, 0) && i < JOBS; i++) {
            if (atomic_load(&fates[i].had) > 0 && memory_disk_jobs(w.disk) == ROUNDS)
                atomic_store(&fates[i].sure, atomic_load(&fates[i].acked));
        }
        crew_sleep(DUE_MS(2));
    }
    cancel_rounds(&w);
    atomic_store(&w.stop, true);
    for (size_t i = 0; i < n; i++)
        CREW_CHECK(crew_join(&task[i].thread) == 0, ": a thread has failed");
    check_rounds();
    for (size_t i = 0; i < QUEUES; i++)
        close_one(w.q[i], is_dead(&w, i));
    const char *wrong = memory_disk_wrong(w.disk);
    CREW_CHECK(wrong == NULL, ": %s", wrong);
    memory_disk_free(w.disk);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t seed = o.seed;

    crew_watchdog("thread_share", 280);
    do {
        for (enum due_proxies proxies = DUE_PROXIES_ADAPTIVE; proxies <= DUE_PROXIES_ALWAYS;
             proxies++) {
            crew_doing(crew_mode_names[proxies]);
            round_of(proxies, seed++, false);
            round_of(proxies, seed++, true);
        }
    } while (crew_now_ns() < end);
    return 0;
}
