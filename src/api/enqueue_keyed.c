/* enqueue_keyed.c - enqueues with a unique key, and calls that name a job by its key.
 *
 * First the job is filled as any other.  Then, with the key's shard, the key is looked for and, if
 * it can be had, linked, and the job left in its inbox; so there is one step in which a job comes
 * in and has its key.  If the key is not to be had, the job is given up again, and what is to be
 * done depends on who has it:
 *
 *   who has the key                 DUE_KEY_REFUSE   the others
 *   kept, its job is done           DUE_EEXIST       DUE_EEXIST
 *   gone, and the store does not    as if it were    as if it were gone: new, or DUE_EEXIST
 *     know yet (DUE_CONFIRM_ASYNC)
 *   waits (delayed or ready)        DUE_EEXIST       that job is changed in place
 *   dead                            DUE_EEXIST       that job is changed, and waits again
 *   reserved, or on its way out     DUE_EEXIST       the new job takes the key over
 *   on its way to the store         DUE_EEXIST       wait for the store, and look again
 *   being changed by another call   DUE_EEXIST       wait for that, and look again
 *
 * A job whose bytes are still lent to somebody whose lease has ended cannot have others: it counts
 * as reserved then.
 *
 * A job is changed, or cancelled by its key, only if it has the key in the step that makes it the
 * caller's: between the look and that step it may have been reserved, lost its key to another job,
 * and been given back.
 *
 * Each step looks anew at what it finds, so whoever loses a race just looks again; every look finds
 * something later.
 *
 * Edges      described elsewhere: E3 tenure.c, G2 sender.c, J1 slab.h, K1 key_table.c, and of
 *            lease.c R1 R2
 */
#include <pthread.h>
#include <string.h>

#include "api/dequeue.h"
#include "api/enqueue.h"
#include "job/cancel.h"
#include "job/claim.h"
#include "job/dead_letter.h"
#include "job/draft.h"
#include "job/key_policy.h"
#include "job/key_table.h"
#include "job/lease.h"
#include "os/atomic.h"
#include "os/siphash.h"
#include "queue/closing.h"
#include "queue/extras.h"
#include "queue/inside.h"
#include "queue/job_records.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "queue/timed_wait.h"
#include "store/sender.h"

#define AGAIN 1 /* of a change: look anew */

/* Who has a key. */
struct holder {
    struct due__key_name name;
    due_id id;           /* */
    uint32_t number;     /* of a live job */
    uint32_t generation; /* */
    uint64_t news;       /* so many before the look: wait.c */
    bool live;           /* */
};

/* ---- With a shard of keys ---- */

static void describe(struct due_queue *q, const struct due__key *was, struct holder *h)
{
    h->live = was->place != 0 && !was->gone;
    if (was->place == 0) {
        h->id = was->of.id;
        return;
    }
    h->number = was->place - 1;
    h->generation = was->generation;
    h->id = due__id(q, h->number, h->generation);
}

/* Who has the key now, if anybody has. */
static enum due__finding look(struct due_queue *q, const void *bytes, size_t len, uint8_t on_key,
                              struct holder *h)
{
    struct due__keys *keys = due__load_acquire(&q->keys); /* K1 of key_table.c */

    *h = (struct holder){ .live = false };
    h->news = q->journal->news(q);
    if (keys == NULL)
        return DUE__KEY_TO_BE_HAD;
    uint64_t hash = due__siphash(keys->seed, bytes, len);
    h->name = (struct due__key_name){ bytes, len, hash };
    struct due__key_shard *shard = due__key_enter(keys, hash);
    struct due__key *was = due__key_find(shard, bytes, len, hash);
    enum due__finding found = due__key_judge(q, was, on_key);
    if (was != NULL)
        describe(q, was, h);
    due__key_leave(q, shard);
    return found;
}

/* ---- Changing the job that has the key ---- */

/* What a job is to become. */
struct change {
    const due_spec *s;
    struct due__extras *extras; /* its new content, and after the change its old one; or NULL */
    size_t len;                 /* of the payload there */
    int64_t at_ns;
    void *carried; /* by the old content: nobody's any more */
};

static int64_t deadline(const due_spec *s, int64_t now_ns)
{
    return due__timed(s) ? s->at_ns : due__time_add(now_ns, s->delay_ns);
}

/* The caller's own job gets the new content, and the change has the old one. */
static void exchange(struct due_queue *q, uint32_t number, uint64_t w, struct change *c)
{
    struct due__job *j = due__job_at(&q->slab, number);
    struct due__extras *old = due__extras_at(j);
    struct due__facts f = due__facts_load(j);

    due__extras_inherit(c->extras, old);
    c->extras->key->term_ns = c->s->more->keep_key_ns;
    c->carried = due__job_pointer(j, f);
    c->len = f.len;
    f.len = (uint32_t)c->s->len;
    f.priority = (uint8_t)c->s->priority;
    f.payload = (uint8_t)((f.payload & DUE__GROUPED) | DUE__EXTRAS |
                          (c->s->ptr != NULL ? DUE__POINTER : DUE__BYTES_APART));
    due__facts_store(j, f);
    j->payload.ptr = c->extras;
    c->extras = old;
    if (w & DUE__HELD) {
        due__store_relaxed(&due__lease_at(q, number)->attempts, 0); /* R1 */
        due__store_relaxed(&due__lease_at(q, number)->failures, 0); /* R1 */
    }
}

/* Under the lock: the job, which is the caller's own and was WAITING with word @w, is changed. */
static void change_waiting(struct due_queue *q, uint32_t number, uint64_t w, struct change *c)
{
    struct due__job *j = due__job_at(&q->slab, number);
    int64_t at = due__load_relaxed(&j->deadline_ns); /* J1 */
    bool earlier = c->s->more->on_key == DUE_KEY_EARLIEST;
    bool later = c->s->more->on_key == DUE_KEY_DEBOUNCE;

    if (earlier && c->at_ns >= at) {
        due__word_set(&j->word, w); /* J1 */
        return;
    }
    if (!later || c->at_ns > at)
        at = c->at_ns;
    if (c->extras != NULL)
        exchange(q, number, w, c);
    if (w & DUE__HELD)
        due__store_relaxed(&due__lease_at(q, number)->deadline_ns, at); /* R1 */
    if (w & DUE__LINKED) /* it has no slot that bears its stamp: who looks sees that it changed */
        w = due__word_stamped(w, due__word_stamp(w) + 1);
    w = due__limiter_left(q, number, w);
    due__replace(q, number, w, DUE__WAITING, at);
}

/* The same of a dead one, which waits again. */
static void change_dead(struct due_queue *q, uint32_t number, uint64_t w, struct change *c)
{
    due__store_relaxed(&due__lease_at(q, number)->deadline_ns, c->at_ns); /* R1 */
    if (c->extras == NULL) {
        due__kick_locked(q, number, c->at_ns);
        return;
    }
    exchange(q, number, w, c);
    due__revive_locked(q, number, c->at_ns);
}

/* With the shard of its key: the job becomes the caller's own (MOVING), if it waits or is dead and
 * can be changed; *@w is its word before. */
static bool claim(struct due_queue *q, const struct holder *h, bool content, uint64_t *w)
{
    struct due__job *j = due__job_at(&q->slab, h->number);
    bool ours = false;

    *w = due__load_acquire(&j->word); /* J1 */
    while (!ours && due__word_generation(*w) == h->generation &&
           !(content && due__key_held_by_lease(q, h->number, *w))) {
        if (due__word_state(*w) == DUE__DEAD)
            ours = due__dead_claim(q, h->number, w, DUE__MOVING);
        else if (due__word_state(*w) == DUE__WAITING)
            ours = due__word_claim(&j->word, w, DUE__MOVING); /* J1 */
        else
            break;
    }
    return ours;
}

/* Under the lock.  AGAIN: it is not as it was, or the key is another's. */
static int change_locked(struct due_queue *q, const struct holder *h, struct change *c)
{
    struct due__key_shard *shard = due__key_enter_of(q, &h->name, h->number, h->generation);
    uint64_t w;

    if (shard == NULL)
        return AGAIN;
    bool ours = claim(q, h, c->extras != NULL, &w);
    due__key_leave(q, shard);
    if (!ours)
        return AGAIN;
    if (due__word_state(w) == DUE__DEAD) {
        change_dead(q, h->number, w, c);
        return 0;
    }
    due__extras_at(due__job_at(&q->slab, h->number))->key->changed = true;
    change_waiting(q, h->number, w, c);
    return 0;
}

/* In a queue of memory. */
static int change_here(struct due_queue *q, const struct holder *h, struct change *c)
{
    struct due__tenure t;
    int rc = DUE_ECLOSED;

    due__drain_all(q); /* what the caller put in before stands before it */
    due__enter(q, &t);
    if (!(due__load_seq(&q->state) & DUE__CLOSING)) { /* E3: whoever closes takes the lock after */
        int64_t now = due__clock_now(&q->clock);

        due__drain_or_say(q, DUE__FOREIGN_MAX);
        due__move_due(q, now);
        c->at_ns = deadline(c->s, now);
        rc = change_locked(q, h, c);
        due__move_due(q, now);
    }
    due__tenure_end(q, &t);
    return rc;
}

/* ---- The same in a queue with a store ---- */

/* A job that waits or is dead becomes the caller's own.  AGAIN: it is not as it was, or the key is
 * another's. */
static int own(struct due_queue *q, const struct holder *h, struct due__deadline *by)
{
    int rc = due__claim_sent(q, h->number, h->generation, &h->name, by);

    if (rc == DUE_ENOENT)
        rc = due__dead_claim_one(q, h->number, h->generation, &h->name, DUE__CHANGING);
    return rc == DUE_ENOENT || rc == DUE_EBUSY ? AGAIN : rc;
}

static bool is_dead(const struct due_queue *q, uint32_t number, uint64_t w)
{
    return (w & DUE__HELD) && due__is_dying(q, number);
}

/* It is the queue's again, as it was. */
static void disown(struct due_queue *q, uint32_t number, uint64_t w)
{
    if (is_dead(q, number, w))
        due__bury_again(q, number);
    else
        due__unclaim(q, number, false);
}

/* What the caller's own job is to become.  NULL: no memory. */
static struct due__draft *draft(struct due_queue *q, uint32_t number, struct change *c)
{
    const struct due__job *j = due__job_at(&q->slab, number);
    struct due__draft *d = due__alloc_new(&q->alloc, sizeof *d);
    struct due__facts f = due__facts_load(j);

    if (d == NULL)
        return NULL;
    due__extras_inherit(c->extras, due__extras_at(j));
    f.len = (uint32_t)c->s->len;
    f.payload = DUE__EXTRAS | DUE__BYTES_APART;
    d->what = (unsigned)DUE_SET_TIME | DUE__SET_ANEW;
    d->at_ns = c->at_ns;
    d->made.payload.ptr = c->extras;
    due__facts_store(&d->made, f);
    c->extras = NULL; /* the draft's from here on */
    return d;
}

/* A job of the caller's own gets other content. */
static int send_draft(struct due_queue *q, uint32_t number, struct change *c,
                      struct due__deadline *by)
{
    struct due__key *key = due__extras_at(due__job_at(&q->slab, number))->key;
    int64_t term = key->term_ns;
    struct due__draft *d = draft(q, number, c);

    if (d == NULL)
        return DUE_ENOMEM;
    key->term_ns = c->s->more->keep_key_ns;
    int rc = due__commit_one(q, number, DUE__UPDATE, (int64_t)(intptr_t)d, by);
    if (rc == 0 || rc == DUE_EINDOUBT)
        return rc; /* whoever has sent it sees to the rest */
    key->term_ns = term;
    due__draft_free(q, d);
    return rc;
}

static int send_change(struct due_queue *q, uint32_t number, uint64_t w, struct change *c,
                       struct due__deadline *by)
{
    int64_t at = due__load_relaxed(&due__job_at(&q->slab, number)->deadline_ns); /* J1: ours */
    bool dead = is_dead(q, number, w);

    if (due__load_seq(&q->state) & DUE__CLOSING) /* E3: the one who closes will find it again */
        return DUE_ECLOSED;
    c->at_ns = deadline(c->s, due__clock_now(&q->clock));
    if (c->extras == NULL)
        return due__commit_one(q, number, dead ? DUE__REVIVE : DUE__MOVE, c->at_ns, by);
    if (c->s->more->on_key == DUE_KEY_DEBOUNCE && !dead && at > c->at_ns)
        c->at_ns = at;
    return send_draft(q, number, c, by);
}

static int change_stored(struct due_queue *q, const struct holder *h, struct change *c,
                         struct due__deadline *by)
{
    int rc = own(q, h, by);

    if (rc != 0)
        return rc;
    struct due__job *j = due__job_at(&q->slab, h->number);
    uint64_t w = due__load_relaxed(&j->word);        /* J1: the caller's own */
    int64_t at = due__load_relaxed(&j->deadline_ns); /* J1 */
    bool later = deadline(c->s, due__clock_now(&q->clock)) >= at;
    if (c->extras != NULL && due__key_held_by_lease(q, h->number, w))
        rc = AGAIN;
    bool keeps = c->extras == NULL && later && !is_dead(q, h->number, w);
    if (rc == 0)
        rc = keeps ? due__held_until(q, by) : send_change(q, h->number, w, c, by);
    if ((rc != 0 && rc != DUE_EINDOUBT) || keeps)
        disown(q, h->number, w);
    return rc;
}

/* ---- Either ---- */

/* A pointer that no job carries any more is shown to the hook for what is discarded. */
static void show_carried(struct due_queue *q, due_id id, void *carried)
{
    due_job job = { .id = id, .ptr = carried };
    int cancel;

    if (carried == NULL || q->hooks.on_discard == NULL)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    q->hooks.on_discard(q->hooks.discard_ctx, &job);
    pthread_setcancelstate(cancel, NULL);
}

static int change(struct due_queue *q, const due_spec *s, const struct holder *h,
                  struct due__deadline *by)
{
    struct change c = { .s = s, .len = s->len };
    due_extra more = *s->more;
    due_spec content = *s;
    int rc = 0;

    more.group = NULL; /* the job's own stays */
    more.group_len = 0;
    content.more = &more;
    if (more.on_key != DUE_KEY_EARLIEST)
        rc = due__extras_new(q, &content, &c.extras);
    if (rc != 0)
        return rc;
    rc = q->commits == NULL ? change_here(q, h, &c) : change_stored(q, h, &c, by);
    if (c.extras != NULL)
        due__extras_drop(q, c.extras, c.len);
    show_carried(q, h->id, c.carried);
    return rc;
}

/* ---- Enqueue ---- */

/* The job is put in as one that is new, in what is left of the call's time: as due__enqueue_new().
 * A call that may wait, and whose time has passed, still takes room that is there. */
static int put_new(struct due_queue *q, const due_spec *s, int64_t timeout_ns, int64_t until_ns,
                   struct due__deadline *by, due_id *id, bool *inside)
{
    if (timeout_ns == 0 || timeout_ns == DUE_FOREVER)
        return due__enqueue_new(q, s, timeout_ns, by, id, inside);
    int64_t now = due__timeout_now(q);
    if (until_ns > now)
        return due__enqueue_new(q, s, until_ns - now, by, id, inside);
    if (q->commits != NULL)
        return DUE_ETIMEDOUT;
    int rc = due__enqueue_new(q, s, 0, by, id, inside);
    return rc == DUE_EAGAIN ? DUE_ETIMEDOUT : rc;
}

/* Under the lock: does the caller have to wait?  Then it stands in line. */
static bool wait_link(struct due_queue *q, uint32_t number, uint32_t generation,
                      struct due__waiter *w)
{
    uint64_t is = due__load_acquire(&due__job_at(&q->slab, number)->word); /* J1 */

    if (due__word_generation(is) != generation || due__word_state(is) != DUE__CHANGING)
        return false;
    w->quit = &q->changing;
    due__timed_wait_link(q, w, DUE_FOREVER);
    return true;
}

/* Without a store: as long as another call is changing that job (CHANGING).  0, or DUE_ENOMEM. */
static int wait_changed(struct due_queue *q, uint32_t number, uint32_t generation, bool *inside)
{
    struct due__waiter *w = due__waiter_get(q);
    struct due__tenure t;

    if (w == NULL)
        return DUE_ENOMEM;
    due__inside_once(q, inside); /* C1 of inside.c */
    due__enter(q, &t);
    bool waits = wait_link(q, number, generation, w);
    due__tenure_end(q, &t);
    if (waits) {
        due__bell_wait(&w->bell, DUE_FOREVER, false);
        due__enter(q, &t);
        due__timed_wait_unlink(q, w);
        w->quit = NULL;
        due__tenure_end(q, &t);
    }
    due__waiter_put(q, w);
    return 0;
}

int due__enqueue_keyed(struct due_queue *q, const due_spec *s, int64_t timeout_ns,
                       struct due__deadline *by, due_id *id, bool *inside)
{
    const due_extra *x = s->more;
    int64_t until = 0;
    struct holder h;
    int rc = q->journal->loaded(q, by);

    if (rc == 0 && q->capacity == 0 && q->events == NULL) /* most keys are new */
        rc = due__enqueue_new(q, s, timeout_ns, by, id, inside);
    if (rc != 0)
        return rc;
    if (timeout_ns != 0)
        until = due__time_add(due__timeout_now(q), timeout_ns);
    for (;;) {
        switch (look(q, x->key, x->key_len, (uint8_t)x->on_key, &h)) {
        case DUE__KEY_TO_BE_HAD:
            rc = put_new(q, s, timeout_ns, until, by, id, inside);
            if (rc != 0)
                return rc;
            break;
        case DUE__KEY_TAKEN:
            if (id != NULL)
                *id = h.id;
            return DUE_EEXIST;
        case DUE__KEY_TO_CHANGE:
            rc = change(q, s, &h, by);
            if ((rc == 0 || rc == DUE_EINDOUBT) && id != NULL)
                *id = h.id;
            if (rc != AGAIN)
                return rc == 0 ? 1 : rc;
            break;
        case DUE__KEY_UNSETTLED:
            if (q->commits == NULL)
                rc = wait_changed(q, h.number, h.generation, inside);
            else
                rc = due__commit_await(q, h.news + 1, by);
            if (rc != 0)
                return rc;
            break;
        case DUE__KEY_LAPSED:
            due__lapse(q, h.number, by);
            break;
        }
    }
}

/* ---- By key ---- */

static int find(struct due_queue *q, const void *key, size_t len, struct due__deadline *by,
                struct holder *h)
{
    if (len == 0 || len > DUE_KEY_MAX)
        return DUE_EINVAL;
    int rc = q->journal->loaded(q, by);
    if (rc != 0)
        return rc;
    if (look(q, key, len, DUE_KEY_REFUSE, h) != DUE__KEY_TAKEN || !h->live)
        return DUE_ENOENT;
    return 0;
}

int due_id_of_key(due_queue *q, const void *key, size_t len, due_id *id)
{
    struct due__deadline by = { 0 };
    struct holder h;

    if (due__forked(q))
        return DUE_EFORK;
    bool inside = due__inside_stored(q);
    int rc = due__named(q, find(q, key, len, &by, &h));
    due__inside_end(q, inside);
    if (rc == 0)
        *id = h.id;
    return rc;
}

int due_cancel_key(due_queue *q, const void *key, size_t len, due_job *job)
{
    struct due__deadline by = { 0 };
    struct holder h;

    if (due__forked(q))
        return due__one_or_none(job, DUE_EFORK);
    bool inside = due__inside_stored(q);
    int rc = find(q, key, len, &by, &h);
    while (rc == 0) {
        rc = due__cancel_any(q, h.number, h.generation, &h.name, job, &by);
        if (rc == 0)
            break;
        if (rc == DUE_ENOENT) /* it went meanwhile, or lost the key: is there another? */
            rc = find(q, key, len, &by, &h);
    }
    rc = due__named(q, rc);
    due__inside_end(q, inside);
    return due__one_or_none(job, rc);
}
