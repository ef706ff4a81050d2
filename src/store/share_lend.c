/* share_lend.c - a job of a shared queue that is not here is cancelled, and lent to who did it.
 *
 * Nobody has its bytes once it has left the store, so they are copied here before that: the job is
 * looked at, and dropped with the mark with which it was shown.  The store drops it only if it is
 * still that, by content, time and counts; if it is not, it is looked at anew.  So what the caller
 * gets is what the job was when it went, and of two who cancel it one gets it.  What is in doubt is
 * the drop alone, which is sent again as it was, as long as its caller has time; if he has gone by
 * then the copy has, too.
 *
 * The copy has a place of its own, which no id leads to: the job was never one of those that this
 * process has, and is counted as lent only.  From before the look until the answer that place
 * counts as that of a job that waits: a queue that drains meanwhile waits for it.
 *
 * Guards     K  the key (sender.c)      O  its owner's alone
 *
 * Edges      described elsewhere: G2 sender.c, J1 slab.h, C2 closing.c, X2 share.c
 */
#include <string.h>

#include "job/fresh.h"
#include "job/release.h"
#include "os/atomic.h"
#include "os/bell.h"
#include "queue/closing.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "store/share.h"

#define LOOKS    8          /* at a job that changes each time */
#define DOUBT_NS DUE_MS(20) /* between two times that a drop in doubt is sent again */

struct lending {
    struct due_queue *q;        /* O */
    const struct due__ask *ask; /* O */
    uint32_t number;            /* O  of the copy's place */
    bool filled;                /* O  the copy is there: */
    struct due__fresh copy;     /* O  its place, nobody's yet */
    uint32_t attempts;          /* O */
    uint32_t failures;          /* O */
};

/* A place for it, that nobody takes for that of a claimed job. */
static int make_place(struct lending *l)
{
    struct due_queue *q = l->q;
    struct due__commits *c = q->commits;
    int rc = due__place_take(q, &l->number);

    if (rc != 0)
        return rc;
    if (!due__records_make(&c->stored, &q->alloc, l->number)) {
        due__slab_untake(&q->slab, l->number);
        due__left(q, 1);
        return DUE_ENOMEM;
    }
    struct due__stored *s = due__stored_at(c, l->number);
    due__stored_name(s, l->ask->id);
    s->stored = DUE__NOT_STORED;
    if (due__records_has(&c->share->holds, l->number))
        due__store_relaxed(&due__hold_at(q, l->number)->held, 0); /* X2 */
    return 0;
}

static void forget_copy(struct lending *l)
{
    if (l->filled)
        due__job_release_fresh(l->q, &l->copy);
    l->filled = false;
}

/* Only what its caller will see of it. */
static int copy_job(struct lending *l, const due_record *r, int topic)
{
    due_extra more = { DUE_EXTRA_INIT, .headers = r->headers, .headers_len = r->headers_len };
    due_spec spec = { DUE_SPEC_INIT,           .at_ns = r->deadline_ns,
                      .flags = DUE_SPEC_AT,    .data = r->data,
                      .len = r->len,           .topic = topic,
                      .priority = r->priority, .more = r->headers_len > 0 ? &more : NULL };

    forget_copy(l);
    int rc = due__fill(l->q, l->number, &spec, &l->copy);
    l->filled = rc == 0;
    l->attempts = r->attempts;
    l->failures = r->failures;
    return rc;
}

static bool has_other_key(const struct due__ask *ask, const due_record *r)
{
    return ask->key != NULL &&
           (r->key_len != ask->key_len || memcmp(r->key, ask->key, ask->key_len) != 0);
}

/* It is there: copied, and to be dropped as it is.  Without a mark it would be dropped whatever it
 * is by then. */
static int make(void *ctx, const due_record *r)
{
    struct lending *l = ctx;
    int topic = due__topic_named(l->q, r->topic);
    due_change *ch = &l->q->commits->share->edit;

    if (topic < 0)
        return topic;
    if (r->mark_len == 0)
        return DUE_ENOTSUP;
    if (has_other_key(l->ask, r))
        return DUE_ENOENT;
    int rc = copy_job(l, r, topic);
    if (rc != 0)
        return rc;
    *ch = (due_change){ .kind = DUE_CHANGE_DROP,
                        .was_ns = r->cause != 0 ? r->died_ns : r->until_ns,
                        .was_dead = r->cause != 0,
                        .revokes = r->cause == 0,
                        .record = { .id = r->id,
                                    .topic = due_topic_name(l->q, topic),
                                    .priority = r->priority,
                                    .attempts = r->attempts,
                                    .failures = r->failures,
                                    .mark = r->mark,
                                    .mark_len = r->mark_len,
                                    .key = l->ask->key,
                                    .key_len = l->ask->key_len } };
    return due__sharing_edit_keep(l->q, &ch->record) ? 0 : DUE_ENOMEM;
}

/* The store has the job no more: the copy is the caller's, until he is done with it. */
static void lend(struct lending *l, due_job *job)
{
    struct due_queue *q = l->q;
    struct due__job *j = l->copy.job;
    int64_t deadline = l->copy.deadline_ns;

    due__facts_store(j, l->copy.f);
    due__store_relaxed(&j->deadline_ns, deadline);                     /* J1 */
    due__word_begin(&j->word, l->copy.generation, 0, DUE__CLAIMED, 0); /* J1 */
    due__job_fill(q, l->number, deadline, 0, job);
    job->attempts = l->attempts;
    job->failures = l->failures;
    struct due__shard *it = due__shard_enter(&q->slab);
    it->refused++; /* C2 of closing.c: it did not come in */
    it->lent++;
    due__shard_leave(it);
    due__left(q, 1);
}

/* ---- The drop ---- */

/* Who closes waits for the key, so it is not long. */
static void pause_until(int64_t at_ns)
{
    struct due__bell never;

    if (due__bell_init(&never) != 0)
        return;
    (void)due__bell_wait(&never, at_ns, false);
    due__bell_destroy(&never, false);
}

/* It may have landed, and then nobody else has the bytes: it is sent again while there is time, at
 * once, and then now and then.  Whatever is answered but its end leaves it in doubt. */
static int see_through(struct due_queue *q, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    int64_t now = due__monotonic_now();
    int rc = DUE_EINDOUBT;

    while (rc == DUE_EINDOUBT && now < until_ns && !due__load_seq(&c->stopping) && /* G2 */
           !due__load_seq(&c->fenced)) {                                           /* G2 */
        int64_t next_ns = due__time_add(now, DOUBT_NS);

        rc = due__sharing_edit(q, until_ns);
        rc = rc == DUE_EAGAIN ? DUE_EINDOUBT : rc;
        if (rc == DUE_EINDOUBT)
            pause_until(next_ns < until_ns ? next_ns : until_ns);
        now = due__monotonic_now();
    }
    c->share->asking = rc == DUE_EINDOUBT;
    return rc == 0 ? c->share->results[0] : DUE_EINDOUBT;
}

static int drop(struct due_queue *q, int64_t until_ns)
{
    int rc = due__sharing_ask_edit(q, until_ns);

    return rc == DUE_EINDOUBT ? see_through(q, until_ns) : rc;
}

int due__sharing_lend(struct due_queue *q, const struct due__ask *ask, int64_t until_ns)
{
    struct lending l = { .q = q, .ask = ask };
    bool again = true;
    int rc = make_place(&l);

    if (rc != 0)
        return rc;
    for (int looks = 0; again && looks < LOOKS; looks++) {
        rc = due__sharing_find(q, ask->id, make, &l, until_ns);
        again = rc == DUE_EAGAIN;
        if (rc != 0)
            continue;
        rc = drop(q, until_ns);
        again = due__sharing_look_again(rc);
    }
    if (rc == 0) {
        lend(&l, ask->job);
        return 0;
    }
    forget_copy(&l);
    due__slab_untake(&q->slab, l.number);
    due__left(q, 1);
    return rc;
}
