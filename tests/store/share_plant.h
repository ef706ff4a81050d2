/* share_plant.h - faults planted in a history, which its check has to see. */
#ifndef SHARE_PLANT_H
#define SHARE_PLANT_H

#include "store/share_replay.h"

/* The names, ended by NULL, and what each is. */
extern const struct replay_planted {
    const char *name;
    const char *what;
    bool others; /* only where others turn processes out, and the clock */
} replay_plants[];

/* One somewhere.  False: there is no such fault, or no place for it. */
bool replay_plant(struct replay *r, const char *name, uint64_t seed);

#endif
