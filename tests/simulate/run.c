/* run.c - the lives of a program, one after another, on one machine; or of several programs that
 * want one queue, and last of all one more in which all is taken out.
 */
#include "run.h"

#include <stdio.h>
#include <string.h>

#include "books.h"
#include "client.h"
#include "core.h"
#include "history.h"
#include "machine.h"
#include "store.h"

static struct program programs[PLAN_SEATS];
static struct program *subject; /* of what the runner tells */

static struct program *running(void)
{
    for (unsigned i = 0; machine.me != NULL && i < PLAN_SEATS; i++)
        if (programs[i].process == machine.me->process)
            return &programs[i];
    return subject;
}

/* What the program's clock shows, without a step. */
static int64_t clock_of(const struct program *program)
{
    const struct plan *p = program->plan;
    bool running = machine.running;

    machine.running = false;
    int64_t now =
        plan_has(p, KIND_MANUAL)
            ? program->manual != NULL ? due_clock_now(program->manual) : program->manual_ns
        : p->clock == DUE_CLOCK_REALTIME ? machine_wall()
        : p->clock == DUE_CLOCK_BOOTTIME ? machine.now_ns + machine.boot_ns
                                         : machine.now_ns;
    machine.running = running;
    return now;
}

static int64_t clock_now(void)
{
    return clock_of(running());
}

/* What must hold whenever the timeline's lock is released. */
void due__measure_end(struct due_queue *q)
{
    (void)q;
}

/* ---- One life after another ---- */

static void begin_life(const struct plan *p, unsigned life)
{
    struct program *program = &programs[0];

    subject = program;
    program->life = life;
    program->last = life + 1 == p->lives;
    program->process = machine.process = life + 1;
    machine.kill_at = UINT64_MAX;
    if (plan_has(p, KIND_KILLS) && !program->last)
        machine.kill_at = machine.steps + 1 + machine_below(p->kill_within);
    history_life(p->confirm == DUE_CONFIRM_ASYNC,
                 program->last && p->lives > 1 && program_orderly(p));
    books_life();
    machine_start("program", program_run, program, false);
}

/* Nothing of a program is left but what others have of it. */
static void end_program(struct program *program, bool seen)
{
    history_note(program->own.thread, "killed");
    if (program->manual != NULL)
        program->manual_ns = clock_of(program);
    program->manual = NULL;
    store_crash(program->process, seen);
}

static void end_life(enum ending how)
{
    const struct plan *p = subject->plan;

    if (how == KILLED)
        end_program(subject, true);
    machine_kill(machine.process);
    if (!plan_has(p, KIND_STORED))
        return;
    if (store_has_lost() && !subject->last)
        history_risk();
    history_death();
    store_judge();
}

/* ---- Several programs at once ---- */

/* The running program owns the jobs now. */
static void taken_over(void)
{
    const struct program *program = running();

    if (program->plan->seats == 1 || program->last)
        return;
    history_note(program->own.thread, "owner");
    if (store_has_lost())
        history_risk();
    history_takeover(program->plan->confirm == DUE_CONFIRM_ASYNC);
    books_life();
}

static void start_seat(struct program *program)
{
    char name[16];

    snprintf(name, sizeof name, "program %u", program->seat + 1);
    program->process = ++machine.process;
    for (unsigned i = 0; i < PLAN_SEATS; i++) /* the clock goes on from what anybody has seen */
        if (programs[i].plan != NULL && clock_of(&programs[i]) > program->manual_ns)
            program->manual_ns = clock_of(&programs[i]);
    machine_start(name, program_lives, program, false);
}

static void draw_kill(const struct plan *p)
{
    machine.kill_at = UINT64_MAX;
    if (plan_has(p, KIND_KILLS))
        machine.kill_at = machine.steps + 1 + machine_below(p->kill_within);
}

/* Any of those that live.  Half of them stood on another machine: their lease has to end. */
static void kill_one(void)
{
    struct program *program = &programs[machine_below(PLAN_SEATS)];

    draw_kill(program->plan);
    if (machine_process_ended(program->process))
        return;
    subject = program;
    end_program(program, machine_below(2) == 0);
    machine_kill(program->process);
    history_cut(program->own.thread);
    if (program->lives > 0)
        start_seat(program);
}

static void run_seats(const struct plan *p)
{
    enum ending how;

    subject = &programs[0];
    history_life(p->confirm == DUE_CONFIRM_ASYNC, false);
    books_life();
    machine.process = 0;
    for (unsigned i = 0; i < p->seats; i++) {
        programs[i].lives = (p->lives - 1) / p->seats;
        start_seat(&programs[i]);
    }
    draw_kill(p);
    machine_stops(true);
    while ((how = machine_run()) == KILLED && !machine.failed)
        kill_one();
    machine_stops(false);
    for (unsigned i = 0; i < p->seats; i++)
        machine_kill(programs[i].process);
    if (store_has_lost())
        history_risk();
    history_death();
    store_judge();
}

/* ---- The run ---- */

static void begin(const struct plan *p, bool print)
{
    machine_begin(&p->machine);
    memset(programs, 0, sizeof programs);
    for (unsigned i = 0; i < p->seats; i++)
        programs[i] = (struct program){ .plan = p, .seat = i, .manual_ns = DUE_S(1) };
    history_begin(p, print);
    history_clock(clock_now);
    books_begin(p, clock_now);
    machine.idle = books_idle;
    machine.stepped = history_stepped;
    store_begin(p, taken_over);
}

void run(const struct plan *p, bool print, struct run_result *result)
{
    unsigned life = 0;

    begin(p, print);
    if (p->seats > 1) {
        run_seats(p);
        life = p->lives - 1;
    }
    for (; life < p->lives && !machine.failed; life++) {
        begin_life(p, life);
        end_life(machine_run());
    }
    if (!machine.failed)
        history_balance();
    history_end();
    result->failed = machine.failed;
    memcpy(result->failure, machine.failure, sizeof result->failure);
    result->steps = machine.steps;
    result->hash = machine.hash;
}
