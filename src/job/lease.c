/* lease.c - leases: how one begins, and what follows when it ends.
 *
 * A lease is just another deadline: the reserved job stands in the timeline until its lease ends,
 * and then it is due again, or dead if that was its last attempt.  The token of a lease counts up:
 * whoever answers with an older one is told so, and changes nothing.
 *
 * A lease ends when the clock says so.  The job is moved when somebody next has the lock and moves
 * what is due; until then it still looks leased.  So whoever finds a leased job in his way looks at
 * the clock, and if the lease is over ends it there and then (due__lapse).
 *
 * A job that is cancelled while somebody has it stays with him, marked: it leaves instead of being
 * handed out again.
 *
 * The bytes of a job are lent to everyone who reserved it, also to those whose lease has ended, so
 * they and the place go back only when the last of them has let go.
 *
 * Guards     T  the timeline lock      A  atomic, see Edges
 *
 * Edges      R1  reserve writes deadline and attempts, then the word (LEASED) -> whoever reads the
 *                word, the record, and then swaps the unchanged word, has read what belongs to it.
 *                Who sends to a store writes attempts under T, before it tells the taker (G3).
 *            R2  each who holds a job counts itself out; whoever is last sees what the others did
 *            R3  whoever reserves says so (reserves) before it takes, and who gives a job a time
 *                limit, since it may be taken and found dead -> who cancels and finds a job taken
 *                sees that it may come back (with a store it always may), and marks it, under T.
 *                Who makes a job wait again, or dead, does it under T, and looks for the mark.
 *            R4  the next round of a shared queue's job is made in the store.  Who cancels marks
 *                the job, goes through the calls' lock, and then waits for all that was
 *                submitted; who sends takes it from the inbox under that lock, and looks for the
 *                mark after that: so either he sees it, or he is waited for
 *            described elsewhere: J1 slab.h, G3 sender.c
 *
 * Not here   What holders answer: ack.c.
 */
#include "job/lease.h"

#include "job/cancel.h"
#include "job/dead_letter.h"
#include "job/discard.h"
#include "job/handover.h"
#include "job/key_table.h"
#include "job/release.h"
#include "os/atomic.h"
#include "os/probe.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/job_records.h"
#include "queue/place.h"
#include "queue/queue.h"
#include "queue/tenure.h"

#define LATER_NS DUE_S(1) /* until a job is looked at again that could not be changed */

/* ---- Reserving ---- */

bool due__lease_limited(const struct due_queue *q, const struct due__job *j)
{
    return due__load_relaxed(&q->limits) && /* Y1 of retry.c */
           due__retry_limit(due__retry_of(q, j)) > 0;
}

/* The records that the jobs will need. */
int due__lease_records(struct due_queue *q, const struct due__slot *slots, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t number = due__slot_job(slots[i]);

        if (!due__records_make(&q->leases, &q->alloc, number))
            return DUE_ENOMEM;
        __builtin_prefetch(due__lease_at(q, number), 1); /* it is far from everything else */
        if (q->stored)
            q->journal->prefetch_id(q, number); /* so is that */
    }
    return 0;
}

void due__past_begin(struct due_queue *q, uint32_t number, int64_t deadline_ns)
{
    struct due__lease *l = due__lease_at(q, number);

    due__store_relaxed(&l->deadline_ns, deadline_ns); /* R1 */
    due__store_relaxed(&l->token, 0);                 /* R1 */
    due__store_relaxed(&l->attempts, 0);              /* R1 */
    due__store_relaxed(&l->failures, 0);              /* R1 */
    due__store_relaxed(&l->holders, 1);               /* R2: the job's own life */
    due__store_relaxed(&l->limit, 0);                 /* R1 */
}

/* A taken job has a lease record in use.  Answers its word. */
static uint64_t hold(struct due_queue *q, uint32_t number, int64_t deadline_ns)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */

    if (w & DUE__HELD)
        return w;
    due__past_begin(q, number, deadline_ns);
    due__word_keep(&j->word, w | DUE__HELD); /* J1 */
    return w | DUE__HELD;
}

void due__lease_count(struct due_queue *q, uint32_t number)
{
    struct due__lease *l = due__lease_at(q, number);

    hold(q, number, due__load_relaxed(&due__job_at(&q->slab, number)->deadline_ns)); /* J1: ours */
    uint32_t attempts = due__load_relaxed(&l->attempts);                             /* R1 */
    due__store_relaxed(&l->attempts, attempts + 1);                                  /* R1 */
    due__store_relaxed(&l->limit, DUE__COUNTED);                                     /* R1 */
}

void due__lease_uncount(struct due_queue *q, uint32_t number)
{
    struct due__lease *l = due__lease_at(q, number);
    uint32_t attempts = due__load_relaxed(&l->attempts); /* R1 */

    if (!due__lease_counted(q, number))
        return;
    due__store_relaxed(&l->attempts, attempts - 1); /* R1 */
    due__store_relaxed(&l->limit, 0);               /* R1 */
}

/* Of its attempts, as it is now. */
static uint32_t limit_of(const struct due_queue *q, uint32_t number)
{
    if (!due__load_relaxed(&q->limits)) /* Y1 of retry.c */
        return 0;
    uint32_t limit = due__retry_limit(due__retry_of(q, due__job_at(&q->slab, number)));
    return limit < DUE__COUNTED ? limit : DUE__COUNTED - 1;
}

/* Under the lock: a taken job begins a lease. */
static void begin_one(struct due_queue *q, struct due__slot s, int64_t now_ns, int64_t until_ns,
                      due_job *job)
{
    uint32_t number = due__slot_job(s);
    struct due__lease *l = due__lease_at(q, number);
    uint64_t w = hold(q, number, due__slot_deadline(s));

    uint32_t token = due__load_relaxed(&l->token) + 1;   /* R1 */
    token += token == 0;                                 /* which means that nothing is reserved */
    uint32_t attempts = due__load_relaxed(&l->attempts); /* R1 */
    uint32_t limit = limit_of(q, number);
    if (!due__lease_counted(q, number))
        attempts++;
    due__store_relaxed(&l->token, token);       /* R1 */
    due__store_relaxed(&l->attempts, attempts); /* R1 */
    due__store_relaxed(&l->limit, limit);       /* R1 */
    due__reserved(q, number, now_ns);
    due__add_seq(&l->holders, 1); /* R2 */
    due__job_fill(q, number, due__slot_deadline(s), now_ns, job);
    job->token = token;
    due__replace(q, number, w, DUE__LEASED, until_ns);
}

/* The same of a plain job that was never reserved, when nobody is told: everything is known of its
 * record, and it is sorted in with the store that makes it LEASED. */
static inline __attribute__((always_inline)) void begin_first(struct due_queue *q,
                                                              struct due__slot s,
                                                              struct due__job *j, int64_t now_ns,
                                                              int64_t until_ns, due_job *job)
{
    uint32_t number = due__slot_job(s);
    struct due__lease *l = due__lease_at(q, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */
    struct due__facts f = due__facts_load(j);
    struct due__slot end = due__slot_make(until_ns, f.priority, due__next_arrival(q), number);

    due__store_relaxed(&l->deadline_ns, due__slot_deadline(s)); /* R1 */
    due__store_relaxed(&l->token, 1);                           /* R1 */
    due__store_relaxed(&l->attempts, 1);                        /* R1 */
    due__store_relaxed(&l->failures, 0);                        /* R1 */
    due__store_relaxed(&l->holders, 2); /* R2: its own life, and the caller */
    due__store_relaxed(&l->limit, 0);   /* R1 */
    due__job_fill_plain_of(q, j, number, due__slot_deadline(s), now_ns, job);
    job->attempts = 1;
    job->token = 1;
    f.payload &= (uint8_t)~DUE__NOW;
    due__facts_store(j, f);
    due__store_relaxed(&j->deadline_ns, until_ns); /* J1 */
    due__tsan_release(j);
    due__word_set(&j->word, due__word(due__word_generation(w), due__slot_arrival(end),
                                      DUE__LEASED | DUE__HELD)); /* J1 */
    due__keep_waiting(q, end);
}

/* Is it such a job, of the caller's own? */
static inline bool leased_first(const struct due__job *j)
{
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */

    return (w & (DUE__STATE_MASK | DUE__FLAGS)) == DUE__CLAIMED;
}

/* After the release: leases have begun that were not counted under the lock. */
static void leases_count(struct due_queue *q, const due_job *jobs, size_t n)
{
    due__late(q, jobs, n);
    struct due__shard *it = due__shard_enter(&q->slab);
    it->leased += n;
    it->lent += n;
    it->unready += n;
    due__shard_leave(it);
}

/* Until when a lease lasts that begins at @now_ns: not before what has been looked at.  That of a
 * shared queue ends no later than in the store, whatever was looked at since @now_ns. */
static inline int64_t lease_until(const struct due_queue *q, int64_t now_ns, int64_t lease_ns)
{
    int64_t from = now_ns > due__due_ns(q) || q->shared ? now_ns : due__due_ns(q);
    int64_t until = due__time_add(from, lease_ns);

    return until > due__due_ns(q) ? until : due__time_add(due__due_ns(q), 1);
}

/* Under the lock: the time from which a lease lasts.  *@now_ns, by which it is told how late a job
 * is, may be less where the counter told it, or is not told yet (0). */
static inline int64_t lease_from(struct due_queue *q, int64_t *now_ns)
{
    if (*now_ns == 0 && !q->counter.trusted)
        *now_ns = due__clock_now(&q->clock);
    else if (*now_ns == 0)
        *now_ns = due__clock_about(&q->clock, &q->counter);
    return q->counter.trusted ? due__time_add(*now_ns, DUE__COUNTER_LAG_NS) : *now_ns;
}

/* Under the lock.  @plain: jobs that have nothing beside their payload, when nobody is told. */
static void begin_all(struct due_queue *q, const struct due__slot *slots, size_t n,
                      int64_t lease_ns, int64_t now_ns, bool plain, due_job *jobs)
{
    int64_t until = lease_until(q, lease_from(q, &now_ns), lease_ns);

    for (size_t i = 0; i < n; i++) {
        struct due__job *j = due__job_at(&q->slab, due__slot_job(slots[i]));

        if (plain && leased_first(j))
            begin_first(q, slots[i], j, now_ns, until, &jobs[i]);
        else
            begin_one(q, slots[i], now_ns, until, &jobs[i]);
        DUE__PROBE3(reserve, q, due__slot_job(slots[i]), jobs[i].lateness_ns);
    }
}

void due__lease_start(struct due_queue *q, const struct due__slot *slots, size_t n,
                      int64_t lease_ns, int64_t now_ns, due_job *jobs)
{
    struct due__tenure t;

    due__steps(q, slots, n, DUE__S_RESERVED);
    due__enter(q, &t);
    begin_all(q, slots, n, lease_ns, now_ns, false, jobs);
    due__tenure_end(q, &t);
    leases_count(q, jobs, n);
}

static inline void reserved_count(struct due_queue *q, size_t n)
{
    uint64_t reserved = due__load_relaxed(&q->reserved); /* no edge: written under T */

    due__store_relaxed(&q->reserved, reserved + n); /* no edge: a figure */
}

bool due__lease_one_at_once(struct due_queue *q, struct due__slot s, struct due__job *j,
                            int64_t lease_ns, int64_t now_ns, due_job *job)
{
    if (due__load_relaxed(&q->limits) || /* Y1 of retry.c */
        !due__is_plain_of(j) || !due__records_has(&q->leases, due__slot_job(s)))
        return false;
    int64_t until = lease_until(q, lease_from(q, &now_ns), lease_ns);
    if (leased_first(j))
        begin_first(q, s, j, now_ns, until, job);
    else
        begin_one(q, s, now_ns, until, job);
    reserved_count(q, 1);
    return true;
}

/* Do these jobs need nothing beside a record that is there? */
static bool all_plain(const struct due_queue *q, const struct due__slot *slots, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t number = due__slot_job(slots[i]);

        if (!due__is_plain(q, number) || !due__records_has(&q->leases, number))
            return false;
        __builtin_prefetch(due__lease_at(q, number), 1);
    }
    return true;
}

/* Under the lock: the leases of such jobs begin.  False: a limit has come meanwhile. */
static bool begin_plain(struct due_queue *q, const struct due__slot *slots, size_t n,
                        int64_t lease_ns, int64_t now_ns, due_job *jobs)
{
    if (due__load_relaxed(&q->limits)) /* Y1 of retry.c */
        return false;
    begin_all(q, slots, n, lease_ns, now_ns, true, jobs);
    reserved_count(q, n);
    return true;
}

bool due__lease_at_once(struct due_queue *q, const struct due__slot *slots, size_t n,
                        int64_t lease_ns, int64_t now_ns, due_job *jobs)
{
    return all_plain(q, slots, n) && begin_plain(q, slots, n, lease_ns, now_ns, jobs);
}

bool due__lease_plain(struct due_queue *q, const struct due__slot *slots, size_t n,
                      int64_t lease_ns, int64_t now_ns, due_job *jobs)
{
    struct due__tenure t;

    if (!q->short_ways || due__load_relaxed(&q->limits) || /* no edge: a guess */
        !all_plain(q, slots, n))
        return false;
    due__enter(q, &t);
    bool done = begin_plain(q, slots, n, lease_ns, now_ns, jobs);
    due__tenure_end(q, &t);
    return done;
}

int due__lease_begin(struct due_queue *q, const struct due__slot *slots, size_t n, int64_t lease_ns,
                     int64_t now_ns, due_job *jobs)
{
    if (due__lease_plain(q, slots, n, lease_ns, now_ns, jobs))
        return 0;
    int rc = due__lease_records(q, slots, n);
    if (rc == 0)
        due__lease_start(q, slots, n, lease_ns, now_ns, jobs);
    return rc;
}

bool due__revoked(const struct due_queue *q, uint32_t number)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: ours, or under T */

    return due__load_relaxed(&q->reserves) && due__records_has(&q->leases, number) && /* R3 */
           due__load_relaxed(&due__lease_at(q, number)->revoked) ==
               due__word_generation(w); /* R3 */
}

void due__wait_again(struct due_queue *q, uint32_t number, uint64_t w, int64_t at_ns)
{
    struct due__job *j = due__job_at(&q->slab, number);

    bool goes = due__revoked(q, number); /* R3 */
    if (goes && (w & DUE__LINKED))       /* its link is the inbox's: see due__dying_unlinked() */
        q->revoked_linked = true;
    if (!goes || (w & DUE__LINKED)) {
        due__replace(q, number, w, DUE__WAITING, at_ns);
        return;
    }
    due__word_set(&j->word, due__word_as(w, DUE__CLAIMED)); /* J1 */
    due__dying_enlist(q, number);
}

bool due__lease_was_last(const struct due_queue *q, uint32_t number)
{
    const struct due__lease *l = due__lease_at(q, number);
    uint32_t limit = due__load_relaxed(&l->limit); /* R1 */

    return (limit > 0 && due__load_relaxed(&l->attempts) >= limit) || /* R1 */
           due__revoked(q, number) || due__closed(q) || q->shared;
}

void due__lease_ended(struct due_queue *q, uint32_t number, bool waits)
{
    q->lapsed++;
    DUE__PROBE2(lapse, q, number);
    due__count(q, number, DUE__F_LEASED, -1);
    due__count(q, number, DUE__F_RETRIED, waits);
    due__add_relaxed(&due__lease_at(q, number)->failures, 1); /* no edge: a counter */
    if (waits)
        due__add_relaxed(&q->retried, 1); /* no edge: a counter */
}

/* Under the lock: the lease of a job of the caller's own, whose word is @w, has ended.  Unless it
 * @waits it is to be seen to after the release. */
static void lapse(struct due_queue *q, uint32_t number, uint64_t w, int64_t until_ns, bool waits)
{
    due__lease_ended(q, number, waits);
    if (waits && q->events != NULL)
        due__events_note(q, number, w, DUE__TOLD_RETRIED);
    if (waits)
        due__wait_again(q, number, w, until_ns);
    else
        due__dying_enlist(q, number);
}

/* The same of one that is leased still.  One that will wait is MOVING until it does, not CLAIMED:
 * whoever looks then waits for the lock, and is not told that somebody has it.  True: it is to be
 * seen to. */
static bool lapse_leased(struct due_queue *q, uint32_t number, uint64_t w)
{
    struct due__job *j = due__job_at(&q->slab, number);
    int64_t until = due__load_relaxed(&j->deadline_ns); /* J1 */
    bool waits = !due__lease_was_last(q, number);
    enum due__state as = waits ? DUE__MOVING : DUE__CLAIMED;

    if (!due__word_claim(&j->word, &w, as)) /* J1, R1: what was read was its own */
        return false;
    lapse(q, number, due__word_as(w, as), until, waits);
    return !waits;
}

/* A job was seen to after the release.  With a store it is dead, or gone, when that knows. */
static void wait_ended(struct due_queue *q, bool any, struct due__deadline *by)
{
    if (any && by != NULL && q->journal->flush(q, by) != 0)
        return; /* then it is on its way for longer, and busy */
}

bool due__lapse(struct due_queue *q, uint32_t number, struct due__deadline *by)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1, R1 */
    bool dying = false;
    struct due__tenure t;

    if (!due__lapsed(q, number, w))
        return false;
    due__enter(q, &t);
    w = due__load_acquire(&j->word); /* J1, R1 */
    if (due__lapsed(q, number, w))
        dying = lapse_leased(q, number, w);
    due__tenure_end(q, &t);
    wait_ended(q, dying, by);
    return true;
}

bool due__lapse_seen(struct due_queue *q, uint32_t number, uint64_t w, struct due__deadline *by)
{
    return due__lapse(q, number, by) ||
           due__load_acquire(&due__job_at(&q->slab, number)->word) != w; /* J1 */
}

void due__lapse_all(struct due_queue *q, struct due__deadline *by)
{
    bool done = !due__load_relaxed(&q->reserves); /* R3 */
    bool dying = false;
    struct due__tenure t;

    while (!done) {
        due__enter(q, &t);
        done = due__catch_up(q, DUE__PROXY_BATCH) && !due__more_to_come(q);
        dying |= due__more_to_come(q);
        due__tenure_end(q, &t);
    }
    wait_ended(q, dying, by);
}

void due__lease_resume(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);
    int64_t until = due__load_relaxed(&j->deadline_ns); /* J1 */
    struct due__tenure t;

    due__count(q, number, DUE__F_LEASED, 1);
    due__enter(q, &t);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */
    if (until <= due__due_ns(q))
        lapse(q, number, w, until, !due__lease_was_last(q, number));
    else
        due__replace(q, number, w, DUE__LEASED, until);
    due__tenure_end(q, &t);
    due__keep_if_closed(q, number, due__word_generation(w)); /* does nothing if it is leased */
}

/* ---- The end of one ---- */

int64_t due__later(const struct due_queue *q)
{
    int64_t now = due__clock_now(&q->clock);

    return due__time_add(now > due__due_ns(q) ? now : due__due_ns(q), LATER_NS);
}

void due__revoke_later(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);
    struct due__tenure t;

    if (!(due__load_relaxed(&j->word) & DUE__HELD))                     /* J1: the caller's own */
        due__past_begin(q, number, due__load_relaxed(&j->deadline_ns)); /* J1 */
    struct due__shard *it = due__shard_enter(&q->slab);
    it->leased++;
    due__shard_leave(it);
    due__count(q, number, DUE__F_LEASED, 1);
    due__enter(q, &t);
    uint64_t w = due__load_relaxed(&j->word) | DUE__HELD; /* J1: the caller's own */
    due__replace(q, number, w, DUE__LEASED, due__later(q));
    due__tenure_end(q, &t);
}

void due__wait_later(struct due_queue *q, uint32_t number)
{
    const struct due__job *j = due__job_at(&q->slab, number);
    struct due__tenure t;

    due__enter(q, &t);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */
    t.rounds = DUE__ROUNDS_MAX; /* there may be many: who sees to them sees to no others besides */
    due__wait_again(q, number, w, due__later(q));
    due__tenure_end(q, &t);
    due__keep_if_closed(q, number, due__word_generation(w));
}

void due__lease_answered(struct due_queue *q)
{
    struct due__shard *it = due__shard_enter(&q->slab);

    it->unleased++;
    due__shard_leave(it);
}

void due__given_back(struct due_queue *q, uint32_t number, uint64_t w, int64_t at_ns)
{
    due__add_relaxed(&due__lease_at(q, number)->failures, 1); /* no edge: a counter */
    due__add_relaxed(&q->retried, 1);                         /* no edge: a counter */
    due__nacked(q, number);
    due__wait_again(q, number, w, at_ns);
}

void due__snoozed(struct due_queue *q, uint32_t number, uint64_t w, int64_t at_ns)
{
    struct due__lease *l = due__lease_at(q, number);
    uint32_t attempts = due__load_relaxed(&l->attempts) - 1; /* R1 */

    due__store_relaxed(&l->attempts, attempts); /* R1 */
    due__add_relaxed(&q->retried, 1);           /* no edge: a counter */
    due__wait_again(q, number, w, at_ns);
}

void due__nacked(struct due_queue *q, uint32_t number)
{
    due__add_relaxed(&q->nacked, 1); /* no edge: a counter */
    DUE__PROBE2(nack, q, number);
    due__count(q, number, DUE__F_NACKED, 1);
}

/* With a name, under the lock: does the job, which somebody has, have that key still? */
static bool has_key(struct due_queue *q, uint32_t number, uint32_t generation,
                    const struct due__key_name *name)
{
    struct due__key_shard *shard =
        name != NULL ? due__key_enter_of(q, name, number, generation) : NULL;

    if (shard != NULL)
        due__key_leave(q, shard);
    return name == NULL || shard != NULL;
}

int due__lease_cancel(struct due_queue *q, uint32_t number, uint32_t generation,
                      const struct due__key_name *name)
{
    uint64_t seen = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */
    struct due__tenure t;
    int rc = DUE_EAGAIN;

    bool comes_back = due__load_relaxed(&q->reserves) || /* R3 */
                      q->stored ||                       /* whoever takes it may be refused */
                      due__word_state(seen) == DUE__CHANGING;
    if (!comes_back) {
        bool lent =
            due__word_state(seen) == DUE__CLAIMED && due__word_generation(seen) == generation;
        return lent ? DUE_EBUSY : DUE_EAGAIN; /* the change that was found is over: look anew */
    }
    if (!due__records_make(&q->leases, &q->alloc, number))
        return DUE_ENOMEM;
    due__enter(q, &t);
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */
    enum due__state state = due__word_state(w);
    bool had = state == DUE__LEASED || state == DUE__CLAIMED || state == DUE__DEFERRED ||
               state == DUE__CHANGING;
    if (!has_key(q, number, generation, name)) {
        rc = DUE_ENOENT;
    } else if (had && due__word_generation(w) == generation) {
        due__store_relaxed(&due__lease_at(q, number)->revoked, generation); /* R3 */
        due__store_relaxed(&q->reserves, 1); /* R3: who changes it looks under T, too */
        rc = DUE_EBUSY;
    }
    due__tenure_end(q, &t);
    return rc;
}
