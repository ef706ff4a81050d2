/* history.c - lines, their hash, and the ledger that judges them. */
#include "history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"

static struct ledger *ledger;
static const struct plan *plan;
static int64_t (*clock_now)(void);
static bool printing;
static int64_t shown; /* the latest that the clock has shown */

void history_begin(const struct plan *p, bool print)
{
    plan = p;
    printing = print;
    ledger = ledger_new();
    if (!print)
        ledger_hush(ledger);
    clock_now = NULL;
    shown = 0;
}

void history_end(void)
{
    ledger_free(ledger);
    ledger = NULL;
}

void history_clock(int64_t (*now)(void))
{
    clock_now = now;
}

static void line(unsigned thread, bool ledgered, int64_t time_ns, const char *format, va_list args)
{
    char text[320];
    int n = snprintf(text, sizeof text, "%u %" PRId64 " ", thread, time_ns);
    uint64_t word;

    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    for (const char *at = text, *end = text + strlen(text); at < end; at += sizeof word) {
        word = 0;
        memcpy(&word, at, (size_t)(end - at) < sizeof word ? (size_t)(end - at) : sizeof word);
        machine_mix(word);
    }
    if (printing)
        printf("%8llu  %+.9f  %s\n", (unsigned long long)machine.steps,
               (double)(machine.now_ns - START_NS) / 1e9, text);
    if (ledgered && !(plan->machine.plant == PLANT_WRONG_MODEL && strstr(text, "dequeue! DUE_OK") &&
                      machine.hash % 64 == 0))
        ledger_line(ledger, text);
}

/* The wall clock may be set at any moment of a call: the ledger gets the earliest time that it may
 * show in the call, and of an answer the latest that it has ever shown. */
static int64_t earliest(void)
{
    const struct machine_options *m = &plan->machine;

    return m->clock_step_max_ns == 0 ? clock_now()
                                     : machine.now_ns + WALL_NS - m->clock_step_max_ns;
}

/* A job that is ready stays so when the clock is set back. */
static int64_t latest(void)
{
    return clock_now() > shown ? clock_now() : shown;
}

void history_stepped(void)
{
    shown = latest();
}

void history_ask(unsigned thread, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line(thread, true, earliest(), format, args);
    va_end(args);
}

void history_tell(unsigned thread, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line(thread, true, latest(), format, args);
    va_end(args);
    history_judge();
}

void history_note(unsigned thread, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line(thread, false, clock_now != NULL ? clock_now() : 0, format, args);
    va_end(args);
}

void history_life(bool async, bool alone)
{
    ledger_life(ledger, async, alone);
}

void history_death(void)
{
    ledger_death(ledger, latest());
}

void history_risk(void)
{
    ledger_risk(ledger);
}

void history_balance(void)
{
    ledger_balance(ledger);
    history_judge();
}

void history_judge(void)
{
    struct ledger_verdict v = ledger_verdict(ledger);

    if (v.lost + v.doubled + v.early + v.disorder + v.phantom + v.stale + v.risen + v.keys == 0)
        return;
    machine_fail("the ledger: %s",
                 v.lost > 0       ? "a job is lost"
                 : v.doubled > 0  ? "a job comes twice"
                 : v.early > 0    ? "a job comes early"
                 : v.disorder > 0 ? "a job comes out of order"
                 : v.phantom > 0  ? "a job comes that was not put in, or with other bytes"
                 : v.stale > 0    ? "a job comes with what was replaced"
                 : v.risen > 0    ? "a dead job comes, or one is listed that is not dead"
                                  : "two jobs have one key");
}
