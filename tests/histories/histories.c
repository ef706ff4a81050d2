/* histories.c - many processes share one queue on a server, anything goes wrong, and each answer
 * has to be that of an obviously right model.
 *
 *     histories [--seconds S] [--seed N] [--faults LIST] [--round S] [--keep]
 *     histories --check FOLDER [--plant NAME] [--seed N]
 *     histories --plants 1 [--seed N]
 *
 * Each round has a redis-server of its own, whose log is synced at each write, and four processes
 * that use the store of libdue-redis as a queue does: they put jobs, claim them, end and extend
 * leases, cancel, move, amend, pause and limit, at random.  Each writes down what it asks before it
 * asks, and what it was answered with the server's stamp.  Meanwhile things happen to them, to
 * their connections and to the server: --faults, "none" or names with commas between, by default
 * all; the first rounds have one each, then come rounds with all of them.
 *
 * In the end all logs together, sorted by stamp, are what the server has done, and the model of
 * tests/store/share_model.c must give the same answer to each exchange.  What a process had begun
 * when it was killed was done if the server remembers it as the last answer of that lane: so
 * nothing is guessed.  Besides each stamp must be higher than those of what was answered before it
 * was asked, nothing that was confirmed may be missing, and when all is worked off nothing may be
 * left on the server.
 *
 * What is drawn comes from the seed, but processes race, so the same seed is not the same history.
 * The logs of a round that went wrong stay, and can be checked once more.  --plant plants a fault
 * in what was read, which the check has to see; --plants makes a history, and plants each of them
 * in turn.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "histories/calls.h"
#include "histories/histories.h"
#include "lab/crew.h"
#include "store/share_plant.h"

struct options {
    double seconds;
    double round;
    uint64_t seed;
    unsigned faults;
    const char *check;
    const char *plant;
    bool plants;
    bool keep;
    bool calls;
};

static _Noreturn void usage(void)
{
    fprintf(stderr,
            "usage: histories [--seconds S] [--seed N] [--faults LIST] [--round S] [--keep]\n"
            "       histories --check FOLDER [--plant NAME] [--seed N]\n"
            "       histories --plants 1 [--seed N]\n"
            "faults:");
    for (unsigned i = 0; history_fault_name(i) != NULL; i++)
        fprintf(stderr, " %s", history_fault_name(i));
    fprintf(stderr, "\n");
    for (const struct replay_planted *p = replay_plants; p->name != NULL; p++)
        fprintf(stderr, "plant %-8s %s\n", p->name, p->what);
    for (const struct replay_planted *p = call_plants; p->name != NULL; p++)
        fprintf(stderr, "plant %-8s %s, of calls\n", p->name, p->what);
    exit(2);
}

static unsigned all_faults(void)
{
    unsigned all = 0;

    for (unsigned i = 0; history_fault_name(i) != NULL; i++)
        all |= 1U << i;
    return all;
}

static unsigned read_faults(const char *list)
{
    unsigned faults = 0;

    if (strcmp(list, "none") == 0)
        return 0;
    for (size_t len; *list != '\0'; list += len + (list[len] == ',')) {
        len = strcspn(list, ",");
        unsigned one = history_fault(list, len);
        if (one == 0)
            usage();
        faults |= one;
    }
    return faults;
}

static struct options read_options(int argc, char **argv)
{
    struct options o = {
        .seconds = 40, .round = 3, .faults = all_faults(), .seed = (uint64_t)time(NULL)
    };

    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--keep") == 0) {
            o.keep = true;
            i--;
            continue;
        }
        if (strcmp(argv[i], "--calls") == 0) {
            o.calls = true;
            i--;
            continue;
        }
        if (i + 1 == argc)
            usage();
        if (strcmp(argv[i], "--seconds") == 0)
            o.seconds = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--round") == 0)
            o.round = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--seed") == 0)
            o.seed = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--faults") == 0)
            o.faults = read_faults(argv[i + 1]);
        else if (strcmp(argv[i], "--check") == 0)
            o.check = argv[i + 1];
        else if (strcmp(argv[i], "--plants") == 0)
            o.plants = true;
        else if (strcmp(argv[i], "--plant") == 0)
            o.plant = argv[i + 1];
        else
            usage();
    }
    return o;
}

static int check(const struct options *o)
{
    size_t exchanges = 0;
    const char *wrong = history_check(o->check, o->plant, o->seed, &exchanges);

    printf("histories: %zu exchanges: %s\n", exchanges, wrong != NULL ? wrong : "right");
    return wrong != NULL;
}

/* The n-th round has this one fault, or all of them: in each other one nothing is lost. */
static unsigned faults_of(unsigned faults, unsigned n)
{
    unsigned lossless = 0;

    for (unsigned i = 0; history_fault_name(i) != NULL; i++) {
        if ((faults >> i & 1) != 0 && n-- == 0)
            return 1U << i;
        if ((faults >> i & 1) != 0 && !history_fault_loses(1U << i))
            lossless |= 1U << i;
    }
    return n % 2 == 0 && lossless != 0 ? lossless : faults;
}

static unsigned count_of(unsigned faults)
{
    return (unsigned)__builtin_popcount(faults);
}

static void say(const struct history_round *r, size_t exchanges)
{
    printf("seed %" PRIu64 "%s%s: %zu exchanges", r->seed, r->keep ? " " : "",
           r->keep ? r->folder : "", exchanges);
    for (unsigned i = 0; history_fault_name(i) != NULL; i++)
        if (r->done[i] > 0)
            printf(", %s %u", history_fault_name(i), r->done[i]);
    printf("\n");
    fflush(stdout);
}

static int run(const struct options *o)
{
    int64_t end_ns = crew_now_ns() + (int64_t)(o->seconds * 1e9);
    size_t all = 0;
    unsigned rounds = 0;

    printf("histories: seed %" PRIu64 "\n", o->seed);
    fflush(stdout);
    while (crew_now_ns() < end_ns || rounds < count_of(o->faults)) {
        struct history_round r = { .seed = o->seed + rounds,
                                   .random = o->seed + rounds,
                                   .ns = (int64_t)(o->round * 1e9),
                                   .keep = o->keep,
                                   .calls = o->calls,
                                   .faults = faults_of(o->faults, rounds) };
        size_t exchanges = 0;

        crew_watchdog("histories", 250);
        enum history_said said = history_run(&r, &exchanges);
        if (said == HISTORY_MISSING)
            return 77;
        say(&r, exchanges);
        if (said == HISTORY_WRONG)
            return 1;
        all += exchanges;
        rounds++;
    }
    printf("histories: %u rounds, %zu exchanges: the model gives the same answers\n", rounds, all);
    return 0;
}

#define HISTORIES_MAX 8 /* until each fault has had a place */

struct planting {
    const struct replay_planted *plants;
    bool others; /* those of them */
    bool calls;
    unsigned faults;
};

enum planted { SEEN, BLIND, NO_PLACE };

/* A fault, at a few places of a history. */
static enum planted plant_one(const char *folder, const struct replay_planted *p, size_t exchanges)
{
    for (uint64_t at = 1; at <= 3; at++) {
        size_t n;
        const char *wrong = history_check(folder, p->name, at * exchanges / 4, &n);

        if (wrong != NULL && strcmp(wrong, HISTORY_NOT_PLANTED) == 0)
            return NO_PLACE;
        if (wrong == NULL || at == 1)
            printf("%-8s %s\n", p->name, wrong != NULL ? wrong : "NOT SEEN");
        if (wrong == NULL)
            return BLIND;
    }
    return SEEN;
}

/* Each of such faults; what has no place in one history is planted in another.  0: all are seen. */
static int plant_in(const struct options *o, const struct planting *of)
{
    uint64_t done = 0;
    unsigned missing = 1;
    unsigned blind = 0;

    for (unsigned n = 0; n < HISTORIES_MAX && missing > 0 && blind == 0; n++) {
        struct history_round r = { .seed = o->seed + n,
                                   .random = o->seed + n,
                                   .keep = true,
                                   .calls = of->calls,
                                   .ns = DUE_S(1.2),
                                   .faults = of->faults };
        size_t exchanges = 0;

        enum history_said said = history_run(&r, &exchanges);
        if (said != HISTORY_RIGHT)
            return said == HISTORY_MISSING ? 77 : 1;
        missing = 0;
        for (unsigned k = 0; of->plants[k].name != NULL; k++) {
            if (of->plants[k].others != of->others || (done >> k & 1) != 0)
                continue;
            enum planted ended = plant_one(r.folder, &of->plants[k], exchanges);
            done |= (uint64_t)(ended == SEEN) << k;
            blind += ended == BLIND;
            missing += ended == NO_PLACE;
        }
        if (blind == 0)
            history_clear(r.folder);
    }
    if (missing > 0)
        printf("%u have no place in %d histories\n", missing, HISTORIES_MAX);
    return blind + missing != 0;
}

static int run_plants(const struct options *o)
{
    unsigned stop_and_cut = history_fault("stop", 4) | history_fault("cut", 3);
    const struct planting all[] = {
        { replay_plants, false, false, stop_and_cut },
        { replay_plants, true, false, history_fault("turn", 4) },
        { call_plants, false, true, stop_and_cut },
    };
    int rc = 0;

    printf("histories: seed %" PRIu64 "\n", o->seed);
    for (size_t i = 0; i < sizeof all / sizeof all[0] && rc == 0; i++)
        rc = plant_in(o, &all[i]);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--caller") == 0)
        return history_caller(argv[2], atoi(argv[3]), (unsigned)atoi(argv[4]));
    if (argc == 5 && strcmp(argv[1], "--process") == 0)
        return history_process(argv[2], atoi(argv[3]), (unsigned)atoi(argv[4]));
    struct options o = read_options(argc, argv);
    if (o.calls) /* what callers heard is compared with what is not lost */
        o.faults = o.faults & ~(history_fault("tail", 4) | history_fault("empty", 5));
    if (o.plants)
        return run_plants(&o);
    return o.check != NULL ? check(&o) : run(&o);
}
