/* thread_pairs.c - each pair of verbs, on one job, from two threads at the same instant.
 *
 * What came of it must be what comes of one verb after the other, in one order or the other: the
 * same answers, the same figures, the job in the same place.  What that is, is asked of the library
 * itself, by one thread; that it is right is for lease_model and the unit tests to say.  Besides,
 * whatever the order: one verb at most has ended the job, and if none has, it is in one place.
 *
 * The second thread dawdles, or the first, so that each order comes about half of the time.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "crew.h"

#define LEASE    100
#define BYTES    40 /* more than a job holds without an allocation */
#define ROUNDS   6  /* of a pair, each time it has its turn; one if the order does not matter */
#define LEAD_MAX 1000
#define STEP     10
#define SPINS    8192 /* without giving the processor up */
#define TRIES    1000000
#define KEY      "key"

enum state { FRESH, DELAYED, RETRIED, RESERVED, DEAD, STATES };

struct world {
    due_queue *q;
    due_clock *clock;
    due_id id;
    due_job held[2]; /* what a thread's verb answers for: a lease, or one that has ended */
    bool copy[2];    /* the same lease as the other thread's: not to be done with twice */
    due_job own;     /* the lease, if no verb answers for it */
    due_job got[2];  /* what a thread has reserved */
    int64_t base_ns; /* when both begin */
    const struct verb *verb[2];
    int rc[2];
    atomic_uint begin; /* the round under way */
    atomic_uint ready; /* the round that the second thread waits for */
    atomic_uint awake; /* the last round that it has seen begin */
    atomic_uint end;   /* the last round that it has done */
    unsigned spin[2];  /* how long each dawdles */
    int lead;          /* by how much more the first one must, to be first half of the time */
};

/* ---- The verbs ------------------------------------------------------------------------------- */

static int ack(struct world *w, int who)
{
    return due_ack(&w->held[who]);
}

static int nack(struct world *w, int who)
{
    return due_nack(&w->held[who], 0);
}

static int nack_later(struct world *w, int who)
{
    return due_nack(&w->held[who], LEASE / 2);
}

static int bury(struct world *w, int who)
{
    return due_bury(&w->held[who], "why");
}

static int extend(struct world *w, int who)
{
    return due_extend(&w->held[who], 5 * LEASE);
}

static int cancel(struct world *w, int who)
{
    (void)who;
    return due_cancel(w->q, w->id, NULL);
}

static int cancel_key(struct world *w, int who)
{
    (void)who;
    return due_cancel_key(w->q, KEY, sizeof KEY, NULL);
}

static int reschedule(struct world *w, int who)
{
    (void)who;
    return due_reschedule(w->q, w->id, w->base_ns + LEASE / 2);
}

static int promote(struct world *w, int who)
{
    (void)who;
    return due_promote(w->q, w->id);
}

static int update(struct world *w, int who)
{
    char other[2 * BYTES];

    memset(other, who, sizeof other);
    return due_update(w->q, w->id, other, sizeof other);
}

static int kick(struct world *w, int who)
{
    (void)who;
    return due_kick(w->q, w->id);
}

static int dequeue(struct world *w, int who)
{
    due_job job;
    int rc = due_dequeue(w->q, &job, 0);

    (void)who;
    if (rc == 0)
        due_job_done(&job);
    return rc;
}

static int reserve(struct world *w, int who)
{
    return due_reserve(w->q, &w->got[who], 7 * LEASE, 0);
}

/* How many, or an error. */
static int clear(struct world *w, int who)
{
    uint64_t n = 0;
    int rc = due_clear(w->q, DUE_ALL_TOPICS, &n);

    (void)who;
    return rc != 0 ? rc : (int)n;
}

static int clear_dead(struct world *w, int who)
{
    uint64_t n = 0;
    int rc = due_clear_dead(w->q, DUE_ALL_TOPICS, &n);

    (void)who;
    return rc != 0 ? rc : (int)n;
}

static int time_passes(struct world *w, int who)
{
    int rc = due_clock_advance(w->clock, LEASE);

    (void)who;
    return rc != 0 ? rc : due_poll(w->q, NULL) < 0;
}

static const struct verb {
    const char *name;
    int (*run)(struct world *w, int who);
    bool answers; /* for what the thread has */
    bool names;   /* the job: told so, if somebody else has it in hand */
} verbs[] = {
    { "ack", ack, true, false },
    { "nack", nack, true, false },
    { "nack later", nack_later, true, false },
    { "bury", bury, true, false },
    { "extend", extend, true, false },
    { "cancel", cancel, false, true },
    { "cancel by key", cancel_key, false, true },
    { "reschedule", reschedule, false, true },
    { "promote", promote, false, true },
    { "update", update, false, true },
    { "kick", kick, false, false },
    { "dequeue", dequeue, false, false },
    { "reserve", reserve, false, false },
    { "clear", clear, false, false },
    { "clear dead", clear_dead, false, false },
    { "time", time_passes, false, false },
};

enum { VERBS = sizeof verbs / sizeof verbs[0] };

static const char *const state_names[] = { "fresh", "delayed", "retried", "reserved", "dead" };

/* ---- One job --------------------------------------------------------------------------------- */

static due_job take(struct world *w)
{
    due_job job;
    int rc = due_reserve(w->q, &job, LEASE, 0);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    return job;
}

static void turn(struct world *w, int64_t by_ns)
{
    int rc = due_clock_advance(w->clock, by_ns);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    rc = due_poll(w->q, NULL);
    CREW_CHECK(rc >= 0, ": %s", due_error_name(rc));
}

/* Who answers for the lease: the first thread that answers for anything, and who extends it. */
static void share(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        if (!w->verb[i]->answers || (w->own.queue == NULL && w->verb[i]->run != extend))
            continue;
        bool second = w->own.queue == NULL;
        if (second && (i == 0 || !w->verb[0]->answers))
            continue;
        due_job_done(&w->held[i]);
        w->held[i] = second ? w->held[0] : w->own;
        w->copy[i] = second;
        memset(&w->own, 0, sizeof w->own);
    }
}

static void make(struct world *w, enum state state, bool keyed)
{
    char bytes[BYTES] = { 0 };
    due_spec spec = { DUE_SPEC_INIT,
                      .data = bytes,
                      .len = sizeof bytes,
                      .delay_ns = state == DELAYED ? LEASE / 2 : 0,
                      .key = keyed ? KEY : NULL,
                      .key_len = keyed ? sizeof KEY : 0 };
    int rc = due_enqueue(w->q, &spec, 0, &w->id);

    CREW_CHECK(rc == 0, ": %s, %s and %s, %s", due_error_name(rc), w->verb[0]->name,
               w->verb[1]->name, state_names[state]);
    memset(w->held, 0, sizeof w->held);
    memset(w->got, 0, sizeof w->got);
    memset(w->copy, 0, sizeof w->copy);
    memset(&w->own, 0, sizeof w->own);
    for (int i = 0; i < 2 && state >= RETRIED; i++) {
        w->held[i] = take(w);
        turn(w, LEASE);
        if (!w->verb[i]->answers)
            due_job_done(&w->held[i]);
    }
    if (state >= RESERVED)
        w->own = take(w);
    if (state == DEAD) {
        rc = due_bury(&w->own, NULL);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    if (state == RESERVED)
        share(w);
    w->base_ns = due_now(w->q);
}

/* ---- What came of it ------------------------------------------------------------------------- */

struct outcome {
    int rc[2];
    uint64_t acked, dequeued, cancelled, discarded; /* ends */
    uint64_t waiting, leased, dead;                 /* places */
    uint64_t nacked, retried, lapsed, buried, kicked;
};

/* What waits and what is dead, looked for one by one. */
static uint64_t listed(struct world *w, uint64_t *dead)
{
    due_info infos[4];
    due_dead deads[4];
    uint64_t cursor = 0;
    int waiting = due_list(w->q, &cursor, infos, 4);

    cursor = 0;
    int n = due_list_dead(w->q, &cursor, deads, 4);
    CREW_CHECK(waiting >= 0 && n >= 0, ": %d, %d", waiting, n);
    *dead = (uint64_t)n;
    return (uint64_t)waiting;
}

/* When the queue's own threads have done what is left to do: the figures are what is there. */
static struct due_stats figures(struct world *w)
{
    struct due_stats s;
    uint64_t dead;

    for (unsigned tries = 0; tries < TRIES; tries++) {
        int rc = due_poll(w->q, NULL);

        CREW_CHECK(rc >= 0, ": %s", due_error_name(rc));
        uint64_t waiting = listed(w, &dead);
        rc = due_stats(w->q, &s);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        if (s.waiting == waiting && s.dead == dead)
            return s;
        sched_yield();
    }
    CREW_CHECK(false, ": %s and %s: %d wait and %d are dead, it is said", w->verb[0]->name,
               w->verb[1]->name, (int)s.waiting, (int)s.dead);
}

/* Nobody has anything any more, and there is no job. */
static void clean(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        if (!w->copy[i])
            due_job_done(&w->held[i]);
        due_job_done(&w->got[i]);
    }
    due_job_done(&w->own);
    int rc = due_cancel(w->q, w->id, NULL);
    CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
    turn(w, 10 * LEASE);
    struct due_stats s = figures(w);
    CREW_CHECK(s.waiting + s.leased + s.dead + s.lent == 0,
               ": %s and %s: waiting %d leased %d dead %d lent %d after %s", w->verb[0]->name,
               w->verb[1]->name, (int)s.waiting, (int)s.leased, (int)s.dead, (int)s.lent,
               due_error_name(rc));
}

static struct outcome since(struct world *w, const struct due_stats *b)
{
    struct due_stats s = figures(w);

    return (struct outcome){ .rc = { w->rc[0], w->rc[1] },
                             .acked = s.acked - b->acked,
                             .dequeued = s.dequeued - b->dequeued,
                             .cancelled = s.cancelled - b->cancelled,
                             .discarded = s.discarded - b->discarded,
                             .waiting = s.waiting,
                             .leased = s.leased,
                             .dead = s.dead,
                             .nacked = s.nacked - b->nacked,
                             .retried = s.retried - b->retried,
                             .lapsed = s.lapsed - b->lapsed,
                             .buried = s.buried - b->buried,
                             .kicked = s.kicked - b->kicked };
}

static bool same(const struct outcome *a, const struct outcome *b)
{
    return memcmp(a, b, sizeof *a) == 0; /* without padding */
}

/* As @order, but for a verb that came when the other had the job in hand: it may say that somebody
 * has it rather than that it is gone, or (a cancel) than that it has taken it.  Gone it is. */
static bool nearly(const struct world *w, const struct outcome *o, const struct outcome *order)
{
    struct outcome like = *o;

    for (int i = 0; i < 2; i++) {
        if (w->verb[i]->names && o->rc[i] == DUE_EBUSY && o->waiting + o->leased + o->dead == 0)
            like.rc[i] = order->rc[i];
    }
    return same(&like, order);
}

static void show(const char *what, const struct outcome *o)
{
    fprintf(stderr,
            "  %s: answers %d %d; acked %d dequeued %d cancelled %d discarded %d; waiting %d "
            "leased %d dead %d; nacked %d retried %d lapsed %d buried %d kicked %d\n",
            what, o->rc[0], o->rc[1], (int)o->acked, (int)o->dequeued, (int)o->cancelled,
            (int)o->discarded, (int)o->waiting, (int)o->leased, (int)o->dead, (int)o->nacked,
            (int)o->retried, (int)o->lapsed, (int)o->buried, (int)o->kicked);
}

static void one_place(const struct outcome *o)
{
    uint64_t ends = o->acked + o->dequeued + o->cancelled + o->discarded;
    uint64_t places = o->waiting + o->leased + o->dead;

    if (ends + places != 1)
        show("it", o);
    CREW_CHECK(ends + places == 1, ": it ended %d times and is in %d places", (int)ends,
               (int)places);
}

/* ---- Two threads ----------------------------------------------------------------------------- */

static void dawdle(unsigned n)
{
    for (volatile unsigned i = 0; i < n; i++)
        continue;
}

static void wait_for(atomic_uint *at, unsigned round)
{
    for (unsigned i = 1; atomic_load(at) != round; i++)
        if (i % SPINS == 0)
            sched_yield();
}

/* Rounds count from 1; a world without verbs is over. */
static int second(void *arg)
{
    struct world *w = arg;

    for (unsigned round = 1;; round++) {
        atomic_store(&w->ready, round);
        wait_for(&w->begin, round);
        if (w->verb[1] == NULL)
            return 0;
        atomic_store(&w->awake, round);
        dawdle(w->spin[1]);
        w->rc[1] = w->verb[1]->run(w, 1);
        atomic_store(&w->end, round);
    }
}

static struct outcome at_once(struct world *w, enum state state, bool keyed, uint64_t *seed)
{
    struct due_stats before = figures(w);
    unsigned round = atomic_load(&w->begin) + 1;

    make(w, state, keyed);
    w->spin[0] = (unsigned)crew_below(seed, 200) + (unsigned)(w->lead > 0 ? w->lead : 0);
    w->spin[1] = (unsigned)crew_below(seed, 200) + (unsigned)(w->lead < 0 ? -w->lead : 0);
    wait_for(&w->ready, round);
    atomic_store(&w->begin, round);
    if (crew_below(seed, 8) > 0) /* else it is first, also where there is but one processor */
        wait_for(&w->awake, round);
    dawdle(w->spin[0]);
    w->rc[0] = w->verb[0]->run(w, 0);
    wait_for(&w->end, round);
    struct outcome o = since(w, &before);
    clean(w);
    return o;
}

/* Thread @first's verb, then the other's. */
static struct outcome in_turn(struct world *w, enum state state, bool keyed, int first)
{
    struct due_stats before = figures(w);

    make(w, state, keyed);
    w->rc[first] = w->verb[first]->run(w, first);
    w->rc[1 - first] = w->verb[1 - first]->run(w, 1 - first);
    struct outcome o = since(w, &before);
    clean(w);
    return o;
}

static unsigned long long raced[2]; /* how often in each order, where it makes a difference */

static void pair(struct world *w, enum state state, bool keyed, uint64_t *seed)
{
    struct outcome order[2] = { in_turn(w, state, keyed, 0), in_turn(w, state, keyed, 1) };
    bool differ = !same(&order[0], &order[1]);

    one_place(&order[0]);
    one_place(&order[1]);
    for (int i = 0; i < (differ ? ROUNDS : 1); i++) {
        struct outcome o = at_once(w, state, keyed, seed);

        one_place(&o);
        if (nearly(w, &o, &order[0]) || nearly(w, &o, &order[1])) {
            bool other = same(&o, &order[1]);

            raced[other] += differ;
            if (differ && (other ? w->lead > -LEAD_MAX : w->lead < LEAD_MAX))
                w->lead += other ? -STEP : STEP;
            continue;
        }
        show("at once    ", &o);
        show("first first", &order[0]);
        show("other first", &order[1]);
        fprintf(stderr, "%s and %s of a %s job%s: neither order\n", w->verb[0]->name,
                w->verb[1]->name, state_names[state], keyed ? " with a key" : "");
        CREW_CHECK(false, ": what came of them, comes of no order");
    }
}

/* A queue in each mode of the proxies, on a clock of its own. */
struct place {
    due_queue *q;
    due_clock *clock;
};

static struct place place_open(enum due_proxies proxies)
{
    struct place p = { .clock = due_clock_manual(1000) };

    CREW_CHECK(p.clock != NULL, " is not so");
    p.q = crew_open(
        &(due_options){ .size = DUE_OPTIONS_INIT, .proxies = proxies, .manual = p.clock });
    return p;
}

static void place_close(struct place p)
{
    crew_close(p.q, DUE_CLOSE_DRAIN);
    CREW_CHECK(due_clock_free(p.clock) == 0, " is not so");
}

/* Each pair in each state once, in the modes by turns: another with each @pass. */
static void all_pairs(struct world *w, const struct place places[3], unsigned pass, uint64_t *seed)
{
    for (unsigned n = 0; n < VERBS * VERBS * STATES * 2; n++) {
        unsigned mode = (n + pass) % 3;

        crew_doing(crew_mode_names[mode]);
        w->q = places[mode].q;
        w->clock = places[mode].clock;
        w->verb[0] = &verbs[n % VERBS];
        w->verb[1] = &verbs[n / VERBS % VERBS];
        pair(w, (enum state)(n / (VERBS * VERBS) % STATES), n / (VERBS * VERBS * STATES), seed);
    }
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    struct world w = { .q = NULL };
    struct place places[3];
    struct crew_thread thread;
    unsigned passes = 0;

    for (int mode = 0; mode < 3; mode++)
        places[mode] = place_open((enum due_proxies)mode);
    crew_go(&thread, second, &w);
    do
        all_pairs(&w, places, passes++, &o.seed);
    while (crew_now_ns() < end);
    w.verb[1] = NULL;
    atomic_fetch_add(&w.begin, 1);
    crew_join(&thread);
    for (int mode = 0; mode < 3; mode++)
        place_close(places[mode]);
    printf(
        "thread_pairs: %d pairs in %d states, %u times; where the order matters, %llu and %llu\n",
        VERBS * VERBS, STATES * 2, passes, raced[0], raced[1]);
    return 0;
}
