/* core_look.h - what a core dump of another process would hold: is a canary in it?
 *
 * Nobody but the test may have the canary in one piece, so it is spelled from bytes of which each
 * is one more; and a control that must be found, so that the search is known to work.
 *
 * Threads  one
 */
#ifndef CORE_LOOK_H
#define CORE_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CORE_SECRET 24 /* letters of either */

struct core_look {
    int memory;
    char canary[CORE_SECRET + 1];
    char control[CORE_SECRET + 1];
    uint64_t bytes;    /* looked through so far */
    unsigned canaries; /* times it was found, or a piece of it in a register */
    unsigned controls;
    unsigned registers; /* threads whose registers were read */
};

void core_spell(const char *as, char text[CORE_SECRET + 1]);

/* Whatever of the process is readable and not left out of dumps, also what is only a file's, and
 * the vector registers of its threads.  It is stopped.  False: that cannot be read here. */
bool core_look_through(struct core_look *l, pid_t pid);

#endif
