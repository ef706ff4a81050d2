/* memory_room.c - the capacity of a memory disk that many stores share, and who waits for room.
 *
 * The rules are those of persist/redis/scripts/room.lua: every job that is not dead takes room, as
 * many are rung as there is room for, and whoever was rung less than DUE_RING_NS ago will come.
 */
#include <stdlib.h>
#include <string.h>

#include "lab/memory_disk.h"

#define ALL 1000000 /* told to one who waits while there is no capacity any more */

void memory_room_set(struct memory_share *share, uint64_t capacity)
{
    if (capacity > 0)
        share->capacity = capacity < UINT64_MAX ? capacity : 0;
}

static int64_t room_left(const struct memory_disk *disk)
{
    struct memory_place dead = { .topic = MEMORY_DEAD, .until_ns = INT64_MIN };
    int64_t n = (int64_t)(disk->jobs.count + disk->share.leased.count);

    if (disk->share.capacity == 0)
        return ALL;
    for (struct memory_job *job; (job = memory_jobs_behind(&disk->jobs, &dead)) != NULL; n--)
        dead = job->place;
    return (int64_t)disk->share.capacity - n;
}

bool memory_room_any(const struct memory_disk *disk)
{
    return room_left(disk) > 0;
}

static struct memory_room *find(struct memory_share *share, const struct memory_process *who)
{
    for (size_t i = 0; i < share->n_room; i++)
        if (share->room[i].who == who)
            return &share->room[i];
    return NULL;
}

static void strike(struct memory_share *share, struct memory_room *at)
{
    size_t behind = (size_t)(&share->room[--share->n_room] - at);

    memmove(at, at + 1, behind * sizeof *at);
}

void memory_room_remove(struct memory_share *share, const struct memory_process *who)
{
    struct memory_room *at = find(share, who);

    if (at != NULL)
        strike(share, at);
}

void memory_room_came(struct memory_share *share, const struct memory_process *who)
{
    struct memory_room *at = find(share, who);

    if (at != NULL && at->rung)
        strike(share, at);
}

/* Who was rung and will come, but @who. */
static int64_t coming(const struct memory_share *share, const struct memory_process *who,
                      int64_t now_ns)
{
    int64_t n = 0;

    for (size_t i = 0; i < share->n_room; i++)
        n += share->room[i].who != who && share->room[i].rung &&
             share->room[i].at_ns > now_ns - DUE_RING_NS && share->room[i].at_ns <= now_ns;
    return n;
}

/* In front of the others, if it was rung and they were faster. */
static void enter(struct memory_share *share, struct memory_process *who, int64_t now_ns, bool lost)
{
    size_t at = lost ? 0 : share->n_room;

    share->room = memory_need(realloc(share->room, (share->n_room + 1) * sizeof *share->room));
    memmove(&share->room[at + 1], &share->room[at], (share->n_room - at) * sizeof *share->room);
    share->room[at] = (struct memory_room){ .who = who, .at_ns = now_ns };
    share->n_room++;
}

uint32_t memory_room_beat(struct memory_disk *disk, struct memory_process *who,
                          struct due_beat *beat, int64_t now_ns)
{
    struct memory_share *share = &disk->share;
    struct memory_room *at = find(share, who);
    int64_t room = room_left(disk);
    int64_t left = room - coming(share, who, now_ns);

    if (at != NULL && at->rung && left <= 0 && room > 0)
        left = 1; /* it is here, and those others are not */
    beat->capacity = share->capacity;
    beat->room = beat->waits_room && left > 0 ? (uint64_t)left : 0;
    /* One that was rung is on its way; one that sleeps keeps its place. */
    bool lost = at != NULL && at->rung;
    bool stays = at != NULL && beat->waits_room && at->rung == (left > 0);
    if (at != NULL && !stays)
        strike(share, at);
    if (beat->waits_room && left <= 0 && !stays)
        enter(share, who, now_ns, lost);
    return memory_room_cover(disk, who, now_ns);
}

/* If process @by rings itself, and is killed then, nobody would look whether it came: another one
 * is rung besides, and it does not count as coming. */
uint32_t memory_room_cover(struct memory_disk *disk, const struct memory_process *by,
                           int64_t now_ns)
{
    struct memory_share *share = &disk->share;
    int64_t wanted = share->n_room > 0 ? room_left(disk) - coming(share, NULL, now_ns) : 0;
    uint32_t rang = 0;

    for (size_t i = 0; i < share->n_room && wanted > 0;) {
        struct memory_room *at = &share->room[i];

        if (at->rung) {
            i++;
        } else if (memory_ring(disk, at->who, 0, now_ns)) {
            at->rung = true;
            at->at_ns = at->who == by ? now_ns - DUE_RING_NS : now_ns;
            rang++;
            wanted -= at->who != by;
            i++;
        } else {
            strike(share, at);
        }
    }
    return rang;
}
