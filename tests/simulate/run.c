/* run.c - a program with its threads, from due_open() to due_free(). */
#include "run.h"

#include <stdio.h>
#include <string.h>

#include "books.h"
#include "client.h"
#include "core.h"
#include "history.h"
#include "machine.h"

static struct program program;

/* What the queue's clock shows, without a step. */
static int64_t clock_now(void)
{
    bool running = machine.running;

    machine.running = false;
    int64_t now = program.manual != NULL                      ? due_clock_now(program.manual)
                  : program.plan->clock == DUE_CLOCK_REALTIME ? machine_wall()
                  : program.plan->clock == DUE_CLOCK_BOOTTIME ? machine.now_ns + machine.boot_ns
                                                              : machine.now_ns;
    machine.running = running;
    return now;
}

/* What must hold whenever the timeline's lock is released. */
void due__measure_end(struct due_queue *q)
{
    (void)q;
}

/* ---- Opening ---- */

static void on_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    client_discarded(job);
}

static void open_queue(struct program *p)
{
    due_options o = { .size = DUE_OPTIONS_INIT,
                      .name = "simulated",
                      .capacity = p->plan->capacity,
                      .clock = p->plan->clock,
                      .manual = p->manual,
                      .proxies = p->plan->proxies,
                      .order = p->plan->order,
                      .allocator = &machine_allocator,
                      .on_discard = on_discard };
    int rc;

    do {
        rc = due_open(&p->q, &o, NULL);
        if (rc == 0)
            break;
        history_note(0, "open %s", due_error_name(rc));
        if (rc != DUE_ENOMEM && rc != DUE_ESYS)
            machine_fail("due_open: %s", due_error_name(rc));
    } while (true);
    for (int i = 1; i < (int)PLAN_TOPICS; i++) {
        char name[8];

        snprintf(name, sizeof name, "t%d", i);
        while ((p->topic[i] = due_topic(p->q, name)) < 0)
            if (p->topic[i] != DUE_ENOMEM)
                machine_fail("due_topic: %s", due_error_name(p->topic[i]));
    }
    machine.prompt = false;
    history_note(0, "open");
}

/* ---- Closing ---- */

static void close_queue(struct program *p, enum due_close_mode mode)
{
    int rc;

    do {
        int64_t timeout = (int64_t)machine_below((uint64_t)p->plan->horizon_ns + 1000);

        history_note(0, "close? %d", (int)mode);
        rc = due_close(p->q, mode, timeout);
        history_note(0, "close! %s", due_error_name(rc));
    } while (rc == DUE_ETIMEDOUT || rc == DUE_ENOMEM);
    if (rc != 0)
        machine_fail("due_close: %s", due_error_name(rc));
    books_closed();
}

static void free_queue(struct program *p)
{
    int rc = due_free(p->q);

    if (rc != 0)
        machine_fail("due_free: %s", due_error_name(rc));
    if (memory_live(machine.me->process) != 0)
        machine_fail("due_free: %llu blocks of memory are still out",
                     (unsigned long long)memory_live(machine.me->process));
}

/* Everything that waits, in order. */
static void take_waiting_out(struct program *p)
{
    struct due_stats s;

    for (bool for_good = false;; for_good = !for_good) {
        int64_t timeout = 2 * p->plan->horizon_ns + DUE_US(10);
        bool some =
            for_good ? client_take(&p->own, timeout) : client_reserve(&p->own, timeout, true);

        if (some)
            continue;
        if (due_stats(p->q, &s) != 0)
            machine_fail("due_stats fails");
        if (s.waiting + s.leased == 0)
            break;
    }
}

static void check_stats(const struct program *p)
{
    struct due_stats s;

    if (due_stats(p->q, &s) != 0)
        machine_fail("due_stats fails");
    if (s.waiting + s.leased + s.dead + s.ready + s.lent + s.mended != 0 || books_inside() != 0)
        machine_fail("stats at the end: %llu waiting, %llu leased, %llu dead, %llu ready, %llu "
                     "lent, %llu mended; and %llu by the books",
                     (unsigned long long)s.waiting, (unsigned long long)s.leased,
                     (unsigned long long)s.dead, (unsigned long long)s.ready,
                     (unsigned long long)s.lent, (unsigned long long)s.mended,
                     (unsigned long long)books_inside());
}

static bool orderly(const struct plan *p)
{
    return p->order == DUE_BY_DEADLINE && p->machine.clock_step_max_ns == 0 &&
           !plan_has(p, KIND_RESERVE);
}

static void take_all_out(struct program *p)
{
    history_life(false, orderly(p->plan));
    p->own.random = p->plan->seed;
    while (due_resume(p->q, DUE_ALL_TOPICS) != 0)
        machine_fail("due_resume fails");
    for (unsigned i = 0; i < 2; i++) {
        take_waiting_out(p);
        if (client_kick_all(&p->own) == 0)
            break;
    }
    check_stats(p);
}

/* ---- A life ---- */

static void start_clients(struct program *p)
{
    char name[24];

    p->own = (struct client){ .program = p };
    for (unsigned i = 0; i < p->plan->threads; i++) {
        p->client[i] = (struct client){ .program = p, .thread = i + 1 };
        snprintf(name, sizeof name, "client %u", i + 1);
        p->client[i].fiber = machine_start(name, client_run, &p->client[i], false);
    }
}

static void join_clients(struct program *p)
{
    for (unsigned i = 0; i < p->plan->threads; i++)
        machine_join(p->client[i].fiber);
}

/* Somebody has to turn a clock that is turned by hand. */
static void turn_clock(void *arg)
{
    struct program *p = arg;

    for (unsigned turns = 0; !p->ended; turns++) {
        int64_t by = (int64_t)machine_below((uint64_t)p->plan->horizon_ns / 2 + 1000);

        if (turns == 20000)
            machine_fail("the clock is turned and turned, and nobody ends");
        machine_sleep(1 + (int64_t)machine_below((uint64_t)p->plan->open_ns / 4 + 1));
        if (due_clock_advance(p->manual, by) != 0)
            machine_fail("the clock cannot be turned");
    }
}

static void program_run(void *arg)
{
    struct program *p = arg;

    struct fiber *turner = NULL;

    if (plan_has(p->plan, KIND_MANUAL)) {
        p->manual = due_clock_manual(DUE_S(1));
        turner = machine_start("turner", turn_clock, p, false);
    }
    open_queue(p);
    start_clients(p);
    if (p->plan->close == CLOSE_QUIET) {
        join_clients(p);
        take_all_out(p);
        close_queue(p, DUE_CLOSE_DISCARD);
    } else {
        machine_sleep(p->plan->open_ns);
        (void)due_resume(p->q, DUE_ALL_TOPICS);
        close_queue(p, p->plan->close == CLOSE_DRAIN ? DUE_CLOSE_DRAIN : DUE_CLOSE_DISCARD);
        join_clients(p);
    }
    p->ended = true;
    if (turner != NULL)
        machine_join(turner);
    free_queue(p);
    history_balance();
    if (p->manual != NULL && due_clock_free(p->manual) != 0)
        machine_fail("the clock is still in use");
    p->manual = NULL;
}

void run(const struct plan *p, bool print, struct run_result *result)
{
    machine_begin(&p->machine);
    memset(&program, 0, sizeof program);
    program.plan = p;
    history_begin(p, print);
    history_clock(clock_now);
    history_life(false, false);
    books_begin(p, clock_now);
    machine.idle = books_idle;
    machine.stepped = history_stepped;
    machine.process = 1;
    machine_start("program", program_run, &program, false);
    machine_run();
    history_end();
    result->failed = machine.failed;
    memcpy(result->failure, machine.failure, sizeof result->failure);
    result->steps = machine.steps;
    result->hash = machine.hash;
}
