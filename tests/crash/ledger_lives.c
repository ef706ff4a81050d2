/* ledger_lives.c - what the end of a life, a kill and the last hand-over mean for all jobs. */
#include "ledger_book.h"

#include <string.h>

void ledger_life(struct ledger *l, bool async, bool alone)
{
    l->n_lives++;
    l->async = async;
    l->ordered = alone;
    l->left_out = false;
    l->life_line = l->lines;
    memset(l->calls, 0, sizeof l->calls);
    memset(l->any_last, 0, sizeof l->any_last);
}

/* Calls that have no answer, and will have none. */
static void cut_off(struct ledger *l, int64_t time_ns)
{
    for (size_t i = 0; i < THREADS; i++) {
        struct call *call = &l->calls[i];

        call->answer_ns = time_ns;
        if (call->takes && call->for_good)
            book_cut(l, time_ns);
        if (call->key != 0)
            keys_answered(l, call, false, KEY_UNKNOWN, NULL, "");
    }
    for (size_t i = 0; i <= KEYS; i++)
        l->keys[i].lane = (struct lane){ 0 };
    memset(l->calls, 0, sizeof l->calls);
}

void ledger_death(struct ledger *l, int64_t time_ns)
{
    l->lines++; /* so that what was handed out last is behind what ended before it */
    cut_off(l, time_ns);
    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];

        j->doubt |= j->leaving > 0;
        j->leaving = 0;
        j->own_lane = (struct lane){ 0 };
        if (j->gone_soon)
            j->usurped = 0; /* whose key it was then hung on a removal that is not sure */
        j->out = j->lent = false;
        j->lease_end_ns = 0;
        j->now = j->kept;
        j->put_soon = j->gone_soon = j->refused_late = false;
        j->mark = 0;
    }
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

void ledger_half(struct ledger *l)
{
    for (size_t i = l->first; i < l->n_jobs; i++) {
        struct job *j = &l->jobs[i];

        if (j->has_key == SURE)
            j->has_key = MAYBE;
        j->usurped = 0;
    }
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
