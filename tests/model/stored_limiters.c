/* stored_limiters.c - groups and limits of topics in stored_model.c: who runs, who may be kept
 * back.
 *
 * Who has been let through and not handed out yet cannot be seen.  So a job counts as one that runs
 * from its hand-over on, and that nothing is handed out is right as long as those who run, or may,
 * are as many as may.
 */
#include "model/stored_known.h"

/* Does it run, or perhaps, so that others are kept back? */
static bool may_run(const struct stored_job *j, bool pass)
{
    return (j->in && pass) || restless(j);
}

/* How many of a topic run, for sure or perhaps; those of one call are all out at the same time. */
static size_t running(const struct stored_world *w, int topic, bool surely)
{
    size_t n = 0;

    for (int i = 0; i < w->made; i++) {
        const struct stored_job *j = &w->job[i];

        if (j->topic == topic)
            n += surely ? j->in && j->pass_topic && !j->pass_unsure && !restless(j)
                        : may_run(j, j->pass_topic);
    }
    return n;
}

bool stored_let_through(struct stored_world *w, struct stored_job *j, bool ends)
{
    bool had_topic = j->pass_topic;

    for (int i = 0; i < w->made && j->group != 0; i++) {
        const struct stored_job *k = &w->job[i];

        if (k != j && k->topic == j->topic && k->group == j->group && k->in && k->pass_group &&
            !k->pass_unsure && !restless(k))
            return stored_wrong(w, "two of a group run", k);
    }
    size_t most = w->limit_most[j->topic];
    run_over(j, true);
    if (most > 0 && !had_topic && running(w, j->topic, true) >= most)
        return stored_wrong(w, "more of a topic run than may", j);
    j->pass_topic = w->gated[j->topic] && !ends;
    j->pass_group = j->group != 0 && !ends;
    return true;
}

bool stored_kept_back(const struct stored_world *w, const struct stored_job *j)
{
    size_t limit = w->limit[j->topic];

    if (limit > 0 && (!j->pass_topic || j->pass_unsure) && running(w, j->topic, false) >= limit)
        return true;
    for (int i = 0; i < w->made && j->group != 0 && (!j->pass_group || j->pass_unsure); i++) {
        const struct stored_job *k = &w->job[i];

        if (k != j && k->topic == j->topic && k->group == j->group && may_run(k, k->pass_group))
            return true;
    }
    return false;
}

bool stored_same_limiters(const struct stored_world *w, const struct stored_job *k,
                          const struct stored_job *j)
{
    uint64_t k_since = k->arrival > k->ripened ? k->arrival : k->ripened;
    uint64_t j_since = j->arrival > j->ripened ? j->arrival : j->ripened;

    if (!w->gated[j->topic] && k->group == 0 && j->group == 0)
        return true;
    if (!storeless(w) && (asynchronous(w) || stored_fails(w)))
        return false; /* what was put in late has come late */
    if ((w->pattern & STORED_URGENT) && k->time[0].until > j->time[0].until)
        return false; /* it may have been let through before the other came */
    if (j->pass_group || j->pass_topic || k_since > j_since ||
        k->arrival == j->arrival) /* kicked together */
        return false;
    return k->group == j->group || k->group == 0; /* else its group may have kept it back */
}

bool stored_drained(struct stored_world *w, int topic)
{
    uint64_t run = 0;
    bool known = storeless(w) && topic < 0;

    for (int t = 0; t < STORED_TOPICS; t++) {
        if ((topic < 0 || t == topic) && w->limit[t] > 0 && !w->paused[t]) {
            size_t perhaps = running(w, t, false);

            w->limit_most[t] = perhaps > w->limit[t] ? perhaps : w->limit[t];
        }
        known = known && w->limit[t] == 0 && !w->paused[t];
    }
    for (int i = 0; known && i < w->made; i++) {
        const struct stored_job *j = &w->job[i];

        run += j->in && (j->pass_topic || j->pass_group);
        known = !restless(j) && !j->pass_unsure;
    }
    if (known && stored_stats(w).passed != run)
        return stored_wrong(w, "the stats count others that run", NULL);
    return true;
}

bool stored_limit(struct stored_world *w, uint32_t n, uint64_t value)
{
    int t = (int)(n % STORED_TOPICS);
    size_t limit = (size_t)(value & 3);
    size_t was = w->limit[t];

    if (!(w->pattern & STORED_GATES))
        return true;
    int rc;
    unsigned tries = 0;
    do /* twice is once: then it is known */
        rc = due_topic_limit(w->q, w->topic[t], limit);
    while (rc != 0 && stored_fails(w) && ++tries < STORED_TRIES);
    if (rc != 0)
        return stored_wrong(w, "no limit", NULL);
    w->limit[t] = limit;
    if (limit == 0 || (w->gated[t] && was == 0)) /* those who were let through are not counted */
        w->limit_most[t] = 0;
    else if (!w->gated[t] || (w->limit_most[t] > 0 && limit > w->limit_most[t]))
        w->limit_most[t] = limit;
    w->gated[t] = w->gated[t] || limit > 0;
    return true;
}
