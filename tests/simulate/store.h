/* store.h - the store in memory as it is in the simulation: its calls take time, and may go wrong.
 *
 * The disk is what survives the programs.  Around each store of tests/lab/memory_store.h stands one
 * that takes time for each call; what goes wrong there the store in memory draws itself, from a
 * seed that the run gives it.
 */
#ifndef SIMULATE_STORE_H
#define SIMULATE_STORE_H

#include "due/store.h"
#include "plan.h"

/* A disk for this run: it is empty.  @taken: called when a program comes to own the jobs. */
void store_begin(const struct plan *p, void (*taken)(void));
/* A store on it, for the running program and its queue of this name. */
due_store *store_new(const char *name);
/* The program of this process is dead.  @seen: the store knows it, and waits for no lease. */
void store_crash(unsigned process, bool seen);
/* From now on nothing goes wrong any more. */
void store_mend(void);
/* Did it lose anything since it was last taken? */
bool store_has_lost(void);
/* How many times it lost something. */
uint64_t store_losses(void);
/* How many times it was taken. */
uint64_t store_taken(void);
/* Is the running program the last one that took it?  With one program at a time always. */
bool store_mine(void);
/* Fails the run if a queue did not keep its side. */
void store_judge(void);
size_t store_jobs(void);
/* Is the topic of this name paused there; and its limit. */
bool store_paused(const char *topic, int64_t *limit);
/* Keys that are taken; after losses but those that the running program cannot know of. */
size_t store_keys(void);

#endif
