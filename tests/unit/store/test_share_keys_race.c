/* One queue for many processes: several who put in, change and take over a key at once. */
#include <pthread.h>

#include "lab/mall_keys.h"

#define RACERS 4
#define ROUNDS 200

struct race {
    struct mall m;
    pthread_barrier_t line;
    int won[ROUNDS];
};

struct racer {
    struct race *race;
    int number;
};

static void *run(void *arg)
{
    struct racer *r = arg;
    struct race *race = r->race;
    struct lab *lab = &race->m.lab[r->number % 2];
    due_id id;
    due_id other;

    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&race->line);
        int rc = put_at(lab, 1000, "tea", KEY(), &id);
        if (rc == 0)
            __atomic_add_fetch(&race->won[i], 1, __ATOMIC_RELAXED);
        else
            cr_expect_eq(rc, DUE_EEXIST, "%s", due_error_name(rc));
        cr_expect_eq(due_id_of_key(lab->q, "k", 1, &other), 0);
        cr_expect(due_id_equal(id, other), "whoever lost was told who won");
        pthread_barrier_wait(&race->line);
        if (rc == 0)
            cr_expect_eq(due_cancel_key(lab->q, "k", 1, NULL), 0);
    }
    return NULL;
}

MALL_TEST(share_keys_race, of_several_at_once_exactly_one_has_it)
{
    struct race race = { .m = mall_make(2) };
    struct racer racers[RACERS];
    pthread_t threads[RACERS];

    pthread_barrier_init(&race.line, NULL, RACERS);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){ &race, i };
        cr_assert_eq(pthread_create(&threads[i], NULL, run, &racers[i]), 0);
    }
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < ROUNDS; i++)
        cr_expect_eq(race.won[i], 1, "round %d: %d", i, race.won[i]);
    cr_expect_eq(memory_disk_jobs(race.m.disk), 0u);
    pthread_barrier_destroy(&race.line);
    mall_close(&race.m);
}

#define CHANGES 100

/* Each puts in, changes and takes over what the others do; one of them works off. */
static void *change_on(void *arg)
{
    struct racer *r = arg;
    struct lab *lab = &r->race->m.lab[r->number % 2];
    due_job job;

    for (int i = 0; i < CHANGES; i++) {
        due_extra more = KEY(.on_key = others[(i + r->number) % 3]);

        cr_expect_eq(put_at(lab, i % 4 == 0 ? 0 : 1000 + i, "tea", more, NULL), 0);
        if (r->number == 0 && take_leased(lab->q, &job, 100, 0) == 0)
            cr_expect_eq(i % 2 == 0 ? due_ack(&job) : due_nack(&job, 500), 0);
    }
    return NULL;
}

MALL_TEST(share_keys_race, whoever_changes_at_once_gets_on_and_one_job_has_the_key)
{
    struct race race = { .m = mall_make(2) };
    struct racer racers[RACERS];
    pthread_t threads[RACERS];
    due_id id;

    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){ &race, i };
        cr_assert_eq(pthread_create(&threads[i], NULL, change_on, &racers[i]), 0);
    }
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    int rc = due_id_of_key(race.m.lab[0].q, "k", 1, &id);
    cr_expect(rc == 0 || rc == DUE_ENOENT);
    cr_expect_eq(put_at(&race.m.lab[1], 9000, "cake", KEY(), NULL), rc == 0 ? DUE_EEXIST : 0);
    cr_expect_eq(due_cancel_key(race.m.lab[0].q, "k", 1, NULL), 0);
    cr_expect(is_free(&race.m.lab[1]));
    mall_close(&race.m);
}

/* Several change at once what was claimed ahead here: one of them gives it back, and the others
 * wait for that. */
static void *replace_on(void *arg)
{
    struct racer *r = arg;
    struct lab *lab = &r->race->m.lab[1];

    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&r->race->line);
        cr_expect_eq(put_at(lab, 1000, "cake", KEY(.on_key = DUE_KEY_REPLACE), NULL), 0);
        pthread_barrier_wait(&r->race->line);
    }
    return NULL;
}

MALL_TEST(share_keys_race, a_job_that_is_on_its_way_back_is_not_robbed)
{
    struct race race = { .m = mall_make(2) };
    struct racer racers[RACERS];
    pthread_t threads[RACERS];
    due_job job;

    race.m.lab[0].state->own_discard = true; /* of what was cleared in the store */
    pthread_barrier_init(&race.line, NULL, RACERS + 1);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){ &race, i };
        cr_assert_eq(pthread_create(&threads[i], NULL, replace_on, &racers[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        cr_expect_eq(put_at(&race.m.lab[0], 0, "tea", KEY(), NULL), 0);
        cr_expect_eq(due_dequeue(race.m.lab[1].q, &job, 0), DUE_EAGAIN);
        while (lab_stats(&race.m.lab[1]).ready == 0)
            crew_sleep(DUE_US(100));
        pthread_barrier_wait(&race.line);
        pthread_barrier_wait(&race.line);
        cr_expect_eq(memory_disk_jobs(race.m.disk), 1u, "round %d", i);
        cr_expect_eq(due_clear(race.m.lab[0].q, DUE_ALL_TOPICS, NULL), 0);
    }
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&race.line);
    mall_close(&race.m);
}
