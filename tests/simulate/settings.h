/* settings.h - what a store may show of what holds back topics, whoever opens the queue next.
 *
 *   May be    Of each topic the values that may be stored: one, when a call was told so and was the
 *             only one about it.  The old ones and the new one while a call is under way, and for
 *             good if its end is in doubt, it is cut off, or was not alone.
 *   Losses    What was told before the store last lost something may have been taken back by the
 *             end of a life: then it may be any.
 *   Opened    Whoever has opened the queue goes by what may be; in the end the store has what the
 *             queue goes by.
 *
 * Of a store that does not keep such things nothing is asked: a queue begins without them.
 */
#ifndef SIMULATE_SETTINGS_H
#define SIMULATE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan.h"

enum setting { SETTING_PAUSE, SETTING_LIMIT, SETTING_KINDS };

/* Of a call, when it began. */
struct setting_call {
    bool mine;       /* its program owned the jobs, */
    uint64_t owner;  /* as this one: store_taken() */
    uint64_t losses; /* of the store, by then */
};

void settings_begin(const struct plan *p);
void settings_life(void); /* a program begins, or owns the jobs from now on */
bool settings_stored(void);

/* A call that gives the topic this value (of a pause 0 or 1) begins.  It is told @rc; @all: it was
 * about all topics, and may have changed some of them. */
struct setting_call settings_ask(enum setting what, int topic, unsigned value);
void settings_told(enum setting what, int topic, unsigned value, const struct setting_call *call,
                   int rc, bool all);
/* Does the program of this call still own the jobs, so that its answer says what is so? */
bool settings_current(const struct setting_call *call);

/* May it be that, in the store? */
bool settings_may_be(enum setting what, int topic, unsigned value);
bool settings_must_be(enum setting what, int topic, unsigned value);
/* The queue was opened, and goes by that. */
void settings_opened(int topic, bool paused, size_t limit);

#endif
