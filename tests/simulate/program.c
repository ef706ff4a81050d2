/* program.c - a program with its threads, from due_open() to due_free(). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "books.h"
#include "client.h"
#include "due/metrics.h"
#include "history.h"
#include "machine.h"
#include "meet.h"
#include "pool.h"
#include "queue/limit.h"
#include "queue/queue.h"
#include "settings.h"
#include "store.h"

const char *const program_names[PLAN_QUEUES] = { "simulated", "another" };

#define TRIES 30 /* till an opening is not disturbed any more */

/* ---- Opening ---- */

static void on_discard(void *ctx, const due_job *job)
{
    struct program *p = ctx;
    unsigned was = machine.queue;

    machine_enter(p->queue); /* it may be told by who turns the clock of both */
    client_discarded(p, job);
    machine_enter(was);
}

static void on_settled(void *ctx, due_id id, int rc)
{
    struct program *p = ctx;
    char text[DUE_ID_TEXT];
    unsigned was = machine.queue;

    machine_enter(p->queue);
    struct book *b = books_find(id);

    if (rc != 0 && b != NULL) {
        rounds_doubt(b);
        b->round.ended = 0; /* it may have been that cancel */
        contents_forget(b);
    }
    if (rc != 0 && (rc != DUE_ECLOSED || p->plan->machine.plant != PLANT_UNTOLD))
        history_tell(p->own.thread, "settled %s %s", due_id_format(id, text), due_error_name(rc));
    machine_enter(was);
}

/* May an opening fail so? */
static bool expected(const struct plan *p, int rc)
{
    return rc == DUE_ENOMEM || rc == DUE_ESYS ||
           (plan_has(p, KIND_STORED) && (rc == DUE_ESTORE || rc == DUE_EBUSY));
}

static void add_topics(struct program *p)
{
    char name[24];

    for (int i = 1; i < (int)PLAN_TOPICS; i++) {
        snprintf(name, sizeof name, "t%d", i);
        while ((p->topic[i] = due_topic(p->q, name)) < 0)
            if (p->topic[i] != DUE_ENOMEM)
                machine_fail("due_topic: %s", due_error_name(p->topic[i]));
    }
}

/* May the same call be answered otherwise later? */
static bool is_passing(int rc)
{
    return rc == DUE_ENOMEM || rc == DUE_ETIMEDOUT || rc == DUE_EINDOUBT || rc == DUE_ENOSPC ||
           rc == DUE_ESTORE;
}

/* It is as said, or (false) the store does not take that in so many tries. */
static bool hold_back(struct program *p, enum setting what, int topic, unsigned value,
                      unsigned tries)
{
    int rc = client_hold_back(&p->own, what, topic, value);

    while (is_passing(rc) && (!settings_stored() || --tries > 0)) {
        machine_sleep(DUE_MS(20)); /* what cannot be read for want of memory is tried again, too */
        rc = client_hold_back(&p->own, what, topic, value);
    }
    return rc == 0;
}

/* What is stored of it stays so, half of the times. */
static void set_limits(struct program *p)
{
    for (int i = 0; i < (int)PLAN_TOPICS && p->plan->limit > 0; i++)
        if (!settings_stored() || settings_must_be(SETTING_LIMIT, i, 0) || machine_below(2) == 0)
            hold_back(p, SETTING_LIMIT, i, p->plan->limit, 3);
}

/* What the queue goes by, without its lock: nobody changes it now. */
static bool is_paused(const struct program *p, int topic, size_t *limit)
{
    const struct due__topic *t = due__topic_at(p->q, (uint32_t)p->topic[topic]);

    *limit = t->limiter != NULL ? t->limiter->limit : 0;
    return t->paused;
}

static void check_settings(const struct program *p)
{
    for (int i = 0; i < (int)PLAN_TOPICS; i++) {
        size_t limit;
        bool paused = is_paused(p, i, &limit);

        settings_opened(i, paused, limit);
    }
}

static void set_retries(struct program *p)
{
    const struct plan *plan = p->plan;

    for (int i = 0; i < (int)PLAN_TOPICS; i++) {
        int rc = 0;

        while (plan->topic_retry[i] != 0 &&
               (rc = due_topic_retry(p->q, p->topic[i], &plan->retry[plan->topic_retry[i]])) ==
                   DUE_ENOMEM)
            ;
        if (rc != 0)
            machine_fail("due_topic_retry: %s", due_error_name(rc));
    }
}

/* It is not to be refused anything now, whatever others do. */
static void plenty(const struct program *p, bool on)
{
    machine_plenty(p->seat * PLAN_QUEUES + p->queue, on);
}

static void open_queue(struct program *p)
{
    const struct plan *plan = p->plan;
    bool stored = plan_has(plan, KIND_STORED);
    due_allocator allocator = machine_allocator(&p->live);
    due_options o = { DUE_OPTIONS_INIT,
                      .name = program_names[p->queue],
                      .capacity = plan->capacity,
                      .clock = stored ? DUE_CLOCK_MONOTONIC : plan->clock,
                      .manual = p->manual,
                      .proxies = plan->proxies,
                      .order = plan->order,
                      .metrics = plan_has(plan, KIND_METRICS),
                      .lease_ns = plan->lease_ns,
                      .allocator = &allocator,
                      .retry = plan->retry[plan->queue_retry],
                      .attempts_lazy = plan->attempts_lazy,
                      .dead_max = plan->dead_max,
                      .dead_keep_ns = plan->dead_keep_ns,
                      .confirm = plan->confirm,
                      .store_timeout_ns = plan->store_timeout_ns,
                      .unsettled_max = plan->unsettled_max,
                      .on_settled = on_settled,
                      .on_discard = on_discard,
                      .ctx = p };
    due_error error = { "", "" };
    int64_t patience_ns = plan->owner_lease_ns;
    int rc;

    for (unsigned tries = 0;; tries++) {
        if (tries >= TRIES)
            plenty(p, true);
        if (plan_has(plan, KIND_STANDBY)) { /* it stands by, or comes again and again */
            o.open_timeout_ns = 1 + (int64_t)machine_below((uint64_t)patience_ns);
            patience_ns += patience_ns < DUE_S(100000) ? patience_ns : 0;
        }
        o.store = stored ? store_new(o.name) : NULL;
        rc = due_open(&p->q, &o, &error);
        if (rc == 0)
            break;
        history_note(p->own.thread, "open %s", due_error_name(rc));
        tries -= rc == DUE_EBUSY;
        if (!expected(plan, rc))
            machine_fail("due_open: %s: %s", due_error_name(rc), error.text);
        if (stored)
            o.store->verbs->free(o.store); /* it was not taken */
    }
    plenty(p, false);
    history_note(p->own.thread, "open");
    add_topics(p);
    check_settings(p);
    set_limits(p);
    set_retries(p);
}

/* ---- Closing ---- */

static bool resume(struct program *p, unsigned tries)
{
    return hold_back(p, SETTING_PAUSE, -1, 0, tries);
}

static struct due_stats look(const struct program *p)
{
    struct due_stats s;

    if (due_stats_read(p->q, &s) != 0)
        machine_fail("due_stats_read fails");
    return s;
}

/* It can be closed at once: all have ended, and no store has to be told. */
static bool nobody_inside(const struct program *p)
{
    return p->plan->close == CLOSE_QUIET && !plan_has(p->plan, KIND_STORED);
}

static void close_queue(struct program *p, enum due_close_mode mode)
{
    int64_t most_ns = p->plan->horizon_ns + 1000;
    int rc;

    do {
        int64_t timeout = (int64_t)machine_below((uint64_t)most_ns);

        if (machine_below(2) == 0 && nobody_inside(p))
            timeout = 0;
        most_ns += most_ns < DUE_S(10) ? most_ns : 0;
        history_ask(p->own.thread, "close? %d", (int)mode);
        p->closing = true;
        rc = due_close(p->q, mode, timeout);
        history_tell(p->own.thread, "close! %s", due_error_name(rc));
        if (rc == DUE_ETIMEDOUT && nobody_inside(p))
            machine_fail("nobody is in the queue, and due_close times out");
    } while (rc == DUE_ETIMEDOUT || rc == DUE_ENOMEM);
    if (rc != 0)
        machine_fail("due_close: %s", due_error_name(rc));
    p->closed = true;
    books_closed(p->own.thread);
}

/* May the queue be freed?  Only those are in it who waited when it was closed. */
static bool left_alone(const struct program *p)
{
    for (unsigned i = 0; i < p->threads; i++) {
        const struct client *c = &p->client[i];

        if (c->fiber != NULL && c->fiber->state != ENDED && !books_waits(c->thread))
            return false;
    }
    return true;
}

/* A while; time passes if it takes longer. */
static void wait_alone(const struct program *p)
{
    for (int i = 0; i < 100 && !left_alone(p); i++)
        machine_step();
    for (; !left_alone(p); machine_step())
        machine_sleep(1 + (int64_t)machine_below((uint64_t)p->plan->horizon_ns / 8 + 10));
}

static void free_queue(struct program *p)
{
    bool lent;
    int rc;

    do {
        wait_alone(p);
        lent = look(p).lent > 0; /* to who came back from a call that waited */
        rc = due_free(p->q);
        if (rc == DUE_EBUSY)
            machine_sleep(1);
    } while (rc == DUE_EBUSY && lent && ++p->busy < 1000);
    if (rc != 0)
        machine_fail("due_free: %s", due_error_name(rc));
    memory_spoil(p->q);
    if (p->live != 0)
        machine_fail("due_free: %" PRIu64 " blocks of memory are still out", p->live);
}

/* ---- Everything out ---- */

/* Everything that waits, in order. */
static void take_waiting_out(struct program *p)
{
    int64_t timeout = 2 * p->plan->horizon_ns + DUE_US(10) + 4 * p->plan->latency_ns;
    struct due_stats s;

    for (bool for_good = false;; for_good = !for_good) {
        bool some =
            for_good ? client_take(&p->own, timeout) : client_reserve(&p->own, timeout, true);

        if (some)
            continue;
        s = look(p);
        if (s.waiting + s.leased == 0 && for_good) /* also a round that a poll has left */
            break;
        if (timeout < DUE_S(10))
            timeout *= 2;
    }
}

/* What has come to a topic has left it. */
static void check_topics(const struct program *p)
{
    for (int i = 0; i < (int)PLAN_TOPICS; i++) {
        struct due_topic_stats s;

        if (due_topic_stats_read(p->q, p->topic[i], &s) != 0)
            machine_fail("due_topic_stats_read fails");
        uint64_t left = s.dequeued + s.acked + s.cancelled + s.discarded + s.kept;
        if (s.enqueued + s.restored != left || s.ready + s.leased + s.dead != 0)
            machine_fail("topic %d at the end: %" PRIu64 " enqueued, %" PRIu64 " restored; %" PRIu64
                         " ready, %" PRIu64 " leased, %" PRIu64 " dead, %" PRIu64 " have left",
                         i, s.enqueued, s.restored, s.ready, s.leased, s.dead, left);
    }
}

/* Of a queue that is to be empty. */
static bool keys_left(const struct program *p)
{
    return plan_has(p->plan, KIND_STORED) && !plan_has(p->plan, KIND_RETAIN) && store_keys() > 0;
}

static void check_stats(const struct program *p)
{
    struct due_stats s = look(p);
    uint64_t inside = plan_has(p->plan, KIND_STORED) ? store_jobs() : books_inside();

    if (plan_has(p->plan, KIND_WORKERS) && !plan_has(p->plan, KIND_STORED))
        inside = plan_has(p->plan, KIND_CANCEL) || plan_has(p->plan, KIND_ROUNDS)
                     ? 0
                     : inside - (s.acked - p->acked); /* the pool's */
    if (keys_left(p))
        machine_fail("%zu keys are in the store, and no job", store_keys());
    if (s.waiting + s.leased + s.dead + s.ready + s.lent + s.mended + s.unsettled + inside != 0)
        machine_fail("stats at the end: %" PRIu64 " waiting, %" PRIu64 " leased, %" PRIu64
                     " dead, %" PRIu64 " ready, %" PRIu64 " lent, %" PRIu64 " mended, %" PRIu64
                     " unsettled; and %" PRIu64 " by the books",
                     s.waiting, s.leased, s.dead, s.ready, s.lent, s.mended, s.unsettled, inside);
    if (p->q->limiters.groups + p->q->limiters.passed > 0)
        machine_fail("at the end there are %zu groups, and %zu jobs have a pass",
                     p->q->limiters.groups, p->q->limiters.passed);
    if (plan_has(p->plan, KIND_METRICS))
        check_topics(p);
}

/* One thread takes all, by deadline; a large job that was read stands last among equals. */
bool program_orderly(const struct plan *p)
{
    if (plan_has(p, KIND_LARGE) && plan_has(p, KIND_LOOKS))
        return false;
    return p->order == DUE_ORDER_DEADLINE && p->machine.clock_step_max_ns == 0 &&
           !plan_has(p, KIND_RESERVE) && !plan_has(p, KIND_WORKERS) && p->limit == 0 &&
           !plan_has(p, KIND_GROUPS);
}

static void flush(struct program *p)
{
    int rc;

    do {
        history_ask(p->own.thread, "flush?");
        rc = due_flush(p->q, p->plan->horizon_ns + DUE_US(10));
        history_tell(p->own.thread, "flush! %s", due_error_name(rc));
    } while (rc != 0 || look(p).unsettled > 0);
}

/* Not longer and longer: who reads may have no turn for a while, and time would run out. */
static void wait_loaded(const struct program *p)
{
    for (int64_t ns = DUE_US(10); look(p).loading; ns += ns < DUE_S(10) ? ns : 0)
        machine_sleep(ns);
}

/* Who has found that a dead job is to go may not have shown it yet, or not have counted it. */
static bool is_clearing_away(const struct program *p)
{
    if (plan_has(p->plan, KIND_STORED) || !plan_has(p->plan, KIND_CROWDS))
        return false;
    return books_inside() > 0 || look(p).waiting > 0;
}

/* Does the store have what the queue goes by? */
static bool settings_there(const struct program *p)
{
    bool all = true;

    for (int i = 0; i < (int)PLAN_TOPICS; i++) {
        size_t limit;
        int64_t stored;
        bool paused = is_paused(p, i, &limit);

        all &= store_paused(due_topic_name(p->q, p->topic[i]), &stored) == paused &&
               (uint64_t)stored == limit;
    }
    return all;
}

/* After a loss it is told again. */
static void check_settings_there(const struct program *p)
{
    for (int i = 0; i < 20 && !settings_there(p); i++)
        machine_sleep(DUE_S(1));
    if (!settings_there(p))
        machine_fail("the store has other pauses or limits than the queue");
}

static void take_all_out(struct program *p)
{
    bool stored = plan_has(p->plan, KIND_STORED);
    int kicked;

    plenty(p, true);
    if (stored) {
        store_mend();
        wait_loaded(p);
        flush(p);
    } else {
        history_life(false, program_orderly(p->plan));
    }
    p->own.random = p->plan->seed;
    if (!resume(p, 2000)) /* whoever is to send may be held back for long */
        machine_fail("all is well, and topics cannot be resumed");
    client_end_rounds(&p->own);
    do {
        take_waiting_out(p);
        kicked = client_kick_all(&p->own);
        if (stored)
            flush(p); /* a kick that is under way is nowhere */
    } while (kicked > 0);
    if (stored) {
        /* After a loss the queue reads everything once more, to drop what it does not know. */
        for (int i = 0; i < 20 && (store_jobs() > 0 || keys_left(p)); i++)
            machine_sleep(DUE_S(1));
        if (settings_stored())
            check_settings_there(p);
    }
    for (int i = 0; i < 20 && is_clearing_away(p); i++)
        machine_sleep(DUE_MS(1));
    check_stats(p);
}

/* ---- A life ---- */

static void start_clients(struct program *p)
{
    char name[24];

    for (unsigned i = 0; i < p->threads; i++) {
        struct client *c = &p->client[i];

        c->program = p; /* it goes on to know what it has known */
        c->thread = p->own.thread + i + 1;
        c->stopped = false;
        snprintf(name, sizeof name, "client %u", c->thread);
        c->fiber = machine_start(name, client_run, c, false);
    }
}

static void join_clients(struct program *p)
{
    for (unsigned i = 0; i < p->threads; i++) {
        machine_join(p->client[i].fiber);
        p->client[i].fiber = NULL;
    }
}

/* Somebody has to turn a clock that is turned by hand. */
static void turn_clock(void *arg)
{
    struct program *p = arg;

    for (unsigned turns = 0; !p->ended; turns++) {
        int64_t by = (int64_t)machine_below((uint64_t)p->plan->horizon_ns / 2 + 1000);

        if (turns == 200000) /* every call may wait for a store that is away for seconds */
            machine_fail("the clock is turned and turned, and nobody ends");
        machine_sleep(1 + (int64_t)machine_below((uint64_t)p->plan->open_ns / 4 + 1));
        if (turns % 64 == 63) { /* others may wait for other clocks */
            by += 2 * p->plan->horizon_ns + DUE_S(10);
            machine_sleep(DUE_S(1));
        }
        if (due_clock_advance(p->manual, by) != 0)
            machine_fail("the clock cannot be turned");
    }
}

/* In the last of several lives all is taken out first. */
static enum plan_close how_to_close(const struct program *p)
{
    return p->last && p->plan->lives > 1 ? CLOSE_QUIET : p->plan->close;
}

/* While those who waited are on their way out, and somebody turns the clock. */
static bool freed_at_once(const struct program *p)
{
    return plan_has(p->plan, KIND_FREES) && how_to_close(p) != CLOSE_QUIET;
}

static void turn_once(void *arg)
{
    struct program *p = arg;

    if (due_clock_advance(p->manual, p->plan->lease_ns) != 0)
        machine_fail("the clock cannot be turned");
}

static void use_and_close(struct program *p)
{
    enum plan_close how = how_to_close(p);

    pool_start(p);
    meet_begin(p);
    start_clients(p);
    if (how != CLOSE_QUIET) {
        meet_close(p);
        if (!settings_stored() || machine_below(4) == 0) /* else the next life has what there is */
            resume(p, 1);
        close_queue(p, how == CLOSE_DRAIN ? DUE_CLOSE_DRAIN : DUE_CLOSE_DISCARD);
    }
    if (!freed_at_once(p))
        join_clients(p);
    if (how == CLOSE_QUIET && machine_below(2) == 0 && resume(p, 10)) {
        if (p->pool != NULL)
            client_end_rounds(&p->own);
        pool_drain(p);
    }
    pool_stop(p);
    if (how == CLOSE_QUIET && p->last)
        take_all_out(p);
    if (how == CLOSE_QUIET)
        close_queue(p, DUE_CLOSE_DISCARD);
    plenty(p, false);
    pool_free(p);
}

/* The queues of a process have one clock. */
static void have_clock(struct program *p)
{
    struct host *host = p->host;

    if (host->users++ == 0)
        host->manual = due_clock_manual(p->manual_ns);
    p->manual = host->manual;
}

static void leave_clock(struct program *p)
{
    struct host *host = p->host;

    p->manual_ns = due_clock_now(p->manual);
    p->manual = NULL;
    if (--host->users == 0 && due_clock_free(host->manual) != 0)
        machine_fail("the clock is still in use");
}

void program_run(void *arg)
{
    struct program *p = arg;
    struct fiber *turner = NULL;

    p->own = (struct client){ .program = p, .thread = p->seat * HISTORY_LANES };
    p->threads = p->last && p->plan->lives > 1 ? 0 : p->plan->threads;
    p->pool = NULL;
    p->lanes = 0;
    p->ended = p->closing = p->closed = false;
    p->busy = 0;
    p->live = 0;
    if (plan_has(p->plan, KIND_MANUAL)) {
        have_clock(p);
        turner = machine_start("turner", turn_clock, p, false);
    }
    open_queue(p);
    use_and_close(p);
    bool turned = turner != NULL && plan_has(p->plan, KIND_FREES);
    p->ended = true;
    if (turner != NULL)
        machine_join(turner);
    if (turned)
        turner = machine_start("turner", turn_once, p, false);
    free_queue(p);
    if (turned)
        machine_join(turner);
    if (freed_at_once(p))
        join_clients(p);
    if (p->manual != NULL)
        leave_clock(p);
}

void program_lives(void *arg)
{
    struct program *p = arg;

    while (p->lives > 0) {
        p->life = --p->lives * PLAN_SEATS + p->seat;
        program_run(p);
    }
}
