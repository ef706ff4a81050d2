/* stored_verbs_repeat.c - the steps of stored_model.c on jobs that come again, and their rounds. */
#include "model/stored_known.h"

/* The next deadline after @deadline, when the round ends at @now. */
static int64_t next_after(const struct stored_job *j, int64_t deadline, int64_t now)
{
    int64_t next = deadline + j->every;

    if (j->repeat == DUE_REPEAT_AFTER)
        return now + j->every;
    while (next < now)
        next += j->every;
    return next > now && next - j->every > deadline && j->repeat == DUE_REPEAT_ONCE
               ? next - j->every
               : next;
}

/* Its rounds may have ended at any time since then: may it be due at @until? */
bool stored_round_may_be(const struct stored_world *w, const struct stored_job *j, int64_t until)
{
    if (!j->rounding)
        return false;
    if (j->repeat == DUE_REPEAT_AFTER)
        return until >= j->rounding_from + j->every && until <= w->now + j->every;
    for (int i = 0; i < j->times; i++) {
        int64_t deadline = j->time[i].deadline;
        int64_t last = deadline > w->now ? deadline : w->now;

        if (until > deadline && until <= last + j->every && (until - deadline) % j->every == 0)
            return true;
    }
    return false;
}

void stored_next_round(struct stored_world *w, struct stored_job *j, bool sure)
{
    struct stored_time was[STORED_TIMES];
    bool only = sure && !restless(j);
    int n = j->times;

    memcpy(was, j->time, sizeof was);
    for (int i = 0; i < n && (only || !j->rounding); i++) { /* else they are among what may be */
        int64_t next = next_after(j, was[i].deadline, w->now);

        add_time(j, next, next, only && i == 0);
    }
    never_handed(j, only);
    j->arrival = w->arrivals++;
    j->plain = only && j->times == 1;
    run_over(j, only);
    if (!only && !j->rounding)
        j->rounding_from = w->now;
    j->rounding = !only;
    j->shaky |= !sure;
    if (!sure)
        return;
    j->in = true;
    j->unsure = false;
    j->leased_until = INT64_MIN;
}

bool stored_put_repeating(struct stored_world *w, uint32_t n, uint64_t value)
{
    struct stored_draft d;

    if (w->made == STORED_ROOM)
        return true;
    struct stored_job *j = stored_new_job(w, value, &d);
    if (j->loose || (d.spec.at_ns == 0 && d.spec.delay_ns == 0)) {
        j->loose = false;
        d.spec.delay_ns = 1;
        add_time(j, w->now + 1, w->now + 1, true);
    }
    d.more.every_ns = j->every = 1 + (int64_t)(n % 64);
    d.more.repeat = j->repeat = (enum due_repeat)(n / 64 % 3);
    return stored_put(w, &d.spec);
}
