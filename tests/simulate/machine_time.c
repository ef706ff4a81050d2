/* machine_time.c - time that passes although somebody could go on, and a wall clock that is set. */
#include "machine.h"

#define FAR_NS DUE_S(100000)

void machine_instant(int64_t ahead_ns)
{
    if (ahead_ns > 0 && ahead_ns < FAR_NS)
        machine.instant[machine.instants++ % INSTANTS_MAX] = machine.now_ns + ahead_ns;
}

/* To one of the instants that matter, or to a nanosecond before or after it, if it is to come. */
static int64_t some_instant(void)
{
    int64_t at = machine.instant[machine_below(INSTANTS_MAX)];

    at += (int64_t)machine_below(3) - 1;
    return at > machine.now_ns ? at : machine.now_ns;
}

void machine_jump(void)
{
    int64_t next = machine_next_wake();
    int64_t by = (int64_t)machine_below((uint64_t)machine.o.jump_max_ns + 1);
    uint64_t dice = machine_below(4);

    if (next != DUE_FOREVER && next > machine.now_ns && dice < 2)
        machine.now_ns = next;
    else if (dice == 2)
        machine.now_ns = some_instant();
    else
        machine.now_ns += by;
}

void machine_set_clock(void)
{
    uint64_t most = (uint64_t)machine.o.clock_step_max_ns;

    if (machine.stepped != NULL)
        machine.stepped();
    machine.wall_ns = WALL_NS + (int64_t)machine_below(2 * most + 1) - (int64_t)most;
}
