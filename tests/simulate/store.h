/* store.h - the store in memory as it is in the simulation: its calls take time, and may go wrong.
 *
 * The disk is what survives the programs.  Around each store of tests/memory_store.h stands one
 * that takes time for each call; what goes wrong there the store in memory draws itself, from a
 * seed that the run gives it.
 */
#ifndef SIMULATE_STORE_H
#define SIMULATE_STORE_H

#include "due/store.h"
#include "plan.h"

/* A disk for this run: it is empty. */
void store_begin(const struct plan *p);
/* A store on it, for the next program. */
due_store *store_new(void);
/* The program with the store made last is dead. */
void store_crash(void);
/* From now on nothing goes wrong any more. */
void store_mend(void);
/* Did it lose anything since the last store was made? */
bool store_has_lost(void);
/* Fails the run if a queue did not keep its side. */
void store_judge(void);
size_t store_jobs(void);

#endif
