/* stored_limits.c - in stored_model.c: time limits of jobs, and how long the dead are kept.
 *
 * A job whose time is over dies when somebody is about to take it, so whoever takes, or tries to,
 * may have buried any that is due.  Where nothing is in doubt the queue is asked which; one that
 * has to be dead by then, and is not, is wrong.
 *
 * A dead job is discarded by whoever comes by, so from then on it may be gone.  Which ones have to
 * be gone is seen when everything is resolved.
 */
#include "model/stored_known.h"

void stored_limit_life(const struct stored_world *w, struct stored_job *j, due_extra *more,
                       uint64_t value)
{
    struct stored_limit limit = { .ttl = 0 };

    if (w->pattern & STORED_MORTAL) {
        limit.ttl = (value & 7) == 1 ? 1 + (int64_t)(value >> 3 & 0x3f) : 0;
        limit.expires = (value & 7) == 2 ? w->now + 1 + (int64_t)(value >> 3 & 0xff) : 0;
    }
    more->ttl_ns = limit.ttl;
    more->expires_ns = limit.expires;
    add_limit(j, limit, true);
}

/* ---- Time limits ---- */

static bool over(const struct stored_world *w, const struct stored_limit *l, int64_t deadline)
{
    return l->expires != 0 ? l->expires <= w->now : l->ttl != 0 && deadline + l->ttl <= w->now;
}

bool stored_expired(const struct stored_world *w, const struct stored_job *j, bool surely)
{
    bool some = false;
    bool all = j->times > 0;

    for (int i = 0; i < j->limits; i++) {
        const struct stored_limit *l = &j->limit[i];

        for (int k = 0; k < j->times; k++) {
            bool is = over(w, l, j->time[k].deadline);

            some |= is || (j->rounding && l->ttl != 0);
            all &= is && (l->ttl == 0 || !(j->loose || j->rounding));
        }
    }
    return surely ? all : some;
}

/* It is known that it has died just now. */
static void died(struct stored_world *w, struct stored_job *j)
{
    run_over(j, true);
    j->dead = true;
    j->doomed = false;
    j->cause = DUE_CAUSE_EXPIRED;
    j->died = w->now;
}

/* Nothing is in doubt: is it dead, as it may be, or has to be? */
static bool ask(struct stored_world *w, struct stored_job *j, bool has_to)
{
    due_info info;
    int rc = due_find(w->q, j->id, &info);

    if (rc == DUE_ENOENT)
        died(w, j);
    else if (rc == 0 && has_to)
        return stored_wrong(w, "its time is over, and it waits", j);
    else if (rc != 0)
        j->mortal = true; /* the store has not said yet */
    return true;
}

bool stored_expire(struct stored_world *w, int topic, bool all)
{
    bool certain = storeless(w) || (!asynchronous(w) && !stored_fails(w));

    for (int i = 0; i < w->made && (w->pattern & STORED_MORTAL); i++) {
        struct stored_job *j = &w->job[i];

        if ((topic >= 0 && j->topic != topic) || w->paused[j->topic] || (!j->in && !j->unsure) ||
            ((j->dead || leased(w, j)) && !restless(j)) || !ripe(w, j, false) ||
            !stored_expired(w, j, false))
            continue;
        if (!certain || restless(j) || !stored_expired(w, j, true))
            j->mortal = true;
        else if (!ask(w, j, all && ripe(w, j, true) && !stored_kept_back(w, j)))
            return false;
    }
    return true;
}

/* ---- Dead jobs ---- */

static bool may_be_dead(const struct stored_job *j)
{
    return (j->in || j->unsure) && (j->dead || j->mortal);
}

/* It may not have died before. */
static int64_t died_from(const struct stored_job *j)
{
    return j->ailing != 0 ? j->ailing - 1 : j->died;
}

bool stored_overdue(const struct stored_world *w, const struct stored_job *j)
{
    return (w->pattern & STORED_ROTS) && may_be_dead(j) &&
           died_from(j) + STORED_DEAD_KEEP_NS <= w->now;
}

/* As many others as may be kept may have died after it. */
static bool crowded_out(const struct stored_world *w, const struct stored_job *j)
{
    int later = 0;

    if (!(w->pattern & STORED_CROWDS) || !may_be_dead(j))
        return false;
    for (int i = 0; i < w->made; i++) {
        const struct stored_job *k = &w->job[i];

        later += k != j && may_be_dead(k) && (k->ailing != 0 || k->died >= died_from(j));
    }
    return later >= STORED_DEAD_MAX;
}

void stored_age(struct stored_world *w)
{
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];
        bool known = j->dead && !j->mortal && j->cause != 0;

        if (!may_be_dead(j) || known)
            j->ailing = 0;
        else if (j->ailing == 0)
            j->ailing = 1 + (j->cause != 0 ? j->died : w->now); /* it may have died again, or not */
    }
    for (int i = 0; i < w->made; i++)
        w->job[i].unsure |= stored_overdue(w, &w->job[i]) || crowded_out(w, &w->job[i]);
}
