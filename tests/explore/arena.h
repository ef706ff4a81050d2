/* arena.h - memory that every execution finds as setup left it. */
#ifndef DUE__EXPLORE_ARENA_H
#define DUE__EXPLORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

void arena_open(void);  /* empty, for the setup of a scenario */
void arena_keep(void);  /* what is there now is what each execution begins with */
void arena_reset(void); /* back to that */

/* Zeroed memory, aligned to a cache line; to a page if it is that large.  Never given back. */
void *arena_new(size_t size);

/* A write to @address failed: true if it is the arena's, and may be tried again. */
bool arena_fault(void *address);

#endif
