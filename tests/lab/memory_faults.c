/* memory_faults.c - what goes wrong in a call of the store in memory: as planned, or by dice. */
#include "lab/memory_disk.h"

static void add_fault(struct memory_call *call, const struct memory_fault *fault)
{
    call->has[fault->kind] = true;
    if (fault->kind == MEMORY_BLOCK)
        call->limiter = fault->limiter;
    if (fault->kind == MEMORY_SLOW)
        call->slow_us = fault->count;
    if (fault->kind == MEMORY_BLOCK_AFTER)
        call->after_limiter = fault->limiter;
    if (fault->kind == MEMORY_ANSWER)
        call->answer = fault->answer;
    if (fault->kind == MEMORY_LOSE)
        call->lose = fault->count;
    if (fault->kind == MEMORY_REPEAT)
        call->repeat = fault->count;
}

static uint64_t roll(struct memory_dice *dice, uint64_t n)
{
    uint64_t x = dice->seed += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % n;
}

static bool can_fail_so(enum memory_verb verb, int kind)
{
    switch (kind) {
    case MEMORY_FULL:
    case MEMORY_DOUBT_NOT:
    case MEMORY_CRASH_AFTER:
        return verb == MEMORY_COMMIT || verb == MEMORY_PUT || verb == MEMORY_WORK;
    case MEMORY_DOUBT_LANDED:
        return verb == MEMORY_COMMIT || verb == MEMORY_SEND || verb == MEMORY_PUT ||
               verb == MEMORY_WORK;
    case MEMORY_REPEAT:
        return verb == MEMORY_LOAD;
    case MEMORY_LOSE:
    case MEMORY_FENCE:
    case MEMORY_CRASH:
    case MEMORY_AWAY:
        return verb != MEMORY_OPEN && verb != MEMORY_CLOSE && verb != MEMORY_JOIN &&
               verb != MEMORY_LEAVE;
    default:
        return false;
    }
}

static void throw_dice(struct memory_store *s, struct memory_call *call)
{
    struct memory_dice *dice = &s->dice;

    for (int kind = 1; kind < MEMORY_FAULTS; kind++) {
        if (dice->per_mille[kind] == 0 || !can_fail_so(call->verb, kind))
            continue;
        if (roll(dice, 1000) >= dice->per_mille[kind])
            continue;
        size_t count = 1 + (size_t)roll(dice, dice->lose_max == 0 ? 3 : dice->lose_max);
        add_fault(call,
                  &(struct memory_fault){ .kind = (enum memory_fault_kind)kind, .count = count });
    }
}

void memory_choose_faults(struct memory_store *s, struct memory_call *call, uint64_t number)
{
    for (size_t i = 0; i < s->n_faults; i++) {
        const struct memory_fault *f = &s->faults[i];

        if (f->verb == call->verb && number >= f->call && number - f->call < f->times)
            add_fault(call, f);
    }
    throw_dice(s, call);
}
