/* meet.c - who waits for whom, so that calls, a close, a kill come together. */
#include "meet.h"

#include "machine.h"

#define PATIENCE 2000u /* steps */

void meet_begin(struct program *p)
{
    p->begun = p->meeting = p->waiting = 0;
    p->present = p->threads;
    p->closer = NULL;
}

/* All are there. */
static void meet_now(struct program *p)
{
    p->meeting++;
    p->waiting = 0;
    for (unsigned i = 0; i < p->threads; i++)
        if (p->client[i].fiber != NULL)
            machine_wake(p->client[i].fiber);
}

static void wait_for_others(struct program *p)
{
    unsigned meeting = p->meeting;

    if (++p->waiting >= p->present) {
        meet_now(p);
        return;
    }
    for (int i = 0; i < 4 && p->meeting == meeting && machine_rest(PATIENCE); i++)
        ;
    if (p->meeting == meeting)
        p->waiting--;
}

void meet_leave(struct client *c)
{
    struct program *p = c->program;

    p->present--;
    if (p->waiting > 0 && p->waiting >= p->present)
        meet_now(p);
}

void meet_verb(struct client *c, unsigned n)
{
    struct program *p = c->program;

    if (p->plan->meet_every != 0 && n % p->plan->meet_every == 0)
        wait_for_others(p);
    p->begun++;
    if (p->begun == p->plan->close_verbs && p->closer != NULL)
        machine_wake(p->closer);
    if (p->begun == p->plan->kill_verbs)
        machine_kill_soon(p->plan->meet_steps);
}

void meet_close(struct program *p)
{
    const struct plan *plan = p->plan;

    if (plan->close_verbs == 0) {
        machine_sleep(plan->open_ns);
        return;
    }
    p->closer = machine.me;
    while (p->begun < plan->close_verbs && p->present > 0)
        if (!machine_rest(PATIENCE)) { /* they sleep */
            machine_sleep(1 + plan->open_ns / 4);
            break;
        }
    p->closer = NULL;
    machine_rest(machine_below(plan->meet_steps));
}
