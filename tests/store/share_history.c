/* share_history.c - processes that do anything at random, and a model that must agree. */
#include <pthread.h>

#include "store/share_frame.h"
#include "store/share_replay.h"
#include "store/share_steps.h"

#define STEPS 600

static void run_history(struct sharing *t, uint64_t seed)
{
    struct stepping processes[4] = { { .n = 0 } };
    struct replay replay = { .grain_ns = t->maker->store.grain_ns,
                             .capacity = t->capacity,
                             .by_rank = t->by_rank };

    if (!suite_has(&t->base, t->maker->one_time, "an exchange has more than one time"))
        return;
    t->base.random = seed;
    t->replay = &replay;
    if (sharing_all_join(t, 4))
        for (int i = 0; i < STEPS && share_step(t, processes, 4); i++)
            ;
    const char *wrong = t->base.failed ? NULL : replay_check(&replay);
    (void)suite_check(&t->base, wrong == NULL, __FILE__, __LINE__, "seed %llu: %s",
                      (unsigned long long)seed, wrong != NULL ? wrong : "");
    replay_free(&replay);
    t->replay = NULL;
}

/* ---- At once ---- */

#define THREADS 3

struct runner {
    pthread_t thread;
    struct sharing t;
    struct replay replay;
    struct stepping process;
};

static void *run_alone(void *arg)
{
    struct runner *r = arg;

    for (int i = 0; i < STEPS / 2 && share_step(&r->t, &r->process, 1); i++)
        ;
    return NULL;
}

static void join_runner(struct sharing *t, struct runner *r, uint64_t seed)
{
    sharing_begin(&r->t, t->maker, t->base.test);
    memcpy(r->t.base.queue, t->base.queue, sizeof t->base.queue);
    r->t.base.random = seed;
    r->replay.grain_ns = t->maker->store.grain_ns;
    r->replay.capacity = r->t.capacity = t->capacity;
    r->replay.by_rank = r->t.by_rank = t->by_rank;
    (void)suite_answers(&t->base, sharing_join(&r->t, 0), 0, __FILE__, __LINE__, "join");
    r->t.replay = &r->replay;
}

/* Each process in a thread of its own: the stamps tell what happened first. */
static void threads_at_once(struct sharing *t)
{
    if (!suite_has(&t->base, t->maker->one_time, "an exchange has more than one time"))
        return;
    struct runner *runners = calloc(THREADS, sizeof *runners);
    struct replay all = { .grain_ns = t->maker->store.grain_ns,
                          .capacity = t->capacity,
                          .by_rank = t->by_rank };

    SHARE_CHECK(t, runners != NULL, "memory");
    for (int i = 0; i < THREADS; i++)
        join_runner(t, &runners[i], 5 + (uint64_t)i);
    for (int i = 0; i < THREADS && !t->base.failed; i++)
        if (pthread_create(&runners[i].thread, NULL, run_alone, &runners[i]) != 0)
            abort();
    for (int i = 0; i < THREADS && !t->base.failed; i++)
        pthread_join(runners[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        t->base.failed |= runners[i].t.base.failed;
        replay_add(&all, &runners[i].replay);
    }
    const char *wrong = t->base.failed ? NULL : replay_check(&all);
    (void)suite_check(&t->base, wrong == NULL, __FILE__, __LINE__, "%s",
                      wrong != NULL ? wrong : "");
    for (int i = 0; i < THREADS; i++) {
        sharing_end(&runners[i].t);
        replay_free(&runners[i].replay);
    }
    replay_free(&all);
    free(runners);
}

static void first_history(struct sharing *t)
{
    run_history(t, 1);
}

static void second_history(struct sharing *t)
{
    run_history(t, 2);
}

static void third_history(struct sharing *t)
{
    run_history(t, 77);
}

static void full_history(struct sharing *t)
{
    t->capacity = 12;
    run_history(t, 5);
}

static void full_threads(struct sharing *t)
{
    t->capacity = 9;
    threads_at_once(t);
}

static void ranked_history(struct sharing *t)
{
    t->by_rank = true;
    run_history(t, 1);
}

static void other_ranked_history(struct sharing *t)
{
    t->by_rank = true;
    run_history(t, 4711);
}

static void full_ranked_history(struct sharing *t)
{
    t->by_rank = true;
    t->capacity = 12;
    run_history(t, 9);
}

static void ranked_threads(struct sharing *t)
{
    t->by_rank = true;
    threads_at_once(t);
}

const struct suite_test_shared share_history_tests[] = {
    { "history: replayed, first seed", first_history },
    { "history: replayed, second seed", second_history },
    { "history: replayed, third seed", third_history },
    { "history: replayed, of threads at once", threads_at_once },
    { "history: replayed, in a full queue", full_history },
    { "history: replayed, of threads in a full queue", full_threads },
    { "history: replayed, by priority", ranked_history },
    { "history: replayed, by priority, another seed", other_ranked_history },
    { "history: replayed, by priority in a full queue", full_ranked_history },
    { "history: replayed, by priority, of threads at once", ranked_threads },
    { NULL, NULL },
};
