/* clock.h - the clock of a cell, for the program that runs it.
 *
 * In a program whose subjects ask the system for the time, the system's call shows it too: see
 * rivals_clock.h.  The virtual clock is turned by one thread, while no other goes by it.
 */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "subject.h"

#ifdef __cplusplus
extern "C" {
#endif

int64_t bench_clock_real(void);             /* monotonic, whatever bench_now() shows */
bool bench_clock_stands(void);              /* is it virtual? */
void bench_clock_virtual(int64_t start_ns); /* from now on bench_now() stands still, at this time */
void bench_clock_turn(int64_t to_ns);       /* bench_now() shows this from now on */

#ifdef __cplusplus
}
#endif

#endif
