/* thread_keys.c - eight threads enqueue the same few keys, with every policy, while others take,
 * cancel and bury.
 *
 * What must hold: of each key one live job at most has it, and every job that came in leaves once.
 * With DUE_KEY_REFUSE alone, no two jobs of a key are live at a time at all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/crew.h"
#include "lab/take.h"

#define THREADS 8
#define KEYS    5

struct world {
    due_queue *q;
    bool refuse_only;
    atomic_bool stop;
    atomic_int live[KEYS]; /* with refuse_only: jobs between their enqueue and their end */
    atomic_uint changed;
    atomic_uint refused;
};

struct actor {
    struct crew_thread thread;
    struct world *w;
    uint64_t seed;
};

/* The key of a job is its payload, so that whoever has the job knows. */
static due_spec spec_of(uint8_t *key, due_extra *more, uint64_t *seed, bool refuse_only)
{
    due_spec s = { DUE_SPEC_INIT, .data = key, .len = 1, .more = more };

    *more = (due_extra){ DUE_EXTRA_INIT, .key = key, .key_len = 1 };
    *key = (uint8_t)crew_below(seed, KEYS);
    s.delay_ns = crew_below(seed, 3) == 0 ? DUE_US(20) : 0;
    if (!refuse_only)
        more->on_key = (enum due_key_policy)crew_below(seed, 4);
    return s;
}

static void put(struct world *w, uint64_t *seed)
{
    uint8_t key;
    due_extra more;
    due_spec s = spec_of(&key, &more, seed, w->refuse_only);
    due_id id;
    int rc = due_enqueue(w->q, &s, 0, &id);

    CREW_CHECK(rc == 0 || (rc == DUE_EEXIST && more.on_key == DUE_KEY_REFUSE), " %d", rc);
    if (rc == DUE_EEXIST) {
        atomic_fetch_add(&w->refused, 1);
        return;
    }
    atomic_fetch_add(&w->changed, 1);
}

static void put_batch(struct world *w, uint64_t *seed)
{
    uint8_t keys[6];
    due_extra more[6];
    due_spec s[6];

    for (int i = 0; i < 6; i++)
        s[i] = spec_of(&keys[i], &more[i], seed, w->refuse_only);
    int rc = due_enqueue_batch(w->q, s, 6, 0, NULL);
    CREW_CHECK(rc > 0 || rc == DUE_EEXIST, " %d", rc);
}

/* A job was taken: nobody else has its key while the lease lasts, if all are refused. */
static void handle(struct world *w, due_job *job, uint64_t *seed)
{
    int key = *(const uint8_t *)job->data;

    unsigned how = (unsigned)crew_below(seed, 8);
    uint8_t bytes = (uint8_t)key;
    due_id id;

    if (w->refuse_only) {
        CREW_CHECK(atomic_fetch_add(&w->live[key], 1) == 0, ": two jobs of one key are live");
        CREW_CHECK(due_id_of_key(w->q, &bytes, 1, &id) == 0 && due_id_equal(id, job->id),
                   ": a job has lost its key");
        atomic_fetch_sub(&w->live[key], 1);
    }
    int rc = how == 0 ? due_nack(job, 0) : how == 1 ? due_bury(job, NULL) : due_ack(job);
    CREW_CHECK(rc == 0, " %d", rc);
}

static void take(struct world *w, uint64_t *seed)
{
    due_job job;

    if (crew_below(seed, 4) != 0) {
        if (take_leased(w->q, &job, DUE_S(100), 0) == 0)
            handle(w, &job, seed);
    } else if (due_dequeue(w->q, &job, 0) == 0) {
        due_job_done(&job);
    }
}

static void name(struct world *w, uint64_t *seed)
{
    uint8_t key = (uint8_t)crew_below(seed, KEYS);
    due_id id;
    int rc = due_id_of_key(w->q, &key, 1, &id);

    CREW_CHECK(rc == 0 || rc == DUE_ENOENT, " %d", rc);
    rc = due_cancel_key(w->q, &key, 1, NULL);
    CREW_CHECK(rc == 0 || rc == DUE_ENOENT || rc == DUE_EBUSY, " %d", rc);
}

static int act(void *arg)
{
    struct actor *a = arg;

    while (!atomic_load(&a->w->stop)) {
        switch (crew_below(&a->seed, 16)) {
        case 0:
            name(a->w, &a->seed);
            break;
        case 1:
            CREW_CHECK(due_kick_all(a->w->q, DUE_ALL_TOPICS, NULL) == 0, "");
            break;
        case 2:
            CREW_CHECK(due_clear_dead(a->w->q, DUE_ALL_TOPICS, NULL) == 0, "");
            break;
        case 3:
            put_batch(a->w, &a->seed);
            break;
        case 4:
        case 5:
        case 6:
        case 7:
        case 8:
            take(a->w, &a->seed);
            break;
        default:
            put(a->w, &a->seed);
            break;
        }
    }
    return 0;
}

/* Nobody acts any more: each key that is found is that of one job, and with refusals alone all jobs
 * have one each. */
static void check_at_rest(struct world *w)
{
    struct due_stats s;
    due_id ids[KEYS];
    size_t found = 0;

    CREW_CHECK(due_stats_read(w->q, &s) == 0, "");
    uint64_t held = s.waiting + s.dead + s.leased;
    if (w->refuse_only)
        CREW_CHECK(held <= KEYS, ": %llu jobs", (unsigned long long)held);
    for (uint8_t key = 0; key < KEYS; key++)
        found += due_id_of_key(w->q, &key, 1, &ids[found]) == 0;
    for (size_t i = 0; i < found; i++) {
        for (size_t k = 0; k < i; k++)
            CREW_CHECK(!due_id_equal(ids[i], ids[k]), ": two keys lead to one job");
    }
    if (w->refuse_only)
        CREW_CHECK(found == held, ": %zu keys of %llu jobs", found, (unsigned long long)held);
}

static void close_and_count(due_queue *q)
{
    struct due_stats s;

    CREW_CHECK(due_close(q, DUE_CLOSE_DISCARD, DUE_S(30)) == 0, "");
    CREW_CHECK(due_stats_read(q, &s) == 0, "");
    CREW_CHECK(s.enqueued == s.dequeued + s.cancelled + s.discarded + s.acked, "");
    CREW_CHECK(s.waiting == 0 && s.dead == 0 && s.leased == 0 && s.mended == 0, "");
    CREW_CHECK(due_free(q) == 0, "");
}

/* Has a key been had, and been refused?  On a busy machine that takes a while. */
static bool both(const struct world *w)
{
    return atomic_load(&w->changed) > 0 && atomic_load(&w->refused) > 0;
}

static void run(int mode, bool refuse_only, int64_t ns, uint64_t seed)
{
    due_options options = { DUE_OPTIONS_INIT, .proxies = (enum due_proxies)mode };
    struct world w = { .q = crew_open(&options), .refuse_only = refuse_only };
    struct actor actors[THREADS];

    crew_doing(crew_mode_names[mode]);
    for (int i = 0; i < THREADS; i++) {
        actors[i] = (struct actor){ .w = &w, .seed = seed * 100 + (uint64_t)i + 1 };
        crew_go(&actors[i].thread, act, &actors[i]);
    }
    crew_sleep(ns);
    for (int i = 0; i < 3000 && !both(&w); i++)
        crew_sleep(DUE_MS(10));
    atomic_store(&w.stop, true);
    for (int i = 0; i < THREADS; i++)
        CREW_CHECK(crew_join(&actors[i].thread) == 0, "");
    check_at_rest(&w);
    CREW_CHECK(both(&w), "");
    close_and_count(w.q);
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 1);

    for (int mode = 0; mode < 3; mode++) {
        run(mode, true, o.ns / 6, o.seed);
        run(mode, false, o.ns / 6, o.seed);
    }
    return 0;
}
