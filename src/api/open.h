/* open.h - what pools of workers are opened with as queues are. */
#ifndef DUE__OPEN_H
#define DUE__OPEN_H

#include <stdbool.h>

/* May a queue, or a pool, be called so? */
bool due__name_ok(const char *name);

#endif
