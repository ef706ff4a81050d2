/* machine.h - the simulated machine: threads as fibres, clocks, memory, descriptors, processes.
 *
 * One real thread.  A fibre runs until a step at which the seed lets another one go on, or until it
 * sleeps.  Time stands still while anybody can go on, unless the seed says otherwise; when nobody
 * can, it moves to the next instant at which somebody wakes by himself.  All that is random comes
 * from the seed: the same seed gives the same run, step by step.
 *
 *   machine.c         fibres: who goes on, who sleeps on what, what the clocks show
 *   machine_time.c    time that passes meanwhile
 *   machine_fail.c    assertions and signals
 *   machine_back.c    fibres that stand still for a while, or wait for others to go on
 *   machine_memory.c  the atomic operations of the library, each a step; store buffers; allocations
 *   machine_system.c  the system calls of the library, and those of the store in memory
 *
 * The machine knows nothing of the library: it is the ground under explore_atomic.h and
 * explore_system.h, as the explorer's engine is, without search.
 */
#ifndef SIMULATE_MACHINE_H
#define SIMULATE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/due.h"
#include "explore_atomic.h"
#include "fiber.h"
#include "lab/model.h"

#define FIBERS_MAX    160u
#define PROCESSES_MAX 16u
#define TIMERS_MAX    128u
#define BUFFER_MAX    8u
#define INSTANTS_MAX  8u
#define BACK_FIBERS   8u /* those of higher numbers count from 0 again */
#define TLS_MAX       256u
#define START_NS      DUE_S(1000)    /* what the monotonic clock shows at first */
#define WALL_NS       DUE_S(1000000) /* what the wall clock is ahead of it, but for its steps */

enum fiber_state { ENDED = 0, RUNNABLE, PARKED, JOINING };

/* A store that others do not see yet. */
struct held {
    const volatile void *p;
    uint64_t was; /* what they see */
};

struct fiber {
    struct stack stack;
    void (*run)(void *);
    void *arg;
    char name[16];
    enum fiber_state state;
    bool used;   /* it is somebody's still, though it may have ended */
    bool daemon; /* the library's: need not end */
    bool begun;
    bool woken; /* PARKED: somebody has ended it */
    unsigned process;
    unsigned queue;       /* of its program: the one that it uses now */
    uint32_t rank;        /* by rank: the highest that can goes on */
    uint64_t back_until;  /* the step till which it is held back, if anybody else can go on */
    bool back_next;       /* it is to be at its next step */
    const void *word;     /* PARKED: on this */
    int64_t until_ns;     /* PARKED: no longer than this */
    int timer;            /* PARKED: or until this timer is over; -1: none */
    struct fiber *joined; /* JOINING: until this one has ended */
    unsigned held_count;
    struct held held[BUFFER_MAX]; /* oldest first */
    unsigned char tls[TLS_MAX];   /* its thread-local variables, while another one runs */
};

/* What is wrong on purpose, so that it can be seen to be found. */
enum machine_plant {
    PLANT_NOTHING,
    PLANT_LOST_WAKE_UP,      /* one of a few hundred */
    PLANT_EARLY,             /* the library's clocks are ahead of the history's, by 1 ns */
    PLANT_WRONG_MODEL,       /* the ledger is not told of some hand-overs */
    PLANT_LOST_CONFIRMATION, /* the store says that a batch has landed which has not */
    PLANT_NO_FENCE,          /* it takes batches of a program that was replaced */
    PLANT_EARLY_TAKEOVER,    /* it replaces a program before its lease is over */
    PLANT_OTHER_NAME,        /* queues of two names have the same jobs there */
    PLANT_NO_SETTINGS,       /* it shows nothing of what holds back topics */
    PLANT_UNTOLD,            /* nobody is told what a close has given up */
    PLANTS
};

/* What the seed has drawn for a run: probabilities are one in so many; 0 is never. */
struct machine_options {
    uint64_t seed;
    uint64_t steps_max;
    uint32_t switch_every; /* on the average a switch in so many steps */
    bool by_rank;          /* not to anybody, but by ranks that change now and then */
    uint32_t back_every;   /* who changes memory is held back; so often, */
    uint32_t back_fiber;   /* everybody, or, less than BACK_FIBERS, the fibre of this number, */
    bool back_after;       /* after that or before, */
    uint32_t back_kinds;   /* at one of so many kinds of such steps, */
    uint64_t back_kind;    /* this, */
    uint64_t back_steps;   /* and for so many steps; */
    uint32_t stir_every;   /* so often all who sleep wake then, */
    uint32_t leap_every;   /* or time passes */
    uint32_t jump_every;   /* of switches: time passes although somebody could go on */
    int64_t jump_max_ns;
    uint32_t drift_every; /* of looks at a clock: it moves on by a few nanoseconds */
    uint32_t spurious_every;
    uint32_t hold_every;   /* stores that linger in their fibre's buffer, */
    uint32_t linger_every; /* till one of so many loads */
    uint32_t no_memory_every;
    uint32_t no_thread_every;
    uint32_t no_descriptor_every;
    uint32_t interrupt_every;  /* polls that end with EINTR */
    uint32_t clock_step_every; /* of switches: somebody sets the wall clock */
    int64_t clock_step_max_ns;
    uint32_t stop_every; /* of steps: a process is stopped */
    int64_t stop_max_ns;
    enum machine_plant plant;
};

enum ending {
    ALL_ENDED, /* every fibre of a program; the library's own may be left */
    KILLED,    /* the step at which a process is to be killed */
    FAILED
};

struct machine {
    struct machine_options o;
    struct fiber fiber[FIBERS_MAX];
    unsigned fibers;
    struct fiber *me;  /* NULL: the runner itself */
    struct stack home; /* the runner's own */
    bool running;      /* steps are taken under the scheduler */
    uint64_t plenty;   /* not 0: nothing is refused, nobody held back, and no time passes while
                          somebody can go on: bits, who wants it so */
    uint64_t random;
    uint64_t steps;
    uint64_t next;    /* the step at which something is to happen */
    uint64_t kill_at; /* UINT64_MAX: not */
    uint64_t stop_at; /* likewise */
    uint64_t hash;    /* of everything that has happened */
    uint64_t switches;
    int64_t now_ns;                    /* the monotonic clock */
    int64_t instant[INSTANTS_MAX];     /* on it: something is to come, or to end */
    unsigned instants;                 /* so many were told */
    int64_t wall_ns;                   /* realtime minus monotonic */
    int64_t boot_ns;                   /* boottime minus monotonic */
    unsigned held;                     /* stores in buffers */
    unsigned process;                  /* of what is started by the runner */
    int64_t stopped_ns[PROCESSES_MAX]; /* the threads of this process do not run until then */
    unsigned queue;                    /* of the fibre that runs, or of what the runner does */
    void (*entered)(void);             /* a fibre of another queue goes on */
    void (*idle)(void);                /* nobody can go on unless time passes: called first */
    void (*stepped)(void);             /* the wall clock will be set: called first */
    bool failed;
    char failure[400];
};
extern struct machine machine;

/* ---- machine.c ---- */

void machine_begin(const struct machine_options *o); /* everything as new */
struct fiber *machine_start(const char *name, void (*run)(void *), void *arg, bool daemon);
enum ending machine_run(void);
void machine_kill(unsigned process); /* its fibres are no more */
/* From now on processes are stopped now and then, and go on as if nothing had happened; or not. */
void machine_stops(bool on);
bool machine_stopped(unsigned process); /* now */
/* No fibre of the process is left but ended ones. */
bool machine_process_ended(unsigned process);
/* The running fibre, or what the runner does, is of this queue from now on. */
void machine_enter(unsigned queue);

/* The first failure ends the run, unless the runner itself has found it. */
void machine_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void machine_catch_signals(void); /* from now on they are failures */

uint64_t machine_below(uint64_t n);         /* at random */
bool machine_chance(uint32_t every);        /* one in @every; 0: never */
void machine_mix(uint64_t value);           /* into the hash */
void machine_plenty(unsigned who, bool on); /* as above; @who: below 64 */

/* A step begins: another fibre may go on first. */
void machine_point(void);
static inline void machine_step(void)
{
    if (++machine.steps >= machine.next)
        machine_point();
}

void machine_give_way(void); /* anybody that can goes on */
/* The running fibre is held back for so many steps; false: until nobody else could go on. */
bool machine_rest(uint64_t steps);
void machine_wake(struct fiber *f);     /* who is held back is not any more */
void machine_stir(void);                /* all who sleep wake for no reason */
void machine_kill_soon(uint64_t steps); /* within so many steps, if there is to be a kill at all */
/* The running fibre is about to change what @at says, or, NULL, to read: it may be held back. */
void machine_hold_back(const struct explore_site *at);

void machine_park(const void *word, int64_t until_ns, int timer);
void machine_unpark(const void *word);     /* one of those who sleep on it */
void machine_unpark_all(const void *word); /* */
void machine_join(struct fiber *f);
void machine_sleep(int64_t ns);
int64_t machine_next_wake(void); /* DUE_FOREVER: nobody wakes by himself */

/* ---- machine_time.c ---- */

/* Something is to come, or to end, after so long: time may move there. */
void machine_instant(int64_t ahead_ns);
void machine_jump(void);
void machine_set_clock(void);

/* ---- machine_memory.c ---- */

void memory_begin(void);
void memory_empty(void); /* the running fibre's buffer */
void memory_empty_all(void);
/* As malloc() and free(), for the runner and for what survives processes.  All of it is gone with
 * the next machine_begin(). */
void *memory_new(size_t size);
void memory_free(void *memory);
size_t memory_size(const void *memory); /* as it was asked for */
void memory_spoil(void *memory);        /* more of what was freed, if nobody has it again */
/* For a queue: *@live counts the blocks that it has not given back. */
due_allocator machine_allocator(uint64_t *live);

/* ---- machine_system.c ---- */

void system_begin(void);
void system_thread(uint32_t number);  /* the running fibre is this one */
int64_t system_timer_over(int timer); /* on the monotonic clock */
void system_forget_process(unsigned process);
int64_t machine_wall(void); /* what the wall clock shows, without a step */
bool machine_readable(int fd);
/* In a fibre: until descriptor @fd is readable. */
void machine_wait_readable(int fd, int64_t until_ns);

#endif
