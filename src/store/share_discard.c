/* share_discard.c - jobs of a shared queue that are dropped, and were never in memory here, are
 * shown to on_discard: what they were is kept until they have gone.
 *
 * Guards     K  the key (sender.c)      O  its owner's alone
 */
#include <pthread.h>
#include <string.h>

#include "queue/queue.h"
#include "store/share.h"

#define FASTER 4u /* so many times the dead jobs in each page: share_retain.c */

bool due__look_keep(struct due_queue *q, const due_record *r, int topic, struct due__last_look *l)
{
    *l = (struct due__last_look){ .job = { .id = r->id,
                                           .len = r->len,
                                           .deadline_ns = r->deadline_ns,
                                           .topic = topic,
                                           .priority = r->priority,
                                           .attempts = r->attempts,
                                           .failures = r->failures,
                                           .headers_len = r->headers_len },
                                  .size = r->headers_len + r->len };
    if (l->size == 0)
        return true;
    l->bytes = due__alloc_new(&q->alloc, l->size);
    if (l->bytes == NULL)
        return false;
    if (r->headers_len > 0) {
        memcpy(l->bytes, r->headers, r->headers_len);
        l->job.headers = l->bytes;
    }
    if (r->len > 0) {
        memcpy(l->bytes + r->headers_len, r->data, r->len);
        l->job.data = l->bytes + r->headers_len;
    }
    return true;
}

void due__look_forget(struct due_queue *q, struct due__last_look *l)
{
    if (l->bytes != NULL)
        due__alloc_free(&q->alloc, l->bytes, l->size);
    l->bytes = NULL;
}

void due__look_show(struct due_queue *q, const struct due__last_look *l)
{
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    q->hooks.on_discard(q->hooks.discard_ctx, &l->job);
    pthread_setcancelstate(cancel, NULL);
}

/* ---- A page of dead jobs (share_retain.c) ---- */

static void looks_forget(struct due_queue *q)
{
    struct due__retention *it = &q->commits->share->retention;

    for (size_t i = 0; it->looks != NULL && i < DUE__LOOKS_KEPT; i++)
        due__look_forget(q, &it->looks[i]);
}

void due__sharing_retained(struct due_queue *q, int rc)
{
    struct due__sharing *sh = q->commits->share;
    struct due__retention *it = &sh->retention;
    int64_t renew = sh->renew_ns;
    bool doubt = rc != 0 && it->sent; /* nobody will know: else they might vanish in silence */

    it->sent = false;
    for (size_t i = 0; (rc == 0 || doubt) && i < sh->n_edits; i++) {
        if ((doubt || sh->results[i] == 0) && it->looks != NULL)
            due__look_show(q, &it->looks[i]);
        if (!doubt && sh->results[i] == DUE_EAGAIN && sh->edits[i].dead_max > 0)
            it->last = true; /* they are not too many any more */
    }
    looks_forget(q);
    it->turn = rc == 0 && !it->last && !it->pages.over;
    if (it->most < sh->room)
        it->most *= FASTER;
    if (rc != 0) /* all others beat in that time, and not we */
        it->rests_ns = due__time_add(due__monotonic_now(), renew + renew / 2);
}

void due__sharing_retain_stop(struct due_queue *q)
{
    if (q->commits->share->retention.sent)
        due__sharing_retained(q, DUE_EINDOUBT);
}

void due__sharing_retain_free(struct due_queue *q)
{
    struct due__retention *it = &q->commits->share->retention;

    looks_forget(q);
    if (it->looks != NULL)
        due__alloc_free(&q->alloc, it->looks, DUE__LOOKS_KEPT * sizeof *it->looks);
    it->looks = NULL;
}
