/* memory_share_groups.c - the groups of a memory disk whose jobs many stores share.
 *
 * Which job has its group's pass stands in the job, so what is taken back takes that back too.  The
 * list of those that have one is only where to look: an entry counts if its job says so.
 */
#include <stdlib.h>
#include <string.h>

#include "lab/memory_disk.h"

void memory_share_note_pass(struct memory_disk *disk, const struct memory_job *job)
{
    struct memory_share *share = &disk->share;

    if (!job->passed)
        return;
    for (size_t i = 0; i < share->n_passes; i++)
        if (due_id_equal(share->passes[i], job->place.id))
            return;
    share->passes =
        memory_need(realloc(share->passes, (share->n_passes + 1) * sizeof *share->passes));
    share->passes[share->n_passes++] = job->place.id;
}

bool memory_share_same_group(const struct memory_job *a, const struct memory_job *b)
{
    return a->topic == b->topic && a->record.group_len == b->record.group_len &&
           memcmp(a->record.group, b->record.group, a->record.group_len) == 0;
}

/* Has another one of its group the pass? */
static bool kept_back(struct memory_disk *disk, const struct memory_job *job)
{
    struct memory_share *share = &disk->share;

    for (size_t i = 0; job->record.group_len > 0 && i < share->n_passes;) {
        const struct memory_job *other = memory_disk_job(disk, share->passes[i]);

        if (other == NULL || !other->passed)
            share->passes[i] = share->passes[--share->n_passes];
        else if (other != job && memory_share_same_group(other, job))
            return true;
        else
            i++;
    }
    return false;
}

struct memory_job *memory_share_waiting(struct memory_disk *disk, size_t topic,
                                        const struct memory_place *behind)
{
    struct memory_place at = { .topic = topic, .until_ns = INT64_MIN };
    struct memory_job *job = memory_jobs_behind(&disk->jobs, behind != NULL ? behind : &at);

    while (job != NULL && job->place.topic == topic && kept_back(disk, job))
        job = memory_jobs_behind(&disk->jobs, &job->place);
    return job != NULL && job->place.topic == topic ? job : NULL;
}

void memory_share_fold_passes(struct memory_disk *disk)
{
    struct memory_share *share = &disk->share;

    for (size_t i = 0; i < share->n_passes; i++) {
        struct memory_job *job = memory_disk_job(disk, share->passes[i]);

        if (job != NULL)
            job->passed = false;
    }
    share->n_passes = 0;
}
