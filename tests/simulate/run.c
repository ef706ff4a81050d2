/* run.c - the lives of a program, one after another, on one machine. */
#include "run.h"

#include <stdio.h>
#include <string.h>

#include "books.h"
#include "client.h"
#include "core.h"
#include "history.h"
#include "machine.h"
#include "store.h"

static struct program program;

/* What the queue's clock shows, without a step. */
static int64_t clock_now(void)
{
    bool running = machine.running;
    const struct plan *p = program.plan;

    machine.running = false;
    int64_t now = plan_has(p, KIND_MANUAL)
                      ? program.manual != NULL ? due_clock_now(program.manual) : program.manual_ns
                  : p->clock == DUE_CLOCK_REALTIME ? machine_wall()
                  : p->clock == DUE_CLOCK_BOOTTIME ? machine.now_ns + machine.boot_ns
                                                   : machine.now_ns;
    machine.running = running;
    return now;
}

/* What must hold whenever the timeline's lock is released. */
void due__measure_end(struct due_queue *q)
{
    (void)q;
}

static void begin_life(const struct plan *p, unsigned life)
{
    program.life = life;
    program.ended = false;
    program.last = life + 1 == p->lives;
    machine.process = life + 1;
    machine.kill_at = UINT64_MAX;
    if (plan_has(p, KIND_KILLS) && !program.last)
        machine.kill_at = machine.steps + 1 + machine_below(p->kill_within);
    history_life(p->confirm == DUE_CONFIRM_ASYNC,
                 program.last && p->lives > 1 && program_orderly(p));
    books_life();
    machine_start("program", program_run, &program, false);
}

static void end_life(enum ending how)
{
    const struct plan *p = program.plan;

    if (how == KILLED) {
        history_note(0, "killed");
        if (program.manual != NULL)
            program.manual_ns = clock_now();
        program.manual = NULL;
        store_crash();
    }
    machine_kill(machine.process);
    if (!plan_has(p, KIND_STORED))
        return;
    if (store_has_lost() && !program.last)
        history_risk();
    history_death();
    store_judge();
}

void run(const struct plan *p, bool print, struct run_result *result)
{
    machine_begin(&p->machine);
    memset(&program, 0, sizeof program);
    program.plan = p;
    program.manual_ns = DUE_S(1);
    history_begin(p, print);
    history_clock(clock_now);
    books_begin(p, clock_now);
    machine.idle = books_idle;
    machine.stepped = history_stepped;
    if (plan_has(p, KIND_STORED))
        store_begin(p);
    for (unsigned life = 0; life < p->lives && !machine.failed; life++) {
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
