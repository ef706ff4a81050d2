/* enqueue_room.c - enqueues into a queue that can be full.
 *
 * A queue of one process counts its jobs, so room is had before a job is filled in.  A shared one
 * is counted by its store, which refuses what has no room.
 */
#include "api/enqueue.h"
#include "queue/capacity.h"
#include "queue/queue.h"
#include "store/share.h"

static int enqueue_shared(struct due_queue *q, const due_spec *specs, size_t n, int64_t timeout_ns,
                          struct due__deadline *by, due_id *ids, struct due__put *put, bool *inside)
{
    int rc = due__enqueue_any(q, specs, n, by, ids, put);

    while (rc == DUE_EAGAIN && timeout_ns != 0) {
        rc = due__sharing_await_room(q, timeout_ns, by, inside);
        if (rc != 1)
            return rc;
        rc = due__enqueue_any(q, specs, n, by, ids, put);
        due__sharing_came(q, rc > 0 || rc == DUE_EAGAIN);
    }
    return rc;
}

int due__enqueue_room(struct due_queue *q, const due_spec *specs, size_t n, int64_t timeout_ns,
                      struct due__deadline *by, due_id *ids, struct due__put *put, bool *inside)
{
    if (q->shared)
        return enqueue_shared(q, specs, n, timeout_ns, by, ids, put, inside);
    size_t most = n < DUE__STORED_AT_ONCE ? n : DUE__STORED_AT_ONCE;
    int room = due__capacity_take(q, most, timeout_ns, inside);
    if (room < 0)
        return room;
    int rc = due__enqueue_any(q, specs, (size_t)room, by, ids, put);
    if (put->room < (size_t)room)
        due__capacity_give(q, (size_t)room - put->room);
    return rc;
}

__attribute__((noinline)) int due__enqueue_new(struct due_queue *q, const due_spec *spec,
                                               int64_t timeout_ns, struct due__deadline *by,
                                               due_id *id, bool *inside)
{
    struct due__put put;

    return !q->shared && q->capacity == 0
               ? due__enqueue_any(q, spec, 1, by, id, &put)
               : due__enqueue_room(q, spec, 1, timeout_ns, by, id, &put, inside);
}
