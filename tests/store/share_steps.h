/* share_steps.h - what the processes of a history do: anything, at random.
 *
 * Each step is one exchange, written down with its answer, or time that passes.  What is drawn
 * depends on the frame's random number and on what was answered.
 */
#ifndef SHARE_STEPS_H
#define SHARE_STEPS_H

#include "store/share_frame.h"

#define STEPS_HELD 64

/* One process: what it has claimed, and has not ended. */
struct stepping {
    struct sharing_held held[STEPS_HELD];
    size_t n;
};

/* A step of one of @n processes, which are the first stores of the frame.  False: it went wrong. */
bool share_step(struct sharing *t, struct stepping *processes, int n);

/* What was gathered is sent, and written down with its answer.  @at_once: others may come between.
 * False: it went wrong. */
bool share_send(struct sharing *t, int s, bool at_once);

#endif
