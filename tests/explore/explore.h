/* explore.h - what a scenario of the interleaving explorer is made of.
 *
 * The explorer runs the library's own files in simulated threads and tries, one execution after
 * another, every order of their steps within bounds.  A scenario is a small program over them:
 *
 *   setup     runs once, alone: opens what is needed, names the threads.  Its memory comes from
 *             explore_new(); each execution begins with that memory as setup left it.
 *   threads   run in every order; they say what must hold with explore_check()
 *   idle      called whenever nobody can go on without time passing: what is due must have gone
 *   check     called after the last thread: the books must balance
 *
 * Static variables of a scenario may be written by setup only; by check, if they gather what all
 * executions have shown.
 */
#ifndef DUE__EXPLORE_H
#define DUE__EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/due.h"
#include "explore_atomic.h"

/* How far an execution may stray from the plainest one.  A search without end is cut by these. */
struct explore_bounds {
    unsigned switches; /* times a thread that could go on has to stand back */
    unsigned holds;    /* stores that linger in their thread's buffer */
    unsigned times;    /* times the clock moves although somebody could go on */
    unsigned spurious; /* sleeps that end for no reason */
};

struct explore_scenario {
    const char *name;
    const char *about;
    void (*setup)(void);
    void (*idle)(void);
    void (*check)(void);
    struct explore_bounds quick; /* searched without a gap */
    struct explore_bounds deep;
    unsigned walks; /* random executions after that: 500 times as many, 10,000 when deep */
    const char *(*missed)(void); /* after all of them: what should have been seen; or NULL */
};

#define EXPLORE_BOUNDS(...) \
    {                       \
        __VA_ARGS__         \
    }

#define EXPLORE_START_NS DUE_S(1000) /* what the clocks show at first */

/* In setup: a thread of the scenario; memory, zeroed; an allocator for due_options. */
void explore_thread(const char *name, void (*run)(void *), void *arg);
void *explore_new(size_t size);
/* In setup: the clock may move to @at_ns even if nobody wakes then. */
void explore_instant(int64_t at_ns);
extern const due_allocator explore_allocator;
/* In setup: jobs that one tenure sorts in for others; 0: as many as the library says. */
extern unsigned explore_budget;
/* Likewise: after so many tenures in a row a lock is biased; 0: never. */
extern unsigned explore_bias;

/* In threads: what the clock shows, without a step; the wall clock is set by @by_ns. */
int64_t explore_now(void);
void explore_step_clock(int64_t by_ns);

/* In a thread: wait until descriptor @fd (of a timerfd) is readable. */
void explore_wait_readable(int fd, int64_t until_ns);
/* In idle: would a poll of @fd find it readable now? */
bool explore_readable(int fd);
/* In idle: the instant to which the clock will move; DUE_FOREVER: nobody wakes by himself. */
int64_t explore_next_wake(void);

/* In a thread: as if the @size bytes at @p were freed: whoever reads or writes an atomic there from
 * now on has touched what is gone. */
void explore_gone(const void *p, size_t size);

/* The execution ends here, and so does the search. */
void explore_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

void explore_unmet(const struct explore_site *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What must hold, and what to say if it does not. */
#define explore_check(condition, ...)                                                  \
    do {                                                                               \
        static const struct explore_site explore_here = { __FILE__, __LINE__, "check", \
                                                          #condition };                \
        if (!(condition))                                                              \
            explore_unmet(&explore_here, __VA_ARGS__);                                 \
    } while (0)

/* A line in the trace of a failure. */
void explore_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

extern const struct explore_scenario explore_scenarios_litmus[];
extern const struct explore_scenario explore_scenarios_rooms[];
extern const struct explore_scenario explore_scenarios_queue[];
extern const struct explore_scenario explore_scenarios_calling[];
extern const struct explore_scenario explore_scenarios_ahead[];
extern const struct explore_scenario explore_scenarios_next[];
extern const struct explore_scenario explore_scenarios_bias[];
extern const struct explore_scenario explore_scenarios_sweep[];
extern const struct explore_scenario explore_scenarios_far[];
extern const struct explore_scenario explore_scenarios_closing[];
extern const struct explore_scenario explore_scenarios_settings[];
extern const struct explore_scenario explore_scenarios_stored[];
extern const struct explore_scenario explore_scenarios_leases[];
extern const struct explore_scenario explore_scenarios_changes[];
extern const struct explore_scenario explore_scenarios_orders[];
extern const struct explore_scenario explore_scenarios_stored_orders[];
extern const struct explore_scenario explore_scenarios_shared[];
extern const struct explore_scenario explore_scenarios_shared_room[];
extern const struct explore_scenario explore_scenarios_shared_lend[];
extern const struct explore_scenario explore_scenarios_shared_revoke[];
extern const struct explore_scenario explore_scenarios_shared_again[];
extern const struct explore_scenario explore_scenarios_shared_two[];
extern const struct explore_scenario explore_scenarios_limiters[];
extern const struct explore_scenario explore_scenarios_events[];
extern const struct explore_scenario explore_scenarios_stopping[];
extern const struct explore_scenario explore_scenarios_transitions[];

#endif
