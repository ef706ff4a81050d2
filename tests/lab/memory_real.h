/* memory_real.h - a disk whose shared jobs lie in a real store, in place of memory.
 *
 * With LAB_SHARED=NAME in the environment of a program that has NAME's maker linked in, whoever
 * shares a disk that was made with .real has a store of that kind behind its own.  Its calls fail
 * as the test says, and are checked, as they are in memory; all else is the real store's answer.
 * Its clock is the test's: a nanosecond of that is a microsecond of the server's, whose times are
 * whole ones.
 *
 * What such a disk cannot do: lose exchanges, be owned, and show keys.
 *
 * Threads  any; nothing here holds the disk's lock while the real store is called
 */
#ifndef MEMORY_REAL_H
#define MEMORY_REAL_H

#include <stdbool.h>

#include "due/store_shared.h"

struct memory_disk;
struct memory_store;
struct memory_real;

/* Times are those of the real store. */
struct memory_real_maker {
    const char *name;
    void (*turn)(int64_t now_ns); /* its clock shows that from now on; 0: what it is */
    due_store *(*make)(void);
    void (*full)(bool full); /* there is no room for more */
    size_t (*jobs)(const char *queue);
    int (*each)(const char *queue, due_store_visit *visit, void *ctx);
    void (*remove)(const char *queue);
};

/* Before main(). */
void memory_real_offer(const struct memory_real_maker *maker);

/* NULL: the jobs lie in memory. */
struct memory_real *memory_real_new(bool wanted);
void memory_real_free(struct memory_real *real);

/* With the disk's lock held, which is let go of meanwhile. */
int memory_real_find(struct memory_store *s, due_id id, due_store_visit *visit, void *ctx,
                     int64_t until_ns);
/* With it held. */
size_t memory_real_jobs(const struct memory_real *real);
int memory_real_each(const struct memory_real *real, due_store_visit *visit, void *ctx);
void memory_real_interrupt(struct memory_store *s);
void memory_real_wake(struct memory_store *s);
void memory_real_gone(struct memory_store *s); /* crashed, or freed: nobody hears a ring there */

#endif
