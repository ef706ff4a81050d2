/* run.c - the lives of a program, one after another, on one machine; or of several programs that
 * want one queue, and last of all one more in which all is taken out.  A program may have two
 * queues: then each has its own threads, and lives and dies with the other.
 */
#include "run.h"

#include <stdio.h>
#include <string.h>

#include "books.h"
#include "client.h"
#include "queue/queue.h"
#include "history.h"
#include "machine.h"
#include "store.h"
#include "world.h"

static struct plan second;                    /* queue's */
static const struct plan *plans[PLAN_QUEUES]; /* */
static unsigned queues;                       /* that there are */
static struct program programs[PLAN_SEATS][PLAN_QUEUES];
static struct host hosts[PLAN_SEATS];
static struct program *subject; /* of what the runner tells */
static bool print_lines;

static struct program *running(void)
{
    for (unsigned i = 0; machine.me != NULL && i < PLAN_SEATS; i++)
        if (programs[i][machine.queue].process == machine.me->process)
            return &programs[i][machine.queue];
    return subject;
}

/* What follows is of this program. */
static void look_at(struct program *program)
{
    machine_enter(program->queue);
    subject = program;
}

/* What the program's clock shows, without a step. */
static int64_t clock_of(const struct program *program)
{
    const struct plan *p = program->plan;
    bool running = machine.running;
    uint64_t steps = machine.steps;

    machine.running = false;
    int64_t now =
        plan_has(p, KIND_MANUAL)
            ? program->manual != NULL ? due_clock_now(program->manual) : program->manual_ns
        : p->clock == DUE_CLOCK_REALTIME ? machine_wall()
        : p->clock == DUE_CLOCK_BOOTTIME ? machine.now_ns + machine.boot_ns
                                         : machine.now_ns;
    machine.running = running;
    machine.steps = steps;
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

/* Whenever the word of a job changes. */
void due__word_moves(uint64_t from, uint64_t to)
{
    if (!due__word_may(from, to))
        machine_fail("a job's word %llx becomes %llx, which is in no table",
                     (unsigned long long)from, (unsigned long long)to);
}

uint64_t due__word_peek(const uint64_t *word)
{
    return *(const volatile uint64_t *)word; /* one's own stores are there at once */
}

static void entered(void)
{
    world_enter(machine.queue);
}

/* For each queue; the running fibre's is looked at in the end as before. */
static void for_each_queue(void (*what)(void))
{
    unsigned was = machine.queue;

    for (unsigned i = 0; i < queues; i++) {
        machine_enter(i);
        what();
    }
    machine_enter(was);
}

static void idle(void)
{
    for_each_queue(books_idle);
}

static void stepped(void)
{
    for_each_queue(history_stepped);
}

/* ---- One life after another ---- */

static bool stored(const struct program *program)
{
    return plan_has(program->plan, KIND_STORED);
}

static struct program program_of(unsigned seat, unsigned queue, int64_t manual_ns)
{
    return (struct program){ .plan = plans[queue],
                             .seat = seat,
                             .queue = queue,
                             .host = &hosts[seat],
                             .manual_ns = manual_ns };
}

/* Of what a queue without a store has had before nothing is left. */
static void begin_judging(const struct program *program)
{
    history_begin(program->plan, print_lines);
    history_clock(clock_now);
    books_begin(program->plan, clock_now);
}

/* What a clock that is turned by hand has shown to anybody: the next one goes on from there. */
static int64_t latest_clock(void)
{
    int64_t latest_ns = 0;

    for (unsigned i = 0; i < PLAN_SEATS; i++)
        for (unsigned k = 0; k < queues; k++)
            if (clock_of(&programs[i][k]) > latest_ns)
                latest_ns = clock_of(&programs[i][k]);
    return latest_ns;
}

static void begin_queue(struct program *program, unsigned life)
{
    const struct plan *p = program->plan;

    look_at(program);
    program->manual_ns = latest_clock();
    if (life > 0 && !stored(program)) {
        history_end();
        *program = program_of(0, program->queue, program->manual_ns);
        begin_judging(program);
    }
    program->life = life;
    program->last = !stored(program) || life + 1 == p->lives;
    program->process = machine.process;
    history_life(p->confirm == DUE_CONFIRM_ASYNC,
                 program->last && p->lives > 1 && program_orderly(p));
    books_life();
    machine_start("program", program_run, program, false);
}

static void begin_life(unsigned life)
{
    machine.process = life + 1;
    hosts[0].users = 0;
    for (unsigned i = 0; i < queues; i++)
        begin_queue(&programs[0][i], life);
    machine.kill_at = UINT64_MAX;
    if (plan_has(plans[0], KIND_KILLS) && life + 1 < plans[0]->lives)
        machine.kill_at = machine.steps + 1 + machine_below(plans[0]->kill_within);
}

/* Nothing of a program is left but what others have of it. */
static void end_program(struct program *program, bool seen)
{
    look_at(program);
    history_note(program->own.thread, "killed");
    if (program->manual != NULL)
        program->manual_ns = clock_of(program);
    program->manual = NULL;
    store_crash(program->process, seen);
}

static void end_queue(struct program *program, enum ending how)
{
    look_at(program);
    if (!stored(program)) {
        if (how == ALL_ENDED)
            history_balance();
        return;
    }
    if (store_has_lost() && !program->last)
        history_risk();
    history_death();
    store_judge();
}

static void end_life(enum ending how)
{
    for (unsigned i = 0; i < queues && how == KILLED; i++)
        end_program(&programs[0][i], true);
    machine_kill(machine.process);
    for (unsigned i = 0; i < queues && how != FAILED; i++)
        end_queue(&programs[0][i], how);
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

static void start_queue(struct program *program)
{
    char name[16];

    look_at(program);
    snprintf(name, sizeof name, "program %u", program->seat + 1);
    program->process = machine.process;
    program->manual_ns = latest_clock();
    if (program->lives > 0)
        machine_start(name, program_lives, program, false);
}

static void start_seat(unsigned seat)
{
    machine.process++;
    hosts[seat].users = 0;
    for (unsigned i = 0; i < queues; i++)
        start_queue(&programs[seat][i]);
}

static void draw_kill(void)
{
    machine.kill_at = UINT64_MAX;
    if (plan_has(plans[0], KIND_KILLS))
        machine.kill_at = machine.steps + 1 + machine_below(plans[0]->kill_within);
}

/* Any of those that live.  Half of them stood on another machine: their lease has to end. */
static void kill_one(void)
{
    unsigned seat = (unsigned)machine_below(PLAN_SEATS);
    unsigned process = programs[seat][0].process;
    bool seen = machine_below(2) == 0;

    draw_kill();
    if (machine_process_ended(process))
        return;
    for (unsigned i = 0; i < queues; i++)
        end_program(&programs[seat][i], seen);
    machine_kill(process);
    for (unsigned i = 0; i < queues; i++) {
        look_at(&programs[seat][i]);
        history_cut(subject->own.thread);
    }
    start_seat(seat);
}

static void begin_seats(void)
{
    machine.process = 0;
    for (unsigned i = 0; i < queues; i++) {
        look_at(&programs[0][i]);
        history_life(plans[i]->confirm == DUE_CONFIRM_ASYNC, false);
        books_life();
    }
    for (unsigned seat = 0; seat < PLAN_SEATS; seat++) {
        for (unsigned i = 0; i < queues; i++)
            programs[seat][i].lives = (plans[0]->lives - 1) / PLAN_SEATS;
        start_seat(seat);
    }
}

static void run_seats(void)
{
    begin_seats();
    draw_kill();
    machine_stops(true);
    while (machine_run() == KILLED && !machine.failed)
        kill_one();
    machine_stops(false);
    for (unsigned i = 1; i <= machine.process; i++)
        machine_kill(i);
    for (unsigned i = 0; i < queues && !machine.failed; i++)
        end_queue(&programs[0][i], ALL_ENDED);
}

/* ---- The run ---- */

static void begin(const struct plan *p, bool print)
{
    machine_begin(&p->machine);
    machine.entered = entered;
    world_enter(0);
    print_lines = print;
    plans[0] = p;
    plans[1] = &second;
    plan_draw_second(&second, p);
    queues = plan_has(p, KIND_QUEUES) ? PLAN_QUEUES : 1;
    memset(programs, 0, sizeof programs);
    memset(hosts, 0, sizeof hosts);
    for (unsigned i = 0; i < PLAN_SEATS; i++)
        for (unsigned k = 0; k < PLAN_QUEUES; k++)
            programs[i][k] = program_of(i, k, DUE_S(1));
    for (unsigned k = 0; k < queues; k++) {
        look_at(&programs[0][k]);
        store_begin(subject->plan, taken_over);
        begin_judging(subject);
    }
    machine.idle = idle;
    machine.stepped = stepped;
}

/* What has come out, of queues with a store, against what was put in. */
static void end(void)
{
    for (unsigned i = 0; i < queues; i++) {
        look_at(&programs[0][i]);
        if (!machine.failed && stored(subject))
            history_balance();
        history_end();
    }
    machine_enter(0);
}

void run(const struct plan *p, bool print, struct run_result *result)
{
    unsigned life = 0;

    begin(p, print);
    if (p->seats > 1) {
        run_seats();
        life = p->lives - 1;
    }
    for (; life < p->lives && !machine.failed; life++) {
        begin_life(life);
        end_life(machine_run());
    }
    end();
    result->failed = machine.failed;
    memcpy(result->failure, machine.failure, sizeof result->failure);
    result->steps = machine.steps;
    result->hash = machine.hash;
}
