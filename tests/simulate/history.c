/* history.c - lines, their hash, and the ledger that judges them. */
#include "history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"
#include "store.h"
#include "world.h"

static struct ledger *ledger;
static const struct plan *plan;
static int64_t (*clock_now)(void);
static bool printing;
static int64_t shown;                          /* the latest that the clock has shown */
static bool owned[PLAN_SEATS * HISTORY_LANES]; /* its program owned the jobs when it last asked */

void history_begin(const struct plan *p, bool print)
{
    WORLD_KEEP(ledger);
    WORLD_KEEP(plan);
    WORLD_KEEP(clock_now);
    WORLD_KEEP(shown);
    WORLD_KEEP(owned);
    plan = p;
    printing = print;
    ledger = ledger_new();
    if (!print)
        ledger_hush(ledger);
    clock_now = NULL;
    shown = 0;
    memset(owned, 0, sizeof owned);
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

/* LEDGER_OUT: nothing but what has left the store before, for a call that was in doubt then. */
enum to_ledger { LEDGER_NOT, LEDGER_OUT, LEDGER_LATE, LEDGER_ALL };

/* What the ledger is told of an answer that comes when somebody else owns the jobs.  False: nothing
 * of it.  A job that was reserved may be another's by now, and so may a key; and who does not wait
 * for a confirmation has not got it. */
static bool late_answer(char *text, size_t size)
{
    char what[24] = "";
    char subject[40] = "";
    char answer[40] = "";
    char id[40] = "-";

    sscanf(text, "%*u %*d %23s %39s %39s %39s", what, subject, answer, id);
    bool taken = strcmp(what, "dequeue!") == 0 || strcmp(what, "reserve!") == 0;
    bool ok = strcmp(taken ? subject : answer, "DUE_OK") == 0;
    char *at = strchr(strchr(text, ' ') + 1, ' ') + 1;
    size_t left = size - (size_t)(at - text);

    if (strcmp(what, "dead") == 0 || strcmp(what, "settled") == 0 || strcmp(what, "close!") == 0)
        return false;
    if (strcmp(what, "list!") == 0 || strcmp(what, "reserve!") == 0)
        snprintf(at, left, "%s DUE_EAGAIN", what);
    else if (strcmp(what, "find!") == 0)
        snprintf(at, left, "%s %s DUE_EAGAIN -", what, subject);
    else if (strcmp(answer, "DUE_EEXIST") == 0)
        snprintf(at, left, "%s %s DUE_EAGAIN -", what, subject);
    else if (ok && !taken && plan_has(plan, KIND_ASYNC))
        snprintf(at, left, "%s %s DUE_EINDOUBT %s", what, subject, id);
    return true;
}

/* Where nobody waits for a confirmation it may not have left, nor had its key any more.  Nor has it
 * where an earlier call has taken it that did not wait: it has left before, and this one has it. */
static void has_left(unsigned thread, int64_t time_ns, char *text, size_t size)
{
    char asked[48];
    char id[40] = "-";

    snprintf(asked, sizeof asked, "%u %" PRId64 " dequeue?", thread, time_ns);
    ledger_line(ledger, asked);
    sscanf(text, "%*u %*d %*s %*s %*s %39s", id);
    if (plan_has(plan, KIND_ASYNC) || plan_has(plan, KIND_POLLS))
        snprintf(text, size, "%u %" PRId64 " dequeue! DUE_EINDOUBT %s", thread, time_ns, id);
    ledger_line(ledger, text);
}

static void line(unsigned thread, enum to_ledger to, int64_t time_ns, const char *format,
                 va_list args)
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
        printf("%8llu  %+.9f  %s%s\n", (unsigned long long)machine.steps,
               (double)(machine.now_ns - START_NS) / 1e9, world_now() > 0 ? "(2) " : "", text);
    if (plan->machine.plant == PLANT_WRONG_MODEL && strstr(text, "dequeue! DUE_OK") != NULL &&
        machine.hash % 64 == 0)
        return;
    if (to == LEDGER_OUT && strstr(text, "dequeue! DUE_OK") != NULL)
        has_left(thread, time_ns, text, sizeof text);
    if (to == LEDGER_ALL || (to == LEDGER_LATE && late_answer(text, sizeof text)))
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

    owned[thread] = store_mine();
    va_start(args, format);
    line(thread, owned[thread] ? LEDGER_ALL : LEDGER_NOT, earliest(), format, args);
    va_end(args);
}

void history_tell(unsigned thread, const char *format, ...)
{
    va_list args;
    enum to_ledger to = store_mine() ? LEDGER_ALL : owned[thread] ? LEDGER_LATE : LEDGER_OUT;

    va_start(args, format);
    line(thread, to, latest(), format, args);
    va_end(args);
    history_judge();
}

static void tell_ledger(unsigned thread, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void tell_ledger(unsigned thread, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line(thread, LEDGER_ALL, latest(), format, args);
    va_end(args);
}

void history_doubt(unsigned thread, const char *id)
{
    tell_ledger(thread, "cancel? %s", id);
    tell_ledger(thread, "cancel! %s DUE_EINDOUBT", id);
    tell_ledger(thread, "shown %s", id);
    history_judge();
}

void history_note(unsigned thread, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line(thread, LEDGER_NOT, clock_now != NULL ? clock_now() : 0, format, args);
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

void history_takeover(bool async)
{
    ledger_takeover(ledger, async, latest());
}

void history_cut(unsigned first_lane)
{
    ledger_cut(ledger, first_lane, HISTORY_LANES, latest());
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
