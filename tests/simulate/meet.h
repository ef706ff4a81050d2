/* meet.h - what happens at the same time: calls, a close, a kill.
 *
 * Left to chance, calls of a few hundred steps seldom meet, and a close, which comes when some time
 * has passed, finds all threads asleep or gone.  So in some seeds the threads of a program wait for
 * each other before every so many verbs, and it is closed, or killed, some steps after somebody has
 * begun a certain verb.  Nobody waits for long: who would sleep goes on.
 */
#ifndef SIMULATE_MEET_H
#define SIMULATE_MEET_H

#include "client.h"

/* A life begins, with nobody in a verb. */
void meet_begin(struct program *p);
/* The verb @n of this thread is about to begin. */
void meet_verb(struct client *c, unsigned n);
/* The thread does no more verbs. */
void meet_leave(struct client *c);
/* Until the queue is to be closed. */
void meet_close(struct program *p);

#endif
