/* thread_share_groups.c - jobs of a few groups in one queue, of four processes: queues of this
 * program with threads that put, take and meddle, on a store that fails now and then.  One of the
 * four dies in the middle, without a word.
 *
 * Of one group never two jobs are out at once on a lease that is good, each job that was accepted
 * is acked once, and in the end no group is stuck and nothing is left.
 */
#include <stdio.h>
#include <string.h>

#include "lab/crew.h"
#include "lab/memory_store.h"
#include "lab/take.h"

#if defined(__SANITIZE_THREAD__)
#define JOBS 800u
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define JOBS 800u
#endif
#endif
#ifndef JOBS
#define JOBS 2400u
#endif

#define QUEUES 4
#define TAKERS 2  /* of each queue */
#define GROUPS 7u /* and some jobs have none */
#define LEASE  DUE_MS(400)
#define STALL  DUE_S(30) /* while nothing ends */

struct fate {
    due_id id;
    atomic_uint sure;  /* it was accepted */
    atomic_uint ended; /* somebody was told so: acked, or cancelled */
    atomic_uint maybe; /* it may have ended, and nobody was told */
};

static struct fate fates[JOBS];

/* Who has a job of the group, and until when that may be good, monotonic. */
struct turn {
    pthread_mutex_t lock;
    uint64_t token; /* 0: nobody */
    int64_t until_ns;
    size_t queue;
};

static struct turn turns[GROUPS];

struct world {
    struct memory_disk *disk;
    due_store *store[QUEUES];
    due_queue *q[QUEUES];
    atomic_uint next;
    atomic_uint puts; /* queues with a producer that is not through: bits */
    atomic_uint ended;
    atomic_bool dead; /* the first queue */
    atomic_bool stop;
};

struct task {
    struct world *w;
    size_t queue;
    uint64_t seed;
    int64_t asked_ns; /* when it last asked for jobs: what it has got was good then, or later */
    struct crew_thread thread;
};

static bool is_dead(const struct task *t)
{
    return t->queue == 0 && atomic_load(&t->w->dead);
}

static uint32_t group_of(uint32_t n)
{
    return n % (GROUPS + 2);
}

static int produce(void *arg)
{
    struct task *t = arg;
    uint32_t n;

    while ((n = atomic_fetch_add(&t->w->next, 1)) < JOBS && !is_dead(t)) {
        uint32_t group = group_of(n);
        due_extra more = { DUE_EXTRA_INIT, .group = &group, .group_len = sizeof group };
        due_spec spec = { DUE_SPEC_INIT, .data = &n, .len = sizeof n,
                          .delay_ns = DUE_US((int64_t)crew_below(&t->seed, 3000)),
                          .more = group < GROUPS ? &more : NULL };

        int rc = due_enqueue(t->w->q[t->queue], &spec, DUE_S(20), &fates[n].id);
        if (rc == 0 && !is_dead(t))
            atomic_store(&fates[n].sure, 1);
        else
            CREW_CHECK(is_dead(t) || rc == DUE_EINDOUBT, ": an enqueue answers %d", rc);
    }
    atomic_fetch_and(&t->w->puts, ~(1u << t->queue));
    return 0;
}

/* Handed out: nobody else may have one of its group, unless that lease is over; or this one, since
 * others of its batch came first. */
static void begins(struct task *t, const due_job *job, uint32_t n)
{
    struct turn *turn = &turns[group_of(n) % GROUPS];

    int64_t until_ns = t->asked_ns + LEASE / 4; /* it is held for longer than that */

    if (group_of(n) >= GROUPS)
        return;
    pthread_mutex_lock(&turn->lock);
    if (crew_now_ns() < until_ns) {
        bool free = turn->token == 0 || crew_now_ns() >= turn->until_ns ||
                    (turn->queue == 0 && atomic_load(&t->w->dead));
        CREW_CHECK(free, ": two of group %u", group_of(n));
        turn->token = job->token;
        turn->until_ns = until_ns;
        turn->queue = t->queue;
    }
    pthread_mutex_unlock(&turn->lock);
}

/* To be said before the queue is told. */
static void ends(const due_job *job, uint32_t n)
{
    struct turn *turn = &turns[group_of(n) % GROUPS];

    if (group_of(n) >= GROUPS)
        return;
    pthread_mutex_lock(&turn->lock);
    if (turn->token == job->token)
        turn->token = 0;
    pthread_mutex_unlock(&turn->lock);
}

static void ended(struct task *t, uint32_t n)
{
    CREW_CHECK(atomic_fetch_add(&fates[n].ended, 1) == 0, ": job %u has ended twice", n);
    atomic_fetch_add(&t->w->ended, 1);
}

static void had(struct task *t, due_job *job)
{
    uint32_t n;

    CREW_CHECK(job->len == sizeof n, ": %zu bytes", job->len);
    memcpy(&n, job->data, sizeof n);
    CREW_CHECK(n < JOBS, ": job %u", n);
    if (is_dead(t)) {
        atomic_store(&fates[n].maybe, 1); /* it may be its taker's, or another's by now */
        due_job_done(job);
        return;
    }
    begins(t, job, n);
    bool nacks = crew_below(&t->seed, 12) == 0;
    if (crew_below(&t->seed, 8) == 0)
        crew_sleep(DUE_US(200));
    ends(job, n);
    int rc = nacks ? due_nack(job, DUE_US(500)) : due_ack(job);
    if (rc != 0 && job->queue != NULL)
        due_job_done(job);
    CREW_CHECK(rc == 0 || rc == DUE_ESTALE || rc == DUE_EINDOUBT || is_dead(t), ": an answer: %d",
               rc);
    if (rc == 0 && !nacks && !is_dead(t))
        ended(t, n);
    else if (!nacks && rc != DUE_ESTALE)
        atomic_store(&fates[n].maybe, 1);
}

static int consume(void *arg)
{
    struct task *t = arg;
    due_job jobs[4];

    while (!atomic_load(&t->w->stop) && !is_dead(t)) {
        size_t max = 1 + (size_t)crew_below(&t->seed, 4);
        t->asked_ns = crew_now_ns();
        int rc = take_leased_some(t->w->q[t->queue], NULL, 0, jobs, max, LEASE, DUE_MS(20));

        for (int i = 0; i < rc; i++)
            had(t, &jobs[i]);
    }
    return 0;
}

/* As due_cancel(), with the bytes or without. */
static int cancel_one(struct task *t, due_queue *q, uint32_t n)
{
    bool wants = crew_below(&t->seed, 2) == 0;
    uint32_t bytes = n;
    due_job job;

    int rc = due_cancel(q, fates[n].id, wants ? &job : NULL);
    if (!wants || rc != 0)
        return rc;
    CREW_CHECK(job.len == sizeof bytes, ": %zu bytes", job.len);
    memcpy(&bytes, job.data, sizeof bytes);
    CREW_CHECK(bytes == n, ": the bytes of %u, not of %u", bytes, n);
    due_job_done(&job);
    return 0;
}

/* Jobs that wait are moved, or cancelled. */
static int meddle(void *arg)
{
    struct task *t = arg;
    due_queue *q = t->w->q[t->queue];

    while (!atomic_load(&t->w->stop)) {
        uint32_t n = (uint32_t)crew_below(&t->seed, JOBS);

        if (atomic_load(&fates[n].sure) && !atomic_load(&fates[n].ended)) {
            int rc = crew_below(&t->seed, 3) == 0 ? cancel_one(t, q, n) : 1;

            if (rc == 0)
                ended(t, n);
            if (rc == DUE_EINDOUBT || rc == DUE_EBUSY) /* who has it ends it then */
                atomic_store(&fates[n].maybe, 1);
            if (rc == 1)
                (void)due_reschedule(q, fates[n].id,
                                     due_now(q) + DUE_US((int64_t)crew_below(&t->seed, 4000)));
        }
        crew_sleep(DUE_US(300));
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
                      .prefetch_max = 1u << (2 * i),
                      .store_timeout_ns = dies ? DUE_S(2) : DUE_S(20) };

    return crew_open(&o);
}

static bool all_ended(const struct world *w)
{
    bool all = (atomic_load(&w->puts) & (atomic_load(&w->dead) ? ~1u : ~0u)) == 0;

    for (uint32_t n = 0; all && n < JOBS; n++)
        all = !atomic_load(&fates[n].sure) || atomic_load(&fates[n].ended) ||
              atomic_load(&fates[n].maybe);
    return all && memory_disk_jobs(w->disk) == 0;
}

static void round_of(enum due_proxies proxies, uint64_t seed, bool kills)
{
    struct world w = { .disk = memory_disk_new(NULL), .puts = (1u << QUEUES) - 1 };
    struct task task[QUEUES * (TAKERS + 1) + 1];
    size_t n = 0;

    memset(fates, 0, sizeof fates);
    for (size_t i = 0; i < GROUPS; i++)
        turns[i] = (struct turn){ .lock = PTHREAD_MUTEX_INITIALIZER };
    for (size_t i = 0; i < QUEUES; i++) {
        struct memory_dice dice = { .seed = seed + i };

        dice.per_mille[MEMORY_DOUBT_LANDED] = 20;
        dice.per_mille[MEMORY_DOUBT_NOT] = 20;
        dice.per_mille[MEMORY_AWAY] = 10;
        w.store[i] = memory_store_new(w.disk);
        w.q[i] = open_one(&w, i, proxies, kills && i == 0);
        memory_store_dice(w.store[i], &dice);
    }
    for (size_t i = 0; i < sizeof task / sizeof *task; i++, n++) {
        task[n] = (struct task){ .w = &w, .queue = i % QUEUES, .seed = seed * 31 + i };
        if (i == QUEUES * (TAKERS + 1))
            task[n].queue = 1;
        crew_go(&task[n].thread,
                i < QUEUES                  ? produce
                : i < QUEUES * (TAKERS + 1) ? consume
                                            : meddle,
                &task[n]);
    }
    int64_t end = crew_now_ns() + STALL;
    unsigned seen = 0;
    while (!all_ended(&w)) {
        if (atomic_load(&w.ended) != seen) {
            seen = atomic_load(&w.ended);
            end = crew_now_ns() + STALL;
        }
        CREW_CHECK(crew_now_ns() < end, ": %u have ended, %zu are left", atomic_load(&w.ended),
                   memory_disk_jobs(w.disk));
        if (kills && atomic_load(&w.ended) > JOBS / 3 && !atomic_load(&w.dead)) {
            atomic_store(&w.dead, true);
            memory_store_crash(w.store[0]);
        }
        crew_sleep(DUE_MS(2));
    }
    atomic_store(&w.stop, true);
    for (size_t i = 0; i < n; i++)
        CREW_CHECK(crew_join(&task[i].thread) == 0, ": a thread has failed");
    for (size_t i = 0; i < QUEUES; i++) {
        bool died = i == 0 && atomic_load(&w.dead);

        CREW_CHECK(due_close(w.q[i], DUE_CLOSE_DISCARD, died ? DUE_MS(50) : DUE_S(20)) == 0,
                   ": it does not close");
        CREW_CHECK(due_free(w.q[i]) == 0, ": it is not freed");
    }
    const char *wrong = memory_disk_wrong(w.disk);
    CREW_CHECK(wrong == NULL, ": %s", wrong);
    memory_disk_free(w.disk);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t seed = o.seed;

    crew_watchdog("thread_share_groups", 280);
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
