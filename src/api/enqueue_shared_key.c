/* enqueue_shared_key.c - enqueues with a unique key in a shared queue, and calls that name a job by
 * its key.
 *
 * The job is put in as any other, and the store refuses it if another has its key.  Whose that is
 * is asked then; if it is nobody's by that time the job is put in once more.  So who puts in a job
 * whose key is free is one exchange away from it, and of several at once exactly one has the key.
 *
 *   who has the key            DUE_KEY_REFUSE   the others
 *   kept, its job is gone      DUE_EEXIST       DUE_EEXIST
 *   waits in the store         DUE_EEXIST       that job is changed, if it is still as it was
 *   dead                       DUE_EEXIST       the same, and waits again
 *   claimed, here              DUE_EEXIST       if nobody has been given it: back into the store
 *   here, and on its way out   DUE_EEXIST       wait for the store, and look again
 *   claimed                    DUE_EEXIST       the new job takes the key over, from that one only
 *
 * Nobody waits for anybody but the store: whoever has to look again, another has got on.
 *
 * Edges      described elsewhere: J1 slab.h
 */
#include "api/dequeue.h"
#include "api/enqueue.h"
#include "api/reschedule.h"
#include "job/amend.h"
#include "job/cancel.h"
#include "job/key_table.h"
#include "os/atomic.h"
#include "queue/extras.h"
#include "queue/queue.h"
#include "queue/stored.h"

/* Whose the key is, in @ask.  DUE_ENOENT: nobody's. */
static int whose(struct due_queue *q, const void *key, size_t len, struct due__deadline *by,
                 struct due__ask *ask)
{
    *ask = (struct due__ask){ .kind = DUE__ASK_KEY, .key = key, .key_len = len };
    return q->journal->ask(q, ask, by);
}

/* The job that had the key when it was looked at is held: the new one takes the key over. */
static int take_over(struct due_queue *q, const due_spec *s, due_id from, int64_t timeout_ns,
                     struct due__deadline *by, due_id *id, bool *inside)
{
    struct due__key_taking taking = { .more = *s->more, .from = from };
    due_spec spec = *s;

    taking.more.on_key = DUE__KEY_TAKE_OVER;
    spec.more = &taking.more;
    return due__enqueue_new(q, &spec, timeout_ns, by, id, inside);
}

/* A job that was claimed here goes back into the store.  DUE_ENOENT: it has; DUE__AGAIN: something
 * else was becoming of it; DUE_EBUSY: somebody has been given it. */
static int give_back(struct due_queue *q, uint32_t number, uint32_t generation,
                     struct due__deadline *by)
{
    int rc = due__release_ahead(q, number, generation, by);

    if (rc != DUE_EBUSY)
        return rc;
    uint64_t w = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */
    bool same = due__word_generation(w) == generation;
    if (same && (due__word_state(w) == DUE__LEASED || due__word_state(w) == DUE__DEFERRED))
        return rc;
    rc = q->journal->flush(q, by);
    return rc == 0 ? DUE__AGAIN : rc;
}

/* That job becomes what the enqueue says.  DUE_ENOENT: look again; DUE_EBUSY: it is held. */
static int change(struct due_queue *q, const due_spec *s, due_id id, struct due__deadline *by)
{
    struct due__ask ask = { .kind = DUE__ASK_REKEY,
                            .id = id,
                            .spec = s,
                            .key = s->more->key,
                            .key_len = s->more->key_len };
    uint32_t number;
    uint32_t generation;

    int rc = due__id_find(q, id, by, &number, &generation);
    if (rc == 0)
        rc = give_back(q, number, generation, by);
    if (rc == DUE__AGAIN)
        return DUE_ENOENT;
    if (!due__is_elsewhere(q, rc))
        return rc;
    ask.at_ns = due__timed(s) ? s->at_ns : due__time_add(due__jobs_now(q), s->delay_ns);
    rc = q->journal->ask(q, &ask, by);
    return due__came_meanwhile(q, id, rc) ? DUE_ENOENT : rc;
}

int due__enqueue_shared_key(struct due_queue *q, const due_spec *s, int64_t timeout_ns,
                            struct due__deadline *by, due_id *id, bool *inside)
{
    int rc = due__enqueue_new(q, s, timeout_ns, by, id, inside);
    struct due__ask ask;

    while (rc == DUE_EEXIST) {
        rc = whose(q, s->more->key, s->more->key_len, by, &ask);
        if (rc == DUE_ENOENT) { /* nobody's by now */
            rc = due__enqueue_new(q, s, timeout_ns, by, id, inside);
            continue;
        }
        if (rc != 0)
            return rc;
        bool taken = ask.kept || s->more->on_key == DUE_KEY_REFUSE;
        rc = taken ? DUE_EEXIST : change(q, s, ask.id, by);
        if ((taken || rc == 0 || rc == DUE_EINDOUBT) && id != NULL)
            *id = ask.id;
        if (taken || rc == 0)
            return taken ? rc : 1;
        if (rc == DUE_EBUSY)
            rc = take_over(q, s, ask.id, timeout_ns, by, id, inside);
        else if (rc == DUE_ENOENT)
            rc = DUE_EEXIST;
    }
    return rc;
}

/* ---- By key ---- */

int due__shared_id_of_key(struct due_queue *q, const void *key, size_t len,
                          struct due__deadline *by, due_id *id)
{
    struct due__ask ask;

    if (len == 0 || len > DUE_KEY_MAX)
        return DUE_EINVAL;
    int rc = whose(q, key, len, by, &ask);
    if (rc != 0 || ask.kept)
        return rc != 0 ? rc : DUE_ENOENT;
    *id = ask.id;
    return 0;
}

/* It has the key, and was not there to be cancelled: can it be read? */
static int readable(struct due_queue *q, due_id id, struct due__deadline *by)
{
    struct due__ask ask = { .kind = DUE__ASK_READ, .id = id };
    int rc = q->journal->ask(q, &ask, by);

    return rc == DUE_ENOENT ? 0 : rc;
}

int due__shared_cancel_key(struct due_queue *q, const void *key, size_t len, due_job *job,
                           struct due__deadline *by)
{
    due_id id;
    int rc;

    do { /* it went meanwhile, or lost the key: is there another? */
        rc = due__shared_id_of_key(q, key, len, by, &id);
        if (rc != 0)
            return rc;
        rc = due__cancel_with_key(q, id, key, len, job, by);
        if (rc != DUE_ENOENT)
            return rc;
        rc = readable(q, id, by);
    } while (rc == 0);
    return rc;
}
