/* stored_verbs_dead.c - the steps of stored_model.c on dead jobs. */
#include "model/stored_known.h"

/* A dead job waits again, or may. */
static void kicked(struct stored_world *w, struct stored_job *j, bool sure)
{
    bool only = sure && !restless(j);

    never_handed(j, only);
    run_over(j, only);
    add_limit(j, (struct stored_limit){ .ttl = 0 }, only);
    j->buried = 0;
    add_nacked(j, w->now, only);
    j->arrival = w->arrivals; /* of many in any order */
    j->plain = only;
    j->mortal = !only;
    j->doomed = false;
    j->dead = false;
    if (only)
        j->cause = 0;
    j->shaky |= !sure;
}

bool stored_kick(struct stored_world *w, uint32_t n, uint64_t value)
{
    struct stored_job *j = some_job(w, n);

    (void)value;
    if (j == NULL)
        return true;
    int rc = due_kick(w->q, j->id);
    stored_note_refused(w);
    if (rc == DUE_ENOENT)
        return !j->in || !j->dead || restless(j) || stored_wrong(w, "not dead though it died", j);
    if (rc == DUE_EBUSY) /* a call that failed, or does not wait, is changing it still */
        return restless(j) || asynchronous(w) || stored_wrong(w, "changed by nobody", j);
    if (refused(rc))
        return true;
    if (rc != 0 && rc != DUE_EINDOUBT)
        return stored_wrong(w, "a kick answers otherwise", j);
    if ((!j->in && !j->unsure) || (!j->dead && !j->mortal))
        return stored_wrong(w, "kicked though it is not dead", j);
    kicked(w, j, rc == 0 && !asynchronous(w));
    w->arrivals++;
    return true;
}

/* Those of a topic that are dead for sure, and those that may be. */
static void count_dead(struct stored_world *w, int topic, uint64_t *least, uint64_t *most)
{
    *least = *most = 0;
    for (int i = 0; i < w->made; i++) {
        const struct stored_job *j = &w->job[i];

        if ((topic != DUE_ALL_TOPICS && j->topic != topic) || (!j->in && !j->unsure))
            continue;
        *least += j->in && j->dead && !restless(j);
        *most += j->dead || j->mortal;
    }
}

static bool end_all(struct stored_world *w, uint32_t n, bool kick)
{
    int topic = n % 3 == 0 ? DUE_ALL_TOPICS : (int)(n % STORED_TOPICS);
    int number = topic == DUE_ALL_TOPICS ? topic : w->topic[topic];
    uint64_t least;
    uint64_t most;
    uint64_t ended = 0;

    stored_note_refused(w);
    count_dead(w, topic, &least, &most);
    int rc = kick ? due_kick_all(w->q, number, &ended) : due_clear_dead(w->q, number, &ended);
    stored_note_refused(w);
    if (rc != 0 && rc != DUE_EINDOUBT && !refused(rc))
        return stored_wrong(w, "dead jobs answer otherwise", NULL);
    if (ended > most || (rc == 0 && ended < least))
        return stored_wrong(w, "another number was dead", NULL);
    for (int i = 0; i < w->made; i++) {
        struct stored_job *j = &w->job[i];

        if ((topic != DUE_ALL_TOPICS && j->topic != topic) || (!j->in && !j->unsure) ||
            (!j->dead && !j->mortal))
            continue;
        if (kick)
            kicked(w, j, rc == 0 && !asynchronous(w));
        else if (rc == 0 && !restless(j))
            gone(w, j, true, false);
        else
            j->unsure = j->shaky = true;
    }
    w->arrivals++;
    return true;
}

bool stored_kick_all(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    return end_all(w, n, true);
}

bool stored_clear_dead(struct stored_world *w, uint32_t n, uint64_t value)
{
    (void)value;
    return end_all(w, n, false);
}
