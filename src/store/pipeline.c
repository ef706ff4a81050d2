/* pipeline.c - the next batch: made ready while one is under way, sent as soon as that has landed.
 *
 * What the next batch may rest on: the claims of its own jobs only.  A job of the batch under way
 * is not in it (N1 of sender.c), so nothing that it was written from changes when that one ends.
 * What may change is what it is allowed to send: if anything of the batch under way was refused,
 * the next is not sent here but looked at again (N4).  After a loss it waits too: what is put again
 * is read from jobs as they are, which is not yet what a batch under way makes of them.
 *
 * Of keys a batch says whose they are once the batch before it has landed: a job that is SENT there
 * has its key already.  What is no longer kept is told behind a batch just before it is sent, since
 * whoever gets such a key after that must not be in it.
 *
 * Guards     K  the key (sender.c)      A  atomic, see Edges
 *
 * Edges      described elsewhere: G1 G2 sender.c
 */
#include "os/atomic.h"
#include "queue/extras.h"
#include "queue/queue.h"
#include "store/sender.h"

#define WORTH 4u /* a batch of so many parts of a full one is prepared before the answer is there */

bool due__pipeline_can(const struct due__commits *c)
{
    return c->share == NULL && c->store->verbs->prepare != NULL && c->store->verbs->send != NULL;
}

/* Give the store the changes of @b, which is to be batch @number, as far as they are written. */
static bool prepare(struct due__commits *c, struct due__batch *b, uint64_t number)
{
    if (!b->prepared && b->send > 0)
        b->prepared = c->store->verbs->prepare(c->store, b->changes, b->send, number) == 0;
    return b->prepared;
}

void due__pipeline_send(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    if (c->sender != DUE__SENDER_FILLED || !due__pipeline_can(c))
        return;
    due__batch_write(q, c->now);
    due__batch_complete(q, c->now);
    if (!prepare(c, c->now, c->number))
        return;
    c->now->prepared = false;
    if (c->store->verbs->send(c->store, c->number, until_ns) == 0)
        due__sender_on(c, DUE__SENDER_SEND);
}

/* Nothing is lacking, nor is a topic to be held back, so that what waits may go into the next
 * batch. */
static bool may(struct due__commits *c)
{
    return due__pipeline_can(c) && !c->now->drops && !due__settings_any(c) &&
           !due__load_seq(&c->lacking); /* G2: with the key */
}

/* Has any job that came in after the first @before a key? */
static bool any_keyed(const struct due_queue *q, const struct due__batch *b, uint32_t before)
{
    for (uint32_t i = before; i < b->count; i++) {
        const struct due__extras *extras =
            due__extras_of(due__job_at(&q->slab, b->entries[i].number));

        if (b->entries[i].purpose == DUE__PUT && extras != NULL && extras->key != NULL)
            return true;
    }
    return false;
}

/* What was written down of a key may be otherwise once another job with that key is in the batch,
 * too. */
static void fill(struct due_queue *q)
{
    struct due__commits *c = q->commits;
    struct due__batch *b = c->next;
    uint32_t before = b->count;

    due__batch_fill(q, b, false);
    if (b->count > before)
        b->prepared = false;
    if (b->written && any_keyed(q, b, before))
        due__batch_unwrite(b);
}

void due__pipeline_prepare(struct due_queue *q)
{
    struct due__commits *c = q->commits;

    if (c->sender != DUE__SENDER_SENT || !may(c) || due__inbox_quiet(&c->inbox)) /* G1: a guess */
        return;
    fill(q);
    if (c->next->count == 0 || c->next->count < c->info.batch_changes / WORTH)
        return;
    due__batch_write(q, c->next);
    prepare(c, c->next, c->number + 1);
}

/* Does as much wait again as the next batch has already?  Then it is prepared once more. */
static bool much_came(struct due__commits *c)
{
    uint64_t settled = due__load_relaxed(&c->settled);          /* no edge: a guess */
    uint64_t left = due__load_relaxed(&c->submitted) - settled; /* no edge: a guess */

    return left > (uint64_t)c->now->count + 2 * (uint64_t)c->next->count;
}

bool due__pipeline_follow(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    if (!may(c) || c->now->refused || c->now->upto < c->now->count)
        return false;
    if (!c->next->prepared || much_came(c))
        fill(q);
    if (c->next->count == 0)
        return false;
    due__batch_write(q, c->next);
    due__batch_complete(q, c->next);
    if (!prepare(c, c->next, c->number))
        return false;
    c->next->prepared = false;
    return c->store->verbs->send(c->store, c->number, until_ns) == 0;
}
