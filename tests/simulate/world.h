/* world.h - what the judges keep of each queue, where a program has several.
 *
 * History, books, rules and store each have one set of variables: those of the queue that is looked
 * at.  They name them here once; whenever a thread of another queue goes on, its set takes their
 * place.  A module that forgets one mixes up two queues, and runs of the kind "queues" fail.
 */
#ifndef SIMULATE_WORLD_H
#define SIMULATE_WORLD_H

#include <stddef.h>

#include "plan.h"

/* @state is of the queue that is looked at; said as often as one likes. */
void world_keep(void *state, size_t size);
#define WORLD_KEEP(variable) world_keep(&(variable), sizeof(variable))

/* The queue of this number is looked at from now on, from 0. */
void world_enter(unsigned queue);
unsigned world_now(void);

#endif
