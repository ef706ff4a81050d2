/* stored_verbs_leases.c - the steps of stored_model.c by which a job is answered for. */
#include "model/stored_known.h"

/* One that is held, out of the list; *@job has it. */
static struct stored_job *let_go(struct stored_world *w, uint32_t n, due_job *job, bool *valid)
{
    if (w->held_count == 0)
        return NULL;
    int at = (int)(n % (uint32_t)w->held_count);
    struct stored_job *j = stored_find(w, w->held[at].id);

    *job = w->held[at];
    *valid = job->token == j->token;
    w->held[at] = w->held[--w->held_count];
    return j;
}

/* An answer of ack or nack, besides 0.  True: that is all of it. */
static bool answer(struct stored_world *w, struct stored_job *j, due_job *job, int rc, bool valid,
                   bool *right)
{
    *right = true;
    if (rc == DUE_ESTALE) {
        if (valid && leased(w, j) && j->in && !restless(j))
            *right = stored_wrong(w, "stale though it is reserved", j);
        return true;
    }
    if (refused(rc)) {
        w->held[w->held_count++] = *job;
        return true;
    }
    if ((rc == 0 || rc == DUE_EINDOUBT) && (!valid || !leased(w, j)))
        *right = stored_wrong(w, "a stale lease was heard", j);
    else if (rc != 0 && rc != DUE_EINDOUBT)
        *right = stored_wrong(w, "a lease is answered otherwise", j);
    return !*right;
}

/* Its holder's answer has removed it. */
static void removed(struct stored_world *w, struct stored_job *j, int rc, bool done)
{
    int64_t until = j->leased_until;

    gone(w, j, true, done);
    if (rc == DUE_EINDOUBT)
        stored_key_ended(w, j, done, false);
    j->leased_until = until;
    j->unsure = rc == DUE_EINDOUBT;
    j->lapsing = j->unsure || j->dirty;
}

bool stored_ack(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    bool valid;
    bool right;
    due_job job;
    struct stored_job *j = let_go(w, n, &job, &valid);

    if (j == NULL)
        return true;
    int rc = due_ack(&job);
    if (answer(w, j, &job, rc, valid, &right))
        return right;
    if (j->every == 0 || (j->revoked && !j->unsure)) {
        removed(w, j, rc, true);
        return true;
    }
    bool sure = rc == 0 && !asynchronous(w) && !j->revoked; /* else it may have been its last */
    stored_next_round(w, j, sure);
    j->lapsing |= !sure;
    j->unsure |= j->revoked;
    return true;
}

/* Its holder's answer, @sure or not, has written it down with its attempts. */
static void answered(struct stored_world *w, struct stored_job *j, bool sure)
{
    j->arrival = w->arrivals++;
    j->shaky |= !sure;
    j->lapsing |= !sure;
    j->plain = sure && !restless(j);
    if (!sure)
        return;
    j->attempts_stored = j->attempts_least;
    j->leased_until = INT64_MIN;
}

/* It is dead now, or may be. */
static void died(struct stored_world *w, struct stored_job *j, enum due_cause cause, bool sure)
{
    j->mortal |= !sure || restless(j);
    j->dead = true;
    j->cause = sure && !restless(j) ? cause : 0;
    j->died = w->now;
    run_over(j, sure && !restless(j));
    answered(w, j, sure);
}

bool stored_nack(struct stored_world *w, uint32_t n, uint64_t value)
{
    bool by_policy = (value >> 6 & 1) != 0;
    int64_t delay = (int64_t)(value & 0x3f);
    bool valid;
    bool right;
    due_job job;
    struct stored_job *j = let_go(w, n, &job, &valid);

    if (j == NULL)
        return true;
    uint32_t limit = policy(w, j)->attempts_max;
    bool last = limit > 0 && job.attempts >= limit;
    int rc = due_nack(&job, by_policy ? DUE_DELAY_POLICY : delay);
    if (answer(w, j, &job, rc, valid, &right))
        return right;
    if (j->revoked && !j->unsure) {
        removed(w, j, rc, false);
        return true;
    }
    bool sure = rc == 0 && !asynchronous(w);
    if (by_policy)
        delay = policy(w, j)->delay_ns;
    j->nacks += sure;
    if (last) {
        died(w, j, DUE_CAUSE_ATTEMPTS, sure);
        return true;
    }
    add_nacked(j, w->now + delay, sure && !restless(j));
    answered(w, j, sure);
    return true;
}

bool stored_bury(struct stored_world *w, uint32_t n, uint64_t value)
{
    bool valid;
    bool right;
    due_job job;
    struct stored_job *j = let_go(w, n, &job, &valid);

    (void)value;
    if (j == NULL)
        return true;
    int rc = due_bury(&job, "why");
    if (answer(w, j, &job, rc, valid, &right))
        return right;
    if (j->revoked && !j->unsure) {
        removed(w, j, rc, false);
        return true;
    }
    died(w, j, DUE_CAUSE_BURIED, rc == 0 && !asynchronous(w));
    return true;
}

bool stored_extend(struct stored_world *w, uint32_t n, uint64_t value)
{
    int64_t lease = 1 + (int64_t)(value & 0x7f);
    bool valid;
    due_job job;
    struct stored_job *j = let_go(w, n, &job, &valid);

    if (j == NULL)
        return true;
    w->held[w->held_count++] = job;
    int rc = due_extend(&w->held[w->held_count - 1], lease);
    bool on = rc == 0 || rc == DUE_ETIMEDOUT; /* it is, but others may come to own the jobs */
    if (on && (!valid || !leased(w, j)))
        return stored_wrong(w, "a stale lease was extended", j);
    if (rc == DUE_ESTALE && valid && leased(w, j) && j->in && !restless(j))
        return stored_wrong(w, "stale though it is reserved", j);
    if (on) {
        j->leased_until = w->now + lease;
        j->arrival = w->arrivals++;
    }
    return on || rc == DUE_ESTALE || stored_wrong(w, "an extend answers otherwise", j);
}

bool stored_done(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    bool valid;
    due_job job;
    struct stored_job *j = let_go(w, n, &job, &valid);

    if (j == NULL)
        return true;
    due_job_done(&job);
    j->lapsing |= leased(w, j) && !storeless(w);
    return true;
}
