/* memory_behind.h - a real store behind a memory disk: what lands on the disk lands there too.
 *
 * With LAB_STORE in the environment of a program that has a maker linked in, every disk has one.
 * The store in memory goes on answering the queue, failing as the test says, and checking the
 * queue; the real one gets each batch that lands, is closed and opened again with each opening,
 * loses what the disk loses, and must show each job as the disk does.
 *
 * Threads  one at a time: the disk's lock is held
 */
#ifndef MEMORY_BEHIND_H
#define MEMORY_BEHIND_H

#include "due/store.h"

struct memory_disk;
struct memory_behind;

/* Where such stores are made; @place is what place() has made. */
struct memory_behind_maker {
    void *(*place)(void);
    due_store *(*make)(void *place);
    void (*fresh)(void *place);  /* nothing is stored any more */
    void (*remove)(void *place); /* and there is no place */
};

/* Set before main() by a file of lab/behind/; NULL: there is none. */
extern const struct memory_behind_maker *memory_behind_maker;

struct memory_behind *memory_behind_new(void); /* NULL: none is wanted */
void memory_behind_free(struct memory_behind *behind);

/* NULL is allowed in all of these.  What differs ends the program. */
void memory_behind_reopen(struct memory_behind *behind, struct memory_disk *disk);
void memory_behind_land(struct memory_behind *behind, const due_change *changes, size_t n);
/* The disk has lost something: the store is made anew of what is left. */
void memory_behind_lose(struct memory_behind *behind, struct memory_disk *disk);
void memory_behind_check(struct memory_behind *behind, const due_record *record);

#endif
