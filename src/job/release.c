/* release.c - what the holder of a job sees of it, and the end of that: its bytes, its lease record
 * and its place are free when nobody has them any more.
 *
 * Edges      described elsewhere: J1 slab.h, R1 R2 lease.c
 */
#include "job/release.h"

#include "os/atomic.h"
#include "queue/extras.h"
#include "queue/id.h"
#include "queue/job_records.h"
#include "queue/queue.h"

/* By the clock that its deadline is on. */
static int64_t late(const struct due_queue *q, uint32_t number, int64_t deadline_ns, int64_t now_ns)
{
    if (q->shared && now_ns != 0)
        return q->journal->late(q, number);
    return now_ns > deadline_ns ? now_ns - deadline_ns : 0;
}

bool due__job_fill(struct due_queue *q, uint32_t number, int64_t deadline_ns, int64_t now_ns,
                   due_job *job)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_relaxed(&j->word); /* J1: the caller's own */
    struct due__facts f = due__facts_load(j);

    if (!q->stored && !(w & DUE__HELD) && !(f.payload & DUE__EXTRAS)) {
        due__job_fill_plain(q, number, deadline_ns, now_ns, job);
        return false;
    }
    due__tsan_acquire(j);
    const struct due__lease *l = (w & DUE__HELD) ? due__lease_at(q, number) : NULL;
    const struct due__extras *extras = (f.payload & DUE__EXTRAS) ? due__extras_at(j) : NULL;

    *job = (due_job){
        .id = due__id(q, number, due__word_generation(w)),
        .data = due__job_bytes(j, f),
        .len = f.len,
        .ptr = due__job_pointer(j, f),
        .deadline_ns = l == NULL ? deadline_ns : due__load_relaxed(&l->deadline_ns), /* R1 */
        .attempts = l == NULL ? 0 : due__load_relaxed(&l->attempts),                 /* R1 */
        .failures = l == NULL ? 0 : due__load_relaxed(&l->failures),                 /* R1 */
        .lateness_ns = late(q, number, deadline_ns, now_ns),
        .topic = f.topic,
        .priority = f.priority,
        .queue = q,
        .place = due__handle(number, due__word_generation(w)),
    };
    if (extras != NULL && extras->headers_len > 0) {
        job->headers = extras->bytes;
        job->headers_len = extras->headers_len;
    }
    return extras != NULL && extras->every_ns > 0;
}

bool due__lease_let_go(struct due_queue *q, uint32_t number)
{
    if (!due__holders_leave(due__lease_at(q, number), 1))
        return false;
    due__job_release(&q->slab, due__job_at(&q->slab, number));
    return true;
}

/* Apart, so that the others need not save what they have at hand for that call. */
bool due__job_unhold_passed(struct due_queue *q, uint32_t number, uint64_t w)
{
    due__limiter_leave(q, number);
    return due__job_unhold(q, number, w & ~DUE__PASSED);
}

bool due__place_linked(struct due_queue *q, uint32_t number)
{
    struct due__job *j = due__job_at(&q->slab, number);
    uint64_t w = due__load_acquire(&j->word); /* J1 */

    while (w & DUE__LINKED) {
        if (due__word_end_linked(&j->word, &w)) /* J1 */
            return true;
    }
    return false;
}
