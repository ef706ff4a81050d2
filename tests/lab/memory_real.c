/* memory_real.c - the verbs of those who share a disk whose jobs lie in a real store. */
#define _GNU_SOURCE
#include "lab/memory_real.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/memory_disk.h"

#define SCALE   1000                               /* a server's clock shows whole microseconds */
#define BASE_NS (INT64_C(1700000000) * 1000000000) /* what it shows at 0 */
#define KERNEL  (INT64_C(1) << 56)                 /* a clock turned by hand does not show that */

struct memory_real {
    const struct memory_real_maker *maker; /* I */
    char queue[64];                        /* I */
    bool kernel;                           /* D: the queues' clock is the kernel's */
};

static const struct memory_real_maker *makers;

void memory_real_offer(const struct memory_real_maker *maker)
{
    makers = maker;
}

/* Of all programs that may have the same server, and all disks of this one. */
struct memory_real *memory_real_new(bool wanted)
{
    static atomic_uint disks;
    const char *name = getenv("LAB_SHARED");

    if (!wanted || name == NULL)
        return NULL;
    if (makers == NULL || strcmp(makers->name, name) != 0) {
        fprintf(stderr, "no store is called %s\n", name);
        abort();
    }
    struct memory_real *real = memory_need(calloc(1, sizeof *real));
    real->maker = makers;
    snprintf(real->queue, sizeof real->queue, "real-%d-%u", (int)getpid(),
             atomic_fetch_add(&disks, 1));
    return real;
}

void memory_real_free(struct memory_real *real)
{
    if (real != NULL)
        real->maker->remove(real->queue);
    free(real);
}

/* ---- Times ---- */

static int64_t to_real(const struct memory_real *real, int64_t ns)
{
    if (real->kernel || ns == DUE_FOREVER || ns == INT64_MIN)
        return ns;
    return ns > (INT64_MAX - BASE_NS) / SCALE ? DUE_FOREVER : BASE_NS + ns * SCALE;
}

static int64_t to_test(const struct memory_real *real, int64_t ns)
{
    if (real->kernel || ns == DUE_FOREVER || ns == INT64_MIN)
        return ns;
    return (ns - BASE_NS) / SCALE;
}

/* Zero says something else. */
static int64_t to_real_or_0(const struct memory_real *real, int64_t ns)
{
    return ns == 0 ? 0 : to_real(real, ns);
}

static int64_t to_test_if(const struct memory_real *real, int64_t ns)
{
    return ns <= 0 ? ns : to_test(real, ns);
}

/* A lease; the longest one is that there, too. */
static int64_t longer(const struct memory_real *real, int64_t ns)
{
    if (real->kernel)
        return ns;
    return ns > DUE_CLAIM_LEASE_MAX / SCALE ? DUE_CLAIM_LEASE_MAX : ns * SCALE;
}

static int64_t store_now(const struct memory_store *s)
{
    const struct memory_disk_options *o = &s->disk->options;

    return o->now != NULL ? o->now(o->clock) : s->now(s->clock);
}

static int64_t real_now(void *store)
{
    return to_real(memory_store_of(store)->disk->real, store_now(store));
}

/* ---- Jobs ---- */

static due_record record_to_test(const struct memory_real *real, const due_record *r)
{
    due_record record = *r;

    record.deadline_ns = to_test(real, r->deadline_ns);
    record.until_ns = to_test(real, r->until_ns);
    record.died_ns = r->cause != 0 ? to_test(real, r->died_ns) : r->died_ns;
    return record;
}

static due_change change_to_real(const struct memory_real *real, const due_change *c)
{
    due_change change = *c;
    bool any_death =
        c->kind == DUE_CHANGE_DROP && c->was_dead && c->was_ns == 0 && c->record.mark_len == 0;

    change.was_ns = any_death ? 0 : to_real(real, c->was_ns);
    change.key_kept_ns = to_real_or_0(real, c->key_kept_ns);
    change.lease_ns = longer(real, c->lease_ns);
    change.record.deadline_ns = to_real(real, c->record.deadline_ns);
    change.record.until_ns = to_real(real, c->record.until_ns);
    change.record.died_ns =
        c->record.cause != 0 ? to_real(real, c->record.died_ns) : c->record.died_ns;
    return change;
}

struct showing {
    const struct memory_real *real;
    due_store_visit *visit;
    due_store_visit_claimed *visit_claimed; /* NULL: the answer is lost, or comes later */
    int (*visit_topic)(void *ctx, const struct due_census_topic *topic);
    int (*visit_process)(void *ctx, const struct due_process_seen *process);
    void *ctx;
};

static int show_record(void *ctx, const due_record *r)
{
    const struct showing *w = ctx;
    due_record record = record_to_test(w->real, r);

    return w->visit(w->ctx, &record);
}

static int show_claimed(void *ctx, const due_claimed *job)
{
    const struct showing *w = ctx;
    due_claimed claimed = *job;

    if (w->visit_claimed == NULL)
        return 0;
    claimed.record = record_to_test(w->real, &job->record);
    claimed.lapsed_ns = to_test_if(w->real, job->lapsed_ns);
    return w->visit_claimed(w->ctx, &claimed);
}

/* ---- A call ---- */

/* A test that gives a store little time means the one in memory. */
static int64_t patient(int64_t until_ns)
{
    int64_t least_ns = memory_monotonic_ns() + DUE_S(20);

    return until_ns > least_ns ? until_ns : least_ns;
}

/* The disk's lock is let go of, until called() has it again. */
static due_store *calling(struct memory_store *s)
{
    const struct memory_real *real = s->disk->real;
    bool its_own = real->kernel && s->disk->options.now == NULL;

    real->maker->turn(its_own ? 0 : to_real(real, store_now(s)));
    s->real_calls++;
    pthread_mutex_unlock(&s->disk->lock);
    return s->real;
}

/* What is answered.  Who has crashed meanwhile hears nothing. */
static int called(struct memory_store *s, struct memory_call *call, int rc)
{
    struct memory_call dead = { .lane = call->lane, .until_ns = call->until_ns };

    pthread_mutex_lock(&s->disk->lock);
    s->real_calls--;
    if (!s->crashed)
        return rc;
    memory_real_gone(s);
    (void)memory_before(s, &dead);
    return DUE_EAGAIN;
}

void memory_real_gone(struct memory_store *s)
{
    due_store *store = s->real;

    if (store == NULL || s->real_calls > 0)
        return;
    s->real = NULL;
    (store->verbs->free)(store);
}

void memory_real_interrupt(struct memory_store *s)
{
    if (s->real != NULL)
        s->real->verbs->interrupt(s->real);
}

void memory_real_wake(struct memory_store *s)
{
    if (s->real != NULL)
        s->real->verbs->shared->wake(s->real);
}

static int begin(struct memory_store *s, struct memory_call *call, enum memory_verb verb,
                 int64_t until_ns)
{
    *call = memory_call_begin(s, verb, MEMORY_LANE_PUT, until_ns);
    return memory_before(s, call);
}

static int end(struct memory_store *s, struct memory_call *call, int rc)
{
    (void)memory_after(s, call);
    return memory_call_end(s, MEMORY_LANE_PUT, rc);
}

/* ---- Join and leave ---- */

static int real_join(due_store *store, const struct due_store_open *how,
                     struct due_store_info *info, due_error *error)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_real *real = s->disk->real;
    struct due_store_open its = *how;
    struct memory_call call;
    int rc = begin(s, &call, MEMORY_JOIN, how->until_ns);

    if (rc != 0)
        return end(s, &call, rc == DUE_EAGAIN ? DUE_ESTORE : rc);
    s->now = how->now;
    s->clock = how->clock;
    real->kernel = store_now(s) > KERNEL;
    if (s->real == NULL)
        s->real = real->maker->make();
    its.name = real->queue;
    its.now = real_now;
    its.clock = s;
    due_store *to = calling(s);
    rc = to->verbs->shared->join(to, &its, info, error);
    rc = called(s, &call, rc);
    if (rc == 0) {
        memory_join(s->disk, s, 0);
        s->disk->writer = s->writer = info->writer;
        (void)memory_process_new(s->disk, s, store_now(s));
        s->real_landed[0] = s->real_landed[1] = 0;
        info->batch_changes = s->disk->options.batch_changes;
    }
    return end(s, &call, rc);
}

static int real_leave(due_store *store, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call;
    int rc = begin(s, &call, MEMORY_LEAVE, until_ns);

    if (rc == 0 && s->joined) {
        due_store *to = calling(s);
        rc = called(s, &call, to->verbs->shared->leave(to, patient(until_ns)));
    }
    if (memory_process_of(s->disk, s->writer) != NULL)
        memory_process_remove(s->disk, memory_process_of(s->disk, s->writer));
    memory_wake_all(s->disk);
    s->closed = true;
    s->joined = false;
    return end(s, &call, rc);
}

/* ---- Exchanges ---- */

struct exchange {
    struct memory_store *s;
    struct memory_call call;
    due_change *changes;
    size_t n;
    uint64_t number;
    int *results;
    const struct due_claim *claim;
    struct showing show;
    struct due_exchange *answer;
    int64_t until_ns;
};

static int exchange_once(struct exchange *x, due_store_visit_claimed *visit)
{
    const struct memory_real *real = x->s->disk->real;
    bool full = x->call.has[MEMORY_FULL];
    struct due_exchange *a = x->answer;

    x->show.visit_claimed = visit;
    due_store *to = calling(x->s);
    if (full)
        real->maker->full(true);
    int rc = to->verbs->shared->exchange(to, x->changes, x->n, x->number, x->results, x->claim,
                                         show_claimed, &x->show, a, patient(x->until_ns));
    if (full)
        real->maker->full(false);
    a->now_ns = to_test(real, a->now_ns);
    a->alarm_ns = to_test_if(real, a->alarm_ns);
    return called(x->s, &x->call, rc);
}

/* It has taken effect: once. */
static void note(struct exchange *x, const due_change *changes)
{
    struct memory_store *s = x->s;
    uint64_t *landed = &s->real_landed[x->call.lane];

    s->counters.resent += *landed == x->number;
    if (*landed == x->number)
        return;
    *landed = x->number;
    s->disk->batches++;
    s->counters.batches++;
    for (size_t i = 0; i < x->n; i++)
        if (x->results[i] == 0)
            memory_write_down(s, &changes[i], x->number);
}

static int make_exchange(struct exchange *x, const due_change *changes,
                         due_store_visit_claimed *visit)
{
    struct memory_call *call = &x->call;
    bool later = call->has[MEMORY_DOUBT_LANDED] || call->has[MEMORY_CRASH_AFTER] ||
                 call->has[MEMORY_BLOCK_AFTER];

    if (call->has[MEMORY_DOUBT_NOT] && x->s->real_landed[call->lane] != x->number)
        return DUE_EINDOUBT;
    int rc = exchange_once(x, later ? NULL : visit);
    if (rc != 0)
        return rc;
    note(x, changes);
    if (!later)
        return 0;
    if (memory_after(x->s, call) || call->has[MEMORY_DOUBT_LANDED])
        return DUE_EINDOUBT;
    return exchange_once(x, visit);
}

static int real_exchange(due_store *store, const due_change *changes, size_t n, uint64_t number,
                         int *results, const struct due_claim *claim,
                         due_store_visit_claimed *visit, void *ctx, struct due_exchange *answer,
                         int64_t until_ns)
{
    enum memory_lane_of lane = memory_exchange_lane(changes, n, claim);
    struct memory_store *s = memory_store_lock(store);
    const struct memory_real *real = s->disk->real;
    struct memory_lane *l = &s->lanes[lane];
    struct due_claim its = claim != NULL ? *claim : (struct due_claim){ .need = 0 };
    struct exchange x = { .s = s,
                          .n = n,
                          .number = number,
                          .results = results,
                          .claim = claim != NULL ? &its : NULL,
                          .show = { .real = real, .ctx = ctx },
                          .answer = answer,
                          .until_ns = until_ns };

    x.call =
        memory_call_begin(s, lane == MEMORY_LANE_WORK ? MEMORY_WORK : MEMORY_PUT, lane, until_ns);
    if (!memory_check_exchange(s, changes, n, number, claim))
        return memory_call_end(s, lane, DUE_EINVAL);
    x.changes = memory_need(calloc(n + 1, sizeof *x.changes));
    for (size_t i = 0; i < n; i++)
        x.changes[i] = change_to_real(real, &changes[i]);
    its.lease_ns = longer(real, its.lease_ns);
    int rc = memory_before(s, &x.call);
    if (rc == 0)
        rc = make_exchange(&x, changes, visit);
    if (rc == DUE_EAGAIN && l->doubt)
        rc = DUE_EINDOUBT;
    free(x.changes);
    l->doubt = rc == DUE_EINDOUBT || (l->doubt && rc == DUE_EAGAIN);
    if (rc == 0)
        l->acked = number;
    return memory_call_end(s, lane, rc);
}

/* ---- Looking ---- */

int memory_real_find(struct memory_store *s, due_id id, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    struct memory_call call = { .lane = MEMORY_LANE_PUT, .until_ns = until_ns };
    struct showing show = { .real = s->disk->real, .visit = visit, .ctx = ctx };
    due_store *to = calling(s);

    return called(s, &call, to->verbs->find(to, id, show_record, &show, patient(until_ns)));
}

static int real_dead(due_store *store, size_t from, size_t max, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct showing show = { .real = s->disk->real, .visit = visit, .ctx = ctx };
    struct memory_call call;
    int rc = begin(s, &call, MEMORY_DEAD_JOBS, until_ns);

    if (rc != 0)
        return end(s, &call, rc);
    due_store *to = calling(s);
    rc = called(s, &call,
                to->verbs->shared->dead(to, from, max, show_record, &show, patient(until_ns)));
    return end(s, &call, rc);
}

static int real_page(due_store *store, struct due_page *at, size_t max, due_store_visit *visit,
                     void *ctx, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct showing show = { .real = s->disk->real, .visit = visit, .ctx = ctx };
    struct memory_call call;
    int rc = begin(s, &call, MEMORY_PAGE, until_ns);

    if (rc != 0)
        return end(s, &call, rc);
    due_store *to = calling(s);
    rc = called(s, &call,
                to->verbs->shared->page(to, at, max, show_record, &show, patient(until_ns)));
    return end(s, &call, rc);
}

static int show_topic(void *ctx, const struct due_census_topic *t)
{
    const struct showing *w = ctx;
    struct due_census_topic topic = *t;

    topic.oldest_ns = to_test(w->real, t->oldest_ns);
    return w->visit_topic(w->ctx, &topic);
}

static int real_census(due_store *store, struct due_census_all *all,
                       int (*visit)(void *ctx, const struct due_census_topic *topic), void *ctx,
                       int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    const struct memory_real *real = s->disk->real;
    struct showing show = { .real = real, .visit_topic = visit, .ctx = ctx };
    struct memory_call call;
    int rc = begin(s, &call, MEMORY_CENSUS, until_ns);

    if (rc != 0)
        return end(s, &call, rc);
    due_store *to = calling(s);
    rc = called(s, &call, to->verbs->shared->census(to, all, show_topic, &show, patient(until_ns)));
    if (rc == 0) {
        all->now_ns = to_test(real, all->now_ns);
        all->head_ns = to_test(real, all->head_ns);
    }
    return end(s, &call, rc);
}

static int show_process(void *ctx, const struct due_process_seen *p)
{
    const struct showing *w = ctx;
    struct due_process_seen process = *p;

    process.started_ns = to_test(w->real, p->started_ns);
    process.seen_ns = to_test(w->real, p->seen_ns);
    return w->visit_process(w->ctx, &process);
}

static int real_processes(due_store *store,
                          int (*visit)(void *ctx, const struct due_process_seen *process),
                          void *ctx, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct showing show = { .real = s->disk->real, .visit_process = visit, .ctx = ctx };
    struct memory_call call;
    int rc = begin(s, &call, MEMORY_PROCESSES, until_ns);

    if (rc != 0)
        return end(s, &call, rc);
    due_store *to = calling(s);
    rc = called(s, &call, to->verbs->shared->processes(to, show_process, &show, patient(until_ns)));
    return end(s, &call, rc);
}

static int real_holder(due_store *store, const void *key, size_t len, due_id *id, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call;
    int rc = begin(s, &call, MEMORY_FIND, until_ns);

    if (rc != 0)
        return end(s, &call, rc);
    due_store *to = calling(s);
    rc = called(s, &call, to->verbs->shared->holder(to, key, len, id, patient(until_ns)));
    return end(s, &call, rc);
}

/* ---- Living and waiting ---- */

/* Whose turn it is goes by the boottime clock, as in memory. */
static int real_beat(due_store *store, struct due_beat *beat, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct due_beat its = *beat;
    struct memory_call call;
    int rc = begin(s, &call, MEMORY_BEAT, until_ns);

    if (rc != 0)
        return end(s, &call, rc);
    its.turn_ns = 0;
    due_store *to = calling(s);
    rc = called(s, &call, to->verbs->shared->beat(to, &its, patient(until_ns)));
    its.turn_ns = beat->turn_ns;
    its.now_ns = to_test(s->disk->real, its.now_ns);
    *beat = its;
    if (rc >= 0 && beat->turn_ns > 0 && memory_share_turn(s->disk, beat))
        rc |= DUE_BEAT_TURN;
    return end(s, &call, rc);
}

static int real_listen(due_store *store, struct due_heard *heard, int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = memory_call_begin(s, MEMORY_LISTEN, MEMORY_LANE_LISTEN, until_ns);
    int rc = memory_before(s, &call);

    if (rc == DUE_EFENCED)
        rc = 0; /* that is for exchanges to find */
    bool goes = rc == 0 && !memory_interrupted(s, MEMORY_LANE_LISTEN);
    while (goes) {
        due_store *to = calling(s);
        rc = called(s, &call, to->verbs->shared->listen(to, heard, until_ns));
        s->rings += rc == 1 && heard->alarm_ns == 0;
        goes = rc == 1 && s->swallows;
    }
    if (rc == 1) {
        heard->alarm_ns = to_test_if(s->disk->real, heard->alarm_ns);
        heard->now_ns = to_test_if(s->disk->real, heard->now_ns);
    }
    (void)memory_after(s, &call);
    return memory_call_end(s, MEMORY_LANE_LISTEN, rc);
}

static void real_wake(due_store *store)
{
    if (memory_store_of(store)->pid != getpid())
        return;
    struct memory_store *s = memory_store_lock(store);
    s->lanes[MEMORY_LANE_LISTEN].interrupted = true;
    pthread_cond_broadcast(&s->wake);
    memory_real_wake(s);
    pthread_mutex_unlock(&s->disk->lock);
}

const struct due_shared_verbs memory_real_verbs = {
    .size = sizeof(struct due_shared_verbs),
    .join = real_join,
    .exchange = real_exchange,
    .dead = real_dead,
    .page = real_page,
    .census = real_census,
    .processes = real_processes,
    .beat = real_beat,
    .listen = real_listen,
    .wake = real_wake,
    .leave = real_leave,
    .holder = real_holder,
};

/* ---- For tests ---- */

size_t memory_real_jobs(const struct memory_real *real)
{
    return real->maker->jobs(real->queue);
}

int memory_real_each(const struct memory_real *real, due_store_visit *visit, void *ctx)
{
    struct showing show = { .real = real, .visit = visit, .ctx = ctx };

    return real->maker->each(real->queue, show_record, &show);
}
