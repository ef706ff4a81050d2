/* self.c - the simulation is itself at fault, on purpose, and must say so. */
#include "self.h"

#include <inttypes.h>
#include <stdio.h>

#include "run.h"

#define SEEDS_TWICE 200
#define SEEDS_MOST  20000

static const char *const names[PLANTS] = {
    [PLANT_LOST_WAKE_UP] = "a wake-up is lost",
    [PLANT_EARLY] = "a job is early by 1 ns",
    [PLANT_WRONG_MODEL] = "the model is wrong",
    [PLANT_LOST_CONFIRMATION] = "a confirmation is lost",
    [PLANT_NO_FENCE] = "no fence",
    [PLANT_EARLY_TAKEOVER] = "an early takeover",
    [PLANT_OTHER_NAME] = "another queue's jobs",
    [PLANT_NO_SETTINGS] = "forgotten pauses",
    [PLANT_UNTOLD] = "an end told to nobody",
};

static bool find(enum machine_plant plant)
{
    const struct plan_wishes wishes = { .plant = plant };
    static struct plan plan;
    struct run_result r = { .failed = false };
    uint64_t seed = 0;

    while (!r.failed && seed < SEEDS_MOST) {
        plan_draw(&plan, ++seed, &wishes);
        run(&plan, false, &r);
    }
    printf("%-24s %s after %" PRIu64 " seeds: %s\n", names[plant], r.failed ? "found" : "NOT FOUND",
           seed, r.failure);
    return r.failed;
}

static bool same_twice(void)
{
    const struct plan_wishes wishes = { .without = 0 };
    static struct plan plan;
    struct run_result first;
    struct run_result second;

    for (uint64_t seed = 1; seed <= SEEDS_TWICE; seed++) {
        plan_draw(&plan, seed, &wishes);
        run(&plan, false, &first);
        run(&plan, false, &second);
        if (first.hash == second.hash && first.steps == second.steps)
            continue;
        printf("seed %" PRIu64 " gives two runs\n", seed);
        return false;
    }
    printf("%d seeds give the same run twice\n", SEEDS_TWICE);
    return true;
}

bool self_test(void)
{
    bool good = same_twice();

    for (enum machine_plant plant = PLANT_NOTHING + 1; plant < PLANTS; plant++)
        good = find(plant) && good;
    return good;
}
