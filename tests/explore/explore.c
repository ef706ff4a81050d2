/* explore.c - the interleaving explorer: runs scenarios, prints what was tried.
 *
 * usage: explore [--quick | --deep] [--scenario NAME] [--seed N] [--limit N] [--list]
 *                [--words] [--replay WAY]
 *
 * For each scenario: everything within its bounds (S switches, H held stores, T early ticks, W
 * spurious wake-ups), "cut" if that is too much, then random walks.  After all of them, or with
 * --words, the changes of a job's word that its table allows must have been seen.  The exit status
 * is 1 if an execution failed, or one was not.  The model of memory and its limits: memory.c; of
 * the system: system.c; the search: engine.c, search.c.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "engine.h"
#include "words.h"

static const struct explore_scenario *const rooms[] = {
    explore_scenarios_litmus,        /* the explorer itself */
    explore_scenarios_rooms,         /* lock, bell, inbox, window */
    explore_scenarios_bias,          /* a lock that is biased */
    explore_scenarios_queue,         /* a queue without proxies */
    explore_scenarios_calling,       /* calls that pass from one to the next */
    explore_scenarios_ahead,         /* what is shown, and what stands before it */
    explore_scenarios_next,          /* the next job, in one tenure */
    explore_scenarios_sweep,         /* a look whether to sweep */
    explore_scenarios_far,           /* jobs with a time ahead, by the shortest way */
    explore_scenarios_closing,       /* close against everybody, and room */
    explore_scenarios_settings,      /* proxies, clocks, the descriptor */
    explore_scenarios_stored,        /* a stored queue and its commits */
    explore_scenarios_leases,        /* jobs that are answered for */
    explore_scenarios_changes,       /* jobs that are changed, or come again */
    explore_scenarios_orders,        /* one job, perhaps with a key, and several verbs */
    explore_scenarios_stored_orders, /* the same with a store */
    explore_scenarios_shared,        /* a queue that other processes share */
    explore_scenarios_shared_room,   /* and that is full */
    explore_scenarios_shared_lend,   /* and of which a job's bytes are wanted back */
    explore_scenarios_shared_revoke, /* or which another one cancels while it is here */
    explore_scenarios_shared_again,  /* something comes a second time */
    explore_scenarios_shared_two,    /* and there are two such queues */
    explore_scenarios_limiters,      /* groups and limits */
    explore_scenarios_events,        /* a hook that is told of each step */
    explore_scenarios_stopping,      /* a pool of workers that is stopped */
    explore_scenarios_transitions,   /* what seldom becomes of a job */
};

/* Executions of one search; quick bounds never hold as many. */
#define LIMIT 10000000u

struct options {
    bool deep;
    bool list;
    bool words; /* although not all scenarios are run */
    const char *scenario;
    const char *replay;
    uint64_t seed;
    uint64_t limit; /* executions of one search */
};

/* A write to kept memory, or a crash of what is explored: the execution failed. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (number == SIGSEGV && arena_fault(info->si_addr))
        return;
    if (engine.me == NULL) {
        signal(number, SIG_DFL);
        return;
    }
    explore_fail("crash: signal %d", number);
}

static void catch_faults(void)
{
    static unsigned char memory[1 << 16];
    const stack_t stack = { .ss_sp = memory, .ss_size = sizeof memory };
    struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

    action.sa_sigaction = on_fault;
    sigaltstack(&stack, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
}

static void report(const struct explore_scenario *s, const struct explore_bounds *b,
                   const struct search_result *r)
{
    char bounds[32];

    snprintf(bounds, sizeof bounds, "S%u H%u T%u W%u", b->switches, b->holds, b->times,
             b->spurious);
    printf("%-24s %-12s %10llu %-4s %9llu %9llu %7.1f s\n", s->name, bounds,
           (unsigned long long)r->executions, r->cut ? "cut" : "all",
           (unsigned long long)r->redundant, (unsigned long long)r->walks, r->seconds);
    fflush(stdout);
}

/* False: an execution failed. */
static bool run(const struct options *o, const struct explore_scenario *s, uint64_t *executions)
{
    const struct explore_bounds *bounds = o->deep ? &s->deep : &s->quick;
    struct search_result r;
    bool passed;

    engine_setup(s);
    if (o->replay != NULL)
        return search_replay(o->replay);
    passed = search_all(bounds, o->limit, &r);
    if (passed)
        passed = search_walk((uint64_t)s->walks * (o->deep ? 10000 : 500), o->seed, &r);
    report(s, bounds, &r);
    const char *missed = passed && s->missed != NULL ? s->missed() : NULL;
    if (missed != NULL) {
        printf("FAILED  %s: never seen: %s\n", s->name, missed);
        passed = false;
    }
    *executions += r.executions + r.redundant + r.walks;
    return passed;
}

static int run_all(const struct options *o)
{
    uint64_t executions = 0;
    unsigned scenarios = 0;
    unsigned failed = 0;

    if (!o->list && o->replay == NULL)
        printf("%-24s %-12s %15s %9s %9s %9s\n", "scenario", "bounds", "executions", "redundant",
               "walks", "time");
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
        for (const struct explore_scenario *s = rooms[i]; s->name != NULL; s++) {
            if (o->scenario != NULL && strcmp(o->scenario, s->name) != 0)
                continue;
            scenarios++;
            if (o->list)
                printf("%-24s %s\n", s->name, s->about);
            else if (!run(o, s, &executions))
                failed++;
        }
    }
    if (scenarios == 0) {
        fprintf(stderr, "explore: no such scenario: %s\n", o->scenario);
        return 2;
    }
    if (!o->list && o->replay == NULL && (o->words || o->scenario == NULL))
        failed += words_report();
    if (!o->list)
        printf("%u scenarios, %llu executions, %u failed\n", scenarios,
               (unsigned long long)executions, failed);
    return failed > 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: explore [--quick | --deep] [--scenario NAME] [--seed N] [--limit N]\n"
                    "               [--list] [--words] [--replay WAY]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct options o = { .seed = 1, .limit = LIMIT };

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--quick") == 0) {
            o.deep = false;
        } else if (strcmp(argv[i], "--deep") == 0) {
            o.deep = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            o.list = true;
        } else if (strcmp(argv[i], "--words") == 0) {
            o.words = true;
        } else if (value == NULL) {
            return usage();
        } else if (strcmp(argv[i], "--scenario") == 0) {
            o.scenario = value;
            i++;
        } else if (strcmp(argv[i], "--replay") == 0) {
            o.replay = value;
            i++;
        } else if (strcmp(argv[i], "--seed") == 0) {
            o.seed = strtoull(value, NULL, 10);
            i++;
        } else if (strcmp(argv[i], "--limit") == 0) {
            o.limit = strtoull(value, NULL, 10);
            i++;
        } else {
            return usage();
        }
    }
    if (o.replay != NULL && o.scenario == NULL)
        return usage();
    catch_faults();
    return run_all(&o);
}
