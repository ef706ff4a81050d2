/* memory_share_rank.c - the order by priority of a memory disk whose jobs many stores share.
 *
 * Nothing is kept for it: whoever claims sorts what is due.  Of a group the first in time comes
 * first, in this order too.
 */
#include <stdlib.h>
#include <string.h>

#include "lab/memory_disk.h"

/* Nobody shares it, and it has no jobs. */
static bool is_empty(const struct memory_disk *disk)
{
    return disk->share.processes == NULL && disk->jobs.count == 0 && disk->share.leased.count == 0;
}

int memory_share_order(struct memory_disk *disk, const struct due_store_open *how, due_error *error)
{
    struct memory_share *share = &disk->share;
    bool asks = how->by_priority != 0;

    if (share->made && asks && !share->by_rank && !is_empty(disk)) {
        if (error != NULL)
            *error =
                (due_error){ .text =
                                 "it is shared in the order of deadlines, or has jobs that were",
                             .hint = "open it owned, and close it, and then share it so" };
        return DUE_EINVAL;
    }
    share->by_rank |= asks;
    share->made = true;
    return 0;
}

/* Jobs that are gathered, and room for more. */
struct gathered {
    struct memory_job **jobs;
    size_t n;
    size_t room;
};

static void gather(struct gathered *g, struct memory_job *job)
{
    if (g->n == g->room) {
        g->room = g->room == 0 ? 64 : 2 * g->room;
        g->jobs = memory_need(realloc(g->jobs, g->room * sizeof(struct memory_job *)));
    }
    g->jobs[g->n++] = job;
}

static bool is_due(const struct memory_job *job, size_t topic, int64_t now_ns)
{
    return job != NULL && job->place.topic == topic && job->place.until_ns <= now_ns;
}

/* Was one of its group seen before it? */
static bool is_behind(struct gathered *fronts, struct memory_job *job)
{
    if (job->record.group_len == 0)
        return false;
    for (size_t i = 0; i < fronts->n; i++)
        if (memory_share_same_group(fronts->jobs[i], job))
            return true;
    gather(fronts, job);
    return false;
}

static int by_rank(const void *a, const void *b)
{
    const struct memory_place *x = &(*(struct memory_job *const *)a)->place;
    const struct memory_place *y = &(*(struct memory_job *const *)b)->place;

    if (x->id.byte[0] != y->id.byte[0])
        return x->id.byte[0] < y->id.byte[0] ? -1 : 1;
    return memory_place_compare(x, y);
}

struct memory_job **memory_share_ranked(struct memory_disk *disk, size_t topic, int64_t now_ns,
                                        size_t *n)
{
    struct memory_place at = { .topic = topic, .until_ns = INT64_MIN };
    struct gathered due = { .jobs = NULL };
    struct gathered fronts = { .jobs = NULL };
    struct memory_job *job = memory_jobs_behind(&disk->share.leased, &at);

    for (; is_due(job, topic, now_ns); job = memory_jobs_behind(&disk->share.leased, &job->place))
        gather(&due, job);
    job = memory_share_waiting(disk, topic, NULL);
    for (; is_due(job, topic, now_ns); job = memory_share_waiting(disk, topic, &job->place))
        if (!is_behind(&fronts, job))
            gather(&due, job);
    free(fronts.jobs);
    if (due.n > 0)
        qsort(due.jobs, due.n, sizeof(struct memory_job *), by_rank);
    *n = due.n;
    return due.jobs;
}
