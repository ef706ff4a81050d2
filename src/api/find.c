/* find.c - due_find(), due_remaining(), due_list(): what is known of a waiting job. */
#include <limits.h>

#include "api/pages.h"
#include "job/claim.h"
#include "job/lease.h"
#include "queue/closing.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "queue/stored.h"

static int find(struct due_queue *q, due_id id, due_info *info)
{
    struct due__deadline by = { 0 };
    uint32_t number;
    uint32_t generation;
    due_info found;

    int rc = due__id_find(q, id, &by, &number, &generation);
    if (rc == 0)
        rc = due__info(q, number, &generation, &by, &found);
    if (due__is_elsewhere(q, rc)) {
        struct due__ask ask = { .kind = DUE__ASK_FIND, .id = id, .info = &found };

        rc = q->journal->ask(q, &ask, &by);
    }
    if (rc != 0)
        return rc;
    found.ready = found.deadline_ns <= due__jobs_now(q);
    *info = found;
    return 0;
}

int due_find(due_queue *q, due_id id, due_info *info)
{
    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    int rc = due__named(q, find(q, id, info));
    due__inside_end(q, inside);
    return rc;
}

int due_remaining(due_queue *q, due_id id, int64_t *ns)
{
    due_info info;

    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    int rc = due__named(q, find(q, id, &info));
    if (rc == 0)
        *ns = info.deadline_ns - due__jobs_now(q);
    due__inside_end(q, inside);
    return rc;
}

int due_list(due_queue *q, uint64_t *cursor, due_info *infos, size_t max)
{
    struct due__deadline by = { 0 };
    size_t got = 0;

    if (due__forked(q))
        return DUE_EFORK;
    if (max == 0 || max > INT_MAX)
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    if (due__in_store(q)) {
        int shown = due__pages_list(q, cursor, infos, max);

        due__inside_end(q, inside);
        return shown;
    }
    uint64_t at = *cursor;
    if (at == 0)
        due__lapse_all(q, &by);
    int64_t now = due__clock_now(&q->clock);
    for (; got < max && at < due__slab_end(&q->slab); at++) {
        if (due__info(q, (uint32_t)at, NULL, &by, &infos[got]) != 0)
            continue;
        infos[got].ready = infos[got].deadline_ns <= now;
        got++;
    }
    due__inside_end(q, inside);
    *cursor = at;
    return (int)got;
}
