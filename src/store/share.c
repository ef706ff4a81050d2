/* share.c - a queue that many processes share: joining it, and exchanges.
 *
 * The journal is that of a stored queue, and its changes go the same way.  What differs: the jobs
 * are the store's.  A job that was put leaves memory when it has landed; what is due is claimed
 * (share_claim.c), and leaves memory again by whatever becomes of it (share_end.c).  A batch is an
 * exchange: each of its changes has an answer of its own, and a claim may go with it.  Nothing is
 * sent ahead of an answer, nothing is loaded, and nothing is put again.
 *
 * Guards     K  the key (sender.c)      T  the timeline lock      D  the calls' lock
 *            A  atomic, see Edges       I  set at open            O  its owner's alone
 *
 * Edges      X1  who extends a lease says so in its hold and makes it CLAIMED, under T; who sends
 *                makes it LEASED again, and then takes that back, under T.  So whoever answers for
 *                it and finds it CLAIMED, with that said, waits; and if it is not said, and the
 *                job is CLAIMED still, it is not for that.
 *            X2  a hold is written before the word of its job is (J1), or by who sends while
 *                somebody waits for it (G3 of sender.c); a look without either sees one of both,
 *                and the store has the last word
 *            described elsewhere: G2 G3 sender.c, J1 slab.h
 *
 * Always     N1  what a hold says ends no later than in the store, as long as clocks run alike
 *            N2  one exchange is under way at most, and is the same until it is answered
 */
#include "store/share.h"

#include <stdio.h>
#include <string.h>

#include "os/atomic.h"
#include "queue/queue.h"

#define PREFETCH    256u
#define CHANGES_MAX 65536u /* of one batch, whatever the store says */
#define LEAVE_NS    DUE_MS(250)
#define BEAT_AGAIN  DUE_MS(200) /* after one that was not answered */
#define TURN_NS     DUE_S(5)    /* one's turn is nobody else's for so long, or for half a beat */

/* ---- Joining, and leaving ---- */

static int wrong(due_error *error, int rc, const char *text, const char *hint)
{
    if (error != NULL) {
        snprintf(error->text, sizeof error->text, "%s", text);
        snprintf(error->hint, sizeof error->hint, "%s", hint);
    }
    return rc;
}

/* What a shared queue does not have. */
static int options_check(const due_options *o, due_error *error)
{
    const struct due_shared_verbs *verbs = o->store->verbs->shared;

    if (verbs == NULL || verbs->size < sizeof *verbs)
        return wrong(error, DUE_ENOTSUP, "this store cannot be shared", "open it with DUE_OWNED");
    return 0;
}

static int look_at_none(void *ctx, const struct due_census_topic *topic)
{
    (void)ctx;
    (void)topic;
    return 0;
}

/* What the store's clock shows, before the first job is given a delay.  If that cannot be learnt
 * now it is taken for the wall clock. */
static void first_look(struct due_queue *q, struct due__commits *c, int64_t until_ns)
{
    struct due__sharing *sh = c->share;
    struct due_census_all all;

    sh->behind_ns = due__clock_now(&q->clock) - due__boottime_now();
    due__store_relaxed(&sh->ahead_ns, sh->behind_ns); /* no edge: nobody else is there yet */
    if (q->clock.manual != NULL)
        return;
    int64_t from = due__boottime_now();
    if (sh->verbs->census(c->store, &all, look_at_none, NULL, until_ns) == 0)
        due__sharing_measure(sh, from, due__boottime_now(), all.now_ns);
}

int due__sharing_join(struct due_queue *q, struct due__commits *c, const due_options *o,
                      struct due_store_open *how, due_error *error)
{
    int rc = options_check(o, error);
    struct due__sharing *sh = rc == 0 ? due__alloc_new(&q->alloc, sizeof *sh) : NULL;

    if (sh == NULL)
        return rc != 0 ? rc : DUE_ENOMEM;
    *sh = (struct due__sharing){ .verbs = o->store->verbs->shared,
                                 .prefetch_max = o->prefetch_max > 0 ? o->prefetch_max : PREFETCH,
                                 .lease_ns = due__sharing_lease_fit(q->lease_ns),
                                 .sleeps_ns = INT64_MIN,
                                 .guard_ns = DUE_FOREVER,
                                 .again_ns = DUE_FOREVER,
                                 .look_ns = DUE_FOREVER,
                                 .tidy_ns = DUE_FOREVER };
    due__records_init(&sh->holds, sizeof(struct due__hold));
    how->capacity = o->capacity < DUE_JOBS_MAX ? o->capacity : UINT64_MAX;
    how->by_priority = o->order == DUE_ORDER_PRIORITY;
    rc = sh->verbs->join(c->store, how, &c->info, error);
    if (rc == 0 && how->by_priority != 0 && c->info.by_priority == 0) { /* it does not know it */
        sh->verbs->leave(c->store, how->until_ns);
        rc = wrong(error, DUE_ENOTSUP, "this store has no order by priority",
                   "share it in the order of deadlines");
    }
    if (rc != 0) {
        due__alloc_free(&q->alloc, sh, sizeof *sh);
        return rc;
    }
    c->share = sh;
    if (c->info.by_priority != 0) { /* whatever our own options say: nothing is in the queue yet */
        q->order = DUE_ORDER_PRIORITY;
        q->shows = false;
    }
    sh->renew_ns = c->info.renew_ns;
    sh->capacity = c->info.capacity;
    c->info.held_ns = DUE_FOREVER; /* each job is held for itself */
    c->info.put_again = 0;
    due__store_seq(&c->reader, DUE__READER_SERVING); /* G2: nobody else is there yet */
    first_look(q, c, how->until_ns);
    return 0;
}

bool due__sharing_room(struct due_queue *q, struct due__commits *c)
{
    struct due__sharing *sh = c->share;

    sh->room = c->info.batch_changes;
    sh->results = due__alloc_new(&q->alloc, sh->room * sizeof *sh->results);
    return sh->results != NULL;
}

void due__sharing_leave(struct due__commits *c, int64_t until_ns)
{
    c->share->verbs->leave(c->store, until_ns);
}

static void edit_forget(struct due_queue *q, struct due__sharing *sh)
{
    if (sh->edit_bytes != NULL)
        due__alloc_free(&q->alloc, sh->edit_bytes, sh->edit_size);
    sh->edit_bytes = NULL;
}

void due__sharing_edit_forget(struct due_queue *q)
{
    edit_forget(q, q->commits->share);
}

void due__sharing_edit_over(struct due_queue *q)
{
    if (!q->commits->share->asking)
        due__sharing_edit_forget(q);
}

void due__sharing_free(struct due_queue *q, struct due__commits *c)
{
    struct due__sharing *sh = c->share;

    if (sh == NULL)
        return;
    due__records_destroy(&sh->holds, &q->alloc);
    edit_forget(q, sh);
    due__sharing_discard_free(q, sh);
    if (sh->many != NULL)
        due__alloc_free(&q->alloc, sh->many, sh->room * sizeof *sh->many);
    if (sh->results != NULL)
        due__alloc_free(&q->alloc, sh->results, sh->room * sizeof *sh->results);
    due__alloc_free(&q->alloc, sh, sizeof *sh);
    c->share = NULL;
}

/* ---- Exchanges: with the key ---- */

/* Somebody was rung: he is looked for, if nothing else is heard of it. */
static void guard(struct due__sharing *sh)
{
    sh->rang_ns = due__monotonic_now();
    if (sh->guard_ns == DUE_FOREVER)
        sh->guard_ns = due__time_add(sh->rang_ns, DUE_RING_NS);
}

/* A beat that began at @began_ns has looked for who was rung so long before: not for those that
 * were rung since. */
static void guarded(struct due__sharing *sh, int64_t began_ns)
{
    if (sh->guard_ns > began_ns)
        return;
    int64_t next_ns = due__time_add(sh->rang_ns, DUE_RING_NS);
    sh->guard_ns = next_ns > began_ns ? next_ns : DUE_FOREVER;
}

/* The lane of an exchange: 1 is that of work. */
static size_t lane_of(const due_change *changes, size_t n, const struct due_claim *claim)
{
    bool work = claim != NULL;

    for (size_t i = 0; i < n && !work; i++)
        work = changes[i].held != 0;
    return work;
}

static int exchange(struct due_queue *q, const due_change *changes, size_t n,
                    const struct due_claim *claim, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__sharing *sh = c->share;
    size_t lane = lane_of(changes, n, claim);
    struct due_exchange answer = { .alarm_ns = -1 };

    if (!sh->begun) {
        sh->begun = true;
        sh->sent_ns = due__sharing_clock(q);
        sh->placed = 0;
    }
    sh->began_ns = sh->sent_ns;
    int rc = sh->verbs->exchange(c->store, changes, n, sh->number[lane] + 1, sh->results, claim,
                                 due__restore_claimed, q, &answer, until_ns);
    sh->doubt = rc == DUE_EINDOUBT || (rc == DUE_EAGAIN && sh->doubt);
    if (sh->doubt)
        return rc;
    sh->begun = false; /* it has ended, or was not sent at all */
    if (rc != 0)
        return rc;
    sh->number[lane]++;
    if (q->clock.manual == NULL)
        due__sharing_measure(sh, sh->began_ns, due__sharing_clock(q), answer.now_ns);
    if (answer.rang > 0)
        guard(sh);
    if (lane == 1) {
        /* Whoever comes for work does not wait any more, unless it says so. */
        sh->waits = sh->counted = sh->called = false;
        sh->stamp = answer.stamp;
    }
    if (claim != NULL)
        due__sharing_claimed(q, &answer);
    if (due__sharing_next(q) < sh->sleeps_ns)
        due__proxy_call(q);
    return 0;
}

/* The answers of a batch, to its entries. */
static void note_results(struct due_queue *q, struct due__batch *b)
{
    struct due__sharing *sh = q->commits->share;
    size_t at = 0;

    for (uint32_t i = 0; i < b->upto; i++) {
        if (!b->entries[i].sent)
            continue;
        due_change *ch = &b->changes[at];
        int rc = sh->results[at++];
        if (rc == DUE_REVOKED)
            due__sharing_revoked(q, &b->entries[i], ch);
        b->entries[i].rc = (int16_t)(rc == DUE_REVOKED ? 0 : rc);
        if (b->entries[i].rc == DUE_EAGAIN && b->entries[i].purpose == DUE__PUT)
            due__sharing_full(sh);
        b->refused |= b->entries[i].rc != 0;
    }
}

int due__sharing_send(struct due_queue *q, struct due__batch *b, int64_t until_ns)
{
    struct due__sharing *sh = q->commits->share;
    bool work = lane_of(b->changes, b->send, NULL) == 1;

    if (!sh->begun) {
        bool waited = sh->waits;

        sh->waits = sh->waits && !work;
        sh->riding = work && due__sharing_want(q);
        sh->waits = waited;
    }
    int rc = exchange(q, b->changes, b->send, sh->riding ? &sh->claim : NULL, until_ns);
    if (rc == DUE_EAGAIN || rc == DUE_EINDOUBT)
        return rc;
    sh->riding = false;
    if (rc == 0)
        note_results(q, b);
    if (rc == DUE_ELOST || rc == DUE_EFENCED)
        due__sharing_over(q, rc);
    return rc == DUE_ELOST ? DUE_EFENCED : rc;
}

int due__sharing_claim(struct due_queue *q, int64_t until_ns)
{
    struct due__sharing *sh = q->commits->share;
    int rc = exchange(q, NULL, 0, &sh->claim, until_ns);

    if (rc == DUE_ELOST || rc == DUE_EFENCED)
        due__sharing_over(q, rc);
    return rc;
}

int due__sharing_edit(struct due_queue *q, int64_t until_ns)
{
    struct due__sharing *sh = q->commits->share;
    int rc = exchange(q, sh->edits, sh->n_edits, NULL, until_ns);

    if (rc == DUE_ELOST || rc == DUE_EFENCED)
        due__sharing_over(q, rc);
    return rc == DUE_ELOST ? DUE_EFENCED : rc;
}

int due__sharing_ask_edits(struct due_queue *q, int64_t until_ns)
{
    struct due__sharing *sh = q->commits->share;
    int rc = due__sharing_edit(q, until_ns);

    sh->asking = rc == DUE_EINDOUBT;
    return rc;
}

int due__sharing_ask_edit(struct due_queue *q, int64_t until_ns)
{
    struct due__sharing *sh = q->commits->share;

    sh->edits = &sh->edit;
    sh->n_edits = 1;
    int rc = due__sharing_ask_edits(q, until_ns);
    return rc == 0 ? sh->results[0] : rc;
}

int due__sharing_find(struct due_queue *q, due_id id, due_store_visit *visit, void *ctx,
                      int64_t until_ns)
{
    struct due__commits *c = q->commits;

    if (due__load_seq(&c->stopping)) /* G2: who closes would wait for it */
        return DUE_EAGAIN;
    return c->store->verbs->find(c->store, id, visit, ctx, until_ns);
}

void due__sharing_over(struct due_queue *q, int rc)
{
    due__commit_fence(q, rc == DUE_ELOST ? "the store has lost what this process had done there"
                                         : DUE__OWNED_BY_ANOTHER ", or this one was evicted");
}

/* ---- Living ---- */

/* For how long nobody is to have looked at the dead before we do (share_retain.c); 0: we do not. */
static int64_t turn_wanted(const struct due_queue *q, int64_t now_ns)
{
    const struct due__commits *c = q->commits;
    int64_t half = c->share->renew_ns / 2;

    if ((q->dead_keep_ns == 0 && q->dead_max == 0) || c->share->retention.rests_ns > now_ns)
        return 0;
    return half < TURN_NS ? half : TURN_NS;
}

static void begin_turn(struct due__sharing *sh)
{
    struct due__retention *r = &sh->retention;

    if (r->turn) /* they are being looked at */
        return;
    r->turn = true;
    r->most = 1;
    r->pages = (struct due__pages){ .from_ns = INT64_MIN };
}

void due__sharing_beat(struct due_queue *q, int64_t now_ns, int64_t until_ns)
{
    struct due__commits *c = q->commits;
    struct due__sharing *sh = c->share;

    bool waits;
    bool early = due__sharing_asks_room(q, &waits);

    if ((c->renew_at_ns > now_ns && sh->guard_ns > now_ns && !early) ||
        due__load_seq(&c->fenced)) /* G2 */
        return;
    struct due_beat beat = { .waits_room = waits,
                             .turn_ns = turn_wanted(q, now_ns),
                             .dead_keep_ns = q->dead_keep_ns,
                             .dead_max = q->dead_max };
    int64_t began_ns = due__sharing_clock(q);
    int rc = sh->verbs->beat(c->store, &beat, until_ns);
    if (rc >= 0 && q->clock.manual == NULL)
        due__sharing_measure(sh, began_ns, due__sharing_clock(q), beat.now_ns);
    guarded(sh, now_ns);
    if (rc >= 0 && beat.renew_ns > 0)
        sh->renew_ns = beat.renew_ns;
    c->renew_at_ns = due__time_add(due__monotonic_now(), rc < 0 ? BEAT_AGAIN : sh->renew_ns);
    if (rc > 0 && (rc & DUE_BEAT_RANG))
        guard(sh);
    if (rc > 0 && (rc & DUE_BEAT_TURN))
        begin_turn(sh);
    if (rc >= 0)
        due__sharing_told_room(q, &beat);
    if (rc == DUE_EFENCED || rc == DUE_ELOST)
        due__sharing_over(q, rc);
}
