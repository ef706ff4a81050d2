/* memory_settings.c - what holds back the topics of a memory disk, whoever has its jobs. */
#include <stdlib.h>
#include <string.h>

#include "lab/memory_disk.h"

struct memory_setting memory_setting_of(const struct memory_disk *disk, size_t topic)
{
    return topic < disk->share.n_settings ? disk->share.settings[topic]
                                          : (struct memory_setting){ .paused = false };
}

void memory_settings_change(struct memory_disk *disk, const due_change *change)
{
    struct memory_share *share = &disk->share;
    size_t topic = memory_jobs_topic(&disk->jobs, change->record.topic);

    if (topic >= share->n_settings) {
        share->settings =
            memory_need(realloc(share->settings, (topic + 1) * sizeof *share->settings));
        memset(share->settings + share->n_settings, 0,
               (topic + 1 - share->n_settings) * sizeof *share->settings);
        share->n_settings = topic + 1;
    }
    if (change->paused >= 0)
        share->settings[topic].paused = change->paused != 0;
    if (change->held_max >= 0)
        share->settings[topic].held_max = change->held_max;
}

struct memory_setting *memory_settings_copy(const struct memory_disk *disk, size_t *n)
{
    const struct memory_share *share = &disk->share;
    struct memory_setting *copy = memory_need(calloc(share->n_settings + 1, sizeof *copy));

    *n = share->n_settings;
    if (*n > 0)
        memcpy(copy, share->settings, *n * sizeof *copy);
    return copy;
}

void memory_settings_back(struct memory_disk *disk, struct memory_setting *settings, size_t n)
{
    free(disk->share.settings);
    disk->share.settings = settings;
    disk->share.n_settings = n;
}

bool memory_disk_setting(struct memory_disk *disk, const char *topic, int64_t *held_max)
{
    pthread_mutex_lock(&disk->lock);
    struct memory_setting s = memory_setting_of(disk, memory_jobs_topic(&disk->jobs, topic));
    pthread_mutex_unlock(&disk->lock);
    if (held_max != NULL)
        *held_max = s.held_max;
    return s.paused;
}
