/* stored_verbs_topic.c - the steps of stored_model.c on topics: whether they are paused, and what
 * their jobs do that fail and have no policy of their own.  Of that only the pauses are stored.
 */
#include "model/stored_known.h"

static bool set_paused(struct stored_world *w, uint32_t n, bool paused)
{
    int topic = n % 4 == 3 ? DUE_ALL_TOPICS : (int)(n % 4);
    int number = topic == DUE_ALL_TOPICS ? topic : w->topic[topic];

    if (!(w->pattern & STORED_TOPICAL))
        return true;
    int rc;
    unsigned tries = 0;
    do /* twice is once: then it is known */
        rc = paused ? due_pause(w->q, number) : due_resume(w->q, number);
    while (rc != 0 && stored_fails(w) && ++tries < STORED_TRIES);
    if (rc != 0)
        return stored_wrong(w, "neither paused nor resumed", NULL);
    for (int t = 0; t < STORED_TOPICS; t++) {
        if (topic == DUE_ALL_TOPICS || t == topic)
            w->paused[t] = paused;
    }
    return true;
}

bool stored_pause(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    return set_paused(w, n, true);
}

bool stored_resume(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    return set_paused(w, n, false);
}

bool stored_policy(struct stored_world *w, uint32_t n, uint64_t value)
{
    int t = (int)(n % STORED_TOPICS);
    due_retry to = { .kind = value & 3 ? DUE_RETRY_FIXED : DUE_RETRY_INHERIT };

    if (!(w->pattern & STORED_TOPICAL))
        return true;
    if (to.kind == DUE_RETRY_FIXED) {
        to.attempts_max = (uint32_t)(value >> 2 & 3); /* 0: without end */
        to.delay_ns = (int64_t)(value >> 4 & 15);
    }
    if (due_topic_retry(w->q, w->topic[t], &to) != 0)
        return stored_wrong(w, "no policy", NULL);
    w->policy[t] = to;
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        if (j->topic == t && !j->dead && (!leased(w, j) || restless(j)))
            j->mortal |= spent(w, j); /* it may be buried instead of handed out */
    }
    return true;
}
