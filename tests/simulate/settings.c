/* settings.c - pauses and limits that may be stored. */
#include "settings.h"

#include <string.h>

#include "machine.h"
#include "store.h"
#include "world.h"

/* Of a topic, what one of both may be: a bit for each value. */
struct may_be {
    unsigned now;
    unsigned before; /* the call under way, if it is the only one */
    unsigned calls;  /* under way */
    bool overlap;    /* two of them were so at a time */
    uint64_t losses; /* of the store, when what is sure was asked for */
};

static const struct plan *plan;
static struct may_be settings[SETTING_KINDS][PLAN_TOPICS];

/* Values of a pause, or of a limit. */
static unsigned any_of(enum setting what)
{
    return what == SETTING_PAUSE ? 3u : (1u << PLAN_LIMITS) - 1;
}

void settings_begin(const struct plan *p)
{
    WORLD_KEEP(plan);
    WORLD_KEEP(settings);
    plan = p;
    for (int what = 0; what < SETTING_KINDS; what++)
        for (int i = 0; i < (int)PLAN_TOPICS; i++)
            settings[what][i] = (struct may_be){ .now = 1u };
}

bool settings_stored(void)
{
    return plan->settings;
}

/* A call that was under way may have landed. */
void settings_life(void)
{
    for (int what = 0; what < SETTING_KINDS; what++)
        for (int i = 0; i < (int)PLAN_TOPICS; i++) {
            struct may_be *it = &settings[what][i];

            it->calls = 0;
            it->overlap = false;
            if (it->losses != store_losses())
                it->now = any_of((enum setting)what);
        }
}

bool settings_current(const struct setting_call *call)
{
    return call->mine && call->owner == store_taken();
}

struct setting_call settings_ask(enum setting what, int topic, unsigned value)
{
    struct setting_call call = { .mine = store_mine(),
                                 .owner = store_taken(),
                                 .losses = store_losses() };
    struct may_be *it = &settings[what][topic];

    if (!call.mine)
        return call;
    it->overlap |= it->calls++ > 0;
    if (it->calls == 1)
        it->before = it->now;
    it->now |= 1u << value;
    return call;
}

void settings_told(enum setting what, int topic, unsigned value, const struct setting_call *call,
                   int rc, bool all)
{
    struct may_be *it = &settings[what][topic];

    if (!call->mine && rc == 0 && settings_stored())
        machine_fail("topic %d is paused or limited, and the jobs are another's", topic);
    if (!settings_current(call))
        return;
    bool alone = !it->overlap;
    it->overlap &= --it->calls > 0;
    if (alone && rc == 0) {
        it->now = 1u << value;
        it->losses = call->losses;
    } else if (alone && rc != DUE_EINDOUBT && !all) {
        it->now = it->before;
    }
}

bool settings_may_be(enum setting what, int topic, unsigned value)
{
    return (settings[what][topic].now >> value & 1) != 0;
}

bool settings_must_be(enum setting what, int topic, unsigned value)
{
    return settings[what][topic].now == 1u << value;
}

void settings_opened(int topic, bool paused, size_t limit)
{
    if (!settings_stored() || !store_mine())
        return;
    if (!settings_may_be(SETTING_PAUSE, topic, paused))
        machine_fail("topic %d is %s, and was not left so", topic,
                     paused ? "paused" : "not paused");
    if (limit >= PLAN_LIMITS || !settings_may_be(SETTING_LIMIT, topic, (unsigned)limit))
        machine_fail("topic %d has the limit %zu, and was not left so", topic, limit);
}
