/* share_ask.c - a call of a shared queue names a job that is not here, or asks for the dead, for
 * how much there is, or for who is there; what is asked of many jobs is in share_pages.c.
 *
 * The store is asked, by a caller who finds the key free, or by the proxy for it.  What is to be
 * changed is looked at first, since a change of a job that nobody holds takes effect only if the
 * job is as it says; if it has changed meanwhile it is looked at anew.  The change is an exchange
 * of its own.  If its end is not known in time the caller is told so, and it is seen through like a
 * claim.
 *
 * Guards     K  the key (sender.c)      D  the calls' lock      O  its owner's alone
 *
 * Edges      described elsewhere: G1 G2 sender.c
 */
#include <pthread.h>
#include <string.h>

#include "due/metrics.h"
#include "os/atomic.h"
#include "queue/inside.h"
#include "queue/queue.h"
#include "store/share.h"

#define LOOKS   8 /* at a job that changes each time */
#define LIMITED 1 /* its content is to be another */

/* ---- Looking ---- */

/* What is known of a job in the store. */
struct job_found {
    struct due_queue *q; /* O */
    due_record record;   /* O  without what it would point to */
    int topic;           /* O */
};

static int note_job(void *ctx, const due_record *r)
{
    struct job_found *f = ctx;

    f->record = *r;
    f->topic = due__topic_named(f->q, r->topic);
    f->record.topic = NULL;
    return 0;
}

static int look(struct due_queue *q, due_id id, struct job_found *f, int64_t until_ns)
{
    *f = (struct job_found){ .q = q };
    int rc = due__sharing_find(q, id, note_job, f, until_ns);
    return rc == 0 && f->topic < 0 ? f->topic : rc;
}

static int ask_find(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    struct job_found f;
    int rc = look(q, ask->id, &f, until_ns);

    if (rc != 0)
        return rc;
    if (f.record.cause != 0)
        return DUE_ENOENT;
    *ask->info = (due_info){ .id = ask->id,
                             .deadline_ns = f.record.until_ns,
                             .len = f.record.len,
                             .topic = f.topic,
                             .priority = f.record.priority };
    return 0;
}

static int note_bytes(void *ctx, const due_record *r)
{
    struct due__ask *ask = ctx;

    ask->got = r->len;
    if (r->len > 0 && ask->size > 0)
        memcpy(ask->buffer, r->data, r->len < ask->size ? r->len : ask->size);
    return 0;
}

static int ask_read(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    return c->store->verbs->find(c->store, ask->id, note_bytes, ask, until_ns);
}

static int note_dead(void *ctx, const due_record *r)
{
    struct due__ask *ask = ctx;
    int topic = due__topic_named(ask->queue, r->topic);

    if (topic < 0)
        return topic;
    due_dead *d = &ask->dead[ask->got++];
    *d = (due_dead){ .id = r->id,
                     .deadline_ns = r->deadline_ns,
                     .died_ns = r->died_ns,
                     .len = r->len,
                     .topic = topic,
                     .priority = r->priority,
                     .attempts = r->attempts,
                     .failures = r->failures,
                     .cause = r->cause };
    strncpy(d->reason, r->reason != NULL ? r->reason : "", sizeof d->reason - 1);
    return 0;
}

static int ask_dead(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    ask->queue = q;
    ask->got = 0;
    int rc = c->share->verbs->dead(c->store, ask->from, ask->max, note_dead, ask, until_ns);
    return rc < 0 ? rc : 0;
}

/* ---- Counting, and who is there ---- */

/* One more topic.  A topic that can have no number here is counted all the same. */
static int note_topic(void *ctx, const struct due_census_topic *t)
{
    struct due__ask *ask = ctx;
    int number = due__topic_named(ask->queue, t->topic);
    struct due_queue_census *to[2] = { ask->census };

    if (number >= 0 && (size_t)number - ask->from < ask->max)
        to[1] = &ask->each[(size_t)number - ask->from];
    for (size_t i = 0; i < 2 && to[i] != NULL; i++) {
        to[i]->delayed += t->delayed;
        to[i]->ready += t->ready;
        to[i]->leased += t->leased;
        to[i]->oldest_ns = t->oldest_ns < to[i]->oldest_ns ? t->oldest_ns : to[i]->oldest_ns;
    }
    return 0;
}

static int ask_census(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due_census_all all = { 0 };

    ask->queue = q;
    *ask->census = (struct due_queue_census){ .oldest_ns = DUE_FOREVER };
    for (size_t i = 0; i < ask->max; i++)
        ask->each[i] = *ask->census;
    int rc = c->share->verbs->census(c->store, &all, note_topic, ask, until_ns);
    ask->census->dead = all.dead;
    ask->census->now_ns = all.now_ns;
    ask->census->head_ns = all.head_ns;
    ask->census->processes = all.processes;
    return rc;
}

/* They come in no order; those that are shown are the ones with the lowest numbers. */
static int note_process(void *ctx, const struct due_process_seen *seen)
{
    struct due__ask *ask = ctx;
    size_t at = ask->got;

    if (seen->writer <= ask->from)
        return 0;
    while (at > 0 && ask->processes[at - 1].number > seen->writer)
        at--;
    if (at == ask->max)
        return 0;
    size_t behind = (ask->got < ask->max ? ask->got : ask->max - 1) - at;
    struct due_process *p = &ask->processes[at];
    memmove(p + 1, p, behind * sizeof *p);
    *p = (struct due_process){ .number = seen->writer,
                               .pid = seen->pid,
                               .started_ns = seen->started_ns,
                               .seen_ns = seen->seen_ns,
                               .held = seen->held,
                               .waits = seen->waits != 0,
                               .self = seen->writer == ask->queue->commits->info.writer };
    strncpy(p->host, seen->host, sizeof p->host - 1);
    ask->got = at + 1 + behind;
    return 0;
}

static int ask_processes(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    ask->queue = q;
    ask->got = 0;
    return c->share->verbs->processes(c->store, note_process, ask, until_ns);
}

/* ---- Changing ---- */

static int change_one(struct due_queue *q, const due_change *ch, int64_t until_ns)
{
    q->commits->share->edit = *ch;
    return due__sharing_ask_edit(q, until_ns);
}

static int ask_hold_back(struct due_queue *q, const struct due__ask *ask, int64_t until_ns)
{
    due_change ch = { .kind = DUE_CHANGE_TOPIC,
                      .paused = ask->paused,
                      .held_max = ask->held_max,
                      .record = { .topic = due_topic_name(q, ask->topic) } };

    return change_one(q, &ch, until_ns);
}

/* Whether it waits or is dead. */
static int cancel_any(struct due_queue *q, const struct due__ask *ask, int64_t until_ns)
{
    due_change ch = { .kind = DUE_CHANGE_DROP,
                      .revokes = 1,
                      .record = { .id = ask->id, .key = ask->key, .key_len = ask->key_len } };

    int *result = &q->commits->share->results[0];

    if (!due__sharing_edit_keep(q, &ch.record))
        return DUE_ENOMEM;
    *result = 0;
    int rc = change_one(q, &ch, until_ns);
    if (rc == DUE_ENOENT) {
        ch.was_dead = 1;
        ch.revokes = 0;
        *result = 0;
        rc = change_one(q, &ch, until_ns);
    }
    return rc == DUE_EAGAIN && *result == rc ? DUE_ENOENT : rc; /* it has lost the key */
}

/* One that was kicked before it was looked for among the dead is there still.  Who names it by its
 * key looks whose that is. */
static int ask_cancel(struct due_queue *q, const struct due__ask *ask, int64_t until_ns)
{
    struct job_found f;
    int rc = DUE_ENOENT;

    for (int looks = 0; rc == DUE_ENOENT && looks < LOOKS; looks++) {
        rc = cancel_any(q, ask, until_ns);
        if (rc != DUE_ENOENT || ask->key != NULL)
            return rc;
        int there = look(q, ask->id, &f, until_ns);
        if (there != 0)
            return there;
    }
    return rc;
}

bool due__sharing_kick(const due_record *r, int64_t at_ns, due_change *ch)
{
    if (r->ttl_ns != 0 || r->expires_ns != 0)
        return false; /* its time would be over again */
    *ch = (due_change){ .kind = DUE_CHANGE_MOVE,
                        .was_ns = r->died_ns,
                        .was_dead = 1,
                        .record = { .id = r->id,
                                    .deadline_ns = r->deadline_ns,
                                    .until_ns = at_ns,
                                    .priority = r->priority } };
    return true;
}

/* What a job that was found is to become; 0, or why it cannot. */
static int decide(const struct due__ask *ask, const struct job_found *f, due_change *ch)
{
    const due_record *r = &f->record;

    if ((r->cause != 0) != (ask->kind == DUE__ASK_KICK))
        return DUE_ENOENT;
    if (r->cause != 0)
        return due__sharing_kick(r, ask->at_ns, ch) ? 0 : LIMITED;
    *ch = (due_change){ .kind = DUE_CHANGE_MOVE,
                        .was_ns = r->until_ns,
                        .record = { .id = r->id,
                                    .deadline_ns = ask->at_ns,
                                    .until_ns = ask->at_ns,
                                    .priority = r->priority,
                                    .attempts = r->attempts,
                                    .failures = r->failures } };
    return 0;
}

static int ask_move(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    due_change ch;
    struct job_found f;
    int rc = DUE_EAGAIN;

    for (int looks = 0; rc == DUE_EAGAIN && looks < LOOKS; looks++) {
        rc = look(q, ask->id, &f, until_ns);
        if (rc == 0)
            rc = decide(ask, &f, &ch);
        if (rc == 0)
            rc = change_one(q, &ch, until_ns);
    }
    return rc == LIMITED ? due__sharing_amend(q, ask, until_ns) : rc;
}

/* ---- With the key ---- */

static int answer(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    switch (ask->kind) {
    case DUE__ASK_NOTHING:
        return 0;
    case DUE__ASK_KEY:
        return due__sharing_whose(q, ask, until_ns);
    case DUE__ASK_REKEY:
        return due__sharing_rekey(q, ask, until_ns);
    case DUE__ASK_FIND:
        return ask_find(q, ask, until_ns);
    case DUE__ASK_READ:
        return ask_read(q, ask, until_ns);
    case DUE__ASK_DEAD:
        return ask_dead(q, ask, until_ns);
    case DUE__ASK_CLAIM:
        return due__sharing_claim_now(q, until_ns);
    case DUE__ASK_CENSUS:
        return ask_census(q, ask, until_ns);
    case DUE__ASK_PROCESSES:
        return ask_processes(q, ask, until_ns);
    case DUE__ASK_CANCEL:
        return ask->job != NULL ? due__sharing_lend(q, ask, until_ns)
                                : ask_cancel(q, ask, until_ns);
    case DUE__ASK_AMEND:
        return due__sharing_amend(q, ask, until_ns);
    case DUE__ASK_HOLD_BACK:
        return ask_hold_back(q, ask, until_ns);
    case DUE__ASK_MOVE:
    case DUE__ASK_KICK:
        return ask_move(q, ask, until_ns);
    default:
        return due__sharing_answer_many(q, ask, until_ns);
    }
}

int due__sharing_answer(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    struct due__commits *c = q->commits;

    if (due__load_seq(&c->stopping) || due__load_seq(&c->fenced)) /* G2 */
        return due__commit_excuse(q);
    if (!due__sharing_settle(q, until_ns) || due__sender_unsure(c))
        return DUE_EAGAIN; /* one exchange at a time */
    int rc = answer(q, ask, until_ns);
    due__sharing_edit_over(q);
    return rc;
}

/* ---- Calls ---- */

/* Who has the key may be about something that takes long: then the proxy answers, as soon as it has
 * it. */
static int ask_proxy(struct due_queue *q, struct due__ask *ask, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__submission a;

    if (!due__submission_begin(q, &a, 1))
        return DUE_ENOMEM;
    due__lock_acquire(&c->calls);
    a.ask = ask;
    a.until_ns = until_ns;
    due__lock_release(&c->calls);
    due__proxy_call(q);
    due__submission_wait(c, &a, until_ns);
    due__lock_acquire(&c->calls);
    bool begun = a.ask == NULL;
    a.ask = NULL;
    due__lock_release(&c->calls);
    if (begun)
        due__submission_settle(c, &a);
    int rc = begun ? a.rc : due__commit_excuse(q);
    due__submission_end(q, &a);
    return rc;
}

/* A job in a store has an id that ends in zeros: this is nobody's, and no store is asked for it. */
static bool is_made_up(due_id id)
{
    static const due_id none;

    return memcmp(id.byte + DUE_STORE_ID_BYTES, none.byte, sizeof id - DUE_STORE_ID_BYTES) != 0;
}

int due__sharing_ask(struct due_queue *q, struct due__ask *ask, struct due__deadline *by)
{
    struct due__commits *c = q->commits;
    int64_t until = due__deadline_at(q, by);
    int rc = DUE_EAGAIN;
    int cancel;

    if (is_made_up(ask->id))
        return DUE_ENOENT;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* the store's calls may be points */
    if (q->proxies != DUE_PROXIES_ALWAYS && due__lock_try(&c->key)) { /* G1 */
        rc = due__sharing_answer(q, ask, until);
        due__commit_leave(q, !due__sharing_settled(q));
    }
    if (rc == DUE_EAGAIN)
        rc = ask_proxy(q, ask, until);
    pthread_setcancelstate(cancel, NULL);
    return rc == DUE_EAGAIN ? DUE_ETIMEDOUT : rc;
}

void due__sharing_quiesce(struct due_queue *q, int64_t until_ns)
{
    struct due__ask nothing = { .kind = DUE__ASK_NOTHING };
    struct due__deadline by = { .at_ns = until_ns };

    if (until_ns <= 0)
        by.at_ns = 1;                         /* 0 would be the store's own time */
    (void)due__sharing_ask(q, &nothing, &by); /* it needs the key, and what was in doubt settled */
}

int due__sharing_hold_back(struct due_queue *q, int topic, int64_t paused, int64_t held_max)
{
    struct due__ask topics = { .kind = DUE__ASK_TOPICS };
    struct due__deadline by = { 0 };
    bool all = topic == DUE_ALL_TOPICS;

    if (!all && due_topic_name(q, topic) == NULL)
        return DUE_EINVAL;
    bool inside = due__inside_stored(q);
    int rc = all ? due__sharing_ask(q, &topics, &by) : 0;
    for (int i = all ? 0 : topic; rc == 0 && due_topic_name(q, i) != NULL; i++) {
        struct due__ask ask = {
            .kind = DUE__ASK_HOLD_BACK, .topic = i, .paused = paused, .held_max = held_max
        };
        struct due__deadline each = { 0 };

        rc = due__sharing_ask(q, &ask, &each);
        if (!all)
            break;
    }
    due__inside_end(q, inside);
    return rc;
}
