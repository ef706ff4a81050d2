/* stored_known.h - what may be said of a job of stored_world.h, and what the verbs have in common.
 */
#ifndef STORED_KNOWN_H
#define STORED_KNOWN_H

#include <stdio.h>
#include <string.h>

#include "model/stored_world.h"

static inline bool refused(int rc)
{
    return rc == DUE_ETIMEDOUT || rc == DUE_ENOSPC || rc == DUE_ESTORE;
}

static inline bool storeless(const struct stored_world *w)
{
    return (w->pattern & STORED_NONE) != 0;
}

/* Has it a store that fails? */
static inline bool stored_fails(const struct stored_world *w)
{
    return (w->pattern & (STORED_AWAY | STORED_DOUBT | STORED_FULL | STORED_LOSES)) != 0;
}

static inline bool asynchronous(const struct stored_world *w)
{
    return (w->pattern & STORED_ASYNC) != 0;
}

static inline bool leased(const struct stored_world *w, const struct stored_job *j)
{
    return j->leased_until > w->now;
}

/* Somebody may have it, its change may be under way, or its death. */
static inline bool restless(const struct stored_job *j)
{
    return j->unsure || j->dirty || j->shaky || j->lapsing || j->mortal;
}

static inline void add_time(struct stored_job *j, int64_t until, int64_t deadline, bool only)
{
    if (only)
        j->times = 0;
    for (int i = 0, left = 0, n = j->times; i < n; i++) { /* once each */
        bool same = j->time[i].until == until && j->time[i].deadline == deadline;

        j->time[left] = j->time[i];
        left += !same;
        j->times = left;
    }
    if (j->times == STORED_TIMES) { /* an old one less */
        memmove(j->time, j->time + 1, (STORED_TIMES - 1) * sizeof j->time[0]);
        j->times--;
    }
    j->time[j->times++] = (struct stored_time){ until, deadline };
}

/* The same of one that was nacked: with whichever deadline it had, the one wanted last. */
static inline void add_nacked(struct stored_job *j, int64_t until, bool only)
{
    struct stored_time was[STORED_TIMES];
    int n = j->times;

    memcpy(was, j->time, sizeof was);
    for (int i = only ? n - 1 : 0; i < n; i++)
        add_time(j, until, was[i].deadline, only);
}

static inline void add_content(struct stored_job *j, int content, bool only)
{
    if (only)
        j->contents = 0;
    if (j->contents == STORED_CONTENTS) /* an old one less */
        memmove(j->content, j->content + 1, (size_t)--j->contents * sizeof j->content[0]);
    j->content[j->contents++] = content;
}

static inline void add_head(struct stored_job *j, int head, bool only)
{
    if (only)
        j->heads = 0;
    if (j->heads == STORED_CONTENTS) /* an old one less */
        memmove(j->head, j->head + 1, (size_t)--j->heads * sizeof j->head[0]);
    j->head[j->heads++] = head;
}

static inline void add_limit(struct stored_job *j, struct stored_limit limit, bool only)
{
    if (only)
        j->limits = 0;
    if (j->limits == STORED_CONTENTS) /* an old one less */
        memmove(j->limit, j->limit + 1, (size_t)--j->limits * sizeof j->limit[0]);
    j->limit[j->limits++] = limit;
}

static inline bool ripe(const struct stored_world *w, const struct stored_job *j, bool surely)
{
    bool some = false;
    bool all = true;

    for (int i = 0; i < j->times; i++) {
        some |= j->time[i].until <= w->now;
        all &= j->time[i].until <= w->now;
    }
    return surely ? all && !j->rounding : some;
}

/* What is done when it fails. */
static inline const due_retry *policy(const struct stored_world *w, const struct stored_job *j)
{
    return j->retry.kind != DUE_RETRY_INHERIT ? &j->retry : &w->policy[j->topic];
}

/* It has been handed out as often as it may be: it dies if nobody acks it. */
static inline bool spent(const struct stored_world *w, const struct stored_job *j)
{
    return policy(w, j)->attempts_max > 0 && j->attempts >= policy(w, j)->attempts_max;
}

/* It does not run any more: it has ended, or has another deadline.  If not @sure, it may still. */
static inline void run_over(struct stored_job *j, bool sure)
{
    j->pass_unsure = !sure && (j->pass_group || j->pass_topic);
    if (sure)
        j->pass_group = j->pass_topic = false;
}

/* @done: taken for good, or acked. */
static inline void gone(struct stored_world *w, struct stored_job *j, bool async, bool done)
{
    stored_key_ended(w, j, done, !restless(j) && !(async && asynchronous(w)));
    run_over(j, storeless(w));
    j->mortal |= j->dead; /* if it comes back */
    j->dead = j->doomed = false;
    j->in = false;
    j->unsure = false;
    j->dirty = async && asynchronous(w);
    j->leased_until = INT64_MIN;
}

/* It is, or may be, as good as new. */
static inline void never_handed(struct stored_job *j, bool sure)
{
    j->attempts_least = j->attempts_stored = j->nacks = 0;
    if (sure)
        j->attempts = j->failures = 0;
}

/* Has somebody a copy of it still? */
static inline bool lent(const struct stored_world *w, const struct stored_job *j)
{
    for (int i = 0; i < w->held_count; i++) {
        if (due_id_equal(w->held[i].id, j->id))
            return true;
    }
    return false;
}

static inline struct stored_job *some_job(struct stored_world *w, uint32_t n)
{
    if (w->made == 0)
        return NULL;
    int recent = w->made < 40 ? w->made : 40;
    return &w->job[w->made - 1 - (int)(n % (uint32_t)recent)];
}

#endif
