/* share_plant.c - what a store that is wrong would have answered. */
#include "store/share_plant.h"

#include <stdlib.h>
#include <string.h>

#include "store/share_exchange.h"

const struct replay_planted replay_plants[] = {
    { "twice", "a job that was claimed is claimed by the next one, too", false },
    { "stamp", "two claims in a row have each other's stamps", false },
    { "same", "an exchange has the stamp of another one", false },
    { "answer", "a change that was made is answered as if it was not", false },
    { "stale", "an end of a lease that was over is answered as if it was made", false },
    { "gone", "an exchange of new jobs had no effect", false },
    { "bytes", "a job is shown with other bytes", false },
    { "counts", "a job is shown with one attempt more", false },
    { "early", "a job is claimed before it is due", false },
    { "lapsed", "a lease that was over ended a microsecond later", false },
    { "more", "a claim leaves out the last job", false },
    { "out", "a process that was turned out goes on", true },
    { "stood", "a clock that is set back shows the latest time that it has shown", true },
    { NULL, NULL, false },
};

static bool has_shown(const struct replay_exchange *x)
{
    return x->known && x->answered_ns != 0 && x->n_shown > 0;
}

/* The result of some change of it becomes @to, where it is @from. */
static bool change_result(struct replay_exchange *x, int from, int to)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->results[i] == from && x->changes[i].held != 0) {
            x->results[i] = to;
            return true;
        }
    return false;
}

static bool swap_stamps(struct replay_exchange *x, struct replay_exchange *y)
{
    uint64_t stamp = x->answer.stamp;

    if (!has_shown(x) || !has_shown(y) || y->claim.topics != x->claim.topics)
        return false;
    x->answer.stamp = y->answer.stamp;
    y->answer.stamp = stamp;
    return true;
}

/* It is said to have been turned out before it asked for @y. */
static bool turn_out(struct replay *r, const struct replay_exchange *x,
                     const struct replay_exchange *y)
{
    if (x->writer != y->writer || y->answered_ns == 0)
        return false;
    replay_evicted(r, x->writer, y->asked_ns - 1);
    return true;
}

static int by_stamp(const void *a, const void *b)
{
    uint64_t x = (*(struct replay_exchange *const *)a)->answer.stamp;
    uint64_t y = (*(struct replay_exchange *const *)b)->answer.stamp;

    return (x > y) - (x < y);
}

/* False: it was not set back by more than a lease lasts. */
static bool stand_still(struct replay *r)
{
    struct replay_exchange **all = replay_need(calloc(r->n + 1, sizeof *all));
    int64_t shown_ns = 0;
    bool stood = false;

    for (size_t i = 0; i < r->n; i++)
        all[i] = &r->exchanges[i];
    qsort(all, r->n, sizeof *all, by_stamp);
    for (size_t i = 0; i < r->n; i++) {
        int64_t *now_ns = &all[i]->answer.now_ns;

        stood = stood || *now_ns < shown_ns - DUE_MS(70);
        shown_ns = *now_ns > shown_ns ? *now_ns : shown_ns;
        *now_ns = shown_ns;
    }
    free(all);
    return stood;
}

/* By an answer that nobody has heard, or the clock would tell. */
static void early(struct replay_exchange *x)
{
    x->answer.now_ns -= DUE_S(1);
    x->answered_ns = 0;
}

/* Somewhere in @x, of which @y is the next one of the same process. */
static bool plant(struct replay *r, struct replay_exchange *x, struct replay_exchange *y,
                  const char *name)
{
    struct replay_shown *first = has_shown(x) ? &x->shown[0] : NULL;

    if (strcmp(name, "out") == 0)
        return turn_out(r, x, y);
    if (strcmp(name, "answer") == 0)
        return change_result(x, 0, DUE_ESTALE);
    if (strcmp(name, "stale") == 0)
        return change_result(x, DUE_ESTALE, 0);
    if (strcmp(name, "same") == 0) {
        y->answer.stamp = x->answer.stamp;
        return x->known && y->known;
    }
    if (strcmp(name, "gone") == 0 && x->n > 0 && x->changes[0].kind == DUE_CHANGE_PUT &&
        x->results[0] == 0) {
        for (; x->n > 0; x->n--)
            free((char *)(uintptr_t)x->changes[x->n - 1].record.topic);
        return true;
    }
    if (first == NULL)
        return false;
    if (strcmp(name, "stamp") == 0)
        return swap_stamps(x, y);
    if (strcmp(name, "twice") == 0 && y->claims && y->known) {
        struct replay_shown again = *first;

        again.held = y->answer.stamp;
        y->claim.extra++;
        *replay_show(y) = again;
        return true;
    }
    if (strcmp(name, "bytes") == 0)
        first->content ^= 1;
    else if (strcmp(name, "counts") == 0)
        first->attempts++;
    else if (strcmp(name, "early") == 0)
        early(x);
    else if (strcmp(name, "lapsed") == 0 && first->lapsed_ns != 0)
        first->lapsed_ns += 1000;
    else if (strcmp(name, "more") == 0 && x->n_shown < x->claim.need && !x->answer.more)
        x->n_shown--;
    else
        return false;
    return true;
}

bool replay_plant(struct replay *r, const char *name, uint64_t seed)
{
    if (strcmp(name, "stood") == 0)
        return stand_still(r);
    for (size_t i = 0; r->n > 1 && i < r->n; i++) {
        size_t at = (size_t)((seed + i) % (r->n - 1));

        if (plant(r, &r->exchanges[at], &r->exchanges[at + 1], name))
            return true;
    }
    return false;
}
