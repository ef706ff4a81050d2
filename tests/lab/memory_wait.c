/* memory_wait.c - who of those that share a memory disk waits, and who is rung.
 *
 * The rules are those of persist/redis/scripts/wake.lua: a head is covered when two will look by
 * themselves, one at the head, one DUE_RING_NS after it at the latest, or when somebody was rung
 * less than DUE_RING_NS ago.  Whoever should have come and did not does not count after that.
 */
#include <stdlib.h>
#include <string.h>

#include "lab/memory_disk.h"

static void strike(struct memory_share *share, size_t at)
{
    share->n_waits--;
    memmove(&share->waits[at], &share->waits[at + 1], (share->n_waits - at) * sizeof *share->waits);
}

void memory_wait_remove(struct memory_disk *disk, const struct memory_process *who)
{
    struct memory_share *share = &disk->share;

    for (size_t i = share->n_waits; i-- > 0;)
        if (share->waits[i].who == who)
            strike(share, i);
}

static bool counts(const struct memory_wait *w, int64_t now_ns)
{
    return w->kind == MEMORY_SLEEPS || w->at_ns > now_ns - DUE_RING_NS;
}

bool memory_wait_others(const struct memory_disk *disk, size_t topic, int64_t now_ns)
{
    for (size_t i = 0; i < disk->share.n_waits; i++) {
        const struct memory_wait *w = &disk->share.waits[i];

        if (w->topic == topic && w->kind != MEMORY_RUNG && counts(w, now_ns))
            return true;
    }
    return false;
}

/* How many alarms up to that time can be counted on, and the first of them. */
static size_t alarms(const struct memory_share *share, size_t topic, int64_t until_ns,
                     int64_t now_ns, int64_t *first_ns)
{
    size_t n = 0;

    *first_ns = DUE_FOREVER;
    for (size_t i = 0; i < share->n_waits; i++) {
        const struct memory_wait *w = &share->waits[i];

        if (w->topic != topic || w->kind != MEMORY_ALARM || !counts(w, now_ns) ||
            w->at_ns > until_ns)
            continue;
        n++;
        if (w->at_ns < *first_ns)
            *first_ns = w->at_ns;
    }
    return n;
}

static int64_t grace_after(int64_t ns)
{
    return ns > DUE_FOREVER - DUE_RING_NS ? DUE_FOREVER : ns + DUE_RING_NS;
}

int64_t memory_wait_enter(struct memory_disk *disk, struct memory_process *who, size_t topic,
                          int64_t head_ns, int64_t now_ns)
{
    struct memory_share *share = &disk->share;
    struct memory_wait wait = { who, topic, MEMORY_SLEEPS, now_ns };
    int64_t first_ns;
    size_t set = alarms(share, topic, grace_after(head_ns), now_ns, &first_ns);

    if (head_ns != DUE_FOREVER && (set == 0 || first_ns > head_ns)) {
        wait.kind = MEMORY_ALARM; /* it leads */
        wait.at_ns = head_ns;
    } else if (head_ns != DUE_FOREVER && set == 1) {
        wait.kind = MEMORY_ALARM; /* it comes if who leads does not */
        wait.at_ns = grace_after(head_ns);
    }
    if (share->n_waits == share->waits_room) {
        share->waits_room = share->waits_room == 0 ? 16 : 2 * share->waits_room;
        share->waits = memory_need(realloc(share->waits, share->waits_room * sizeof *share->waits));
    }
    share->waits[share->n_waits++] = wait;
    return wait.kind == MEMORY_ALARM ? wait.at_ns : 0;
}

/* The one who sleeps longest, else the one with the earliest alarm behind @after_ns; SIZE_MAX:
 * nobody. */
static size_t whom_to_ring(const struct memory_share *share, size_t topic, int64_t after_ns)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < share->n_waits; i++) {
        const struct memory_wait *w = &share->waits[i];

        if (w->topic != topic || w->kind == MEMORY_RUNG ||
            (w->kind == MEMORY_ALARM && w->at_ns <= after_ns))
            continue;
        if (best == SIZE_MAX ||
            (w->kind != share->waits[best].kind ? w->kind == MEMORY_SLEEPS
                                                : w->at_ns < share->waits[best].at_ns))
            best = i;
    }
    return best;
}

/* To come at once, or then (not 0): what was said before is as of now, if it has not been heard. */
static void say(const struct memory_disk *disk, struct memory_store *s, int64_t alarm_ns,
                int64_t now_ns)
{
    bool first = !s->rung && s->heard.alarm_ns == 0;

    s->rings++;
    if (s->swallows)
        return;
    s->rung |= alarm_ns == 0;
    if (first || (alarm_ns > 0 && alarm_ns < s->heard.alarm_ns))
        s->heard.alarm_ns = alarm_ns;
    s->heard.stamp = disk->share.stamp;
    s->heard.now_ns = now_ns;
}

bool memory_ring(struct memory_disk *disk, struct memory_process *who, int64_t alarm_ns,
                 int64_t now_ns)
{
    struct memory_store *s = who->store;

    if (s == NULL || s->deaf)
        return false;
    say(disk, s, alarm_ns, now_ns);
    memory_wake_all(disk);
    return true;
}

/* Who does not hear it is struck off, and the next one is rung; or told to come by itself then. */
static bool ring(struct memory_disk *disk, size_t topic, int64_t after_ns, int64_t alarm_ns,
                 int64_t now_ns)
{
    struct memory_share *share = &disk->share;

    for (int tries = 0; tries < 4; tries++) {
        size_t at = whom_to_ring(share, topic, after_ns);

        if (at == SIZE_MAX)
            return false;
        struct memory_wait *w = &share->waits[at];
        if (memory_ring(disk, w->who, alarm_ns, now_ns)) {
            w->kind = alarm_ns > 0 ? MEMORY_ALARM : MEMORY_RUNG;
            w->at_ns = alarm_ns > 0 ? alarm_ns : now_ns;
            return true;
        }
        strike(share, at);
    }
    return false;
}

/* One is to come for a head that is not due yet, and one after it. */
static void appoint(struct memory_disk *disk, size_t topic, int64_t head_ns, int64_t now_ns)
{
    const struct memory_share *share = &disk->share;
    int64_t after_ns = grace_after(head_ns);
    int64_t first_ns;
    size_t set = alarms(share, topic, after_ns, now_ns, &first_ns);

    if (set == 0 || first_ns > head_ns) {
        (void)ring(disk, topic, head_ns, head_ns, now_ns);
        set = alarms(share, topic, after_ns, now_ns, &first_ns);
    }
    if (set == 1)
        (void)ring(disk, topic, after_ns, after_ns, now_ns);
}

static uint32_t cover(struct memory_disk *disk, size_t topic, int64_t now_ns, size_t most)
{
    const struct memory_share *share = &disk->share;
    int64_t head_ns = memory_share_head(disk, topic);
    size_t under_way = 0;
    uint32_t rang = 0;

    if (head_ns == DUE_FOREVER)
        return 0;
    for (size_t i = 0; i < share->n_waits; i++) {
        const struct memory_wait *w = &share->waits[i];

        under_way += w->topic == topic && w->kind == MEMORY_RUNG && counts(w, now_ns);
    }
    if (under_way >= most)
        return 0;
    if (head_ns > now_ns) {
        appoint(disk, topic, head_ns, now_ns);
        return 0;
    }
    while (under_way++ < most)
        rang += ring(disk, topic, now_ns, 0, now_ns);
    return rang;
}

uint32_t memory_wait_cover(struct memory_disk *disk, int64_t now_ns, size_t most)
{
    uint32_t rang = cover(disk, MEMORY_ANY, now_ns, most);

    for (size_t topic = 0; topic < disk->jobs.n_topics; topic++)
        if (disk->share.n_waits > 0)
            rang += cover(disk, topic, now_ns, most);
    return rang;
}
