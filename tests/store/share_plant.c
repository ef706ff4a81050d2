/* share_plant.c - what a store that is wrong would have answered. */
#include "store/share_plant.h"

#include <stdlib.h>
#include <string.h>

#include "store/share_exchange.h"

const struct replay_planted replay_plants[] = {
    { "twice", "a job that was claimed is claimed by the next one, too" },
    { "stamp", "two claims in a row have each other's stamps" },
    { "same", "an exchange has the stamp of another one" },
    { "answer", "a change that was made is answered as if it was not" },
    { "stale", "an end of a lease that was over is answered as if it was made" },
    { "gone", "an exchange of new jobs had no effect" },
    { "bytes", "a job is shown with other bytes" },
    { "counts", "a job is shown with one attempt more" },
    { "early", "a job is claimed before it is due" },
    { "lapsed", "a lease that was over ended a microsecond later" },
    { "more", "a claim leaves out the last job" },
    { NULL, NULL },
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

/* Somewhere in @x, of which @y is the next one of the same process. */
static bool plant(struct replay_exchange *x, struct replay_exchange *y, const char *name)
{
    struct replay_shown *first = has_shown(x) ? &x->shown[0] : NULL;

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
        x->answer.now_ns -= DUE_S(1);
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
    for (size_t i = 0; r->n > 1 && i < r->n; i++) {
        size_t at = (size_t)((seed + i) % (r->n - 1));

        if (plant(&r->exchanges[at], &r->exchanges[at + 1], name))
            return true;
    }
    return false;
}
