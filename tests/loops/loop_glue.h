/* loop_glue.h - an event loop as the tests of its adapter see it: one watcher in one loop.  Each
 * loop_NAME.c says what that is for one library; loop_checks.c has the tests, and main(). */
#ifndef LOOP_GLUE_H
#define LOOP_GLUE_H

#include <due/loop.h>

int glue_open(void);
int glue_start(due_queue *q, due_loop_fn *fn, void *ctx, const due_loop_options *options);
void glue_stop(void);
void glue_step(void); /* one turn of the loop, which may sleep */
void glue_close(void);

#endif
