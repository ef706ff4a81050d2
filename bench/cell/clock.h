/* clock.h - the clock of a cell, for the program that runs it.
 *
 * clock.c is that of bench_cell.  A program whose subjects ask the system for the time has another
 * file with the same calls.  The virtual clock is turned by one thread, while no other goes by it.
 */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>

#include "subject.h"

#ifdef __cplusplus
extern "C" {
#endif

int64_t bench_clock_real(void);             /* monotonic, whatever bench_now() shows */
void bench_clock_virtual(int64_t start_ns); /* from now on bench_now() stands still, at this time */
void bench_clock_turn(int64_t to_ns);       /* bench_now() shows this from now on */

#ifdef __cplusplus
}
#endif

#endif
