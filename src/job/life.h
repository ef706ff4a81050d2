/* life.h - what the tenure leaves to the floor of jobs. */
#ifndef DUE__LIFE_H
#define DUE__LIFE_H

#include "queue/queue.h"

extern const struct due__life due__jobs_life;

#endif
