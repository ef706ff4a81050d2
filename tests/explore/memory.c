/* memory.c - memory as x86 shows it to several processors (x86-TSO), and which of it is shared.
 *
 * The model.  A relaxed or release store goes into its thread's buffer, a queue; the oldest store
 * of a buffer may reach memory at any time.  A load takes the newest store to its place in its own
 * buffer, else memory.  Sequentially consistent stores and read-modify-writes empty the buffer
 * first.  Relaxed additions do not, which is weaker than x86 and as C11 has it.
 *
 * How it is searched.  A store either reaches memory at once, or is held: that is one choice.  Held
 * stores reach memory when their thread empties its buffer, or, at the choice of the search, right
 * before another thread touches one of their places; any other moment in between shows nobody
 * anything else.
 *
 * A switch is offered only before steps on places that two threads touch and at least one writes.
 * Which those are is learned from the executions: when another one is seen, the search begins again
 * with it (search.c), until nothing new is seen.
 *
 * The limits.  Loads are never late or early beyond what buffers do: no claim is made for ARM or
 * POWER.  Plain variables are plain memory: they must be guarded by the atomics, as ThreadSanitizer
 * checks elsewhere; a plain read of a place whose store one holds oneself sees the old value.
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>

/* ---- Places ---- */

#define PLACES 32768u

struct place {
    const volatile void *p;
    uint16_t readers; /* a bit for each thread */
    uint16_t writers;
    bool shared; /* switches come before it */
};

static struct place places[PLACES];
static bool learned;
static bool all_shared; /* whatever was seen */

static struct place *place_of(const volatile void *p)
{
    uint64_t h = (uint64_t)(uintptr_t)p * UINT64_C(0x9e3779b97f4a7c15);
    struct place *it = &places[h >> 49];

    while (it->p != p && it->p != NULL) {
        if (++it == places + PLACES)
            it = places;
    }
    it->p = p;
    return it;
}

static bool is_shared(const struct place *it)
{
    unsigned both = it->readers | it->writers;

    return it->writers != 0 && (both & (both - 1)) != 0;
}

void memory_forget(void)
{
    memset(places, 0, sizeof places);
    learned = false;
}

void memory_learn(void)
{
    for (size_t i = 0; i < PLACES; i++)
        places[i].shared = is_shared(&places[i]);
    learned = false;
}

void memory_share_all(void)
{
    all_shared = true;
}

bool memory_learned(void)
{
    return learned;
}

bool memory_shared(const volatile void *p)
{
    return all_shared || place_of(p)->shared;
}

/* ---- Bytes ---- */

static uint64_t bytes_read(const volatile void *p, unsigned size)
{
    switch (size) {
    case 1:
        return *(const volatile uint8_t *)p;
    case 2:
        return *(const volatile uint16_t *)p;
    case 4:
        return *(const volatile uint32_t *)p;
    default:
        return *(const volatile uint64_t *)p;
    }
}

static void bytes_write(volatile void *p, unsigned size, uint64_t value)
{
    switch (size) {
    case 1:
        *(volatile uint8_t *)p = (uint8_t)value;
        break;
    case 2:
        *(volatile uint16_t *)p = (uint16_t)value;
        break;
    case 4:
        *(volatile uint32_t *)p = (uint32_t)value;
        break;
    default:
        *(volatile uint64_t *)p = value;
        break;
    }
}

static uint64_t cut(uint64_t value, unsigned size)
{
    return size == 8 ? value : value & ((UINT64_C(1) << 8 * size) - 1);
}

/* ---- Traces ---- */

static void print(const struct explore_site *at, const char *before, uint64_t value)
{
    char text[160];

    if (!engine.trace)
        return;
    snprintf(text, sizeof text, "%s%.100s = %llx", before, at->place, (unsigned long long)value);
    engine_print(at->op, text, at);
}

/* ---- Buffers ---- */

/* The first of @f's held stores to @p from @from on; or their count. */
static unsigned held_at(const struct fiber *f, const volatile void *p, unsigned from)
{
    while (from < f->held_count && f->held[from].p != p)
        from++;
    return from;
}

/* Others' held stores to @p may reach memory first. */
static void offer_writes(const struct fiber *owner, const volatile void *p)
{
    while (engine.held > 0) {
        struct ways w = { .n = 1, .way = { GO } };

        for (unsigned i = 0; i < engine.fibers; i++) {
            const struct fiber *f = &engine.fiber[i];

            if (f == owner)
                continue;
            for (unsigned k = held_at(f, p, 0); k < f->held_count; k = held_at(f, p, k + 1))
                ways_add(&w, WRITE + i * 16 + k + 1);
        }
        if (w.n == 1)
            return;
        uint8_t way = search_choose(&w, true);
        if (way == GO)
            return;
        memory_write(&engine.fiber[(way >> 4) & 7], way & 0xf);
    }
}

/* Before another's store to the same place that goes first there may go one of @f's own. */
void memory_write(struct fiber *f, unsigned n)
{
    unsigned goal = f->held_count - n;

    while (f->held_count > goal) {
        struct held oldest = f->held[0];
        unsigned left = f->held_count;

        offer_writes(f, oldest.p);
        if (f->held_count != left)
            continue;
        f->held_count--;
        engine.held--;
        memmove(f->held, f->held + 1, f->held_count * sizeof f->held[0]);
        bytes_write(oldest.p, oldest.size, oldest.value);
        if (engine.trace)
            print(oldest.at, "written now: ", oldest.value);
        engine_touched(oldest.p, true);
        engine_rouse(f); /* perhaps it stood back before just this */
    }
}

/* Answers whether a switch may come before it. */
static bool seen(const volatile void *p, bool write)
{
    struct place *it = place_of(p);
    uint16_t me = (uint16_t)(1u << (engine.me - engine.fiber));

    if (write)
        it->writers |= me;
    else
        it->readers |= me;
    if (!it->shared && is_shared(it))
        learned = true;
    return all_shared || it->shared;
}

void memory_step(const volatile void *p, bool write)
{
    if (++engine.steps > STEPS_MAX)
        explore_fail("it goes on for ever: %u steps", STEPS_MAX);
    if (seen(p, write))
        engine_offer_switch(p, write);
    else
        engine.point++;
    offer_writes(engine.me, p);
    engine_touched(p, write);
}

void memory_empty(void)
{
    struct fiber *me = engine.me;

    while (me->held_count > 0) {
        const volatile void *p = me->held[0].p;

        if (seen(p, true))
            engine_offer_switch(p, true);
        else
            engine.point++;
        if (me->held_count > 0 && me->held[0].p == p)
            memory_write(me, 1);
    }
}

/* ---- The operations ---- */

void explore_gone(const void *p, size_t size)
{
    world->gone = p;
    world->gone_size = size;
}

static void check_there(const volatile void *p, const struct explore_site *at)
{
    uintptr_t first = (uintptr_t)world->gone;

    if (engine.running && (uintptr_t)p - first < world->gone_size)
        explore_unmet(at, "what is touched was freed before");
}

uint64_t explore_load(const volatile void *p, unsigned size, const struct explore_site *at)
{
    const struct fiber *me = engine.me;

    for (unsigned i = me != NULL ? me->held_count : 0; i-- > 0;) {
        if (me->held[i].p == p) {
            if (engine.running)
                print(at, "held: ", me->held[i].value);
            return me->held[i].value;
        }
    }
    if (!engine.running)
        return bytes_read(p, size);
    memory_step(p, false);
    check_there(p, at);
    uint64_t value = bytes_read(p, size);
    print(at, "", value);
    return value;
}

void explore_store(volatile void *p, unsigned size, uint64_t value, const struct explore_site *at)
{
    value = cut(value, size);
    if (!engine.running) {
        bytes_write(p, size, value);
        return;
    }
    struct fiber *me = engine.me;
    bool hold = me->held_count > 0;

    if (!hold && memory_shared(p) && search_may_hold()) {
        struct ways w = { .n = 2, .way = { GO, HOLD } };

        hold = search_choose(&w, false) == HOLD;
        engine.used.holds += hold;
    } else {
        engine.point++;
    }
    if (hold && me->held_count == BUFFER_MAX)
        memory_empty();
    if (hold) {
        me->held[me->held_count++] = (struct held){ p, size, value, at };
        engine.held++;
        print(at, "held back: ", value);
        return;
    }
    memory_step(p, true);
    check_there(p, at);
    bytes_write(p, size, value);
    print(at, "", value);
}

static uint64_t changed(enum explore_op op, uint64_t old, uint64_t value)
{
    switch (op) {
    case EXPLORE_ADD:
    case EXPLORE_ADD_RELAXED:
        return old + value;
    case EXPLORE_SUB:
        return old - value;
    case EXPLORE_OR:
        return old | value;
    case EXPLORE_AND:
        return old & value;
    default:
        return value;
    }
}

uint64_t explore_change(volatile void *p, unsigned size, enum explore_op op, uint64_t value,
                        const struct explore_site *at)
{
    if (engine.running) {
        if (op != EXPLORE_ADD_RELAXED || held_at(engine.me, p, 0) < engine.me->held_count)
            memory_empty();
        memory_step(p, true);
        check_there(p, at);
    }
    uint64_t old = bytes_read(p, size);
    uint64_t now = cut(changed(op, old, cut(value, size)), size);

    bytes_write(p, size, now);
    if (engine.running)
        print(at, "", now);
    return old;
}

bool explore_swap(volatile void *p, unsigned size, uint64_t *expected, uint64_t value,
                  const struct explore_site *at)
{
    if (engine.running) {
        memory_empty();
        memory_step(p, true);
        check_there(p, at);
    }
    uint64_t found = bytes_read(p, size);
    bool same = found == cut(*expected, size);

    if (same)
        bytes_write(p, size, cut(value, size));
    if (engine.running)
        print(at, same ? "" : "not swapped: ", same ? value : found);
    *expected = found;
    return same;
}
