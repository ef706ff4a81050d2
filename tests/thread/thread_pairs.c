/* thread_pairs.c - each pair of verbs, on one job, from two threads at the same instant.
 *
 * What came of it must be what comes of one verb after the other, in one order or the other: the
 * same answers, the same figures, each job in the same place.  What that is, is asked of the
 * library itself, by one thread; that it is right is for lease_model and the unit tests to say.
 * Besides, whatever the order: each job has ended once, or is in one place.
 *
 * One of the queues has a store.  There a job is in hand for as long as a change of it takes: who
 * meets it then may be told so, and has then done nothing.
 *
 * The second thread dawdles, or the first, so that each order comes about half of the time.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "lab/memory_store.h"
#include "thread/pair_verbs.h"
#include "lab/take.h"

#define LATE     DUE_S(15)
#define STRIDE   1013u /* a prime that is no factor of the number of pairs */
#define ROUNDS   6     /* of a pair, each time it has its turn; one if the order does not matter */
#define LEAD_MAX 1000
#define STEP     10
#define SPINS    8192 /* without giving the processor up */
#define TRIES    200000
#define POLLS    2 /* of who is alone: one sends, and one has the job */
#define MODES    4 /* of the proxies, and a store */

/* LAST: reserved, and there is no other attempt. */
enum state { FRESH, DELAYED, RETRIED, RESERVED, LAST, DEAD, STATES };

enum { VERBS = sizeof verbs / sizeof verbs[0] };

static const char *const state_names[] = {
    "fresh", "delayed", "retried", "reserved", "last", "dead"
};

/* ---- One job --------------------------------------------------------------------------------- */

static due_job take(struct world *w)
{
    due_job job;
    int rc = take_leased(w->q, &job, LEASE, DUE_S(20));

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
    due_retry thrice = { .kind = DUE_RETRY_FIXED, .attempts_max = 3 };
    due_spec spec = { DUE_SPEC_INIT, .data = bytes, .len = sizeof bytes,
                      .delay_ns = state == DELAYED ? LEASE / 2 : 0,
                      .more = EXTRA(.retry = state == LAST ? &thrice : NULL,
                                    .key = keyed ? KEY : NULL, .key_len = keyed ? sizeof KEY : 0) };
    int rc = due_enqueue(w->q, &spec, 0, &w->id);

    CREW_CHECK(rc == 0, ": %s, %s and %s, %s", due_error_name(rc), w->verb[0]->name,
               w->verb[1]->name, state_names[state]);
    memset(w->named, 0, sizeof w->named);
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
    if (state == RESERVED || state == LAST)
        share(w);
    w->base_ns = due_now(w->q);
}

/* ---- What came of it ------------------------------------------------------------------------- */

struct outcome {
    int rc[2];
    int named[2]; /* by an enqueue: 0 none, 1 the job, 2 another */
    uint64_t enqueued;
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
        rc = w->stored ? due_flush(w->q, DUE_S(100)) : 0;
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        uint64_t waiting = listed(w, &dead);
        rc = due_stats_read(w->q, &s);
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
        uint64_t ended = s.acked + s.dequeued + s.cancelled + s.discarded;
        if (s.waiting == waiting && s.dead == dead &&
            s.enqueued == ended + waiting + s.leased + dead)
            return s;
        sched_yield();
    }
    CREW_CHECK(false, ": %s and %s: %d wait, %d are leased and %d dead, it is said",
               w->verb[0]->name, w->verb[1]->name, (int)s.waiting, (int)s.leased, (int)s.dead);
}

/* Nobody has anything any more, and there is no job. */
static void clean(struct world *w)
{
    int rc = 0;

    for (int i = 0; i < 2; i++) {
        if (!w->copy[i])
            due_job_done(&w->held[i]);
        for (int k = 0; k < TAKES; k++)
            due_job_done(&w->got[i][k]);
    }
    due_job_done(&w->own);
    for (int i = 0; i < 3; i++) {
        rc = due_cancel(w->q, i < 2 ? w->named[i] : w->id, NULL);
        CREW_CHECK(rc == 0 || rc == DUE_EBUSY || rc == DUE_ENOENT, ": %s", due_error_name(rc));
    }
    turn(w, 10 * LEASE);
    struct due_stats s = figures(w);
    CREW_CHECK(s.waiting + s.leased + s.dead + s.lent == 0,
               ": %s and %s: waiting %d leased %d dead %d lent %d after %s", w->verb[0]->name,
               w->verb[1]->name, (int)s.waiting, (int)s.leased, (int)s.dead, (int)s.lent,
               due_error_name(rc));
}

static int named_by(const struct world *w, int who)
{
    static const due_id none;

    return due_id_equal(w->named[who], none) ? 0 : due_id_equal(w->named[who], w->id) ? 1 : 2;
}

static struct outcome since(struct world *w, const struct due_stats *b)
{
    struct due_stats s = figures(w);

    return (struct outcome){ .rc = { w->rc[0], w->rc[1] },
                             .named = { named_by(w, 0), named_by(w, 1) },
                             .enqueued = s.enqueued - b->enqueued,
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
    bool gone = o->waiting + o->leased + o->dead < o->enqueued;

    for (int i = 0; i < 2; i++) {
        if (w->verb[i]->names && o->rc[i] == DUE_EBUSY && gone)
            like.rc[i] = order->rc[i];
    }
    return same(&like, order);
}

/* A job that was put in while others were cleared may be cleared as well. */
static bool cleared_both(const struct world *w, const struct outcome *o, int who)
{
    return w->verb[who]->run == clear && o->rc[1 - who] == 0 && o->enqueued == 2 &&
           o->discarded == 2 && o->rc[who] == 2;
}

/* With a store: as if there had been no verb but the other, since this one met a job in hand. */
static bool in_vain(const struct world *w, const struct outcome *o, const struct outcome *alone,
                    int who)
{
    struct outcome like = *o;
    int rc = o->rc[who];
    bool told = rc == DUE_EBUSY || rc == DUE_EAGAIN || (rc == 0 && w->verb[who]->counts) ||
                (rc == DUE_ENOENT && w->verb[who]->run == kick); /* of the dead it is none now */

    if (!w->stored || !told)
        return false;
    like.rc[who] = alone->rc[who];
    return same(&like, alone);
}

static void show(const char *what, const struct outcome *o)
{
    fprintf(stderr,
            "  %s: answers %d %d, naming %d %d; %d enqueued; acked %d dequeued %d cancelled %d "
            "discarded %d; waiting %d "
            "leased %d dead %d; nacked %d retried %d lapsed %d buried %d kicked %d\n",
            what, o->rc[0], o->rc[1], o->named[0], o->named[1], (int)o->enqueued, (int)o->acked,
            (int)o->dequeued, (int)o->cancelled, (int)o->discarded, (int)o->waiting, (int)o->leased,
            (int)o->dead, (int)o->nacked, (int)o->retried, (int)o->lapsed, (int)o->buried,
            (int)o->kicked);
}

static void one_place(const struct outcome *o)
{
    uint64_t ends = o->acked + o->dequeued + o->cancelled + o->discarded;
    uint64_t places = o->waiting + o->leased + o->dead;

    if (ends + places != o->enqueued)
        show("it", o);
    CREW_CHECK(ends + places == o->enqueued, ": %d ends of %d jobs, in %d places", (int)ends,
               (int)o->enqueued, (int)places);
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

/* Thread @first's verb, then the other's, unless it is to be alone. */
static struct outcome in_turn(struct world *w, enum state state, bool keyed, int first, bool alone)
{
    struct due_stats before = figures(w);

    make(w, state, keyed);
    w->rc[1 - first] = 0;
    w->polls[0] = w->polls[1] = 0;
    w->rc[first] = w->verb[first]->run(w, first);
    if (!alone)
        w->rc[1 - first] = w->verb[1 - first]->run(w, 1 - first);
    CREW_CHECK(w->polls[0] <= POLLS && w->polls[1] <= POLLS, ": %s and %s polled %u and %u times",
               w->verb[0]->name, w->verb[1]->name, w->polls[0], w->polls[1]);
    struct outcome o = since(w, &before);
    clean(w);
    return o;
}

static unsigned long long raced[2]; /* how often in each order, where it makes a difference */

static _Noreturn void refuse(const struct world *w, enum state state, bool keyed,
                             const struct outcome *o, const struct outcome order[2])
{
    show("at once    ", o);
    show("first first", &order[0]);
    show("other first", &order[1]);
    fprintf(stderr, "%s and %s of a %s job%s%s: neither order\n", w->verb[0]->name,
            w->verb[1]->name, state_names[state], keyed ? " with a key" : "",
            w->stored ? ", stored" : "");
    CREW_CHECK(false, ": what came of them, comes of no order");
}

static void pair(struct world *w, enum state state, bool keyed, uint64_t *seed)
{
    struct outcome order[2] = { in_turn(w, state, keyed, 0, false),
                                in_turn(w, state, keyed, 1, false) };
    struct outcome alone[2]; /* the other one's, of each */
    bool differ = !same(&order[0], &order[1]);

    one_place(&order[0]);
    one_place(&order[1]);
    for (int i = 0; i < 2 && w->stored; i++)
        alone[i] = in_turn(w, state, keyed, 1 - i, true);
    for (int i = 0; i < (differ && crew_now_ns() < w->end_ns ? ROUNDS : 1); i++) {
        struct outcome o = at_once(w, state, keyed, seed);

        one_place(&o);
        if (!nearly(w, &o, &order[0]) && !nearly(w, &o, &order[1])) {
            if (in_vain(w, &o, &alone[0], 0) || in_vain(w, &o, &alone[1], 1) ||
                cleared_both(w, &o, 0) || cleared_both(w, &o, 1))
                continue;
            refuse(w, state, keyed, &o, order);
        }
        bool other = same(&o, &order[1]);
        raced[other] += differ;
        if (differ && (other ? w->lead > -LEAD_MAX : w->lead < LEAD_MAX))
            w->lead += other ? -STEP : STEP;
    }
}

/* A queue in each mode of the proxies, and one with a store, each on a clock of its own. */
struct place {
    due_queue *q;
    due_clock *clock;
    struct memory_disk *disk;
};

static struct place place_open(int mode)
{
    struct place p = { .clock = due_clock_manual(1000) };
    due_options o = { DUE_OPTIONS_INIT, .manual = p.clock };

    CREW_CHECK(p.clock != NULL, " is not so");
    if (mode < MODES - 1) {
        o.proxies = (enum due_proxies)mode;
    } else {
        p.disk = memory_disk_new(NULL);
        o.store = memory_store_new(p.disk);
    }
    p.q = crew_open(&o);
    return p;
}

static void place_close(struct place p)
{
    crew_close(p.q, DUE_CLOSE_DRAIN);
    CREW_CHECK(due_clock_free(p.clock) == 0, " is not so");
    if (p.disk != NULL)
        memory_disk_free(p.disk);
}

/* Each pair in each state once, in the modes by turns, another with each @pass; and by turns the
 * one or the other thread has the first verb.  Under ThreadSanitizer they are not all done before
 * LATE: so they come in an order that leaves out some of everything.  How many were done. */
static unsigned all_pairs(struct world *w, const struct place places[MODES], unsigned pass,
                          uint64_t *seed)
{
    const unsigned all = VERBS * VERBS * STATES * 2;
    unsigned done = 0;

    for (unsigned i = 0; i < all && crew_now_ns() < w->end_ns + LATE; i++) {
        unsigned n = (i * STRIDE + pass) % all;
        unsigned one = n % VERBS;
        unsigned other = n / VERBS % VERBS;
        unsigned state = n / (VERBS * VERBS) % STATES;
        unsigned turn = one + other + state + n / (VERBS * VERBS * STATES) + pass;
        unsigned mode = turn % MODES;

        if (one > other)
            continue;
        crew_doing(mode < MODES - 1 ? crew_mode_names[mode] : "stored");
        w->q = places[mode].q;
        w->clock = places[mode].clock;
        w->stored = places[mode].disk != NULL;
        w->verb[turn / MODES % 2] = &verbs[one];
        w->verb[1 - turn / MODES % 2] = &verbs[other];
        if (w->stored && state == LAST &&
            (verbs[one].run == time_passes || verbs[other].run == time_passes))
            continue; /* it dies behind the back of who turns the clock: not one after the other */
        pair(w, (enum state)state, n / (VERBS * VERBS * STATES), seed);
        done++;
    }
    return done;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    struct world w = { .end_ns = crew_now_ns() + o.ns };
    struct place places[MODES];
    struct crew_thread thread;
    unsigned passes = 0;
    unsigned done = 0;

    for (int mode = 0; mode < MODES; mode++)
        places[mode] = place_open(mode);
    crew_go(&thread, second, &w);
    do
        done += all_pairs(&w, places, (unsigned)o.seed + passes++, &o.seed);
    while (crew_now_ns() < w.end_ns);
    w.verb[1] = NULL;
    atomic_fetch_add(&w.begin, 1);
    crew_join(&thread);
    for (int mode = 0; mode < MODES; mode++)
        place_close(places[mode]);
    printf("thread_pairs: %u pairs in their states, of %d in %d; where the order matters, %llu and "
           "%llu\n",
           done, VERBS * (VERBS + 1) / 2, STATES * 2, raced[0], raced[1]);
    return 0;
}
