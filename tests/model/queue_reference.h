/* queue_reference.h - what a queue should do, as sorted arrays.
 *
 * Each topic's waiting jobs stand in the order in which they are to come.  Slow and plain.
 */
#ifndef QUEUE_REFERENCE_H
#define QUEUE_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/due.h"
#include "lab/flaky.h"

enum pattern {
    EQUAL,
    NEAR,
    EXPONENTIAL,
    EARLIER,
    SAWTOOTH,
    MOVED,
    CANCELLED,
    OUTLIER,
    NOW,
    PATTERNS
};

#define TOPICS 4
#define ROOM   (1u << 16) /* jobs that one script can make */
#define HELD   64         /* jobs lent at a time */

struct job {
    due_id id;
    int64_t deadline;
    uint64_t arrival;
    int topic;
    int priority;
    uint32_t live_at; /* its place among the live */
    bool live;
    bool shown; /* by the listing under way */
};

struct line {
    struct job **job; /* in order */
    size_t count;
    bool paused;
};

struct world {
    due_queue *q;
    due_clock *clock;
    struct flaky *memory; /* NULL: the system's */
    unsigned pattern;
    bool by_priority;
    size_t capacity;
    int64_t now;
    uint64_t arrivals;
    struct job *jobs; /* every one ever made, by its pointer's number */
    uint32_t made;
    struct job **live;
    uint32_t live_count;
    struct line line[TOPICS];
    due_job held[HELD];
    uint32_t held_count;
    uint64_t enqueued, dequeued, cancelled, discarded;
    uint64_t shown; /* to on_discard */
    bool wrong_discard;
};

/* A job of the world begins to wait, or does so no longer. */
void reference_add(struct world *w, struct job *j);
void reference_remove(struct world *w, struct job *j);

/* A waiting job gets another deadline, and stands last among equals. */
void reference_move(struct world *w, struct job *j, int64_t to_ns);

/* What must come next of @topic; NULL: nothing is due. */
struct job *reference_head(const struct world *w, int topic);
bool reference_due(const struct world *w);
/* What becomes due next, of any topic. */
struct job *reference_next(const struct world *w);
/* How many are due. */
uint64_t reference_count_due(const struct world *w, bool with_paused);

/* The job that was made with this pointer; NULL: none. */
struct job *reference_job(struct world *w, const void *ptr);

/* Room for every job a script can make. */
void reference_init(struct world *w);
void reference_free(struct world *w);

#endif
