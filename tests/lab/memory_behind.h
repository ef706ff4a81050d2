/* memory_behind.h - a real store behind a memory disk: what lands on the disk lands there too.
 *
 * With LAB_STORE=NAME in the environment of a program that has NAME's maker linked in, every disk
 * has one, with a queue of its own.  The store in memory goes on answering the queue, failing as
 * the test says, and checking the queue; the real one gets each batch that lands, is closed and
 * opened again with each opening, loses what the disk loses, and must show each job as the disk
 * does.
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
    const char *name;
    void *(*place)(void);
    due_store *(*make)(void *place);
    void (*fresh)(void *place);  /* a place of one queue: empty it; NULL: names keep them apart */
    void (*remove)(void *place); /* */
    const struct memory_behind_maker *next;
};

/* Before main(), by each file of lab/behind/. */
void memory_behind_offer(struct memory_behind_maker *maker);

struct memory_behind *memory_behind_new(void); /* NULL: none is wanted */
void memory_behind_free(struct memory_behind *behind);

/* NULL is allowed in all of these.  What differs ends the program. */
void memory_behind_reopen(struct memory_behind *behind, struct memory_disk *disk);
void memory_behind_land(struct memory_behind *behind, const due_change *changes, size_t n);
/* The disk has lost something: the store is made anew of what is left. */
void memory_behind_lose(struct memory_behind *behind, struct memory_disk *disk);
void memory_behind_check(struct memory_behind *behind, const struct memory_disk *disk,
                         const due_record *record);

#endif
