/* redis_share_reference.h - jobs and topics of a shared queue as redis_share_model has them: what
 * may be claimed, and what comes first.
 */
#ifndef REDIS_SHARE_REFERENCE_H
#define REDIS_SHARE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lab/model.h"
#include "lab/redis/share_lab.h"

#define JOBS 512

enum job_state { GONE, WAITS, OUT }; /* GONE: or dead */

struct job {
    char id[SHARE_ID + 1];
    enum job_state state;
    int topic;     /* 1 or 2 */
    int64_t score; /* when it is due; OUT: the end of its lease */
    int64_t since; /* no earlier than this it could be claimed */
    bool entry;    /* it has one, of a job with attempts */
    int group;     /* of its topic; 0: none */
    bool passed;   /* it has the pass of that */
};

static struct job job[JOBS];
static int n_jobs;
static struct {
    bool paused;
    int limit; /* 0: none */
} topics[3];
static bool ranks; /* the order is by priority: the first byte of ids, the lowest first */
static int64_t now;
static uint64_t random_state;

static uint64_t below(uint64_t n)
{
    return model_below(&random_state, n);
}

static bool one_group(const struct job *a, const struct job *b)
{
    return a != b && a->group != 0 && a->group == b->group && a->topic == b->topic;
}

static bool comes_before(const struct job *a, const struct job *b)
{
    return a->score < b->score || (a->score == b->score && strcmp(a->id, b->id) < 0);
}

/* Has another one of its group the pass, or stands in front? */
static bool kept_back(const struct job *j)
{
    for (int i = 0; i < n_jobs; i++) {
        const struct job *other = &job[i];
        if (one_group(other, j) &&
            (other->passed || (!j->passed && other->state == WAITS && comes_before(other, j))))
            return true;
    }
    return false;
}

/* The others of its group may be claimed from now on. */
static void pass_back(struct job *j)
{
    for (int i = 0; i < n_jobs && j->passed; i++) {
        if (one_group(&job[i], j) && job[i].since < now)
            job[i].since = now;
    }
    j->passed = false;
}

/* So may all of this topic, if they may at all. */
static void reopen(int topic)
{
    for (int i = 0; i < n_jobs; i++) {
        if (job[i].topic == topic && job[i].since < now)
            job[i].since = now;
    }
}

static bool has_room(int topic)
{
    int out = 0;

    for (int i = 0; i < n_jobs; i++)
        out += job[i].topic == topic && job[i].state == OUT;
    return topics[topic].limit == 0 || out < topics[topic].limit;
}

static bool may_be_claimed(const struct job *j)
{
    return j->state != GONE && j->score <= now && !topics[j->topic].paused && !kept_back(j) &&
           (j->state == OUT || has_room(j->topic));
}

/* By time, what another has let pass comes first; by priority, each in its place. */
static bool is_first(const struct job *a, const struct job *b)
{
    if (ranks && a->id[0] != b->id[0])
        return a->id[0] < b->id[0];
    if (!ranks && a->state != b->state)
        return a->state == OUT;
    return comes_before(a, b);
}

/* The job that a claim of the topic gets next, or -1. */
static int next_of(int topic)
{
    int best = -1;

    for (int i = 0; i < n_jobs; i++) {
        const struct job *j = &job[i];
        if (j->topic == topic && may_be_claimed(j) && (best < 0 || is_first(j, &job[best])))
            best = i;
    }
    return best;
}

#endif
