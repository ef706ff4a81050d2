/* share_keys.c - the unique keys of a shared queue, whose they are in the store.
 *
 * The table of keys (job/key_table.c) is not used: a job that comes in has the key that it was
 * given if the store says so, and one that was claimed has one in the store still, or has lost it
 * to another.  Nothing is known of that here, and nothing need be: the store frees the key of
 * whatever ends, if it is the job's still.
 *
 * A job that has a key becomes what an enqueue says by an AMEND, which is made only if the job, and
 * whose the key is, are still as they were looked at.  So what becomes of it is decided here.
 *
 * Guards     K  the key (sender.c)      O  its owner's alone
 */
#include <string.h>

#include "queue/queue.h"
#include "store/share.h"

int due__sharing_whose(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    int rc = c->share->verbs->holder(c->store, ask->key, ask->key_len, &ask->id, until_ns);

    ask->kept = rc == 1;
    return rc > 0 ? 0 : rc;
}

/* ---- Changing the job that has the key ---- */

struct rekeying {
    struct due_queue *q;        /* O */
    const struct due__ask *ask; /* O */
};

/* Other content, in the place of what it has. */
static void replace_content(const due_spec *s, due_record *r)
{
    r->data = s->data;
    r->len = s->len;
    r->headers = s->more->headers;
    r->headers_len = s->more->headers_len;
    r->retry = s->more->retry;
    r->ttl_ns = s->more->ttl_ns;
    r->expires_ns = s->more->expires_ns;
    r->keep_key_ns = s->more->keep_key_ns;
    r->every_ns = s->more->every_ns;
    r->repeat = s->more->repeat;
}

/* As rekeyed_decide() of api/enqueue_keyed.c.  One that stays as it is has to be looked at, too:
 * whether somebody has it. */
static void become(const struct due__ask *ask, due_change *ch)
{
    enum due_key_policy policy = ask->spec->more->on_key;
    due_record *r = &ch->record;
    bool dead = r->cause != 0;
    int64_t at = ask->at_ns;

    if (!dead && policy == DUE_KEY_EARLIEST && at >= r->until_ns)
        return;
    if (!dead && policy == DUE_KEY_DEBOUNCE && at < r->until_ns)
        at = r->until_ns;
    r->deadline_ns = r->until_ns = at;
    if (dead) { /* it waits again, as if it had never been handed out */
        r->attempts = r->failures = 0;
        r->ttl_ns = r->expires_ns = 0;
        r->cause = 0;
        r->died_ns = 0;
    }
    if (policy == DUE_KEY_EARLIEST)
        return;
    ch->anew = !dead;
    replace_content(ask->spec, r);
}

static int make(void *ctx, const due_record *was)
{
    struct rekeying *a = ctx;
    int topic = due__topic_named(a->q, was->topic);
    due_change *ch = &a->q->commits->share->edit;

    if (topic < 0)
        return topic;
    if (was->key_len != a->ask->key_len || memcmp(was->key, a->ask->key, was->key_len) != 0)
        return DUE_ENOENT;
    *ch = (due_change){ .kind = DUE_CHANGE_AMEND,
                        .was_ns = was->cause != 0 ? was->died_ns : was->until_ns,
                        .was_dead = was->cause != 0,
                        .record = *was };
    become(a->ask, ch);
    ch->record.topic = due_topic_name(a->q, topic);
    return due__sharing_edit_keep(a->q, &ch->record) ? 0 : DUE_ENOMEM;
}

int due__sharing_rekey(struct due_queue *q, const struct due__ask *ask, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct rekeying a = { .q = q, .ask = ask };
    int rc = c->store->verbs->find(c->store, ask->id, make, &a, until_ns);

    if (rc != 0)
        return rc;
    c->share->results[0] = 0;
    rc = due__sharing_ask_edit(q, until_ns);
    return rc == DUE_EAGAIN && c->share->results[0] == rc ? DUE_ENOENT : rc;
}
