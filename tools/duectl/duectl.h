/* duectl.h - the command duectl: main.c, and what it hands over to.
 *
 *   base/      the command line, delays and dates, lines, what is said and counted
 *   inspect/   stores: opened, looked into, repaired
 *   move/      jobs out of a store, into another
 *   run/       jobs that come due are printed, or handed to commands
 *   bench.c    finds and starts the benchmarks
 */
#ifndef DUECTL_H
#define DUECTL_H

#include "inspect/inspect.h"
#include "move/move.h"
#include "run/run.h"

/* `duectl bench`: become the program that runs them, with these arguments.  It returns, with an
 * exit status, only if it cannot. */
int ctl_bench(int argc, char **argv);

#endif
