/* engine.h - the parts of the explorer, for each other.
 *
 *   engine.c   the simulated threads: who runs next, who sleeps on what, what the clock shows
 *   memory.c   each thread's store buffer, and which places are worth a switch
 *   search.c   which way an execution goes where it can go several ways
 *   system.c   the system calls of the library, on simulated threads and clocks
 */
#ifndef DUE__EXPLORE_ENGINE_H
#define DUE__EXPLORE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "explore.h"
#include "explore_atomic.h"
#include "fiber.h"

#define FIBERS_MAX 8u
#define BUFFER_MAX 12u
#define STEPS_MAX  40000u

enum fiber_state { RUNNABLE, PARKED, JOINING, ENDED };

/* A store that has not reached memory. */
struct held {
    volatile void *p;
    unsigned size;
    uint64_t value;
    const struct explore_site *at;
};

struct fiber {
    struct stack stack;
    void (*run)(void *);
    void *arg;
    const char *name;
    enum fiber_state state;
    bool daemon; /* the library's: need not end */
    bool begun;
    bool asleep;       /* stood back before a step, and nobody has touched its place since */
    bool asleep_write; /* that step writes */
    const volatile void *asleep_at;
    const void *word;             /* PARKED: on this */
    int64_t until_ns;             /* PARKED: no longer than this */
    int timer;                    /* PARKED: or until this timer is over; -1: none */
    bool woken;                   /* PARKED: somebody has ended it */
    struct fiber *joined;         /* JOINING: until this one has ended */
    struct held held[BUFFER_MAX]; /* oldest first */
    unsigned held_count;
};

/* ---- engine.c ---- */

struct engine {
    const struct explore_scenario *scenario;
    struct fiber fiber[FIBERS_MAX];
    struct fiber kept[FIBERS_MAX]; /* as setup left them */
    unsigned fibers;
    unsigned fibers_kept;
    bool prelude;      /* setup's own threads run until they sleep */
    struct fiber *me;  /* who runs; NULL: the explorer itself */
    struct stack home; /* the explorer's own */
    bool running;      /* steps are taken under the scheduler */
    bool trace;        /* print them */
    unsigned held;     /* stores in buffers */
    unsigned asleep;   /* threads that stood back */
    uint32_t steps;
    uint32_t point; /* places so far where the execution might have gone another way */
    struct explore_bounds used;
    bool failed;
    char failure[512];
};
extern struct engine engine;

enum ending { COMPLETE, REDUNDANT, FAILED };

void engine_setup(const struct explore_scenario *s); /* run its setup, keep what it made */
enum ending engine_execute(void);                    /* once from there */

/* What the running thread is about to do, by its place: a switch may come first. */
void engine_offer_switch(const volatile void *p, bool write);
/* It has been done: those who stood back before a step on this place may go on. */
void engine_touched(const volatile void *p, bool write);
void engine_rouse(struct fiber *f); /* this one may go on */
/* The running thread sleeps, or waits for a thread's end. */
void engine_park(const void *word, int64_t until_ns, int timer);
void engine_unpark(const void *word);
struct fiber *engine_start(const char *name, void (*run)(void *), void *arg, bool daemon);
void engine_join(struct fiber *f);
void engine_clock_forward(int64_t to_ns);
/* The clock may move to the next instant that matters. */
void engine_offer_tick(void);
void engine_print(const char *op, const char *text, const struct explore_site *at);

/* ---- memory.c ---- */

void memory_forget(void);    /* a new scenario: nothing is known */
void memory_learn(void);     /* from now on switches come before all places known to be shared */
void memory_share_all(void); /* before any place: whoever replays a way has seen no other */
bool memory_learned(void);   /* another shared place was seen since */
bool memory_shared(const volatile void *p);
/* The step everything goes through that others can notice. */
void memory_step(const volatile void *p, bool write);
void memory_empty(void); /* the running thread's buffer */
/* Write the oldest @n held stores of @f. */
void memory_write(struct fiber *f, unsigned n);

/* ---- search.c ---- */

/* Ways to go on, the plainest first. */
enum way {
    GO = 0x00,       /* on */
    HOLD = 0x01,     /* keep the store in the buffer */
    TICK = 0x02,     /* the clock moves to the next instant */
    SWITCH = 0x10,   /* to thread n */
    SPURIOUS = 0x20, /* to thread n, whose sleep ends for no reason */
    WAKE = 0x30,     /* of those who sleep on a word, thread n */
    WRITE = 0x80     /* thread n's m oldest held stores reach memory: n * 16 + m */
};

#define WAYS_MAX 22u

struct ways {
    unsigned n;
    uint8_t way[WAYS_MAX];
};

static inline void ways_add(struct ways *w, unsigned way)
{
    if (w->n < WAYS_MAX)
        w->way[w->n++] = (uint8_t)way;
}

/* @free: none of the ways is plainer than another. */
uint8_t search_choose(const struct ways *w, bool free);
void search_plainly(void); /* for the prelude: always the first way */
/* May an execution still stray so? */
bool search_may_switch(void);
bool search_may_hold(void);
bool search_may_tick(void);
bool search_may_be_spurious(void);
/* Do threads that stood back sleep until their place is touched? */
bool search_skips(void);

enum found { PASSED, FAILED_AT };

struct search_result {
    uint64_t executions; /* complete ones, of the last bounds */
    uint64_t redundant;  /* given up: the same as another one */
    uint64_t walks;
    bool cut; /* not all were tried */
    double seconds;
};

/* False: an execution failed; the way to it is printed. */
bool search_all(const struct explore_bounds *bounds, uint64_t limit, struct search_result *r);
bool search_walk(uint64_t walks, uint64_t seed, struct search_result *r);
/* One execution along @way ("17:t2,40:h"), printed step by step. */
bool search_replay(const char *way);

/* ---- system.c ---- */

#define TIMERS_MAX   4
#define INSTANTS_MAX 4

/* A timerfd. */
struct timer {
    int clock;
    int64_t set_ns; /* on its clock; DUE_FOREVER: stopped */
};

/* What the kernel knows; in the arena. */
struct world {
    int64_t now_ns;  /* the monotonic clock */
    int64_t wall_ns; /* realtime minus monotonic */
    struct timer timer[TIMERS_MAX];
    int timers;
    int64_t instant[INSTANTS_MAX]; /* the clock may move here although nobody wakes */
    int instants;
    const char *gone; /* freed, in effect: explore_gone() */
    size_t gone_size;
};
extern struct world *world;

/* When timer @n is over, on the monotonic clock. */
int64_t system_timer_over(int n);

void system_open(void); /* in the arena */

#endif
