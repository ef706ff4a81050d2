/* share_keys.c - the unique keys of a shared queue, whose they are in the store.
 *
 * The table of keys (job/key_table.c) is not used: a job that comes in has the key that it was
 * given if the store says so, and one that was claimed has one in the store still, or has lost it
 * to another.  Nothing is known of that here, and nothing need be: the store frees the key of
 * whatever ends, if it is the job's still.
 *
 * Guards     K  the key (sender.c)
 */
#include "job/key_table.h"
#include "queue/queue.h"
#include "store/share.h"

int due__sharing_whose(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    int rc = c->share->verbs->holder(c->store, ask->key, ask->key_len, &ask->id, until_ns);

    ask->kept = rc == 1;
    return rc > 0 ? 0 : rc;
}

/* The time is the store's, and not before it: so a key is kept for as long as it was asked for, at
 * least. */
void due__sharing_describe_key(struct due_queue *q, const struct due__entry *e,
                               const struct due__key *key, due_change *ch)
{
    bool done = e->purpose == DUE__ACK || e->purpose == DUE__TAKE;

    if (done && key->term_ns > 0)
        ch->key_kept_ns = due__time_add(due__sharing_now(q), key->term_ns);
    if (ch->kind != DUE_CHANGE_PUT)
        return;
    if (e->purpose == DUE__RETURN && due__hold_at(q, e->number)->robbed)
        return;
    ch->record.key = key->bytes;
    ch->record.key_len = key->len;
    ch->record.keep_key_ns = key->term_ns;
}
