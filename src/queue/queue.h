/* queue.h - what a queue is made of, and the tenure of its timeline lock.
 *
 * Guards     I  set at open, then constant      T  the timeline lock      A  atomic, see Edges
 *            N  the lock of the topics' names            O  its owner's alone
 *            X  the lock of those who leave and close (inside.c)
 * Lock order 1. the names' lock  2. the timeline lock  3. the slab's own locks (slab.h), and that
 *            of those who leave.  None of them is held in a hook.
 *
 * The edges E1 to E3 are described in tenure.c.
 */
#ifndef DUE__QUEUE_H
#define DUE__QUEUE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/due.h"
#include "mem/alloc.h"
#include "mem/chunks.h"
#include "mem/inbox.h"
#include "mem/records.h"
#include "mem/slab.h"
#include "os/bell.h"
#include "os/clock.h"
#include "os/lock.h"
#include "queue/journal.h"
#include "queue/limit.h"
#include "queue/pool_stats.h"
#include "queue/ready_line.h"
#include "queue/retry.h"
#include "queue/thread.h"
#include "timeline/timeline.h"

#ifndef DUE_HEARTBEAT
#define DUE_HEARTBEAT 1
#endif
/* Bits of a queue's state. */
#define DUE__ACTIVE   1u /* the enqueue proxy drains the inbox: others need not */
#define DUE__DRAINING 2u /* enqueues are refused, deliveries go on */
#define DUE__CLOSING  4u /* everything is refused */
#define DUE__STOPPED  8u /* the proxies' threads are to end */
#define DUE__REFUSING (DUE__DRAINING | DUE__CLOSING)

#define DUE__MOVES_MAX   64u   /* due jobs moved in one tenure, each with some sorting ahead */
#define DUE__ROUNDS_MAX  2u    /* tenures a caller adds to its own for others' jobs */
#define DUE__DEAD_MAX    512u  /* cancelled jobs that a taker passes over in one tenure */
#define DUE__RINGS       32u   /* bells one tenure can ring */
#define DUE__SWEEP_PIECE 1024u /* slots a sweep looks at in one tenure, each a cache miss */
#define DUE__SWEEP_STEP  32u   /* slots a sweep under way looks at in every other tenure */
#define DUE__TOPIC_PAGE  256u  /* topics are looked up in two steps of this size */

#define DUE__PLACES 32u /* free places at hand for who has the lock */

#ifndef DUE__FOREIGN_MAX /* the explorer sets these lower, to see what is left behind, used again */
#define DUE__FETCH       DUE__PLACES /* places taken from a shard at a time, to be at hand */
#define DUE__FOREIGN_MAX 64u         /* other callers' jobs that a caller sorts in in one tenure */
#define DUE__PROXY_BATCH 256u /* jobs sorted in in one tenure by who has nothing else to do */
#endif

/* What a tenure owes others before the lock is released: bits of a queue's debts. */
#define DUE__DEBT_CALLS    1u /* to call waiters for new jobs */
#define DUE__DEBT_LEAD     2u /* to ring the timer's owner: the head is before what it sleeps for */
#define DUE__DEBT_WORKER   4u /* to call the worker proxy */
#define DUE__DEBT_SWEEP    8u /* to go on with a sweep that is not done at home, until it ends */
#define DUE__DEBT_FD       16u   /* to see to the descriptor, as long as there is one */
#define DUE__DEBT_TURN     32u   /* to move what is due on a manual clock, once anybody waited */
#define DUE__DEBT_DYING    64u   /* to see to jobs that are to die, or to go */
#define DUE__DEBT_TELL     128u  /* to tell of jobs that have become ready, or wait again */
#define DUE__DEBT_LIMITERS 256u  /* to let jobs through limiters that have opened */
#define DUE__DEBT_WANTS    512u  /* of a shared queue: to say that somebody has begun to wait */
#define DUE__DEBT_HOME     1024u /* a piece of a sweep that is done at home */
#define DUE__DEBT_ALWAYS   (DUE__DEBT_SWEEP | DUE__DEBT_FD | DUE__DEBT_TURN | DUE__DEBT_WANTS)

#define DUE__AWAKE INT64_MIN /* armed: the timer's owner is up, and will look before it sleeps */

#define DUE__CALLED_LEAD \
    0x80000000u /* in called: come to the lock, for the lead, for what is in hand, or to leave */

/* Of those who were called for a topic at most one is under way: called, and has had no job yet. */
enum due__under_way {
    DUE__NOBODY,    /* nobody is under way */
    DUE__UNDER_WAY, /* one is, and need not see to others */
    DUE__AWAITED    /* one is, and when it has its job it calls the next, if there is more */
};

/* A queue that is closed ends: by one of those who close it. */
enum due__ending {
    DUE__NOT_ENDED, /* somebody may be inside */
    DUE__ENDING,    /* one of those who close ends its threads, and leaves the store */
    DUE__ENDED
};

/* One caller that waits: for a job, for room, or for others to leave.  Waiters belong to the queue
 * and are used again, so that a late ring touches nothing that is gone. */
struct due__waiter {
    struct due__bell bell;         /* A  its own edges */
    uint32_t called;               /* A  W2: the topic it was called for, plus 1; and a flag */
    struct due__waiter *all_next;  /* T  everyone who waits for a job */
    struct due__waiter *all_prev;  /* T */
    struct due__waiter *line_next; /* T  those of one topic, or of several; or the free list */
    struct due__waiter *line_prev; /* T */
    struct due__waiter *made_next; /* T  all waiters ever made, for the end */
    const int *topics;             /* T  the caller's; NULL: any */
    size_t topic_count;            /* T */
    const uint32_t *quit;          /* T  what calls it away, of its pool; or NULL, as in a spare */
    uint64_t ticket;               /* T  first parked, first called */
    int64_t until_ns;              /* T  on the monotonic clock, or the manual one */
    int64_t wakes_ns;              /* T  when it wakes by itself at the latest; not on the alarm */
    uint32_t hand;                 /* T  the job the dequeue proxy took for it */
    bool linked;                   /* T */
    bool on_alarm;                 /* T  sleeps on the queue's alarm instead of its bell */
    bool timed_out;                /* T  a manual clock has passed until_ns and rung */
    struct due__waiter *after[2];  /* A  under the calls' lock: whom it rings when it leaves; or
                                       the list of the spare ones */
};

/* Waiters in the order in which they came. */
struct due__waiters {
    struct due__waiter *first; /* T */
    struct due__waiter *last;  /* T */
};

struct due__topic {
    struct due__window window;     /* A  its own edges */
    struct due__line line;         /* T */
    struct due__slot shown;        /* T  the last slot published in the window */
    struct due__limiter *limiter;  /* T  its limit's; NULL: it never had one */
    struct due__waiters waiters;   /* T  those who want this topic alone */
    struct due__topic *fresh_next; /* T  topics to be looked at before the release */
    struct due__topic *next;       /* T  topics with something ready, in a ring of turns */
    struct due__topic *prev;       /* T */
    uint32_t under_way;            /* A  W4 of waiter.c: enum due__under_way */
    bool listed;                   /* T  in the ring */
    bool fresh;                    /* T  in the list of topics to be looked at */
    bool paused;                   /* T */
    uint16_t retry;                /* A  Y1 of retry.c: its policy */
    struct due__tally *tallies;    /* I  events.h: one for each shard, or NULL */
    struct due__measured *times;   /* A  Z3 of events.c: likewise */
    uint64_t turn;                 /* T  when it was last served by name */
    uint16_t number;               /* I */
    char name[];                   /* I */
};

struct due__tenure;

struct due__names {
    struct due__lock lock; /* N */
    uint16_t *table;       /* N  open addressing, topic numbers; 0 is empty */
    size_t room;           /* N  a power of two */
};

struct due__keys;    /* key_table.h */
struct due__commits; /* sender.h */

struct due__hooks {
    void (*on_log)(void *ctx, enum due_log_level level, const char *text); /* I */
    void (*on_thread_start)(void *ctx, const char *name);                  /* I */
    void (*on_discard)(void *ctx, const due_job *job);                     /* I */
    void *log_ctx, *thread_ctx, *discard_ctx;                              /* I */
};

/* What the tenure leaves to the floor of jobs, which it knows nothing of.
 * Guard: none, constant. */
struct due__life {
    /* Under the lock: the time of a leased or dead job has come.  False: it is to be handed out
     * again, or its word is not @w any more. */
    bool (*time_came)(struct due_queue *q, uint32_t number, uint64_t w);
    /* Under the lock: the lease of a MOVING job has ended by itself, and it is handed out again. */
    void (*lease_ended)(struct due_queue *q, uint32_t number);
    /* Under the lock: a job that waits comes out of the inbox, and its word was @w.  True: it was
     * cancelled there by who could not have it, and goes. */
    bool (*unlinked)(struct due_queue *q, uint32_t number, uint64_t w);
    /* After the release: jobs that are to be seen to. */
    void (*see_to)(struct due_queue *q, uint32_t first);
    /* Now and then, by the worker proxy: what nobody else comes to. */
    void (*tidy_up)(struct due_queue *q);
};

struct due_queue {
    /* What everybody reads. */
    const unsigned char *mark;  /* I  a page that a fork wipes to zero */
    const unsigned char *quick; /* I  the same page; or zero, if nothing can be done quickly */
    uint64_t tag;               /* I  in every id of this queue */
    uint64_t seed[2];           /* I  of names' hashes: shown nowhere */
    bool shows;                 /* I  what is shown may be taken without the lock */
    bool stored;                /* I  the journal is another than memory's, and is to be asked */
    bool shared;                /* I  and others have the same jobs (store/share.c) */
    bool settings;              /* I  and what holds back topics is written down there, too */
    bool short_ways;            /* I  nobody has to be asked, or told, of a plain job */
    bool short_puts;            /* I  nor has room to be found for one */
    bool short_takes;           /* I  and who takes one may take it himself, by deadline */
    size_t capacity;            /* I  0: no limit but DUE_JOBS_MAX */
    int64_t spin_ns;            /* I */
    enum due_proxies proxies;   /* I */
    enum due_order order;       /* I */
    struct due__clock clock;    /* I */
    struct due__alloc alloc;    /* I */
    struct due__hooks hooks;    /* I */
    struct due__events *events; /* I  NULL: nobody asked for one */
    char name[65];              /* I */
    struct due__topic **topics[DUE_TOPIC_MAX / DUE__TOPIC_PAGE + 1]; /* A  T1 of topic.c */
    uint32_t topic_count;                                            /* A  T1 of topic.c */
    struct due__names names;                                         /* N */
    struct due__listener turns; /* A  guarded by its manual clock's lock (clock.c) */
    uint32_t reserves;          /* A  R3 of lease.c: somebody has reserved, or may have */
    uint32_t limits;            /* A  relaxed: set once a policy has a limit of attempts */
    uint32_t unswept; /* A  E1: somebody who has cancelled could not look whether to sweep */

    /* Submission. */
    uint32_t state __attribute__((aligned(DUE__LINE))); /* A  E1, E2, E3 */
    uint32_t sole; /* A  W3: the only topic with jobs + 1; 0: ask; or DUE__NO_TOPIC */
    _Alignas(8) int64_t
        sole_until; /* A  W3: another may have some then; less than 0: that is not noted */
    struct due__inbox inbox __attribute__((aligned(DUE__LINE))); /* A  E1 */
    struct due__lock lock __attribute__((aligned(DUE__LINE)));   /* T */

    /* What the lock guards.  First what each enqueue and each take writes, or looks at: lines move
     * from core to core with the lock. */
    struct due__slot gone __attribute__((aligned(DUE__LINE))); /* T  what is before it has left */
    uint32_t arrival;                                          /* T  the next arrival number */
    uint32_t place_count;          /* T  free places at hand, in place */
    uint64_t direct;               /* T  jobs sorted in by their caller, but those placed */
    _Alignas(8) uint64_t placed;   /* A  C2 of closing.c: jobs ever in them; written under T */
    size_t sweep_at;               /* T  slots at which to see whether a sweep is worth it */
    size_t in_lines;               /* T  slots in lines, dead ones included; not those shown */
    int64_t armed;                 /* T  the deadline the lead sleeps for, or DUE__AWAKE */
    uint32_t debts;                /* T  DUE__DEBT_* */
    bool several;                  /* T  there is more than one topic, or will be at once */
    int64_t published_ns;          /* T  the latest deadline among what has left it */
    uint64_t readied;              /* T  jobs that were ever marked ready */
    uint64_t unreadied;            /* T  of those, rescheduled */
    _Alignas(8) uint64_t taken;    /* A  C2 of closing.c: jobs taken for good and counted under T */
    _Alignas(8) uint64_t reserved; /* A  relaxed: jobs reserved and counted under T */
    struct due__topic *ring;       /* T  topics with something ready; the next in turn */
    uint32_t place[DUE__PLACES];   /* T */
    struct due__pool pool;         /* T */
    struct due__timeline timeline; /* T */
    struct due__nodes nodes;       /* T */
    uint64_t lapsed;               /* T  leases that ended by themselves */
    uint64_t delegated;            /* T  jobs that came through the inbox */
    uint64_t aside;                /* T  of those placed, jobs that went there all the same */
    uint64_t tenure_begin_ns;      /* T  only when built to measure tenures */
    uint64_t tenure_max_ns;        /* T  likewise */
    struct due__counter counter;   /* T  what is left out of looks at the clock */
    size_t help_at;               /* T  slots from which on others help the worker proxy to sweep */
    uint32_t sweep_topic;         /* T  where the sweep is: 0 the timeline, then topics + 1 */
    struct due__topic *fresh;     /* T  topics for which somebody may have to be called */
    struct due__waiters waiters;  /* T  those who take any topic, or several */
    struct due__waiter *all;      /* T  first of everyone who waits for a job */
    struct due__waiter *all_last; /* T */
    struct due__waiter *lead;     /* T  owns the timer; NULL: nobody */
    struct due__waiter *deputy;   /* T  leads next: sleeps until the job after that is due */
    struct due__waiter *free;     /* T  waiters not in use */
    struct due__waiter *made;     /* T */
    struct due__waiters capacity_line; /* T  callers that wait for room */
    struct due__waiters timed_waits;   /* T  those who wait for a time (timed_wait.c) */
    uint32_t pools;                    /* T  worker pools that were not yet freed */
    uint64_t tickets;                  /* T */
    uint64_t tickets_told;             /* T  of a shared queue: of so many the journal knows */
    uint64_t turns_had;                /* T  by topics that were asked for by name */
    bool warming;                      /* T  the worker proxy is to touch fresh chunks */
    bool fd_anew;                      /* T  the descriptor is to be set even to the same time */
    bool sweeping;                     /* T  a sweep is under way */
    bool beating;                      /* T  the worker proxy keeps its heartbeat */
    struct due__board *board;          /* T  board.h: where figures are shown; NULL: nowhere */
    bool revoked_linked;               /* T  one that is to go may have been left in the inbox */
    uint32_t dying;                /* T  place plus 1: the first to be seen to after the release */
    uint32_t dying_last;           /* T  and the last, if there is one */
    uint32_t dead_first;           /* T  place plus 1: the oldest of the dead */
    uint32_t dead_last;            /* T */
    size_t dead_count;             /* T */
    struct due__limiters limiters; /* T  limits of topics, and groups */
    uint64_t mended;               /* T */
    uint64_t beats;                /* T */
    int64_t beat_ns;               /* T  when the last one was, on the queue's clock; -1: never */
    struct due__bell alarm;        /* A  its own edges; fd < 0: the clock is monotonic or manual */

    /* Capacity. */
    uint64_t used __attribute__((aligned(DUE__LINE))); /* A  S1 of capacity.c */
    uint32_t capacity_waiting;                         /* A  S1 of capacity.c */

    /* Leaving, and closing. */
    uint32_t inside;          /* A  C1 of inside.c: callers in a call that may wait, and a flag */
    struct due__lock leaving; /* X  C4 of inside.c */
    struct due__waiters closers; /* X  callers in due_close that wait */
    uint32_t closing;            /* X  all callers in due_close */
    enum due__ending ending;     /* X */
    struct due__waiter closer;   /* X  one of them needs no memory */
    uint32_t closer_taken;       /* A  C3 of inside.c */

    /* The pollable descriptor. */
    int fd;                      /* A  P1 of event_loop.c: -1 until due_fd */
    _Alignas(8) int64_t fd_want; /* A  P1 of event_loop.c */
    struct due__lock fdlock;     /* A  its own guard; taken alone */

    /* The proxies. */
    struct due__bell enqueue_bell;     /* A  its own edges */
    struct due__waiter worker;         /* A  its bell and T fields; in no list */
    struct due__bell dequeue_bell;     /* A  its own edges */
    struct due__thread threads[3];     /* I */
    struct due__pool_stats pool_stats; /* A  its own lock */
    _Alignas(8) uint64_t rings;        /* A  relaxed counter */
    _Alignas(8) uint64_t proxy_calls;  /* A  relaxed counter */

    /* What becomes of jobs that fail. */
    int64_t dead_keep_ns;          /* I  0: for ever */
    size_t dead_max;               /* I  0: no limit */
    bool attempts_lazy;            /* I */
    int64_t lease_ns;              /* I  of a lease, unless its taker says otherwise */
    uint16_t retry;                /* I  the queue's policy */
    struct due__retries retries;   /* A  Y1 of retry.c */
    _Alignas(8) uint64_t nacked;   /* A  relaxed counter */
    _Alignas(8) uint64_t retried;  /* A  relaxed counter */
    _Alignas(8) uint64_t buried;   /* A  relaxed counter */
    _Alignas(8) uint64_t kicked;   /* A  relaxed counter */
    _Alignas(8) uint64_t repeated; /* A  relaxed counter */

    struct due__slab slab;            /* A  its own edges */
    struct due__records leases;       /* A  its own edges: struct due__lease */
    struct due__records dead_letters; /* A  its own edges: struct due__dead_letter */
    struct due__keys *keys;           /* A  K1 of key_table.c: of unique keys, or NULL */
    const struct due__life *life;     /* I  what the tenure leaves to the floor of jobs */
    void (*tenure_end)(struct due_queue *q, struct due__tenure *t, bool owing); /* I  tenure.c */
    const struct due__journal *journal; /* I  where changes land */
    struct due__commits *commits;       /* I  what the journal of a stored queue has; or NULL */
    size_t payload_max;                 /* I */
    uint32_t changing;                  /* I  0: its address is the quit of who waits in update.c */
};

/* One tenure of the timeline lock, on its holder's stack. */
struct due__tenure {
    struct due__bell *ring[DUE__RINGS]; /* O  to be rung after the release */
    uint32_t rings;                     /* O */
    uint32_t rounds;                    /* O  tenures already spent for others */
};

/* ---- tenure.c ---- */

/* What timeouts are counted on. */
static inline int64_t due__timeout_now(const struct due_queue *q)
{
    return q->clock.manual != NULL ? due__clock_now(&q->clock) : due__monotonic_now();
}

/* In a child of the program that opened it: the page was wiped before fork() returned there. */
static inline bool due__forked(const struct due_queue *q)
{
    return *q->mark == 0;
}

#ifdef DUE_MEASURE_TENURE
void due__measure_begin(struct due_queue *q);
void due__measure_end(struct due_queue *q);
#else
static inline void due__measure_begin(struct due_queue *q)
{
    (void)q;
}

#ifdef DUE__EXPLORE
void due__measure_end(struct due_queue *q); /* the explorer looks at what holds at each release */
#else
static inline void due__measure_end(struct due_queue *q)
{
    (void)q;
}
#endif
#endif

/* Up to here all that waits has left the timeline: the last whole nanosecond before gone. */
static inline int64_t due__due_ns(const struct due_queue *q)
{
    return due__slot_deadline(q->gone) - 1;
}

/* The clock can be set back: if it was, wait on. */
static inline void due__look_back(struct due_queue *q)
{
    int64_t now = due__clock_now(&q->clock);

    if (now <= due__due_ns(q)) /* then too what is gone may be of the nanosecond after it */
        q->gone = due__slot_after(now);
}

/* The lock is ours. */
static inline void due__begin(struct due_queue *q, struct due__tenure *t)
{
    due__measure_begin(q);
    t->rings = 0;
    if (q->clock.steps)
        due__look_back(q);
}

static inline void due__enter(struct due_queue *q, struct due__tenure *t)
{
    due__lock_acquire(&q->lock);
    t->rounds = 0;
    due__begin(q, t);
}

static inline bool due__try_enter(struct due_queue *q, struct due__tenure *t)
{
    if (!due__lock_try(&q->lock)) /* E1 */
        return false;
    t->rounds = 0;
    due__begin(q, t);
    return true;
}

/* Release the lock, and first and after that do what is owed to others (tenure.c). */
static inline void due__tenure_end(struct due_queue *q, struct due__tenure *t)
{
    if (q->debts != 0 || q->pool.near || t->rings > 0) {
        q->tenure_end(q, t, true);
        return;
    }
    due__measure_end(q);
    due__lock_release(&q->lock);       /* E1 */
    if (due__inbox_knocked(&q->inbox)) /* E1 */
        q->tenure_end(q, t, false);
}

/* There is room for it. */
static inline void due__tenure_ring(struct due__tenure *t, struct due__bell *b)
{
    assert(t->rings < DUE__RINGS);
    t->ring[t->rings++] = b;
}

/* Can another waiter be rung, and the timer's owner and the worker proxy besides? */
static inline bool due__tenure_room(const struct due__tenure *t)
{
    return t->rings + 3 <= DUE__RINGS;
}

/* Sort in up to @max jobs from the inbox.  True: it is empty. */
bool due__drain_some(struct due_queue *q, uint32_t max);

static inline bool due__drain(struct due_queue *q, uint32_t max)
{
    if (due__inbox_quiet(&q->inbox) && !due__inbox_late(&q->inbox)) /* I2, I3 */
        return true;
    return due__drain_some(q, max);
}

/* The same before anything is shown: what is left may stand before it (I3). */
static inline bool due__drain_or_say(struct due_queue *q, uint32_t max)
{
    bool all = due__drain(q, max);

    if (!all)
        due__inbox_say_late(&q->inbox);
    return all;
}

/* Catch up in tenures of its own, one at least, until everything is sorted in that was there when
 * it began and can be reached. */
void due__drain_all(struct due_queue *q);

/* Drop every dead slot now: the pool is used up.  It holds enough for every live one (chunks.h). */
void due__make_room(struct due_queue *q);

/* A job leaves the timeline because it is due: counted, and remembered as the latest. */
static inline void due__note_ready(struct due_queue *q, struct due__slot s)
{
    if (due__slot_deadline(s) > q->published_ns)
        q->published_ns = due__slot_deadline(s);
    q->readied++;
}

/* A filled place that is still its enqueuer's alone. */
struct due__fresh {
    struct due__job *job; /* O */
    int64_t deadline_ns;  /* O */
    struct due__facts f;  /* O */
    uint32_t number;      /* O */
    uint32_t generation;  /* O */
};

/* Sort in a job of the caller's own that is not in the inbox; @held: it has a lease record;
 * @failed: it is to be tried again. */
void due__place(struct due_queue *q, const struct due__fresh *it);
void due__place_held(struct due_queue *q, const struct due__fresh *it, bool held, bool failed);

/* The job @number, which was on its way to the store (SENT), waits from here on. */
void due__sort_sent(struct due_queue *q, uint32_t number);

/* A node has left an inbox; its job was cancelled before. */
void due__unlink_cancelled(struct due_queue *q, uint32_t number);

/* Has what stands where @s does left the timeline? */
static inline bool due__moved(const struct due_queue *q, struct due__slot s)
{
    return due__slot_before(s, q->gone);
}

/* Arrivals are numbered from the beginning whenever nothing waits. */
static inline void due__arrivals_anew(struct due_queue *q)
{
    if (due__timeline_count(&q->timeline) == 0 && q->in_lines == 0 && q->ring == NULL)
        q->arrival = 0;
}

/* Move what is due at @now_ns from the timeline to the topics, at most DUE__MOVES_MAX.  True: all
 * of it, and the timeline's head is exact.  @now_ns was read before the last drain (I3). */
bool due__move_some(struct due_queue *q, int64_t now_ns);

/* What was due at @now_ns has been moved. */
static inline void due__all_moved(struct due_queue *q, int64_t now_ns)
{
    if (now_ns >= due__slot_deadline(q->gone))
        due__slot_store(&q->gone, due__slot_after(now_ns));
    if (due__timeline_count(&q->timeline) == 0)
        due__arrivals_anew(q);
}

static inline bool due__move_due(struct due_queue *q, int64_t now_ns)
{
    if (due__timeline_bound(&q->timeline) <= now_ns)
        return due__move_some(q, now_ns);
    due__all_moved(q, now_ns);
    return true;
}

/* Sort in up to @max, and move what is due.  As due__move_due(). */
bool due__catch_up(struct due_queue *q, uint32_t max);

/* Give the slot of a job of the caller's own, or MOVING, another place, and make it WAITING or,
 * with a deadline that is not gone, LEASED or DEAD.  @w: its word, whatever its state. */
void due__replace(struct due_queue *q, uint32_t number, uint64_t w, enum due__state state,
                  int64_t deadline_ns);

/* Chunks and places for one more segment.  DUE_ENOMEM, DUE_ELIMIT. */
int due__grow(struct due_queue *q);
/* Of @n slots, of a line or of the timeline, the live ones to the front, in their order. */
size_t due__keep_live(const struct due_queue *q, struct due__slot *slot, size_t n, bool line);

#define DUE__PREFETCH_POPS  6u /* so many pops ahead a job is on its way into the cache */
#define DUE__PREFETCH_TAKES 3u /* so many takes ahead likewise */

/* A job that will be popped soon, and its lease, which may have ended, into the cache. */
static inline void due__pop_prefetch(const struct due_queue *q, struct due__slot s)
{
    due__job_prefetch(&q->slab, due__slot_job(s));
    due__records_prefetch(&q->leases, due__slot_job(s));
}

/* After a pop: the same of one further on. */
static inline void due__prefetch_ahead(const struct due_queue *q)
{
    struct due__slot s;

    if (due__timeline_ahead(&q->timeline, DUE__PREFETCH_POPS, &s))
        due__pop_prefetch(q, s);
}

/* As due__timeline_ready(), and the first jobs after a load into the cache. */
bool due__head_load(struct due_queue *q);

static inline bool due__head_ready(struct due_queue *q)
{
    return due__timeline_front(&q->timeline) > 0 || due__head_load(q);
}

/* ---- tick.c ---- */

/* A manual clock was turned. */
void due__tick(void *queue);

/* ---- event_loop.c ---- */

/* Under the lock, before leaving: has the descriptor's time changed? */
bool due__fd_note(struct due_queue *q);
/* A take found nothing: set the descriptor anew in any case, the clock may have been set back. */
void due__fd_again(struct due_queue *q);
/* After leaving: make it so. */
void due__fd_arm(struct due_queue *q);

/* ---- The proxies, and log.c ---- */

void due__enqueue_proxy(struct due_queue *q);
void due__worker_proxy(struct due_queue *q);
void due__dequeue_proxy(struct due_queue *q);
void due__log(struct due_queue *q, enum due_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#include "queue/events.h"
#include "queue/id.h"
#include "queue/topic.h"
#include "queue/waiter.h"

#endif
