/* machine_back.c - who is held back: at one kind of step of the library a fibre stands still for a
 * while, as long as anybody else can go on.  So the few steps between two changes of memory become
 * a long time now and then, which a switch by chance hardly ever makes them.
 */
#include <string.h>

#include "machine.h"

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text != ' ')
            hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* What the source says at a place, and in which file, whatever the compiler. */
static uint64_t kind_of(const struct explore_site *at)
{
    static struct {
        const struct explore_site *at;
        uint64_t kind;
    } known[4096];
    size_t i = ((uintptr_t)at / sizeof *at) % (sizeof known / sizeof known[0]);
    const char *slash = strrchr(at->file, '/');

    if (known[i].at != at) {
        known[i].kind = hash_text(hash_text(0, slash != NULL ? slash : at->file), at->op);
        known[i].kind = hash_text(known[i].kind, at->place);
        known[i].at = at;
    }
    return known[i].kind;
}

/* One who stands still while all others pass the same place meets more than all of them would. */
static bool is_one(void)
{
    uint32_t number = (uint32_t)(machine.me - machine.fiber) % BACK_FIBERS;

    return machine.o.back_fiber >= BACK_FIBERS || machine.o.back_fiber == number;
}

static bool is_kind(const struct explore_site *at)
{
    uint64_t kind = at != NULL ? kind_of(at) ^ machine.o.back_kind : 0;

    return at != NULL && is_one() && (model_random(&kind) >> 8) % machine.o.back_kinds == 0 &&
           machine_chance(machine.o.back_every);
}

bool machine_rest(uint64_t steps)
{
    struct fiber *me = machine.me;
    uint64_t until = machine.steps + steps;

    me->back_until = until;
    machine_give_way();
    bool all = me->back_until != until || machine.steps >= until;
    me->back_until = 0;
    return all;
}

void machine_wake(struct fiber *f)
{
    f->back_until = 0;
}

/* Who sleeps could not come in between otherwise: what wakes him is what is held back. */
static void disturb(void)
{
    if (machine_chance(machine.o.stir_every))
        machine_stir();
    if (machine_chance(machine.o.leap_every))
        machine_jump();
}

void machine_hold_back(const struct explore_site *at)
{
    struct fiber *me = machine.me;

    if (!machine.running || machine.plenty != 0)
        return;
    bool now = me->back_next;
    me->back_next = false;
    if (is_kind(at)) {
        now |= !machine.o.back_after;
        me->back_next = machine.o.back_after;
    }
    if (!now)
        return;
    me->back_until = machine.steps + machine.o.back_steps;
    disturb();
    machine_give_way();
}
