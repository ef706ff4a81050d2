/* plan.h - what one seed draws: which queue, which verbs, which faults, and how often.
 *
 * Of each kind of verb or fault a seed first draws whether it is there at all: a run with few kinds
 * goes deeper into these, and rare ones meet (swarm testing).  What is drawn does not depend on
 * what is left out by hand, so a failing seed can be made shorter by leaving out more and more.
 */
#ifndef SIMULATE_PLAN_H
#define SIMULATE_PLAN_H

#include "machine.h"
#include "lab/memory_store.h"

/* Name, one in so many seeds has it, what it is. */
#define PLAN_KINDS(X)                                                         \
    X(RESERVE, "reserve", 1, "jobs are taken on leases, and answered")        \
    X(CANCEL, "cancel", 2, "")                                                \
    X(MOVE, "move", 2, "reschedule and promote")                              \
    X(UPDATE, "update", 3, "other bytes")                                     \
    X(KEYS, "keys", 3, "unique keys: refuse and replace")                     \
    X(BURY, "bury", 3, "dead jobs, and kicks")                                \
    X(ATTEMPTS, "attempts", 3, "retry policies, and only so often")           \
    X(EXPIRY, "expiry", 3, "jobs have time limits")                           \
    X(ROUNDS, "rounds", 3, "jobs come again")                                 \
    X(TOPICS, "topics", 2, "several topics")                                  \
    X(PRIORITIES, "priorities", 2, "")                                        \
    X(BATCHES, "batches", 3, "calls of several jobs")                         \
    X(CAPACITY, "capacity", 4, "few jobs fit in")                             \
    X(PAUSES, "pauses", 5, "topics are paused and resumed")                   \
    X(LIMITS, "limits", 5, "few jobs of a topic run at a time")               \
    X(GROUPS, "groups", 5, "one job of a group runs at a time")               \
    X(CLEARS, "clears", 6, "all of a topic is cancelled")                     \
    X(LOOKS, "looks", 3, "stats, peek, list, poll, trim, read")               \
    X(WAITS, "waits", 2, "calls that wait longer than a moment")              \
    X(READABLE, "readable", 5, "takes when the descriptor says so")           \
    X(WORKERS, "workers", 5, "a pool handles jobs too")                       \
    X(DISCARD, "discard", 3, "closed while calls are under way")              \
    X(DRAIN, "drain", 5, "closed when all has been delivered")                \
    X(ALWAYS, "always", 4, "everything goes through proxies")                 \
    X(NEVER, "never", 4, "no proxies")                                        \
    X(REALTIME, "realtime", 3, "the wall clock")                              \
    X(STEPS, "steps", 2, "which is set")                                      \
    X(BOOTTIME, "boottime", 4, "")                                            \
    X(MANUAL, "manual", 5, "a clock turned by hand")                          \
    X(JUMPS, "jumps", 2, "time passes although somebody could go on")         \
    X(DRIFT, "drift", 2, "time passes while a clock is looked at")            \
    X(SPURIOUS, "spurious", 3, "sleeps end for no reason")                    \
    X(INTERRUPTS, "interrupts", 3, "polls end with EINTR")                    \
    X(BUFFERS, "buffers", 2, "stores reach memory late")                      \
    X(RANKS, "ranks", 2, "the highest thread runs, not any")                  \
    X(BACK, "back", 2, "threads are held back where they do the same")        \
    X(STORED, "stored", 2, "a store, and several lives")                      \
    X(KILLS, "kills", 2, "which end by a kill")                               \
    X(ASYNC, "async", 4, "confirmed later")                                   \
    X(LATENCY, "latency", 2, "the store takes its time")                      \
    X(AWAY, "away", 4, "it is not reached")                                   \
    X(DOUBT, "doubt", 4, "its answer does not come")                          \
    X(FULL, "full", 6, "it takes removals only")                              \
    X(LOSSES, "losses", 6, "it loses what it had confirmed")                  \
    X(REPEATS, "repeats", 4, "it shows jobs again, and few at a time")        \
    X(MEMORY, "memory", 4, "allocations fail")                                \
    X(SYSTEM, "system", 5, "threads and descriptors are refused")             \
    X(STANDBY, "standby", 4, "two programs want the stored queue")            \
    X(STOPS, "stops", 2, "one of them is stopped, and goes on later")         \
    X(LARGE, "large", 5, "jobs of more than 64 KiB")                          \
    X(QUEUES, "queues", 4, "a program has two queues")                        \
    X(FREES, "frees", 2, "freed while those who waited are on their way out") \
    X(POLICIES, "policies", 2, "unique keys: earliest and debounce too")      \
    X(HEADERS, "headers", 3, "jobs have headers")                             \
    X(AMEND, "amend", 3, "one or several fields of a job are changed")        \
    X(SNOOZE, "snooze", 3, "jobs are put off by who has them")                \
    X(KICKS, "kicks", 4, "all the dead are kicked at once")                   \
    X(CROWDS, "crowds", 4, "few dead jobs are kept, or not for long")         \
    X(RELIMITS, "relimits", 2, "limits change")                               \
    X(RETAIN, "retain", 3, "keys stay taken for a while")                     \
    X(FLUSHES, "flushes", 3, "callers wait for all to be confirmed")          \
    X(POLLS, "polls", 3, "takes from a store that do not wait for it")        \
    X(METRICS, "metrics", 3, "jobs are counted by topic, and timed")          \
    X(SHORT, "short", 2, "the short forms of verbs")

enum plan_kind {
#define PLAN_ENUM(kind, name, every, about) KIND_##kind,
    PLAN_KINDS(PLAN_ENUM)
#undef PLAN_ENUM
        KINDS
};
_Static_assert(KINDS <= 64, "each kind is a bit");

/* Left out by hand. */
struct plan_wishes {
    uint64_t without;          /* a bit for each kind */
    unsigned threads;          /* no more; 0: as many as drawn */
    unsigned verbs;            /* likewise, of each thread */
    uint64_t schedule;         /* 0: the seed's own */
    const unsigned char *skip; /* of verb n of thread t: skip[t * PLAN_VERBS_MAX + n]; or NULL */
    enum machine_plant plant;
};

#define PLAN_SEATS       2u
#define PLAN_QUEUES      2u
#define PLAN_THREADS_MAX 6u
#define PLAN_VERBS_MAX   200u
#define PLAN_TOPICS      3u
#define PLAN_KEYS        8u
#define PLAN_GROUPS      3u
#define PLAN_RETRIES     6u /* policies; the first is none */
#define PLAN_LIMITS      5u /* of a topic: 0 is none */

enum plan_close { CLOSE_QUIET, CLOSE_DISCARD, CLOSE_DRAIN };

struct plan {
    uint64_t seed;
    uint64_t on;    /* a bit for each kind */
    uint64_t drawn; /* likewise, before any was left out by hand */
    bool small;     /* few threads, verbs and kinds */
    unsigned threads;
    unsigned verbs;
    uint64_t favoured; /* verbs of client.c: bits */
    unsigned answer;   /* of 20, to most jobs that are reserved: as in client_take.c; 20: any */
    unsigned keys;     /* names that there are */
    unsigned groups;   /* likewise, of each topic */
    const unsigned char *skip;
    struct machine_options machine;
    enum due_clock_kind clock;
    enum due_proxies proxies;
    enum due_order order;
    enum plan_close close;
    size_t capacity;
    size_t dead_max;      /* as in due_options */
    int64_t dead_keep_ns; /* */
    unsigned limit;       /* most jobs of a topic that run; 0: any */
    int64_t horizon_ns;   /* deadlines lie no farther ahead */
    int64_t grain_ns;     /* and are multiples of this: many are equal */
    int64_t lease_ns;
    int64_t open_ns;      /* closed after that, unless it is closed when all have ended */
    unsigned lives;       /* of the program */
    uint64_t kill_within; /* steps */
    unsigned meet_every;  /* verbs: before these the threads wait for each other; 0: never */
    unsigned close_verbs; /* it is closed when so many have begun; 0: after open_ns */
    unsigned kill_verbs;  /* it may be killed then; 0: at any step */
    uint64_t meet_steps;  /* within so many after that */
    due_retry retry[PLAN_RETRIES];
    unsigned queue_retry;              /* which of these */
    unsigned topic_retry[PLAN_TOPICS]; /* likewise; 0: the queue's */
    int attempts_lazy;
    enum due_confirm confirm;
    int64_t store_timeout_ns;
    int64_t latency_ns;
    size_t unsettled_max;
    size_t batch_changes;
    size_t page_max;                      /* jobs that it shows at a time */
    bool put_again;                       /* its owners write everything again, to be sure */
    bool settings;                        /* it keeps pauses and limits */
    unsigned store_faults[MEMORY_FAULTS]; /* of 1,000 calls */
    unsigned seats;                       /* programs that want the queue at once */
    int64_t owner_lease_ns;               /* of several */
};

extern const char *const plan_names[KINDS];

void plan_draw(struct plan *p, uint64_t seed, const struct plan_wishes *w);
/* That of a program's second queue, whose first one has the plan @p. */
void plan_draw_second(struct plan *second, const struct plan *p);
bool plan_has(const struct plan *p, enum plan_kind kind);
bool plan_kind_by_name(const char *name, enum plan_kind *kind);
/* A stream of its own for each verb, so that one that is left out changes no other. */
uint64_t plan_stream(const struct plan *p, unsigned life, unsigned thread, unsigned verb);

#endif
