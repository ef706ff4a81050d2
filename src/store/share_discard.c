/* share_discard.c - jobs of a shared queue that are dropped, and were never in memory here, are
 * shown to on_discard: what they were is kept until they have gone.  If nobody can tell whether
 * they have, they are shown all the same: better twice than never.
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

static void look_forget(struct due_queue *q, struct due__last_look *l)
{
    if (l->bytes != NULL)
        due__alloc_free(&q->alloc, l->bytes, l->size);
    l->bytes = NULL;
}

static void look_show(struct due_queue *q, const struct due__last_look *l)
{
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    q->hooks.on_discard(q->hooks.discard_ctx, &l->job);
    pthread_setcancelstate(cancel, NULL);
}

/* ---- Those of a page ---- */

bool due__looks_make(struct due_queue *q)
{
    struct due__sharing *sh = q->commits->share;

    if (sh->looks == NULL && q->hooks.on_discard != NULL)
        sh->looks = due__alloc_new(&q->alloc, DUE__LOOKS_KEPT * sizeof *sh->looks);
    return sh->looks != NULL || q->hooks.on_discard == NULL;
}

/* Those that have gone; @doubt: nobody will know which, and else they might vanish in silence. */
static void looks_show(struct due_queue *q, bool doubt)
{
    struct due__sharing *sh = q->commits->share;

    for (size_t i = 0; sh->looks != NULL && i < sh->n_edits; i++) {
        if (doubt || sh->results[i] == 0)
            look_show(q, &sh->looks[i]);
    }
}

static void looks_forget(struct due_queue *q, struct due__sharing *sh)
{
    for (size_t i = 0; sh->looks != NULL && i < DUE__LOOKS_KEPT; i++)
        look_forget(q, &sh->looks[i]);
}

/* ---- A page of dead jobs (share_retain.c), or of a clear (share_pages.c) ---- */

void due__sharing_retained(struct due_queue *q, int rc)
{
    struct due__sharing *sh = q->commits->share;
    struct due__retention *it = &sh->retention;
    int64_t renew = sh->renew_ns;
    bool doubt = rc != 0 && it->sent;

    it->sent = false;
    if (rc == 0 || doubt)
        looks_show(q, doubt);
    for (size_t i = 0; rc == 0 && i < sh->n_edits; i++) {
        if (sh->results[i] == DUE_EAGAIN && sh->edits[i].dead_max > 0)
            it->last = true; /* they are not too many any more */
    }
    looks_forget(q, sh);
    it->turn = rc == 0 && !it->last && !it->pages.over;
    if (it->most < sh->room)
        it->most *= FASTER;
    if (rc != 0) /* all others beat in that time, and not we */
        it->rests_ns = due__time_add(due__monotonic_now(), renew + renew / 2);
}

void due__sharing_cleared(struct due_queue *q, int rc)
{
    struct due__sharing *sh = q->commits->share;
    bool doubt = rc != 0 && sh->clears;

    sh->clears = rc == DUE_EINDOUBT && !doubt;
    if (sh->clears)
        return;
    if (rc == 0 || doubt)
        looks_show(q, doubt);
    looks_forget(q, sh);
}

void due__sharing_discard_stop(struct due_queue *q)
{
    const struct due__sharing *sh = q->commits->share;

    if (sh->retention.sent)
        due__sharing_retained(q, DUE_EINDOUBT);
    if (sh->clears)
        due__sharing_cleared(q, DUE_EINDOUBT);
}

void due__sharing_discard_free(struct due_queue *q, struct due__sharing *sh)
{
    looks_forget(q, sh);
    if (sh->looks != NULL)
        due__alloc_free(&q->alloc, sh->looks, DUE__LOOKS_KEPT * sizeof *sh->looks);
    sh->looks = NULL;
}
