/* ledger_lives.c - what the end of a life, a kill and the last hand-over mean for all jobs. */
#include "ledger_book.h"

#include <string.h>

static void begin_life(struct ledger *l, bool async)
{
    l->n_lives++;
    l->async = async;
    l->ordered = false;
    l->left_out = false;
    l->life_line = l->lines;
    memset(l->any_last, 0, sizeof l->any_last);
}

void ledger_life(struct ledger *l, bool async, bool alone)
{
    begin_life(l, async);
    l->ordered = alone;
    l->revivals = 0;
    memset(l->calls, 0, sizeof l->calls);
}

/* An enqueue that is under way may have taken over the key of a job that is out. */
static void may_have_taken(struct ledger *l, struct call *call, int64_t time_ns)
{
    call->answer_ns = time_ns;
    keys_answered(l, call, false, KEY_UNKNOWN, NULL, "");
}

/* A call that has no answer, and will have none. */
static void cut_off(struct ledger *l, struct call *call, int64_t time_ns)
{
    l->revivals -= call->revives;
    if (call->clears)
        book_doubt_all(l);
    if (call->takes && call->for_good)
        book_cut(l, time_ns);
    if (call->key != 0) {
        lane_leave(&l->keys[call->key].lane);
        may_have_taken(l, call, time_ns);
    }
    if (call->place != 0) {
        struct job *j = &l->jobs[call->place - 1];

        if (call->leaves) {
            j->doubt = true;
            j->doubted = l->lines;
            j->leaving -= j->leaving > 0;
        } else {
            lane_leave(book_lane(l, j));
        }
    }
    *call = (struct call){ 0 };
}

void ledger_cut(struct ledger *l, unsigned first, unsigned n, int64_t time_ns)
{
    l->lines++; /* so that what was handed out last is behind what ended before it */
    for (unsigned i = first; i < first + n; i++)
        cut_off(l, &l->calls[i], time_ns);
}

/* What was not confirmed may not be so, and nobody has a job any more. */
static void fall_back(struct ledger *l)
{
    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];

        if (j->gone_soon || j->cleared != 0)
            j->usurped = 0; /* whose key it was then hung on a removal that is not sure */
        if (j->cleared != 0) {
            j->doubt = true; /* it may have left, and not have been shown */
            j->doubted = l->lines;
        }
        j->out = j->lent = false;
        j->lease_end_ns = 0;
        j->now = j->kept;
        j->put_soon = j->gone_soon = false;
        j->mark = j->cleared = j->refused_line = 0;
    }
    late_forget(l);
}

void ledger_death(struct ledger *l, int64_t time_ns)
{
    ledger_cut(l, 0, THREADS, time_ns);
    for (size_t i = 0; i <= KEYS; i++)
        l->keys[i].lane = (struct lane){ 0 };
    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];

        j->doubt |= j->leaving > 0;
        j->leaving = 0;
        j->own_lane = (struct lane){ 0 };
    }
    fall_back(l);
}

void ledger_takeover(struct ledger *l, bool async, int64_t time_ns)
{
    l->lines++;
    for (size_t i = 0; i < THREADS; i++)
        if (l->calls[i].key != 0)
            may_have_taken(l, &l->calls[i], time_ns);
    fall_back(l);
    begin_life(l, async);
}

void ledger_risk(struct ledger *l)
{
    for (size_t i = 0; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];

        j->risk = true;
        j->plain = false;
        j->now.bound_ns = j->least_ns;
        j->now.since = 0;
        j->now.dead = MAYBE;
        j->kept = j->now;
        j->has_key = MAYBE;
        j->usurped = 0;
    }
}

void ledger_half(struct ledger *l, bool whole)
{
    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];

        if (whole && j->put == SURE)
            continue;
        if (j->has_key == SURE)
            j->has_key = MAYBE;
        j->usurped = 0;
    }
}

/* Without a confirmation; who waits for one has none of those that are cleared left. */
static void may_be_cleared(struct ledger *l)
{
    for (size_t i = l->first; l->async && i < l->n_jobs; i++)
        l->jobs[i].cleared = l->lines;
}

/* Any job may leave, and with its key. */
void all_want_clear(struct ledger *l, unsigned thread)
{
    l->calls[thread].clears = true;
    may_be_cleared(l);
}

/* Those that were shown are in doubt as well, unless it has cleared all. */
void all_told_clear(struct ledger *l, const struct call *call, const char *answer)
{
    if (!call->clears)
        return;
    if (told_ok(answer))
        may_be_cleared(l); /* those too that came meanwhile */
    else
        book_doubt_all(l);
}

/* Any job that may be dead comes at once. */
void all_want_revival(struct ledger *l, unsigned thread)
{
    l->calls[thread].revives = true;
    l->revivals++;
    l->revived_line = l->lines;
    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];

        if (j->now.dead == NOT && j->kept.dead == NOT && !j->mortal)
            continue;
        j->touched = l->lines;
        j->plain = false;
        book_maybe_dead(j);
        book_sooner(j, l->calls[thread].now_ns);
    }
}

void all_told_revival(struct ledger *l, const struct call *call)
{
    l->revivals -= call->revives;
    l->revived_line = l->lines;
}

/* A dequeue that a kill cut short may have had it.  The first that may, since what may have had the
 * job that was seen last may have had the others too. */
static bool excuse(struct ledger *l, const struct job *j)
{
    for (size_t i = 0; i < l->n_cuts; i++) {
        struct cut *cut = &l->cuts[i];

        if (!cut->spent && cut->line > j->safe_line && cut->ns >= j->least_ns) {
            cut->spent = true;
            return true;
        }
    }
    return false;
}

void ledger_balance(struct ledger *l)
{
    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];
        bool missed = j->put == SURE && !j->gone && !j->doubt && !j->revoked && !j->closed;

        if (missed && j->risk) {
            l->v.missing++;
        } else if (missed && excuse(l, j)) {
            l->v.excused++;
        } else if (missed) {
            l->v.lost++;
            complain(l, "lost", j, j->id);
        }
        j->closed |= !j->gone;
    }
    l->first = l->n_jobs;
    l->n_cuts = 0;
    memset(l->keys, 0, sizeof l->keys);
}

void ledger_forget(struct ledger *l)
{
    book_forget(l);
}

struct ledger_verdict ledger_verdict(const struct ledger *l)
{
    return l->v;
}
