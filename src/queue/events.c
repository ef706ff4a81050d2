/* events.c - the steps of jobs, counted by topic and told to a hook.
 *
 * Who makes a step of a job that is his own (CLAIMED, or not yet submitted) tells of it before the
 * job goes on.  But jobs also become ready, and wait again when a lease ends, under the timeline's
 * lock, where no hook may be called; and from then on anybody may take them.  So whoever holds the
 * lock notes the step in a record of the place, before the word says that it is made, and tells of
 * it after the release; or whoever makes the next step finds the note, and tells of both.  So the
 * events of a job are told in the order of its life, and nothing needs memory on the way.
 *
 * Counts are sums of what the shards' threads have counted, each in lines of its own.
 *
 * Guards     I  set at open      T  the timeline's lock      Z  the teller's lock of a place
 *            A  atomic, see Edges      O  its owner's alone
 * Lock order A teller's lock is taken while no other is held, and only the hook is called in it.
 *            So who waits for it waits for nothing else than a hook that is told of the same job.
 *
 * Edges      Z1  who holds the timeline's lock notes a step, then writes the job's word (J1) -> who
 *                takes the job sees the note; he swaps it out, and so does who walks the list, each
 *                with the teller's lock.  So one of them tells, and the other waits until he has.
 *                A note has the generation of its job: of a later one it says nothing.  While a
 *                step is noted the job is MOVING, or the noter's own, so that nobody can make it
 *                another step instead; else he would tell of this one too.
 *            Z2  who walks reads the next place, then takes LISTED out of the note; the next who
 *                holds the lock sees that it is not LISTED, then links it anew.
 *            Z3  who asks for a topic's own histograms makes them as zeroes, then swaps their place
 *                in for NULL -> who measures, or sums, sees them whole; of two who ask one swaps.
 *            described elsewhere: J1 slab.h, R1 lease.c, T1 topic.c
 *
 * Always     N1  of a job nobody has, or that is its taker's, at most these steps are untold: it
 *                waits again, after a failure or a kick, and then it is ready
 *            N2  a place is in the list exactly while its note says LISTED
 */
#include "queue/events.h"

#include <pthread.h>

#include "os/atomic.h"
#include "queue/job_records.h"

#define STEPS (~DUE__TOLD_LISTED)

/* What a step means: which figure counts it, what else it changes, and what is told of it. */
struct meaning {
    int8_t figure; /* O  enum due__figure, or -1 */
    int8_t by;     /* O */
    int8_t ready;  /* O  change of what is ready, besides what the word says */
    int8_t leased; /* O  of what is leased */
    int8_t dead;   /* O  of what is dead */
    uint8_t event; /* O  0: none */
};

static const struct meaning meanings[DUE__STEPS] = {
    [DUE__S_ENTERED] = { DUE__F_ENQUEUED, 1, 0, 0, 0, 0 },
    [DUE__S_PRODUCED] = { -1, 0, 0, 0, 0, DUE_EVENT_PRODUCED },
    [DUE__S_BACK] = { DUE__F_ENQUEUED, -1, 0, 0, 0, 0 },
    [DUE__S_REFUSED] = { DUE__F_ENQUEUED, -1, 0, 0, 0, DUE_EVENT_DISCARDED },
    [DUE__S_DEQUEUED] = { DUE__F_DEQUEUED, 1, -1, 0, 0, DUE_EVENT_DELIVERED },
    [DUE__S_RESERVED] = { DUE__F_RESERVED, 1, -1, 1, 0, DUE_EVENT_DELIVERED },
    [DUE__S_ACKED] = { DUE__F_ACKED, 1, 0, 0, 0, DUE_EVENT_ACKED },
    [DUE__S_RETRIED] = { DUE__F_RETRIED, 1, 0, 0, 0, DUE_EVENT_RETRIED },
    [DUE__S_DIED] = { DUE__F_DIED, 1, 0, 0, 1, DUE_EVENT_DEAD },
    [DUE__S_KICKED] = { DUE__F_KICKED, 1, 0, 0, 0, DUE_EVENT_KICKED },
    [DUE__S_ROUND] = { DUE__F_RESERVED, 1, -1, 0, 0, DUE_EVENT_DELIVERED },
    [DUE__S_REPEATED] = { -1, 0, 0, 0, 0, DUE_EVENT_REPEATED },
    [DUE__S_CANCELLED] = { DUE__F_CANCELLED, 1, 0, 0, 0, DUE_EVENT_CANCELLED },
    [DUE__S_DISCARDED] = { DUE__F_DISCARDED, 1, 0, 0, 0, DUE_EVENT_DISCARDED },
    [DUE__S_KEPT] = { DUE__F_KEPT, 1, 0, 0, 0, DUE_EVENT_KEPT },
};

static struct due__untold *untold_at(const struct due_queue *q, uint32_t number)
{
    return due__records_at(&q->events->untold, number);
}

/* ---- Counting ---- */

void due__events_count_in(struct due_queue *q, uint32_t topic, enum due__figure figure, int64_t by)
{
    if (by == 0)
        return;
    struct due__tally *tallies = due__topic_at(q, topic)->tallies;
    if (tallies != NULL)
        due__add_relaxed(&tallies[due__thread_shard()].figure[figure],
                         (uint64_t)by); /* no edge: a counter */
}

void due__events_count(struct due_queue *q, uint32_t number, enum due__figure figure, int64_t by)
{
    due__events_count_in(q, due__facts_load(due__job_at(&q->slab, number)).topic, figure, by);
}

static void measure(struct due__gauge *g, int64_t ns)
{
    due__add_relaxed(&g->sum_ns, ns > 0 ? (uint64_t)ns : 0);   /* no edge: a counter */
    due__add_relaxed(&g->bucket[due_histogram_bucket(ns)], 1); /* no edge: a counter */
}

/* Where durations of the topic's jobs go: its own histograms, or those of all that have none. */
static struct due__measured *measured_of(struct due_queue *q, uint32_t topic)
{
    struct due__measured *own = due__load_acquire(&due__topic_at(q, topic)->times); /* Z3 */

    return &(own != NULL ? own : q->events->measured)[due__thread_shard()];
}

void due__events_late(struct due_queue *q, const due_job *jobs, size_t n)
{
    for (size_t i = 0; q->events->counts && i < n; i++)
        measure(&measured_of(q, (uint32_t)jobs[i].topic)->late, jobs[i].lateness_ns);
}

static struct due__since *since_at(const struct due_queue *q, uint32_t number)
{
    return due__records_at(&q->events->since, number);
}

void due__events_reserved(struct due_queue *q, uint32_t number, int64_t now_ns)
{
    if (q->events->counts)
        due__store_relaxed(&since_at(q, number)->ns, now_ns); /* R1 of lease.c */
}

void due__events_answered(struct due_queue *q, uint32_t number)
{
    if (!q->events->counts)
        return;
    int64_t since = due__load_relaxed(&since_at(q, number)->ns); /* R1 of lease.c */
    uint32_t topic = due__facts_load(due__job_at(&q->slab, number)).topic;
    int64_t held = due__clock_now(&q->clock) - since;
    measure(&measured_of(q, topic)->held, held);
}

void due__tallies_sum(const struct due__topic *t, uint64_t sums[DUE__FIGURES])
{
    for (unsigned f = 0; f < DUE__FIGURES; f++) {
        sums[f] = 0;
        for (size_t i = 0; t->tallies != NULL && i < DUE__SHARDS; i++)
            sums[f] += due__load_relaxed(&t->tallies[i].figure[f]); /* no edge: a counter */
        if ((int64_t)sums[f] < 0)
            sums[f] = 0; /* what has left was counted before what has come */
    }
}

static void gauge_sum(const struct due__gauge *g, due_histogram *h)
{
    h->sum_ns += due__load_relaxed(&g->sum_ns); /* no edge: a counter */
    for (unsigned b = 0; b < DUE_HISTOGRAM_BUCKETS; b++) {
        uint64_t n = due__load_relaxed(&g->bucket[b]); /* no edge: a counter */

        h->bucket[b] += n;
        h->count += n;
    }
}

static void shards_sum(const struct due__measured *m, bool held, due_histogram *h)
{
    for (size_t i = 0; m != NULL && i < DUE__SHARDS; i++)
        gauge_sum(held ? &m[i].held : &m[i].late, h);
}

void due__measured_sum(const struct due_queue *q, due_histogram *late, due_histogram *held)
{
    uint32_t topics = due__load_acquire(&q->topic_count); /* T1 of topic.c */

    *late = *held = (due_histogram){ .count = 0 };
    if (q->events == NULL || !q->events->counts)
        return;
    shards_sum(q->events->measured, false, late);
    shards_sum(q->events->measured, true, held);
    for (uint32_t i = 0; i < topics; i++) {
        const struct due__measured *own = due__load_acquire(&due__topic_at(q, i)->times); /* Z3 */

        shards_sum(own, false, late);
        shards_sum(own, true, held);
    }
}

bool due__topic_measured(const struct due__topic *t, bool held, due_histogram *h)
{
    const struct due__measured *own = due__load_acquire(&t->times); /* Z3 */

    *h = (due_histogram){ .count = 0 };
    shards_sum(own, held, h);
    return own != NULL;
}

/* ---- Telling ---- */

static void call_hook(struct due_queue *q, const due_event *event)
{
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    q->events->on_event(q->events->event_ctx, event);
    pthread_setcancelstate(cancel, NULL);
}

static void describe_past(const struct due_queue *q, uint32_t number, due_event *e)
{
    const struct due__lease *l = due__lease_at(q, number);

    e->deadline_ns = due__load_relaxed(&l->deadline_ns); /* R1 */
    e->attempts = due__load_relaxed(&l->attempts);       /* R1 */
    e->failures = due__load_relaxed(&l->failures);       /* R1 */
}

/* What is known of a job that cannot go on before this was told. */
static due_event describe(struct due_queue *q, uint32_t number, enum due_event_kind kind)
{
    const struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */
    struct due__facts f = due__facts_load(j);
    int64_t deadline = due__load_relaxed(&j->deadline_ns); /* J1 */
    due_event e = { .kind = kind,
                    .id = due__id(q, number, due__word_generation(w)),
                    .topic = f.topic,
                    .priority = f.priority,
                    .at_ns = due__clock_now(&q->clock),
                    .deadline_ns = deadline };

    if (w & DUE__HELD)
        describe_past(q, number, &e);
    return e;
}

/* With the teller's lock: what was noted of the job of this @generation is the caller's to tell. */
static uint32_t take_note(struct due__untold *u, uint32_t generation, uint32_t keep)
{
    uint64_t note = due__load_acquire(&u->steps); /* Z1 */

    while (!due__cas_acq_rel(&u->steps, &note, note & (~UINT64_C(0xffffffff) | keep))) /* Z1, Z2 */
        ;
    return (uint32_t)(note >> 32) == generation ? (uint32_t)note & STEPS : 0;
}

static void tell_note(struct due_queue *q, uint32_t number, uint32_t steps)
{
    static const struct {
        uint32_t step;
        enum due_event_kind kind;
    } order[] = { { DUE__TOLD_DELIVERED, DUE_EVENT_DELIVERED },
                  { DUE__TOLD_RETRIED, DUE_EVENT_RETRIED },
                  { DUE__TOLD_REPEATED, DUE_EVENT_REPEATED },
                  { DUE__TOLD_KICKED, DUE_EVENT_KICKED },
                  { DUE__TOLD_READY, DUE_EVENT_READY } };

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (steps & order[i].step) {
            due_event e = describe(q, number, order[i].kind);

            call_hook(q, &e);
        }
    }
}

/* What was noted of a job of the caller's own, and then @e. */
static void tell(struct due_queue *q, uint32_t number, uint32_t generation, const due_event *e)
{
    struct due__untold *u = untold_at(q, number);

    due__lock_acquire(&u->teller);
    tell_note(q, number, take_note(u, generation, DUE__TOLD_LISTED));
    call_hook(q, e);
    due__lock_release(&u->teller);
}

void due__events_flush(struct due_queue *q, uint32_t number)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */

    if (q->events->on_event == NULL)
        return;
    struct due__untold *u = untold_at(q, number);
    due__lock_acquire(&u->teller);
    tell_note(q, number, take_note(u, due__word_generation(w), DUE__TOLD_LISTED));
    due__lock_release(&u->teller);
}

void due__events_tell(struct due_queue *q, uint32_t first)
{
    while (first != 0) {
        uint32_t number = first - 1;
        struct due__untold *u = untold_at(q, number);

        first = due__load_relaxed(&u->next); /* Z2: before LISTED is taken out */
        due__lock_acquire(&u->teller);
        uint32_t generation = (uint32_t)(due__load_acquire(&u->steps) >> 32); /* Z1 */
        uint32_t steps = take_note(u, generation, 0);
        uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */
        if (due__word_generation(w) == generation)
            tell_note(q, number, steps);
        due__lock_release(&u->teller);
    }
}

/* ---- Steps ---- */

static void step_count(struct due_queue *q, uint32_t number, const struct meaning *m, uint64_t w)
{
    uint32_t topic = due__facts_load(due__job_at(&q->slab, number)).topic;

    if (m->figure >= 0)
        due__events_count_in(q, topic, (enum due__figure)m->figure, m->by);
    due__events_count_in(q, topic, DUE__F_READY, m->ready - ((w & DUE__READY) != 0));
    due__events_count_in(q, topic, DUE__F_LEASED, m->leased);
    due__events_count_in(q, topic, DUE__F_DEAD, m->dead);
}

void due__events_step(struct due_queue *q, uint32_t number, enum due__step step, uint64_t w)
{
    const struct meaning *m = &meanings[step];
    enum due_cause cause = 0;

    if (step == DUE__S_DIED)
        cause = (enum due_cause)due__dead_letter_at(q, number)->cause;
    if (q->events->counts) {
        step_count(q, number, m, w);
        if (cause == DUE_CAUSE_EXPIRED)
            due__events_count(q, number, DUE__F_EXPIRED, 1);
    }
    if (q->events->on_event == NULL || m->event == 0)
        return;
    due_event e = describe(q, number, (enum due_event_kind)m->event);
    e.cause = cause;
    e.attempts += step == DUE__S_RESERVED && !due__lease_counted(q, number);
    e.leased = step == DUE__S_RESERVED;
    uint64_t now = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's */
    tell(q, number, due__word_generation(now), &e);
}

/* What is told of a job that is not the queue's yet. */
static due_event describe_fresh(struct due_queue *q, const struct due__fresh *it,
                                enum due_event_kind kind)
{
    return (due_event){ .kind = kind,
                        .id = due__id(q, it->number, it->generation),
                        .topic = it->f.topic,
                        .priority = it->f.priority,
                        .at_ns = due__clock_now(&q->clock),
                        .deadline_ns = it->deadline_ns };
}

void due__events_restored(struct due_queue *q, const struct due__fresh *it, bool held)
{
    if (q->events->counts)
        due__events_count_in(q, it->f.topic, DUE__F_RESTORED, 1);
    if (q->events->on_event == NULL)
        return;
    due_event e = describe_fresh(q, it, DUE_EVENT_RESTORED);
    if (held)
        describe_past(q, it->number, &e);
    tell(q, it->number, it->generation, &e);
}

void due__events_enter(struct due_queue *q, const struct due__fresh *jobs, size_t n, bool told)
{
    for (size_t i = 0; i < n; i++) {
        const struct due__fresh *it = &jobs[i];

        if (q->events->counts)
            due__events_count_in(q, it->f.topic, DUE__F_ENQUEUED, 1);
        if (q->events->on_event == NULL || !told)
            continue;
        due_event e = describe_fresh(q, it, DUE_EVENT_PRODUCED);
        tell(q, it->number, it->generation, &e);
    }
}

bool due__events_make(struct due_queue *q, uint32_t number)
{
    struct due__events *it = q->events;

    return (it->on_event == NULL || due__records_make(&it->untold, &q->alloc, number)) &&
           (!it->counts || due__records_make(&it->since, &q->alloc, number));
}

/* ---- Under the timeline's lock ---- */

void due__events_note(struct due_queue *q, uint32_t number, uint64_t w, uint32_t steps)
{
    struct due__events *it = q->events;

    if (it->on_event == NULL)
        return;
    struct due__untold *u = untold_at(q, number);
    uint64_t note = due__load_acquire(&u->steps); /* Z1 */
    uint64_t with;
    uint32_t before;

    do {
        before = (uint32_t)(note >> 32) == due__word_generation(w) ? (uint32_t)note & STEPS : 0;
        with = (uint64_t)due__word_generation(w) << 32 | before | steps | DUE__TOLD_LISTED;
    } while (!due__cas_acq_rel(&u->steps, &note, with)); /* Z1, Z2 */
    if (!(note & DUE__TOLD_LISTED)) {
        due__store_relaxed(&u->next, it->list); /* Z2 */
        it->list = number + 1;
        q->debts |= DUE__DEBT_TELL;
    }
}

bool due__events_ready(struct due_queue *q, uint32_t number, uint64_t *w, uint64_t ready)
{
    struct due__job *j = due__job_at(&q->slab, number);

    if (!due__word_claim(&j->word, w, DUE__MOVING)) /* J1 */
        return false;
    due__note(q, number, *w);
    due__word_set(&j->word, ready); /* J1 */
    return true;
}

void due__events_repeated(struct due_queue *q, uint32_t number, bool taken)
{
    uint64_t w = due__load_relaxed(&due__job_at(&q->slab, number)->word); /* J1: the caller's own */

    if (taken) {
        due__events_count(q, number, DUE__F_RESERVED, 1);
        due__events_count(q, number, DUE__F_READY, -1);
    }
    due__events_note(q, number, w, DUE__TOLD_REPEATED | (taken ? DUE__TOLD_DELIVERED : 0));
}

/* ---- Opening ---- */

int due__events_open(struct due_queue *q, const due_options *o)
{
    if (o->metrics == 0 && o->on_event == NULL)
        return 0;
    struct due__events *it = due__alloc_region(&q->alloc, sizeof *it);
    if (it == NULL)
        return DUE_ENOMEM;
    it->on_event = o->on_event;
    it->event_ctx = o->event_ctx;
    it->counts = o->metrics != 0;
    due__records_init(&it->untold, sizeof(struct due__untold));
    due__records_init(&it->since, sizeof(struct due__since));
    q->events = it;
    return 0;
}

void due__events_free(struct due_queue *q)
{
    struct due__events *it = q->events;

    if (it == NULL)
        return;
    due__records_destroy(&it->untold, &q->alloc);
    due__records_destroy(&it->since, &q->alloc);
    due__alloc_region_free(&q->alloc, it, sizeof *it);
    q->events = NULL;
}

struct due__tally *due__tallies_new(struct due_queue *q)
{
    return due__alloc_new(&q->alloc, DUE__SHARDS * sizeof(struct due__tally));
}

void due__tallies_free(struct due_queue *q, struct due__tally *tallies)
{
    if (tallies != NULL)
        due__alloc_free(&q->alloc, tallies, DUE__SHARDS * sizeof(struct due__tally));
}

#define MEASURED_BYTES (DUE__SHARDS * sizeof(struct due__measured))

/* A region: pages that no thread of a shard touches cost nothing. */
int due__topic_measure(struct due_queue *q, struct due__topic *t)
{
    struct due__measured *none = NULL;

    if (due__load_acquire(&t->times) != NULL) /* Z3 */
        return 0;
    struct due__measured *own = due__alloc_region(&q->alloc, MEASURED_BYTES);
    if (own == NULL)
        return DUE_ENOMEM;
    if (!due__cas_acq_rel(&t->times, &none, own)) /* Z3 */
        due__measured_free(q, own);
    return 0;
}

void due__measured_free(struct due_queue *q, struct due__measured *measured)
{
    due__alloc_region_free(&q->alloc, measured, MEASURED_BYTES);
}

/* ---- Names ---- */

const char *due_event_name(enum due_event_kind kind)
{
    static const char *const names[] = {
        [DUE_EVENT_PRODUCED] = "produced",   [DUE_EVENT_RESTORED] = "restored",
        [DUE_EVENT_READY] = "ready",         [DUE_EVENT_DELIVERED] = "delivered",
        [DUE_EVENT_ACKED] = "acked",         [DUE_EVENT_CANCELLED] = "cancelled",
        [DUE_EVENT_DISCARDED] = "discarded", [DUE_EVENT_KEPT] = "kept",
        [DUE_EVENT_RETRIED] = "retried",     [DUE_EVENT_DEAD] = "dead",
        [DUE_EVENT_KICKED] = "kicked",       [DUE_EVENT_REPEATED] = "repeated",
    };

    return kind >= DUE_EVENT_PRODUCED && kind <= DUE_EVENT_REPEATED ? names[kind] : "unknown";
}
