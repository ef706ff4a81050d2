/* simulate.c - the whole library in one thread, from one seed: run after run, each with another
 * seed; what fails is made shorter and printed.
 *
 *     simulate [--seed N] [--seeds N] [--steps N] [--seconds N] [--threads N] [--verbs N]
 *              [--without KIND]... [--schedule N] [--only THREAD.VERB,...] [--print] [--long]
 *              [--twice] [--each]
 *     simulate --list | --self
 *
 * It ends after so many seeds, steps, or seconds of a processor; without any of them after one
 * seed.  "--seed new" begins with one that nobody has seen.  --twice runs each seed twice and
 * compares; --each prints the hash of each.  --long does not make a failing run shorter.  --list
 * says what can be left out; --self looks whether faults of the simulation itself are found.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run.h"
#include "self.h"
#include "shorten.h"

struct arguments {
    uint64_t seed;
    uint64_t seeds;
    uint64_t steps;
    double seconds;
    bool print;
    bool twice;
    bool each;
    bool whole;
    struct plan_wishes wishes;
};

static unsigned char skip[SHORTEN_VERBS];

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- Arguments ---- */

static void list_kinds(void)
{
#define LIST_KIND(kind, name, every, about) printf("%-12s one in %d  %s\n", name, every, about);
    PLAN_KINDS(LIST_KIND)
#undef LIST_KIND
}

static bool read_only(struct arguments *a, const char *text)
{
    memset(skip, 1, sizeof skip);
    a->wishes.skip = skip;
    for (char *at = (char *)(uintptr_t)text; *at != '\0'; at += *at == ',') {
        unsigned long t = strtoul(at, &at, 10);
        unsigned long n = *at == '.' ? strtoul(at + 1, &at, 10) : PLAN_VERBS_MAX;

        if (t < 1 || t > PLAN_THREADS_MAX || n >= PLAN_VERBS_MAX || (*at != ',' && *at != '\0'))
            return false;
        skip[(t - 1) * PLAN_VERBS_MAX + n] = 0;
    }
    return true;
}

static uint64_t fresh_seed(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t state = (uint64_t)t.tv_sec * 1000000007 + (uint64_t)t.tv_nsec;
    return model_random(&state) % 1000000000;
}

/* An option with a value. */
static bool read_value(struct arguments *a, const char *name, const char *value)
{
    uint64_t n = strtoull(value, NULL, 10);
    enum plan_kind kind;

    if (strcmp(name, "--seed") == 0)
        a->seed = strcmp(value, "new") == 0 ? fresh_seed() : n;
    else if (strcmp(name, "--seeds") == 0)
        a->seeds = n;
    else if (strcmp(name, "--steps") == 0)
        a->steps = n;
    else if (strcmp(name, "--seconds") == 0)
        a->seconds = strtod(value, NULL);
    else if (strcmp(name, "--threads") == 0)
        a->wishes.threads = (unsigned)n;
    else if (strcmp(name, "--verbs") == 0)
        a->wishes.verbs = (unsigned)n;
    else if (strcmp(name, "--schedule") == 0)
        a->wishes.schedule = n;
    else if (strcmp(name, "--only") == 0)
        return read_only(a, value);
    else if (strcmp(name, "--without") == 0 && plan_kind_by_name(value, &kind))
        a->wishes.without |= UINT64_C(1) << kind;
    else
        return false;
    return true;
}

static bool read_arguments(struct arguments *a, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--print") == 0)
            a->print = a->whole = true;
        else if (strcmp(argv[i], "--twice") == 0)
            a->twice = true;
        else if (strcmp(argv[i], "--each") == 0)
            a->each = true;
        else if (strcmp(argv[i], "--long") == 0)
            a->whole = true;
        else if (i + 1 < argc && read_value(a, argv[i], argv[i + 1]))
            i++;
        else
            return false;
    }
    return true;
}

/* ---- Runs ---- */

static void print_kinds(const struct plan *p)
{
    printf("kinds left:");
    for (unsigned k = 0; k < KINDS; k++)
        if (plan_has(p, (enum plan_kind)k))
            printf(" %s", plan_names[k]);
    printf("\n");
}

static int show_failure(const struct arguments *a, uint64_t seed, const struct run_result *failed)
{
    static struct plan plan;
    struct plan_wishes w = a->wishes;
    struct run_result r;

    printf("FAILED    seed %" PRIu64 ", step %" PRIu64 ": %s\n", seed, failed->steps,
           failed->failure);
    if (!a->whole) {
        shorten(seed, &w, failed->failure);
        plan_draw(&plan, seed, &w);
        print_kinds(&plan);
        printf("shortest history:\n");
        run(&plan, true, &r);
        printf("FAILED    %s\n", r.failure);
    }
    printf("again with: ");
    shorten_print_command(seed, &w);
    return 1;
}

struct sum {
    uint64_t seeds;
    uint64_t steps;
    uint64_t hash;
};

/* Answers whether it is as it should be. */
static bool try_seed(const struct arguments *a, uint64_t seed, struct sum *sum)
{
    static struct plan plan;
    struct run_result r;
    struct run_result again;

    plan_draw(&plan, seed, &a->wishes);
    run(&plan, a->print, &r);
    sum->seeds++;
    sum->steps += r.steps;
    sum->hash = (sum->hash ^ r.hash) * UINT64_C(0x100000001b3);
    if (a->each)
        printf("seed %" PRIu64 "  steps %" PRIu64 "  hash %016" PRIx64 "\n", seed, r.steps, r.hash);
    if (r.failed)
        return show_failure(a, seed, &r) == 0;
    if (!a->twice)
        return true;
    run(&plan, false, &again);
    if (again.hash == r.hash && again.steps == r.steps)
        return true;
    printf("FAILED    seed %" PRIu64 ": another run of it is another one\n", seed);
    return false;
}

int main(int argc, char **argv)
{
    struct arguments a = { .seed = 1 };
    struct sum sum = { 0 };
    double begun_s = now_s();

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list_kinds();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--self") == 0)
        return self_test() ? 0 : 1;
    if (!read_arguments(&a, argc, argv)) {
        fprintf(stderr, "simulate: not understood; see the head of simulate.c\n");
        return 2;
    }
    if (a.seconds > 0) {
        printf("simulate  from seed %" PRIu64 " on\n", a.seed);
        fflush(stdout); /* should it hang */
    }
    bool ends = a.seeds != 0 || a.steps != 0 || a.seconds > 0;
    do {
        if (!try_seed(&a, a.seed + sum.seeds, &sum))
            return 1;
    } while (ends && (a.seeds == 0 || sum.seeds < a.seeds) &&
             (a.steps == 0 || sum.steps < a.steps) &&
             (a.seconds <= 0 || now_s() < begun_s + a.seconds));
    printf("simulate  seed %" PRIu64 "  seeds %" PRIu64 "  steps %" PRIu64
           "  %.1f million a second  hash %016" PRIx64 "\n",
           a.seed, sum.seeds, sum.steps, (double)sum.steps / (now_s() - begun_s) / 1e6, sum.hash);
    return 0;
}
