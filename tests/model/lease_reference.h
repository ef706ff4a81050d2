/* lease_reference.h - what lease_model.c compares the queue with: every job in a plain array, and
 * all that happens done by looking at each of them.
 */
#ifndef LEASE_REFERENCE_H
#define LEASE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "due/due.h"
#include "lab/flaky.h"

#define JOBS   24
#define HELD   24 /* copies that are out */
#define TOPICS 2

enum where { GONE, WAITS, LEASED, DEAD };

struct job {
    enum where where;
    due_id id;
    int topic;
    int priority;
    int64_t deadline; /* its own */
    int64_t until;    /* when it is handed out next, or its lease ends, or it is discarded */
    int64_t expires;  /* DUE_FOREVER: never */
    int64_t ttl;      /* 0: none */
    uint64_t arrival;
    uint32_t attempts;
    uint32_t failures;
    uint64_t lease; /* which reserve; 0: none */
    bool revoked;
    int64_t died;
    uint64_t death; /* in the order of death */
    enum due_cause cause;
};

struct held {
    due_job copy;
    int job;
    uint64_t lease;
};

struct world {
    due_queue *q;
    due_clock *clock;
    struct flaky memory;
    int64_t now;
    struct job job[JOBS];
    struct held held[HELD];
    int held_count;
    uint64_t arrivals;
    uint64_t leases;
    uint64_t deaths;
    uint64_t discarded;
    uint32_t limit;    /* of attempts */
    int64_t delay;     /* of the policy */
    int64_t dead_keep; /* 0: for ever */
    uint64_t dead_max; /* 0: no limit */
    bool by_priority;
    const char *wrong;
};

static inline bool wrong(struct world *w, const char *what)
{
    if (w->wrong == NULL)
        w->wrong = what;
    return false;
}

/* ---- The reference ---- */

static inline uint64_t count(const struct world *w, enum where where)
{
    uint64_t n = 0;

    for (int i = 0; i < JOBS; i++)
        n += w->job[i].where == where;
    return n;
}

/* The one in @where that comes first in time, up to now; or NULL. */
static inline struct job *first_over(struct world *w, enum where where)
{
    struct job *first = NULL;

    for (int i = 0; i < JOBS; i++) {
        struct job *j = &w->job[i];

        if (j->where != where || j->until > w->now)
            continue;
        if (first == NULL || j->until < first->until ||
            (j->until == first->until &&
             (j->priority > first->priority ||
              (j->priority == first->priority && j->arrival < first->arrival))))
            first = j;
    }
    return first;
}

static inline void discard(struct world *w, struct job *j)
{
    j->where = GONE;
    w->discarded--; /* the hook counts up: 0 in the end */
}

static inline void die(struct world *w, struct job *j, enum due_cause cause)
{
    j->where = DEAD;
    j->cause = cause;
    j->died = w->now;
    j->death = ++w->deaths;
    j->lease = 0;
    j->until = w->dead_keep > 0 ? w->now + w->dead_keep : DUE_FOREVER;
    while (w->dead_max > 0 && count(w, DEAD) > w->dead_max) {
        struct job *oldest = NULL;

        for (int i = 0; i < JOBS; i++) {
            struct job *it = &w->job[i];

            if (it->where == DEAD && (oldest == NULL || it->death < oldest->death))
                oldest = it;
        }
        discard(w, oldest);
    }
}

static inline void wait_until(struct world *w, struct job *j, int64_t at)
{
    j->where = j->revoked ? GONE : WAITS;
    j->until = at;
    j->arrival = ++w->arrivals;
    j->lease = 0;
}

/* What the passing of time does. */
static inline void lapse(struct world *w)
{
    struct job *j;

    while ((j = first_over(w, DEAD)) != NULL)
        discard(w, j);
    while ((j = first_over(w, LEASED)) != NULL) {
        uint64_t arrival = j->arrival;

        j->failures++;
        if (j->revoked)
            j->where = GONE;
        else if (w->limit > 0 && j->attempts >= w->limit)
            die(w, j, DUE_CAUSE_ATTEMPTS);
        else {
            wait_until(w, j, j->until);
            j->arrival = arrival; /* it stands where its lease stood */
        }
    }
}

/* The job that @topic hands out next; the expired ones before it die. */
static inline struct job *next_of(struct world *w, int topic)
{
    for (;;) {
        struct job *first = NULL;

        for (int i = 0; i < JOBS; i++) {
            struct job *j = &w->job[i];
            bool before;

            if (j->where != WAITS || j->until > w->now || j->topic != topic)
                continue;
            if (first == NULL)
                before = true;
            else if (w->by_priority && j->priority != first->priority)
                before = j->priority > first->priority;
            else if (j->until != first->until)
                before = j->until < first->until;
            else if (j->priority != first->priority)
                before = j->priority > first->priority;
            else
                before = j->arrival < first->arrival;
            first = before ? j : first;
        }
        if (first == NULL)
            return NULL;
        int64_t ends = first->ttl > 0 ? first->deadline + first->ttl : first->expires;
        if (ends > w->now)
            return first;
        die(w, first, DUE_CAUSE_EXPIRED);
    }
}

#endif
