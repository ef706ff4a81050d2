/* duectl.h - the command duectl: main.c, and what it hands over to.
 *
 *   base/      the command line, delays and dates, lines, what is said and counted
 *   inspect/   stores: opened, looked into, repaired
 *   move/      jobs out of a store, into another
 *   foreign/   what other libraries keep in a Redis, as lines; duectl import
 *   verbs/     single jobs and whole queues, looked at and changed
 *   top/       what a queue does, shown again and again
 *   web/       a page of a queue for a browser, and its figures for Prometheus
 *   run/       jobs that come due are printed, or handed to commands
 *   bench.c    finds and starts the benchmarks
 *   complete.c scripts by which shells complete words
 */
#ifndef DUECTL_H
#define DUECTL_H

#include "foreign/foreign.h"
#include "inspect/inspect.h"
#include "move/move.h"
#include "run/run.h"
#include "top/top.h"
#include "verbs/verbs.h"
#include "web/web.h"

/* `duectl bench`: become the program that runs them, with these arguments.  It returns, with an
 * exit status, only if it cannot. */
int ctl_bench(int argc, char **argv);

/* A command, in one of three forms: one reads its words itself, one has the options of `run`, and
 * of the others is a table. */
struct ctl_listed {
    const char *name;  /* "ls", "dead ls" */
    const char *takes; /* as its usage says it */
    const char *about;
    int (*of_options)(const struct ctl_options *options);
    const char *usage;
    const struct ctl_command *command;
    int (*of_words)(int argc, char **argv);
};

/* Print the script for this shell: bash, zsh or fish.  False: another one. */
bool ctl_complete(const char *shell, const struct ctl_listed *commands, size_t n);

#endif
