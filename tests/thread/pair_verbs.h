/* pair_verbs.h - what the threads of thread_pairs do, and what they have for it. */
#ifndef PAIR_VERBS_H
#define PAIR_VERBS_H

#include <string.h>

#include "lab/crew.h"
#include "lab/take.h"

#define LEASE 100
#define BYTES 40 /* more than a job holds without an allocation */
#define KEY   "key"
#define TAKES 2 /* jobs that one verb can reserve */

struct world {
    due_queue *q;
    due_clock *clock;
    bool stored;
    due_id id;
    due_id named[2];       /* the job that a thread's enqueue names */
    due_job held[2];       /* what a thread's verb answers for: a lease, or one that has ended */
    bool copy[2];          /* the same lease as the other thread's: not to be done with twice */
    due_job own;           /* the lease, if no verb answers for it */
    due_job got[2][TAKES]; /* what a thread has reserved */
    int64_t base_ns;       /* when both begin */
    int64_t end_ns;        /* of the test: from then on each pair is tried once only */
    const struct verb *verb[2];
    int rc[2];
    unsigned polls[2]; /* how often a verb has asked for a job */
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

static int ack_batch(struct world *w, int who)
{
    int result;
    int n = due_ack_batch(&w->held[who], 1, &result);

    CREW_CHECK(n == (result == 0), ": %d acked, %s", n, due_error_name(result));
    return result;
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

/* Named twice: the second time it is not there any more. */
static int cancel_batch(struct world *w, int who)
{
    due_id ids[2] = { w->id, w->id };
    int results[2];
    int n = due_cancel_batch(w->q, ids, 2, results);

    (void)who;
    CREW_CHECK(n == (results[0] == 0) + (results[1] == 0) && n <= 1, ": %d cancelled", n);
    return n == 1 ? 0 : results[0];
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

static int amend_time(struct world *w, int who)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = w->base_ns + LEASE / 4 };

    (void)who;
    return due_amend(w->q, w->id, &spec, DUE_SET_TIME);
}

static int enqueue(struct world *w, int who, enum due_key_policy policy)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "other", .len = 5, .delay_ns = LEASE / 3,
                      .more = EXTRA(.key = KEY, .key_len = sizeof KEY, .on_key = policy) };

    return due_enqueue(w->q, &spec, 0, &w->named[who]);
}

static int enqueue_refuse(struct world *w, int who)
{
    return enqueue(w, who, DUE_KEY_REFUSE);
}

static int enqueue_replace(struct world *w, int who)
{
    return enqueue(w, who, DUE_KEY_REPLACE);
}

static int enqueue_earliest(struct world *w, int who)
{
    return enqueue(w, who, DUE_KEY_EARLIEST);
}

static int enqueue_debounce(struct world *w, int who)
{
    return enqueue(w, who, DUE_KEY_DEBOUNCE);
}

static int kick(struct world *w, int who)
{
    (void)who;
    return due_kick(w->q, w->id);
}

/* Whoever polls a stored queue may only have begun to take a job, or met another who has, and who
 * wants it for good or on a lease, otherwise than he does: then it goes back.  So he goes on for as
 * long as there is one to be had, and what came of that is as if he had waited: one of two has it,
 * not both, and not neither. */
static bool polls_again(struct world *w, int who, int rc)
{
    w->polls[who]++;
    return w->stored && rc == DUE_EAGAIN && due_flush(w->q, DUE_S(20)) == 0 &&
           due_poll(w->q, NULL) > 0;
}

static int dequeue(struct world *w, int who)
{
    due_job job;
    int rc;

    do
        rc = due_dequeue(w->q, &job, 0);
    while (polls_again(w, who, rc));
    if (rc == 0)
        due_job_done(&job);
    return rc;
}

static int reserve(struct world *w, int who)
{
    int rc;

    do
        rc = take_leased(w->q, &w->got[who][0], 7 * LEASE, 0);
    while (polls_again(w, who, rc));
    return rc;
}

/* How many, or an error. */
static int reserve_batch(struct world *w, int who)
{
    int rc;

    do
        rc = take_leased_some(w->q, NULL, 0, w->got[who], TAKES, 7 * LEASE, 0);
    while (polls_again(w, who, rc));
    return rc;
}

static int kick_all(struct world *w, int who)
{
    uint64_t n = 0;
    int rc = due_kick_all(w->q, 0, &n);

    (void)who;
    return rc != 0 ? rc : (int)n;
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
    bool counts;  /* it answers how many jobs it has found: none, if they were in hand */
} verbs[] = {
    { .name = "ack", .run = ack, .answers = true },
    { .name = "ack batch", .run = ack_batch, .answers = true },
    { .name = "nack", .run = nack, .answers = true },
    { .name = "nack later", .run = nack_later, .answers = true },
    { .name = "bury", .run = bury, .answers = true },
    { .name = "extend", .run = extend, .answers = true },
    { .name = "cancel", .run = cancel, .names = true },
    { .name = "cancel batch", .run = cancel_batch, .names = true },
    { .name = "cancel by key", .run = cancel_key, .names = true },
    { .name = "reschedule", .run = reschedule, .names = true },
    { .name = "promote", .run = promote, .names = true },
    { .name = "update", .run = update, .names = true },
    { .name = "amend time", .run = amend_time, .names = true },
    { .name = "enqueue or refuse", .run = enqueue_refuse },
    { .name = "enqueue or replace", .run = enqueue_replace },
    { .name = "enqueue or earlier", .run = enqueue_earliest },
    { .name = "enqueue or later", .run = enqueue_debounce },
    { .name = "kick", .run = kick },
    { .name = "kick all", .run = kick_all, .counts = true },
    { .name = "dequeue", .run = dequeue },
    { .name = "reserve", .run = reserve },
    { .name = "reserve batch", .run = reserve_batch },
    { .name = "clear", .run = clear, .counts = true },
    { .name = "clear dead", .run = clear_dead, .counts = true },
    { .name = "time", .run = time_passes },
};

#endif
