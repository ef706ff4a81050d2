/* enqueue_shared_key.c - enqueues with a unique key in a shared queue, and calls that name a job by
 * its key.
 *
 * The job is put in as any other, and the store refuses it if another has its key.  Whose that is
 * is asked then; if it is nobody's by that time the job is put in once more.  So who puts in a job
 * whose key is free is one exchange away from it, and of several at once exactly one has the key.
 * Nobody waits for anybody: whoever looks again, another has got on.
 */
#include "api/dequeue.h"
#include "api/enqueue.h"
#include "job/cancel.h"
#include "queue/inside.h"
#include "queue/queue.h"

/* Whose the key is, in @ask.  DUE_ENOENT: nobody's. */
static int whose(struct due_queue *q, const void *key, size_t len, struct due__deadline *by,
                 struct due__ask *ask)
{
    *ask = (struct due__ask){ .kind = DUE__ASK_KEY, .key = key, .key_len = len };
    return q->journal->ask(q, ask, by);
}

int due__enqueue_shared_key(struct due_queue *q, const due_spec *s, int64_t timeout_ns,
                            struct due__deadline *by, due_id *id, bool *inside)
{
    struct due__ask ask;

    for (;;) {
        int rc = due__enqueue_new(q, s, timeout_ns, by, id, inside);

        if (rc != DUE_EEXIST)
            return rc;
        rc = whose(q, s->more->key, s->more->key_len, by, &ask);
        if (rc == 0 && id != NULL)
            *id = ask.id;
        if (rc != DUE_ENOENT)
            return rc == 0 ? DUE_EEXIST : rc;
    }
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

int due__shared_cancel_key(struct due_queue *q, const void *key, size_t len, due_job *job,
                           struct due__deadline *by)
{
    due_id id;

    for (;;) {
        int rc = due__shared_id_of_key(q, key, len, by, &id);

        if (rc == 0)
            rc = due__cancel_with_key(q, id, key, len, job, by);
        else
            return rc;
        if (rc != DUE_ENOENT) /* else it went meanwhile, or lost the key: is there another? */
            return rc;
    }
}
